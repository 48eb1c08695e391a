/* A memory whose elements are values of the field.
 *
 * The one idea: a cell is four bits, the smallest element; it holds the value of the element that was written
 * there, the type with which it was written and which part of the element it is. An element that is read as
 * it was written is that value. Anything else (another type, another offset, parts of several elements) is an
 * uninterpreted function of the cells, and of a cell that nobody wrote a fresh unknown. Pages of one type
 * keep a value for each element, others one for each cell; memories that hold the same page share it. */
#ifndef VISA_RUNTIME_FIELD_MEMORY_H
#define VISA_RUNTIME_FIELD_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>

#include "runtime/field/value.h"
#include "target/target.h"

enum { FIELD_CELL_BITS = 4 };

typedef struct field_cell {
    field_value value;
    dtype type;
    unsigned char part; /* of the element, in cells */
    bool written;
} field_cell;

/* Where unknowns come from: each differs from all others. */
typedef struct field_unknowns {
    uint64_t seed, key, count;
} field_unknowns;
field_value field_unknown(field_unknowns *u);

/* A cell that is zero in whatever type it is read. */
field_cell field_cell_zero(void);

/* What is read as an element of `type` where these cells are; as many as it has. */
field_value field_cells_read(const field_cell *cells, dtype type, field_unknowns *u);

typedef struct field_budget {
    int64_t limit_bytes; /* 0: none */
    _Atomic int64_t used_bytes;
} field_budget;

typedef struct field_page field_page;

typedef struct field_memory {
    int64_t bits;
    field_page ***chunks; /* NULL until the first touch */
    int64_t touched_to;   /* chunks from here on are NULL */
    field_budget *budget;
} field_memory;

void field_memory_init(field_memory *m, int64_t bits, field_budget *budget);
void field_memory_free(field_memory *m);

/* Elements side by side from a bit address on, a multiple of FIELD_CELL_BITS, inside the memory. False: no
 * memory left. */
bool field_memory_write(field_memory *m, int64_t bit, dtype type, int64_t count, const field_value *values);
/* Elements of an input (field_input_at) from number `first` on, which are made when they are read: most are read once or twice, and take
 * eight bytes each where they are kept. */
bool field_memory_give(field_memory *m, int64_t bit, dtype type, int64_t count, uint64_t key, uint64_t first);
/* Elements `stride` elements apart. */
void field_memory_read(const field_memory *m, int64_t bit, dtype type, int64_t stride, int64_t count, field_value *out, field_unknowns *u);
/* Bits that do not overlap, with their types. False: no memory left. */
bool field_memory_copy(field_memory *to, int64_t to_bit, const field_memory *from, int64_t from_bit, int64_t bits);
/* Elements that were written there become zeros of their types. False: no memory left. */
bool field_memory_clear(field_memory *m, int64_t bit, int64_t bits);
/* Pages with these bits of another memory, as long as that does not write into them. False: no memory left. */
bool field_memory_keep(field_memory *m, const field_memory *of, int64_t bit, int64_t bits);
/* Do they share all pages with these bits, so that nothing there can differ? */
bool field_memory_same(const field_memory *a, const field_memory *b, int64_t bit, int64_t bits);
/* Zeros of whatever type they are read in. False: no memory left. */
bool field_memory_zero(field_memory *m, int64_t bit, int64_t bits);

#endif
