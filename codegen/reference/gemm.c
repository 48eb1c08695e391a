#include "codegen/reference/gemm.h"

#include "codegen/reference/convert.h"

int64_t gemm_sum_bytes(plan_product product)
{
    return product == PRODUCT_F64 ? 8 : 4;
}

LLVMTypeRef gemm_result_type(emitter *e, const plan_tile *tile)
{
    return tile->narrows ? emit_code_type(e, tile->code) : tile->product == PRODUCT_F64 ? e->f64 : e->i32;
}

/* ---- the tile registers' shape ---- */

enum { TILE_LINES = 16, TILE_LINE_BYTES = 64, TILE_REGISTERS = 8, TILE_SHAPE_BYTES = 64 };

/* All eight registers hold 16 lines of 64 bytes. */
static LLVMValueRef register_shape(emitter *e)
{
    static const char name[] = "tile_registers";
    LLVMValueRef shape = LLVMGetNamedGlobal(e->module, name);
    if (shape)
        return shape;
    enum { PALETTE = 0, LINE_BYTES = 16, LINES = 48 };
    char bytes[TILE_SHAPE_BYTES] = {[PALETTE] = 1};
    for (int i = 0; i < TILE_REGISTERS; i++) {
        bytes[LINE_BYTES + 2 * i] = TILE_LINE_BYTES;
        bytes[LINES + i] = TILE_LINES;
    }
    LLVMValueRef text = LLVMConstStringInContext(e->context, bytes, TILE_SHAPE_BYTES, true);
    shape = LLVMAddGlobal(e->module, LLVMTypeOf(text), name);
    LLVMSetInitializer(shape, text);
    LLVMSetGlobalConstant(shape, true);
    LLVMSetLinkage(shape, LLVMPrivateLinkage);
    LLVMSetAlignment(shape, TILE_SHAPE_BYTES);
    return shape;
}

/* ---- blocks ---- */

/* Of the tile that is apart, the other place. */
static LLVMValueRef tile_place(const gemm_operands *at, emitter *e, LLVMValueRef number, LLVMValueRef apart, LLVMValueRef place)
{
    return at->apart && apart ? LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, number, at->apart, ""), apart, place, "") : place;
}

static void emit_row_tile(gemm *g, const gemm_operands *at, LLVMValueRef number, LLVMValueRef first, LLVMValueRef end)
{
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    LLVMTypeRef result = gemm_result_type(e, t);
    g->row_tile = number;
    g->row_panel = tile_place(at, e, number, at->apart_r, emit_item(e, e->i32, at->r, emit_scaled(e, number, plan_row_tile_units(t))));
    g->c_tile = tile_place(at, e, number, at->apart_c, emit_item(e, result, at->c, emit_scaled(e, number, t->rows * g->line)));
    if (plan_in_tile_registers(t))
        emit_register_tile(g, first, end);
    else if (t->along_depth)
        emit_depth_tile(g);
    else
        emit_vector_tile(g, first, end);
}

/* All row tiles against one column panel, which stays in the nearest cache. */
static void emit_row_tiles(gemm *g, const gemm_operands *at, LLVMValueRef first, LLVMValueRef end)
{
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    emitter_loop row;
    LLVMValueRef next = emit_i64(e, 0);
    LLVMBasicBlockRef after = NULL;
    g->columns = t->columns_in_place ? COLUMNS_IN_PLACE : COLUMNS_PANEL;
    if (t->columns_kept) {
        g->columns = COLUMNS_KEEPING;
        emit_row_tile(g, at, next, first, end);
        g->columns = COLUMNS_KEPT;
        next = emit_i64(e, 1);
        after = emit_if_some(e, next, at->tiles.rows);
    }
    emit_loop_open(e, &row, next, at->tiles.rows, 1);
    emit_row_tile(g, at, row.counter, first, end);
    emit_loop_close(e, &row);
    emit_if_end(e, after);
}

/* The units of depth from `first` to `end` of a column tile; the panels are those of `whole` tiles, of which it may be the rest. */
static void emit_column_tile(gemm *g, const gemm_operands *at, const plan_tile *whole, LLVMValueRef column, LLVMValueRef first,
                             LLVMValueRef end)
{
    emitter *e = g->e;
    gemm_operands here = *at;
    LLVMTypeRef result = gemm_result_type(e, whole);
    LLVMValueRef columns = emit_scaled(e, column, whole->columns);
    g->column_tile = column;
    g->column_panel = whole->columns_in_place ? emit_item(e, emit_code_type(e, whole->column_type), at->s,
                                                          emit_scaled(e, column, whole->columns * plan_column_step(whole)))
                                              : emit_item(e, e->i32, at->s, emit_scaled(e, column, whole->columns * whole->units));
    here.c = emit_item(e, result, at->c, columns);
    here.apart_c = at->apart_c ? emit_item(e, result, at->apart_c, columns) : NULL;
    emit_row_tiles(g, &here, first, end);
}

static void emit_blocks(gemm *g, const plan_tile *rest, const gemm_operands *at)
{
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    emitter_loop block, column;
    LLVMValueRef none = emit_i64(e, 0), columns = at->tiles.columns;
    g->kept = at->kept;
    LLVMValueRef units = emit_i64(e, plan_looped_units(t));
    emit_loop_open(e, &block, none, units, t->depth_block);
    LLVMValueRef end = emit_least(e, emit_plus(e, block.counter, t->depth_block), units);
    LLVMBasicBlockRef after = rest ? emit_if_some(e, none, columns) : NULL;
    emit_loop_open(e, &column, none, columns, 1);
    emit_column_tile(g, at, t, column.counter, block.counter, end);
    emit_loop_close(e, &column);
    emit_if_end(e, after);
    if (rest) {
        gemm last = *g;
        last.tile = rest;
        after = emit_if(e, at->tiles.rest);
        emit_column_tile(&last, at, t, columns, block.counter, end);
        emit_if_end(e, after);
    }
    emit_loop_close(e, &block);
}

void emit_gemm_here(emitter *e, const plan_tile *tile, const plan_tile *rest, int64_t line, const gemm_operands *operands)
{
    gemm g = {.e = e, .tile = tile, .line = line, .start = tile->one_pass ? START_ZERO : START_ZERO_FIRST};
    emit_blocks(&g, rest, operands);
}

gemm_function emit_gemm(emitter *e, const plan_tile *tile, const char *name)
{
    enum { POINTERS = 3, INTEGERS = 2 };
    gemm_function f = {.tile = tile};
    gemm g = {.e = e, .tile = tile, .line = tile->padded_columns, .start = START_C};
    emit_function(e, name, POINTERS, INTEGERS, &f.type);
    f.function = e->function;
    gemm_operands at = {.c = LLVMGetParam(f.function, 0), .r = LLVMGetParam(f.function, 1), .s = LLVMGetParam(f.function, 2)};
    at.tiles = (gemm_tiles){.rows = LLVMGetParam(f.function, POINTERS), .columns = LLVMGetParam(f.function, POINTERS + 1)};
    emit_blocks(&g, NULL, &at);
    emit_function_end(e);
    return f;
}

void emit_gemm_call(emitter *e, const gemm_function *f, LLVMValueRef c, LLVMValueRef r, LLVMValueRef s, tile_range rows, tile_range columns)
{
    const plan_tile *t = f->tile;
    LLVMValueRef sums =
        LLVMBuildAdd(e->b, emit_scaled(e, rows.first, t->rows * t->padded_columns), emit_scaled(e, columns.first, t->columns), "");
    LLVMValueRef args[] = {emit_item(e, e->i8, c, emit_scaled(e, sums, gemm_sum_bytes(t->product))),
                           emit_item(e, e->i32, r, emit_scaled(e, rows.first, plan_row_tile_units(t))),
                           emit_item(e, e->i32, s, emit_scaled(e, columns.first, t->columns * t->units)),
                           LLVMBuildSub(e->b, rows.end, rows.first, ""), LLVMBuildSub(e->b, columns.end, columns.first, "")};
    LLVMBuildCall2(e->b, f->type, f->function, args, sizeof args / sizeof *args, "");
}

/* A short product leaves the registers shaped: reading the shape takes a ninth of the time of setting it, and the next call finds it.
 * Between long ones they are released, because a switch of threads saves what they hold. */
static bool stays_shaped(const emitter *e)
{
    enum { SHORT_CLOCKS = 10000 };
    return plan_clocks(e->statement) < SHORT_CLOCKS;
}

/* i1: have the registers another shape? */
static LLVMValueRef has_other_shape(emitter *e, LLVMValueRef shape)
{
    enum { WORDS = TILE_SHAPE_BYTES / 8 };
    LLVMTypeRef words = emit_vector_type(e->i64, WORDS);
    LLVMValueRef now = emit_stack(e, TILE_SHAPE_BYTES, TILE_SHAPE_BYTES);
    emit_plain_intrinsic(e, "llvm.x86.sttilecfg", &now, 1);
    LLVMValueRef differs = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildLoad2(e->b, words, now, ""), LLVMBuildLoad2(e->b, words, shape, ""), "");
    LLVMTypeRef mask = LLVMIntTypeInContext(e->context, WORDS);
    return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, differs, mask, ""), LLVMConstInt(mask, 0, false), "");
}

void emit_gemm_begin(emitter *e, const plan_tile *tile)
{
    if (!plan_in_tile_registers(tile))
        return;
    LLVMValueRef shape = register_shape(e);
    LLVMBasicBlockRef after = emit_if(e, stays_shaped(e) ? has_other_shape(e, shape) : NULL);
    emit_plain_intrinsic(e, "llvm.x86.ldtilecfg", &shape, 1);
    emit_if_end(e, after);
}

void emit_gemm_end(emitter *e, const plan_tile *tile)
{
    if (plan_in_tile_registers(tile) && !stays_shaped(e))
        emit_plain_intrinsic(e, "llvm.x86.tilerelease", NULL, 0);
}

/* ---- tile registers ---- */

static LLVMValueRef tile_number(emitter *e, int number)
{
    return LLVMConstInt(e->i8, (unsigned long long)number, false);
}

/* Lines of a register in memory: `line` 32-bit values apart. */
static void move_tile(emitter *e, const char *name, int number, LLVMValueRef array, LLVMValueRef at, int64_t line)
{
    LLVMValueRef args[] = {tile_number(e, number), emit_item(e, e->i32, array, at), emit_i64(e, line * 4)};
    emit_plain_intrinsic(e, name, args, 3);
}

static void move_sums(gemm *g, const char *name, int row, int column)
{
    LLVMValueRef at = emit_i64(g->e, row * TILE_LINES * g->line + column * TILE_LINES);
    move_tile(g->e, name, 2 * row + column, g->c_tile, at, g->line);
}

static void zero_sums(gemm *g, int row, int column)
{
    LLVMValueRef number = tile_number(g->e, 2 * row + column);
    emit_plain_intrinsic(g->e, "llvm.x86.tilezero", &number, 1);
}

static void begin_sums(gemm *g, LLVMValueRef first, int rows, int columns)
{
    emitter *e = g->e;
    for (int i = 0; g->start != START_C && i < rows * columns; i++)
        zero_sums(g, i / columns, i % columns);
    if (g->start == START_ZERO)
        return;
    LLVMBasicBlockRef after = emit_if(e, g->start == START_C ? NULL : LLVMBuildICmp(e->b, LLVMIntNE, first, emit_i64(e, 0), ""));
    for (int i = 0; i < rows * columns; i++)
        move_sums(g, "llvm.x86.tileloadd64", i / columns, i % columns);
    emit_if_end(e, after);
}

/* Registers 0 to 3 sum, 4 and 5 hold rows, 6 and 7 columns. */
void emit_register_tile(gemm *g, LLVMValueRef first, LLVMValueRef end)
{
    enum { ROWS = 4, COLUMNS = 6 };
    emitter *e = g->e;
    const plan_tile *t = g->tile;
    const char *product = t->product == PRODUCT_I8_TILES ? "llvm.x86.tdpbssd" : "llvm.x86.tdpbf16ps";
    int rows = (int)(t->rows / TILE_LINES), columns = (int)t->vectors;
    begin_sums(g, first, rows, columns);
    emitter_loop unit;
    emit_loop_open(e, &unit, first, end, t->unit_block);
    for (int c = 0; c < columns; c++)
        move_tile(e, "llvm.x86.tileloadd64", COLUMNS + c, g->column_panel,
                  emit_plus(e, emit_scaled(e, unit.counter, t->columns), c * TILE_LINES), t->columns);
    for (int r = 0; r < rows; r++)
        move_tile(e, "llvm.x86.tileloadd64", ROWS + r, g->row_panel,
                  emit_plus(e, emit_scaled(e, unit.counter, t->rows_in_place ? 1 : t->rows), r * TILE_LINES * t->row_line), t->row_line);
    for (int i = 0; i < rows * columns; i++) {
        int r = i / columns, c = i % columns;
        LLVMValueRef args[] = {tile_number(e, 2 * r + c), tile_number(e, ROWS + r), tile_number(e, COLUMNS + c)};
        emit_plain_intrinsic(e, product, args, 3);
    }
    emit_loop_close(e, &unit);
    for (int i = 0; i < rows * columns; i++)
        move_sums(g, "llvm.x86.tilestored64", i / columns, i % columns);
}
