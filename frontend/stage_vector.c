/* The Vector Engine's stages: a pass is built of them in the order of its units, which their receivers say. */
#include <string.h>

#include "frontend/constant.h"
#include "frontend/stage_vector.h"

static value width(const stage_call *call, vector_width_kind kind)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    o->vector_width = ARENA_NEW(scope_context_of(call->scope)->arena, vector_width_config);
    *o->vector_width = (vector_width_config){.kind = kind};
    return stage_finish(call, o, stage_take_types(call, o));
}

#define VECTOR_WIDTH_STAGE(name, kind) \
    value stage_make_##name(const stage_call *call) \
    { \
        return width(call, VECTOR_##kind); \
    }
#include "target/engines.def"

/* ---- operations ---- */

value vector_stage_refuse(const stage_call *call)
{
    call->kernel->bad = true;
    return stage_error;
}

/* The written expression of an argument. */
static src_range argument_range(const stage_call *call, const value *argument)
{
    return ast_kid(call->node, 2)->kids[argument - call->args]->range;
}

/* A constant of the element type, as its word. Diagnoses. */
static bool constant(const stage_call *call, src_range at, const value *v, dtype type, uint32_t *out)
{
    diag_list *diags = stage_diags(call);
    if (v->kind == VALUE_FLOAT && type == DTYPE_F32) {
        float x = (float)v->real;
        memcpy(out, &x, sizeof x);
        return true;
    }
    if (v->kind == VALUE_INT && type == DTYPE_I32 && v->number >= INT32_MIN && v->number <= INT32_MAX) {
        *out = (uint32_t)v->number;
        return true;
    }
    diag *d;
    if (v->kind == VALUE_INT && type == DTYPE_I32)
        d = diag_add(diags, E_CONST, at, "%lld does not fit i32, which holds -2147483648 to 2147483647", (long long)v->number);
    else
        d = diag_add(diags, E_VECTOR_OPERAND, at, "an operand of %s elements is %s, got %s", dtype_row_of(type)->name,
                     type == DTYPE_F32 ? "a float" : "an integer", value_kind_name(v));
    if (v->kind == VALUE_INT && type == DTYPE_F32)
        diag_help(diags, d, "write %lld.0", (long long)v->number);
    else
        diag_help(diags, d, type == DTYPE_F32 ? "write a float, as in `2.5f32`" : "write an integer, as in `100`");
    return false;
}

static bool is_stash(const value *v)
{
    return v->kind == VALUE_VARIANT && strcmp(v->variant, "VeRhs") == 0;
}

/* What was set aside in this pass, into *stash. Diagnoses. */
static bool take_stash(const stage_call *call, src_range at, const vector_op_row *row, op **stash)
{
    for (op *o = call->receiver.op; o && o->kind != IR_VECTOR_INIT && !*stash; o = op_input(o))
        *stash = o->kind == IR_VECTOR_STASH ? o : NULL;
    diag *d = NULL;
    if (!*stash) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "nothing is set aside in front of this operation");
        diag_help(stage_diags(call), d, "call vector_stash() earlier in the pass");
    } else if ((*stash)->out.dtype != row->from) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "stash type mismatch: stashed as %s, requested as %s",
                     dtype_row_of((*stash)->out.dtype)->name, dtype_row_of(row->from)->name);
        diag_note(stage_diags(call), d, (*stash)->range, "set aside here");
        diag_help(stage_diags(call), d, "set it aside where the stream has %s elements", dtype_row_of(row->from)->name);
    }
    return !d;
}

/* What is given beside the stream: the stash or one constant, or of an operation on three operands a pair. */
static bool take_operands(const stage_call *call, const value *given, const vector_op_row *row, uint32_t *constants, op **stash)
{
    src_range at = argument_range(call, given);
    if (given->kind == VALUE_ERROR)
        return false;
    if (given->loop) {
        diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "a vector-engine immediate must be a compile-time constant");
        diag_note(stage_diags(call), d, given->loop->name_range, "what this loop counts is known when it runs");
        diag_help(stage_diags(call), d, "write #[unroll] in front of the loop");
        return false;
    }
    const value *first = row->operands == 3 && given->kind == VALUE_LIST && given->count == 2 ? &given->items[0] : given;
    if (is_stash(first) && !take_stash(call, at, row, stash))
        return false;
    if (*stash)
        return first == given || constant(call, at, &given->items[1], row->from, &constants[1]);
    if (row->operands < 3)
        return constant(call, at, given, row->from, &constants[0]);
    if (given->kind == VALUE_LIST && given->count == 2)
        return constant(call, at, &given->items[0], row->from, &constants[0]) &&
               constant(call, at, &given->items[1], row->from, &constants[1]);
    diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "an operation on three operands takes a pair besides the stream, got %s",
                       value_kind_name(given));
    diag_help(stage_diags(call), d, "give both: (operand0, operand1), as in `(2.0f32, 1.0f32)`");
    return false;
}

/* The mode's type has as many operands as the operation. */
static bool take_mode(const stage_call *call, const value *mode, const vector_op_row *row, unsigned *out)
{
    static const char *const types[] = {"UnaryArgMode", "BinaryArgMode", "TernaryArgMode"};
    const char *wanted = types[row->operands - 1];
    *out = (unsigned)mode->number;
    if (strcmp(mode->variant, wanted) == 0)
        return true;
    diag *d =
        diag_add(stage_diags(call), E_VECTOR_OPERAND, argument_range(call, mode), "%s::%s has %u operand%s, and its mode is a %s, got a %s",
                 row->type, row->variant, row->operands, row->operands == 1 ? "" : "s", wanted, mode->variant);
    diag_help(stage_diags(call), d, "write a %s", wanted);
    return false;
}

/* The stream's elements are those that the operation takes. */
static bool check_type(const stage_call *call, src_range at, const vector_op_row *row)
{
    const op *in = call->receiver.op;
    if (in->bad || in->out.dtype == row->from)
        return true;
    const char *from = dtype_row_of(row->from)->name, *has = dtype_row_of(in->out.dtype)->name;
    diag *d = diag_add(stage_diags(call), E_VECTOR_TYPE, at, "`%s` takes %s elements, the stream has %s", row->variant, from, has);
    if (row->from == DTYPE_F32)
        diag_help(stage_diags(call), d, "convert with vector_fxp_to_fp(31) in front of it");
    else
        diag_help(stage_diags(call), d, "convert with vector_fp_to_fxp(31), or do it before the stream becomes f32");
    return false;
}

/* `stash`: what operand 1 is; NULL: a constant. */
static value operation(const stage_call *call, const vector_op_row *row, src_range at, unsigned mode, const uint32_t *constants, op *stash)
{
    if (!check_type(call, at, row))
        return vector_stage_refuse(call);
    op *o = stage_new_op(call, call->receiver.op->context);
    o->out.dtype = row->to;
    o->vector_op = ARENA_NEW(scope_context_of(call->scope)->arena, vector_op_config);
    *o->vector_op = (vector_op_config){.row = row, .mode = mode};
    for (unsigned i = 0; i < 2; i++)
        o->vector_op->constants[i] = vector_mode_names(row, mode, i + 1) ? constants[i] : 0;
    if (stash && vector_mode_names(row, mode, 1))
        op_add_operand(o, scope_context_of(call->scope)->arena, OPERAND_STASH, stash);
    return stage_finish(call, o, stage_take_types(call, o));
}

/* The enumeration of the operations that a class has on elements of this type; NULL: it has none. */
static const char *operations_of(vector_class class, dtype from)
{
    const vector_op_row *row;
    for (size_t i = 0; (row = vector_op_row_at(i)); i++)
        if (row->class == class && row->from == from)
            return row->type;
    return NULL;
}

/* Is the operation one of those that the stage has? */
static bool check_class(const stage_call *call, src_range at, const vector_op_row *row, vector_class class)
{
    if (row->class == class)
        return true;
    const char *own = operations_of(class, call->receiver.op->out.dtype);
    diag *d = diag_add(stage_diags(call), E_VECTOR_OPERATION, at, "`%s` does not have the operation %s::%s", call->node->text, row->type,
                       row->variant);
    diag_help(stage_diags(call), d, "it has those of `%s`", own ? own : "the other element type");
    return false;
}

const vector_op_row *vector_stage_operation(const stage_call *call, vector_class class)
{
    const value *which = stage_argument_of(call, ARGUMENT_VECTOR_OP);
    const vector_op_row *row = vector_op_row_of((unsigned)which->number);
    src_range at = argument_range(call, which);
    return check_class(call, at, row, class) && check_type(call, at, row) ? row : NULL;
}

/* A stage that is told its operation. `class`: of those that it has. */
static value told(const stage_call *call, vector_class class)
{
    const value *which = stage_argument_of(call, ARGUMENT_VECTOR_OP), *mode = stage_argument_of(call, ARGUMENT_MODE),
                *given = stage_argument_of(call, ARGUMENT_OPERAND);
    const vector_op_row *row = vector_op_row_of(which ? (unsigned)which->number : VECTOR_FP_DIV);
    src_range at = which ? argument_range(call, which) : call->node->name_range;
    unsigned sources = row->operands == 1 ? VECTOR_MODE(0, 0, 0) : row->operands == 2 ? VECTOR_MODE(0, 1, 0) : VECTOR_MODE(0, 1, 2);
    uint32_t constants[2] = {0};
    op *stash = NULL;
    if (!check_class(call, at, row, class))
        return vector_stage_refuse(call);
    if (mode && !take_mode(call, mode, row, &sources))
        return vector_stage_refuse(call);
    if (given && !take_operands(call, given, row, constants, &stash))
        return vector_stage_refuse(call);
    return operation(call, row, at, sources, constants, stash);
}

#define VECTOR_OP_STAGE(name, class) \
    value stage_make_##name(const stage_call *call) \
    { \
        return told(call, VECTOR_CLASS_##class); \
    }
#include "target/engines.def"

static value conversion(const stage_call *call, vector_op which)
{
    const value *int_width = stage_argument_of(call, ARGUMENT_INT_WIDTH);
    src_range at = argument_range(call, int_width);
    if (int_width->number > 31) {
        diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "an integer width is 0 to 31, got %lld", (long long)int_width->number);
        diag_help(stage_diags(call), d, "31: all bits but the sign are in front of the point, the number is an integer");
        return vector_stage_refuse(call);
    }
    return operation(call, vector_op_row_of(which), call->node->name_range, VECTOR_MODE(0, 1, 0),
                     (const uint32_t[]){(uint32_t)int_width->number, 0}, NULL);
}

value stage_make_vector_fxp_to_fp(const stage_call *call)
{
    return conversion(call, VECTOR_FXP_TO_FP);
}

value stage_make_vector_fp_to_fxp(const stage_call *call)
{
    return conversion(call, VECTOR_FP_TO_FXP);
}

/* To the type that the elements have it is nothing. */
value stage_make_vector_reinterpret(const stage_call *call)
{
    const ast *written = stage_type_argument(call, TYPE_DTYPE);
    dtype to = call->receiver.op->out.dtype;
    bool infer = false;
    if (written && !scope_dtype(call->scope, written, &to, &infer) && !infer)
        return vector_stage_refuse(call);
    if ((!written || infer) && call->expected && call->expected->kind == DECLARED_TENSOR && call->expected->has_dtype)
        to = call->expected->tensor.dtype;
    if (to == call->receiver.op->out.dtype)
        return call->receiver;
    if (to != DTYPE_I32 && to != DTYPE_F32) {
        diag *d = diag_add(stage_diags(call), E_VECTOR_TYPE, written ? written->range : call->node->name_range,
                           "the 32 bits of an element are read as i32 or f32, got %s", dtype_row_of(to)->name);
        diag_help(stage_diags(call), d, "cast::<%s, Packet>() after vector_final narrows", dtype_row_of(to)->name);
        return vector_stage_refuse(call);
    }
    return operation(call, vector_op_row_of(to == DTYPE_F32 ? VECTOR_F32_OF_BITS : VECTOR_BITS_OF_F32), call->node->name_range, 0,
                     (const uint32_t[2]){0}, NULL);
}
