/* Blocks: their statements in order, and what each leaves to those after it. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/index.h"
#include "frontend/stage.h"
#include "ir/work.h"
#include "support/budget.h"

/* ---- let ---- */

/* `let P = v else { .. }`: true if v fits P, or the block was left; what does not fit and goes on is refused, and no value. */
STACK_APART static bool let_fits(analysis *s, scope *names, const ast *let, const value *v)
{
    bool wrong = false;
    if (let->kid_count <= 3 || v->kind == VALUE_ERROR || pattern_fits(s, names, ast_kid(let, 0), v, &wrong) || wrong)
        return true;
    evaluate_block(s, names, let->kids[3], NULL);
    if (!is_left(s) && !s->stopped)
        refuse(s, E_CONST, let->kids[3]->range, "end it with `return`, `break` or `panic!`", "this `else` goes on after the `let`");
    return is_left(s);
}

/* `later`: what the variable gives, where it is the value of the block; NULL: not known. */
STACK_APART static void evaluate_let(analysis *s, scope *names, const ast *let, const declared *later)
{
    declared *annotation = ARENA_NEW(scope_arena(names), declared);
    *annotation = scope_type(names, ast_kid(let, 1));
    if (annotation->kind == DECLARED_ERROR)
        s->kernel->bad = true;
    size_t before = s->kernel->op_count;
    value v = evaluate_counted(s, names, ast_kid(let, 2), annotation->kind == DECLARED_NONE && later ? later : annotation);
    bool other = v.kind == VALUE_TENSOR && annotation->kind == DECLARED_TENSOR && v.op->bad && v.op->out.kind != annotation->tensor.kind;
    if (is_left(s))
        return;
    bool fits = let_fits(s, names, let, &v);
    if (is_left(s))
        return;
    if (!fits || annotation->kind == DECLARED_ERROR || other) /* what it gives is not what is meant */
        v = error_value;
    if (v.kind == VALUE_TENSOR)
        stage_adopt(v.op, annotation);
    if (v.kind == VALUE_TENSOR && s->kernel->op_count == before && !v.op->bad &&
        !stage_check_type(names, ast_kid(let, 2)->range, &v.op->out, annotation))
        s->kernel->bad = true;
    bind_pattern(s, names, ast_kid(let, 0), &v, annotation->kind == DECLARED_TENSOR ? annotation : NULL);
}

static bool is_name(const ast *expression, const char *name)
{
    return ast_is(expression, AST_PATH) && expression->kid_count == 1 && strcmp(expression->kids[0]->text, name) == 0;
}

static bool names_variable(const ast *pattern, const char *name)
{
    for (uint32_t i = 0; i < pattern->kid_count; i++)
        if (names_variable(pattern->kids[i], name))
            return true;
    return ast_is(pattern, AST_PAT_NAME) && strcmp(pattern->text, name) == 0;
}

/* Is the variable of the block's `let` number `index`, or a tuple with it, the block's value? Then *out is the variable's type. */
STACK_APART static bool goes_to(const ast *block, uint32_t index, const declared *expected, declared *out)
{
    const ast *last = ast_statement(block->kids[block->kid_count - 1]), *given = ast_given(ast_kid(last, 0)),
              *pattern = ast_kid(ast_statement(block->kids[index]), 0);
    bool is_value = ast_is(last, AST_EXPR_STMT) && (last->text[0] == '\0' || given != ast_kid(last, 0));
    if (!expected || !is_value || !ast_is(pattern, AST_PAT_NAME))
        return false;
    bool list = ast_is(given, AST_TUPLE) || ast_is(given, AST_ARRAY), record = ast_is(given, AST_STRUCT_LITERAL) && expected->record;
    bool found = is_name(given, pattern->text);
    *out = found ? *expected : (declared){0};
    for (uint32_t i = 0; list && i < given->kid_count && !found; i++)
        if ((found = is_name(given->kids[i], pattern->text)))
            *out = part_type(expected, i, given->kid_count);
    for (uint32_t i = 0; record && i < ast_kid(expected->record, 2)->kid_count && !found; i++) {
        const ast *init = init_of(given, ast_kid(ast_kid(expected->record, 2)->kids[i], 1)->text);
        const ast *from = init ? ast_kid(init, 0) : NULL;
        if ((found = from && (ast_is(from, AST_NONE) ? strcmp(init->text, pattern->text) == 0 : is_name(from, pattern->text))))
            *out = part_type(expected, i, ast_kid(expected->record, 2)->kid_count);
    }
    for (uint32_t i = index + 1; i < block->kid_count && found; i++)
        found =
            !ast_is(ast_statement(block->kids[i]), AST_LET) || !names_variable(ast_kid(ast_statement(block->kids[i]), 0), pattern->text);
    if (!found)
        return false;
    out->is_hint = true;
    return out->kind == DECLARED_TENSOR;
}

/* The variables of a `let` that was not understood: what stood under their names before is not meant any more. */
static void bind_lost(scope *names, const ast *error)
{
    for (uint32_t i = 0; i < error->kid_count; i++)
        if (error->kids[i]->value) {
            symbol *y = scope_add(names, SYMBOL_VARIABLE, error->kids[i]->text, error->kids[i]->range);
            y->value = error_value;
            y->node = error;
        }
}

STACK_APART static void bind_pattern_lost(analysis *s, scope *names, const ast *let)
{
    declared *any = ARENA_NEW(scope_arena(names), declared);
    *any = scope_type(names, ast_kid(let, 1));
    bind_pattern(s, names, ast_kid(let, 0), &error_value, any->kind == DECLARED_TENSOR ? any : NULL);
}

/* ---- #[after(name)] ---- */

/* The operation that ends the work which made the named memory; NULL: diagnosed. */
STACK_APART static const op *pin_of(analysis *s, scope *names, const ast *n)
{
    symbol *y = n->text[0] != '\0' ? scope_find(names, VALUE_NAMES, n->text) : NULL;
    bool memory = y && y->kind == SYMBOL_VARIABLE && (y->value.kind == VALUE_TENSOR || y->value.kind == VALUE_VIEW);
    const op *o = memory ? op_memory(y->value.op) : NULL;
    if ((y && y->value.kind == VALUE_ERROR) || (o && (o->bad || op_ends_work(o))))
        return o;
    s->kernel->bad = true;
    diag *d = n->text[0] == '\0' ? diag_add(s->context.diags, E_AFTER, n->name_range, "`after` takes the name of a variable")
              : o ? diag_add(s->context.diags, E_AFTER, n->name_range, "`%s` is there from the beginning, or written in parts", n->text)
                  : diag_add(s->context.diags, E_AFTER, n->name_range, "`%s` is no tensor that was made before", n->text);
    diag_help(s->context.diags, d, "name what a copy, `commit` or `to_trf` before this statement gave: #[after(name)]");
    return NULL;
}

/* The statement after its pins; each of its copies and chains is then issued after the last of the named ones. */
typedef struct pin_list {
    const op *after;
    size_t ops_before;
} pin_list;

STACK_APART static pin_list pins_begin(analysis *s, scope *names, const ast **n)
{
    pin_list pins = {NULL, s->kernel->op_count};
    for (; ast_is(*n, AST_AFTER); *n = ast_kid(*n, 0)) {
        const op *o = pin_of(s, names, *n);
        if (o && (!pins.after || o->index > pins.after->index))
            pins.after = o;
    }
    return pins;
}

static void pins_end(analysis *s, const pin_list *pins)
{
    for (size_t i = pins->ops_before; pins->after && i < s->kernel->op_count; i++)
        if (op_ends_work(s->kernel->ops[i]))
            s->kernel->ops[i]->after = pins->after;
}

/* ---- statements ---- */

/* A stage as a statement: what it gives is dropped. */
STACK_APART static void warn_discarded(analysis *s, const ast *statement, const value *v, size_t ops_before)
{
    if (v->kind != VALUE_TENSOR || v->op->index < ops_before || v->op->bad || s->kernel->bad)
        return;
    diag *d = diag_add(s->context.diags, W_DISCARDED, ast_kid(statement, 0)->name_range, "the %s of `%s` is not used",
                       tensor_kind_word(v->op->out.kind), op_kind_word(v->op->kind));
    diag_help(s->context.diags, d, "bind it: `let name = ..;`, or remove the statement");
}

static bool is_item(const ast *n)
{
    return n->kind >= AST_AXES && n->kind <= AST_ITEM_IGNORED;
}

/* Was the statement's chain cut by a `;`? The rest of it is the text that was not understood after it. */
static bool is_cut(const ast *block, uint32_t index)
{
    const ast *next = index + 1 < block->kid_count ? block->kids[index + 1] : NULL;
    return next && ast_is(next, AST_ERROR) && strcmp(next->text, ".") == 0;
}

/* What follows a `return` of the same block: no call of the function comes there. */
STACK_APART static void warn_unreachable(analysis *s, const ast *block, uint32_t at)
{
    const ast *given = ast_is(block->kids[at], AST_EXPR_STMT) ? ast_kid(block->kids[at], 0) : block->kids[at];
    if (!s->returning || !ast_is(given, AST_UNSUPPORTED) || s->returned.kind == VALUE_ERROR)
        return;
    for (uint32_t i = at + 1; i < block->kid_count; i++) {
        if (is_item(block->kids[i]) || ast_is(block->kids[i], AST_ATTR))
            continue;
        diag *d = diag_add(s->context.diags, W_UNREACHABLE, block->kids[i]->range, "what follows this `return` is not checked");
        diag_note(s->context.diags, d, given->range, "the function ends here");
        diag_help(s->context.diags, d, "remove one of the two");
        return;
    }
}

value evaluate_block(analysis *s, scope *outer, const ast *block, const declared *expected)
{
    budget_enter(s->arena);
    arena_mark before = names_begin(s);
    scope *inner = scope_new(&s->context, outer);
    value last = {.kind = VALUE_UNIT};
    declared later;
    index_add_scope(&s->context, block->range, inner);
    size_t unnamed = s->unnamed_count;
    collect_items(s, inner, block, 0);
    resolve_uses(s);
    read_unnamed(s, unnamed);
    for (uint32_t i = 0; i < block->kid_count && !s->stopped && !is_left(s); i++) {
        const ast *n = block->kids[i];
        pin_list pins = pins_begin(s, inner, &n);
        if (is_cut(block, i) && (ast_is(n, AST_LET) || ast_is(n, AST_EXPR_STMT))) {
            s->kernel->bad = true;
            if (ast_is(n, AST_LET))
                bind_pattern_lost(s, inner, n);
        } else if (ast_is(n, AST_LET)) {
            evaluate_let(s, inner, n, goes_to(block, i, expected, &later) ? &later : NULL);
        } else if (ast_is(n, AST_EXPR_STMT)) {
            bool is_last = i + 1 == block->kid_count, is_tail = is_last && n->text[0] == '\0';
            bool meant = is_last && !is_tail && expected && expected->kind == DECLARED_TENSOR; /* the value, but for the `;` */
            size_t ops_before = s->kernel->op_count;
            if (meant) {
                later = *expected;
                later.is_hint = true;
            }
            value v = evaluate(s, inner, ast_kid(n, 0), is_tail ? expected : meant ? &later : NULL);
            if (is_tail || (is_last && v.kind == VALUE_ERROR))
                last = v;
            else if (!meant && !is_left(s))
                warn_discarded(s, n, &v, ops_before);
        } else if (ast_is(n, AST_ERROR)) {
            s->kernel->bad = true;
            last = error_value;
            bind_lost(inner, n);
        } else if (!is_item(n) && !ast_is(n, AST_ATTR)) {
            value v = evaluate(s, inner, n, i + 1 == block->kid_count ? expected : NULL); /* in the frame's place of the one above */
            last = v;
        }
        pins_end(s, &pins);
        warn_unreachable(s, block, i);
    }
    names_end(s, before, &last);
    budget_leave(s->arena);
    return s->returning ? s->returned : last;
}
