#include "runtime/field/inputs.h"

field_inputs field_inputs_new(const binary_kernel *k, uint64_t seed, arena *a)
{
    index_values *rows = ARENA_ARRAY(a, index_values, (size_t)k->port_count + 1);
    for (uint32_t i = 0; i < k->port_count; i++) {
        int64_t most = rows[i].count;
        if (k->ports[i].direction == PORT_IN && index_values_of_port(k, i, a, &rows[i])) {
            most = INT32_MAX / rows[i].unit + 1;
            rows[i].count = rows[i].count < most ? rows[i].count : most;
        }
    }
    return (field_inputs){seed, rows};
}

/* Is the tensor an input, or made by copies of such alone? */
static bool is_given(const einsum *e, const port *ports, uint32_t before, uint32_t tensor)
{
    for (uint32_t i = before; i-- > 0;) {
        const einsum_statement *s = &e->statements[i];
        if (s->dst != tensor)
            continue;
        if (s->op != MATH_COPY)
            return false;
        tensor = s->sources[0];
    }
    return e->tensors[tensor].port >= 0 && ports[e->tensors[tensor].port].direction == PORT_IN;
}

const char *field_computed_list(const einsum *e, const port *ports)
{
    for (uint32_t i = 0; i < e->statement_count; i++)
        for (uint32_t k = 0; k < einsum_index_count(&e->statements[i]) + e->statements[i].counted; k++)
            if (!is_given(e, ports, i, e->statements[i].sources[k + 1]))
                return e->tensors[e->statements[i].sources[k + 1]].name;
    return NULL;
}
