/* Rules. to_vrf: Element is the stream, [Time, Packet], flit after flit; a slice's VRF has 8 KiB.
 *
 * A read ("VrfTensor", read rules of 0.7): Chip, Cluster and Slice are the stream's. Each step of the stream's Time reads once: either one
 * word for all lanes, or as many consecutive words as the packet has lanes; a packet that is partly the one and partly the other is
 * refused. A digit of the stream that the Element does not hold repeats what is there, so Time may walk the Element in any order; an axis
 * of the Element that the stream does not name would leave elements of which nobody says when they are read. Positions that must not be
 * read, `#{!}`, are refused. */
#include "passes/engine/vrf.h"

#include "passes/remedy.h"

/* ---- what is stored ---- */

void vrf_store(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    const mapping *whole = pass_pair(p, in->part[TIME], in->part[PACKET]);
    if (in->dtype != DTYPE_I32 && in->dtype != DTYPE_F32) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_TYPE, "the VRF holds i32 and f32 elements, the stream has %s",
                              dtype_row_of(in->dtype)->name);
        diag_help(p->diags, d, "fetch them as %s", dtype_row_of(in->dtype)->kind == DTYPE_KIND_INT ? "i32" : "f32");
        return;
    }
    if (in->part[PACKET]->size != p->target->vector_lanes) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_FLIT, "to_vrf stores flits of %lld elements, got a packet of %lld from %s",
                        (long long)p->target->vector_lanes, (long long)in->part[PACKET]->size, pass_text(p, in->part[PACKET]));
        diag_help(p->diags, d, "collect gives flits of 8 elements of %s", dtype_row_of(in->dtype)->name);
        return;
    }
    if (!whole || !mapping_equal(p->mappings, whole, o->out.part[ELEMENT])) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_VRF_ELEMENT, "`to_vrf` element mismatch: Element %s is not the stream, %s",
                              pass_text(p, o->out.part[ELEMENT]), whole ? pass_text(p, whole) : "which is too large");
        if (whole) {
            pass_help_part(p, o, d, ELEMENT, whole, "declare the VrfTensor with Element");
        }
        return;
    }
    o->to_vrf = ARENA_NEW(p->arena, to_vrf_config);
    *o->to_vrf = (to_vrf_config){.bytes = tensor_unit_bytes(&o->out)};
}

/* ---- the walk of a read ---- */

/* Digits of the axes that Element names and does not hold: a space of its own, in which no step goes anywhere. NULL: there are none. */
static const mapping *missing_digits(pass_context *p, const mapping *element)
{
    const mapping *all = NULL;
    for (uint32_t i = 0; i < element->count; i++) {
        const factor *f = &element->factors[i];
        bool first = f->kind == FACTOR_AXIS && f->axis->term_count == 0;
        for (uint32_t j = 0; j < i && first; j++)
            first = element->factors[j].kind != FACTOR_AXIS || element->factors[j].axis != f->axis;
        for (int64_t at = 1; first && at < f->axis->size;) {
            int64_t next = f->axis->size, held = 0; /* the next digit that is held, and where one that begins here ends */
            for (uint32_t j = i; j < element->count; j++) {
                const factor *g = &element->factors[j];
                if (g->kind != FACTOR_AXIS || g->axis != f->axis || g->live == 1)
                    continue;
                held = g->weight == at ? larger(held, at * g->live) : held;
                next = g->weight > at ? smaller(next, g->weight) : next;
            }
            if (!held) {
                factor gap = {.kind = FACTOR_AXIS, .axis = f->axis, .weight = at, .live = ceil_div(next, at), .extent = ceil_div(next, at)};
                const mapping *digit = mapping_of_factor(p->mappings, &gap);
                all = all ? pass_pair(p, all, digit) : digit;
            }
            at = held ? held : next;
        }
    }
    return all;
}

/* How the lanes of a packet are read. */
typedef enum lane_walk { LANES_TOGETHER, LANES_CONSECUTIVE, LANES_MIXED } lane_walk;

static lane_walk lanes_of(const sequence *seq)
{
    bool together = true, consecutive = true;
    for (size_t i = 0; i < seq->count; i++) {
        const sequence_part *x = &seq->parts[i];
        if (!x->packet || x->live == 1)
            continue;
        together = together && x->stride == 0;
        consecutive = consecutive && x->stride == x->position;
    }
    return together ? LANES_TOGETHER : consecutive ? LANES_CONSECUTIVE : LANES_MIXED;
}

/* Time alone: the packet is read at once. */
static void drop_packet(sequence *seq)
{
    size_t kept = 0;
    for (size_t i = 0; i < seq->count; i++)
        if (!seq->parts[i].packet)
            seq->parts[kept++] = seq->parts[i];
    seq->count = kept;
}

/* An axis of the Element that the stream does not name; NULL: none. */
static const axis *unmatched(const mapping *element, const mapping *time, const mapping *packet)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(element, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < count; i++)
        if (axes[i]->size > 1 && !mapping_mentions(time, axes[i]) && !mapping_mentions(packet, axes[i]))
            return axes[i];
    return NULL;
}

/* As many copies as the other one has positions: a reshape gives them its names. */
static bool holds_copies(const mapping *m, const mapping *other)
{
    return m->size == other->size && m->count == 1 && m->factors[0].kind == FACTOR_BROADCAST && m->factors[0].live == m->size;
}

/* Is it the stream's unit, and may all of it be read? */
static bool check_operand(pass_context *p, kernel *k, op *o)
{
    const tensor *vrf = &op_vrf(o)->out, *in = &op_input(o)->out;
    for (component c = CHIP; c <= SLICE; c++) {
        if (mapping_equal(p->mappings, vrf->part[c], in->part[c]))
            continue;
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VRF_UNITS, "%s of the VrfTensor is %s, that of the stream %s",
                              component_parameter(c), pass_text(p, vrf->part[c]), pass_text(p, in->part[c]));
        diag_note(p->diags, d, op_vrf(o)->range, "stored here");
        diag_help(p->diags, d,
                  holds_copies(vrf->part[c], in->part[c]) ? "name its copies: reshape it to %s %s"
                                                          : "store it with %s %s: each slice reads its own",
                  component_parameter(c), pass_text(p, in->part[c]));
        return false;
    }
    if (mapping_has_gap(vrf->part[ELEMENT])) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VRF_WALK, "Element %s has positions that must not be read, `#{!}`",
                              pass_text(p, vrf->part[ELEMENT]));
        diag_help(p->diags, d, "pad with `#`");
        return false;
    }
    const axis *a = unmatched(vrf->part[ELEMENT], in->part[TIME], in->part[PACKET]);
    if (!a)
        return true;
    diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VRF_WALK, "the stream leaves operand axes unmatched: %s of Element %s", a->name,
                          pass_text(p, vrf->part[ELEMENT]));
    diag_help(p->diags, d, "name %s in Time, or store a VrfTensor without it", a->name);
    return false;
}

void vrf_read(pass_context *p, kernel *k, op *o)
{
    const tensor *vrf = &op_vrf(o)->out, *in = &op_input(o)->out;
    const mapping *element = vrf->part[ELEMENT], *time = in->part[TIME], *packet = in->part[PACKET];
    if (!check_operand(p, k, o))
        return;
    sequence_space spaces[2] = {{element, 1}, {missing_digits(p, element), 0}};
    sequence seq;
    if (!sequence_derive_stream(p->mappings, spaces, spaces[1].mapping ? 2 : 1, NULL, time, packet, SEQUENCE_READ, &seq)) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, sequence_id(&seq), "the stream does not walk the VrfTensor: %s",
                              sequence_reason(p, &seq));
        sequence_explain(p, d, &seq, element, time, packet, NULL);
        return;
    }
    lane_walk lanes = lanes_of(&seq);
    if (lanes == LANES_MIXED) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VRF_WALK,
                              "Element %s cannot feed the %lld-element packet %s: its lanes are neither one element nor consecutive ones",
                              pass_text(p, element), (long long)packet->size, pass_text(p, packet));
        diag_note(p->diags, d, op_vrf(o)->range, "stored here");
        diag_help(p->diags, d, "store it with %s innermost, or without an axis of the packet", pass_text(p, packet));
        return;
    }
    drop_packet(&seq);
    int64_t lowest, highest, word = dtype_row_of(vrf->dtype)->bits / 8, read = lanes == LANES_CONSECUTIVE ? packet->size : 1;
    if (!sequence_fit(p->mappings, &seq, sequencer_limits(p->target, word))) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, sequence_id(&seq), "the stream does not walk the VrfTensor: %s",
                              sequence_reason(p, &seq));
        sequence_explain(p, d, &seq, element, time, packet, NULL);
        return;
    }
    sequence_reach(&seq, &lowest, &highest);
    int64_t end = vrf->address + (highest + read) * word;
    if (end > p->target->vrf_bytes) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_CAPACITY, "the walk ends at byte %lld of the slice's VRF, which has %lld bytes",
                        (long long)end, (long long)p->target->vrf_bytes);
        diag_help(p->diags, d, "place the tensor lower, or pad Time and Packet of the stream less");
        return;
    }
    o->sequencer = ARENA_NEW(p->arena, sequencer_config);
    *o->sequencer = (sequencer_config){
        .walk = WALK_VRF_READ, .base = vrf->address, .packet = read, .access_bytes = read * word, .contiguous_bytes = read * word};
    sequencer_config_fill(o->sequencer, &seq, word);
}

void vrf_rebase(pass_context *p, kernel *k)
{
    (void)p;
    for (size_t i = 0; i < k->op_count; i++)
        if (op_vrf(k->ops[i]) && k->ops[i]->sequencer)
            k->ops[i]->sequencer->base = op_vrf(k->ops[i])->out.address;
}
