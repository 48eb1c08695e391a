#include "runtime/timing/dm_bank.h"

#include "runtime/machine/walk.h"

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

int64_t dm_bank_streak(const target *t, const command *c, int64_t enough)
{
    accesses of = accesses_of(c);
    walk w = of.walk;
    int64_t bits = of.bits, bytes = of.bytes, base = of.base, positions;
    int64_t each = bytes * 8 / bits; /* elements of an access */
    walk_address low, high;
    walk_bounds(&w, &low, &high);
    if (!walk_positions(&w, &positions) || low < -(1 << 24) || high > 1 << 24)
        return 0; /* outside the DM: the run says what is wrong with it */
    walk_merge(&w);
    int64_t skipped = each > 1 ? each : 1, *inner = &w.size[w.count - 1]; /* steps from the first element of an access to the next */
    if (*inner % skipped == 0) {
        *inner /= skipped;
        w.stride[w.count - 1] *= skipped;
        positions /= skipped;
        skipped = 1;
    }
    walk_cursor at;
    walk_start(&w, &at);
    streaks s = {0};
    for (int64_t i = 0, done = 0; i < positions && done < MOST_ACCESSES && longest(&s) < enough; i++) {
        int64_t address = base + walk_step(&w, &at) * bits / 8;
        if (skipped > 1 && i % skipped != 0)
            continue;
        touch(&s, address < 0 ? 0 : banks_of(t, address, bytes));
        done++;
    }
    return longest(&s) < enough ? longest(&s) : enough;
}
