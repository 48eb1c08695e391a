#include <jansson.h>
#include <stdlib.h>

#include "ir/dataflow/dataflow_symbolic.h"
#include "libvisa/dataflow.h"
#include "support/integer.h"
#include "support/json_text.h"

static json_t *json_sizes(const int64_t *list, uint32_t rank)
{
    json_t *j = json_array();
    for (uint32_t i = 0; i < rank; i++)
        json_array_append_new(j, json_integer(list[i]));
    return j;
}

/* 3, or "1/16" where it is no integer. */
static json_t *json_ratio(dataflow_ratio r, arena *a)
{
    return r.bottom == 1 ? json_integer(r.top) : json_string(dataflow_ratio_text(r, a));
}

static void json_stream(json_t *j, const dataflow_interface *i, arena *a)
{
    json_object_set_new(j, "stream_elements", json_ratio(i->stream, a));
    if (i->kind == DATAFLOW_OUTPUT)
        json_object_set_new(j, "physical_elements", json_ratio(i->physical, a));
    if (i->bits == 0)
        return;
    json_object_set_new(j, "element_bits", json_integer(i->bits));
    json_object_set_new(j, "stream_bits", json_integer(dataflow_port_bits(i->stream, i->bits, false)));
    json_object_set_new(j, "port_bits", json_integer(dataflow_port_bits(i->physical, i->bits, true)));
}

/* The tensor as a grid of words: `folded_shape` in FINN's terms, and the same by block, in the order of the stream. */
static void json_shape(json_t *j, const dataflow_interface *i, arena *a)
{
    const dataflow_shape *s = &i->shape;
    const int64_t *all = i->kind == DATAFLOW_OUTPUT ? i->calculated : i->tensor;
    json_t *folded = json_sizes(s->folded, i->rank), *groups = json_array(), *parts = json_array();
    json_array_append_new(folded, json_integer(s->elements));
    for (uint32_t k = 0; k < i->rank; k++) {
        json_array_append_new(groups, json_integer(ceil_div(ceil_div(all[k], i->block[k]), s->across[k])));
        json_array_append_new(parts, json_integer(ceil_div(i->block[k], s->part[k])));
    }
    if (i->kind == DATAFLOW_OUTPUT)
        json_object_set_new(j, "calculated_tensor", json_sizes(i->calculated, i->rank));
    json_object_set_new(j, "tiled_shape",
                        json_pack("{s:o, s:o, s:o}", "blocks", groups, "words", parts, "word", json_sizes(s->word, i->rank)));
    json_object_set_new(j, "folded_shape", folded);
    json_object_set_new(j, "word_elements", json_integer(s->elements));
    json_object_set_new(j, "cycles_per_word", json_ratio(s->period, a));
    if (i->bits)
        json_object_set_new(j, "word_bits", json_integer(s->elements * i->bits));
}

static json_t *json_formulas(const dataflow_model *m, const dataflow_interface *i, arena *a)
{
    dataflow_symbols s = dataflow_symbolic(m, i, a);
    json_t *j = json_pack("{s:s}", "stream_elements", s.stream);
    if (s.cii)
        json_object_update_new(j, json_pack("{s:s, s:s, s:s}", "cII", s.cii, "eII", s.eii, "latency", s.latency));
    return j;
}

static json_t *json_interface(const dataflow_model *m, const dataflow_interface *i, bool formulas, arena *a)
{
    json_t *j = json_pack("{s:s}", "name", i->name);
    if (i->kind > DATAFLOW_OUTPUT) {
        json_object_set_new(j, "attributes", json_string(i->text));
        return j;
    }
    if (i->type)
        json_object_set_new(j, "dtype", json_string(i->type));
    if (i->tensor_rank)
        json_object_set_new(j, "tensor", json_sizes(i->tensor, i->tensor_rank));
    json_object_set_new(j, "block", json_sizes(i->block, i->rank));
    if (i->kind != DATAFLOW_OUTPUT) {
        json_object_set_new(j, i->kind == DATAFLOW_INPUT ? "iPar" : "wPar", json_sizes(i->parallel, i->parallel_rank));
        json_object_set_new(j, "num_blocks", json_integer(i->num_blocks));
    }
    json_object_set_new(j, "block_elements", json_integer(i->block_elements));
    json_stream(j, i, a);
    json_shape(j, i, a);
    if (i->kind == DATAFLOW_INPUT) {
        json_object_set_new(j, "cII", json_integer(i->cii));
        json_object_set_new(j, "eII", json_integer(i->eii));
        json_object_set_new(j, "latency", json_integer(i->latency));
    }
    if (formulas)
        json_object_set_new(j, "formulas", json_formulas(m, i, a));
    return j;
}

/* `formulas`: what is chosen is still open, as in an item. */
static json_t *json_model(const dataflow_model *m, uint32_t line, bool formulas, arena *a)
{
    static const char *const lists[] = {"inputs", "weights", "outputs", "config", "control"};
    json_t *j = json_pack("{s:s, s:I}", "name", m->name, "line", (json_int_t)line);
    size_t inputs_before = 0;
    for (int kind = 0; kind <= DATAFLOW_CONTROL; kind++) {
        json_t *list = json_array();
        for (size_t i = 0; i < m->count; i++)
            if (m->interfaces[i].kind == (dataflow_kind)kind)
                json_array_append_new(list, json_interface(m, &m->interfaces[i], formulas, a));
        json_object_set_new(j, lists[kind], list);
    }
    for (size_t i = 0; i < m->bottleneck; i++)
        inputs_before += m->interfaces[i].kind == DATAFLOW_INPUT;
    json_object_set_new(j, "L", json_integer(m->latency));
    if (dataflow_multipliers(m) >= 0)
        json_object_set_new(j, "multipliers", json_integer(dataflow_multipliers(m)));
    if (formulas)
        json_object_set_new(j, "formula_L", json_string(dataflow_symbolic_latency(m, a)));
    json_object_set_new(j, "bottleneck_input", json_integer((json_int_t)inputs_before));
    json_object_set_new(j, "batch", json_integer(m->batch));
    json_object_set_new(j, "padding_elements", json_integer(m->padding));
    if (m->clock_hz) {
        json_object_set_new(j, "clock_hz", json_integer(m->clock_hz));
        json_object_set_new(j, "inferences_per_second", json_real(dataflow_rate(m)));
    }
    return j;
}

/* Each engine of the chain: what the model says of it, next to the cycles in which it is busy. */
static json_t *json_stages(const dataflow_place *p, arena *a)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->measured->stage_count; i++) {
        const visa_stage *one = &p->measured->stages[i];
        dataflow_stage s = dataflow_stage_of(p->contraction, one->side);
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:I, s:I}", "engine", one->engine, "cII", json_ratio(s.cii, a), "eII",
                                        json_ratio(s.eii, a), "L", (json_int_t)s.latency, "measured_cycles", (json_int_t)one->busy_cycles));
    }
    return list;
}

static json_t *json_place(const dataflow_place *p, arena *a)
{
    const dataflow_contraction *d = p->contraction;
    json_t *j = json_model(d->model, p->line, false, a);
    json_object_set_new(j, "compute_cycles", json_integer(d->compute_cycles));
    json_object_set_new(j, "stream_cycles", json_integer(d->stream_cycles));
    json_object_set_new(j, "load_flits", json_integer(d->load_flits));
    json_object_set_new(j, "binds", json_string(d->stream_cycles > d->compute_cycles ? "stream" : "reducer"));
    json_object_set_new(j, "cycles", json_integer(p->cycles));
    json_object_set_new(j, "lanes_with_data", json_ratio(d->lanes, a));
    if (p->measured)
        json_object_set_new(j, "cycle_model",
                            json_pack("{s:I, s:I, s:I, s:I, s:s, s:s}", "cycles", (json_int_t)p->measured->cycles, "fill_cycles",
                                      (json_int_t)p->measured->fill_cycles, "drain_cycles", (json_int_t)p->measured->drain_cycles,
                                      "load_cycles", (json_int_t)p->measured->load_cycles, "binds", p->measured->engine, "formula",
                                      p->measured->formula));
    if (p->measured)
        json_object_set_new(j, "stages", json_stages(p, a));
    return j;
}

const char *dataflow_json(const dataflow_listing *l)
{
    const module *m = l->compilation->module;
    arena *a = l->compilation->arena;
    json_t *items = json_array(), *contractions = json_array();
    for (size_t i = 0; i < m->dataflow_count; i++)
        json_array_append_new(items, json_model(m->dataflows[i], dataflow_line(l, m->dataflows[i]->range), true, a));
    for (size_t i = 0; i < l->count; i++)
        json_array_append_new(contractions, json_place(&l->places[i], a));
    json_t *root = json_pack("{s:i, s:s, s:o, s:o}", "format", 1, "visac", VISA_VERSION, "items", items, "contractions", contractions);
    return json_dump_text(root, JSON_INDENT(2), a);
}
