/* The functions of stream programs as mathematics: real numbers, each with how far the machine's may be from it.
 *
 * The one idea: nothing is computed as the simulator does it. Sums and functions are those of real numbers, in double; with each comes
 * a bound of what f32 and the stream's own type can have lost on the way to it, whatever the order of a sum. So a number that is
 * further away is wrong, and how many bits that takes is known. */
#ifndef VISA_RUNTIME_STEP_MATHEMATICS_H
#define VISA_RUNTIME_STEP_MATHEMATICS_H

#include "runtime/step/nested.h"

typedef struct mathematics {
    const step_node *node;
    const step_type *type;  /* of the result */
    const step_type *types; /* of the program */
    arena *arena;
    const char *why; /* it says nothing of this node */
} mathematics;

/* NULL with m->why. */
const nested_value *mathematics_map(mathematics *m, const nested_value *const *in, uint32_t count);
/* What an accumulator is after a value; NULL before the first one. */
const nested_value *mathematics_fold(mathematics *m, const nested_value *accumulator, const nested_value *const *in, uint32_t count);
/* What a fold shows: rounded; of nothing the value that changes nothing. */
const nested_value *mathematics_shown(mathematics *m, const nested_value *accumulator);
/* The stream that a value becomes. */
bool mathematics_flat(mathematics *m, const nested_value *const *in, uint32_t count, nested *to, int64_t *values);

/* A tile, every number of it exact. */
const nested_value *mathematics_exact(const float *numbers, int64_t rows, int64_t columns, int64_t valid, arena *a);
/* Of element i of a tile. */
double mathematics_number(const nested_value *tile, int64_t i);
double mathematics_error(const nested_value *tile, int64_t i);
/* Two numbers of one name are one number of the machine, however little is known of it. Names are even. */
uint64_t mathematics_name(const nested_value *tile, int64_t i);
/* The numbers that one of that type may be, when it was rounded from x, known up to an error. */
void mathematics_round(dtype t, double *x, double *error);

#endif
