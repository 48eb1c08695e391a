/* One tensor file being read from its beginning to its end.
 *
 * The one idea: whatever the format, bytes are taken in order and counted, so that every message knows its
 * offset; and what the file says is compared with what is wanted before anything large is allocated. The
 * functions that return bool add a diagnostic before they return false. */
#ifndef VISA_RUNTIME_TENSOR_TENSOR_SOURCE_H
#define VISA_RUNTIME_TENSOR_TENSOR_SOURCE_H

#include <stdio.h>

#include "runtime/tensor/tensor.h"
#include "support/diag.h"

typedef struct tensor_source {
    FILE *file;
    const char *name;
    int64_t at, size; /* bytes taken, bytes in all; size -1: not known (a pipe) */
    const tensor_type *want;
    bool rounds; /* may an f32 file stand for a narrower float? */
    bool is_f32; /* its format says so, or its size */
    arena *arena;
    diag_list *diags;
} tensor_source;

/* Text of a file for a message: printable, not too long. */
const char *tensor_source_shown(const tensor_source *s, const char *text, size_t bytes);

/* E_TENSOR_FILE, and E_FILE_READ with strerror(error). Always false, so that `return ..._damaged(...)` reads
 * well. */
bool tensor_source_damaged(tensor_source *s, int64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool tensor_source_system_fault(tensor_source *s, int error);
/* The file holds f32: if that is to be rounded, f32 is what is wanted of it from here on. */
bool tensor_source_takes_f32(tensor_source *s);
/* Are the bytes of a port wanted as they lie? They are read as a type of 8 bits without names of axes, which a port's tensor has. */
bool tensor_source_is_buffer(const tensor_source *s);
/* E_TENSOR_TYPE; `accepted` is what the file should have. Always false. */
bool tensor_source_type_mismatch(tensor_source *s, const char *found, const char *accepted);

/* Takes exactly `bytes` bytes; a shorter file is damaged at its end. */
bool tensor_source_take(tensor_source *s, void *to, size_t bytes, const char *what);
bool tensor_source_skip(tensor_source *s, int64_t bytes);
/* What follows has `bytes` bytes, as far as the size is known; the other half of the check is check_end,
 * after reading. */
bool tensor_source_check_rest(tensor_source *s, int64_t bytes);
bool tensor_source_check_end(tensor_source *s, int64_t expected);
bool tensor_source_check_shape(tensor_source *s, const tensor_type *found);

/* A port of one number, the parameter `HbmScalar`: an i32, a u8, or the two halves of 64 bits. */
bool tensor_source_wants_number(const tensor_source *s);
/* It from a file of one integer of `bytes` bytes, whatever its type is, where its value has a place in the port's bits. */
bool tensor_source_read_number(tensor_source *s, unsigned bytes, bool is_signed, tensor *out);

/* Bytes of one element in .npy and .safetensors: an i4 takes one. */
int64_t tensor_source_element_bytes(dtype t);
/* Bytes of the wanted tensor in a file (raw: packed as in memory); -1 after a diagnostic. */
int64_t tensor_source_bytes(tensor_source *s, bool raw);
/* A new tensor of `type` with the elements that follow. is_unsigned: i4 and i8 come as unsigned bytes. */
bool tensor_source_read(tensor_source *s, const tensor_type *type, bool is_unsigned, tensor *out);
/* The same with the elements packed as in memory. */
bool tensor_source_read_raw(tensor_source *s, tensor *out);

#endif
