/* Statements and expressions of a stream program. */
#include "frontend/step/evaluate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/parse.h"

const step_term step_term_error = {.kind = TERM_ERROR};

static step_term refuse(step_evaluation *e, src_range range, const char *help, const char *text)
{
    /* What is missing has no place of its own: the program's name has. */
    diag *d = diag_add(e->diags, E_STEP_PROGRAM, range.file < 0 ? e->graph->range : range, "%s", text);
    if (help)
        diag_help(e->diags, d, "%s", help);
    e->graph->bad = true;
    return step_term_error;
}

step_term step_refuse(step_evaluation *e, src_range range, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(e->arena, format, args);
    va_end(args);
    return refuse(e, range, NULL, text);
}

step_term step_refuse_with(step_evaluation *e, src_range range, const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(e->arena, format, args);
    va_end(args);
    return refuse(e, range, help, text);
}

const char *step_term_text(const step_term *t)
{
    static const char *const names[] = {
        "an error",   "nothing", "an integer", "a condition",          "a size",           "a range", "a list", "a stream", "a tensor",
        "a function", "a float", "a tile",     "a tile to begin with", "a feedback stream"};
    return names[t->kind];
}

/* ---- names ---- */

size_t step_enter(step_evaluation *e)
{
    return e->name_count;
}

void step_leave(step_evaluation *e, size_t mark)
{
    e->name_count = mark;
}

void step_bind(step_evaluation *e, const char *name, src_range range, step_term value, bool mutable)
{
    step_name n = {name, range, value, mutable};
    ARENA_PUSH(e->arena, e->names, e->name_count, e->name_capacity, n);
}

static step_name *find(step_evaluation *e, const char *name)
{
    budget_spend(e->arena, e->name_count - e->scope);
    for (size_t i = e->name_count; i-- > e->scope;)
        if (strcmp(e->names[i].name, name) == 0)
            return &e->names[i];
    return NULL;
}

const step_name *step_lookup(step_evaluation *e, const char *name)
{
    return find(e, name);
}

bool step_is_lost(step_evaluation *e, const char *name)
{
    for (uint32_t i = 0; i < e->file->kid_count; i++)
        for (uint32_t k = 0; ast_is(e->file->kids[i], AST_ERROR) && k < e->file->kids[i]->kid_count; k++) {
            const ast *n = e->file->kids[i]->kids[k];
            if (ast_is(n, AST_NAME) && (n->text[0] == '\0' || strcmp(n->text, name) == 0)) {
                e->graph->bad = true;
                return true;
            }
        }
    return false;
}

/* Names of a statement that was not understood are not known to be anything. */
static void bind_lost(step_evaluation *e, const ast *error)
{
    e->graph->bad = true;
    for (uint32_t i = 0; i < error->kid_count; i++)
        if (ast_is(error->kids[i], AST_NAME) && !step_lookup(e, error->kids[i]->text))
            step_bind(e, error->kids[i]->text, error->kids[i]->range, step_term_error, true);
}

/* ---- constants of the file ---- */

static step_term integer(int64_t n)
{
    return (step_term){.kind = TERM_INT, .number = n};
}

/* One of the file, read once. */
typedef struct step_constant {
    step_term value;
    bool busy, known;
} step_constant;

/* The item's number; the file's count: there is none. */
static uint32_t constant_named(step_evaluation *e, const char *name)
{
    uint32_t i = 0;
    while (i < e->file->kid_count && !(ast_is(e->file->kids[i], AST_CONST) && strcmp(e->file->kids[i]->text, name) == 0))
        i++;
    budget_spend(e->arena, i);
    return i;
}

STACK_APART static step_term read_constant(step_evaluation *e, const ast *n, const char *name)
{
    uint32_t number = constant_named(e, name);
    if (number == e->file->kid_count)
        return step_function_named(e, n);
    if (!e->constants)
        e->constants = ARENA_ARRAY(e->arena, step_constant, e->file->kid_count);
    step_constant *c = &e->constants[number];
    if (c->busy)
        return step_refuse(e, n->range, "the constant `%s` is defined by itself", name);
    if (c->known)
        return c->value;
    size_t scope = e->scope;
    e->scope = e->name_count;
    c->busy = true;
    c->value = step_evaluate(e, ast_kid(e->file->kids[number], 2));
    c->busy = false;
    c->known = true;
    e->scope = scope;
    return c->value;
}

STACK_APART static step_term evaluate_path(step_evaluation *e, const ast *n)
{
    if (n->kid_count != 1)
        return step_function_named(e, n);
    const char *name = n->kids[0]->text;
    const step_name *known = step_lookup(e, name);
    return known ? known->value : read_constant(e, n, name);
}

/* ---- arithmetic ---- */

static bool is_size(const step_term *t)
{
    return t->kind == TERM_INT || t->kind == TERM_SIZE;
}

static const step_expr *size_of(step_evaluation *e, const step_term *t)
{
    return t->kind == TERM_SIZE ? t->size : step_expr_number(e->graph->exprs, t->number);
}

static step_term of_size(step_evaluation *e, const ast *n, const step_expr *size)
{
    int64_t number;
    if (!size)
        return step_refuse(e, n->range, "the size is past 2^62");
    if (step_expr_is_number(size, &number))
        return integer(number);
    return (step_term){.kind = TERM_SIZE, .size = size};
}

STACK_APART static step_term size_arithmetic(step_evaluation *e, const ast *n, const step_term *a, const step_term *b)
{
    const step_expr *x = size_of(e, a), *y = size_of(e, b);
    switch (n->text[0]) {
    case '+': return of_size(e, n, step_expr_add(e->graph->exprs, x, y));
    case '*': return of_size(e, n, step_expr_multiply(e->graph->exprs, x, y));
    default:
        return step_refuse(e, n->name_range, "sizes can be added, multiplied and divided by `.div_ceil(n)`; `%s` is not known of them",
                           n->text);
    }
}

static bool compute(const char *op, int64_t a, int64_t b, int64_t *out)
{
    switch (op[0]) {
    case '+': return !__builtin_add_overflow(a, b, out);
    case '-': return !__builtin_sub_overflow(a, b, out);
    case '*': return !__builtin_mul_overflow(a, b, out);
    case '/': *out = b ? a / b : 0; return b > 0;
    case '%': *out = b ? a % b : 0; return b > 0;
    case '<':
        if (op[1] == '<' && b >= 0 && b < 62 && a >= 0 && a <= INT64_MAX >> b) {
            *out = a << b;
            return true;
        }
        return false;
    default: return false;
    }
}

static bool compare(const char *op, int64_t a, int64_t b, bool *out)
{
    *out = strcmp(op, "==") == 0   ? a == b
           : strcmp(op, "!=") == 0 ? a != b
           : strcmp(op, "<") == 0  ? a < b
           : strcmp(op, "<=") == 0 ? a <= b
           : strcmp(op, ">") == 0  ? a > b
                                   : a >= b;
    return strcmp(op, "==") == 0 || strcmp(op, "!=") == 0 || ((op[0] == '<' || op[0] == '>') && op[1] != op[0]);
}

STACK_APART static step_term evaluate_binary(step_evaluation *e, const ast *n)
{
    step_term a = step_evaluate(e, n->kids[0]), b = step_evaluate(e, n->kids[1]);
    bool truth;
    int64_t number;
    if (a.kind == TERM_ERROR || b.kind == TERM_ERROR)
        return step_term_error;
    if (step_is_of_tiles(&a, &b) || a.kind == TERM_FLOAT || b.kind == TERM_FLOAT)
        return step_formula_binary(e, n, &a, &b);
    if (!is_size(&a) || !is_size(&b))
        return step_refuse(e, n->name_range, "`%s` takes two numbers, not %s and %s", n->text, step_term_text(&a), step_term_text(&b));
    if (a.kind == TERM_SIZE || b.kind == TERM_SIZE)
        return size_arithmetic(e, n, &a, &b);
    if (compare(n->text, a.number, b.number, &truth))
        return (step_term){.kind = TERM_BOOL, .number = truth};
    if (compute(n->text, a.number, b.number, &number))
        return integer(number);
    return step_refuse(e, n->range, "%" PRId64 " %s %" PRId64 " has no value", a.number, n->text, b.number);
}

STACK_APART static step_term evaluate_unary(step_evaluation *e, const ast *n)
{
    step_term t = step_evaluate(e, n->kids[0]);
    if (t.kind == TERM_BOOL && n->text[0] == '!')
        return (step_term){.kind = TERM_BOOL, .number = !t.number};
    if (t.kind == TERM_TILE && n->text[0] == '-')
        return step_formula_apply(e, n->range, "neg", &t, 1);
    if (t.kind == TERM_TILE && n->text[0] == '!')
        return step_formula_not(e, n->range, &t);
    if (t.kind == TERM_FLOAT && n->text[0] == '-')
        return (step_term){.kind = TERM_FLOAT, .real = -t.real};
    if (t.kind == TERM_INT && n->text[0] == '-' && t.number != INT64_MIN)
        return integer(-t.number);
    return t.kind == TERM_ERROR ? t : step_refuse(e, n->range, "`%s` has no value for %s", n->text, step_term_text(&t));
}

/* ---- lists and ranges ---- */

STACK_APART static step_term list_of(step_evaluation *e, const ast *n)
{
    step_term list = {.kind = TERM_LIST, .count = n->kid_count, .items = ARENA_ARRAY(e->arena, step_term, n->kid_count + 1)};
    for (uint32_t i = 0; i < n->kid_count; i++)
        list.items[i] = step_evaluate(e, n->kids[i]);
    return list;
}

STACK_APART static step_term evaluate_range(step_evaluation *e, const ast *n)
{
    step_term first = step_evaluate(e, n->kids[0]), end = step_evaluate(e, n->kids[1]);
    if (first.kind == TERM_ERROR || end.kind == TERM_ERROR)
        return step_term_error;
    if (first.kind != TERM_INT || end.kind != TERM_INT)
        return step_refuse(e, n->range, "a range needs two integers, not %s and %s", step_term_text(&first), step_term_text(&end));
    return (step_term){.kind = TERM_RANGE, .number = first.number, .end = end.number + (n->text[2] == '=')};
}

static step_term item_of(step_evaluation *e, const ast *n, const step_term *list, int64_t index)
{
    if (list->kind == TERM_ERROR)
        return step_term_error;
    if (list->kind != TERM_LIST)
        return step_refuse(e, n->range, "%s has no parts", step_term_text(list));
    if (index < 0 || (uint64_t)index >= list->count)
        return step_refuse(e, n->range, "part %" PRId64 " of a list of %zu", index, list->count);
    return list->items[index];
}

STACK_APART static step_term evaluate_index(step_evaluation *e, const ast *n)
{
    step_term list = step_evaluate(e, n->kids[0]), index = step_evaluate(e, n->kids[1]);
    if (index.kind == TERM_ERROR)
        return step_term_error;
    if (index.kind != TERM_INT)
        return step_refuse(e, n->kids[1]->range, "a list is indexed with an integer, not %s", step_term_text(&index));
    return item_of(e, n, &list, index.number);
}

STACK_APART static step_term evaluate_field(step_evaluation *e, const ast *n)
{
    step_term list = step_evaluate(e, n->kids[0]);
    if (n->text[0] < '0' || n->text[0] > '9')
        return step_refuse(e, n->name_range, "%s has no field `%s`", step_term_text(&list), n->text);
    return item_of(e, n, &list, strtoll(n->text, NULL, 10));
}

/* ---- statements ---- */

void step_bind_pattern(step_evaluation *e, const ast *pattern, step_term value)
{
    if (ast_is(pattern, AST_PAT_NAME)) {
        step_bind(e, pattern->text, pattern->name_range, value, pattern->value != 0);
        return;
    }
    if (!ast_is(pattern, AST_PAT_TUPLE))
        return;
    bool fits = value.kind == TERM_LIST && value.count == pattern->kid_count;
    if (!fits && value.kind != TERM_ERROR)
        step_refuse(e, pattern->range, "the pattern has %" PRIu32 " names for %s", pattern->kid_count, step_term_text(&value));
    for (uint32_t i = 0; i < pattern->kid_count; i++)
        step_bind_pattern(e, pattern->kids[i], fits ? value.items[i] : step_term_error);
}

STACK_APART static void evaluate_let(step_evaluation *e, const ast *n)
{
    const char *outer = e->wanted_name;
    e->wanted_name = ast_is(n->kids[0], AST_PAT_NAME) ? n->kids[0]->text : NULL;
    step_term value = ast_is(n->kids[2], AST_NONE) ? (step_term){.kind = TERM_UNIT} : step_evaluate(e, n->kids[2]);
    e->wanted_name = outer;
    step_bind_pattern(e, n->kids[0], value);
}

/* What follows a body without its end is not in it. */
static void refuse_item(step_evaluation *e, const ast *n)
{
    e->graph->bad = true;
    if (!parse_was_broken(e->diags, (src_range){n->range.file, e->graph->range.begin, UINT32_MAX}))
        step_refuse(e, n->range, "%s is not known inside a stream program", ast_kind_name(n->kind));
}

/* A `let` around the block names its value, not what precedes it. */
STACK_APART static step_term evaluate_block(step_evaluation *e, const ast *n)
{
    size_t mark = step_enter(e);
    step_term value = {.kind = TERM_UNIT};
    const char *wanted = e->wanted_name;
    for (uint32_t i = 0; i < n->kid_count; i++) {
        const ast *s = n->kids[i];
        value = (step_term){.kind = TERM_UNIT};
        e->wanted_name = i + 1 == n->kid_count ? wanted : NULL;
        if (ast_is(s, AST_AFTER)) {
            refuse_item(e, s);
        } else if (ast_is(s, AST_LET)) {
            evaluate_let(e, s);
        } else if (ast_is(s, AST_EXPR_STMT)) {
            step_term v = step_evaluate(e, s->kids[0]);
            value = s->text[0] == ';' ? value : v;
        } else if (ast_is(s, AST_ERROR)) {
            bind_lost(e, s);
            value = step_term_error;
        } else if (!ast_is(s, AST_USE) && !ast_is(s, AST_ATTR)) {
            refuse_item(e, s);
        }
    }
    e->wanted_name = wanted;
    step_leave(e, mark);
    return value;
}

STACK_APART static step_term evaluate_for(step_evaluation *e, const ast *n)
{
    step_term items = step_evaluate(e, n->kids[1]);
    if (items.kind == TERM_ERROR)
        return items;
    if (items.kind != TERM_RANGE && items.kind != TERM_LIST)
        return step_refuse(e, n->kids[1]->range, "`for` goes over a range or a list, not %s", step_term_text(&items));
    int64_t count = items.kind == TERM_LIST ? (int64_t)items.count : items.end - items.number;
    for (int64_t i = 0; i < count; i++) {
        if (++e->steps > STEP_EVALUATIONS_MAX)
            return step_refuse(e, n->range, "the program takes more than %d iterations and calls", STEP_EVALUATIONS_MAX);
        size_t mark = step_enter(e);
        step_bind_pattern(e, n->kids[0], items.kind == TERM_LIST ? items.items[i] : integer(items.number + i));
        step_evaluate(e, n->kids[2]);
        step_leave(e, mark);
    }
    return (step_term){.kind = TERM_UNIT};
}

STACK_APART static step_term evaluate_if(step_evaluation *e, const ast *n)
{
    step_term condition = step_evaluate(e, n->kids[0]);
    if (condition.kind == TERM_ERROR)
        return condition;
    if (condition.kind != TERM_BOOL)
        return step_refuse_with(e, n->kids[0]->range,
                                condition.kind == TERM_TILE
                                    ? "`select(condition, a, b)` takes a where it is not 0, else b, element by element"
                                    : "streams are routed with `.partition`",
                                "`if` takes a condition over constants, not %s", step_term_text(&condition));
    return condition.number               ? step_evaluate(e, n->kids[1])
           : ast_is(n->kids[2], AST_NONE) ? (step_term){.kind = TERM_UNIT}
                                          : step_evaluate(e, n->kids[2]);
}

STACK_APART static step_term evaluate_assign(step_evaluation *e, const ast *n)
{
    const ast *place = n->kids[0];
    step_term value = step_evaluate(e, n->kids[1]);
    step_name *name = ast_is(place, AST_PATH) && place->kid_count == 1 ? find(e, place->kids[0]->text) : NULL;
    if (!name || !name->mutable || n->text[0] != '=')
        return step_refuse(e, n->range, "only a `let mut` name is assigned, with `=`");
    name->value = value;
    return (step_term){.kind = TERM_UNIT};
}

static step_term refuse_kind(step_evaluation *e, const ast *n)
{
    return step_refuse(e, n->range, "%s is not known inside a stream program", ast_kind_name(n->kind));
}

static step_term evaluate_kind(step_evaluation *e, const ast *n)
{
    switch (n->kind) {
    case AST_ERROR: e->graph->bad = true; return step_term_error;
    case AST_INT: return integer(n->value);
    case AST_FLOAT: return step_float(e, n);
    case AST_UNSUPPORTED: return strcmp(n->text, "closure") == 0 ? step_closure(e, n) : refuse_kind(e, n);
    case AST_BOOL: return (step_term){.kind = TERM_BOOL, .number = n->value};
    case AST_PATH: return evaluate_path(e, n);
    case AST_BINARY: return evaluate_binary(e, n);
    case AST_UNARY: return evaluate_unary(e, n);
    case AST_BORROW:
    case AST_CAST:
    case AST_DEREF: return step_evaluate(e, n->kids[0]);
    case AST_TUPLE:
    case AST_ARRAY: return list_of(e, n);
    case AST_INDEX: return evaluate_index(e, n);
    case AST_FIELD: return evaluate_field(e, n);
    case AST_RANGE: return evaluate_range(e, n);
    case AST_METHOD: return step_call_method(e, n);
    case AST_CALL: return step_call_function(e, n);
    case AST_BLOCK: return evaluate_block(e, n);
    case AST_IF: return evaluate_if(e, n);
    case AST_FOR: return evaluate_for(e, n);
    case AST_ASSIGN: return evaluate_assign(e, n);
    default: return refuse_kind(e, n);
    }
}

step_term step_evaluate(step_evaluation *e, const ast *n)
{
    budget_spend_at(e->arena, n->range, 1);
    budget_enter(e->arena);
    step_term value = evaluate_kind(e, n);
    budget_leave(e->arena);
    return value;
}
