/* What an editor asks about a document. */
#include <string.h>

#include "lsp/names.h"
#include "lsp/question.h"

static json_t *hover(server *s, const json_t *params)
{
    question q;
    visa_place place;
    const char *markdown;
    if (!question_ask(s, params, ASK_AT, &q))
        return NULL;
    if (!visa_hover(q.c, q.offset, &place, &markdown))
        return json_null();
    question_spend(q.all, 8, markdown, "");
    return json_pack("{s:{s:s, s:o}, s:o}", "contents", "kind", "markdown", "value", json_bytes(markdown), "range",
                     json_range(q.all, q.d, place));
}

static json_t *definition(server *s, const json_t *params)
{
    question q;
    visa_place place;
    if (!question_ask(s, params, ASK_AT, &q))
        return NULL;
    return visa_definition(q.c, q.offset, &place) ? json_location(q.all, q.d, q.c, place) : json_null();
}

/* Items of several lines. */
static json_t *folding_range(server *s, const json_t *params)
{
    question q;
    visa_outline o;
    if (!question_ask_tree(s, params, &q))
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; visa_outline_at(q.c, i, &o) && question_spend(q.all, 8, "", ""); i++) {
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
    const document *d = question_document(s, params);
    uint32_t offset;
    if (!d || !json_to_offset(all, d, json_object_get(params, "position"), &offset))
        return NULL;
    visa_compilation *c = document_complete(all, d, offset);
    json_t *items = json_array();
    visa_completion item;
    for (size_t i = 0; c && visa_completion_at(c, i, &item) && question_spend(all, 3, item.label, item.detail); i++) {
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
    if (!question_ask_tree(s, params, &q))
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
    if (!question_ask_tree(s, params, &q))
        return NULL;
    json_t *levels[DEPTH_MAX + 1] = {json_array()};
    visa_outline o;
    for (size_t i = 0; visa_outline_at(q.c, i, &o) && question_spend(q.all, 16, o.name, o.detail); i++) {
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

static bool is_of_the_text(const visa_diagnostic *from)
{
    for (size_t i = 0; i < from->edit_count; i++)
        if (from->edits[i].place.file != 0)
            return false;
    return from->edit_count > 0;
}

static json_t *fix_action(const question *q, const visa_diagnostic *from)
{
    json_t *edits = json_array(), *changes = json_object();
    for (size_t i = 0; i < from->edit_count; i++)
        json_array_append_new(edits, json_pack("{s:o, s:o}", "range", json_range(q->all, q->d, from->edits[i].place), "newText",
                                               json_bytes(from->edits[i].text)));
    json_object_set_new(changes, q->d->uri, edits);
    char title[160];
    if (from->edit_count == 1)
        snprintf(title, sizeof title, "Replace by `%.120s`", from->edits[0].text);
    else
        snprintf(title, sizeof title, "Fix: %.150s", from->help);
    return json_pack("{s:o, s:s, s:b, s:[o], s:{s:o}}", "title", json_bytes(title), "kind", "quickfix", "isPreferred", 1, "diagnostics",
                     json_diagnostic(q->all, q->d, q->c, from), "edit", "changes", changes);
}

static const char fix_all[] = "source.fixAll";

/* Does the client ask for that kind of action, by its name or one of what it is a part of ("source")? */
static bool is_asked_for(const json_t *only, const char *kind)
{
    size_t i;
    const json_t *one;
    json_array_foreach(only, i, one)
    {
        const char *name = json_string_value(one);
        size_t letters = name ? strlen(name) : 0;
        if (letters && strncmp(kind, name, letters) == 0 && (kind[letters] == '.' || kind[letters] == '\0'))
            return true;
    }
    return false;
}

/* All of the text's fixes, and those of what they show: one change. It is compiled again and again, so a client has to ask for it. */
static json_t *fix_all_action(const question *q)
{
    json_t *actions = json_array();
    size_t changes = 0, bytes = 0;
    visa_compilation *c = document_fix(q->all, q->d, &changes);
    const char *text = c ? visa_file_text(c, 0, &bytes) : NULL;
    if (text && changes) {
        visa_place whole = {0, 0, (uint32_t)q->d->bytes};
        answer_make(&q->all->answer, 8, bytes);
        json_t *edit = json_pack("{s:o, s:o}", "range", json_range(q->all, q->d, whole), "newText", json_stringn(text, bytes));
        json_t *all = json_object();
        json_object_set_new(all, q->d->uri, json_pack("[o]", edit));
        json_array_append_new(
            actions, json_pack("{s:s, s:s, s:{s:o}}", "title", "Fix all that visac knows how to", "kind", fix_all, "edit", "changes", all));
    }
    visa_free(c);
    return actions;
}

static json_t *code_action(server *s, const json_t *params)
{
    question q;
    const json_t *only = json_object_get(json_object_get(params, "context"), "only");
    if (is_asked_for(only, fix_all))
        return question_ask(s, params, ASK_NOTHING_RANGE, &q) ? fix_all_action(&q) : NULL;
    if (!question_ask(s, params, ASK_RANGE, &q))
        return NULL;
    json_t *actions = json_array();
    visa_diagnostic from;
    if (json_array_size(only) && !is_asked_for(only, "quickfix"))
        return actions;
    for (size_t i = 0; visa_diagnostic_at(q.c, i, &from); i++)
        if (is_of_the_text(&from) && from.place.file == 0 && from.place.begin <= q.end && from.place.end >= q.begin &&
            json_spend_diagnostic(q.all, &from))
            json_array_append_new(actions, fix_action(&q, &from));
    return actions;
}

/* Of the lines that an editor shows. */
static json_t *inlay_hint(server *s, const json_t *params)
{
    enum { TYPE = 1 }; /* InlayHintKind; the others are of none */
    question q;
    const visa_hint *hints;
    if (!question_ask(s, params, ASK_RANGE, &q))
        return NULL;
    size_t count = visa_hints(q.c, q.begin, q.end, &hints);
    json_t *list = json_array();
    for (size_t i = 0; i < count && question_spend(q.all, 8, hints[i].text, hints[i].more); i++) {
        visa_place at = {0, hints[i].offset, hints[i].offset};
        json_t *range = json_range(q.all, q.d, at);
        json_t *j = json_pack("{s:O, s:o, s:b, s:o}", "position", json_object_get(range, "start"), "label", json_bytes(hints[i].text),
                              "paddingLeft", 1, "tooltip", json_bytes(hints[i].more));
        if (hints[i].kind == VISA_HINT_MAPPING)
            json_object_set_new(j, "kind", json_integer(TYPE));
        json_array_append_new(list, j);
        json_decref(range);
    }
    return list;
}

static json_t *signature_help(server *s, const json_t *params)
{
    question q;
    visa_signature g;
    text_lines lines;
    if (!question_ask(s, params, ASK_AT, &q))
        return NULL;
    if (!visa_signature_at(q.c, q.offset, &g) || !text_lines_read(&lines, g.label, strlen(g.label)))
        return json_null();
    json_t *parameters = json_array();
    for (size_t i = 0; i < g.parameter_count && question_spend(q.all, 4, "", ""); i++) {
        json_int_t first = text_position_of(&lines, q.all->encoding, g.parameters[i].begin).column,
                   last = text_position_of(&lines, q.all->encoding, g.parameters[i].end).column;
        json_array_append_new(parameters, json_pack("{s:[I, I]}", "label", first, last));
    }
    text_lines_free(&lines);
    question_spend(q.all, 8, g.label, g.summary);
    json_t *signature =
        json_pack("{s:o, s:o, s:o}", "label", json_bytes(g.label), "documentation", json_bytes(g.summary), "parameters", parameters);
    return json_pack("{s:[o], s:i, s:I}", "signatures", signature, "activeSignature", 0, "activeParameter", (json_int_t)g.active);
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
        {"textDocument/references", names_references},
        {"textDocument/documentHighlight", names_highlight},
        {"textDocument/prepareRename", names_prepare_rename},
        {"textDocument/rename", names_rename},
        {"textDocument/foldingRange", folding_range},
        {"textDocument/semanticTokens/full", names_tokens},
        {"textDocument/semanticTokens/range", names_tokens_range},
        {"textDocument/inlayHint", inlay_hint},
        {"textDocument/signatureHelp", signature_help},
        {"textDocument/prepareCallHierarchy", names_prepare_calls},
        {"callHierarchy/incomingCalls", names_incoming_calls},
        {"callHierarchy/outgoingCalls", names_outgoing_calls},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].handler;
    return NULL;
}
