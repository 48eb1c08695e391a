/* The Vector Engine's operations for a processor's level, as tables of functions over arrays. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_SET_H
#define VISA_RUNTIME_ENGINE_VECTOR_SET_H

#include "runtime/engine/vector_ops.h"

enum { VECTOR_CODES = 256 };

struct vector_set {
    cpu_level level;
    vector_function functions[VECTOR_CODES]; /* by code; NULL: there is no such operation */
    void (*compare[VECTOR_COMPARES])(stream_word *tags, unsigned bit, bool is_float, const stream_word *words, stream_word with,
                                     int64_t count);
    void (*select)(stream_word *words, const stream_word *others, const stream_word *tag_of, unsigned tags, int64_t count);
};

extern const vector_set vector_plain, vector_avx2, vector_avx512;

#endif
