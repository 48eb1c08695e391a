/* Rules ("Inter-Slice Reducer"): the innermost positions of Slice, as many as OutSlice differs in, are a group, and its slices are reduced
 * to one packet for each step. What takes their place in OutSlice, digit by digit and in any order, is padding (its first slice has the
 * result), an axis that is new (all its slices have it), or a digit taken out of Time, of which each slice keeps its own steps. OutTime is
 * Time without those, in its order; Packet, Chip and Cluster stay. A slice that is padding sends nothing; of one that sends all elements
 * count, so an axis that is reduced may not end at other slices for some steps or lanes. */
#include <string.h>

#include "passes/engine/vector_reduce.h"

enum { MOST_PARTS = 64 };

typedef struct slicing {
    pass_context *p;
    kernel *k;
    op *o;
    const mapping *slice, *time, *out_slice, *out_time;
    int64_t ring;
    factor parts[MOST_PARTS]; /* of Time, outermost first: what is not promoted */
    int64_t positions[MOST_PARTS];
    uint32_t part_count;
} slicing;

#define REFUSE(s, part, ...) pass_refuse((s)->p, (s)->k, (s)->o, part, E_VECTOR_SLICES, __VA_ARGS__)

static bool mentions_any(const tensor *t, const axis *a)
{
    const component parts[] = {CHIP, CLUSTER, SLICE, TIME, PACKET};
    for (size_t c = 0; c < sizeof parts / sizeof *parts; c++)
        if (t->part[parts[c]] && mapping_mentions(t->part[parts[c]], a))
            return true;
    return false;
}

/* The smallest group outside of which Slice stays. */
static bool find_ring(slicing *s)
{
    for (s->ring = 1; s->ring <= s->slice->size; s->ring++) {
        if (s->slice->size % s->ring)
            continue;
        const mapping *before = pass_outer(s->p, s->slice, s->ring), *behind = pass_outer(s->p, s->out_slice, s->ring);
        if (before && behind && mapping_equal(s->p->mappings, before, behind) && pass_inner(s->p, s->slice, s->ring) &&
            pass_inner(s->p, s->out_slice, s->ring))
            return true;
    }
    return false;
}

/* ---- what is reduced ---- */

/* An axis that is reduced and ends among the slices must end at the same ones for all steps and lanes. */
static bool ends_with_slices(slicing *s)
{
    const tensor *in = &op_input(s->o)->out;
    const mapping *reduced = pass_inner(s->p, s->slice, s->ring);
    const component others[] = {CHIP, CLUSTER, TIME, PACKET};
    for (uint32_t i = 0; i < reduced->count; i++) {
        const factor *f = &reduced->factors[i];
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t count = f->kind == FACTOR_BROADCAST ? 0 : mapping_axes(mapping_of_factor(s->p->mappings, f), axes, EINSUM_MAX_AXES);
        for (uint32_t a = 0; a < count; a++) {
            int64_t reach = 0, part;
            bool apart = false;
            for (component c = 0; c < MAPPING_COMPONENTS; c++)
                for (uint32_t j = 0; in->part[c] && j < in->part[c]->count; j++) {
                    const factor *g = &in->part[c]->factors[j];
                    if (g->kind == FACTOR_AXIS && g->axis == axes[a] &&
                        (__builtin_mul_overflow(g->live - 1, g->weight, &part) || __builtin_add_overflow(reach, part, &reach)))
                        reach = INT64_MAX;
                    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
                        apart = apart || (c == others[k] && mapping_mentions(mapping_of_factor(s->p->mappings, g), axes[a]));
                }
            if (!apart || (f->kind == FACTOR_AXIS && reach < axes[a]->size))
                continue;
            diag *d =
                REFUSE(s, SLICE, "axis %s is reduced over slices, and ends at other slices for some time steps or lanes", axes[a]->name);
            diag_help(s->p->diags, d, "let Slice hold all of %s, or a divisor of its %lld elements stand outside of Slice", axes[a]->name,
                      (long long)axes[a]->size);
            return false;
        }
    }
    return true;
}

/* ---- what takes its place ---- */

/* Takes the digit out of what is left of Time: its step, in positions of Time; 0: Time does not have it. */
static int64_t take_digit(slicing *s, const factor *wanted, int64_t *size)
{
    for (uint32_t i = 0; i < s->part_count; i++) {
        factor f = s->parts[i];
        int64_t inner = f.kind == FACTOR_AXIS && f.axis == wanted->axis && wanted->weight % f.weight == 0 ? wanted->weight / f.weight : 0;
        if (inner == 0 || f.extent % inner)
            continue;
        *size = smaller(wanted->extent, f.extent / inner);
        int64_t step = s->positions[i] * inner, live = ceil_div(f.live, inner);
        if (wanted->live < *size && live > wanted->live) /* padding follows it here, and other values of the axis there */
            *size = wanted->live;
        if (*size < 2 || f.extent / inner % *size || smaller(live, *size) != smaller(wanted->live, *size) ||
            s->part_count + 2 > MOST_PARTS || (inner > 1 && f.live < f.extent && f.live % inner && f.live * f.weight < f.axis->size))
            continue;
        factor outer = f, low = f, *parts = s->parts;
        int64_t *positions = s->positions, at_low = positions[i];
        outer.weight = f.weight * inner * *size;
        outer.extent = f.extent / inner / *size;
        outer.live = ceil_div(live, *size);
        low.extent = inner;
        low.live = smaller(f.live, inner);
        uint32_t rest = (outer.extent > 1) + (low.extent > 1), behind = s->part_count - i - 1;
        memmove(parts + i + rest, parts + i + 1, behind * sizeof *parts);
        memmove(positions + i + rest, positions + i + 1, behind * sizeof *positions);
        s->part_count = i + rest + behind;
        if (low.extent > 1) {
            parts[i + rest - 1] = low;
            positions[i + rest - 1] = at_low;
        }
        if (outer.extent > 1) {
            parts[i] = outer;
            positions[i] = step * *size;
        }
        return step;
    }
    return 0;
}

static bool is_fresh(const slicing *s, const axis *a)
{
    return !mentions_any(&op_input(s->o)->out, a);
}

static bool add_loop(slicing *s, slice_loop loop)
{
    vector_slices_config *c = s->o->vector_slices;
    slice_loop *before = c->count ? &c->loops[c->count - 1] : NULL;
    if (loop.size == 1)
        return true;
    if (before && !before->place && !loop.place && before->stride == loop.stride * loop.size) {
        before->size *= loop.size;
        before->stride = loop.stride;
        return true;
    }
    if (c->count == ROUTE_MAX_DIGITS) {
        diag *d = REFUSE(s, TIME, "Time is more than %d loops around what moves to slices", ROUTE_MAX_DIGITS);
        diag_help(s->p->diags, d, "collect what moves to slices side by side in Time");
        return false;
    }
    c->loops[c->count++] = loop;
    return true;
}

/* Each digit of the freed places. */
static bool fill_places(slicing *s, slice_loop *moved, uint32_t *count)
{
    const mapping *freed = pass_inner(s->p, s->out_slice, s->ring);
    int64_t place = s->ring;
    for (uint32_t i = 0; i < freed->count; i++) {
        const factor *f = &freed->factors[i];
        int64_t size = 0, step;
        place /= f->extent;
        if (f->kind == FACTOR_BROADCAST || (f->kind == FACTOR_AXIS && is_fresh(s, f->axis)))
            continue;
        factor left = *f; /* its innermost values first, as far as they are one digit of Time */
        int64_t at = place;
        while (left.extent > 1 && f->kind == FACTOR_AXIS && *count < ROUTE_MAX_DIGITS && (step = take_digit(s, &left, &size))) {
            moved[(*count)++] = (slice_loop){size, step, at};
            left.weight *= size;
            left.live = ceil_div(left.live, size);
            left.extent = left.live == 1 || left.extent % size ? 1 : left.extent / size; /* what is more is padding */
            at *= size;
        }
        if (left.extent == 1)
            continue;
        const char *text = mapping_text(mapping_of_factor(s->p->mappings, f), s->p->arena);
        diag *d = REFUSE(s, SLICE, "`%s` of OutSlice %s is neither padding, nor a new axis, nor a digit of Time %s", text,
                         pass_text(s->p, s->out_slice), pass_text(s->p, s->time));
        diag_help(s->p->diags, d, "the freed places take m![1 # %lld], an axis of their own, or digits that Time has", (long long)s->ring);
        return false;
    }
    for (uint32_t i = 0; i < freed->count; i++) /* each new axis fills its places once */
        for (uint32_t j = 0; j < i; j++)
            if (freed->factors[i].kind == FACTOR_AXIS && freed->factors[j].kind == FACTOR_AXIS &&
                freed->factors[i].axis == freed->factors[j].axis && freed->factors[i].weight == freed->factors[j].weight) {
                diag *d =
                    REFUSE(s, SLICE, "axis %s stands twice in OutSlice %s", freed->factors[i].axis->name, pass_text(s->p, s->out_slice));
                diag_help(s->p->diags, d, "use an axis of its own for each place");
                return false;
            }
    return true;
}

static bool check_time(slicing *s)
{
    const mapping *left = mapping_identity(s->p->mappings);
    for (uint32_t i = 0; i < s->part_count; i++)
        left = pass_pair(s->p, left, mapping_of_factor(s->p->mappings, &s->parts[i]));
    if (mapping_equal(s->p->mappings, left, s->out_time))
        return true;
    diag *d = REFUSE(s, TIME, "OutTime is %s, and what stays of Time %s is %s", pass_text(s->p, s->out_time), pass_text(s->p, s->time),
                     pass_text(s->p, left));
    diag_help(s->p->diags, d, "write %s", pass_text(s->p, left));
    return false;
}

/* ---- blocks of a pass ---- */

static bool check_blocks(pass_context *p, kernel *k, op *o)
{
    bool slices = false, tags = false;
    for (const op *before = op_input(o); before && before->kind != IR_VECTOR_INIT; before = op_input(before)) {
        slices = slices || before->kind == IR_VECTOR_SLICES;
        tags = tags || before->kind == IR_VECTOR_TAG;
    }
    bool third = o->kind == IR_VECTOR_TAG ? tags : slices;
    if (!third)
        return true;
    diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_SLICES,
                          "a pass has one block inside slices and one over them, and this is another one");
    diag_help(p->diags, d, "end the pass with vector_final, commit it, and do this in another pass");
    return false;
}

void vector_tag_blocks(pass_context *p, kernel *k, op *o)
{
    check_blocks(p, k, o);
}

void vector_slices_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    slice_loop moved[ROUTE_MAX_DIGITS];
    uint32_t count = 0;
    if (!o->out.part[PACKET])
        o->out.part[PACKET] = in->part[PACKET];
    slicing s = {.p = p,
                 .k = k,
                 .o = o,
                 .slice = in->part[SLICE],
                 .time = in->part[TIME],
                 .out_slice = o->out.part[SLICE],
                 .out_time = o->out.part[TIME]};
    if (!check_blocks(p, k, o))
        return;
    if (s.slice->size != s.out_slice->size) {
        diag *d = REFUSE(&s, SLICE, "Slice has %lld slices, OutSlice %s has %lld", (long long)s.slice->size, pass_text(p, s.out_slice),
                         (long long)s.out_slice->size);
        diag_help(p->diags, d, "fill freed places with padding: m![1 # n]");
        return;
    }
    if (!mapping_equal(p->mappings, in->part[PACKET], o->out.part[PACKET])) {
        diag *d = REFUSE(&s, PACKET, "Packet passes through unchanged: it is %s, declared %s", pass_text(p, in->part[PACKET]),
                         pass_text(p, o->out.part[PACKET]));
        diag_help(p->diags, d, "write %s", pass_text(p, in->part[PACKET]));
        return;
    }
    if (!find_ring(&s) || s.time->count > MOST_PARTS) {
        diag *d = REFUSE(&s, SLICE, "OutSlice %s keeps no outer part of Slice %s", pass_text(p, s.out_slice), pass_text(p, s.slice));
        diag_help(p->diags, d, "the innermost digits of Slice are reduced: keep those outside of them as they are");
        return;
    }
    o->vector_slices->ring = s.ring;
    int64_t position = s.time->size;
    for (uint32_t i = 0; i < s.time->count; i++) {
        position /= s.time->factors[i].extent;
        s.parts[s.part_count] = s.time->factors[i];
        s.positions[s.part_count++] = position;
    }
    if (!fill_places(&s, moved, &count) || !check_time(&s) || !ends_with_slices(&s))
        return;
    for (uint32_t i = 0; i < s.part_count; i++)
        if (!add_loop(&s, (slice_loop){s.parts[i].extent, s.positions[i], 0}))
            return;
    if (o->vector_slices->count == 0)
        o->vector_slices->loops[o->vector_slices->count++] = (slice_loop){1, 0, 0};
    for (uint32_t i = 0; i < count; i++)
        if (!add_loop(&s, moved[i]))
            return;
}
