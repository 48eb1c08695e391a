#include "frontend/stage.h"

#include <string.h>

#include "frontend/constant.h"
#include "frontend/index.h"
#include "frontend/stage_build.h"
#include "support/choice.h"

typedef struct stage_row {
    const char *name;
    value_kind receiver;       /* VALUE_TENSOR: one of `kinds` */
    uint32_t kinds;            /* bit per tensor_kind */
    unsigned generics;         /* type arguments, all or none */
    const char *arguments;     /* of the call: c context, i integer, t TRF tensor, v DM view, w DM view to write, h HBM view to write,
                                * n number, a TrfAddress, k AccumulationKind */
    value (*build)(const stage_call *call);
} stage_row;

#define ON(kind) (1u << (kind))

/* ---- reading the call ---- */

diag_list *stage_diags(const stage_call *call)
{
    return scope_context_of(call->scope)->diags;
}

op *stage_add_op(const stage_call *call, op_kind kind, context c, const tensor *out)
{
    op *o = kernel_add(call->kernel, scope_context_of(call->scope)->arena, kind, c, call->node->name_range);
    o->out = *out;
    o->input = call->receiver.op;
    if (o->input->bad)
        o->bad = true;
    return o;
}

const ast *stage_generic(const stage_call *call, unsigned index)
{
    const ast *args = ast_kid(call->node, 1);
    return ast_is(args, AST_GENERIC_ARGS) && index < args->kid_count ? args->kids[index] : NULL;
}

bool stage_take_part(const stage_call *call, op *o, unsigned index, component c)
{
    const ast *arg = stage_generic(call, index);
    if (!arg)
        return true;
    bool infer = false;
    const mapping *m = scope_mapping(call->scope, arg, &infer);
    if (m) {
        o->out.part[c] = m;
        o->parts[c] = arg->range;
    }
    return m || infer;
}

static bool take_dtype(const stage_call *call, op *o, unsigned index)
{
    const ast *arg = stage_generic(call, index);
    bool infer = false;
    return !arg || scope_dtype(call->scope, arg, &o->out.dtype, &infer) || infer;
}

/* The element type that the first argument leaves open, or that was refused, is the expected one. */
static void adopt_dtype(const stage_call *call, op *o, bool known)
{
    const ast *arg = stage_generic(call, 0);
    const declared *e = call->expected;
    if ((!known || !arg || ast_is(arg, AST_TYPE_INFER)) && e && e->kind == DECLARED_TENSOR && e->has_dtype)
        o->out.dtype = e->tensor.dtype;
}

void stage_adopt(op *o, const declared *e)
{
    if (!e || e->kind != DECLARED_TENSOR || e->tensor.kind != o->out.kind)
        return;
    for (int c = 0; c < MAPPING_COMPONENTS; c++)
        if (!o->out.part[c] && e->tensor.part[c]) {
            o->out.part[c] = e->tensor.part[c];
            o->parts[c] = e->parts[c];
        }
}

bool stage_require_parts(const stage_call *call, op *o, const char *letters)
{
    const char *missing[MAPPING_COMPONENTS];
    size_t count = 0;
    for (; *letters; letters++)
        if (!o->out.part[component_of_letter(*letters)])
            missing[count++] = component_parameter(component_of_letter(*letters));
    if (count == 0)
        return true;
    o->bad = true;
    call->kernel->bad = true;
    if (call->expected && call->expected->kind == DECLARED_ERROR) /* the annotation was diagnosed */
        return false;
    arena *a = scope_context_of(call->scope)->arena;
    strbuf list;
    strbuf_init(&list, a);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", missing[i]);
    diag *d = diag_add(stage_diags(call), E_INFER, call->node->name_range, "%s of %s cannot be inferred; what is known: %s", list.text, call->node->text,
                       tensor_text(&o->out, a));
    diag_help(stage_diags(call), d, "annotate the variable with its type, or write %s::<..>()", call->node->text);
    return false;
}

bool stage_check_type(scope *s, src_range range, const tensor *t, const declared *expected)
{
    scope_context *c = scope_context_of(s);
    if (!expected || expected->is_hint || expected->kind == DECLARED_NONE || expected->kind == DECLARED_ERROR)
        return true;
    if (expected->kind != DECLARED_TENSOR || expected->tensor.kind != t->kind) {
        diag *d = diag_add(c->diags, E_MISMATCH, range, "the expression is a %s, but a %s is declared", tensor_kind_name(t->kind),
                           expected->kind == DECLARED_TENSOR ? tensor_kind_name(expected->tensor.kind) : "value of another type");
        diag_note(c->diags, d, expected->range, "declared here");
        diag_help(c->diags, d, "declare a %s, or add the stage that gives what is declared", tensor_kind_name(t->kind));
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
        diag *d = diag_add(c->diags, E_MISMATCH, range, "%s is m![%s], but m![%s] is declared", component_parameter((component)k),
                           mapping_text(have, c->arena), mapping_text(want, c->arena));
        diag_note(c->diags, d, expected->parts[k], "declared here");
        diag_help(c->diags, d, "declare m![%s]", mapping_text(have, c->arena));
        ok = false;
    }
    return ok;
}

/* What differs was said; what follows is judged by what was declared. */
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
 * not said a second time that they differ. */
static void adopt_units(const stage_call *call, op *o)
{
    const declared *e = call->expected;
    bool same = e && e->kind == DECLARED_TENSOR && !e->is_hint && e->tensor.kind == o->out.kind;
    for (component c = CLUSTER; same && call->kernel->is_device && c <= SLICE; c++)
        if (e->tensor.part[c] && o->out.part[c] && e->tensor.part[c]->size != o->out.part[c]->size) {
            o->out.part[c] = e->tensor.part[c];
            o->parts[c] = e->parts[c];
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

static value build_fetch(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_FETCH;
    out.part[ELEMENT] = NULL;
    op *o = stage_add_op(call, IR_FETCH, call->receiver.context, &out);
    o->second = call->receiver.second;
    o->interleave = call->receiver.interleave;
    bool ok = take_dtype(call, o, 0);
    adopt_dtype(call, o, ok);
    ok = stage_take_part(call, o, 1, TIME) && ok;
    ok = stage_take_part(call, o, 2, PACKET) && ok;
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok && stage_require_parts(call, o, "tp"));
}

/* Collect's, accumulate's and cast's missing parts follow from their rules; the passes fill them in when nothing is expected. */
static value build_collect(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_COLLECT;
    out.part[TIME] = out.part[PACKET] = NULL;
    op *o = stage_add_op(call, IR_COLLECT, call->receiver.op->context, &out);
    bool ok = stage_take_part(call, o, 0, TIME);
    ok = stage_take_part(call, o, 1, PACKET) && ok;
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok);
}

static value build_to_trf(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_TRF;
    out.part[TIME] = out.part[PACKET] = NULL;
    out.trf_address = (trf_address)call->args[0].number;
    op *o = stage_add_op(call, IR_TO_TRF, CONTEXT_SUB, &out);
    bool stream_kernel = true; /* no context was written: the store runs in the sub context */
    for (op *i = o->input; i; i = i->input)
        stream_kernel = stream_kernel && i->kind != IR_FETCH;
    if (!stream_kernel)
        o->context = o->input->context;
    for (op *i = o->input; i && stream_kernel; i = i->input)
        i->context = CONTEXT_SUB;
    bool ok = stage_take_part(call, o, 0, ROW);
    ok = stage_take_part(call, o, 1, ELEMENT) && ok;
    stage_adopt(o, call->expected);
    bool one = o->out.part[ROW] || o->out.part[ELEMENT]; /* the other follows from it: passes/infer.c */
    return stage_finish(call, o, ok && (one || stage_require_parts(call, o, "re")));
}

static value build_align(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    const op *weights = call->args[0].op;
    out.kind = TENSOR_ALIGNED;
    out.part[TIME] = out.part[PACKET] = NULL;
    op *o = stage_add_op(call, IR_ALIGN, call->receiver.op->context, &out);
    o->weights = call->args[0].op;
    bool ok = stage_take_part(call, o, 0, TIME);
    ok = stage_take_part(call, o, 1, PACKET) && ok;
    ok = stage_take_part(call, o, 2, ROW) && ok;
    tensor element = {.kind = TENSOR_TRF, .dtype = weights->out.dtype};
    const ast *written = stage_generic(call, 3);
    bool infer = false;
    if (written)
        element.part[ELEMENT] = scope_mapping(call->scope, written, &infer);
    if (written && !element.part[ELEMENT] && !infer)
        ok = false;
    declared given = {.kind = DECLARED_TENSOR, .tensor = weights->out, .range = weights->range};
    for (int k = 0; k < MAPPING_COMPONENTS; k++)
        given.parts[k] = weights->parts[k].file >= 0 ? weights->parts[k] : weights->range;
    if (o->out.part[ROW]) {
        element.part[ROW] = o->out.part[ROW];
    }
    ok = stage_check_type(call->scope, call->node->name_range, &element, &given) && ok;
    o->out.part[ROW] = weights->out.part[ROW];
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok && stage_require_parts(call, o, "tp"));
}

static value build_contract(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_CONTRACTION;
    out.dtype = dtype_row_of(out.dtype)->accumulates_in;
    out.part[PACKET] = NULL;
    op *o = stage_add_op(call, IR_CONTRACT, call->receiver.op->context, &out);
    bool ok = stage_take_part(call, o, 0, PACKET);
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok); /* what it keeps follows from what is written: passes/infer.c */
}

static value build_accumulate(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_ACCUMULATION;
    out.part[ROW] = out.part[TIME] = out.part[PACKET] = NULL;
    op *o = stage_add_op(call, IR_ACCUMULATE, call->receiver.op->context, &out);
    o->accumulation = (accumulation_kind)call->args[0].number;
    bool ok = stage_take_part(call, o, 0, TIME);
    ok = stage_take_part(call, o, 1, PACKET) && ok;
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok);
}

static value build_cast(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_CAST;
    out.part[PACKET] = NULL;
    op *o = stage_add_op(call, IR_CAST, call->receiver.op->context, &out);
    bool ok = take_dtype(call, o, 0);
    adopt_dtype(call, o, ok);
    ok = stage_take_part(call, o, 1, PACKET) && ok;
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok);
}

static bool take_address(const stage_call *call, op *o, const value *v)
{
    if (v->number < 0) {
        diag_add(stage_diags(call), E_CONST, call->node->name_range, "the address is %lld; addresses are at least 0", (long long)v->number);
        return false;
    }
    o->out.address = v->number;
    return true;
}

static value build_commit(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_DM;
    out.part[ROW] = out.part[TIME] = out.part[PACKET] = NULL;
    op *o = stage_add_op(call, IR_COMMIT, call->receiver.op->context, &out);
    bool ok = take_address(call, o, &call->args[0]);
    ok = stage_take_part(call, o, 0, ELEMENT) && ok;
    stage_adopt(o, call->expected);
    return stage_finish(call, o, ok && stage_require_parts(call, o, "e"));
}

/* What is written nowhere is as it was: a copy may go to other units, so what is expected comes first. */
static void keep_part(const stage_call *call, op *o, component c)
{
    if (!o->out.part[c])
        o->out.part[c] = call->receiver.op->out.part[c];
}

static value build_to_dm(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_DM;
    out.part[CLUSTER] = out.part[SLICE] = out.part[ELEMENT] = NULL;
    op *o = stage_add_op(call, IR_TO_DM, CONTEXT_DMA, &out);
    bool ok = take_address(call, o, &call->args[1]);
    ok = stage_take_part(call, o, 0, CLUSTER) && ok;
    ok = stage_take_part(call, o, 1, SLICE) && ok;
    ok = stage_take_part(call, o, 2, ELEMENT) && ok;
    stage_adopt(o, call->expected);
    keep_part(call, o, CLUSTER);
    keep_part(call, o, SLICE);
    return stage_finish(call, o, ok && stage_require_parts(call, o, "lse"));
}

static value build_to_hbm(const stage_call *call)
{
    tensor out = call->receiver.op->out;
    out.kind = TENSOR_HBM;
    out.part[CLUSTER] = out.part[SLICE] = out.part[ELEMENT] = NULL;
    op *o = stage_add_op(call, IR_TO_HBM, CONTEXT_DMA, &out);
    const ast *args = ast_kid(call->node, 1);
    bool written = ast_is(args, AST_GENERIC_ARGS), two = written && args->kid_count == 2;
    bool ok = take_address(call, o, &call->args[1]);
    if (two || !written)
        o->out.part[CHIP] = NULL;
    if (two)
        ok = stage_take_part(call, o, 0, CHIP) && ok;
    ok = stage_take_part(call, o, two ? 1 : 0, ELEMENT) && ok;
    stage_adopt(o, call->expected);
    keep_part(call, o, CHIP);
    return stage_finish(call, o, ok && stage_require_parts(call, o, "e"));
}

/* A write into a view: what is written is known, nothing is inferred. */
static value finish_write(const stage_call *call, op *o, const value *view)
{
    o->into = view->op;
    o->name = view->op->name;
    if (view->op->bad)
        o->bad = true;
    if (o->out.dtype != o->input->out.dtype && !o->bad && o->kind != IR_COMMIT) {
        diag_add(stage_diags(call), E_TYPE, call->node->name_range, "%s elements are copied into a view of %s", dtype_row_of(o->input->out.dtype)->name,
                 dtype_row_of(o->out.dtype)->name);
        o->bad = call->kernel->bad = true;
    }
    return (value){.kind = VALUE_UNIT};
}

static value build_commit_view(const stage_call *call)
{
    const value *view = &call->args[0];
    op *o = stage_add_op(call, IR_COMMIT, call->receiver.op->context, &view->op->out);
    tensor element = {.kind = TENSOR_DM, .dtype = o->out.dtype};
    const ast *written = stage_generic(call, 0);
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

static value build_copy_view(const stage_call *call)
{
    const value *view = &call->args[1];
    op *o = stage_add_op(call, view->op->out.kind == TENSOR_DM ? IR_TO_DM : IR_TO_HBM, CONTEXT_DMA, &view->op->out);
    return finish_write(call, o, view);
}

/* ---- the table ---- */

enum { ANY_STREAM_TO_COMMIT = ON(TENSOR_FETCH) | ON(TENSOR_COLLECT) | ON(TENSOR_ACCUMULATION) | ON(TENSOR_CAST) };

static const stage_row rows[] = {
    {"view", VALUE_TENSOR, ON(TENSOR_DM) | ON(TENSOR_HBM), 0, "", stage_view},
    {"begin", VALUE_UNIT_OF_CONTEXT, 0, 0, "v", stage_begin},
    {"begin_interleaved", VALUE_UNIT_OF_CONTEXT, 0, 6, "vv", stage_begin_interleaved},
    {"fetch", VALUE_BEGIN, 0, 3, "", build_fetch},
    {"collect", VALUE_TENSOR, ON(TENSOR_FETCH) | ON(TENSOR_SWITCH), 2, "", build_collect},
    {"to_trf", VALUE_TENSOR, ON(TENSOR_COLLECT), 2, "a", build_to_trf},
    {"align", VALUE_TENSOR, ON(TENSOR_COLLECT), 4, "t", build_align},
    {"contract", VALUE_TENSOR, ON(TENSOR_ALIGNED), 1, "", build_contract},
    {"accumulate", VALUE_TENSOR, ON(TENSOR_CONTRACTION), 2, "k", build_accumulate},
    {"cast", VALUE_TENSOR, ON(TENSOR_COLLECT) | ON(TENSOR_ACCUMULATION), 2, "", build_cast},
    {"commit", VALUE_TENSOR, ANY_STREAM_TO_COMMIT, 1, "i", build_commit},
    {"commit_view", VALUE_TENSOR, ANY_STREAM_TO_COMMIT, 1, "w", build_commit_view},
    {"to_dm", VALUE_TENSOR, ON(TENSOR_HBM) | ON(TENSOR_DM), 3, "ci", build_to_dm},
    {"to_hbm", VALUE_TENSOR, ON(TENSOR_DM) | ON(TENSOR_HBM), 2, "ci", build_to_hbm},
    {"view_mut", VALUE_TENSOR, ON(TENSOR_DM) | ON(TENSOR_HBM), 0, "", stage_view_mut},
    {"reshape", VALUE_TENSOR, ON(TENSOR_DM), 4, "", stage_reshape},
    {"tile", VALUE_VIEW, ON(TENSOR_DM) | ON(TENSOR_HBM), 3, "n", stage_tile},
    {"chip_tile", VALUE_VIEW, ON(TENSOR_DM), 3, "n", stage_chip_tile},
    {"cluster_tile", VALUE_VIEW, ON(TENSOR_DM), 3, "n", stage_cluster_tile},
    {"slice_tile", VALUE_VIEW, ON(TENSOR_DM), 3, "n", stage_slice_tile},
    {"to_dm_view", VALUE_TENSOR, ON(TENSOR_DM) | ON(TENSOR_HBM), 0, "cw", build_copy_view},
    {"to_dm_view", VALUE_VIEW, ON(TENSOR_DM) | ON(TENSOR_HBM), 0, "cw", build_copy_view},
    {"to_hbm_view", VALUE_TENSOR, ON(TENSOR_DM) | ON(TENSOR_HBM), 0, "ch", build_copy_view},
    {"to_hbm_view", VALUE_VIEW, ON(TENSOR_DM) | ON(TENSOR_HBM), 0, "ch", build_copy_view},
    {"to_dm", VALUE_VIEW, ON(TENSOR_DM) | ON(TENSOR_HBM), 3, "ci", build_to_dm},
    {"to_hbm", VALUE_VIEW, ON(TENSOR_DM) | ON(TENSOR_HBM), 2, "ci", build_to_hbm},
};
enum { ROWS = sizeof rows / sizeof *rows };

bool stage_is_known(const char *method)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, method) == 0)
            return true;
    return false;
}

static bool row_accepts(const stage_row *r, const value *v)
{
    return r->receiver == v->kind && ((v->kind != VALUE_TENSOR && v->kind != VALUE_VIEW) || (r->kinds & ON(v->op->out.kind)));
}

/* "collect, commit" */
static const char *offered(const stage_call *call)
{
    strbuf s;
    strbuf_init(&s, scope_context_of(call->scope)->arena);
    for (size_t i = 0; i < ROWS; i++)
        if (row_accepts(&rows[i], &call->receiver))
            strbuf_printf(&s, "%s%s", s.bytes ? ", " : "", rows[i].name);
    return s.bytes ? s.text : "no stage";
}

/* Known methods of the language that this release does not compile, and those of the newer release. */
static const char *const later_methods[] = {"switch", "transpose", "to_vrf", "vector_init", "dma_gather", "dma_scatter",
                                            "parallel_copy_chip_slice", "parallel_copy_cluster_slice", "dm_chip_shuffle", "dm_cluster_shuffle",
                                            "to_dm_pcopy", "to_dm_view_pcopy", "trim", "pad", "commit_cast_relu", NULL};
static const struct {
    const char *newer, *april;
} newer_methods[] = {{"contract_outer", "align"}, {"contract_packet", "contract"}, {"contract_time", "accumulate"}, {"contract_lane", "accumulate"},
                     {"fetch_cast", "fetch::<D2, Time, Packet>"}, {"commit_trim", "commit::<Element>"},
                     {"commit_cast", "cast::<Dtype, Packet> in front of commit"}};

/* What a method of the newer release is called in April; NULL: it is none. */
static const char *april_form(const char *name)
{
    for (size_t i = 0; i < sizeof newer_methods / sizeof *newer_methods; i++)
        if (strcmp(newer_methods[i].newer, name) == 0)
            return newer_methods[i].april;
    return NULL;
}

/* A misspelt name, or a mapping that is none, is an error of its own even where what it is called on is not known. */
static void check_alone(const stage_call *call)
{
    const ast *generics = ast_kid(call->node, 1);
    bool infer;
    for (uint32_t i = 0; ast_is(generics, AST_GENERIC_ARGS) && i < generics->kid_count; i++)
        if (ast_is(generics->kids[i], AST_MAP))
            scope_mapping(call->scope, generics->kids[i], &infer);
    const char *name = call->node->text, *names[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        names[i] = rows[i].name;
        if (strcmp(name, rows[i].name) == 0)
            return;
    }
    names[ROWS] = NULL;
    const char *near = choice_near(name, names);
    for (const char *const *later = later_methods; *later; later++)
        if (strcmp(*later, name) == 0)
            near = NULL;
    if (!near || april_form(name)) /* of a chain of the newer dialect the first is named */
        return;
    diag *d = diag_add(stage_diags(call), E_METHOD, call->node->name_range, "there is no method `%s`", name);
    diag_help(stage_diags(call), d, "did you mean `%s`?", near);
}

static void unknown_method(const stage_call *call, bool known)
{
    const char *name = call->node->text, *names[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    names[ROWS] = NULL;
    diag_list *diags = stage_diags(call);
    for (const char *const *later = later_methods; *later; later++)
        if (strcmp(*later, name) == 0) {
            diag *d = diag_add(diags, E_UNSUPPORTED, call->node->name_range, "`%s` is not supported yet", name);
            diag_help(diags, d, "%s offers: %s", value_kind_name(&call->receiver), offered(call));
            return;
        }
    diag *d = diag_add(diags, E_METHOD, call->node->name_range, known ? "`%s` is not offered by %s" : "there is no method `%s` on %s", name,
                       value_kind_name(&call->receiver));
    if (april_form(name)) {
        diag_help(diags, d, "`%s` is the newer dialect; the April form is %s", name, april_form(name));
        return;
    }
    const char *near = known ? NULL : choice_near(name, names);
    if (near)
        diag_help(diags, d, "did you mean `%s`?", near);
    else
        diag_help(diags, d, "%s offers: %s", value_kind_name(&call->receiver), offered(call));
}

static const char *argument_name(char letter)
{
    switch (letter) {
    case 'c': return "`&mut ctx.tdma`";
    case 'i': return "an integer address";
    case 't': return "a reference to a TrfTensor";
    case 'n': return "an integer of at least 0";
    case 'v': return "a view of a DmTensor (`x.view()`)";
    case 'w': return "a view of a DmTensor to write (`x.view_mut()`)";
    case 'h': return "a view of an HbmTensor to write (`x.view_mut()`)";
    case 'a': return "a TrfAddress (Full, FirstHalf or SecondHalf)";
    default: return "an AccumulationKind (Interleaved or Sequential)";
    }
}

static bool argument_fits(char letter, const value *v)
{
    switch (letter) {
    case 'c': return v->kind == VALUE_UNIT_OF_CONTEXT && v->context == CONTEXT_DMA;
    case 'i': return v->kind == VALUE_INT;
    case 't': return v->kind == VALUE_TENSOR && v->op->out.kind == TENSOR_TRF;
    case 'n': return v->kind == VALUE_INT && v->number >= 0;
    case 'v': return v->kind == VALUE_VIEW && v->op->out.kind == TENSOR_DM;
    case 'w': return v->kind == VALUE_VIEW && v->op->out.kind == TENSOR_DM && v->writable;
    case 'h': return v->kind == VALUE_VIEW && v->op->out.kind == TENSOR_HBM && v->writable;
    case 'a': return v->kind == VALUE_TRF_ADDRESS;
    default: return v->kind == VALUE_ACCUMULATION;
    }
}

/* In the order of the type arguments; "" : none. And what it does in a line. */
static const struct {
    const char *name, *parameters, *summary;
} described[] = {
    {"view", "", "the tensor as something that is read in parts"},
    {"view_mut", "", "the tensor as something that is written in parts"},
    {"begin", "", "a stream that reads this DM tensor"},
    {"begin_interleaved", "Axis, _, _, _, _, _", "a stream that reads two DM tensors of one type by turns"},
    {"fetch", "Dtype, Time, Packet", "reads DM as a stream of packets"},
    {"collect", "Time, Packet", "packets into flits of 32 bytes"},
    {"to_trf", "Row, Element", "keeps the flits as weights in the TRF"},
    {"align", "Time, Packet, Row, Element", "flits and weights meet"},
    {"contract", "Packet", "multiplies and sums along the packet, in the reduction tree"},
    {"accumulate", "Time, Packet", "sums along time"},
    {"cast", "Dtype, Packet", "narrows the elements"},
    {"commit", "Element", "writes the stream to DM, into a new tensor at this address in bytes"},
    {"commit_view", "Element", "writes the stream to DM, into this view"},
    {"to_dm", "Cluster, Slice, Element", "copies to DM, to this address in bytes"},
    {"to_hbm", "Chip, Element", "copies to HBM, to this address in bytes"},
    {"to_dm_view", "", "copies into a view of a DM tensor"},
    {"to_hbm_view", "", "copies into a view of an HBM tensor"},
    {"reshape", "Chip, Cluster, Slice, Element", "the same memory under other axes; the tensor itself is used up"},
    {"tile", "Index, LENGTH, Element", "the part of a view that begins at position `start` of Index"},
    {"chip_tile", "Index, LENGTH, Chip", "the chips of a view from position `start` of Index on"},
    {"cluster_tile", "Index, LENGTH, Cluster", "the clusters of a view from position `start` of Index on"},
    {"slice_tile", "Index, LENGTH, Slice", "the slices of a view from position `start` of Index on"},
};

static const char *argument_label(char letter)
{
    switch (letter) {
    case 'c': return "&mut ctx.tdma";
    case 'i': return "address";
    case 't': return "&weights";
    case 'n': return "start";
    case 'v': return "x.view()";
    case 'w': case 'h': return "x.view_mut()";
    case 'a': return "TrfAddress";
    default: return "AccumulationKind";
    }
}

/* "fetch::<Dtype, Time, Packet>()" */
static const char *signature(const stage_row *r, arena *a)
{
    const char *parameters = "";
    for (size_t d = 0; d < sizeof described / sizeof *described; d++)
        if (strcmp(described[d].name, r->name) == 0)
            parameters = described[d].parameters;
    strbuf text;
    strbuf_init(&text, a);
    strbuf_printf(&text, *parameters ? "%s::<%s>(" : "%s%s(", r->name, parameters);
    for (const char *letter = r->arguments; *letter; letter++)
        strbuf_printf(&text, "%s%s", letter > r->arguments ? ", " : "", argument_label(*letter));
    strbuf_puts(&text, ")");
    return text.text;
}

/* Where the variable that an argument names was bound. */
static void note_binding(const stage_call *call, diag *d, const ast *argument)
{
    while (ast_is(argument, AST_BORROW))
        argument = ast_kid(argument, 0);
    const symbol *y = ast_is(argument, AST_PATH) ? scope_find_path(call->scope, VALUE_NAMES, argument) : NULL;
    if (y && y->kind == SYMBOL_VARIABLE)
        diag_note(stage_diags(call), d, y->range, "`%s` is bound here", y->name);
}

static bool check_arguments(const stage_call *call, const stage_row *r)
{
    const ast *args = ast_kid(call->node, 2), *generics = ast_kid(call->node, 1);
    size_t wanted = strlen(r->arguments);
    unsigned given = ast_is(generics, AST_GENERIC_ARGS) ? generics->kid_count : 0;
    bool to_hbm = strcmp(r->name, "to_hbm") == 0;
    if (given && given != r->generics && !(to_hbm && given == 1)) {
        diag *d = diag_add(stage_diags(call), E_ARGUMENTS, generics->range, "`%s` takes %u type argument%s or none, got %u", r->name, r->generics, r->generics == 1 ? "" : "s", given);
        diag_help(stage_diags(call), d, "they are %s", signature(r, scope_context_of(call->scope)->arena));
        return false;
    }
    if (args->kid_count != wanted) {
        diag *d = diag_add(stage_diags(call), E_ARGUMENTS, call->node->name_range, "`%s` takes %zu argument%s, got %u", r->name, wanted, wanted == 1 ? "" : "s", args->kid_count);
        diag_help(stage_diags(call), d, "the call is %s", signature(r, scope_context_of(call->scope)->arena));
        return false;
    }
    for (size_t i = 0; i < wanted; i++) {
        if (call->args[i].kind == VALUE_ERROR)
            return false;
        bool read_only = strchr("wh", r->arguments[i]) && call->args[i].kind == VALUE_VIEW && !call->args[i].writable;
        if (!argument_fits(r->arguments[i], &call->args[i]) && read_only) {
            diag *d = diag_add(stage_diags(call), E_VIEW_READ_ONLY, args->kids[i]->range, "`%s` writes into this view, which is only read", r->name);
            diag_help(stage_diags(call), d, "write view_mut() instead of view()");
            return false;
        }
        if (!argument_fits(r->arguments[i], &call->args[i])) {
            diag *d = diag_add(stage_diags(call), E_ARGUMENTS, args->kids[i]->range, "argument %zu of `%s` must be %s, got %s", i + 1, r->name, argument_name(r->arguments[i]),
                               call->args[i].kind == VALUE_INT ? arena_printf(scope_context_of(call->scope)->arena, "%lld", (long long)call->args[i].number) : value_kind_name(&call->args[i]));
            note_binding(call, d, args->kids[i]);
            if (strchr("vw", r->arguments[i]) && call->args[i].kind == VALUE_VIEW)
                diag_help(stage_diags(call), d, "the Tensor Unit reads and writes DM: copy it there first, with to_dm");
            return false;
        }
    }
    return true;
}

value stage_build(const stage_call *call)
{
    index_add_value(scope_context_of(call->scope), call->node->name_range, &call->receiver);
    if (call->receiver.kind == VALUE_ERROR) {
        check_alone(call);
        return stage_error;
    }
    bool known = false;
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, call->node->text) != 0)
            continue;
        known = true;
        if (row_accepts(&rows[i], &call->receiver)) {
            if (check_arguments(call, &rows[i]))
                return rows[i].build(call);
            call->kernel->bad = true;
            return stage_error;
        }
    }
    unknown_method(call, known);
    call->kernel->bad = true;
    return stage_error;
}

/* ---- for readers ---- */

bool stage_describe(size_t i, const value *receiver, arena *a, stage_description *out)
{
    for (size_t r = 0; r < ROWS; r++) {
        if ((receiver && !row_accepts(&rows[r], receiver)) || i-- > 0)
            continue;
        *out = (stage_description){.name = rows[r].name, .parameters = "", .summary = ""};
        for (size_t d = 0; d < sizeof described / sizeof *described; d++)
            if (strcmp(described[d].name, rows[r].name) == 0)
                out->parameters = described[d].parameters, out->summary = described[d].summary;
        out->signature = signature(&rows[r], a);
        out->generics = rows[r].generics;
        return true;
    }
    return false;
}
