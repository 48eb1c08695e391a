#include "codegen/reference/reduce.h"

#include <math.h>

#include "codegen/reference/bound.h"
#include "codegen/reference/elements_plan.h"
#include "codegen/reference/scalar.h"

enum { FOLD_VALUE, FOLD_MAGNITUDE, FOLD_ERROR, FOLD_PRECISE, FOLD_VALUES };

typedef struct fold {
    const element_form *f;
    const scalar_row *row;
    int64_t lanes;
    unsigned count; /* FOLD_VALUE alone, or all */
    LLVMValueRef v[FOLD_VALUES];
    LLVMValueRef slots, live; /* of the machine's order */
} fold;

static fold fold_begin(const element_form *f, LLVMValueRef slots, int64_t lanes)
{
    emitter *e = f->e;
    fold x = {.f = f, .row = scalar_row_of(f->p->of->fold), .lanes = lanes, .slots = slots};
    x.count = f->bounded && !e->plan->exact[f->p->of->dst] ? FOLD_VALUES : 1;
    x.v[FOLD_VALUE] = emit_scalar_constant(e, x.row->result, x.row->identity, lanes);
    x.v[FOLD_MAGNITUDE] = x.v[FOLD_ERROR] = x.v[FOLD_PRECISE] = LLVMConstNull(lanes > 1 ? emit_vector_type(e->f64, lanes) : e->f64);
    return x;
}

/* ---- loops that carry the fold ---- */

typedef struct fold_loop {
    emitter_loop loop;
    LLVMValueRef phi[FOLD_VALUES];
} fold_loop;

static void carry_into(fold *x, fold_loop *l, LLVMBasicBlockRef before)
{
    for (unsigned i = 0; i < x->count && l->loop.body; i++) {
        l->phi[i] = LLVMBuildPhi(x->f->e->b, LLVMTypeOf(x->v[i]), "");
        LLVMAddIncoming(l->phi[i], &x->v[i], &before, 1);
        x->v[i] = l->phi[i];
    }
}

static void open_range(fold *x, fold_loop *l, int64_t first, int64_t end, int64_t step)
{
    emitter *e = x->f->e;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    emit_loop_open(e, &l->loop, emit_i64(e, first), emit_i64(e, end), step);
    carry_into(x, l, before);
}

static void close_range(fold *x, fold_loop *l)
{
    emitter *e = x->f->e;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    for (unsigned i = 0; i < x->count && l->loop.body; i++)
        LLVMAddIncoming(l->phi[i], &x->v[i], &latch, 1);
    emit_loop_close(e, &l->loop);
}

static void open_digit(fold *x, fold_loop *l, const einsum_digit *d, int64_t first, int64_t end, int64_t step)
{
    emitter *e = x->f->e;
    open_range(x, l, first, end, step);
    e->open[e->open_count++] = (emitter_digit){.digit = *d, .loop = {.counter = l->loop.counter}};
}

static void close_digit(fold *x, fold_loop *l)
{
    x->f->e->open_count--;
    close_range(x, l);
}

/* ---- terms ---- */

static LLVMValueRef larger(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOGT, x, y, ""), x, y, "");
}

static LLVMValueRef wide_of(emitter *e, LLVMValueRef value)
{
    return LLVMBuildFPExt(e->b, value, emit_type_like(e, value, e->f64), "");
}

static LLVMValueRef size_of(emitter *e, scalar_type type, LLVMValueRef value)
{
    if (type == SCALAR_F32)
        return wide_of(e, emit_magnitude(e, value));
    LLVMValueRef wide = LLVMBuildSIToFP(e->b, value, emit_type_like(e, value, e->f64), "");
    return emit_intrinsic(e, "llvm.fabs", &wide, 1);
}

static bool adds(const fold *x)
{
    return x->row->op == SCALAR_ADD_F32;
}

/* Errors of a sum add up; of another fold the largest counts. */
static LLVMValueRef join_errors(const fold *x, LLVMValueRef a, LLVMValueRef b)
{
    return adds(x) ? LLVMBuildFAdd(x->f->e->b, a, b, "") : larger(x->f->e, a, b);
}

static void fold_in(fold *x, const expression_value *term)
{
    emitter *e = x->f->e;
    x->v[FOLD_VALUE] = emit_scalar(e, x->row->op, (LLVMValueRef[]){x->v[FOLD_VALUE], term->value});
    if (x->count == 1)
        return;
    x->v[FOLD_MAGNITUDE] = LLVMBuildFAdd(e->b, x->v[FOLD_MAGNITUDE], size_of(e, x->row->result, term->value), "");
    if (adds(x))
        x->v[FOLD_PRECISE] = LLVMBuildFAdd(e->b, x->v[FOLD_PRECISE], wide_of(e, term->value), "");
    if (term->error)
        x->v[FOLD_ERROR] = join_errors(x, x->v[FOLD_ERROR], term->error);
}

/* The term at the open digits, where it exists. */
static void fold_term(fold *x)
{
    emitter *e = x->f->e;
    LLVMValueRef exists = emit_guard(e), old[FOLD_VALUES];
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), after = emit_if(e, exists);
    for (unsigned i = 0; i < x->count; i++)
        old[i] = x->v[i];
    expression_value term = emit_element_value(x->f, x->lanes);
    fold_in(x, &term);
    LLVMBasicBlockRef then = LLVMGetInsertBlock(e->b);
    emit_if_end(e, after);
    for (unsigned i = 0; i < x->count && after; i++) {
        LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(x->v[i]), ""), values[] = {x->v[i], old[i]};
        LLVMBasicBlockRef blocks[] = {then, before};
        LLVMAddIncoming(phi, values, blocks, 2);
        x->v[i] = phi;
    }
}

static void fold_digits(fold *x, const plan_digits *digits, unsigned from)
{
    fold_loop l;
    if (from == digits->count) {
        fold_term(x);
        return;
    }
    open_digit(x, &l, &digits->items[from], 0, digits->items[from].size, 1);
    fold_digits(x, digits, from + 1);
    close_digit(x, &l);
}

/* ---- a vector of folds ---- */

static LLVMValueRef half_of(emitter *e, LLVMValueRef x, unsigned first, unsigned count)
{
    int lanes[64];
    if (count == 1)
        return LLVMBuildExtractElement(e->b, x, emit_i32(e, first), "");
    for (unsigned i = 0; i < count; i++)
        lanes[i] = (int)(first + i);
    return emit_shuffle(e, x, x, lanes, count);
}

/* The folds of the lanes become one. */
static void join_lanes(fold *x)
{
    emitter *e = x->f->e;
    for (; x->lanes > 1; x->lanes /= 2) {
        unsigned half = (unsigned)(x->lanes / 2);
        LLVMValueRef low[FOLD_VALUES], high[FOLD_VALUES];
        for (unsigned i = 0; i < x->count; i++) {
            low[i] = half_of(e, x->v[i], 0, half);
            high[i] = half_of(e, x->v[i], half, half);
        }
        x->v[FOLD_VALUE] = emit_scalar(e, x->row->op, (LLVMValueRef[]){low[FOLD_VALUE], high[FOLD_VALUE]});
        if (x->count == 1)
            continue;
        x->v[FOLD_MAGNITUDE] = LLVMBuildFAdd(e->b, low[FOLD_MAGNITUDE], high[FOLD_MAGNITUDE], "");
        x->v[FOLD_ERROR] = join_errors(x, low[FOLD_ERROR], high[FOLD_ERROR]);
        x->v[FOLD_PRECISE] = LLVMBuildFAdd(e->b, low[FOLD_PRECISE], high[FOLD_PRECISE], "");
    }
}

static void fold_range(fold *x, const plan_digits *digits, unsigned from, int64_t first, int64_t end, int64_t step)
{
    fold_loop l;
    if (from < digits->count) {
        open_digit(x, &l, &digits->items[from], 0, digits->items[from].size, 1);
        fold_range(x, digits, from + 1, first, end, step);
    } else {
        open_digit(x, &l, &x->f->p->vector, first, end, step);
        fold_term(x);
    }
    close_digit(x, &l);
}

static void fold_in_vectors(fold *x)
{
    const plan_statement *p = x->f->p;
    int64_t lanes = p->vector_lanes, whole = p->vector.size / lanes * lanes;
    *x = fold_begin(x->f, x->slots, lanes);
    fold_range(x, &p->digits[PLAN_DEPTH], 0, 0, whole, lanes);
    join_lanes(x);
    if (whole < p->vector.size)
        fold_range(x, &p->digits[PLAN_DEPTH], 0, whole, p->vector.size, 1);
}

/* ---- the machine's order ---- */

static LLVMTypeRef slot_type(const fold *x)
{
    return emit_scalar_type(x->f->e, x->row->result, x->lanes);
}

static LLVMValueRef load_slot(const fold *x, LLVMValueRef slot)
{
    LLVMValueRef v = LLVMBuildLoad2(x->f->e->b, slot_type(x), emit_item(x->f->e, slot_type(x), x->slots, slot), "");
    LLVMSetAlignment(v, 4);
    return v;
}

static void store_slot(const fold *x, LLVMValueRef value, LLVMValueRef slot)
{
    LLVMSetAlignment(LLVMBuildStore(x->f->e->b, value, emit_item(x->f->e, slot_type(x), x->slots, slot)), 4);
}

static LLVMValueRef is_live(const fold *x, LLVMValueRef slot)
{
    emitter *e = x->f->e;
    return LLVMBuildTrunc(e->b, emit_load(e, e->i8, x->live, slot), e->i1, "");
}

static void clear_live(const fold *x, int64_t slots)
{
    emitter *e = x->f->e;
    LLVMBuildMemSet(e->b, x->live, LLVMConstInt(e->i8, 0, false), emit_i64(e, slots), 1);
}

/* The position of the open digits in a group. */
static LLVMValueRef position_in(emitter *e, unsigned group)
{
    LLVMValueRef sum = emit_i64(e, 0);
    for (unsigned i = 0; i < e->open_count; i++)
        if (!e->open[i].digit.kept && e->open[i].digit.group == group)
            sum = LLVMBuildAdd(e->b, sum, emit_scaled(e, e->open[i].loop.counter, e->open[i].digit.stride), "");
    return sum;
}

/* Where the term of the open digits stands: its lane, and in front of it the step of time where pieces say
 * it. */
static LLVMValueRef slot_of_term(const fold *x)
{
    emitter *e = x->f->e;
    const plan_statement *p = x->f->p;
    LLVMValueRef lane = emit_i64(e, 0), step = emit_i64(e, 0);
    for (unsigned i = 0; i < e->open_count && !p->of->piece_count; i++)
        if (!e->open[i].digit.kept && e->open[i].digit.lane)
            lane = LLVMBuildAdd(e->b, lane, emit_scaled(e, e->open[i].loop.counter, e->open[i].digit.lane), "");
    for (uint32_t i = 0; i < p->of->piece_count; i++) {
        const einsum_piece *piece = &p->of->pieces[i];
        LLVMValueRef at = LLVMBuildUDiv(e->b, position_in(e, piece->group), emit_i64(e, piece->weight), "");
        at = LLVMBuildURem(e->b, at, emit_i64(e, piece->size), "");
        if (piece->lane)
            lane = LLVMBuildAdd(e->b, lane, emit_scaled(e, at, piece->lane), "");
        else
            step = LLVMBuildAdd(e->b, emit_scaled(e, step, piece->size), at, "");
    }
    return LLVMBuildAdd(e->b, emit_scaled(e, step, p->slots), lane, "");
}

static void put_terms(fold *x, const plan_digits *digits)
{
    emitter *e = x->f->e;
    emit_digits_open(e, digits);
    LLVMBasicBlockRef after = emit_if(e, emit_guard(e));
    expression_value term = emit_element_value(x->f, x->lanes);
    LLVMValueRef slot = slot_of_term(x);
    store_slot(x, term.value, slot);
    emit_store(e, LLVMConstInt(e->i8, 1, false), x->live, slot);
    emit_if_end(e, after);
    emit_digits_close(e, digits);
}

/* Pairs of neighbours, level by level; a lane that holds no term is left out. The fold takes what comes out,
 * if anything does. */
static void fold_tree(fold *x, LLVMValueRef first)
{
    emitter *e = x->f->e;
    for (int64_t n = x->f->p->slots / 2; n > 0; n /= 2) {
        emitter_loop pair;
        emit_loop_open(e, &pair, emit_i64(e, 0), emit_i64(e, n), 1);
        LLVMValueRef left = LLVMBuildAdd(e->b, first, emit_scaled(e, pair.counter, 2), ""), right = emit_plus(e, left, 1);
        LLVMValueRef has_left = is_live(x, left), has_right = is_live(x, right), a = load_slot(x, left), b = load_slot(x, right);
        LLVMValueRef one = LLVMBuildSelect(e->b, has_left, a, b, "");
        LLVMValueRef both =
            LLVMBuildSelect(e->b, LLVMBuildAnd(e->b, has_left, has_right, ""), emit_scalar(e, x->row->op, (LLVMValueRef[]){a, b}), one, "");
        LLVMValueRef to = LLVMBuildAdd(e->b, first, pair.counter, "");
        store_slot(x, both, to);
        emit_store(e, LLVMBuildZExt(e->b, LLVMBuildOr(e->b, has_left, has_right, ""), e->i8, ""), x->live, to);
        emit_loop_close(e, &pair);
    }
    LLVMValueRef next = emit_scalar(e, x->row->op, (LLVMValueRef[]){x->v[FOLD_VALUE], load_slot(x, first)});
    x->v[FOLD_VALUE] = LLVMBuildSelect(e->b, is_live(x, first), next, x->v[FOLD_VALUE], "");
}

/* Steps of time, and inside each the lanes. */
static void fold_steps(fold *x, const plan_digits *digits, unsigned from)
{
    fold_loop l;
    if (from < digits->count && !digits->items[from].lane) {
        open_digit(x, &l, &digits->items[from], 0, digits->items[from].size, 1);
        fold_steps(x, digits, from + 1);
        close_digit(x, &l);
        return;
    }
    plan_digits lanes = {.count = digits->count - from, .combinations = 1};
    for (unsigned i = 0; i < lanes.count; i++)
        lanes.items[i] = digits->items[from + i];
    clear_live(x, x->f->p->slots);
    put_terms(x, &lanes);
    fold_tree(x, emit_i64(x->f->e, 0));
}

static void fold_as_the_machine(fold *x)
{
    emitter *e = x->f->e;
    const plan_statement *p = x->f->p;
    int64_t steps = elements_plan_steps(p);
    x->live = emit_item(e, e->i8, x->slots, emit_i64(e, steps * p->slots * 4 * p->vector_lanes));
    if (!p->of->piece_count) {
        fold_steps(x, &p->digits[PLAN_DEPTH], 0);
        return;
    }
    fold_loop step;
    clear_live(x, steps * p->slots);
    put_terms(x, &p->digits[PLAN_DEPTH]);
    open_range(x, &step, 0, steps, 1);
    fold_tree(x, emit_scaled(e, step.loop.counter, p->slots));
    close_range(x, &step);
}

/* ---- bounds ---- */

static LLVMValueRef unknown_if(emitter *e, LLVMValueRef condition, LLVMValueRef like)
{
    return LLVMBuildSelect(e->b, condition, emit_f64_like(e, like, INFINITY), emit_f64_like(e, like, 0), "");
}

/* Of a sum, what its order may change; of the largest or smallest, the largest error. Products may overflow
 * or vanish in one order and not in another, and a sum that is clamped on its way does not end as another
 * one: no rule bounds how far they are apart. */
static LLVMValueRef bound_of_fold(const fold *x)
{
    emitter *e = x->f->e;
    LLVMValueRef error = x->v[FOLD_ERROR], value = x->v[FOLD_VALUE], zero = emit_f64_like(e, error, 0);
    bool one = x->f->p->digits[PLAN_DEPTH].combinations == 1;
    LLVMValueRef has_error = LLVMBuildFCmp(e->b, LLVMRealUGT, error, zero, "");
    if (adds(x)) {
        sum_parts sums = {value, x->v[FOLD_MAGNITUDE], error, x->v[FOLD_PRECISE]};
        LLVMValueRef bound = emit_sum_bound(e, x->f->p, true, &sums);
        /* without errors of the terms, an infinity or NaN is the same in every order */
        LLVMValueRef exact = emit_sum_bound(e, x->f->p, false, &sums);
        return LLVMBuildSelect(e->b, has_error, bound, exact, "");
    }
    if (x->row->bound == BOUND_MOST || one)
        return x->row->result == SCALAR_I32 ? unknown_if(e, has_error, error) : error;
    if (x->row->flags & SCALAR_ASSOCIATES)
        return unknown_if(e, has_error, error);
    if (x->row->result == SCALAR_F32)
        return emit_f64_like(e, error, INFINITY);
    LLVMValueRef clamps = LLVMBuildFCmp(e->b, LLVMRealOGT, x->v[FOLD_MAGNITUDE], emit_f64_like(e, error, INT32_MAX), "");
    return unknown_if(e, LLVMBuildOr(e->b, clamps, has_error, ""), error);
}

/* ---- outputs ---- */

static void emit_output(const element_form *f, LLVMValueRef slots, int64_t lanes)
{
    emitter *e = f->e;
    LLVMBasicBlockRef after = emit_if(e, emit_guard(e));
    fold x = fold_begin(f, slots, lanes);
    if (f->p->slots)
        fold_as_the_machine(&x);
    else if (f->p->vector_lanes > 1 && !f->p->vector.kept)
        fold_in_vectors(&x);
    else
        fold_digits(&x, &f->p->digits[PLAN_DEPTH], 0);
    expression_value v = {.value = x.v[FOLD_VALUE], .error = x.count > 1 ? bound_of_fold(&x) : NULL};
    emit_element_store(f, &v, lanes);
    emit_if_end(e, after);
}

void emit_reduce(const element_form *f, LLVMValueRef slots)
{
    const plan_statement *p = f->p;
    int64_t lanes = p->vector.kept ? p->vector_lanes : 1, whole = p->vector.size / lanes * lanes;
    emit_digits_open(f->e, &p->digits[PLAN_BATCH]);
    if (lanes == 1) {
        emit_output(f, slots, 1);
    } else {
        emit_vector_open(f, 0, whole, lanes);
        emit_output(f, slots, lanes);
        emit_vector_close(f);
        if (whole < p->vector.size) {
            emit_vector_open(f, whole, p->vector.size, 1);
            emit_output(f, slots, 1);
            emit_vector_close(f);
        }
    }
    emit_digits_close(f->e, &p->digits[PLAN_BATCH]);
}
