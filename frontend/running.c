#include "frontend/running.h"

#include <string.h>

#include "frontend/stage_build.h"

static const run_type types[] = {{"bool", 8, false, true}, {"i32", 32, true, false},  {"u32", 32, false, false},
                                 {"i64", 64, true, false}, {"u64", 64, false, false}, {"usize", 64, false, false}};
enum { TYPES = sizeof types / sizeof *types, WORD_BITS = 32 };

const run_type *run_type_of(scope *s, const ast *segment)
{
    diag_list *diags = scope_context_of(s)->diags;
    const ast *args = ast_kid(segment, 0),
              *last = ast_is(args, AST_GENERIC_ARGS) && args->kid_count == 1 ? ast_last_segment(args->kids[0]) : NULL;
    for (size_t i = 0; last && i < TYPES; i++)
        if (strcmp(types[i].name, last->text) == 0)
            return &types[i];
    diag *d =
        diag_add(diags, E_TYPE, segment->range, last ? "no HbmScalar is of `%s`" : "HbmScalar takes a type%s", last ? last->text : "");
    diag_help(diags, d, "write HbmScalar<T> with T one of bool, i32, u32, i64, u64, usize");
    return NULL;
}

bool run_type_tensor(scope_context *c, const run_type *t, const char *name, int64_t chips, tensor *out)
{
    const mapping *element = mapping_identity(c->mappings), *chip = NULL;
    if (t->bits > WORD_BITS) /* a name that no source can write */
        element = mapping_symbol(c->mappings, mapping_axis(c->mappings, arena_printf(c->arena, "%s.word", name), t->bits / WORD_BITS));
    if (mapping_broadcast(c->mappings, chips > 0 ? chips : 1, &chip) != MAPPING_OK)
        return false;
    *out = (tensor){.kind = TENSOR_HBM, .dtype = t->is_bool ? DTYPE_U8 : DTYPE_I32, .address = ADDRESS_NONE};
    out->part[CHIP] = chip;
    out->part[ELEMENT] = element;
    return true;
}

const run_number *run_number_new(arena *a, const run_type *t, op *port)
{
    run_number *n = ARENA_NEW(a, run_number);
    *n = (run_number){.port = port, .type = t};
    return n;
}

/* Is anything added to what the port holds? */
static bool adds(const run_number *n)
{
    for (; n; n = n->from)
        if (n->more != 0)
            return true;
    return false;
}

op *run_number_count(const run_number *n)
{
    return n->type->bits == WORD_BITS && n->type->is_signed && !adds(n) && n->port->out.part[ELEMENT]->size == 1 ? n->port : NULL;
}

op *run_number_position(const run_number *n)
{
    bool one = n->port->out.part[ELEMENT]->size == 1 && n->port->out.dtype == DTYPE_I32;
    return one && !adds(n) && strcmp(n->type->name, "usize") == 0 ? n->port : NULL;
}

const run_number *run_number_cast(arena *a, const run_number *n, const char *type)
{
    for (size_t i = 0; i < TYPES; i++)
        if (!types[i].is_bool && strcmp(types[i].name, type) == 0) {
            run_number *cast = ARENA_NEW(a, run_number);
            *cast = (run_number){.port = n->port, .type = &types[i], .from = n};
            return cast;
        }
    return NULL;
}

/* ---- conditions ---- */

/* Values first, first + 1, .. first + span of a circle of 2^bits. Whatever a comparison says of a number is such an arc, and it stays one
 * on the way back through casts and sums: what a wider type has of a narrower one is one arc, and two of its ends meet on the narrower
 * circle. */
typedef struct arc {
    bool none, all;
    unsigned bits;
    uint64_t first, span;
} arc;

static uint64_t most_of(unsigned bits)
{
    return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

static arc arc_between(const run_type *t, __int128 low, __int128 high)
{
    __int128 least = t->is_signed ? -((__int128)1 << (t->bits - 1)) : 0,
             most = t->is_signed ? ((__int128)1 << (t->bits - 1)) - 1 : (__int128)most_of(t->bits);
    low = low < least ? least : low;
    high = high > most ? most : high;
    if (low > high)
        return (arc){.none = true, .bits = t->bits};
    uint64_t mask = most_of(t->bits);
    return (arc){
        .all = low == least && high == most, .bits = t->bits, .first = (uint64_t)low & mask, .span = (uint64_t)(high - low) & mask};
}

/* Of a number that a cast from `t` made: of the one in front of it. */
static arc arc_before_cast(arc x, const run_type *t)
{
    if (x.none || x.all || t->bits >= x.bits) {
        x.bits = x.none || x.all ? t->bits : x.bits; /* of a wider one only the lowest bits count */
        return x;
    }
    uint64_t wide = most_of(x.bits), last = most_of(t->bits),
             least = t->is_signed ? (uint64_t)0 - (UINT64_C(1) << (t->bits - 1)) : 0; /* where the narrow values begin */
    uint64_t a = (x.first - least) & wide, e = (a + x.span) & wide;
    arc y = {.bits = t->bits};
    if (a <= e) {
        y.none = a > last;
        y.first = a;
        y.span = (e < last ? e : last) - a;
    } else if (a <= last) {
        y.first = a;
        y.span = last - a + 1 + e;
    } else {
        y.span = e < last ? e : last;
    }
    y.all = !y.none && y.span >= last;
    y.first = (y.first + least) & last;
    return y;
}

static value condition_of_arc(arena *a, const run_number *n, arc x)
{
    for (; n->from; n = n->from) {
        if (n->more != 0)
            x.first = (x.first - (uint64_t)n->more) & most_of(x.bits);
        if (n->from->type != n->type)
            x = arc_before_cast(x, n->from->type);
    }
    if (x.none || x.all)
        return (value){.kind = VALUE_BOOL, .number = x.all};
    run_guard *g = ARENA_NEW(a, run_guard);
    *g = (run_guard){.port = n->port, .bits = x.bits, .first = x.first, .span = x.span};
    return (value){.kind = VALUE_CONDITION, .guards = g};
}

bool run_condition_of(arena *a, const value *v, const run_guard **out)
{
    if (v->kind == VALUE_CONDITION)
        *out = v->guards;
    else if (v->kind == VALUE_RUNNING && v->run->type->is_bool)
        *out = condition_of_arc(a, v->run, arc_between(v->run->type, 1, UINT8_MAX)).guards;
    else
        return false;
    return true;
}

const run_guard *run_guard_opposite(arena *a, const run_guard *g)
{
    if (g->outer)
        return NULL;
    run_guard *x = ARENA_NEW(a, run_guard);
    uint64_t most = most_of(g->bits);
    *x = (run_guard){.port = g->port, .bits = g->bits, .first = (g->first + g->span + 1) & most, .span = (most - g->span - 1) & most};
    return x;
}

const run_guard *run_guard_join(arena *a, const run_guard *more, const run_guard *outer)
{
    for (; more; more = more->outer) {
        run_guard *x = ARENA_NEW(a, run_guard);
        *x = *more;
        x->outer = outer;
        outer = x;
    }
    return outer;
}

static value refuse_operator(scope *s, const ast *n, const char *operator, const char * help)
{
    diag *d = diag_add(scope_context_of(s)->diags, E_UNSUPPORTED, n->name_range,
                       "`%s` of a number that is known when the kernel runs is not supported here", operator);
    diag_help(scope_context_of(s)->diags, d, "%s", help);
    return (value){.kind = VALUE_ERROR};
}

static value compare_number(scope *s, const char *operator, const run_number * x, __int128 with, bool turned)
{
    arena *a = scope_context_of(s)->arena;
    bool less = operator[0] == '<', more = operator[0] == '>', or_equal = operator[1] == '=';
    const __int128 far = (__int128)1 << 100;
    if (turned && (less || more)) { /* `c < n` is `n > c` */
        less = !less;
        more = !more;
    }
    arc in = less   ? arc_between(x->type, -far, or_equal ? with : with - 1)
             : more ? arc_between(x->type, or_equal ? with : with + 1, far)
                    : arc_between(x->type, with, with);
    if (operator[0] == '!') {
        uint64_t most = most_of(in.bits);
        if (in.none)
            in = (arc){.all = true, .bits = in.bits};
        else
            in = (arc){.bits = in.bits, .first = (in.first + 1) & most, .span = most - 1};
    }
    return condition_of_arc(a, x, in);
}

static bool is_comparison(const char *operator)
{
    static const char *const all[] = {"==", "!=", "<", "<=", ">", ">="};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], operator) == 0)
            return true;
    return false;
}

static value join_conditions(scope *s, const ast *n, const char *operator, const value * x, const value *y)
{
    arena *a = scope_context_of(s)->arena;
    const run_guard *left = NULL, *right = NULL;
    bool one = x->kind == VALUE_BOOL, other = y->kind == VALUE_BOOL;
    if ((!one && !run_condition_of(a, x, &left)) || (!other && !run_condition_of(a, y, &right)))
        return refuse_operator(s, n, operator, "it joins conditions: compare the number with a constant");
    const value *known = one ? x : other ? y : NULL;
    bool and = operator[0] == '&';
    if (known && known->number != and)
        return *known;
    if (known)
        return (value){.kind = VALUE_CONDITION, .guards = one ? right : left};
    if (!and)
        return refuse_operator(s, n, operator, "write two `if`, one after the other, where both may do the same; or test the opposite");
    return (value){.kind = VALUE_CONDITION, .guards = run_guard_join(a, left, right)};
}

value run_binary(scope *s, const ast *n, const char *operator, const value * x, const value *y)
{
    arena *a = scope_context_of(s)->arena;
    if (strcmp(operator, "&&") == 0 || strcmp(operator, "||") == 0)
        return join_conditions(s, n, operator, x, y);
    bool turned = y->kind == VALUE_RUNNING;
    const value *number = turned ? y : x, *with = turned ? x : y;
    bool is_number = number->kind == VALUE_RUNNING && with->kind == VALUE_INT && !number->run->type->is_bool;
    if (is_number && is_comparison(operator))
        return compare_number(s, operator, number->run, with->number, turned);
    if (number->kind == VALUE_RUNNING && with->kind == VALUE_BOOL && number->run->type->is_bool &&
        (strcmp(operator, "==") == 0 || strcmp(operator, "!=") == 0)) {
        value v = {.kind = VALUE_CONDITION};
        run_condition_of(a, number, &v.guards);
        return (with->number != 0) == (operator[0] == '=') ? v : run_not(s, n, &v);
    }
    if (is_number && strcmp(operator, "+") == 0) {
        run_number *sum = ARENA_NEW(a, run_number);
        *sum = (run_number){.port = number->run->port, .type = number->run->type, .from = number->run, .more = with->number};
        return (value){.kind = VALUE_RUNNING, .run = sum};
    }
    return refuse_operator(s, n, operator, is_comparison(operator)
                                               ? "compare the number with a constant, or with the index of a loop"
                                               : "it may be compared, be added to, turned by `as`, be the count of `sparse_prefix`, or the "
                                                 "start of a tile of HBM that is read");
}

value run_not(scope *s, const ast *n, const value *operand)
{
    arena *a = scope_context_of(s)->arena;
    const run_guard *g = NULL, *opposite = run_condition_of(a, operand, &g) ? run_guard_opposite(a, g) : NULL;
    if (opposite)
        return (value){.kind = VALUE_CONDITION, .guards = opposite};
    return refuse_operator(s, n, "!", g ? "negate each of the conditions that `&&` joins" : "it is the opposite of a condition");
}

value stage_make_scalar_to_spm(const stage_call *call)
{
    return (value){.kind = VALUE_RUNNING, .run = call->receiver.run};
}
