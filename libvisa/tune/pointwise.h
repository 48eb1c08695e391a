/* The search among kernels of convolutions for a product, beside that of whole sums.
 *
 * The one idea: a product is a convolution of 1 x 1, so what slices of a convolution hand on (weights around rings, also between parts of
 * the sum) is a way to make it, too. */
#ifndef VISA_LIBVISA_TUNE_POINTWISE_H
#define VISA_LIBVISA_TUNE_POINTWISE_H

#include "libvisa/tune/search.h"

extern const tune_family pointwise_family;

#endif
