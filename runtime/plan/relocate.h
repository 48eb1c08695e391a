/* A kernel, moved to where its ports lie.
 *
 * The one idea: what a copy touches of HBM is one port, or memory of the kernel's own. So the base of each copy is moved as far as that
 * port is, and what is no port's is moved behind all buffers. */
#ifndef VISA_RUNTIME_PLAN_RELOCATE_H
#define VISA_RUNTIME_PLAN_RELOCATE_H

#include "codegen/container.h"

/* Is the port dense elements, on one chip: the element with the logical index i is its i-th? */
bool port_is_dense(const binary_kernel *k, uint32_t port, arena *a);

/* `out` is the kernel with its HBM ports at addresses[port] and its other HBM memory moved by `scratch` bytes. False with E_PLAN_FIT: a
 * copy begins in a port and ends outside of it. */
bool kernel_relocate(const target *t, const binary_kernel *k, const int64_t *addresses, int64_t scratch, arena *a, diag_list *diags,
                     binary_kernel *out);

#endif
