/* What each stage adds to the kernel: one function for each STAGE row. */
#include "frontend/stage_build.h"

#include <string.h>

/* ---- reading the call ---- */

diag_list *stage_diags(const stage_call *call)
{
    return scope_context_of(call->scope)->diags;
}

static op *begin_op(const stage_call *call, op *o, op *input, const tensor *out)
{
    o->out = *out;
    op_add_operand(o, scope_context_of(call->scope)->arena, OPERAND_INPUT, input);
    o->releases = call->form->dialects;
    if (input->bad)
        o->bad = true;
    return o;
}

op *stage_add_step(const stage_call *call, op_kind kind, context c, op *input, const tensor *out)
{
    return begin_op(call, kernel_add(call->kernel, scope_context_of(call->scope)->arena, kind, c, call->node->name_range), input, out);
}

op *stage_add_op(const stage_call *call, context c, const tensor *out)
{
    return stage_add_step(call, call->row->operation, c, call->receiver.op, out);
}

/* The receiver's tensor as one of the kind that the row gives; what the form names is not known yet. */
static tensor new_tensor(const stage_call *call)
{
    const tensor *in = &call->receiver.op->out;
    tensor out = *in;
    if (call->row->gives != GIVES_SAME)
        out.kind = (tensor_kind)call->row->gives;
    memset(out.part, 0, sizeof out.part);
    for (const component *part = tensor_kind_components(out.kind); *part < MAPPING_COMPONENTS; part++)
        out.part[*part] = in->part[*part];
    for (unsigned i = 0; i < call->form->type_count; i++)
        if (stage_type_component(call->form->types[i]) < MAPPING_COMPONENTS)
            out.part[stage_type_component(call->form->types[i])] = NULL;
    return out;
}

op *stage_new_op(const stage_call *call, context c)
{
    tensor out = new_tensor(call);
    return stage_add_op(call, c, &out);
}

/* An operation that the next one takes over. */
op *stage_new_note(const stage_call *call)
{
    tensor out = new_tensor(call);
    return begin_op(call,
                    kernel_note(call->kernel, scope_context_of(call->scope)->arena, call->row->operation, call->receiver.op->context,
                                call->node->name_range),
                    call->receiver.op, &out);
}

/* The argument of that meaning; NULL: the form has none. */
static const value *argument_of(const stage_call *call, stage_argument argument)
{
    for (unsigned i = 0; i < call->form->argument_count; i++)
        if (call->form->arguments[i] == argument)
            return &call->args[i];
    return NULL;
}

static const ast *type_argument_at(const stage_call *call, unsigned index)
{
    const ast *args = ast_kid(call->node, 1);
    return ast_is(args, AST_GENERIC_ARGS) && index < args->kid_count ? args->kids[index] : NULL;
}

const ast *stage_type_argument(const stage_call *call, stage_type type)
{
    for (unsigned i = 0; i < call->form->type_count; i++)
        if (call->form->types[i] == type)
            return type_argument_at(call, i);
    return NULL;
}

const value *stage_argument_of(const stage_call *call, stage_argument wanted)
{
    for (unsigned i = 0; i < call->form->argument_count; i++)
        if (call->form->arguments[i] == wanted)
            return &call->args[i];
    return NULL;
}

/* `_` and absent leave the part. False: diagnosed. */
static bool take_part(const stage_call *call, op *o, const ast *arg, component c)
{
    if (!arg)
        return true;
    bool infer = false;
    const mapping *m = scope_mapping(call->scope, arg, &infer);
    if (m) {
        o->out.part[c] = m;
        o->parts[c] = arg->range;
        o->parts_generic = o->parts_generic || scope_is_generic(call->scope);
    }
    return m || infer;
}

static bool take_dtype(const stage_call *call, op *o, const ast *arg)
{
    bool infer = false;
    return !arg || scope_dtype(call->scope, arg, &o->out.dtype, &infer) || infer;
}

/* The element type that the argument leaves open, or that was refused, is the expected one. */
static void adopt_dtype(const stage_call *call, op *o, const ast *arg, bool known)
{
    const declared *e = call->expected;
    if ((!known || !arg || ast_is(arg, AST_TYPE_INFER)) && e && e->kind == DECLARED_TENSOR && e->has_dtype)
        o->out.dtype = e->tensor.dtype;
}

/* The element type among the arguments of which the first one is a mapping, or NULL: they stand in another order. */
static const ast *dtype_after(const stage_call *call)
{
    dtype type;
    bool takes = call->form->type_count > 0 && call->form->types[0] == TYPE_DTYPE;
    for (unsigned i = 1; takes && type_argument_at(call, 0) && ast_is(type_argument_at(call, 0), AST_MAP) && i < call->form->type_count;
         i++) {
        const ast *arg = type_argument_at(call, i), *last = arg ? ast_last_segment(arg) : NULL;
        if (last && dtype_by_name(last->text, &type))
            return last;
    }
    return NULL;
}

static bool read_types(const stage_call *call, op *o)
{
    bool ok = true;
    const ast *behind = dtype_after(call);
    if (behind) {
        diag *d = diag_add(stage_diags(call), E_TYPE, behind->range, "the element type `%s` stands after a mapping", behind->text);
        diag_help(stage_diags(call), d, "it comes first: %s::<%s, ..>", call->node->text, behind->text);
        adopt_dtype(call, o, NULL, false);
        return false;
    }
    for (unsigned i = 0; i < call->form->type_count; i++) {
        const ast *arg = type_argument_at(call, i);
        stage_type type = call->form->types[i];
        if (type == TYPE_DTYPE) {
            ok = take_dtype(call, o, arg) && ok;
            adopt_dtype(call, o, arg, ok);
        } else if (stage_type_component(type) < MAPPING_COMPONENTS) {
            ok = take_part(call, o, arg, stage_type_component(type)) && ok;
        }
    }
    return ok;
}

/* Of memory that is `open`: the element type, and whether all is known now. */
static void settle(op *o, const declared *e)
{
    if (o->open_dtype && e->has_dtype) {
        o->out.dtype = e->tensor.dtype;
        o->open_dtype = false;
    }
    o->open = o->open_dtype;
    for (const component *c = tensor_kind_components(o->out.kind); *c < MAPPING_COMPONENTS; c++)
        o->open = o->open || !o->out.part[*c];
}

void stage_adopt(op *o, const declared *e)
{
    if (!e || e->kind != DECLARED_TENSOR || e->tensor.kind != o->out.kind)
        return;
    for (int c = 0; c < MAPPING_COMPONENTS; c++)
        if (!o->out.part[c] && e->tensor.part[c]) {
            o->out.part[c] = e->tensor.part[c];
            o->parts[c] = e->parts[c];
            o->parts_elsewhere = o->parts_elsewhere || e->by_name;
            o->parts_generic = o->parts_generic || e->generic;
        }
    if (o->open)
        settle(o, e);
}

bool stage_settle(op *o, const declared *e)
{
    if (o->open)
        stage_adopt(o, e);
    return !o->open;
}

void stage_refuse_open(kernel *k, diag_list *diags, op *o)
{
    diag *d = diag_add(diags, E_INFER, o->range, "the type of the tensor that is made here cannot be inferred");
    diag_help(diags, d, "write the whole type");
    o->open = o->open_dtype = false;
    o->bad = k->bad = true;
}

bool stage_take_types(const stage_call *call, op *o)
{
    bool ok = read_types(call, o);
    stage_adopt(o, call->expected);
    return ok;
}

bool stage_require_parts(const stage_call *call, op *o, unsigned parts)
{
    const char *missing[MAPPING_COMPONENTS];
    size_t count = 0;
    for (const component *c = tensor_kind_components(o->out.kind); *c < MAPPING_COMPONENTS; c++)
        if ((parts >> *c & 1) && !o->out.part[*c])
            missing[count++] = component_word(*c);
    if (count == 0)
        return true;
    o->bad = true;
    call->kernel->bad = true;
    const declared *e = call->expected;
    if (e && e->kind == DECLARED_ERROR) /* the annotation was diagnosed */
        return false;
    if (e && e->kind == DECLARED_TENSOR && e->tensor.kind != o->out.kind &&
        !stage_check_type(call->scope, call->node->name_range, &o->out, e))
        return false;
    arena *a = scope_context_of(call->scope)->arena;
    strbuf list;
    strbuf_init(&list, a);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", missing[i]);
    diag *d = diag_add(stage_diags(call), E_INFER, call->node->name_range, "%s of %s cannot be inferred; what is known: %s", list.text,
                       call->node->text, tensor_text(&o->out, a));
    diag_help(stage_diags(call), d, "annotate the variable with its type, or write %s::<..>()", call->node->text);
    return false;
}

/* The stages that lead from one type to the other, as releases since 0.6 write them; NULL: no short way. */
static const char *stages_between(tensor_kind have, tensor_kind want)
{
    static const struct {
        tensor_kind have, want;
        const char *stages;
    } rows[] = {
        {TENSOR_HBM, TENSOR_DM, ".to_dm(&mut @ctx.tdma)"}, {TENSOR_DM, TENSOR_HBM, ".to_hbm(&mut @ctx.tdma)"},
        {TENSOR_COLLECT, TENSOR_TRF, ".to_trf()"},         {TENSOR_COMMIT_TRIM, TENSOR_DM, ".commit()"},
        {TENSOR_COMMIT_CAST, TENSOR_DM, ".commit()"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].have == have && rows[i].want == want)
            return rows[i].stages;
    return want == TENSOR_DM && stage_takes("commit_trim", have) ? ".commit_trim::<Packet>().commit()" : NULL;
}

bool stage_check_type(scope *s, src_range range, const tensor *t, const declared *expected)
{
    scope_context *c = scope_context_of(s);
    if (!expected || expected->is_hint || expected->kind == DECLARED_NONE || expected->kind == DECLARED_ERROR)
        return true;
    if (expected->kind != DECLARED_TENSOR || expected->tensor.kind != t->kind) {
        diag *d = diag_add(c->diags, E_MISMATCH, range, "the expression is a %s, but a %s is declared", tensor_kind_word(t->kind),
                           expected->kind == DECLARED_TENSOR ? tensor_kind_word(expected->tensor.kind) : "value of another type");
        diag_note(c->diags, d, expected->range, "declared here");
        const char *stages =
            expected->kind == DECLARED_TENSOR && c->dialect > DIALECT_APRIL ? stages_between(t->kind, expected->tensor.kind) : NULL;
        if (stages)
            diag_help(c->diags, d, "write %s after it", stages);
        else
            diag_help(c->diags, d, "declare a %s, or add the stage that gives what is declared", tensor_kind_word(t->kind));
        return false;
    }
    if (expected->has_dtype && expected->tensor.dtype != t->dtype) {
        diag *d = diag_add(c->diags, E_MISMATCH, range, "the expression has %s elements, but %s is declared", dtype_row_of(t->dtype)->name,
                           dtype_row_of(expected->tensor.dtype)->name);
        diag_note(c->diags, d, expected->range, "declared here");
        diag_help(c->diags, d, "declare %s; fetch and cast convert", dtype_row_of(t->dtype)->name);
        return false;
    }
    bool ok = true;
    for (int k = 0; k < MAPPING_COMPONENTS; k++) {
        const mapping *want = expected->tensor.part[k], *have = t->part[k];
        if (!want || !have || mapping_equal(c->mappings, want, have))
            continue;
        diag *d = diag_add(c->diags, E_MISMATCH, range, "%s is m![%s], but m![%s] is declared", component_word((component)k),
                           mapping_text(have, c->arena), mapping_text(want, c->arena));
        diag_note(c->diags, d, expected->parts[k], "declared here");
        diag_help(c->diags, d, "declare m![%s]", mapping_text(have, c->arena));
        ok = false;
    }
    return ok;
}

/* What differs was reported; what follows is judged by what was declared. */
static void assume(op *o, const declared *e)
{
    if (e->kind != DECLARED_TENSOR || e->tensor.kind != o->out.kind)
        return;
    if (e->has_dtype)
        o->out.dtype = e->tensor.dtype;
    for (int c = 0; c < MAPPING_COMPONENTS; c++)
        if (e->tensor.part[c])
            o->out.part[c] = e->tensor.part[c];
}

/* On a device Cluster and Slice have one size each. Of two that differ in it one is wrong by itself, and passes/verify.c says which: it is
 * not reported a second time that they differ. */
static void adopt_units(const stage_call *call, op *o)
{
    const declared *e = call->expected;
    bool same = e && e->kind == DECLARED_TENSOR && !e->is_hint && e->tensor.kind == o->out.kind;
    for (component c = CLUSTER; same && call->kernel->is_device && c <= SLICE; c++)
        if (e->tensor.part[c] && o->out.part[c] && e->tensor.part[c]->size != o->out.part[c]->size) {
            o->out.part[c] = e->tensor.part[c];
            o->parts[c] = e->parts[c];
            o->parts_elsewhere = o->parts_elsewhere || e->by_name;
            o->parts_generic = o->parts_generic || e->generic;
        }
}

value stage_finish(const stage_call *call, op *o, bool ok)
{
    adopt_units(call, o);
    bool unknown = call->expected && call->expected->kind == DECLARED_ERROR; /* what was meant is not known: judge nothing */
    bool fits = !ok || unknown || stage_check_type(call->scope, call->node->name_range, &o->out, call->expected);
    if (!ok || unknown || !fits) {
        o->bad = true;
        call->kernel->bad = true;
    }
    if (!fits)
        assume(o, call->expected);
    return (value){.kind = VALUE_TENSOR, .op = o};
}

/* ---- stages ---- */

enum { NEEDS_TIME = 1u << TIME, NEEDS_PACKET = 1u << PACKET, NEEDS_ELEMENT = 1u << ELEMENT };

value stage_make_fetch(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.context);
    if (call->receiver.second)
        op_add_operand(o, scope_context_of(call->scope)->arena, OPERAND_SECOND, call->receiver.second);
    o->interleave = call->receiver.interleave;
    bool ok = stage_take_types(call, o);
    if (!ast_is(ast_kid(call->node, 1), AST_GENERIC_ARGS) && !scope_context_of(call->scope)->one_dialect) /* of whatever release */
        adopt_dtype(call, o, NULL, false);
    return stage_finish(call, o, ok && stage_require_parts(call, o, NEEDS_TIME | NEEDS_PACKET));
}

/* What is not written in a stream's stage follows from its rule: the passes fill it in when nothing is expected. */
static value stage_of_stream(const stage_call *call, unsigned parts)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    bool ok = stage_take_types(call, o);
    return stage_finish(call, o, ok && stage_require_parts(call, o, parts));
}

/* Digits of Time become digits of the units: they are recorded in the fetch itself, and its rule derives where each unit begins. */
static value lift(const stage_call *call, component level)
{
    op *o = call->receiver.op;
    scope_context *c = scope_context_of(call->scope);
    diag *d = NULL;
    if (o->kind != IR_FETCH)
        d = diag_add(c->diags, E_UNSUPPORTED, call->node->name_range, "`%s` of a stream that comes from outside is not supported",
                     call->form->name);
    else if (o->lift && o->lift->calls[o->lift->call_count - 1].level >= level)
        d = diag_add(c->diags, E_FETCH_LIFT, call->node->name_range, "`%s` stands after a lift that comes later, or itself",
                     call->form->name);
    if (d) {
        diag_help(c->diags, d, "%s",
                  o->kind != IR_FETCH
                      ? "it is lifted where it is fetched"
                      : "the order is fetch, fetch_chip_lift, fetch_cluster_lift, fetch_slice_lift, each once, and then the rest");
        call->kernel->bad = true;
        return stage_error;
    }
    if (!o->lift)
        o->lift = ARENA_NEW(c->arena, lift_config);
    lift_call *l = &o->lift->calls[o->lift->call_count++];
    *l = (lift_call){.level = level, .in = o->out.part[level], .in_time = o->out.part[TIME], .range = call->node->name_range};
    o->out.part[level] = o->out.part[TIME] = NULL;
    bool ok = stage_take_types(call, o);
    value v = stage_finish(call, o, ok && stage_require_parts(call, o, 1u << level | NEEDS_TIME));
    l->out = o->out.part[level];
    l->out_time = o->out.part[TIME];
    l->time_range = o->parts[TIME].file >= 0 ? o->parts[TIME] : l->range;
    return v;
}

STAGE_IS(fetch_chip_lift, lift(call, CHIP))
STAGE_IS(fetch_cluster_lift, lift(call, CLUSTER))
STAGE_IS(fetch_slice_lift, lift(call, SLICE))

#define PART(component) (1u << (component))
#define STREAM_STAGE(name, parts) STAGE_IS(name, stage_of_stream(call, parts))
#include "target/engines.def"

value stage_make_to_trf(const stage_call *call)
{
    op *o = stage_new_op(call, CONTEXT_SUB);
    const value *address = argument_of(call, ARGUMENT_TRF_ADDRESS);
    if (address)
        o->out.trf_address = (trf_address)address->number;
    else
        op_leave_unplaced(o);
    bool stream_kernel = true; /* no context was written: the store runs in the sub context */
    for (op *i = op_input(o); i; i = op_input(i))
        stream_kernel = stream_kernel && i->kind != IR_FETCH;
    if (!stream_kernel)
        o->context = op_input(o)->context;
    for (op *i = op_input(o); i && stream_kernel; i = op_input(i))
        i->context = CONTEXT_SUB;
    bool ok = stage_take_types(call, o);
    bool one = o->out.part[ROW] || o->out.part[ELEMENT]; /* the other follows from it: passes/infer.c */
    return stage_finish(call, o, ok && (one || stage_require_parts(call, o, 1u << ROW | NEEDS_ELEMENT)));
}

value stage_make_align(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.op->context), *weights = call->args[0].op;
    op_add_operand(o, scope_context_of(call->scope)->arena, OPERAND_WEIGHTS, weights);
    if (weights->kind == IR_TO_TRF && dtype_row_of(weights->out.dtype)->staged == DTYPE_I4 &&
        dtype_row_of(o->out.dtype)->staged == DTYPE_I8)
        weights->out.widened = true;
    bool ok = read_types(call, o);
    tensor element = {.kind = TENSOR_TRF, .dtype = weights->out.dtype};
    const ast *written = stage_type_argument(call, TYPE_WEIGHTS);
    bool infer = false;
    if (written)
        element.part[ELEMENT] = scope_mapping(call->scope, written, &infer);
    if (written && !element.part[ELEMENT] && !infer)
        ok = false;
    declared given = {.kind = DECLARED_TENSOR, .tensor = weights->out, .range = weights->range};
    for (int k = 0; k < MAPPING_COMPONENTS; k++)
        given.parts[k] = weights->parts[k].file >= 0 ? weights->parts[k] : weights->range;
    if (o->out.part[ROW])
        element.part[ROW] = o->out.part[ROW];
    ok = stage_check_type(call->scope, call->node->name_range, &element, &given) && ok;
    o->out.part[ROW] = weights->out.part[ROW];
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok && stage_require_parts(call, o, NEEDS_TIME | NEEDS_PACKET));
}

value stage_make_contract(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    o->out.dtype = dtype_row_of(o->out.dtype)->accumulates_in;
    return stage_finish(call, o, stage_take_types(call, o)); /* what it keeps follows from what is written: passes/infer.c */
}

value stage_make_contract_time(const stage_call *call)
{
    op *o = stage_new_note(call);
    return stage_finish(call, o, stage_take_types(call, o) && stage_require_parts(call, o, NEEDS_TIME));
}

value stage_make_accumulate(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    if (op_input(o)->kind == IR_CONTRACT_TIME)
        o->kept_time = op_take_over(o);
    o->accumulation = (accumulation_kind)call->args[0].number;
    return stage_finish(call, o, stage_take_types(call, o));
}

/* Where the call has the number of a field; SRC_NOWHERE: it computes it, or has it from elsewhere. */
static src_range number_range(const ast *argument, const char *field)
{
    src_range found = SRC_NOWHERE;
    for (uint32_t i = 1; ast_is(argument, AST_STRUCT_LITERAL) && i < argument->kid_count; i++) {
        const ast *init = argument->kids[i];
        if (strcmp(init->text, field) == 0 && ast_is(ast_kid(init, 0), AST_INT))
            found = ast_kid(init, 0)->range;
    }
    return found;
}

value stage_make_switch(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    const value *config = &call->args[0];
    o->route = ARENA_NEW(scope_context_of(call->scope)->arena, route_config);
    *o->route = (route_config){.topology = config->number, .slice1 = 1, .slice0 = 1, .time0 = 1, .ring_size = 1};
    o->route->ring_range = number_range(ast_kid(call->node, 2)->kids[0], "ring_size");
    const struct {
        const char *name;
        int64_t *to;
    } fields[] = {
        {"slice1", &o->route->slice1}, {"slice0", &o->route->slice0}, {"time0", &o->route->time0}, {"ring_size", &o->route->ring_size}};
    for (size_t i = 0; topology_row_at(i); i++)
        for (size_t k = 0; (int64_t)topology_row_at(i)->code == config->number && k < config->count; k++)
            for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
                if (strcmp(topology_row_at(i)->fields[k], fields[f].name) == 0)
                    *fields[f].to = config->items[k].number;
    bool ok = stage_take_types(call, o);
    return stage_finish(call, o, ok && stage_require_parts(call, o, PART(SLICE) | PART(TIME)));
}

/* The address that the call gives; without one it is not placed yet. */
static bool take_address(const stage_call *call, op *o)
{
    const value *v = argument_of(call, ARGUMENT_ADDRESS);
    if (!v) {
        op_leave_unplaced(o);
        return true;
    }
    o->out.address = v->number;
    if (v->number >= 0)
        return true;
    diag_add(stage_diags(call), E_CONST, call->node->name_range, "the address is %lld; addresses are at least 0", (long long)v->number);
    return false;
}

value stage_make_alloc(const stage_call *call)
{
    scope_context *c = scope_context_of(call->scope);
    const declared *e = call->expected;
    declared d = *call->receiver.type;
    if (d.kind != DECLARED_TENSOR || d.is_view || (d.tensor.kind != TENSOR_HBM && d.tensor.kind != TENSOR_DM)) {
        diag *x = diag_add(c->diags, E_UNSUPPORTED, call->node->name_range, "`%s` is not supported on this type", call->form->name);
        diag_help(c->diags, x, "it makes an HbmTensor or a DmTensor");
        call->kernel->bad = true;
        return stage_error;
    }
    op *o = kernel_add(call->kernel, c->arena, call->row->operation, CONTEXT_DMA, call->node->name_range);
    o->out = d.tensor;
    o->releases = call->form->dialects;
    memcpy(o->parts, d.parts, sizeof o->parts);
    o->parts_elsewhere = d.by_name;
    o->parts_generic = d.generic;
    o->open = true;
    o->open_dtype = !d.has_dtype;
    if (!stage_settle(o, &d) && !stage_settle(o, e) && e && e->kind == DECLARED_ERROR) { /* that was reported */
        o->bad = call->kernel->bad = true;
        return stage_error;
    }
    return stage_finish(call, o, take_address(call, o));
}

value stage_make_to_vrf(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    bool ok = take_address(call, o);
    ok = stage_take_types(call, o) && ok;
    return stage_finish(call, o, ok && stage_require_parts(call, o, NEEDS_ELEMENT));
}

/* commit takes over the settings of commit_cast and commit_trim. */
static void take_trim(op *o)
{
    if (op_input(o)->kind == IR_COMMIT_CAST)
        o->commit_cast = op_take_over(o)->commit_cast;
    if (op_input(o)->kind == IR_COMMIT_TRIM)
        o->trim = op_take_over(o);
}

value stage_make_commit_trim(const stage_call *call)
{
    op *o = stage_new_note(call);
    return stage_finish(call, o, stage_take_types(call, o) && stage_require_parts(call, o, NEEDS_PACKET));
}

value stage_make_commit(const stage_call *call)
{
    op *o = stage_new_op(call, call->receiver.op->context);
    take_trim(o);
    bool ok = take_address(call, o);
    ok = stage_take_types(call, o) && ok;
    return stage_finish(call, o, ok && stage_require_parts(call, o, NEEDS_ELEMENT));
}

/* What is written nowhere is as it was: a copy may go to other units, so what is expected comes first. */
static void keep_part(const stage_call *call, op *o, component c)
{
    if (!o->out.part[c])
        o->out.part[c] = call->receiver.op->out.part[c];
}

/* A copy into new memory: the units that neither it nor what is expected names are those of the source. */
static value copy_to(const stage_call *call, const component *units, size_t count)
{
    op *o = stage_new_op(call, CONTEXT_DMA);
    bool ok = take_address(call, o);
    ok = stage_take_types(call, o) && ok;
    unsigned needs = NEEDS_ELEMENT;
    for (size_t i = 0; i < count; i++) {
        keep_part(call, o, units[i]);
        needs |= 1u << units[i];
    }
    return stage_finish(call, o, ok && stage_require_parts(call, o, needs));
}

value stage_make_to_dm(const stage_call *call)
{
    return copy_to(call, (const component[]){CHIP, CLUSTER, SLICE}, 3);
}

value stage_make_to_spm(const stage_call *call)
{
    return copy_to(call, (const component[]){CHIP, CLUSTER, PE}, 3);
}

value stage_make_to_hbm(const stage_call *call)
{
    return copy_to(call, (const component[]){CHIP}, 1);
}

/* A write into a view: what is written is known, nothing is inferred. */
static value finish_write(const stage_call *call, op *o, const value *view)
{
    op_add_operand(o, scope_context_of(call->scope)->arena, OPERAND_INTO, view->op);
    o->name = view->op->name;
    if (view->op->bad)
        o->bad = true;
    if (o->out.dtype != op_input(o)->out.dtype && !o->bad && o->kind != IR_COMMIT) {
        diag_add(stage_diags(call), E_TYPE, call->node->name_range, "%s elements are copied into a view of %s",
                 dtype_row_of(op_input(o)->out.dtype)->name, dtype_row_of(o->out.dtype)->name);
        o->bad = call->kernel->bad = true;
    }
    return (value){.kind = VALUE_UNIT};
}

/* Into memory that is `open`: the stream's elements and units, but for the parts that the call names. */
static bool settle_by_commit(const stage_call *call, op *memory)
{
    declared e = {.kind = DECLARED_TENSOR,
                  .has_dtype = true,
                  .tensor = {.kind = TENSOR_DM, .dtype = call->receiver.op->out.dtype},
                  .generic = scope_is_generic(call->scope)};
    for (const component *c = tensor_kind_components(TENSOR_DM); *c < MAPPING_COMPONENTS; c++) {
        e.parts[*c] = SRC_NOWHERE;
        e.tensor.part[*c] = *c == ELEMENT ? NULL : call->receiver.op->out.part[*c];
    }
    for (unsigned i = 0; memory->open && i < call->form->type_count; i++) {
        const ast *written = type_argument_at(call, i);
        bool infer = false;
        e.tensor.part[stage_type_component(call->form->types[i])] = written ? scope_mapping(call->scope, written, &infer) : NULL;
        e.parts[stage_type_component(call->form->types[i])] = written ? written->range : SRC_NOWHERE;
    }
    if (!stage_settle(memory, &e))
        stage_refuse_open(call->kernel, stage_diags(call), memory);
    return !memory->bad;
}

value stage_make_commit_view(const stage_call *call)
{
    const value *view = &call->args[0];
    if (!settle_by_commit(call, view->op))
        return stage_error;
    op *o = stage_add_op(call, call->receiver.op->context, &view->op->out);
    take_trim(o);
    tensor element = {.kind = TENSOR_DM, .dtype = o->out.dtype};
    const ast *written = stage_type_argument(call, TYPE_ELEMENT);
    bool infer = false;
    if (written)
        element.part[ELEMENT] = scope_mapping(call->scope, written, &infer);
    declared given = {.kind = DECLARED_TENSOR, .tensor = view->op->out, .range = view->op->range};
    for (int k = 0; k < MAPPING_COMPONENTS; k++)
        given.parts[k] = view->op->range;
    if ((written && !element.part[ELEMENT] && !infer) || !stage_check_type(call->scope, call->node->name_range, &element, &given))
        o->bad = call->kernel->bad = true;
    return finish_write(call, o, view);
}

static value copy_into(const stage_call *call)
{
    const value *view = &call->args[1];
    return finish_write(call, stage_add_op(call, CONTEXT_DMA, &view->op->out), view);
}

value stage_make_to_dm_view(const stage_call *call)
{
    return copy_into(call);
}

value stage_make_to_hbm_view(const stage_call *call)
{
    return copy_into(call);
}
