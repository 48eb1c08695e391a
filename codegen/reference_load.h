/* The reference generator, found and loaded when it is first asked for.
 *
 * The one idea: LLVM is loaded by dlopen (support/plugin.h; the environment variable VISA_REFERENCE names another
 * file). A library that is missing, and everything that goes wrong inside, is an E-REFERENCE diagnostic. */
#ifndef VISA_CODEGEN_REFERENCE_LOAD_H
#define VISA_CODEGEN_REFERENCE_LOAD_H

#include "codegen/reference/reference.h"
#include "support/diag.h"

/* NULL with a diagnostic. The library stays loaded; asking again costs a reference count. */
const reference_api *reference_load(diag_list *diags);

/* Compiles the einsum for this CPU, or for a lesser one that VISA_MCPU names; NULL with a diagnostic. `name` is the kernel's,
 * `forms` REFERENCE_VALUES, REFERENCE_BOUNDS, with REFERENCE_QUICK and REFERENCE_MACHINE_ORDER. */
reference_kernel *reference_compile(const reference_api *api, const einsum *e, const char *name, unsigned forms, diag_list *diags);
/* See reference_api.run. */
bool reference_run(const reference_api *api, reference_kernel *k, unsigned char *const *tensors, double *const *bounds, unsigned threads,
                   diag_list *diags);
/* See reference_api.run_field. */
bool reference_run_field(const reference_api *api, reference_kernel *k, uint64_t *const *tensors, unsigned threads, diag_list *diags);
/* The bytes of a file, in the arena, with a NUL after them. */
bool reference_emit(const reference_api *api, const einsum *e, const char *name, unsigned forms, const char *cpu, reference_output kind,
                    arena *a, unsigned char **bytes, size_t *byte_count, diag_list *diags);

/* Bytes of a logical tensor: packed, the last one filled up; -1 from 2^63 on. */
int64_t reference_tensor_bytes(const einsum *e, uint32_t tensor);

#endif
