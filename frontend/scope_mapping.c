/* axes![..] and m![..] as written: what they mean, and which axes they name. */
#include <string.h>

#include "frontend/scope_state.h"
#include "support/budget.h"

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
            const symbol *outer = s->parent ? scope_find(s->parent, TYPE_NAMES, a->text) : NULL;
            y->axis = mapping_axis(s->context->mappings, a->text, size->value);
            if (outer && outer->axis) { /* one name for two */
                mapping_axis_is_local(y->axis);
                mapping_axis_is_local(outer->axis);
            }
            s->context->has_units = s->context->has_units || size->value == 1;
        }
    }
}

/* ---- mappings ---- */

static const mapping *map_node(scope *s, const ast *n);

const mapping *scope_axis_mapping(scope *s, const symbol *y)
{
    return y->axis ? mapping_symbol(s->context->mappings, y->axis) : NULL;
}

static scope *root_of(scope *s)
{
    while (s->parent)
        s = s->parent;
    return s;
}

/* What `type A = B;` stands for, through any number of such names, where it is an axis. *lost: its text was given up, or the
 * declaration that names the axis. */
static symbol *aliased_axis(symbol *y, bool *lost)
{
    *lost = false;
    for (int level = 0; level < NESTING_MAX && y && y->kind == SYMBOL_ALIAS && !y->generics && ast_is(y->node, AST_TYPE_PATH); level++) {
        const symbol *named = y;
        budget_spend(named->scope->context->arena, 1);
        y = scope_find_path(named->scope, TYPE_NAMES, named->node);
        *lost = !y && scope_is_lost(named->scope, ast_last_segment(named->node)->text);
    }
    bool open = y && y->kind == SYMBOL_ALIAS && ast_is(y->node, AST_TYPE_INFER);
    *lost = *lost || (open && scope_is_lost(y->scope, y->name));
    return y && y->kind == SYMBOL_AXIS ? y : NULL;
}

static const mapping *map_axis(scope *s, const ast *n)
{
    bool lost;
    symbol *y = scope_find(s, TYPE_NAMES, n->text), *behind = aliased_axis(y, &lost);
    y = behind ? behind : y;
    if (y && y->kind == SYMBOL_AXIS)
        return scope_axis_mapping(s, y);
    if (lost || (!y && scope_is_lost(s, n->text)))
        return NULL;
    diag *d = diag_add(s->context->diags, E_AXIS_UNKNOWN, n->range, "axis `%s` is not declared", n->text);
    scope_note_dead_use(s, d);
    const char *near = scope_suggest(s, n->text, SYMBOL_AXIS);
    if (y && y->kind == SYMBOL_ALIAS && ast_is(y->node, AST_TYPE_INFER))
        diag_help(s->context->diags, d, "name the axis in the call: `::<AXIS>` after the function's name");
    else if (y && y->kind == SYMBOL_ALIAS)
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
        if (!scope_is_generic(s))
            diag_replace(diags, d, (src_range){n->name_range.file, n->name_range.begin, n->name_range.begin}, "# %lld ",
                         (size + v - 1) / v * v);
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

/* The number after an operator: of a constant expression, or the size of a mapping. */
static bool map_number_of(scope *s, const ast *n, int64_t *out)
{
    if (n->kind < AST_MAP || n->kind > AST_MAP_ESCAPE)
        return scope_integer(s, n, out);
    const symbol *constant = ast_is(n, AST_MAP_AXIS) && !scope_find(s, TYPE_NAMES, n->text) ? scope_find(s, VALUE_NAMES, n->text) : NULL;
    if (constant) {
        diag *d = diag_add(s->context->diags, E_MAP_SYNTAX, n->range, "`%s` is a constant, not an axis", n->text);
        diag_help(s->context->diags, d, "write { %s }", n->text);
        diag_replace(s->context->diags, d, n->range, "{ %s }", n->text);
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
        diag_help(diags, d, "a filter that does not move is an axis of its own, next to the window");
        break;
    case MAPPING_WINDOW_TERM:
        d = diag_add(diags, E_MAP_WINDOW, n->range,
                     "a window slides over whole axes and their digits; padding and broadcasts do not slide");
        diag_help(diags, d, "write the padding after the window: `$(A:2, B:1) # 16`");
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
    diag *d = diag_add(s->context->diags, E_MAP_WINDOW, n->range, "the window has %s; %lld..%lld is no part of them",
                       arena_count(s->context->arena, size, "place"), (long long)from, (long long)to);
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

symbol *scope_enter(scope_context *c, symbol *y, src_range range)
{
    if (!symbol_is_busy(y))
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
        symbol_set_busy(y, true);
        y->mapping = scope_mapping(y->scope, y->node, &y->infers);
        symbol_set_busy(y, false);
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

static bool is_bool_type(const ast *type)
{
    const ast *name = ast_last_segment(type);
    return name && strcmp(name->text, "bool") == 0;
}

void scope_bind_argument(scope *inner, const ast *parameter, scope *s, const ast *argument)
{
    value v = {.kind = VALUE_INT};
    bool is_number = ast_is(parameter, AST_GENERIC_CONST) && scope_integer_type(ast_kid(parameter, 0)), holds = false;
    if (ast_is(parameter, AST_GENERIC_LIFETIME))
        return;
    if (ast_is(parameter, AST_GENERIC_TYPE))
        scope_bind_type(inner, parameter, s, argument ? argument : ast_new(inner->context->arena, AST_TYPE_INFER, parameter->range));
    else if (argument && is_number && scope_integer(s, argument, &v.number))
        scope_add(inner, SYMBOL_VARIABLE, parameter->text, parameter->name_range)->value = v;
    else if (argument && is_bool_type(ast_kid(parameter, 0)) && scope_condition(s, argument, &holds))
        scope_add(inner, SYMBOL_VARIABLE, parameter->text, parameter->name_range)->value = (value){.kind = VALUE_BOOL, .number = holds};
    else
        scope_add(inner, SYMBOL_CONST_PARAM, parameter->text, parameter->name_range)->node = parameter;
}

scope *scope_applied(scope *s, scope *of, const ast *generics, const ast *segment)
{
    const ast *given = ast_kid(segment, 0);
    uint32_t next = 0, wanted = 0;
    if (!generics || !ast_is(generics, AST_GENERICS))
        return of;
    scope *inner = scope_new(s->context, of);
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i];
        if (ast_is(g, AST_GENERIC_LIFETIME))
            continue;
        wanted++;
        scope_set_generic(inner);
        const ast *argument = next_argument(given, &next);
        const ast *otherwise = ast_kid(g, 2); /* read where it is declared, after the parameters in front of it */
        if (!argument && !ast_is(otherwise, AST_NONE))
            scope_bind_argument(inner, g, inner, otherwise);
        else
            scope_bind_argument(inner, g, s, argument);
    }
    if (next_argument(given, &next)) {
        diag *d = diag_add(s->context->diags, E_ARGUMENTS, segment->range, "`%s` takes %u argument%s, got more", segment->text, wanted,
                           wanted == 1 ? "" : "s");
        diag_help(s->context->diags, d, "its parameters stand after its name, where it is declared");
    }
    return inner;
}

static const mapping *applied_mapping(scope *s, symbol *y, const ast *type, bool *infer)
{
    scope *inner = scope_applied(s, y->scope, y->generics, ast_last_segment(type));
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
        if (ast_is(type, AST_TYPE_MACRO)) {
            diag *d = diag_add(s->context->diags, E_NAME, type->name_range, "there is no macro `%s!` in the file", type->text);
            diag_help(s->context->diags, d, "a mapping is written m![..]");
        } else if (!ast_is(type, AST_ERROR)) {
            diag_add(s->context->diags, E_ARGUMENTS, type->range, "expected a mapping m![..] here");
        }
        return NULL;
    }
    symbol *y = scope_find_path(s, TYPE_NAMES, type);
    if (y && y->kind == SYMBOL_AXIS)
        return scope_axis_mapping(s, y);
    if (y && y->kind == SYMBOL_ALIAS) {
        if (!y->resolved && !scope_enter(s->context, y, last->range))
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
    scope_note_dead_use(s, d);
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
    bool lost;
    switch (n->kind) {
    case AST_MAP_AXIS:
        y = aliased_axis(scope_find(s, TYPE_NAMES, n->text), &lost);
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
