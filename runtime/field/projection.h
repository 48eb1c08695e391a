/* An output as one number: each element times a product of random factors, one for each of its coordinates, and all of that summed.
 *
 * The one idea: of a product of matrices the number is known without the product. The factors of the rows are summed over the rows of
 * one source, those of the columns over the columns of the other, and only what is left is multiplied (R. Freivalds 1977); the machine's
 * side of it is sums.h. Over coordinates and inputs the number is a polynomial, of the elements' degree and one more for each axis, in
 * which no two elements have a monomial in common: two outputs that differ in any element have the same number with the probability
 * that Schwartz and Zippel say. */
#ifndef VISA_RUNTIME_FIELD_PROJECTION_H
#define VISA_RUNTIME_FIELD_PROJECTION_H

#include "codegen/container.h"
#include "runtime/field/inputs.h"

/* The factors of a tensor. */
typedef struct field_factors {
    uint32_t rank;
    int64_t *sizes;    /* of its axes */
    field_value **of;  /* by axis, by coordinate */
    field_value *held; /* where they are */
} field_factors;

/* False: no memory. Freed in either case. */
bool field_factors_new(const einsum *e, uint32_t tensor, uint64_t seed, field_factors *out);
void field_factors_free(field_factors *f);
/* Of elements side by side, from an element on. */
void field_factors_of(const field_factors *f, int64_t element, int64_t count, field_value *out);

/* Is the tensor made by contractions of inputs alone, whose projection is known without their products? */
bool field_projects(const binary_kernel *k, const field_inputs *inputs, uint32_t tensor);
/* Its projection; it projects. False: no memory. */
bool field_projection(const binary_kernel *k, const field_inputs *inputs, uint32_t tensor, const field_factors *factors, unsigned threads,
                      field_value *out);

#endif
