#include "runtime/fast/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/trf.h"
#include "support/integer.h"

enum {
    REGION_BYTES = 1 << 19, /* of packed packets: they stay in the second-level cache next to the weights */
    REGION_STEPS = 1 << 15, /* what a region's lists may have to hold */
    WEIGHT_BYTES = 8 << 20, /* of packed weights */
    MASK_LANES = 256,
};

/* --- loops ------------------------------------------------------------------------------------------------ */

typedef enum loop_class { LOOP_SHARED, LOOP_TILE, LOOP_PAIR, LOOP_REDUCED } loop_class;

static loop_class class_of(const nest_loop *l)
{
    if (l->reduced)
        return LOOP_REDUCED;
    if (l->packets == 0)
        return LOOP_TILE;
    return l->weights == 0 ? LOOP_SHARED : LOOP_PAIR;
}

/* --- forms: a set of kernels and the words it takes ------------------------------------------------------- */

/* Each Row's weights one after the other: in the register file, where they stand as kernels want them, else in a copy. */
static void rows_plan(blocks_form *f, const weights *w)
{
    f->in_file = f->set->weights_in_rows && !f->expand && w->read_bytes == f->words * f->word_bytes &&
                 w->reads * w->read_bytes <= trf_contiguous_bytes(w->target, w->mode, w->low_byte);
    f->row_words = f->in_file ? trf_apart_bytes(w->target, w->rows) / (int64_t)sizeof(block_word) : w->reads * f->words;
}

static bool form_plan(blocks_form *f, const block_set *set, const contraction *k)
{
    int64_t lanes = block_lanes(set->format), column_lanes = INT64_C(1) << k->tree.depth;
    int64_t leaf_lanes = set->is_float || set->format == BLOCK_F32 ? 2 : lanes;
    *f = (blocks_form){.set = set,
                       .expand = block_expand_of(set->format, k->operand),
                       .words = (k->tree.columns << k->tree.depth) / lanes,
                       .column_words = column_lanes / lanes,
                       .packet_words = k->lanes / lanes,
                       .word_bytes = block_word_bytes(set->format),
                       .group = set->packets ? set->packets : set->vector / k->rows};
    f->outputs = f->group * k->rows;
    f->weight_words = set->weights_in_rows ? 1 : set->in_rows && !set->widens ? k->rows : set->vector * larger(set->word_vectors, 1);
    f->in_room = set->widens && !(set->alone_in_place && f->group == 1);
    rows_plan(f, &k->weights);
    int64_t bytes;
    return column_lanes >= leaf_lanes && k->weights.reads > 0 &&
           !__builtin_mul_overflow(k->weights.reads, f->words * f->weight_words * (int64_t)sizeof(block_word), &bytes) &&
           bytes <= WEIGHT_BYTES;
}

static bool forms_plan(blocks *p, cpu_level most)
{
    const contraction *k = p->contraction;
    block_choice c = {.most = most, .is_float = p->is_float, .column_lanes = INT64_C(1) << k->tree.depth, .packets = 1};
    c.whole = k->rows == 8 && k->tree.depth >= 2 && k->masks.count == 0;
    for (unsigned i = 0; i < p->nest.count; i++) {
        const nest_loop *l = &p->nest.loops[i];
        if (class_of(l) == LOOP_SHARED)
            c.packets *= l->size;
    }
    const block_set *fast = block_set_fast(&c), *safe = block_set_safe(&c);
    if (!fast || !safe || k->rows > 8)
        return false;
    if (fast->vector != safe->vector) /* both work on the same sums */
        fast = safe;
    return form_plan(&p->forms[BLOCKS_FAST], fast, k) && (fast == safe || form_plan(&p->forms[BLOCKS_SAFE], safe, k));
}

int64_t blocks_shared_vectors(const blocks_region *g, const blocks_form *f)
{
    return (g->shared.count + f->group - 1) / f->group;
}

int64_t blocks_vector_begin(const blocks_region *g, const blocks_form *f, int64_t vector)
{
    int64_t begin = vector * f->group, last = g->shared.count - f->group;
    return begin <= last || last < 0 ? begin : last;
}

/* --- regions ---------------------------------------------------------------------------------------------- */

/* The loops from `level` inwards, of which the first has `chunk` iterations. */
typedef struct region_loops {
    const nest *nest;
    unsigned level;
    int64_t chunk;
} region_loops;

static int64_t loop_size(const region_loops *l, unsigned i)
{
    return i == l->level ? l->chunk : l->nest->loops[i].size;
}

/* Every iteration of the loops of a class, in the nest's order. */
static bool list_make(blocks_list *list, const region_loops *l, loop_class class)
{
    list->count = 1;
    for (unsigned i = l->level; i < l->nest->count; i++)
        if (class_of(&l->nest->loops[i]) == class)
            list->count *= loop_size(l, i);
    list->items = calloc((size_t)list->count, sizeof *list->items);
    for (int64_t n = 0; list->items && n < list->count; n++) {
        int64_t rest = n;
        for (unsigned i = l->nest->count; i-- > l->level;) {
            const nest_loop *loop = &l->nest->loops[i];
            if (class_of(loop) != class)
                continue;
            int64_t counter = rest % loop_size(l, i);
            rest /= loop_size(l, i);
            list->items[n].packet += counter * loop->packets;
            list->items[n].weights += counter * loop->weights;
            for (int m = 0; m < NEST_MOST_MASKS; m++)
                list->items[n].masks[m] += counter * loop->masks[m];
        }
    }
    return list->items != NULL;
}

/* Reduced steps that share their packet share its place among the packed ones. Steps of one packet lie apart in
 * the list only when a loop within a packet is outside one of packets, which the nest never has. */
static bool distinct_make(blocks_region *g)
{
    g->distinct = calloc((size_t)g->reduced.count, sizeof *g->distinct);
    g->in_a_row = true;
    for (int64_t i = 0; g->distinct && i < g->reduced.count; i++) {
        blocks_offset *o = &g->reduced.items[i];
        if (i == 0 || o->packet != g->distinct[g->distinct_count - 1])
            g->distinct[g->distinct_count++] = o->packet;
        g->in_a_row &= o->packet == g->distinct[0] + g->distinct_count - 1;
        o->distinct = g->distinct_count - 1;
    }
    return g->distinct != NULL;
}

static void shared_step_find(blocks_region *g)
{
    const blocks_list *l = &g->shared;
    g->shared_step = l->count > 1 ? l->items[1].packet : 0;
    for (int64_t i = 0; i < l->count; i++)
        if (l->items[i].packet != i * g->shared_step)
            g->shared_step = 0;
}

/* Kept iterations in the nest's order, each with its place among the vectors of pairs, tiles and shared iterations. */
static bool emit_make(blocks_region *g, const region_loops *l, const blocks_form *f, int64_t columns)
{
    g->emit_count = g->pairs.count * g->tiles.count * g->shared.count;
    g->emit = malloc((size_t)g->emit_count * sizeof *g->emit);
    g->cells = malloc((size_t)g->emit_count * sizeof *g->cells);
    for (int64_t n = 0; g->emit && g->cells && n < g->emit_count; n++) {
        int64_t rest = n, number[LOOP_REDUCED] = {0}, weight[LOOP_REDUCED] = {1, 1, 1};
        for (unsigned i = l->nest->count; i-- > l->level;) {
            loop_class class = class_of(&l->nest->loops[i]);
            if (class == LOOP_REDUCED)
                continue;
            number[class] += rest % loop_size(l, i) * weight[class];
            weight[class] *= loop_size(l, i);
            rest /= loop_size(l, i);
        }
        int64_t shared = number[LOOP_SHARED], v = shared / f->group, packet = shared - blocks_vector_begin(g, f, v);
        int64_t vector = (number[LOOP_PAIR] * g->tiles.count + number[LOOP_TILE]) * blocks_shared_vectors(g, f) + v;
        g->emit[n] = vector * f->group + packet;
        g->cells[n] = vector * columns * f->outputs + packet * (f->outputs / f->group);
    }
    return g->emit && g->cells;
}

/* Packets of `iterations` iterations of loop `level`: all steps of a packet are in one region. */
static int64_t region_packets(const nest *n, unsigned level, int64_t iterations)
{
    int64_t packets = n->loops[level].packets;
    if (packets > 0)
        return packets * iterations;
    return 1;
}

static bool region_make(blocks_region *g, const blocks *p, int64_t chunk)
{
    const nest *n = &p->nest;
    unsigned level = p->level;
    region_loops l = {n, level, chunk};
    *g = (blocks_region){.chunk = chunk, .packets = region_packets(n, level, chunk)};
    if (!list_make(&g->shared, &l, LOOP_SHARED))
        return false;
    shared_step_find(g);
    return list_make(&g->tiles, &l, LOOP_TILE) && list_make(&g->pairs, &l, LOOP_PAIR) && list_make(&g->reduced, &l, LOOP_REDUCED) &&
           distinct_make(g) && emit_make(g, &l, &p->forms[BLOCKS_FAST], p->contraction->tree.columns);
}

static void region_free(blocks_region *g)
{
    free(g->shared.items);
    free(g->tiles.items);
    free(g->pairs.items);
    free(g->reduced.items);
    free(g->distinct);
    free(g->emit);
    free(g->cells);
}

/* The outermost loop of which one iteration fits a region, and as many iterations as fit; whole packets only. */
static int64_t choose_level(blocks *p)
{
    const nest *n = &p->nest;
    int64_t packet_bytes = 0;
    for (int f = 0; f < BLOCKS_FORMS; f++)
        if (p->forms[f].set && p->forms[f].packet_words * 4 > packet_bytes)
            packet_bytes = p->forms[f].packet_words * 4;
    int64_t most_packets = REGION_BYTES / packet_bytes;
    for (p->level = 0; p->level + 1 < n->count; p->level++) {
        const nest_loop *l = &n->loops[p->level];
        if (l->steps <= REGION_STEPS && l->packets > 0 && l->packets <= most_packets)
            break;
        if (l->packets == 0)
            break; /* the steps of one packet are never parted */
    }
    const nest_loop *l = &n->loops[p->level];
    if (l->packets == 0) /* all loops from here on are within a packet */
        return l->size * l->steps <= REGION_STEPS ? l->size : 0;
    int64_t chunk = REGION_STEPS / l->steps, by_packets = most_packets / l->packets;
    chunk = chunk < by_packets ? chunk : by_packets;
    if (class_of(l) == LOOP_SHARED && chunk > BLOCK_MOST_GROUP)
        chunk -= chunk % BLOCK_MOST_GROUP;
    chunk = chunk < 1 ? 1 : chunk;
    return chunk < l->size ? chunk : l->size;
}

static bool has_kept_masks(const blocks *p)
{
    for (unsigned i = p->level; i < p->nest.count; i++)
        for (int m = 0; m < NEST_MOST_MASKS; m++)
            if (!p->nest.loops[i].reduced && p->nest.loops[i].masks[m])
                return true;
    return false;
}

static bool regions_plan(blocks *p)
{
    const nest *n = &p->nest;
    int64_t chunk = choose_level(p);
    if (chunk == 0)
        return false;
    const nest_loop *l = &n->loops[p->level];
    p->regions_each = (l->size + chunk - 1) / chunk;
    p->boxes = 1;
    for (unsigned i = n->outermost_reduced; i < p->level; i++)
        p->boxes *= n->loops[i].reduced ? 1 : n->loops[i].size;
    if (p->level > n->outermost_reduced && !l->reduced)
        p->boxes *= p->regions_each;
    p->kept_masks = has_kept_masks(p);
    int64_t rest = l->size % chunk;
    if (!region_make(&p->full, p, chunk) || (rest > 0 && !region_make(&p->rest, p, rest)))
        return false;
    p->box_vectors = p->full.pairs.count * p->full.tiles.count * blocks_shared_vectors(&p->full, &p->forms[BLOCKS_FAST]);
    return true;
}

bool blocks_plan(blocks *p, const contraction *k, const accumulate *sums, cpu_level most)
{
    *p = (blocks){.contraction = k, .is_float = k->is_float};
    most = most == CPU_BEST ? CPU_TILES : most;
    if (dtype_is_staging(k->operand) || k->weights.operand != k->operand) /* data and weights of one type, which memory can hold */
        return false;
    if (most == CPU_STEPS || k->shift.command || !k->weights.inside || k->lanes > MASK_LANES)
        return false;
    p->rows_log2 = (unsigned)__builtin_ctzll((unsigned long long)k->rows);
    p->raw_bytes = k->collect_flits * k->weights.target->flit_bytes;
    if (!nest_make(&p->nest, k, sums) || !forms_plan(p, most) || !regions_plan(p)) {
        blocks_free(p);
        return false;
    }
    return true;
}

void blocks_free(blocks *p)
{
    region_free(&p->full);
    region_free(&p->rest);
    *p = (blocks){0};
}
