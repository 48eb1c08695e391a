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

/* Is it the same in every turn of the loops around it? Diagnoses. */
static bool is_known(const stage_call *call, src_range at, const value *v)
{
    if (v->kind == VALUE_RUNNING) {
        diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "a vector-engine immediate must be a compile-time constant");
        diag_help(stage_diags(call), d, "pass a tensor, and take it from the VRF; what a launch gives is no part of a command");
        return false;
    }
    if (!v->loop)
        return true;
    diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "a vector-engine immediate must be a compile-time constant");
    stage_help_unroll(stage_diags(call), d, v->loop);
    return false;
}

/* Is a number written there, as an argument? Else it is a name, or part of what is written. */
static bool is_literal(const stage_call *call, src_range at)
{
    const ast *args = ast_kid(call->node, 2);
    for (uint32_t i = 0; i < args->kid_count; i++)
        if (args->kids[i]->range.begin == at.begin && args->kids[i]->range.end == at.end)
            return ast_is(args->kids[i], AST_INT);
    return false;
}

/* A constant of the element type, as its word. Diagnoses. */
static bool constant(const stage_call *call, src_range at, const value *v, dtype type, uint32_t *out)
{
    diag_list *diags = stage_diags(call);
    if (!is_known(call, at, v))
        return false;
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
    if (v->kind == VALUE_INT && type == DTYPE_F32) {
        diag_help(diags, d, "write %lld.0", (long long)v->number);
        if (is_literal(call, at))
            diag_replace(diags, d, at, "%lld.0", (long long)v->number);
    } else
        diag_help(diags, d, type == DTYPE_F32 ? "write a float, as in `2.5f32`" : "write an integer, as in `100`");
    return false;
}

/* ---- what is given besides the stream ---- */

/* An operand, and for which tags it is taken. */
typedef struct operand {
    unsigned tags, groups; /* groups of a pair: bit g */
    uint32_t constants[2];
    op *stash, *vrf; /* what operand 1 is; both NULL: a constant */
} operand;

typedef struct operand_list {
    operand items[VECTOR_MOST_OPERANDS];
    unsigned count;
} operand_list;

static bool is_variant(const value *v, const char *type)
{
    return v->kind == VALUE_VARIANT && strcmp(v->variant, type) == 0;
}

static bool is_stash(const value *v)
{
    return is_variant(v, "VeRhs") && v->count == 0;
}

/* Is it read only once in a pass? */
static bool reads_once(const stage_call *call)
{
    return scope_context_of(call->scope)->dialect >= DIALECT_V0_6;
}

static const op *earlier_read(const stage_call *call)
{
    for (const op *o = call->receiver.op; o && o->kind != IR_VECTOR_INIT; o = op_input(o))
        if (op_stash(o))
            return o;
    return NULL;
}

/* What was set aside in this pass, into *stash. Diagnoses. */
static bool take_stash(const stage_call *call, src_range at, const vector_op_row *row, op **stash)
{
    for (op *o = call->receiver.op; o && o->kind != IR_VECTOR_INIT && !*stash; o = op_input(o))
        *stash = o->kind == IR_VECTOR_STASH ? o : NULL;
    const op *read = reads_once(call) ? earlier_read(call) : NULL;
    diag *d = NULL;
    if (!*stash) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "nothing is set aside in front of this operation");
        diag_help(stage_diags(call), d, "call vector_stash() earlier in the pass");
    } else if ((*stash)->out.dtype != row->from) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "stash type mismatch: stashed as %s, requested as %s",
                     dtype_row_of((*stash)->out.dtype)->name, dtype_row_of(row->from)->name);
        diag_note(stage_diags(call), d, (*stash)->range, "set aside here");
        diag_help(stage_diags(call), d, "set it aside where the stream has %s elements", dtype_row_of(row->from)->name);
    } else if (read) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "the stash is read twice; since 0.6 it is read once");
        diag_note(stage_diags(call), d, read->range, "it was read here");
        diag_help(stage_diags(call), d, "keep it in the VRF, with to_vrf, and read that");
    }
    return !d;
}

/* Operand 1: the VRF, the stash or a constant. Diagnoses. */
static bool take_value(const stage_call *call, src_range at, const value *v, const vector_op_row *row, operand *out)
{
    if (is_variant(v, "VeRhs") && v->count == 1)
        v = &v->items[0];
    if (is_stash(v))
        return take_stash(call, at, row, &out->stash);
    if (v->kind != VALUE_TENSOR || v->op->out.kind != TENSOR_VRF)
        return constant(call, at, v, row->from, &out->constants[0]);
    out->vrf = v->op;
    if (v->op->bad || v->op->out.dtype == row->from)
        return !v->op->bad;
    diag *d = diag_add(stage_diags(call), E_VECTOR_TYPE, at, "`%s` takes %s operands, the VrfTensor has %s",
                       row->variant ? row->variant : call->node->text, dtype_row_of(row->from)->name, dtype_row_of(v->op->out.dtype)->name);
    diag_note(stage_diags(call), d, v->op->range, "stored here");
    diag_help(stage_diags(call), d, "store it as %s", dtype_row_of(row->from)->name);
    return false;
}

/* Operand 1, or of an operation on three operands a pair with a constant. Diagnoses. */
static bool take_operand(const stage_call *call, src_range at, const value *v, const vector_op_row *row, operand *out)
{
    if (v->kind == VALUE_ERROR)
        return false;
    if (row->operands < 3)
        return take_value(call, at, v, row, out);
    if (v->kind == VALUE_LIST && v->count == 2)
        return take_value(call, at, &v->items[0], row, out) && constant(call, at, &v->items[1], row->from, &out->constants[1]);
    diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "an operation on three operands takes a pair besides the stream, got %s",
                       value_kind_name(v));
    diag_help(stage_diags(call), d, "give both: (operand0, operand1), as in `(2.0f32, 1.0f32)`");
    return false;
}

enum { GROUP_ONE_TAGS = 0xff00 }; /* those with bit 3 */

static unsigned tags_of_group(const value *group)
{
    return group->number ? GROUP_ONE_TAGS : VECTOR_ALL_TAGS & ~GROUP_ONE_TAGS;
}

/* The tags that a guard admits; 0 with a diagnostic. */
static unsigned tags_of_guard(const stage_call *call, src_range at, const value *guard)
{
    diag *d = NULL;
    if (!is_variant(guard, "TagGuard")) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "a guard is a TagGuard, got %s", value_kind_name(guard));
        diag_help(stage_diags(call), d, "TagGuard::all(), group(GroupId::One), matches([..]) or not_matches([..])");
        return 0;
    }
    if (guard->number == VECTOR_GUARD_ALL)
        return VECTOR_ALL_TAGS;
    const value *given = &guard->items[0];
    if (guard->number == VECTOR_GUARD_GROUP && is_variant(given, "GroupId"))
        return tags_of_group(given);
    bool four = guard->number != VECTOR_GUARD_GROUP && given->kind == VALUE_LIST && given->count == VECTOR_TAG_BITS;
    for (size_t i = 0; four && i < VECTOR_TAG_BITS; i++)
        four = is_variant(&given->items[i], "BitReq");
    if (!four) {
        d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "a guard takes %s, got %s",
                     guard->number == VECTOR_GUARD_GROUP ? "a GroupId" : "four BitReq, that of bit 0 first", value_kind_name(given));
        diag_help(stage_diags(call), d,
                  guard->number == VECTOR_GUARD_GROUP ? "GroupId::Zero or GroupId::One"
                                                      : "[BitReq::One, BitReq::Zero, BitReq::Ignore, BitReq::Ignore]");
        return 0;
    }
    unsigned tags = 0;
    for (unsigned tag = 0; tag < 1u << VECTOR_TAG_BITS; tag++) {
        bool matches = true;
        for (unsigned bit = 0; bit < VECTOR_TAG_BITS; bit++)
            matches = matches && (given->items[bit].number == 2 || given->items[bit].number == (tag >> bit & 1));
        tags |= (unsigned)(matches == (guard->number == VECTOR_GUARD_MATCHES)) << tag;
    }
    if (tags)
        return tags;
    d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "no element has a tag that this guard admits");
    diag_help(stage_diags(call), d, "TagGuard::all() admits every one");
    return 0;
}

static bool refuse_place(const stage_call *call, src_range at, const char *what, const char *help)
{
    diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "%s", what);
    diag_help(stage_diags(call), d, "%s", help);
    return false;
}

/* `Branched::imm(guard, 1).imm(..).rf(guard, &vrf)`: the first one that matches is taken, so each is taken for what is left. */
static bool take_branched(const stage_call *call, src_range at, const value *last, const vector_op_row *row, operand_list *out)
{
    const value *in_order[VECTOR_MOST_OPERANDS + 1];
    size_t count = 0;
    for (const value *v = last; v && count <= VECTOR_MOST_OPERANDS; v = v->count == 3 ? &v->items[2] : NULL)
        in_order[count++] = v;
    unsigned left = VECTOR_ALL_TAGS, immediates = 0;
    bool register_read = false, unconditional = false;
    for (size_t i = count; i-- > 0;) {
        const value *v = in_order[i], *payload = &v->items[1];
        const value *first = row->operands == 3 && payload->kind == VALUE_LIST && payload->count == 2 ? &payload->items[0] : payload;
        bool immediate = v->number == VECTOR_IMMEDIATE, constant_given = !is_stash(first) && first->kind != VALUE_TENSOR;
        unsigned tags = tags_of_guard(call, at, &v->items[0]);
        operand x = {.tags = tags & left, .groups = VECTOR_BOTH_GROUPS};
        if (!tags)
            return false;
        if (register_read)
            return refuse_place(call, at, "nothing follows `rf`: an operation reads one register, last",
                                "write the constants in front of it");
        if (immediate && ++immediates > 3)
            return refuse_place(call, at, "an operation has three constants by tag, this is the fourth",
                                "read it from the VRF: `rf(guard, &vrf)`");
        if (unconditional)
            return refuse_place(call, at, "an operand after an unconditional one is never taken", "write the unconditional one last");
        if (immediate != constant_given)
            return refuse_place(call, at, immediate ? "`imm` takes a constant" : "`rf` takes a VrfTensor or the stash",
                                immediate ? "read it with `rf`" : "give a constant with `imm`");
        if (!take_operand(call, at, payload, row, &x))
            return false;
        unconditional = tags == VECTOR_ALL_TAGS;
        left &= ~tags;
        register_read = !immediate;
        out->items[out->count++] = x; /* also where no tag is left: what it reads is held to the rules, and no command is made of it */
    }
    return true;
}

/* `VeBranchOperand::group(x, GroupId::One)`: whatever its place, it is taken for its group. */
static bool take_conditional(const stage_call *call, src_range at, const value *v, const vector_op_row *row, operand_list *out)
{
    bool ternary = is_variant(v, "TernaryOperand"), grouped = v->number == VECTOR_GIVEN_GROUP;
    if (ternary != (row->operands == 3))
        return refuse_place(call, at,
                            ternary ? "a TernaryOperand is one of an operation on three operands"
                                    : "an operation on three operands takes a TernaryOperand",
                            ternary ? "write VeBranchOperand" : "write TernaryOperand::always(operand0, operand1)");
    if (grouped && !is_variant(&v->items[v->count - 1], "GroupId"))
        return refuse_place(call, at, "a group is GroupId::Zero or GroupId::One", "write GroupId::One");
    operand x = {.tags = grouped ? tags_of_group(&v->items[v->count - 1]) : VECTOR_ALL_TAGS, .groups = VECTOR_BOTH_GROUPS};
    value pair = {.kind = VALUE_LIST, .items = v->items, .count = 2};
    if (!take_operand(call, at, ternary ? &pair : &v->items[0], row, &x))
        return false;
    out->items[out->count++] = x;
    return true;
}

static bool is_conditional(const value *v)
{
    return is_variant(v, "VeBranchOperand") || is_variant(v, "TernaryOperand");
}

/* In April an array: each one that matches is taken, one after the other. */
static bool take_array(const stage_call *call, src_range at, const value *list, const vector_op_row *row, operand_list *out)
{
    unsigned always = 0;
    for (size_t i = 0; i < list->count; i++)
        always += !is_conditional(&list->items[i]) || list->items[i].number == VECTOR_GIVEN;
    if (always > 1) {
        diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "Multiple ValidAlways operands are not allowed (found %u)", always);
        diag_help(stage_diags(call), d, "give each a group: VeBranchOperand::group(x, GroupId::One)");
        return false;
    }
    if (list->count == 0 || list->count > VECTOR_MOST_OPERANDS)
        return refuse_place(call, at, "an operation takes one to four operands by tag", "use another operation for the others");
    for (size_t i = 0; i < list->count; i++) {
        operand x = {.tags = VECTOR_ALL_TAGS, .groups = VECTOR_BOTH_GROUPS};
        if (is_conditional(&list->items[i]) ? !take_conditional(call, at, &list->items[i], row, out)
                                            : !take_operand(call, at, &list->items[i], row, &x))
            return false;
        if (!is_conditional(&list->items[i]))
            out->items[out->count++] = x;
    }
    return true;
}

static bool take_operands(const stage_call *call, const value *given, const vector_op_row *row, operand_list *out)
{
    src_range at = argument_range(call, given);
    if (given->kind == VALUE_ERROR)
        return false;
    if (!is_known(call, at, given))
        return false;
    if (is_variant(given, "ArrayVec"))
        given = &given->items[0];
    if (is_variant(given, "Branched"))
        return take_branched(call, at, given, row, out);
    if (is_conditional(given))
        return take_conditional(call, at, given, row, out);
    if (given->kind == VALUE_LIST && (row->operands < 3 || (given->count > 0 && is_conditional(&given->items[0]))))
        return take_array(call, at, given, row, out);
    out->items[0] = (operand){.tags = VECTOR_ALL_TAGS, .groups = VECTOR_BOTH_GROUPS};
    out->count = 1;
    return take_operand(call, at, given, row, &out->items[0]);
}

/* The mode's type has as many operands as the operation. */
static bool take_mode(const stage_call *call, src_range at, const value *mode, const vector_op_row *row, unsigned *out)
{
    static const char *const types[] = {"UnaryArgMode", "BinaryArgMode", "TernaryArgMode"};
    const char *wanted = types[row->operands - 1];
    *out = (unsigned)mode->number;
    if (strcmp(mode->variant, wanted) == 0)
        return true;
    diag *d = diag_add(stage_diags(call), E_VECTOR_OPERAND, at, "%s::%s has %u operand%s, and its mode is a %s, got a %s", row->type,
                       row->variant, row->operands, row->operands == 1 ? "" : "s", wanted, mode->variant);
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
    bool wide = in->out.dtype == DTYPE_F32 || in->out.dtype == DTYPE_I32;
    if (!wide && scope_context_of(call->scope)->dialect < DIALECT_V0_6)
        diag_help(stage_diags(call), d, "the Vector Engine takes 32 bits: fetch as %s, fetch::<%s, ..>()", from, from);
    else if (!wide)
        diag_help(stage_diags(call), d, "the Vector Engine takes 32 bits: write .fetch_cast::<%s>() after fetch", from);
    else if (row->from == DTYPE_F32)
        diag_help(stage_diags(call), d, "convert with vector_fxp_to_fp(31) in front of it");
    else
        diag_help(stage_diags(call), d, "convert with vector_fp_to_fxp(31), or do it before the stream becomes f32");
    return false;
}

static op *tag_of(op *o)
{
    while (o && o->kind != IR_VECTOR_TAG && o->kind != IR_VECTOR_INIT)
        o = op_input(o);
    return o && o->kind == IR_VECTOR_TAG ? o : NULL;
}

/* The operation on `in` with one of its operands. */
static op *add_operation(const stage_call *call, op *in, const vector_op_row *row, unsigned mode, const operand *x)
{
    arena *a = scope_context_of(call->scope)->arena;
    stage_call from = *call;
    from.receiver.op = in;
    op *o = stage_new_op(&from, in->context);
    o->out.dtype = row->to;
    o->vector_op = ARENA_NEW(a, vector_op_config);
    *o->vector_op = (vector_op_config){.row = row, .mode = mode, .tags = x->tags, .groups = x->groups};
    for (unsigned i = 0; i < 2; i++)
        o->vector_op->constants[i] = vector_mode_names(row, mode, i + 1) ? x->constants[i] : 0;
    if (x->stash && vector_mode_names(row, mode, 1))
        op_add_operand(o, a, OPERAND_STASH, x->stash);
    if (x->vrf && vector_mode_names(row, mode, 1))
        op_add_operand(o, a, OPERAND_VRF, x->vrf);
    if (x->tags != VECTOR_ALL_TAGS)
        op_add_operand(o, a, OPERAND_TAG, tag_of(in));
    return o;
}

/* With several operands the operation is repeated for each, one after the other. */
static value operation(const stage_call *call, const vector_op_row *row, src_range at, unsigned mode, const operand_list *operands)
{
    if (!check_type(call, at, row))
        return vector_stage_refuse(call);
    op *o = call->receiver.op;
    for (unsigned i = 0; i < operands->count; i++)
        if (operands->items[i].tags != VECTOR_ALL_TAGS && !tag_of(o)) {
            diag *d = diag_add(stage_diags(call), E_VECTOR_PAIR, at, "two streams have no tags, and this operand is for some tags");
            diag_help(stage_diags(call), d, "give the operand itself");
            return vector_stage_refuse(call);
        }
    for (unsigned i = 0; i < operands->count; i++) {
        o = add_operation(call, o, row, mode, &operands->items[i]);
        o->vector_op->more = i > 0;
    }
    return stage_finish(call, o, stage_take_types(call, o));
}

/* Without anything but the stream, or with a constant that is part of it. */
static operand_list alone(uint32_t constant_given)
{
    return (operand_list){.items = {{.tags = VECTOR_ALL_TAGS, .groups = VECTOR_BOTH_GROUPS, .constants = {constant_given}}}, .count = 1};
}

/* An operand for each of two streams: `()` leaves its stream alone, of an operation on one operand `false` does. Diagnoses. */
static bool take_groups(const stage_call *call, const vector_op_row *row, operand_list *out)
{
    const value *given[] = {stage_argument_of(call, ARGUMENT_OPERAND), stage_argument_of(call, ARGUMENT_OTHER_OPERAND)};
    const value *taken[] = {stage_argument_of(call, ARGUMENT_TAKEN), stage_argument_of(call, ARGUMENT_OTHER_TAKEN)};
    out->count = 0;
    for (unsigned g = 0; g < 2; g++) {
        operand x = {.tags = VECTOR_ALL_TAGS, .groups = 1u << g};
        if (given[g] ? given[g]->kind == VALUE_UNIT : !taken[g] || !taken[g]->number)
            continue;
        if (given[g] && !take_operand(call, argument_range(call, given[g]), given[g], row, &x))
            return false;
        out->items[out->count++] = x;
    }
    return out->count > 0 ||
           refuse_place(call, call->node->name_range, "the operation leaves both streams alone", "give one of them an operand");
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

/* A stage whose argument is its operation. `class`: of those that it has. */
static value told(const stage_call *call, vector_class class)
{
    const value *with_mode = stage_argument_of(call, ARGUMENT_OP_WITH_MODE), *which = stage_argument_of(call, ARGUMENT_VECTOR_OP),
                *mode = stage_argument_of(call, ARGUMENT_MODE), *given = stage_argument_of(call, ARGUMENT_OPERAND);
    which = with_mode ? with_mode : which;
    const vector_op_row *row = vector_op_row_of(which ? (unsigned)which->number : VECTOR_FP_DIV);
    src_range at = which ? argument_range(call, which) : call->node->name_range;
    unsigned sources = row->operands == 1 ? VECTOR_MODE(0, 0, 0) : row->operands == 2 ? VECTOR_MODE(0, 1, 0) : VECTOR_MODE(0, 1, 2);
    operand_list operands = alone(0);
    if (!check_class(call, at, row, class))
        return vector_stage_refuse(call);
    src_range mode_at = with_mode ? at : mode ? argument_range(call, mode) : at;
    mode = with_mode ? with_mode->items : mode;
    if (mode && !take_mode(call, mode_at, mode, row, &sources))
        return vector_stage_refuse(call);
    operands.count = given ? 0 : 1;
    bool pair = stage_argument_of(call, ARGUMENT_OTHER_OPERAND) || stage_argument_of(call, ARGUMENT_OTHER_TAKEN);
    if (pair ? !take_groups(call, row, &operands) : given && !take_operands(call, given, row, &operands))
        return vector_stage_refuse(call);
    return operation(call, row, at, sources, &operands);
}

/* An operation on the elements of both streams: 0 and 1 of its mode are the groups. */
static value zipped(const stage_call *call, vector_class class)
{
    const vector_op_row *row = vector_op_row_of((unsigned)stage_argument_of(call, ARGUMENT_VECTOR_OP)->number);
    value v = told(call, class);
    if (v.kind != VALUE_TENSOR)
        return v;
    if (row->operands == 2) {
        v.op->vector_op->zip = true;
        return v;
    }
    refuse_place(call, call->node->name_range, "two streams become one by an operation on two operands",
                 "use one of the stage's operations on two operands");
    return vector_stage_refuse(call);
}

#define VECTOR_ZIP_STAGE(name, class) \
    value stage_make_##name(const stage_call *call) \
    { \
        return zipped(call, VECTOR_CLASS_##class); \
    }
#include "target/engines.def"

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
    operand_list operands = alone((uint32_t)int_width->number);
    return operation(call, vector_op_row_of(which), call->node->name_range, VECTOR_MODE(0, 1, 0), &operands);
}

STAGE_IS(vector_fxp_to_fp, conversion(call, VECTOR_FXP_TO_FP))
STAGE_IS(pair_fxp_to_fp, conversion(call, VECTOR_FXP_TO_FP))
STAGE_IS(vector_fp_to_fxp, conversion(call, VECTOR_FP_TO_FXP))
STAGE_IS(pair_fp_to_fxp, conversion(call, VECTOR_FP_TO_FXP))

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
    operand_list operands = alone(0);
    return operation(call, vector_op_row_of(to == DTYPE_F32 ? VECTOR_F32_OF_BITS : VECTOR_BITS_OF_F32), call->node->name_range, 0,
                     &operands);
}

/* ---- tags ---- */

/* A comparison, with its constant as a word. Diagnoses. */
static bool take_comparison(const stage_call *call, src_range at, const value *v, dtype type, vector_comparison *out)
{
    if (is_variant(v, "InputCmp")) {
        if (v->number != (int64_t)type)
            return refuse_place(call, at, "the comparison is of the other element type",
                                type == DTYPE_F32 ? "write InputCmp::F32(InputCmpF32::..)" : "write InputCmp::I32(InputCmpI32::..)");
        v = &v->items[0];
    }
    if (!is_variant(v, "Cmp") && !is_variant(v, type == DTYPE_F32 ? "InputCmpF32" : "InputCmpI32"))
        return refuse_place(call, at, "a tag is made by four comparisons", "write Cmp::Less(0), Cmp::True or Cmp::False for each bit");
    *out = (vector_comparison){.compare = (vector_compare)v->number};
    return v->count == 0 || constant(call, at, &v->items[0], type, &out->with);
}

/* The four comparisons of a tag; NULL with a diagnostic. */
static vector_tag_config *take_comparisons(const stage_call *call, src_range at, const value *list, dtype type)
{
    vector_tag_config *x = ARENA_NEW(scope_context_of(call->scope)->arena, vector_tag_config);
    if (list->kind != VALUE_LIST || list->count != VECTOR_TAG_BITS) {
        refuse_place(call, at, "a tag has four bits: give four comparisons", "Cmp::False leaves a bit 0");
        return NULL;
    }
    for (size_t i = 0; i < VECTOR_TAG_BITS; i++)
        if (!take_comparison(call, at, &list->items[i], type, &x->of[i]))
            return NULL;
    return x;
}

value stage_make_vector_tag(const stage_call *call)
{
    const value *mode = stage_argument_of(call, ARGUMENT_TAG_MODE);
    vector_tag_config *x =
        mode->count ? take_comparisons(call, argument_range(call, mode), &mode->items[0], call->receiver.op->out.dtype) : NULL;
    if (mode->count && !x)
        return vector_stage_refuse(call);
    op *o = stage_new_op(call, call->receiver.op->context);
    o->vector_tag = x;
    return stage_finish(call, o, stage_take_types(call, o));
}

/* ---- two streams ---- */

value stage_make_vector_unzip(const stage_call *call)
{
    const ast *axis_given = stage_type_argument(call, TYPE_AXIS), *tiled = stage_type_argument(call, TYPE_TILED_TIME);
    bool infer = false;
    const mapping *m = axis_given ? scope_mapping(call->scope, axis_given, &infer) : NULL,
                  *written = tiled ? scope_mapping(call->scope, tiled, &infer) : NULL;
    if ((axis_given && !m && !infer) || (tiled && !written && !infer))
        return vector_stage_refuse(call);
    if (!m || m->count != 1 || m->factors[0].kind != FACTOR_AXIS || m->size != 2 || m->factors[0].axis->size != 2) {
        diag *d = diag_add(stage_diags(call), E_VECTOR_PAIR, axis_given ? axis_given->range : call->node->name_range,
                           "two streams are told apart by an axis of 2");
        diag_help(stage_diags(call), d, "declare axes![I = 2], begin_interleaved::<I, ..>, and write it here");
        return vector_stage_refuse(call);
    }
    op *o = stage_new_op(call, call->receiver.op->context);
    o->vector_unzip = ARENA_NEW(scope_context_of(call->scope)->arena, vector_unzip_config);
    *o->vector_unzip = (vector_unzip_config){.by = m->factors[0].axis, .tiled = written};
    return stage_finish(call, o, stage_take_types(call, o));
}
