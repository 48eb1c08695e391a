/* `x.f(..)`: a stage of a tensor, a function of a struct, or a method of a constant. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "support/budget.h"

STACK_APART static value build_stage(analysis *s, scope *names, const ast *n, const value *receiver, value *args, const declared *expected)
{
    stage_call call = {.scope = names, .kernel = s->kernel, .node = n, .receiver = *receiver, .args = args, .expected = expected};
    value v = stage_build(&call);
    if (v.kind == VALUE_ERROR)
        s->kernel->bad = true;
    return v;
}

/* `Branched::imm(guard, 1).rf(other, &vrf)`: the items of the value: the arguments of this call, then the receiver. */
STACK_APART static value evaluate_joined(analysis *s, const ast *n, const value *receiver, const value *args)
{
    unsigned given = ast_kid(n, 2)->kid_count;
    if (given != 2)
        return refuse(s, E_ARGUMENTS, n->name_range, "they are the guard and the operand", "`%s` takes 2 arguments, got %u", n->text,
                      given);
    value *items = ARENA_ARRAY(s->context.arena, value, 3), v = *receiver;
    items[0] = args[0];
    items[1] = args[1];
    items[2] = *receiver;
    if (items[0].kind == VALUE_ERROR || items[1].kind == VALUE_ERROR)
        return error_value;
    const ast *operand = stage_unborrowed_operand(ast_kid(n, 2)->kids[1], &items[1]);
    if (operand) {
        diag *d = refuse_diag(s, E_ARGUMENTS, operand->range, "`%s` takes a VrfTensor by reference, got it without `&`", n->text);
        stage_help_borrow(s->context.diags, d, operand, false);
        return error_value;
    }
    v.number = strcmp(n->text, "imm") == 0 ? VECTOR_IMMEDIATE : VECTOR_REGISTER;
    v.items = items;
    v.count = 3;
    return v;
}

/* `FpDivBinaryOp::DivF.with_mode(BinaryArgMode::Mode10)` */
STACK_APART static value evaluate_with_mode(analysis *s, const ast *n, const value *receiver, const value *args)
{
    unsigned given = ast_kid(n, 2)->kid_count;
    const char *help = "it is the mode: BinaryArgMode::Mode01";
    if (given != 1)
        return refuse(s, E_ARGUMENTS, n->name_range, help, "`%s` takes 1 argument, got %u", n->text, given);
    if (args->kind == VALUE_ERROR)
        return error_value;
    if (args->kind != VALUE_VARIANT)
        return refuse(s, E_ARGUMENTS, ast_kid(n, 2)->kids[0]->range, help, "`%s` does not take %s", n->text, value_kind_name(args));
    return (value){.kind = VALUE_OP_WITH_MODE, .number = receiver->number, .items = args, .count = 1};
}

static ast *segment_named(arena *a, const char *name, src_range range, const ast *arguments)
{
    ast *segment = ast_new(a, AST_SEGMENT, range);
    segment->text = name;
    segment->name_range = range;
    ast_push(a, segment, (ast *)arguments);
    return segment;
}

/* `w.f(x)` of a struct as `Name::f(w, x)`, the function of its `impl` (frontend/expand.h); NULL where it has none of the name. */
static const ast *call_of_method(analysis *s, scope *names, const ast *n, const value *receiver, symbol **function)
{
    const symbol *type = receiver->record ? scope_find(names, MODULE_NAMES, receiver->record->text) : NULL;
    symbol *y = type && type->inner ? scope_find_here(type->inner, VALUE_NAMES, n->text) : NULL;
    type_meant meant = {receiver->record, receiver->kind == VALUE_LIST ? receiver->fields_in : NULL};
    *function = y = y && y->other ? scope_given(y, &meant) : y;
    if (!y || y->kind != SYMBOL_FUNCTION)
        return NULL;
    arena *a = s->context.arena;
    const ast *params = ast_kid(y->node, 2), *first = params->kid_count ? ast_kid(params->kids[0], 1) : NULL, *list = ast_kid(n, 2);
    ast *call = ast_new(a, AST_CALL, n->range), *path = ast_new(a, AST_PATH, n->name_range), *given = ast_new(a, AST_LIST, list->range);
    ast_push(a, path, segment_named(a, receiver->record->text, n->name_range, ast_new(a, AST_NONE, n->name_range)));
    ast_push(a, path, segment_named(a, n->text, n->name_range, ast_kid(n, 1)));
    if (first && strcmp(first->text, "this") == 0)
        ast_push(a, given, (ast *)ast_kid(n, 0));
    ast_push_all(a, given, list->kids, list->kid_count);
    ast_push(a, call, path);
    ast_push(a, call, given);
    return call;
}

STACK_APART value evaluate_method(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *list = ast_kid(n, 2);
    declared *hint = NULL;
    if (ast_is(ast_kid(n, 0), AST_METHOD) && expected && expected->kind == DECLARED_TENSOR && expected->has_dtype &&
        stage_expects_dtype(n->text)) { /* what cast or fetch in front has to give */
        hint = ARENA_NEW(scope_arena(names), declared);
        *hint = (declared){.kind = DECLARED_TENSOR, .is_hint = true, .has_dtype = true, .tensor.dtype = expected->tensor.dtype};
    }
    value receiver = evaluate(s, names, ast_kid(n, 0), hint);
    symbol *function;
    const ast *own = call_of_method(s, names, n, &receiver, &function);
    if (own)
        return evaluate_method_of_type(s, names, own, function, &receiver, expected);
    value *args = ARENA_ARRAY(s->context.arena, value, list->kid_count);
    bool joins = variant_joins(&receiver, n->text), takes_mode = variant_takes_mode(&receiver, n->text);
    bool number = receiver.kind == VALUE_INT && constant_has_method(n->text);
    bool known = value_is_sequence(&receiver) || number || joins || takes_mode ||
                 stage_is_known(n->text); /* else what the arguments should be is not known either */
    for (uint32_t i = 0; i < list->kid_count; i++)
        args[i] = known ? evaluate_counted(s, names, list->kids[i], NULL) : error_value;
    if (s->stopped)
        return error_value;
    if (option_is(&receiver))
        return option_method(s, n, &receiver, args);
    if (value_is_sequence(&receiver))
        return constant_checked(s, n, constant_method(names, n, &receiver, args, list->kid_count));
    if (number)
        return constant_checked(s, n, constant_integer_method(names, n, receiver.number, args, list->kid_count));
    if (joins)
        return evaluate_joined(s, n, &receiver, args);
    if (takes_mode)
        return evaluate_with_mode(s, n, &receiver, args);
    return may_add_op(s, n->name_range) ? build_stage(s, names, n, &receiver, args, expected) : error_value;
}
