/* A host program that links the reference kernel of examples/matmul.vm:
 *
 *     visac examples/matmul.vm --emit=header -o matmul_ref.h
 *     visac examples/matmul.vm --emit=obj --mcpu=x86-64-v3 -o matmul_ref.o
 *     cc -I. examples/host/matmul.c matmul_ref.o -o host
 *
 * It multiplies two small matrices, compares with a loop of its own, and prints one row. */
#include <stdio.h>
#include <string.h>

#include "matmul_ref.h"

enum { M = 32, N = 8, K = 32 };

/* bf16 is the upper half of an f32. */
static float value_of(uint16_t code)
{
    uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t code_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

int main(void)
{
    static uint16_t a[M * K], b[N * K], out[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = code_of((float)(i % 5 - 2));
    for (int i = 0; i < N * K; i++)
        b[i] = code_of((float)(i % 3 - 1));
    matmul_ref(a, b, out);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0; /* small integers: exact in f32, and in bf16 */
            for (int k = 0; k < K; k++)
                sum += value_of(a[m * K + k]) * value_of(b[n * K + k]);
            if (value_of(out[m * N + n]) != sum) {
                printf("out[%d][%d] is %g, not %g\n", m, n, value_of(out[m * N + n]), sum);
                return 1;
            }
        }
    for (int n = 0; n < N; n++)
        printf("%g ", value_of(out[n]));
    puts("");
    return 0;
}
