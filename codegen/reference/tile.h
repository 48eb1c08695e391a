/* Which instruction multiplies, and how many rows and columns stay in registers and caches.
 *
 * The one idea: registers bound a tile, the nearest cache a column panel, the next one a block of sums; every size follows from these
 * and the product's own sizes. */
#ifndef VISA_CODEGEN_REFERENCE_TILE_H
#define VISA_CODEGEN_REFERENCE_TILE_H

#include "codegen/reference/plan.h"

/* Columns that so many rows read at most are not worth packing all at once: the first row tile keeps them for the others. */
enum { TILE_KEPT_ROWS = 64 };

static inline int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Are all columns of a type near enough to be read again and again where they lie? */
bool tile_columns_near(const plan_machine *m, const plan_tile *t, dtype type, int64_t columns, int64_t depth);
/* Does the product widen elements that it reads in place? */
bool tile_takes_in_place(plan_product product, dtype type);
/* Of the values, and of what bounds are made from. */
void tile_choose(const reference_plan *plan, plan_statement *p);
/* Are the columns of each unit side by side in their source, and the units equally far apart? */
bool tile_columns_run(const einsum *e, const plan_statement *p);

#endif
