/* The field of 2^61 - 1 elements, as the machine's algebra computes in it.
 *
 * The one idea: 2^61 is 1, so a product of 122 bits folds to its low 61 bits plus the others; a sum takes
 * products up as they are and folds them once in a while. The reference has an arithmetic of its own
 * (codegen/reference/field.c), and so has the judge in Python.
 *
 * What is no polynomial is an uninterpreted function: a keyed hash of the operation and its operands. */
#ifndef VISA_RUNTIME_FIELD_VALUE_H
#define VISA_RUNTIME_FIELD_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/tensor/mix.h"

typedef uint64_t field_value;

#define FIELD_PRIME ((UINT64_C(1) << 61) - 1)
/* No value: a cell that nobody wrote. */
#define FIELD_NOTHING UINT64_MAX
/* No value either, but the name of one (sums.h): of a slice's sums, one after the other. */
#define FIELD_NAME (UINT64_C(1) << 63)
#define FIELD_NAMES_APART (UINT64_C(1) << 32)

/* A sum of products that were not reduced yet: at most FIELD_MOST_PRODUCTS since it was folded. */
typedef unsigned __int128 field_sum;
enum { FIELD_MOST_PRODUCTS = 32 };

static inline bool field_is_name(field_value v)
{
    return v >> 63 && v != FIELD_NOTHING;
}

static inline field_value field_reduce(uint64_t x)
{
    x = (x & FIELD_PRIME) + (x >> 61);
    return x >= FIELD_PRIME ? x - FIELD_PRIME : x;
}

/* Below 2^68. */
static inline field_sum field_fold(field_sum x)
{
    return (x & FIELD_PRIME) + (x >> 61);
}

static inline field_value field_of_sum(field_sum x)
{
    x = field_fold(x);
    return field_reduce(((uint64_t)x & FIELD_PRIME) + (uint64_t)(x >> 61));
}

static inline field_value field_add(field_value a, field_value b)
{
    return field_reduce(a + b);
}

/* At most 2^61 - 1 each: the parts of the product add up to less than twice that. */
static inline field_value field_multiply(field_value a, field_value b)
{
    field_sum x = (field_sum)a * b;
    uint64_t sum = ((uint64_t)x & FIELD_PRIME) + (uint64_t)(x >> 61);
    return sum >= FIELD_PRIME ? sum - FIELD_PRIME : sum;
}

/* ---- keyed hashes ---- */

static inline uint64_t field_hash(uint64_t key, uint64_t x)
{
    return mix_word(mix_word(key + MIX_STEP) ^ (x + MIX_STEP));
}

static inline field_value field_of_hash(uint64_t hash)
{
    return (hash >> 3) == FIELD_PRIME ? 0 : hash >> 3;
}

/* Element `element` of port number `number`, the same for the machine and the reference. */
static inline uint64_t field_input_key(uint64_t seed, uint32_t number)
{
    return field_hash(seed, UINT64_C(0x100000000) + number);
}

static inline field_value field_input_at(uint64_t key, uint64_t element)
{
    return field_of_hash(field_hash(key, element));
}

/* The same of many: the number of each becomes its value. */
static inline void field_inputs_at(uint64_t key, uint64_t *elements, int64_t count)
{
    mix_words(&(mix_form){MIX_STEP, mix_word(key + MIX_STEP), 3, FIELD_PRIME}, elements, count);
}

static inline void field_inputs_from(uint64_t key, uint64_t first, int64_t step, int64_t count, field_value *out)
{
    mix_counted(&(mix_form){MIX_STEP, mix_word(key + MIX_STEP), 3, FIELD_PRIME}, first, (uint64_t)step, out, count);
}

static inline field_value field_input(uint64_t seed, uint32_t number, uint64_t element)
{
    return field_input_at(field_input_key(seed, number), element);
}

/* Functions of which nothing is known but their arguments: of an ordered list, one argument after the other.
 */
typedef struct field_function {
    uint64_t state;
} field_function;

static inline field_function field_function_begin(uint64_t seed, uint64_t operation)
{
    return (field_function){field_hash(field_hash(seed, UINT64_C(0x200000000)), operation)};
}

static inline void field_function_take(field_function *f, uint64_t argument)
{
    f->state = field_hash(f->state, argument);
}

static inline field_value field_function_end(const field_function *f)
{
    return field_of_hash(mix_word(f->state));
}

/* Of a multiset: operations that commute and associate. The terms' hashes are added. */
static inline void field_function_join(field_function *f, uint64_t seed, uint64_t operation, uint64_t argument)
{
    field_function one = field_function_begin(seed, operation);
    field_function_take(&one, argument);
    f->state += one.state;
}

#endif
