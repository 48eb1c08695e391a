#include "libvisa/tune/lay_write.h"

#include <inttypes.h>

#include "libvisa/tune/machine.h"
#include "libvisa/tune/search.h"
#include "support/integer.h"

typedef struct lay_writer {
    tune_page *page;
    const target *t;
    const lay_order *x;
    const lay_plan *p;
    arena *a;
} lay_writer;

static const char *list_of(arena *a, const char *const *texts, size_t count)
{
    return tune_list(a, texts, count);
}

static const char *name_in_dm(const lay_axis *x)
{
    return x->wide ? x->wide : x->name;
}

/* Positions of the axis that it has a name for. */
static int64_t named(const lay_axis *x)
{
    return x->wide ? x->padded : x->size;
}

/* Zeros after what is innermost now are there before it is turned, since its words have them; those of others where it is written then. */
static bool is_widened_later(const lay_order *x, size_t number)
{
    return x->axes[number].wide && number != lay_innermost(x);
}

/* "M # 80 / 4 % 5", NULL: it has one position. */
static const char *digit(const lay_writer *w, const lay_box *b, size_t axis, int64_t stride, int64_t count)
{
    const lay_axis *x = &w->x->axes[axis];
    int64_t padded = lay_padded(b, axis);
    if (count == 1)
        return NULL;
    if (w->p->parts > 1 && axis == w->p->looped) /* of an iteration's positions */
        return stride > 1 ? arena_printf(w->a, "%s / %" PRId64 " %% %" PRId64, x->name, stride, count)
                          : arena_printf(w->a, "%s %% %" PRId64, x->name, count);
    const char *text = padded == named(x) ? name_in_dm(x) : arena_printf(w->a, "%s # %" PRId64, name_in_dm(x), padded);
    text = stride > 1 ? arena_printf(w->a, "%s / %" PRId64, text, stride) : text;
    return stride * count < padded ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

static const char *own(const lay_writer *w, const lay_box *b, size_t axis)
{
    return digit(w, b, axis, 1, b->tile[axis]);
}

/* Without the zeros that it is to have. */
static const char *own_dense(const lay_writer *w, const lay_box *b, size_t axis)
{
    const lay_axis *x = &w->x->axes[axis];
    return !x->wide ? own(w, b, axis) : x->size == 1 ? NULL : arena_printf(w->a, "%s = %" PRId64, x->wide, x->size);
}

/* As it is before it is turned. */
static const char *own_before(const lay_writer *w, const lay_box *b, size_t axis)
{
    return is_widened_later(w->x, axis) ? own_dense(w, b, axis) : own(w, b, axis);
}

/* What a slice has, in the new order. */
static const char *elements_of(const lay_writer *w, const lay_box *b)
{
    const char *texts[TUNE_AXES_MAX];
    for (size_t i = 0; i < w->x->count; i++)
        texts[i] = own(w, b, i);
    return list_of(w->a, texts, w->x->count);
}

/* In the old order, in front of `inner`, which is what is innermost there. */
static const char *elements_before(const lay_writer *w, bool dense, const char *inner)
{
    const lay_box *b = &w->p->turned;
    const char *texts[TUNE_AXES_MAX];
    size_t last = w->x->count - 1;
    for (size_t i = 0; i < last; i++)
        texts[i] = dense ? own_dense(w, b, w->x->source[i]) : own_before(w, b, w->x->source[i]);
    texts[last] = inner;
    return list_of(w->a, texts, last + 1);
}

/* What is innermost there, in so many rows of so many elements, of which the last one may have padding. */
typedef struct lay_rows {
    const char *all, *rows, *of_row;
} lay_rows;

static lay_rows rows_before(const lay_writer *w)
{
    size_t axis = lay_innermost_before(w->x);
    int64_t row = w->t->transpose_row_bytes * 8 / dtype_row_of(w->x->from)->bits,
            size = w->x->axes[axis].wide ? w->x->axes[axis].size : w->p->turned.tile[axis], padded = round_up(size, row);
    const char *text = own_dense(w, &w->p->turned, axis), *all = text ? text : "1";
    all = padded > size ? arena_printf(w->a, "[%s] # %" PRId64, all, padded) : arena_printf(w->a, "[%s]", all);
    return (lay_rows){all, padded > row ? arena_printf(w->a, "%s / %" PRId64, all, row) : NULL,
                      padded > row ? arena_printf(w->a, "%s %% %" PRId64, all, row) : all};
}

static const char *cluster_of(const lay_writer *w, const lay_box *b)
{
    size_t axis = lay_cluster_axis(w->t, w->x, b);
    if (axis == w->x->count)
        return tune_idle_clusters(w->t, w->a);
    return digit(w, b, axis, b->tile[axis] * (b->count[axis] / w->t->clusters_per_chip), w->t->clusters_per_chip);
}

/* These digits over slices, with idle ones between them and after them. */
static const char *spread(const lay_writer *w, const lay_box *b, const char *const *digits, size_t count)
{
    int64_t slices = lay_slices(w->t, w->x, b), apart = lay_apart(w->t, slices), all = w->t->slices_per_cluster;
    const char *used = list_of(w->a, digits, count), *idle = apart > 1 ? arena_printf(w->a, "1 # %" PRId64, apart) : NULL,
               *text = slices > 1 ? TUNE_LIST(w->a, used, idle) : TUNE_LIST(w->a, idle);
    return slices * apart == all ? text : arena_printf(w->a, "[%s] # %" PRId64, text, all);
}

static const char *slices_of(const lay_writer *w, const lay_box *b)
{
    const char *texts[TUNE_AXES_MAX];
    size_t shared = lay_cluster_axis(w->t, w->x, b);
    for (size_t i = 0; i < w->x->count; i++)
        texts[i] = digit(w, b, i, b->tile[i], i == shared ? b->count[i] / w->t->clusters_per_chip : b->count[i]);
    return spread(w, b, texts, w->x->count);
}

static const char *tensor(const lay_writer *w, const lay_box *b, dtype type, const char *elements)
{
    return arena_printf(w->a, "DmTensor<%s, Chip, m![%s], m![%s], m![%s]>", dtype_row_of(type)->name, cluster_of(w, b), slices_of(w, b),
                        elements);
}

static bool has_zeros(const lay_order *x)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->axes[i].wide)
            return true;
    return false;
}

const char *lay_source(const lay_order *x, arena *a)
{
    const char *texts[TUNE_AXES_MAX];
    for (size_t i = 0; i < x->count; i++)
        texts[i] = x->axes[x->source[i]].name;
    return list_of(a, texts, x->count);
}

const char *lay_target(const lay_order *x, arena *a)
{
    const char *texts[TUNE_AXES_MAX];
    for (size_t i = 0; i < x->count; i++)
        texts[i] = x->axes[i].after ? x->axes[i].after : name_in_dm(&x->axes[i]);
    return list_of(a, texts, x->count);
}

/* All elements in the new order, as one axis: of rows that are put one after the other. */
const char *lay_flat(const lay_order *x, arena *a)
{
    const char *name = NULL;
    for (size_t i = 0; i < x->count; i++)
        name = name ? arena_printf(a, "%s_%s", name, x->axes[i].name) : x->axes[i].name;
    return arena_printf(a, "%s_FLAT", name);
}

int64_t lay_flat_size(const lay_order *x)
{
    int64_t all = 1;
    for (size_t i = 0; i < x->count; i++)
        all *= x->axes[i].padded;
    return all;
}

void lay_write_axes(tune_page *w, const lay_order *x, const lay_plan *p)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->axes[i].wide)
            strbuf_printf(&w->out->text, ", %s = %" PRId64, x->axes[i].wide, x->axes[i].padded);
    if (p->packs)
        strbuf_printf(&w->out->text, ", %s = %" PRId64, lay_flat(x, w->arena), lay_flat_size(x));
}

/* A tensor that is written in part: with zeros, where it is to have them. */
static void put_zeros(const lay_writer *w, const char *name, dtype type, const char *elements, bool has)
{
    if (has)
        tune_line(w->page, "// Zeros, where what follows has padding");
    tune_line(w->page, "let mut %s: %s = DmTensor::new();", name, tensor(w, &w->p->turned, type, elements));
    if (has)
        tune_line(w->page, "%s.view_mut().memset(%s, &mut device.sub);", name, tune_zero_of(type));
}

/* "": all of it. */
static const char *part_of(const lay_writer *w, const char *view)
{
    const lay_axis *x = &w->x->axes[w->p->looped];
    return w->p->parts == 1 ? "" : arena_printf(w->a, "%s.tile::<m![%s / %" PRId64 "], 1, _>(i)", view, x->name, x->size / w->p->parts);
}

static void write_load(const lay_writer *w, const char *port)
{
    const lay_order *x = w->x;
    const lay_box *b = &w->p->turned;
    const char *texts[TUNE_AXES_MAX], *tiles = "", *why = "A part for each slice, in runs as it lies",
                                      *inner = own_before(w, b, lay_innermost_before(x));
    if (!has_zeros(x)) {
        tune_begin_step(w->page, TUNE_LAY_LOAD, why);
        tune_line(w->page, "let here: %s = %s%s.to_dm(&mut device.tdma);", tensor(w, b, x->from, elements_before(w, false, inner)), port,
                  part_of(w, ".view()"));
        tune_end_step(w->page, TUNE_LAY_LOAD);
        return;
    }
    for (size_t i = 0; i < x->count; i++) {
        const lay_axis *axis = &x->axes[x->source[i]];
        texts[i] = axis->wide ? arena_printf(w->a, "%s = %" PRId64, axis->wide, axis->size) : axis->name;
        if (axis->wide && !is_widened_later(x, x->source[i]))
            tiles = arena_printf(w->a, "%s.tile::<m![%s], %" PRId64 ", _>(0)", tiles, axis->wide, axis->size);
    }
    tune_line(w->page, "let x_part = %s.view().reshape::<Chip, m![%s]>()%s;", port, list_of(w->a, texts, x->count), part_of(w, ""));
    port = "x_part";
    if (w->p->unpacks) {
        const lay_rows r = rows_before(w);
        const char *dense = own_dense(w, b, lay_innermost_before(x));
        tune_begin_step(w->page, TUNE_LAY_LOAD, why);
        tune_line(w->page, "let dense: %s = %s.to_dm(&mut device.tdma);", tensor(w, b, x->from, elements_before(w, true, dense)), port);
        tune_end_step(w->page, TUNE_LAY_LOAD);
        put_zeros(w, "here", x->from, elements_before(w, false, r.all), *tiles != '\0');
        tune_begin_step(w->page, TUNE_LAY_UNPACK, "Rows that are no whole 8 bytes, apart");
        tune_line(w->page, "device.main");
        tune_line(w->page, "    .begin(dense.view())");
        tune_line(w->page, "    .fetch::<m![%s], m![1 # %u]>()", elements_before(w, true, TUNE_LIST(w->a, r.rows, r.of_row)),
                  64 / dtype_row_of(x->from)->bits);
        tune_line(w->page, "    .collect()");
        tune_line(w->page, "    .transpose::<m![%s], m![%s # %u]>()", elements_before(w, true, r.rows), r.of_row,
                  (unsigned)w->t->flit_bytes * 8 / dtype_row_of(x->from)->bits);
        tune_line(w->page, "    .commit_trim::<m![%s]>()", r.of_row);
        tune_line(w->page, "    .commit_view(here.view_mut()%s);", tiles);
        tune_end_step(w->page, TUNE_LAY_UNPACK);
        return;
    }
    put_zeros(w, "here", x->from, elements_before(w, false, inner), *tiles != '\0');
    tune_begin_step(w->page, TUNE_LAY_LOAD, why);
    tune_line(w->page, "%s.to_dm_view(&mut device.tdma, here.view_mut()%s);", port, tiles);
    tune_end_step(w->page, TUNE_LAY_LOAD);
}

static void write_turn(const lay_writer *w)
{
    const lay_order *x = w->x;
    const lay_box *b = &w->p->turned;
    size_t inner = lay_innermost(x), before = lay_innermost_before(x);
    int64_t row = lay_row(w->t, x), packet = w->p->packet, flit = w->t->flit_bytes * 8 / dtype_row_of(x->into)->bits;
    const char *outer[TUNE_AXES_MAX];
    for (size_t i = 0; i < inner; i++)
        outer[i] = packet > 1 && i == before ? NULL : own_before(w, b, i);
    const char *others = inner > 0 ? list_of(w->a, outer, inner) : NULL, *rows = digit(w, b, inner, row, b->tile[inner] / row),
               *of_row = digit(w, b, inner, 1, row), *packets = NULL, *of_packet = NULL;
    if (packet > 1) {
        packets = digit(w, b, before, packet, b->tile[before] / packet);
        of_packet = digit(w, b, before, 1, packet);
    }
    const char *tiles = "";
    for (size_t i = 0; i < x->count; i++)
        if (is_widened_later(x, i))
            tiles = arena_printf(w->a, "%s.tile::<m![%s], %" PRId64 ", _>(0)", tiles, x->axes[i].wide, x->axes[i].size);
    if (*tiles)
        put_zeros(w, "turned", x->into, elements_of(w, b), true);
    tune_begin_step(w->page, TUNE_LAY_TURN,
                    packet > 1 ? arena_printf(w->a, "Turned, %" PRId64 " by %" PRId64 " elements at a time", row, packet)
                               : arena_printf(w->a, "Turned: element by element, %" PRId64 " side by side", row));
    if (*tiles)
        tune_line(w->page, "device.main");
    else
        tune_line(w->page, "let turned: %s = device.main", tensor(w, b, x->into, elements_of(w, b)));
    tune_line(w->page, "    .begin(here.view())");
    if (packet > 1)
        tune_line(w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, others, rows, packets, of_row), of_packet);
    else
        tune_line(w->page, "    .fetch::<m![%s], m![1 # %u]>()", TUNE_LIST(w->a, others, rows, of_row), 64 / dtype_row_of(x->from)->bits);
    if (x->from != x->into)
        tune_line(w->page, "    .fetch_cast::<%s>()", dtype_row_of(x->into)->name);
    tune_line(w->page, "    .collect()");
    tune_line(w->page, "    .transpose::<m![%s], m![%s # %" PRId64 "]>()", TUNE_LIST(w->a, others, rows, packets, of_packet), of_row, flit);
    tune_line(w->page, "    .commit_trim::<m![%s]>()", of_row);
    if (*tiles)
        tune_line(w->page, "    .commit_view(turned.view_mut()%s);", tiles);
    else
        tune_line(w->page, "    .commit();");
    tune_end_step(w->page, TUNE_LAY_TURN);
}

/* Rows one after the other, without what pads them: over an axis that knows no rows. */
static void write_packed(const lay_writer *w, const char *from)
{
    const lay_order *x = w->x;
    const lay_box *b = w->p->brings ? &w->p->whole : &w->p->turned;
    size_t inner = lay_innermost(x);
    int64_t row = x->axes[inner].size, elements = lay_elements(b, inner) * row, slices = lay_slices(w->t, x, b), unit = lay_row(w->t, x),
            clusters = lay_flat_size(x) / (elements * slices), flit = w->t->flit_bytes * 8 / dtype_row_of(x->into)->bits;
    const char *flat = lay_flat(x, w->a), *type = dtype_row_of(x->into)->name,
               *part = clusters * slices == 1 ? flat : arena_printf(w->a, "%s %% %" PRId64, flat, elements),
               *digits[] = {clusters == 1 ? arena_printf(w->a, "%s / %" PRId64, flat, elements)
                                          : arena_printf(w->a, "%s / %" PRId64 " %% %" PRId64, flat, elements, slices)},
               *cluster = clusters > 1 ? arena_printf(w->a, "%s / %" PRId64, flat, elements * slices) : tune_idle_clusters(w->t, w->a),
               *slice = spread(w, b, digits, 1),
               *rows = elements == row          ? NULL
                       : clusters * slices == 1 ? arena_printf(w->a, "%s / %" PRId64, flat, row)
                                                : arena_printf(w->a, "%s / %" PRId64 " %% %" PRId64, flat, row, elements / row);
    const char *of_row = elements == row && clusters * slices == 1 ? flat : arena_printf(w->a, "%s %% %" PRId64, flat, row);
    tune_begin_step(w->page, TUNE_LAY_PACK, "Rows that are no whole 8 bytes, one after the other without padding");
    tune_line(w->page, "let flat: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = unsafe { %s.reshape() };", type, cluster, slice,
              TUNE_LIST(w->a, rows, arena_printf(w->a, "%s # %" PRId64, of_row, b->tile[inner])), from);
    tune_line(w->page, "let packed: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = device.main", type, cluster, slice, part);
    tune_line(w->page, "    .begin(flat.view())");
    tune_line(w->page, "    .fetch::<m![%s], m![1 # %" PRId64 "]>()", part, unit);
    tune_line(w->page, "    .collect()");
    tune_line(w->page, "    .transpose::<m![%s], m![%s %% %" PRId64 " # %" PRId64 "]>()",
              elements == unit         ? "1"
              : clusters * slices == 1 ? arena_printf(w->a, "%s / %" PRId64, flat, unit)
                                       : arena_printf(w->a, "%s / %" PRId64 " %% %" PRId64, flat, unit, elements / unit),
              flat, unit, flit);
    tune_line(w->page, "    .commit_trim::<m![%s %% %" PRId64 "]>()", flat, unit);
    tune_line(w->page, "    .commit();");
    lay_order named = *x;
    for (size_t i = 0; i < x->count; i++)
        named.axes[i].name = x->axes[i].after ? x->axes[i].after : x->axes[i].name;
    const lay_writer after = {.page = w->page, .t = w->t, .x = &named, .p = w->p, .a = w->a};
    const char *texts[TUNE_AXES_MAX];
    for (size_t i = 0; i < x->count; i++)
        texts[i] = i == inner ? named.axes[i].name : own(&after, b, i);
    tune_line(w->page, "let packed: %s = unsafe { packed.reshape() };", tensor(&after, b, x->into, list_of(w->a, texts, x->count)));
    tune_end_step(w->page, TUNE_LAY_PACK);
}

void lay_write(tune_page *page, const target *t, const lay_order *x, const lay_plan *p, const char *port)
{
    const lay_writer w = {.page = page, .t = t, .x = x, .p = p, .a = page->arena};
    const char *last = "turned";
    if (p->parts > 1) {
        tune_line(page, "let mut laid: HbmTensor<%s, Chip, m![%s]> = HbmTensor::new();", dtype_row_of(x->into)->name,
                  lay_target(x, page->arena));
        tune_line(page, "for i in 0..%" PRId64 " {", p->parts);
        page->depth++;
    }
    write_load(&w, port);
    write_turn(&w);
    if (p->brings) {
        tune_begin_step(page, TUNE_LAY_BRING, "A copy brings what follows each other now into a slice");
        tune_line(page, "let whole: %s = %s.to_dm(&mut device.tdma);", tensor(&w, &p->whole, x->into, elements_of(&w, &p->whole)), last);
        tune_end_step(page, TUNE_LAY_BRING);
        last = "whole";
    }
    if (p->packs) {
        write_packed(&w, last);
        last = "packed";
    }
    tune_begin_step(page, TUNE_LAY_STORE, "Out, in runs as it is to lie");
    if (p->parts == 1)
        tune_line(page, "%s.to_hbm(&mut device.tdma)", last);
    else
        tune_line(page, "%s.view().to_hbm_view(&mut device.tdma, laid%s);", last, part_of(&w, ".view_mut()"));
    tune_end_step(page, TUNE_LAY_STORE);
    if (p->parts > 1) {
        page->depth--;
        tune_line(page, "}");
        tune_line(page, "laid");
    }
}

const char *lay_describe(const target *t, const lay_order *x, const lay_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    size_t shared = lay_cluster_axis(t, x, &p->turned);
    for (size_t i = 0; i < x->count; i++) {
        static const tune_share NOTHING = {0};
        int64_t clusters = i == shared ? t->clusters_per_chip : 1, parts = i == p->looped ? p->parts : 1;
        tune_describe_split(x->axes[i].name, &NOTHING, x->axes[i].size, parts, clusters, p->turned.count[i] / clusters, p->turned.tile[i],
                            lay_padded(&p->turned, i) * parts, &out);
    }
    return out.text;
}
