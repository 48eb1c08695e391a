/* What is done with each value of a stream before it is stored: `relu(.. + bias[n])`, as passes through the Vector Engine.
 *
 * The one idea: the stream stands once in it, so its operations are a list, and a pass is filled with them in their order: each takes
 * the first unit that can do it and is not passed yet. What has no unit left begins another pass, over values that wait in DM. A fold over
 * slices comes after all units, so it ends its pass; in front of all of them where it is the first operation. */
#ifndef VISA_LIBVISA_TUNE_EPILOGUE_H
#define VISA_LIBVISA_TUNE_EPILOGUE_H

#include "support/arena.h"
#include "support/diag.h"
#include "target/target.h"

typedef enum tune_operator {
    TUNE_ADD,
    TUNE_SUBTRACT,
    TUNE_TIMES,
    TUNE_DIVIDE,
    TUNE_ADD_TIMES, /* operand * value is added, and rounded once */
    TUNE_LARGER,
    TUNE_SMALLER,
    TUNE_EXP,
    TUNE_LOG,
    TUNE_SQRT,
    TUNE_SIN,
    TUNE_COS,
    TUNE_TANH,
    TUNE_SIGMOID,
    TUNE_SILU,
    TUNE_GELU,
    TUNE_SQUARE,
    TUNE_FOLD_ADD, /* over an axis of the stream: what follows is done to what is left */
    TUNE_FOLD_MAX,
    TUNE_FOLD_MIN,
} tune_operator;

typedef struct tune_operation {
    tune_operator what;
    bool reversed;              /* the operand is the first one: 1 - sum */
    const char *operand;        /* a tensor, as a kernel calls it; NULL: `value`, or none */
    double value;               /* beside an operand: what TUNE_ADD_TIMES multiplies it by */
    bool of_sums;               /* in their own type, in front of what is done to them */
    size_t group;               /* of a fold: which of the kernel's axes, whose name is `operand` */
    bool in_slice, over_slices; /* of a fold: where that axis has positions */
    bool is_summed;             /* of a fold: the Reducer has summed what a slice has of it */
} tune_operation;

enum { TUNE_OPERATIONS_MAX = 24, TUNE_PASSES_MAX = TUNE_OPERATIONS_MAX * 3, TUNE_PASS_LINES = 8 };
enum { TUNE_PASS_OPERANDS = 12 };
enum { TUNE_STASH_BYTES = 1024 }; /* of the VRF, while a pass stashes */

/* Methods of a kernel's text, without their dots, in front of a split, in packets of 4, and after them. */
typedef struct tune_lines {
    const char *text[TUNE_PASS_LINES];
    size_t count;
} tune_lines;

typedef struct tune_pass {
    tune_lines front, narrow, back;
    bool stashes;
    const tune_operation *fold;               /* that it ends with, or that divisions and what comes after them follow; NULL: none */
    const char *over_slices;                  /* the operation of that over slices, after everything; NULL: there is none */
    bool slices_first;                        /* in front of everything */
    const char *operands[TUNE_PASS_OPERANDS]; /* tensors that it meets, as a kernel calls them */
    size_t operand_count;
    bool is_gate; /* its values go to the VRF as `gate`, and the pass after it takes what this one took */
} tune_pass;

typedef struct tune_epilogue {
    tune_pass *passes; /* the first one follows the sums; none: the sums are the result */
    size_t count;
    dtype type; /* of what leaves the last one */
} tune_epilogue;

/* Is every operation one of integers? */
bool tune_operations_are_whole(const tune_operation *operations, size_t count);

/* Of sums of a type, for a result of another one; whole: sums are integers, and stay so up to the result. Lives in the arena. */
tune_epilogue tune_epilogue_make(const tune_operation *operations, size_t count, bool whole, dtype sums, dtype out, arena *a);

bool tune_pass_does_anything(const tune_pass *p);
bool tune_pass_meets(const tune_pass *p, const char *operand);
bool tune_epilogue_stashes(const tune_epilogue *e);
bool tune_epilogue_has_gate(const tune_epilogue *e);

#endif
