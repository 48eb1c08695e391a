#include "runtime/timing/known_costs.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/machine/walk.h"
#include "runtime/timing/dm_bank.h"
#include "support/budget.h"

enum { COPY_HEAD = 12, COPY_LOOP = 4 /* numbers each */ };
/* Of dma_cost_of in the time of one step of work. */
enum { LOOKS_OF_A_STEP = 32 };

typedef struct copy_answer {
    bool counts;     /* false: too many steps */
    uint64_t kernel; /* that asked for it last */
    dma_cost cost;
} copy_answer;

known_costs *known_costs_new(const target *t, arena *a)
{
    uint64_t steps = arena_budget(a)->steps;
    known_costs *known = ARENA_NEW(a, known_costs);
    *known = (known_costs){t, a, memo_new(a, sizeof(copy_answer)), memo_new(a, sizeof(int64_t)), 1};
    arena_budget(a)->steps = steps;
    return known;
}

static void *find(const known_costs *known, memo *m, const int64_t *key, size_t count, bool *is_new)
{
    uint64_t steps = arena_budget(known->arena)->steps;
    void *answer = memo_find(m, key, count, is_new);
    arena_budget(known->arena)->steps = steps;
    return answer;
}

void known_costs_begin(known_costs *known)
{
    known->kernel++;
}

size_t known_costs_count(const known_costs *known)
{
    return memo_count(known->copies) + memo_count(known->streaks);
}

/* An address from which the walk of a side touches the same slices as from its own: where no step leaves the slice that its outer loops
 * choose, the one with which the walk reaches down to the slice's first byte. */
static int64_t base_of(const target *t, const copy_command *k, const copy_side *s)
{
    int64_t slice = t->dm_slice_stride_bytes;
    walk inside = {.base = s->base % slice};
    for (unsigned i = 0; i < k->count; i++)
        if (s->stride[i] % slice != 0) {
            inside.size[inside.count] = k->size[i];
            inside.stride[inside.count++] = s->stride[i];
        }
    walk_address low, high;
    walk_bounds(&inside, &low, &high);
    return s->memory != COPY_DM || s->moved || s->base < 0 || low < 0 || high >= slice ? s->base : s->base - (int64_t)low;
}

bool known_copy_cost(known_costs *known, const command *c, dma_cost *out)
{
    copy_command k = copy_command_read(c);
    int64_t from = base_of(known->target, &k, &k.source), to = base_of(known->target, &k, &k.destination);
    int64_t key[COPY_HEAD + COPY_LOOP * COPY_MAX_ENTRIES] = {
        k.by_index, k.packet_bytes,      k.source.memory, from,        k.source.moved, k.destination.memory,
        to,         k.destination.moved, k.list.base,     k.positions, k.stride,       k.count};
    size_t count = COPY_HEAD;
    for (unsigned i = 0; i < k.count; i++) {
        int64_t loop[COPY_LOOP] = {k.size[i], k.source.stride[i], k.destination.stride[i], k.list.stride[i]};
        memcpy(&key[count], loop, sizeof loop);
        count += COPY_LOOP;
    }
    bool is_new;
    copy_answer *answer = find(known, known->copies, key, count, &is_new);
    if (is_new)
        answer->counts = dma_cost_of(known->target, c, &answer->cost);
    if (answer->kernel != known->kernel) {
        answer->kernel = known->kernel;
        budget_spend(known->arena, (uint64_t)answer->cost.looks / LOOKS_OF_A_STEP);
    }
    *out = answer->cost;
    return answer->counts;
}

int64_t known_bank_streak(known_costs *known, const command *c)
{
    int64_t key[DM_BANK_KEY];
    bool is_new;
    int64_t *answer = find(known, known->streaks, key, dm_bank_key(known->target, c, key), &is_new);
    if (is_new)
        *answer = dm_bank_streak(known->target, c, known->target->dm_starving_accesses);
    return *answer;
}
