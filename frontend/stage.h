/* The methods of tensors, streams and contexts: what a kernel writer calls stages.
 *
 * The one idea: a method is a row of its engine (target/engines.def: what it is called on, how it is written) and a function that adds one
 * operation with the tensor that leaves it. A part of that tensor comes, in this order, from the method's type arguments,
 * from the type that the context expects, and from the receiver. */
#ifndef VISA_FRONTEND_STAGE_H
#define VISA_FRONTEND_STAGE_H

#include "frontend/scope.h"
#include "target/dialect.h"

typedef struct stage_row stage_row; /* frontend/stage_build.h */
typedef struct stage_form stage_form;

/* A call with its receiver and arguments evaluated. */
typedef struct stage_call {
    scope *scope;
    kernel *kernel;
    const ast *node; /* AST_METHOD */
    value receiver;
    const value *args;        /* one per argument */
    const declared *expected; /* may be NULL or of kind DECLARED_NONE */
    const stage_form *form;   /* how it is written; stage_build finds it */
    const stage_row *row;     /* of the form */
} stage_call;

/* Adds the operation; a value of kind VALUE_ERROR when it was diagnosed. */
value stage_build(const stage_call *call);

/* The releases that have a stage of that name with so many type arguments (0: none is written) and arguments `given`; 0: none has. */
unsigned stage_dialects(const char *method, unsigned types, unsigned given);
/* Is there a stage of that name on any receiver? */
bool stage_is_known(const char *method);
/* Is a stage of that name called on a tensor of that kind? */
bool stage_takes(const char *method, tensor_kind kind);
/* Is it called on a type: `HbmTensor::new()`? */
bool stage_is_of_type(const char *name);
/* Is the argument surely no reference, or one that is not `&mut` where it has to be? */
bool stage_lacks_borrow(const ast *argument, const value *v, bool mutable);
/* The VrfTensor in an operand of the Vector Engine that is no reference, or NULL. */
const ast *stage_unborrowed_operand(const ast *argument, const value *v);
/* "&mut", "&" */
const char *stage_borrow_text(bool mutable);
/* Helps: "write &mut x", of an argument that is no such reference; "write view_mut() instead of view()", of a call; #[unroll] in front of a
 * loop. */
void stage_help_borrow(diag_list *diags, diag *d, const ast *argument, bool mutable);
void stage_help_view(diag_list *diags, diag *d, const ast *written, bool mutable);
void stage_help_unroll(diag_list *diags, diag *d, const ast *loop);
/* Is the element type that is expected of its result expected of its receiver, too? */
bool stage_expects_dtype(const char *method);

/* Parts of the result that are still unknown become those of the declared type; of memory that is `open` the element type, too. */
void stage_adopt(op *o, const declared *e);
/* The same, of memory that is `open` and of nothing else. False: something of it is still unknown. */
bool stage_settle(op *o, const declared *e);
/* Whoever needs a type that nobody has told until then. */
void stage_refuse_open(kernel *k, diag_list *diags, op *o);
/* Is `expected` what this tensor is? Adds E_MISMATCH for each field that differs. */
bool stage_check_type(scope *s, src_range range, const tensor *t, const declared *expected);

typedef struct stage_description {
    const char *name;       /* "fetch" */
    const char *parameters; /* "Dtype, Time, Packet": the type arguments; "" when it has none */
    unsigned generics;      /* how many these are */
    const char *signature;  /* "fetch::<Dtype, Time, Packet>()" */
    const char *summary;    /* what it does, in a line */
    const char *receivers;  /* "FetchTensor, SwitchTensor" */
    const char *arguments;  /* "`&mut ctx.tdma`, an integer address"; "" when it has none */
    const char *gives;      /* "FetchTensor"; "": nothing */
    const char *dialects;   /* "April" */
    bool on_value;          /* not called on a type */
} stage_description;

/* The i-th method that `receiver` offers (NULL: of all) in a release, in its first form there; false: there are fewer. */
bool stage_describe(size_t i, dialect d, const value *receiver, arena *a, stage_description *out);
/* The i-th form of all methods. */
bool stage_describe_form(size_t i, arena *a, stage_description *out);

/* A method that is not compiled. */
typedef struct stage_other_name {
    const char *name;
    dialect since;
    engine_id engine; /* that would do it */
} stage_other_name;
/* NULL: there are fewer. */
const stage_other_name *stage_other_name_at(size_t i);

#endif
