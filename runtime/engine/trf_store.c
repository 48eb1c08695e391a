#include "runtime/engine/trf_store.h"

#include <string.h>

#include "runtime/engine/trf.h"
#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
#include "runtime/tensor/numeric.h"
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
    const dtype_row *type = dtype_row_of(flits->dtype);
    k->bits = type->bits;
    k->zero_point = flits->zero_point;
    k->widens = trf_widens(flits->dtype, command_get(c, TRF_STORE_REG_TYPE));
    k->signs = dtype_is_staging(flits->dtype) && !k->widens;
    k->flit_bytes = t->flit_bytes * (k->widens ? 2 : 1);
    if (!k->widens && command_get(c, TRF_STORE_REG_TYPE) != type->trf_reg_type)
        return fault_set(f, E_RUN_CHAIN, c, "reg_type %lld is not that of %s", (long long)command_get(c, TRF_STORE_REG_TYPE), type->name);
    return store_fits(k, t, c, flits, f);
}

typedef struct trf_store_run {
    unsigned char *file;  /* the slice's register file */
    unsigned char *signs; /* NULL: its elements have no bit more */
    int64_t flit;         /* flits stored so far */
} trf_store_run;

/* Elements of 4 bits less the zero point, one in a byte each. */
static void widen_flit(const trf_store *k, unsigned char *to, const unsigned char *flit)
{
    for (int64_t i = 0; i < k->flit_bytes; i++)
        to[i] = (unsigned char)(numeric_i4_get(flit, i) - k->zero_point);
}

/* Elements less the zero point: their low bits, and apart their signs. */
static void store_differences(const trf_store *k, unsigned char *to, unsigned char *signs, const unsigned char *flit)
{
    for (int64_t i = 0; i < k->flit_bytes * 8 / k->bits; i++) {
        int32_t value = (k->bits == 4 ? numeric_i4_get(flit, i) : (int8_t)flit[i]) - (int32_t)k->zero_point;
        if (k->bits == 4) {
            numeric_i4_put(to, i, value);
            numeric_i4_put(signs, i, value < 0 ? -1 : 0);
        } else {
            to[i] = (unsigned char)value;
            signs[i] = value < 0 ? 0xff : 0;
        }
    }
}

static void trf_store_push(const trf_store *k, const target *t, trf_store_run *r, const unsigned char *flits, int64_t count)
{
    for (int64_t part; count > 0; count -= part) { /* as far as a bank goes */
        int64_t row = r->flit / k->flits_per_row, done = r->flit % k->flits_per_row;
        int64_t byte = k->base + done * k->flit_bytes;
        int64_t room = (trf_contiguous_bytes(t, k->mode, byte) + k->flit_bytes - 1) / k->flit_bytes;
        part = k->flits_per_row - done < count ? k->flits_per_row - done : count;
        part = room < part ? room : part;
        int64_t at = trf_address_of(t, row, k->rows, k->mode, byte);
        if (!k->widens && !k->signs)
            memcpy(r->file + at, flits, (size_t)(part * k->flit_bytes));
        for (int64_t i = 0; (k->widens || k->signs) && i < part; i++)
            if (k->widens)
                widen_flit(k, r->file + at + i * k->flit_bytes, flits + i * t->flit_bytes);
            else
                store_differences(k, r->file + at + i * k->flit_bytes, r->signs + at + i * k->flit_bytes, flits + i * t->flit_bytes);
        flits += part * t->flit_bytes;
        r->flit += part;
    }
}

/* ---- as a stage of a chain ---- */

static bool plan_trf_store(stage *s, chain *c, fault *f)
{
    if (!trf_store_plan(s->plan, c->machine->target, s->commands, &s->in, f))
        return false;
    s->stored = trf_stored(s->in.dtype, command_get(s->commands, TRF_STORE_REG_TYPE));
    return true;
}

static bool open_trf_store(stage_run *r)
{
    machine *m = r->stage->chain->machine;
    trf_store_run *at = r->state;
    at->flit = 0;
    at->file = memory_span(&m->units[r->unit_index].trf, 0, m->target->trf_bytes);
    at->signs = NULL;
    if (((const trf_store *)r->stage->plan)->signs)
        at->signs = memory_span(&m->units[r->unit_index].trf_signs, 0, m->target->trf_bytes);
    return (at->file && (at->signs || !((const trf_store *)r->stage->plan)->signs)) ||
           fault_memory(r->fault, r->stage->commands, "a slice's TRF");
}

static bool push_trf_store(stage_run *r, const void *flits, int64_t count)
{
    trf_store_push(r->stage->plan, r->stage->chain->machine->target, r->state, flits, count);
    return true;
}

static void trf_store_cycles(const stage *s, duration *d)
{
    if (!command_get(s->commands,
                     TRF_STORE_SHORT)) /* the full path: a cycle in each stage before this one, until the first flit is through */
        d->fill += s - s->chain->stages;
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

const stage_type stage_trf_store = {.plan_bytes = sizeof(trf_store),
                                    .run_bytes = sizeof(trf_store_run),
                                    .plan = plan_trf_store,
                                    .open = open_trf_store,
                                    .push = push_trf_store,
                                    .cycles = trf_store_cycles,
                                    .traffic = trf_store_traffic,
                                    .ranges = trf_store_ranges,
                                    .proof_writes = trf_store_proof,
                                    .field = &field_trf_store};
