/* Text with places where lines may end: what the formatter builds and prints.
 *
 * The one idea: a document is a tree of texts, breaks and groups. A group is printed on one line when it fits into
 * DOCUMENT_COLUMNS together with what follows it up to the next break; else its own soft breaks end lines, and the groups inside
 * it decide for themselves. Widths are counted once, when a document is closed, so that printing takes linear time. */
#ifndef VISA_FRONTEND_DOCUMENT_H
#define VISA_FRONTEND_DOCUMENT_H

#include <stdbool.h>

#include "support/strbuf.h"

enum {
    DOCUMENT_COLUMNS = 100, /* of a line, in characters */
    DOCUMENT_INDENT = 4,    /* characters */
    DOCUMENT_WIDE = 1 << 28 /* width of what has a line end in it */
};

typedef enum document_kind {
    DOC_TEXT,
    DOC_BREAK,
    DOC_SEQUENCE,
    DOC_INDENT, /* a sequence that stands deeper */
    DOC_GROUP,  /* a sequence that breaks as a whole */
    DOC_ASSIGN, /* kids: left side with its operator, right side; the line may end between them */
} document_kind;

typedef enum break_kind {
    BREAK_NONE,
    BREAK_SPACE,
    BREAK_SOFT_NONE, /* nothing, or a line end in a broken group */
    BREAK_SOFT,      /* a blank, or a line end in a broken group */
    BREAK_HARD,
    BREAK_EMPTY, /* a line end and an empty line */
} break_kind;

typedef struct document {
    document_kind kind;
    break_kind at;    /* DOC_BREAK */
    const char *text; /* DOC_TEXT */
    uint32_t bytes;
    bool comment;     /* DOC_TEXT: ends its line and counts as no columns */
    uint32_t aligned; /* of a comment: the column in which it stood, from 1; 0: it has no partner */
    struct document **kids;
    uint32_t count, capacity;
    int flat;      /* columns on one line; DOCUMENT_WIDE: never on one line */
    int lead;      /* columns up to the first line end of a wide one, else flat */
    int first;     /* columns up to the first place where a line may end */
    bool has_soft; /* a soft break of its own, outside of the groups in it */
} document;

document *document_new(arena *a, document_kind kind);
document *document_text(arena *a, const char *text, uint32_t bytes);
document *document_break(arena *a, break_kind at);
void document_add(arena *a, document *d, document *kid);
/* Counts the widths of a document whose kids are closed. A group wider than `limit` columns is broken; so is every one with limit 0. */
document *document_close(document *d, int limit);

/* The text, its lines ended by `line_end`; an initialised `out` gets it. */
void document_print(const document *d, const char *line_end, strbuf *out);

#endif
