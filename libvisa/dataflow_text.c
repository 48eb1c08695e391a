#include <inttypes.h>

#include "ir/dataflow/dataflow_symbolic.h"
#include "libvisa/dataflow.h"

static void text_sizes(const char *what, const int64_t *list, uint32_t rank, strbuf *out)
{
    strbuf_printf(out, "%s [", what);
    for (uint32_t i = 0; i < rank; i++)
        strbuf_printf(out, "%s%" PRId64, i ? ", " : "", list[i]);
    strbuf_puts(out, "]");
}

static void text_stream(const char *what, dataflow_ratio stream, int64_t bits, strbuf *out)
{
    strbuf_printf(out, "%s %s elements/cycle", what, dataflow_ratio_text(stream, out->arena));
    if (bits)
        strbuf_printf(out, " (%" PRId64 " bits, port %" PRId64 ")", dataflow_port_bits(stream, bits, false),
                      dataflow_port_bits(stream, bits, true));
}

static void text_formulas(const dataflow_model *m, const dataflow_interface *i, strbuf *out)
{
    dataflow_symbols s = dataflow_symbolic(m, i, out->arena);
    strbuf_printf(out, "    formulas: stream %s", s.stream);
    if (s.cii)
        strbuf_printf(out, "; cII %s; eII %s", s.cii, s.eii);
    strbuf_puts(out, "\n");
}

/* "word [16, 49] (784 bits), folded [4, 16, 784]" */
static void text_shape(const dataflow_interface *i, strbuf *out)
{
    const dataflow_shape *s = &i->shape;
    text_sizes("    word", s->word, i->rank, out);
    if (i->bits)
        strbuf_printf(out, " (%" PRId64 " bits)", s->elements * i->bits);
    if (s->period.top != 1 || s->period.bottom != 1)
        strbuf_printf(out, " every %s cycles", dataflow_ratio_text(s->period, out->arena));
    text_sizes(", folded", s->folded, i->rank, out);
    out->bytes--; /* the bracket stays open for the word */
    strbuf_printf(out, ", %" PRId64 "]\n", s->elements);
}

static void text_interface(const dataflow_model *m, const dataflow_interface *i, bool formulas, strbuf *out)
{
    strbuf_printf(out, "  %s %s", dataflow_kind_name(i->kind), i->name);
    if (i->kind > DATAFLOW_OUTPUT) {
        strbuf_printf(out, "%s%s\n", *i->text ? ": " : "", i->text);
        return;
    }
    strbuf_printf(out, ": %s%s", i->type ? i->type : "", i->type ? ", " : "");
    if (i->tensor_rank)
        text_sizes("tensor", i->tensor, i->tensor_rank, out);
    text_sizes(i->tensor_rank ? ", block" : "block", i->block, i->rank, out);
    if (i->kind != DATAFLOW_OUTPUT) {
        text_sizes(i->kind == DATAFLOW_INPUT ? ", iPar" : ", wPar", i->parallel, i->parallel_rank, out);
        strbuf_printf(out, "; %" PRId64 " block%s", i->num_blocks, i->num_blocks == 1 ? "" : "s");
    }
    if (i->kind == DATAFLOW_OUTPUT && i->tensor_rank == 0)
        text_sizes("; calculated tensor", i->calculated, i->rank, out);
    if (m->batch > 1 && i->kind != DATAFLOW_WEIGHT)
        strbuf_printf(out, "; with the batch blocks of %" PRId64 " elements", i->block_elements);
    strbuf_puts(out, "\n");
    text_stream("    stream", i->stream, i->bits, out);
    if (i->kind == DATAFLOW_INPUT)
        strbuf_printf(out, "; cII %" PRId64 ", eII %" PRId64 ", L %" PRId64 " cycles", i->cii, i->eii, i->latency);
    if (i->kind == DATAFLOW_OUTPUT)
        text_stream("; with all wPar", i->physical, i->bits, out);
    strbuf_puts(out, "\n");
    text_shape(i, out);
    if (formulas)
        text_formulas(m, i, out);
}

/* `formulas`: what is chosen is still open, as in an item. */
static void text_model(const dataflow_model *m, bool formulas, strbuf *out)
{
    for (size_t i = 0; i < m->count; i++)
        text_interface(m, &m->interfaces[i], formulas, out);
    if (formulas)
        strbuf_printf(out, "  L = %s\n", dataflow_symbolic_latency(m, out->arena));
    strbuf_printf(out, "  L %" PRId64 " cycles", m->latency);
    if (m->batch > 1)
        strbuf_printf(out, " for a batch of %" PRId64, m->batch);
    strbuf_printf(out, ", the largest eII is that of %s", m->interfaces[m->bottleneck].name);
    if (m->pads)
        strbuf_printf(out, "; %" PRId64 " elements of padding", m->padding);
    if (m->clock_hz)
        strbuf_printf(out, "; %.1f inferences/s at %" PRId64 " Hz", dataflow_rate(m), m->clock_hz);
    strbuf_puts(out, "\n");
}

/* Where the cycle model needs longer, and for what. */
static void text_measured(const dataflow_place *p, strbuf *out)
{
    const visa_contraction *c = p->measured;
    int64_t more = c->cycles - p->cycles, rest = more - c->fill_cycles - c->drain_cycles;
    strbuf_printf(out, "  cycle model %" PRId64 " cycles: %s; %" PRId64 " more than %" PRId64 ": %" PRId64 " to fill", c->cycles,
                  c->formula, more, p->cycles, c->fill_cycles);
    if (c->drain_cycles)
        strbuf_printf(out, ", %" PRId64 " to drain the accumulator", c->drain_cycles);
    if (rest != 0)
        strbuf_printf(out, ", %" PRId64 " for %s", rest, c->engine);
    strbuf_puts(out, "\n");
}

/* Flits arrive one per cycle at best; the cycle model knows what makes them come slower. */
static void text_load(const dataflow_place *p, strbuf *out)
{
    const visa_contraction *c = p->measured;
    bool slower = c && c->load_cycles > p->contraction->load_flits;
    int64_t cycles = slower ? c->load_cycles : p->contraction->load_flits;
    strbuf_printf(out, "  weight load %" PRId64 " flits, %" PRId64 " cycles once", p->contraction->load_flits, cycles);
    if (slower)
        strbuf_printf(out, " for %s", c->load_engine);
    strbuf_printf(out, "; where the halves alternate, %" PRId64 " cycles per turn\n", cycles > p->cycles ? cycles : p->cycles);
}

/* Each engine: what the model says of it, next to the cycles in which it is busy. */
static void text_stages(const dataflow_place *p, strbuf *out)
{
    const visa_contraction *c = p->measured;
    strbuf_printf(out, "  %-12s %10s %10s %10s %10s\n", "stage", "cII", "eII", "L", "measured");
    for (size_t i = 0; i < c->stage_count; i++) {
        dataflow_stage s = dataflow_stage_of(p->contraction, c->stages[i].side);
        strbuf_printf(out, "  %-12s %10s %10s %10" PRId64 " %10" PRId64 "\n", c->stages[i].engine, dataflow_ratio_text(s.cii, out->arena),
                      dataflow_ratio_text(s.eii, out->arena), s.latency, c->stages[i].busy_cycles);
    }
}

static void text_place(const dataflow_place *p, strbuf *out)
{
    const dataflow_contraction *d = p->contraction;
    strbuf_printf(out, "%s: contraction, line %" PRIu32 "\n", p->kernel, p->line);
    text_model(d->model, false, out);
    strbuf_printf(out, "  Reducer %" PRId64 " cycles, flits %" PRId64 " cycles: the %s binds, %" PRId64 " cycles\n", d->compute_cycles,
                  d->stream_cycles, d->stream_cycles > d->compute_cycles ? "stream" : "Reducer", p->cycles);
    if (d->load_flits)
        text_load(p, out);
    strbuf_printf(out, "  lanes with data %s\n", dataflow_ratio_text(d->lanes, out->arena));
    if (p->measured)
        text_measured(p, out);
    if (p->measured && p->measured->stage_count > 0)
        text_stages(p, out);
}

const char *dataflow_text(const dataflow_listing *l)
{
    const module *m = l->compilation->module;
    const dataflow_model *slowest = NULL;
    strbuf out;
    strbuf_init(&out, l->compilation->arena);
    for (size_t i = 0; i < m->dataflow_count; i++) {
        const dataflow_model *d = m->dataflows[i];
        strbuf_printf(&out, "%s: dataflow, line %" PRIu32 "\n", d->name, dataflow_line(l, d->range));
        text_model(d, true, &out);
        slowest = !slowest || d->latency > slowest->latency ? d : slowest;
    }
    if (m->dataflow_count > 1)
        strbuf_printf(&out, "slowest of the items: %s, %" PRId64 " cycles between inferences of a chain of them\n", slowest->name,
                      slowest->latency);
    for (size_t i = 0; i < l->count; i++)
        text_place(&l->places[i], &out);
    return out.text;
}
