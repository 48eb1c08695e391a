#include "codegen/reference/check.h"

#include <inttypes.h>

#include "codegen/reference/fault.h"
#include "codegen/reference/walk.h"

#define MAX_ELEMENTS (INT64_C(1) << 46)
#define MAX_COORDINATE (INT64_C(1) << 62)
#define MAX_COMBINATIONS (INT64_C(1) << 50)

/* ---- windows ---- */

static char *check_term(const einsum *e, uint32_t number, const einsum_term *t, int64_t *size)
{
    int64_t reach;
    if (t->axis >= e->axis_count || t->axis == e->windows[number].axis || t->weight < 1 || t->extent < 1 || t->stride < 1 ||
        t->weight > e->axes[t->axis].size || t->extent - 1 > (e->axes[t->axis].size - 1) / t->weight ||
        e->axes[t->axis].size >= MAX_COORDINATE)
        return fault_text("window %u has a term that is no digit of an axis", number);
    if (__builtin_mul_overflow(t->extent - 1, t->stride, &reach) || __builtin_add_overflow(*size, reach, size))
        return fault_text("window %u has places of 2^63 and more", number);
    return NULL;
}

static char *check_window(const einsum *e, uint32_t number)
{
    const einsum_window *x = &e->windows[number];
    if (x->axis >= e->axis_count || walk_window(e, x->axis) != x)
        return fault_text("window %u is no axis, or the same as another window", number);
    int64_t size = 1;
    char *fault = NULL;
    for (uint32_t i = 0; i < x->term_count && !fault; i++)
        fault = check_term(e, number, &x->terms[i], &size);
    if (!fault && x->bordered && (x->first < 0 || x->first >= size || e->axes[x->axis].size > size - x->first))
        return fault_text("window %u holds places that it does not have", number);
    if (!fault && !x->bordered && size != e->axes[x->axis].size)
        fault = fault_text("window %u has %" PRId64 " places and %" PRId64 " as an axis", number, size, e->axes[x->axis].size);
    return fault;
}

/* Every digit lies inside the term or outside it, and no combination that exists passes the term's end. */
static char *check_term_digits(const einsum *e, uint32_t number, const einsum_statement *s, einsum_side side, const einsum_term *t,
                               bool *used)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        int64_t weight = einsum_digit_indexes(&s->digits[i], side) ? walk_term_weight(t, &s->digits[i]) : 0;
        if (weight < 0)
            return fault_text("statement %u has a digit that a window's term cuts", number);
        if (weight > 0)
            last += (s->digits[i].size - 1) * (s->digits[i].weight / t->weight);
        *used |= weight > 0;
    }
    if (last >= t->extent && t->weight * t->extent < e->axes[t->axis].size)
        return fault_text("statement %u passes the end of a window's term", number);
    return NULL;
}

static char *check_tensor_windows(const einsum *e, uint32_t number, const einsum_statement *s, einsum_side side, uint32_t tensor)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++) {
        const einsum_window *x = walk_window(e, t->axes[i]);
        bool used = false, own = side == EINSUM_DST;
        char *fault = NULL;
        for (uint32_t k = 0; x && k < x->term_count && !fault; k++)
            fault = check_term_digits(e, number, s, side, &x->terms[k], &used);
        for (uint32_t k = 0; k < s->digit_count; k++)
            own |= s->digits[k].axis == t->axes[i] && s->digits[k].size > 1 && einsum_digit_indexes(&s->digits[k], side);
        if (!fault && used && own)
            fault = fault_text("statement %u indexes tensor %u by a window and by its terms", number, tensor);
        if (fault)
            return fault;
    }
    return NULL;
}

static char *check_windows(const einsum *e, uint32_t number, const einsum_statement *s)
{
    char *fault = NULL;
    for (unsigned side = 0; side < einsum_side_count(s) && !fault; side++)
        fault = check_tensor_windows(e, number, s, (einsum_side)side, einsum_operand(s, (einsum_side)side));
    return fault;
}

/* ---- tensors ---- */

static char *check_tensor(const einsum *e, uint32_t number)
{
    const einsum_tensor *t = &e->tensors[number];
    if ((unsigned)t->dtype >= DTYPE_COUNT)
        return fault_text("tensor %u has no known element type", number);
    int64_t elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->axes[i] >= e->axis_count)
            return fault_text("tensor %u names axis %u of %u", number, t->axes[i], e->axis_count);
        if (__builtin_mul_overflow(elements, e->axes[t->axes[i]].size, &elements) || elements > MAX_ELEMENTS)
            return fault_text("tensor %u has more than 2^46 elements", number);
    }
    return NULL;
}

/* ---- statements ---- */

static bool dtype_is_float(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
}

/* The expression has the accumulator's type, and a reduction folds values of it. */
static char *check_expression(const einsum *e, uint32_t number, const einsum_statement *s)
{
    dtype types[EINSUM_SOURCES];
    for (uint32_t i = 0; i < s->source_count; i++)
        types[i] = e->tensors[s->sources[i]].dtype;
    const scalar_row *fold = scalar_row_of(s->fold);
    if (s->step_count > SCALAR_MAX_STEPS || (unsigned)s->accumulator >= DTYPE_COUNT ||
        scalar_result(s->steps, s->step_count, types, s->source_count) != scalar_type_of(s->accumulator))
        return fault_text("statement %u has no expression of its accumulator's type", number);
    if (s->op == MATH_REDUCE && (!fold || !(fold->flags & SCALAR_FOLDS) || fold->result != scalar_type_of(s->accumulator)))
        return fault_text("statement %u folds by no operation", number);
    return NULL;
}

static char *check_indices(const einsum *e, uint32_t number, const einsum_statement *s)
{
    const einsum_tensor *count = s->counted && s->source_count > 2 ? &e->tensors[einsum_operand(s, einsum_count_side(s))] : NULL;
    if (s->counted && (s->op != MATH_GATHER || !count || count->rank > 0 || count->dtype != DTYPE_I32 || s->count_span < 1))
        return fault_text("statement %u has a count that is no single i32 of a gather", number);
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        const einsum_index *x = &s->indices[i];
        bool twice = false;
        for (uint32_t k = 0; k < i; k++)
            twice |= s->indices[k].axis == x->axis;
        if (twice || x->axis >= e->axis_count || !einsum_tensor_has(&e->tensors[einsum_operand(s, einsum_indexed_side(s))], x->axis) ||
            walk_window(e, x->axis) || x->unit < 1 || x->unit > e->axes[x->axis].size || x->step < 1 || x->div < 1 || x->mod < 0 ||
            x->positions < 0 || dtype_is_float(e->tensors[s->sources[i + 1]].dtype))
            return fault_text("statement %u has an index that is none of its tensor", number);
    }
    return NULL;
}

static char *check_types(const einsum *e, uint32_t number, const einsum_statement *s)
{
    const einsum_tensor *t = e->tensors;
    bool floats = dtype_is_float(t[s->dst].dtype);
    bool contract = s->op == MATH_CONTRACT;
    if (math_row_of(s->op)->has_expression) {
        char *fault = check_expression(e, number, s);
        if (fault)
            return fault;
    }
    bool mixed = (contract || s->source_count) && dtype_is_float(t[s->sources[0]].dtype) != floats;
    mixed |= contract && dtype_is_float(t[s->sources[1]].dtype) != floats;
    if (math_row_of(s->op)->has_expression ? dtype_is_float(s->accumulator) != floats : mixed)
        return fault_text("statement %u mixes integers and floats", number);
    if (contract && s->accumulator != (floats ? DTYPE_F32 : DTYPE_I32))
        return fault_text("statement %u accumulates in another kind than it multiplies", number);
    return check_indices(e, number, s);
}

/* No two terms stand at one position: a digit's step is not shorter than what the digits inside it reach. Digits that count on from each
 * other along an axis end with it, because what is after its end does not exist. */
static char *check_positions(const einsum *e, uint32_t number, const einsum_statement *s, unsigned group, int64_t *positions)
{
    const einsum_digit *inner = NULL; /* counts on from others: together they have `longest` values, that begin `begins` apart */
    int64_t longest = 1, begins = 1, weight = 1;
    *positions = 1;
    for (uint32_t i = s->digit_count; i-- > 0;) {
        const einsum_digit *d = &s->digits[i];
        if (d->kept || d->group != group || d->size == 1)
            continue;
        int64_t next;
        bool goes_on = inner && inner->axis == d->axis && inner->weight * inner->size == d->weight &&
                       !__builtin_mul_overflow(inner->stride, inner->size, &next) && next == d->stride;
        if (!goes_on && d->stride < *positions)
            return fault_text("statement %u has two terms at one position of group %u", number, group);
        if (!goes_on) {
            longest = 1;
            begins = d->stride;
            weight = d->weight;
        }
        int64_t exist = (e->axes[d->axis].size - 1) / weight + 1;
        longest = longest > exist / d->size ? exist : longest * d->size;
        if (__builtin_mul_overflow(longest, begins, positions) || *positions > MAX_COMBINATIONS)
            return fault_text("statement %u has a group of more than 2^50 positions", number);
        inner = d;
    }
    return NULL;
}

/* The group's pieces together count all its positions once. */
static char *check_group(const einsum *e, uint32_t number, const einsum_statement *s, unsigned group)
{
    int64_t positions, counted = 1, product = 1;
    char *fault = check_positions(e, number, s, group, &positions);
    if (fault)
        return fault;
    for (uint32_t i = 0; i < s->piece_count; i++)
        product *= s->pieces[i].group == group ? s->pieces[i].size : 1;
    for (uint32_t i = 0; i < s->piece_count; i++)
        for (uint32_t k = 0; k < s->piece_count; k++)
            if (s->pieces[k].group == group && s->pieces[k].weight == counted)
                counted *= s->pieces[k].size;
    return counted == product && counted >= positions
               ? NULL
               : fault_text("statement %u has pieces that are not the whole of group %u", number, group);
}

/* The same rule for lanes as below, and every summed digit in a group. */
static char *check_pieces(const einsum *e, uint32_t number, const einsum_statement *s)
{
    int64_t room = PLAN_MAX_LANES, places = 1;
    for (uint32_t i = 0; i < s->piece_count; i++) {
        const einsum_piece *p = &s->pieces[i];
        if (p->size < 2 || p->weight < 1 || __builtin_mul_overflow(places, p->size, &places) || places > MAX_COMBINATIONS)
            return fault_text("statement %u has pieces of no size, or of more than 2^50 places", number);
        if (p->lane ? p->size > room / p->lane : room < PLAN_MAX_LANES)
            return fault_text("statement %u has a piece without a place in the packet", number);
        room = p->lane ? p->lane : room;
    }
    unsigned groups = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->kept)
            continue;
        if (d->lane || d->group < 1 || d->stride < 1 || d->stride > MAX_COMBINATIONS)
            return fault_text("statement %u has a summed digit without a group", number);
        groups = d->group > groups ? d->group : groups;
    }
    char *fault = NULL;
    for (unsigned group = 1; group <= groups && !fault; group++)
        fault = check_group(e, number, s, group);
    return fault;
}

/* A digit with lanes lies inside a step of the one before it, so that the lanes of a packet are few and ascend. */
static char *check_order(const einsum *e, uint32_t number, const einsum_statement *s)
{
    int64_t room = 0;
    if (s->piece_count)
        return check_pieces(e, number, s);
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->lane ? d->kept || d->size > (room ? room : PLAN_MAX_LANES) / d->lane : room && !d->kept)
            return fault_text("statement %u has a digit without a place in the packet", number);
        room = d->kept ? room : d->lane;
    }
    return NULL;
}

static char *check_operands(const reference_plan *p, uint32_t number, const einsum_statement *s)
{
    const einsum *e = p->e;
    const math_row *row = math_row_of(s->op);
    if (!row)
        return fault_text("statement %u has the unknown operation %d", number, (int)s->op);
    if (s->source_count < row->fewest_sources || s->source_count > row->most_sources)
        return fault_text("statement %u has %u sources", number, s->source_count);
    if (s->dst >= e->tensor_count)
        return fault_text("statement %u names a tensor beyond %u", number, e->tensor_count);
    for (uint32_t i = 0; i < s->source_count; i++) {
        uint32_t source = s->sources[i];
        if (source >= e->tensor_count)
            return fault_text("statement %u names a tensor beyond %u", number, e->tensor_count);
        if (source == s->dst)
            return fault_text("statement %u assigns tensor %u while it is read", number, s->dst);
        if (e->tensors[source].port < 0 && !p->assigned[source])
            return fault_text("statement %u reads an intermediate before it is assigned", number);
    }
    if (p->used[s->dst] && !p->assigned[s->dst])
        return fault_text("statement %u assigns tensor %u after it was read", number, s->dst);
    return check_types(e, number, s);
}

static char *check_digit(const einsum *e, uint32_t number, const einsum_statement *s, const einsum_digit *d)
{
    int64_t last;
    if (d->axis >= e->axis_count)
        return fault_text("statement %u has a digit of axis %u of %u", number, d->axis, e->axis_count);
    if (d->size < 1 || d->weight < 1 || __builtin_mul_overflow(d->size - 1, d->weight, &last) || last >= MAX_COORDINATE)
        return fault_text("statement %u has a digit of size %" PRId64 " and weight %" PRId64, number, d->size, d->weight);
    if (d->size > 1 && d->kept && s->op != MATH_SCATTER && !einsum_tensor_has(&e->tensors[s->dst], d->axis))
        return fault_text("statement %u keeps a digit of axis %u that its destination lacks", number, d->axis);
    if (d->size > 1 && !d->kept && !math_row_of(s->op)->sums)
        return fault_text("statement %u is a %s with a summed digit", number, math_row_of(s->op)->name);
    return NULL;
}

static char *check_digits(const einsum *e, uint32_t number, const einsum_statement *s)
{
    int64_t combinations = 1, coordinates = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        char *fault = check_digit(e, number, s, d);
        if (fault)
            return fault;
        if (__builtin_mul_overflow(combinations, d->size, &combinations) || combinations > MAX_COMBINATIONS)
            return fault_text("statement %u has more than 2^50 combinations of digits", number);
        if (__builtin_add_overflow(coordinates, (d->size - 1) * d->weight, &coordinates) || coordinates >= MAX_COORDINATE)
            return fault_text("statement %u has coordinates of 2^62 and more", number);
    }
    return NULL;
}

/* The last place of a window that the statement's digits of its terms reach; at least its size when that is beyond 62 bits. Digits of its
 * own are those of any axis: combinations that reach its size do not exist. */
static int64_t window_reach(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        bool of_terms = s->digits[i].axis != axis && einsum_digit_indexes(&s->digits[i], side);
        uint64_t weight = of_terms ? walk_axis_weight(e, axis, &s->digits[i]) : 0;
        int64_t more;
        if (weight >= (uint64_t)MAX_COORDINATE || __builtin_mul_overflow((int64_t)weight, s->digits[i].size - 1, &more) ||
            __builtin_add_overflow(last, more, &last) || last >= MAX_COORDINATE)
            return e->axes[axis].size;
    }
    return last;
}

/* Shifts name axes of their tensors and stay inside them. */
static char *check_shifts(const einsum *e, uint32_t number, const einsum_statement *s)
{
    for (uint32_t i = 0; i < s->shift_count; i++) {
        const einsum_shift *h = &s->shifts[i];
        if ((unsigned)h->side >= einsum_side_count(s) || h->axis >= e->axis_count || h->offset < 0 || h->offset >= e->axes[h->axis].size ||
            !einsum_tensor_has(&e->tensors[einsum_operand(s, h->side)], h->axis))
            return fault_text("statement %u has a shift outside its tensor", number);
        if (walk_window(e, h->axis) && h->offset + window_reach(e, s, h->side, h->axis) >= e->axes[h->axis].size)
            return fault_text("statement %u shifts a window beyond its end", number);
    }
    return NULL;
}

char *check_tensors(const einsum *e)
{
    for (uint32_t i = 0; i < e->axis_count; i++)
        if (e->axes[i].size < 1)
            return fault_text("axis %u has the size %" PRId64, i, e->axes[i].size);
    char *fault = NULL;
    for (uint32_t i = 0; i < e->window_count && !fault; i++)
        fault = check_window(e, i);
    for (uint32_t i = 0; i < e->tensor_count && !fault; i++)
        fault = check_tensor(e, i);
    return fault;
}

char *check_statement(const reference_plan *p, uint32_t number)
{
    const einsum_statement *s = &p->e->statements[number];
    char *fault = check_operands(p, number, s);
    if (!fault)
        fault = check_digits(p->e, number, s);
    if (!fault && p->purpose.machine_order)
        fault = check_order(p->e, number, s);
    if (!fault)
        fault = check_windows(p->e, number, s);
    return fault ? fault : check_shifts(p->e, number, s);
}
