/* A convolution as a question: O[n, y, x, f] = sum(r, s, c) I[n, y*2 + r, x*2 + s, c] * W[f, r, s, c].
 *
 * The one idea: an image is stored once, and a slice has the rows of its results with their halo, so that nothing is copied for a window
 * but what two slices share. Which results a slice has are few numbers: they are compiled as far as the budget goes, in the order of a
 * rough estimate. */
#ifndef VISA_LIBVISA_TUNE_WINDOW_H
#define VISA_LIBVISA_TUNE_WINDOW_H

#include "libvisa/tune/search.h"
#include "libvisa/tune/window_plan.h"

/* The best plan, and what it takes; of *out all but its plan. False: no plan compiles. */
bool tune_window_search(const target *t, const tune_question *q, const visa_tune_options *o, arena *a, tune_answer *out, window_plan *plan);

/* Lines that say what is chosen. */
const char *tune_window_describe(const tune_question *q, const window_plan *p, arena *a);

#endif
