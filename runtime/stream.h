/* What flows between two stages of a chain. */
#ifndef VISA_RUNTIME_STREAM_H
#define VISA_RUNTIME_STREAM_H

#include "target/target.h"

/* A 32-bit value on its way, i32 or f32 by the stream's type. */
typedef uint32_t stream_word __attribute__((may_alias));

typedef struct stream_shape {
    dtype dtype;
    int64_t packet_elements; /* of one Row */
    int64_t packet_bytes;
    int64_t packets; /* time steps */
    int64_t rows;    /* 1 except for contraction tensors */
} stream_shape;

#endif
