/* What fuzzers feed: one function for each target, which takes any bytes, never crashes and always returns 0.
 * A program of libFuzzer calls one of them (entry.c); the suite gives them the committed corpora again
 * (replay.c). */
#ifndef VISA_TEST_FUZZ_H
#define VISA_TEST_FUZZ_H

#include <stddef.h>

/* Steps of work that an input may take: a hundredth of what a user has, so that one that is slow does work that nobody counts. */
enum { FUZZ_STEPS = 2000000 };

int fuzz_source(const unsigned char *data, size_t size);
int fuzz_binary(const unsigned char *data, size_t size);
int fuzz_tensor(const unsigned char *data, size_t size);
int fuzz_editor(const unsigned char *data, size_t size);
int fuzz_lsp(const unsigned char *data, size_t size);
int fuzz_session(const unsigned char *data, size_t size);
int fuzz_step(const unsigned char *data, size_t size);

#endif
