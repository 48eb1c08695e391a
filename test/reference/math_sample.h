/* Every kind of statement in one einsum, by hand: y = max(x * w + 1, 0) of bf16, its sums by row in the
 * machine's order, rows of x by index, a table filled and then written at indices. */
#ifndef VISA_TEST_REFERENCE_MATH_SAMPLE_H
#define VISA_TEST_REFERENCE_MATH_SAMPLE_H

#include "test/binary/sample_binary.h"

enum { MATH_T, MATH_E, MATH_V, MATH_AXES };
enum { MATH_X, MATH_W, MATH_AT, MATH_Y, MATH_SUMS, MATH_ROWS, MATH_TABLE, MATH_BETWEEN, MATH_TENSORS, MATH_PORTS = MATH_BETWEEN };

static const layout_axis math_axes[] = {{"T", 6}, {"E", 32}, {"V", 40}};
static const uint32_t math_te[] = {MATH_T, MATH_E}, math_e[] = {MATH_E}, math_t[] = {MATH_T}, math_ve[] = {MATH_V, MATH_E};
static const einsum_tensor math_tensors[MATH_TENSORS] = {
    {"x", DTYPE_BF16, MATH_X, 2, math_ve},         {"w", DTYPE_F32, MATH_W, 1, math_e},     {"at", DTYPE_I32, MATH_AT, 1, math_t},
    {"y", DTYPE_BF16, MATH_Y, 2, math_ve},         {"sums", DTYPE_F32, MATH_SUMS, 0, NULL}, {"rows", DTYPE_F32, MATH_ROWS, 2, math_te},
    {"table", DTYPE_BF16, MATH_TABLE, 2, math_ve}, {"%7", DTYPE_F32, -1, 2, math_te},
};
static const einsum_digit math_ve_digits[] = {{.axis = MATH_V, .kept = true, .weight = 1, .size = 40},
                                              {.axis = MATH_E, .kept = true, .weight = 1, .size = 32}};
static const einsum_digit math_te_digits[] = {{.axis = MATH_T, .kept = true, .weight = 1, .size = 6},
                                              {.axis = MATH_E, .kept = true, .weight = 8, .size = 4},
                                              {.axis = MATH_E, .kept = true, .weight = 1, .size = 8}};
static const einsum_digit math_sum_digits[] = {{.axis = MATH_V, .weight = 1, .size = 40, .broadcast = 1u << EINSUM_B},
                                               {.axis = MATH_E, .weight = 8, .size = 4},
                                               {.axis = MATH_E, .weight = 1, .size = 8, .lane = 1}};
static const scalar_step math_map[] = {{SCALAR_SOURCE, 0},  {SCALAR_SOURCE, 1},       {SCALAR_CONSTANT_F32, 0x3f800000},
                                       {SCALAR_FMA_F32, 0}, {SCALAR_CONSTANT_F32, 0}, {SCALAR_MAX_F32, 0}};
static const scalar_step math_square[] = {{SCALAR_SOURCE, 0}, {SCALAR_SOURCE, 1}, {SCALAR_MUL_F32, 0}};
static const einsum_index math_rows_at[] = {{MATH_V, 5, 1, 1, 0, 0}}, math_table_at[] = {{MATH_V, 1, 1, 1, 0, 0}};
static const einsum_shift math_shift[] = {{EINSUM_A, MATH_V, 3}};

static const einsum_statement math_statements[] = {
    {.op = MATH_MAP,
     .dst = MATH_Y,
     .sources = {MATH_X, MATH_W},
     .source_count = 2,
     .accumulator = DTYPE_F32,
     .digit_count = 2,
     .digits = math_ve_digits,
     .step_count = COUNT_OF(math_map),
     .steps = math_map},
    {.op = MATH_REDUCE,
     .dst = MATH_SUMS,
     .sources = {MATH_Y, MATH_X},
     .source_count = 2,
     .accumulator = DTYPE_F32,
     .digit_count = 3,
     .digits = math_sum_digits,
     .step_count = COUNT_OF(math_square),
     .steps = math_square,
     .fold = SCALAR_ADD_F32},
    {.op = MATH_GATHER,
     .dst = MATH_BETWEEN,
     .sources = {MATH_X, MATH_AT},
     .source_count = 2,
     .accumulator = DTYPE_BF16,
     .digit_count = 3,
     .digits = math_te_digits,
     .shift_count = 1,
     .shifts = math_shift,
     .indices = math_rows_at},
    {.op = MATH_COPY,
     .dst = MATH_ROWS,
     .sources = {MATH_BETWEEN},
     .source_count = 1,
     .accumulator = DTYPE_F32,
     .digit_count = 3,
     .digits = math_te_digits},
    {.op = MATH_FILL, .dst = MATH_TABLE, .accumulator = DTYPE_BF16, .digit_count = 2, .digits = math_ve_digits, .bits = 0xbf80},
    {.op = MATH_SCATTER,
     .dst = MATH_TABLE,
     .sources = {MATH_BETWEEN, MATH_AT},
     .source_count = 2,
     .accumulator = DTYPE_F32,
     .digit_count = 3,
     .digits = math_te_digits,
     .indices = math_table_at},
};
static const einsum math_sample = {math_axes,
                                   MATH_AXES,
                                   math_tensors,
                                   MATH_TENSORS,
                                   math_statements,
                                   COUNT_OF(math_statements),
                                   "MAP y[V, E] = max(fma(x[V, E], w[E], 1.0), 0.0)",
                                   NULL,
                                   0};

#endif
