/* Operands that are stored narrower than they are multiplied, weights in i8 or i4 beside rows in bf16, or as f32, which is rounded.
 *
 * The one idea: such an operand is copied as it is stored, and each slice makes the type that is multiplied of what it has in a pass in DM,
 * in front of all else that becomes of it. Whatever is narrower becomes bf16 without a loss. */
#ifndef VISA_LIBVISA_TUNE_WIDENED_H
#define VISA_LIBVISA_TUNE_WIDENED_H

#include "libvisa/tune/text.h"

/* Does a pass make one type of another? */
bool widened_converts(dtype stored, dtype multiplied);

/* What that takes for so many elements; 0: the operand is stored as it is multiplied. */
int64_t widened_cycles(const tune_question *q, tune_role role, int64_t elements);

/* Elements of the sum that are fetched at once: a divisor of those that a slice has. */
int64_t widened_packet(const tune_question *q, tune_role role, int64_t sums);

/* The pass: from a tensor in DM, into one with the same elements. */
typedef struct widened_text {
    const char *from, *into, *slice, *element;
    const char *time, *packet; /* of the fetch */
    const char *flit;          /* elements that leave at once */
    const char *zero;          /* what is subtracted; NULL: nothing */
} widened_text;
void widened_write(tune_page *w, const target *t, const tune_question *q, tune_role role, const widened_text *x);

#endif
