/* What one element of an einsum's tensor is the sum of.
 *
 * The one idea: a statement gives a value to combinations of its digits; here the digits are counted for one
 * element of the destination, as codegen/einsum.h defines them, and every term is named by the elements of
 * its sources. The reference kernel computes all elements (codegen/reference); this names the terms of one,
 * and is what a sample of a large tensor is computed from. */
#ifndef VISA_CODEGEN_EINSUM_TERMS_H
#define VISA_CODEGEN_EINSUM_TERMS_H

#include "codegen/einsum.h"

/* A product of two elements, or a copied element: then b is EINSUM_NO_TENSOR. */
enum { EINSUM_NO_TENSOR = UINT16_MAX };
typedef struct einsum_product {
    uint32_t a, b;   /* tensors, as the first `before` statements left them */
    uint32_t before; /* number of the statement whose term it is */
    int64_t a_element, b_element;
} einsum_product;

/* The last statement that assigns the element, a copy or a contraction: calls for each of its terms, in the order of the digits.
 * False: no statement does, or a call returned false. Of the first `before` statements. */
bool einsum_terms(const einsum *e, uint32_t before, uint32_t tensor, int64_t element, bool (*call)(void *of, const einsum_product *term),
                  void *of);

/* The same in runs of terms along a digit, or along digits that continue each other in both operands: `count` of them, whose elements are
 * a_step and b_step apart. */
typedef struct einsum_run {
    einsum_product first;
    int64_t count, a_step, b_step;
} einsum_run;
bool einsum_runs(const einsum *e, uint32_t before, uint32_t tensor, int64_t element, bool (*call)(void *of, const einsum_run *run),
                 void *of);

/* Which statements write which part of each tensor, for einsum_maker; the einsum outlives it. NULL: no memory. */
typedef struct einsum_makers einsum_makers;
einsum_makers *einsum_makers_new(const einsum *e);
void einsum_makers_free(einsum_makers *m);

/* The statement that assigns the element last, of the first `before`; NULL: none does. A scatter into the tensor may be it: that depends on
 * its lists. Of a copy, a map and a gather `elements` (EINSUM_SOURCES) get the element of each source, of a gather before lists move it;
 * -1: the tensor does not hold it, and it is zero. */
const einsum_statement *einsum_maker(const einsum_makers *m, uint32_t before, uint32_t tensor, int64_t element, int64_t *elements);

/* Of elements `step` apart, `count` at most: how many, from the first one on, are known to be copied by one and the same statement, from
 * elements of its source that are *from_step apart; 0: it is another statement that makes the first, or it is not known. */
int64_t einsum_copied(const einsum_makers *m, uint32_t before, uint32_t tensor, int64_t element, int64_t step, int64_t count,
                      const einsum_statement **by, int64_t *from, int64_t *from_step);

/* The element of the indexed tensor that lists with these elements (one for each index) move `element` to; -1: outside. */
int64_t einsum_moved(const einsum *e, const einsum_statement *s, int64_t element, const int64_t *lists);

/* Calls for each combination of a scatter's digits, in order, with the destination's element before it is moved, and those of the sources
 * (-1: not held). False: a call returned false. */
bool einsum_scatter_each(const einsum *e, const einsum_statement *s, bool (*call)(void *of, int64_t to, const int64_t *elements), void *of);

/* Of a reduction that assigns the element: calls for each of its terms with the elements of the sources, as above, in the order of the
 * digits. False: it does not assign it, or a call returned false. */
bool einsum_folded(const einsum *e, const einsum_statement *s, int64_t element, bool (*call)(void *of, const int64_t *elements), void *of);

/* "M=3, K=4094": the coordinates of an element. */
const char *einsum_element_text(const einsum *e, uint32_t tensor, int64_t element, arena *a);

/* Summed combinations of the statements that reach the tensor, at most; for estimates. */
double einsum_most_terms(const einsum *e);
/* Products of all statements together. */
double einsum_products(const einsum *e);
/* How often inputs are multiplied with each other: the degree of the tensor's polynomials in the inputs. */
int64_t einsum_degree(const einsum *e, uint32_t tensor);

#endif
