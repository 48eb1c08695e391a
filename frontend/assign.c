/* Assignments: to variables, and to parts of those that are constants. */
#include <stdlib.h>
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/stage.h"
#include "support/budget.h"

/* The elements of a list of constants that are assigned to are its own from then on. */
static value *own_part(analysis *s, value *whole, size_t i)
{
    value *items = ARENA_ARRAY(s->context.arena, value, whole->count);
    memcpy(items, whole->items, whole->count * sizeof *items);
    whole->items = items;
    return &items[i];
}

/* The value of `x`, `x.field`, `x[1]` of a variable x of constants, to be written; NULL: diagnosed. */
STACK_APART static value *place_of(analysis *s, scope *names, const ast *place, symbol *y)
{
    if (ast_is(place, AST_PATH))
        return &y->value;
    budget_enter(s->arena);
    value *whole = place_of(s, names, ast_kid(place, 0), y), *part = NULL;
    value at = whole && ast_is(place, AST_INDEX) ? evaluate_counted(s, names, ast_kid(place, 1), NULL) : error_value;
    if (whole && whole->kind != VALUE_LIST) {
        if (whole->kind != VALUE_ERROR)
            refuse(s, E_UNSUPPORTED, place->range, "assign to a variable; write into a part of a tensor through view_mut() and tile",
                   "assigning to a part of %s is not supported in .vm kernels", value_kind_name(whole));
    } else if (whole && ast_is(place, AST_INDEX)) {
        if (at.loop)
            refuse(s, E_UNSUPPORTED, ast_kid(place, 1)->range, "write #[unroll] in front of that loop",
                   "which element is assigned is known when the kernel runs");
        else if (at.kind == VALUE_INT && at.number >= 0 && (uint64_t)at.number < whole->count)
            part = own_part(s, whole, (size_t)at.number);
        else if (at.kind != VALUE_ERROR)
            refuse(s, E_CONST, ast_kid(place, 1)->range, NULL, "the index is no element of the %zu that there are", whole->count);
    } else if (whole && whole->record) {
        int64_t index = field_index(s, place, whole->record);
        part = index < 0 ? NULL : own_part(s, whole, (size_t)index);
    } else if (whole && place->text[0] >= '0' && place->text[0] <= '9' && strtoul(place->text, NULL, 10) < whole->count) {
        part = own_part(s, whole, strtoul(place->text, NULL, 10));
    } else if (whole) {
        refuse(s, E_NAME, place->name_range, NULL, "there is no field `%s` on %s", place->text, value_kind_name(whole));
    }
    s->kernel->bad = s->kernel->bad || !part;
    budget_leave(s->arena);
    return part;
}

/* `self.gain = 3`, `table[i] += 1`: of constants. */
STACK_APART static value assign_part(analysis *s, scope *names, const ast *n, symbol *y)
{
    value v = evaluate_counted(s, names, ast_kid(n, 1), NULL), *part = place_of(s, names, ast_kid(n, 0), y);
    if (!part || v.kind == VALUE_ERROR)
        return error_value;
    bool constant = may_be_counted(&v) && !v.loop && (v.kind == part->kind || part->kind == VALUE_ERROR);
    if (!constant || s->loop != y->loop || s->guard)
        return refuse(s, E_UNSUPPORTED, n->range, "build the array or struct anew, or write #[unroll] in front of the loop",
                      "parts of a variable are assigned constants, got %s", value_kind_name(&v));
    const char *operator= arena_strndup(s->context.arena, n->text, strlen(n->text) - 1);
    *part = operator[0] ? constant_checked(s, n, constant_binary(names, n, operator, part, &v)) : v;
    return (value){.kind = VALUE_UNIT};
}

/* `(a, _) = pair;`: each a variable. */
STACK_APART static value assign_each(analysis *s, scope *names, const ast *n)
{
    const ast *places = ast_kid(n, 0);
    value v = evaluate_counted(s, names, ast_kid(n, 1), NULL);
    if (v.kind == VALUE_ERROR)
        return v;
    if (v.kind != VALUE_LIST || v.count != places->kid_count)
        return refuse(s, E_MISMATCH, places->range, NULL, "this takes %u values, but the value is %s", places->kid_count,
                      value_kind_name(&v));
    for (uint32_t i = 0; i < places->kid_count; i++) {
        const ast *place = places->kids[i];
        symbol *y = ast_is(place, AST_PATH) && place->kid_count == 1 ? scope_find(names, VALUE_NAMES, place->kids[0]->text) : NULL;
        bool fits = y && y->kind == SYMBOL_VARIABLE && y->mutable && may_be_counted(&v.items[i]) && s->loop == y->loop && !s->guard;
        if (!fits)
            return refuse(s, E_UNSUPPORTED, place->range, "assign to one variable after the other",
                          "assigning to this %s among others is not supported in .vm kernels", ast_kind_name(place->kind));
        y->value = v.items[i];
    }
    return (value){.kind = VALUE_UNIT};
}

static const ast *whole_of(const ast *place)
{
    while (ast_is(place, AST_FIELD) || ast_is(place, AST_INDEX) || ast_is(place, AST_DEREF))
        place = ast_kid(place, 0);
    return place;
}

STACK_APART value evaluate_assignment(analysis *s, scope *names, const ast *n)
{
    const ast *written = ast_kid(n, 0), *place = whole_of(written);
    if (ast_is(written, AST_TUPLE) && written->kid_count > 0 && n->text[1] == '\0')
        return assign_each(s, names, n);
    if (!ast_is(place, AST_PATH) || place->kid_count != 1)
        return refuse(s, E_UNSUPPORTED, place->range, "assign to a variable; write into a part of a tensor through view_mut() and tile",
                      "assigning to this %s is not supported in .vm kernels", ast_kind_name(place->kind));
    const char *name = place->kids[0]->text;
    symbol *y = scope_find(names, VALUE_NAMES, name);
    bool compound = strcmp(n->text, "=") != 0;
    bool of_part = place != written && !ast_is(written, AST_DEREF) && y && y->kind == SYMBOL_VARIABLE;
    value v = of_part ? (value){.kind = VALUE_UNIT} : evaluate_counted(s, names, ast_kid(n, 1), y && !compound ? y->declared : NULL);
    if (!y && scope_is_lost(names, name)) {
        s->kernel->bad = true;
        return error_value;
    }
    if (!y || y->kind != SYMBOL_VARIABLE) {
        const char *near = scope_suggest(names, name, SYMBOL_VARIABLE);
        return refuse(s, E_NAME, place->range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : NULL,
                      "`%s` is not a variable", name);
    }
    if (!y->mutable && y->value.kind != VALUE_UNIT && y->value.kind != VALUE_ERROR) {
        diag *d = diag_add(s->context.diags, E_IMMUTABLE, place->range, "`%s` is assigned again, but it is not `mut`", name);
        diag_note(s->context.diags, d, y->range, "`%s` is bound here", name);
        diag_help(s->context.diags, d, "let mut %s", name);
        s->kernel->bad = true;
    }
    if (y->runs_if != s->kernel->runs_if)
        return refuse(s, E_UNSUPPORTED, place->range, "let a tensor be there before, and write into a view of it",
                      "`%s` is assigned in an `if` that is decided when the kernel runs", name);
    if (of_part)
        return assign_part(s, names, n, y);
    if (compound) {
        const char *operator= arena_strndup(s->context.arena, n->text, strlen(n->text) - 1);
        const ast *loop = v.loop ? v.loop : y->value.loop;
        bool chosen = v.chosen || y->value.chosen;
        v = constant_checked(s, n, constant_binary(names, n, operator, & y->value, &v));
        v.loop = loop;
        v.chosen = chosen;
    }
    if (!v.loop && may_be_counted(&v)) /* in a loop, or where a loop decides, a variable from outside of it changes while it runs */
        v.loop = y->loop != s->loop ? s->loop : s->guard;
    v.chosen = v.chosen || (v.loop && s->guard);
    if (v.kind == VALUE_TENSOR && y->declared && !v.op->bad && !stage_check_type(names, ast_kid(n, 1)->range, &v.op->out, y->declared))
        s->kernel->bad = true;
    if (v.kind == VALUE_TENSOR && v.op->name[0] == '\0')
        v.op->name = name;
    s->keeps_names = s->keeps_names || holds_names(s, &v);
    y->value = v;
    y->moved = false;
    return (value){.kind = VALUE_UNIT};
}
