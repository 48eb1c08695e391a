#include "runtime/engine/mask.h"

#include <string.h>

static int64_t term_value(const mask_term *t, int64_t counter)
{
    return counter / t->div % t->mod * t->weight;
}

/* Adds the greatest value that a term can have for counters below `counters`; false past 2^62. */
static bool term_greatest(const mask_term *t, int64_t counters, int64_t *sum)
{
    int64_t greatest = (counters - 1) / t->div, value;
    if (greatest > t->mod - 1)
        greatest = t->mod - 1;
    return !__builtin_mul_overflow(greatest, t->weight, &value) && !__builtin_add_overflow(*sum, value, sum) && *sum <= INT64_C(1) << 62;
}

static bool mask_plan(mask *k, const command *c, int64_t steps, int64_t lanes, arena *a, fault *f)
{
    k->limit = command_get(c, MASK_LIMIT);
    k->lane_sum = ARENA_ARRAY(a, int64_t, (size_t)lanes);
    int64_t greatest = 0;
    for (unsigned i = 0; i < c->entry_count; i++) {
        bool lane = command_entry(c, i, MASK_COUNTER) == 1;
        mask_term t = {command_entry(c, i, MASK_DIV), command_entry(c, i, MASK_MOD), command_entry(c, i, MASK_WEIGHT)};
        if (!term_greatest(&t, lane ? lanes : steps, &greatest))
            return fault_set(f, E_RUN_CHAIN, c, "the sum of the terms overflows");
        if (!lane)
            k->step_terms[k->step_term_count++] = t;
        for (int64_t p = 0; lane && p < lanes; p++)
            k->lane_sum[p] += term_value(&t, p);
    }
    k->lane_low = k->lane_high = k->lane_sum[0];
    for (int64_t p = 1; p < lanes; p++) {
        k->lane_low = k->lane_sum[p] < k->lane_low ? k->lane_sum[p] : k->lane_low;
        k->lane_high = k->lane_sum[p] > k->lane_high ? k->lane_sum[p] : k->lane_high;
    }
    return true;
}

bool mask_set_plan(mask_set *s, const command *commands, size_t count, int64_t steps, int64_t lanes, arena *a, fault *f)
{
    *s = (mask_set){ARENA_ARRAY(a, mask, count), count, lanes, true};
    for (size_t i = 0; i < count; i++) {
        if (!mask_plan(&s->masks[i], &commands[i], steps, lanes, a, f))
            return false;
        s->fixed &= s->masks[i].step_term_count == 0;
    }
    return true;
}

/* Lanes whose sum is below `room`, joined to what the masks before have left of `live`. */
static mask_state mask_join(const mask_set *s, const mask *k, int64_t room, mask_state state, unsigned char *live)
{
    if (k->lane_low >= room)
        return MASK_NONE;
    if (k->lane_high < room)
        return state;
    if (state == MASK_ALL)
        memset(live, 1, (size_t)s->lanes);
    for (int64_t p = 0; p < s->lanes; p++)
        live[p] &= k->lane_sum[p] < room;
    return MASK_SOME;
}

mask_state mask_set_at(const mask_set *s, int64_t step, unsigned char *live)
{
    mask_state state = MASK_ALL;
    for (size_t i = 0; i < s->count && state != MASK_NONE; i++) {
        const mask *k = &s->masks[i];
        int64_t room = k->limit;
        for (unsigned j = 0; j < k->step_term_count; j++)
            room -= term_value(&k->step_terms[j], step);
        state = mask_join(s, k, room, state, live);
    }
    return state;
}

mask_state mask_set_live(const mask_set *s, const int64_t *sums, const int64_t *more, unsigned char *live)
{
    mask_state state = MASK_ALL;
    for (size_t i = 0; i < s->count && state != MASK_NONE; i++)
        state = mask_join(s, &s->masks[i], s->masks[i].limit - sums[i] - more[i], state, live);
    return state;
}

bool mask_set_agrees(const mask_set *s, const int64_t *low, const int64_t *high, const int64_t *more)
{
    for (size_t i = 0; i < s->count; i++) {
        const mask *k = &s->masks[i];
        int64_t most = k->limit - low[i] - more[i], least = k->limit - high[i] - more[i];
        if (most != least && k->lane_low < most && k->lane_high >= least)
            return false;
    }
    return true;
}
