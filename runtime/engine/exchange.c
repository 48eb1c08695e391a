#include "runtime/engine/exchange.h"

#include <stdlib.h>

#include "runtime/machine/proof.h"
#include "support/integer.h"

enum { MOST_BYTES_LOG2 = 34, PIECE_ELEMENTS = 1 << 16 /* read at once; fills whole bytes of any type */ };

bool exchange_is_gathered(const chain *c)
{
    return chain_part(c, &stage_switch) != NULL;
}

unsigned exchange_recorder(const chain *c)
{
    for (unsigned i = 0; i < c->stage_count; i++)
        if (c->stages[i].type == &stage_vector_slices)
            return i;
    return 0;
}

bool exchange_is_needed(const chain *c)
{
    return exchange_is_gathered(c) || exchange_recorder(c) > 0;
}

static bool read_slice(exchange *x, stage_run *from, int64_t slice, int64_t bytes)
{
    const stage *s = from->stage;
    machine *m = s->chain->machine;
    int64_t bits = dtype_row_of(s->out.dtype)->bits;
    if (proof_is_open(m) && s->type->proof_reads)
        s->type->proof_reads(s, from->unit_index);
    x->slices[slice] = malloc((size_t)bytes + 1);
    if (!x->slices[slice])
        return fault_memory(from->fault, s->commands, "the packets of a cluster");
    if (!s->type->open(from))
        return false;
    int64_t elements = s->out.packets * s->out.packet_elements;
    for (int64_t at = 0, n; at < elements; at += n) {
        n = smaller(elements - at, PIECE_ELEMENTS);
        s->type->read(from, x->slices[slice] + at * bits / 8, n);
    }
    return true;
}

bool exchange_gather(exchange *x, const chain *c, int64_t first_unit, fault *f)
{
    const stage *s = chain_source(c);
    int64_t slices = c->machine->target->slices_per_cluster, bytes, all;
    if (__builtin_mul_overflow(s->out.packets, s->out.packet_bytes, &bytes) || __builtin_mul_overflow(bytes, slices, &all) ||
        all > INT64_C(1) << MOST_BYTES_LOG2)
        return fault_set(f, E_RUN_LIMIT, c->commands, "%lld packets of %lld bytes in each slice are too many to be sent to other slices",
                         (long long)s->out.packets, (long long)s->out.packet_bytes);
    void *state = calloc(1, s->type->run_bytes);
    stage_run from = {.stage = s, .state = state, .fault = f};
    bool done = state || fault_memory(f, c->commands, "the source of a cluster");
    for (int64_t slice = 0; done && slice < slices && slice < EXCHANGE_MOST_SLICES; slice++) {
        from.unit_index = first_unit + slice;
        if (c->units.slices[slice / 64 % 4] >> slice % 64 & 1)
            done = read_slice(x, &from, slice, bytes);
    }
    free(state);
    return done;
}

const unsigned char *exchange_stream(exchange *x, int64_t number, int64_t bytes, void (*make)(void *user, unsigned char *to), void *user,
                                     const command *at, fault *f)
{
    pthread_mutex_lock(&x->lock);
    unsigned char *stream = x->streams[number];
    if (stream) {
        /* another slice has asked for it */
    } else if (bytes > (INT64_C(1) << MOST_BYTES_LOG2) - x->stream_bytes) {
        fault_set(f, E_RUN_LIMIT, at, "the packets that slices get from others are more than 2^%d bytes", MOST_BYTES_LOG2);
    } else if ((stream = malloc((size_t)bytes + 1))) {
        x->stream_bytes += bytes;
        make(user, stream);
        x->streams[number] = stream;
    } else {
        fault_memory(f, at, "the packets that slices get from others");
    }
    pthread_mutex_unlock(&x->lock);
    return stream;
}

void exchange_free(exchange *x)
{
    for (int i = 0; i < EXCHANGE_MOST_SLICES; i++) {
        free(x->slices[i]);
        free(x->streams[i]);
    }
}
