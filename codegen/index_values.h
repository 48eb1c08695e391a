/* Which elements of an input are rows that a gather or scatter can take, or say how many.
 *
 * The one idea: who makes numbers up for an input must make lists of rows that exist, since others stop a run; the statements say what is a
 * list, and how many rows there are. */
#ifndef VISA_CODEGEN_INDEX_VALUES_H
#define VISA_CODEGEN_INDEX_VALUES_H

#include "codegen/container.h"

/* 0, unit, 2 * unit, .. : `count` of them. */
typedef struct index_values {
    int64_t unit, count;
} index_values;

/* False: the port is no list, nor is one made of it by copies and products with a constant. The arena is scratch. */
bool index_values_of_port(const binary_kernel *k, uint32_t number, arena *scratch, index_values *out);

#endif
