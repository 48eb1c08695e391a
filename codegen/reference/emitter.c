#include "codegen/reference/emitter.h"
#include "codegen/reference/walk.h"

#include <string.h>

void emitter_init(emitter *e, const reference_plan *plan, LLVMContextRef llvm, LLVMModuleRef module)
{
    *e = (emitter){.plan = plan, .context = llvm, .module = module, .fused = plan->machine.fused};
    e->b = LLVMCreateBuilderInContext(llvm);
    e->void_type = LLVMVoidTypeInContext(llvm);
    e->i1 = LLVMInt1TypeInContext(llvm);
    e->i8 = LLVMInt8TypeInContext(llvm);
    e->i16 = LLVMInt16TypeInContext(llvm);
    e->i32 = LLVMInt32TypeInContext(llvm);
    e->i64 = LLVMInt64TypeInContext(llvm);
    e->f32 = LLVMFloatTypeInContext(llvm);
    e->f64 = LLVMDoubleTypeInContext(llvm);
    e->ptr = LLVMPointerTypeInContext(llvm, 0);
}

void emitter_free(emitter *e)
{
    LLVMDisposeBuilder(e->b);
}

LLVMValueRef emit_i32(emitter *e, int64_t value)
{
    return LLVMConstInt(e->i32, (unsigned long long)value, true);
}

LLVMValueRef emit_i64(emitter *e, int64_t value)
{
    return LLVMConstInt(e->i64, (unsigned long long)value, true);
}

LLVMValueRef emit_f32(emitter *e, double value)
{
    return LLVMConstReal(e->f32, value);
}

LLVMValueRef emit_f64(emitter *e, double value)
{
    return LLVMConstReal(e->f64, value);
}

/* ---- vectors ---- */

LLVMTypeRef emit_vector_type(LLVMTypeRef scalar, int64_t lanes)
{
    return LLVMVectorType(scalar, (unsigned)lanes);
}

LLVMTypeRef emit_type_like(emitter *e, LLVMValueRef x, LLVMTypeRef scalar)
{
    (void)e;
    LLVMTypeRef type = LLVMTypeOf(x);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMVectorType(scalar, LLVMGetVectorSize(type)) : scalar;
}

static LLVMValueRef constant_like(LLVMValueRef x, LLVMValueRef constant)
{
    enum { MOST_LANES = 128 };
    LLVMTypeRef type = LLVMTypeOf(x);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return constant;
    LLVMValueRef lanes[MOST_LANES];
    unsigned count = LLVMGetVectorSize(type);
    for (unsigned i = 0; i < count; i++)
        lanes[i] = constant;
    return LLVMConstVector(lanes, count);
}

LLVMValueRef emit_i32_like(emitter *e, LLVMValueRef x, int64_t value)
{
    return constant_like(x, emit_i32(e, value));
}

LLVMValueRef emit_f32_like(emitter *e, LLVMValueRef x, double value)
{
    return constant_like(x, emit_f32(e, value));
}

LLVMValueRef emit_f64_like(emitter *e, LLVMValueRef x, double value)
{
    return constant_like(x, emit_f64(e, value));
}

LLVMValueRef emit_splat(emitter *e, LLVMValueRef scalar, int64_t lanes)
{
    LLVMValueRef poison = LLVMGetPoison(emit_vector_type(LLVMTypeOf(scalar), lanes));
    LLVMValueRef one = LLVMBuildInsertElement(e->b, poison, scalar, emit_i32(e, 0), "");
    return LLVMBuildShuffleVector(e->b, one, poison, LLVMConstNull(emit_vector_type(e->i32, lanes)), "");
}

LLVMValueRef emit_shuffle(emitter *e, LLVMValueRef a, LLVMValueRef b, const int *lanes, unsigned count)
{
    enum { MOST_LANES = 128 };
    LLVMValueRef mask[MOST_LANES];
    for (unsigned i = 0; i < count; i++)
        mask[i] = emit_i32(e, lanes[i]);
    return LLVMBuildShuffleVector(e->b, a, b, LLVMConstVector(mask, count), "");
}

enum { MOST_CODES = 128 };

LLVMValueRef emit_side_by_side(emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    int places[MOST_CODES], count = 2 * (int)LLVMGetVectorSize(LLVMTypeOf(a));
    for (int i = 0; i < count; i++)
        places[i] = i;
    return emit_shuffle(e, a, b, places, (unsigned)count);
}

LLVMValueRef emit_interleaved(emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    int places[MOST_CODES], count = (int)LLVMGetVectorSize(LLVMTypeOf(a));
    for (int i = 0; i < count; i++) {
        places[2 * i] = i;
        places[2 * i + 1] = count + i;
    }
    return emit_shuffle(e, a, b, places, 2 * (unsigned)count);
}

LLVMValueRef emit_plain_intrinsic(emitter *e, const char *name, LLVMValueRef *args, unsigned count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0);
    return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->context, id, NULL, 0), callee, args, count, "");
}

LLVMValueRef emit_intrinsic(emitter *e, const char *name, LLVMValueRef *args, unsigned count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(e->module, id, &type, 1);
    return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->context, id, &type, 1), callee, args, count, "");
}

/* ---- functions and control flow ---- */

static void add_function_attribute(emitter *e, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAttributeRef attribute = LLVMCreateEnumAttribute(e->context, kind, 0);
    LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

void emit_function(emitter *e, const char *name, unsigned pointers, unsigned integers, LLVMTypeRef *type)
{
    enum { MOST_PARAMS = 64 };
    LLVMTypeRef params[MOST_PARAMS];
    for (unsigned i = 0; i < pointers + integers; i++)
        params[i] = i < pointers ? e->ptr : e->i64;
    *type = LLVMFunctionType(e->void_type, params, pointers + integers, false);
    e->function = LLVMAddFunction(e->module, name, *type);
    LLVMSetLinkage(e->function, LLVMInternalLinkage);
    add_function_attribute(e, "noinline");
    add_function_attribute(e, "nounwind");
    unsigned noalias = LLVMGetEnumAttributeKindForName("noalias", 7);
    for (unsigned i = 1; i <= pointers; i++)
        LLVMAddAttributeAtIndex(e->function, i, LLVMCreateEnumAttribute(e->context, noalias, 0));
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
}

void emit_function_end(emitter *e)
{
    LLVMBuildRetVoid(e->b);
}

LLVMValueRef emit_stack(emitter *e, int64_t bytes, unsigned alignment)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b), entry = LLVMGetEntryBasicBlock(e->function);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    if (first)
        LLVMPositionBuilderBefore(e->b, first);
    LLVMValueRef storage = LLVMBuildAlloca(e->b, LLVMArrayType2(e->i8, (uint64_t)bytes), "");
    LLVMSetAlignment(storage, alignment);
    LLVMPositionBuilderAtEnd(e->b, here);
    return storage;
}

void emit_loop_open(emitter *e, emitter_loop *l, LLVMValueRef first, LLVMValueRef end, int64_t step)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    *l = (emitter_loop){.counter = first, .end = end, .step = step};
    if (step > 0 && LLVMIsAConstantInt(first) && LLVMIsAConstantInt(end) &&
        LLVMConstIntGetSExtValue(end) - LLVMConstIntGetSExtValue(first) <= step)
        return;
    l->body = LLVMAppendBasicBlockInContext(e->context, e->function, "loop");
    l->before = before;
    LLVMBuildBr(e->b, l->body);
    LLVMPositionBuilderAtEnd(e->b, l->body);
    l->counter = LLVMBuildPhi(e->b, e->i64, "i");
    LLVMAddIncoming(l->counter, &first, &before, 1);
}

void emit_loop_close(emitter *e, emitter_loop *l)
{
    emit_loop_close_at(e, l, l->body ? LLVMBuildNSWAdd(e->b, l->counter, emit_i64(e, l->step), "") : NULL);
}

void emit_loop_close_at(emitter *e, emitter_loop *l, LLVMValueRef next)
{
    if (!l->body)
        return;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    LLVMAddIncoming(l->counter, &next, &latch, 1);
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "done");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, l->end, ""), l->body, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}

LLVMBasicBlockRef emit_if(emitter *e, LLVMValueRef condition)
{
    bool known = condition && LLVMIsAConstantInt(condition);
    if (!condition || (known && LLVMConstIntGetZExtValue(condition)))
        return NULL;
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(e->context, e->function, "then");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    if (known) /* what is skipped always has no way to it, and LLVM leaves it out */
        LLVMBuildBr(e->b, after);
    else
        LLVMBuildCondBr(e->b, condition, then, after);
    LLVMPositionBuilderAtEnd(e->b, then);
    return after;
}

void emit_if_end(emitter *e, LLVMBasicBlockRef after)
{
    if (!after)
        return;
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}

void emit_block(emitter *e)
{
    LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(e->context, e->function, "next");
    LLVMBuildBr(e->b, next);
    LLVMPositionBuilderAtEnd(e->b, next);
}

LLVMValueRef emit_least(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, y, ""), x, y, "");
}

LLVMValueRef emit_most(emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, y, ""), y, x, "");
}

LLVMValueRef emit_scaled(emitter *e, LLVMValueRef x, int64_t factor)
{
    return factor == 1 ? x : LLVMBuildMul(e->b, x, emit_i64(e, factor), "");
}

LLVMValueRef emit_plus(emitter *e, LLVMValueRef x, int64_t number)
{
    return number == 0 ? x : LLVMBuildAdd(e->b, x, emit_i64(e, number), "");
}

LLVMBasicBlockRef emit_if_some(emitter *e, LLVMValueRef first, LLVMValueRef end)
{
    return emit_if(e, LLVMBuildICmp(e->b, LLVMIntSLT, first, end, ""));
}

/* ---- digits ---- */

void emit_digits_open(emitter *e, const plan_digits *digits)
{
    for (unsigned i = 0; i < digits->count; i++) {
        emitter_digit *d = &e->open[e->open_count++];
        d->digit = digits->items[i];
        emit_loop_open(e, &d->loop, emit_i64(e, 0), emit_i64(e, d->digit.size), 1);
    }
}

void emit_digits_close(emitter *e, const plan_digits *digits)
{
    for (unsigned i = 0; i < digits->count; i++)
        emit_loop_close(e, &e->open[--e->open_count].loop);
}

void emit_digits_open_part(emitter *e, const plan_digits *digits, LLVMValueRef first, LLVMValueRef end, emitter_loop *l)
{
    if (digits->count == 0)
        return;
    emit_loop_open(e, l, first, end, 1);
    int64_t behind = digits->combinations;
    for (unsigned i = 0; i < digits->count; i++) {
        const einsum_digit *d = &digits->items[i];
        behind /= d->size;
        LLVMValueRef place = behind == 1 ? l->counter : LLVMBuildUDiv(e->b, l->counter, emit_i64(e, behind), "");
        if (i > 0)
            place = LLVMBuildURem(e->b, place, emit_i64(e, d->size), "");
        e->open[e->open_count++] = (emitter_digit){.digit = *d, .loop = {.counter = place}};
    }
}

void emit_digits_close_part(emitter *e, const plan_digits *digits, emitter_loop *l)
{
    if (digits->count == 0)
        return;
    e->open_count -= digits->count;
    emit_loop_close(e, l);
}

/* sum + counter * factor, without the terms that vanish */
static LLVMValueRef add_scaled(emitter *e, LLVMValueRef sum, LLVMValueRef counter, int64_t factor)
{
    if (factor == 0)
        return sum;
    LLVMValueRef term = factor == 1 ? counter : LLVMBuildMul(e->b, counter, emit_i64(e, factor), "");
    return sum ? LLVMBuildAdd(e->b, sum, term, "") : term;
}

LLVMValueRef emit_digits_index(emitter *e, unsigned first)
{
    int64_t factor = 1;
    for (unsigned i = first; i < e->open_count; i++)
        factor *= e->open[i].digit.size;
    LLVMValueRef sum = NULL;
    for (unsigned i = first; i < e->open_count; i++) {
        factor /= e->open[i].digit.size;
        sum = add_scaled(e, sum, e->open[i].loop.counter, factor);
    }
    return sum ? sum : emit_i64(e, 0);
}

LLVMValueRef emit_tensor_offset(emitter *e, uint32_t tensor, einsum_side side)
{
    LLVMValueRef sum = NULL;
    for (unsigned i = 0; i < e->open_count; i++) {
        const einsum_digit *d = &e->open[i].digit;
        /* Outside an axis the product may wrap; the guard keeps such an offset from being used. */
        uint64_t factor = walk_stride(e->plan->e, tensor, side, d);
        sum = add_scaled(e, sum, e->open[i].loop.counter, (int64_t)factor);
    }
    LLVMValueRef base = e->base[side];
    if (!sum || !base)
        return sum ? sum : base ? base : emit_i64(e, 0);
    return LLVMBuildAdd(e->b, sum, base, "");
}

LLVMValueRef emit_group_offset(emitter *e, uint32_t tensor, einsum_side side, const plan_digits *digits, LLVMValueRef index)
{
    (void)side;
    LLVMValueRef sum = NULL;
    int64_t below = digits->combinations;
    for (unsigned i = 0; i < digits->count; i++) {
        const einsum_digit *d = &digits->items[i];
        int64_t above = below;
        below /= d->size;
        LLVMValueRef counter = i == 0 ? index : LLVMBuildURem(e->b, index, emit_i64(e, above), "");
        counter = below == 1 ? counter : LLVMBuildUDiv(e->b, counter, emit_i64(e, below), "");
        sum = add_scaled(e, sum, counter, (int64_t)walk_stride(e->plan->e, tensor, side, d));
    }
    return sum ? sum : emit_i64(e, 0);
}

static bool has_border(const emitter *e, uint32_t tensor, einsum_side side)
{
    const einsum_tensor *t = &e->plan->e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++)
        if (walk_has_border(e->plan->e, e->statement->of, side, t->axes[i]))
            return true;
    return false;
}

LLVMBasicBlockRef emit_outside(emitter *e, uint32_t tensor, einsum_side side)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b), at = here;
    for (unsigned i = has_border(e, tensor, side) ? 0 : e->open_count; i-- > 0;) {
        const emitter_digit *d = &e->open[i];
        bool walks = walk_stride(e->plan->e, tensor, side, &d->digit) != 0;
        if (d->loop.body ? walks || d->loop.body != at : walks && !LLVMIsConstant(d->loop.counter))
            break;
        at = d->loop.body ? d->loop.before : at;
    }
    if (at != here)
        LLVMPositionBuilderBefore(e->b, LLVMGetBasicBlockTerminator(at));
    return here;
}

void emit_inside(emitter *e, LLVMBasicBlockRef here)
{
    LLVMPositionBuilderAtEnd(e->b, here);
}

/* NULL when the axis was met before, or when its open digits stay inside. */
static LLVMValueRef axis_guard(emitter *e, unsigned first)
{
    uint32_t axis = e->open[first].digit.axis;
    int64_t size = e->plan->e->axes[axis].size - einsum_largest_shift(e->statement->of, axis), last = 0;
    for (unsigned i = 0; i < e->open_count; i++)
        if (e->open[i].digit.axis == axis) {
            if (i < first)
                return NULL;
            last += (e->open[i].digit.size - 1) * e->open[i].digit.weight;
        }
    if (last < size)
        return NULL;
    LLVMValueRef coordinate = NULL;
    for (unsigned i = first; i < e->open_count; i++)
        if (e->open[i].digit.axis == axis)
            coordinate = add_scaled(e, coordinate, e->open[i].loop.counter, e->open[i].digit.weight);
    return LLVMBuildICmp(e->b, LLVMIntSLT, coordinate, emit_i64(e, size), "inside");
}

LLVMValueRef emit_guard(emitter *e)
{
    LLVMValueRef all = NULL;
    for (unsigned i = 0; i < e->open_count; i++) {
        LLVMValueRef one = axis_guard(e, i);
        if (one)
            all = all ? LLVMBuildAnd(e->b, all, one, "") : one;
    }
    return all;
}

/* place - first of a window, which the axis holds when it is at least 0 and below the axis's size */
static LLVMValueRef border_guard(emitter *e, einsum_side side, uint32_t axis)
{
    const einsum *of = e->plan->e;
    LLVMValueRef place = NULL;
    for (unsigned i = 0; i < e->open_count; i++)
        if (einsum_digit_indexes(&e->open[i].digit, side))
            place = add_scaled(e, place, e->open[i].loop.counter, (int64_t)walk_axis_weight(of, axis, &e->open[i].digit));
    for (uint32_t i = 0; i < of->window_count; i++)
        if (of->windows[i].axis == axis)
            place = LLVMBuildSub(e->b, place ? place : emit_i64(e, 0), emit_i64(e, of->windows[i].first), "");
    return LLVMBuildICmp(e->b, LLVMIntULT, place, emit_i64(e, of->axes[axis].size), "held");
}

LLVMValueRef emit_border(emitter *e, uint32_t tensor, einsum_side side)
{
    LLVMValueRef all = NULL;
    const einsum_tensor *t = &e->plan->e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++)
        if (walk_has_border(e->plan->e, e->statement->of, side, t->axes[i])) {
            LLVMValueRef one = border_guard(e, side, t->axes[i]);
            all = all ? LLVMBuildAnd(e->b, all, one, "") : one;
        }
    return all;
}

LLVMValueRef emit_source_guard(emitter *e, uint32_t tensor, einsum_side side)
{
    LLVMValueRef guard = emit_guard(e), border = emit_border(e, tensor, side);
    return guard && border ? LLVMBuildAnd(e->b, guard, border, "") : guard ? guard : border;
}

/* ---- memory ---- */

static LLVMValueRef first_lanes(emitter *e, int64_t lanes, int64_t live)
{
    enum { MOST_LANES = 128 };
    LLVMValueRef mask[MOST_LANES];
    for (int64_t i = 0; i < lanes; i++)
        mask[i] = LLVMConstInt(e->i1, i < live, false);
    return LLVMConstVector(mask, (unsigned)lanes);
}

/* The first bytes of a short vector, the others zero, by way of an integer as long: stored piece by piece and read again at once, they
 * would wait until they are in the cache. */
static LLVMValueRef load_short(emitter *e, LLVMTypeRef type, LLVMValueRef from, int64_t bytes, int64_t all)
{
    enum { MOST_PIECE = 8 };
    LLVMTypeRef whole = LLVMIntTypeInContext(e->context, (unsigned)(all * 8));
    LLVMValueRef value = LLVMConstNull(whole);
    for (int64_t done = 0, piece = MOST_PIECE; done < bytes; piece /= 2)
        for (; done + piece <= bytes; done += piece) {
            LLVMTypeRef part = LLVMIntTypeInContext(e->context, (unsigned)(piece * 8));
            LLVMValueRef load = LLVMBuildLoad2(e->b, part, emit_item(e, e->i8, from, emit_i64(e, done)), "");
            LLVMSetAlignment(load, 1);
            LLVMValueRef by = LLVMConstInt(whole, (unsigned long long)done * 8, false);
            value = LLVMBuildOr(e->b, value, LLVMBuildShl(e->b, LLVMBuildZExt(e->b, load, whole, ""), by, ""), "");
        }
    return LLVMBuildBitCast(e->b, value, type, "");
}

LLVMValueRef emit_part_load(emitter *e, LLVMTypeRef type, LLVMValueRef from, unsigned alignment, int64_t live)
{
    if (live == LLVMGetVectorSize(type)) {
        LLVMValueRef load = LLVMBuildLoad2(e->b, type, from, "");
        LLVMSetAlignment(load, alignment);
        return load;
    }
    if (!e->plan->machine.masks) { /* a vector put together from shorter loads sends LLVM 19's combiner round in circles */
        enum { ALIGNMENT = 64, SHORT = 16 };
        int64_t bytes = live * LLVMGetIntTypeWidth(LLVMGetElementType(type)) / 8, all = bytes / live * LLVMGetVectorSize(type);
        if (all <= SHORT)
            return load_short(e, type, from, bytes, all);
        LLVMValueRef buffer = emit_stack(e, all, ALIGNMENT);
        LLVMBuildStore(e->b, LLVMConstNull(type), buffer);
        LLVMBuildMemCpy(e->b, buffer, ALIGNMENT, from, alignment, emit_i64(e, bytes));
        return LLVMBuildLoad2(e->b, type, buffer, "");
    }
    static const char name[] = "llvm.masked.load";
    LLVMTypeRef over[] = {type, e->ptr};
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMValueRef args[] = {from, LLVMConstInt(e->i32, alignment, false), first_lanes(e, LLVMGetVectorSize(type), live),
                           LLVMConstNull(type)};
    return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->context, id, over, 2), LLVMGetIntrinsicDeclaration(e->module, id, over, 2), args, 4,
                          "");
}

LLVMValueRef emit_last_load(emitter *e, LLVMTypeRef type, LLVMValueRef from, unsigned alignment, int64_t live)
{
    enum { MOST_LANES = 128 };
    int lanes = (int)LLVMGetVectorSize(type), places[MOST_LANES];
    if (live == lanes || e->plan->machine.masks)
        return emit_part_load(e, type, from, alignment, live);
    for (int i = 0; i < lanes; i++) /* after the last one zeros, which are all the same */
        places[i] = i < live ? lanes - (int)live + i : lanes + i;
    LLVMValueRef load = LLVMBuildLoad2(e->b, type, emit_item(e, LLVMGetElementType(type), from, emit_i64(e, live - lanes)), "");
    LLVMSetAlignment(load, alignment);
    return emit_shuffle(e, load, LLVMConstNull(type), places, (unsigned)lanes);
}

/* Halves, quarters and so on of a vector, as many as there are. */
static void store_pieces(emitter *e, LLVMValueRef value, LLVMValueRef to, unsigned alignment, int64_t live)
{
    enum { MOST_LANES = 128 };
    LLVMTypeRef item = LLVMGetElementType(LLVMTypeOf(value));
    int places[MOST_LANES];
    for (int64_t done = 0, piece = LLVMGetVectorSize(LLVMTypeOf(value)); done < live; piece /= 2) {
        if (done + piece > live)
            continue;
        for (int i = 0; i < piece; i++)
            places[i] = (int)done + i;
        LLVMValueRef part = piece > 1 ? emit_shuffle(e, value, value, places, (unsigned)piece)
                                      : LLVMBuildExtractElement(e->b, value, emit_i32(e, done), "");
        LLVMSetAlignment(LLVMBuildStore(e->b, part, emit_item(e, item, to, emit_i64(e, done))), alignment);
        done += piece;
    }
}

void emit_part_store(emitter *e, LLVMValueRef value, LLVMValueRef to, unsigned alignment, int64_t live)
{
    if (live == LLVMGetVectorSize(LLVMTypeOf(value))) {
        LLVMSetAlignment(LLVMBuildStore(e->b, value, to), alignment);
        return;
    }
    if (!e->plan->machine.masks) {
        store_pieces(e, value, to, alignment, live);
        return;
    }
    static const char name[] = "llvm.masked.store";
    LLVMTypeRef over[] = {LLVMTypeOf(value), e->ptr};
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMValueRef args[] = {value, to, LLVMConstInt(e->i32, alignment, false), first_lanes(e, LLVMGetVectorSize(LLVMTypeOf(value)), live)};
    LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->context, id, over, 2), LLVMGetIntrinsicDeclaration(e->module, id, over, 2), args, 4, "");
}

LLVMValueRef emit_opaque(emitter *e, LLVMValueRef pointer)
{
    return LLVMBuildFreeze(e->b, pointer, "");
}

LLVMValueRef emit_item(emitter *e, LLVMTypeRef type, LLVMValueRef array, LLVMValueRef index)
{
    return LLVMBuildGEP2(e->b, type, array, &index, 1, "");
}

LLVMValueRef emit_load(emitter *e, LLVMTypeRef type, LLVMValueRef array, LLVMValueRef index)
{
    return LLVMBuildLoad2(e->b, type, emit_item(e, type, array, index), "");
}

void emit_store(emitter *e, LLVMValueRef value, LLVMValueRef array, LLVMValueRef index)
{
    LLVMBuildStore(e->b, value, emit_item(e, LLVMTypeOf(value), array, index));
}
