/* `match`, `while`, `loop`, `break` and `continue`: of constants, which are known when the kernel is compiled. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"

/* ---- Some, None ---- */

static const ast some = {.kind = AST_STRUCT, .text = "Some"}, none = {.kind = AST_STRUCT, .text = "None"};

bool option_is(const value *v)
{
    return v->kind == VALUE_LIST && (v->record == &some || v->record == &none);
}

value option_none(void)
{
    return (value){.kind = VALUE_LIST, .record = &none};
}

value option_some(arena *a, value v)
{
    value *item = ARENA_NEW(a, value);
    *item = v;
    return (value){.kind = VALUE_LIST, .record = &some, .items = item, .count = 1};
}

value option_method(analysis *s, const ast *n, const value *v, const value *args)
{
    bool is_some = v->record == &some;
    if (strcmp(n->text, "is_some") == 0 || strcmp(n->text, "is_none") == 0)
        return (value){.kind = VALUE_BOOL, .number = is_some == (n->text[3] == 's')};
    if (is_some && (strcmp(n->text, "unwrap") == 0 || strcmp(n->text, "expect") == 0 || strcmp(n->text, "unwrap_or") == 0))
        return v->items[0];
    if (strcmp(n->text, "unwrap_or") == 0 && ast_kid(n, 2)->kid_count == 1)
        return args[0];
    if (strcmp(n->text, "unwrap") == 0 || strcmp(n->text, "expect") == 0)
        return refuse(s, E_ASSERT, n->name_range, "the constants in front of it lead here", "`%s` of `None`", n->text);
    return refuse(s, E_METHOD, n->name_range, "it offers is_some, is_none, unwrap, expect and unwrap_or",
                  "there is no method `%s` on an Option", n->text);
}

/* ---- patterns ---- */

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

/* The constant that a name in a pattern stands for; NULL: it is a variable that the pattern binds. */
static const symbol *constant_named(scope *names, const ast *pattern)
{
    const symbol *y = scope_find(names, VALUE_NAMES, pattern->text);
    return y && y->kind == SYMBOL_CONST && pattern->kid_count == 0 ? y : NULL;
}

/* `None`, which no variable is called. */
static bool is_none(scope *names, const ast *pattern)
{
    return strcmp(pattern->text, "None") == 0 && pattern->kid_count == 0 && !scope_find(names, VALUE_NAMES, "None");
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
static const value *field_named(const value *v, const char *name)
{
    int64_t index = field_find(v->record, name);
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
        else if (constant_named(names, pattern) || is_none(names, pattern))
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
            const value *part = ast_is(pattern->kids[i], AST_PAT_FIELD) ? field_named(v, pattern->kids[i]->text) : NULL;
            fits = !part || pattern_fits(s, names, ast_kid(pattern->kids[i], 0), part, wrong);
        }
        break;
    default: break;
    }
    *wrong = *wrong || s->context.diags->error_count > errors_before;
    return fits && !*wrong;
}

/* ---- match ---- */

/* A condition that is known now; *holds is it. */
STACK_APART static bool known_condition(analysis *s, scope *names, const ast *n, const char *of, bool *holds, const ast **loop)
{
    value v = evaluate_counted(s, names, n, NULL);
    *holds = v.kind == VALUE_BOOL && v.number;
    *loop = v.loop;
    if (v.kind != VALUE_BOOL && v.kind != VALUE_ERROR)
        refuse(s, E_CONST, n->range, "compare constants: `i < 4`", "the condition of `%s` is %s, not a constant condition", of,
               value_kind_name(&v));
    return v.kind == VALUE_BOOL;
}

/* What the arm gives, where one of its patterns is for the value and its guard holds; false: it is another arm's. */
STACK_APART static bool take_arm(analysis *s, scope *names, const ast *arm, const value *v, const declared *expected, value *out)
{
    const ast *list = ast_kid(arm, 0), *guard = ast_kid(arm, 1), *loop = NULL;
    bool wrong = false, taken = false;
    for (uint32_t i = 0; i < list->kid_count && !taken && !wrong; i++) {
        if (!pattern_fits(s, names, list->kids[i], v, &wrong))
            continue;
        scope *inner = scope_new(&s->context, names);
        if (!ast_is(list->kids[i], AST_PAT_NAME) || !(constant_named(names, list->kids[i]) || is_none(names, list->kids[i])))
            bind_pattern(s, inner, list->kids[i], v, NULL);
        bool holds = true;
        wrong = !ast_is(guard, AST_NONE) && !known_condition(s, inner, guard, "match", &holds, &loop);
        taken = holds && !wrong;
        if (taken)
            *out = evaluate(s, inner, ast_kid(arm, 2), expected);
    }
    if (wrong)
        s->kernel->bad = true;
    return taken || wrong;
}

value evaluate_match(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value v = evaluate_counted(s, names, ast_kid(n, 0), NULL), given = error_value;
    if (v.kind == VALUE_ERROR)
        return v;
    if (v.kind == VALUE_RUNNING || v.kind == VALUE_CONDITION)
        return refuse(s, E_UNSUPPORTED, ast_kid(n, 0)->range, "compare it in an `if`: `if n == 0 { .. }`",
                      "`match` of a number that is known when the kernel runs is not supported");
    const ast *outer = s->guard;
    bool found = false;
    s->guard = v.loop ? v.loop : outer;
    for (uint32_t i = 1; i < n->kid_count && !found && !s->stopped; i++) {
        names_mark before = names_begin(s);
        found = take_arm(s, names, n->kids[i], &v, expected, &given);
        names_end(s, before, &given);
    }
    s->guard = outer;
    s->chosen = s->chosen || (v.loop && (given.kind == VALUE_INT || given.kind == VALUE_FLOAT || given.kind == VALUE_BOOL));
    return found ? given
                 : refuse(s, E_CONST, n->name_range, "end it with `_ => ..`", "no arm of this `match` is for the value%s",
                          v.kind == VALUE_INT ? arena_printf(s->context.arena, " %lld", (long long)v.number) : "");
}

/* ---- loops ---- */

bool goes_on(analysis *s, const char *label)
{
    bool own = s->leaving != LEAVES_NOTHING && (s->label[0] == '\0' || strcmp(s->label, label) == 0), next = s->leaving == LEAVES_TURN;
    if (own)
        s->leaving = LEAVES_NOTHING;
    return !s->returning && !s->stopped && s->leaving == LEAVES_NOTHING && (!own || next);
}

value evaluate_while(analysis *s, scope *names, const ast *n)
{
    const ast *condition = ast_kid(n, 0), *loop = NULL;
    size_t errors_before = s->context.diags->error_count;
    bool outer = s->kernel->repeating, holds = true, may_leave = s->may_leave;
    const frame here = {.outer = s->frames, .label = n->text, .is_loop = true};
    s->left_with = (value){.kind = VALUE_UNIT};
    for (bool on = true; on && s->context.diags->error_count == errors_before;) {
        if (!ast_is(condition, AST_NONE) && !known_condition(s, names, condition, "while", &holds, &loop))
            break;
        if (loop && s->context.dialect >= DIALECT_V0_8)
            refuse_bounds(s, condition->range, loop, "write #[unroll] in front of that loop");
        if (!holds || !spend_turn(s, n->name_range, "let each turn come nearer to the end") ||
            s->context.diags->error_count > errors_before)
            break;
        s->may_leave = true;
        s->frames = &here;
        evaluate_block(s, names, ast_kid(n, 1), NULL);
        s->frames = here.outer;
        s->may_leave = may_leave;
        on = goes_on(s, n->text);
        set_repeated(s, true);
    }
    set_repeated(s, outer);
    return s->context.diags->error_count > errors_before ? error_value
           : ast_is(condition, AST_NONE)                 ? s->left_with
                                                         : (value){.kind = VALUE_UNIT};
}

/* ---- break, continue ---- */

value evaluate_leave(analysis *s, scope *names, const ast *n)
{
    bool breaks = strcmp(n->text, "break") == 0;
    const char *label = strchr(ast_kid(n, 0)->text, '\'');
    const frame *to = s->frames;
    bool counted = to && to->is_counted;
    while (to && !(label ? strcmp(to->label, label) == 0 : to->is_loop)) {
        to = to->outer;
        counted = counted || (to && to->is_counted);
    }
    if (!to)
        return refuse(s, E_NAME, n->range, label ? "write the label in front of a loop: `'a: for ..`" : "it stands in a loop",
                      "`%s` leaves no loop%s%s of this function", n->text, label ? " " : "", label ? label : "");
    if (!s->may_leave || counted)
        return unsupported(s, n);
    value v = evaluate(s, names, ast_kid(n, 1), NULL);
    s->left_with = v;
    s->label = label ? label : "";
    s->leaving = breaks ? LEAVES_BLOCK : LEAVES_TURN;
    return v;
}

value evaluate_labelled(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const frame here = {.outer = s->frames, .label = n->text};
    bool may_leave = s->may_leave;
    s->may_leave = true;
    s->frames = &here;
    value v = evaluate_block(s, names, n, expected);
    s->frames = here.outer;
    s->may_leave = may_leave;
    if (s->leaving != LEAVES_BLOCK || strcmp(s->label, n->text) != 0)
        return v;
    s->leaving = LEAVES_NOTHING;
    return s->left_with;
}
