/* The C ABI between visac and its reference generator, a shared library of its own.
 *
 * The one idea: whoever wants numbers to compare with hands over an einsum and gets back a function made from
 * the mathematics alone, by another code generator than the machine's. The library links LLVM; nothing else
 * does, so a plain compile never pays for it. It is reached through codegen/reference_load.h.
 *
 * Tensors are dense and logical (target/einsum.h): little-endian elements, row-major, packed; i4 two per
 * byte, the even element in the low nibble. Float sums are f32, in an order of their own; integers
 * are i32 and wrap. Numbers follow docs/numerics.md, in an implementation of their own.
 */
#ifndef VISA_CODEGEN_REFERENCE_REFERENCE_H
#define VISA_CODEGEN_REFERENCE_REFERENCE_H

#include "target/einsum.h"

enum { REFERENCE_API_VERSION = 5 };

typedef struct reference_kernel reference_kernel;

/* What `emit` writes: a C function that needs nothing else. */
typedef enum reference_output {
    REFERENCE_LLVM = 1,
    REFERENCE_BITCODE,
    REFERENCE_ASSEMBLY,
    REFERENCE_OBJECT,
    REFERENCE_HEADER, /* C declaration for REFERENCE_OBJECT */
} reference_output;

/* What a kernel can be run for; each costs its own code generation. QUICK, in addition: for a kernel that runs
 * once; the same values, from code that is not optimised where compiling it well would take longer than it saves. MACHINE_ORDER, in
 * addition to VALUES: floats are added in the machine's order (target/einsum.h), which gives its bits. FIELD: the polynomials, over the
 * field of 2^61 - 1 elements. */
enum { REFERENCE_VALUES = 1, REFERENCE_BOUNDS = 2, REFERENCE_QUICK = 4, REFERENCE_MACHINE_ORDER = 8, REFERENCE_FIELD = 16 };

/* Every text that a function returns is a fault, malloc'd, given back with release_bytes; NULL is success.
 * The functions may be called from several threads; one kernel may run in several threads at once. */
typedef struct reference_api {
    int version;

    /* Generates and compiles for the forms asked for. `cpu`: a name of cpu.def; NULL is the CPU that it runs on. The einsum need
     * not outlive the call. */
    char *(*build)(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_kernel **out);

    /* tensors[t]: the bytes of tensor t. Tensors that no statement assigns are read and must be there; the
     * others are written, or left away with NULL. bounds: NULL, or per tensor NULL or one double per element:
     * how far (absolute) any other legal summation order can be from the value written. 0: equal, or both
     * NaN. Infinity: anything, because a partial sum may overflow. Elements that no digit reaches are 0 with
     * bound 0. threads: how many may share the work; the result does not depend on it. */
    char *(*run)(reference_kernel *k, unsigned char *const *tensors, double *const *bounds, unsigned threads);

    /* Of the form FIELD: tensors[t] is one residue below 2^61 - 1 per element of tensor t, all of them given; casts are identities. */
    char *(*run_field)(reference_kernel *k, uint64_t *const *tensors, unsigned threads);

    /* Elements of gathers and scatters, in all runs so far, whose index was outside its axis: a gather gave zero, a scatter wrote nothing.
     */
    uint64_t (*indices_outside)(const reference_kernel *k);
    uint64_t (*jit_nanoseconds)(const reference_kernel *k);
    void (*release)(reference_kernel *k);

    /* `forms`: 0 or REFERENCE_MACHINE_ORDER. `cpu`: NULL is any CPU of the host's family, so that the same einsum gives the same bytes
     * everywhere. */
    char *(*emit)(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_output kind, unsigned char **bytes,
                  size_t *byte_count);
    void (*release_bytes)(void *bytes);
} reference_api;

/* The one exported symbol, "visa_reference_api": NULL when the library does not speak this version. */
typedef const reference_api *reference_api_function(int version);
reference_api_function visa_reference_api;

#endif
