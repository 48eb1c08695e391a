#include "lsp/question.h"

#include <string.h>

document *question_document(server *s, const json_t *params)
{
    const json_t *uri = json_object_get(json_object_get(params, "textDocument"), "uri");
    return json_is_string(uri) ? documents_find(server_documents(s), json_string_value(uri)) : NULL;
}

static bool read_range(question *q, const json_t *params)
{
    const json_t *range = json_object_get(params, "range");
    return json_to_offset(q->all, q->d, json_object_get(range, "start"), &q->begin) &&
           json_to_offset(q->all, q->d, json_object_get(range, "end"), &q->end);
}

bool question_ask(server *s, const json_t *params, question_kind kind, question *q)
{
    *q = (question){.all = server_documents(s), .d = question_document(s, params)};
    bool at = kind == ASK_AT || kind == ASK_NAME_AT, ranged = kind == ASK_RANGE || kind == ASK_NOTHING_RANGE;
    if (!q->d || (at && !json_to_offset(q->all, q->d, json_object_get(params, "position"), &q->offset)) ||
        (ranged && !read_range(q, params)))
        return false;
    if (kind == ASK_NOTHING || kind == ASK_NOTHING_RANGE)
        return true;
    bool part = kind == ASK_RANGE;
    q->c = kind == ASK_AT ? document_place(q->all, q->d, q->offset)
                          : document_compilation(q->all, q->d, part ? q->begin : 0, part ? q->end : UINT32_MAX);
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

bool question_spend(documents *all, unsigned values, const char *text, const char *more)
{
    return answer_make(&all->answer, values, strlen(text) + strlen(more));
}
