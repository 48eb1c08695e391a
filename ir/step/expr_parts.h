/* The parts of an expression, for the files that make and take it apart (step_expr.c, step_expr_ask.c). */
#ifndef VISA_IR_STEP_EXPR_PARTS_H
#define VISA_IR_STEP_EXPR_PARTS_H

#include "ir/step/expr.h"

#define STEP_EXPR_MAX (INT64_C(1) << 62)

typedef enum atom_kind { ATOM_SYMBOL, ATOM_CEIL, ATOM_FLOOR, ATOM_PRESENT, ATOM_ABSENT } atom_kind;

typedef struct atom {
    uint32_t number; /* atoms are ordered by when they were first made */
    atom_kind kind;
    bool ragged;         /* itself or something in it */
    const char *name;    /* symbol */
    const step_expr *of; /* ceil, floor, present; absent: what is then 0, a product of present(..) */
    int64_t divisor;     /* ceil, floor */
} atom;

/* coefficient * the product of the atoms. */
typedef struct product {
    int64_t coefficient; /* at least 1 */
    uint32_t atom_count;
    const atom **atoms; /* by number; powers are repeated */
} product;

struct step_expr {
    uint32_t count;          /* 0: the number 0 */
    const product *products; /* by their atoms, the plain number last */
    bool ragged;
    uint32_t depth; /* of quotients and flags in it: 0, none */
    uint64_t parts; /* those, each as often as it is met */
};

struct step_exprs {
    arena *arena;
    const step_expr **table; /* open addressing, at most half full; slots is a power of two */
    size_t expr_count, slots;
    const atom **atoms;
    size_t atom_count, atom_capacity;
};

static inline bool atom_is_flag(const atom *a)
{
    return a->kind == ATOM_PRESENT || a->kind == ATOM_ABSENT;
}

/* One atom and nothing else. */
static inline bool step_expr_is_atom(const step_expr *e)
{
    return e->count == 1 && e->products[0].coefficient == 1 && e->products[0].atom_count == 1;
}

#endif
