/* The Vector Engine's reductions: what is reduced is an axis, named as a type. */
#include "frontend/stage_vector.h"

/* The axis that the first type argument names, into *out; NULL there: it was refused where it is declared. False: diagnosed. */
static bool take_label(const stage_call *call, const axis **out)
{
    scope_context *c = scope_context_of(call->scope);
    const ast *arg = stage_type_argument(call, TYPE_AXIS), *last = arg ? ast_last_segment(arg) : NULL;
    symbol *y = last ? scope_find_path(call->scope, TYPE_NAMES, arg) : NULL;
    *out = y && y->kind == SYMBOL_AXIS ? y->axis : NULL;
    if (*out || (y ? y->kind == SYMBOL_AXIS : last && scope_is_lost(call->scope, last->text)))
        return true;
    diag *d = diag_add(c->diags, E_VECTOR_REDUCE, arg ? arg->range : call->node->name_range, "`%s` needs the axis that is reduced",
                       call->form->name);
    diag_help(c->diags, d, "name an axis of axes![..], then OutTime and OutPacket: %s::<R, m![1], m![1 # 4]>(..)", call->form->name);
    return false;
}

value stage_make_vector_reduce(const stage_call *call)
{
    const axis *label;
    bool named = take_label(call, &label);
    const vector_op_row *row = vector_stage_operation(call, VECTOR_CLASS_REDUCE);
    if (!named || !label || !row)
        return vector_stage_refuse(call);
    op *o = stage_new_op(call, call->receiver.op->context);
    o->vector_reduce = ARENA_NEW(scope_context_of(call->scope)->arena, vector_reduce_config);
    *o->vector_reduce = (vector_reduce_config){.row = row, .label = label};
    return stage_finish(call, o, stage_take_types(call, o));
}

value stage_make_vector_slices(const stage_call *call)
{
    const vector_op_row *row = vector_stage_operation(call, VECTOR_CLASS_SLICES);
    if (!row)
        return vector_stage_refuse(call);
    op *o = stage_new_op(call, call->receiver.op->context);
    o->vector_slices = ARENA_NEW(scope_context_of(call->scope)->arena, vector_slices_config);
    *o->vector_slices = (vector_slices_config){.row = row};
    return stage_finish(call, o, stage_take_types(call, o) && stage_require_parts(call, o, 1u << SLICE | 1u << TIME));
}
