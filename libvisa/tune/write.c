#include "libvisa/tune/write.h"

#include <inttypes.h>
#include <string.h>

#include "libvisa/tune/aside_write.h"
#include "libvisa/tune/brought.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/scaled_write.h"
#include "libvisa/tune/widened.h"
#include "support/integer.h"

typedef struct writer {
    const tune_question *q;
    const tune_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    const char *chip_type, *rows_slice; /* "Slice", or that of rows that go around */
    bool loops;
    const char *part; /* of the sum, that is loaded: "l" */
    unsigned unnamed; /* kinds of axes, a bit each, whose digits of clusters and slices are copies without a name */
} writer;

const char *tune_digit(const tune_question *q, tune_role role, int64_t padded, int64_t stride, int64_t count, arena *a)
{
    if (role == TUNE_SUM && q->group > 0)
        return scaled_sum_digit(q, stride, count, a);
    const char *axis = q->axis_text[role];
    if (!axis || count == 1)
        return NULL;
    const char *text = padded == q->size[role] ? axis : arena_printf(a, "%s # %" PRId64, axis, padded);
    if (stride > 1)
        text = arena_printf(a, "%s / %" PRId64, text, stride);
    return stride * count < padded ? arena_printf(a, "%s %% %" PRId64, text, count) : text;
}

/* Of what an iteration's cluster has, padded where a slice has less: "N % 100 # 128 / 4". */
static const char *digit_inside(const writer *w, const tune_split *s, tune_role role, int64_t stride, int64_t count)
{
    const char *axis = w->q->axis_text[role];
    int64_t in_loop = w->q->size[role] / s->loop, in_cluster = in_loop / s->cluster, padded = s->padded / (s->loop * s->cluster);
    if (stride == padded * s->cluster)
        return arena_printf(w->a, "%s / %" PRId64, axis, in_loop);
    if (stride == padded && s->loop == 1)
        return arena_printf(w->a, "%s / %" PRId64, axis, in_cluster);
    if (stride == padded)
        return arena_printf(w->a, "%s %% %" PRId64 " / %" PRId64, axis, in_loop, in_cluster);
    if (stride * count < padded && in_cluster % (stride * count) == 0)
        return tune_digit(w->q, role, w->q->size[role], stride, count, w->a);
    const char *text = arena_printf(w->a, "%s %% %" PRId64 " # %" PRId64, axis, in_cluster, padded);
    text = stride > 1 ? arena_printf(w->a, "%s / %" PRId64, text, stride) : text;
    return stride * count < padded ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

static const char *digit_of(const writer *w, const tune_split *s, tune_role role, int64_t stride, int64_t count)
{
    if (w->q->axis_text[role] && count > 1 && tune_pads_inside(s, w->q->size[role]))
        return digit_inside(w, s, role, stride, count);
    return tune_digit(w->q, role, s->padded, stride, count, w->a);
}

static const char *kept(const writer *w, tune_role role, int64_t stride, int64_t count)
{
    return digit_of(w, &w->p->split[role], role, stride, count);
}

static const char *sum_digit(const writer *w, int64_t padded, int64_t stride, int64_t count)
{
    return tune_digit(w->q, TUNE_SUM, padded, stride, count, w->a);
}

static const char *summed(const writer *w, int64_t stride, int64_t count)
{
    return sum_digit(w, w->p->sum_padded, stride, count);
}

/* "1 # 4" */
static const char *idle(const writer *w, int64_t count)
{
    return count > 1 ? arena_printf(w->a, "1 # %" PRId64, count) : NULL;
}

static const char *padded_to(const writer *w, const char *mapping, int64_t from, int64_t to)
{
    return from == to
               ? (mapping ? mapping : "1")
               : arena_printf(w->a, mapping && strchr(mapping, ',') ? "[%s] # %" PRId64 : "%s # %" PRId64, mapping ? mapping : "1", to);
}

static int64_t idle_between(const writer *w)
{
    const tune_split *s = w->p->split;
    return w->t->slices_per_cluster / (s[TUNE_BATCH].slice * s[TUNE_ROW].slice * s[TUNE_COLUMN].slice * w->p->idle_inside);
}

/* A digit of slices or clusters: its name, or how many have the same. */
static const char *digit_or_copies(const writer *w, tune_role role, int64_t stride, int64_t count)
{
    if (w->unnamed >> role & 1)
        return count > 1 ? arena_printf(w->a, "%" PRId64, count) : NULL;
    return kept(w, role, stride, count);
}

static const char *slice_digit(const writer *w, tune_role role)
{
    return digit_or_copies(w, role, tune_slice_stride(w->p, role), w->p->split[role].slice);
}

static const char *cluster_digit(const writer *w, tune_role role)
{
    return digit_or_copies(w, role, tune_cluster_stride(w->p, role), w->p->split[role].cluster);
}

/* Slices of rows, and of columns, in the order that the plan has them. */
static const char *slice_list(const writer *w, const char *rows, const char *columns, const char *inside)
{
    bool rows_inside = tune_inner_role(w->p) == TUNE_ROW;
    return TUNE_LIST(w->a, slice_digit(w, TUNE_BATCH), rows_inside ? columns : rows, idle(w, idle_between(w)), rows_inside ? rows : columns,
                     inside);
}

/* ---- loads of what chips share ---- */

/* A tensor that lacks an axis which chips share is in the HBM of each under the name of its part. Of what has one digit of an axis no copy
 * makes other digits, so clusters and slices that differ in these get copies without a name, and the name after. `has`: kinds of its axes.
 */
static void begin_load(writer *w, unsigned has)
{
    w->unnamed = 0;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        const tune_split *s = &w->p->split[role];
        if (w->q->share[role].axis && !(has >> role & 1) && s->cluster * s->slice > 1)
            w->unnamed |= 1U << role;
    }
}

static const char *loaded_clusters(const writer *w)
{
    if (w->unnamed == 0)
        return "Cluster";
    const char *digits = TUNE_LIST(w->a, cluster_digit(w, TUNE_BATCH), cluster_digit(w, TUNE_ROW), cluster_digit(w, TUNE_COLUMN));
    return arena_printf(w->a, "m![%s]", strcmp(digits, "1") == 0 ? tune_idle_clusters(w->t, w->a) : digits);
}

static const char *loaded_slices(const writer *w)
{
    return w->unnamed == 0 ? "Slice"
                           : arena_printf(w->a, "m![%s]",
                                          slice_list(w, slice_digit(w, TUNE_ROW), slice_digit(w, TUNE_COLUMN), idle(w, w->p->idle_inside)));
}

/* Was there anything to name? */
static bool end_load(writer *w)
{
    bool names = w->unnamed != 0;
    w->unnamed = 0;
    return names;
}

static void write_names(writer *w, const char *name, const char *type, const char *slices, const char *element)
{
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = unsafe { %s.reshape() };", name, type, slices, element, name);
}

/* ---- the kernel ---- */

static const char *type_name(dtype t)
{
    return dtype_row_of(t)->name;
}

/* A role's axes in a port, padded where they are rows of an operand and a copy needs whole 8 bytes. */
static const char *port_axes(const writer *w, tune_role role, bool rows, dtype type)
{
    const tune_question *q = w->q;
    bool whole_words = q->size[role] * dtype_row_of(type)->bits % 64 == 0;
    if (!rows || whole_words)
        return q->axis_text[role];
    return role == TUNE_SUM ? summed(w, 1, w->p->sum_padded) : kept(w, role, 1, w->p->split[role].padded);
}

/* Rows of one position may follow the columns of a tensor. */
static bool lies_columns_first(const tune_question *q, const tune_tensor *t)
{
    size_t first[TUNE_ROLES + 1] = {0};
    for (size_t i = t->count; i > 0; i--)
        first[q->axes[t->axes[i - 1]].role] = i;
    return q->size[TUNE_ROW] == 1 && first[TUNE_ROW] > 0 && first[TUNE_COLUMN] > 0 && first[TUNE_COLUMN] < first[TUNE_ROW];
}

static const char *port_name(const writer *w, tune_place place)
{
    return w->q->tensors[place].port;
}

static const char *extra_name(const writer *w, size_t i)
{
    return w->q->extras[i].tensor.port;
}

/* An operand with one element, as the port and DM have it: "N # 2", whole 8 bytes. NULL: it has more, or rows are padded anyway. */
static const char *one_element(const writer *w, const tune_extra *e)
{
    enum { WORD_BITS = 64 };
    if (!tune_is_one_element(w->q, e) || w->p->split[TUNE_ROW].padded > 1)
        return NULL;
    return arena_printf(w->a, "%s # %u", w->q->axis_text[TUNE_ROW], WORD_BITS / dtype_row_of(e->type)->bits);
}

/* Innermost rows are whole 8 bytes. */
static const char *extra_mapping(const writer *w, const tune_extra *e)
{
    const tune_question *q = w->q;
    const char *parts[TUNE_SUM] = {0}, *one = one_element(w, e);
    if (one)
        return one;
    const bool groups_inside = e->groups > 1 && !e->groups_first;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        bool innermost = !groups_inside && (role == TUNE_COLUMN || (role == TUNE_ROW && !e->has[TUNE_COLUMN]));
        bool whole_words = q->size[role] * dtype_row_of(e->type)->bits % 64 == 0;
        parts[role] = e->has[role] && innermost && !whole_words ? kept(w, (tune_role)role, 1, w->p->split[role].padded)
                                                                : tune_axis_of_extra(q, e, (tune_role)role);
    }
    const char *groups = groups_inside ? scaled_digit(q, e, 1, scaled_padded_groups(e), w->a) : NULL,
               *outside = e->groups_first ? q->group_axis : NULL;
    return lies_columns_first(q, &e->tensor) ? TUNE_LIST(w->a, parts[TUNE_BATCH], outside, parts[TUNE_COLUMN], parts[TUNE_ROW], groups)
                                             : TUNE_LIST(w->a, parts[TUNE_BATCH], outside, parts[TUNE_ROW], parts[TUNE_COLUMN], groups);
}

static void write_axes(writer *w)
{
    const tune_question *q = w->q;
    strbuf_puts(&w->page.out->text, "axes![");
    const char *before = "";
    for (int role = 0; role < TUNE_ROLES; role++)
        if (q->axis_text[role] || q->share[role].axis) {
            const tune_share *share = &q->share[role];
            if (role == TUNE_SUM && q->group > 0)
                strbuf_printf(&w->page.out->text, "%s%s = %" PRId64 ", %s = %" PRId64, before, q->group_axis, tune_groups_of(q),
                              q->added_axis, q->group);
            else
                strbuf_printf(&w->page.out->text, "%s%s = %" PRId64, before, share->axis ? share->axis : q->axis_text[role],
                              share->axis ? share->size : q->size[role]);
            before = ", ";
        }
    strbuf_puts(&w->page.out->text, "];\n\n");
    tune_line(&w->page, "type Chip = m![%s];", tune_chip_mapping(q->share, TUNE_ROLES, ~0U, w->a));
    const char *cluster = TUNE_LIST(w->a, cluster_digit(w, TUNE_BATCH), cluster_digit(w, TUNE_ROW), cluster_digit(w, TUNE_COLUMN));
    tune_line(&w->page, "type Cluster = m![%s];", strcmp(cluster, "1") == 0 ? tune_idle_clusters(w->t, w->a) : cluster);
    tune_line(&w->page, "type Slice = m![%s];",
              slice_list(w, slice_digit(w, TUNE_ROW), slice_digit(w, TUNE_COLUMN), idle(w, w->p->idle_inside)));
    tune_line(&w->page, "%s", "");
}

/* ".view().tile::<..>(i)" for the loops that this tensor takes part in; "" for none. */
static const char *tiles(const writer *w, bool batch, bool row, bool column, bool sum, const char *view)
{
    static const char *const index[] = {"g", "i", "j"};
    const bool part[] = {batch, row, column};
    const char *text = "";
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        const tune_split *s = &w->p->split[role];
        if (part[role] && s->loop > 1)
            text = arena_printf(w->a, "%s%s.tile::<m![%s], 1, _>(%s)", text, *text ? "" : view,
                                kept(w, (tune_role)role, tune_loop_stride(w->p, (tune_role)role), s->loop), index[role]);
    }
    if (sum && w->p->sum_loop > 1)
        text = arena_printf(w->a, "%s%s.tile::<m![%s], 1, _>(%s)", text, *text ? "" : view, summed(w, tune_sum_part(w->p), w->p->sum_loop),
                            w->part);
    return text;
}

/* Weights that neighbours bring a part of each: the digits of those parts, and what a slice has. */
typedef struct spread_text {
    const char *parts, *lanes, *groups; /* digits; of lanes and their groups what is left for a slice, */
    const char *tile;                   /* both, so that columns are side by side; NULL: it has one */
    int64_t sums, steps;                /* elements of the sum in a slice; steps of time inside those digits */
} spread_text;

static spread_text spread_of(const writer *w)
{
    const tune_plan *p = w->p;
    tune_spread x;
    tune_spread_of(w->t, w->q, p, &x);
    int64_t lanes = p->lanes / x.lanes, groups = p->split[TUNE_COLUMN].tile / p->lanes / x.groups, part = tune_sum_part(p) / x.sums;
    return (spread_text){
        .parts = TUNE_LIST(w->a, kept(w, TUNE_COLUMN, lanes, x.lanes), kept(w, TUNE_COLUMN, p->lanes * groups, x.groups),
                           summed(w, part, x.sums)),
        .lanes = kept(w, TUNE_COLUMN, 1, lanes),
        .groups = kept(w, TUNE_COLUMN, p->lanes, groups),
        .tile = lanes * groups > 1 ? TUNE_LIST(w->a, kept(w, TUNE_COLUMN, p->lanes, groups), kept(w, TUNE_COLUMN, 1, lanes)) : NULL,
        .sums = part,
        .steps = tune_lies_turned(w->q, p, TUNE_COLUMN) ? 1 : lanes * groups,
    };
}

/* Slices of weights as they are copied: digits of the sum where slices share rows, of what neighbours bring where they share columns. */
static const char *gathered_slice(const writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *column = &p->split[TUNE_COLUMN];
    if (p->spreads)
        return arena_printf(w->a, "m![%s]", slice_list(w, spread_of(w).parts, slice_digit(w, TUNE_COLUMN), NULL));
    return p->gather == 1 ? loaded_slices(w)
                          : arena_printf(w->a, "m![%s]",
                                         slice_list(w, slice_digit(w, TUNE_ROW),
                                                    kept(w, TUNE_COLUMN, column->tile * p->gather, column->slice / p->gather),
                                                    summed(w, 1, p->gather)));
}

/* From [sums, tile] to [tile, sums]: blocks of the Transpose Engine, after slices have exchanged digits of the sum for those of the tile.
 */
static void write_turn(writer *w, tune_role role, int64_t tile, int64_t sums, int64_t gather, const char *from)
{
    int64_t rows = tune_turn_rows(w->t, w->q), columns = tune_turn_columns(w->q, tile), block = larger(rows, gather);
    int64_t padded = w->p->sum_padded;
    if (sums == padded) /* of the padding after a sum, whole blocks are left out */
        sums = padded = round_up(w->q->size[TUNE_SUM], block);
    const char *blocks = sum_digit(w, padded, block, sums / block), *groups = kept(w, role, columns, tile / columns),
               *packet = kept(w, role, 1, columns), *in_slice = gather < rows ? sum_digit(w, padded, gather, rows / gather) : NULL,
               *between = gather > rows ? sum_digit(w, padded, rows, gather / rows) : NULL, *side = sum_digit(w, padded, 1, gather);
    tune_line(&w->page, "    .begin(%s.view())", from);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, blocks, groups, in_slice, kept(w, role, tile, gather)), packet);
    if (gather > 1)
        tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::InterTranspose { slice1: %" PRId64 ", slice0: 1, time0: 1 })",
                  TUNE_LIST(w->a, blocks, groups, in_slice, side), gather);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .transpose::<m![%s], m![%s]>()", TUNE_LIST(w->a, blocks, groups, between, packet),
              padded_to(w, sum_digit(w, padded, 1, rows), rows, w->t->flit_bytes * 8 / dtype_row_of(w->q->type)->bits));
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", sum_digit(w, padded, 1, rows));
    tune_line(&w->page, "    .commit();");
}

/* An operand that lies turned, or a part of its sum, where it is turned aside. */
static void write_aside(writer *w, tune_role role, aside_part part)
{
    if (w->p->aside[role] == 0)
        return;
    aside x = tune_aside_of(w->t, w->q, w->p, role);
    w->part = part == ASIDE_NEXT ? "l + 1" : part == ASIDE_FIRST ? "0" : "l";
    aside_write(&w->page, w->t, w->q, &x, part, tiles(w, false, false, false, true, ".view()"));
    w->part = "l";
}

/* Elements of the sum in a block of HBM with so many columns. */
static int64_t free_part(const writer *w, int64_t columns)
{
    return w->t->hbm_block_bytes * 8 / dtype_row_of(w->q->type)->bits / larger(1, columns);
}

/* [tile, sums] of an operand in DM, in flits of the sum outside of the tile where it was turned aside, in blocks of HBM where runs of a
 * copy should be no longer. */
static const char *operand_element(const writer *w, tune_role role, const char *tile, int64_t sums)
{
    int64_t block = tune_dealt_block(w->t, w->q, w->p, role);
    if (block > 0)
        return TUNE_LIST(w->a, summed(w, block, sums / block), tile, summed(w, 1, block));
    int64_t together = role == TUNE_COLUMN ? tune_dealt_columns(w->t, w->q, w->p) : 0,
            of_block = role == TUNE_COLUMN ? tune_free_columns(w->t, w->q, w->p) : 0, part = free_part(w, of_block);
    if (of_block > 0)
        return TUNE_LIST(w->a, kept(w, role, of_block, w->p->split[role].tile / of_block), summed(w, part, sums / part),
                         kept(w, role, 1, of_block), summed(w, 1, part));
    if (together > 0)
        return TUNE_LIST(w->a, kept(w, role, together, 2), kept(w, role, 2 * together, w->p->split[role].tile / (2 * together)),
                         kept(w, role, 1, together), summed(w, 1, sums));
    if (tune_is_dense(w->q, w->p, role))
        return TUNE_LIST(w->a, tile, w->q->axis_text[TUNE_SUM]);
    return w->p->aside[role] == 0 ? TUNE_LIST(w->a, tile, summed(w, 1, sums))
                                  : TUNE_LIST(w->a, summed(w, w->p->flit, sums / w->p->flit), tile, summed(w, 1, w->p->flit));
}

/* The tensor in HBM that copies of an operand take, with their tiles. */
static const char *operand_source(const writer *w, tune_role role, bool of_tile)
{
    bool is_aside = w->p->aside[role] > 0, rows = role == TUNE_ROW, of_part = !is_aside && !(rows && w->p->rows_ahead);
    return arena_printf(w->a, "%s%s", is_aside ? aside_name(role) : port_name(w, rows ? w->q->stream : w->q->weights),
                        tiles(w, true, rows && of_tile, !rows && of_tile, of_part, ".view()"));
}

static void write_extra_load(writer *w, size_t i);

/* The zero point of an operand as its pass has it: a number, or an element of the VRF for all lanes. NULL: it has none. */
static const char *write_zero(writer *w, tune_role role)
{
    const tune_question *q = w->q;
    const tune_place place = role == TUNE_ROW ? q->stream : q->weights;
    if (!q->tensors[place].has_zero)
        return NULL;
    if (q->tensors[place].zero == 0)
        return arena_printf(w->a, "%.0f", q->tensors[place].zero_number);
    size_t i = 0;
    while (q->extras[i].zero_of != place)
        i++;
    const tune_extra *e = &q->extras[i];
    const bool once = tune_comes_once(w->p, e), inside = e->groups > 1 && !e->groups_first;
    const int64_t tile = w->p->split[role].tile, padded = scaled_padded_groups(e);
    const char *name = extra_name(w, i), *of_kept = e->has[role] ? kept(w, role, 1, tile) : NULL,
               *groups = e->groups == 1 ? NULL
                         : inside       ? scaled_digit(q, e, 1, padded, w->a)
                                        : q->group_axis;
    if (!once)
        write_extra_load(w, i);
    tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF: a zero point for all lanes");
    const char *all = inside ? padded_to(w, groups, padded, round_up(padded, w->t->rows))
                             : padded_to(w, of_kept, e->has[role] ? tile : 1, round_up(e->has[role] ? tile : 1, w->t->rows));
    tune_write_operand(
        &w->page, &(tune_operand_text){.name = name,
                                       .slice = "Slice",
                                       .element = TUNE_LIST(w->a, inside ? of_kept : groups, all),
                                       .from = arena_printf(w->a, "%s.view()%s", name, once ? tiles(w, false, false, true, false, "") : ""),
                                       .from_type = e->type,
                                       .type = DTYPE_I32,
                                       .time = TUNE_LIST(w->a, inside ? of_kept : groups),
                                       .packet = TUNE_LIST(w->a, inside ? groups : of_kept)});
    tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
    return arena_printf(w->a, "&%s", name);
}

/* An operand in the type that is multiplied, of the slices and elements that it has as it is stored: packets of `tile` other elements each
 * are of the sum, or, where it lies turned, of what is kept. */
typedef struct widening {
    tune_role role;
    const char *slice, *element;
    const char *tile; /* of what is kept; or, turned, of the sum */
    int64_t sums, kept;
    bool turned;
} widening;

static void write_widening(writer *w, const widening *x)
{
    const bool rows = x->role == TUNE_ROW;
    if (!tune_is_widened(w->q, x->role))
        return;
    const int64_t padded = tune_is_dense(w->q, w->p, x->role) ? w->q->size[TUNE_SUM] : w->p->sum_padded,
                  all = x->turned ? x->kept : smaller(x->sums, padded), packet = widened_packet(w->q, x->role, all),
                  flit = dtype_row_of(tune_stored_of(w->q, x->role))->bits == 32 ? packet : 8;
    const char *lying = rows ? "lying_rows" : "lying";
#define DIGIT(stride, count) (x->turned ? kept(w, x->role, (stride), (count)) : sum_digit(w, padded, (stride), (count)))
    const char *zero = write_zero(w, x->role), *packets = DIGIT(packet, all / packet), *of_packet = DIGIT(1, packet),
               *of_flit = DIGIT(1, flit);
#undef DIGIT
    const tune_step step = x->turned ? (rows ? TUNE_STORE_TURNED_ROWS : TUNE_STORE_TURNED) : rows ? TUNE_TURN_ROWS : TUNE_TURN_WEIGHTS;
    tune_begin_step(&w->page, step, arena_printf(w->a, "%s is multiplied: each slice makes it of what it has", type_name(w->q->type)));
    widened_write(&w->page, w->t, w->q, x->role,
                  &(widened_text){.from = lying,
                                  .into = x->turned ? lying
                                          : rows    ? "rows"
                                                    : "columns",
                                  .slice = x->slice,
                                  .element = x->element,
                                  .time = TUNE_LIST(w->a, x->tile, packets),
                                  .packet = of_packet,
                                  .flit = of_flit,
                                  .zero = zero});
    tune_end_step(&w->page, step);
}

static const char *weights_why(const writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    if (p->column_sharers > 1)
        return arena_printf(w->a, "%" PRId64 " columns for one of each %" PRId64 " slices that share them", column->tile,
                            p->column_sharers);
    if (!p->spreads)
        return arena_printf(w->a, "%" PRId64 " columns for each slice, %s", column->tile,
                            row->slice > 1 || row->cluster > 1 ? "a copy for every group of rows" : "each column once");
    return arena_printf(w->a, "%" PRId64 " columns for each %" PRId64 " slices, each column once: the Switch Engine takes them around",
                        column->tile, row->slice);
}

/* Slices of what one of those that share weights has, "1 # 4", or all have then, "4". */
static const char *slices_that_share(const writer *w, bool all)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW];
    int64_t count = p->column_sharers;
    return arena_printf(w->a, "m![%s]",
                        TUNE_LIST(w->a, digit_or_copies(w, TUNE_ROW, tune_slice_stride(p, TUNE_ROW) * count, row->slice / count),
                                  arena_printf(w->a, all ? "%" PRId64 : "1 # %" PRId64, count), idle(w, idle_between(w)),
                                  slice_digit(w, TUNE_COLUMN), idle(w, p->idle_inside)));
}

/* To the slices that share them, in DM: what is in the TRF gets no other name. Padding that the others send stands between. */
static void write_shared_weights(writer *w)
{
    const tune_plan *p = w->p;
    int64_t sums = tune_is_dense(w->q, p, TUNE_COLUMN) ? w->q->size[TUNE_SUM] : p->sum_padded;
    const char *type = type_name(w->q->type), *tile = kept(w, TUNE_COLUMN, 1, p->split[TUNE_COLUMN].tile),
               *packet = sum_digit(w, sums, 1, smaller(sums, p->flit)),
               *flits = sums > p->flit ? sum_digit(w, sums, p->flit, sums / p->flit) : NULL, *slice = slices_that_share(w, true);
    const char *time = TUNE_LIST(w->a, tile, flits), *padding = idle(w, p->column_sharers),
               *element = TUNE_LIST(w->a, tile, flits, padding, packet);
    tune_begin_step(&w->page, TUNE_TURN_WEIGHTS, arena_printf(w->a, "And on to the others of each %" PRId64, p->column_sharers));
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", type, slice, element);
    tune_line(&w->page, "    .begin(columns.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time, packet);
    tune_line(&w->page, "    .switch::<%s, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })", slice,
              TUNE_LIST(w->a, time, padding), p->column_sharers, tune_hand_inside(w->t, p));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet);
    tune_line(&w->page, "    .commit();");
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { columns.reshape() };", type, element);
    tune_end_step(&w->page, TUNE_TURN_WEIGHTS);
}

/* Slices of what some of those that share rows bring, "1 # 4, K / 480", or all have then, "32". */
static const char *slices_with_rows(const writer *w, bool all)
{
    const tune_plan *p = w->p;
    const tune_split *column = &p->split[TUNE_COLUMN];
    const char *ring = all ? arena_printf(w->a, "%" PRId64, p->row_sharers)
                           : TUNE_LIST(w->a, idle(w, p->row_sharers / p->row_parts), summed(w, p->sum_padded / p->row_parts, p->row_parts));
    const char *groups =
        digit_or_copies(w, TUNE_COLUMN, tune_slice_stride(p, TUNE_COLUMN) * p->row_sharers, column->slice / p->row_sharers);
    return arena_printf(w->a, "m![%s]", slice_list(w, slice_digit(w, TUNE_ROW), TUNE_LIST(w->a, groups, ring), idle(w, p->idle_inside)));
}

/* Rows that come once, and around to all that share them. Padding that slices send which bring nothing stands between. */
static void write_shared_rows(writer *w)
{
    const tune_plan *p = w->p;
    int64_t part = p->sum_padded / p->row_parts;
    const char *type = type_name(w->q->type), *tile = kept(w, TUNE_ROW, 1, p->split[TUNE_ROW].tile), *packet = summed(w, 1, p->flit),
               *flits = summed(w, p->flit, part / p->flit), *time = TUNE_LIST(w->a, tile, flits), *slice = slices_with_rows(w, true),
               *around = TUNE_LIST(w->a, tile, flits, idle(w, p->row_sharers / p->row_parts), summed(w, part, p->row_parts)),
               *element = TUNE_LIST(w->a, around, packet), *loaded = TUNE_LIST(w->a, tile, summed(w, 1, part));
    tune_begin_step(&w->page, TUNE_LOAD_ROWS,
                    arena_printf(w->a, "%" PRId64 " rows for each %" PRId64 " slices, of which %" PRId64 " bring %s",
                                 p->split[TUNE_ROW].tile, p->row_sharers, p->row_parts,
                                 p->row_parts > 1 ? "a part of the sum each" : "them"));
    begin_load(w, 1U << TUNE_BATCH | 1U << TUNE_ROW);
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, %s, %s, m![%s]> = %s.to_dm(&mut device.tdma);", type, loaded_clusters(w),
              slices_with_rows(w, false), loaded, operand_source(w, TUNE_ROW, true));
    if (end_load(w))
        write_names(w, "rows", type, slices_with_rows(w, false), loaded);
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
    tune_begin_step(&w->page, TUNE_TURN_ROWS, "And around to all of these by the Switch Engine, once");
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.%s", type, slice, element,
              p->rows_by_sub ? "sub" : "main");
    tune_line(&w->page, "    .begin(rows.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time, packet);
    tune_line(&w->page, "    .switch::<%s, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })", slice, around,
              p->row_sharers, p->idle_inside);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet);
    tune_line(&w->page, "    .commit();");
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { rows.reshape() };", type, element);
    tune_end_step(&w->page, TUNE_TURN_ROWS);
}

/* Of weights as they are loaded. */
static const char *weights_slice(const writer *w)
{
    return w->p->column_sharers > 1 ? slices_that_share(w, false) : gathered_slice(w);
}

/* Columns of the Rows, in their order, of those that a slice has by twos. */
static const char *dealt_lanes(const writer *w, int64_t together)
{
    return TUNE_LIST(w->a, kept(w, TUNE_COLUMN, 2 * together, w->p->lanes / (2 * together)), kept(w, TUNE_COLUMN, together, 2),
                     kept(w, TUNE_COLUMN, 1, together));
}

static void write_weights(writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *column = &p->split[TUNE_COLUMN];
    int64_t dealt = tune_dealt_columns(w->t, w->q, p), of_block = tune_free_columns(w->t, w->q, p),
            block = of_block > 0 ? free_part(w, of_block) : tune_dealt_block(w->t, w->q, p, TUNE_COLUMN);
    spread_text spread = spread_of(w);
    const bool widens = tune_is_widened(w->q, TUNE_COLUMN);
    const char *type = type_name(w->q->type), *stored = type_name(tune_stored_of(w->q, TUNE_COLUMN)),
               *sums = summed(w, 1, tune_sum_part(p)), *lanes = kept(w, TUNE_COLUMN, 1, p->lanes),
               *groups = kept(w, TUNE_COLUMN, p->lanes, column->tile / p->lanes), *own_sums = summed(w, 1, spread.sums);
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS, weights_why(w));
    bool turned = tune_lies_turned(w->q, p, TUNE_COLUMN);
    int64_t columns = turned ? tune_turned_tile(w->q, column->tile) : column->tile;
    const char *tile = kept(w, TUNE_COLUMN, 1, columns),
               *element = turned
                              ? TUNE_LIST(w->a, summed(w, p->gather, spread.sums / p->gather), kept(w, TUNE_COLUMN, 1, columns * p->gather))
                              : operand_element(w, TUNE_COLUMN, p->spreads ? spread.tile : tile, spread.sums),
               *name = turned || widens ? "lying" : "columns";
    begin_load(w, 1U << TUNE_BATCH | 1U << TUNE_COLUMN);
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, %s, %s, m![%s]> = %s.to_dm(&mut device.tdma);", name, stored, loaded_clusters(w),
              weights_slice(w), element, operand_source(w, TUNE_COLUMN, true));
    bool names = end_load(w);
    const char *gathered = weights_slice(w);
    if (names)
        write_names(w, name, stored, gathered, element);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    write_widening(w, &(widening){.role = TUNE_COLUMN,
                                  .slice = p->spreads || turned ? gathered : "Slice",
                                  .element = element,
                                  .tile = turned       ? summed(w, p->gather, spread.sums / p->gather)
                                          : p->spreads ? spread.tile
                                                       : tile,
                                  .sums = spread.sums,
                                  .kept = columns * p->gather,
                                  .turned = turned});
    if (p->column_sharers > 1)
        write_shared_weights(w);
    if (turned) {
        tune_begin_step(&w->page, TUNE_TURN_WEIGHTS,
                        p->gather > 1
                            ? arena_printf(w->a,
                                           "Packets are of the sum: %" PRId64 " slices, whose copies had long runs, exchange its parts "
                                           "for columns, and blocks are turned",
                                           p->gather)
                            : "Packets are of the sum: blocks of columns are turned");
        tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", type, p->spreads ? gathered : "Slice",
                  TUNE_LIST(w->a, tile, own_sums));
        write_turn(w, TUNE_COLUMN, columns, spread.sums, p->gather, "lying");
        tune_end_step(&w->page, TUNE_TURN_WEIGHTS);
    }
    tune_begin_step(
        &w->page, TUNE_STORE_WEIGHTS,
        arena_printf(w->a, "%s%s",
                     p->main_weights ? "Into the TRF by the main context, 32 bytes a cycle: the sub context's 8 would be waited for"
                                     : "Into the TRF by the sub context, while others work",
                     p->spreads ? arena_printf(w->a, "; all get what each of %" PRId64 " slices has", p->split[TUNE_ROW].slice) : ""));
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.%s", type, TUNE_LIST(w->a, lanes),
              TUNE_LIST(w->a, groups, sums), p->main_weights ? "main" : "sub");
    tune_line(&w->page, "    .begin(columns.view())");
    if (p->spreads) {
        tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, spread.lanes, spread.groups), TUNE_LIST(w->a, own_sums));
        tune_line(&w->page,
                  "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
                  turned ? TUNE_LIST(w->a, spread.lanes, spread.groups, spread.parts)
                         : TUNE_LIST(w->a, spread.parts, spread.lanes, spread.groups),
                  p->split[TUNE_ROW].slice, spread.steps);
    } else if (p->column_sharers > 1 && w->q->size[TUNE_SUM] > p->flit)
        tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes, groups, summed(w, p->flit, p->sum_padded / p->flit)),
                  summed(w, 1, p->flit));
    else if (block > 0)
        tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, lanes, groups, summed(w, block, tune_sum_part(p) / block)),
                  summed(w, 1, block));
    else
        tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, dealt > 0 ? dealt_lanes(w, dealt) : lanes, groups),
                  TUNE_LIST(w->a, sums));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
}

/* Of rows as they are loaded: for each slice, or around rings. */
static const char *slices_of_rows(const writer *w)
{
    const tune_plan *p = w->p;
    int64_t rest = p->split[TUNE_ROW].tile / p->ring_rows, part = tune_sum_part(p) / p->ring_sums;
    if (!p->rings)
        return loaded_slices(w);
    return arena_printf(w->a, "m![%s]",
                        slice_list(w, slice_digit(w, TUNE_ROW),
                                   TUNE_LIST(w->a, kept(w, TUNE_ROW, rest, p->ring_rows), summed(w, part, p->ring_sums)),
                                   idle(w, p->idle_inside)));
}

/* Rows of all iterations, in front of their loop. */
static void write_all_rows(writer *w)
{
    const tune_plan *p = w->p;
    int64_t stride = tune_loop_stride(p, TUNE_ROW);
    const char *all = kept(w, TUNE_ROW, stride, p->split[TUNE_ROW].loop), *from = operand_source(w, TUNE_ROW, false),
               *at = arena_printf(w->a, ".tile::<m![%s], 1, _>(h)", kept(w, TUNE_ROW, stride * tune_rows_at_once(p), p->row_copies));
    const char *element = TUNE_LIST(
        w->a, all,
        operand_element(w, TUNE_ROW, kept(w, TUNE_ROW, 1, p->split[TUNE_ROW].tile / p->ring_rows), tune_sum_part(p) / p->ring_sums));
    begin_load(w, 1U << TUNE_BATCH | 1U << TUNE_ROW);
    const char *type =
        arena_printf(w->a, "DmTensor<%s, Chip, %s, %s, m![%s]>", type_name(w->q->type), loaded_clusters(w), slices_of_rows(w), element);
    if (p->row_copies == 1)
        tune_line(&w->page, "let rows: %s = %s.to_dm(&mut device.tdma);", type, from);
    else {
        tune_line(&w->page, "let mut rows: %s = DmTensor::new();", type);
        tune_line(&w->page, "for h in 0..%" PRId64 " {", p->row_copies);
        w->page.depth++;
        tune_line(&w->page, "%s%s%s.to_dm_view(&mut device.tdma, rows.view_mut()%s);", from, strstr(from, ".view()") ? "" : ".view()", at,
                  at);
        w->page.depth--;
        tune_line(&w->page, "}");
    }
    if (end_load(w))
        write_names(w, "rows", type_name(w->q->type), w->rows_slice, element);
}

static const char *rows_why(const writer *w)
{
    const tune_plan *p = w->p;
    const char *ahead = p->rows_ahead        ? ", of all parts of the sum"
                        : p->row_copies == 0 ? ""
                        : p->row_copies == 1
                            ? arena_printf(w->a, ", of all %" PRId64 " iterations", p->split[TUNE_ROW].loop)
                            : arena_printf(w->a, ", of %" PRId64 " iterations at a time, ahead of them", tune_rows_at_once(p));
    return !p->rings
               ? arena_printf(w->a, "%" PRId64 " rows for each slice, a copy for every group of columns%s", p->split[TUNE_ROW].tile, ahead)
               : arena_printf(w->a, "%" PRId64 " rows for each %" PRId64 " slices, each row once: the Switch Engine takes them around%s",
                              p->split[TUNE_ROW].tile, p->split[TUNE_COLUMN].slice, ahead);
}

static void write_rows(writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW];
    int64_t rest = row->tile / p->ring_rows, part = tune_sum_of_rows(p) / p->ring_sums;
    if (p->row_sharers > 1) {
        write_shared_rows(w);
        return;
    }
    tune_begin_step(&w->page, TUNE_LOAD_ROWS, rows_why(w));
    w->rows_slice = slices_of_rows(w);
    if (p->row_copies > 0) {
        write_all_rows(w);
        tune_end_step(&w->page, TUNE_LOAD_ROWS);
        return;
    }
    bool turned = tune_lies_turned(w->q, p, TUNE_ROW);
    const char *tile = kept(w, TUNE_ROW, 1, rest), *sums = summed(w, 1, part), *type = type_name(w->q->type),
               *stored = type_name(tune_stored_of(w->q, TUNE_ROW));
    const char *element = turned ? TUNE_LIST(w->a, sums, tile) : operand_element(w, TUNE_ROW, tile, part),
               *name = turned || tune_is_widened(w->q, TUNE_ROW) ? "lying_rows" : "rows";
    begin_load(w, 1U << TUNE_BATCH | 1U << TUNE_ROW);
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, %s, %s, m![%s]> = %s.to_dm(&mut device.tdma);", name, stored, loaded_clusters(w),
              slices_of_rows(w), element, operand_source(w, TUNE_ROW, true));
    if (end_load(w))
        write_names(w, name, stored, w->rows_slice, element);
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
    write_widening(w, &(widening){.role = TUNE_ROW,
                                  .slice = w->rows_slice,
                                  .element = element,
                                  .tile = turned ? sums : tile,
                                  .sums = part,
                                  .kept = rest,
                                  .turned = turned});
    if (turned) {
        tune_begin_step(&w->page, TUNE_TURN_ROWS, "Packets are of the sum: blocks of rows are turned");
        tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", type, w->rows_slice,
                  TUNE_LIST(w->a, tile, sums));
        write_turn(w, TUNE_ROW, rest, part, 1, "lying_rows");
        tune_end_step(&w->page, TUNE_TURN_ROWS);
    }
}

/* The chain up to the sums, in their type. */
static void write_chain(writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t rest = row->tile / p->ring_rows, part = tune_sum_part(p) / p->ring_sums,
            fetched = p->row_sharers > 1 ? p->flit : smaller(part, p->packet);
    const char *rest_of_rows = kept(w, TUNE_ROW, 1, rest), *around_rows = kept(w, TUNE_ROW, rest, p->ring_rows),
               *around_sums = summed(w, part, p->ring_sums), *steps = summed(w, fetched, part / fetched), *packet = summed(w, 1, p->packet),
               *packets = summed(w, p->packet, tune_sum_part(p) / p->packet),
               *groups = kept(w, TUNE_COLUMN, p->lanes, column->tile / p->lanes), *lanes = kept(w, TUNE_COLUMN, 1, p->lanes);
    const int64_t group = w->q->folds_groups ? w->q->group : 0,
                  of_packet = group > 0 && group < p->packet ? p->packet / group : 1; /* groups of a packet */
    const char *scaled = group == 0 ? NULL : summed(w, larger(group, p->packet), p->sum_padded / larger(group, p->packet)),
               *in_packet = summed(w, group, of_packet), *all_rows = TUNE_LIST(w->a, rest_of_rows, around_rows, scaled, groups);
    tune_line(&w->page, "    .begin(rows.view()%s)", tiles(w, false, p->row_copies > 0, false, p->rows_ahead, ""));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rest_of_rows, steps), TUNE_LIST(w->a, summed(w, 1, fetched)));
    if (p->rings && p->idle_inside > 1)
        tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
                  TUNE_LIST(w->a, rest_of_rows, around_rows, around_sums), p->ring_rows * p->ring_sums, p->idle_inside);
    else if (p->rings)
        tune_line(&w->page,
                  "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
                  TUNE_LIST(w->a, rest_of_rows, around_rows, around_sums, steps), p->ring_rows * p->ring_sums, part / fetched);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&weights)",
              TUNE_LIST(w->a, rest_of_rows, around_rows, packets, groups), padded_to(w, packet, p->packet, 2 * p->flit));
    tune_line(&w->page, "    .contract_packet::<m![%s]>()", TUNE_LIST(w->a, in_packet));
    tune_line(&w->page, "    .contract_time::<m![%s]>()", all_rows);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", TUNE_LIST(w->a, all_rows, in_packet),
              padded_to(w, lanes, p->lanes, w->t->rows));
}

/* What is kept of the results of a chain; in the type of the result where that is another one. */
static void write_trim(writer *w, bool casts)
{
    const tune_plan *p = w->p;
    const char *lanes = kept(w, TUNE_COLUMN, 1, p->lanes);
    if (casts && w->q->out_type != w->q->whole.type)
        tune_line(
            &w->page, "    .cast::<%s, m![%s]>()", type_name(w->q->out_type),
            padded_to(w, padded_to(w, lanes, p->lanes, w->t->rows), w->t->rows, w->t->flit_bytes * 8 / dtype_row_of(w->q->out_type)->bits));
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", padded_to(w, lanes, p->lanes, p->lanes_kept));
}

static const char *result_type(const writer *w, bool casts)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    const char *rows = kept(w, TUNE_ROW, 1, row->tile), *element;
    if (!casts) /* for all rows */
        element = TUNE_LIST(w->a, kept(w, TUNE_ROW, row->padded / row->loop, row->loop), rows, kept(w, TUNE_COLUMN, 1, column->tile));
    else if (p->results_stay && p->joined == 1)
        element = TUNE_LIST(w->a, rows, kept(w, TUNE_COLUMN, 1, tune_slice_stride(p, TUNE_COLUMN)));
    else
        element = p->lanes == p->lanes_kept ? TUNE_LIST(w->a, rows, kept(w, TUNE_COLUMN, 1, column->tile))
                                            : TUNE_LIST(w->a, rows, kept(w, TUNE_COLUMN, p->lanes, column->tile / p->lanes),
                                                        padded_to(w, kept(w, TUNE_COLUMN, 1, p->lanes), p->lanes, p->lanes_kept));
    return arena_printf(w->a, "DmTensor<%s, Chip, Cluster, Slice, m![%s]>",
                        type_name(casts ? w->q->out_type : dtype_row_of(w->q->type)->accumulates_in), element);
}

static const char *multiplied_why(const writer *w)
{
    const tune_split *row = &w->p->split[TUNE_ROW], *column = &w->p->split[TUNE_COLUMN];
    return arena_printf(
        w->a, "%" PRId64 " rows by %" PRId64 " columns in each slice; a packet of rows meets %" PRId64 " packets of weights%s", row->tile,
        column->tile, column->tile / w->p->lanes, w->p->sums_wait ? ", while operands of what is done to the sums arrive" : "");
}

/* Adds what came before, where there is something. */
static void write_add(writer *w)
{
    bool is_float = dtype_row_of(dtype_row_of(w->q->type)->accumulates_in)->kind == DTYPE_KIND_FLOAT;
    tune_line(&w->page, "    .vector_init()");
    tune_line(&w->page, "    .vector_intra_slice_tag(TagMode::Zero)");
    tune_line(&w->page, "    .vector_clip(%s, &before)", is_float ? "ClipBinaryOpF32::Add" : "ClipBinaryOpI32::AddFxp");
    tune_line(&w->page, "    .vector_final()");
}

/* Of what the first pass leaves for a second one. */
static dtype waiting_type(const writer *w, const tune_epilogue *e)
{
    if (w->p->sums_wait)
        return dtype_row_of(w->q->type)->accumulates_in;
    return e->count > 0 ? tune_type_of_values(w->q) : DTYPE_F32;
}

/* A pass of what is done to the sums. */
static void write_pass(writer *w, const tune_pass *pass)
{
    bool halves = w->p->lanes > w->t->rows / 2;
    const char *lanes = kept(w, TUNE_COLUMN, 1, w->p->lanes);
    tune_line(&w->page, "    .vector_init()");
    tune_write_pass(&w->page, pass, halves ? NULL : padded_to(w, lanes, w->p->lanes, w->t->rows / 2));
    tune_line(&w->page, "    .vector_final()");
}

/* Packets of columns that slices bring which hand them on: those of each, and of which slice. NULL: one. */
typedef struct hand_text {
    const char *left, *parts;
    int64_t columns; /* of a slice */
} hand_text;

static hand_text handed_of(const writer *w)
{
    const tune_plan *p = w->p;
    int64_t groups = p->split[TUNE_COLUMN].tile / p->lanes, parts = larger(1, p->hand_parts), left = groups / parts;
    return (hand_text){kept(w, TUNE_COLUMN, p->lanes, left), kept(w, TUNE_COLUMN, p->lanes * left, parts), p->lanes * left};
}

/* Slices of what one of those that share it has, "1 # 16", or a part for each of some, "1 # 2, N / 8", or all have, "16". */
static const char *slices_of_copies(const writer *w, bool all)
{
    const tune_split *s = w->p->split, *row = &s[TUNE_ROW];
    if (w->p->hand_parts > 0) {
        bool has_batches = w->p->handed > row->slice, inside = tune_inner_role(w->p) == TUNE_ROW;
        const char *copies = all ? arena_printf(w->a, "%" PRId64, w->p->handed)
                                 : TUNE_LIST(w->a, idle(w, tune_hand_padding(w->p)), handed_of(w).parts),
                   *others = has_batches ? NULL
                                         : digit_or_copies(w, TUNE_ROW, tune_slice_stride(w->p, TUNE_ROW) * w->p->handed,
                                                           row->slice / w->p->handed);
        const char *rows = TUNE_LIST(w->a, others, copies), *columns = slice_digit(w, TUNE_COLUMN);
        return arena_printf(w->a, "m![%s]",
                            TUNE_LIST(w->a, has_batches ? NULL : slice_digit(w, TUNE_BATCH), inside ? columns : rows,
                                      idle(w, idle_between(w)), inside ? rows : columns, idle(w, w->p->idle_inside)));
    }
    const char *copies = all ? "%" PRId64 : "1 # %" PRId64;
    int64_t rows_alike = smaller(w->p->handed, row->slice), batches_alike = w->p->handed / rows_alike;
    const char *batches = batches_alike > 1 ? arena_printf(w->a, copies, batches_alike) : slice_digit(w, TUNE_BATCH),
               *rows =
                   row->slice == 1
                       ? NULL
                       : TUNE_LIST(w->a,
                                   digit_or_copies(w, TUNE_ROW, tune_slice_stride(w->p, TUNE_ROW) * rows_alike, row->slice / rows_alike),
                                   rows_alike > 1 ? arena_printf(w->a, copies, rows_alike) : NULL),
               *columns = slice_digit(w, TUNE_COLUMN), *between = idle(w, idle_between(w));
    bool rows_inside = tune_inner_role(w->p) == TUNE_ROW;
    return arena_printf(
        w->a, "m![%s]",
        TUNE_LIST(w->a, batches, rows_inside ? columns : rows, between, rows_inside ? rows : columns, idle(w, w->p->idle_inside)));
}

/* An operand of what is done to the sums, of the tile at hand or of the columns of all iterations. */
static void write_extra_load(writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    bool of_row = e->has[TUNE_ROW], of_column = e->has[TUNE_COLUMN], once = tune_comes_once(p, e);
    const char *rows = of_row ? (one_element(w, e) ? one_element(w, e) : kept(w, TUNE_ROW, 1, row->tile)) : NULL,
               *columns = of_column ? kept(w, TUNE_COLUMN, 1, column->tile) : NULL,
               *all = once ? kept(w, TUNE_COLUMN, tune_loop_stride(p, TUNE_COLUMN), column->loop) : NULL, *name = extra_name(w, i);
    tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i),
                    once ? arena_printf(w->a, "An operand of what is done to the sums, for all %" PRId64 " iterations", column->loop)
                         : "An operand of what is done to the sums");
    bool is_handed = tune_is_handed_on(p, e);
    const char *groups = e->groups == 1 || e->groups_first ? NULL : scaled_digit(w->q, e, 1, scaled_padded_groups(e), w->a),
               *outside = e->groups_first ? w->q->group_axis : NULL,
               *element = TUNE_LIST(w->a, all, outside, rows, is_handed ? kept(w, TUNE_COLUMN, 1, handed_of(w).columns) : columns, groups);
    begin_load(w, tune_roles_of_extra(e));
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, %s, %s, m![%s]> = %s%s.to_dm(&mut device.tdma);", name, type_name(e->type),
              loaded_clusters(w), is_handed ? slices_of_copies(w, false) : loaded_slices(w), element, name,
              tiles(w, e->has[TUNE_BATCH], of_row, of_column && !once, false, ".view()"));
    if (end_load(w))
        write_names(w, name, type_name(e->type), is_handed ? slices_of_copies(w, false) : "Slice", element);
    tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
}

/* NULL for one position. */
static const char *unless_one(const char *mapping)
{
    return mapping && strcmp(mapping, "1") != 0 ? mapping : NULL;
}

/* Scales of groups: as the sums of groups leave the Reducer, or an element for all lanes of a packet. */
static void write_scales(writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const tune_plan *p = w->p;
    const int64_t tile = p->split[TUNE_COLUMN].tile, padded = scaled_padded_groups(e);
    const bool of_row = e->has[TUNE_ROW], of_column = e->has[TUNE_COLUMN], once = tune_comes_once(p, e);
    const char *rows = of_row ? kept(w, TUNE_ROW, 1, p->split[TUNE_ROW].tile) : NULL, *lanes = kept(w, TUNE_COLUMN, 1, p->lanes),
               *tiles_of = kept(w, TUNE_COLUMN, p->lanes, tile / p->lanes), *name = extra_name(w, i),
               *groups = e->groups_first ? w->q->group_axis : scaled_digit(w->q, e, 1, padded, w->a),
               *from = arena_printf(w->a, "%s.view()%s", name, once ? tiles(w, false, false, true, false, "") : "");
    if (!once)
        write_extra_load(w, i);
    if (scaled_is_turned(e)) {
        tune_begin_step(&w->page, (tune_step)(TUNE_TURN_EXTRA + i), "Columns side by side, as they leave the Reducer");
        scaled_write_turn(&w->page, w->t, w->q, e,
                          &(scaled_turn){.name = name,
                                         .from = from,
                                         .outside = unless_one(TUNE_LIST(w->a, rows, tiles_of)),
                                         .words = kept(w, TUNE_COLUMN, SCALED_LANES, p->lanes / SCALED_LANES),
                                         .word = kept(w, TUNE_COLUMN, 1, SCALED_LANES),
                                         .lanes = lanes});
        from = arena_printf(w->a, "%s.view()", name);
        tune_end_step(&w->page, (tune_step)(TUNE_TURN_EXTRA + i));
    }
    tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF: each sum of a group meets the scale of its group");
    const char *time, *packet, *all;
    if (of_column) {
        time = e->groups_first ? TUNE_LIST(w->a, groups, rows, tiles_of) : TUNE_LIST(w->a, rows, tiles_of, groups);
        packet = TUNE_LIST(w->a, lanes);
        all = padded_to(w, lanes, p->lanes, w->t->rows);
    } else if (e->groups_first && of_row) {
        time = groups;
        packet = rows;
        all = padded_to(w, rows, p->split[TUNE_ROW].tile, round_up(p->split[TUNE_ROW].tile, w->t->rows));
    } else {
        time = TUNE_LIST(w->a, rows);
        packet = groups;
        all = padded_to(w, groups, padded, round_up(padded, w->t->rows));
    }
    tune_write_operand(&w->page, &(tune_operand_text){.name = name,
                                                      .slice = "Slice",
                                                      .element = TUNE_LIST(w->a, strcmp(time, "1") == 0 ? NULL : time, all),
                                                      .from = from,
                                                      .from_type = scaled_is_turned(e) ? w->q->meets : e->type,
                                                      .type = w->q->meets,
                                                      .time = time,
                                                      .packet = packet});
    tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
}

static void write_extra(writer *w, size_t i)
{
    if (w->q->extras[i].groups > 1) {
        write_scales(w, i);
        return;
    }
    const tune_extra *e = &w->q->extras[i];
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    bool of_row = e->has[TUNE_ROW], of_column = e->has[TUNE_COLUMN], once = tune_comes_once(p, e);
    dtype meets = w->q->meets;
    const char *one = one_element(w, e),
               *rows = one      ? one
                       : of_row ? kept(w, TUNE_ROW, 1, row->tile)
                                : NULL,
               *columns = of_column ? kept(w, TUNE_COLUMN, 1, column->tile) : NULL,
               *groups = of_column ? kept(w, TUNE_COLUMN, p->lanes, column->tile / p->lanes) : NULL, *name = extra_name(w, i);
    const char *lanes = of_column ? kept(w, TUNE_COLUMN, 1, p->lanes) : NULL;
    if (!once)
        write_extra_load(w, i);
    bool is_handed = tune_is_handed_on(p, e);
    tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i),
                    !is_handed           ? "Into the VRF"
                    : p->hand_parts == 0 ? "Into the VRF of all slices with these columns, from one of them"
                                         : arena_printf(w->a,
                                                        "Into the VRF of each %" PRId64 " slices with these columns, from %" PRId64
                                                        " of them: a named topology, which has no bitmaps to load",
                                                        p->handed, p->hand_parts));
    const char *kept_rows = of_column || !rows ? rows : padded_to(w, rows, row->tile, round_up(row->tile, w->t->rows));
    const char *slice = is_handed ? slices_of_copies(w, true) : "Slice", *time = of_column ? TUNE_LIST(w->a, rows, groups) : "1",
               *element = TUNE_LIST(w->a, kept_rows,
                                    groups && p->lanes == w->t->rows ? columns
                                    : of_column                      ? padded_to(w, columns, p->lanes, w->t->rows)
                                                                     : NULL);
    if (is_handed && p->hand_parts > 0) { /* what padding sends stands in the VRF, between */
        hand_text handed = handed_of(w);
        time = TUNE_LIST(w->a, handed.left, idle(w, tune_hand_padding(p)), handed.parts);
        element = TUNE_LIST(w->a, handed.left, idle(w, tune_hand_padding(p)), handed.parts, padded_to(w, lanes, p->lanes, w->t->rows));
    }
    const char *hands =
        !is_handed ? NULL
        : p->hand_parts > 0
            ? arena_printf(w->a, "switch::<%s, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })", slice, time,
                           p->handed, tune_hand_inside(w->t, p))
            : arena_printf(w->a, "switch::<%s, m![%s]>(SwitchConfig::CustomBroadcast { ring_size: %" PRId64 " })", slice, time,
                           tune_handing_ring(w->t, p));
    tune_write_operand(
        &w->page, &(tune_operand_text){.name = name,
                                       .slice = slice,
                                       .element = element,
                                       .from = arena_printf(w->a, "%s.view()%s", name, once ? tiles(w, false, false, true, false, "") : ""),
                                       .from_type = e->type,
                                       .type = meets,
                                       .time = is_handed ? TUNE_LIST(w->a, handed_of(w).left) : time,
                                       .packet = of_column ? TUNE_LIST(w->a, lanes) : TUNE_LIST(w->a, rows),
                                       .hands = hands});
    if (is_handed)
        tune_line(&w->page, "let %s: VrfTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { %s.reshape() };", name, type_name(meets),
                  element, name);
    tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
}

/* Those that the loops up to here decide: `of_row` the ones that change with rows, or the others. */
static void write_extras(writer *w, bool of_row, bool all)
{
    for (size_t i = 0; i < w->q->extra_count; i++)
        if (w->q->extras[i].zero_of == TUNE_OUT && (all || w->q->extras[i].has[TUNE_ROW] == of_row))
            write_extra(w, i);
}

/* Those that come for all iterations, in front of their loops. */
static void write_extras_once(writer *w)
{
    for (size_t i = 0; i < w->q->extra_count; i++)
        if (tune_comes_once(w->p, &w->q->extras[i]))
            write_extra_load(w, i);
}

static const char *tile_type(const writer *w, const char *kind, dtype type)
{
    const tune_plan *p = w->p;
    return arena_printf(
        w->a, "%s<%s, Chip, Cluster, Slice, m![%s]>", kind, type_name(type),
        TUNE_LIST(w->a, kept(w, TUNE_ROW, 1, p->split[TUNE_ROW].tile), kept(w, TUNE_COLUMN, 1, p->split[TUNE_COLUMN].tile)));
}

/* Values of a tile that wait in DM. */
static const char *values(const writer *w, size_t pass)
{
    return arena_printf(w->a, pass == 0 ? "values" : "values%zu", pass + 1);
}

/* The pass that makes a result writes it where those of all iterations are. */
static bool written_in_place(const writer *w)
{
    return w->p->results_stay && w->p->joined == 1;
}

static void begin_result(writer *w, bool is_last)
{
    if (!is_last)
        return;
    tune_line(&w->page, written_in_place(w) ? "device.main" : "let products: %s = device.main", result_type(w, true));
}

static void end_result(writer *w)
{
    write_trim(w, true);
    if (written_in_place(w))
        tune_line(&w->page, "    .commit_view(products.view_mut()%s);", tiles(w, false, false, true, false, ""));
    else
        tune_line(&w->page, "    .commit();");
}

/* Over values in DM: into the VRF for the next pass, into DM for the next one, or the result. */
static void write_pass_of_values(writer *w, const tune_epilogue *e, size_t i, size_t from)
{
    const tune_plan *p = w->p;
    const tune_pass *pass = &e->passes[i];
    bool is_last = i + 1 == e->count;
    const char *rows = kept(w, TUNE_ROW, 1, p->split[TUNE_ROW].tile),
               *groups = kept(w, TUNE_COLUMN, p->lanes, p->split[TUNE_COLUMN].tile / p->lanes), *lanes = kept(w, TUNE_COLUMN, 1, p->lanes);
    tune_begin_step(&w->page, (tune_step)(TUNE_PASS + i),
                    pass->is_gate            ? "What the values are multiplied with"
                    : p->sums_wait && i == 1 ? "What is done to the sums, when its operands have come"
                                             : "Another pass over the values");
    if (pass->is_gate)
        tune_line(&w->page, "let gate: %s = device.main", tile_type(w, "VrfTensor", DTYPE_F32));
    else if (!is_last)
        tune_line(&w->page, "let %s: %s = device.main", values(w, i), tile_type(w, "DmTensor", DTYPE_F32));
    begin_result(w, is_last);
    tune_line(&w->page, "    .begin(%s.view())", values(w, from));
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, groups), TUNE_LIST(w->a, lanes));
    tune_line(&w->page, "    .collect()");
    write_pass(w, pass);
    if (pass->is_gate)
        tune_line(&w->page, "    .to_vrf();");
    else if (is_last)
        end_result(w);
    else {
        tune_line(&w->page, "    .commit_trim::<m![%s]>()", TUNE_LIST(w->a, lanes));
        tune_line(&w->page, "    .commit();");
    }
    tune_end_step(&w->page, (tune_step)(TUNE_PASS + i));
}

/* The chain of the sums up to the result, or to values that wait for what is done to them next. */
static void write_result(writer *w, tune_step step, const char *why)
{
    const tune_epilogue *e = tune_epilogue_of(w->q, w->p->sum_loop, w->p->sums_wait);
    bool is_last = e->count <= 1;
    tune_begin_step(&w->page, step, why);
    if (!is_last)
        tune_line(&w->page, "let values: %s = device.main", tile_type(w, "DmTensor", waiting_type(w, e)));
    begin_result(w, is_last);
    write_chain(w);
    if (e->count > 0 && tune_pass_does_anything(&e->passes[0]))
        write_pass(w, &e->passes[0]);
    if (is_last)
        end_result(w);
    else {
        write_trim(w, false);
        tune_line(&w->page, "    .commit();");
    }
    tune_end_step(&w->page, step);
    for (size_t i = 1, from = 0; i < e->count; i++) {
        write_pass_of_values(w, e, i, from);
        from = e->passes[i].is_gate ? from : i;
    }
}

/* The sums with a part that is not the last one. */
static void write_part(writer *w, tune_step step, const char *why, bool adds)
{
    tune_begin_step(&w->page, step, why);
    tune_line(&w->page, "device.main");
    write_chain(w);
    if (adds)
        write_add(w);
    write_trim(w, false);
    tune_line(&w->page, "    .commit_view(next.view_mut()%s);", tiles(w, false, true, false, false, ""));
    tune_end_step(&w->page, step);
}

static void write_last_part(writer *w)
{
    write_result(w, TUNE_FINISH, "The last part is added on the way to the result");
}

static void write_before(writer *w)
{
    const tune_plan *p = w->p;
    const char *rows = kept(w, TUNE_ROW, 1, p->split[TUNE_ROW].tile), *lanes = kept(w, TUNE_COLUMN, 1, p->lanes),
               *groups = kept(w, TUNE_COLUMN, p->lanes, p->split[TUNE_COLUMN].tile / p->lanes);
    tune_begin_step(&w->page, TUNE_SUMS, "The sums so far, for the Vector Engine");
    dtype sums = dtype_row_of(w->q->type)->accumulates_in;
    tune_write_operand(&w->page, &(tune_operand_text){.name = "before",
                                                      .slice = "Slice",
                                                      .element = TUNE_LIST(w->a, rows, kept(w, TUNE_COLUMN, 1, p->split[TUNE_COLUMN].tile)),
                                                      .from = arena_printf(w->a, "sums.view()%s", tiles(w, false, true, false, false, "")),
                                                      .from_type = sums,
                                                      .type = sums,
                                                      .time = TUNE_LIST(w->a, rows, groups),
                                                      .packet = lanes});
    tune_end_step(&w->page, TUNE_SUMS);
}

static const char *in_sub_why(const writer *w)
{
    return w->p->by_sub ? ", while others work" : "";
}

/* Slices after they have exchanged rows for columns. */
static const char *regrouped_slice(const writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    return TUNE_LIST(w->a, slice_digit(w, TUNE_BATCH), slice_digit(w, TUNE_ROW), idle(w, idle_between(w)),
                     kept(w, TUNE_COLUMN, column->tile * p->regroup, column->slice / p->regroup),
                     kept(w, TUNE_ROW, row->tile / p->regroup, p->regroup));
}

static void write_regroup(writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t rest = row->tile / p->regroup, most = w->t->flit_bytes * 8 / dtype_row_of(w->q->out_type)->bits;
    int64_t packet = largest_divisor(column->tile, most), packets = column->tile / packet;
    const char *rows = kept(w, TUNE_ROW, 1, rest), *moved = kept(w, TUNE_ROW, rest, p->regroup), *lanes = kept(w, TUNE_COLUMN, 1, packet),
               *groups = kept(w, TUNE_COLUMN, packet, packets), *side = kept(w, TUNE_COLUMN, column->tile, p->regroup);
    const char *slice = regrouped_slice(w);
    tune_begin_step(&w->page, TUNE_REGROUP,
                    arena_printf(w->a,
                                 "%" PRId64 " slices exchange rows for columns, so that HBM is written in pieces of %" PRId64 " bytes%s",
                                 p->regroup, column->tile * p->regroup * dtype_row_of(w->q->out_type)->bits / 8, in_sub_why(w)));
    tune_line(&w->page, "let pieces: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = device.%s", type_name(w->q->out_type), slice,
              TUNE_LIST(w->a, rows, kept(w, TUNE_COLUMN, 1, column->tile * p->regroup)), p->by_sub ? "sub" : "main");
    tune_line(&w->page, "    .begin(products.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, groups, moved), TUNE_LIST(w->a, lanes));
    tune_line(&w->page, "    .switch::<m![%s], m![%s]>(SwitchConfig::InterTranspose { slice1: %" PRId64 ", slice0: 1, time0: 1 })", slice,
              TUNE_LIST(w->a, rows, groups, side), p->regroup);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", TUNE_LIST(w->a, lanes));
    tune_line(&w->page, "    .commit();");
    tune_end_step(&w->page, TUNE_REGROUP);
}

/* Of columns that neighbours have joined: one of them has all, the others are padding. */
static const char *joined_slice(const writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *column = &p->split[TUNE_COLUMN];
    return TUNE_LIST(w->a, slice_digit(w, TUNE_BATCH), slice_digit(w, TUNE_ROW), idle(w, idle_between(w)),
                     kept(w, TUNE_COLUMN, column->tile * p->joined, column->slice / p->joined), idle(w, p->joined),
                     idle(w, p->idle_inside));
}

static const char *joined_type(const writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    const char *element =
        TUNE_LIST(w->a, kept(w, TUNE_ROW, 1, row->tile), kept(w, TUNE_COLUMN, tune_loop_stride(p, TUNE_COLUMN), column->loop),
                  kept(w, TUNE_COLUMN, 1, column->tile * p->joined));
    return arena_printf(w->a, "DmTensor<%s, Chip, Cluster, m![%s], m![%s]>", type_name(w->q->out_type), joined_slice(w), element);
}

static void write_join(writer *w)
{
    const tune_plan *p = w->p;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t most = w->t->flit_bytes * 8 / dtype_row_of(w->q->out_type)->bits,
            packet = p->results_stay ? p->lanes : largest_divisor(column->tile, most);
    const char *rows = kept(w, TUNE_ROW, 1, row->tile), *lanes = kept(w, TUNE_COLUMN, 1, packet),
               *groups = kept(w, TUNE_COLUMN, packet, column->tile / packet), *side = kept(w, TUNE_COLUMN, column->tile, p->joined),
               *engine = p->by_sub ? "sub" : "main";
    tune_begin_step(&w->page, TUNE_REGROUP,
                    arena_printf(w->a, "Columns of %" PRId64 " slices into one, so that HBM is written in pieces of %" PRId64 " bytes%s",
                                 p->joined, column->tile * p->joined * dtype_row_of(w->q->out_type)->bits / 8, in_sub_why(w)));
    if (p->results_stay)
        tune_line(&w->page, "device.%s", engine);
    else
        tune_line(&w->page, "let results: %s = device.%s", joined_type(w), engine);
    tune_line(&w->page, "    .begin(products.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, groups), TUNE_LIST(w->a, lanes));
    tune_line(&w->page, "    .switch::<m![%s], m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
              joined_slice(w), TUNE_LIST(w->a, rows, groups, side), p->joined, p->idle_inside);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", TUNE_LIST(w->a, lanes));
    if (p->results_stay)
        tune_line(&w->page, "    .commit_view(results.view_mut()%s);", tiles(w, false, false, true, false, ""));
    else
        tune_line(&w->page, "    .commit();");
    tune_end_step(&w->page, TUNE_REGROUP);
}

/* Rows one after the other, as they lie in HBM. */
static void write_close(writer *w)
{
    const tune_plan *p = w->p;
    int64_t rest = p->split[TUNE_ROW].tile / p->regroup, columns = w->q->size[TUNE_COLUMN], packet = tune_closing_packet(w->t, w->q, p);
    if (packet == 0)
        return;
    const char *rows = kept(w, TUNE_ROW, 1, rest), *packets = tune_digit(w->q, TUNE_COLUMN, columns, packet, columns / packet, w->a),
               *lanes = tune_digit(w->q, TUNE_COLUMN, columns, 1, packet, w->a);
    tune_begin_step(
        &w->page, TUNE_CLOSE,
        arena_printf(w->a, "Rows one after the other without padding: %" PRId64 " of them are whole blocks of HBM%s", rest, in_sub_why(w)));
    tune_line(&w->page, "let closed: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.%s", type_name(w->q->out_type),
              p->regroup > 1 ? arena_printf(w->a, "m![%s]", regrouped_slice(w)) : "Slice",
              TUNE_LIST(w->a, rows, w->q->axis_text[TUNE_COLUMN]), p->by_sub ? "sub" : "main");
    tune_line(&w->page, "    .begin(%s.view())", p->regroup > 1 ? "pieces" : "products");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, rows, packets), TUNE_LIST(w->a, lanes));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", TUNE_LIST(w->a, lanes));
    tune_line(&w->page, "    .commit();");
    tune_end_step(&w->page, TUNE_CLOSE);
}

/* Whole rows, or batches, into the slices that write them. */
static void write_bring(writer *w)
{
    const tune_question *q = w->q;
    if (w->p->brought == 0)
        return;
    tune_role role = tune_brought_role(q, w->p);
    tune_split s = tune_brought_split(q, w->p);
    const char *slice = TUNE_LIST(w->a, digit_of(w, &s, role, s.tile, s.slice), idle(w, w->t->slices_per_cluster / s.slice)),
               *moved = digit_of(w, &s, role, 1, s.tile);
    const char *cluster = s.cluster > 1 ? digit_of(w, &s, role, s.tile * s.slice, s.cluster) : NULL;
    tune_write_bring(&w->page, w->t, q, s.tile, role == TUNE_ROW ? "row" : "batch", cluster, slice,
                     TUNE_LIST(w->a, moved, role == TUNE_BATCH ? q->axis_text[TUNE_ROW] : NULL, q->axis_text[TUNE_COLUMN]));
}

/* The result is a port that iterations write their parts of; else it is made by one store. */
static bool writes_parts(const writer *w)
{
    return w->loops && !w->p->results_stay;
}

static void write_store(writer *w)
{
    const char *what = w->p->brought > 0                           ? "whole"
                       : tune_closing_packet(w->t, w->q, w->p) > 0 ? "closed"
                       : w->p->regroup > 1                         ? "pieces"
                       : w->p->joined > 1                          ? "results"
                                                                   : "products",
               *out = port_name(w, TUNE_OUT);
    tune_begin_step(&w->page, TUNE_STORE, "Out");
    if (writes_parts(w))
        tune_line(&w->page, "%s.view().to_hbm_view(&mut device.tdma, %s.view_mut()%s);", what, out, tiles(w, true, true, true, false, ""));
    else
        tune_line(&w->page, "%s.to_hbm(&mut device.tdma)", what);
    tune_end_step(&w->page, TUNE_STORE);
}

static void begin_loop(writer *w, tune_role role)
{
    static const char *const index[] = {"g", "i", "j"};
    if (w->p->split[role].loop == 1)
        return;
    tune_line(&w->page, "for %s in 0..%" PRId64 " {", index[role], w->p->split[role].loop);
    w->page.depth++;
}

static void end_loop(writer *w, tune_role role)
{
    if (w->p->split[role].loop == 1)
        return;
    w->page.depth--;
    tune_line(&w->page, "}");
}

static void write_whole(writer *w)
{
    tune_role outer = w->p->columns_outside ? TUNE_COLUMN : TUNE_ROW, inner = w->p->columns_outside ? TUNE_ROW : TUNE_COLUMN;
    write_aside(w, TUNE_COLUMN, ASIDE_ONLY);
    write_aside(w, TUNE_ROW, ASIDE_ONLY);
    bool rows_stay = w->p->row_copies > 0, once = rows_stay && w->p->split[TUNE_COLUMN].loop > 1;
    write_extras_once(w);
    if (once)
        write_rows(w);
    begin_loop(w, outer);
    outer == TUNE_COLUMN ? write_weights(w) : write_rows(w);
    if (rows_stay && !once)
        write_rows(w);
    if (w->p->columns_outside && !w->p->sums_wait)
        write_extras(w, false, false);
    if (w->p->results_stay) {
        tune_line(&w->page, w->p->joined > 1 ? "// Results of all iterations, so that they are written once"
                                             : "// Results of all iterations, so that a slice writes its columns in one piece");
        tune_line(&w->page, "let mut %s: %s = DmTensor::new();", w->p->joined > 1 ? "results" : "products",
                  w->p->joined > 1 ? joined_type(w) : result_type(w, true));
    }
    begin_loop(w, inner);
    if (inner == TUNE_COLUMN)
        write_weights(w);
    else if (!rows_stay)
        write_rows(w);
    write_extras(w, true, !w->p->columns_outside || w->p->sums_wait);
    write_result(w, TUNE_MULTIPLY, multiplied_why(w));
    if (w->p->joined > 1)
        write_join(w);
    if (w->p->results_stay)
        end_loop(w, inner);
    if (w->p->regroup > 1)
        write_regroup(w);
    write_close(w);
    write_bring(w);
    write_store(w);
    if (!w->p->results_stay)
        end_loop(w, inner);
    end_loop(w, outer);
}

/* One part of the sums after the other: the first copies are short, and the weights of the next part arrive while this one is multiplied.
 */
static void write_parts(writer *w)
{
    tune_line(&w->page, "// Sums in %" PRId64 " parts, so that multiplying begins with a part of the weights", w->p->sum_loop);
    write_extras(w, false, false);
    int64_t turns_at = tune_turns_ahead(w->p);
    if (turns_at > 0) {
        write_aside(w, TUNE_COLUMN, ASIDE_FIRST);
        write_aside(w, TUNE_ROW, ASIDE_FIRST);
    }
    if (w->p->rows_ahead)
        write_rows(w);
    tune_line(&w->page, "let mut sums: %s = DmTensor::new();", result_type(w, false));
    tune_line(&w->page, "for l in 0..%" PRId64 " {", w->p->sum_loop);
    w->page.depth++;
    tune_line(&w->page, "let mut next: %s = DmTensor::new();", result_type(w, false));
    if (turns_at == 0) {
        write_aside(w, TUNE_COLUMN, ASIDE_ONLY);
        write_aside(w, TUNE_ROW, ASIDE_ONLY);
    }
    write_weights(w);
    if (w->p->row_copies > 0)
        write_rows(w);
    begin_loop(w, TUNE_ROW);
    if (turns_at > 0) {
        tune_line(&w->page, "// The next part, while this one is multiplied");
        tune_line(&w->page, "if l < %" PRId64 " && i == %" PRId64 " {", w->p->sum_loop - 1, turns_at);
        w->page.depth++;
        write_aside(w, TUNE_COLUMN, ASIDE_NEXT);
        write_aside(w, TUNE_ROW, ASIDE_NEXT);
        w->page.depth--;
        tune_line(&w->page, "}");
    }
    if (w->p->row_copies == 0 && !w->p->rows_ahead)
        write_rows(w);
    tune_line(&w->page, "if l == 0 {");
    w->page.depth++;
    write_part(w, TUNE_MULTIPLY, multiplied_why(w), false);
    w->page.depth--;
    tune_line(&w->page, "} else {");
    w->page.depth++;
    write_before(w);
    if (w->p->sum_loop > 2) {
        tune_line(&w->page, "if l < %" PRId64 " {", w->p->sum_loop - 1);
        w->page.depth++;
        write_part(w, TUNE_MULTIPLY_ON, "The same, added to them", true);
        w->page.depth--;
        tune_line(&w->page, "} else {");
        w->page.depth++;
    }
    write_extras(w, true, false);
    write_last_part(w);
    if (w->p->regroup > 1)
        write_regroup(w);
    write_close(w);
    write_bring(w);
    write_store(w);
    if (w->p->sum_loop > 2) {
        w->page.depth--;
        tune_line(&w->page, "}");
    }
    w->page.depth--;
    tune_line(&w->page, "}");
    end_loop(w, TUNE_ROW);
    tune_line(&w->page, "sums = next;");
    w->page.depth--;
    tune_line(&w->page, "}");
}

/* ---- ports ---- */

static const char *loop_digit(const writer *w, tune_role role)
{
    return kept(w, role, tune_loop_stride(w->p, role), w->p->split[role].loop);
}

/* Elements of the sum of an operand that a slice loads. */
static int64_t loaded_sums(const writer *w, tune_role role)
{
    return role == TUNE_ROW ? tune_sum_part(w->p) / w->p->ring_sums : w->p->spreads ? spread_of(w).sums : tune_sum_part(w->p);
}

/* Do slices get runs of an operand that lies row by row, in their order? */
static bool is_row_by_row(const writer *w, tune_role role)
{
    const tune_plan *p = w->p;
    const tune_split *s = &p->split[role];
    bool is_parted = p->sum_loop > 1 || (role == TUNE_ROW ? p->ring_sums * p->ring_rows > 1 : p->spreads || p->results_stay);
    bool is_dense = p->sum_padded == w->q->size[TUNE_SUM] || tune_is_dense(w->q, p, role);
    return !is_parted && is_dense && w->q->size[TUNE_BATCH] == 1 && !tune_pads_inside(s, w->q->size[role]) &&
           tune_free_block(w->t, w->q, p, role, loaded_sums(w, role)) == 0 && (role == TUNE_ROW || tune_free_columns(w->t, w->q, p) == 0);
}

/* What an operand's slices have of it as it lies where that is free: the parts that iterations take, then those of slices. */
static const char *free_operand(const writer *w, tune_role role)
{
    const tune_plan *p = w->p;
    const tune_split *s = &p->split[role];
    if (is_row_by_row(w, role))
        return TUNE_LIST(w->a, w->q->axis_text[role], w->q->axis_text[TUNE_SUM]);
    int64_t sums = loaded_sums(w, role), rest = role == TUNE_ROW ? s->tile / p->ring_rows : s->tile,
            block = tune_free_block(w->t, w->q, p, role, sums);
    bool spreads = role == TUNE_COLUMN && p->spreads;
    const char *tile = spreads ? spread_of(w).tile : kept(w, role, 1, rest);
    const char *around = spreads ? spread_of(w).parts
                         : role == TUNE_ROW && p->rings
                             ? TUNE_LIST(w->a, kept(w, TUNE_ROW, rest, p->ring_rows), summed(w, sums, p->ring_sums))
                             : NULL;
    const char *slices = unless_one(TUNE_LIST(w->a, cluster_digit(w, TUNE_BATCH), cluster_digit(w, role), slice_digit(w, TUNE_BATCH),
                                              slice_digit(w, role), unless_one(around)));
    const char *loops =
        unless_one(TUNE_LIST(w->a, summed(w, tune_sum_part(p), p->sum_loop), loop_digit(w, TUNE_BATCH), loop_digit(w, role)));
    if (block > 0)
        return TUNE_LIST(w->a, loops, tile, summed(w, block, sums / block), slices, summed(w, 1, block));
    int64_t of_block = role == TUNE_COLUMN ? tune_free_columns(w->t, w->q, p) : 0, part_of_block = free_part(w, of_block);
    if (of_block > 0)
        return TUNE_LIST(w->a, loops, kept(w, role, of_block, s->tile / of_block), summed(w, part_of_block, sums / part_of_block), slices,
                         kept(w, role, 1, of_block), summed(w, 1, part_of_block));
    return TUNE_LIST(w->a, loops, slices, unless_one(operand_element(w, role, tile, sums)));
}

/* The same of the result. */
static const char *free_result(const writer *w)
{
    const char *loops = NULL, *slices = NULL;
    bool stays = w->p->results_stay;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        loops = unless_one(TUNE_LIST(w->a, loops, role == TUNE_COLUMN && stays ? NULL : loop_digit(w, (tune_role)role)));
        slices = unless_one(TUNE_LIST(w->a, slices, cluster_digit(w, (tune_role)role)));
    }
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        slices = unless_one(TUNE_LIST(w->a, slices, slice_digit(w, (tune_role)role)));
    const char *columns = kept(w, TUNE_COLUMN, 1, stays ? tune_slice_stride(w->p, TUNE_COLUMN) : w->p->split[TUNE_COLUMN].tile);
    return TUNE_LIST(w->a, loops, slices, kept(w, TUNE_ROW, 1, w->p->split[TUNE_ROW].tile), columns);
}

static const char *port_mapping(const writer *w, tune_place place)
{
    if (w->q->tensors[place].is_free)
        return place == TUNE_OUT ? free_result(w) : free_operand(w, tune_kept_of(w->q, place));
    const char *batch = port_axes(w, TUNE_BATCH, false, w->q->type);
    if (place == TUNE_OUT) {
        const char *rows = port_axes(w, TUNE_ROW, false, w->q->type), *columns = port_axes(w, TUNE_COLUMN, false, w->q->type);
        return lies_columns_first(w->q, &w->q->tensors[TUNE_OUT]) ? TUNE_LIST(w->a, batch, columns, rows)
                                                                  : TUNE_LIST(w->a, batch, rows, columns);
    }
    bool turned = w->q->turned[place];
    const char *free = port_axes(w, tune_kept_of(w->q, place), turned, w->q->stored[place]),
               *sums = port_axes(w, TUNE_SUM, !turned, w->q->stored[place]);
    return turned ? TUNE_LIST(w->a, batch, sums, free) : TUNE_LIST(w->a, batch, free, sums);
}

/* Kinds of axes that an operand has, a bit each. */
static unsigned roles_of(const tune_question *q, tune_place operand)
{
    return 1U << TUNE_BATCH | 1U << tune_kept_of(q, operand);
}

/* How what is free lies, in front of the kernel. */
static void write_free(writer *w)
{
    const tune_question *q = w->q;
    for (int place = 0; place < TUNE_PLACES; place++) {
        if (!q->tensors[place].is_free)
            continue;
        tune_role role = place == TUNE_OUT ? TUNE_SUM : tune_kept_of(q, (tune_place)place);
        bool in_blocks = (role != TUNE_SUM && tune_free_block(w->t, q, w->p, role, loaded_sums(w, role)) > 0) ||
                         (role == TUNE_COLUMN && tune_free_columns(w->t, q, w->p) > 0);
        tune_line(&w->page, "// %s lies as its copies take it: m![%s], %s", port_name(w, (tune_place)place),
                  port_mapping(w, (tune_place)place),
                  in_blocks          ? arena_printf(w->a, "blocks of %" PRId64 " bytes of all slices side by side", w->t->hbm_block_bytes)
                  : role == TUNE_SUM ? "what a slice writes in one piece"
                                     : "what a slice gets in one piece");
    }
}

void tune_write(const tune_question *q, const tune_plan *p, const target *t, const char *head, const tune_text *found, arena *a,
                tune_text *out)
{
    writer w = {.q = q, .p = p, .t = t, .a = a, .page = {out, found, a, 0}, .part = "l"};
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    w.loops = p->split[TUNE_BATCH].loop * p->split[TUNE_ROW].loop * p->split[TUNE_COLUMN].loop * p->sum_loop > 1;
    write_axes(&w);
    write_free(&w);
    tune_line(&w.page, "%s", tune_device(t, tune_chips_of(q->share, TUNE_ROLES), a));
    tune_line(&w.page, "fn contract(");
    w.page.depth++;
    tune_line(&w.page, "device: &mut Device,");
    const tune_place operands[] = {q->stream, q->weights}; /* so that ports lie as they do however the question is spelt */
    for (size_t i = 0; i < 2; i++)
        tune_line(&w.page, "%s: &HbmTensor<%s, %s, m![%s]>,", port_name(&w, operands[i]), type_name(q->stored[operands[i]]),
                  tune_chip_type(q->share, TUNE_ROLES, roles_of(q, operands[i]), a), port_mapping(&w, operands[i]));
    for (size_t i = 0; i < q->extra_count; i++)
        tune_line(&w.page, "%s: &HbmTensor<%s, %s, m![%s]>,", extra_name(&w, i), type_name(q->extras[i].type),
                  tune_chip_type(q->share, TUNE_ROLES, tune_roles_of_extra(&q->extras[i]), a), extra_mapping(&w, &q->extras[i]));
    if (writes_parts(&w))
        tune_line(&w.page, "%s: &mut HbmTensor<%s, Chip, m![%s]>,", port_name(&w, TUNE_OUT), type_name(q->out_type),
                  port_mapping(&w, TUNE_OUT));
    w.page.depth--;
    if (writes_parts(&w))
        tune_line(&w.page, ") {");
    else
        tune_line(&w.page, ") -> HbmTensor<%s, Chip, m![%s]> {", type_name(q->out_type), port_mapping(&w, TUNE_OUT));
    w.page.depth++;
    for (size_t i = 0; i < 2; i++)
        tune_write_copies(&w.page, q->share, TUNE_ROLES, roles_of(q, operands[i]), port_name(&w, operands[i]), q->stored[operands[i]],
                          port_mapping(&w, operands[i]));
    for (size_t i = 0; i < q->extra_count; i++)
        tune_write_copies(&w.page, q->share, TUNE_ROLES, tune_roles_of_extra(&q->extras[i]), extra_name(&w, i), q->extras[i].type,
                          extra_mapping(&w, &q->extras[i]));
    begin_loop(&w, TUNE_BATCH);
    if (p->sum_loop > 1)
        write_parts(&w);
    else
        write_whole(&w);
    end_loop(&w, TUNE_BATCH);
    w.page.depth--;
    tune_line(&w.page, "}");
}
