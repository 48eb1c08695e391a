/* A stream program as a graph to look at: Graphviz's text, or a picture (SVG) with its own layout.
 *
 * The one idea of the layout: operators stand in columns, each one column right of the last that it takes from, and in a column next to
 * those that they take from; an edge back (feedback) is drawn dashed. */
#ifndef VISA_CODEGEN_STEP_PICTURE_H
#define VISA_CODEGEN_STEP_PICTURE_H

#include "codegen/step/program.h"
#include "support/strbuf.h"

const char *step_dot_text(const step_program *p, arena *a);
/* `heat`: by node, 0 to 1, how strongly its box is filled; NULL: none is. `notes`: by node, a line more of what is shown when the box is
 * pointed at; NULL: none. */
void step_svg_put(strbuf *s, const step_program *p, const double *heat, const char *const *notes);
/* The beginning of a page for a stream program, up to its heading, and its end. */
void step_page_begin(strbuf *s, const char *title);
void step_page_end(strbuf *s);

#endif
