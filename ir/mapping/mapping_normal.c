/* The normal form of a list of factors. Rules, each keeping map(): a digit that is always 0 when live is a hole; digits of an axis stop
 * where the axis does; a hole outside a factor is padding of that factor; two adjacent factors that count through the same thing without a
 * gap are one; a factor of extent 1 is nothing. The parts of a group are one where that is certain (merge_parts). */
#include <string.h>

#include "ir/mapping/mapping_parts.h"

static bool is_hole(const factor *f)
{
    return f->kind == FACTOR_BROADCAST && f->live == 1;
}

static void factor_normalise(factor *f)
{
    if (f->kind == FACTOR_AXIS && f->live > ceil_div(f->axis->size, f->weight))
        f->live = ceil_div(f->axis->size, f->weight);
    if (f->live == 1) /* digit 0 is position 0 of whatever this is: the empty index */
        *f = (factor){.kind = FACTOR_BROADCAST, .pad = f->pad, .live = 1, .extent = f->extent};
    if (f->live == f->extent)
        f->pad = PAD_TOP;
}

/* ---- the parts of a group that ends inside them ---- */

/* The largest digit, at `unit` positions, of the positions i * step, i < count. Or more than that where `unit` does not divide the step. */
static int64_t largest_digit(int64_t step, int64_t count, int64_t unit, int64_t extent)
{
    int64_t raster = step % unit ? 1 : gcd(step / unit, extent), most = (count - 1) * step / unit;
    return most < extent - raster ? most : extent - raster;
}

/* Can a digit of E overflow where a position i * step, i < count, and one of j * weight, j < inside, are added? Where `count` is 0, to the
 * position `step` itself. */
static bool may_carry(const mapping *e, int64_t step, int64_t count, int64_t weight, int64_t inside)
{
    int64_t unit = 1;
    for (size_t k = e->count; k-- > 0; unit *= e->factors[k].extent) {
        int64_t extent = e->factors[k].extent;
        int64_t outer = count > 0 ? largest_digit(step, count, unit, extent) : step / unit % extent;
        if (outer + largest_digit(weight, inside, unit, extent) >= extent)
            return true;
    }
    return false;
}

/* Does every digit of E run to the end of its axis? Then one that overflows is no coordinate. */
static bool ends_axes(const mapping *e)
{
    for (size_t k = 0; k < e->count; k++)
        if (e->factors[k].kind != FACTOR_AXIS || e->factors[k].live < ceil_div(e->factors[k].axis->size, e->factors[k].weight))
            return false;
    return true;
}

/* Rule: [E] / n next to [E] % n is [E] where no position carries on adding up, or where E has ended: past its end some digit overflows, and
 * where all digits run to the ends of their axes, that is dead. So `[A, B] # 16 / 8, [A, B] # 16 % 8` with 2 and 5 elements is
 * `[A, B] # 16`, although 8 falls between two values of A. */
static bool merge_parts(const factor *o, factor *f)
{
    const mapping *a = o->inner, *b = f->inner, *e = mapping_is_front(a, b) ? b : a;
    int64_t step;
    if ((e == a && !mapping_is_front(b, a)) || __builtin_mul_overflow(f->weight, f->extent, &step) || o->weight != step || !ends_axes(e))
        return false;
    int64_t live = ceil_div(e->size, f->weight), last = (o->live - 1) * f->extent; /* where the last of the outer positions begins */
    bool one_padding = live == last + f->extent || o->pad == PAD_TOP;
    if (live <= last || live > last + f->extent || !one_padding)
        return false;
    if ((o->live > 1 && may_carry(e, step, o->live - 1, f->weight, f->extent)) ||
        may_carry(e, (o->live - 1) * step, 0, f->weight, live - last))
        return false;
    f->inner = e;
    f->live = live;
    f->extent *= o->extent;
    f->pad = o->pad;
    return true;
}

/* Merges o, which stands directly outside f, into f. */
static bool factor_merge(const factor *o, factor *f)
{
    bool dead = f->live < f->extent;
    if (is_hole(o)) {
        if (dead && f->pad != o->pad)
            return false;
        f->pad = o->pad;
        f->extent *= o->extent;
        return true;
    }
    if (dead || o->kind != f->kind || o->axis != f->axis)
        return false;
    if (f->kind == FACTOR_COMPOSITE)
        return merge_parts(o, f);
    int64_t next_weight;
    if (f->kind == FACTOR_AXIS && (__builtin_mul_overflow(f->weight, f->extent, &next_weight) || o->weight != next_weight))
        return false;
    f->live = o->live * f->extent;
    f->extent *= o->extent;
    f->pad = o->pad;
    factor_normalise(f);
    return true;
}

/* Appends on the inner side, merging with what is there. */
static void list_append(factor_list *l, factor f)
{
    factor_normalise(&f);
    if (f.extent == 1)
        return;
    if (l->count > 0 && factor_merge(&l->items[l->count - 1], &f)) {
        l->count--;
        factor_list_push(l, f); /* it may now meet its next outer neighbour, and a composite may dissolve */
        return;
    }
    ARENA_PUSH(l->context->arena, l->items, l->count, l->capacity, f);
}

void factor_list_init(factor_list *l, mapping_context *c)
{
    l->context = c;
    l->items = l->local;
    l->count = 0;
    l->capacity = LOCAL_FACTORS;
}

void factor_list_append_all(factor_list *l, const factor *f, size_t count)
{
    for (size_t i = 0; i < count; i++)
        factor_list_push(l, f[i]);
}

int64_t factors_size(const factor *f, size_t count)
{
    int64_t size = 1;
    for (size_t i = 0; i < count; i++)
        size *= f[i].extent;
    return size;
}

const factor *factor_list_keep(const factor_list *l)
{
    factor *kept = ARENA_ARRAY(l->context->arena, factor, l->count);
    memcpy(kept, l->items, l->count * sizeof *kept);
    return kept;
}

static int64_t composite_inner_size(const composite *k)
{
    return factors_size(k->f + 1, k->count - 1);
}

/* Drops what the last position does not reach; true when something changed. */
static bool composite_trim(composite *k)
{
    int64_t inner = composite_inner_size(k);
    int64_t reach = ceil_div((k->live - 1) * k->weight + 1, inner);
    if (reach > k->outermost.live)
        reach = k->outermost.live;
    int64_t live = ceil_div(reach * inner, k->weight);
    bool changed = reach != k->outermost.extent || live < k->live;
    if (live < k->live)
        k->live = live;
    k->outermost.extent = k->outermost.live = reach;
    if (reach == 1 && k->count > 1) {
        k->f++, k->count--;
        k->outermost = k->f[0];
        return true;
    }
    return changed;
}

/* Takes the step w into E: factors that it jumps over go, and one that it divides is divided. */
static void composite_step(mapping_context *c, composite *k)
{
    size_t count = k->count;
    while (count > 1 && k->weight % k->f[count - 1].extent == 0)
        k->weight /= k->f[--count].extent;
    factor last = k->f[count - 1];
    bool divides = count > 1 && k->weight > 1 && last.extent % k->weight == 0;
    if (count == k->count && !divides)
        return;
    factor_list e;
    factor_list_init(&e, c);
    factor_list_push(&e, k->outermost);
    if (count > 1)
        factor_list_append_all(&e, k->f + 1, count - 2);
    if (divides) {
        last.weight *= k->weight;
        last.live = ceil_div(last.live, k->weight);
        last.extent /= k->weight;
        k->weight = 1;
    }
    if (count > 1)
        factor_list_push(&e, last);
    k->f = factor_list_keep(&e);
    k->count = e.count;
    k->outermost = e.items[0];
}

static const mapping *composite_intern(mapping_context *c, const composite *k)
{
    factor *f = ARENA_ARRAY(c->arena, factor, k->count);
    memcpy(f, k->f, k->count * sizeof *f);
    f[0] = k->outermost;
    return mapping_intern(c, f, k->count);
}

/* Writes the whole of E with `live` of its first positions, padded to `extent`, in digits. False: not possible. */
static bool composite_dissolve(factor_list *l, const composite *k)
{
    int64_t inner = composite_inner_size(k);
    if (k->weight != 1 || k->live % inner != 0 || k->extent % inner != 0)
        return false;
    factor f = k->outermost;
    f.live = f.live < k->live / inner ? f.live : k->live / inner;
    f.extent = k->extent / inner;
    f.pad = k->pad;
    factor_list_push(l, f);
    factor_list_append_all(l, k->f + 1, k->count - 1);
    return true;
}

void factor_list_push_composite(factor_list *l, composite k)
{
    k.outermost = k.f[0];
    do
        composite_step(l->context, &k);
    while (composite_trim(&k));
    if (k.live == 1) { /* position 0 alone: the empty index */
        factor_list_push(l, (factor){.kind = FACTOR_BROADCAST, .pad = k.pad, .live = 1, .extent = k.extent});
        return;
    }
    if (k.outermost.kind == FACTOR_COMPOSITE) { /* one composite is enough where its own end is not reached */
        factor_list e;
        factor_list_init(&e, l->context);
        if (k.outermost.weight == 1 && k.outermost.live == k.outermost.extent)
            factor_list_append_all(&e, k.outermost.inner->factors, k.outermost.inner->count);
        else
            factor_list_push(&e, k.outermost); /* trimmed, it may say less in more digits */
        factor_list_append_all(&e, k.f + 1, k.count - 1);
        if (e.count != k.count || !factor_equal(&e.items[0], &k.outermost)) {
            k.f = factor_list_keep(&e);
            k.count = e.count;
            factor_list_push_composite(l, k);
            return;
        }
    }
    if (k.count == 1) { /* a single digit after all */
        factor f = k.outermost;
        f.weight *= k.weight;
        f.live = k.live < ceil_div(f.live, k.weight) ? k.live : ceil_div(f.live, k.weight);
        f.extent = k.extent;
        f.pad = k.pad;
        factor_list_push(l, f);
        return;
    }
    if (composite_dissolve(l, &k))
        return;
    size_t beside = k.count; /* factors beside .. count-1 are the composite's neighbours */
    if (k.weight == 1)
        while (beside > 1 && k.live % k.f[beside - 1].extent == 0 && k.extent % k.f[beside - 1].extent == 0) {
            beside--;
            k.live /= k.f[beside].extent;
            k.extent /= k.f[beside].extent;
        }
    const factor *rest = k.f + beside;
    size_t rest_count = k.count - beside;
    k.count = beside;
    factor f = {.kind = FACTOR_COMPOSITE,
                .pad = k.pad,
                .inner = composite_intern(l->context, &k),
                .weight = k.weight,
                .live = k.live,
                .extent = k.extent};
    list_append(l, f);
    factor_list_append_all(l, rest, rest_count);
}

void factor_list_push(factor_list *l, factor f)
{
    if (f.kind == FACTOR_COMPOSITE && f.live > 1)
        factor_list_push_composite(
            l, (composite){
                   .f = f.inner->factors, .count = f.inner->count, .weight = f.weight, .live = f.live, .extent = f.extent, .pad = f.pad});
    else if (f.kind == FACTOR_COMPOSITE)
        list_append(l, (factor){.kind = FACTOR_BROADCAST, .pad = f.pad, .live = 1, .extent = f.extent});
    else
        list_append(l, f);
}

const mapping *factor_list_finish(const factor_list *l)
{
    return mapping_intern(l->context, l->items, l->count);
}
