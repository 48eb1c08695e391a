#include "runtime/timing/price.h"

#include "runtime/timing/schedule.h"

bool price_make(const target *t, const binary_kernel *k, timing_preset preset, int64_t steps, known_costs *known, arena *a, price *out)
{
    schedule s;
    diag_list silent;
    diag_list_init(&silent, a);
    *out = (price){0};
    if (!schedule_make_within(t, k, preset, steps, known, a, &silent, &s))
        return false;
    out->cycles = s.cycles;
    for (int c = 0; c < 3; c++) { /* by start, so those of a context are in their order */
        int64_t *each = ARENA_ARRAY(a, int64_t, s.count + 1);
        uint32_t *line = ARENA_ARRAY(a, uint32_t, s.count + 1);
        int64_t load = 0; /* of bitmaps: a part of the chain that follows */
        for (size_t i = 0; i < s.count; i++)
            if ((int)s.items[i].context == c && s.items[i].bitmaps) {
                load = s.items[i].alone.total;
            } else if ((int)s.items[i].context == c) {
                line[out->count[c]] = s.items[i].commands[0].line;
                each[out->count[c]++] = s.items[i].alone.total + load;
                load = 0;
            }
        out->each[c] = each;
        out->line[c] = line;
    }
    return true;
}
