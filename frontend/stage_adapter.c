/* The adapters' stages: what happens to single elements after a read of DM and before a write. They have no command of their own:
 * their settings go into the fetch before them, or into the commit after them. And memset, a commit of what no stream brings. */
#include "frontend/constant.h"
#include "frontend/stage_build.h"
#include "support/float_bits.h"

/* The fetch that the stream comes from; NULL: it is from outside. Diagnoses. */
static op *fetch_of(const stage_call *call)
{
    op *o = call->receiver.op;
    if (o->kind == IR_FETCH)
        return o;
    diag *d = diag_add(stage_diags(call), E_UNSUPPORTED, call->node->name_range,
                       "`%s` of a stream that comes from outside is not supported", call->form->name);
    diag_help(stage_diags(call), d, "it is converted where it is fetched");
    call->kernel->bad = true;
    return NULL;
}

static adapter_config *adapter_of(const stage_call *call, op *o)
{
    if (o->adapter)
        return o->adapter;
    o->adapter = ARENA_NEW(scope_context_of(call->scope)->arena, adapter_config);
    *o->adapter = (adapter_config){
        .table_range = SRC_NOWHERE, .zero_point_range = SRC_NOWHERE, .looked_up = op_input(o)->out.dtype, .cast = o->out.dtype};
    return o->adapter;
}

/* The fetch gives the element type that the stage names, and is one step further. */
static value take_type(const stage_call *call, op *o)
{
    const declared *e = call->expected;
    bool older = call->row->gives == TENSOR_FETCH_CAST && e && e->kind == DECLARED_TENSOR && e->tensor.kind == TENSOR_FETCH;
    o->out.kind = older ? TENSOR_FETCH : (tensor_kind)call->row->gives; /* April's FetchTensor is what it converted to */
    return stage_finish(call, o, stage_take_types(call, o));
}

static src_range type_range(const stage_call *call)
{
    const ast *arg = stage_type_argument(call, TYPE_DTYPE);
    return arg ? arg->range : call->node->name_range;
}

value stage_make_fetch_cast(const stage_call *call)
{
    op *o = fetch_of(call);
    if (!o)
        return stage_error;
    o->converted = type_range(call);
    return take_type(call, o);
}

value stage_make_fetch_table_lookup(const stage_call *call)
{
    op *o = fetch_of(call);
    if (!o)
        return stage_error;
    adapter_config *a = adapter_of(call, o);
    a->table = true;
    a->table_range = type_range(call);
    value v = take_type(call, o);
    a->looked_up = a->cast = o->out.dtype;
    return v;
}

value stage_make_fetch_zero_point_sub(const stage_call *call)
{
    op *o = fetch_of(call);
    if (!o)
        return stage_error;
    adapter_config *a = adapter_of(call, o);
    a->subtracts = true;
    a->cast = o->out.dtype;
    a->zero_point = stage_argument_of(call, ARGUMENT_ZERO_POINT)->number;
    a->zero_point_range = call->node->name_range;
    return take_type(call, o);
}

static value commit_cast(const stage_call *call, bool relu)
{
    op *o = stage_new_note(call);
    o->commit_cast = ARENA_NEW(scope_context_of(call->scope)->arena, commit_cast_config);
    bool ok = stage_take_types(call, o);
    *o->commit_cast =
        (commit_cast_config){.range = type_range(call), .from = call->receiver.op->out.dtype, .to = o->out.dtype, .relu = relu};
    return stage_finish(call, o, ok);
}

STAGE_IS(commit_cast, commit_cast(call, false))
STAGE_IS(commit_cast_relu, commit_cast(call, true))

/* ---- memset ---- */

/* How a type's numbers are written, and how they are told from an expression that is evaluated on the device. */
static const struct {
    dtype type;
    value_kind kind;
    int exponent_bits, fraction_bits; /* of a float of less than 32 bits */
    const char *constant;             /* written as; NULL: a literal will do */
} fills[] = {
    {DTYPE_I4, VALUE_INT, 0, 0, "const { i4::from_i32(1) }"},
    {DTYPE_I8, VALUE_INT, 0, 0, NULL},
    {DTYPE_I16, VALUE_INT, 0, 0, NULL},
    {DTYPE_I32, VALUE_INT, 0, 0, NULL},
    {DTYPE_F8E4M3, VALUE_FLOAT, 4, 3, "const { f8e4m3::from_f32(1.0) }"},
    {DTYPE_BF16, VALUE_FLOAT, 8, 7, "const { bf16::from_f32(1.0) }"},
    {DTYPE_F32, VALUE_FLOAT, 0, 0, NULL},
};
enum { FILLS = sizeof fills / sizeof *fills };

/* The bits of a number that the format has (frontend/constant.h: it was rounded to one), from those of the same number in f32. */
static uint32_t float_code(float x, int exponent_bits, int fraction_bits)
{
    uint32_t bits = f32_bits(x);
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = (int)(bits >> 23 & 0xff) - 127;
    uint32_t sign = bits >> 31 << (exponent_bits + fraction_bits), fraction = (bits & 0x7fffff) >> (23 - fraction_bits);
    if (exponent >= 1 - bias)
        return sign | (uint32_t)(exponent + bias) << fraction_bits | fraction;
    int shift = 1 - bias - exponent; /* a subnormal; bf16 has none, and neither has f32 */
    return exponent < -126 || shift > fraction_bits ? sign : sign | ((1u << fraction_bits) | fraction) >> shift;
}

/* Is the argument known without a call? A function that is not in `const { }` is called on the device. */
static bool is_constant(const ast *n)
{
    while (ast_is(n, AST_UNARY))
        n = ast_kid(n, 0);
    return !ast_is(n, AST_CALL);
}

static value refuse(const stage_call *call)
{
    call->kernel->bad = true;
    return stage_error;
}

/* The word of as many equal elements as fit, and the number as a constant of 32 bits; false: diagnosed. */
static bool fill_word(const stage_call *call, dtype type, generate_config *out)
{
    const value *v = stage_argument_of(call, ARGUMENT_FILL);
    const ast *written = ast_kid(call->node, 2)->kids[0];
    diag_list *diags = stage_diags(call);
    size_t i = 0;
    while (i < FILLS && fills[i].type != type)
        i++;
    const char *name = dtype_row_of(type)->name;
    diag *d;
    if (v->kind == VALUE_ERROR)
        return false;
    if (i == FILLS) {
        d = diag_add(diags, E_MEMSET, call->node->name_range, "memset fills no %s elements", name);
        diag_help(diags, d, "it fills i4, i8, i16, i32, f8e4m3, bf16 and f32");
        return false;
    }
    if (v->kind != fills[i].kind || (fills[i].constant && !is_constant(written))) {
        bool called = v->kind == fills[i].kind;
        d = diag_add(diags, called ? E_MEMSET : E_CONST, written->range,
                     called ? "memset value of %s is a call on the device: it must be a constant"
                            : "memset of %s takes a constant of it, got %s",
                     name, value_kind_name(v));
        diag_help(diags, d, called ? "write const { .. } around it" : "write it as %s",
                  fills[i].constant            ? fills[i].constant
                  : fills[i].kind == VALUE_INT ? "an integer: 1"
                                               : "a float: 1.5");
        return false;
    }
    unsigned bits = dtype_row_of(type)->bits;
    uint32_t code;
    if (v->kind == VALUE_INT) {
        int64_t half = INT64_C(1) << (bits - 1);
        if (v->number < -half || v->number >= half) {
            diag_add(diags, E_CONST, written->range, "%lld does not fit %s, which holds %lld to %lld", (long long)v->number, name,
                     (long long)-half, (long long)half - 1);
            return false;
        }
        code = (uint32_t)v->number;
        out->number = (scalar_step){SCALAR_CONSTANT_I32, code};
    } else {
        float x = (float)v->real;
        code = f32_bits(x);
        out->number = (scalar_step){SCALAR_CONSTANT_F32, code};
        if (bits < 32)
            code = float_code(x, fills[i].exponent_bits, fills[i].fraction_bits);
    }
    if (bits < 32)
        code &= (1u << bits) - 1;
    out->word = 0;
    for (unsigned at = 0; at < 32; at += bits)
        out->word |= (int64_t)code << at;
    out->range = written->range;
    return true;
}

value stage_make_memset(const stage_call *call)
{
    arena *a = scope_context_of(call->scope)->arena;
    op *of = call->receiver.op;
    diag_list *diags = stage_diags(call);
    generate_config *word = ARENA_NEW(a, generate_config);
    if (!call->receiver.writable) {
        diag *d = diag_add(diags, E_VIEW_READ_ONLY, call->node->name_range, "`memset` writes into this view, which is only read");
        stage_help_view(diags, d, ast_kid(call->node, 0), true);
        return refuse(call);
    }
    if (of->kind == IR_VIEW) {
        diag *d = diag_add(diags, E_MEMSET, call->node->name_range, "memset fills a whole tensor, and this view is a part of `%s`",
                           op_root(of)->name);
        diag_help(diags, d, "fill a tensor of the part's size, and copy it there with to_dm_view");
        return refuse(call);
    }
    if (!fill_word(call, of->out.dtype, word))
        return refuse(call);
    op *o = kernel_add(call->kernel, a, IR_GENERATE, CONTEXT_SUB, call->node->name_range);
    o->out = of->out;
    o->out.kind = TENSOR_COMMIT_TRIM;
    o->out.part[ELEMENT] = NULL;
    o->releases = call->form->dialects;
    o->generate = word;
    op *commit = kernel_add(call->kernel, a, IR_COMMIT, CONTEXT_SUB, call->node->name_range);
    commit->out = of->out;
    commit->releases = o->releases;
    op_add_operand(commit, a, OPERAND_INPUT, o);
    op_add_operand(commit, a, OPERAND_INTO, of);
    commit->name = of->name;
    o->bad = commit->bad = of->bad;
    return (value){.kind = VALUE_UNIT};
}
