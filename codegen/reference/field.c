#include "codegen/reference/field.h"

#include <stdio.h>
#include <stdlib.h>

#include "codegen/reference/walk.h"

enum {
    TILE = 2,              /* rows and columns that are multiplied at once: their sums stay in registers */
    MOST_PRODUCTS = 32,    /* of less than 2^122, added to a folded sum */
    BLOCK_BYTES = 1 << 18, /* of columns, which stay in a cache near by */
    PRIME_BITS = 61,
    VALUE_BYTES = 8,
};

static int64_t tiles_of(int64_t lines)
{
    return (lines + TILE - 1) / TILE;
}

/* Depth in equal steps of as many products as a sum takes. */
typedef struct depth_shape {
    int64_t steps, each;
} depth_shape;

static depth_shape depth_of(const plan_statement *s)
{
    int64_t depth = s->digits[PLAN_DEPTH].combinations, steps = (depth + MOST_PRODUCTS - 1) / MOST_PRODUCTS;
    return (depth_shape){steps, (depth + steps - 1) / steps};
}

static int64_t line_of(const plan_statement *s)
{
    return depth_of(s).steps * depth_of(s).each;
}

bool field_shape_of(const plan_statement *s, field_shape *out)
{
    *out = (field_shape){.batches = s->digits[PLAN_BATCH].combinations, .row_tiles = 1, .products = 1};
    for (int g = 0; g < PLAN_GROUP_COUNT; g++)
        out->products *= (double)s->digits[g].combinations;
    /* A copy has no tiles, and statements next to a map, which may have taken the contraction into itself, are not decided over the field.
     */
    if (s->of->op != MATH_CONTRACT || s->digits[PLAN_DEPTH].combinations < 1)
        return true;
    int64_t rows = tiles_of(s->digits[PLAN_ROW].combinations), columns = tiles_of(s->digits[PLAN_COLUMN].combinations), line = line_of(s);
    out->row_tiles = rows;
    double values = ((double)rows + (double)columns) * TILE * (double)line + (double)rows * (double)columns * TILE * TILE;
    if (values * VALUE_BYTES > (double)(INT64_C(1) << 34))
        return false;
    out->scratch_bytes = ((rows + columns) * TILE * line + rows * columns * TILE * TILE) * VALUE_BYTES;
    return true;
}

/* ---- arithmetic ---- */

static LLVMTypeRef wide_type(emitter *e)
{
    return LLVMIntTypeInContext(e->context, 128);
}

static LLVMValueRef wide(emitter *e, uint64_t value)
{
    return LLVMConstInt(wide_type(e), value, false);
}

/* 2^61 is 1. */
static LLVMValueRef emit_fold(emitter *e, LLVMValueRef sum)
{
    LLVMValueRef low = LLVMBuildAnd(e->b, sum, wide(e, (UINT64_C(1) << PRIME_BITS) - 1), "");
    return LLVMBuildAdd(e->b, low, LLVMBuildLShr(e->b, sum, wide(e, PRIME_BITS), ""), "");
}

/* The residue itself, in 64 bits. */
static LLVMValueRef emit_residue(emitter *e, LLVMValueRef sum)
{
    LLVMValueRef prime = wide(e, (UINT64_C(1) << PRIME_BITS) - 1), x = emit_fold(e, emit_fold(e, emit_fold(e, sum)));
    LLVMValueRef less = LLVMBuildSub(e->b, x, prime, "");
    x = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntUGE, x, prime, ""), less, x, "");
    return LLVMBuildTrunc(e->b, x, e->i64, "");
}

/* ---- a tile ---- */

/* Sums that a loop carries. */
typedef struct carried {
    LLVMValueRef sums[TILE * TILE], phis[TILE * TILE];
    emitter_loop loop;
} carried;

static void carry_open(emitter *e, carried *c, int64_t iterations)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    emit_loop_open(e, &c->loop, emit_i64(e, 0), emit_i64(e, iterations), 1);
    for (int i = 0; i < TILE * TILE && c->loop.body; i++) {
        c->phis[i] = LLVMBuildPhi(e->b, wide_type(e), "sum");
        LLVMAddIncoming(c->phis[i], &c->sums[i], &before, 1);
        c->sums[i] = c->phis[i];
    }
}

static void carry_close(emitter *e, carried *c)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    for (int i = 0; i < TILE * TILE && c->loop.body; i++)
        LLVMAddIncoming(c->phis[i], &c->sums[i], &latch, 1);
    emit_loop_close(e, &c->loop);
}

static LLVMValueRef load_line(emitter *e, LLVMValueRef lines, int64_t number, int64_t line, LLVMValueRef k)
{
    LLVMValueRef value = emit_load(e, e->i64, lines, emit_plus(e, k, number * line));
    return LLVMBuildZExt(e->b, value, wide_type(e), "");
}

/* void tile(sums, rows, columns, values between rows of sums) */
static LLVMValueRef emit_tile(emitter *e, const plan_statement *s, const char *name, LLVMTypeRef *type)
{
    depth_shape depth = depth_of(s);
    int64_t line = line_of(s);
    emit_function(e, name, 3, 1, type);
    LLVMValueRef function = e->function, out = LLVMGetParam(function, 0), rows = LLVMGetParam(function, 1),
                 columns = LLVMGetParam(function, 2);
    carried outer = {.loop = {0}};
    for (int i = 0; i < TILE * TILE; i++)
        outer.sums[i] = wide(e, 0);
    carry_open(e, &outer, depth.steps);
    carried inner = {.loop = {0}};
    for (int i = 0; i < TILE * TILE; i++)
        inner.sums[i] = outer.sums[i];
    LLVMValueRef from = emit_scaled(e, outer.loop.counter, depth.each);
    carry_open(e, &inner, depth.each);
    LLVMValueRef k = LLVMBuildAdd(e->b, from, inner.loop.counter, ""), column[TILE];
    for (int j = 0; j < TILE; j++)
        column[j] = load_line(e, columns, j, line, k);
    for (int i = 0; i < TILE; i++) {
        LLVMValueRef row = load_line(e, rows, i, line, k);
        for (int j = 0; j < TILE; j++)
            inner.sums[i * TILE + j] = LLVMBuildAdd(e->b, inner.sums[i * TILE + j], LLVMBuildMul(e->b, row, column[j], ""), "");
    }
    carry_close(e, &inner);
    for (int i = 0; i < TILE * TILE; i++)
        outer.sums[i] = emit_fold(e, inner.sums[i]);
    carry_close(e, &outer);
    for (int i = 0; i < TILE; i++)
        for (int j = 0; j < TILE; j++) {
            LLVMValueRef at = LLVMBuildMul(e->b, LLVMGetParam(function, 3), emit_i64(e, i), "");
            emit_store(e, emit_residue(e, outer.sums[i * TILE + j]), out, emit_plus(e, at, j));
        }
    emit_function_end(e);
    return function;
}

/* ---- a statement ---- */

enum {
    DST,
    ROWS,
    COLUMNS,
    SCRATCH,
    POINTERS,
    BASES = POINTERS,
    RANGES = BASES + 3,
    FIRST_BATCH = RANGES,
    END_BATCH,
    FIRST_TILE,
    END_TILE,
    PARAMS,
    INTEGERS = PARAMS - POINTERS
};

typedef struct statement {
    emitter *e;
    const plan_statement *plan;
    LLVMValueRef params[PARAMS];
    LLVMValueRef tile;
    LLVMTypeRef tile_type, type;
    int64_t line;
} statement;

static LLVMValueRef scratch_at(const statement *s, int64_t values)
{
    return emit_item(s->e, s->e->i64, s->params[SCRATCH], emit_i64(s->e, values));
}

static LLVMValueRef counter_or_zero(emitter *e, const plan_digits *digits, const emitter_loop *l)
{
    return digits->count ? l->counter : emit_i64(e, 0);
}

/* Lines `first` to `end` of a side, one after the other. */
static void emit_pack(const statement *s, plan_group group, LLVMValueRef first, LLVMValueRef end, LLVMValueRef to)
{
    emitter *e = s->e;
    const plan_statement *p = s->plan;
    uint32_t tensor = group == PLAN_ROW ? p->row_source : p->column_source;
    einsum_side side = group == PLAN_ROW ? p->row_side : p->column_side;
    const plan_digits *lines = &p->digits[group];
    emitter_loop l;
    emit_digits_open_part(e, lines, first, end, &l);
    LLVMValueRef line = emit_scaled(e, counter_or_zero(e, lines, &l), s->line);
    unsigned outside = e->open_count;
    emit_digits_open(e, &p->digits[PLAN_DEPTH]);
    LLVMValueRef guard = emit_source_guard(e, tensor, side), from = emit_tensor_offset(e, tensor, side);
    if (guard)
        from = LLVMBuildSelect(e->b, guard, from, emit_i64(e, 0), "");
    LLVMValueRef value = emit_load(e, e->i64, s->params[group == PLAN_ROW ? ROWS : COLUMNS], from);
    if (guard)
        value = LLVMBuildSelect(e->b, guard, value, emit_i64(e, 0), "");
    emit_store(e, value, to, LLVMBuildAdd(e->b, line, emit_digits_index(e, outside), ""));
    emit_digits_close(e, &p->digits[PLAN_DEPTH]);
    emit_digits_close_part(e, lines, &l);
}

/* Sums go where the kept digits say. */
static void emit_unpack(const statement *s, LLVMValueRef first, LLVMValueRef end, LLVMValueRef sums, int64_t columns)
{
    emitter *e = s->e;
    const plan_digits *rows = &s->plan->digits[PLAN_ROW];
    emitter_loop l;
    emit_digits_open_part(e, rows, first, end, &l);
    LLVMValueRef row = emit_scaled(e, counter_or_zero(e, rows, &l), columns);
    unsigned outside = e->open_count;
    emit_digits_open(e, &s->plan->digits[PLAN_COLUMN]);
    LLVMBasicBlockRef after = emit_if(e, emit_guard(e));
    LLVMValueRef sum = emit_load(e, e->i64, sums, LLVMBuildAdd(e->b, row, emit_digits_index(e, outside), ""));
    emit_store(e, sum, s->params[DST], emit_tensor_offset(e, s->plan->of->dst, EINSUM_DST));
    emit_if_end(e, after);
    emit_digits_close(e, &s->plan->digits[PLAN_COLUMN]);
    emit_digits_close_part(e, rows, &l);
}

static void emit_tiles(const statement *s, LLVMValueRef rows, LLVMValueRef columns, LLVMValueRef sums, int64_t column_tiles)
{
    emitter *e = s->e;
    int64_t block = BLOCK_BYTES / (TILE * s->line * VALUE_BYTES), width = column_tiles * TILE;
    emitter_loop blocks, row, column;
    emit_loop_open(e, &blocks, emit_i64(e, 0), emit_i64(e, column_tiles), block > 1 ? block : 1);
    LLVMValueRef end = emit_least(e, emit_plus(e, blocks.counter, block > 1 ? block : 1), emit_i64(e, column_tiles));
    emit_loop_open(e, &row, s->params[FIRST_TILE], s->params[END_TILE], 1);
    emit_loop_open(e, &column, blocks.counter, end, 1);
    LLVMValueRef at = LLVMBuildAdd(e->b, emit_scaled(e, row.counter, TILE * width), emit_scaled(e, column.counter, TILE), "");
    LLVMValueRef args[] = {emit_item(e, e->i64, sums, at), emit_item(e, e->i64, rows, emit_scaled(e, row.counter, TILE * s->line)),
                           emit_item(e, e->i64, columns, emit_scaled(e, column.counter, TILE * s->line)), emit_i64(e, width)};
    LLVMBuildCall2(e->b, s->tile_type, s->tile, args, 4, "");
    emit_loop_close(e, &column);
    emit_loop_close(e, &row);
    emit_loop_close(e, &blocks);
}

static void emit_contraction(const statement *s)
{
    emitter *e = s->e;
    const plan_statement *p = s->plan;
    int64_t rows = p->digits[PLAN_ROW].combinations, columns = p->digits[PLAN_COLUMN].combinations;
    int64_t row_tiles = tiles_of(rows), column_tiles = tiles_of(columns), packed = (row_tiles + column_tiles) * TILE * s->line;
    LLVMValueRef row_pack = scratch_at(s, 0), column_pack = scratch_at(s, row_tiles * TILE * s->line), sums = scratch_at(s, packed);
    if (packed != (rows + columns) * p->digits[PLAN_DEPTH].combinations) /* what is next to the lines stays zero */
        LLVMBuildMemSet(e->b, row_pack, LLVMConstInt(e->i8, 0, false), emit_i64(e, packed * VALUE_BYTES), VALUE_BYTES);
    LLVMValueRef first = emit_scaled(e, s->params[FIRST_TILE], TILE),
                 end = emit_least(e, emit_scaled(e, s->params[END_TILE], TILE), emit_i64(e, rows));
    emitter_loop batch;
    emit_digits_open_part(e, &p->digits[PLAN_BATCH], s->params[FIRST_BATCH], s->params[END_BATCH], &batch);
    emit_pack(s, PLAN_ROW, first, end, row_pack);
    emit_pack(s, PLAN_COLUMN, emit_i64(e, 0), emit_i64(e, columns), column_pack);
    emit_tiles(s, row_pack, column_pack, sums, column_tiles);
    emit_unpack(s, first, end, sums, column_tiles * TILE);
    emit_digits_close_part(e, &p->digits[PLAN_BATCH], &batch);
}

static void emit_copies(const statement *s)
{
    emitter *e = s->e;
    plan_digits all = s->plan->digits[PLAN_BATCH], *digits = &all; /* with the one that values are walked along in vectors */
    if (s->plan->vector_lanes > 1)
        all.items[all.count++] = s->plan->vector;
    emitter_loop l;
    emit_digits_open_part(e, digits, s->params[FIRST_BATCH], s->params[END_BATCH], &l);
    LLVMBasicBlockRef after = emit_if(e, emit_source_guard(e, s->plan->of->sources[0], EINSUM_A));
    LLVMValueRef value = emit_load(e, e->i64, s->params[ROWS], emit_tensor_offset(e, s->plan->of->sources[0], EINSUM_A));
    emit_store(e, value, s->params[DST], emit_tensor_offset(e, s->plan->of->dst, EINSUM_DST));
    emit_if_end(e, after);
    emit_digits_close_part(e, digits, &l);
}

/* Of a copy or a contraction: a caller asks for no other. */
static LLVMValueRef emit_statement(emitter *e, unsigned number, LLVMTypeRef *type)
{
    statement s = {.e = e, .plan = &e->plan->statements[number]};
    bool copies = s.plan->of->op == MATH_COPY;
    char name[48];
    e->statement = s.plan;
    if (!copies) {
        s.line = line_of(s.plan);
        snprintf(name, sizeof name, "field_tile%u", number);
        s.tile = emit_tile(e, s.plan, name, &s.tile_type);
    }
    snprintf(name, sizeof name, "field_statement%u", number);
    emit_function(e, name, POINTERS, INTEGERS, type);
    LLVMValueRef function = e->function;
    for (unsigned i = 0; i < PARAMS; i++)
        s.params[i] = LLVMGetParam(function, i);
    for (int side = 0; side < 3; side++)
        e->base[side] = s.plan->base_varies[side] ? s.params[BASES + side] : s.plan->base[side] ? emit_i64(e, s.plan->base[side]) : NULL;
    if (copies)
        emit_copies(&s);
    else
        emit_contraction(&s);
    emit_function_end(e);
    return function;
}

static LLVMValueRef tensor_at(emitter *e, LLVMValueRef tensors, uint32_t number)
{
    return emit_load(e, e->ptr, tensors, emit_i64(e, number));
}

void emit_field_entry(emitter *e, const char *name)
{
    enum { TENSORS, STORAGE, ENTRY_POINTERS, STATEMENT = ENTRY_POINTERS, FIRST_RANGE, ENTRY_INTEGERS = 5, MOST = 1 << 16 };
    uint32_t count = e->plan->e->statement_count;
    LLVMValueRef *functions = count <= MOST ? malloc(((size_t)count + 1) * sizeof *functions) : NULL;
    LLVMTypeRef statement_type = NULL, type;
    for (uint32_t i = 0; functions && i < count; i++)
        functions[i] = e->plan->statements[i].code == i ? emit_statement(e, i, &statement_type) : functions[e->plan->statements[i].code];
    emit_function(e, name, ENTRY_POINTERS, ENTRY_INTEGERS, &type);
    LLVMSetLinkage(e->function, LLVMExternalLinkage);
    LLVMValueRef entry = e->function, tensors = LLVMGetParam(entry, TENSORS);
    for (uint32_t i = 0; functions && i < count; i++) {
        const plan_statement *p = &e->plan->statements[i];
        bool copies = p->of->op == MATH_COPY;
        LLVMBasicBlockRef after = emit_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, LLVMGetParam(entry, STATEMENT), emit_i64(e, i), ""));
        LLVMValueRef args[PARAMS] = {tensor_at(e, tensors, p->of->dst), tensor_at(e, tensors, copies ? p->of->sources[0] : p->row_source),
                                     tensor_at(e, tensors, copies ? p->of->sources[0] : p->column_source), LLVMGetParam(entry, STORAGE)};
        for (int side = 0; side < 3; side++)
            args[BASES + side] = emit_i64(e, p->base[side]);
        for (int r = 0; r < 4; r++)
            args[RANGES + r] = LLVMGetParam(entry, (unsigned)(FIRST_RANGE + r));
        LLVMBuildCall2(e->b, statement_type, functions[i], args, PARAMS, "");
        emit_if_end(e, after);
    }
    emit_function_end(e);
    free(functions);
}
