#include "runtime/duration.h"

enum { MOST_CYCLES_LOG2 = 40 }; /* of one command: 18 minutes at 1 GHz, and sums of many stay in 64 bits */

const char *duration_bound_name(duration_bound b)
{
    static const char *const names[] = {"dma", "fetch", "collect", "multiply", "output", "commit", "store"};
    return names[b];
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static bool product(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out) && *out <= INT64_C(1) << MOST_CYCLES_LOG2;
}

/* Fills in total; where both sides take equally long, what goes in binds. */
static bool finish(duration *c, duration_bound in, duration_bound out, const command *at, fault *f)
{
    int64_t in_cycles, out_cycles;
    if (!product(c->items, c->item_cycles, &in_cycles) || !product(c->beats, c->beat_cycles, &out_cycles))
        return fault_set(f, E_RUN_LIMIT, at, "takes more than 2^%d cycles", MOST_CYCLES_LOG2);
    c->bound = in_cycles >= out_cycles ? in : out;
    c->total = c->fill + (c->drains            ? in_cycles + out_cycles
                          : in_cycles >= out_cycles ? in_cycles
                                                    : out_cycles);
    return true;
}

/* Accesses of one packet: fetch_size bytes of the DM each. A stream port is always fast enough. */
static int64_t accesses_per_packet(const source *s)
{
    if (s->stream)
        return 0;
    int64_t bytes = divide_up(s->shape.packet_elements * (int64_t)s->dm.bits, 8);
    return divide_up(bytes, command_get(s->command, FETCH_ACCESS_BYTES));
}

/* Cycles between the flits that reach a stage which takes `together` of them at once. */
static int64_t arrival(const chain *c, int64_t together, duration_bound *bound)
{
    int64_t accesses = accesses_per_packet(&c->source), flits = c->collect.flits_per_packet, fetch;
    if (!product(accesses, together, &fetch))
        fetch = INT64_MAX - flits;
    fetch = divide_up(fetch, flits);
    *bound = fetch > together ? BOUND_FETCH : BOUND_COLLECT;
    return fetch > together ? fetch : together;
}

/* The side where results leave. */
static duration_bound leave(const chain *c, duration *out)
{
    out->beats = c->shape.packets;
    out->beat_cycles = 1;
    if (c->sink->op != OP_COMMIT)
        return BOUND_OUTPUT;
    int64_t bytes = command_get(c->sink, COMMIT_BYTES);
    out->beat_cycles = divide_up(c->commit.in_bytes, bytes);
    return out->beat_cycles > 1 ? BOUND_COMMIT : BOUND_OUTPUT;
}

static bool contraction_cycles(const chain *c, duration *out, fault *f)
{
    const target *t = c->machine->target;
    const contraction *k = &c->contraction;
    duration_bound in, leaves = BOUND_OUTPUT;
    int64_t each = arrival(c, k->collect_flits, &in);
    out->fill = t->adapter_fill_cycles + (k->commands.contract ? k->tree.depth * t->tree_level_cycles : 0);
    if (k->shift.command)
        out->fill += (k->shift.rows > 1 ? t->adapter_transpose_cycles : 0) + (k->shift.stride > 0 ? t->adapter_shift_cycles : 0);
    out->items = k->packets;
    out->item_cycles = each > k->tiling ? each : k->tiling;
    if (k->tiling >= each)
        in = BOUND_MULTIPLY;
    if (c->form == CHAIN_CONTRACTION) {
        out->fill += t->accumulator_fill_cycles + t->output_fill_cycles;
        out->drains = c->accumulate.count > 0 && c->accumulate.loops[0].reduced;
        leaves = leave(c, out);
    }
    return finish(out, in, leaves, c->commands, f);
}

/* A contraction tensor from a port. */
static bool sums_cycles(const chain *c, duration *out, fault *f)
{
    const target *t = c->machine->target;
    out->fill = t->accumulator_fill_cycles + t->output_fill_cycles;
    out->items = c->source.shape.packets;
    out->item_cycles = 1;
    out->drains = c->accumulate.count > 0 && c->accumulate.loops[0].reduced;
    return finish(out, BOUND_MULTIPLY, leave(c, out), c->commands, f);
}

static bool flits_cycles(const chain *c, duration *out, fault *f)
{
    duration_bound in;
    out->items = c->collect.shape.packets;
    out->item_cycles = arrival(c, 1, &in);
    duration_bound leaves = leave(c, out);
    if (leaves != BOUND_COMMIT)
        out->beats = 0; /* one flit in, one flit out */
    return finish(out, in, leaves, c->commands, f);
}

bool duration_of_chain(const chain *c, duration *out, fault *f)
{
    *out = (duration){.beat_cycles = 1};
    switch (c->form) {
    case CHAIN_FLITS:
        return flits_cycles(c, out, f);
    case CHAIN_SUMS:
        return sums_cycles(c, out, f);
    case CHAIN_PACKETS:
        out->items = c->source.shape.packets;
        out->item_cycles = accesses_per_packet(&c->source);
        out->item_cycles += out->item_cycles == 0;
        return finish(out, BOUND_FETCH, BOUND_OUTPUT, c->commands, f);
    default:
        return contraction_cycles(c, out, f);
    }
}

bool duration_of_dma(const target *t, const command *c, duration *out, fault *f)
{
    *out = (duration){.fill = t->dma_startup_cycles, .items = 1, .beat_cycles = 1};
    bool counted = true;
    for (unsigned i = 0; i < c->entry_count; i++)
        counted = counted && product(out->items, command_entry(c, i, DMA_ENTRY_SIZE), &out->items);
    if (!counted)
        return fault_set(f, E_RUN_LIMIT, c, "takes more than 2^%d cycles", MOST_CYCLES_LOG2);
    bool same_memory = command_get(c, DMA_SOURCE) == command_get(c, DMA_DESTINATION);
    out->item_cycles = divide_up(command_get(c, DMA_PACKET_BYTES), t->dma_request_bytes) * (same_memory ? 2 : 1);
    return finish(out, BOUND_DMA, BOUND_DMA, c, f);
}

const char *duration_formula(const duration *c, arena *a)
{
    const char *text = c->fill ? arena_printf(a, "%lld + ", (long long)c->fill) : "";
    long long items = c->items, each = c->item_cycles, beats = c->beats, beat = c->beat_cycles;
    if (beats == 0)
        return arena_printf(a, "%s%lld x %lld", text, items, each);
    return arena_printf(a, c->drains ? "%s%lld x %lld + %lld x %lld" : "%smax(%lld x %lld, %lld x %lld)", text, items,
                        each, beats, beat);
}
