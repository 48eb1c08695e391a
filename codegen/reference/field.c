#include "codegen/reference/field.h"

#include <stdio.h>
#include <stdlib.h>

#include "codegen/reference/walk.h"

enum {
    TILE_ROWS = 4,
    TILE_COLUMNS = 8,      /* a vector of sums for each row: with AVX-512 one register, with AVX2 two */
    DEPTH_BLOCK = 128,     /* products of 42 bits that a sum takes before it is reduced; its rounding to an integer takes 2^51 */
    BLOCK_BYTES = 1 << 18, /* of columns, which stay in a cache near by */
    PRIME_BITS = 61,
    LIMB_BITS = 21,
    VALUE_BYTES = 8,
};

/* A value is a + 2^21 b + 2^42 c. A product of two has six products of limbs, when that of each mixed pair is made of the others:
 * a b' + b a' = a a' + b b' - (a - b) (a' - b'). */
enum { PART_A, PART_B, PART_C, PART_A_B, PART_A_C, PART_B_C, PARTS };

static int64_t tiles_of(int64_t lines, int64_t tile)
{
    return (lines + tile - 1) / tile;
}

static int64_t block_of(const plan_statement *s)
{
    int64_t depth = s->digits[PLAN_DEPTH].combinations;
    return depth < DEPTH_BLOCK ? depth : DEPTH_BLOCK;
}

/* Values that the packed lines of a tile take. */
static int64_t packed_of(const plan_statement *s, int64_t tile)
{
    return PARTS * block_of(s) * tile;
}

bool field_shape_of(const plan_statement *s, field_shape *out)
{
    *out = (field_shape){.batches = s->digits[PLAN_BATCH].combinations, .row_tiles = 1, .clocks = field_clocks(s)};
    /* A copy has no tiles, and statements next to a map, which may have taken the contraction into itself, are not decided over the field.
     */
    if (s->of->op != MATH_CONTRACT || s->digits[PLAN_DEPTH].combinations < 1)
        return true;
    int64_t rows = tiles_of(s->digits[PLAN_ROW].combinations, TILE_ROWS),
            columns = tiles_of(s->digits[PLAN_COLUMN].combinations, TILE_COLUMNS);
    int64_t row_pack = packed_of(s, TILE_ROWS), column_pack = packed_of(s, TILE_COLUMNS);
    out->row_tiles = rows;
    double values =
        (double)rows * (double)row_pack + (double)columns * (double)column_pack + (double)rows * (double)columns * TILE_ROWS * TILE_COLUMNS;
    if (values * VALUE_BYTES > (double)(INT64_C(1) << 34))
        return false;
    out->scratch_bytes = (rows * row_pack + columns * column_pack + rows * columns * TILE_ROWS * TILE_COLUMNS) * VALUE_BYTES;
    return true;
}

double field_clocks(const plan_statement *s)
{
    double products = 1;
    for (int g = 0; g < PLAN_GROUP_COUNT; g++)
        products *= (double)s->digits[g].combinations;
    return products * PARTS / TILE_COLUMNS;
}

/* ---- arithmetic, of scalars and of vectors ---- */

static LLVMValueRef number_like(emitter *e, LLVMValueRef x, uint64_t value)
{
    LLVMValueRef n = emit_i64(e, (int64_t)value);
    LLVMTypeRef type = LLVMTypeOf(x);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? emit_splat(e, n, LLVMGetVectorSize(type)) : n;
}

static LLVMValueRef low_bits(emitter *e, LLVMValueRef x, int bits)
{
    return LLVMBuildAnd(e->b, x, number_like(e, x, (UINT64_C(1) << bits) - 1), "");
}

static LLVMValueRef shifted_right(emitter *e, LLVMValueRef x, int bits)
{
    return LLVMBuildLShr(e->b, x, number_like(e, x, (uint64_t)bits), "");
}

/* 2^61 is 1: of 64 bits at most 2^61 + 6 is left. */
static LLVMValueRef emit_fold(emitter *e, LLVMValueRef x)
{
    return LLVMBuildAdd(e->b, low_bits(e, x, PRIME_BITS), shifted_right(e, x, PRIME_BITS), "");
}

static LLVMValueRef emit_residue(emitter *e, LLVMValueRef x)
{
    x = emit_fold(e, x);
    LLVMValueRef prime = number_like(e, x, (UINT64_C(1) << PRIME_BITS) - 1), less = LLVMBuildSub(e->b, x, prime, "");
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntUGE, x, prime, ""), less, x, "");
}

/* x * 2^bits of an x below 2^61: its 61 bits turned. */
static LLVMValueRef emit_times_power(emitter *e, LLVMValueRef x, int bits)
{
    LLVMValueRef high = LLVMBuildShl(e->b, x, number_like(e, x, (uint64_t)bits), "");
    return LLVMBuildOr(e->b, low_bits(e, high, PRIME_BITS), shifted_right(e, x, PRIME_BITS - bits), "");
}

/* The parts of a residue, as they are multiplied. */
static void emit_parts(emitter *e, LLVMValueRef value, LLVMValueRef *parts)
{
    LLVMValueRef a = LLVMBuildTrunc(e->b, low_bits(e, value, LIMB_BITS), e->i32, ""),
                 b = LLVMBuildTrunc(e->b, low_bits(e, shifted_right(e, value, LIMB_BITS), LIMB_BITS), e->i32, ""),
                 c = LLVMBuildTrunc(e->b, shifted_right(e, value, 2 * LIMB_BITS), e->i32, "");
    LLVMValueRef numbers[PARTS] = {[PART_A] = a,
                                   [PART_B] = b,
                                   [PART_C] = c,
                                   [PART_A_B] = LLVMBuildSub(e->b, a, b, ""),
                                   [PART_A_C] = LLVMBuildSub(e->b, a, c, ""),
                                   [PART_B_C] = LLVMBuildSub(e->b, b, c, "")};
    for (int i = 0; i < PARTS; i++)
        parts[i] = LLVMBuildSIToFP(e->b, numbers[i], e->f64, "");
}

/* ---- a tile ---- */

static LLVMTypeRef vector_of(LLVMTypeRef scalar)
{
    return emit_vector_type(scalar, TILE_COLUMNS);
}

static LLVMValueRef load_vector(emitter *e, LLVMTypeRef scalar, LLVMValueRef array, LLVMValueRef item)
{
    LLVMValueRef value = LLVMBuildLoad2(e->b, vector_of(scalar), emit_item(e, scalar, array, item), "");
    LLVMSetAlignment(value, VALUE_BYTES);
    return value;
}

static void store_vector(emitter *e, LLVMTypeRef scalar, LLVMValueRef value, LLVMValueRef array, LLVMValueRef item)
{
    LLVMSetAlignment(LLVMBuildStore(e->b, value, emit_item(e, scalar, array, item)), VALUE_BYTES);
}

/* Sums of products of one part over the block. They are integers below 2^50, and exact. */
static void emit_part_sums(emitter *e, int64_t block, LLVMValueRef part, LLVMValueRef rows, LLVMValueRef columns, LLVMValueRef depth,
                           LLVMValueRef sums)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMValueRef phi[TILE_ROWS], sum[TILE_ROWS], zero = LLVMConstNull(vector_of(e->f64));
    LLVMValueRef row_part = emit_scaled(e, part, block * TILE_ROWS), column_part = emit_scaled(e, part, block * TILE_COLUMNS);
    emitter_loop k;
    emit_loop_open(e, &k, emit_i64(e, 0), depth, 1);
    for (int i = 0; i < TILE_ROWS; i++) {
        phi[i] = LLVMBuildPhi(e->b, vector_of(e->f64), "sum");
        LLVMAddIncoming(phi[i], &zero, &before, 1);
    }
    LLVMValueRef row_at = LLVMBuildAdd(e->b, row_part, emit_scaled(e, k.counter, TILE_ROWS), "");
    LLVMValueRef column = load_vector(e, e->f64, columns, LLVMBuildAdd(e->b, column_part, emit_scaled(e, k.counter, TILE_COLUMNS), ""));
    for (int i = 0; i < TILE_ROWS; i++) {
        LLVMValueRef row = emit_splat(e, emit_load(e, e->f64, rows, emit_plus(e, row_at, i)), TILE_COLUMNS);
        LLVMValueRef args[] = {row, column, phi[i]};
        sum[i] = emit_intrinsic(e, "llvm.fmuladd", args, 3);
    }
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    for (int i = 0; i < TILE_ROWS; i++)
        LLVMAddIncoming(phi[i], &sum[i], &latch, 1);
    emit_loop_close(e, &k);
    for (int i = 0; i < TILE_ROWS; i++)
        store_vector(e, e->f64, sum[i], sums, emit_plus(e, emit_scaled(e, part, TILE_ROWS * TILE_COLUMNS), i * TILE_COLUMNS));
}

/* A double that is an integer below 2^51: in 3 * 2^51 its bits stand at the end. */
static LLVMValueRef emit_integer(emitter *e, LLVMValueRef x)
{
    const double large = 0x1.8p52;
    const uint64_t large_bits = UINT64_C(0x4338000000000000);
    x = LLVMBuildFAdd(e->b, x, emit_splat(e, emit_f64(e, large), TILE_COLUMNS), "");
    x = LLVMBuildBitCast(e->b, x, vector_of(e->i64), "");
    return LLVMBuildSub(e->b, x, number_like(e, x, large_bits), "");
}

/* The residues, not the least ones, that the parts' sums of a row are; added to what is there. */
static LLVMValueRef emit_joined(emitter *e, LLVMValueRef sums, int row, LLVMValueRef old)
{
    LLVMValueRef p[PARTS];
    for (int i = 0; i < PARTS; i++)
        p[i] = emit_integer(e, load_vector(e, e->f64, sums, emit_i64(e, (i * TILE_ROWS + row) * TILE_COLUMNS)));
    LLVMValueRef ab = LLVMBuildSub(e->b, LLVMBuildAdd(e->b, p[PART_A], p[PART_B], ""), p[PART_A_B], ""),
                 ac = LLVMBuildSub(e->b, LLVMBuildAdd(e->b, p[PART_A], p[PART_C], ""), p[PART_A_C], ""),
                 bc = LLVMBuildSub(e->b, LLVMBuildAdd(e->b, p[PART_B], p[PART_C], ""), p[PART_B_C], "");
    LLVMValueRef terms[] = {
        p[PART_A], emit_times_power(e, ab, LIMB_BITS), emit_times_power(e, LLVMBuildAdd(e->b, p[PART_B], ac, ""), 2 * LIMB_BITS),
        emit_times_power(e, bc, 3 * LIMB_BITS - PRIME_BITS), emit_times_power(e, p[PART_C], 4 * LIMB_BITS - PRIME_BITS)};
    for (int i = 0; i < 5; i++) /* with `old` six below 2^61 + 6 */
        old = LLVMBuildAdd(e->b, old, terms[i], "");
    return emit_fold(e, old);
}

/* void tile(sums, rows, columns, values between rows of sums, depth): adds to the sums */
static LLVMValueRef emit_tile(emitter *e, const plan_statement *s, const char *name, LLVMTypeRef *type)
{
    emit_function(e, name, 3, 2, type);
    LLVMValueRef function = e->function, out = LLVMGetParam(function, 0);
    LLVMValueRef sums = emit_stack(e, (int64_t)PARTS * TILE_ROWS * TILE_COLUMNS * VALUE_BYTES, TILE_COLUMNS * VALUE_BYTES);
    emitter_loop part;
    emit_loop_open(e, &part, emit_i64(e, 0), emit_i64(e, PARTS), 1);
    emit_part_sums(e, block_of(s), part.counter, LLVMGetParam(function, 1), LLVMGetParam(function, 2), LLVMGetParam(function, 4), sums);
    emit_loop_close(e, &part);
    for (int i = 0; i < TILE_ROWS; i++) {
        LLVMValueRef at = LLVMBuildMul(e->b, LLVMGetParam(function, 3), emit_i64(e, i), "");
        store_vector(e, e->i64, emit_joined(e, sums, i, load_vector(e, e->i64, out, at)), out, at);
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
} statement;

static LLVMValueRef scratch_at(const statement *s, int64_t values)
{
    return emit_item(s->e, s->e->i64, s->params[SCRATCH], emit_i64(s->e, values));
}

static LLVMValueRef counter_or_zero(emitter *e, const plan_digits *digits, const emitter_loop *l)
{
    return digits->count ? l->counter : emit_i64(e, 0);
}

/* Lines `first` to `end` of a side, in tiles; of each the parts, one after the other, by depth and line. */
static void emit_pack(const statement *s, plan_group group, tile_range part, tile_range depth, LLVMValueRef to)
{
    emitter *e = s->e;
    const plan_statement *p = s->plan;
    uint32_t tensor = group == PLAN_ROW ? p->row_source : p->column_source;
    einsum_side side = group == PLAN_ROW ? p->row_side : p->column_side;
    const plan_digits *lines = &p->digits[group], *terms = &p->digits[PLAN_DEPTH];
    int64_t tile = group == PLAN_ROW ? TILE_ROWS : TILE_COLUMNS;
    emitter_loop l, k;
    emit_digits_open_part(e, lines, part.first, part.end, &l);
    LLVMValueRef line = counter_or_zero(e, lines, &l), number = LLVMBuildUDiv(e->b, line, emit_i64(e, tile), ""),
                 in_tile = LLVMBuildURem(e->b, line, emit_i64(e, tile), "");
    LLVMValueRef at = LLVMBuildAdd(e->b, emit_scaled(e, number, packed_of(p, tile)), in_tile, "");
    emit_digits_open_part(e, terms, depth.first, depth.end, &k);
    LLVMValueRef guard = emit_source_guard(e, tensor, side), from = emit_tensor_offset(e, tensor, side);
    if (guard)
        from = LLVMBuildSelect(e->b, guard, from, emit_i64(e, 0), "");
    LLVMValueRef value = emit_load(e, e->i64, s->params[group == PLAN_ROW ? ROWS : COLUMNS], from), parts[PARTS];
    if (guard)
        value = LLVMBuildSelect(e->b, guard, value, emit_i64(e, 0), "");
    LLVMValueRef step = LLVMBuildSub(e->b, counter_or_zero(e, terms, &k), depth.first, "");
    at = LLVMBuildAdd(e->b, at, emit_scaled(e, step, tile), "");
    emit_parts(e, value, parts);
    for (int i = 0; i < PARTS; i++)
        emit_store(e, parts[i], to, emit_plus(e, at, i * block_of(p) * tile));
    emit_digits_close_part(e, terms, &k);
    emit_digits_close_part(e, lines, &l);
}

/* Sums go to the places of the kept digits. */
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
    emit_store(e, emit_residue(e, sum), s->params[DST], emit_tensor_offset(e, s->plan->of->dst, EINSUM_DST));
    emit_if_end(e, after);
    emit_digits_close(e, &s->plan->digits[PLAN_COLUMN]);
    emit_digits_close_part(e, rows, &l);
}

static void emit_tiles(const statement *s, LLVMValueRef rows, LLVMValueRef columns, LLVMValueRef sums, int64_t column_tiles,
                       LLVMValueRef depth)
{
    emitter *e = s->e;
    int64_t row_pack = packed_of(s->plan, TILE_ROWS), column_pack = packed_of(s->plan, TILE_COLUMNS);
    int64_t block = BLOCK_BYTES / (column_pack * VALUE_BYTES), width = column_tiles * TILE_COLUMNS;
    emitter_loop blocks, row, column;
    emit_loop_open(e, &blocks, emit_i64(e, 0), emit_i64(e, column_tiles), block > 1 ? block : 1);
    LLVMValueRef end = emit_least(e, emit_plus(e, blocks.counter, block > 1 ? block : 1), emit_i64(e, column_tiles));
    emit_loop_open(e, &row, s->params[FIRST_TILE], s->params[END_TILE], 1);
    emit_loop_open(e, &column, blocks.counter, end, 1);
    LLVMValueRef at = LLVMBuildAdd(e->b, emit_scaled(e, row.counter, TILE_ROWS * width), emit_scaled(e, column.counter, TILE_COLUMNS), "");
    LLVMValueRef args[] = {emit_item(e, e->i64, sums, at), emit_item(e, e->f64, rows, emit_scaled(e, row.counter, row_pack)),
                           emit_item(e, e->f64, columns, emit_scaled(e, column.counter, column_pack)), emit_i64(e, width), depth};
    LLVMBuildCall2(e->b, s->tile_type, s->tile, args, 5, "");
    emit_loop_close(e, &column);
    emit_loop_close(e, &row);
    emit_loop_close(e, &blocks);
}

static void emit_zeros(emitter *e, LLVMValueRef to, LLVMValueRef values)
{
    LLVMBuildMemSet(e->b, to, LLVMConstInt(e->i8, 0, false), emit_scaled(e, values, VALUE_BYTES), VALUE_BYTES);
}

static void emit_contraction(const statement *s)
{
    emitter *e = s->e;
    const plan_statement *p = s->plan;
    int64_t rows = p->digits[PLAN_ROW].combinations, columns = p->digits[PLAN_COLUMN].combinations,
            depth = p->digits[PLAN_DEPTH].combinations;
    int64_t row_tiles = tiles_of(rows, TILE_ROWS), column_tiles = tiles_of(columns, TILE_COLUMNS), width = column_tiles * TILE_COLUMNS;
    int64_t row_values = row_tiles * packed_of(p, TILE_ROWS), packed = row_values + column_tiles * packed_of(p, TILE_COLUMNS);
    LLVMValueRef row_pack = scratch_at(s, 0), column_pack = scratch_at(s, row_values), sums = scratch_at(s, packed);
    if (rows % TILE_ROWS != 0 || columns % TILE_COLUMNS != 0) /* lines that a tile has too many stay zero */
        emit_zeros(e, row_pack, emit_i64(e, packed));
    tile_range part = {emit_scaled(e, s->params[FIRST_TILE], TILE_ROWS),
                       emit_least(e, emit_scaled(e, s->params[END_TILE], TILE_ROWS), emit_i64(e, rows))};
    LLVMValueRef tiles = LLVMBuildSub(e->b, s->params[END_TILE], s->params[FIRST_TILE], "");
    emitter_loop batch, block;
    emit_digits_open_part(e, &p->digits[PLAN_BATCH], s->params[FIRST_BATCH], s->params[END_BATCH], &batch);
    emit_zeros(e, emit_item(e, e->i64, sums, emit_scaled(e, s->params[FIRST_TILE], TILE_ROWS * width)),
               emit_scaled(e, tiles, TILE_ROWS * width));
    emit_loop_open(e, &block, emit_i64(e, 0), emit_i64(e, depth), block_of(p));
    tile_range terms = {block.counter, emit_least(e, emit_plus(e, block.counter, block_of(p)), emit_i64(e, depth))};
    emit_pack(s, PLAN_ROW, part, terms, row_pack);
    emit_pack(s, PLAN_COLUMN, (tile_range){emit_i64(e, 0), emit_i64(e, columns)}, terms, column_pack);
    emit_tiles(s, row_pack, column_pack, sums, column_tiles, LLVMBuildSub(e->b, terms.end, terms.first, ""));
    emit_loop_close(e, &block);
    emit_unpack(s, part.first, part.end, sums, width);
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
