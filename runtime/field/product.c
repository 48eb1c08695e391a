#include "runtime/field/product.h"

#include "runtime/machine/cpu.h"
#include "support/integer.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- one by one ---- */

static field_value sum_of(const field_value *lanes, const field_value *weights, int64_t count)
{
    field_sum sum = 0;
    for (int64_t i = 0; i < count; i += FIELD_MOST_PRODUCTS) {
        int64_t end = smaller(i + FIELD_MOST_PRODUCTS, count);
        for (int64_t j = i; j < end; j++)
            sum += (field_sum)lanes[j] * weights[j];
        sum = field_fold(sum);
    }
    return field_of_sum(sum);
}

/* Two Rows at once: neither waits for the other's carry. */
static void sums_of_pair(const field_value *lanes, const field_value *one, const field_value *other, int64_t count, field_value *out,
                         int64_t apart)
{
    field_sum a = 0, b = 0;
    for (int64_t i = 0; i < count; i += FIELD_MOST_PRODUCTS) {
        int64_t end = smaller(i + FIELD_MOST_PRODUCTS, count);
        for (int64_t j = i; j < end; j++) {
            a += (field_sum)lanes[j] * one[j];
            b += (field_sum)lanes[j] * other[j];
        }
        a = field_fold(a);
        b = field_fold(b);
    }
    out[0] = field_of_sum(a);
    out[apart] = field_of_sum(b);
}

void field_products_portable(const field_packet *p, field_value *out)
{
    for (int64_t row = 0; row < p->rows; row += 2)
        for (int64_t column = 0; column < p->columns; column++) {
            const field_value *lanes = p->lanes + column * p->width, *weights = p->weights + row * p->row_values + column * p->width;
            field_value *to = out + row * p->columns + column;
            if (row + 1 < p->rows)
                sums_of_pair(lanes, weights, weights + p->row_values, p->width, to, p->columns);
            else
                *to = sum_of(lanes, weights, p->width);
        }
}

/* ---- eight at a time ---- */

#if defined(__x86_64__)
#define IFMA __attribute__((target("avx512f,avx512ifma")))

enum { WIDE = 8, LOW_BITS = 52, PRIME_BITS = 61 };

IFMA static inline __m512i fold_wide(__m512i x)
{
    return _mm512_add_epi64(_mm512_and_si512(x, _mm512_set1_epi64(FIELD_PRIME)), _mm512_srli_epi64(x, PRIME_BITS));
}

/* x * 2^bits of an x below 2^61 */
#define TURNED(x, bits) \
    _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi64(x, bits), _mm512_set1_epi64(FIELD_PRIME)), _mm512_srli_epi64(x, PRIME_BITS - (bits)))

/* Eight partial sums, each below 2^61 + 6. A value is 52 bits and 9 more; the processor gives the low and the high 52 bits of a product of
 * 52 bits, so a sum of up to 16 of each stays far below 64. */
IFMA static inline __m512i sum_wide(const field_value *lanes, const field_value *weights, int64_t count)
{
    __m512i low = _mm512_setzero_si512(), one_low = low, one_high = low, two_low = low, two_high = low;
    for (int64_t i = 0; i < count; i += WIDE) {
        __m512i a = _mm512_loadu_si512(lanes + i), b = _mm512_loadu_si512(weights + i);
        __m512i a_high = _mm512_srli_epi64(a, LOW_BITS), b_high = _mm512_srli_epi64(b, LOW_BITS);
        low = _mm512_madd52lo_epu64(low, a, b);
        one_low = _mm512_madd52hi_epu64(one_low, a, b);
        one_high = _mm512_madd52lo_epu64(one_high, a, b_high);
        two_low = _mm512_madd52hi_epu64(two_low, a, b_high);
        one_high = _mm512_madd52lo_epu64(one_high, a_high, b);
        two_low = _mm512_madd52hi_epu64(two_low, a_high, b);
        two_high = _mm512_madd52lo_epu64(two_high, a_high, b_high);
    }
    __m512i one = _mm512_add_epi64(one_low, one_high), two = _mm512_add_epi64(two_low, two_high); /* times 2^52, times 2^104 = 2^43 */
    return fold_wide(_mm512_add_epi64(low, _mm512_add_epi64(TURNED(one, LOW_BITS), TURNED(two, 2 * LOW_BITS - PRIME_BITS))));
}

/* The sums of eight vectors' lanes, in one vector. */
IFMA static inline __m512i sums_across(const __m512i *v)
{
    __m512i pairs[4], fours[2];
    for (int i = 0; i < 4; i++)
        pairs[i] = _mm512_add_epi64(_mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++) {
        const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        fours[i] = fold_wide(_mm512_add_epi64(_mm512_permutex2var_epi64(pairs[2 * i], even, pairs[2 * i + 1]),
                                              _mm512_permutex2var_epi64(pairs[2 * i], odd, pairs[2 * i + 1])));
    }
    const __m512i first = _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11), second = _mm512_setr_epi64(4, 5, 6, 7, 12, 13, 14, 15);
    return _mm512_add_epi64(_mm512_permutex2var_epi64(fours[0], first, fours[1]), _mm512_permutex2var_epi64(fours[0], second, fours[1]));
}

IFMA static void products_ifma(const field_packet *p, field_value *out)
{
    if (p->width % WIDE != 0) {
        field_products_portable(p, out);
        return;
    }
    for (int64_t row = 0; row < p->rows; row += WIDE)
        for (int64_t column = 0; column < p->columns; column++) {
            __m512i rows[WIDE];
            field_value sums[WIDE];
            int64_t live = smaller(WIDE, p->rows - row);
            for (int64_t i = 0; i < WIDE; i++)
                rows[i] = i < live
                              ? sum_wide(p->lanes + column * p->width, p->weights + (row + i) * p->row_values + column * p->width, p->width)
                              : _mm512_setzero_si512();
            _mm512_storeu_si512(sums, sums_across(rows));
            for (int64_t i = 0; i < live; i++)
                out[(row + i) * p->columns + column] = field_reduce(sums[i]);
        }
}
#endif

field_products *field_products_best(void)
{
#if defined(__x86_64__)
    if (cpu_has_wide_products())
        return products_ifma;
#endif
    return field_products_portable;
}
