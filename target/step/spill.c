#include "target/step/spill.h"

#include "support/order.h"

__extension__ typedef unsigned __int128 wide;

/* Everything that is done to the memory of one operator. */
typedef struct claim {
    uint32_t index;
    bool stays;
    int64_t bytes, accesses;
} claim;

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Those that stay, then those with more accesses for each byte, then in the order of the graph. */
static int by_need(const void *a, const void *b)
{
    const claim *x = a, *y = b;
    wide left = (wide)x->accesses * (wide)y->bytes, right = (wide)y->accesses * (wide)x->bytes;
    return order_then(ORDER(y->stays, x->stays), order_then(ORDER(right, left), ORDER(x->index, y->index)));
}

int64_t step_spill_share_out(step_spill *operators, uint32_t count, int64_t capacity, arena *a)
{
    claim *claims = ARENA_ARRAY(a, claim, count + 1);
    int64_t left = capacity, spilled = 0;
    uint32_t wanting = 0;
    for (uint32_t i = 0; i < count; i++)
        claims[i] = (claim){i, operators[i].stays, operators[i].bytes, 0};
    for (uint32_t i = 0; i < count; i++)
        claims[operators[i].owner].accesses = sum_of(claims[operators[i].owner].accesses, operators[i].accesses);
    for (uint32_t i = 0; i < count; i++) /* the order holds only among those that want something */
        if (claims[i].bytes > 0)
            claims[wanting++] = claims[i];
    order_sort(claims, wanting, sizeof *claims, by_need);
    for (uint32_t i = 0; i < wanting; i++) {
        const claim *c = &claims[i];
        int64_t kept = c->bytes < left ? c->bytes : left;
        left -= kept;
        operators[c->index].spilled = c->stays ? 0 : c->bytes - kept;
        spilled = sum_of(spilled, operators[c->index].spilled);
    }
    return spilled;
}

int64_t step_spill_moved(const step_spill *owner, int64_t accesses)
{
    if (owner->spilled == 0)
        return 0;
    return (int64_t)(((wide)accesses * (wide)owner->spilled + (wide)owner->bytes - 1) / (wide)owner->bytes);
}
