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

enum { COUNTER_STEP, COUNTER_LANE, COUNTER_SLICE, COUNTERS = 5 }; /* docs/isa.md, mask, counter */

/* `counts`: how many values each counter has. */
static bool mask_plan(mask *k, const command *c, const int64_t counts[COUNTERS], arena *a, fault *f)
{
    int64_t greatest = 0, lanes = counts[COUNTER_LANE];
    k->limit = command_get(c, MASK_LIMIT);
    k->lane_sum = ARENA_ARRAY(a, int64_t, (size_t)lanes);
    for (unsigned i = 0; i < c->entry_count; i++) {
        int64_t counter = command_entry(c, i, MASK_COUNTER);
        mask_term t = {0, command_entry(c, i, MASK_DIV), command_entry(c, i, MASK_MOD), command_entry(c, i, MASK_WEIGHT)};
        if (!term_greatest(&t, counts[counter], &greatest))
            return fault_set(f, E_RUN_CHAIN, c, "the sum of the terms overflows");
        if (counter == COUNTER_STEP)
            k->step_terms[k->step_term_count++] = t;
        if (counter >= COUNTER_SLICE) {
            t.unit_counter = (unsigned)(counter - COUNTER_SLICE);
            k->unit_terms[k->unit_term_count++] = t;
        }
        for (int64_t p = 0; counter == COUNTER_LANE && p < lanes; p++)
            k->lane_sum[p] += term_value(&t, p);
    }
    k->lane_low = k->lane_high = k->lane_sum[0];
    for (int64_t p = 1; p < lanes; p++) {
        k->lane_low = k->lane_sum[p] < k->lane_low ? k->lane_sum[p] : k->lane_low;
        k->lane_high = k->lane_sum[p] > k->lane_high ? k->lane_sum[p] : k->lane_high;
    }
    return true;
}

bool mask_set_plan(mask_set *s, const command *commands, size_t count, int64_t steps, int64_t lanes, const target *t, arena *a, fault *f)
{
    const int64_t counts[COUNTERS] = {steps, lanes, t->slices_per_cluster, t->clusters_per_chip, t->chips};
    *s = (mask_set){.masks = ARENA_ARRAY(a, mask, count), .count = count, .lanes = lanes, .fixed = true};
    for (size_t i = 0; i < count; i++) {
        if (!mask_plan(&s->masks[i], &commands[i], counts, a, f))
            return false;
        s->fixed &= s->masks[i].step_term_count == 0;
        s->per_unit |= s->masks[i].unit_term_count > 0;
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

mask_state mask_set_at(const mask_set *s, const mask_unit *unit, int64_t step, unsigned char *live)
{
    mask_state state = MASK_ALL;
    for (size_t i = 0; i < s->count && state != MASK_NONE; i++) {
        const mask *k = &s->masks[i];
        int64_t room = k->limit;
        for (unsigned j = 0; j < k->step_term_count; j++)
            room -= term_value(&k->step_terms[j], step);
        for (unsigned j = 0; j < k->unit_term_count; j++)
            room -= term_value(&k->unit_terms[j], unit->counters[k->unit_terms[j].unit_counter]);
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
