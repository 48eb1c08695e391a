/* The Vector Engine's operations on elements, as the machine does them.
 *
 * The one idea: an operation is a function of three words, run over arrays: of the operands those that it has are read. This is the meaning
 * in the machine; what the reference computes is an expression of its own (target/vector.h). Float results that are NaN are 0x7fc00000,
 * so that all processors agree. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_OPS_H
#define VISA_RUNTIME_ENGINE_VECTOR_OPS_H

#include "runtime/engine/stream.h"
#include "runtime/machine/cpu.h"
#include "target/vector.h"

/* An operand: a word for each element (step 1), or one for all of them (step 0). */
typedef struct vector_operand {
    const stream_word *words;
    int64_t step; /* words */
} vector_operand;

/* out[i] = op(operands[0][i], ..): as many operands as the operation has. `out` may be one of them. */
typedef void (*vector_function)(stream_word *out, const vector_operand *operands, int64_t count);

/* The operations as loops for a processor's level; all give the same bits. */
typedef struct vector_set vector_set;

/* Those of the highest level that this processor has, up to `most`. */
const vector_set *vector_set_of(cpu_level most);
/* NULL: no operation has the code. */
vector_function vector_function_of(const vector_set *set, unsigned code);
/* Sets the bit in the tag of each element of which the comparison holds. */
void vector_compare_all(const vector_set *set, stream_word *tags, unsigned bit, const vector_comparison *c, dtype type,
                        const stream_word *words, int64_t count);
/* words[i] = others[i] where the tag is one of `tags`: bit t. */
void vector_select(const vector_set *set, stream_word *words, const stream_word *others, const stream_word *tag_of, unsigned tags,
                   int64_t count);

#endif
