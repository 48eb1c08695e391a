#include "libvisa/tune/pool_frame.h"

#include <inttypes.h>

#include "support/integer.h"

enum { MEMSET_BYTES = 4096 }; /* of a slice, which memset fills while a copy starts; of more passes fill the ends alone */

static const char *axis_of(const pool_question *q, const char *name, const char *what, arena *a)
{
    return tune_unused_name(q->image.axes, q->image.axis_count, arena_printf(a, "%s_%s", name, what), a);
}

bool pool_frame_of(const pool_question *q, const pool_box *b, int dim, arena *a, pool_frame *out)
{
    const pool_dim *d = &q->dims[dim];
    *out = (pool_frame){.parts = b->count[dim]};
    if ((dim != POOL_ROWS && dim != POOL_PLACES) || !d->name)
        return true;
    const tune_window *w = &q->image.windows[dim - POOL_ROWS];
    const tune_border border = tune_border_of(&q->image, (size_t)(dim - POOL_ROWS));
    if (w->wide == w->own.name)
        return true;
    out->is_made = true;
    out->held = pool_places(d, b->tile[dim]);
    if (out->parts == 1) {
        out->front = border.to;
        out->own = border.count;
        out->from = border.from;
        out->places_size = larger(out->held, w->own.size);
    } else {
        out->front = larger(0, w->before);
        out->own = b->tile[dim] * d->stride;
        out->places_size = out->held = larger(out->held, out->front + out->own);
    }
    out->behind = out->held - out->front - out->own;
    if (out->parts > 1 && (w->before < 0 || pool_padded(b, dim) != d->size || w->own.size != out->parts * out->own ||
                           out->front > out->own || out->behind > out->own || out->held != pool_places(d, b->tile[dim])))
        return false;
    if (!a)
        return true;
    out->part = out->parts > 1 ? axis_of(q, d->name, "PART", a) : NULL;
    out->places = axis_of(q, d->name, "HELD", a);
    out->result = b->tile[dim] == 1 ? NULL : out->parts > 1 ? axis_of(q, d->name, "OF_PART", a) : d->name;
    return true;
}

int64_t pool_padded_slices(const target *t, const pool_box *b, int dim)
{
    return power_of_two_above(pool_cluster_dim(t, b) == dim ? b->count[dim] / t->clusters_per_chip : b->count[dim]);
}

bool pool_is_framed(const target *t, const pool_question *q, const pool_box *b)
{
    int64_t slices = 1;
    pool_frame f;
    for (int d = 0; d < POOL_DIMS; d++) {
        slices *= pool_padded_slices(t, b, d);
        if (slices > t->slices_per_cluster || !pool_frame_of(q, b, d, NULL, &f))
            return false;
    }
    return true;
}

void pool_frame_write_axes(tune_page *w, const pool_question *q, const pool_box *b)
{
    pool_frame f;
    for (int d = POOL_ROWS; d <= POOL_PLACES; d++) {
        pool_frame_of(q, b, d, w->arena, &f);
        if (!f.is_made)
            continue;
        const tune_axis *own = &q->image.windows[d - POOL_ROWS].own;
        strbuf_printf(&w->out->text, ", %s = %" PRId64 ", %s = %" PRId64, own->name, own->size, f.places, f.places_size);
        if (f.part)
            strbuf_printf(&w->out->text, ", %s = %" PRId64, f.part, f.parts);
        if (f.part && f.result)
            strbuf_printf(&w->out->text, ", %s = %" PRId64, f.result, b->tile[d]);
    }
}

typedef struct framer {
    tune_page *page;
    const target *t;
    const pool_question *q;
    const pool_box *b;
    const pool_frame_text *x;
    arena *a;
    pool_frame f[POOL_DIMS];
} framer;

/* "Y_HELD = 4": so many of the places. */
static const char *first(const framer *w, int dim, int64_t count)
{
    const pool_frame *f = &w->f[dim];
    if (!f->is_made)
        return w->q->dims[dim].name;
    return count == f->places_size ? f->places : arena_printf(w->a, "%s = %" PRId64, f->places, count);
}

/* Of an axis that is in no window what slices have of it, as the others' names are. */
static const char *held(const framer *w, int dim, int64_t count)
{
    const pool_frame *f = &w->f[dim];
    if (f->is_made || !w->q->dims[dim].name)
        return f->is_made ? first(w, dim, count) : NULL;
    const pool_dim *d = &w->q->dims[dim];
    const int64_t tile = w->b->tile[dim], padded = pool_padded(w->b, dim);
    const char *name = padded == d->size ? d->name : arena_printf(w->a, "%s # %" PRId64, d->name, padded);
    return tile == 1 ? NULL : tile < padded ? arena_printf(w->a, "%s %% %" PRId64, name, tile) : name;
}

/* A part of the places that a slice, or the image, has: "": all. */
static const char *tile(const framer *w, int dim, int64_t from, int64_t count, int64_t all)
{
    return count == all ? "" : arena_printf(w->a, ".tile::<m![%s], %" PRId64 ", _>(%" PRId64 ")", w->f[dim].places, count, from);
}

/* Rows in front and behind, and the ends of those between. */
static void write_ends(const framer *w)
{
    const int64_t bits = dtype_row_of(w->q->from)->bits, flit = largest_divisor(w->x->channel_count, w->t->flit_bytes * 8 / bits);
    for (int d = POOL_ROWS; d <= POOL_PLACES; d++)
        for (int side = 0; side < 2; side++) {
            const pool_frame *f = &w->f[d], *y = &w->f[POOL_ROWS];
            const int64_t count = side ? f->behind : f->front;
            if (!f->is_made || count == 0)
                continue;
            const char *name = arena_printf(w->a, "own_%s_%s", d == POOL_ROWS ? "rows" : "places", side ? "behind" : "in_front"),
                       *time = d == POOL_ROWS
                                   ? TUNE_LIST(w->a, w->x->outer, first(w, d, count), held(w, POOL_PLACES, w->f[POOL_PLACES].held))
                                   : TUNE_LIST(w->a, w->x->outer, held(w, POOL_ROWS, y->is_made ? y->own : 0), first(w, d, count)),
                       *c = w->x->channels;
            tune_line(w->page, "let mut %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", name, w->x->type,
                      TUNE_LIST(w->a, time, c));
            tune_line(w->page, "%s.view_mut().memset(%s, &mut device.sub);", name, w->x->fill_value);
            tune_line(w->page, "device.main");
            tune_line(w->page, "    .begin(%s.view())", name);
            tune_line(w->page, "    .fetch::<m![%s, [%s] / %" PRId64 "], m![[%s] %% %" PRId64 "]>()", time, c, flit, c, flit);
            tune_line(w->page, "    .collect()");
            tune_line(w->page, "    .commit_trim::<m![[%s] %% %" PRId64 "]>()", c, flit);
            tune_line(w->page, "    .commit_view(framed.view_mut()%s%s);", tile(w, d, side ? f->held - count : 0, count, f->held),
                      d == POOL_PLACES && y->is_made ? tile(w, POOL_ROWS, y->front, y->own, y->held) : "");
        }
}

/* Slices that a copy is between: those of a cluster, or the last ones of the first cluster and the first ones of the other. */
typedef struct between {
    const char *from, *to;  /* of DM */
    const char *from_image; /* the same of the image in HBM */
} between;

/* `forward`: from a slice to the next one. */
static size_t find_between(const framer *w, int dim, bool forward, between *out)
{
    const pool_frame *f = &w->f[dim];
    const bool is_shared = pool_cluster_dim(w->t, w->b) == dim;
    const int64_t clusters = is_shared ? w->t->clusters_per_chip : 1, here = f->parts / clusters;
    const char *digit = is_shared ? arena_printf(w->a, "%s %% %" PRId64, f->part, here) : f->part,
               *cluster = arena_printf(w->a, "%s / %" PRId64, f->part, here);
    size_t count = 0;
#define SLICES(method, which, n, at) arena_printf(w->a, ".%s::<m![%s], %" PRId64 ", _>(%d)", (method), (which), (int64_t)(n), (int)(at))
    if (here > 1)
        out[count++] = (between){SLICES("slice_tile", digit, here - 1, !forward), SLICES("slice_tile", digit, here - 1, forward),
                                 SLICES("tile", digit, here - 1, !forward)};
    for (int64_t c = 1; c < clusters; c++) {
        const int64_t from = forward ? c - 1 : c, to = forward ? c : c - 1, last = forward ? here - 1 : 0, next = forward ? 0 : here - 1;
        out[count++] = (between){
            arena_printf(w->a, "%s%s", SLICES("cluster_tile", cluster, 1, from), here > 1 ? SLICES("slice_tile", digit, 1, last) : ""),
            arena_printf(w->a, "%s%s", SLICES("cluster_tile", cluster, 1, to), here > 1 ? SLICES("slice_tile", digit, 1, next) : ""),
            arena_printf(w->a, "%s%s", SLICES("tile", cluster, 1, from), here > 1 ? SLICES("tile", digit, 1, last) : "")};
    }
#undef SLICES
    return count;
}

/* What neighbours have: of rows from HBM, which is read beside, of places from DM, with the rows that have come. */
static void write_neighbours(const framer *w)
{
    for (int d = POOL_ROWS; d <= POOL_PLACES; d++)
        for (int side = 0; side < 2; side++) {
            const pool_frame *f = &w->f[d], *other = &w->f[POOL_PLACES];
            const int64_t count = side ? f->behind : f->front, to = side ? f->held - count : 0;
            between x[4];
            if (!f->is_made || f->parts == 1 || count == 0)
                continue;
            const size_t copies = find_between(w, d, side == 0, x);
            const char *into = tile(w, d, to, count, f->held);
            if (d == POOL_ROWS && other->is_made)
                into = arena_printf(w->a, "%s%s", into, tile(w, POOL_PLACES, other->front, other->own, other->held));
            for (size_t i = 0; i < copies; i++)
                if (d == POOL_ROWS)
                    tune_line(w->page, "%s%s%s.to_dm_view(&mut device.tdma, framed.view_mut()%s%s);", w->x->port,
                              tile(w, d, side ? 0 : f->own - count, count, f->own), x[i].from_image, into, x[i].to);
                else
                    tune_line(w->page, "framed.view()%s%s.to_dm_view(&mut device.tdma, framed.view_mut()%s%s);",
                              tile(w, d, side ? f->front : f->front + f->own - count, count, f->held), x[i].from, into, x[i].to);
        }
}

void pool_frame_write(tune_page *page, const target *t, const pool_question *q, const pool_box *b, const pool_frame_text *x)
{
    framer w = {.page = page, .t = t, .q = q, .b = b, .x = x, .a = page->arena};
    int64_t bytes = b->tile[POOL_OUTER] * x->channel_count;
    const char *image[POOL_DIMS] = {x->image_outer, NULL, NULL, x->image_channels}, *tiles = "", *into = "";
    bool shares = false;
    for (int d = 0; d < POOL_DIMS; d++)
        pool_frame_of(q, b, d, w.a, &w.f[d]);
    for (int d = POOL_ROWS; d <= POOL_PLACES; d++) {
        const pool_frame *f = &w.f[d];
        bytes *= f->is_made ? f->held : b->tile[d];
        image[d] = q->dims[d].name;
        if (!f->is_made)
            continue;
        const int64_t size = q->image.windows[d - POOL_ROWS].own.size, part = f->parts > 1 ? f->own : size;
        image[d] = TUNE_LIST(w.a, f->part, first(&w, d, part));
        tiles = arena_printf(w.a, "%s%s", tiles, tile(&w, d, f->from, f->own, part));
        into = arena_printf(w.a, "%s%s", into, tile(&w, d, f->front, f->own, f->held));
        shares = shares || (f->parts > 1 && f->front + f->behind > 0);
    }
    bytes = tune_bytes_of(q->from, bytes);
    tune_line(page, "// A part of the image for each slice, and around it %s", x->fill_name);
    tune_line(
        page, "let mut framed: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", x->type,
        TUNE_LIST(w.a, x->outer, held(&w, POOL_ROWS, w.f[POOL_ROWS].held), held(&w, POOL_PLACES, w.f[POOL_PLACES].held), x->channels));
    if (bytes <= MEMSET_BYTES)
        tune_line(page, "framed.view_mut().memset(%s, &mut device.sub);", x->fill_value);
    tune_line(page, "let %s = %s.view().reshape::<Chip, m![%s]>();", x->port, x->port, tune_list(w.a, image, POOL_DIMS));
    tune_begin_step(page, TUNE_LOAD_IMAGE, "In the middle the image");
    tune_line(page, "%s%s.to_dm_view(&mut device.tdma, framed.view_mut()%s);", x->port, tiles, into);
    tune_end_step(page, TUNE_LOAD_IMAGE);
    if (bytes > MEMSET_BYTES)
        write_ends(&w);
    if (shares) {
        tune_line(page, "// What neighbours have, where windows take it: a copy for each side");
        write_neighbours(&w);
    }
    tune_line(page, "let rows: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { framed.reshape() };", x->type, x->windows);
}
