/* The forms in which a question can be asked, each a question of its own for a search.
 *
 * The one idea: two choices are made before a search. Which operand is the weights is what the layout of the result says, and a choice
 * where that layout is free. Which axes chips share is one where there are several chips: a form is the question of one chip. The best
 * answer to any of them is the answer. */
#ifndef VISA_LIBVISA_TUNE_FORMS_H
#define VISA_LIBVISA_TUNE_FORMS_H

#include "libvisa/tune/flow.h"
#include "libvisa/tune/question.h"

enum { TUNE_FORMS_MAX = 64 };

/* Fills in the forms of a contraction on so many chips, those with the least bound first, and returns how many there are. 0: no axes are
 * shared evenly. */
size_t tune_forms_of(const target *t, const tune_question *q, int64_t chips, arena *a, tune_question *forms);

/* The same of what has none, of whose axes chips share one of the result; with as many tensors as possible that have it. */
size_t tune_forms_of_flow(const tune_flow *f, int64_t chips, arena *a, tune_flow *form);

#endif
