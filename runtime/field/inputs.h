/* The inputs of a proof: a value of the field for each element, the same for the machine and the reference.
 *
 * The one idea: lists of rows keep numbers, since a place is no polynomial: their elements are rows that exist, drawn with the same seed.
 */
#ifndef VISA_RUNTIME_FIELD_INPUTS_H
#define VISA_RUNTIME_FIELD_INPUTS_H

#include "codegen/index_values.h"
#include "runtime/field/value.h"

typedef struct field_inputs {
    uint64_t seed;
    const index_values *rows; /* by port; count 0: it is no list */
    const unsigned char *const
        *numbers; /* by port, little-endian: where there are rows, the first element, a number of the launch; else NULL */
} field_inputs;

field_inputs field_inputs_new(const binary_kernel *k, uint64_t seed, arena *a);

static inline field_value field_inputs_value(const field_inputs *x, uint32_t number, uint64_t element)
{
    const index_values *rows = &x->rows[number];
    if (rows->count == 0)
        return field_input(x->seed, number, element);
    field_value v = field_input(x->seed, number, (uint64_t)index_values_place(rows, (int64_t)element));
    int64_t drawn = index_values_draw(rows, (int64_t)element, v);
    return (field_value)(drawn < 0 ? 0 : drawn);
}

/* Of elements by number. */
void field_inputs_values(const field_inputs *x, uint32_t number, const int32_t *elements, int64_t count, field_value *out);

/* Of elements `step` apart. */
void field_inputs_run(const field_inputs *x, uint32_t number, int64_t element, int64_t step, int64_t count, field_value *out);

/* The number that a list's element is; -1: it is none, something was computed. */
static inline int64_t field_number(field_value v)
{
    return v <= INT32_MAX ? (int64_t)v : -1;
}

/* A list that the kernel computes, or that is no input; NULL: there is none. The algebra has no number for its elements. */
const char *field_computed_list(const einsum *e, const port *ports);

#endif
