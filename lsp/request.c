/* What an editor asks about a document. */
#include <string.h>

#include "lsp/json.h"
#include "lsp/server.h"

/* A request about a document: what most handlers begin with. */
typedef struct question {
    documents *all;
    document *d;
    visa_compilation *c;
    uint32_t offset; /* of `position`, when it has one */
} question;

static document *document_of(server *s, const json_t *params)
{
    const json_t *uri = json_object_get(json_object_get(params, "textDocument"), "uri");
    return json_is_string(uri) ? documents_find(server_documents(s), json_string_value(uri)) : NULL;
}

static bool ask(server *s, const json_t *params, bool has_position, question *q)
{
    *q = (question){.all = server_documents(s), .d = document_of(s, params)};
    if (!q->d || (has_position && !json_to_offset(q->all, q->d, json_object_get(params, "position"), &q->offset)))
        return false;
    q->c = document_compilation(q->all, q->d);
    if (q->c)
        documents_ask(q->all, q->d, q->c);
    return q->c != NULL;
}

/* The same, for what is in the text whatever it means. */
static bool ask_tree(server *s, const json_t *params, question *q)
{
    *q = (question){.all = server_documents(s), .d = document_of(s, params)};
    q->c = q->d ? document_tree(q->all, q->d) : NULL;
    if (q->c)
        documents_ask(q->all, q->d, q->c);
    return q->c != NULL;
}

/* A piece of the answer with so many values and such texts. */
static bool spend(documents *all, unsigned values, const char *text, const char *more)
{
    return answer_make(&all->answer, values, strlen(text) + strlen(more));
}

static json_t *hover(server *s, const json_t *params)
{
    question q;
    visa_place place;
    const char *markdown;
    if (!ask(s, params, true, &q))
        return NULL;
    if (!visa_hover(q.c, q.offset, &place, &markdown))
        return json_null();
    spend(q.all, 8, markdown, "");
    return json_pack("{s:{s:s, s:o}, s:o}", "contents", "kind", "markdown", "value", json_bytes(markdown), "range",
                     json_range(q.all, q.d, place));
}

static json_t *definition(server *s, const json_t *params)
{
    question q;
    visa_place place;
    if (!ask(s, params, true, &q))
        return NULL;
    return visa_definition(q.c, q.offset, &place) ? json_location(q.all, q.d, q.c, place) : json_null();
}

/* ---- a name everywhere ---- */

static json_t *references(server *s, const json_t *params)
{
    question q;
    visa_place given;
    const visa_place *places;
    const json_t *declaration = json_object_get(json_object_get(params, "context"), "includeDeclaration");
    if (!ask(s, params, true, &q))
        return NULL;
    bool without = json_is_false(declaration) && visa_definition(q.c, q.offset, &given);
    size_t count = visa_references(q.c, q.offset, &places);
    json_t *list = json_array();
    for (size_t i = 0; i < count && spend(q.all, 12, "", ""); i++)
        if (!without || places[i].begin != given.begin)
            json_array_append_new(list, json_location(q.all, q.d, q.c, places[i]));
    return list;
}

static json_t *document_highlight(server *s, const json_t *params)
{
    question q;
    const visa_place *places;
    if (!ask(s, params, true, &q))
        return NULL;
    size_t count = visa_references(q.c, q.offset, &places);
    json_t *list = json_array();
    for (size_t i = 0; i < count && spend(q.all, 12, "", ""); i++)
        json_array_append_new(list, json_pack("{s:o}", "range", json_range(q.all, q.d, places[i])));
    return list;
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A name that nothing has yet: else what the text means would change. */
static bool is_free_name(const document *d, const char *name)
{
    size_t bytes = 0;
    while (is_word(name[bytes]))
        bytes++;
    if (bytes == 0 || name[bytes] || (name[0] >= '0' && name[0] <= '9') || (bytes == 1 && name[0] == '_'))
        return false;
    for (size_t i = 0; i < d->bytes;) {
        size_t from = i;
        while (i < d->bytes && is_word(d->text[i]))
            i++;
        if (i - from == bytes && memcmp(d->text + from, name, bytes) == 0)
            return false;
        i += i == from;
    }
    return true;
}

static json_t *prepare_rename(server *s, const json_t *params)
{
    question q;
    const visa_place *places;
    if (!ask(s, params, true, &q))
        return NULL;
    size_t count = visa_references(q.c, q.offset, &places);
    for (size_t i = 0; i < count; i++)
        if (places[i].begin <= q.offset && q.offset < places[i].end)
            return json_range(q.all, q.d, places[i]);
    return json_null();
}

/* null: the name is not of this file, or the new one is taken or none. */
static json_t *rename_name(server *s, const json_t *params)
{
    question q;
    const visa_place *places;
    const char *name = json_string_value(json_object_get(params, "newName"));
    if (!name || !ask(s, params, true, &q))
        return NULL;
    size_t count = is_free_name(q.d, name) ? visa_references(q.c, q.offset, &places) : 0;
    if (count == 0)
        return json_null();
    json_t *edits = json_array(), *changes = json_object();
    for (size_t i = 0; i < count && spend(q.all, 12, name, ""); i++)
        json_array_append_new(edits, json_pack("{s:o, s:s}", "range", json_range(q.all, q.d, places[i]), "newText", name));
    json_object_set_new(changes, q.d->uri, edits);
    return json_pack("{s:o}", "changes", changes);
}

/* Items of several lines. */
static json_t *folding_range(server *s, const json_t *params)
{
    question q;
    visa_outline o;
    if (!ask_tree(s, params, &q))
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; visa_outline_at(q.c, i, &o) && spend(q.all, 8, "", ""); i++) {
        json_t *range = json_range(q.all, q.d, o.place);
        json_int_t first = json_integer_value(json_object_get(json_object_get(range, "start"), "line")),
                   last = json_integer_value(json_object_get(json_object_get(range, "end"), "line"));
        if (last > first)
            json_array_append_new(list, json_pack("{s:I, s:I}", "startLine", first, "endLine", last));
        json_decref(range);
    }
    return list;
}

static json_t *completion(server *s, const json_t *params)
{
    /* CompletionItemKind */
    static const int kinds[] = {
        [VISA_NAME_AXIS] = 20,  [VISA_NAME_ALIAS] = 25, [VISA_NAME_CONST] = 21, [VISA_NAME_VARIABLE] = 6, [VISA_NAME_FUNCTION] = 3,
        [VISA_NAME_MODULE] = 9, [VISA_NAME_METHOD] = 2, [VISA_NAME_FIELD] = 5,  [VISA_NAME_TYPE] = 7,     [VISA_NAME_KEYWORD] = 14};
    documents *all = server_documents(s);
    const document *d = document_of(s, params);
    uint32_t offset;
    if (!d || !json_to_offset(all, d, json_object_get(params, "position"), &offset))
        return NULL;
    visa_compilation *c = document_complete(all, d, offset);
    json_t *items = json_array();
    visa_completion item;
    for (size_t i = 0; c && visa_completion_at(c, i, &item) && spend(all, 3, item.label, item.detail); i++) {
        json_t *j = json_pack("{s:o, s:i}", "label", json_bytes(item.label), "kind", kinds[item.kind]);
        if (item.detail[0])
            json_object_set_new(j, "detail", json_bytes(item.detail));
        if (item.label[0] == '{')
            json_object_set_new(j, "filterText", json_bytes(item.label + 1));
        json_array_append_new(items, j);
    }
    visa_free(c);
    return items;
}

static json_t *formatting(server *s, const json_t *params)
{
    question q;
    const char *text;
    size_t bytes;
    if (!ask_tree(s, params, &q))
        return NULL;
    if (!visa_format(q.c, &text, &bytes))
        return json_null(); /* its diagnostics say why */
    if (bytes == q.d->bytes && memcmp(text, q.d->text, bytes) == 0)
        return json_array();
    visa_place whole = {0, 0, (uint32_t)q.d->bytes};
    answer_make(&q.all->answer, 8, bytes);
    json_t *range = json_range(q.all, q.d, whole);
    return json_pack("[{s:o, s:o}]", "range", range, "newText", json_stringn(text, bytes));
}

static json_t *document_symbol(server *s, const json_t *params)
{
    /* SymbolKind */
    static const int kinds[] = {[VISA_NAME_AXIS] = 22,     [VISA_NAME_ALIAS] = 26,    [VISA_NAME_CONST] = 14,
                                [VISA_NAME_VARIABLE] = 13, [VISA_NAME_FUNCTION] = 12, [VISA_NAME_MODULE] = 2};
    enum { DEPTH_MAX = 64 };
    question q;
    if (!ask_tree(s, params, &q))
        return NULL;
    json_t *levels[DEPTH_MAX + 1] = {json_array()};
    visa_outline o;
    for (size_t i = 0; visa_outline_at(q.c, i, &o) && spend(q.all, 16, o.name, o.detail); i++) {
        int depth = o.depth < DEPTH_MAX ? o.depth : DEPTH_MAX - 1;
        while (depth > 0 && !levels[depth])
            depth--;
        json_t *children = json_array();
        json_t *j =
            json_pack("{s:o, s:i, s:o, s:o, s:o}", "name", json_bytes(o.name), "kind", kinds[o.kind], "range",
                      json_range(q.all, q.d, o.place), "selectionRange", json_range(q.all, q.d, o.name_place), "children", children);
        if (o.detail[0])
            json_object_set_new(j, "detail", json_bytes(o.detail));
        json_array_append_new(levels[depth], j);
        levels[depth + 1] = children;
        for (int deeper = depth + 2; deeper <= DEPTH_MAX; deeper++)
            levels[deeper] = NULL;
    }
    return levels[0];
}

static json_t *fix_action(const question *q, const visa_diagnostic *from)
{
    json_t *edit = json_pack("{s:o, s:o}", "range", json_range(q->all, q->d, from->fix_place), "newText", json_bytes(from->fix));
    json_t *changes = json_object();
    json_object_set_new(changes, q->d->uri, json_pack("[o]", edit));
    char title[160];
    snprintf(title, sizeof title, "Replace by `%.120s`", from->fix);
    return json_pack("{s:o, s:s, s:b, s:[o], s:{s:o}}", "title", json_bytes(title), "kind", "quickfix", "isPreferred", 1, "diagnostics",
                     json_diagnostic(q->all, q->d, q->c, from), "edit", "changes", changes);
}

static json_t *code_action(server *s, const json_t *params)
{
    question q;
    uint32_t begin, end;
    const json_t *range = json_object_get(params, "range");
    if (!ask(s, params, false, &q) || !json_to_offset(q.all, q.d, json_object_get(range, "start"), &begin) ||
        !json_to_offset(q.all, q.d, json_object_get(range, "end"), &end))
        return NULL;
    json_t *actions = json_array();
    visa_diagnostic from;
    for (size_t i = 0; visa_diagnostic_at(q.c, i, &from); i++)
        if (from.fix && from.place.file == 0 && from.place.begin <= end && from.place.end >= begin && json_spend_diagnostic(q.all, &from))
            json_array_append_new(actions, fix_action(&q, &from));
    return actions;
}

request_handler request_find(const char *method)
{
    static const struct {
        const char *method;
        request_handler handler;
    } rows[] = {
        {"textDocument/hover", hover},
        {"textDocument/definition", definition},
        {"textDocument/completion", completion},
        {"textDocument/formatting", formatting},
        {"textDocument/documentSymbol", document_symbol},
        {"textDocument/codeAction", code_action},
        {"textDocument/references", references},
        {"textDocument/documentHighlight", document_highlight},
        {"textDocument/prepareRename", prepare_rename},
        {"textDocument/rename", rename_name},
        {"textDocument/foldingRange", folding_range},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].handler;
    return NULL;
}
