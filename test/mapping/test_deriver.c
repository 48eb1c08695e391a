/* include/visa.h, pairs of mappings: what a caller without a program is told. Commit has words of its own for what a write
 * refuses, so these rules are heard here. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"
#include "test/suite.h"

static visa_deriver *deriver(void)
{
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"A", 4}, {"B", 8}, {"C", 3}, {"Huge", (int64_t)1 << 32}};
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

/* Texts of the i-th of some thousands of pairs: blanks and sizes make them differ. */
static void texts_of(int i, char *buffer, char *time, char *packet)
{
    static const int cuts[] = {1, 2, 4, 8};
    int cut = cuts[i / 7 % 4];
    snprintf(buffer, 128, "%*sA, [B, C] # %d, A = %d", i % 40, "", 24 + i % 50, 1 + i % 4);
    snprintf(time, 128, "B / %d, A%*s", cut, i / 11 % 30, "");
    snprintf(packet, 128, "B %% %d, C # %d", cut, 3 + i % 91);
}

/* What a deriver remembers changes no answer: one that has read thousands of texts, one that reads its first, refusals too. */
START_TEST(what_was_read_before_changes_nothing)
{
    enum { ALL = 6000 };
    visa_deriver *old = deriver();
    char buffer[128], time[128], packet[128];
    int derived = 0;
    for (int i = 0; i < ALL; i++) {
        int which = i % 3 == 2 ? i / 2 : i; /* some come again */
        visa_entry entries[VISA_MAX_ENTRIES], fresh_entries[VISA_MAX_ENTRIES];
        size_t count = 0, fresh_count = 0;
        texts_of(which, buffer, time, packet);
        bool done = visa_derive(old, buffer, time, packet, VISA_READ, entries, &count);
        derived += done;
        if (i % 16 != 0)
            continue;
        visa_deriver *fresh = deriver();
        ck_assert_int_eq(visa_derive(fresh, buffer, time, packet, VISA_READ, fresh_entries, &fresh_count), done);
        ck_assert_str_eq(visa_deriver_error(fresh), visa_deriver_error(old));
        ck_assert_uint_eq(fresh_count, count);
        ck_assert_mem_eq(fresh_entries, entries, count * sizeof *entries);
        visa_deriver_free(fresh);
    }
    ck_assert_int_gt(derived, ALL / 4);
    ck_assert_int_lt(derived, ALL);
    visa_deriver_free(old);
}
END_TEST

/* The same text over an axis of another size is another mapping. */
START_TEST(an_axis_that_changes_is_read_anew)
{
    visa_deriver *d = deriver();
    int64_t size;
    const char *text;
    ck_assert(visa_mapping(d, "A, B", &size, &text) && size == 32);
    ck_assert(visa_deriver_axis(d, "B", 10));
    ck_assert(visa_mapping(d, "A, B", &size, &text) && size == 40);
    visa_deriver_clear(d);
    ck_assert(!visa_mapping(d, "A, B", &size, &text));
    ck_assert(visa_deriver_axis(d, "A", 2) && visa_deriver_axis(d, "B", 3));
    ck_assert(visa_mapping(d, "A, B", &size, &text) && size == 6);
    visa_deriver_free(d);
}
END_TEST

/* A call that costs too much says so, and takes nothing from the next one. */
START_TEST(work_is_bounded)
{
    enum { TERMS = 2000, NESTED = 300, STEPS = 2000 };
    visa_deriver *d = deriver();
    visa_entry entries[VISA_MAX_ENTRIES];
    char wide[8 * TERMS] = "A", deep[4 * NESTED] = "";
    size_t count;
    int64_t size;
    const char *text;
    bool equal;
    for (int i = 0; i < TERMS; i++)
        strcat(wide, ", B");
    for (int i = 0; i < NESTED; i++)
        strcat(deep, "[");
    strcat(deep, "A");
    for (int i = 0; i < NESTED; i++)
        strcat(deep, "]");
    visa_deriver_limit(d, STEPS);
    for (int question = 0; question < 4; question++) {
        bool done = question == 0   ? visa_derive(d, wide, "A", "B", VISA_READ, entries, &count)
                    : question == 1 ? visa_mapping(d, wide, &size, &text)
                    : question == 2 ? visa_map(d, wide, 0, &text)
                                    : visa_equal(d, wide, "A", &equal);
        ck_assert(!done);
        ck_assert_msg(strncmp(visa_deriver_error(d), "E-BUDGET", 8) == 0, "%s", visa_deriver_error(d));
        ck_assert(visa_derive(d, "A, B", "A", "B", VISA_READ, entries, &count));
    }
    ck_assert(!visa_mapping(d, deep, &size, &text));
    ck_assert_msg(strncmp(visa_deriver_error(d), "E-NESTING", 9) == 0, "%s", visa_deriver_error(d));
    ck_assert(!visa_mapping(d, wide, &size, &text));
    visa_deriver_clear(d);
    ck_assert(visa_deriver_axis(d, "A", 4) && visa_mapping(d, "A", &size, &text) && size == 4);
    visa_deriver_free(d);
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("pairs");
    tcase_add_loop_test(cases, refusals_are_explained, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_tests(cases, what_they_advise_is_accepted, mappings_are_read, what_was_read_before_changes_nothing,
                an_axis_that_changes_is_read_anew, work_is_bounded);
    return suite_status("deriver", cases);
}
