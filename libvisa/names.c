/* include/visa_editor.h: all names of the text.
 *
 * The one idea: analysis noted what each name that it read stands for (frontend/index.h), and a name is given where its symbol says; what
 * follows a `.` is a stage, and the rest are words of the language. So one pass over the tokens is enough. */
#include <string.h>

#include "frontend/parser.tab.h"
#include "frontend/stage.h"
#include "libvisa/editor.h"
#include "support/budget.h"

uint32_t editor_token_from(const token_list *tokens, uint32_t begin)
{
    uint32_t low = 0, high = (uint32_t)tokens->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tokens->items[middle].begin < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The token that is exactly at a range, or TOKEN_NONE. */
static uint32_t token_at(const token_list *tokens, src_range range)
{
    uint32_t i = range.file == 0 ? editor_token_from(tokens, range.begin) : TOKEN_NONE;
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

size_t visa_names(visa_compilation *c, const visa_name **names)
{
    visa_outline first;
    *names = NULL;
    visa_outline_at(c, 0, &first); /* with a guard of its own: before this one's */
    if (!c->index || !c->file || COMPILATION_STOPS(c))
        return 0;
    token_list tokens = editor_tokens(c);
    const char *text = source_text(c->sources, 0);
    symbol **named = editor_named_by_tokens(c, &tokens);
    visa_name *by_token = ARENA_ARRAY(c->arena, visa_name, tokens.count + 1), *found = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < tokens.count; i++) { /* parameters are in no outline: they are given where their uses say */
        const symbol *y = named[i] && named[i]->target ? named[i]->target : named[i];
        uint32_t at = y ? token_at(&tokens, y->range) : TOKEN_NONE;
        if (at != TOKEN_NONE)
            by_token[at] = (visa_name){editor_place(y->range), editor_kind(y), true, editor_place(y->range)};
    }
    take_outline(c, &tokens, by_token);
    for (uint32_t i = 0; i < tokens.count; i++) {
        const token *t = &tokens.items[i];
        visa_name n = by_token[i];
        const symbol *y = named[i] && named[i]->target ? named[i]->target : named[i];
        budget_spend(c->arena, 1);
        if (t->kind != T_IDENT || t->begin == t->end)
            continue;
        if (n.is_given) {
            n.place = (visa_place){0, t->begin, t->end};
        } else if (y) {
            n = (visa_name){{0, t->begin, t->end}, editor_kind(y), false, editor_place(y->range)};
        } else {
            n = (visa_name){.place = {0, t->begin, t->end}, .given = {.file = -1}};
            if (!language_kind(text, &tokens, i, c->arena, &n.kind))
                continue;
        }
        ARENA_PUSH(c->arena, found, count, capacity, n);
    }
    *names = found;
    return count;
}
