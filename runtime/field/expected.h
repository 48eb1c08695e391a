/* What an output has to be over the field.
 *
 * The one idea: of a small kernel the reference (codegen/reference/field.c) computes every tensor; of a large
 * one an element is summed from its terms (codegen/einsum_terms.h), and what these read likewise; a chain of
 * statements that is too long for the stack is followed from its beginning on. Inputs are the keyed elements
 * that the machine gets, too. */
#ifndef VISA_RUNTIME_FIELD_EXPECTED_H
#define VISA_RUNTIME_FIELD_EXPECTED_H

#include "codegen/container.h"
#include "codegen/einsum_terms.h"
#include "runtime/field/inputs.h"
#include "runtime/field/value.h"

typedef struct field_expected field_expected;

/* NULL with a diagnostic. whole: all tensors are computed. */
field_expected *field_expected_new(const binary_kernel *k, const field_inputs *inputs, bool whole, unsigned threads, diag_list *diags);
void field_expected_free(field_expected *x);

/* An element of a tensor as the first `before` statements leave it: memory that is used again is written by several. False: it cannot be
 * known. */
bool field_expected_value(field_expected *x, uint32_t tensor, uint32_t before, int64_t element, field_value *out);

/* Tensor and element that have one of these values, which are told apart; tensors[i] EINSUM_NO_TENSOR: none
 * has. */
void field_expected_find(field_expected *x, const field_value *values, size_t count, uint32_t *tensors, int64_t *elements);

#endif
