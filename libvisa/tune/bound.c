#include "libvisa/tune/bound.h"

#include "libvisa/tune/machine.h"
#include "runtime/timing/hbm_address.h"
#include "support/integer.h"

/* Bytes that a sum can wait in without a loss, until what meets it has come. */
static int64_t bytes_of_waiting(const tune_question *q)
{
    unsigned bits = 2 * dtype_row_of(q->type)->bits - 1; /* of a product */
    for (int64_t products = 1; products < q->size[TUNE_SUM]; products *= 2)
        bits++;
    bool is_whole = dtype_row_of(q->type)->accumulates_in == DTYPE_I32;
    return !is_whole || bits > 16 ? 4 : bits > 8 ? 2 : 1;
}

/* Results that meet the last of their operands in a cycle, in all slices: what main sends through the Vector Engine, where a product or
 * quotient of floats takes packets of half the lanes, and what sub fetches. Without such operands it is what leaves the Reducer, in main.
 */
static int64_t made_in_a_cycle(const target *t, const tune_question *q)
{
    int64_t slices = tune_slices_of(t, q->most_slices) * t->clusters_per_chip, lanes = t->vector_lanes;
    if (q->extra_count == 0)
        return lanes * slices;
    for (size_t i = 1; i <= q->operation_count; i++) {
        const tune_operation *x = &q->operations[i];
        bool is_product = x->what == TUNE_TIMES || x->what == TUNE_DIVIDE || x->what == TUNE_ADD_TIMES;
        if (x->operand)
            lanes = is_product && q->meets == DTYPE_F32 ? t->vector_narrow_lanes : t->vector_lanes;
    }
    return (lanes + t->fetch_access_sub_bytes / bytes_of_waiting(q)) * slices;
}

attainable tune_bound_of(const target *t, const tune_question *q)
{
    const int64_t *size = q->size;
    bool has_windows = q->window_count > 0;
    int64_t batch = size[TUNE_BATCH], k = size[TUNE_SUM], bits = dtype_row_of(q->type)->bits,
            results = batch * size[TUNE_ROW] * size[TUNE_COLUMN];
    int64_t streamed = batch * size[TUNE_ROW] * k, alike = streamed, weights = (has_windows ? 1 : batch) * size[TUNE_COLUMN] * k;
    if (has_windows) { /* an image is stored once, and most of it is in several windows */
        int64_t uses = tune_window_uses(q, 0) * tune_window_uses(q, 1) * (q->depthwise ? 1 : size[TUNE_COLUMN] / q->groups);
        int64_t rows = smaller(tune_window_used(q, 0), tune_border_of(q, 0).count),
                places = smaller(tune_window_used(q, 1), tune_border_of(q, 1).count);
        streamed = batch * rows * places * q->groups * q->axes[q->window_channel].size;
        alike = larger(1, smaller(streamed, (int64_t)((__int128)results * k / uses)));
    }
    attainable_work w = {.chips = 1, .loads = 2 + (int64_t)q->extra_count, .stores = 1};
    w.operand_load_bytes = tune_bytes_of(q->stored[q->stream], streamed) + tune_bytes_of(q->stored[q->weights], weights);
    w.stored_bytes = tune_bytes_of(q->out_type, results);
    w.bytes = w.operand_load_bytes + w.stored_bytes;
    for (size_t i = 0; i < q->extra_count; i++) {
        int64_t elements = 1;
        for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
            elements *= q->extras[i].has[role] ? size[role] : 1;
        w.bytes += tune_bytes_of(q->extras[i].type, elements);
    }
    w.far_bank = w.bytes >> HBM_FAR_BIT != 0;
    w.slices = tune_slices_of(t, q->most_slices);
    int64_t lanes = t->rows * t->mac_width_bytes * 8 / bits * w.slices * t->clusters_per_chip;
    w.mac_cycles = ceil_div(results * k, lanes);
    w.first_loads = 2;
    w.ending_bytes = w.stored_bytes % t->hbm_block_bytes != 0 ? w.stored_bytes : 0; /* row by row, without padding */
    w.stored_mac_cycles = results * k / lanes;                                      /* all results need as many products */
    w.operand_bytes[0] = tune_bytes_of(q->stored[q->stream], alike);
    w.operand_bytes[1] = tune_bytes_of(q->stored[q->weights], weights);
    w.made_cycles = results / made_in_a_cycle(t, q);
    if (q->extra_count == 0) /* all products are then after one of the operands */
        w.made_cycles = larger(w.made_cycles, w.stored_mac_cycles);
    return attainable_of(t, q->timing, &w);
}
