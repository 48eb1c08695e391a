#include "frontend/scope.h"

#include "frontend/index.h"
#include "support/budget.h"
#include "support/choice.h"

#include <string.h>

struct scope {
    scope_context *context;
    arena *arena; /* the context's when it was made: within a kernel, the kernel's; what is added to it later lives as long */
    scope *parent;
    symbol **symbols; /* in order of declaration */
    size_t count, capacity;
    symbol **buckets; /* by name, the latest first; as many as `capacity` */
    bool is_module;
    scope *lost;         /* names in text that was not understood, or NULL */
    bool visiting;       /* a search through globs has been here */
    const ast *dead_use; /* the first `use` of what is neither in the file nor the library's, or NULL */
    scope **globs;       /* `use x::*` */
    size_t glob_count, glob_capacity;
};

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

static name_space space_of(symbol_kind kind)
{
    if (kind == SYMBOL_MODULE)
        return MODULE_NAMES;
    return kind == SYMBOL_AXIS || kind == SYMBOL_ALIAS || kind == SYMBOL_OWN_TYPE ? TYPE_NAMES : VALUE_NAMES;
}

symbol *scope_find_here(scope *s, name_space space, const char *name)
{
    if (s->count == 0)
        return NULL;
    symbol *y = s->buckets[name_hash(name) & (s->capacity - 1)];
    while (y && (space_of(y->kind) != space || strcmp(y->name, name) != 0))
        y = y->next;
    return y && y->target ? y->target : y;
}

/* The scope's own names, then what it imports as a whole. */
static symbol *find_in(scope *s, name_space space, const char *name)
{
    symbol *found = scope_find_here(s, space, name);
    if (found || s->visiting)
        return found;
    if (s->glob_count == 0)
        return NULL;
    budget_spend(s->arena, s->glob_count);
    budget_enter(s->arena);
    s->visiting = true;
    for (size_t i = 0; i < s->glob_count && !found; i++)
        found = find_in(s->globs[i], space, name);
    s->visiting = false;
    budget_leave(s->arena);
    return found;
}

symbol *scope_find(scope *s, name_space space, const char *name)
{
    for (; s; s = s->parent) {
        symbol *y = find_in(s, space, name);
        if (y)
            return y;
    }
    return NULL;
}

void scope_add_lost(scope *s, const char *name)
{
    if (!s->lost)
        s->lost = new_scope(s->context, s->arena, NULL);
    if (!scope_find_here(s->lost, VALUE_NAMES, name))
        scope_add(s->lost, SYMBOL_LOST, name, SRC_NOWHERE);
}

void scope_add_lost_names(scope *s, const ast *error)
{
    for (uint32_t i = 0; i < error->kid_count; i++)
        scope_add_lost(s, error->kids[i]->text);
}

static bool has_lost(scope *s, const char *name)
{
    return s->lost && (scope_find_here(s->lost, VALUE_NAMES, name) || scope_find_here(s->lost, VALUE_NAMES, ""));
}

bool scope_is_lost(scope *s, const char *name)
{
    for (; s; s = s->parent) {
        if (has_lost(s, name))
            return true;
        budget_spend(s->arena, 1 + s->glob_count);
        for (size_t i = 0; i < s->glob_count; i++)
            if (has_lost(s->globs[i], name))
                return true;
    }
    return false;
}

/* ---- modules ---- */

void scope_set_module(scope *s)
{
    s->is_module = true;
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
    symbol *y = first ? scope_find(s, MODULE_NAMES, name) : find_in(s, MODULE_NAMES, name);
    return y ? y->inner : NULL;
}

/* The module that the first `count` segments name. */
static scope *path_module(scope *s, const ast *path, uint32_t count)
{
    for (uint32_t i = 0; i < count && s; i++)
        s = enter_module(s, path->kids[i]->text, i == 0);
    return s;
}

symbol *scope_find_path(scope *s, name_space space, const ast *path)
{
    const char *name = path->kids[path->kid_count - 1]->text;
    scope *in = path->kid_count > 1 ? path_module(s, path, path->kid_count - 1) : NULL;
    symbol *y = in ? find_in(in, space, name) : scope_find(s, space, name);
    index_add_name(s->context, path->kids[path->kid_count - 1]->range, y);
    return y;
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

static bool import(scope *s, symbol *y, const char *name)
{
    if (!y || strcmp(name, "_") == 0 || scope_find_here(s, space_of(y->kind), name) == y)
        return false;
    budget_spend(s->arena, s->count);
    for (size_t i = 0; i < s->count; i++) /* a name of its own goes before an imported one */
        if (!s->symbols[i]->target && space_of(s->symbols[i]->kind) == space_of(y->kind) && strcmp(s->symbols[i]->name, name) == 0)
            return false;
    symbol *alias = scope_add(s, y->kind, name, y->range);
    alias->target = y;
    return true;
}

static bool import_name(scope *s, scope *from, const char *name, const char *as)
{
    bool grew = false;
    for (name_space space = TYPE_NAMES; space <= MODULE_NAMES; space++)
        grew = import(s, find_in(from, space, name), as) || grew;
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

/* `from`: the module that the tree's paths start in, or NULL at the top. */
static bool use_tree(scope *s, scope *from, const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    scope *start = from ? from : s, *in = start;
    bool is_path = ast_is(path, AST_PATH) && path->kid_count > 0;
    bool names_last = ast_is(tree, AST_USE_NAME) || ast_is(tree, AST_USE_RENAME);
    for (uint32_t i = 0; is_path && in && i + (names_last ? 1 : 0) < path->kid_count; i++)
        in = enter_module(in, path->kids[i]->text, i == 0 && !from);
    if (!in)
        return false;
    if (ast_is(tree, AST_USE_GLOB))
        return import_glob(s, in);
    if (names_last && is_path) {
        const char *name = path->kids[path->kid_count - 1]->text;
        const char *as = ast_is(tree, AST_USE_RENAME) ? tree->text : name;
        if (strcmp(name, "self") == 0 || strcmp(name, "super") == 0 || strcmp(name, "crate") == 0)
            return false;
        if (has_lost(in, name))
            scope_add_lost(s, as);
        return import_name(s, in, name, as);
    }
    bool grew = false;
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
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], crate) == 0)
            return true;
    return false;
}

/* Does the tree's path go through a module whose text was not understood? */
static bool passes_lost(scope *s, const ast *tree)
{
    const ast *path = ast_kid(tree, 0);
    scope *in = s;
    for (uint32_t i = 0; ast_is(path, AST_PATH) && i < path->kid_count; i++) {
        scope *next = enter_module(in, path->kids[i]->text, i == 0);
        if (!next)
            return i == 0 ? scope_is_lost(in, path->kids[i]->text) : has_lost(in, path->kids[i]->text);
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
            found = find_in(in, space, last);
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

/* A name that is not found may be what such a `use` was meant to import. */
static void note_dead_use(scope *s, diag *d)
{
    for (; s; s = s->parent)
        if (s->dead_use) {
            diag_note(s->context->diags, d, s->dead_use->range, "nothing is imported here: there is nothing of that name");
            return;
        }
}

/* ---- suggestions ---- */

const char *scope_suggest(scope *s, const char *name, symbol_kind kind)
{
    const char *found = NULL;
    unsigned best = CHOICE_FAR;
    size_t *left = &s->context->suggestions_left;
    for (; s; s = s->parent)
        for (size_t i = 0; i<s->count && * left> 0; i++, --*left)
            if (s->symbols[i]->kind == kind && choice_is_nearer(name, s->symbols[i]->name, &best))
                found = s->symbols[i]->name;
    return found;
}

/* ---- axes ---- */

/* A refused axis is declared all the same, without a meaning, so that its uses are not refused as well. */
void scope_add_axes(scope *s, const ast *axes)
{
    diag_list *diags = s->context->diags;
    for (uint32_t i = 1; i < axes->kid_count; i++) {
        const ast *a = axes->kids[i], *size = ast_kid(a, 0);
        if (ast_is(a, AST_ERROR))
            scope_add_lost_names(s, a);
        else if (!ast_is(size, AST_INT))
            scope_add_lost(s, a->text);
        if (!ast_is(a, AST_AXIS) || !ast_is(size, AST_INT))
            continue;
        const symbol *twin = scope_find_here(s, TYPE_NAMES, a->text);
        if (twin && twin->scope == s) {
            diag *d = diag_add(diags, E_AXIS_DUP, a->name_range, "axis %s is declared multiple times", a->text);
            diag_note(diags, d, twin->range, "first declared here");
            diag_help(diags, d, "give the second axis a name of its own");
            continue;
        }
        symbol *y = scope_add(s, SYMBOL_AXIS, a->text, a->name_range);
        if (a->text[0] < 'A' || a->text[0] > 'Z') {
            diag *d = diag_add(diags, E_AXIS_NAME, a->name_range, "axis name `%s` does not start with an upper-case letter", a->text);
            diag_help(diags, d, "axis names are an upper-case letter followed by letters, digits and _");
        } else if (size->value < 1 || size->value > MAPPING_MAX_SIZE) {
            diag *d = diag_add(diags, E_AXIS_SIZE, size->range, "axis %s has %lld elements; an axis has 1 to 2^62", a->text,
                               (long long)size->value);
            diag_help(diags, d, size->value < 1 ? "an axis of size 1 behaves like `1`" : "no memory holds so much: make the axis smaller");
        } else {
            y->axis = mapping_axis(s->context->mappings, a->text, size->value);
            s->context->has_units = s->context->has_units || size->value == 1;
        }
    }
}

/* ---- mappings ---- */

static const mapping *map_node(scope *s, const ast *n);

/* NULL: the axis was refused where it is declared. */
static const mapping *axis_mapping(scope *s, const symbol *y)
{
    return y->axis ? mapping_symbol(s->context->mappings, y->axis) : NULL;
}

static scope *root_of(scope *s)
{
    while (s->parent)
        s = s->parent;
    return s;
}

static const mapping *map_axis(scope *s, const ast *n)
{
    symbol *y = scope_find(s, TYPE_NAMES, n->text);
    if (y && y->kind == SYMBOL_AXIS)
        return axis_mapping(s, y);
    if (!y && scope_is_lost(s, n->text))
        return NULL;
    diag *d = diag_add(s->context->diags, E_AXIS_UNKNOWN, n->range, "axis `%s` is not declared", n->text);
    note_dead_use(s, d);
    const char *near = scope_suggest(s, n->text, SYMBOL_AXIS);
    if (y && y->kind == SYMBOL_ALIAS)
        diag_help(s->context->diags, d, "`%s` is a type alias: write { %s }", n->text, n->text);
    else if (near)
        diag_help(s->context->diags, d, "did you mean `%s`?", near);
    else
        diag_help(s->context->diags, d, "declare it: axes![%s = SIZE]", n->text);
    if (!y && !near) /* once declared it is known wherever it stands */
        scope_add_lost(root_of(s), n->text);
    return NULL;
}

/* A mapping of more positions than a size can count: an axis, a list or a window. */
static void map_size_error(diag_list *diags, src_range range, const char *what)
{
    diag *d = diag_add(diags, E_MAP_SIZE, range, "the %s has more than 2^62 positions", what);
    diag_help(diags, d, "no memory holds so much: make an axis smaller, or keep a part of it with `= n`");
}

/* The failed operator, both sizes, and what would be accepted. */
static void map_operator_error(scope *s, const ast *n, const mapping *m, int64_t operand, mapping_status status)
{
    diag_list *diags = s->context->diags;
    const char *text = mapping_text(m, s->context->arena);
    if (strchr(text, ','))
        text = arena_printf(s->context->arena, "[%s]", text);
    long long size = m->size, v = operand;
    diag *d;
    switch (status) {
    case MAPPING_NOT_DIVISIBLE:
        d = diag_add(diags, ast_is(n, AST_MAP_DIV) ? E_STRIDE_DIV : E_MOD_DIV, n->name_range,
                     "%s size must divide the original size: %lld does not divide %lld, the size of `%s`",
                     ast_is(n, AST_MAP_DIV) ? "Stride" : "Modulo", v, size, text);
        diag_help(diags, d, "pad first: `%s # %lld %c %lld`", text, (size + v - 1) / v * v, ast_is(n, AST_MAP_DIV) ? '/' : '%', v);
        break;
    case MAPPING_GROWS:
        d = diag_add(diags, E_RESIZE_GROW, n->name_range, "= %lld is larger than %lld, the size of `%s`", v, size, text);
        diag_help(diags, d, "to add padding write `%s # %lld`", text, v);
        break;
    case MAPPING_SHRINKS:
        d = diag_add(diags, E_PAD_SHRINK, n->name_range, "# %lld is smaller than %lld, the size of `%s`", v, size, text);
        diag_help(diags, d, "to keep the first %lld positions write `%s = %lld`", v, text, v);
        break;
    case MAPPING_ZERO:
        d = diag_add(diags, E_MAP_ZERO, n->name_range, "the operand is %lld; it must be at least 1", v);
        diag_help(diags, d, "a mapping of one position is `1`");
        break;
    default: map_size_error(diags, n->range, "mapping");
    }
}

/* The number behind an operator: of a constant expression, or the size of a mapping. */
static bool map_number_of(scope *s, const ast *n, int64_t *out)
{
    if (n->kind < AST_MAP || n->kind > AST_MAP_ESCAPE)
        return scope_integer(s, n, out);
    const symbol *constant = ast_is(n, AST_MAP_AXIS) && !scope_find(s, TYPE_NAMES, n->text) ? scope_find(s, VALUE_NAMES, n->text) : NULL;
    if (constant) {
        diag *d = diag_add(s->context->diags, E_MAP_SYNTAX, n->range, "`%s` is a constant, not an axis", n->text);
        diag_help(s->context->diags, d, "write { %s }", n->text);
        return false;
    }
    const mapping *m = map_node(s, n);
    if (m)
        *out = m->size;
    return m != NULL;
}

static const mapping *map_operator(scope *s, const ast *n)
{
    mapping_context *c = s->context->mappings;
    const mapping *m = map_node(s, ast_kid(n, 0)), *out = NULL;
    int64_t operand = n->value;
    if (!ast_is(ast_kid(n, 1), AST_NONE) && !map_number_of(s, ast_kid(n, 1), &operand))
        return NULL;
    if (!m)
        return NULL;
    mapping_status status;
    pad_kind kind = n->text[0] == '!' ? PAD_BOTTOM : n->text[0] == '0' ? PAD_ZERO : PAD_TOP;
    switch (n->kind) {
    case AST_MAP_DIV: status = mapping_stride(c, m, operand, &out); break;
    case AST_MAP_MOD: status = mapping_modulo(c, m, operand, &out); break;
    case AST_MAP_RESIZE: status = mapping_resize(c, m, operand, &out); break;
    default: status = mapping_pad(c, m, operand, kind, &out); break;
    }
    if (status != MAPPING_OK)
        map_operator_error(s, n, m, operand, status);
    return out;
}

static const mapping *map_pair(scope *s, const ast *n)
{
    const mapping **parts = ARENA_ARRAY(s->context->arena, const mapping *, n->kid_count), *all;
    bool ok = true;
    for (uint32_t i = 0; i < n->kid_count; i++) {
        parts[i] = map_node(s, n->kids[i]);
        ok = ok && parts[i];
    }
    if (!ok)
        return NULL;
    if (mapping_concat(s->context->mappings, parts, n->kid_count, &all) == MAPPING_OK)
        return all;
    map_size_error(s->context->diags, n->range, "mapping");
    return NULL;
}

static void map_window_error(scope *s, const ast *n, mapping_status status)
{
    diag_list *diags = s->context->diags;
    diag *d;
    switch (status) {
    case MAPPING_ZERO:
        d = diag_add(diags, E_MAP_ZERO, n->range, "the stride of a window's term must be at least 1");
        diag_help(diags, d, "a filter that does not move is an axis of its own, beside the window");
        break;
    case MAPPING_WINDOW_TERM:
        d = diag_add(diags, E_MAP_WINDOW, n->range,
                     "a window slides over whole axes and their digits; padding and broadcasts do not slide");
        diag_help(diags, d, "write the padding behind the window: `$(A:2, B:1) # 16`");
        break;
    case MAPPING_WINDOW_TWICE:
        d = diag_add(diags, E_MAP_WINDOW, n->range, "two terms of the window count through the same elements of an axis");
        diag_help(diags, d, "let each digit of an axis occur once: `$(A / 4:8, A %% 4:2, B:1)`");
        break;
    case MAPPING_WINDOW_TERMS:
        d = diag_add(diags, E_MAP_WINDOW, n->range, "a window has at most %d digits", WINDOW_MAX_TERMS);
        diag_help(diags, d, "name fewer digits, or whole axes instead of their digits");
        break;
    default: map_size_error(diags, n->range, "window");
    }
}

static void map_places_error(scope *s, const ast *n, int64_t from, int64_t to, int64_t size)
{
    diag *d = diag_add(s->context->diags, E_MAP_WINDOW, n->range, "the window has %lld places; %lld..%lld is no part of them",
                       (long long)size, (long long)from, (long long)to);
    diag_help(s->context->diags, d, "write the places that are held, at least one of 0..%lld", (long long)size);
}

static bool map_place(scope *s, const ast *n, int64_t *out)
{
    return map_number_of(s, ast_is(n, AST_CONST_ARG) ? ast_kid(n, 0) : n, out);
}

/* `$(e1:n1, ..)`, `$(e1:n1, .. | from..to)` */
static const mapping *map_window(scope *s, const ast *n)
{
    window_part *parts = ARENA_ARRAY(s->context->arena, window_part, n->kid_count);
    const mapping *out = NULL;
    const ast *places = ast_is(ast_kid(n, n->kid_count - 1), AST_MAP_PLACES) ? ast_kid(n, n->kid_count - 1) : NULL;
    uint32_t count = n->kid_count - (places != NULL);
    bool ok = true;
    for (uint32_t i = 0; i < count; i++) {
        const ast *part = n->kids[i];
        if (!ast_is(part, AST_MAP_SLIDE))
            return NULL;
        parts[i] = (window_part){map_node(s, ast_kid(part, 0)), part->value};
        ok = ok && parts[i].mapping;
        if (!ast_is(ast_kid(part, 1), AST_NONE) && !map_number_of(s, ast_kid(part, 1), &parts[i].stride))
            ok = false;
    }
    int64_t from = 0, to = 0;
    if (!ok || (places && (!map_place(s, ast_kid(places, 0), &from) || !map_place(s, ast_kid(places, 1), &to))))
        return NULL;
    mapping_status status = mapping_window(s->context->mappings, parts, count, &out);
    int64_t size = status == MAPPING_OK ? out->size : 0;
    if (status == MAPPING_OK && places)
        status = mapping_window_held(s->context->mappings, parts, count, from, to, &out);
    if (status == MAPPING_OK)
        return out;
    if (status == MAPPING_WINDOW_RANGE)
        map_places_error(s, places, from, to, size);
    else
        map_window_error(s, n, status);
    return NULL;
}

/* n positions that all hold the same: a broadcast without a name. */
static const mapping *map_number(scope *s, const ast *n)
{
    const mapping *out = NULL;
    if (mapping_broadcast(s->context->mappings, n->value, &out) == MAPPING_OK)
        return out;
    diag *d = diag_add(s->context->diags, n->value < 1 ? E_MAP_ZERO : E_MAP_SIZE, n->range, "%lld positions stand alone in a mapping",
                       (long long)n->value);
    diag_help(s->context->diags, d, n->value < 1 ? "a mapping of one position is `1`" : "no memory holds so much");
    return NULL;
}

static const mapping *map_kind(scope *s, const ast *n)
{
    switch (n->kind) {
    case AST_MAP: return map_node(s, ast_kid(n, 0));
    case AST_MAP_AXIS: return map_axis(s, n);
    case AST_MAP_PAIR: return map_pair(s, n);
    case AST_MAP_WINDOW: return map_window(s, n);
    case AST_MAP_NUMBER: return map_number(s, n);
    case AST_MAP_ESCAPE: {
        bool infer = false;
        const mapping *m = scope_mapping(s, ast_kid(n, 0), &infer);
        if (!m && infer)
            diag_add(s->context->diags, E_INFER, n->range, "`_` cannot be inferred inside a mapping");
        return m;
    }
    case AST_MAP_DIV:
    case AST_MAP_MOD:
    case AST_MAP_RESIZE:
    case AST_MAP_PAD: return map_operator(s, n);
    default: return NULL;
    }
}

static const mapping *map_node(scope *s, const ast *n)
{
    arena *a = s->context->arena;
    budget_spend_at(a, n->range, 1);
    budget_enter(a);
    const mapping *m = map_kind(s, n);
    budget_leave(a);
    return m;
}

static symbol *enter(scope_context *c, symbol *y, src_range range)
{
    if (!y->busy)
        return y;
    diag_add(c->diags, E_NAME, range, "`%s` is defined by itself", y->name);
    return NULL;
}

/* Once: what failed was diagnosed. */
const mapping *scope_alias(symbol *y, bool *infer)
{
    if (!y->resolved) {
        arena *a = y->scope->context->arena;
        budget_spend_at(a, y->range, 1);
        budget_enter(a);
        y->busy = true;
        y->mapping = scope_mapping(y->scope, y->node, &y->infers);
        y->busy = false;
        y->resolved = true;
        budget_leave(a);
    }
    *infer = *infer || y->infers;
    return y->mapping;
}

symbol *scope_bind_type(scope *inner, const ast *parameter, scope *s, const ast *argument)
{
    symbol *of = ast_last_segment(argument) ? scope_find_path(s, TYPE_NAMES, argument) : NULL;
    bool is_axis = of && of->kind == SYMBOL_AXIS;
    symbol *y = scope_add(inner, is_axis ? SYMBOL_AXIS : SYMBOL_ALIAS, parameter->text, parameter->name_range);
    y->axis = is_axis ? of->axis : NULL;
    y->node = argument;
    y->scope = s;
    return y;
}

/* The next argument that is no lifetime; NULL: there are no more. */
static const ast *next_argument(const ast *given, uint32_t *next)
{
    while (given && *next < given->kid_count && ast_is(given->kids[*next], AST_LIFETIME))
        ++*next;
    return given && *next < given->kid_count ? given->kids[(*next)++] : NULL;
}

scope *scope_applied(scope *s, scope *of, const ast *generics, const ast *path)
{
    const ast *last = ast_last_segment(path), *given = last ? ast_kid(last, 0) : NULL;
    uint32_t next = 0, wanted = 0;
    if (!generics || !ast_is(generics, AST_GENERICS))
        return of;
    scope *inner = scope_new(s->context, of);
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i], *argument;
        value v = {.kind = VALUE_INT};
        if (ast_is(g, AST_GENERIC_LIFETIME))
            continue;
        wanted++;
        argument = next_argument(given, &next);
        if (!argument)
            argument = ast_new(s->context->arena, AST_TYPE_INFER, path->range);
        if (ast_is(g, AST_GENERIC_TYPE))
            scope_bind_type(inner, g, s, argument);
        else if (scope_integer(s, argument, &v.number))
            scope_add(inner, SYMBOL_VARIABLE, g->text, g->name_range)->value = v;
        else
            scope_add(inner, SYMBOL_CONST_PARAM, g->text, g->name_range);
    }
    if (next_argument(given, &next)) {
        diag *d = diag_add(s->context->diags, E_ARGUMENTS, last->range, "`%s` takes %u argument%s, got more", last->text, wanted,
                           wanted == 1 ? "" : "s");
        diag_help(s->context->diags, d, "its parameters stand behind its name, where it is declared");
    }
    return inner;
}

static const mapping *applied_mapping(scope *s, symbol *y, const ast *type, bool *infer)
{
    scope *inner = scope_applied(s, y->scope, y->generics, type);
    y->busy = true;
    const mapping *m = scope_mapping(inner, y->node, infer);
    y->busy = false;
    return m;
}

static const mapping *read_mapping(scope *s, const ast *type, bool *infer)
{
    if (ast_is(type, AST_TYPE_INFER)) {
        *infer = true;
        return NULL;
    }
    if (type->kind >= AST_MAP && type->kind <= AST_MAP_ESCAPE)
        return map_node(s, type);
    const ast *last = ast_last_segment(type);
    if (!last) {
        if (!ast_is(type, AST_ERROR))
            diag_add(s->context->diags, E_ARGUMENTS, type->range, "expected a mapping m![..] here");
        return NULL;
    }
    symbol *y = scope_find_path(s, TYPE_NAMES, type);
    if (y && y->kind == SYMBOL_AXIS)
        return axis_mapping(s, y);
    if (y && y->kind == SYMBOL_ALIAS) {
        if (!y->resolved && !enter(s->context, y, last->range))
            return NULL;
        return y->generics ? applied_mapping(s, y, type, infer) : scope_alias(y, infer);
    }
    if (!y && scope_is_lost(s, last->text))
        return NULL;
    dtype element;
    bool is_element = dtype_by_name(last->text, &element);
    diag *d = diag_add(s->context->diags, E_NAME, last->range,
                       is_element ? "`%s` is an element type, not a mapping" : "`%s` is not a mapping: no type alias or axis of that name",
                       last->text);
    note_dead_use(s, d);
    const char *near = scope_suggest(s, last->text, SYMBOL_ALIAS);
    if (near)
        diag_help(s->context->diags, d, "did you mean `%s`?", near);
    return NULL;
}

const mapping *scope_mapping(scope *s, const ast *type, bool *infer)
{
    arena *a = s->context->arena;
    budget_enter(a);
    const mapping *m = read_mapping(s, type, infer);
    budget_leave(a);
    return m;
}

static void add_name(scope *s, mapping_names *names, const axis *a)
{
    budget_spend(s->context->arena, names->count / 16);
    for (uint32_t i = 0; i < names->count; i++)
        if (names->axes[i] == a)
            return;
    ARENA_PUSH(mapping_context_arena(s->context->mappings), names->axes, names->count, names->capacity, a);
}

static void add_names_of_type(scope *s, const ast *type, mapping_names *names);

static void add_names(scope *s, const ast *n, mapping_names *names)
{
    const mapping *window;
    const axis *axes[64];
    const symbol *y;
    switch (n->kind) {
    case AST_MAP_AXIS:
        y = scope_find(s, TYPE_NAMES, n->text);
        if (y && y->axis)
            add_name(s, names, y->axis);
        return;
    case AST_MAP_PAIR:
        for (uint32_t i = 0; i < n->kid_count; i++)
            add_names(s, n->kids[i], names);
        return;
    case AST_MAP_WINDOW:
        window = map_window(s, n);
        for (uint32_t i = 0, count = window ? mapping_axes(window, axes, 64) : 0; i < count; i++)
            add_name(s, names, axes[i]);
        return;
    case AST_MAP_ESCAPE: add_names_of_type(s, ast_kid(n, 0), names); return;
    case AST_MAP:
    case AST_MAP_DIV:
    case AST_MAP_MOD:
    case AST_MAP_RESIZE:
    case AST_MAP_PAD: add_names(s, ast_kid(n, 0), names); return;
    default: return;
    }
}

static void add_alias_names(scope *s, const ast *type, mapping_names *names)
{
    symbol *y = ast_last_segment(type) ? scope_find_path(s, TYPE_NAMES, type) : NULL;
    if (y && y->kind == SYMBOL_AXIS && y->axis)
        add_name(s, names, y->axis);
    if (!y || y->kind != SYMBOL_ALIAS || !y->mapping)
        return;
    if (!y->names) {
        mapping_names *own = ARENA_NEW(mapping_context_arena(s->context->mappings), mapping_names);
        add_names_of_type(y->scope, y->node, own); /* no cycle: it has a mapping */
        y->names = own;
    }
    for (uint32_t i = 0; i < y->names->count; i++)
        add_name(s, names, y->names->axes[i]);
}

static void add_names_of_type(scope *s, const ast *type, mapping_names *names)
{
    budget_enter(s->context->arena);
    if (type->kind >= AST_MAP && type->kind <= AST_MAP_ESCAPE)
        add_names(s, type, names);
    else
        add_alias_names(s, type, names);
    budget_leave(s->context->arena);
}

const mapping_names *scope_mapping_names(scope *s, const ast *type)
{
    if (!s->context->has_units)
        return NULL;
    mapping_names *names = ARENA_NEW(mapping_context_arena(s->context->mappings), mapping_names);
    add_names_of_type(s, type, names);
    return names;
}

/* ---- constants ---- */

static bool integer_overflow(scope *s, const ast *n)
{
    diag_add(s->context->diags, E_CONST, n->range, "the value of this expression does not fit 63 bits");
    return false;
}

bool scope_is_arithmetic(const char *operator)
{
    static const char *const known[] = {"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], operator) == 0)
            return true;
    return false;
}

bool scope_arithmetic(scope *s, const ast *n, const char *operator, int64_t a, int64_t b, int64_t *out)
{
    bool over = false;
    if (strcmp(operator, "+") == 0)
        over = __builtin_add_overflow(a, b, out);
    else if (strcmp(operator, "-") == 0)
        over = __builtin_sub_overflow(a, b, out);
    else if (strcmp(operator, "*") == 0)
        over = __builtin_mul_overflow(a, b, out);
    else if (strcmp(operator, "<<") == 0)
        over = b < 0 || b > 62 || __builtin_mul_overflow(a, (int64_t)1 << b, out);
    else if (strcmp(operator, ">>") == 0 && b >= 0 && b < 64)
        *out = a >> b;
    else if ((strcmp(operator, "/") == 0 || strcmp(operator, "%") == 0) && b > 0)
        *out = operator[0] == '/' ? a / b : a % b;
    else if (operator[0] == '&' && operator[1] == '\0')
        *out = a & b;
    else if (operator[0] == '|' && operator[1] == '\0')
        *out = a | b;
    else if (operator[0] == '^')
        *out = a ^ b;
    else {
        bool divides = strcmp(operator, "/") == 0 || strcmp(operator, "%") == 0, shifts = strcmp(operator, ">>") == 0;
        if (divides) {
            diag_add(s->context->diags, E_CONST, n->name_range, "`%s` by %lld; the divisor must be at least 1", operator,(long long) b);
        } else if (shifts) {
            diag_add(s->context->diags, E_CONST, n->name_range, "a shift by %lld; it must be 0 to 63", (long long)b);
        } else {
            diag *d = diag_add(s->context->diags, E_UNSUPPORTED, n->name_range, "`%s` is not supported in .vm kernels", operator);
            diag_help(s->context->diags, d, "%s", "integers have + - * / %, shifts, &, | and ^; conditions stand in `if`");
        }
        return false;
    }
    return over ? integer_overflow(s, n) : true;
}

/* `NAME::SIZE` of an axis or alias. */
static bool integer_size(scope *s, const ast *path, int64_t *out)
{
    symbol *y = scope_find(s, TYPE_NAMES, path->kids[path->kid_count - 2]->text);
    if (!y && scope_is_lost(s, path->kids[path->kid_count - 2]->text))
        return false;
    if (!y || (y->kind != SYMBOL_AXIS && y->kind != SYMBOL_ALIAS)) {
        diag_add(s->context->diags, E_NAME, path->range, "`%s` has no SIZE: it is neither an axis nor a mapping alias",
                 path->kids[path->kid_count - 2]->text);
        return false;
    }
    bool infer = false;
    if (y->kind == SYMBOL_ALIAS && !y->resolved && !enter(s->context, y, path->range))
        return false;
    const mapping *m = y->kind == SYMBOL_AXIS ? axis_mapping(s, y) : scope_alias(y, &infer);
    if (m)
        *out = m->size;
    return m != NULL;
}

void scope_refuse_const_param(scope *s, const ast *path, const symbol *y)
{
    diag *d = diag_add(s->context->diags, E_CONST, path->range, "the const parameter `%s` has no value here", y->name);
    diag_note(s->context->diags, d, y->range, "declared here");
    diag_help(s->context->diags, d, "call the function with one: `name::<{ 4 }>(..)`; in a kernel write a const item instead");
}

static bool integer_path(scope *s, const ast *n, int64_t *out)
{
    const ast *last = ast_last_segment(n);
    if (n->kid_count >= 2 && strcmp(last->text, "SIZE") == 0)
        return integer_size(s, n, out);
    symbol *y = scope_find_path(s, VALUE_NAMES, n);
    if (y && y->kind == SYMBOL_VARIABLE && y->value.kind == VALUE_INT) {
        *out = y->value.number;
        return true;
    }
    if (y && y->kind == SYMBOL_CONST_PARAM) {
        scope_refuse_const_param(s, n, y);
        return false;
    }
    if (!y || y->kind != SYMBOL_CONST) {
        if (!y && scope_is_lost(s, last->text))
            return false;
        if (!y || y->value.kind != VALUE_ERROR || y->kind != SYMBOL_VARIABLE) {
            diag *d = diag_add(s->context->diags, E_NAME, n->range, "`%s` is not a constant", last->text);
            const char *near = scope_suggest(s, last->text, SYMBOL_CONST);
            if (near)
                diag_help(s->context->diags, d, "did you mean `%s`?", near);
        }
        return false;
    }
    if (!y->measured) {
        if (!enter(s->context, y, n->range))
            return false;
        y->busy = true;
        y->is_integer = scope_integer(y->scope, y->node, &y->number);
        y->busy = false;
        y->measured = true;
    }
    *out = y->number;
    return y->is_integer;
}

bool scope_is_size_of(const ast *call)
{
    const ast *last = ast_last_segment(ast_kid(call, 0)), *types = last ? ast_kid(last, 0) : NULL;
    return last && strcmp(last->text, "size_of") == 0 && ast_is(types, AST_GENERIC_ARGS) && types->kid_count == 1 &&
           ast_kid(call, 1)->kid_count == 0;
}

bool scope_size_of(scope *s, const ast *call, int64_t *out)
{
    const ast *type = ast_kid(ast_kid(ast_last_segment(ast_kid(call, 0)), 0), 0), *last = ast_last_segment(type);
    const char *name = last ? last->text : "";
    bool infer = false;
    dtype element;
    if (strcmp(name, "usize") == 0 || strcmp(name, "u64") == 0 || strcmp(name, "i64") == 0 || strcmp(name, "f64") == 0)
        *out = 8;
    else if (strcmp(name, "u32") == 0)
        *out = 4;
    else if (strcmp(name, "u16") == 0)
        *out = 2;
    else if (scope_dtype(s, type, &element, &infer))
        *out = (dtype_row_of(element)->bits + 7) / 8; /* i4 is a byte of its own, alone */
    else
        return false;
    return true;
}

const integer_type *scope_integer_type(const ast *type)
{
    static const integer_type types[] = {{"usize", 0, INT64_MAX},       {"u64", 0, INT64_MAX},         {"u32", 0, UINT32_MAX},
                                         {"u16", 0, UINT16_MAX},        {"u8", 0, UINT8_MAX},          {"isize", INT64_MIN, INT64_MAX},
                                         {"i64", INT64_MIN, INT64_MAX}, {"i32", INT32_MIN, INT32_MAX}, {"i16", INT16_MIN, INT16_MAX},
                                         {"i8", INT8_MIN, INT8_MAX}};
    const ast *last = ast_last_segment(type);
    for (size_t i = 0; last && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, last->text) == 0)
            return &types[i];
    return NULL;
}

bool scope_fits(scope *s, const ast *n, const integer_type *type, int64_t number)
{
    if (number >= type->least && number <= type->most)
        return true;
    diag_add(s->context->diags, E_CONST, n->range, "%lld does not fit %s, which holds %lld to %lld", (long long)number, type->name,
             (long long)type->least, (long long)type->most);
    return false;
}

static bool integer_cast(scope *s, const ast *n, int64_t *out)
{
    const integer_type *type = scope_integer_type(ast_kid(n, 1));
    if (type)
        return scope_integer(s, ast_kid(n, 0), out) && scope_fits(s, n, type, *out);
    diag_add(s->context->diags, E_CONST, n->range, "expected an integer constant");
    return false;
}

static bool integer_kind(scope *s, const ast *n, int64_t *out)
{
    int64_t a, b;
    bool infer = false;
    switch (n->kind) {
    case AST_INT: *out = n->value; return true;
    case AST_UNARY:
        if (n->text[0] != '-' || !scope_integer(s, ast_kid(n, 0), &a))
            break;
        return __builtin_sub_overflow((int64_t)0, a, out) ? integer_overflow(s, n) : true;
    case AST_BINARY: {
        bool left = scope_integer(s, ast_kid(n, 0), &a), right = scope_integer(s, ast_kid(n, 1), &b);
        return left && right && scope_arithmetic(s, n, n->text, a, b, out);
    }
    case AST_PATH:
    case AST_TYPE_PATH: return integer_path(s, n, out);
    case AST_TYPE_QUALIFIED: {
        const mapping *m = strcmp(n->text, "SIZE") == 0 ? scope_mapping(s, ast_kid(n, 0), &infer) : NULL;
        if (m)
            *out = m->size;
        return m != NULL;
    }
    case AST_BLOCK:
    case AST_CONST_ARG:
        if (n->kid_count == 1)
            return scope_integer(s, n->kids[0], out);
        break;
    case AST_EXPR_STMT:
    case AST_CONST_BLOCK: return scope_integer(s, ast_kid(n, 0), out);
    case AST_CAST: return integer_cast(s, n, out);
    case AST_CALL:
        if (scope_is_size_of(n))
            return scope_size_of(s, n, out);
        break;
    case AST_ERROR: return false;
    default: break;
    }
    if (n->kind != AST_UNARY || n->text[0] != '-')
        diag_add(s->context->diags, E_CONST, n->range, "expected an integer constant");
    return false;
}

bool scope_integer(scope *s, const ast *n, int64_t *out)
{
    arena *a = s->context->arena;
    budget_spend_at(a, n->range, 1);
    budget_enter(a);
    bool ok = integer_kind(s, n, out);
    budget_leave(a);
    return ok;
}
