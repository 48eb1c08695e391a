/* A tile whose lanes are neighbours in depth: each sum is a vector of partial sums, which are added up at the end. Nothing is packed
 * or transposed; a source's own lines are read. */
#include "codegen/reference/convert.h"
#include "codegen/reference/gemm.h"
#include "codegen/reference/product.h"

enum { MOST_SUMS = 32, MOST_LINES = 8, WIDEST = 16 };

typedef struct depth_tile {
    gemm *g;
    emitter *e;
    const plan_tile *tile;
    LLVMValueRef column;          /* the first one of a group */
    int64_t columns;              /* of the group */
    int64_t chains;               /* sums of each row and column that do not wait for each other */
    LLVMValueRef sums[MOST_SUMS]; /* [row][column][chain], and then a correction for each column and chain */
} depth_tile;

static bool corrects(const depth_tile *d)
{
    return d->tile->product == PRODUCT_I8_DOT;
}

static int64_t sum_count(const depth_tile *d)
{
    return (d->tile->rows + corrects(d)) * d->columns * d->chains;
}

/* Units of a line from item k on, of which `live` items exist. */
static LLVMValueRef line_units(const depth_tile *d, LLVMValueRef source, dtype type, LLVMValueRef line, LLVMValueRef k, int64_t live)
{
    emitter *e = d->e;
    LLVMTypeRef code = emit_code_type(e, type);
    LLVMValueRef from = emit_item(e, code, emit_item(e, code, source, line), k);
    LLVMValueRef codes = emit_part_load(e, emit_vector_type(code, d->tile->lanes * d->tile->per), from, 1, live);
    return product_units(e, d->tile, type, codes);
}

/* A vector of depth from item k on, added to one chain. */
static void add_vector(depth_tile *d, LLVMValueRef k, int64_t live, int64_t chain)
{
    emitter *e = d->e;
    const plan_tile *t = d->tile;
    LLVMValueRef columns[MOST_LINES], offset = emit_splat(e, LLVMConstInt(e->i32, 0x80808080, false), t->lanes);
    for (int64_t c = 0; c < d->columns; c++)
        columns[c] = line_units(d, d->g->column_panel, t->column_type, emit_scaled(e, emit_plus(e, d->column, c), t->column_line), k, live);
    for (int64_t r = 0; r < t->rows + corrects(d); r++) {
        LLVMValueRef row = offset;
        if (r < t->rows)
            row = line_units(d, d->g->row_panel, t->row_type, emit_i64(e, r * t->row_line), k, live);
        if (r < t->rows && corrects(d))
            row = LLVMBuildXor(e->b, row, offset, "");
        for (int64_t c = 0; c < d->columns; c++) {
            LLVMValueRef *sum = &d->sums[(r * d->columns + c) * d->chains + chain];
            *sum = product_add(e, t, *sum, row, columns[c]);
        }
    }
}

static LLVMValueRef plus(const depth_tile *d, LLVMValueRef x, LLVMValueRef y)
{
    bool floats = LLVMGetTypeKind(product_sum_type(d->e, d->tile)) == LLVMFloatTypeKind;
    return floats ? LLVMBuildFAdd(d->e->b, x, y, "") : LLVMBuildAdd(d->e->b, x, y, "");
}

/* The lanes of a vector as one sum, halves upon halves; of little depth, some have none. */
static LLVMValueRef sum_of_lanes(const depth_tile *d, LLVMValueRef v)
{
    emitter *e = d->e;
    int64_t live = (d->tile->depth_items + d->tile->per - 1) / d->tile->per;
    for (int64_t half = d->tile->lanes / 2; half > 0; half /= 2) {
        int low[WIDEST], high[WIDEST];
        for (int i = 0; i < half; i++) {
            low[i] = i;
            high[i] = (int)half + i;
        }
        LLVMValueRef sum = emit_shuffle(e, v, v, low, (unsigned)half);
        v = live > half ? plus(d, sum, emit_shuffle(e, v, v, high, (unsigned)half)) : sum;
    }
    return LLVMBuildExtractElement(e->b, v, emit_i32(e, 0), "");
}

static LLVMValueRef chains_summed(const depth_tile *d, int64_t row, int64_t column)
{
    const LLVMValueRef *chain = &d->sums[(row * d->columns + column) * d->chains];
    LLVMValueRef sum = chain[0];
    for (int64_t i = 1; i < d->chains; i++)
        sum = plus(d, sum, chain[i]);
    return sum;
}

static void store_sums(const depth_tile *d)
{
    emitter *e = d->e;
    for (int64_t r = 0; r < d->tile->rows; r++)
        for (int64_t c = 0; c < d->columns; c++) {
            LLVMValueRef sum = chains_summed(d, r, c);
            if (corrects(d))
                sum = LLVMBuildSub(e->b, sum, chains_summed(d, d->tile->rows, c), "");
            LLVMValueRef to = emit_item(e, product_sum_type(e, d->tile), d->g->c_tile, emit_plus(e, d->column, r * d->g->line + c));
            LLVMSetAlignment(LLVMBuildStore(e->b, sum_of_lanes(d, sum), to), 4);
        }
}

/* All of depth for a group of columns: a loop over as many vectors as there are chains, and the rest of depth after it. */
static void emit_group(depth_tile *d)
{
    emitter *e = d->e;
    const plan_tile *t = d->tile;
    int64_t items = t->lanes * t->per, step = items * d->chains, looped = t->depth_items / step * step;
    LLVMValueRef zero = LLVMConstNull(emit_vector_type(product_sum_type(e, t), t->lanes)), phi[MOST_SUMS];
    int64_t count = sum_count(d);
    for (int64_t i = 0; i < count; i++)
        d->sums[i] = zero;
    if (looped > 0) {
        LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
        emitter_loop k;
        emit_loop_open(e, &k, emit_i64(e, 0), emit_i64(e, looped), step);
        for (int64_t i = 0; k.body && i < count; i++) {
            d->sums[i] = phi[i] = LLVMBuildPhi(e->b, LLVMTypeOf(zero), "sum");
            LLVMAddIncoming(phi[i], &zero, &before, 1);
        }
        for (int64_t i = 0; i < d->chains; i++)
            add_vector(d, emit_plus(e, k.counter, i * items), items, i);
        for (int64_t i = 0; k.body && i < count; i++)
            LLVMAddIncoming(phi[i], &d->sums[i], &k.body, 1);
        emit_loop_close(e, &k);
    }
    for (int64_t k = looped, chain = 0; k < t->depth_items; k += items, chain++)
        add_vector(d, emit_i64(e, k), k + items <= t->depth_items ? items : t->depth_items - k, chain);
    store_sums(d);
}

static void begin_group(depth_tile *d, LLVMValueRef first, int64_t columns)
{
    enum { FEWEST_SUMS = 8 };
    const plan_tile *t = d->tile;
    d->column = first;
    d->columns = columns;
    d->chains = 1;
    while (2 * d->chains * t->rows * columns <= FEWEST_SUMS && 2 * d->chains * t->lanes * t->per <= t->depth_items)
        d->chains *= 2;
}

void emit_depth_tile(gemm *g)
{
    depth_tile d = {.g = g, .e = g->e, .tile = g->tile};
    int64_t group = g->tile->column_group, whole = g->tile->live_columns / group * group;
    if (whole > 0) {
        emitter_loop column;
        emit_loop_open(g->e, &column, emit_i64(g->e, 0), emit_i64(g->e, whole), group);
        begin_group(&d, column.counter, group);
        emit_group(&d);
        emit_loop_close(g->e, &column);
    }
    if (whole < g->tile->live_columns) {
        begin_group(&d, emit_i64(g->e, whole), g->tile->live_columns - whole);
        emit_group(&d);
    }
}
