/* Sums of products of a packet's lanes and the weights of many Rows: what most of the machine's time over a field goes into.
 *
 * The one idea: what a processor multiplies best differs (64 x 64 bits one by one, eight times 52 x 52 with AVX-512 IFMA), and a residue is
 * a residue: every way gives the same values. */
#ifndef VISA_RUNTIME_FIELD_PRODUCT_H
#define VISA_RUNTIME_FIELD_PRODUCT_H

#include "runtime/field/value.h"

/* A packet of `columns` sums of `width` lanes each; the weights of the next Row are `row_values` after those of one. */
typedef struct field_packet {
    const field_value *lanes, *weights;
    int64_t row_values, rows, columns, width;
} field_packet;

/* out[Row * columns + column] */
typedef void field_products(const field_packet *p, field_value *out);

/* The fastest of this processor; that of any. */
field_products *field_products_best(void);
field_products field_products_portable;

#endif
