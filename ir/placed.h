/* What lies where, and for how long: the map of a kernel's memories, for those who place them and those who show them. */
#ifndef VISA_IR_PLACED_H
#define VISA_IR_PLACED_H

#include "ir/work.h"

/* "a slice's DM", and its bytes. */
const char *memory_name(tensor_kind kind);
int64_t memory_limit(const target *t, tensor_kind kind);

typedef struct placed_memory {
    const op *op;       /* that makes it */
    int64_t begin, end; /* bytes */
    live_range live;
} placed_memory;

/* All of one kind, by address, then by their first work. */
typedef struct placed_list {
    placed_memory *items;
    size_t count;
    uint32_t works;
    int64_t limit, peak, least; /* bytes: of the memory; one past the last used; live at once at most, so that no placement has less */
} placed_list;
placed_list placed_memories(const target *t, const kernel *k, tensor_kind kind, arena *a);

#endif
