/* How far the live positions of a stream reach together in the buffer.
 *
 * Rule. The loops that land on one digit, or on a group of digits, add up there: an iteration of loop k adds gain_k. A counter's loops
 * are the digits of one number in a mixed radix, and of that number only the first values are live. So the farthest that a counter
 * reaches is the largest sum of digit_k * gain_k over the live numbers, which may be less than all digits at their largest: of 26 values
 * in 7 digits of 4 the last is 6, 1 and not 6, 3. Counters move independently, so their maxima add. The stream digits of one axis are one
 * counter: the coordinates that they make together are live below the axis's size, and each digit's own below its count.
 *
 * The largest sum under such limits is found from the outermost loop inwards. As long as all digits so far are those of the last live
 * number, the next is at most its digit there; one that is lower frees all inside it. No gain is negative, so among the lower ones the
 * highest is the best, and the sums worth keeping are those of the bound and of the free: the cost is in the number of loops, whatever
 * their sizes. */
#include "ir/sequence/derivation.h"
#include "support/integer.h"

enum { FREE, BOUND }; /* may the digits inside be anything, or at most those of the last value? */

/* sum + digit * gain, which no limit distinguishes beyond MAPPING_MAX_SIZE. */
static int64_t plus(int64_t sum, int64_t digit, int64_t gain)
{
    int64_t more;
    return __builtin_mul_overflow(digit, gain, &more) || __builtin_add_overflow(sum, more, &sum) ? MAPPING_MAX_SIZE
                                                                                                 : smaller(sum, MAPPING_MAX_SIZE);
}

static void keep_larger(int64_t *kept, int64_t value)
{
    *kept = value > *kept ? value : *kept;
}

int64_t loops_reach(const counted_loop *loops, size_t count, int64_t last)
{
    /* By whether `last` binds and whether the stream digit's own last value does; -1: there is no such number. */
    int64_t sum[2][2] = {{-1, -1}, {-1, 0}}, own = 0, best = 0;
    for (size_t k = 0; k < count; k++) {
        const counted_loop *l = &loops[k];
        int64_t next[2][2] = {{-1, -1}, {-1, -1}};
        if (l->opens) {
            own = l->last;
            for (int a = FREE; a <= BOUND; a++) {
                keep_larger(&sum[a][BOUND], sum[a][FREE]);
                sum[a][FREE] = -1;
            }
        }
        for (int a = FREE; a <= BOUND; a++)
            for (int f = FREE; f <= BOUND; f++) {
                int64_t most = smaller(l->most, smaller(a ? last / l->step : l->most, f ? own / l->step : l->most));
                for (int64_t digit = most; sum[a][f] >= 0 && digit >= 0 && digit >= most - 1; digit--)
                    keep_larger(&next[a && digit == last / l->step][f && digit == own / l->step], plus(sum[a][f], digit, l->gain));
            }
        last %= l->step;
        own %= l->step;
        for (int a = FREE; a <= BOUND; a++)
            for (int f = FREE; f <= BOUND; f++)
                sum[a][f] = next[a][f];
    }
    for (int a = FREE; a <= BOUND; a++)
        for (int f = FREE; f <= BOUND; f++)
            keep_larger(&best, sum[a][f]);
    return best;
}

/* ---- the loops of a derivation ---- */

/* Digits low .. high of the buffer, counted in positions; or one of them in its values. */
typedef struct target {
    const piece *low, *high;
    bool positions;
} target;

static bool is_inside(const target *t, const piece *p)
{
    return p >= t->low && p <= t->high;
}

/* What an iteration of the loop adds in the target; 0: nothing. Where all of a run of digits is in the target, it counts as the run, else
 * digit by digit. */
static int64_t gain_in(const landing *l, const target *t)
{
    bool as_run = l->run && t->positions && is_inside(t, l->run->low) && is_inside(t, l->run->high);
    if (!is_inside(t, l->piece) || (l->run && as_run != (l->run_step > 0)))
        return 0;
    return as_run ? l->run_step : l->digits * (t->positions ? l->piece->stride : 1);
}

/* Do the two belong to one counter? A digit of a run, which is counted through as a whole, is one of its own. */
static bool is_same_counter(const landing *x, const landing *y)
{
    bool alone = (x->run && x->run_step == 0) || (y->run && y->run_step == 0);
    if (alone || x->of->kind != y->of->kind)
        return x == y;
    return x->of->kind == FACTOR_AXIS ? x->of->axis == y->of->axis : x->digit == y->digit;
}

/* Adds a loop, the outermost first; what one loop adds in several places is one gain. */
static size_t list_loop(counted_loop *loops, size_t count, const landing *l, int64_t gain)
{
    size_t at = count;
    for (size_t i = 0; i < count; i++)
        if (loops[i].digit == l->digit && loops[i].step == l->weight) {
            loops[i].gain += gain;
            loops[i].most = smaller(loops[i].most, l->live - 1);
            return count;
        }
    for (; at > 0 && loops[at - 1].step < l->weight; at--)
        loops[at] = loops[at - 1];
    loops[at] =
        (counted_loop){.step = l->weight, .most = l->live - 1, .gain = gain, .last = (l->of->live - 1) * l->of->weight, .digit = l->digit};
    return count + 1;
}

/* The farthest of the counter that landing `first` belongs to. */
static int64_t counter_reach(const derivation *d, size_t first, const target *t)
{
    const landing *x = &d->landings[first];
    counted_loop *loops = ARENA_ARRAY(d->scratch, counted_loop, d->landing_count);
    size_t count = 0;
    for (size_t i = first; i < d->landing_count; i++) {
        int64_t gain = gain_in(&d->landings[i], t);
        if (gain > 0 && is_same_counter(x, &d->landings[i]))
            count = list_loop(loops, count, &d->landings[i], gain);
    }
    for (size_t i = 0; i < count; i++)
        loops[i].opens = i == 0 || loops[i].digit != loops[i - 1].digit;
    if (x->run && x->run_step == 0)
        return (x->live - 1) * loops[0].gain;
    return loops_reach(loops, count, x->of->kind == FACTOR_AXIS ? x->of->axis->size - 1 : loops[0].last);
}

static int64_t target_reach(const derivation *d, const target *t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < d->landing_count; i++) {
        bool first = gain_in(&d->landings[i], t) > 0;
        for (size_t k = 0; k < i && first; k++)
            first = !(gain_in(&d->landings[k], t) > 0 && is_same_counter(&d->landings[k], &d->landings[i]));
        if (first)
            sum = plus(sum, 1, counter_reach(d, i, t));
    }
    return sum;
}

int64_t derivation_reach(const derivation *d, const piece *p)
{
    return target_reach(d, &(target){p, p, false});
}

int64_t derivation_group_reach(const derivation *d, const piece *atom)
{
    return atom->parts == 0 ? 0 : target_reach(d, &(target){atom - atom->parts, atom - 1, true});
}
