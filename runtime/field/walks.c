/* Which position of a nest of loops has an address: loop by loop, the outermost first, from its last
 * iteration down, as far as the loops inside can make up the rest. Nests as compilers make them leave a
 * choice or two at each loop. */
#include "runtime/field/engine.h"
#include "support/integer.h"

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

int64_t field_walk_along(const walk *w, field_span positions, int64_t *apart)
{
    *apart = 0;
    int64_t inner = 1;
    for (unsigned i = w->count; i-- > 0 && positions.count > 1 && positions.apart > 0 && positions.apart % inner == 0;) {
        int64_t each = positions.apart / inner, at = positions.first / inner % w->size[i];
        if (each < w->size[i]) {
            *apart = each * w->stride[i];
            return smaller((w->size[i] - 1 - at) / each + 1, positions.count);
        }
        inner *= w->size[i];
    }
    return 1;
}

/* Has every address at most one position, each with `size` units? From the loop of the smallest stride on, each steps over all of those
 * before it. */
static bool is_apart(const walk *w, int64_t size)
{
    walk_address reached = 0, below = 0;
    for (unsigned done = 0; done < w->count; done++) {
        unsigned next = w->count;
        for (unsigned i = 0; i < w->count; i++) {
            walk_address stride = w->stride[i] < 0 ? -(walk_address)w->stride[i] : w->stride[i];
            bool later = stride > below || (stride == 0 && w->size[i] > 1);
            if (w->size[i] > 1 && later &&
                (next == w->count || stride < (w->stride[next] < 0 ? -(walk_address)w->stride[next] : w->stride[next])))
                next = i;
        }
        if (next == w->count)
            break;
        below = w->stride[next] < 0 ? -(walk_address)w->stride[next] : w->stride[next];
        if (below < reached + size)
            return false;
        reached += below * (w->size[next] - 1);
    }
    for (unsigned i = 0; i < w->count; i++) /* of the same stride */
        for (unsigned j = 0; j < i; j++)
            if (w->size[i] > 1 && w->size[j] > 1 && (w->stride[i] == w->stride[j] || w->stride[i] == -w->stride[j]))
                return false;
    return true;
}

/* The same of a walk whose addresses have one position each. */
static int64_t follow(const walk *w, int64_t position, int64_t apart, int64_t count, int64_t *positions_apart)
{
    int64_t most = 1, inner = 1;
    *positions_apart = 0;
    for (unsigned i = w->count; i-- > 0 && count > 1; inner *= w->size[i]) {
        if (w->size[i] == 1 || w->stride[i] == 0 || apart % w->stride[i] != 0)
            continue;
        int64_t each = apart / w->stride[i], at = position / inner % w->size[i];
        int64_t fit = each <= 0 ? 1 : smaller((w->size[i] - 1 - at) / each + 1, count);
        if (fit > most) {
            most = fit;
            *positions_apart = each * inner;
        }
    }
    return most;
}

int64_t field_walk_follow(const walk *w, int64_t position, int64_t size, int64_t apart, int64_t count, int64_t *positions_apart)
{
    return follow(w, position, apart, count > 1 && is_apart(w, size) ? count : 1, positions_apart);
}

/* Loops that have more than one iteration, the largest stride first. False: one has no positive stride. */
static bool order_loops(const walk *w, unsigned *order, unsigned *count)
{
    *count = 0;
    for (unsigned i = 0; i < w->count; i++) {
        unsigned at = *count;
        if (w->size[i] == 1)
            continue;
        if (w->stride[i] <= 0)
            return false;
        for (; at > 0 && w->stride[order[at - 1]] < w->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        ++*count;
    }
    return true;
}

int64_t field_walk_follow_all(const walk *w, int64_t position, int64_t apart, int64_t count, field_spans *positions)
{
    unsigned order[WALK_MAX_LOOPS], loops;
    int64_t inner[WALK_MAX_LOOPS], done = 0, base = field_walk_address(w, position) - w->base;
    bool apart_each = count > 1 && order_loops(w, order, &loops) && is_apart(w, 1);
    for (unsigned i = w->count; i-- > 0;)
        inner[i] = i + 1 < w->count ? inner[i + 1] * w->size[i + 1] : 1;
    do {
        field_span s = {position, 1, 1};
        if (apart_each)
            s.count = follow(w, position, apart, count - done, &s.apart);
        field_spans_add(positions, s);
        done += s.count;
        int64_t left = base + done * apart;
        position = 0;
        for (unsigned i = 0; i < loops && apart_each && left >= 0; i++) {
            int64_t at = left / w->stride[order[i]];
            left = at < w->size[order[i]] ? left - at * w->stride[order[i]] : -1;
            position += at * inner[order[i]];
        }
        apart_each = apart_each && left == 0;
    } while (apart_each && done < count);
    return done;
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
