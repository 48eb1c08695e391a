/* Pictures of a sequencer's walk over its tensor, as SVG.
 *
 * The one idea: the loops of a compiled table are walked as the hardware would, and every access is counted on the cell of
 * memory that it touches; nothing is drawn from mappings but the grid of cells and which of them are padding. Two maps
 * come out: when each cell is first accessed, and how often.
 *
 * The picture is one self-contained text without scripts or fonts, the same for the same input. */
#ifndef VISA_CODEGEN_DRAW_H
#define VISA_CODEGEN_DRAW_H

#include "codegen/emit.h"
#include "support/diag.h"

/* Pictures are drawn of walks with at most this many element accesses, over at most this many cells. */
#define DRAW_MAX_ACCESSES ((int64_t)1 << 24)

/* `what` is "[KERNEL:]OP": a name of an operation (fetch, commit, align, to_dm, to_hbm) that occurs once, or its index in
 * --emit=json. Returns NULL with a diagnostic added when there is no such walk or it is too long. */
const char *draw_svg(const emit_context *e, const module *m, const char *what, diag_list *diags);

/* The pictures of a kernel, one SVG after the other, for a page: one of all copies of a stage in a loop that walk alike; none of walks
 * over more than DRAW_PAGE_CELLS cells, nor after the first DRAW_PAGE_PICTURES. */
#define DRAW_PAGE_CELLS ((int64_t)1 << 20)
#define DRAW_PAGE_PICTURES ((size_t)64)
const char *draw_kernel(const emit_context *e, const kernel *k);

#endif
