/* include/visa_editor.h: the call around a place.
 *
 * The one idea: from the place back to the bracket around it commas are counted, brackets that were closed are skipped; the name in front
 * of the bracket is a stage of the table or a function of the text. It is read from the tokens, whose brackets are matched even where the
 * text is half written. */
#include <string.h>

#include "frontend/parser.tab.h"
#include "frontend/stage.h"
#include "libvisa/editor.h"
#include "support/budget.h"
#include "support/strbuf.h"

typedef struct call {
    uint32_t name;  /* token */
    bool has_types; /* the place is among the type arguments */
    uint32_t commas;
} call;

/* The name in front of the `(` or `::<` at a token, or TOKEN_NONE. */
static uint32_t name_before(const token_list *t, uint32_t i)
{
    if (i > 0 && t->items[i - 1].kind == T_IDENT)
        return i - 1;
    if (i < 2 || (t->items[i - 1].kind != '>' && t->items[i - 1].kind != T_GT_GT))
        return TOKEN_NONE;
    int depth = 0;
    for (uint32_t k = i - 1; k > 1; k--) {
        const token *at = &t->items[k];
        if (at->match != TOKEN_NONE && at->match < k) {
            k = at->match + 1;
            continue;
        }
        depth += at->kind == '>' || at->kind == T_GT_GT ? 1 : at->kind == '<' ? -1 : 0;
        if (at->kind == ';' || at->kind == '{')
            break;
        if (depth == 0)
            return t->items[k - 1].kind == T_COLON2 && t->items[k - 2].kind == T_IDENT ? k - 2 : TOKEN_NONE;
    }
    return TOKEN_NONE;
}

/* False: the place is among no arguments. */
static bool find_call(const token_list *t, uint32_t offset, arena *a, call *out)
{
    uint32_t i = token_from(t->items, (uint32_t)t->count, offset); /* the first one that begins after the place */
    int angles = 0;
    *out = (call){.name = TOKEN_NONE};
    while (i > 0) {
        const token *at = &t->items[--i];
        budget_spend(a, 1);
        if (at->flags & TOKEN_SUPPLIED)
            continue;
        bool closes = at->match != TOKEN_NONE && at->match < i && at->end <= offset;
        if (closes) {
            i = at->match;
        } else if (at->kind == '>' || at->kind == T_GT_GT) {
            angles++;
        } else if (at->kind == '<' && angles > 0) {
            angles--;
        } else if (at->kind == '<' && i > 1 && t->items[i - 1].kind == T_COLON2 && t->items[i - 2].kind == T_IDENT) {
            *out = (call){i - 2, true, out->commas};
            return true;
        } else if (at->kind == ',' && angles == 0) {
            out->commas++;
        } else if (at->kind == '(') {
            out->name = name_before(t, i);
            if (out->name != TOKEN_NONE)
                return true;
            out->commas = 0;
        } else if (at->kind == T_MAP_OPEN || at->kind == '[') {
            out->commas = 0;
        } else if (at->kind == '{' || at->kind == '}' || at->kind == ';') {
            return false;
        }
    }
    return false;
}

/* ---- labels ---- */

typedef struct label {
    strbuf text;
    struct visa_signature_part *parts;
    size_t count, capacity;
} label;

/* Pieces between commas that stand in no bracket. */
static void put_parts(label *l, const char *list, arena *a)
{
    int depth = 0;
    struct visa_signature_part part = {.begin = (uint32_t)l->text.bytes};
    for (const char *p = list;; p++) {
        bool ends = *p == '\0' || (*p == ',' && depth == 0);
        depth += *p && strchr("([{<", *p) ? 1 : *p && strchr(")]}", *p) ? -1 : *p == '>' && p > list && p[-1] != '-' ? -1 : 0;
        if (ends) {
            part.end = (uint32_t)l->text.bytes;
            if (part.end > part.begin)
                ARENA_PUSH(a, l->parts, l->count, l->capacity, part);
        }
        if (*p == '\0')
            return;
        if (*p != '`')
            strbuf_printf(&l->text, "%c", *p == '\n' || *p == '\t' ? ' ' : *p);
        if (ends) {
            part.begin = (uint32_t)l->text.bytes + (p[1] == ' ' || p[1] == '\n');
            while (p[1] == ' ' || p[1] == '\n' || p[1] == '\t') {
                if (l->text.bytes < part.begin)
                    strbuf_puts(&l->text, " ");
                p++;
            }
        }
    }
}

static size_t stage_label(const stage_description *d, const call *of, arena *a, label *l)
{
    strbuf_puts(&l->text, d->name);
    if (d->parameters[0]) {
        strbuf_puts(&l->text, "::<");
        put_parts(l, d->parameters, a);
        strbuf_puts(&l->text, ">");
    }
    size_t types = l->count;
    strbuf_puts(&l->text, "(");
    put_parts(l, d->arguments, a);
    strbuf_puts(&l->text, ")");
    return of->commas + (of->has_types ? 0 : types);
}

static bool find_stage(visa_compilation *c, const char *name, uint32_t offset, stage_description *out)
{
    const value *receiver = c->index ? index_find_value(c->index, 0, offset) : NULL;
    dialect spoken = (dialect)c->diags.words.release;
    for (int known = receiver && receiver->kind != VALUE_ERROR; known >= 0; known--) /* of what it is called on, else of any */
        for (size_t i = 0; stage_describe(i, spoken, known ? receiver : NULL, c->arena, out); i++)
            if (strcmp(out->name, name) == 0)
                return true;
    return false;
}

/* NULL: the text has no function of that name. */
static const visa_outline *find_function(const visa_compilation *c, const char *name)
{
    for (size_t i = 0; i < c->outline_count; i++)
        if (c->outline[i].kind == VISA_NAME_FUNCTION && strcmp(c->outline[i].name, name) == 0)
            return &c->outline[i];
    return NULL;
}

/* `fn f(a: T, b: U) -> V`, as written. */
static void function_label(visa_compilation *c, const token_list *t, const visa_outline *fn, label *l)
{
    const char *text = source_text(c->sources, 0);
    uint32_t open = token_from(t->items, (uint32_t)t->count, fn->name_place.begin) + 1;
    while (open < t->count && t->items[open].kind != '(' && t->items[open].kind != '{')
        open++;
    strbuf_printf(&l->text, "fn %s", fn->name);
    if (open >= t->count || t->items[open].kind != '(' || t->items[open].match == TOKEN_NONE)
        return;
    uint32_t close = t->items[open].match, begin = t->items[open].end, last = close + 1;
    strbuf_puts(&l->text, "(");
    put_parts(l, arena_strndup(c->arena, text + begin, t->items[close].begin - begin), c->arena);
    strbuf_puts(&l->text, ")");
    while (last < t->count && t->items[last].kind && t->items[last].kind != '{' && t->items[last].kind != ';')
        last++;
    if (last > close + 1)
        strbuf_printf(&l->text, " %.*s", (int)(t->items[last - 1].end - t->items[close + 1].begin), text + t->items[close + 1].begin);
}

bool visa_signature_at(visa_compilation *c, uint32_t offset, visa_signature *out)
{
    visa_outline first;
    visa_outline_at(c, 0, &first); /* with a guard of its own: before this one's */
    if (!c->file || COMPILATION_STOPS(c))
        return false;
    token_list tokens = editor_tokens(c);
    call of;
    if (!find_call(&tokens, offset, c->arena, &of))
        return false;
    const token *name = &tokens.items[of.name];
    const char *word = token_text(source_text(c->sources, 0), name, c->arena);
    bool is_method = of.name > 0 && tokens.items[of.name - 1].kind == '.';
    const visa_outline *fn = is_method || of.has_types ? NULL : find_function(c, word);
    stage_description d;
    label l = {.parts = NULL};
    strbuf_init(&l.text, c->arena);
    *out = (visa_signature){.summary = "", .active = of.commas};
    if (fn)
        function_label(c, &tokens, fn, &l);
    else if (is_method && find_stage(c, word, name->begin, &d)) {
        out->active = stage_label(&d, &of, c->arena, &l);
        out->summary = d.summary;
    } else {
        return false;
    }
    out->label = l.text.text;
    out->parameters = l.parts;
    out->parameter_count = l.count;
    if (out->active > l.count)
        out->active = l.count;
    return true;
}
