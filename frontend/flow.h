/* `match`, `if let`, `while` and `loop`, which the parser keeps as text: a function of the host may have any Rust in them.
 *
 * The one idea: the parts (scrutinee, patterns, guards, values, conditions, blocks) are texts of their own, which the parser reads one by
 * one (frontend/expand.h). Where one of them cannot be read the construct stays text, with what is wrong in it: only a kernel that comes by
 * says so. */
#ifndef VISA_FRONTEND_FLOW_H
#define VISA_FRONTEND_FLOW_H

#include "frontend/expand.h"

/* An AST_MATCH or AST_WHILE in place of an AST_UNSUPPORTED of one of these words; else the node itself, or with its fault. */
const ast *flow_read(expander *e, const ast *n);
/* `matches!(value, pattern)` as an AST_MATCH; the macro itself where it cannot be read. */
const ast *flow_read_matches(expander *e, const ast *n);

#endif
