/* Mapping expressions: what `m![...]` means, and the algebra on meanings.
 *
 * The one idea: a mapping is a function from positions 0 .. SIZE-1 to a tensor index or to nothing
 * ("Mapping Expressions", Semantics). It is held as a list of factors, outermost first, that reads a
 * position like a mixed-radix number: each factor turns its own digit into a coordinate. Mappings are built
 * only by the constructors below, which normalise; two mappings with the same factors are the same object, so that
 * for mappings that cut into digits pointer equality is equality of meaning, and how an expression was spelt is
 * forgotten. Only a mapping with a composite factor may have a twin; mapping_equal decides that too.
 *
 * Sizes are positions (elements), weights are coordinates of an axis. Everything is exact in 63 bits; a
 * product beyond 2^62 is MAPPING_TOO_LARGE. No operation ever walks positions, except where it says so. */
#ifndef VISA_IR_MAPPING_MAPPING_H
#define VISA_IR_MAPPING_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/strbuf.h"

#define MAPPING_MAX_SIZE ((int64_t)1 << 62)

typedef struct mapping mapping;
typedef struct window_term window_term;

/* A named axis; identity is (name, size), so that pointers compare.
 *
 * A sliding window `$(e1:n1, .., ed:nd)` is an axis as well, a derived one: its coordinate is the place in the window, sum
 * of nk * (position in ek). Several indices of its terms share a place ("Sliding window"), so the algebra does not turn a
 * place back into them: map() gives the window's own coordinate, and window_place says where an index of the terms is. */
typedef struct axis {
    const char *name;
    int64_t size;             /* elements */
    uint32_t number;          /* order of first use in its context */
    uint32_t term_count;      /* 0: a declared axis; else a window */
    const window_term *terms; /* by descending stride; digits of declared axes that do not overlap */
    int64_t first;            /* the place at which coordinate 0 stands; before it, and from place first + size on, the elements are zero */
    bool bordered;            /* there are such places */
    bool local;               /* its name is another's, or nobody's, in some part of the file */
} axis;

/* One digit of a window: coordinates weight * i of `of`, i < extent, stand at i * stride. */
struct window_term {
    const axis *of;
    int64_t weight, extent, stride;
};

/* What may be done with the dead positions of a factor ("Mapping Expressions", padding kinds). */
typedef enum pad_kind {
    PAD_TOP,    /* may be read, value arbitrary: plain `#` */
    PAD_ZERO,   /* zero when read, filled with zero when written: `#{0}` */
    PAD_BOTTOM, /* must be neither read nor written: `#{!}`, and outside a window that is written */
} pad_kind;

typedef enum factor_kind {
    FACTOR_AXIS,      /* coordinate of `axis` += digit * weight */
    FACTOR_BROADCAST, /* digit contributes nothing; live == 1 is a hole: only position 0 is live */
    FACTOR_COMPOSITE, /* index += map(inner, digit * weight); inner does not cut into digits here */
} factor_kind;

/* One digit of a position. The digit runs over 0 .. extent-1; at `live` and beyond it is dead. */
typedef struct factor {
    factor_kind kind;
    pad_kind pad;         /* of the positions live .. extent-1 */
    const axis *axis;     /* FACTOR_AXIS */
    const mapping *inner; /* FACTOR_COMPOSITE */
    int64_t weight, live, extent;
} factor;

struct mapping {
    int64_t size; /* positions: the product of the extents */
    uint32_t count;
    uint32_t depth;   /* of composites in it: 0, none */
    uint64_t parts;   /* composites in it and in those, each as often as it is met */
    factor factors[]; /* outermost first; no factor of extent 1; empty: the identity `1` */
};

/* Owns axes and mappings of one compilation. */
typedef struct mapping_context mapping_context;
mapping_context *mapping_context_new(arena *a);
arena *mapping_context_arena(mapping_context *c);
/* A point to go back to: mapping_context_rewind forgets every mapping, every axis that came later, and everything else in the arena
 * after the point. */
typedef struct mapping_mark {
    arena_mark arena;
    struct interned *latest, **buckets;
    size_t bucket_count, axis_count;
} mapping_mark;
mapping_mark mapping_context_mark(mapping_context *c);
void mapping_context_rewind(mapping_context *c, mapping_mark mark);

/* The axis with that name and size (size >= 1). */
const axis *mapping_axis(mapping_context *c, const char *name, int64_t size);
void mapping_axis_is_local(const axis *a);

typedef enum mapping_status {
    MAPPING_OK,
    MAPPING_NOT_DIVISIBLE, /* / and %: n does not divide SIZE */
    MAPPING_GROWS,         /* =: n above SIZE */
    MAPPING_SHRINKS,       /* #: n below SIZE */
    MAPPING_ZERO,          /* n is zero */
    MAPPING_TOO_LARGE,     /* SIZE beyond 2^62 */
    MAPPING_WINDOW_TERM,   /* $(): a term with padding, with a broadcast, or that does not cut into axis digits */
    MAPPING_WINDOW_TWICE,  /* $(): two terms count through the same coordinates */
    MAPPING_WINDOW_TERMS,  /* $(): more digits than WINDOW_MAX_TERMS */
    MAPPING_WINDOW_RANGE,  /* $( | from..to): not a part of the places */
} mapping_status;

/* The constructors of the language. On MAPPING_OK *out is the mapping; else *out is unchanged. */
const mapping *mapping_identity(mapping_context *c);
const mapping *mapping_symbol(mapping_context *c, const axis *a);
mapping_status mapping_broadcast(mapping_context *c, int64_t n, const mapping **out);
mapping_status mapping_pair(mapping_context *c, const mapping *outer, const mapping *inner, const mapping **out);
/* The pair of any number of parts, outermost first; of none: the identity. */
mapping_status mapping_concat(mapping_context *c, const mapping *const *parts, size_t count, const mapping **out);
mapping_status mapping_stride(mapping_context *c, const mapping *m, int64_t n, const mapping **out);
mapping_status mapping_modulo(mapping_context *c, const mapping *m, int64_t n, const mapping **out);
mapping_status mapping_resize(mapping_context *c, const mapping *m, int64_t n, const mapping **out);
mapping_status mapping_pad(mapping_context *c, const mapping *m, int64_t n, pad_kind kind, const mapping **out);

/* `$(e1:n1, ..)`: 1 + sum of (SIZE(ek) - 1) * nk positions. The terms become single axis digits, the order in which they were
 * written is forgotten, a window in a window is flattened, and one whose places are as many as its indices is the ordinary
 * pair: `$(A:4, B:1)` with 4 elements of B is `A, B`. */
enum { WINDOW_MAX_TERMS = 8 };
typedef struct window_part {
    const mapping *mapping;
    int64_t stride;
} window_part;
mapping_status mapping_window(mapping_context *c, const window_part *parts, size_t count, const mapping **out);
/* `$(e1:n1, .. | from..to)`: of those places only from .. to-1 are held; an element at another one is zero. */
mapping_status mapping_window_held(mapping_context *c, const window_part *parts, size_t count, int64_t from, int64_t to,
                                   const mapping **out);

/* The coordinate of the window at which the index with these coordinates is held: the relation of the formal notation. Outside
 * 0 .. size-1 it is not held. */
int64_t window_place(const axis *window, const int64_t *coords);
/* Is the digit weight * i, i < live, of `of` one that the term counts through, in whole or in part? */
bool window_term_meets(const window_term *t, const axis *of, int64_t weight, int64_t live);

/* The meaning: adds the coordinates of position i to coords[axis number]; false when i is dead (padding, outside
 * 0 .. SIZE-1, or an axis reaches its size). coords has an element for every axis of the context and is zero
 * on entry; after a dead position its content is unspecified. */
bool mapping_map(const mapping *m, int64_t i, int64_t *coords);

/* Equality of meaning, whatever the kinds of padding. Mappings that cut into digits are equal when they are one object. Composites are
 * compared by the stretches in which both repeat themselves, whatever their sizes; where more than MAPPING_EQUAL_STEPS stretches and single
 * positions are needed, which takes steps with large numbers in common with none of the extents, they count as different. `true` is always
 * exact. */
#define MAPPING_EQUAL_STEPS ((int64_t)1 << 20)
bool mapping_equal(mapping_context *c, const mapping *a, const mapping *b);

/* [outer, inner] with SIZE(inner) == n: outer = m / n, inner = m % n. MAPPING_NOT_DIVISIBLE when n does not divide
 * SIZE. The halves together mean m exactly when `mapping_pair(outer, inner) == m`. */
mapping_status mapping_split(mapping_context *c, const mapping *m, int64_t n, const mapping **outer, const mapping **inner);

/* A composite factor as an outer and an inner mapping that together mean the same, where some of its steps end between two values of one of
 * its inner factors: `[A, B] / 6` with 8 elements of B is `A / 3` next to `[A % 3, B] / 6`, and `[A, B] = 10` is `[A, B / 2] = 5` next to
 * `B % 2`. False: nowhere. */
bool mapping_divide_group(mapping_context *c, const factor *f, const mapping **outer, const mapping **inner);

/* A mapping that holds the same indices as the pair of all parts, in an order of its own: the parts of a group are one again, wherever they
 * stand, and padding is dropped. NULL: too large. */
const mapping *mapping_gather(mapping_context *c, const mapping *const *parts, size_t count);

/* m with padding of one kind, PAD_TOP: the meaning is the same, what may be done with dead positions is forgotten. */
const mapping *mapping_plain_padding(mapping_context *c, const mapping *m);

/* m without the padding at its outermost end: `B # 4` gives `B`, `A, B # 4` itself, `1 # 4` gives `1`. */
const mapping *mapping_strip_padding(mapping_context *c, const mapping *m);

/* The mapping of neighbouring factors, outermost first; of one. */
const mapping *mapping_of_factors(mapping_context *c, const factor *f, size_t count);
const mapping *mapping_of_factor(mapping_context *c, const factor *f);
/* The live positions of a factor alone, which may be more digits than with its padding: `[A, B, C] = 6 # 7` is `[A, B] = 3, C` before
 * the 7. */
const mapping *mapping_without_padding(mapping_context *c, const factor *f);

/* Does any factor name this axis? */
bool mapping_mentions(const mapping *m, const axis *a);
/* Is an axis that it mentions local? Then mapping_text is not what everybody may write. */
bool mapping_is_local(const mapping *m);
/* Is every position live? False also when that is not certain: an axis inside a composite and next to it. */
bool mapping_is_full(const mapping *m);
/* Does m begin with `front`: the same factors, of the outermost as many values or fewer? */
bool mapping_is_front(const mapping *front, const mapping *m);
/* Are there positions that must be neither read nor written (PAD_BOTTOM)? */
bool mapping_has_gap(const mapping *m);
/* True when only position 0 is live and has the empty index (`1`, `1 # n`). */
bool mapping_is_hole(const mapping *m);

/* The shortest expression, without `m![` and `]`, that parses back to m (short, for composites). */
void mapping_print(const mapping *m, strbuf *out);
const char *mapping_text(const mapping *m, arena *a);
void mapping_print_factor(const factor *f, strbuf *out);

/* The axes that an expression names, each once, in the order in which it first names them: those of size 1 too, which no factor keeps. What
 * follows puts these where they were named; NULL: none. */
typedef struct mapping_names {
    uint32_t count, capacity;
    const axis **axes;
} mapping_names;
const char *mapping_text_named(const mapping *m, const mapping_names *names, arena *a);

/* m as a postfix program of the language's operators, as mapping_print writes it: 'A' pushes `axis`, '1' pushes n positions
 * that all hold the empty index, '/' '%' '=' '#' apply n, ',' pairs the two on top. Lives in the arena. */
typedef struct mapping_step {
    char op;
    pad_kind pad; /* '#' */
    const axis *axis;
    int64_t n;
} mapping_step;
size_t mapping_postfix(const mapping *m, const mapping_names *names, arena *a, const mapping_step **out);

/* Every axis that m names, in order of first mention: returns the count, fills at most `capacity`. */
uint32_t mapping_axes(const mapping *m, const axis **out, uint32_t capacity);

#endif
