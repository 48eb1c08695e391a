#include "runtime/duration.h"

#include <string.h>

#include "runtime/static_cost.h"
#include "support/integer.h"

enum { MOST_CYCLES_LOG2 = 40 }; /* of one command: 18 minutes at 1 GHz, and sums of many stay in 64 bits */

const char *duration_bound_name(duration_bound b)
{
    static const char *const names[] = {"dma", "fetch", "collect", "multiply", "output", "commit", "store", "hbm", "dmn"};
    return names[b];
}

static const char *const preset_names[] = {"documented", "schedule"};

bool timing_preset_by_name(const char *name, timing_preset *out)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(name, preset_names[i]) == 0) {
            *out = (timing_preset)i;
            return true;
        }
    return false;
}

const char *timing_preset_name(timing_preset p)
{
    return preset_names[p];
}

const char *engine_name(engine e)
{
    static const char *const names[] = {"dma", "fetch", "collect", "trf", "reducer", "cast", "commit"};
    return names[e];
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
    int64_t bytes = ceil_div(s->shape.packet_elements * (int64_t)s->dm.bits, 8);
    return ceil_div(bytes, command_get(s->command, FETCH_ACCESS_BYTES));
}

/* Cycles between the flits that reach a stage which takes `together` of them at once. */
static int64_t arrival(const chain *c, int64_t together, duration_bound *bound)
{
    int64_t accesses = accesses_per_packet(&c->source), flits = c->collect.flits_per_packet, fetch;
    if (!product(accesses, together, &fetch))
        fetch = INT64_MAX - flits;
    fetch = ceil_div(fetch, flits);
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
    out->beat_cycles = ceil_div(c->commit.in_bytes, bytes);
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
    out->feed_cycles = each;
    out->tiling = k->tiling;
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

static bool documented(const chain *c, duration *out, fault *f)
{
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

/* Products that finish() has bounded, or that are smaller than one it has. */
static void count_engines(const chain *c, duration *out)
{
    int64_t steps = c->contraction.steps, sums = c->form == CHAIN_SUMS ? c->source.shape.packets : 0;
    if (!product(c->source.shape.packets, accesses_per_packet(&c->source), &out->busy[ENGINE_FETCH]))
        out->busy[ENGINE_FETCH] = out->total;
    out->busy[ENGINE_COLLECT] = c->collect.shape.packets;
    out->busy[ENGINE_TRF] = c->contraction.commands.trf_read ? steps : c->sink->op == OP_TRF_STORE ? c->shape.packets : 0;
    out->busy[ENGINE_REDUCER] = c->contraction.commands.contract ? steps : sums;
    out->busy[ENGINE_CAST] = c->cast ? c->shape.packets : 0;
    if (c->sink->op == OP_COMMIT)
        out->busy[ENGINE_COMMIT] = c->shape.packets * ceil_div(c->commit.in_bytes, command_get(c->sink, COMMIT_BYTES));
}

bool duration_of_chain(const chain *c, timing_preset preset, duration *out, fault *f)
{
    *out = (duration){.beat_cycles = 1};
    if (!documented(c, out, f))
        return false;
    count_engines(c, out);
    if (preset == TIMING_SCHEDULE)
        static_cost_of_chain(c, out);
    return true;
}

bool duration_of_dma(const target *t, const command *c, timing_preset preset, arena *a, duration *out, fault *f)
{
    *out = (duration){.fill = t->dma_startup_cycles, .items = 1, .beat_cycles = 1};
    if (!dma_cost_of(t, c, &out->dma))
        return fault_set(f, E_RUN_LIMIT, c, "takes more than 2^%d cycles", MOST_CYCLES_LOG2);
    out->items = out->dma.steps;
    out->item_cycles = out->dma.requests / out->dma.steps;
    if (!finish(out, BOUND_DMA, BOUND_DMA, c, f))
        return false;
    int64_t cycles = out->total - out->fill;
    if (out->dma.hbm_cycles > cycles) {
        cycles = out->dma.hbm_cycles;
        out->bound = BOUND_HBM;
    }
    if (out->dma.dmn_cycles > cycles) {
        cycles = out->dma.dmn_cycles;
        out->bound = BOUND_DMN;
    }
    out->total = out->fill + cycles;
    if (preset == TIMING_SCHEDULE)
        static_cost_of_dma(t, c, a, out);
    out->busy[ENGINE_DMA] = out->total;
    return true;
}

const char *duration_formula(const duration *c, arena *a)
{
    if (c->text)
        return c->text;
    const char *text = c->fill ? arena_printf(a, "%lld + ", (long long)c->fill) : "";
    long long items = c->items, each = c->item_cycles, beats = c->beats, beat = c->beat_cycles;
    if (c->dma.steps > 0)
        return arena_printf(a, "%smax(%lld x %lld, channel %lld, dmn %lld)", text, items, each, (long long)c->dma.hbm_cycles, (long long)c->dma.dmn_cycles);
    if (beats == 0)
        return arena_printf(a, "%s%lld x %lld", text, items, each);
    return arena_printf(a, c->drains ? "%s%lld x %lld + %lld x %lld" : "%smax(%lld x %lld, %lld x %lld)", text, items,
                        each, beats, beat);
}
