/* Orders a kernel's work by the timing model: asks for an order, places memory for it, and keeps it only when the schedule ends earlier. */
#ifndef VISA_LIBVISA_ORDER_H
#define VISA_LIBVISA_ORDER_H

#include "codegen/emit.h"
#include "passes/pass.h"
#include "runtime/timing/known_costs.h"

/* Of a kernel without errors. Leaves it as it is where no order is better. Gives what emit_kernel makes of it in e->arena; NULL: that has
 * none, or another form of the kernel was looked at last. `known`: costs of kernels before, and then of this one too. */
const binary_kernel *kernel_order(pass_context *p, const emit_context *e, known_costs *known, kernel *k);

#endif
