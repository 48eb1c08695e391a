/* Rule ("TRF Sequencer", to_trf): the collected stream, Time and Packet, is Row and Element one behind the other, so each of the two
 * follows from the other. What is stored decides the Row of what is aligned with it and contracted. */
#include "passes/infer.h"

#include "passes/collect.h"

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
    const tensor *in = &o->input->out;
    tensor *out = &o->out;
    const mapping *time = in->part[TIME], *packet = in->part[PACKET], *row, *element;
    int64_t flits;
    if (out->part[ROW] && out->part[ELEMENT])
        return;
    if (o->input->kind == IR_COLLECT && !collect_flits(p, &o->input->input->out, &flits, &time, &packet)) {
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
    diag *d = pass_refuse(p, k, o, known, E_INFER, "%s of to_trf cannot be inferred: %s %s has %lld positions, and the stream Time %s, Packet %s is no whole number of %s",
                          component_parameter(wanted), component_parameter(known), pass_text(p, out->part[known]), (long long)out->part[known]->size, pass_text(p, time),
                          pass_text(p, packet), known == ROW ? "parts for so many Rows" : "such Elements");
    diag_help(p->diags, d, "collect with Row outermost in Time; the rest of Time and the Packet are Element");
}

static void infer_align(pass_context *p, kernel *k, op *o)
{
    (void)p, (void)k;
    if (!o->out.part[ROW])
        o->out.part[ROW] = o->weights->out.part[ROW];
}

static void infer_contract(pass_context *p, kernel *k, op *o)
{
    (void)p, (void)k;
    if (!o->out.part[ROW])
        o->out.part[ROW] = o->input->out.part[ROW];
}

void pass_infer(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_TO_TRF, infer_store);
    pass_each(p, k, IR_ALIGN, infer_align);
    pass_each(p, k, IR_CONTRACT, infer_contract);
}
