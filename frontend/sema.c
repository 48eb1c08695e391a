#include "frontend/sema.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/constant.h"
#include "frontend/index.h"
#include "frontend/scope.h"
#include "frontend/stage.h"

enum { MODULE_DEPTH_MAX = 64 };

typedef struct loaded_module {
    const ast *node, *body;
} loaded_module;

typedef struct pending_use {
    scope *scope;
    const ast *node;
} pending_use;

typedef struct analysis {
    scope_context context;
    const sema_options *options;
    const char *only; /* the kernel to compile; NULL: all */
    loaded_module *loaded;
    size_t loaded_count, loaded_capacity;
    pending_use *uses; /* not yet resolved */
    size_t use_count, use_capacity;
    const char **called; /* names of functions that others call, sorted */
    size_t called_count, called_capacity;
    unsigned module_depth;
    const char *module_path; /* "a::b::" of the functions at hand */
    module *module;
    kernel *kernel; /* being built; NULL between functions */
    bool broken;    /* text of its body was left out: a name may be unknown for that reason alone */
    size_t steps;   /* of the kernel: iterations, calls and list elements so far */
    unsigned depth; /* of evaluation, calls included */
    bool stopped;   /* a limit was exceeded: unwind */
} analysis;

static const value error_value = {.kind = VALUE_ERROR};

static value evaluate(analysis *s, scope *names, const ast *n, const declared *expected);
static value evaluate_block(analysis *s, scope *outer, const ast *block, const declared *expected);
static void bind_pattern(analysis *s, scope *names, const ast *pattern, value v, const declared *annotation);
static void collect_items(analysis *s, scope *names, const ast *parent, uint32_t first);
static bool require_whole(analysis *s, const declared *d, const char *what);
static value unsupported(analysis *s, const ast *n);
static void resolve_uses(analysis *s);
static void declare_generics(analysis *s, scope *names, const ast *generics);
static bool was_broken(const analysis *s, src_range range);

static value refuse(analysis *s, diag_id id, src_range range, const char *help, const char *format, ...) __attribute__((format(printf, 5, 6)));
static value refuse(analysis *s, diag_id id, src_range range, const char *help, const char *format, ...)
{
    if (s->broken && id == E_NAME)
        return error_value;
    va_list args;
    va_start(args, format);
    diag *d = diag_add(s->context.diags, id, range, "%s", arena_vprintf(s->context.arena, format, args));
    va_end(args);
    if (help)
        diag_help(s->context.diags, d, "%s", help);
    if (s->kernel)
        s->kernel->bad = true;
    return error_value;
}

static const char unroll_help[] = "let an axis of Time count instead: a stage runs through all of its Time in one command";

/* Counts iterations, calls and list elements; false: too many, and s->stopped. */
static bool spend(analysis *s, src_range range, uint64_t steps)
{
    if (steps <= UNROLL_MAX && s->steps + steps <= UNROLL_MAX) {
        s->steps += (size_t)steps;
        return true;
    }
    s->stopped = true;
    refuse(s, E_UNROLL, range, unroll_help, "kernel `%s` has more than %zu loop iterations and calls", s->kernel->name, UNROLL_MAX);
    return false;
}

/* A value of constant.c: its errors are the kernel's, its elements count. */
static value constant_checked(analysis *s, const ast *n, value v)
{
    if (v.kind == VALUE_ERROR)
        s->kernel->bad = true;
    else if (v.kind == VALUE_LIST && ast_is(n, AST_METHOD) && !spend(s, n->name_range, v.count))
        return error_value;
    return v;
}

/* Text is read again from here on, or no longer. */
static void set_repeated(analysis *s, bool repeated)
{
    s->kernel->repeating = repeated;
    s->context.diags->repeating = repeated;
}

/* ---- expressions ---- */

/* A const item, read where it was written. */
static value evaluate_const(analysis *s, symbol *y, const ast *path)
{
    if (y->busy)
        return refuse(s, E_NAME, path->range, NULL, "`%s` is defined by itself", y->name);
    size_t ops_before = s->kernel->op_count;
    y->busy = true;
    value v = evaluate(s, y->scope, y->node, NULL);
    y->busy = false;
    bool constant = v.kind == VALUE_INT || v.kind == VALUE_BOOL || v.kind == VALUE_LIST || v.kind == VALUE_ERROR;
    if (!constant || s->kernel->op_count != ops_before)
        return refuse(s, E_CONST, y->node->range, NULL, "`%s` is %s, not a constant", y->name, value_kind_name(&v));
    return v;
}

static value evaluate_name(analysis *s, scope *names, const ast *path, const char *name)
{
    symbol *y = scope_find_path(names, VALUE_NAMES, path);
    if (y && y->kind == SYMBOL_VARIABLE) {
        if (y->moved && y->value.kind == VALUE_TENSOR) {
            diag *d = diag_add(s->context.diags, E_MOVED, path->range, "stream `%s` was used before; a stream flows into one stage", name);
            diag_note(s->context.diags, d, y->moved_at, "it went in here");
            diag_help(s->context.diags, d, "to use the data twice commit it to DM and begin again");
            s->kernel->bad = true;
            return error_value;
        }
        if (y->value.kind == VALUE_TENSOR && tensor_kind_is_stream(y->value.op->out.kind)) {
            y->moved = true;
            y->moved_at = path->range;
        }
        return y->value;
    }
    if (y && y->kind == SYMBOL_CONST)
        return evaluate_const(s, y, path);
    const char *near = scope_suggest(names, name, SYMBOL_VARIABLE);
    if (!near)
        near = scope_suggest(names, name, SYMBOL_CONST);
    return refuse(s, E_NAME, path->range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : NULL, "`%s` is not known here", name);
}

/* TrfAddress::Full, AccumulationKind::Interleaved, with any path in front. */
static value evaluate_variant(analysis *s, scope *names, const ast *path)
{
    static const struct {
        const char *type, *name;
        value_kind kind;
        int64_t code;
    } variants[] = {
        {"TrfAddress", "Full", VALUE_TRF_ADDRESS, TRF_FULL},
        {"TrfAddress", "FirstHalf", VALUE_TRF_ADDRESS, TRF_FIRST_HALF},
        {"TrfAddress", "SecondHalf", VALUE_TRF_ADDRESS, TRF_SECOND_HALF},
        {"AccumulationKind", "Interleaved", VALUE_ACCUMULATION, INTERLEAVED},
        {"AccumulationKind", "Sequential", VALUE_ACCUMULATION, SEQUENTIAL},
    };
    const char *type = path->kids[path->kid_count - 2]->text, *name = path->kids[path->kid_count - 1]->text;
    if (strcmp(name, "SIZE") == 0) {
        value v = {.kind = VALUE_INT};
        if (scope_integer(names, path, &v.number))
            return v;
        s->kernel->bad = true;
        return error_value;
    }
    symbol *y = scope_find_path(names, VALUE_NAMES, path);
    if (y && y->kind == SYMBOL_CONST)
        return evaluate_const(s, y, path);
    bool known_type = false;
    const char *near_names[8] = {0};
    size_t count = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (strcmp(variants[i].type, type) != 0)
            continue;
        known_type = true;
        near_names[count++] = variants[i].name;
        if (strcmp(variants[i].name, name) == 0)
            return (value){.kind = variants[i].kind, .number = variants[i].code};
    }
    const char *near = known_type ? suggest(name, near_names) : NULL;
    const char *help = near ? arena_printf(s->context.arena, "did you mean `%s::%s`?", type, near)
                            : "known are TrfAddress::{Full, FirstHalf, SecondHalf} and AccumulationKind::{Interleaved, Sequential}";
    return refuse(s, E_NAME, path->range, help, "`%s::%s` is not known here", type, name);
}

static value evaluate_field(analysis *s, scope *names, const ast *n)
{
    static const char *const fields[] = {"main", "sub", "tdma", "pdma", NULL};
    value v = evaluate(s, names, ast_kid(n, 0), NULL);
    if (v.kind == VALUE_ERROR)
        return v;
    if (v.kind == VALUE_LIST && n->text[0] >= '0' && n->text[0] <= '9' && strlen(n->text) < 8 && strtoul(n->text, NULL, 10) < v.count)
        return v.items[strtoul(n->text, NULL, 10)];
    if (v.kind != VALUE_CONTEXT)
        return refuse(s, E_NAME, n->name_range, NULL, "there is no field `%s` on %s", n->text, value_kind_name(&v));
    for (int i = 0; fields[i]; i++)
        if (strcmp(fields[i], n->text) == 0)
            return (value){.kind = VALUE_UNIT_OF_CONTEXT, .context = i == 0 ? CONTEXT_MAIN : i == 1 ? CONTEXT_SUB : CONTEXT_DMA};
    const char *near = suggest(n->text, fields);
    return refuse(s, E_NAME, n->name_range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : "a Context has main, sub, tdma and pdma",
                  "the Context has no field `%s`", n->text);
}

static value evaluate_method(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *list = ast_kid(n, 2);
    value receiver = evaluate(s, names, ast_kid(n, 0), NULL);
    value *args = ARENA_ARRAY(s->context.arena, value, list->kid_count);
    for (uint32_t i = 0; i < list->kid_count; i++)
        args[i] = evaluate(s, names, list->kids[i], NULL);
    if (s->stopped)
        return error_value;
    if (value_is_sequence(&receiver))
        return constant_checked(s, n, constant_method(names, n, &receiver, args, list->kid_count));
    if (s->kernel->op_count >= UNROLL_MAX) {
        s->stopped = true;
        return refuse(s, E_UNROLL, n->name_range, unroll_help, "kernel `%s` has more than %zu stage calls", s->kernel->name, UNROLL_MAX);
    }
    stage_call call = {.scope = names, .kernel = s->kernel, .node = n, .receiver = receiver, .args = args, .expected = expected};
    value v = stage_build(&call);
    if (v.kind == VALUE_ERROR)
        s->kernel->bad = true;
    return v;
}

static value evaluate_integer(analysis *s, scope *names, const ast *n)
{
    value v = {.kind = VALUE_INT};
    if (scope_integer(names, n, &v.number))
        return v;
    s->kernel->bad = true;
    return error_value;
}

static value evaluate_binary(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL), b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_binary(names, n, &a, &b));
}

static value evaluate_unary(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    return constant_checked(s, n, constant_unary(names, n, &a));
}

static value evaluate_range(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL), b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_range(names, n, &a, &b));
}

static value evaluate_index(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL), b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_index(names, n, &a, &b));
}

/* A tuple or an array; `expected` of a tuple has the types of its elements. */
static value evaluate_list(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value *items = ARENA_ARRAY(s->context.arena, value, n->kid_count);
    const ast *types = expected && expected->tuple && expected->tuple->kid_count == n->kid_count ? expected->tuple : NULL;
    for (uint32_t i = 0; i < n->kid_count; i++) {
        declared d = types ? scope_type(expected->scope, types->kids[i]) : (declared){0};
        items[i] = evaluate(s, names, n->kids[i], &d);
        if (items[i].kind == VALUE_ERROR)
            s->kernel->bad = true;
    }
    return (value){.kind = VALUE_LIST, .items = items, .count = n->kid_count};
}

static value evaluate_repeat(analysis *s, scope *names, const ast *n)
{
    value item = evaluate(s, names, ast_kid(n, 0), NULL), count = evaluate(s, names, ast_kid(n, 1), NULL);
    if (item.kind == VALUE_ERROR || count.kind == VALUE_ERROR)
        return error_value;
    if (count.kind != VALUE_INT || count.number < 0)
        return refuse(s, E_CONST, ast_kid(n, 1)->range, NULL, "the length of an array is an integer of at least 0");
    if (!spend(s, n->range, (uint64_t)count.number))
        return error_value;
    value *items = ARENA_ARRAY(s->context.arena, value, (size_t)count.number);
    for (int64_t i = 0; i < count.number; i++)
        items[i] = item;
    return (value){.kind = VALUE_LIST, .items = items, .count = (size_t)count.number};
}

/* ---- if, for, assignment ---- */

static value evaluate_if(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value condition = evaluate(s, names, ast_kid(n, 0), NULL);
    if (condition.kind == VALUE_ERROR)
        return condition;
    if (condition.kind != VALUE_BOOL)
        return refuse(s, E_CONST, ast_kid(n, 0)->range, "compare constants: `i == 0`, `i % 2 == 1`", "the condition of `if` is %s, not a constant condition",
                      value_kind_name(&condition));
    return evaluate(s, names, ast_kid(n, condition.number ? 1 : 2), expected);
}

static value evaluate_for(analysis *s, scope *names, const ast *n)
{
    value sequence = evaluate(s, names, ast_kid(n, 1), NULL);
    if (sequence.kind == VALUE_ERROR)
        return sequence;
    if (!value_is_sequence(&sequence))
        return refuse(s, E_CONST, ast_kid(n, 1)->range, "write `0..N`, or the `.iter()` of an array", "`for` runs through a range or an array, not %s",
                      value_kind_name(&sequence));
    size_t errors_before = s->context.diags->error_count;
    bool outer = s->kernel->repeating;
    for (size_t i = 0; i < sequence.count && !s->stopped; i++) {
        if (!spend(s, n->name_range, 1))
            break;
        scope *inner = scope_new(&s->context, names);
        bind_pattern(s, inner, ast_kid(n, 0), value_item(&sequence, i), NULL);
        evaluate_block(s, inner, ast_kid(n, 2), NULL);
        if (s->context.diags->error_count > errors_before) /* the other iterations would only say it again */
            break;
        set_repeated(s, true);
    }
    set_repeated(s, outer);
    if (s->context.diags->error_count > errors_before)
        return error_value;
    return (value){.kind = VALUE_UNIT};
}

static value evaluate_assignment(analysis *s, scope *names, const ast *n)
{
    const ast *place = ast_kid(n, 0);
    if (strcmp(n->text, "=") != 0)
        return refuse(s, E_UNSUPPORTED, n->name_range, "write `x = x + 1`", "`%s` is not supported in .vm kernels", n->text);
    if (!ast_is(place, AST_PATH) || place->kid_count != 1)
        return refuse(s, E_UNSUPPORTED, place->range, "assign to a variable; write into a part of a tensor through view_mut() and tile", "assigning to this %s is not supported in .vm kernels",
                      ast_kind_name(place->kind));
    const char *name = place->kids[0]->text;
    symbol *y = scope_find(names, VALUE_NAMES, name);
    value v = evaluate(s, names, ast_kid(n, 1), y ? y->declared : NULL);
    if (!y || y->kind != SYMBOL_VARIABLE) {
        const char *near = scope_suggest(names, name, SYMBOL_VARIABLE);
        return refuse(s, E_NAME, place->range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : NULL, "`%s` is not a variable", name);
    }
    if (!y->mutable && y->value.kind != VALUE_UNIT && y->value.kind != VALUE_ERROR) {
        diag *d = diag_add(s->context.diags, E_IMMUTABLE, place->range, "`%s` is assigned again, but it is not `mut`", name);
        diag_note(s->context.diags, d, y->range, "`%s` is bound here", name);
        diag_help(s->context.diags, d, "let mut %s", name);
        s->kernel->bad = true;
    }
    if (v.kind == VALUE_TENSOR && y->declared && !stage_check_type(names, ast_kid(n, 1)->range, &v.op->out, y->declared))
        s->kernel->bad = true;
    if (v.kind == VALUE_TENSOR && v.op->name[0] == '\0')
        v.op->name = name;
    y->value = v;
    y->moved = false;
    return (value){.kind = VALUE_UNIT};
}

/* `HbmTensor::<..>::from_addr(address)`: memory that is written through views. */
static value evaluate_from_addr(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *callee = ast_kid(n, 0), *args = ast_kid(n, 1);
    declared d = scope_type_of_path(names, callee);
    value address = args->kid_count == 1 ? evaluate(s, names, args->kids[0], NULL) : error_value;
    if (d.kind == DECLARED_ERROR || (args->kid_count == 1 && address.kind == VALUE_ERROR)) {
        s->kernel->bad = true;
        return error_value;
    }
    if (d.kind != DECLARED_TENSOR || d.is_view || (d.tensor.kind != TENSOR_HBM && d.tensor.kind != TENSOR_DM))
        return refuse(s, E_UNSUPPORTED, callee->range, "HbmTensor and DmTensor have addresses", "`from_addr` is not supported on this type");
    if (address.kind != VALUE_INT || address.number < 0)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`from_addr` takes an address in bytes, an integer of at least 0");
    if (expected && expected->kind == DECLARED_TENSOR && expected->tensor.kind == d.tensor.kind) {
        for (int c = 0; c < MAPPING_COMPONENTS; c++)
            if (!d.tensor.part[c])
                d.tensor.part[c] = expected->tensor.part[c];
        if (!d.has_dtype)
            d.tensor.dtype = expected->tensor.dtype;
        d.has_dtype = d.has_dtype || expected->has_dtype;
    }
    if (!require_whole(s, &d, "the tensor at this address"))
        return error_value;
    op *o = kernel_add(s->kernel, s->context.arena, IR_ALLOC, CONTEXT_DMA, callee->range);
    o->out = d.tensor;
    o->out.address = address.number;
    memcpy(o->parts, d.parts, sizeof o->parts);
    if (!stage_check_type(names, n->range, &o->out, expected))
        o->bad = s->kernel->bad = true;
    return (value){.kind = VALUE_TENSOR, .op = o};
}

/* A parameter of a function that is inlined: the argument under a new name. */
static void bind_parameter(analysis *s, scope *inner, const ast *param, value v, const ast *argument)
{
    declared *d = ARENA_NEW(s->context.arena, declared);
    *d = scope_type(inner, ast_kid(param, 2));
    bool memory = v.kind == VALUE_TENSOR || v.kind == VALUE_VIEW;
    if (d->kind == DECLARED_ERROR) {
        s->kernel->bad = true;
        v = error_value;
    } else if (v.kind != VALUE_ERROR && ((d->kind == DECLARED_TENSOR) != memory || (d->kind == DECLARED_TENSOR && d->is_view != (v.kind == VALUE_VIEW)) ||
                                         (d->kind == DECLARED_CONTEXT) != (v.kind == VALUE_CONTEXT))) {
        diag *e = diag_add(s->context.diags, E_MISMATCH, argument->range, "the argument is %s, but the parameter has another type", value_kind_name(&v));
        diag_note(s->context.diags, e, ast_kid(param, 2)->range, "declared here");
        s->kernel->bad = true;
        v = error_value;
    } else if (memory && d->kind == DECLARED_TENSOR && !stage_check_type(inner, argument->range, &v.op->out, d)) {
        s->kernel->bad = true;
    } else if (v.kind == VALUE_VIEW && d->mutable && !v.writable) {
        v = refuse(s, E_VIEW_READ_ONLY, argument->range, "write view_mut() instead of view()", "the function writes into this view, which is only read");
    }
    if (v.kind == VALUE_VIEW)
        v.writable = v.writable && d->mutable;
    bind_pattern(s, inner, ast_kid(param, 1), v, d->kind == DECLARED_TENSOR ? d : NULL);
}

/* A function that is called is compiled where it is called. */
static value evaluate_function(analysis *s, scope *names, const ast *n, symbol *y, const declared *expected)
{
    const ast *fn = y->node, *params = ast_kid(fn, 2), *args = ast_kid(n, 1), *body = ast_kid(fn, 4);
    if (y->busy)
        return refuse(s, E_UNSUPPORTED, n->range, "use a constant `for`", "recursion is not supported in .vm kernels: `%s` calls itself", y->name);
    if (args->kid_count != params->kid_count)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`%s` takes %u arguments, got %u", y->name, params->kid_count, args->kid_count);
    if (!ast_is(body, AST_BLOCK))
        return refuse(s, E_UNSUPPORTED, n->range, NULL, "`%s` has no body", y->name);
    if (!spend(s, n->range, 1))
        return error_value;
    scope *inner = scope_new(&s->context, y->scope);
    declare_generics(s, inner, ast_kid(fn, 1));
    for (uint32_t i = 0; i < params->kid_count; i++)
        bind_parameter(s, inner, params->kids[i], evaluate(s, names, args->kids[i], NULL), args->kids[i]);
    declared result = scope_type(inner, ast_kid(fn, 3));
    bool repeated = s->kernel->repeating, broken = s->broken;
    s->broken = broken || was_broken(s, fn->range);
    set_repeated(s, repeated || y->calls++ > 0);
    y->busy = true;
    size_t before = s->kernel->op_count;
    value v = evaluate_block(s, inner, body, result.kind == DECLARED_TENSOR || result.tuple ? &result : expected);
    y->busy = false;
    if (v.kind == VALUE_TENSOR && result.kind == DECLARED_TENSOR) {
        stage_adopt(v.op, &result);
        if (s->kernel->op_count == before && !stage_check_type(inner, body->range, &v.op->out, &result))
            s->kernel->bad = true;
    }
    set_repeated(s, repeated);
    s->broken = broken;
    return result.kind == DECLARED_NONE || result.kind == DECLARED_UNIT ? (value){.kind = v.kind == VALUE_ERROR ? VALUE_ERROR : VALUE_UNIT} : v;
}

static value evaluate_call(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *callee = ast_kid(n, 0);
    symbol *y = ast_is(callee, AST_PATH) ? scope_find_path(names, VALUE_NAMES, callee) : NULL;
    if (y && y->kind == SYMBOL_FUNCTION)
        return evaluate_function(s, names, n, y, expected);
    if (ast_is(callee, AST_PATH) && callee->kid_count >= 2 && strcmp(callee->kids[callee->kid_count - 1]->text, "from_addr") == 0)
        return evaluate_from_addr(s, names, n, expected);
    if (ast_is(callee, AST_PATH) && callee->kid_count > 0) {
        const char *name = callee->kids[callee->kid_count - 1]->text, *near = scope_suggest(names, name, SYMBOL_FUNCTION);
        return refuse(s, E_NAME, callee->range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : "functions of the file and of its modules can be called",
                      "there is no function `%s`", name);
    }
    return unsupported(s, n);
}

static value unsupported(analysis *s, const ast *n)
{
    static const struct {
        ast_kind kind;
        const char *what, *instead;
    } rows[] = {
        {AST_CALL, "calling a value", "call a function by its name"},
        {AST_MACRO, "a macro", "kernels use axes! and m! only"},
        {AST_STRUCT_LITERAL, "a struct literal", "no stage of this release takes one"},
        {AST_CAST, "`as`", "use constants of one type"},
        {AST_TRY, "`?`", "kernels have no Result"},
        {AST_AWAIT, ".await", "kernels are not async"},
        {AST_FLOAT, "a floating-point number", "addresses and sizes are integers"},
        {AST_STRING, "a string", "addresses and sizes are integers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == n->kind)
            return refuse(s, E_UNSUPPORTED, n->name_range, rows[i].instead, "%s is not supported in .vm kernels", rows[i].what);
    if (ast_is(n, AST_UNSUPPORTED)) {
        bool closure = strcmp(n->text, "closure") == 0;
        return refuse(s, E_UNSUPPORTED, n->name_range, closure ? "kernels have no functions as values" : "use constants", "%s is not supported in .vm kernels", n->text);
    }
    return refuse(s, E_UNSUPPORTED, n->range, NULL, "this %s is not supported in .vm kernels", ast_kind_name(n->kind));
}

static value evaluate_kind(analysis *s, scope *names, const ast *n, const declared *expected)
{
    switch (n->kind) {
    case AST_NONE:
        return (value){.kind = VALUE_UNIT};
    case AST_ERROR:
        s->kernel->bad = true;
        return error_value;
    case AST_PATH:
        return n->kid_count >= 2 ? evaluate_variant(s, names, n) : evaluate_name(s, names, n, n->kids[0]->text);
    case AST_BORROW: case AST_DEREF:
        return evaluate(s, names, ast_kid(n, 0), expected);
    case AST_FIELD:
        return evaluate_field(s, names, n);
    case AST_METHOD:
        return evaluate_method(s, names, n, expected);
    case AST_INT: case AST_TYPE_QUALIFIED:
        return evaluate_integer(s, names, n);
    case AST_BOOL:
        return (value){.kind = VALUE_BOOL, .number = n->value};
    case AST_UNARY:
        return evaluate_unary(s, names, n);
    case AST_BINARY:
        return evaluate_binary(s, names, n);
    case AST_RANGE:
        return evaluate_range(s, names, n);
    case AST_INDEX:
        return evaluate_index(s, names, n);
    case AST_TUPLE: case AST_ARRAY:
        return n->kid_count == 0 && ast_is(n, AST_TUPLE) ? (value){.kind = VALUE_UNIT} : evaluate_list(s, names, n, expected);
    case AST_ARRAY_REPEAT:
        return evaluate_repeat(s, names, n);
    case AST_IF:
        return evaluate_if(s, names, n, expected);
    case AST_FOR:
        return evaluate_for(s, names, n);
    case AST_ASSIGN:
        return evaluate_assignment(s, names, n);
    case AST_CALL:
        return evaluate_call(s, names, n, expected);
    case AST_UNSAFE:
        return evaluate_block(s, names, ast_kid(n, 0), expected);
    case AST_BLOCK:
        return evaluate_block(s, names, n, expected);
    default:
        return unsupported(s, n);
    }
}

static value evaluate(analysis *s, scope *names, const ast *n, const declared *expected)
{
    enum { DEPTH_MAX = 1000 };
    if (s->stopped)
        return error_value;
    if (s->depth >= DEPTH_MAX) {
        s->stopped = true;
        return refuse(s, E_NESTING, n->range, "let functions call each other less deeply", "calls and expressions nest more than %d levels deep here", DEPTH_MAX);
    }
    s->depth++;
    value v = evaluate_kind(s, names, n, expected);
    s->depth--;
    return v;
}

/* ---- statements ---- */

static void bind_pattern(analysis *s, scope *names, const ast *pattern, value v, const declared *annotation)
{
    switch (pattern->kind) {
    case AST_PAT_NAME: {
        if (v.kind == VALUE_TENSOR && v.op->name[0] == '\0')
            v.op->name = pattern->text;
        symbol *y = scope_add(names, SYMBOL_VARIABLE, pattern->text, pattern->name_range);
        y->value = v;
        y->mutable = pattern->value;
        y->declared = annotation;
        break;
    }
    case AST_PAT_REF:
        bind_pattern(s, names, ast_kid(pattern, 0), v, annotation);
        break;
    case AST_PAT_TUPLE:
        if (v.kind != VALUE_ERROR && (v.kind != VALUE_LIST || v.count != pattern->kid_count)) {
            refuse(s, E_MISMATCH, pattern->range, NULL, "the pattern has %u elements, but the value is %s%s", pattern->kid_count, value_kind_name(&v),
                   v.kind == VALUE_LIST ? arena_printf(s->context.arena, " of %zu", v.count) : "");
            v = error_value;
        }
        for (uint32_t i = 0; i < pattern->kid_count; i++)
            bind_pattern(s, names, pattern->kids[i], v.kind == VALUE_LIST ? v.items[i] : error_value, NULL);
        break;
    case AST_PAT_WILD:
        break;
    default:
        s->kernel->bad = true;
    }
}

static void evaluate_let(analysis *s, scope *names, const ast *let)
{
    declared *annotation = ARENA_NEW(s->context.arena, declared);
    *annotation = scope_type(names, ast_kid(let, 1));
    if (annotation->kind == DECLARED_ERROR)
        s->kernel->bad = true;
    size_t before = s->kernel->op_count;
    value v = evaluate(s, names, ast_kid(let, 2), annotation);
    if (annotation->kind == DECLARED_ERROR)
        v = error_value;
    if (v.kind == VALUE_TENSOR)
        stage_adopt(v.op, annotation);
    if (v.kind == VALUE_TENSOR && s->kernel->op_count == before && !stage_check_type(names, ast_kid(let, 2)->range, &v.op->out, annotation))
        s->kernel->bad = true;
    bind_pattern(s, names, ast_kid(let, 0), v, annotation->kind == DECLARED_TENSOR ? annotation : NULL);
}

/* A stage as a statement: what it gives is lost. */
static void warn_discarded(analysis *s, const ast *statement, const value *v, size_t ops_before)
{
    if (v->kind != VALUE_TENSOR || v->op->index < ops_before || v->op->bad || s->kernel->bad)
        return;
    diag *d = diag_add(s->context.diags, W_DISCARDED, ast_kid(statement, 0)->name_range, "the %s of `%s` is not used", tensor_kind_name(v->op->out.kind), op_kind_name(v->op->kind));
    diag_help(s->context.diags, d, "bind it: `let name = ..;`, or remove the statement");
}

static bool is_item(const ast *n)
{
    return n->kind >= AST_AXES && n->kind <= AST_ITEM_IGNORED;
}

static value evaluate_block(analysis *s, scope *outer, const ast *block, const declared *expected)
{
    scope *inner = scope_new(&s->context, outer);
    value last = {.kind = VALUE_UNIT};
    index_add_scope(&s->context, block->range, inner);
    collect_items(s, inner, block, 0);
    resolve_uses(s);
    for (uint32_t i = 0; i < block->kid_count && !s->stopped; i++) {
        const ast *n = block->kids[i];
        if (ast_is(n, AST_LET)) {
            evaluate_let(s, inner, n);
        } else if (ast_is(n, AST_EXPR_STMT)) {
            bool is_tail = i + 1 == block->kid_count && n->text[0] == '\0';
            size_t ops_before = s->kernel->op_count;
            value v = evaluate(s, inner, ast_kid(n, 0), is_tail ? expected : NULL);
            if (is_tail)
                last = v;
            else
                warn_discarded(s, n, &v, ops_before);
        } else if (ast_is(n, AST_ERROR)) {
            s->kernel->bad = true;
            last = error_value;
        } else if (!is_item(n) && !ast_is(n, AST_ATTR)) {
            last = evaluate(s, inner, n, i + 1 == block->kid_count ? expected : NULL);
        }
    }
    return last;
}

/* ---- functions ---- */

static uint32_t add_port(analysis *s, const char *name, bool is_output, const tensor *t, src_range range)
{
    kernel_port p = {name, is_output, *t, range};
    ARENA_PUSH(s->context.arena, s->kernel->ports, s->kernel->port_count, s->kernel->port_capacity, p);
    return (uint32_t)s->kernel->port_count - 1;
}

static bool require_whole(analysis *s, const declared *d, const char *what)
{
    bool whole = d->has_dtype;
    for (const char *p = tensor_kind_components(d->tensor.kind); *p; p++)
        whole = whole && d->tensor.part[component_of_letter(*p)];
    if (!whole)
        refuse(s, E_INFER, d->range, d->tensor.address == -1 && strncmp(what, "parameter", 9) == 0 ? "write the parameter's whole type" : "write the whole type", "the type of %s cannot be inferred", what);
    return whole;
}

static void declare_parameter(analysis *s, scope *names, const ast *param)
{
    const ast *pattern = ast_kid(param, 1);
    declared d = scope_type(names, ast_kid(param, 2));
    const char *name = ast_is(pattern, AST_PAT_NAME) ? pattern->text : "_";
    symbol *y = scope_add(names, SYMBOL_VARIABLE, name, pattern->range);
    if (d.kind == DECLARED_CONTEXT) {
        y->value = (value){.kind = VALUE_CONTEXT};
        return;
    }
    y->value = error_value;
    if (d.kind != DECLARED_TENSOR) {
        if (d.kind != DECLARED_ERROR)
            refuse(s, E_UNSUPPORTED, ast_kid(param, 2)->range, "kernels take a Context and tensors", "this parameter type is not supported in .vm kernels");
        s->kernel->bad = true;
        return;
    }
    if (d.is_view || (d.mutable && d.tensor.kind != TENSOR_HBM && d.tensor.kind != TENSOR_DM)) {
        refuse(s, E_UNSUPPORTED, ast_kid(param, 2)->range, "pass the tensor itself, as & or &mut", "%s is not supported as a kernel's parameter",
               d.is_view ? "a view" : "a stream behind `&mut`");
        return;
    }
    if (d.tensor.kind >= TENSOR_BEGIN && (d.tensor.kind == TENSOR_ALIGNED || d.tensor.kind == TENSOR_CONTRACTION || d.tensor.kind == TENSOR_BEGIN)) {
        refuse(s, E_UNSUPPORTED, ast_kid(param, 2)->range, "let the kernel begin at an earlier stage", "a %s as parameter is not supported yet", tensor_kind_name(d.tensor.kind));
        return;
    }
    require_whole(s, &d, arena_printf(s->context.arena, "parameter `%s`", name));
    op *o = kernel_add(s->kernel, s->context.arena, d.mutable ? IR_ALLOC : IR_PORT_IN, CONTEXT_MAIN, ast_is(pattern, AST_PAT_NAME) ? pattern->name_range : pattern->range);
    o->out = d.tensor;
    o->name = name;
    memcpy(o->parts, d.parts, sizeof o->parts);
    o->bad = s->kernel->bad;
    if (!d.mutable)
        o->port = add_port(s, name, false, &o->out, o->range);
    y->value = (value){.kind = VALUE_TENSOR, .op = o};
}

static void add_result(analysis *s, const value *v, src_range range, const char *name)
{
    op *o = kernel_add(s->kernel, s->context.arena, IR_PORT_OUT, v->op->context, range);
    o->input = v->op;
    o->out = v->op->out;
    o->name = name;
    o->bad = v->op->bad;
    o->port = add_port(s, name, true, &o->out, range);
    if (o->out.kind == TENSOR_ALIGNED)
        add_port(s, arena_printf(s->context.arena, "%s_weights", name), true, &o->out, range);
}

static bool is_tensor_function(scope *names, const ast *fn)
{
    const ast *params = ast_kid(fn, 2);
    for (uint32_t i = 0; i < params->kid_count; i++) {
        const ast *type = ast_kid(params->kids[i], 2);
        while (ast_is(type, AST_TYPE_REF))
            type = ast_kid(type, 0);
        if (!ast_is(type, AST_TYPE_PATH) || type->kid_count == 0)
            continue;
        const char *name = type->kids[type->kid_count - 1]->text;
        for (tensor_kind kind = 0; kind < TENSOR_KIND_COUNT; kind++)
            if (strcmp(name, tensor_kind_name(kind)) == 0)
                return true;
        symbol *y = scope_find_path(names, TYPE_NAMES, type);
        if (y && y->kind == SYMBOL_ALIAS && scope_type(names, type).kind == DECLARED_TENSOR)
            return true;
        size_t bytes = strlen(name);
        if (bytes > 6 && strcmp(name + bytes - 6, "Tensor") == 0)
            return true;
    }
    return false;
}

/* #[device(chip = n)]; chip absent means 1. */
static void read_device(analysis *s, const ast *fn)
{
    const ast *attributes = ast_kid(fn, 0);
    for (uint32_t i = 0; i < attributes->kid_count; i++) {
        const ast *a = attributes->kids[i];
        if (strcmp(a->text, "device") != 0)
            continue;
        s->kernel->is_device = true;
        for (uint32_t j = 1; j < a->kid_count; j++) {
            const ast *arg = a->kids[j];
            if (strcmp(arg->text, "chip") == 0 && ast_is(ast_kid(arg, 0), AST_INT))
                s->kernel->chips = ast_kid(arg, 0)->value;
            else
                refuse(s, E_UNSUPPORTED, arg->range, "device takes `chip = n`", "device attribute `%s` is not known", arg->text);
        }
    }
}

static void declare_generics(analysis *s, scope *names, const ast *generics)
{
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i];
        if (ast_is(g, AST_GENERIC_CONST))
            scope_add(names, SYMBOL_CONST_PARAM, g->text, g->name_range);
        else if (ast_is(g, AST_GENERIC_TYPE))
            refuse(s, E_UNSUPPORTED, g->range, "write one function per type", "generic type parameters are not supported in .vm kernels");
    }
}

/* Has text inside this range been left out by the parser? */
static bool was_broken(const analysis *s, src_range range)
{
    for (size_t i = 0; i < s->context.diags->count; i++) {
        const diag *d = s->context.diags->items[i];
        bool syntax = d->id == E_LEX || d->id == E_DELIMITER || d->id == E_PARSE || d->id == E_MAP_SYNTAX || d->id == E_NESTING;
        if (syntax && d->range.begin >= range.begin && d->range.begin < range.end)
            return true;
    }
    return false;
}

static bool is_port_name(const kernel *k, const char *name)
{
    for (size_t i = 0; i < k->port_count; i++)
        if (strcmp(k->ports[i].name, name) == 0)
            return true;
    return false;
}

/* Results through `&mut` parameters come first, in the order of the parameters. */
static size_t add_written_parameters(analysis *s)
{
    size_t before = s->kernel->port_count, count = s->kernel->op_count;
    for (size_t i = 0; i < count; i++) {
        op *o = s->kernel->ops[i];
        if (o->kind != IR_ALLOC || o->out.address >= 0)
            continue;
        value v = {.kind = VALUE_TENSOR, .op = o};
        add_result(s, &v, o->range, o->name);
    }
    return s->kernel->port_count - before;
}

/* A tuple: its variables' names, or out0, out1, .. */
static void add_results(analysis *s, scope *names, const value *v, const ast *tail, const declared *result, src_range range)
{
    const ast *types = result->tuple && result->tuple->kid_count == v->count ? result->tuple : NULL;
    if (result->kind != DECLARED_NONE && result->kind != DECLARED_ERROR && !types)
        refuse(s, E_MISMATCH, range, NULL, "the function's body gives a tuple of %zu, but another type is declared", v->count);
    for (size_t i = 0; i < v->count; i++) {
        const value *item = &v->items[i];
        const ast *written = ast_is(tail, AST_TUPLE) ? ast_kid(tail, (uint32_t)i) : tail;
        bool named = ast_is(written, AST_PATH) && written->kid_count == 1 && written != tail && !is_port_name(s->kernel, written->kids[0]->text);
        if (item->kind == VALUE_ERROR)
            continue;
        if (item->kind != VALUE_TENSOR) {
            refuse(s, E_UNSUPPORTED, written->range, "return tensors", "a kernel returns %s", value_kind_name(item));
            continue;
        }
        declared d = types ? scope_type(result->scope, types->kids[i]) : (declared){0};
        if (!stage_check_type(names, written->range, &item->op->out, &d))
            s->kernel->bad = true;
        add_result(s, item, written->range, named ? written->kids[0]->text : arena_printf(s->context.arena, "out%zu", i));
    }
}

static bool kernel_named(const analysis *s, const char *name)
{
    for (size_t i = 0; i < s->module->count; i++)
        if (strcmp(s->module->kernels[i]->name, name) == 0)
            return true;
    return false;
}

static void analyse_kernel(analysis *s, scope *outer, const ast *fn)
{
    kernel *k = ARENA_NEW(s->context.arena, kernel);
    *k = (kernel){.name = s->only ? s->only : fn->text, .range = fn->name_range, .chips = 1};
    symbol *self = scope_find_here(outer, VALUE_NAMES, fn->text);
    if (self && self->kind == SYMBOL_FUNCTION)
        self->busy = true;
    if (kernel_named(s, k->name)) /* of another module: its path tells them apart */
        k->name = arena_printf(s->context.arena, "%s%s", s->module_path ? s->module_path : "", fn->text);
    if (kernel_named(s, k->name)) {
        s->kernel = k;
        refuse(s, E_DUPLICATE, fn->name_range, "kernel names are the names of the binary's sections", "kernel `%s` is defined twice", fn->text);
    }
    s->kernel = k;
    s->steps = 0;
    s->stopped = false;
    s->broken = was_broken(s, fn->range);
    size_t errors_before = s->context.diags->error_count;
    ARENA_PUSH(s->context.arena, s->module->kernels, s->module->count, s->module->capacity, k);
    scope *names = scope_new(&s->context, outer);
    index_add_scope(&s->context, fn->range, names);
    read_device(s, fn);
    declare_generics(s, names, ast_kid(fn, 1));
    const ast *params = ast_kid(fn, 2);
    for (uint32_t i = 0; i < params->kid_count; i++)
        declare_parameter(s, names, params->kids[i]);
    declared result = scope_type(names, ast_kid(fn, 3));
    const ast *body = ast_kid(fn, 4);
    if (ast_is(body, AST_BLOCK)) {
        value v = evaluate_block(s, names, body, &result);
        if (s->stopped)
            v = error_value;
        const ast *tail = body->kid_count ? ast_kid(body->kids[body->kid_count - 1], 0) : body;
        bool named = ast_is(tail, AST_PATH) && tail->kid_count == 1;
        src_range range = body->kid_count ? body->kids[body->kid_count - 1]->range : body->range;
        size_t written = add_written_parameters(s);
        if (v.kind == VALUE_LIST) {
            add_results(s, names, &v, tail, &result, range);
        } else if (v.kind == VALUE_TENSOR && result.kind == DECLARED_NONE) {
            refuse(s, E_MISMATCH, range, arena_printf(s->context.arena, "write -> %s<..> behind the parameters", tensor_kind_name(v.op->out.kind)),
                   "the body gives a %s, but the function declares no result", tensor_kind_name(v.op->out.kind));
        } else if (v.kind == VALUE_TENSOR) {
            stage_adopt(v.op, &result);
            if (named && !stage_check_type(names, range, &v.op->out, &result))
                k->bad = true;
            add_result(s, &v, range, named && !is_port_name(k, tail->kids[0]->text) ? tail->kids[0]->text : "out");
        } else if (v.kind == VALUE_ERROR || s->broken) {
            k->bad = true;
        } else if (result.kind == DECLARED_TENSOR) {
            refuse(s, E_MISMATCH, range, "end the body with the tensor, without a semicolon", "the function declares a %s but its body gives no tensor",
                   tensor_kind_name(result.tensor.kind));
        } else if (written == 0) {
            refuse(s, E_UNSUPPORTED, fn->name_range, "return the tensor, or write an `&mut HbmTensor` through its view_mut()", "kernel `%s` returns no tensor", fn->text);
        }
    } else {
        refuse(s, E_UNSUPPORTED, fn->name_range, NULL, "kernel `%s` has no body", fn->text);
    }
    if (s->context.diags->error_count > errors_before)
        k->bad = true;
    s->context.diags->repeating = 0;
    if (self)
        self->busy = false;
    s->kernel = NULL;
}

/* ---- items ---- */

static symbol *collect_item(analysis *s, scope *names, const ast *n, symbol_kind kind)
{
    symbol *known = scope_find_here(names, kind == SYMBOL_ALIAS ? TYPE_NAMES : kind == SYMBOL_MODULE ? MODULE_NAMES : VALUE_NAMES, n->text);
    if (known && kind == SYMBOL_FUNCTION) /* two kernels of one name are refused where they are compiled */
        return known;
    if (known && !known->target) {
        diag *d = diag_add(s->context.diags, E_DUPLICATE, n->name_range, "`%s` is defined twice", n->text);
        diag_note(s->context.diags, d, known->range, "first defined here");
        diag_help(s->context.diags, d, "rename one of the two");
        return NULL;
    }
    symbol *y = scope_add(names, kind, n->text, n->name_range);
    y->node = kind == SYMBOL_FUNCTION ? n : ast_kid(n, 2);
    return y;
}

/* The body of `mod x { .. }`, or what `mod x;` names; an empty block when it was diagnosed. */
static const ast *module_body(analysis *s, const ast *n)
{
    const ast *body = ast_kid(n, 1);
    if (!ast_is(body, AST_NONE) || !s->options || !s->options->load)
        return body;
    for (size_t i = 0; i < s->loaded_count; i++)
        if (s->loaded[i].node == n)
            return s->loaded[i].body;
    loaded_module m = {n, s->options->load(s->options->user, n)};
    if (!m.body)
        m.body = ast_new(s->context.arena, AST_BLOCK, n->range);
    ARENA_PUSH(s->context.arena, s->loaded, s->loaded_count, s->loaded_capacity, m);
    return m.body;
}

static void collect_module(analysis *s, scope *names, const ast *n)
{
    symbol *y = collect_item(s, names, n, SYMBOL_MODULE);
    if (!y)
        return;
    y->inner = scope_new(&s->context, names);
    scope_set_module(y->inner);
    index_add_scope(&s->context, module_body(s, n)->range, y->inner);
    s->module_depth++;
    if (s->module_depth < MODULE_DEPTH_MAX)
        collect_items(s, y->inner, module_body(s, n), 0);
    s->module_depth--;
}

static void collect_items(analysis *s, scope *names, const ast *parent, uint32_t first)
{
    for (uint32_t i = first; i < parent->kid_count; i++) {
        const ast *n = parent->kids[i];
        if (ast_is(n, AST_AXES)) {
            scope_add_axes(names, n);
        } else if (ast_is(n, AST_TYPE_ALIAS) || ast_is(n, AST_CONST)) {
            collect_item(s, names, n, ast_is(n, AST_CONST) ? SYMBOL_CONST : SYMBOL_ALIAS);
        } else if (ast_is(n, AST_FN)) {
            collect_item(s, names, n, SYMBOL_FUNCTION);
        } else if (ast_is(n, AST_MOD)) {
            collect_module(s, names, n);
        } else if (ast_is(n, AST_USE)) {
            pending_use u = {names, n};
            ARENA_PUSH(s->context.arena, s->uses, s->use_count, s->use_capacity, u);
        }
    }
}

/* Imports may go through imports of other modules: until nothing new comes. */
static void resolve_uses(analysis *s)
{
    enum { ROUNDS = 16 };
    bool grew = true;
    for (int round = 0; round < ROUNDS && grew; round++) {
        grew = false;
        for (size_t i = 0; i < s->use_count; i++)
            grew = scope_use(s->uses[i].scope, s->uses[i].node) || grew;
    }
    s->use_count = 0;
}

/* ---- which functions are kernels ---- */

static void collect_calls(analysis *s, const ast *n, const char *caller)
{
    const ast *callee = ast_is(n, AST_CALL) ? ast_kid(n, 0) : NULL;
    if (callee && ast_is(callee, AST_PATH) && callee->kid_count > 0 && strcmp(callee->kids[callee->kid_count - 1]->text, caller) != 0) {
        const char *name = callee->kids[callee->kid_count - 1]->text;
        ARENA_PUSH(s->context.arena, s->called, s->called_count, s->called_capacity, name);
    }
    for (uint32_t i = 0; i < n->kid_count; i++)
        collect_calls(s, n->kids[i], ast_is(n, AST_FN) ? n->text : caller);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_device(const ast *fn)
{
    const ast *attributes = ast_kid(fn, 0);
    for (uint32_t i = 0; i < attributes->kid_count; i++)
        if (strcmp(attributes->kids[i]->text, "device") == 0)
            return true;
    return false;
}

static bool is_kernel(analysis *s, scope *names, const ast *fn)
{
    if (s->only) {
        const char *path = arena_printf(s->context.arena, "%s%s", s->module_path ? s->module_path : "", fn->text);
        if (strcmp(s->only, path) != 0 && (strcmp(s->only, fn->text) != 0 || s->module->count > 0))
            return false;
    }
    if (is_device(fn))
        return true;
    const char *name = fn->text;
    bool called = s->called_count && bsearch(&name, s->called, s->called_count, sizeof *s->called, by_name);
    return !called && is_tensor_function(names, fn);
}

/* Functions after all items of their names are known; host functions and modules are only searched for kernels. */
static void analyse_functions(analysis *s, scope *outer, const ast *parent)
{
    for (uint32_t i = 0; i < parent->kid_count; i++) {
        const ast *n = parent->kids[i];
        if (ast_is(n, AST_FN) && is_kernel(s, outer, n)) {
            analyse_kernel(s, outer, n);
        } else if (ast_is(n, AST_FN) && ast_is(ast_kid(n, 4), AST_BLOCK)) {
            scope *inner = scope_new(&s->context, outer);
            collect_items(s, inner, ast_kid(n, 4), 0);
            resolve_uses(s);
            analyse_functions(s, inner, ast_kid(n, 4));
        } else if (ast_is(n, AST_MOD)) {
            symbol *y = scope_find_here(outer, MODULE_NAMES, n->text);
            const char *path = s->module_path;
            if (!y || !y->inner || s->module_depth >= MODULE_DEPTH_MAX)
                continue;
            s->module_depth++;
            s->module_path = arena_printf(s->context.arena, "%s%s::", path ? path : "", n->text);
            analyse_functions(s, y->inner, module_body(s, n));
            s->module_path = path;
            s->module_depth--;
        }
    }
}

module *sema_module(const ast *file, mapping_context *mappings, arena *a, diag_list *diags, const sema_options *options)
{
    static const sema_options none;
    analysis *s = ARENA_NEW(a, analysis);
    s->options = options ? options : &none;
    s->context = (scope_context){mappings, a, diags, s->options->index};
    s->module = ARENA_NEW(a, module);
    s->only = s->options->only;
    scope *root = scope_new(&s->context, NULL);
    scope_set_module(root);
    index_add_scope(&s->context, file->range, root);
    collect_items(s, root, file, 0);
    resolve_uses(s);
    collect_calls(s, file, "");
    for (size_t i = 0; i < s->loaded_count; i++)
        collect_calls(s, s->loaded[i].body, "");
    if (s->called_count)
        qsort(s->called, s->called_count, sizeof *s->called, by_name);
    analyse_functions(s, root, file);
    if (s->only && s->module->count == 0 && diags->error_count == 0)
        diag_help(diags, diag_add(diags, E_KERNEL, SRC_NOWHERE, "there is no kernel `%s`", s->only), "--emit=ast without --kernel shows the file's functions");
    return s->module;
}
