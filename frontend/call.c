/* Calls: a function is compiled where it is called, and from_addr gives memory at an address. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/parse.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "support/budget.h"

/* `HbmTensor::<..>::from_addr(address)`: memory that is written through views. */
STACK_APART static value evaluate_from_addr(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *callee = ast_kid(n, 0), *args = ast_kid(n, 1);
    declared d = scope_type_of_path(names, callee);
    value address = args->kid_count == 1 ? evaluate(s, names, args->kids[0], NULL) : error_value;
    if (d.kind == DECLARED_ERROR || (args->kid_count == 1 && address.kind == VALUE_ERROR)) {
        s->kernel->bad = true;
        return error_value;
    }
    if (d.kind != DECLARED_TENSOR || d.is_view || (d.tensor.kind != TENSOR_HBM && d.tensor.kind != TENSOR_DM))
        return refuse(s, E_UNSUPPORTED, callee->range, "HbmTensor and DmTensor have addresses",
                      "`from_addr` is not supported on this type");
    if (address.kind != VALUE_INT || address.number < 0)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`from_addr` takes an address in bytes, an integer of at least 0");
    if (expected && expected->kind == DECLARED_TENSOR && expected->tensor.kind == d.tensor.kind) {
        for (int c = 0; c < MAPPING_COMPONENTS; c++)
            if (!d.tensor.part[c])
                d.tensor.part[c] = expected->tensor.part[c];
        if (!d.has_dtype)
            d.tensor.dtype = expected->tensor.dtype;
        d.has_dtype = d.has_dtype || expected->has_dtype;
    }
    if (!require_whole(s, &d, "the tensor at this address"))
        return error_value;
    op *o = kernel_add(s->kernel, s->context.arena, IR_ALLOC, CONTEXT_DMA, callee->range);
    o->out = d.tensor;
    o->out.address = address.number;
    memcpy(o->parts, d.parts, sizeof o->parts);
    if (!stage_check_type(names, n->range, &o->out, expected))
        o->bad = s->kernel->bad = true;
    return (value){.kind = VALUE_TENSOR, .op = o};
}

/* A parameter of a function that is inlined: the argument, read in `names`, under a new name. */
STACK_APART static void bind_parameter(analysis *s, scope *inner, const ast *param, scope *names, const ast *argument)
{
    declared *d = ARENA_NEW(scope_arena(inner), declared);
    *d = scope_type(inner, ast_kid(param, 2));
    declared *hint = ARENA_NEW(scope_arena(inner), declared);
    *hint = *d;
    hint->is_hint = true;
    value v = evaluate(s, names, argument, hint);
    bool memory = v.kind == VALUE_TENSOR || v.kind == VALUE_VIEW;
    if (d->kind == DECLARED_ERROR) {
        s->kernel->bad = true;
        v = error_value;
    } else if (v.kind != VALUE_ERROR &&
               ((d->kind == DECLARED_TENSOR) != memory || (d->kind == DECLARED_TENSOR && d->is_view != (v.kind == VALUE_VIEW)) ||
                (d->kind == DECLARED_CONTEXT) != (v.kind == VALUE_CONTEXT))) {
        diag *e = diag_add(s->context.diags, E_MISMATCH, argument->range, "the argument is %s, but the parameter has another type",
                           value_kind_name(&v));
        diag_note(s->context.diags, e, ast_kid(param, 2)->range, "declared here");
        if (memory && d->kind == DECLARED_TENSOR && d->tensor.kind == v.op->out.kind)
            diag_help(s->context.diags, e, d->is_view ? "pass a view of it: `.view()`" : "pass the tensor itself: no `.view()`");
        else if (memory)
            diag_help(s->context.diags, e, "what takes it is %s%s<Dtype, ..>", tensor_kind_name(v.op->out.kind),
                      v.kind == VALUE_VIEW ? "View" : "");
        s->kernel->bad = true;
        v = error_value;
    } else if (memory && d->kind == DECLARED_TENSOR && !v.op->bad && !stage_check_type(inner, argument->range, &v.op->out, d)) {
        s->kernel->bad = true;
    } else if (v.kind == VALUE_VIEW && d->mutable && !v.writable) {
        v = refuse(s, E_VIEW_READ_ONLY, argument->range, "write view_mut() instead of view()",
                   "the function writes into this view, which is only read");
    }
    if (v.kind == VALUE_VIEW)
        v.writable = v.writable && d->mutable;
    bind_pattern(s, inner, ast_kid(param, 1), v, d->kind == DECLARED_TENSOR ? d : NULL);
}

/* Of a number, a condition or a choice; a parameter of another type (`const T: Tu`) carries no meaning. */
static bool carries_value(const ast *type)
{
    static const char *const types[] = {"usize",      "isize",           "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bool",
                                        "TrfAddress", "AccumulationKind"};
    const ast *name = ast_last_segment(type);
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], name->text) == 0)
            return true;
    return false;
}

STACK_APART static void bind_const_parameter(analysis *s, scope *inner, const ast *param, scope *names, const ast *argument)
{
    const ast *expression = ast_is(argument, AST_CONST_ARG) ? ast_kid(argument, 0) : argument;
    value v = evaluate(s, names, expression, NULL);
    if (v.kind != VALUE_ERROR && !is_of_type(s, param->text, ast_kid(param, 0), expression, &v)) {
        s->kernel->bad = true;
        v = error_value;
    }
    scope_add(inner, SYMBOL_VARIABLE, param->text, param->name_range)->value = v;
}

void declare_generics(analysis *s, scope *inner, const ast *fn, scope *names, const ast *path)
{
    const ast *generics = ast_kid(fn, 1), *segment = path ? ast_last_segment(path) : NULL, *given = segment ? ast_kid(segment, 0) : NULL;
    uint32_t next = 0, wanted = 0, got = 0;
    for (uint32_t i = 0; given && i < given->kid_count; i++)
        got += !ast_is(given->kids[i], AST_LIFETIME);
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i];
        if (ast_is(g, AST_GENERIC_LIFETIME))
            continue;
        wanted++;
        while (given && next < given->kid_count && ast_is(given->kids[next], AST_LIFETIME))
            next++;
        const ast *argument = given && next < given->kid_count ? given->kids[next++] : NULL;
        if (ast_is(g, AST_GENERIC_CONST) && argument && carries_value(ast_kid(g, 0))) {
            bind_const_parameter(s, inner, g, names, argument);
            continue;
        }
        scope_add(inner, SYMBOL_CONST_PARAM, g->text, g->name_range); /* a type where a context is meant: `const` was forgotten */
        if (ast_is(g, AST_GENERIC_TYPE)) {
            refuse(s, E_UNSUPPORTED, g->range, "write one function per type", "generic type parameters are not supported in .vm kernels");
            scope_add_lost(inner, g->text);
        }
    }
    if (got > wanted)
        refuse(s, E_ARGUMENTS, path->range, NULL, "`%s` takes %u generic arguments, got %u", fn->text, wanted, got);
}

/* A function that is called is compiled where it is called. */
STACK_APART static value evaluate_function(analysis *s, scope *names, const ast *n, symbol *y, const declared *expected)
{
    const ast *fn = y->node, *params = ast_kid(fn, 2), *args = ast_kid(n, 1), *body = ast_kid(fn, 4);
    if (y->busy)
        return refuse(s, E_UNSUPPORTED, n->range, "use a constant `for`", "recursion is not supported in .vm kernels: `%s` calls itself",
                      y->name);
    if (args->kid_count != params->kid_count)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`%s` takes %u arguments, got %u", y->name, params->kid_count, args->kid_count);
    if (!ast_is(body, AST_BLOCK))
        return refuse(s, E_UNSUPPORTED, n->range, NULL, "`%s` has no body", y->name);
    if (!spend(s, n->range, 1))
        return error_value;
    budget_enter(s->arena);
    budget_spend(s->arena, s->context.diags->count); /* that parse_was_broken looks at */
    names_mark before_names = names_begin(s);
    scope *inner = scope_new(&s->context, y->scope);
    declare_generics(s, inner, fn, names, ast_kid(n, 0));
    for (uint32_t i = 0; i < params->kid_count; i++)
        bind_parameter(s, inner, params->kids[i], names, args->kids[i]);
    declared result = scope_type(inner, ast_kid(fn, 3));
    bool repeated = s->kernel->repeating, broken = s->broken;
    s->broken = broken || parse_was_broken(s->context.diags, fn->range);
    set_repeated(s, repeated || y->calls++ > 0);
    y->busy = true;
    size_t before = s->kernel->op_count;
    value v = evaluate_block(s, inner, body, result.kind == DECLARED_TENSOR || result.tuple ? &result : expected);
    y->busy = false;
    if (v.kind == VALUE_TENSOR && result.kind == DECLARED_TENSOR) {
        stage_adopt(v.op, &result);
        if (s->kernel->op_count == before && !stage_check_type(inner, body->range, &v.op->out, &result))
            s->kernel->bad = true;
    }
    set_repeated(s, repeated);
    s->broken = broken;
    names_end(before_names);
    budget_leave(s->arena);
    return result.kind == DECLARED_NONE || result.kind == DECLARED_UNIT ? (value){.kind = v.kind == VALUE_ERROR ? VALUE_ERROR : VALUE_UNIT}
                                                                        : v;
}

/* `FpBinaryOp::MulF(FpMulAlu::Mul0)` */
STACK_APART static value evaluate_variant_of(analysis *s, scope *names, const ast *n)
{
    const ast *callee = ast_kid(n, 0), *args = ast_kid(n, 1);
    if (args->kid_count != 1)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`%s` takes one argument, got %u", callee->kids[callee->kid_count - 1]->text,
                      args->kid_count);
    value argument = evaluate(s, names, args->kids[0], NULL), v;
    if (argument.kind == VALUE_ERROR)
        return argument;
    const char *why = variant_find(s->context.arena, callee, &argument, &v);
    return why ? refuse(s, E_ARGUMENTS, args->kids[0]->range, why, "`%s` does not take %s", callee->kids[callee->kid_count - 1]->text,
                        value_kind_name(&argument))
               : v;
}

value evaluate_call(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *callee = ast_kid(n, 0);
    symbol *y = ast_is(callee, AST_PATH) ? scope_find_path(names, VALUE_NAMES, callee) : NULL;
    if (y && y->kind == SYMBOL_FUNCTION)
        return evaluate_function(s, names, n, y, expected);
    if (ast_is(callee, AST_PATH) && callee->kid_count >= 2 && strcmp(callee->kids[callee->kid_count - 1]->text, "from_addr") == 0)
        return evaluate_from_addr(s, names, n, expected);
    if (!y && ast_is(callee, AST_PATH) && variant_takes_argument(callee))
        return evaluate_variant_of(s, names, n);
    if (ast_is(callee, AST_PATH) && callee->kid_count > 0) {
        if (!y && scope_is_lost(names, callee->kids[callee->kid_count - 1]->text)) {
            s->kernel->bad = true;
            return error_value;
        }
        const char *name = callee->kids[callee->kid_count - 1]->text, *near = scope_suggest(names, name, SYMBOL_FUNCTION);
        return refuse(s, E_NAME, callee->range,
                      near ? arena_printf(s->context.arena, "did you mean `%s`?", near)
                           : "functions of the file and of its modules can be called",
                      "there is no function `%s`", name);
    }
    return unsupported(s, n);
}
