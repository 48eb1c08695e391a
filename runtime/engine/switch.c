#include "runtime/engine/switch.h"

#include <string.h>

#include "runtime/timing/duration.h"
#include "support/integer.h"

int64_t routes_copied(const routes *k, int64_t d, unsigned char *from)
{
    bool copies[EXCHANGE_MOST_SLICES] = {false};
    int64_t base = 0, count = 0;
    for (unsigned i = 0; i < k->digit_count; i++)
        base += k->digits[i].moved ? 0 : d / k->digits[i].div % k->digits[i].size * k->digits[i].weight;
    for (int64_t j = 0; j < k->copied; j++) {
        int64_t s = base, rest = j;
        for (unsigned i = 0; i < k->digit_count; i++)
            if (k->digits[i].moved) {
                s += rest % k->digits[i].size * k->digits[i].weight;
                rest /= k->digits[i].size;
            }
        if (s >= k->slices)
            return -1;
        copies[s] = true;
    }
    for (int64_t s = 0; s < k->slices; s++)
        if (copies[s])
            from[count++] = (unsigned char)s;
    return count;
}

void routes_origin(const routes *k, int64_t d, int64_t u, const unsigned char *from, int64_t *slice, int64_t *step)
{
    int64_t s1 = k->slice1, s0 = k->slice0, t0 = k->time0, inner = s1 * s0, d2 = d / inner * inner, d1 = d / s0 % s1, d0 = d % s0;
    *slice = d;
    *step = u;
    switch (k->topology) {
    case TOPOLOGY_FORWARDING: return;
    case TOPOLOGY_BROADCAST01: /* [time1, slice1, time0, slice0] */
        *slice = d2 + u / s0 / t0 % s1 * s0 + u % s0;
        *step = u / s0 / t0 / s1 * t0 + u / s0 % t0;
        return;
    case TOPOLOGY_BROADCAST1: /* [time, slice1] */
        *slice = d2 + u % s1 * s0 + d0;
        *step = u / s1;
        return;
    case TOPOLOGY_TRANSPOSE: /* slices [slice2, slice0, slice1] */ *slice = d2 + d % s1 * s0 + d / s1 % s0; return;
    case TOPOLOGY_INTER_TRANSPOSE: /* slices [slice2, time1, slice0], time [time2, time0, slice1] */
        *slice = d2 + u % s1 * s0 + d0;
        *step = (u / s1 / t0 * s1 + d1) * t0 + u / s1 % t0;
        return;
    case TOPOLOGY_TRANSPOSED_BROADCAST1: /* slices [slice2, new, slice1], time [time, slice0] */
        *slice = d2 + d % s1 * s0 + u % s0;
        *step = u / s0;
        return;
    case TOPOLOGY_CUSTOM:
        *slice = from[u % k->copied];
        *step = u / k->copied;
        return;
    }
}

/* Steps that leave for each that comes. */
static int64_t grows(const routes *k)
{
    switch (k->topology) {
    case TOPOLOGY_BROADCAST01: return k->slice1 * k->slice0;
    case TOPOLOGY_BROADCAST1: return k->slice1;
    case TOPOLOGY_TRANSPOSED_BROADCAST1: return k->slice0;
    case TOPOLOGY_CUSTOM: return k->copied;
    default: return 1;
    }
}

static bool named_legal(const routes *k, const command *c, const stream_shape *in, fault *f)
{
    int64_t inner = k->slice1 * k->slice0;
    bool inter = k->topology == TOPOLOGY_INTER_TRANSPOSE, timed = inter || k->topology == TOPOLOGY_BROADCAST01;
    if (k->ring != inner || k->slices < inner || (!timed && k->time0 != 1) || (k->topology == TOPOLOGY_FORWARDING && inner != 1))
        return fault_set(f, E_RUN_CHAIN, c, "%s of slice1 %lld, slice0 %lld and time0 %lld has no ring of %lld slices",
                         topology_name(k->topology), (long long)k->slice1, (long long)k->slice0, (long long)k->time0, (long long)k->ring);
    int64_t block = inter ? k->slice1 * k->time0 : k->time0;
    if (in->packets % block)
        return fault_set(f, E_RUN_CHAIN, c, "%lld packets in each slice are no blocks of %lld", (long long)in->packets, (long long)block);
    return true;
}

static bool is_out(const chain *c, int64_t slice)
{
    return c->out_units.slices[slice / 64 % 4] >> slice % 64 & 1;
}

/* Every slice that receives copies as many packets, and from slices of its ring. */
static bool custom_legal(const routes *k, const chain *c, const command *at, fault *f)
{
    unsigned char from[EXCHANGE_MOST_SLICES];
    if (k->slice1 != 1 || k->slice0 != 1 || k->time0 != 1)
        return fault_set(f, E_RUN_CHAIN, at, "a CustomBroadcast has no slice1, slice0 and time0");
    for (int64_t d = 0; d < k->slices; d++) {
        if (!is_out(c, d))
            continue;
        if (routes_copied(k, d, from) != k->copied)
            return fault_set(f, E_RUN_CHAIN, at, "slice %lld does not copy the packets of %lld slices", (long long)d, (long long)k->copied);
        for (int64_t i = 0; i < k->copied; i++)
            if (c->units.slices[from[i] / 64 % 4] >> from[i] % 64 & 1 && from[i] / k->ring != d / k->ring)
                return fault_set(f, E_RUN_CHAIN, at, "slice %lld copies packets of slice %d, which is in another ring of %lld slices",
                                 (long long)d, from[i], (long long)k->ring);
    }
    return true;
}

static bool plan_switch(stage *s, chain *c, fault *f)
{
    routes *k = s->plan;
    const command *at = s->commands, *snoop = chain_take(c, OP_SNOOP);
    *k = (routes){.topology = (topology)command_get(at, SWITCH_TOPOLOGY),
                  .ring = command_get(at, SWITCH_RING),
                  .slice1 = command_get(at, SWITCH_SLICE1),
                  .slice0 = command_get(at, SWITCH_SLICE0),
                  .time0 = command_get(at, SWITCH_TIME0),
                  .slices = smaller(c->machine->target->slices_per_cluster, EXCHANGE_MOST_SLICES),
                  .copied = 1};
    for (int i = 0; i < 4; i++)
        c->out_units.slices[i] = (uint64_t)command_get(at, (command_field)(SWITCH_SLICES_0 + i));
    if ((snoop != NULL) != (k->topology == TOPOLOGY_CUSTOM))
        return fault_set(f, E_RUN_CHAIN, at, snoop ? "is followed by snoop, which only a CustomBroadcast is" : "lacks its snoop");
    for (unsigned i = 0; snoop && i < snoop->entry_count; i++) {
        snoop_digit *x = &k->digits[k->digit_count++];
        *x = (snoop_digit){command_entry(snoop, i, SNOOP_DIV), command_entry(snoop, i, SNOOP_SIZE), command_entry(snoop, i, SNOOP_WEIGHT),
                           command_entry(snoop, i, SNOOP_MOVED)};
        k->copied *= x->moved ? x->size : 1;
        if (k->copied > k->slices || (x->moved && x->div != 1))
            return fault_set(f, E_RUN_CHAIN, snoop, "a slice copies the packets of more slices than there are, or a moved digit has a div");
    }
    if (!(snoop ? custom_legal(k, c, at, f) : named_legal(k, at, &s->in, f)))
        return false;
    s->out = s->in;
    if (__builtin_mul_overflow(s->in.packets, grows(k), &s->out.packets))
        return fault_set(f, E_RUN_CHAIN, at, "the number of packets overflows");
    return true;
}

typedef struct switch_run {
    const unsigned char *stream; /* all that the slice gets, one packet after the other; */
    int64_t given;               /* elements of it */
} switch_run;

/* What is written for the slices that get the same. */
typedef struct stream_wanted {
    const routes *routes;
    const stage_run *run;
    int64_t slice; /* one of them */
    const unsigned char *from;
} stream_wanted;

/* Packets that come from one slice, one after the other, as they went in there. */
static int64_t steps_together(const routes *k)
{
    return k->topology == TOPOLOGY_BROADCAST01 && k->slice0 == 1 ? k->time0 : 1;
}

static void make_stream(void *wanted, unsigned char *to)
{
    const stream_wanted *x = wanted;
    const stream_shape *in = &x->run->stage->in;
    int64_t packets = x->run->stage->out.packets, n = steps_together(x->routes);
    for (int64_t step = 0; step < packets; step += n, to += n * in->packet_bytes) {
        int64_t slice, in_step;
        routes_origin(x->routes, x->slice, step, x->from, &slice, &in_step);
        const unsigned char *given = x->run->exchange->slices[slice];
        if (given)
            memcpy(to, given + in_step * in->packet_bytes, (size_t)(n * in->packet_bytes));
        else
            memset(to, x->run->stage->chain->machine->options.poison, (size_t)(n * in->packet_bytes));
    }
}

/* A number of the stream, which those slices have in common that get it. */
static int64_t stream_number(const routes *k, int64_t d, const unsigned char *from)
{
    int64_t inner = k->slice1 * k->slice0, first = d / inner * inner;
    switch (k->topology) {
    case TOPOLOGY_BROADCAST01: return first;
    case TOPOLOGY_BROADCAST1: return first + d % k->slice0;
    case TOPOLOGY_TRANSPOSED_BROADCAST1: return first + d % k->slice1;
    case TOPOLOGY_CUSTOM: return from[0]; /* slices that copy from different ones begin with different ones: their distances are the same */
    case TOPOLOGY_FORWARDING:
    case TOPOLOGY_TRANSPOSE:
    case TOPOLOGY_INTER_TRANSPOSE: return d;
    }
    return d;
}

static bool open_switch(stage_run *r)
{
    const routes *k = r->stage->plan;
    const stream_shape *out = &r->stage->out;
    switch_run *at = r->state;
    int64_t d = r->unit_index % k->slices, slice, step;
    unsigned char from[EXCHANGE_MOST_SLICES];
    *at = (switch_run){.given = 0};
    if (k->topology == TOPOLOGY_CUSTOM && routes_copied(k, d, from) != k->copied)
        return false;
    routes_origin(k, d, 0, from, &slice, &step);
    if (k->topology == TOPOLOGY_FORWARDING || k->topology == TOPOLOGY_TRANSPOSE)
        at->stream = r->exchange->slices[slice];
    if (!at->stream)
        at->stream = exchange_stream(r->exchange, stream_number(k, d, from), out->packets * out->packet_bytes, make_stream,
                                     &(stream_wanted){k, r, d, from}, r->stage->commands, r->fault);
    return at->stream;
}

static bool switch_has_places(const stage_run *r, int64_t elements)
{
    return elements * dtype_row_of(r->stage->in.dtype)->bits % 8 == 0;
}

static bool switch_places(stage_run *r, int64_t elements, const unsigned char **to, int64_t count)
{
    switch_run *at = r->state;
    to[0] = at->stream + at->given * dtype_row_of(r->stage->in.dtype)->bits / 8;
    at->given += elements * count;
    return true;
}

/* Packets are whole bytes, and what is asked for ends inside of one or with it. */
static void read_switch(stage_run *r, unsigned char *to, int64_t elements)
{
    const unsigned char *place;
    switch_places(r, elements, &place, 1);
    memcpy(to, place, (size_t)(elements * dtype_row_of(r->stage->in.dtype)->bits / 8));
}

/* To a stream port, packets as they are. */
static bool drive_switch(stage_run *r)
{
    enum { PIECE_BYTES = 8192 };
    unsigned char piece[PIECE_BYTES];
    const stream_shape *shape = &r->stage->out;
    int64_t bits = dtype_row_of(shape->dtype)->bits;
    for (int64_t left = shape->packets * shape->packet_bytes, n; left > 0; left -= n) {
        n = smaller(left, PIECE_BYTES);
        read_switch(r, piece, n * 8 / bits);
        if (!stage_push(r->next, piece, n))
            return false;
    }
    return true;
}

/* Every packet passes every slice of its ring; rings work side by side. */
static void switch_cycles(const stage *s, duration *d)
{
    const routes *k = s->plan;
    const target *t = s->chain->machine->target;
    int64_t flits = larger(ceil_div(s->in.packet_bytes, t->flit_bytes), 1);
    duration_routes(d, s->in.packets, k->ring * flits, BOUND_SWITCH);
    duration_busy(d, ENGINE_SWITCH, s->in.packets, k->ring * flits);
}

static bool switch_places_stand(const stage_run *r)
{
    (void)r;
    return true;
}

const stage_type stage_switch = {.plan_bytes = sizeof(routes),
                                 .run_bytes = sizeof(switch_run),
                                 .plan = plan_switch,
                                 .open = open_switch,
                                 .read = read_switch,
                                 .has_places = switch_has_places,
                                 .places = switch_places,
                                 .places_stand = switch_places_stand,
                                 .drive = drive_switch,
                                 .cycles = switch_cycles,
                                 .field = &field_switch};
