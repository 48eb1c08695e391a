/* Rule ("Stream Adapter", Conceptual Operation): the inner 32 bytes of OutPacket are the stream's Packet; what lies outside them
 * is either padding (collect_flits = 1) or the innermost part of Time, of size 2 (collect_flits = 2). What is left of Time is the
 * outer part of OutTime; the inner rest of OutTime, the tiling axes, repeats each packet and must come from the TRF. Where the
 * inner flit is not Packet, or the stream holds a sliding window, passes/engine/shift.c says how the flits are turned and shifted. */
#include "passes/pass.h"

#include "passes/engine/shift.h"
#include "target/dialect.h"

/* `time`, and then what OutTime has of the TRF tensor and `stream` does not have; NULL: too large. */
static const mapping *with_tiling(pass_context *p, const op *o, const mapping *time, const mapping *stream)
{
    const mapping *out = o->out.part[TIME], *good = time;
    for (size_t i = 0; i < out->count && good; i++)
        if (out->factors[i].axis && !mapping_mentions(stream, out->factors[i].axis) &&
            mapping_mentions(op_weights(o)->out.part[ELEMENT], out->factors[i].axis))
            good = pass_pair(p, good, mapping_of_factor(p->mappings, &out->factors[i]));
    return good;
}

/* Is each axis of `m` one of `a` or `b`? */
static bool names_only(const mapping *m, const mapping *a, const mapping *b)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].axis && !mapping_mentions(a, m->factors[i].axis) && !mapping_mentions(b, m->factors[i].axis))
            return false;
    return true;
}

/* Which of the published rules does this OutTime break? `time` is what the stream's Time leaves for it. */
static diag *refuse_time(pass_context *p, kernel *k, op *o, const mapping *time)
{
    const mapping *out = o->out.part[TIME];
    sequence seq;
    const char *rule = "`@align`: Time does not divide OutTime";
    diag_id id = E_ALIGN_TIME;
    bool found = sequence_derive(p->mappings, out, time, mapping_identity(p->mappings), SEQUENCE_READ, &seq);
    for (size_t i = 0; i < seq.count && found; i++)
        found = seq.parts[i].stride != 0 || seq.parts[i].live == 1;
    if (found) {
        rule = "tiling axes must be innermost in OutTime";
        id = E_ALIGN_TILING;
        for (size_t i = 0; i + 1 < seq.count; i++)
            if (seq.parts[i].stride < seq.parts[i + 1].stride) {
                rule = "the axes of Time stand in another order in OutTime";
                id = E_ALIGN_ORDER;
            }
    }
    diag *d = pass_refuse(p, k, o, TIME, id, "%s: Time left for OutTime is %s, OutTime is %s", rule, pass_text(p, time), pass_text(p, out));
    const mapping *good = with_tiling(p, o, time, time);
    diag_help(p->diags, d, "write OutTime %s: Time as it is, tiling axes of the TRF tensor after it", pass_text(p, good));
    pass_replace(p, o, d, TIME, good);
    return d;
}

/* A group that 32 bytes do not cut into digits is not what its two halves together are ("Mapping Expressions", Semantics). */
static bool flits_make_packet(pass_context *p, kernel *k, op *o, const mapping *packed)
{
    const mapping *out = o->out.part[PACKET], *flit = op_input(o)->out.part[PACKET];
    const mapping *both = pass_pair(p, packed, flit), *padded = both ? pass_pad(p, both, out->size) : NULL;
    if (!padded || mapping_equal(p->mappings, padded, out))
        return true;
    diag *d = pass_refuse(p, k, o, PACKET, E_ALIGN_PACKET,
                          "`@align` packet mismatch: the flits %s and %s together are not OutPacket %s, whose group a flit cuts",
                          pass_text(p, packed), pass_text(p, flit), pass_text(p, out));
    diag_help(p->diags, d, "pad an axis of the group so that 32 bytes hold a whole number of it");
    return false;
}

/* How often OutTime repeats each packet of `time`, innermost; 0: it is not `time` with tiling axes after it. */
static int64_t tiling_of(pass_context *p, const mapping *out, const mapping *time)
{
    int64_t tiling = out->size % time->size ? 0 : out->size / time->size;
    return tiling > 0 && mapping_equal(p->mappings, pass_outer(p, out, tiling), time) ? tiling : 0;
}

/* Splits Time into what the packet takes and what stays: *packed is the flit digit (size 1 or 2). */
static const mapping *collected_time(pass_context *p, kernel *k, op *o, const mapping **packed)
{
    const tensor *in = &op_input(o)->out;
    int64_t half = elements_of(in->dtype, p->target->flit_bytes);
    const mapping *out = o->out.part[PACKET], *time = in->part[TIME];
    const mapping *inner = pass_inner(p, out, half), *outer = pass_outer(p, out, half);
    if (!mapping_equal(p->mappings, inner, in->part[PACKET])) {
        diag *d = pass_refuse(p, k, o, PACKET, E_ALIGN_PACKET,
                              "`@align` packet mismatch: the inner flit of OutPacket %s is %s, the stream's Packet is %s",
                              pass_text(p, out), pass_text(p, inner), pass_text(p, in->part[PACKET]));
        const mapping *two = time->size % 2 == 0 ? pass_inner(p, time, 2) : NULL;
        if (two)
            pass_help_out(p, o, d, "two flits per packet: write", pass_outer(p, time, 2), pass_pair(p, two, in->part[PACKET]));
        else
            pass_help_out(p, o, d, "one flit per packet: write", time, pass_pad(p, in->part[PACKET], 2 * half));
        return NULL;
    }
    *packed = mapping_strip_padding(p->mappings, outer);
    bool second_is_padding = outer->size > 1 && (*packed)->size == 1 && time->size % outer->size == 0 &&
                             mapping_equal(p->mappings, pass_inner(p, time, outer->size), outer);
    if (second_is_padding && !tiling_of(p, o->out.part[TIME], time)) /* it comes, and OutTime does not count it */
        *packed = outer;
    const mapping *flits = time->size % (*packed)->size == 0 ? pass_inner(p, time, (*packed)->size) : NULL;
    if (!flits || !mapping_equal(p->mappings, flits, *packed)) {
        diag *d =
            pass_refuse(p, k, o, PACKET, E_ALIGN_TIME,
                        "`@align`: Time does not divide OutTime: OutPacket %s collects %s, but the innermost part of Time %s is %s",
                        pass_text(p, out), pass_text(p, *packed), pass_text(p, time), flits ? pass_text(p, flits) : "of another size");
        pass_help_out(p, o, d, "one flit per packet: write", time, pass_pad(p, in->part[PACKET], 2 * half));
        return NULL;
    }
    if (!flits_make_packet(p, k, o, *packed))
        return NULL;
    return pass_outer(p, time, (*packed)->size);
}

/* Data and weights are of one type, either of them less a zero point; weights of 4 bits that are kept in 8 meet data of 8 ("Multiplier",
 * operand types; "TRF Memory Layout", reg_types 1). */
static bool types_meet(dtype data, const tensor *weights)
{
    dtype stored = dtype_row_of(weights->dtype)->staged;
    return dtype_row_of(data)->staged == (weights->widened ? DTYPE_I8 : stored);
}

/* Everything that the TRF tensor stores must be asked for, and Row axes only come from it. */
static bool check_operands(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out, *trf = &op_weights(o)->out, *out = &o->out;
    if (!types_meet(in->dtype, trf)) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_ALIGN_TYPE, "the stream has %s elements, the TRF tensor %s",
                              dtype_row_of(in->dtype)->name, dtype_row_of(trf->dtype)->name);
        diag_help(p->diags, d, "store the weights as %s", dtype_row_of(in->dtype)->name);
        return false;
    }
    for (component c = CHIP; c <= SLICE; c++)
        if (!mapping_equal(p->mappings, in->part[c], trf->part[c])) {
            diag *d = pass_refuse(p, k, o, c, E_UNITS_DIFFER, "%s of the stream is %s, of the TRF tensor %s", component_word(c),
                                  pass_text(p, in->part[c]), pass_text(p, trf->part[c]));
            diag_help(p->diags, d, "store the weights where the stream runs; only DMA and switch move data between slices");
            return false;
        }
    const mapping *computation = pass_pair(p, out->part[TIME], out->part[PACKET]);
    const axis *shared = computation ? pass_shared_digit(trf->part[ROW], computation) : NULL;
    if (shared) {
        diag *d =
            pass_refuse(p, k, o, TIME, E_ALIGN_ROW, "axis %s is a @Row of the TRF tensor and also in OutTime or OutPacket", shared->name);
        diag_help(p->diags, d, "every @Row sees the whole stream: leave %s to the TRF tensor", shared->name);
        return false;
    }
    sequence seq;
    const mapping *asked = computation ? mapping_gather(p->mappings, &computation, 1) : NULL;
    bool used = asked && sequence_derive(p->mappings, asked, trf->part[ELEMENT], mapping_identity(p->mappings), SEQUENCE_COPY, &seq);
    const mapping *missing = used ? NULL : asked ? seq.term : trf->part[ELEMENT];
    for (size_t i = 0; used && i < seq.count && !missing; i++)
        if (seq.parts[i].live > 1 && seq.parts[i].stride == 0)
            missing = seq.parts[i].term;
    if (!used || missing) {
        diag *d = pass_refuse(p, k, o, TIME, E_ALIGN_UNUSED, "the TRF tensor stores `%s`, which neither OutTime nor OutPacket asks for",
                              missing ? mapping_text(missing, p->arena) : "its Element");
        if (missing) {
            const mapping *tiled = pass_pair(p, out->part[TIME], missing);
            pass_help_part(p, o, d, TIME, tiled, "add it, innermost, as a tiling axis: write OutTime");
        } else
            diag_help(p->diags, d, "add it to OutTime, innermost, as a tiling axis");
        return false;
    }
    return true;
}

/* ---- the three ways to a packet ---- */

static bool collect_plain(pass_context *p, kernel *k, op *o, align_config *a)
{
    const mapping *packed, *time = collected_time(p, k, o, &packed), *out = o->out.part[TIME];
    if (!time)
        return false;
    int64_t tiling = tiling_of(p, out, time);
    if (tiling == 0) {
        refuse_time(p, k, o, time);
        return false;
    }
    a->collect_flits = packed->size;
    a->tiling = pass_inner(p, out, tiling);
    a->packets = time->size;
    return true;
}

/* Is the packet another one than Packet as it came, and can it be made of the flits? */
static bool needs_shift(pass_context *p, const op *o)
{
    shift_plan plan;
    int64_t half = elements_of(o->out.dtype, p->target->flit_bytes);
    bool as_it_came = mapping_equal(p->mappings, pass_inner(p, o->out.part[PACKET], half), op_input(o)->out.part[PACKET]);
    return shift_is_asked(o) || (!as_it_came && shift_derive(p, o, &plan));
}

static bool collect_shifted(pass_context *p, kernel *k, op *o, align_config *a)
{
    shift_plan plan;
    if (!shift_derive(p, o, &plan)) {
        shift_refuse(p, k, o, &plan);
        return false;
    }
    a->collect_flits = plan.collect_flits;
    a->transpose_rows = plan.transpose_rows;
    a->tiling = pass_inner(p, o->out.part[TIME], plan.tiling);
    a->packets = plan.rest->size;
    if (plan.shift.shifts > 1 || plan.shift.initial_shift != 0) {
        a->shift = ARENA_NEW(p->arena, shift_config);
        *a->shift = plan.shift;
    }
    return true;
}

/* Does the stream name an axis of the term? */
static bool stream_names(const tensor *in, const mapping *term)
{
    const axis *axes[64];
    uint32_t count = mapping_axes(term, axes, 64);
    for (uint32_t i = 0; i < count; i++)
        if (mapping_mentions(in->part[TIME], axes[i]) || mapping_mentions(in->part[PACKET], axes[i]))
            return true;
    return false;
}

/* A tiling axis repeats the packet for different weights, or, since 0.6, where neither the stream nor the TRF has it, for the same ones. */
static bool check_tiling(pass_context *p, kernel *k, op *o, const mapping *tiles)
{
    const mapping *element = op_weights(o)->out.part[ELEMENT];
    sequence seq;
    bool stored = sequence_derive(p->mappings, element, tiles, mapping_identity(p->mappings), SEQUENCE_READ, &seq);
    for (size_t i = 0; i < seq.count && stored; i++)
        stored = seq.parts[i].stride != 0 || seq.parts[i].live == 1 ||
                 (!(o->releases & APRIL) && !stream_names(&op_input(o)->out, seq.parts[i].term));
    if (stored)
        return true;
    if ((o->releases & APRIL) && !stream_names(&op_input(o)->out, tiles)) {
        diag *d =
            pass_refuse(p, k, o, TIME, E_ALIGN_TILING_TRF, "tiling axes must be present in TRF: %s of OutTime is not in its Element %s",
                        pass_text(p, tiles), pass_text(p, element));
        diag_help(p->diags, d,
                  "store it there, or write contract_outer, as releases since 0.6 do: it repeats the packet for the same weights");
        return false;
    }
    diag *d = pass_refuse(p, k, o, TIME, E_ALIGN_TILING_TRF,
                          "tiling %s of OutTime is not in the TRF tensor's Element %s, and names an axis of the stream",
                          pass_text(p, tiles), pass_text(p, element));
    diag_help(p->diags, d, "a tiling axis is stored in the TRF, or named by neither: store it there, or fetch it in Time");
    return false;
}

/* A collected stream that is a parameter; what collect gives is checked there. */
static bool takes_flits(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    int64_t bytes = dtype_bytes(in->dtype, in->part[PACKET]->size);
    if (bytes == p->target->flit_bytes)
        return true;
    diag *d =
        pass_refuse(p, k, o, MAPPING_COMPONENTS, E_COLLECT_FLIT, "the Stream Adapter takes flits of %lld bytes, got a packet of %s from %s",
                    (long long)p->target->flit_bytes, arena_count(p->arena, bytes, "byte"), pass_text(p, in->part[PACKET]));
    diag_help(p->diags, d, "let the packet be %lld elements", (long long)elements_of(in->dtype, p->target->flit_bytes));
    return false;
}

/* OutPacket of one flit: the other half of the multipliers has padding, and so has what a kernel returns of it. */
static void widen_packet(pass_context *p, kernel *k, op *o)
{
    const mapping *wide = pass_pad(p, o->out.part[PACKET], elements_of(o->out.dtype, p->target->mac_width_bytes));
    o->out.part[PACKET] = wide;
    for (size_t i = 0; i < k->op_count; i++) {
        op *port = k->ops[i];
        if (port->kind != IR_PORT_OUT || op_input(port) != o)
            continue;
        port->out.part[PACKET] = wide;
        for (uint32_t pair = 0; pair < 2; pair++) /* the stream, and the weights with it */
            k->ports[port->port + pair].tensor.part[PACKET] = wide;
    }
}

static void align_one(pass_context *p, kernel *k, op *o)
{
    tensor *out = &o->out;
    const tensor *trf = &op_weights(o)->out;
    int64_t rows = trf->part[ROW]->size, bytes = dtype_bytes(out->dtype, out->part[PACKET]->size);
    if (!dtype_is_operand(out->dtype)) {
        diag *d =
            pass_refuse(p, k, o, MAPPING_COMPONENTS, E_ALIGN_TYPE, "%s elements cannot be contracted", dtype_row_of(out->dtype)->name);
        diag_help(p->diags, d, "operands are i4, i8, f8e4m3, f8e5m2 or bf16; fetch converts f32 to bf16");
        return;
    }
    if (rows < 1 || rows > p->target->rows || (rows & (rows - 1))) {
        diag *d = pass_refuse(p, k, o, ROW, E_TRF_ROWS, "@Row::SIZE should be %s, got %lld from %s", pass_row_counts(p), (long long)rows,
                              pass_text(p, trf->part[ROW]));
        diag_help(p->diags, d, "store at most %lld @Rows and the rest in Element", (long long)p->target->rows);
        return;
    }
    bool one_flit = !(o->releases & APRIL) && bytes == p->target->flit_bytes;
    if (one_flit) {
        widen_packet(p, k, o);
        bytes = p->target->mac_width_bytes;
    }
    if (bytes != p->target->mac_width_bytes) {
        const char *widths = o->releases & APRIL ? "64 bytes" : "32 or 64 bytes";
        diag *d = pass_refuse(p, k, o, PACKET, E_ALIGN_WIDTH, "OutPacket must be %s, got %s from %s of %s", widths,
                              arena_count(p->arena, bytes, "byte"), pass_text(p, out->part[PACKET]), dtype_row_of(out->dtype)->name);
        int64_t full = elements_of(out->dtype, p->target->mac_width_bytes);
        int64_t least = o->releases & APRIL ? full : elements_of(out->dtype, p->target->flit_bytes);
        const tensor *stream = &op_input(o)->out;
        const mapping *packet = out->part[PACKET];
        const mapping *of = pass_pair(p, stream->part[TIME], stream->part[PACKET]);
        const mapping *outer = NULL, *inner = NULL;
        /* both flits, or one where a packet may be one: the first that cuts the stream as it flows */
        for (int64_t n = full; !inner && n >= least; n /= 2) {
            const mapping *whole = pass_pad(p, packet, (packet->size + n - 1) / n * n), *cut = pass_inner(p, whole, n);
            outer = pass_pair(p, out->part[TIME], pass_outer(p, whole, n));
            const mapping *all = pass_pair(p, outer, cut);
            inner = all && of && mapping_equal(p->mappings, all, of) ? cut : NULL;
        }
        /* else the stream itself, cut so, and after it what of OutTime the TRF tensor alone has */
        bool known = of && names_only(out->part[TIME], of, trf->part[ELEMENT]) && names_only(packet, of, trf->part[ELEMENT]);
        for (int64_t n = full; known && !inner && n >= least; n /= 2) {
            const mapping *cut = of->size % n == 0 ? pass_inner(p, of, n) : NULL, *rest = cut ? pass_outer(p, of, n) : NULL;
            const mapping *all = rest ? pass_pair(p, rest, cut) : NULL;
            outer = all && mapping_equal(p->mappings, all, of) ? with_tiling(p, o, rest, of) : NULL;
            inner = outer ? cut : NULL;
        }
        if (bytes < p->target->flit_bytes && stream->dtype == out->dtype)
            pass_help_out(p, o, d, "a flit stays whole: write", stream->part[TIME],
                          o->releases & APRIL ? pass_pad(p, stream->part[PACKET], full) : stream->part[PACKET]);
        else if (full > packet->size) {
            pass_help_part(p, o, d, PACKET, pass_pad(p, packet, full), "pad to 64 bytes:");
        } else if (inner)
            pass_help_out(p, o, d, "write", outer, inner);
        else
            diag_help(p->diags, d, "leave %s in OutPacket and the rest in OutTime", arena_count(p->arena, full, "element"));
        return;
    }
    align_config a = {.rows = rows, .transpose_rows = 1};
    if (!takes_flits(p, k, o) || !(needs_shift(p, o) ? collect_shifted(p, k, o, &a) : collect_plain(p, k, o, &a)) ||
        !check_tiling(p, k, o, a.tiling) || !check_operands(p, k, o))
        return;
    o->align = ARENA_NEW(p->arena, align_config);
    *o->align = a;
}

void pass_stream_adapter(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_ALIGN, align_one);
}
