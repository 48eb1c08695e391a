/* The kernels of a file as functions that its stream programs may apply to tiles.
 *
 * The one idea: a port's logical tensor is a tile whose rows are its first axis; what a run is worth follows from what the kernel computes
 * (ir/einsum.h): 2 FLOPs for each product that is summed; what it moves and where it puts it is what its commands say
 * (runtime/timing/calls.h). */
#ifndef VISA_LIBVISA_STEP_KERNELS_H
#define VISA_LIBVISA_STEP_KERNELS_H

#include "codegen/emit.h"
#include "frontend/step/program.h"
#include "ir/kernel.h"

/* Adds a kernel, after the passes; `all` lives in `a` and refers to nothing of the kernel but its name. `e`: how it is written, in an arena
 * of its own that is forgotten; NULL: it has errors, and what it moves is not asked. */
void step_kernels_add(step_kernels *all, const kernel *k, const emit_context *e, arena *a);

#endif
