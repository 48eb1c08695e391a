#include "runtime/engine/vrf_store.h"

#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
#include "runtime/timing/duration.h"
#include "support/integer.h"

static bool plan_vrf_store(stage *s, chain *c, fault *f)
{
    const target *t = c->machine->target;
    vrf_store *k = s->plan;
    dtype type = (dtype)command_get(s->commands, VRF_STORE_DTYPE);
    *k = (vrf_store){.base = command_get(s->commands, VRF_STORE_BASE), .bytes = product_bounded(s->in.packets, t->flit_bytes)};
    if (type != s->in.dtype || (type != DTYPE_I32 && type != DTYPE_F32))
        return fault_set(f, E_RUN_CHAIN, s->commands, "stores %s elements, the stream has %s", dtype_row_of(type)->name,
                         dtype_row_of(s->in.dtype)->name);
    if (k->base % 4 || k->base > t->vrf_bytes || k->bytes > t->vrf_bytes - k->base)
        return fault_set(f, E_RUN_ACCESS, s->commands, "writes %lld bytes at %lld of the VRF, which has %lld", (long long)k->bytes,
                         (long long)k->base, (long long)t->vrf_bytes);
    return true;
}

typedef struct vrf_store_run {
    unsigned char *to; /* the next flit */
} vrf_store_run;

static bool open_vrf_store(stage_run *r)
{
    machine *m = r->stage->chain->machine;
    const vrf_store *k = r->stage->plan;
    vrf_store_run *at = r->state;
    at->to = memory_span(&m->units[r->unit_index].vrf, k->base, k->bytes);
    return at->to || fault_memory(r->fault, r->stage->commands, "a slice's VRF");
}

static bool push_vrf_store(stage_run *r, const void *flits, int64_t count)
{
    vrf_store_run *at = r->state;
    size_t bytes = (size_t)(count * r->stage->chain->machine->target->flit_bytes);
    memcpy(at->to, flits, bytes);
    at->to += bytes;
    return true;
}

static void vrf_store_cycles(const stage *s, duration *d)
{
    duration_busy(d, ENGINE_VRF, s->in.packets, 1);
}

static unsigned vrf_store_ranges(const stage *s, proof_range *out)
{
    const vrf_store *k = s->plan;
    *out = (proof_range){PROOF_VRF, k->base, k->base + k->bytes, true};
    return 1;
}

/* What follows the computed bytes of a flit is filling. */
static void vrf_store_proof(const stage *s, int64_t unit_index)
{
    const vrf_store *k = s->plan;
    machine *m = s->chain->machine;
    for (int64_t at = 0; at < k->bytes && proof_is_open(m); at += m->target->flit_bytes)
        proof_write(m, &m->units[unit_index].vrf, k->base + at, smaller(s->in.computed_bytes, m->target->flit_bytes));
}

const stage_type stage_vrf_store = {.plan_bytes = sizeof(vrf_store),
                                    .run_bytes = sizeof(vrf_store_run),
                                    .plan = plan_vrf_store,
                                    .open = open_vrf_store,
                                    .push = push_vrf_store,
                                    .cycles = vrf_store_cycles,
                                    .ranges = vrf_store_ranges,
                                    .proof_writes = vrf_store_proof,
                                    .field = &field_vrf_store};
