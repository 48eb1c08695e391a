#include "codegen/reference/generate.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/reference/block.h"
#include "codegen/reference/bound.h"
#include "codegen/reference/convert.h"
#include "codegen/reference/epilogue.h"
#include "codegen/reference/field.h"
#include "codegen/reference/reduce.h"
#include "codegen/reference/twin.h"
#include "codegen/reference/walk.h"

/* A statement's function under construction. */
typedef struct statement {
    emitter *e;
    const plan_statement *plan;
    bool bounded;
    LLVMTypeRef type;
    gemm_function product, bound_product;
    LLVMValueRef first[PLAN_RANGE_COUNT], end[PLAN_RANGE_COUNT]; /* what of a contraction to compute */
    plan_group longer;                                           /* of a form that stores no blocks: the side that is divided, */
    tile_range lines;                                            /* and what of it to compute */
    /* parameters */
    LLVMValueRef at[PLAN_SIDES], bound[PLAN_SIDES]; /* by side */
    LLVMValueRef scratch, part;
} statement;

/* A statement's function takes the operands and their bounds by side, storage and part, and then where each operand begins. */
enum { STATEMENT_MOST_PARAMS = 3 * PLAN_SIDES + 2 };

static unsigned statement_pointers(const plan_statement *p)
{
    return 2 * (1 + p->source_count) + 2;
}

static bool tensor_is_exact(const statement *s, uint32_t tensor)
{
    return s->e->plan->exact[tensor];
}

static dtype tensor_dtype(const statement *s, uint32_t tensor)
{
    return s->e->plan->e->tensors[tensor].dtype;
}

static void emit_clear(emitter *e, LLVMValueRef at, LLVMValueRef bytes)
{
    LLVMBuildMemSet(e->b, at, LLVMConstInt(e->i8, 0, false), bytes, 1);
}

static LLVMValueRef scratch_at(const statement *s, int64_t offset)
{
    return emit_item(s->e, s->e->i8, s->scratch, emit_i64(s->e, offset));
}

/* ---- packing ---- */

static panel_side side_of(const statement *s, plan_group group, const plan_tile *tile)
{
    const plan_statement *p = s->plan;
    bool rows = group == PLAN_ROW;
    return (panel_side){.of = p,
                        .tile = tile,
                        .group = group,
                        .tensor = rows ? p->row_source : p->column_source,
                        .side = rows ? p->row_side : p->column_side,
                        .source = s->at[rows ? p->row_side : p->column_side],
                        .bound = s->bound[rows ? p->row_side : p->column_side],
                        .panel = scratch_at(s, rows ? p->scratch.row_pack : p->scratch.column_pack)};
}

/* ---- parts ---- */

static int64_t tile_lines(const plan_tile *t, plan_group group)
{
    return group == PLAN_ROW ? t->rows : t->columns;
}

/* Whole tiles of the values; those of what bounds are made from may begin and end elsewhere, and parts then compute one twice. */
static void find_lines(statement *s)
{
    emitter *e = s->e;
    s->longer = plan_longer(s->plan);
    int64_t lines = tile_lines(&s->plan->tile, s->longer);
    plan_range range = s->longer == PLAN_ROW ? PLAN_ROW_TILES : PLAN_COLUMN_TILES;
    tile_range tiles = {s->first[range], s->end[range]};
    LLVMValueRef all = emit_i64(e, s->plan->digits[s->longer].combinations);
    s->lines = (tile_range){emit_scaled(e, tiles.first, lines), emit_least(e, emit_scaled(e, tiles.end, lines), all)};
}

/* The tiles that hold this part's lines; of the other side, all. */
static tile_range part_tiles(const statement *s, const plan_tile *t, plan_group group)
{
    emitter *e = s->e;
    int64_t lines = tile_lines(t, group);
    if (group != s->longer)
        return (tile_range){emit_i64(e, 0), emit_i64(e, (group == PLAN_ROW ? t->padded_rows : t->padded_columns) / lines)};
    LLVMValueRef each = emit_i64(e, lines);
    return (tile_range){LLVMBuildUDiv(e->b, s->lines.first, each, ""),
                        LLVMBuildUDiv(e->b, emit_plus(e, s->lines.end, lines - 1), each, "")};
}

/* Is it one of this part's? NULL: every line is. */
static LLVMValueRef is_own_line(const statement *s, plan_group group, LLVMValueRef line)
{
    LLVMBuilderRef b = s->e->b;
    if (group != s->longer || !s->plan->parted)
        return NULL;
    return LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSGE, line, s->lines.first, ""), LLVMBuildICmp(b, LLVMIntSLT, line, s->lines.end, ""),
                        "");
}

/* ---- contraction as a whole ---- */

static void emit_pack(const statement *s, plan_group group, const plan_tile *tile, panel_kind kind)
{
    panel_side side = side_of(s, group, tile);
    tile_range tiles = part_tiles(s, tile, group);
    emit_panels(s->e, &side, kind, tiles.first, tiles.end);
}

/* The sums of this part's rows. */
static void emit_clear_sums(const statement *s, const plan_tile *t, int64_t sums)
{
    emitter *e = s->e;
    int64_t bytes = t->rows * t->padded_columns * gemm_sum_bytes(t->product);
    tile_range rows = part_tiles(s, t, PLAN_ROW);
    LLVMValueRef at = emit_item(e, e->i8, scratch_at(s, sums), emit_scaled(e, rows.first, bytes));
    emit_clear(e, at, emit_scaled(e, LLVMBuildSub(e->b, rows.end, rows.first, ""), bytes));
}

static void emit_product(const statement *s, const gemm_function *f, int64_t sums)
{
    emit_gemm_call(s->e, f, scratch_at(s, sums), scratch_at(s, s->plan->scratch.row_pack), scratch_at(s, s->plan->scratch.column_pack),
                   part_tiles(s, f->tile, PLAN_ROW), part_tiles(s, f->tile, PLAN_COLUMN));
}

static void emit_packed_product(const statement *s, const gemm_function *f, panel_kind rows, panel_kind columns, int64_t sums)
{
    emit_pack(s, PLAN_ROW, f->tile, rows);
    emit_pack(s, PLAN_COLUMN, f->tile, columns);
    emit_product(s, f, sums);
}

static bool sources_are_exact(const statement *s)
{
    return tensor_is_exact(s, s->plan->row_source) && tensor_is_exact(s, s->plan->column_source);
}

static bool needs_bound(const statement *s)
{
    return s->bounded && !s->plan->unbounded && !tensor_is_exact(s, s->plan->of->dst);
}

/* Sums of integers have none. */
static bool needs_sum_bound(const statement *s)
{
    return needs_bound(s) && !s->plan->integer;
}

static element_form operands_of(const statement *s)
{
    return (element_form){.e = s->e, .p = s->plan, .at = s->at, .bound = s->bound, .bounded = needs_bound(s)};
}

static bool has_blocks(const statement *s)
{
    return !s->bounded && s->plan->stores_blocks;
}

/* |r| * es + er * (|s| + es); the magnitudes of the rows are packed. */
static void emit_error_products(const statement *s)
{
    int64_t sums = s->plan->scratch.error;
    emit_clear_sums(s, &s->plan->bound_tile, sums);
    if (!tensor_is_exact(s, s->plan->column_source)) {
        emit_pack(s, PLAN_COLUMN, &s->plan->bound_tile, PANEL_ERROR);
        emit_product(s, &s->bound_product, sums);
    }
    if (!tensor_is_exact(s, s->plan->row_source))
        emit_packed_product(s, &s->bound_product, PANEL_ERROR, PANEL_LARGEST, sums);
}

static void emit_products(const statement *s)
{
    emit_clear_sums(s, &s->plan->tile, s->plan->scratch.value);
    emit_packed_product(s, &s->product, PANEL_VALUE, PANEL_VALUE, s->plan->scratch.value);
    if (!needs_sum_bound(s))
        return;
    if (s->plan->precise_bound) {
        emit_clear_sums(s, &s->plan->bound_tile, s->plan->scratch.precise);
        emit_packed_product(s, &s->bound_product, PANEL_VALUE, PANEL_VALUE, s->plan->scratch.precise);
    }
    emit_clear_sums(s, &s->plan->bound_tile, s->plan->scratch.magnitude);
    emit_packed_product(s, &s->bound_product, PANEL_MAGNITUDE, PANEL_MAGNITUDE, s->plan->scratch.magnitude);
    if (!sources_are_exact(s))
        emit_error_products(s);
}

static LLVMValueRef sum_index(const statement *s, const plan_tile *t, LLVMValueRef row, LLVMValueRef column)
{
    return LLVMBuildAdd(s->e->b, emit_scaled(s->e, row, t->padded_columns), column, "");
}

/* `lanes` neighbours; one is a scalar. */
static LLVMValueRef load_sums(const statement *s, LLVMTypeRef type, int64_t sums, LLVMValueRef at, int64_t lanes)
{
    emitter *e = s->e;
    LLVMValueRef from = emit_item(e, type, scratch_at(s, sums), at);
    LLVMValueRef load = LLVMBuildLoad2(e->b, lanes > 1 ? emit_vector_type(type, lanes) : type, from, "");
    LLVMSetAlignment(load, 4);
    return load;
}

static LLVMValueRef load_bound_sums(const statement *s, int64_t sums, LLVMValueRef at, int64_t lanes)
{
    emitter *e = s->e;
    bool wide = s->plan->bound_tile.product == PRODUCT_F64;
    LLVMValueRef sum = load_sums(s, wide ? e->f64 : e->f32, sums, at, lanes);
    return wide ? sum : LLVMBuildFPExt(e->b, sum, emit_type_like(e, sum, e->f64), "");
}

/* Where a result is: its sum among the sums, its element in the destination; row and column as of emit_epilogue. */
typedef struct result_place {
    LLVMValueRef row, column, to;
    LLVMValueRef open_row, open_column;
} result_place;

static LLVMValueRef sum_bound(const statement *s, const result_place *at, LLVMValueRef value, int64_t lanes)
{
    emitter *e = s->e;
    const plan_scratch *scratch = &s->plan->scratch;
    bool inexact = !sources_are_exact(s);
    LLVMValueRef index = sum_index(s, &s->plan->bound_tile, at->row, at->column);
    sum_parts sums = {.value = value, .magnitude = load_bound_sums(s, scratch->magnitude, index, lanes)};
    sums.error = inexact ? load_bound_sums(s, scratch->error, index, lanes) : emit_f64_like(e, sums.magnitude, 0);
    sums.precise = s->plan->precise_bound ? load_bound_sums(s, scratch->precise, index, lanes) : NULL;
    return emit_sum_bound(e, s->plan, inexact, &sums);
}

/* The sums of a row from a column on become so many elements of the destination. */
static void emit_result(const statement *s, const result_place *at, int64_t lanes)
{
    emitter *e = s->e;
    dtype t = tensor_dtype(s, s->plan->of->dst);
    LLVMTypeRef sum = s->plan->integer ? e->i32 : e->f32;
    element_form operands = operands_of(s);
    expression_value v = {.value = load_sums(s, sum, s->plan->scratch.value, sum_index(s, &s->plan->tile, at->row, at->column), lanes)};
    if (needs_sum_bound(s))
        v.error = sum_bound(s, at, v.value, lanes);
    v = emit_epilogue(&operands, v, at->open_row, at->open_column, lanes, lanes);
    LLVMValueRef code = emit_narrow(e, t, v.value);
    emit_code_store(e, t, code, s->at[EINSUM_DST], at->to);
    if (!needs_bound(s))
        return;
    LLVMValueRef bound = emit_element_cast_error(e, t, &v, code);
    if (!bound)
        bound = LLVMConstNull(lanes > 1 ? emit_vector_type(e->f64, lanes) : e->f64);
    LLVMSetAlignment(LLVMBuildStore(e->b, bound, emit_item(e, e->f64, s->bound[EINSUM_DST], at->to)), sizeof(double));
}

/* Vectors of columns lie side by side and all exist, and there are so many results that they repay compiling that code. */
static bool has_result_vectors(const statement *s)
{
    enum { MANY_RESULTS = 1 << 14 };
    const plan_digits *digits = s->plan->digits;
    return s->plan->stores_blocks && digits[PLAN_ROW].combinations * digits[PLAN_COLUMN].combinations >= MANY_RESULTS;
}

/* The last columns one by one. */
static void emit_columns_in_vectors(const statement *s, LLVMValueRef row)
{
    emitter *e = s->e;
    const plan_digits *columns = &s->plan->digits[PLAN_COLUMN];
    uint32_t dst = s->plan->of->dst;
    int64_t lanes = s->plan->tile.lanes, whole = columns->combinations / lanes * lanes;
    bool shared = s->longer == PLAN_COLUMN;
    LLVMValueRef first = shared ? s->lines.first : emit_i64(e, 0), end = shared ? s->lines.end : emit_i64(e, columns->combinations);
    LLVMValueRef line = emit_tensor_offset(e, dst, EINSUM_DST), ends[] = {emit_least(e, end, emit_i64(e, whole)), end};
    for (int i = 0; i < 2; i++) {
        LLVMBasicBlockRef after = emit_if_some(e, first, ends[i]);
        emitter_loop column;
        emit_loop_open(e, &column, first, ends[i], i == 0 ? lanes : 1);
        LLVMValueRef offset = emit_group_offset(e, dst, EINSUM_DST, columns, column.counter);
        result_place at = {.row = row, .column = column.counter, .to = LLVMBuildAdd(e->b, line, offset, ""), .open_column = column.counter};
        emit_result(s, &at, i == 0 ? lanes : 1);
        emit_loop_close(e, &column);
        emit_if_end(e, after);
        first = emit_most(e, first, emit_i64(e, whole));
    }
}

static void emit_columns(const statement *s, LLVMValueRef row)
{
    emitter *e = s->e;
    const plan_digits *columns = &s->plan->digits[PLAN_COLUMN];
    unsigned first = e->open_count;
    emit_digits_open(e, columns);
    LLVMValueRef column = emit_digits_index(e, first);
    LLVMBasicBlockRef no_column = emit_if(e, is_own_line(s, PLAN_COLUMN, column)), after = emit_if(e, emit_guard(e));
    result_place at = {.row = row, .column = column, .to = emit_tensor_offset(e, s->plan->of->dst, EINSUM_DST)};
    emit_result(s, &at, 1);
    emit_if_end(e, after);
    emit_if_end(e, no_column);
    emit_digits_close(e, columns);
}

static void emit_results(const statement *s)
{
    emitter *e = s->e;
    const plan_digits *rows = &s->plan->digits[PLAN_ROW];
    unsigned first = e->open_count;
    emit_digits_open(e, rows);
    LLVMValueRef row = emit_digits_index(e, first);
    LLVMBasicBlockRef no_row = emit_if(e, is_own_line(s, PLAN_ROW, row));
    if (has_result_vectors(s))
        emit_columns_in_vectors(s, row);
    else
        emit_columns(s, row);
    emit_if_end(e, no_row);
    emit_digits_close(e, rows);
}

/* ---- contraction ---- */

static void emit_whole_form(statement *s)
{
    emitter *e = s->e;
    find_lines(s);
    LLVMBasicBlockRef nothing = emit_if_some(e, s->lines.first, s->lines.end);
    emit_products(s);
    emit_results(s);
    emit_if_end(e, nothing);
}

static void emit_blocks(const statement *s)
{
    element_form operands = operands_of(s);
    block_form form = {
        s->e,      s->plan,           side_of(s, PLAN_ROW, &s->plan->block_tile), side_of(s, PLAN_COLUMN, &s->plan->block_tile),
        &operands, s->at[EINSUM_DST], scratch_at(s, s->plan->scratch.value),      s->first,
        s->end};
    emit_block_form(&form);
}

/* Read where the code is for parts, and else known: all. */
static void find_part(statement *s)
{
    emitter *e = s->e;
    bool parted = s->plan->parted;
    plan_part whole = plan_whole(s->plan, has_blocks(s));
    for (int i = 0; i < PLAN_RANGE_COUNT; i++) {
        s->first[i] = parted ? emit_load(e, e->i64, s->part, emit_i64(e, i)) : emit_i64(e, whole.first[i]);
        s->end[i] = parted ? emit_load(e, e->i64, s->part, emit_i64(e, PLAN_RANGE_COUNT + i)) : emit_i64(e, whole.end[i]);
    }
}

/* Loops over the batch digits; in code for parts one loop. */
static void emit_contract(statement *s)
{
    const plan_digits *batch = &s->plan->digits[PLAN_BATCH];
    emitter_loop part;
    find_part(s);
    emit_gemm_begin(s->e, &s->plan->tile);
    if (s->plan->parted)
        emit_digits_open_part(s->e, batch, s->first[PLAN_BATCHES], s->end[PLAN_BATCHES], &part);
    else
        emit_digits_open(s->e, batch);
    if (has_blocks(s))
        emit_blocks(s);
    else
        emit_whole_form(s);
    if (s->plan->parted)
        emit_digits_close_part(s->e, batch, &part);
    else
        emit_digits_close(s->e, batch);
    emit_gemm_end(s->e, &s->plan->tile);
}

/* ---- element by element ---- */

static void emit_by_element(const statement *s)
{
    element_form form = operands_of(s);
    form.outside = scratch_at(s, s->e->plan->outside);
    if (s->plan->of->op == MATH_REDUCE)
        emit_reduce(&form, scratch_at(s, s->plan->scratch.value));
    else
        emit_elements(&form);
}

/* Anything agrees with the destination. */
static void emit_unknown(const statement *s)
{
    emitter *e = s->e;
    emitter_loop element;
    emit_loop_open(e, &element, emit_i64(e, 0), emit_i64(e, walk_elements(e->plan->e, s->plan->of->dst)), 1);
    emit_store(e, emit_f64(e, INFINITY), s->bound[EINSUM_DST], element.counter);
    emit_loop_close(e, &element);
}

/* ---- statement functions ---- */

/* The products that the form needs several times or together with others; a form that stores blocks has its product where it is used. */
static void emit_gemms(statement *s, unsigned number)
{
    char name[48];
    const plan_statement *p = s->plan;
    snprintf(name, sizeof name, s->bounded ? "product%u_bounded" : "product%u", number);
    s->product = emit_gemm(s->e, &p->tile, name);
    if (!needs_sum_bound(s))
        return;
    snprintf(name, sizeof name, "bound_product%u", number);
    s->bound_product = emit_gemm(s->e, &p->bound_tile, name);
}

/* Where the operands begin: a constant, unless statements share the function that begin elsewhere. */
static LLVMValueRef base_of(const statement *s, unsigned side, LLVMValueRef param)
{
    int64_t base = s->plan->base[side];
    return s->plan->base_varies[side] ? param : base ? emit_i64(s->e, base) : NULL;
}

static LLVMValueRef emit_statement_form(statement *s, unsigned number, bool bounded)
{
    emitter *e = s->e;
    char name[48];
    snprintf(name, sizeof name, bounded ? "statement%u_bounded" : "statement%u", number);
    s->bounded = bounded;
    e->statement = s->plan;
    if (s->plan->of->op == MATH_CONTRACT && !has_blocks(s))
        emit_gemms(s, number);
    unsigned sides = 1 + s->plan->source_count, pointers = statement_pointers(s->plan);
    emit_function(e, name, pointers, sides, &s->type);
    LLVMValueRef function = e->function;
    for (unsigned side = 0; side < sides; side++) {
        unsigned same = side == EINSUM_DST ? side : twin_side(s->plan, s->plan, side); /* a tensor that is read twice is one tensor */
        s->at[side] = LLVMGetParam(function, same);
        s->bound[side] = LLVMGetParam(function, sides + same);
        e->base[side] = base_of(s, side, LLVMGetParam(function, pointers + side));
    }
    s->scratch = LLVMGetParam(function, pointers - 2);
    s->part = LLVMGetParam(function, pointers - 1);
    if (bounded && s->plan->unbounded)
        emit_unknown(s);
    if (s->plan->of->op == MATH_CONTRACT)
        emit_contract(s);
    else
        emit_by_element(s);
    emit_function_end(e);
    return function;
}

typedef struct statement_forms {
    LLVMValueRef plain, bounded; /* NULL: not asked for */
    LLVMTypeRef type;
} statement_forms;

static statement_forms emit_statement(emitter *e, unsigned number, unsigned forms)
{
    statement s = {.e = e, .plan = &e->plan->statements[number]};
    statement_forms f = {0};
    bool has_bound = !e->plan->exact[s.plan->of->dst];
    if ((forms & ~(unsigned)GENERATE_BOUNDED) || !has_bound)
        f.plain = f.bounded = emit_statement_form(&s, number, false);
    if ((forms & GENERATE_BOUNDED) && has_bound)
        f.bounded = emit_statement_form(&s, number, true);
    f.type = s.type;
    return f;
}

/* ---- the module ---- */

/* Where a call finds its tensors and bounds: arrays of pointers, or a pointer for each tensor. */
typedef struct tensor_places {
    LLVMValueRef tensors, bounds; /* arrays; bounds is NULL for values only */
    const LLVMValueRef *each;     /* by tensor; NULL: the arrays */
    LLVMValueRef scratch;
    LLVMValueRef part; /* NULL: all */
} tensor_places;

static LLVMValueRef tensor_place(emitter *e, const tensor_places *p, uint32_t number)
{
    return p->each ? p->each[number] : emit_load(e, e->ptr, p->tensors, emit_i64(e, number));
}

static LLVMValueRef bound_place(emitter *e, const tensor_places *p, uint32_t number)
{
    return p->bounds ? emit_load(e, e->ptr, p->bounds, emit_i64(e, number)) : LLVMConstNull(e->ptr);
}

/* The destination is zero before its first statement. */
static void emit_first_clear(emitter *e, const plan_statement *p, const tensor_places *at)
{
    uint32_t dst = p->of->dst;
    if (p->completed || p->settled)
        return;
    if (p->first && !p->covers)
        emit_clear(e, tensor_place(e, at, dst), emit_i64(e, walk_bytes(e->plan->e, dst)));
    if (p->first && !p->covers && at->bounds && !e->plan->exact[dst])
        emit_clear(e, bound_place(e, at, dst), emit_i64(e, walk_elements(e->plan->e, dst) * (int64_t)sizeof(double)));
}

/* All of what may be divided, as a constant. */
static LLVMValueRef whole_part(emitter *e, const plan_statement *p)
{
    enum { WORDS = 2 * PLAN_RANGE_COUNT };
    if (!e->plan->statements[p->code].parted)
        return LLVMConstNull(e->ptr);
    plan_part whole = plan_whole(p, p->stores_blocks);
    LLVMValueRef words[WORDS];
    for (int i = 0; i < WORDS; i++)
        words[i] = emit_i64(e, i < PLAN_RANGE_COUNT ? whole.first[i] : whole.end[i - PLAN_RANGE_COUNT]);
    LLVMValueRef at = LLVMAddGlobal(e->module, LLVMArrayType2(e->i64, WORDS), "whole");
    LLVMSetInitializer(at, LLVMConstArray2(e->i64, words, WORDS));
    LLVMSetGlobalConstant(at, true);
    LLVMSetLinkage(at, LLVMPrivateLinkage);
    return at;
}

static void emit_statement_call(emitter *e, const plan_statement *p, const statement_forms *f, const tensor_places *at)
{
    LLVMValueRef args[STATEMENT_MOST_PARAMS];
    unsigned sides = 1 + p->source_count, pointers = statement_pointers(p);
    if (p->absorbed)
        return;
    emit_first_clear(e, p, at);
    for (unsigned side = 0; side < sides; side++) {
        args[side] = tensor_place(e, at, plan_operand(p, side));
        args[sides + side] = bound_place(e, at, plan_operand(p, side));
        args[pointers + side] = emit_i64(e, p->base[side]);
    }
    args[pointers - 2] = at->scratch;
    args[pointers - 1] = at->part ? at->part : whole_part(e, p);
    LLVMBuildCall2(e->b, f->type, at->bounds ? f->bounded : f->plain, args, pointers + sides, "");
}

/* A statement at a time, because its parts must all be done before the next one begins. */
static void emit_step_entry(emitter *e, const char *name, const statement_forms *forms, bool bounded)
{
    enum { TENSORS, BOUNDS, SCRATCH, PART, POINTERS, STATEMENT = POINTERS, INTEGERS = 1 };
    LLVMTypeRef type;
    emit_function(e, name, POINTERS, INTEGERS, &type);
    LLVMSetLinkage(e->function, LLVMExternalLinkage);
    LLVMValueRef step = LLVMGetParam(e->function, STATEMENT);
    tensor_places at = {.tensors = LLVMGetParam(e->function, TENSORS), .scratch = LLVMGetParam(e->function, SCRATCH)};
    at.bounds = bounded ? LLVMGetParam(e->function, BOUNDS) : NULL;
    at.part = LLVMGetParam(e->function, PART);
    for (uint32_t i = 0; i < e->plan->e->statement_count; i++) {
        if (e->plan->statements[i].absorbed)
            continue;
        LLVMBasicBlockRef after =
            emit_if(e, e->plan->e->statement_count == 1 ? NULL : LLVMBuildICmp(e->b, LLVMIntEQ, step, emit_i64(e, i), ""));
        emit_statement_call(e, &e->plan->statements[i], &forms[i], &at);
        emit_if_end(e, after);
    }
    emit_function_end(e);
}

/* ---- the C function ---- */

enum { STORAGE_ALIGNMENT = 64, MOST_STACK_BYTES = 1 << 15 };

static int64_t aligned_bytes(int64_t bytes)
{
    return (bytes + STORAGE_ALIGNMENT - 1) / STORAGE_ALIGNMENT * STORAGE_ALIGNMENT;
}

/* Intermediates lie after the scratch storage. */
static int64_t storage_bytes(const reference_plan *p)
{
    int64_t bytes = aligned_bytes(p->plain_scratch_bytes);
    for (uint32_t i = 0; i < p->e->tensor_count; i++)
        if (p->e->tensors[i].port < 0 && p->assigned[i])
            bytes += aligned_bytes(walk_bytes(p->e, i));
    return bytes;
}

static LLVMValueRef library_function(emitter *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef f = LLVMGetNamedFunction(e->module, name);
    return f ? f : LLVMAddFunction(e->module, name, type);
}

static LLVMValueRef emit_storage(emitter *e, int64_t bytes)
{
    if (bytes <= MOST_STACK_BYTES)
        return emit_stack(e, bytes, STORAGE_ALIGNMENT);
    LLVMTypeRef params[] = {e->i64, e->i64}, type = LLVMFunctionType(e->ptr, params, 2, false),
                abort_type = LLVMFunctionType(e->void_type, NULL, 0, false);
    LLVMValueRef args[] = {emit_i64(e, STORAGE_ALIGNMENT), emit_i64(e, bytes)};
    LLVMValueRef storage = LLVMBuildCall2(e->b, type, library_function(e, "aligned_alloc", type), args, 2, "");
    LLVMBasicBlockRef after = emit_if(e, LLVMBuildIsNull(e->b, storage, ""));
    LLVMBuildCall2(e->b, abort_type, library_function(e, "abort", abort_type), NULL, 0, "");
    emit_if_end(e, after);
    return storage;
}

static void emit_c_entry(emitter *e, const char *name, const statement_forms *forms, LLVMValueRef *each)
{
    const einsum *of = e->plan->e;
    LLVMTypeRef *params = malloc(((size_t)of->tensor_count + 1) * sizeof *params);
    if (!params)
        return;
    unsigned count = 0;
    for (uint32_t i = 0; i < of->tensor_count; i++)
        if (plan_is_parameter(e->plan, i))
            params[count++] = e->ptr;
    e->function = LLVMAddFunction(e->module, name, LLVMFunctionType(e->void_type, params, count, false));
    free(params);
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
    int64_t bytes = storage_bytes(e->plan), used = aligned_bytes(e->plan->plain_scratch_bytes);
    LLVMValueRef storage = emit_storage(e, bytes > 0 ? bytes : 1);
    /* Sources first, as they are written in C. */
    unsigned next = 0;
    for (int assigned = 0; assigned < 2; assigned++)
        for (uint32_t i = 0; i < of->tensor_count; i++) {
            if (e->plan->assigned[i] != assigned)
                continue;
            if (plan_is_parameter(e->plan, i))
                each[i] = LLVMGetParam(e->function, next++);
            else if (of->tensors[i].port < 0 && e->plan->assigned[i]) {
                each[i] = emit_item(e, e->i8, storage, emit_i64(e, used));
                used += aligned_bytes(walk_bytes(of, i));
            }
        }
    tensor_places at = {.each = each, .scratch = storage};
    for (uint32_t i = 0; i < of->statement_count; i++)
        emit_statement_call(e, &e->plan->statements[i], &forms[i], &at);
    LLVMTypeRef free_type = LLVMFunctionType(e->void_type, &e->ptr, 1, false);
    if (bytes > MOST_STACK_BYTES)
        LLVMBuildCall2(e->b, free_type, library_function(e, "free", free_type), &storage, 1, "");
    emit_function_end(e);
}

static void emit_module(emitter *e, const char *symbol, unsigned forms, statement_forms *f, char *name, size_t name_bytes,
                        LLVMValueRef *each)
{
    for (uint32_t i = 0; i < e->plan->e->statement_count && forms & ~(unsigned)GENERATE_FIELD; i++)
        f[i] = e->plan->statements[i].absorbed    ? (statement_forms){0}
               : e->plan->statements[i].code == i ? emit_statement(e, i, forms)
                                                  : f[e->plan->statements[i].code];
    if (forms & GENERATE_C)
        emit_c_entry(e, symbol, f, each);
    if (forms & GENERATE_STEPS) {
        snprintf(name, name_bytes, "%s" GENERATE_STEPS_SUFFIX, symbol);
        emit_step_entry(e, name, f, false);
    }
    if (forms & GENERATE_BOUNDED) {
        snprintf(name, name_bytes, "%s" GENERATE_BOUNDED_SUFFIX, symbol);
        emit_step_entry(e, name, f, true);
    }
    if (forms & GENERATE_FIELD) {
        snprintf(name, name_bytes, "%s" GENERATE_FIELD_SUFFIX, symbol);
        emit_field_entry(e, name);
    }
}

LLVMModuleRef generate_module(const reference_plan *plan, const char *symbol, unsigned forms, LLVMContextRef llvm)
{
    statement_forms *f = calloc((size_t)plan->e->statement_count + 1, sizeof *f);
    LLVMValueRef *each = calloc((size_t)plan->e->tensor_count + 1, sizeof *each);
    size_t name_bytes = strlen(symbol) + sizeof GENERATE_BOUNDED_SUFFIX + sizeof GENERATE_STEPS_SUFFIX;
    char *name = malloc(name_bytes);
    LLVMModuleRef module = NULL;
    if (f && each && name) {
        emitter e;
        module = LLVMModuleCreateWithNameInContext(symbol, llvm);
        LLVMSetSourceFileName(module, symbol, strlen(symbol));
        emitter_init(&e, plan, llvm, module);
        emit_module(&e, symbol, forms, f, name, name_bytes, each);
        emitter_free(&e);
    }
    free(f);
    free(each);
    free(name);
    return module;
}

/* "matmul" becomes "matmul_ref". */
char *generate_symbol(const char *kernel_name)
{
    enum { MOST_BYTES = 200 };
    static const char suffix[] = "_ref";
    size_t bytes = strnlen(kernel_name, MOST_BYTES);
    char *symbol = malloc(1 + bytes + sizeof suffix), *at = symbol;
    if (!symbol)
        return NULL;
    if (bytes == 0 || isdigit((unsigned char)kernel_name[0]))
        *at++ = '_';
    for (size_t i = 0; i < bytes; i++)
        *at++ = isalnum((unsigned char)kernel_name[i]) ? kernel_name[i] : '_';
    memcpy(at, suffix, sizeof suffix);
    return symbol;
}
