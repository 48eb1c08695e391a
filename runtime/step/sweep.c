#include "runtime/step/sweep.h"

#include <jansson.h>

#include "support/strbuf.h"

const char *step_sweep_head(const char *names, bool limited, arena *a)
{
    const char *spilled = limited ? arena_printf(a, " %14s %14s", "do not fit", "spilled") : "";
    return arena_printf(a, "%s           stream program   %14s %14s %14s %14s%s\n", names, "off-chip bytes", "on-chip, paper", "artifact",
                        "FLOPs", spilled);
}

/* Columns of a chip that holds a limited number of bytes. */
static const char *spilled_text(const json_t *total, arena *a)
{
    const char *const keys[] = {"spilled_bytes", "spill_traffic_bytes"};
    const char *text = "";
    for (int i = 0; i < 2 && json_object_get(total, "onchip_capacity"); i++) {
        const json_t *value = json_object_get(total, keys[i]);
        const char *number = json_is_integer(value) ? arena_printf(a, "%lld", (long long)json_integer_value(value)) : "?";
        text = arena_printf(a, "%s %14s", text, number);
    }
    return text;
}

static const char *cost_text(const json_t *cost, arena *a)
{
    const json_t *value = json_object_get(cost, "value");
    const char *expr = json_string_value(json_object_get(cost, "expr"));
    if (json_is_integer(value))
        return arena_printf(a, "%lld", (long long)json_integer_value(value));
    return expr ? arena_strdup(a, expr) : "?";
}

const char *step_sweep_rows(const char *costs, const char *values, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    json_t *list = json_loads(costs, 0, NULL);
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const json_t *total = json_object_get(one, "total"), *onchip = json_object_get(total, "onchip_bytes");
        strbuf_printf(&s, "%s  legal    %-16s %14s %14s %14s %14s%s\n", values, json_string_value(json_object_get(one, "program")),
                      cost_text(json_object_get(total, "offchip_bytes"), a), cost_text(json_object_get(onchip, "paper"), a),
                      cost_text(json_object_get(onchip, "artifact"), a), cost_text(json_object_get(total, "flops"), a),
                      spilled_text(total, a));
    }
    json_decref(list);
    return s.text;
}
