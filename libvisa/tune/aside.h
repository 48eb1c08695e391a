/* An operand that lies turned, [summed, kept], and is turned once, aside, in front of the products that need it.
 *
 * The one idea: each slice takes a piece of it in runs of its kept axis, turns that and writes it back to HBM in flits of the sum, in the
 * order in which slices will take it: the copies of those that share it have long runs then, and none of them turns anything. */
#ifndef VISA_LIBVISA_TUNE_ASIDE_H
#define VISA_LIBVISA_TUNE_ASIDE_H

#include "libvisa/tune/question.h"

typedef struct aside {
    tune_role role;
    int64_t kept;  /* positions of the kept axis in a slice that turns them */
    int64_t sums;  /* elements of the sum that are turned at once: all, or a part of them */
    int64_t block; /* positions of the kept axis that follow each other in HBM then, all flits of the sum one after the other; at least what
                      makes a block of HBM with a flit of each */
} aside;

/* Slices of a cluster, clusters and elements of the sum in each. */
typedef struct aside_turners {
    int64_t clusters, of_sum, of_kept, sums;
} aside_turners;
aside_turners aside_turners_of(const target *t, const tune_question *q, const aside *x);

/* Can an operand be turned aside? The positions of its kept axis that a slice has then; 0: it cannot, or does not lie turned. */
int64_t aside_kept_of(const target *t, const tune_question *q, tune_role role);

/* The block for slices that take so many positions each, that follow each other. */
int64_t aside_block_of(const target *t, const tune_question *q, tune_role role, int64_t taken);

/* Elements of a flit. */
int64_t aside_flit_of(const target *t, const tune_question *q);

#endif
