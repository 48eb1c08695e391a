/* Every conversion of the machine, in runs: all codes of the source, and of the 32-bit types every upper half with the lower
 * halves that decide between neighbours. Integers are judged by arithmetic, floats by number_judge.h. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tensor/convert.h"
#include "support/float_bits.h"
#include "test/suite.h"
#include "test/tensor/number_judge.h"

static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
enum { LOW = sizeof low / sizeof *low, MOST = 65536 * LOW };

static unsigned bits_of(dtype t)
{
    return dtype_row_of(t)->bits;
}

static bool is_float(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
}

/* No engine converts it: it is moved, or looked up, or made of a zero point. */
static bool is_moved(dtype t)
{
    return t == DTYPE_U8 || t == DTYPE_F4E2M1 || dtype_is_staging(t);
}

static uint32_t codes_of(dtype t)
{
    return bits_of(t) == 32 ? MOST : 1u << bits_of(t);
}

static uint32_t code_at(dtype t, uint32_t i)
{
    return bits_of(t) == 32 ? i / LOW << 16 | low[i % LOW] : i;
}

static void put(dtype t, unsigned char *run, uint32_t i, uint32_t code)
{
    if (bits_of(t) == 4)
        run[i / 2] = (unsigned char)((run[i / 2] & (i % 2 ? 0x0f : 0xf0)) | code << i % 2 * 4);
    for (unsigned b = 0; b < bits_of(t) / 8; b++)
        run[i * (bits_of(t) / 8) + b] = (unsigned char)(code >> 8 * b);
}

static uint32_t get(dtype t, const unsigned char *run, uint32_t i)
{
    uint32_t code = bits_of(t) == 4 ? run[i / 2] >> i % 2 * 4 & 15u : 0;
    for (unsigned b = 0; b < bits_of(t) / 8; b++)
        code |= (uint32_t)run[i * (bits_of(t) / 8) + b] << 8 * b;
    return code;
}

static const format *format_of(dtype t)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].type == t)
            return &formats[i];
    return NULL;
}

static uint32_t bits_of_float(double value)
{
    return isnan(value) ? 0x7fc00000 : f32_bits((float)value);
}

/* Two's complement of the type: the integer that the code stands for. */
static int64_t integer_of(dtype t, uint32_t code)
{
    int64_t half = INT64_C(1) << (bits_of(t) - 1);
    return code < half ? code : (int64_t)code - 2 * half;
}

static uint32_t expected(dtype from, dtype to, uint32_t code)
{
    if (!is_float(from))
        return (uint32_t)(uint64_t)((integer_of(from, code) + (INT64_C(1) << 40)) % (INT64_C(1) << bits_of(to)));
    if (to == DTYPE_F32)
        return bits_of_float(expected_value(format_of(from), code));
    return expected_code(format_of(to), f32_of_bits(code));
}

static void check_run(convert_run *run, dtype from, dtype to)
{
    uint32_t count = codes_of(from);
    unsigned char *in = calloc(count, 4), *out = calloc(count, 4);
    for (uint32_t i = 0; i < count; i++)
        put(from, in, i, code_at(from, i));
    run(out, in, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t want = expected(from, to, code_at(from, i));
        if (get(to, out, i) != want)
            ck_abort_msg("%s 0x%x to %s gives 0x%x, expected 0x%x", dtype_row_of(from)->name, code_at(from, i), dtype_row_of(to)->name,
                         get(to, out, i), want);
    }
    free(in);
    free(out);
}

/* The conversions of an engine are those that `is_one` says, `count` of them, and each is exact. */
static void check_conversions(convert_run *of(dtype from, dtype to), bool is_one(dtype from, dtype to), int count)
{
    int found = 0;
    for (dtype from = 0; from < DTYPE_COUNT; from++)
        for (dtype to = 0; to < DTYPE_COUNT; to++) {
            convert_run *run = of(from, to);
            ck_assert_msg(!run == !is_one(from, to), "%s to %s", dtype_row_of(from)->name, dtype_row_of(to)->name);
            if (run)
                check_run(run, from, to);
            found += run != NULL;
        }
    ck_assert_int_eq(found, count);
}

/* fetch widens to the accumulator's type, and narrows f32 to bf16. */
static bool is_fetched(dtype from, dtype to)
{
    bool widens = bits_of(from) < 32 && !is_moved(from) && to == (is_float(from) ? DTYPE_F32 : DTYPE_I32);
    return widens || (from == DTYPE_F32 && to == DTYPE_BF16);
}

/* cast narrows what the accumulator holds. */
static bool is_cast(dtype from, dtype to)
{
    return bits_of(from) == 32 && bits_of(to) < 32 && !is_moved(to) && is_float(from) == is_float(to);
}

START_TEST(every_fetch_conversion)
{
    check_conversions(convert_fetch, is_fetched, 7);
}
END_TEST

START_TEST(every_cast)
{
    check_conversions(convert_cast, is_cast, 6);
}
END_TEST

/* Every code of every table, and every upper half of an f32 with a sign on its way to DM. */
START_TEST(every_lookup)
{
    static const double halves[] = {0, 1, 2, 3, 4, 6, 8, 12}; /* of f4e2m1, from its definition: one exponent bit pair, one fraction bit */
    int found = 0;
    for (dtype from = 0; from < DTYPE_COUNT; from++)
        for (dtype to = 0; to < DTYPE_COUNT; to++) {
            convert_run *run = convert_lookup(from, to);
            unsigned char in[256], out[512];
            found += run != NULL;
            for (uint32_t i = 0; run && i < codes_of(from); i++)
                put(from, in, i, i);
            if (run)
                run(out, in, codes_of(from));
            for (uint32_t i = 0; run && i < codes_of(from); i++) {
                double value = from == DTYPE_F4E2M1 ? copysign(halves[i % 8] / 2, i < 8 ? 1 : -1) : expected_value(format_of(from), i);
                ck_assert_msg(get(to, out, i) == expected_code(format_of(to), (float)value), "%s 0x%x to %s gives 0x%x",
                              dtype_row_of(from)->name, i, dtype_row_of(to)->name, get(to, out, i));
                ck_assert(isnan(value) || expected_value(format_of(to), get(to, out, i)) == value); /* exact */
            }
        }
    ck_assert_int_eq(found, 4);
}
END_TEST

START_TEST(every_relu)
{
    unsigned char *in = calloc(MOST, 4), *out = calloc(MOST, 2), *plain = calloc(MOST, 2);
    for (uint32_t i = 0; i < MOST; i++)
        put(DTYPE_F32, in, i, code_at(DTYPE_F32, i));
    convert_relu(out, in, MOST);
    convert_commit(DTYPE_F32, DTYPE_BF16)(plain, in, MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        float x = f32_of_bits(code_at(DTYPE_F32, i));
        uint32_t want = expected_code(format_of(DTYPE_BF16), x);
        ck_assert_uint_eq(get(DTYPE_BF16, plain, i), want);
        ck_assert_uint_eq(get(DTYPE_BF16, out, i), !isnan(x) && signbit(x) ? 0 : want);
    }
    free(in);
    free(out);
    free(plain);
}
END_TEST

/* Operands as floats, by both builds of the loop; runs of every length up to two vectors, so that their ends are met as well. */
static void check_lanes(convert_lanes *lanes, dtype t)
{
    uint32_t count = codes_of(t);
    unsigned char *in = calloc(count, 2);
    float *out = calloc(count, sizeof *out);
    for (uint32_t i = 0; i < count; i++)
        put(t, in, i, code_at(t, i));
    for (uint32_t n = 0; n <= count; n = n < 64 && n < count ? n + 1 : n == count ? n + 1 : count) {
        memset(out, 0, count * sizeof *out);
        lanes(out, in, n);
        for (uint32_t i = 0; i < n; i++) {
            double want = is_float(t) ? expected_value(format_of(t), i) : (double)integer_of(t, i);
            ck_assert_msg(isnan(want) ? isnan(out[i]) : (double)out[i] == want && !signbit(out[i]) == !signbit(want), "%s 0x%x is %a",
                          dtype_row_of(t)->name, i, (double)out[i]);
        }
        for (uint32_t i = n + n % 2; i < count && i < n + 32; i++)
            ck_assert_uint_eq(bits_of_float((double)out[i]), 0);
    }
    free(in);
    free(out);
}

START_TEST(every_operand)
{
    int found = 0;
    for (dtype t = 0; t < DTYPE_COUNT; t++) {
        ck_assert_int_eq(!convert_operand(t), !dtype_is_operand(t));
        ck_assert_int_eq(!convert_operand_portable(t), !dtype_is_operand(t));
        if (!dtype_is_operand(t))
            continue;
        check_lanes(convert_operand(t), t);
        check_lanes(convert_operand_portable(t), t);
        found++;
    }
    ck_assert_int_eq(found, 7);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("runs");
    suite_tests(t, every_fetch_conversion, every_cast, every_lookup, every_relu, every_operand);
    return suite_status("convert", t);
}
