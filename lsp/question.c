#include "lsp/question.h"

#include <string.h>

document *question_document(server *s, const json_t *params)
{
    const json_t *uri = json_object_get(json_object_get(params, "textDocument"), "uri");
    return json_is_string(uri) ? documents_find(server_documents(s), json_string_value(uri)) : NULL;
}

bool question_ask(server *s, const json_t *params, bool has_position, question *q)
{
    *q = (question){.all = server_documents(s), .d = question_document(s, params)};
    if (!q->d || (has_position && !json_to_offset(q->all, q->d, json_object_get(params, "position"), &q->offset)))
        return false;
    q->c = document_compilation(q->all, q->d);
    if (q->c)
        documents_ask(q->all, q->d, q->c);
    return q->c != NULL;
}

bool question_ask_tree(server *s, const json_t *params, question *q)
{
    *q = (question){.all = server_documents(s), .d = question_document(s, params)};
    q->c = q->d ? document_tree(q->all, q->d) : NULL;
    if (q->c)
        documents_ask(q->all, q->d, q->c);
    return q->c != NULL;
}

bool question_range(const question *q, const json_t *params, uint32_t *begin, uint32_t *end)
{
    const json_t *range = json_object_get(params, "range");
    return json_to_offset(q->all, q->d, json_object_get(range, "start"), begin) &&
           json_to_offset(q->all, q->d, json_object_get(range, "end"), end);
}

bool question_spend(documents *all, unsigned values, const char *text, const char *more)
{
    return answer_make(&all->answer, values, strlen(text) + strlen(more));
}
