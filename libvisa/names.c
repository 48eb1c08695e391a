/* include/visa_editor.h: all names of the text.
 *
 * The one idea: analysis noted what most names stand for (frontend/index.h), and a name is given where its symbol says. Of the others,
 * those in mappings, most have one item of the file under that name; where it has several, or none, the scope is asked. What follows a `.`
 * is a stage, and the rest are words of the language. So one pass over the tokens is enough. */
#include <string.h>

#include "frontend/parser.tab.h"
#include "frontend/stage.h"
#include "libvisa/editor.h"
#include "support/budget.h"
#include "support/order.h"

/* The token that is exactly at a range, or TOKEN_NONE. */
static uint32_t token_at(const token_list *tokens, src_range range)
{
    uint32_t i = range.file == 0 ? token_from(tokens->items, (uint32_t)tokens->count, range.begin) : TOKEN_NONE;
    return i < tokens->count && tokens->items[i].begin == range.begin && tokens->items[i].kind == T_IDENT ? i : TOKEN_NONE;
}

symbol **editor_named_by_tokens(visa_compilation *c, const token_list *tokens)
{
    symbol **named = ARENA_ARRAY(c->arena, symbol *, tokens->count + 1);
    for (size_t i = 0; i < c->index->name_count; i++) {
        uint32_t at = token_at(tokens, c->index->names[i].range);
        if (at != TOKEN_NONE && !named[at])
            named[at] = c->index->names[i].symbol;
        budget_spend(c->arena, 1);
    }
    return named;
}

static bool is_type(const char *name)
{
    dtype type;
    for (tensor_kind kind = 0; kind < TENSOR_KIND_COUNT; kind++)
        if (strcmp(name, tensor_kind_name(kind)) == 0)
            return true;
    return dtype_by_name(name, &type) || strcmp(name, "Context") == 0 || strcmp(name, "Device") == 0;
}

/* A word of the language; false: nothing is known of it. */
static bool language_kind(const char *text, const token_list *tokens, uint32_t i, arena *a, visa_name_kind *kind)
{
    const token *t = &tokens->items[i];
    bool after_dot = i > 0 && tokens->items[i - 1].kind == '.';
    const char *name = token_text(text, t, a);
    *kind = after_dot ? VISA_NAME_METHOD : VISA_NAME_TYPE;
    return after_dot ? stage_is_known(name) : is_type(name);
}

/* What a declaration is of; outlines come in the order of the text, but for what a pattern holds. */
static void take_outline(visa_compilation *c, const token_list *tokens, visa_name *by_token)
{
    for (size_t i = 0; i < c->outline_count; i++) {
        const visa_outline *o = &c->outline[i];
        uint32_t at = token_at(tokens, (src_range){o->name_place.file, o->name_place.begin, o->name_place.end});
        if (at != TOKEN_NONE)
            by_token[at] = (visa_name){o->name_place, o->kind, true, o->name_place};
    }
}

/* ---- names that analysis did not note ---- */

/* What a name of another file means. */
typedef struct remembered {
    const char *name;
    const symbol *symbol;
} remembered;

typedef struct lookup {
    visa_compilation *c;
    const token_list *tokens;
    const visa_outline **items; /* by name, without variables */
    size_t count;
    remembered *asked; /* names that the file does not give: they come from other files */
    size_t asked_count, asked_capacity;
} lookup;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const visa_outline *const *)a)->name, (*(const visa_outline *const *)b)->name);
}

static lookup lookup_new(visa_compilation *c, const token_list *tokens)
{
    lookup l = {.c = c, .tokens = tokens, .items = ARENA_ARRAY(c->arena, const visa_outline *, c->outline_count + 1)};
    for (size_t i = 0; i < c->outline_count; i++)
        if (c->outline[i].kind != VISA_NAME_VARIABLE)
            l.items[l.count++] = &c->outline[i];
    order_sort(l.items, l.count, sizeof(*l.items), by_name);
    return l;
}

static const symbol *scope_has(const lookup *l, uint32_t i)
{
    enum { SYMBOLS_OF_STEP = 16 };
    src_range range;
    budget_spend(l->c->arena, 1 + (l->c->index->name_count + l->c->index->scope_count) / SYMBOLS_OF_STEP);
    const symbol *y = editor_symbol_at(l->c, l->tokens, i, l->tokens->items[i].begin, &range);
    return y && y->target ? y->target : y;
}

static const symbol *imported(lookup *l, uint32_t i, const char *name)
{
    for (size_t k = 0; k < l->asked_count; k++)
        if (strcmp(l->asked[k].name, name) == 0)
            return l->asked[k].symbol;
    budget_spend(l->c->arena, l->asked_count);
    remembered one = {name, scope_has(l, i)};
    if (one.symbol && one.symbol->range.file > 0) /* what this file gives, it gives to a part of it */
        ARENA_PUSH(l->c->arena, l->asked, l->asked_count, l->asked_capacity, one);
    return one.symbol;
}

static bool look_up(lookup *l, uint32_t i, visa_name *out)
{
    const char *name = token_text(source_text(l->c->sources, 0), &l->tokens->items[i], l->c->arena);
    size_t low;
    ORDER_FIRST(&low, l->count, at, strcmp(l->items[at]->name, name) < 0);
    bool found = low < l->count && strcmp(l->items[low]->name, name) == 0;
    bool several = found && low + 1 < l->count && strcmp(l->items[low + 1]->name, name) == 0;
    if (found && !several) {
        out->kind = l->items[low]->kind;
        out->given = l->items[low]->name_place;
        return true;
    }
    const symbol *y = several ? scope_has(l, i) : imported(l, i, name);
    if (y) {
        out->kind = editor_kind(y);
        out->given = editor_place(y->range);
    }
    return y != NULL;
}

size_t visa_names(visa_compilation *c, const visa_name **names)
{
    visa_outline first;
    *names = NULL;
    visa_outline_at(c, 0, &first); /* with a guard of its own: before this one's */
    if (!c->index || !c->file || COMPILATION_STOPS(c))
        return 0;
    if (c->names) { /* several answers ask for them */
        *names = c->names;
        return c->name_count;
    }
    token_list tokens = editor_tokens(c);
    const char *text = source_text(c->sources, 0);
    symbol **named = editor_named_by_tokens(c, &tokens);
    visa_name *by_token = ARENA_ARRAY(c->arena, visa_name, tokens.count + 1), *found = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < tokens.count; i++) { /* parameters are in no outline: they are given where their uses say */
        const symbol *y = symbol_meant(named[i]);
        uint32_t at = y ? token_at(&tokens, y->range) : TOKEN_NONE;
        if (at != TOKEN_NONE)
            by_token[at] = (visa_name){editor_place(y->range), editor_kind(y), true, editor_place(y->range)};
    }
    take_outline(c, &tokens, by_token);
    lookup l = lookup_new(c, &tokens);
    for (uint32_t i = 0; i < tokens.count; i++) {
        const token *t = &tokens.items[i];
        visa_name n = by_token[i];
        const symbol *y = symbol_meant(named[i]);
        budget_spend(c->arena, 1);
        if (t->kind != T_IDENT || t->begin == t->end)
            continue;
        if (n.is_given) {
            n.place = (visa_place){0, t->begin, t->end};
        } else if (y) {
            n = (visa_name){{0, t->begin, t->end}, editor_kind(y), false, editor_place(y->range)};
        } else {
            n = (visa_name){.place = {0, t->begin, t->end}, .given = {.file = -1}};
            if (!language_kind(text, &tokens, i, c->arena, &n.kind) && ((i > 0 && tokens.items[i - 1].kind == '.') || !look_up(&l, i, &n)))
                continue;
        }
        ARENA_PUSH(c->arena, found, count, capacity, n);
    }
    *names = c->names = found;
    return c->name_count = count;
}
