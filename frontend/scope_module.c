/* Modules of the file, paths through them and `use`. What is not known may be a library's: that is silent until a name is missing. */
#include <string.h>

#include "frontend/index.h"
#include "frontend/scope_state.h"
#include "support/budget.h"
#include "support/choice.h"

void scope_set_module(scope *s)
{
    s->is_module = true;
}

void scope_set_type(scope *s)
{
    s->is_type = true;
}

static scope *module_around(scope *s)
{
    while (s && !s->is_module)
        s = s->parent;
    return s;
}

/* One step of a path; `first`: names are searched outwards too. NULL: not a module of the file. */
static scope *enter_module(scope *s, const char *name, bool first)
{
    if (strcmp(name, "crate") == 0) {
        while (s->parent)
            s = s->parent;
        return s;
    }
    if (strcmp(name, "self") == 0)
        return module_around(s);
    if (strcmp(name, "super") == 0) {
        s = module_around(s);
        return s && s->parent ? module_around(s->parent) : NULL;
    }
    symbol *y = first ? scope_find(s, MODULE_NAMES, name) : scope_find_in(s, MODULE_NAMES, name);
    return y ? y->inner : NULL;
}

/* The last segment of a path through modules that names a module, and where it was looked for. */
typedef struct last_module {
    const ast *segment;
    scope *in;
    bool first;
} last_module;

static scope *path_module(scope *s, const ast *path, uint32_t count, last_module *out);

static symbol *type_named(scope *s, const char *name, bool first)
{
    return first ? scope_find(s, TYPE_NAMES, name) : scope_find_in(s, TYPE_NAMES, name);
}

/* An alias or a type parameter that stands for a type of the file: the module of its `impl`, or NULL. */
static scope *module_of_alias(scope *s, const char *name, bool first, last_module *out)
{
    symbol *y = type_named(s, name, first);
    if (!y || y->kind != SYMBOL_ALIAS || y->generics || y->busy || !ast_is(y->node, AST_TYPE_PATH))
        return NULL;
    budget_enter(s->context->arena);
    y->busy = true;
    scope *in = path_module(y->scope, y->node, y->node->kid_count, out);
    y->busy = false;
    budget_leave(s->context->arena);
    return in;
}

/* The module that the first `count` segments name. */
static scope *path_module(scope *s, const ast *path, uint32_t count, last_module *out)
{
    for (uint32_t i = 0; i < count && s; i++) {
        *out = (last_module){path->kids[i], s, i == 0};
        scope *in = enter_module(s, path->kids[i]->text, i == 0);
        s = in ? in : module_of_alias(s, path->kids[i]->text, i == 0, out);
    }
    return s;
}

static type_meant type_of_module(const last_module *m)
{
    symbol *y = m->segment ? type_named(m->in, m->segment->text, m->first) : NULL;
    if (!y || y->kind != SYMBOL_OWN_TYPE || !y->node)
        return (type_meant){0};
    bool open = ast_is(ast_kid(y->node, 1), AST_GENERICS) && !ast_is(ast_kid(m->segment, 0), AST_GENERIC_ARGS);
    return (type_meant){y->node, open ? NULL : scope_applied(m->in, y->scope, ast_kid(y->node, 1), m->segment)};
}

type_meant scope_type_in_front(scope *s, const ast *path)
{
    last_module m = {0};
    if (path->kid_count < 2 || !path_module(s, path, path->kid_count - 1, &m))
        return (type_meant){0};
    return type_of_module(&m);
}

symbol *scope_argument_of(const type_meant *type, int64_t place)
{
    const ast *generics = type->fields_in ? ast_kid(type->record, 1) : NULL;
    int64_t at = 0;
    for (uint32_t i = 0; generics && i < generics->kid_count; i++) {
        const ast *own = generics->kids[i];
        at += !ast_is(own, AST_GENERIC_LIFETIME);
        if (at == place && !ast_is(own, AST_GENERIC_LIFETIME))
            return scope_find_here(type->fields_in, ast_is(own, AST_GENERIC_TYPE) ? TYPE_NAMES : VALUE_NAMES, own->text);
    }
    return NULL;
}

/* A constant or a type of an `impl` with parameters, for the arguments that its type has here. */
static symbol *of_type(symbol *y, const type_meant *type)
{
    scope *in = scope_new(y->scope->context, y->scope);
    for (uint32_t i = 0; i < y->of_type->kid_count; i++) {
        const ast *parameter = y->of_type->kids[i];
        symbol *known = scope_argument_of(type, parameter->value);
        if (known)
            scope_add_as(in, parameter->text, known);
        else
            scope_bind_argument(in, parameter, in, NULL);
    }
    symbol *copy = ARENA_NEW(y->scope->context->arena, symbol);
    *copy = *y;
    copy->scope = in;
    copy->of_type = NULL;
    copy->open = y;
    return copy;
}

/* Is the argument of a type what an `impl` is for? */
static bool argument_is(symbol *known, scope *in, const ast *wanted)
{
    const ast *expression = ast_is(wanted, AST_CONST_ARG) ? ast_kid(wanted, 0) : wanted;
    int64_t number;
    dtype a, b;
    bool infer = false;
    if (known->kind == SYMBOL_VARIABLE)
        return (known->value.kind == VALUE_INT && !ast_is(expression, AST_BOOL) && scope_integer(in, expression, &number) &&
                number == known->value.number) ||
               (known->value.kind == VALUE_BOOL && ast_is(expression, AST_BOOL) && expression->value == known->value.number);
    if (known->kind != SYMBOL_ALIAS || !known->node)
        return false;
    if (ast_equal(known->node, wanted))
        return true;
    const ast *last = ast_last_segment(wanted);
    bool element = last && dtype_by_name(last->text, &b);
    return element && ast_is(known->node, AST_TYPE_PATH) && scope_dtype(known->scope, known->node, &a, &infer) && a == b;
}

symbol *scope_given(symbol *y, const type_meant *type)
{
    for (symbol *of = y; of && of->other && type->fields_in; of = of->other) {
        int64_t place = 0;
        bool fits = true;
        for (uint32_t i = 0; i < of->given->kid_count && fits; i++) {
            if (ast_is(of->given->kids[i], AST_LIFETIME))
                continue;
            symbol *known = scope_argument_of(type, ++place);
            fits = known && argument_is(known, of->scope ? of->scope : type->fields_in, of->given->kids[i]);
        }
        if (fits)
            return of;
        y = of->other; /* the last one, where no other is */
    }
    return y;
}

symbol *scope_find_through(scope *s, name_space space, const ast *path)
{
    last_module m;
    bool through = path->kid_count > 1 && path_module(s, path, path->kid_count - 1, &m);
    return through ? scope_find_path(s, space, path) : NULL;
}

symbol *scope_find_path(scope *s, name_space space, const ast *path)
{
    const char *name = path->kids[path->kid_count - 1]->text;
    last_module m = {0};
    scope *in = path->kid_count > 1 ? path_module(s, path, path->kid_count - 1, &m) : NULL;
    symbol *y = in ? scope_find_in(in, space, name) : scope_find(s, space, name);
    index_add_name(s->context, path->kids[path->kid_count - 1]->range, y);
    if (!y || (!y->of_type && !y->other))
        return y;
    budget_enter(s->context->arena);
    type_meant type = in ? type_of_module(&m) : (type_meant){0};
    y = scope_given(y, &type);
    y = y->of_type ? of_type(y, &type) : y;
    budget_leave(s->context->arena);
    return y;
}

static bool import(scope *s, symbol *y, const char *name)
{
    if (!y || strcmp(name, "_") == 0 || scope_find_here(s, scope_space_of(y->kind), name) == y)
        return false;
    budget_spend(s->arena, s->count);
    for (size_t i = 0; i < s->count; i++) /* a name of its own goes before an imported one */
        if (!s->symbols[i]->target && scope_space_of(s->symbols[i]->kind) == scope_space_of(y->kind) &&
            strcmp(s->symbols[i]->name, name) == 0)
            return false;
    scope_add_as(s, name, y);
    return true;
}

static bool import_name(scope *s, scope *from, const char *name, const char *as)
{
    bool grew = false;
    for (name_space space = TYPE_NAMES; space <= MODULE_NAMES; space++) {
        symbol *y = scope_find_in(from, space, name);
        if (y && y->axis && strcmp(as, name) != 0)
            mapping_axis_is_local(y->axis);
        grew = import(s, y, as) || grew;
    }
    return grew;
}

static bool import_glob(scope *s, scope *from)
{
    budget_spend(s->arena, s->glob_count);
    for (size_t i = 0; i < s->glob_count; i++)
        if (s->globs[i] == from)
            return false;
    if (from == s)
        return false;
    ARENA_PUSH(s->arena, s->globs, s->glob_count, s->glob_capacity, from);
    return true;
}

/* `self` of `a::b::{self}`, or NULL. */
static const ast *self_of_group(const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    bool named = ast_is(tree, AST_USE_NAME) || ast_is(tree, AST_USE_RENAME);
    return named && ast_is(path, AST_PATH) && path->kid_count == 1 && strcmp(path->kids[0]->text, "self") == 0 ? tree : NULL;
}

/* `from`: the module that the tree's paths start in, or NULL at the top. */
static bool use_tree(scope *s, scope *from, const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    scope *start = from ? from : s, *in = start, *outer = start;
    bool is_path = ast_is(path, AST_PATH) && path->kid_count > 0;
    bool names_last = ast_is(tree, AST_USE_NAME) || ast_is(tree, AST_USE_RENAME);
    for (uint32_t i = 0; is_path && in && i + (names_last ? 1 : 0) < path->kid_count; i++)
        in = enter_module(outer = in, path->kids[i]->text, i == 0 && !from);
    if (!in)
        return false;
    if (ast_is(tree, AST_USE_GLOB))
        return import_glob(s, in);
    if (names_last && is_path) {
        const char *name = path->kids[path->kid_count - 1]->text;
        const char *as = ast_is(tree, AST_USE_RENAME) ? tree->text : name;
        if (strcmp(name, "self") == 0 || strcmp(name, "super") == 0 || strcmp(name, "crate") == 0)
            return false;
        if (scope_has_lost(in, name))
            scope_add_lost(s, as);
        return import_name(s, in, name, as);
    }
    bool grew = false;
    for (uint32_t i = 1; ast_is(tree, AST_USE_GROUP) && i < tree->kid_count; i++) {
        const ast *self = is_path ? self_of_group(tree->kids[i]) : NULL;
        const char *last = is_path ? path->kids[path->kid_count - 1]->text : "";
        if (self && ast_last_segment(path) && outer)
            grew = import_name(s, outer, last, ast_is(self, AST_USE_RENAME) ? self->text : last) || grew;
    }
    for (uint32_t i = 1; ast_is(tree, AST_USE_GROUP) && i < tree->kid_count; i++)
        grew = use_tree(s, is_path || from ? in : NULL, tree->kids[i]) || grew;
    return grew;
}

bool scope_use(scope *s, const ast *use)
{
    return use_tree(s, NULL, ast_kid(use, 1));
}

static bool is_library(const char *crate)
{
    static const char *const known[] = {"std", "core", "alloc", "rand", "furiosa_visa_std", "furiosa_opt_std"};
    return choice_has(known, sizeof known / sizeof *known, crate);
}

/* Does the tree's path go through a module whose text was not understood? */
static bool passes_lost(scope *s, const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    scope *in = s;
    for (uint32_t i = 0; ast_is(path, AST_PATH) && i < path->kid_count; i++) {
        scope *next = enter_module(in, path->kids[i]->text, i == 0);
        if (!next)
            return i == 0 ? scope_is_lost(in, path->kids[i]->text) : scope_has_lost(in, path->kids[i]->text);
        in = next;
    }
    return false;
}

/* Whatever the tree would have imported is missing as well. */
static void lose_tree(scope *s, const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    if (ast_is(tree, AST_USE_GLOB))
        scope_add_lost(s, "");
    else if (ast_is(tree, AST_USE_RENAME))
        scope_add_lost(s, tree->text);
    else if (ast_is(tree, AST_USE_NAME) && ast_is(path, AST_PATH) && path->kid_count > 0)
        scope_add_lost(s, path->kids[path->kid_count - 1]->text);
    for (uint32_t i = 1; ast_is(tree, AST_USE_GROUP) && i < tree->kid_count; i++)
        lose_tree(s, tree->kids[i]);
}

/* The names that a tree begins with: is there one that nothing is known of? */
static bool is_dead(scope *s, const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    if (ast_is(path, AST_PATH) && path->kid_count > 0) {
        bool names_last = ast_is(tree, AST_USE_NAME) || ast_is(tree, AST_USE_RENAME);
        scope *in = s;
        for (uint32_t i = 0; in && i + (names_last ? 1 : 0) < path->kid_count; i++)
            in = enter_module(in, path->kids[i]->text, i == 0);
        if (!in)
            return !is_library(path->kids[0]->text);
        const char *last = path->kids[path->kid_count - 1]->text;
        bool found = !names_last || path->kid_count == 1 || strcmp(last, "self") == 0 || strcmp(last, "super") == 0;
        for (name_space space = TYPE_NAMES; space <= MODULE_NAMES && !found; space++)
            found = scope_find_in(in, space, last);
        if (!found)
            return true;
    }
    for (uint32_t i = 1; ast_is(tree, AST_USE_GROUP) && i < tree->kid_count; i++)
        if (is_dead(s, tree->kids[i]))
            return true;
    return false;
}

void scope_check_use(scope *s, const ast *use)
{
    if (passes_lost(s, ast_kid(use, 1)))
        lose_tree(s, ast_kid(use, 1));
    else if (!s->dead_use && is_dead(s, ast_kid(use, 1)))
        s->dead_use = use;
}

void scope_note_dead_use(scope *s, diag *d)
{
    for (; s; s = s->parent)
        if (s->dead_use) {
            diag_note(s->context->diags, d, s->dead_use->range, "nothing is imported here: there is nothing of that name");
            return;
        }
}
