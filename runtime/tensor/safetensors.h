/* The .safetensors format: a JSON header and the elements of several tensors.
 *
 * The one idea: the header is checked as a whole before one tensor is taken from it: every tensor's shape
 * gives the bytes that its offsets give, and the offsets cover the data from its first to its last byte, each
 * once. */
#ifndef VISA_RUNTIME_TENSOR_SAFETENSORS_H
#define VISA_RUNTIME_TENSOR_SAFETENSORS_H

#include "runtime/tensor/tensor_source.h"

/* Reads tensor `name` of the file; NULL: the file must hold one only. */
bool safetensors_read(tensor_source *s, const char *name, tensor *out);

/* What precedes the elements of a file of this one tensor; in the arena. NULL: the name is not UTF-8
 * text. */
const char *safetensors_head(const char *name, const tensor_type *type, arena *a, size_t *bytes);

#endif
