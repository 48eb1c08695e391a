/* The tiled matrix product: where it is used once, in place, and else as an IR function of its own.
 *
 * The one idea: a tile of C stays in registers while depth advances by units; each step takes the column vectors of a unit and one
 * broadcast row value per tile row, or the whole tile goes through the CPU's tile registers. The code is tiled and unrolled as it
 * is emitted: no optimisation pass has to find anything. */
#ifndef VISA_CODEGEN_REFERENCE_GEMM_H
#define VISA_CODEGEN_REFERENCE_GEMM_H

#include "codegen/reference/emitter.h"

typedef struct gemm_tiles {
    LLVMValueRef rows, columns, rest; /* rest: i1, where there is one */
} gemm_tiles;

/* C[rows][line] and panels of R and S (plan_tile) that follow each other. At least one tile of rows and of columns. */
typedef struct gemm_operands {
    LLVMValueRef c, r, s, kept;    /* kept: where a tile's columns are kept; of a tile that keeps none, unused */
    LLVMValueRef apart;            /* a row tile that is elsewhere, where it is among them; NULL: none is */
    LLVMValueRef apart_c, apart_r; /* where; NULL: with the others */
    gemm_tiles tiles;
} gemm_operands;

/* C = R * S, here. `rest`, NULL or a tile of fewer columns: they come after the column tiles, of which there may be none then, where
 * tiles.rest holds. */
void emit_gemm_here(emitter *e, const plan_tile *tile, const plan_tile *rest, int64_t line, const gemm_operands *operands);

typedef struct gemm_function {
    LLVMValueRef function;
    LLVMTypeRef type;
    const plan_tile *tile;
} gemm_function;

/* void f(C, R, S, row tiles, column tiles): C += R * S. */
gemm_function emit_gemm(emitter *e, const plan_tile *tile, const char *name);
/* These tiles of it, at least one of rows and of columns; c, r and s are where the first ones of all are. */
void emit_gemm_call(emitter *e, const gemm_function *f, LLVMValueRef c, LLVMValueRef r, LLVMValueRef s, tile_range rows,
                    tile_range columns);

/* Around all products of a statement and what is packed for them: shaping the tile registers takes as long as a 32-cube in them, next to
 * other work. */
void emit_gemm_begin(emitter *e, const plan_tile *tile);
void emit_gemm_end(emitter *e, const plan_tile *tile);

/* Bytes of a sum in C. */
int64_t gemm_sum_bytes(plan_product product);
/* What C holds: sums, or codes of the destination. */
LLVMTypeRef gemm_result_type(emitter *e, const plan_tile *tile);

/* What the sums of a pass over units are added to. */
typedef enum gemm_start {
    START_ZERO,
    START_ZERO_FIRST, /* in the first pass; then to C */
    START_C,
} gemm_start;

/* Where a tile's columns are read. */
typedef enum gemm_columns {
    COLUMNS_PANEL,
    COLUMNS_IN_PLACE,
    COLUMNS_KEEPING, /* in place, and stored for the row tiles after this one */
    COLUMNS_KEPT,
} gemm_columns;

/* What a kernel of either kind fills in: a tile of C, for the units [first, end) of its panels. */
typedef struct gemm {
    emitter *e;
    const plan_tile *tile;
    int64_t line;
    gemm_start start;
    LLVMValueRef c_tile, row_panel, column_panel;
    gemm_columns columns;
    LLVMValueRef kept;                  /* of columns that are read in place */
    LLVMValueRef row_tile, column_tile; /* numbers in the block */
} gemm;

void emit_vector_tile(gemm *g, LLVMValueRef first, LLVMValueRef end);
/* All units. */
void emit_depth_tile(gemm *g);
void emit_register_tile(gemm *g, LLVMValueRef first, LLVMValueRef end);

#endif
