#include "libvisa/tune/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/team.h"
#include "support/integer.h"

/* What a slice has: rows of results, places in a row, columns. Slices of rows, of which the last ones may have padding alone, and of places
 * are neighbours. */
typedef struct window_plan {
    int64_t row_slices, rows, padded_rows, place_slices, places, column_slices, columns;
    bool rows_of_clusters, columns_of_clusters, main_weights;
    bool spreads;   /* neighbours bring a part of the weights each, which go around by the Switch Engine on their way into the TRF */
    bool brings;    /* a copy from DM to DM brings whole rows of results together before they are written */
    int64_t cycles; /* as estimated */
} window_plan;

/* The parts of a slice's columns that neighbours bring: the outermost digits of lanes, of their groups and of channels. What is of one part
 * of the channels is side by side in the TRF then, so the image is fetched in that order, too. */
typedef struct window_spread {
    int64_t lanes, groups, channels;
} window_spread;

typedef struct window_writer {
    const tune_question *q;
    const window_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    const char *image, *row, *place, *down, *across, *channel, *column; /* axes; image: NULL where there is one */
} window_writer;

static int64_t size_of(const tune_question *q, size_t axis)
{
    return q->axes[axis].size;
}

/* False: neighbours do not share them evenly. */
static bool spread_of(const target *t, const tune_question *q, const window_plan *p, window_spread *out)
{
    int64_t parts = p->spreads ? p->row_slices * p->place_slices : 1, groups = p->columns / t->rows,
            flits = size_of(q, q->window_channel) * dtype_row_of(q->type)->bits / 8 / t->flit_bytes;
    out->lanes = smaller(parts, t->rows);
    out->groups = smaller(parts / out->lanes, groups);
    if (t->rows % out->lanes != 0 || groups % out->groups != 0)
        return false;
    out->channels = parts / (out->lanes * out->groups);
    return out->lanes * out->groups * out->channels == parts && flits % out->channels == 0;
}

/* Rows of results that a slice writes after a copy: whole tiles, and whole blocks of HBM where they come to that. */
static int64_t rows_brought(const target *t, const tune_question *q, const window_plan *p)
{
    int64_t rows = size_of(q, q->windows[0].kept),
            bytes = size_of(q, q->windows[1].kept) * q->size[TUNE_COLUMN] * dtype_row_of(q->out_type)->bits / 8;
    for (int64_t each = p->rows; each <= rows / 2; each += p->rows)
        if (rows % each == 0 && each * bytes % t->hbm_block_bytes == 0)
            return each;
    return smaller(rows, p->rows);
}

/* ---- text ---- */

/* "F / 8 % 4", NULL where it has one position. */
static const char *digit(const window_writer *w, const char *axis, int64_t size, int64_t stride, int64_t count)
{
    if (count == 1)
        return NULL;
    const char *text = stride > 1 ? arena_printf(w->a, "%s / %" PRId64, axis, stride) : axis;
    return stride * count < size ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

static const char *window(const window_writer *w, const char *kept, const char *summed, const tune_window *of)
{
    if (!kept)
        return summed;
    return arena_printf(w->a, "$(%s:%" PRId64 ", %s:%" PRId64 ")", kept, of->stride, summed, of->dilation);
}

static const char *type_name(dtype type)
{
    return dtype_row_of(type)->name;
}

/* A digit of the rows of results, with their padding. */
static const char *row_digit(const window_writer *w, int64_t stride, int64_t count)
{
    int64_t rows = size_of(w->q, w->q->windows[0].kept), padded = w->p->padded_rows;
    return digit(w, padded == rows || count == 1 ? w->row : arena_printf(w->a, "%s # %" PRId64, w->row, padded), padded, stride, count);
}

static const char *row_slice_digit(const window_writer *w)
{
    return row_digit(w, w->p->rows, w->p->row_slices);
}

static const char *place_slice_digit(const window_writer *w)
{
    return digit(w, w->place, size_of(w->q, w->q->windows[1].kept), w->p->places, w->p->place_slices);
}

/* Slices of columns, and inside of them what neighbours have. */
static const char *slices_with(const window_writer *w, const char *neighbours)
{
    const window_plan *p = w->p;
    int64_t used = p->row_slices * p->place_slices * p->column_slices, all = w->t->slices_per_cluster;
    const char *slices = TUNE_LIST(w->a, digit(w, w->column, w->q->size[TUNE_COLUMN], p->columns, p->column_slices), neighbours);
    return used == all ? arena_printf(w->a, "m![%s]", slices) : arena_printf(w->a, "m![[%s] # %" PRId64 "]", slices, all);
}

static void write_head_of_kernel(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    int64_t columns = q->size[TUNE_COLUMN];
    strbuf_puts(&w->page.out->text, "axes![");
    for (size_t i = 0; i < q->axis_count; i++)
        strbuf_printf(&w->page.out->text, "%s%s = %" PRId64, i ? ", " : "", q->axes[i].name, q->axes[i].size);
    strbuf_puts(&w->page.out->text, "];\n\n");
    tune_line(&w->page, "type Chip = m![1];");
    const char *cluster = p->rows_of_clusters      ? row_digit(w, p->rows * p->row_slices, w->t->clusters_per_chip)
                          : p->columns_of_clusters ? digit(w, w->column, columns, p->columns * p->column_slices, w->t->clusters_per_chip)
                                                   : arena_printf(w->a, "1 # %lld", (long long)w->t->clusters_per_chip);
    tune_line(&w->page, "type Cluster = m![%s];", cluster);
    tune_line(&w->page, "type Slice = %s;", slices_with(w, TUNE_LIST(w->a, row_slice_digit(w), place_slice_digit(w))));
    tune_line(&w->page, "%s", "");
    tune_line(&w->page, "#[device(chip = 1)]");
    tune_line(&w->page, "fn contract(");
    w->page.depth++;
    tune_line(&w->page, "device: &mut Device,");
    const char *places = TUNE_LIST(w->a, w->image, window(w, w->row, w->down, &q->windows[0]),
                                   window(w, w->place, w->across, &q->windows[1]), w->channel),
               *weights = TUNE_LIST(w->a, w->column, w->down, w->across, w->channel);
    tune_line(&w->page, "%s: &HbmTensor<%s, Chip, m![%s]>,", q->tensors[q->stream].port, type_name(q->stored[q->stream]), places);
    tune_line(&w->page, "%s: &HbmTensor<%s, Chip, m![%s]>,", q->tensors[q->weights].port, type_name(q->stored[q->weights]), weights);
    const char *out = TUNE_LIST(w->a, w->image, w->row, w->place, w->column);
    for (size_t i = 0; i < q->extra_count; i++)
        tune_line(&w->page, "%s: &HbmTensor<%s, Chip, m![%s]>,", q->extras[i].tensor.port, type_name(q->extras[i].type),
                  TUNE_LIST(w->a, q->extras[i].has[TUNE_BATCH] ? w->image : NULL, q->extras[i].has[TUNE_ROW] ? w->row : NULL,
                            q->extras[i].has[TUNE_ROW] ? w->place : NULL, q->extras[i].has[TUNE_COLUMN] ? w->column : NULL));
    if (w->image)
        tune_line(&w->page, "%s: &mut HbmTensor<%s, Chip, m![%s]>,", q->tensors[TUNE_OUT].port, type_name(q->out_type), out);
    w->page.depth--;
    tune_line(&w->page, w->image ? ") {" : ") -> HbmTensor<%s, Chip, m![%s]> {", type_name(q->out_type), out);
    w->page.depth++;
}

static const char *part_of_image(const window_writer *w, const char *view)
{
    return w->image ? arena_printf(w->a, "%s.tile::<m![%s], 1, _>(g)", view, w->image) : "";
}

/* An operand of another type than is multiplied. */
static void write_cast(window_writer *w, tune_place operand)
{
    if (w->q->stored[operand] != w->q->type)
        tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(w->q->type));
}

/* ---- what is done to the sums ---- */

/* Digits of what a slice has: its rows of results, its columns, and those in packets of the Rows. */
static const char *own_rows(const window_writer *w)
{
    return row_digit(w, 1, w->p->rows);
}

static const char *own_places(const window_writer *w)
{
    return digit(w, w->place, size_of(w->q, w->q->windows[1].kept), 1, w->p->places);
}

static const char *own_columns(const window_writer *w, int64_t stride, int64_t count)
{
    return digit(w, w->column, w->q->size[TUNE_COLUMN], stride, count);
}

static const char *all_own_columns(const window_writer *w)
{
    return own_columns(w, 1, w->p->columns);
}

static const char *column_groups(const window_writer *w)
{
    return own_columns(w, w->t->rows, w->p->columns / w->t->rows);
}

static const char *lanes_of(const window_writer *w)
{
    return own_columns(w, 1, w->t->rows);
}

/* An operand of what is done to the sums: one value for each column, or one for each result. */
static void write_extra(window_writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const char *rows = e->has[TUNE_ROW] ? TUNE_LIST(w->a, own_rows(w), own_places(w)) : NULL, *name = e->tensor.port,
               *element = TUNE_LIST(w->a, rows, all_own_columns(w));
    dtype meets = w->q->meets;
    tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to the sums");
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = %s%s.to_dm(&mut device.tdma);", name, type_name(e->type),
              element, name, e->has[TUNE_BATCH] ? part_of_image(w, ".view()") : "");
    tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
    tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF");
    tune_line(&w->page, "let %s: VrfTensor<%s, Chip, Cluster, Slice, m![%s]> = device.sub", name, type_name(meets), element);
    tune_line(&w->page, "    .begin(%s.view())", name);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, column_groups(w)), lanes_of(w));
    if (e->type != meets)
        tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(meets));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_vrf();");
    tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
}

static void write_methods(window_writer *w, const tune_lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        tune_line(&w->page, "    .%s", l->text[i]);
}

static void write_pass(window_writer *w, const tune_pass *pass)
{
    if (pass->front.count + pass->narrow.count + pass->back.count == 0)
        return;
    tune_line(&w->page, "    .vector_init()");
    tune_line(&w->page, "    .vector_intra_slice_tag(TagMode::Zero)");
    write_methods(w, &pass->front);
    if (pass->narrow.count > 0)
        tune_line(&w->page, "    .vector_narrow_split::<_, _>()");
    write_methods(w, &pass->narrow);
    if (pass->narrow.count > 0)
        tune_line(&w->page, "    .vector_widen_concat::<_, _>()");
    write_methods(w, &pass->back);
    tune_line(&w->page, "    .vector_final()");
}

static const char *values(const window_writer *w, size_t pass)
{
    return arena_printf(w->a, pass == 0 ? "values" : "values%zu", pass + 1);
}

/* What a pass makes: the result, values for the next one in DM, or what they are multiplied with in the VRF. */
static void begin_values(window_writer *w, const tune_epilogue *e, size_t i)
{
    const char *element = TUNE_LIST(w->a, own_rows(w), own_places(w), all_own_columns(w));
    bool is_last = i + 1 >= e->count;
    if (e->count > 0 && e->passes[i].is_gate)
        tune_line(&w->page, "let gate: VrfTensor<f32, Chip, Cluster, Slice, m![%s]> = device.main", element);
    else
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = device.main", is_last ? "products" : values(w, i),
                  type_name(is_last ? w->q->out_type : w->q->meets), element);
}

static void end_values(window_writer *w, const tune_epilogue *e, size_t i)
{
    const tune_question *q = w->q;
    if (e->count > 0 && e->passes[i].is_gate) {
        tune_line(&w->page, "    .to_vrf();");
        return;
    }
    if (i + 1 >= e->count && q->out_type != e->type)
        tune_line(&w->page, "    .cast::<%s, m![%s # %" PRId64 "]>()", type_name(q->out_type), lanes_of(w),
                  (int64_t)(w->t->flit_bytes * 8 / dtype_row_of(q->out_type)->bits));
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", lanes_of(w));
    tune_line(&w->page, "    .commit();");
}

static void write_pass_of_values(window_writer *w, const tune_epilogue *e, size_t i, size_t from)
{
    tune_begin_step(&w->page, (tune_step)(TUNE_PASS + i),
                    e->passes[i].is_gate ? "What the values are multiplied with" : "Another pass over the values");
    begin_values(w, e, i);
    tune_line(&w->page, "    .begin(%s.view())", values(w, from));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, own_rows(w), own_places(w), column_groups(w)), lanes_of(w));
    tune_line(&w->page, "    .collect()");
    write_pass(w, &e->passes[i]);
    end_values(w, e, i);
    tune_end_step(&w->page, (tune_step)(TUNE_PASS + i));
}

static void write_weights(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    int64_t channels = size_of(q, q->window_channel), around = p->row_slices * p->place_slices;
    window_spread x;
    spread_of(w->t, q, p, &x);
    int64_t lanes_left = w->t->rows / x.lanes, groups_left = p->columns / w->t->rows / x.groups, part = channels / x.channels;
    const char *lanes = own_columns(w, 1, lanes_left), *groups = own_columns(w, w->t->rows, groups_left),
               *channel = digit(w, w->channel, channels, 1, part), *outer = digit(w, w->channel, channels, part, x.channels),
               *parts = TUNE_LIST(w->a, own_columns(w, lanes_left, x.lanes), own_columns(w, w->t->rows * groups_left, x.groups), outer);
    const char *columns = x.lanes * x.groups > 1 ? TUNE_LIST(w->a, groups, lanes) : all_own_columns(w);
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS,
                    p->spreads ? arena_printf(w->a, "%" PRId64 " columns for each %" PRId64 " slices, each column once", p->columns, around)
                               : arena_printf(w->a, "%" PRId64 " columns for each slice", p->columns));
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, %s, m![%s]> = %s.to_dm(&mut device.tdma);",
              type_name(q->stored[q->weights]), p->spreads ? slices_with(w, parts) : "Slice",
              TUNE_LIST(w->a, columns, w->down, w->across, channel), q->tensors[q->weights].port);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS,
                    arena_printf(w->a, "%s%s",
                                 p->main_weights
                                     ? "Into the TRF by the main context, 32 bytes a cycle: the sub context's 8 would be waited for"
                                     : "Into the TRF by the sub context, while the image arrives",
                                 p->spreads ? arena_printf(w->a, "; all get what each of %" PRId64 " slices has", around) : ""));
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.%s", type_name(q->type), lanes_of(w),
              TUNE_LIST(w->a, column_groups(w), outer, w->down, w->across, channel), p->main_weights ? "main" : "sub");
    tune_line(&w->page, "    .begin(columns.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes, groups, w->down, w->across), channel);
    write_cast(w, q->weights);
    if (p->spreads)
        tune_line(&w->page,
                  "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
                  TUNE_LIST(w->a, parts, lanes, groups, w->down, w->across), around,
                  lanes_left * groups_left * size_of(q, q->windows[0].summed) * size_of(q, q->windows[1].summed));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
}

/* Whole rows of results into the slices that write them. */
static void write_bring(window_writer *w)
{
    const tune_question *q = w->q;
    int64_t rows = size_of(q, q->windows[0].kept), each = rows_brought(w->t, q, w->p), parts = ceil_div(rows, each), slices = 1;
    while (slices < parts)
        slices *= 2;
    const char *axis = slices * each == rows ? w->row : arena_printf(w->a, "%s # %" PRId64, w->row, slices * each);
    const char *idle = slices < w->t->slices_per_cluster ? arena_printf(w->a, "1 # %" PRId64, w->t->slices_per_cluster / slices) : NULL;
    tune_begin_step(
        &w->page, TUNE_CLOSE,
        arena_printf(w->a, "Pieces of a row are short: a copy brings %" PRId64 " whole rows into a slice, one behind the other", each));
    tune_line(&w->page, "let whole: DmTensor<%s, Chip, m![1 # %lld], m![%s], m![%s]> = products.to_dm(&mut device.tdma);",
              type_name(q->out_type), (long long)w->t->clusters_per_chip,
              TUNE_LIST(w->a, digit(w, slices > 1 ? axis : w->row, slices * each, each, slices), idle),
              TUNE_LIST(w->a, each == rows ? w->row : digit(w, axis, slices * each, 1, each), w->place, w->column));
    tune_end_step(&w->page, TUNE_CLOSE);
}

static void write_kernel(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    window_spread x;
    spread_of(w->t, q, p, &x);
    int64_t channels = size_of(q, q->window_channel), part = channels / x.channels,
            flit = w->t->flit_bytes * 8 / dtype_row_of(q->type)->bits, packet = part % (2 * flit) == 0 ? 2 * flit : flit;
    const char *tile = own_rows(w), *places = own_places(w), *lanes = lanes_of(w), *groups = column_groups(w),
               *outer = digit(w, w->channel, channels, part, x.channels), *steps = digit(w, w->channel, channels, packet, part / packet),
               *inner = digit(w, w->channel, channels, 1, packet);
    write_head_of_kernel(w);
    write_weights(w);
    for (size_t i = 0; i < q->extra_count; i++)
        if (!q->extras[i].has[TUNE_BATCH])
            write_extra(w, i);
    if (w->image) {
        tune_line(&w->page, "for g in 0..%" PRId64 " {", q->size[TUNE_BATCH]);
        w->page.depth++;
    }
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].has[TUNE_BATCH])
            write_extra(w, i);
    tune_begin_step(&w->page, TUNE_LOAD_ROWS,
                    arena_printf(w->a, "The image's rows for %" PRId64 " rows of results in each slice, with their halo", p->rows));
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = %s%s.to_dm(&mut device.tdma);",
              type_name(q->stored[q->stream]),
              TUNE_LIST(w->a, window(w, tile, w->down, &q->windows[0]), window(w, places, w->across, &q->windows[1]), w->channel),
              q->tensors[q->stream].port, part_of_image(w, ".view()"));
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
    tune_begin_step(&w->page, TUNE_MULTIPLY,
                    arena_printf(w->a,
                                 "The window goes over the image as strides of the fetch; a packet meets %" PRId64 " packets of weights",
                                 p->columns / w->t->rows));
    const tune_epilogue *e = &q->whole;
    begin_values(w, e, 0);
    tune_line(&w->page, "    .begin(rows.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, tile, places, outer, w->down, w->across, steps), inner);
    write_cast(w, q->stream);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page,
              packet == flit ? "    .contract_outer::<m![%s], m![%s # %" PRId64 "], _, _, _>(&weights)"
                             : "    .contract_outer::<m![%s], m![%s], _, _, _>(&weights)",
              TUNE_LIST(w->a, tile, places, outer, w->down, w->across, steps, groups), inner, 2 * flit);
    tune_line(&w->page, "    .contract_packet::<m![1]>()");
    tune_line(&w->page, "    .contract_time::<m![%s]>()", TUNE_LIST(w->a, tile, places, groups));
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", TUNE_LIST(w->a, tile, places, groups), lanes);
    if (e->count > 0)
        write_pass(w, &e->passes[0]);
    end_values(w, e, 0);
    tune_end_step(&w->page, TUNE_MULTIPLY);
    for (size_t i = 1, from = 0; i < e->count; i++) {
        write_pass_of_values(w, e, i, from);
        from = e->passes[i].is_gate ? from : i;
    }
    if (p->brings)
        write_bring(w);
    const char *result = p->brings ? "whole" : "products";
    tune_begin_step(&w->page, TUNE_STORE, "Out");
    if (w->image)
        tune_line(&w->page, "%s.view().to_hbm_view(&mut device.tdma, %s.view_mut()%s);", result, q->tensors[TUNE_OUT].port,
                  part_of_image(w, ""));
    else
        tune_line(&w->page, "%s.to_hbm(&mut device.tdma)", result);
    tune_end_step(&w->page, TUNE_STORE);
    for (; w->page.depth > 0;) {
        w->page.depth--;
        tune_line(&w->page, "}");
    }
}

static void write_window(const target *t, const tune_question *q, const window_plan *p, const char *head, const tune_text *found, arena *a,
                         tune_text *out)
{
    const tune_axis *x = q->axes;
    window_writer w = {.q = q,
                       .p = p,
                       .t = t,
                       .a = a,
                       .page = {out, found, a, 0},
                       .image = q->axis_text[TUNE_BATCH],
                       .row = x[q->windows[0].kept].name,
                       .place = x[q->windows[1].kept].name,
                       .down = x[q->windows[0].summed].name,
                       .across = x[q->windows[1].summed].name,
                       .channel = x[q->window_channel].name,
                       .column = q->axis_text[TUNE_COLUMN]};
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    write_kernel(&w);
}

/* ---- search ---- */

enum { MOST_PLANS = 1024 };

/* About: the engines' own work, copies one after the other, then what waits for them. It says what is compiled first, and no more. */
static int64_t estimate(const target *t, const tune_question *q, const window_plan *p)
{
    const tune_window *down = &q->windows[0], *across = &q->windows[1];
    int64_t clusters = p->rows_of_clusters || p->columns_of_clusters ? t->clusters_per_chip : 1, start = t->dma_startup_cycles,
            slices = p->row_slices * p->place_slices * p->column_slices, channels = size_of(q, q->window_channel),
            high = (p->rows - 1) * down->stride + (size_of(q, down->summed) - 1) * down->dilation + 1,
            wide = (p->places - 1) * across->stride + (size_of(q, across->summed) - 1) * across->dilation + 1,
            weights = tune_bytes_of(q->stored[q->weights], p->columns * q->size[TUNE_SUM]),
            image = tune_bytes_of(q->stored[q->stream], high * wide * channels),
            burst = t->hbm_burst_bytes * 1000 / t->hbm_burst_millicycles;
    int64_t carried = smaller(t->hbm_channels * burst,
                              t->dma_request_bytes * clusters * t->slices_per_cluster / (t->dm_slices_per_dmn * t->dma_dmns_per_engine));
    int64_t load_weights = start + (p->spreads ? weights * p->column_slices : weights * slices) * clusters / carried;
    int64_t load_image = start + image * slices * clusters / carried;
    int64_t fill = tune_bytes_of(q->type, p->columns * q->size[TUNE_SUM]) / (p->main_weights ? t->flit_bytes : t->flit_bytes / 4);
    int64_t packet = 2 * t->flit_bytes, groups = p->columns / t->rows;
    int64_t multiply = p->rows * p->places * size_of(q, down->summed) * size_of(q, across->summed) *
                       ceil_div(tune_bytes_of(q->type, channels), packet) * larger(2, groups);
    int64_t results = size_of(q, down->kept) * size_of(q, across->kept) * q->size[TUNE_COLUMN], out = tune_bytes_of(q->out_type, results),
            run = tune_bytes_of(q->out_type, p->columns == q->size[TUNE_COLUMN] ? p->places * p->columns : p->columns);
    bool whole = run % t->hbm_block_bytes == 0;
    int64_t store =
        start + (whole ? out / carried
                       : out / run * 2 / t->hbm_channels * burst * t->hbm_burst_millicycles / 1000 * t->hbm_partial_write_factor / 16);
    if (p->brings)
        store = 2 * start + 2 * out / run * ceil_div(run, t->dma_request_bytes) / larger(1, carried / t->dma_request_bytes) + out / carried;
    return load_weights + q->size[TUNE_BATCH] * (larger(fill, load_image) + multiply + store);
}

/* Slices of rows: those that share them evenly, and powers of two with padding after them. */
static bool row_slices_are_worth_it(int64_t rows, int64_t parts)
{
    return rows % parts == 0 || ((parts & (parts - 1)) == 0 && parts < 2 * rows);
}

static void add_plan(const target *t, const tune_question *q, window_plan p, window_plan *plans, size_t *count)
{
    window_spread x;
    if (tune_bytes_of(q->type, p.columns * q->size[TUNE_SUM]) > target_trf_capacity_bytes(t, TRF_FULL))
        return;
    for (int by_main = 0; by_main < 2; by_main++)
        for (int spreads = 0; spreads < 2; spreads++)
            for (int brings = 0; brings < 2; brings++) {
                p.main_weights = by_main;
                p.spreads = spreads;
                p.brings = brings;
                if ((spreads && p.row_slices * p.place_slices == 1) || !spread_of(t, q, &p, &x))
                    continue;
                p.cycles = estimate(t, q, &p);
                size_t at = *count < MOST_PLANS ? (*count)++ : MOST_PLANS; /* stable where estimates are equal: by place */
                while (at > 0 && plans[at - 1].cycles > p.cycles) {
                    if (at < MOST_PLANS)
                        plans[at] = plans[at - 1];
                    at--;
                }
                if (at < MOST_PLANS)
                    plans[at] = p;
            }
}

static size_t window_plans(const target *t, const tune_question *q, window_plan *plans)
{
    size_t count = 0;
    int64_t rows = size_of(q, q->windows[0].kept), places = size_of(q, q->windows[1].kept), columns = q->size[TUNE_COLUMN],
            clusters = t->clusters_per_chip, all = t->slices_per_cluster;
    for (int clustered = 0; clustered < 3; clustered++)
        for (int64_t r = 1; r <= smaller(2 * rows, all); r++)
            for (int64_t x = 1; x <= places && r * x <= all; x++)
                for (int64_t c = 1; c * r * x <= all; c++) {
                    int64_t row_parts = r * (clustered == 1 ? clusters : 1), column_parts = c * (clustered == 2 ? clusters : 1);
                    if (!row_slices_are_worth_it(rows, row_parts) || places % x != 0 || columns % (column_parts * t->rows) != 0)
                        continue;
                    window_plan p = {.row_slices = r,
                                     .rows = ceil_div(rows, row_parts),
                                     .place_slices = x,
                                     .places = places / x,
                                     .column_slices = c,
                                     .columns = columns / column_parts,
                                     .rows_of_clusters = clustered == 1,
                                     .columns_of_clusters = clustered == 2};
                    p.padded_rows = p.rows * row_parts;
                    add_plan(t, q, p, plans, &count);
                }
    return count;
}

typedef struct search {
    const target *target;
    const tune_question *question;
    const window_plan *plans;
    arena *scratch;
} search;

static bool try_window(const search *x, size_t plan, tune_trial *out)
{
    *out = (tune_trial){.timing = x->question->timing};
    write_window(x->target, x->question, &x->plans[plan], "", NULL, x->scratch, &out->text);
    return tune_try_text(x->scratch, out);
}

static bool compile_plan(void *of, size_t plan, tune_outcome *out)
{
    search *x = of;
    arena_mark mark = arena_mark_here(x->scratch);
    tune_trial one;
    bool good = try_window(x, plan, &one);
    if (good)
        *out = (tune_outcome){.legal = !one.refusal, .cycles = one.cycles, .dma_cycles = one.dma_cycles, .steps = one.steps};
    arena_rewind(x->scratch, mark);
    return good;
}

bool tune_window_answer(const target *t, const tune_question *q, const visa_tune_options *o, diag_list *diags, strbuf *out)
{
    arena *a = diags->arena, *scratch = arena_new_inside(a);
    window_plan *plans = ARENA_ARRAY(a, window_plan, MOST_PLANS);
    tune_outcome *outcomes = ARENA_ARRAY(scratch, tune_outcome, MOST_PLANS);
    search s = {t, q, plans, arena_new_inside(scratch)};
    size_t count = window_plans(t, q, plans), tried = 0, refused = 0, fastest = SIZE_MAX, first_refused = SIZE_MAX;
    uint64_t left = o->work;
    for (size_t i = 0; i < count && (left > 0 || fastest == SIZE_MAX); i++) {
        size_t next[MOST_PLANS], here = smaller((int64_t)(count - i), (int64_t)tune_team_size(o));
        for (size_t n = 0; n < here; n++)
            next[n] = i + n;
        if (!outcomes[i].known && !tune_team_run(o, next, here, compile_plan, &s, scratch, outcomes))
            break;
        tried++;
        refused += !outcomes[i].legal;
        left -= (uint64_t)smaller((int64_t)left, (int64_t)outcomes[i].steps);
        if (!outcomes[i].legal && first_refused == SIZE_MAX)
            first_refused = i;
        if (outcomes[i].legal && (fastest == SIZE_MAX || outcomes[i].cycles < outcomes[fastest].cycles))
            fastest = i;
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - left), (int64_t)o->work);
    }
    size_t shown = fastest != SIZE_MAX ? fastest : first_refused;
    tune_trial found = {0};
    if (shown == SIZE_MAX || !try_window(&s, shown, &found) || found.refusal) {
        const char *first_refusal = found.refusal ? arena_strdup(a, found.refusal) : NULL;
        arena_free(scratch);
        return tune_refuse_all(diags, tune_whole_range(q->tensors[TUNE_OUT].range.file, q->text), tried, first_refusal);
    }
    arena_free(scratch);
    window_plan best = plans[fastest];
    tune_answer x = {.timing = q->timing,
                     .cycles = found.cycles,
                     .dma_cycles = found.dma_cycles,
                     .tried = tried,
                     .refused = refused,
                     .left = count - tried};
    const char *how = arena_printf(a,
                                   "//   rows of results: %" PRId64 " in a slice, %" PRId64 " slices%s\n"
                                   "//   places in a row: %" PRId64 " in a slice, %" PRId64 " slices\n"
                                   "//   columns: %" PRId64 " in a slice, %" PRId64 " slices%s\n",
                                   best.rows, best.row_slices, best.rows_of_clusters ? " in each cluster" : "", best.places,
                                   best.place_slices, best.columns, best.column_slices, best.columns_of_clusters ? " in each cluster" : "");
    tune_text text;
    write_window(t, q, &best, tune_head_of_contraction(q, t, &x, how, a), &found.text, a, &text);
    *out = text.text;
    return true;
}
