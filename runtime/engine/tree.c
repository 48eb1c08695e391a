#include "runtime/engine/tree.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/machine/cpu.h"

#define INLINE static inline __attribute__((always_inline))

/* --- any number of Rows: products into scratch, then level after level ------------------------------------
 */

/* The products of all lanes that the columns need; masked ones are -0.0. */
INLINE void products(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *restrict to,
                     int64_t rows)
{
    int64_t count = s->columns << s->depth;
    for (int64_t base = 0; base < count; base += s->period) {
        int64_t n = count - base < s->period ? count - base : s->period;
        for (int64_t i = 0; i < n; i++)
            for (int64_t r = 0; r < rows; r++)
                to[(base + i) * rows + r] = lanes[base + i] * weights[i * rows + r];
    }
    for (int64_t i = 0; live && i < count; i++)
        for (int64_t r = 0; !live[i] && r < rows; r++)
            to[i * rows + r] = -0.0f;
}

/* One level: half as many nodes. */
INLINE void level(const float *restrict from, float *restrict to, int64_t nodes, int64_t rows)
{
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t r = 0; r < rows; r++)
            to[i * rows + r] = from[2 * i * rows + r] + from[(2 * i + 1) * rows + r];
}

INLINE void tree_rows(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, float *scratch,
                      int64_t rows)
{
    int64_t nodes = s->columns << s->depth;
    float *from = s->depth ? scratch : out, *to = scratch + nodes * rows;
    products(s, lanes, weights, live, from, rows);
    for (unsigned d = s->depth; d > 0; d--) {
        nodes /= 2;
        if (d == 1)
            to = out;
        level(from, to, nodes, rows);
        float *free_half = from;
        from = to;
        to = free_half;
    }
}

static void tree_any(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, float *scratch)
{
    tree_rows(s, lanes, weights, live, out, scratch, s->rows);
}

#define TREE_ROWS(name, rows, attribute) \
    attribute static void name(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, \
                               float *scratch) \
    { \
        tree_rows(s, lanes, weights, live, out, scratch, rows); \
    }

/* One or two Rows: a Row after the other, through one column of results. */
INLINE void tree_apart(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, float *scratch)
{
    tree_shape one = *s;
    one.rows = 1;
    if (s->rows == 1) {
        tree_rows(&one, lanes, weights, live, out, scratch, 1);
        return;
    }
    float *column = scratch + 2 * (s->columns << s->depth);
    for (int64_t row = 0; row < s->rows; row++) {
        tree_rows(&one, lanes, weights + row * s->period, live, column, scratch, 1);
        for (int64_t g = 0; g < s->columns; g++)
            out[g * s->rows + row] = column[g];
    }
}

#define TREE_APART(name, attribute) \
    attribute static void name(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, \
                               float *scratch) \
    { \
        tree_apart(s, lanes, weights, live, out, scratch); \
    }

/* --- 4 and 8 Rows, depth 3 and more: three levels in registers --------------------------------------------
 */

typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));

enum { NODE_LANES = 8, NODE_LEVELS = 3 };
static const uint64_t node_all_live = UINT64_C(0x0101010101010101);

/* The live flags of a node's eight lanes as one word: node_all_live, 0 or a mixture. */
INLINE uint64_t node_live(const unsigned char *live, int64_t lane)
{
    uint64_t word = node_all_live;
    if (live)
        memcpy(&word, live + lane, sizeof word);
    return word;
}

/* V: the vector type of one lane's Rows. */
#define TREE_VECTOR(name, V, attribute) \
    attribute static void name(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, \
                               float *scratch) \
    { \
        int64_t nodes = INT64_C(1) << (s->depth - NODE_LEVELS), mask = s->period - 1; \
        const V none = -(V){0}; \
        V *node = (V *)scratch, *to = (V *)out; \
        for (int64_t column = 0; column < s->columns; column++) { \
            for (int64_t n = 0; n < nodes; n++) { \
                int64_t lane = (column * nodes + n) * NODE_LANES; \
                const V *w = (const V *)weights + (lane & mask); \
                const float *a = lanes + lane; \
                uint64_t word = node_live(live, lane); \
                if (word == 0) { \
                    node[n] = none; \
                    continue; \
                } \
                V p0 = a[0] * w[0], p1 = a[1] * w[1], p2 = a[2] * w[2], p3 = a[3] * w[3]; \
                V p4 = a[4] * w[4], p5 = a[5] * w[5], p6 = a[6] * w[6], p7 = a[7] * w[7]; \
                if (word != node_all_live) { \
                    p0 = live[lane + 0] ? p0 : none, p1 = live[lane + 1] ? p1 : none; \
                    p2 = live[lane + 2] ? p2 : none, p3 = live[lane + 3] ? p3 : none; \
                    p4 = live[lane + 4] ? p4 : none, p5 = live[lane + 5] ? p5 : none; \
                    p6 = live[lane + 6] ? p6 : none, p7 = live[lane + 7] ? p7 : none; \
                } \
                node[n] = ((p0 + p1) + (p2 + p3)) + ((p4 + p5) + (p6 + p7)); \
            } \
            for (int64_t n = nodes / 2; n > 0; n /= 2) \
                for (int64_t i = 0; i < n; i++) \
                    node[i] = node[2 * i] + node[2 * i + 1]; \
            to[column] = node[0]; \
        } \
    }

/* --- 1 and 2 Rows, depth 3 and more: four nodes of eight lanes at once -------------------------------------
 */

/* Sums of neighbours of two vectors, within their halves: [a01 a23 b01 b23 | a45 a67 b45 b67]. */
#define NEIGHBOURS(a, b) \
    (__builtin_shufflevector((a), (b), 0, 2, 8, 10, 4, 6, 12, 14) + __builtin_shufflevector((a), (b), 1, 3, 9, 11, 5, 7, 13, 15))

/* Products of eight lanes. */
INLINE void node_products(const float *a, const float *w, const unsigned char *live, int64_t lane, float *to)
{
    uint64_t word = node_live(live, lane);
    *(vector8 *)to = *(const vector8 *)a * *(const vector8 *)w;
    for (int64_t i = 0; word != node_all_live && i < NODE_LANES; i++)
        to[i] = live[lane + i] ? to[i] : -0.0f;
}

/* Four nodes: 32 lanes become node[0..3]. A packet has a multiple of 32 lanes, so the last ones may be ones
 * that no column needs. */
INLINE void four_nodes(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, int64_t lane, float *node)
{
    vector8 p[4];
    for (int64_t i = 0; i < 4; i++, lane += NODE_LANES)
        node_products(lanes + lane, weights + (lane & (s->period - 1)), live, lane, (float *)&p[i]);
    vector8 low = NEIGHBOURS(p[0], p[1]), high = NEIGHBOURS(p[2], p[3]);
    vector8 halves = NEIGHBOURS(low, high); /* [A0123 B0123 C0123 D0123 | A4567 B4567 C4567 D4567] */
    for (int64_t i = 0; i < 4; i++)
        node[i] = halves[i] + halves[4 + i];
}

#define TREE_HORIZONTAL(name, attribute) \
    attribute static void name(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out, \
                               float *scratch) \
    { \
        int64_t per_column = INT64_C(1) << (s->depth - NODE_LEVELS); \
        for (int64_t row = 0; row < s->rows; row++) { \
            for (int64_t n = 0; n < s->columns * per_column; n += 4) \
                four_nodes(s, lanes, weights + row * s->period, live, n * NODE_LANES, scratch + n); \
            for (int64_t column = 0; column < s->columns; column++) { \
                float *node = scratch + column * per_column; \
                for (int64_t n = per_column / 2; n > 0; n /= 2) \
                    for (int64_t i = 0; i < n; i++) \
                        node[i] = node[2 * i] + node[2 * i + 1]; \
                out[column * s->rows + row] = node[0]; \
            } \
        } \
    }

#define TREE_SET(suffix, attribute) \
    TREE_APART(apart_##suffix, attribute) \
    TREE_HORIZONTAL(horizontal_##suffix, attribute) \
    TREE_ROWS(rows_4_##suffix, 4, attribute) \
    TREE_ROWS(rows_8_##suffix, 8, attribute) \
    TREE_VECTOR(vector_4_##suffix, vector4, attribute) \
    TREE_VECTOR(vector_8_##suffix, vector8, attribute) \
    static tree_kernel *kernel_##suffix(const tree_shape *s) \
    { \
        bool deep = s->depth >= NODE_LEVELS; \
        switch (s->rows) { \
        case 1: \
        case 2: return deep ? horizontal_##suffix : apart_##suffix; \
        case 4: return deep ? vector_4_##suffix : rows_4_##suffix; \
        case 8: return deep ? vector_8_##suffix : rows_8_##suffix; \
        default: return tree_any; \
        } \
    }

TREE_SET(base, )
#if defined(__x86_64__)
TREE_SET(avx2, __attribute__((target("avx2"))))
#endif

tree_kernel *tree_kernel_portable(const tree_shape *s)
{
    return kernel_base(s);
}

tree_kernel *tree_kernel_for(const tree_shape *s)
{
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2, false))
        return kernel_avx2(s);
#endif
    return kernel_base(s);
}
