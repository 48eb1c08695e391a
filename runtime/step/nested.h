/* A whole stream as a nested list, which has no stops and no time.
 *
 * The one idea: a list of lists is written flat, as the sizes of its groups, dimension by dimension, and its values in order. D_a, the
 * outermost dimension, is one group; D_i has a group for each item of D_i+1. What follows from tokens alone is read so: a dimension that
 * has others inside and outside of it and is empty has one empty group (docs/step.md, "Shapes"). Used by the judge (runtime/step/judge.h),
 * which shares nothing with the operators of the simulator. */
#ifndef VISA_RUNTIME_STEP_NESTED_H
#define VISA_RUNTIME_STEP_NESTED_H

#include "runtime/step/value.h"

typedef struct nested nested;

/* A number is known up to an error: it is `x`, or not further away than `error`. */
typedef struct nested_value {
    step_kind kind;
    union {
        struct {
            int64_t rows, columns, valid;
            const float *exact; /* numbers without an error; else NULL */
            const double *x, *error;
            const uint64_t *same; /* names of numbers of other tiles (mathematics_name), 0: none; NULL: all are its own */
        } tile;
        struct {
            uint32_t count;
            const uint32_t *picks;
        } selector;
        struct {
            const struct nested_value *first, *second;
        } pair;
        const nested *buffer;
        bool flag;
        int64_t address;
    };
} nested_value;

typedef struct nested_sizes {
    int64_t *of; /* by group */
    size_t count, capacity;
} nested_sizes;

struct nested {
    arena *arena;
    uint32_t rank;
    nested_sizes dims[STEP_RANK_MAX + 2]; /* D_0 first; D_rank has one group */
    const nested_value **values;
    size_t count, capacity;
};

nested *nested_new(uint32_t rank, arena *a);
void nested_push(nested *s, const nested_value *v);
void nested_size(nested *s, uint32_t dim, int64_t size); /* the next group of that dimension */
/* Empty groups with others inside and outside of them. */
void nested_settle(nested *s);
/* Takes over the sizes of D_from .. D_rank as D_to .. */
void nested_copy_sizes(nested *to, uint32_t at, const nested *from, uint32_t first);

/* Of each group of D_0 .. D_b-1, so of each item of D_b, the number of values; for b = 0 ones. */
nested_sizes nested_values_of_items(const nested *s, uint32_t b);
/* Of each group of D_high the number of items of D_low; low <= high. */
nested_sizes nested_items_of_groups(const nested *s, uint32_t low, uint32_t high);

/* Items of D_b one after the other. */
typedef struct nested_items {
    const nested *of;
    uint32_t b;
    size_t at[STEP_RANK_MAX + 2], value; /* groups and values that were taken */
} nested_items;
nested_items nested_items_begin(const nested *s, uint32_t b);
bool nested_items_left(const nested_items *i);
/* The next item is added to `to` as one of D_b there; NULL: it is left out. Returns the number of its values. */
int64_t nested_items_move(nested_items *i, nested *to);

/* What a source sends and a sink takes; `part`: the content of a buffer, which has no stop at its end. */
nested *nested_of_tokens(const step_token *tokens, size_t count, uint32_t rank, bool part, arena *a);

#endif
