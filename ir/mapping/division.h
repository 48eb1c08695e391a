/* Division and common refinement of mappings.
 *
 * The one idea: dividing one mapping by another finds the divisor's digits among the dividend's, which is what a sequencer
 * does when it finds a stream's digits in a buffer; so both are the same derivation (ir/sequence/sequence.h). What was found is
 * replaced by a gap of the same extent on both sides, so that positions keep their meaning. */
#ifndef VISA_IR_MAPPING_DIVISION_H
#define VISA_IR_MAPPING_DIVISION_H

#include "ir/mapping/mapping.h"

/* A divisor digit found in the dividend: positions counter * stride on each side, counter in 0 .. size-1. */
typedef struct division_match {
    const mapping *term;
    int64_t size, dividend_stride, divisor_stride;
} division_match;

typedef struct division {
    division_match *matches; /* by descending dividend stride */
    size_t count, capacity;
    bool exact;                   /* every divisor digit was found */
    const mapping *dividend_rest; /* the dividend with each match replaced by a gap */
    const mapping *divisor_rest;
} division;

/* Laws. With `exact`: for every live position i of the divisor, the dividend holds map(divisor, i) at the position that i's
 * digits select through the dividend strides. Always: the dividend at position p is the rest at p without its matched
 * digits, plus the divisor's index that those digits select. */
void mapping_divide(mapping_context *c, const mapping *dividend, const mapping *divisor, division *out);

/* The digits of one axis at the union of the places where a and b cut it, innermost first: weights and sizes. Every digit of
 * the axis in a and in b is a run of neighbouring refined digits (its padding apart). False when no such digits exist: a cut
 * of one does not divide a cut of the other. *count digits at most `capacity`. */
typedef struct refined_digit {
    int64_t weight, size;
} refined_digit;
bool mapping_refine(const mapping *a, const mapping *b, const axis *of, refined_digit *out, size_t capacity, size_t *count);

#endif
