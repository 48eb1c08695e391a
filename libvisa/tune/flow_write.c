#include "libvisa/tune/flow_write.h"

#include <inttypes.h>
#include <string.h>

#include "libvisa/tune/machine.h"
#include "support/integer.h"

enum { LANES = 8, NO_GROUP = FLOW_GROUPS_MAX };

typedef struct writer {
    const tune_flow *f;
    const flow_plan *p;
    const target *t;
    arena *a;
    tune_page page;
    size_t looped;      /* the group with iterations; NO_GROUP: there is none */
    const char *around; /* in place of slices that share an axis, what each of them brings; NULL: they have the same */
    int step;           /* of the text */
    flow_ring left;     /* what slices that share an axis have after it is folded, a part each; one slice: they do not */
    unsigned unnamed;   /* groups, a bit each, whose digits of clusters and slices are copies without a name */
    bool is_flat;       /* the result's rows, and what they are rows of, are one axis */
} writer;

/* What goes through a pass: a stream of these groups, from a value in DM. */
typedef struct stream {
    const char *name;
    dtype type;
    size_t groups[FLOW_GROUPS_MAX], count; /* outermost first; the innermost is that of the packets where it is packed */
    bool is_packed;
    int64_t lanes;          /* elements of a packet, where it is packed; 0: whole flits */
    const flow_value *sums; /* of a contraction, as they leave the Reducer; NULL: the stream is from DM */
    unsigned gathered;      /* groups whose slices have been folded into their first one */
} stream;

static const char *type_name(dtype t)
{
    return dtype_row_of(t)->name;
}

static const char *padded_to(const writer *w, const char *mapping, int64_t from, int64_t to)
{
    return from == to ? (mapping ? mapping : "1") : arena_printf(w->a, "%s # %" PRId64, mapping ? mapping : "1", to);
}

/* The digit of an axis that ends with its own padding: "C # 24 / 8". */
static const char *digit_of_padded(const writer *w, size_t g, int64_t padded, int64_t stride, int64_t count)
{
    const flow_group *group = &w->f->groups[g];
    if (count == 1)
        return NULL;
    const char *text = padded == group->size ? group->text : arena_printf(w->a, "%s # %" PRId64, group->text, padded);
    text = stride > 1 ? arena_printf(w->a, "%s / %" PRId64, text, stride) : text;
    return stride * count < padded ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

/* Of positions that have so many elements each under the axis `text`. */
static const char *digit_of_each(const writer *w, const char *text, int64_t each, int64_t size, const flow_split *s, int64_t stride,
                                 int64_t count)
{
    const bool is_cluster = s->is_even && stride == s->slice * s->tile * each;
    int64_t whole = size * each, in_loop = whole / s->loop, of = s->is_even ? in_loop / s->cluster : in_loop,
            padded = (s->is_even ? s->slice * s->tile : s->padded) * each;
    if (count == 1)
        return NULL;
    if (s->stays && stride >= s->tile * each) { /* of clusters and slices, around the iterations */
        stride *= s->loop;
        of = padded = whole;
    }
    if (is_cluster)
        stride = of;
    else if (padded != of) {
        text = of < whole ? arena_printf(w->a, "%s %% %" PRId64 " # %" PRId64, text, of, padded)
                          : arena_printf(w->a, "%s # %" PRId64, text, padded);
        whole = padded;
    }
    if (stride > 1)
        text = arena_printf(w->a, "%s / %" PRId64, text, stride);
    return stride * count < whole ? arena_printf(w->a, "%s %% %" PRId64, text, count) : text;
}

/* The result's rows and what they are rows of as one axis: "R_C". */
static const char *flat_axis(const writer *w)
{
    return arena_printf(w->a, "%s_%s", w->f->groups[flow_packed_group(w->f)].text, flow_row_of_result(w->f)->text);
}

/* "C # 1024 / 8 % 4", NULL where it has one position. */
static const char *digit_in(const writer *w, size_t g, const flow_split *s, int64_t stride, int64_t count)
{
    const flow_group *group = &w->f->groups[g];
    if (!w->is_flat || g != flow_packed_group(w->f))
        return digit_of_each(w, group->text, 1, group->size, s, stride, count);
    int64_t each = flow_row_of_result(w->f)->size;
    return digit_of_each(w, flat_axis(w), each, group->size, s, stride * each, count);
}

static const char *digit(const writer *w, size_t g, int64_t stride, int64_t count)
{
    return digit_in(w, g, &w->p->split[g], stride, count);
}

static const char *tile(const writer *w, size_t g)
{
    return digit(w, g, 1, w->p->split[g].tile / (g == w->left.group ? w->left.slices : 1));
}

/* A new axis for slices that have all the same; its size is in its name, so that kernels of one file can share it. */
static const char *sharers(const writer *w, int64_t count)
{
    return arena_printf(w->a, "SHARERS_%" PRId64, count);
}

/* `shared`: of this group, slices have all the same. */
static const char *slice_digit(const writer *w, size_t g, unsigned gathered, size_t shared)
{
    const flow_split *s = &w->p->split[g];
    if (w->unnamed >> g & 1)
        return s->slice > 1 ? arena_printf(w->a, "%" PRId64, s->slice) : NULL;
    if (g == shared)
        return w->around ? w->around : sharers(w, s->slice);
    if ((gathered >> g & 1) && s->slice > 1 && w->left.slices > 1)
        return digit(w, w->left.group, w->p->split[w->left.group].tile / w->left.slices, w->left.slices);
    if (gathered >> g & 1)
        return s->slice > 1 ? arena_printf(w->a, "1 # %" PRId64, s->slice) : NULL;
    return digit(w, g, s->tile, s->slice);
}

/* What is folded over slices is innermost; idle slices are in front of it. */
static const char *slices(const writer *w, unsigned gathered, size_t shared)
{
    const char *parts[2 * FLOW_GROUPS_MAX + 1] = {0};
    size_t count = 0;
    int64_t used = 1;
    for (size_t g = 0; g < w->f->group_count; g++) {
        used *= w->p->split[g].slice;
        if (!w->f->groups[g].is_reduced)
            parts[count++] = slice_digit(w, g, gathered, shared);
    }
    if (used < w->t->slices_per_cluster)
        parts[count++] = arena_printf(w->a, "1 # %" PRId64, w->t->slices_per_cluster / used);
    for (size_t g = 0; g < w->f->group_count; g++)
        if (w->f->groups[g].is_reduced)
            parts[count++] = slice_digit(w, g, gathered, shared);
    return tune_list(w->a, parts, count);
}

static const char *clusters(const writer *w)
{
    const char *parts[FLOW_GROUPS_MAX];
    bool shared = false;
    for (size_t g = 0; g < w->f->group_count; g++) {
        const flow_split *s = &w->p->split[g];
        parts[g] = w->unnamed >> g & 1 && s->cluster > 1 ? arena_printf(w->a, "%" PRId64, s->cluster)
                                                         : digit(w, g, s->tile * s->slice, s->cluster);
        shared = shared || s->cluster > 1;
    }
    return shared ? tune_list(w->a, parts, w->f->group_count) : tune_idle_clusters(w->t, w->a);
}

static const char *slice_type(const writer *w, unsigned gathered)
{
    bool same = true;
    for (size_t g = 0; g < w->f->group_count; g++)
        same = same && (!(gathered >> g & 1) || w->p->split[g].slice == 1);
    return same ? "Slice" : arena_printf(w->a, "m![%s]", slices(w, gathered, NO_GROUP));
}

/* Tiles of groups, in their order, and `last` after them. */
static const char *tiles(const writer *w, const size_t *groups, size_t count, const char *last)
{
    const char *parts[FLOW_GROUPS_MAX + 1];
    for (size_t i = 0; i < count; i++)
        parts[i] = tile(w, groups[i]);
    parts[count] = last;
    return tune_list(w->a, parts, count + 1);
}

/* "1" in a list is nothing. */
static const char *in_list(const char *mapping)
{
    return strcmp(mapping, "1") == 0 ? NULL : mapping;
}

/* As a stream's values lie in DM or in the VRF: whole flits. */
static const char *element(const writer *w, const stream *s)
{
    if (!s->is_packed)
        return tiles(w, s->groups, s->count, "1 # 8");
    int64_t inner = w->p->split[s->groups[s->count - 1]].tile;
    return tiles(w, s->groups, s->count - 1, padded_to(w, tile(w, s->groups[s->count - 1]), inner, round_up(inner, LANES)));
}

/* ---- the kernel ---- */

static void begin_step(writer *w, const char *why)
{
    tune_begin_step(&w->page, (tune_step)w->step, why);
}

static void end_step(writer *w)
{
    tune_end_step(&w->page, (tune_step)w->step);
    w->step += w->step + 1 < TUNE_STEPS;
}

/* Rows of a tensor in HBM that a copy takes are whole 8 bytes. */
static const char *port_mapping(const writer *w, const flow_value *v)
{
    const tune_expression *e = w->f->e;
    const tune_tensor *t = &e->tensors[v->tensor];
    const char *parts[TUNE_AXES_MAX];
    size_t groups[FLOW_GROUPS_MAX], group_count = tune_flow_order_in_hbm(w->f, v->tensor, groups), count = 0, group = 0;
    for (size_t at = 0; at < t->count; at++) {
        if (e->absent >> t->axes[at] & 1) {
            parts[count++] = e->axes[t->axes[at]].name;
            continue;
        }
        const flow_group *g = group < group_count ? &w->f->groups[groups[group]] : NULL;
        if (!g || !(g->axes >> t->axes[at] & 1)) /* one of a group that stands there already */
            continue;
        bool pads = v->tensor && group + 1 == group_count && g->size * dtype_row_of(v->type)->bits % 64 != 0;
        int64_t padded = larger(w->p->split[groups[group]].padded, 64 / dtype_row_of(v->type)->bits);
        if (v->tensor && t->row_in_hbm > 0 && group + 1 == group_count) {
            pads = true;
            padded = t->row_in_hbm;
        }
        const bool is_alone = pads && count == 0; /* all that there is of a tensor */
        if (!(e->implied >> t->axes[at] & 1) || is_alone)
            parts[count++] = pads ? padded_to(w, g->text, g->size, padded) : g->text;
        group++;
    }
    return tune_list(w->a, parts, count);
}

/* Is there a group that is called so? */
static bool is_group(const tune_flow *f, const char *name)
{
    for (size_t g = 0; g < f->group_count; g++)
        if (strcmp(f->groups[g].text, name) == 0)
            return true;
    return false;
}

/* The digit of the axis that iterations share: the outermost, "R / 64", or the one around a slice's tile. */
static const char *iterations(const writer *w)
{
    const flow_group *g = &w->f->groups[w->looped];
    const flow_split *s = &w->p->split[w->looped];
    int64_t each = g->size / s->loop;
    if (s->stays)
        return digit_of_padded(w, w->looped, g->size, s->tile, s->loop);
    return each > 1 ? arena_printf(w->a, "%s / %" PRId64, g->text, each) : g->text;
}

/* ".view().tile::<m![R / 64], 1, _>(i)" of a tensor that the iterations share; "" of another one. */
static const char *part_of(const writer *w, const flow_value *v, const char *view)
{
    if (w->looped == NO_GROUP || !(v->has >> w->looped & 1))
        return "";
    return arena_printf(w->a, "%s.tile::<m![%s], 1, _>(i)", view, iterations(w));
}

/* Of the weights' kept axis, what each of the slices that hand them on brings a part of; and what all of these have. */
static const char *handed_digits(const writer *w, const flow_handing *h, size_t kept)
{
    return TUNE_LIST(w->a, digit(w, kept, 1, h->lanes), digit(w, kept, LANES, h->groups));
}

static const char *left_of_handing(const writer *w, const flow_handing *h, size_t kept)
{
    const char *lanes = digit(w, kept, h->lanes, LANES / h->lanes),
               *groups = digit(w, kept, LANES * h->groups, w->p->split[kept].tile / (LANES * h->groups));
    return lanes || groups ? TUNE_LIST(w->a, lanes, groups) : NULL;
}

/* Positions of the kept axis in one of so many parts: the outermost digit of what each of these slices brings has them. */
static int64_t part_of_handing(const writer *w, const flow_handing *h, size_t kept, int64_t parts)
{
    return h->lanes * parts <= LANES ? LANES / parts : w->p->split[kept].tile / parts;
}

/* Of what a slice brings, one of so many parts. */
static const char *left_of_part(const writer *w, const flow_handing *h, size_t kept, int64_t parts)
{
    const bool of_lanes = h->lanes * parts <= LANES;
    const int64_t lanes = LANES / h->lanes, groups = w->p->split[kept].tile / (LANES * h->groups);
    return TUNE_LIST(w->a, digit(w, kept, h->lanes, of_lanes ? lanes / parts : lanes),
                     digit(w, kept, LANES * h->groups, of_lanes ? groups : groups / parts));
}

/* Of weights that come in two copies, what both bring. */
static const char *name_of_both(const writer *w, const flow_value *v)
{
    return arena_printf(w->a, "halves_%zu", (size_t)(v - w->f->values));
}

/* Of what goes into the VRF, the tiles that each of them brings, and `last` after them. */
static const char *rows_of_handing(const writer *w, const flow_handing *h, const flow_value *v, const char *last)
{
    const char *parts[FLOW_GROUPS_MAX + 1];
    for (size_t i = 0; i + 1 < v->count; i++)
        parts[i] = tile(w, v->groups[i]);
    const size_t kept = v->groups[v->count - 2];
    parts[v->count - 2] = digit(w, kept, h->slices, w->p->split[kept].tile / h->slices);
    parts[v->count - 1] = last;
    return tune_list(w->a, parts, v->count);
}

/* What lacks an axis that chips share is in the HBM of each under the name of its part, and of what has one digit of an axis no copy makes
 * others: clusters and slices get copies without a name, and the name after. */
static void write_tensor(writer *w, const flow_value *v, size_t around, const char *element)
{
    const unsigned gathered = flow_gathered_of(w->f, w->p, v);
    const char *named = around == NO_GROUP ? slice_type(w, gathered) : arena_printf(w->a, "m![%s]", slices(w, 0, around));
    for (size_t g = 0; g < w->f->group_count; g++)
        if (w->f->share[g].axis && !(v->has >> g & 1) && w->p->split[g].slice * w->p->split[g].cluster > 1)
            w->unnamed |= 1U << g;
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, %s, %s, m![%s]> = %s%s.to_dm(&mut device.tdma);", v->name, type_name(v->type),
              w->unnamed ? arena_printf(w->a, "m![%s]", clusters(w)) : "Cluster",
              w->unnamed ? arena_printf(w->a, "m![%s]", slices(w, gathered, around)) : named, element, w->f->e->tensors[v->tensor].port,
              flow_comes_ahead(w->f, w->p, w->t, v) ? "" : part_of(w, v, ".view()"));
    if (w->unnamed)
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = unsafe { %s.reshape() };", v->name, type_name(v->type),
                  named, element, v->name);
    w->unnamed = 0;
}

/* Axes of slices in a ring, and of rings: new ones, since the switch gives all slices of a ring the same. */
static const char *in_rings(const writer *w, const flow_ring *r, bool of_rings)
{
    int64_t count = of_rings ? w->p->split[flow_shared_group(w->f, w->p)].slice / r->slices : r->slices;
    return count > 1 ? arena_printf(w->a, of_rings ? "RINGS_%" PRId64 : "RING_%" PRId64, count) : NULL;
}

/* Each slice of a ring brings a packet, and all get all of them: into DM again, by the sub context. */
static void write_packets_around(writer *w, const flow_value *v, const flow_ring *r)
{
    const size_t shared = flow_shared_group(w->f, w->p), summed = v->groups[v->count - 1];
    const char *rings = in_rings(w, r, true), *rows = v->count > 1 ? in_list(tiles(w, v->groups, v->count - 1, NULL)) : NULL,
               *steps = digit(w, summed, r->packet, w->p->split[summed].tile / r->packet), *packet = digit(w, summed, 1, r->packet);
    int64_t flit = w->t->flit_bytes * 8 / dtype_row_of(v->type)->bits;
    begin_step(w, arena_printf(w->a, "A packet for each slice, once for %" PRId64 " of them", r->slices));
    w->around = TUNE_LIST(w->a, rings, rows, steps);
    write_tensor(w, v, shared, packet);
    end_step(w);
    w->around = TUNE_LIST(w->a, rings, in_rings(w, r, false));
    const char *all = slices(w, 0, shared), *of = tiles(w, v->groups, v->count, NULL);
    w->around = NULL;
    begin_step(w, "The Switch Engine takes them around, in the sub context");
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = device.sub", v->name, type_name(v->type), all, of);
    tune_line(&w->page, "    .begin(%s.view())", v->name);
    tune_line(&w->page, "    .fetch::<m![1], m![%s]>()", packet);
    tune_line(&w->page, "    .switch::<m![%s], m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: 1 })", all,
              TUNE_LIST(w->a, rows, steps), r->slices);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", digit(w, summed, 1, smaller(flit, r->packet)));
    tune_line(&w->page, "    .commit();");
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = unsafe { %s.reshape() };", v->name, type_name(v->type), of,
              v->name);
    end_step(w);
}

/* Weights that slices hand on, in two copies. */
static void write_both(writer *w, const flow_value *v, const flow_handing *h)
{
    const size_t kept = v->groups[v->count - 2];
    const char *both = name_of_both(w, v), *half = digit(w, kept, part_of_handing(w, h, kept, 2), 2), *part = part_of(w, v, ".view()");
    begin_step(w, arena_printf(w->a,
                               "In two copies, once for %" PRId64 " slices: the Switch Engine hands on what is there while the rest comes",
                               h->slices));
    tune_line(&w->page, "let mut %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = DmTensor::new();", both, type_name(v->type),
              slices(w, 0, h->group), TUNE_LIST(w->a, half, left_of_part(w, h, kept, 2), tile(w, v->groups[v->count - 1])));
    for (int i = 0; i < 2; i++)
        tune_line(&w->page, "%s%s.tile::<m![%s], 1, _>(%d).to_dm_view(&mut device.tdma, %s.view_mut().tile::<m![%s], 1, _>(%d));",
                  w->f->e->tensors[v->tensor].port, *part ? part : ".view()", half, i, both, half, i);
    end_step(w);
}

static void write_load(writer *w, const flow_step *s)
{
    const flow_value *v = &w->f->values[s->to];
    int64_t elements = flow_tile_of(w->f, w->p, w->t, v);
    const char *others[FLOW_GROUPS_MAX];
    size_t count = 0;
    const unsigned gathered = flow_gathered_of(w->f, w->p, v);
    for (size_t g = 0; g < w->f->group_count; g++)
        if (!((v->has | gathered) >> g & 1) && w->p->split[g].slice * w->p->split[g].cluster > 1)
            others[count++] = w->f->share[g].axis ? w->f->share[g].axis : w->f->groups[g].text;
    flow_ring ring = flow_ring_of(w->f, w->p, w->t, v);
    flow_handing h = flow_handing_of(w->f, w->p, w->t, v);
    if (h.slices > 1) {
        const bool is_kept = (w->f->copied_alone >> (v - w->f->values) & 1);
        const size_t kept = v->groups[v->count - 2];
        w->around = is_kept ? digit(w, kept, 1, h.slices) : handed_digits(w, &h, kept);
        if (flow_comes_twice(w->f, w->p, w->t, v)) {
            write_both(w, v, &h);
            w->around = NULL;
            return;
        }
        begin_step(w, arena_printf(w->a, "%" PRId64 " bytes for each slice, once for %" PRId64 " of them: the Switch Engine hands them on",
                                   ceil_div(elements * dtype_row_of(v->type)->bits, 8), h.slices));
        tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, m![%s], m![%s]> = %s%s.to_dm(&mut device.tdma);", v->name,
                  type_name(v->type), slices(w, 0, h.group),
                  is_kept ? rows_of_handing(w, &h, v, tile(w, v->groups[v->count - 1]))
                          : TUNE_LIST(w->a, left_of_handing(w, &h, kept), tile(w, v->groups[v->count - 1])),
                  w->f->e->tensors[v->tensor].port, part_of(w, v, ".view()"));
        w->around = NULL;
        end_step(w);
        return;
    }
    if (ring.packet > 0) {
        write_packets_around(w, v, &ring);
        return;
    }
    if (ring.slices > 1) {
        const char *parts[FLOW_GROUPS_MAX];
        int64_t left = w->p->split[ring.group].tile / ring.slices;
        for (size_t i = 0; i < v->count; i++)
            parts[i] = v->groups[i] == ring.group ? digit(w, ring.group, 1, left) : tile(w, v->groups[i]);
        w->around = digit(w, ring.group, left, ring.slices);
        begin_step(w,
                   arena_printf(w->a, "%" PRId64 " bytes for each slice, once for %" PRId64 " of them: the Switch Engine takes them around",
                                ceil_div(elements * dtype_row_of(v->type)->bits, 8), ring.slices));
        const char *of = tune_list(w->a, parts, v->count);
        if (flow_comes_ahead(w->f, w->p, w->t, v))
            of = TUNE_LIST(w->a, iterations(w), in_list(of));
        write_tensor(w, v, flow_shared_group(w->f, w->p), of);
        w->around = NULL;
        end_step(w);
        return;
    }
    begin_step(
        w, arena_printf(w->a, count ? "%" PRId64 " bytes for each slice, the same for all parts of %s" : "%" PRId64 " bytes for each slice",
                        ceil_div(elements * dtype_row_of(v->type)->bits, 8), tune_list(w->a, others, count)));
    bool alone = v->count == 0 || elements == 1, is_ahead = flow_comes_ahead(w->f, w->p, w->t, v);
    const char *of = alone ? arena_printf(w->a, "1 # %d", (int)(64 / dtype_row_of(v->type)->bits)) : tiles(w, v->groups, v->count, NULL);
    if (is_ahead)
        of = TUNE_LIST(w->a, iterations(w), in_list(tiles(w, v->groups, v->count, NULL)));
    write_tensor(w, v, NO_GROUP, of);
    end_step(w);
}

static void write_methods(writer *w, const tune_lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        tune_line(&w->page, "    .%s", l->text[i]);
}

/* Of a stream, its groups without one. */
static void leave_out(stream *s, size_t group)
{
    size_t kept = 0;
    bool innermost = s->count > 0 && s->groups[s->count - 1] == group;
    for (size_t i = 0; i < s->count; i++)
        if (s->groups[i] != group)
            s->groups[kept++] = s->groups[i];
    s->count = kept;
    s->is_packed = s->is_packed && !innermost;
}

static int64_t lanes_of(const stream *s)
{
    return s->lanes > 0 ? s->lanes : LANES;
}

/* Of the innermost kept group of the rows, digits of what a slice has: groups of 8 outside of a packet's registers, those, and the 8. */
static const char *digit_of_rows(const writer *w, const flow_value *sums, int64_t stride, int64_t count)
{
    const flow_value *rows = &w->f->values[sums->rows];
    if (rows->count < 2)
        return NULL;
    const size_t g = rows->groups[rows->count - 2];
    const int64_t has = w->p->split[g].tile / (g == w->left.group ? w->left.slices : 1);
    return stride < has ? digit(w, g, stride, smaller(count, has / stride)) : NULL;
}

static const char *outer_rows(const writer *w, const flow_value *sums)
{
    const flow_value *rows = &w->f->values[sums->rows];
    return rows->count > 2 ? in_list(tiles(w, rows->groups, rows->count - 2, NULL)) : NULL;
}

/* Sums of what streams as it lies leave so: the groups of 8 rows that follow each other, the packets, and those that a packet meets. */
static const char *time_of_lying(const writer *w, const flow_value *sums, const char *summed, bool of_beats)
{
    const flow_lying x = flow_lying_of(w->f, w->p, sums);
    const size_t kept = sums->groups[sums->count - 1];
    const int64_t tile_of = w->p->split[kept].tile, met = LANES * x.groups;
    const char *outside = digit_of_rows(w, sums, met, INT64_MAX), *packets = digit(w, kept, x.packet, tile_of / x.packet),
               *groups = digit_of_rows(w, sums, LANES, x.groups);
    if (!of_beats)
        return TUNE_LIST(w->a, outer_rows(w, sums), outside, packets, summed, groups);
    const char *row = digit_of_rows(w, sums, 1, LANES);
    const int64_t few = flow_inner_rows(w->f, w->p, sums);
    if (few < LANES && few != power_of_two_above(few)) /* Rows are a power of two, and leave with their padding */
        row = padded_to(w, row, few, power_of_two_above(few));
    return TUNE_LIST(w->a, outer_rows(w, sums), outside, packets, groups, row, digit(w, kept, LANES, x.packet / LANES));
}

/* Time of a stream: whole flits, or one for each element where it is not packed; what is folded is innermost. */
static const char *time_of(const writer *w, const stream *s, size_t folded)
{
    if (s->sums && s->sums->lying)
        return time_of_lying(w, s->sums, NULL, true);
    const char *parts[FLOW_GROUPS_MAX + 2];
    size_t count = 0;
    for (size_t i = 0; i + s->is_packed < s->count; i++)
        if (s->groups[i] != folded)
            parts[count++] = tile(w, s->groups[i]);
    if (s->is_packed) {
        size_t inner = s->groups[s->count - 1];
        parts[count++] = digit(w, inner, lanes_of(s), w->p->split[inner].tile / lanes_of(s));
        if (folded != inner)
            parts[count++] = folded == NO_GROUP ? NULL : tile(w, folded);
    } else if (folded != NO_GROUP)
        parts[count++] = tile(w, folded);
    return tune_list(w->a, parts, count);
}

static const char *packet_of(const writer *w, const stream *s)
{
    if (!s->is_packed)
        return "1 # 8";
    return padded_to(w, digit(w, s->groups[s->count - 1], 1, lanes_of(s)), lanes_of(s), LANES);
}

/* Kept groups of the weights, in the order of the sums, the innermost in packets: all of them, or those outside of the Rows. */
static const char *columns_of(const writer *w, const flow_value *sums, bool all)
{
    const char *parts[FLOW_GROUPS_MAX];
    if (!sums->is_packed)
        return "1";
    size_t count = 0, inner = sums->groups[sums->count - 1];
    for (size_t i = 0; i + 1 < sums->count; i++)
        if (!(w->f->values[sums->rows].has >> sums->groups[i] & 1))
            parts[count++] = tile(w, sums->groups[i]);
    int64_t in = w->p->split[inner].tile;
    parts[count++] = all ? digit(w, inner, 1, in) : digit(w, inner, LANES, in / LANES);
    return tune_list(w->a, parts, count);
}

static const char *rows_of(const writer *w, const flow_value *sums)
{
    const flow_value *rows = &w->f->values[sums->rows];
    return tiles(w, rows->groups, rows->count - 1, NULL);
}

/* What lies [summed, kept] meets the rows, an element of them in all lanes of a packet. The tree adds nothing: sums are over time. */
static void write_sums_of_lying(writer *w, const flow_value *sums)
{
    const tune_flow *f = w->f;
    const flow_value *v = &f->values[sums->lying];
    const flow_lying x = flow_lying_of(f, w->p, sums);
    const size_t kept = sums->groups[sums->count - 1];
    const int64_t lanes = 2 * w->t->flit_bytes * 8 / dtype_row_of(f->type)->bits;
    const char *summed = tile(w, sums->summed), *packet = digit(w, kept, 1, x.packet), *time = time_of_lying(w, sums, summed, false),
               *before = TUNE_LIST(w->a, outer_rows(w, sums), digit_of_rows(w, sums, LANES * x.groups, INT64_MAX),
                                   digit(w, kept, x.packet, w->p->split[kept].tile / x.packet), summed),
               *out = time_of_lying(w, sums, NULL, false);
    tune_line(&w->page, "    .begin(%s.view())", v->name);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", before, packet);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&%s)", time, padded_to(w, packet, x.packet, lanes),
              f->values[sums->weights].name);
    tune_line(&w->page, "    .contract_packet::<m![%s]>()", packet);
    tune_line(&w->page, "    .contract_time::<m![%s]>()", out);
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Sequential)", time_of_lying(w, sums, NULL, true),
              digit(w, kept, 1, LANES));
}

/* The rows meet the weights, up to the sums. */
static void write_sums(writer *w, const flow_value *sums)
{
    if (sums->lying) {
        write_sums_of_lying(w, sums);
        return;
    }
    const tune_flow *f = w->f;
    const flow_value *weights = &f->values[sums->weights];
    int64_t packet = flow_packet_of(f, w->p, w->t, sums->summed), flit = w->t->flit_bytes * 8 / dtype_row_of(f->type)->bits,
            part = w->p->split[sums->summed].tile;
    const char *rows = in_list(rows_of(w, sums)), *steps = digit(w, sums->summed, packet, part / packet),
               *of_packet = digit(w, sums->summed, 1, packet), *groups = in_list(columns_of(w, sums, false)),
               *lanes = sums->is_packed ? digit(w, sums->groups[sums->count - 1], 1, LANES) : "1 # 8";
    const flow_value *v = &f->values[sums->rows];
    tune_line(&w->page, "    .begin(%s.view()%s)", v->name, flow_comes_ahead(f, w->p, w->t, v) ? part_of(w, v, "") : "");
    flow_ring ring = flow_ring_of(f, w->p, w->t, v);
    const char *here[FLOW_GROUPS_MAX];
    int64_t inside = part / packet; /* steps of time of what one slice brings */
    for (size_t i = 0; i + 1 < v->count; i++) {
        int64_t left = w->p->split[v->groups[i]].tile / (v->groups[i] == ring.group ? ring.slices : 1);
        here[i] = digit(w, v->groups[i], 1, left);
        inside *= left;
    }
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, in_list(tune_list(w->a, here, v->count - 1)), steps), of_packet);
    if (v->type != f->type)
        tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(f->type));
    if (ring.slices > 1 && ring.packet == 0)
        tune_line(&w->page,
                  "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
                  TUNE_LIST(w->a, rows, steps), ring.slices, inside);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .contract_outer::<m![%s], m![%s], _, _, _>(&%s)", TUNE_LIST(w->a, rows, steps, groups),
              padded_to(w, of_packet, packet, 2 * flit), weights->name);
    tune_line(&w->page, "    .contract_packet::<m![1]>()");
    tune_line(&w->page, "    .contract_time::<m![%s]>()", TUNE_LIST(w->a, rows, groups));
    tune_line(&w->page, "    .contract_lane::<m![%s], m![%s]>(LaneMode::Interleaved)", TUNE_LIST(w->a, rows, groups), lanes);
}

/* From a value in DM, or from the Reducer, up to the Vector Engine. */
static void write_fetch(writer *w, const stream *s, size_t folded, dtype as)
{
    if (s->sums) {
        write_sums(w, s->sums);
        return;
    }
    tune_line(&w->page, "    .begin(%s.view())", s->name);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", time_of(w, s, folded), packet_of(w, s));
    if (s->type != as)
        tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(as));
    tune_line(&w->page, "    .collect()");
}

/* Are there elements in the second half of a packet? */
static bool has_halves(const writer *w, const stream *s)
{
    return s->is_packed && smaller(lanes_of(s), w->f->groups[s->groups[s->count - 1]].size) > LANES / 2;
}

/* What is left of a stream over slices, in the pass that folds it. */
static void write_over_slices(writer *w, const tune_pass *pass, stream *s, bool gathers)
{
    s->gathered |= gathers ? 1U << pass->fold->group : 0;
    tune_line(&w->page, "    .vector_inter_slice_reduce::<%s, m![%s]>(%s)",
              gathers ? slice_type(w, s->gathered) : arena_printf(w->a, "m![%s]", slices(w, s->gathered, pass->fold->group)),
              time_of(w, s, NO_GROUP), pass->over_slices);
}

/* The pass, and what it makes of its stream. Sums come into the VRF through the Vector Engine, though nothing is done to them. */
static void write_pass(writer *w, const tune_pass *pass, stream *s, bool gathers, bool into_vrf)
{
    bool inside = pass->front.count + pass->narrow.count + pass->back.count > 0;
    if (!inside && !pass->over_slices && !into_vrf)
        return;
    tune_line(&w->page, "    .vector_init()");
    if (pass->slices_first) {
        leave_out(s, pass->fold->group);
        write_over_slices(w, pass, s, gathers);
    }
    if (inside || !pass->over_slices)
        tune_line(&w->page, "    .vector_intra_slice_tag(TagMode::Zero)");
    write_methods(w, &pass->front);
    bool narrow = pass->narrow.count > 0, halves = has_halves(w, s);
    if (narrow && halves)
        tune_line(&w->page, "    .vector_narrow_split::<_, _>()");
    else if (narrow)
        tune_line(&w->page, "    .vector_narrow_trim::<m![%s]>()",
                  s->is_packed ? padded_to(w, digit(w, s->groups[s->count - 1], 1, smaller(lanes_of(s), LANES / 2)),
                                           smaller(lanes_of(s), LANES / 2), LANES / 2)
                               : "1 # 4");
    write_methods(w, &pass->narrow);
    if (pass->fold && !pass->slices_first)
        leave_out(s, pass->fold->group);
    if (narrow)
        tune_line(&w->page, s->is_packed && halves ? "    .vector_widen_concat::<_, _>()" : "    .vector_widen_pad::<_>()");
    write_methods(w, &pass->back);
    if (pass->over_slices && !pass->slices_first)
        write_over_slices(w, pass, s, gathers);
    tune_line(&w->page, "    .vector_final()");
}

static void write_turn(writer *w, const flow_step *s)
{
    const flow_value *from = &w->f->values[s->from], *to = &w->f->values[s->to];
    size_t kept = from->groups[from->count - 1], sum = to->groups[to->count - 1];
    int64_t bits = dtype_row_of(from->type)->bits, rows = w->t->transpose_row_bytes * 8 / bits, kept_tile = w->p->split[kept].tile,
            columns = flow_turn_columns(w->f, kept_tile), sums = w->p->split[sum].tile;
    int64_t padded = w->p->split[sum].slice > 1 ? w->p->split[sum].padded : round_up(w->f->groups[sum].size, rows);
    sums = w->p->split[sum].slice > 1 ? sums : padded; /* of the padding after a whole sum, whole blocks are left out */
    const char *outer = from->count > 2 ? in_list(tiles(w, from->groups, from->count - 2, NULL)) : NULL,
               *blocks = digit_of_padded(w, sum, padded, rows, sums / rows), *groups = digit(w, kept, columns, kept_tile / columns),
               *packet = digit(w, kept, 1, columns), *row = digit_of_padded(w, sum, padded, 1, rows);
    begin_step(w, s->why);
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = device.main", to->name, type_name(to->type),
              tiles(w, to->groups, to->count, NULL));
    tune_line(&w->page, "    .begin(%s.view())", from->name);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, outer, blocks, groups, row), packet);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .transpose::<m![%s], m![%s]>()", TUNE_LIST(w->a, outer, blocks, groups, packet),
              padded_to(w, row, rows, w->t->flit_bytes * 8 / bits));
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", row);
    tune_line(&w->page, "    .commit();");
    end_step(w);
}

/* Of so many positions the Rows of the TRF: 8, or fewer where there are no more. */
static const char *rows_of_trf(const writer *w, size_t g, int64_t count)
{
    return count < LANES ? padded_to(w, g == NO_GROUP ? NULL : tile(w, g), count, power_of_two_above(count)) : digit(w, g, 1, LANES);
}

/* A tile of what is summed as it lies in the TRF: whole flits. */
static const char *in_flits(const writer *w, size_t summed)
{
    int64_t part = w->p->split[summed].tile, flit = w->t->flit_bytes * 8 / dtype_row_of(w->f->type)->bits;
    return padded_to(w, tile(w, summed), part, round_up(part, flit));
}

/* Weights that slices hand on come into DM, in each slice all that it multiplies. Parts are outermost, so that neither context waits. */
static const char *write_halves_around(writer *w, const flow_value *from, const flow_value *to)
{
    const flow_handing h = flow_handing_of(w->f, w->p, w->t, from);
    const size_t kept = from->groups[from->count - 2], summed = from->groups[from->count - 1];
    const bool twice = flow_comes_twice(w->f, w->p, w->t, from);
    const int parts = twice ? 4 : 2;
    const int64_t of = part_of_handing(w, &h, kept, parts), tile_of = w->p->split[kept].tile;
    const char *name = arena_printf(w->a, "around_%d", w->step), *part = digit(w, kept, of, parts), *half = digit(w, kept, of, 2),
               *sums = tile(w, summed), *time = left_of_part(w, &h, kept, parts),
               *rest = digit(w, kept, parts * of, tile_of / (parts * of)),
               *copy = twice ? digit(w, kept, part_of_handing(w, &h, kept, 2), 2) : NULL;
    begin_step(w, twice ? "All get what each of these slices has, of each copy a half by the sub context and a half by main"
                        : "All get what each of these slices has, a half by the sub context and a half by main");
    tune_line(&w->page, "let mut %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", name, type_name(to->type),
              TUNE_LIST(w->a, part, rest, digit(w, kept, 1, of), sums));
    for (int i = 0; i < parts; i++) {
        tune_line(&w->page, "device.%s", i % 2 == 0 ? "sub" : "main");
        if (twice)
            tune_line(&w->page, "    .begin(%s.view().tile::<m![%s], 1, _>(%d).tile::<m![%s], 1, _>(%d))", name_of_both(w, from), copy,
                      i / 2, half, i % 2);
        else
            tune_line(&w->page, "    .begin(%s.view().tile::<m![%s], 1, _>(%d))", from->name, half, i);
        tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, in_list(time)), TUNE_LIST(w->a, sums));
        if (from->type != to->type)
            tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(to->type));
        tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
                  TUNE_LIST(w->a, in_list(time), handed_digits(w, &h, kept)), h.slices, h.inside);
        tune_line(&w->page, "    .collect()");
        tune_line(&w->page, "    .commit_view(%s.view_mut().tile::<m![%s], 1, _>(%d));", name, part, i);
    }
    end_step(w);
    return name;
}

/* A Lane of the TRF for each of 8 columns. */
static void write_fill(writer *w, const flow_step *s)
{
    const flow_value *from = &w->f->values[s->from], *to = &w->f->values[s->to];
    size_t inner = from->count > 1 ? from->groups[from->count - 2] : NO_GROUP;
    const int64_t kept = inner == NO_GROUP ? 1 : w->p->split[inner].tile;
    const char *outer = from->count > 2 ? in_list(tiles(w, from->groups, from->count - 2, NULL)) : NULL,
               *lanes = rows_of_trf(w, inner, kept), *groups = kept < LANES ? NULL : digit(w, inner, LANES, kept / LANES),
               *sums = tile(w, from->groups[from->count - 1]);
    flow_handing h = flow_handing_of(w->f, w->p, w->t, from);
    const char *name = from->name;
    bool by_main = w->p->main_weights;
    dtype type = from->type;
    if (flow_hands_halves(w->f, w->p, w->t, from)) {
        name = write_halves_around(w, from, to);
        h.slices = 1;
        by_main = true;
        type = to->type;
    }
    begin_step(w, by_main        ? h.slices > 1 ? "Into the TRF by the main context: all get what each of these slices has"
                                                : "Into the TRF by the main context, 32 bytes a cycle: the sub context's 8 would be waited for"
                  : h.slices > 1 ? "Into the TRF by the sub context, while others work: all get what each of these slices has"
                                 : "Into the TRF by the sub context, while others work");
    tune_line(&w->page, "let %s: TrfTensor<%s, Chip, Cluster, Slice, m![%s], m![%s]> = device.%s", to->name, type_name(to->type), lanes,
              TUNE_LIST(w->a, outer, groups, in_flits(w, from->groups[from->count - 1])), by_main ? "main" : "sub");
    tune_line(&w->page, "    .begin(%s.view())", name);
    const char *time = h.slices > 1 ? left_of_handing(w, &h, inner) : TUNE_LIST(w->a, lanes, outer, groups);
    tune_line(&w->page, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->a, time), TUNE_LIST(w->a, sums));
    if (type != to->type)
        tune_line(&w->page, "    .fetch_cast::<%s>()", type_name(to->type));
    if (h.slices > 1)
        tune_line(&w->page, "    .switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
                  TUNE_LIST(w->a, time, handed_digits(w, &h, inner)), h.slices, h.inside);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    end_step(w);
}

/* Of the result: elements one by one are put side by side by the Transpose Engine. */
static const char *result_type(const writer *w, const stream *s)
{
    const flow_value *out = &w->f->values[0];
    int word = 64 / dtype_row_of(out->type)->bits;
    bool has_tile = s->is_packed || flow_inner_of_result(w->f) != NO_GROUP;
    const char *parts[FLOW_GROUPS_MAX];
    for (size_t i = 0; i < out->count; i++) {
        const size_t g = out->groups[i];
        parts[i] = w->p->split[g].stays ? digit_of_padded(w, g, w->f->groups[g].size, 1, flow_stored_tile(w->p, g)) : tile(w, g);
    }
    const char *of = has_tile ? tune_list(w->a, parts, out->count) : arena_printf(w->a, "1 # %d", word);
    return arena_printf(w->a, "DmTensor<%s, Chip, Cluster, %s, m![%s]>", type_name(out->type), slice_type(w, s->gathered), of);
}

static void write_result(writer *w, const stream *s, dtype from)
{
    const flow_value *out = &w->f->values[0];
    int64_t bits = dtype_row_of(out->type)->bits, flit = w->t->flit_bytes * 8 / bits, word = larger(1, 64 / bits);
    if (out->type != from)
        tune_line(&w->page, "    .cast::<%s, m![%s]>()", type_name(out->type),
                  s->is_packed ? padded_to(w, packet_of(w, s), LANES, flit) : arena_printf(w->a, "1 # %" PRId64, flit));
    if (s->is_packed)
        tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet_of(w, s));
    else if (flow_inner_of_result(w->f) == NO_GROUP)
        tune_line(&w->page, "    .commit_trim::<m![1 # %" PRId64 "]>()", word);
    else {
        size_t inner = flow_inner_of_result(w->f), outer = 0;
        while (out->groups[outer] != inner)
            outer++;
        const char *words = digit(w, inner, 1, word);
        tune_line(&w->page, "    .transpose::<m![%s], m![%s]>()",
                  tiles(w, out->groups, outer, digit(w, inner, word, w->p->split[inner].tile / word)), padded_to(w, words, word, flit));
        tune_line(&w->page, "    .commit_trim::<m![%s]>()", words);
    }
    if (flow_results_stay(w->p))
        tune_line(&w->page, "    .commit_view(results.view_mut()%s);", part_of(w, out, ""));
    else
        tune_line(&w->page, "    .commit();");
}

/* Is it over slices somewhere in the step? */
static bool gathers(const tune_epilogue *e, const flow_value *to)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->passes[i].over_slices)
            return to->place == FLOW_OUT || to->is_left;
    return false;
}

/* The order of the result, where elements are put side by side one by one. */
static void order_as_result(const writer *w, stream *s)
{
    const flow_value *out = &w->f->values[0];
    size_t rest[FLOW_GROUPS_MAX], count = 0, inner = s->is_packed ? s->groups[s->count - 1] : NO_GROUP;
    for (size_t i = 0; i < s->count; i++)
        if (s->groups[i] != inner && !(out->has >> s->groups[i] & 1))
            rest[count++] = s->groups[i];
    for (size_t i = 0; i < out->count; i++)
        for (size_t k = 0; k < s->count; k++)
            if (s->groups[k] == out->groups[i] && out->groups[i] != inner)
                rest[count++] = out->groups[i];
    if (inner != NO_GROUP)
        rest[count++] = inner;
    memcpy(s->groups, rest, sizeof rest[0] * count);
}

static const char *told(const writer *w, const tune_pass *pass, const flow_step *s, bool is_last)
{
    if (pass->is_gate)
        return "What the values are multiplied with";
    if (!pass->fold)
        return is_last ? s->why : "As far as the units of one pass go";
    const char *axis = w->f->groups[pass->fold->group].text;
    int64_t shared = w->p->split[pass->fold->group].slice;
    static const char *const what[] = {"The sum", "The largest", "The smallest"};
    const char *fold = what[pass->fold->what - TUNE_FOLD_ADD];
    return shared > 1 ? arena_printf(w->a, "%s over %s, in each slice and then over the %" PRId64 " that share it", fold, axis, shared)
                      : arena_printf(w->a, "%s over %s", fold, axis);
}

static void write_copy(writer *w, const flow_step *s)
{
    const flow_value *from = &w->f->values[s->from], *to = &w->f->values[s->to];
    stream x = {.name = from->name, .type = from->type, .count = from->count, .is_packed = from->is_packed};
    memcpy(x.groups, from->groups, sizeof x.groups);
    size_t inner = from->count > 0 ? from->groups[from->count - 1] : NO_GROUP;
    int64_t in = inner == NO_GROUP ? 1 : w->p->split[inner].tile;
    const flow_handing h = flow_handing_of(w->f, w->p, w->t, from);
    const char *rows = h.slices > 1      ? rows_of_handing(w, &h, from, NULL)
                       : from->count > 1 ? tiles(w, from->groups, from->count - 1, NULL)
                                         : "1";
    const char *hands = NULL;
    if (h.slices > 1)
        hands = arena_printf(w->a, "switch::<Slice, m![%s]>(SwitchConfig::Broadcast1 { slice1: %" PRId64 ", slice0: %" PRId64 " })",
                             TUNE_LIST(w->a, in_list(rows), digit(w, from->groups[from->count - 2], 1, h.slices)), h.slices, h.inside);
    begin_step(w, s->why);
    tune_write_operand(
        &w->page,
        &(tune_operand_text){
            .name = to->name,
            .slice = slice_type(w, flow_gathered_of(w->f, w->p, from)),
            .element = from->count ? element(w, &x) : "1 # 8",
            .from = arena_printf(w->a, "%s.view()%s", x.name, flow_comes_ahead(w->f, w->p, w->t, from) ? part_of(w, from, "") : ""),
            .from_type = x.type,
            .type = w->f->meets,
            .time = rows,
            .packet = in > 1 ? tile(w, inner) : arena_printf(w->a, "1 # %d", (int)(64 / dtype_row_of(from->type)->bits)),
            .hands = hands});
    end_step(w);
}

/* Slices that share an axis have each the whole fold. Its new axis gets the name of theirs, so that it meets their streams. */
static void write_shared(writer *w, stream *made, const char *name, bool into_vrf)
{
    if (into_vrf)
        tune_line(&w->page, "    .to_vrf();");
    else {
        tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet_of(w, made));
        tune_line(&w->page, "    .commit();");
    }
    tune_line(&w->page, "let %s: %s<%s, Chip, Cluster, Slice, m![%s]> = unsafe { %s.reshape() };", name,
              into_vrf ? "VrfTensor" : "DmTensor", type_name(w->f->meets), element(w, made), name);
}

/* The fold of flow_flits_of: over slices, then in the flits that each of them gets of it, then around. */
static void write_flits(writer *w, const flow_step *s, const flow_ring *rows)
{
    const tune_flow *f = w->f;
    const flow_value *to = &f->values[s->to];
    const size_t folded = s->operations[0].group;
    const tune_epilogue e = flow_passes(f, w->p, s, w->a);
    const tune_pass *fold = &e.passes[0];
    const flow_ring none = w->left;
    const char *type = type_name(f->meets), *flits = arena_printf(w->a, "flits_%d", w->step),
               *part = arena_printf(w->a, "part_%d", w->step);
    stream x = {.name = f->values[s->from].name, .type = f->values[s->from].type, .count = f->values[s->from].count, .is_packed = true};
    memcpy(x.groups, f->values[s->from].groups, sizeof x.groups);
    stream made = x;
    leave_out(&made, folded);
    const char *all = time_of(w, &made, NO_GROUP), *whole = element(w, &made), *shared = slices(w, 0, folded);

    begin_step(w, arena_printf(w->a, "%s, flit by flit: each of these slices gets some rows", told(w, fold, s, false)));
    w->left = *rows;
    x.gathered = made.gathered = 1U << folded;
    const char *place = slice_type(w, made.gathered), *of = time_of(w, &x, folded);
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", flits, type, place, element(w, &x));
    w->left = none;
    write_fetch(w, &x, folded, f->meets);
    w->left = *rows;
    tune_line(&w->page, "    .vector_init()");
    tune_line(&w->page, "    .vector_inter_slice_reduce::<%s, m![%s]>(%s)", place, of, fold->over_slices);
    tune_line(&w->page, "    .vector_final()");
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet_of(w, &x));
    tune_line(&w->page, "    .commit();");
    end_step(w);

    begin_step(w, "What is in the flits of a row");
    tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", part, type, place, element(w, &made));
    x.name = flits;
    x.type = f->meets;
    const tune_pass in_slice = {.narrow = fold->narrow, .fold = fold->fold};
    stream own = x;
    write_fetch(w, &x, folded, f->meets);
    write_pass(w, &in_slice, &own, false, false);
    tune_line(&w->page, "    .commit_trim::<m![1 # 8]>()");
    tune_line(&w->page, "    .commit();");
    end_step(w);

    begin_step(w, "All get the rows of each other");
    const char *here = time_of(w, &made, NO_GROUP);
    int64_t inside = w->p->split[rows->group].tile / rows->slices;
    for (size_t i = made.count; made.groups[i - 1] != rows->group; i--)
        inside *= w->p->split[made.groups[i - 1]].tile;
    w->left = none;
    tune_line(&w->page, "let %s: VrfTensor<%s, Chip, Cluster, m![%s], m![%s]> = device.main", to->name, type, shared, whole);
    tune_line(&w->page, "    .begin(%s.view())", part);
    tune_line(&w->page, "    .fetch::<m![%s], m![1 # 8]>()", here);
    tune_line(&w->page, "    .switch::<m![%s], m![%s]>(SwitchConfig::Broadcast01 { slice1: %" PRId64 ", slice0: 1, time0: %" PRId64 " })",
              shared, all, rows->slices, inside);
    tune_line(&w->page, "    .collect()");
    write_shared(w, &made, to->name, true);
    end_step(w);
}

static void write_passes(writer *w, const flow_step *s)
{
    const tune_flow *f = w->f;
    const flow_ring flits = flow_flits_of(f, w->p, s);
    if (flits.slices > 1) {
        write_flits(w, s, &flits);
        return;
    }
    const flow_value *from = &f->values[s->from], *to = &f->values[s->to];
    tune_epilogue e = flow_passes(f, w->p, s, w->a);
    stream x = {.name = from->name, .type = from->type, .count = from->count, .is_packed = from->is_packed};
    x.sums = from->place == FLOW_STREAM ? from : NULL;
    memcpy(x.groups, from->groups, sizeof x.groups);
    if (to->place == FLOW_OUT && !x.sums)
        order_as_result(w, &x);
    const flow_ring left = flow_left_of(f, w->p, to);
    bool gather = gathers(&e, to), real = from->type == DTYPE_F32 || target_converts(ENGINE_ID_FETCH, from->type, DTYPE_F32);
    size_t count = larger(1, (int64_t)e.count);
    static const tune_pass nothing = {0};
    dtype as = real ? DTYPE_F32 : DTYPE_I32;
    for (size_t i = 0; i < count; i++) {
        const tune_pass *pass = e.count > 0 ? &e.passes[i] : &nothing;
        bool is_last = i + 1 == count, is_empty = !is_last && !pass->is_gate &&
                                                  pass->front.count + pass->narrow.count + pass->back.count == 0 && !pass->over_slices &&
                                                  !x.sums;
        if (is_empty)
            continue;
        stream made = x;
        if (pass->fold)
            leave_out(&made, pass->fold->group);
        made.gathered |= pass->over_slices && gather ? 1U << pass->fold->group : 0;
        const flow_ring none = {1, NO_GROUP, 0}, before = x.gathered ? left : none;
        w->left = made.gathered ? left : none;
        begin_step(w, told(w, pass, s, is_last));
        const char *name = is_last ? to->name : arena_printf(w->a, "values_%d", w->step);
        bool shares = pass->over_slices && !gather;
        /* what the slices of a sum have alike is an operand of what the first of them is left with */
        const unsigned kept = is_last && to->place == FLOW_VRF && !made.gathered ? flow_gathered_of(f, w->p, to) : 0;
        const char *elements = element(w, &made);
        if (shares)
            tune_line(&w->page, "let %s: %s<%s, Chip, Cluster, m![%s], m![%s]> = device.main", name,
                      is_last && to->place == FLOW_VRF ? "VrfTensor" : "DmTensor", type_name(f->meets),
                      slices(w, made.gathered, pass->fold->group), element(w, &made));
        else if (pass->is_gate)
            tune_line(&w->page, "let gate: VrfTensor<f32, Chip, Cluster, %s, m![%s]> = device.main", slice_type(w, made.gathered),
                      element(w, &made));
        else if (!is_last)
            tune_line(&w->page, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", name, type_name(f->meets),
                      slice_type(w, made.gathered), element(w, &made));
        else if (to->place == FLOW_OUT && flow_results_stay(w->p))
            tune_line(&w->page, "device.main");
        else if (to->place == FLOW_OUT)
            tune_line(&w->page, "let results: %s = device.main", result_type(w, &made));
        else
            tune_line(&w->page, "let %s: %s<%s, Chip, Cluster, %s, m![%s]> = device.main", to->name,
                      to->place == FLOW_VRF ? "VrfTensor" : "DmTensor", type_name(to->type), slice_type(w, made.gathered), elements);
        w->left = before;
        x.lanes = pass->fold && !x.sums ? flow_folded_lanes(f, w->p, x.groups, x.count, pass->fold->group) : 0;
        write_fetch(w, &x, pass->fold ? pass->fold->group : NO_GROUP, x.type == f->meets ? f->meets : as);
        w->left = made.gathered ? left : none;
        made = x;
        write_pass(w, pass, &made, gather, x.sums && is_last && to->place == FLOW_VRF);
        if (shares)
            write_shared(w, &made, name, is_last && to->place == FLOW_VRF);
        else if (is_last && to->place == FLOW_OUT)
            write_result(w, &made, e.count > 0 ? e.type : f->meets);
        else if (pass->is_gate || (is_last && to->place == FLOW_VRF))
            tune_line(&w->page, "    .to_vrf();");
        else {
            if (is_last && to->type != f->meets)
                tune_line(&w->page, "    .cast::<%s, m![%s # %d]>()", type_name(to->type), packet_of(w, &made),
                          (int)(w->t->flit_bytes * 8 / dtype_row_of(to->type)->bits));
            tune_line(&w->page, "    .commit_trim::<m![%s]>()", packet_of(w, &made));
            tune_line(&w->page, "    .commit();");
        }
        if (kept)
            tune_line(&w->page, "let %s: VrfTensor<%s, Chip, Cluster, %s, m![%s]> = unsafe { %s.reshape() };", to->name,
                      type_name(to->type), slice_type(w, kept), elements, to->name);
        end_step(w);
        w->left = none;
        x.lanes = made.lanes = 0;
        if (!pass->is_gate) {
            x = made;
            x.name = name;
            x.sums = NULL;
            x.type = f->meets;
        }
    }
}

/* Rows one after the other: DM is written in words of 8 bytes, and no row but the first begins at one. So elements are fetched one by one,
 * and the Transpose Engine makes words of those that follow each other, under a name that knows no rows. */
static void write_pack(writer *w)
{
    const tune_flow *f = w->f;
    const flow_value *out = &f->values[0];
    size_t group = flow_packed_group(f), outer = out->count - 2;
    const flow_split *s = &w->p->split[group];
    const char *type = type_name(out->type), *axis = flat_axis(w), *before = in_list(tiles(w, out->groups, outer, NULL));
    unsigned gathered = 0;
    for (size_t g = 0; g < f->group_count; g++)
        gathered |= f->groups[g].is_reduced && !(out->has >> g & 1) ? 1U << g : 0;
    int64_t each = flow_row_of_result(f)->size, all = s->tile * each, bits = dtype_row_of(out->type)->bits, word = 64 / bits;
    w->is_flat = true;
    const char *place = arena_printf(w->a, "m![%s], m![%s]", clusters(w), slices(w, gathered, NO_GROUP));
    w->is_flat = false;
#define FLAT(stride, count) digit_of_each(w, axis, each, f->groups[group].size, s, (stride), (count))
    begin_step(w, arena_printf(w->a,
                               "Rows that are no whole 8 bytes, one after the other without padding: element by element, %" PRId64
                               " of them side by side",
                               word));
    tune_line(&w->page, "let flat: DmTensor<%s, Chip, %s, m![%s]> = unsafe { results.reshape() };", type, place,
              TUNE_LIST(w->a, before, FLAT(each, s->tile), padded_to(w, FLAT(1, each), each, w->p->split[out->groups[outer + 1]].tile)));
    tune_line(&w->page, "let packed: DmTensor<%s, Chip, %s, m![%s]> = device.main", type, place, TUNE_LIST(w->a, before, FLAT(1, all)));
    tune_line(&w->page, "    .begin(flat.view())");
    tune_line(&w->page, "    .fetch::<m![%s], m![1 # %" PRId64 "]>()", TUNE_LIST(w->a, before, FLAT(1, all)), word);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .transpose::<m![%s], m![%s # %" PRId64 "]>()", TUNE_LIST(w->a, before, FLAT(word, all / word)), FLAT(1, word),
              w->t->flit_bytes * 8 / bits);
    tune_line(&w->page, "    .commit_trim::<m![%s]>()", FLAT(1, word));
    tune_line(&w->page, "    .commit();");
#undef FLAT
    tune_line(&w->page, "let packed: DmTensor<%s, Chip, Cluster, %s, m![%s]> = unsafe { packed.reshape() };", type, slice_type(w, gathered),
              TUNE_LIST(w->a, before, tile(w, group), flow_row_of_result(f)->text));
    end_step(w);
}

/* Positions of the result that follow each other in HBM, into the slices that write them. */
static void write_bring(writer *w)
{
    const tune_flow *f = w->f;
    const flow_value *out = &f->values[0];
    size_t g = flow_outer_of_result(f), count = 0;
    flow_split s = flow_brought_split(f, w->p);
    const char *parts[FLOW_GROUPS_MAX], *of_cluster = digit_in(w, g, &s, s.tile * s.slice, s.cluster);
    for (size_t i = 0; i < out->count; i++)
        parts[count++] = out->groups[i] == g ? digit_in(w, g, &s, 1, s.tile) : f->groups[out->groups[i]].text;
    int64_t idle = w->t->slices_per_cluster / s.slice;
    begin_step(w, arena_printf(w->a,
                               "Pieces that are no whole blocks of HBM are dear: a copy brings %" PRId64
                               " of %s into a slice, one after the other",
                               s.tile, f->groups[g].text));
    tune_line(&w->page, "let whole: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = %s.to_dm(&mut device.tdma);", type_name(out->type),
              of_cluster ? of_cluster : tune_idle_clusters(w->t, w->a),
              TUNE_LIST(w->a, digit_in(w, g, &s, s.tile, s.slice), idle > 1 ? arena_printf(w->a, "1 # %" PRId64, idle) : NULL),
              tune_list(w->a, parts, count), w->p->packs ? "packed" : "results");
    end_step(w);
}

/* Of all lanes the first one is of the column. */
static void write_ones(writer *w, const flow_step *s)
{
    const flow_value *to = &w->f->values[s->to];
    const char *type = type_name(to->type), *sums = tiles(w, to->groups, to->count, NULL);
    begin_step(w, s->why);
    tune_line(&w->page, "let mut %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = DmTensor::new();", to->name, type, sums);
    tune_line(&w->page, "%s.view_mut().memset(const { %s::from_f32(1.0) }, &mut device.sub);", to->name, type);
    tune_line(&w->page, "let %s: TrfTensor<%s, Chip, Cluster, Slice, m![1 # %d], m![%s]> = device.sub", to->name, type, LANES,
              in_flits(w, to->groups[0]));
    tune_line(&w->page, "    .begin(%s.view())", to->name);
    tune_line(&w->page, "    .fetch::<m![1 # %d], m![%s]>()", LANES, sums);
    tune_line(&w->page, "    .collect()");
    tune_line(&w->page, "    .to_trf();");
    end_step(w);
}

/* Does a step depend on the iteration? */
static bool is_inside(const writer *w, const flow_step *s)
{
    const tune_flow *f = w->f;
    if (w->looped == NO_GROUP)
        return true;
    if (s->kind == FLOW_LOAD && flow_comes_ahead(f, w->p, w->t, &f->values[s->to]))
        return false;
    unsigned has = f->values[s->to].has | (s->kind == FLOW_PASS ? tune_flow_depends(f, s->from) : 0);
    for (size_t i = 0; s->kind == FLOW_PASS && i < s->count; i++) {
        const flow_value *operand = tune_flow_operand(f, &s->operations[i]);
        has |= operand ? operand->has : 0;
    }
    return has >> w->looped & 1;
}

/* Do iterations multiply with these weights? */
static bool is_multiplied_inside(const writer *w, size_t weights)
{
    for (size_t i = 0; i < w->f->step_count; i++) {
        const flow_value *from = &w->f->values[w->f->steps[i].from];
        if (w->f->steps[i].kind == FLOW_PASS && from->place == FLOW_STREAM && from->weights == weights)
            return is_inside(w, &w->f->steps[i]);
    }
    return true;
}

static bool is_handed_on(const writer *w, const flow_step *s)
{
    return s->kind == FLOW_LOAD && flow_handing_of(w->f, w->p, w->t, &w->f->values[s->to]).slices > 1;
}

/* What has longest to go around comes first. */
static void write_steps(writer *w, bool inside)
{
    for (size_t i = 0; i < w->f->step_count; i++)
        if (is_handed_on(w, &w->f->steps[i]) && is_inside(w, &w->f->steps[i]) == inside)
            write_load(w, &w->f->steps[i]);
    for (size_t i = 0; i < w->f->step_count; i++) {
        const flow_step *s = &w->f->steps[i];
        if (s->kind == FLOW_ONES && w->f->how.streams_lying && is_multiplied_inside(w, s->to) == inside) /* the TRF holds two tensors */
            write_ones(w, s);
        if (s->kind == FLOW_ONES || is_inside(w, s) != inside || is_handed_on(w, s))
            continue;
        if (s->kind == FLOW_LOAD)
            write_load(w, s);
        else if (s->kind == FLOW_TURN)
            write_turn(w, s);
        else if (s->kind == FLOW_FILL)
            write_fill(w, s);
        else if (tune_flow_is_copy(w->f, s))
            write_copy(w, s);
        else
            write_passes(w, s);
    }
}

static void write_head(writer *w)
{
    const tune_flow *f = w->f;
    const flow_value *out = &f->values[0];
    const char *before = "";
    strbuf_puts(&w->page.out->text, "axes![");
    for (size_t g = 0; g < f->group_count; g++) {
        const tune_share *share = &f->share[g];
        strbuf_printf(&w->page.out->text, "%s%s = %" PRId64, before, share->axis ? share->axis : f->groups[g].text,
                      share->axis ? share->size : f->groups[g].size);
        before = ", ";
        if (f->groups[g].is_reduced && w->p->split[g].slice > 1)
            strbuf_printf(&w->page.out->text, ", %s = %" PRId64, sharers(w, w->p->split[g].slice), w->p->split[g].slice);
    }
    for (size_t i = 1; i < f->value_count; i++) {
        const flow_ring r = flow_ring_of(f, w->p, w->t, &f->values[i]);
        for (int of_rings = 0; r.packet > 0 && of_rings < 2; of_rings++) {
            const char *axis = in_rings(w, &r, of_rings);
            if (axis && !strstr(w->page.out->text.text, arena_printf(w->a, "%s = ", axis)))
                strbuf_printf(&w->page.out->text, ", %s = %s", axis, strchr(axis, '_') + 1);
        }
    }
    if (w->p->packs)
        strbuf_printf(&w->page.out->text, ", %s = %" PRId64, flat_axis(w),
                      f->groups[flow_packed_group(f)].size * flow_row_of_result(f)->size);
    for (size_t i = 0; i < f->e->axis_count; i++)
        if ((f->e->absent >> i & 1) && !is_group(f, f->e->axes[i].name))
            strbuf_printf(&w->page.out->text, "%s%s = 1", i == 0 && f->group_count == 0 ? "" : ", ", f->e->axes[i].name);
    strbuf_puts(&w->page.out->text, "];\n\n");
    tune_line(&w->page, "type Chip = m![%s];", tune_chip_mapping(f->share, f->group_count, ~0U, w->a));
    tune_line(&w->page, "type Cluster = m![%s];", clusters(w));
    tune_line(&w->page, "type Slice = m![%s];", slices(w, 0, NO_GROUP));
    tune_line(&w->page, "%s", "");
    tune_line(&w->page, "%s", tune_device(w->t, tune_chips_of(f->share, f->group_count), w->a));
    tune_line(&w->page, "fn contract(");
    w->page.depth++;
    tune_line(&w->page, "device: &mut Device,");
    for (size_t t = 1; t < f->e->tensor_count; t++)
        for (size_t i = 1; i < f->value_count; i++)
            if (f->values[i].tensor == t)
                tune_line(&w->page, "%s: &HbmTensor<%s, %s, m![%s]>,", f->e->tensors[t].port, type_name(f->values[i].type),
                          tune_chip_type(f->share, f->group_count, f->values[i].has, w->a), port_mapping(w, &f->values[i]));
    const bool in_parts = w->looped != NO_GROUP && !flow_results_stay(w->p);
    if (in_parts)
        tune_line(&w->page, "%s: &mut HbmTensor<%s, Chip, m![%s]>,", out->name, type_name(out->type), port_mapping(w, out));
    w->page.depth--;
    tune_line(&w->page, in_parts ? ") {" : ") -> HbmTensor<%s, Chip, m![%s]> {", type_name(out->type), port_mapping(w, out));
    w->page.depth++;
    for (size_t t = 1; t < f->e->tensor_count; t++)
        for (size_t i = 1; i < f->value_count; i++)
            if (f->values[i].tensor == t)
                tune_write_copies(&w->page, f->share, f->group_count, f->values[i].has, f->e->tensors[t].port, f->values[i].type,
                                  port_mapping(w, &f->values[i]));
}

void flow_write(const tune_flow *f, const flow_plan *p, const target *t, const char *head, const tune_text *found, arena *a, tune_text *out)
{
    writer w = {.f = f, .p = p, .t = t, .a = a, .page = {out, found, a, 0}, .looped = flow_looped_group(p), .left = {1, NO_GROUP, 0}};
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    strbuf_puts(&out->text, head);
    const bool stays = flow_results_stay(p);
    write_head(&w);
    for (size_t i = 0; i < f->step_count; i++) /* in front, while the sub context has nothing else to do */
        if (f->steps[i].kind == FLOW_ONES && !f->how.streams_lying)
            write_ones(&w, &f->steps[i]);
    if (w.looped != NO_GROUP) {
        write_steps(&w, false);
        if (stays) {
            stream all = {.is_packed = true};
            for (size_t g = 0; g < f->group_count; g++) /* folded by the last step, into the first of the slices that share it */
                all.gathered |= p->split[g].slice > 1 && !(f->values[0].has >> g & 1) ? 1U << g : 0;
            tune_line(&w.page, "// Results of all iterations, so that they are written once");
            tune_line(&w.page, "let mut results: %s = DmTensor::new();", result_type(&w, &all));
        }
        tune_line(&w.page, "for i in 0..%" PRId64 " {", p->split[w.looped].loop);
        w.page.depth++;
    }
    write_steps(&w, true);
    if (stays) {
        w.page.depth--;
        tune_line(&w.page, "}");
    }
    if (p->packs)
        write_pack(&w);
    if (p->brought > 0)
        write_bring(&w);
    const char *what = p->brought > 0 ? "whole" : "results";
    begin_step(&w, "Out");
    if (w.looped != NO_GROUP && !stays)
        tune_line(&w.page, "%s.view().to_hbm_view(&mut device.tdma, %s.view_mut()%s);", what, f->values[0].name,
                  part_of(&w, &f->values[0], ""));
    else
        tune_line(&w.page, "%s.to_hbm(&mut device.tdma)", what);
    end_step(&w);
    while (w.page.depth > 0) {
        w.page.depth--;
        tune_line(&w.page, "}");
    }
}
