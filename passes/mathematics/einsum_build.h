/* The einsum while it is built: its values and steps (einsum_build.c), the digits that a statement walks (einsum_digits.c), which of them
 * each operand holds (einsum_sources.c), and what is left when all are made (einsum_finish.c). Each group of operations makes its
 * statements in a file of its own: on elements (einsum_map.c), under conditions (einsum_guard.c), under new names (einsum_reshape.c), by
 * index (einsum_rows.c). */
#ifndef VISA_PASSES_MATHEMATICS_EINSUM_BUILD_H
#define VISA_PASSES_MATHEMATICS_EINSUM_BUILD_H

#include "ir/mapping/tile.h"
#include "passes/mathematics/einsum.h"

/* What an operation's tensor is: a value, seen through the tiles of a view. */
typedef struct reference {
    uint32_t value;
    const tile_window *window; /* NULL: the whole value */
} reference;

/* A statement whose arrays still grow. */
typedef struct einsum_step {
    einsum_statement s;
    einsum_digit *digits; /* EINSUM_MAX_DIGITS while it is built */
    einsum_piece *pieces;
    einsum_shift *shifts;
    uint64_t renamed; /* 1 << number of each digit under which source a is read by an axis's old name (a
                         reshape) */
} einsum_step;

/* An axis of a value that a reshape names anew: a step without digits of it reads it through those of other
 * axes. */
typedef struct einsum_relabel {
    uint32_t axis, term_count;
    uint32_t named;     /* of the terms: the first ones, by descending stride; the others are digits without a name */
    einsum_term *terms; /* [term_count] */
    bool bordered;      /* the terms have more places than the axis */
    const axis *apart;  /* the whole axis under a name that nothing else has; NULL: the terms are names of the source */
} einsum_relabel;

typedef struct einsum_builder {
    pass_context *context;
    kernel *kernel;
    const axis **axes; /* by number */
    size_t axis_count, axis_capacity;
    einsum_tensor *values;
    size_t value_count, value_capacity;
    bool *computed; /* by value: is an element of it the result of arithmetic, so that its NaNs may be any? */
    size_t computed_count, computed_capacity;
    einsum_step *steps;
    size_t step_count, step_capacity;
    einsum_relabel *relabels;
    size_t relabel_count, relabel_capacity;
    const axis **own; /* axes whose reshapes read them under a name that nothing else has: a result has the old and the new one */
    size_t own_count, own_capacity;
    bool again;       /* one was found only when all statements were made: they are made once more */
    reference *of;    /* by operation */
    reference *other; /* of two streams group 1's; else the same */
    uint32_t *uses;   /* by operation: how often the memory or stream is used */
    bool *pair;       /* by operation: two streams leave it */
} einsum_builder;

uint32_t einsum_axis_number(einsum_builder *b, const axis *a);

uint32_t einsum_add_value(einsum_builder *b, dtype type, int64_t port);
/* A value with the axes of the tensor, in its element type; differences from a zero point are i32. */
uint32_t einsum_add_like(einsum_builder *b, const tensor *t, int64_t port);
/* The axes of a tensor become those of the value. */
void einsum_set_axes(einsum_builder *b, einsum_tensor *v, const tensor *t);
/* One more axis, in front of the others: its number. */
uint32_t einsum_add_axis(einsum_builder *b, uint32_t value, const axis *a);
/* The kept digits' axes, in their order. */
void einsum_set_kept_axes(einsum_builder *b, einsum_tensor *v, const einsum_step *step);

reference einsum_whole(uint32_t value);
/* The part of a value at one place of an axis. */
reference einsum_at(einsum_builder *b, uint32_t value, const axis *a, int64_t place);
/* A tile of memory that is itself a tile of a value (a copy of it). */
const tile_window *einsum_add_windows(einsum_builder *b, const tile_window *of, const tile_window *w);

einsum_step *einsum_add_step(einsum_builder *b, math_op what, reference dst, reference a, reference other);
/* What source or destination of the step begins at. */
void einsum_add_shifts(einsum_builder *b, einsum_step *s, einsum_side side, const tile_window *w);
/* A value moved or converted: a statement of its own, which walks `t`. */
void einsum_add_copy(einsum_builder *b, op *o, reference to, const op *source, const tensor *t);
/* The same into a new value like `t`. */
reference einsum_copy_of(einsum_builder *b, op *o, const op *source, const tensor *t);
/* The step that made the value, when it was the last one and its value is seen whole. */
einsum_step *einsum_just_made(einsum_builder *b, reference from);
/* Is the memory or stream used by one operation only, on all the way back to where its value was made? */
bool einsum_is_only_use(const einsum_builder *b, const op *o, uint32_t value);

/* May the NaNs of the expression that ends with this step be any? What is only moved or selected has the bits that it had. */
bool einsum_computes_nans(const scalar_step *last);
/* A statement has been made: whether its destination may hold NaNs. A copy hands on those of its source. */
void einsum_note_computed(einsum_builder *b, const einsum_statement *s);

/* EINSUM_MAX_DIGITS of them, which hold anything: most statements have a few. */
einsum_digit *einsum_room_for_digits(einsum_builder *b);
/* The digits of a copy whose destination is `t`. */
void einsum_copy_digits(einsum_builder *b, einsum_step *step, op *o, const tensor *t);
/* The digits of a contraction, from the computation mapping in front of it; accumulate: NULL when the kernel
 * ends after contract. */
void einsum_contract_digits(einsum_builder *b, einsum_step *step, op *contract, const op *accumulate);
/* Those of a reduction inside slices. */
void einsum_reduce_digits(einsum_builder *b, einsum_step *step, op *reduce);
/* Those of a reduction over slices. */
void einsum_slices_digits(einsum_builder *b, einsum_step *step, op *reduce);

/* Cuts the digits where the operands `a` and `b` (NULL: a copy) cut them, says which of them each operand
 * repeats, and refuses what operands cannot be indexed by; of an operation that is refused it says nothing more. */
void einsum_settle_sources(einsum_builder *b, einsum_step *step, op *o, const op *a, const op *other);
/* The same of so many operands, which are the step's sources in their order; bit k of `of_other`: that one is group 1 of two streams. */
void einsum_settle_list(einsum_builder *b, einsum_step *step, op *o, const op *const *sources, unsigned count, unsigned of_other);
/* Group 1 of two streams becomes the current group, or group 0 again. */
void einsum_turn(einsum_builder *b);
/* Does the operand hold every digit of t, so that nothing of it is repeated there? */
bool einsum_source_holds(einsum_builder *b, op *o, const op *source, const tensor *t);

/* Drops names, digits and values that nothing reads, and numbers the rest anew. */
void einsum_compact(einsum_builder *b);
/* The einsum of the builder's statements, with its text. */
kernel_einsum *einsum_finish(einsum_builder *b);

#endif
