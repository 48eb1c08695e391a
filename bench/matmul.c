/* The loop nest of examples/matmul.vm for a C compiler: what bench/compile.py times next to visac.
 *
 * The same sizes, the same element types (bf16 in and out, sums in f32), the same order of axes. */
#include <stdint.h>
#include <string.h>

enum { M = 32, N = 8, K = 32 };

static float widen(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nearest, ties to even. */
static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void matmul(const uint16_t a[M][K], const uint16_t b[N][K], uint16_t out[M][N])
{
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += widen(a[m][k]) * widen(b[n][k]);
            out[m][n] = narrow(sum);
        }
}
