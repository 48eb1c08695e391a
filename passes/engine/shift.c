/* Rule ("Stream Adapter", Advanced Operations). The innermost 1, 2 or 3 flits of Time are collected, each perhaps transposed, and
 * lane i of a packet is their element i + offset. So what is left of Time is the outer part of OutTime; the digits of OutPacket are
 * as far apart in the collected elements as in the lanes; one loop of OutTime's inner rest may shift (its stride in the collected
 * elements is shift_stride), and loops inside it that read nothing from the flits repeat the packet. All of it is the sequencer's
 * derivation with the collected elements as the buffer: a sliding window there offers the digits of its terms. */
#include "passes/engine/shift.h"

enum { MOST_ROWS = 4 /* of a transposed flit; which there are is a row of target/dtype.def */, MOST_AXES = 32, MOST_DIGITS = 32 };

static bool mentions(const tensor *t, const axis *a)
{
    return mapping_mentions(t->part[TIME], a) || mapping_mentions(t->part[PACKET], a);
}

/* A window that the computation names by its terms. */
static bool is_open_window(const op *o, const axis *a)
{
    return a && a->term_count > 0 && !mentions(&o->out, a);
}

static bool has_open_window(const op *o, const mapping *part)
{
    const axis *axes[MOST_AXES];
    uint32_t count = mapping_axes(part, axes, MOST_AXES);
    for (uint32_t i = 0; i < count && i < MOST_AXES; i++)
        if (is_open_window(o, axes[i]))
            return true;
    return false;
}

/* The collected digits, innermost first, and how many elements apart their values are. A padded group is its digits. */
typedef struct digit_list {
    const factor *factors[MOST_DIGITS];
    int64_t strides[MOST_DIGITS];
    size_t count;
} digit_list;

static bool list_digits(const mapping *m, int64_t stride, digit_list *out)
{
    for (size_t i = m->count; i-- > 0; stride *= m->factors[i].extent) {
        const factor *f = &m->factors[i];
        if (f->kind == FACTOR_COMPOSITE) {
            if (f->weight != 1 || f->live != f->inner->size || !list_digits(f->inner, stride, out))
                return false;
            continue;
        }
        if (out->count == MOST_DIGITS)
            return false;
        out->factors[out->count] = f;
        out->strides[out->count++] = stride;
    }
    return true;
}

bool shift_is_asked(const op *o)
{
    return has_open_window(o, op_input(o)->out.part[TIME]) || has_open_window(o, op_input(o)->out.part[PACKET]);
}

static bool fail(shift_plan *plan, shift_failure failure, const mapping *term)
{
    plan->failure = failure;
    plan->term = term;
    return false;
}

/* [rows][columns] to [columns][rows]; NULL when the flit does not cut there. */
static const mapping *transposed(pass_context *p, const mapping *flit, int64_t rows)
{
    if (rows == 1)
        return flit;
    const mapping *outer = pass_outer(p, flit, flit->size / rows), *inner = pass_inner(p, flit, flit->size / rows);
    bool cut = outer && inner && mapping_equal(p->mappings, pass_pair(p, outer, inner), flit);
    return cut ? pass_pair(p, inner, outer) : NULL;
}

/* Does the computation ask for every digit of the collected elements? A window that it opens is checked by the derivation. */
static bool all_used(pass_context *p, const op *o, shift_plan *plan, const digit_list *digits, const mapping *computation)
{
    const mapping *asked = mapping_gather(p->mappings, &computation, 1);
    for (size_t i = 0; i < digits->count; i++) {
        const factor *f = digits->factors[i];
        sequence seq;
        if (f->live == 1 || is_open_window(o, f->axis))
            continue;
        const mapping *term = mapping_of_factor(p->mappings, f);
        if (!asked || !sequence_derive(p->mappings, asked, term, mapping_identity(p->mappings), SEQUENCE_COPY, &seq))
            return fail(plan, SHIFT_UNUSED, term);
        for (size_t k = 0; k < seq.count; k++)
            if (seq.parts[k].live > 1 && seq.parts[k].stride == 0)
                return fail(plan, SHIFT_UNUSED, term);
    }
    return true;
}

static bool lanes_fit(shift_plan *plan, const sequence *seq)
{
    for (size_t i = 0; i < seq->count; i++) {
        const sequence_part *part = &seq->parts[i];
        if (part->segment == 1 && part->live > 1 && part->stride != part->position) {
            plan->stride = part->stride;
            plan->wanted = part->position;
            return fail(plan, SHIFT_LANE, part->term);
        }
    }
    return true;
}

/* The loops of OutTime inside the pops, from the innermost one on: those that repeat, as `repeats` that are not in the walk do, then those
 * that shift as one. */
static bool loops_fit(shift_plan *plan, const sequence *seq, int64_t repeats)
{
    size_t i = seq->count;
    while (i > 0 && seq->parts[i - 1].segment == 1)
        i--;
    plan->tiling = repeats;
    plan->shift.shifts = 1;
    for (; i > 0 && seq->parts[i - 1].stride == 0; i--)
        plan->tiling *= seq->parts[i - 1].size;
    if (i > 0)
        plan->shift.shift_stride = seq->parts[i - 1].stride;
    int64_t next = plan->shift.shift_stride; /* elements: where the loop so far would go on */
    for (; i > 0 && seq->parts[i - 1].stride == next; i--) {
        plan->shift.shifts *= seq->parts[i - 1].size;
        if (__builtin_mul_overflow(plan->shift.shifts, plan->shift.shift_stride, &next))
            next = INT64_MAX;
    }
    if (i == 0)
        return true;
    plan->stride = seq->parts[i - 1].stride;
    return fail(plan, plan->stride ? SHIFT_LOOPS : SHIFT_TILING, seq->parts[i - 1].term);
}

/* Elements of the collected ones from which on there are zeros: the flits' end, or that of the packet that Collect padded. */
static int64_t zeros_from(const op *o, const shift_plan *plan)
{
    const op *collect = op_input(o);
    bool one_packet = collect->kind == IR_COLLECT && collect->collect && collect->collect->flits_per_packet == plan->collect_flits;
    return one_packet && plan->transpose_rows == 1 ? op_input(collect)->out.part[PACKET]->size : plan->collected->size;
}

/* A window with places that are not held: the packet begins before the flits, or ends after them, where there are zeros. */
static bool border_fits(pass_context *p, const op *o, shift_plan *plan, const digit_list *digits)
{
    int64_t least = elements_of(o->out.dtype, p->target->initial_shift_bytes) - 1;
    for (size_t i = 0; i < digits->count; i++) {
        const axis *a = digits->factors[i]->axis;
        int64_t stride = digits->strides[i];
        if (!is_open_window(o, a) || !a->bordered)
            continue;
        int64_t end = -a->first + 1; /* one after the last place that is asked for */
        for (uint32_t k = 0; k < a->term_count; k++)
            end += (a->terms[k].extent - 1) * a->terms[k].stride;
        for (size_t outer = i + 1; outer < digits->count; outer++)
            if (digits->factors[outer]->live > 1)
                return fail(plan, SHIFT_BORDER, mapping_symbol(p->mappings, a));
        if (end > a->size && a->size * stride < zeros_from(o, plan))
            return fail(plan, SHIFT_BORDER, mapping_symbol(p->mappings, a));
        plan->stride = stride;
        plan->wanted = a->first;
        if (a->first > least / stride)
            return fail(plan, SHIFT_START, mapping_symbol(p->mappings, a));
        plan->shift.initial_shift = -a->first * stride;
    }
    return true;
}

/* What is collected, and what is left of Time. The flits that Collect made of one packet are that packet, padded: a group that does not
 * cut into flits is whole again. */
static bool collect_flits(pass_context *p, const op *o, shift_plan *plan)
{
    const op *collect = op_input(o);
    const mapping *time = op_input(o)->out.part[TIME], *flit = transposed(p, op_input(o)->out.part[PACKET], plan->transpose_rows);
    int64_t flits = plan->collect_flits;
    if (plan->transpose_rows == 1 && collect->kind == IR_COLLECT && collect->collect && collect->collect->flits_per_packet == flits) {
        plan->collected = pass_pad(p, op_input(collect)->out.part[PACKET], flits * flit->size);
        plan->rest = op_input(collect)->out.part[TIME];
        return plan->collected != NULL;
    }
    const mapping *inner = time->size % flits == 0 ? pass_inner(p, time, flits) : NULL;
    plan->collected = flit && inner ? pass_pair(p, inner, flit) : NULL;
    plan->rest = inner ? pass_outer(p, time, flits) : NULL;
    return plan->collected && mapping_equal(p->mappings, pass_pair(p, plan->rest, inner), time);
}

/* How often the steps' innermost digits repeat a packet for other weights, where slices have other digits of their axes: they are the
 * TRF's, and none of the flits'. Of other axes, and beside a window, whose terms the steps may be, the walk finds it. */
static int64_t repeats_of(pass_context *p, const op *o, const mapping *steps, const mapping *collected)
{
    const mapping *beside = pass_beside(p, &op_input(o)->out), *element = op_weights(o)->out.part[ELEMENT];
    int64_t repeats = 1;
    for (size_t i = steps->count; i-- > 0 && !has_open_window(o, collected); repeats *= steps->factors[i].extent) {
        const axis *a = steps->factors[i].axis;
        if (!a || !mapping_mentions(beside, a) || !mapping_mentions(element, a) ||
            pass_shared_digit(mapping_of_factor(p->mappings, &steps->factors[i]), collected))
            break;
    }
    return repeats;
}

/* With these flits, turned or not. */
static bool attempt(pass_context *p, const op *o, int64_t flits, int64_t rows, shift_plan *plan)
{
    const mapping *out_time = o->out.part[TIME];
    const mapping *packet = mapping_strip_padding(p->mappings, o->out.part[PACKET]); /* lanes after it do not count */
    *plan = (shift_plan){.collect_flits = flits, .transpose_rows = rows};
    if (!collect_flits(p, o, plan) || has_open_window(o, plan->rest))
        return fail(plan, SHIFT_FLITS, NULL);
    int64_t each = out_time->size % plan->rest->size ? 0 : out_time->size / plan->rest->size;
    if (each == 0 || !mapping_equal(p->mappings, pass_outer(p, out_time, each), plan->rest))
        return fail(plan, SHIFT_TIME, NULL);
    const mapping *steps = pass_inner(p, out_time, each), *beside = pass_pair(p, pass_beside(p, &op_input(o)->out), plan->rest);
    int64_t repeats = repeats_of(p, o, steps, plan->collected);
    sequence_space buffer = {plan->collected, 1}, stream[] = {{pass_outer(p, steps, repeats), 0}, {packet, 0}};
    if (!beside || !sequence_derive_spaces(p->mappings, &buffer, 1, beside, stream, 2, SEQUENCE_READ | SEQUENCE_BORDERS, &plan->seq))
        return fail(plan, SHIFT_DIGIT, plan->seq.term);
    const mapping *computation = pass_pair(p, steps, packet);
    digit_list digits = {.count = 0};
    if (!list_digits(plan->collected, 1, &digits))
        return fail(plan, SHIFT_FLITS, NULL);
    if (!computation || !all_used(p, o, plan, &digits, computation) || !lanes_fit(plan, &plan->seq) ||
        !loops_fit(plan, &plan->seq, repeats))
        return false;
    plan->shift.term = pass_outer(p, steps, plan->tiling);
    if (plan->shift.shift_stride >= elements_of(o->out.dtype, p->target->shift_stride_bytes))
        return fail(plan, SHIFT_STRIDE, plan->shift.term);
    if (!border_fits(p, o, plan, &digits))
        return false;
    plan->failure = SHIFT_FITS;
    return true;
}

bool shift_derive(pass_context *p, const op *o, shift_plan *plan)
{
    int64_t most = p->target->flit_buffer_bytes / p->target->flit_bytes;
    unsigned shapes = dtype_row_of(o->out.dtype)->transpose_rows | 1;
    *plan = (shift_plan){.failure = SHIFT_FLITS};
    for (int64_t rows = 1; rows <= MOST_ROWS; rows *= 2)
        for (int64_t flits = 1; flits <= most && shapes & rows; flits++) {
            shift_plan next;
            if (attempt(p, o, flits, rows, &next)) {
                *plan = next;
                return true;
            }
            if (next.failure > plan->failure)
                *plan = next;
        }
    return false;
}

/* ---- why not ---- */

static const char *flits_text(pass_context *p, const shift_plan *plan)
{
    const char *turned =
        plan->transpose_rows > 1 ? arena_printf(p->arena, ", transposed from %s", arena_count(p->arena, plan->transpose_rows, "row")) : "";
    return arena_printf(p->arena, "the flit%s %s%s", plan->collect_flits == 1 ? "" : "s", pass_text(p, plan->collected), turned);
}

static void refuse_flits(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    diag *d = pass_refuse(p, k, o, TIME, E_SHIFT_FLITS, "OutTime %s and OutPacket %s read no 1, 2 or 3 flits of Time %s, Packet %s",
                          pass_text(p, o->out.part[TIME]), pass_text(p, o->out.part[PACKET]), pass_text(p, in->part[TIME]),
                          pass_text(p, in->part[PACKET]));
    diag_help(
        p->diags, d,
        "let the window be the innermost part of Time and Packet, in at most %lld bytes, and the rest of Time the outer part of OutTime",
        (long long)p->target->flit_buffer_bytes);
}

static void refuse_range(pass_context *p, kernel *k, op *o, const shift_plan *plan)
{
    long long most = elements_of(o->out.dtype, p->target->shift_stride_bytes) - 1;
    diag *d = pass_refuse(p, k, o, TIME, E_SHIFT_STRIDE, "`%s` shifts the packet by %s of %s a step; shift_stride is at most %lld",
                          mapping_text(plan->term, p->arena), arena_count(p->arena, plan->shift.shift_stride, "element"),
                          dtype_row_of(o->out.dtype)->name, most);
    diag_help(p->diags, d, "keep the inner digits of the window's axis, up to %s apart, innermost in the flits",
              arena_count(p->arena, most, "element"));
}

static void refuse_start(pass_context *p, kernel *k, op *o, const shift_plan *plan)
{
    long long most = elements_of(o->out.dtype, p->target->initial_shift_bytes);
    diag *d =
        pass_refuse(p, k, o, TIME, E_SHIFT_START, "`%s` begins %s of %lld %s elements before the flits; initial_shift is %lld to %lld",
                    mapping_text(plan->term, p->arena), arena_count(p->arena, plan->wanted, "place"), (long long)plan->stride,
                    dtype_row_of(o->out.dtype)->name, 1 - most, most);
    diag_help(p->diags, d, "hold more of the border as zeros in memory, or stream the axes inside the window in Time");
}

void shift_refuse(pass_context *p, kernel *k, op *o, const shift_plan *plan)
{
    const char *flits = plan->collected ? flits_text(p, plan) : "", *term = plan->term ? mapping_text(plan->term, p->arena) : "";
    diag *d;
    switch (plan->failure) {
    case SHIFT_TIME:
        d = pass_refuse(p, k, o, TIME, E_ALIGN_TIME,
                        "`@align`: Time does not divide OutTime: %s of Time, outside %s, is not the outer part of OutTime %s",
                        pass_text(p, plan->rest), flits, pass_text(p, o->out.part[TIME]));
        diag_help(p->diags, d, "OutTime is %s, then what shifts, then what repeats", pass_text(p, plan->rest));
        break;
    case SHIFT_DIGIT:
        d = pass_refuse(p, k, o, PACKET, E_SHIFT_DIGIT, "OutTime and OutPacket cannot read %s: %s", flits, sequence_reason(p, &plan->seq));
        diag_help(p->diags, d, "name every term of the window in OutTime or OutPacket, and what is left of Time, %s, outside them",
                  pass_text(p, plan->rest));
        break;
    case SHIFT_UNUSED:
        d = pass_refuse(p, k, o, PACKET, E_SHIFT_DIGIT, "neither OutTime nor OutPacket asks for `%s`, which is in %s", term, flits);
        diag_help(p->diags, d, "name it in OutPacket, or stream it outside the window");
        break;
    case SHIFT_LANE:
        d = pass_refuse(p, k, o, PACKET, E_SHIFT_LANE, "neighbours of `%s` are %s apart in OutPacket %s and %s in %s", term,
                        arena_count(p->arena, plan->wanted, "lane"), pass_text(p, o->out.part[PACKET]),
                        arena_count(p->arena, plan->stride, "element"), flits);
        if (plan->stride > plan->wanted && plan->stride % plan->wanted == 0)
            diag_help(p->diags, d, "put `1 # %lld` inside `%s` in OutPacket: the lanes between its neighbours then do not count",
                      (long long)(plan->stride / plan->wanted), term);
        else
            diag_help(p->diags, d, "fetch the flits in OutPacket's order");
        break;
    case SHIFT_LOOPS:
        d = pass_refuse(p, k, o, TIME, E_SHIFT_LOOPS,
                        "`%s` would shift the packet by %s of %s, as do the loops inside it, which shift it by %lld", term,
                        arena_count(p->arena, plan->stride, "element"), flits, (long long)plan->shift.shift_stride);
        diag_help(p->diags, d, "keep one of the two axes in OutPacket, or fetch `%s` in Time", term);
        break;
    case SHIFT_TILING:
        d = pass_refuse(p, k, o, TIME, E_ALIGN_TILING, "tiling axes must be innermost in OutTime: `%s` stands outside what shifts", term);
        diag_help(p->diags, d, "from the outside in: what is left of Time, what shifts, what repeats");
        break;
    case SHIFT_STRIDE: refuse_range(p, k, o, plan); break;
    case SHIFT_BORDER:
        d = pass_refuse(p, k, o, TIME, E_SHIFT_BORDER,
                        "the window `%s` holds a part of its places, and next to it in %s there are no zeros", term, flits);
        diag_help(p->diags, d, "let the packet that fetch sends begin and end with `%s`; collect pads it with zeros", term);
        break;
    case SHIFT_START: refuse_start(p, k, o, plan); break;
    default: refuse_flits(p, k, o);
    }
}
