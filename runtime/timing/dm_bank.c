#include "runtime/timing/dm_bank.h"

#include "runtime/machine/walk.h"
#include "support/integer.h"

enum { MOST_ACCESSES = 1 << 18, BANKS = 16 };

/* The banks that `bytes` from `address` on touch, one bit each. */
static unsigned banks_of(const target *t, int64_t address, int64_t bytes)
{
    unsigned banks = 0;
    for (int64_t at = address / t->dm_bank_bytes; at <= (address + bytes - 1) / t->dm_bank_bytes; at++)
        banks |= 1u << (at % BANKS);
    return banks;
}

/* Accesses one after the other that touch a bank. */
typedef struct streaks {
    int64_t count;         /* accesses so far */
    unsigned banks;        /* of the last one */
    int64_t begin[BANKS];  /* of a bank of the last one: the first access of its streak */
    int64_t first;         /* the least of these */
    int64_t longest_ended; /* accesses of the longest streak that has an end */
} streaks;

static void touch(streaks *s, unsigned banks)
{
    if (banks != s->banks) {
        int64_t last = s->banks ? s->count - s->first : 0;
        s->longest_ended = last > s->longest_ended ? last : s->longest_ended;
        for (unsigned begun = banks & ~s->banks; begun; begun &= begun - 1)
            s->begin[__builtin_ctz(begun)] = s->count;
        s->first = s->count;
        for (unsigned left = banks & s->banks; left; left &= left - 1) {
            int64_t begin = s->begin[__builtin_ctz(left)];
            s->first = begin < s->first ? begin : s->first;
        }
        s->banks = banks;
    }
    s->count++;
}

static int64_t longest(const streaks *s)
{
    int64_t last = s->banks ? s->count - s->first : 0;
    return last > s->longest_ended ? last : s->longest_ended;
}

/* What a fetch or a commit touches. */
typedef struct accesses {
    int64_t bits, bytes, base; /* of an element; of an access; of the first one */
    walk walk;                 /* elements */
} accesses;

static accesses accesses_of(const command *c)
{
    bool fetches = c->op == OP_FETCH;
    accesses all = {.bits = dtype_row_of((dtype)command_get(c, fetches ? FETCH_DTYPE_IN : COMMIT_DTYPE))->bits,
                    .bytes = command_get(c, fetches ? FETCH_ACCESS_BYTES : COMMIT_BYTES),
                    .base = command_get(c, fetches ? FETCH_BASE : COMMIT_BASE),
                    .walk = {.count = c->entry_count}};
    for (unsigned i = 0; i < c->entry_count; i++) {
        all.walk.size[i] = command_entry(c, i, fetches ? FETCH_ENTRY_SIZE : COMMIT_ENTRY_SIZE);
        all.walk.stride[i] = command_entry(c, i, fetches ? FETCH_ENTRY_STRIDE : COMMIT_ENTRY_STRIDE);
    }
    return all;
}

/* Of a walk that never goes below its beginning, only the bank in which it begins counts. */
size_t dm_bank_key(const target *t, const command *c, int64_t *key)
{
    accesses of = accesses_of(c);
    walk_address low, high;
    walk_bounds(&of.walk, &low, &high);
    int64_t head[] = {of.bits, of.bytes, low < 0 || of.base < 0 ? of.base : of.base % (BANKS * t->dm_bank_bytes), of.walk.count};
    size_t count = 0;
    for (; count < sizeof head / sizeof *head; count++)
        key[count] = head[count];
    for (unsigned i = 0; i < of.walk.count; i++) {
        key[count++] = of.walk.size[i];
        key[count++] = of.walk.stride[i];
    }
    return count;
}

/* ---- iterations that are counted instead of walked ---- */

/* What streaks go on from where a loop begins an iteration: the banks of the last access, and for how many accesses each has been touched.
 */
typedef struct outlook {
    bool is_known;
    unsigned banks;
    int64_t age[BANKS]; /* accesses, of those banks */
} outlook;

static outlook outlook_of(const streaks *s)
{
    outlook o = {true, s->banks, {0}};
    for (unsigned left = s->banks; left; left &= left - 1)
        o.age[__builtin_ctz(left)] = s->count - s->begin[__builtin_ctz(left)];
    return o;
}

static bool same_outlook(const outlook *a, const outlook *b)
{
    bool same = a->is_known && b->is_known && a->banks == b->banks;
    for (unsigned left = a->banks; left && same; left &= left - 1)
        same = a->age[__builtin_ctz(left)] == b->age[__builtin_ctz(left)];
    return same;
}

/* So many accesses more that leave the streaks as they are. */
static void pass_by(streaks *s, int64_t more)
{
    for (unsigned left = s->banks; left; left &= left - 1)
        s->begin[__builtin_ctz(left)] += more;
    s->first += more;
    s->count += more;
}

/* A walk under way. */
typedef struct bank_walk {
    walk walk;
    int64_t counter[WALK_MAX_LOOPS], each[WALK_MAX_LOOPS]; /* of a loop: iterations that are done; accesses in one */
    int64_t element;                                       /* from the first access */
    bool repeats[WALK_MAX_LOOPS];                          /* each iteration of the loop touches the banks that the one before it did */
    outlook before[WALK_MAX_LOOPS];                        /* the iteration of a loop that was begun last */
} bank_walk;

/* The loop that begins another iteration; -1: the walk has ended. */
static int next_access(bank_walk *b)
{
    const walk *w = &b->walk;
    for (unsigned i = w->count; i-- > 0;) {
        b->element += w->stride[i];
        if (++b->counter[i] < w->size[i])
            return (int)i;
        b->element -= w->stride[i] * w->size[i];
        b->counter[i] = 0;
        b->before[i].is_known = false;
    }
    return -1;
}

/* Accesses of `most` that need no walk: an iteration that begins as the one before it began ends as it did, and so do all that follow. The
 * last one is walked. */
static int64_t pass_by_iterations(bank_walk *b, unsigned loop, int64_t most, streaks *s)
{
    outlook now = outlook_of(s);
    bool same = same_outlook(&now, &b->before[loop]);
    b->before[loop] = now;
    int64_t iterations = same ? b->walk.size[loop] - 1 - b->counter[loop] : 0, possible = most / b->each[loop];
    iterations = smaller(iterations, possible);
    b->counter[loop] += iterations;
    b->element += iterations * b->walk.stride[loop];
    pass_by(s, iterations * b->each[loop]);
    return iterations * b->each[loop];
}

/* An innermost loop that comes back to its banks becomes two: once around them, and how often. */
static void split_innermost(walk *w, int64_t span)
{
    unsigned last = w->count - 1;
    int64_t stride = w->stride[last] < 0 ? -w->stride[last] : w->stride[last], around = span / gcd(span, stride);
    if (around == 1 || around >= w->size[last] || w->size[last] % around != 0 || w->count == WALK_MAX_LOOPS)
        return;
    w->size[w->count] = around;
    w->stride[w->count++] = w->stride[last];
    w->size[last] /= around;
    w->stride[last] *= around;
}

int64_t dm_bank_streak(const target *t, const command *c, int64_t enough)
{
    accesses of = accesses_of(c);
    bank_walk b = {.walk = of.walk};
    walk *w = &b.walk;
    int64_t bits = of.bits, bytes = of.bytes, base = of.base, positions;
    int64_t each = bytes * 8 / bits, span = BANKS * t->dm_bank_bytes * 8 / bits; /* elements of an access; of all banks */
    walk_address low, high;
    walk_bounds(w, &low, &high);
    if (!walk_positions(w, &positions) || low < -(1 << 24) || high > 1 << 24)
        return 0; /* outside the DM: the run says what is wrong with it */
    walk_merge(w);
    int64_t skipped = each > 1 ? each : 1, *inner = &w->size[w->count - 1]; /* steps from the first element of an access to the next */
    if (*inner % skipped == 0) {
        *inner /= skipped;
        w->stride[w->count - 1] *= skipped;
        skipped = 1;
    }
    bool counts = skipped == 1 && base + (int64_t)low * bits / 8 >= 0; /* what lies in front of the DM is in no bank */
    if (counts)
        split_innermost(w, span);
    int64_t inside = 1;
    for (unsigned i = w->count; i-- > 0; inside *= w->size[i]) {
        b.each[i] = inside;
        b.repeats[i] = counts && w->stride[i] % span == 0;
    }
    streaks s = {0};
    int moved = 0;
    for (int64_t i = 0, done = 0; moved >= 0 && done < MOST_ACCESSES && longest(&s) < enough; i++) {
        if (i % skipped == 0) {
            int64_t address = base + b.element * bits / 8;
            touch(&s, address < 0 ? 0 : banks_of(t, address, bytes));
            done++;
        }
        moved = next_access(&b);
        if (moved >= 0 && b.repeats[moved])
            done += pass_by_iterations(&b, (unsigned)moved, MOST_ACCESSES - done, &s);
    }
    return longest(&s) < enough ? longest(&s) : enough;
}
