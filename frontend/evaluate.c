/* Expressions: what each kind of them gives, constants numbers and stages operations. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/cfg.h"
#include "frontend/constant.h"
#include "support/budget.h"

STACK_APART static value evaluate_integer(analysis *s, scope *names, const ast *n)
{
    int64_t number = 0;
    bool found = scope_integer(names, n, &number);
    return integer_found(s, found, number);
}

STACK_APART static value evaluate_binary(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    if (a.kind == VALUE_ERROR && strchr("<>", n->text[0])) /* `x.fetch<..>()` is no comparison, and its right side no value */
        return a;
    if (constant_decides(n->text, &a))
        return a;
    value b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_binary(names, n, n->text, &a, &b));
}

STACK_APART static value evaluate_unary(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    return constant_checked(s, n, constant_unary(names, n, &a));
}

STACK_APART static value evaluate_cast(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    return refuse_computed(s, n, constant_checked(s, n, constant_cast(names, n, &a)));
}

STACK_APART static value evaluate_range(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL), b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_range(names, n, &a, &b));
}

bool may_be_counted(const value *v)
{
    return v->kind == VALUE_INT || v->kind == VALUE_FLOAT || v->kind == VALUE_BOOL || value_is_sequence(v);
}

value evaluate_counted(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *before = s->counted;
    bool chosen_before = s->chosen;
    s->counted = NULL;
    s->chosen = false;
    value v = evaluate(s, names, n, expected);
    v.loop = may_be_counted(&v) ? s->counted : NULL;
    v.chosen = v.loop && s->chosen;
    s->counted = s->counted ? s->counted : before;
    s->chosen = s->chosen || chosen_before;
    return v;
}

/* `const { .. }`: a value that is known when the kernel is compiled. */
STACK_APART static value evaluate_const_block(analysis *s, scope *names, const ast *n, const declared *expected)
{
    size_t ops_before = s->kernel->op_count;
    s->in_const++;
    s->may_return = s->may_leave = false;
    value v = evaluate_block(s, names, ast_kid(n, 0), expected);
    s->in_const--;
    if (v.kind != VALUE_ERROR && s->kernel->op_count != ops_before)
        return refuse(s, E_CONST, n->range, "take the stages out of the block", "`const { .. }` holds constants; this one has stages");
    return v;
}

/* `assert!(condition, "message")`, with expand.c's arguments; anything else is a macro that nobody knows. */
STACK_APART static value evaluate_assertion(analysis *s, scope *names, const ast *n)
{
    const ast *arguments = ast_kid(n, 1);
    bool holds;
    if (strcmp(n->text, "cfg") == 0 && cfg_holds(ast_kid(n, 0)->text, &holds))
        return (value){.kind = VALUE_BOOL, .number = holds};
    if (!ast_is(arguments, AST_LIST))
        return unsupported(s, n);
    if (s->in_const == 0)
        return refuse(s, E_UNSUPPORTED, n->name_range,
                      arena_printf(s->context.arena, "write const { %s!(..) }: it is checked when the kernel is compiled", n->text),
                      "a kernel cannot stop: `%s!` is no stage of it", n->text);
    bool equal = strstr(n->text, "_eq") != NULL, compares = equal || strstr(n->text, "_ne") != NULL;
    if (arguments->kid_count < (compares ? 2u : 1u))
        return refuse(s, E_ARGUMENTS, n->name_range, NULL, "`%s!` takes %s", n->text, compares ? "two values" : "a condition");
    value a = evaluate(s, names, arguments->kids[0], NULL), b = compares ? evaluate(s, names, arguments->kids[1], NULL) : a;
    if (compares)
        a = constant_checked(s, n, constant_binary(names, n, equal ? "==" : "!=", &a, &b));
    if (a.kind == VALUE_ERROR)
        return a;
    if (a.kind != VALUE_BOOL)
        return refuse(s, E_CONST, arguments->kids[0]->range, "compare constants: `A::SIZE == 4`", "`%s!` takes a condition, got %s",
                      n->text, value_kind_name(&a));
    if (a.number)
        return (value){.kind = VALUE_UNIT};
    const ast *said = ast_kid(arguments, compares ? 2 : 1);
    return refuse(s, E_ASSERT, n->range, "the sizes that it compares are those of axes! and const items, or of -D NAME=VALUE",
                  "assertion failed%s%s", ast_is(said, AST_STRING) ? ": " : "", ast_is(said, AST_STRING) ? said->text : "");
}

static value evaluate_return(analysis *s, scope *names, const ast *n);

/* `&x`, `*x`: the same value, which may be a reference from here on. */
STACK_APART static value evaluate_borrowed(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value v = evaluate(s, names, ast_kid(n, 0), expected);
    v.owned = false;
    return v;
}

static value evaluate_kind(analysis *s, scope *names, const ast *n, const declared *expected)
{
    switch (n->kind) {
    case AST_NONE: return (value){.kind = VALUE_UNIT};
    case AST_ERROR: s->kernel->bad = true; return error_value;
    case AST_PATH:
    case AST_TYPE_PATH: /* a generic argument is a type by its place */
        return n->kid_count >= 2 ? evaluate_variant(s, names, n) : evaluate_name(s, names, n, n->kids[0]->text, expected);
    case AST_BORROW:
    case AST_DEREF: return evaluate_borrowed(s, names, n, expected);
    case AST_FIELD: return evaluate_field(s, names, n);
    case AST_METHOD: return evaluate_method(s, names, n, expected);
    case AST_INT:
    case AST_TYPE_QUALIFIED: return evaluate_integer(s, names, n);
    case AST_BOOL: return (value){.kind = VALUE_BOOL, .number = n->value};
    case AST_UNARY: return evaluate_unary(s, names, n);
    case AST_BINARY: return evaluate_binary(s, names, n);
    case AST_CAST: return evaluate_cast(s, names, n);
    case AST_RANGE: return evaluate_range(s, names, n);
    case AST_INDEX: return evaluate_index(s, names, n);
    case AST_TUPLE:
    case AST_ARRAY: return n->kid_count == 0 && ast_is(n, AST_TUPLE) ? (value){.kind = VALUE_UNIT} : evaluate_list(s, names, n, expected);
    case AST_ARRAY_REPEAT: return evaluate_repeat(s, names, n);
    case AST_IF: return evaluate_if(s, names, n, expected);
    case AST_FOR: return evaluate_for(s, names, n);
    case AST_ASSIGN: return evaluate_assignment(s, names, n);
    case AST_CALL: return evaluate_call(s, names, n, expected);
    case AST_UNSAFE: return evaluate_block(s, names, ast_kid(n, 0), expected);
    case AST_CONST_BLOCK: return evaluate_const_block(s, names, n, expected);
    case AST_FLOAT: return constant_float(names, n);
    case AST_MACRO: return evaluate_assertion(s, names, n);
    case AST_STRUCT_LITERAL: return evaluate_struct(s, names, n, expected);
    case AST_BLOCK: return n->text[0] ? evaluate_labelled(s, names, n, expected) : evaluate_block(s, names, n, expected);
    case AST_MATCH: return evaluate_match(s, names, n, expected);
    case AST_WHILE: return evaluate_while(s, names, n);
    case AST_UNSUPPORTED:
        return strcmp(n->text, "return") == 0                                      ? evaluate_return(s, names, n)
               : strcmp(n->text, "break") == 0 || strcmp(n->text, "continue") == 0 ? evaluate_leave(s, names, n)
                                                                                   : unsupported(s, n);
    default: return unsupported(s, n);
    }
}

/* Is nothing half done where a statement in it ends the function or a loop? */
static bool is_whole_statement(const ast *n)
{
    return ast_is(n, AST_IF) || ast_is(n, AST_BLOCK) || ast_is(n, AST_UNSAFE) || ast_is(n, AST_UNSUPPORTED) || ast_is(n, AST_MATCH) ||
           ast_is(n, AST_WHILE) || ast_is(n, AST_FOR);
}

value evaluate(analysis *s, scope *names, const ast *n, const declared *expected)
{
    if (s->stopped)
        return error_value;
    bool outer = s->may_return;
    budget_spend_at(s->arena, n->range, 1);
    budget_enter(s->arena);
    bool may_leave = s->may_leave, whole = is_whole_statement(n);
    s->may_return = outer && whole;
    s->may_leave = may_leave && whole;
    value v = evaluate_kind(s, names, n, expected);
    s->may_return = outer;
    s->may_leave = may_leave;
    budget_leave(s->arena);
    return v;
}

/* `return value` where nothing is left half done: in the statements of a function and in those of its blocks and `if`s. */
STACK_APART static value evaluate_return(analysis *s, scope *names, const ast *n)
{
    if (!s->may_return)
        return unsupported(s, n);
    s->returned = evaluate(s, names, ast_kid(n, 1), s->result);
    s->returned_by = ast_is(ast_kid(n, 1), AST_NONE) ? n : ast_kid(n, 1);
    s->returning = true;
    return s->returned;
}

value evaluate_body(analysis *s, scope *names, const ast *body, const declared *result, const declared *expected, const ast **given)
{
    const struct declared *outer_result = s->result;
    bool outer = s->may_return, may_leave = s->may_leave;
    const frame *frames = s->frames;
    s->may_leave = false;
    s->frames = NULL;
    s->result = result->kind == DECLARED_TENSOR || result->tuple || result->array || result->record ? result : expected;
    s->may_return = true;
    value v = evaluate_block(s, names, body, s->result);
    if (given)
        *given = s->returning ? s->returned_by : body->kid_count == 0 ? body : ast_kid(ast_statement(body->kids[body->kid_count - 1]), 0);
    s->returning = false;
    s->may_return = outer;
    s->may_leave = may_leave;
    s->frames = frames;
    s->result = outer_result;
    return v;
}
