#include "runtime/timing/duration.h"

#include "runtime/timing/measured_cost.h"
#include "runtime/timing/static_cost.h"
#include "support/choice.h"
#include "support/integer.h"

enum { MOST_CYCLES_LOG2 = 40 }; /* of one command: 18 minutes at 1 GHz, and sums of many stay in 64 bits */

const char *duration_bound_name(duration_bound b)
{
    static const char *const names[] = {
#define BOUND(symbol, name, what) name,
#include "target/engines.def"
    };
    return names[b];
}

static const char *const preset_names[TIMING_PRESETS] = {"documented", "schedule", "measured", "channels"};

bool timing_preset_by_name(const char *name, timing_preset *out)
{
    size_t i = choice_index(preset_names, TIMING_PRESETS, name);
    if (i < TIMING_PRESETS)
        *out = (timing_preset)i;
    return i < TIMING_PRESETS;
}

const char *timing_preset_name(timing_preset p)
{
    return preset_names[p];
}

const char *engine_name(engine e)
{
    static const char *const names[] = {
#define BUSY(symbol, name) name,
#include "target/engines.def"
    };
    return names[e];
}

static bool product(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out) && *out <= INT64_C(1) << MOST_CYCLES_LOG2;
}

/* Fills in total; where both sides take equally long, what goes in binds. */
static bool finish(duration *c, const command *at, fault *f)
{
    int64_t in_cycles, out_cycles, route_cycles;
    if (!product(c->routes, c->route_cycles, &route_cycles) || !product(c->items, c->item_cycles, &in_cycles) ||
        !product(c->beats, c->beat_cycles, &out_cycles))
        return fault_set(f, E_RUN_LIMIT, at, "takes more than 2^%d cycles", MOST_CYCLES_LOG2);
    c->bound = in_cycles >= out_cycles ? c->in : c->out;
    c->total = c->fill + (c->drains ? in_cycles + out_cycles : in_cycles >= out_cycles ? in_cycles : out_cycles);
    if (route_cycles > c->total - c->fill) {
        c->bound = c->route;
        c->total = c->fill + route_cycles;
    }
    return true;
}

void duration_routes(duration *d, int64_t packets, int64_t cycles, duration_bound bound)
{
    d->routes = packets;
    d->route_cycles = cycles;
    d->route = bound;
}

static void share_routes(duration *d, int64_t channels)
{
    d->route_cycles = ceil_div(d->route_cycles, channels);
    if (d->busy[ENGINE_SWITCH] < INT64_MAX)
        d->busy[ENGINE_SWITCH] = ceil_div(d->busy[ENGINE_SWITCH], channels);
}

void duration_leaves(duration *d, int64_t beats, int64_t cycles, duration_bound bound)
{
    if ((__int128)beats * cycles <= (__int128)d->beats * d->beat_cycles)
        return;
    d->beats = beats;
    d->beat_cycles = cycles;
    d->out = bound;
}

void duration_busy(duration *d, engine e, int64_t a, int64_t b)
{
    if (!product(a, b, &d->busy[e]))
        d->busy[e] = INT64_MAX;
}

int64_t duration_arrival(const chain *c, int64_t together, duration_bound *bound)
{
    int64_t accesses = source_accesses(chain_source(c)->plan), flits = chain_collect(c)->flits_per_packet, fetch;
    if (!product(accesses, together, &fetch))
        fetch = INT64_MAX - flits;
    fetch = ceil_div(fetch, flits);
    *bound = fetch > together ? BOUND_FETCH : BOUND_COLLECT;
    return fetch > together ? fetch : together;
}

bool duration_of_chain(const chain *c, timing_preset preset, duration *out, fault *f)
{
    *out = (duration){.beat_cycles = 1, .out = BOUND_OUTPUT};
    for (unsigned i = 0; i < c->stage_count; i++)
        if (c->stages[i].type->cycles)
            c->stages[i].type->cycles(&c->stages[i], out);
    if (preset == TIMING_CHANNELS) /* of packets that go around, every channel takes its share */
        share_routes(out, c->machine->target->switch_channels);
    if (!finish(out, c->commands, f))
        return false;
    for (int e = 0; e < ENGINE_COUNT; e++)
        if (out->busy[e] == INT64_MAX)
            out->busy[e] = out->total;
    if (preset == TIMING_SCHEDULE)
        static_cost_of_chain(c, out);
    if (preset == TIMING_MEASURED)
        measured_cost_of_chain(c, out);
    return true;
}

bool duration_of_dma(const target *t, const command *c, timing_preset preset, known_costs *known, arena *a, duration *out, fault *f)
{
    *out = (duration){.fill = t->dma_startup_cycles, .items = 1, .beat_cycles = 1, .in = BOUND_DMA, .out = BOUND_DMA};
    if (!(known ? known_copy_cost(known, c, &out->dma) : dma_cost_of(t, c, &out->dma)))
        return fault_set(f, E_RUN_LIMIT, c, "takes more than 2^%d cycles", MOST_CYCLES_LOG2);
    out->items = out->dma.engine_steps;
    out->item_cycles = out->dma.requests / out->dma.steps;
    if (!finish(out, c, f))
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
    if (out->dma.link_cycles > cycles) {
        cycles = out->dma.link_cycles;
        out->bound = BOUND_LINK;
    }
    out->total = out->fill + cycles;
    if (preset == TIMING_SCHEDULE)
        static_cost_of_dma(t, c, a, out);
    if (preset == TIMING_MEASURED)
        measured_cost_of_dma(t, c, a, out);
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
        return arena_printf(a, "%smax(%lld x %lld, channel %lld, dmn %lld%s)", text, items, each, (long long)c->dma.hbm_cycles,
                            (long long)c->dma.dmn_cycles,
                            c->dma.link_cycles ? arena_printf(a, ", link %lld", (long long)c->dma.link_cycles) : "");
    if (c->routes > 0)
        return arena_printf(a, "%smax(%lld x %lld%s, rings %lld x %lld)", text, items, each,
                            beats == 0 ? "" : arena_printf(a, "%s%lld x %lld", c->drains ? " + " : ", ", beats, beat), (long long)c->routes,
                            (long long)c->route_cycles);
    if (beats == 0)
        return arena_printf(a, "%s%lld x %lld", text, items, each);
    return arena_printf(a, c->drains ? "%s%lld x %lld + %lld x %lld" : "%smax(%lld x %lld, %lld x %lld)", text, items, each, beats, beat);
}
