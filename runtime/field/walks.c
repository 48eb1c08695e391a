/* Which position of a nest of loops has an address: loop by loop, the outermost first, from its last
 * iteration down, as far as the loops inside can make up the rest. Nests as compilers make them leave a
 * choice or two at each loop. */
#include "runtime/field/engine.h"

enum { MOST_TRIES = 1 << 16, GIVEN_UP = -2 };

typedef struct search {
    const walk *w;
    walk_address low[WALK_MAX_LOOPS + 1], high[WALK_MAX_LOOPS + 1]; /* of the sum of the loops from there on */
    int64_t positions[WALK_MAX_LOOPS + 1];
    int64_t limit;
    int tries;
} search;

/* b is positive. */
static walk_address floor_divide(walk_address a, walk_address b)
{
    if ((int64_t)a == a && (int64_t)b == b && a != INT64_MIN) { /* much faster */
        int64_t n = (int64_t)a, d = (int64_t)b, q = n / d;
        return q - (n % d < 0);
    }
    walk_address q = a / b;
    return q - (a % b < 0);
}

/* The last position, of the loops from `loop` on, whose sum is in [low, high]. */
static int64_t find_from(search *s, unsigned loop, walk_address low, walk_address high, int64_t before)
{
    if (++s->tries > MOST_TRIES)
        return GIVEN_UP;
    if (loop == s->w->count)
        return low <= 0 && high >= 0 && (s->limit < 0 || before < s->limit) ? before : -1;
    walk_address stride = s->w->stride[loop], first = low - s->high[loop + 1], last = high - s->low[loop + 1];
    int64_t from = 0, to = s->w->size[loop] - 1;
    if (stride == 0) {
        if (first > 0 || last < 0)
            return -1;
        from = s->limit < 0 ? to : 0;
    } else {
        walk_address a = stride > 0 ? -floor_divide(-first, stride) : -floor_divide(last, -stride);
        walk_address b = stride > 0 ? floor_divide(last, stride) : floor_divide(-first, -stride);
        from = a > from ? (int64_t)(a > to ? (walk_address)to + 1 : a) : from;
        to = b < to ? (int64_t)(b < -1 ? -1 : b) : to;
    }
    for (int64_t c = to; c >= from; c--) {
        int64_t found = find_from(s, loop + 1, low - stride * c, high - stride * c, before + c * s->positions[loop + 1]);
        if (found != -1)
            return found;
    }
    return -1;
}

int64_t field_walk_find(const walk *w, int64_t at, int64_t size, int64_t limit)
{
    search s = {.w = w, .limit = limit};
    s.positions[w->count] = 1;
    for (unsigned i = w->count; i-- > 0;) {
        walk_address reach = (walk_address)w->stride[i] * (w->size[i] - 1);
        s.low[i] = s.low[i + 1] + (reach < 0 ? reach : 0);
        s.high[i] = s.high[i + 1] + (reach > 0 ? reach : 0);
        s.positions[i] = s.positions[i + 1] * w->size[i];
    }
    walk_address offset = (walk_address)at - w->base;
    if (offset < s.low[0] || offset - size + 1 > s.high[0])
        return -1;
    return find_from(&s, 0, offset - size + 1, offset, 0);
}

int64_t field_walk_address(const walk *w, int64_t position)
{
    int64_t address = w->base;
    for (unsigned i = w->count; i-- > 0;) {
        address += position % w->size[i] * w->stride[i];
        position /= w->size[i];
    }
    return address;
}
