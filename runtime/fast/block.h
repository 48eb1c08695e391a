/* Blocks of a contraction: many steps of many outputs at once.
 *
 * The one idea: a vector holds outputs, never lanes of one sum, so every output keeps the order of sums that
 * docs/numerics.md gives it. The outputs of a vector are the Rows times a group of packets that meet the same
 * weights: element Row * group + packet; as cells, packet after packet, their Rows follow each other. Weights therefore stand as
 * [word][vector], each repeated for the group, and the group's packets as [word][packet], which one load spreads over the vector. Sets that
 * take packets as they lie (block_pairs.c, block_tiles.c) have the weights of a word once for each Row. Sums of integers have no order, so
 * that block_lanes.h has lanes of one sum in a vector, and takes weights as they lie, too.
 *
 * A word is 32 bits of a packet: one f32 lane, two i16 lanes, or four i8 lanes. */
#ifndef VISA_RUNTIME_FAST_BLOCK_H
#define VISA_RUNTIME_FAST_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/machine/cpu.h"
#include "target/target.h"

typedef uint32_t block_word __attribute__((may_alias));

enum { BLOCK_MOST_VECTOR = 128 /* words */, BLOCK_MOST_GROUP = 16 /* packets */, BLOCK_MOST_WIDE = 4 /* vectors */ };
enum { BLOCK_ROOM_WORDS = 4096 /* one step of the widest packets of as many vectors at least */ };

typedef enum block_format {
    BLOCK_F32,       /* a lane as float, which holds every operand value exactly; any values */
    BLOCK_BF16,      /* the same, from bf16 as they lie; only for values whose products stay exact (block_range) */
    BLOCK_BF16_ROWS, /* bf16 packets as they are; under the same condition */
    BLOCK_I16X2,
    BLOCK_I8X2,    /* the same, from i8 as they lie */
    BLOCK_I8X4,    /* packets plus 128, for instructions that multiply unsigned with signed */
    BLOCK_I8_ROWS, /* packets as they are */
} block_format;

/* One reduced step. */
typedef struct block_step {
    int64_t data, weights;  /* words from block_run's */
    const block_word *keep; /* per word of the packet, the bits of the lanes that count; NULL: all */
    int64_t follow;         /* of one column whose lanes all count: steps after it that go on where it ends, in packets and in weights */
} block_step;

/* Some vectors of packets over some reduced steps. */
typedef struct block_run {
    const block_word *data, *weights;
    int64_t data_stride;        /* words from one vector of packets to the next */
    int64_t packet_bytes, rows; /* packets in rows: from one packet of a group to the next; Rows */
    int64_t row_words;          /* weights in rows: from one Row's to the next */
    const block_step *steps;
    int64_t step_count;
    int64_t columns, column_words;
    block_word *cells;       /* [vector][column][packet][Row] */
    const block_word *start; /* [column][packet][Row]: where sums begin */
    bool fresh;              /* the cells hold nothing yet */
    bool near;               /* the packets were read just before */
    int64_t runs;            /* for sets that take runs: how many times the kernel's vectors, one after the other */
    block_word *room;        /* of BLOCK_ROOM_WORDS, for sets that widen; */
    bool held;               /* it is as the run before left it, whose vectors and steps' packets were the same */
} block_run;

typedef void block_kernel(const block_run *r);

/* Magnitudes of bf16 values, as many largest and least ones as the widest vector has lanes; the least less one, so that zero is
 * the largest. */
enum { BLOCK_EXPONENTS = 32, BLOCK_MAGNITUDE_MASK = 0x7fff };
typedef struct block_exponents {
    uint16_t most[BLOCK_EXPONENTS], below[BLOCK_EXPONENTS];
} block_exponents;

/* The packets of a group, each `words` long, word by word; `flip` is xored. BLOCK_BF16 adds the exponents that it meets to `seen`. */
typedef void block_interleave(const unsigned char *const *packets, int64_t words, block_word flip, block_word *to, block_exponents *seen);

/* The weights of all Rows, each `words` long, as vectors word by word. */
typedef void block_repeat(const unsigned char *const *rows, int64_t words, block_word *to, block_exponents *seen);

/* Adds the exponents of words that stay where they are. */
typedef void block_look(const unsigned char *bytes, int64_t words, block_exponents *seen);

/* The kernels of a level for integers or floats. */
typedef struct block_set {
    cpu_level level;
    bool is_float;
    block_format format;
    unsigned vector;      /* words, with tiles the most */
    unsigned wide[4];     /* vectors of packets that `many` takes at once, by the Rows' log2 */
    block_kernel *one[4]; /* one vector, the same */
    block_kernel *two[4];
    block_kernel *many[4];
    block_interleave *interleave[4];
    block_repeat *repeat[4];
    unsigned packets;      /* of a group; 0: the vector divided by the Rows */
    bool in_rows;          /* takes packets where they lie, some bytes apart, and the weights of a word once for each Row, */
    bool widens;           /* or repeated for the group after all, as it weaves packets itself, where they stay in the first-level cache, */
    bool alone_in_place;   /* unless each is alone in its group: then it takes them where they lie */
    unsigned word_vectors; /* of the weights of a word; 0: one */
    bool weights_in_rows;  /* the same, but each Row's weights after each other, so many words from Row to Row (block_run.row_words) */
    bool in_runs;          /* takes block_run.runs */
    bool whole;            /* only for eight Rows, columns of four lanes or more and lanes that all count */
    block_kernel *start_many[4]; /* with weights in rows: block_run.start for `many`, as cells; NULL: no kernel asks for it */
    int64_t column_lanes;        /* only for columns of so many lanes or more, */
    int64_t least_packets;       /* and where so many packets or more meet the same weights */
    block_look *look;            /* in_rows, for values in range: what they are is looked at after the sums */
    void (*enter)(int64_t column_words, int64_t rows); /* before and after kernels of a contraction; NULL: nothing to do */
    void (*leave)(void);
} block_set;

/* What a set is chosen for. */
typedef struct block_choice {
    cpu_level most;
    bool is_float, whole;
    int64_t column_lanes, packets; /* of a column; that meet the same weights */
} block_choice;

/* The best set up to `most` that this processor has and that may be given any values; NULL: none. */
const block_set *block_set_safe(const block_choice *c);
/* The same, but perhaps one that needs values in range (block_in_range), or where `whole` says that it may. */
const block_set *block_set_fast(const block_choice *c);

static inline bool block_in_range(block_format f)
{
    return f == BLOCK_BF16 || f == BLOCK_BF16_ROWS;
}

/* The packets that a kernel may fetch ahead at a step: those of the step so many further, or of the vectors after these, where there are
 * fewer of the next step of the same number. Each lies in a stream of its own, which is too short, or one of too many, for a processor to
 * follow it by itself. */
static inline const block_word *block_ahead(const block_run *r, int64_t step, int64_t further, int64_t wide)
{
    int64_t ahead = step + (further < r->step_count ? further : r->step_count), on = ahead - r->step_count;
    return on < 0 ? r->data + r->steps[ahead].data : r->data + wide * r->data_stride + r->steps[on].data;
}

/* Lanes in a word of the format. */
static inline int64_t block_lanes(block_format f)
{
    return f == BLOCK_I8X4 || f == BLOCK_I8_ROWS ? 4 : f == BLOCK_I16X2 || f == BLOCK_I8X2 || f == BLOCK_BF16_ROWS ? 2 : 1;
}

/* Bytes of a word before it is interleaved or repeated. */
static inline int64_t block_word_bytes(block_format f)
{
    return f == BLOCK_BF16 || f == BLOCK_I8X2 ? 2 : 4;
}

/* Operand elements as words of the format; elements are a multiple of four. NULL: the bytes are the words already. */
typedef void block_expand(block_word *to, const unsigned char *from, int64_t elements);
block_expand *block_expand_of(block_format f, dtype operand);

/* Exponents of bf16 values: what decides whether their products are exact and normal. */
typedef struct block_range {
    unsigned least, most; /* biased exponent fields of the values that are not zero, 0 of a subnormal; least > most: there is none */
} block_range;

void block_exponents_none(block_exponents *seen);
block_range block_exponents_range(const block_exponents *seen);
/* Are all products of a value of each, and all sums of two of them, finite and zero or normal? */
bool block_range_fits(const block_range *a, const block_range *b);

/* The sets by level (block_*.c); those of other processors' levels are not linked. */
extern const block_set block_plain_float, block_plain_int, block_lanes_plain_int;
extern const block_set block_avx2_float, block_avx2_fused, block_avx2_int, block_lanes_int;
extern const block_set block_lanes_avx512_int, block_lanes_dot_int;
extern const block_set block_avx512_float, block_avx512_int;
extern const block_set block_fused_float, block_pairs_float, block_dot_int, block_tiles_int;

#endif
