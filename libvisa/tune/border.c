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
    bool each; /* an image at a time */
} border_writer;

/* Places that are whole blocks of HBM together. */
static int64_t block_places(const target *t, const tune_question *q, int64_t of_place)
{
    return t->hbm_block_bytes / gcd(t->hbm_block_bytes, larger(1, tune_bytes_of(q->stored[q->stream], of_place)));
}

int64_t border_places(const target *t, const tune_question *q, int64_t of_place)
{
    const tune_window *x = &q->windows[1];
    bool are_digits =
        (x->dilation == 1 && x->stride == q->axes[x->summed].size) || (x->stride == 1 && x->dilation == q->axes[x->kept].size);
    if (x->wide == x->own.name ||
        are_digits) /* without a window, or with such as share no place: mappings have padding after no group of digits */
        return tune_window_places(q, 1);
    int64_t unit = block_places(t, q, of_place);
    return ceil_div(tune_window_places(q, 1), unit) * unit;
}

static border_writer begin(tune_page *page, const target *t, const tune_question *q, int64_t of_place)
{
    border_writer w = {
        .page = page, .t = t, .q = q, .a = page->arena, .of_place = of_place, .type = dtype_row_of(q->stored[q->stream])->name};
    w.all[0] = tune_window_places(q, 0);
    w.all[1] = border_places(t, q, of_place);
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

void border_write_axes(tune_page *page, const target *t, const tune_question *q, int64_t of_place)
{
    border_writer w = begin(page, t, q, of_place);
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
    int64_t clusters = rows->count % w->t->clusters_per_chip ? 1 : w->t->clusters_per_chip, of_cluster = rows->count / clusters;
    border_spread s = spread_over_slices(w->t, of_cluster, 1);
    const char *row = first_places(w, 0, rows->count), *all = first_places(w, 1, w->all[1]),
               *cluster = clusters > 1 ? arena_printf(w->a, "%s / %" PRId64, row, of_cluster) : tune_idle_clusters(w->t, w->a),
               *here = clusters == 1    ? row
                       : of_cluster > 1 ? arena_printf(w->a, "%s %% %" PRId64, row, of_cluster)
                                        : NULL,
               *slice = here ? slices_of_spread(w, &s, here, of_cluster) : padded_slices(w, "1", 1),
               *own = here ? own_of_spread(w, &s, here, of_cluster) : NULL;
    const char *port = w->q->tensors[w->q->stream].port;
    bool zeros = places->zeros || w->all[1] > places->count,
         by_pass = w->fill->is_short && s.of_slice * (w->each ? 1 : w->q->size[TUNE_BATCH]) *
                                                tune_bytes_of(w->q->stored[w->q->stream], w->all[1] * w->of_place) >
                                            MEMSET_BYTES;
    tune_line(w->page, "// Rows of the image%s", zeros ? arena_printf(w->a, ", which get %s at their ends", w->fill->name) : "");
    tune_line(w->page, "let mut framed: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = DmTensor::new();", w->type, cluster, slice,
              TUNE_LIST(w->a, w->each ? NULL : w->images, own, all, w->channel));
    if (zeros && !by_pass)
        tune_line(w->page, "framed.view_mut().memset(%s, &mut device.sub);", w->fill->value);
    if (zeros && by_pass)
        write_ends(w, cluster, slice, own);
    tune_line(w->page, "let %s = %s.view().reshape::<Chip, m![%s]>();", port, port,
              TUNE_LIST(w->a, w->images, first_places(w, 0, w->q->windows[0].own.size), first_places(w, 1, w->q->windows[1].own.size),
                        w->channel));
    begin_images(w);
    tune_begin_step(w->page, TUNE_LOAD_IMAGE, zeros ? "Between them the image" : "The image");
    tune_line(w->page, "%s%s%s%s.to_dm_view(&mut device.tdma, framed.view_mut()%s);", port, image_tile(w),
              tile_of(w, 0, rows->from, rows->count, w->q->windows[0].own.size),
              tile_of(w, 1, places->from, places->count, w->q->windows[1].own.size), tile_of(w, 1, places->to, places->count, w->all[1]));
    tune_end_step(w->page, TUNE_LOAD_IMAGE);
    tune_begin_step(w->page, TUNE_STORE_IMAGE, "And into HBM, where windows are taken of them");
    tune_line(w->page, "framed.view().to_hbm_view(&mut device.tdma, bordered.view_mut()%s%s);", image_tile(w),
              tile_of(w, 0, rows->to, rows->count, w->all[0]));
    tune_end_step(w->page, TUNE_STORE_IMAGE);
    end_images(w);
}

void border_write(tune_page *page, const target *t, const tune_question *q, const border_fill *fill, const char *images,
                  const char *channel, int64_t of_place, const char *windows)
{
    border_writer w = begin(page, t, q, of_place);
    w.fill = fill;
    w.images = images;
    w.channel = channel;
    const tune_border *rows = &w.inside[0];
    int64_t row_bytes = tune_bytes_of(q->stored[q->stream], w.all[1] * of_place), behind = w.all[0] - rows->to - rows->count,
            of_slice = ceil_div(rows->count, t->slices_per_cluster);
    w.each = images && q->size[TUNE_BATCH] > 1 && of_slice * row_bytes > SLICE_BYTES_MAX / q->size[TUNE_BATCH];
    tune_line(page, "let mut bordered: HbmTensor<%s, Chip, m![%s]> = HbmTensor::new();", w.type,
              TUNE_LIST(w.a, images, first_places(&w, 0, w.all[0]), first_places(&w, 1, w.all[1]), channel));
    int64_t regions[2][2] = {{0, w.all[0]}};
    const int64_t together = w.each ? 1 : q->size[TUNE_BATCH];
    bool whole =
        w.all[0] * row_bytes <= ZERO_BYTES_MAX / q->size[TUNE_BATCH] && (!fill->is_short || row_bytes <= LONG_ROW_BYTES / together);
    size_t count = whole && rows->zeros;
    if (!whole && rows->to > 0)
        regions[count++][1] = rows->to;
    if (!whole && behind > 0) {
        regions[count][0] = w.all[0] - behind;
        regions[count++][1] = behind;
    }
    if (count > 0)
        write_zeros(&w, regions, count, whole);
    write_rows(&w);
    tune_line(page, "let %s: HbmTensor<%s, Chip, m![%s]> = bordered.reshape();", q->tensors[q->stream].port, w.type, windows);
}
