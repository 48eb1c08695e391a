/* Element conversions, a whole run at a time.
 *
 * The one idea: the pair of types is looked up once per chain and gives a kernel for a run of elements; the
 * rules for single values are runtime/tensor/numeric.h. */
#ifndef VISA_RUNTIME_TENSOR_CONVERT_H
#define VISA_RUNTIME_TENSOR_CONVERT_H

#include <stdint.h>

#include "target/target.h"

/* `from` and `to` are packed elements (i4: element 0 in the low nibble, the run starts at a byte). */
typedef void convert_run(unsigned char *to, const unsigned char *from, int64_t elements);

/* Conversions of the fetch path: identity is not one of them. NULL: there is no such conversion. */
convert_run *convert_fetch(dtype from, dtype to);
/* What a table of the fetch path makes of each code. NULL: there is no such table. */
convert_run *convert_lookup(dtype from, dtype to);
/* On the way to DM. NULL: there is no such conversion. */
convert_run *convert_commit(dtype from, dtype to);
/* f32 to bf16; of a number with a sign +0. */
void convert_relu(unsigned char *to, const unsigned char *from, int64_t elements);
/* Narrowing of the Cast Engine: integers keep their low bits. */
convert_run *convert_cast(dtype from, dtype to);

/* Operand elements as floats, which hold every i4, i8, f8 and bf16 value exactly. NULL: not an operand. */
typedef void convert_lanes(float *to, const unsigned char *from, int64_t elements);
/* The fastest one for this processor, and the one for any; both give the same bits. */
convert_lanes *convert_operand(dtype from);
convert_lanes *convert_operand_portable(dtype from);

#endif
