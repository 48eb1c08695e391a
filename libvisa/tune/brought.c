#include "libvisa/tune/brought.h"

#include "libvisa/tune/machine.h"
#include "runtime/timing/hbm_address.h"
#include "support/integer.h"

int64_t tune_rows_of_blocks(const target *t, const tune_question *q)
{
    int64_t rows = 1, bytes = tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]);
    while (rows < t->hbm_block_bytes && rows * bytes % t->hbm_block_bytes != 0)
        rows *= 2;
    return rows;
}

tune_role tune_brought_role(const tune_question *q, const tune_plan *p)
{
    return q->size[TUNE_BATCH] > p->split[TUNE_BATCH].loop ? TUNE_BATCH : TUNE_ROW;
}

int64_t tune_brought_bytes(const tune_question *q, tune_role role)
{
    return tune_bytes_of(q->out_type, q->size[TUNE_COLUMN] * (role == TUNE_BATCH ? q->size[TUNE_ROW] : 1));
}

tune_split tune_brought_split(const tune_question *q, const tune_plan *p)
{
    tune_role role = tune_brought_role(q, p);
    int64_t loop = p->split[role].loop, clusters = p->brought_clusters,
            slices = power_of_two_above(ceil_div(q->size[role] / loop, clusters * p->brought));
    return (tune_split){
        .padded = loop * clusters * slices * p->brought, .loop = loop, .cluster = clusters, .slice = slices, .tile = p->brought};
}

/* Blocks of HBM that pieces of a tensor end and the next ones begin inside are written in part, twice: as long as the busiest channel has
 * some. Of a slice's run pieces are packets, which are alike: the first ones are followed, and what comes after them is in proportion. */
static int64_t partial_cycles(const target *t, memo *known, int64_t run, int64_t all)
{
    enum { FOLLOWED_PIECES = 4096 };
    int64_t block = t->hbm_block_bytes, writes[32] = {0}, most = 0, each = tune_partial_block_cycles(t);
    if (run % block == 0)
        return all % block == 0 ? 0 : each;
    int64_t key[] = {largest_divisor(run, t->dma_packet_max_bytes), all}, piece = key[0];
    bool is_new;
    int64_t *cycles = memo_find(known, key, sizeof key / sizeof *key, &is_new);
    if (!is_new)
        return *cycles;
    int64_t pieces = ceil_div(all, piece), followed = smaller(pieces, FOLLOWED_PIECES);
    for (int64_t i = 1; i <= followed; i++) {
        int64_t at = smaller(all, i * piece);
        unsigned channel = hbm_channel_of(at) & 31;
        writes[channel] += at % block == 0 ? 0 : at < all ? 2 : 1;
        most = larger(most, writes[channel]);
    }
    *cycles = most * pieces / followed * each;
    return *cycles;
}

/* The copies that write so many positions, in slices that have `each` of them, and bring them there; as far as the slices are chosen, and
 * but for blocks that are written in part. */
static int64_t cycles_of_whole(const target *t, const tune_question *q, tune_role role, int64_t count, int64_t each, int64_t clusters)
{
    int64_t bytes = tune_brought_bytes(q, role), engines = tune_dmns_of(t) / t->dma_dmns_per_engine, parts = ceil_div(count, each),
            of_cluster = ceil_div(parts, clusters), rest = parts > 1 && count % each != 0 ? 2 * t->dma_startup_cycles : 0,
            whole = count / each, slices = power_of_two_above(of_cluster);
    if (whole > slices && whole < clusters * slices)
        rest += 2 * t->dma_startup_cycles;
    return rest + ceil_div(of_cluster, engines) * ceil_div(each * bytes, t->hbm_block_bytes) +
           ceil_div(of_cluster, tune_dmns_of(t)) * ceil_div(each * bytes, t->dmn_bytes_per_cycle);
}

int64_t tune_whole_store_cycles(const target *t, const tune_question *q, const tune_plan *p)
{
    tune_role role = tune_brought_role(q, p);
    int64_t count = q->size[role] / p->split[role].loop;
    return tune_start_cycles(t, q) + cycles_of_whole(t, q, role, count, p->brought, p->brought_clusters) + p->brought_partial;
}

/* Positions that slices could write each, and the best of them up to here. */
typedef struct brought_choice {
    tune_role role;
    int64_t count, of_cluster; /* positions; of each cluster where it ends inside its slices, or 0 */
    int64_t most_clusters, most_slices;
    memo *partials;
    int64_t best, clusters, partial, least;
} brought_choice;

/* A copy cuts rows where clusters end, too. */
static void take_if_better(const target *t, const tune_question *q, brought_choice *x, int64_t each)
{
    each = smaller(each, x->count);
    if (x->of_cluster > 0 && x->of_cluster % each != 0 && each % x->of_cluster != 0)
        return;
    int64_t partial = -1; /* the same for all clusters, and not known before it decides */
    for (int64_t clusters = 1; clusters <= x->most_clusters; clusters *= 2) {
        int64_t cycles = cycles_of_whole(t, q, x->role, x->count, each, clusters);
        if (cycles >= x->least || ceil_div(ceil_div(x->count, each), clusters) > x->most_slices)
            continue;
        int64_t bytes = tune_brought_bytes(q, x->role);
        partial = partial >= 0 ? partial : partial_cycles(t, x->partials, each * bytes, x->count * bytes);
        cycles += partial;
        if (cycles < x->least) {
            x->best = each;
            x->clusters = clusters;
            x->partial = partial;
            x->least = cycles;
        }
    }
}

brought_memo brought_memo_new(arena *a)
{
    return (brought_memo){memo_new(a, sizeof(brought_choice)), memo_new(a, sizeof(int64_t))};
}

/* What the search for a choice begins with, or what it found before. */
static brought_choice *choice_of(brought_memo *known, const brought_choice *x, int64_t tile, bool *is_new)
{
    int64_t key[] = {(int64_t)x->role, x->count, x->of_cluster, x->most_clusters, tile};
    brought_choice *found = memo_find(known->choices, key, sizeof key / sizeof *key, is_new);
    if (*is_new)
        *found = *x;
    return found;
}

void tune_bring_together(const target *t, const tune_question *q, brought_memo *known, tune_plan *p)
{
    enum { WORD_BYTES = 8 };
    p->brought = 0;
    if (q->tensors[TUNE_OUT].is_free) /* what a slice has is written where it lies */
        return;
    tune_role role = tune_brought_role(q, p);
    const tune_split *s = &p->split[role];
    int64_t count = q->size[role] / s->loop, together = 1;
    brought_choice x = {.role = role,
                        .count = count,
                        .of_cluster = s->cluster > 1 && tune_pads_inside(s, q->size[role]) ? count / s->cluster : 0,
                        .most_clusters = s->loop == 1 ? t->clusters_per_chip : 1,
                        .most_slices = tune_slices_of(t, q->most_slices),
                        .partials = known->partials,
                        .least = INT64_MAX};
    if (tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]) % WORD_BYTES != 0 || (role == TUNE_BATCH && p->split[TUNE_ROW].loop > 1))
        return;
    while (together < t->hbm_block_bytes && together * tune_brought_bytes(q, role) % t->hbm_block_bytes != 0)
        together *= 2;
    /* a copy cuts rows where slices do: those that have whole tiles of them, or whole parts of one */
    int64_t tile = role == TUNE_ROW ? p->split[TUNE_ROW].tile : 1, fewest = ceil_div(count, x.most_slices);
    bool is_new;
    brought_choice *found = choice_of(known, &x, tile, &is_new);
    for (int64_t parts = tile / fewest; is_new && parts > 1; parts--)
        if (tile % parts == 0)
            take_if_better(t, q, found, tile / parts);
    for (int64_t parts = smaller(ceil_div(count, tile), x.most_slices); is_new && parts >= 1; parts--) {
        int64_t each = tile * ceil_div(ceil_div(count, tile), parts);
        take_if_better(t, q, found, each);
        take_if_better(t, q, found, round_up(each, together % tile == 0 ? together : tile * together));
    }
    p->brought = found->best * tune_brought_bytes(q, role) > t->dm_bytes_per_slice / 2 ? 0 : found->best;
    p->brought_clusters = found->clusters;
    p->brought_partial = found->partial;
}
