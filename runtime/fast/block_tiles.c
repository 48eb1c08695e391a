/* Integers on tiles (AMX-INT8), which wrap as the accumulator does.
 *
 * The one idea: a tile's rows are 16 packets as they lie in memory and its columns are the Rows, so packets are neither interleaved nor
 * copied, and an output of a sum is a packet's row and a Row's column. Weights stand as [word][Row]; a lane that does not count has the
 * weight zero. */
#include <immintrin.h>
#include <string.h>

#include "runtime/fast/block.h"

#define INLINE static inline __attribute__((always_inline))

enum { PACKETS = 16, MOST_WORDS = 16 /* of a tile's row */, MOST_ROWS = 8, WIDE = 4, SUMS = 0, WEIGHTS = 4, DATA = 5, TILES = 8 };
enum { AHEAD_STEPS = 8, LEAST_PACKETS = 4 /* fewer, and two units of VPDPBUSD multiply as much */ };

typedef struct tile_config {
    uint8_t palette, first_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* The compiler does not know what these instructions read: what was written before has to be in memory. */
#define WRITTEN() __asm__ volatile("" ::: "memory")

static int64_t words_at_once(int64_t column_words)
{
    return column_words < MOST_WORDS ? column_words : MOST_WORDS;
}

static void enter(int64_t column_words, int64_t rows)
{
    _Alignas(64) tile_config c = {.palette = 1};
    int64_t words = words_at_once(column_words);
    for (int i = SUMS; i < SUMS + WIDE; i++) {
        c.rows[i] = PACKETS;
        c.row_bytes[i] = (uint16_t)(rows * 4);
    }
    c.rows[WEIGHTS] = (uint8_t)words;
    c.row_bytes[WEIGHTS] = (uint16_t)(rows * 4);
    for (int i = DATA; i < TILES; i++) {
        c.rows[i] = PACKETS;
        c.row_bytes[i] = (uint16_t)(words * 4);
    }
    WRITTEN();
    _tile_loadconfig(&c);
}

static void leave(void)
{
    _tile_release();
}

/* The weights of some words, or, where lanes do not count, a copy of them in `masked`. */
INLINE const block_word *weights_at(const block_run *r, const block_step *s, int64_t first, int64_t words, block_word *masked)
{
    const block_word *weights = r->weights + s->weights + first * r->rows;
    if (__builtin_expect(s->keep == NULL, 1))
        return weights;
    for (int64_t w = 0; w < words; w++)
        for (int64_t row = 0; row < r->rows; row++)
            masked[w * r->rows + row] = weights[w * r->rows + row] & s->keep[first + w];
    WRITTEN();
    return masked;
}

/* Tile numbers are part of the instructions. */
#define EACH(action) \
    action(0); \
    action(1); \
    action(2); \
    action(3);
#define SUM_ZERO(t) _tile_zero(t)
#define SUM_LOAD(t) \
    if ((t) < wide) \
    _tile_loadd(t, cells + (t)*cell_stride, r->rows * 4)
#define SUM_STORE(t) _tile_stored(t, wide == WIDE ? cells + (t)*cell_stride : parts[t], r->rows * 4)
/* A tile's packets lie far from each other, which is more streams than a processor follows by itself. */
INLINE void fetch_ahead(const block_word *data, int64_t packet_bytes)
{
    for (int64_t i = 0; i < PACKETS; i++)
        __builtin_prefetch((const char *)data + i * packet_bytes);
}

/* The next tile of packets for sum t. */
#define SUM_ADD(t, data_tile) \
    if (!r->near) \
        fetch_ahead(place.ahead + (t) % wide * r->data_stride, r->packet_bytes); \
    _tile_loadd(data_tile, data + (t) % wide * r->data_stride, r->packet_bytes); \
    _tile_dpbssd(t, data_tile, 4)

/* A column's words of a step, a tile of them at a time. */
typedef struct tile_place {
    const block_run *run;
    int64_t column, words, step, word, wide;
    block_word *masked;
    const block_word *ahead; /* the packets that are multiplied some steps later: of these vectors, or of those after them */
} tile_place;

/* Loads the weights of the place and goes on to the next. Returns its packets; NULL: all is done. */
INLINE const block_word *next_words(tile_place *p)
{
    const block_run *r = p->run;
    if (p->step == r->step_count)
        return NULL;
    const block_step *s = &r->steps[p->step];
    int64_t first = p->column * r->column_words + p->word;
    p->ahead = block_ahead(r, p->step, AHEAD_STEPS, p->wide) + first;
    _tile_loadd(4, weights_at(r, s, first, p->words, p->masked), r->rows * 4);
    p->word += p->words;
    if (p->word == r->column_words) {
        p->word = 0;
        p->step++;
    }
    return r->data + s->data + first;
}

/* Fewer vectors than tiles have several tiles for each, so that none waits for its last sum; they are added up at the end. */
INLINE void parts_add(const block_run *r, int wide, int64_t cell_stride, block_word parts[WIDE][PACKETS * MOST_ROWS], block_word *cells)
{
    for (int u = 0; u < wide; u++)
        for (int64_t i = 0; i < PACKETS * r->rows; i++) {
            block_word sum = parts[u][i];
            for (int t = u + wide; t < WIDE; t += wide)
                sum += parts[t][i];
            cells[u * cell_stride + i] = sum;
        }
}

INLINE void tiles(const block_run *r, int wide)
{
    int64_t cell_stride = r->columns * PACKETS * r->rows;
    block_word masked[MOST_WORDS * MOST_ROWS], parts[WIDE][PACKETS * MOST_ROWS];
    for (int64_t c = 0; c < r->columns; c++) {
        block_word *cells = r->cells + c * PACKETS * r->rows;
        EACH(SUM_ZERO)
        if (!r->fresh) {
            EACH(SUM_LOAD)
        }
        tile_place place = {.run = r, .column = c, .words = words_at_once(r->column_words), .wide = wide, .masked = masked};
        for (const block_word *data; (data = next_words(&place));) {
            SUM_ADD(0, 5);
            if (wide > 1) {
                SUM_ADD(1, 6);
            }
            if (wide > 2) {
                SUM_ADD(2, 7);
                SUM_ADD(3, 5);
            }
            if (wide <= 2 && (data = next_words(&place))) {
                if (wide == 1) {
                    SUM_ADD(1, 6);
                } else {
                    SUM_ADD(2, 7);
                    SUM_ADD(3, 5);
                }
            }
            if (wide == 1 && (data = next_words(&place))) {
                SUM_ADD(2, 7);
            }
            if (wide == 1 && (data = next_words(&place))) {
                SUM_ADD(3, 5);
            }
        }
        EACH(SUM_STORE)
        if (wide < WIDE)
            parts_add(r, wide, cell_stride, parts, cells);
    }
}

static void tiles_1(const block_run *r)
{
    tiles(r, 1);
}

static void tiles_2(const block_run *r)
{
    tiles(r, 2);
}

static void tiles_4(const block_run *r)
{
    tiles(r, WIDE);
}

/* [word][Row]; most Rows are eight. */
INLINE void weave(const unsigned char *const *rows, int64_t words, block_word *to, int count)
{
    int64_t w = 0;
    for (; count == 8 && w + 8 <= words; w += 8) {
        __m256i v[8], pairs[8], fours[8];
        for (int i = 0; i < 8; i++)
            v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(rows[i] + 4 * w));
        for (int i = 0; i < 4; i++) {
            pairs[i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
            pairs[i + 4] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
        }
        for (int i = 0; i < 8; i += 2) { /* words 0, 1, 2, 3 of Rows 0 to 3, then of 4 to 7 */
            fours[i / 4 * 2 + i / 2 % 2 * 4] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 1]);
            fours[i / 4 * 2 + i / 2 % 2 * 4 + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 1]);
        }
        for (int i = 0; i < 4; i++) {
            _mm256_storeu_si256((__m256i *)(void *)(to + (w + i) * 8), _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20));
            _mm256_storeu_si256((__m256i *)(void *)(to + (w + i + 4) * 8), _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31));
        }
    }
    for (; w < words; w++)
        for (int i = 0; i < count; i++)
            memcpy(&to[w * count + i], rows[i] + 4 * w, sizeof *to);
}

#define WEAVE(count) \
    static void weave_##count(const unsigned char *const *rows, int64_t words, block_word *to, block_exponents *seen) \
    { \
        (void)seen; \
        weave(rows, words, to, count); \
    }
WEAVE(1)
WEAVE(2)
WEAVE(4)
WEAVE(8)

const block_set block_tiles_int = {
    .level = CPU_TILES,
    .format = BLOCK_I8_ROWS,
    .vector = PACKETS * MOST_ROWS,
    .packets = PACKETS,
    .in_rows = true,
    .wide = {WIDE, WIDE, WIDE, WIDE},
    .least_packets = LEAST_PACKETS,
    .one = {tiles_1, tiles_1, tiles_1, tiles_1},
    .two = {tiles_2, tiles_2, tiles_2, tiles_2},
    .many = {tiles_4, tiles_4, tiles_4, tiles_4},
    .repeat = {weave_1, weave_2, weave_4, weave_8},
    .enter = enter,
    .leave = leave,
};
