/* isl's judgement of one derived pair: does the walk of the entries have the addresses that the mappings mean?
 *
 * The access relation is "stream position to index to buffer position", built from the definition of each constructor
 * (test/mapping/isl_mapping.h); the walk is the mixed-radix relation of the entries. A pair is right when
 *   - every live stream position has an address in the access relation (else it had to be refused),
 *   - the walk's address of every live position is one of those of the access relation,
 *   - a write's dead positions reach no live cell, no position leaves the buffer, and every live cell is written.
 * isl decides this for all positions at once; where that takes it too long, it is asked for a few positions. */
#ifndef VISA_TEST_MAPPING_ISL_PAIR_H
#define VISA_TEST_MAPPING_ISL_PAIR_H

#include <stdbool.h>
#include <stddef.h>

#include "include/visa.h"
#include "test/mapping/isl_mapping.h"

enum { ISL_PAIR_SAMPLES = 12 };

typedef struct isl_pair {
    const char *buffer, *time, *packet;
    bool write;
} isl_pair;

typedef enum isl_pair_verdict { ISL_PAIR_RIGHT, ISL_PAIR_RIGHT_AT_SAMPLES, ISL_PAIR_UNDECIDED, ISL_PAIR_WRONG } isl_pair_verdict;

/* The context of the axes must go on after errors (isl_options_set_on_error). *fault: what is wrong, or NULL. */
isl_pair_verdict isl_pair_judge(const isl_axes *axes, const isl_pair *p, const visa_entry *entries, size_t count, const char **fault);

#endif
