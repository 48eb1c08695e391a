/* Rules ("Reducer", accumulate). Digits of Time that OutTime lacks are summed. Interleaved: OutTime = [Time', Packet], OutPacket = Row
 * padded to 8. Sequential: with Packet padded to a multiple of 8, OutTime = [Time', Row, Packet / 8], OutPacket = Packet % 8.
 * Time' keeps Time's order and padding. Partial results inside the outermost summed loop live in slots of the accumulator.
 * Since 0.6 Time' is given by a stage of its own (contract_time), and a slot of Sequential holds all columns of the Rows. */
#include "passes/engine/accumulate.h"

#include "target/dialect.h"

/* OutTime that is always right; digits taken out of it are summed. */
static const char *whole_out_time(pass_context *p, const op *o, const mapping *inner)
{
    return pass_text(p, pass_pair(p, op_input(o)->out.part[TIME], inner));
}

static diag *refuse_out_time(pass_context *p, kernel *k, op *o, const mapping *inner, const char *what)
{
    diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_TIME,
                          "OutTime mismatch: Could not decompose OutTime %s: its innermost part must be %s (%s)",
                          pass_text(p, o->out.part[TIME]), pass_text(p, inner), what);
    diag_help(p->diags, d, "write OutTime %s, without the digits of Time that are summed", whole_out_time(p, o, inner));
    return d;
}

static diag *refuse_out_packet(pass_context *p, kernel *k, op *o, const mapping *expected)
{
    diag *d = pass_refuse(p, k, o, PACKET, E_ACCUMULATE_PACKET, "OutPacket mismatch: %s accumulation gives %s, not %s",
                          o->accumulation == INTERLEAVED ? "Interleaved" : "Sequential", pass_text(p, expected),
                          pass_text(p, o->out.part[PACKET]));
    pass_help_part(p, o, d, PACKET, expected, "write OutPacket");
    return d;
}

void accumulate_inner(pass_context *p, const op *o, const mapping **inner, const mapping **out_packet)
{
    const tensor *in = &op_input(o)->out;
    int64_t lanes = p->target->output_lanes;
    const mapping *packet = mapping_strip_padding(p->mappings, in->part[PACKET]), *row = in->part[ROW];
    if (o->accumulation == INTERLEAVED) {
        *out_packet = pass_pad(p, row, lanes);
        *inner = packet;
        return;
    }
    const mapping *padded = pass_pad(p, packet, (packet->size + lanes - 1) / lanes * lanes);
    *out_packet = pass_inner(p, padded, lanes);
    *inner = pass_pair(p, row, pass_outer(p, padded, lanes));
}

/* Time' from OutTime, or NULL after a refusal. */
static const mapping *kept_time(pass_context *p, kernel *k, op *o)
{
    tensor *out = &o->out;
    int64_t lanes = p->target->output_lanes;
    const mapping *inner, *out_packet;
    accumulate_inner(p, o, &inner, &out_packet);
    if (!out->part[PACKET])
        out->part[PACKET] = out_packet;
    if (out->part[PACKET]->size != lanes) {
        diag *d = pass_refuse(p, k, o, PACKET, E_ACCUMULATE_PACKET, "OutPacket::SIZE must be %lld, got %lld from %s", (long long)lanes,
                              (long long)out->part[PACKET]->size, pass_text(p, out->part[PACKET]));
        pass_help_part(p, o, d, PACKET, out_packet, "write OutPacket");
        return NULL;
    }
    if (!mapping_equal(p->mappings, out->part[PACKET], out_packet)) {
        refuse_out_packet(p, k, o, out_packet);
        return NULL;
    }
    const mapping *time = out->part[TIME];
    if (time->size % inner->size || !mapping_equal(p->mappings, pass_inner(p, time, inner->size), inner)) {
        refuse_out_time(p, k, o, inner, o->accumulation == INTERLEAVED ? "the packet" : "@Row and the packet in units of 8");
        return NULL;
    }
    const mapping *outer = pass_outer(p, time, inner->size), *said = o->kept_time ? o->kept_time->out.part[TIME] : outer;
    if (!outer || mapping_equal(p->mappings, outer, said))
        return outer;
    diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_TIME, "OutTime mismatch: outside the packet it is %s, and @contract_time keeps %s",
                          pass_text(p, outer), pass_text(p, said));
    pass_help_part(p, o, d, TIME, pass_pair(p, said, inner), "write OutTime");
    return NULL;
}

/* Is the upper end of a kept loop, `end` positions of Time, a place where only padding of a factor is cut off? */
static bool cuts_padding(const mapping *time, int64_t end)
{
    int64_t position = 1;
    for (size_t i = time->count; i-- > 0;) {
        const factor *f = &time->factors[i];
        if (end > position && end < position * f->extent)
            return f->live <= end / position;
        position *= f->extent;
    }
    return false;
}

/* Is the digit of Time at these positions the kept digit, padding included? */
static bool same_digit(pass_context *p, const mapping *time, const sequence_part *part)
{
    const mapping *below = pass_inner(p, time, part->stride * part->size);
    const mapping *digit = below ? pass_outer(p, below, part->stride) : NULL;
    return digit && mapping_equal(p->mappings, digit, part->term);
}

bool slot_loops_add(accumulate_loop *loops, uint32_t *count, int64_t size, bool reduced)
{
    if (size == 1)
        return true;
    if (*count > 0 && loops[*count - 1].reduced == reduced) {
        loops[*count - 1].size *= size;
        return true;
    }
    if (*count == ACCUMULATE_MAX_LOOPS)
        return false;
    loops[(*count)++] = (accumulate_loop){.size = size, .reduced = reduced};
    return true;
}

int64_t slot_loops_number(accumulate_loop *loops, uint32_t count)
{
    uint32_t outermost = 0;
    while (outermost < count && !loops[outermost].reduced)
        outermost++;
    int64_t slots = 1; /* no more than Time has positions */
    for (uint32_t i = count; i-- > outermost;)
        if (!loops[i].reduced) {
            loops[i].slot_stride = slots;
            slots *= loops[i].size;
        }
    return slots;
}

/* The loops of Time, outermost first: those of Time' are kept, what lies between them is summed. */
static bool build_loops(pass_context *p, kernel *k, op *o, accumulate_config *a)
{
    const mapping *time = op_input(o)->out.part[TIME], *inner = pass_inner(p, o->out.part[TIME], o->out.part[TIME]->size / a->kept->size);
    const char *whole = whole_out_time(p, o, inner);
    sequence seq;
    if (!sequence_derive(p->mappings, time, a->kept, mapping_identity(p->mappings), SEQUENCE_READ, &seq)) {
        diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_TIME, "OutTime mismatch: it keeps %s, which Time %s does not have: %s",
                              pass_text(p, a->kept), pass_text(p, time), sequence_reason(p, &seq));
        diag_help(p->diags, d, "keep digits of Time only: write OutTime %s, without those that are summed", whole);
        return false;
    }
    int64_t low = time->size;
    for (size_t i = 0; i < seq.count; i++) {
        const sequence_part *part = &seq.parts[i];
        int64_t end = part->stride * part->size;
        if (part->stride == 0 && part->live > 1) {
            diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_TIME, "OutTime mismatch: it keeps `%s`, which Time %s does not have",
                                  mapping_text(part->term, p->arena), pass_text(p, time));
            diag_help(p->diags, d, "keep digits of Time only: write OutTime %s, without those that are summed", whole);
            return false;
        }
        if (end > low && part->stride != 0 && i > 0 && seq.parts[i - 1].stride < part->stride) {
            diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_ORDER, "the kept axes stand in another order: OutTime keeps %s, Time is %s",
                                  pass_text(p, a->kept), pass_text(p, time));
            diag_help(p->diags, d, "keep them in Time's order; commit may reorder: write OutTime %s, without the digits that are summed",
                      whole);
            return false;
        }
        if (part->stride == 0) { /* its one live value is no loop of Time */
            diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_PADDING, "Padding mismatch: OutTime keeps `%s`, padding that no axis has",
                                  mapping_text(part->term, p->arena));
            diag_help(p->diags, d, "leave it out of OutTime; commit may put it back");
            return false;
        }
        if (end > low || low % end || cuts_padding(time, end) || !same_digit(p, time, part)) {
            diag *d = pass_refuse(p, k, o, TIME, E_ACCUMULATE_PADDING,
                                  "Padding mismatch: the kept axes lose or gain padding: OutTime keeps %s, Time is %s",
                                  pass_text(p, a->kept), pass_text(p, time));
            diag_help(p->diags, d,
                      "keep each axis with the padding that it has in Time: write OutTime %s, without the digits that are summed", whole);
            return false;
        }
        if (!slot_loops_add(a->loops, &a->count, low / end, true) || !slot_loops_add(a->loops, &a->count, part->size, false))
            low = 0;
        else
            low = part->stride;
        if (low == 0)
            break;
    }
    if (low == 0 || !slot_loops_add(a->loops, &a->count, low, true)) {
        pass_refuse(p, k, o, TIME, E_ACCUMULATE_TIME, "kept and summed digits of Time alternate more than %d times", ACCUMULATE_MAX_LOOPS);
        return false;
    }
    if (a->count == 0)
        a->loops[a->count++] = (accumulate_loop){.size = 1};
    return true;
}

static bool check_buffer(pass_context *p, kernel *k, op *o, accumulate_config *a)
{
    const target *t = p->target;
    int64_t per_slot, packet_outer = (a->columns + t->output_lanes - 1) / t->output_lanes;
    if (o->accumulation == INTERLEAVED) {
        per_slot = a->columns;
        a->buffer_limit = t->accumulator_columns * t->accumulator_registers;
    } else {
        per_slot = o->releases & APRIL ? a->rows * packet_outer : a->rows;
        a->buffer_limit = t->rows * t->accumulator_registers;
    }
    if (!__builtin_mul_overflow(a->slots, per_slot, &a->buffer) && a->buffer <= a->buffer_limit)
        return true;
    diag *d =
        pass_refuse(p, k, o, TIME, E_ACCUMULATE_BUFFER,
                    "axes inner to reduce must be <= %lld in size, got %lld: %lld kept time steps inside the outermost summed one x %lld",
                    (long long)a->buffer_limit, (long long)a->buffer, (long long)a->slots, (long long)per_slot);
    diag_help(p->diags, d, "move kept axes of Time outside the summed ones, %lld steps at most may stay inside",
              (long long)(a->buffer_limit / per_slot));
    return false;
}

static void accumulate_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    if (in->part[PACKET]->size > p->target->accumulator_columns) {
        pass_refuse(p, k, o, PACKET, E_CONTRACT_WIDE, "@accumulate takes at most %lld columns, got %lld",
                    (long long)p->target->accumulator_columns, (long long)in->part[PACKET]->size);
        return;
    }
    accumulate_config *a = ARENA_NEW(p->arena, accumulate_config);
    a->columns = mapping_strip_padding(p->mappings, in->part[PACKET])->size;
    a->rows = in->part[ROW]->size;
    a->kept = kept_time(p, k, o);
    if (!a->kept || !build_loops(p, k, o, a))
        return;
    a->slots = slot_loops_number(a->loops, a->count);
    if (check_buffer(p, k, o, a))
        o->accumulate = a;
}

void pass_accumulate(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_ACCUMULATE, accumulate_one);
}
