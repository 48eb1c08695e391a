/* The state of one analysis, and what its files call of each other; private to them, frontend/sema.h is the interface.
 *
 * sema.c finds items and kernels, ports.c reads parameters and results; a body is a block of statements (block.c), whose expressions
 * evaluate.c hands to the file of their kind. */
#ifndef VISA_FRONTEND_ANALYSIS_H
#define VISA_FRONTEND_ANALYSIS_H

#include "frontend/scope.h"
#include "frontend/sema.h"

typedef struct loaded_module {
    const ast *node, *body;
} loaded_module;

typedef struct pending_item {
    scope *scope;
    const ast *node;
} pending_item;

/* A loop or a labelled block around what is read, in the function at hand. */
typedef struct frame {
    const struct frame *outer;
    const char *label; /* "": it has none */
    bool is_loop;
    bool is_counted; /* by the device, to its end */
} frame;

typedef struct analysis {
    scope_context context; /* its arena: of the analysis, within a kernel that of the kernel */
    arena *arena;          /* of what outlives a kernel */
    const sema_options *options;
    const char *only; /* the kernel to compile; NULL: all */
    bool mixed;       /* the file has words of releases that have no other in common */
    bool lists;       /* kernels are not compiled but named: `only` is none of them */
    loaded_module *loaded;
    size_t loaded_count, loaded_capacity;
    pending_item *uses; /* not yet resolved */
    size_t use_count, use_capacity;
    symbol **aliases; /* of mappings, to be read even where nobody uses them */
    size_t alias_count, alias_capacity;
    pending_item *unnamed; /* `const _`, not yet read */
    size_t unnamed_count, unnamed_capacity;
    pending_item *dataflows;
    size_t dataflow_count, dataflow_capacity;
    const char *const *called; /* names of functions that others call, sorted */
    size_t called_count;
    const char *module_path; /* "a::b::" of the functions at hand */
    module *module;
    const ast *given;     /* arguments of the type of the `impl` whose items are collected; NULL: it is for all of them, or there is none */
    scope *kernel_names;  /* of the module's kernels, paths included */
    kernel *kernel;       /* being built; NULL between functions */
    bool broken;          /* text of its body was left out: a name may be unknown for that reason alone */
    unsigned in_const_fn; /* calls of `const fn` around what is read: their loops are not the device's */
    unsigned in_const;    /* blocks and items of constants around what is read */
    size_t steps;         /* of the kernel: iterations, calls and list elements so far */
    bool stopped;         /* a limit was exceeded: unwind */
    bool keeps_names;     /* a variable has a struct whose parameters are read in a scope inside of its own */
    bool may_return;      /* nothing is half done between here and the end of the function's body */
    bool may_leave;       /* .. and the end of a loop or a labelled block around, which `break` and `continue` may leave */
    bool returning;       /* a `return` was met: its blocks end */
    value returned;
    const frame *frames;                                        /* from the innermost one on; NULL: none is around */
    enum { LEAVES_NOTHING, LEAVES_BLOCK, LEAVES_TURN } leaving; /* a `break`, a `continue` was met: blocks end */
    const char *label;                                          /* of what they leave; "": the innermost loop */
    value left_with;
    const ast *returned_by;
    const declared *result; /* what the function at hand gives */
    const ast *loop;        /* the innermost loop around what is read that the device may keep as one; NULL: none is */
    const ast *counted;     /* the loop on which something depends that was read since evaluate_counted began; NULL: nothing did */
    const ast *guard;       /* the same of the conditions around what is read */
    bool chosen;            /* something that was read since then is one of several, and such a condition says which */
} analysis;

static const value error_value = {.kind = VALUE_ERROR};

/* ---- analysis.c ---- */

/* Diagnoses and marks the kernel at hand bad; gives the error value. `help` may be NULL. */
value refuse(analysis *s, diag_id id, src_range range, const char *help, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same, with a help that is the caller's to give. Never NULL. */
diag *refuse_diag(analysis *s, diag_id id, src_range range, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The value, unless it is a float that was computed outside of a constant. */
value refuse_computed(analysis *s, const ast *n, value v);
/* The bounds of a loop, or the condition of one, are known when `loop` runs. */
void refuse_bounds(analysis *s, src_range range, const ast *loop, const char *help);
value unsupported(analysis *s, const ast *n);
/* Counts iterations, calls and list elements; false: too many, and s->stopped. */
bool spend(analysis *s, src_range range, uint64_t steps);
/* Counts one turn of a loop whose end nobody knows. */
bool spend_turn(analysis *s, src_range range, const char *help);
/* Is there room for one more operation? Else the same. */
bool may_add_op(analysis *s, src_range range);
/* A value of constant.c: its errors are the kernel's, its elements count. */
value constant_checked(analysis *s, const ast *n, value v);
/* What scope_integer found, or did not: then the kernel is bad. */
value integer_found(analysis *s, bool found, int64_t number);
/* Text is read again from here on, or no longer. */
void set_repeated(analysis *s, bool repeated);
/* The names, and what is declared of them, of a block and of a loop's pass are forgotten where it ends. */
arena_mark names_begin(const analysis *s);
/* `v`: what goes on behind the end, or NULL. The type of a struct in it is among the names: then all of them stay. */
void names_end(const analysis *s, arena_mark before, const value *v);
/* Is there a struct in the value whose parameters are read in names that are forgotten? Lists share their elements, and `v = [v, v]`
 * doubles what there is to look at: of a value of many lists it is taken to be so, which costs memory alone. */
bool holds_names(const analysis *s, const value *v);

/* ---- evaluate.c ---- */

value evaluate(analysis *s, scope *names, const ast *n, const declared *expected);
/* The same; a number, or several, that a loop of the device counts has its loop (value.loop), and says whether an `if` chose it. */
value evaluate_counted(analysis *s, scope *names, const ast *n, const declared *expected);
/* Is it a value that a loop may count? */
bool may_be_counted(const value *v);
/* Of a function that declares `result`; `expected`: of the call, where the function leaves it open. *given: the expression whose value it
 * is; NULL: nobody asks. */
value evaluate_body(analysis *s, scope *names, const ast *body, const declared *result, const declared *expected, const ast **given);

/* ---- block.c ---- */

value evaluate_block(analysis *s, scope *outer, const ast *block, const declared *expected);
/* Does a block end here, by a `return`, `break` or `continue` in it? */
static inline bool is_left(const analysis *s)
{
    return s->returning || s->leaving != LEAVES_NOTHING;
}

/* ---- name.c ---- */

value evaluate_name(analysis *s, scope *names, const ast *path, const char *name, const declared *expected);
/* TrfAddress::Full, AccumulationKind::Interleaved, with any path in front. */
value evaluate_variant(analysis *s, scope *names, const ast *path);
/* Once: what others need again has its value already. An error is reported to each kernel that needs it, since one whose text was not
 * understood may have kept silent. */
value evaluate_const(analysis *s, symbol *y, const ast *path);
/* Integers, conditions, choices and arrays of them: refuses a value that is not of the type that `what` declares. Other types are not
 * looked at. `n`: the expression of the value. */
bool is_of_type(analysis *s, const char *what, const ast *type, const ast *n, const value *v);

/* ---- switch_config.c ---- */

bool is_switch_config(const ast *path);
/* `SwitchConfig::Broadcast01`, of a row without fields. */
value evaluate_switch_name(analysis *s, const ast *path);
/* `SwitchConfig::Broadcast1 { slice1: 4, slice0: 8 }`: each field once, in any order. */
value evaluate_switch_config(analysis *s, scope *names, const ast *n);

/* ---- compound.c ---- */

/* The type of element i of `count` of a tuple, an array or a struct; nothing where that is not known. */
declared part_type(const declared *whole, size_t i, size_t count);
/* A tuple or an array; `expected` has the types of its elements. */
value evaluate_list(analysis *s, scope *names, const ast *n, const declared *expected);
value evaluate_repeat(analysis *s, scope *names, const ast *n);
value evaluate_index(analysis *s, scope *names, const ast *n);
/* The place of a field among those of an AST_STRUCT; of a tuple struct they are "0", "1", ..; -1: there is none. */
int64_t field_find(arena *a, const ast *record, const char *name);
/* The same of the one that `n` names; -1: diagnosed. */
int64_t field_index(analysis *s, const ast *n, const ast *record);
/* The field that `n` names, of a value. */
value field_of(analysis *s, const ast *n, value v);
value evaluate_field(analysis *s, scope *names, const ast *n);
/* A field of a struct literal, `slice1: 4`, or `slice1` for the variable or constant of that name. */
value evaluate_init(analysis *s, scope *names, const ast *init, const declared *expected);
/* That of the literal, of this name; NULL: there is none. */
const ast *init_of(const ast *literal, const char *field);
/* A struct of the file, with all of its fields in the order in which it declares them. */
value evaluate_struct(analysis *s, scope *names, const ast *n, const declared *expected);

/* ---- method.c ---- */

value evaluate_method(analysis *s, scope *names, const ast *n, const declared *expected);

/* ---- assign.c ---- */

value evaluate_assignment(analysis *s, scope *names, const ast *n);

/* ---- pattern.c ---- */

/* Is the pattern one for the value? Diagnoses what is no pattern for it in *wrong. */
bool pattern_fits(analysis *s, scope *names, const ast *pattern, const value *v, bool *wrong);
/* Does a name in a pattern stand for a constant, or `None`, and bind no variable? */
bool pattern_is_constant(scope *names, const ast *pattern);
void bind_pattern(analysis *s, scope *names, const ast *pattern, const value *v, const declared *annotation);

/* ---- branch.c ---- */

/* `Some(v)` and `None` of constants. */
bool option_is(const value *v);
value option_none(void);
value option_some(arena *a, value v);
value option_method(analysis *s, const ast *n, const value *v, const value *args);

value evaluate_if(analysis *s, scope *names, const ast *n, const declared *expected);
value evaluate_match(analysis *s, scope *names, const ast *n, const declared *expected);
value evaluate_for(analysis *s, scope *names, const ast *n);
value evaluate_while(analysis *s, scope *names, const ast *n);
value evaluate_leave(analysis *s, scope *names, const ast *n);
/* After a turn of a loop with this label: does the loop go on? */
bool goes_on(analysis *s, const char *label);
/* A labelled block, whose value a `break` may say. */
value evaluate_labelled(analysis *s, scope *names, const ast *n, const declared *expected);

/* ---- call.c ---- */

value evaluate_call(analysis *s, scope *names, const ast *n, const declared *expected);
/* `Type::f(..)`, which `x.f(..)` stands for: `receiver` is x. */
value evaluate_method_of_type(analysis *s, scope *names, const ast *n, symbol *function, const value *receiver, const declared *expected);
/* The struct that a path names, `P` or `P::<4>` or an alias of it; without a scope where nothing says what its parameters are, without a
 * record where it names none. */
declared own_type(scope *names, const ast *path);
/* The generic parameter of a kernel that has no size: -D gives one. NULL: all have. */
const ast *missing_generic(const ast *fn);
/* The generic parameters of a function, in the scope of its body. `path`: the one it is called by, read in `names`; NULL: it is a kernel.
 * `receiver`: the value whose method it is, or NULL. */
void declare_generics(analysis *s, scope *inner, const ast *fn, scope *names, const ast *path, const value *receiver);

/* ---- ports.c ---- */

/* Are dtype and all mappings of the type known? Diagnoses. */
bool require_whole(analysis *s, const declared *d, const char *what);
void declare_parameter(analysis *s, scope *names, const ast *param);
bool is_tensor_function(scope *names, const ast *fn);
/* What the body gave becomes the kernel's output ports; `given`: the expression that it came from. */
void add_outputs(analysis *s, scope *names, const ast *fn, const ast *given, value v, const declared *result);

/* ---- sema.c ---- */

void collect_items(analysis *s, scope *names, const ast *parent, uint32_t first);
void resolve_uses(analysis *s);
/* `const _: () = assert!(..)`: those that were collected from that one on, for the kernel at hand or for none. */
void read_unnamed(analysis *s, size_t from);

#endif
