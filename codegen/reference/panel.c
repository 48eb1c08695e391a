#include "codegen/reference/panel.h"

#include "codegen/reference/bound.h"
#include "codegen/reference/convert.h"
#include "codegen/reference/walk.h"

enum { MOST_LINES = 64 };

typedef struct panel {
    emitter *e;
    const panel_side *side;
    panel_kind kind;
    const plan_tile *tile;
    const plan_digits *lines, *depth;
    int64_t width; /* lines of a tile */
    bool by_line;
    dtype dtype;
    LLVMTypeRef item;        /* in a panel: 32 bits / per */
    LLVMValueRef base;       /* element of the tensor, from the batch digits and the shifts */
    LLVMValueRef first, end; /* whole units to pack now; NULL: all */
} panel;

static bool is_exact(const panel *p)
{
    return p->e->plan->exact[p->side->tensor];
}

/* ---- an element becomes an item ---- */

/* The upper half of an f32, where the product takes no more. */
static LLVMValueRef item_of_f32(const panel *p, LLVMValueRef value)
{
    emitter *e = p->e;
    LLVMValueRef bits = LLVMBuildBitCast(e->b, value, emit_type_like(e, value, e->i32), "");
    if (p->tile->per == 1)
        return bits;
    return LLVMBuildTrunc(e->b, LLVMBuildLShr(e->b, bits, emit_i32_like(e, bits, 16), ""), emit_type_like(e, bits, p->item), "");
}

/* Codes, one or a vector, as the bits that the product wants. */
static LLVMValueRef value_item(const panel *p, LLVMValueRef code)
{
    emitter *e = p->e;
    LLVMTypeRef item = emit_type_like(e, code, p->item);
    LLVMValueRef bits;
    if (p->dtype == DTYPE_F32)
        return code;
    switch (p->tile->product) {
    case PRODUCT_BF16_DOT:
    case PRODUCT_BF16_TILES:
        if (p->dtype == DTYPE_BF16)
            return code;
        return item_of_f32(p, emit_widen(e, p->dtype, code));
    case PRODUCT_I8_DOT:
    case PRODUCT_I8_TILES:
    case PRODUCT_I16_PAIRS:
        bits = emit_widen(e, p->dtype, code);
        if (p->tile->product == PRODUCT_I8_DOT && p->side->group == PLAN_ROW)
            bits = LLVMBuildXor(e->b, bits, emit_i32_like(e, bits, 0x80), "");
        return LLVMBuildTrunc(e->b, bits, item, "");
    default: return LLVMBuildBitCast(e->b, emit_widen(e, p->dtype, code), item, "");
    }
}

static LLVMValueRef item_of(const panel *p, LLVMValueRef code)
{
    return p->kind == PANEL_VALUE ? value_item(p, code) : item_of_f32(p, emit_magnitude(p->e, emit_widen(p->e, p->dtype, code)));
}

/* ---- one element at a time ---- */

static LLVMValueRef element_item(const panel *p, LLVMValueRef at)
{
    emitter *e = p->e;
    if (p->kind == PANEL_VALUE || p->kind == PANEL_MAGNITUDE || (p->kind == PANEL_LARGEST && is_exact(p)))
        return item_of(p, emit_code_load(e, p->dtype, p->side->source, at));
    LLVMValueRef error = emit_rounded_up(e, emit_load(e, e->f64, p->side->bound, at));
    if (p->kind == PANEL_LARGEST) {
        LLVMValueRef value = emit_widen(e, p->dtype, emit_code_load(e, p->dtype, p->side->source, at));
        error = LLVMBuildFAdd(e->b, emit_magnitude(e, value), error, "");
    }
    return LLVMBuildBitCast(e->b, error, e->i32, "");
}

static LLVMValueRef quotient(emitter *e, LLVMValueRef x, int64_t by)
{
    return by == 1 ? x : LLVMBuildUDiv(e->b, x, emit_i64(e, by), "");
}

static LLVMValueRef remainder_of(emitter *e, LLVMValueRef x, int64_t by)
{
    return by == 1 ? emit_i64(e, 0) : LLVMBuildURem(e->b, x, emit_i64(e, by), "");
}

static LLVMValueRef sum_of(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildAdd(e->b, x, y, "");
}

/* Where in its tile the item of depth k begins; a line further is line_step. */
static LLVMValueRef item_place(const panel *p, LLVMValueRef k)
{
    emitter *e = p->e;
    const plan_tile *t = p->tile;
    LLVMValueRef unit = quotient(e, k, t->per), in_unit = remainder_of(e, k, t->per);
    if (!p->by_line)
        return sum_of(e, emit_scaled(e, unit, p->width * t->per), in_unit);
    LLVMValueRef block = emit_scaled(e, quotient(e, unit, t->unit_block), p->width * t->unit_block * t->per);
    LLVMValueRef in_block = emit_scaled(e, remainder_of(e, unit, t->unit_block), t->per);
    return sum_of(e, sum_of(e, block, in_block), in_unit);
}

static int64_t line_step(const panel *p)
{
    return (p->by_line ? p->tile->unit_block : 1) * p->tile->per;
}

/* What stands for a term that does not exist, so that it adds nothing: 0 in both sources; where zeros have a sign, -0 times 1. */
static LLVMValueRef absent_item(const panel *p)
{
    emitter *e = p->e;
    bool rows = p->side->group == PLAN_ROW;
    if (p->tile->product == PRODUCT_I8_DOT && rows)
        return LLVMConstInt(p->item, 0x80, false); /* 0, plus 128 */
    if (p->tile->product == PRODUCT_TREE)
        return LLVMConstBitCast(emit_f32(e, rows ? -0.0 : 1), p->item);
    return LLVMConstNull(p->item);
}

/* The places of terms come from the pieces of groups, and are not consecutive. */
static bool has_places(const panel *p)
{
    return p->tile->product == PRODUCT_TREE && p->side->of->order_places;
}

/* In the machine's order, of the term at the open digits: its place in each piece of its groups, the outermost piece slowest. */
static LLVMValueRef order_place(const panel *p, unsigned first_depth)
{
    emitter *e = p->e;
    const einsum_statement *s = p->side->of->of;
    LLVMValueRef place = emit_i64(e, 0);
    for (uint32_t i = 0; i < s->piece_count; i++) {
        const einsum_piece *piece = &s->pieces[i];
        LLVMValueRef position = emit_i64(e, 0);
        for (unsigned d = first_depth; d < e->open_count; d++)
            if (e->open[d].digit.group == piece->group)
                position = sum_of(e, position, emit_scaled(e, e->open[d].loop.counter, e->open[d].digit.stride));
        position = remainder_of(e, quotient(e, position, piece->weight), piece->size);
        place = sum_of(e, emit_scaled(e, place, piece->size), position);
    }
    return place;
}

/* What is at the places where no term stands. */
static void fill_absent(const panel *p, LLVMValueRef first_item, LLVMValueRef items)
{
    emitter *e = p->e;
    emitter_loop loop;
    LLVMValueRef from = emit_item(e, p->item, p->side->panel, first_item);
    emit_loop_open(e, &loop, emit_i64(e, 0), items, 1);
    emit_store(e, absent_item(p), from, loop.counter);
    emit_loop_close(e, &loop);
}

static void emit_element(const panel *p, LLVMValueRef to)
{
    emitter *e = p->e;
    LLVMValueRef guard = emit_source_guard(e, p->side->tensor, p->side->side), from = emit_tensor_offset(e, p->side->tensor, p->side->side);
    if (guard)
        from = LLVMBuildSelect(e->b, guard, from, emit_i64(e, 0), "");
    LLVMValueRef item = element_item(p, from);
    if (guard && p->tile->product == PRODUCT_TREE) { /* a border's zero is a term */
        LLVMValueRef exists = emit_guard(e);
        item = LLVMBuildSelect(e->b, guard, item, LLVMConstNull(p->item), "");
        item = exists ? LLVMBuildSelect(e->b, exists, item, absent_item(p), "") : item;
    } else if (guard) {
        item = LLVMBuildSelect(e->b, guard, item, absent_item(p), "");
    }
    emit_store(e, item, p->side->panel, to);
}

static void emit_elements(const panel *p, LLVMValueRef first, LLVMValueRef end)
{
    emitter *e = p->e;
    int64_t tile_items = p->width * p->tile->units * p->tile->per, item_bytes = 4 / p->tile->per;
    LLVMValueRef bytes = emit_scaled(e, LLVMBuildSub(e->b, end, first, ""), tile_items * item_bytes);
    LLVMValueRef begin = emit_item(e, e->i8, p->side->panel, emit_scaled(e, first, tile_items * item_bytes));
    LLVMBasicBlockRef some = has_places(p) ? emit_if_some(e, first, end) : NULL;
    if (has_places(p))
        fill_absent(p, emit_scaled(e, first, tile_items), emit_scaled(e, LLVMBuildSub(e->b, end, first, ""), tile_items));
    else
        LLVMBuildMemSet(e->b, begin, LLVMConstInt(e->i8, 0, false), bytes, 1);
    emit_if_end(e, some);
    unsigned first_line = e->open_count;
    emit_digits_open(e, p->lines);
    LLVMValueRef line = emit_digits_index(e, first_line), tile = quotient(e, line, p->width);
    LLVMValueRef inside =
        LLVMBuildAnd(e->b, LLVMBuildICmp(e->b, LLVMIntSGE, tile, first, ""), LLVMBuildICmp(e->b, LLVMIntSLT, tile, end, ""), "");
    LLVMBasicBlockRef after = emit_if(e, inside);
    LLVMValueRef base = emit_scaled(e, remainder_of(e, line, p->width), line_step(p));
    base = sum_of(e, base, emit_scaled(e, tile, tile_items));
    unsigned first_depth = e->open_count;
    emit_digits_open(e, p->depth);
    LLVMBasicBlockRef absent = has_places(p) ? emit_if(e, emit_guard(e)) : NULL; /* what does not exist has no place */
    LLVMValueRef k = has_places(p) ? order_place(p, first_depth) : emit_digits_index(e, first_depth);
    emit_element(p, sum_of(e, base, item_place(p, k)));
    emit_if_end(e, absent);
    emit_digits_close(e, p->depth);
    emit_if_end(e, after);
    emit_digits_close(e, p->lines);
}

/* ---- vectors ---- */

/* An element of the source, and a unit of the panel; what is read or written next to it lies a constant further. */
static LLVMValueRef source_place(const panel *p, LLVMValueRef at)
{
    return emit_opaque(p->e, emit_item(p->e, emit_code_type(p->e, p->dtype), p->side->source, at));
}

static LLVMValueRef panel_place(const panel *p, LLVMValueRef at)
{
    return emit_opaque(p->e, emit_item(p->e, p->e->i32, p->side->panel, at));
}

/* `count` codes side by side, of which `live` exist; the others are 0. */
static LLVMValueRef load_codes(const panel *p, LLVMValueRef from, int64_t count, int64_t live)
{
    LLVMTypeRef type = emit_vector_type(emit_code_type(p->e, p->dtype), count);
    return live == 0 ? LLVMConstNull(type) : emit_part_load(p->e, type, from, 1, live);
}

static void store_units(const panel *p, LLVMValueRef units, LLVMValueRef place, int64_t further)
{
    LLVMSetAlignment(LLVMBuildStore(p->e->b, units, emit_item(p->e, p->e->i32, place, emit_i64(p->e, further))), 4);
}

/* Where the lanes of a pair of lines go at a step of the transposition: lanes of the second line count on from the first's. */
static void exchange_places(int lanes, int step, bool upper, int *places)
{
    for (int j = 0; j < lanes; j++)
        places[j] = upper ? (j & step ? lanes + j : j + step) : (j & step ? lanes + j - step : j);
}

enum { WIDE_LANES = 16, WIDE_STEPS = 4 };

/* The places of all steps in memory. They are no constants to LLVM: its combiner takes 20 ms to find that shuffles with known places
 * have no shorter form. */
static LLVMValueRef wide_places(emitter *e)
{
    static const char name[] = "transposition";
    LLVMValueRef known = LLVMGetNamedGlobal(e->module, name), vectors[2 * WIDE_STEPS];
    if (known)
        return known;
    for (int i = 0; i < 2 * WIDE_STEPS; i++) {
        int places[WIDE_LANES];
        LLVMValueRef lanes[WIDE_LANES];
        exchange_places(WIDE_LANES, 1 << i / 2, i % 2, places);
        for (int j = 0; j < WIDE_LANES; j++)
            lanes[j] = emit_i32(e, places[j]);
        vectors[i] = LLVMConstVector(lanes, WIDE_LANES);
    }
    LLVMTypeRef type = LLVMTypeOf(vectors[0]);
    known = LLVMAddGlobal(e->module, LLVMArrayType2(type, 2 * WIDE_STEPS), name);
    LLVMSetInitializer(known, LLVMConstArray2(type, vectors, 2 * WIDE_STEPS));
    LLVMSetLinkage(known, LLVMPrivateLinkage);
    return known;
}

static LLVMValueRef exchange(emitter *e, LLVMValueRef a, LLVMValueRef b, int lanes, int step, bool upper)
{
    if (lanes == WIDE_LANES) {
        LLVMTypeRef type = emit_vector_type(e->i32, lanes);
        int number = 2 * __builtin_ctz((unsigned)step) + upper;
        LLVMValueRef places = LLVMBuildLoad2(e->b, type, emit_item(e, type, wide_places(e), emit_i64(e, number)), "");
        LLVMValueRef args[] = {a, places, b};
        return emit_plain_intrinsic(e, "llvm.x86.avx512.vpermi2var.d.512", args, 3);
    }
    int places[WIDE_LANES];
    exchange_places(lanes, step, upper, places);
    return emit_shuffle(e, a, b, places, (unsigned)lanes);
}

/* `lanes` vectors of as many units, in place. A step whose places are known is a block of its own: of all in one block LLVM's combiner
 * follows the shuffles through all of them, a third of what a kernel takes that is compiled quickly, and finds nothing. */
static void transpose(emitter *e, LLVMValueRef *v, int lanes)
{
    for (int step = 1; step < lanes; step *= 2) {
        if (step > 1 && lanes < WIDE_LANES)
            emit_block(e);
        for (int i = 0; i < lanes; i++) {
            if (i & step)
                continue;
            LLVMValueRef a = v[i], b = v[i + step];
            v[i] = exchange(e, a, b, lanes, step, false);
            v[i + step] = exchange(e, a, b, lanes, step, true);
        }
    }
}

static LLVMValueRef depth_offset(const panel *p, LLVMValueRef k)
{
    return emit_group_offset(p->e, p->side->tensor, p->side->side, p->depth, k);
}

static LLVMValueRef line_offset(const panel *p, LLVMValueRef line)
{
    return sum_of(p->e, p->base, emit_group_offset(p->e, p->side->tensor, p->side->side, p->lines, line));
}

/* The place `number` counts of the digits after another one: a constant further where they are one digit; NULL: they are several. */
static LLVMValueRef neighbour(const panel *p, const plan_digits *digits, LLVMValueRef place, int64_t number)
{
    if (number == 0)
        return place;
    if (digits->count != 1)
        return NULL;
    int64_t stride = (int64_t)walk_stride(p->e->plan->e, p->side->tensor, p->side->side, &digits->items[0]);
    return emit_item(p->e, emit_code_type(p->e, p->dtype), place, emit_i64(p->e, number * stride));
}

/* Units of items that lie side by side, of which `live` exist. */
static LLVMValueRef units_along_depth(const panel *p, LLVMValueRef from, int64_t units, int64_t live)
{
    LLVMValueRef codes = load_codes(p, from, units * p->tile->per, live);
    return LLVMBuildBitCast(p->e->b, item_of(p, codes), emit_vector_type(p->e->i32, units), "");
}

/* Neighbouring lines at an index of depth. */
typedef struct depth_place {
    LLVMValueRef line, k, at;
} depth_place;

static depth_place place_of_depth(const panel *p, LLVMValueRef line, LLVMValueRef k)
{
    return (depth_place){line, k, source_place(p, sum_of(p->e, line, depth_offset(p, k)))};
}

static LLVMValueRef past_depth(const panel *p, const depth_place *d, int64_t items)
{
    LLVMValueRef near = neighbour(p, p->depth, d->at, items);
    return near ? near : source_place(p, sum_of(p->e, d->line, depth_offset(p, emit_plus(p->e, d->k, items))));
}

/* A unit of `lanes` neighbouring lines of which `live` exist; its items are `items` neighbours in depth, from `first` on, counted from the
 * place.
 */
static LLVMValueRef unit_along_lines(const panel *p, const depth_place *d, int64_t first, int64_t lanes, int64_t live, int64_t items)
{
    emitter *e = p->e;
    int64_t per = p->tile->per;
    LLVMValueRef v[4];
    for (int64_t i = 0; i < per; i++)
        v[i] = i < items ? item_of(p, load_codes(p, past_depth(p, d, first + i), lanes, live))
                         : LLVMConstNull(emit_vector_type(p->item, lanes));
    for (int64_t half = per / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; i++)
            v[i] = emit_interleaved(e, v[i], v[i + half]);
    return per > 1 ? LLVMBuildBitCast(e->b, v[0], emit_vector_type(e->i32, lanes), "") : v[0];
}

/* A group of neighbouring lines of a tile: the first one, how many there are room for, and how many exist. */
typedef struct line_group {
    LLVMValueRef tile; /* unit at which the tile's panel begins */
    LLVMValueRef line;
    int64_t first, lanes, live;
} line_group;

/* Those that are not found after the first one. */
static void group_lines(const panel *p, const line_group *g, LLVMValueRef *lines)
{
    for (int64_t i = 0; i < (p->lines->count == 1 ? 1 : g->live); i++)
        lines[i] = line_offset(p, emit_plus(p->e, g->line, i));
}

/* Units of every line from k on. Lines that do not exist repeat the last one: their sums are not used. */
static void load_lines(const panel *p, const line_group *g, LLVMValueRef *lines, LLVMValueRef k, int64_t units, int64_t live,
                       LLVMValueRef *v)
{
    LLVMValueRef depth = depth_offset(p, k), first = source_place(p, sum_of(p->e, lines[0], depth));
    for (int64_t i = 0; i < g->live; i++) {
        LLVMValueRef near = neighbour(p, p->lines, first, i);
        v[i] = units_along_depth(p, near ? near : source_place(p, sum_of(p->e, lines[i], depth)), units, live);
    }
    for (int64_t i = g->live; i < g->lanes; i++)
        v[i] = v[g->live - 1];
}

/* ---- along depth, panel by line: copies ---- */

static void copy_chunk(const panel *p, const line_group *g, LLVMValueRef *lines, LLVMValueRef unit, int64_t live)
{
    emitter *e = p->e;
    int64_t block = p->tile->unit_block;
    LLVMValueRef to = panel_place(p, sum_of(e, g->tile, emit_scaled(e, unit, p->width))), k = emit_scaled(e, unit, p->tile->per);
    LLVMValueRef v[MOST_LINES];
    load_lines(p, g, lines, k, block, live, v);
    for (int64_t i = 0; i < g->lanes; i++)
        store_units(p, v[i], to, (g->first + i) * block);
}

/* ---- along depth, panel by unit: transposed ---- */

static void transpose_chunk(const panel *p, const line_group *g, LLVMValueRef *lines, LLVMValueRef unit, int64_t live)
{
    emitter *e = p->e;
    int64_t lanes = p->tile->lanes, items = lanes * p->tile->per;
    LLVMValueRef v[MOST_LINES], k = emit_scaled(e, unit, p->tile->per);
    load_lines(p, g, lines, k, lanes, live, v);
    transpose(e, v, (int)lanes);
    int64_t most = live < items ? p->tile->units - p->depth->combinations / items * lanes : lanes; /* a short chunk is the last one */
    LLVMValueRef to = panel_place(p, sum_of(e, g->tile, emit_scaled(e, unit, p->width)));
    for (int64_t j = 0; j < most; j++)
        store_units(p, v[j], to, j * p->width + g->first);
}

typedef void chunk_function(const panel *p, const line_group *g, LLVMValueRef *lines, LLVMValueRef unit, int64_t live);

/* Chunks of `units` units; the last one may be short. */
static void emit_chunks(const panel *p, const line_group *g, int64_t units, chunk_function *chunk)
{
    emitter *e = p->e;
    LLVMValueRef lines[MOST_LINES];
    group_lines(p, g, lines);
    int64_t items = units * p->tile->per, whole = p->depth->combinations / items, rest = p->depth->combinations % items;
    if (whole > 0) {
        emitter_loop loop;
        emit_loop_open(e, &loop, emit_i64(e, 0), emit_i64(e, whole * units), units);
        chunk(p, g, lines, loop.counter, items);
        emit_loop_close(e, &loop);
    }
    if (rest > 0)
        chunk(p, g, lines, emit_i64(e, whole * units), rest);
}

/* ---- along lines ---- */

static void unit_chunk(const panel *p, const line_group *g, LLVMValueRef line, LLVMValueRef unit, int64_t items)
{
    depth_place from = items > 0 ? place_of_depth(p, line, emit_scaled(p->e, unit, p->tile->per)) : (depth_place){0};
    LLVMValueRef v = unit_along_lines(p, &from, 0, g->lanes, g->live, items);
    store_units(p, v, panel_place(p, sum_of(p->e, g->tile, emit_scaled(p->e, unit, p->width))), g->first);
}

/* The whole units from `first` to `end`, which is not beyond them, and after the last of them those that are not whole. */
static void emit_units(const panel *p, const line_group *g)
{
    emitter *e = p->e;
    LLVMValueRef line = line_offset(p, g->line);
    int64_t per = p->tile->per, whole = p->depth->combinations / per, rest = p->depth->combinations % per;
    if (whole > 0) {
        LLVMValueRef first = p->first ? p->first : emit_i64(e, 0);
        emitter_loop loop;
        emit_loop_open(e, &loop, first, p->first ? p->end : emit_i64(e, whole), 1);
        unit_chunk(p, g, line, loop.counter, per);
        emit_loop_close(e, &loop);
    }
    LLVMBasicBlockRef after = NULL;
    if (p->first && whole < p->tile->units)
        after = emit_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, p->end, emit_i64(e, whole), ""));
    for (int64_t unit = whole; unit < p->tile->units; unit++)
        unit_chunk(p, g, line, emit_i64(e, unit), unit == whole ? rest : 0);
    emit_if_end(e, after);
}

/* For tile registers: a block of units, turned into lines. */
static void line_chunk(const panel *p, const line_group *g, LLVMValueRef *lines, LLVMValueRef unit, int64_t live)
{
    emitter *e = p->e;
    int64_t block = p->tile->unit_block, per = p->tile->per;
    LLVMValueRef v[MOST_LINES];
    depth_place from = place_of_depth(p, lines[0], emit_scaled(e, unit, per));
    for (int64_t u = 0; u < block; u++) {
        int64_t items = live - u * per < per ? live - u * per : per;
        v[u] = unit_along_lines(p, &from, u * per, g->lanes, g->live, items > 0 ? items : 0);
    }
    transpose(e, v, (int)block);
    LLVMValueRef to = panel_place(p, sum_of(e, g->tile, emit_scaled(e, unit, p->width)));
    for (int64_t i = 0; i < block; i++)
        store_units(p, v[i], to, (g->first + i) * block);
}

/* ---- which way ---- */

typedef enum way { ELEMENTS, ALONG_DEPTH, ALONG_LINES } way;

static bool runs(const panel *p, const plan_digits *digits, int64_t of)
{
    int64_t run = walk_run(p->e->plan->e, p->side->tensor, p->side->side, digits);
    return run == INT64_MAX || (run > 0 && run % of == 0);
}

static int64_t lines_at_once(const panel *p)
{
    return p->side->group == PLAN_COLUMN || plan_in_tile_registers(p->tile) ? p->tile->lanes : p->width;
}

static way way_of(const panel *p)
{
    const plan_group own[] = {PLAN_BATCH, p->side->group, PLAN_DEPTH};
    if (has_places(p))
        return ELEMENTS;
    bool codes = p->kind == PANEL_VALUE || p->kind == PANEL_MAGNITUDE || (p->kind == PANEL_LARGEST && is_exact(p));
    if (!codes || dtype_row_of(p->dtype)->bits < 8 || walk_is_guarded(p->e->plan->e, p->side->of, p->side->tensor, p->side->side, own, 3))
        return ELEMENTS;
    bool columns = p->side->group == PLAN_COLUMN, registers = plan_in_tile_registers(p->tile);
    int64_t depth_step = (p->by_line ? p->tile->unit_block : p->tile->lanes) * p->tile->per;
    bool depth = p->depth->count > 0 && (columns || p->by_line) && runs(p, p->depth, depth_step);
    bool lines = p->lines->count > 0 && (!p->by_line || registers) && runs(p, p->lines, lines_at_once(p));
    if (lines && !p->by_line)
        return ALONG_LINES;
    return depth ? ALONG_DEPTH : lines ? ALONG_LINES : ELEMENTS;
}

static void emit_line_group(const panel *p, way w, const line_group *g)
{
    if (w == ALONG_DEPTH && p->by_line)
        emit_chunks(p, g, p->tile->unit_block, copy_chunk);
    else if (w == ALONG_DEPTH)
        emit_chunks(p, g, p->tile->lanes, transpose_chunk);
    else if (p->by_line)
        emit_chunks(p, g, p->tile->unit_block, line_chunk);
    else
        emit_units(p, g);
}

/* `live` lines of the tile exist. */
static void emit_tile_panel(const panel *p, way w, LLVMValueRef tile, int64_t live)
{
    emitter *e = p->e;
    int64_t lanes = lines_at_once(p);
    for (int64_t first = 0; first < p->width && first < live; first += lanes) {
        line_group g = {.first = first, .lanes = lanes, .live = live - first < lanes ? live - first : lanes};
        g.tile = emit_scaled(e, tile, p->width * p->tile->units);
        g.line = emit_plus(e, emit_scaled(e, tile, p->width), first);
        emit_line_group(p, w, &g);
    }
}

/* Groups of lines of which none exists are not packed. What the storage holds there may be subnormal, and then slow to multiply. */
static void clear_rest(const panel *p, int64_t tile, int64_t live, LLVMValueRef end)
{
    emitter *e = p->e;
    if (live == 0 || live + lines_at_once(p) > p->width)
        return;
    LLVMBasicBlockRef after = emit_if_some(e, emit_i64(e, tile), end);
    int64_t units = p->width * p->tile->units;
    LLVMBuildMemSet(e->b, emit_item(e, e->i32, p->side->panel, emit_i64(e, tile * units)), LLVMConstInt(e->i8, 0, false),
                    emit_i64(e, units * 4), 4);
    emit_if_end(e, after);
}

static void emit_vectors(panel *p, way w, LLVMValueRef first, LLVMValueRef end)
{
    enum { PAGE_UNITS = 8 };
    emitter *e = p->e;
    int64_t whole = p->lines->combinations / p->width, rest = p->lines->combinations % p->width,
            units = p->depth->combinations / p->tile->per;
    clear_rest(p, whole, rest, end);
    emitter_loop few;
    bool chunks = w == ALONG_LINES && !p->by_line && units > PAGE_UNITS && whole > 1;
    if (chunks) {
        emit_loop_open(e, &few, emit_i64(e, 0), emit_i64(e, units), PAGE_UNITS);
        p->first = few.counter;
        p->end = emit_least(e, emit_plus(e, few.counter, PAGE_UNITS), emit_i64(e, units));
    }
    if (whole > 0) {
        LLVMValueRef last = emit_least(e, end, emit_i64(e, whole));
        LLVMBasicBlockRef after = emit_if_some(e, first, last);
        emitter_loop tile;
        emit_loop_open(e, &tile, first, last, 1);
        emit_tile_panel(p, w, tile.counter, p->width);
        emit_loop_close(e, &tile);
        emit_if_end(e, after);
    }
    if (rest > 0) {
        LLVMBasicBlockRef after = emit_if_some(e, emit_i64(e, whole), end);
        emit_tile_panel(p, w, emit_i64(e, whole), rest);
        emit_if_end(e, after);
    }
    if (chunks)
        emit_loop_close(e, &few);
}

void emit_panels(emitter *e, const panel_side *side, panel_kind kind, LLVMValueRef first, LLVMValueRef end)
{
    const plan_tile *t = side->tile;
    bool rows = side->group == PLAN_ROW;
    panel p = {.e = e,
               .side = side,
               .kind = kind,
               .tile = t,
               .lines = &side->of->digits[side->group],
               .depth = &side->of->digits[PLAN_DEPTH],
               .width = rows ? t->rows : t->columns,
               .by_line = rows && t->rows_by_line,
               .dtype = e->plan->e->tensors[side->tensor].dtype,
               .item = LLVMIntTypeInContext(e->context, (unsigned)(32 / t->per)),
               .base = emit_tensor_offset(e, side->tensor, side->side)};
    way w = way_of(&p);
    if (w == ELEMENTS)
        emit_elements(&p, first, end);
    else
        emit_vectors(&p, w, first, end);
}
