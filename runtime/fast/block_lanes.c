/* Integers at AVX2, with lanes of one sum in a vector.
 *
 * The one idea: sums of integers have no order, so 16 lanes of a packet are multiplied with as many of a Row's weights, and what the lanes
 * of a sum hold is added when its steps are done. Packets and weights are widened as they are loaded, both from where they lie; nothing is
 * interleaved, repeated or copied. Some Rows against some packets are as many sums as there are registers, and each load is for several. */
#include <immintrin.h>
#include <string.h>

#include "runtime/fast/block.h"

#define INLINE static inline __attribute__((always_inline))

enum { PART_LANES = 16, PART_WORDS = PART_LANES / 4, MOST_ROWS = 8, WIDE = 2 };
/* Steps after which the next Rows take the same packets: these are in the first-level cache still, next to the Rows' weights. */
enum { PIECE_STEPS = 32, MOST_FOLLOW = 7 /* of what is asked for ahead at once */ };

INLINE __m256i widened(const block_word *words)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)words));
}

INLINE __m256i widened_masked(const block_word *words, const block_word *keep)
{
    __m128i lanes = _mm_loadu_si128((const __m128i *)(const void *)words);
    return _mm256_cvtepi8_epi16(_mm_and_si128(lanes, _mm_loadu_si128((const __m128i *)(const void *)keep)));
}

/* Where 16 lanes of some packets and of some Rows' weights are. */
typedef struct lanes_place {
    const block_word *data, *weights, *keep;
    int64_t data_stride, row_words;
} lanes_place;

INLINE void part_add(const lanes_place *p, int64_t word, bool masked, int rows, int wide, __m256i *sum)
{
    __m256i packet[WIDE];
    for (int u = 0; u < wide; u++) {
        const block_word *data = p->data + u * p->data_stride + word;
        packet[u] = masked ? widened_masked(data, p->keep + word) : widened(data);
    }
    for (int row = 0; row < rows; row++) {
        __m256i weights = widened(p->weights + row * p->row_words + word);
        for (int u = 0; u < wide; u++)
            sum[row * wide + u] = _mm256_add_epi32(sum[row * wide + u], _mm256_madd_epi16(packet[u], weights));
    }
}

/* Steps [first, end) of a column, for the Rows from `row` on. Some that follow each other are as one that is longer. */
INLINE void steps_add(const block_run *r, int64_t column, int64_t first, int64_t end, int row, int rows, int wide, __m256i *sum)
{
    int64_t from = column * r->column_words;
    for (int64_t i = first; i < end; i++) {
        const block_step *s = &r->steps[i];
        int64_t joined = 0, words = r->column_words;
        if (s->follow) {
            joined = s->follow < MOST_FOLLOW ? s->follow : MOST_FOLLOW;
            joined = joined < end - 1 - i ? joined : end - 1 - i;
            words += joined * r->column_words;
        }
        lanes_place p = {.data = r->data + s->data + from,
                         .weights = r->weights + s->weights + from + row * r->row_words,
                         .keep = s->keep ? s->keep + from : NULL,
                         .data_stride = r->data_stride,
                         .row_words = r->row_words};
        for (int64_t j = i; row == 0 && j <= i + joined; j++) {
            const block_word *ahead = block_ahead(r, j, wide);
            for (int u = 0; u < wide; u++)
                __builtin_prefetch(ahead + u * r->data_stride);
        }
        i += joined;
        if (__builtin_expect(s->keep != NULL, 0))
            for (int64_t w = 0; w < words; w += PART_WORDS)
                part_add(&p, w, true, rows, wide, sum);
        else
            for (int64_t w = 0; w < words; w += PART_WORDS)
                part_add(&p, w, false, rows, wide, sum);
    }
}

/* The sums of up to four Rows of one packet, `apart` vectors from one Row's to the next. */
INLINE __m128i lanes_add(const __m256i *sum, int rows, int apart)
{
    const __m256i none = _mm256_setzero_si256();
    __m256i low = _mm256_hadd_epi32(sum[0], rows > 1 ? sum[apart] : none);
    __m256i high = rows > 2 ? _mm256_hadd_epi32(sum[2 * apart], sum[3 * apart]) : none;
    __m256i all = _mm256_hadd_epi32(low, high);
    return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

/* Adds them to the cells, a packet's Rows together. */
INLINE void sums_end(const block_run *r, int64_t column, int row, int rows, int all_rows, int wide, const __m256i *sum)
{
    for (int u = 0; u < wide; u++)
        for (int part = 0; part < rows; part += 4) {
            size_t bytes = (size_t)(rows < 4 ? rows : 4) * sizeof(block_word);
            block_word *cells = r->cells + (u * r->columns + column) * all_rows + row + part;
            __m128i lanes = lanes_add(sum + part * wide + u, rows < 4 ? rows : 4, wide), before = _mm_setzero_si128();
            if (!r->fresh) {
                memcpy(&before, cells, bytes);
                lanes = _mm_add_epi32(lanes, before);
            }
            memcpy(cells, &lanes, bytes);
        }
}

/* A column's sums for `wide` packets and all Rows, of which so many are in registers at once. */
INLINE void column_sums(const block_run *r, int64_t column, int all_rows, int rows, int wide)
{
    __m256i kept[MOST_ROWS * WIDE];
    int64_t piece = all_rows > rows ? PIECE_STEPS : r->step_count, first = 0;
    do { /* at least once, for sums that begin */
        int64_t end = first + piece < r->step_count ? first + piece : r->step_count;
        for (int row = 0; row < all_rows; row += rows) {
            __m256i sum[MOST_ROWS * WIDE];
            for (int i = 0; i < rows * wide; i++)
                sum[i] = first ? kept[row * wide + i] : _mm256_setzero_si256();
            steps_add(r, column, first, end, row, rows, wide, sum);
            if (end == r->step_count)
                sums_end(r, column, row, rows, all_rows, wide, sum);
            else
                for (int i = 0; i < rows * wide; i++)
                    kept[row * wide + i] = sum[i];
        }
        first = end;
    } while (first < r->step_count);
}

/* `rows` at once of `all_rows`. */
#define LANES_KERNEL(name, all_rows, rows, wide) \
    static void name(const block_run *r) \
    { \
        block_run run = *r; \
        for (int64_t i = 0; i < r->runs; i++) { \
            for (int64_t c = 0; c < r->columns; c++) \
                column_sums(&run, c, all_rows, rows, wide); \
            run.data += (wide)*run.data_stride; \
            run.cells += (wide)*run.columns * (all_rows); \
        } \
    }

LANES_KERNEL(one_1, 1, 1, 1)
LANES_KERNEL(one_2, 2, 2, 1)
LANES_KERNEL(one_4, 4, 4, 1)
LANES_KERNEL(one_8, 8, 8, 1)
LANES_KERNEL(two_1, 1, 1, 2)
LANES_KERNEL(two_2, 2, 2, 2)
LANES_KERNEL(two_4, 4, 4, 2)
LANES_KERNEL(two_8, 8, 4, 2)

const block_set block_lanes_int = {
    .level = CPU_AVX2,
    .format = BLOCK_I8_ROWS,
    .vector = MOST_ROWS,
    .wide = WIDE,
    .one = {one_1, one_2, one_4, one_8},
    .two = {two_1, two_2, two_4, two_8},
    .many = {two_1, two_2, two_4, two_8},
    .packets = 1,
    .column_lanes = PART_LANES,
    .in_rows = true,
    .weights_in_rows = true,
    .in_runs = true,
};
