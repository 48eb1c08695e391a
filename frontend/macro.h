/* `macro_rules!`: rules that match the tokens of a call, and the text that a call becomes.
 *
 * The one idea: what a rule gives is a new text, put together from pieces of the old ones, and each piece remembers where it was written.
 * So the parser reads it like a file, and whatever is reported about it has the place in the rule or in the call ("Macros by example" of
 * the Rust reference; fragments ident, ty, expr, literal, tt, path, block, pat, item, stmt and lifetime, repetitions with `*`, `+` and
 * `?`). */
#ifndef VISA_FRONTEND_MACRO_H
#define VISA_FRONTEND_MACRO_H

#include "frontend/ast.h"
#include "frontend/source.h"
#include "frontend/token.h"
#include "support/strbuf.h"

/* A run of text that stands as it is in a file. */
typedef struct text_piece {
    uint32_t begin; /* in the new text, bytes */
    src_range from;
} text_piece;

/* A text made of such runs; what lies between two of them was put there. */
typedef struct pieced_text {
    strbuf text;
    text_piece *pieces;
    size_t count, capacity;
} pieced_text;

void pieced_text_init(pieced_text *t, arena *a);
/* Appends the source text of that range. */
void pieced_text_add(pieced_text *t, const source_map *sources, src_range from);
/* Appends a text that stands for what is written there. */
void pieced_text_put(pieced_text *t, const char *text, src_range from);

/* A text with its tokens, as macros read it: without the parser's repairs. */
typedef struct token_text_list {
    src_range range; /* of the whole text in its file */
    const char *source;
    token_list tokens; /* offsets from range.begin */
} token_text_list;
/* False: the text has unbalanced brackets, which was reported when its file was read. */
bool macro_scan(const source_map *sources, src_range range, token_scanner *scanner, arena *a, token_text_list *out);
/* The index after the token, or after the bracket that it opens. */
uint32_t macro_token_after(const token_text_list *t, uint32_t i);
/* Are the two spelt alike? */
bool macro_same_token(const token_text_list *a, uint32_t i, const token_text_list *b, uint32_t j);

typedef struct macro macro;
/* Of the AST_ITEM_IGNORED of `macro_rules!`; NULL: diagnosed. */
macro *macro_define(const ast *item, const source_map *sources, token_scanner *scanner, arena *a, diag_list *diags);
const char *macro_name(const macro *m);
/* Of the first rule that matches the AST_MACRO's tokens; false: diagnosed. */
bool macro_expand(const macro *m, const ast *call, const source_map *sources, token_scanner *scanner, arena *a, diag_list *diags,
                  pieced_text *out);

#endif
