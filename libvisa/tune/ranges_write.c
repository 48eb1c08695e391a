#include "libvisa/tune/ranges_write.h"

#include <inttypes.h>

#include "libvisa/tune/machine.h"
#include "libvisa/tune/write.h"
#include "support/integer.h"

typedef struct ranges_writer {
    const tune_question *q;
    const ranges_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    const char *type, *out_type;
    const char *rows_element, *rows_time, *rows_packet; /* of rows that all slices have, as they are multiplied */
} ranges_writer;

/* Columns of a range: their axis, "N = 2048", and how slices share it. */
typedef struct range {
    tune_question q;
    int64_t width, tile, lanes;
    const char *cluster, *slice; /* mappings */
    bool is_last;
} range;

static const char *digit(const ranges_writer *w, const range *r, int64_t stride, int64_t count)
{
    return tune_digit(&r->q, TUNE_COLUMN, r->width, stride, count, w->a);
}

static const char *row_digit(const ranges_writer *w, int64_t stride, int64_t count)
{
    return tune_digit(w->q, TUNE_ROW, w->p->rows, stride, count, w->a);
}

/* Rows of a slice. */
static const char *own_rows(const ranges_writer *w)
{
    return row_digit(w, 1, ranges_rows(w->p));
}

static const char *sum_digit(const ranges_writer *w, int64_t stride, int64_t count)
{
    return tune_digit(w->q, TUNE_SUM, ranges_padded_sum(w->t, w->q), stride, count, w->a);
}

/* "1 # 4" */
static const char *idle(const ranges_writer *w, int64_t count)
{
    return count > 1 ? arena_printf(w->a, "1 # %" PRId64, count) : NULL;
}

static const char *padded_to(const ranges_writer *w, const char *mapping, int64_t from, int64_t to)
{
    return from == to ? mapping : arena_printf(w->a, "%s # %" PRId64, mapping, to);
}

static void range_of(const ranges_writer *w, int64_t width, int64_t tile, bool is_last, range *r)
{
    const int64_t slices = w->t->slices_per_cluster / w->p->idle;
    *r = (range){.q = *w->q, .width = width, .tile = tile, .lanes = smaller(tile, w->t->rows), .is_last = is_last};
    r->q.axis_text[TUNE_COLUMN] = arena_printf(w->a, "%s = %" PRId64, w->q->axis_text[TUNE_COLUMN], width);
    r->q.size[TUNE_COLUMN] = width;
    r->cluster = w->p->row_clusters > 1 ? row_digit(w, ranges_rows(w->p), w->p->row_clusters)
                                        : TUNE_LIST(w->a, digit(w, r, tile * slices, w->t->clusters_per_chip));
    r->slice = TUNE_LIST(w->a, digit(w, r, tile, slices), idle(w, w->p->idle));
}

static void begin_step(ranges_writer *w, const range *r, tune_step step, const char *why)
{
    if (r->is_last)
        tune_line(&w->page, "// %s", tune_singular(w->a, why));
    else
        tune_begin_step(&w->page, step, why);
}

static void end_step(ranges_writer *w, const range *r, tune_step step)
{
    if (!r->is_last)
        tune_end_step(&w->page, step);
}

/* ---- rows ---- */

static void write_rows(ranges_writer *w)
{
    const ranges_plan *p = w->p;
    const int64_t slices = w->t->slices_per_cluster, sum = ranges_padded_sum(w->t, w->q), packet = tune_packet_of(w->t, w->q),
                  flit = w->t->flit_bytes * 8 / dtype_row_of(w->q->type)->bits;
    const char *port = w->q->tensors[w->q->stream].port,
               *cluster = p->row_clusters > 1 ? row_digit(w, ranges_rows(p), p->row_clusters)
                                              : arena_printf(w->a, "%" PRId64, w->t->clusters_per_chip),
               *all = arena_printf(w->a, "m![%s], m![%s]", cluster,
                                   TUNE_LIST(w->a, arena_printf(w->a, "%" PRId64, slices / p->idle), idle(w, p->idle)));
    if (p->row_parts == 0) {
        w->rows_element = TUNE_LIST(w->a, own_rows(w), sum_digit(w, 1, sum));
        w->rows_time = TUNE_LIST(w->a, own_rows(w), sum_digit(w, packet, sum / packet));
        w->rows_packet = sum_digit(w, 1, packet);
        tune_begin_step(&w->page, TUNE_LOAD_ROWS, "All rows for each slice");
        tune_line(&w->page, "let rows: DmTensor<%s, Chip, %s, m![%s]> = %s.to_dm(&mut device.tdma);", w->type, all, w->rows_element, port);
        tune_end_step(&w->page, TUNE_LOAD_ROWS);
        return;
    }
    const int64_t rows = ranges_rows(p) / p->row_parts, sums = sum / p->sum_parts;
    const char *nobody = idle(w, slices / (p->row_parts * p->sum_parts)), *of_rows = row_digit(w, rows, p->row_parts),
               *of_sum = sum_digit(w, sums, p->sum_parts), *time = TUNE_LIST(w->a, row_digit(w, 1, rows), sum_digit(w, flit, sums / flit)),
               *around = TUNE_LIST(w->a, time, nobody, of_rows, of_sum);
    w->rows_packet = sum_digit(w, 1, flit);
    w->rows_element = TUNE_LIST(w->a, around, w->rows_packet);
    w->rows_time = TUNE_LIST(w->a, own_rows(w), sum_digit(w, flit, sum / flit));
    tune_begin_step(&w->page, TUNE_LOAD_ROWS,
                    arena_printf(w->a, "Rows in %" PRId64 " parts, a slice brings one", p->row_parts * p->sum_parts));
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = %s.to_dm(&mut device.tdma);", w->type, cluster,
              TUNE_LIST(w->a, nobody, of_rows, of_sum), TUNE_LIST(w->a, row_digit(w, 1, rows), sum_digit(w, 1, sums)), port);
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
    tune_begin_step(&w->page, TUNE_TURN_ROWS, "And around to all slices by the Switch Engine, once");
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, %s, m![%s]> = device.main", w->type, all, w->rows_element);
    tune_line(&w->page, "    .begin(rows.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time, w->rows_packet);
    tune_line(&w->page, "    .switch::<m![%" PRId64 "], m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: 1 })", slices,
              around, slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", w->rows_packet);
    tune_line(&w->page, "    .commit();");
    tune_end_step(&w->page, TUNE_TURN_ROWS);
}

/* ---- a range ---- */

static const char *lanes_of(const ranges_writer *w, const range *r)
{
    return digit(w, r, 1, r->lanes);
}

static const char *groups_of(const ranges_writer *w, const range *r)
{
    return digit(w, r, r->lanes, r->tile / r->lanes);
}

static void write_weights(ranges_writer *w, const range *r, const char *from)
{
    const int64_t sum = ranges_padded_sum(w->t, w->q);
    const char *sums = sum_digit(w, 1, sum);
    begin_step(w, r, TUNE_LOAD_WEIGHTS, arena_printf(w->a, "%" PRId64 " columns for each slice, a range of %" PRId64, r->tile, r->width));
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> =", w->type, r->cluster, r->slice,
              TUNE_LIST(w->a, digit(w, r, 1, r->tile), sums));
    tune_line(&w->page, "    %s.view().tile::<m![%s], %" PRId64 ", _>(%s).to_dm(&mut device.tdma);", w->q->tensors[w->q->weights].port,
              w->q->axis_text[TUNE_COLUMN], r->width, from);
    end_step(w, r, TUNE_LOAD_WEIGHTS);
    begin_step(w, r, TUNE_STORE_WEIGHTS,
               w->p->main_weights ? "Into the TRF by the main context, 32 bytes a cycle: the sub context's 8 would be waited for"
                                  : "Into the TRF by the sub context, while others work");
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, m![%s], m![%s], m![%s], m![%s]> = device.%s", w->type, r->cluster, r->slice,
              TUNE_LIST(w->a, lanes_of(w, r)), TUNE_LIST(w->a, groups_of(w, r), sums), w->p->main_weights ? "main" : "sub");
    tune_line(&w->page, "    .begin(columns.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes_of(w, r), groups_of(w, r)), sums);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    end_step(w, r, TUNE_STORE_WEIGHTS);
}

/* What meets the sums, of the columns of all ranges that are stored together: in DM, as slices have them. */
static void write_extra_loads(ranges_writer *w, const range *stored, const char *from)
{
    const int64_t ranges = stored->is_last ? 1 : w->p->iterations;
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        const char *name = e->tensor.port,
                   *tile = arena_printf(w->a, ".tile::<m![%s], %" PRId64 ", _>(%s)", w->q->axis_text[TUNE_COLUMN], stored->width, from);
        if (stored->is_last && ranges_shifts_extra(w->t, w->q, w->p, e)) {
            tune_line(&w->page, "// To where whole words begin, which DM takes");
            tune_line(&w->page, "let own_%s: HbmTensor<%s, Chip, m![%s]> = %s.view()%s.to_hbm(&mut device.tdma);", name,
                      dtype_row_of(e->type)->name, stored->q.axis_text[TUNE_COLUMN], name, tile);
            name = arena_printf(w->a, "own_%s", name);
            tile = "";
        }
        begin_step(w, stored, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to the sums");
        tune_line(&w->page, "let own_%s: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> =", e->tensor.port, dtype_row_of(e->type)->name,
                  stored->cluster, stored->slice,
                  TUNE_LIST(w->a, digit(w, stored, stored->width / ranges, ranges), digit(w, stored, 1, stored->tile)));
        tune_line(&w->page, "    %s.view()%s.to_dm(&mut device.tdma);", name, tile);
        end_step(w, stored, (tune_step)(TUNE_LOAD_EXTRA + i));
    }
}

/* And into the VRF those of a range: `tile` of them. */
static void write_extras(ranges_writer *w, const range *r, const char *tile)
{
    const char *lanes = TUNE_LIST(w->a, lanes_of(w, r)),
               *element = r->lanes == w->t->rows ? digit(w, r, 1, r->tile) : padded_to(w, lanes, r->lanes, w->t->rows);
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        begin_step(w, r, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF");
        tune_line(&w->page, "let %s: VrfTensor<%s, Chip, m![%s], m![%s], m![%s]> = device.sub", e->tensor.port,
                  dtype_row_of(w->q->meets)->name, r->cluster, r->slice, element);
        tune_line(&w->page, "    .begin(own_%s.view()%s)", e->tensor.port, tile);
        tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, groups_of(w, r)), lanes);
        if (e->type != w->q->meets)
            tune_line(&w->page, "    .fetch_cast::<%s>()", dtype_row_of(w->q->meets)->name);
        tune_line(&w->page, "    .collect()");
        tune_line(&w->page, "    .to_vrf();");
        end_step(w, r, (tune_step)(TUNE_KEEP_EXTRA + i));
    }
}

static void write_products(ranges_writer *w, const range *r)
{
    const int64_t sum = ranges_padded_sum(w->t, w->q), packet = tune_packet_of(w->t, w->q),
                  flits = 2 * w->t->flit_bytes * 8 / dtype_row_of(w->q->type)->bits,
                  out = w->t->flit_bytes * 8 / dtype_row_of(w->q->out_type)->bits;
    const char *rows = own_rows(w), *lanes = TUNE_LIST(w->a, lanes_of(w, r)), *all = TUNE_LIST(w->a, rows, groups_of(w, r)),
               *eight = padded_to(w, lanes, r->lanes, w->t->rows);
    begin_step(w, r, TUNE_MULTIPLY,
               arena_printf(w->a, "%" PRId64 " rows by %" PRId64 " columns in each slice", ranges_rows(w->p), r->tile));
    tune_line(&w->page, "let products: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = device.main", w->out_type, r->cluster, r->slice,
              TUNE_LIST(w->a, rows, digit(w, r, 1, r->tile)));
    tune_line(&w->page, "    .begin(unsafe { rows.view().reshape::<Chip, m![%s], m![%s], _>() })", r->cluster, r->slice);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", w->rows_time, w->rows_packet);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&weights)",
              TUNE_LIST(w->a, rows, sum_digit(w, packet, sum / packet), groups_of(w, r)),
              padded_to(w, sum_digit(w, 1, packet), packet, flits));
    tune_line(&w->page, "    .contract_packet::<m![1]>()");
    tune_line(&w->page, "    .contract_time::<m![%s]>()", all);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", all, eight);
    if (w->q->whole.count > 0 && tune_pass_does_anything(&w->q->whole.passes[0])) {
        const int64_t half = w->t->rows / 2;
        tune_line(&w->page, "    .vector_init()");
        tune_write_pass(&w->page, &w->q->whole.passes[0], r->lanes > half ? NULL : padded_to(w, lanes, r->lanes, half));
        tune_line(&w->page, "    .vector_final()");
    }
    if (w->q->out_type != w->q->whole.type)
        tune_line(&w->page, "    .cast::<%s, m![%s]>()", w->out_type, padded_to(w, eight, w->t->rows, out));
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", lanes);
    tune_line(&w->page, "    .commit();");
    end_step(w, r, TUNE_MULTIPLY);
}

/* Slices after the exchange, and what they have of a range: the rows that they keep, and others in their place. */
static const char *exchanged_slice(const ranges_writer *w, const range *r)
{
    const int64_t n = w->p->exchange;
    return n == 1 ? r->slice
                  : TUNE_LIST(w->a, digit(w, r, r->tile * n, w->t->slices_per_cluster / n), row_digit(w, ranges_rows(w->p) / n, n));
}

static const char *pieces_type(const ranges_writer *w, const range *r)
{
    const int64_t n = w->p->exchange, ranges = r->is_last ? 1 : w->p->iterations;
    return arena_printf(
        w->a, "DmTensor<%s, Chip, m![%s], m![%s], m![%s]>", w->out_type, r->cluster, exchanged_slice(w, r),
        TUNE_LIST(w->a, row_digit(w, 1, ranges_rows(w->p) / n), digit(w, r, r->width / ranges, ranges), digit(w, r, 1, r->tile * n)));
}

/* Into `pieces`, or the part of them that is this range's. */
static void write_exchange(ranges_writer *w, const range *r, const char *into)
{
    const int64_t n = w->p->exchange, most = w->t->flit_bytes * 8 / dtype_row_of(w->q->out_type)->bits,
                  packet = largest_divisor(r->tile, most);
    const char *rows = row_digit(w, 1, ranges_rows(w->p) / n), *groups = digit(w, r, packet, r->tile / packet),
               *lanes = TUNE_LIST(w->a, digit(w, r, 1, packet)), *slice = exchanged_slice(w, r),
               *let = into ? "" : arena_printf(w->a, "let pieces: %s = ", pieces_type(w, r));
    begin_step(w, r, TUNE_REGROUP,
               n == 1 ? "To the results of other ranges"
                      : arena_printf(w->a, "%" PRId64 " slices exchange rows for columns, so that pieces of a row have %" PRId64 " columns",
                                     n, n * r->tile));
    tune_line(&w->page, "%sdevice.sub", let);
    tune_line(&w->page, "    .begin(products.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, groups, row_digit(w, ranges_rows(w->p) / n, n)), lanes);
    if (n > 1)
        tune_line(&w->page, "    .switch::<m![%s], m![%s]>(SwitchConfig::InterTranspose { slice1: %" PRId64 ", slice0: 1, time0: 1 })",
                  slice, TUNE_LIST(w->a, rows, groups, digit(w, r, r->tile, n)), n);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", lanes);
    tune_line(&w->page, into ? "    .commit_view(%s);" : "    .commit();", into);
    end_step(w, r, TUNE_REGROUP);
}

/* Whole rows, in pieces for a slice each, of the results that are stored together. */
static const char *whole_type(const ranges_writer *w, const range *r, int64_t pieces)
{
    const int64_t clusters = ranges_row_clusters(w->t, w->q), slices = ranges_row_slices(w->t, w->q),
                  padded = round_up(w->q->size[TUNE_ROW], clusters), of_row = power_of_two_above(pieces),
                  idle_slices = w->t->slices_per_cluster / (slices * of_row);
    const char *of_cluster = tune_digit(w->q, TUNE_ROW, padded, 1, clusters, w->a),
               *rows = tune_digit(w->q, TUNE_ROW, padded, clusters, padded / clusters, w->a);
    const char *part = digit(w, r, r->width / pieces, pieces);
    if (rows)
        rows = padded_to(w, rows, padded / clusters, slices);
    return arena_printf(
        w->a, "DmTensor<%s, Chip, m![%s], m![%s], m![%s]>", w->out_type, of_cluster ? of_cluster : tune_idle_clusters(w->t, w->a),
        TUNE_LIST(w->a, rows, part ? padded_to(w, part, pieces, of_row) : NULL, idle(w, idle_slices)), digit(w, r, 1, r->width / pieces));
}

static void write_store(ranges_writer *w, const range *r, const char *from, int64_t pieces, const char *at)
{
    const bool brings = w->p->brings || r->is_last;
    const char *what = brings ? "results" : from, *out = w->q->tensors[TUNE_OUT].port, *axis = w->q->axis_text[TUNE_COLUMN];
    const int64_t count = r->is_last ? ranges_left(w->t, w->q, w->p) : r->width;
    if (brings) {
        begin_step(w, r, TUNE_CLOSE, "A copy makes rows whole");
        tune_line(&w->page, "let results: %s = %s.to_dm(&mut device.tdma);", whole_type(w, r, pieces), from);
        end_step(w, r, TUNE_CLOSE);
    }
    const char *tile = count == r->width
                           ? ""
                           : arena_printf(w->a, ".tile::<m![%s], %" PRId64 ", m![%s = %" PRId64 " # %" PRId64 "]>(%" PRId64 ")",
                                          r->q.axis_text[TUNE_COLUMN], count, axis, count, r->width, r->width - count);
    begin_step(w, r, TUNE_STORE, "Out");
    tune_line(&w->page, "%s.view()%s.to_hbm_view(&mut device.tdma, %s.view_mut().tile::<m![%s], %" PRId64 ", _>(%s));", what, tile, out,
              axis, count, at);
    end_step(w, r, TUNE_STORE);
}

/* ---- the kernel ---- */

static void begin_loop(ranges_writer *w, const char *index, int64_t count)
{
    if (count == 1)
        return;
    tune_line(&w->page, "for %s in 0..%" PRId64 " {", index, count);
    w->page.depth++;
}

static void end_loop(ranges_writer *w, int64_t count)
{
    if (count == 1)
        return;
    w->page.depth--;
    tune_line(&w->page, "}");
}

/* Where an iteration's range begins. */
static const char *begin_of(const ranges_writer *w, bool inside)
{
    const ranges_plan *p = w->p;
    const char *outer = p->stores > 1 ? arena_printf(w->a, "%" PRId64 " * i", ranges_stored(w->t, p)) : NULL,
               *inner = inside && p->iterations > 1 ? arena_printf(w->a, "%" PRId64 " * j", ranges_width(w->t, p)) : NULL;
    return outer && inner ? arena_printf(w->a, "%s + %s", outer, inner) : outer ? outer : inner ? inner : "0";
}

static void write_ranges(ranges_writer *w, const range *r, const range *stored)
{
    const ranges_plan *p = w->p;
    const bool waits = p->iterations > 1;
    begin_loop(w, "i", p->stores);
    if (waits) {
        tune_line(&w->page, "// Results of %" PRId64 " ranges, which are stored together", p->iterations);
        tune_line(&w->page, "let mut pieces: %s = DmTensor::new();", pieces_type(w, stored));
    }
    write_extra_loads(w, stored, begin_of(w, false));
    begin_loop(w, "j", p->iterations);
    const char *part = waits ? arena_printf(w->a, ".tile::<m![%s], 1, _>(j)", digit(w, stored, r->width, p->iterations)) : "";
    write_weights(w, r, begin_of(w, true));
    write_extras(w, r, part);
    write_products(w, r);
    if (waits)
        write_exchange(w, r, arena_printf(w->a, "pieces.view_mut()%s", part));
    else if (p->exchange > 1)
        write_exchange(w, r, NULL);
    end_loop(w, p->iterations);
    write_store(w, stored, waits || p->exchange > 1 ? "pieces" : "products", p->pieces, begin_of(w, false));
    end_loop(w, p->stores);
}

static void write_last(ranges_writer *w)
{
    range r;
    const int64_t left = ranges_left(w->t, w->q, w->p), columns = w->q->size[TUNE_COLUMN];
    if (left == 0)
        return;
    range_of(w, ranges_last(w->t, w->p), w->p->last_tile, true, &r);
    tune_line(&w->page, "// The last %" PRId64 " columns: what their range has of the one before it is not written again", left);
    const char *from = arena_printf(w->a, "%" PRId64, columns - r.width);
    write_weights(w, &r, from);
    write_extra_loads(w, &r, from);
    write_extras(w, &r, "");
    write_products(w, &r);
    if (w->p->exchange > 1)
        write_exchange(w, &r, NULL);
    write_store(w, &r, w->p->exchange > 1 ? "pieces" : "products", 1, arena_printf(w->a, "%" PRId64, columns - left));
}

static const char *operand_axes(const ranges_writer *w, tune_role role)
{
    enum { WORD_BITS = 64 };
    const bool is_whole = w->q->size[TUNE_SUM] * dtype_row_of(w->q->type)->bits % WORD_BITS == 0;
    return TUNE_LIST(w->a, w->q->axis_text[role], is_whole ? w->q->axis_text[TUNE_SUM] : sum_digit(w, 1, ranges_padded_sum(w->t, w->q)));
}

void ranges_write(const target *t, const tune_question *q, const ranges_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out)
{
    ranges_writer w = {.q = q,
                       .p = p,
                       .t = t,
                       .a = a,
                       .page = {out, found, a, 0},
                       .type = dtype_row_of(q->type)->name,
                       .out_type = dtype_row_of(q->out_type)->name};
    range r, stored;
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    range_of(&w, ranges_width(t, p), p->tile, false, &r);
    range_of(&w, ranges_stored(t, p), p->tile, false, &stored);
    const char *axes = "";
    for (int role = 0; role < TUNE_ROLES; role++)
        if (q->axis_text[role])
            axes = arena_printf(a, "%s%s%s = %" PRId64, axes, *axes ? ", " : "", q->axis_text[role], q->size[role]);
    tune_line(&w.page, "axes![%s];", axes);
    tune_line(&w.page, "%s", "");
    tune_line(&w.page, "type Chip = m![1];");
    tune_line(&w.page, "%s", "");
    tune_line(&w.page, "%s", tune_device(t, 1, a));
    tune_line(&w.page, "fn contract(");
    w.page.depth++;
    tune_line(&w.page, "device: &mut Device,");
    const tune_place operands[] = {q->stream, q->weights};
    for (size_t i = 0; i < 2; i++)
        tune_line(&w.page, "%s: &HbmTensor<%s, Chip, m![%s]>,", q->tensors[operands[i]].port, w.type,
                  operand_axes(&w, tune_kept_of(q, operands[i])));
    for (size_t i = 0; i < q->extra_count; i++)
        tune_line(&w.page, "%s: &HbmTensor<%s, Chip, m![%s]>,", q->extras[i].tensor.port, dtype_row_of(q->extras[i].type)->name,
                  q->axis_text[TUNE_COLUMN]);
    tune_line(&w.page, "%s: &mut HbmTensor<%s, Chip, m![%s]>,", q->tensors[TUNE_OUT].port, w.out_type,
              TUNE_LIST(a, q->axis_text[TUNE_ROW], q->axis_text[TUNE_COLUMN]));
    w.page.depth--;
    tune_line(&w.page, ") {");
    w.page.depth++;
    write_rows(&w);
    const bool shadows = p->iterations * p->stores == 1 && p->last_tile > 0; /* names that the last range has, too */
    if (shadows) {
        tune_line(&w.page, "{");
        w.page.depth++;
    }
    write_ranges(&w, &r, &stored);
    if (shadows)
        end_loop(&w, 0);
    write_last(&w);
    w.page.depth--;
    tune_line(&w.page, "}");
}
