/* The formatter's view of a file: its tokens, what each means for white space, and the comments between them.
 *
 * The one idea: between two tokens stands a gap of blanks and comments. What the gap becomes follows from the two tokens alone, once
 * the tree has told which of them are brackets, signs and operators; a comment keeps the line ends that were on its two sides. */
#ifndef VISA_FRONTEND_FORMAT_TOKENS_H
#define VISA_FRONTEND_FORMAT_TOKENS_H

#include "frontend/ast.h"
#include "frontend/document.h"
#include "frontend/parser.tab.h"
#include "frontend/token.h"

typedef struct format_tokens {
    arena *arena;
    const char *source;
    const char *line_end; /* "\n" or "\r\n", as the first one of the file */
    token *items;         /* the last one is the end of the file */
    uint32_t count;
    uint8_t *marks;     /* per token */
    uint32_t *partners; /* of < and >; else TOKEN_NONE */
} format_tokens;

void format_tokens_read(format_tokens *t, const source_map *sources, const ast *file, arena *a);

/* The index of the first token that begins at the offset or after it. */
uint32_t format_token_at(const format_tokens *t, uint32_t offset);
/* The bracket that closes token i, if that opens one: TOKEN_NONE else. */
uint32_t format_partner(const format_tokens *t, uint32_t i);

/* One token in its canonical spelling; tokens [from, to) with what is between them, as they are. */
document *format_text_of(const format_tokens *t, uint32_t i);
document *format_verbatim(const format_tokens *t, uint32_t from, uint32_t to);

/* What the language's layout puts in front of token i. */
break_kind format_space(const format_tokens *t, uint32_t i);

bool format_has_comment(const format_tokens *t, uint32_t i);
/* The gap in front of token i: its comments, and `at` unless they ask for more. `statement`: an empty line is kept. */
void format_gap(const format_tokens *t, document *out, uint32_t i, break_kind at, bool statement);
/* Its comments alone; true: a line must end after them. */
bool format_comments(const format_tokens *t, document *out, uint32_t i, bool statement);

#endif
