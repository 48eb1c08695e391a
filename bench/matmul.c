/* The loop nest of examples/matmul.vm for a C compiler: what bench/compile.py times next to visac.
 *
 * The same sizes, the same element types (bf16 in and out, sums in f32), the same order of axes. */
#include "bf16.h"

enum { M = 32, N = 8, K = 32 };

void matmul(const uint16_t a[M][K], const uint16_t b[N][K], uint16_t out[M][N])
{
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += widened(a[m][k]) * widened(b[n][k]);
            out[m][n] = narrowed(sum);
        }
}
