/* Number formats against tables of their values.
 *
 * Widening is compared with the judge for every code, narrowing at every value of the format, every midpoint and
 * their neighbours, and at random patterns. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/tensor/numeric.h"
#include "test/suite.h"
#include "test/tensor/number_judge.h"

static float widen(dtype t, uint32_t code)
{
    switch (t) {
    case DTYPE_BF16: return numeric_bf16_to_f32((uint16_t)code);
    case DTYPE_F8E4M3: return numeric_f8e4m3_to_f32((uint8_t)code);
    default: return numeric_f8e5m2_to_f32((uint8_t)code);
    }
}

static uint32_t narrow(dtype t, float x)
{
    switch (t) {
    case DTYPE_BF16: return numeric_f32_to_bf16(x);
    case DTYPE_F8E4M3: return numeric_f32_to_f8e4m3(x);
    default: return numeric_f32_to_f8e5m2(x);
    }
}

static void check_narrow(const format *f, float x)
{
    uint32_t got = narrow(f->type, x), want = expected_code(f, x);
    if (got != want)
        ck_abort_msg("%s: %a gives 0x%x, expected 0x%x", dtype_row_of(f->type)->name, (double)x, got, want);
}

static uint64_t random_state = 0x5eed;

static uint32_t random32(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

START_TEST(every_code_widens)
{
    const format *f = &formats[_i];
    uint32_t codes = 1u << (1 + f->exponent_bits + f->fraction_bits);
    for (uint32_t code = 0; code < codes; code++) {
        float got = widen(f->type, code);
        double want = expected_value(f, code);
        if (isnan(want)) {
            ck_assert_uint_eq(f32_bits(got), 0x7fc00000);
            continue;
        }
        ck_assert_msg((double)got == want && !signbit(got) == !signbit(want), "%s: code 0x%x is %a, expected %a",
                      dtype_row_of(f->type)->name, code, (double)got, want);
    }
}
END_TEST

START_TEST(every_value_comes_back)
{
    const format *f = &formats[_i];
    uint32_t codes = 1u << (1 + f->exponent_bits + f->fraction_bits);
    for (uint32_t code = 0; code < codes; code++) {
        double value = expected_value(f, code);
        uint32_t got = narrow(f->type, widen(f->type, code));
        if (isnan(value))
            ck_assert_uint_eq(got, f->nan);
        else if (value == 0)
            ck_assert_uint_eq(got, code & codes / 2);
        else
            ck_assert_uint_eq(got, code);
    }
}
END_TEST

/* The f32 nearest to a value of the format or a midpoint, and its neighbours, of both signs. */
static void check_around(const format *f, double centre)
{
    float x = (float)centre;
    for (int i = 0; i < 4; i++)
        x = nextafterf(x, -INFINITY);
    for (int i = 0; i < 9; i++, x = nextafterf(x, INFINITY)) {
        check_narrow(f, x);
        check_narrow(f, -x);
    }
}

START_TEST(boundaries_narrow)
{
    const format *f = &formats[_i];
    for (uint32_t code = 0; code < finite_codes(f); code++) {
        double value = magnitude_of(f, code), next = magnitude_of(f, code + 1);
        check_around(f, value);
        check_around(f, value + (next - value) / 2);
        check_around(f, value + (next - value) / 4);
    }
    const float edges[] = {0,   FLT_MIN, FLT_TRUE_MIN, FLT_MAX, INFINITY, NAN,   0x1p-14f, 0x1p-6f,         0x1p-9f,
                           448, 464,     480,          57344,   61440,    65536, 1e30f,    0x1.fffffep-127f};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check_around(f, edges[i]);
    check_narrow(f, INFINITY);
    check_narrow(f, -INFINITY);
}
END_TEST

START_TEST(random_patterns_narrow)
{
    const format *f = &formats[_i];
    int low = -f->bias - f->fraction_bits - 2, high = f->bias + 4;
    for (int i = 0; i < 1000000; i++) {
        check_narrow(f, f32_of_bits(random32()));
        float fraction = (float)ldexp((random32() & 0xffffff) | 0x800000, -23);
        check_narrow(f, ldexpf(fraction, low + (int)(random32() % (unsigned)(high - low))));
    }
}
END_TEST

/* Every NaN pattern class: quiet, signalling, of both signs. */
START_TEST(nan_is_one_nan)
{
    const uint32_t patterns[] = {0x7fa00001, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0xffffffff, 0x7fffffff};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        ck_assert_uint_eq(narrow(formats[_i].type, f32_of_bits(patterns[i])), formats[_i].nan);
}
END_TEST

/* The spot values of the published description. */
START_TEST(published_values)
{
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(1), 0x38);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(1.0625f), 0x38);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(1.1875f), 0x3a);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(464), 0x7e);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(-INFINITY), 0xfe);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(0x1p-9f), 0x01);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(0x1p-10f), 0x00);
    ck_assert_uint_eq(numeric_f32_to_f8e4m3(0x1.8p-10f), 0x01);
    ck_assert_uint_eq(numeric_f32_to_f8e5m2(1.125f), 0x3d); /* 1.25, not the even 1.0 */
    ck_assert_uint_eq(numeric_f32_to_f8e5m2(0x1.cp-15f), 0x03);
    ck_assert_uint_eq(numeric_f32_to_f8e5m2(0x1.fffffep-15f), 0x03);
    ck_assert_uint_eq(numeric_f32_to_f8e5m2(0x1p-14f), 0x04);
    ck_assert_uint_eq(numeric_f32_to_f8e5m2(61440), 0x7c);
    ck_assert_uint_eq(numeric_f32_to_bf16(f32_of_bits(0x7fa00001)), 0x7fc0);
}
END_TEST

START_TEST(integers_wrap)
{
    ck_assert_int_eq(numeric_wrap(DTYPE_I8, 2560000), 0);
    ck_assert_int_eq(numeric_wrap(DTYPE_I8, 1000000), 64);
    ck_assert_int_eq(numeric_wrap(DTYPE_I4, 8), -8);
    for (int i = 0; i < 100000; i++) {
        int32_t v = (int32_t)random32();
        ck_assert_int_eq(numeric_wrap(DTYPE_I8, v), ((int64_t)v % 256 + 384) % 256 - 128);
        ck_assert_int_eq((numeric_wrap(DTYPE_I16, v) - (int64_t)v) % 65536, 0);
        ck_assert_int_eq((numeric_wrap(DTYPE_I4, v) - (int64_t)v) % 16, 0);
        ck_assert(numeric_wrap(DTYPE_I4, v) >= -8 && numeric_wrap(DTYPE_I4, v) <= 7);
        ck_assert_int_eq(numeric_wrap(DTYPE_I32, v), v);
    }
}
END_TEST

START_TEST(i4_packs_low_nibble_first)
{
    unsigned char bytes[7] = {1, 0xff, 7, 0xf8, 3, 0, 0xfe}, packed[4], back[7];
    numeric_i4_pack(bytes, 7, packed);
    ck_assert_mem_eq(packed, ((unsigned char[]){0xf1, 0x87, 0x03, 0x0e}), 4);
    numeric_i4_unpack(DTYPE_I4, packed, 7, back);
    ck_assert_mem_eq(back, bytes, 7);
    numeric_i4_put(packed, 0, -8);
    numeric_i4_put(packed, 1, 5);
    ck_assert_uint_eq(packed[0], 0x58);
    ck_assert_int_eq(numeric_i4_get(packed, 0), -8);
    ck_assert_int_eq(numeric_i4_get(packed, 6), -2);
}
END_TEST

/* Every code of every type survives the way through double; neighbours are untouched. */
START_TEST(doubles_carry_every_code)
{
    dtype t = (dtype)_i;
    unsigned bits = dtype_row_of(t)->bits;
    for (uint32_t n = 0; n < 65536; n++) {
        uint32_t code = bits == 32 ? random32() : n & ((1u << bits) - 1);
        unsigned char in[16], out[16];
        for (int i = 0; i < 16; i++)
            in[i] = out[i] = (unsigned char)random32();
        if (t == DTYPE_I4)
            numeric_i4_put(in, 3, (int32_t)code);
        else
            for (unsigned b = 0; b < bits / 8; b++)
                in[3 * bits / 8 + b] = (unsigned char)(code >> 8 * b);
        double value = numeric_to_double(t, in, 3);
        numeric_from_double(t, out, 3, value);
        ck_assert(isnan(value) ? isnan(numeric_to_double(t, out, 3)) : numeric_to_double(t, out, 3) == value);
        if (t == DTYPE_I4) {
            ck_assert_uint_eq(out[1] >> 4, code);
            ck_assert_int_eq((int)value, code < 8 ? (int)code : (int)code - 16);
        } else if (value != 0 && !isnan(value)) {
            ck_assert_mem_eq(out + 3 * bits / 8, in + 3 * bits / 8, bits / 8);
        }
    }
}
END_TEST

START_TEST(doubles_round_and_wrap)
{
    unsigned char b[4] = {0xaa, 0xaa, 0xaa, 0xaa};
    const struct {
        double value, want;
    } i8[] = {{2.5, 2},    {3.5, 4},   {-2.5, -2}, {-0.5, 0},      {300, 44},
              {-129, 127}, {1e300, 0}, {NAN, 0},   {-INFINITY, 0}, {4294967296.0 * 4096 + 5, 5}};
    for (size_t i = 0; i < sizeof i8 / sizeof *i8; i++) {
        numeric_from_double(DTYPE_I8, b, 1, i8[i].value);
        ck_assert_double_eq(numeric_to_double(DTYPE_I8, b, 1), i8[i].want);
    }
    ck_assert_uint_eq(b[0], 0xaa);
    ck_assert_uint_eq(b[2], 0xaa);
    numeric_from_double(DTYPE_I32, b, 0, -2147483648.0);
    ck_assert_double_eq(numeric_to_double(DTYPE_I32, b, 0), -2147483648.0);
    numeric_from_double(DTYPE_F32, b, 0, 1e300);
    ck_assert(isinf(numeric_to_double(DTYPE_F32, b, 0)));
    numeric_from_double(DTYPE_F8E4M3, b, 0, -1e300);
    ck_assert_double_eq(numeric_to_double(DTYPE_F8E4M3, b, 0), -448);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("formats");
    tcase_add_loop_test(t, every_code_widens, 0, FORMATS);
    tcase_add_loop_test(t, every_value_comes_back, 0, FORMATS);
    tcase_add_loop_test(t, boundaries_narrow, 0, FORMATS);
    tcase_add_loop_test(t, random_patterns_narrow, 0, FORMATS);
    tcase_add_loop_test(t, nan_is_one_nan, 0, FORMATS);
    suite_tests(t, published_values, integers_wrap, i4_packs_low_nibble_first);
    tcase_add_loop_test(t, doubles_carry_every_code, 0, DTYPE_COUNT);
    suite_tests(t, doubles_round_and_wrap);
    return suite_status("numeric", t);
}
