/* Both windows of a convolution, whichever of them a question names.
 *
 * The one idea: a window of one place is none, so a question that has none along an axis has one of one place there, and an axis of one
 * place where there is no such axis either. Kernels of convolutions have two windows then, and what is made here stands in no text. */
#ifndef VISA_LIBVISA_TUNE_WINDOWS_H
#define VISA_LIBVISA_TUNE_WINDOWS_H

#include "libvisa/tune/question.h"

/* The second window of a question with one, `I[t + r, c]`, in its tensors, too. Nothing is done where the image has other axes than those
 * of a convolution, or where there is no room for axes. */
void tune_windows_complete(tune_question *q);

/* Axes of tensors whose layout is the kernel's choice, as those of a convolution stand: images, places, channels. Places stand in the order
 * of the result. */
void tune_windows_arrange(tune_question *q);

/* Where the first window has one place of one and the second has not, they change places: a row of places is places of rows, so what has
 * one axis of places is the same question however it is spelt. */
void tune_windows_order(tune_question *q);

/* Is it one product whose tensors lie as those of a convolution of one place do, in one chip? */
bool tune_is_pointwise(const target *t, const tune_question *q);

/* That one as such a convolution, whose rows are those of the product; rows that the question lacks are one, whose axis has no name. */
tune_question tune_windows_of_product(const tune_question *q);

/* Is the convolution one product, in whose text there is neither a window nor an image? */
bool tune_is_product(const tune_question *q);

#endif
