#include "codegen/reference/gemm.h"

enum { MAX_TILE_VECTORS = 32 };

typedef struct gemm {
    emitter *e;
    const plan_tile *tile;
    int64_t depth;
    gemm_kind kind;
    LLVMTypeRef source, sum; /* scalars */
    LLVMTypeRef source_vector, sum_vector;
    LLVMValueRef c, rows, columns; /* parameters */
    LLVMValueRef c_tile, row_panel, column_panel;
    LLVMValueRef acc[MAX_TILE_VECTORS]; /* [row][vector] */
} gemm;

static LLVMValueRef minimum(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, y, ""), x, y, "");
}

static LLVMValueRef scaled(emitter *e, LLVMValueRef x, int64_t factor)
{
    return LLVMBuildMul(e->b, x, emit_i64(e, factor), "");
}

/* A vector whose address is known to be aligned to its elements only. */
static LLVMValueRef load_vector(gemm *g, LLVMTypeRef vector, LLVMTypeRef item, LLVMValueRef array,
                                LLVMValueRef index)
{
    LLVMValueRef load = LLVMBuildLoad2(g->e->b, vector, emit_item(g->e, item, array, index), "");
    LLVMSetAlignment(load, item == g->e->f64 ? 8 : 4);
    return load;
}

static LLVMValueRef splat(gemm *g, LLVMValueRef scalar)
{
    emitter *e = g->e;
    LLVMTypeRef vector = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)g->tile->lanes);
    LLVMValueRef one = LLVMBuildInsertElement(e->b, LLVMGetPoison(vector), scalar, emit_i32(e, 0), "");
    LLVMValueRef zeros = LLVMConstNull(LLVMVectorType(e->i32, (unsigned)g->tile->lanes));
    return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(vector), zeros, "");
}

static LLVMValueRef multiply_add(gemm *g, LLVMValueRef x, LLVMValueRef y, LLVMValueRef sum)
{
    LLVMBuilderRef b = g->e->b;
    if (g->kind == GEMM_I32)
        return LLVMBuildAdd(b, sum, LLVMBuildMul(b, x, y, ""), "");
    bool exact = g->kind == GEMM_F32_FUSED || g->kind == GEMM_F64;
    if (exact && g->e->fused)
        return emit_intrinsic(g->e, "llvm.fma", (LLVMValueRef[]){x, y, sum}, 3);
    return LLVMBuildFAdd(b, sum, LLVMBuildFMul(b, x, y, ""), "");
}

static LLVMValueRef widened(gemm *g, LLVMValueRef x, LLVMTypeRef to)
{
    return g->kind == GEMM_F64 ? LLVMBuildFPExt(g->e->b, x, to, "") : x;
}

/* One step of depth: the outer product of a row slice and a column slice. */
static void emit_step(gemm *g, LLVMValueRef k, LLVMValueRef *sums)
{
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    LLVMValueRef column[2];
    for (int64_t v = 0; v < t->vectors; v++) {
        LLVMValueRef at = LLVMBuildAdd(e->b, scaled(e, k, t->columns), emit_i64(e, v * t->lanes), "");
        column[v] =
            widened(g, load_vector(g, g->source_vector, g->source, g->column_panel, at), g->sum_vector);
    }
    for (int64_t r = 0; r < t->rows; r++) {
        LLVMValueRef at = LLVMBuildAdd(e->b, scaled(e, k, t->rows), emit_i64(e, r), "");
        LLVMValueRef row = splat(g, widened(g, emit_load(e, g->source, g->row_panel, at), g->sum));
        for (int64_t v = 0; v < t->vectors; v++)
            sums[r * t->vectors + v] = multiply_add(g, row, column[v], g->acc[r * t->vectors + v]);
    }
}

static LLVMValueRef tile_index(gemm *g, int64_t r, int64_t v)
{
    return emit_i64(g->e, r * g->tile->padded_columns + v * g->tile->lanes);
}

/* acc: loaded from C, carried through the depth loop, stored to C */
static void emit_tile(gemm *g, LLVMValueRef depth_first, LLVMValueRef depth_end)
{
    emitter *e = g->e;
    int64_t vectors = g->tile->vectors, count = g->tile->rows * vectors;
    LLVMValueRef start[MAX_TILE_VECTORS], sums[MAX_TILE_VECTORS];
    for (int64_t i = 0; i < count; i++)
        start[i] = load_vector(g, g->sum_vector, g->sum, g->c_tile, tile_index(g, i / vectors, i % vectors));
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    emitter_loop k;
    emit_loop_open(e, &k, depth_first, depth_end, 1);
    for (int64_t i = 0; i < count; i++) {
        g->acc[i] = LLVMBuildPhi(e->b, g->sum_vector, "acc");
        LLVMAddIncoming(g->acc[i], &start[i], &before, 1);
    }
    emit_step(g, k.counter, sums);
    for (int64_t i = 0; i < count; i++)
        LLVMAddIncoming(g->acc[i], &sums[i], &k.body, 1);
    emit_loop_close(e, &k);
    for (int64_t i = 0; i < count; i++) {
        LLVMValueRef at = emit_item(e, g->sum, g->c_tile, tile_index(g, i / vectors, i % vectors));
        LLVMSetAlignment(LLVMBuildStore(e->b, sums[i], at), g->sum == e->f64 ? 8 : 4);
    }
}

/* All row tiles of a block against one column panel, which stays in the nearest cache. */
static void emit_row_tiles(gemm *g, LLVMValueRef first, LLVMValueRef end, LLVMValueRef column_tile,
                           LLVMValueRef depth_first, LLVMValueRef depth_end)
{
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    emitter_loop row;
    emit_loop_open(e, &row, first, end, 1);
    g->row_panel = emit_item(e, g->source, g->rows, scaled(e, row.counter, t->rows * g->depth));
    LLVMValueRef corner = LLVMBuildAdd(e->b, scaled(e, row.counter, t->rows * t->padded_columns),
                                       scaled(e, column_tile, t->columns), "");
    g->c_tile = emit_item(e, g->sum, g->c, corner);
    emit_tile(g, depth_first, depth_end);
    emit_loop_close(e, &row);
}

static void emit_blocks(gemm *g)
{
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    LLVMValueRef row_tiles = emit_i64(e, t->padded_rows / t->rows), depth = emit_i64(e, g->depth);
    emitter_loop block, rows, column;
    emit_loop_open(e, &block, emit_i64(e, 0), depth, t->depth_block);
    LLVMValueRef depth_end =
        minimum(e, LLVMBuildAdd(e->b, block.counter, emit_i64(e, t->depth_block), ""), depth);
    emit_loop_open(e, &rows, emit_i64(e, 0), row_tiles, t->row_block_tiles);
    LLVMValueRef rows_end =
        minimum(e, LLVMBuildAdd(e->b, rows.counter, emit_i64(e, t->row_block_tiles), ""), row_tiles);
    emit_loop_open(e, &column, emit_i64(e, 0), emit_i64(e, t->padded_columns / t->columns), 1);
    g->column_panel = emit_item(e, g->source, g->columns, scaled(e, column.counter, t->columns * g->depth));
    emit_row_tiles(g, rows.counter, rows_end, column.counter, block.counter, depth_end);
    emit_loop_close(e, &column);
    emit_loop_close(e, &rows);
    emit_loop_close(e, &block);
}

gemm_function emit_gemm(emitter *e, const plan_statement *s, gemm_kind kind, const char *name)
{
    gemm_function f = {.kind = kind};
    gemm g = {.e = e, .tile = &s->tile, .depth = s->digits[PLAN_DEPTH].combinations, .kind = kind};
    g.source = kind == GEMM_I32 ? e->i32 : e->f32;
    g.sum = kind == GEMM_F64 ? e->f64 : g.source;
    g.source_vector = LLVMVectorType(g.source, (unsigned)s->tile.lanes);
    g.sum_vector = LLVMVectorType(g.sum, (unsigned)s->tile.lanes);
    emit_function(e, name, 3, &f.type);
    f.function = e->function;
    g.c = LLVMGetParam(f.function, 0);
    g.rows = LLVMGetParam(f.function, 1);
    g.columns = LLVMGetParam(f.function, 2);
    emit_blocks(&g);
    emit_function_end(e);
    return f;
}
