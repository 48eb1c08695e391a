/* Sums of products that nobody multiplies before it is known what becomes of them.
 *
 * The one idea: where a sum is only moved on, to outputs, the machine moves a name of it, and keeps the pages that its slice read. In the
 * end each name has a factor, that of the output's element in which it was found (projection.h), and what is wanted is the sum over all
 * names of factor times sum. It is linear in the packets and in the weights: of all steps that read the same weights the packets are
 * added up first, each times its factor, and of the weights the Rows, so that a product of a thousand rows and columns takes the work of
 * two. Factors of an output are products of its coordinates' factors, so slices that read the same pages mostly need the same sums,
 * but for one factor, and share them. */
#ifndef VISA_RUNTIME_FIELD_SUMS_H
#define VISA_RUNTIME_FIELD_SUMS_H

#include "runtime/field/engine.h"

typedef struct field_sums field_sums;

/* NULL: no memory. */
field_sums *field_sums_new(void);
void field_sums_free(field_sums *s);

/* Does the chain give on all that it reads, as it is? */
bool field_sums_moved(const chain *c);
/* Are sums of the chain only moved on? */
bool field_sums_named(const chain *c);
/* The chain, event number `time`, is about to run in these slices, and leaves names. The name of the first slice's first sum; that of the
 * next slice's is FIELD_NAMES_APART further. 0: no memory. */
field_value field_sums_begin(field_sums *s, const field_machine *m, const chain *c, size_t time, const int64_t *units, size_t count);

/* The sums of a slice with the names from `first` on are wanted so many times more each. False: no memory. */
bool field_sums_want(field_sums *s, field_value first, const field_value *factors, int64_t count);
/* All that is wanted. False: no memory, a fault, or the factors have no form that makes it less work than the products. */
bool field_sums_total(field_sums *s, field_machine *m, field_value *out);

#endif
