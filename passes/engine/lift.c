/* Rule ("Fetch Engine", lifts; release 0.7): the placement before a lift and the one after it are compared slot by slot, 2 positions each,
 * outside in. A slot that differs was a broadcast and is a digit of Time now; Time goes on without it. Every unit then reads its own copy
 * from base = the digit's value at the unit x the digit's stride in DM, a multiple of 8 bytes. No data moves. */
#include "passes/engine/lift.h"

#include "ir/mapping/mapping_without.h"

enum { BASE_BITS = 64, SLOT = 2 };

#define REFUSE(...) pass_refuse_at(p, k, o, call->range, E_FETCH_LIFT, __VA_ARGS__)

static bool is_broadcast(pass_context *p, const mapping *slot)
{
    const mapping *twice;
    return mapping_broadcast(p->mappings, SLOT, &twice) == MAPPING_OK && mapping_equal(p->mappings, slot, twice);
}

/* m with a broadcast in that slot; NULL: too large. */
static const mapping *with_broadcast(pass_context *p, const mapping *m, int64_t low)
{
    const mapping *twice, *outer = pass_outer(p, m, low * SLOT), *inner = pass_inner(p, m, low);
    if (!outer || !inner || mapping_broadcast(p->mappings, SLOT, &twice) != MAPPING_OK)
        return NULL;
    return pass_pair(p, pass_pair(p, outer, twice), inner);
}

/* Both of its positions are coordinates of an axis: a digit that has one is no factor of an axis. */
static bool is_digit(const mapping *slot)
{
    return slot->count == 1 && slot->factors[0].kind == FACTOR_AXIS;
}

/* Bits between two values of the digit in a unit's DM; -1: refused. */
static int64_t stride_bits(pass_context *p, kernel *k, op *o, const lift_call *call, const mapping *digit)
{
    const tensor *dm = &op_input(o)->out;
    sequence_space space = {dm->part[ELEMENT], 1};
    sequence seq;
    bool found = sequence_derive_stream(p->mappings, &space, 1, NULL, digit, mapping_identity(p->mappings), SEQUENCE_READ, &seq) &&
                 seq.count == 1 && seq.parts[0].stride > 0; /* 0: the axis is not there */
    if (!found) {
        diag *d =
            REFUSE("`%s` is no digit of what a unit holds: Element is %s", mapping_text(digit, p->arena), pass_text(p, dm->part[ELEMENT]));
        diag_help(p->diags, d, "lift a digit that Element and Time have");
        return -1;
    }
    int64_t bits = seq.parts[0].stride * dtype_row_of(dm->dtype)->bits;
    if (bits % BASE_BITS == 0)
        return bits;
    diag *d = REFUSE("unaligned fetch base: values of `%s` are %lld bits apart in DM, and a unit begins at a multiple of %d bytes",
                     mapping_text(digit, p->arena), (long long)bits, BASE_BITS / 8);
    diag_help(p->diags, d, "let what is inside of it in Element be a multiple of %d bytes", BASE_BITS / 8);
    return -1;
}

/* Takes the slot's digit out of *time. False: refused. */
static bool lift_slot(pass_context *p, kernel *k, op *o, const lift_call *call, const mapping *digit, int64_t low, const mapping **time)
{
    int64_t positions, bits;
    const mapping *rest = mapping_without(p->mappings, *time, digit, &positions);
    if (!rest) {
        diag *d = REFUSE("Time %s has no digit `%s` that could be lifted onto %s", pass_text(p, *time), mapping_text(digit, p->arena),
                         component_word(call->level));
        diag_help(p->diags, d, "name it in the Time of fetch");
        return false;
    }
    bits = stride_bits(p, k, o, call, digit);
    if (bits < 0 || o->lift->count == LIFT_MAX_DIGITS)
        return false;
    *time = rest;
    o->lift->digits[o->lift->count++] = (lift_digit){call->level, digit, low, bits / 8};
    return true;
}

static bool lift_one(pass_context *p, kernel *k, op *o, const lift_call *call)
{
    const mapping *in = call->in, *out = call->out, *time = call->in_time;
    const char *level = component_word(call->level);
    uint32_t before = o->lift->count;
    if (in->size != out->size) {
        diag *d = REFUSE("lift placement size differs: %s is %s, %lld positions, and becomes %s, %lld", level, pass_text(p, in),
                         (long long)in->size, pass_text(p, out), (long long)out->size);
        diag_help(p->diags, d, "name %lld positions", (long long)in->size);
        return false;
    }
    bool cuts = (in->size & (in->size - 1)) == 0;
    for (int64_t low = in->size / SLOT; low >= 1 && cuts; low /= SLOT) {
        const mapping *was = pass_digit(p, in, low, SLOT), *is = pass_digit(p, out, low, SLOT);
        cuts = was && is;
        if (!cuts || mapping_equal(p->mappings, was, is))
            continue;
        if (!is_broadcast(p, was) || !is_digit(is)) {
            diag *d = REFUSE("only an input size-2 broadcast may differ: at %s / %lld %% 2, %s has `%s` and %s has `%s`", level,
                             (long long)low, pass_text(p, in), mapping_text(was, p->arena), pass_text(p, out), mapping_text(is, p->arena));
            const axis *first;
            const mapping *with = mapping_axes(was, &first, 1) ? NULL : with_broadcast(p, in, low);
            if (with)
                diag_help(p->diags, d, "declare %s of the tensor in DM %s: a broadcast where the digit will stand", level,
                          pass_text(p, with));
            else
                diag_help(p->diags, d, "lift onto a broadcast of 2 that the tensor in DM has, or leave what stands there as it is");
            return false;
        }
        if (!lift_slot(p, k, o, call, is, low, &time))
            return false;
    }
    if (!cuts && !mapping_equal(p->mappings, in, out)) {
        diag *d = REFUSE("%s %s and %s do not cut into slots of 2 positions", level, pass_text(p, in), pass_text(p, out));
        diag_help(p->diags, d, "lift onto a placement whose size is a power of 2");
        return false;
    }
    if (o->lift->count == before) {
        diag *d = REFUSE("lift changes no placement axis: %s is %s before and after", level, pass_text(p, in));
        diag_help(p->diags, d, "name a digit of Time where %s has a broadcast, or leave the lift out", level);
        return false;
    }
    if (mapping_equal(p->mappings, time, call->out_time))
        return true;
    diag *d = pass_refuse_at(p, k, o, call->time_range, E_FETCH_LIFT, "OutTime is Time without what is lifted: it must be %s, and is %s",
                             pass_text(p, time), pass_text(p, call->out_time));
    diag_help(p->diags, d, "write %s", pass_text(p, time));
    pass_replace_at(p, o, d, call->time_range.begin != call->range.begin ? call->time_range : SRC_NOWHERE, time);
    return false;
}

bool lift_derive(pass_context *p, kernel *k, op *o)
{
    o->lift->count = 0; /* addresses may have changed: passes run again */
    for (uint32_t i = 0; i < o->lift->call_count; i++)
        if (!lift_one(p, k, o, &o->lift->calls[i]))
            return false;
    return true;
}
