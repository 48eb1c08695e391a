#include "codegen/reference/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ELEMENTS (INT64_C(1) << 46)
#define MAX_COORDINATE (INT64_C(1) << 62)
#define MAX_COMBINATIONS (INT64_C(1) << 50)
#define MAX_SCRATCH_BYTES (INT64_C(1) << 36)
/* From here on an f32 sum of magnitudes is no longer good to 1%. */
#define WIDE_BOUND_TERMS (INT64_C(1) << 16)

static char out_of_memory[] = "out of memory";

char *plan_fault(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int bytes = vasprintf(&text, format, args);
    va_end(args);
    return bytes < 0 ? out_of_memory : text;
}

void plan_fault_free(void *text)
{
    if (text != out_of_memory)
        free(text);
}

/* ---- tensors ---- */

int64_t plan_tensor_elements(const einsum *e, uint32_t tensor)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        elements *= e->axes[e->tensors[tensor].axes[i]].size;
    return elements;
}

int64_t plan_tensor_bytes(const einsum *e, uint32_t tensor)
{
    return (plan_tensor_elements(e, tensor) * dtype_row_of(e->tensors[tensor].dtype)->bits + 7) / 8;
}

/* ---- windows ---- */

/* How far one count of a digit moves the place of a term; 0: not at all, -1: the digit lies partly outside. */
static int64_t term_weight(const einsum_term *t, const einsum_digit *d)
{
    int64_t end = t->weight * t->extent;
    if (d->axis != t->axis || d->size == 1 || d->weight % end == 0)
        return 0;
    if (d->weight < t->weight && d->size <= t->weight / d->weight)
        return 0;
    if (d->weight % t->weight != 0 || d->weight >= end || d->size - 1 > (end - 1) / d->weight)
        return -1;
    return d->weight / t->weight * t->stride;
}

static const einsum_window *window_of(const einsum *e, uint32_t axis)
{
    for (uint32_t i = 0; i < e->window_count; i++)
        if (e->windows[i].axis == axis)
            return &e->windows[i];
    return NULL;
}

/* How far one count of a digit moves the coordinate of an axis: its own digits' weights, and what the digits of a window's terms
 * add to its place. The statement was checked to have one kind of them only. */
uint64_t plan_axis_weight(const einsum *e, uint32_t axis, const einsum_digit *d)
{
    const einsum_window *x = window_of(e, axis);
    uint64_t weight = axis == d->axis ? (uint64_t)d->weight : 0;
    for (uint32_t i = 0; x && i < x->term_count; i++) {
        int64_t more = term_weight(&x->terms[i], d);
        weight += more > 0 ? (uint64_t)more : 0;
    }
    return weight;
}

uint64_t plan_stride(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    if (!einsum_digit_indexes(d, side))
        return 0;
    const einsum_tensor *t = &e->tensors[tensor];
    uint64_t stride = 1, sum = 0;
    for (uint32_t i = t->rank; i-- > 0;) {
        sum += stride * plan_axis_weight(e, t->axes[i], d);
        stride *= (uint64_t)e->axes[t->axes[i]].size;
    }
    return sum;
}

bool plan_has_border(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis)
{
    const einsum_window *x = window_of(e, axis);
    bool used = false;
    for (uint32_t i = 0; x && x->bordered && i < s->digit_count; i++)
        for (uint32_t k = 0; k < x->term_count && einsum_digit_indexes(&s->digits[i], side); k++)
            used |= term_weight(&x->terms[k], &s->digits[i]) > 0;
    return used;
}

static bool tensor_varies(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    for (uint32_t i = 0; i < e->tensors[tensor].rank && einsum_digit_indexes(d, side); i++)
        if (plan_axis_weight(e, e->tensors[tensor].axes[i], d) != 0)
            return true;
    return false;
}

static char *check_term(const einsum *e, uint32_t number, const einsum_term *t, int64_t *size)
{
    int64_t reach;
    if (t->axis >= e->axis_count || window_of(e, t->axis) || t->weight < 1 || t->extent < 1 || t->stride < 1 ||
        t->weight > e->axes[t->axis].size || t->extent - 1 > (e->axes[t->axis].size - 1) / t->weight ||
        e->axes[t->axis].size >= MAX_COORDINATE)
        return plan_fault("window %u has a term that is no digit of an axis", number);
    if (__builtin_mul_overflow(t->extent - 1, t->stride, &reach) || __builtin_add_overflow(*size, reach, size))
        return plan_fault("window %u has places of 2^63 and more", number);
    return NULL;
}

static char *check_window(const einsum *e, uint32_t number)
{
    const einsum_window *x = &e->windows[number];
    if (x->axis >= e->axis_count || window_of(e, x->axis) != x)
        return plan_fault("window %u is no axis, or the same as another window", number);
    int64_t size = 1;
    char *fault = NULL;
    for (uint32_t i = 0; i < x->term_count && !fault; i++)
        fault = check_term(e, number, &x->terms[i], &size);
    if (!fault && x->bordered && (x->first < 0 || x->first >= size || e->axes[x->axis].size > size - x->first))
        return plan_fault("window %u holds places that it does not have", number);
    if (!fault && !x->bordered && size != e->axes[x->axis].size)
        fault = plan_fault("window %u has %" PRId64 " places and %" PRId64 " as an axis", number, size, e->axes[x->axis].size);
    return fault;
}

/* Every digit lies inside the term or outside it, and no combination that exists passes the term's end. */
static char *check_term_digits(const einsum *e, uint32_t number, const einsum_statement *s, einsum_side side, const einsum_term *t, bool *used)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        int64_t weight = einsum_digit_indexes(&s->digits[i], side) ? term_weight(t, &s->digits[i]) : 0;
        if (weight < 0)
            return plan_fault("statement %u has a digit that a window's term cuts", number);
        if (weight > 0)
            last += (s->digits[i].size - 1) * (s->digits[i].weight / t->weight);
        *used |= weight > 0;
    }
    if (last >= t->extent && t->weight * t->extent < e->axes[t->axis].size)
        return plan_fault("statement %u passes the end of a window's term", number);
    return NULL;
}

static char *check_tensor_windows(const einsum *e, uint32_t number, const einsum_statement *s, einsum_side side, uint32_t tensor)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++) {
        const einsum_window *x = window_of(e, t->axes[i]);
        bool used = false, own = side == EINSUM_DST;
        char *fault = NULL;
        for (uint32_t k = 0; x && k < x->term_count && !fault; k++)
            fault = check_term_digits(e, number, s, side, &x->terms[k], &used);
        for (uint32_t k = 0; k < s->digit_count; k++)
            own |= s->digits[k].axis == t->axes[i] && s->digits[k].size > 1 && einsum_digit_indexes(&s->digits[k], side);
        if (!fault && used && own)
            fault = plan_fault("statement %u indexes tensor %u by a window and by its terms", number, tensor);
        if (fault)
            return fault;
    }
    return NULL;
}

static char *check_windows(const einsum *e, uint32_t number, const einsum_statement *s)
{
    char *fault = check_tensor_windows(e, number, s, EINSUM_DST, s->dst);
    if (!fault)
        fault = check_tensor_windows(e, number, s, EINSUM_A, s->a);
    return fault || s->op == EINSUM_COPY ? fault : check_tensor_windows(e, number, s, EINSUM_B, s->b);
}

/* ---- tensors, checked ---- */

int64_t plan_shift_max(const einsum_statement *s, uint32_t axis)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].axis == axis && s->shifts[i].offset > most)
            most = s->shifts[i].offset;
    return most;
}

static bool tensor_has_axis(const einsum_tensor *t, uint32_t axis)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->axes[i] == axis)
            return true;
    return false;
}

static bool dtype_is_float(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
}

static char *check_tensor(const einsum *e, uint32_t number)
{
    const einsum_tensor *t = &e->tensors[number];
    if ((unsigned)t->dtype >= DTYPE_COUNT)
        return plan_fault("tensor %u has no known element type", number);
    int64_t elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->axes[i] >= e->axis_count)
            return plan_fault("tensor %u names axis %u of %u", number, t->axes[i], e->axis_count);
        if (__builtin_mul_overflow(elements, e->axes[t->axes[i]].size, &elements) || elements > MAX_ELEMENTS)
            return plan_fault("tensor %u has more than 2^46 elements", number);
    }
    return NULL;
}

/* ---- statements ---- */

static char *check_types(const einsum *e, uint32_t number, const einsum_statement *s)
{
    const einsum_tensor *t = e->tensors;
    bool floats = dtype_is_float(t[s->dst].dtype);
    bool contract = s->op == EINSUM_CONTRACT;
    if (dtype_is_float(t[s->a].dtype) != floats || (contract && dtype_is_float(t[s->b].dtype) != floats))
        return plan_fault("statement %u mixes integers and floats", number);
    if (contract && s->accumulator != (floats ? DTYPE_F32 : DTYPE_I32))
        return plan_fault("statement %u accumulates in another kind than it multiplies", number);
    return NULL;
}

/* A digit with lanes lies inside a step of the one before it, so that the lanes of a packet are few and ascend. */
static char *check_order(const einsum *e, uint32_t number, const einsum_statement *s)
{
    int64_t room = 0;
    if (s->op == EINSUM_CONTRACT && s->unordered && dtype_is_float(e->tensors[s->dst].dtype))
        return plan_fault("statement %u sums over a group of axes whose order in the machine the einsum does not say", number);
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->lane ? d->kept || d->size > (room ? room : PLAN_MAX_LANES) / d->lane : room && !d->kept)
            return plan_fault("statement %u has a digit without a place in the packet", number);
        room = d->kept ? room : d->lane;
    }
    return NULL;
}

static char *check_operands(const reference_plan *p, uint32_t number, const einsum_statement *s)
{
    const einsum *e = p->e;
    if (s->op != EINSUM_COPY && s->op != EINSUM_CONTRACT)
        return plan_fault("statement %u has the unknown operation %d", number, (int)s->op);
    uint32_t b = s->op == EINSUM_COPY ? s->a : s->b;
    if (s->dst >= e->tensor_count || s->a >= e->tensor_count || b >= e->tensor_count)
        return plan_fault("statement %u names a tensor beyond %u", number, e->tensor_count);
    if (s->dst == s->a || s->dst == b)
        return plan_fault("statement %u assigns tensor %u while it is read", number, s->dst);
    if ((e->tensors[s->a].port < 0 && !p->assigned[s->a]) || (e->tensors[b].port < 0 && !p->assigned[b]))
        return plan_fault("statement %u reads an intermediate before it is assigned", number);
    if (p->used[s->dst] && !p->assigned[s->dst])
        return plan_fault("statement %u assigns tensor %u after it was read", number, s->dst);
    p->used[s->a] = p->used[b] = true;
    return check_types(e, number, s);
}

static char *check_digit(const einsum *e, uint32_t number, const einsum_statement *s, const einsum_digit *d)
{
    int64_t last;
    if (d->axis >= e->axis_count)
        return plan_fault("statement %u has a digit of axis %u of %u", number, d->axis, e->axis_count);
    if (d->size < 1 || d->weight < 1 || __builtin_mul_overflow(d->size - 1, d->weight, &last) ||
        last >= MAX_COORDINATE)
        return plan_fault("statement %u has a digit of size %" PRId64 " and weight %" PRId64, number, d->size,
                          d->weight);
    if (d->size > 1 && d->kept && !tensor_has_axis(&e->tensors[s->dst], d->axis))
        return plan_fault("statement %u keeps a digit of axis %u that its destination lacks", number,
                          d->axis);
    if (d->size > 1 && !d->kept && s->op == EINSUM_COPY)
        return plan_fault("statement %u is a copy with a summed digit", number);
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
            return plan_fault("statement %u has more than 2^50 combinations of digits", number);
        if (__builtin_add_overflow(coordinates, (d->size - 1) * d->weight, &coordinates) ||
            coordinates >= MAX_COORDINATE)
            return plan_fault("statement %u has coordinates of 2^62 and more", number);
    }
    return NULL;
}

/* Elements between neighbours along an axis of the tensor. */
static int64_t axis_stride(const einsum *e, uint32_t tensor, uint32_t axis)
{
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0 && t->axes[i] != axis;)
        stride *= e->axes[t->axes[i]].size;
    return stride;
}

/* The last place of a window that the statement's digits reach; at least its size when that is beyond 62 bits. */
static int64_t window_reach(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        uint64_t weight = einsum_digit_indexes(&s->digits[i], side) ? plan_axis_weight(e, axis, &s->digits[i]) : 0;
        int64_t more;
        if (weight >= (uint64_t)MAX_COORDINATE || __builtin_mul_overflow((int64_t)weight, s->digits[i].size - 1, &more) ||
            __builtin_add_overflow(last, more, &last) || last >= MAX_COORDINATE)
            return e->axes[axis].size;
    }
    return last;
}

/* Shifts name axes of their tensors and stay inside them; they are a constant distance in each. */
static char *check_shifts(const einsum *e, uint32_t number, plan_statement *p)
{
    const einsum_statement *s = p->of;
    uint32_t tensors[EINSUM_SIDES] = {s->dst, s->a, s->op == EINSUM_COPY ? s->a : s->b};
    for (int side = EINSUM_A; side < EINSUM_SIDES; side++)
        for (uint32_t i = 0; i < e->tensors[tensors[side]].rank; i++) {
            uint32_t axis = e->tensors[tensors[side]].axes[i];
            if (plan_has_border(e, s, (einsum_side)side, axis))
                p->base[side] -= window_of(e, axis)->first * axis_stride(e, tensors[side], axis);
        }
    for (uint32_t i = 0; i < s->shift_count; i++) {
        const einsum_shift *h = &s->shifts[i];
        if ((unsigned)h->side >= EINSUM_SIDES || h->axis >= e->axis_count || h->offset < 0 || h->offset >= e->axes[h->axis].size ||
            !tensor_has_axis(&e->tensors[tensors[h->side]], h->axis))
            return plan_fault("statement %u has a shift outside its tensor", number);
        if (window_of(e, h->axis) && h->offset + window_reach(e, s, h->side, h->axis) >= e->axes[h->axis].size)
            return plan_fault("statement %u shifts a window beyond its end", number);
        p->base[h->side] += h->offset * axis_stride(e, tensors[h->side], h->axis);
    }
    return NULL;
}

/* Does some combination of the digits reach the end of the axis, and is the axis kept and summed at once?
 * Then whether a term exists depends on both, and the kept digits cannot be rows or columns of a dense
 * product. */
static bool axis_couples(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    int64_t last = 0;
    bool kept = false, summed = false;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->axis != axis || d->size == 1)
            continue;
        last += (d->size - 1) * d->weight;
        kept |= d->kept;
        summed |= !d->kept;
    }
    return kept && summed && last + plan_shift_max(s, axis) >= e->axes[axis].size;
}

/* Does a window cut the two digits, of which the outer counts on from the inner, apart? */
static bool windows_separate(const einsum *e, const einsum_digit *outer, const einsum_digit *inner)
{
    einsum_digit both = *inner;
    both.size *= outer->size;
    for (uint32_t i = 0; i < e->window_count; i++)
        for (uint32_t k = 0; k < e->windows[i].term_count; k++) {
            const einsum_term *t = &e->windows[i].terms[k];
            int64_t whole = term_weight(t, &both);
            if (whole < 0 || (whole == 0) != (term_weight(t, outer) == 0) || (whole == 0) != (term_weight(t, inner) == 0))
                return true;
        }
    return false;
}

/* Are the two apart in the order of a sum? */
static bool order_separates(const reference_plan *p, const einsum_digit *outer, const einsum_digit *inner)
{
    return p->machine_order && !inner->kept && outer->lane != inner->lane * inner->size;
}

/* Digits that count on from each other are one longer digit. */
static void digits_append(const reference_plan *p, plan_digits *list, const einsum_digit *d)
{
    const einsum *e = p->e;
    list->combinations *= d->size;
    einsum_digit *outer = list->count ? &list->items[list->count - 1] : NULL;
    int64_t span = d->size * d->weight;
    if (outer && outer->axis == d->axis && outer->kept == d->kept && outer->broadcast == d->broadcast && outer->weight == span && !windows_separate(e, outer, d) && !order_separates(p, outer, d)) {
        outer->size *= d->size;
        outer->weight = d->weight;
        outer->lane = d->lane;
        return;
    }
    list->items[list->count++] = *d;
}

static plan_group digit_group(const einsum *e, const einsum_statement *s, const einsum_digit *d)
{
    if (s->op == EINSUM_COPY)
        return PLAN_BATCH;
    if (!d->kept)
        return PLAN_DEPTH;
    bool in_a = tensor_varies(e, s->a, EINSUM_A, d), in_b = tensor_varies(e, s->b, EINSUM_B, d);
    if ((in_a && in_b) || axis_couples(e, s, d->axis))
        return PLAN_BATCH;
    return in_b ? PLAN_COLUMN : PLAN_ROW;
}

/* Does a digit of the group lie side by side in the destination? */
static bool is_innermost(const einsum *e, const plan_statement *p, plan_group group)
{
    const plan_digits *digits = &p->digits[group];
    return digits->count && plan_run(e, p->of->dst, EINSUM_DST, digits) > 1;
}

static void swap_sides(plan_statement *p)
{
    plan_digits swap = p->digits[PLAN_ROW];
    p->digits[PLAN_ROW] = p->digits[PLAN_COLUMN];
    p->digits[PLAN_COLUMN] = swap;
    p->row_source = p->of->b;
    p->column_source = p->of->a;
    p->row_side = EINSUM_B;
    p->column_side = EINSUM_A;
}

/* Vectors run over the columns: what lies side by side in the destination, but the longer side when the shorter one cannot fill a
 * register. */
static void group_digits(const reference_plan *plan, plan_statement *p)
{
    const einsum *e = plan->e;
    int64_t lanes = plan->machine.lanes;
    const einsum_statement *s = p->of;
    for (int g = 0; g < PLAN_GROUP_COUNT; g++)
        p->digits[g].combinations = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].size > 1)
            digits_append(plan, &p->digits[digit_group(e, s, &s->digits[i])], &s->digits[i]);
    p->row_source = s->a;
    p->column_source = s->b;
    p->row_side = EINSUM_A;
    p->column_side = s->op == EINSUM_COPY ? EINSUM_A : EINSUM_B;
    int64_t rows = p->digits[PLAN_ROW].combinations, columns = p->digits[PLAN_COLUMN].combinations;
    bool fills = rows >= lanes && is_innermost(e, p, PLAN_ROW) && !is_innermost(e, p, PLAN_COLUMN);
    if (fills || (columns < lanes && rows > columns))
        swap_sides(p);
}

bool plan_is_shared(const plan_statement *s)
{
    return s->of->op == EINSUM_CONTRACT && s->stores_blocks && (s->covers || !s->first);
}

bool plan_is_parameter(const reference_plan *p, uint32_t tensor)
{
    return p->e->tensors[tensor].port >= 0 && (p->assigned[tensor] || p->used[tensor]);
}

/* Do the kept digits count every coordinate of the axis, each once? */
static bool covers_axis(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    int64_t next = 1;
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = 0; i < s->digit_count && !found; i++)
            if (s->digits[i].axis == axis && s->digits[i].kept && s->digits[i].size > 1 && s->digits[i].weight == next) {
                next *= s->digits[i].size;
                found = next <= e->axes[axis].size;
            }
    }
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].axis == axis)
            return false;
    return next == e->axes[axis].size;
}

static bool covers_destination(const einsum *e, const einsum_statement *s)
{
    const einsum_tensor *t = &e->tensors[s->dst];
    for (uint32_t i = 0; i < t->rank; i++)
        if (window_of(e, t->axes[i]) || !covers_axis(e, s, t->axes[i]))
            return false;
    return true;
}

/* Whole vectors of the result can be narrowed and stored. */
static bool result_is_plain(const einsum *e, const plan_statement *s)
{
    static const plan_group kept[] = {PLAN_BATCH, PLAN_ROW, PLAN_COLUMN};
    int64_t run = plan_run(e, s->of->dst, EINSUM_DST, &s->digits[PLAN_COLUMN]);
    return dtype_row_of(e->tensors[s->of->dst].dtype)->bits >= 8 && s->digits[PLAN_COLUMN].count > 0 &&
           (run == INT64_MAX || (run > 0 && run % s->tile.lanes == 0)) &&
           !plan_is_guarded(e, s, s->of->dst, EINSUM_DST, kept, 3);
}

/* ---- tiles ---- */

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}


int64_t plan_run(const einsum *e, uint32_t tensor, einsum_side side, const plan_digits *digits)
{
    if (digits->count == 0)
        return INT64_MAX;
    const einsum_digit *inner = &digits->items[digits->count - 1];
    if (plan_stride(e, tensor, side, inner) != 1)
        return 0;
    return digits->count == 1 ? INT64_MAX : inner->size;
}

static bool axis_is_passed(const einsum *e, const plan_statement *s, uint32_t axis, const plan_group *groups, unsigned count)
{
    int64_t last = 0;
    for (unsigned g = 0; g < count; g++)
        for (unsigned i = 0; i < s->digits[groups[g]].count; i++) {
            const einsum_digit *d = &s->digits[groups[g]].items[i];
            last += d->axis == axis ? (d->size - 1) * d->weight : 0;
        }
    return last > 0 && last >= e->axes[axis].size - plan_shift_max(s->of, axis);
}

bool plan_is_guarded(const einsum *e, const plan_statement *s, uint32_t tensor, einsum_side side, const plan_group *groups, unsigned count)
{
    for (uint32_t axis = 0; axis < e->axis_count; axis++)
        if (axis_is_passed(e, s, axis, groups, count))
            return true;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        if (plan_has_border(e, s->of, side, e->tensors[tensor].axes[i]))
            return true;
    return false;
}

/* The tile height with the least work: padding rows, what every tile costs beside its rows, and a last one that is not whole. */
static int64_t tile_rows(int64_t rows, int64_t most)
{
    if (rows <= most)
        return rows;
    int64_t best = most;
    double least = 0;
    for (int64_t height = most; height > most / 2; height--) {
        double work = (double)round_up(rows, height) * (1 + 1.5 / (double)height) + (rows % height ? 2 : 0);
        if (height == most || work < least) {
            best = height;
            least = work;
        }
    }
    return best;
}

/* A tile of so few rows is not worth the packing of its columns. */
enum { FEW_ROWS = 2 };

/* Are the columns of each unit side by side in their source, and the units equally far apart? */
static bool columns_run(const einsum *e, const plan_statement *p)
{
    static const plan_group own[] = {PLAN_BATCH, PLAN_COLUMN, PLAN_DEPTH};
    return p->digits[PLAN_DEPTH].count <= 1 && p->digits[PLAN_COLUMN].count == 1 && dtype_row_of(e->tensors[p->column_source].dtype)->bits >= 8 &&
           plan_run(e, p->column_source, p->column_side, &p->digits[PLAN_COLUMN]) == INT64_MAX &&
           !plan_is_guarded(e, p, p->column_source, p->column_side, own, 3);
}

static int64_t items_per_unit(plan_product product)
{
    switch (product) {
    case PRODUCT_I16_PAIRS:
    case PRODUCT_BF16_DOT:
    case PRODUCT_BF16_TILES:
        return 2;
    case PRODUCT_I8_DOT:
    case PRODUCT_I8_TILES:
        return 4;
    default:
        return 1;
    }
}

static plan_product choose_product(const einsum *e, const plan_statement *s, const plan_machine *m)
{
    enum { FEWEST_LINES = 8 }; /* a tile register has 16, of 16 units */
    dtype a = e->tensors[s->of->a].dtype, b = e->tensors[s->of->b].dtype;
    int64_t depth = s->digits[PLAN_DEPTH].combinations;
    bool square = s->digits[PLAN_ROW].combinations >= FEWEST_LINES && s->digits[PLAN_COLUMN].combinations >= FEWEST_LINES;
    if (s->digits[PLAN_ROW].combinations <= FEW_ROWS && columns_run(e, s))
        return s->integer ? PRODUCT_I32 : PRODUCT_F32;
    square &= depth >= FEWEST_LINES * items_per_unit(s->integer ? PRODUCT_I8_TILES : PRODUCT_BF16_TILES);
    if (s->integer) {
        if (dtype_row_of(a)->bits > 8 || dtype_row_of(b)->bits > 8)
            return PRODUCT_I32;
        return m->i8_tiles && square ? PRODUCT_I8_TILES : m->i8_dot ? PRODUCT_I8_DOT : m->i16_pairs ? PRODUCT_I16_PAIRS : PRODUCT_I32;
    }
    /* A single product is exact, which a flushed one is not. */
    if (!s->exact_products || depth == 1)
        return PRODUCT_F32;
    return m->bf16_tiles && square ? PRODUCT_BF16_TILES : m->bf16_dot ? PRODUCT_BF16_DOT : PRODUCT_F32;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Two tile registers for rows, two for columns, four for their sums. */
static void shape_tile_registers(plan_tile *t, int64_t rows, int64_t columns)
{
    enum { LINES = 16 };
    t->lanes = LINES;
    t->vectors = columns > LINES ? 2 : 1;
    t->rows = rows > LINES ? 2 * LINES : LINES;
    t->unit_block = LINES;
}

static void shape_vectors(plan_tile *t, const plan_machine *m, int64_t rows, int64_t columns, int64_t depth)
{
    enum { STEP_UNITS = 4, MOST_ROWS = 14, MOST_VECTORS = 8 };
    /* two columns and a row value, the product where it is not fused, the correction */
    int64_t spare = t->product == PRODUCT_F32 && m->fused ? 4 : t->product == PRODUCT_I8_DOT ? 7 : 5;
    int64_t registers = t->product == PRODUCT_F64 ? m->registers / 2 : m->registers;
    t->lanes = m->lanes;
    t->vectors = columns > m->lanes ? 2 : 1;
    /* Few rows leave registers for more columns, where a value of a row and a product of it has one as well. */
    while ((t->product == PRODUCT_F32 || t->product == PRODUCT_I32) && t->vectors < MOST_VECTORS && columns >= 2 * t->vectors * m->lanes &&
           (rows + 1) * 2 * t->vectors + 2 <= registers)
        t->vectors *= 2;
    int64_t most = least_of((registers - spare) / t->vectors, MOST_ROWS);
    t->rows = tile_rows(rows, most_of(most, 1));
    /* A power of two, so that whole steps make a vector. */
    t->unit_block = 1;
    while (t->unit_block < least_of(STEP_UNITS, t->lanes) && t->unit_block * t->per < depth && (rows > FEW_ROWS || depth % (2 * t->unit_block * t->per) == 0))
        t->unit_block *= 2;
}

/* The lanes of the tree, in the order of depth: the innermost depth digits that have some. */
static void find_lanes(plan_tile *t, const plan_digits *depth)
{
    t->lane_count = 1;
    t->lane[0] = 0;
    for (unsigned i = 0; i < depth->count; i++) {
        const einsum_digit *d = &depth->items[i];
        for (int64_t lane = d->lane ? t->lane_count * d->size : 0; lane-- > 0;)
            t->lane[lane] = (unsigned char)(t->lane[lane / d->size] + lane % d->size * d->lane);
        t->lane_count *= d->lane ? d->size : 1;
    }
}

/* A few sums; the nodes of a tree need registers as well. */
static void shape_tree(plan_tile *t, const plan_machine *m, int64_t rows, const plan_digits *depth)
{
    enum { FEW_LANES = 16 };
    find_lanes(t, depth);
    t->lanes = m->lanes;
    t->vectors = 1;
    t->rows = least_of(rows, t->lane_count <= FEW_LANES ? 4 : 2);
    t->unit_block = t->lane_count;
}

static void choose_tile(const einsum *e, const plan_statement *p, plan_tile *t, const plan_machine *m)
{
    enum { MOST_SIDE = 128 };
    int64_t rows = p->digits[PLAN_ROW].combinations, columns = p->digits[PLAN_COLUMN].combinations;
    t->per = items_per_unit(t->product);
    if (plan_in_tile_registers(t))
        shape_tile_registers(t, rows, columns);
    else if (t->product == PRODUCT_TREE)
        shape_tree(t, m, rows, &p->digits[PLAN_DEPTH]);
    else
        shape_vectors(t, m, rows, columns, p->digits[PLAN_DEPTH].combinations);
    t->columns = t->lanes * t->vectors;
    t->padded_rows = round_up(rows, t->rows);
    t->padded_columns = round_up(columns, t->columns);
    t->units = round_up(round_up(p->digits[PLAN_DEPTH].combinations, t->per) / t->per, t->unit_block);
    t->rows_by_line = plan_in_tile_registers(t) || plan_run(e, p->row_source, p->row_side, &p->digits[PLAN_ROW]) == 0 || p->digits[PLAN_ROW].count == 0;
    /* A column panel takes two thirds of the nearest cache; sums, rows and twice as many columns of a block share the next one. More
     * rows than MOST_SIDE gain nothing. */
    t->depth_block = most_of(m->l1_bytes * 2 / 3 / (t->columns * 4) / t->unit_block, 1) * t->unit_block;
    int64_t side = 32;
    while (side < MOST_SIDE && 2 * side * (3 * t->depth_block + 4 * side) * 4 <= m->l2_bytes)
        side *= 2;
    t->row_line = t->unit_block;
    t->column_line = t->columns;
    t->one_pass = t->units <= t->depth_block;
    t->row_block_tiles = round_up(side, t->rows) / t->rows;
    t->column_block_tiles = round_up(2 * side, t->columns) / t->columns;
    if (t->one_pass) { /* then every row is read whole, for each column tile: from the nearest cache, where the sums pass through */
        t->column_block_tiles = most_of(m->l1_bytes / 3 / (t->columns * t->units * 4), t->column_block_tiles);
        int64_t block_columns = least_of(t->columns * t->column_block_tiles, t->padded_columns);
        int64_t most = least_of(m->l1_bytes / 3 / (t->rows * t->units * 4), m->l1_bytes / (t->rows * block_columns * 4));
        t->row_block_tiles = most_of(least_of(most, t->row_block_tiles), 1);
    }
}

static void choose_tiles(const reference_plan *plan, plan_statement *p)
{
    const einsum *e = plan->e;
    const plan_machine *m = &plan->machine;
    p->tile.product = plan->machine_order && !p->integer ? PRODUCT_TREE : choose_product(e, p, m);
    p->bound_tile.product = p->wide_bound ? PRODUCT_F64 : PRODUCT_F32;
    p->flushes = (p->tile.product == PRODUCT_BF16_DOT || p->tile.product == PRODUCT_BF16_TILES) &&
                 (e->tensors[p->of->a].dtype == DTYPE_BF16 || e->tensors[p->of->b].dtype == DTYPE_BF16);
    choose_tile(e, p, &p->tile, m);
    choose_tile(e, p, &p->bound_tile, m);
}

/* ---- operands in place ---- */

static bool is_item_type(plan_product product, dtype t)
{
    switch (product) {
    case PRODUCT_F32:
        return t == DTYPE_F32;
    case PRODUCT_BF16_DOT:
    case PRODUCT_BF16_TILES:
        return t == DTYPE_BF16;
    case PRODUCT_I8_TILES:
        return t == DTYPE_I8;
    default:
        return false;
    }
}

/* Lines so many 32-bit values apart do not meet in a few sets of the nearest cache. */
static bool is_spread(int64_t line)
{
    enum { SET_PERIOD = 4096, TOO_FEW_PLACES = 2 };
    return line * 4 % (SET_PERIOD / TOO_FEW_PLACES) != 0;
}

/* Are whole steps of the kernel side by side in the row source, and the rows equally far apart? */
static bool rows_lie_ready(const einsum *e, const plan_statement *p, int64_t *line)
{
    enum { MOST_SPREAD = 4 };
    static const plan_group own[] = {PLAN_BATCH, PLAN_ROW, PLAN_DEPTH};
    const plan_tile *t = &p->tile;
    const plan_digits *rows = &p->digits[PLAN_ROW], *depth = &p->digits[PLAN_DEPTH];
    if (!is_item_type(t->product, e->tensors[p->row_source].dtype) || !t->rows_by_line || rows->count > 1 ||
        depth->combinations != t->units * t->per || plan_run(e, p->row_source, p->row_side, depth) != INT64_MAX ||
        plan_is_guarded(e, p, p->row_source, p->row_side, own, 3))
        return false;
    uint64_t stride = rows->count ? plan_stride(e, p->row_source, p->row_side, &rows->items[0]) : (uint64_t)depth->combinations;
    if (stride % (uint64_t)t->per != 0 || stride / (uint64_t)t->per > (uint64_t)(MOST_SPREAD * t->units))
        return false;
    *line = (int64_t)stride / t->per;
    return *line > 0 && is_spread(*line);
}

/* Can the columns be read where they are, and is packing them too dear: because of few tiles that read them, or because they are few? */
static bool columns_lie_ready(const reference_plan *plan, const plan_statement *p, int64_t *line)
{
    enum { FEW_TILES = 2, SMALL = 2 };
    const plan_tile *t = &p->tile;
    const plan_digits *depth = &p->digits[PLAN_DEPTH];
    dtype type = plan->e->tensors[p->column_source].dtype;
    bool few = t->padded_rows <= t->rows && t->rows <= FEW_ROWS;
    bool ready = type == DTYPE_F32 && (t->padded_rows <= FEW_TILES * t->rows || t->units * t->padded_columns * 4 <= plan->machine.l1_bytes / SMALL);
    if ((t->product != PRODUCT_F32 && t->product != PRODUCT_I32) || !(few || ready) || depth->combinations != t->units || !columns_run(plan->e, p) ||
        p->digits[PLAN_COLUMN].combinations < t->columns)
        return false;
    uint64_t stride = depth->count ? plan_stride(plan->e, p->column_source, p->column_side, &depth->items[0]) : (uint64_t)t->columns;
    *line = (int64_t)stride;
    return stride < (uint64_t)MAX_SCRATCH_BYTES;
}

/* Are the destination's elements 32-bit sums, and columns of them side by side? Sums that are taken up again must be spread. */
static bool sums_lie_ready(const einsum *e, const plan_statement *p, int64_t *line)
{
    const plan_digits *rows = &p->digits[PLAN_ROW], *columns = &p->digits[PLAN_COLUMN];
    dtype t = e->tensors[p->of->dst].dtype;
    if ((t != DTYPE_F32 && t != DTYPE_I32) || rows->count > 1 || columns->combinations < p->tile.columns ||
        plan_run(e, p->of->dst, EINSUM_DST, columns) != INT64_MAX)
        return false;
    uint64_t stride = rows->count ? plan_stride(e, p->of->dst, EINSUM_DST, &rows->items[0]) : (uint64_t)columns->combinations;
    *line = (int64_t)stride;
    return stride > 0 && stride < (uint64_t)MAX_SCRATCH_BYTES && (p->tile.one_pass || is_spread(*line));
}

static void choose_places(const reference_plan *plan, plan_statement *p)
{
    enum { FEW_LINES = 16 };
    const einsum *e = plan->e;
    plan_tile *t = &p->block_tile;
    *t = p->tile;
    t->rows_in_place = rows_lie_ready(e, p, &t->row_line);
    if (!t->rows_in_place)
        t->row_line = t->unit_block;
    t->column_type = e->tensors[p->column_source].dtype;
    t->columns_in_place = columns_lie_ready(plan, p, &t->column_line);
    if (!t->columns_in_place)
        t->column_line = t->columns;
    else if (t->padded_rows == t->rows) { /* then no column is read twice: a few lines of them are followed as far as their sums stay near */
        t->column_block_tiles = most_of(plan->machine.l1_bytes / 2 / (t->rows * t->columns * 4), t->column_block_tiles);
        t->depth_block = least_of(t->depth_block, FEW_LINES / t->unit_block * t->unit_block);
        t->one_pass = t->units <= t->depth_block;
    }
    p->sums_in_place = sums_lie_ready(e, p, &p->block_line);
}

/* Room for a vector behind each array: the last one of a panel is stored whole. */
static bool place(int64_t *end, int64_t *at, int64_t rows, int64_t columns, int64_t bytes_each)
{
    int64_t bytes;
    if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, bytes_each, &bytes))
        return false;
    *at = *end;
    return !__builtin_add_overflow(*end, bytes, end) && *end <= MAX_SCRATCH_BYTES &&
           (*end = round_up(*end, 64) + 64);
}

static char *place_scratch(plan_statement *p, uint32_t number)
{
    enum { MANY_COLUMNS = 256 };
    const plan_tile *t = &p->tile, *b = &p->bound_tile, *k = &p->block_tile;
    plan_scratch *s = &p->scratch;
    int64_t bound_bytes = p->wide_bound ? 8 : 4;
    s->end = 0;
    bool fits = place(&s->end, &s->row_pack, most_of(t->padded_rows, b->padded_rows), most_of(most_of(t->units, b->units), k->rows_in_place ? k->row_line : 0), 4) &&
                place(&s->end, &s->column_pack, most_of(t->padded_columns, b->padded_columns), most_of(t->units, b->units), 4);
    int64_t block_rows = least_of(t->padded_rows, t->rows * t->row_block_tiles);
    if (!p->sums_in_place) {
        p->block_line = least_of(t->padded_columns, t->columns * (p->stores_blocks ? k : t)->column_block_tiles);
        if (p->block_line >= MANY_COLUMNS)
            p->block_line += t->lanes; /* rows do not meet in a set of the cache */
    }
    s->plain_end = s->end;
    fits = fits && place(&s->plain_end, &s->value, p->stores_blocks ? block_rows : t->padded_rows,
                         p->stores_blocks ? p->block_line : t->padded_columns, 4) &&
           place(&s->end, &s->value, t->padded_rows, t->padded_columns, 4) &&
           place(&s->end, &s->magnitude, b->padded_rows, b->padded_columns, bound_bytes) &&
           place(&s->end, &s->error, b->padded_rows, b->padded_columns, bound_bytes);
    return fits ? NULL : plan_fault("statement %u needs more than 2^36 bytes of scratch storage", number);
}

/* A copy of exact values is exact, whatever it rounds; so is one product that f32 holds. */
static bool result_is_exact(const reference_plan *p, const plan_statement *s)
{
    if (s->integer)
        return true;
    if (s->of->op == EINSUM_COPY)
        return p->exact[s->of->a];
    return s->exact_products && s->digits[PLAN_DEPTH].combinations == 1 && p->exact[s->of->a] &&
           p->exact[s->of->b];
}

static char *plan_one(reference_plan *p, uint32_t number)
{
    const einsum *e = p->e;
    plan_statement *s = &p->statements[number];
    s->of = &e->statements[number];
    char *fault = check_operands(p, number, s->of);
    if (!fault)
        fault = check_digits(e, number, s->of);
    if (!fault && p->machine_order)
        fault = check_order(e, number, s->of);
    if (!fault)
        fault = check_windows(e, number, s->of);
    if (fault)
        return fault;
    fault = check_shifts(e, number, s);
    if (fault)
        return fault;
    group_digits(p, s);
    s->first = !p->assigned[s->of->dst];
    s->covers = s->of->op == EINSUM_CONTRACT && covers_destination(e, s->of); /* a copy may meet a border */
    s->integer = !dtype_is_float(e->tensors[s->of->dst].dtype);
    if (s->of->op == EINSUM_CONTRACT) {
        s->exact_products =
            e->tensors[s->of->a].dtype != DTYPE_F32 && e->tensors[s->of->b].dtype != DTYPE_F32;
        s->wide_bound = s->digits[PLAN_DEPTH].combinations > WIDE_BOUND_TERMS;
        choose_tiles(p, s);
        s->stores_blocks = result_is_plain(e, s);
        if (s->stores_blocks)
            choose_places(p, s);
        fault = place_scratch(s, number);
        if (fault)
            return fault;
        p->scratch_bytes = most_of(p->scratch_bytes, s->scratch.end);
        p->plain_scratch_bytes = most_of(p->plain_scratch_bytes, s->scratch.plain_end);
    }
    p->assigned[s->of->dst] = true;
    p->exact[s->of->dst] = p->exact[s->of->dst] && result_is_exact(p, s);
    return NULL;
}

/* ---- statements that share code ---- */

static bool tensors_are_alike(const reference_plan *p, uint32_t x, uint32_t y)
{
    const einsum_tensor *a = &p->e->tensors[x], *b = &p->e->tensors[y];
    bool alike = a->dtype == b->dtype && a->rank == b->rank && p->exact[x] == p->exact[y];
    for (uint32_t i = 0; alike && i < a->rank; i++)
        alike = a->axes[i] == b->axes[i];
    return alike;
}

static bool digits_are_equal(const einsum_digit *a, const einsum_digit *b)
{
    return a->axis == b->axis && a->kept == b->kept && a->weight == b->weight && a->size == b->size && a->broadcast == b->broadcast &&
           a->lane == b->lane;
}

/* Is an axis that combinations of the digits can leave shifted by another distance? */
static bool guards_differ(const einsum *e, const plan_statement *x, const plan_statement *y)
{
    static const plan_group all[PLAN_GROUP_COUNT] = {PLAN_BATCH, PLAN_ROW, PLAN_COLUMN, PLAN_DEPTH};
    for (uint32_t i = 0; i < x->of->shift_count + y->of->shift_count; i++) {
        uint32_t axis = i < x->of->shift_count ? x->of->shifts[i].axis : y->of->shifts[i - x->of->shift_count].axis;
        bool passed = axis_is_passed(e, x, axis, all, PLAN_GROUP_COUNT) || axis_is_passed(e, y, axis, all, PLAN_GROUP_COUNT);
        if (passed && plan_shift_max(x->of, axis) != plan_shift_max(y->of, axis))
            return true;
    }
    return false;
}

/* All else that the generator reads follows from what is compared here. */
static bool statements_share_code(const reference_plan *p, const plan_statement *x, const plan_statement *y)
{
    const einsum_statement *a = x->of, *b = y->of;
    bool same = a->op == b->op && a->digit_count == b->digit_count && tensors_are_alike(p, a->dst, b->dst) && tensors_are_alike(p, a->a, b->a) &&
                (a->op == EINSUM_COPY || tensors_are_alike(p, a->b, b->b));
    for (uint32_t i = 0; same && i < a->digit_count; i++)
        same = digits_are_equal(&a->digits[i], &b->digits[i]);
    return same && !guards_differ(p->e, x, y);
}

static void find_code(reference_plan *p, uint32_t number)
{
    plan_statement *s = &p->statements[number];
    s->code = 0;
    while (s->code < number && (p->statements[s->code].code != s->code || !statements_share_code(p, &p->statements[s->code], s)))
        s->code++;
    plan_statement *first = &p->statements[s->code];
    for (int side = 0; side < EINSUM_SIDES; side++)
        first->base_varies[side] |= s->base[side] != first->base[side];
}

static char *plan_all(reference_plan *p)
{
    const einsum *e = p->e;
    for (uint32_t i = 0; i < e->axis_count; i++)
        if (e->axes[i].size < 1)
            return plan_fault("axis %u has the size %" PRId64, i, e->axes[i].size);
    char *fault = NULL;
    for (uint32_t i = 0; i < e->window_count && !fault; i++)
        fault = check_window(e, i);
    for (uint32_t i = 0; i < e->tensor_count && !fault; i++) {
        fault = check_tensor(e, i);
        p->exact[i] = true;
    }
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        fault = plan_one(p, i);
    /* What is assigned in parts is exact when all parts are, also for a reader between them. */
    for (bool changed = !fault; changed;) {
        changed = false;
        for (uint32_t i = 0; i < e->statement_count; i++) {
            uint32_t dst = e->statements[i].dst;
            if (p->exact[dst] && !result_is_exact(p, &p->statements[i])) {
                p->exact[dst] = false;
                changed = true;
            }
        }
    }
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        find_code(p, i);
    return fault;
}

char *plan_build(const einsum *e, plan_machine machine, bool machine_order, reference_plan *out)
{
    *out = (reference_plan){.e = e, .machine = machine, .machine_order = machine_order};
    out->statements = calloc((size_t)e->statement_count + 1, sizeof *out->statements);
    out->assigned = calloc((size_t)e->tensor_count + 1, sizeof *out->assigned);
    out->used = calloc((size_t)e->tensor_count + 1, sizeof *out->used);
    out->exact = calloc((size_t)e->tensor_count + 1, sizeof *out->exact);
    bool have = out->statements && out->assigned && out->used && out->exact;
    char *fault = have ? plan_all(out) : plan_fault("out of memory");
    if (fault)
        plan_free(out);
    return fault;
}

void plan_free(reference_plan *p)
{
    free(p->statements);
    free(p->assigned);
    free(p->used);
    free(p->exact);
    *p = (reference_plan){.e = p->e};
}
