#include "runtime/timing/dma_cost.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/machine/walk.h"
#include "runtime/timing/hbm_address.h"
#include "support/integer.h"
#include "support/size_divisor.h"

enum { MOST_STEPS_LOG2 = 40, WALKED_STEPS = 1 << 20, CHIPS = 4, CHANNELS = 32 * CHIPS, DMNS = 64, ELEMENT_BYTES = 4 };

typedef struct tally {
    const target *target;
    size_divisor chip, block, burst;         /* bytes of HBM */
    size_divisor slice, slices_per_dmn;      /* bytes of DM; slices */
    size_divisor slices_per_cluster, dms;    /* slices; bytes of DM in a chip */
    size_divisor dmn_bytes, dmns_per_engine; /* a cycle; */
    int64_t burst_millicycles, row_millicycles, partial_millicycles;
    int64_t channel_millicycles[CHANNELS];
    int64_t dmn_cycles[DMNS];
    int64_t engine_steps[DMNS];      /* fewer engines than DMNs */
    int64_t link_bytes[CHIPS];       /* that come from another chip */
    uint16_t (*open_row)[HBM_BANKS]; /* of each channel, of 2^15: plus 1; 0: none yet */
    bool knows_rows[CHIPS];          /* those of a chip that no step touched hold nothing */
    int64_t partial_writes;
    uint64_t clusters; /* one bit each */
} tally;

static tally tally_for(const target *k)
{
    return (tally){.target = k,
                   .chip = size_divisor_of(k->hbm_chip_stride_bytes),
                   .block = size_divisor_of(k->hbm_block_bytes),
                   .burst = size_divisor_of(k->hbm_burst_bytes),
                   .slice = size_divisor_of(k->dm_slice_stride_bytes),
                   .slices_per_dmn = size_divisor_of(k->dm_slices_per_dmn),
                   .slices_per_cluster = size_divisor_of(k->slices_per_cluster),
                   .dms = size_divisor_of(k->slices_per_cluster * k->clusters_per_chip * k->dm_slice_stride_bytes),
                   .dmn_bytes = size_divisor_of(k->dmn_bytes_per_cycle),
                   .dmns_per_engine = size_divisor_of(k->dma_dmns_per_engine),
                   .burst_millicycles = k->hbm_burst_millicycles,
                   .row_millicycles = k->hbm_row_switch_cycles * 1000,
                   .partial_millicycles = k->hbm_block_bytes / k->hbm_burst_bytes * k->hbm_burst_millicycles * k->hbm_partial_write_factor};
}

/* A part of a packet in one block of a chip costs so much where its bank's row is open, or is the bank's first. */
static int64_t block_cost(tally *t, int64_t bytes, bool write)
{
    if (!write || bytes == t->block.value)
        return size_quotient(bytes + t->burst.value - 1, t->burst) * t->burst_millicycles;
    t->partial_writes++;
    return t->partial_millicycles;
}

/* Another row than the bank's open one: the chip's channels go on from there. */
static void touch_block(int64_t *sums, uint16_t (*open_rows)[HBM_BANKS], int64_t in_chip, int64_t cost, int64_t cost_of_other_row)
{
    uint16_t row = (uint16_t)((in_chip >> HBM_ROW_BIT) + 1);
    unsigned channel = hbm_channel_of(in_chip);
    uint16_t *open = &open_rows[channel][hbm_bank_of(in_chip)];
    sums[channel] += *open && *open != row ? cost_of_other_row : cost;
    *open = row;
}

/* The part of a packet that lies in one chip. */
static void touch_chip(tally *t, int64_t number, int64_t in_chip, int64_t bytes, bool write)
{
    int64_t chip = number & (CHIPS - 1), first = chip * (CHANNELS / CHIPS), full = block_cost(t, t->block.value, write);
    int64_t *sums = &t->channel_millicycles[first];
    uint16_t(*open_rows)[HBM_BANKS] = &t->open_row[first];
    if (!t->knows_rows[chip])
        memset(open_rows, 0, CHANNELS / CHIPS * sizeof *open_rows);
    t->knows_rows[chip] = true;
    for (int64_t end = in_chip + bytes; in_chip < end;) {
        int64_t here = smaller(t->block.value - size_rest(in_chip, t->block), end - in_chip);
        bool in_part = here < t->block.value;
        int64_t cost = in_part ? block_cost(t, here, write) : full;
        touch_block(sums, open_rows, in_chip, cost, in_part && write ? cost : t->row_millicycles);
        in_chip += here;
    }
}

static void touch_hbm(tally *t, int64_t address, int64_t bytes, bool write)
{
    while (bytes > 0) {
        int64_t in_chip = size_rest(address, t->chip), here = smaller(t->chip.value - in_chip, bytes);
        touch_chip(t, size_quotient(address, t->chip), in_chip, here, write);
        address += here;
        bytes -= here;
    }
}

static int64_t dmn_of(const tally *t, int64_t address)
{
    return size_quotient(size_quotient(address, t->slice), t->slices_per_dmn) & (DMNS - 1);
}

static void touch_dm(tally *t, int64_t address, int64_t bytes)
{
    t->clusters |= UINT64_C(1) << (size_quotient(size_quotient(address, t->slice), t->slices_per_cluster) & 63);
    t->dmn_cycles[dmn_of(t, address)] += size_quotient(bytes + t->dmn_bytes.value - 1, t->dmn_bytes);
}

typedef struct side {
    bool hbm, write;
    int64_t address, next; /* of this step; where the last one ended */
} side;

static void touch(tally *t, const side *s, int64_t bytes)
{
    if (s->hbm)
        touch_hbm(t, s->address, bytes, s->write);
    else
        touch_dm(t, s->address, bytes);
}

static int64_t chip_of(const tally *t, const side *s)
{
    return size_quotient(s->address, s->hbm ? t->chip : t->dms) & (CHIPS - 1);
}

/* The engine of a step is that of its end in DM, of two such ends the source's; of a copy inside HBM, the first one of the chip that it is
 * read from. */
static void count_step(tally *t, const side *from, const side *to, int64_t bytes)
{
    const target *k = t->target;
    const side *dm = from && !from->hbm ? from : to->hbm ? NULL : to;
    int64_t dmn =
        dm ? dmn_of(t, dm->address) : chip_of(t, from ? from : to) * (k->slices_per_cluster / k->dm_slices_per_dmn * k->clusters_per_chip);
    t->engine_steps[size_quotient(dmn, t->dmns_per_engine)]++;
    if (from && chip_of(t, from) != chip_of(t, to))
        t->link_bytes[chip_of(t, to)] += bytes;
}

static int64_t most_of(const int64_t *values, int count)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static int64_t in_proportion(int64_t value, int64_t steps, int64_t walked)
{
    return steps == walked || walked == 0 ? value : (int64_t)((__int128)value * steps / walked);
}

/* Nobody knows the list: the rows are taken as if they followed each other. */
static int64_t moved_by(const copy_command *k, int64_t list_address)
{
    int64_t element = (list_address - k->list.base) / ELEMENT_BYTES;
    return (element % k->positions + k->positions) % k->positions * k->stride;
}

/* Which loops repeat the source in other slices of a cluster, and which spread it over them. */
static void count_copies(const target *t, const walk *from, const walk *to, dma_cost *out)
{
    int64_t repeats = 0, spreads = 0; /* longest steps, in slices */
    out->copies = 1;
    for (unsigned i = 0; i < from->count; i++) {
        int64_t slices = (to->stride[i] < 0 ? -to->stride[i] : to->stride[i]) / t->dm_slice_stride_bytes;
        if (from->size[i] <= 1 || slices == 0 || slices >= t->slices_per_cluster)
            continue;
        int64_t *longest = from->stride[i] == 0 ? &repeats : &spreads;
        if (from->stride[i] == 0)
            out->copies *= from->size[i]; /* no more than steps */
        *longest = slices > *longest ? slices : *longest;
    }
    out->spreads = spreads > 0;
    out->copies_inside = repeats < spreads;
}

/* A walk that leaves every memory is not followed: the run says what is wrong with it. */
static bool inside(const walk *w)
{
    walk_address low, high;
    walk_bounds(w, &low, &high);
    return low >= 0 && high < (walk_address)1 << 48;
}

static void walk_steps(const copy_command *k, dma_cost *out, tally *t)
{
    const copy_side *of[2] = {&k->source, &k->destination};
    walk walks[2] = {walk_of_copy(k, &k->source), walk_of_copy(k, &k->destination)}, list = walk_of_copy(k, &k->list);
    walk_cursor cursors[2], at;
    side sides[2] = {{.hbm = k->source.memory == COPY_HBM}, {.hbm = k->destination.memory == COPY_HBM, .write = true}};
    int64_t bytes = k->packet_bytes;
    int first = k->source.memory == COPY_NONE;
    if (!first && !k->by_index)
        count_copies(t->target, &walks[0], &walks[1], out);
    else
        out->copies = 1;
    out->to_dm = !sides[1].hbm;
    if (!inside(&walks[0]) || !inside(&walks[1]))
        out->walked = 0;
    const side *hbm = sides[0].hbm ? &sides[0] : sides[1].hbm ? &sides[1] : NULL;
    for (int i = 0; i < 2; i++)
        walk_start(&walks[i], &cursors[i]);
    walk_start(&list, &at);
    for (int64_t step = 0; step < out->walked; step++) {
        bool follows = step > 0;
        int64_t moved = k->by_index ? moved_by(k, walk_step(&list, &at)) : 0;
        for (int i = first; i < 2; i++) {
            sides[i].address = walk_step(&walks[i], &cursors[i]) + (of[i]->moved ? moved : 0);
            follows = follows && sides[i].address == sides[i].next;
            touch(t, &sides[i], bytes);
            sides[i].next = sides[i].address + bytes;
        }
        count_step(t, first ? NULL : &sides[0], &sides[1], bytes);
        out->pieces += !follows;
        out->unaligned_pieces += !follows && hbm && hbm->address % t->target->hbm_block_bytes != 0;
    }
    if (hbm && out->pieces > 0)
        out->piece_bytes = bytes * (out->walked / out->pieces);
}

bool dma_cost_of(const target *t, const command *c, dma_cost *out)
{
    copy_command k = copy_command_read(c);
    uint16_t open_row[CHANNELS][HBM_BANKS]; /* not filled before it is needed: it is larger than all else that a short copy takes */
    tally sums = tally_for(t);
    sums.open_row = open_row;
    *out = (dma_cost){.steps = 1};
    for (unsigned i = 0; i < k.count; i++)
        if (__builtin_mul_overflow(out->steps, k.size[i], &out->steps) || out->steps > INT64_C(1) << MOST_STEPS_LOG2)
            return false;
    out->walked = out->steps < WALKED_STEPS ? out->steps : WALKED_STEPS;
    walk_steps(&k, out, &sums);
    bool one_memory = k.source.memory == k.destination.memory;
    int64_t each = (k.packet_bytes + t->dma_request_bytes - 1) / t->dma_request_bytes;
    out->requests = out->steps * each * (one_memory ? 2 : 1);
    out->engine_steps = out->walked ? in_proportion(most_of(sums.engine_steps, DMNS), out->steps, out->walked) : out->steps;
    for (int i = 0; i < DMNS; i++)
        out->engines += sums.engine_steps[i] > 0;
    out->link_cycles = in_proportion(ceil_div(most_of(sums.link_bytes, CHIPS), t->pcie_bytes_per_cycle), out->steps, out->walked);
    out->clusters = __builtin_popcountll(sums.clusters);
    out->hbm_cycles = in_proportion((most_of(sums.channel_millicycles, CHANNELS) + 999) / 1000, out->steps, out->walked);
    out->dmn_cycles = in_proportion(most_of(sums.dmn_cycles, DMNS), out->steps, out->walked);
    out->pieces = in_proportion(out->pieces, out->steps, out->walked);
    out->partial_writes = in_proportion(sums.partial_writes, out->steps, out->walked);
    return true;
}
