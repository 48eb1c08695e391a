/* Calls: a function is compiled where it is called; one that is called on a type is a stage. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/parse.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "support/budget.h"
#include "support/choice.h"

/* `HbmTensor::<..>::new()`: a stage that is called on a type. */
STACK_APART static value evaluate_type_function(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *callee = ast_kid(n, 0), *args = ast_kid(n, 1);
    declared type = scope_type_of_path(names, callee);
    value *given = ARENA_ARRAY(s->context.arena, value, args->kid_count);
    bool bad = type.kind == DECLARED_ERROR;
    for (uint32_t i = 0; i < args->kid_count; i++) {
        given[i] = evaluate(s, names, args->kids[i], NULL);
        bad = bad || given[i].kind == VALUE_ERROR;
    }
    if (bad) {
        s->kernel->bad = true;
        return error_value;
    }
    ast *method = ast_new(s->context.arena, AST_METHOD, n->range);
    ast_push(s->context.arena, method, (ast *)callee);
    ast_push(s->context.arena, method, ast_new(s->context.arena, AST_NONE, callee->range));
    ast_push(s->context.arena, method, (ast *)args);
    method->text = callee->kids[callee->kid_count - 1]->text;
    method->name_range = callee->range;
    stage_call call = {.scope = names,
                       .kernel = s->kernel,
                       .node = method,
                       .receiver = {.kind = VALUE_TYPE, .type = &type},
                       .args = given,
                       .expected = expected};
    return stage_build(&call);
}

static void infer_generics(analysis *s, scope *inner, const ast *type, const tensor *t, bool has_dtype);
static void infer_type(analysis *s, scope *inner, const ast *type, const value *v);
static bool has_open_axis(analysis *s, scope *inner, const ast *type);
static void lose_axes(analysis *s, scope *inner, const ast *type);

/* A parameter of a function that is inlined: the argument, read in `names`, under a new name. */
STACK_APART static void bind_parameter(analysis *s, scope *inner, const ast *param, scope *names, const ast *argument)
{
    declared *d = ARENA_NEW(scope_arena(inner), declared);
    bool open = has_open_axis(s, inner, ast_kid(param, 2)); /* without a meaning before the argument has one */
    if (!open)
        *d = scope_type(inner, ast_kid(param, 2));
    declared *hint = ARENA_NEW(scope_arena(inner), declared);
    *hint = *d;
    hint->is_hint = true;
    value v = evaluate_counted(s, names, argument, open ? NULL : hint);
    bool memory = v.kind == VALUE_TENSOR || v.kind == VALUE_VIEW;
    if (open && v.kind == VALUE_ERROR)
        lose_axes(s, inner, ast_kid(param, 2));
    if (open && !memory)
        *d = scope_type(inner, ast_kid(param, 2));
    if (memory && (open || d->kind == DECLARED_TENSOR)) {
        infer_generics(s, inner, ast_kid(param, 2), &v.op->out, !v.op->open_dtype);
        *d = scope_type(inner, ast_kid(param, 2));
        if (!stage_settle(v.op, d))
            stage_refuse_open(s->kernel, s->context.diags, v.op);
    }
    bool is_reference = ast_is(ast_kid(param, 2), AST_TYPE_REF), mutable = is_reference && ast_kid(param, 2)->text[0] != '\0';
    if (d->kind == DECLARED_ERROR) {
        s->kernel->bad = true;
        v = error_value;
    } else if (is_reference && stage_lacks_borrow(argument, &v, mutable)) {
        diag *e = refuse_diag(s, E_MISMATCH, argument->range, "the parameter is a reference, but the argument is written without `%s`",
                              stage_borrow_text(mutable));
        stage_help_borrow(s->context.diags, e, argument, mutable);
        v = error_value;
    } else if (v.kind != VALUE_ERROR &&
               ((d->kind == DECLARED_UNIT_OF_CONTEXT && !(v.kind == VALUE_UNIT_OF_CONTEXT && (d->units >> v.context & 1))) ||
                (d->kind == DECLARED_TENSOR) != memory || (d->kind == DECLARED_TENSOR && d->is_view != (v.kind == VALUE_VIEW)) ||
                (d->kind == DECLARED_CONTEXT) != (v.kind == VALUE_CONTEXT))) {
        diag *e = diag_add(s->context.diags, E_MISMATCH, argument->range, "the argument is %s, but the parameter has another type",
                           value_kind_name(&v));
        diag_note(s->context.diags, e, ast_kid(param, 2)->range, "declared here");
        if (memory && d->kind == DECLARED_TENSOR && d->tensor.kind == v.op->out.kind)
            diag_help(s->context.diags, e, d->is_view ? "pass a view of it: `.view()`" : "pass the tensor itself: no `.view()`");
        else if (d->kind == DECLARED_UNIT_OF_CONTEXT)
            diag_help(s->context.diags, e, "pass `&mut` of the @Context's %s",
                      d->units & IN_DMA     ? "tdma"
                      : d->units == IN_MAIN ? "main"
                      : d->units == IN_SUB  ? "sub"
                                            : "main or sub");
        else if (memory)
            diag_help(s->context.diags, e, "what takes it is %s%s<Dtype, ..>", tensor_kind_word(v.op->out.kind),
                      v.kind == VALUE_VIEW ? "View" : "");
        s->kernel->bad = true;
        v = error_value;
    } else if (memory && d->kind == DECLARED_TENSOR && !v.op->bad && !stage_check_type(inner, argument->range, &v.op->out, d)) {
        s->kernel->bad = true;
    } else if (v.kind == VALUE_VIEW && d->mutable && !v.writable) {
        diag *e = refuse_diag(s, E_VIEW_READ_ONLY, argument->range, "the function writes into this view, which is only read");
        stage_help_view(s->context.diags, e, argument, true);
        v = error_value;
    }
    if (v.kind == VALUE_VIEW)
        v.writable = v.writable && d->mutable;
    if (v.kind == VALUE_LIST && v.record) {
        v.fields_in = v.fields_in ? v.fields_in : d->record == v.record ? d->scope : NULL;
        infer_type(s, inner, ast_kid(param, 2), &v);
    }
    bind_pattern(s, inner, ast_kid(param, 1), &v, d->kind == DECLARED_TENSOR ? d : NULL);
}

/* Of a number, a condition or a choice; a parameter of another type (`const T: Tu`) carries no meaning. */
static bool carries_value(const ast *type)
{
    static const char *const types[] = {
        "usize",    "isize",       "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bool", "TrfAddress", "AccumulationKind",
        "LaneMode", "SwitchConfig"};
    const ast *name = ast_last_segment(type);
    return name && choice_has(types, sizeof types / sizeof *types, name->text);
}

STACK_APART static void bind_const_parameter(analysis *s, scope *inner, const ast *param, scope *names, const ast *argument)
{
    const ast *expression = ast_is(argument, AST_CONST_ARG) ? ast_kid(argument, 0) : argument;
    value v = evaluate(s, names, expression, NULL);
    if (v.kind != VALUE_ERROR && !is_of_type(s, param->text, ast_kid(param, 0), expression, &v)) {
        s->kernel->bad = true;
        v = error_value;
    }
    scope_add(inner, SYMBOL_VARIABLE, param->text, param->name_range)->value = v;
}

/* A kernel's parameter has the size that -D gave it: an axis of that name, or a number. False: it gave none. */
static bool bind_given_number(analysis *s, scope *inner, const ast *parameter)
{
    const ast *number = ast_kid(parameter, 1);
    if (!ast_is(number, AST_INT))
        return false;
    if (ast_is(parameter, AST_GENERIC_CONST)) {
        scope_add(inner, SYMBOL_VARIABLE, parameter->text, parameter->name_range)->value =
            (value){.kind = VALUE_INT, .number = number->value};
        return true;
    }
    ast *axes = ast_new(s->context.arena, AST_AXES, parameter->range), *one = ast_new(s->context.arena, AST_AXIS, parameter->range);
    one->text = parameter->text;
    one->name_range = parameter->name_range;
    ast_push(s->context.arena, one, (ast *)number);
    ast_push(s->context.arena, axes, ast_new(s->context.arena, AST_NONE, parameter->range));
    ast_push(s->context.arena, axes, one);
    scope_add_axes(inner, axes);
    return true;
}

const ast *missing_generic(const ast *fn)
{
    const ast *generics = ast_kid(fn, 1);
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i];
        if (!ast_is(ast_kid(g, 1), AST_INT) &&
            (ast_is(g, AST_GENERIC_TYPE) || (ast_is(g, AST_GENERIC_CONST) && carries_value(ast_kid(g, 0)))))
            return g;
    }
    return NULL;
}

/* A parameter of an `impl`: what the type has there. */
static void bind_type_parameter(analysis *s, scope *inner, const ast *g, const type_meant *type)
{
    symbol *known = scope_argument_of(type, g->value);
    if (known)
        scope_add_as(inner, g->text, known);
    else if (ast_is(g, AST_GENERIC_TYPE))
        scope_bind_type(inner, g, inner, ast_new(s->context.arena, AST_TYPE_INFER, g->range));
    else
        scope_add(inner, SYMBOL_CONST_PARAM, g->text, g->name_range)->node = g;
}

void declare_generics(analysis *s, scope *inner, const ast *fn, scope *names, const ast *path, const value *receiver)
{
    const ast *generics = ast_kid(fn, 1), *segment = path ? ast_last_segment(path) : NULL, *given = segment ? ast_kid(segment, 0) : NULL;
    type_meant type = receiver ? (type_meant){receiver->record, receiver->fields_in} : (type_meant){0};
    uint32_t next = 0, wanted = 0, got = 0;
    for (uint32_t i = 0; given && i < given->kid_count; i++)
        got += !ast_is(given->kids[i], AST_LIFETIME);
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i];
        if (ast_is(g, AST_GENERIC_LIFETIME))
            continue;
        if (ast_is(g, AST_GENERIC_TYPE) || carries_value(ast_kid(g, 0)))
            scope_set_generic(inner);
        if (path && g->value != 0) {
            type = type.record ? type : scope_type_in_front(names, path);
            bind_type_parameter(s, inner, g, &type);
            continue;
        }
        wanted++;
        while (given && next < given->kid_count && ast_is(given->kids[next], AST_LIFETIME))
            next++;
        const ast *argument = given && next < given->kid_count ? given->kids[next++] : NULL;
        if (!path && bind_given_number(s, inner, g))
            continue;
        if (ast_is(g, AST_GENERIC_TYPE))
            scope_bind_type(inner, g, argument ? names : inner, argument ? argument : ast_new(s->context.arena, AST_TYPE_INFER, g->range));
        else if (argument && carries_value(ast_kid(g, 0)))
            bind_const_parameter(s, inner, g, names, argument);
        else
            scope_add(inner, SYMBOL_CONST_PARAM, g->text, g->name_range);
    }
    if (got > wanted)
        refuse(s, E_ARGUMENTS, path->range, NULL, "`%s` takes %u generic arguments, got %u", fn->text, wanted, got);
}

/* The type parameter that stands there alone and has no meaning yet, or NULL. */
static symbol *open_parameter(scope *inner, const ast *type)
{
    const ast *last = ast_is(type, AST_TYPE_PATH) && type->kid_count == 1 ? ast_last_segment(type) : NULL;
    symbol *y = last ? scope_find_here(inner, TYPE_NAMES, last->text) : NULL;
    return y && y->kind == SYMBOL_ALIAS && ast_is(y->node, AST_TYPE_INFER) && !y->mapping ? y : NULL;
}

static const ast *dtype_node(analysis *s, dtype type, src_range range)
{
    ast *path = ast_new(s->context.arena, AST_TYPE_PATH, range), *segment = ast_new(s->context.arena, AST_SEGMENT, range);
    segment->text = dtype_row_of(type)->name;
    ast_push(s->context.arena, segment, ast_new(s->context.arena, AST_NONE, range));
    ast_push(s->context.arena, path, segment);
    return path;
}

/* `A` of `m![A, B]` where `A: AxisName` has no meaning yet, or NULL. */
static symbol *open_axis(scope *inner, const ast *n)
{
    symbol *y = ast_is(n, AST_MAP_AXIS) ? scope_find_here(inner, TYPE_NAMES, n->text) : NULL;
    return y && y->kind == SYMBOL_ALIAS && ast_is(y->node, AST_TYPE_INFER) && !y->mapping ? y : NULL;
}

/* The elements of a list that are axes; false: others are among them. */
static bool list_axes(analysis *s, const ast *n, ast *list)
{
    if (ast_is(n, AST_MAP_AXIS))
        ast_push(s->arena, list, (ast *)n);
    if (!ast_is(n, AST_MAP_PAIR))
        return ast_is(n, AST_MAP_AXIS);
    bool all = true;
    budget_enter(s->arena);
    for (uint32_t i = 0; i < n->kid_count && all; i++)
        all = list_axes(s, n->kids[i], list);
    budget_leave(s->arena);
    return all;
}

/* Open axes in a list of axes are those that stand there in the mapping. */
static void infer_axes(analysis *s, scope *inner, const ast *map, const mapping *m)
{
    ast *list = ast_new(s->arena, AST_LIST, map->range);
    if (!ast_is(map, AST_MAP) || !list_axes(s, ast_kid(map, 0), list))
        return;
    uint32_t next = 0;
    for (uint32_t i = 0; i < list->kid_count; i++) {
        symbol *open = open_axis(inner, list->kids[i]);
        const symbol *known = open ? NULL : scope_find(inner, TYPE_NAMES, list->kids[i]->text);
        if (known && known->axis && known->axis->size == 1)
            continue;
        if (next == m->count)
            return;
        const factor *f = &m->factors[next++];
        if (f->kind != FACTOR_AXIS || f->weight != 1 || f->live != f->axis->size || f->extent != f->live)
            return;
        if (!open)
            continue;
        open->kind = SYMBOL_AXIS;
        open->axis = f->axis;
    }
}

static const ast *type_arguments(const ast *type)
{
    while (ast_is(type, AST_TYPE_REF))
        type = ast_kid(type, 0);
    const ast *last = ast_last_segment(type);
    return last ? ast_kid(last, 0) : NULL;
}

/* The axes of the mappings of a type. */
static const ast *axes_of_type(analysis *s, const ast *type)
{
    const ast *args = type_arguments(type);
    ast *list = ast_new(s->arena, AST_LIST, type->range);
    for (uint32_t i = 0; args && i < args->kid_count; i++)
        if (ast_is(args->kids[i], AST_MAP))
            list_axes(s, ast_kid(args->kids[i], 0), list);
    return list;
}

static bool has_open_axis(analysis *s, scope *inner, const ast *type)
{
    const ast *list = axes_of_type(s, type);
    for (uint32_t i = 0; i < list->kid_count; i++)
        if (open_axis(inner, list->kids[i]))
            return true;
    return false;
}

/* The open axes cannot be known: the argument is wrong, and that was reported. */
static void lose_axes(analysis *s, scope *inner, const ast *type)
{
    const ast *list = axes_of_type(s, type);
    for (uint32_t i = 0; i < list->kid_count; i++)
        if (open_axis(inner, list->kids[i]))
            scope_add_lost(inner, list->kids[i]->text);
}

/* Type parameters that a call leaves open are what is at their place in the type of an argument, or of what is expected. */
static void infer_generics(analysis *s, scope *inner, const ast *type, const tensor *t, bool has_dtype)
{
    const ast *args = type_arguments(type);
    const component *components = tensor_kind_components(t->kind);
    uint32_t count = 0;
    while (components[count] < MAPPING_COMPONENTS)
        count++;
    if (!args || !ast_is(args, AST_GENERIC_ARGS) || args->kid_count < count + 1)
        return;
    uint32_t first = args->kid_count - count;
    symbol *element = open_parameter(inner, args->kids[first - 1]);
    if (element && has_dtype)
        element->node = dtype_node(s, t->dtype, args->kids[first - 1]->range);
    for (uint32_t i = 0; i < count; i++) {
        symbol *y = open_parameter(inner, args->kids[first + i]);
        if (!t->part[components[i]])
            continue;
        if (!y) {
            infer_axes(s, inner, args->kids[first + i], t->part[components[i]]);
            continue;
        }
        y->mapping = t->part[components[i]];
        y->resolved = true;
        y->infers = false;
    }
}

/* The same of a struct, which is `Name<P>` where its fields are read. */
static void infer_type(analysis *s, scope *inner, const ast *type, const value *v)
{
    while (ast_is(type, AST_TYPE_REF))
        type = ast_kid(type, 0);
    symbol *y = open_parameter(inner, type);
    if (!y || !v->fields_in)
        return;
    arena *a = s->context.arena;
    ast *path = ast_new(a, AST_TYPE_PATH, type->range), *segment = ast_new(a, AST_SEGMENT, type->range),
        *args = ast_new(a, AST_GENERIC_ARGS, type->range);
    const ast *generics = ast_kid(v->record, 1);
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        ast *argument = ast_new(a, AST_TYPE_PATH, type->range), *name = ast_new(a, AST_SEGMENT, type->range);
        if (ast_is(generics->kids[i], AST_GENERIC_LIFETIME))
            continue;
        name->text = generics->kids[i]->text;
        ast_push(a, name, ast_new(a, AST_NONE, type->range));
        ast_push(a, argument, name);
        ast_push(a, args, argument);
    }
    segment->text = v->record->text;
    ast_push(a, segment, args);
    ast_push(a, path, segment);
    y->node = path;
    y->scope = v->fields_in;
}

/* The struct that an argument names, a variable or a field of one, without reading anything; NULL: it is something else. */
static const value *named_struct(scope *names, const ast *argument)
{
    while (ast_is(argument, AST_BORROW))
        argument = ast_kid(argument, 0);
    const symbol *y = ast_is(argument, AST_PATH) ? scope_find_path(names, VALUE_NAMES, argument) : NULL;
    if (y)
        return y->kind == SYMBOL_VARIABLE && y->value.kind == VALUE_LIST && y->value.record ? &y->value : NULL;
    const value *whole = ast_is(argument, AST_FIELD) ? named_struct(names, ast_kid(argument, 0)) : NULL;
    int64_t index = whole ? field_find(scope_context_of(names)->arena, whole->record, argument->text) : -1;
    const value *field = index >= 0 && (size_t)index < whole->count ? &whole->items[index] : NULL;
    return field && field->kind == VALUE_LIST && field->record ? field : NULL;
}

/* Parameters that a call leaves open are those of a struct: `H` of `head: &Head<'_, H>`. Others may need them, so it is done first. */
static void infer_of_struct(scope *inner, const ast *type, const value *v)
{
    while (ast_is(type, AST_TYPE_REF))
        type = ast_kid(type, 0);
    const ast *last = ast_is(type, AST_TYPE_PATH) ? ast_last_segment(type) : NULL, *given = last ? ast_kid(last, 0) : NULL;
    const symbol *of = last ? scope_find_path(inner, TYPE_NAMES, type) : NULL;
    type_meant meant = {v->record, v->fields_in};
    int64_t place = 0;
    if (!of || of->kind != SYMBOL_OWN_TYPE || of->node != v->record || !ast_is(given, AST_GENERIC_ARGS))
        return;
    for (uint32_t i = 0; i < given->kid_count; i++) {
        const ast *argument = ast_is(given->kids[i], AST_CONST_ARG) ? ast_kid(given->kids[i], 0) : given->kids[i];
        place += !ast_is(argument, AST_LIFETIME);
        const ast *name = ast_last_segment(argument);
        if (!name || argument->kid_count != 1)
            continue;
        const symbol *number = scope_find_here(inner, VALUE_NAMES, name->text);
        bool open = open_parameter(inner, argument) || (number && number->kind == SYMBOL_CONST_PARAM);
        symbol *known = open ? scope_argument_of(&meant, place) : NULL;
        if (known)
            scope_add_as(inner, name->text, known);
    }
}

/* Is the argument memory whose type the parameter has to tell: `&mut x`, `x.view_mut()`? */
static bool is_open(scope *names, const ast *argument)
{
    while (ast_is(argument, AST_BORROW) || ast_is(argument, AST_METHOD))
        argument = ast_kid(argument, 0);
    const symbol *y = ast_is(argument, AST_PATH) ? scope_find_path(names, VALUE_NAMES, argument) : NULL;
    return y && y->kind == SYMBOL_VARIABLE && y->value.op && y->value.op->open;
}

/* A function that is called is compiled where it is called; `receiver`: the value of a struct whose method it is, or NULL. */
STACK_APART static value evaluate_function(analysis *s, scope *names, const ast *n, symbol *y, const value *receiver,
                                           const declared *expected)
{
    const ast *fn = y->node, *params = ast_kid(fn, 2), *args = ast_kid(n, 1), *body = ast_kid(fn, 4);
    if (y->busy && !(fn->value & AST_FN_CONST))
        return refuse(s, E_UNSUPPORTED, n->range, "use a constant `for`", "recursion is not supported in .vm kernels: `%s` calls itself",
                      y->name);
    if (args->kid_count != params->kid_count)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`%s` takes %u arguments, got %u", y->name, params->kid_count, args->kid_count);
    if (!ast_is(body, AST_BLOCK))
        return refuse(s, E_UNSUPPORTED, n->range, NULL, "`%s` has no body", y->name);
    if (!spend(s, n->range, 1))
        return error_value;
    budget_enter(s->arena);
    budget_spend(s->arena, s->context.diags->count); /* that parse_was_broken looks at */
    arena_mark before_names = names_begin(s);
    scope *inner = scope_new(&s->context, y->scope);
    declare_generics(s, inner, fn, names, ast_kid(n, 0), receiver);
    for (uint32_t i = 0; ast_is(ast_kid(fn, 1), AST_GENERICS) && i < params->kid_count; i++) {
        const value *v = named_struct(names, args->kids[i]);
        if (v)
            infer_of_struct(inner, ast_kid(params->kids[i], 2), v);
    }
    bool *waits = ARENA_ARRAY(s->arena, bool, params->kid_count + 1);
    for (uint32_t i = 0; i < params->kid_count; i++)
        if (!(waits[i] = is_open(names, args->kids[i])))
            bind_parameter(s, inner, params->kids[i], names, args->kids[i]);
    for (uint32_t i = 0; i < params->kid_count; i++) /* what the others say of type parameters is known now */
        if (waits[i])
            bind_parameter(s, inner, params->kids[i], names, args->kids[i]);
    if (expected && expected->kind == DECLARED_TENSOR)
        infer_generics(s, inner, ast_kid(fn, 3), &expected->tensor, expected->has_dtype);
    declared result = scope_type(inner, ast_kid(fn, 3));
    bool repeated = s->kernel->repeating, broken = s->broken;
    s->broken = broken || parse_was_broken(s->context.diags, fn->range);
    set_repeated(s, repeated || y->calls++ > 0);
    bool busy = y->busy;
    y->busy = true;
    size_t before = s->kernel->op_count;
    bool computes = fn->value & AST_FN_CONST;
    s->in_const_fn += computes;
    value v = evaluate_body(s, inner, body, &result, expected, NULL);
    s->in_const_fn -= computes;
    y->busy = busy;
    if (v.kind == VALUE_TENSOR && result.kind == DECLARED_TENSOR) {
        stage_adopt(v.op, &result);
        if (s->kernel->op_count == before && !stage_check_type(inner, body->range, &v.op->out, &result))
            s->kernel->bad = true;
    }
    set_repeated(s, repeated);
    s->broken = broken;
    names_end(s, before_names, &v);
    budget_leave(s->arena);
    return result.kind == DECLARED_NONE || result.kind == DECLARED_UNIT ? (value){.kind = v.kind == VALUE_ERROR ? VALUE_ERROR : VALUE_UNIT}
                                                                        : v;
}

STACK_APART static value evaluate_size_of(analysis *s, scope *names, const ast *n)
{
    int64_t size = 0;
    bool found = scope_size_of(names, n, &size);
    return integer_found(s, found, size);
}

STACK_APART static value evaluate_element(analysis *s, scope *names, const ast *n)
{
    const ast *path = ast_kid(n, 0);
    value v = evaluate(s, names, ast_kid(n, 1)->kids[0], NULL);
    v = constant_element(names, n, path->kids[path->kid_count - 2]->text, path->kids[path->kid_count - 1]->text, &v);
    s->kernel->bad = s->kernel->bad || v.kind == VALUE_ERROR;
    return refuse_computed(s, n, v);
}

/* `FpBinaryOp::MulF(FpMulAlu::Mul0)`, `Cmp::Less(0)` */
STACK_APART static value evaluate_variant_of(analysis *s, scope *names, const ast *n, unsigned wanted)
{
    const ast *callee = ast_kid(n, 0), *args = ast_kid(n, 1);
    if (variant_is_unknown(callee))
        return evaluate(s, names, callee, NULL);
    if (args->kid_count != wanted)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`%s` takes %u argument%s, got %u", callee->kids[callee->kid_count - 1]->text, wanted,
                      wanted == 1 ? "" : "s", args->kid_count);
    value *given = ARENA_ARRAY(s->context.arena, value, wanted + 1), v;
    for (unsigned i = 0; i < wanted; i++) {
        given[i] = evaluate(s, names, args->kids[i], NULL);
        if (given[i].kind == VALUE_ERROR)
            return given[i];
        if (stage_unborrowed_operand(args->kids[i], &given[i])) {
            diag *d = refuse_diag(s, E_ARGUMENTS, args->kids[i]->range, "`%s` takes a VrfTensor by reference, got it without `&`",
                                  callee->kids[callee->kid_count - 1]->text);
            stage_help_borrow(s->context.diags, d, args->kids[i], false);
            return error_value;
        }
    }
    if (variant_of(callee, given, wanted, &v))
        return v;
    const char *why = variant_find(s->context.arena, callee, given, &v);
    return why ? refuse(s, E_ARGUMENTS, args->kids[0]->range, why, "`%s` does not take %s", callee->kids[callee->kid_count - 1]->text,
                        value_kind_name(given))
               : v;
}

declared own_type(scope *names, const ast *path)
{
    symbol *y = scope_find_path(names, TYPE_NAMES, path);
    const ast *last = ast_last_segment(path);
    if (y && y->kind == SYMBOL_ALIAS && !y->busy) {
        y->busy = true;
        declared meant = scope_type(scope_applied(names, y->scope, y->generics, last), y->node);
        y->busy = false;
        return meant;
    }
    if (!y || y->kind != SYMBOL_OWN_TYPE || !y->node)
        return (declared){0};
    bool open = ast_is(ast_kid(y->node, 1), AST_GENERICS) && ast_is(ast_kid(last, 0), AST_NONE);
    return (declared){
        .kind = DECLARED_OTHER, .record = y->node, .scope = open ? NULL : scope_applied(names, y->scope, ast_kid(y->node, 1), last)};
}

STACK_APART static bool is_tuple_struct(scope *names, const ast *callee)
{
    declared own = own_type(names, callee);
    return own.record && strcmp(ast_kid(ast_kid(ast_kid(own.record, 2), 0), 1)->text, "_0") == 0;
}

/* `P(1, 2)` of `struct P(usize, usize);` */
STACK_APART static value evaluate_tuple_struct(analysis *s, scope *names, const ast *n, const declared *expected)
{
    declared own = own_type(names, ast_kid(n, 0));
    const ast *fields = ast_kid(own.record, 2), *args = ast_kid(n, 1);
    const declared *types = expected && expected->record == own.record ? expected : own.scope ? &own : NULL;
    if (args->kid_count != fields->kid_count)
        return refuse(s, E_ARGUMENTS, n->range, NULL, "`%s` takes %u values, got %u", own.record->text, fields->kid_count, args->kid_count);
    value *items = ARENA_ARRAY(s->context.arena, value, args->kid_count);
    for (uint32_t i = 0; i < args->kid_count; i++) {
        declared d = part_type(types, i, fields->kid_count);
        items[i] = evaluate(s, names, args->kids[i], &d);
    }
    return (value){
        .kind = VALUE_LIST, .record = own.record, .items = items, .count = args->kid_count, .fields_in = types ? types->scope : NULL};
}

value evaluate_method_of_type(analysis *s, scope *names, const ast *n, symbol *function, const value *receiver, const declared *expected)
{
    return evaluate_function(s, names, n, function, receiver, expected);
}

/* `i32::from`: an integer or a condition becomes one that holds it. */
static bool is_conversion(const ast *callee)
{
    return ast_is(callee, AST_PATH) && callee->kid_count == 2 && strcmp(callee->kids[1]->text, "from") == 0 &&
           scope_integer_type_named(callee->kids[0]->text);
}

STACK_APART static value evaluate_conversion(analysis *s, scope *names, const ast *n)
{
    const ast *argument = ast_kid(n, 1)->kids[0];
    value v = evaluate_counted(s, names, argument, NULL);
    if (v.kind != VALUE_INT && v.kind != VALUE_BOOL && v.kind != VALUE_ERROR)
        return refuse(s, E_CONST, argument->range, "an integer or a condition becomes an integer", "`from` does not take %s",
                      value_kind_name(&v));
    if (v.kind == VALUE_ERROR || !scope_fits(names, n, scope_integer_type_named(ast_kid(n, 0)->kids[0]->text), v.number))
        return error_value;
    v.kind = VALUE_INT;
    v.record = NULL; /* of an enum */
    return v;
}

STACK_APART static value evaluate_some(analysis *s, scope *names, const ast *of)
{
    value v = evaluate(s, names, of, NULL);
    return v.kind == VALUE_ERROR ? v : option_some(s->context.arena, v);
}

/* A path that names no function. `found`: it names something else. */
STACK_APART static value refuse_unknown_function(analysis *s, scope *names, const ast *callee, bool found)
{
    if (!found && scope_is_lost(names, callee->kids[callee->kid_count - 1]->text)) {
        s->kernel->bad = true;
        return error_value;
    }
    const char *name = callee->kids[callee->kid_count - 1]->text, *near = scope_suggest(names, name, SYMBOL_FUNCTION),
               *help = scope_own_type_help(names, callee);
    bool method = callee->kid_count > 1 && stage_is_known(name);
    return refuse(s, E_NAME, callee->range,
                  help ? help
                  : method
                      ? arena_printf(s->context.arena, "it is a method: write x.%s(..), with type arguments x.%s::<..>(..)", name, name)
                  : near ? arena_printf(s->context.arena, "did you mean `%s`?", near)
                         : "functions of the file and of its modules can be called",
                  "there is no function `%s`", name);
}

value evaluate_call(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *callee = ast_kid(n, 0);
    symbol *y = ast_is(callee, AST_PATH) ? scope_find_path(names, VALUE_NAMES, callee) : NULL;
    if (y && y->kind == SYMBOL_FUNCTION)
        return evaluate_function(s, names, n, y, NULL, expected);
    unsigned wanted;
    if (!y && ast_is(callee, AST_PATH) && (variant_takes_arguments(callee, &wanted) || variant_is_unknown(callee)))
        return evaluate_variant_of(s, names, n, wanted);
    if (ast_is(callee, AST_PATH) && callee->kid_count >= 2 && stage_is_of_type(callee->kids[callee->kid_count - 1]->text))
        return evaluate_type_function(s, names, n, expected);
    if (ast_is(callee, AST_PATH) && scope_is_size_of(n))
        return evaluate_size_of(s, names, n);
    if (ast_is(callee, AST_PATH) && callee->kid_count >= 2 && ast_kid(n, 1)->kid_count == 1 &&
        constant_is_element(callee->kids[callee->kid_count - 2]->text, callee->kids[callee->kid_count - 1]->text))
        return evaluate_element(s, names, n);
    if (y && y->kind == SYMBOL_VARIABLE) {
        s->kernel->bad = s->kernel->bad || y->value.kind == VALUE_ERROR;
        return y->value.kind == VALUE_ERROR ? error_value : unsupported(s, n);
    }
    if (!y && is_conversion(callee) && ast_kid(n, 1)->kid_count == 1)
        return evaluate_conversion(s, names, n);
    if (!y && ast_is(callee, AST_PATH) && callee->kid_count == 1 && strcmp(callee->kids[0]->text, "Some") == 0 &&
        ast_kid(n, 1)->kid_count == 1)
        return evaluate_some(s, names, ast_kid(n, 1)->kids[0]);
    if (ast_is(callee, AST_PATH) && is_tuple_struct(names, callee))
        return evaluate_tuple_struct(s, names, n, expected);
    if (ast_is(callee, AST_TYPE_QUALIFIED) && stage_is_known(callee->text))
        return refuse(s, E_UNSUPPORTED, callee->range, arena_printf(s->context.arena, "write x.%s(..)", callee->text),
                      "a method that is called as a function is not supported in .vm kernels");
    if (ast_is(callee, AST_PATH) && callee->kid_count > 0)
        return refuse_unknown_function(s, names, callee, y != NULL);
    return unsupported(s, n);
}
