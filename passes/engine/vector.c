/* Rules ("Vector Engine"): a pass takes flits of 8 elements of i32 or f32. Its float units and the reduction work on 4 lanes: a packet is
 * split into two, its front half first, or trimmed where its back half is padding; concat and pad are the way back. Each unit does one
 * operation of a pass. The order of the stages is that of their types (target/engine/vector.def). */
#include "passes/engine/vector_reduce.h"
#include "passes/engine/vrf.h"

/* Is what comes next two streams by turns? */
static bool parts_streams(const kernel *k, const op *o)
{
    for (size_t i = o->index + 1; i < k->op_count; i++)
        if (op_input(k->ops[i]) == o)
            return k->ops[i]->kind == IR_VECTOR_UNZIP;
    return false;
}

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
        diag *d = pass_refuse(
            p, k, o, MAPPING_COMPONENTS, E_VECTOR_FLIT, "%s requires Packet of 8 elements (one flit) in Way8 mode, got %lld from %s",
            parts_streams(k, o) ? "VectorTensorPair" : "VectorTensor", (long long)in->part[PACKET]->size, pass_text(p, in->part[PACKET]));
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

/* The reduction between an operation and one in front of it; NULL: there is none. */
static const op *reduced_since(const op *o, const op *before)
{
    for (const op *at = op_input(o); at && at != before; at = op_input(at))
        if (at->kind == IR_VECTOR_REDUCE || at->kind == IR_VECTOR_SLICES)
            return at;
    return NULL;
}

/* What was set aside before a reduction has other packets than the stream after it; and since 0.6 what was set aside is read in
 * packets of the width in which it was. */
static void check_stash(pass_context *p, kernel *k, op *o)
{
    const op *stash = op_stash(o);
    if (!stash)
        return;
    diag *d;
    if (reduced_since(o, stash)) {
        d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_OPERAND,
                        "what was set aside has Time %s, and the stream after the reduction %s", pass_text(p, op_stash(o)->out.part[TIME]),
                        pass_text(p, op_input(o)->out.part[TIME]));
        diag_note(p->diags, d, op_stash(o)->range, "set aside here");
        diag_help(p->diags, d, "set aside what is needed after the reduction, or commit the result and use another pass");
        return;
    }
    if (k->dialect < DIALECT_V0_6 || stash->out.part[PACKET]->size == op_input(o)->out.part[PACKET]->size)
        return;
    d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_OPERAND,
                    "the stash was set aside in packets of %s, and is read in packets of %lld",
                    arena_count(p->arena, stash->out.part[PACKET]->size, "element"), (long long)op_input(o)->out.part[PACKET]->size);
    diag_note(p->diags, d, stash->range, "set aside here");
    diag_help(p->diags, d, "set it aside after the change of width");
}

/* A tag is of an element in front of the reduction. */
static void check_tags(pass_context *p, kernel *k, op *o)
{
    const op *reduction = op_tag(o) ? reduced_since(o, op_tag(o)) : NULL;
    if (!reduction)
        return;
    diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_OPERAND, "the operand is for some tags, and what is reduced has none");
    diag_note(p->diags, d, reduction->range, "it was reduced here");
    diag_help(p->diags, d, "do it in front of the reduction, or commit the result and use another pass");
}

static void op_one(pass_context *p, kernel *k, op *o)
{
    pass_through(p, k, o);
    if (!o->bad)
        check_stash(p, k, o);
    if (!o->bad)
        check_tags(p, k, o);
    if (op_vrf(o) && !o->bad)
        vrf_read(p, k, o);
    const vector_op_row *row = o->vector_op->row;
    for (const op *before = op_input(o);
         row->alu != VECTOR_ALU_NONE && !o->vector_op->more && !o->bad && before && before->kind != IR_VECTOR_INIT;
         before = op_input(before)) {
        if (before->kind != IR_VECTOR_OP || before->vector_op->row->alu != row->alu)
            continue;
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_ALU, "%s is already in use", vector_alu_name(row->alu));
        diag_note(p->diags, d, before->range, "by this operation");
        diag_help(p->diags, d, "end the pass with vector_final, commit it, and do this in another pass");
    }
}

/* ---- width ---- */

/* What leaves, from what arrives; NULL: it does not cut there. */
typedef struct shape {
    const mapping *time, *packet;
} shape;

/* The positions of `m` in pieces of n: false where what ends inside of a piece is no mapping's, as of `R % 5 # 8` in pieces of 4, or of `Q,
 * T # 5` in pairs. */
static bool cut(pass_context *p, const mapping *m, int64_t n, const mapping **outer, const mapping **inner)
{
    bool whole = m->size % n == 0;
    *outer = whole ? pass_outer(p, m, n) : NULL;
    *inner = whole ? pass_inner(p, m, n) : NULL;
    return *outer && *inner && mapping_equal(p->mappings, pass_pair(p, *outer, *inner), m);
}

static shape shape_after(pass_context *p, const tensor *in, vector_width_kind kind)
{
    int64_t wide = p->target->vector_lanes, narrow = p->target->vector_narrow_lanes;
    const mapping *time = in->part[TIME], *packet = in->part[PACKET], *outer, *inner;
    switch (kind) {
    case VECTOR_SPLIT: return cut(p, packet, narrow, &outer, &inner) ? (shape){pass_pair(p, time, outer), inner} : (shape){0};
    case VECTOR_TRIM: return (shape){time, pass_inner(p, packet, narrow)};
    case VECTOR_CONCAT: return cut(p, time, wide / narrow, &outer, &inner) ? (shape){outer, pass_pair(p, inner, packet)} : (shape){0};
    default: return (shape){time, pass_pad(p, packet, wide)};
    }
}

/* Are the lanes after the first `narrow` ones all padding? */
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
    pass_help_part(p, o, d, c, wanted, "write");
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
    shape s = shape_after(p, in, kind);
    if (o->out.part[PACKET] && o->out.part[PACKET]->size != o->vector_width->lanes) {
        diag *d = pass_refuse(p, k, o, PACKET, E_VECTOR_WIDTH, "%s output Packet2 must have %s, got %lld from %s", kind_text(kind),
                              arena_count(p->arena, o->vector_width->lanes, "element"), (long long)o->out.part[PACKET]->size,
                              pass_text(p, o->out.part[PACKET]));
        if (s.packet) {
            pass_help_part(p, o, d, PACKET, s.packet, "write");
        }
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

/* ---- two streams ---- */

/* Time with the axis, which is its digit number `at`, as `1 # 2` (tiled), or without it. */
static const mapping *without(pass_context *p, const mapping *time, uint32_t at, bool tiled)
{
    int64_t inside = 1;
    for (uint32_t i = at + 1; i < time->count; i++)
        inside *= time->factors[i].extent;
    const mapping *outer = pass_outer(p, time, 2 * inside), *inner = pass_inner(p, time, inside);
    const mapping *middle = tiled ? pass_pair(p, pass_pad(p, mapping_identity(p->mappings), 2), inner) : inner;
    return outer && middle ? pass_pair(p, outer, middle) : NULL;
}

static void unzip_one(pass_context *p, kernel *k, op *o)
{
    const mapping *time = op_input(o)->out.part[TIME], *split = NULL, *tiled = NULL;
    int64_t inside = 1;
    for (uint32_t i = time->count; i-- > 0 && !split; inside *= time->factors[i].extent) {
        const factor *f = &time->factors[i];
        if (f->kind != FACTOR_AXIS || f->axis != o->vector_unzip->by || f->live != 2 || f->extent != 2)
            continue;
        split = without(p, time, i, false);
        tiled = without(p, time, i, true);
        break;
    }
    if (!split || !tiled) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_PAIR, "Time %s does not have the axis %s, which tells two streams apart",
                        pass_text(p, time), o->vector_unzip->by->name);
        diag_help(p->diags, d, "fetch with %s in Time", o->vector_unzip->by->name);
        return;
    }
    int64_t elements = inside * p->target->vector_lanes;
    if (elements > p->target->vector_pair_elements) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_PAIR, "%s sit inside the group axis %s, at most %lld do",
                        arena_count(p->arena, elements, "element"), o->vector_unzip->by->name, (long long)p->target->vector_pair_elements);
        diag_help(p->diags, d, "fetch with %s further inside in Time", o->vector_unzip->by->name);
        return;
    }
    const mapping *written[] = {o->vector_unzip->tiled, o->out.part[TIME]}, *meant[] = {tiled, split};
    for (int i = 0; i < 2; i++) {
        bool open =
            !written[i] || mapping_equal(p->mappings, written[i], meant[i]) || (i == 1 && mapping_equal(p->mappings, written[i], time));
        if (open)
            continue;
        diag *d = pass_refuse(p, k, o, i ? TIME : MAPPING_COMPONENTS, E_VECTOR_PAIR, "%s of two streams from Time %s is %s, not %s",
                              i ? "Time" : "TileTime", pass_text(p, time), pass_text(p, meant[i]), pass_text(p, written[i]));
        diag_help(p->diags, d, "write %s %s", i ? "Time" : "TileTime", pass_text(p, meant[i]));
        return;
    }
    o->out.part[TIME] = split;
    if (!o->out.part[PACKET])
        o->out.part[PACKET] = op_input(o)->out.part[PACKET];
    o->vector_unzip->inside = inside;
}

/* What a pass over two streams does not do, nor after the zip. */
static void check_single(pass_context *p, kernel *k, op *o, const char *lacks, const char *help)
{
    for (const op *before = op_input(o); !o->bad && before && before->kind != IR_VECTOR_INIT; before = op_input(before))
        if (before->kind == IR_VECTOR_UNZIP) {
            diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_VECTOR_PAIR, "a pass over two streams %s", lacks);
            diag_note(p->diags, d, before->range, "it has two streams from here");
            diag_help(p->diags, d, "%s", help);
        }
}

static void reduction_one(pass_context *p, kernel *k, op *o)
{
    check_single(p, k, o, "reduces nothing", "commit the result of the zip, and reduce that in a pass of its own");
    if (o->bad)
        return;
    if (o->kind == IR_VECTOR_SLICES)
        vector_slices_one(p, k, o);
    else
        vector_reduce_one(p, k, o);
}

static void stash_one(pass_context *p, kernel *k, op *o)
{
    pass_through(p, k, o);
    check_single(p, k, o, "sets nothing aside", "keep it in the VRF, in a pass of its own");
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
    case IR_VECTOR_SLICES:
    case IR_VECTOR_REDUCE: reduction_one(p, k, o); break;
    case IR_VECTOR_STASH: stash_one(p, k, o); break;
    case IR_VECTOR_UNZIP: unzip_one(p, k, o); break;
    case IR_TO_VRF: vrf_store(p, k, o); break;
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
