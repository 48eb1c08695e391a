/* What every libcheck program ends with. */
#ifndef VISA_TEST_SUITE_H
#define VISA_TEST_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

/* libcheck notes the place of each assertion that holds with a system call, which in loops over cells took most of the time. All that is
 * missing is the place before a crash, which a sanitizer reports better. */
#ifndef _mark_point
#define _mark_point(file, line) ((void)0)
#endif

/* Sanitizers make each round several times as dear. What differs by chance alone is drawn in full in the other build: there samples are so
 * many times smaller. LONGER: how many times as large they are in the long form (VISA_LONG), which has to end within the hour, both builds.
 */
#ifdef __SANITIZE_ADDRESS__
enum { SLOWER = 5, FEWER = 15, LONGER = 3 };
#else
enum { SLOWER = 1, FEWER = 1, LONGER = 8 };
#endif

static inline bool suite_is_long(void)
{
    const char *text = getenv("VISA_LONG");
    return text && *text;
}

/* How often a law is tried, `few` times in the short form. */
static inline int suite_rounds(int few)
{
    int some = few * (suite_is_long() ? LONGER : 1) / FEWER;
    return some ? some : 1;
}

/* A loop's step, every `step`-th in the short form. */
static inline int suite_step(int step)
{
    int some = step * FEWER / (suite_is_long() ? LONGER : 1);
    return some ? some : 1;
}

/* A case whose time limit, in seconds, is against hanging only: a busy machine, and one with sanitizers, is given its time. */
static inline TCase *suite_case(const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 1800);
    return t;
}

/* A case of which each test begins with `before` and ends with `after`. */
static inline TCase *suite_case_with(const char *name, SFun before, SFun after)
{
    TCase *t = suite_case(name);
    tcase_add_checked_fixture(t, before, after);
    return t;
}

/* Adds tests to a case: suite_tests(t, one, another). */
#define suite_tests(t, ...) suite_add_tests(t, (const TTest *const[]){__VA_ARGS__, NULL})
static inline void suite_add_tests(TCase *t, const TTest *const *tests)
{
    while (*tests)
        tcase_add_test(t, *tests++);
}

/* The status of a suite of one case of that name with a fixture: suite_of("name", before, after, one, another). */
#define suite_of(name, before, after, ...) suite_run_one((name), (before), (after), (const TTest *const[]){__VA_ARGS__, NULL})

/* Runs the cases as a suite of that name, as loudly as CK_VERBOSITY says: suite_status("name", one, another); the exit status. */
#define suite_status(name, ...) suite_run(name, (TCase *const[]){__VA_ARGS__, NULL})
static inline int suite_run(const char *name, TCase *const *cases)
{
    Suite *s = suite_create(name);
    while (*cases)
        suite_add_tcase(s, *cases++);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run_one(const char *name, SFun before, SFun after, const TTest *const *tests)
{
    TCase *t = suite_case_with(name, before, after);
    suite_add_tests(t, tests);
    return suite_status(name, t);
}

#endif
