#include "libvisa/tune/window_write.h"

#include <inttypes.h>

#include "libvisa/tune/border.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/window_parts.h"
#include "libvisa/tune/windows.h"
#include "support/integer.h"

typedef struct window_writer {
    const tune_question *q;
    const window_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    window_shape shape;
    window_results results; /* of a slice; while passes go over parts of them, of a part */
    window_parts parts;
    const char *part;                                                            /* "": all; or the tile of what waits in DM */
    const char *images, *row, *place, *down, *across, *channel, *group, *column; /* axes; images, group: NULL where there is one */
    const char *columns;                                                         /* of the result: "G, F" */
    const char *image;                /* that, where they are computed one after the other, or NULL */
    const char *taken;                /* places of the image, as windows take them */
    const char *port_channel;         /* with its padding: "C # 8" */
    const char *place_channels;       /* all that a place of the image has: "G, C # 8" */
    const char *slice, *result_slice; /* types of what is multiplied, and of what it makes */
    bool unnamed;                     /* columns of clusters and slices are copies without a name */
} window_writer;

static int64_t size_of(const tune_question *q, size_t axis)
{
    return q->axes[axis].size;
}

/* ---- digits ---- */

/* "F # 32 / 8 % 4", NULL where it has one position. */
static const char *padded_digit(const window_writer *w, const char *axis, int64_t size, int64_t padded, int64_t stride, int64_t count)
{
    if (count == 1)
        return NULL;
    const char *text = size == padded ? axis : arena_printf(w->a, "%s # %" PRId64, axis, padded);
    text = stride > 1 ? arena_printf(w->a, "%s / %" PRId64, text, stride) : text;
    return stride * count < padded ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

static const char *window(const window_writer *w, const char *kept, const char *summed, const tune_window *of)
{
    if (!kept || !summed)
        return kept ? kept : summed;
    return arena_printf(w->a, "$(%s:%" PRId64 ", %s:%" PRId64 ")", kept, of->stride, summed, of->dilation);
}

/* The same in DM, where places that a stride passes are left out: their digits are apart. */
static const char *window_in_slice(const window_writer *w, const char *kept, const char *summed, size_t i)
{
    return window_skips(w->q, w->p, i) ? TUNE_LIST(w->a, kept, summed) : window(w, kept, summed, &w->q->windows[i]);
}

static const char *padded_to(const window_writer *w, const char *mapping, int64_t from, int64_t to)
{
    return from == to ? mapping : arena_printf(w->a, "%s # %" PRId64, mapping, to);
}

static const char *type_name(dtype type)
{
    return dtype_row_of(type)->name;
}

/* Of the rows of all images, "N / 2, Y / 7": a digit ends where an image does, or inside of one. */
static const char *row_digit_of_all(const window_writer *w, int64_t stride, int64_t count)
{
    int64_t rows = size_of(w->q, w->q->windows[0].kept), images = w->q->size[TUNE_BATCH], inside = smaller(count, ceil_div(rows, stride));
    const char *image = padded_digit(w, w->images, images, images, ceil_div(stride, rows), count / inside),
               *row = padded_digit(w, w->row, rows, rows, stride, inside);
    return image || row ? TUNE_LIST(w->a, image, row) : NULL;
}

/* Of what a cluster has, where each has padding of its own: "Y % 28 # 32 / 2". */
static const char *row_digit(const window_writer *w, int64_t stride, int64_t count)
{
    if (w->p->images_in_rows)
        return row_digit_of_all(w, stride, count);
    int64_t rows = size_of(w->q, w->q->windows[0].kept), of_cluster = rows / w->t->clusters_per_chip,
            padded = w->p->padded_rows / w->t->clusters_per_chip;
    if (w->p->apart && count > 1 && stride == padded)
        return padded_digit(w, w->row, rows, rows, of_cluster, w->t->clusters_per_chip);
    if (w->p->apart && stride * count < padded) /* a tile is whole */
        return padded_digit(w, w->row, rows, rows, stride, count);
    if (w->p->apart)
        return padded_digit(w, arena_printf(w->a, "%s %% %" PRId64, w->row, of_cluster), of_cluster, padded, stride, count);
    return padded_digit(w, w->row, size_of(w->q, w->q->windows[0].kept), w->p->padded_rows, stride, count);
}

static const char *place_digit(const window_writer *w, int64_t stride, int64_t count)
{
    int64_t places = size_of(w->q, w->q->windows[1].kept);
    return padded_digit(w, w->place, places, w->p->padded_places, stride, count);
}

static const char *column_digit(const window_writer *w, int64_t stride, int64_t count)
{
    int64_t groups = w->q->groups, columns = w->q->size[TUNE_COLUMN] / groups, of_group = window_group_columns(w->t, w->q),
            inside = groups == 1 ? count : smaller(count, ceil_div(of_group, stride));
    const char *group = groups == 1 ? NULL : padded_digit(w, w->group, groups, groups, ceil_div(stride, of_group), count / inside),
               *column = padded_digit(w, w->column, columns, of_group, stride, inside);
    return group ? TUNE_LIST(w->a, group, column) : column;
}

/* Groups of channels that a slice has of an image. */
static const char *groups_of_slice(const window_writer *w)
{
    int64_t of_group = window_group_columns(w->t, w->q), here = window_groups_of(w->t, w->q, w->p->columns);
    return here > 1 ? column_digit(w, of_group, here) : NULL;
}

/* Of them those that one packet has; NULL: one. */
static const char *groups_of_packet(const window_writer *w)
{
    return w->p->packed > 1 ? column_digit(w, window_group_columns(w->t, w->q), w->p->packed) : NULL;
}

/* And the others. */
static const char *groups_of_packets(const window_writer *w)
{
    int64_t here = window_groups_of(w->t, w->q, w->p->columns) / w->p->packed;
    return here > 1 ? column_digit(w, window_group_columns(w->t, w->q) * w->p->packed, here) : NULL;
}

static const char *channel_digit(const window_writer *w, int64_t stride, int64_t count)
{
    return padded_digit(w, w->channel, size_of(w->q, w->q->window_channel), w->shape.channels, stride, count);
}

/* The same digits of slices, all of them or with padding after them. */
static const char *all_slices(const window_writer *w, const char *digits, int64_t used)
{
    int64_t all = w->t->slices_per_cluster;
    return used == all ? arena_printf(w->a, "m![%s]", digits) : arena_printf(w->a, "m![[%s] # %" PRId64 "]", digits, all);
}

/* Slices: those of columns, what neighbours have, those that idle between, and at last `inside`. */
static const char *slices_with(const window_writer *w, const char *neighbours, const char *inside)
{
    const window_plan *p = w->p;
    const char *idle = p->idle_inside > 1 ? arena_printf(w->a, "1 # %" PRId64, p->idle_inside) : NULL,
               *columns = !w->unnamed            ? column_digit(w, window_own_columns(p), p->column_slices)
                          : p->column_slices > 1 ? arena_printf(w->a, "%" PRId64, p->column_slices)
                                                 : NULL,
               *slices = TUNE_LIST(w->a, columns, neighbours, idle, inside);
    return all_slices(w, slices, p->column_slices * window_neighbours(p));
}

/* Parts of the channels that slices have; NULL: each has all. */
static const char *sums_of_slices(const window_writer *w)
{
    int64_t channels = size_of(w->q, w->q->window_channel);
    return w->p->sum_slices > 1 ? channel_digit(w, channels / w->p->sum_slices, w->p->sum_slices) : NULL;
}

static const char *places_of_slices(const window_writer *w)
{
    const char *rows = row_digit(w, w->p->rows, w->p->row_slices), *places = place_digit(w, w->p->places, w->p->place_slices);
    return rows || places ? TUNE_LIST(w->a, rows, places) : NULL;
}

/* What those that had parts of a sum have of its results. */
static const char *shared_digit(const window_writer *w)
{
    const window_results *r = &w->results;
    switch (r->share) {
    case WINDOW_SHARES_ROWS: return row_digit(w, r->rows, w->p->sum_slices);
    case WINDOW_SHARES_PLACES: return place_digit(w, r->places, w->p->sum_slices);
    case WINDOW_SHARES_COLUMNS: return column_digit(w, r->columns, w->p->sum_slices);
    default: return arena_printf(w->a, "1 # %" PRId64, w->p->sum_slices);
    }
}

/* Of results. */
static const char *own_rows(const window_writer *w)
{
    return row_digit(w, 1, w->results.rows);
}

static const char *own_places(const window_writer *w)
{
    return place_digit(w, 1, w->results.places);
}

static const char *own_columns(const window_writer *w)
{
    return column_digit(w, 1, w->results.columns);
}

static const char *column_groups(const window_writer *w)
{
    return column_digit(w, w->t->rows, w->results.columns / w->t->rows);
}

static const char *lanes_of(const window_writer *w)
{
    return column_digit(w, 1, w->t->rows);
}

/* Lanes of a packet of results that are less than the 8 bytes which go to DM are padded there; those of small groups have less padding. */
static bool pads_lanes(const window_writer *w)
{
    return window_kept_lanes(w->t, w->q) != w->t->rows;
}

static const char *result_lanes(const window_writer *w)
{
    int64_t kept = window_kept_lanes(w->t, w->q), columns = w->q->size[TUNE_COLUMN] / w->q->groups;
    if (kept < w->t->rows)
        return padded_to(w, w->column, columns, kept);
    return padded_to(w, lanes_of(w), w->t->rows, kept);
}

/* ---- the kernel ---- */

static const char *cluster_digit(const window_writer *w)
{
    const window_plan *p = w->p;
    return p->rows_of_clusters      ? row_digit(w, p->rows * p->row_slices, w->t->clusters_per_chip)
           : p->columns_of_clusters ? column_digit(w, window_own_columns(p) * p->column_slices, w->t->clusters_per_chip)
                                    : NULL;
}

/* Of a result whose layout is free what slices have, one after the other. */
static const char *free_result(const window_writer *w)
{
    const window_plan *p = w->p;
    const char *shared = w->results.share == WINDOW_SHARES_NOTHING ? NULL : shared_digit(w);
    return TUNE_LIST(w->a, w->image, cluster_digit(w), column_digit(w, window_own_columns(p), p->column_slices), places_of_slices(w),
                     shared, own_rows(w), own_places(w), own_columns(w));
}

/* An input: kinds of axes that it has are a bit each. */
typedef struct hbm_port {
    const char *name;
    dtype type;
    unsigned roles;
    const char *element;
} hbm_port;

static void write_head_of_kernel(window_writer *w)
{
    const tune_question *q = w->q;
    strbuf_puts(&w->page.out->text, "axes![");
    for (size_t i = 0; i < q->axis_count; i++)
        strbuf_printf(&w->page.out->text, "%s%s = %" PRId64, i ? ", " : "", q->axes[i].name,
                      q->depthwise && i == q->window_channel && q->share[TUNE_COLUMN].axis ? q->share[TUNE_COLUMN].size : q->axes[i].size);
    if (tune_has_border(q))
        border_write_axes(&w->page, w->t, q, window_place_elements(w->t, w->q), w->p->border);
    strbuf_puts(&w->page.out->text, "];\n\n");
    tune_line(&w->page, "type Chip = m![%s];", tune_chip_mapping(q->share, TUNE_ROLES, ~0U, w->a));
    const char *cluster = cluster_digit(w);
    tune_line(&w->page, "type Cluster = m![%s];", cluster ? cluster : tune_idle_clusters(w->t, w->a));
    tune_line(&w->page, "type Slice = %s;", w->slice);
    tune_line(&w->page, "%s", "");
    bool is_free = q->tensors[TUNE_OUT].is_free;
    const char *out = is_free ? free_result(w) : TUNE_LIST(w->a, w->images, w->row, w->place, w->columns);
    if (is_free)
        tune_line(&w->page, "// %s lies as its copies take it: m![%s], what a slice writes in one piece", q->tensors[TUNE_OUT].port, out);
    const char *across = padded_digit(w, w->across, size_of(q, q->windows[1].summed), w->shape.across, 1, w->shape.across);
    int64_t taken[TUNE_WINDOWS] = {tune_window_places(q, 0), tune_window_places(q, 1)}, held[TUNE_WINDOWS] = {taken[0], taken[1]};
    if (tune_has_border(q)) {
        held[0] = border_rows(w->t, q, window_place_elements(w->t, w->q), w->p->border);
        held[1] = border_places(w->t, q, window_place_elements(w->t, w->q));
    }
    const char *places = TUNE_LIST(w->a, w->images, padded_to(w, window(w, w->row, w->down, &q->windows[0]), taken[0], held[0]),
                                   padded_to(w, window(w, w->place, w->across, &q->windows[1]), taken[1], held[1]), w->place_channels),
               *weights = q->depthwise ? TUNE_LIST(w->a, w->down, w->across, w->port_channel)
                                       : TUNE_LIST(w->a, w->columns, w->down, across, w->port_channel);
    const char *image = tune_has_border(q) ? TUNE_LIST(w->a, w->images, border_image(q, w->place_channels, w->a)) : places;
    hbm_port ports[TUNE_EXTRAS_MAX + 2] = {
        {q->tensors[q->stream].port, q->stored[q->stream], 1U << TUNE_BATCH | (q->depthwise || q->is_grouped ? 1U << TUNE_COLUMN : 0),
         image},
        {q->tensors[q->weights].port, q->stored[q->weights], 1U << TUNE_COLUMN, weights},
    };
    for (size_t i = 0; i < q->extra_count; i++) {
        const tune_extra *e = &q->extras[i];
        ports[i + 2] = (hbm_port){e->tensor.port, e->type, tune_roles_of_extra(e),
                                  TUNE_LIST(w->a, e->has[TUNE_BATCH] ? w->images : NULL, e->has[TUNE_ROW] ? w->row : NULL,
                                            e->has[TUNE_ROW] ? w->place : NULL, column_digit(w, 1, window_columns(w->t, q)))};
    }
    for (size_t i = 0; i < 2; i++)
        if (q->tensors[i == 0 ? q->stream : q->weights].is_free)
            tune_line(&w->page, "// %s lies with the channels of a place side by side: m![%s]", ports[i].name, ports[i].element);
    tune_line(&w->page, "%s", tune_device(w->t, tune_chips_of(q->share, TUNE_ROLES), w->a));
    tune_line(&w->page, "fn contract(");
    w->page.depth++;
    tune_line(&w->page, "device: &mut Device,");
    for (size_t i = 0; i < q->extra_count + 2; i++)
        tune_line(&w->page, "%s: &HbmTensor<%s, %s, m![%s]>,", ports[i].name, type_name(ports[i].type),
                  tune_chip_type(q->share, TUNE_ROLES, ports[i].roles, w->a), ports[i].element);
    if (w->image)
        tune_line(&w->page, "%s: &mut HbmTensor<%s, Chip, m![%s]>,", q->tensors[TUNE_OUT].port, type_name(q->out_type), out);
    w->page.depth--;
    tune_line(&w->page, w->image ? ") {" : ") -> HbmTensor<%s, Chip, m![%s]> {", type_name(q->out_type), out);
    w->page.depth++;
    for (size_t i = 0; i < q->extra_count + 2; i++)
        tune_write_copies(&w->page, q->share, TUNE_ROLES, ports[i].roles, ports[i].name, ports[i].type, ports[i].element);
    w->taken = places;
}

/* After the copy of the weights, which has nothing to wait for: zeros are filled in meanwhile. */
static void write_border(window_writer *w)
{
    const border_fill zeros = {tune_zero_of(w->q->stored[w->q->stream]), "zeros", w->p->short_border};
    if (tune_has_border(w->q))
        border_write(&w->page, w->t, w->q, &zeros, w->images, w->place_channels, window_place_elements(w->t, w->q), w->p->border, w->taken);
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

/* The columns of a turn, where there are several. */
static const char *turn_digit(const window_writer *w)
{
    return column_digit(w, w->p->columns, w->p->turns);
}

static const char *turn_of(const window_writer *w)
{
    return w->p->turns > 1 ? arena_printf(w->a, ".tile::<m![%s], 1, _>(n)", turn_digit(w)) : "";
}

/* ---- what is done to the sums ---- */

/* "16, 7": what the Switch Engine gives to slices are copies, and it has no name for them; a rename has. */
static const char *copies_of(const window_writer *w)
{
    const window_plan *p = w->p;
    const int64_t counts[] = {p->hand_rows, p->hand_places, p->idle_inside, p->sum_slices};
    const char *text[4];
    for (size_t i = 0; i < 4; i++)
        text[i] = counts[i] == 1 ? NULL : arena_printf(w->a, i == 2 ? "1 # %" PRId64 : "%" PRId64, counts[i]);
    return TUNE_LIST(w->a, text[0], text[1], text[2], text[3]);
}

/* "1 # 4" */
static const char *padding_of(const window_writer *w, int64_t count)
{
    return count > 1 ? arena_printf(w->a, "1 # %" PRId64, count) : NULL;
}

/* Slices with `copies` in place of those that share what one of them brings: "1 # 64", what that one has, or "64", what all have then. */
static const char *slices_of_copies(const window_writer *w, const char *copies)
{
    const window_plan *p = w->p;
    return all_slices(w,
                      TUNE_LIST(w->a, column_digit(w, window_own_columns(p), p->column_slices),
                                p->hand_rows < p->row_slices ? row_digit(w, p->rows * p->hand_rows, p->row_slices / p->hand_rows) : NULL,
                                place_digit(w, p->places * p->hand_places, p->place_slices / p->hand_places), copies),
                      p->column_slices * window_neighbours(p));
}

/* Those that hand something on: one of them brings it, or so many a part each, and the others padding. */
static const char *slices_that_bring(const window_writer *w, const char *parts, int64_t count)
{
    return slices_of_copies(w, TUNE_LIST(w->a, padding_of(w, window_handed(w->p) / count), parts));
}

/* Those that have it then. */
static const char *slices_that_get(const window_writer *w)
{
    return slices_of_copies(w, w->p->hand_parts > 0 ? arena_printf(w->a, "%" PRId64, window_handed(w->p)) : copies_of(w));
}

/* What they send around: bitmaps say whom each slice copies, or it gets what all send, padding too. */
static const char *handing(const window_writer *w, const char *slice, const char *time)
{
    return w->p->hand_parts > 0 ? arena_printf(w->a, "switch::<%s, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: 1 })",
                                               slice, time, window_handed(w->p))
                                : arena_printf(w->a, "switch::<%s, m![%s]>(SwitchConfig::CustomBroadcast { ring_size: %" PRId64 " })",
                                               slice, time, window_ring(w->p));
}

/* How an operand of what is done to the sums comes into slices: one value for each column, or one for each result. */
typedef struct extra_text {
    bool is_handed;
    int64_t parts, left;      /* that slices bring which hand it on, and columns of each */
    const char *rows;         /* of results, and places in them */
    const char *element;      /* of a slice that brings it */
    const char *from, *slice; /* slices, as it comes and as they have it then */
} extra_text;

static extra_text extra_text_of(const window_writer *w, const tune_extra *e)
{
    extra_text x = {.is_handed = w->p->hand_rows > 0 && !e->has[TUNE_ROW], .slice = w->result_slice};
    x.parts = x.is_handed ? larger(1, w->p->hand_parts) : 1;
    x.left = w->results.columns / x.parts;
    x.rows = e->has[TUNE_ROW] ? TUNE_LIST(w->a, own_rows(w), own_places(w)) : NULL;
    x.element = TUNE_LIST(w->a, x.rows, column_digit(w, 1, x.left));
    x.from = x.slice;
    if (x.is_handed) {
        x.from = slices_that_bring(w, column_digit(w, x.left, x.parts), x.parts);
        x.slice = slices_that_get(w);
    }
    return x;
}

static void load_extra(window_writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const extra_text x = extra_text_of(w, e);
    const char *name = e->tensor.port;
    tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i),
                    x.is_handed ? arena_printf(w->a, "An operand of what is done to the sums, to %" PRId64 " of %" PRId64 " slices",
                                               x.parts, window_handed(w->p))
                                : "An operand of what is done to the sums");
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = %s%s.to_dm(&mut device.tdma);", name, type_name(e->type), x.from,
              x.element, name, e->has[TUNE_BATCH] ? part_of_image(w, ".view()") : "");
    tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
}

/* Into the VRF: all of it, or what meets a part of the results. */
static void keep_extra(window_writer *w, size_t i)
{
    const tune_extra *e = &w->q->extras[i];
    const extra_text x = extra_text_of(w, e);
    const char *name = e->tensor.port, *element = x.element;
    dtype meets = w->q->meets;
    tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i),
                    *w->part                ? "Into the VRF, what meets this part"
                    : !x.is_handed          ? "Into the VRF"
                    : w->p->hand_parts == 0 ? "Into the VRF of all of them"
                                            : "Into the VRF of all of them; a named topology has no bitmaps to load");
    const char *groups = column_digit(w, w->t->rows, x.left / w->t->rows), *time = TUNE_LIST(w->a, x.rows, groups), *sent = time;
    if (x.is_handed && w->p->hand_parts > 0) { /* what padding sends stands in the VRF, between */
        const char *part = column_digit(w, x.left, x.parts), *padding = padding_of(w, window_hand_padding(w->p));
        sent = TUNE_LIST(w->a, groups, padding, part);
        element = TUNE_LIST(w->a, groups, padding, part, lanes_of(w));
    }
    tune_write_operand(&w->page, &(tune_operand_text){.name = name,
                                                      .slice = x.slice,
                                                      .element = element,
                                                      .from = arena_printf(w->a, "%s.view()%s", name, w->part),
                                                      .from_type = e->type,
                                                      .type = meets,
                                                      .time = time,
                                                      .packet = lanes_of(w),
                                                      .hands = x.is_handed ? handing(w, x.slice, sent) : NULL});
    if (x.is_handed)
        tune_line(&w->page, "let %s: VrfTensor<%s, Chip, Cluster, %s, m![%s]> = unsafe { %s.reshape() };", name, type_name(meets),
                  w->result_slice, element, name);
    tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
}

static void write_methods(window_writer *w, const tune_lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        tune_line(&w->page, "    .%s", l->text[i]);
}

/* `adds`: sums of parts that slices have come first, in these steps. NULL: there are none. */
static void write_pass(window_writer *w, const tune_pass *pass, const char *adds)
{
    size_t count = pass ? pass->front.count + pass->narrow.count + pass->back.count : 0;
    if (count == 0 && !adds)
        return;
    tune_line(&w->page, "    .vector_init()");
    if (adds)
        tune_line(&w->page, "    .vector_inter_slice_reduce::<%s, m![%s]>(InterSliceReduceOp%s::Add)", w->result_slice, adds,
                  dtype_row_of(w->q->type)->accumulates_in == DTYPE_I32 ? "I32" : "F32");
    if (count > 0) {
        tune_line(&w->page, "    .vector_intra_slice_tag(TagMode::Zero)");
        write_methods(w, &pass->front);
        if (pass->narrow.count > 0)
            tune_line(&w->page, "    .vector_narrow_split::<_, _>()");
        write_methods(w, &pass->narrow);
        if (pass->narrow.count > 0)
            tune_line(&w->page, "    .vector_widen_concat::<_, _>()");
        write_methods(w, &pass->back);
    }
    tune_line(&w->page, "    .vector_final()");
}

static const char *values(const window_writer *w, size_t pass)
{
    return arena_printf(w->a, pass == 0 ? "values" : "values%zu", pass + 1);
}

/* What a pass makes: the result, values for the next one in DM, or what they are multiplied with in the VRF. `opens`: it is there for
 * turns, or parts, that write it. */
static void begin_values(window_writer *w, const tune_epilogue *e, size_t i, bool opens)
{
    bool is_last = i + 1 >= e->count, is_padded = is_last && pads_lanes(w);
    const char *columns = is_padded ? TUNE_LIST(w->a, column_groups(w), result_lanes(w)) : own_columns(w),
               *element = TUNE_LIST(w->a, own_rows(w), own_places(w), columns);
    const char *name = is_last ? "products" : values(w, i),
               *type = type_name(is_last                     ? w->q->out_type
                                 : i == 0 && w->p->sums_wait ? dtype_row_of(w->q->type)->accumulates_in
                                                             : w->q->meets);
    if (e->count > 0 && e->passes[i].is_gate)
        tune_line(&w->page, "let gate: VrfTensor<f32, Chip, Cluster, %s, m![%s]> = device.main", w->result_slice, element);
    else if (is_last && *w->part)
        tune_line(&w->page, "device.main");
    else if (opens)
        tune_line(&w->page, "let mut %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = DmTensor::new();", name, type, w->result_slice, element);
    else
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", name, type, w->result_slice, element);
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
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", i + 1 >= e->count ? result_lanes(w) : lanes_of(w));
    if (i == 0 && w->p->turns > 1)
        tune_line(&w->page, "    .commit_view(%s.view_mut()%s);", i + 1 >= e->count ? "products" : values(w, 0), turn_of(w));
    else if (i + 1 >= e->count && *w->part)
        tune_line(&w->page, "    .commit_view(products.view_mut()%s);", w->part);
    else
        tune_line(&w->page, "    .commit();");
}

static void write_pass_of_values(window_writer *w, const tune_epilogue *e, size_t i, size_t from)
{
    tune_begin_step(&w->page, (tune_step)(TUNE_PASS + i),
                    e->passes[i].is_gate        ? "What the values are multiplied with"
                    : w->p->sums_wait && i == 1 ? "What is done to the sums, when its operands have come"
                                                : "Another pass over the values");
    begin_values(w, e, i, false);
    tune_line(&w->page, "    .begin(%s.view()%s)", values(w, from), from == 0 ? w->part : "");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, own_rows(w), own_places(w), column_groups(w)), lanes_of(w));
    tune_line(&w->page, "    .collect()");
    write_pass(w, &e->passes[i], NULL);
    end_values(w, e, i);
    tune_end_step(&w->page, (tune_step)(TUNE_PASS + i));
}

static void write_passes_of_values(window_writer *w, const tune_epilogue *e)
{
    for (size_t i = 1, from = 0; i < e->count; i++) {
        write_pass_of_values(w, e, i, from);
        from = e->passes[i].is_gate ? from : i;
    }
}

/* A loop over so many positions of a digit of what a slice has; returns the tile of one. */
static const char *begin_part(window_writer *w, const char *loop, const char *digit, int64_t count)
{
    if (count == 1)
        return "";
    tune_line(&w->page, "for %s in 0..%" PRId64 " {", loop, count);
    w->page.depth++;
    return arena_printf(w->a, ".tile::<m![%s], 1, _>(%s)", digit, loop);
}

static void write_passes_of_parts(window_writer *w, const tune_epilogue *e)
{
    const window_parts *n = &w->parts;
    const window_results all = w->results, one = {all.share, all.rows / n->rows, all.places / n->places, all.columns / n->columns};
    begin_values(w, e, e->count - 1, true);
    const int depth = w->page.depth;
    const char *rows = begin_part(w, "i", row_digit(w, one.rows, n->rows), n->rows),
               *places = begin_part(w, "j", place_digit(w, one.places, n->places), n->places),
               *columns = begin_part(w, "l", column_digit(w, one.columns, n->columns), n->columns);
    w->part = arena_printf(w->a, "%s%s%s", rows, places, columns);
    w->results = one;
    for (size_t i = 0; i < w->q->extra_count; i++)
        if (window_parts_have(w->p, &w->q->extras[i]))
            keep_extra(w, i);
    write_passes_of_values(w, e);
    w->part = "";
    w->results = all;
    while (w->page.depth > depth) {
        w->page.depth--;
        tune_line(&w->page, "}");
    }
}

/* ---- operands ---- */

/* Slices of which all bring a part of the weights each, or those of the same rows, and the others the same once more. */
static const char *slices_that_spread(const window_writer *w, const char *parts)
{
    const window_plan *p = w->p;
    const char *others = p->around < p->row_slices * p->place_slices ? row_digit(w, p->rows, p->row_slices) : NULL;
    return slices_with(w, TUNE_LIST(w->a, others, parts), sums_of_slices(w));
}

/* What is multiplied in a step: texts of the sum's digits, of an image and of weights alike. */
typedef struct step_text {
    const char *of_slice, *packed; /* groups of channels, of an image and of weights: those of a packet, and the others */
    const char *groups;            /* digits of the columns outside of the sum: those of weights alone, or where channels are columns */
    const char *outside;           /* of the channels, outside of the window */
    const char *steps;             /* inside of it */
    const char *fetched;           /* the packet that a fetch sends, */
    const char *packet;            /* and of it what is multiplied in a step, */
    const char *full;              /* with what pads it to the multipliers */
} step_text;

static step_text step_of(const window_writer *w)
{
    const tune_question *q = w->q;
    const window_shape *s = &w->shape;
    const window_plan *p = w->p;
    int64_t flit = w->t->flit_bytes * 8 / dtype_row_of(q->type)->bits,
            groups = window_column_groups(w->t, q, p) / window_groups_of(w->t, q, p->columns);
    step_text x = {.of_slice = groups_of_packets(w), .packed = groups_of_packet(w)};
    if (q->depthwise) {
        x.groups = column_digit(w, s->live, groups);
        x.fetched = x.packet = column_digit(w, 1, s->live);
    } else if (p->packed > 1) {
        x.groups = column_digit(w, w->t->rows, groups);
        x.fetched = x.packet = TUNE_LIST(w->a, x.packed, w->port_channel);
        if (s->live != 2 * flit)
            x.packet = arena_printf(w->a, "[%s]", x.packet);
    } else if (s->taps > 1) {
        int64_t across = size_of(q, q->windows[1].summed);
        x.groups = column_digit(w, w->t->rows, groups);
        x.steps = padded_digit(w, w->across, across, s->across, s->taps, s->across / s->taps);
        x.fetched = x.packet = TUNE_LIST(w->a, padded_digit(w, w->across, across, s->across, 1, s->taps), w->port_channel);
        if (s->live != 2 * flit)
            x.packet = arena_printf(w->a, "[%s]", x.packet);
    } else {
        window_spread spread;
        window_spread_of(w->t, q, p, &spread);
        int64_t channels = size_of(q, q->window_channel), here = s->channels / p->sum_slices, part = here / spread.channels;
        x.groups = column_digit(w, w->t->rows, groups);
        x.outside = channel_digit(w, part, spread.channels);
        x.fetched = channel_digit(w, 1, part);
        if (s->run == here) {
            x.steps = channel_digit(w, s->packet, part / s->packet);
            x.packet = x.fetched = channel_digit(w, 1, smaller(s->packet, part));
        } else { /* one slice has all channels then */
            x.fetched = w->port_channel;
            x.steps = padded_digit(w, w->channel, channels, s->run, s->packet, s->run / s->packet);
            x.packet = padded_digit(w, w->channel, channels, s->run, 1, s->packet);
        }
    }
    int64_t has = s->run == s->channels / p->sum_slices || q->depthwise || s->taps > 1 || p->packed > 1 ? s->live : s->packet;
    x.full = has == 2 * flit ? x.packet : arena_printf(w->a, "%s # %" PRId64, x.packet, 2 * flit);
    return x;
}

/* To the slices that share them, in DM: what is in the TRF gets no other name. */
static void write_handed_filters(window_writer *w)
{
    const tune_question *q = w->q;
    int64_t filters = window_filters_in_packet(w->t, q, w->p), parts = window_filter_parts(w->t, q, w->p), left = w->p->columns / parts;
    const char *packet = column_digit(w, 1, filters), *type = type_name(q->stored[q->weights]), *slice = slices_that_get(w),
               *time = TUNE_LIST(w->a, w->down, w->across, column_digit(w, filters, left / filters)), *sent = time,
               *element = TUNE_LIST(w->a, w->down, w->across, column_digit(w, 1, w->p->columns));
    if (w->p->hand_parts > 0) {
        sent = TUNE_LIST(w->a, time, padding_of(w, window_handed(w->p) / parts), column_digit(w, left, parts));
        element = TUNE_LIST(w->a, sent, packet);
    }
    tune_begin_step(&w->page, TUNE_HAND_WEIGHTS, "And on to the others");
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.%s", type, slice, element,
              w->p->main_weights ? "main" : "sub");
    tune_line(&w->page, "    .begin(columns.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time, packet);
    tune_line(&w->page, "    .%s", handing(w, slice, sent));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet);
    tune_line(&w->page, "    .commit();");
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { columns.reshape() };", type, element);
    tune_end_step(&w->page, TUNE_HAND_WEIGHTS);
}

/* Rows of a window and places in them: parts of others, and what a slice brings of them. */
typedef struct taps_text {
    const char *parts, *down, *across;
    int64_t count; /* that a slice brings */
    bool are_parts;
} taps_text;

static taps_text taps_text_of(const window_writer *w, const window_spread *x)
{
    int64_t down = size_of(w->q, w->q->windows[0].summed), across = size_of(w->q, w->q->windows[1].summed),
            rows = window_filter_rows(w->q, x), places = window_filter_places(w->q, x), own_rows = rows / x->filter_rows,
            own_places = places / x->filter_places;
    const char *row_parts = padded_digit(w, w->down, down, rows, own_rows, x->filter_rows),
               *place_parts = padded_digit(w, w->across, across, places, own_places, x->filter_places);
    return (taps_text){.parts = row_parts || place_parts ? TUNE_LIST(w->a, row_parts, place_parts) : NULL,
                       .down = x->filter_rows > 1 ? padded_digit(w, w->down, down, rows, 1, own_rows) : w->down,
                       .across = x->filter_places > 1 ? padded_digit(w, w->across, across, places, 1, own_places) : w->across,
                       .count = own_rows * own_places,
                       .are_parts = x->filter_rows * x->filter_places > 1};
}

/* A filter for each channel. */
static void write_weights_of_channels(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    const window_shape *s = &w->shape;
    int64_t groups = window_column_groups(w->t, q, p);
    window_spread x;
    window_spread_of(w->t, q, p, &x);
    int64_t handed = p->hands_filters ? p->columns / window_filter_parts(w->t, q, p) : p->columns; /* filters of a slice that hands on */
    taps_text n = taps_text_of(w, &x);
    const char *here = column_digit(w, s->live, groups / x.groups), *packet = column_digit(w, 1, s->live),
               *parts = TUNE_LIST(w->a, column_digit(w, s->live * (groups / x.groups), x.groups), n.parts),
               *taps = TUNE_LIST(w->a, n.down, n.across),
               *time = n.are_parts ? TUNE_LIST(w->a, taps, here) /* a part's digit and what is in it are side by side in the TRF */
                                   : TUNE_LIST(w->a, here, taps);
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS,
                    p->around > 1 ? arena_printf(w->a, "The filters of %" PRId64 " channels for each %" PRId64 " slices, each one once",
                                                 p->columns, p->around)
                    : p->hands_filters ? arena_printf(w->a, "The filters of %" PRId64 " channels for %" PRId64 " of %" PRId64 " slices",
                                                      p->columns, p->columns / handed, window_handed(p))
                                       : arena_printf(w->a, "The filters of %" PRId64 " channels for each slice", p->columns));
    const char *from = p->around > 1      ? slices_that_spread(w, parts)
                       : p->hands_filters ? slices_that_bring(w, column_digit(w, handed, p->columns / handed), p->columns / handed)
                                          : "Slice",
               *element = TUNE_LIST(w->a, taps, p->hands_filters ? column_digit(w, 1, handed) : TUNE_LIST(w->a, here, packet));
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, %s, m![%s]> = %s.to_dm(&mut device.tdma);",
              type_name(q->stored[q->weights]), from, element, q->tensors[q->weights].port);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    write_border(w);
    if (p->hands_filters)
        write_handed_filters(w);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS,
                    arena_printf(w->a, "Into the TRF%s, where a packet of channels finds its places of the filters%s",
                                 p->main_weights ? " by the main context" : "",
                                 p->around > 1 ? arena_printf(w->a, "; all get what each of %" PRId64 " slices has", p->around) : ""));
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![1], m![%s]> = device.%s", type_name(q->type),
              TUNE_LIST(w->a, p->around > 1 ? TUNE_LIST(w->a, parts, time) : TUNE_LIST(w->a, column_digit(w, s->live, groups), taps),
                        padded_to(w, packet, s->live, s->run)),
              p->main_weights ? "main" : "sub");
    tune_line(&w->page, "    .begin(columns.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time, packet);
    write_cast(w, q->weights);
    if (p->around > 1)
        tune_line(&w->page,
                  "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
                  TUNE_LIST(w->a, parts, time), p->around, groups / x.groups * n.count);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
}

/* Texts of the weights that copies bring and the TRF takes: what a slice brings of them, and what it has. */
typedef struct weights_text {
    const char *lanes, *groups, *down, *across, *channel, *time; /* that a slice brings */
    const char *parts;                                           /* of others */
    const char *element;                                         /* of the TRF */
    int64_t packets;                                             /* of a part */
    bool is_between;                                             /* slices with parts of the channels stand between those that bring */
} weights_text;

static weights_text weights_text_of(const window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    const window_shape *s = &w->shape;
    window_spread x;
    window_spread_of(w->t, q, p, &x);
    int64_t here = s->channels / p->sum_slices, own_groups = p->columns / w->t->rows, lanes = w->t->rows / x.lanes,
            groups = own_groups / x.groups, part = here / (x.channels * x.packets), rows = size_of(q, q->windows[0].summed),
            places = size_of(q, q->windows[1].summed);
    weights_text n = {.lanes = column_digit(w, 1, lanes),
                      .groups = column_digit(w, w->t->rows, groups),
                      .down = x.rows > 1 ? NULL : w->down,
                      .across = padded_digit(w, w->across, places, s->across, 1, s->across),
                      .channel = part == s->channels ? w->port_channel : channel_digit(w, 1, part),
                      .packets = lanes * groups * rows * (s->across / s->taps),
                      .is_between = p->sum_slices > 1 && p->around > 1};
    const char *outer = channel_digit(w, part, x.channels), *all_groups = column_digit(w, w->t->rows, own_groups),
               *group_parts = column_digit(w, w->t->rows * groups, x.groups);
    const char *steps = s->taps > 1 ? padded_digit(w, w->across, places, s->across, s->taps, s->across / s->taps) : w->across;
    const taps_text taps = taps_text_of(w, &x);
    n.time = TUNE_LIST(w->a, n.lanes, n.groups, n.down, steps);
    n.parts = TUNE_LIST(w->a, column_digit(w, lanes, x.lanes), group_parts, outer);
    if (p->packed > 1) {
        const step_text step = step_of(w);
        n.time = TUNE_LIST(w->a, n.lanes, step.of_slice, step.groups, n.down, n.across);
        n.element = TUNE_LIST(w->a, step.of_slice, step.groups, n.down, n.across, padded_to(w, step.packet, s->live, s->run));
    } else if (taps.are_parts) {
        n.down = taps.down;
        n.across = taps.across;
        n.time = TUNE_LIST(w->a, n.lanes, n.down, n.across, n.groups);
        n.parts = TUNE_LIST(w->a, column_digit(w, lanes, x.lanes), group_parts, taps.parts);
        n.packets = lanes * groups * taps.count;
        n.element = TUNE_LIST(w->a, group_parts, taps.parts, n.down, n.across, n.groups, n.channel);
    } else if (n.is_between) {
        n.parts = TUNE_LIST(w->a, x.rows > 1 ? padded_digit(w, w->down, rows, x.rows, 1, x.rows) : NULL, group_parts,
                            channel_digit(w, part, x.packets));
        n.element = TUNE_LIST(w->a, n.groups, n.down, n.across, n.parts, n.channel);
    } else if (s->taps > 1) {
        const char *packet = TUNE_LIST(w->a, padded_digit(w, w->across, places, s->across, 1, s->taps), n.channel);
        n.element =
            TUNE_LIST(w->a, all_groups, w->down, steps, s->live == s->run ? packet : arena_printf(w->a, "[%s] # %" PRId64, packet, s->run));
    } else if (s->run != here)
        n.element =
            TUNE_LIST(w->a, all_groups, w->down, n.across, padded_digit(w, w->channel, size_of(q, q->window_channel), s->run, 1, s->run));
    else
        n.element = TUNE_LIST(w->a, all_groups, outer, w->down, n.across, n.channel);
    return n;
}

/* Of all turns. */
static void write_weights(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    weights_text n = weights_text_of(w);
    int64_t columns = window_own_columns(p), here = w->shape.channels / p->sum_slices;
    tune_begin_step(&w->page, TUNE_LOAD_WEIGHTS,
                    p->around > 1
                        ? arena_printf(w->a, "%" PRId64 " columns for each %" PRId64 " slices, each column once", columns, p->around)
                    : p->sum_slices > 1 ? arena_printf(w->a, "%" PRId64 " columns for each slice, and %" PRId64 " %s of them", columns,
                                                       here, tune_is_product(q) ? "elements" : "channels")
                                        : arena_printf(w->a, "%" PRId64 " columns for each slice", columns));
    tune_line(&w->page, "let columns: DmTensor<%s, Chip, Cluster, %s, m![%s]> = %s.to_dm(&mut device.tdma);",
              type_name(q->stored[q->weights]), p->around > 1 ? slices_that_spread(w, n.parts) : "Slice",
              TUNE_LIST(w->a, turn_digit(w), p->around > 1 ? TUNE_LIST(w->a, n.groups, n.lanes) : column_digit(w, 1, p->columns), n.down,
                        n.across, n.channel),
              q->tensors[q->weights].port);
    tune_end_step(&w->page, TUNE_LOAD_WEIGHTS);
    write_border(w);
}

/* Of one turn, into the TRF. */
static void write_weights_of_turn(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    weights_text n = weights_text_of(w);
    tune_begin_step(&w->page, TUNE_STORE_WEIGHTS,
                    arena_printf(w->a, "%s%s%s",
                                 p->turns > 1 ? "A part of the columns after the other, as the TRF has room: into it" : "Into the TRF",
                                 p->main_weights      ? " by the main context, 32 bytes a cycle: the sub context's 8 would be waited for"
                                 : tune_is_product(q) ? " by the sub context, while the rows arrive"
                                                      : " by the sub context, while the image arrives",
                                 p->around > 1 ? arena_printf(w->a, "; all get what each of %" PRId64 " slices has", p->around) : ""));
    tune_line(&w->page, "let weights: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.%s", type_name(q->type), lanes_of(w),
              n.element, p->main_weights ? "main" : "sub");
    tune_line(&w->page, "    .begin(columns.view()%s)", turn_of(w));
    /* whole packets are fetched, since what pads them follows each */
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", n.time, w->shape.taps > 1 || p->packed > 1 ? step_of(w).fetched : n.channel);
    write_cast(w, q->weights);
    if (n.is_between)
        tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
                  TUNE_LIST(w->a, n.time, n.parts), p->around, p->sum_slices);
    else if (p->around > 1)
        tune_line(&w->page,
                  "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
                  TUNE_LIST(w->a, n.parts, n.time), p->around, n.packets);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    tune_end_step(&w->page, TUNE_STORE_WEIGHTS);
}

/* The rows of a slice's results, with their halo; after its places the rest of a packet. */
static void write_image(window_writer *w, const char *tile, const char *places)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    int64_t live = window_places_of(q, p, 1, p->places), more = w->shape.across - size_of(q, q->windows[1].summed);
    const char *channel = q->depthwise         ? column_digit(w, 1, p->columns)
                          : p->sum_slices == 1 ? w->port_channel
                                               : channel_digit(w, 1, w->shape.channels / p->sum_slices);
    tune_begin_step(
        &w->page, TUNE_LOAD_ROWS,
        tune_is_product(q)
            ? arena_printf(w->a, "%" PRId64 " rows for each slice%s", p->rows, p->sum_slices > 1 ? ", of a part of the sum" : "")
            : arena_printf(w->a, "The image's rows for %" PRId64 " rows of results in each slice, with their halo", p->rows));
    const char *groups = groups_of_slice(w);
    bool outside = w->shape.taps > 1; /* places of a group are side by side */
    const char *element =
                   TUNE_LIST(w->a, outside ? groups : NULL, window_in_slice(w, tile, w->down, 0),
                             padded_to(w, window_in_slice(w, places, w->across, 1), live, live + more), outside ? NULL : groups, channel),
               *type = type_name(q->stored[q->stream]);
    /* of what has the chips' part of the columns no copy makes others: clusters and slices get copies, and their names after */
    w->unnamed = q->share[TUNE_COLUMN].axis && !q->depthwise && !q->is_grouped && (p->column_slices > 1 || p->columns_of_clusters);
    const char *cluster = w->unnamed && p->columns_of_clusters ? arena_printf(w->a, "m![%" PRId64 "]", w->t->clusters_per_chip) : "Cluster",
               *slice = w->unnamed ? slices_with(w, places_of_slices(w), sums_of_slices(w)) : "Slice";
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, %s, %s, m![%s]> = %s%s.to_dm(&mut device.tdma);", type, cluster, slice, element,
              q->tensors[q->stream].port, part_of_image(w, ".view()"));
    if (w->unnamed)
        tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { rows.reshape() };", type, element);
    w->unnamed = false;
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
}

static void write_products(window_writer *w, const char *tile, const char *places)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    const window_shape *s = &w->shape;
    const tune_epilogue *e = tune_epilogue_of(q, 1, p->sums_wait);
    step_text x = step_of(w);
    const char *across = s->taps > 1 ? x.steps : w->across, *steps = s->taps > 1 ? NULL : x.steps;
    bool collects =
        s->run != s->channels / p->sum_slices && s->taps == 1 && p->packed == 1 && !q->depthwise; /* several packets out of one fetch */
    tune_begin_step(&w->page, TUNE_MULTIPLY,
                    q->depthwise ? arena_printf(w->a,
                                                "The window goes over the image as strides of the fetch; %" PRId64
                                                " channels side by side stay, and the Reducer sums in time",
                                                s->live)
                                 : arena_printf(w->a, "%s packet meets %" PRId64 " packets of weights%s",
                                                tune_is_product(q) ? "A" : "The window goes over the image as strides of the fetch; a",
                                                window_column_groups(w->t, q, p) / window_groups_of(w->t, q, p->columns),
                                                p->sum_slices > 1
                                                    ? arena_printf(w->a, "; the sums of %" PRId64 " slices are added in the Vector Engine",
                                                                   p->sum_slices)
                                                    : ""));
    if (p->turns == 1)
        begin_values(w, e, 0, false);
    else
        tune_line(&w->page, "device.main");
    tune_line(&w->page, "    .begin(rows.view())");
    const char *summed =
        q->depthwise ? TUNE_LIST(w->a, x.groups, w->down, across) : TUNE_LIST(w->a, x.of_slice, x.outside, w->down, across, steps);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()",
              TUNE_LIST(w->a, tile, places, collects ? TUNE_LIST(w->a, x.of_slice, w->down, across) : summed), x.fetched);
    write_cast(w, q->stream);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&weights)",
              TUNE_LIST(w->a, tile, places, summed, q->depthwise ? NULL : x.groups), x.full);
    tune_line(&w->page, "    .contract_packet::<m![%s]>()", q->depthwise ? x.packet : x.packed ? x.packed : "1");
    const char *kept = TUNE_LIST(w->a, tile, places, x.of_slice, x.groups);
    tune_line(&w->page, "    .contract_time::<m![%s]>()", kept);
    if (q->depthwise)
        tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Sequential)",
                  TUNE_LIST(w->a, kept, column_digit(w, w->t->rows, s->live / w->t->rows)), lanes_of(w));
    else
        tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", TUNE_LIST(w->a, kept, x.packed), lanes_of(w));
    write_pass(w, e->count > 0 ? &e->passes[0] : NULL,
               p->sum_slices > 1 ? TUNE_LIST(w->a, own_rows(w), own_places(w), p->turns > 1 ? x.groups : column_groups(w)) : NULL);
    end_values(w, e, 0);
    tune_end_step(&w->page, TUNE_MULTIPLY);
}

/* Whole rows of results into the slices that write them. */
static void write_bring(window_writer *w)
{
    const tune_question *q = w->q;
    int64_t rows = window_rows(q, w->p), each = window_rows_brought(w->t, q, w->p), parts = ceil_div(rows, each), slices = 1;
    while (slices < parts)
        slices *= 2;
    const char *idle = slices < w->t->slices_per_cluster ? arena_printf(w->a, "1 # %" PRId64, w->t->slices_per_cluster / slices) : NULL;
    const char *shared = padded_digit(w, w->row, rows, slices > 1 ? slices * each : rows, each, slices),
               *own = each == rows ? w->row : padded_digit(w, w->row, rows, slices * each, 1, each);
    if (w->p->images_in_rows) {
        shared = row_digit_of_all(w, each, parts);
        shared = slices == parts ? shared : arena_printf(w->a, "[%s] # %" PRId64, shared, slices);
        own = row_digit_of_all(w, 1, each);
    }
    tune_write_bring(&w->page, w->t, q, each, "row", NULL, TUNE_LIST(w->a, shared, idle), TUNE_LIST(w->a, own, w->place, w->columns));
}

/* The places of a row into one slice, by the Switch Engine. */
static void write_join(window_writer *w)
{
    const window_plan *p = w->p;
    int64_t packet = window_joined_packet(w->t, w->q, p);
    const char *slice = slices_with(w, TUNE_LIST(w->a, row_digit(w, p->rows, p->row_slices), padding_of(w, p->place_slices)), NULL),
               *time = TUNE_LIST(w->a, own_rows(w), own_places(w), column_digit(w, packet, window_own_columns(p) / packet)),
               *lanes = column_digit(w, 1, packet);
    tune_begin_step(
        &w->page, TUNE_REGROUP,
        arena_printf(w->a, "The places of a row from %" PRId64 " slices into one, so that HBM is written in long pieces", p->place_slices));
    tune_line(&w->page, "let joined: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", type_name(w->q->out_type), slice,
              TUNE_LIST(w->a, own_rows(w), place_digit(w, 1, p->padded_places), own_columns(w)));
    tune_line(&w->page, "    .begin(products.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time, lanes);
    tune_line(&w->page, "    .switch::<%s, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: 1 })", slice,
              TUNE_LIST(w->a, time, place_digit(w, p->places, p->place_slices)), p->place_slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", lanes);
    tune_line(&w->page, "    .commit();");
    tune_end_step(&w->page, TUNE_REGROUP);
}

/* Those of each image, or of all. */
static void write_extras(window_writer *w, bool of_images)
{
    for (size_t i = 0; i < w->q->extra_count; i++)
        if ((w->image && w->q->extras[i].has[TUNE_BATCH]) == of_images) {
            load_extra(w, i);
            if (window_parts_count(&w->parts) == 1 || !window_parts_have(w->p, &w->q->extras[i]))
                keep_extra(w, i);
        }
}

static void write_kernel(window_writer *w)
{
    const tune_question *q = w->q;
    const window_plan *p = w->p;
    const tune_epilogue *e = tune_epilogue_of(q, 1, p->sums_wait);
    const char *tile = row_digit(w, 1, p->rows), *places = place_digit(w, 1, p->places);
    write_head_of_kernel(w);
    if (q->depthwise)
        write_weights_of_channels(w);
    else
        write_weights(w);
    if (!q->depthwise && p->turns == 1)
        write_weights_of_turn(w);
    if (!p->sums_wait)
        write_extras(w, false);
    if (w->image) {
        tune_line(&w->page, "for g in 0..%" PRId64 " {", q->size[TUNE_BATCH]);
        w->page.depth++;
    }
    write_extras(w, true);
    write_image(w, tile, places);
    if (p->turns > 1) {
        begin_values(w, e, 0, true);
        tune_line(&w->page, "for n in 0..%" PRId64 " {", p->turns);
        w->page.depth++;
        write_weights_of_turn(w);
    }
    write_products(w, tile, places);
    if (p->turns > 1) {
        w->page.depth--;
        tune_line(&w->page, "}");
    }
    if (p->sums_wait)
        write_extras(w, false);
    if (window_parts_count(&w->parts) == 1)
        write_passes_of_values(w, e);
    else
        write_passes_of_parts(w, e);
    if (p->brings)
        write_bring(w);
    if (p->joins)
        write_join(w);
    const char *result = p->brings ? "whole" : p->joins ? "joined" : "products";
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

void window_write(const target *t, const tune_question *q, const window_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out)
{
    const tune_axis *x = q->axes;
    window_writer w = {.q = q,
                       .p = p,
                       .t = t,
                       .a = a,
                       .page = {out, found, a, 0},
                       .shape = window_shape_of(t, q, p),
                       .results = window_results_of(t, p),
                       .part = "",
                       .images = q->axis_text[TUNE_BATCH],
                       .image =
                           p->images_in_rows || q->size[TUNE_BATCH] == 1 ? NULL : q->axis_text[TUNE_BATCH], /* one alone is as none is */
                       .row = x[q->windows[0].kept].name,
                       .place = x[q->windows[1].kept].name,
                       .down = x[q->windows[0].summed].name,
                       .across = x[q->windows[1].summed].name,
                       .channel = x[q->window_channel].name,
                       .group = q->groups == 1               ? NULL
                                : q->share[TUNE_COLUMN].axis ? q->axis_text[TUNE_COLUMN]
                                                             : x[q->window_group].name,
                       .column = q->groups > 1 ? x[q->tensors[q->weights].axes[1]].name : q->axis_text[TUNE_COLUMN]};
    w.columns = TUNE_LIST(a, w.group, w.column);
    int64_t channels = size_of(q, q->window_channel);
    w.port_channel = q->depthwise ? column_digit(&w, 1, window_columns(t, q)) : padded_to(&w, w.channel, channels, w.shape.channels);
    w.place_channels = TUNE_LIST(a, w.group, w.port_channel);
    window_parts_of(t, q, p, &w.parts);
    const char *sums = sums_of_slices(&w);
    w.slice = slices_with(&w, places_of_slices(&w), sums);
    w.result_slice = sums ? slices_with(&w, places_of_slices(&w), shared_digit(&w)) : "Slice";
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    write_kernel(&w);
}
