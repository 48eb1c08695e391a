/* Pieces of work, the memory that each touches, and for how long a memory is needed.
 *
 * The one idea: what a context does without a break, a chain from its first stage to its last or a copy, is one piece of work. What it
 * reads and writes are the memories among the operands of its operations and the memory that its last one makes; nothing else orders it
 * against other work (docs/timing.md, When a command runs). A memory is live from the work that first touches it to the work that last
 * does. */
#ifndef VISA_IR_WORK_H
#define VISA_IR_WORK_H

#include "ir/kernel.h"

/* Bytes [begin, end) of one unit's memory: a chip's HBM, a slice's DM or TRF. */
typedef struct memory_access {
    const op *memory; /* whose they are (op_memory) */
    tensor_kind kind; /* TENSOR_HBM, TENSOR_DM, TENSOR_TRF */
    int64_t begin, end;
    bool write;
} memory_access;

typedef struct work {
    const op *first, *last; /* of its operations; the same one for a copy */
    context context;
    memory_access *accesses;
    size_t access_count, access_capacity;
} work;

/* Does the operation end a piece of work: a chain, or a copy that has its commands? */
bool op_ends_work(const op *o);
/* The work that ends with it. The accesses live in the arena. */
void work_make(const target *t, const op *last, arena *a, work *out);

#endif
