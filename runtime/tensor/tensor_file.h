/* Tensor files: NumPy .npy, .safetensors and raw bytes.
 *
 * The one idea: a file either holds exactly the tensor that is asked for, element type and shape, or it is
 * refused with what was found and what was expected; nothing is broadcast or cut, and nothing converted that is not asked to be.
 *
 *     *.npy                    element types by what NumPy can say: i1 i2 i4 f4; bf16 as <u2 (or <V2), the
 * 8-bit floats as |u1 (or |V1, f1): their bit patterns
 *     *.safetensors[:NAME]     NAME may be left away when the file holds one tensor
 *     -                        standard input or output, raw
 *     anything else            raw: the bytes of the tensor (runtime/tensor/tensor.h), neither more nor fewer
 *
 * i8 may also come as u1, i4 comes as i1 or u1, one element per byte; the values must fit. */
#ifndef VISA_RUNTIME_TENSOR_TENSOR_FILE_H
#define VISA_RUNTIME_TENSOR_TENSOR_FILE_H

#include "runtime/tensor/tensor.h"
#include "support/diag.h"
#include "support/output.h"

/* Reads a tensor of exactly this type. False with E_FILE_READ, E_TENSOR_FILE (with the byte offset of the
 * damage), E_TENSOR_SHAPE or E_TENSOR_TYPE; nothing is allocated then. The names of want->names appear in
 * messages. With `rounds` an f32 file (raw: one of that size) is taken for bf16 and narrower floats, each element rounded as the casts of
 * numeric.h do. Holds no more memory than the tensor, before and after it is rounded, and the file's header need. */
bool tensor_file_read(const char *spec, const tensor_type *want, bool rounds, arena *a, diag_list *diags, tensor *out);

/* The same from bytes in memory, nothing rounded; `spec` only chooses the format and names the file in messages. */
bool tensor_file_read_image(const char *spec, const unsigned char *image, size_t image_bytes, const tensor_type *want, arena *a,
                            diag_list *diags, tensor *out);

/* The file of a spec: "w.safetensors" of "w.safetensors:layer". */
const char *tensor_file_path(const char *spec, arena *a);

/* Appends the tensor, in the format of the spec, to an output that was declared for the spec's file; .safetensors needs its NAME. */
bool tensor_file_put(const char *spec, const tensor *t, output *to, arena *a, diag_list *diags);

#endif
