#include "codegen/einsum_terms.h"

#include <inttypes.h>
#include <stdlib.h>

#include "support/strbuf.h"

/* ---- coordinates ---- */

/* The coordinate of an axis, from the digits; only from those that index the side (EINSUM_SIDES: all). */
static int64_t coordinate(const einsum_statement *s, const int64_t *counters, einsum_side side, uint32_t axis)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].axis == axis && (side == EINSUM_SIDES || einsum_digit_indexes(&s->digits[i], side)))
            sum += counters[i] * s->digits[i].weight;
    return sum;
}

/* Of a window that has no digits of its own: the sum over its terms, less where it begins. False: the window
 * does not hold the place. */
static bool window_coordinate(const einsum *e, const einsum_statement *s, const int64_t *counters, einsum_side side, uint32_t axis,
                              int64_t *out)
{
    const einsum_window *w = NULL;
    for (uint32_t i = 0; i < e->window_count; i++)
        w = e->windows[i].axis == axis ? &e->windows[i] : w;
    if (!w || einsum_walks_axis(s, side, axis))
        return true;
    bool moved = false;
    int64_t place = 0;
    for (uint32_t i = 0; i < w->term_count; i++) {
        const einsum_term *t = &w->terms[i];
        place += t->stride * (coordinate(s, counters, side, t->axis) / t->weight % t->extent);
        for (uint32_t d = 0; d < s->digit_count; d++) { /* outside all terms it is not indexed by them */
            const einsum_digit *g = &s->digits[d];
            moved |= g->axis == t->axis && g->size > 1 && einsum_digit_indexes(g, side) && g->weight % (t->weight * t->extent) != 0 &&
                     g->weight * g->size > t->weight;
        }
    }
    if (!moved)
        return true;
    *out += place - (w->bordered ? w->first : 0);
    return *out >= 0 && *out < e->axes[axis].size;
}

/* -1: the tensor does not hold the element; it is zero. */
static int64_t source_element(const einsum *e, const einsum_statement *s, const int64_t *counters, uint32_t tensor, einsum_side side)
{
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t element = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t c = coordinate(s, counters, side, t->axes[i]);
        if (!window_coordinate(e, s, counters, side, t->axes[i], &c))
            return -1;
        element = element * e->axes[t->axes[i]].size + c + einsum_shift_along(s, side, t->axes[i]);
    }
    return element;
}

/* Can a combination of the digits leave an axis? */
static bool may_leave(const einsum *e, const einsum_statement *s)
{
    int64_t last[EINSUM_STATEMENT_DIGITS];
    for (uint32_t i = 0; i < s->digit_count; i++)
        last[i] = s->digits[i].size - 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (coordinate(s, last, EINSUM_SIDES, s->digits[i].axis) + einsum_largest_shift(s, s->digits[i].axis) >=
            e->axes[s->digits[i].axis].size)
            return true;
    return false;
}

/* Is every coordinate inside its axis? */
static bool exists(const einsum *e, const einsum_statement *s, const int64_t *counters)
{
    for (uint32_t i = 0; i < s->digit_count; i++) {
        uint32_t axis = s->digits[i].axis;
        if (coordinate(s, counters, EINSUM_SIDES, axis) + einsum_largest_shift(s, axis) >= e->axes[axis].size)
            return false;
    }
    return true;
}

/* ---- the kept digits of an element ---- */

/* The counters of the kept digits of an axis, the heaviest first. False: they do not reach the coordinate. */
static bool count_axis(const einsum_statement *s, uint32_t axis, int64_t left, int64_t *counters)
{
    for (int64_t below = INT64_MAX;;) {
        uint32_t best = s->digit_count;
        for (uint32_t i = 0; i < s->digit_count; i++)
            if (s->digits[i].kept && s->digits[i].axis == axis && s->digits[i].size > 1 && s->digits[i].weight < below &&
                (best == s->digit_count || s->digits[i].weight > s->digits[best].weight))
                best = i;
        if (best == s->digit_count)
            return left == 0;
        below = s->digits[best].weight;
        counters[best] = left / below;
        if (counters[best] >= s->digits[best].size)
            return false;
        left -= counters[best] * below;
    }
}

/* Is it a coordinate of the destination for some values of the kept digits? */
static bool reaches(const einsum_statement *s, uint32_t axis, int64_t coordinate)
{
    int64_t counters[EINSUM_STATEMENT_DIGITS], c = coordinate - einsum_shift_along(s, EINSUM_DST, axis);
    return c >= 0 && count_axis(s, axis, c, counters);
}

static bool count_kept(const einsum *e, const einsum_statement *s, int64_t element, int64_t *counters)
{
    const einsum_tensor *t = &e->tensors[s->dst];
    for (uint32_t i = 0; i < s->digit_count; i++)
        counters[i] = 0;
    for (uint32_t i = t->rank; i-- > 0;) {
        int64_t size = e->axes[t->axes[i]].size, c = element % size - einsum_shift_along(s, EINSUM_DST, t->axes[i]);
        element /= size;
        if (c < 0 || !count_axis(s, t->axes[i], c, counters))
            return false;
    }
    return true;
}

/* To the next combination of the summed digits, the last one fastest. */
static bool count_on(const einsum_statement *s, int64_t *counters)
{
    for (uint32_t i = s->digit_count; i-- > 0;) {
        if (s->digits[i].kept)
            continue;
        if (++counters[i] < s->digits[i].size)
            return true;
        counters[i] = 0;
    }
    return false;
}

/* Does the statement assign the element? A copy, or a sum of which the kept digits alone leave no axis. */
static bool assigns(const einsum *e, const einsum_statement *s, uint32_t tensor, int64_t element, int64_t *counters)
{
    return s->dst == tensor && count_kept(e, s, element, counters) && exists(e, s, counters);
}

static bool has_window(const einsum *e, uint32_t tensor)
{
    for (uint32_t i = 0; i < e->window_count; i++)
        if (einsum_tensor_has(&e->tensors[tensor], e->windows[i].axis))
            return true;
    return false;
}

/* Elements between two coordinates of the axis. */
static int64_t axis_stride(const einsum *e, const einsum_tensor *t, uint32_t axis)
{
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0 && t->axes[i] != axis;)
        stride *= e->axes[t->axes[i]].size;
    return stride;
}

/* Elements of the operand between two values of the digit; it has no window. */
static int64_t digit_step(const einsum *e, const einsum_statement *s, const einsum_digit *d, einsum_side side)
{
    const einsum_tensor *t = &e->tensors[einsum_operand(s, side)];
    return einsum_tensor_has(t, d->axis) && einsum_digit_indexes(d, side) ? axis_stride(e, t, d->axis) * d->weight : 0;
}

/* The summed digits from `first` on, whose values follow each other in a run: a digit belongs to it where its step continues what the
 * digits inside of it walk in both operands, and, where combinations may leave an axis, in the axis that they have in common. */
typedef struct run_digits {
    uint32_t first; /* the digits' count: there is none */
    int64_t count, a_step, b_step;
    uint32_t axis;  /* of the innermost one, */
    int64_t weight; /* and coordinates between two of its values */
} run_digits;

static run_digits run_digits_of(const einsum *e, const einsum_statement *s)
{
    run_digits r = {.first = s->digit_count, .count = 1};
    bool windows = false, copies = s->op == MATH_COPY, leaves = may_leave(e, s);
    for (uint32_t k = 0; k < s->source_count; k++)
        windows |= has_window(e, s->sources[k]);
    if (windows)
        return r;
    for (uint32_t i = s->digit_count; i-- > 0;) {
        const einsum_digit *d = &s->digits[i];
        if (d->kept)
            continue;
        int64_t a = digit_step(e, s, d, EINSUM_A), b = copies ? 0 : digit_step(e, s, d, EINSUM_B);
        bool continues =
            a == r.a_step * r.count && b == r.b_step * r.count && (!leaves || (d->axis == r.axis && d->weight == r.weight * r.count));
        if (d->size > 1 && r.count > 1 && !continues)
            break;
        r.axis = r.count > 1 ? r.axis : d->axis;
        r.weight = r.count > 1 ? r.weight : d->weight;
        r.a_step = r.count > 1 ? r.a_step : a;
        r.b_step = r.count > 1 ? r.b_step : b;
        r.count *= d->size;
        r.first = i;
    }
    return r;
}

/* How many values of the run, of which the first exists, do. */
static int64_t existing(const einsum *e, const einsum_statement *s, const int64_t *counters, const run_digits *along)
{
    int64_t first = coordinate(s, counters, EINSUM_SIDES, along->axis) + einsum_largest_shift(s, along->axis);
    int64_t fit = (e->axes[along->axis].size - 1 - first) / along->weight + 1;
    return fit < along->count ? fit : along->count;
}

static bool statement_runs(const einsum *e, const einsum_statement *s, int64_t *counters, bool (*call)(void *of, const einsum_run *run),
                           void *of)
{
    bool copies = s->op == MATH_COPY, leaves = may_leave(e, s);
    const run_digits along = run_digits_of(e, s);
    do {
        einsum_run r = {.first = {.a = s->sources[0],
                                  .b = copies ? (uint32_t)EINSUM_NO_TENSOR : s->sources[1],
                                  .before = (uint32_t)(s - e->statements)},
                        .count = along.count,
                        .a_step = along.a_step,
                        .b_step = along.b_step};
        if (leaves && !exists(e, s, counters))
            continue; /* nor does what follows in the run: coordinates only grow */
        if (leaves && r.count > 1)
            r.count = existing(e, s, counters, &along);
        r.first.a_element = source_element(e, s, counters, s->sources[0], EINSUM_A);
        r.first.b_element = copies ? 0 : source_element(e, s, counters, s->sources[1], EINSUM_B);
        for (uint32_t i = along.first; i < s->digit_count; i++)
            counters[i] = s->digits[i].kept ? counters[i] : s->digits[i].size - 1;
        if (r.first.a_element >= 0 && r.first.b_element >= 0 && !call(of, &r))
            return false;
    } while (count_on(s, counters));
    return true;
}

bool einsum_runs(const einsum *e, uint32_t before, uint32_t tensor, int64_t element, bool (*call)(void *of, const einsum_run *run),
                 void *of)
{
    int64_t counters[EINSUM_STATEMENT_DIGITS];
    for (uint32_t i = before; i-- > 0;) {
        const einsum_statement *s = &e->statements[i];
        if (s->digit_count <= EINSUM_STATEMENT_DIGITS && assigns(e, s, tensor, element, counters))
            return (s->op == MATH_COPY || s->op == MATH_CONTRACT) && statement_runs(e, s, counters, call, of);
    }
    return false;
}

typedef struct one_by_one {
    bool (*call)(void *of, const einsum_product *term);
    void *of;
} one_by_one;

static bool call_each(void *of, const einsum_run *run)
{
    const one_by_one *o = of;
    for (int64_t i = 0; i < run->count; i++) {
        einsum_product p = run->first;
        p.a_element += i * run->a_step;
        p.b_element += i * run->b_step;
        if (!o->call(o->of, &p))
            return false;
    }
    return true;
}

bool einsum_terms(const einsum *e, uint32_t before, uint32_t tensor, int64_t element, bool (*call)(void *of, const einsum_product *term),
                  void *of)
{
    one_by_one each = {call, of};
    return einsum_runs(e, before, tensor, element, call_each, &each);
}

/* ---- who made an element ---- */

struct einsum_makers {
    const einsum *einsum;
    uint32_t *first;     /* by tensor, and one past the last: where its statements begin in */
    uint32_t *numbers;   /* the numbers of statements, ascending for each tensor, */
    einsum_span *ranges; /* and for each `rank` of these, one for each axis of its tensor */
    uint32_t rank;       /* the largest of a tensor, of which more axes than RANGED_AXES are not looked at */
};
enum { RANGED_AXES = 32 };

static void list_makers(einsum_makers *m)
{
    const einsum *e = m->einsum;
    for (uint32_t i = 0; i < e->statement_count; i++)
        m->first[e->statements[i].dst + 1]++;
    for (uint32_t t = 0; t < e->tensor_count; t++)
        m->first[t + 1] += m->first[t];
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *s = &e->statements[i];
        uint32_t at = m->first[s->dst]++;
        m->numbers[at] = i;
        for (uint32_t k = 0; k < e->tensors[s->dst].rank && k < m->rank; k++)
            m->ranges[(size_t)at * m->rank + k] = einsum_reach(s, EINSUM_DST, e->tensors[s->dst].axes[k]);
    }
    for (uint32_t t = e->tensor_count; t-- > 0;)
        m->first[t + 1] = m->first[t];
    m->first[0] = 0;
}

einsum_makers *einsum_makers_new(const einsum *e)
{
    einsum_makers *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->einsum = e;
    m->first = calloc((size_t)e->tensor_count + 1, sizeof *m->first);
    m->numbers = calloc((size_t)e->statement_count + 1, sizeof *m->numbers);
    for (uint32_t t = 0; t < e->tensor_count; t++)
        m->rank = e->tensors[t].rank > m->rank ? e->tensors[t].rank : m->rank;
    m->rank = m->rank < RANGED_AXES ? m->rank : RANGED_AXES;
    m->ranges = calloc(((size_t)e->statement_count + 1) * (m->rank + 1), sizeof *m->ranges);
    if (!m->first || !m->numbers || !m->ranges) {
        einsum_makers_free(m);
        return NULL;
    }
    list_makers(m);
    return m;
}

void einsum_makers_free(einsum_makers *m)
{
    if (!m)
        return;
    free(m->first);
    free(m->numbers);
    free(m->ranges);
    free(m);
}

static bool is_in_ranges(const einsum_span *ranges, const int64_t *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (at[i] < ranges[i].low || at[i] >= ranges[i].end)
            return false;
    return true;
}

const einsum_statement *einsum_maker(const einsum_makers *m, uint32_t before, uint32_t tensor, int64_t element, int64_t *elements)
{
    const einsum *e = m->einsum;
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t counters[EINSUM_STATEMENT_DIGITS], at[RANGED_AXES], left = element;
    uint32_t ranged = t->rank < m->rank ? t->rank : m->rank;
    for (uint32_t i = t->rank; i-- > 0; left /= e->axes[t->axes[i]].size)
        if (i < ranged)
            at[i] = left % e->axes[t->axes[i]].size;
    for (uint32_t i = m->first[tensor + 1]; i-- > m->first[tensor];) {
        const einsum_statement *s = &e->statements[m->numbers[i]];
        if (m->numbers[i] >= before || s->digit_count > EINSUM_STATEMENT_DIGITS)
            continue;
        if (s->op == MATH_SCATTER)
            return s;
        if (!is_in_ranges(&m->ranges[(size_t)i * m->rank], at, ranged) || !assigns(e, s, tensor, element, counters))
            continue;
        for (uint32_t k = 0; (s->op == MATH_COPY || s->op == MATH_MAP || s->op == MATH_GATHER) && k < s->source_count; k++)
            elements[k] = source_element(e, s, counters, s->sources[k], (einsum_side)(EINSUM_A + k));
        return s;
    }
    return NULL;
}

/* ---- runs that are copied ---- */

/* The axis along which the elements lie, `step` apart, and the coordinates between two of them; false: along none alone. */
static bool axis_along(const einsum *e, uint32_t tensor, int64_t element, int64_t step, int64_t count, uint32_t *place, int64_t *apart)
{
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0; stride *= e->axes[t->axes[i]].size) {
        int64_t size = e->axes[t->axes[i]].size;
        if (step < stride || step / stride >= size)
            continue;
        *place = i;
        *apart = step / stride;
        return step % stride == 0 && element / stride % size + (count - 1) * *apart < size;
    }
    return false;
}

/* So many coordinates of the axis, counted from a multiple of as many on, are all assigned where one is; 0: none are known to be. */
static int64_t dense_block(const einsum_statement *s, uint32_t axis)
{
    int64_t block = 1;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < s->digit_count && !more; i++)
            if (s->digits[i].axis == axis && s->digits[i].size > 1 && s->digits[i].weight == block) {
                block *= s->digits[i].size;
                more = true;
            }
    }
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (!s->digits[i].kept || (s->digits[i].axis == axis && s->digits[i].size > 1 && s->digits[i].weight % block != 0 &&
                                   block % (s->digits[i].weight * s->digits[i].size) != 0))
            return 0;
    return block;
}

/* Of elements from that one on, which the copy assigns; `at`: its coordinate. */
static int64_t copied_together(const einsum *e, const einsum_statement *s, uint32_t axis, int64_t at, int64_t apart, int64_t count,
                               int64_t *from_step)
{
    const einsum_tensor *source = &e->tensors[s->sources[0]];
    int64_t block = s->op == MATH_COPY && !has_window(e, s->sources[0]) ? dense_block(s, axis) : 0;
    int64_t place = at - einsum_shift_along(s, EINSUM_DST, axis), last = e->axes[axis].size - einsum_largest_shift(s, axis) - 1;
    if (block == 0)
        return 0;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].axis == axis && s->digits[i].size > 1 && !einsum_digit_indexes(&s->digits[i], EINSUM_A))
            return 0;
    int64_t end = (place / block + 1) * block - 1;
    end = end < last ? end : last;
    int64_t fit = (end - place) / apart + 1;
    *from_step = einsum_tensor_has(source, axis) ? axis_stride(e, source, axis) * apart : 0;
    return fit < count ? fit : count;
}

int64_t einsum_copied(const einsum_makers *m, uint32_t before, uint32_t tensor, int64_t element, int64_t step, int64_t count,
                      const einsum_statement **by, int64_t *from, int64_t *from_step)
{
    const einsum *e = m->einsum;
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t counters[EINSUM_STATEMENT_DIGITS], at[RANGED_AXES], apart, left = element;
    uint32_t along;
    if (t->rank > m->rank || !axis_along(e, tensor, element, step, count, &along, &apart))
        return 0;
    for (uint32_t i = t->rank; i-- > 0; left /= e->axes[t->axes[i]].size)
        at[i] = left % e->axes[t->axes[i]].size;
    for (uint32_t i = m->first[tensor + 1]; i-- > m->first[tensor];) {
        const einsum_statement *s = &e->statements[m->numbers[i]];
        const einsum_span *ranges = &m->ranges[(size_t)i * m->rank], *range = &ranges[along];
        int64_t last = at[along] + (count - 1) * apart;
        if (m->numbers[i] >= before)
            continue;
        if (s->op == MATH_SCATTER || s->digit_count > EINSUM_STATEMENT_DIGITS)
            return 0;
        bool others = true; /* may it assign elements along the axis? */
        for (uint32_t k = 0; k < t->rank; k++)
            others = others && (k == along || (at[k] >= ranges[k].low && at[k] < ranges[k].end && reaches(s, t->axes[k], at[k])));
        if (!others || last < range->low || at[along] >= range->end)
            continue;
        if (at[along] < range->low) { /* those in front of it */
            count = (range->low - at[along] - 1) / apart + 1;
            continue;
        }
        if (!assigns(e, s, tensor, element, counters))
            return 0;
        *by = s;
        *from = source_element(e, s, counters, s->sources[0], EINSUM_A);
        return *from < 0 ? 0 : copied_together(e, s, t->axes[along], at[along], apart, count, from_step);
    }
    return 0;
}

bool einsum_folded(const einsum *e, const einsum_statement *s, int64_t element, bool (*call)(void *of, const int64_t *elements), void *of)
{
    int64_t counters[EINSUM_STATEMENT_DIGITS], elements[EINSUM_SOURCES];
    if (!assigns(e, s, s->dst, element, counters))
        return false;
    bool leaves = may_leave(e, s);
    do {
        if (leaves && !exists(e, s, counters))
            continue;
        for (uint32_t k = 0; k < s->source_count; k++)
            elements[k] = source_element(e, s, counters, s->sources[k], (einsum_side)(EINSUM_A + k));
        if (!call(of, elements))
            return false;
    } while (count_on(s, counters));
    return true;
}

/* ---- rows by index ---- */

int64_t einsum_moved(const einsum *e, const einsum_statement *s, int64_t element, const int64_t *lists)
{
    const einsum_tensor *t = &e->tensors[einsum_operand(s, einsum_indexed_side(s))];
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        const einsum_index *x = &s->indices[i];
        int64_t stride = axis_stride(e, t, x->axis), size = e->axes[x->axis].size, position = lists[i] / x->step;
        if (einsum_index_divides(x) && (lists[i] < 0 || lists[i] % x->step || (x->positions && position >= x->positions)))
            return -1;
        position /= x->div;
        position = x->mod ? position % x->mod : position;
        int64_t place = element / stride % size;
        if (position > size || position < -size || place + position * x->unit < 0 || place + position * x->unit >= size)
            return -1;
        element += position * x->unit * stride;
    }
    return element;
}

bool einsum_scatter_each(const einsum *e, const einsum_statement *s, bool (*call)(void *of, int64_t to, const int64_t *elements), void *of)
{
    int64_t counters[EINSUM_STATEMENT_DIGITS] = {0}, elements[EINSUM_SOURCES];
    for (bool more = true; more;) {
        if (exists(e, s, counters)) {
            for (uint32_t k = 0; k < s->source_count; k++)
                elements[k] = source_element(e, s, counters, s->sources[k], (einsum_side)(EINSUM_A + k));
            if (!call(of, source_element(e, s, counters, s->dst, EINSUM_DST), elements))
                return false;
        }
        more = false;
        for (uint32_t i = s->digit_count; i-- > 0 && !more;) {
            more = ++counters[i] < s->digits[i].size;
            if (!more)
                counters[i] = 0;
        }
    }
    return true;
}

const char *einsum_element_text(const einsum *e, uint32_t tensor, int64_t element, arena *a)
{
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t *coords = ARENA_ARRAY(a, int64_t, (size_t)t->rank + 1);
    for (uint32_t i = t->rank; i-- > 0;) {
        coords[i] = element % e->axes[t->axes[i]].size;
        element /= e->axes[t->axes[i]].size;
    }
    strbuf s;
    strbuf_init(&s, a);
    for (uint32_t i = 0; i < t->rank; i++)
        strbuf_printf(&s, "%s%s=%" PRId64, i ? ", " : "", e->axes[t->axes[i]].name, coords[i]);
    return s.bytes ? s.text : "";
}

/* ---- sizes ---- */

static double combinations(const einsum_statement *s, bool summed_only)
{
    double product = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        product *= summed_only && s->digits[i].kept ? 1 : (double)s->digits[i].size;
    return product;
}

double einsum_most_terms(const einsum *e)
{
    double most = 1;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        double terms = combinations(&e->statements[i], true);
        most = terms > most ? terms : most;
    }
    return most;
}

double einsum_products(const einsum *e)
{
    double sum = 0;
    for (uint32_t i = 0; i < e->statement_count; i++)
        sum += combinations(&e->statements[i], false);
    return sum;
}

/* Of an expression: what is no polynomial is a value of its own. */
static int64_t expression_degree(const einsum_statement *s, const int64_t *degrees)
{
    enum { MOST = 1 << 20 };
    int64_t stack[SCALAR_MAX_DEPTH + 1] = {0};
    unsigned depth = 0;
    for (uint32_t i = 0; i < s->step_count; i++) {
        const scalar_row *row = scalar_row_of(s->steps[i].op);
        if (!row) {
            stack[depth++] = s->steps[i].op == SCALAR_SOURCE ? degrees[s->sources[s->steps[i].argument]] : 1;
            continue;
        }
        depth -= scalar_arity(row);
        const int64_t *of = &stack[depth];
        int64_t larger = of[0] > of[1] ? of[0] : of[1];
        switch (row->op) {
        case SCALAR_ADD_I32:
        case SCALAR_ADD_F32:
        case SCALAR_SUB_I32:
        case SCALAR_SUB_F32: stack[depth] = larger; break;
        case SCALAR_MUL_I32:
        case SCALAR_MUL_F32: stack[depth] = of[0] + of[1]; break;
        case SCALAR_FMA_F32: stack[depth] = of[0] + of[1] > of[2] ? of[0] + of[1] : of[2]; break;
        case SCALAR_NEG_I32:
        case SCALAR_NEG_F32:
        case SCALAR_CANONICAL_F32: break;
        default: stack[depth] = 1;
        }
        stack[depth] = stack[depth] < MOST ? stack[depth] : MOST;
        depth++;
    }
    return stack[0];
}

/* Of a fold: a sum has its terms' degree, a product all of them together; another one is a value of its own. */
static int64_t fold_degree(const einsum_statement *s, int64_t term)
{
    enum { MOST = 1 << 20 };
    double all = combinations(s, true) * (double)term;
    if (s->fold == SCALAR_MUL_I32 || s->fold == SCALAR_MUL_F32)
        return all < MOST ? (int64_t)all : MOST;
    return s->fold == SCALAR_ADD_I32 || s->fold == SCALAR_ADD_F32 ? term : 1;
}

int64_t einsum_degree(const einsum *e, uint32_t tensor)
{
    enum { MOST = 1 << 20 };
    int64_t *degrees = malloc(((size_t)e->tensor_count + 1) * sizeof *degrees), found;
    if (!degrees)
        return MOST;
    for (uint32_t t = 0; t < e->tensor_count; t++)
        degrees[t] = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) /* a source is assigned before, or an input */
        degrees[e->statements[i].dst] = 1;
    for (uint32_t t = 0; t < e->tensor_count; t++)
        degrees[t] = degrees[t] ? 0 : 1;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *s = &e->statements[i];
        int64_t d = s->op == MATH_MAP      ? expression_degree(s, degrees)
                    : s->op == MATH_REDUCE ? fold_degree(s, expression_degree(s, degrees))
                                           : degrees[s->sources[0]] + (s->op == MATH_CONTRACT ? degrees[s->sources[1]] : 0);
        d = d < MOST ? d : MOST;
        degrees[s->dst] = d > degrees[s->dst] ? d : degrees[s->dst];
    }
    found = degrees[tensor];
    free(degrees);
    return found;
}
