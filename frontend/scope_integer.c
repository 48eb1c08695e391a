/* Constant expressions of integers: sizes, factors, const items. */
#include <string.h>

#include "frontend/constant.h"
#include "frontend/scope_state.h"
#include "support/budget.h"
#include "support/choice.h"

static bool integer_overflow(scope *s, const ast *n)
{
    diag_add(s->context->diags, E_CONST, n->range, "the value of this expression does not fit 63 bits");
    return false;
}

bool scope_is_arithmetic(const char *operator)
{
    static const char *const known[] = {"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"};
    return choice_has(known, sizeof known / sizeof *known, operator);
}

bool scope_arithmetic(scope *s, const ast *n, const char *operator, int64_t a, int64_t b, int64_t *out)
{
    bool over = false;
    if (strcmp(operator, "+") == 0)
        over = __builtin_add_overflow(a, b, out);
    else if (strcmp(operator, "-") == 0)
        over = __builtin_sub_overflow(a, b, out);
    else if (strcmp(operator, "*") == 0)
        over = __builtin_mul_overflow(a, b, out);
    else if (strcmp(operator, "<<") == 0)
        over = b < 0 || b > 62 || __builtin_mul_overflow(a, (int64_t)1 << b, out);
    else if (strcmp(operator, ">>") == 0 && b >= 0 && b < 64)
        *out = a >> b;
    else if ((strcmp(operator, "/") == 0 || strcmp(operator, "%") == 0) && b > 0)
        *out = operator[0] == '/' ? a / b : a % b;
    else if (operator[0] == '&' && operator[1] == '\0')
        *out = a & b;
    else if (operator[0] == '|' && operator[1] == '\0')
        *out = a | b;
    else if (operator[0] == '^')
        *out = a ^ b;
    else {
        bool divides = strcmp(operator, "/") == 0 || strcmp(operator, "%") == 0, shifts = strcmp(operator, ">>") == 0;
        if (divides) {
            diag_add(s->context->diags, E_CONST, n->name_range, "`%s` by %lld; the divisor must be at least 1", operator,(long long) b);
        } else if (shifts) {
            diag_add(s->context->diags, E_CONST, n->name_range, "a shift by %lld; it must be 0 to 63", (long long)b);
        } else {
            diag *d = diag_add(s->context->diags, E_UNSUPPORTED, n->name_range, "`%s` is not supported in .vm kernels", operator);
            diag_help(s->context->diags, d, "%s", "integers have + - * / %, shifts, &, | and ^; conditions stand in `if`");
        }
        return false;
    }
    return over ? integer_overflow(s, n) : true;
}

/* `NAME::SIZE` of an axis or alias. */
static bool integer_size(scope *s, const ast *path, int64_t *out)
{
    ast front = *path;
    front.kind = AST_TYPE_PATH;
    front.kid_count--;
    symbol *y = scope_find_path(s, TYPE_NAMES, &front);
    if (!y && scope_is_lost(s, path->kids[path->kid_count - 2]->text))
        return false;
    if (!y || (y->kind != SYMBOL_AXIS && y->kind != SYMBOL_ALIAS)) {
        diag_add(s->context->diags, E_NAME, path->range, "`%s` has no SIZE: it is neither an axis nor a mapping alias",
                 path->kids[path->kid_count - 2]->text);
        return false;
    }
    bool infer = false;
    if (y->kind == SYMBOL_ALIAS && !y->resolved && !scope_enter(s->context, y, path->range))
        return false;
    const mapping *m = scope_mapping(s, &front, &infer);
    if (m)
        *out = m->size;
    return m != NULL;
}

void scope_refuse_const_param(scope *s, const ast *path, const symbol *y)
{
    diag *d = diag_add(s->context->diags, E_CONST, path->range, "the const parameter `%s` has no value here", y->name);
    diag_note(s->context->diags, d, y->range, "declared here");
    bool of_type = y->node && y->node->value != 0;
    diag_help(s->context->diags, d,
              of_type ? "name the type with one, `Type::<4>::f(..)`, or say of which type a value is"
                      : "call the function with one: `name::<{ 4 }>(..)`; in a kernel write a const item instead");
}

bool scope_prelude_number(const char *name, int64_t *out)
{
    if (strcmp(name, "SLICES_PER_PE") != 0)
        return false;
    *out = target_by_name("rngd")->slices_per_pe;
    return true;
}

const char *scope_own_type_help(scope *s, const ast *path)
{
    const char *type = path->kid_count > 1 ? path->kids[path->kid_count - 2]->text : "";
    const symbol *y = scope_find(s, TYPE_NAMES, type);
    if ((y && y->kind == SYMBOL_OWN_TYPE) || strcmp(type, "Self") == 0)
        return "of the file's types kernels know fields, and the constants and functions of an `impl`: write a const item";
    return NULL;
}

static bool integer_path(scope *s, const ast *n, int64_t *out)
{
    const ast *last = ast_last_segment(n);
    bool is_size = n->kid_count >= 2 && strcmp(last->text, "SIZE") == 0;
    symbol *y = is_size ? scope_find_through(s, VALUE_NAMES, n) : scope_find_path(s, VALUE_NAMES, n);
    if (!y && is_size)
        return integer_size(s, n, out);
    if (y && y->kind == SYMBOL_VARIABLE && y->value.kind == VALUE_INT) {
        *out = y->value.number;
        return true;
    }
    if (y && y->kind == SYMBOL_CONST_PARAM) {
        scope_refuse_const_param(s, n, y);
        return false;
    }
    if (!y && n->kid_count == 1 && scope_prelude_number(last->text, out))
        return true;
    bool fits = false;
    if (!y && n->kid_count > 1 && scope_integer_bound(s, n, out, &fits))
        return fits;
    if (!y || y->kind != SYMBOL_CONST) {
        if (!y && scope_is_lost(s, last->text))
            return false;
        if (!y || y->value.kind != VALUE_ERROR || y->kind != SYMBOL_VARIABLE) {
            diag *d = diag_add(s->context->diags, E_NAME, n->range, "`%s` is not a constant", last->text);
            const char *near = scope_suggest(s, last->text, SYMBOL_CONST), *own = scope_own_type_help(s, n);
            if (own || near)
                diag_help(s->context->diags, d, own ? "%s" : "did you mean `%s`?", own ? own : near);
        }
        return false;
    }
    if (!y->measured) {
        if (!scope_enter(s->context, y, n->range))
            return false;
        symbol_set_busy(y, true);
        y->is_integer = scope_integer(y->scope, y->node, &y->number);
        symbol_set_busy(y, false);
        y->measured = true;
    }
    *out = y->number;
    return y->is_integer;
}

const integer_type *scope_integer_type_named(const char *name)
{
    static const integer_type types[] = {{"usize", 8, 0, INT64_MAX},       {"u64", 8, 0, INT64_MAX},
                                         {"u32", 4, 0, UINT32_MAX},        {"u16", 2, 0, UINT16_MAX},
                                         {"u8", 1, 0, UINT8_MAX},          {"isize", 8, INT64_MIN, INT64_MAX},
                                         {"i64", 8, INT64_MIN, INT64_MAX}, {"i32", 4, INT32_MIN, INT32_MAX},
                                         {"i16", 2, INT16_MIN, INT16_MAX}, {"i8", 1, INT8_MIN, INT8_MAX}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

bool scope_integer_bound(scope *s, const ast *path, int64_t *out, bool *fits)
{
    const char *type = path->kids[path->kid_count - 2]->text, *name = ast_last_segment(path)->text;
    const integer_type *t = scope_integer_type_named(type);
    bool most = strcmp(name, "MAX") == 0;
    if (!t || (!most && strcmp(name, "MIN") != 0))
        return false;
    *out = most ? t->most : t->least;
    *fits = !most || t->most < INT64_MAX || t->least < 0;
    if (!*fits)
        integer_overflow(s, path);
    return true;
}

const integer_type *scope_integer_type(const ast *type)
{
    const ast *last = ast_last_segment(type);
    return last ? scope_integer_type_named(last->text) : NULL;
}

bool scope_is_size_of(const ast *call)
{
    const ast *last = ast_last_segment(ast_kid(call, 0)), *types = last ? ast_kid(last, 0) : NULL;
    return last && strcmp(last->text, "size_of") == 0 && ast_is(types, AST_GENERIC_ARGS) && types->kid_count == 1 &&
           ast_kid(call, 1)->kid_count == 0;
}

bool scope_size_of(scope *s, const ast *call, int64_t *out)
{
    const ast *type = ast_kid(ast_kid(ast_last_segment(ast_kid(call, 0)), 0), 0), *last = ast_last_segment(type);
    const integer_type *integer = scope_integer_type(type);
    bool infer = false;
    dtype element;
    if (integer)
        *out = integer->bytes;
    else if (last && strcmp(last->text, "f64") == 0)
        *out = 8;
    else if (scope_dtype(s, type, &element, &infer))
        *out = (dtype_row_of(element)->bits + 7) / 8; /* i4 is a byte of its own, alone */
    else
        return false;
    return true;
}

bool scope_fits(scope *s, const ast *n, const integer_type *type, int64_t number)
{
    if (number >= type->least && number <= type->most)
        return true;
    diag_add(s->context->diags, E_CONST, n->range, "%lld does not fit %s, which holds %lld to %lld", (long long)number, type->name,
             (long long)type->least, (long long)type->most);
    return false;
}

bool scope_wrap(scope *s, const ast *n, const integer_type *type, int64_t number, int64_t *out)
{
    *out = number;
    if (type->bytes == 8)
        return scope_fits(s, n, type, number);
    uint64_t mask = ((uint64_t)1 << (8 * type->bytes)) - 1, bits = (uint64_t)number & mask;
    *out = type->least < 0 && bits > (uint64_t)type->most ? (int64_t)bits - (int64_t)mask - 1 : (int64_t)bits;
    return true;
}

static bool integer_cast(scope *s, const ast *n, int64_t *out)
{
    const integer_type *type = scope_integer_type(ast_kid(n, 1));
    if (type)
        return scope_integer(s, ast_kid(n, 0), out) && scope_wrap(s, n, type, *out, out);
    diag_add(s->context->diags, E_CONST, n->range, "expected an integer constant");
    return false;
}

/* ---- what is computed: conditions, blocks, const functions ---- */

/* A method of an integer: a number, or a condition. */
static value integer_method_call(scope *s, const ast *n)
{
    const ast *list = ast_kid(n, 2);
    value *args = ARENA_ARRAY(s->context->arena, value, list->kid_count + 1), failed = {.kind = VALUE_ERROR};
    int64_t receiver;
    if (!scope_integer(s, ast_kid(n, 0), &receiver))
        return failed;
    for (uint32_t i = 0; i < list->kid_count; i++) {
        args[i] = (value){.kind = VALUE_INT};
        if (!scope_integer(s, list->kids[i], &args[i].number))
            return failed;
    }
    return constant_integer_method(s, n, receiver, args, list->kid_count);
}

/* What blocks, branches, loops and calls of `const fn` give: as kernels do (frontend/block.c, branch.c). */
static value computed(scope *s, const ast *n)
{
    value failed = {.kind = VALUE_ERROR};
    while (ast_is(n, AST_CONST_ARG) && n->kid_count == 1)
        n = n->kids[0];
    return s->context->compute ? s->context->compute(s->context->computer, s, n) : failed;
}

bool scope_condition(scope *s, const ast *n, bool *out)
{
    value v = computed(s, n);
    *out = v.kind == VALUE_BOOL && v.number;
    if (v.kind != VALUE_BOOL && v.kind != VALUE_ERROR)
        diag_add(s->context->diags, E_CONST, n->range, "expected a constant condition");
    return v.kind == VALUE_BOOL;
}

/* The `const fn` that is called, or NULL. */
static const symbol *const_function(scope *s, const ast *callee)
{
    const symbol *y = ast_is(callee, AST_PATH) ? scope_find_path(s, VALUE_NAMES, callee) : NULL;
    return y && y->kind == SYMBOL_FUNCTION && y->node->value & AST_FN_CONST ? y : NULL;
}

static bool integer_computed(scope *s, const ast *n, int64_t *out)
{
    size_t errors_before = s->context->diags->error_count;
    value v = computed(s, n);
    *out = v.number;
    if (v.kind != VALUE_INT && s->context->diags->error_count == errors_before && v.kind != VALUE_ERROR)
        diag_add(s->context->diags, E_CONST, n->range, "expected an integer constant");
    return v.kind == VALUE_INT;
}

static bool integer_kind(scope *s, const ast *n, int64_t *out)
{
    int64_t a, b;
    bool infer = false;
    switch (n->kind) {
    case AST_INT: *out = n->value; return true;
    case AST_UNARY:
        if (n->text[0] != '-') {
            value v = {.kind = VALUE_INT};
            return scope_integer(s, ast_kid(n, 0), &v.number) && constant_unary(s, n, &v).kind == VALUE_INT;
        }
        if (!scope_integer(s, ast_kid(n, 0), &a))
            return false;
        return __builtin_sub_overflow((int64_t)0, a, out) ? integer_overflow(s, n) : true;
    case AST_BINARY: {
        bool left = scope_integer(s, ast_kid(n, 0), &a), right = scope_integer(s, ast_kid(n, 1), &b);
        return left && right && scope_arithmetic(s, n, n->text, a, b, out);
    }
    case AST_PATH:
    case AST_TYPE_PATH: return integer_path(s, n, out);
    case AST_TYPE_QUALIFIED: {
        const mapping *m = strcmp(n->text, "SIZE") == 0 ? scope_mapping(s, ast_kid(n, 0), &infer) : NULL;
        if (m)
            *out = m->size;
        return m != NULL;
    }
    case AST_BLOCK:
    case AST_CONST_BLOCK:
    case AST_MATCH:
    case AST_WHILE:
    case AST_FIELD:
    case AST_INDEX:
    case AST_IF: return integer_computed(s, n, out);
    case AST_METHOD: {
        value v = integer_method_call(s, n);
        *out = v.number;
        if (v.kind == VALUE_INT || v.kind == VALUE_ERROR)
            return v.kind == VALUE_INT;
        break;
    }
    case AST_CONST_ARG:
        if (n->kid_count == 1)
            return scope_integer(s, n->kids[0], out);
        break;
    case AST_EXPR_STMT: return scope_integer(s, ast_kid(n, 0), out);
    case AST_CAST: return integer_cast(s, n, out);
    case AST_CALL:
        if (scope_is_size_of(n))
            return scope_size_of(s, n, out);
        if (const_function(s, ast_kid(n, 0)))
            return integer_computed(s, n, out);
        break;
    case AST_ERROR: return false;
    default: break;
    }
    diag_add(s->context->diags, E_CONST, n->range, "expected an integer constant");
    return false;
}

bool scope_integer(scope *s, const ast *n, int64_t *out)
{
    arena *a = s->context->arena;
    budget_spend_at(a, n->range, 1);
    budget_enter(a);
    bool ok = integer_kind(s, n, out);
    budget_leave(a);
    return ok;
}
