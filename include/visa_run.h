/* Kernels of a binary on the simulated machine, with tensors by pointer.
 *
 *     visa_kernel *k = visa_kernel_open(data, size, NULL);
 *     memcpy(visa_port_data(k, 0, NULL), a, a_bytes);
 *     if (visa_kernel_run(k))
 *         use(visa_port_data(k, 2, NULL));
 *     visa_kernel_close(k);
 *
 * A kernel owns its tensors and all texts that it hands out, until visa_kernel_close; texts of a call hold until the next one. Nothing here
 * prints, exits or aborts. visa_kernel_check loads the reference generator, and LLVM with it; nothing else does. One kernel belongs to one
 * thread at a time. */
#ifndef VISA_RUN_H
#define VISA_RUN_H

#include "visa.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct visa_kernel visa_kernel;

/* The bytes of visa_emit, or of a file that visac wrote; they are copied. `name` NULL: the binary's only kernel. NULL only when there is no
 * memory; else visa_kernel_error says whether it can be run. */
VISA_API visa_kernel *visa_kernel_open(const void *binary, size_t size, const char *name);
VISA_API void visa_kernel_close(visa_kernel *k);
/* What was wrong with the last call that gave false or NULL: lines "E-ID: ..", "note: ..", "help: ..". "" when nothing was. */
VISA_API const char *visa_kernel_error(const visa_kernel *k);
VISA_API const char *visa_kernel_name(const visa_kernel *k);

enum { VISA_PORT_RANK_MAX = 64 };

/* A tensor of a kernel: whole axes, dense, row by row, in the order in which the port's mapping first names them. Elements are
 * little-endian; bf16 and the 8-bit floats are bit patterns, i4 stands two per byte, the even element in the low nibble. */
typedef struct visa_port {
    const char *name;
    const char *type; /* of an element, "bf16" */
    int element_bits;
    bool is_output;
    size_t rank;
    int64_t shape[VISA_PORT_RANK_MAX];          /* elements of each axis, outermost first */
    const char *axis_names[VISA_PORT_RANK_MAX]; /* "M" */
} visa_port;

/* The i-th port, inputs and outputs in the order of the kernel's signature; false: there are fewer. */
VISA_API bool visa_port_at(visa_kernel *k, size_t i, visa_port *out);
/* Its elements: an input's are filled before a run (they are zero first), an output's are those of the last run. *bytes may be NULL. NULL:
 * there is no such port, or no memory. */
VISA_API void *visa_port_data(visa_kernel *k, size_t i, size_t *bytes);

/* Fills an input with f32 values, `count` of them: each is rounded to the port's type as a cast does (integers: to the nearest, ties to
 * even, and wrapped). False: it has another number of elements, is an output, or is not there. */
VISA_API bool visa_port_round(visa_kernel *k, size_t i, const float *values, size_t count);

/* How a kernel runs; zero everywhere is the default, and every choice gives the same bits. */
typedef struct visa_run_options {
    unsigned threads;    /* 0: one for each processor */
    uint64_t max_cycles; /* of the machine: a run of more is refused; 0: 100,000,000, UINT64_MAX: any number */
    uint64_t seed;       /* of the numbers in inputs that nobody asked visa_port_data for; 0: 1 */
} visa_run_options;

/* Runs the binary's commands, byte by byte. `options` NULL: the default. */
VISA_API bool visa_kernel_run(visa_kernel *k, const visa_run_options *options);

enum { VISA_CHECK_NUMBERS = 1, VISA_CHECK_ALGEBRA = 2 };
/* Runs it and compares the outputs with the reference that LLVM builds from the mathematics: equal values for these inputs (NUMBERS), and a
 * proof over a field of 2^61 - 1 elements for all inputs (ALGEBRA). False: it could not be decided, or *agrees is false; visa_kernel_error
 * says which terms differ. *report, when it is not NULL: a line for each output, for people. */
VISA_API bool visa_kernel_check(visa_kernel *k, const visa_run_options *options, int what, bool *agrees, const char **report);

/* What the last check of it found: "agrees", "differs" or "not compared". */
VISA_API const char *visa_kernel_verdict(const visa_kernel *k);

/* When each command runs and what binds it, as visac --report does: format "text", "csv", "json" or "html", timing "documented",
 * "channels", "schedule" or "measured"; NULL: the first. NULL: visa_kernel_error says why. */
VISA_API const char *visa_kernel_report(visa_kernel *k, const char *format, const char *timing);
/* Cycles of the whole kernel by the same model; -1: visa_kernel_error says why. */
VISA_API int64_t visa_kernel_cycles(visa_kernel *k, const char *timing);

#ifdef __cplusplus
}
#endif

#endif
