#include "runtime/fast/blocks_drive.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "support/integer.h"

enum { LEAST_RUN = 8 /* beats: fewer are copied, so that those after it take many at once */ };

typedef struct blocks_driver {
    const blocks *plan;
    const collect *collect;
    const accumulate *sums;
    blocks_run block;
    collect_run at;
    unsigned char *beats; /* complete ones that have not been pushed */
    int64_t beat_count;
} blocks_driver;

unsigned blocks_chain_plan(blocks *p, const chain *c)
{
    static const stage_type *const taken[BLOCKS_STAGES] = {&stage_collect, &stage_align, &stage_contract, &stage_accumulate};
    unsigned first = 1, joined = 0;
    while (first < c->stage_count && c->stages[first].type != &stage_collect)
        first++;
    while (joined < BLOCKS_STAGES && first + joined < c->stage_count && c->stages[first + joined].type == taken[joined])
        joined++;
    bool all = joined == BLOCKS_STAGES && first + BLOCKS_STAGES < c->stage_count;
    return all && blocks_plan(p, chain_contraction(c), chain_accumulate(c), c->machine->options.cpu) ? first : 0;
}

void *blocks_driver_new(const blocks *p, const chain *c)
{
    blocks_driver *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->plan = p;
    d->collect = chain_collect(c);
    d->sums = chain_accumulate(c);
    size_t bytes = (size_t)((CHAIN_BLOCK_FLITS + larger(d->sums->beats_each, LEAST_RUN)) * d->sums->beat_bytes);
    d->beats = malloc(bytes);
    if (!d->beats || !blocks_run_new(p, &d->block)) {
        blocks_driver_free(d);
        return NULL;
    }
    memset(d->beats, c->machine->options.poison, bytes);
    return d;
}

void blocks_driver_free(void *driver)
{
    blocks_driver *d = driver;
    if (!d)
        return;
    blocks_run_free(&d->block);
    free(d->beats);
    free(d);
}

/* The next packets where they lie, or read to where the blocks have room for them. */
static void read_places(blocks_driver *d, stage_run *from, int64_t packets)
{
    int64_t flits = d->plan->contraction->collect_flits;
    d->block.apart = d->plan->raw_bytes;
    d->block.stands = false;
    if (collect_has_places(d->collect, from, flits)) {
        d->block.stands = from->stage->type->places_stand && from->stage->type->places_stand(from);
        if (!from->stage->type->places(from, flits * d->collect->flit_elements, d->block.places, packets))
            d->block.apart = 0;
        return;
    }
    collect_read(d->collect, &d->at, from, d->block.raw, packets * flits);
    d->block.places[0] = d->block.raw;
}

static bool flush_beats(blocks_driver *d, stage_run *next)
{
    int64_t count = d->beat_count;
    d->beat_count = 0;
    return count == 0 || stage_push(next, d->beats, count);
}

/* Output `number` of a region and those after it whose sums are beats already. Returns how many; 0: something failed. */
static int64_t push_outputs(blocks_driver *d, stage_run *next, int64_t number)
{
    const accumulate *k = d->sums;
    stream_word words[STREAM_MOST_WORDS];
    const stream_word *beats;
    int64_t n = k->rows == k->lanes && !k->sequential ? blocks_beats(d->plan, &d->block, number, CHAIN_BLOCK_FLITS, &beats) : 0;
    if (n >= LEAST_RUN)
        return flush_beats(d, next) && stage_push(next, beats, n) ? n : 0;
    unsigned char *to = d->beats + d->beat_count * k->beat_bytes;
    if (n > 0) {
        memcpy(to, beats, (size_t)(n * k->beat_bytes));
        d->beat_count += n;
    } else {
        uint64_t seen = blocks_words(d->plan, &d->block, number, words);
        d->beat_count += accumulate_emit(k, words, seen, to);
        n = 1;
    }
    return d->beat_count < CHAIN_BLOCK_FLITS || flush_beats(d, next) ? n : 0;
}

bool blocks_drive(void *driver, stage_run *from, stage_run *next)
{
    blocks_driver *d = driver;
    machine *m = from->stage->chain->machine;
    const unsigned char *file = weights_file(&d->plan->contraction->weights, &m->units[from->unit_index].trf);
    if (!file)
        return fault_memory(from->fault, d->plan->contraction->commands.trf_read, "a slice's TRF");
    d->at = (collect_run){0};
    d->beat_count = 0;
    blocks_open(d->plan, &d->block, file, memory_is_shared(&m->units[from->unit_index].trf));
    bool going = true;
    for (int64_t packets; going && (packets = blocks_next(d->plan, &d->block)) > 0;) {
        read_places(d, from, packets);
        int64_t n = 1;
        for (int64_t i = 0, count = blocks_sum(d->plan, &d->block); i < count && n > 0; i += n)
            n = push_outputs(d, next, i);
        going = n > 0;
    }
    blocks_close(d->plan);
    return going && flush_beats(d, next);
}
