#include "runtime/field/inputs.h"

enum { WORDS = 2, WORD_BYTES = 4 };

static const unsigned char *number_bytes(const field_inputs *x, uint32_t number, arena *a)
{
    unsigned char *bytes = ARENA_ARRAY(a, unsigned char, WORDS *WORD_BYTES);
    for (uint32_t i = 0; i < (x->rows[number].wide ? WORDS : 1); i++)
        for (uint32_t k = 0; k < WORD_BYTES; k++)
            bytes[i * WORD_BYTES + k] = (unsigned char)(field_inputs_value(x, number, i) >> 8 * k);
    return bytes;
}

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
    field_inputs out = {.seed = seed, .rows = rows};
    const unsigned char **numbers = ARENA_ARRAY(a, const unsigned char *, (size_t)k->port_count + 1);
    for (uint32_t i = 0; i < k->port_count; i++)
        numbers[i] = rows[i].count > 0 ? number_bytes(&out, i, a) : NULL;
    out.numbers = numbers;
    return out;
}

void field_inputs_values(const field_inputs *x, uint32_t number, const int32_t *elements, int64_t count, field_value *out)
{
    bool drawn = x->rows[number].count > 0;
    for (int64_t i = 0; i < count; i++)
        out[i] = drawn ? field_inputs_value(x, number, (uint64_t)elements[i]) : (uint64_t)elements[i];
    if (!drawn)
        field_inputs_at(field_input_key(x->seed, number), out, count);
}

void field_inputs_run(const field_inputs *x, uint32_t number, int64_t element, int64_t step, int64_t count, field_value *out)
{
    if (x->rows[number].count == 0) {
        field_inputs_from(field_input_key(x->seed, number), (uint64_t)element, step, count, out);
        return;
    }
    for (int64_t i = 0; i < count; i++, element += step)
        out[i] = field_inputs_value(x, number, (uint64_t)element);
}

static bool is_input(const einsum *e, const port *ports, uint32_t tensor)
{
    return e->tensors[tensor].port >= 0 && ports[e->tensors[tensor].port].direction == PORT_IN;
}

/* Is the tensor an input, or made by copies of such alone? */
static bool is_given(const einsum *e, const port *ports, uint32_t before, uint32_t tensor)
{
    for (uint32_t i = before; i-- > 0;) {
        const einsum_statement *s = &e->statements[i];
        if (s->dst != tensor)
            continue;
        if (s->op == MATH_MAP && s->digit_count == 0 && s->source_count > 0) { /* a condition on numbers of the launch */
            bool given = true;
            for (uint32_t n = 0; n < s->source_count; n++)
                given = given && is_input(e, ports, s->sources[n]);
            return given;
        }
        if (s->op != MATH_COPY)
            return false;
        tensor = s->sources[0];
    }
    return is_input(e, ports, tensor);
}

const char *field_computed_list(const einsum *e, const port *ports)
{
    for (uint32_t i = 0; i < e->statement_count; i++)
        for (uint32_t k = 0; k < einsum_index_count(&e->statements[i]) + e->statements[i].counted; k++)
            if (!is_given(e, ports, i, e->statements[i].sources[k + 1]))
                return e->tensors[e->statements[i].sources[k + 1]].name;
    return NULL;
}
