#include "libvisa/tune/folded_write.h"

#include <inttypes.h>

#include "libvisa/tune/write.h"

typedef struct folded_writer {
    const tune_question *q;
    const folded_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    const char *type, *out_type; /* of the operands, of the result */
    const char *part_of_sum;     /* elements of the sum in a slice, as one digit */
} folded_writer;

static const char *digit(const folded_writer *w, tune_role role, int64_t stride, int64_t count)
{
    return tune_digit(w->q, role, w->q->size[role], stride, count, w->a);
}

/* "M % 8": so many positions that follow each other; "1" of one. */
static const char *first(const folded_writer *w, tune_role role, int64_t count)
{
    return TUNE_LIST(w->a, digit(w, role, 1, count));
}

static int64_t elements_of(int64_t bytes, dtype type)
{
    return bytes * 8 / dtype_row_of(type)->bits;
}

static int64_t of_iteration(const folded_plan *p)
{
    return p->columns * p->groups;
}

static const char *cluster_digit(const folded_writer *w)
{
    return digit(w, TUNE_COLUMN, of_iteration(w->p) * w->p->iterations, w->p->clusters);
}

static const char *iteration_digit(const folded_writer *w)
{
    return digit(w, TUNE_COLUMN, of_iteration(w->p), w->p->iterations);
}

static const char *group_digit(const folded_writer *w)
{
    return digit(w, TUNE_COLUMN, w->p->columns, w->p->groups);
}

static const char *sum_digit(const folded_writer *w)
{
    return digit(w, TUNE_SUM, w->p->sums, w->p->sum_slices);
}

/* Of the slices of a group those with the same part of the sum, as they bring columns. */
static const char *bringing_digit(const folded_writer *w)
{
    return digit(w, TUNE_COLUMN, folded_columns_brought(w->p), w->p->row_slices);
}

static const char *tile_of_iteration(const folded_writer *w, const char *view)
{
    return w->p->iterations == 1 ? "" : arena_printf(w->a, "%s.tile::<m![%s], 1, _>(j)", view, iteration_digit(w));
}

/* Slices after the reducer: each keeps a part of the rows. */
static const char *keeping_slice(const folded_writer *w)
{
    const folded_plan *p = w->p;
    return TUNE_LIST(w->a, group_digit(w), digit(w, TUNE_ROW, folded_rows_kept(p), p->row_slices * p->sum_slices));
}

static void write_head_of_kernel(folded_writer *w)
{
    const tune_question *q = w->q;
    const char *const *axis = q->axis_text;
    const tune_tensor *const x = q->tensors;
    tune_line(&w->page, "axes![%s = %" PRId64 ", %s = %" PRId64 ", %s = %" PRId64 "];", axis[TUNE_ROW], q->size[TUNE_ROW],
              axis[TUNE_COLUMN], q->size[TUNE_COLUMN], axis[TUNE_SUM], q->size[TUNE_SUM]);
    tune_line(&w->page, "%s", "");
    tune_line(&w->page, "type Chip = m![1];");
    tune_line(&w->page, "type Cluster = m![%s];", TUNE_LIST(w->a, cluster_digit(w)));
    tune_line(&w->page, "type Slice = m![%s];",
              TUNE_LIST(w->a, group_digit(w), digit(w, TUNE_ROW, w->p->rows, w->p->row_slices), sum_digit(w)));
    tune_line(&w->page, "%s", "");
    tune_line(&w->page, "#[device(chip = 1)]");
    tune_line(&w->page, "fn contract(");
    w->page.depth++;
    tune_line(&w->page, "device: &mut Device,");
    tune_line(&w->page, "%s: &HbmTensor<%s, Chip, m![%s, %s]>,", x[q->stream].port, w->type, axis[TUNE_ROW], axis[TUNE_SUM]);
    tune_line(&w->page, "%s: &HbmTensor<%s, Chip, m![%s, %s]>,", x[q->weights].port, w->type, axis[TUNE_COLUMN], axis[TUNE_SUM]);
    if (w->p->iterations > 1)
        tune_line(&w->page, "%s: &mut HbmTensor<%s, Chip, m![%s, %s]>,", x[TUNE_OUT].port, w->out_type, axis[TUNE_ROW], axis[TUNE_COLUMN]);
    w->page.depth--;
    if (w->p->iterations > 1)
        tune_line(&w->page, ") {");
    else
        tune_line(&w->page, ") -> HbmTensor<%s, Chip, m![%s, %s]> {", w->out_type, axis[TUNE_ROW], axis[TUNE_COLUMN]);
    w->page.depth++;
}

static void write_loads(folded_writer *w)
{
    const tune_question *q = w->q;
    const folded_plan *p = w->p;
    int64_t brought = folded_columns_brought(p), tiles = p->rows / w->t->rows;
    tune_begin_step(
        &w->page, TUNE_LOAD_WEIGHTS,
        arena_printf(w->a, "Each column once: a slice brings %" PRId64 " columns of each iteration, of its part of the sum", brought));
    tune_line(&w->page, "let parts: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = %s.to_dm(&mut device.tdma);", w->type,
              TUNE_LIST(w->a, group_digit(w), bringing_digit(w), sum_digit(w)),
              TUNE_LIST(w->a, iteration_digit(w), digit(w, TUNE_COLUMN, 1, brought), w->part_of_sum), q->tensors[q->weights].port);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    tune_begin_step(
        &w->page, TUNE_LOAD_ROWS,
        arena_printf(w->a, "%" PRId64 " rows for each slice, of its part of the sum: a copy for every group of columns", p->rows));
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, Slice, m![%s, %s]> = %s.to_dm(&mut device.tdma);", w->type,
              first(w, TUNE_ROW, p->rows), w->part_of_sum, q->tensors[q->stream].port);
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
    const char *lanes = first(w, TUNE_ROW, w->t->rows), *groups = digit(w, TUNE_ROW, w->t->rows, tiles);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS, "They stay in the TRF, and columns pass");
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.main", w->type, lanes,
              TUNE_LIST(w->a, groups, w->part_of_sum));
    tune_line(&w->page, "    .begin(rows.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes, groups), w->part_of_sum);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
}

/* The columns of an iteration go around their group, by one of the contexts. */
static void write_ring(folded_writer *w, const char *by)
{
    const folded_plan *p = w->p;
    const char *here = digit(w, TUNE_COLUMN, 1, folded_columns_brought(p));
    tune_line(&w->page, "device.%s", by);
    tune_line(&w->page, "    .begin(parts.view()%s)", tile_of_iteration(w, ""));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, here), w->part_of_sum);
    tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
              TUNE_LIST(w->a, here, bringing_digit(w)), p->row_slices, p->sum_slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", first(w, TUNE_SUM, elements_of(w->t->flit_bytes, w->q->type)));
    tune_line(&w->page, "    .commit_view(columns.view_mut());");
}

static void write_rings(folded_writer *w)
{
    const folded_plan *p = w->p;
    bool both = p->main_begins && p->iterations > 1;
    tune_begin_step(&w->page, TUNE_HAND_WEIGHTS,
                    arena_printf(w->a, "They go around the %" PRId64 " slices of a group, ahead of the products%s",
                                 p->row_slices * p->sum_slices,
                                 both ? ": the first ones by the main context, which has nothing else to do yet" : ""));
    tune_line(&w->page, "let mut columns: DmTensor<%s, Chip, Cluster, Slice, m![%s, %s]> = DmTensor::new();", w->type,
              first(w, TUNE_COLUMN, p->columns), w->part_of_sum);
    if (both) {
        tune_line(&w->page, "if j == 0 {");
        w->page.depth++;
        write_ring(w, "main");
        w->page.depth--;
        tune_line(&w->page, "} else {");
        w->page.depth++;
        write_ring(w, "sub");
        w->page.depth--;
        tune_line(&w->page, "}");
    } else
        write_ring(w, p->main_begins ? "main" : "sub");
    tune_end_step(&w->page, TUNE_HAND_WEIGHTS);
}

static void write_products(folded_writer *w)
{
    const tune_question *q = w->q;
    const folded_plan *p = w->p;
    int64_t packet = tune_packet_of(w->t, q), kept = folded_rows_kept(p), turned = folded_turned_columns(w->t, q);
    int64_t flit = elements_of(w->t->flit_bytes, q->out_type);
    const char *columns = first(w, TUNE_COLUMN, p->columns), *packets = digit(w, TUNE_SUM, packet, p->sums / packet),
               *lanes = first(w, TUNE_ROW, w->t->rows), *tiles = digit(w, TUNE_ROW, w->t->rows, p->rows / w->t->rows);
    const char *time = TUNE_LIST(w->a, columns, tiles), *left = digit(w, TUNE_ROW, w->t->rows, kept / w->t->rows),
               *side = first(w, TUNE_COLUMN, turned), *slice = keeping_slice(w);
    tune_begin_step(&w->page, TUNE_MULTIPLY,
                    arena_printf(w->a,
                                 "%" PRId64 " columns by %" PRId64 " rows in each slice; the reducer adds the parts of the sum of %" PRId64
                                 " slices, each keeps %" PRId64 " rows, and they are turned",
                                 p->columns, p->rows, p->sum_slices, kept));
    tune_line(&w->page, "let products: DmTensor<%s, Chip, Cluster, m![%s], m![%s, %s]> = device.main", w->out_type, slice,
              first(w, TUNE_ROW, kept), columns);
    tune_line(&w->page, "    .begin(columns.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, columns, packets), first(w, TUNE_SUM, packet));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&weights)", TUNE_LIST(w->a, columns, packets, tiles),
              first(w, TUNE_SUM, packet));
    tune_line(&w->page, "    .contract_packet::<m![1]>()");
    tune_line(&w->page, "    .contract_time::<m![%s]>()", time);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", time, lanes);
    tune_line(&w->page, "    .vector_init()");
    tune_line(&w->page, "    .vector_inter_slice_reduce::<m![%s], m![%s]>(%s::Add)", slice, TUNE_LIST(w->a, columns, left),
              dtype_row_of(q->type)->accumulates_in == DTYPE_I32 ? "InterSliceReduceOpI32" : "InterSliceReduceOpF32");
    tune_line(&w->page, "    .vector_final()");
    if (q->out_type != dtype_row_of(q->type)->accumulates_in)
        tune_line(&w->page, "    .cast::<%s, m![%s # %" PRId64 "]>()", w->out_type, lanes, flit);
    tune_line(&w->page, "    .transpose::<m![%s], m![%s # %" PRId64 "]>()",
              TUNE_LIST(w->a, digit(w, TUNE_COLUMN, turned, p->columns / turned), first(w, TUNE_ROW, kept)), side, flit);
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", side);
    tune_line(&w->page, "    .commit();");
    tune_end_step(&w->page, TUNE_MULTIPLY);
}

void folded_write(const target *t, const tune_question *q, const folded_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out)
{
    folded_writer w = {.q = q, .p = p, .t = t, .a = a, .page = {out, found, a, 0}};
    w.type = dtype_row_of(q->type)->name;
    w.out_type = dtype_row_of(q->out_type)->name;
    w.part_of_sum = first(&w, TUNE_SUM, p->sums);
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    write_head_of_kernel(&w);
    write_loads(&w);
    if (p->iterations > 1) {
        tune_line(&w.page, "for j in 0..%" PRId64 " {", p->iterations);
        w.page.depth++;
    }
    write_rings(&w);
    write_products(&w);
    tune_begin_step(&w.page, TUNE_STORE, "Out");
    if (p->iterations > 1)
        tune_line(&w.page, "products.view().to_hbm_view(&mut device.tdma, %s.view_mut()%s);", q->tensors[TUNE_OUT].port,
                  tile_of_iteration(&w, ""));
    else
        tune_line(&w.page, "products.to_hbm(&mut device.tdma)");
    tune_end_step(&w.page, TUNE_STORE);
    while (w.page.depth > 0) {
        w.page.depth--;
        tune_line(&w.page, "}");
    }
}
