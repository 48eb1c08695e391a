#include "libvisa/tune/standing_write.h"

#include <inttypes.h>

#include "libvisa/tune/folded_write.h"
#include "libvisa/tune/write.h"
#include "support/integer.h"

enum { HALVES = STEPS_HALVES };

typedef struct standing_writer {
    const tune_question *q;
    const standing_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    const char *type, *out_type;  /* of the operands, of the result */
    const char *sums;             /* the tensor that the first pass writes: the result, or values for the next one */
    const char *part_of_sum;      /* elements of the sum in a slice, as one digit */
    tune_epilogue halves[HALVES]; /* what is done to the sums of each half, whose operands have names of their own */
} standing_writer;

/* The two halves of the columns, as the TRF has them. */
static const char *const half_name[] = {"lower", "upper"};

static int64_t padded_of(const standing_plan *p, tune_role role)
{
    return role == TUNE_ROW ? standing_padded_rows(p) : role == TUNE_COLUMN ? standing_padded_columns(p) : standing_padded_sum(p);
}

static const char *digit(const standing_writer *w, tune_role role, int64_t stride, int64_t count)
{
    return tune_digit(w->q, role, padded_of(w->p, role), stride, count, w->a);
}

/* Of the rows of a step. */
static const char *row_digit(const standing_writer *w, int64_t stride, int64_t count)
{
    return digit(w, TUNE_ROW, stride * standing_row_stride(w->q, w->p), count);
}

/* "M % 8": so many positions that follow each other; "1" of one. */
static const char *first(const standing_writer *w, tune_role role, int64_t count)
{
    return TUNE_LIST(w->a, digit(w, role, 1, count));
}

static const char *cluster_digit(const standing_writer *w)
{
    return digit(w, TUNE_ROW, standing_cluster_stride(w->q, w->p), w->p->clusters);
}

static const char *group_digit(const standing_writer *w)
{
    return row_digit(w, standing_rows(w->p), w->p->groups);
}

static const char *column_slices_digit(const standing_writer *w)
{
    return digit(w, TUNE_COLUMN, w->p->columns, w->p->column_slices);
}

static const char *sum_digit(const standing_writer *w)
{
    return digit(w, TUNE_SUM, w->p->sums, w->p->sum_slices);
}

static const char *step_digit(const standing_writer *w)
{
    const standing_plan *p = w->p;
    int64_t stride = standing_step_stride(w->q, p), rows = w->q->size[TUNE_ROW];
    return tune_digit(w->q, TUNE_ROW, rows, stride, p->steps, w->a); /* without what pads the rows of a step */
}

/* So many of the steps that follow each other: "M / 64 = 5"; NULL of one. */
static const char *some_steps(const standing_writer *w, int64_t count)
{
    return count == 1 ? NULL : count == w->p->steps ? step_digit(w) : arena_printf(w->a, "%s = %" PRId64, step_digit(w), count);
}

/* ".tile::<..>(8)": steps of a tensor with all of them, from that one on, which is a number or a loop's index. */
static const char *tile_of_steps(const standing_writer *w, const char *from, int64_t count)
{
    return count == w->p->steps ? "" : arena_printf(w->a, ".tile::<m![%s], %" PRId64 ", _>(%s)", step_digit(w), count, from);
}

static const char *number(const standing_writer *w, int64_t value)
{
    return arena_printf(w->a, "%" PRId64, value);
}

static const char *half_digit(const standing_writer *w)
{
    return digit(w, TUNE_COLUMN, w->p->columns / 2, 2);
}

static const char *tile_of_half(const standing_writer *w, const char *half)
{
    return arena_printf(w->a, ".tile::<m![%s], 1, _>(%s)", half_digit(w), half);
}

static void end_block(standing_writer *w)
{
    w->page.depth--;
    tune_line(&w->page, "}");
}

/* Slices after the reducer, each of which keeps a part of the rows. */
static const char *keeping_slice(const standing_writer *w)
{
    return TUNE_LIST(w->a, group_digit(w), column_slices_digit(w), row_digit(w, 1, w->p->sum_slices));
}

static void write_tensors(standing_writer *w)
{
    const standing_plan *p = w->p;
    const char *bringing = row_digit(w, p->brought, p->column_slices), *left = row_digit(w, p->sum_slices, standing_rows_kept(p));
    tune_line(&w->page, "let mut parts: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = DmTensor::new();", w->type,
              TUNE_LIST(w->a, group_digit(w), bringing, sum_digit(w)),
              TUNE_LIST(w->a, step_digit(w), row_digit(w, 1, p->brought), w->part_of_sum));
    tune_line(&w->page, "let mut rows: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", w->type,
              TUNE_LIST(w->a, step_digit(w), row_digit(w, 1, standing_rows(p)), w->part_of_sum));
    tune_line(&w->page, "let mut columns: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", w->type,
              TUNE_LIST(w->a, digit(w, TUNE_COLUMN, 1, p->columns), w->part_of_sum));
    tune_line(&w->page, "let mut products: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = DmTensor::new();", w->out_type, keeping_slice(w),
              TUNE_LIST(w->a, step_digit(w), left, digit(w, TUNE_COLUMN, 1, p->columns)));
    if (w->halves[0].count > 1)
        tune_line(&w->page, "let mut values: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = DmTensor::new();",
                  dtype_row_of(tune_type_of_values(w->q))->name, keeping_slice(w),
                  TUNE_LIST(w->a, step_digit(w), left, digit(w, TUNE_COLUMN, 1, p->columns)));
}

static void write_copy_of_rows(standing_writer *w, int64_t from, int64_t count)
{
    const char *tile = tile_of_steps(w, number(w, from), count);
    tune_line(&w->page, "%s.view()%s", w->q->tensors[w->q->stream].port, tile);
    tune_line(&w->page, "    .to_dm_view(&mut device.tdma, parts.view_mut()%s);", tile);
}

static const char *name_in_half(const standing_writer *w, int half, const char *name)
{
    return arena_printf(w->a, "%s_%s", half_name[half], name);
}

/* Rows of a step that a slice keeps, columns of a half: outside of a packet, and in all. */
static const char *rows_kept(const standing_writer *w)
{
    return row_digit(w, w->p->sum_slices, standing_rows_kept(w->p));
}

static const char *tiles_of_half(const standing_writer *w)
{
    return digit(w, TUNE_COLUMN, w->t->rows, w->p->columns / HALVES / w->t->rows);
}

static const char *columns_of_half(const standing_writer *w)
{
    return digit(w, TUNE_COLUMN, 1, w->p->columns / HALVES);
}

/* Of a tensor with all results of a slice those of some steps with half of the columns: "values.view().tile::<..>(0)". */
static const char *view_of(const standing_writer *w, const char *tensor, const char *view, int half, const char *from, int64_t count)
{
    return arena_printf(w->a, "%s.%s()%s%s", tensor, view, tile_of_half(w, number(w, half)), tile_of_steps(w, from, count));
}

/* What a slice has of an operand that meets the results, in DM. */
static const char *own_name(const standing_writer *w, const tune_extra *e)
{
    return arena_printf(w->a, "own_%s", e->tensor.port);
}

/* What meets the results comes in front of the columns, and into the VRF for each pass that it meets. */
static void write_extra_of_results(standing_writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const char *name = own_name(w, e);
    const int64_t copies = standing_copies(w->q, w->p, e), steps = w->p->steps / copies;
    tune_line(&w->page, "let mut %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = DmTensor::new();", name, dtype_row_of(e->type)->name,
              keeping_slice(w), TUNE_LIST(w->a, step_digit(w), rows_kept(w), digit(w, TUNE_COLUMN, 1, w->p->columns)));
    if (copies > 1) {
        tune_line(&w->page, "for j in 0..%" PRId64 " {", copies);
        w->page.depth++;
    }
    const char *tile = tile_of_steps(w, steps == 1 ? "j" : arena_printf(w->a, "%" PRId64 " * j", steps), steps);
    tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to the sums, as slices keep the results");
    tune_line(&w->page, "%s.view()%s", e->tensor.port, tile);
    tune_line(&w->page, "    .to_dm_view(&mut device.tdma, %s.view_mut()%s);", name, tile);
    tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
    if (copies > 1)
        end_block(w);
}

static void keep_extras_of_results(standing_writer *w, const tune_pass *pass, int half, const char *from, int64_t count)
{
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        const char *name = name_in_half(w, half, e->tensor.port), *steps = some_steps(w, count), *rows = rows_kept(w);
        if (!standing_is_of_results(e) || !tune_pass_meets(pass, name))
            continue;
        tune_operand_text x = {.name = name,
                               .slice = arena_printf(w->a, "m![%s]", keeping_slice(w)),
                               .element = TUNE_LIST(w->a, steps, rows, columns_of_half(w)),
                               .from = view_of(w, own_name(w, e), "view", half, from, count),
                               .from_type = e->type,
                               .type = w->q->meets,
                               .time = TUNE_LIST(w->a, steps, rows, tiles_of_half(w)),
                               .packet = first(w, TUNE_COLUMN, w->t->rows)};
        tune_write_operand(&w->page, &x);
    }
}

/* What meets the sums of a slice's columns: it comes in front of the columns, and is in the VRF by halves. */
static void write_extra(standing_writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const char *name = e->tensor.port, *slice = arena_printf(w->a, "m![%s]", keeping_slice(w));
    int64_t columns = w->p->columns / HALVES;
    tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to the sums");
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = %s.to_dm(&mut device.tdma);", name, dtype_row_of(e->type)->name,
              slice, digit(w, TUNE_COLUMN, 1, w->p->columns), name);
    tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
    for (int half = 0; half < HALVES; half++) {
        if (half == 0)
            tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF, for each half of the columns");
        tune_operand_text x = {.name = name_in_half(w, half, name),
                               .slice = slice,
                               .element = digit(w, TUNE_COLUMN, 1, columns),
                               .from = arena_printf(w->a, "%s.view()%s", name, tile_of_half(w, number(w, half))),
                               .from_type = e->type,
                               .type = w->q->meets,
                               .time = TUNE_LIST(w->a, digit(w, TUNE_COLUMN, w->t->rows, columns / w->t->rows)),
                               .packet = first(w, TUNE_COLUMN, w->t->rows)};
        tune_write_operand(&w->page, &x);
        if (half == 0)
            tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
    }
}

/* What is done to the sums of each half. */
static void name_halves(standing_writer *w)
{
    const tune_question *q = w->q;
    tune_operation named[TUNE_OPERATIONS_MAX];
    for (int half = 0; half < HALVES; half++) {
        for (size_t i = 0; i < q->operation_count; i++) {
            named[i] = q->operations[i + 1];
            if (named[i].operand)
                named[i].operand = name_in_half(w, half, named[i].operand);
        }
        w->halves[half] =
            tune_epilogue_make(named, q->operation_count, q->meets == DTYPE_I32, dtype_row_of(q->type)->accumulates_in, q->out_type, w->a);
    }
}

static void write_copies(standing_writer *w)
{
    const standing_plan *p = w->p;
    tune_begin_step(
        &w->page, TUNE_LOAD_ROWS,
        arena_printf(w->a, "Each row once: a slice brings %" PRId64 " rows of each of the first %" PRId64 " steps, of its part of the sum",
                     p->brought, p->order.copied[0]));
    write_copy_of_rows(w, 0, p->order.copied[0]);
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
    if (p->order.copied[1] > 0)
        write_copy_of_rows(w, p->order.copied[0], p->order.copied[1]);
    for (size_t i = 0; i < w->q->extra_count; i++)
        if (standing_is_of_results(&w->q->extras[i]))
            write_extra_of_results(w, i);
        else
            write_extra(w, i);
    const char *half = p->columns_at_once ? "" : tile_of_half(w, "h");
    if (!p->columns_at_once) {
        tune_line(&w->page, "for h in 0..2 {");
        w->page.depth++;
    }
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS,
                    arena_printf(w->a, "%" PRId64 " columns for each slice, of its part of the sum: a copy for every group of rows",
                                 p->columns_at_once ? p->columns : p->columns / 2));
    tune_line(&w->page, "%s.view()%s", w->q->tensors[w->q->weights].port, half);
    tune_line(&w->page, "    .to_dm_view(&mut device.tdma, columns.view_mut()%s);", half);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    if (!p->columns_at_once)
        end_block(w);
    if (p->order.copied[2] > 0) {
        tune_line(&w->page, "// Rows that are needed last");
        write_copy_of_rows(w, p->order.copied[0] + p->order.copied[1], p->order.copied[2]);
    }
}

/* A step's rows around its group, by one of the contexts. */
static void write_ring(void *of, const char *by)
{
    standing_writer *w = of;
    const standing_plan *p = w->p;
    const char *here = row_digit(w, 1, p->brought), *tile = tile_of_steps(w, "j", 1);
    tune_line(&w->page, "device.%s", by);
    tune_line(&w->page, "    .begin(parts.view()%s)", tile);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, here), w->part_of_sum);
    tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
              TUNE_LIST(w->a, here, row_digit(w, p->brought, p->column_slices)), p->column_slices, p->sum_slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", first(w, TUNE_SUM, w->t->flit_bytes * 8 / dtype_row_of(w->q->type)->bits));
    tune_line(&w->page, "    .commit_view(rows.view_mut()%s);", tile);
}

static void write_rings(standing_writer *w)
{
    const standing_plan *p = w->p;
    tune_begin_step(&w->page, TUNE_HAND_WEIGHTS,
                    arena_printf(w->a, "They go around the %" PRId64 " slices of a group, ahead of the products%s",
                                 p->column_slices * p->sum_slices,
                                 p->order.by_main > 0 ? ", by both contexts until main has something to multiply" : ""));
    tune_write_by_both(&w->page, 0, p->steps, p->order.by_main, write_ring, w);
    tune_end_step(&w->page, TUNE_HAND_WEIGHTS);
}

/* Half of the columns into the TRF. */
static void write_weights(standing_writer *w, int half)
{
    const char *lanes = first(w, TUNE_COLUMN, w->t->rows), *tiles = digit(w, TUNE_COLUMN, w->t->rows, w->p->columns / 2 / w->t->rows);
    tune_line(&w->page, "let %s: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.main", half_name[half], w->type, lanes,
              TUNE_LIST(w->a, tiles, w->part_of_sum));
    tune_line(&w->page, "    .begin(columns.view()%s)", tile_of_half(w, number(w, half)));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes, tiles), w->part_of_sum);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
}

/* Steps, from a number or a loop's index on, meet half of the columns. */
static void write_products(standing_writer *w, int half, const char *from, int64_t count)
{
    const tune_question *q = w->q;
    const standing_plan *p = w->p;
    const tune_epilogue *e = &w->halves[half];
    int64_t packet = tune_packet_of(w->t, q);
    const char *steps = some_steps(w, count), *rows = row_digit(w, 1, standing_rows(p)),
               *packets = digit(w, TUNE_SUM, packet, p->sums / packet), *lanes = first(w, TUNE_COLUMN, w->t->rows),
               *tiles = tiles_of_half(w), *of_packet = first(w, TUNE_SUM, packet), *time = TUNE_LIST(w->a, steps, rows, tiles);
    if (e->count > 0)
        keep_extras_of_results(w, &e->passes[0], half, from, count);
    tune_line(&w->page, "device.main");
    tune_line(&w->page, "    .begin(rows.view()%s)", tile_of_steps(w, from, count));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, steps, rows, packets), of_packet);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&%s)", TUNE_LIST(w->a, steps, rows, packets, tiles), of_packet,
              half_name[half]);
    tune_line(&w->page, "    .contract_packet::<m![1]>()");
    tune_line(&w->page, "    .contract_time::<m![%s]>()", time);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", time, lanes);
    tune_write_fold(&w->page, w->t, q, e, keeping_slice(w), TUNE_LIST(w->a, steps, rows_kept(w), tiles), lanes);
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", lanes);
    tune_line(&w->page, "    .commit_view(%s);", view_of(w, w->sums, "view_mut", half, from, count));
}

/* The same by as many steps as a pass may have. */
static void write_range(standing_writer *w, int half, int64_t from, int64_t count)
{
    for (int64_t here; count > 0; from += here, count -= here)
        write_products(w, half, number(w, from), here = smaller(w->p->most_steps, count));
}

/* All passes but the first one over the sums of so many steps. */
static void write_later(standing_writer *w, int64_t from, int64_t count)
{
    for (int64_t here; count > 0; from += here, count -= here) {
        here = smaller(w->p->most_steps, count);
        for (int half = 0; half < HALVES; half++) {
            const tune_epilogue *e = &w->halves[half];
            const char *steps = some_steps(w, here), *at = number(w, from), *rows = rows_kept(w);
            tune_values_text x = {.from = view_of(w, w->sums, "view", half, at, here),
                                  .into = view_of(w, "products", "view_mut", half, at, here),
                                  .slice = arena_printf(w->a, "m![%s]", keeping_slice(w)),
                                  .element = TUNE_LIST(w->a, steps, rows, columns_of_half(w)),
                                  .time = TUNE_LIST(w->a, steps, rows, tiles_of_half(w)),
                                  .packet = first(w, TUNE_COLUMN, w->t->rows)};
            for (size_t i = 1; i < e->count; i++) {
                keep_extras_of_results(w, &e->passes[i], half, at, here);
                tune_write_later_pass(&w->page, w->t, w->q, e, i, &x);
            }
        }
    }
}

/* So many passes of the same size that follow each other are a loop, "i". Returns where to begin, as in the text. */
static const char *begin_passes(standing_writer *w, int64_t from, int64_t count, int64_t passes)
{
    if (passes == 1)
        return number(w, from);
    tune_line(&w->page, "for i in 0..%" PRId64 " {", passes);
    w->page.depth++;
    const char *each = count == 1 ? "i" : arena_printf(w->a, "%" PRId64 " * i", count);
    return from == 0 ? each : arena_printf(w->a, "%" PRId64 " + %s", from, each);
}

/* How many of them are equal to the first one. */
static int64_t equal_ones(const int64_t *sizes, int64_t count)
{
    int64_t equal = 1;
    while (equal < count && sizes[equal] == sizes[0])
        equal++;
    return equal;
}

/* What meets the first half of the columns while the other half comes. Returns its steps. */
static int64_t write_early_products(standing_writer *w)
{
    const standing_plan *p = w->p;
    int64_t done = 0;
    for (int64_t i = 0; i < p->order.early_count;) {
        int64_t passes = equal_ones(&p->order.early[i], p->order.early_count - i), count = p->order.early[i];
        write_products(w, 0, begin_passes(w, done, count, passes), count);
        if (passes > 1)
            end_block(w);
        done += passes * count;
        i += passes;
    }
    return done;
}

/* Slices that write: the outer digit of them is as long as none of its positions is padding alone, and idle slices keep the inner one
 * apart. So one command brings what all of them have, padding too, where a digit that ends in padding would take one for each of its digits
 * in the source. */
static const char *writing_slices(const standing_writer *w, int64_t stride, int64_t writers, int64_t padded)
{
    int64_t idle = w->t->slices_per_cluster / writers, outer = writers;
    while (idle > 1 && outer > 1 && w->q->size[TUNE_ROW] <= padded - padded / outer)
        outer /= 2;
    return TUNE_LIST(w->a, tune_digit(w->q, TUNE_ROW, padded, stride * (writers / outer), outer, w->a),
                     idle > 1 ? arena_printf(w->a, "1 # %" PRId64, idle) : NULL,
                     tune_digit(w->q, TUNE_ROW, padded, stride, writers / outer, w->a));
}

/* Whole rows into the slices that write them, of the cluster that has them where both write. */
static void write_whole_rows(standing_writer *w)
{
    const standing_plan *p = w->p;
    const tune_question *q = w->q;
    int64_t writers = power_of_two_above(ceil_div(q->size[TUNE_ROW], p->whole * p->whole_clusters)),
            padded = p->whole * p->whole_clusters * writers, inside = p->clusters_inside ? p->whole_clusters : 1;
    const char *cluster = tune_digit(q, TUNE_ROW, padded, p->whole * (p->clusters_inside ? 1 : writers), p->whole_clusters, w->a),
               *rows = tune_digit(q, TUNE_ROW, padded, 1, p->whole, w->a), *out = q->tensors[TUNE_OUT].port;
    tune_write_bring(&w->page, w->t, q, p->whole, "row", cluster, writing_slices(w, p->whole * inside, writers, padded),
                     TUNE_LIST(w->a, rows, q->axis_text[TUNE_COLUMN]));
    tune_begin_step(&w->page, TUNE_STORE, "Out");
    tune_line(&w->page, "whole.view().to_hbm_view(&mut device.tdma, %s.view_mut());", out);
    tune_end_step(&w->page, TUNE_STORE);
}

/* What of a range has not met the first half of the columns meets it. */
static void write_rest(standing_writer *w, int64_t from, int64_t to, int64_t early)
{
    if (to > larger(early, from))
        write_range(w, 0, larger(early, from), to - larger(early, from));
}

/* A store, and the products in front of it that are not there yet. */
static void write_stored(standing_writer *w, int64_t from, int64_t count, int64_t parted, int64_t early)
{
    if (parted > 0) {
        write_rest(w, from, from + parted, early);
        write_range(w, 1, from, parted);
    }
    write_rest(w, from + parted, from + count, early);
    write_range(w, 1, from + parted, count - parted);
    write_later(w, from, count);
    if (w->p->whole > 0) {
        write_whole_rows(w);
        return;
    }
    const char *tile = tile_of_steps(w, number(w, from), count);
    if (from == 0)
        tune_begin_step(&w->page, TUNE_STORE, "Out");
    tune_line(&w->page, "products.view()%s", tile);
    tune_line(&w->page, "    .to_hbm_view(&mut device.tdma, %s.view_mut()%s);", w->q->tensors[TUNE_OUT].port, tile);
    if (from == 0)
        tune_end_step(&w->page, TUNE_STORE);
}

static void write_body(standing_writer *w)
{
    const standing_plan *p = w->p;
    write_tensors(w);
    write_copies(w);
    write_rings(w);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS, "Half of the columns stay in one half of the TRF, and rows pass while the others come");
    write_weights(w, 0);
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
    int64_t early = write_early_products(w), from = 0;
    tune_line(&w->page, "// The others, in the other half of the TRF");
    write_weights(w, 1);
    for (int64_t i = 0; i < p->order.store_count; from += p->order.stored[i++])
        write_stored(w, from, p->order.stored[i], p->order.parted[i], early);
}

void standing_write(const target *t, const tune_question *q, const standing_plan *p, const char *head, const tune_text *found, arena *a,
                    tune_text *out)
{
    standing_writer w = {.q = q, .p = p, .t = t, .a = a, .page = {out, found, a, 0}};
    w.type = dtype_row_of(q->type)->name;
    w.out_type = dtype_row_of(q->out_type)->name;
    w.part_of_sum = first(&w, TUNE_SUM, p->sums);
    name_halves(&w);
    w.sums = w.halves[0].count > 1 ? "values" : "products";
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    folded_write_head(&w.page, t, q, TUNE_LIST(a, cluster_digit(&w)), TUNE_LIST(a, group_digit(&w), column_slices_digit(&w), sum_digit(&w)),
                      true);
    write_body(&w);
    end_block(&w);
}
