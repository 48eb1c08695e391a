/* The bounds that a check compares within, and what the reference refuses. */
#include "test/reference/einsum_judge.h"

static void chain_program(program *p, dtype operand, dtype middle)
{
    sized_program(p, "MNKP", SIZES(11, 13, 60, 5));
    tensor(p, operand, "MK");
    tensor(p, operand, "NK");
    tensor(p, middle, "MN");
    tensor(p, middle, "PN");
    tensor(p, is_float(middle) ? DTYPE_F32 : DTYPE_I32, "MP");
    tensor(p, middle, "PM");
    tensor(p, is_float(middle) ? DTYPE_F32 : DTYPE_I32, "M");
    p->tensors[2].port = -1;
    statement(p, MATH_CONTRACT, 2, 0, 1);
    whole(p, true, "MN");
    whole(p, false, "K");
    statement(p, MATH_CONTRACT, 4, 3, 2);
    whole(p, true, "MP");
    whole(p, false, "N");
    statement(p, MATH_COPY, 5, 4, 0);
    whole(p, true, "PM");
    statement(p, MATH_CONTRACT, 6, 4, 5); /* both operands are off */
    whole(p, true, "M");
    whole(p, false, "P");
    p->same_order = operand != DTYPE_F8E5M2; /* its sums of sums leave the range of its products */
}

START_TEST(chains_carry_bounds)
{
    static const typing chains[] = {{DTYPE_BF16, DTYPE_BF16},   {DTYPE_F8E4M3, DTYPE_BF16}, {DTYPE_BF16, DTYPE_F8E4M3},
                                    {DTYPE_BF16, DTYPE_F8E5M2}, {DTYPE_BF16, DTYPE_F32},    {DTYPE_I8, DTYPE_I8}};
    int64_t differing = 0;
    for (size_t t = 0; t < sizeof chains / sizeof *chains; t++)
        for (int round = 0; round < 3; round++) {
            program p;
            quick = round > 0;
            chain_program(&p, chains[t].operand, chains[t].result);
            differing += check_program(&p, MODERATE);
        }
    ck_assert_int_gt(differing, 100);
}
END_TEST

/* 1 + 2^27 - 2^27 is 0 from the front and 1 from the back: a source whose error is larger than itself. What
 * is made of it differs by as much as the errors say, and by nothing that rounding alone would explain. */
START_TEST(errors_multiply_through)
{
    static const float terms[] = {1, 0x1p27f, -0x1p27f}, factors[] = {3, INFINITY, -0.5f};
    program p;
    sized_program(&p, "MNK", SIZES(3, 3, 3));
    tensor(&p, DTYPE_BF16, "MK");
    tensor(&p, DTYPE_BF16, "K");
    tensor(&p, DTYPE_BF16, "N");
    for (const char *const *axes = (const char *const[]){"M", "MN", "MN", "M", NULL}; *axes; axes++)
        tensor(&p, DTYPE_F32, *axes);
    tensor(&p, DTYPE_BF16, "M");
    statement(&p, MATH_CONTRACT, 3, 0, 1);
    whole(&p, true, "M");
    whole(&p, false, "K");
    statement(&p, MATH_CONTRACT, 4, 3, 2); /* the rows are off */
    whole(&p, true, "MN");
    statement(&p, MATH_CONTRACT, 5, 2, 3); /* the columns are off */
    whole(&p, true, "NM");
    statement(&p, MATH_CONTRACT, 6, 3, 3); /* 0 * 0 or 1 * 1: only the product of both errors tells */
    whole(&p, true, "M");
    storage s = storage_new(&p, MODERATE);
    for (int i = 0; i < 9; i++)
        store_code(DTYPE_BF16, s.tensors[0], i, encode_float(DTYPE_BF16, terms[i % 3]));
    for (int i = 0; i < 3; i++) {
        store_code(DTYPE_BF16, s.tensors[1], i, encode_float(DTYPE_BF16, 1));
        store_code(DTYPE_BF16, s.tensors[2], i, isinf(factors[i]) ? 0x7f80 : encode_float(DTYPE_BF16, factors[i]));
    }
    ck_assert_int_ge(check_inputs(&p, &s), 2 * (3 + 6 + 6 + 3)); /* every finite one, in both other orders */
    p.e.statement_count = 1;
    statement(&p, MATH_COPY, 7, 3, 0); /* the cast of what is off */
    whole(&p, true, "M");
    ck_assert_int_ge(check_inputs(&p, &s), 2 * (3 + 3));
    storage_free(&s);
}
END_TEST

/* Infinities, NaNs, subnormals and overflowing products: the same class in every order, or an infinite bound.
 */
START_TEST(any_bits_stay_within_bounds)
{
    quick = _i;
    for (size_t t = 0; t < sizeof typings / sizeof *typings; t++)
        for (int64_t depth = 1 + (int64_t)t % 6; depth < 40; depth += _i && SLOWER == 1 ? 6 : 18) {
            program p;
            matmul_program(&p, typings[t], 24, 24, depth);
            p.same_order = !is_float(typings[t].operand);
            check_program(&p, ANY_BITS);
        }
}
END_TEST

/* ---- bounds ---- */

START_TEST(bounds_are_tight)
{
    static const typing tight[] = {{DTYPE_BF16, DTYPE_F32}, {DTYPE_F8E4M3, DTYPE_F32}, {DTYPE_F32, DTYPE_F32}};
    for (size_t t = 0; t < sizeof tight / sizeof *tight; t++) {
        program p;
        matmul_program(&p, tight[t], 8, 40, 512);
        storage s = storage_new(&p, POSITIVE);
        reference_kernel *k = compile(&p);
        ck_assert(reference_run(api, k, s.tensors, s.bounds, THREADS, &diags));
        for (int64_t i = 0; i < 8 * 40; i++) {
            double value = decode(DTYPE_F32, load_code(DTYPE_F32, s.tensors[2], i));
            /* 511 roundings of at most 2^-24 of a sum of positive terms: 3.0e-5 of it, in each of two orders at most. */
            ck_assert_double_gt(s.bounds[2][i], value * 1e-6);
            ck_assert_double_lt(s.bounds[2][i], value * 1e-4);
        }
        api->release(k);
        storage_free(&s);
    }
}
END_TEST

/* More terms than an f32 sum of magnitudes could count. */
START_TEST(bounds_of_long_sums)
{
    if (SLOWER > 1 && !suite_is_long()) /* 1.2 million terms one by one, which see no other code than few do */
        return;
    program p;
    matmul_program(&p, (typing){DTYPE_F8E4M3, DTYPE_F32}, 2, 3, 200000);
    p.same_order = true;
    ck_assert_int_gt(check_program(&p, POSITIVE), 0);
    storage s = storage_new(&p, POSITIVE);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, s.tensors, s.bounds, THREADS, &diags));
    for (int64_t i = 0; i < 6; i++)
        ck_assert_double_lt(s.bounds[2][i], decode(DTYPE_F32, load_code(DTYPE_F32, s.tensors[2], i)) * 0.03);
    api->release(k);
    storage_free(&s);
}
END_TEST

/* A sum of so many positive terms, one by one, may be off by h u / (1 - h u) of it, where h is their number less one and u half a unit in
 * the last place: a bound below that forgets what the errors' own errors are. Of what is computed from a sum. */
START_TEST(bounds_of_computed_sums)
{
    enum { TERMS = 400000 };
    program p;
    sized_program(&p, "MNKP", SIZES(1, 1, TERMS, 1));
    tensor(&p, DTYPE_BF16, "MK");
    tensor(&p, DTYPE_BF16, "NK");
    tensor(&p, DTYPE_F32, "MN");
    tensor(&p, DTYPE_F32, "PN");
    tensor(&p, DTYPE_F32, "MP");
    p.tensors[2].port = -1;
    statement(&p, MATH_CONTRACT, 2, 0, 1);
    whole(&p, true, "MN");
    whole(&p, false, "K");
    statement(&p, MATH_CONTRACT, 4, 3, 2);
    whole(&p, true, "MP");
    whole(&p, false, "N");
    storage s = storage_new(&p, POSITIVE);
    reference_kernel *k = compile(&p);
    ck_assert(reference_run(api, k, s.tensors, s.bounds, THREADS, &diags));
    double value = decode(DTYPE_F32, load_code(DTYPE_F32, s.tensors[4], 0)), h = (TERMS - 1) * 0x1p-24;
    ck_assert_double_gt(s.bounds[4][0], value * h / (1 - h));
    ck_assert_double_lt(s.bounds[4][0], value * h / (1 - h) * 1.2);
    api->release(k);
    storage_free(&s);
}
END_TEST

/* ---- faults ---- */

static void refuses_order(const program *p, unsigned forms, const char *words)
{
    size_t before = diags.count;
    ck_assert_ptr_null(reference_compile(api, &p->e, "bad", REFERENCE_VALUES | forms, &diags));
    ck_assert_uint_eq(diags.count, before + 1);
    ck_assert_int_eq(diags.items[before]->id, E_REFERENCE);
    ck_assert_msg(strstr(diags.items[before]->message, words) != NULL, "\"%s\" lacks \"%s\"", diags.items[before]->message, words);
    unsigned char *bytes;
    size_t count;
    ck_assert(!reference_emit(api, &p->e, "bad", forms, NULL, REFERENCE_OBJECT, memory, &bytes, &count, &diags));
}

static void refuses(const program *p, const char *words)
{
    refuses_order(p, 0, words);
}

/* Y[O] = sum over F of X[$(O, F)] * W[F] */
static void convolution_program(program *p)
{
    product_program(p, (typing){DTYPE_I8, DTYPE_I32}, "OF", SIZES(8, 3), "X", "F", "O", "O", "F");
    window(p, 'X', term('O', 1, 8, 1), term('F', 1, 3, 1));
}

/* Axes in front of the window's and after it index the tensor by themselves, next to the window. */
START_TEST(axes_next_to_a_window_are_taken)
{
    program p;
    product_program(&p, (typing){DTYPE_I8, DTYPE_I32}, "AOFZ", SIZES(2, 8, 3, 3), "AXZ", "F", "AOZ", "AOZ", "F");
    window(&p, 'X', term('O', 1, 8, 1), term('F', 1, 3, 1));
    reference_kernel *k = reference_compile(api, &p.e, "next", REFERENCE_VALUES, &diags);
    ck_assert_msg(k != NULL, "%s", diags.count ? diags.items[diags.count - 1]->message : "");
    api->release(k);
}
END_TEST

START_TEST(hostile_orders_are_refused)
{
    static const struct {
        einsum_piece pieces[2];
        uint32_t count;
        unsigned char lane, groups[2];
        int64_t strides[2];
        const char *words;
    } rows[] = {{{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 1, {1, 1}, {5, 1}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 0}, {5, 1}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 0}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {INT64_MAX, 1}, "without a group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {4, 1}, "two terms at one position"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {INT64_C(1) << 50, 1}, "more than 2^50 positions"},
                {{{1, 0, 8, 3}, {1, 1, 1, 8}}, 2, 0, {1, 2}, {5, 1}, "not the whole of group"},
                {{{1, 0, 8, 3}, {1, 1, 1, 4}}, 2, 0, {1, 1}, {5, 1}, "not the whole of group"},
                {{{1, 0, 1, 3}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "not the whole of group"},
                {{{1, 0, 4, 3}, {1, 1, 1, 4}}, 2, 0, {1, 1}, {5, 1}, "not the whole of group"},
                {{{1, 0, 8, 0}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "no size"},
                {{{1, 0, 8, INT64_MAX}, {1, 1, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "no size"},
                {{{1, 0, 8, 3}, {1, 40, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "place in the packet"},
                {{{1, 8, 8, 3}, {1, 0, 1, 8}}, 2, 0, {1, 1}, {5, 1}, "place in the packet"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        program p;
        group_program(&p);
        memcpy(p.pieces[0], rows[i].pieces, sizeof rows[i].pieces);
        p.statements[0].piece_count = rows[i].count;
        for (int d = 0; d < 2; d++) {
            p.digits[0][d].group = rows[i].groups[d];
            p.digits[0][d].stride = rows[i].strides[d];
        }
        p.digits[0][1].lane = rows[i].lane;
        refuses_order(&p, REFERENCE_MACHINE_ORDER, rows[i].words);
    }
}
END_TEST

START_TEST(hostile_einsums_are_refused)
{
    static const typing t = {DTYPE_BF16, DTYPE_F32};
    program p;
    matmul_program(&p, t, 4, 4, INT64_C(1) << 50);
    refuses(&p, "2^46 elements");
    matmul_program(&p, t, 1 << 20, 1 << 20, 1 << 20);
    refuses(&p, "2^50 combinations");
    matmul_program(&p, t, 1 << 15, 1 << 15, 1 << 20);
    refuses(&p, "scratch");
    matmul_program(&p, t, 4, 4, 0);
    refuses(&p, "size 0");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].weight = INT64_MAX;
    refuses(&p, "weight");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].size = INT64_MIN;
    refuses(&p, "size");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].weight = INT64_C(1) << 60;
    digit(&p, false, 'M', INT64_C(1) << 60, 2);
    refuses(&p, "2^62");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][0].axis = 99;
    refuses(&p, "axis");
    matmul_program(&p, t, 4, 4, 4);
    p.tensor_axes[0][0] = 26;
    refuses(&p, "axis");
    matmul_program(&p, t, 4, 4, 4);
    p.tensors[1].dtype = DTYPE_COUNT;
    refuses(&p, "element type");
    for (int mixed = 0; mixed < 3; mixed++) { /* each operand, and the result, alone */
        matmul_program(&p, t, 4, 4, 4);
        p.tensors[mixed].dtype = mixed < 2 ? DTYPE_I8 : DTYPE_I32;
        refuses(&p, "mixes");
    }
    copy_program(&p, DTYPE_F32, DTYPE_I32, 4);
    refuses(&p, "mixes");
    copy_program(&p, DTYPE_I32, DTYPE_F32, 4);
    refuses(&p, "mixes");
    matmul_program(&p, (typing){DTYPE_I8, DTYPE_I32}, 4, 4, 4);
    p.statements[0].accumulator = DTYPE_F32;
    refuses(&p, "accumulates");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].accumulator = DTYPE_I32;
    refuses(&p, "accumulates");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].sources[1] = 3;
    refuses(&p, "beyond");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].dst = 1;
    refuses(&p, "while it is read");
    matmul_program(&p, t, 4, 4, 4);
    p.statements[0].op = (math_op)8;
    refuses(&p, "operation");
    matmul_program(&p, t, 4, 4, 4);
    p.tensors[0].port = -1;
    refuses(&p, "before it is assigned");
    matmul_program(&p, t, 4, 4, 4);
    p.digits[0][2].kept = true;
    refuses(&p, "destination lacks");
    copy_program(&p, DTYPE_I8, DTYPE_I8, 4);
    p.digits[0][0].kept = false;
    refuses(&p, "summed digit");
    convolution_program(&p);
    p.terms[0][0].extent = 9;
    refuses(&p, "no digit of an axis");
    convolution_program(&p);
    p.terms[0][0].axis = 'X' - 'A';
    refuses(&p, "no digit of an axis");
    convolution_program(&p);
    p.terms[0][0].stride = INT64_MAX;
    refuses(&p, "2^63");
    convolution_program(&p);
    p.terms[0][0].stride++;
    refuses(&p, "places");
    convolution_program(&p);
    p.windows[0].axis = 26;
    refuses(&p, "no axis");
    convolution_program(&p);
    border(&p, 3, p.axes['X' - 'A'].size - 2);
    refuses(&p, "places that it does not have");
    convolution_program(&p);
    window(&p, 'X', p.terms[0][0], p.terms[0][1]);
    refuses(&p, "the same as another");
    convolution_program(&p);
    p.digits[0][1] = (einsum_digit){'X' - 'A', false, 1, 3, 0, 0, 0, 0};
    refuses(&p, "by a window and by its terms");
    convolution_program(&p);
    p.terms[0][0] = term('O', 1, 4, 1);
    size_of(&p, 'X', 6);
    refuses(&p, "cuts");
    p.digits[0][0] = (einsum_digit){'O' - 'A', true, 3, 2, 0, 0, 0, 0};
    p.digits[0][1] = (einsum_digit){'O' - 'A', true, 1, 3, 0, 0, 0, 0};
    refuses(&p, "passes the end");
}
END_TEST

START_TEST(missing_inputs_are_refused)
{
    program p;
    matmul_program(&p, (typing){DTYPE_I8, DTYPE_I32}, 2, 2, 2);
    unsigned char a[4] = {1, 2, 3, 4}, *tensors[] = {a, NULL, NULL};
    reference_kernel *k = compile(&p);
    ck_assert(!reference_run(api, k, tensors, NULL, THREADS, &diags));
    ck_assert_msg(strstr(diags.items[diags.count - 1]->message, "tensor 1") != NULL, "names the tensor");
    api->release(k);
}
END_TEST

START_TEST(missing_library_is_a_diagnostic)
{
    setenv("VISA_REFERENCE", "/nowhere/libvisa_reference.so", 1);
    ck_assert_ptr_null(reference_load(&diags));
    ck_assert_uint_eq(diags.count, 1);
    ck_assert_int_eq(diags.items[0]->id, E_REFERENCE);
    ck_assert_ptr_nonnull(diags.items[0]->help);
    setenv("VISA_REFERENCE", "/proc/self/exe", 1); /* a file, but no library */
    ck_assert_ptr_null(reference_load(&diags));
    unsetenv("VISA_REFERENCE");
    ck_assert_ptr_eq(reference_load(&diags), api);
}
END_TEST

/* ---- files ---- */

START_TEST(files_are_reproducible)
{
    static const char *const begins[] = {[REFERENCE_LLVM] = "; ModuleID = 'a_b___ref'",
                                         [REFERENCE_BITCODE] = "BC\xc0\xde",
                                         [REFERENCE_ASSEMBLY] = "\t.text",
                                         [REFERENCE_OBJECT] = "\177ELF",
                                         [REFERENCE_HEADER] = "/* Reference kernel"};
    program p;
    chain_program(&p, DTYPE_BF16, DTYPE_BF16);
    p.e.text = "MK*/ evil";
    for (reference_output kind = REFERENCE_LLVM; kind <= REFERENCE_HEADER; kind++) {
        unsigned char *one, *two;
        size_t one_bytes, two_bytes;
        ck_assert(reference_emit(api, &p.e, "a.b*/", 0, NULL, kind, memory, &one, &one_bytes, &diags));
        ck_assert(reference_emit(api, &p.e, "a.b*/", 0, NULL, kind, memory, &two, &two_bytes, &diags));
        ck_assert_msg(one_bytes > 100 && strncmp((char *)one, begins[kind], strlen(begins[kind])) == 0, "kind %d: %.60s", (int)kind,
                      (char *)one);
        ck_assert(one_bytes == two_bytes && memcmp(one, two, one_bytes) == 0);
        if (kind != REFERENCE_OBJECT && kind != REFERENCE_BITCODE)
            ck_assert_ptr_nonnull(strstr((char *)one, "a_b___ref"));
        if (kind == REFERENCE_HEADER)
            ck_assert_ptr_null(strstr((char *)one, "*/ evil"));
    }
    unsigned char *none;
    size_t count;
    ck_assert(!reference_emit(api, &p.e, "x", 0, NULL, (reference_output)9, memory, &none, &count, &diags));
}
END_TEST

int main(void)
{
    TCase *bounds = suite_case_with("bounds", set_up, tear_down);
    suite_tests(bounds, chains_carry_bounds, errors_multiply_through);
    tcase_add_loop_test(bounds, any_bits_stay_within_bounds, 0, 2);
    suite_tests(bounds, bounds_are_tight, bounds_of_long_sums, bounds_of_computed_sums);
    TCase *refusals = suite_case_with("refusals", set_up, tear_down);
    suite_tests(refusals, hostile_einsums_are_refused, axes_next_to_a_window_are_taken, hostile_orders_are_refused,
                missing_inputs_are_refused, missing_library_is_a_diagnostic, files_are_reproducible);
    return suite_status("reference bounds", bounds, refusals);
}
