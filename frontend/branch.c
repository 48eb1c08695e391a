/* Which statements run, and how often: `if`, `match`, `for`, `while`, `loop`, `break` and `continue`. Where constants decide, it is known
 * when the kernel is compiled; an `if` of a number of the launch guards what its blocks write. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/running.h"
#include "support/budget.h"

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

/* ---- if ---- */

/* One case of one block of an `if` that is decided when the kernel runs: what it writes is memory that is there. */
STACK_APART static value evaluate_case(analysis *s, scope *names, const ast *block, const run_guard *guards, const declared *expected)
{
    const run_guard *outer = s->kernel->runs_if;
    s->kernel->runs_if = run_guard_join(s->context.arena, guards, outer);
    value v = evaluate(s, names, block, expected);
    s->kernel->runs_if = outer;
    if (v.kind == VALUE_UNIT || v.kind == VALUE_ERROR)
        return v;
    return refuse(s, E_UNSUPPORTED, block->range, "write into a view of a tensor that is there, and end the block with `;`",
                  "an `if` that is decided when the kernel runs gives %s", value_kind_name(&v));
}

/* All cases of one block, of which one at most runs. */
STACK_APART static value evaluate_guarded(analysis *s, scope *names, const ast *block, const run_condition *x, const declared *expected)
{
    value v = {.kind = VALUE_UNIT};
    bool outer = s->kernel->repeating;
    s->may_return = s->may_leave = false;
    for (size_t i = 0; i < x->count && v.kind == VALUE_UNIT && !s->stopped; i++) {
        if (i > 0 && !spend(s, block->range, 1))
            break;
        v = evaluate_case(s, names, block, x->cases[i], expected);
        set_repeated(s, true);
    }
    set_repeated(s, outer);
    return v;
}

STACK_APART static value evaluate_running_if(analysis *s, scope *names, const ast *n, const run_condition *x, const declared *expected)
{
    value v = evaluate_guarded(s, names, ast_kid(n, 1), x, expected);
    if (v.kind == VALUE_ERROR || ast_is(ast_kid(n, 2), AST_NONE))
        return v;
    const run_condition *opposite = run_condition_opposite(s->context.arena, x);
    if (!opposite)
        return refuse(s, E_UNSUPPORTED, ast_kid(n, 2)->range, "write an `if` inside of an `if`, each with its `else`",
                      "`else` of a condition that is known when the kernel runs has more than %d cases", RUN_MOST_CASES);
    return evaluate_guarded(s, names, ast_kid(n, 2), opposite, expected);
}

STACK_APART value evaluate_if(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value condition = evaluate_counted(s, names, ast_kid(n, 0), NULL);
    if (condition.kind == VALUE_ERROR)
        return condition;
    const run_condition *running = run_condition_of(s->context.arena, &condition);
    if (running)
        return evaluate_running_if(s, names, n, running, expected);
    if (condition.kind != VALUE_BOOL)
        return refuse(s, E_CONST, ast_kid(n, 0)->range, "compare constants: `i == 0`, `i % 2 == 1`",
                      "the condition of `if` is %s, not a constant condition", value_kind_name(&condition));
    const ast *outer = s->guard;
    s->guard = condition.loop ? condition.loop : outer;
    value v = evaluate(s, names, ast_kid(n, condition.number ? 1 : 2), expected);
    s->guard = outer;
    s->chosen = s->chosen || (condition.loop && may_be_counted(&v));
    return v;
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
        if (!pattern_is_constant(names, list->kids[i]))
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
        arena_mark before = names_begin(s);
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

/* Does the device know how often it runs, and what #[unroll] writes out? A loop that it keeps runs equally often in each turn of those
 * around it, and one that is written out counts from 0 (since 0.8; before that nobody says). Diagnoses. */
static bool check_turns(analysis *s, const ast *n, const value *sequence)
{
    const ast *what = ast_kid(n, 1);
    if (s->context.dialect < DIALECT_V0_8)
        return true;
    if (sequence->loop) {
        refuse_bounds(s, what->range, sequence->loop,
                      n->value ? "write #[unroll] in front of that loop, too"
                               : "count to the largest number, and write an `if` around what is inside of the loop");
    } else if (n->value && sequence->count == 0) {
        diag *d = diag_add(s->context.diags, E_UNROLL, what->range, "#[unroll] writes out a loop that never runs");
        diag_help(s->context.diags, d, "the range ends at a constant of at least 1");
    } else if (n->value && sequence->kind == VALUE_RANGE && sequence->number != 0) {
        diag *d = diag_add(s->context.diags, E_UNROLL, what->range, "a loop that #[unroll] writes out begins at 0, got %lld",
                           (long long)sequence->number);
        diag_help(s->context.diags, d, "count from 0, and add %lld inside of the loop", (long long)sequence->number);
    } else {
        return true;
    }
    s->kernel->bad = true;
    return false;
}

STACK_APART value evaluate_for(analysis *s, scope *names, const ast *n)
{
    value sequence = evaluate_counted(s, names, ast_kid(n, 1), NULL);
    if (sequence.kind == VALUE_ERROR)
        return sequence;
    if (!value_is_sequence(&sequence))
        return refuse(s, E_CONST, ast_kid(n, 1)->range, "write `0..N`, or the `.iter()` of an array",
                      "`for` runs through a range or an array, not %s", value_kind_name(&sequence));
    if (!check_turns(s, n, &sequence))
        return error_value;
    size_t errors_before = s->context.diags->error_count;
    bool outer = s->kernel->repeating, rolled = !n->value && s->in_const + s->in_const_fn == 0 && s->context.dialect > DIALECT_APRIL;
    bool may_leave = s->may_leave, on = true;
    const frame here = {.outer = s->frames, .label = n->text, .is_loop = true, .is_counted = rolled};
    s->frames = &here;
    const ast *outer_loop = s->loop;
    s->may_return = s->may_return && !rolled;
    s->may_leave = !rolled; /* the device counts it to its end */
    s->loop = rolled ? n : outer_loop;
    for (size_t i = 0; i < sequence.count && on && !s->stopped; i++) {
        if (!spend(s, n->name_range, 1))
            break;
        arena_mark before = names_begin(s);
        scope *inner = scope_new(&s->context, names);
        value item = value_item(&sequence, i);
        item.loop = rolled ? n : NULL;
        bind_pattern(s, inner, ast_kid(n, 0), &item, NULL);
        evaluate_block(s, inner, ast_kid(n, 2), NULL);
        names_end(s, before, NULL);
        on = goes_on(s, n->text);
        if (s->context.diags->error_count > errors_before) /* the other iterations would only say it again */
            break;
        set_repeated(s, true);
    }
    set_repeated(s, outer);
    s->loop = outer_loop;
    s->frames = here.outer;
    s->may_leave = may_leave;
    if (s->context.diags->error_count > errors_before)
        return error_value;
    return (value){.kind = VALUE_UNIT};
}

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
