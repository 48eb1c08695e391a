/* What a test of values and diagnostics begins with: memory, and a list that takes what is diagnosed. */
#ifndef VISA_TEST_FIXTURE_H
#define VISA_TEST_FIXTURE_H

#include "support/diag.h"
#include "test/suite.h"

static arena *memory;
static diag_list diags;

static void setup(void)
{
    memory = arena_new();
    diag_list_init(&diags, memory);
}

static void teardown(void)
{
    arena_free(memory);
}

#endif
