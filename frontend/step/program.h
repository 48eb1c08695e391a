/* Stream programs: from #[stream] functions to graphs.
 *
 * The one idea: the body of a #[stream] function is evaluated once, like that of a kernel, and each operator that is called adds a node;
 * loops, lists and calls of other functions do not exist any more when it is done. Sizes may be numbers or expressions over the function's
 * parameters `const B: Dim` (one size) and `const R: Ragged` (one size for each outer index). */
#ifndef VISA_FRONTEND_STEP_PROGRAM_H
#define VISA_FRONTEND_STEP_PROGRAM_H

#include "frontend/ast.h"
#include "ir/step/graph.h"

typedef struct step_module {
    step_graph **graphs; /* in source order; those with errors have `bad` set */
    size_t count, capacity;
} step_module;

/* The vISA kernels of the file. */
typedef struct step_kernels {
    step_kernel *items;
    size_t count, capacity;
} step_kernels;

/* Is the function marked #[stream]? */
bool step_is_program(const ast *fn);

/* What the command line says of the machine instead of the program; 0: nothing. */
typedef struct step_given {
    int64_t compute_tile, onchip_bytes;
} step_given;

/* Every #[stream] function of the file that no other one calls; `only`: the one with that name, or NULL. */
step_module *step_module_of(const ast *file, const char *only, const step_kernels *kernels, const step_given *given, arena *a,
                            diag_list *diags);
/* Their names, NULL-ended. */
const char *const *step_program_names(const ast *file, arena *a);

#endif
