#include "codegen/reference/tile.h"

#include "codegen/reference/walk.h"

/* ---- products ---- */

/* Does each digit count on from the next one in the source? */
static bool steps_evenly(const einsum *e, uint32_t tensor, einsum_side side, const plan_digits *digits)
{
    for (unsigned i = 1; i < digits->count; i++) {
        const einsum_digit *outer = &digits->items[i - 1], *inner = &digits->items[i];
        if (walk_stride(e, tensor, side, outer) != walk_stride(e, tensor, side, inner) * (uint64_t)inner->size)
            return false;
    }
    return true;
}

bool tile_columns_run(const einsum *e, const plan_statement *p)
{
    static const plan_group own[] = {PLAN_BATCH, PLAN_COLUMN, PLAN_DEPTH};
    return steps_evenly(e, p->column_source, p->column_side, &p->digits[PLAN_DEPTH]) && p->digits[PLAN_COLUMN].count == 1 &&
           dtype_row_of(e->tensors[p->column_source].dtype)->bits >= 8 &&
           walk_run(e, p->column_source, p->column_side, &p->digits[PLAN_COLUMN]) == INT64_MAX &&
           !walk_is_guarded(e, p, p->column_source, p->column_side, own, 3);
}

static int64_t items_per_unit(plan_product product)
{
    switch (product) {
    case PRODUCT_I16_PAIRS:
    case PRODUCT_BF16_DOT:
    case PRODUCT_BF16_TILES: return 2;
    case PRODUCT_I8_DOT:
    case PRODUCT_I8_TILES: return 4;
    default: return 1;
    }
}

/* A tile of so few rows is not worth the packing that other products need. */
enum { FEW_ROWS = 2 };

/* Pairs are read in place as well, where depth is whole ones. */
static bool takes_pairs(const einsum *e, const plan_statement *s, const plan_machine *m)
{
    return s->integer && m->i16_pairs && !m->i8_dot && s->digits[PLAN_DEPTH].combinations % 2 == 0 &&
           dtype_row_of(e->tensors[s->sources[0]].dtype)->bits <= 8 && dtype_row_of(e->tensors[s->sources[1]].dtype)->bits <= 8;
}

static plan_product choose_product(const einsum *e, const plan_statement *s, const plan_machine *m)
{
    enum { FEWEST_LINES = 8 };  /* a tile register has 16, of 16 units */
    enum { FEWEST_I8 = 20000 }; /* products that vectors make while tile registers are shaped */
    dtype a = e->tensors[s->sources[0]].dtype, b = e->tensors[s->sources[1]].dtype;
    int64_t depth = s->digits[PLAN_DEPTH].combinations;
    bool square = s->digits[PLAN_ROW].combinations >= FEWEST_LINES && s->digits[PLAN_COLUMN].combinations >= FEWEST_LINES;
    if (s->digits[PLAN_ROW].combinations <= FEW_ROWS && tile_columns_run(e, s) && !takes_pairs(e, s, m))
        return s->integer ? PRODUCT_I32 : PRODUCT_F32;
    square &= depth >= FEWEST_LINES * items_per_unit(s->integer ? PRODUCT_I8_TILES : PRODUCT_BF16_TILES);
    if (s->integer) {
        if (dtype_row_of(a)->bits > 8 || dtype_row_of(b)->bits > 8)
            return PRODUCT_I32;
        square &= (double)s->digits[PLAN_ROW].combinations * (double)s->digits[PLAN_COLUMN].combinations * (double)depth >= FEWEST_I8;
        return m->i8_tiles && square ? PRODUCT_I8_TILES : m->i8_dot ? PRODUCT_I8_DOT : m->i16_pairs ? PRODUCT_I16_PAIRS : PRODUCT_I32;
    }
    /* A single product is exact, which a flushed one is not. */
    if (!s->exact_products || depth == 1)
        return PRODUCT_F32;
    return m->bf16_tiles && square ? PRODUCT_BF16_TILES : m->bf16_dot ? PRODUCT_BF16_DOT : PRODUCT_F32;
}

/* ---- shapes ---- */

/* The tile height with the least work: padding rows, what every tile costs besides its rows, and a last one that is not whole. */
static int64_t tile_rows(int64_t rows, int64_t most)
{
    if (rows <= most)
        return rows;
    int64_t best = most;
    double least = 0;
    for (int64_t height = most; height > most / 2; height--) {
        double work = (double)round_up(rows, height) * (1 + 1.5 / (double)height) + (rows % height ? 2 : 0);
        if (height == most || work < least) {
            best = height;
            least = work;
        }
    }
    return best;
}

/* Two tile registers for rows, two for columns, four for their sums. */
static void shape_tile_registers(plan_tile *t, int64_t rows, int64_t columns)
{
    enum { LINES = 16 };
    t->lanes = LINES;
    t->vectors = columns > LINES ? 2 : 1;
    t->rows = rows > LINES ? 2 * LINES : LINES;
    t->unit_block = LINES;
}

bool tile_columns_near(const plan_machine *m, const plan_tile *t, dtype type, int64_t columns, int64_t depth)
{
    enum { SMALL = 2 };
    return type == DTYPE_F32 && depth * round_up(columns, t->lanes * t->vectors) * 4 <= m->l1_bytes / SMALL;
}

bool tile_takes_in_place(plan_product product, dtype type)
{
    return product == PRODUCT_F32 || product == PRODUCT_I32 || (product == PRODUCT_TREE && type == DTYPE_F32) ||
           (product == PRODUCT_I16_PAIRS && dtype_row_of(type)->bits == 8) || (product == PRODUCT_I8_DOT && type == DTYPE_I8);
}

enum { FOUR_VECTORS = 4 };

/* Four vectors of six rows take 34 instructions for 24 products, two of 14 rows 44 for 28: a few % of time where a core's other half works
 * for somebody else, and of what there is to compile. But not where they leave more columns empty, or many rows. */
static bool takes_four_vectors(const plan_tile *t, const plan_machine *m, int64_t rows, int64_t columns)
{
    enum { REGISTERS = 32, FEWEST_ROWS = 32 };
    int64_t two = 2 * m->lanes;
    return t->product == PRODUCT_F32 && m->fused && m->registers >= REGISTERS && t->vectors == 2 && rows >= FEWEST_ROWS &&
           round_up(columns, 2 * two) == round_up(columns, two);
}

/* An instruction that overwrites an operand needs a copy of the row's value for each product. Then columns are better the other operand, in
 * memory, which they are where one row reads them: three instructions for a product instead of four. */
static bool overwrites_operands(const plan_tile *t, const plan_machine *m)
{
    enum { SSE_LANES = 4 };
    return t->product == PRODUCT_F32 && !m->fused && m->lanes == SSE_LANES;
}

/* `running`: the columns' type, where they run. */
static void shape_vectors(plan_tile *t, const plan_machine *m, int64_t rows, int64_t columns, int64_t depth, const dtype *running)
{
    enum { STEP_UNITS = 4, MOST_ROWS = 14, MOST_VECTORS = 8, FEWEST_SPARE = 4 };
    /* two columns and a row value, the product where it is not fused, the correction */
    int64_t spare = t->product == PRODUCT_F32 && m->fused ? 4 : t->product == PRODUCT_I8_DOT ? 7 : 5;
    int64_t registers = t->product == PRODUCT_F64 ? m->registers / 2 : m->registers;
    t->lanes = m->lanes;
    t->vectors = columns > m->lanes ? 2 : 1;
    /* Few rows leave registers for more columns, where a value of a row and a product of it has one as well. */
    while ((t->product == PRODUCT_F32 || t->product == PRODUCT_I32 || t->product == PRODUCT_I16_PAIRS) && t->vectors < MOST_VECTORS &&
           columns >= 2 * t->vectors * m->lanes &&
           (rows == 1 && running && *running == DTYPE_F32 ? 2 * t->vectors + FEWEST_SPARE : (rows + 1) * 2 * t->vectors + 2) <= registers)
        t->vectors *= 2;
    if (takes_four_vectors(t, m, rows, columns)) {
        t->vectors = FOUR_VECTORS;
        spare = FOUR_VECTORS + 1;
    }
    if (overwrites_operands(t, m))
        while (t->vectors < MOST_VECTORS && columns >= 2 * t->vectors * m->lanes)
            t->vectors *= 2;
    int64_t most = least_of((registers - spare) / t->vectors, MOST_ROWS);
    t->rows = tile_rows(rows, most_of(most, 1));
    t->unit_block = 1;
    while (t->unit_block < least_of(STEP_UNITS, t->lanes) && t->unit_block * t->per < depth) /* so that whole steps make a vector */
        t->unit_block *= 2;
}

/* Each lane so far becomes `size` of them, `apart` from each other. */
static void multiply_lanes(plan_tile *t, int64_t size, int64_t apart)
{
    for (int64_t lane = t->lane_count * size; lane-- > 0;)
        t->lane[lane] = (unsigned char)(t->lane[lane / size] + lane % size * apart);
    t->lane_count *= size;
}

/* The lanes of the tree, in the order of depth: the innermost depth digits, or pieces of groups, that have some. */
static void find_lanes(plan_tile *t, const plan_statement *p)
{
    const plan_digits *depth = &p->digits[PLAN_DEPTH];
    t->lane_count = 1;
    t->lane[0] = 0;
    for (unsigned i = 0; i < depth->count; i++)
        if (depth->items[i].lane)
            multiply_lanes(t, depth->items[i].size, depth->items[i].lane);
    for (uint32_t i = 0; i < p->of->piece_count; i++)
        if (p->of->pieces[i].lane)
            multiply_lanes(t, p->of->pieces[i].size, p->of->pieces[i].lane);
}

/* A few sums; the nodes of a tree need registers as well. A value that one product reads is its operand in memory: columns of one row,
 * or, where operands are broadcast too, rows of one vector. Of one row, more vectors are fewer reads: two take three for two products, four
 * five for four, and a dozen nodes wait in memory then; it is a quarter more to compile. Without a tree each sum waits for its last
 * addition, and there must be many. */
static void shape_tree(plan_tile *t, const reference_plan *plan, int64_t rows, int64_t columns, const plan_statement *p)
{
    const plan_machine *m = &plan->machine;
    enum { MOST_ROWS = 6, MOST_VECTORS = 4, SPARE = 2 };
    find_lanes(t, p);
    t->lanes = m->lanes;
    t->vectors = 1;
    bool sums_alone = t->lane_count == 1;
    int64_t alive = 2; /* of a tree: the sum, a product, and a node on each level */
    while ((int64_t)1 << (alive - 2) < t->lane_count)
        alive++;
    int64_t sums = most_of(sums_alone ? m->registers - 2 * SPARE : (m->registers - SPARE) / alive, 1),
            most_vectors = sums_alone                ? MOST_VECTORS / 2
                           : plan->purpose.runs_once ? least_of(sums, MOST_VECTORS)
                                                     : MOST_VECTORS;
    while (!m->masks && 2 * t->vectors <= most_vectors && columns > t->vectors * m->lanes)
        t->vectors *= 2;
    t->rows = least_of(rows, most_of(least_of(sums / t->vectors, MOST_ROWS), 1));
    t->unit_block = t->lane_count;
}

static void choose_tile(const reference_plan *plan, const plan_statement *p, plan_tile *t)
{
    const einsum *e = plan->e;
    const plan_machine *m = &plan->machine;
    enum { MOST_SIDE = 128 };
    int64_t rows = p->digits[PLAN_ROW].combinations, columns = p->digits[PLAN_COLUMN].combinations;
    int64_t depth = t->product == PRODUCT_TREE && p->order_places ? p->order_places : p->digits[PLAN_DEPTH].combinations;
    t->per = items_per_unit(t->product);
    if (plan_in_tile_registers(t))
        shape_tile_registers(t, rows, columns);
    else if (t->product == PRODUCT_TREE)
        shape_tree(t, plan, rows, columns, p);
    else
        shape_vectors(t, m, rows, columns, depth, tile_columns_run(e, p) ? &e->tensors[p->column_source].dtype : NULL);
    t->columns = t->live_columns = t->stored_columns = t->unit_line = t->lanes * t->vectors;
    t->padded_rows = round_up(rows, t->rows);
    t->padded_columns = round_up(columns, t->columns);
    t->live_units = round_up(depth, t->per) / t->per;
    t->units = round_up(t->live_units, t->unit_block);
    if (plan_in_tile_registers(t) || t->product == PRODUCT_TREE)
        t->live_units = t->units;
    t->rows_by_line =
        plan_in_tile_registers(t) || walk_run(e, p->row_source, p->row_side, &p->digits[PLAN_ROW]) == 0 || p->digits[PLAN_ROW].count == 0;
    /* A column panel takes two thirds of the nearest cache; sums, rows and twice as many columns of a block share the next one. More
     * rows than MOST_SIDE gain nothing. */
    t->depth_block = most_of(m->l1_bytes * 2 / 3 / (t->columns * 4) / t->unit_block, 1) * t->unit_block;
    int64_t side = 32;
    while (side < MOST_SIDE && 2 * side * (3 * t->depth_block + 4 * side) * 4 <= m->l2_bytes)
        side *= 2;
    t->depth_items = depth;
    t->row_line = t->unit_block;
    t->column_line = t->columns;
    t->one_pass = plan_looped_units(t) <= t->depth_block;
    t->row_block_tiles = round_up(side, t->rows) / t->rows;
    t->column_block_tiles = round_up(2 * side, t->columns) / t->columns;
    if (t->one_pass) { /* then every row is read whole, for each column tile: from the nearest cache, where the sums pass through */
        t->column_block_tiles = most_of(m->l1_bytes / 3 / (t->columns * t->units * 4), t->column_block_tiles);
        int64_t block_columns = least_of(t->columns * t->column_block_tiles, t->padded_columns);
        int64_t most = least_of(m->l1_bytes / 3 / (t->rows * t->units * 4), m->l1_bytes / (t->rows * block_columns * 4));
        t->row_block_tiles = most_of(least_of(most, t->row_block_tiles), 1);
    }
}

/* Magnitudes of what comes from outside are as narrow as the values, and then the values' product makes the bound as well; bounds of what
 * was computed before are f32. */
static plan_product choose_bound_product(const reference_plan *plan, const plan_statement *p)
{
    bool narrow = p->tile.product == PRODUCT_BF16_DOT || p->tile.product == PRODUCT_BF16_TILES;
    if (p->wide_bound)
        return PRODUCT_F64;
    return narrow && !plan->assigned[p->sources[0]] && !plan->assigned[p->sources[1]] ? p->tile.product : PRODUCT_F32;
}

void tile_choose(const reference_plan *plan, plan_statement *p)
{
    const einsum *e = plan->e;
    const plan_machine *m = &plan->machine;
    p->tile.product = plan->purpose.machine_order && !p->integer ? PRODUCT_TREE : choose_product(e, p, m);
    p->bound_tile.product = choose_bound_product(plan, p);
    p->flushes = (p->tile.product == PRODUCT_BF16_DOT || p->tile.product == PRODUCT_BF16_TILES) &&
                 (e->tensors[p->sources[0]].dtype == DTYPE_BF16 || e->tensors[p->sources[1]].dtype == DTYPE_BF16);
    choose_tile(plan, p, &p->tile);
    choose_tile(plan, p, &p->bound_tile);
}
