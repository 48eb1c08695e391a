/* The sizes of a run (visa-run --sizes) as numbers for the symbols of a stream program.
 *
 * The one idea: a symbol stands for a dimension of the stream where it first occurs alone, or for the rows or columns of its tiles; what
 * the run saw there is what it was. */
#ifndef VISA_LIBVISA_STEP_SIZES_H
#define VISA_LIBVISA_STEP_SIZES_H

#include "ir/step/bind.h"

typedef struct step_size_list {
    step_binding *items;
    size_t count, capacity;
} step_size_list;

/* Adds what the file says of the graph of its program; a graph of another name has nothing in it. False: diagnosed. */
bool step_sizes_read(const char *file, step_graph *const *graphs, size_t count, step_size_list *out, arena *a, diag_list *diags);

#endif
