#include "runtime/timing/dma_cost.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/timing/hbm_tally.h"
#include "support/integer.h"

enum { MOST_STEPS_LOG2 = 40, WALKED_STEPS = 1 << 20, CHIPS = HBM_TALLY_CHIPS, DMNS = 64, ELEMENT_BYTES = 4 };

typedef struct tally {
    const target *target;
    size_divisor slice, slices_per_dmn;      /* bytes of DM; slices */
    size_divisor slices_per_cluster, dms;    /* slices; bytes of DM in a chip */
    size_divisor dmn_bytes, dmns_per_engine; /* a cycle; */
    int64_t dmn_cycles[DMNS];
    int64_t engine_steps[DMNS]; /* fewer engines than DMNs */
    int64_t link_bytes[CHIPS];  /* that come from another chip */
    int64_t looks;              /* at a place: what the counting takes */
    uint64_t clusters;          /* one bit each */
    hbm_tally hbm;
} tally;

static void tally_init(tally *t, const target *k)
{
    memset(t, 0, offsetof(tally, hbm));
    t->target = k;
    t->slice = size_divisor_of(k->dm_slice_stride_bytes);
    t->slices_per_dmn = size_divisor_of(k->dm_slices_per_dmn);
    t->slices_per_cluster = size_divisor_of(k->slices_per_cluster);
    t->dms = size_divisor_of(k->slices_per_cluster * k->clusters_per_chip * k->dm_slice_stride_bytes);
    t->dmn_bytes = size_divisor_of(k->dmn_bytes_per_cycle);
    t->dmns_per_engine = size_divisor_of(k->dma_dmns_per_engine);
    hbm_tally_init(&t->hbm, k);
}

static int64_t dmn_of(const tally *t, int64_t address)
{
    return size_quotient(size_quotient(address, t->slice), t->slices_per_dmn) & (DMNS - 1);
}

/* So many packets at one place. */
static void touch_dm(tally *t, int64_t address, int64_t bytes, int64_t packets)
{
    t->clusters |= UINT64_C(1) << (size_quotient(size_quotient(address, t->slice), t->slices_per_cluster) & 63);
    t->dmn_cycles[dmn_of(t, address)] += packets * size_quotient(bytes + t->dmn_bytes.value - 1, t->dmn_bytes);
}

typedef struct side {
    bool hbm, write;
    int64_t address, next; /* of this step; where the last one ended */
} side;

static side side_of(const copy_side *s, bool write)
{
    return (side){.hbm = s->memory == COPY_HBM, .write = write};
}

static void touch(tally *t, const side *s, int64_t bytes)
{
    if (s->hbm)
        hbm_tally_packet(&t->hbm, s->address, bytes, s->write);
    else
        touch_dm(t, s->address, bytes, 1);
}

static int64_t chip_of(const tally *t, const side *s)
{
    return size_quotient(s->address, s->hbm ? t->hbm.chip : t->dms) & (CHIPS - 1);
}

/* So many steps at one place. The engine of a step is that of its end in DM, of two such ends the source's; of a copy inside HBM, the first
 * one of the chip that it is read from. */
static void count_steps(tally *t, const side *from, const side *to, int64_t bytes, int64_t steps)
{
    const target *k = t->target;
    const side *dm = from && !from->hbm ? from : to->hbm ? NULL : to;
    int64_t dmn =
        dm ? dmn_of(t, dm->address) : chip_of(t, from ? from : to) * (k->slices_per_cluster / k->dm_slices_per_dmn * k->clusters_per_chip);
    t->engine_steps[size_quotient(dmn, t->dmns_per_engine)] += steps;
    if (from && chip_of(t, from) != chip_of(t, to))
        t->link_bytes[chip_of(t, to)] += steps * bytes;
    t->looks++;
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

/* Step by step, where what is touched on one side depends on the other side or on a list. */
static void count_by_steps(const copy_command *k, dma_cost *out, tally *t)
{
    const copy_side *of[2] = {&k->source, &k->destination};
    walk walks[2] = {walk_of_copy(k, &k->source), walk_of_copy(k, &k->destination)}, list = walk_of_copy(k, &k->list);
    walk_cursor cursors[2], at;
    side sides[2] = {side_of(&k->source, false), side_of(&k->destination, true)};
    int first = k->source.memory == COPY_NONE;
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
            touch(t, &sides[i], k->packet_bytes);
            sides[i].next = sides[i].address + k->packet_bytes;
        }
        count_steps(t, first ? NULL : &sides[0], &sides[1], k->packet_bytes, 1);
        out->pieces += !follows;
        out->unaligned_pieces += !follows && hbm && hbm->address % t->target->hbm_block_bytes != 0;
    }
}

/* ---- loop by loop ---- */

/* Bytes from one place to the next one: places are slices of DM, and chips of HBM. */
static int64_t place_bytes(const tally *t, const copy_side *s)
{
    return s->memory == COPY_HBM ? t->hbm.chip.value : t->slice.value;
}

static bool goes_to_another_place(const tally *t, const copy_side *s, unsigned loop)
{
    return s->memory != COPY_NONE && s->stride[loop] != 0 && s->stride[loop] % place_bytes(t, s) == 0;
}

/* Does a side stay at the places that its outer loops choose, whatever the others do? */
static bool keeps_to_places(const tally *t, const copy_command *k, const copy_side *s)
{
    walk inside = {.base = s->base % place_bytes(t, s)};
    for (unsigned i = 0; i < k->count; i++)
        if (!goes_to_another_place(t, s, i)) {
            inside.size[inside.count] = k->size[i];
            inside.stride[inside.count++] = s->stride[i];
        }
    walk_address low, high;
    walk_bounds(&inside, &low, &high);
    return s->memory == COPY_NONE || (low >= 0 && high + (s->memory == COPY_HBM ? k->packet_bytes : 1) <= place_bytes(t, s));
}

/* HBM on both sides has the rows of its banks opened by both. */
static bool can_count_by_loops(const tally *t, const copy_command *k)
{
    return !k->by_index && !(k->source.memory == COPY_HBM && k->destination.memory == COPY_HBM) && keeps_to_places(t, k, &k->source) &&
           keeps_to_places(t, k, &k->destination);
}

/* What a nest of loops does at each place, and to HBM. */
static void count_nest(const copy_command *k, tally *t)
{
    side from = side_of(&k->source, false), to = side_of(&k->destination, true);
    bool is_fill = k->source.memory == COPY_NONE;
    copy_command places = {0}; /* the loops that go there */
    int64_t counter[COPY_MAX_ENTRIES] = {0}, each = 1;
    for (unsigned i = 0; i < k->count; i++) {
        if (!goes_to_another_place(t, &k->source, i) && !goes_to_another_place(t, &k->destination, i)) {
            each *= k->size[i];
            continue;
        }
        places.size[places.count] = k->size[i];
        places.source.stride[places.count] = k->source.stride[i];
        places.destination.stride[places.count++] = k->destination.stride[i];
    }
    from.address = k->source.base;
    to.address = k->destination.base;
    for (bool goes_on = true; goes_on;) {
        if (!is_fill && !from.hbm)
            touch_dm(t, from.address, k->packet_bytes, each);
        if (!to.hbm)
            touch_dm(t, to.address, k->packet_bytes, each);
        count_steps(t, is_fill ? NULL : &from, &to, k->packet_bytes, each);
        goes_on = false;
        for (unsigned i = places.count; i-- > 0 && !goes_on;) {
            goes_on = ++counter[i] < places.size[i];
            from.address += goes_on ? places.source.stride[i] : -places.source.stride[i] * (places.size[i] - 1);
            to.address += goes_on ? places.destination.stride[i] : -places.destination.stride[i] * (places.size[i] - 1);
            counter[i] = goes_on ? counter[i] : 0;
        }
    }
    if (from.hbm || to.hbm) {
        walk w = walk_of_copy(k, from.hbm ? &k->source : &k->destination);
        hbm_tally_walk(&t->hbm, &w, k->packet_bytes, to.hbm);
    }
}

/* The first `steps` of a copy are nests one after the other: of each loop the iterations that are whole, where the loops around it are by
 * then. */
static void count_by_loops(const copy_command *k, int64_t steps, tally *t)
{
    copy_command nest = *k;
    int64_t inside = 1;
    for (unsigned i = 0; i < k->count; i++)
        inside *= k->size[i];
    for (unsigned i = 0; i < k->count && steps > 0; i++) {
        inside /= k->size[i];
        int64_t whole = steps / inside;
        nest.size[i] = whole;
        if (whole > 0)
            count_nest(&nest, t);
        steps -= whole * inside;
        nest.size[i] = 1;
        nest.source.base += whole * k->source.stride[i];
        nest.destination.base += whole * k->destination.stride[i];
    }
}

/* Positions of the walk over the first `loops` loops that do not begin at a block of HBM, of its first `positions`. */
static int64_t unaligned_positions(const copy_command *k, const copy_side *hbm, unsigned loops, int64_t positions)
{
    enum { BLOCK = 1 << HBM_BLOCK_BITS };
    int64_t inside = 1, base = hbm->base, all = 0;
    for (unsigned i = 0; i < loops; i++)
        inside *= k->size[i];
    for (unsigned i = 0; i <= loops && positions > 0; i++) { /* nests, as above; the last one is a position */
        inside /= i < loops ? k->size[i] : 1;
        int64_t whole = i < loops ? positions / inside : positions, at[BLOCK] = {0}; /* how many begin there in a block */
        if (whole == 0)
            continue;
        at[base & (BLOCK - 1)] = 1;
        for (unsigned j = i; j < loops; j++) {
            int64_t size = j == i ? whole : k->size[j], next[BLOCK] = {0}, around = BLOCK / gcd(hbm->stride[j] & (BLOCK - 1), BLOCK);
            for (int64_t from = 0; from < BLOCK; from++)
                for (int64_t n = 0; at[from] > 0 && n < smaller(around, size); n++)
                    next[(from + n * hbm->stride[j]) & (BLOCK - 1)] += at[from] * ((size - n - 1) / around + 1);
            memcpy(at, next, sizeof at);
        }
        for (int64_t from = 1; from < BLOCK; from++)
            all += at[from];
        base += i < loops ? whole * hbm->stride[i] : 0;
        positions -= whole * inside;
    }
    return all;
}

/* Does a step that goes on in a loop, with those inside of it at their beginning, follow the one before it? */
static bool follows(const copy_command *k, const copy_side *s, unsigned loop)
{
    walk_address ahead = s->stride[loop];
    for (unsigned i = loop + 1; i < k->count; i++)
        ahead -= (walk_address)s->stride[i] * (k->size[i] - 1);
    return s->memory == COPY_NONE || ahead == k->packet_bytes;
}

/* Steps that follow each other on both sides are a piece. */
static void count_pieces(const copy_command *k, dma_cost *out)
{
    const copy_side *hbm = k->source.memory == COPY_HBM ? &k->source : k->destination.memory == COPY_HBM ? &k->destination : NULL;
    int64_t inside = out->steps;
    out->pieces = out->walked > 0;
    out->unaligned_pieces = out->pieces && hbm ? unaligned_positions(k, hbm, 0, 1) : 0;
    for (unsigned i = 0; i < k->count && out->walked > 0; i++) {
        int64_t around = inside;
        inside /= k->size[i];
        if (follows(k, &k->source, i) && follows(k, &k->destination, i))
            continue;
        out->pieces += (out->walked - 1) / inside - (out->walked - 1) / around;
        if (hbm)
            out->unaligned_pieces += unaligned_positions(k, hbm, i + 1, ceil_div(out->walked, inside)) -
                                     unaligned_positions(k, hbm, i, ceil_div(out->walked, around));
    }
}

bool dma_cost_of(const target *t, const command *c, dma_cost *out)
{
    copy_command k = copy_command_read(c);
    walk from = walk_of_copy(&k, &k.source), to = walk_of_copy(&k, &k.destination);
    tally sums;
    tally_init(&sums, t);
    *out = (dma_cost){.steps = 1, .copies = 1, .to_dm = k.destination.memory != COPY_HBM};
    for (unsigned i = 0; i < k.count; i++)
        if (__builtin_mul_overflow(out->steps, k.size[i], &out->steps) || out->steps > INT64_C(1) << MOST_STEPS_LOG2)
            return false;
    if (k.source.memory != COPY_NONE && !k.by_index)
        count_copies(t, &from, &to, out);
    out->walked = inside(&from) && inside(&to) ? smaller(out->steps, WALKED_STEPS) : 0;
    if (out->walked == 0 || !can_count_by_loops(&sums, &k)) {
        count_by_steps(&k, out, &sums);
    } else {
        count_by_loops(&k, out->walked, &sums);
        count_pieces(&k, out);
    }
    bool one_memory = k.source.memory == k.destination.memory;
    if ((k.source.memory == COPY_HBM || k.destination.memory == COPY_HBM) && out->pieces > 0)
        out->piece_bytes = k.packet_bytes * (out->walked / out->pieces);
    int64_t each = (k.packet_bytes + t->dma_request_bytes - 1) / t->dma_request_bytes;
    out->requests = out->steps * each * (one_memory ? 2 : 1);
    out->engine_steps = out->walked ? in_proportion(most_of(sums.engine_steps, DMNS), out->steps, out->walked) : out->steps;
    for (int i = 0; i < DMNS; i++)
        out->engines += sums.engine_steps[i] > 0;
    out->link_cycles = in_proportion(ceil_div(most_of(sums.link_bytes, CHIPS), t->pcie_bytes_per_cycle), out->steps, out->walked);
    out->clusters = __builtin_popcountll(sums.clusters);
    out->hbm_cycles = in_proportion((most_of(sums.hbm.channel_millicycles, HBM_TALLY_CHANNELS) + 999) / 1000, out->steps, out->walked);
    out->dmn_cycles = in_proportion(most_of(sums.dmn_cycles, DMNS), out->steps, out->walked);
    out->pieces = in_proportion(out->pieces, out->steps, out->walked);
    out->partial_writes = in_proportion(sums.hbm.partial_writes, out->steps, out->walked);
    out->looks = sums.looks + sums.hbm.looks;
    return true;
}
