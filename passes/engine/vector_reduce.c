/* Rules ("Intra-Slice Reduce"): all digits of the label in Time and Packet are reduced over; OutTime is Time without them, in Time's order.
 * A digit of padding alone may go with them. Where Packet has the label its lanes become one, and OutPacket is `1 # 4`; else Packet stays.
 * Partial results inside the outermost reduced digit are live at once: their padded number is at most 8. */
#include "passes/engine/vector_reduce.h"

#include "passes/engine/accumulate.h"

static bool is_label(const factor *f, const axis *label)
{
    return f->kind == FACTOR_AXIS && f->axis == label;
}

/* Does the factor name the label in another way: inside a group, or as a window's term? */
static bool hides_label(const factor *f, const axis *label)
{
    if (f->kind == FACTOR_COMPOSITE)
        return mapping_mentions(f->inner, label);
    for (uint32_t i = 0; f->kind == FACTOR_AXIS && i < f->axis->term_count; i++)
        if (f->axis->terms[i].of == label)
            return true;
    return false;
}

static bool is_hole(const factor *f)
{
    return f->kind == FACTOR_BROADCAST && f->live == 1;
}

/* All of Time but the label's digits. */
static reduced_digits without_label(const mapping *time, const axis *label)
{
    reduced_digits r = {.packet = false};
    for (uint32_t i = 0; i < time->count; i++)
        r.kept[i] = is_label(&time->factors[i], label) ? 1 : time->factors[i].extent;
    return r;
}

/* What stays of Time, or what goes. */
static const mapping *part_of(pass_context *p, const mapping *time, const reduced_digits *r, bool kept)
{
    const mapping *out = mapping_identity(p->mappings);
    for (uint32_t i = 0; i < time->count; i++) {
        factor f = time->factors[i];
        if (kept ? r->kept[i] > 1 : r->kept[i] == 1)
            f.extent = kept ? r->kept[i] : f.extent;
        else if (!kept && r->kept[i] < f.extent)
            f = (factor){.kind = FACTOR_BROADCAST, .live = 1, .extent = f.extent / r->kept[i]};
        else
            continue;
        out = pass_pair(p, out, mapping_of_factor(p->mappings, &f));
    }
    return out;
}

/* To the next way in which padding outside of live values stays in part; false: there is none. */
static bool keep_otherwise(const mapping *time, const axis *label, reduced_digits *r)
{
    for (uint32_t i = time->count; i-- > 0;) {
        const factor *f = &time->factors[i];
        if (f->live == f->extent || is_label(f, label))
            continue;
        do
            r->kept[i]--;
        while (r->kept[i] >= f->live && f->extent % r->kept[i]);
        if (r->kept[i] >= f->live)
            return true;
        r->kept[i] = f->extent;
    }
    return false;
}

/* What of Time OutTime does not have: the label's digits, and as much of padding alone as is missing. False: it is something else. */
static bool find_reduced(pass_context *p, const op *o, const mapping *wanted, reduced_digits *r)
{
    enum { MOST_WAYS = 4096 };
    const mapping *time = op_input(o)->out.part[TIME];
    *r = without_label(time, o->vector_reduce->label);
    for (int way = 0; way < MOST_WAYS; way++) {
        if (mapping_equal(p->mappings, part_of(p, time, r, true), wanted))
            return true;
        if (!keep_otherwise(time, o->vector_reduce->label, r))
            break;
    }
    return false;
}

/* ---- refusals, in the order in which the reference makes them ---- */

/* Live values of the axis's digits; 0: more than 2^62. */
static int64_t values_of(const mapping *m, const axis *a)
{
    int64_t values = 1;
    for (uint32_t i = 0; i < m->count; i++)
        if (is_label(&m->factors[i], a) && __builtin_mul_overflow(values, m->factors[i].live, &values))
            return 0;
    return values;
}

static const char *missing_axis(const mapping *in, const mapping *out, const axis *label)
{
    for (uint32_t i = 0; i < in->count; i++) {
        const factor *f = &in->factors[i];
        if (f->kind == FACTOR_AXIS && f->axis != label && values_of(out, f->axis) < values_of(in, f->axis))
            return f->axis->name;
    }
    return NULL;
}

static void refuse_shape(pass_context *p, kernel *k, op *o, const mapping *time, const mapping *packet)
{
    const tensor *in = &op_input(o)->out, *out = &o->out;
    const axis *label = o->vector_reduce->label;
    const mapping *before = pass_pair(p, in->part[TIME], in->part[PACKET]), *after = pass_pair(p, out->part[TIME], out->part[PACKET]);
    const char *missing = missing_axis(before, after, label);
    sequence seq;
    bool divides = sequence_derive(p->mappings, before, out->part[TIME], out->part[PACKET], SEQUENCE_READ, &seq), packet_fits;
    for (size_t i = 0; divides && i < seq.count; i++)
        divides = seq.parts[i].stride != 0 || seq.parts[i].live == 1;
    packet_fits = mapping_equal(p->mappings, packet, out->part[PACKET]);
    diag *d;
    if (!divides)
        d = pass_refuse(
            p, k, o, packet_fits ? TIME : PACKET, E_VECTOR_REDUCE,
            "[Intra-slice reduce] divide failed: output shape must divide input shape: OutTime %s, OutPacket %s of Time %s, Packet %s",
            pass_text(p, out->part[TIME]), pass_text(p, out->part[PACKET]), pass_text(p, in->part[TIME]), pass_text(p, in->part[PACKET]));
    else if (missing)
        d = pass_refuse(
            p, k, o, packet_fits ? TIME : PACKET, E_VECTOR_REDUCE,
            "IntraSliceReduce: all reduced axes must match the specified reduce_label %s, got %s, which OutTime and OutPacket lack",
            label->name, missing);
    else if (mapping_mentions(after, label))
        d = pass_refuse(p, k, o, mapping_mentions(out->part[TIME], label) ? TIME : PACKET, E_VECTOR_REDUCE,
                        "IntraSliceReduce: all the reduce axes should be fully reduced, and %s is in OutTime %s, OutPacket %s", label->name,
                        pass_text(p, out->part[TIME]), pass_text(p, out->part[PACKET]));
    else if (!packet_fits)
        d = pass_refuse(
            p, k, o, PACKET, E_VECTOR_REDUCE,
            "IntraSliceReduce: Packet should be either preserved or reduced to 4 (for partial reduction), got Packet %s -> OutPacket %s",
            pass_text(p, in->part[PACKET]), pass_text(p, out->part[PACKET]));
    else
        d = pass_refuse(
            p, k, o, TIME, E_VECTOR_REDUCE,
            "[Intra-slice reduce] divide failed: output shape must divide input shape: OutTime %s is no part of Time %s in its order",
            pass_text(p, out->part[TIME]), pass_text(p, in->part[TIME]));
    pass_help_out(p, o, d, "write", time, packet);
}

/* A misspelt label, mostly: where Time and Packet are inferred nothing else would say so. */
static void warn_of_absent(pass_context *p, const op *o)
{
    const tensor *in = &op_input(o)->out;
    const axis *label = o->vector_reduce->label, *axes[REDUCED_MOST_FACTORS];
    if (label->size == 1 || mapping_mentions(in->part[TIME], label) || mapping_mentions(in->part[PACKET], label))
        return;
    diag *d = diag_add(p->diags, W_VECTOR_REDUCE, o->range, "nothing is reduced: neither Time %s nor Packet %s has the axis %s",
                       pass_text(p, in->part[TIME]), pass_text(p, in->part[PACKET]), label->name);
    bool in_packet = mapping_axes(in->part[PACKET], axes, REDUCED_MOST_FACTORS) > 0;
    if (in->part[SLICE] && mapping_mentions(in->part[SLICE], label))
        diag_help(p->diags, d, "an axis in Slice is reduced by vector_inter_slice_reduce");
    else if (in_packet || mapping_axes(in->part[TIME], axes, REDUCED_MOST_FACTORS) > 0)
        diag_help(p->diags, d, "name an axis that is there: %s", axes[0]->name);
    else
        diag_help(p->diags, d, "leave the reduction out");
}

static bool label_is_plain(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    const component parts[] = {TIME, PACKET};
    for (size_t c = 0; c < 2; c++)
        for (uint32_t i = 0; i < in->part[parts[c]]->count; i++) {
            const factor *f = &in->part[parts[c]]->factors[i];
            if (!hides_label(f, o->vector_reduce->label))
                continue;
            diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_REDUCE, "%s is reduced, and `%s` of %s is no digit of it alone",
                                  o->vector_reduce->label->name, mapping_text(mapping_of_factor(p->mappings, f), p->arena),
                                  component_parameter(parts[c]));
            diag_help(p->diags, d, "pad the axes one by one, so that the stream has digits of %s", o->vector_reduce->label->name);
            return false;
        }
    return true;
}

/* ---- packets ---- */

/* What OutPacket has to be; NULL: lanes of another axis would be reduced as well. */
static const mapping *packet_after(pass_context *p, const op *o)
{
    const mapping *packet = op_input(o)->out.part[PACKET];
    return mapping_mentions(packet, o->vector_reduce->label) ? pass_pad(p, mapping_identity(p->mappings), p->target->vector_narrow_lanes)
                                                             : packet;
}

static bool packet_is_whole(pass_context *p, kernel *k, op *o)
{
    const mapping *packet = op_input(o)->out.part[PACKET];
    const axis *label = o->vector_reduce->label;
    for (uint32_t i = 0; mapping_mentions(packet, label) && i < packet->count; i++) {
        const factor *f = &packet->factors[i];
        if (is_label(f, label) || is_hole(f))
            continue;
        diag *d = pass_refuse(p, k, o, PACKET, E_VECTOR_REDUCE,
                              "IntraSliceReduce: all reduced axes must match the specified reduce_label %s, and Packet %s has `%s` as well",
                              label->name, pass_text(p, packet), mapping_text(mapping_of_factor(p->mappings, f), p->arena));
        diag_help(p->diags, d, "a packet is reduced to one element, or lane by lane: let it hold digits of %s only, or none", label->name);
        return false;
    }
    return true;
}

/* ---- loops and slots ---- */

bool vector_reduce_splits(const op *o)
{
    const op *narrow = op_input(o);
    while (narrow->kind != IR_VECTOR_WIDTH)
        narrow = op_input(narrow);
    return narrow->vector_width->kind == VECTOR_SPLIT;
}

/* A split leaves the halves of a flit innermost: then packets of 4 are collected, and trimmed. */
static void help_with_slots(pass_context *p, op *o, const reduced_digits *r, diag *d)
{
    const mapping *time = op_input(o)->out.part[TIME], *flit = NULL;
    const char *label = o->vector_reduce->label->name;
    const char *text = pass_text(p, pass_pair(p, part_of(p, time, r, true), part_of(p, time, r, false)));
    if (vector_reduce_splits(o) &&
        mapping_pad(p->mappings, op_input(o)->out.part[PACKET], p->target->vector_lanes, PAD_TOP, &flit) == MAPPING_OK)
        diag_help(p->diags, d, "collect Time %s and Packet %s, and trim: with %s innermost one result is open at a time", text,
                  pass_text(p, flit), label);
    else
        diag_help(p->diags, d, "collect Time %s: with %s innermost one result is open at a time", text, label);
}

static bool make_loops(pass_context *p, kernel *k, op *o, const reduced_digits *r)
{
    const mapping *time = op_input(o)->out.part[TIME];
    vector_reduce_config *c = o->vector_reduce;
    int64_t most = p->target->vector_reduce_slots;
    for (uint32_t i = 0; i < time->count; i++)
        if (!slot_loops_add(c->loops, &c->count, time->factors[i].extent / r->kept[i], true) ||
            !slot_loops_add(c->loops, &c->count, r->kept[i], false)) {
            diag *d = pass_refuse(p, k, o, TIME, E_VECTOR_REDUCE, "kept and reduced digits of Time alternate more than %d times",
                                  ACCUMULATE_MAX_LOOPS);
            diag_help(p->diags, d, "collect the digits of %s side by side", c->label->name);
            return false;
        }
    if (c->count == 0)
        c->loops[c->count++] = (accumulate_loop){.size = 1};
    c->slots = slot_loops_number(c->loops, c->count);
    if (c->slots <= most)
        return true;
    diag *d = pass_refuse(p, k, o, TIME, E_VECTOR_REDUCE, "IntraSliceReduce: %lld accumulator slots required, but only %lld are available",
                          (long long)c->slots, (long long)most);
    diag_note(p->diags, d, SRC_NOWHERE, "that many results are kept inside the outermost digit of %s in Time %s, padding included",
              c->label->name, pass_text(p, time));
    help_with_slots(p, o, r, d);
    return false;
}

void vector_reduce_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    vector_reduce_config *c = o->vector_reduce;
    reduced_digits r;
    if (in->part[TIME]->count > REDUCED_MOST_FACTORS) {
        diag *d = pass_refuse(p, k, o, TIME, E_VECTOR_REDUCE, "Time %s has %u digits, %d at most are reduced", pass_text(p, in->part[TIME]),
                              in->part[TIME]->count, REDUCED_MOST_FACTORS);
        diag_help(p->diags, d, "collect a Time of fewer digits");
        return;
    }
    if (!label_is_plain(p, k, o))
        return;
    warn_of_absent(p, o);
    r = without_label(in->part[TIME], c->label);
    const mapping *time = part_of(p, in->part[TIME], &r, true), *packet = packet_after(p, o);
    if (!o->out.part[TIME])
        o->out.part[TIME] = time;
    if (!o->out.part[PACKET])
        o->out.part[PACKET] = packet;
    if (!find_reduced(p, o, o->out.part[TIME], &r) || !mapping_equal(p->mappings, o->out.part[PACKET], packet)) {
        refuse_shape(p, k, o, time, packet);
        return;
    }
    c->tree = mapping_mentions(in->part[PACKET], c->label);
    if (!packet_is_whole(p, k, o) || !make_loops(p, k, o, &r))
        return;
    r.packet = c->tree;
    vector_count_derive(p, k, o, &r);
}
