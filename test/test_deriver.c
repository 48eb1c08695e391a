/* include/visa.h, pairs of mappings: what a caller without a program is told. Commit has words of its own for what a write
 * refuses, so these rules are heard here. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"

static visa_deriver *deriver(void)
{
    static const struct { const char *name; int64_t size; } axes[] = {{"A", 4}, {"B", 8}, {"C", 3}, {"Huge", (int64_t)1 << 32}};
    visa_deriver *d = visa_deriver_new(NULL);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        ck_assert(visa_deriver_axis(d, axes[i].name, axes[i].size));
    return d;
}

typedef struct refusal {
    visa_access access;
    const char *buffer, *time, *packet, *error;
} refusal;

static const refusal refusals[] = {
    {VISA_WRITE, "A, B", "A, C", "B",
     "E-SEQ-WRITE-BCAST: `C` of the stream has no place in the destination: one cell would receive several values\n"
     "note: buffer m![A, B]; stream time m![A, C], packet m![B]\n"
     "note: entries so far (term, size : stride in elements, outermost first): A 4 : 8\n"
     "help: declare the destination with exactly the stream's digits and padding"},
    {VISA_WRITE, "A, B", "A / 2", "B",
     "E-SEQ-UNWRITTEN: `A` of the destination is not written completely\n"
     "note: buffer m![A, B]; stream time m![A / 2], packet m![B]\n"
     "note: entries so far (term, size : stride in elements, outermost first): A / 2 2 : 16, B 8 : 1\n"
     "help: declare the destination with exactly the stream's digits and padding"},
    {VISA_WRITE, "A, B", "A", "B # 16",
     "E-SEQ-WRITE-OOB: padding of the stream would be written over live cells or outside the tensor, at `B`\n"
     "note: buffer m![A, B]; stream time m![A], packet m![B # 16]\n"
     "note: entries so far (term, size : stride in elements, outermost first): A 4 : 8, B # 16 16 : 1\n"
     "help: declare the destination with exactly the stream's digits and padding"},
    {VISA_READ, "A, Huge", "A", "B",
     "E-SEQ-STRIDE: `A` needs a stride of 4294967296 elements, beyond the signed 32-bit field\n"
     "note: buffer m![A, Huge]; stream time m![A], packet m![B]\n"
     "note: entries so far (term, size : stride in elements, outermost first): A 4 : 4294967296, B 8 : 0\n"
     "help: keep it within 2147483647 elements: cut the buffer into smaller tensors"},
};

START_TEST(refusals_are_explained)
{
    const refusal *r = &refusals[_i];
    visa_deriver *d = deriver();
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    ck_assert(!visa_derive(d, r->buffer, r->time, r->packet, r->access, entries, &count));
    ck_assert_str_eq(visa_deriver_error(d), r->error);
    visa_deriver_free(d);
}
END_TEST

/* The help line, applied. */
START_TEST(what_they_advise_is_accepted)
{
    visa_deriver *d = deriver();
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    ck_assert(visa_derive(d, "A, C, B", "A, C", "B", VISA_WRITE, entries, &count));
    ck_assert(visa_derive(d, "A / 2, B", "A / 2", "B", VISA_WRITE, entries, &count));
    ck_assert(visa_derive(d, "A, B # 16", "A", "B # 16", VISA_WRITE, entries, &count));
    ck_assert(visa_derive(d, "A, Huge = 1024", "A", "B", VISA_READ, entries, &count));
    ck_assert_str_eq(visa_deriver_error(d), "");
    visa_deriver_free(d);
}
END_TEST

START_TEST(mappings_are_read)
{
    visa_deriver *d = deriver();
    int64_t size;
    const char *text;
    bool equal;
    ck_assert(visa_mapping(d, "A / 2, A % 2, [B, C] # 32", &size, &text));
    ck_assert_int_eq(size, 128);
    ck_assert_str_eq(text, "A, [B, C] # 32");
    ck_assert(visa_map(d, "A, B # 16", 37, &text));
    ck_assert_str_eq(text, "A:2 B:5");
    ck_assert(visa_map(d, "A, B # 16", 40, &text));
    ck_assert_ptr_null(text);
    ck_assert(visa_equal(d, "B / 2, B % 2", "B", &equal) && equal);
    ck_assert(visa_equal(d, "B % 2, B / 2", "B", &equal) && !equal);
    ck_assert(!visa_mapping(d, "A / 3", &size, &text));
    ck_assert_ptr_nonnull(strstr(visa_deriver_error(d), "E-STRIDE-DIV"));
    visa_deriver_free(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deriver");
    TCase *cases = tcase_create("pairs");
    tcase_add_loop_test(cases, refusals_are_explained, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(cases, what_they_advise_is_accepted);
    tcase_add_test(cases, mappings_are_read);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
