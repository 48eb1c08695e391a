/* Which elements of an input are rows that a gather or scatter can take, or a count of them.
 *
 * The one idea: who makes numbers up for an input must make lists of rows that exist, since others stop a run; the statements say what is a
 * list, and how many rows there are. */
#ifndef VISA_CODEGEN_INDEX_VALUES_H
#define VISA_CODEGEN_INDEX_VALUES_H

#include "codegen/container.h"

enum { INDEX_BOUNDS = 32 };

/* 0, unit, 2 * unit, .. : `count` of them. */
typedef struct index_values {
    int64_t unit, count;
    bool counts;                  /* it says how many, or decides whether: none, one and all are more to be looked at than the others */
    bool rows;                    /* it is a row, or made of one, that has to exist */
    bool wide;                    /* the second element is the high half of the number */
    int32_t bounds[INDEX_BOUNDS]; /* on both sides of where a condition changes its mind, of 32 bits */
    uint32_t bound_count;
} index_values;

/* One of them, for the element: of what counts each fourth time none, one, all, and any; three times of four a bound, where there
 * are bounds. Both halves of a number get the same `random`: index_values_place says whose that is. */
static inline int64_t index_values_draw(const index_values *x, int64_t element, uint64_t random)
{
    bool high = x->wide && element == 1; /* mostly the low half's sign */
    if (high && x->rows)
        return 0;
    if (x->bound_count > 0 && !x->rows && random / 4 % 4 != 0) {
        int32_t next = x->bounds[random / 16 % x->bound_count];
        return !high || random / 16 / x->bound_count % 8 == 0 ? next : next < 0 ? -1 : 0;
    }
    int64_t any = (int64_t)(random / 4 % (uint64_t)x->count) * x->unit;
    if (!x->counts)
        return (int64_t)(random % (uint64_t)x->count) * x->unit;
    if (high)
        return random % 8 == 7 ? -1 : 0;
    switch (random % 4) {
    case 0: return 0;
    case 1: return x->count > 1 ? x->unit : 0;
    case 2: return (x->count - 1) * x->unit;
    default: return any;
    }
}

static inline int64_t index_values_place(const index_values *x, int64_t element)
{
    return x->wide ? 0 : element;
}

/* False: the port is no list, nor is one made of it by copies and products with a constant. The arena is scratch. */
bool index_values_of_port(const binary_kernel *k, uint32_t number, arena *scratch, index_values *out);

#endif
