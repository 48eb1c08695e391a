#include "runtime/engine/trf_store.h"

#include <string.h>

#include "runtime/engine/trf.h"
#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
#include "runtime/timing/duration.h"
#include "runtime/timing/schedule.h"
#include "support/integer.h"

static bool store_fits(const trf_store *k, const target *t, const command *c, const stream_shape *flits, fault *f)
{
    if (k->rows * k->flits_per_row != flits->packets)
        return fault_set(f, E_RUN_CHAIN, c, "%lld Rows of %lld flits do not take the %lld flits that arrive", (long long)k->rows,
                         (long long)k->flits_per_row, (long long)flits->packets);
    int64_t partition = trf_partition_bytes(t, k->rows, k->mode), bytes = k->flits_per_row * k->flit_bytes;
    if (k->base + bytes > partition)
        return fault_set(f, E_RUN_ACCESS, c,
                         "writes outside the Row's partition: address %lld, size %lld bytes; %s with %lld Rows has "
                         "%lld bytes per Row",
                         (long long)k->base, (long long)bytes, trf_address_name(k->mode), (long long)k->rows, (long long)partition);
    if (k->base % t->trf_row_bytes)
        return fault_set(f, E_RUN_ACCESS, c, "base %lld is not a multiple of the %lld bytes of one write", (long long)k->base,
                         (long long)t->trf_row_bytes);
    return true;
}

static bool trf_store_plan(trf_store *k, const target *t, const command *c, const stream_shape *flits, fault *f)
{
    *k = (trf_store){.command = c,
                     .mode = (trf_address)command_get(c, TRF_STORE_ADDRESS),
                     .rows = command_get(c, TRF_STORE_ROWS),
                     .base = command_get(c, TRF_STORE_BASE),
                     .flits_per_row = command_get(c, TRF_STORE_FLITS_PER_ROW),
                     .flit_bytes = t->flit_bytes};
    if (!trf_rows_legal(t, k->rows))
        return fault_set(f, E_RUN_CHAIN, c, "the register file has no %lld Rows", (long long)k->rows);
    if (command_get(c, TRF_STORE_REG_TYPE) != dtype_row_of(flits->dtype)->trf_reg_type)
        return fault_set(f, E_RUN_CHAIN, c, "reg_type %lld is not that of %s", (long long)command_get(c, TRF_STORE_REG_TYPE),
                         dtype_row_of(flits->dtype)->name);
    return store_fits(k, t, c, flits, f);
}

typedef struct trf_store_run {
    unsigned char *file; /* the slice's register file */
    int64_t flit;        /* flits stored so far */
} trf_store_run;

static void trf_store_push(const trf_store *k, const target *t, trf_store_run *r, const unsigned char *flits, int64_t count)
{
    for (int64_t part; count > 0; count -= part) { /* as far as a bank goes */
        int64_t row = r->flit / k->flits_per_row, done = r->flit % k->flits_per_row;
        int64_t byte = k->base + done * k->flit_bytes;
        int64_t room = (trf_contiguous_bytes(t, k->mode, byte) + k->flit_bytes - 1) / k->flit_bytes;
        part = k->flits_per_row - done < count ? k->flits_per_row - done : count;
        part = room < part ? room : part;
        memcpy(r->file + trf_address_of(t, row, k->rows, k->mode, byte), flits, (size_t)(part * k->flit_bytes));
        flits += part * k->flit_bytes;
        r->flit += part;
    }
}

/* ---- as a stage of a chain ---- */

static bool plan_trf_store(stage *s, chain *c, fault *f)
{
    return trf_store_plan(s->plan, c->machine->target, s->commands, &s->in, f);
}

static bool open_trf_store(stage_run *r)
{
    machine *m = r->stage->chain->machine;
    trf_store_run *at = r->state;
    at->flit = 0;
    at->file = memory_span(&m->units[r->unit_index].trf, 0, m->target->trf_bytes);
    return at->file || fault_memory(r->fault, r->stage->commands, "a slice's TRF");
}

static bool push_trf_store(stage_run *r, const void *flits, int64_t count)
{
    trf_store_push(r->stage->plan, r->stage->chain->machine->target, r->state, flits, count);
    return true;
}

static void trf_store_cycles(const stage *s, duration *d)
{
    duration_busy(d, ENGINE_TRF, s->in.packets, 1);
}

static void trf_store_traffic(const stage *s, int64_t units, schedule_item *item)
{
    item->trf_written_bytes = product_bounded(product_bounded(s->in.packets, s->chain->machine->target->flit_bytes), units);
}

static unsigned trf_store_ranges(const stage *s, proof_range *out)
{
    *out = proof_trf_range(((const trf_store *)s->plan)->mode, true);
    return 1;
}

static void trf_store_proof(const stage *s, int64_t unit_index)
{
    const trf_store *k = s->plan;
    proof_trf_writes(s->chain->machine, unit_index, k->rows, k->mode, k->base, k->flits_per_row * k->flit_bytes);
}

const stage_type stage_trf_store = {.op = OP_TRF_STORE,
                                    .takes = 1 << STREAM_FLITS,
                                    .is_sink = true,
                                    .plan_bytes = sizeof(trf_store),
                                    .run_bytes = sizeof(trf_store_run),
                                    .plan = plan_trf_store,
                                    .open = open_trf_store,
                                    .push = push_trf_store,
                                    .cycles = trf_store_cycles,
                                    .traffic = trf_store_traffic,
                                    .ranges = trf_store_ranges,
                                    .proof_writes = trf_store_proof,
                                    .field = &field_trf_store};
