/* Loops over digits, in LLVM IR.
 *
 * The one idea: the emitter keeps the stack of digits whose loops are open. Every address, coordinate and
 * guard is a sum over that stack in loop order, so that LLVM hoists each prefix to the loop in which it is
 * constant; no address is computed by hand anywhere else. */
#ifndef VISA_CODEGEN_REFERENCE_EMITTER_H
#define VISA_CODEGEN_REFERENCE_EMITTER_H

#include <llvm-c/Core.h>

#include "codegen/reference/plan.h"

/* A counted loop that runs at least once. */
typedef struct emitter_loop {
    LLVMBasicBlockRef body; /* NULL: it is known to run once, and there is no loop */
    LLVMBasicBlockRef before;
    LLVMValueRef counter, end;
    int64_t step;
} emitter_loop;

typedef struct emitter_digit {
    einsum_digit digit;
    emitter_loop loop;
} emitter_digit;

typedef struct emitter {
    const reference_plan *plan;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMValueRef function; /* under construction */
    LLVMTypeRef void_type, i1, i8, i16, i32, i64, f32, f64, ptr;
    bool fused;                      /* the CPU multiplies and adds at once */
    const plan_statement *statement; /* being generated */
    LLVMValueRef base[PLAN_SIDES];   /* of its operands; NULL: none */
    emitter_digit open[PLAN_MAX_DIGITS];
    unsigned open_count;
} emitter;

void emitter_init(emitter *e, const reference_plan *plan, LLVMContextRef llvm, LLVMModuleRef module);
void emitter_free(emitter *e);

/* Constants. */
LLVMValueRef emit_i32(emitter *e, int64_t value);
LLVMValueRef emit_i64(emitter *e, int64_t value);
LLVMValueRef emit_f32(emitter *e, double value);
LLVMValueRef emit_f64(emitter *e, double value);

/* The same number in every lane of something like x. */
LLVMValueRef emit_i32_like(emitter *e, LLVMValueRef x, int64_t value);
LLVMValueRef emit_f32_like(emitter *e, LLVMValueRef x, double value);
LLVMValueRef emit_f64_like(emitter *e, LLVMValueRef x, double value);
/* The scalar type, or a vector of it with as many lanes as x has. */
LLVMTypeRef emit_type_like(emitter *e, LLVMValueRef x, LLVMTypeRef scalar);
LLVMTypeRef emit_vector_type(LLVMTypeRef scalar, int64_t lanes);
/* A scalar in every lane. */
LLVMValueRef emit_splat(emitter *e, LLVMValueRef scalar, int64_t lanes);
/* Lanes of a and b, numbered on from a's. */
LLVMValueRef emit_shuffle(emitter *e, LLVMValueRef a, LLVMValueRef b, const int *lanes, unsigned count);

/* a0 b0 a1 b1 .. */
LLVMValueRef emit_interleaved(emitter *e, LLVMValueRef a, LLVMValueRef b);
/* One after the other. */
LLVMValueRef emit_side_by_side(emitter *e, LLVMValueRef a, LLVMValueRef b);

/* A call of an overloaded intrinsic ("llvm.fabs") at the type of its arguments. */
LLVMValueRef emit_intrinsic(emitter *e, const char *name, LLVMValueRef *args, unsigned count);

/* A call of an intrinsic that has one type. */
LLVMValueRef emit_plain_intrinsic(emitter *e, const char *name, LLVMValueRef *args, unsigned count);

/* Opens an internal function of so many pointers that do not alias, and then so many i64, at its entry block. */
void emit_function(emitter *e, const char *name, unsigned pointers, unsigned integers, LLVMTypeRef *type);
void emit_function_end(emitter *e);
/* Storage that lasts as long as the function runs; the same in every round of a loop. */
LLVMValueRef emit_stack(emitter *e, int64_t bytes, unsigned alignment);

/* for (counter = first; counter < end; counter += step); first < end always. Step 0: where it goes on is decided at its end. */
void emit_loop_open(emitter *e, emitter_loop *l, LLVMValueRef first, LLVMValueRef end, int64_t step);
void emit_loop_close(emitter *e, emitter_loop *l);
/* With the number to go on at. */
void emit_loop_close_at(emitter *e, emitter_loop *l, LLVMValueRef next);

/* Skips to the matching end unless the condition holds; a NULL condition always holds. NULL: nothing is skipped. */
LLVMBasicBlockRef emit_if(emitter *e, LLVMValueRef condition);
void emit_if_end(emitter *e, LLVMBasicBlockRef after);
/* A block ends, and the next one follows. Code that is not optimised (compilation.c) is selected block by block. */
void emit_block(emitter *e);

LLVMValueRef emit_least(emitter *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_most(emitter *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_scaled(emitter *e, LLVMValueRef x, int64_t factor);
LLVMValueRef emit_plus(emitter *e, LLVMValueRef x, int64_t number);
/* first < end, where a loop from first to end must run once at least */
LLVMBasicBlockRef emit_if_some(emitter *e, LLVMValueRef first, LLVMValueRef end);

/* Tiles from `first` to `end`. */
typedef struct tile_range {
    LLVMValueRef first, end;
} tile_range;

void emit_digits_open(emitter *e, const plan_digits *digits);
void emit_digits_close(emitter *e, const plan_digits *digits);
/* The same for their combinations from `first` to `end`, numbered row-major; no loops to close where they are no digits. */
void emit_digits_open_part(emitter *e, const plan_digits *digits, LLVMValueRef first, LLVMValueRef end, emitter_loop *l);
void emit_digits_close_part(emitter *e, const plan_digits *digits, emitter_loop *l);
/* The open digits from number `first` on as one row-major index. */
LLVMValueRef emit_digits_index(emitter *e, unsigned first);
/* Element of the tensor at the coordinates of the open digits. */
LLVMValueRef emit_tensor_offset(emitter *e, uint32_t tensor, einsum_side side);
/* What the digits of a group, taken as one row-major index, add to it. */
LLVMValueRef emit_group_offset(emitter *e, uint32_t tensor, einsum_side side, const plan_digits *digits, LLVMValueRef index);
/* To the front of the open loops in which an operand stays the same: what is read of it there is read once. Nothing that the loops write
 * may be that operand. Gives where the builder was, which emit_inside goes back to. */
LLVMBasicBlockRef emit_outside(emitter *e, uint32_t tensor, einsum_side side);
void emit_inside(emitter *e, LLVMBasicBlockRef here);
/* i1: every coordinate is inside its axis; NULL when no open digit can leave it. */
LLVMValueRef emit_guard(emitter *e);
/* Does the tensor hold the element where windows have borders? NULL: it does. */
LLVMValueRef emit_border(emitter *e, uint32_t tensor, einsum_side side);
/* The same, and does the tensor hold the element there? Where it does not, the element is zero. */
LLVMValueRef emit_source_guard(emitter *e, uint32_t tensor, einsum_side side);

/* The first `live` lanes of a vector; the others are 0, and are not read. */
LLVMValueRef emit_part_load(emitter *e, LLVMTypeRef type, LLVMValueRef from, unsigned alignment, int64_t live);
/* The others stay what they are. The machine has masks, or all are stored. */
/* The same, where a vector's elements before the last one that is live exist: read together with those before them. */
LLVMValueRef emit_last_load(emitter *e, LLVMTypeRef type, LLVMValueRef from, unsigned alignment, int64_t live);
void emit_part_store(emitter *e, LLVMValueRef value, LLVMValueRef to, unsigned alignment, int64_t live);

/* The same pointer, whose making LLVM does not look into: what lies a constant further is found by that constant, and the pass that reduces
 * the strength of loops does not weigh each such place by itself, which is a quarter of the time it takes to compile. */
LLVMValueRef emit_opaque(emitter *e, LLVMValueRef pointer);

/* Pointer to item `index` of an array of `type`. */
LLVMValueRef emit_item(emitter *e, LLVMTypeRef type, LLVMValueRef array, LLVMValueRef index);
LLVMValueRef emit_load(emitter *e, LLVMTypeRef type, LLVMValueRef array, LLVMValueRef index);
void emit_store(emitter *e, LLVMValueRef value, LLVMValueRef array, LLVMValueRef index);

#endif
