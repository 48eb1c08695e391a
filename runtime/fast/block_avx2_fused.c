/* Floats with fused multiply-add, from bf16 as they lie: where products are exact, which block_range decides, rounding them changes
 * nothing, and a leaf is a product and a fused one (block_fused.c has the same for longer vectors). A word is both lanes of a leaf: a
 * packet that meets eight Rows is spread word by word from where it lies, and taken apart in registers. */
#define BLOCK_VECTOR 8
#define BLOCK_WIDE 2
#define BLOCK_WIDENS 1
#define BLOCK_HALVES
#define BLOCK_WORD_VECTORS 2
#define BLOCK_LEAF_WORDS 1
#define BLOCK_LOOK look
#include <immintrin.h>

#include "runtime/fast/block_body.h"

enum { LOW_BITS = 16 };

/* Of a word that is the same in all lanes; the compiler would rather take it apart in general registers, and spread both halves. */
INLINE vector_f low(vector_w word)
{
    return (vector_f)_mm256_slli_epi32((__m256i)word, LOW_BITS);
}

INLINE vector_f high(vector_w word)
{
    return (vector_f)_mm256_blend_epi16(_mm256_setzero_si256(), (__m256i)word, 0xaa);
}

INLINE void leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    const block_word *weights = l->weights + i * BLOCK_WEIGHTS_STEP(group);
    vector_f first = (vector_f)load(weights), second = (vector_f)load(weights + BLOCK_VECTOR);
    for (int u = 0; u < wide; u++) {
        vector_w word = spread(l->data[u] + i * group, group);
        to[u] = (vector_f)_mm256_fmadd_ps((__m256)high(word), (__m256)second, (__m256)(low(word) * first));
    }
}

INLINE void masked_leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    const block_word *weights = l->weights + i * BLOCK_WEIGHTS_STEP(group);
    const vector_f none = -(vector_f){0};
    bool has_low = l->keep[i] & 0xffff, has_high = l->keep[i] >> LOW_BITS;
    for (int u = 0; u < wide; u++) {
        vector_w word = spread(l->data[u] + i * group, group);
        to[u] = has_low ? low(word) * (vector_f)load(weights) : none;
        to[u] = to[u] + (has_high ? high(word) * (vector_f)load(weights + BLOCK_VECTOR) : none);
    }
}

static void look(const unsigned char *bytes, int64_t words, block_exponents *seen)
{
    exponents(&bytes, 1, 2 * words, seen);
}

BLOCK_SET(block_avx2_fused, float, column_float, CPU_AVX2, true, BLOCK_BF16_ROWS)
