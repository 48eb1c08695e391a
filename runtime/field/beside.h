/* A kernel's proof on a thread of its own, while its numbers are run.
 *
 * The one idea: numbers and algebra have nothing in common but the kernel, so where both are asked for and there is a second processor,
 * each keeps one busy: the machine of bytes, which mostly waits for one thread, and the machine over a field. What is found is the same as
 * one after the other, and is said after the numbers. Of a large kernel both use all processors by themselves, and their memories together
 * might be too much: its proof comes later. */
#ifndef VISA_RUNTIME_FIELD_BESIDE_H
#define VISA_RUNTIME_FIELD_BESIDE_H

#include "runtime/field/check.h"

typedef struct field_beside field_beside;

/* Begins field_check with these arguments. NULL: it is not worth a thread, or there is none. Target and kernel outlive it. */
field_beside *field_beside_begin(const target *t, const binary_kernel *k, const field_options *options);
/* What field_check says. False with its diagnostics. */
bool field_beside_end(field_beside *b, arena *a, diag_list *diags, field_verdict *out);
/* Nobody asks any more. NULL: nothing. */
void field_beside_drop(field_beside *b);

#endif
