/* Rules ("Vector Engine"): a pass takes flits of 8 elements of i32 or f32. Its float units and the reduction work on 4 lanes: a packet is
 * split into two, its front half first, or trimmed where its back half is padding; concat and pad are the way back. Each unit does one
 * operation of a pass. The order of the stages is that of their types (target/engine/vector.def). */
#include "passes/engine/vector_reduce.h"

static void init_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    if (!o->out.part[TIME])
        o->out.part[TIME] = in->part[TIME];
    if (!o->out.part[PACKET])
        o->out.part[PACKET] = in->part[PACKET];
    if (in->dtype != DTYPE_I32 && in->dtype != DTYPE_F32) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_TYPE, "the Vector Engine takes i32 and f32 elements, the stream has %s",
                              dtype_row_of(in->dtype)->name);
        diag_help(p->diags, d, "fetch them as %s", dtype_row_of(in->dtype)->kind == DTYPE_KIND_INT ? "i32" : "f32");
    } else if (in->part[PACKET]->size != p->target->vector_lanes) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_FLIT,
                              "VectorTensor requires Packet of 8 elements (one flit) in Way8 mode, got %lld from %s",
                              (long long)in->part[PACKET]->size, pass_text(p, in->part[PACKET]));
        diag_help(p->diags, d, "collect gives flits of 8 elements of %s", dtype_row_of(in->dtype)->name);
    }
}

/* Time and Packet go through; what was declared otherwise is refused. */
static void pass_through(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    const component parts[] = {TIME, PACKET};
    for (int i = 0; i < 2 && !o->bad; i++) {
        component c = parts[i];
        if (!o->out.part[c])
            o->out.part[c] = in->part[c];
        if (mapping_equal(p->mappings, in->part[c], o->out.part[c]))
            continue;
        diag *d = pass_refuse(p, k, o, c, E_VECTOR_WIDTH, "%s passes through %s unchanged: it is %s, declared %s", component_parameter(c),
                              op_kind_name(o->kind), pass_text(p, in->part[c]), pass_text(p, o->out.part[c]));
        diag_help(p->diags, d, "declare %s", pass_text(p, in->part[c]));
    }
}

/* ---- one operation for each unit ---- */

/* What was set aside in front of a reduction has other packets than the stream behind it. */
static void check_stash(pass_context *p, kernel *k, op *o)
{
    const op *before = op_stash(o) ? op_input(o) : NULL;
    while (before && before != op_stash(o) && before->kind != IR_VECTOR_REDUCE && before->kind != IR_VECTOR_SLICES)
        before = op_input(before);
    if (!before || before == op_stash(o) || o->bad)
        return;
    diag *d =
        pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_OPERAND, "what was set aside has Time %s, and the stream behind the reduction %s",
                    pass_text(p, op_stash(o)->out.part[TIME]), pass_text(p, op_input(o)->out.part[TIME]));
    diag_note(p->diags, d, op_stash(o)->range, "set aside here");
    diag_help(p->diags, d, "set aside what is needed behind the reduction, or commit the result and use another pass");
}

static void op_one(pass_context *p, kernel *k, op *o)
{
    pass_through(p, k, o);
    const vector_op_row *row = o->vector_op->row;
    for (const op *before = op_input(o); row->alu != VECTOR_ALU_NONE && !o->bad && before && before->kind != IR_VECTOR_INIT;
         before = op_input(before)) {
        if (before->kind != IR_VECTOR_OP || before->vector_op->row->alu != row->alu)
            continue;
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_ALU, "%s is already in use", vector_alu_name(row->alu));
        diag_note(p->diags, d, before->range, "by this operation");
        diag_help(p->diags, d, "end the pass with vector_final, commit it, and do this in another pass");
    }
    check_stash(p, k, o);
}

/* ---- width ---- */

/* What leaves, from what arrives; NULL: it does not cut there. */
typedef struct shape {
    const mapping *time, *packet;
} shape;

static shape shape_behind(pass_context *p, const tensor *in, vector_width_kind kind)
{
    int64_t wide = p->target->vector_lanes, narrow = p->target->vector_narrow_lanes;
    const mapping *time = in->part[TIME], *packet = in->part[PACKET], *outer, *inner;
    switch (kind) {
    case VECTOR_SPLIT:
        outer = pass_outer(p, packet, narrow);
        inner = pass_inner(p, packet, narrow);
        if (!outer || !inner || !mapping_equal(p->mappings, pass_pair(p, outer, inner), packet)) /* `R % 5 # 8`: what ends inside a half */
            return (shape){0};
        return (shape){pass_pair(p, time, outer), inner};
    case VECTOR_TRIM: return (shape){time, pass_inner(p, packet, narrow)};
    case VECTOR_CONCAT:
        inner = time->size % (wide / narrow) == 0 ? pass_inner(p, time, wide / narrow) : NULL;
        return inner ? (shape){pass_outer(p, time, wide / narrow), pass_pair(p, inner, packet)} : (shape){0};
    default: return (shape){time, pass_pad(p, packet, wide)};
    }
}

/* Are the lanes behind the first `narrow` ones all padding? */
static bool back_is_padding(pass_context *p, const mapping *packet)
{
    int64_t wide = p->target->vector_lanes, narrow = p->target->vector_narrow_lanes;
    const mapping *outer = pass_outer(p, packet, narrow), *nothing = pass_pad(p, mapping_identity(p->mappings), wide / narrow);
    return outer && mapping_equal(p->mappings, outer, nothing);
}

static const char *kind_text(vector_width_kind kind)
{
    static const char *const names[] = {"Vector_Split", "vector_trim_way4", "Vector_Concat", "vector_pad_way8"};
    return names[kind];
}

static void check_part(pass_context *p, kernel *k, op *o, component c, const mapping *wanted, const char *what)
{
    if (!o->out.part[c])
        o->out.part[c] = wanted;
    if (o->bad || mapping_equal(p->mappings, wanted, o->out.part[c]))
        return;
    diag *d =
        pass_refuse(p, k, o, c, E_VECTOR_WIDTH, "%s %s mismatch: %s of %s becomes %s, not %s", kind_text(o->vector_width->kind), what,
                    component_parameter(c), pass_text(p, op_input(o)->out.part[c]), pass_text(p, wanted), pass_text(p, o->out.part[c]));
    diag_help(p->diags, d, "write %s", pass_text(p, wanted));
}

static void width_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    vector_width_kind kind = o->vector_width->kind;
    bool narrows = kind == VECTOR_SPLIT || kind == VECTOR_TRIM;
    o->vector_width->lanes = narrows ? p->target->vector_narrow_lanes : p->target->vector_lanes;
    if (kind == VECTOR_TRIM && !back_is_padding(p, in->part[PACKET])) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_WIDTH,
                              "vector_trim_way4: the back 4 lanes of %s hold elements, use vector_split()", pass_text(p, in->part[PACKET]));
        diag_help(p->diags, d, "a split flit is two packets of 4");
        return;
    }
    shape s = shape_behind(p, in, kind);
    if (o->out.part[PACKET] && o->out.part[PACKET]->size != o->vector_width->lanes) {
        diag *d =
            pass_refuse(p, k, o, PACKET, E_VECTOR_WIDTH, "%s output Packet2 must have %lld elements, got %lld from %s", kind_text(kind),
                        (long long)o->vector_width->lanes, (long long)o->out.part[PACKET]->size, pass_text(p, o->out.part[PACKET]));
        if (s.packet)
            diag_help(p->diags, d, "write %s", pass_text(p, s.packet));
        return;
    }
    if (!s.time || !s.packet) {
        bool of_time = kind == VECTOR_CONCAT;
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_WIDTH, "%s: %s %s does not cut %s", kind_text(kind),
                              of_time ? "Time" : "Packet", pass_text(p, in->part[of_time ? TIME : PACKET]),
                              of_time ? "into pairs of packets" : "into halves of 4 elements");
        diag_help(p->diags, d,
                  of_time ? "pad the Time so that its innermost part has a multiple of 2 steps"
                          : "collect a packet of which an axis digit ends at 4");
        return;
    }
    check_part(p, k, o, TIME, s.time, "time factor");
    check_part(p, k, o, PACKET, s.packet, "packet");
}

static void stash_one(pass_context *p, kernel *k, op *o)
{
    pass_through(p, k, o);
    for (const op *before = op_input(o); !o->bad && before && before->kind != IR_VECTOR_INIT; before = op_input(before)) {
        if (before->kind != IR_VECTOR_STASH)
            continue;
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_ALU, "the stash is already in use");
        diag_note(p->diags, d, before->range, "set aside here");
        diag_help(p->diags, d, "a pass sets one value aside; commit the other one and use another pass");
    }
}

static void vector_one(pass_context *p, kernel *k, op *o)
{
    switch (o->kind) {
    case IR_VECTOR_INIT: init_one(p, k, o); break;
    case IR_VECTOR_OP: op_one(p, k, o); break;
    case IR_VECTOR_WIDTH: width_one(p, k, o); break;
    case IR_VECTOR_SLICES: vector_slices_one(p, k, o); break;
    case IR_VECTOR_REDUCE: vector_reduce_one(p, k, o); break;
    case IR_VECTOR_STASH: stash_one(p, k, o); break;
    case IR_VECTOR_TAG:
        pass_through(p, k, o);
        if (!o->bad)
            vector_tag_blocks(p, k, o);
        break;
    case IR_VECTOR_FINAL: pass_through(p, k, o); break;
    default: break;
    }
}

void pass_vector(pass_context *p, kernel *k)
{
    pass_all(p, k, vector_one);
}
