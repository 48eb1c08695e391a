#include "bench/packet_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

enum { PACKETS = 1 << 18, WORDS = 16, ROWS = 8, LANES_BF16 = 32, LANES_I8 = 64, RING = 64 /* packets */, SUMS = 16 };

static volatile float sink;

/* 64 lanes of unsigned data against signed weights of two groups of eight Rows; with fewer sums under way the loop would wait for them. */
AVX512 static double loop_i8(void)
{
    static uint32_t data[RING][WORDS];
    static __m512i weights[WORDS];
    memset(data, 3, sizeof data);
    memset(weights, 5, sizeof weights);
    __m512i sum[SUMS];
    for (int u = 0; u < SUMS; u++)
        sum[u] = _mm512_setzero_si512();
    for (int p = 0; p < PACKETS; p += SUMS)
        for (int w = 0; w < WORDS; w++)
#pragma GCC unroll 16
            for (int u = 0; u < SUMS; u++)
                sum[u] = _mm512_dpbusd_epi32(sum[u], _mm512_set1_epi32((int)data[(p + u) % RING][w]), weights[w]);
    for (int u = 1; u < SUMS; u++)
        sum[0] = _mm512_add_epi32(sum[0], sum[u]);
    sink = (float)_mm512_reduce_add_epi32(sum[0]);
    return (double)PACKETS * LANES_I8 * 2 * ROWS;
}

/* 32 lanes of f32 data and weights: products, then the tree level by level. */
AVX512 static double loop_f32(void)
{
    static float data[RING][LANES_BF16];
    static __m512 weights[LANES_BF16];
    for (int i = 0; i < LANES_BF16; i++) {
        weights[i] = _mm512_set1_ps((float)i);
        for (int p = 0; p < RING; p++)
            data[p][i] = (float)(p - i);
    }
    __m512 sum = _mm512_setzero_ps();
    for (int p = 0; p < PACKETS; p++) {
        __m512 node[LANES_BF16];
        for (int i = 0; i < LANES_BF16; i++)
            node[i] = _mm512_mul_ps(_mm512_set1_ps(data[p % RING][i]), weights[i]);
        for (int n = LANES_BF16 / 2; n > 0; n /= 2)
            for (int i = 0; i < n; i++)
                node[i] = _mm512_add_ps(node[2 * i], node[2 * i + 1]);
        sum = _mm512_add_ps(sum, node[0]);
    }
    sink = _mm512_reduce_add_ps(sum);
    return (double)PACKETS * LANES_BF16 * 2 * ROWS;
}

double packet_loop(bool is_float)
{
    if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512vl"))
        return 0;
    return is_float ? loop_f32() : loop_i8();
}
#else
double packet_loop(bool is_float)
{
    (void)is_float;
    return 0;
}
#endif
