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

typedef struct streaks {
    int64_t now[BANKS], longest;
} streaks;

static void touch(streaks *s, unsigned banks)
{
    for (int b = 0; b < BANKS; b++) {
        s->now[b] = banks >> b & 1 ? s->now[b] + 1 : 0;
        s->longest = s->now[b] > s->longest ? s->now[b] : s->longest;
    }
}

int64_t dm_bank_streak(const target *t, const command *c, int64_t enough)
{
    bool fetches = c->op == OP_FETCH;
    int64_t bits = dtype_row_of((dtype)command_get(c, fetches ? FETCH_DTYPE_IN : COMMIT_DTYPE))->bits;
    int64_t bytes = command_get(c, fetches ? FETCH_ACCESS_BYTES : COMMIT_BYTES), base = command_get(c, fetches ? FETCH_BASE : COMMIT_BASE);
    int64_t each = bytes * 8 / bits, positions; /* elements of an access */
    walk w = {.count = c->entry_count};
    for (unsigned i = 0; i < c->entry_count; i++) {
        w.size[i] = command_entry(c, i, fetches ? FETCH_ENTRY_SIZE : COMMIT_ENTRY_SIZE);
        w.stride[i] = command_entry(c, i, fetches ? FETCH_ENTRY_STRIDE : COMMIT_ENTRY_STRIDE);
    }
    walk_address low, high;
    walk_bounds(&w, &low, &high);
    if (!walk_positions(&w, &positions) || low < -(1 << 24) || high > 1 << 24)
        return 0; /* outside the DM: the run says what is wrong with it */
    walk_cursor at;
    walk_start(&w, &at);
    streaks s = {0};
    for (int64_t i = 0, done = 0; i < positions && done < MOST_ACCESSES && s.longest < enough; i++) {
        int64_t address = base + walk_step(&w, &at) * bits / 8;
        if (i % (each ? each : 1) != 0)
            continue;
        touch(&s, address < 0 ? 0 : banks_of(t, address, bytes));
        done++;
    }
    return s.longest < enough ? s.longest : enough;
}
