#include "frontend/constant.h"

#include "frontend/index.h"
#include "frontend/running.h"
#include "support/choice.h"

#include <stdlib.h>
#include <string.h>

static const value error_value = {.kind = VALUE_ERROR};

static value integer(int64_t n)
{
    return (value){.kind = VALUE_INT, .number = n};
}

static value real(double x)
{
    return (value){.kind = VALUE_FLOAT, .real = x};
}

static value boolean(bool b)
{
    return (value){.kind = VALUE_BOOL, .number = b};
}

const char *value_kind_name(const value *v)
{
    switch (v->kind) {
    case VALUE_INT: return "an integer";
    case VALUE_FLOAT: return "a float";
    case VALUE_BOOL: return "a condition";
    case VALUE_RANGE: return "a range";
    case VALUE_LIST: return v->record ? "a struct" : "a tuple or array";
    case VALUE_TENSOR: return tensor_kind_word(v->op->out.kind);
    case VALUE_VIEW: return v->op->out.kind == TENSOR_HBM ? "a view of an HbmTensor" : "a view of a DmTensor";
    case VALUE_BEGIN: return "a stream that has begun";
    case VALUE_CONTEXT: return "the @Context";
    case VALUE_UNIT_OF_CONTEXT: return v->context == CONTEXT_MAIN ? "@ctx.main" : v->context == CONTEXT_SUB ? "@ctx.sub" : "@ctx.tdma";
    case VALUE_UNIT: return "nothing";
    case VALUE_TRF_ADDRESS: return "a TrfAddress";
    case VALUE_ACCUMULATION: return "an @AccumulationKind";
    case VALUE_TYPE: return "a type";
    case VALUE_VARIANT: return v->variant;
    case VALUE_VECTOR_OP: return "an operation of the Vector Engine";
    case VALUE_OP_WITH_MODE: return "an operation with its mode";
    case VALUE_INDIRECT: return "a plan of rows";
    case VALUE_SCALAR: return "an HbmScalar";
    case VALUE_CONDITION: return "a condition that is known when the kernel runs";
    case VALUE_RUNNING: return "a number that is known when the kernel runs";
    case VALUE_PLAN: return "a plan of what moves";
    case VALUE_SWITCH_CONFIG: return "a SwitchConfig";
    default: return "this value";
    }
}

/* ---- operators ---- */

/* Comparisons; false when `operator` is none. */
static bool compare(const char *operator, int64_t a, int64_t b, bool *out)
{
    if (strcmp(operator, "==") == 0)
        *out = a == b;
    else if (strcmp(operator, "!=") == 0)
        *out = a != b;
    else if (strcmp(operator, "<") == 0)
        *out = a < b;
    else if (strcmp(operator, "<=") == 0)
        *out = a <= b;
    else if (strcmp(operator, ">") == 0)
        *out = a > b;
    else if (strcmp(operator, ">=") == 0)
        *out = a >= b;
    else
        return false;
    return true;
}

/* `&&` and `||`; false when `operator` is none. */
static bool combine(const char *operator, bool a, bool b, bool *out)
{
    bool and = strcmp(operator, "&&") == 0;
    *out = and? a && b : a || b;
    return and || strcmp(operator, "||") == 0;
}

bool constant_decides(const char *operator, const value * a)
{
    bool with_true, with_false;
    return a->kind == VALUE_BOOL && combine(operator, a->number, true, &with_true) && combine(operator, a->number, false, &with_false) &&
           with_true == with_false;
}

/* Numbers with a fraction: sums, differences, products, quotients, comparisons. */
static value float_binary(scope *s, const ast *n, const char *operator, double a, double b)
{
    bool truth = a == b;
    if (strcmp(operator, "+") == 0)
        return real(a + b);
    if (strcmp(operator, "-") == 0)
        return real(a - b);
    if (strcmp(operator, "*") == 0)
        return real(a * b);
    if (strcmp(operator, "/") == 0)
        return real(a / b);
    if (compare(operator,(a > b) - (a < b), 0, &truth) && a == a && b == b)
        return boolean(truth);
    diag_add(scope_context_of(s)->diags, E_CONST, n->name_range, "`%s` has no value for two floats", operator);
    return error_value;
}

value constant_binary(scope *s, const ast *n, const char *operator, const value * a, const value *b)
{
    bool truth = false;
    int64_t number = 0;
    if (a->kind == VALUE_ERROR || b->kind == VALUE_ERROR)
        return error_value;
    if (a->kind == VALUE_FLOAT && b->kind == VALUE_FLOAT)
        return float_binary(s, n, operator, a->real, b->real);
    if (a->kind == VALUE_RUNNING || b->kind == VALUE_RUNNING || a->kind == VALUE_CONDITION || b->kind == VALUE_CONDITION)
        return run_binary(s, n, operator, a, b);
    bool bitwise = operator[1] == '\0' && strchr("&|^", operator[0]);
    if (bitwise && a->kind == VALUE_BOOL && b->kind == VALUE_BOOL)
        return boolean(operator[0] == '&' ? a->number & b->number : operator[0] == '|' ? a->number | b->number : a->number ^ b->number);
    bool logical = combine(operator, a->number, b->number, &truth);
    bool of_conditions = logical || strcmp(operator, "==") == 0 || strcmp(operator, "!=") == 0;
    bool both = a->kind == b->kind && ((a->kind == VALUE_INT && !logical) || (a->kind == VALUE_BOOL && of_conditions));
    if (!both && (logical || scope_is_arithmetic(operator) || compare(operator, 0, 0, &truth))) {
        diag_add(scope_context_of(s)->diags, E_CONST, n->name_range, "`%s` takes two %s, got %s and %s", operator,
                 logical ? "conditions" : "integers", value_kind_name(a), value_kind_name(b));
        return error_value;
    }
    if (logical || compare(operator, a->number, b->number, &truth))
        return boolean(truth);
    return scope_arithmetic(s, n, operator, a->number, b->number, &number) ? integer(number) : error_value;
}

value constant_unary(scope *s, const ast *n, const value *operand)
{
    int64_t number = 0;
    if (operand->kind == VALUE_ERROR)
        return error_value;
    if (n->text[0] == '!' && (operand->kind == VALUE_CONDITION || operand->kind == VALUE_RUNNING))
        return run_not(s, n, operand);
    if (n->text[0] == '!' && operand->kind == VALUE_BOOL)
        return boolean(!operand->number);
    if (n->text[0] == '-' && operand->kind == VALUE_FLOAT)
        return real(-operand->real);
    if (n->text[0] == '-' && operand->kind == VALUE_INT && !__builtin_sub_overflow((int64_t)0, operand->number, &number))
        return integer(number);
    diag *d = diag_add(scope_context_of(s)->diags, E_CONST, n->range, "`%s` has no value for %s", n->text, value_kind_name(operand));
    if (n->text[0] == '!' && operand->kind == VALUE_INT)
        diag_help(scope_context_of(s)->diags, d, "numbers have 63 bits here, whatever their type: write the bits that stay, `n & 63`");
    return error_value;
}

/* `as f32`: the nearest one. */
static bool is_float_type(const char *name)
{
    return strcmp(name, "f32") == 0 || strcmp(name, "f64") == 0;
}

value constant_cast(scope *s, const ast *n, const value *v)
{
    const ast *type = ast_last_segment(ast_kid(n, 1));
    const integer_type *integers = scope_integer_type(ast_kid(n, 1));
    if (v->kind == VALUE_ERROR)
        return error_value;
    const run_number *cast = v->kind == VALUE_RUNNING && type ? run_number_cast(scope_context_of(s)->arena, v->run, type->text) : NULL;
    if (cast)
        return (value){.kind = VALUE_RUNNING, .run = cast};
    int64_t number = v->number;
    if (integers && (v->kind == VALUE_INT || v->kind == VALUE_BOOL))
        return scope_wrap(s, n, integers, number, &number) ? integer(number) : error_value;
    if (type && is_float_type(type->text) && (v->kind == VALUE_INT || v->kind == VALUE_FLOAT)) {
        double x = v->kind == VALUE_INT ? (double)v->number : v->real;
        return real(strcmp(type->text, "f32") == 0 ? (double)(v->kind == VALUE_INT ? (float)v->number : (float)x) : x);
    }
    diag_list *diags = scope_context_of(s)->diags;
    diag *d = diag_add(diags, E_UNSUPPORTED, n->name_range, "`as` turns %s into `%s` in no .vm kernel", value_kind_name(v),
                       type ? type->text : "this");
    diag_help(diags, d,
              v->kind == VALUE_TENSOR ? "a stage casts: `.cast::<Dtype, OutPacket>()`"
                                      : "an integer or a condition becomes an integer: `as usize`; a number becomes an `f32`");
    return error_value;
}

value constant_float(scope *s, const ast *n)
{
    arena *a = scope_context_of(s)->arena;
    char *digits = arena_strdup(a, n->text), *to = digits;
    for (const char *from = n->text; *from && *from != 'f'; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    return real(strtod(digits, NULL));
}

/* ---- elements ---- */

/* 2^e as a number. */
static double power_of_two(int e)
{
    double x = 1;
    for (; e > 0; e--)
        x *= 2;
    for (; e < 0; e++)
        x /= 2;
    return x;
}

/* The nearest number of that many significand bits and least exponent, ties to even; exact in a double, whose own are far wider. */
static double nearest_of(double x, int bits, int least_exponent)
{
    double magnitude = x < 0 ? -x : x, unit = power_of_two(least_exponent - bits + 1);
    if (magnitude == 0 || magnitude != magnitude || magnitude > 1e300)
        return x;
    while (magnitude / unit >= power_of_two(bits))
        unit *= 2;
    double whole = (double)(int64_t)(magnitude / unit), rest = magnitude / unit - whole;
    if (rest > 0.5 || (rest == 0.5 && ((int64_t)whole & 1)))
        whole += 1;
    return x < 0 ? -whole * unit : whole * unit;
}

/* Element types that numbers are turned into: `bf16::from_f32(1.5)`, `i4::from_i32(-1)`. */
static const struct {
    const char *type, *function;
    int bits, least_exponent; /* of a float's significand, and the exponent of its least normal number */
    int64_t least, most;      /* of an integer */
    double largest;
} elements[] = {
    {"bf16", "from_f32", 8, -126, 0, 0, 3.3895313892515355e38},
    {"f8e4m3", "from_f32", 4, -6, 0, 0, 448},
    {"f8e5m2", "from_f32", 3, -14, 0, 0, 57344},
    {"f4e2m1", "from_f32", 2, 0, 0, 0, 6},
    {"i4", "from_i32", 0, 0, -8, 7, 0},
    {"i5", "from_i32", 0, 0, -16, 15, 0},
    {"i9", "from_i32", 0, 0, -256, 255, 0},
};

bool constant_is_element(const char *type, const char *function)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(elements[i].type, type) == 0 && strcmp(elements[i].function, function) == 0)
            return true;
    return false;
}

value constant_element(scope *s, const ast *n, const char *type, const char *function, const value *v)
{
    size_t i = 0;
    while (strcmp(elements[i].type, type) != 0 || strcmp(elements[i].function, function) != 0)
        i++;
    bool is_integer = elements[i].bits == 0;
    diag_list *diags = scope_context_of(s)->diags;
    if (v->kind == VALUE_ERROR)
        return error_value;
    if (v->kind != (is_integer ? VALUE_INT : VALUE_FLOAT)) {
        diag *d = diag_add(diags, E_CONST, n->range, "`%s::%s` takes %s, got %s", type, function, is_integer ? "an integer" : "a float",
                           value_kind_name(v));
        diag_help(diags, d, is_integer ? "write an integer, as in `%s::%s(1)`" : "write a float, as in `%s::%s(1.0)`", type, function);
        return error_value;
    }
    if (is_integer && (v->number < elements[i].least || v->number > elements[i].most)) {
        diag_add(diags, E_CONST, n->range, "%lld does not fit %s, which holds %lld to %lld", (long long)v->number, type,
                 (long long)elements[i].least, (long long)elements[i].most);
        return error_value;
    }
    if (is_integer)
        return *v;
    double x = nearest_of(v->real, elements[i].bits, elements[i].least_exponent);
    if (x > elements[i].largest || x < -elements[i].largest) {
        diag_add(diags, E_CONST, n->range, "%g does not fit %s, whose largest number is %g", v->real, type, elements[i].largest);
        return error_value;
    }
    return real(x);
}

/* ---- ranges and lists ---- */

bool value_is_sequence(const value *v)
{
    return v->kind == VALUE_RANGE || v->kind == VALUE_LIST;
}

value value_item(const value *sequence, size_t i)
{
    if (sequence->kind == VALUE_LIST) {
        value v = sequence->items[i];
        v.owned = false; /* of `.iter()` it is a reference */
        return v;
    }
    return integer(sequence->number + (int64_t)i * sequence->step);
}

value value_list(arena *a, const value *items, size_t count)
{
    value *copy = ARENA_ARRAY(a, value, count);
    if (count)
        memcpy(copy, items, count * sizeof *items);
    return (value){.kind = VALUE_LIST, .items = copy, .count = count};
}

value constant_range(scope *s, const ast *n, const value *first, const value *end)
{
    diag_list *diags = scope_context_of(s)->diags;
    if (first->kind == VALUE_ERROR || end->kind == VALUE_ERROR)
        return error_value;
    if (first->kind != VALUE_INT || end->kind != VALUE_INT) {
        diag *d = diag_add(diags, E_CONST, n->range, "a range needs two integer bounds, got %s and %s", value_kind_name(first),
                           value_kind_name(end));
        diag_help(diags, d, "write `0..N` with a constant N");
        return error_value;
    }
    int64_t last = end->number, count = 0;
    if (strcmp(n->text, "..=") == 0 && __builtin_add_overflow(last, 1, &last))
        last = INT64_MAX;
    if (last > first->number && (__builtin_sub_overflow(last, first->number, &count) || count > (int64_t)UNROLL_MAX)) {
        diag *d = diag_add(diags, E_UNROLL, n->range, "the range %lld%s%lld has more than %zu values", (long long)first->number, n->text,
                           (long long)end->number, UNROLL_MAX);
        diag_help(diags, d, "let an axis of Time count instead: a stage runs through all of its Time in one command");
        return error_value;
    }
    return (value){.kind = VALUE_RANGE, .number = first->number, .step = 1, .count = (size_t)count};
}

value constant_index(scope *s, const ast *n, const value *list, const value *index)
{
    if (list->kind == VALUE_ERROR || index->kind == VALUE_ERROR)
        return error_value;
    if (list->kind != VALUE_LIST || index->kind != VALUE_INT) {
        diag_add(scope_context_of(s)->diags, E_CONST, n->range, "%s cannot be indexed with %s", value_kind_name(list),
                 value_kind_name(index));
        return error_value;
    }
    if (index->number < 0 || (uint64_t)index->number >= list->count) {
        diag_add(scope_context_of(s)->diags, E_CONST, n->range, "index %lld of an array of %zu elements", (long long)index->number,
                 list->count);
        return error_value;
    }
    return list->items[index->number];
}

static value enumerate(scope *s, const value *v)
{
    arena *a = scope_context_of(s)->arena;
    value *pairs = ARENA_ARRAY(a, value, v->count);
    for (size_t i = 0; i < v->count; i++) {
        value pair[2] = {integer((int64_t)i), value_item(v, i)};
        pairs[i] = value_list(a, pair, 2);
    }
    return (value){.kind = VALUE_LIST, .items = pairs, .count = v->count};
}

/* Every `step`-th value, from the first or, backwards, from the last. */
static value thin_out(scope *s, const value *v, int64_t step, bool backwards)
{
    size_t count = v->count ? (v->count - 1) / (size_t)step + 1 : 0;
    value *items = ARENA_ARRAY(scope_context_of(s)->arena, value, count);
    for (size_t i = 0; i < count; i++)
        items[i] = value_item(v, backwards ? v->count - 1 - i * (size_t)step : i * (size_t)step);
    return (value){.kind = VALUE_LIST, .items = items, .count = count};
}

/* Pairs, as many as the shorter one has. */
static value zipped(scope *s, const value *a, const value *b)
{
    arena *memory = scope_context_of(s)->arena;
    size_t count = a->count < b->count ? a->count : b->count;
    value *items = ARENA_ARRAY(memory, value, count + 1);
    for (size_t i = 0; i < count; i++) {
        value *pair = ARENA_ARRAY(memory, value, 2);
        pair[0] = value_item(a, i);
        pair[1] = value_item(b, i);
        items[i] = (value){.kind = VALUE_LIST, .items = pair, .count = 2};
    }
    return (value){.kind = VALUE_LIST, .items = items, .count = count};
}

/* The elements from `first` on, at most `most`. */
static value cut_out(scope *s, const value *v, uint64_t first, uint64_t most)
{
    uint64_t left = first < v->count ? v->count - first : 0, count = left < most ? left : most;
    value *items = ARENA_ARRAY(scope_context_of(s)->arena, value, count + 1);
    for (size_t i = 0; i < count; i++)
        items[i] = value_item(v, first + i);
    return (value){.kind = VALUE_LIST, .items = items, .count = count};
}

value constant_method(scope *s, const ast *n, const value *receiver, const value *args, size_t arg_count)
{
    static const char *const methods[] = {"iter",    "iter_mut", "into_iter", "copied", "cloned", "enumerate", "rev",
                                          "step_by", "zip",      "skip",      "take",   "len",    NULL};
    diag_list *diags = scope_context_of(s)->diags;
    index_add_value(scope_context_of(s), n->name_range, receiver);
    const char *name = n->text;
    bool zips = strcmp(name, "zip") == 0, skips = strcmp(name, "skip") == 0, takes = strcmp(name, "take") == 0;
    size_t wanted = strcmp(name, "step_by") == 0 || zips || skips || takes;
    bool known = false;
    for (size_t i = 0; methods[i]; i++)
        known = known || strcmp(methods[i], name) == 0;
    if (!known) {
        const char *near = choice_near(name, methods);
        diag *d = diag_add(diags, E_METHOD, n->name_range, "there is no method `%s` on %s", name, value_kind_name(receiver));
        if (receiver->record)
            diag_help(diags, d, "write it in an `impl %s`, or a function that takes the `%s`", receiver->record->text,
                      receiver->record->text);
        else
            diag_help(diags, d, near ? "did you mean `%s`?" : "it offers iter, enumerate, rev, step_by, zip, skip, take and len%s",
                      near ? near : "");
        return error_value;
    }
    if (arg_count != wanted) {
        diag_add(diags, E_ARGUMENTS, n->name_range, "`%s` takes %s, got %zu", name,
                 arena_count(scope_context_of(s)->arena, wanted, "argument"), arg_count);
        return error_value;
    }
    if (wanted && args[0].kind == VALUE_ERROR)
        return error_value;
    if (zips && !value_is_sequence(args)) {
        diag *d = diag_add(diags, E_ARGUMENTS, n->name_range, "`zip` takes an array or a range, got %s", value_kind_name(args));
        diag_help(diags, d, "write `.iter()` of an array behind it");
        return error_value;
    }
    if (zips)
        return zipped(s, receiver, args);
    if (wanted && (args[0].kind != VALUE_INT || args[0].number < (skips || takes ? 0 : 1))) {
        diag_add(diags, E_ARGUMENTS, n->name_range, "`%s` takes an integer of at least %d", name, skips || takes ? 0 : 1);
        return error_value;
    }
    if (skips || takes)
        return cut_out(s, receiver, skips ? (uint64_t)args[0].number : 0, takes ? (uint64_t)args[0].number : receiver->count);
    if (strcmp(name, "enumerate") == 0)
        return enumerate(s, receiver);
    if (strcmp(name, "rev") == 0)
        return thin_out(s, receiver, 1, true);
    if (wanted)
        return thin_out(s, receiver, args[0].number, false);
    if (strcmp(name, "len") == 0)
        return integer((int64_t)receiver->count);
    return *receiver;
}

/* ---- methods of integers ---- */

/* a raised to the power b. */
static bool power(int64_t a, int64_t b, int64_t *out)
{
    bool fits = true;
    *out = 1;
    for (; b > 0 && fits; b >>= 1) {
        if (b & 1)
            fits = !__builtin_mul_overflow(*out, a, out);
        if (b > 1)
            fits = fits && !__builtin_mul_overflow(a, a, &a);
    }
    return fits;
}

static bool is_power(int64_t a)
{
    return a > 0 && (a & (a - 1)) == 0;
}

/* False: there is no such number, or none of 63 bits. */
static bool integer_method(const char *name, int64_t a, int64_t b, int64_t c, int64_t *out)
{
    *out = a;
    if (strcmp(name, "min") == 0)
        *out = a < b ? a : b;
    else if (strcmp(name, "max") == 0)
        *out = a > b ? a : b;
    else if (strcmp(name, "clamp") == 0)
        *out = a < b ? b : a > c ? c : a;
    else if (strcmp(name, "pow") == 0)
        return b >= 0 && power(a, b, out);
    else if (strcmp(name, "abs") == 0)
        return a >= 0 || !__builtin_sub_overflow((int64_t)0, a, out);
    else if (strcmp(name, "abs_diff") == 0)
        return !(a > b ? __builtin_sub_overflow(a, b, out) : __builtin_sub_overflow(b, a, out));
    else if (strcmp(name, "saturating_sub") == 0) /* of sizes, which are not negative */
        *out = a > b ? a - b : 0;
    else if (strcmp(name, "count_ones") == 0)
        *out = __builtin_popcountll((unsigned long long)a);
    else if (strcmp(name, "trailing_zeros") == 0 && a != 0)
        *out = __builtin_ctzll((unsigned long long)a);
    else if (strcmp(name, "ilog2") == 0 && a > 0)
        *out = 63 - __builtin_clzll((unsigned long long)a);
    else if (strcmp(name, "next_power_of_two") == 0 && a >= 0)
        return a <= (int64_t)1 << 62 && (*out = a <= 1 ? 1 : (int64_t)1 << (64 - __builtin_clzll((unsigned long long)a - 1))) > 0;
    else if (strcmp(name, "div_ceil") == 0 && a >= 0 && b > 0)
        *out = a / b + (a % b != 0);
    else if (strcmp(name, "next_multiple_of") == 0 && a >= 0 && b > 0)
        return !__builtin_add_overflow(a, a % b ? b - a % b : 0, out);
    else
        return false;
    return true;
}

static const char *const integer_methods[] = {"min",
                                              "max",
                                              "pow",
                                              "div_ceil",
                                              "next_multiple_of",
                                              "abs_diff",
                                              "saturating_sub",
                                              "clamp",
                                              "is_power_of_two",
                                              "abs",
                                              "next_power_of_two",
                                              "ilog2",
                                              "trailing_zeros",
                                              "count_ones",
                                              NULL};
enum { ONE = 7, TWO = 8 }; /* so many of them take an argument, or two */

bool constant_has_method(const char *name)
{
    size_t i = 0;
    while (integer_methods[i] && strcmp(integer_methods[i], name) != 0)
        i++;
    return integer_methods[i];
}

value constant_integer_method(scope *s, const ast *n, int64_t receiver, const value *args, size_t arg_count)
{
    diag_list *diags = scope_context_of(s)->diags;
    size_t i = 0;
    while (integer_methods[i] && strcmp(integer_methods[i], n->text) != 0)
        i++;
    size_t wanted = i < ONE ? 1 : i < TWO ? 2 : 0;
    if (!integer_methods[i]) {
        const char *near = choice_near(n->text, integer_methods);
        diag *d = diag_add(diags, E_METHOD, n->name_range, "there is no method `%s` on an integer", n->text);
        diag_help(diags, d, near ? "did you mean `%s`?" : "it offers min, max, pow, div_ceil, next_multiple_of, next_power_of_two, ilog2%s",
                  near ? near : " and the like");
        return error_value;
    }
    if (arg_count != wanted) {
        diag_add(diags, E_ARGUMENTS, n->name_range, "`%s` takes %s, got %zu", n->text,
                 arena_count(scope_context_of(s)->arena, wanted, "argument"), arg_count);
        return error_value;
    }
    for (size_t k = 0; k < wanted; k++)
        if (args[k].kind != VALUE_INT) {
            if (args[k].kind != VALUE_ERROR)
                diag_add(diags, E_ARGUMENTS, n->name_range, "`%s` takes integers, got %s", n->text, value_kind_name(&args[k]));
            return error_value;
        }
    if (strcmp(n->text, "is_power_of_two") == 0)
        return boolean(is_power(receiver));
    int64_t out;
    if (integer_method(n->text, receiver, wanted ? args[0].number : 0, wanted > 1 ? args[1].number : 0, &out))
        return integer(out);
    diag_add(diags, E_CONST, n->range, "`%s` of %lld%s has no value of 63 bits", n->text, (long long)receiver,
             wanted ? arena_printf(scope_context_of(s)->arena, " and %lld", (long long)args[0].number) : "");
    return error_value;
}
