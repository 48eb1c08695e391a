#include "libvisa/tune/steps.h"

#include "support/integer.h"

/* A schedule that grows: when each context is free, and what is there from when on. */
typedef struct steps_schedule {
    const steps_costs *costs;
    int64_t dma, main, sub, half_at[STEPS_HALVES], step_at[STEPS_MOST], early_steps;
} steps_schedule;

static int64_t whole_or_part(int64_t of, int64_t from, int64_t count)
{
    int64_t within = from % of;
    return within == 0 && count >= of ? count / of * of : smaller(count, of - within);
}

int64_t steps_of_pass(int64_t inner, int64_t unit, int64_t from, int64_t count)
{
    return whole_or_part(unit, from, whole_or_part(inner, from, count));
}

static void load_steps(steps_schedule *s, int64_t from, int64_t steps)
{
    if (steps > 0)
        s->dma += s->costs->load[steps];
    for (int64_t j = from; j < from + steps; j++)
        s->step_at[j] = s->dma;
}

/* Are they a part of the steps that follow each other, or all of several? */
static bool is_one_piece(const steps_costs *c, int64_t from, int64_t count)
{
    int64_t within = from % c->inner;
    return count == 0 || within + count <= c->inner || (within == 0 && count % c->inner == 0);
}

static int64_t pass_cycles(const steps_schedule *s, int64_t steps)
{
    return steps > 0 ? STEPS_CHAIN_FILL + steps * s->costs->products + (steps == s->costs->packet ? s->costs->alone : 0) : 0;
}

/* Passes that a range is met in: those in front of all that follow each other, all of several, and the rest. */
static int64_t passes_cycles(const steps_schedule *s, int64_t from, int64_t count)
{
    int64_t cycles = 0;
    for (int64_t here; count > 0; from += here, count -= here)
        cycles += pass_cycles(s, here = smaller(s->costs->most, steps_of_pass(s->costs->inner, s->costs->unit, from, count)));
    return cycles;
}

/* What is done to the sums of so many steps in passes of its own, with both halves. */
static int64_t later_cycles(const steps_costs *c, int64_t steps)
{
    return STEPS_HALVES * (steps * c->later + c->later_passes * STEPS_CHAIN_FILL * ceil_div(steps, c->most));
}

/* When all steps of a range are there: they do not come in order. */
static int64_t all_there(const steps_schedule *s, int64_t from, int64_t count)
{
    int64_t at = 0;
    for (int64_t j = from; j < from + count; j++)
        at = larger(at, s->step_at[j]);
    return at;
}

/* Steps that are there meet the first half, as many as that has time for until the other half comes. */
static void multiply_early(steps_schedule *s, steps_order *o)
{
    int64_t packet = s->costs->packet;
    o->early_count = s->early_steps = 0;
    while (s->early_steps < o->steps) {
        int64_t begin = larger(s->main, all_there(s, s->early_steps, packet)), count = packet;
        while (s->early_steps + count < o->steps && count + packet <= s->costs->most &&
               all_there(s, s->early_steps + count, packet) <= begin && begin + passes_cycles(s, s->early_steps, count) < s->half_at[1])
            count += packet;
        int64_t after = begin + passes_cycles(s, s->early_steps, count);
        if (begin > s->main ? after > s->half_at[1] : begin >= s->half_at[1])
            return;
        s->main = after;
        s->early_steps += o->early[o->early_count++] = count;
    }
}

/* Until both halves are in the TRF. */
static void begin(steps_schedule *s, steps_order *o)
{
    const int64_t *copied = o->copied;
    const steps_costs *c = s->costs;
    s->dma = 0;
    load_steps(s, 0, copied[0]);
    load_steps(s, copied[0], copied[1]);
    s->dma += c->load_extras;
    for (int half = 0; half < STEPS_HALVES; half++)
        s->half_at[half] = s->dma += c->load_half - (half > 0 && c->at_once ? c->startup : 0);
    if (c->at_once)
        s->half_at[0] = s->dma;
    load_steps(s, copied[0] + copied[1], copied[2]);
    s->main = s->sub = 0;
    for (int64_t j = 0; j < o->steps; j++) {
        bool by_main = j % 2 == 0 && j / 2 < o->by_main;
        int64_t *clock = by_main ? &s->main : &s->sub;
        s->step_at[j] = *clock = larger(*clock, s->step_at[j]) + (by_main ? c->main_ring : c->sub_ring);
    }
    s->main = larger(s->main, s->half_at[0]) + c->fill;
    multiply_early(s, o);
    s->main = larger(s->main, s->half_at[1]) + c->fill;
}

/* Of the steps of a store those that are there when main could begin, where it would wait for the others. */
static int64_t parted_steps(const steps_schedule *s, int64_t from, int64_t count, int64_t main)
{
    int64_t packet = s->costs->packet, begin = larger(main, all_there(s, from, packet)), there = packet;
    while (there < count && all_there(s, from + there, packet) <= begin)
        there += packet;
    return there < count && all_there(s, from, count) > begin + STEPS_HALVES * STEPS_CHAIN_FILL && is_one_piece(s->costs, from, there) &&
                   is_one_piece(s->costs, from + there, count - there)
               ? there
               : 0;
}

/* What of a range has not met the first half meets it. */
static int64_t rest_cycles(const steps_schedule *s, int64_t from, int64_t count)
{
    int64_t begin = larger(s->early_steps, from);
    return from + count > begin ? passes_cycles(s, begin, from + count - begin) : 0;
}

/* Products and stores from there on. */
static int64_t end(const steps_schedule *s, steps_order *o)
{
    const steps_costs *c = s->costs;
    int64_t main = s->main, dma = s->dma, from = 0;
    for (int64_t i = 0; i < o->store_count; i++) {
        int64_t to = from + o->stored[i], parted = o->parted[i] = parted_steps(s, from, o->stored[i], main);
        if (parted > 0)
            main = larger(main, all_there(s, from, parted)) + rest_cycles(s, from, parted) + passes_cycles(s, from, parted);
        main = larger(main, all_there(s, from, o->stored[i])) + rest_cycles(s, from + parted, to - from - parted);
        if (c->halves_apart) /* what met the first half early is stored while the other half meets it */
            dma = larger(dma, to <= s->early_steps ? 0 : main) + c->store[o->stored[i]];
        main += passes_cycles(s, from + parted, to - from - parted) + later_cycles(c, o->stored[i]);
        dma = larger(dma, main) + c->store[o->stored[i]];
        from = to;
    }
    return dma;
}

/* The last store has `last` steps, those in front of it share the others, the first ones taking what is left over. False: one of them is no
 * piece. */
static bool share_stores(const steps_costs *c, steps_order *o, int64_t count, int64_t last)
{
    int64_t together = c->together;
    o->store_count = count;
    for (int64_t i = 0, left = (o->steps - last) / together; i < count - 1; i++) {
        int64_t here = ceil_div(left, count - 1 - i);
        left -= here;
        o->stored[i] = here * together;
    }
    o->stored[count - 1] = last;
    for (int64_t i = 0, from = 0; i < count; from += o->stored[i++])
        if (!is_one_piece(c, from, o->stored[i]))
            return false;
    return true;
}

/* The best sizes of stores. */
static void try_stores(const steps_schedule *s, steps_order *o, steps_order *best)
{
    int64_t together = s->costs->together, all = o->steps / together;
    for (int64_t count = 1; count <= (s->costs->one_store ? 1 : smaller(STEPS_MOST_STORES, all)); count++) {
        int64_t most = count == 1 ? all : all / count;
        for (int64_t last = count == 1 ? all : 1; last <= most; last++) {
            if (!share_stores(s->costs, o, count, last * together))
                continue;
            o->cycles = end(s, o);
            if (best->cycles == 0 || o->cycles < best->cycles)
                *best = *o;
        }
    }
}

steps_order steps_best_order(const steps_costs *c)
{
    steps_order best = {0}, o = {.steps = c->steps, .at_once = c->at_once, .halves_apart = c->halves_apart};
    steps_schedule s = {.costs = c};
    for (int64_t first = 1; first <= o.steps; first++)
        for (int64_t second = 0; second <= o.steps - first; second++)
            for (o.by_main = 0; o.by_main <= o.steps / 2; o.by_main++) {
                o.copied[0] = first;
                o.copied[1] = second;
                o.copied[2] = o.steps - first - second;
                if (!is_one_piece(c, 0, first) || !is_one_piece(c, first, second) || !is_one_piece(c, first + second, o.copied[2]))
                    continue;
                begin(&s, &o);
                int64_t left = STEPS_HALVES * o.steps - s.early_steps, later = STEPS_HALVES * o.steps * c->later;
                if (best.cycles == 0 || s.main + left * c->products + later < best.cycles)
                    try_stores(&s, &o, &best);
            }
    return best;
}
