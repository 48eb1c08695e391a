/* The methods of tensors, streams and contexts: what a kernel writer calls stages.
 *
 * The one idea: a method is a row of a table (name, what it is called on, what it takes) and a function that adds one
 * operation with the tensor that leaves it. A part of that tensor comes, in this order, from the method's type arguments,
 * from the type that the context expects, and from the receiver. */
#ifndef VISA_FRONTEND_STAGE_H
#define VISA_FRONTEND_STAGE_H

#include "frontend/scope.h"

/* A call with its receiver and arguments evaluated. */
typedef struct stage_call {
    scope *scope;
    kernel *kernel;
    const ast *node;   /* AST_METHOD */
    value receiver;
    const value *args; /* one per argument */
    const declared *expected; /* may be NULL or of kind DECLARED_NONE */
} stage_call;

/* Adds the operation; a value of kind VALUE_ERROR when it was diagnosed. */
value stage_build(const stage_call *call);

/* Is there a stage of that name on any receiver? */
bool stage_is_known(const char *method);

/* Parts of the result that are still unknown become those of the declared type. */
void stage_adopt(op *o, const declared *e);
/* Is `expected` what this tensor is? Adds E_MISMATCH for each field that differs. */
bool stage_check_type(scope *s, src_range range, const tensor *t, const declared *expected);

typedef struct stage_description {
    const char *name;       /* "fetch" */
    const char *parameters; /* "Dtype, Time, Packet": the type arguments; "" when it has none */
    unsigned generics;      /* how many these are */
    const char *signature;  /* "fetch::<Dtype, Time, Packet>()" */
    const char *summary;    /* what it does, in a line */
} stage_description;

/* The i-th method that `receiver` offers (NULL: of all); false: there are fewer. */
bool stage_describe(size_t i, const value *receiver, arena *a, stage_description *out);

#endif
