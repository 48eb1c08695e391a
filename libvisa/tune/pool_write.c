#include "libvisa/tune/pool_write.h"

#include <inttypes.h>
#include <string.h>

#include "libvisa/tune/border.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/pool_frame.h"
#include "libvisa/tune/search.h"
#include "support/integer.h"

enum { WINDOWS = 1U << POOL_ROWS | 1U << POOL_PLACES, WORD_BITS = 64 }; /* axes, a bit each */

typedef struct pool_writer {
    tune_page page;
    const target *t;
    const pool_question *q;
    const pool_plan *p;
    arena *a;
    pool_frame frames[POOL_DIMS];
    bool is_framed; /* axes have the names of frames (pool_frame.h) */
} pool_writer;

static const char *type_name(dtype type)
{
    return dtype_row_of(type)->name;
}

static const char *list_of(const pool_writer *w, const char *const *texts)
{
    return tune_list(w->a, texts, POOL_DIMS);
}

/* ---- digits ---- */

/* "Y # 60 / 4 % 5"; NULL: it has one position. */
static const char *digit(const pool_writer *w, const pool_box *b, int dim, int64_t stride, int64_t count)
{
    const pool_dim *d = &w->q->dims[dim];
    int64_t padded = pool_padded(b, dim);
    if (count == 1)
        return NULL;
    if (w->is_framed && w->frames[dim].is_made) {
        const pool_frame *f = &w->frames[dim];
        if (stride < b->tile[dim])
            return f->result;
        const char *part = stride > b->tile[dim] ? arena_printf(w->a, "%s / %" PRId64, f->part, stride / b->tile[dim]) : f->part;
        return stride * count < padded ? arena_printf(w->a, "%s %% %" PRId64, part, count) : part;
    }
    const char *name = d->name ? d->name : "1", *text = padded == d->size ? name : arena_printf(w->a, "%s # %" PRId64, name, padded);
    text = stride > 1 ? arena_printf(w->a, "%s / %" PRId64, text, stride) : text;
    return stride * count < padded ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

static const char *own(const pool_writer *w, const pool_box *b, int dim)
{
    return digit(w, b, dim, 1, b->tile[dim]);
}

static const char *results_of(const pool_writer *w, const pool_box *b)
{
    const char *texts[POOL_DIMS];
    for (int d = 0; d < POOL_DIMS; d++)
        texts[d] = own(w, b, d);
    return list_of(w, texts);
}

/* "R_S / 3", "R_S % 3", or "R"; NULL: the window has one place along that axis. */
static const char *taps_of(const pool_writer *w, int dim)
{
    const pool_question *q = w->q;
    if (w->p->order != POOL_AT_ONCE)
        return q->dims[dim].taps > 1 ? q->dims[dim].tap_axis : NULL;
    int64_t taps = q->dims[dim].taps, inside = dim == POOL_ROWS ? q->dims[POOL_PLACES].taps : 1;
    if (taps == 1)
        return NULL;
    if (taps == q->tap_count)
        return q->taps;
    return inside > 1 ? arena_printf(w->a, "%s / %" PRId64, q->taps, inside) : arena_printf(w->a, "%s %% %" PRId64, q->taps, taps);
}

/* Places of the image that so many results of a window take; NULL: one. */
static const char *window_of(const pool_writer *w, int dim, const char *kept)
{
    const pool_dim *d = &w->q->dims[dim];
    const char *taps = taps_of(w, dim);
    const char *first = !kept                     ? NULL
                        : d->stride == 1 && !taps ? kept
                                                  : arena_printf(w->a, "%s:%" PRId64, kept, d->stride),
               *second = !taps                       ? NULL
                         : d->dilation == 1 && !kept ? taps
                                                     : arena_printf(w->a, "%s:%" PRId64, taps, d->dilation);
    if (!first && !second)
        return NULL;
    if ((!first && d->dilation == 1) || (!second && d->stride == 1))
        return first ? first : second;
    return arena_printf(w->a, "$(%s)", TUNE_LIST(w->a, first, second));
}

static const char *padded_to(const pool_writer *w, const char *mapping, int64_t from, int64_t to)
{
    return from == to ? mapping : arena_printf(w->a, "%s # %" PRId64, mapping ? mapping : "1", to);
}

/* Channels of a place in HBM. */
static const char *channels(const pool_writer *w)
{
    const pool_dim *d = &w->q->dims[POOL_INNER];
    return padded_to(w, d->name, d->size, pool_channels_in_hbm(w->q));
}

/* The image as its windows take it, in HBM. */
static const char *windows_in_hbm(const pool_writer *w)
{
    const pool_question *q = w->q;
    const char *texts[TUNE_WINDOWS];
    for (size_t i = 0; i < TUNE_WINDOWS; i++) {
        const int dim = POOL_ROWS + (int)i;
        int64_t held = !pool_is_rewritten(w->q) ? q->image.windows[i].own.size
                       : dim == POOL_ROWS       ? tune_window_places(&q->image, i)
                                                : border_places(w->t, &q->image, pool_channels_in_hbm(q));
        texts[i] = padded_to(w, window_of(w, dim, q->dims[dim].name), tune_window_places(&q->image, i), held);
    }
    return TUNE_LIST(w->a, q->dims[POOL_OUTER].name, texts[0], texts[1], channels(w));
}

static const char *cluster_of(const pool_writer *w, const pool_box *b)
{
    int dim = pool_cluster_dim(w->t, b);
    if (dim == POOL_DIMS)
        return tune_idle_clusters(w->t, w->a);
    return digit(w, b, dim, b->tile[dim] * (b->count[dim] / w->t->clusters_per_chip), w->t->clusters_per_chip);
}

/* `apart`: what pads slices is of each axis, which tiles and other names need. */
static const char *slices_of(const pool_writer *w, const pool_box *b, bool apart)
{
    const char *texts[POOL_DIMS];
    int shared = pool_cluster_dim(w->t, b);
    int64_t used = pool_slices(w->t, b), all = w->t->slices_per_cluster, spaced = 1;
    for (int d = 0; d < POOL_DIMS; d++) {
        const int64_t here = d == shared ? b->count[d] / w->t->clusters_per_chip : b->count[d], padded = pool_padded_slices(w->t, b, d);
        texts[d] = digit(w, b, d, b->tile[d], here);
        spaced *= padded;
        if (apart && texts[d])
            texts[d] = padded_to(w, texts[d], here, padded);
    }
    const char *digits = list_of(w, texts);
    if (apart)
        return spaced == all ? digits : TUNE_LIST(w->a, spaced > 1 ? digits : NULL, arena_printf(w->a, "1 # %" PRId64, all / spaced));
    return used == all ? digits : arena_printf(w->a, "[%s] # %" PRId64, digits, all);
}

/* ---- the kernel ---- */

static const char *extra_mapping(const pool_writer *w, const pool_extra *x)
{
    const pool_dim *c = &w->q->dims[POOL_INNER];
    const char *texts[POOL_DIMS];
    for (int d = 0; d < POOL_INNER; d++)
        texts[d] = x->has[d] ? w->q->dims[d].name : NULL;
    texts[POOL_INNER] = padded_to(w, c->name, c->size, round_up(c->size, WORD_BITS / dtype_row_of(x->type)->bits));
    return list_of(w, texts);
}

static void write_head(pool_writer *w)
{
    const pool_question *q = w->q;
    strbuf *text = &w->page.out->text;
    strbuf_puts(text, "axes![");
    for (int d = 0; d < POOL_DIMS; d++)
        if (q->dims[d].name)
            strbuf_printf(text, "%s = %" PRId64 ", ", q->dims[d].name, q->dims[d].size);
    if (w->p->order == POOL_AT_ONCE)
        strbuf_printf(text, "%s = %" PRId64, q->taps, q->tap_count);
    else
        strbuf_printf(text, "%s = %" PRId64 ", %s = %" PRId64, q->dims[POOL_ROWS].tap_axis, q->dims[POOL_ROWS].taps,
                      q->dims[POOL_PLACES].tap_axis, q->dims[POOL_PLACES].taps);
    if (w->p->frames)
        pool_frame_write_axes(&w->page, q, &w->p->folded);
    else if (pool_is_rewritten(w->q))
        border_write_axes(&w->page, w->t, &q->image, pool_channels_in_hbm(q), BORDER_AS_ROWS);
    for (size_t i = 0; i < TUNE_WINDOWS && !w->p->frames && !pool_is_rewritten(w->q); i++)
        if (q->dims[POOL_ROWS + i].name && q->image.windows[i].own.name != q->image.windows[i].wide)
            strbuf_printf(text, ", %s = %" PRId64, q->image.windows[i].own.name, q->image.windows[i].own.size);
    strbuf_puts(text, "];\n\n");
    tune_line(&w->page, "type Chip = m![1];");
    tune_line(&w->page, "type Cluster = m![%s];", cluster_of(w, &w->p->folded));
    tune_line(&w->page, "type Slice = m![%s];", slices_of(w, &w->p->folded, w->p->frames));
    tune_line(&w->page, "%s", "");
    tune_line(&w->page, "%s", tune_device(w->t, 1, w->a));
    tune_line(&w->page, "fn contract(");
    tune_line(&w->page, "    device: &mut Device,");
    tune_line(&w->page, "    %s: &HbmTensor<%s, Chip, m![%s]>,", q->image.tensors[TUNE_LEFT].port, type_name(q->from),
              TUNE_LIST(w->a, q->dims[POOL_OUTER].name, border_image(&q->image, channels(w), w->a)));
    for (size_t i = 0; i < q->extra_count; i++)
        tune_line(&w->page, "    %s: &HbmTensor<%s, Chip, m![%s]>,", q->extras[i].port, type_name(q->extras[i].type),
                  extra_mapping(w, &q->extras[i]));
    const char *out[POOL_DIMS];
    for (int d = 0; d < POOL_DIMS; d++)
        out[d] = q->dims[d].name;
    tune_line(&w->page, ") -> HbmTensor<%s, Chip, m![%s]> {", type_name(q->into), list_of(w, out));
    w->page.depth++;
}

/* The image as its windows take it, under the name of its port. */
static void write_windows(pool_writer *w)
{
    const pool_question *q = w->q;
    const char *port = q->image.tensors[TUNE_LEFT].port;
    const border_fill fill = {pool_border_value(q), pool_border_name(q), w->p->short_border};
    if (pool_is_rewritten(w->q))
        border_write(&w->page, w->t, &q->image, &fill, q->dims[POOL_OUTER].name, channels(w), pool_channels_in_hbm(q), BORDER_AS_ROWS,
                     windows_in_hbm(w));
    else
        tune_line(&w->page, "let %s = %s.view().reshape::<Chip, m![%s]>();", port, port, windows_in_hbm(w));
}

static const char *packets(const pool_writer *w)
{
    int64_t lanes = w->t->vector_lanes;
    return digit(w, &w->p->folded, POOL_INNER, lanes, w->p->folded.tile[POOL_INNER] / lanes);
}

static const char *packet(const pool_writer *w)
{
    return digit(w, &w->p->folded, POOL_INNER, 1, w->t->vector_lanes);
}

/* Of the results that a slice has, packet by packet; `mask`: of these axes, a bit each; `open`: of these the places of their windows. */
static const char *time_of(const pool_writer *w, unsigned mask, unsigned open)
{
    const char *texts[POOL_DIMS];
    for (int d = 0; d < POOL_INNER; d++) {
        const char *here = own(w, &w->p->folded, d);
        texts[d] = !(mask >> d & 1) ? NULL : open >> d & 1 ? window_of(w, d, here) : here;
    }
    texts[POOL_INNER] = packets(w);
    return list_of(w, texts);
}

/* What a slice has of the image, or of what is folded along the other axes. */
static const char *values_of(const pool_writer *w, unsigned open, const char *inner)
{
    const char *texts[POOL_DIMS];
    for (int d = 0; d < POOL_INNER; d++) {
        const char *here = own(w, &w->p->folded, d);
        texts[d] = open >> d & 1 ? window_of(w, d, here) : here;
    }
    texts[POOL_INNER] = inner;
    return list_of(w, texts);
}

/* Of a packet whole words: more than it has where elements are small. */
static const char *channels_as_copied(const pool_writer *w, dtype type)
{
    const pool_dim *c = &w->q->dims[POOL_INNER];
    int64_t lanes = w->t->vector_lanes;
    return c->size > lanes ? own(w, &w->p->folded, POOL_INNER)
                           : padded_to(w, c->name, c->size, larger(lanes, WORD_BITS / dtype_row_of(type)->bits));
}

static void write_extras(pool_writer *w)
{
    for (size_t i = 0; i < w->q->extra_count; i++) {
        const pool_extra *x = &w->q->extras[i];
        const char *texts[POOL_DIMS];
        unsigned mask = 0;
        for (int d = 0; d < POOL_DIMS; d++) {
            texts[d] = x->has[d] || d == POOL_INNER ? own(w, &w->p->folded, d) : NULL;
            mask |= (unsigned)x->has[d] << d;
        }
        const char *element = list_of(w, texts);
        texts[POOL_INNER] = channels_as_copied(w, x->type);
        tune_begin_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i), "An operand of what is done to them");
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = %s.to_dm(&mut device.tdma);", x->port, type_name(x->type),
                  list_of(w, texts), x->port);
        tune_end_step(&w->page, (tune_step)(TUNE_LOAD_EXTRA + i));
        tune_begin_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i), "Into the VRF");
        tune_write_operand(&w->page, &(tune_operand_text){.name = x->port,
                                                          .slice = "Slice",
                                                          .element = element,
                                                          .from = arena_printf(w->a, "%s.view()", x->port),
                                                          .from_type = x->type,
                                                          .type = w->q->meets,
                                                          .time = time_of(w, mask, 0),
                                                          .packet = packet(w)});
        tune_end_step(&w->page, (tune_step)(TUNE_KEEP_EXTRA + i));
    }
}

static void write_image(pool_writer *w)
{
    const char *port = w->q->image.tensors[TUNE_LEFT].port;
    write_windows(w);
    tune_begin_step(&w->page, TUNE_LOAD_ROWS, "Of the image what the windows of a slice's results take, with a halo");
    tune_line(&w->page, "let rows: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = %s.to_dm(&mut device.tdma);", type_name(w->q->from),
              values_of(w, WINDOWS, channels_as_copied(w, w->q->from)), port);
    tune_end_step(&w->page, TUNE_LOAD_ROWS);
}

/* The same where slices have parts of the image and their border. */
static void write_framed_image(pool_writer *w)
{
    const pool_question *q = w->q;
    const pool_box *b = &w->p->folded;
    const pool_frame_text x = {.port = q->image.tensors[TUNE_LEFT].port,
                               .type = type_name(q->from),
                               .fill_value = pool_border_value(q),
                               .fill_name = pool_border_name(q),
                               .outer = own(w, b, POOL_OUTER),
                               .image_outer = q->dims[POOL_OUTER].name,
                               .channels = channels_as_copied(w, q->from),
                               .image_channels = channels(w),
                               .channel_count = q->dims[POOL_INNER].size > w->t->vector_lanes
                                                    ? b->tile[POOL_INNER]
                                                    : larger(w->t->vector_lanes, WORD_BITS / dtype_row_of(q->from)->bits),
                               .windows = values_of(w, WINDOWS, channels_as_copied(w, q->from))};
    pool_frame_write(&w->page, w->t, q, b, &x);
}

static const char *values(const pool_writer *w, size_t pass)
{
    return arena_printf(w->a, "values%zu", pass + 1);
}

/* Axes whose windows a pass folds. */
static unsigned folded_by(const pool_writer *w, const tune_pass *pass)
{
    if (w->p->order == POOL_AT_ONCE)
        return WINDOWS;
    return 1U << (strcmp(pass->fold->operand, w->q->dims[POOL_ROWS].tap_axis) == 0 ? POOL_ROWS : POOL_PLACES);
}

/* Axes whose windows are not folded yet in front of a pass, a bit each. */
static unsigned open_before(const pool_writer *w, size_t number)
{
    unsigned open = WINDOWS;
    for (size_t i = 0; i < number; i++)
        if (w->q->passes[w->p->order].passes[i].fold)
            open &= ~folded_by(w, &w->q->passes[w->p->order].passes[i]);
    return open;
}

/* A pass over the image, one packet of results after the other, or over values in DM. */
static void write_pass(pool_writer *w, size_t number, size_t from)
{
    const pool_question *q = w->q;
    const tune_epilogue *e = &q->passes[w->p->order];
    const tune_pass *pass = &e->passes[number];
    const bool is_last = number + 1 == e->count, halves = q->dims[POOL_INNER].size > w->t->vector_lanes / 2 || packets(w);
    const unsigned folded = pass->fold ? folded_by(w, pass) : 0, open = open_before(w, number) & ~folded;
    const char *all = values_of(w, open, own(w, &w->p->folded, POOL_INNER)), *time = time_of(w, ~0U, open);
    const dtype fetched = dtype_row_of(q->from)->kind == DTYPE_KIND_INT ? DTYPE_I32 : DTYPE_F32;
    tune_begin_step(&w->page, (tune_step)(TUNE_PASS + number),
                    folded == WINDOWS ? "The window goes over the image as strides of the fetch; its places are folded in time"
                    : folded ? arena_printf(w->a, "The window goes along %s as strides of the fetch; its places there are folded in time",
                                            folded == 1U << POOL_ROWS ? "columns" : "rows")
                    : pass->is_gate ? "What the values are multiplied with"
                                    : "Another pass over the values");
    if (pass->is_gate)
        tune_line(&w->page, "let gate: VrfTensor<f32, Chip, Cluster, Slice, m![%s]> = device.main", all);
    else
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = device.main", is_last ? "results" : values(w, number),
                  type_name(is_last ? q->into : q->meets), all);
    tune_line(&w->page, "    .begin(%s.view())", number == 0 ? "rows" : values(w, from));
    /* at once places of a row are outside of rows: windows cut the axis there, and so must the stream */
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()",
              TUNE_LIST(w->a, time, folded >> POOL_PLACES & 1 ? taps_of(w, POOL_PLACES) : NULL,
                        folded >> POOL_ROWS & 1 ? taps_of(w, POOL_ROWS) : NULL),
              packet(w));
    if (number == 0 && fetched != q->from)
        tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(fetched));
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .vector_init()");
    tune_write_pass(&w->page, pass,
                    halves ? NULL : padded_to(w, q->dims[POOL_INNER].name, q->dims[POOL_INNER].size, w->t->vector_lanes / 2));
    tune_line(&w->page, "    .vector_final()");
    if (pass->is_gate) {
        tune_line(&w->page, "    .to_vrf();");
    } else {
        if (is_last && q->into != e->type)
            tune_line(&w->page, "    .cast::<%s, m![%s # %" PRId64 "]>()", type_name(q->into), packet(w),
                      w->t->flit_bytes * 8 / dtype_row_of(q->into)->bits);
        tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet(w));
        tune_line(&w->page, "    .commit();");
    }
    tune_end_step(&w->page, (tune_step)(TUNE_PASS + number));
}

/* With idle slices between them. */
static const char *spread_slices_of(const pool_writer *w, const pool_box *b)
{
    const int64_t apart = pool_apart(w->t, b), used = pool_slices(w->t, b) * apart, all = w->t->slices_per_cluster;
    const char *texts[POOL_DIMS + 1];
    const int shared = pool_cluster_dim(w->t, b);
    for (int d = 0; d < POOL_DIMS; d++)
        texts[d] = digit(w, b, d, b->tile[d], d == shared ? b->count[d] / w->t->clusters_per_chip : b->count[d]);
    texts[POOL_DIMS] = apart > 1 ? arena_printf(w->a, "1 # %" PRId64, apart) : NULL;
    const char *digits = tune_list(w->a, texts, POOL_DIMS + 1);
    return used == all ? digits : arena_printf(w->a, "[%s] # %" PRId64, digits, all);
}

/* Results of parts of the image under the names of all. */
static void write_names(pool_writer *w)
{
    const pool_box *b = &w->p->folded;
    w->is_framed = false;
    if (w->frames[POOL_ROWS].part || w->frames[POOL_PLACES].part)
        tune_line(&w->page, "let results: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = unsafe { results.reshape() };",
                  type_name(w->q->into), cluster_of(w, b), slices_of(w, b, true), results_of(w, b));
}

static void write_bring(pool_writer *w)
{
    const pool_box *b = &w->p->whole;
    tune_begin_step(&w->page, TUNE_CLOSE, "Pieces that are no whole blocks of HBM are dear: a copy brings whole ones into a slice");
    tune_line(&w->page, "let whole: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = results.to_dm(&mut device.tdma);", type_name(w->q->into),
              cluster_of(w, b), spread_slices_of(w, b), results_of(w, b));
    tune_end_step(&w->page, TUNE_CLOSE);
}

void pool_write(const target *t, const pool_question *q, const pool_plan *p, const char *head, const tune_text *found, arena *a,
                tune_text *out)
{
    pool_writer w = {.page = {out, found, a, 0}, .t = t, .q = q, .p = p, .a = a};
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    for (int d = 0; d < POOL_DIMS && p->frames; d++)
        pool_frame_of(q, &p->folded, d, a, &w.frames[d]);
    w.is_framed = p->frames;
    write_head(&w);
    if (p->frames)
        write_framed_image(&w);
    else
        write_image(&w);
    write_extras(&w);
    const tune_epilogue *e = &q->passes[p->order];
    for (size_t i = 0, from = 0; i < e->count; i++) {
        write_pass(&w, i, from);
        from = e->passes[i].is_gate ? from : i;
    }
    if (p->frames)
        write_names(&w);
    if (p->brings)
        write_bring(&w);
    tune_begin_step(&w.page, TUNE_STORE, "Out");
    tune_line(&w.page, "%s.to_hbm(&mut device.tdma)", p->brings ? "whole" : "results");
    tune_end_step(&w.page, TUNE_STORE);
    w.page.depth--;
    tune_line(&w.page, "}");
}

const char *pool_describe(const target *t, const pool_question *q, const pool_plan *p, arena *a)
{
    static const tune_share NOTHING = {0};
    const pool_box *b = &p->folded;
    strbuf out;
    strbuf_init(&out, a);
    for (int d = 0; d < POOL_DIMS; d++) {
        int64_t clusters = d == pool_cluster_dim(t, b) ? t->clusters_per_chip : 1;
        if (q->dims[d].name)
            tune_describe_split(q->dims[d].name, &NOTHING, q->dims[d].size, 1, clusters, b->count[d] / clusters, b->tile[d],
                                pool_padded(b, d), &out);
    }
    return out.text;
}
