/* The loops of a block, for the file of a level to include: it sets BLOCK_VECTOR (words), BLOCK_WIDE
 * (vectors at once) and, for a tree, BLOCK_LEAF_WORDS first, and is compiled for its level.
 *
 * The one idea: everything that shapes the code (packets of a group, vectors at once, words of a column) is a
 * constant where it is used, so that partial sums stay in registers. */
#include "runtime/fast/block.h"

#include <string.h>

#ifndef BLOCK_LOOK
#define BLOCK_LOOK NULL
#endif
/* 1: the kernels take packets where they lie, and widen and weave those of some steps at a time (block_set.widens). */
#ifndef BLOCK_WIDENS
#define BLOCK_WIDENS 0
#endif
/* 2, with BLOCK_HALVES: words are two bf16 of a packet as they lie, which the kernels take apart, and have a vector of weights for each. */
#ifndef BLOCK_WORD_VECTORS
#define BLOCK_WORD_VECTORS 1
#endif

#define INLINE static inline __attribute__((always_inline))
/* With a check at every access the copies of a column for each shape take minutes to compile, with libFuzzer's counters an hour, and nobody
 * waits for their sums: one column has its shape in variables there. It makes the same accesses and the same sums. */
#if defined(BLOCK_ONE_COLUMN) || !defined(__OPTIMIZE__)
#define COLUMN static __attribute__((noinline))
#else
#define COLUMN INLINE
#endif

typedef float vector_f __attribute__((vector_size(BLOCK_VECTOR * 4)));
typedef uint32_t vector_w __attribute__((vector_size(BLOCK_VECTOR * 4)));
typedef int32_t vector_i __attribute__((vector_size(BLOCK_VECTOR * 4)));
typedef uint64_t vector_d __attribute__((vector_size(BLOCK_VECTOR * 4)));
/* In memory, where it may begin at any word; a variable of this type would be spilled across two cache lines. */
typedef uint32_t vector_at __attribute__((vector_size(BLOCK_VECTOR * 4), aligned(4), may_alias));
typedef uint32_t vector_4 __attribute__((vector_size(16), aligned(4), may_alias));

INLINE vector_w load(const block_word *p)
{
    return (vector_w) * (const vector_at *)p;
}

/* One word of every packet of a group, repeated over the vector. */
INLINE vector_w spread(const block_word *p, int group)
{
    uint64_t two;
    switch (group) {
    case 1: return (vector_w){0} + *p;
    case 2: memcpy(&two, p, sizeof two); return (vector_w)((vector_d){0} + two);
#if defined(__AVX512F__) /* loads that the compiler does not find by itself */
    case 4: return (vector_w)_mm512_broadcast_i32x4(*(const __m128i_u *)p);
    case 8: return (vector_w)_mm512_broadcast_i64x4(*(const __m256i_u *)p);
#elif defined(__AVX2__)
    case 4: return (vector_w)_mm256_broadcastsi128_si256(*(const __m128i_u *)p);
#else
    case 4: return __builtin_shufflevector(*(const vector_4 *)p, *(const vector_4 *)p, 0, 1, 2, 3, 0, 1, 2, 3);
#endif
    default: return load(p);
    }
}

/* ---- packing ---- */

#ifdef BLOCK_HALVES
typedef uint16_t block_half __attribute__((may_alias));

/* Word i of a packet: a bf16 as f32. */
INLINE block_word word_at(const unsigned char *packet, int64_t i)
{
    block_half half;
    memcpy(&half, packet + 2 * i, sizeof half);
    return (block_word)half << 16;
}

#if BLOCK_VECTOR == 16
typedef __m512i exponent_lanes; /* two values in a word */

INLINE exponent_lanes exponents_load(const uint16_t *at)
{
    return _mm512_loadu_si512(at);
}

INLINE void exponents_store(uint16_t *at, exponent_lanes lanes)
{
    _mm512_storeu_si512(at, lanes);
}

INLINE void exponents_add(const unsigned char *packet, int64_t i, exponent_lanes *most, exponent_lanes *below)
{
    __m512i magnitude = _mm512_and_si512(_mm512_loadu_si512(packet + 2 * i), _mm512_set1_epi16(BLOCK_MAGNITUDE_MASK));
    *most = _mm512_max_epu16(*most, magnitude);
    *below = _mm512_min_epu16(*below, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
}

INLINE vector_w words_at(const unsigned char *packet, int64_t i)
{
    return (vector_w)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(packet + 2 * i))), 16);
}
#else
typedef __m256i exponent_lanes;

INLINE exponent_lanes exponents_load(const uint16_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

INLINE void exponents_store(uint16_t *at, exponent_lanes lanes)
{
    _mm256_storeu_si256((__m256i *)(void *)at, lanes);
}

INLINE void exponents_add(const unsigned char *packet, int64_t i, exponent_lanes *most, exponent_lanes *below)
{
    __m256i magnitude =
        _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)(packet + 2 * i)), _mm256_set1_epi16(BLOCK_MAGNITUDE_MASK));
    *most = _mm256_max_epu16(*most, magnitude);
    *below = _mm256_min_epu16(*below, _mm256_sub_epi16(magnitude, _mm256_set1_epi16(1)));
}

INLINE vector_w words_at(const unsigned char *packet, int64_t i)
{
    return (vector_w)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(packet + 2 * i))), 16);
}
#endif

INLINE void exponent_add(const unsigned char *packet, int64_t i, block_exponents *seen)
{
    uint16_t magnitude = (uint16_t)(word_at(packet, i) >> 16 & BLOCK_MAGNITUDE_MASK), below = (uint16_t)(magnitude - 1);
    seen->most[0] = magnitude > seen->most[0] ? magnitude : seen->most[0];
    seen->below[0] = below < seen->below[0] ? below : seen->below[0];
}

/* The exponents of all packets, before their words are taken apart. */
INLINE void exponents(const unsigned char *const *packets, int count, int64_t words, block_exponents *seen)
{
    enum { LANES = 2 * BLOCK_VECTOR };
    exponent_lanes most = exponents_load(seen->most), below = exponents_load(seen->below);
    int64_t i = 0;
    for (; i + LANES <= words; i += LANES)
        for (int g = 0; g < count; g++)
            exponents_add(packets[g], i, &most, &below);
    exponents_store(seen->most, most);
    exponents_store(seen->below, below);
    for (; i < words; i++)
        for (int g = 0; g < count; g++)
            exponent_add(packets[g], i, seen);
}
#elif defined(BLOCK_BYTES)
/* Word i of a packet: two i8 as i16. */
INLINE block_word word_at(const unsigned char *packet, int64_t i)
{
    return (uint16_t)(int8_t)packet[2 * i] | (block_word)(uint16_t)(int8_t)packet[2 * i + 1] << 16;
}

INLINE void exponents(const unsigned char *const *packets, int count, int64_t words, block_exponents *seen)
{
    (void)packets, (void)count, (void)words, (void)seen;
}

INLINE vector_w words_at(const unsigned char *packet, int64_t i)
{
    return (vector_w)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(packet + 2 * i)));
}
#else
INLINE block_word word_at(const unsigned char *packet, int64_t i)
{
    block_word word;
    memcpy(&word, packet + 4 * i, sizeof word);
    return word;
}

INLINE void exponents(const unsigned char *const *packets, int count, int64_t words, block_exponents *seen)
{
    (void)packets, (void)count, (void)words, (void)seen;
}

INLINE vector_w words_at(const unsigned char *packet, int64_t i)
{
    vector_w words;
    memcpy(&words, packet + 4 * i, sizeof words);
    return words;
}
#endif

#if BLOCK_WORD_VECTORS > 1
INLINE block_word packet_word_at(const unsigned char *packet, int64_t i)
{
    block_word word;
    memcpy(&word, packet + 4 * i, sizeof word);
    return word;
}

INLINE vector_w packet_words_at(const unsigned char *packet, int64_t i)
{
    vector_w words;
    memcpy(&words, packet + 4 * i, sizeof words);
    return words;
}
#else
INLINE block_word packet_word_at(const unsigned char *packet, int64_t i)
{
    return word_at(packet, i);
}

INLINE vector_w packet_words_at(const unsigned char *packet, int64_t i)
{
    return words_at(packet, i);
}
#endif

#if BLOCK_VECTOR == 16
#define BLOCK_LOWER(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define BLOCK_UPPER(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#else
#define BLOCK_LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define BLOCK_UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#endif

#if BLOCK_VECTOR == 16 || defined(__AVX2__)
enum { BLOCK_IN_REGISTER = true };
#else
enum { BLOCK_IN_REGISTER = false };
#endif

INLINE vector_w permuted(vector_w a, vector_w lanes)
{
#if BLOCK_VECTOR == 16
    return (vector_w)_mm512_permutexvar_epi32((__m512i)lanes, (__m512i)a);
#elif defined(__AVX2__)
    return (vector_w)_mm256_permutevar8x32_epi32((__m256i)a, (__m256i)lanes);
#else
    vector_w to;
    for (int lane = 0; lane < BLOCK_VECTOR; lane++)
        to[lane] = a[lanes[lane]];
    return to;
#endif
}

/* Vectors of `count` packets become the same words, packet next to packet: halves are shuffled into each other until all are. */
INLINE void weave(vector_w *v, int count)
{
    vector_w before[BLOCK_VECTOR];
    for (int done = 1; done < count; done *= 2) {
        for (int i = 0; i < count; i++)
            before[i] = v[i];
        for (int i = 0; i < count / 2; i++) {
            v[2 * i] = BLOCK_LOWER(before[i], before[i + count / 2]);
            v[2 * i + 1] = BLOCK_UPPER(before[i], before[i + count / 2]);
        }
    }
}

/* Whole vectors of each packet; returns how many words were done. A vector that no register holds is shuffled in memory, and its next read
 * waits for the stores of all its words: there packets are woven word by word. */
INLINE int64_t interleave_vectors(const unsigned char *const *packets, int64_t words, block_word flip, block_word *to, int group)
{
    int64_t i = 0;
    for (; (BLOCK_IN_REGISTER || group == 1) && i + BLOCK_VECTOR <= words; i += BLOCK_VECTOR) {
        vector_w v[BLOCK_VECTOR];
        for (int g = 0; g < group; g++)
            v[g] = packet_words_at(packets[g], i) ^ flip;
        weave(v, group);
        for (int g = 0; g < group; g++)
            *(vector_at *)(to + i * group + g * BLOCK_VECTOR) = v[g];
    }
    return i;
}

INLINE int64_t repeat_vectors(const unsigned char *const *rows, int64_t words, block_word *to, int group)
{
    int64_t i = 0;
    int count = BLOCK_VECTOR / group;
    vector_w row;
    for (int lane = 0; lane < BLOCK_VECTOR; lane++)
        row[lane] = (block_word)(lane / group);
    for (; i + BLOCK_VECTOR <= words; i += BLOCK_VECTOR) {
        vector_w v[BLOCK_VECTOR];
        for (int r = 0; r < count; r++)
            v[r] = words_at(rows[r], i);
        weave(v, count);
        for (int w = 0; w < BLOCK_VECTOR; w++)
            *(vector_at *)(to + (i + w) * BLOCK_VECTOR) = permuted(v[w / group], row + (block_word)(w % group * count));
    }
    return i;
}

/* The packets of a group word by word. */
INLINE void weave_packets(const unsigned char *const *packets, int64_t words, block_word flip, block_word *to, int group)
{
    for (int64_t i = interleave_vectors(packets, words, flip, to, group); i < words; i++)
        for (int g = 0; g < group; g++)
            to[i * group + g] = packet_word_at(packets[g], i) ^ flip;
}

#if BLOCK_WIDENS /* by themselves */
#define BLOCK_INTERLEAVES(name_1, name_2, name_4, name_8) \
    { \
        NULL \
    }
#define BLOCK_INTERLEAVE(group)
#else
INLINE void interleave(const unsigned char *const *packets, int64_t words, block_word flip, block_word *to, int group,
                       block_exponents *seen)
{
    exponents(packets, group, words, seen);
    weave_packets(packets, words, flip, to, group);
}

#define BLOCK_INTERLEAVES(name_1, name_2, name_4, name_8) \
    { \
        name_1, name_2, name_4, name_8 \
    }
#define BLOCK_INTERLEAVE(group) \
    static void interleave_##group(const unsigned char *const *packets, int64_t words, block_word flip, block_word *to, \
                                   block_exponents *seen) \
    { \
        interleave(packets, words, flip, to, group, seen); \
    }
#endif

/* The Rows word by word, each repeated for the group. */
INLINE void repeat(const unsigned char *const *rows, int64_t words, block_word *to, int group, block_exponents *seen)
{
    exponents(rows, BLOCK_VECTOR / group, words, seen);
    for (int64_t i = repeat_vectors(rows, words, to, group); i < words; i++)
        for (int row = 0; row < BLOCK_VECTOR / group; row++)
            for (int g = 0; g < group; g++)
                to[i * BLOCK_VECTOR + row * group + g] = word_at(rows[row], i);
}

#define BLOCK_PACK(group) \
    BLOCK_INTERLEAVE(group) \
    static void repeat_##group(const unsigned char *const *rows, int64_t words, block_word *to, block_exponents *seen) \
    { \
        repeat(rows, words *BLOCK_WORD_VECTORS, to, group, seen); \
    }

/* --- the tree: a leaf is two lanes ------------------------------------------------------------------------ */

/* Words from one word of a packet to its next, and of the weights. */
#ifdef BLOCK_IN_ROWS
#define BLOCK_DATA_STEP(group) 1
#define BLOCK_WEIGHTS_STEP(group) (BLOCK_VECTOR / (group))
#else
#define BLOCK_DATA_STEP(group) (group)
#define BLOCK_WEIGHTS_STEP(group) (BLOCK_VECTOR * BLOCK_WORD_VECTORS)
#endif

/* Where the leaves of a column begin. */
typedef struct leaves {
    const block_word *data[BLOCK_MOST_WIDE]; /* of each vector of packets */
    const block_word *weights, *keep;
    int64_t packet_bytes; /* BLOCK_IN_ROWS: from one packet of a vector to the next */
} leaves;

#ifdef BLOCK_LEAF_WORDS
/* leaf(l, i, group, wide, to) and masked_leaf of the same form are the including file's. */
INLINE void leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to);
INLINE void masked_leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to);

#define BLOCK_NODE(name, child, each) \
    INLINE void name(const leaves *l, int64_t i, int group, int wide, vector_f *to) \
    { \
        vector_f right[BLOCK_MOST_WIDE]; \
        child(l, i, group, wide, to); \
        child(l, i + (each), group, wide, right); \
        for (int u = 0; u < wide; u++) \
            to[u] = to[u] + right[u]; \
    }
BLOCK_NODE(node_2, leaf, 1)
BLOCK_NODE(node_4, node_2, 2)
BLOCK_NODE(node_8, node_4, 4)
BLOCK_NODE(node_16, node_8, 8)

/* A deeper tree: its nodes from left to right, each added to the ones that wait for it. */
#define BLOCK_DEEP(name, child, each) \
    INLINE void name(const leaves *l, int64_t count, int group, int wide, vector_f *to) \
    { \
        vector_f waiting[7][BLOCK_MOST_WIDE]; \
        int64_t i = 0; \
        do { \
            child(l, i *(each), group, wide, to); \
            int64_t height = 0; \
            for (; i >> height & 1; height++) \
                for (int u = 0; u < wide; u++) \
                    to[u] = waiting[height][u] + to[u]; \
            for (int u = 0; u < wide; u++) \
                waiting[height][u] = to[u]; \
        } while (++i < count / (each)); \
    }
BLOCK_DEEP(deep, node_16, 16)
BLOCK_DEEP(masked_deep, masked_leaf, 1)

BLOCK_DEEP(shallow, leaf, 1)

/* count is a power of two. */
INLINE void tree(const leaves *l, int64_t count, int group, int wide, vector_f *to)
{
    if (count == 8)
        node_8(l, 0, group, wide, to);
    else if (count < 8)
        shallow(l, count, group, wide, to);
    else
        deep(l, count, group, wide, to);
}

/* What a step adds: partial sums, or in integer kernels their i32 values. */
INLINE vector_w step_add(vector_w sum, vector_f partial, bool is_float)
{
    if (is_float)
        return (vector_w)((vector_f)sum + partial);
    return sum + (vector_w) __builtin_convertvector(partial, vector_i);
}

#ifdef BLOCK_IN_ROWS
/* A vector's packets lie far from each other, which is more streams than a processor follows by itself. */
INLINE void ahead(const leaves *l, int group, int wide)
{
    enum { DISTANCE = 512 /* bytes */ };
    for (int u = 0; u < wide; u++)
        for (int g = 0; g < group; g++)
            __builtin_prefetch((const char *)l->data[u] + g * l->packet_bytes + DISTANCE);
}
#endif

COLUMN void column(const block_run *r, int64_t number, int64_t count, int group, int wide, bool is_float, vector_w *sum)
{
    int64_t first = number * r->column_words;
    for (int64_t i = 0; i < r->step_count; i++) {
        const block_step *s = &r->steps[i];
        leaves l = {.weights = r->weights + s->weights + first * BLOCK_WEIGHTS_STEP(group),
                    .keep = s->keep ? s->keep + first : NULL,
                    .packet_bytes = r->packet_bytes};
        for (int u = 0; u < wide; u++)
            l.data[u] = r->data + s->data + first * BLOCK_DATA_STEP(group) + u * r->data_stride;
#ifdef BLOCK_IN_ROWS
        if (!r->near)
            ahead(&l, group, wide);
#endif
        vector_f partial[BLOCK_MOST_WIDE];
        if (__builtin_expect(s->keep != NULL, 0))
            masked_deep(&l, count, group, wide, partial);
        else
            tree(&l, count, group, wide, partial);
        for (int u = 0; u < wide; u++)
            sum[u] = step_add(sum[u], partial[u], is_float);
    }
}

/* A packet of 32 lanes, which is what most columns are, has code of its own. */
INLINE void column_any(const block_run *r, int64_t number, int group, int wide, bool is_float, vector_w *sum)
{
    int64_t count = r->column_words / BLOCK_LEAF_WORDS;
    if (count == 16)
        column(r, number, 16, group, wide, is_float, sum);
    else
        column(r, number, count, group, wide, is_float, sum);
}

INLINE void column_float(const block_run *r, int64_t number, int group, int wide, vector_w *sum)
{
    column_any(r, number, group, wide, true, sum);
}
#endif

/* --- the block -------------------------------------------------------------------------------------------- */

/* A vector's cells have the Rows of a packet together, a vector the packets of a Row. */
INLINE vector_w cells_load(const block_word *cells, int group)
{
    int rows = BLOCK_VECTOR / group;
    vector_w lanes;
    for (int i = 0; i < BLOCK_VECTOR; i++)
        lanes[i] = (block_word)(i % group * rows + i / group);
    return group == 1 || rows == 1 ? load(cells) : permuted(load(cells), lanes);
}

INLINE void cells_store(block_word *cells, int group, vector_w sum)
{
    int rows = BLOCK_VECTOR / group;
    vector_w lanes;
    for (int i = 0; i < BLOCK_VECTOR; i++)
        lanes[i] = (block_word)(i % rows * group + i / rows);
    *(vector_at *)cells = group == 1 || rows == 1 ? sum : permuted(sum, lanes);
}

INLINE void sums_begin(const block_run *r, int64_t column, int group, int wide, bool is_float, vector_w *sum)
{
    vector_w start = cells_load(r->start + column * BLOCK_VECTOR, group);
    const block_word *cells = r->cells + column * BLOCK_VECTOR;
    for (int u = 0; u < wide; u++, cells += r->columns * BLOCK_VECTOR) {
        sum[u] = start;
        if (!r->fresh)
            sum[u] = cells_load(cells, group);
        if (!r->fresh && !is_float) /* a float's start is -0.0: adds nothing */
            sum[u] += start;
    }
}

INLINE void sums_end(const block_run *r, int64_t column, int group, int wide, const vector_w *sum)
{
    block_word *cells = r->cells + column * BLOCK_VECTOR;
    for (int u = 0; u < wide; u++, cells += r->columns * BLOCK_VECTOR)
        cells_store(cells, group, sum[u]);
}

/* column_sums(r, column, group, wide, sum) adds the steps of a column to its sums. */
#define BLOCK_COLUMNS(r, column_sums, group, wide, is_float) \
    for (int64_t c = 0; c < (r)->columns; c++) { \
        vector_w sum[BLOCK_MOST_WIDE]; \
        sums_begin(r, c, group, wide, is_float, sum); \
        column_sums(r, c, group, wide, sum); \
        sums_end(r, c, group, wide, sum); \
    }

#if BLOCK_WIDENS
/* A run's steps, some at a time: `part` is the run over as many of them from `first` on as are widened at once. All, when the room is
 * large enough, so that the next run may find them there. */
enum { PIECE_STEPS = 8, MOST_STEPS = 64 };
typedef struct pieces {
    block_run part;
    block_step steps[MOST_STEPS];
    int64_t first, most;
} pieces;

INLINE void pieces_begin(pieces *p, const block_run *r, int group, int wide)
{
    int64_t fit = BLOCK_ROOM_WORDS / (r->columns * r->column_words * group * wide);
    p->first = 0;
    p->most = fit < MOST_STEPS ? fit : MOST_STEPS;
    if (r->step_count > p->most && p->most > PIECE_STEPS)
        p->most = PIECE_STEPS;
}

/* The piece that `first` is at. */
INLINE void pieces_widen(pieces *p, const block_run *r, int group, int wide)
{
    int64_t left = r->step_count - p->first, count = left < p->most ? left : p->most;
    int64_t words = r->columns * r->column_words, each = words * group;
    block_word *to = r->room;
    p->part = *r;
    p->part.data = to;
    p->part.data_stride = count * each;
    p->part.steps = p->steps;
    p->part.step_count = count;
    p->part.fresh = r->fresh && p->first == 0;
    for (int64_t i = 0; i < count; i++)
        p->steps[i] = (block_step){i * each, r->steps[p->first + i].weights, r->steps[p->first + i].keep, 0};
    if (r->held && count == r->step_count)
        return;
    for (int u = 0; u < wide; u++) /* packet after packet, as memory has them */
        for (int64_t i = 0; i < count; i++, to += each) {
            const unsigned char *packets[BLOCK_VECTOR];
            for (int g = 0; g < group; g++)
                packets[g] = (const unsigned char *)(r->data + r->steps[p->first + i].data + u * r->data_stride) + g * r->packet_bytes;
            weave_packets(packets, words, 0, to, group);
        }
}

/* Words that need no widening, of packets that need no weaving, are taken where they lie. */
#define BLOCK_ALONE(group) ((group) == 1 && BLOCK_WORD_VECTORS > 1)
#define BLOCK_KERNEL(name, column_sums, group, wide, is_float) \
    static void name(const block_run *r) \
    { \
        block_run run = *r; \
        for (int64_t i = 0; i < r->runs; i++) { \
            pieces p; \
            pieces_begin(&p, &run, group, wide); \
            do { /* at least once, for sums that begin */ \
                if (!BLOCK_ALONE(group)) \
                    pieces_widen(&p, &run, group, wide); \
                const block_run *part = BLOCK_ALONE(group) ? &run : &p.part; \
                BLOCK_COLUMNS(part, column_sums, group, wide, is_float) \
                p.first += part->step_count; \
            } while (p.first < run.step_count); \
            run.data += (wide)*run.data_stride; \
            run.cells += (wide)*run.columns * BLOCK_VECTOR; \
        } \
    }
#else
#define BLOCK_KERNEL(name, column_sums, group, wide, is_float) \
    static void name(const block_run *r) \
    { \
        block_run run = *r; \
        for (int64_t i = 0; i < r->runs; i++) { \
            BLOCK_COLUMNS(&run, column_sums, group, wide, is_float) \
            run.data += (wide)*run.data_stride; \
            run.cells += (wide)*run.columns * BLOCK_VECTOR; \
        } \
    }
#endif

#if BLOCK_WIDE > 2
#define BLOCK_GROUP(kind, column_sums, group, is_float) \
    BLOCK_KERNEL(one_##kind##_##group, column_sums, group, 1, is_float) \
    BLOCK_KERNEL(two_##kind##_##group, column_sums, group, 2, is_float) \
    BLOCK_KERNEL(many_##kind##_##group, column_sums, group, BLOCK_WIDE, is_float)
#define BLOCK_MANY(kind, group) many_##kind##_##group
#else
#define BLOCK_GROUP(kind, column_sums, group, is_float) \
    BLOCK_KERNEL(one_##kind##_##group, column_sums, group, 1, is_float) \
    BLOCK_KERNEL(two_##kind##_##group, column_sums, group, 2, is_float)
#define BLOCK_MANY(kind, group) two_##kind##_##group
#endif

/* All kernels of a kind, and its set, by the Rows' log2: the group is the vector divided by the Rows. */
#if defined(BLOCK_IN_ROWS) /* the file makes its own */
#elif BLOCK_VECTOR == 16
#define BLOCK_SET(name, kind, column_sums, level_, is_float_, format_) \
    BLOCK_GROUP(kind, column_sums, 2, is_float_) \
    BLOCK_GROUP(kind, column_sums, 4, is_float_) \
    BLOCK_GROUP(kind, column_sums, 8, is_float_) \
    BLOCK_GROUP(kind, column_sums, 16, is_float_) \
    const block_set name = { \
        level_, \
        is_float_, \
        format_, \
        BLOCK_VECTOR, \
        {BLOCK_WIDE, BLOCK_WIDE, BLOCK_WIDE, BLOCK_WIDE}, \
        {one_##kind##_16, one_##kind##_8, one_##kind##_4, one_##kind##_2}, \
        {two_##kind##_16, two_##kind##_8, two_##kind##_4, two_##kind##_2}, \
        {many_##kind##_16, many_##kind##_8, many_##kind##_4, many_##kind##_2}, \
        BLOCK_INTERLEAVES(interleave_16, interleave_8, interleave_4, interleave_2), \
        {repeat_16, repeat_8, repeat_4, repeat_2}, \
        .in_rows = false, \
        .in_runs = true, \
    };
BLOCK_PACK(2)
BLOCK_PACK(4)
BLOCK_PACK(8)
BLOCK_PACK(16)
#else
#define BLOCK_SET(name, kind, column_sums, level_, is_float_, format_) \
    BLOCK_GROUP(kind, column_sums, 1, is_float_) \
    BLOCK_GROUP(kind, column_sums, 2, is_float_) \
    BLOCK_GROUP(kind, column_sums, 4, is_float_) \
    BLOCK_GROUP(kind, column_sums, 8, is_float_) \
    const block_set name = { \
        level_, \
        is_float_, \
        format_, \
        BLOCK_VECTOR, \
        {BLOCK_WIDE, BLOCK_WIDE, BLOCK_WIDE, BLOCK_WIDE}, \
        {one_##kind##_8, one_##kind##_4, one_##kind##_2, one_##kind##_1}, \
        {two_##kind##_8, two_##kind##_4, two_##kind##_2, two_##kind##_1}, \
        {BLOCK_MANY(kind, 8), BLOCK_MANY(kind, 4), BLOCK_MANY(kind, 2), BLOCK_MANY(kind, 1)}, \
        BLOCK_INTERLEAVES(interleave_8, interleave_4, interleave_2, interleave_1), \
        {repeat_8, repeat_4, repeat_2, repeat_1}, \
        .in_rows = BLOCK_WIDENS, \
        .widens = BLOCK_WIDENS, \
        .in_runs = true, \
        .alone_in_place = BLOCK_WORD_VECTORS > 1, \
        .word_vectors = BLOCK_WORD_VECTORS, \
        .look = BLOCK_LOOK, \
    };
BLOCK_PACK(1)
BLOCK_PACK(2)
BLOCK_PACK(4)
BLOCK_PACK(8)
#endif
