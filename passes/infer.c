/* Rule ("TRF Sequencer", to_trf): the collected stream, Time and Packet, is Row and Element one after the other, so each of the two
 * follows from the other. What is stored decides the Row of what is aligned with it and contracted.
 *
 * Rule ("Reducer"): contract and accumulate sum what does not leave them. So where the Element that commit writes is known, OutPacket of
 * contract is the digits of Packet that Element holds, and OutTime of accumulate those of Time, in their order, with what the kind of
 * accumulation puts inside. A written OutTime of accumulate determines that of contract. */
#include "passes/infer.h"

#include "passes/engine/accumulate.h"
#include "passes/engine/collect.h"

/* Row and Element of the stream, where `rows` Rows are its outermost part; false: they are not. */
static bool split(pass_context *p, const mapping *time, const mapping *packet, int64_t rows, const mapping **row, const mapping **element)
{
    if (rows < 1 || time->size % rows)
        return false;
    *row = pass_outer(p, time, time->size / rows);
    const mapping *inner = pass_inner(p, time, time->size / rows);
    *element = inner ? pass_pair(p, inner, packet) : NULL;
    return *row && *element;
}

static void infer_store(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    tensor *out = &o->out;
    const mapping *time = in->part[TIME], *packet = in->part[PACKET], *row, *element;
    int64_t flits;
    if (out->part[ROW] && out->part[ELEMENT])
        return;
    if (op_input(o)->kind == IR_COLLECT && !collect_flits(p, &op_input(op_input(o))->out, &flits, &time, &packet)) {
        o->bad = k->bad = true; /* collect is refused, and with it what it gives */
        return;
    }
    component known = out->part[ROW] ? ROW : ELEMENT, wanted = known == ROW ? ELEMENT : ROW;
    int64_t per_row = known == ELEMENT ? out->part[ELEMENT]->size : 0, positions;
    bool fits = !__builtin_mul_overflow(time->size, packet->size, &positions) && (known == ROW || positions % per_row == 0) &&
                split(p, time, packet, known == ROW ? out->part[ROW]->size : positions / per_row, &row, &element);
    if (fits) {
        out->part[wanted] = wanted == ROW ? row : element;
        return;
    }
    diag *d =
        pass_refuse(p, k, o, known, E_INFER,
                    "%s of to_trf cannot be inferred: %s %s has %lld positions, and the stream Time %s, Packet %s is no whole number of %s",
                    component_word(wanted), component_word(known), pass_text(p, out->part[known]), (long long)out->part[known]->size,
                    pass_text(p, time), pass_text(p, packet), known == ROW ? "parts for so many @Rows" : "such Elements");
    diag_help(p->diags, d, "collect with @Row outermost in Time; the rest of Time and the Packet are Element");
}

static void infer_align(pass_context *p, kernel *k, op *o)
{
    (void)p, (void)k;
    if (!o->out.part[ROW])
        o->out.part[ROW] = op_weights(o)->out.part[ROW];
}

/* ---- what is summed ---- */

/* What holds all digits that leave the operation: OutTime and OutPacket of the accumulate after it, or Element of the commit; NULL: not
 * known. */
static const mapping *destination(pass_context *p, const kernel *k, const op *o)
{
    for (size_t i = o->index + 1; i < k->op_count; i++) {
        const op *next = k->ops[i];
        if (op_input(next) != o)
            continue;
        const mapping *time = next->out.part[TIME], *packet = next->out.part[PACKET];
        if (next->kind == IR_COMMIT)
            return next->out.part[ELEMENT];
        if (next->kind == IR_ACCUMULATE && time && (packet || next->accumulation == INTERLEAVED))
            return packet ? pass_pair(p, time, packet) : time;
        if (next->kind != IR_ACCUMULATE && !op_kind_is(next->kind, KEEPS_ELEMENTS))
            return NULL;
        o = next;
    }
    return NULL;
}

/* The part of a digit of `m` that the destination holds, the identity when it holds none of it; NULL: it is in several pieces, or no axis'.
 * `digit`: the digit alone, `f` its factor. */
static const mapping *held_part(pass_context *p, const mapping *held, const mapping *digit, const factor *f)
{
    int64_t low = 0, high = 0, values = 1, end = f->weight * f->live; /* coordinates low * i below high */
    for (uint32_t i = 0; i < held->count; i++) {
        const factor *g = &held->factors[i];
        int64_t from = larger(f->weight, g->weight), to = smaller(end, g->weight * g->live);
        if (g->kind != FACTOR_AXIS || g->axis != f->axis || from >= to)
            continue;
        low = low ? smaller(low, from) : from;
        high = larger(high, to);
        values *= to / from;
    }
    if (!low)
        return mapping_identity(p->mappings);
    if (values * low != high || low % f->weight)
        return NULL;
    const mapping *outer = pass_outer(p, digit, low / f->weight);
    return outer && high < end ? pass_inner(p, outer, values) : outer;
}

/* The digits of `m` that the destination holds; NULL: it does not say of each whether it is kept. */
static const mapping *kept_digits(pass_context *p, const mapping *m, const mapping *held)
{
    const mapping *kept = mapping_identity(p->mappings);
    int64_t position = m->size;
    for (uint32_t i = 0; i < m->count && kept; i++) {
        const factor *f = &m->factors[i];
        position /= f->extent;
        const mapping *outer = pass_outer(p, m, position), *digit = outer ? pass_inner(p, outer, f->extent) : NULL;
        if (f->kind != FACTOR_AXIS || f->axis->term_count > 0 || !digit)
            return NULL;
        const mapping *part = held_part(p, held, digit, f);
        kept = part ? pass_pair(p, kept, part) : NULL;
    }
    return kept;
}

/* No windows and groups: what a mapping holds is seen from its digits. */
static bool is_plain(const mapping *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->factors[i].kind == FACTOR_COMPOSITE || (m->factors[i].kind == FACTOR_AXIS && m->factors[i].axis->term_count > 0))
            return false;
    return true;
}

static void refuse_unknown(pass_context *p, kernel *k, op *o, component missing)
{
    diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_INFER, "%s of %s cannot be inferred; what is known: %s", component_word(missing),
                          op_kind_word(o->kind), tensor_text(&o->out, p->arena));
    diag_help(p->diags, d, "annotate the variable with its type, or write %s::<..>()", op_kind_word(o->kind));
}

/* The digits of the input's part that leave; NULL after a refusal. */
static const mapping *infer_kept(pass_context *p, kernel *k, op *o, component c)
{
    const mapping *held = destination(p, k, o), *kept = held && is_plain(held) ? kept_digits(p, op_input(o)->out.part[c], held) : NULL;
    if (!kept)
        refuse_unknown(p, k, o, c);
    return kept;
}

static void infer_contract(pass_context *p, kernel *k, op *o)
{
    if (!o->out.part[ROW])
        o->out.part[ROW] = op_input(o)->out.part[ROW];
    const mapping *kept;
    if (o->out.part[PACKET] || !(kept = infer_kept(p, k, o, PACKET)))
        return;
    int64_t columns = 1; /* a power of two; more padding than that leaves no column */
    kept = mapping_strip_padding(p->mappings, kept);
    while (columns < kept->size)
        columns *= 2;
    o->out.part[PACKET] = pass_pad(p, kept, columns);
}

static void infer_accumulate(pass_context *p, kernel *k, op *o)
{
    const mapping *inner, *out_packet, *kept;
    if (o->out.part[TIME] || !(kept = o->kept_time ? o->kept_time->out.part[TIME] : infer_kept(p, k, o, TIME)))
        return;
    accumulate_inner(p, o, &inner, &out_packet);
    o->out.part[TIME] = pass_pair(p, kept, inner);
    if (!o->out.part[TIME])
        refuse_unknown(p, k, o, TIME);
}

void pass_infer(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_TO_TRF, infer_store);
    pass_each(p, k, IR_ALIGN, infer_align);
    pass_each(p, k, IR_CONTRACT, infer_contract);
    pass_each(p, k, IR_ACCUMULATE, infer_accumulate);
}
