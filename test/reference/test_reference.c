/* The reference generator, judged by plain C (einsum_judge.h): conversions, values by hand, threads. */
#include "test/reference/einsum_judge.h"

/* ---- conversions ---- */

static const dtype narrow_floats[] = {DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2};

static void convert_all(dtype from, dtype to, const uint32_t *codes, int64_t count)
{
    program p;
    copy_program(&p, from, to, count);
    storage got = storage_new(&p, MODERATE);
    for (int64_t i = 0; i < count; i++)
        store_code(from, got.tensors[0], i, codes[i]);
    storage want = storage_copy(&p, &got);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, got.tensors, NULL, THREADS, &diags));
    judge(&p, want.tensors, FORWARD);
    for (int64_t i = 0; i < count; i++)
        MUST(load_code(to, got.tensors[1], i) == load_code(to, want.tensors[1], i), "%s code %x to %s is %x, expected %x",
             dtype_row_of(from)->name, codes[i], dtype_row_of(to)->name, load_code(to, got.tensors[1], i),
             load_code(to, want.tensors[1], i));
    api->release(k);
    storage_free(&got);
    storage_free(&want);
}

START_TEST(every_code_widens)
{
    quick = _i;
    uint32_t *codes = malloc(65536 * sizeof *codes);
    for (uint32_t i = 0; i < 65536; i++)
        codes[i] = i;
    convert_all(DTYPE_BF16, DTYPE_F32, codes, 65536);
    convert_all(DTYPE_BF16, DTYPE_F8E4M3, codes, 65536);
    convert_all(DTYPE_BF16, DTYPE_F8E5M2, codes, 65536);
    convert_all(DTYPE_F8E4M3, DTYPE_F32, codes, 256);
    convert_all(DTYPE_F8E4M3, DTYPE_F8E5M2, codes, 256);
    convert_all(DTYPE_F8E5M2, DTYPE_F32, codes, 256);
    convert_all(DTYPE_F8E5M2, DTYPE_F8E4M3, codes, 256);
    convert_all(DTYPE_I4, DTYPE_I32, codes, 16);
    convert_all(DTYPE_I8, DTYPE_I32, codes, 256);
    convert_all(DTYPE_I16, DTYPE_I32, codes, 65536);
    for (dtype t = DTYPE_I4; t <= DTYPE_F32; t++)
        convert_all(t, t, codes, 65535); /* an odd count: half a byte is left over in i4 */
    free(codes);
}
END_TEST

/* Every upper half of an f32, with the lower halves that decide between neighbours. */
START_TEST(every_boundary_narrows)
{
    quick = _i;
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOW = sizeof low / sizeof *low };
    uint32_t *codes = malloc(65536 * LOW * sizeof *codes), upper = 0;
    int64_t count = 0;
    for (; upper < 65536; upper += _i || SLOWER > 1 ? (uint32_t)suite_step(7) : 1) /* all of them once */
        for (uint32_t i = 0; i < LOW; i++)
            codes[count++] = upper << 16 | low[i];
    for (size_t i = 0; i < sizeof narrow_floats / sizeof *narrow_floats; i++)
        convert_all(DTYPE_F32, narrow_floats[i], codes, count);
    convert_all(DTYPE_I32, DTYPE_I16, codes, count);
    convert_all(DTYPE_I32, DTYPE_I8, codes, count);
    convert_all(DTYPE_I32, DTYPE_I4, codes, count);
    free(codes);
}
END_TEST

typedef struct spot {
    dtype t;
    float value;
    uint32_t code;
} spot;

/* The published values: contraction "Number formats", not the judge. */
START_TEST(published_conversions)
{
    static const spot spots[] = {
        {DTYPE_F8E4M3, 1, 0x38},           {DTYPE_F8E4M3, 1.0625f, 0x38},   {DTYPE_F8E4M3, 1.1875f, 0x3a},
        {DTYPE_F8E4M3, 448, 0x7e},         {DTYPE_F8E4M3, 464, 0x7e},       {DTYPE_F8E4M3, INFINITY, 0x7e},
        {DTYPE_F8E4M3, -INFINITY, 0xfe},   {DTYPE_F8E4M3, 0x1p-9f, 0x01},   {DTYPE_F8E4M3, 0x1p-10f, 0x00},
        {DTYPE_F8E4M3, 0x1.8p-10f, 0x01},  {DTYPE_F8E4M3, NAN, 0x7f},       {DTYPE_F8E5M2, 1.125f, 0x3d},
        {DTYPE_F8E5M2, NAN, 0x7e},         {DTYPE_F8E5M2, INFINITY, 0x7c},  {DTYPE_F8E5M2, 0x1.cp-15f, 0x03},
        {DTYPE_F8E5M2, 0x1.ffp-15f, 0x03}, {DTYPE_F8E5M2, 0x1p-14f, 0x04},  {DTYPE_F8E5M2, 0x1p-17f, 0x01},
        {DTYPE_BF16, NAN, 0x7fc0},         {DTYPE_BF16, -NAN, 0x7fc0},      {DTYPE_BF16, -0x1p-127f, 0x8000},
        {DTYPE_BF16, FLT_MAX, 0x7f80},     {DTYPE_BF16, 0x1.01p0f, 0x3f80}, {DTYPE_BF16, 0x1.03p0f, 0x3f82},
    };
    for (size_t i = 0; i < sizeof spots / sizeof *spots; i++) {
        program p;
        copy_program(&p, DTYPE_F32, spots[i].t, 1);
        unsigned char from[4], to[4] = {0}, *tensors[] = {from, to};
        store_code(DTYPE_F32, from, 0, f32_bits(spots[i].value));
        reference_kernel *k = compile(&p);
        ck_assert(reference_run(api, k, tensors, NULL, THREADS, &diags));
        ck_assert_msg(load_code(spots[i].t, to, 0) == spots[i].code, "%s of %a is %x, published is %x", dtype_row_of(spots[i].t)->name,
                      (double)spots[i].value, load_code(spots[i].t, to, 0), spots[i].code);
        api->release(k);
    }
}
END_TEST

START_TEST(matmul_of_every_type)
{
    /* tile edges: one row, one column, a vector and one, several tiles, more than one depth and row block */
    static const int64_t shapes[][3] = {{1, 1, 1},   {1, 1, 40},    {7, 10, 33},   {3, 17, 16}, {29, 1, 64},
                                        {40, 3, 20}, {13, 70, 401}, {251, 33, 20}, {1, 1, 301}, {2, 37, 203}};
    /* each type in a part of the shapes, each shape in a part of the types */
    size_t step = (suite_is_long() ? 1 : 3) * (SLOWER == 1 ? 1 : 3);
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++)
        for (size_t s = t % step; s < sizeof shapes / sizeof *shapes; s += step) {
            program p;
            quick = (t + s) % 4 != 0;
            next_cpu = (int)(t + s / 4); /* each CPU in both ways */
            matmul_program(&p, typings[t], shapes[s][0], shapes[s][1], shapes[s][2]);
            check_program(&p, MODERATE);
        }
}
END_TEST

/* Shares of the tiles, by columns and by rows, in threads: the same bits. */
/* Large enough that the parts of each product are given to threads. */
static const int64_t shared_shapes[][3] = {{701, 1100, 540}, {1310, 330, 1000}};

typedef struct one_run {
    reference_kernel *kernel;
    storage storage;
    const unsigned char *want;
    size_t bytes;
    int wrong;
    pthread_barrier_t *start;
    pthread_t thread;
} one_run;

static void *run_in_two(void *argument)
{
    one_run *r = argument;
    pthread_barrier_wait(r->start);
    for (int i = 0; i < suite_rounds(30); i++) {
        memset(r->storage.tensors[2], 0xa5, r->bytes);
        char *fault = api->run(r->kernel, r->storage.tensors, NULL, 2);
        r->wrong += fault || memcmp(r->storage.tensors[2], r->want, r->bytes) != 0;
        free(fault);
    }
    return NULL;
}

/* One run at a time has the kernel's threads. */
START_TEST(runs_at_once_are_apart)
{
    enum { RUNS = 3 };
    program p;
    matmul_program(&p, (typing){DTYPE_F32, DTYPE_F32}, 200, 330, 100);
    storage alone = storage_new(&p, MODERATE);
    reference_kernel *k = compile(&p);
    ck_assert_ptr_null(api->run(k, alone.tensors, NULL, 1));
    one_run runs[RUNS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, RUNS);
    for (int i = 0; i < RUNS; i++) {
        runs[i] = (one_run){.kernel = k,
                            .storage = storage_copy(&p, &alone),
                            .want = alone.tensors[2],
                            .bytes = (size_t)reference_tensor_bytes(&p.e, 2),
                            .start = &start};
        ck_assert_int_eq(pthread_create(&runs[i].thread, NULL, run_in_two, &runs[i]), 0);
    }
    for (int i = 0; i < RUNS; i++) {
        pthread_join(runs[i].thread, NULL);
        ck_assert_int_eq(runs[i].wrong, 0);
        storage_free(&runs[i].storage);
    }
    pthread_barrier_destroy(&start);
    api->release(k);
    storage_free(&alone);
}
END_TEST

/* The result, and its bounds where they are asked for, in one thread and in up to `most`. */
static void compare_threads(const program *p, reference_kernel *k, bool bounded, unsigned most)
{
    size_t bounds_bytes = (size_t)einsum_tensor_elements(&p->e, 2) * sizeof(double);
    storage one = storage_new(p, MODERATE), several = storage_copy(p, &one);
    ck_assert_ptr_null(api->run(k, one.tensors, bounded ? one.bounds : NULL, 1));
    for (unsigned threads = 2; threads <= most; threads++) {
        memset(several.tensors[2], 0xa5, (size_t)reference_tensor_bytes(&p->e, 2));
        memset(several.bounds[2], 0xa5, bounds_bytes);
        ck_assert_ptr_null(api->run(k, several.tensors, bounded ? several.bounds : NULL, threads));
        compare_bits(p, 2, &several, &one, "in threads");
        if (bounded)
            ck_assert_mem_eq(several.bounds[2], one.bounds[2], bounds_bytes);
    }
    api->release(k);
    storage_free(&one);
    storage_free(&several);
}

static const typing thread_typings[] = {{DTYPE_BF16, DTYPE_BF16}, {DTYPE_F32, DTYPE_F32}, {DTYPE_I8, DTYPE_I32}};

START_TEST(threads_change_nothing)
{
    for (size_t i = 0; i < 2 * sizeof thread_typings / sizeof *thread_typings; i++) {
        const int64_t *shape = shared_shapes[i % 2];
        program p;
        matmul_program(&p, thread_typings[i / 2], shape[0], shape[1], shape[2]);
        compare_threads(&p, compile(&p), false, 3);
    }
}
END_TEST

/* No vector of the result lies side by side: no form stores blocks. */
static void interleaved_program(program *p, typing t, int64_t m, int64_t n, int64_t k)
{
    product_program(p, t, "MNKB", SIZES(m, n, k, 3), "MKB", "NKB", "MNB", "MNB", "K");
}

/* Shared by rows and by columns. */
START_TEST(threads_change_no_bound)
{
    static const int64_t shapes[][3] = {{515, 190, 600}, {190, 515, 600}, {150, 200, 1200}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * sizeof thread_typings / sizeof *thread_typings; i++) {
        const int64_t *shape = shapes[i % 3];
        program p;
        (i % 3 == 2 ? interleaved_program : matmul_program)(&p, thread_typings[i / 3], shape[0], shape[1], shape[2]);
        reference_kernel *k = reference_compile(api, &p.e, "threads", REFERENCE_BOUNDS, &diags);
        ck_assert_ptr_nonnull(k);
        compare_threads(&p, k, true, suite_is_long() ? 5 : 3);
    }
}
END_TEST

/* A product for each of `outer` times `inner` batches. */
static void batched_program(program *p, typing t, int64_t outer, int64_t inner, const int64_t *shape)
{
    product_program(p, t, "BCMNK", SIZES(outer, inner, shape[0], shape[1], shape[2]), "BMCK", "CBNK", "BCMN", "BCMN", "K");
}

/* The rows of a batch, side by side. */
static void gather_rows(unsigned char *to, const unsigned char *from, int64_t rows, int64_t apart, int64_t bytes)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * bytes, from + i * apart, (size_t)bytes);
}

/* Fewer batches than threads are divided along a side, others as they are: the bits of each are those of a product of its own. */
START_TEST(batches_are_shared)
{
    static const int64_t counts[][2] = {{2, 1}, {3, 2}, {1, 7}}, shape[] = {131, 190, 140};
    static const typing each[] = {{DTYPE_BF16, DTYPE_BF16}, {DTYPE_F32, DTYPE_F32}, {DTYPE_I8, DTYPE_I32}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts * (sizeof each / sizeof *each); i++) {
        int64_t outer = counts[i % 3][0], inner = counts[i % 3][1], m = shape[0], n = shape[1], k = shape[2];
        int64_t line = k * dtype_row_of(each[i / 3].operand)->bits / 8, result = m * n * dtype_row_of(each[i / 3].result)->bits / 8;
        program all, one;
        batched_program(&all, each[i / 3], outer, inner, shape);
        matmul_program(&one, each[i / 3], m, n, k);
        storage s = storage_new(&all, MODERATE), single = storage_new(&one, MODERATE);
        reference_kernel *kernel = compile(&all);
        next_cpu--; /* both for the same one */
        reference_kernel *alone = compile(&one);
        for (unsigned threads = 1; threads < 4; threads++) {
            memset(s.tensors[2], 0xa5, (size_t)reference_tensor_bytes(&all.e, 2));
            ck_assert_ptr_null(api->run(kernel, s.tensors, NULL, threads));
            for (int64_t b = 0; b < outer * inner; b++) {
                int64_t at = b / inner, in = b % inner;
                gather_rows(single.tensors[0], s.tensors[0] + (at * m * inner + in) * line, m, inner * line, line);
                gather_rows(single.tensors[1], s.tensors[1] + (in * outer + at) * n * line, n, line, line);
                ck_assert_ptr_null(api->run(alone, single.tensors, NULL, 1));
                ck_assert_mem_eq(s.tensors[2] + b * result, single.tensors[2], (size_t)result);
            }
        }
        api->release(kernel);
        api->release(alone);
        storage_free(&s);
        storage_free(&single);
    }
}
END_TEST

/* Tiles of M by N: the last of M is short, and so is the last of N of the second result. */
static void tiled_program(program *p, typing t)
{
    sized_program(p, "MNK", SIZES(40, 34, 23));
    tensor(p, t.operand, "MK");
    tensor(p, t.operand, "NK");
    tensor(p, t.result, "MN");
    tensor(p, t.operand, "MK");
    tensor(p, t.result, "MN");
    for (int i = 0; i < 7; i++) {
        uint32_t source = i == 2 ? 3 : 0, result = i < 5 ? 2 : 4;
        int64_t rows = i % 3 * 16, columns = i == 6 ? 17 : i / 3 * 16;
        statement(p, MATH_CONTRACT, result, source, 1);
        digit(p, true, 'M', 1, 16);
        digit(p, true, 'N', 1, 16);
        whole(p, false, "K");
        if (rows)
            shift(p, EINSUM_DST, 'M', rows), shift(p, EINSUM_A, 'M', rows);
        if (columns)
            shift(p, EINSUM_DST, 'N', columns), shift(p, EINSUM_B, 'N', columns);
    }
}

/* Functions of statements in the generated text. */
static int functions_in(const program *p)
{
    unsigned char *text;
    size_t bytes;
    int count = 0;
    ck_assert_ptr_null(api->emit(&p->e, "tiles", 0, NULL, REFERENCE_LLVM, &text, &bytes));
    for (const char *at = (char *)text; (at = strstr(at, "define internal void @statement")); at++)
        count++;
    api->release_bytes(text);
    return count;
}

START_TEST(tiles_share_code)
{
    for (size_t t = 0; t<sizeof typings / sizeof *typings; t += SLOWER> 1 && !suite_is_long() ? 4 : 1) {
        program p;
        tiled_program(&p, typings[t]);
        check_program(&p, MODERATE);
        ck_assert_int_eq(functions_in(&p), 2); /* whole tiles, and the short ones */
    }
}
END_TEST

START_TEST(digit_kept_inside_a_sum)
{
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++) {
        program p;
        product_program(&p, typings[t], "MNK", SIZES(5, 9, 64), "MK", "NK", "NKM", "MN", "");
        digit(&p, true, 'K', 4, 4); /* K % 16 / 4 */
        digit(&p, false, 'K', 16, 4);
        digit(&p, false, 'K', 1, 4);
        check_program(&p, MODERATE);
    }
}
END_TEST

START_TEST(batches_broadcasts_and_scalars)
{
    program p;
    sized_program(&p, "BMNK", SIZES(3, 6, 20, 12));
    tensor(&p, DTYPE_BF16, "KMB");
    tensor(&p, DTYPE_BF16, "BNK");
    tensor(&p, DTYPE_F32, "NBM");
    tensor(&p, DTYPE_BF16, "");
    tensor(&p, DTYPE_BF16, "BC");
    tensor(&p, DTYPE_F32, "MC");
    statement(&p, MATH_CONTRACT, 2, 0, 1);
    whole(&p, true, "BMN");
    whole(&p, false, "K");
    statement(&p, MATH_CONTRACT, 4, 0, 3); /* a scalar operand, and a result repeated along C */
    size_of(&p, 'C', 2);
    whole(&p, true, "BC");
    whole(&p, false, "MK");
    statement(&p, MATH_CONTRACT, 5, 3, 3); /* both operands repeat */
    whole(&p, true, "MC");
    whole(&p, false, "K");
    ck_assert_int_gt(check_program(&p, MODERATE), 0);
}
END_TEST

START_TEST(elementwise_products)
{
    program p;
    product_program(&p, (typing){DTYPE_BF16, DTYPE_BF16}, "AB", SIZES(50, 30), "AB", "BA", "AB", "AB", "");
    ck_assert_int_eq(check_program(&p, MODERATE), 0); /* one exact product: no order to choose */
}
END_TEST

START_TEST(copies_move_and_cast)
{
    static const typing casts[] = {{DTYPE_I8, DTYPE_I8},    {DTYPE_I4, DTYPE_I4},    {DTYPE_I32, DTYPE_I4},
                                   {DTYPE_F32, DTYPE_BF16}, {DTYPE_BF16, DTYPE_F32}, {DTYPE_F8E5M2, DTYPE_BF16}};
    for (size_t t = 0; t < sizeof casts / sizeof *casts; t++) {
        program p;
        sized_program(&p, "ABC", SIZES(7, 14, 3));
        tensor(&p, casts[t].operand, "AB");
        tensor(&p, casts[t].result, "BCA");
        statement(&p, MATH_COPY, 1, 0, 0);
        digit(&p, true, 'B', 4, 4); /* overshoots 14 */
        whole(&p, true, "CA");
        digit(&p, true, 'B', 1, 4);
        check_program(&p, MODERATE);
    }
}
END_TEST

/* Axis K, of 14 elements, as digits of 4 and 4: kept or summed. */
static void cut_depth(program *p, bool kept_high, bool kept_low)
{
    for (int kept = 1; kept >= 0; kept--) {
        if (kept_high == kept)
            digit(p, kept, 'K', 4, 4);
        if (kept_low == kept)
            digit(p, kept, 'K', 1, 4);
    }
}

/* Kept whole, summed whole, and one of each. */
START_TEST(digits_that_overshoot)
{
    for (int kept_high = 0; kept_high < 2; kept_high++)
        for (int kept_low = 0; kept_low < 2; kept_low++)
            for (size_t t = 0; t < sizeof typings / sizeof *typings; t++) {
                if ((t + (size_t)(2 * kept_high + kept_low)) % ((suite_is_long() ? 1 : 2) * (SLOWER == 1 ? 1 : 3)) != 0)
                    continue;
                program p;
                product_program(&p, typings[t], "MK", SIZES(14, 14), "MK", "K", kept_high || kept_low ? "MK" : "M", "", "");
                digit(&p, true, 'M', 4, 4);
                digit(&p, true, 'M', 1, 4);
                cut_depth(&p, kept_high, kept_low);
                check_program(&p, MODERATE);
            }
}
END_TEST

/* K is summed but the second operand lacks it: its infinity must not meet the zeros of the terms that do not
 * exist. */
START_TEST(missing_terms_add_nothing)
{
    program p;
    product_program(&p, (typing){DTYPE_BF16, DTYPE_F32}, "MK", SIZES(3, 14), "MK", "M", "M", "M", "");
    cut_depth(&p, false, false);
    unsigned char a[3 * 14 * 2], b[3 * 2], c[3 * 4], *tensors[] = {a, b, c};
    double bound[3], *bounds[] = {NULL, NULL, bound};
    for (int i = 0; i < 3 * 14; i++)
        store_code(DTYPE_BF16, a, i, 0x3f80);
    store_code(DTYPE_BF16, b, 0, 0x7f80);
    store_code(DTYPE_BF16, b, 1, 0x3f80);
    store_code(DTYPE_BF16, b, 2, 0x7fc0);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, tensors, bounds, THREADS, &diags));
    api->release(k);
    ck_assert(isinf(decode(DTYPE_F32, load_code(DTYPE_F32, c, 0))) && bound[0] == 0);
    /* 14 products of 1: 13 roundings of at most 2^-24 of 14 are 1.1e-5. Ten times that would let a wrong last digit of a bf16 input pass
     * by. */
    ck_assert(decode(DTYPE_F32, load_code(DTYPE_F32, c, 1)) == 14 && bound[1] > 0 && bound[1] < 1e-4);
    ck_assert(isnan(decode(DTYPE_F32, load_code(DTYPE_F32, c, 2))) && bound[2] == 0);
}
END_TEST

START_TEST(absent_places_add_nothing)
{
    program p;
    group_program(&p);
    unsigned char a[15 * 2], b[15 * 2], c[4], *tensors[] = {a, b, c};
    for (int i = 0; i < 15; i++) {
        store_code(DTYPE_BF16, a, i, 0x8000);
        store_code(DTYPE_BF16, b, i, 0x3f80);
    }
    reference_kernel *k = reference_compile(api, &p.e, "cells", REFERENCE_VALUES | REFERENCE_MACHINE_ORDER, &diags);
    ck_assert(reference_run(api, k, tensors, NULL, THREADS, &diags));
    api->release(k);
    ck_assert_uint_eq(load_code(DTYPE_F32, c, 0), 0x80000000u);
}
END_TEST

/* As above with K / 4 kept: the last of its digits has two terms, and the other two must not meet the
 * infinity. */
START_TEST(kept_digits_decide_which_terms_exist)
{
    program p;
    product_program(&p, (typing){DTYPE_BF16, DTYPE_F32}, "MK", SIZES(3, 14), "MK", "", "MK", "M", "");
    cut_depth(&p, true, false);
    storage s = storage_new(&p, POSITIVE);
    store_code(DTYPE_BF16, s.tensors[1], 0, 0x7f80);
    check_inputs(&p, &s);
    storage_free(&s);
}
END_TEST

/* Steps whose lanes are no power of two, so that the last vector of depth is not whole steps; columns along depth and across it. */
START_TEST(steps_of_any_lanes_in_machine_order)
{
    for (int64_t lanes = 3; lanes < 40; lanes += 7)
        for (int64_t steps = 1; steps < 6; steps++)
            for (int across = 0; across < 2; across++) {
                if ((lanes / 7 + steps + across) % ((suite_is_long() ? 1 : 2) * (SLOWER == 1 ? 1 : 3)) != 0)
                    continue;
                program p;
                quick = steps % 2;
                product_program(&p, (typing){DTYPE_BF16, DTYPE_F32}, "MNTL", SIZES(3, 37, steps, lanes), "MTL", across ? "TLN" : "NTL",
                                lanes % 2 ? "MN" : "NM", "MN", "TL");
                p.digits[0][3].lane = 1;
                check_machine_order(&p, MODERATE);
            }
}
END_TEST

/* A convolution as anyone writes it: no digits, no judge. */
START_TEST(convolution_by_hand)
{
    static const struct {
        int64_t stride, dilation;
    } rows[] = {{1, 1}, {2, 1}, {1, 2}, {3, 2}};
    for (size_t r = 0; r < 3 * sizeof rows / sizeof *rows; r++) {
        enum { OUT = 5, FILTER = 3, CHANNELS = 4, RESULTS = 3 };
        int64_t stride = rows[r / 3].stride, dilation = rows[r / 3].dilation, before = r % 3, behind = r % 3 * 2,
                in = 1 + (OUT - 1) * stride + (FILTER - 1) * dilation - before - behind;
        program p;
        product_program(&p, (typing){DTYPE_I8, DTYPE_I32}, "OPFGCN", SIZES(OUT, OUT, FILTER, FILTER, CHANNELS, RESULTS), "XYC", "NFGC",
                        "OPN", "OPN", "FGC");
        window(&p, 'X', term('O', 1, OUT, stride), term('F', 1, FILTER, dilation));
        if (r % 3)
            border(&p, before, in);
        window(&p, 'Y', term('P', 1, OUT, stride), term('G', 1, FILTER, dilation));
        if (r % 3)
            border(&p, before, in);
        storage s = storage_new(&p, MODERATE);
        reference_kernel *k = compile(&p);
        ck_assert(reference_run(api, k, s.tensors, NULL, THREADS, &diags));
        api->release(k);
        const int8_t *x = (const int8_t *)s.tensors[0], *w = (const int8_t *)s.tensors[1];
        const unsigned char *y = s.tensors[2];
        for (int64_t i = 0; i < OUT * OUT * RESULTS; i++) {
            int64_t sum = 0, n = i % RESULTS, column = i / RESULTS % OUT, row = i / RESULTS / OUT;
            for (int64_t f = 0; f < FILTER; f++)
                for (int64_t g = 0; g < FILTER; g++)
                    for (int64_t c = 0; c < CHANNELS; c++) {
                        int64_t h = row * stride + f * dilation - before, v = column * stride + g * dilation - before;
                        if (h >= 0 && h < in && v >= 0 && v < in)
                            sum += x[(h * in + v) * CHANNELS + c] * w[((n * FILTER + f) * FILTER + g) * CHANNELS + c];
                    }
            ck_assert_int_eq((int32_t)load_code(DTYPE_I32, y, i), sum);
        }
        storage_free(&s);
    }
}
END_TEST

/* A window over O % 4 next to O / 4: neighbouring digits of O must not become one. */
START_TEST(windows_over_digits)
{
    for (int variant = 0; variant < 4; variant++) {
        int split = variant & 1;
        program p;
        product_program(&p, (typing){DTYPE_I8, DTYPE_I32}, "OFC", SIZES(12, 3, 5), "OXC", "FC", "O", "", "");
        window(&p, 'X', term('O', 1, 4, 2), term('F', 1, 3, 1));
        digit(&p, true, 'O', 4, 3);
        digit(&p, true, 'O', split ? 2 : 1, split ? 2 : 4);
        if (split)
            digit(&p, true, 'O', 1, 2);
        if (variant & 2) /* a's O / 4 is 0, and so is what its window takes from O */
            p.digits[0][0].broadcast = p.digits[0][1].broadcast = 1 << EINSUM_A;
        whole(&p, false, "FC");
        check_program(&p, MODERATE);
    }
}
END_TEST

START_TEST(integer_sums_wrap)
{
    program p;
    matmul_program(&p, (typing){DTYPE_I32, DTYPE_I32}, 1, 1, 3);
    unsigned char a[12], b[12], c[4], *tensors[] = {a, b, c};
    double bound = NAN, *bounds[] = {NULL, NULL, &bound};
    static const uint32_t left[] = {65536, 0x7fffffff, 1}, right[] = {65536, 1, 5};
    for (int i = 0; i < 3; i++) {
        store_code(DTYPE_I32, a, i, left[i]);
        store_code(DTYPE_I32, b, i, right[i]);
    }
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, tensors, bounds, THREADS, &diags));
    ck_assert_uint_eq(load_code(DTYPE_I32, c, 0), 0x80000004u);
    ck_assert(bound == 0);
    api->release(k);
}
END_TEST

int main(void)
{
    TCase *conversions = suite_case_with("conversions", set_up, tear_down);
    tcase_add_loop_test(conversions, every_code_widens, 0, 2);
    tcase_add_loop_test(conversions, every_boundary_narrows, 0, 2);
    suite_tests(conversions, published_conversions);
    TCase *threads = suite_case_with("threads", set_up, tear_down);
    suite_tests(threads, threads_change_nothing, batches_are_shared, threads_change_no_bound, tiles_share_code, runs_at_once_are_apart);
    TCase *values = suite_case_with("values", set_up, tear_down);
    suite_tests(values, matmul_of_every_type, digit_kept_inside_a_sum, batches_broadcasts_and_scalars, elementwise_products,
                copies_move_and_cast, digits_that_overshoot, missing_terms_add_nothing, absent_places_add_nothing,
                kept_digits_decide_which_terms_exist, steps_of_any_lanes_in_machine_order, convolution_by_hand, windows_over_digits,
                integer_sums_wrap);
    return suite_status("reference", conversions, threads, values);
}
