#include "frontend/running.h"

#include <string.h>

#include "frontend/stage_build.h"
#include "support/choice.h"

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

bool run_number_position(const run_number *n, run_position *out)
{
    *out = (run_position){.port = n->port, .bits = n->type->bits};
    bool position = n->port->out.dtype == DTYPE_I32 && strcmp(n->type->name, "usize") == 0;
    for (; n && position; n = n->from) {
        unsigned bits = n->type->bits;
        out->bits = bits < out->bits ? bits : out->bits;
        position = n->more >= 0 && !__builtin_add_overflow(out->more, n->more, &out->more);
    }
    return position;
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

static const run_condition *condition_of_case(arena *a, const run_guard *g)
{
    run_condition *x = ARENA_NEW(a, run_condition);
    *x = (run_condition){.count = 1, .cases = {g}};
    return x;
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
    return (value){.kind = VALUE_CONDITION, .condition = condition_of_case(a, g)};
}

const run_condition *run_condition_of(arena *a, const value *v)
{
    if (v->kind == VALUE_CONDITION)
        return v->condition;
    if (v->kind == VALUE_RUNNING && v->run->type->is_bool)
        return condition_of_arc(a, v->run, arc_between(v->run->type, 1, UINT8_MAX)).condition;
    return NULL;
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

/* ---- cases ---- */

/* Values of y that are one of x's, by where x begins on y's circle: none of them, all of them? */
static bool arcs_apart(const run_guard *x, const run_guard *y)
{
    uint64_t most = most_of(x->bits);
    return ((y->first - x->first) & most) > x->span && ((x->first - y->first) & most) > y->span;
}

static bool arc_inside(const run_guard *x, const run_guard *of)
{
    uint64_t from = (x->first - of->first) & most_of(x->bits);
    return from <= of->span && x->span <= of->span - from;
}

/* A guard in front of a case; *never: both cannot hold. One that holds anyway is not added. */
static const run_guard *case_with(arena *a, const run_guard *g, const run_guard *of, bool *never)
{
    for (const run_guard *x = of; x; x = x->outer) {
        if (x->port != g->port || x->bits != g->bits)
            continue;
        if (arcs_apart(x, g))
            *never = true;
        if (arc_inside(x, g))
            return of;
    }
    run_guard *more = ARENA_NEW(a, run_guard);
    *more = *g;
    more->outer = of;
    return more;
}

/* Adds the case unless it can never be. False: there are too many. */
static bool add_case(run_condition *x, const run_guard *g, bool never)
{
    if (never)
        return true;
    if (x->count == RUN_MOST_CASES)
        return false;
    x->cases[x->count++] = g;
    return true;
}

/* Where both hold. NULL: too many cases. */
static run_condition *both_of(arena *a, const run_condition *x, const run_condition *y)
{
    run_condition *out = ARENA_NEW(a, run_condition);
    *out = (run_condition){.count = 0};
    for (size_t i = 0; i < x->count; i++)
        for (size_t k = 0; k < y->count; k++) {
            const run_guard *all = x->cases[i];
            bool never = false;
            for (const run_guard *g = y->cases[k]; g; g = g->outer)
                all = case_with(a, g, all, &never);
            if (!add_case(out, all, never))
                return NULL;
        }
    return out;
}

static run_guard arc_opposite(const run_guard *g)
{
    uint64_t most = most_of(g->bits);
    return (run_guard){.port = g->port, .bits = g->bits, .first = (g->first + g->span + 1) & most, .span = (most - g->span - 1) & most};
}

/* Where one case does not hold: its first guard does not, or that holds and the second does not, and so on. */
static run_condition *opposite_of_case(arena *a, const run_guard *of)
{
    run_condition *out = ARENA_NEW(a, run_condition);
    *out = (run_condition){.count = 0};
    const run_guard *before = NULL;
    for (const run_guard *g = of; g; g = g->outer) {
        run_guard other = arc_opposite(g);
        bool never = false;
        const run_guard *fails = case_with(a, &other, before, &never);
        if (!add_case(out, fails, never))
            return NULL;
        never = false;
        before = case_with(a, g, before, &never);
    }
    return out;
}

const run_condition *run_condition_opposite(arena *a, const run_condition *x)
{
    const run_condition *all = opposite_of_case(a, x->cases[0]);
    for (size_t i = 1; all && i < x->count; i++) {
        const run_condition *one = opposite_of_case(a, x->cases[i]);
        all = one ? both_of(a, all, one) : NULL;
    }
    return all;
}

/* Where one of them holds: x, or y where x does not. NULL: too many cases. */
static const run_condition *either_of(arena *a, const run_condition *x, const run_condition *y)
{
    const run_condition *other = run_condition_opposite(a, x);
    const run_condition *rest = other ? both_of(a, other, y) : NULL;
    run_condition *out = ARENA_NEW(a, run_condition);
    *out = *x;
    for (size_t i = 0; rest && i < rest->count; i++)
        if (!add_case(out, rest->cases[i], false))
            return NULL;
    return rest ? out : NULL;
}

/* Without cases it never holds; NULL is refused. */
static value value_of_condition(scope *s, const ast *n, const char *operator, const run_condition * x);

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
    return choice_has(all, sizeof all / sizeof *all, operator);
}

static value join_conditions(scope *s, const ast *n, const char *operator, const value * x, const value *y)
{
    arena *a = scope_context_of(s)->arena;
    bool one = x->kind == VALUE_BOOL, other = y->kind == VALUE_BOOL, and = operator[0] == '&';
    const run_condition *left = one ? NULL : run_condition_of(a, x), *right = other ? NULL : run_condition_of(a, y);
    if ((!one && !left) || (!other && !right))
        return refuse_operator(s, n, operator, "it joins conditions: compare the number with a constant");
    const value *known = one ? x : other ? y : NULL;
    if (known && known->number != and)
        return *known;
    if (known)
        return (value){.kind = VALUE_CONDITION, .condition = one ? right : left};
    return value_of_condition(s, n, operator, and ? both_of(a, left, right) : either_of(a, left, right));
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
        value v = {.kind = VALUE_CONDITION, .condition = run_condition_of(a, number)};
        return (with->number != 0) == (operator[0] == '=') ? v : run_not(s, n, &v);
    }
    bool less = strcmp(operator, "-") == 0 && !turned && with->number > INT64_MIN;
    if (is_number && (strcmp(operator, "+") == 0 || less)) {
        run_number *sum = ARENA_NEW(a, run_number);
        *sum = (run_number){
            .port = number->run->port, .type = number->run->type, .from = number->run, .more = less ? -with->number : with->number};
        return (value){.kind = VALUE_RUNNING, .run = sum};
    }
    return refuse_operator(s, n, operator,
                           is_comparison(operator)
                               ? "compare the number with a constant, or with the index of a loop"
                               : "it may be compared, be added to or taken from, turned by `as`, be the count of `sparse_prefix`, or the "
                                 "start of a tile of HBM that is read");
}

static value value_of_condition(scope *s, const ast *n, const char *operator, const run_condition * x)
{
    if (!x)
        return refuse_operator(s, n, operator, "it has more than 64 cases: write an `if` inside of an `if`");
    return x->count > 0 ? (value){.kind = VALUE_CONDITION, .condition = x} : (value){.kind = VALUE_BOOL, .number = 0};
}

value run_not(scope *s, const ast *n, const value *operand)
{
    arena *a = scope_context_of(s)->arena;
    const run_condition *x = run_condition_of(a, operand);
    return x ? value_of_condition(s, n, "!", run_condition_opposite(a, x))
             : refuse_operator(s, n, "!", "it is the opposite of a condition");
}

value stage_make_scalar_to_spm(const stage_call *call)
{
    return (value){.kind = VALUE_RUNNING, .run = call->receiver.run};
}
