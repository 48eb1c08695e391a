/* The evaluation of one stream program: values, names, and what the parts of it share.
 *
 * The one idea: a value is what an expression stands for while the program is read: a number, a size, a stream, a list of them. What
 * could not be evaluated was diagnosed and is an error value, about which nobody speaks again. */
#ifndef VISA_FRONTEND_STEP_EVALUATE_H
#define VISA_FRONTEND_STEP_EVALUATE_H

#include "frontend/step/program.h"

typedef enum step_term_kind {
    TERM_ERROR,
    TERM_UNIT,
    TERM_INT,
    TERM_BOOL,
    TERM_SIZE,
    TERM_RANGE,
    TERM_LIST,
    TERM_STREAM,
    TERM_TENSOR,
    TERM_FUNCTION,
    TERM_FLOAT,
    TERM_TILE,    /* in a function of tiles: what one of its instructions makes */
    TERM_INITIAL, /* `full(rows, columns, value)` */
    TERM_FEEDBACK /* a stream that is given its source later */
} step_term_kind;

typedef struct step_term step_term;
struct step_term {
    step_term_kind kind;
    int64_t number;        /* int, bool, first of a range; function: n */
    double real;           /* float; the value of an initial tile, of number x end */
    int64_t end;           /* range: after the last; function `addresses`: the first */
    const step_expr *size; /* size */
    step_term *items;      /* list */
    size_t count;
    step_stream *stream; /* stream, feedback */
    int64_t depth;       /* stream: of the queue to whoever takes it next */
    step_graph_tensor *tensor;
    step_fn fn;                /* function */
    const step_data *data;     /* function: what it makes, where it says so */
    const step_kernel *kernel; /* function `kernel` */
    const ast *body;           /* function `formula`: its closure or #[stream] function; NULL: the operation */
    const step_formula_row *operation;
};

typedef struct step_name {
    const char *name;
    src_range range;
    step_term value;
    bool mutable;
} step_name;

typedef struct step_evaluation {
    arena *arena;
    diag_list *diags;
    const ast *file;
    step_graph *graph;
    const step_kernels *kernels;
    step_name *names; /* innermost last */
    size_t name_count, name_capacity;
    size_t scope;                         /* names below it belong to a caller */
    const char *wanted_name;              /* of the `let` that is evaluated: the node's name */
    struct step_constant *constants;      /* of the file, by item; NULL: none was asked for */
    struct step_formula_builder *formula; /* the function of tiles that is read; NULL: none */
    size_t steps;                         /* loop iterations and calls so far */
} step_evaluation;

enum { STEP_EVALUATIONS_MAX = 1 << 20 }; /* iterations and calls of one program */

extern const step_term step_term_error;

step_term step_evaluate(step_evaluation *e, const ast *n);
void step_bind_pattern(step_evaluation *e, const ast *pattern, step_term value);
/* Adds an error of id E_STEP_PROGRAM and returns an error value. */
step_term step_refuse(step_evaluation *e, src_range range, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with the next step; NULL: none is known. */
step_term step_refuse_with(step_evaluation *e, src_range range, const char *help, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *step_term_text(const step_term *t);

/* A name is visible until step_leave. */
size_t step_enter(step_evaluation *e);
void step_leave(step_evaluation *e, size_t mark);
void step_bind(step_evaluation *e, const char *name, src_range range, step_term value, bool mutable);
const step_name *step_lookup(step_evaluation *e, const char *name);
/* Is it a name in text of the file that was not understood? Then it is not reported. */
bool step_is_lost(step_evaluation *e, const char *name);

/* ---- frontend/step/types.c ---- */

/* `Tile<bf16, 16, 256>`, `Selector<8>`, `Address`, `Bool`; NULL: diagnosed. */
const step_data *step_read_data(step_evaluation *e, const ast *type);
/* What is in `{ .. }` or alone as a generic argument, evaluated. */
step_term step_read_argument(step_evaluation *e, const ast *argument);
/* Is the parameter a stream or a tensor, as those of programs are? */
bool step_is_parameter(const ast *param);
/* A parameter of the program becomes a source, a tensor or a symbol. */
void step_read_parameter(step_evaluation *e, const ast *param);
void step_read_generics(step_evaluation *e, const ast *generics);
/* Sizes of a list of numbers and sizes; false: diagnosed. */
bool step_read_sizes(step_evaluation *e, src_range range, const step_term *list, const step_expr ***sizes, uint32_t *count);

/* ---- frontend/step/formula.c ---- */

/* `|a, b| ..`: a function of tiles; what it makes is known when the streams are. */
step_term step_closure(step_evaluation *e, const ast *n);
/* Reads the function's body for these streams; `initial`: of a fold, what the state begins with, else NULL. NULL: diagnosed. */
const step_formula *step_read_formula(step_evaluation *e, src_range range, const step_term *function, const step_stream *const *inputs,
                                      uint32_t input_count, const step_term *initial);
/* Is one of them a tile, so that the operation is one of the function? */
bool step_is_of_tiles(const step_term *a, const step_term *b);
/* Operations in a function of tiles. */
step_term step_formula_apply(step_evaluation *e, src_range range, const char *name, const step_term *operands, size_t count);
/* 1 where the tile is 0, else 0. */
step_term step_formula_not(step_evaluation *e, src_range range, const step_term *a);
step_term step_formula_binary(step_evaluation *e, const ast *n, const step_term *a, const step_term *b);
/* `full(rows, columns, value)`, `zeros(rows, columns)`. */
step_term step_initial_tile(step_evaluation *e, const ast *n, const step_term *items, size_t count);
step_term step_float(step_evaluation *e, const ast *n);

/* ---- frontend/step/call.c ---- */

/* The #[stream] function of that name; NULL: there is none. */
const ast *step_program_function(const ast *file, const char *name);
/* Its value with these arguments. */
step_term step_call_program(step_evaluation *e, src_range range, const ast *fn, const step_term *items, size_t count);

step_term step_call_method(step_evaluation *e, const ast *n);
step_term step_call_function(step_evaluation *e, const ast *n);
/* `silu`, `kernel::NAME`, or an error. */
step_term step_function_named(step_evaluation *e, const ast *path);

#endif
