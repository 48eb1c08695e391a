#include "runtime/timing/calls.h"

#include "codegen/copy_command.h"
#include "runtime/tensor/port_data.h"
#include "runtime/timing/analysis.h"
#include "runtime/timing/dm_extent.h"
#include "runtime/timing/schedule.h"
#include "support/integer.h"

enum { CONTEXTS = CONTEXT_DMA + 1, NO_INPUT = -1 };

/* ---- what a call moves ---- */

/* The number of the input port in whose place in HBM a plain copy begins to read. */
static int input_read(const target *t, const binary_kernel *k, const command *c)
{
    if (c->op != OP_DMA)
        return NO_INPUT;
    copy_command copy = copy_command_read(c);
    int64_t address = copy.source.base % t->hbm_chip_stride_bytes;
    if (copy.source.memory != COPY_HBM || copy.destination.memory != COPY_DM)
        return NO_INPUT;
    for (uint32_t i = 0, input = 0; i < k->port_count && input < CALL_INPUTS; i++) {
        const port *p = &k->ports[i];
        if (p->direction != PORT_IN)
            continue;
        if (p->space == PORT_HBM && address >= p->address && address - p->address < port_physical_bytes(p, k->axes))
            return (int)input;
        input++;
    }
    return NO_INPUT;
}

/* Does another command write where this copy does? Two copies may write the same bytes of different slices. */
static bool is_overwritten(const target *t, const binary_kernel *k, const command *kept)
{
    dm_extent slice = dm_extent_of(t, kept), all = dm_extent_written(kept);
    for (int s = 0; s < CONTEXTS; s++)
        for (size_t i = 0; i < k->streams[s].count; i++) {
            const command *c = &k->streams[s].commands[i];
            if (c == kept)
                continue;
            if (command_is_copy(c) ? dm_extents_meet(all, dm_extent_written(c))
                                   : c->op == OP_COMMIT && dm_extents_meet(slice, dm_extent_of(t, c)))
                return true;
        }
    return false;
}

static int64_t slices_of_copy(const target *t, const command *c)
{
    copy_command k = copy_command_read(c);
    int64_t slices = 1;
    for (unsigned i = 0; k.destination.memory == COPY_DM && i < k.count; i++)
        if (k.destination.stride[i] != 0 && k.destination.stride[i] % t->dm_slice_stride_bytes == 0)
            slices *= k.size[i];
    return slices;
}

bool call_facts_of(const target *t, const binary_kernel *k, arena *a, diag_list *diags, call_facts *out)
{
    schedule s;
    analysis x;
    bool lost[CALL_INPUTS] = {false};
    *out = (call_facts){.slices = 1};
    if (!schedule_make(t, k, TIMING_SCHEDULE, a, diags, &s)) /* bytes are the same for all of them, and this one follows no TRF */
        return false;
    analysis_make(&s, a, &x);
    out->hbm_bytes = x.hbm_read_bytes + x.hbm_written_bytes;
    out->trf_bytes = x.trf_written_bytes;
    for (size_t i = 0; i < s.count; i++) {
        const schedule_item *item = &s.items[i];
        int input = input_read(t, k, item->commands);
        out->slices = larger(out->slices, command_is_copy(item->commands) ? slices_of_copy(t, item->commands) : item->units);
        for (size_t n = 0; n < item->count; n++)
            out->dm_bytes = larger(out->dm_bytes, dm_extent_of(t, &item->commands[n]).end);
        if (input == NO_INPUT)
            continue;
        out->kept_bytes[input] += item->alone.dma.steps * copy_command_read(item->commands).packet_bytes;
        lost[input] = lost[input] || is_overwritten(t, k, item->commands);
    }
    for (int i = 0; i < CALL_INPUTS; i++)
        if (lost[i])
            out->kept_bytes[i] = 0;
    return true;
}

/* ---- one stream of commands for all calls ---- */

bool calls_may_follow(const binary_kernel *k)
{
    for (int s = 0; s < CONTEXTS; s++) {
        bool selects = false, first_selects = false, any = false;
        for (size_t i = 0; i < k->streams[s].count; i++) {
            const command *c = &k->streams[s].commands[i];
            if (c->op == OP_WAIT)
                continue;
            first_selects = any ? first_selects : c->op == OP_UNITS;
            selects = selects || c->op == OP_UNITS;
            any = true;
        }
        if (selects && !first_selects)
            return false;
    }
    return true;
}

/* A piece of a stream: the commands of one call, or of the context DMA those before it waits for anything, or the others. */
typedef struct piece {
    size_t begin, end; /* of the kernel's commands */
    size_t at;         /* where those that are left begin in the new stream, after the waits between calls */
} piece;

typedef struct call {
    piece head[CONTEXTS], rest[CONTEXTS]; /* head: of the context DMA only */
    size_t end[CONTEXTS];                 /* in the new stream, after its last command */
} call;

typedef struct merging {
    const target *target;
    const binary_kernel *kernel;
    const call_choice *choice;
    call *calls;
    command *commands[CONTEXTS];
    size_t count[CONTEXTS];
} merging;

static bool is_left_out(const merging *m, uint32_t number, const command *c)
{
    if (m->choice->kept == 0 || (number == 0 && m->choice->first_loads))
        return false;
    int input = input_read(m->target, m->kernel, c);
    return input != NO_INPUT && m->choice->kept >> input & 1;
}

/* Copies before which nothing is waited for. */
static size_t head_count(const binary_kernel *k)
{
    size_t n = 0;
    const command *c = k->streams[CONTEXT_DMA].commands;
    while (n < k->streams[CONTEXT_DMA].count && command_is_copy(&c[n]) && copy_command_read(&c[n]).source.memory != COPY_DM)
        n++;
    return n;
}

static size_t left_before(const merging *m, uint32_t number, int stream, size_t begin, size_t end)
{
    size_t left = 0;
    for (size_t i = begin; i < end; i++)
        left += !is_left_out(m, number, &m->kernel->streams[stream].commands[i]);
    return left;
}

static void put(merging *m, int stream, const command *c)
{
    if (m->commands[stream])
        m->commands[stream][m->count[stream]] = *c;
    m->count[stream]++;
}

/* What call `number` has done in a context, once it is known where. */
static void put_wait(merging *m, int stream, int other, uint32_t number)
{
    size_t count = m->calls[number].end[other];
    if (stream == other || m->kernel->streams[other].count == 0)
        return;
    command wait = {.op = OP_WAIT, .context = (context)stream};
    command_set(&wait, WAIT_CONTEXT, other);
    command_set(&wait, WAIT_COUNT, count > 0 ? (int64_t)count : 1);
    put(m, stream, &wait);
}

/* Where the command that is number `index` of a call ends in the new stream. */
static size_t new_count(const merging *m, uint32_t number, int stream, size_t index)
{
    const call *c = &m->calls[number];
    const piece *p = index <= c->head[stream].end ? &c->head[stream] : &c->rest[stream];
    return p->at + left_before(m, number, stream, p->begin, index);
}

static void put_piece(merging *m, int stream, uint32_t number, piece *p)
{
    p->at = m->count[stream];
    for (size_t i = p->begin; i < p->end; i++) {
        command c = m->kernel->streams[stream].commands[i];
        if (is_left_out(m, number, &c))
            continue;
        if (c.op == OP_WAIT)
            command_set(&c, WAIT_COUNT,
                        (int64_t)new_count(m, number, (int)command_get(&c, WAIT_CONTEXT), (size_t)command_get(&c, WAIT_COUNT)));
        put(m, stream, &c);
    }
    m->calls[number].end[stream] = m->count[stream];
}

/* A call computes when the one before it has; without room for two it begins when all of that one is done. */
static void put_chains(merging *m, int stream, uint32_t number)
{
    for (int other = 0; number > 0 && other < CONTEXTS; other++)
        if (other != CONTEXT_DMA || !m->choice->ahead)
            put_wait(m, stream, other, number - 1);
    put_piece(m, stream, number, &m->calls[number].rest[stream]);
}

/* Copies into the half that the call before the last one had. */
static void put_head(merging *m, uint32_t number)
{
    uint32_t distance = m->choice->ahead ? 2 : 1;
    for (int other = 0; number >= distance && other < CONTEXTS; other++)
        put_wait(m, CONTEXT_DMA, other, number - distance);
    put_piece(m, CONTEXT_DMA, number, &m->calls[number].head[CONTEXT_DMA]);
}

static void put_all(merging *m)
{
    uint32_t calls = m->choice->count;
    m->count[0] = m->count[1] = m->count[2] = 0;
    for (int s = 0; s < CONTEXTS; s++)
        for (uint32_t i = 0; s != CONTEXT_DMA && i < calls; i++)
            put_chains(m, s, i);
    put_head(m, 0);
    for (uint32_t i = 0; i < calls; i++) {
        if (i + 1 < calls && m->choice->ahead)
            put_head(m, i + 1);
        put_piece(m, CONTEXT_DMA, i, &m->calls[i].rest[CONTEXT_DMA]);
        if (i + 1 < calls && !m->choice->ahead)
            put_head(m, i + 1);
    }
}

void calls_merge(const target *t, const binary_kernel *k, const call_choice *choice, arena *a, binary_kernel *out)
{
    merging m = {.target = t, .kernel = k, .choice = choice, .calls = ARENA_ARRAY(a, call, choice->count)};
    size_t head = head_count(k);
    for (uint32_t i = 0; i < choice->count; i++)
        for (int s = 0; s < CONTEXTS; s++) {
            size_t split = s == CONTEXT_DMA ? head : 0;
            m.calls[i].head[s] = (piece){0, split, 0};
            m.calls[i].rest[s] = (piece){split, k->streams[s].count, 0};
        }
    put_all(&m); /* places, as far as they are known; counts do not depend on them */
    for (int s = 0; s < CONTEXTS; s++)
        m.commands[s] = ARENA_ARRAY(a, command, m.count[s] + 1);
    put_all(&m); /* waits name what came later in the first round */
    *out = *k;
    for (int s = 0; s < CONTEXTS; s++) {
        out->streams[s].commands = m.commands[s];
        out->streams[s].count = m.count[s];
        out->streams[s].stored = NULL;
    }
}
