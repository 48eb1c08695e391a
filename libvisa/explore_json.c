/* What --explore finds, as JSON for programs. */
#include <jansson.h>
#include <stdlib.h>

#include "libvisa/explore.h"

/* {"x": [1, 49], "w": [16, 1]}: iPar and wPar of each interface. */
static json_t *choice_json(const explore *x, const int64_t *choice)
{
    json_t *out = json_object();
    for (size_t i = 0; i < x->model->count; i++) {
        const dataflow_interface *face = &x->model->interfaces[i];
        if (face->kind != DATAFLOW_INPUT && face->kind != DATAFLOW_WEIGHT)
            continue;
        json_t *numbers = json_array();
        for (uint32_t d = 0; d < face->rank; d++)
            json_array_append_new(numbers, json_integer(1));
        for (size_t k = 0; k < x->parameter_count; k++)
            if (x->parameters[k].interface == i)
                json_array_set_new(numbers, x->parameters[k].dimension, json_integer(x->parameters[k].divisors[choice[k]]));
        json_object_set_new(out, face->name, numbers);
    }
    return out;
}

static json_t *point_json(const explore *x, const explore_point *p)
{
    int64_t *choices;
    size_t ways = explore_ways(x, p, &choices);
    json_t *list = json_array();
    explore_cost cost = explore_cost_of(x, choices);
    for (size_t i = 0; i < ways; i++) {
        const int64_t *way = choices + i * x->parameter_count;
        explore_cost c = explore_cost_of(x, way);
        json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:I, s:I}", "parallel", choice_json(x, way), "weight_bits",
                                              (json_int_t)c.weight_bits, "input_bits", (json_int_t)c.input_bits, "block_bits",
                                              (json_int_t)c.block_bits, "rows", (json_int_t)c.rows));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "L", (json_int_t)cost.latency, "multipliers", (json_int_t)cost.multipliers, "ways",
                     (json_int_t)p->ways, "choices", list);
}

static json_t *json_limit(int64_t limit)
{
    return limit ? json_integer(limit) : json_null();
}

/* `only`: one point instead of all of the front. */
static json_t *explore_json_item(const explore *x, const explore_point *only)
{
    const explore_limits *l = &x->limits;
    json_t *front = json_array();
    for (size_t i = 0; i < (only ? 1 : x->count); i++)
        json_array_append_new(front, point_json(x, only ? only : &x->front[i]));
    return json_pack("{s:s, s:I, s:I, s:{s:o, s:o, s:o, s:o, s:o, s:o}, s:o}", "model", x->model->name, "points", (json_int_t)x->points,
                     "within_limits", (json_int_t)x->legal, "limits", "multipliers", json_limit(l->multipliers), "weight_bits",
                     json_limit(l->weight_bits), "input_bits", json_limit(l->input_bits), "block_bits", json_limit(l->block_bits), "rows",
                     json_limit(l->rows), "cycles", json_limit(l->cycles), "front", front);
}

static void put(json_t *root, strbuf *out)
{
    json_object_set_new(root, "format", json_integer(1));
    char *text = json_dumps(root, JSON_INDENT(1));
    strbuf_printf(out, "%s\n", text ? text : "");
    free(text);
    json_decref(root);
}

void explore_json(const explore *x, strbuf *out)
{
    put(explore_json_item(x, NULL), out);
}

static json_t *link_json(const network *n, size_t at)
{
    const network_link *l = &n->links[at];
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "from", n->items[at].model->name, "output", l->out.name, "to",
                     n->items[at + 1].model->name, "input", l->in.name, "elements_out", (json_int_t)l->elements_out, "elements_in",
                     (json_int_t)l->elements_in, "word_out", (json_int_t)l->out.shape.elements, "word_in", (json_int_t)l->in.shape.elements,
                     "width_converter", l->converts);
}

void network_json(const network *n, strbuf *out)
{
    json_t *items = json_array(), *links = json_array(), *front = n->chain ? json_array() : NULL;
    for (size_t i = 0; i < n->count; i++)
        json_array_append_new(items, explore_json_item(&n->items[i], n->points[i]));
    for (size_t i = 0; i + 1 < n->count; i++)
        json_array_append_new(links, link_json(n, i));
    for (size_t i = 0; n->chain && i < n->chain->front_count; i++)
        json_array_append_new(front, json_pack("{s:I, s:I}", "L", (json_int_t)n->chain->front[i].latency, "multipliers",
                                               (json_int_t)n->chain->front[i].multipliers));
    json_t *root = json_pack("{s:s, s:o, s:I, s:I, s:s, s:o, s:o}", "search", n->chain ? "chain" : "folding", "target_cycles",
                             json_limit(n->target), "L", (json_int_t)n->latency, "multipliers", (json_int_t)n->multipliers, "bottleneck",
                             n->bottleneck, "items", items, "links", links);
    if (!n->chain)
        json_object_set_new(root, "second_target", json_integer(n->second));
    else
        json_object_update_new(root, json_pack("{s:o, s:o}", "front", front, "multipliers_limit", json_limit(n->limit)));
    if (n->clock_hz)
        json_object_set_new(root, "inferences_per_second", json_real((double)n->clock_hz * (double)n->batch / (double)n->latency));
    put(root, out);
}
