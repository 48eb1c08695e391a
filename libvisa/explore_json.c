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
        json_array_append_new(list, json_pack("{s:o, s:I, s:I}", "parallel", choice_json(x, way), "weight_bits", (json_int_t)c.weight_bits,
                                              "input_bits", (json_int_t)c.input_bits));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "L", (json_int_t)cost.latency, "multipliers", (json_int_t)cost.multipliers, "ways",
                     (json_int_t)p->ways, "choices", list);
}

static json_t *explore_json_item(const explore *x)
{
    json_t *front = json_array();
    for (size_t i = 0; i < x->count; i++)
        json_array_append_new(front, point_json(x, &x->front[i]));
    return json_pack("{s:s, s:I, s:I, s:o}", "model", x->model->name, "points", (json_int_t)x->points, "within_limits",
                     (json_int_t)x->legal, "front", front);
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
    put(explore_json_item(x), out);
}

void explore_chain_json(const explore *items, size_t count, const explore_chain *chain, strbuf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, explore_json_item(&items[i]));
    put(json_pack("{s:I, s:I, s:I, s:I, s:s, s:o}", "target_cycles", (json_int_t)chain->target, "second_target", (json_int_t)chain->second,
                  "L", (json_int_t)chain->latency, "multipliers", (json_int_t)chain->multipliers, "bottleneck", chain->bottleneck, "items",
                  list),
        out);
}
