/* How the digits of a statement move through its tensors.
 *
 * The one idea: a coordinate is a sum over digits, an address a sum over coordinates; so one count of a digit moves an operand by a
 * constant number of elements, through windows too, and what lies side by side or does not exist follows from these numbers. */
#ifndef VISA_CODEGEN_REFERENCE_WALK_H
#define VISA_CODEGEN_REFERENCE_WALK_H

#include "codegen/reference/plan.h"

/* Of a tensor whose einsum was checked, places that nobody touches left out. */
int64_t walk_elements(const einsum *e, uint32_t tensor);
int64_t walk_bytes(const einsum *e, uint32_t tensor);

/* NULL: the axis is none. */
const einsum_window *walk_window(const einsum *e, uint32_t axis);
/* How far one count of a digit moves the place of a term; 0: not at all, -1: the digit lies partly outside. */
int64_t walk_term_weight(const einsum_term *t, const einsum_digit *d);
/* How far one count of a digit moves the coordinate of an axis of a tensor. */
uint64_t walk_axis_weight(const einsum *e, uint32_t axis, const einsum_digit *d);
/* Is the axis a window that is not held as a whole, and indexed by digits of its terms as this operand? Then its coordinate is
 * the place less `first`, and outside the axis the element is zero. */
bool walk_has_border(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis);

/* Elements between the elements of the tensor, as this operand, at neighbouring values of a digit's counter; modulo 2^64, 0 when
 * it does not vary with it. */
uint64_t walk_stride(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d);
bool walk_varies(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d);
/* Elements between neighbours along an axis of the tensor. */
int64_t walk_axis_stride(const einsum *e, uint32_t tensor, uint32_t axis);
/* Elements between a place and the one that a shift along an axis of the tensor means. */
int64_t walk_shift(const einsum *e, uint32_t tensor, uint32_t axis, int64_t offset);
/* Elements of an operand that lie side by side along the innermost digits of a group; INT64_MAX: all of them. */
int64_t walk_run(const einsum *e, uint32_t tensor, einsum_side side, const plan_digits *digits);

/* Do combinations of these groups' digits leave the axis? */
bool walk_passes(const einsum *e, const plan_statement *s, uint32_t axis, const plan_group *groups, unsigned count);
/* May a combination of these groups' digits not exist, or not be held by the tensor? */
bool walk_is_guarded(const einsum *e, const plan_statement *s, uint32_t tensor, einsum_side side, const plan_group *groups, unsigned count);

#endif
