/* What changed between two kernels, and what that does to the cycles.
 *
 * The one idea: the command streams are aligned context by context, the same command to the same, a changed one to its like;
 * what is aligned nowhere was added or removed, and a command that was removed here and added there was moved. */
#ifndef VISA_RUNTIME_TIMING_KERNEL_DIFF_H
#define VISA_RUNTIME_TIMING_KERNEL_DIFF_H

#include "codegen/container.h"
#include "runtime/timing/timing_preset.h"

/* Kernels of one name are compared; two files of one kernel each are, whatever the names. NULL with a diagnostic. */
const char *kernel_diff(const binary *before, const binary *after, timing_preset preset, arena *a, diag_list *diags);

#endif
