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

/* An array and how many it has. */
#define EACH(name, names, array) .name##_count = COUNT_OF(array), .names = (array)
#define STATEMENT(code, to, type, over) .op = (code), .dst = (to), .accumulator = (type), EACH(digit, digits, over)
#define SOURCES(...) .source_count = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), .sources = {__VA_ARGS__}

static const einsum_statement math_statements[] = {
    {STATEMENT(MATH_MAP, MATH_Y, DTYPE_F32, math_ve_digits), SOURCES(MATH_X, MATH_W), EACH(step, steps, math_map)},
    {STATEMENT(MATH_REDUCE, MATH_SUMS, DTYPE_F32, math_sum_digits), SOURCES(MATH_Y, MATH_X), EACH(step, steps, math_square),
     .fold = SCALAR_ADD_F32},
    {STATEMENT(MATH_GATHER, MATH_BETWEEN, DTYPE_BF16, math_te_digits), SOURCES(MATH_X, MATH_AT), EACH(shift, shifts, math_shift),
     .indices = math_rows_at},
    {STATEMENT(MATH_COPY, MATH_ROWS, DTYPE_F32, math_te_digits), SOURCES(MATH_BETWEEN)},
    {STATEMENT(MATH_FILL, MATH_TABLE, DTYPE_BF16, math_ve_digits), .bits = 0xbf80},
    {STATEMENT(MATH_SCATTER, MATH_TABLE, DTYPE_F32, math_te_digits), SOURCES(MATH_BETWEEN, MATH_AT), .indices = math_table_at},
};
static const einsum math_sample = {math_axes,
                                   MATH_AXES,
                                   math_tensors,
                                   MATH_TENSORS,
                                   math_statements,
                                   COUNT_OF(math_statements),
                                   "MAP y[V, E] = max(fma(x[V, E], w[E], 1.0), 0.0)",
                                   NULL,
                                   0,
                                   NULL};
#undef EACH
#undef STATEMENT
#undef SOURCES

#endif
