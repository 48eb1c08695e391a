#include "libvisa/tune/lanes_write.h"

#include <inttypes.h>

#include "libvisa/tune/folded_write.h"
#include "libvisa/tune/write.h"
#include "support/integer.h"

enum { HALVES = STEPS_HALVES };

typedef struct lanes_writer {
    const tune_question *q;
    const lanes_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    const char *type, *out_type;   /* of the operands, of the result */
    const char *part_of_sum;       /* elements of the sum in a slice, as one digit */
    const char *passing, *staying; /* what goes around, what stands, as a kernel calls it */
    int64_t paired, beside;        /* of a flit of what goes around: elements of the sum, rows or columns */
    int pass;                      /* of the products, from 0: what meets its sums in the VRF has a name of its own */
    bool keeps;                    /* only that is written */
    int64_t unit;                  /* steps whose results are whole blocks of HBM: those of others lie apart, and are stored apart */
} lanes_writer;

/* The two halves of what stands, as the TRF has them. */
static const char *const half_name[] = {"lower", "upper"};

static const char *digit(const lanes_writer *w, tune_role role, int64_t stride, int64_t count)
{
    return tune_digit(w->q, role, role == w->p->stands ? lanes_padded_standing(w->p) : w->q->size[role], stride, count, w->a);
}

static const char *around(const lanes_writer *w, int64_t stride, int64_t count)
{
    return digit(w, w->p->around, stride, count);
}

static const char *stands(const lanes_writer *w, int64_t stride, int64_t count)
{
    return digit(w, w->p->stands, stride, count);
}

static const char *sum(const lanes_writer *w, int64_t stride, int64_t count)
{
    return digit(w, TUNE_SUM, stride, count);
}

static int64_t half_of(const lanes_writer *w)
{
    return w->p->standing / HALVES;
}

static const char *number(const lanes_writer *w, int64_t value)
{
    return arena_printf(w->a, "%" PRId64, value);
}

static void end_block(lanes_writer *w)
{
    w->page.depth--;
    tune_line(&w->page, "}");
}

static const char *cluster_digit(const lanes_writer *w)
{
    return around(w, lanes_cluster_stride(w->p), w->p->clusters);
}

static const char *group_digit(const lanes_writer *w)
{
    return around(w, lanes_group_stride(w->p), w->p->groups);
}

static const char *standing_slices_digit(const lanes_writer *w)
{
    return stands(w, lanes_slice_stride(w->p), w->p->standing_slices);
}

static const char *sum_slices_digit(const lanes_writer *w)
{
    return sum(w, w->p->sums, w->p->sum_slices);
}

/* Of the slices of a group those with the same part of the sum bring a part of it each. */
static const char *bringing_digit(const lanes_writer *w)
{
    return sum(w, lanes_brought(w->p), w->p->standing_slices);
}

static const char *inner_digit(const lanes_writer *w)
{
    return around(w, w->p->step, w->p->inner);
}

static const char *outer_digit(const lanes_writer *w)
{
    return around(w, lanes_outer_stride(w->p), w->p->order.steps / w->p->inner);
}

/* So many of a digit's positions that follow each other: "N / 64 % 8 = 5"; NULL of one. */
static const char *some_of(const lanes_writer *w, const char *digit, int64_t count, int64_t all)
{
    return count == 1 ? NULL : count == all ? digit : arena_printf(w->a, "%s = %" PRId64, digit, count);
}

/* ".tile::<..>(8)" of a digit, where that is a part of it. */
static const char *tile_of(const lanes_writer *w, const char *digit, int64_t count, int64_t all, const char *from)
{
    return count == all ? "" : arena_printf(w->a, ".tile::<m![%s], %" PRId64 ", _>(%s)", digit, count, from);
}

/* Steps of a tensor with all of them, from that one on. */
static const char *tile_of_steps(const lanes_writer *w, int64_t from, int64_t count)
{
    int64_t inner = w->p->inner, outer = w->p->order.steps / inner;
    return arena_printf(w->a, "%s%s", tile_of(w, outer_digit(w), ceil_div(count, inner), outer, number(w, from / inner)),
                        tile_of(w, inner_digit(w), smaller(count, inner), inner, number(w, from % inner)));
}

/* The same of results, by units: some of them, or a part of one. */
static const char *tile_of_results(const lanes_writer *w, int64_t from, int64_t count)
{
    int64_t inner = w->p->inner, unit = w->unit, outer = w->p->order.steps / inner, units = inner / unit;
    return arena_printf(
        w->a, "%s%s%s", tile_of(w, outer_digit(w), ceil_div(count, inner), outer, number(w, from / inner)),
        tile_of(w, around(w, unit * w->p->step, units), ceil_div(smaller(count, inner), unit), units, number(w, from % inner / unit)),
        tile_of(w, around(w, w->p->step, unit), smaller(count, unit), unit, number(w, from % unit)));
}

/* That of a loop's index j. */
static const char *tile_of_index(const lanes_writer *w)
{
    int64_t inner = w->p->inner, outer = w->p->order.steps / inner;
    return arena_printf(w->a, "%s%s", tile_of(w, outer_digit(w), 1, outer, inner == 1 ? "j" : arena_printf(w->a, "j / %" PRId64, inner)),
                        tile_of(w, inner_digit(w), 1, inner, outer == 1 ? "j" : arena_printf(w->a, "j %% %" PRId64, inner)));
}

static const char *half_digit(const lanes_writer *w)
{
    return stands(w, lanes_half_stride(w->p), HALVES);
}

static const char *tile_of_half(const lanes_writer *w, const char *half)
{
    return arena_printf(w->a, ".tile::<m![%s], 1, _>(%s)", half_digit(w), half);
}

/* Of results slices keep a part each of the axis that lies outside in HBM. */
static const char *keeping_slice(const lanes_writer *w)
{
    const char *kept = w->p->stands == TUNE_ROW ? stands(w, 1, w->p->sum_slices) : around(w, 1, w->p->sum_slices);
    return TUNE_LIST(w->a, group_digit(w), standing_slices_digit(w), kept);
}

/* What is in a slice of a step, by flits. */
static const char *step_by_flits(const lanes_writer *w)
{
    return around(w, w->beside, w->p->step / w->beside);
}

/* Packets of the Reducer in so many steps, of which a packet may have several; NULL of one. */
static const char *packets_of(const lanes_writer *w, int64_t steps)
{
    int64_t lanes = w->t->accumulator_columns, together = w->p->inner, all = together * w->p->step / lanes;
    const char *outer = steps > together ? some_of(w, outer_digit(w), steps / together, w->p->order.steps / together) : NULL,
               *inner = some_of(w, around(w, lanes, all), smaller(steps, together) * w->p->step / lanes, all);
    return outer || inner ? TUNE_LIST(w->a, outer, inner) : NULL;
}

/* The flits of a packet. */
static const char *packet_by_flits(const lanes_writer *w)
{
    return around(w, w->beside, w->t->accumulator_columns / w->beside);
}

static const char *flit(const lanes_writer *w)
{
    return TUNE_LIST(w->a, sum(w, 1, w->paired), around(w, 1, w->beside));
}

static void write_tensors(lanes_writer *w)
{
    const lanes_plan *p = w->p;
    const char *outer = outer_digit(w);
    tune_line(
        &w->page, "let mut %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", w->passing, w->type,
        TUNE_LIST(w->a, outer, around(w, w->beside, p->step * p->inner / w->beside), sum(w, w->paired, p->sums / w->paired), flit(w)));
    tune_line(&w->page, "let mut %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", w->staying, w->type,
              TUNE_LIST(w->a, half_digit(w), stands(w, 1, half_of(w)), w->part_of_sum));
    const char *results =
        p->stands == TUNE_ROW
            ? TUNE_LIST(w->a, half_digit(w), outer, around(w, w->unit * p->step, p->inner / w->unit),
                        stands(w, p->sum_slices, half_of(w) / p->sum_slices), around(w, 1, w->unit * p->step))
            : TUNE_LIST(w->a, outer, around(w, p->sum_slices, p->step * p->inner / p->sum_slices), half_digit(w), stands(w, 1, half_of(w)));
    tune_line(&w->page, "let mut products: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = DmTensor::new();", w->out_type, keeping_slice(w),
              results);
}

static tune_place operand_of(const lanes_writer *w, tune_role role)
{
    return role == TUNE_ROW ? w->q->stream : w->q->weights;
}

/* What each copy brings of the steps has a tensor of its own: what others bring need not wait for it. */
static const char *const copy_name[STEPS_COPIES] = {"parts", "more_parts", "last_parts"};

static int64_t steps_before(const lanes_writer *w, int copy)
{
    int64_t steps = 0;
    for (int i = 0; i < copy; i++)
        steps += w->p->order.copied[i];
    return steps;
}

/* Digits of the steps that a copy brings: of those that do not follow each other, and of those that do; NULL: one position. */
static const char *copied_outer(const lanes_writer *w, int64_t count)
{
    int64_t inner = w->p->inner;
    return count < inner ? NULL : some_of(w, outer_digit(w), count / inner, w->p->order.steps / inner);
}

static const char *copied_inner(const lanes_writer *w, int64_t count)
{
    return some_of(w, inner_digit(w), smaller(count, w->p->inner), w->p->inner);
}

static void write_copy_of_steps(lanes_writer *w, int copy)
{
    const lanes_plan *p = w->p;
    int64_t count = p->order.copied[copy];
    const char *element =
                   TUNE_LIST(w->a, copied_outer(w, count), sum(w, 1, lanes_brought(p)), copied_inner(w, count), around(w, 1, p->step)),
               *tile = tile_of_steps(w, steps_before(w, copy), count);
    if (count == 0)
        return;
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = %s%s%s", copy_name[copy], w->type,
              TUNE_LIST(w->a, group_digit(w), bringing_digit(w), sum_slices_digit(w)), element,
              w->q->tensors[operand_of(w, p->around)].port, *tile ? ".view()" : "", tile);
    tune_line(&w->page, "    .to_dm(&mut device.tdma);");
}

/* What a slice has of an operand of what is done to the sums, in DM; and in the VRF, for a pass. */
static const char *own_name(const lanes_writer *w, const char *port)
{
    return arena_printf(w->a, "own_%s", port);
}

static const char *name_in_pass(const lanes_writer *w, const char *port)
{
    return arena_printf(w->a, "own_%d_%s", w->pass, port);
}

static void write_extras(lanes_writer *w)
{
    const lanes_plan *p = w->p;
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to the sums");
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = %s.to_dm(&mut device.tdma);",
                  own_name(w, e->tensor.port), dtype_row_of(e->type)->name, keeping_slice(w),
                  p->stands == TUNE_ROW ? TUNE_LIST(w->a, outer_digit(w), around(w, 1, p->step * p->inner))
                                        : TUNE_LIST(w->a, half_digit(w), stands(w, 1, half_of(w))),
                  e->tensor.port);
        tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
    }
}

/* Of these columns what a pass has in the VRF. */
static void keep_extras(lanes_writer *w, int half, int64_t from, int64_t count)
{
    const lanes_plan *p = w->p;
    int64_t lanes = w->t->accumulator_columns, out = w->t->rows;
    bool of_steps = p->stands == TUNE_ROW;
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        tune_operand_text x = {
            .name = name_in_pass(w, e->tensor.port),
            .slice = arena_printf(w->a, "m![%s]", keeping_slice(w)),
            .element = of_steps ? TUNE_LIST(w->a, packets_of(w, count), around(w, 1, lanes)) : TUNE_LIST(w->a, stands(w, 1, half_of(w))),
            .from = arena_printf(w->a, "%s.view()%s", own_name(w, e->tensor.port),
                                 of_steps ? tile_of_steps(w, from, count) : tile_of_half(w, number(w, half))),
            .from_type = e->type,
            .type = w->q->meets,
            .time = of_steps ? TUNE_LIST(w->a, packets_of(w, count), around(w, out, lanes / out))
                             : TUNE_LIST(w->a, stands(w, out, half_of(w) / out)),
            .packet = of_steps ? around(w, 1, out) : stands(w, 1, out),
        };
        tune_write_operand(&w->page, &x);
    }
}

/* What is done to the sums of a pass. */
static tune_epilogue epilogue_of_pass(const lanes_writer *w)
{
    const tune_question *q = w->q;
    tune_operation named[TUNE_OPERATIONS_MAX];
    for (size_t i = 0; i < q->operation_count; i++) {
        named[i] = q->operations[i + 1];
        if (named[i].operand)
            named[i].operand = name_in_pass(w, named[i].operand);
    }
    return tune_epilogue_make(named, q->operation_count, q->meets == DTYPE_I32, dtype_row_of(q->type)->accumulates_in, q->out_type, w->a);
}

static void write_copies(lanes_writer *w)
{
    const lanes_plan *p = w->p;
    const char *around = w->q->tensors[operand_of(w, p->around)].port;
    tune_begin_step(
        &w->page, TUNE_LOAD_LYING,
        arena_printf(w->a, "%s lies the other way, and stays so: a slice brings %" PRId64 " elements of its part of the sum, in runs of %s",
                     around, lanes_brought(p), w->passing));
    write_copy_of_steps(w, 0);
    tune_end_step(&w->page, TUNE_LOAD_LYING);
    write_copy_of_steps(w, 1);
    write_extras(w);
    tune_line(&w->page, "for h in 0..%d {", HALVES);
    w->page.depth++;
    const char *half = tile_of_half(w, "h");
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS,
                    arena_printf(w->a, "%" PRId64 " %s for each slice, of its part of the sum: a copy for every group of %s", half_of(w),
                                 w->staying, w->passing));
    tune_line(&w->page, "%s.view()%s", w->q->tensors[operand_of(w, p->stands)].port, half);
    tune_line(&w->page, "    .to_dm_view(&mut device.tdma, %s.view_mut()%s);", w->staying, half);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    end_block(w);
    if (p->order.copied[2] > 0)
        tune_line(&w->page, "// What is needed last");
    write_copy_of_steps(w, 2);
}

/* ".tile::<..>(j - 8)": the step of a loop's index in what a copy brings from that step on. */
static const char *tile_in_copy(const lanes_writer *w, int64_t from, int64_t count)
{
    int64_t inner = w->p->inner, outer = count / inner;
    const char *left = from > 0 ? arena_printf(w->a, "j - %" PRId64, from) : "j";
    if (count < inner)
        return tile_of(w, copied_inner(w, count), 1, count, left);
    const char *at = inner == 1 ? left
                     : from > 0 ? arena_printf(w->a, "(%s) / %" PRId64, left, inner)
                                : arena_printf(w->a, "j / %" PRId64, inner);
    return arena_printf(w->a, "%s%s", tile_of(w, copied_outer(w, count), 1, outer, at),
                        tile_of(w, inner_digit(w), 1, inner, outer == 1 ? left : arena_printf(w->a, "j %% %" PRId64, inner)));
}

typedef struct ring_of_copy {
    lanes_writer *w;
    int copy;
} ring_of_copy;

/* A step of a copy around its group, by one of the contexts. */
static void write_ring(void *of, const char *by)
{
    const ring_of_copy *ring = of;
    lanes_writer *w = ring->w;
    const int copy = ring->copy;
    const lanes_plan *p = w->p;
    const char *here = TUNE_LIST(w->a, sum(w, w->paired, lanes_brought(p) / w->paired), step_by_flits(w));
    tune_line(&w->page, "device.%s", by);
    tune_line(&w->page, "    .begin(%s.view()%s)", copy_name[copy], tile_in_copy(w, steps_before(w, copy), p->order.copied[copy]));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", here, flit(w));
    tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
              TUNE_LIST(w->a, here, bringing_digit(w)), p->standing_slices, p->sum_slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", flit(w));
    tune_line(&w->page, "    .commit_view(%s.view_mut()%s);", w->passing, tile_of_index(w));
}

/* Those of a copy. */
static void write_rings_of(lanes_writer *w, int copy)
{
    int64_t from = steps_before(w, copy), count = w->p->order.copied[copy];
    ring_of_copy ring = {w, copy};
    if (count > 0)
        tune_write_by_both(&w->page, from, from + count, w->p->order.by_main, write_ring, &ring);
}

static void write_rings(lanes_writer *w)
{
    const lanes_plan *p = w->p;
    tune_begin_step(&w->page, TUNE_HAND_WEIGHTS,
                    arena_printf(w->a, "They go around the %" PRId64 " slices of a group, ahead of the products%s",
                                 p->standing_slices * p->sum_slices,
                                 p->order.by_main > 0 ? ", by both contexts until main has something to multiply" : ""));
    write_rings_of(w, 0);
    tune_end_step(&w->page, TUNE_HAND_WEIGHTS);
    write_rings_of(w, 1);
    write_rings_of(w, 2);
}

/* Half of what stands into the TRF. */
static void write_weights(lanes_writer *w, int half)
{
    const char *rows = stands(w, 1, w->t->rows), *tiles = stands(w, w->t->rows, half_of(w) / w->t->rows);
    tune_line(&w->page, "let %s: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.main", half_name[half], w->type, rows,
              TUNE_LIST(w->a, tiles, w->part_of_sum));
    tune_line(&w->page, "    .begin(%s.view()%s)", w->staying, tile_of_half(w, number(w, half)));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, tiles), w->part_of_sum);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
}

/* Steps meet half of what stands. What leaves the Reducer has 8 columns of the result side by side:
 * lanes of the packet, or those of the TRF. */
static void write_pass(lanes_writer *w, int half, int64_t from, int64_t count)
{
    const tune_question *q = w->q;
    const lanes_plan *p = w->p;
    const tune_epilogue made = epilogue_of_pass(w), *e = &made;
    if (w->keeps)
        keep_extras(w, half, from, count);
    w->pass++;
    if (w->keeps)
        return;
    int64_t lanes = w->t->accumulator_columns, kept = half_of(w) / p->sum_slices, out = w->t->rows;
    const char *packets = packets_of(w, count), *pairs = sum(w, w->paired, p->sums / w->paired),
               *tiles = stands(w, w->t->rows, half_of(w) / w->t->rows), *columns = around(w, 1, lanes), *outer = NULL, *inner = tiles,
               *packet = TUNE_LIST(w->a, columns, sum(w, 1, w->paired)), *time = TUNE_LIST(w->a, packets, tiles),
               *rows = stands(w, 1, w->t->rows);
    bool sequential = p->stands == TUNE_ROW;
    int64_t parts = lanes_refetches(w->t, p), part = half_of(w) / parts;
    if (count * p->step == lanes && parts > 1) {
        outer = stands(w, part, parts);
        inner = stands(w, w->t->rows, part / w->t->rows);
    }
    const char *side = sequential ? around(w, 1, out) : rows, *left = around(w, out, lanes / out);
    tune_line(&w->page, "device.main");
    tune_line(&w->page, "    .begin(%s.view()%s)", w->passing, tile_of_steps(w, from, count));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, outer, packets, pairs, packet_by_flits(w)), flit(w));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&%s)", TUNE_LIST(w->a, outer, packets, pairs, inner), packet,
              half_name[half]);
    tune_line(&w->page, "    .contract_packet::<m![%s]>()", columns);
    tune_line(&w->page, "    .contract_time::<m![%s]>()", time);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::%s)",
              sequential ? TUNE_LIST(w->a, time, rows, left) : TUNE_LIST(w->a, time, columns), side,
              sequential ? "Sequential" : "Interleaved");
    tune_write_fold(&w->page, w->t, q, e, keeping_slice(w),
                    sequential ? TUNE_LIST(w->a, packets, stands(w, p->sum_slices, kept), left)
                               : TUNE_LIST(w->a, time, around(w, p->sum_slices, lanes / p->sum_slices)),
                    side);
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", side);
    tune_line(&w->page, "    .commit_view(products.view_mut()%s%s);", tile_of_half(w, number(w, half)), tile_of_results(w, from, count));
}

/* In as many passes as these steps are pieces. */
static void write_products(lanes_writer *w, int half, int64_t from, int64_t count)
{
    for (int64_t here; count > 0; from += here, count -= here)
        write_pass(w, half, from, here = steps_of_pass(w->p->inner, w->unit, from, count));
}

/* What meets the first half while the other half comes. Returns its steps. */
static int64_t write_early_products(lanes_writer *w)
{
    const steps_order *o = &w->p->order;
    int64_t done = 0;
    for (int64_t i = 0; i < o->early_count; done += o->early[i++])
        write_products(w, 0, done, o->early[i]);
    return done;
}

/* Results of so many steps: of both halves, or of one. */
static void write_store(lanes_writer *w, int64_t from, int64_t count, const char *tile_of_half)
{
    if (w->keeps)
        return;
    const char *tile = arena_printf(w->a, "%s%s", tile_of_half, tile_of_results(w, from, count));
    tune_line(&w->page, "products.view()%s", tile);
    tune_line(&w->page, "    .to_hbm_view(&mut device.tdma, %s.view_mut()%s);", w->q->tensors[TUNE_OUT].port, tile);
}

/* What of a range has not met the first half meets it. */
static void write_rest(lanes_writer *w, int64_t from, int64_t to, int64_t early)
{
    if (to > larger(early, from))
        write_products(w, 0, larger(early, from), to - larger(early, from));
}

/* A store, and the products in front of it that are not there yet. */
static void write_stored(lanes_writer *w, int64_t from, int64_t count, int64_t parted, int64_t early)
{
    bool apart = w->p->order.halves_apart;
    if (parted > 0) {
        write_rest(w, from, from + parted, early);
        write_products(w, 1, from, parted);
    }
    write_rest(w, from + parted, from + count, early);
    if (apart)
        write_store(w, from, count, tile_of_half(w, "0"));
    write_products(w, 1, from + parted, count - parted);
    if (from == 0 && !w->keeps)
        tune_begin_step(&w->page, TUNE_STORE, "Out");
    write_store(w, from, count, apart ? tile_of_half(w, "1") : "");
    if (from == 0 && !w->keeps)
        tune_end_step(&w->page, TUNE_STORE);
}

static void write_all_products(lanes_writer *w)
{
    const steps_order *o = &w->p->order;
    w->pass = 0;
    int64_t early = write_early_products(w), from = 0;
    if (!w->keeps) {
        tune_line(&w->page, "// The others, in the other half of the TRF");
        write_weights(w, 1);
    }
    for (int64_t i = 0; i < o->store_count; from += o->stored[i++])
        write_stored(w, from, o->stored[i], o->parted[i], early);
}

static void write_body(lanes_writer *w)
{
    write_tensors(w);
    write_copies(w);
    if (w->q->extra_count > 0) {
        tune_begin_step(&w->page, TUNE_KEEP_EXTRA, "Into the VRF, for each pass over products");
        w->keeps = true;
        write_all_products(w);
        w->keeps = false;
        tune_end_step(&w->page, TUNE_KEEP_EXTRA);
    }
    write_rings(w);
    tune_begin_step(
        &w->page, TUNE_STORE_WEIGHTS,
        arena_printf(w->a,
                     "Half of the %s stay in one half of the TRF; each element meets what lies side by side, and the sum goes on in time",
                     w->staying));
    write_weights(w, 0);
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
    write_all_products(w);
}

void lanes_write(const target *t, const tune_question *q, const lanes_plan *p, const char *head, const tune_text *found, arena *a,
                 tune_text *out)
{
    lanes_writer w = {.q = q, .p = p, .t = t, .a = a, .page = {out, found, a, 0}};
    w.type = dtype_row_of(q->type)->name;
    w.out_type = dtype_row_of(q->out_type)->name;
    w.part_of_sum = TUNE_LIST(a, sum(&w, 1, p->sums));
    w.passing = p->around == TUNE_ROW ? "rows" : "columns";
    w.staying = p->stands == TUNE_ROW ? "rows" : "columns";
    w.paired = lanes_paired(t, q);
    w.beside = t->flit_bytes * 8 / dtype_row_of(q->type)->bits / w.paired;
    w.unit = lanes_unit(t, q, p);
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    folded_write_head(&w.page, t, q, TUNE_LIST(a, cluster_digit(&w)),
                      TUNE_LIST(a, group_digit(&w), standing_slices_digit(&w), sum_slices_digit(&w)), true);
    write_body(&w);
    end_block(&w);
}
