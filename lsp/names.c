#include "lsp/names.h"

#include <stdlib.h>
#include <string.h>

#include "lsp/question.h"

/* ---- a name everywhere ---- */

/* Every place of the name at the position, but for the one at `without`, as `form` writes it. */
static json_t *list_places(const question *q, const visa_place *without, json_t *(*form)(const question *q, visa_place place))
{
    const visa_place *places;
    size_t count = visa_references(q->c, q->offset, &places);
    json_t *list = json_array();
    for (size_t i = 0; i < count && question_spend(q->all, 12, "", ""); i++)
        if (!without || places[i].begin != without->begin)
            json_array_append_new(list, form(q, places[i]));
    return list;
}

static json_t *location(const question *q, visa_place place)
{
    return json_location(q->all, q->d, q->c, place);
}

static json_t *highlight(const question *q, visa_place place)
{
    return json_pack("{s:o}", "range", json_range(q->all, q->d, place));
}

json_t *names_references(server *s, const json_t *params)
{
    question q;
    visa_place given;
    const json_t *declaration = json_object_get(json_object_get(params, "context"), "includeDeclaration");
    if (!question_ask(s, params, ASK_NAME_AT, &q))
        return NULL;
    bool without = json_is_false(declaration) && visa_definition(q.c, q.offset, &given);
    return list_places(&q, without ? &given : NULL, location);
}

json_t *names_highlight(server *s, const json_t *params)
{
    question q;
    return question_ask(s, params, ASK_NAME_AT, &q) ? list_places(&q, NULL, highlight) : NULL;
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

json_t *names_prepare_rename(server *s, const json_t *params)
{
    question q;
    const visa_place *places;
    if (!question_ask(s, params, ASK_NAME_AT, &q))
        return NULL;
    size_t count = visa_references(q.c, q.offset, &places);
    for (size_t i = 0; i < count; i++)
        if (places[i].begin <= q.offset && q.offset < places[i].end)
            return json_range(q.all, q.d, places[i]);
    return json_null();
}

/* null: the name is not of this file, or the new one is taken or none. */
json_t *names_rename(server *s, const json_t *params)
{
    question q;
    const visa_place *places;
    const char *name = json_string_value(json_object_get(params, "newName"));
    if (!name || !question_ask(s, params, ASK_NAME_AT, &q))
        return NULL;
    size_t count = is_free_name(q.d, name) ? visa_references(q.c, q.offset, &places) : 0;
    if (count == 0)
        return json_null();
    json_t *edits = json_array(), *changes = json_object();
    for (size_t i = 0; i < count && question_spend(q.all, 12, name, ""); i++)
        json_array_append_new(edits, json_pack("{s:o, s:s}", "range", json_range(q.all, q.d, places[i]), "newText", name));
    json_object_set_new(changes, q.d->uri, edits);
    return json_pack("{s:o}", "changes", changes);
}

/* ---- what each name is ---- */

enum { MODIFIER_DECLARATION = 1, MODIFIER_READONLY = 2 };

json_t *names_legend(void)
{
    static const char *const types[] = {
        [VISA_NAME_AXIS] = "enumMember",   [VISA_NAME_ALIAS] = "type",        [VISA_NAME_CONST] = "variable",
        [VISA_NAME_VARIABLE] = "variable", [VISA_NAME_FUNCTION] = "function", [VISA_NAME_MODULE] = "namespace",
        [VISA_NAME_METHOD] = "method",     [VISA_NAME_FIELD] = "property",    [VISA_NAME_TYPE] = "class",
        [VISA_NAME_KEYWORD] = "keyword"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        json_array_append_new(list, json_string(types[i]));
    return json_pack("{s:o, s:[s, s]}", "tokenTypes", list, "tokenModifiers", "declaration", "readonly");
}

/* Five numbers for each: lines and columns after the one before, units, type, modifiers. The numbers of a token cost as much as two
 * values with a name do. */
static json_t *tokens_of(const question *q, uint32_t begin, uint32_t end)
{
    enum { VALUES_OF_TOKEN = 2 };
    const visa_name *names;
    size_t count;
    if (!document_names(q->all, q->d, &names, &count))
        return NULL;
    text_position last = {0, 0};
    json_t *data = json_array();
    for (size_t i = 0; i < count; i++) {
        const visa_name *n = &names[i];
        if (n->place.end <= begin || n->place.begin >= end)
            continue;
        if (!question_spend(q->all, VALUES_OF_TOKEN, "", ""))
            break;
        text_position at = text_position_of(&q->d->lines, q->all->encoding, n->place.begin);
        int modifiers = (n->is_given ? MODIFIER_DECLARATION : 0) | (n->kind == VISA_NAME_CONST ? MODIFIER_READONLY : 0);
        json_int_t numbers[] = {at.line - last.line, at.line == last.line ? at.column - last.column : at.column,
                                n->place.end - n->place.begin, /* names are ASCII */
                                n->kind, modifiers};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            json_array_append_new(data, json_integer(numbers[k]));
        last = at;
    }
    return json_pack("{s:o}", "data", data);
}

json_t *names_tokens(server *s, const json_t *params)
{
    question q;
    return question_ask(s, params, ASK_NOTHING, &q) ? tokens_of(&q, 0, UINT32_MAX) : NULL;
}

json_t *names_tokens_range(server *s, const json_t *params)
{
    question q;
    return question_ask(s, params, ASK_NOTHING_RANGE, &q) ? tokens_of(&q, q.begin, q.end) : NULL;
}

/* ---- who calls whom ---- */

static json_t *call_item(const question *q, const visa_outline *fn)
{
    enum { FUNCTION = 12 }; /* SymbolKind */
    return json_pack("{s:o, s:i, s:s, s:o, s:o}", "name", json_bytes(fn->name), "kind", FUNCTION, "uri", q->d->uri, "range",
                     json_range(q->all, q->d, fn->place), "selectionRange", json_range(q->all, q->d, fn->name_place));
}

/* The function whose name is given there. */
static bool function_given(const question *q, uint32_t begin, visa_outline *out)
{
    for (size_t i = 0; visa_outline_at(q->c, i, out) && answer_spend(&q->all->answer, 1); i++)
        if (out->kind == VISA_NAME_FUNCTION && out->name_place.begin == begin)
            return true;
    return false;
}

json_t *names_prepare_calls(server *s, const json_t *params)
{
    question q;
    const visa_name *names;
    visa_outline fn;
    if (!question_ask(s, params, ASK_NAME_AT, &q))
        return NULL;
    size_t count = visa_names(q.c, &names);
    for (size_t i = 0; i < count; i++)
        if (names[i].place.begin <= q.offset && q.offset <= names[i].place.end && names[i].kind == VISA_NAME_FUNCTION &&
            names[i].given.file == 0 && function_given(&q, names[i].given.begin, &fn))
            return question_spend(q.all, 20, fn.name, "") ? json_pack("[o]", call_item(&q, &fn)) : json_null();
    return json_null();
}

/* The item of the parameters as it stands in the text now. */
static bool ask_item(server *s, const json_t *params, question *q, visa_outline *fn)
{
    const json_t *item = json_object_get(params, "item");
    uint32_t begin;
    json_t *names = json_pack("{s:{s:O?}}", "textDocument", "uri", json_object_get(item, "uri"));
    bool asked = question_ask(s, names, ASK_WHOLE, q) &&
                 json_to_offset(q->all, q->d, json_object_get(json_object_get(item, "selectionRange"), "start"), &begin);
    json_decref(names);
    if (asked && !function_given(q, begin, fn))
        *fn = (visa_outline){.name = NULL}; /* the text has changed */
    return asked;
}

/* One call: from the function in which it stands to the one that is called. */
typedef struct call {
    uint32_t caller, called; /* where their names are given */
    visa_place place;
} call;

/* The function around each call that `wanted` wants, in the order of the text. malloc; NULL: there are none. */
static call *calls_of(const question *q, const visa_outline *fn, bool incoming, size_t *count)
{
    const visa_name *names;
    size_t all = visa_names(q->c, &names), function = 0;
    call *calls = all ? calloc(all, sizeof *calls) : NULL;
    visa_outline next = {.name = NULL}, around = {.name = NULL};
    bool more = visa_outline_at(q->c, function, &next);
    *count = 0;
    for (size_t i = 0; calls && i < all && answer_spend(&q->all->answer, 1); i++) {
        for (; more && next.place.begin <= names[i].place.begin; more = visa_outline_at(q->c, ++function, &next))
            if (next.kind == VISA_NAME_FUNCTION)
                around = next;
        bool is_call = names[i].kind == VISA_NAME_FUNCTION && !names[i].is_given && names[i].given.file == 0 && around.name &&
                       names[i].place.begin < around.place.end;
        call one = {around.name_place.begin, names[i].given.begin, names[i].place};
        if (is_call && (incoming ? one.called : one.caller) == fn->name_place.begin)
            calls[(*count)++] = one;
    }
    return calls;
}

/* [{from or to, fromRanges}], the functions in the order of their first calls. */
static json_t *answer_calls(server *s, const json_t *params, bool incoming)
{
    question q;
    visa_outline fn, other;
    size_t count;
    if (!ask_item(s, params, &q, &fn))
        return NULL;
    json_t *list = json_array();
    call *calls = fn.name ? calls_of(&q, &fn, incoming, &count) : NULL;
    for (size_t i = 0; calls && i < count; i++) {
        uint32_t of = incoming ? calls[i].caller : calls[i].called;
        bool first = true;
        for (size_t k = 0; k < i && first && answer_spend(&q.all->answer, 1); k++)
            first = (incoming ? calls[k].caller : calls[k].called) != of;
        if (!first || !function_given(&q, of, &other) || !question_spend(q.all, 24, other.name, ""))
            continue;
        json_t *ranges = json_array();
        for (size_t k = i; k < count && answer_spend(&q.all->answer, 1); k++)
            if ((incoming ? calls[k].caller : calls[k].called) == of && question_spend(q.all, 8, "", ""))
                json_array_append_new(ranges, json_range(q.all, q.d, calls[k].place));
        json_array_append_new(list, json_pack("{s:o, s:o}", incoming ? "from" : "to", call_item(&q, &other), "fromRanges", ranges));
    }
    free(calls);
    return list;
}

json_t *names_incoming_calls(server *s, const json_t *params)
{
    return answer_calls(s, params, true);
}

json_t *names_outgoing_calls(server *s, const json_t *params)
{
    return answer_calls(s, params, false);
}
