/* Operators of stream programs as statements about nested lists (runtime/step/judge.h). */
#ifndef VISA_RUNTIME_STEP_STATEMENT_H
#define VISA_RUNTIME_STEP_STATEMENT_H

#include "runtime/step/judge.h"
#include "runtime/step/nested.h"

enum { STATEMENT_SEVERAL = UINT32_MAX };

/* A tensor off the chip. */
typedef struct statement_memory {
    const nested_value **result;     /* by tile: what the program wrote there; NULL: nothing */
    uint32_t *loaded_by, *stored_by; /* by tile: 1 + the node, STATEMENT_SEVERAL, or 0 */
} statement_memory;

typedef struct statements {
    const step_judge_input *in;
    arena *arena;
    diag_list *diags;
    const nested ***streams; /* by node and output; NULL: not known yet */
    bool *done;              /* by node */
    statement_memory *memory;
    struct expected **kernels; /* by node: the reference of its kernel */
    const char *why;           /* it cannot be judged */
} statements;

statements *statements_new(const step_judge_input *in, arena *a, diag_list *diags);
void statements_free(statements *s); /* what it has outside the arena */
const nested *statement_input(const statements *s, const step_node *n, uint32_t input);
/* The selectors of a merge: the order in which chunks came. */
void statement_order(statements *s, const step_node *n);
/* The outputs of a node whose inputs are known. */
void statement_make(statements *s, const step_node *n);
/* It cannot be judged. */
void statement_unknown(statements *s, const step_node *n, const char *why);

#endif
