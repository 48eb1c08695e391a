/* The einsum section: what is encoded is decoded, and nothing that is no einsum passes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/einsum_terms.h"
#include "target/einsum_text.h"
#include "test/fixture.h"
#include "test/reference/math_sample.h"

static const char section[] = ".visa.einsum.k";

static const einsum sample = {sample_axes, 3, sample_tensors, 4, sample_statements, 2, "MK,NK->MN; MN->MN", NULL, 0, NULL};

/* Reads words as the section of the file that `e` is of. */
static bool decodes(const einsum *e, const uint64_t *words, size_t count, einsum *out)
{
    diag_list_init(&diags, memory);
    bool ok = einsum_decode(words, count, e->axes, e->axis_count, e->axes == math_axes ? MATH_PORTS : 3, section, memory, &diags, out);
    ck_assert_uint_eq(diags.count, !ok);
    ck_assert(ok || strncmp(diags.items[0]->message, "section .visa.einsum.k offset 0x", 32) == 0);
    return ok;
}

static void expect_refused(const einsum *e, const char *part)
{
    uint64_t *words;
    size_t count;
    einsum out;
    ck_assert(einsum_encode(e, memory, &words, &count));
    ck_assert_msg(!decodes(e, words, count, &out), "accepted, expected: %s", part);
    ck_assert_msg(strstr(diags.items[0]->message, part) != NULL, "%s (expected %s)", diags.items[0]->message, part);
}

/* Encoded, decoded and encoded again: the same words, `count` of them. */
static uint64_t *round_trip(const einsum *e, einsum *out, size_t *count)
{
    uint64_t *words, *again;
    size_t again_count;
    ck_assert(einsum_encode(e, memory, &words, count));
    ck_assert_msg(decodes(e, words, *count, out), "%s", diags.count ? diags.items[0]->message : "");
    ck_assert(einsum_encode(out, memory, &again, &again_count));
    ck_assert_uint_eq(*count, again_count);
    ck_assert_mem_eq(words, again, *count * 8);
    return words;
}

/* The sample with other statements. */
static einsum sample_of(const einsum_statement *statements, uint32_t count)
{
    einsum e = sample;
    e.statements = statements;
    e.statement_count = count;
    return e;
}

/* The sample with another first statement. */
static void refused_first(einsum_statement first, const char *part)
{
    const einsum_statement statements[] = {first, sample_statements[1]};
    const einsum e = sample_of(statements, 2);
    expect_refused(&e, part);
}

/* %0 of a and b over these digits. */
static einsum_statement product_over(const einsum_digit *digits, uint32_t count)
{
    return (einsum_statement){.op = MATH_CONTRACT,
                              .dst = 2,
                              .sources = {0, 1},
                              .source_count = 2,
                              .accumulator = DTYPE_F32,
                              .digit_count = count,
                              .digits = digits};
}

START_TEST(test_round_trip)
{
    size_t count;
    einsum out;
    round_trip(&sample, &out, &count);
    ck_assert_str_eq(out.text, sample.text);
    ck_assert_uint_eq(out.tensor_count, 4);
    ck_assert_str_eq(out.tensors[2].name, "%0");
    ck_assert_int_eq(out.tensors[2].port, -1);
    ck_assert_int_eq(out.tensors[3].port, 2);
    ck_assert_uint_eq(out.statement_count, 2);
    ck_assert_int_eq(out.statements[0].op, MATH_CONTRACT);
    ck_assert_int_eq(out.statements[0].accumulator, DTYPE_F32);
    ck_assert_uint_eq(out.statements[0].digit_count, 4);
    ck_assert(!out.statements[0].digits[2].kept && out.statements[0].digits[2].weight == 16);
    ck_assert_int_eq(einsum_tensor_elements(&out, 0), 32 * 32);
    ck_assert_int_eq(einsum_tensor_elements(&out, 3), 32 * 8);
}
END_TEST

/* A scalar has no axes, a statement may have no digits. */
START_TEST(test_scalar)
{
    const einsum_tensor tensors[] = {{"x", DTYPE_I8, 0, 0, NULL}, {"y", DTYPE_I32, 1, 0, NULL}};
    const einsum_statement statement = {.op = MATH_CONTRACT, .dst = 1, .sources = {0, 0}, .source_count = 2, .accumulator = DTYPE_I32};
    const einsum e = {sample_axes, 3, tensors, 2, &statement, 1, ",->", NULL, 0, NULL};
    size_t count;
    einsum out;
    round_trip(&e, &out, &count);
    ck_assert_int_eq(einsum_tensor_elements(&out, 0), 1);
}
END_TEST

START_TEST(test_encoder_refuses_texts)
{
    uint64_t *words;
    size_t count;
    einsum e = sample;
    e.text = "";
    ck_assert(!einsum_encode(&e, memory, &words, &count));
    e.text = "a\nb";
    ck_assert(!einsum_encode(&e, memory, &words, &count));
    einsum_tensor tensors[4];
    memcpy(tensors, sample_tensors, sizeof tensors);
    tensors[1].port = -2;
    e = sample;
    e.tensors = tensors;
    ck_assert(!einsum_encode(&e, memory, &words, &count));
}
END_TEST

/* Tensors */

typedef struct tensor_case {
    uint32_t number;
    einsum_tensor tensor;
    const char *part;
} tensor_case;

static const uint32_t axes_mm[] = {SAMPLE_M, SAMPLE_M}, axes_far[] = {SAMPLE_M, 3};

START_TEST(test_tensors_refused)
{
    static const tensor_case cases[] = {
        {0, {"a", DTYPE_COUNT, 0, 2, sample_axes_mk}, "dtype code 12, allowed are 0 to 11"},
        {0, {"a", DTYPE_BF16, 3, 2, sample_axes_mk}, "is port 3 of 3 ports"},
        {0, {"a", DTYPE_BF16, 2147483647, 2, sample_axes_mk}, "is port 2147483647 of 3"},
        {1, {"b", DTYPE_BF16, 0, 2, sample_axes_mk}, "port 0 is two tensors"},
        {0, {"a", DTYPE_BF16, 0, 2, axes_mm}, "tensor a names axis M twice"},
        {0, {"a", DTYPE_BF16, 0, 2, axes_far}, "axis number 3 of 3"},
        {0, {"a", DTYPE_BF16, -1, 2, sample_axes_mk}, "tensor a is read before it is assigned"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        einsum_tensor tensors[4];
        einsum e = sample;
        memcpy(tensors, sample_tensors, sizeof tensors);
        tensors[cases[i].number] = cases[i].tensor;
        e.tensors = tensors;
        expect_refused(&e, cases[i].part);
    }
}
END_TEST

START_TEST(test_no_tensors)
{
    const einsum e = {sample_axes, 3, NULL, 0, NULL, 0, "none", NULL, 0, NULL};
    expect_refused(&e, "an einsum without tensors");
}
END_TEST

START_TEST(test_huge_tensor)
{
    const layout_axis axes[] = {{"A", INT64_C(1) << 61}, {"B", 2}, {"C", INT64_C(1) << 61}};
    const uint32_t ab[] = {0, 1}, ca[] = {2, 0};
    const einsum_tensor fits = {"x", DTYPE_I8, 0, 1, ab}, tensors[] = {{"x", DTYPE_I8, 0, 2, ab}, {"x", DTYPE_I8, 0, 2, ca}};
    for (int i = -1; i < 2; i++) {
        const einsum e = {axes, 3, i < 0 ? &fits : &tensors[i], 1, NULL, 0, "x", NULL, 0, NULL};
        size_t count;
        einsum out;
        if (i < 0)
            round_trip(&e, &out, &count);
        else
            expect_refused(&e, "2^62 elements or more");
    }
}
END_TEST

/* Statements */

typedef struct statement_case {
    einsum_statement statement;
    const char *part;
} statement_case;

/* A statement of two sources over the sample's digits. */
#define STATEMENT(code, to, a, b, type) \
    { \
        .op = (code), .dst = (to), .sources = {(a), (b)}, .source_count = 2, .accumulator = (type), .digit_count = 4, \
        .digits = sample_digits \
    }

START_TEST(test_statements_refused)
{
    static const statement_case cases[] = {
        {STATEMENT(0, 2, 0, 1, DTYPE_F32), "operation code 0"},
        {STATEMENT(8, 2, 0, 1, DTYPE_F32), "operation code 8"},
        {STATEMENT(MATH_CONTRACT, 2, 0, 1, DTYPE_BF16), "accumulates in bf16"},
        {STATEMENT(MATH_CONTRACT, 2, 0, 1, DTYPE_COUNT), "accumulator dtype code 12"},
        {STATEMENT(MATH_CONTRACT, 4, 0, 1, DTYPE_F32), "tensor number 4 of 4"},
        {STATEMENT(MATH_CONTRACT, 2, 4, 1, DTYPE_F32), "tensor number 4 of 4"},
        {STATEMENT(MATH_CONTRACT, 2, 0, 0xffffffff, DTYPE_F32), "tensor number 4294967295 of 4"},
        {STATEMENT(MATH_CONTRACT, 2, 0, 2, DTYPE_F32), "tensor %0 is read before it is assigned"},
        {STATEMENT(MATH_CONTRACT, 0, 0, 1, DTYPE_F32), "tensor a is assigned after it was read"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refused_first(cases[i].statement, cases[i].part);
}
END_TEST

START_TEST(test_shifts)
{
    static const struct {
        einsum_shift shifts[2];
        uint32_t count;
        const char *part;
    } cases[] = {
        {{{(einsum_side)3, SAMPLE_M, 1}}, 1, "a shift of operand 3"},
        {{{EINSUM_A, 3, 1}}, 1, "axis number 3 of 3"},
        {{{EINSUM_B, SAMPLE_M, 1}}, 1, "tensor b has no axis M to shift"},
        {{{EINSUM_A, SAMPLE_M, 0}}, 1, "shift 0 along axis M, allowed are 1 to 31"},
        {{{EINSUM_A, SAMPLE_M, 32}}, 1, "shift 32 along axis M, allowed are 1 to 31"},
        {{{EINSUM_DST, SAMPLE_M, 1}, {EINSUM_DST, SAMPLE_M, 2}}, 2, "axis M of tensor %0 is shifted twice"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        einsum_statement shifted = sample_statements[0];
        shifted.shifts = cases[i].shifts;
        shifted.shift_count = cases[i].count;
        refused_first(shifted, cases[i].part);
    }
}
END_TEST

typedef struct digits_case {
    math_op op;
    einsum_digit digits[3];
    uint32_t count;
    const char *part;
} digits_case;

START_TEST(test_digits_refused)
{
    static const digits_case cases[] = {
        {MATH_CONTRACT, {{3, true, 1, 1, 0, 0, 0, 0}}, 1, "axis number 3 of 3"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 0, 1, 0, 0, 0, 0}}, 1, "weight 0 of a digit of axis M, allowed are 1 to 32"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 33, 1, 0, 0, 0, 0}}, 1, "weight 33"},
        {MATH_CONTRACT, {{SAMPLE_M, true, -1, 1, 0, 0, 0, 0}}, 1, "weight 18446744073709551615"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 1, 0, 0, 0, 0, 0}}, 1, "size 0 of a digit"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 1, 33, 0, 0, 0, 0}}, 1, "size 33 of a digit of axis M (size 32) with weight 1"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 16, 3, 0, 0, 0, 0}}, 1, "allowed are 1 to 2"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 1, INT64_MAX, 0, 0, 0, 0}}, 1, "size 9223372036854775807"},
        {MATH_CONTRACT, {{SAMPLE_K, true, 1, 32, 0, 0, 0, 0}}, 1, "a digit of axis K is kept, but tensor %0 has no such axis"},
        {MATH_CONTRACT, {{SAMPLE_K, false, 1, 32, 0, 0, 0, 0}, {SAMPLE_M, true, 1, 32, 0, 0, 0, 0}}, 2, "stands after a summed one"},
        {MATH_CONTRACT, {{SAMPLE_K, false, 8, 4, 0, 0, 0, 0}, {SAMPLE_K, false, 1, 9, 0, 0, 0, 0}}, 2, "digits 0 and 1 reach the same"},
        {MATH_CONTRACT, {{SAMPLE_K, false, 1, 8, 0, 0, 0, 0}, {SAMPLE_K, false, 1, 4, 0, 0, 0, 0}}, 2, "digits 0 and 1 reach the same"},
        {MATH_COPY, {{SAMPLE_M, true, 1, 32, 0, 0, 0, 0}, {SAMPLE_K, false, 1, 32, 0, 0, 0, 0}}, 2, "a copy sums over a digit of axis K"},
        {MATH_CONTRACT,
         {{SAMPLE_M, true, 1, 32, 1 << EINSUM_B, 0, 0, 0}},
         1,
         "a digit of axis M is broadcast over source b, which it does not index"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 1, 1, 1 << EINSUM_A, 0, 0, 0}}, 1, "a digit of axis M is broadcast over source a"},
        {MATH_COPY, {{SAMPLE_M, true, 1, 32, 1 << EINSUM_B, 0, 0, 0}}, 1, "a digit of axis M is broadcast over source b"},
        {MATH_CONTRACT, {{SAMPLE_M, true, 1, 32, 0, 1, 0, 0}}, 1, "a digit of axis M has no lanes inside the digit before it"},
        {MATH_CONTRACT, {{SAMPLE_K, false, 1, 32, 0, 9, 0, 0}}, 1, "a digit of axis K has no lanes"},
        {MATH_CONTRACT, {{SAMPLE_K, false, 16, 2, 0, 1, 0, 0}, {SAMPLE_K, false, 1, 16, 0, 0, 0, 0}}, 2, "a digit of axis K has no lanes"},
        {MATH_CONTRACT, {{SAMPLE_K, false, 16, 2, 0, 8, 0, 0}, {SAMPLE_K, false, 1, 16, 0, 1, 0, 0}}, 2, "a digit of axis K has no lanes"},
    };
    static const einsum_digit lanes[] = {{SAMPLE_K, false, 1, 32, 0, 1, 0, 0}};
    static const einsum_piece piece = {1, 1, 1, 32};
    einsum_statement both = product_over(lanes, 1);
    both.piece_count = 1;
    both.pieces = &piece;
    einsum contradicts = sample_of(&both, 1);
    expect_refused(&contradicts, "a digit of axis K has no lanes");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        einsum_statement statement = product_over(cases[i].digits, cases[i].count);
        statement.op = cases[i].op;
        if (statement.op == MATH_COPY)
            statement.source_count = 1;
        einsum e = sample_of(&statement, 1);
        expect_refused(&e, cases[i].part);
    }
}
END_TEST

/* K in two digits of a group of 40 positions, in 4 steps of 16 lanes. */
typedef struct order_case {
    einsum_digit digits[2];
    einsum_piece pieces[2];
    uint32_t piece_count;
    const char *part; /* NULL: accepted */
} order_case;

#define IN_TENS \
    { \
        {SAMPLE_K, false, 8, 4, 0, 0, 1, 10}, \
        { \
            SAMPLE_K, false, 1, 8, 0, 0, 1, 1 \
        } \
    }
#define IN_STEPS \
    { \
        {1, 0, 16, 4}, \
        { \
            1, 1, 1, 16 \
        } \
    }

START_TEST(test_orders)
{
    static const order_case cases[] = {
        {IN_TENS, {{1, 0, 16, 4}, {1, 2, 1, 16}}, 2, NULL},
        {{{SAMPLE_K, false, 12, 3, 0, 0, 1, 12}, {SAMPLE_K, false, 1, 12, 0, 0, 1, 1}},
         {{1, 0, 16, 2}, {1, 1, 1, 16}},
         2,
         NULL}, /* ends with K */
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, 1}, {SAMPLE_K, false, 1, 8, 0, 0, 2, 1}}, {{2, 0, 1, 8}, {1, 1, 1, 4}}, 2, NULL},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, 10}, {SAMPLE_K, false, 1, 8, 0, 1, 1, 1}}, IN_STEPS, 2, "has no lanes"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, 10}, {SAMPLE_K, false, 1, 8, 0, 0, 0, 0}},
         IN_STEPS,
         2,
         "of group 0 after group 1, allowed are that one and the next"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 2, 10}, {SAMPLE_K, false, 1, 8, 0, 0, 2, 1}}, IN_STEPS, 2, "of group 2 after group 0"},
        {IN_TENS, {{0}}, 0, "of group 1 after group 0, in a statement without pieces"},
        {{{SAMPLE_M, true, 1, 32, 0, 0, 1, 1}, {SAMPLE_K, false, 1, 32, 0, 0, 1, 1}}, IN_STEPS, 2, "of group 1 after group 0, and is kept"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, 10}, {SAMPLE_K, false, 1, 8, 0, 0, 1, 0}},
         IN_STEPS,
         2,
         "0 positions of its group apart, allowed are 1 to 2^62 - 1"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, INT64_MAX}, {SAMPLE_K, false, 1, 8, 0, 0, 1, 1}}, IN_STEPS, 2, "positions of its group apart"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, INT64_C(1) << 61}, {SAMPLE_K, false, 1, 8, 0, 0, 1, 1}}, IN_STEPS, 2, "2^62 positions or more"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, 7}, {SAMPLE_K, false, 1, 8, 0, 0, 1, 1}},
         IN_STEPS,
         2,
         "is 7 positions of group 1 apart, and those inside it take 8"},
        {IN_TENS, {{1, 0, 16, 2}, {1, 1, 1, 16}}, 2, "2 of the 2 pieces of group 1 count on from each other, to position 32 of 40"},
        {{{SAMPLE_K, false, 12, 3, 0, 0, 1, 12}, {SAMPLE_M, false, 1, 12, 0, 0, 1, 1}},
         {{1, 0, 16, 2}, {1, 1, 1, 16}},
         2,
         "2 of the 2 pieces of group 1 count on from each other, to position 32 of 36"}, /* another axis, or another part of it, and no end
                                                                                            of K in between */
        {{{SAMPLE_M, false, 12, 3, 0, 0, 1, 12}, {SAMPLE_K, false, 1, 12, 0, 0, 1, 1}},
         {{1, 0, 16, 2}, {1, 1, 1, 16}},
         2,
         "2 of the 2 pieces of group 1 count on from each other, to position 32 of 36"},
        {{{SAMPLE_K, false, 14, 3, 0, 0, 1, 12}, {SAMPLE_K, false, 1, 12, 0, 0, 1, 1}},
         {{1, 0, 16, 2}, {1, 1, 1, 16}},
         2,
         "2 of the 2 pieces of group 1 count on from each other, to position 32 of 36"},
        {{{SAMPLE_K, false, 11, 3, 0, 0, 1, 3}, {SAMPLE_K, false, 4, 3, 0, 0, 1, 1}},
         {{1, 0, 4, 2}, {1, 1, 1, 4}},
         2,
         "2 of the 2 pieces of group 1 count on from each other, to position 8 of 9"}, /* 11 lies in front of where 3 of weight 4 end */
        {IN_TENS, {{1, 0, 8, 8}, {1, 1, 1, 16}}, 2, "1 of the 2 pieces of group 1"},
        {IN_TENS, {{1, 0, 1, 64}, {1, 1, 1, 16}}, 2, "1 of the 2 pieces of group 1"},
        {IN_TENS, {{1, 0, 16, 4}, {2, 1, 1, 16}}, 2, "a piece of group 2 of 1"},
        {IN_TENS, {{1, 0, 16, 4}, {0, 1, 1, 16}}, 2, "a piece of group 0 of 1"},
        {IN_TENS, {{1, 0, 16, 4}, {1, 17, 1, 16}}, 2, "has no lanes inside the piece before it"},
        {IN_TENS, {{1, 8, 16, 4}, {1, 1, 1, 16}}, 2, "has no lanes inside the piece before it"},
        {IN_TENS, {{1, 1, 16, 4}, {1, 0, 1, 16}}, 2, "has no lanes inside the piece before it"},
        {IN_TENS, {{1, 0, 16, 1}, {1, 1, 1, 16}}, 2, "weight 16 and size 1 of a piece of group 1"},
        {IN_TENS, {{1, 0, 0, 4}, {1, 1, 1, 16}}, 2, "weight 0 and size 4"},
        {IN_TENS, {{1, 0, 16, INT64_MAX}, {1, 1, 1, 16}}, 2, "weight 16 and size 9223372036854775807"},
        {{{SAMPLE_K, false, 8, 4, 0, 0, 1, 1}, {SAMPLE_K, false, 1, 8, 0, 0, 2, 1}},
         {{1, 0, 1, INT64_C(1) << 31}, {2, 0, 1, INT64_C(1) << 31}},
         2,
         "pieces of a statement have 2^62 combinations"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        einsum_statement statement = product_over(cases[i].digits, 2);
        statement.piece_count = cases[i].piece_count;
        statement.pieces = cases[i].pieces;
        einsum e = sample_of(&statement, 1), out;
        size_t count;
        if (cases[i].part)
            expect_refused(&e, cases[i].part);
        else
            round_trip(&e, &out, &count);
    }
}
END_TEST

/* Digits of an axis whose size they do not divide; a digit of one iteration never overlaps. */
START_TEST(test_digits_accepted)
{
    static const einsum_digit good[] = {{SAMPLE_M, true, 12, 3, 0, 0, 0, 0},
                                        {SAMPLE_M, true, 1, 12, 1 << EINSUM_A, 0, 0, 0},
                                        {SAMPLE_K, false, 1, 1, 0, 0, 0, 0},
                                        {SAMPLE_K, false, 7, 5, 0, 16, 0, 0},
                                        {SAMPLE_K, false, 1, 7, 1 << EINSUM_A | 1 << EINSUM_B, 2, 0, 0}};
    einsum_statement statement = product_over(good, 5);
    einsum e = sample_of(&statement, 1), out;
    size_t count;
    round_trip(&e, &out, &count);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(out.statements[0].digits[i].broadcast, good[i].broadcast);
}
END_TEST

/* Windows: Y[O, N] = sum over F, C of X[2 O + 3 F, C] * W[N, F, C], and the same with a window over O % 4 next to O / 4. */

enum { CONV_O, CONV_F, CONV_C, CONV_N, CONV_X, CONV_Q, CONV_AXES };
static const layout_axis conv_axes[] = {{"O", 8}, {"F", 3}, {"C", 4}, {"N", 2}, {"$(F:3, O:2)", 21}, {"$(O % 4:1, F:1)", 6}};
static const einsum_term conv_terms[] = {{CONV_F, 1, 3, 3}, {CONV_O, 1, 8, 2}}, part_terms[] = {{CONV_O, 1, 4, 1}, {CONV_F, 1, 3, 1}};
static const einsum_window conv_windows[] = {{CONV_X, 2, conv_terms, false, 0}, {CONV_Q, 2, part_terms, false, 0}};
static const uint32_t conv_input[] = {CONV_X, CONV_C}, conv_weights[] = {CONV_N, CONV_F, CONV_C}, conv_output[] = {CONV_O, CONV_N},
                      part_input[] = {CONV_O, CONV_Q, CONV_C};
static const einsum_tensor conv_tensors[] = {
    {"x", DTYPE_I8, 0, 2, conv_input}, {"w", DTYPE_I8, 1, 3, conv_weights}, {"y", DTYPE_I32, 2, 2, conv_output}};
static const einsum_digit conv_digits[] = {{CONV_O, true, 4, 2, 0, 0, 0, 0},
                                           {CONV_O, true, 1, 4, 0, 0, 0, 0},
                                           {CONV_N, true, 1, 2, 0, 0, 0, 0},
                                           {CONV_F, false, 1, 3, 0, 0, 0, 0},
                                           {CONV_C, false, 1, 4, 0, 0, 0, 0}};
static const einsum_statement conv_statement = {
    .op = MATH_CONTRACT, .dst = 2, .sources = {0, 1}, .source_count = 2, .accumulator = DTYPE_I32, .digit_count = 5, .digits = conv_digits};
static const einsum conv = {conv_axes, CONV_AXES, conv_tensors, 3, &conv_statement, 1, "x,w->y", conv_windows, 2, NULL};

START_TEST(test_windows)
{
    size_t count;
    einsum out;
    round_trip(&conv, &out, &count);
    ck_assert_uint_eq(out.window_count, 2);
    ck_assert_uint_eq(out.windows[0].axis, CONV_X);
    ck_assert_uint_eq(out.windows[0].term_count, 2);
    ck_assert_int_eq(out.windows[0].terms[0].stride, 3);
    ck_assert_int_eq(out.windows[1].terms[0].extent, 4);
    /* O's outer digit stands outside the term O % 4. */
    einsum_tensor tensors[3] = {conv_tensors[0], conv_tensors[1], conv_tensors[2]};
    tensors[0] = (einsum_tensor){"x", DTYPE_I8, 0, 3, part_input};
    einsum e = conv;
    e.tensors = tensors;
    round_trip(&e, &out, &count);
}
END_TEST

/* X holds places 2 to 18 of its 21. */
START_TEST(test_borders)
{
    static const struct {
        int64_t size, first;
        const char *part; /* NULL: accepted */
    } cases[] = {{17, 2, NULL},
                 {20, 0, NULL},
                 {1, 20, NULL},
                 {17, 5, "holds 17 places from place 5 on, of 21"},
                 {21, 0, "holds 21 places from place 0 on, of 21"},
                 {1, 21, "holds 1 place from place 21 on, of 21"},
                 {17, -1, "holds 17 places from place -1 on"},
                 {17, INT64_MAX, "holds 17 places"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        layout_axis axes[CONV_AXES];
        einsum_window windows[2] = {conv_windows[0], conv_windows[1]};
        size_t count;
        einsum e = conv, out;
        memcpy(axes, conv_axes, sizeof axes);
        axes[CONV_X].size = cases[i].size;
        windows[0].bordered = true;
        windows[0].first = cases[i].first;
        e.axes = axes;
        e.windows = windows;
        if (cases[i].part) {
            expect_refused(&e, cases[i].part);
            continue;
        }
        uint64_t *words = round_trip(&e, &out, &count);
        ck_assert(out.windows[0].bordered && out.windows[0].first == cases[i].first && !out.windows[1].bordered);
        words[2] |= UINT64_C(1) << 41; /* the first window's word */
        ck_assert(!decodes(&e, words, count, &out));
        ck_assert_ptr_nonnull(strstr(diags.items[0]->message, "reserved bits"));
    }
}
END_TEST

START_TEST(test_windows_refused)
{
    static const struct {
        uint32_t axis, count;
        einsum_term terms[2];
        const char *part;
    } cases[] = {
        {CONV_AXES, 2, {{CONV_F, 1, 3, 3}, {CONV_O, 1, 8, 2}}, "axis number 6 of 6"},
        {CONV_X, 0, {{0}}, "0 terms of a window"},
        {CONV_Q, 2, {{CONV_F, 1, 3, 3}, {CONV_O, 1, 8, 2}}, "has 21 places by its terms and 6"},
        {CONV_X, 2, {{CONV_F, 1, 4, 3}, {CONV_O, 1, 8, 2}}, "weight 1 and extent 4"},
        {CONV_X, 2, {{CONV_F, 0, 3, 3}, {CONV_O, 1, 8, 2}}, "weight 0 and extent 3"},
        {CONV_X, 2, {{CONV_F, 1, 0, 3}, {CONV_O, 1, 8, 2}}, "extent 0"},
        {CONV_X, 2, {{CONV_F, 1, 3, 0}, {CONV_O, 1, 8, 2}}, "a stride of 0"},
        {CONV_X, 2, {{CONV_F, 1, 3, INT64_MAX}, {CONV_O, 1, 8, 2}}, "2^62 places"},
        {CONV_X, 2, {{CONV_O, 1, 4, 3}, {CONV_O, 1, 8, 2}}, "through the same coordinates"},
        {CONV_X, 2, {{CONV_AXES, 1, 4, 3}, {CONV_O, 1, 8, 2}}, "axis number 6 of 6"},
        {CONV_Q, 1, {{CONV_Q, 1, 6, 1}, {0}}, "a window is a term of its own"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const einsum_window windows[2] = {{cases[i].axis, cases[i].count, cases[i].terms, false, 0}, conv_windows[0]};
        einsum e = conv;
        e.windows = windows;
        e.window_count = cases[i].axis == CONV_Q && cases[i].count == 1 ? 2 : 1;
        expect_refused(&e, cases[i].part);
    }
    const einsum_window twice[2] = {conv_windows[0], conv_windows[0]};
    einsum e = conv;
    e.windows = twice;
    expect_refused(&e, "is two windows");
    /* The statement: a digit across a term's end, a window and its term at once, a result through a window. */
    einsum_tensor tensors[3] = {conv_tensors[0], conv_tensors[1], conv_tensors[2]};
    static const einsum_digit across[] = {
        {CONV_O, true, 1, 8, 0, 0, 0, 0}, {CONV_N, true, 1, 2, 0, 0, 0, 0}, {CONV_F, false, 1, 3, 0, 0, 0, 0}};
    static const einsum_digit passes[] = {
        {CONV_O, true, 3, 2, 0, 0, 0, 0}, {CONV_O, true, 1, 3, 0, 0, 0, 0}, {CONV_N, true, 1, 2, 0, 0, 0, 0}};
    static const einsum_digit named[] = {{CONV_O, true, 1, 8, 0, 0, 0, 0}, {CONV_X, false, 1, 21, 0, 0, 0, 0}};
    static const uint32_t window_output[] = {CONV_O, CONV_X};
    einsum_statement s = {
        .op = MATH_CONTRACT, .dst = 2, .sources = {0, 1}, .source_count = 2, .accumulator = DTYPE_I32, .digit_count = 3, .digits = across};
    e = conv;
    e.tensors = tensors;
    e.statements = &s;
    tensors[0] = (einsum_tensor){"x", DTYPE_I8, 0, 3, part_input};
    expect_refused(&e, "inside a window's term and outside");
    s.digits = passes;
    expect_refused(&e, "more than a window's term");
    tensors[0] = conv_tensors[0];
    s.digits = named;
    s.digit_count = 2;
    expect_refused(&e, "tensor x is indexed by window $(F:3, O:2) and by its terms");
    tensors[2] = (einsum_tensor){"y", DTYPE_I32, 2, 2, window_output};
    s.digit_count = 1;
    tensors[0] = (einsum_tensor){"x", DTYPE_I8, 0, 1, conv_output};
    expect_refused(&e, "tensor y is indexed by window");
}
END_TEST

/* Map, reduce, gather, scatter, fill */

START_TEST(test_math)
{
    size_t count;
    einsum out;
    round_trip(&math_sample, &out, &count);
    static const char *const texts[] = {"MAP y[V, E] = max(fma(x[V, E], w[E], 1.0), 0.0)",
                                        "REDUCE sums[] = add.f32[V, E] y[V, E] * x[V, E]",
                                        "GATHER %7[T, E] = x[V + at[T] * 5, E]",
                                        "TE->TE",
                                        "FILL table[V, E] = 0xbf80",
                                        "SCATTER table[V + at[T], E] = %7[T, E]"};
    for (uint32_t i = 0; i < out.statement_count; i++) {
        strbuf s;
        strbuf_init(&s, memory);
        einsum_print_statement(&s, &out, &out.statements[i], einsum_is_dense(&out));
        ck_assert_str_eq(s.text, texts[i]);
    }
}
END_TEST

typedef struct math_case {
    uint32_t number;
    einsum_statement statement;
    const char *part;
} math_case;

START_TEST(test_math_refused)
{
    static const scalar_step no_source[] = {{SCALAR_SOURCE, 2}}, unknown[] = {{(scalar_op)9, 0}},
                             argument[] = {{SCALAR_SOURCE, 0}, {SCALAR_NEG_F32, 1}}, few[] = {{SCALAR_SOURCE, 0}, {SCALAR_ADD_F32, 0}},
                             types[] = {{SCALAR_SOURCE, 0}, {SCALAR_NEG_I32, 0}}, whole[] = {{SCALAR_CONSTANT_I32, 1}, {SCALAR_NEG_F32, 0}},
                             two[] = {{SCALAR_SOURCE, 0}, {SCALAR_SOURCE, 1}},
                             truth[] = {{SCALAR_SOURCE, 0}, {SCALAR_SOURCE, 1}, {SCALAR_LT_F32, 0}}, unnamed[] = {{SCALAR_SOURCE, 0}},
                             integer[] = {{SCALAR_SOURCE, 0}, {SCALAR_SOURCE, 1}, {SCALAR_ADD_F32, 0}, {SCALAR_I32_OF_F32, 0}};
    static scalar_step deep[SCALAR_MAX_DEPTH + 1];
    static const einsum_index far[] = {{MATH_T, 1, 1, 1, 0, 0}}, none[] = {{MATH_V, 0, 1, 1, 0, 0}}, wide[] = {{MATH_V, 41, 1, 1, 0, 0}};
    static const einsum_digit other[] = {{.axis = MATH_V, .kept = true, .weight = 1, .size = 40},
                                         {.axis = MATH_T, .kept = true, .weight = 1, .size = 6}};
    static const einsum_digit summed[] = {{.axis = MATH_V, .kept = true, .weight = 1, .size = 40},
                                          {.axis = MATH_E, .weight = 1, .size = 32}};
    for (int i = 0; i <= SCALAR_MAX_DEPTH; i++)
        deep[i] = (scalar_step){SCALAR_SOURCE, 0};
    einsum_statement map = math_statements[0], reduce = math_statements[1], gather = math_statements[2], fill = math_statements[4],
                     scatter = math_statements[5];
#define WITH(statement, ...) ((void)((changed = (statement)), __VA_ARGS__), changed)
    einsum_statement changed;
    const math_case cases[] = {
        {0, WITH(map, changed.steps = no_source, changed.step_count = 1), "a source that there is not"},
        {0, WITH(map, changed.steps = unknown, changed.step_count = 1), "operation of the expression is not known"},
        {0, WITH(map, changed.steps = argument, changed.step_count = 2), "has an argument"},
        {0, WITH(map, changed.steps = few, changed.step_count = 2), "fewer values"},
        {0, WITH(map, changed.steps = types, changed.step_count = 2), "another type"},
        {0, WITH(map, changed.steps = whole, changed.step_count = 2), "another type"},
        {0, WITH(map, changed.steps = deep, changed.step_count = SCALAR_MAX_DEPTH + 1), "more than 32 values"},
        {0, WITH(map, changed.steps = two, changed.step_count = 2), "leaves 2 values"},
        {0, WITH(map, changed.steps = truth, changed.step_count = 3), "the last a bool"},
        {0, WITH(map, changed.steps = unnamed, changed.step_count = 1), "does not name all 2 sources"},
        {0, WITH(map, changed.steps = integer, changed.step_count = 4), "gives i32 and the statement says f32"},
        {0, WITH(map, changed.accumulator = DTYPE_I32), "a map gives i32, which tensor y of bf16 does not take"},
        {0, WITH(map, changed.step_count = 0), "an expression of 0 steps in a map"},
        {0, WITH(map, changed.fold = SCALAR_ADD_F32), "a map has an operation to fold"},
        {0, WITH(map, changed.digits = summed), "a map sums over a digit of axis E"},
        {0, WITH(map, changed.digits = other), "a digit of axis T is kept, but tensor y has no such axis"},
        {0, WITH(map, changed.source_count = 8, changed.op = MATH_COPY), "a copy has 8 sources, allowed are 1 to 1"},
        {1, WITH(reduce, changed.fold = SCALAR_SUB_F32), "operation 0x31 does not fold f32"},
        {1, WITH(reduce, changed.fold = SCALAR_ADD_I32), "operation 0x10 does not fold f32"},
        {2, WITH(gather, changed.indices = far), "tensor x has no axis number 0 to index"},
        {2, WITH(gather, changed.indices = none), "an index counts 0 along axis V, allowed are 1 to 40"},
        {2, WITH(gather, changed.indices = wide), "an index counts 41"},
        {2, WITH(gather, changed.sources[1] = MATH_W), "index tensor w is of f32"},
        {2, WITH(gather, changed.accumulator = DTYPE_F32), "a gather of bf16 has the accumulator f32"},
        {2, WITH(gather, changed.source_count = 1), "a gather has 1 sources"},
        {2, WITH(gather, changed.counted = true), "a gather of 2 sources has a count"},
        {2, WITH(gather, changed.counted = true, changed.source_count = 3, changed.sources[2] = MATH_W), "the count w is no single i32"},
        {5, WITH(scatter, changed.counted = true, changed.source_count = 3, changed.sources[2] = MATH_W),
         "a scatter of 3 sources has a count"},
        {4, WITH(fill, changed.bits = 0x10000), "an element of bf16 does not have the bits 0x10000"},
        {4, WITH(fill, changed.accumulator = DTYPE_F32), "a fill of bf16 has the accumulator f32"},
        {5, WITH(scatter, changed.digits = summed), "a scatter sums"},
        {5, WITH(scatter, changed.dst = MATH_SUMS), "has no such axis"},
    };
#undef WITH
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        einsum_statement statements[COUNT_OF(math_statements)];
        einsum e = math_sample;
        memcpy(statements, math_statements, sizeof statements);
        statements[cases[i].number] = cases[i].statement;
        if (statements[cases[i].number].digits == summed || statements[cases[i].number].digits == other)
            statements[cases[i].number].digit_count = 2;
        e.statements = statements;
        expect_refused(&e, cases[i].part);
    }
}
END_TEST

/* Of 8 positions, 10 to an element of the list and 2 coordinates of V apart, the first and the last are inside. */
START_TEST(test_moved)
{
    static const einsum_index index = {MATH_V, 2, 10, 1, 0, 8};
    static const struct {
        int64_t number, row;
    } cases[] = {{0, 1}, {70, 15}, {80, -1}, {-10, -1}, {75, -1}};
    einsum_statement gather = math_statements[2];
    gather.indices = &index;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_int_eq(einsum_moved(&math_sample, &gather, 32 + 5, &cases[i].number), cases[i].row < 0 ? -1 : 32 * cases[i].row + 5);
}
END_TEST

/* Words */

static const struct {
    const einsum *e;
    uint64_t random_state;
    bool is_mostly_refused; /* when a bit is changed */
} files[] = {{&sample, 0x853c49e6748fea9b, true}, {&conv, 0x9e3779b97f4a7c15, true}, {&math_sample, 0x9e3779b97f4a7c15, false}};

START_TEST(test_every_truncation)
{
    uint64_t *words;
    size_t count;
    einsum out;
    ck_assert(einsum_encode(&sample, memory, &words, &count));
    for (size_t n = 0; n < count; n++) {
        uint64_t *cut = malloc(n ? n * 8 : 1);
        memcpy(cut, words, n * 8);
        ck_assert(!decodes(&sample, cut, n, &out));
        free(cut);
    }
    uint64_t *longer = ARENA_ARRAY(memory, uint64_t, count + 1);
    memcpy(longer, words, count * 8);
    ck_assert(!decodes(&sample, longer, count + 1, &out));
}
END_TEST

/* Every bit of every word is refused or says something: what is accepted encodes to other words. */
START_TEST(test_every_bit)
{
    const einsum *e = files[_i].e;
    uint64_t *words, *again;
    size_t count, again_count;
    unsigned accepted = 0;
    einsum out;
    ck_assert(einsum_encode(e, memory, &words, &count));
    uint64_t *good = arena_grow(memory, words, count, count, 8);
    for (size_t bit = 0; bit < count * 64; bit++) {
        words[bit / 64] ^= UINT64_C(1) << bit % 64;
        if (decodes(e, words, count, &out)) {
            accepted++;
            ck_assert(einsum_encode(&out, memory, &again, &again_count));
            ck_assert_msg(again_count != count || memcmp(again, good, count * 8) != 0, "bit %zu is ignored", bit);
        }
        words[bit / 64] ^= UINT64_C(1) << bit % 64;
    }
    ck_assert(!files[_i].is_mostly_refused || accepted < count * 64 / 3);
}
END_TEST

/* No words do any harm; every text of what is accepted can be printed. */
START_TEST(test_random_words)
{
    const einsum *e = files[_i].e;
    uint64_t state = files[_i].random_state;
    for (int round = 0; round < suite_rounds(20000); round++) {
        uint64_t *words;
        size_t count;
        einsum out;
        if (round % 200 == 0) {
            teardown();
            setup();
        }
        ck_assert(einsum_encode(e, memory, &words, &count));
        for (int n = 0; n < 3; n++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            uint64_t value = state >> 33;
            words[(state >> 20) % count] = value % 5 ? value % 9 : state;
        }
        if (!decodes(e, words, count, &out))
            continue;
        for (uint32_t i = 0; i < out.statement_count; i++) {
            strbuf s;
            strbuf_init(&s, memory);
            einsum_print_statement(&s, &out, &out.statements[i], false);
        }
    }
}
END_TEST

/* c[P] = sum over X and Y of a[P, X, Y] times b, where Y is two digits; b as a has it, or with X and Y exchanged. */

enum { RUN_P = 2, RUN_X = 3, RUN_Y = 8, RUN_Y_CUT = 7 };

typedef struct runs_seen {
    int count, terms;
    int64_t p, y_size;
    bool exchanged;
} runs_seen;

static bool see_run(void *of, const einsum_run *run)
{
    runs_seen *seen = of;
    seen->count++;
    for (int64_t i = 0; i < run->count; i++, seen->terms++) {
        int64_t x = seen->terms / seen->y_size, y = seen->terms % seen->y_size;
        ck_assert_int_eq(run->first.a_element + i * run->a_step, (seen->p * RUN_X + x) * seen->y_size + y);
        ck_assert_int_eq(run->first.b_element + i * run->b_step, seen->exchanged ? y * RUN_X + x : x * seen->y_size + y);
    }
    return true;
}

START_TEST(test_runs)
{
    static const uint32_t of_a[] = {0, 1, 2}, of_b[] = {1, 2}, exchanged_b[] = {2, 1}, of_c[] = {0};
    static const einsum_digit digits[] = {{0, true, 1, RUN_P, 0, 0, 0, 0},
                                          {1, false, 1, RUN_X, 0, 0, 0, 0},
                                          {2, false, 2, RUN_Y / 2, 0, 0, 0, 0},
                                          {2, false, 1, 2, 0, 0, 0, 0}};
    const einsum_statement sum = {
        .op = MATH_CONTRACT, .dst = 2, .sources = {0, 1}, .source_count = 2, .accumulator = DTYPE_I32, .digit_count = 4, .digits = digits};
    for (int way = 0; way < 4; way++)
        for (int64_t p = 0; p < RUN_P; p++) {
            bool exchanged = way % 2, cut = way / 2; /* cut: the digits leave the axis */
            const layout_axis axes[] = {{"P", RUN_P}, {"X", RUN_X}, {"Y", cut ? RUN_Y_CUT : RUN_Y}};
            const einsum_tensor tensors[] = {
                {"a", DTYPE_I8, 0, 3, of_a}, {"b", DTYPE_I8, 1, 2, exchanged ? exchanged_b : of_b}, {"c", DTYPE_I32, 2, 1, of_c}};
            const einsum e = {axes, 3, tensors, 3, &sum, 1, "a,b->c", NULL, 0, NULL};
            runs_seen seen = {.p = p, .y_size = axes[2].size, .exchanged = exchanged};
            ck_assert(einsum_runs(&e, 1, 2, p, see_run, &seen));
            ck_assert_int_eq(seen.terms, RUN_X * axes[2].size);
            ck_assert_int_eq(seen.count, exchanged || cut ? RUN_X : 1); /* digits that continue each other in both are one run */
        }
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("einsum", setup, teardown);
    suite_tests(t, test_round_trip, test_scalar, test_encoder_refuses_texts, test_tensors_refused, test_no_tensors, test_huge_tensor,
                test_statements_refused, test_shifts, test_digits_refused, test_digits_accepted, test_orders, test_windows, test_borders,
                test_windows_refused, test_math, test_math_refused, test_moved, test_runs, test_every_truncation);
    tcase_add_loop_test(t, test_every_bit, 0, COUNT_OF(files));
    tcase_add_loop_test(t, test_random_words, 0, COUNT_OF(files));
    return suite_status("einsum", t);
}
