#include "runtime/timing/schedule.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/engine/exchange.h"
#include "runtime/timing/measured_cost.h"
#include "support/integer.h"
#include "support/order.h"

enum { CONTEXTS = 3, NO_ITEM = -1 };

/* Cycles of the TRF followed one by one before giving up: seconds. Only tables that repeat nothing come near. */
static const int64_t STEP_LIMIT = INT64_C(1) << 30;
static const int64_t MOST_CYCLES = INT64_C(1) << 61;

typedef struct lane {
    size_t done;            /* completed commands of the context */
    unit_mask units;        /* as selected so far */
    int64_t item;           /* the one that runs, or NO_ITEM */
    bool is_open;           /* its end is not known yet: a store that reads may hold up */
    int64_t held_since;     /* cycle; NO_ITEM: nothing starves the DMA here */
    int64_t holder;         /* the chain that a copy waits for */
    const command *bitmaps; /* that the context loaded last, for a custom switch; NULL: none */
} lane;

typedef struct scheduler {
    machine *machine; /* only its ports and sizes are looked at */
    schedule *out;
    arena *arena;
    size_t capacity;
    int64_t now;
    lane lanes[CONTEXTS];
    int64_t last_copy;               /* item, or NO_ITEM */
    bool stores;                     /* some copy leaves DM */
    bool sub_switches;               /* a chain of the sub context uses its channel of the Switch Engine */
    unit_mask main_units, sub_units; /* of the running chains */
    trf_timing *trf;
    int64_t step_limit;
    schedule_change change; /* line 0: none */
    fault fault;
} scheduler;

static schedule_item *running(scheduler *s, int number)
{
    int64_t item = s->lanes[number].item;
    return item == NO_ITEM ? NULL : &s->out->items[item];
}

static bool masks_meet(const unit_mask *a, const unit_mask *b)
{
    bool slices = false;
    for (int i = 0; i < 4; i++)
        slices |= (a->slices[i] & b->slices[i]) != 0;
    return slices && (a->chips & b->chips) && (a->clusters & b->clusters);
}

static schedule_item *add_item(scheduler *s, int number, const command *commands, size_t count)
{
    schedule_item item = {.context = (context)number, .commands = commands, .count = count, .start = s->now};
    if (s->out->count == s->capacity) { /* from a few on: an item is hundreds of bytes */
        enum { FIRST_ITEMS = 16 };
        s->capacity = s->capacity ? 2 * s->capacity : FIRST_ITEMS;
        s->out->items = arena_grow(s->arena, s->out->items, s->out->count, s->capacity, sizeof item);
    }
    s->out->items[s->out->count++] = item;
    s->lanes[number].item = (int64_t)s->out->count - 1;
    return &s->out->items[s->out->count - 1];
}

/* ---- beginnings ---- */

/* Cycles from one of these items to the next: their own, or the rings', whichever are slower. */
static int64_t period_of(const duration *d, int64_t items)
{
    int64_t around;
    if (items < 1 || __builtin_mul_overflow(d->routes, d->route_cycles, &around))
        return d->item_cycles;
    return larger(d->item_cycles, ceil_div(around, items));
}

static void begin_reads(scheduler *s, schedule_item *item, const chain *c)
{
    const weights *w = &chain_contraction(c)->weights;
    item->trf_read = w->command;
    trf_reads r = {.view = {w->mode, w->rows},
                   .table = w->table,
                   .read_bytes = w->read_bytes,
                   .tiling = chain_contraction(c)->tiling,
                   .period = period_of(&item->alone, item->alone.items),
                   .delay = s->machine->target->adapter_fill_cycles};
    s->main_units = c->out_units;
    s->trf->apart = !masks_meet(&s->main_units, &s->sub_units);
    trf_timing_begin_reads(s->trf, &r);
}

static void begin_writes(scheduler *s, schedule_item *item, const chain *c)
{
    const trf_store *k = chain_trf_store(c);
    item->trf_store = k->command;
    if (item->context == CONTEXT_MAIN) { /* nobody reads meanwhile */
        item->writes.flits = k->rows * k->flits_per_row;
        return;
    }
    trf_writes w = {.view = {k->mode, k->rows},
                    .base = k->base,
                    .flits_per_row = k->flits_per_row,
                    .flits = k->rows * k->flits_per_row,
                    .delay = item->alone.fill,
                    .cycles_per_flit = period_of(&item->alone, k->rows * k->flits_per_row)};
    s->lanes[CONTEXT_SUB].is_open = true;
    s->sub_units = c->out_units;
    s->trf->apart = !masks_meet(&s->main_units, &s->sub_units);
    trf_timing_begin_writes(s->trf, &w);
}

static int64_t count_units(const unit_mask *u)
{
    int64_t slices = 0;
    for (int i = 0; i < 4; i++)
        slices += __builtin_popcountll(u->slices[i]);
    return slices * __builtin_popcount(u->chips) * __builtin_popcount(u->clusters);
}

/* Each stage in the slices in which it works: a switch and a reduction over slices change them. */
static void count_traffic(schedule_item *item, const chain *c)
{
    unsigned recorder = exchange_recorder(c);
    item->units = count_units(&c->out_units);
    for (unsigned i = 0; i < c->stage_count; i++)
        if (c->stages[i].type->traffic)
            c->stages[i].type->traffic(&c->stages[i],
                                       i == 0         ? count_units(&c->units)
                                       : i < recorder ? count_units(&c->mid_units)
                                                      : item->units,
                                       item);
}

/* Published schedules and the device begin late. */
static int64_t queue_cycles(const scheduler *s)
{
    int64_t first = s->out->preset == TIMING_SCHEDULE   ? target_static_costs()->first_command_cycles
                    : s->out->preset == TIMING_MEASURED ? measured_costs_of()->first_command_cycles
                                                        : 0;
    return s->out->count == 0 ? first : 0;
}

/* On the device a copy takes longer when the queue was empty before it. */
static int64_t idle_cycles(const scheduler *s)
{
    if (s->out->preset != TIMING_MEASURED || s->last_copy == NO_ITEM || s->out->items[s->last_copy].end == s->now)
        return 0;
    return measured_costs_of()->dma_idle_cycles;
}

/* In published schedules a load waits while a Sub pass runs that begins when the load before it ends, unless that one gave all slices the
 * same bytes. */
static int64_t queue_cycles_of_load(scheduler *s)
{
    const schedule_item *sub = running(s, CONTEXT_SUB);
    if (s->out->preset != TIMING_SCHEDULE || s->last_copy == NO_ITEM || !sub || sub->start != s->now)
        return 0;
    const schedule_item *before = &s->out->items[s->last_copy];
    if (before->end != s->now)
        return 0;
    return before->alone.dma.to_dm && before->alone.dma.spreads ? target_static_costs()->load_beside_sub_cycles : 0;
}

/* The published kinds know no cache and no banks. */
static bool count_alone(schedule_item *item, const chain *c)
{
    const trf_store *k = chain_trf_store(c);
    if (k) {
        item->trf_store = k->command;
        item->writes.flits = k->rows * k->flits_per_row;
    }
    return true;
}

static int64_t bank_streak(known_costs *known, const chain *c)
{
    int64_t limit = known->target->dm_starving_accesses, streak = 0;
    if (chain_source(c)->type == &stage_fetch)
        streak = known_bank_streak(known, c->commands);
    if (chain_sink(c)->type == &stage_commit)
        streak += known_bank_streak(known, chain_sink(c)->commands);
    return streak < limit ? streak : limit;
}

/* A chain that starves the DMA, or a copy concurrent with such a chain, waits until the other has ended. */
static bool held(scheduler *s, bool is_copy, bool starves)
{
    if (!timing_by_rates(s->out->preset))
        return false;
    if (!is_copy)
        return starves && s->lanes[CONTEXT_DMA].item != NO_ITEM;
    const schedule_item *main = running(s, CONTEXT_MAIN), *sub = running(s, CONTEXT_SUB);
    return (main && main->holds_dma) || (sub && sub->holds_dma);
}

static void hold(scheduler *s, int number)
{
    lane *l = &s->lanes[number];
    if (l->held_since != NO_ITEM)
        return;
    const schedule_item *main = running(s, CONTEXT_MAIN);
    l->held_since = s->now;
    l->holder = main && main->holds_dma ? s->lanes[CONTEXT_MAIN].item : s->lanes[CONTEXT_SUB].item;
}

/* Since hold(), for what begins now. */
static int64_t held_cycles(scheduler *s, int number)
{
    lane *l = &s->lanes[number];
    int64_t since = l->held_since;
    l->held_since = NO_ITEM;
    return since == NO_ITEM ? 0 : s->now - since;
}

static bool changes(const scheduler *s, const command *c)
{
    return s->change.line != 0 && c->line == s->change.line;
}

/* By the change that is tried, but for what a command takes before anything is through. */
static void shorten(const scheduler *s, const command *c, duration *time)
{
    if (changes(s, c))
        time->total = larger(time->fill, time->total - s->change.less);
}

/* ---- bitmaps of custom switches ---- */

/* Does the sub context use its channel of the Switch Engine? Packets that keep to their slice do not. */
static bool has_switch(const command *commands, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (commands[i].op == OP_SWITCH)
            return true;
    return false;
}

static timing_preset preset_of_chain(const scheduler *s, int number)
{
    bool both = s->out->preset == TIMING_CHANNELS && number == CONTEXT_MAIN && !s->sub_switches;
    return s->out->preset == TIMING_CHANNELS && !both ? TIMING_DOCUMENTED : s->out->preset;
}

static bool same_table(const command *a, const command *b)
{
    return a && command_same_entries(a, b);
}

/* The snoop command of a chain whose bitmaps are not those that its context loaded last, or NULL. What the device takes for them is not
 * known apart from the pass. */
static const command *new_bitmaps(const scheduler *s, int number, const chain *c)
{
    for (size_t i = 0; i < c->count && s->out->preset != TIMING_MEASURED; i++)
        if (c->commands[i].op == OP_SNOOP)
            return same_table(s->lanes[number].bitmaps, &c->commands[i]) ? NULL : &c->commands[i];
    return NULL;
}

/* Copies and the sub context write them, and do nothing else meanwhile; published schedules book the context of the pass alone. */
static bool stands_still(const scheduler *s, int number, int loader)
{
    return timing_by_rates(s->out->preset) && number != loader && number != CONTEXT_MAIN && s->lanes[loader].item != NO_ITEM &&
           s->out->items[s->lanes[loader].item].bitmaps;
}

static bool must_stand(const scheduler *s, int number)
{
    return stands_still(s, number, CONTEXT_MAIN) || stands_still(s, number, CONTEXT_SUB);
}

static void begin_load(scheduler *s, int number, const command *first, const command *bitmaps)
{
    int64_t cycles = s->machine->target->snoop_load_cycles, queued = queue_cycles(s);
    schedule_item *item = add_item(s, number, first, 1);
    item->bitmaps = bitmaps;
    item->start += queued;
    item->queued = queued;
    item->end = item->start + cycles;
    item->alone = (duration){.items = 1,
                             .item_cycles = cycles,
                             .bound = BOUND_SNOOP,
                             .total = cycles,
                             .text = arena_printf(s->arena, "bitmaps: %lld", (long long)cycles)};
    s->out->loads = true;
    for (int i = 0; i < CONTEXTS; i++) {
        schedule_item *other = running(s, i);
        if (!other || !stands_still(s, i, number))
            continue;
        other->stood_cycles += cycles;
        other->end += s->lanes[i].is_open ? 0 : cycles;
    }
}

static bool begin_chain(scheduler *s, int number, const command *c, size_t available, bool *waits)
{
    chain *k = s->machine->chain;
    duration time;
    if (!chain_plan(k, s->machine, &s->lanes[number].units, c, available, &s->fault) ||
        !duration_of_chain(k, preset_of_chain(s, number), &time, &s->fault))
        return false;
    int64_t queued = queue_cycles(s), streak = bank_streak(s->out->known, k);
    bool starves = streak >= s->machine->target->dm_starving_accesses && !(changes(s, c) && s->change.starves_nothing);
    shorten(s, c, &time);
    if ((*waits = held(s, false, starves)))
        return true;
    const command *bitmaps = new_bitmaps(s, number, k);
    if (bitmaps) {
        begin_load(s, number, c, bitmaps);
        return true;
    }
    schedule_item *item = add_item(s, number, c, k->count);
    item->held_cycles = held_cycles(s, number);
    item->bank_streak = streak;
    item->holds_dma = starves && timing_by_rates(s->out->preset);
    s->out->starves |= item->holds_dma;
    item->alone = time;
    item->start += queued;
    item->queued = queued;
    item->end = item->start + time.total;
    count_traffic(item, k);
    if (!timing_by_rates(s->out->preset))
        return count_alone(item, k);
    if (chain_contraction(k) && number == CONTEXT_MAIN)
        begin_reads(s, item, k);
    if (chain_trf_store(k))
        begin_writes(s, item, k);
    return true;
}

static bool begin_dma(scheduler *s, int number, const command *c)
{
    duration time;
    if (!duration_of_dma(s->machine->target, c, s->out->preset, s->out->known, s->arena, &time, &s->fault))
        return false;
    shorten(s, c, &time);
    int64_t queued = queue_cycles(s) + idle_cycles(s) + (time.dma.to_dm ? queue_cycles_of_load(s) : 0);
    int64_t held_for = held_cycles(s, number);
    if (held_for > 0)
        s->out->items[s->lanes[number].holder].held_cycles += held_for;
    s->last_copy = (int64_t)s->out->count;
    s->stores |= !time.dma.to_dm;
    schedule_item *item = add_item(s, number, c, 1);
    item->alone = time;
    item->start += queued;
    item->queued = queued;
    item->end = item->start + time.total;
    return true;
}

/* Starts what the context can start now. *moved: it did something. */
static bool context_begin(scheduler *s, int number, bool *moved)
{
    lane *l = &s->lanes[number];
    size_t count = s->out->kernel->streams[number].count;
    while (l->item == NO_ITEM && l->done < count) {
        const command *c = &s->out->kernel->streams[number].commands[l->done];
        if (c->op == OP_WAIT && s->lanes[command_get(c, WAIT_CONTEXT)].done < (size_t)command_get(c, WAIT_COUNT))
            return true;
        bool waits = command_is_copy(c) && held(s, true, false);
        if (must_stand(s, number) && c->op != OP_WAIT && c->op != OP_UNITS && c->op != OP_GUARD)
            return true;
        if (c->op == OP_UNITS)
            unit_mask_select(&l->units, c);
        if (c->op == OP_WAIT || c->op == OP_UNITS || c->op == OP_GUARD) /* what may run takes its time */
            l->done++;
        else if (!waits && (command_is_copy(c) ? !begin_dma(s, number, c) : !begin_chain(s, number, c, count - l->done, &waits)))
            return false;
        if (waits) {
            hold(s, number);
            return true;
        }
        *moved = true;
    }
    return true;
}

static bool contexts_begin(scheduler *s)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < CONTEXTS; i++)
            if (!context_begin(s, i, &moved))
                return false;
    }
    return true;
}

/* ---- time passes ---- */

/* The next end that is known, or INT64_MAX. */
static int64_t next_end(scheduler *s)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < CONTEXTS; i++) {
        const schedule_item *item = running(s, i);
        if (item && !s->lanes[i].is_open && item->end < next)
            next = item->end;
    }
    return next;
}

/* To the next end; the store may end before it. */
static bool pass_time(scheduler *s)
{
    if (s->now > MOST_CYCLES)
        return fault_set(&s->fault, E_RUN_LIMIT, NULL, "more than 2^61 cycles");
    int64_t cycles = next_end(s) - s->now, stalls = s->trf->write_counts.stall_cycles;
    bool stands = must_stand(s, CONTEXT_SUB) && s->lanes[CONTEXT_SUB].item != NO_ITEM; /* a store does, and main reads nothing */
    int64_t gone = stands ? cycles : trf_timing_run(s->trf, cycles, s->step_limit);
    schedule_item *reader = running(s, CONTEXT_MAIN);
    if (reader && reader->trf_read)
        reader->held_stall_cycles += s->trf->write_counts.stall_cycles - stalls;
    s->now += gone;
    lane *sub = &s->lanes[CONTEXT_SUB];
    if (sub->is_open && !s->trf->writing) {
        sub->is_open = false;
        running(s, CONTEXT_SUB)->end = s->now;
    } else if (gone < cycles) {
        return fault_set(&s->fault, E_RUN_LIMIT, reader ? reader->trf_read : NULL, "reads the TRF for too many cycles to be followed");
    }
    return true;
}

static void finish_item(scheduler *s, int number)
{
    schedule_item *item = running(s, number);
    if (item->trf_read)
        item->reads = s->trf->read_counts;
    if (item->trf_store && item->context == CONTEXT_SUB && timing_by_rates(s->out->preset)) {
        item->writes = s->trf->write_counts;
        if (item->writes.late_cycles > 0)
            item->alone.bound = BOUND_STORE;
    }
    s->out->busy[number] += item->end - item->start;
    s->out->serial_cycles += item->queued + item->alone.total;
    if (item->bitmaps)
        s->lanes[number].bitmaps = item->bitmaps;
    else
        s->lanes[number].done += item->count;
    s->lanes[number].item = NO_ITEM;
}

static bool follow(scheduler *s)
{
    for (;;) {
        if (!contexts_begin(s))
            return false;
        bool any = false;
        for (int i = 0; i < CONTEXTS; i++)
            any |= s->lanes[i].item != NO_ITEM;
        if (!any)
            return true;
        if (!pass_time(s))
            return false;
        for (int i = 0; i < CONTEXTS; i++)
            if (running(s, i) && !s->lanes[i].is_open && running(s, i)->end <= s->now)
                finish_item(s, i);
    }
}

static bool all_done(const scheduler *s)
{
    bool done = true;
    for (int i = 0; i < CONTEXTS; i++)
        done &= s->lanes[i].done == s->out->kernel->streams[i].count;
    return done;
}

static int by_start(const void *a, const void *b)
{
    const schedule_item *x = a, *y = b;
    int bitmaps = ORDER(x->bitmaps == NULL, y->bitmaps == NULL);
    return order_then(ORDER(x->start, y->start),
                      order_then(ORDER(x->context, y->context), order_then(ORDER(x->commands, y->commands), bitmaps)));
}

bool schedule_make(const target *t, const binary_kernel *k, timing_preset preset, arena *a, diag_list *diags, schedule *out)
{
    return schedule_make_within(t, k, preset, STEP_LIMIT, NULL, a, diags, out);
}

static bool make(const target *t, const binary_kernel *k, timing_preset preset, int64_t steps, schedule_change change, known_costs *known,
                 arena *a, diag_list *diags, schedule *out)
{
    *out = (schedule){.kernel = k, .target = t, .preset = preset, .known = known ? known : known_costs_new(t, a)};
    if (!trf_cache_fits(t)) {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "target %s has a larger TRF cache than can be followed", t->name);
        return false;
    }
    scheduler s = {.machine = machine_new(t, k, a, &(machine_options){.sizes_only = true}),
                   .out = out,
                   .arena = a,
                   .last_copy = NO_ITEM,
                   .trf = arena_alloc_unset(a, sizeof(trf_timing)),
                   .step_limit = steps,
                   .change = change};
    for (int i = 0; i < CONTEXTS; i++)
        s.lanes[i].item = s.lanes[i].held_since = NO_ITEM;
    trf_timing_init(s.trf, t);
    s.sub_switches = has_switch(k->streams[CONTEXT_SUB].commands, k->streams[CONTEXT_SUB].count);
    bool ok = follow(&s);
    machine_free(s.machine);
    if (!ok) {
        fault_report(&s.fault, k->name, diags);
    } else if (!all_done(&s)) {
        ok = false;
        diag_add(diags, E_RUN_DEADLOCK, SRC_NOWHERE, "kernel %s: from cycle %lld on every context waits for another one", k->name,
                 (long long)s.now);
    }
    if (preset == TIMING_SCHEDULE && s.stores)
        out->end_sync_cycles = target_static_costs()->end_sync_cycles;
    if (preset == TIMING_MEASURED && s.stores)
        out->end_sync_cycles = measured_costs_of()->end_sync_cycles;
    out->serial_cycles += out->end_sync_cycles;
    out->cycles = s.now + out->end_sync_cycles;
    order_sort(out->items, out->count, sizeof *out->items, by_start);
    return ok;
}

bool schedule_make_within(const target *t, const binary_kernel *k, timing_preset preset, int64_t steps, known_costs *known, arena *a,
                          diag_list *diags, schedule *out)
{
    return make(t, k, preset, steps, (schedule_change){0}, known, a, diags, out);
}

int64_t schedule_cycles_with(const schedule *s, schedule_change change, arena *a)
{
    schedule changed;
    diag_list silent;
    diag_list_init(&silent, a);
    return make(s->target, s->kernel, s->preset, STEP_LIMIT, change, s->known, a, &silent, &changed) ? changed.cycles : -1;
}
