/* A convolution as a question: O[n, y, x, f] = sum(r, s, c) I[n, y*2 + r, x*2 + s, c] * W[f, r, s, c].
 *
 * The one idea: an image is stored once, and a slice has the rows of its results with their halo, so that nothing is copied for a window
 * but what two slices share. Which results a slice has are few numbers: they are compiled as far as the budget goes, in the order of a
 * rough estimate. */
#ifndef VISA_LIBVISA_TUNE_WINDOW_H
#define VISA_LIBVISA_TUNE_WINDOW_H

#include "libvisa/tune/search.h"

/* The best kernel's text with its comments, in the arena of the diagnostics. False: diagnosed. */
bool tune_window_answer(const target *t, const tune_question *q, const visa_tune_options *o, diag_list *diags, strbuf *out);

#endif
