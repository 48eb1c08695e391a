/* include/visa.h, pairs of mappings: what a caller without a program is told. Commit has words of its own for what a write
 * refuses, so these rules are heard here. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"
#include "test/suite.h"

static visa_deriver *new_deriver(void)
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

static visa_deriver *deriver; /* of each test */
static visa_entry entries[VISA_MAX_ENTRIES];
static size_t count;

static void setup(void)
{
    deriver = new_deriver();
}

static void teardown(void)
{
    visa_deriver_free(deriver);
}

/* Texts of mappings: the first as the deriver writes it, and its size. */
static bool has_size(const char *mapping, int64_t size, const char *written)
{
    int64_t found;
    const char *text;
    return visa_mapping(deriver, mapping, &found, &text) && found == size && (!written || strcmp(text, written) == 0);
}

typedef struct refusal {
    visa_access access;
    const char *buffer, *time, *packet, *fault, *entries;
} refusal;

static const refusal refusals[] = {
    {VISA_WRITE, "A, B", "A, C", "B",
     "E-SEQ-WRITE-BCAST: `C` of the stream has no place in the destination: one cell would receive several values", "A 4 : 8"},
    {VISA_WRITE, "A, B", "A / 2", "B", "E-SEQ-UNWRITTEN: `A` of the destination is not written completely", "A / 2 2 : 16, B 8 : 1"},
    {VISA_WRITE, "A, B", "A", "B # 16",
     "E-SEQ-WRITE-OOB: padding of the stream would be written over live cells or outside the tensor, at `B`", "A 4 : 8, B # 16 16 : 1"},
    {VISA_READ, "A, Huge", "A", "B", "E-SEQ-STRIDE: `A` needs a stride of 4294967296 elements, beyond the signed 32-bit field",
     "A 4 : 4294967296, B 8 : 0"},
};
static const char *const helps[] = {
    [VISA_WRITE] = "declare the destination with exactly the stream's digits and padding",
    [VISA_READ] = "keep it within 2147483647 elements: cut the buffer into smaller tensors",
};

START_TEST(refusals_are_explained)
{
    const refusal *r = &refusals[_i];
    char wanted[1000];
    snprintf(wanted, sizeof wanted,
             "%s\n"
             "note: buffer m![%s]; stream time m![%s], packet m![%s]\n"
             "note: entries so far (term, size : stride in elements, outermost first): %s\n"
             "help: %s",
             r->fault, r->buffer, r->time, r->packet, r->entries, helps[r->access]);
    ck_assert(!visa_derive(deriver, r->buffer, r->time, r->packet, r->access, entries, &count));
    ck_assert_str_eq(visa_deriver_error(deriver), wanted);
}
END_TEST

/* The help line, applied. */
START_TEST(what_they_advise_is_accepted)
{
    ck_assert(visa_derive(deriver, "A, C, B", "A, C", "B", VISA_WRITE, entries, &count));
    ck_assert(visa_derive(deriver, "A / 2, B", "A / 2", "B", VISA_WRITE, entries, &count));
    ck_assert(visa_derive(deriver, "A, B # 16", "A", "B # 16", VISA_WRITE, entries, &count));
    ck_assert(visa_derive(deriver, "A, Huge = 1024", "A", "B", VISA_READ, entries, &count));
    ck_assert_str_eq(visa_deriver_error(deriver), "");
}
END_TEST

START_TEST(mappings_are_read)
{
    int64_t size;
    const char *text;
    bool equal;
    ck_assert(has_size("A / 2, A % 2, [B, C] # 32", 128, "A, [B, C] # 32"));
    ck_assert(visa_map(deriver, "A, B # 16", 37, &text));
    ck_assert_str_eq(text, "A:2 B:5");
    ck_assert(visa_map(deriver, "A, B # 16", 40, &text));
    ck_assert_ptr_null(text);
    ck_assert(visa_equal(deriver, "B / 2, B % 2", "B", &equal) && equal);
    ck_assert(visa_equal(deriver, "B % 2, B / 2", "B", &equal) && !equal);
    ck_assert(!visa_mapping(deriver, "A / 3", &size, &text));
    ck_assert_ptr_nonnull(strstr(visa_deriver_error(deriver), "E-STRIDE-DIV"));
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
    visa_deriver *old = deriver;
    char buffer[128], time[128], packet[128];
    int derived = 0;
    for (int i = 0; i < ALL; i++) {
        int which = i % 3 == 2 ? i / 2 : i; /* some come again */
        visa_entry fresh_entries[VISA_MAX_ENTRIES];
        size_t fresh_count = 0;
        count = 0;
        texts_of(which, buffer, time, packet);
        bool done = visa_derive(old, buffer, time, packet, VISA_READ, entries, &count);
        derived += done;
        if (i % 16 != 0)
            continue;
        visa_deriver *fresh = new_deriver();
        ck_assert_int_eq(visa_derive(fresh, buffer, time, packet, VISA_READ, fresh_entries, &fresh_count), done);
        ck_assert_str_eq(visa_deriver_error(fresh), visa_deriver_error(old));
        ck_assert_uint_eq(fresh_count, count);
        ck_assert_mem_eq(fresh_entries, entries, count * sizeof *entries);
        visa_deriver_free(fresh);
    }
    ck_assert_int_gt(derived, ALL / 4);
    ck_assert_int_lt(derived, ALL);
}
END_TEST

/* The same text over an axis of another size is another mapping. */
START_TEST(an_axis_that_changes_is_read_anew)
{
    int64_t size;
    const char *text;
    ck_assert(has_size("A, B", 32, NULL));
    ck_assert(visa_deriver_axis(deriver, "B", 10) && has_size("A, B", 40, NULL));
    visa_deriver_clear(deriver);
    ck_assert(!visa_mapping(deriver, "A, B", &size, &text));
    ck_assert(visa_deriver_axis(deriver, "A", 2) && visa_deriver_axis(deriver, "B", 3) && has_size("A, B", 6, NULL));
}
END_TEST

/* A call that costs too much says so, and takes nothing from the next one. */
START_TEST(work_is_bounded)
{
    enum { TERMS = 2000, NESTED = 300, STEPS = 2000 };
    char wide[8 * TERMS] = "A", deep[4 * NESTED] = "";
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
    visa_deriver_limit(deriver, STEPS);
    for (int question = 0; question < 4; question++) {
        bool done = question == 0   ? visa_derive(deriver, wide, "A", "B", VISA_READ, entries, &count)
                    : question == 1 ? visa_mapping(deriver, wide, &size, &text)
                    : question == 2 ? visa_map(deriver, wide, 0, &text)
                                    : visa_equal(deriver, wide, "A", &equal);
        ck_assert(!done);
        ck_assert_msg(strncmp(visa_deriver_error(deriver), "E-BUDGET", 8) == 0, "%s", visa_deriver_error(deriver));
        ck_assert(visa_derive(deriver, "A, B", "A", "B", VISA_READ, entries, &count));
    }
    ck_assert(!visa_mapping(deriver, deep, &size, &text));
    ck_assert_msg(strncmp(visa_deriver_error(deriver), "E-NESTING", 9) == 0, "%s", visa_deriver_error(deriver));
    ck_assert(!visa_mapping(deriver, wide, &size, &text));
    visa_deriver_clear(deriver);
    ck_assert(visa_deriver_axis(deriver, "A", 4) && has_size("A", 4, NULL));
}
END_TEST

int main(void)
{
    TCase *cases = suite_case_with("pairs", setup, teardown);
    tcase_add_loop_test(cases, refusals_are_explained, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_tests(cases, what_they_advise_is_accepted, mappings_are_read, what_was_read_before_changes_nothing,
                an_axis_that_changes_is_read_anew, work_is_bounded);
    return suite_status("deriver", cases);
}
