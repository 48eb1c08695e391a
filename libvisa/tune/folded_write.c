#include "libvisa/tune/folded_write.h"

#include <inttypes.h>

#include "libvisa/tune/aside_write.h"
#include "libvisa/tune/machine.h"
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
    int64_t padded = role == TUNE_ROW ? folded_padded_rows(w->p) : role == TUNE_SUM ? folded_padded_sum(w->p) : w->q->size[role];
    return tune_digit(w->q, role, padded, stride, count, w->a);
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

static const char *piece_digit(const folded_writer *w)
{
    return digit(w, TUNE_COLUMN, folded_piece(w->p), w->p->pieces);
}

static const char *group_digit(const folded_writer *w)
{
    return digit(w, TUNE_COLUMN, w->p->columns, w->p->groups);
}

static const char *sum_digit(const folded_writer *w)
{
    return digit(w, TUNE_SUM, w->p->sums, w->p->sum_slices);
}

/* "K / 32 % 8": so many parts of the sum of a slice, of what each brings. */
static const char *brought_digit(const folded_writer *w)
{
    return digit(w, TUNE_SUM, w->p->brought_sums, w->p->sums / w->p->brought_sums);
}

/* Of the slices of a group those with the same part of the sum, as they bring columns: parts of it, too, of columns that lie turned. */
static const char *bringing_digit(const folded_writer *w)
{
    return TUNE_LIST(w->a, brought_digit(w), digit(w, TUNE_COLUMN, folded_columns_brought(w->p), folded_column_bringers(w->p)));
}

/* What one contraction has of the loops: an iteration's columns with all rows, or those of the first two with half of the rows. */
typedef enum folded_turn { WHOLE_TURN, HALF_TURN } folded_turn;

static const char *row_slices_digit(const folded_writer *w)
{
    return digit(w, TUNE_ROW, folded_rows_together(w->p), w->p->row_slices);
}

/* The two halves of the rows, where they come one after the other. */
static const char *half_digit(const folded_writer *w)
{
    return w->p->in_halves ? digit(w, TUNE_ROW, w->q->size[TUNE_ROW] / 2, 2) : NULL;
}

/* Rows of a slice by so many that follow each other, of a turn. */
static const char *rows_by(const folded_writer *w, int64_t each, folded_turn turn)
{
    const char *half = turn == HALF_TURN ? NULL : half_digit(w), *inside = digit(w, TUNE_ROW, each, folded_rows_together(w->p) / each);
    return half || inside ? TUNE_LIST(w->a, half, inside) : NULL;
}

static const char *pair_digit(const folded_writer *w, folded_turn turn)
{
    return turn == HALF_TURN ? digit(w, TUNE_COLUMN, of_iteration(w->p), 2) : NULL;
}

/* ".tile::<..>(j)": the iterations of a turn, in a tensor with those of all. */
static const char *tile_of(const folded_writer *w, folded_turn turn)
{
    int64_t together = turn == HALF_TURN ? 2 : 1, of = w->p->iterations / together;
    return of == 1 ? ""
                   : arena_printf(w->a, ".tile::<m![%s], 1, _>(%s)", digit(w, TUNE_COLUMN, together * of_iteration(w->p), of),
                                  turn == HALF_TURN ? "0" : "j");
}

static const char *piece_of(const folded_writer *w)
{
    return w->p->pieces > 1 ? arena_printf(w->a, ".tile::<m![%s], 1, _>(i)", piece_digit(w)) : "";
}

/* Slices after the reducer: each keeps a part of the rows, of half of them those with one of the two iterations. */
static const char *keeping_slice(const folded_writer *w, folded_turn turn)
{
    return TUNE_LIST(w->a, group_digit(w), row_slices_digit(w), rows_by(w, folded_rows_kept(w->p), turn), pair_digit(w, turn));
}

void folded_write_head(tune_page *page, const target *t, const tune_question *q, const char *cluster, const char *slice, bool is_written)
{
    const char *const *axis = q->axis_text, *type = dtype_row_of(q->type)->name, *out_type = dtype_row_of(q->out_type)->name;
    const tune_tensor *const x = q->tensors;
    tune_line(page, "axes![%s = %" PRId64 ", %s = %" PRId64 ", %s = %" PRId64 "];", axis[TUNE_ROW], q->size[TUNE_ROW], axis[TUNE_COLUMN],
              q->size[TUNE_COLUMN], axis[TUNE_SUM], q->size[TUNE_SUM]);
    tune_line(page, "%s", "");
    tune_line(page, "type Chip = m![1];");
    tune_line(page, "type Cluster = m![%s];", cluster);
    tune_line(page, "type Slice = m![%s];", slice);
    tune_line(page, "%s", "");
    tune_line(page, "%s", tune_device(t, 1, page->arena));
    tune_line(page, "fn contract(");
    page->depth++;
    tune_line(page, "device: &mut Device,");
    const tune_place operands[] = {q->stream, q->weights};
    for (int i = 0; i < 2; i++) {
        tune_role kept = tune_kept_of(q, operands[i]);
        bool turned = q->turned[operands[i]];
        tune_line(page, "%s: &HbmTensor<%s, Chip, m![%s, %s]>,", x[operands[i]].port, type, axis[turned ? TUNE_SUM : kept],
                  axis[turned ? kept : TUNE_SUM]);
    }
    for (size_t i = 0; i < q->extra_count; i++)
        tune_line(
            page, "%s: &HbmTensor<%s, Chip, m![%s]>,", q->extras[i].tensor.port, dtype_row_of(q->extras[i].type)->name,
            TUNE_LIST(page->arena, tune_axis_of_extra(q, &q->extras[i], TUNE_ROW), tune_axis_of_extra(q, &q->extras[i], TUNE_COLUMN)));
    if (is_written)
        tune_line(page, "%s: &mut HbmTensor<%s, Chip, m![%s, %s]>,", x[TUNE_OUT].port, out_type, axis[TUNE_ROW], axis[TUNE_COLUMN]);
    page->depth--;
    if (is_written)
        tune_line(page, ") {");
    else
        tune_line(page, ") -> HbmTensor<%s, Chip, m![%s, %s]> {", out_type, axis[TUNE_ROW], axis[TUNE_COLUMN]);
    page->depth++;
}

static void begin_loop(folded_writer *w, const char *index, int64_t from, int64_t to)
{
    tune_line(&w->page, "for %s in %" PRId64 "..%" PRId64 " {", index, from, to);
    w->page.depth++;
}

static void end_block(folded_writer *w)
{
    w->page.depth--;
    tune_line(&w->page, "}");
}

/* A tensor in DM, or one for a half of it in each iteration of h: what is copied there, from where. */
static void write_load(folded_writer *w, const char *name, const char *type, const char *port, const char *half)
{
    if (!half) {
        tune_line(&w->page, "let %s: %s = %s.to_dm(&mut device.tdma);", name, type, port);
        return;
    }
    tune_line(&w->page, "%s.view()", port);
    tune_line(&w->page, "    .tile::<m![%s], 1, _>(h)", half);
    tune_line(&w->page, "    .to_dm_view(&mut device.tdma, %s.view_mut().tile::<m![%s], 1, _>(h));", name, half);
}

static const char *parts_slice(const folded_writer *w)
{
    return TUNE_LIST(w->a, group_digit(w), bringing_digit(w), sum_digit(w));
}

static const char *parts_type(const folded_writer *w)
{
    return arena_printf(w->a, "DmTensor<%s, Chip, Cluster, m![%s], m![%s]>", w->type, parts_slice(w),
                        TUNE_LIST(w->a, iteration_digit(w), piece_digit(w), digit(w, TUNE_COLUMN, 1, folded_columns_brought(w->p)),
                                  first(w, TUNE_SUM, w->p->brought_sums)));
}

/* The half of the columns' iterations that a copy brings, where it is one. */
static const char *half_of_columns(const folded_writer *w)
{
    const folded_plan *p = w->p;
    return p->columns_in_halves ? digit(w, TUNE_COLUMN, of_iteration(p) * p->iterations / 2, 2) : NULL;
}

/* Columns that lie turned: copied in runs of them, and turned. Slices that exchange what they have have copied the part of the sum that
 * follows the others', of all parts of the sum that slices have and the columns of several. */
static void write_turned_columns(folded_writer *w)
{
    const folded_plan *p = w->p;
    int64_t rows = tune_turn_rows(w->t, w->q), here = folded_columns_brought(p), columns = tune_turn_columns(w->q, here),
            flit = elements_of(w->t->flit_bytes, w->q->type), together = folded_columns_together(p);
    const char *half = half_of_columns(w), *port = w->q->tensors[w->q->weights].port, *side = digit(w, TUNE_SUM, 1, p->gather),
               *left = digit(w, TUNE_SUM, p->gather, p->brought_sums / p->gather), *pieces = piece_digit(w),
               *iterations = digit(w, TUNE_COLUMN, of_iteration(p), p->iterations / (half ? 2 : 1)),
               *exchanged = p->gather > 1 ? TUNE_LIST(w->a, digit(w, TUNE_COLUMN, here, together / here), sum_digit(w)) : NULL,
               *slice = TUNE_LIST(w->a, group_digit(w), brought_digit(w), digit(w, TUNE_COLUMN, together, folded_piece(p) / together),
                                  p->gather > 1 ? side : sum_digit(w));
    const char *tile = half ? arena_printf(w->a, ".tile::<m![%s], 1, _>(h)", half) : "", *row = first(w, TUNE_SUM, rows),
               *packet = first(w, TUNE_COLUMN, columns), *groups = digit(w, TUNE_COLUMN, columns, here / columns);
    tune_begin_step(
        &w->page, TUNE_LOAD_LYING,
        arena_printf(w->a, "Packets are of the sum, and %s lies the other way: each column once, in runs of %" PRId64, port, together));
    tune_line(&w->page, "let lying: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = %s%s%s.to_dm(&mut device.tdma);", w->type, slice,
              TUNE_LIST(w->a, p->gather > 1 ? sum_digit(w) : NULL, left, iterations, pieces, first(w, TUNE_COLUMN, together)), port,
              half ? ".view()" : "", tile);
    tune_end_step(&w->page, TUNE_LOAD_LYING);
    tune_begin_step(
        &w->page, TUNE_TURN_WEIGHTS,
        p->gather > 1
            ? arena_printf(w->a, "Slices exchange parts of the sum for columns, each %" PRId64 ", and blocks are turned", p->gather)
            : "Blocks of columns are turned");
    if (half)
        tune_line(&w->page, "device.main");
    else
        tune_line(&w->page, "let parts: %s = device.main", parts_type(w));
    tune_line(&w->page, "    .begin(lying.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, iterations, pieces, groups, left, exchanged), packet);
    if (p->gather > 1)
        tune_line(&w->page, "    .switch::<m![%s], m![%s]>(SwitchConfig::InterTranspose { slice1: %" PRId64 ", slice0: 1, time0: 1 })",
                  parts_slice(w), TUNE_LIST(w->a, iterations, pieces, groups, left, side), p->gather);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .transpose::<m![%s], m![%s # %" PRId64 "]>()",
              TUNE_LIST(w->a, iterations, pieces, groups, digit(w, TUNE_SUM, rows, p->brought_sums / rows), packet), row, flit);
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", row);
    tune_line(&w->page, half ? "    .commit_view(parts.view_mut()%s);" : "    .commit();", tile);
    tune_end_step(&w->page, TUNE_TURN_WEIGHTS);
}

static void write_columns(folded_writer *w)
{
    const folded_plan *p = w->p;
    if (w->q->turned[w->q->weights]) {
        write_turned_columns(w);
        return;
    }
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS,
                    arena_printf(w->a, "Each column once: a slice brings %" PRId64 " columns of each %s, of its part of the sum",
                                 folded_columns_brought(p), p->pieces > 1 ? "piece" : "iteration"));
    write_load(w, "parts", parts_type(w), w->q->tensors[w->q->weights].port, half_of_columns(w));
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
}

/* Flits of the sum outside of the rows that follow each other, where these were turned aside. */
static const char *rows_type(const folded_writer *w)
{
    int64_t flit = aside_flit_of(w->t, w->q);
    const char *element = w->p->aside == 0 ? TUNE_LIST(w->a, rows_by(w, 1, WHOLE_TURN), w->part_of_sum)
                                           : TUNE_LIST(w->a, half_digit(w), digit(w, TUNE_SUM, flit, w->p->sums / flit),
                                                       digit(w, TUNE_ROW, 1, folded_rows_together(w->p)), first(w, TUNE_SUM, flit));
    return arena_printf(w->a, "DmTensor<%s, Chip, Cluster, Slice, m![%s]>", w->type, element);
}

static void write_rows(folded_writer *w)
{
    tune_begin_step(&w->page, TUNE_LOAD_ROWS,
                    arena_printf(w->a, "%" PRId64 " rows for each slice, of its part of the sum: a copy for every group of columns",
                                 folded_rows_together(w->p)));
    write_load(w, "rows", rows_type(w), w->p->aside > 0 ? aside_name(TUNE_ROW) : w->q->tensors[w->q->stream].port, half_digit(w));
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
}

/* The rows of a turn into the TRF, as `weights`. */
static void write_weights(folded_writer *w, folded_turn turn)
{
    const char *lanes = first(w, TUNE_ROW, w->t->rows), *tiles = rows_by(w, w->t->rows, turn);
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.main", w->type, lanes,
              TUNE_LIST(w->a, tiles, w->part_of_sum));
    tune_line(&w->page, "    .begin(rows.view()%s)",
              turn == HALF_TURN ? arena_printf(w->a, ".tile::<m![%s], 1, _>(h)", half_digit(w)) : "");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes, tiles), w->part_of_sum);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
}

static const char *columns_type(const folded_writer *w)
{
    return arena_printf(
        w->a, "DmTensor<%s, Chip, Cluster, Slice, m![%s]>", w->type,
        TUNE_LIST(w->a, w->p->in_halves ? iteration_digit(w) : NULL, digit(w, TUNE_COLUMN, 1, folded_piece(w->p)), w->part_of_sum));
}

/* Those of an iteration, in the tensor of all where it is one. */
static const char *columns_of_turn(const folded_writer *w, folded_turn turn)
{
    return w->p->in_halves ? tile_of(w, turn) : "";
}

/* A piece of the columns goes around its group, by one of the contexts. */
static void write_ring(folded_writer *w, const char *by)
{
    const folded_plan *p = w->p;
    const char *here = digit(w, TUNE_COLUMN, 1, folded_columns_brought(p));
    tune_line(&w->page, "device.%s", by);
    tune_line(&w->page, "    .begin(parts.view()%s%s)", tile_of(w, WHOLE_TURN), piece_of(w));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, here), first(w, TUNE_SUM, p->brought_sums));
    tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
              TUNE_LIST(w->a, here, bringing_digit(w)), p->row_slices, p->sum_slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", first(w, TUNE_SUM, elements_of(w->t->flit_bytes, w->q->type)));
    tune_line(&w->page, "    .commit_view(columns.view_mut()%s);", columns_of_turn(w, WHOLE_TURN));
}

/* Of an iteration in a loop that begins with the first one. */
static void write_rings(folded_writer *w)
{
    const folded_plan *p = w->p;
    bool both = p->main_begins && p->iterations * p->pieces > 1;
    tune_begin_step(&w->page, TUNE_HAND_WEIGHTS,
                    arena_printf(w->a, "They go around the %" PRId64 " slices of a group, ahead of the products%s",
                                 p->row_slices * p->sum_slices,
                                 both ? ": the first ones by the main context, which has nothing else to do yet" : ""));
    if (!p->in_halves)
        tune_line(&w->page, "let mut columns: %s = DmTensor::new();", columns_type(w));
    if (both) {
        tune_line(&w->page, p->pieces == 1 ? "if j == 0 {" : p->iterations == 1 ? "if i == 0 {" : "if j == 0 && i == 0 {");
        w->page.depth++;
        write_ring(w, "main");
        w->page.depth--;
        tune_line(&w->page, "} else {");
        w->page.depth++;
        write_ring(w, "sub");
        end_block(w);
    } else
        write_ring(w, p->main_begins ? "main" : "sub");
    tune_end_step(&w->page, TUNE_HAND_WEIGHTS);
}

/* What a slice has of an operand of what is done to the sums, in DM. */
static const char *own_name(const folded_writer *w, const tune_extra *e)
{
    return arena_printf(w->a, "own_%s", e->tensor.port);
}

/* Operands of what is done to the sums of the turns of a kind: of columns those of all its iterations. */
static void write_extras(folded_writer *w, folded_turn turn)
{
    const folded_plan *p = w->p;
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        bool of_columns = e->has[TUNE_COLUMN], first_ones = turn == HALF_TURN;
        const char *rows = TUNE_LIST(w->a, first_ones ? half_digit(w) : NULL, first(w, TUNE_ROW, folded_rows_kept(p))),
                   *columns = TUNE_LIST(w->a, first_ones ? NULL : iteration_digit(w), first(w, TUNE_COLUMN, p->columns)),
                   *tile = of_columns && first_ones ? tile_of(w, turn) : "";
        tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to the sums");
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = %s%s%s.to_dm(&mut device.tdma);", own_name(w, e),
                  dtype_row_of(e->type)->name, keeping_slice(w, turn), of_columns ? columns : rows, e->tensor.port, *tile ? ".view()" : "",
                  tile);
        tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
    }
}

/* Those of a turn in the VRF: of rows a packet each, of columns one element for all of a packet. */
static void keep_extras(folded_writer *w, folded_turn turn)
{
    const folded_plan *p = w->p;
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const tune_extra *e = &w->q->extras[i];
        bool of_columns = e->has[TUNE_COLUMN];
        const char *columns = first(w, TUNE_COLUMN, folded_piece(p)), *rows = first(w, TUNE_ROW, folded_rows_kept(p)),
                   *half = half_digit(w), *tile = "";
        if (of_columns)
            tile = arena_printf(w->a, "%s%s", turn == HALF_TURN ? "" : tile_of(w, turn), piece_of(w));
        else if (turn == HALF_TURN)
            tile = arena_printf(w->a, ".tile::<m![%s], 1, _>(h)", half);
        tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF");
        tune_operand_text x = {.name = e->tensor.port,
                               .slice = arena_printf(w->a, "m![%s]", keeping_slice(w, turn)),
                               .element = of_columns ? columns : rows,
                               .from = arena_printf(w->a, "%s.view()%s", own_name(w, e), tile),
                               .from_type = e->type,
                               .type = w->q->meets,
                               .time = "1",
                               .packet = columns};
        if (!of_columns) {
            x.time = TUNE_LIST(w->a, digit(w, TUNE_ROW, w->t->rows, folded_rows_kept(p) / w->t->rows));
            x.packet = first(w, TUNE_ROW, w->t->rows);
        }
        tune_write_operand(&w->page, &x);
        tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
    }
}

static const char *products_type(const folded_writer *w, folded_turn turn)
{
    return arena_printf(w->a, "DmTensor<%s, Chip, Cluster, m![%s], m![%s, %s]>", w->out_type, keeping_slice(w, turn),
                        first(w, TUNE_ROW, folded_rows_kept(w->p)), first(w, TUNE_COLUMN, w->p->columns));
}

static void write_products(folded_writer *w, folded_turn turn)
{
    const tune_question *q = w->q;
    const folded_plan *p = w->p;
    int64_t packet = tune_packet_of(w->t, q), kept = folded_rows_kept(p), turned = folded_turned_columns(w->t, q);
    int64_t flit = elements_of(w->t->flit_bytes, q->out_type);
    const char *columns = first(w, TUNE_COLUMN, folded_piece(p)), *packets = digit(w, TUNE_SUM, packet, p->sums / packet),
               *lanes = first(w, TUNE_ROW, w->t->rows), *tiles = rows_by(w, w->t->rows, turn), *pair = pair_digit(w, turn),
               *left = digit(w, TUNE_ROW, w->t->rows, kept / w->t->rows), *side = first(w, TUNE_COLUMN, turned),
               *slice = keeping_slice(w, turn);
    const char *time = TUNE_LIST(w->a, pair, columns, tiles);
    const tune_epilogue *e = tune_epilogue_of(q, 1, false);
    keep_extras(w, turn);
    if (p->pieces > 1)
        tune_line(&w->page, "device.main");
    else
        tune_line(&w->page, "let products: %s = device.main", products_type(w, turn));
    tune_line(&w->page, "    .begin(columns.view()%s)", columns_of_turn(w, turn));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, pair, columns, packets), first(w, TUNE_SUM, packet));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&weights)", TUNE_LIST(w->a, pair, columns, packets, tiles),
              first(w, TUNE_SUM, packet));
    tune_line(&w->page, "    .contract_packet::<m![1]>()");
    tune_line(&w->page, "    .contract_time::<m![%s]>()", time);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", time, lanes);
    tune_write_fold(&w->page, w->t, q, e, slice, TUNE_LIST(w->a, columns, left), lanes);
    tune_line(&w->page, "    .transpose::<m![%s], m![%s # %" PRId64 "]>()",
              TUNE_LIST(w->a, digit(w, TUNE_COLUMN, turned, folded_piece(p) / turned), first(w, TUNE_ROW, kept)), side, flit);
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", side);
    if (p->pieces > 1)
        tune_line(&w->page, "    .commit_view(products.view_mut()%s);", piece_of(w));
    else
        tune_line(&w->page, "    .commit();");
}

static void write_store(folded_writer *w, folded_turn turn)
{
    const char *out = w->q->tensors[TUNE_OUT].port,
               *half = turn == HALF_TURN ? arena_printf(w->a, ".tile::<m![%s], 1, _>(h)", half_digit(w)) : "";
    if (w->p->iterations > 1)
        tune_line(&w->page, "products.view().to_hbm_view(&mut device.tdma, %s.view_mut()%s%s);", out, tile_of(w, turn), half);
    else
        tune_line(&w->page, "products.to_hbm(&mut device.tdma)");
}

/* The first products of a kernel, and their store. */
static void write_turn(folded_writer *w, folded_turn turn)
{
    const folded_plan *p = w->p;
    int64_t together = turn == HALF_TURN ? 2 : 1;
    tune_begin_step(&w->page, TUNE_MULTIPLY,
                    arena_printf(w->a,
                                 "%" PRId64 " columns by %" PRId64 " rows in each slice; the reducer adds the parts of the sum of %" PRId64
                                 " slices, each keeps %" PRId64 " rows, and they are turned",
                                 folded_piece(p) * together, p->rows / together, p->sum_slices, folded_rows_kept(p)));
    write_products(w, turn);
    tune_end_step(&w->page, TUNE_MULTIPLY);
    if (p->pieces > 1)
        end_block(w);
    tune_begin_step(&w->page, TUNE_STORE, "Out");
    write_store(w, turn);
    tune_end_step(&w->page, TUNE_STORE);
}

static void write_whole(folded_writer *w)
{
    write_columns(w);
    write_rows(w);
    write_extras(w, WHOLE_TURN);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS, "They stay in the TRF, and columns pass");
    write_weights(w, WHOLE_TURN);
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
    if (w->p->iterations > 1)
        begin_loop(w, "j", 0, w->p->iterations);
    if (w->p->pieces > 1) {
        tune_line(&w->page, "let mut products: %s = DmTensor::new();", products_type(w, WHOLE_TURN));
        begin_loop(w, "i", 0, w->p->pieces);
    }
    write_rings(w);
    write_turn(w, WHOLE_TURN);
    if (w->p->iterations > 1)
        end_block(w);
}

static void write_halves(folded_writer *w)
{
    bool both = w->p->columns_in_halves;
    if (both) {
        tune_line(&w->page, "let mut parts: %s = DmTensor::new();", parts_type(w));
        tune_line(&w->page, "let mut rows: %s = DmTensor::new();", rows_type(w));
        begin_loop(w, "h", 0, 2);
        write_columns(w);
        write_rows(w);
        end_block(w);
    } else
        write_columns(w);
    tune_line(&w->page, "let mut columns: %s = DmTensor::new();", columns_type(w));
    begin_loop(w, "j", 0, 2);
    write_rings(w);
    end_block(w);
    if (!both)
        tune_line(&w->page, "let mut rows: %s = DmTensor::new();", rows_type(w));
    write_extras(w, HALF_TURN);
    tune_line(&w->page, "// One half of the rows is multiplied while the other one comes: each with the columns of two iterations");
    begin_loop(w, "h", 0, 2);
    if (!both)
        write_rows(w);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS, "They stay in the TRF, and columns pass");
    write_weights(w, HALF_TURN);
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
    write_turn(w, HALF_TURN);
    end_block(w);
    if (w->p->iterations == 2)
        return;
    tune_line(&w->page, "// All rows, and the other columns");
    write_extras(w, WHOLE_TURN);
    write_weights(w, WHOLE_TURN);
    begin_loop(w, "j", 2, w->p->iterations);
    write_ring(w, "sub");
    write_products(w, WHOLE_TURN);
    write_store(w, WHOLE_TURN);
    end_block(w);
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
    folded_write_head(&w.page, t, q, TUNE_LIST(a, cluster_digit(&w)), TUNE_LIST(a, group_digit(&w), row_slices_digit(&w), sum_digit(&w)),
                      p->iterations > 1);
    if (p->aside > 0) {
        aside rows = folded_aside_of(t, q, p);
        aside_write(&w.page, t, q, &rows, ASIDE_ONLY, "");
    }
    if (p->in_halves)
        write_halves(&w);
    else
        write_whole(&w);
    end_block(&w);
}
