/* The reductions of the Vector Engine's passes. */
#ifndef VISA_PASSES_ENGINE_VECTOR_REDUCE_H
#define VISA_PASSES_ENGINE_VECTOR_REDUCE_H

#include "passes/pass.h"

/* IR_VECTOR_REDUCE: what it leaves, its loops and slots, and which lanes of it count. */
void vector_reduce_one(pass_context *p, kernel *k, op *o);

/* IR_VECTOR_SLICES (vector_slices.c): its groups, and where its results go. */
void vector_slices_one(pass_context *p, kernel *k, op *o);
/* IR_VECTOR_TAG: is it the only block inside slices of its pass? */
void vector_tag_blocks(pass_context *p, kernel *k, op *o);

/* Which positions of Time, in packets of 4, are reduced over. */
enum { REDUCED_MOST_FACTORS = 64 };
typedef struct reduced_digits {
    int64_t kept[REDUCED_MOST_FACTORS]; /* by factor of Time: so many of its positions stay, the inner ones; the label's: 1 */
    bool packet;                        /* the label's digits of Packet */
} reduced_digits;

/* Are the packets of 4 that it takes halves of flits? Else their back halves were cut off. */
bool vector_reduce_splits(const op *o);

/* The Valid Count Generator's part (vector_count.c): leaves padding out of what is reduced, or refuses. */
void vector_count_derive(pass_context *p, kernel *k, op *o, const reduced_digits *reduced);

#endif
