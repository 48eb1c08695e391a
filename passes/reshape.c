/* Rule ("reshape"): the memory stays where it is, level by level (Chip, Cluster, Slice, Element), each of an equal size. Both mappings are
 * cut into digits of the same positions, innermost first; digit i of the one is digit i of the other. A digit may be a whole axis or a part
 * of one on either side: positions that lie together get another name, and that is a bijection of positions whatever else the axis has
 * elsewhere. Padding may get a name: nothing says what it holds, so no live result may come from it (passes/coverage.c), but of an input in
 * HBM: the host hands over all of its bytes. An axis, or digits of it, may be dropped: the first element stays. A broadcast may get a
 * name, since copies are equal under any; and a name may become a broadcast, where the elements do not depend on that axis. */
#include "passes/reshape.h"

/* What is left of one side's factors, innermost first. */
typedef struct digit_walk {
    const factor *factors; /* of the mapping; padding that is a whole number of an axis is one of its own */
    size_t next;           /* factors from here outwards are untouched: factors[next - 1] is the one at hand */
    int64_t taken;         /* positions of the factor at hand that are after us */
} digit_walk;

static const factor *factor_at(const digit_walk *w)
{
    return w->next > 0 ? &w->factors[w->next - 1] : NULL;
}

static void advance(digit_walk *w, int64_t positions)
{
    w->taken *= positions;
    if (w->taken == factor_at(w)->extent) {
        w->next--;
        w->taken = 1;
    }
}

static digit_walk walk_of(pass_context *p, const mapping *m)
{
    factor *factors = ARENA_ARRAY(p->arena, factor, 2 * m->count + 1);
    digit_walk w = {factors, 0, 1};
    for (size_t i = 0; i < m->count; i++) {
        factor f = m->factors[i];
        if (f.kind != FACTOR_COMPOSITE && f.live > 1 && f.live < f.extent && f.extent % f.live == 0) {
            factors[w.next++] = (factor){.kind = FACTOR_BROADCAST, .extent = f.extent / f.live, .live = 1};
            f.extent = f.live;
        }
        factors[w.next++] = f;
    }
    return w;
}

/* Of the next n positions of a factor those that hold something, in the first of them at least. */
static int64_t live_positions(const factor *f, int64_t taken, int64_t n)
{
    return smaller(n, ceil_div(f->live, taken));
}

/* The number of positions of the factor at hand that a digit with `other` left may take; 0: it cannot be cut there. Past the end of
 * an axis there are no elements, so one with padding is not cut, except where only padding is left, and to name copies: those past the
 * end get no name. */
static int64_t common_positions(const factor *f, int64_t taken, int64_t other, bool names_copies)
{
    int64_t left = f->extent / taken;
    if (left == other)
        return left;
    return (f->live == f->extent || names_copies || f->live <= taken * other) && left % other == 0 ? other : 0;
}

static bool is_gap(const factor *f)
{
    return f->kind == FACTOR_BROADCAST && f->live == 1;
}

/* The same where one of the two is padding: an axis with padding of its own is not cut. */
static int64_t common_gap(const factor *f, int64_t left, const factor *g, int64_t other)
{
    int64_t n = left < other ? left : other, most = left < other ? other : left;
    bool cuts_f = n < left && !is_gap(f) && f->live != f->extent, cuts_g = n < other && !is_gap(g) && g->live != g->extent;
    return most % n || cuts_f || cuts_g ? 0 : n;
}

static bool add_digit(reshape_config *c, const factor *from, int64_t from_taken, const factor *to, int64_t to_taken, int64_t size)
{
    if (c->count == EINSUM_MAX_DIGITS)
        return false;
    c->digits[c->count++] = (reshape_digit){from->axis, to->axis, from->weight * from_taken, to->weight * to_taken, size};
    return true;
}

static bool add_axis(const axis **list, uint32_t *count, const axis *a)
{
    for (uint32_t i = 0; i < *count; i++)
        if (list[i] == a)
            return true;
    if (*count == EINSUM_MAX_DIGITS)
        return false;
    list[(*count)++] = a;
    return true;
}

/* An axis names what was padding: more axes than that are as good as an unknown number. */
static void add_poison(reshape_config *c, const axis *a)
{
    c->poison = true;
    add_axis(c->poisons, &c->poison_count, a);
}

/* Copies on both sides, or under a name on one of them, whose digit has `taken` positions after it. False: there are too many. */
static bool pair_copies(reshape_config *c, const factor *f, const factor *g, int64_t taken, int64_t size)
{
    if (f->kind == FACTOR_AXIS)
        return add_axis(c->copied, &c->copied_count, f->axis);
    if (g->kind != FACTOR_AXIS)
        return true;
    if (c->spread_count == EINSUM_MAX_DIGITS)
        return false;
    c->spread[c->spread_count++] = (reshape_digit){.to = g->axis, .to_weight = g->weight * taken, .size = size};
    return true;
}

/* NULL: the level's digits are in the list; else what is wrong. */
static const char *pair_level(pass_context *p, const mapping *from, const mapping *to, reshape_config *c)
{
    digit_walk a = walk_of(p, from), b = walk_of(p, to);
    while (factor_at(&a) && factor_at(&b)) {
        const factor *f = factor_at(&a), *g = factor_at(&b);
        int64_t left = f->extent / a.taken, other = g->extent / b.taken,
                n = left > other ? common_positions(f, a.taken, other, false)
                                 : common_positions(g, b.taken, left, f->kind == FACTOR_BROADCAST && g->kind == FACTOR_AXIS);
        if (is_gap(f) || is_gap(g)) {
            n = common_gap(f, left, g, other);
            if (n == 0)
                return "the digits of one mapping are no digits of the other";
            if (!is_gap(g) && live_positions(g, b.taken, n) > 1)
                add_poison(c, g->axis);
            advance(&a, n);
            advance(&b, n);
            continue;
        }
        if (f->kind == FACTOR_COMPOSITE || g->kind == FACTOR_COMPOSITE)
            return "a part of a group is no digit of an axis";
        if (n == 0)
            return "the digits of one mapping are no digits of the other";
        if (f->kind == FACTOR_BROADCAST || g->kind == FACTOR_BROADCAST) {
            if (!pair_copies(c, f, g, b.taken, live_positions(g, b.taken, n)))
                return "there are too many digits";
            advance(&a, n);
            advance(&b, n);
            continue;
        }
        int64_t live = live_positions(f, a.taken, n), other_live = live_positions(g, b.taken, n);
        if (other_live > live)
            add_poison(c, g->axis);
        c->partial = c->partial || live != other_live;
        if (!add_digit(c, f, a.taken, g, b.taken, smaller(live, other_live)))
            return "there are too many digits";
        advance(&a, n);
        advance(&b, n);
    }
    return NULL;
}

static const axis *axis_of(const reshape_digit *d, bool to)
{
    return to ? d->to : d->from;
}

static int64_t weight_of(const reshape_digit *d, bool to)
{
    return to ? d->to_weight : d->from_weight;
}

bool reshape_is_ragged(const reshape_config *c, const axis *a, bool to)
{
    int64_t last = 0;
    for (uint32_t k = 0; k < c->count && last < a->size; k++)
        last += axis_of(&c->digits[k], to) == a ? (c->digits[k].size - 1) * weight_of(&c->digits[k], to) : 0;
    return last >= a->size;
}

bool reshape_outer_digits(const reshape_config *c, const axis *a, bool to, reshape_digit *whole)
{
    const reshape_digit *outer = NULL, *least = NULL;
    int64_t inner = 0; /* the last position of the others */
    for (uint32_t k = 0; k < c->count; k++)
        if (axis_of(&c->digits[k], to) == a && (!outer || weight_of(&c->digits[k], to) > weight_of(outer, to)))
            outer = &c->digits[k];
    if (!outer)
        return false;
    const axis *b = axis_of(outer, !to);
    for (uint32_t k = 0; k < c->count; k++) {
        const reshape_digit *d = &c->digits[k];
        if (axis_of(d, to) == a && axis_of(d, !to) == b && (!least || weight_of(d, to) < weight_of(least, to)))
            least = d;
    }
    int64_t unit = weight_of(least, to), other = weight_of(least, !to);
    for (uint32_t k = 0; k < c->count; k++) {
        const reshape_digit *d = &c->digits[k];
        if (axis_of(d, to) != a)
            continue;
        if (axis_of(d, !to) != b)
            inner += (d->size - 1) * weight_of(d, to);
        else if (weight_of(d, to) / unit != weight_of(d, !to) / other || weight_of(d, to) % unit || weight_of(d, !to) % other)
            return false;
    }
    bool same = unit == other && a->size == b->size;
    *whole = *least;
    if (same)
        whole->from_weight = whole->to_weight = 1;
    whole->size = same ? a->size : a->size / unit;
    return inner < unit && (same || (a->size % unit == 0 && b->size % other == 0 && a->size / unit == b->size / other));
}

/* The digits of an axis whose size they do not divide have combinations past its end, `A / 16` and `A % 16` of A = 250, which are no
 * elements. Under other names they would be some, so digits of such an axis are named anew only as those of another one that ends where it
 * does. NULL: there is none that is not. */
static const axis *ragged_axis(const reshape_config *c)
{
    reshape_digit whole;
    for (uint32_t i = 0; i < c->count; i++)
        for (int to = 0; to < 2; to++) {
            const axis *a = axis_of(&c->digits[i], to);
            if (reshape_is_ragged(c, a, to) && !reshape_outer_digits(c, a, to, &whole))
                return a;
        }
    return NULL;
}

static bool is_equal(pass_context *p, const op *o)
{
    for (component c = CHIP; c <= ELEMENT; c++)
        if (o->out.part[c] && !mapping_equal(p->mappings, o->out.part[c], o->reshape->from->out.part[c]))
            return false;
    return true;
}

static void reshape_one(pass_context *p, kernel *k, op *o)
{
    o->reshape = ARENA_NEW(p->arena, reshape_config);
    o->reshape->from = op_input(o)->kind == IR_RESHAPE ? op_input(o)->reshape->from : op_input(o);
    o->reshape->equal = is_equal(p, o);
    if (o->reshape->equal)
        return;
    for (component c = CHIP; c <= ELEMENT; c++) {
        const mapping *from = o->reshape->from->out.part[c], *to = o->out.part[c];
        if (!from || !to)
            continue;
        if (from->size != to->size) {
            diag *d =
                pass_refuse(p, k, o, c, E_RESHAPE, "%s has %s, and %s of the memory has %lld: %s", pass_text(p, to),
                            arena_count(p->arena, to->size, "position"), component_word(c), (long long)from->size, pass_text(p, from));
            diag_help(p->diags, d, "reshape keeps the size of each of Chip, Cluster, Slice and Element");
            return;
        }
        const char *fault = pair_level(p, from, to, o->reshape);
        if (fault) {
            diag *d = pass_refuse(p, k, o, c, E_RESHAPE, "%s does not name the positions of %s %s anew: %s", pass_text(p, to),
                                  component_word(c), pass_text(p, from), fault);
            diag_help(p->diags, d, "name a digit of the same positions for each digit");
            return;
        }
    }
    const axis *ragged = ragged_axis(o->reshape);
    if (!ragged)
        return;
    diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_RESHAPE,
                          "the digits of axis %s do not divide its %s: what is past its end is no element under another name", ragged->name,
                          arena_count(p->arena, ragged->size, "element"));
    diag_help(p->diags, d, "give all of them the names of the same digits of one other axis of %s, or of one with so many parts",
              arena_count(p->arena, ragged->size, "element"));
}

/* Is the memory known under the names of this reshape only? */
static bool names_all_of(const kernel *k, const op *memory, const op *reshape)
{
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        for (size_t j = 0; j < o->operand_count && o != reshape; j++)
            if (o->operands[j].of == memory)
                return false;
    }
    return true;
}

/* An input in HBM is as many bytes as it has positions, and the host writes all of them, padding too. So where a reshape names that, the
 * input is declared under its names, and what the host puts there is an element like any other. Not so in DM, where padding is what a copy
 * left out. */
static void adopt_names(pass_context *p, kernel *k, op *o)
{
    if (o->bad || !o->reshape->poison || o->reshape->from->kind != IR_PORT_IN)
        return;
    op *in = k->ops[o->reshape->from->index];
    if (in->out.kind != TENSOR_HBM || in->parameter || in->out.part[CHIP] != o->out.part[CHIP] || !names_all_of(k, in, o))
        return;
    kernel_port *port = &k->ports[in->port];
    in->out.part[ELEMENT] = port->tensor.part[ELEMENT] = o->out.part[ELEMENT];
    in->named[ELEMENT] = port->named[ELEMENT] = NULL;
    for (size_t i = 0; i < k->op_count; i++) /* and what gives it further names */
        if (k->ops[i]->kind == IR_RESHAPE && k->ops[i]->reshape && k->ops[i]->reshape->from == in)
            reshape_one(p, k, k->ops[i]);
}

void pass_reshape(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_RESHAPE, reshape_one);
    pass_each(p, k, IR_RESHAPE, adopt_names);
}
