#include "libvisa/tune/border.h"

#include <inttypes.h>

#include "libvisa/tune/machine.h"
#include "support/integer.h"

enum {
    SLICE_BYTES_MAX = 1 << 16, /* of all images together; else one comes after the other */
    ZERO_BYTES_MAX = 1 << 19,  /* of images that are filled as a whole: a copy less than their rows in front and behind */
    WORD_BYTES = 8,
    LONG_ROW_BYTES = 8192, /* of a slice, which memset fills for longer than a copy of the rows in front takes */
    PIECE_BYTES = 2048,    /* of zeros that a slice writes, at least */
    MEMSET_BYTES = 4096    /* of a slice, which memset fills while copies start: 8 a cycle. Of more a pass fills the ends of rows alone */
};

typedef struct border_writer {
    tune_page *page;
    const target *t;
    const tune_question *q;
    arena *a;
    const border_fill *fill;
    const char *images, *channel, *type;
    int64_t of_place, all[TUNE_WINDOWS], wide[TUNE_WINDOWS]; /* places in HBM, and of the axis that counts them */
    tune_border inside[TUNE_WINDOWS];
    int64_t of_slice; /* rows of all, zeros as well, that a slice writes; 0: zeros are written apart */
    bool each;        /* an image at a time */
} border_writer;

/* Places that are whole blocks of HBM together. */
static int64_t block_places(const target *t, const tune_question *q, int64_t of_place)
{
    return t->hbm_block_bytes / gcd(t->hbm_block_bytes, larger(1, tune_bytes_of(q->stored[q->stream], of_place)));
}

/* Without a window, or with such as share no place: mappings have padding after no group of digits. */
static bool has_no_padding(const tune_question *q, size_t window)
{
    const tune_window *x = &q->windows[window];
    bool are_digits =
        (x->dilation == 1 && x->stride == q->axes[x->summed].size) || (x->stride == 1 && x->dilation == q->axes[x->kept].size);
    return x->wide == x->own.name || are_digits;
}

int64_t border_places(const target *t, const tune_question *q, int64_t of_place)
{
    if (has_no_padding(q, 1))
        return tune_window_places(q, 1);
    int64_t unit = block_places(t, q, of_place);
    return ceil_div(tune_window_places(q, 1), unit) * unit;
}

/* A digit of so many positions over slices, the last of which may have padding: those of a slice follow each other. */
typedef struct border_spread {
    int64_t of_slice, slices, apart; /* apart: idle slices between them, so that neighbours do not share what brings their bytes */
} border_spread;

static border_spread spread_over_slices(const target *t, int64_t count, int64_t least)
{
    border_spread s = {.of_slice = larger(least, ceil_div(count, t->slices_per_cluster)), .apart = 1};
    s.slices = ceil_div(count, s.of_slice);
    while (s.slices * s.apart * 2 <= t->slices_per_cluster)
        s.apart *= 2;
    return s;
}

/* Rows of the image alone: slices have as many each, since padding would be no digit of the rows; in both clusters where that is even and
 * leaves half of the slices at most. */
typedef struct border_rows_spread {
    int64_t clusters;
    border_spread of_cluster;
    bool is_even; /* that is so */
} border_rows_spread;

static border_rows_spread spread_rows(const target *t, int64_t count)
{
    border_rows_spread x = {.is_even = false};
    for (x.clusters = t->clusters_per_chip; x.clusters >= 1 && !x.is_even; x.clusters--) {
        int64_t here = count / x.clusters, most = here / larger(1, ceil_div(here, t->slices_per_cluster)),
                slices = largest_divisor(here, most);
        x.is_even = count % x.clusters == 0 && 2 * slices >= most;
        if (x.is_even || x.clusters == 1)
            x.of_cluster = spread_over_slices(t, here, larger(1, here / larger(1, slices)));
    }
    x.clusters++;
    return x;
}

/* A copy of so many runs of so many bytes for each slice, between HBM and so many clusters. */
static int64_t copy_cycles(const target *t, const border_spread *s, int64_t clusters, int64_t runs, int64_t bytes)
{
    int64_t of_dmn = ceil_div(smaller(t->dm_slices_per_dmn, s->slices * s->apart), s->apart),
            of_engine = ceil_div(smaller(t->dm_slices_per_dmn * t->dma_dmns_per_engine, s->slices * s->apart), s->apart),
            all = s->slices * clusters * runs * round_up(bytes, t->hbm_burst_bytes);
    int64_t channel = all / t->hbm_burst_bytes * t->hbm_burst_millicycles / 1000 / t->hbm_channels;
    return t->dma_startup_cycles + larger(channel, larger(of_dmn * runs * ceil_div(bytes, t->dmn_bytes_per_cycle),
                                                          of_engine * runs * ceil_div(bytes, t->dma_request_bytes)));
}

/* Copies of an image, or of all: they are in DM at once. */
typedef struct border_bytes {
    int64_t row, taken; /* of a row, and of what the image has of it */
    int64_t images;
} border_bytes;

static border_bytes bytes_of(const target *t, const tune_question *q, int64_t of_place)
{
    dtype type = q->stored[q->stream];
    return (border_bytes){tune_bytes_of(type, border_places(t, q, of_place) * of_place),
                          tune_bytes_of(type, tune_border_of(q, 1).count * of_place), q->size[TUNE_BATCH]};
}

/* Rows of the image in front of and behind those of whole slices. */
typedef struct border_rest {
    int64_t head, tail;
} border_rest;

static border_rest rest_of(const tune_border *rows, int64_t here)
{
    int64_t head = smaller(rows->count, ceil_div(rows->to, here) * here - rows->to);
    return (border_rest){head, (rows->count - head) % here};
}

/* Rows that a slice has of the image and its rows of zeros, which it writes in one piece of whole blocks; 0: zeros are written apart. */
static int64_t rows_together(const target *t, const tune_question *q, int64_t of_place)
{
    const tune_border rows = tune_border_of(q, 0);
    const border_bytes b = bytes_of(t, q, of_place);
    int64_t all = tune_window_places(q, 0), unit = t->hbm_block_bytes / gcd(t->hbm_block_bytes, b.row),
            here = round_up(ceil_div(all, t->slices_per_cluster), unit);
    bool has_name = q->windows[0].wide != q->windows[0].own.name && (all % here == 0 || !has_no_padding(q, 0));
    if (!rows.zeros || !has_name || here * b.row > SLICE_BYTES_MAX / b.images)
        return 0;
    const border_rest rest = rest_of(&rows, here);
    bool one_element =
        tune_border_of(q, 1).count * q->axes[q->window_channel].size * q->groups == 1; /* of a row: a copy of it alone is of padding, too */
    return one_element && (rest.head == 1 || rest.tail == 1) ? 0 : here;
}

/* Rows that begin inside of a block are never written apart, nor those that no slices share evenly. */
bool border_has_choice(const target *t, const tune_question *q, int64_t of_place)
{
    return tune_has_border(q) && rows_together(t, q, of_place) > 0 && bytes_of(t, q, of_place).row % t->hbm_block_bytes == 0 &&
           spread_rows(t, tune_border_of(q, 0).count).is_even;
}

static int64_t rows_of_slice(const target *t, const tune_question *q, int64_t of_place, border_way way)
{
    bool apart = way == BORDER_AS_ROWS || (way == BORDER_APART && border_has_choice(t, q, of_place));
    return apart ? 0 : rows_together(t, q, of_place);
}

/* A fill of DM, and what is copied meanwhile: weights, and zeros that are written once, or in front and behind. */
static int64_t cycles_apart(const target *t, const tune_question *q, const border_bytes *b, int64_t weights)
{
    const tune_border rows = tune_border_of(q, 0);
    int64_t all = tune_window_places(q, 0), zeros = 0;
    const border_rows_spread x = spread_rows(t, rows.count);
    const border_spread *s = &x.of_cluster, of_zeros = spread_over_slices(t, all, 1);
    if (all * b->row <= ZERO_BYTES_MAX / b->images)
        zeros = copy_cycles(t, &of_zeros, 1, of_zeros.of_slice * b->images, b->row);
    else
        zeros = ((rows.to > 0) + (all > rows.to + rows.count)) * t->dma_startup_cycles;
    int64_t runs = s->of_slice * b->images;
    return larger(runs * b->row / t->fetch_access_sub_bytes, weights + zeros) + copy_cycles(t, s, x.clusters, runs, b->taken) +
           copy_cycles(t, s, x.clusters, runs, b->row);
}

static int64_t cycles_together(const target *t, const tune_question *q, const border_bytes *b, int64_t here, int64_t weights)
{
    const tune_border rows = tune_border_of(q, 0);
    border_spread s = spread_over_slices(t, tune_window_places(q, 0), here);
    const border_rest rest = rest_of(&rows, here);
    int64_t more = (rest.head > 0) + (rest.tail > 0), runs = here * b->images;
    return larger(runs * b->row / t->fetch_access_sub_bytes, weights) + more * t->dma_startup_cycles +
           copy_cycles(t, &s, 1, runs, b->taken) + copy_cycles(t, &s, 1, runs, b->row);
}

border_way border_way_of(const target *t, const tune_question *q, int64_t of_place)
{
    if (!border_has_choice(t, q, of_place))
        return BORDER_TOGETHER;
    const border_bytes b = bytes_of(t, q, of_place);
    int64_t weights = t->dma_startup_cycles + tune_bytes_of(q->stored[q->weights], q->size[TUNE_COLUMN] * q->size[TUNE_SUM]) *
                                                  t->hbm_burst_millicycles / 1000 / t->hbm_burst_bytes / t->hbm_channels;
    return cycles_together(t, q, &b, rows_together(t, q, of_place), weights) < cycles_apart(t, q, &b, weights) ? BORDER_TOGETHER
                                                                                                               : BORDER_APART;
}

int64_t border_rows(const target *t, const tune_question *q, int64_t of_place, border_way way)
{
    int64_t here = rows_of_slice(t, q, of_place, way), all = tune_window_places(q, 0);
    return here > 0 ? round_up(all, here) : all;
}

static border_writer begin(tune_page *page, const target *t, const tune_question *q, int64_t of_place, border_way way)
{
    border_writer w = {
        .page = page, .t = t, .q = q, .a = page->arena, .of_place = of_place, .type = dtype_row_of(q->stored[q->stream])->name};
    w.all[0] = border_rows(t, q, of_place, way);
    w.all[1] = border_places(t, q, of_place);
    w.of_slice = rows_of_slice(t, q, of_place, way);
    for (size_t i = 0; i < TUNE_WINDOWS; i++) {
        w.inside[i] = tune_border_of(q, i);
        w.wide[i] = larger(w.all[i], q->windows[i].own.size);
    }
    return w;
}

/* Has the kernel an axis for the image with zeros? An axis without a window is its own. */
static bool is_made(const border_writer *w, size_t window)
{
    return w->q->windows[window].wide != w->q->windows[window].own.name;
}

const char *border_image(const tune_question *q, const char *channel, arena *a)
{
    return TUNE_LIST(a, q->windows[0].own.name, q->windows[1].own.name, channel);
}

void border_write_axes(tune_page *page, const target *t, const tune_question *q, int64_t of_place, border_way way)
{
    border_writer w = begin(page, t, q, of_place, way);
    for (size_t i = 0; i < TUNE_WINDOWS; i++)
        if (is_made(&w, i))
            strbuf_printf(&page->out->text, ", %s = %" PRId64 ", %s = %" PRId64, q->windows[i].own.name, q->windows[i].own.size,
                          q->windows[i].wide, w.wide[i]);
}

/* "H_WIDE = 16": so many of the axis's places; it is whole or not. */
static const char *first_places(const border_writer *w, size_t window, int64_t count)
{
    const char *wide = w->q->windows[window].wide;
    return !wide || count == w->wide[window] ? wide : arena_printf(w->a, "%s = %" PRId64, wide, count);
}

/* "": all of them. */
static const char *tile_of(const border_writer *w, size_t window, int64_t from, int64_t count, int64_t all)
{
    return count == all ? "" : arena_printf(w->a, ".tile::<m![%s], %" PRId64 ", _>(%" PRId64 ")", w->q->windows[window].wide, count, from);
}

static const char *image_tile(const border_writer *w)
{
    return w->each ? arena_printf(w->a, ".tile::<m![%s], 1, _>(g)", w->images) : "";
}

static void begin_images(const border_writer *w)
{
    if (w->each)
        tune_line(w->page, "for g in 0..%" PRId64 " {", w->q->size[TUNE_BATCH]);
    w->page->depth += w->each;
}

static void end_images(const border_writer *w)
{
    w->page->depth -= w->each;
    if (w->each)
        tune_line(w->page, "}");
}

static const char *padded_slices(const border_writer *w, const char *digits, int64_t used)
{
    int64_t all = w->t->slices_per_cluster;
    return used == all ? digits : arena_printf(w->a, "[%s] # %" PRId64, digits, all);
}

static const char *spread_digit(const border_writer *w, const border_spread *s, const char *digit, int64_t count)
{
    return s->slices * s->of_slice > count ? arena_printf(w->a, "%s # %" PRId64, digit, s->slices * s->of_slice) : digit;
}

static const char *slices_of_spread(const border_writer *w, const border_spread *s, const char *digit, int64_t count)
{
    const char *all = spread_digit(w, s, digit, count), *one = s->slices == 1    ? NULL
                                                               : s->of_slice > 1 ? arena_printf(w->a, "%s / %" PRId64, all, s->of_slice)
                                                                                 : all;
    return padded_slices(w, TUNE_LIST(w->a, one, s->apart > 1 ? arena_printf(w->a, "1 # %" PRId64, s->apart) : NULL), s->slices * s->apart);
}

static const char *own_of_spread(const border_writer *w, const border_spread *s, const char *digit, int64_t count)
{
    const char *all = spread_digit(w, s, digit, count);
    return s->slices == 1 ? all : s->of_slice > 1 ? arena_printf(w->a, "%s %% %" PRId64, all, s->of_slice) : NULL;
}

/* So many positions, or a few more where slices have the same then: what one of them lacks is a copy of its own. */
static int64_t even_part(int64_t positions, int64_t least, int64_t unit)
{
    enum { FEW = 4 };
    for (int64_t part = least; part <= FEW * least; part += unit)
        if (positions % part == 0)
            return part;
    return least;
}

/* Rows of zeros, all or those in front and behind; slices have rows, or of a few rows so many places that their pieces are long. */
static void write_zeros(const border_writer *w, const int64_t (*regions)[2], size_t count, bool whole)
{
    int64_t rows = 0, unit = block_places(w->t, w->q, w->of_place);
    for (size_t i = 0; i < count; i++)
        rows = larger(rows, regions[i][1]);
    int64_t pieces = ceil_div(PIECE_BYTES, unit * tune_bytes_of(w->q->stored[w->q->stream], w->of_place)),
            least = smaller(w->all[1], pieces * unit), positions = whole ? rows : w->all[1];
    const char *row = first_places(w, 0, rows), *place = first_places(w, 1, w->all[1]), *digit = whole ? row : place;
    border_spread s = spread_over_slices(w->t, positions, whole ? 1 : w->fill->is_short ? even_part(positions, least, unit) : least);
    const char *slice = slices_of_spread(w, &s, digit, positions), *own = own_of_spread(w, &s, digit, positions),
               *mine = whole ? TUNE_LIST(w->a, own, place) : TUNE_LIST(w->a, row, own);
    tune_line(w->page, "// Windows take places around the image, which has none there: rows of %s", w->fill->name);
    tune_line(w->page, "let mut zeros: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = DmTensor::new();", w->type,
              tune_idle_clusters(w->t, w->a), slice, TUNE_LIST(w->a, w->each ? NULL : w->images, mine, w->channel));
    tune_line(w->page, "zeros.view_mut().memset(%s, &mut device.sub);", w->fill->value);
    begin_images(w);
    tune_begin_step(w->page, TUNE_STORE_ZEROS, count > 1 ? "In front of it and behind, each" : "Written once");
    for (size_t i = 0; i < count; i++)
        tune_line(w->page, "zeros.view()%s.to_hbm_view(&mut device.tdma, bordered.view_mut()%s%s);", tile_of(w, 0, 0, regions[i][1], rows),
                  image_tile(w), tile_of(w, 0, regions[i][0], regions[i][1], w->all[0]));
    tune_end_step(w->page, TUNE_STORE_ZEROS);
    end_images(w);
}

static void begin_framed(const border_writer *w, const char *cluster, const char *slice, const char *own, bool fills)
{
    const char *port = w->q->tensors[w->q->stream].port;
    tune_line(w->page, "let mut framed: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = DmTensor::new();", w->type, cluster, slice,
              TUNE_LIST(w->a, w->each ? NULL : w->images, own, first_places(w, 1, w->all[1]), w->channel));
    if (fills)
        tune_line(w->page, "framed.view_mut().memset(%s, &mut device.sub);", w->fill->value);
    tune_line(w->page, "let %s = %s.view().reshape::<Chip, m![%s]>();", port, port,
              TUNE_LIST(w->a, w->images, first_places(w, 0, w->q->windows[0].own.size), first_places(w, 1, w->q->windows[1].own.size),
                        w->channel));
}

/* So many rows of the image, from that one on, to a part of what is framed. */
static void load_rows(const border_writer *w, int64_t from, int64_t count, const char *into)
{
    const tune_border *places = &w->inside[1];
    tune_line(w->page, "%s%s%s%s.to_dm_view(&mut device.tdma, framed.view_mut()%s%s);", w->q->tensors[w->q->stream].port, image_tile(w),
              tile_of(w, 0, from, count, w->q->windows[0].own.size), tile_of(w, 1, places->from, places->count, w->q->windows[1].own.size),
              into, tile_of(w, 1, places->to, places->count, w->all[1]));
}

/* Elements of a place that a flit has: whole words. Of groups of channels one, which no group ends inside of. */
static int64_t flit_elements(const border_writer *w)
{
    int64_t bits = dtype_row_of(w->q->stored[w->q->stream])->bits, flit = (w->q->groups > 1 ? WORD_BYTES : w->t->flit_bytes) * 8 / bits;
    while (w->of_place % flit != 0)
        flit /= 2;
    return flit;
}

/* What rows have at their ends: a few places, which memset fills, and the main context puts there, since memset fills whole tensors. */
static void write_ends(const border_writer *w, const char *cluster, const char *slice, const char *own)
{
    static const char *const names[] = {"own_front", "own_behind"};
    const tune_border *places = &w->inside[1];
    const int64_t ends[][2] = {{0, places->to}, {places->to + places->count, w->all[1] - places->to - places->count}},
                  flit = flit_elements(w);
    for (size_t i = 0; i < 2; i++) {
        const char *place = first_places(w, 1, ends[i][1]), *rows = TUNE_LIST(w->a, w->each ? NULL : w->images, own, place);
        if (ends[i][1] == 0)
            continue;
        tune_line(w->page, "let mut %s: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = DmTensor::new();", names[i], w->type, cluster, slice,
                  TUNE_LIST(w->a, rows, w->channel));
        tune_line(w->page, "%s.view_mut().memset(%s, &mut device.sub);", names[i], w->fill->value);
        tune_line(w->page, "device.main");
        tune_line(w->page, "    .begin(%s.view())", names[i]);
        tune_line(w->page, "    .fetch::<m![%s, [%s] / %" PRId64 "], m![[%s] %% %" PRId64 "]>()", rows, w->channel, flit, w->channel, flit);
        tune_line(w->page, "    .collect()");
        tune_line(w->page, "    .commit_trim::<m![[%s] %% %" PRId64 "]>()", w->channel, flit);
        tune_line(w->page, "    .commit_view(framed.view_mut()%s);", tile_of(w, 1, ends[i][0], ends[i][1], w->all[1]));
    }
}

/* Rows of the image in DM, where places around theirs are zeros, one or a few for each slice. */
static void write_rows(const border_writer *w)
{
    const tune_border *rows = &w->inside[0], *places = &w->inside[1];
    const border_rows_spread x = spread_rows(w->t, rows->count);
    const border_spread s = x.of_cluster;
    int64_t clusters = x.clusters, of_cluster = rows->count / clusters;
    const char *row = first_places(w, 0, rows->count),
               *cluster = clusters > 1 ? arena_printf(w->a, "%s / %" PRId64, row, of_cluster) : tune_idle_clusters(w->t, w->a),
               *here = clusters == 1    ? row
                       : of_cluster > 1 ? arena_printf(w->a, "%s %% %" PRId64, row, of_cluster)
                                        : NULL,
               *slice = here ? slices_of_spread(w, &s, here, of_cluster) : padded_slices(w, "1", 1),
               *own = here ? own_of_spread(w, &s, here, of_cluster) : NULL;
    bool zeros = places->zeros || w->all[1] > places->count,
         by_pass = w->fill->is_short && s.of_slice * (w->each ? 1 : w->q->size[TUNE_BATCH]) *
                                                tune_bytes_of(w->q->stored[w->q->stream], w->all[1] * w->of_place) >
                                            MEMSET_BYTES;
    tune_line(w->page, "// Rows of the image%s", zeros ? arena_printf(w->a, ", which get %s at their ends", w->fill->name) : "");
    begin_framed(w, cluster, slice, own, zeros && !by_pass);
    if (zeros && by_pass)
        write_ends(w, cluster, slice, own);
    begin_images(w);
    tune_begin_step(w->page, TUNE_LOAD_IMAGE, zeros ? "Between them the image" : "The image");
    load_rows(w, rows->from, rows->count, "");
    tune_end_step(w->page, TUNE_LOAD_IMAGE);
    tune_begin_step(w->page, TUNE_STORE_IMAGE, "And into HBM, where windows are taken of them");
    tune_line(w->page, "framed.view().to_hbm_view(&mut device.tdma, bordered.view_mut()%s%s);", image_tile(w),
              tile_of(w, 0, rows->to, rows->count, w->all[0]));
    tune_end_step(w->page, TUNE_STORE_IMAGE);
    end_images(w);
}

/* Those of slices from `first` on, of so many rows, or rows inside of one. */
static const char *slices_of_rows(const border_writer *w, int64_t first, int64_t count, int64_t rows, int64_t apart)
{
    const char *wide = w->q->windows[0].wide, *digit = w->of_slice > 1 ? arena_printf(w->a, "%s / %" PRId64, wide, w->of_slice) : wide,
               *idle = apart > 1 ? arena_printf(w->a, "1 # %" PRId64, apart) : NULL,
               *left = count == 1        ? NULL
                       : w->of_slice > 1 ? arena_printf(w->a, "%s / %" PRId64, first_places(w, 0, rows), w->of_slice)
                                         : first_places(w, 0, rows);
    if (w->all[0] == w->of_slice) /* one slice */
        return "";
    return arena_printf(w->a, ".slice_tile::<m![%s], %" PRId64 ", m![%s]>(%" PRId64 ")", digit, count,
                        padded_slices(w, TUNE_LIST(w->a, left, idle), count * apart), first);
}

/* Rows of the image and of zeros in DM, so many of them for each slice: those of the image are whole slices, and what is in front and
 * behind in slices that have zeros as well. */
static void write_rows_with_zeros(const border_writer *w)
{
    const tune_border *rows = &w->inside[0];
    border_spread s = spread_over_slices(w->t, w->all[0], w->of_slice);
    const border_rest left = rest_of(rows, w->of_slice);
    int64_t here = w->of_slice, first = ceil_div(rows->to, here), whole = (rows->count - left.head) / here;
    const char *wide = w->q->windows[0].wide;
    tune_line(w->page, "// Windows take places around the image, which has none there: its rows, and rows of zeros");
    begin_framed(w, tune_idle_clusters(w->t, w->a), slices_of_spread(w, &s, wide, w->all[0]), own_of_spread(w, &s, wide, w->all[0]), true);
    begin_images(w);
    tune_begin_step(w->page, TUNE_LOAD_IMAGE,
                    whole > 0 && left.head + left.tail > 0 ? "The image, those of whole slices first" : "The image");
    if (whole > 0)
        load_rows(w, rows->from + left.head, whole * here, slices_of_rows(w, first, whole, whole * here, s.apart));
    const struct {
        int64_t from, count, slice, at;
    } rest[] = {{rows->from, left.head, first - 1, rows->to - (first - 1) * here},
                {rows->from + left.head + whole * here, left.tail, first + whole, 0}};
    for (size_t i = 0; i < 2; i++)
        if (rest[i].count > 0)
            load_rows(w, rest[i].from, rest[i].count,
                      arena_printf(w->a, "%s.tile::<m![%s %% %" PRId64 "], %" PRId64 ", _>(%" PRId64 ")",
                                   slices_of_rows(w, rest[i].slice, 1, 0, s.apart), wide, here, rest[i].count, rest[i].at));
    tune_end_step(w->page, TUNE_LOAD_IMAGE);
    tune_begin_step(w->page, TUNE_STORE_IMAGE, "And into HBM, where windows are taken of it");
    tune_line(w->page, "framed.view().to_hbm_view(&mut device.tdma, bordered.view_mut()%s);", image_tile(w));
    tune_end_step(w->page, TUNE_STORE_IMAGE);
    end_images(w);
}

void border_write(tune_page *page, const target *t, const tune_question *q, const border_fill *fill, const char *images,
                  const char *channel, int64_t of_place, border_way way, const char *windows)
{
    border_writer w = begin(page, t, q, of_place, way);
    w.fill = fill;
    w.images = images;
    w.channel = channel;
    const tune_border *rows = &w.inside[0];
    int64_t row_bytes = tune_bytes_of(q->stored[q->stream], w.all[1] * of_place), behind = w.all[0] - rows->to - rows->count,
            of_slice = ceil_div(rows->count, t->slices_per_cluster);
    w.each = w.of_slice == 0 && images && q->size[TUNE_BATCH] > 1 && of_slice * row_bytes > SLICE_BYTES_MAX / q->size[TUNE_BATCH];
    tune_line(page, "let mut bordered: HbmTensor<%s, Chip, m![%s]> = HbmTensor::new();", w.type,
              TUNE_LIST(w.a, images, first_places(&w, 0, w.all[0]), first_places(&w, 1, w.all[1]), channel));
    int64_t regions[2][2] = {{0, w.all[0]}};
    const int64_t together = w.each ? 1 : q->size[TUNE_BATCH];
    bool whole =
        w.all[0] * row_bytes <= ZERO_BYTES_MAX / q->size[TUNE_BATCH] && (!fill->is_short || row_bytes <= LONG_ROW_BYTES / together);
    size_t count = whole && rows->zeros && w.of_slice == 0;
    whole = whole || w.of_slice > 0;
    if (!whole && rows->to > 0)
        regions[count++][1] = rows->to;
    if (!whole && behind > 0) {
        regions[count][0] = w.all[0] - behind;
        regions[count++][1] = behind;
    }
    if (count > 0)
        write_zeros(&w, regions, count, whole);
    if (w.of_slice > 0)
        write_rows_with_zeros(&w);
    else
        write_rows(&w);
    tune_line(page, "let %s: HbmTensor<%s, Chip, m![%s]> = bordered.reshape();", q->tensors[q->stream].port, w.type, windows);
}
