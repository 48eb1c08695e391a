#include "runtime/engine/contraction.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
#include "runtime/timing/duration.h"
#include "runtime/timing/schedule.h"
#include "support/integer.h"

static bool align_plan(contraction *k, const target *t, const stream_shape *flits, fault *f)
{
    const command *c = k->commands.align;
    k->collect_flits = command_get(c, ALIGN_COLLECT_FLITS);
    k->tiling = command_get(c, ALIGN_TILING);
    k->packets = command_get(c, ALIGN_PACKETS);
    k->rows = command_get(c, ALIGN_ROWS);
    k->operand = (dtype)command_get(c, ALIGN_DTYPE);
    k->decode = convert_operand(k->operand);
    k->zero_point = flits->zero_point;
    k->packet_bytes = t->mac_width_bytes;
    k->lanes = t->mac_width_bytes * 8 / dtype_row_of(k->operand)->bits;
    int64_t bytes = k->collect_flits * t->flit_bytes, wanted;
    k->data_bytes = bytes < k->packet_bytes ? bytes : k->packet_bytes;
    if (k->operand != flits->dtype || !dtype_is_operand(k->operand))
        return fault_set(f, E_RUN_CHAIN, c, "cannot align %s elements of a stream of %s", dtype_row_of(k->operand)->name,
                         dtype_row_of(flits->dtype)->name);
    if (__builtin_mul_overflow(k->packets, k->collect_flits, &wanted) || wanted != flits->packets)
        return fault_set(f, E_RUN_CHAIN, c, "%lld packets of %lld flits do not take the %lld flits that arrive", (long long)k->packets,
                         (long long)k->collect_flits, (long long)flits->packets);
    if (__builtin_mul_overflow(k->packets, k->tiling, &k->steps))
        return fault_set(f, E_RUN_CHAIN, c, "the number of computation steps overflows");
    if (!k->commands.shift)
        return true;
    k->data_bytes = k->packet_bytes;
    return shift_plan(&k->shift, t, k->commands.shift, k->operand, k->collect_flits, k->tiling, k->packets, f);
}

/* With masks a step that reads outside may be one that does not count. */
static bool weights_legal(contraction *k, const target *t, bool masked, fault *f)
{
    const command *c = k->commands.trf_read;
    if (!weights_plan(&k->weights, t, c, f))
        return false;
    if (dtype_row_of(k->weights.operand)->staged != dtype_row_of(k->operand)->staged)
        return fault_set(f, E_RUN_CHAIN, c, "gives %s weights for %s data", dtype_row_of(k->weights.operand)->name,
                         dtype_row_of(k->operand)->name);
    if (k->weights.rows != k->rows)
        return fault_set(f, E_RUN_CHAIN, c, "has %lld Rows, align has %lld", (long long)k->weights.rows, (long long)k->rows);
    if (k->weights.steps != k->steps)
        return fault_set(f, E_RUN_CHAIN, c, "the entries have %lld steps, align has %lld", (long long)k->weights.steps,
                         (long long)k->steps);
    int64_t counters[WALK_MAX_LOOPS];
    walk_address address;
    if (k->weights.inside || masked ||
        !walk_first_outside(&k->weights.table, 0, k->weights.partition_bytes - k->weights.read_bytes, counters, &address))
        return true;
    int64_t step = 0;
    for (unsigned i = 0; i < k->weights.table.count; i++)
        step = step * k->weights.table.size[i] + counters[i];
    return weights_outside(&k->weights, step, (int64_t)address, f);
}

static bool tree_plan(contraction *k, fault *f)
{
    const command *c = k->commands.contract;
    const dtype_row *type = dtype_row_of(k->operand);
    k->tree = (tree_shape){k->rows, command_get(c, CONTRACT_COLUMNS), (unsigned)command_get(c, CONTRACT_DEPTH), k->weights.period};
    if ((dtype)command_get(c, CONTRACT_DTYPE) != k->operand)
        return fault_set(f, E_RUN_CHAIN, c, "multiplies %s, align has %s", dtype_row_of((dtype)command_get(c, CONTRACT_DTYPE))->name,
                         type->name);
    if (k->tree.depth > type->max_tree_depth || k->tree.columns << k->tree.depth > k->lanes)
        return fault_set(f, E_RUN_CHAIN, c, "%lld columns of tree_depth %u need more than the %lld lanes of %s", (long long)k->tree.columns,
                         k->tree.depth, (long long)k->lanes, type->name);
    k->kernel = tree_kernel_for(&k->tree);
    k->is_float = type->kind == DTYPE_KIND_FLOAT;
    return true;
}

/* The commands that follow belong to the contraction: is there a mask among them? */
static bool has_masks(const chain *c)
{
    return c->next + 1 < c->count && chain_peek(c)->op == OP_CONTRACT && c->commands[c->next + 1].op == OP_MASK;
}

static bool plan_align(stage *s, chain *c, fault *f)
{
    const target *t = c->machine->target;
    contraction *k = s->plan;
    *k = (contraction){.commands = {.align = s->commands, .shift = chain_take(c, OP_SHIFT)}};
    k->commands.trf_read = chain_take(c, OP_TRF_READ);
    if (!k->commands.trf_read)
        return chain_unexpected(c, "align, which trf_read completes", f);
    if (!align_plan(k, t, &s->in, f) || !weights_legal(k, t, has_masks(c), f))
        return false;
    s->out = (stream_shape){k->operand, k->lanes, t->mac_width_bytes, k->steps, k->rows, STREAM_PAIRS, 0, 0};
    return true;
}

static bool plan_contract(stage *s, chain *c, fault *f)
{
    contraction *k = s[-1].plan; /* align's, which alone gives pairs */
    s->plan = k;
    k->commands.contract = s->commands;
    k->commands.masks = chain_peek(c);
    while (chain_take(c, OP_MASK))
        k->commands.mask_count++;
    if (!tree_plan(k, f) ||
        !mask_set_plan(&k->masks, k->commands.masks, k->commands.mask_count, k->steps, k->lanes, c->machine->target, c->machine->arena, f))
        return false;
    s->out = (stream_shape){
        dtype_row_of(k->operand)->accumulates_in, k->tree.columns, k->tree.columns * 4, k->steps, k->rows, STREAM_PARTIALS, 0, 0};
    return true;
}

/* ---- align ---- */

typedef struct align_run {
    const unsigned char *file;
    walk_cursor cursor;
    int64_t pop; /* packets so far */
} align_run;

static bool open_align(stage_run *r)
{
    const contraction *k = r->stage->plan;
    machine *m = r->stage->chain->machine;
    align_run *at = r->state;
    at->file = weights_file(&k->weights, &m->units[r->unit_index].trf);
    if (!at->file)
        return fault_memory(r->fault, k->commands.trf_read, "a slice's TRF");
    walk_start(&k->weights.walk, &at->cursor);
    at->pop = 0;
    return true;
}

/* All steps of the flits of one pop. */
static bool push_pop(stage_run *r, const unsigned char *flits)
{
    const contraction *k = r->stage->plan;
    align_run *at = r->state;
    stream_pair pair = {flits, k->tiling, at->file, &at->cursor};
    int64_t pop = at->pop++;
    if (!k->shift.command)
        return stage_push(r->next, &pair, 1);
    unsigned char collected[SHIFT_MAX_BYTES], packet[SHIFT_MAX_BYTES];
    shift_pop(&k->shift, flits, collected);
    pair = (stream_pair){packet, k->shift.repeat, at->file, &at->cursor};
    for (int64_t i = 0; i < k->shift.windows; i++) {
        shift_window(&k->shift, collected, pop, i, packet);
        if (!stage_push(r->next, &pair, 1))
            return false;
    }
    return true;
}

/* Blocks of flits hold whole pops. */
static bool push_align(stage_run *r, const void *flits, int64_t count)
{
    const contraction *k = r->stage->plan;
    int64_t flit_bytes = r->stage->chain->machine->target->flit_bytes;
    for (int64_t i = 0; i < count; i += k->collect_flits)
        if (!push_pop(r, (const unsigned char *)flits + i * flit_bytes))
            return false;
    return true;
}

static void align_cycles(const stage *s, duration *d)
{
    const contraction *k = s->plan;
    const target *t = s->chain->machine->target;
    d->fill += t->adapter_fill_cycles;
    if (k->shift.command)
        d->fill += (k->shift.rows > 1 ? t->adapter_transpose_cycles : 0) + (k->shift.stride > 0 ? t->adapter_shift_cycles : 0);
    d->feed_cycles = duration_arrival(s->chain, k->collect_flits, &d->in);
    d->items = k->packets;
    d->tiling = k->tiling;
    d->item_cycles = larger(d->feed_cycles, k->tiling);
    if (k->tiling >= d->feed_cycles)
        d->in = BOUND_MULTIPLY;
    duration_busy(d, ENGINE_TRF, k->steps, 1);
}

static void align_traffic(const stage *s, int64_t units, schedule_item *item)
{
    const contraction *k = s->plan;
    item->trf_read_bytes = product_bounded(product_bounded(k->steps, k->weights.read_bytes * k->rows), units);
    item->lane_products = product_bounded(product_bounded(k->steps, k->rows * k->lanes), units);
    item->idle_lane_bytes = k->packet_bytes - k->data_bytes;
    item->rows = k->rows;
}

static unsigned align_ranges(const stage *s, proof_range *out)
{
    *out = proof_trf_range(((const contraction *)s->plan)->weights.mode, false);
    return 1;
}

static void align_proof(const stage *s, int64_t unit_index)
{
    const weights *w = &((const contraction *)s->plan)->weights;
    if (w->inside)
        proof_trf_reads(s->chain->machine, unit_index, w->rows, w->mode, w->low_byte, w->reads * w->read_bytes);
    else
        proof_doubt(s->chain->machine);
}

const stage_type stage_align = {.plan_bytes = sizeof(contraction),
                                .run_bytes = sizeof(align_run),
                                .plan = plan_align,
                                .open = open_align,
                                .push = push_align,
                                .cycles = align_cycles,
                                .traffic = align_traffic,
                                .ranges = align_ranges,
                                .proof_reads = align_proof,
                                .field = &field_align};

/* ---- contract ---- */

typedef struct contraction_run {
    float *lanes;           /* the packet */
    float *weights;         /* decoded */
    float *scratch;         /* 2 x lanes x Rows */
    stream_word *words;     /* columns x Rows: a step's result */
    unsigned char *live;    /* per lane */
    mask_state fixed_state; /* of every step, when the masks do not depend on it */
    uint64_t fixed_present;
    int64_t step;
    mask_unit unit;
} contraction_run;

static bool contraction_run_new(stage_run *run)
{
    const contraction *k = run->stage->plan;
    contraction_run *r = run->state;
    size_t lanes = (size_t)k->lanes, rows = (size_t)k->rows;
    size_t columns = (size_t)k->tree.columns, decoded = weights_float_count(&k->weights);
    float *floats = calloc(lanes + 2 * lanes * rows + columns * rows + decoded, sizeof *floats);
    r->live = malloc(lanes);
    r->lanes = floats;
    if (!floats || !r->live)
        return false;
    r->scratch = r->lanes + lanes;
    r->words = (stream_word *)(void *)(r->scratch + 2 * lanes * rows);
    r->weights = r->scratch + 2 * lanes * rows + columns * rows;
    return true;
}

static void contraction_run_free(stage_run *run)
{
    contraction_run *r = run->state;
    free(r->lanes);
    free(r->live);
}

/* Bits of the columns that have a live lane. */
static uint64_t columns_present(const tree_shape *s, const unsigned char *live)
{
    uint64_t present = 0;
    int64_t width = INT64_C(1) << s->depth;
    for (int64_t g = 0; g < s->columns; g++)
        if (memchr(live + g * width, 1, (size_t)width))
            present |= UINT64_C(1) << g;
    return present;
}

mask_unit contraction_unit(const machine *m, int64_t unit)
{
    mask_unit u;
    machine_unit_place(m, unit, &u.counters[0], &u.counters[1], &u.counters[2]);
    return u;
}

static bool open_contract(stage_run *run)
{
    const contraction *k = run->stage->plan;
    contraction_run *r = run->state;
    machine *m = run->stage->chain->machine;
    r->step = 0;
    r->unit = contraction_unit(m, run->unit_index);
    const unsigned char *signs = NULL;
    if (k->weights.signs && !(signs = memory_look(&m->units[run->unit_index].trf_signs, 0, m->target->trf_bytes)))
        return fault_memory(run->fault, k->commands.trf_read, "a slice's TRF");
    weights_decode(&k->weights, weights_file(&k->weights, &m->units[run->unit_index].trf), signs, r->weights);
    if (k->masks.fixed)
        r->fixed_state = mask_set_at(&k->masks, &r->unit, 0, r->live);
    if (k->masks.fixed && r->fixed_state == MASK_SOME)
        r->fixed_present = columns_present(&k->tree, r->live);
    return true;
}

/* Every column absent: neutral for the accumulator's addition. */
static void words_neutral(const contraction *k, stream_word *words)
{
    for (int64_t i = 0; i < k->tree.columns * k->rows; i++)
        words[i] = k->is_float ? UINT32_C(0x80000000) : 0;
}

/* Sums of integers are exact floats (tree.h); here they become i32. */
static void words_from_floats(stream_word *words, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float sum;
        memcpy(&sum, words + i, sizeof sum);
        words[i] = (uint32_t)(int32_t)sum;
    }
}

/* One step of the loaded packet with the weights at `address`. */
static bool contraction_step(const contraction *k, contraction_run *r, int64_t address, uint64_t *present, fault *f)
{
    int64_t step = r->step++;
    mask_state state = MASK_ALL;
    *present = ~UINT64_C(0);
    if (k->masks.count > 0) {
        state = k->masks.fixed ? r->fixed_state : mask_set_at(&k->masks, &r->unit, step, r->live);
        if (state == MASK_SOME)
            *present = k->masks.fixed ? r->fixed_present : columns_present(&k->tree, r->live);
    }
    if (state == MASK_NONE) {
        *present = 0;
        words_neutral(k, r->words);
        return true;
    }
    if (!k->weights.inside && !weights_address_inside(&k->weights, address))
        return weights_outside(&k->weights, step, address, f);
    k->kernel(&k->tree, r->lanes, weights_at(&k->weights, r->weights, address), state == MASK_SOME ? r->live : NULL,
              (float *)(void *)r->words, r->scratch);
    if (!k->is_float)
        words_from_floats(r->words, k->tree.columns * k->rows);
    return true;
}

static bool push_contract(stage_run *run, const void *items, int64_t count)
{
    const contraction *k = run->stage->plan;
    contraction_run *r = run->state;
    const stream_pair *pairs = items;
    for (int64_t i = 0; i < count; i++) {
        int64_t data = k->data_bytes * 8 / dtype_row_of(k->operand)->bits;
        k->decode(r->lanes, pairs[i].packet, data);
        for (int64_t lane = 0; k->zero_point && lane < data; lane++)
            r->lanes[lane] -= (float)k->zero_point;
        for (int64_t step = 0; step < pairs[i].steps; step++) {
            stream_partial partial = {.words = r->words};
            int64_t address = walk_step(&k->weights.walk, pairs[i].weights);
            if (!contraction_step(k, r, address, &partial.present, run->fault) || !stage_push(run->next, &partial, 1))
                return false;
        }
    }
    return true;
}

static void contract_cycles(const stage *s, duration *d)
{
    const contraction *k = s->plan;
    d->fill += k->tree.depth * s->chain->machine->target->tree_level_cycles;
    duration_busy(d, ENGINE_REDUCER, k->steps, 1);
}

const stage_type stage_contract = {.run_bytes = sizeof(contraction_run),
                                   .plan = plan_contract,
                                   .run_new = contraction_run_new,
                                   .run_free = contraction_run_free,
                                   .open = open_contract,
                                   .push = push_contract,
                                   .cycles = contract_cycles,
                                   .field = &field_contract};
