/* Names: what is declared where, what is found, what may have been meant. */
#include "frontend/index.h"
#include "frontend/scope_state.h"

#include <string.h>

#include "support/budget.h"
#include "support/choice.h"

static size_t name_hash(const char *name)
{
    size_t h = 0;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h ^ h >> 32;
}

static void bucket_push(scope *s, symbol *y)
{
    symbol **bucket = &s->buckets[name_hash(y->name) & (s->capacity - 1)];
    y->next = *bucket;
    *bucket = y;
}

static scope *new_scope(scope_context *c, arena *a, scope *parent)
{
    scope *s = ARENA_NEW(a, scope);
    s->context = c;
    s->arena = a;
    s->parent = parent;
    return s;
}

scope *scope_new(scope_context *c, scope *parent)
{
    return new_scope(c, c->names ? c->names : c->arena, parent);
}

scope_context *scope_context_of(scope *s)
{
    return s->context;
}

void scope_set_generic(scope *s)
{
    s->is_generic = true;
}

bool scope_is_generic(const scope *s)
{
    while (s && !s->is_generic)
        s = s->parent;
    return s != NULL;
}

arena *scope_arena(const scope *s)
{
    return s->arena;
}

symbol *scope_add(scope *s, symbol_kind kind, const char *name, src_range range)
{
    symbol *y = ARENA_NEW(s->arena, symbol);
    *y = (symbol){.kind = kind, .name = name, .range = range, .scope = s};
    size_t capacity = s->capacity;
    ARENA_PUSH(s->arena, s->symbols, s->count, s->capacity, y); /* powers of two */
    if (s->capacity == capacity) {
        bucket_push(s, y);
        return y;
    }
    s->buckets = ARENA_ARRAY(s->arena, symbol *, s->capacity);
    for (size_t i = 0; i < s->count; i++)
        bucket_push(s, s->symbols[i]);
    return y;
}

name_space scope_space_of(symbol_kind kind)
{
    if (kind == SYMBOL_MODULE)
        return MODULE_NAMES;
    return kind == SYMBOL_AXIS || kind == SYMBOL_ALIAS || kind == SYMBOL_OWN_TYPE ? TYPE_NAMES : VALUE_NAMES;
}

/* A name that is looked for, in one scope after the other. */
typedef struct wanted {
    const char *name;
    size_t hash;
    name_space space;
} wanted;

static symbol *find_here(scope *s, const wanted *w)
{
    if (s->count == 0)
        return NULL;
    symbol *y = s->buckets[w->hash & (s->capacity - 1)];
    while (y && (scope_space_of(y->kind) != w->space || strcmp(y->name, w->name) != 0))
        y = y->next;
    return symbol_meant(y);
}

symbol *scope_find_here(scope *s, name_space space, const char *name)
{
    return s->count == 0 ? NULL : find_here(s, &(wanted){name, name_hash(name), space});
}

void scope_add_as(scope *s, const char *name, symbol *y)
{
    scope_add(s, y->kind, name, y->range)->target = y;
}

/* The scope's own names, then what it imports as a whole. */
static symbol *find_in(scope *s, const wanted *w)
{
    symbol *found = find_here(s, w);
    if (found || s->visiting)
        return found;
    if (s->glob_count == 0)
        return NULL;
    budget_spend(s->arena, s->glob_count);
    budget_enter(s->arena);
    s->visiting = true;
    for (size_t i = 0; i < s->glob_count && !found; i++)
        found = find_in(s->globs[i], w);
    s->visiting = false;
    budget_leave(s->arena);
    return found;
}

symbol *scope_find_in(scope *s, name_space space, const char *name)
{
    return find_in(s, &(wanted){name, name_hash(name), space});
}

symbol *scope_find(scope *s, name_space space, const char *name)
{
    const wanted w = {name, name_hash(name), space};
    for (; s; s = s->parent) {
        symbol *y = s->is_type ? NULL : find_in(s, &w);
        if (y)
            return y;
    }
    return NULL;
}

/* Whether this is reported depends on what was read before. */
static void note_lost(const scope *s)
{
    if (s->context->index)
        s->context->index->lost_count++;
}

void scope_add_lost(scope *s, const char *name)
{
    if (!s->lost)
        s->lost = new_scope(s->context, s->arena, NULL);
    note_lost(s);
    if (!scope_find_here(s->lost, VALUE_NAMES, name))
        scope_add(s->lost, SYMBOL_LOST, name, SRC_NOWHERE);
}

void scope_add_lost_names(scope *s, const ast *error)
{
    for (uint32_t i = 0; i < error->kid_count; i++)
        scope_add_lost(s, error->kids[i]->text);
}

bool scope_has_lost(scope *s, const char *name)
{
    return s->lost && (scope_find_here(s->lost, VALUE_NAMES, name) || scope_find_here(s->lost, VALUE_NAMES, ""));
}

static bool is_lost(scope *s, const char *name)
{
    for (; s; s = s->parent) {
        if (scope_has_lost(s, name))
            return true;
        budget_spend(s->arena, 1 + s->glob_count);
        for (size_t i = 0; i < s->glob_count; i++)
            if (scope_has_lost(s->globs[i], name))
                return true;
    }
    return false;
}

bool scope_is_lost(scope *s, const char *name)
{
    bool lost = is_lost(s, name);
    if (lost)
        note_lost(s);
    return lost;
}

static void visit_own(scope *s, void (*visit)(void *user, symbol *y), void *user)
{
    if (s->visiting)
        return;
    budget_spend(s->arena, s->count + s->glob_count);
    budget_enter(s->arena);
    s->visiting = true;
    for (size_t i = s->count; i-- > 0;)
        visit(user, s->symbols[i]);
    for (size_t i = 0; i < s->glob_count; i++)
        visit_own(s->globs[i], visit, user);
    s->visiting = false;
    budget_leave(s->arena);
}

void scope_visit(scope *s, void (*visit)(void *user, symbol *y), void *user)
{
    for (; s; s = s->parent)
        visit_own(s, visit, user);
}

const char *scope_suggest(scope *s, const char *name, symbol_kind kind)
{
    const char *found = NULL, *other = NULL;
    unsigned best = CHOICE_FAR;
    scope_context *c = s->context;
    size_t *left = &c->suggestions_left;
    for (; s; s = s->parent)
        for (size_t i = 0; i<s->count && * left> 0; i++, --*left)
            if (s->symbols[i]->kind == kind) {
                const char *known = s->symbols[i]->name;
                unsigned as_near = best + 1;
                if (choice_is_nearer(name, known, &best)) {
                    found = known;
                    other = NULL;
                } else if (found && !other && strcmp(known, found) != 0 && choice_is_nearer(name, known, &as_near)) {
                    other = known;
                }
            }
    return other ? arena_printf(c->arena, "%s` or `%s", found, other) : found;
}
