/* Cast Engine: beats and flits become flits of a narrower type, each on its own. */
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/tensor/convert.h"
#include "runtime/timing/duration.h"

typedef struct cast {
    convert_run *convert;
    int64_t elements; /* of one flit */
} cast;

typedef struct cast_run {
    unsigned char *narrowed; /* as many flits as are pushed at once; bytes after the elements keep the poison */
    int64_t capacity;        /* flits */
} cast_run;

static bool plan_cast(stage *s, chain *c, fault *f)
{
    cast *k = s->plan;
    dtype from = (dtype)command_get(s->commands, CAST_FROM), to = (dtype)command_get(s->commands, CAST_TO);
    *k = (cast){.convert = convert_cast(from, to), .elements = c->machine->target->flit_bytes / 4};
    if (!k->convert)
        return fault_set(f, E_RUN_CHAIN, s->commands, "no cast from %s to %s", dtype_row_of(from)->name, dtype_row_of(to)->name);
    if (from != s->in.dtype)
        return fault_set(f, E_RUN_CHAIN, s->commands, "takes %s elements, the stream has %s", dtype_row_of(from)->name,
                         dtype_row_of(s->in.dtype)->name);
    s->out = s->in;
    s->out.dtype = to;
    s->out.form = STREAM_BEATS;
    s->out.packet_elements = s->in.packet_bytes * 8 / dtype_row_of(to)->bits;
    s->out.computed_bytes = s->in.computed_bytes / 4 * dtype_row_of(to)->bits / 8;
    return true;
}

static bool cast_room(stage_run *r, int64_t flits)
{
    cast_run *at = r->state;
    if (flits <= at->capacity)
        return true;
    size_t bytes = (size_t)(flits * r->stage->chain->machine->target->flit_bytes);
    free(at->narrowed);
    at->narrowed = malloc(bytes);
    at->capacity = at->narrowed ? flits : 0;
    if (!at->narrowed)
        return fault_memory(r->fault, r->stage->commands, "the buffers of a slice");
    memset(at->narrowed, r->stage->chain->machine->options.poison, bytes);
    return true;
}

static void cast_run_free(stage_run *r)
{
    free(((cast_run *)r->state)->narrowed);
}

static bool push_cast(stage_run *r, const void *flits, int64_t count)
{
    const cast *k = r->stage->plan;
    int64_t bytes = r->stage->chain->machine->target->flit_bytes, apart = r->stage->out_bytes;
    if (!cast_room(r, count))
        return false;
    unsigned char *to = ((cast_run *)r->state)->narrowed;
    if (apart < bytes)
        k->convert(to, flits, count * k->elements);
    for (int64_t i = 0; apart == bytes && i < count; i++)
        k->convert(to + i * bytes, (const unsigned char *)flits + i * bytes, k->elements);
    return stage_push(r->next, to, count);
}

static void cast_cycles(const stage *s, duration *d)
{
    duration_busy(d, ENGINE_CAST, s->out.packets, 1);
}

const stage_type stage_cast = {.packs = true,
                               .plan_bytes = sizeof(cast),
                               .run_bytes = sizeof(cast_run),
                               .plan = plan_cast,
                               .run_free = cast_run_free,
                               .push = push_cast,
                               .cycles = cast_cycles,
                               .field = &field_cast};
