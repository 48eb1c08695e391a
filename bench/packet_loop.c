#include "bench/packet_loop.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { PACKET_BYTES = 64, ROWS = 8, LANES_BF16 = 32, WORDS = 16, MOST_GROUP = 2 /* packets in the lanes of a vector */, LINE_BYTES = 64 };

struct packet_loop {
    packet_shape shape;
    void (*slice)(const packet_shape *s, const unsigned char *data, const unsigned char *weights, void *out);
    unsigned char *data, *weights, *out;
    int64_t data_bytes, weight_bytes, out_bytes; /* of a slice */
};

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define DOT __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,fma")))
#define TILES __attribute__((target("avx512f,amx-tile,amx-int8")))
#define INLINE static inline __attribute__((always_inline))

/* ---- i8: a packet as it lies against each Row's packet of weights; the lanes of a sum are added at the end ---- */

#define INT_LOOP(NAME, LEVEL, PARTS, VECTOR, ZERO, LOAD, WEIGHT_BYTES, STEP, REDUCE) \
    LEVEL INLINE void NAME##_some(const packet_shape *s, const unsigned char *data, const unsigned char *weights, int32_t *out, int rows, \
                                  int count) \
    { \
        VECTOR sum[24]; \
        for (int i = 0; i < rows * count; i++) \
            sum[i] = ZERO; \
        for (int64_t p = 0; p < s->packets; p++) \
            for (int part = 0; part < PARTS; part++) { \
                VECTOR d[6]; \
                for (int m = 0; m < count; m++) \
                    d[m] = LOAD(data + (m * s->packets + p) * PACKET_BYTES + part * (PACKET_BYTES / PARTS)); \
                for (int r = 0; r < rows; r++) { \
                    const unsigned char *at = weights + ((p * PARTS + part) * rows + r) * WEIGHT_BYTES; \
                    VECTOR w = *(const VECTOR *)(const void *)at; \
                    for (int m = 0; m < count; m++) \
                        sum[m * rows + r] = STEP(sum[m * rows + r], d[m], w); \
                } \
            } \
        for (int i = 0; i < rows * count; i++) \
            out[i / rows * s->tiles * rows + i % rows] = REDUCE(sum[i]); \
    } \
    LEVEL INLINE void NAME##_of(const packet_shape *s, const unsigned char *data, const unsigned char *weights, int32_t *out, int rows, \
                                int together) \
    { \
        int64_t each = s->packets * PACKET_BYTES, tile = s->packets * PARTS * rows * WEIGHT_BYTES, m = 0; \
        for (; m + together <= s->vectors; m += together) \
            for (int64_t t = 0; t < s->tiles; t++) \
                NAME##_some(s, data + m * each, weights + t * tile, out + (m * s->tiles + t) * rows, rows, together); \
        for (; m < s->vectors; m++) \
            for (int64_t t = 0; t < s->tiles; t++) \
                NAME##_some(s, data + m * each, weights + t * tile, out + (m * s->tiles + t) * rows, rows, 1); \
    } \
    LEVEL static void NAME(const packet_shape *s, const unsigned char *data, const unsigned char *weights, void *out) \
    { \
        if (s->rows == ROWS) \
            NAME##_of(s, data, weights, out, ROWS, PARTS == 4 ? 1 : 3); \
        else \
            NAME##_of(s, data, weights, out, ROWS / 2, PARTS == 4 ? 2 : 6); \
    }

AVX2 INLINE int32_t sum_256(__m256i v)
{
    __m128i h = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(h, _mm_shuffle_epi32(h, 0xb1)));
}

#define LOAD_16(at) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#define LOAD_32(at) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
/* Unsigned, 128 more: what that adds is the same for all packets, and stands in the sum's beginning. */
#define LOAD_64(at) _mm512_xor_si512(_mm512_loadu_si512(at), _mm512_set1_epi8((char)0x80))
#define STEP_16(sum, d, w) _mm256_add_epi32(sum, _mm256_madd_epi16(d, w))
#define STEP_32(sum, d, w) _mm512_add_epi32(sum, _mm512_madd_epi16(d, w))

INT_LOOP(int_avx2, AVX2, 4, __m256i, _mm256_setzero_si256(), LOAD_16, 32, STEP_16, sum_256)
INT_LOOP(int_avx512, AVX512, 2, __m512i, _mm512_setzero_si512(), LOAD_32, 64, STEP_32, _mm512_reduce_add_epi32)
INT_LOOP(int_dot, DOT, 1, __m512i, _mm512_setzero_si512(), LOAD_64, 64, _mm512_dpbusd_epi32, _mm512_reduce_add_epi32)

/* ---- i8 on tiles: packets of up to 16 outputs are the rows of one, words of weights of up to 16 Rows those of the other ---- */

enum { TILE_ROWS = 16, TILE_REGISTERS = 8 };

typedef struct tile_shape {
    const packet_shape *s;
    int64_t rows, count;     /* of outputs in a tile, and such tiles: the last one begins where all its rows are outputs */
    int64_t columns, groups; /* of Rows in a tile */
} tile_shape;

static tile_shape tile_shape_of(const packet_shape *s)
{
    int64_t all = s->tiles * s->rows, count = (s->vectors + TILE_ROWS - 1) / TILE_ROWS, columns = all < TILE_ROWS ? all : TILE_ROWS;
    return (tile_shape){s, (s->vectors + count - 1) / count, count, columns, all / columns};
}

INLINE int64_t tile_begin(const tile_shape *t, int64_t i)
{
    int64_t last = t->s->vectors - t->rows;
    return i * t->rows < last ? i * t->rows : last;
}

/* Registers 0 to 3 are sums, 4 and 5 packets, 6 and 7 weights. */
TILES static void tiles_begin(const tile_shape *t)
{
    struct {
        uint8_t palette, start_row, unused[14];
        uint16_t row_bytes[TILE_ROWS];
        uint8_t rows[TILE_ROWS];
    } config = {.palette = 1};
    for (int i = 0; i < TILE_REGISTERS; i++) {
        config.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? PACKET_BYTES : 4 * t->columns);
        config.rows[i] = (uint8_t)(i < 6 ? t->rows : WORDS);
    }
    _tile_loadconfig(&config);
}

/* Up to four tiles of outputs, from the i-th on, against a tile of Rows. */
TILES INLINE void tiles_down(const tile_shape *t, const unsigned char *data, const unsigned char *weights, int32_t *out, int64_t i,
                             int count)
{
    const packet_shape *s = t->s;
    int64_t each = s->packets * PACKET_BYTES, out_row = s->tiles * s->rows;
    const unsigned char *at[4];
    for (int j = 0; j < count; j++)
        at[j] = data + tile_begin(t, i + j) * each;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t p = 0; p < s->packets; p++) {
        _tile_loadd(6, weights + p * WORDS * 4 * t->columns, 4 * t->columns);
        _tile_loadd(4, at[0] + p * PACKET_BYTES, each);
        _tile_dpbssd(0, 4, 6);
        if (count > 1) {
            _tile_loadd(5, at[1] + p * PACKET_BYTES, each);
            _tile_dpbssd(1, 5, 6);
        }
        if (count > 2) {
            _tile_loadd(4, at[2] + p * PACKET_BYTES, each);
            _tile_dpbssd(2, 4, 6);
        }
        if (count > 3) {
            _tile_loadd(5, at[3] + p * PACKET_BYTES, each);
            _tile_dpbssd(3, 5, 6);
        }
    }
    _tile_stored(0, out + tile_begin(t, i) * out_row, 4 * out_row);
    if (count > 1)
        _tile_stored(1, out + tile_begin(t, i + 1) * out_row, 4 * out_row);
    if (count > 2)
        _tile_stored(2, out + tile_begin(t, i + 2) * out_row, 4 * out_row);
    if (count > 3)
        _tile_stored(3, out + tile_begin(t, i + 3) * out_row, 4 * out_row);
}

/* Two tiles of outputs against two of Rows: each of the four is read for two products. */
TILES INLINE void tiles_square(const tile_shape *t, const unsigned char *first, const unsigned char *second, const unsigned char *weights,
                               int32_t *out, int32_t *out_second)
{
    const packet_shape *s = t->s;
    int64_t each = s->packets * PACKET_BYTES, out_row = s->tiles * s->rows, group = s->packets * WORDS * 4 * t->columns;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t p = 0; p < s->packets; p++) {
        const unsigned char *w = weights + p * WORDS * 4 * t->columns;
        _tile_loadd(4, first + p * PACKET_BYTES, each);
        _tile_loadd(6, w, 4 * t->columns);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(7, w + group, 4 * t->columns);
        _tile_dpbssd(1, 4, 7);
        _tile_loadd(5, second + p * PACKET_BYTES, each);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_stored(0, out, 4 * out_row);
    _tile_stored(1, out + t->columns, 4 * out_row);
    _tile_stored(2, out_second, 4 * out_row);
    _tile_stored(3, out_second + t->columns, 4 * out_row);
}

TILES static void int_tiles(const packet_shape *s, const unsigned char *data, const unsigned char *weights, void *to)
{
    tile_shape t = tile_shape_of(s);
    int64_t each = s->packets * PACKET_BYTES, out_row = s->tiles * s->rows, group = s->packets * WORDS * 4 * t.columns, i = 0;
    int32_t *out = to;
    tiles_begin(&t);
    for (; t.groups % 2 == 0 && i + 2 <= t.count; i += 2) {
        int64_t first = tile_begin(&t, i), second = tile_begin(&t, i + 1);
        for (int64_t g = 0; g < t.groups; g += 2)
            tiles_square(&t, data + first * each, data + second * each, weights + g * group, out + first * out_row + g * t.columns,
                         out + second * out_row + g * t.columns);
    }
    for (; i < t.count; i += 4)
        for (int64_t g = 0; g < t.groups; g++) {
            int32_t *at = out + g * t.columns;
            switch (t.count - i) {
            case 1: tiles_down(&t, data, weights + g * group, at, i, 1); break;
            case 2: tiles_down(&t, data, weights + g * group, at, i, 2); break;
            case 3: tiles_down(&t, data, weights + g * group, at, i, 3); break;
            default: tiles_down(&t, data, weights + g * group, at, i, 4);
            }
        }
    _tile_release();
}

/* ---- bf16: Rows of some packets in the lanes; a packet's products level by level, exact ones fused, then its sum to the others ---- */

#define FLOAT_LOOP(NAME, LEVEL, GROUP, VECTOR, ZERO, WORD, LEAF, WEIGHT_BYTES, ADD, STORE) \
    LEVEL INLINE VECTOR NAME##_packet(const unsigned char *data, int64_t each, const unsigned char *weights) \
    { \
        VECTOR node[WORDS]; \
        for (int i = 0; i < WORDS; i++) \
            node[i] = LEAF(WORD(data + 4 * i, each), weights + i * WEIGHT_BYTES); \
        for (int n = WORDS / 2; n > 0; n /= 2) \
            for (int i = 0; i < n; i++) \
                node[i] = ADD(node[2 * i], node[2 * i + 1]); \
        return node[0]; \
    } \
    LEVEL static void NAME(const packet_shape *s, const unsigned char *data, const unsigned char *weights, void *out) \
    { \
        int64_t each = s->packets * PACKET_BYTES, tile = s->packets * WORDS * WEIGHT_BYTES; \
        for (int64_t m = 0; m < s->vectors; m += 2 * GROUP) \
            for (int64_t t = 0; t < s->tiles; t++) { \
                VECTOR sum[2] = {ZERO, ZERO}; \
                for (int64_t p = 0; p < s->packets; p++) { \
                    const unsigned char *from = data + m * each + p * PACKET_BYTES, *w = weights + t * tile + p * WORDS * WEIGHT_BYTES; \
                    for (int g = 0; g < 2; g++) \
                        sum[g] = ADD(sum[g], NAME##_packet(from + g * GROUP * each, each, w)); \
                } \
                for (int g = 0; g < 2; g++) \
                    STORE((float *)out + ((m / GROUP + g) * s->tiles + t) * ROWS * GROUP, sum[g]); \
            } \
    }

INLINE int32_t word_at(const unsigned char *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

AVX2 INLINE __m256i word_256(const unsigned char *at, int64_t each)
{
    (void)each;
    return _mm256_set1_epi32(word_at(at));
}

AVX512 INLINE __m512i word_512(const unsigned char *at, int64_t each)
{
    return _mm512_mask_set1_epi32(_mm512_set1_epi32(word_at(at)), 0xff00, word_at(at + each));
}

AVX2 INLINE __m256 leaf_avx2(__m256i word, const unsigned char *weights)
{
    const __m256 *w = (const __m256 *)(const void *)weights;
    __m256 low = _mm256_castsi256_ps(_mm256_slli_epi32(word, 16));
    return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(word, _mm256_set1_epi32(-65536))), w[1], _mm256_mul_ps(low, w[0]));
}

AVX512 INLINE __m512 leaf_avx512(__m512i word, const unsigned char *weights)
{
    const __m512 *w = (const __m512 *)(const void *)weights;
    __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(word, 16));
    return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(word, _mm512_set1_epi32(-65536))), w[1], _mm512_mul_ps(low, w[0]));
}

DOT INLINE __m512 leaf_dot(__m512i word, const unsigned char *weights)
{
    return _mm512_dpbf16_ps(_mm512_setzero_ps(), (__m512bh)word, *(const __m512bh *)(const void *)weights);
}

FLOAT_LOOP(float_avx2, AVX2, 1, __m256, _mm256_setzero_ps(), word_256, leaf_avx2, 64, _mm256_add_ps, _mm256_storeu_ps)
FLOAT_LOOP(float_avx512, AVX512, 2, __m512, _mm512_setzero_ps(), word_512, leaf_avx512, 128, _mm512_add_ps, _mm512_storeu_ps)
FLOAT_LOOP(float_dot, DOT, 2, __m512, _mm512_setzero_ps(), word_512, leaf_dot, 64, _mm512_add_ps, _mm512_storeu_ps)

/* ---- which ---- */

static const struct {
    cpu_level level;
    bool is_float;
    int64_t word_bytes; /* of the weights of a Row, or of the vector, for 4 bytes of a packet */
    void (*slice)(const packet_shape *s, const unsigned char *data, const unsigned char *weights, void *out);
} loops[] = {
    {CPU_AVX2, false, 8, int_avx2},   {CPU_AVX512, false, 8, int_avx512}, {CPU_DOT, false, 4, int_dot},
    {CPU_TILES, false, 4, int_tiles}, {CPU_AVX2, true, 64, float_avx2},   {CPU_AVX512, true, 128, float_avx512},
    {CPU_DOT, true, 64, float_dot},
};

static unsigned char *filled(int64_t bytes, int value)
{
    unsigned char *at = aligned_alloc(LINE_BYTES, (size_t)(bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
    return at ? memset(at, value, (size_t)bytes) : NULL;
}

packet_loop *packet_loop_new(cpu_level level, const packet_shape *s)
{
    packet_loop *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->shape = *s;
    if (s->is_float) /* a whole number of groups */
        l->shape.vectors = (s->vectors + 2 * MOST_GROUP - 1) / (2 * MOST_GROUP) * (2 * MOST_GROUP);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (loops[i].level == level && loops[i].is_float == s->is_float && cpu_has(level, s->is_float)) {
            l->slice = loops[i].slice;
            l->weight_bytes = s->tiles * s->packets * WORDS * loops[i].word_bytes * (s->is_float ? 1 : s->rows);
        }
    l->data_bytes = l->shape.vectors * s->packets * PACKET_BYTES;
    l->out_bytes = l->shape.vectors * s->tiles * s->rows * 4;
    if (l->slice) {
        l->data = filled(s->slices * l->data_bytes, 0x3f);
        l->weights = filled(s->slices * l->weight_bytes, 0x3f);
        l->out = filled(s->slices * l->out_bytes, 0);
    }
    if (l->data && l->weights && l->out)
        return l;
    packet_loop_free(l);
    return NULL;
}

void packet_loop_run(const packet_loop *l)
{
    for (int64_t i = 0; i < l->shape.slices; i++)
        l->slice(&l->shape, l->data + i * l->data_bytes, l->weights + i * l->weight_bytes, l->out + i * l->out_bytes);
}

void packet_loop_free(packet_loop *l)
{
    if (!l)
        return;
    free(l->data);
    free(l->weights);
    free(l->out);
    free(l);
}
#else
packet_loop *packet_loop_new(cpu_level level, const packet_shape *s)
{
    (void)level, (void)s;
    return NULL;
}

void packet_loop_run(const packet_loop *l)
{
    (void)l;
}

void packet_loop_free(packet_loop *l)
{
    (void)l;
}
#endif
