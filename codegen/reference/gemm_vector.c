/* A register tile of vectors: sums in registers, one unit of depth after the other. */
#include <string.h>

#include "codegen/reference/convert.h"
#include "codegen/reference/gemm.h"
#include "codegen/reference/product.h"

enum { MOST_SUMS = 64, MOST_VECTORS = 8, MOST_LANES = 16 };

typedef struct vector_tile {
    gemm *g;
    emitter *e;
    const plan_tile *tile;
    LLVMTypeRef sum;                /* scalar */
    LLVMValueRef row_at, column_at; /* of the panels, where a step begins: what it reads is a constant further */
    LLVMValueRef kept_at;           /* the same, where columns are kept */
    LLVMValueRef sums[MOST_SUMS];   /* [row][vector], and then a correction for each vector */
} vector_tile;

/* Columns of a step. A panel begins at a multiple of 64 bytes; an operand in memory of SSE must be aligned. */
static LLVMValueRef load_units(vector_tile *v, int64_t step, int64_t vector)
{
    LLVMValueRef from = emit_item(v->e, v->e->i32, v->column_at, emit_i64(v->e, step * v->tile->unit_line + vector * v->tile->lanes));
    LLVMValueRef load = LLVMBuildLoad2(v->e->b, emit_vector_type(v->e->i32, v->tile->lanes), from, "");
    LLVMSetAlignment(load, (unsigned)v->tile->lanes * 4);
    return load;
}

/* Of so many columns, those in a vector. */
static int64_t lanes_of(const vector_tile *v, int64_t columns, int64_t vector)
{
    int64_t live = columns - vector * v->tile->lanes;
    return live < v->tile->lanes ? live : v->tile->lanes;
}

/* Into the second cache. */
static void prefetch(emitter *e, LLVMValueRef address)
{
    enum { READ = 0, SECOND_CACHE = 2, DATA = 1 };
    LLVMValueRef args[] = {address, emit_i32(e, READ), emit_i32(e, SECOND_CACHE), emit_i32(e, DATA)};
    emit_intrinsic(e, "llvm.prefetch", args, sizeof args / sizeof *args);
}

/* Of a column, so many lines after the one where the step begins. */
static LLVMValueRef place_of_codes(vector_tile *v, int64_t line, int64_t column)
{
    emitter *e = v->e;
    return emit_item(e, emit_code_type(e, v->tile->column_type), v->column_at, emit_i64(e, line * v->tile->column_line + column));
}

/* The source's elements of neighbouring columns, of which `live` exist, as units. */
static LLVMValueRef units_in_place(vector_tile *v, int64_t step, int64_t first, int64_t lanes, int64_t live)
{
    enum { MOST_ITEMS = 4 };
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    LLVMTypeRef code = emit_code_type(e, t->column_type);
    LLVMValueRef codes[MOST_ITEMS];
    for (int64_t i = 0; i < t->per; i++)
        codes[i] = emit_last_load(e, emit_vector_type(code, lanes), place_of_codes(v, step * t->per + i, first), 1, live);
    for (int64_t half = t->per / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; i++)
            codes[i] = emit_interleaved(e, codes[i], codes[i + half]);
    return product_units(e, t, t->column_type, codes[0]);
}

static LLVMValueRef half_of(emitter *e, LLVMValueRef units, int64_t lanes, int64_t half)
{
    int places[MOST_LANES];
    for (int i = 0; i < lanes; i++)
        places[i] = (int)(half * lanes) + i;
    return emit_shuffle(e, units, units, places, (unsigned)lanes);
}

/* Narrow elements of two vectors fill one register of AVX2, and are widened together. */
static void load_in_place(vector_tile *v, int64_t step, LLVMValueRef *column)
{
    const plan_tile *t = v->tile;
    bool pairs = dtype_row_of(t->column_type)->bits < 32 && !v->e->plan->machine.masks && t->live_columns == t->columns;
    for (int64_t i = 0; i < t->vectors;) {
        int64_t first = i * t->lanes;
        if (t->columns_apart) {
            LLVMValueRef codes = LLVMBuildLoad2(v->e->b, emit_vector_type(v->e->i16, 2 * t->lanes), place_of_codes(v, step, first), "");
            LLVMSetAlignment(codes, 1);
            emit_widen_apart(v->e, codes, &column[i], &column[i + 1]);
            i += 2;
        } else if (pairs && i + 1 < t->vectors) {
            LLVMValueRef both = units_in_place(v, step, first, 2 * t->lanes, 2 * t->lanes);
            column[i++] = half_of(v->e, both, t->lanes, 0);
            column[i++] = half_of(v->e, both, t->lanes, 1);
        } else {
            column[i] = units_in_place(v, step, first, t->lanes, lanes_of(v, t->live_columns, i));
            i++;
        }
    }
}

/* Of a step's lines, what is read later: where the next column tile begins, if they are kept, and else as many lines further as are read
 * before. Tiles may begin anywhere in a line of the cache: its first one has come with the tile before, so that the last one is asked for.
 */
static void prefetch_lines(vector_tile *v, int64_t step)
{
    enum { CACHE_LINE_BYTES = 64 };
    const plan_tile *t = v->tile;
    int64_t bytes = dtype_row_of(t->column_type)->bits / 8, each = CACHE_LINE_BYTES / bytes;
    bool kept = v->g->columns == COLUMNS_KEEPING;
    for (int64_t i = step * t->per; i < (step + 1) * t->per; i++)
        for (int64_t end = each < t->columns ? each : t->columns; end <= t->columns; end += each)
            prefetch(v->e, kept ? place_of_codes(v, i, t->columns + end - 1) : place_of_codes(v, i + t->depth_block * t->per, end - 1));
}

/* Are the columns so many that the third cache or memory has to send some? */
static bool columns_are_far(const vector_tile *v)
{
    const plan_tile *t = v->tile;
    double bytes = (double)t->column_line * (double)(t->units * t->per) * dtype_row_of(t->column_type)->bits / 8;
    return bytes > (double)v->e->plan->machine.l2_bytes;
}

/* The processor looks ahead in a line that is read to its end, unless that comes too soon. Longer ones are not asked for as well: twice as
 * many would meet in a set of the nearest cache. Of f32 each vector is one product, and asking is in its way. Where columns are kept, the
 * next tile begins in as many pages as there are lines. */
static bool asks_ahead(const vector_tile *v)
{
    enum { SOON_BYTES = 2048 };
    const plan_tile *t = v->tile;
    unsigned bits = dtype_row_of(t->column_type)->bits;
    bool soon = bits < 32 && t->column_line * bits / 8 <= SOON_BYTES;
    return !t->one_pass && (v->g->columns == COLUMNS_KEEPING || soon) && columns_are_far(v);
}

static void load_columns(vector_tile *v, int64_t step, LLVMValueRef *column)
{
    const plan_tile *t = v->tile;
    bool in_place = v->g->columns == COLUMNS_IN_PLACE || v->g->columns == COLUMNS_KEEPING;
    if (in_place)
        load_in_place(v, step, column);
    if (in_place && asks_ahead(v))
        prefetch_lines(v, step);
    for (int64_t i = 0; !in_place && i < t->vectors; i++)
        column[i] = load_units(v, step, i);
    for (int64_t i = 0; v->g->columns == COLUMNS_KEEPING && i < t->vectors; i++) {
        LLVMValueRef to = emit_item(v->e, v->e->i32, v->kept_at, emit_i64(v->e, step * t->unit_line + i * t->lanes));
        LLVMSetAlignment(LLVMBuildStore(v->e->b, column[i], to), 4);
    }
}

/* A source's own rows begin at any item. */
static LLVMValueRef load_row(vector_tile *v, int64_t step, int64_t row)
{
    const plan_tile *t = v->tile;
    LLVMValueRef load =
        emit_load(v->e, v->e->i32, v->row_at, emit_i64(v->e, t->rows_by_line ? row * t->row_line + step : step * t->rows + row));
    LLVMSetAlignment(load, (unsigned)(4 / v->tile->per));
    return emit_splat(v->e, load, v->tile->lanes);
}

static void emit_unit(vector_tile *v, int64_t step)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    LLVMValueRef column[MOST_VECTORS];
    load_columns(v, step, column);
    for (int64_t r = 0; r < t->rows; r++) {
        LLVMValueRef row = load_row(v, step, r);
        for (int64_t i = 0; i < t->vectors; i++)
            v->sums[r * t->vectors + i] = product_add(v->e, v->tile, v->sums[r * t->vectors + i], row, column[i]);
    }
    LLVMValueRef offset = emit_splat(e, LLVMConstInt(e->i32, 0x80808080, false), t->lanes);
    for (int64_t i = 0; t->product == PRODUCT_I8_DOT && i < t->vectors; i++)
        v->sums[t->rows * t->vectors + i] = product_add(v->e, v->tile, v->sums[t->rows * t->vectors + i], offset, column[i]);
}

enum { MOST_TREES = 16 };

static LLVMValueRef tree_units(vector_tile *v, int64_t step, int64_t vector)
{
    bool in_place = v->g->columns == COLUMNS_IN_PLACE;
    return in_place ? units_in_place(v, step, vector * v->tile->lanes, v->tile->lanes, lanes_of(v, v->tile->live_columns, vector))
                    : load_units(v, step, vector);
}

/* A node of every sum's tree over the lanes `first` to `end` (numbers of t->lane), which stand between two multiples of 2 * half; false
 * where there are none. The trees grow together, so that what is loaded is loaded once and a few nodes of each are alive. */
static bool tree_nodes(vector_tile *v, int64_t first, int64_t end, int64_t half, LLVMValueRef *nodes)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    int64_t count = t->rows * t->vectors;
    if (first == end)
        return false;
    if (end - first == 1) {
        LLVMValueRef columns[MOST_VECTORS];
        for (int64_t i = 0; i < t->vectors; i++)
            columns[i] = product_items(e, t, tree_units(v, first, i));
        for (int64_t r = 0; r < t->rows; r++) {
            LLVMValueRef row = product_items(e, t, load_row(v, first, r));
            for (int64_t i = 0; i < t->vectors; i++)
                nodes[r * t->vectors + i] = LLVMBuildFMul(e->b, row, columns[i], "");
        }
        return true;
    }
    int64_t middle = first;
    while (middle < end && !(t->lane[middle] & half))
        middle++;
    LLVMValueRef high[MOST_TREES];
    bool has_low = tree_nodes(v, first, middle, half / 2, nodes), has_high = tree_nodes(v, middle, end, half / 2, has_low ? high : nodes);
    for (int64_t i = 0; has_low && has_high && i < count; i++)
        nodes[i] = LLVMBuildFAdd(e->b, nodes[i], high[i], "");
    return true;
}

/* A step in time of every sum. */
static void emit_trees(vector_tile *v)
{
    const plan_tile *t = v->tile;
    LLVMValueRef trees[MOST_TREES];
    tree_nodes(v, 0, t->lane_count, PLAN_MAX_LANES / 2, trees);
    for (int64_t i = 0; i < t->rows * t->vectors; i++)
        v->sums[i] = LLVMBuildFAdd(v->e->b, v->sums[i], trees[i], "");
}

/* The end of an emit_if: the sums as they are now where it went that way, and else as they were before. */
static void join_sums(vector_tile *v, int64_t count, LLVMBasicBlockRef before, const LLVMValueRef *sums_before, LLVMBasicBlockRef after)
{
    LLVMBasicBlockRef then = LLVMGetInsertBlock(v->e->b);
    emit_if_end(v->e, after);
    for (int64_t i = 0; after && i < count; i++) {
        LLVMValueRef either = LLVMBuildPhi(v->e->b, LLVMTypeOf(v->sums[i]), "");
        LLVMAddIncoming(either, (LLVMValueRef[]){sums_before[i], v->sums[i]}, (LLVMBasicBlockRef[]){before, then}, 2);
        v->sums[i] = either;
    }
}

static LLVMValueRef sum_place(vector_tile *v, int64_t i)
{
    int64_t row = i / v->tile->vectors, vector = i % v->tile->vectors;
    return emit_item(v->e, gemm_result_type(v->e, v->tile), v->g->c_tile, emit_i64(v->e, row * v->g->line + vector * v->tile->lanes));
}

/* Two vectors of sums of which one has the even columns and the other the odd ones, side by side. Until the last units of depth are added
 * they are kept apart, also where they wait. */
static void put_together(vector_tile *v, LLVMValueRef end)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    int64_t count = t->rows * t->vectors;
    LLVMValueRef last = t->one_pass ? NULL : LLVMBuildICmp(e->b, LLVMIntEQ, end, emit_i64(e, plan_looped_units(t)), "");
    LLVMValueRef apart[MOST_SUMS];
    memcpy(apart, v->sums, sizeof apart);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), after = emit_if(e, last);
    for (int64_t i = 0; i < count; i += 2) {
        LLVMValueRef both = emit_interleaved(e, v->sums[i], v->sums[i + 1]);
        v->sums[i] = half_of(e, both, t->lanes, 0);
        v->sums[i + 1] = half_of(e, both, t->lanes, 1);
    }
    join_sums(v, count, before, apart, after);
}

/* Of the `count`, those that C has; a correction begins at zero always. */
static void load_sums(vector_tile *v, int64_t count, LLVMValueRef first)
{
    emitter *e = v->e;
    LLVMTypeRef vector = emit_vector_type(v->sum, v->tile->lanes);
    LLVMValueRef zero = LLVMConstNull(vector);
    for (int64_t i = 0; i < count; i++)
        v->sums[i] = zero;
    if (v->g->start == START_ZERO)
        return;
    bool always = v->g->start == START_C;
    LLVMValueRef none[MOST_SUMS];
    memcpy(none, v->sums, sizeof none);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef after = emit_if(e, always ? NULL : LLVMBuildICmp(e->b, LLVMIntNE, first, emit_i64(e, 0), ""));
    for (int64_t i = 0; i < v->tile->rows * v->tile->vectors; i++)
        v->sums[i] = emit_last_load(e, vector, sum_place(v, i), 4, lanes_of(v, v->tile->stored_columns, i % v->tile->vectors));
    join_sums(v, v->tile->rows * v->tile->vectors, before, none, after);
}

/* The first step of time is stored, not added: to -0, that is the same. */
static void begin_tree_sums(vector_tile *v, int64_t count, LLVMValueRef first)
{
    emitter *e = v->e;
    LLVMValueRef none = emit_splat(e, emit_f32(e, -0.0), v->tile->lanes),
                 begins = LLVMBuildICmp(e->b, LLVMIntEQ, first, emit_i64(e, 0), "");
    for (int64_t i = 0; i < count; i++)
        v->sums[i] = v->g->start == START_ZERO ? none : LLVMBuildSelect(e->b, begins, none, v->sums[i], "");
}

/* Sums as codes, two vectors of them together: where they are rounded they are as many instructions as one, and fill one. */
static void store_codes(vector_tile *v)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    for (int64_t i = 0, count; i < t->rows * t->vectors; i += count) {
        int64_t vector = i % t->vectors, live = t->stored_columns - vector * t->lanes;
        count = vector + 1 < t->vectors ? 2 : 1;
        LLVMValueRef sums = count == 2 ? emit_side_by_side(e, v->sums[i], v->sums[i + 1]) : v->sums[i];
        emit_part_store(e, emit_narrow(e, t->code, sums), sum_place(v, i), 1, live < count * t->lanes ? live : count * t->lanes);
    }
}

static void store_sums(vector_tile *v, LLVMValueRef end)
{
    const plan_tile *t = v->tile;
    if (t->columns_apart)
        put_together(v, end);
    if (t->narrows) {
        store_codes(v);
        return;
    }
    for (int64_t i = 0; i < t->rows * t->vectors; i++) {
        LLVMValueRef sum = v->sums[i];
        if (t->product == PRODUCT_I8_DOT)
            sum = LLVMBuildSub(v->e->b, sum, v->sums[t->rows * t->vectors + i % t->vectors], "");
        emit_part_store(v->e, sum, sum_place(v, i), 4, lanes_of(v, t->stored_columns, i % t->vectors));
    }
}

/* `place`: where the step is kept. */
static void begin_step(vector_tile *v, LLVMValueRef unit, LLVMValueRef place)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    v->row_at = emit_opaque(e, emit_item(e, e->i32, v->g->row_panel, emit_scaled(e, unit, t->rows_in_place ? 1 : t->rows)));
    if (t->columns_kept)
        v->kept_at = emit_opaque(e, emit_item(e, e->i32, v->g->kept, emit_scaled(e, place, t->unit_line)));
    switch (v->g->columns) {
    case COLUMNS_KEPT: v->column_at = v->kept_at; break;
    case COLUMNS_PANEL: v->column_at = emit_opaque(e, emit_item(e, e->i32, v->g->column_panel, emit_scaled(e, unit, t->unit_line))); break;
    default: {
        LLVMValueRef further = emit_scaled(e, unit, t->per * t->column_line);
        v->column_at = emit_opaque(e, emit_item(e, emit_code_type(e, t->column_type), v->g->column_panel, further));
    }
    }
}

/* The units after the last whole step, added where the sums begin. They are kept after those of a pass. */
static void add_rest(vector_tile *v, int64_t count, LLVMValueRef first)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    int64_t looped = plan_looped_units(t);
    if (looped == t->live_units)
        return;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef after = emit_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, first, emit_i64(e, 0), ""));
    LLVMValueRef start[MOST_SUMS];
    memcpy(start, v->sums, sizeof start);
    begin_step(v, emit_i64(e, looped), emit_i64(e, looped < t->depth_block ? looped : t->depth_block));
    for (int64_t unit = looped; unit < t->live_units; unit++)
        emit_unit(v, unit - looped);
    join_sums(v, count, before, start, after);
}

static bool leaves_second_cache(const vector_tile *v)
{
    const plan_tile *t = v->tile;
    return (double)(t->padded_rows + t->padded_columns) * (double)t->units * 4 > (double)v->e->plan->machine.l2_bytes;
}

/* What the next units of depth read of a panel, far ahead of its use: the third cache is late, and all at once it is narrow. Each of the
 * tiles that read the panel asks for other lines of it, a few in a step. */
typedef struct panel_ahead {
    LLVMValueRef from; /* the tile's lines; NULL: none are asked for */
    int64_t each;      /* values of the panel that a unit asks for */
} panel_ahead;

static panel_ahead begin_ahead(const vector_tile *v, LLVMValueRef panel, int64_t width, LLVMValueRef sharer, int64_t sharers,
                               LLVMValueRef first)
{
    emitter *e = v->e;
    int64_t units = v->tile->depth_block;
    panel_ahead a = {.each = (width + sharers - 1) / sharers};
    LLVMValueRef next = emit_scaled(e, emit_plus(e, first, units), width);
    a.from = emit_item(e, e->i32, panel, LLVMBuildAdd(e->b, next, emit_scaled(e, sharer, units * a.each), ""));
    return a;
}

static void ask_ahead(const vector_tile *v, const panel_ahead *a, LLVMValueRef place)
{
    enum { LINE_UNITS = 16 };
    emitter *e = v->e;
    if (!a->from)
        return;
    LLVMValueRef at = emit_opaque(e, emit_item(e, e->i32, a->from, emit_scaled(e, place, a->each)));
    for (int64_t i = 0; i < a->each * v->tile->unit_block; i += LINE_UNITS)
        prefetch(e, emit_item(e, e->i32, at, emit_i64(e, i)));
}

/* Whole steps, from one on. */
static void add_steps(vector_tile *v, int64_t count, LLVMValueRef first, LLVMValueRef end)
{
    emitter *e = v->e;
    const plan_tile *t = v->tile;
    LLVMValueRef phi[MOST_SUMS];
    bool ahead = !t->one_pass && leaves_second_cache(v);
    panel_ahead columns = {0}, rows = {0};
    if (ahead && !t->columns_in_place)
        columns = begin_ahead(v, v->g->column_panel, t->unit_line, v->g->row_tile, t->row_block_tiles, first);
    if (ahead && !t->rows_in_place && t->padded_rows > t->rows)
        rows = begin_ahead(v, v->g->row_panel, t->rows, v->g->column_tile, t->column_block_tiles, first);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    emitter_loop unit;
    emit_loop_open(e, &unit, first, end, t->unit_block);
    for (int64_t i = 0; unit.body && i < count; i++) {
        phi[i] = LLVMBuildPhi(e->b, LLVMTypeOf(v->sums[i]), "sum");
        LLVMAddIncoming(phi[i], &v->sums[i], &before, 1);
        v->sums[i] = phi[i];
    }
    LLVMValueRef place = LLVMBuildSub(e->b, unit.counter, first, "");
    begin_step(v, unit.counter, place);
    ask_ahead(v, &columns, place);
    ask_ahead(v, &rows, place);
    if (t->product == PRODUCT_TREE)
        emit_trees(v);
    for (int64_t step = 0; t->product != PRODUCT_TREE && step < t->unit_block; step++)
        emit_unit(v, step);
    for (int64_t i = 0; unit.body && i < count; i++)
        LLVMAddIncoming(phi[i], &v->sums[i], &unit.body, 1);
    emit_loop_close(e, &unit);
}

void emit_vector_tile(gemm *g, LLVMValueRef first, LLVMValueRef end)
{
    vector_tile v = {.g = g, .e = g->e, .tile = g->tile};
    v.sum = product_sum_type(v.e, v.tile);
    int64_t count = (g->tile->rows + (g->tile->product == PRODUCT_I8_DOT)) * g->tile->vectors;
    load_sums(&v, count, first);
    if (g->tile->product == PRODUCT_TREE)
        begin_tree_sums(&v, count, first);
    add_rest(&v, count, first);
    if (plan_looped_units(g->tile) > 0)
        add_steps(&v, count, first, end);
    store_sums(&v, end);
}
