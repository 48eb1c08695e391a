#include "runtime/fast/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/trf.h"
#include "support/integer.h"

enum {
    MOST_WORDS = 128,          /* of a packet */
    KEPT_BYTES = 16 << 20,     /* of packed packets that other slices have, too */
    KEPT_FILE_BYTES = 4 << 20, /* of packed weights that they have */
    MOST_FILES = 64,
    ROWS = 8,
    ALIGNMENT = 64,       /* bytes */
    NEAR_BYTES = 8 << 10, /* of packets: they stay in the first-level cache, next to weights */
};

/* --- buffers ---------------------------------------------------------------------------------------------- */

static block_word *words_new(int64_t count)
{
    size_t bytes = (size_t)count * sizeof(block_word);
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

/* Regions of a slice's walk whose packets are kept: with sets that take them as they lie it is hardly worth it. */
static int64_t kept_regions(const blocks *p, int64_t packed_words)
{
    int64_t regions = p->regions_each, fit = KEPT_BYTES / (packed_words * (int64_t)sizeof(block_word) + 1);
    for (unsigned i = 0; i < p->level; i++)
        if (__builtin_mul_overflow(regions, p->nest.loops[i].size, &regions))
            return 1;
    for (int f = 0; f < BLOCKS_FORMS; f++)
        fit = fit < 1 || (p->forms[f].set && p->forms[f].set->in_rows) ? 1 : fit;
    return regions < fit ? regions : fit;
}

static bool weights_new(const blocks_run *r, blocks_weights *w)
{
    bool done = true;
    for (int i = 0; i < BLOCKS_FORMS; i++) {
        w->words[i] = r->weight_words[i] ? words_new(r->weight_words[i]) : NULL;
        done = done && (w->words[i] || !r->weight_words[i]);
    }
    return done;
}

static void weights_free(const blocks_weights *w)
{
    for (int i = 0; i < BLOCKS_FORMS; i++)
        free(w->words[i]);
}

bool blocks_run_new(const blocks *p, blocks_run *r)
{
    const contraction *k = p->contraction;
    const blocks_region *g = &p->full;
    int64_t expanded = 0, packed = 0, file_words = 1, sums = p->boxes * p->box_vectors, places = g->pairs.count * g->tiles.count;
    int64_t outputs = p->forms[BLOCKS_FAST].outputs, most_outputs = outputs;
    *r = (blocks_run){.raw = (unsigned char *)words_new((g->packets * p->raw_bytes + 3) / 4)};
    r->places = calloc((size_t)g->packets, sizeof *r->places);
    bool done = r->raw && r->places;
    for (int i = 0; i < BLOCKS_FORMS; i++) {
        const blocks_form *f = &p->forms[i];
        if (!f->set)
            continue;
        int64_t all = g->pairs.count * blocks_shared_vectors(g, f) * g->distinct_count * f->words * f->group;
        packed = all > packed ? all : packed;
        most_outputs = f->outputs > most_outputs ? f->outputs : most_outputs;
        expanded = g->packets * f->packet_words > expanded ? g->packets * f->packet_words : expanded;
        r->weight_words[i] = f->in_file ? 0 : k->weights.reads * f->words * f->weight_words * (f->set->weights_in_rows ? k->rows : 1);
        file_words += r->weight_words[i];
    }
    r->most_files = smaller(KEPT_FILE_BYTES / (int64_t)sizeof(block_word) / file_words + 1, MOST_FILES);
    r->files = calloc((size_t)r->most_files, sizeof *r->files);
    r->file_count = 1;
    r->weights = r->files;
    done = done && r->files && weights_new(r, r->files);
    r->expanded = words_new(expanded);
    r->kept_count = kept_regions(p, packed);
    r->kept = calloc((size_t)r->kept_count, sizeof *r->kept);
    r->packed_words = packed;
    if (r->kept)
        r->packed = r->kept[0].words = words_new(packed);
    r->cells = words_new(sums * k->tree.columns * outputs);
    r->before = words_new(p->forms[BLOCKS_FAST].set->look ? p->box_vectors * k->tree.columns * outputs : 1);
    r->seen = calloc((size_t)(sums * p->forms[BLOCKS_FAST].group), sizeof *r->seen);
    r->steps = calloc((size_t)g->reduced.count, sizeof *r->steps);
    r->room = words_new(p->forms[BLOCKS_FAST].set->widens ? BLOCK_ROOM_WORDS : 1);
    r->aside = words_new(3 * k->tree.columns * most_outputs);
    r->keep = words_new(k->masks.count ? g->reduced.count * MOST_WORDS : 1);
    r->start = words_new(places * k->tree.columns * outputs);
    r->start_version = calloc((size_t)places, sizeof *r->start_version);
    return done && r->expanded && r->packed && r->cells && r->before && r->room && r->aside && r->seen && r->steps && r->keep && r->start &&
           r->start_version;
}

void blocks_run_free(blocks_run *r)
{
    free(r->raw);
    free(r->places);
    free(r->expanded);
    for (int64_t i = 0; r->kept && i < r->kept_count; i++)
        free(r->kept[i].words);
    free(r->kept);
    free(r->cells);
    free(r->before);
    free(r->room);
    free(r->aside);
    free(r->seen);
    free(r->steps);
    free(r->keep);
    free(r->start);
    free(r->start_version);
    for (int64_t i = 0; r->files && i < r->file_count; i++)
        weights_free(&r->files[i]);
    free(r->files);
}

/* --- weights ---------------------------------------------------------------------------------------------- */

/* A read's words of one Row: its elements, repeated over the packet; in `to`, or where they lie. */
static const unsigned char *read_words(const blocks *p, const blocks_form *f, const unsigned char *bytes, block_word *to)
{
    const weights *w = &p->contraction->weights;
    unsigned char packet[64];
    if (!f->expand && w->read_bytes >= f->words * f->word_bytes)
        return bytes;
    if (w->read_bytes < (int64_t)sizeof packet) {
        for (size_t i = 0; i < sizeof packet; i += (size_t)w->read_bytes)
            memcpy(packet + i, bytes, (size_t)w->read_bytes);
        bytes = packet;
    }
    if (f->expand)
        f->expand(to, bytes, p->contraction->lanes);
    else
        memcpy(to, bytes, sizeof packet);
    return (const unsigned char *)to;
}

/* Reads from `byte` on that can be packed at once: their words follow each other in the file. */
static int64_t reads_together(const blocks *p, const blocks_form *f, int64_t byte, int64_t left)
{
    const weights *w = &p->contraction->weights;
    if (f->expand || w->read_bytes != f->words * f->word_bytes)
        return 1;
    int64_t n = trf_contiguous_bytes(w->target, w->mode, byte) / w->read_bytes;
    return n < 1 ? 1 : n < left ? n : left;
}

static void weights_pack(const blocks *p, blocks_run *r, int form)
{
    const blocks_form *f = &p->forms[form];
    const weights *w = &p->contraction->weights;
    r->weights->ready[form] = true;
    r->weights->at[form] = r->weights->words[form];
    if (f->in_file) {
        r->weights->at[form] = (const block_word *)(const void *)(r->file + trf_address_of(w->target, 0, w->rows, w->mode, w->low_byte));
        return;
    }
    block_word rows[ROWS][MOST_WORDS];
    const unsigned char *words[ROWS];
    block_exponents seen;
    block_exponents_none(&seen);
    for (int64_t i = 0, n; i < w->reads; i += n) {
        int64_t byte = w->low_byte + i * w->read_bytes;
        n = reads_together(p, f, byte, w->reads - i);
        for (int64_t row = 0; row < w->rows; row++)
            words[row] = read_words(p, f, r->file + trf_address_of(w->target, row, w->rows, w->mode, byte), rows[row]);
        block_word *to = r->weights->words[form] + i * f->words * f->weight_words;
        for (int64_t row = 0; f->set->weights_in_rows && row < w->rows; row++)
            memcpy(to + row * f->row_words, words[row], (size_t)(n * f->words) * sizeof *to);
        if (!f->set->weights_in_rows)
            f->set->repeat[p->rows_log2](words, n * f->words, to, &seen);
    }
    if (block_in_range(f->set->format))
        r->weights->range = block_exponents_range(&seen);
}

/* The weights of a file: if other slices have it, too, they are packed once for all that this worker runs. */
static blocks_weights *file_weights(blocks_run *r, const unsigned char *file, bool shared)
{
    for (int64_t i = 1; shared && i < r->file_count; i++)
        if (r->files[i].file == file)
            return &r->files[i];
    blocks_weights *w = &r->files[0];
    if (shared && r->file_count < r->most_files) {
        blocks_weights *more = &r->files[r->file_count];
        if (weights_new(r, more)) {
            more->file = file;
            r->file_count++;
            return more;
        }
        weights_free(more);
        *more = (blocks_weights){.file = NULL};
    }
    w->ready[BLOCKS_FAST] = w->ready[BLOCKS_SAFE] = false;
    return w;
}

/* --- from region to region -------------------------------------------------------------------------------- */

void blocks_open(const blocks *p, blocks_run *r, const unsigned char *file, bool shared)
{
    r->file = file;
    r->weights = file_weights(r, file, shared);
    r->done = false;
    r->region = NULL;
    memset(r->counter, 0, sizeof r->counter);
    memset(r->start_version, 0, (size_t)(p->full.pairs.count * p->full.tiles.count) * sizeof *r->start_version);
    r->region_number = -1;
    const blocks_form *f = &p->forms[BLOCKS_FAST];
    if (f->set->enter)
        f->set->enter(f->column_words, p->contraction->rows);
}

void blocks_close(const blocks *p)
{
    if (p->forms[BLOCKS_FAST].set->leave)
        p->forms[BLOCKS_FAST].set->leave();
}

/* Where the region of the counters begins and which sums it continues. */
static void region_open(const blocks *p, blocks_run *r)
{
    const nest *n = &p->nest;
    int64_t part = r->counter[p->level];
    r->region = part * p->full.chunk + p->full.chunk <= n->loops[p->level].size ? &p->full : &p->rest;
    r->base = p->contraction->weights.table.base;
    r->box = 0;
    r->fresh = r->complete = true;
    memset(r->outer_masks, 0, sizeof r->outer_masks);
    for (unsigned i = 0; i <= p->level; i++) {
        const nest_loop *l = &n->loops[i];
        int64_t counter = i < p->level ? r->counter[i] : part * p->full.chunk;
        int64_t parts = i < p->level ? l->size : p->regions_each;
        r->base += counter * l->weights;
        for (int m = 0; m < NEST_MOST_MASKS; m++)
            r->outer_masks[m] += counter * l->masks[m];
        if (l->reduced) {
            r->fresh &= r->counter[i] == 0;
            r->complete &= r->counter[i] == parts - 1;
        } else if (i > n->outermost_reduced) {
            r->box = r->box * parts + r->counter[i];
        }
    }
}

static bool advance(const blocks *p, blocks_run *r)
{
    for (unsigned i = p->level + 1; i-- > 0;) {
        int64_t parts = i < p->level ? p->nest.loops[i].size : p->regions_each;
        if (++r->counter[i] < parts)
            return true;
        r->counter[i] = 0;
    }
    return false;
}

int64_t blocks_next(const blocks *p, blocks_run *r)
{
    if (r->region && !advance(p, r))
        return 0;
    region_open(p, r);
    r->region_number++;
    return r->region->packets;
}

/* --- packets ---------------------------------------------------------------------------------------------- */

static const unsigned char *place_of(const blocks_run *r, int64_t packet)
{
    return r->apart ? r->places[0] + packet * r->apart : r->places[packet];
}

/* Packets from `first` on that lie one after the other without a gap. */
static int64_t packets_together(const blocks_run *r, int64_t first, int64_t bytes)
{
    int64_t n = 1;
    if (r->apart)
        return r->apart == bytes ? r->region->packets - first : 1;
    while (first + n < r->region->packets && r->places[first + n] == r->places[first] + n * bytes)
        n++;
    return n;
}

/* The packets as words of the form, before packing. */
static void packets_expand(const blocks *p, blocks_run *r, const blocks_form *f)
{
    const contraction *k = p->contraction;
    int64_t used = f->words * k->packet_bytes / f->packet_words; /* bytes of a packet that columns look at */
    r->first = r->places[0];
    r->words_apart = r->apart;
    if (!f->expand && used <= k->data_bytes)
        return;
    r->first = (const unsigned char *)r->expanded;
    r->words_apart = f->packet_words * f->word_bytes;
    int64_t elements = k->data_bytes * k->lanes / k->packet_bytes, bytes = elements * r->words_apart / k->lanes;
    bool whole = k->data_bytes == k->packet_bytes;
    for (int64_t i = 0, n; i < r->region->packets; i += n) {
        unsigned char *to = (unsigned char *)r->expanded + i * r->words_apart;
        n = whole ? packets_together(r, i, k->packet_bytes) : 1;
        if (f->expand)
            f->expand((block_word *)(void *)to, place_of(r, i), n * elements);
        else
            memcpy(to, place_of(r, i), (size_t)k->data_bytes);
        memset(to + n * bytes, 0, (size_t)(n * (r->words_apart - bytes)));
    }
}

/* block_words that a copy of a packet takes: a whole number, also where its words are shorter and few. */
static int64_t row_words(const blocks_form *f)
{
    return (f->words * f->word_bytes + (int64_t)sizeof(block_word) - 1) / (int64_t)sizeof(block_word);
}

/* Where the packets of a vector have their words, for distinct packet `d`. */
static void group_words(const blocks_run *r, const blocks_form *f, int64_t pair, int64_t vector, int64_t d, const unsigned char **to)
{
    const blocks_region *g = r->region;
    int64_t shared = blocks_vector_begin(g, f, vector);
    int64_t from = g->pairs.items[pair].packet + g->distinct[d], last = g->shared.count - 1;
    for (int64_t i = 0; i < f->group; i++) {
        int64_t number = from + g->shared.items[shared + i < last ? shared + i : last].packet;
        to[i] = r->words_apart ? r->first + number * r->words_apart : r->places[number];
    }
}

/* Can kernels that take packets as rows have the region's where they lie? */
static bool packets_in_rows(const blocks_run *r, const blocks_form *f)
{
    const blocks_region *g = r->region;
    bool in_steps = g->shared.count == 1 || (g->shared_step != 0 && g->shared.count >= f->group); /* one alone fills its group */
    return in_steps && r->words_apart && r->words_apart % (int64_t)sizeof(block_word) == 0;
}

/* Packets as rows, copied where they do not lie so; the last one fills up a group. */
static void packets_place(blocks_run *r, const blocks_form *f)
{
    const blocks_region *g = r->region;
    int64_t apart = r->words_apart, each = g->distinct_count * row_words(f), bytes = f->words * f->word_bytes;
    r->in_place = packets_in_rows(r, f);
    if (r->in_place) {
        r->data = (const block_word *)(const void *)r->first;
        r->data_packet = g->shared_step * apart;
        r->data_vector = f->group * r->data_packet / (int64_t)sizeof(block_word);
        return;
    }
    r->data = r->packed;
    r->data_packet = each * (int64_t)sizeof(block_word);
    r->data_vector = each * f->group;
    r->data_pair = r->data_vector * blocks_shared_vectors(g, f);
    unsigned char *to = (unsigned char *)r->packed;
    const unsigned char *group[BLOCK_MOST_GROUP];
    for (int64_t pair = 0; pair < g->pairs.count; pair++)
        for (int64_t v = 0; v < blocks_shared_vectors(g, f); v++, to += r->data_packet * f->group)
            for (int64_t d = 0; d < g->distinct_count; d++) {
                group_words(r, f, pair, v, d, group);
                for (int64_t i = 0; i < f->group; i++)
                    memcpy(to + i * r->data_packet + d * row_words(f) * (int64_t)sizeof(block_word), group[i], (size_t)bytes);
            }
}

/* Do the words that are looked at lie one after the other, those of one packet after those of the packet before? */
static bool packets_gapless(const blocks_run *r, const blocks_form *f)
{
    return r->words_apart == f->words * f->word_bytes;
}

/* The exponents of the region's packets, where they lie. */
static void packets_look(blocks_run *r, const blocks_form *f)
{
    block_exponents seen;
    block_exponents_none(&seen);
    int64_t at_once = packets_gapless(r, f) ? r->region->packets : 1;
    for (int64_t i = 0; i < r->region->packets; i += at_once)
        f->set->look(r->words_apart ? r->first + i * r->words_apart : r->places[i], at_once * f->words, &seen);
    r->data_range = block_exponents_range(&seen);
}

static void packets_pack(const blocks *p, blocks_run *r, const blocks_form *f)
{
    const blocks_region *g = r->region;
    r->in_place = false;
    r->data = r->packed;
    r->data_vector = g->distinct_count * f->words * f->group;
    r->data_pair = r->data_vector * blocks_shared_vectors(g, f);
    const unsigned char *group[BLOCK_MOST_GROUP];
    block_word flip = f->set->format == BLOCK_I8X4 ? UINT32_C(0x80808080) : 0, *to = r->packed;
    block_interleave *interleave = f->set->interleave[p->rows_log2];
    int64_t at_once = g->in_a_row && packets_gapless(r, f) ? g->distinct_count : 1;
    block_exponents seen;
    block_exponents_none(&seen);
    for (int64_t pair = 0; pair < g->pairs.count; pair++)
        for (int64_t v = 0; v < blocks_shared_vectors(g, f); v++)
            for (int64_t d = 0; d < g->distinct_count; d += at_once, to += at_once * f->words * f->group) {
                group_words(r, f, pair, v, d, group);
                interleave(group, at_once * f->words, flip, to, &seen);
            }
    if (f->set->format == BLOCK_BF16)
        r->data_range = block_exponents_range(&seen);
}

/* --- steps and masks -------------------------------------------------------------------------------------- */

/* The bits of the lanes that count, per word, and the columns that have one. */
static void keep_words(const blocks *p, const blocks_form *f, const unsigned char *live, block_word *keep, uint64_t *present)
{
    const contraction *k = p->contraction;
    int64_t lanes = block_lanes(f->set->format), bits = 32 / lanes;
    for (int64_t w = 0; w < f->words; w++) {
        keep[w] = 0;
        for (int64_t i = 0; i < lanes; i++)
            if (live[w * lanes + i]) {
                keep[w] |= (block_word)((UINT64_C(1) << bits) - 1) << i * bits;
                *present |= UINT64_C(1) << ((w * lanes + i) >> k->tree.depth);
            }
    }
}

/* Where a reduced step finds its packets, in words from a vector's first. */
static int64_t step_data(const blocks_run *r, const blocks_form *f, const blocks_offset *o)
{
    if (r->in_place)
        return o->packet * r->words_apart / (int64_t)sizeof(block_word);
    return o->distinct * (f->set->in_rows ? row_words(f) : f->words * f->group);
}

static void steps_follow(blocks_run *r, int64_t words)
{
    for (int64_t i = r->step_count - 1; i-- > 0;) {
        block_step *s = &r->steps[i];
        bool goes_on = !s->keep && !s[1].keep && s[1].data == s->data + words && s[1].weights == s->weights + words;
        s->follow = goes_on ? s[1].follow + 1 : 0;
    }
}

/* The step list of the region for these sums of the masks' other terms: steps without a live lane are no part of
 * it. A worker's slices have the same ones; where only their weights begin elsewhere, sums begin anew (start_of). */
static void steps_make(const blocks *p, blocks_run *r, int form, const int64_t *sums)
{
    const contraction *k = p->contraction;
    const blocks_form *f = &p->forms[form];
    const blocks_region *g = r->region;
    int64_t apart = r->in_place ? r->words_apart : 0;
    bool same = r->steps_region == g && r->steps_form == form && r->steps_in_place == r->in_place && r->steps_apart == apart &&
                memcmp(r->mask_sums, sums, sizeof r->mask_sums) == 0;
    r->version += !same || r->steps_base != r->base;
    r->steps_base = r->base;
    if (same)
        return;
    r->steps_region = g;
    r->steps_form = form;
    r->steps_in_place = r->in_place;
    r->steps_apart = apart;
    memcpy(r->mask_sums, sums, sizeof r->mask_sums);
    r->step_count = 0;
    r->present = k->masks.count ? 0 : ~UINT64_C(0);
    unsigned char live[2 * MOST_WORDS];
    for (int64_t i = 0; i < g->reduced.count; i++) {
        const blocks_offset *o = &g->reduced.items[i];
        mask_state state = mask_set_live(&k->masks, sums, o->masks, live);
        if (state == MASK_NONE)
            continue;
        block_step *s = &r->steps[r->step_count];
        *s = (block_step){step_data(r, f, o), (o->weights >> k->weights.read_shift) * f->words * f->weight_words, NULL, 0};
        if (state == MASK_SOME) {
            block_word *keep = r->keep + r->step_count * MOST_WORDS;
            keep_words(p, f, live, keep, &r->present);
            s->keep = keep;
        } else {
            r->present = ~UINT64_C(0);
        }
        r->step_count++;
    }
    if (k->tree.columns == 1)
        steps_follow(r, f->words);
}

/* Would all sums of the masks' terms from `low` to `high` give the same steps? */
static bool masks_agree(const blocks *p, const blocks_run *r, const int64_t *low, const int64_t *high)
{
    const contraction *k = p->contraction;
    for (int64_t i = 0; i < r->region->reduced.count; i++)
        if (!mask_set_agrees(&k->masks, low, high, r->region->reduced.items[i].masks))
            return false;
    return true;
}

/* --- sums ------------------------------------------------------------------------------------------------- */

/* Some vectors of one pair and tile. */
typedef struct sum_place {
    int form;
    int64_t pair, tile, vector; /* the first of the vectors */
} sum_place;

static const block_word *weights_of(const blocks *p, const blocks_run *r, const sum_place *s)
{
    const blocks_form *f = &p->forms[s->form];
    const weights *w = &p->contraction->weights;
    int64_t address = r->base + r->region->pairs.items[s->pair].weights + r->region->tiles.items[s->tile].weights;
    return r->weights->at[s->form] + ((address - w->low_byte) >> w->read_shift) * f->words * f->weight_words;
}

/* Packets of BLOCK_I8X4 are 128 too large: sums start at -128 times the weights, which the kernel itself adds up. */
static void start_biased(const blocks *p, blocks_run *r, const sum_place *s, block_word *start)
{
    const blocks_form *f = &p->forms[s->form];
    int64_t count = p->contraction->tree.columns * f->outputs;
    block_word bias[MOST_WORDS * BLOCK_MOST_GROUP], *zero = r->aside + 2 * count;
    memset(bias, 0x80, (size_t)(f->words * f->group) * sizeof *bias);
    memset(zero, 0, (size_t)count * sizeof *zero);
    for (int64_t i = 0; i < r->step_count; i++) {
        block_step step = {0, r->steps[i].weights, NULL, 0};
        block_run k = {.data = bias,
                       .weights = weights_of(p, r, s),
                       .steps = &step,
                       .step_count = 1,
                       .columns = p->contraction->tree.columns,
                       .column_words = f->column_words,
                       .cells = start,
                       .start = zero,
                       .runs = 1,
                       .fresh = i == 0};
        f->set->one[p->rows_log2](&k);
    }
    for (int64_t i = 0; i < count; i++)
        start[i] = r->step_count ? -start[i] : 0;
}

/* The same where kernels for many vectors alone ask for it. */
static void start_many(const blocks *p, const blocks_run *r, const sum_place *s, block_word *start)
{
    const blocks_form *f = &p->forms[s->form];
    block_run k = {.weights = weights_of(p, r, s),
                   .row_words = f->row_words,
                   .steps = r->steps,
                   .step_count = r->step_count,
                   .columns = p->contraction->tree.columns,
                   .column_words = f->column_words,
                   .cells = start};
    f->set->start_many[p->rows_log2](&k);
}

/* What the sums of `vectors` vectors begin with; NULL: nothing that their kernel asks for. */
static const block_word *start_of(const blocks *p, blocks_run *r, const sum_place *s, int64_t vectors)
{
    const blocks_form *f = &p->forms[s->form];
    if (f->set->weights_in_rows && (vectors <= 2 || !f->set->start_many[p->rows_log2]))
        return NULL;
    int64_t place = s->pair * r->region->tiles.count + s->tile, count = p->contraction->tree.columns * f->outputs;
    block_word *start = r->start + place * count;
    if (r->start_version[place] == r->version)
        return start;
    r->start_version[place] = r->version;
    if (f->set->format == BLOCK_I8X4)
        start_biased(p, r, s, start);
    else if (f->set->start_many[p->rows_log2])
        start_many(p, r, s, start);
    else
        for (int64_t i = 0; i < count; i++)
            start[i] = p->is_float ? UINT32_C(0x80000000) : 0;
    return start;
}

static int64_t vector_number(const blocks *p, const blocks_run *r, const sum_place *s)
{
    int64_t each = blocks_shared_vectors(r->region, &p->forms[s->form]);
    return r->box * p->box_vectors + (s->pair * r->region->tiles.count + s->tile) * each + s->vector;
}

static void sum_run(const blocks *p, blocks_run *r, const sum_place *s, int64_t count, block_word *cells)
{
    const blocks_form *f = &p->forms[s->form];
    int64_t at = s->pair * r->data_pair + s->vector * r->data_vector;
    if (r->in_place)
        at = (r->region->pairs.items[s->pair].packet * r->words_apart + blocks_vector_begin(r->region, f, s->vector) * r->data_packet) /
             (int64_t)sizeof(block_word);
    block_run k = {.data = r->data + at,
                   .weights = weights_of(p, r, s),
                   .data_stride = r->data_vector,
                   .packet_bytes = r->data_packet,
                   .rows = p->contraction->rows,
                   .row_words = f->row_words,
                   .steps = r->steps,
                   .step_count = r->step_count,
                   .columns = p->contraction->tree.columns,
                   .column_words = f->column_words,
                   .cells = cells,
                   .start = start_of(p, r, s, count),
                   .fresh = r->fresh,
                   .near = s->tile > 0,
                   .runs = larger(count / f->set->wide[p->rows_log2], 1),
                   .room = r->room,
                   .held = r->room_data == r->data + at && r->room_version == r->version && r->room_vectors == count};
    r->room_data = k.runs == 1 ? k.data : NULL;
    r->room_version = r->version;
    r->room_vectors = count;
    (count > 2 ? f->set->many : count == 2 ? f->set->two : f->set->one)[p->rows_log2](&k);
}

static void seen_add(const blocks *p, blocks_run *r, const sum_place *s, int64_t from, int64_t count)
{
    uint64_t *seen = r->seen + vector_number(p, r, s) * p->forms[s->form].group + from;
    for (int64_t i = 0; i < count; i++)
        seen[i] = (r->fresh ? 0 : seen[i]) | r->present;
}

/* The masks' terms of everything but the reduced loops, for shared iteration `shared`. */
static void mask_sums(const blocks *p, const blocks_run *r, const sum_place *s, int64_t shared, int64_t *sums)
{
    const blocks_region *g = r->region;
    for (size_t m = 0; m < NEST_MOST_MASKS; m++)
        sums[m] =
            r->outer_masks[m] + g->pairs.items[s->pair].masks[m] + g->tiles.items[s->tile].masks[m] + g->shared.items[shared].masks[m];
    (void)p;
}

/* The cell of a vector's first packet for number column * Rows + Row. */
static int64_t cell_at(const blocks *p, const blocks_form *f, int64_t number)
{
    int64_t rows = p->contraction->rows;
    return number / rows * f->outputs + number % rows;
}

/* A vector whose packets differ in their masks: once for each packet, of which only its own sums are kept. */
static void sum_apart(const blocks *p, blocks_run *r, const sum_place *s)
{
    const blocks_form *f = &p->forms[s->form];
    int64_t count = p->contraction->tree.columns * f->outputs, first = blocks_vector_begin(r->region, f, s->vector);
    block_word *cells = r->cells + vector_number(p, r, s) * count, *mine = r->aside, *before = r->aside + count;
    memcpy(before, cells, (size_t)count * sizeof *before);
    for (int64_t g = 0; g < f->group && first + g < r->region->shared.count; g++) {
        int64_t sums[NEST_MOST_MASKS];
        mask_sums(p, r, s, first + g, sums);
        steps_make(p, r, s->form, sums);
        memcpy(mine, before, (size_t)count * sizeof *mine);
        sum_run(p, r, s, 1, mine);
        seen_add(p, r, s, g, 1);
        for (int64_t i = 0; i < p->contraction->tree.columns * p->contraction->rows; i++) {
            int64_t at = cell_at(p, f, i) + g * p->contraction->rows;
            cells[at] = mine[at];
        }
    }
}

/* `count` vectors from the place on, which one kernel can take if their masks agree. False: they do not. */
static bool sum_together(const blocks *p, blocks_run *r, const sum_place *s, int64_t count)
{
    const blocks_form *f = &p->forms[s->form];
    int64_t low[NEST_MOST_MASKS], high[NEST_MOST_MASKS], first = blocks_vector_begin(r->region, f, s->vector),
                                                         last = first + count * f->group;
    mask_sums(p, r, s, first, low);
    if (p->kept_masks) {
        memcpy(high, low, sizeof high);
        for (int64_t t = first + 1; t < last && t < r->region->shared.count; t++) {
            int64_t sums[NEST_MOST_MASKS];
            mask_sums(p, r, s, t, sums);
            for (int m = 0; m < NEST_MOST_MASKS; m++) {
                low[m] = sums[m] < low[m] ? sums[m] : low[m];
                high[m] = sums[m] > high[m] ? sums[m] : high[m];
            }
        }
        if (!masks_agree(p, r, low, high))
            return false;
    }
    steps_make(p, r, s->form, low);
    sum_run(p, r, s, count, r->cells + vector_number(p, r, s) * p->contraction->tree.columns * f->outputs);
    if (p->contraction->masks.count)
        seen_add(p, r, s, 0, count * f->group);
    return true;
}

/* How many of the vectors that are left are summed by one call. Where they meet several tiles of weights, they are few enough to be read
 * from memory once; where packets are woven, there is room for those of one product. */
static int64_t vectors_at_once(const blocks *p, const blocks_region *g, const blocks_form *f, int64_t left)
{
    int64_t wide = f->set->wide[p->rows_log2], near = left;
    if (left < wide)
        return left >= 2 ? 2 : 1;
    if (!f->set->in_runs || p->kept_masks)
        return wide;
    if (g->tiles.count > 1)
        near = f->in_room ? wide : smaller(left, NEAR_BYTES / (g->distinct_count * f->group * f->words * f->word_bytes));
    return larger(near - near % wide, wide);
}

static void sum_vectors(const blocks *p, blocks_run *r, sum_place s)
{
    const blocks_region *g = r->region;
    const blocks_form *f = &p->forms[s.form];
    int64_t vectors = blocks_shared_vectors(g, f);
    bool apart = r->in_place && g->shared.count % f->group != 0; /* the last vector is no step after the one before it */
    for (; s.vector < vectors;) {
        int64_t left = vectors - s.vector;
        if (apart && left > 1)
            left--;
        int64_t count = vectors_at_once(p, g, f, left), vector = s.vector;
        for (s.tile = 0; s.tile < g->tiles.count; s.tile++) {
            if (sum_together(p, r, &s, count))
                continue;
            for (; s.vector < vector + count; s.vector++)
                if (!sum_together(p, r, &s, 1))
                    sum_apart(p, r, &s);
            s.vector = vector;
        }
        s.vector += count;
    }
}

static int64_t box_words(const blocks *p)
{
    return p->box_vectors * p->contraction->tree.columns * p->forms[BLOCKS_FAST].outputs;
}

static void region_sums(const blocks *p, blocks_run *r, int form)
{
    for (int64_t pair = 0; pair < r->region->pairs.count; pair++)
        sum_vectors(p, r, (sum_place){.form = form, .pair = pair});
}

/* Room for the region's packets, in which another slice may have left them. */
static blocks_packed *packed_place(blocks_run *r)
{
    bool can = r->stands && r->apart;
    blocks_packed *k = &r->kept[!can ? 0 : r->region_number < r->kept_count ? r->region_number : r->kept_count - 1];
    if (!k->words)
        k->words = words_new(r->packed_words);
    return k->words ? k : &r->kept[0];
}

/* Packs the region's packets, or takes those that are packed. True: they were. */
static bool packets_prepare(const blocks *p, blocks_run *r, int form)
{
    const blocks_form *f = &p->forms[form];
    blocks_packed *k = packed_place(r);
    r->room_data = NULL;
    bool stands = r->stands && r->apart;
    r->packed = k->words;
    if (stands && k->region == r->region && k->form == form && k->from == r->places[0]) {
        if (!f->set->in_rows) { /* of those that are, what the last region had is still there */
            r->in_place = false;
            r->data = k->words;
            r->data_pair = k->pair;
            r->data_vector = k->vector;
            r->data_range = k->range;
        }
        return true;
    }
    packets_expand(p, r, f);
    if (f->set->in_rows)
        packets_place(r, f);
    else
        packets_pack(p, r, f);
    *k = (blocks_packed){stands ? r->region : NULL, form, r->places[0], k->words, r->data_pair, r->data_vector, r->data_range};
    return false;
}

/* Sums first and looks at the packets then, when they are in the caches, unless those of the region before were not in range; `known`: what
 * they are is known. False: the sums are as they were. */
static bool sum_and_look(const blocks *p, blocks_run *r, int form, bool known)
{
    const block_range none = {255, 0};
    if (!block_range_fits(&none, &r->weights->range))
        return false;
    if (!known && r->out_of_range) {
        packets_look(r, &p->forms[form]);
        known = true;
    }
    r->out_of_range = known && !block_range_fits(&r->data_range, &r->weights->range);
    if (r->out_of_range)
        return false;
    size_t bytes = (size_t)box_words(p) * sizeof(block_word);
    block_word *cells = r->cells + r->box * box_words(p);
    if (!r->fresh)
        memcpy(r->before, cells, bytes);
    region_sums(p, r, form);
    if (!known)
        packets_look(r, &p->forms[form]);
    r->out_of_range = !block_range_fits(&r->data_range, &r->weights->range);
    if (r->out_of_range && !r->fresh)
        memcpy(cells, r->before, bytes);
    return !r->out_of_range;
}

/* Packs the region's packets and sums them. False: their values are not for this form. */
static bool sum_form(const blocks *p, blocks_run *r, int form)
{
    const blocks_form *f = &p->forms[form];
    if (!r->weights->ready[form])
        weights_pack(p, r, form);
    bool packed = packets_prepare(p, r, form);
    if (f->set->look)
        return sum_and_look(p, r, form, packed);
    if (block_in_range(f->set->format) && !block_range_fits(&r->data_range, &r->weights->range))
        return false;
    region_sums(p, r, form);
    return true;
}

int64_t blocks_sum(const blocks *p, blocks_run *r)
{
    if (!sum_form(p, r, BLOCKS_FAST))
        sum_form(p, r, BLOCKS_SAFE);
    return r->complete ? r->region->emit_count : 0;
}

/* The box's first words. */
static const block_word *box_cells(const blocks *p, const blocks_run *r)
{
    return r->cells + r->box * box_words(p);
}

int64_t blocks_beats(const blocks *p, const blocks_run *r, int64_t number, int64_t most, const stream_word **words)
{
    const contraction *k = p->contraction;
    if (k->tree.columns > 1 || k->masks.count > 0)
        return 0;
    const blocks_region *g = r->region;
    int64_t n = 1, first = g->cells[number];
    while (n < most && number + n < g->emit_count && g->cells[number + n] == first + n * k->rows)
        n++;
    *words = box_cells(p, r) + first;
    return n;
}

uint64_t blocks_words(const blocks *p, const blocks_run *r, int64_t number, stream_word *words)
{
    const contraction *k = p->contraction;
    const blocks_form *f = &p->forms[BLOCKS_FAST];
    const block_word *cells = box_cells(p, r) + r->region->cells[number];
    for (int64_t i = 0; i < k->tree.columns; i++)
        for (int64_t row = 0; row < k->rows; row++)
            words[i * k->rows + row] = cells[i * f->outputs + row];
    return k->masks.count ? r->seen[r->box * p->box_vectors * f->group + r->region->emit[number]] : ~UINT64_C(0);
}
