#include "passes/dataflow.h"

/* Steps of Time whose results are summed, and the tiling steps whose results are kept: each meets other weights with the same packet. */
static void count_loops(const accumulate_config *a, int64_t tiling, int64_t *summed, int64_t *kept_tiling)
{
    int64_t inside = 1;
    *summed = *kept_tiling = 1;
    for (uint32_t i = a ? a->count : 0; i-- > 0;) {
        int64_t size = a->loops[i].size, left = tiling / inside, tiles = size < left ? size : left;
        if (a->loops[i].reduced)
            *summed *= size;
        else
            *kept_tiling *= tiles;
        inside *= tiles;
    }
    if (!a)
        *kept_tiling = tiling;
}

enum { LANE_FACTORS_MAX = 64 };

static size_t add_factors(const mapping *m, const factor **all, size_t count)
{
    for (size_t i = 0; i < m->count && count < LANE_FACTORS_MAX; i++)
        all[count++] = &m->factors[i];
    return count;
}

/* The digits of one axis together count no further than the axis goes: `K # 128` of K = 100, cut into packets, has 100 live lanes. */
static dataflow_ratio live_digits(const factor *const *all, size_t count, const axis *of)
{
    int64_t live = 1, extent = 1, weight = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (all[i]->kind != FACTOR_AXIS || all[i]->axis != of)
            continue;
        live *= all[i]->live;
        extent *= all[i]->extent;
        weight = all[i]->weight < weight ? all[i]->weight : weight;
    }
    int64_t most = (of->size + weight - 1) / weight;
    return dataflow_ratio_of(live < most ? live : most, extent);
}

/* The part of Rows, steps and lanes that holds data. */
static dataflow_ratio live_lanes(const op *align)
{
    const factor *all[LANE_FACTORS_MAX];
    size_t count = add_factors(op_weights(align)->out.part[ROW], all, 0);
    count = add_factors(align->out.part[TIME], all, count);
    count = add_factors(align->out.part[PACKET], all, count);
    dataflow_ratio part = {1, 1};
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < i && all[i]->kind == FACTOR_AXIS; k++)
            known = known || (all[k]->kind == FACTOR_AXIS && all[k]->axis == all[i]->axis);
        if (!known)
            part = dataflow_multiply(part, all[i]->kind == FACTOR_AXIS ? live_digits(all, count, all[i]->axis)
                                                                       : dataflow_ratio_of(all[i]->live, all[i]->extent));
    }
    return part;
}

static void add_interface(dataflow_model *m, dataflow_kind kind, const op *o, const char *name, int64_t blocks, int64_t block,
                          int64_t outer, int64_t inner)
{
    const dtype_row *type = dtype_row_of(kind == DATAFLOW_OUTPUT ? dtype_row_of(o->out.dtype)->accumulates_in : o->out.dtype);
    m->interfaces[m->count++] = (dataflow_interface){
        .kind = kind,
        .name = name,
        .text = "",
        .range = o->range,
        .tensor_range = o->range,
        .block_range = o->range,
        .parallel_range = o->range,
        .type = type->name,
        .bits = type->bits,
        .rank = 2,
        .tensor_rank = 2,
        .parallel_rank = 2,
        .tensor = {blocks, block},
        .block = {1, block},
        .parallel = {outer, inner},
    };
}

static dataflow_model *model_of(const kernel *k, const op *contract, arena *a, int64_t steps)
{
    const op *align = op_input(contract), *accumulate = op_accumulation(k, contract);
    const align_config *c = align->align;
    int64_t cii, groups, columns = contract->contract->columns, lanes = align->out.part[PACKET]->size / columns;
    count_loops(accumulate ? accumulate->accumulate : NULL, c->tiling->size, &cii, &groups);
    if (steps % (cii * groups)) /* kept loops that only cut padding off */
        cii = groups = 1;
    dataflow_model *m = ARENA_NEW(a, dataflow_model);
    *m = (dataflow_model){.name = k->name, .range = align->range, .interfaces = ARENA_ARRAY(a, dataflow_interface, 3), .batch = columns};
    int64_t block = cii * lanes, rows = c->rows, calculations = steps / cii;
    add_interface(m, DATAFLOW_INPUT, align, "stream", calculations / groups, block, 1, lanes);
    add_interface(m, DATAFLOW_WEIGHT, align, op_weights(align)->name[0] ? op_weights(align)->name : "trf", groups * rows, block, rows, 1);
    add_interface(m, DATAFLOW_OUTPUT, align, "accumulator", calculations * rows, 1, 1, 1);
    return m;
}

size_t dataflow_of_kernel(const kernel *k, arena *a, diag_list *diags, dataflow_contraction **out)
{
    size_t count = 0;
    *out = ARENA_ARRAY(a, dataflow_contraction, k->op_count + 1);
    for (size_t i = 0; i < k->op_count; i++) {
        const op *contract = k->ops[i], *align = op_input(contract);
        if (contract->kind != IR_CONTRACT || !contract->contract || !align || align->kind != IR_ALIGN || !align->align)
            continue;
        const align_config *c = align->align;
        const to_trf_config *load = op_weights(align)->to_trf;
        int64_t steps = align->out.part[TIME]->size;
        dataflow_contraction d = {.align = align, .compute_cycles = steps, .stream_cycles = c->packets * c->collect_flits};
        d.load_flits = load ? load->rows * load->flits_per_row : 0;
        d.lanes = live_lanes(align);
        d.model = model_of(k, contract, a, steps);
        if (dataflow_evaluate(d.model, diags))
            (*out)[count++] = d;
    }
    return count;
}
