/* Names and what they stand for: axes, aliases, constants, variables; and the meaning of mappings and types.
 *
 * The one idea: a scope is a list of names with a parent; an item is resolved in the scope in which it was written, the
 * first time it is asked for. Everything here either gives a value or has diagnosed why not and gives nothing, so that
 * the caller stays silent. */
#ifndef VISA_FRONTEND_SCOPE_H
#define VISA_FRONTEND_SCOPE_H

#include "frontend/ast.h"
#include "ir/kernel.h"
#include "target/dialect.h"

typedef struct scope scope;

typedef enum value_kind {
    VALUE_ERROR, /* diagnosed: stay silent */
    VALUE_UNIT,
    VALUE_INT,
    VALUE_FLOAT,           /* real */
    VALUE_BOOL,            /* number: 0 or 1 */
    VALUE_RANGE,           /* number, number + step, ..: `count` integers */
    VALUE_LIST,            /* a tuple or an array: items, count */
    VALUE_TENSOR,          /* op: a memory tensor or a stream */
    VALUE_VIEW,            /* op: the DM or HBM tensor that is viewed, or a tile of it; writable */
    VALUE_BEGIN,           /* op: the DM tensor; context */
    VALUE_CONTEXT,         /* `ctx` */
    VALUE_UNIT_OF_CONTEXT, /* `ctx.main`, `ctx.sub`, `ctx.tdma`: context */
    VALUE_TRF_ADDRESS,
    VALUE_ACCUMULATION,
    VALUE_TYPE,          /* type: what precedes a function, `HbmTensor::<..>` */
    VALUE_VARIANT,       /* of an enumeration: variant, number */
    VALUE_VECTOR_OP,     /* number: its code (target/vector.h) */
    VALUE_OP_WITH_MODE,  /* the same, of `with_mode`; items: the mode */
    VALUE_PLAN,          /* of what moves to other chips and clusters: plan */
    VALUE_INDIRECT,      /* of rows by index: rows */
    VALUE_SCALAR,        /* an HbmScalar: run */
    VALUE_RUNNING,       /* a number that is read when the kernel runs: run */
    VALUE_CONDITION,     /* known when the kernel runs */
    VALUE_SWITCH_CONFIG, /* number: the topology's code; items: its fields in the order of its row, integers */
} value_kind;

typedef struct value {
    value_kind kind;
    op *op;
    op *second;             /* VALUE_BEGIN: of two interleaved tensors the other one, or NULL */
    const axis *interleave; /* VALUE_BEGIN: the axis that tells them apart */
    context context;
    bool writable;                    /* VALUE_VIEW: of view_mut() */
    bool owned;                       /* VALUE_TENSOR, VALUE_UNIT_OF_CONTEXT: surely no reference to one; what lies in lists is not asked */
    bool chosen;                      /* by an `if` on such a number as `loop` has */
    int64_t number;                   /* VALUE_INT, VALUE_BOOL, the first of VALUE_RANGE, and the code of the two enums */
    double real;                      /* VALUE_FLOAT */
    int64_t step;                     /* VALUE_RANGE */
    const ast *record;                /* VALUE_LIST: the AST_STRUCT whose fields these are, or NULL */
    const struct value *items;        /* VALUE_LIST */
    size_t count;                     /* VALUE_LIST, VALUE_RANGE */
    const struct declared *type;      /* VALUE_TYPE */
    const char *variant;              /* VALUE_VARIANT: its type */
    const struct ast *loop;           /* a number that is known only when it runs: the AST_FOR that counts it; NULL: it is a constant */
    union {                           /* values are on the stack of whoever reads an expression, 256 levels deep */
        const struct move_plan *plan; /* VALUE_PLAN */
        const struct row_plan *rows;  /* VALUE_INDIRECT */
        const struct run_number *run; /* VALUE_SCALAR, VALUE_RUNNING */
        const struct run_condition *condition; /* VALUE_CONDITION */
        scope *fields_in;                      /* VALUE_LIST with a record: where its fields are read, or NULL: unknown */
    };
} value;

typedef enum symbol_kind {
    SYMBOL_AXIS,
    SYMBOL_ALIAS,
    SYMBOL_CONST,
    SYMBOL_CONST_PARAM,
    SYMBOL_VARIABLE,
    SYMBOL_FUNCTION, /* node: AST_FN */
    SYMBOL_MODULE,   /* inner */
    SYMBOL_LOST,     /* in text that was not understood; never found by its name */
    SYMBOL_OWN_TYPE, /* a struct, enum or trait of the file: nothing the machine knows, whatever it is called */
} symbol_kind;

typedef struct declared declared;

typedef struct symbol {
    symbol_kind kind;
    const char *name;
    struct symbol *next; /* of its bucket */
    src_range range;
    const axis *axis;     /* SYMBOL_AXIS; NULL: refused */
    const ast *node;      /* SYMBOL_ALIAS: its type; SYMBOL_CONST: its expression; SYMBOL_CONST_PARAM: its node; SYMBOL_VARIABLE: its `let`,
                             where that was not understood */
    const ast *type;      /* SYMBOL_CONST; NULL: the expression does not have it, which was reported */
    const ast *generics;  /* SYMBOL_ALIAS: its parameters (AST_GENERICS), or NULL */
    const ast *of_type;   /* SYMBOL_ALIAS, SYMBOL_CONST of an `impl`: its parameters, or NULL */
    const ast *given;     /* of `impl Name<4>`: the arguments of the type that it is of (AST_GENERIC_ARGS), or NULL */
    struct symbol *other; /* the same name of an `impl` for other arguments, or NULL */
    scope *scope;         /* in which node is read */
    const mapping *mapping;    /* SYMBOL_ALIAS: what it stands for, once that was asked; NULL: nothing, or not yet */
    bool resolved, infers;     /* SYMBOL_ALIAS: that was asked; and it stands for `_` */
    mapping_names *names;      /* SYMBOL_ALIAS: the axes that it names; NULL: nobody asked */
    value value;               /* SYMBOL_VARIABLE; SYMBOL_CONST, once it was asked for */
    const kernel *read_by;     /* SYMBOL_CONST: the kernel that asked for `value` the last time; NULL: none yet */
    bool measured, is_integer; /* SYMBOL_CONST: scope_integer asked for it; and it has one, `number` */
    int64_t number;
    const ast *loop;          /* SYMBOL_VARIABLE: the innermost loop of the device around it; NULL: none is */
    const run_guard *runs_if; /* SYMBOL_VARIABLE: of the block in which it was bound */
    bool mutable;             /* `let mut` */
    const declared *declared; /* its annotation, or NULL */
    scope *inner;             /* SYMBOL_MODULE */
    struct symbol *target;    /* imported by `use`: what it stands for */
    struct symbol *open;      /* of an `impl`, for the arguments of its type: itself without them, or NULL */
    uint32_t calls;           /* SYMBOL_FUNCTION: so far, in this kernel */
    bool busy;                /* being resolved: a second visit is a cycle */
    bool moved;               /* a stream that was consumed */
    src_range moved_at;
} symbol;

/* What a name of `use` stands for; any other, itself. NULL stays NULL. */
static inline symbol *symbol_meant(symbol *named)
{
    return named && named->target ? named->target : named;
}

/* While it is being resolved; for other arguments of its type it is the same. */
static inline bool symbol_is_busy(const symbol *y)
{
    return y->busy || (y->open && y->open->busy);
}

static inline void symbol_set_busy(symbol *y, bool busy)
{
    y->busy = busy;
    if (y->open)
        y->open->busy = busy;
}

typedef struct source_index source_index; /* frontend/index.h */

/* What reading needs; one per compilation. */
typedef struct scope_context {
    mapping_context *mappings;
    arena *arena;
    arena *names; /* of scopes that are forgotten after the block they are of; NULL: none is, they are in `arena` */
    diag_list *diags;
    source_index *index;                                               /* NULL: nobody will ask */
    bool has_units;                                                    /* an axis of size 1 was declared */
    dialect dialect;                                                   /* of the file: its messages speak it */
    bool one_dialect;                                                  /* what that release does not write is refused */
    value (*compute)(void *computer, scope *s, const ast *expression); /* a constant that statements compute; NULL: nobody does */
    void *computer;
    size_t suggestions_left; /* names that may still be looked at for one that was misspelt: of thousands of errors the last ones have no
                                such help */
} scope_context;

scope *scope_new(scope_context *c, scope *parent);
scope_context *scope_context_of(scope *s);
/* It has the parameters of a function, an alias or a struct: what stands in it means something else with each use. */
void scope_set_generic(scope *s);
/* Does the text that is read in it mean something else with each use? */
bool scope_is_generic(const scope *s);
/* Where its names are. */
arena *scope_arena(const scope *s);
/* Adds a name; a second equal name of the same scope shadows the first. Never NULL. */
symbol *scope_add(scope *s, symbol_kind kind, const char *name, src_range range);
/* Types (axes, aliases) and values (constants, const parameters, variables) have names of their own, as in Rust. */
typedef enum name_space { TYPE_NAMES, VALUE_NAMES, MODULE_NAMES } name_space;
/* A name in text that was not understood: what it would have been is not known. "": an item without a name. */
void scope_add_lost(scope *s, const char *name);
/* All those in such a text. */
void scope_add_lost_names(scope *s, const ast *error);
/* Is a name, which was not found, in such text of the scope or of those around it? Then it is not reported. */
bool scope_is_lost(scope *s, const char *name);
/* Searches the scope and its parents; NULL: unknown. */
symbol *scope_find(scope *s, name_space space, const char *name);
/* Only this scope. */
symbol *scope_find_here(scope *s, name_space space, const char *name);

/* The same for `a::b::name`; a path whose front is not known (a library's) is its last name. */
symbol *scope_find_path(scope *s, name_space space, const ast *path);

/* Only where a module, or a type's functions and constants, is in front of the last segment; NULL: it has none of the name. */
symbol *scope_find_through(scope *s, name_space space, const ast *path);

/* A struct of the file. */
typedef struct type_meant type_meant;
/* Of a name that several `impl`s give for different arguments of their type, the one for these. */
symbol *scope_given(symbol *y, const type_meant *type);
struct type_meant {
    const ast *record; /* AST_STRUCT, or NULL */
    scope *fields_in;  /* where its fields are read: its parameters have the meanings of its arguments. NULL: they have none */
};
/* The one in front of the last segment, `Name::<4>::f`, which an alias or a type parameter may stand for. */
type_meant scope_type_in_front(scope *s, const ast *path);
/* Its argument at `place`, from 1 on, lifetimes not counted; NULL: there is none there, or it is unknown. */
symbol *scope_argument_of(const type_meant *type, int64_t place);
/* A name that stands for a symbol, as an imported one does. */
void scope_add_as(scope *s, const char *name, symbol *y);

/* Every name that can be written in the scope: its own, the imported ones, its parents'. A shadowed one comes after the one that
 * shadows it. */
void scope_visit(scope *s, void (*visit)(void *user, symbol *y), void *user);

/* A module of the file: `super` is its parent, `crate` the outermost one. */
void scope_set_module(scope *s);
/* The functions and constants of a type: what stands in it finds them by a path alone. */
void scope_set_type(scope *s);
/* `use`: what is not known is ignored, since it is a library's; false: nothing new was imported. */
bool scope_use(scope *s, const ast *use);
/* When all are resolved: remembers one that imports nothing, for messages about names that are not found. */
void scope_check_use(scope *s, const ast *use);

/* A const parameter is used whose value no call gave. */
void scope_refuse_const_param(scope *s, const ast *path, const symbol *y);

/* The known name nearest to a misspelt one among the symbols of that kind, or NULL; of several as near "a` or `b", to stand between ticks.
 */
const char *scope_suggest(scope *s, const char *name, symbol_kind kind);

/* Declares `axes![..]`. */
void scope_add_axes(scope *s, const ast *axes);

/* A type argument that stands for a mapping: m![..] or an expression in it, an alias, or NULL with *infer set for `_`; NULL without:
 * diagnosed. */
const mapping *scope_mapping(scope *s, const ast *type, bool *infer);
/* What such an argument names, once it is known to be a mapping; NULL where no axis has size 1. A window is an axis, what it slides over is
 * not named. */
const mapping_names *scope_mapping_names(scope *s, const ast *type);

/* The scope in which an alias, or a struct, that a path names is read: its parameters are the arguments of the path's last segment. */
scope *scope_applied(scope *s, scope *of, const ast *generics, const ast *segment);
/* A type parameter of a function or an alias: what `argument` is in `s`. */
symbol *scope_bind_type(scope *inner, const ast *parameter, scope *s, const ast *argument);

/* What a SYMBOL_ALIAS that is not `busy` stands for; NULL as of scope_mapping. */
const mapping *scope_alias(symbol *y, bool *infer);

/* Why a name after that of a struct, enum or trait of the file is not known; NULL: it stands after another. */
const char *scope_own_type_help(scope *s, const ast *path);
/* A constant expression of integers; false: diagnosed. */
bool scope_integer(scope *s, const ast *expression, int64_t *out);
/* The same of conditions. */
bool scope_condition(scope *s, const ast *expression, bool *out);
/* The integer types that `as` names, and what they hold; NULL: another type. */
typedef struct integer_type {
    const char *name;
    int64_t bytes, least, most;
} integer_type;
const integer_type *scope_integer_type(const ast *type);
const integer_type *scope_integer_type_named(const char *name);
/* `u32::MAX`, `i32::MIN`; false: it is no such path. *fits: it has 63 bits, else that is diagnosed. */
bool scope_integer_bound(scope *s, const ast *path, int64_t *out, bool *fits);
/* A number that the language has without a declaration: SLICES_PER_PE. */
bool scope_prelude_number(const char *name, int64_t *out);
/* False: diagnosed. */
bool scope_fits(scope *s, const ast *n, const integer_type *type, int64_t number);
/* `as`: the low bits of the number, as Rust has it; of 64 bits what fits. False: diagnosed. */
bool scope_wrap(scope *s, const ast *n, const integer_type *type, int64_t number, int64_t *out);
/* `size_of::<T>()`, the bytes of an element type or an integer. */
bool scope_is_size_of(const ast *call);
bool scope_size_of(scope *s, const ast *call, int64_t *out);
/* Its operators: `n` is the AST_BINARY. False: diagnosed. */
bool scope_arithmetic(scope *s, const ast *n, const char *operator, int64_t a, int64_t b, int64_t *out);
bool scope_is_arithmetic(const char *operator);

/* A type as written. Tensor parts that are `_` are NULL. */
typedef enum declared_kind {
    DECLARED_NONE,
    DECLARED_UNIT,
    DECLARED_TENSOR,
    DECLARED_CONTEXT,
    DECLARED_UNIT_OF_CONTEXT, /* TuContext<{ Tu::Main }>, DmaContext<{ Dma::Tensor }>: units */
    DECLARED_SCALAR,          /* HbmScalar<T>: run */
    DECLARED_OTHER,
    DECLARED_ERROR
} declared_kind;
struct declared {
    declared_kind kind;
    tensor tensor;
    bool has_dtype;
    bool mutable;   /* of a `&mut` */
    bool is_hint;   /* of a later stage, or of where the value goes: fills in what is open, and nothing is held against it */
    unsigned units; /* DECLARED_UNIT_OF_CONTEXT: IN_MAIN | .., those that it may be */
    bool is_view;   /* HbmTensorView, DmTensorView, or with `mutable` their Mut */
    src_range range;
    src_range parts[MAPPING_COMPONENTS];
    bool by_name;                                   /* an alias: the parts stand where it is declared, not where it is used */
    bool generic;                                   /* the parts stand where scope_is_generic */
    const mapping_names *named[MAPPING_COMPONENTS]; /* scope_mapping_names */
    const struct run_type *run;                     /* DECLARED_SCALAR */
    const ast *record; /* DECLARED_OTHER of a struct of the file: its AST_STRUCT; its fields are read in `scope` */
    const ast *array;  /* DECLARED_OTHER of an array type: read its kids in `scope` */
    const ast *tuple;  /* DECLARED_OTHER of a tuple type, else NULL: read its kids in `scope` */
    scope *scope;
};

declared scope_type(scope *s, const ast *type);
/* The type of tensors, views or contexts nearest to a misspelt name, or NULL. */
const char *scope_suggest_type(const char *name);
/* The type in front of the last segment of a path: `HbmTensor::<..>::from_addr`. */
declared scope_type_of_path(scope *s, const ast *path);
/* A scalar type name; false with *infer for `_`, false without: diagnosed. */
bool scope_dtype(scope *s, const ast *type, dtype *out, bool *infer);

#endif
