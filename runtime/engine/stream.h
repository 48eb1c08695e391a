/* What flows between two stages of a chain. */
#ifndef VISA_RUNTIME_ENGINE_STREAM_H
#define VISA_RUNTIME_ENGINE_STREAM_H

#include "target/target.h"

/* A 32-bit value on its way, i32 or f32 by the stream's type. */
typedef uint32_t stream_word __attribute__((may_alias));

/* What one item of a stream is; stages say which of them they take (stage.h). */
typedef enum stream_form {
    STREAM_PACKETS,  /* any number of bytes */
    STREAM_FLITS,    /* 32 bytes, on the way to the Stream Adapter, the TRF or DM */
    STREAM_PAIRS,    /* a packet of data and the weights of every Row */
    STREAM_PARTIALS, /* a 32-bit value for every column and Row: the contraction tensor */
    STREAM_BEATS,    /* 32 bytes that were computed */
    STREAM_FORMS
} stream_form;

typedef struct stream_shape {
    dtype dtype;
    int64_t packet_elements; /* of one Row */
    int64_t packet_bytes;
    int64_t packets; /* time steps */
    int64_t rows;    /* 1 except for aligned pairs and contraction tensors */
    stream_form form;
    int64_t computed_bytes; /* of a beat, from its beginning on; what follows them is filling */
    int64_t zero_point;     /* of i5 and i9: an element is the i4 or i8 that stands in the stream, less this */
} stream_shape;

enum { STREAM_MOST_COLUMNS = 64, STREAM_MOST_ROWS = 8, STREAM_MOST_WORDS = STREAM_MOST_COLUMNS * STREAM_MOST_ROWS };

/* An item of STREAM_PARTIALS: words[column * rows + row], and the bits of the columns that have a value. */
typedef struct stream_partial {
    stream_word *words;
    uint64_t present;
} stream_partial;

#endif
