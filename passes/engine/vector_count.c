/* Rules ("Valid Count Generator"): a lane counts in a reduction where every reduced digit is live and the label's digits, in Slice, Time
 * and Packet, together are below the axis's size. The generator says that of a flit, in lanes from its front, as the least of
 *   - a packet clipper: clamp(limit - index, 0, span), the index a sum over the flit's time digits;
 *   - up to 3 time filters: all or nothing, by the index and by some bits of the slice's number, `masked`. Slice major: all below `slice`,
 *     nothing above, index < limit where they are equal. Time major: all below, index < limit from there on.
 * So the axis's sum is cut in one of these ways, the first that holds for all lanes whose result is live:
 *   clipper: no digit in Slice, and lanes count the axis by one step from the front on;
 *   filter, in units of what a packet holds: every other digit and the size are whole numbers of it;
 *     slice major: slices above the one where the axis ends hold nothing of it;
 *     time major: only the last value of the time digits is cut off, and that in the slices from one on.
 * Digits in Slice must be compared as they stand: sizes and positions powers of two, the outer one the heavier. What holds padding alone is
 * no such digit: of 12 positions with 4 live values 4 are compared, as if [3, 4] stood there. A reduced digit whose own padding the axis's
 * end does not cover takes a filter of its own; padding lanes after the live ones are the clipper's span.
 */
#include "passes/engine/vector_reduce.h"

enum { MOST_DIGITS = 96 };
typedef enum place { AT_FLIT, AT_LANE, AT_SLICE, AT_UNIT } place; /* AT_UNIT: of a chip or cluster */
enum { BESIDE_LANES = 1 << AT_FLIT | 1 << AT_SLICE | 1 << AT_UNIT };

typedef struct digit {
    place at;
    int64_t position, live, extent; /* positions of its place */
    int64_t weight;                 /* coordinates of the label; 0: none of its digits */
    bool reduced;
    bool own; /* its padding is not beyond the axis's end */
} digit;

typedef struct counting {
    pass_context *context;
    kernel *kernel;
    op *op;
    const axis *label;
    const reduced_digits *reduced;
    bool splits;   /* the packets of 4 are halves of flits */
    int64_t lanes; /* of a flit, that go on */
    digit digits[MOST_DIGITS];
    size_t count;
    unsigned filters;
    valid_count **last;
} counting;

/* ---- digits ---- */

static void add_digit(counting *c, place at, int64_t position, const factor *f, int64_t live, int64_t extent, bool reduced)
{
    bool label = f->kind == FACTOR_AXIS && f->axis == c->label;
    if (extent == 1 || c->count == MOST_DIGITS)
        return;
    digit d = {.at = at, .position = position, .live = live, .extent = extent, .weight = label ? f->weight : 0, .reduced = reduced};
    c->digits[c->count++] = d;
}

static void add_part(counting *c, const mapping *m, place at, bool reduced)
{
    int64_t position = m ? m->size : 1;
    for (uint32_t i = 0; m && i < m->count; i++) {
        const factor *f = &m->factors[i];
        position /= f->extent;
        add_digit(c, at, position, f, f->live, f->extent, reduced);
    }
}

/* Values of a digit of Time at these packets of 4. A split packet's halves are the innermost 2 packets of Time, and are lanes of the flit.
 */
static void add_steps(counting *c, const factor *f, int64_t position, int64_t live, int64_t extent, bool reduced)
{
    bool halves = c->splits && position == 1 && extent > 1;
    int64_t lanes = halves ? 2 : 1;
    size_t outer = c->count;
    add_digit(c, AT_FLIT, c->splits && !halves ? position / 2 : position, f, ceil_div(live, lanes), extent / lanes, reduced);
    if (c->count > outer)
        c->digits[outer].weight *= lanes;
    if (halves)
        add_digit(c, AT_LANE, 4, f, smaller(live, 2), 2, reduced);
}

static void add_time(counting *c, const mapping *time, const reduced_digits *r)
{
    const factor padding = {.kind = FACTOR_BROADCAST};
    int64_t position = time->size;
    for (uint32_t i = 0; i < time->count; i++) {
        const factor *f = &time->factors[i];
        int64_t kept = r->kept[i];
        position /= f->extent;
        if (kept == 1)
            add_steps(c, f, position, f->live, f->extent, true);
        else
            add_steps(c, &padding, position * kept, 1, f->extent / kept, true);
        if (kept > 1)
            add_steps(c, f, position, f->live, kept, false);
    }
}

/* The greatest value that the digit has where everything else about it is live. */
static int64_t last_value(const digit *d)
{
    return (d->own || !d->reduced ? d->live : d->extent) - 1;
}

/* The sum of the greatest values, in coordinates; more than any size where it overflows. */
static int64_t reach_of(const counting *c, unsigned places)
{
    int64_t sum = 0, part;
    for (size_t i = 0; i < c->count; i++)
        if (places >> c->digits[i].at & 1 &&
            (__builtin_mul_overflow(last_value(&c->digits[i]), c->digits[i].weight, &part) || __builtin_add_overflow(sum, part, &sum)))
            return INT64_MAX / 2;
    return sum;
}

/* ---- lanes ---- */

typedef struct lane {
    bool cares, dead; /* its result is live; it is padding at every time step */
    int64_t at;       /* coordinates of the label */
} lane;

static lane lane_of(const counting *c, int64_t number)
{
    lane l = {.cares = true};
    for (size_t i = 0; i < c->count; i++) {
        const digit *d = &c->digits[i];
        if (d->at != AT_LANE)
            continue;
        int64_t value = number / d->position % d->extent;
        l.cares = l.cares && (d->reduced || value < d->live);
        l.dead = l.dead || (d->reduced && value >= d->live);
        l.at += value * d->weight;
    }
    l.dead = l.dead || l.at >= c->label->size;
    return l;
}

/* How many lanes from the front on are not dead; -1: a live one follows a dead one. */
static int64_t live_front(const counting *c)
{
    int64_t front = c->lanes;
    for (int64_t i = c->lanes; i-- > 0;)
        if (lane_of(c, i).cares && lane_of(c, i).dead)
            front = i;
    for (int64_t i = front; i < c->lanes; i++)
        if (lane_of(c, i).cares && !lane_of(c, i).dead)
            return -1;
    return front;
}

/* Coordinates between two neighbouring lanes where the first `front` lanes count by one step; 0: they do not. Others do not matter. */
static int64_t lane_step(const counting *c, int64_t front)
{
    int64_t step = 1;
    for (int64_t i = 1; i < front; i++)
        if (lane_of(c, i).cares) {
            step = lane_of(c, i).at / i;
            break;
        }
    for (int64_t i = 0; i < front; i++)
        if (step == 0 || (lane_of(c, i).cares && lane_of(c, i).at != i * step))
            return 0;
    return step;
}

static int64_t greatest_lane(const counting *c)
{
    int64_t greatest = 0;
    for (int64_t i = 0; i < c->lanes; i++)
        if (lane_of(c, i).cares && !lane_of(c, i).dead)
            greatest = larger(greatest, lane_of(c, i).at);
    return greatest;
}

/* Does the axis end nowhere but in lanes that are dead, with the digits of Time as far as they are taken? */
static bool ends_outside(const counting *c)
{
    int64_t greatest;
    return !__builtin_add_overflow(greatest_lane(c), reach_of(c, BESIDE_LANES), &greatest) && greatest < c->label->size;
}

/* Padding of a digit of Time is its own where the axis's end does not cover it; and all of it, where no other digit reaches the end then.
 * But next to digits in Slice what is beyond the end is published to be one padded size of the axis, which one filter has to cut. */
static void find_own(counting *c)
{
    bool in_slices = false;
    for (size_t i = 0; i < c->count; i++) {
        const digit *d = &c->digits[i];
        c->digits[i].own = d->at == AT_FLIT && d->reduced && d->live < d->extent;
        in_slices = in_slices || (d->at == AT_SLICE && d->weight && d->live > 1);
    }
    if (!in_slices && ends_outside(c))
        return;
    for (size_t i = 0; i < c->count; i++) {
        digit *d = &c->digits[i];
        int64_t end;
        d->own = d->own && (d->weight == 0 || (!__builtin_mul_overflow(d->live, d->weight, &end) && end < c->label->size));
    }
}

/* ---- the generator's parts ---- */

/* Digits of Time as loops; each adds what `weigh` gives. False: there are too many. */
static bool add_loops(const counting *c, valid_count *v, int64_t (*weigh)(const digit *, const void *), const void *of)
{
    int64_t most = smaller(c->context->target->vector_count_entries, VALID_COUNT_MAX_LOOPS);
    for (size_t i = 0; i < c->count; i++) {
        const digit *d = &c->digits[i];
        if (d->at != AT_FLIT)
            continue;
        valid_loop loop = {d->extent, weigh(d, of)}, *before = v->count ? &v->loops[v->count - 1] : NULL;
        if (before && before->stride == loop.stride * loop.size) {
            before->size *= loop.size;
            before->stride = loop.stride;
        } else if (v->count == most) {
            return false;
        } else {
            v->loops[v->count++] = loop;
        }
    }
    if (v->count == 0)
        v->loops[v->count++] = (valid_loop){1, 0};
    return true;
}

static int64_t weigh_label(const digit *d, const void *unit)
{
    return d->weight / *(const int64_t *)unit;
}

static int64_t weigh_one(const digit *d, const void *one)
{
    return d == one;
}

static diag *refuse(counting *c, const char *why)
{
    return pass_refuse(c->context, c->kernel, c->op, MAPPING_COMPONENTS, E_VALID_COUNT,
                       "padding of %s cannot be left out of the reduction: %s", c->label->name, why);
}

/* What can be expressed of any axis: nothing of it but its next elements in each packet. */
static bool refuse_lanes(counting *c, const char *why)
{
    int64_t lanes = c->context->target->vector_narrow_lanes, padded = ceil_div(c->label->size, lanes) * lanes;
    const char *name = c->label->name, *pad = padded == c->label->size ? "" : arena_printf(c->context->arena, " # %lld", (long long)padded);
    diag *d = refuse(c, why);
    diag_help(c->context->diags, d, "let Time hold m![%s%s / %lld] and Packet m![%s%s %% %lld # %lld], with nothing else of %s", name, pad,
              (long long)lanes, name, pad, (long long)lanes, (long long)(2 * lanes), name);
    return false;
}

/* The stream's Time that is reduced alike, without padding of what goes: the label's digits are innermost. The halves of a split packet are
 * the packet's. */
static const mapping *time_without_padding(counting *c)
{
    pass_context *p = c->context;
    const mapping *time = op_input(c->op)->out.part[TIME], *kept = c->op->out.part[TIME], *gone = mapping_identity(p->mappings), *halves;
    const factor *f = time->factors;
    for (uint32_t i = 0; i < time->count; i++)
        if (f[i].kind == FACTOR_AXIS && f[i].axis == c->label)
            gone = pass_pair(p, gone, mapping_without_padding(p->mappings, &f[i]));
    uint32_t last = time->count - 1;
    bool label = time->count && f[last].kind == FACTOR_AXIS && f[last].axis == c->label;
    const mapping **innermost = label ? &gone : time->count && c->reduced->kept[last] > 1 ? &kept : NULL, *flits;
    if (c->splits && innermost && mapping_split(p->mappings, *innermost, 2, &flits, &halves) == MAPPING_OK)
        *innermost = flits;
    return pass_pair(p, kept, gone);
}

static bool add_count(counting *c, valid_count v, int64_t (*weigh)(const digit *, const void *), const void *of)
{
    int64_t most = c->context->target->vector_time_filters;
    if (v.kind != VALID_COUNT_CLIPPER && c->filters++ == most) {
        diag *d = refuse(c, "it takes more time filters than there are");
        diag_note(c->context->diags, d, SRC_NOWHERE,
                  "there are %lld; one cuts off the axis's end, and each padded digit inside of it takes one", (long long)most);
        diag_help(c->context->diags, d, "collect Time %s, without the padding", pass_text(c->context, time_without_padding(c)));
        return false;
    }
    if (!add_loops(c, &v, weigh, of))
        return refuse_lanes(c, "a counter has fewer loops than Time has digits");
    *c->last = ARENA_NEW(c->context->arena, valid_count);
    **c->last = v;
    c->last = &(*c->last)->next;
    return true;
}

/* ---- slices ---- */

/* The label's digits in Slice, innermost first. */
typedef struct slices {
    const digit *digits[MOST_DIGITS];
    size_t count;
    int64_t mask;
} slices;

static bool is_power(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* Positions of the digit that its live values are in, the others being whole multiples of it. */
static int64_t span_of(const digit *d)
{
    int64_t span = 1;
    while (span < d->live)
        span *= 2;
    return d->extent % span ? d->extent : span;
}

/* NULL: their bits, compared as a number, are in the axis's order. */
static const char *read_slices(const counting *c, slices *s)
{
    int64_t below = 0;
    *s = (slices){.count = 0};
    for (size_t i = c->count; i-- > 0;) {
        const digit *d = &c->digits[i];
        if (d->at != AT_SLICE || d->weight == 0 || d->live == 1)
            continue;
        if (!is_power(d->position) || !is_power(span_of(d)))
            return "its digits in Slice are compared by their bits, and have to have sizes and places that are powers of two";
        if (d->weight <= below)
            return "in Slice an inner digit of it is heavier than an outer one, so that the slices with padding are not the last ones";
        below += (d->live - 1) * d->weight;
        s->digits[s->count++] = d;
        s->mask |= (span_of(d) - 1) * d->position;
    }
    return NULL;
}

/* The first slice, in their order, that holds coordinate `least` or one above it: its masked number and coordinate. False: none does. */
static bool first_slice(const slices *s, int64_t least, int64_t *masked, int64_t *coordinate)
{
    int64_t below = 0; /* that the digits inside can add */
    *masked = *coordinate = 0;
    for (size_t i = 0; i < s->count; i++)
        below += (s->digits[i]->live - 1) * s->digits[i]->weight;
    if (below < least)
        return false;
    for (size_t i = s->count; i-- > 0;) {
        const digit *d = s->digits[i];
        below -= (d->live - 1) * d->weight;
        int64_t left = least - *coordinate - below, value = left > 0 ? ceil_div(left, d->weight) : 0;
        *coordinate += value * d->weight;
        *masked += value * d->position;
    }
    return true;
}

/* The slice after that one; false: it is the last. */
static bool next_slice(const slices *s, int64_t masked, int64_t *coordinate)
{
    *coordinate = 0;
    bool carry = true;
    for (size_t i = 0; i < s->count; i++) {
        const digit *d = s->digits[i];
        int64_t value = masked / d->position % span_of(d) + carry;
        carry = value == d->live;
        *coordinate += (carry ? 0 : value) * d->weight;
    }
    return !carry;
}

/* The greatest coordinate of a slice that begins below `size`. What others have as their results are no elements. */
static int64_t last_slice(const slices *s, int64_t size)
{
    int64_t at = 0;
    for (size_t i = s->count; i-- > 0;)
        at += smaller(s->digits[i]->live - 1, (size - 1 - at) / s->digits[i]->weight) * s->digits[i]->weight;
    return at;
}

/* The filter that leaves in what is below `size`; as it was: nothing is beyond. False: none does. */
static bool filter_of(const counting *c, const slices *s, int64_t size, valid_count *out)
{
    int64_t time = reach_of(c, 1u << AT_FLIT), lightest = 0, masked, at, next;
    for (size_t i = 0; i < c->count; i++)
        if (c->digits[i].at == AT_FLIT && c->digits[i].weight > 0 && last_value(&c->digits[i]) > 0)
            lightest = lightest ? smaller(lightest, c->digits[i].weight) : c->digits[i].weight;
    if (!first_slice(s, size - time, &masked, &at))
        return true; /* nothing is cut */
    *out = (valid_count){.kind = VALID_COUNT_SLICE_MAJOR, .slice_mask = s->mask, .slice = masked, .limit = larger(size - at, 0)};
    if (!next_slice(s, masked, &next) || next >= size)
        return true;
    *out = (valid_count){.kind = VALID_COUNT_TIME_MAJOR, .slice_mask = s->mask, .slice = masked, .limit = time};
    return lightest > 0 && last_slice(s, size) + time - lightest < size;
}

/* ---- what cannot be expressed, and what can ---- */

static bool refuse_slices(counting *c, const char *why)
{
    int64_t places = 1;
    for (size_t i = 0; i < c->count; i++)
        places *= c->digits[i].at == AT_SLICE && c->digits[i].weight ? c->digits[i].extent : 1;
    while (!is_power(places))
        places &= places - 1;
    int64_t each = ceil_div(c->label->size, places), padded = each * places;
    diag *d = refuse(c, why);
    const char *name = c->label->name, *pad = padded == c->label->size ? "" : arena_printf(c->context->arena, " # %lld", (long long)padded);
    diag_help(c->context->diags, d, "let Slice hold m![%s%s / %lld] and Time m![%s%s %% %lld], or keep %s out of Slice", name, pad,
              (long long)each, name, pad, (long long)each, name);
    return false;
}

/* ---- the derivation ---- */

/* The axis's end. `front`: lanes that are not dead. `clips`: set where the clipper says it, with those. */
static bool cut_end(counting *c, int64_t front, bool *clips)
{
    bool in_slices = false, in_lanes = false;
    int64_t unit = c->label->size, step = lane_step(c, front);
    if (reach_of(c, 1u << AT_UNIT) > 0 && (reach_of(c, 1u << AT_FLIT) > 0 || greatest_lane(c) > 0))
        return refuse_lanes(c, "it ends in another place in each chip or cluster, and a count depends on the slice and the time step only");
    for (size_t i = 0; i < c->count; i++) {
        const digit *d = &c->digits[i];
        in_slices = in_slices || (d->at == AT_SLICE && d->weight && d->live > 1);
        in_lanes = in_lanes || (d->at == AT_LANE && d->weight && d->extent > 1);
        unit = d->at == AT_LANE || (d->at != AT_FLIT && d->live == 1) ? unit : gcd(unit, d->weight);
        step = d->at == AT_FLIT && step && d->weight % step ? 0 : step;
    }
    if (in_lanes && !in_slices && step) {
        *clips = true;
        return add_count(c, (valid_count){.kind = VALID_COUNT_CLIPPER, .span = front, .limit = ceil_div(c->label->size, step)}, weigh_label,
                         &step);
    }
    if (greatest_lane(c) >= unit)
        return refuse_lanes(
            c, in_slices ? "a flit's count depends on the time step, and not on the slice"
                         : "lanes are counted from the front of a flit, so it has to hold the axis's next elements, and nothing else");
    int64_t held = c->label->size; /* that slices hold of the axis, in whole numbers */
    for (size_t i = 0; i < c->count; i++)
        held = c->digits[i].at == AT_SLICE && c->digits[i].live > 1 ? gcd(held, c->digits[i].weight) : held;
    if (reach_of(c, 1u << AT_FLIT) < held) /* it ends with a slice, and after that no result is live */
        return true;
    slices s;
    const char *why = read_slices(c, &s);
    valid_count v = {.kind = VALID_COUNT_CLIPPER};
    int64_t one = 1;
    if (why)
        return refuse_slices(c, why);
    if (!filter_of(c, &s, c->label->size, &v))
        return refuse_slices(
            c, "how many time steps count differs from slice to slice in more than two ways, or grows again after one that is cut off");
    return v.kind == VALID_COUNT_CLIPPER || add_count(c, v, weigh_label, &one);
}

void vector_count_derive(pass_context *p, kernel *k, op *o, const reduced_digits *reduced)
{
    const tensor *in = &op_input(o)->out;
    bool splits = vector_reduce_splits(o), clips = false;
    counting c = {.context = p,
                  .kernel = k,
                  .op = o,
                  .label = o->vector_reduce->label,
                  .reduced = reduced,
                  .splits = splits,
                  .lanes = splits ? p->target->vector_lanes : p->target->vector_narrow_lanes,
                  .last = &o->vector_reduce->counts};
    add_part(&c, in->part[CHIP], AT_UNIT, false);
    add_part(&c, in->part[CLUSTER], AT_UNIT, false);
    add_part(&c, in->part[SLICE], AT_SLICE, false);
    add_time(&c, in->part[TIME], reduced);
    add_part(&c, in->part[PACKET], AT_LANE, reduced->packet);
    find_own(&c);
    int64_t front = live_front(&c);
    if (front < 0) {
        refuse_lanes(&c, "lanes are counted from the front of a flit, and live ones stand after padding");
        return;
    }
    if (!ends_outside(&c) && !cut_end(&c, front, &clips))
        return;
    for (size_t i = 0; i < c.count; i++) {
        const digit *d = &c.digits[i];
        if (d->at == AT_FLIT && d->own && !add_count(&c, (valid_count){.kind = VALID_COUNT_SLICE_MAJOR, .limit = d->live}, weigh_one, d))
            return;
    }
    if (!clips && front < c.lanes)
        add_count(&c, (valid_count){.kind = VALID_COUNT_CLIPPER, .span = front, .limit = front}, weigh_one, NULL);
}
