#include "libvisa/variants/sweep_items.h"

#include <jansson.h>

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* "[1, 784] i8 " for each interface of the list. */
static const char *tensors_of(const json_t *list, const char *text, arena *a)
{
    const json_t *face, *size;
    size_t i, k;
    json_array_foreach(list, i, face)
    {
        text = arena_printf(a, "%s[", text);
        json_array_foreach(json_object_get(face, "tensor"), k, size) text =
            arena_printf(a, "%s%s%lld", text, k ? ", " : "", (long long)json_integer_value(size));
        text = arena_printf(a, "%s] %s ", text, json_string_value(json_object_get(face, "dtype")));
    }
    return text;
}

static sweep_item item_of(const json_t *one, arena *a)
{
    const json_t *weights = json_object_get(one, "weights"), *inputs = json_object_get(one, "inputs"), *face;
    size_t i;
    sweep_item item = {.name = arena_strdup(a, json_string_value(json_object_get(one, "name"))),
                       .tensors = tensors_of(weights, tensors_of(inputs, "", a), a),
                       .latency = number(one, "L"),
                       .multipliers = json_object_get(one, "multipliers") ? number(one, "multipliers") : INT64_MAX,
                       .rate = json_number_value(json_object_get(one, "inferences_per_second"))};
    json_array_foreach(weights, i, face) item.weight_bits += number(face, "stream_bits");
    json_array_foreach(inputs, i, face) item.input_bits =
        number(face, "stream_bits") > item.input_bits ? number(face, "stream_bits") : item.input_bits;
    return item;
}

size_t sweep_items_read(const char *models, arena *a, sweep_item **out)
{
    json_t *root = json_loads(models, 0, NULL);
    const json_t *items = json_object_get(root, "items"), *one;
    size_t count = json_array_size(items), i;
    *out = ARENA_ARRAY(a, sweep_item, count + 1);
    json_array_foreach(items, i, one)(*out)[i] = item_of(one, a);
    json_decref(root);
    return count;
}
