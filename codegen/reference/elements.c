#include "codegen/reference/elements.h"

#include <math.h>
#include <string.h>

#include "codegen/reference/bound.h"
#include "codegen/reference/convert.h"
#include "codegen/reference/scalar.h"
#include "codegen/reference/twin.h"
#include "codegen/reference/walk.h"

static dtype dtype_of(const element_form *f, unsigned side)
{
    return f->e->plan->e->tensors[plan_operand(f->p, side)].dtype;
}

static bool is_exact(const element_form *f, unsigned side)
{
    return !f->bounded || f->e->plan->exact[plan_operand(f->p, side)];
}

/* Elements between the lanes of an operand. */
static int64_t lane_stride(const element_form *f, unsigned side)
{
    return (int64_t)walk_stride(f->e->plan->e, plan_operand(f->p, side), (einsum_side)side, &f->p->vector);
}

/* ---- lanes in memory ---- */

/* How an operand's lanes lie: elements between them, how many there are and how many of them are read. */
typedef struct lane_place {
    int64_t stride, lanes, live;
} lane_place;

static LLVMValueRef load_vector(emitter *e, LLVMTypeRef type, LLVMValueRef from, LLVMValueRef offset, const lane_place *l)
{
    return emit_part_load(e, emit_vector_type(type, l->lanes), emit_item(e, type, from, offset), 1, l->live);
}

static LLVMValueRef load_codes(emitter *e, dtype t, LLVMValueRef from, LLVMValueRef offset, const lane_place *l)
{
    int64_t stride = l->stride, lanes = l->lanes;
    if (lanes == 1)
        return emit_code_load(e, t, from, offset);
    if (stride == 0)
        return emit_splat(e, emit_code_load(e, t, from, offset), lanes);
    if (stride == 1 && dtype_row_of(t)->bits >= 8)
        return load_vector(e, emit_code_type(e, t), from, offset, l);
    LLVMValueRef all = LLVMConstNull(emit_vector_type(emit_code_type(e, t), lanes));
    for (int64_t i = 0; i < l->live; i++)
        all = LLVMBuildInsertElement(e->b, all, emit_code_load(e, t, from, emit_plus(e, offset, i * stride)), emit_i32(e, i), "");
    return all;
}

static LLVMValueRef load_errors(emitter *e, LLVMValueRef from, LLVMValueRef offset, const lane_place *l)
{
    int64_t stride = l->stride, lanes = l->lanes;
    if (lanes == 1)
        return emit_load(e, e->f64, from, offset);
    if (stride == 0)
        return emit_splat(e, emit_load(e, e->f64, from, offset), lanes);
    if (stride == 1)
        return load_vector(e, e->f64, from, offset, l);
    LLVMValueRef all = LLVMConstNull(emit_vector_type(e->f64, lanes));
    for (int64_t i = 0; i < l->live; i++)
        all = LLVMBuildInsertElement(e->b, all, emit_load(e, e->f64, from, emit_plus(e, offset, i * stride)), emit_i32(e, i), "");
    return all;
}

/* The destination's lanes lie side by side (plan). */
static void store_codes(emitter *e, dtype t, LLVMValueRef codes, LLVMValueRef to, LLVMValueRef offset, int64_t lanes)
{
    if (lanes == 1) {
        emit_code_store(e, t, codes, to, offset);
        return;
    }
    if (dtype_row_of(t)->bits >= 8) {
        LLVMSetAlignment(LLVMBuildStore(e->b, codes, emit_item(e, emit_code_type(e, t), to, offset)), 1);
        return;
    }
    for (int64_t i = 0; i < lanes; i++)
        emit_code_store(e, t, LLVMBuildExtractElement(e->b, codes, emit_i32(e, i), ""), to, emit_plus(e, offset, i));
}

static void store_errors(emitter *e, LLVMValueRef errors, LLVMValueRef to, LLVMValueRef offset)
{
    LLVMSetAlignment(LLVMBuildStore(e->b, errors, emit_item(e, e->f64, to, offset)), sizeof(double));
}

/* ---- an operand at the open digits ---- */

typedef struct element {
    LLVMValueRef offset;
    LLVMValueRef held; /* i1: the element is there, else zero; NULL: it is */
} element;

static element element_of(const element_form *f, unsigned side)
{
    emitter *e = f->e;
    uint32_t tensor = plan_operand(f->p, side);
    return (element){emit_tensor_offset(e, tensor, (einsum_side)side),
                     side == EINSUM_DST ? NULL : emit_border(e, tensor, (einsum_side)side)};
}

static LLVMValueRef zero_unless(emitter *e, LLVMValueRef held, LLVMValueRef x)
{
    return held ? LLVMBuildSelect(e->b, held, x, LLVMConstNull(LLVMTypeOf(x)), "") : x;
}

/* What is not held is not read either. */
static expression_value load_element(const element_form *f, unsigned side, element at, int64_t lanes)
{
    emitter *e = f->e;
    LLVMValueRef offset = zero_unless(e, at.held, at.offset);
    lane_place l = {lane_stride(f, side), lanes, lanes};
    expression_value v = {.value = zero_unless(e, at.held, load_codes(e, dtype_of(f, side), f->at[side], offset, &l))};
    if (!is_exact(f, side))
        v.error = zero_unless(e, at.held, load_errors(e, f->bound[side], offset, &l));
    return v;
}

expression_value emit_element_load(const element_form *f, unsigned side, LLVMValueRef offset, int64_t stride, int64_t lanes, int64_t live)
{
    lane_place l = {stride, lanes, live};
    expression_value v = {.value = emit_widen(f->e, dtype_of(f, side), load_codes(f->e, dtype_of(f, side), f->at[side], offset, &l))};
    if (!is_exact(f, side))
        v.error = load_errors(f->e, f->bound[side], offset, &l);
    return v;
}

/* ---- casts ---- */

/* A cast of integers may wrap, of which there is no rule. */
LLVMValueRef emit_element_cast_error(emitter *e, dtype to, const expression_value *v, LLVMValueRef code)
{
    if (!v->error || to == DTYPE_F32 || to == DTYPE_I32)
        return v->error;
    if (dtype_row_of(to)->kind == DTYPE_KIND_FLOAT)
        return emit_cast_bound(e, to, v->value, code, v->error);
    LLVMValueRef none = emit_f64_like(e, v->error, 0);
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOEQ, v->error, none, ""), none, emit_f64_like(e, v->error, INFINITY), "");
}

static void store_element(const element_form *f, const expression_value *codes, LLVMValueRef offset, int64_t lanes)
{
    emitter *e = f->e;
    store_codes(e, dtype_of(f, EINSUM_DST), codes->value, f->at[EINSUM_DST], offset, lanes);
    if (is_exact(f, EINSUM_DST))
        return;
    LLVMTypeRef type = lanes > 1 ? emit_vector_type(e->f64, lanes) : e->f64;
    store_errors(e, codes->error ? codes->error : LLVMConstNull(type), f->bound[EINSUM_DST], offset);
}

static expression_value narrowed(const element_form *f, const expression_value *v)
{
    dtype to = dtype_of(f, EINSUM_DST);
    expression_value code = {.value = emit_narrow(f->e, to, v->value)};
    if (f->bounded)
        code.error = emit_element_cast_error(f->e, to, v, code.value);
    return code;
}

void emit_element_store(const element_form *f, const expression_value *v, int64_t lanes)
{
    expression_value code = narrowed(f, v);
    store_element(f, &code, element_of(f, EINSUM_DST).offset, lanes);
}

/* ---- expressions ---- */

/* Does arithmetic alone read the source? Then no bit of a NaN is seen: what it computes is a NaN of any bits. */
static bool is_number(const plan_statement *p, unsigned source)
{
    bool alone = p->node_count > 0 && p->nodes[p->node_count - 1].op != SCALAR_SOURCE;
    for (unsigned i = 0; i < p->node_count && alone; i++) {
        const scalar_row *row = scalar_row_of(p->nodes[i].op);
        for (unsigned k = 0; row && k < scalar_arity(row) && alone; k++) {
            const plan_node *from = &p->nodes[p->nodes[i].operands[k]];
            alone = from->op != SCALAR_SOURCE || from->argument != source || row->bound == BOUND_SUM || row->bound == BOUND_PRODUCT ||
                    row->bound == BOUND_QUOTIENT || row->bound == BOUND_FUSED;
        }
    }
    return alone;
}

expression_value emit_element_value(const element_form *f, int64_t lanes)
{
    expression_value sources[PLAN_SOURCES];
    for (unsigned i = 0; i < f->p->source_count; i++) {
        unsigned side = EINSUM_A + i;
        LLVMBasicBlockRef here = LLVMGetInsertBlock(f->e->b);
        if (plan_operand(f->p, side) != plan_operand(f->p, EINSUM_DST))
            here = emit_outside(f->e, plan_operand(f->p, side), (einsum_side)side);
        sources[i] = load_element(f, side, element_of(f, side), lanes);
        sources[i].value = (is_number(f->p, i) ? emit_widen_number : emit_widen)(f->e, dtype_of(f, side), sources[i].value);
        emit_inside(f->e, here);
    }
    return emit_expression(f->e, f->p, sources, NULL, lanes, f->bounded);
}

/* ---- what is moved ---- */

/* The coordinate that the open digits and shifts give on the indexed side. */
static LLVMValueRef coordinate_of(const element_form *f, einsum_side side, uint32_t axis)
{
    emitter *e = f->e;
    LLVMValueRef sum = emit_i64(e, 0);
    for (unsigned i = 0; i < e->open_count; i++) {
        const einsum_digit *d = &e->open[i].digit;
        if (d->axis == axis && d->size > 1 && einsum_digit_indexes(d, side))
            sum = LLVMBuildAdd(e->b, sum, emit_scaled(e, e->open[i].loop.counter, d->weight), "");
    }
    int64_t shift = einsum_shift_along(f->p->of, side, axis);
    return shift ? emit_plus(e, sum, shift) : sum;
}

static LLVMValueRef both(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return x && y ? LLVMBuildAnd(e->b, x, y, "") : x ? x : y;
}

/* Moves the element by the index tensors; i1: they are whole positions, and it is inside all axes. The first comparison keeps the product
 * from wrapping. */
static LLVMValueRef move_by_indices(const element_form *f, element *at)
{
    emitter *e = f->e;
    const einsum *of = e->plan->e;
    const einsum_statement *s = f->p->of;
    einsum_side side = einsum_indexed_side(s);
    LLVMValueRef inside = NULL;
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        const einsum_index *x = &s->indices[i];
        unsigned index_side = EINSUM_B + i;
        expression_value index = load_element(f, index_side, element_of(f, index_side), 1);
        LLVMValueRef value = LLVMBuildSExt(e->b, emit_widen(e, dtype_of(f, index_side), index.value), e->i64, "");
        if (einsum_index_divides(x)) {
            LLVMValueRef whole = LLVMBuildICmp(e->b, LLVMIntEQ, LLVMBuildSRem(e->b, value, emit_i64(e, x->step), ""), emit_i64(e, 0), "");
            inside = both(e, inside, both(e, whole, LLVMBuildICmp(e->b, LLVMIntSGE, value, emit_i64(e, 0), "")));
            value = LLVMBuildSDiv(e->b, value, emit_i64(e, x->step), "");
            if (x->positions)
                inside = both(e, inside, LLVMBuildICmp(e->b, LLVMIntSLT, value, emit_i64(e, x->positions), ""));
            value = LLVMBuildSDiv(e->b, value, emit_i64(e, x->div), "");
            value = x->mod ? LLVMBuildSRem(e->b, value, emit_i64(e, x->mod), "") : value;
        }
        int64_t size = of->axes[x->axis].size, most = size / x->unit;
        LLVMValueRef near = LLVMBuildAnd(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, value, emit_i64(e, most), ""),
                                         LLVMBuildICmp(e->b, LLVMIntSGE, value, emit_i64(e, -most), ""), "");
        LLVMValueRef moved = emit_scaled(e, value, x->unit);
        LLVMValueRef place = LLVMBuildAdd(e->b, coordinate_of(f, side, x->axis), moved, "");
        inside = both(e, inside, both(e, near, LLVMBuildICmp(e->b, LLVMIntULT, place, emit_i64(e, size), "")));
        at->offset = LLVMBuildAdd(e->b, at->offset, emit_scaled(e, moved, walk_axis_stride(of, plan_operand(f->p, side), x->axis)), "");
    }
    return inside;
}

/* i1: the first index's element is one of those that the count names; NULL: there is no count. */
static LLVMValueRef is_counted(const element_form *f)
{
    if (!f->p->of->counted)
        return NULL;
    unsigned side = einsum_count_side(f->p->of);
    LLVMValueRef count = load_element(f, side, element_of(f, side), 1).value;
    LLVMValueRef number = LLVMBuildURem(f->e->b, element_of(f, EINSUM_B).offset, emit_i64(f->e, f->p->of->count_span), "");
    return LLVMBuildICmp(f->e->b, LLVMIntSLT, number, LLVMBuildSExt(f->e->b, count, f->e->i64, ""), "");
}

/* So many elements more whose index is outside. */
static void count_outside(const element_form *f, LLVMValueRef inside, int64_t lanes)
{
    emitter *e = f->e;
    LLVMValueRef more = LLVMBuildSelect(e->b, inside, emit_i64(e, 0), emit_i64(e, lanes), "");
    LLVMValueRef count = emit_load(e, e->i64, f->outside, emit_i64(e, 0));
    emit_store(e, LLVMBuildAdd(e->b, count, more, ""), f->outside, emit_i64(e, 0));
}

/* An element moves as it is where both types are the same. */
static void emit_moved(const element_form *f, int64_t lanes)
{
    emitter *e = f->e;
    dtype from = dtype_of(f, EINSUM_A), to = dtype_of(f, EINSUM_DST);
    element source = element_of(f, EINSUM_A), destination = element_of(f, EINSUM_DST);
    LLVMBasicBlockRef after = NULL;
    if (einsum_index_count(f->p->of)) {
        bool gathers = einsum_indexed_side(f->p->of) == EINSUM_A;
        LLVMValueRef inside = move_by_indices(f, gathers ? &source : &destination);
        count_outside(f, inside, lanes);
        if (gathers)
            source.held = both(e, source.held, both(e, inside, is_counted(f)));
        else
            after = emit_if(e, inside);
    }
    expression_value code = load_element(f, EINSUM_A, source, lanes);
    if (from != to || code.error) {
        expression_value value = {emit_widen(e, from, code.value), code.error};
        if (from != to)
            code = narrowed(f, &value);
    }
    store_element(f, &code, destination.offset, lanes);
    emit_if_end(e, after);
}

static void emit_fill(const element_form *f, int64_t lanes)
{
    emitter *e = f->e;
    LLVMValueRef code = LLVMConstInt(emit_code_type(e, dtype_of(f, EINSUM_DST)), f->p->of->bits, false);
    expression_value v = {.value = lanes > 1 ? emit_splat(e, code, lanes) : code};
    store_element(f, &v, element_of(f, EINSUM_DST).offset, lanes);
}

/* What the operands of a twin are, and where they begin. */
static element_form twin_of(const element_form *f, const plan_statement *p, LLVMValueRef *at, LLVMValueRef *bound)
{
    element_form twin = *f;
    twin.p = p;
    twin.at = at;
    twin.bound = bound;
    for (unsigned side = 0; side <= p->source_count; side++) {
        unsigned from = side == EINSUM_DST ? side : twin_side(f->p, p, side);
        at[side] = f->at[from];
        bound[side] = f->bound[from];
        f->e->base[side] = p->base[side] ? emit_i64(f->e, p->base[side]) : NULL;
    }
    return twin;
}

/* The statement and those that are computed with it: all values, then all stores. */
static void emit_twins(const element_form *f, int64_t lanes)
{
    emitter *e = f->e;
    LLVMValueRef at[PLAN_SIDES], bound[PLAN_SIDES], bases[PLAN_SIDES];
    expression_value values[PLAN_TWINS];
    unsigned count = 0;
    memcpy(bases, e->base, sizeof bases);
    values[count++] = emit_element_value(f, lanes);
    for (const plan_statement *p = f->p->twin; p; p = p->twin) {
        element_form twin = twin_of(f, p, at, bound);
        values[count++] = emit_element_value(&twin, lanes);
    }
    memcpy(e->base, bases, sizeof bases);
    emit_element_store(f, &values[0], lanes);
    count = 1;
    for (const plan_statement *p = f->p->twin; p; p = p->twin) {
        element_form twin = twin_of(f, p, at, bound);
        emit_element_store(&twin, &values[count++], lanes);
    }
    memcpy(e->base, bases, sizeof bases);
}

static void emit_one(const element_form *f, int64_t lanes)
{
    LLVMBasicBlockRef after = emit_if(f->e, emit_guard(f->e));
    if (f->p->of->op == MATH_FILL) {
        emit_fill(f, lanes);
    } else if (f->p->of->op == MATH_MAP) {
        emit_twins(f, lanes);
    } else {
        emit_moved(f, lanes);
    }
    emit_if_end(f->e, after);
}

/* ---- loops ---- */

void emit_vector_open(const element_form *f, int64_t first, int64_t end, int64_t step)
{
    emitter *e = f->e;
    emitter_digit *d = &e->open[e->open_count++];
    d->digit = f->p->vector;
    emit_loop_open(e, &d->loop, emit_i64(e, first), emit_i64(e, end), step);
}

void emit_vector_close(const element_form *f)
{
    emit_loop_close(f->e, &f->e->open[--f->e->open_count].loop);
}

/* A few of them one after the other: a loop that turns twice costs as much as one of them. */
static void emit_vectors(const element_form *f, int64_t end, int64_t lanes)
{
    enum { FEW = 4 };
    emitter *e = f->e;
    if (end / lanes > FEW) {
        emit_vector_open(f, 0, end, lanes);
        emit_one(f, lanes);
        emit_vector_close(f);
        return;
    }
    for (int64_t at = 0; at < end; at += lanes) {
        emitter_digit *d = &e->open[e->open_count++];
        d->digit = f->p->vector;
        d->loop.counter = emit_i64(e, at);
        emit_one(f, lanes);
        e->open_count--;
    }
}

void emit_elements(const element_form *f)
{
    const plan_statement *p = f->p;
    const plan_digits *digits = &p->digits[PLAN_BATCH];
    int64_t lanes = p->vector_lanes, whole = p->vector.size / lanes * lanes;
    emit_digits_open(f->e, digits);
    if (lanes == 1) {
        emit_one(f, 1);
    } else {
        emit_vectors(f, whole, lanes);
        if (whole < p->vector.size) {
            emit_vector_open(f, whole, p->vector.size, 1);
            emit_one(f, 1);
            emit_vector_close(f);
        }
    }
    emit_digits_close(f->e, digits);
}
