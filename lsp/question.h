/* A request about a document: what most handlers begin with. */
#ifndef VISA_LSP_QUESTION_H
#define VISA_LSP_QUESTION_H

#include "lsp/json.h"
#include "lsp/server.h"

typedef struct question {
    documents *all;
    document *d;
    visa_compilation *c;
    uint32_t offset;     /* of `position`, when it has one */
    uint32_t begin, end; /* of `range` */
} question;

/* What the parameters have, and what is compiled: all; what is around their position, or all for what is there; what is around their range;
 * nothing yet. */
typedef enum question_kind { ASK_WHOLE, ASK_AT, ASK_NAME_AT, ASK_RANGE, ASK_NOTHING, ASK_NOTHING_RANGE } question_kind;

/* The open document that the parameters name; NULL: none. */
document *question_document(server *s, const json_t *params);
/* q->c is NULL where nothing is compiled. False: the parameters are not what the method takes, or there is no memory. */
bool question_ask(server *s, const json_t *params, question_kind kind, question *q);
/* The same, for what is in the text whatever it means. */
bool question_ask_tree(server *s, const json_t *params, question *q);
/* A piece of the answer with so many values and such texts. */
bool question_spend(documents *all, unsigned values, const char *text, const char *more);

#endif
