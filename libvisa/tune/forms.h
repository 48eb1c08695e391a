/* The forms in which a contraction can be asked, each a question of its own for a search.
 *
 * The one idea: what a layout of the result would say, which operand is the weights, is a choice where that layout is free. A form is the
 * question with that choice made, and the best answer to any of them is the answer. */
#ifndef VISA_LIBVISA_TUNE_FORMS_H
#define VISA_LIBVISA_TUNE_FORMS_H

#include "libvisa/tune/question.h"

enum { TUNE_FORMS_MAX = 2 };

/* Fills in the forms of a question, the most promising first, and returns how many there are: one at least. */
size_t tune_forms_of(const target *t, const tune_question *q, tune_question *forms);

#endif
