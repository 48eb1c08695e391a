/* Sizes that differ by outer index, added up.
 *
 * The one idea: a ragged symbol has one size for each place of the dimensions outside of it, so what is asked of it as a number is its
 * sum over those places, itself a symbol: `sum(~R)`. It is the sum over the places where the symbol first occurs; other places that are a
 * multiple of those repeat it, and what is anywhere else has a sum of its own (`sum(~R over C)`). Where a rule of a shape knows the sum
 * of a new ragged size, it says so. The largest of the sizes is `max(~R)`. */
#ifndef VISA_IR_STEP_TOTAL_H
#define VISA_IR_STEP_TOTAL_H

#include "ir/step/graph.h"

/* The sum of `each` over `places` many places. NULL past 2^62 or of NULL. */
const step_expr *step_total_of(step_graph *g, const step_expr *places, const step_expr *each);
/* The largest that `each` is at any place. */
const step_expr *step_total_largest(step_graph *g, const step_expr *each);
/* A new ragged symbol, for `each` or just itself, whose sum over these places is known. */
void step_total_define(step_graph *g, const step_expr *symbol, const step_expr *places, const step_expr *each, const step_expr *total);

/* The largest that the symbol is, is the largest of `each`. */
void step_total_define_largest(step_graph *g, const step_expr *symbol, const step_expr *each);

/* The same, but 0 where the stream has no value. */
const step_expr *step_total_where_any(step_graph *g, const step_stream *s, const step_expr *size);

/* A ragged symbol that has the sizes of several streams' chunks, in whatever order they come in `by`: of each, what it is at how many
 * places. A sum of anything made of it, or of several such symbols of one stream at the same places, is the sum over all of them. */
typedef struct step_total_part {
    const step_expr *each, *places;
} step_total_part;
void step_total_define_union(step_graph *g, const step_expr *symbol, const step_stream *by, const step_expr *places,
                             const step_total_part *parts, uint32_t count);

/* A ragged symbol of which every size is at least 1. */
void step_total_set_positive(step_graph *g, const step_expr *symbol);
bool step_total_is_positive(const step_graph *g, const step_expr *symbol);

/* Values in the first `count` dimensions, from the outside. */
const step_expr *step_total_places(step_graph *g, const step_stream *s, uint32_t count);
/* Values that the stream carries. */
/* The places over which the size first occurs; NULL: over none yet. */
const step_expr *step_total_home(const step_graph *g, const step_expr *size);
const step_expr *step_cardinality(step_graph *g, const step_stream *s);

/* Ragged sizes of the stream and of its tiles belong to where they occur first: here, unless they did before. */
void step_total_settle(step_graph *g, const step_stream *s);

/* The writer knows that the stream has these sizes: they are what it had before. */
void step_total_assume(step_graph *g, step_stream *s, const step_expr **dims);
/* What the writer knows a ragged symbol to be, if it is one; NULL: nothing else. */
const step_expr *step_total_same(const step_graph *g, const step_expr *symbol);

/* What a symbol `sum(..)` or `max(..)` is made of (NULL: a sum over places that are not those of the sizes), a sum over how many places
 * (else NULL); false for any other one. */
bool step_total_source(const step_graph *g, const char *symbol, const step_expr **of, const step_expr **places);
/* Of a symbol `max(..)` over streams that became one: the largest of each, where there are any places. NULL: it is no such symbol. */
const step_total_part *step_total_largest_parts(const step_graph *g, const char *symbol, uint32_t *count);

#endif
