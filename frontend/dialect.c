#include "frontend/dialect.h"

#include <string.h>

#include "frontend/stage.h"
#include "support/budget.h"

static unsigned count_of(const ast *list)
{
    return ast_is(list, AST_GENERIC_ARGS) ? list->kid_count : 0;
}

/* `DmTensor::<..>::new()`, and whatever else is called on a type of memory. */
static unsigned of_function(const ast *call)
{
    const ast *callee = ast_kid(call, 0);
    if (!ast_is(callee, AST_PATH) || callee->kid_count < 2)
        return 0;
    const char *type = callee->kids[callee->kid_count - 2]->text;
    bool memory = strcmp(type, tensor_kind_name(TENSOR_HBM)) == 0 || strcmp(type, tensor_kind_name(TENSOR_DM)) == 0;
    return memory ? stage_dialects(callee->kids[callee->kid_count - 1]->text, 0, ast_kid(call, 1)->kid_count) : 0;
}

/* A type of the language that only some releases call so. */
static unsigned of_type(const ast *type)
{
    const ast *last = ast_last_segment(type);
    return last ? dialect_of_type(last->text) : 0;
}

static unsigned of_node(const ast *n)
{
    switch (n->kind) {
    case AST_METHOD: return stage_dialects(n->text, count_of(ast_kid(n, 1)), ast_kid(n, 2)->kid_count);
    case AST_CALL: return of_function(n);
    case AST_TYPE_PATH: return of_type(n);
    default: return 0;
    }
}

unsigned dialect_narrow(unsigned set, const ast *node, bool *mixed, arena *a)
{
    budget_spend(a, 1);
    budget_enter(a);
    for (uint32_t i = 0; i < node->kid_count; i++)
        if (node->kids[i]->kid_count && node->kids[i]->kind != AST_MAP) /* what names nothing of a release */
            set = dialect_narrow(set, node->kids[i], mixed, a);
    unsigned written = of_node(node), own = written & set;
    budget_leave(a);
    *mixed = *mixed || (written && !own);
    return own ? own : set;
}
