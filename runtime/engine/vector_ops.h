/* The Vector Engine's operations on elements, as the machine does them.
 *
 * The one idea: an operation is a function of three words, run over arrays: of the operands those that it has are read. This is the meaning
 * in the machine; what the reference computes is an expression of its own (target/vector.h). Float results that are NaN are 0x7fc00000,
 * so that all processors agree. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_OPS_H
#define VISA_RUNTIME_ENGINE_VECTOR_OPS_H

#include "runtime/engine/stream.h"
#include "target/vector.h"

/* An operand: a word for each element (step 1), or one for all of them (step 0). */
typedef struct vector_operand {
    const stream_word *words;
    int64_t step; /* words */
} vector_operand;

/* out[i] = op(operands[0][i], ..): as many operands as the operation has. `out` may be one of them. */
typedef void (*vector_function)(stream_word *out, const vector_operand *operands, int64_t count);

/* Sets the bit in the tag of each element of which the comparison holds. */
void vector_compare_all(stream_word *tags, unsigned bit, vector_compare compare, dtype type, const stream_word *words, stream_word with,
                        int64_t count);

/* NULL: no operation has the code. */
vector_function vector_function_of(unsigned code);

#endif
