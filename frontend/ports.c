/* Ports: what parameters and results of a kernel become. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/running.h"
#include "frontend/stage.h"
#include "support/budget.h"

static uint32_t add_port(analysis *s, const char *name, bool is_output, const tensor *t, const mapping_names *const *named, src_range range)
{
    kernel_port p = {.name = name, .is_output = is_output, .tensor = *t, .range = range};
    memcpy(p.named, named, sizeof p.named);
    ARENA_PUSH(s->context.arena, s->kernel->ports, s->kernel->port_count, s->kernel->port_capacity, p);
    return (uint32_t)s->kernel->port_count - 1;
}

static bool is_whole(const declared *d)
{
    bool whole = d->has_dtype;
    for (const component *p = tensor_kind_components(d->tensor.kind); *p < MAPPING_COMPONENTS; p++)
        whole = whole && d->tensor.part[*p];
    return whole;
}

bool require_whole(analysis *s, const declared *d, const char *what)
{
    bool whole = is_whole(d);
    if (!whole)
        refuse(s, E_INFER, d->range,
               d->tensor.address == -1 && strncmp(what, "parameter", 9) == 0 ? "write the parameter's whole type" : "write the whole type",
               "the type of %s cannot be inferred", what);
    return whole;
}

/* "`Name`", or what kind of type it is. */
static const char *type_name(analysis *s, const ast *type)
{
    while (ast_is(type, AST_TYPE_REF))
        type = ast_kid(type, 0);
    bool path = ast_is(type, AST_TYPE_PATH) && type->kid_count > 0;
    return path ? arena_printf(s->context.arena, "`%s`", type->kids[type->kid_count - 1]->text) : ast_kind_name(type->kind);
}

static const mapping_names *join_names(analysis *s, const mapping_names *outer, const mapping_names *inner)
{
    if (!outer || !inner)
        return outer ? outer : inner;
    mapping_names *both = ARENA_NEW(s->context.arena, mapping_names);
    both->axes = ARENA_ARRAY(s->context.arena, const axis *, outer->count + inner->count);
    both->count = 0;
    for (uint32_t i = 0; i < outer->count; i++)
        both->axes[both->count++] = outer->axes[i];
    for (uint32_t i = 0; i < inner->count; i++)
        both->count = axis_list_add(both->axes, both->count, outer->count + inner->count, inner->axes[i]);
    return both;
}

/* A stream that has begun is the DM tensor that is read: Chip, Cluster, Slice, interleaving, Element. Of two interleaved tensors the
 * second lies after the first. */
static bool memory_of_begun(analysis *s, declared *d)
{
    const mapping *time = d->tensor.part[TIME], *packet = d->tensor.part[PACKET], *element = packet;
    if (time && time->size > 2) {
        refuse(s, E_INTERLEAVE, d->parts[TIME], "begin with one tensor: write m![1], or an axis of 2",
               "Time of a BeginTensor has %lld positions; two tensors are interleaved", (long long)time->size);
        return false;
    }
    if (time && packet && mapping_pair(s->context.mappings, time, packet, &element) != MAPPING_OK)
        return false;
    d->tensor.kind = TENSOR_DM;
    d->tensor.part[ELEMENT] = element;
    d->parts[ELEMENT] = d->parts[PACKET];
    d->named[ELEMENT] = join_names(s, d->named[TIME], d->named[PACKET]);
    d->named[TIME] = d->named[PACKET] = NULL;
    d->tensor.part[TIME] = d->tensor.part[PACKET] = NULL;
    d->tensor.address = -1;
    return true;
}

/* Where a parameter, or a part of one, is declared. */
typedef struct parameter {
    const char *name; /* of its port: `inputs_x` of the field x of `inputs` */
    src_range range;  /* of the name */
    src_range type;   /* as written */
    bool mutable;     /* of an outer `&mut` */
} parameter;

static value declare_tensor(analysis *s, const parameter *p, declared *d)
{
    bool begun = d->tensor.kind == TENSOR_BEGIN;
    d->mutable = d->mutable || p->mutable;
    if (d->mutable && d->tensor.kind != TENSOR_HBM && d->tensor.kind != TENSOR_DM)
        return refuse(s, E_UNSUPPORTED, p->type, "pass the stream itself, without `&mut`",
                      "a stream of type `&mut` is not supported as a kernel's parameter");
    tensor_kind of = d->tensor.kind;
    if (of == TENSOR_ALIGNED || of == TENSOR_CONTRACTION || of == TENSOR_CONTRACT_TIME || of == TENSOR_COMMIT_TRIM)
        return refuse(s, E_UNSUPPORTED, p->type, "let the kernel begin at an earlier stage", "a %s as parameter is not supported yet",
                      tensor_kind_word(of));
    if (of == TENSOR_SPM)
        return refuse(s, E_UNSUPPORTED, p->type, "pass an HbmTensor, and copy it: .to_dm(..), .to_spm(..)",
                      "a list in SPM is made by the kernel that uses it: @SpmTensor is no parameter");
    if (begun && !memory_of_begun(s, d))
        return error_value;
    if (!is_whole(d) && !require_whole(s, d, arena_printf(s->context.arena, "parameter `%s`", p->name)))
        return error_value;
    op *o = kernel_add(s->kernel, s->context.arena, d->mutable ? IR_ALLOC : IR_PORT_IN, CONTEXT_MAIN, p->range);
    o->out = d->tensor;
    o->name = p->name;
    memcpy(o->parts, d->parts, sizeof o->parts);
    o->parts_elsewhere = d->by_name;
    o->parts_generic = d->generic;
    memcpy(o->named, d->named, sizeof o->named);
    o->parameter = d->mutable;
    if (!d->mutable)
        o->port = add_port(s, p->name, false, &o->out, o->named, o->range);
    value_kind kind = begun ? VALUE_BEGIN : d->is_view ? VALUE_VIEW : VALUE_TENSOR;
    return (value){.kind = kind, .op = o, .context = CONTEXT_MAIN, .writable = d->mutable};
}

static value declare_value(analysis *s, const parameter *p, scope *in, const ast *type);

/* The fields of a struct, in order: ports `name_field`. */
STACK_APART static value declare_record(analysis *s, const parameter *p, const declared *d)
{
    const ast *fields = ast_kid(d->record, 2);
    value *items = ARENA_ARRAY(s->context.arena, value, fields->kid_count);
    for (uint32_t i = 0; i < fields->kid_count; i++) {
        const char *field = ast_kid(fields->kids[i], 1)->text;
        parameter part = *p;
        part.name = arena_printf(s->context.arena, "%s_%s", p->name, field[0] == '_' ? field + 1 : field);
        items[i] = declare_value(s, &part, d->scope, ast_kid(fields->kids[i], 2));
    }
    return (value){.kind = VALUE_LIST, .items = items, .count = fields->kid_count, .record = d->record, .fields_in = d->scope};
}

/* The part of a list's pattern that stands for element i of `count`; NULL: it is one of those of the `..`. */
static const ast *element_of(const ast *pattern, size_t i, size_t count)
{
    size_t rest = ast_pattern_rest(pattern, 0);
    if (i < rest)
        return ast_kid(pattern, (uint32_t)i);
    return count - i < pattern->kid_count - rest ? pattern->kids[pattern->kid_count - (count - i)] : NULL;
}

/* Elements of a tuple, by their types, or of an array, all of one: ports `name_0`, `name_1`. With a pattern, the names it gives them. */
STACK_APART static value declare_list(analysis *s, const parameter *p, const declared *d, const ast *pattern)
{
    int64_t count = d->tuple ? d->tuple->kid_count : 0;
    if (!d->tuple && (ast_is(ast_kid(d->array, 1), AST_NONE) || !scope_integer(d->scope, ast_kid(d->array, 1), &count)))
        return refuse(s, E_UNSUPPORTED, p->type, "write its length: [T; 4]", "a slice is not supported as a kernel's parameter");
    if (count < 0 || !spend(s, p->type, (uint64_t)count))
        return error_value;
    value *items = ARENA_ARRAY(s->context.arena, value, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const ast *name = pattern ? element_of(pattern, (size_t)i, (size_t)count) : NULL;
        bool named = name && ast_is(name, AST_PAT_NAME);
        parameter part = *p;
        part.name = named ? name->text : arena_printf(s->context.arena, "%s_%lld", p->name, (long long)i);
        part.range = named ? name->name_range : p->range;
        items[i] = declare_value(s, &part, d->scope, d->tuple ? d->tuple->kids[i] : ast_kid(d->array, 0));
    }
    return (value){.kind = VALUE_LIST, .items = items, .count = (size_t)count};
}

/* A number in the HBM of every chip. */
static value declare_scalar(analysis *s, const parameter *p, const declared *d)
{
    if (d->mutable || p->mutable)
        return refuse(s, E_UNSUPPORTED, p->type, "pass `&HbmScalar<T>`: a kernel reads it", "no kernel writes an HbmScalar");
    op *o = kernel_add(s->kernel, s->context.arena, IR_PORT_IN, CONTEXT_MAIN, p->range);
    o->name = p->name;
    if (!run_type_tensor(&s->context, d->run, p->name, s->kernel->chips, &o->out))
        return error_value;
    o->port = add_port(s, p->name, false, &o->out, o->named, o->range);
    return (value){.kind = VALUE_SCALAR, .run = run_number_new(s->context.arena, d->run, o)};
}

static value declare_kind(analysis *s, const parameter *p, scope *in, const ast *type, const ast *pattern)
{
    declared d = scope_type(in, type);
    parameter part = *p;
    part.mutable = p->mutable || d.mutable;
    if (d.kind == DECLARED_CONTEXT)
        return (value){.kind = VALUE_CONTEXT};
    if (d.kind == DECLARED_TENSOR)
        return declare_tensor(s, p, &d);
    if (d.kind == DECLARED_SCALAR)
        return declare_scalar(s, &part, &d);
    if (d.record)
        return declare_record(s, &part, &d);
    if (d.tuple || d.array)
        return declare_list(s, &part, &d, pattern);
    s->kernel->bad = true;
    if (d.kind == DECLARED_ERROR)
        return error_value;
    return refuse(s, E_UNSUPPORTED, p->type, "kernels take a Context, tensors and HbmScalars, also in tuples, arrays and structs",
                  "a parameter of type %s is not supported in .vm kernels", type_name(s, type));
}

static value declare_value(analysis *s, const parameter *p, scope *in, const ast *type)
{
    budget_spend_at(s->arena, type->range, 1);
    budget_enter(s->arena);
    value v = declare_kind(s, p, in, type, NULL);
    budget_leave(s->arena);
    return v;
}

static void refuse_twin(analysis *s, scope *names, const ast *pattern)
{
    const symbol *twin = ast_is(pattern, AST_PAT_NAME) ? scope_find_here(names, VALUE_NAMES, pattern->text) : NULL;
    if (twin && twin->kind == SYMBOL_VARIABLE) {
        diag *e = diag_add(s->context.diags, E_DUPLICATE, pattern->range, "there are two parameters `%s`", pattern->text);
        diag_note(s->context.diags, e, twin->range, "first defined here");
        diag_help(s->context.diags, e, "a port has its parameter's name: give each its own");
    }
}

void declare_parameter(analysis *s, scope *names, const ast *param)
{
    const ast *pattern = ast_kid(param, 1);
    while (ast_is(pattern, AST_PAT_REF))
        pattern = ast_kid(pattern, 0);
    bool named = ast_is(pattern, AST_PAT_NAME), list = ast_is(pattern, AST_PAT_TUPLE) || ast_is(pattern, AST_PAT_ARRAY);
    parameter p = {
        .name = named ? pattern->text : "_", .range = named ? pattern->name_range : pattern->range, .type = ast_kid(param, 2)->range};
    refuse_twin(s, names, pattern);
    for (uint32_t i = 0; list && i < pattern->kid_count; i++)
        refuse_twin(s, names, pattern->kids[i]);
    value v = declare_kind(s, &p, names, ast_kid(param, 2), list ? pattern : NULL);
    if (named)
        scope_add(names, SYMBOL_VARIABLE, p.name, pattern->range)->value = v;
    if (!named || pattern->kid_count > 0)
        bind_pattern(s, names, named ? pattern->kids[0] : pattern, &v, NULL);
}

static void add_result(analysis *s, const value *v, const mapping_names *const *named, src_range range, const char *name)
{
    if (v->op->out.kind == TENSOR_SPM) {
        refuse(s, E_UNSUPPORTED, range, "copy it to DM: .to_dm::<Slice, Element>(..)", "a kernel returns an @SpmTensor");
        return;
    }
    op *o = kernel_add(s->kernel, s->context.arena, IR_PORT_OUT, v->op->context, range);
    op_add_operand(o, s->context.arena, OPERAND_INPUT, v->op);
    o->out = v->op->out;
    o->name = name;
    o->bad = v->op->bad;
    o->port = add_port(s, name, true, &o->out, named, range);
    if (o->out.kind == TENSOR_ALIGNED)
        add_port(s, arena_printf(s->context.arena, "%s_weights", name), true, &o->out, named, range);
}

static bool ends_in(const char *name, const char *end)
{
    size_t bytes = strlen(name), tail = strlen(end);
    return bytes > tail && strcmp(name + bytes - tail, end) == 0;
}

/* Is it a tensor, or made of such? A name that no type has may be a misspelt one. */
static bool holds_tensor(scope *names, const ast *type);

static bool is_tensor_type(scope *names, const ast *type)
{
    while (ast_is(type, AST_TYPE_REF))
        type = ast_kid(type, 0);
    if (ast_is(type, AST_TYPE_ARRAY))
        return holds_tensor(names, ast_kid(type, 0));
    for (uint32_t i = 0; ast_is(type, AST_TYPE_TUPLE) && i < type->kid_count; i++)
        if (holds_tensor(names, type->kids[i]))
            return true;
    if (!ast_is(type, AST_TYPE_PATH) || type->kid_count == 0)
        return false;
    const char *name = type->kids[type->kid_count - 1]->text;
    symbol *y = scope_find_path(names, TYPE_NAMES, type);
    if (y && y->kind == SYMBOL_OWN_TYPE)
        return false;
    const char *near = y ? NULL : scope_suggest_type(name); /* a misspelt tensor is meant to be one */
    for (tensor_kind kind = 0; near && kind < TENSOR_KIND_COUNT; kind++)
        if (strcmp(near, tensor_kind_name(kind)) == 0)
            return true;
    if (y && y->kind == SYMBOL_ALIAS && y->node &&
        !y->busy) { /* its arguments may be parameters of the function, which mean nothing here */
        y->busy = true;
        bool holds = holds_tensor(y->scope, y->node);
        y->busy = false;
        return holds;
    }
    return ends_in(name, "Tensor") || ends_in(name, "TensorView") || ends_in(name, "TensorViewMut");
}

static bool holds_tensor(scope *names, const ast *type)
{
    arena *a = scope_context_of(names)->arena;
    budget_enter(a);
    bool holds = is_tensor_type(names, type);
    budget_leave(a);
    return holds;
}

bool is_tensor_function(scope *names, const ast *fn)
{
    const ast *params = ast_kid(fn, 2);
    for (uint32_t i = 0; i < params->kid_count; i++)
        if (holds_tensor(names, ast_kid(params->kids[i], 2)))
            return true;
    return false;
}

static bool is_port_name(const kernel *k, const char *name)
{
    for (size_t i = 0; i < k->port_count; i++)
        if (strcmp(k->ports[i].name, name) == 0)
            return true;
    return false;
}

/* The name, or name0, name1, .. where that is a port's. */
static const char *free_name(analysis *s, const char *name)
{
    const char *free = name;
    for (unsigned i = 0; is_port_name(s->kernel, free); i++)
        free = arena_printf(s->context.arena, "%s%u", name, i);
    return free;
}

/* Does the memory hold what comes in? Rows of it are written that only a list names, or where only a number says whether, and the others
 * stay; or it is read before any of it is
 * written. */
static bool comes_in(const kernel *k, const op *memory)
{
    bool read = false, written = false;
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        for (size_t j = 0; j < o->operand_count && o->kind != IR_VIEW && o->kind != IR_RESHAPE; j++) {
            bool writes = operand_access_of(o->operands[j].role) == WRITES;
            if (op_memory(o->operands[j].of) != memory)
                continue;
            if (writes && (o->kind == IR_SCATTER || o->runs_if))
                return true;
            read = read || (!writes && !written);
            written = written || writes;
        }
    }
    return read && (written || memory->out.kind == TENSOR_DM);
}

/* Results through `&mut` parameters come first, in the order of the parameters. One that holds what comes in is an input as well, at the
 * same address. */
static void add_written_parameters(analysis *s)
{
    size_t count = s->kernel->op_count;
    for (size_t i = 0; i < count; i++) {
        op *o = s->kernel->ops[i];
        if (o->kind != IR_ALLOC || !o->parameter)
            continue;
        if (comes_in(s->kernel, o)) {
            o->kind = IR_PORT_IN;
            o->port = add_port(s, o->name, false, &o->out, o->named, o->range);
        }
        value v = {.kind = VALUE_TENSOR, .op = o};
        add_result(s, &v, o->named, o->range, o->name);
    }
}

/* Does the list have the shape of the declared type? */
static bool fits_result(const value *v, const declared *result)
{
    if (v->record)
        return result->record == v->record;
    int64_t count;
    if (result->array && !ast_is(ast_kid(result->array, 1), AST_NONE))
        return scope_integer(result->scope, ast_kid(result->array, 1), &count) && (uint64_t)count == v->count;
    return result->tuple && result->tuple->kid_count == v->count;
}

/* A tuple or an array: its variables' names, or out0, out1, ..; a struct: those of its fields. */
static void add_results(analysis *s, scope *names, const value *v, const ast *tail, const declared *result, src_range range)
{
    bool fits = fits_result(v, result), listed = (ast_is(tail, AST_TUPLE) || ast_is(tail, AST_ARRAY)) && tail->kid_count == v->count;
    if (result->kind != DECLARED_NONE && result->kind != DECLARED_ERROR && !fits)
        refuse(s, E_MISMATCH, range, NULL, "the function's body gives %s, but another type is declared",
               v->record ? arena_printf(s->context.arena, "a `%s`", v->record->text)
                         : arena_printf(s->context.arena, "%s of %zu", ast_is(tail, AST_TUPLE) ? "a tuple" : value_kind_name(v), v->count));
    for (size_t i = 0; i < v->count; i++) {
        const value *item = &v->items[i];
        const ast *written = listed ? ast_kid(tail, (uint32_t)i) : tail;
        bool named =
            ast_is(written, AST_PATH) && written->kid_count == 1 && written != tail && !is_port_name(s->kernel, written->kids[0]->text);
        const char *field = v->record ? ast_kid(ast_kid(v->record, 2)->kids[i], 1)->text : "";
        if (item->kind == VALUE_ERROR)
            continue;
        if (item->kind != VALUE_TENSOR) {
            refuse(s, E_UNSUPPORTED, written->range, "return tensors", "a kernel returns %s", value_kind_name(item));
            continue;
        }
        declared d = fits ? part_type(result, i, v->count) : (declared){0};
        if (!item->op->bad && !stage_check_type(names, written->range, &item->op->out, &d))
            s->kernel->bad = true;
        add_result(s, item, d.named, written->range,
                   named                                          ? written->kids[0]->text
                   : v->record && !is_port_name(s->kernel, field) ? field
                                                                  : free_name(s, arena_printf(s->context.arena, "out%zu", i)));
    }
}

void add_outputs(analysis *s, scope *names, const ast *fn, const ast *tail, value v, const declared *result)
{
    const ast *body = ast_kid(fn, 4), *last = body->kid_count ? body->kids[body->kid_count - 1] : body;
    bool named = ast_is(tail, AST_PATH) && tail->kid_count == 1;
    src_range range = ast_kid(ast_statement(last), 0) == tail ? last->range : tail->range;
    add_written_parameters(s);
    if (v.kind == VALUE_LIST) {
        add_results(s, names, &v, tail, result, range);
    } else if (v.kind == VALUE_TENSOR && result->kind == DECLARED_NONE) {
        refuse(s, E_MISMATCH, range,
               arena_printf(s->context.arena, "write -> %s<..> after the parameters", tensor_kind_word(v.op->out.kind)),
               "the body gives a %s, but the function declares no result", tensor_kind_word(v.op->out.kind));
    } else if (v.kind == VALUE_TENSOR) {
        stage_adopt(v.op, result);
        if (named && !v.op->bad && !stage_check_type(names, range, &v.op->out, result))
            s->kernel->bad = true;
        add_result(s, &v, result->named, range,
                   named && !is_port_name(s->kernel, tail->kids[0]->text) ? tail->kids[0]->text : free_name(s, "out"));
    } else if (v.kind == VALUE_VIEW || v.kind == VALUE_BEGIN) {
        refuse(s, E_UNSUPPORTED, range,
               v.kind == VALUE_VIEW ? "return the tensor, or write into an `&mut` parameter" : "return what fetch gives",
               "a kernel returns %s", value_kind_name(&v));
    } else if (v.kind == VALUE_ERROR || s->broken) {
        s->kernel->bad = true;
    } else if (result->kind == DECLARED_TENSOR) {
        refuse(s, E_MISMATCH, range, "end the body with the tensor, without a semicolon",
               "the function declares a %s but its body gives no tensor", tensor_kind_word(result->tensor.kind));
    }
}
