#include "codegen/reference/generate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/reference/bound.h"
#include "codegen/reference/convert.h"
#include "codegen/reference/gemm.h"

/* A statement's function under construction. */
typedef struct statement {
    emitter *e;
    const plan_statement *plan;
    bool bounded;
    LLVMTypeRef type;
    gemm_function product, bound_product;
    /* parameters; the columns of a copy are unused */
    LLVMValueRef dst, row_source, column_source;
    LLVMValueRef dst_bound, row_bound, column_bound;
    LLVMValueRef scratch;
} statement;

enum { STATEMENT_PARAMS = 7 };

static bool tensor_is_exact(const statement *s, uint32_t tensor)
{
    return s->e->plan->exact[tensor];
}

static dtype tensor_dtype(const statement *s, uint32_t tensor)
{
    return s->e->plan->e->tensors[tensor].dtype;
}

static void emit_clear(emitter *e, LLVMValueRef at, int64_t bytes)
{
    LLVMBuildMemSet(e->b, at, LLVMConstInt(e->i8, 0, false), emit_i64(e, bytes), 1);
}

static LLVMValueRef scratch_at(const statement *s, int64_t offset)
{
    return emit_item(s->e, s->e->i8, s->scratch, emit_i64(s->e, offset));
}

/* ---- packing ---- */

typedef enum pack_kind {
    PACK_VALUE,     /* the element */
    PACK_MAGNITUDE, /* |element|, 0 when it is not finite */
    PACK_ERROR,     /* its bound */
    PACK_LARGEST,   /* magnitude and bound together */
} pack_kind;

typedef struct pack_side {
    const plan_digits *digits;
    uint32_t tensor;
    einsum_side side;
    LLVMValueRef source, bound, pack;
    int64_t tile; /* rows or columns of a tile */
} pack_side;

static pack_side rows_of(const statement *s)
{
    const plan_statement *p = s->plan;
    return (pack_side){.digits = &p->digits[PLAN_ROW],
                       .tensor = p->row_source,
                       .side = p->row_side,
                       .source = s->row_source,
                       .bound = s->row_bound,
                       .pack = scratch_at(s, p->scratch.row_pack),
                       .tile = p->tile.rows};
}

static pack_side columns_of(const statement *s)
{
    const plan_statement *p = s->plan;
    return (pack_side){.digits = &p->digits[PLAN_COLUMN],
                       .tensor = p->column_source,
                       .side = p->column_side,
                       .source = s->column_source,
                       .bound = s->column_bound,
                       .pack = scratch_at(s, p->scratch.column_pack),
                       .tile = p->tile.columns};
}

static LLVMValueRef emit_packed_item(const statement *s, const pack_side *side, pack_kind kind,
                                     LLVMValueRef at)
{
    emitter *e = s->e;
    dtype t = tensor_dtype(s, side->tensor);
    LLVMValueRef error = NULL, value = NULL;
    if (kind == PACK_ERROR || (kind == PACK_LARGEST && !tensor_is_exact(s, side->tensor)))
        error = emit_rounded_up(e, emit_load(e, e->f64, side->bound, at));
    if (kind != PACK_ERROR)
        value = emit_widen(e, t, emit_code_load(e, t, side->source, at));
    if (kind == PACK_MAGNITUDE || kind == PACK_LARGEST)
        value = emit_magnitude(e, value);
    if (!value || !error)
        return value ? value : error;
    return LLVMBuildFAdd(e->b, value, error, "");
}

/* Writes tile after tile; a term that does not exist becomes 0 in both sources, so that it adds nothing. */
static void emit_pack(const statement *s, pack_side side, pack_kind kind)
{
    emitter *e = s->e;
    const plan_digits *depth = &s->plan->digits[PLAN_DEPTH];
    unsigned first = e->open_count;
    emit_digits_open(e, side.digits);
    LLVMValueRef line = emit_digits_index(e, first), height = emit_i64(e, side.tile);
    LLVMValueRef tile = LLVMBuildUDiv(e->b, line, height, ""), lane = LLVMBuildURem(e->b, line, height, "");
    LLVMValueRef base = LLVMBuildMul(e->b, tile, emit_i64(e, side.tile * depth->combinations), "");
    base = LLVMBuildAdd(e->b, base, lane, "");
    unsigned first_depth = e->open_count;
    emit_digits_open(e, depth);
    LLVMValueRef guard = emit_source_guard(e, side.tensor, side.side), from = emit_tensor_offset(e, side.tensor, side.side);
    if (guard)
        from = LLVMBuildSelect(e->b, guard, from, emit_i64(e, 0), "");
    LLVMValueRef item = emit_packed_item(s, &side, kind, from);
    if (guard)
        item = LLVMBuildSelect(e->b, guard, item, LLVMConstNull(LLVMTypeOf(item)), "");
    LLVMValueRef to = LLVMBuildMul(e->b, emit_digits_index(e, first_depth), height, "");
    emit_store(e, item, side.pack, LLVMBuildAdd(e->b, base, to, ""));
    emit_digits_close(e, depth);
    emit_digits_close(e, side.digits);
}

/* ---- contraction ---- */

static void emit_product(const statement *s, gemm_function f, int64_t sums)
{
    LLVMValueRef args[] = {scratch_at(s, sums), scratch_at(s, s->plan->scratch.row_pack),
                           scratch_at(s, s->plan->scratch.column_pack)};
    LLVMBuildCall2(s->e->b, f.type, f.function, args, 3, "");
}

static void emit_cleared_product(const statement *s, gemm_function f, int64_t sums)
{
    const plan_tile *t = &s->plan->tile;
    emit_clear(s->e, scratch_at(s, sums), t->padded_rows * t->padded_columns * (f.kind == GEMM_F64 ? 8 : 4));
    emit_product(s, f, sums);
}

static bool sources_are_exact(const statement *s)
{
    return tensor_is_exact(s, s->plan->row_source) && tensor_is_exact(s, s->plan->column_source);
}

static bool needs_bound(const statement *s)
{
    return s->bounded && !tensor_is_exact(s, s->plan->of->dst);
}

/* |r| * es + er * (|s| + es) */
static void emit_error_products(const statement *s)
{
    bool row_exact = tensor_is_exact(s, s->plan->row_source);
    bool column_exact = tensor_is_exact(s, s->plan->column_source);
    const plan_tile *t = &s->plan->tile;
    int64_t sums = s->plan->scratch.error;
    emit_clear(s->e, scratch_at(s, sums),
               t->padded_rows * t->padded_columns * (s->bound_product.kind == GEMM_F64 ? 8 : 4));
    if (!column_exact) {
        emit_pack(s, columns_of(s), PACK_ERROR);
        emit_product(s, s->bound_product, sums);
    }
    if (!row_exact) {
        emit_pack(s, rows_of(s), PACK_ERROR);
        emit_pack(s, columns_of(s), PACK_LARGEST);
        emit_product(s, s->bound_product, sums);
    }
}

static void emit_products(const statement *s)
{
    emit_pack(s, rows_of(s), PACK_VALUE);
    emit_pack(s, columns_of(s), PACK_VALUE);
    emit_cleared_product(s, s->product, s->plan->scratch.value);
    if (!needs_bound(s))
        return;
    emit_pack(s, rows_of(s), PACK_MAGNITUDE);
    emit_pack(s, columns_of(s), PACK_MAGNITUDE);
    emit_cleared_product(s, s->bound_product, s->plan->scratch.magnitude);
    if (!sources_are_exact(s))
        emit_error_products(s);
}

static LLVMValueRef load_bound_sum(const statement *s, int64_t sums, LLVMValueRef at)
{
    emitter *e = s->e;
    bool wide = s->bound_product.kind == GEMM_F64;
    LLVMValueRef sum = emit_load(e, wide ? e->f64 : e->f32, scratch_at(s, sums), at);
    return wide ? sum : LLVMBuildFPExt(e->b, sum, e->f64, "");
}

static void emit_result(const statement *s, LLVMValueRef at)
{
    emitter *e = s->e;
    const plan_scratch *scratch = &s->plan->scratch;
    uint32_t dst = s->plan->of->dst;
    dtype t = tensor_dtype(s, dst);
    LLVMValueRef value = emit_load(e, s->plan->integer ? e->i32 : e->f32, scratch_at(s, scratch->value), at);
    LLVMValueRef code = emit_narrow(e, t, value), to = emit_tensor_offset(e, dst, EINSUM_DST);
    emit_code_store(e, t, code, s->dst, to);
    if (!needs_bound(s))
        return;
    bool inexact = !sources_are_exact(s);
    LLVMValueRef magnitude = load_bound_sum(s, scratch->magnitude, at);
    LLVMValueRef error = inexact ? load_bound_sum(s, scratch->error, at) : emit_f64(e, 0);
    LLVMValueRef bound = emit_sum_bound(e, s->plan, inexact, value, magnitude, error);
    emit_store(e, emit_cast_bound(e, t, value, code, bound), s->dst_bound, to);
}

static void emit_results(const statement *s)
{
    emitter *e = s->e;
    const plan_digits *rows = &s->plan->digits[PLAN_ROW], *columns = &s->plan->digits[PLAN_COLUMN];
    unsigned first_row = e->open_count;
    emit_digits_open(e, rows);
    LLVMValueRef row = emit_digits_index(e, first_row);
    row = LLVMBuildMul(e->b, row, emit_i64(e, s->plan->tile.padded_columns), "");
    unsigned first_column = e->open_count;
    emit_digits_open(e, columns);
    LLVMBasicBlockRef after = emit_if(e, emit_guard(e));
    emit_result(s, LLVMBuildAdd(e->b, row, emit_digits_index(e, first_column), ""));
    emit_if_end(e, after);
    emit_digits_close(e, columns);
    emit_digits_close(e, rows);
}

static void emit_contract(const statement *s)
{
    /* Padding rows and columns of the packs are read, never written. */
    emit_clear(s->e, s->scratch, s->plan->scratch.value);
    emit_digits_open(s->e, &s->plan->digits[PLAN_BATCH]);
    emit_products(s);
    emit_results(s);
    emit_digits_close(s->e, &s->plan->digits[PLAN_BATCH]);
}

/* ---- copy ---- */

static void emit_copied_item(const statement *s)
{
    emitter *e = s->e;
    uint32_t a = s->plan->of->a, dst = s->plan->of->dst;
    dtype from = tensor_dtype(s, a), to = tensor_dtype(s, dst);
    LLVMValueRef source_at = emit_tensor_offset(e, a, EINSUM_A), dst_at = emit_tensor_offset(e, dst, EINSUM_DST);
    LLVMValueRef code = emit_code_load(e, from, s->row_source, source_at), value = NULL;
    if (from != to || needs_bound(s))
        value = emit_widen(e, from, code);
    if (from != to)
        code = emit_narrow(e, to, value);
    emit_code_store(e, to, code, s->dst, dst_at);
    if (!needs_bound(s))
        return;
    LLVMValueRef error = emit_load(e, e->f64, s->row_bound, source_at);
    if (from != to)
        error = emit_cast_bound(e, to, value, code, error);
    emit_store(e, error, s->dst_bound, dst_at);
}

static void emit_copy(const statement *s)
{
    const plan_digits *digits = &s->plan->digits[PLAN_BATCH];
    emit_digits_open(s->e, digits);
    LLVMBasicBlockRef after = emit_if(s->e, emit_source_guard(s->e, s->plan->of->a, EINSUM_A));
    emit_copied_item(s);
    emit_if_end(s->e, after);
    emit_digits_close(s->e, digits);
}

/* ---- statement functions ---- */

static void emit_gemms(statement *s, unsigned number)
{
    char name[48];
    const plan_statement *p = s->plan;
    gemm_kind kind = p->integer ? GEMM_I32 : p->exact_products ? GEMM_F32_FUSED : GEMM_F32;
    gemm_kind bound_kind = p->wide_bound ? GEMM_F64 : GEMM_F32_FUSED;
    snprintf(name, sizeof name, "product%u", number);
    s->product = s->bound_product = emit_gemm(s->e, p, kind, name);
    snprintf(name, sizeof name, "bound_product%u", number);
    if (!p->integer && kind != bound_kind)
        s->bound_product = emit_gemm(s->e, p, bound_kind, name);
}

static LLVMValueRef emit_statement_form(statement *s, unsigned number, bool bounded)
{
    emitter *e = s->e;
    char name[48];
    snprintf(name, sizeof name, bounded ? "statement%u_bounded" : "statement%u", number);
    s->bounded = bounded;
    emit_function(e, name, STATEMENT_PARAMS, &s->type);
    LLVMValueRef function = e->function;
    LLVMValueRef *params[STATEMENT_PARAMS] = {&s->dst,       &s->row_source, &s->column_source,
                                              &s->dst_bound, &s->row_bound,  &s->column_bound,
                                              &s->scratch};
    for (unsigned i = 0; i < STATEMENT_PARAMS; i++)
        *params[i] = LLVMGetParam(function, i);
    uint32_t dst = s->plan->of->dst;
    e->statement = s->plan;
    if (s->plan->first)
        emit_clear(e, s->dst, plan_tensor_bytes(e->plan->e, dst));
    if (s->plan->first && needs_bound(s))
        emit_clear(e, s->dst_bound, plan_tensor_elements(e->plan->e, dst) * (int64_t)sizeof(double));
    if (s->plan->of->op == EINSUM_COPY)
        emit_copy(s);
    else
        emit_contract(s);
    emit_function_end(e);
    return function;
}

typedef struct statement_forms {
    LLVMValueRef plain, bounded;
    LLVMTypeRef type;
} statement_forms;

static statement_forms emit_statement(emitter *e, unsigned number)
{
    statement s = {.e = e, .plan = &e->plan->statements[number]};
    if (s.plan->of->op == EINSUM_CONTRACT)
        emit_gemms(&s, number);
    LLVMValueRef plain = emit_statement_form(&s, number, false);
    LLVMValueRef bounded = needs_bound(&(statement){.e = e, .plan = s.plan, .bounded = true})
                               ? emit_statement_form(&s, number, true)
                               : plain;
    return (statement_forms){plain, bounded, s.type};
}

/* ---- the module ---- */

static LLVMValueRef array_pointer(emitter *e, LLVMValueRef array, uint32_t number)
{
    return array ? emit_load(e, e->ptr, array, emit_i64(e, number)) : LLVMConstNull(e->ptr);
}

static void emit_statement_call(emitter *e, const plan_statement *p, const statement_forms *f,
                                LLVMValueRef tensors, LLVMValueRef bounds, LLVMValueRef scratch)
{
    bool copy = p->of->op == EINSUM_COPY;
    uint32_t row = copy ? p->of->a : p->row_source, column = copy ? p->of->a : p->column_source;
    LLVMValueRef args[STATEMENT_PARAMS] = {array_pointer(e, tensors, p->of->dst),
                                           array_pointer(e, tensors, row),
                                           array_pointer(e, tensors, column),
                                           array_pointer(e, bounds, p->of->dst),
                                           array_pointer(e, bounds, row),
                                           array_pointer(e, bounds, column),
                                           scratch};
    LLVMBuildCall2(e->b, f->type, bounds ? f->bounded : f->plain, args, STATEMENT_PARAMS, "");
}

static void emit_entry(emitter *e, const char *name, const statement_forms *forms, bool bounded)
{
    LLVMTypeRef type;
    unsigned count = bounded ? 3 : 2;
    emit_function(e, name, count, &type);
    LLVMSetLinkage(e->function, LLVMExternalLinkage);
    LLVMValueRef tensors = LLVMGetParam(e->function, 0), scratch = LLVMGetParam(e->function, count - 1);
    LLVMValueRef bounds = bounded ? LLVMGetParam(e->function, 1) : NULL;
    for (uint32_t i = 0; i < e->plan->e->statement_count; i++)
        emit_statement_call(e, &e->plan->statements[i], &forms[i], tensors, bounds, scratch);
    emit_function_end(e);
}

static void emit_scratch_constant(emitter *e, const char *name)
{
    LLVMValueRef constant = LLVMAddGlobal(e->module, e->i64, name);
    LLVMSetInitializer(constant, emit_i64(e, e->plan->scratch_bytes));
    LLVMSetGlobalConstant(constant, true);
}

static void emit_module(emitter *e, const char *symbol, statement_forms *forms, char *name, size_t name_bytes)
{
    for (uint32_t i = 0; i < e->plan->e->statement_count; i++)
        forms[i] = emit_statement(e, i);
    emit_entry(e, symbol, forms, false);
    snprintf(name, name_bytes, "%s_bounded", symbol);
    emit_entry(e, name, forms, true);
    snprintf(name, name_bytes, "%s_scratch_bytes", symbol);
    emit_scratch_constant(e, name);
}

LLVMModuleRef generate_module(const reference_plan *plan, const char *symbol, bool fused, LLVMContextRef llvm)
{
    statement_forms *forms = calloc((size_t)plan->e->statement_count + 1, sizeof *forms);
    size_t name_bytes = strlen(symbol) + sizeof "_scratch_bytes";
    char *name = malloc(name_bytes);
    LLVMModuleRef module = NULL;
    if (forms && name) {
        emitter e;
        module = LLVMModuleCreateWithNameInContext(symbol, llvm);
        LLVMSetSourceFileName(module, symbol, strlen(symbol));
        emitter_init(&e, plan, llvm, module, fused);
        emit_module(&e, symbol, forms, name, name_bytes);
        emitter_free(&e);
    }
    free(forms);
    free(name);
    return module;
}

char *generate_symbol(const char *kernel_name)
{
    enum { MOST_BYTES = 200 };
    static const char prefix[] = "visa_ref_";
    size_t bytes = strnlen(kernel_name, MOST_BYTES);
    char *symbol = malloc(sizeof prefix + bytes);
    if (!symbol)
        return NULL;
    memcpy(symbol, prefix, sizeof prefix - 1);
    for (size_t i = 0; i < bytes; i++)
        symbol[sizeof prefix - 1 + i] = isalnum((unsigned char)kernel_name[i]) ? kernel_name[i] : '_';
    symbol[sizeof prefix - 1 + bytes] = '\0';
    return symbol;
}
