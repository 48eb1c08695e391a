/* Patterns: whether one is for a value, and the variables that it binds. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "support/budget.h"

static bool is_equal(analysis *s, scope *names, const ast *n, const value *a, const value *b)
{
    bool same_kind = a->kind == b->kind && (a->kind == VALUE_INT || a->kind == VALUE_BOOL || a->kind == VALUE_FLOAT);
    value equal = same_kind ? constant_binary(names, n, "==", a, b) : error_value;
    if (!same_kind && a->kind != VALUE_ERROR && b->kind != VALUE_ERROR)
        refuse(s, E_MISMATCH, n->range, "compare numbers with numbers", "the pattern is %s, but the value is %s", value_kind_name(a),
               value_kind_name(b));
    return equal.kind == VALUE_BOOL && equal.number;
}

/* `1`, `2..=5`, `Type::NAME` */
STACK_APART static bool value_fits(analysis *s, scope *names, const ast *n, const value *v)
{
    if (!ast_is(n, AST_RANGE)) {
        value wanted = evaluate(s, names, n, NULL);
        if (option_is(&wanted) && option_is(v))
            return wanted.record == v->record && v->count == 0;
        return is_equal(s, names, n, &wanted, v);
    }
    value low = evaluate(s, names, ast_kid(n, 0), NULL), high = evaluate(s, names, ast_kid(n, 1), NULL);
    bool numbers =
        v->kind == VALUE_INT && (low.kind == VALUE_INT || low.kind == VALUE_UNIT) && (high.kind == VALUE_INT || high.kind == VALUE_UNIT);
    if (!numbers && v->kind != VALUE_ERROR && low.kind != VALUE_ERROR && high.kind != VALUE_ERROR)
        refuse(s, E_MISMATCH, n->range, "a range of integers is a pattern for an integer", "this range is no pattern for %s",
               value_kind_name(v));
    bool above = low.kind != VALUE_INT || v->number >= low.number;
    bool below = high.kind != VALUE_INT || v->number < high.number || (n->text[2] == '=' && v->number == high.number);
    return numbers && above && below;
}

static bool is_named(const ast *path, const char *name)
{
    const ast *last = ast_last_segment(path);
    return last && strcmp(last->text, name) == 0;
}

bool pattern_is_constant(scope *names, const ast *pattern)
{
    if (!ast_is(pattern, AST_PAT_NAME) || pattern->kid_count > 0)
        return false;
    const symbol *y = scope_find(names, VALUE_NAMES, pattern->text);
    return y ? y->kind == SYMBOL_CONST : strcmp(pattern->text, "None") == 0;
}

STACK_APART static bool constant_fits(analysis *s, scope *names, const ast *pattern, const value *v)
{
    arena *a = s->context.arena;
    ast *path = ast_new(a, AST_PATH, pattern->range), *segment = ast_new(a, AST_SEGMENT, pattern->range);
    segment->text = pattern->text;
    ast_push(a, segment, ast_new(a, AST_NONE, pattern->range));
    ast_push(a, path, segment);
    return value_fits(s, names, path, v);
}

STACK_APART static bool elements_fit(analysis *s, scope *names, const ast *pattern, uint32_t first, const value *v, bool *wrong)
{
    size_t kids = pattern->kid_count - first, rest = ast_pattern_rest(pattern, first), wanted = kids - (rest < kids);
    bool fits = v->kind == VALUE_LIST ? v->count == wanted || (rest < kids && v->count > wanted) : v->kind == VALUE_UNIT && kids == 0;
    for (size_t i = 0; fits && i < kids && !*wrong; i++) {
        const ast *kid = pattern->kids[first + i];
        fits = i == rest || pattern_fits(s, names, kid, &v->items[i < rest ? i : v->count - (kids - i)], wrong);
    }
    return fits;
}

/* NULL: there is none, which bind_pattern says. */
static const value *field_named(arena *a, const value *v, const char *name)
{
    int64_t index = field_find(a, v->record, name);
    return index >= 0 && (size_t)index < v->count ? &v->items[index] : NULL;
}

bool pattern_fits(analysis *s, scope *names, const ast *pattern, const value *v, bool *wrong)
{
    size_t errors_before = s->context.diags->error_count;
    bool fits = true;
    switch (pattern->kind) {
    case AST_PAT_VALUE: fits = value_fits(s, names, ast_kid(pattern, 0), v); break;
    case AST_PAT_REF: fits = pattern_fits(s, names, ast_kid(pattern, 0), v, wrong); break;
    case AST_PAT_NAME:
        if (pattern->kid_count > 0)
            fits = pattern_fits(s, names, pattern->kids[0], v, wrong);
        else if (pattern_is_constant(names, pattern))
            fits = constant_fits(s, names, pattern, v);
        break;
    case AST_PAT_TUPLE:
    case AST_PAT_ARRAY: fits = elements_fit(s, names, pattern, 0, v, wrong); break;
    case AST_PAT_TUPLE_STRUCT:
        fits = !v->record || (is_named(ast_kid(pattern, 0), v->record->text) && elements_fit(s, names, pattern, 1, v, wrong));
        break;
    case AST_PAT_OR:
        fits = false;
        for (uint32_t i = 0; i < pattern->kid_count && !fits && !*wrong; i++)
            fits = pattern_fits(s, names, pattern->kids[i], v, wrong);
        break;
    case AST_PAT_STRUCT:
        for (uint32_t i = 1; v->record && i < pattern->kid_count && fits; i++) {
            const value *part = ast_is(pattern->kids[i], AST_PAT_FIELD) ? field_named(s->arena, v, pattern->kids[i]->text) : NULL;
            fits = !part || pattern_fits(s, names, ast_kid(pattern->kids[i], 0), part, wrong);
        }
        break;
    default: break;
    }
    *wrong = *wrong || s->context.diags->error_count > errors_before;
    return fits && !*wrong;
}

/* ---- the variables ---- */

static void bind_name(analysis *s, scope *names, const ast *pattern, value v, const declared *annotation)
{
    if (v.kind == VALUE_TENSOR && v.op->name[0] == '\0')
        v.op->name = pattern->text;
    symbol *y = scope_add(names, SYMBOL_VARIABLE, pattern->text, pattern->name_range);
    y->value = v;
    y->loop = s->loop;
    y->runs_if = s->kernel ? s->kernel->runs_if : NULL;
    y->mutable = pattern->value;
    y->declared = annotation;
}

/* A part is known only when the loop runs that counts the whole. */
static value part_of(const value *whole, value part)
{
    part.owned = false;
    part.loop = part.loop ? part.loop : whole->loop;
    part.chosen = part.chosen || whole->chosen;
    return part;
}

/* A value that has not as many parts as the pattern; `rest`: the place of `..`, if it is one of `kids`. */
STACK_APART static void refuse_elements(analysis *s, const ast *pattern, size_t kids, size_t rest, const value *v)
{
    size_t wanted = kids - (rest < kids);
    refuse(s, E_MISMATCH, pattern->range, v->kind == VALUE_LIST && v->count > wanted ? "`..` stands for those that are left" : NULL,
           "the pattern has %s%zu elements, but the value is %s%s", rest < kids ? "at least " : "", wanted, value_kind_name(v),
           v->kind == VALUE_LIST ? arena_printf(s->context.arena, " of %zu", v->count) : "");
}

/* What `name @ ..` stands for: all but those that other patterns take. */
STACK_APART static void bind_rest(analysis *s, scope *names, const ast *kid, const value *v, size_t first, size_t others)
{
    bool known = v->kind == VALUE_LIST;
    value rest = {.kind = VALUE_LIST, .items = known ? v->items + first : NULL, .count = known ? v->count - others : 0};
    bind_name(s, names, kid, known ? part_of(v, rest) : error_value, NULL);
}

/* The patterns from kid `first` on, each for an element; `..` and `name @ ..` for those that are left. Values are handed on by pointer: a
 * pattern is as deep as brackets are. */
STACK_APART static void bind_elements(analysis *s, scope *names, const ast *pattern, uint32_t first, const value *v)
{
    size_t kids = pattern->kid_count - first, rest = ast_pattern_rest(pattern, first), wanted = kids - (rest < kids);
    bool fits = v->kind == VALUE_LIST ? v->count == wanted || (rest < kids && v->count > wanted) : v->kind == VALUE_UNIT && kids == 0;
    if (!fits && v->kind != VALUE_ERROR) {
        refuse_elements(s, pattern, kids, rest, v);
        v = &error_value;
    }
    for (size_t i = 0; i < kids; i++) {
        const ast *kid = pattern->kids[first + i];
        if (i != rest) {
            value part = v->kind == VALUE_LIST ? part_of(v, v->items[i < rest ? i : v->count - (kids - i)]) : error_value;
            bind_pattern(s, names, kid, &part, NULL);
        } else if (ast_is(kid, AST_PAT_NAME)) {
            bind_rest(s, names, kid, v, i, wanted);
        }
    }
}

/* Is the struct pattern one for the value? Else it is refused. */
STACK_APART static bool fits_fields(analysis *s, scope *names, const ast *pattern, const value *v)
{
    const ast *path = ast_kid(pattern, 0);
    const symbol *y = scope_find_path(names, TYPE_NAMES, path);
    if (v->kind == VALUE_ERROR || (v->kind == VALUE_CONTEXT ? !y : v->record && (!y || y->kind != SYMBOL_OWN_TYPE || y->node == v->record)))
        return true;
    refuse(s, E_MISMATCH, pattern->range, "bind it to a name, and take that apart as what it is",
           "the pattern is for `%s`, but the value is %s", ast_last_segment(path)->text,
           v->record ? arena_printf(s->context.arena, "a `%s`", v->record->text) : value_kind_name(v));
    return false;
}

/* `Weights { w, bias: b, .. }`: fields of a struct of the file, or of the context. */
STACK_APART static void bind_fields(analysis *s, scope *names, const ast *pattern, const value *v)
{
    if (!fits_fields(s, names, pattern, v))
        v = &error_value;
    const ast *fields = v->record ? ast_kid(v->record, 2) : NULL;
    size_t named = 0;
    for (uint32_t i = 1; i < pattern->kid_count; i++) {
        const ast *kid = pattern->kids[i];
        if (!ast_is(kid, AST_PAT_FIELD))
            continue;
        named++;
        value part = part_of(v, field_of(s, kid, *v));
        bind_pattern(s, names, ast_kid(kid, 0), &part, NULL);
    }
    if (v->record && named < fields->kid_count && ast_pattern_rest(pattern, 1) == pattern->kid_count - 1)
        refuse(s, E_MISMATCH, pattern->range, "end it with `..`", "the pattern names %zu of the %u fields of `%s`", named,
               fields->kid_count, v->record->text);
}

/* `Weights(w, bias)`: of a struct of the file only. */
STACK_APART static bool fits_tuple_struct(analysis *s, const ast *pattern, const value *v)
{
    if (v->kind == VALUE_ERROR || v->record)
        return true;
    refuse(s, E_UNSUPPORTED, ast_kid(pattern, 0)->range, "a pattern takes tuples, arrays and structs of the file apart",
           "`%s(..)` is no pattern for %s", ast_last_segment(ast_kid(pattern, 0))->text, value_kind_name(v));
    return false;
}

/* The first of several that the value fits. */
STACK_APART static void bind_either(analysis *s, scope *names, const ast *pattern, const value *v)
{
    bool wrong = false;
    for (uint32_t i = 0; i < pattern->kid_count && !wrong; i++)
        if (pattern_fits(s, names, pattern->kids[i], v, &wrong)) {
            bind_pattern(s, names, pattern->kids[i], v, NULL);
            return;
        }
}

void bind_pattern(analysis *s, scope *names, const ast *pattern, const value *v, const declared *annotation)
{
    switch (pattern->kind) {
    case AST_PAT_NAME:
        bind_name(s, names, pattern, *v, annotation);
        if (pattern->kid_count > 0)
            bind_pattern(s, names, pattern->kids[0], v, NULL);
        break;
    case AST_PAT_REF: bind_pattern(s, names, ast_kid(pattern, 0), v, annotation); break;
    case AST_PAT_ARRAY:
    case AST_PAT_TUPLE: bind_elements(s, names, pattern, 0, v); break;
    case AST_PAT_TUPLE_STRUCT: bind_elements(s, names, pattern, 1, fits_tuple_struct(s, pattern, v) ? v : &error_value); break;
    case AST_PAT_STRUCT: bind_fields(s, names, pattern, v); break;
    case AST_PAT_OR: bind_either(s, names, pattern, v); break;
    case AST_PAT_WILD:
    case AST_PAT_VALUE:
    case AST_PAT_REST: break;
    default: s->kernel->bad = true;
    }
}
