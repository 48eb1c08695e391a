/* Outputs against references: what agrees, what differs, and what is reported about it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/session.h"
#include "runtime/tensor/compare.h"
#include "runtime/tensor/numeric.h"
#include "test/suite.h"

static arena *memory;
static const int64_t shape_46[] = {4, 6};
static const char *const names_mn[] = {"M", "N"};

static void setup(void)
{
    memory = arena_new();
}

static void teardown(void)
{
    arena_free(memory);
}

static tensor_type type_of(dtype t)
{
    return (tensor_type){t, 2, shape_46, names_mn};
}

/* One value against another, with an allowance. */
static bool agrees(double machine, double reference, double allowed)
{
    const int64_t one[] = {1};
    tensor_type type = {DTYPE_F32, 1, one, NULL};
    unsigned char m[4], r[4];
    compare_result result;
    numeric_from_double(DTYPE_F32, m, 0, machine);
    numeric_from_double(DTYPE_F32, r, 0, reference);
    compare_elements(&type, r, m, &allowed, NULL, 1, &result);
    ck_assert_int_eq(result.compared + result.both_nan + result.both_infinite + result.unbounded, 1);
    ck_assert_int_eq(result.both_infinite, isinf(machine) && machine == reference && !isinf(allowed));
    ck_assert_int_eq(result.both_nan, isnan(machine) && isnan(reference) && !isinf(allowed));
    ck_assert_int_eq(result.unbounded, isinf(allowed) != 0);
    ck_assert_int_eq(result.first_mismatch, result.mismatches ? 0 : -1);
    return result.mismatches == 0;
}

START_TEST(values)
{
    ck_assert(agrees(1, 1, 0));
    ck_assert(agrees(0.0, -0.0, 0));
    ck_assert(!agrees(1, 1.0000001, 0));
    ck_assert(agrees(1, 1.5, 0.5));
    ck_assert(!agrees(1, 1.5, 0.49));
    ck_assert(agrees(-1, 1, 2));
    ck_assert(!agrees(-1, 1, 1.99));
    ck_assert(agrees(NAN, NAN, 0));
    ck_assert(!agrees(NAN, 1, 1e30));
    ck_assert(!agrees(1, NAN, 1e30));
    ck_assert(agrees(INFINITY, INFINITY, 0));
    ck_assert(!agrees(INFINITY, -INFINITY, 1e300));
    ck_assert(!agrees(INFINITY, 3e38, 1e300));
    ck_assert(!agrees(3e38, INFINITY, 1e300));
    ck_assert(agrees(NAN, 1, INFINITY));
    ck_assert(agrees(INFINITY, 1, INFINITY));
    ck_assert(!agrees(1, 2, NAN));
    ck_assert(agrees(2, 2, NAN));
    ck_assert(!agrees(1, 1.25, -1));
}
END_TEST

/* In every type: a change of one element is found, at its place, with its values. */
START_TEST(every_type_finds_one_change)
{
    dtype t = (dtype)_i;
    tensor_type type = type_of(t);
    tensor r, m;
    ck_assert(tensor_new(&type, memory, &r));
    ck_assert(tensor_new(&type, memory, &m));
    for (int64_t i = 0; i < 24; i++)
        numeric_from_double(t, r.bytes, i, (double)(i % 5)); /* 0 to 4 and 6: what every type has */
    for (int64_t changed = 0; changed < 24; changed++) {
        memcpy(m.bytes, r.bytes, r.size);
        compare_result result;
        compare_elements(&type, r.bytes, m.bytes, NULL, NULL, 1, &result);
        ck_assert_int_eq(result.mismatches, 0);
        ck_assert_int_eq(result.compared, 24);
        numeric_from_double(t, m.bytes, changed, 6);
        compare_elements(&type, r.bytes, m.bytes, NULL, NULL, 1, &result);
        ck_assert_int_eq(result.mismatches, 1);
        ck_assert_int_eq(result.first_mismatch, changed);
        ck_assert_double_eq(result.machine, 6);
        ck_assert_double_eq(result.reference, (double)(changed % 5));
    }
    tensor_free(&r);
    tensor_free(&m);
}
END_TEST

/* 24 elements, what the machine has of them and by how much it may differ. */
typedef struct judged {
    unsigned char reference[96], machine[96];
    double allowed[24];
} judged;

/* What is said of them. */
static const char *said_of(const judged *j, compare_result *result)
{
    tensor_type type = type_of(DTYPE_F32);
    compare_elements(&type, j->reference, j->machine, j->allowed, NULL, 1, result);
    return compare_text("out", &type, result, memory);
}

START_TEST(worst_fraction_of_agreeing_elements)
{
    judged j;
    for (int64_t i = 0; i < 24; i++) {
        j.allowed[i] = i == 3 ? INFINITY : i == 4 ? 0 : 8;
        numeric_from_double(DTYPE_F32, j.reference, i, 100);
        numeric_from_double(DTYPE_F32, j.machine, i, i == 5 ? 98 : i == 3 ? 1000 : i == 7 ? 120 : i == 9 ? 101 : 100);
    }
    compare_result result;
    ck_assert_str_eq(said_of(&j, &result),
                     "out: 1 of 24 values differ, 1 with an infinite bound, first at M=1, N=1: machine 120, reference 100, allowed 8");
    ck_assert_int_eq(result.mismatches, 1);
    ck_assert_double_eq(result.worst_fraction, 0.25);
    numeric_from_double(DTYPE_F32, j.machine, 7, 100);
    ck_assert_str_eq(said_of(&j, &result), "out: 24 values: 23 agree, 1 with an infinite bound, worst error 0.25 of its bound");
}
END_TEST

/* What a comparison says nothing of is counted, and is no agreement. */
START_TEST(nothing_compared)
{
    judged j;
    for (int64_t i = 0; i < 24; i++) {
        j.allowed[i] = i < 2 ? INFINITY : 0;
        numeric_from_double(DTYPE_F32, j.reference, i, i < 6 ? NAN : i < 7 ? -INFINITY : 3);
    }
    memcpy(j.machine, j.reference, sizeof j.machine);
    compare_result result;
    ck_assert_str_eq(said_of(&j, &result), "out: 24 values: 17 agree, 4 NaN in both, 1 infinite in both, 2 with an infinite bound");
    ck_assert_int_eq(result.compared, 17);
    numeric_from_double(DTYPE_F32, j.machine, 8, 4);
    ck_assert_str_eq(said_of(&j, &result),
                     "out: 1 of 24 values differ, 4 NaN in both, 1 infinite in both, 2 with an infinite bound, first at M=1, N=2: "
                     "machine 4, reference 3, must be equal");
    for (int64_t i = 0; i < 24; i++)
        j.allowed[i] = INFINITY;
    ck_assert_str_eq(said_of(&j, &result), "out: 24 values, none compared, 24 with an infinite bound");
    ck_assert_int_eq(result.compared, 0);
}
END_TEST

/* Parts are put together as if there were one. */
START_TEST(threads_compare_the_same)
{
    enum { MANY = 700001 };
    const int64_t shape[] = {MANY};
    tensor_type type = {DTYPE_I8, 1, shape, NULL};
    unsigned char *r = calloc(MANY, 1), *m = calloc(MANY, 1), *covered = malloc(MANY);
    double *allowed = calloc(MANY, sizeof *allowed);
    memset(covered, 1, MANY);
    covered[MANY / 2] = 0;
    m[MANY - 1] = 4, allowed[MANY - 1] = 8;
    for (int differs = -1; differs < 4; differs++) {
        for (int at = 0; at <= differs; at++)
            m[MANY / 5 * (4 - at)] = (unsigned char)(10 + at);
        compare_result one, several;
        compare_elements(&type, r, m, allowed, covered, 1, &one);
        compare_elements(&type, r, m, allowed, covered, 3, &several);
        ck_assert_int_eq(several.mismatches, differs + 1);
        ck_assert_int_eq(several.compared, MANY - 1);
        ck_assert_int_eq(several.uncovered, 1);
        ck_assert_double_eq(several.worst_fraction, 0.5);
        ck_assert_int_eq(several.first_mismatch, one.first_mismatch);
        ck_assert_double_eq(several.machine, one.machine);
        ck_assert_double_eq(several.allowed, one.allowed);
        ck_assert(several.has_allowance);
    }
    free(r);
    free(m);
    free(covered);
    free(allowed);
}
END_TEST

START_TEST(uncovered_elements_do_not_count)
{
    tensor_type type = type_of(DTYPE_I8);
    unsigned char r[24] = {0}, m[24] = {0}, covered[24];
    memset(covered, 1, sizeof covered);
    m[5] = 1;
    covered[5] = 0;
    compare_result result;
    compare_elements(&type, r, m, NULL, covered, 1, &result);
    ck_assert_int_eq(result.mismatches, 0);
    ck_assert_str_eq(compare_text("c", &type, &result, memory), "c: 23 values agree (1 not held by the output)");
    memset(covered, 0, sizeof covered);
    compare_elements(&type, r, m, NULL, covered, 1, &result);
    ck_assert_str_eq(compare_text("c", &type, &result, memory), "c: no values to compare (24 not held by the output)");
}
END_TEST

START_TEST(texts)
{
    tensor_type type = type_of(DTYPE_I32);
    compare_result result = {.compared = 24, .mismatches = 3, .first_mismatch = 23, .machine = -2147483648.0, .reference = 2147483647.0};
    ck_assert_str_eq(compare_text("out", &type, &result, memory),
                     "out: 3 of 24 values differ, first at M=3, N=5: machine -2147483648, reference 2147483647, must be "
                     "equal");
    type.dtype = DTYPE_BF16;
    result = (compare_result){.compared = 256, .mismatches = 3, .first_mismatch = 23, .machine = 1.25, .reference = 1.5, .allowed = 0.002};
    ck_assert_str_eq(compare_text("out", &type, &result, memory),
                     "out: 3 of 256 values differ, first at M=3, N=5: machine 1.25, reference 1.5, allowed 0.002");
    type.dtype = DTYPE_F32;
    result.machine = (double)0.1f;
    result.reference = (double)nextafterf(0.1f, 1);
    result.allowed = 1e-9;
    ck_assert_str_eq(compare_text("out", &type, &result, memory),
                     "out: 3 of 256 values differ, first at M=3, N=5: machine 0.1, reference 0.10000001, allowed 1e-09");
    result.machine = NAN;
    result.reference = -INFINITY;
    ck_assert_ptr_nonnull(strstr(compare_text("out", &type, &result, memory), "machine NaN, reference -infinity,"));
}
END_TEST

START_TEST(places)
{
    const int64_t shape[] = {2, 1, 1000000000000, 3};
    tensor_type type = {DTYPE_I8, 4, shape, NULL}, scalar = {DTYPE_I8, 0, NULL, NULL};
    ck_assert_str_eq(compare_place_text(&type, (1000000000000 + 999999999999) * 3 + 2, memory), "1, 0, 999999999999, 2");
    ck_assert_str_eq(compare_place_text(&scalar, 0, memory), "its only element");
    compare_result result;
    compare_elements(&scalar, (const unsigned char *)"\1", (const unsigned char *)"\2", NULL, NULL, 1, &result);
    ck_assert_str_eq(compare_text("s", &scalar, &result, memory),
                     "s: 1 of 1 values differ, first at its only element: machine 2, reference 1, must be equal");
}
END_TEST

/* Programs end with the status of a mismatch only where nothing else went wrong, in any order. */
START_TEST(mismatches_and_other_faults)
{
    static const struct {
        diag_id ids[3];
        int count;
        bool found;
    } cases[] = {
        {{E_CHECK_MISMATCH}, 1, true},
        {{E_RUN_UNDEFINED}, 1, true},
        {{E_RUN_UNDEFINED, E_CHECK_MISMATCH}, 2, true},
        {{E_FILE_READ}, 1, false},
        {{E_CHECK_MISMATCH, E_FILE_READ}, 2, false},
        {{E_FILE_READ, E_CHECK_MISMATCH}, 2, false},
        {{E_RUN_UNDEFINED, E_CHECK_MISMATCH, E_FILE_READ}, 3, false},
        {{E_CHECK_MISMATCH}, 0, false},
        {{W_DMA_PIECES, E_CHECK_MISMATCH}, 2, true},
        {{E_CHECK_MISMATCH, W_DMA_PIECES}, 2, true},
        {{W_DMA_PIECES}, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        diag_list diags;
        diag_list_init(&diags, memory);
        for (int k = 0; k < cases[i].count; k++)
            diag_add(&diags, cases[i].ids[k], SRC_NOWHERE, "number %d", k);
        ck_assert_msg(session_found_mismatch(&diags) == cases[i].found, "case %zu", i);
    }
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("outputs", setup, teardown);
    suite_tests(t, values);
    tcase_add_loop_test(t, every_type_finds_one_change, 0, DTYPE_COUNT);
    suite_tests(t, worst_fraction_of_agreeing_elements, nothing_compared, threads_compare_the_same, uncovered_elements_do_not_count, texts,
                places, mismatches_and_other_faults);
    return suite_status("compare", t);
}
