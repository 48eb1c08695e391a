/* What block_lanes.h wants of AVX-512: the sums of eight Rows that end together, and as many packets at once as 32 registers hold.
 *
 * The one idea: two vectors of sums become one of sums of two lanes, which alternate, and so on, until a vector has what is left of all. */
#define LANES_VECTOR 16
#define LANES_WIDE 3
#define LANES_WIDE_FEW 6
#define LANES_ROWS 8
#define LANES_TOGETHER 8
#define LANES_AHEAD 32

#include <immintrin.h>

#include "runtime/fast/block_lanes.h"

/* Of each 128 bits: a, b, a, b. */
INLINE __m512i lanes_two(lanes_vector a, lanes_vector b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32((__m512i)a, (__m512i)b), _mm512_unpackhi_epi32((__m512i)a, (__m512i)b));
}

/* Of each 128 bits the first four Rows from `sum` on. */
INLINE __m512i lanes_four(const lanes_vector *sum, int rows, int apart)
{
    const lanes_vector none = {0};
    __m512i low = lanes_two(sum[0], rows > 1 ? sum[apart] : none);
    __m512i high = rows > 2 ? lanes_two(sum[2 * apart], sum[3 * apart]) : _mm512_setzero_si512();
    return _mm512_add_epi32(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
}

INLINE lanes_cells lanes_total(const lanes_vector *sum, int rows, int apart)
{
    enum { EVEN = 0x88, ODD = 0xdd }; /* of four times 128 bits, two of each */
    __m512i first = lanes_four(sum, rows < 4 ? rows : 4, apart);
    __m512i second = rows > 4 ? lanes_four(sum + 4 * apart, 4, apart) : _mm512_setzero_si512();
    __m512i all = _mm512_add_epi32(_mm512_shuffle_i64x2(first, second, EVEN), _mm512_shuffle_i64x2(first, second, ODD));
    all = _mm512_add_epi32(_mm512_shuffle_i64x2(all, all, EVEN), _mm512_shuffle_i64x2(all, all, ODD));
    return (lanes_cells)_mm512_castsi512_si256(all);
}
