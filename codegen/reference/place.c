#include "codegen/reference/place.h"

#include "codegen/reference/fault.h"
#include "codegen/reference/tile.h"
#include "codegen/reference/walk.h"

#define MAX_SCRATCH_BYTES (INT64_C(1) << 36)

/* ---- operands in place ---- */

static bool is_item_type(plan_product product, dtype t)
{
    switch (product) {
    case PRODUCT_F32:
    case PRODUCT_TREE: return t == DTYPE_F32;
    case PRODUCT_BF16_DOT:
    case PRODUCT_BF16_TILES: return t == DTYPE_BF16;
    case PRODUCT_I8_TILES: return t == DTYPE_I8;
    default: return false;
    }
}

/* Lines so many 32-bit values apart do not meet in a few sets of the nearest cache. */
static bool is_spread(int64_t line)
{
    enum { SET_PERIOD = 4096, TOO_FEW_PLACES = 2 };
    return line * 4 % (SET_PERIOD / TOO_FEW_PLACES) != 0;
}

/* Does the product take elements of the type as they lie, or widened to vectors of as many units? */
static bool takes_type(plan_product product, dtype t)
{
    return is_item_type(product, t) || (product == PRODUCT_F32 && t == DTYPE_BF16) ||
           ((product == PRODUCT_I8_DOT || product == PRODUCT_I16_PAIRS) && t == DTYPE_I8) ||
           (product == PRODUCT_I32 && dtype_row_of(t)->bits >= 8);
}

/* Elements between the lines of a group, of which each is side by side in depth; -1: they are not. */
static int64_t line_along_depth(const einsum *e, const plan_statement *p, plan_group group)
{
    const plan_group own[] = {PLAN_BATCH, group, PLAN_DEPTH};
    uint32_t tensor = group == PLAN_ROW ? p->row_source : p->column_source;
    einsum_side side = group == PLAN_ROW ? p->row_side : p->column_side;
    const plan_digits *lines = &p->digits[group], *depth = &p->digits[PLAN_DEPTH];
    if (lines->count > 1 || depth->count > 1 || walk_run(e, tensor, side, depth) != INT64_MAX ||
        !takes_type(p->tile.product, e->tensors[tensor].dtype) || walk_is_guarded(e, p, tensor, side, own, 3))
        return -1;
    uint64_t stride = lines->count ? walk_stride(e, tensor, side, &lines->items[0]) : 0;
    return stride < (uint64_t)MAX_SCRATCH_BYTES ? (int64_t)stride : -1;
}

bool place_along_depth(const reference_plan *plan, const plan_statement *p)
{
    enum { MOST_ROWS = 4, FEWEST_VECTORS = 2 };
    const plan_tile *t = &p->tile;
    bool lone = p->digits[PLAN_ROW].combinations * p->digits[PLAN_COLUMN].combinations == 1; /* no other side to put into lanes */
    return t->product != PRODUCT_TREE && p->digits[PLAN_ROW].combinations <= MOST_ROWS &&
           (lone || p->digits[PLAN_DEPTH].combinations >= FEWEST_VECTORS * t->lanes * t->per) &&
           line_along_depth(plan->e, p, PLAN_ROW) >= 0 && line_along_depth(plan->e, p, PLAN_COLUMN) >= 0;
}

static void shape_along_depth(const reference_plan *plan, const plan_statement *p, plan_tile *t)
{
    enum { MOST_GROUP = 8, SUMS_PART = 2 };
    t->along_depth = t->rows_in_place = t->columns_in_place = t->one_pass = true;
    t->depth_block = t->units;
    t->rows = t->padded_rows = p->digits[PLAN_ROW].combinations;
    t->vectors = 1;
    t->columns = t->live_columns = t->stored_columns = t->unit_line = t->lanes;
    t->padded_columns = round_up(p->digits[PLAN_COLUMN].combinations, t->columns);
    t->column_group = 1;
    while (t->column_group < MOST_GROUP && 2 * t->column_group * t->rows <= plan->machine.registers / SUMS_PART)
        t->column_group *= 2;
    t->row_line = line_along_depth(plan->e, p, PLAN_ROW);
    t->column_line = line_along_depth(plan->e, p, PLAN_COLUMN);
}

/* Lines that meet in a few sets of the nearest cache are read where they lie all the same if a tile has no more of them than a set has room
 * for next to columns, and so few column tiles read them that a copy takes longer. */
static bool rows_are_few(const plan_statement *p)
{
    enum { MOST_ROWS = 6, MOST_COLUMN_TILES = 16 };
    return p->tile.rows <= MOST_ROWS && p->tile.padded_columns / p->tile.columns <= MOST_COLUMN_TILES;
}

/* Are whole steps of the kernel side by side in the row source, and the rows equally far apart? */
static bool rows_lie_ready(const einsum *e, const plan_statement *p, int64_t *line)
{
    enum { MOST_SPREAD = 4 };
    static const plan_group own[] = {PLAN_BATCH, PLAN_ROW, PLAN_DEPTH};
    const plan_tile *t = &p->tile;
    const plan_digits *rows = &p->digits[PLAN_ROW], *depth = &p->digits[PLAN_DEPTH];
    if (p->order_places || !is_item_type(t->product, e->tensors[p->row_source].dtype) || !t->rows_by_line || rows->count > 1 ||
        depth->combinations != t->live_units * t->per || walk_run(e, p->row_source, p->row_side, depth) != INT64_MAX ||
        walk_is_guarded(e, p, p->row_source, p->row_side, own, 3))
        return false;
    uint64_t stride = rows->count ? walk_stride(e, p->row_source, p->row_side, &rows->items[0]) : (uint64_t)depth->combinations;
    if (stride % (uint64_t)t->per != 0 || stride / (uint64_t)t->per > (uint64_t)(MOST_SPREAD * t->units))
        return false;
    *line = (int64_t)stride / t->per;
    return *line > 0 && (rows->combinations == 1 || is_spread(*line) || rows_are_few(p));
}

static bool columns_near(const reference_plan *plan, const plan_statement *p)
{
    return tile_columns_near(&plan->machine, &p->tile, plan->e->tensors[p->column_source].dtype, p->digits[PLAN_COLUMN].combinations,
                             p->digits[PLAN_DEPTH].combinations);
}

/* Can a part of a vector be read where it lies, and stored? Without masks it is read together with the columns before it. */
static bool reads_parts(const reference_plan *plan, const plan_statement *p)
{
    return plan->machine.masks || p->digits[PLAN_COLUMN].combinations >= p->tile.lanes;
}

/* Can the columns be read where they are, and is packing them too dear? */
static bool columns_lie_ready(const reference_plan *plan, const plan_statement *p, int64_t *line)
{
    const plan_tile *t = &p->tile;
    const plan_digits *depth = &p->digits[PLAN_DEPTH];
    dtype type = plan->e->tensors[p->column_source].dtype;
    bool ready = (p->digits[PLAN_ROW].combinations <= TILE_KEPT_ROWS && t->product != PRODUCT_TREE) || columns_near(plan, p);
    if (!tile_takes_in_place(t->product, type) || !ready || p->order_places || depth->combinations != t->live_units * t->per ||
        !tile_columns_run(plan->e, p) || !reads_parts(plan, p))
        return false;
    const einsum_digit *last = depth->count ? &depth->items[depth->count - 1] : NULL;
    uint64_t stride = last ? walk_stride(plan->e, p->column_source, p->column_side, last) : (uint64_t)t->columns;
    *line = (int64_t)stride;
    return stride < (uint64_t)MAX_SCRATCH_BYTES;
}

static bool holds_sums(const einsum *e, const plan_statement *p)
{
    dtype t = e->tensors[p->of->dst].dtype;
    return t == DTYPE_F32 || t == DTYPE_I32;
}

/* Are sums rounded where they end? Of little depth, writing them and reading them again is most of the time; it is half as much again to
 * compile. With masks the parts of
 * vectors would be long ones, which LLVM 19 does not come to an end narrowing. */
static bool narrows_sums(const reference_plan *plan, const plan_statement *p)
{
    enum { LITTLE_DEPTH = 16 };
    const plan_tile *t = &p->block_tile;
    return !holds_sums(plan->e, p) && t->one_pass && t->depth_items <= LITTLE_DEPTH && !plan->machine.masks && !plan->purpose.runs_once;
}

/* Are columns of the destination side by side, so that the kernel can store them there? Sums that are taken up again must be spread.
 * `parts`: a part of a tile's columns is enough. */
static bool lies_ready(const einsum *e, const plan_statement *p, bool parts, int64_t *line)
{
    const plan_digits *rows = &p->digits[PLAN_ROW], *columns = &p->digits[PLAN_COLUMN];
    if (p->node_count || rows->count > 1 || (columns->combinations < p->tile.columns && !parts) ||
        walk_run(e, p->of->dst, EINSUM_DST, columns) != INT64_MAX)
        return false;
    uint64_t stride = rows->count ? walk_stride(e, p->of->dst, EINSUM_DST, &rows->items[0]) : (uint64_t)columns->combinations;
    *line = (int64_t)stride;
    return stride > 0 && stride < (uint64_t)MAX_SCRATCH_BYTES && (p->tile.one_pass || is_spread(*line));
}

/* The last columns need no copy, and no vectors that are empty: a tile of their own reads and writes what there is. */
static void shape_rest(plan_statement *p)
{
    const plan_tile *t = &p->block_tile;
    int64_t live = p->digits[PLAN_COLUMN].combinations % t->columns;
    bool fewer = t->columns_in_place || p->sums_in_place || round_up(live, t->lanes) < t->columns;
    if (plan_in_tile_registers(t) || live == 0 || !fewer)
        return;
    plan_tile *rest = &p->rest_tile;
    *rest = *t;
    rest->live_columns = live;
    rest->columns = round_up(live, t->lanes);
    rest->vectors = rest->columns / t->lanes;
    rest->stored_columns = p->sums_in_place ? live : rest->columns;
    rest->columns_apart = t->columns_apart && live % (2 * t->lanes) == 0;
}

/* Lines so many bytes apart that half of the second cache has room for: they meet in its sets where that is a large power of two. But sums
 * are not taken up for a few units. */
static int64_t lines_at_once(const plan_machine *m, const plan_tile *t, int64_t line_bytes)
{
    enum { PART = 2, FEWEST_UNITS = 16 };
    return most_of(m->l2_bytes / PART / most_of(line_bytes & -line_bytes, 1), FEWEST_UNITS * t->per);
}

/* No column is read twice where it lies: a few lines are followed as far as their sums stay near. Where several row tiles read them, the
 * first one keeps them: more lines, so that sums are taken up seldom, but on no more pages than the processor finds at once, and no more
 * than what is asked for ahead of them can wait. */
static void shape_lines(const reference_plan *plan, plan_tile *t)
{
    enum { FEW_LINES = 8, KEPT_PAGES = 64, PAGE_BYTES = 4096, SUMS_PART = 2 };
    int64_t line_bytes = t->column_line * dtype_row_of(t->column_type)->bits / 8,
            kept_lines = KEPT_PAGES * most_of(PAGE_BYTES / most_of(line_bytes, 1), 1);
    t->columns_once = true;
    t->columns_kept = t->padded_rows > t->rows;
    int64_t lines = t->columns_kept ? least_of(kept_lines, lines_at_once(&plan->machine, t, line_bytes)) : FEW_LINES;
    t->unit_block = least_of(t->unit_block, most_of(lines / t->per, 1));
    if (!t->rows_in_place)
        t->row_line = t->unit_block;
    t->column_block_tiles = most_of(plan->machine.l1_bytes / SUMS_PART / (t->padded_rows * t->columns * 4), t->column_block_tiles);
    t->depth_block = least_of(t->depth_block, most_of(lines / t->per / t->unit_block, 1) * t->unit_block);
    t->one_pass = plan_looped_units(t) <= t->depth_block;
}

void place_operands(const reference_plan *plan, plan_statement *p)
{
    const einsum *e = plan->e;
    plan_tile *t = &p->block_tile;
    *t = p->tile;
    t->row_type = e->tensors[p->row_source].dtype;
    t->column_type = e->tensors[p->column_source].dtype;
    if (place_along_depth(plan, p)) {
        shape_along_depth(plan, p, t);
        p->sums_in_place = holds_sums(e, p) && lies_ready(e, p, true, &p->block_line);
        shape_rest(p);
        return;
    }
    t->rows_in_place = rows_lie_ready(e, p, &t->row_line);
    if (!t->rows_in_place)
        t->row_line = t->unit_block;
    t->columns_in_place = columns_lie_ready(plan, p, &t->column_line);
    t->columns_apart = t->columns_in_place && t->column_type == DTYPE_BF16 && t->vectors % 2 == 0 && !plan->machine.masks;
    if (!t->columns_in_place)
        t->column_line = t->columns;
    else if (t->padded_rows == t->rows || !columns_near(plan, p))
        shape_lines(plan, t);
    bool narrows = narrows_sums(plan, p), parts = !narrows && !plan_in_tile_registers(t) && reads_parts(plan, p);
    p->sums_in_place = (holds_sums(e, p) || narrows) && lies_ready(e, p, parts, &p->block_line);
    t->narrows = p->sums_in_place && narrows;
    t->code = e->tensors[p->of->dst].dtype;
    if (!p->sums_in_place && t->one_pass) /* sums that pass through the scratch storage once stay in the nearest cache */
        t->column_block_tiles = most_of(least_of(t->column_block_tiles, plan->machine.l1_bytes * 2 / 3 / (t->rows * t->columns * 4)), 1);
    shape_rest(p);
}

/* ---- scratch storage ---- */

/* Room for a vector after each array: the last one of a panel is stored whole. */
static bool place(int64_t *end, int64_t *at, int64_t rows, int64_t columns, int64_t bytes_each)
{
    int64_t bytes;
    if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, bytes_each, &bytes))
        return false;
    *at = *end;
    return !__builtin_add_overflow(*end, bytes, end) && *end <= MAX_SCRATCH_BYTES && (*end = round_up(*end, 64) + 64);
}

char *place_scratch(plan_statement *p, uint32_t number)
{
    enum { MANY_COLUMNS = 256 };
    const plan_tile *t = &p->tile, *b = &p->bound_tile, *k = &p->block_tile;
    plan_scratch *s = &p->scratch;
    int64_t bound_bytes = p->wide_bound ? 8 : 4;
    s->end = 0;
    bool fits = place(&s->end, &s->row_pack, most_of(t->padded_rows, b->padded_rows),
                      most_of(most_of(t->units, b->units), k->rows_in_place ? k->row_line : 0), 4) &&
                place(&s->end, &s->column_pack, most_of(t->padded_columns, b->padded_columns), most_of(t->units, b->units), 4);
    int64_t block_rows = least_of(t->padded_rows, t->rows * t->row_block_tiles);
    if (!p->sums_in_place) {
        p->block_line = least_of(t->padded_columns, t->columns * (p->stores_blocks ? k : t)->column_block_tiles);
        if (p->block_line >= MANY_COLUMNS)
            p->block_line += t->lanes; /* rows do not meet in a set of the cache */
    }
    s->plain_end = s->end;
    fits = fits &&
           place(&s->plain_end, &s->value, p->stores_blocks ? block_rows : t->padded_rows,
                 p->stores_blocks ? p->block_line : t->padded_columns, 4) &&
           place(&s->end, &s->value, t->padded_rows, t->padded_columns, 4) &&
           place(&s->end, &s->magnitude, b->padded_rows, b->padded_columns, bound_bytes) &&
           place(&s->end, &s->error, b->padded_rows, b->padded_columns, bound_bytes) &&
           (!p->precise_bound || place(&s->end, &s->precise, b->padded_rows, b->padded_columns, bound_bytes));
    return fits ? NULL : fault_text("statement %u needs more than 2^36 bytes of scratch storage", number);
}
