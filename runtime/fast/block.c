#include "runtime/fast/block.h"

#include <string.h>

#include "runtime/tensor/convert.h"
#include "runtime/tensor/numeric.h"

static const block_set *const sets[] = {
#if defined(__x86_64__)
    &block_tiles_int,        &block_lanes_dot_int,   &block_dot_int,    &block_pairs_float, &block_fused_float, &block_avx512_float,
    &block_lanes_avx512_int, &block_avx512_int,      &block_avx2_fused, &block_avx2_float,  &block_lanes_int,   &block_avx2_int,
#endif
    &block_plain_float,      &block_lanes_plain_int, &block_plain_int,
};

static const block_set *find(const block_choice *c, bool safe, bool whole)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const block_set *s = sets[i];
        if (s->level <= c->most && s->is_float == c->is_float && cpu_has(s->level, s->is_float) && (!safe || !block_in_range(s->format)) &&
            (whole || !s->whole) && c->column_lanes >= s->column_lanes && c->packets >= s->least_packets)
            return s;
    }
    return NULL;
}

const block_set *block_set_safe(const block_choice *c)
{
    return find(c, true, false);
}

const block_set *block_set_fast(const block_choice *c)
{
    return find(c, false, c->whole);
}

/* --- operands as words ----------------------------------------------------------------------------------- */

enum { PIECE = 512 /* elements */ };

/* 8-bit floats are bf16 values: the upper half of their f32. */
#define EXPAND_HALVES(name, operand) \
    static void name(block_word *to, const unsigned char *from, int64_t elements) \
    { \
        convert_lanes *convert = convert_operand(operand); \
        block_word piece[PIECE]; \
        for (int64_t done = 0, n; done < elements; done += n) { \
            n = elements - done < PIECE ? elements - done : PIECE; \
            convert((float *)(void *)piece, from + done, n); \
            for (int64_t i = 0; i < n / 2; i++) \
                to[done / 2 + i] = piece[2 * i] >> 16 | (piece[2 * i + 1] & 0xffff0000); \
        } \
    }
EXPAND_HALVES(f8e4m3_halves, DTYPE_F8E4M3)
EXPAND_HALVES(f8e5m2_halves, DTYPE_F8E5M2)

#define EXPAND_F32(name, operand) \
    static void name(block_word *to, const unsigned char *from, int64_t elements) \
    { \
        convert_operand(operand)((float *)(void *)to, from, elements); \
    }
EXPAND_F32(i4_f32, DTYPE_I4)
EXPAND_F32(i8_f32, DTYPE_I8)
EXPAND_F32(f8e4m3_f32, DTYPE_F8E4M3)
EXPAND_F32(f8e5m2_f32, DTYPE_F8E5M2)
EXPAND_F32(bf16_f32, DTYPE_BF16)

/* Sixteen at a time: each byte twice, of which the upper one stays with its sign. */
static int64_t i8_i16_vectors(block_word *to, const unsigned char *from, int64_t elements)
{
    int64_t done = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    typedef int8_t narrow __attribute__((vector_size(16)));
    typedef int16_t wide __attribute__((vector_size(16)));
    for (; done + 16 <= elements; done += 16) {
        narrow v;
        memcpy(&v, from + done, sizeof v);
        wide words[2] = {(wide)__builtin_shufflevector(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7) >> 8,
                         (wide)__builtin_shufflevector(v, v, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15) >> 8};
        memcpy(to + done / 2, words, sizeof words);
    }
#endif
    return done;
}

static void i8_i16(block_word *to, const unsigned char *from, int64_t elements)
{
    for (int64_t i = i8_i16_vectors(to, from, elements) / 2; i < elements / 2; i++)
        to[i] = (uint16_t)(int8_t)from[2 * i] | (uint32_t)(uint16_t)(int8_t)from[2 * i + 1] << 16;
}

static void i4_i16(block_word *to, const unsigned char *from, int64_t elements)
{
    for (int64_t i = 0; i < elements / 2; i++)
        to[i] = (uint16_t)numeric_i4_extend(from[i]) | (uint32_t)numeric_i4_extend(from[i] >> 4) << 16;
}

static void i4_i8(block_word *to, const unsigned char *from, int64_t elements)
{
    unsigned char *bytes = (unsigned char *)to;
    for (int64_t i = 0; i < elements / 2; i++) {
        bytes[2 * i] = (unsigned char)(((from[i] & 15) ^ 8) - 8);
        bytes[2 * i + 1] = (unsigned char)((from[i] >> 4 ^ 8) - 8);
    }
}

block_expand *block_expand_of(block_format f, dtype operand)
{
    static block_expand *const table[][DTYPE_COUNT] = {
        [BLOCK_F32] =
            {[DTYPE_I4] = i4_f32, [DTYPE_I8] = i8_f32, [DTYPE_F8E4M3] = f8e4m3_f32, [DTYPE_F8E5M2] = f8e5m2_f32, [DTYPE_BF16] = bf16_f32},
        [BLOCK_BF16] = {[DTYPE_F8E4M3] = f8e4m3_halves, [DTYPE_F8E5M2] = f8e5m2_halves},
        [BLOCK_BF16_ROWS] = {[DTYPE_F8E4M3] = f8e4m3_halves, [DTYPE_F8E5M2] = f8e5m2_halves},
        [BLOCK_I16X2] = {[DTYPE_I4] = i4_i16, [DTYPE_I8] = i8_i16},
        [BLOCK_I8X2] = {[DTYPE_I4] = i4_i8},
        [BLOCK_I8X4] = {[DTYPE_I4] = i4_i8},
        [BLOCK_I8_ROWS] = {[DTYPE_I4] = i4_i8},
    };
    return table[f][operand];
}

/* --- the range of bf16 values ---------------------------------------------------------------------------- */

enum { EXPONENT_SHIFT = 7 };

void block_exponents_none(block_exponents *seen)
{
    memset(seen->most, 0, sizeof seen->most);
    memset(seen->below, 0xff, sizeof seen->below);
}

block_range block_exponents_range(const block_exponents *seen)
{
    uint16_t most = 0, below = UINT16_MAX;
    for (int i = 0; i < BLOCK_EXPONENTS; i++) {
        most = seen->most[i] > most ? seen->most[i] : most;
        below = seen->below[i] < below ? seen->below[i] : below;
    }
    if (most == 0)
        return (block_range){255, 0};
    return (block_range){(unsigned)(uint16_t)(below + 1) >> EXPONENT_SHIFT, (unsigned)most >> EXPONENT_SHIFT};
}

bool block_range_fits(const block_range *a, const block_range *b)
{
    /* |a| < 2^(most - 126) and a is a multiple of 2^(least - 134): a sum of two products is below 2^(sum - 251)
     * and a multiple of 2^(sum - 268). */
    enum { LARGEST = 128 + 251, SMALLEST = 268 - 126, NOT_FINITE = 255, SUBNORMAL = 0 };
    if (a->least == SUBNORMAL ||
        b->least == SUBNORMAL) /* it counts as zero (docs/numerics.md), which no kernel of bf16 words makes of it */
        return false;
    if (a->least > a->most || b->least > b->most)
        return a->most < NOT_FINITE && b->most < NOT_FINITE;
    return a->most < NOT_FINITE && b->most < NOT_FINITE && a->most + b->most <= LARGEST && a->least + b->least >= SMALLEST;
}
