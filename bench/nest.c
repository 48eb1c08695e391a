/* The plain loop nest that a C compiler is given: bench/reference.c. ONLY_f32, ONLY_bf16, ONLY_i8: that one alone. NEST_LEVEL: the CPU
 * level that it is compiled for, which ends the names. */
#include <stdint.h>
#include <string.h>

#include "bf16.h"

#define JOIN(a, b) a##_##b
#define NAME_AT(name, level) JOIN(name, level)
#define NAME(name) NAME_AT(name, NEST_LEVEL)

void NAME(nest_f32)(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
void NAME(nest_bf16)(int64_t m, int64_t n, int64_t k, const uint16_t *a, const uint16_t *b, uint16_t *c);
void NAME(nest_i8)(int64_t m, int64_t n, int64_t k, const int8_t *a, const int8_t *b, int32_t *c);

#define NEST_INTO(name, operand, result) \
    void name(int64_t m, int64_t n, int64_t k, const operand *restrict a, const operand *restrict b, result *restrict c) \
    { \
        memset(c, 0, (size_t)(m * n) * sizeof *c); \
        for (int64_t i = 0; i < m; i++) \
            for (int64_t l = 0; l < k; l++) \
                for (int64_t j = 0; j < n; j++) \
                    c[i * n + j] += a[i * k + l] * b[l * n + j]; \
    }

#if !defined(ONLY_bf16) && !defined(ONLY_i8)
NEST_INTO(NAME(nest_f32), float, float)
#endif

#if !defined(ONLY_f32) && !defined(ONLY_i8)
void NAME(nest_bf16)(int64_t m, int64_t n, int64_t k, const uint16_t *restrict a, const uint16_t *restrict b, uint16_t *restrict c)
{
    enum { MOST_COLUMNS = 8192 };
    float sums[MOST_COLUMNS];
    for (int64_t i = 0; i < m; i++) {
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                sums[j] += widened(a[i * k + l]) * widened(b[l * n + j]);
        for (int64_t j = 0; j < n; j++)
            c[i * n + j] = narrowed(sums[j]);
    }
}
#endif

#if !defined(ONLY_f32) && !defined(ONLY_bf16)
NEST_INTO(NAME(nest_i8), int8_t, int32_t)
#endif
