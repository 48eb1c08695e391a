#include "runtime/engine/generate.h"

#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/timing/duration.h"
#include "support/integer.h"

enum { PIECE_FLITS = 64 };

static bool plan_generate(stage *s, chain *c, fault *f)
{
    generate *k = s->plan;
    *k = (generate){(dtype)command_get(s->commands, GENERATE_DTYPE), (uint32_t)command_get(s->commands, GENERATE_WORD)};
    if (dtype_is_staging(k->dtype))
        return fault_set(f, E_RUN_CHAIN, s->commands, "%s elements are in no memory", dtype_row_of(k->dtype)->name);
    if (chain_peek(c)->op != OP_COMMIT)
        return chain_unexpected(c, "generate; commit can", f);
    int64_t flit = c->machine->target->flit_bytes;
    s->out = (stream_shape){.dtype = k->dtype,
                            .packet_elements = flit * 8 / dtype_row_of(k->dtype)->bits,
                            .packet_bytes = flit,
                            .packets = command_get(s->commands, GENERATE_FLITS),
                            .rows = 1,
                            .form = STREAM_FLITS,
                            .computed_bytes = flit};
    return true;
}

static bool drive_generate(stage_run *r)
{
    const generate *k = r->stage->plan;
    unsigned char piece[PIECE_FLITS * 32];
    for (size_t at = 0; at < sizeof piece; at++)
        piece[at] = (unsigned char)(k->word >> at % 4 * 8);
    for (int64_t left = r->stage->out.packets, n; left > 0; left -= n) {
        n = smaller(left, PIECE_FLITS);
        if (!stage_push(r->next, piece, n))
            return false;
    }
    return true;
}

static void generate_cycles(const stage *s, duration *d)
{
    d->items = s->out.packets;
    d->item_cycles = 1;
    d->in = BOUND_COMMIT;
}

const stage_type stage_generate = {
    .plan_bytes = sizeof(generate), .plan = plan_generate, .drive = drive_generate, .cycles = generate_cycles, .field = &field_generate};
