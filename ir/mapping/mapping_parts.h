/* What the files of the mapping algebra (ir/mapping/mapping.h) share; nobody else but their test includes this. */
#ifndef VISA_IR_MAPPING_MAPPING_PARTS_H
#define VISA_IR_MAPPING_MAPPING_PARTS_H

#include "ir/mapping/mapping.h"
#include "support/integer.h"

/* ---- interning (mapping_intern.c) ---- */

enum { FIRST_BUCKETS = 32 };

struct mapping_context {
    arena *arena;
    size_t axis_count;
    struct interned **buckets; /* axes and mappings; `first`, until there are more of them than it has buckets */
    size_t bucket_count, interned_count;
    struct interned *latest; /* all of them, the latest first */
    struct interned *first[FIRST_BUCKETS];
};

/* The one mapping with these factors, which are in normal form. The sizes have been checked: the product of the extents is at most
 * MAPPING_MAX_SIZE. */
const mapping *mapping_intern(mapping_context *c, const factor *f, size_t count);
bool factor_equal(const factor *a, const factor *b);
/* The axis that is like this one, whatever its number; NULL: none. */
const axis *axis_find(const mapping_context *c, const axis *like);
/* One that is like no other, with the next number. */
const axis *axis_add(mapping_context *c, axis a);

/* ---- the normal form (mapping_normal.c) ---- */

/* Positions of neighbouring factors together. */
int64_t factors_size(const factor *f, size_t count);

enum { LOCAL_FACTORS = 16 };

/* Factors under construction, outermost first, in normal form at any time. */
typedef struct factor_list {
    mapping_context *context;
    factor *items; /* `local`, until there are more than it holds */
    size_t count, capacity;
    factor local[LOCAL_FACTORS];
} factor_list;

void factor_list_init(factor_list *l, mapping_context *c);
/* Appends any factor on the inner side; a composite whose range has changed is reduced again. */
void factor_list_push(factor_list *l, factor f);
void factor_list_append_all(factor_list *l, const factor *f, size_t count);
/* The factors where they outlive the list. */
const factor *factor_list_keep(const factor_list *l);
const mapping *factor_list_finish(const factor_list *l);

/* Composites. A composite stands for positions 0, w, 2w, ... of E where E's digits do not divide the cut. What can
 * be expressed in digits is taken out, so that composites that mean the same are the same:
 * - E keeps only what positions up to (live-1)*w reach, and no dead end;
 * - factors inside the step w are pinned to 0 and go;
 * - with w == 1 innermost factors whose extent divides both live and extent stand next to the composite;
 * - what then covers E exactly, up to padding of its outermost factor, dissolves. */
typedef struct composite {
    const factor *f; /* E, outermost first */
    size_t count;
    factor outermost; /* replaces f[0] */
    int64_t weight, live, extent;
    pad_kind pad;
} composite;

void factor_list_push_composite(factor_list *l, composite k);

/* ---- equality (mapping_equal.c) ---- */

/* Between positions i and i + window - 1 the index at j + period is that at j plus a constant. */
typedef struct mapping_stretch {
    int64_t period, window;
} mapping_stretch;

enum { MAPPING_MAX_STRETCHES = 64 };

/* Stretches that begin at position i, each longer than its period; returns how many. */
size_t mapping_stretches(mapping_context *c, const mapping *m, int64_t i, mapping_stretch *out);

/* Do the two agree at every position? By stretches only, also where their factors would decide. *steps: how many may be taken; how many are
 * left, negative where it was not decided. */
bool mapping_agree(mapping_context *c, const mapping *a, const mapping *b, int64_t *steps);

#endif
