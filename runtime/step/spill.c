#include "runtime/step/spill.h"

#include <inttypes.h>
#include <setjmp.h>
#include <string.h>

#include "runtime/step/kernel.h"

bool step_spill_has_room(const step_program *p, const step_kernel_run *const *kernels, diag_list *diags)
{
    int64_t room = 0, holds = p->machine.onchip_bytes;
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].kernel)
            room += kernels[i]->cost.onchip_bytes; /* of a machine's memory each, and of few operators */
    if (holds == 0 || room <= holds)
        return true;
    diag *d = diag_add(diags, E_STEP_NUMBER, SRC_NOWHERE, "kernels of `%s` keep %" PRId64 " bytes on the chip, and it holds %" PRId64,
                       p->name, room, holds);
    diag_help(diags, d, "give it `--onchip-bytes=%" PRId64 "` or more", room);
    return false;
}

step_onchip step_spill_wanted(const step_run *r, uint32_t node)
{
    if (r->in_place[node])
        return (step_onchip){0, 0};
    step_onchip one = step_seen_onchip(r->program, node, r->seen);
    if (r->program->nodes[node].kernel) {
        one.paper += r->kernels[node]->cost.onchip_bytes;
        one.artifact += r->totals[node].values_in > 0 ? r->kernels[node]->cost.onchip_bytes : 0;
    }
    return one;
}

/* In whose memory the node's buffer is: that of the first bufferize on the way back along first inputs, else its own. */
static uint32_t owner_of(const step_program *p, uint32_t node)
{
    uint32_t at = node;
    if (p->nodes[node].op != STEP_STREAMIFY)
        return node;
    for (uint32_t i = 0; i < p->node_count && p->nodes[at].input_count > 0 && p->nodes[at].op != STEP_BUFFERIZE; i++)
        at = p->nodes[at].inputs[0].node;
    return p->nodes[at].op == STEP_BUFFERIZE ? at : node;
}

/* A run of the same program without values, which leaves everything as it was. */
static step_run rehearsal_of(const step_run *r)
{
    step_run first = *r;
    first.stores = ARENA_ARRAY(r->arena, step_store, r->program->tensor_count + 1);
    first.feeds = ARENA_ARRAY(r->arena, step_feed, r->program->node_count + 1);
    for (uint32_t i = 0; i < r->program->tensor_count; i++)
        first.stores[i].tiles = r->stores[i].tiles;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        first.feeds[i] = r->feeds[i];
        first.feeds[i].taken = NULL;
    }
    first.keep_sizes = first.keep_record = false;
    first.arrivals = NULL;
    first.pool = step_pool_new(r->arena, false);
    return first;
}

static void share_out(step_run *r, const step_run *first)
{
    step_spill *all = ARENA_ARRAY(r->arena, step_spill, r->program->node_count + 1);
    for (uint32_t i = 0; i < r->program->node_count; i++)
        all[i] = (step_spill){.bytes = step_spill_wanted(first, i).paper,
                              .accesses = first->totals[i].access_bytes,
                              .owner = owner_of(r->program, i),
                              .stays = r->program->nodes[i].kernel != NULL};
    step_spill_share_out(all, r->program->node_count, r->program->machine.onchip_bytes, r->arena);
    r->spills = all;
}

bool step_spill_prepare(step_run *r, diag_list *diags)
{
    if (r->program->machine.onchip_bytes == 0)
        return true;
    step_run first = rehearsal_of(r);
    jmp_buf outer; /* exhausted memory passes here, so that the pool is freed */
    memcpy(&outer, arena_guard(r->arena), sizeof outer);
    if (setjmp(*arena_guard(r->arena))) {
        memcpy(arena_guard(r->arena), &outer, sizeof outer);
        step_pool_free(first.pool);
        longjmp(*arena_guard(r->arena), 1);
    }
    bool good = step_engine_run(&first, diags);
    if (good)
        share_out(r, &first);
    memcpy(arena_guard(r->arena), &outer, sizeof outer);
    step_pool_free(first.pool);
    return good;
}

int64_t step_spill_bytes(const step_run *r)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; r->spills && i < r->program->node_count; i++)
        bytes += r->spills[i].spilled;
    return bytes;
}
