/* Products in functions of tiles, taken out of them.
 *
 * The one idea: a product of two tiles that come in with the streams is as well made outside it, by an operator of its own; then
 * the function is given what it is, with the streams that it still needs. What needs the state, or what the function itself makes, stays.
 */
#ifndef VISA_PASSES_STEP_PRODUCT_H
#define VISA_PASSES_STEP_PRODUCT_H

#include "ir/step/graph.h"

typedef struct step_product {
    uint32_t leaves[2]; /* tiles of the streams, counted over all of them; the state is none of them */
    bool transposed;
} step_product;

/* Products of tiles that come in, in the order of instructions; what is multiplied twice is one product. */
uint32_t step_products_of(const step_formula *f, const step_product **out, arena *a);

/* By tile of the streams: is it taken where the products are not made? */
const bool *step_product_needs(const step_formula *f, const step_product *products, uint32_t count, arena *a);

/* The function that is given the tiles for which `kept` holds, and after them the products. */
const step_formula *step_product_without(const step_formula *f, const step_product *products, uint32_t count, const bool *kept, arena *a);

#endif
