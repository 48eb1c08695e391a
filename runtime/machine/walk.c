#include "runtime/machine/walk.h"

#include <stdio.h>
#include <string.h>

walk walk_of_copy(const copy_command *k, const copy_side *s)
{
    walk w = {.count = k->count, .base = s->base};
    memcpy(w.size, k->size, k->count * sizeof *w.size);
    memcpy(w.stride, s->stride, k->count * sizeof *w.stride);
    return w;
}

bool walk_positions(const walk *w, int64_t *positions)
{
    int64_t product = 1;
    for (unsigned i = 0; i < w->count; i++)
        if (__builtin_mul_overflow(product, w->size[i], &product) || product > INT64_C(1) << 62)
            return false;
    *positions = product;
    return true;
}

/* What the loops from `first` inwards add at least and at most. */
static void bounds_from(const walk *w, unsigned first, walk_address *low, walk_address *high)
{
    for (unsigned i = first; i < w->count; i++) {
        walk_address reach = (walk_address)w->stride[i] * (w->size[i] - 1);
        *(reach < 0 ? low : high) += reach;
    }
}

void walk_bounds(const walk *w, walk_address *low, walk_address *high)
{
    *low = *high = w->base;
    bounds_from(w, 0, low, high);
}

bool walk_first_outside(const walk *w, int64_t low, int64_t high, int64_t *counters, walk_address *address)
{
    walk_address begin = w->base, least, most;
    walk_bounds(w, &least, &most);
    if (least >= low && most <= high)
        return false;
    for (unsigned i = 0; i < w->count; i++) {
        walk_address inner_low = 0, inner_high = 0;
        bounds_from(w, i + 1, &inner_low, &inner_high);
        int64_t c = 0;
        for (; c < w->size[i]; c++) {
            walk_address here = begin + (walk_address)c * w->stride[i];
            if (here + inner_low < low || here + inner_high > high)
                break;
        }
        counters[i] = c;
        begin += (walk_address)c * w->stride[i];
    }
    *address = begin;
    return begin < low || begin > high;
}

void walk_counters(const walk *w, int64_t position, int64_t *counters)
{
    for (unsigned i = w->count; i-- > 0;) {
        counters[i] = position % w->size[i];
        position /= w->size[i];
    }
}

void walk_counters_text(const walk *w, const int64_t *counters, char *text, size_t bytes)
{
    size_t used = 0;
    for (unsigned i = 0; i < w->count && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "(", (long long)counters[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, ")");
}

void walk_merge(walk *w)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < w->count; i++) {
        if (w->size[i] == 1)
            continue;
        int64_t joined, reach;
        if (kept > 0 && !__builtin_mul_overflow(w->size[i], w->stride[i], &reach) && reach == w->stride[kept - 1] &&
            !__builtin_mul_overflow(w->size[kept - 1], w->size[i], &joined)) {
            w->size[kept - 1] = joined;
            w->stride[kept - 1] = w->stride[i];
            continue;
        }
        w->size[kept] = w->size[i];
        w->stride[kept++] = w->stride[i];
    }
    if (kept == 0) {
        w->size[0] = 1;
        w->stride[0] = 1; /* a single position is a contiguous run of one */
        kept = 1;
    }
    w->count = kept;
}

int64_t walk_run(const walk *w)
{
    return w->stride[w->count - 1] == 1 ? w->size[w->count - 1] : 1;
}

void walk_start(const walk *w, walk_cursor *c)
{
    memset(c, 0, sizeof *c);
    c->run_address = w->base;
}

void walk_next_run(const walk *w, walk_cursor *c)
{
    c->run_position = 0;
    for (unsigned i = w->count - 1; i-- > 0;) {
        c->run_address += w->stride[i];
        if (++c->counter[i] < w->size[i])
            return;
        c->run_address -= w->stride[i] * w->size[i];
        c->counter[i] = 0;
    }
}
