/* What every libcheck program ends with. */
#ifndef VISA_TEST_SUITE_H
#define VISA_TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Sanitizers make each round several times as dear. What differs by chance alone is drawn in full in the other build. */
#ifdef __SANITIZE_ADDRESS__
enum { SLOWER = 5 };
#else
enum { SLOWER = 1 };
#endif

/* How often a law is tried: in the short form a sample, with VISA_LONG set all that was asked for. */
static inline int suite_rounds(int few, int thorough)
{
    const char *text = getenv("VISA_LONG");
    return text && *text ? thorough : few / SLOWER;
}

/* A case whose time limit, in seconds, is against hanging only: a busy machine, and one with sanitizers, is given its time. */
static inline TCase *suite_case(const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 1800);
    return t;
}

/* Runs the suite, as loudly as CK_VERBOSITY says, and frees it; the exit status. */
static inline int suite_status(Suite *s)
{
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
