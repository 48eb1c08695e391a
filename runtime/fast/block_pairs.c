/* Floats with VDPBF16PS: two products and their sum at once, from bf16 packets as they lie in memory.
 *
 * The one idea: 64 bits of a packet, two leaves of its tree, are adjacent in a vector, once for each of eight Rows. Two packets
 * have such a vector each; their even elements and their odd ones are the leaves of 16 outputs, Row * 2 + packet, and from there on the
 * tree is vertical. So packets are neither widened nor interleaved, and weights are a quarter as long as repeated words.
 *
 * The instruction adds to its accumulator first the one product, then the other, rounded to nearest even; exact products and no subnormal
 * sum, which block_range decides, make that the leaf. The accumulator is -0.0, so that two products of -0.0 stay one. */
#define BLOCK_VECTOR 16
#define BLOCK_WIDE 4
#define BLOCK_HALVES
#define BLOCK_IN_ROWS
#define BLOCK_LEAF_WORDS 2 /* what the tree has for leaves here: the sum of two, four lanes */
#include <immintrin.h>

#include "runtime/fast/block_body.h"

enum { ROWS = 8, PAIR_BYTES = 8, EVEN = 0x5555, ODD = 0xaaaa, AHEAD_BYTES = 512 };

INLINE __m512 products(__m512bh weights, const unsigned char *packet)
{
    __m128i pair = _mm_loadl_epi64((const __m128i *)(const void *)packet); /* broadcast as it is loaded */
    return _mm512_dpbf16_ps(_mm512_set1_ps(-0.0f), weights, (__m512bh)_mm512_broadcastq_epi64(pair));
}

INLINE void leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    (void)group;
    __m512bh weights = (__m512bh)load(l->weights + i * BLOCK_VECTOR);
    for (int u = 0; u < wide; u++) {
        const unsigned char *packet = (const unsigned char *)l->data[u] + i * PAIR_BYTES;
        if (i == 0) { /* each packet lies in a stream of its own, from memory for the most part */
            __builtin_prefetch(packet + AHEAD_BYTES);
            __builtin_prefetch(packet + l->packet_bytes + AHEAD_BYTES);
        }
        __m512 a = products(weights, packet), b = products(weights, packet + l->packet_bytes);
        to[u] = (vector_f)_mm512_mask_moveldup_ps(a, ODD, b) + (vector_f)_mm512_mask_movehdup_ps(b, EVEN, a);
    }
}

/* Lanes that do not count never come here (block_set.whole). */
INLINE void masked_leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    leaf(l, i, group, wide, to);
}

INLINE void column_pairs(const block_run *r, int64_t number, int group, int wide, vector_w *sum)
{
    column(r, number, r->column_words / BLOCK_LEAF_WORDS, group, wide, true, sum);
}

BLOCK_GROUP(pairs, column_pairs, 2, true)

#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)

/* Two words of all Rows, then the next two. */
static void rows_beside(const unsigned char *const *rows, int64_t words, block_word *to, block_exponents *seen)
{
    exponents(rows, ROWS, 2 * words, seen);
    int64_t i = 0;
    for (; i + BLOCK_VECTOR <= words; i += BLOCK_VECTOR) {
        vector_d v[ROWS], before[ROWS];
        for (int r = 0; r < ROWS; r++)
            memcpy(&v[r], rows[r] + 4 * i, sizeof v[r]);
        for (int done = 1; done < ROWS; done *= 2) {
            for (int r = 0; r < ROWS; r++)
                before[r] = v[r];
            for (int r = 0; r < ROWS / 2; r++) {
                v[2 * r] = LOWER(before[r], before[r + ROWS / 2]);
                v[2 * r + 1] = UPPER(before[r], before[r + ROWS / 2]);
            }
        }
        for (int r = 0; r < ROWS; r++)
            memcpy(to + i * ROWS + r * BLOCK_VECTOR, &v[r], sizeof v[r]);
    }
    for (; i < words; i += 2)
        for (int r = 0; r < ROWS; r++)
            memcpy(to + i * ROWS + r * 2, rows[r] + 4 * i, PAIR_BYTES);
}

static void look(const unsigned char *bytes, int64_t words, block_exponents *seen)
{
    exponents(&bytes, 1, 2 * words, seen);
}

const block_set block_pairs_float = {
    .level = CPU_DOT,
    .is_float = true,
    .format = BLOCK_BF16_ROWS,
    .vector = BLOCK_VECTOR,
    .wide = {[3] = BLOCK_WIDE},
    .one = {[3] = one_pairs_2},
    .two = {[3] = two_pairs_2},
    .many = {[3] = many_pairs_2},
    .repeat = {[3] = rows_beside},
    .in_rows = true,
    .in_runs = true,
    .whole = true,
    .look = look,
};
