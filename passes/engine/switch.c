/* Rule ("Switch Engine"): a cluster's slices are cut as [slice2, slice1, slice0] and Time as [time1, time0]; each topology says which of
 * these digits go where, and what is in the place of a digit that went is new: an axis that neither Slice nor Time has, or padding.
 *
 * A custom broadcast is read off the mappings: what OutSlice and the inner part of OutTime ask of InSlice is a walk over the slices, as a
 * stream's over a buffer (ir/mapping/sequence.h), so its loops are the digits of the slice that a packet comes from. The slices that a
 * slice copies from, and the ring that they and it are in, follow position by position; there are 256 at most. Packets arrive in the order
 * of the slices that send them. Checks are in the published order and words. */
#include <string.h>

#include "passes/pass.h"
#include "support/integer.h"

enum { MOST_SLICES = 256 };

/* One call. */
typedef struct routing {
    pass_context *p;
    kernel *k;
    op *o;
    const mapping *slice, *time, *out_slice, *out_time;
    int64_t s1, s0, t0;
} routing;

static bool same(const routing *r, const mapping *a, const mapping *b)
{
    return a && b && a->size == b->size && mapping_equal(r->p->mappings, a, b);
}

static const mapping *joined(const routing *r, const mapping *const *parts, size_t count)
{
    const mapping *all = mapping_identity(r->p->mappings);
    for (size_t i = 0; i < count && all; i++)
        all = parts[i] ? pass_pair(r->p, all, parts[i]) : NULL;
    return all;
}
#define JOINED(r, ...) joined(r, (const mapping *const[]){__VA_ARGS__}, sizeof((const mapping *[]){__VA_ARGS__}) / sizeof(const mapping *))

/* Does m name an axis of the other one? */
static bool shares_axis(const mapping *m, const mapping *other)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(m, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < count; i++)
        if (mapping_mentions(other, axes[i]))
            return true;
    return false;
}

/* "SwitchConfig::Broadcast1 { slice1: 4, slice0: 8 }", with another ring where it is not 0. */
static const char *config_text(const routing *r, int64_t ring)
{
    const route_config *c = r->o->route;
    const char *text = arena_printf(r->p->arena, "SwitchConfig::%s", topology_name(c->topology));
    if (c->topology == TOPOLOGY_CUSTOM)
        return arena_printf(r->p->arena, "%s { ring_size: %lld }", text, (long long)(ring ? ring : c->ring_size));
    if (c->topology == TOPOLOGY_FORWARDING)
        return text;
    text = arena_printf(r->p->arena, "%s { slice1: %lld, slice0: %lld", text, (long long)r->s1, (long long)r->s0);
    if (c->topology == TOPOLOGY_BROADCAST01 || c->topology == TOPOLOGY_INTER_TRANSPOSE)
        text = arena_printf(r->p->arena, "%s, time0: %lld", text, (long long)r->t0);
    return arena_printf(r->p->arena, "%s }", text);
}

/* A help with what would be accepted, where that is known. False. */
static bool refused(const routing *r, diag *d, const mapping *slice, const mapping *time, int64_t ring)
{
    if (!slice || !time)
        return false;
    diag_help(r->p->diags, d, "write switch::<%s, %s>(%s)", pass_text(r->p, slice), pass_text(r->p, time), config_text(r, ring));
    if (!same(r, r->out_slice, slice))
        pass_replace(r->p, r->o, d, SLICE, slice);
    if (!same(r, r->out_time, time))
        pass_replace(r->p, r->o, d, TIME, time);
    if (ring)
        diag_replace(r->p->diags, d, r->o->route->ring_range, "%lld", (long long)ring);
    return false;
}

#define REFUSE(r, part, id, ...) pass_refuse((r)->p, (r)->k, (r)->o, part, id, __VA_ARGS__)

static bool refuse_size(const routing *r, const char *text, const char *help)
{
    diag *d = REFUSE(r, MAPPING_COMPONENTS, E_SWITCH_SIZE, "%s: InSlice is %s, InTime %s, %s", text, pass_text(r->p, r->slice),
                     pass_text(r->p, r->time), config_text(r, 0));
    diag_help(r->p->diags, d, "%s", help);
    return false;
}

/* ---- the named topologies ---- */

static bool check_positive(const routing *r)
{
    return (r->s1 > 0 && r->s0 > 0 && r->t0 > 0) ||
           refuse_size(r, "All dimensions must be greater than 0", "write 1 for a dimension that does not move");
}

static bool check_divides(const routing *r)
{
    int64_t inner;
    if (!__builtin_mul_overflow(r->s1, r->s0, &inner) && r->slice->size % inner == 0)
        return true;
    return refuse_size(r, "InSlice::SIZE must be divisible by (slice1 * slice0)",
                       arena_printf(r->p->arena, "choose slice1 and slice0 whose product divides %lld", (long long)r->slice->size));
}

/* What is in OutSlice where a digit went, at `low`. */
static bool check_new(const routing *r, const mapping *slice, const mapping *time, int64_t low, int64_t size)
{
    const mapping *tile = size > 1 ? pass_digit(r->p, r->out_slice, low, size) : NULL;
    if (!tile || (!shares_axis(tile, r->slice) && !shares_axis(tile, r->time)))
        return true;
    diag *d =
        REFUSE(r, SLICE, E_SWITCH_AXES, "OutSlice broadcast axes must be new axes: %s of OutSlice %s is an axis of InSlice %s or InTime %s",
               pass_text(r->p, tile), pass_text(r->p, r->out_slice), pass_text(r->p, r->slice), pass_text(r->p, r->time));
    return refused(r, d, slice, time, 0);
}

/* A part of what leaves that must be a part of what came. */
static bool check_part(const routing *r, component c, const char *text, const mapping *have, const mapping *want, const mapping *slice,
                       const mapping *time)
{
    if (same(r, have, want))
        return true;
    diag *d = REFUSE(r, c, c == SLICE ? E_SWITCH_SLICE : E_SWITCH_TIME, "%s: it must be %s, and is %s", text, pass_text(r->p, want),
                     pass_text(r->p, have));
    return refused(r, d, slice, time, 0);
}

static bool check_slice2(const routing *r, const mapping *slice, const mapping *time)
{
    int64_t inner = r->s1 * r->s0;
    return check_part(r, SLICE, "OutSlice must preserve slice2 from InSlice", pass_outer(r->p, r->out_slice, inner),
                      pass_outer(r->p, r->slice, inner), slice, time);
}

static bool check_time(const routing *r, const char *layout, const mapping *slice, const mapping *time)
{
    return check_part(r, TIME, arena_printf(r->p->arena, "OutTime does not match expected layout: %s", layout), r->out_time, time, slice,
                      time);
}

/* `1 # n`, in the place of a digit that went; where the call has something new there, that. */
static const mapping *tile_of(const routing *r, int64_t low, int64_t size)
{
    const mapping *tile = pass_digit(r->p, r->out_slice, low, size);
    if (tile && !shares_axis(tile, r->slice) && !shares_axis(tile, r->time))
        return tile;
    return pass_pad(r->p, mapping_identity(r->p->mappings), size);
}

/* What a named topology gives: OutSlice and OutTime; NULL where the sizes do not allow it. */
typedef struct layout {
    const mapping *slice, *time;
} layout;

static layout layout_of_broadcast01(const routing *r)
{
    const mapping *s2 = pass_outer(r->p, r->slice, r->s1 * r->s0), *s1 = pass_digit(r->p, r->slice, r->s0, r->s1),
                  *s0 = pass_inner(r->p, r->slice, r->s0);
    return (layout){JOINED(r, s2, tile_of(r, r->s0, r->s1), tile_of(r, 1, r->s0)),
                    JOINED(r, pass_outer(r->p, r->time, r->t0), s1, pass_inner(r->p, r->time, r->t0), s0)};
}

static layout layout_of_broadcast1(const routing *r)
{
    const mapping *s2 = pass_outer(r->p, r->slice, r->s1 * r->s0), *s0 = pass_inner(r->p, r->slice, r->s0);
    return (layout){JOINED(r, s2, tile_of(r, r->s0, r->s1), s0), JOINED(r, r->time, pass_digit(r->p, r->slice, r->s0, r->s1))};
}

static layout layout_of_transposed_broadcast1(const routing *r)
{
    const mapping *s2 = pass_outer(r->p, r->slice, r->s1 * r->s0), *s1 = pass_digit(r->p, r->slice, r->s0, r->s1);
    return (layout){JOINED(r, s2, tile_of(r, r->s1, r->s0), s1), JOINED(r, r->time, pass_inner(r->p, r->slice, r->s0))};
}

static layout layout_of_transpose(const routing *r)
{
    const mapping *s2 = pass_outer(r->p, r->slice, r->s1 * r->s0);
    return (layout){JOINED(r, s2, pass_inner(r->p, r->slice, r->s0), pass_digit(r->p, r->slice, r->s0, r->s1)), r->time};
}

static layout layout_of_forwarding(const routing *r)
{
    return (layout){r->slice, r->time};
}

static bool check_broadcast01(const routing *r)
{
    if (!check_positive(r) || !check_divides(r))
        return false;
    if (r->time->size % r->t0)
        return refuse_size(r, "InTime::SIZE must be divisible by time0", "let time0 be a divisor of InTime");
    const layout l = layout_of_broadcast01(r);
    const mapping *slice = l.slice, *time = l.time;
    return check_slice2(r, slice, time) && check_new(r, slice, time, 1, r->s1 * r->s0) &&
           check_time(r, "[time1, slice1, time0, slice0]", slice, time);
}

/* Of slices that keep the part `of` of `size`, and get `more` that are new. */
static bool check_kept(const routing *r, const layout *l, const char *why, const mapping *of, int64_t size, int64_t more)
{
    return check_slice2(r, l->slice, l->time) && check_new(r, l->slice, l->time, size, more) &&
           check_part(r, SLICE, why, pass_inner(r->p, r->out_slice, size), of, l->slice, l->time);
}

static bool check_broadcast1(const routing *r)
{
    if (!check_positive(r) || !check_divides(r))
        return false;
    const layout l = layout_of_broadcast1(r);
    return check_kept(r, &l, "OutSlice must preserve slice0 from InSlice", pass_inner(r->p, r->slice, r->s0), r->s0, r->s1) &&
           check_time(r, "[time0, slice1]", l.slice, l.time);
}

static bool check_transposed_broadcast1(const routing *r)
{
    if (!check_positive(r) || !check_divides(r))
        return false;
    const layout l = layout_of_transposed_broadcast1(r);
    return check_kept(r, &l, "OutSlice must preserve slice1 from InSlice", pass_digit(r->p, r->slice, r->s0, r->s1), r->s1, r->s0) &&
           check_time(r, "[time0, slice0]", l.slice, l.time);
}

static bool check_transpose(const routing *r)
{
    if (!check_positive(r) || !check_divides(r))
        return false;
    const mapping *slice = layout_of_transpose(r).slice;
    if (r->time->size != r->out_time->size) {
        diag *d = REFUSE(r, TIME, E_SWITCH_TIME, "Input and output time dimensions must have the same size: %lld and %lld steps",
                         (long long)r->time->size, (long long)r->out_time->size);
        return refused(r, d, slice, r->time, 0);
    }
    return check_part(r, TIME, "Input and output time dimensions must match (excluding padding)", r->out_time, r->time, slice, r->time) &&
           check_part(r, SLICE, "OutSlice does not match expected layout: [slice2, slice0, slice1]", r->out_slice, slice, slice, r->time);
}

/* What passes a slice before it takes something again, in flits. */
static bool check_blocking(const routing *r)
{
    const tensor *in = &op_input(r->o)->out;
    int64_t flit = r->p->target->flit_bytes, bytes = dtype_bytes(in->dtype, in->part[PACKET]->size),
            most = r->p->target->switch_blocking_flits, flits = bytes > flit ? (bytes + flit - 1) / flit : 1,
            steps = r->s1 * r->t0; /* checked: a divisor of InTime */
    if (r->k->dialect < DIALECT_V0_9 || (steps <= most && steps * flits <= most))
        return true;
    diag *d = REFUSE(r, TIME, E_SWITCH_BLOCKED, "slice1 %lld x time0 %lld packets of %s pass a slice in a row, at most %lld flits do",
                     (long long)r->s1, (long long)r->t0, arena_count(r->p->arena, flits, "flit"), (long long)most);
    if (r->t0 > 1 && r->s1 <= most && r->s1 * flits <= most)
        diag_help(r->p->diags, d, "let the digit that moves be the innermost of InTime, with time0: 1: fetch::<%s, ..>()",
                  pass_text(r->p, JOINED(r, pass_outer(r->p, r->time, r->s1 * r->t0), pass_inner(r->p, r->time, r->t0),
                                         pass_digit(r->p, r->time, r->t0, r->s1))));
    else
        diag_help(r->p->diags, d,
                  "let slice1 times the flits of a packet be at most %lld, and the digit that moves the innermost of InTime",
                  (long long)most);
    return false;
}

static bool check_inter_transpose(const routing *r)
{
    int64_t moved;
    if (!check_positive(r) || !check_divides(r))
        return false;
    if (__builtin_mul_overflow(r->s1, r->t0, &moved) || r->time->size % moved)
        return refuse_size(r, "InTime::SIZE must be divisible by (slice1 * time0)", "let slice1 * time0 be a divisor of InTime");
    if (r->slice->size != 64 && r->slice->size != 128 && r->slice->size != 256)
        return refuse_size(r, "All dimensions should multiply to 256", "the slices of a cluster are 256, or since 0.6 64 or 128");
    const mapping *s2 = pass_outer(r->p, r->slice, r->s1 * r->s0), *s0 = pass_inner(r->p, r->slice, r->s0),
                  *s1 = pass_digit(r->p, r->slice, r->s0, r->s1);
    const mapping *t2 = pass_outer(r->p, r->time, moved), *t1 = pass_digit(r->p, r->time, r->t0, r->s1),
                  *t0 = pass_inner(r->p, r->time, r->t0);
    const mapping *slice = JOINED(r, s2, t1, s0), *time = JOINED(r, t2, t0, s1);
    bool cut = r->out_time->size % moved == 0;
    return check_slice2(r, slice, time) &&
           check_part(r, SLICE, "OutSlice must preserve slice0 from InSlice", pass_inner(r->p, r->out_slice, r->s0), s0, slice, time) &&
           check_part(r, SLICE, "OutSlice time1 must come from InTime", pass_digit(r->p, r->out_slice, r->s0, r->s1), t1, slice, time) &&
           check_part(r, TIME, "OutTime must preserve 'time2' from InTime", cut ? pass_outer(r->p, r->out_time, moved) : r->out_time, t2,
                      slice, time) &&
           check_part(r, TIME, "OutTime must preserve 'time0' from InTime", pass_digit(r->p, r->out_time, r->s1, r->t0), t0, slice, time) &&
           check_part(r, TIME, "OutTime must preserve 'slice1' from InSlice", pass_inner(r->p, r->out_time, r->s1), s1, slice, time) &&
           check_blocking(r);
}

static bool check_forwarding(const routing *r)
{
    return check_part(r, SLICE, "Switch OutSlice mismatch", r->out_slice, r->slice, r->slice, r->time) &&
           check_part(r, TIME, "Switch OutTime mismatch", r->out_time, r->time, r->slice, r->time);
}

/* ---- custom ---- */

/* Factors of OutSlice whose axis is new: padded? */
static bool check_padded(const routing *r)
{
    for (uint32_t i = 0; i < r->out_slice->count; i++) {
        const factor *f = &r->out_slice->factors[i];
        if (f->kind != FACTOR_AXIS || f->live == f->extent || mapping_mentions(r->slice, f->axis) || mapping_mentions(r->time, f->axis))
            continue;
        diag *d = REFUSE(r, SLICE, E_SWITCH_AXES, "Switch broadcast axis %s in output Slice must not be padded: %s", f->axis->name,
                         pass_text(r->p, mapping_of_factor(r->p->mappings, f)));
        diag_help(r->p->diags, d, "let the new axis have %lld elements", (long long)f->extent);
        return false;
    }
    return true;
}

/* Do two factors count through the same coordinates? */
static bool overlap(const factor *a, const factor *b)
{
    return a->weight < b->weight * b->live && b->weight < a->weight * a->live;
}

/* A new axis stands once in OutSlice, or since 0.6 in digits that are apart. */
static bool check_once(const routing *r)
{
    for (uint32_t i = 0; i < r->out_slice->count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const factor *f = &r->out_slice->factors[i], *g = &r->out_slice->factors[k];
            if (f->kind != FACTOR_AXIS || g->kind != FACTOR_AXIS || f->axis != g->axis || mapping_mentions(r->slice, f->axis) ||
                !overlap(f, g))
                continue;
            diag *d = REFUSE(r, SLICE, E_SWITCH_AXES, "Switch broadcast axes must each be used exactly once in OutSlice: %s is used twice",
                             f->axis->name);
            diag_help(r->p->diags, d, "name another new axis with axes!");
            return false;
        }
    return true;
}

/* An axis of InTime in OutSlice. */
static bool check_timed(const routing *r)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(r->out_slice, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < count; i++)
        if (mapping_mentions(r->time, axes[i]) && !mapping_mentions(r->slice, axes[i])) {
            diag *d = REFUSE(r, SLICE, E_SWITCH_AXES,
                             "Switch broadcast axes must be new axes (not present in input Slice or Time): %s is an axis of InTime %s",
                             axes[i]->name, pass_text(r->p, r->time));
            diag_help(r->p->diags, d, "only InterTranspose moves a digit of Time into Slice; name a new axis with axes!");
            return false;
        }
    return true;
}

/* OutTime is InTime, and inside it what moves: *moved. */
static bool check_outer(const routing *r, const mapping **moved)
{
    bool divides = r->out_time->size % r->time->size == 0;
    int64_t inner = divides ? r->out_time->size / r->time->size : 1;
    const mapping *outer = divides ? pass_outer(r->p, r->out_time, inner) : NULL;
    *moved = divides ? pass_inner(r->p, r->out_time, inner) : NULL;
    if (*moved && same(r, outer, r->time) && same(r, JOINED(r, outer, *moved), r->out_time))
        return true;
    diag *d = REFUSE(
        r, TIME, E_SWITCH_TIME,
        "Switch axes moving from input slice to output time must be at the output time innermost positions: the outer part of %s must be "
        "InTime %s",
        pass_text(r->p, r->out_time), pass_text(r->p, r->time));
    diag_help(r->p->diags, d, "OutTime begins with InTime as it is; digits that leave Slice follow, in their order there");
    return false;
}

static bool refuse_walk(const routing *r, const sequence *seq)
{
    static const char *const texts[] = {
        "Switch axes in OutSlice must come from input slice or be new axes",
        "Switch broadcast axes in output time must come from input slice",
    };
    bool inner = seq->failure == SEQUENCE_TWICE || (seq->term && !shares_axis(seq->term, r->out_slice));
    diag *d = REFUSE(r, inner ? TIME : SLICE, inner ? E_SWITCH_TIME : E_SWITCH_SLICE, "%s: Switch read is not sequenceable: %s",
                     texts[inner], sequence_reason(r->p, seq));
    diag_note(r->p->diags, d, SRC_NOWHERE, "InSlice %s, OutSlice %s, OutTime %s", pass_text(r->p, r->slice), pass_text(r->p, r->out_slice),
              pass_text(r->p, r->out_time));
    diag_help(r->p->diags, d, "let every digit of InSlice stay in Slice, move to the inner part of OutTime, or be left out, once");
    return false;
}

/* The loops over the slices are the digits of the sender. */
static bool take_digits(const routing *r, const sequence *seq)
{
    route_config *c = r->o->route;
    int64_t last = INT64_MAX;
    for (size_t i = 0; i < seq->count; i++) {
        const sequence_part *s = &seq->parts[i];
        bool moved = s->segment == 1;
        if (moved && s->stride == 0) {
            diag *d = REFUSE(r, TIME, E_SWITCH_TIME, "Switch broadcast axes in output time must come from input slice: %s does not",
                             pass_text(r->p, s->term));
            diag_help(r->p->diags, d, "OutTime is InTime and digits that leave InSlice; padding does not move by itself");
            return false;
        }
        if (moved && s->stride >= last) {
            diag *d = REFUSE(
                r, TIME, E_SWITCH_TIME,
                "Switch axes moving from input Slice to output Time must preserve their relative order from input Slice: %s is further "
                "out there",
                pass_text(r->p, s->term));
            diag_help(r->p->diags, d, "packets arrive in the order of the slices that send them: name the digits in the order of InSlice");
            return false;
        }
        last = moved ? s->stride : last;
        if (s->stride != 0 && c->count < ROUTE_MAX_DIGITS)
            c->digits[c->count++] = (route_digit){moved ? 1 : s->position, s->size, s->stride, moved};
    }
    return true;
}

/* ---- rings ---- */

static bool is_live(const mapping *m, int64_t position, int64_t *coords, size_t count)
{
    memset(coords, 0, count * sizeof *coords);
    return mapping_map(m, position, coords);
}

static size_t coordinate_count(const mapping *m)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(m, axes, EINSUM_MAX_AXES), most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = axes[i]->number >= most ? axes[i]->number + 1 : most;
    return most + 1;
}

/* The smallest aligned block of slices that has every slice and those that it copies from, where these hold something. */
static int64_t pointwise_ring(const routing *r)
{
    const route_config *c = r->o->route;
    size_t count = coordinate_count(r->slice) + coordinate_count(r->out_slice);
    int64_t *coords = ARENA_ARRAY(r->p->arena, int64_t, count), ring = 1, moved = 1;
    for (uint32_t i = 0; i < c->count; i++)
        moved *= c->digits[i].moved ? c->digits[i].size : 1;
    for (int64_t d = 0; d < r->out_slice->size; d++) {
        if (!is_live(r->out_slice, d, coords, count))
            continue;
        for (int64_t j = 0; j < moved; j++) {
            int64_t from = 0, rest = j;
            for (uint32_t i = c->count; i-- > 0;) {
                const route_digit *x = &c->digits[i];
                from += (x->moved ? rest % x->size : d / x->div % x->size) * x->weight;
                rest /= x->moved ? x->size : 1;
            }
            if (from < r->slice->size && is_live(r->slice, from, coords, count))
                while (from / ring != d / ring)
                    ring *= 2;
        }
    }
    return ring;
}

/* What is left of the positions stride .. end - 1 when the outer digits that stay where they are are taken away: their end. */
static int64_t end_of_rest(const route_config *c, int64_t stride, int64_t end)
{
    for (bool going = true; going && end > stride;) {
        going = false;
        for (uint32_t i = 0; i < c->count; i++) {
            const route_digit *x = &c->digits[i];
            if (!x->moved && x->div == x->weight && x->weight >= stride && x->weight < end && x->weight * x->size >= end) {
                end = x->weight;
                going = true;
            }
        }
    }
    return end > stride ? end : 1;
}

/* April's ring, from whole digits with their padding: the smallest stride of a digit that stays, or all slices, above the ends of those
 * that do not. */
static int64_t digit_ring(const routing *r)
{
    const route_config *c = r->o->route;
    int64_t end = 1, ring = r->slice->size, stride = r->slice->size;
    for (uint32_t i = 0; i < c->count; i++) {
        const route_digit *x = &c->digits[i];
        if (x->moved || x->div != x->weight)
            end = larger(end, larger(x->weight * x->size, x->moved ? 1 : x->div * x->size));
    }
    for (uint32_t i = 0; i < r->slice->count; i++) {
        const factor *f = &r->slice->factors[i];
        stride /= f->extent;
        if (f->kind != FACTOR_BROADCAST && f->live > 1)
            end = larger(end, end_of_rest(c, stride, stride * f->extent));
    }
    stride = r->out_slice->size;
    for (uint32_t i = 0; i < r->out_slice->count; i++) {
        const factor *f = &r->out_slice->factors[i];
        stride /= f->extent;
        if (f->kind == FACTOR_AXIS && !mapping_mentions(r->slice, f->axis))
            end = larger(end, stride * f->extent);
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (!c->digits[i].moved && c->digits[i].div == c->digits[i].weight && c->digits[i].weight >= end)
            ring = smaller(ring, c->digits[i].weight);
    return end == 1 ? 1 : ring;
}

static bool check_ring(const routing *r)
{
    route_config *c = r->o->route;
    int64_t exact = pointwise_ring(r), april = digit_ring(r);
    if (c->ring_size == exact || c->ring_size == april)
        return true;
    diag *d = REFUSE(r, MAPPING_COMPONENTS, E_SWITCH_RING, "Switch ring size mismatch. Expected %lld, got %lld", (long long)april,
                     (long long)c->ring_size);
    if (exact != april)
        diag_note(r->p->diags, d, SRC_NOWHERE, "%lld too: padding needs no packets", (long long)exact);
    return refused(r, d, r->out_slice, r->out_time, april == power_of_two_above(april) ? april : exact);
}

static bool check_custom(const routing *r)
{
    route_config *c = r->o->route;
    const mapping *moved;
    if (c->ring_size < 1 || c->ring_size != power_of_two_above(c->ring_size) || c->ring_size > MOST_SLICES) {
        diag *d = REFUSE(r, MAPPING_COMPONENTS, E_SWITCH_RING, "Switch ring size must be a power of 2, got %lld", (long long)c->ring_size);
        diag_help(r->p->diags, d, "write a power of 2 from 1 to %d", MOST_SLICES);
        return false;
    }
    if (!check_timed(r) || !check_once(r) || !check_padded(r) || !check_outer(r, &moved))
        return false;
    sequence seq = {0};
    sequence_space buffer = {r->slice, 1}, stream[] = {{r->out_slice, 1}, {moved, 1}};
    if (!sequence_derive_spaces(r->p->mappings, &buffer, 1, r->time, stream, 2, SEQUENCE_READ, &seq))
        return refuse_walk(r, &seq);
    return take_digits(r, &seq) && check_ring(r);
}

/* ---- a named topology that does the same ---- */

/* Digits of a slice's number and of Time, of the named topologies a custom one can be: none of them takes Time apart. */
static bool does_the_same(const routing *r)
{
    static layout (*const layouts[])(const routing *) = {
        [TOPOLOGY_FORWARDING] = layout_of_forwarding,
        [TOPOLOGY_BROADCAST01] = layout_of_broadcast01,
        [TOPOLOGY_BROADCAST1] = layout_of_broadcast1,
        [TOPOLOGY_TRANSPOSE] = layout_of_transpose,
        [TOPOLOGY_INTER_TRANSPOSE] = NULL,
        [TOPOLOGY_TRANSPOSED_BROADCAST1] = layout_of_transposed_broadcast1,
        [TOPOLOGY_CUSTOM] = NULL,
    };
    if (!layouts[r->o->route->topology])
        return false;
    layout l = layouts[r->o->route->topology](r);
    return same(r, l.slice, r->out_slice) && same(r, l.time, r->out_time);
}

/* A custom routing loads a bitmap into each slice before it; a named one with the same ring or a smaller one needs none. */
static void advise_named(const routing *r)
{
    static const topology named[] = {TOPOLOGY_FORWARDING, TOPOLOGY_TRANSPOSE, TOPOLOGY_BROADCAST1, TOPOLOGY_TRANSPOSED_BROADCAST1,
                                     TOPOLOGY_BROADCAST01};
    op other = *r->o;
    routing try = *r;
    try.o = &other;
    try.t0 = 1;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        for (try.s1 = 1; try.s1 <= r->o->route->ring_size; try.s1 *= 2)
            for (try.s0 = 1; try.s1 * try.s0 <= r->o->route->ring_size && r->slice->size % (try.s1 * try.s0) == 0; try.s0 *= 2) {
                route_config c = {.topology = named[i]};
                other.route = &c;
                if ((named[i] == TOPOLOGY_FORWARDING && try.s1 * try.s0 > 1) || !does_the_same(&try))
                    continue;
                diag *d =
                    diag_add(r->p->diags, W_SWITCH_CUSTOM, r->o->range,
                             "a named topology sends the same packets: ring of %lld, no bitmaps to load", (long long)(try.s1 * try.s0));
                diag_help(r->p->diags, d, "write %s", config_text(&try, 0));
                return;
            }
}

static void switch_one(pass_context *p, kernel *k, op *o)
{
    static bool (*const checks[])(const routing *) = {
        [TOPOLOGY_FORWARDING] = check_forwarding,
        [TOPOLOGY_BROADCAST01] = check_broadcast01,
        [TOPOLOGY_BROADCAST1] = check_broadcast1,
        [TOPOLOGY_TRANSPOSE] = check_transpose,
        [TOPOLOGY_INTER_TRANSPOSE] = check_inter_transpose,
        [TOPOLOGY_TRANSPOSED_BROADCAST1] = check_transposed_broadcast1,
        [TOPOLOGY_CUSTOM] = check_custom,
    };
    const tensor *in = &op_input(o)->out;
    routing r = {p,
                 k,
                 o,
                 in->part[SLICE],
                 in->part[TIME],
                 o->out.part[SLICE],
                 o->out.part[TIME],
                 o->route->slice1,
                 o->route->slice0,
                 o->route->time0};
    if (r.slice->size != r.out_slice->size) {
        diag *d = REFUSE(&r, SLICE, E_SWITCH_SIZE, "Switch input and output slice sizes must match, got %lld and %lld",
                         (long long)r.slice->size, (long long)r.out_slice->size);
        diag_help(p->diags, d, "a switch moves packets among %lld slices: pad OutSlice, or let a digit move to OutTime",
                  (long long)r.slice->size);
        return;
    }
    if (!checks[o->route->topology](&r))
        return;
    if (o->route->topology == TOPOLOGY_CUSTOM)
        advise_named(&r);
    else
        o->route->ring_size = r.s1 * r.s0;
}

void pass_switch(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_SWITCH, switch_one);
}
