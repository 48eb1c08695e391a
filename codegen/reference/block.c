#include "codegen/reference/block.h"

#include "codegen/reference/convert.h"
#include "codegen/reference/epilogue.h"

static tile_range range_of(const block_form *f, plan_range which)
{
    return (tile_range){f->first[which], f->end[which]};
}

/* ---- storing a block ---- */

typedef struct block {
    const block_form *f;
    tile_range rows, columns;
    LLVMValueRef base; /* element of the destination, from the batch digits */
    /* Are they the last tile, of which a part exists? NULL: that makes no difference. */
    LLVMValueRef rest_rows, rest_columns;
    LLVMValueRef sums;
} block;

/* Tiles of which all rows exist. */
static int64_t whole_row_tiles(const plan_statement *s)
{
    return s->digits[PLAN_ROW].combinations / s->block_tile.rows;
}

static int64_t all_row_tiles(const plan_statement *s)
{
    return s->block_tile.padded_rows / s->block_tile.rows;
}

static int64_t whole_column_tiles(const plan_statement *s)
{
    return s->digits[PLAN_COLUMN].combinations / s->block_tile.columns;
}

static int64_t all_column_tiles(const plan_statement *s)
{
    return s->block_tile.padded_columns / s->block_tile.columns;
}

/* Is the last row tile, of which a part exists, not where the others are? */
static bool rest_is_apart(const plan_statement *s)
{
    return (s->block_tile.rows_in_place || s->sums_in_place) && whole_row_tiles(s) < all_row_tiles(s);
}

/* Where columns are kept, it is in the block of the others, since another one would keep them again. Else it has its own: there to choose
 * places for each tile is a tenth of a product of little depth. */
static bool parts_rows(const plan_statement *s)
{
    return rest_is_apart(s) && s->block_tile.columns_kept;
}

static bool splits_rows(const plan_statement *s)
{
    return rest_is_apart(s) && !s->block_tile.columns_kept;
}

static bool splits_columns(const plan_statement *s)
{
    return s->sums_in_place && s->rest_tile.live_columns == 0 && whole_column_tiles(s) < all_column_tiles(s);
}

static LLVMValueRef minus(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSub(e->b, x, y, "");
}

/* What a block holds, sums or codes. */
static LLVMTypeRef held_type(const block *k)
{
    const plan_statement *s = k->f->of;
    emitter *e = k->f->e;
    return s->block_tile.narrows ? gemm_result_type(e, &s->block_tile) : s->integer ? e->i32 : e->f32;
}

/* A vector of sums, or one, as it is stored. */
typedef struct column_place {
    LLVMValueRef row, column;
} column_place;

static LLVMValueRef narrow_sums(const block *k, LLVMValueRef sums, const column_place *at, int64_t lanes, int64_t live)
{
    emitter *e = k->f->e;
    if (k->f->of->block_tile.narrows)
        return sums;
    expression_value v = emit_epilogue(k->f->operands, (expression_value){.value = sums}, at->row, at->column, lanes, live);
    return emit_narrow(e, e->plan->e->tensors[k->f->of->of->dst].dtype, v.value);
}

/* Columns that lie side by side; one is a scalar. */
static void store_columns(const block *k, LLVMValueRef sums, LLVMValueRef to, const column_place *at, int64_t lanes)
{
    emitter *e = k->f->e;
    LLVMTypeRef held = held_type(k);
    LLVMValueRef value = LLVMBuildLoad2(e->b, lanes > 1 ? emit_vector_type(held, lanes) : held, sums, "");
    LLVMSetAlignment(value, k->f->of->block_tile.narrows ? 1 : 4);
    LLVMSetAlignment(LLVMBuildStore(e->b, narrow_sums(k, value, at, lanes, lanes), to), 1);
}

/* A vector of columns from `column` on, of which `live` exist. A short one is loaded, converted and stored in pieces, so that nothing
 * after it is written; LLVM 19 does not come to an end narrowing a long one that is stored in part. */
static void store_vector(const block *k, LLVMValueRef sums, LLVMValueRef row_at, LLVMValueRef row, LLVMValueRef column, int64_t live)
{
    emitter *e = k->f->e;
    const plan_statement *s = k->f->of;
    LLVMTypeRef code = emit_code_type(e, e->plan->e->tensors[s->of->dst].dtype);
    LLVMValueRef in_block = minus(e, column, emit_scaled(e, k->columns.first, s->block_tile.columns));
    LLVMValueRef from = emit_item(e, held_type(k), sums, in_block);
    LLVMValueRef offset = emit_group_offset(e, s->of->dst, EINSUM_DST, &s->digits[PLAN_COLUMN], column);
    LLVMValueRef to = emit_item(e, code, k->f->dst, LLVMBuildAdd(e->b, row_at, offset, ""));
    if (live < s->block_tile.lanes && e->plan->machine.masks) {
        LLVMTypeRef sum = s->integer ? e->i32 : e->f32;
        LLVMValueRef value = LLVMBuildLoad2(e->b, emit_vector_type(sum, s->block_tile.lanes), from, "");
        LLVMSetAlignment(value, 4);
        emit_part_store(e, narrow_sums(k, value, &(column_place){row, column}, s->block_tile.lanes, live), to, 1, live);
        return;
    }
    for (int64_t done = 0, piece = s->block_tile.lanes; done < live; piece /= 2)
        if (done + piece <= live) {
            column_place at = {row, emit_plus(e, column, done)};
            store_columns(k, emit_item(e, held_type(k), from, emit_i64(e, done)), emit_item(e, code, to, emit_i64(e, done)), &at, piece);
            done += piece;
        }
}

static void store_row(const block *k, LLVMValueRef sums, LLVMValueRef row_at, LLVMValueRef row)
{
    emitter *e = k->f->e;
    const plan_statement *s = k->f->of;
    int64_t columns = s->digits[PLAN_COLUMN].combinations, lanes = s->block_tile.lanes, whole = columns / lanes * lanes;
    LLVMValueRef first = emit_scaled(e, k->columns.first, s->block_tile.columns),
                 end = emit_scaled(e, k->columns.end, s->block_tile.columns);
    if (whole > 0) {
        LLVMValueRef last = emit_least(e, end, emit_i64(e, whole));
        LLVMBasicBlockRef after = emit_if_some(e, first, last);
        emitter_loop column;
        emit_loop_open(e, &column, first, last, lanes);
        store_vector(k, sums, row_at, row, column.counter, lanes);
        emit_loop_close(e, &column);
        emit_if_end(e, after);
    }
    if (whole < columns) {
        LLVMBasicBlockRef after = emit_if_some(e, emit_i64(e, whole), end);
        store_vector(k, sums, row_at, row, emit_i64(e, whole), columns - whole);
        emit_if_end(e, after);
    }
}

static void store_block(const block *k)
{
    emitter *e = k->f->e;
    const plan_statement *s = k->f->of;
    LLVMValueRef first = emit_scaled(e, k->rows.first, s->block_tile.rows);
    LLVMValueRef end = emit_least(e, emit_scaled(e, k->rows.end, s->block_tile.rows), emit_i64(e, s->digits[PLAN_ROW].combinations));
    emitter_loop row;
    emit_loop_open(e, &row, first, end, 1);
    LLVMValueRef sums = emit_item(e, held_type(k), k->sums, emit_scaled(e, minus(e, row.counter, first), s->block_line));
    LLVMValueRef offset = emit_group_offset(e, s->of->dst, EINSUM_DST, &s->digits[PLAN_ROW], row.counter);
    store_row(k, sums, LLVMBuildAdd(e->b, k->base, offset, ""), row.counter);
    emit_loop_close(e, &row);
}

/* ---- blocks ---- */

/* In the scratch storage for the rest, elsewhere for whole tiles. */
static LLVMValueRef place_of(const block *k, LLVMValueRef rest, LLVMValueRef scratch, LLVMValueRef elsewhere)
{
    return rest ? LLVMBuildSelect(k->f->e->b, rest, scratch, elsewhere, "") : elsewhere;
}

static LLVMValueRef either_rest(const block *k)
{
    if (!k->rest_rows || !k->rest_columns)
        return k->rest_rows ? k->rest_rows : k->rest_columns;
    return LLVMBuildOr(k->f->e->b, k->rest_rows, k->rest_columns, "");
}

/* The source's own row, with which a tile begins. */
static LLVMValueRef row_in_place(const block_form *f, LLVMValueRef row)
{
    emitter *e = f->e;
    LLVMValueRef base = emit_tensor_offset(e, f->rows.tensor, f->rows.side);
    LLVMValueRef at = LLVMBuildAdd(
        e->b, base, emit_scaled(e, row, f->of->block_tile.row_line * (f->of->block_tile.along_depth ? 1 : f->of->block_tile.per)), "");
    return emit_item(e, emit_code_type(e, e->plan->e->tensors[f->rows.tensor].dtype), f->rows.source, at);
}

static LLVMValueRef rows_at(const block *k)
{
    const block_form *f = k->f;
    const plan_tile *t = &f->of->block_tile;
    if (t->rows_in_place)
        return place_of(k, k->rest_rows, f->rows.panel, row_in_place(f, emit_scaled(f->e, k->rows.first, t->rows)));
    return emit_item(f->e, f->e->i32, f->rows.panel, emit_scaled(f->e, k->rows.first, plan_row_tile_units(t)));
}

/* The source's own element of the first unit in a column. */
static LLVMValueRef column_in_place(const block_form *f, LLVMValueRef column)
{
    emitter *e = f->e;
    LLVMValueRef at = LLVMBuildAdd(e->b, emit_tensor_offset(e, f->columns.tensor, f->columns.side),
                                   emit_scaled(e, column, plan_column_step(&f->of->block_tile)), "");
    return emit_item(e, emit_code_type(e, f->of->block_tile.column_type), f->columns.source, at);
}

static LLVMValueRef columns_at(const block *k)
{
    const block_form *f = k->f;
    const plan_tile *t = &f->of->block_tile;
    if (t->columns_in_place)
        return column_in_place(f, emit_scaled(f->e, k->columns.first, t->columns));
    return emit_item(f->e, f->e->i32, f->columns.panel, emit_scaled(f->e, k->columns.first, t->columns * t->units));
}

static LLVMValueRef sums_at(const block *k)
{
    const block_form *f = k->f;
    emitter *e = f->e;
    const plan_tile *t = &f->of->block_tile;
    if (!f->of->sums_in_place)
        return f->sums;
    LLVMValueRef at = LLVMBuildAdd(e->b, k->base, emit_scaled(e, k->rows.first, t->rows * f->of->block_line), "");
    at = LLVMBuildAdd(e->b, at, emit_scaled(e, k->columns.first, t->columns), "");
    return place_of(k, either_rest(k), f->sums, emit_item(e, held_type(k), f->dst, at));
}

/* The last row tile has its rows in the scratch storage, where the others' are in place, and so its sums, next to others that are there. */
static void part_rows(const block *k, gemm_operands *at)
{
    const block_form *f = k->f;
    emitter *e = f->e;
    const plan_tile *t = &f->of->block_tile;
    if (!parts_rows(f->of))
        return;
    at->apart = minus(e, emit_i64(e, whole_row_tiles(f->of)), k->rows.first);
    at->apart_r = t->rows_in_place ? f->rows.panel : NULL;
    LLVMValueRef among = emit_item(e, held_type(k), f->sums, emit_scaled(e, at->apart, t->rows * f->of->block_line));
    at->apart_c = f->of->sums_in_place ? place_of(k, k->rest_columns, among, f->sums) : NULL;
}

/* What is in the scratch storage of a block whose sums are in place: all of it, or its last row tile. */
static void store_parts(const block *k)
{
    const block_form *f = k->f;
    emitter *e = f->e;
    block part = *k;
    LLVMValueRef some = either_rest(k);
    part.sums = f->sums;
    if (parts_rows(f->of)) {
        LLVMValueRef whole = emit_i64(e, whole_row_tiles(f->of)), last = LLVMBuildICmp(e->b, LLVMIntSGT, k->rows.end, whole, "");
        part.rows.first = place_of(k, k->rest_columns, k->rows.first, whole);
        some = some ? LLVMBuildOr(e->b, some, last, "") : last;
    }
    if (!some)
        return;
    LLVMBasicBlockRef after = emit_if(e, some);
    store_block(&part);
    emit_if_end(e, after);
}

static void emit_one_block(block *k)
{
    const block_form *f = k->f;
    emitter *e = f->e;
    const plan_tile *rest_tile = f->of->rest_tile.live_columns ? &f->of->rest_tile : NULL;
    LLVMValueRef rows = all_row_tiles(f->of) == 1 ? emit_i64(e, 1) : minus(e, k->rows.end, k->rows.first);
    gemm_tiles tiles = {.rows = rows, .columns = minus(e, k->columns.end, k->columns.first)};
    if (rest_tile) {
        LLVMValueRef whole = emit_i64(e, whole_column_tiles(f->of));
        tiles.columns = minus(e, emit_least(e, k->columns.end, whole), k->columns.first);
        tiles.rest = LLVMBuildICmp(e->b, LLVMIntSGT, k->columns.end, whole, "");
    }
    k->sums = sums_at(k);
    gemm_operands at = {.c = k->sums, .r = rows_at(k), .s = columns_at(k), .kept = f->columns.panel, .tiles = tiles};
    part_rows(k, &at);
    emit_gemm_here(e, &f->of->block_tile, rest_tile, f->of->block_line, &at);
    if (f->of->sums_in_place)
        store_parts(k);
    else
        store_block(k);
}

static LLVMValueRef block_end(emitter *e, LLVMValueRef first, int64_t tiles, LLVMValueRef end)
{
    return emit_least(e, emit_plus(e, first, tiles), end);
}

/* Where a block that begins there must end: whole tiles and the rest are not in one block. */
static LLVMValueRef split_end(emitter *e, bool splits, LLVMValueRef first, LLVMValueRef end, int64_t whole_tiles, LLVMValueRef *rest)
{
    if (!splits)
        return end;
    LLVMValueRef whole = emit_i64(e, whole_tiles);
    *rest = LLVMBuildICmp(e->b, LLVMIntSGE, first, whole, "");
    return LLVMBuildSelect(e->b, *rest, end, emit_least(e, end, whole), "");
}

static void emit_all_blocks(const block_form *f, tile_range rows, tile_range columns)
{
    emitter *e = f->e;
    const plan_tile *t = &f->of->block_tile;
    block k = {.f = f, .base = emit_tensor_offset(e, f->of->of->dst, EINSUM_DST)};
    LLVMBasicBlockRef no_rows = emit_if_some(e, rows.first, rows.end), no_columns = emit_if_some(e, columns.first, columns.end);
    emitter_loop column, row;
    emit_loop_open(e, &column, columns.first, columns.end, splits_columns(f->of) ? 0 : t->column_block_tiles);
    LLVMValueRef end = split_end(e, splits_columns(f->of), column.counter, columns.end, whole_column_tiles(f->of), &k.rest_columns);
    k.columns = (tile_range){column.counter, block_end(e, column.counter, t->column_block_tiles, end)};
    emit_loop_open(e, &row, rows.first, rows.end, splits_rows(f->of) ? 0 : t->row_block_tiles);
    end = split_end(e, splits_rows(f->of), row.counter, rows.end, whole_row_tiles(f->of), &k.rest_rows);
    k.rows = (tile_range){row.counter, block_end(e, row.counter, t->row_block_tiles, end)};
    emit_one_block(&k);
    emit_loop_close_at(e, &row, k.rows.end);
    emit_loop_close_at(e, &column, k.columns.end);
    emit_if_end(e, no_columns);
    emit_if_end(e, no_rows);
}

/* The rows of the last tile, where it is not whole: those that do not exist repeat the last one, and their sums are not used. */
static void copy_rest_rows(const block_form *f, tile_range rows)
{
    emitter *e = f->e;
    const plan_tile *t = &f->of->block_tile;
    int64_t whole = whole_row_tiles(f->of), last = f->of->digits[PLAN_ROW].combinations - 1;
    if (whole == all_row_tiles(f->of))
        return;
    LLVMBasicBlockRef after = emit_if_some(e, emit_i64(e, whole), rows.end);
    emitter_loop row;
    emit_loop_open(e, &row, emit_i64(e, 0), emit_i64(e, t->rows), 1);
    LLVMValueRef from = row_in_place(f, emit_least(e, emit_plus(e, row.counter, whole * t->rows), emit_i64(e, last)));
    LLVMValueRef to = emit_item(e, e->i32, f->rows.panel, emit_scaled(e, row.counter, t->row_line));
    LLVMBuildMemCpy(e->b, to, 4, from, 1, emit_i64(e, t->live_units * 4));
    emit_loop_close(e, &row);
    emit_if_end(e, after);
}

void emit_block_form(const block_form *f)
{
    emitter *e = f->e;
    const plan_tile *t = &f->of->block_tile;
    tile_range rows = range_of(f, PLAN_ROW_PANELS), columns = range_of(f, PLAN_COLUMN_PANELS);
    LLVMBasicBlockRef after = emit_if_some(e, rows.first, rows.end);
    if (t->rows_in_place)
        copy_rest_rows(f, rows);
    else
        emit_panels(e, &f->rows, PANEL_VALUE, rows.first, rows.end);
    emit_if_end(e, after);
    if (!t->columns_in_place) {
        after = emit_if_some(e, columns.first, columns.end);
        emit_panels(e, &f->columns, PANEL_VALUE, columns.first, columns.end);
        emit_if_end(e, after);
    }
    emit_all_blocks(f, range_of(f, PLAN_ROW_TILES), range_of(f, PLAN_COLUMN_TILES));
}
