/* NumPy's .npy format, versions 1 to 3: a Python literal and the elements.
 *
 * The one idea: what NumPy cannot name travels as its bit pattern: bf16 as <u2 or <V2, the 8-bit floats as
 * |u1, |V1 or f1. Row-major and column-major files are read, row-major ones are written. */
#ifndef VISA_RUNTIME_TENSOR_NPY_H
#define VISA_RUNTIME_TENSOR_NPY_H

#include "runtime/tensor/tensor_source.h"

/* Reads the whole file; the tensor is s->want. */
bool npy_read(tensor_source *s, tensor *out);

/* What precedes the elements of a tensor; in the arena. */
const char *npy_head(const tensor_type *type, arena *a, size_t *bytes);

#endif
