/* Rows by index: gathers and scatters of every release.
 *
 * The one idea: whatever is written, it ends as one operation with the HBM tensor, the list and the DM tensor as operands, and what was
 * written of axis, domain and payload in its configuration; what was not written the pass infers (passes/engine/indirect.c). */
#include "frontend/running.h"
#include "frontend/stage_build.h"

/* A plan so far. */
typedef struct row_plan {
    op *rows, *list; /* list NULL: not given yet */
    op *count;       /* of sparse_prefix; NULL: all of the list */
    bool writes;
    indirect_config given;
} row_plan;

static value failed(const stage_call *call)
{
    call->kernel->bad = true;
    return stage_error;
}

/* The mapping of a type argument; NULL: absent or `_`. False: refused. */
static bool read_mapping(const stage_call *call, stage_type type, const mapping **out)
{
    const ast *arg = stage_type_argument(call, type);
    bool infer = false;
    *out = arg ? scope_mapping(call->scope, arg, &infer) : NULL;
    return *out || !arg || infer;
}

static op *with_list(const stage_call *call, op *o, op *list, op *count, const indirect_config *given)
{
    arena *a = scope_context_of(call->scope)->arena;
    op_add_operand(o, a, OPERAND_INDEX, list);
    if (count)
        op_add_operand(o, a, OPERAND_COUNT, count);
    o->indirect = ARENA_NEW(a, indirect_config);
    *o->indirect = *given;
    o->bad = o->bad || list->bad;
    return o;
}

/* ---- up to 0.8: one call ---- */

static value gather(const stage_call *call, op *rows, op *list, op *count, const indirect_config *given)
{
    tensor out = rows->out;
    out.kind = TENSOR_DM;
    out.part[ELEMENT] = NULL;
    op *o = with_list(call, stage_add_step(call, IR_GATHER, CONTEXT_DMA, rows, &out), list, count, given);
    const value *address = stage_argument_of(call, ARGUMENT_ADDRESS);
    if (address)
        o->out.address = address->number;
    else
        op_leave_unplaced(o);
    bool ok = stage_take_types(call, o);
    if (address && address->number < 0) {
        diag_add(stage_diags(call), E_CONST, call->node->name_range, "the address is %lld; addresses are at least 0",
                 (long long)address->number);
        ok = false;
    }
    return stage_finish(call, o, ok && stage_require_parts(call, o, 1u << CLUSTER | 1u << SLICE | 1u << ELEMENT));
}

value stage_make_dma_gather(const stage_call *call)
{
    return gather(call, call->receiver.op, stage_argument_of(call, ARGUMENT_INDEX)->op, NULL, &(indirect_config){.domain = NULL});
}

value stage_make_dma_gather_unscaled(const stage_call *call)
{
    return gather(call, call->receiver.op, stage_argument_of(call, ARGUMENT_INDEX_DM)->op, NULL, &(indirect_config){.by_positions = true});
}

value stage_make_dma_gather_spm(const stage_call *call)
{
    return gather(call, call->receiver.op, stage_argument_of(call, ARGUMENT_INDEX_SPM)->op, NULL, &(indirect_config){.by_positions = true});
}

/* Elements of `into` that are not written stay as they are: a parameter comes in as well (frontend/ports.c). */
static value scatter(const stage_call *call, op *from, op *list, op *into, const indirect_config *given)
{
    if (!stage_may_write(call, into))
        return failed(call);
    op *o = with_list(call, stage_add_step(call, IR_SCATTER, CONTEXT_DMA, from, &into->out), list, NULL, given);
    op_add_operand(o, scope_context_of(call->scope)->arena, OPERAND_INTO, into);
    o->name = into->name;
    if (o->out.dtype != from->out.dtype && !from->bad && !into->bad) {
        diag_add(stage_diags(call), E_TYPE, call->node->name_range, "%s elements are copied into a view of %s",
                 dtype_row_of(from->out.dtype)->name, dtype_row_of(o->out.dtype)->name);
        o->bad = true;
    }
    if (o->bad || into->bad)
        o->bad = call->kernel->bad = true;
    return (value){.kind = VALUE_UNIT};
}

value stage_make_dma_scatter(const stage_call *call)
{
    indirect_config given = {.by_positions = false};
    const value *scaled = stage_argument_of(call, ARGUMENT_FLAG);
    given.by_positions = scaled && !scaled->number;
    if (!read_mapping(call, TYPE_KEY, &given.domain))
        return failed(call);
    return scatter(call, call->receiver.op, stage_argument_of(call, ARGUMENT_INDEX)->op, stage_argument_of(call, ARGUMENT_HBM_MUT)->op,
                   &given);
}

/* ---- since 0.9: plans ---- */

static value plan(const stage_call *call, bool writes)
{
    row_plan *p = ARENA_NEW(scope_context_of(call->scope)->arena, row_plan);
    *p = (row_plan){.rows = call->receiver.op, .writes = writes};
    bool ok = read_mapping(call, TYPE_AXIS, &p->given.indexed) && read_mapping(call, TYPE_PAYLOAD, &p->given.payload);
    if (ok && !p->given.indexed) {
        diag *d = diag_add(stage_diags(call), E_INFER, call->node->name_range, "IndexedAxis of %s cannot be inferred", call->node->text);
        diag_help(stage_diags(call), d, "write %s::<IndexedAxis, Payload>()", call->node->text);
        ok = false;
    }
    return ok ? (value){.kind = VALUE_INDIRECT, .op = p->rows, .rows = p, .writable = call->receiver.writable} : failed(call);
}

STAGE_IS(gather, plan(call, false))

value stage_make_scatter(const stage_call *call)
{
    if (call->receiver.writable)
        return plan(call, true);
    diag *d = diag_add(stage_diags(call), E_VIEW_READ_ONLY, call->node->name_range, "`scatter` writes into this view, which is only read");
    stage_help_view(stage_diags(call), d, ast_kid(call->node, 0), true);
    return failed(call);
}

static value take_list(const stage_call *call, op *list, bool by_positions)
{
    row_plan *p = ARENA_NEW(scope_context_of(call->scope)->arena, row_plan);
    *p = *call->receiver.rows;
    if (p->list) {
        diag_add(stage_diags(call), E_METHOD, call->node->name_range, "the plan has its list already");
        return failed(call);
    }
    p->list = list;
    p->given.by_positions = by_positions;
    value v = call->receiver;
    v.rows = p;
    return read_mapping(call, TYPE_KEY, &p->given.domain) ? v : failed(call);
}

STAGE_IS(by_byte_offsets, take_list(call, stage_argument_of(call, ARGUMENT_INDEX)->op, false))
STAGE_IS(by_positions, take_list(call, stage_argument_of(call, ARGUMENT_INDEX_SPM)->op, true))

value stage_make_sparse_prefix(const stage_call *call)
{
    const value *n = stage_argument_of(call, ARGUMENT_RUNNING);
    row_plan *p = ARENA_NEW(scope_context_of(call->scope)->arena, row_plan);
    *p = *call->receiver.rows;
    const char *wrong = p->writes                          ? "a scatter writes all rows of its list: `sparse_prefix` is a gather's"
                        : p->count                         ? "the plan has its count already"
                        : p->list && p->given.by_positions ? "`sparse_prefix` is of a list of byte offsets"
                        : !p->list                         ? "the plan has no list of rows"
                                                           : NULL;
    const char *help = p->writes                          ? "give the scatter a list of the rows that it writes"
                       : p->list && p->given.by_positions ? "multiply the row numbers by the bytes of a row and keep the list in HBM"
                       : !p->list                         ? "write .by_byte_offsets::<Domain>(&index) in front of it"
                       : p->count                         ? "remove one of the two"
                                                          : NULL;
    p->count = run_number_count(n->run);
    if (!wrong && !p->count) {
        wrong = "`sparse_prefix` takes an i32";
        help = "declare the parameter HbmScalar<i32>";
    }
    if (!wrong) {
        value v = call->receiver;
        v.rows = p;
        return v;
    }
    diag *d = diag_add(stage_diags(call), E_METHOD, call->node->name_range, "%s", wrong);
    if (help)
        diag_help(stage_diags(call), d, "%s", help);
    return failed(call);
}

enum { WORD_BITS = 32 };

/* Of a number of 64 bits the low half, as a list of one element. */
static op *low_word(const stage_call *call, op *port)
{
    scope_context *c = scope_context_of(call->scope);
    op *o = kernel_add(call->kernel, c->arena, IR_VIEW, CONTEXT_DMA, call->node->name_range);
    o->out = port->out;
    o->out.part[ELEMENT] = o->guard = mapping_identity(c->mappings);
    o->window = ARENA_NEW(c->arena, tile_window);
    *o->window = (tile_window){.displacement = 0};
    o->name = port->name;
    op_add_operand(o, c->arena, OPERAND_INPUT, port);
    return o;
}

/* A row of the view, whose list is one number of a launch: nothing but the place is different from a gather. */
value stage_make_running_tile(const stage_call *call)
{
    row_plan *p = ARENA_NEW(scope_context_of(call->scope)->arena, row_plan);
    const run_number *n = stage_argument_of(call, ARGUMENT_RUNNING)->run;
    int64_t length;
    stage_tile tile;
    run_position at;
    *p = (row_plan){.rows = call->receiver.op, .given.by_positions = true};
    if (!stage_read_tile(call, ELEMENT, 0, &p->given.indexed, &length, &tile))
        return failed(call);
    bool fits = stage_may_start(call, n, length, &at);
    if (fits && at.more > 0) {
        diag *d = diag_add(stage_diags(call), E_UNSUPPORTED, call->node->name_range,
                           "a tile of HBM begins at a number of the launch to which nothing was added");
        diag_help(stage_diags(call), d, "let the host pass the sum, or copy the tensor to DM and tile that");
        fits = false;
    }
    if (!fits)
        return failed(call);
    p->given.wide = at.bits > WORD_BITS;
    p->list = at.port->out.part[ELEMENT]->size > 1 ? low_word(call, at.port) : at.port;
    return (value){.kind = VALUE_INDIRECT, .op = p->rows, .rows = p};
}

/* Is the plan complete, and one that does this? */
static bool may_go(const stage_call *call, bool writes)
{
    const row_plan *p = call->receiver.rows;
    diag *d;
    if (p->writes != writes) {
        d = diag_add(stage_diags(call), E_METHOD, call->node->name_range, "`%s` is not offered by a plan to %s rows", call->node->text,
                     p->writes ? "write" : "take");
        diag_help(stage_diags(call), d, p->writes ? "a scatter ends in from_dm(..) or from_dm_view(..)" : "a gather ends in to_dm(..)");
        return false;
    }
    if (p->list)
        return true;
    d = diag_add(stage_diags(call), E_METHOD, call->node->name_range, "the plan has no list of rows");
    diag_help(stage_diags(call), d, "write .by_byte_offsets::<Domain>(&index) or .by_positions::<Domain>(&index) in front of it");
    return false;
}

value stage_make_indirect_to_dm(const stage_call *call)
{
    const row_plan *p = call->receiver.rows;
    return may_go(call, false) ? gather(call, p->rows, p->list, p->count, &p->given) : failed(call);
}

value stage_make_from_dm(const stage_call *call)
{
    const row_plan *p = call->receiver.rows;
    return may_go(call, true) ? scatter(call, stage_argument_of(call, ARGUMENT_DM_GIVEN)->op, p->list, p->rows, &p->given) : failed(call);
}

value stage_make_from_dm_view(const stage_call *call)
{
    const row_plan *p = call->receiver.rows;
    return may_go(call, true) ? scatter(call, stage_argument_of(call, ARGUMENT_DM_VIEW)->op, p->list, p->rows, &p->given) : failed(call);
}
