/* A kernel, moved to where its ports lie.
 *
 * The one idea: what a copy touches of HBM is one port, or memory of the kernel's own. So the base of each copy is moved as far as that
 * port is, and what is no port's is moved past all buffers. In DM it is the same of every walk. */
#ifndef VISA_RUNTIME_PLAN_RELOCATE_H
#define VISA_RUNTIME_PLAN_RELOCATE_H

#include "codegen/container.h"

/* Is the port dense elements, on one chip: the element with the logical index i is its i-th? */
bool port_is_dense(const binary_kernel *k, uint32_t port, arena *a);

/* Bytes of a port in DM that a slice holds. */
int64_t port_unit_bytes(const port *p, const layout_axis *axes);

/* `out` is the kernel with its ports in HBM and DM at addresses[port], its other HBM memory moved by `scratch` bytes and, where dm_scratch
 * is not 0, its other DM by that. False with E_PLAN_FIT: a copy begins in a port and ends outside of it. */
bool kernel_relocate(const target *t, const binary_kernel *k, const int64_t *addresses, int64_t scratch, int64_t dm_scratch, arena *a,
                     diag_list *diags, binary_kernel *out);

#endif
