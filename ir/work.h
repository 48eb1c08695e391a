/* Pieces of work, the memory that each touches, and for how long a memory is needed.
 *
 * The one idea: what a context does without a break, a chain from its first stage to its last or a copy, is one piece of work. What it
 * reads and writes are the memories among the operands of its operations and the memory that its last one makes; nothing else orders it
 * against other work (docs/timing.md, When a command runs). A memory is live from the work that first touches it to the work that last
 * does; what a pass sets aside takes bytes of the VRF in that pass alone. */
#ifndef VISA_IR_WORK_H
#define VISA_IR_WORK_H

#include "ir/kernel.h"

/* Bytes [begin, end) of one unit's memory: a chip's HBM, a slice's DM, TRF or VRF, a PE's SPM. */
typedef struct memory_access {
    const op *memory; /* whose they are (op_memory), or the stash that takes them */
    tensor_kind kind; /* a memory */
    int64_t begin, end;
    bool write;
} memory_access;

typedef struct work {
    const op *first, *last; /* of its operations; the same one for a copy */
    context context;
    memory_access *accesses;
    size_t access_count, access_capacity;
} work;

enum {
    TENSOR_MEMORY_COUNT = 0
#define MEMORY(symbol) +1
#include "ir/tensor.def"
};
extern const tensor_kind tensor_memories[TENSOR_MEMORY_COUNT];
bool tensor_kind_is_memory(tensor_kind kind);
/* Does it lie at an address, in bytes? The TRF is given by its halves. */
bool tensor_kind_has_address(tensor_kind kind);
/* Does it make memory of its own: no view, no other name, nothing that is written into what is there? */
bool op_makes_memory(const op *o);
/* Does the operation end a piece of work: a chain, or is it a copy? */
bool op_ends_work(const op *o);
/* The last operation of each piece of work, in the order of issue: the kernel's, where it has one, or the text's. Returns how many. */
size_t kernel_works(const kernel *k, arena *a, const op *const **out);
/* The context of the work that ends with it. */
context work_context(const op *last);
/* The work that ends with it. The accesses live in the arena. */
void work_make(const target *t, const op *last, arena *a, work *out);

/* All of a kernel, in the order of issue, with the addresses that its memories have when it is made. */
typedef struct work_list {
    const work *items;
    size_t count;
} work_list;
work_list kernel_work_list(const target *t, const kernel *k, arena *a);

/* The last operation of the work that this one is pinned after (`#[after(..)]`); NULL: none. */
const op *work_pin(const work *w);

/* Pieces of work from the first to the last that a memory is needed by, numbers in the order of issue. Ports that come in are needed from
 * the first to the last of all, what is returned to the last. */
typedef struct live_range {
    uint32_t first, last;
    const op *first_use, *last_use; /* operations of those; the memory's own where nothing touches it */
} live_range;

/* By the index of the operation that makes the memory (op_memory). *work_count: pieces of work. */
const live_range *kernel_live_ranges(const kernel *k, arena *a, uint32_t *work_count);

#endif
