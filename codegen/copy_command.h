/* Copies of the DMA, plain or by index, as one thing: what moves from where to where.
 *
 * The one idea: whoever counts bytes, requests or pieces need not know by which command they are moved. */
#ifndef VISA_CODEGEN_COPY_COMMAND_H
#define VISA_CODEGEN_COPY_COMMAND_H

#include "codegen/command.h"

enum { COPY_HBM = 0, COPY_DM = 1, COPY_NONE = 2 /* zeros */, COPY_HBM_WIDE = 2 /* of a list: elements of 64 bits */, COPY_MAX_ENTRIES = 8 };

typedef struct copy_side {
    int64_t memory; /* COPY_HBM .. */
    int64_t base;   /* bytes of the DMA address space */
    int64_t stride[COPY_MAX_ENTRIES];
    bool moved; /* by an element of the list */
} copy_side;

typedef struct copy_command {
    copy_side source, destination;
    int64_t packet_bytes, size[COPY_MAX_ENTRIES];
    unsigned count; /* loops, outermost first */
    bool by_index;
    copy_side list;                  /* where by_index: its elements are i32 */
    int64_t unit, positions, stride; /* of an element for one position; that exist; bytes of one position */
    bool wide;                       /* elements of the list are 64 bits */
    bool counted;                    /* only a front of the list: the i32 at front.base is the number of its elements */
    copy_side front;
    int64_t first; /* number in the list of the element at list.base */
} copy_command;

static inline bool command_is_copy(const command *c)
{
    return c->op == OP_DMA || c->op == OP_DMA_INDIRECT;
}

copy_command copy_command_read(const command *c);

/* The number, in its list, of the element at an address; `window`: bytes of the address space of one chip. */
static inline int64_t copy_list_number(const copy_command *k, int64_t address, int64_t window)
{
    enum { LIST_ELEMENT = 4 };
    return k->first + (address % window - k->list.base % window) / LIST_ELEMENT;
}

#endif
