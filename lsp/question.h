/* A request about a document: what most handlers begin with. */
#ifndef VISA_LSP_QUESTION_H
#define VISA_LSP_QUESTION_H

#include "lsp/json.h"
#include "lsp/server.h"

typedef struct question {
    documents *all;
    document *d;
    visa_compilation *c;
    uint32_t offset; /* of `position`, when it has one */
} question;

/* The open document that the parameters name; NULL: none. */
document *question_document(server *s, const json_t *params);
/* False: the parameters are not what the method takes, or there is no memory. */
bool question_ask(server *s, const json_t *params, bool has_position, question *q);
/* The same, for what is in the text whatever it means. */
bool question_ask_tree(server *s, const json_t *params, question *q);
/* `range` of the parameters. */
bool question_range(const question *q, const json_t *params, uint32_t *begin, uint32_t *end);
/* A piece of the answer with so many values and such texts. */
bool question_spend(documents *all, unsigned values, const char *text, const char *more);

#endif
