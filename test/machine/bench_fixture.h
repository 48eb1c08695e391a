/* The fixture of tests of the machine: one bench for each, empty at its beginning. */
#ifndef VISA_TEST_MACHINE_BENCH_FIXTURE_H
#define VISA_TEST_MACHINE_BENCH_FIXTURE_H

#include "test/machine/machine_bench.h"
#include "test/suite.h"

static bench b;

static void setup(void)
{
    bench_init(&b);
}

static void teardown(void)
{
    bench_free(&b);
}

/* An empty bench for the next kernel of the same test. */
static inline void bench_reset(void)
{
    teardown();
    setup();
}

#endif
