#include "runtime/contraction.h"

#include <stdlib.h>
#include <string.h>

static bool align_plan(contraction *k, const target *t, const stream_shape *flits, fault *f)
{
    const command *c = k->commands.align;
    k->collect_flits = command_get(c, ALIGN_COLLECT_FLITS);
    k->tiling = command_get(c, ALIGN_TILING);
    k->packets = command_get(c, ALIGN_PACKETS);
    k->rows = command_get(c, ALIGN_ROWS);
    k->operand = (dtype)command_get(c, ALIGN_DTYPE);
    k->packet_bytes = t->mac_width_bytes;
    k->lanes = t->mac_width_bytes * 8 / dtype_row_of(k->operand)->bits;
    int64_t bytes = k->collect_flits * t->flit_bytes, wanted;
    k->data_bytes = bytes < k->packet_bytes ? bytes : k->packet_bytes;
    if (k->operand != flits->dtype || !dtype_is_operand(k->operand))
        return fault_set(f, E_RUN_CHAIN, c, "cannot align %s elements of a stream of %s",
                         dtype_row_of(k->operand)->name, dtype_row_of(flits->dtype)->name);
    if (__builtin_mul_overflow(k->packets, k->collect_flits, &wanted) || wanted != flits->packets)
        return fault_set(f, E_RUN_CHAIN, c,
                         "%lld packets of %lld flits do not take the %lld flits that arrive",
                         (long long)k->packets, (long long)k->collect_flits, (long long)flits->packets);
    if (__builtin_mul_overflow(k->packets, k->tiling, &k->steps))
        return fault_set(f, E_RUN_CHAIN, c, "the number of computation steps overflows");
    if (!k->commands.shift)
        return true;
    k->data_bytes = k->packet_bytes;
    return shift_plan(&k->shift, t, k->commands.shift, k->operand, k->collect_flits, k->tiling, k->packets, f);
}

static bool weights_legal(contraction *k, const target *t, fault *f)
{
    const command *c = k->commands.trf_read;
    if (!weights_plan(&k->weights, t, c, k->operand, f))
        return false;
    if (k->weights.rows != k->rows)
        return fault_set(f, E_RUN_CHAIN, c, "has %lld Rows, align has %lld", (long long)k->weights.rows,
                         (long long)k->rows);
    if (k->weights.steps != k->steps)
        return fault_set(f, E_RUN_CHAIN, c, "the entries have %lld steps, align has %lld",
                         (long long)k->weights.steps, (long long)k->steps);
    int64_t counters[WALK_MAX_LOOPS];
    walk_address address;
    if (k->weights.inside || k->commands.mask_count > 0 ||
        !walk_first_outside(&k->weights.table, 0, k->weights.partition_bytes - k->weights.read_bytes,
                            counters, &address))
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
    k->tree = (tree_shape){k->rows, command_get(c, CONTRACT_COLUMNS),
                           (unsigned)command_get(c, CONTRACT_DEPTH), k->weights.period};
    if ((dtype)command_get(c, CONTRACT_DTYPE) != k->operand)
        return fault_set(f, E_RUN_CHAIN, c, "multiplies %s, align has %s",
                         dtype_row_of((dtype)command_get(c, CONTRACT_DTYPE))->name, type->name);
    if (k->tree.depth > type->max_tree_depth || k->tree.columns << k->tree.depth > k->lanes)
        return fault_set(f, E_RUN_CHAIN, c,
                         "%lld columns of tree_depth %u need more than the %lld lanes of %s",
                         (long long)k->tree.columns, k->tree.depth, (long long)k->lanes, type->name);
    k->kernel = tree_kernel_for(&k->tree);
    k->is_float = type->kind == DTYPE_KIND_FLOAT;
    k->shape = (stream_shape){type->accumulates_in, k->tree.columns, k->tree.columns * 4, k->steps, k->rows};
    return true;
}

bool contraction_plan(contraction *k, const target *t, const stream_shape *flits,
                      const contraction_commands *commands, arena *a, fault *f)
{
    *k = (contraction){.commands = *commands};
    if (!align_plan(k, t, flits, f) || !weights_legal(k, t, f))
        return false;
    if (!commands->contract)
        return true;
    return tree_plan(k, f) &&
           mask_set_plan(&k->masks, commands->masks, commands->mask_count, k->steps, k->lanes, a, f);
}

bool contraction_run_new(const contraction *k, contraction_run *r)
{
    size_t lanes = (size_t)k->lanes, rows = (size_t)k->rows;
    size_t columns = (size_t)k->tree.columns, decoded = weights_float_count(&k->weights);
    *r = (contraction_run){.live = NULL};
    if (!k->commands.contract)
        return true;
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

void contraction_run_free(contraction_run *r)
{
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

bool contraction_open(const contraction *k, machine *m, int64_t unit_index, contraction_run *r, fault *f)
{
    r->file = memory_span(&m->units[unit_index].trf, 0, m->target->trf_bytes);
    if (!r->file)
        return fault_memory(f, k->commands.trf_read, "a slice's TRF");
    walk_start(&k->weights.walk, &r->cursor);
    r->step = 0;
    if (!k->commands.contract)
        return true;
    weights_decode(&k->weights, r->file, r->weights);
    if (k->masks.fixed)
        r->fixed_state = mask_set_at(&k->masks, 0, r->live);
    if (k->masks.fixed && r->fixed_state == MASK_SOME)
        r->fixed_present = columns_present(&k->tree, r->live);
    return true;
}

void contraction_load(const contraction *k, contraction_run *r, const unsigned char *packet)
{
    k->weights.decode(r->lanes, packet, k->data_bytes * 8 / dtype_row_of(k->operand)->bits);
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

bool contraction_step(const contraction *k, contraction_run *r, uint64_t *present, fault *f)
{
    int64_t step = r->step++, address = walk_step(&k->weights.walk, &r->cursor);
    mask_state state = MASK_ALL;
    *present = ~UINT64_C(0);
    if (k->masks.count > 0) {
        state = k->masks.fixed ? r->fixed_state : mask_set_at(&k->masks, step, r->live);
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
    k->kernel(&k->tree, r->lanes, weights_at(&k->weights, r->weights, address),
              state == MASK_SOME ? r->live : NULL, (float *)(void *)r->words, r->scratch);
    if (!k->is_float)
        words_from_floats(r->words, k->tree.columns * k->rows);
    return true;
}
