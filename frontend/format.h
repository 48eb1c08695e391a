/* The canonical layout of a .vm file.
 *
 * The one idea: the formatter prints the tokens of the file, each one once and in their order, and decides only about the white
 * space between them; so nothing can be lost, and what is printed parses to the same program. Which `<` is a bracket and which
 * dots make a chain it learns from the tree. Comments stand between tokens: they keep their text, and the lines they begin and end. */
#ifndef VISA_FRONTEND_FORMAT_H
#define VISA_FRONTEND_FORMAT_H

#include "frontend/ast.h"
#include "frontend/source.h"
#include "support/strbuf.h"

/* `file` is what parse_file made of it, without errors; an initialised `out` gets the text. */
void format_file(const source_map *sources, const ast *file, strbuf *out);

#endif
