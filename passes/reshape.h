/* The same memory under other axes. */
#ifndef VISA_PASSES_RESHAPE_H
#define VISA_PASSES_RESHAPE_H

#include "passes/pass.h"

/* Do digits of an axis reach past its end? `to`: on the side of the new names. */
bool reshape_is_ragged(const reshape_config *c, const axis *a, bool to);

/* Of such an axis: its outer digits are those of one axis on the other side, with as many positions, and its inner ones end in front of
 * them. `whole` is all of the outer ones in one. False: what is past the end of one of the axes would be an element of the other. */
bool reshape_outer_digits(const reshape_config *c, const axis *a, bool to, reshape_digit *whole);

void pass_reshape(pass_context *p, kernel *k);

#endif
