/* What every part of an analysis does: it refuses, counts its steps, and forgets the names of what ends. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "support/budget.h"

static diag *refuse_v(analysis *s, diag_id id, src_range range, const char *format, va_list args)
{
    if (s->kernel)
        s->kernel->bad = true;
    return diag_add(s->context.diags, id, range, "%s", arena_vprintf(s->context.arena, format, args));
}

value refuse(analysis *s, diag_id id, src_range range, const char *help, const char *format, ...)
{
    if (s->broken && id == E_NAME)
        return error_value;
    va_list args;
    va_start(args, format);
    diag *d = refuse_v(s, id, range, format, args);
    va_end(args);
    if (help)
        diag_help(s->context.diags, d, "%s", help);
    return error_value;
}

diag *refuse_diag(analysis *s, diag_id id, src_range range, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag *d = refuse_v(s, id, range, format, args);
    va_end(args);
    return d;
}

/* A fraction that is computed is no constant of the machine's language outside of `const { .. }` and const items. */
value refuse_computed(analysis *s, const ast *n, value v)
{
    if (v.kind != VALUE_FLOAT || s->in_const > 0)
        return v;
    diag *d = refuse_diag(s, E_CONST, n->range, "a computed float stands in a constant");
    diag_help(s->context.diags, d, "write const { .. } around it");
    diag_replace(s->context.diags, d, (src_range){n->range.file, n->range.begin, n->range.begin}, "const { ");
    diag_replace(s->context.diags, d, (src_range){n->range.file, n->range.end, n->range.end}, " }");
    return error_value;
}

void refuse_bounds(analysis *s, src_range range, const ast *loop, const char *help)
{
    diag *d = refuse_diag(s, E_UNROLL, range, "the bounds of a loop must be compile-time constants");
    diag_note(s->context.diags, d, loop->name_range, "what this loop counts is known when it runs");
    diag_help(s->context.diags, d, "%s", help);
}

value unsupported(analysis *s, const ast *n)
{
    static const struct {
        ast_kind kind;
        const char *what, *instead;
    } rows[] = {
        {AST_CALL, "calling a value", "call a function by its name"},
        {AST_MACRO, "a macro", "kernels use axes!, m! and the macros of the file"},
        {AST_STRUCT_LITERAL, "a struct literal", "no stage of this release takes one"},
        {AST_TRY, "`?`", "kernels have no Result"},
        {AST_AWAIT, "`.await`", "kernels are not async"},
        {AST_STRING, "a string", "addresses and sizes are integers"},
    };
    if (ast_is(n, AST_MACRO) && (strcmp(n->text, "panic") == 0 || strcmp(n->text, "unreachable") == 0))
        return refuse(s, E_ASSERT, n->range, "the constants in front of it lead here", "`%s!` is reached", n->text);
    if (ast_is(n, AST_MACRO) && (strcmp(n->text, "todo") == 0 || strcmp(n->text, "unimplemented") == 0))
        return refuse(s, E_UNSUPPORTED, n->range, "write its stages, or take the function out", "kernel `%s` is a stub", s->kernel->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == n->kind)
            return refuse(s, E_UNSUPPORTED, n->name_range, rows[i].instead, "%s is not supported in .vm kernels", rows[i].what);
    if (ast_is(n, AST_UNSUPPORTED) && n->kid_count > 2)
        return refuse(s, E_PARSE, n->kids[2]->range, NULL, "this `%s` is not read: %s", n->text, n->kids[2]->text);
    if (ast_is(n, AST_UNSUPPORTED)) {
        bool closure = strcmp(n->text, "closure") == 0, leaves = strcmp(n->text, "return") == 0;
        const char *instead =
            closure                         ? "write a function: `const fn name(n: usize) -> usize { .. }`"
            : leaves                        ? "end the body with the value"
            : strcmp(n->text, "async") == 0 ? "kernels are not async"
            : strcmp(n->text, "break") == 0 || strcmp(n->text, "continue") == 0
                ? "the device counts a loop to its end: write #[unroll] in front of it, or an `if` around what is left out"
                : "write it as statements of their own: `let`, `if`, `for`";
        return refuse(s, E_UNSUPPORTED, n->name_range, instead,
                      closure ? "a %s is not supported in .vm kernels" : "`%s` is not supported here", n->text);
    }
    return refuse(s, E_UNSUPPORTED, n->range, NULL, "this %s is not supported in .vm kernels", ast_kind_name(n->kind));
}

/* ---- what is counted ---- */

static bool refuse_steps(analysis *s, src_range range, const char *help, const char *what)
{
    s->stopped = true;
    refuse(s, E_UNROLL, range, help, "kernel `%s` has more than %zu %s", s->kernel->name, UNROLL_MAX, what);
    return false;
}

static const char unroll_help[] = "let an axis of Time count instead: a stage runs through all of its Time in one command";

bool spend_turn(analysis *s, src_range range, const char *help)
{
    if (s->steps >= UNROLL_MAX)
        return refuse_steps(s, range, help, "loop iterations and calls");
    s->steps++;
    return true;
}

bool spend(analysis *s, src_range range, uint64_t steps)
{
    if (steps > UNROLL_MAX || s->steps + steps > UNROLL_MAX)
        return refuse_steps(s, range, unroll_help, "loop iterations and calls");
    s->steps += (size_t)steps;
    return true;
}

bool may_add_op(analysis *s, src_range range)
{
    return s->kernel->op_count < UNROLL_MAX || refuse_steps(s, range, unroll_help, "stage calls");
}

value constant_checked(analysis *s, const ast *n, value v)
{
    if (v.kind == VALUE_ERROR)
        s->kernel->bad = true;
    else if (v.kind == VALUE_LIST && ast_is(n, AST_METHOD) && !spend(s, n->name_range, v.count))
        return error_value;
    return v;
}

value integer_found(analysis *s, bool found, int64_t number)
{
    s->kernel->bad = s->kernel->bad || !found;
    return found ? (value){.kind = VALUE_INT, .number = number} : error_value;
}

void set_repeated(analysis *s, bool repeated)
{
    s->kernel->repeating = repeated;
    s->context.diags->repeating = repeated;
}

/* ---- names of blocks that end ---- */

arena_mark names_begin(const analysis *s)
{
    return s->context.names ? arena_mark_here(s->context.names) : (arena_mark){0};
}

enum { MOST_LISTS = 256 }; /* in a value, of which it is looked whether they hold names */

static bool lists_hold_names(const analysis *s, const value *v, unsigned *left)
{
    if (v->kind != VALUE_LIST)
        return false;
    if (v->record && v->fields_in && scope_arena(v->fields_in) == s->context.names)
        return true;
    if (*left == 0)
        return true;
    --*left;
    bool holds = false;
    budget_enter(s->arena);
    for (size_t i = 0; i < v->count && !holds; i++)
        holds = lists_hold_names(s, &v->items[i], left);
    budget_leave(s->arena);
    return holds;
}

bool holds_names(const analysis *s, const value *v)
{
    unsigned left = MOST_LISTS;
    return s->context.names && lists_hold_names(s, v, &left);
}

void names_end(const analysis *s, arena_mark before, const value *v)
{
    bool stay = s->keeps_names || (v && holds_names(s, v)) || (s->returning && holds_names(s, &s->returned)) ||
                (s->leaving != LEAVES_NOTHING && holds_names(s, &s->left_with));
    if (s->context.names && !stay)
        arena_rewind(s->context.names, before);
}
