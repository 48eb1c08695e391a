/* Integers with lanes of one sum in a vector, for the file of a level to include.
 *
 * The one idea: sums of integers have no order, so as many lanes of a packet as a vector takes are multiplied with as many of a Row's
 * weights, and what the lanes of a sum hold is added when its steps are done. Packets and weights are taken from where they lie; nothing is
 * interleaved, repeated or copied. Some Rows against some packets are as many sums as there are registers, and each load is for several.
 *
 * The file sets
 * - LANES_PART: lanes of a packet that a vector takes,
 * - LANES_VECTOR: words of a vector,
 * - LANES_WIDE, LANES_WIDE_FEW: packets at once against eight Rows, and against fewer,
 * - LANES_ROWS: of eight Rows how many at once,
 * - LANES_TOGETHER: Rows whose sums are added together when they end,
 * - LANES_AHEAD: steps that packets are fetched ahead,
 * - LANES_BIASED: its packets are 128 too large, as unsigned ones,
 *
 * and defines
 * - lanes_data(words), lanes_data_kept(words, keep): lanes of a packet; those that do not count are zero, or the bias alone,
 * - lanes_weights(words), lanes_bias(), if it is LANES_BIASED: of weights; a packet of nothing but the bias,
 * - lanes_products(sum, data, weights): the sums and the products,
 * - lanes_total(sum, rows, apart): what the lanes of up to LANES_TOGETHER Rows hold, `apart` vectors from one to the next. */
#include <string.h>

#include "runtime/fast/block.h"

#define INLINE static inline __attribute__((always_inline))

enum { PART_WORDS = LANES_PART / 4, MOST_ROWS = 8 };
/* Steps after which the next Rows take the same packets: these are in the first-level cache still, next to the Rows' weights. */
enum { PIECE_STEPS = 32, MOST_FOLLOW = 7 /* of what is asked for ahead at once */ };

typedef uint32_t lanes_vector __attribute__((vector_size(4 * LANES_VECTOR)));
typedef uint32_t lanes_cells __attribute__((vector_size(4 * LANES_TOGETHER)));

INLINE lanes_vector lanes_data(const block_word *words);
INLINE lanes_vector lanes_data_kept(const block_word *words, const block_word *keep);
INLINE lanes_vector lanes_weights(const block_word *words);
INLINE lanes_vector lanes_bias(void);
INLINE lanes_vector lanes_products(lanes_vector sum, lanes_vector data, lanes_vector weights);
INLINE lanes_cells lanes_total(const lanes_vector *sum, int rows, int apart);

#if !LANES_BIASED
INLINE lanes_vector lanes_weights(const block_word *words)
{
    return lanes_data(words);
}

INLINE lanes_vector lanes_bias(void)
{
    return (lanes_vector){0};
}
#endif

/* Where a vector's lanes of some packets and of some Rows' weights are. */
typedef struct lanes_place {
    const block_word *data, *weights, *keep;
    int64_t data_stride, row_words;
} lanes_place;

/* The sums of a Row: one for each packet, and with `own` one of the bias after them. */
INLINE void part_add(const lanes_place *p, int64_t word, bool masked, int rows, int wide, bool own, lanes_vector *sum)
{
    lanes_vector packet[LANES_WIDE_FEW];
    int each = wide + own;
    for (int u = 0; u < wide; u++) {
        const block_word *data = p->data + u * p->data_stride + word;
        packet[u] = masked ? lanes_data_kept(data, p->keep + word) : lanes_data(data);
    }
    for (int row = 0; row < rows; row++) {
        lanes_vector weights = lanes_weights(p->weights + row * p->row_words + word);
        for (int u = 0; u < wide; u++)
            sum[row * each + u] = lanes_products(sum[row * each + u], packet[u], weights);
        if (own)
            sum[row * each + wide] = lanes_products(sum[row * each + wide], lanes_bias(), weights);
    }
}

/* Steps [first, end) of a column, for the Rows from `row` on. Some that follow each other are as one that is longer. */
INLINE void steps_add(const block_run *r, int64_t column, int64_t first, int64_t end, int row, int rows, int wide, bool own,
                      lanes_vector *sum)
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
            const block_word *ahead = block_ahead(r, j, LANES_AHEAD, wide);
            for (int u = 0; u < wide; u++)
                __builtin_prefetch(ahead + u * r->data_stride);
        }
        i += joined;
        if (__builtin_expect(s->keep != NULL, 0))
            for (int64_t w = 0; w < words; w += PART_WORDS)
                part_add(&p, w, true, rows, wide, own, sum);
        else
            for (int64_t w = 0; w < words; w += PART_WORDS)
                part_add(&p, w, false, rows, wide, own, sum);
    }
}

/* Adds them to the cells, a packet's Rows together, without what the bias adds: of its own sums, or as r->start has it. */
INLINE void sums_end(const block_run *r, int64_t column, int row, int rows, int all_rows, int wide, bool own, const lanes_vector *sum)
{
    int each = wide + own;
    for (int part = 0; part < rows; part += LANES_TOGETHER) {
        int count = rows - part < LANES_TOGETHER ? rows - part : LANES_TOGETHER;
        size_t bytes = (size_t)count * sizeof(block_word);
        lanes_cells bias = {0}, before = {0};
        if (own)
            bias = lanes_total(sum + part * each + wide, count, each);
        else if (LANES_BIASED)
            memcpy(&bias, r->start + column * all_rows + row + part, bytes);
        for (int u = 0; u < wide; u++) {
            block_word *cells = r->cells + (u * r->columns + column) * all_rows + row + part;
            lanes_cells total = lanes_total(sum + part * each + u, count, each) - bias;
            if (!r->fresh) {
                memcpy(&before, cells, bytes);
                total += before;
            }
            memcpy(cells, &total, bytes);
        }
    }
}

/* A column's sums for `wide` packets and all Rows, of which so many are in registers at once. */
INLINE void column_sums(const block_run *r, int64_t column, int all_rows, int rows, int wide, bool own)
{
    enum { MOST_SUMS = MOST_ROWS * (LANES_WIDE_FEW + LANES_BIASED) };
    lanes_vector kept[MOST_SUMS];
    int each = wide + own;
    int64_t piece = all_rows > rows ? PIECE_STEPS : r->step_count, first = 0;
    do { /* at least once, for sums that begin */
        int64_t end = first + piece < r->step_count ? first + piece : r->step_count;
        for (int row = 0; row < all_rows; row += rows) {
            lanes_vector sum[MOST_SUMS];
            for (int i = 0; i < rows * each; i++)
                sum[i] = first ? kept[row * each + i] : (lanes_vector){0};
            steps_add(r, column, first, end, row, rows, wide, own, sum);
            if (end == r->step_count)
                sums_end(r, column, row, rows, all_rows, wide, own, sum);
            else
                for (int i = 0; i < rows * each; i++)
                    kept[row * each + i] = sum[i];
        }
        first = end;
    } while (first < r->step_count);
}

/* `rows` at once of `all_rows`. A few packets find what the bias adds next to their own sums, in one walk through weights; for many it
 * stands in r->start. */
#define LANES_KERNEL(name, all_rows, rows, wide, own) \
    static void name(const block_run *r) \
    { \
        block_run run = *r; \
        for (int64_t i = 0; i < r->runs; i++) { \
            for (int64_t c = 0; c < r->columns; c++) \
                column_sums(&run, c, all_rows, rows, wide, LANES_BIASED && (own)); \
            run.data += (wide)*run.data_stride; \
            run.cells += (wide)*run.columns * (all_rows); \
        } \
    }

LANES_KERNEL(one_1, 1, 1, 1, true)
LANES_KERNEL(one_2, 2, 2, 1, true)
LANES_KERNEL(one_4, 4, 4, 1, true)
LANES_KERNEL(one_8, 8, 8, 1, true)
LANES_KERNEL(two_1, 1, 1, 2, true)
LANES_KERNEL(two_2, 2, 2, 2, true)
LANES_KERNEL(two_4, 4, 4, 2, true)
LANES_KERNEL(two_8, 8, LANES_ROWS, 2, true)
LANES_KERNEL(many_1, 1, 1, LANES_WIDE_FEW, false)
LANES_KERNEL(many_2, 2, 2, LANES_WIDE_FEW, false)
LANES_KERNEL(many_4, 4, 4, LANES_WIDE_FEW, false)
LANES_KERNEL(many_8, 8, LANES_ROWS, LANES_WIDE, false)

#if LANES_BIASED
/* What r->start is for `many`: a packet of nothing but the bias against each Row's weights. */
INLINE void bias_sums(const block_run *r, int rows)
{
    for (int64_t c = 0; c < r->columns; c++) {
        lanes_vector sum[MOST_ROWS] = {{0}};
        for (int64_t i = 0; i < r->step_count; i++) {
            const block_word *weights = r->weights + r->steps[i].weights + c * r->column_words;
            for (int64_t w = 0; w < r->column_words; w += PART_WORDS)
                for (int row = 0; row < rows; row++)
                    sum[row] = lanes_products(sum[row], lanes_bias(), lanes_weights(weights + row * r->row_words + w));
        }
        lanes_cells total = lanes_total(sum, rows, 1);
        memcpy(r->cells + c * rows, &total, (size_t)rows * sizeof(block_word));
    }
}

#define LANES_BIAS(rows) \
    static void bias_##rows(const block_run *r) \
    { \
        bias_sums(r, rows); \
    }
LANES_BIAS(1)
LANES_BIAS(2)
LANES_BIAS(4)
LANES_BIAS(8)
#define LANES_START \
    { \
        bias_1, bias_2, bias_4, bias_8 \
    }
#else
#define LANES_START \
    { \
        NULL \
    }
#endif

#define LANES_SET(name, level_) \
    const block_set name = { \
        .level = level_, \
        .format = BLOCK_I8_ROWS, \
        .vector = MOST_ROWS, \
        .wide = {LANES_WIDE_FEW, LANES_WIDE_FEW, LANES_WIDE_FEW, LANES_WIDE}, \
        .one = {one_1, one_2, one_4, one_8}, \
        .two = {two_1, two_2, two_4, two_8}, \
        .many = {many_1, many_2, many_4, many_8}, \
        .start_many = LANES_START, \
        .packets = 1, \
        .column_lanes = LANES_PART, \
        .in_rows = true, \
        .weights_in_rows = true, \
        .in_runs = true, \
    };
