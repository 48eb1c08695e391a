/* Bodies: expressions and statements are evaluated in order, constants to numbers, stages to operations. */
#include <stdlib.h>
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/cfg.h"
#include "frontend/constant.h"
#include "frontend/index.h"
#include "frontend/running.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "ir/work.h"
#include "support/budget.h"
#include "support/choice.h"

static diag *refuse_v(analysis *s, diag_id id, src_range range, const char *format, va_list args)
{
    if (s->kernel)
        s->kernel->bad = true;
    return diag_add(s->context.diags, id, range, "%s", arena_vprintf(s->context.arena, format, args));
}

value refuse(analysis *s, diag_id id, src_range range, const char *help, const char *format, ...)
{
    if (s->broken && id == E_NAME)
        return error_value;
    va_list args;
    va_start(args, format);
    diag *d = refuse_v(s, id, range, format, args);
    va_end(args);
    if (help)
        diag_help(s->context.diags, d, "%s", help);
    return error_value;
}

diag *refuse_diag(analysis *s, diag_id id, src_range range, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag *d = refuse_v(s, id, range, format, args);
    va_end(args);
    return d;
}

static const char unroll_help[] = "let an axis of Time count instead: a stage runs through all of its Time in one command";

bool spend_turn(analysis *s, src_range range, const char *help)
{
    if (s->steps < UNROLL_MAX) {
        s->steps++;
        return true;
    }
    s->stopped = true;
    refuse(s, E_UNROLL, range, help, "kernel `%s` has more than %zu loop iterations and calls", s->kernel->name, UNROLL_MAX);
    return false;
}

bool spend(analysis *s, src_range range, uint64_t steps)
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

void set_repeated(analysis *s, bool repeated)
{
    s->kernel->repeating = repeated;
    s->context.diags->repeating = repeated;
}

static bool holds_names(const analysis *s, const value *v);

/* ---- expressions ---- */

bool is_of_type(analysis *s, const char *what, const ast *type, const ast *n, const value *v)
{
    static const char *const integers[] = {"usize", "isize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"};
    const ast *name = ast_last_segment(type), *length = ast_kid(type, 1);
    bool fits = v->kind == VALUE_LIST || !ast_is(type, AST_TYPE_ARRAY), array = ast_is(type, AST_TYPE_ARRAY) && v->kind == VALUE_LIST;
    for (size_t i = 0; name && i < sizeof integers / sizeof *integers; i++)
        fits = fits && (strcmp(integers[i], name->text) != 0 || v->kind == VALUE_INT);
    fits = fits && (!name || strcmp(name->text, "bool") != 0 || v->kind == VALUE_BOOL);
    fits = fits && (!name || strcmp(name->text, "f32") != 0 || v->kind == VALUE_FLOAT);
    fits = fits && (!name || strcmp(name->text, "TrfAddress") != 0 || v->kind == VALUE_TRF_ADDRESS);
    fits = fits && (!name || !dialect_spelt("AccumulationKind", name->text) || v->kind == VALUE_ACCUMULATION);
    fits = fits && (!name || strcmp(name->text, "SwitchConfig") != 0 || v->kind == VALUE_SWITCH_CONFIG);
    diag *d = NULL;
    if (!fits)
        d = diag_add(s->context.diags, E_MISMATCH, n->range, "this is %s, but `%s` is declared as something else", value_kind_name(v),
                     what);
    else if (array && ast_is(length, AST_INT) && (uint64_t)length->value != v->count)
        d = diag_add(s->context.diags, E_MISMATCH, n->range, "this has %zu elements, but `%s` is declared with %lld", v->count, what,
                     (long long)length->value);
    if (d)
        diag_note(s->context.diags, d, type->range, "declared here");
    bool ok = !d;
    for (size_t i = 0; ok && array && i < v->count; i++)
        ok = is_of_type(s, what, ast_kid(type, 0), ast_is(n, AST_ARRAY) ? n->kids[i] : n, &v->items[i]);
    return ok;
}

/* The type of a constant that is one of an enum, so that it has its methods; NULL: it is a number. */
static const ast *enum_of(analysis *s, const symbol *y)
{
    const ast *name = ast_last_segment(y->type);
    const symbol *type = name ? scope_find(y->scope, TYPE_NAMES, name->text) : NULL;
    if (!type || type->kind != SYMBOL_OWN_TYPE || type->node)
        return NULL;
    ast *record = ast_new(s->context.arena, AST_STRUCT, y->type->range);
    record->text = name->text;
    return record;
}

/* A const item, read where it was written. */
STACK_APART static value read_const(analysis *s, symbol *y)
{
    if (!y->type) {
        s->kernel->bad = true;
        return error_value;
    }
    size_t ops_before = s->kernel->op_count;
    s->in_const++;
    value v = evaluate(s, y->scope, y->node, NULL);
    s->in_const--;
    bool choice = v.kind == VALUE_TRF_ADDRESS || v.kind == VALUE_ACCUMULATION || v.kind == VALUE_SWITCH_CONFIG;
    bool constant =
        v.kind == VALUE_INT || v.kind == VALUE_FLOAT || v.kind == VALUE_BOOL || v.kind == VALUE_LIST || v.kind == VALUE_ERROR || choice;
    if (!constant || s->kernel->op_count != ops_before)
        return refuse(s, E_CONST, y->node->range, NULL, "`%s` is %s, not a constant", y->name, value_kind_name(&v));
    if (v.kind == VALUE_INT)
        v.record = enum_of(s, y);
    if (v.kind != VALUE_ERROR && !is_of_type(s, y->name, y->type, y->node, &v)) {
        y->type = NULL;
        s->kernel->bad = true;
        return error_value;
    }
    return v;
}

/* Once: what others need again has its value already. An error is reported to each kernel that needs it, since one whose text was not
 * understood may have kept silent. */
STACK_APART static value evaluate_const(analysis *s, symbol *y, const ast *path)
{
    if (symbol_is_busy(y))
        return refuse(s, E_NAME, path->range, NULL, "`%s` is defined by itself", y->name);
    if (y->read_by && (y->value.kind != VALUE_ERROR || y->read_by == s->kernel)) {
        s->kernel->bad = s->kernel->bad || y->value.kind == VALUE_ERROR;
        return y->value;
    }
    arena *outer = s->context.arena;
    if (scope_arena(y->scope) == s->arena) /* other kernels may ask for the elements of a list */
        s->context.arena = s->arena;
    symbol_set_busy(y, true);
    y->value = read_const(s, y);
    arena *names = s->context.names;
    if (holds_names(s, &y->value)) { /* others ask for it later */
        s->context.names = NULL;
        y->value = read_const(s, y);
        s->context.names = names;
    }
    symbol_set_busy(y, false);
    y->read_by = s->kernel;
    s->context.arena = outer;
    return y->value;
}

/* `struct Unit;` */
STACK_APART static bool unit_struct(scope *names, const ast *path, value *out)
{
    declared unit = own_type(names, path);
    if (!unit.record || ast_kid(unit.record, 2)->kid_count > 0)
        return false;
    *out = (value){.kind = VALUE_LIST, .record = unit.record, .fields_in = unit.scope};
    return true;
}

static value refuse_function(analysis *s, const ast *path, const char *name)
{
    return refuse(s, E_NAME, path->range, arena_printf(s->context.arena, "call it: %s(..), with type arguments %s::<..>(..)", name, name),
                  "`%s` is a function and no value", name);
}

STACK_APART static value evaluate_name(analysis *s, scope *names, const ast *path, const char *name, const declared *expected)
{
    symbol *y = scope_find_path(names, VALUE_NAMES, path);
    if (y && y->kind == SYMBOL_VARIABLE) {
        bool stream = y->value.kind == VALUE_BEGIN || (y->value.kind == VALUE_TENSOR && tensor_kind_is_stream(y->value.op->out.kind));
        if (y->moved && stream) {
            diag *d = diag_add(s->context.diags, E_MOVED, path->range, "stream `%s` was used before; a stream flows into one stage", name);
            diag_note(s->context.diags, d, y->moved_at, "it went in here");
            diag_help(s->context.diags, d, "to use the data twice commit it to DM and begin again");
            s->kernel->bad = true;
            return error_value;
        }
        bool memory = y->value.kind == VALUE_TENSOR || y->value.kind == VALUE_VIEW;
        const op *gone = memory && y->value.op ? op_root(y->value.op)->gone : NULL;
        if (gone) {
            diag *d = diag_add(s->context.diags, E_MOVED, path->range, "`%s` was reshaped; its memory has other axes now", name);
            diag_note(s->context.diags, d, gone->range, "here");
            diag_help(s->context.diags, d, "use what reshape gave");
            s->kernel->bad = true;
            return error_value;
        }
        if (stream) {
            y->moved = true;
            y->moved_at = path->range;
        }
        s->counted = y->value.loop ? y->value.loop : s->counted;
        s->chosen = s->chosen || y->value.chosen;
        if (memory && y->value.op)
            stage_settle(y->value.op, expected);
        return y->value;
    }
    if (y && y->kind == SYMBOL_CONST)
        return evaluate_const(s, y, path);
    if (!y && scope_is_lost(names, name)) {
        s->kernel->bad = true;
        return error_value;
    }
    if (y && y->kind == SYMBOL_CONST_PARAM) {
        s->kernel->bad = true;
        scope_refuse_const_param(names, path, y);
        return error_value;
    }
    if (y && y->kind == SYMBOL_FUNCTION)
        return refuse_function(s, path, name);
    value bare = {.kind = VALUE_INT};
    if (!y && scope_prelude_number(name, &bare.number))
        return bare;
    if (!y && strcmp(name, "None") == 0)
        return option_none();
    if (!y && variant_bare(name, &bare))
        return bare;
    if (!y && unit_struct(names, path, &bare))
        return bare;
    const char *near = variant_typed(s->context.arena, name);
    if (!near)
        near = scope_suggest(names, name, SYMBOL_VARIABLE);
    if (!near)
        near = scope_suggest(names, name, SYMBOL_CONST);
    const char *help = near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : NULL;
    const char *operations = near ? NULL : variant_operations(s->context.arena, name);
    if (operations)
        help = arena_printf(s->context.arena, "operations of that name are %s", operations);
    if (!near && (strcmp(name, "device") == 0 || strcmp(name, "ctx") == 0)) /* as all releases call it */
        help = arena_printf(s->context.arena, "let the kernel's first parameter be `%s: &mut %s`", name,
                            name[0] == 'c' ? "Context" : "Device");
    return refuse(s, E_NAME, path->range, help, "`%s` is not known here", name);
}

/* The row of `SwitchConfig::name`; NULL: there is none. */
static const topology_row *topology_named(const char *name)
{
    for (size_t i = 0; topology_row_at(i); i++)
        if (strcmp(topology_row_at(i)->name, name) == 0)
            return topology_row_at(i);
    return NULL;
}

/* "SwitchConfig::Broadcast1 { slice1: .., slice0: .. }" */
static const char *topology_text(analysis *s, const topology_row *row)
{
    const char *fields = variant_fields(s->context.arena, row);
    return arena_printf(s->context.arena, "SwitchConfig::%s%s%s", row->name, *fields ? " " : "", fields);
}

static value unknown_topology(analysis *s, const ast *path, const char *name)
{
    enum { MOST = 15 };
    const char *names[MOST + 1] = {0}, *all = "";
    for (size_t i = 0; i < MOST && topology_row_at(i); i++) {
        names[i] = topology_row_at(i)->name;
        all = arena_printf(s->context.arena, "%s%s%s", all, i ? ", " : "", names[i]);
    }
    const char *near = choice_near(name, names);
    return refuse(s, E_NAME, path->range,
                  near ? arena_printf(s->context.arena, "did you mean `SwitchConfig::%s`?", near)
                       : arena_printf(s->context.arena, "known are SwitchConfig::{%s}", all),
                  "`SwitchConfig::%s` is not known here", name);
}

/* TrfAddress::Full, AccumulationKind::Interleaved, with any path in front. */
STACK_APART static value evaluate_variant(analysis *s, scope *names, const ast *path)
{
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
    if (y && y->kind == SYMBOL_FUNCTION)
        return refuse_function(s, path, name);
    value bound = {.kind = VALUE_INT};
    bool fits = false;
    if (!y && scope_integer_bound(names, path, &bound.number, &fits)) {
        s->kernel->bad = s->kernel->bad || !fits;
        return fits ? bound : error_value;
    }
    if (strcmp(type, "SwitchConfig") == 0) {
        const topology_row *row = topology_named(name);
        if (!row)
            return unknown_topology(s, path, name);
        if (row->fields[0])
            return refuse(s, E_ARGUMENTS, path->range, arena_printf(s->context.arena, "write %s", topology_text(s, row)),
                          "`SwitchConfig::%s` has fields", name);
        return (value){.kind = VALUE_SWITCH_CONFIG, .number = row->code};
    }
    value of_row;
    if (variant_is_unknown(path))
        return refuse(s, E_UNSUPPORTED, path->range, "the releases name it, and none says what the machine does",
                      "`%s::%s` is not supported", type, name);
    const char *why = variant_find(s->context.arena, path, NULL, &of_row);
    if (why)
        return refuse(s, E_NAME, path->range, why, "`%s::%s` is not known here", type, name);
    if (of_row.kind != VALUE_ERROR)
        return of_row;
    static const char known[] = "known are TrfAddress::{Full, FirstHalf, SecondHalf} and @AccumulationKind::{Interleaved, Sequential}";
    const char *own = scope_own_type_help(names, path), *meant = variant_near_type(s->context.arena, type, name),
               *operations = variant_operations(s->context.arena, name);
    return refuse(s, E_NAME, path->range,
                  own          ? own
                  : meant      ? arena_printf(s->context.arena, "did you mean `%s`?", meant)
                  : operations ? arena_printf(s->context.arena, "operations of that name are %s", operations)
                               : known,
                  "`%s::%s` is not known here", type, name);
}

int64_t field_find(const ast *record, const char *name)
{
    const ast *fields = ast_kid(record, 2);
    for (uint32_t i = 0; i < fields->kid_count; i++) {
        const char *field = ast_kid(fields->kids[i], 1)->text, *tuple = field[0] == '_' ? field + 1 : field; /* of a tuple struct */
        if (strcmp(field, name) == 0 || strcmp(tuple, name) == 0)
            return i;
    }
    return -1;
}

/* The place among the fields of an AST_STRUCT of the one that `n` names; -1: diagnosed. */
STACK_APART static int64_t field_index(analysis *s, const ast *n, const ast *record)
{
    const ast *fields = ast_kid(record, 2);
    int64_t index = field_find(record, n->text);
    if (index >= 0)
        return index;
    const char **names = ARENA_ARRAY(s->context.arena, const char *, fields->kid_count + 1);
    for (uint32_t i = 0; i < fields->kid_count; i++)
        names[i] = ast_kid(fields->kids[i], 1)->text;
    const char *near = choice_near(n->text, names);
    refuse(s, E_NAME, n->name_range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : NULL, "`%s` has no field `%s`",
           record->text, n->text);
    return -1;
}

/* The field that `n` names, of a value. */
STACK_APART static value field_of(analysis *s, const ast *n, value v)
{
    static const char *const fields[] = {"main", "sub", "tdma", "pdma", NULL};
    if (v.kind == VALUE_ERROR)
        return v;
    if (v.kind == VALUE_LIST && v.record) {
        int64_t index = field_index(s, n, v.record);
        return index < 0 ? error_value : v.items[index];
    }
    if (v.kind == VALUE_LIST && n->text[0] >= '0' && n->text[0] <= '9' && strlen(n->text) < 8 && strtoul(n->text, NULL, 10) < v.count)
        return v.items[strtoul(n->text, NULL, 10)];
    if (v.kind != VALUE_CONTEXT && stage_is_known(n->text))
        return refuse(s, E_METHOD, n->name_range,
                      arena_printf(s->context.arena, "write .%s(..), with type arguments .%s::<..>(..)", n->text, n->text),
                      "`%s` is a method, not a field", n->text);
    if (v.kind != VALUE_CONTEXT)
        return refuse(s, E_NAME, n->name_range, NULL, "there is no field `%s` on %s", n->text, value_kind_name(&v));
    for (int i = 0; fields[i]; i++)
        if (strcmp(fields[i], n->text) == 0) {
            context of = i == 0 ? CONTEXT_MAIN : i == 1 ? CONTEXT_SUB : CONTEXT_DMA;
            return (value){.kind = VALUE_UNIT_OF_CONTEXT, .owned = true, .context = of};
        }
    const char *near = choice_near(n->text, fields);
    return refuse(s, E_NAME, n->name_range,
                  near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : "a @Context has main, sub, tdma and pdma",
                  "the @Context has no field `%s`", n->text);
}

STACK_APART static value evaluate_field(analysis *s, scope *names, const ast *n)
{
    return field_of(s, n, evaluate(s, names, ast_kid(n, 0), NULL));
}

STACK_APART static value build_stage(analysis *s, scope *names, const ast *n, const value *receiver, value *args, const declared *expected)
{
    stage_call call = {.scope = names, .kernel = s->kernel, .node = n, .receiver = *receiver, .args = args, .expected = expected};
    value v = stage_build(&call);
    if (v.kind == VALUE_ERROR)
        s->kernel->bad = true;
    return v;
}

/* `Branched::imm(guard, 1).rf(other, &vrf)`: the items of the value: the arguments of this call, then the receiver. */
STACK_APART static value evaluate_joined(analysis *s, const ast *n, const value *receiver, const value *args)
{
    unsigned given = ast_kid(n, 2)->kid_count;
    if (given != 2)
        return refuse(s, E_ARGUMENTS, n->name_range, "they are the guard and the operand", "`%s` takes 2 arguments, got %u", n->text,
                      given);
    value *items = ARENA_ARRAY(s->context.arena, value, 3), v = *receiver;
    items[0] = args[0];
    items[1] = args[1];
    items[2] = *receiver;
    if (items[0].kind == VALUE_ERROR || items[1].kind == VALUE_ERROR)
        return error_value;
    const ast *operand = stage_unborrowed_operand(ast_kid(n, 2)->kids[1], &items[1]);
    if (operand) {
        diag *d = refuse_diag(s, E_ARGUMENTS, operand->range, "`%s` takes a VrfTensor by reference, got it without `&`", n->text);
        stage_help_borrow(s->context.diags, d, operand, false);
        return error_value;
    }
    v.number = strcmp(n->text, "imm") == 0 ? VECTOR_IMMEDIATE : VECTOR_REGISTER;
    v.items = items;
    v.count = 3;
    return v;
}

/* `FpDivBinaryOp::DivF.with_mode(BinaryArgMode::Mode10)` */
STACK_APART static value evaluate_with_mode(analysis *s, const ast *n, const value *receiver, const value *args)
{
    unsigned given = ast_kid(n, 2)->kid_count;
    const char *help = "it is the mode: BinaryArgMode::Mode01";
    if (given != 1)
        return refuse(s, E_ARGUMENTS, n->name_range, help, "`%s` takes 1 argument, got %u", n->text, given);
    if (args->kind == VALUE_ERROR)
        return error_value;
    if (args->kind != VALUE_VARIANT)
        return refuse(s, E_ARGUMENTS, ast_kid(n, 2)->kids[0]->range, help, "`%s` does not take %s", n->text, value_kind_name(args));
    return (value){.kind = VALUE_OP_WITH_MODE, .number = receiver->number, .items = args, .count = 1};
}

static ast *segment_named(arena *a, const char *name, src_range range, const ast *arguments)
{
    ast *segment = ast_new(a, AST_SEGMENT, range);
    segment->text = name;
    segment->name_range = range;
    ast_push(a, segment, (ast *)arguments);
    return segment;
}

/* `w.f(x)` of a struct as `Name::f(w, x)`, the function of its `impl` (frontend/expand.h); NULL where it has none of the name. */
static const ast *call_of_method(analysis *s, scope *names, const ast *n, const value *receiver, symbol **function)
{
    const symbol *type = receiver->record ? scope_find(names, MODULE_NAMES, receiver->record->text) : NULL;
    symbol *y = type && type->inner ? scope_find_here(type->inner, VALUE_NAMES, n->text) : NULL;
    type_meant meant = {receiver->record, receiver->kind == VALUE_LIST ? receiver->fields_in : NULL};
    *function = y = y && y->other ? scope_given(y, &meant) : y;
    if (!y || y->kind != SYMBOL_FUNCTION)
        return NULL;
    arena *a = s->context.arena;
    const ast *params = ast_kid(y->node, 2), *first = params->kid_count ? ast_kid(params->kids[0], 1) : NULL, *list = ast_kid(n, 2);
    ast *call = ast_new(a, AST_CALL, n->range), *path = ast_new(a, AST_PATH, n->name_range), *given = ast_new(a, AST_LIST, list->range);
    ast_push(a, path, segment_named(a, receiver->record->text, n->name_range, ast_new(a, AST_NONE, n->name_range)));
    ast_push(a, path, segment_named(a, n->text, n->name_range, ast_kid(n, 1)));
    if (first && strcmp(first->text, "this") == 0)
        ast_push(a, given, (ast *)ast_kid(n, 0));
    ast_push_all(a, given, list->kids, list->kid_count);
    ast_push(a, call, path);
    ast_push(a, call, given);
    return call;
}

STACK_APART static value evaluate_method(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *list = ast_kid(n, 2);
    declared *hint = NULL;
    if (ast_is(ast_kid(n, 0), AST_METHOD) && expected && expected->kind == DECLARED_TENSOR && expected->has_dtype &&
        stage_expects_dtype(n->text)) { /* what cast or fetch in front has to give */
        hint = ARENA_NEW(scope_arena(names), declared);
        *hint = (declared){.kind = DECLARED_TENSOR, .is_hint = true, .has_dtype = true, .tensor.dtype = expected->tensor.dtype};
    }
    value receiver = evaluate(s, names, ast_kid(n, 0), hint);
    symbol *function;
    const ast *own = call_of_method(s, names, n, &receiver, &function);
    if (own)
        return evaluate_method_of_type(s, names, own, function, &receiver, expected);
    value *args = ARENA_ARRAY(s->context.arena, value, list->kid_count);
    bool joins = variant_joins(&receiver, n->text), takes_mode = variant_takes_mode(&receiver, n->text);
    bool number = receiver.kind == VALUE_INT && constant_has_method(n->text);
    bool known = value_is_sequence(&receiver) || number || joins || takes_mode ||
                 stage_is_known(n->text); /* else what the arguments should be is not known either */
    for (uint32_t i = 0; i < list->kid_count; i++)
        args[i] = known ? evaluate_counted(s, names, list->kids[i], NULL) : error_value;
    if (s->stopped)
        return error_value;
    if (option_is(&receiver))
        return option_method(s, n, &receiver, args);
    if (value_is_sequence(&receiver))
        return constant_checked(s, n, constant_method(names, n, &receiver, args, list->kid_count));
    if (number)
        return constant_checked(s, n, constant_integer_method(names, n, receiver.number, args, list->kid_count));
    if (joins)
        return evaluate_joined(s, n, &receiver, args);
    if (takes_mode)
        return evaluate_with_mode(s, n, &receiver, args);
    if (s->kernel->op_count >= UNROLL_MAX) {
        s->stopped = true;
        return refuse(s, E_UNROLL, n->name_range, unroll_help, "kernel `%s` has more than %zu stage calls", s->kernel->name, UNROLL_MAX);
    }
    return build_stage(s, names, n, &receiver, args, expected);
}

STACK_APART static value evaluate_integer(analysis *s, scope *names, const ast *n)
{
    value v = {.kind = VALUE_INT};
    if (scope_integer(names, n, &v.number))
        return v;
    s->kernel->bad = true;
    return error_value;
}

STACK_APART static value evaluate_binary(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    if (a.kind == VALUE_ERROR && strchr("<>", n->text[0])) /* `x.fetch<..>()` is no comparison, and its right side no value */
        return a;
    if (constant_decides(n->text, &a))
        return a;
    value b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_binary(names, n, n->text, &a, &b));
}

STACK_APART static value evaluate_unary(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    return constant_checked(s, n, constant_unary(names, n, &a));
}

/* A fraction that is computed is no constant of the machine's language outside of `const { .. }` and const items. */
value refuse_computed(analysis *s, const ast *n, value v)
{
    if (v.kind != VALUE_FLOAT || s->in_const > 0)
        return v;
    diag *d = refuse_diag(s, E_CONST, n->range, "a computed float stands in a constant");
    diag_help(s->context.diags, d, "write const { .. } around it");
    diag_replace(s->context.diags, d, (src_range){n->range.file, n->range.begin, n->range.begin}, "const { ");
    diag_replace(s->context.diags, d, (src_range){n->range.file, n->range.end, n->range.end}, " }");
    return error_value;
}

STACK_APART static value evaluate_cast(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    return refuse_computed(s, n, constant_checked(s, n, constant_cast(names, n, &a)));
}

STACK_APART static value evaluate_range(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL), b = evaluate(s, names, ast_kid(n, 1), NULL);
    return constant_checked(s, n, constant_range(names, n, &a, &b));
}

static bool may_be_counted(const value *v)
{
    return v->kind == VALUE_INT || v->kind == VALUE_FLOAT || v->kind == VALUE_BOOL || value_is_sequence(v);
}

STACK_APART static value evaluate_index(analysis *s, scope *names, const ast *n)
{
    value a = evaluate(s, names, ast_kid(n, 0), NULL);
    bool chosen_before = s->chosen;
    s->chosen = false;
    value b = evaluate(s, names, ast_kid(n, 1), NULL);
    bool chosen = s->chosen;
    s->chosen = chosen || chosen_before;
    if (chosen && may_be_counted(&b) &&
        s->context.dialect >= DIALECT_V0_8) { /* a command has one operand; which, would be known when it runs */
        refuse(s, E_CONST, ast_kid(n, 1)->range, "write the `if` around what is done with the element, one index in each of its blocks",
               "an array index must be a constant or the index of a loop: an `if` chooses this one when the kernel runs");
        return error_value;
    }
    return constant_checked(s, n, constant_index(names, n, &a, &b));
}

declared part_type(const declared *whole, size_t i, size_t count)
{
    const ast *type = !whole                                                           ? NULL
                      : whole->array                                                   ? ast_kid(whole->array, 0)
                      : whole->tuple && whole->tuple->kid_count == count               ? whole->tuple->kids[i]
                      : whole->record && ast_kid(whole->record, 2)->kid_count == count ? ast_kid(ast_kid(whole->record, 2)->kids[i], 2)
                                                                                       : NULL;
    return type ? scope_type(whole->scope, type) : (declared){0};
}

/* A tuple or an array; `expected` has the types of its elements. */
STACK_APART static value evaluate_list(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value *items = ARENA_ARRAY(s->context.arena, value, n->kid_count);
    bool apart = expected && (ast_is(n, AST_ARRAY) ? expected->array != NULL : expected->tuple != NULL);
    for (uint32_t i = 0; i < n->kid_count; i++) {
        declared d = apart ? part_type(expected, i, n->kid_count) : (declared){0};
        items[i] = evaluate(s, names, n->kids[i], &d);
        if (items[i].kind == VALUE_ERROR)
            s->kernel->bad = true;
    }
    return (value){.kind = VALUE_LIST, .items = items, .count = n->kid_count};
}

STACK_APART static value evaluate_repeat(analysis *s, scope *names, const ast *n)
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

value evaluate_counted(analysis *s, scope *names, const ast *n, const declared *expected)
{
    const ast *before = s->counted;
    bool chosen_before = s->chosen;
    s->counted = NULL;
    s->chosen = false;
    value v = evaluate(s, names, n, expected);
    v.loop = may_be_counted(&v) ? s->counted : NULL;
    v.chosen = v.loop && s->chosen;
    s->counted = s->counted ? s->counted : before;
    s->chosen = s->chosen || chosen_before;
    return v;
}

/* One case of one block of an `if` that is decided when the kernel runs: what it writes is memory that is there. */
STACK_APART static value evaluate_case(analysis *s, scope *names, const ast *block, const run_guard *guards, const declared *expected)
{
    const run_guard *outer = s->kernel->runs_if;
    s->kernel->runs_if = run_guard_join(s->context.arena, guards, outer);
    value v = evaluate(s, names, block, expected);
    s->kernel->runs_if = outer;
    if (v.kind == VALUE_UNIT || v.kind == VALUE_ERROR)
        return v;
    return refuse(s, E_UNSUPPORTED, block->range, "write into a view of a tensor that is there, and end the block with `;`",
                  "an `if` that is decided when the kernel runs gives %s", value_kind_name(&v));
}

/* All cases of one block, of which one at most runs. */
STACK_APART static value evaluate_guarded(analysis *s, scope *names, const ast *block, const run_condition *x, const declared *expected)
{
    value v = {.kind = VALUE_UNIT};
    bool outer = s->kernel->repeating;
    s->may_return = s->may_leave = false;
    for (size_t i = 0; i < x->count && v.kind == VALUE_UNIT && !s->stopped; i++) {
        if (i > 0 && !spend(s, block->range, 1))
            break;
        v = evaluate_case(s, names, block, x->cases[i], expected);
        set_repeated(s, true);
    }
    set_repeated(s, outer);
    return v;
}

STACK_APART static value evaluate_running_if(analysis *s, scope *names, const ast *n, const run_condition *x, const declared *expected)
{
    value v = evaluate_guarded(s, names, ast_kid(n, 1), x, expected);
    if (v.kind == VALUE_ERROR || ast_is(ast_kid(n, 2), AST_NONE))
        return v;
    const run_condition *opposite = run_condition_opposite(s->context.arena, x);
    if (!opposite)
        return refuse(s, E_UNSUPPORTED, ast_kid(n, 2)->range, "write an `if` inside of an `if`, each with its `else`",
                      "`else` of a condition that is known when the kernel runs has more than %d cases", RUN_MOST_CASES);
    return evaluate_guarded(s, names, ast_kid(n, 2), opposite, expected);
}

STACK_APART static value evaluate_if(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value condition = evaluate_counted(s, names, ast_kid(n, 0), NULL);
    if (condition.kind == VALUE_ERROR)
        return condition;
    const run_condition *running = run_condition_of(s->context.arena, &condition);
    if (running)
        return evaluate_running_if(s, names, n, running, expected);
    if (condition.kind != VALUE_BOOL)
        return refuse(s, E_CONST, ast_kid(n, 0)->range, "compare constants: `i == 0`, `i % 2 == 1`",
                      "the condition of `if` is %s, not a constant condition", value_kind_name(&condition));
    const ast *outer = s->guard;
    s->guard = condition.loop ? condition.loop : outer;
    value v = evaluate(s, names, ast_kid(n, condition.number ? 1 : 2), expected);
    s->guard = outer;
    s->chosen = s->chosen || (condition.loop && may_be_counted(&v));
    return v;
}

void refuse_bounds(analysis *s, src_range range, const ast *loop, const char *help)
{
    diag *d = refuse_diag(s, E_UNROLL, range, "the bounds of a loop must be compile-time constants");
    diag_note(s->context.diags, d, loop->name_range, "what this loop counts is known when it runs");
    diag_help(s->context.diags, d, "%s", help);
}

/* Does the device know how often it runs, and what #[unroll] writes out? A loop that it keeps runs equally often in each turn of those
 * around it, and one that is written out counts from 0 (since 0.8; before that nobody says). Diagnoses. */
static bool check_turns(analysis *s, const ast *n, const value *sequence)
{
    const ast *what = ast_kid(n, 1);
    if (s->context.dialect < DIALECT_V0_8)
        return true;
    if (sequence->loop) {
        refuse_bounds(s, what->range, sequence->loop,
                      n->value ? "write #[unroll] in front of that loop, too"
                               : "count to the largest number, and write an `if` around what is inside of the loop");
    } else if (n->value && sequence->count == 0) {
        diag *d = diag_add(s->context.diags, E_UNROLL, what->range, "#[unroll] writes out a loop that never runs");
        diag_help(s->context.diags, d, "the range ends at a constant of at least 1");
    } else if (n->value && sequence->kind == VALUE_RANGE && sequence->number != 0) {
        diag *d = diag_add(s->context.diags, E_UNROLL, what->range, "a loop that #[unroll] writes out begins at 0, got %lld",
                           (long long)sequence->number);
        diag_help(s->context.diags, d, "count from 0, and add %lld inside of the loop", (long long)sequence->number);
    } else {
        return true;
    }
    s->kernel->bad = true;
    return false;
}

STACK_APART static value evaluate_for(analysis *s, scope *names, const ast *n)
{
    value sequence = evaluate_counted(s, names, ast_kid(n, 1), NULL);
    if (sequence.kind == VALUE_ERROR)
        return sequence;
    if (!value_is_sequence(&sequence))
        return refuse(s, E_CONST, ast_kid(n, 1)->range, "write `0..N`, or the `.iter()` of an array",
                      "`for` runs through a range or an array, not %s", value_kind_name(&sequence));
    if (!check_turns(s, n, &sequence))
        return error_value;
    size_t errors_before = s->context.diags->error_count;
    bool outer = s->kernel->repeating, rolled = !n->value && s->in_const + s->in_const_fn == 0 && s->context.dialect > DIALECT_APRIL;
    bool may_leave = s->may_leave, on = true;
    const frame here = {.outer = s->frames, .label = n->text, .is_loop = true, .is_counted = rolled};
    s->frames = &here;
    const ast *outer_loop = s->loop;
    s->may_return = s->may_return && !rolled;
    s->may_leave = !rolled; /* the device counts it to its end */
    s->loop = rolled ? n : outer_loop;
    for (size_t i = 0; i < sequence.count && on && !s->stopped; i++) {
        if (!spend(s, n->name_range, 1))
            break;
        names_mark before = names_begin(s);
        scope *inner = scope_new(&s->context, names);
        value item = value_item(&sequence, i);
        item.loop = rolled ? n : NULL;
        bind_pattern(s, inner, ast_kid(n, 0), &item, NULL);
        evaluate_block(s, inner, ast_kid(n, 2), NULL);
        names_end(s, before, NULL);
        on = goes_on(s, n->text);
        if (s->context.diags->error_count > errors_before) /* the other iterations would only say it again */
            break;
        set_repeated(s, true);
    }
    set_repeated(s, outer);
    s->loop = outer_loop;
    s->frames = here.outer;
    s->may_leave = may_leave;
    if (s->context.diags->error_count > errors_before)
        return error_value;
    return (value){.kind = VALUE_UNIT};
}

/* The elements of a list of constants that are assigned to are its own from then on. */
static value *own_part(analysis *s, value *whole, size_t i)
{
    value *items = ARENA_ARRAY(s->context.arena, value, whole->count);
    memcpy(items, whole->items, whole->count * sizeof *items);
    whole->items = items;
    return &items[i];
}

/* The value of `x`, `x.field`, `x[1]` of a variable x of constants, to be written; NULL: diagnosed. */
STACK_APART static value *place_of(analysis *s, scope *names, const ast *place, symbol *y)
{
    if (ast_is(place, AST_PATH))
        return &y->value;
    budget_enter(s->arena);
    value *whole = place_of(s, names, ast_kid(place, 0), y), *part = NULL;
    value at = whole && ast_is(place, AST_INDEX) ? evaluate_counted(s, names, ast_kid(place, 1), NULL) : error_value;
    if (whole && whole->kind != VALUE_LIST) {
        if (whole->kind != VALUE_ERROR)
            refuse(s, E_UNSUPPORTED, place->range, "assign to a variable; write into a part of a tensor through view_mut() and tile",
                   "assigning to a part of %s is not supported in .vm kernels", value_kind_name(whole));
    } else if (whole && ast_is(place, AST_INDEX)) {
        if (at.loop)
            refuse(s, E_UNSUPPORTED, ast_kid(place, 1)->range, "write #[unroll] in front of that loop",
                   "which element is assigned is known when the kernel runs");
        else if (at.kind == VALUE_INT && at.number >= 0 && (uint64_t)at.number < whole->count)
            part = own_part(s, whole, (size_t)at.number);
        else if (at.kind != VALUE_ERROR)
            refuse(s, E_CONST, ast_kid(place, 1)->range, NULL, "the index is no element of the %zu that there are", whole->count);
    } else if (whole && whole->record) {
        int64_t index = field_index(s, place, whole->record);
        part = index < 0 ? NULL : own_part(s, whole, (size_t)index);
    } else if (whole && place->text[0] >= '0' && place->text[0] <= '9' && strtoul(place->text, NULL, 10) < whole->count) {
        part = own_part(s, whole, strtoul(place->text, NULL, 10));
    } else if (whole) {
        refuse(s, E_NAME, place->name_range, NULL, "there is no field `%s` on %s", place->text, value_kind_name(whole));
    }
    s->kernel->bad = s->kernel->bad || !part;
    budget_leave(s->arena);
    return part;
}

/* `self.gain = 3`, `table[i] += 1`: of constants. */
STACK_APART static value assign_part(analysis *s, scope *names, const ast *n, symbol *y)
{
    value v = evaluate_counted(s, names, ast_kid(n, 1), NULL), *part = place_of(s, names, ast_kid(n, 0), y);
    if (!part || v.kind == VALUE_ERROR)
        return error_value;
    bool constant = may_be_counted(&v) && !v.loop && (v.kind == part->kind || part->kind == VALUE_ERROR);
    if (!constant || s->loop != y->loop || s->guard)
        return refuse(s, E_UNSUPPORTED, n->range, "build the array or struct anew, or write #[unroll] in front of the loop",
                      "parts of a variable are assigned constants, got %s", value_kind_name(&v));
    const char *operator= arena_strndup(s->context.arena, n->text, strlen(n->text) - 1);
    *part = operator[0] ? constant_checked(s, n, constant_binary(names, n, operator, part, &v)) : v;
    return (value){.kind = VALUE_UNIT};
}

/* `(a, _) = pair;`: each a variable. */
STACK_APART static value assign_each(analysis *s, scope *names, const ast *n)
{
    const ast *places = ast_kid(n, 0);
    value v = evaluate_counted(s, names, ast_kid(n, 1), NULL);
    if (v.kind == VALUE_ERROR)
        return v;
    if (v.kind != VALUE_LIST || v.count != places->kid_count)
        return refuse(s, E_MISMATCH, places->range, NULL, "this takes %u values, but the value is %s", places->kid_count,
                      value_kind_name(&v));
    for (uint32_t i = 0; i < places->kid_count; i++) {
        const ast *place = places->kids[i];
        symbol *y = ast_is(place, AST_PATH) && place->kid_count == 1 ? scope_find(names, VALUE_NAMES, place->kids[0]->text) : NULL;
        bool fits = y && y->kind == SYMBOL_VARIABLE && y->mutable && may_be_counted(&v.items[i]) && s->loop == y->loop && !s->guard;
        if (!fits)
            return refuse(s, E_UNSUPPORTED, place->range, "assign to one variable after the other",
                          "assigning to this %s among others is not supported in .vm kernels", ast_kind_name(place->kind));
        y->value = v.items[i];
    }
    return (value){.kind = VALUE_UNIT};
}

static const ast *whole_of(const ast *place)
{
    while (ast_is(place, AST_FIELD) || ast_is(place, AST_INDEX) || ast_is(place, AST_DEREF))
        place = ast_kid(place, 0);
    return place;
}

STACK_APART static value evaluate_assignment(analysis *s, scope *names, const ast *n)
{
    const ast *written = ast_kid(n, 0), *place = whole_of(written);
    if (ast_is(written, AST_TUPLE) && written->kid_count > 0 && n->text[1] == '\0')
        return assign_each(s, names, n);
    if (!ast_is(place, AST_PATH) || place->kid_count != 1)
        return refuse(s, E_UNSUPPORTED, place->range, "assign to a variable; write into a part of a tensor through view_mut() and tile",
                      "assigning to this %s is not supported in .vm kernels", ast_kind_name(place->kind));
    const char *name = place->kids[0]->text;
    symbol *y = scope_find(names, VALUE_NAMES, name);
    bool compound = strcmp(n->text, "=") != 0;
    bool of_part = place != written && !ast_is(written, AST_DEREF) && y && y->kind == SYMBOL_VARIABLE;
    value v = of_part ? (value){.kind = VALUE_UNIT} : evaluate_counted(s, names, ast_kid(n, 1), y && !compound ? y->declared : NULL);
    if (!y && scope_is_lost(names, name)) {
        s->kernel->bad = true;
        return error_value;
    }
    if (!y || y->kind != SYMBOL_VARIABLE) {
        const char *near = scope_suggest(names, name, SYMBOL_VARIABLE);
        return refuse(s, E_NAME, place->range, near ? arena_printf(s->context.arena, "did you mean `%s`?", near) : NULL,
                      "`%s` is not a variable", name);
    }
    if (!y->mutable && y->value.kind != VALUE_UNIT && y->value.kind != VALUE_ERROR) {
        diag *d = diag_add(s->context.diags, E_IMMUTABLE, place->range, "`%s` is assigned again, but it is not `mut`", name);
        diag_note(s->context.diags, d, y->range, "`%s` is bound here", name);
        diag_help(s->context.diags, d, "let mut %s", name);
        s->kernel->bad = true;
    }
    if (y->runs_if != s->kernel->runs_if)
        return refuse(s, E_UNSUPPORTED, place->range, "let a tensor be there before, and write into a view of it",
                      "`%s` is assigned in an `if` that is decided when the kernel runs", name);
    if (of_part)
        return assign_part(s, names, n, y);
    if (compound) {
        const char *operator= arena_strndup(s->context.arena, n->text, strlen(n->text) - 1);
        const ast *loop = v.loop ? v.loop : y->value.loop;
        bool chosen = v.chosen || y->value.chosen;
        v = constant_checked(s, n, constant_binary(names, n, operator, & y->value, &v));
        v.loop = loop;
        v.chosen = chosen;
    }
    if (!v.loop && may_be_counted(&v)) /* in a loop, or where a loop decides, a variable from outside of it changes while it runs */
        v.loop = y->loop != s->loop ? s->loop : s->guard;
    v.chosen = v.chosen || (v.loop && s->guard);
    if (v.kind == VALUE_TENSOR && y->declared && !v.op->bad && !stage_check_type(names, ast_kid(n, 1)->range, &v.op->out, y->declared))
        s->kernel->bad = true;
    if (v.kind == VALUE_TENSOR && v.op->name[0] == '\0')
        v.op->name = name;
    s->keeps_names = s->keeps_names || holds_names(s, &v);
    y->value = v;
    y->moved = false;
    return (value){.kind = VALUE_UNIT};
}

value unsupported(analysis *s, const ast *n)
{
    static const struct {
        ast_kind kind;
        const char *what, *instead;
    } rows[] = {
        {AST_CALL, "calling a value", "call a function by its name"},
        {AST_MACRO, "a macro", "kernels use axes!, m! and the macros of the file"},
        {AST_STRUCT_LITERAL, "a struct literal", "no stage of this release takes one"},
        {AST_TRY, "`?`", "kernels have no Result"},
        {AST_AWAIT, "`.await`", "kernels are not async"},
        {AST_STRING, "a string", "addresses and sizes are integers"},
    };
    if (ast_is(n, AST_MACRO) && (strcmp(n->text, "panic") == 0 || strcmp(n->text, "unreachable") == 0))
        return refuse(s, E_ASSERT, n->range, "the constants in front of it lead here", "`%s!` is reached", n->text);
    if (ast_is(n, AST_MACRO) && (strcmp(n->text, "todo") == 0 || strcmp(n->text, "unimplemented") == 0))
        return refuse(s, E_UNSUPPORTED, n->range, "write its stages, or take the function out", "kernel `%s` is a stub", s->kernel->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == n->kind)
            return refuse(s, E_UNSUPPORTED, n->name_range, rows[i].instead, "%s is not supported in .vm kernels", rows[i].what);
    if (ast_is(n, AST_UNSUPPORTED) && n->kid_count > 2)
        return refuse(s, E_PARSE, n->kids[2]->range, NULL, "this `%s` is not read: %s", n->text, n->kids[2]->text);
    if (ast_is(n, AST_UNSUPPORTED)) {
        bool closure = strcmp(n->text, "closure") == 0, leaves = strcmp(n->text, "return") == 0;
        const char *instead =
            closure                         ? "write a function: `const fn name(n: usize) -> usize { .. }`"
            : leaves                        ? "end the body with the value"
            : strcmp(n->text, "async") == 0 ? "kernels are not async"
            : strcmp(n->text, "break") == 0 || strcmp(n->text, "continue") == 0
                ? "the device counts a loop to its end: write #[unroll] in front of it, or an `if` around what is left out"
                : "write it as statements of their own: `let`, `if`, `for`";
        return refuse(s, E_UNSUPPORTED, n->name_range, instead,
                      closure ? "a %s is not supported in .vm kernels" : "`%s` is not supported here", n->text);
    }
    return refuse(s, E_UNSUPPORTED, n->range, NULL, "this %s is not supported in .vm kernels", ast_kind_name(n->kind));
}

/* `const { .. }`: a value that is known when the kernel is compiled. */
STACK_APART static value evaluate_const_block(analysis *s, scope *names, const ast *n, const declared *expected)
{
    size_t ops_before = s->kernel->op_count;
    s->in_const++;
    s->may_return = s->may_leave = false;
    value v = evaluate_block(s, names, ast_kid(n, 0), expected);
    s->in_const--;
    if (v.kind != VALUE_ERROR && s->kernel->op_count != ops_before)
        return refuse(s, E_CONST, n->range, "take the stages out of the block", "`const { .. }` holds constants; this one has stages");
    return v;
}

/* `assert!(condition, "message")`, with expand.c's arguments; anything else is a macro that nobody knows. */
STACK_APART static value evaluate_assertion(analysis *s, scope *names, const ast *n)
{
    const ast *arguments = ast_kid(n, 1);
    bool holds;
    if (strcmp(n->text, "cfg") == 0 && cfg_holds(ast_kid(n, 0)->text, &holds))
        return (value){.kind = VALUE_BOOL, .number = holds};
    if (!ast_is(arguments, AST_LIST))
        return unsupported(s, n);
    if (s->in_const == 0)
        return refuse(s, E_UNSUPPORTED, n->name_range,
                      arena_printf(s->context.arena, "write const { %s!(..) }: it is checked when the kernel is compiled", n->text),
                      "a kernel cannot stop: `%s!` is no stage of it", n->text);
    bool equal = strstr(n->text, "_eq") != NULL, compares = equal || strstr(n->text, "_ne") != NULL;
    if (arguments->kid_count < (compares ? 2u : 1u))
        return refuse(s, E_ARGUMENTS, n->name_range, NULL, "`%s!` takes %s", n->text, compares ? "two values" : "a condition");
    value a = evaluate(s, names, arguments->kids[0], NULL), b = compares ? evaluate(s, names, arguments->kids[1], NULL) : a;
    if (compares)
        a = constant_checked(s, n, constant_binary(names, n, equal ? "==" : "!=", &a, &b));
    if (a.kind == VALUE_ERROR)
        return a;
    if (a.kind != VALUE_BOOL)
        return refuse(s, E_CONST, arguments->kids[0]->range, "compare constants: `A::SIZE == 4`", "`%s!` takes a condition, got %s",
                      n->text, value_kind_name(&a));
    if (a.number)
        return (value){.kind = VALUE_UNIT};
    const ast *said = ast_kid(arguments, compares ? 2 : 1);
    return refuse(s, E_ASSERT, n->range, "the sizes that it compares are those of axes! and const items, or of -D NAME=VALUE",
                  "assertion failed%s%s", ast_is(said, AST_STRING) ? ": " : "", ast_is(said, AST_STRING) ? said->text : "");
}

/* A field of a struct literal, `slice1: 4`, or `slice1` for the variable or constant of that name. */
static value evaluate_init(analysis *s, scope *names, const ast *init, const declared *expected)
{
    if (!ast_is(ast_kid(init, 0), AST_NONE))
        return evaluate(s, names, ast_kid(init, 0), expected);
    symbol *y = scope_find(names, VALUE_NAMES, init->text);
    if (y && y->kind == SYMBOL_VARIABLE)
        return y->value;
    if (y && y->kind == SYMBOL_CONST)
        return evaluate_const(s, y, init);
    return refuse(s, E_NAME, init->range, arena_printf(s->context.arena, "write %s: and its value", init->text), "`%s` is not known here",
                  init->text);
}

/* SwitchConfig::Broadcast1 { slice1: 4, slice0: 8 }: each field once, in any order. */
STACK_APART static value evaluate_switch_config(analysis *s, scope *names, const ast *n)
{
    const ast *path = ast_kid(n, 0);
    const char *name = path->kids[path->kid_count - 1]->text;
    const topology_row *row = topology_named(name);
    if (!row)
        return unknown_topology(s, path, name);
    value *items = ARENA_ARRAY(s->context.arena, value, TOPOLOGY_FIELDS);
    size_t count = 0;
    for (; row->fields[count]; count++) {
        const ast *init = NULL;
        for (uint32_t i = 1; i < n->kid_count; i++)
            if (strcmp(n->kids[i]->text, row->fields[count]) == 0)
                init = n->kids[i];
        if (!init)
            return refuse(s, E_ARGUMENTS, n->range, arena_printf(s->context.arena, "it is %s", topology_text(s, row)),
                          "`SwitchConfig::%s` needs `%s`", name, row->fields[count]);
        items[count] = evaluate_init(s, names, init, NULL);
        if (items[count].kind == VALUE_ERROR)
            return items[count];
        if (items[count].kind != VALUE_INT)
            return refuse(s, E_ARGUMENTS, init->range, "write a number of slices, or of time steps", "`%s` must be an integer, got %s",
                          init->text, value_kind_name(&items[count]));
    }
    if (n->kid_count != count + 1)
        return refuse(s, E_ARGUMENTS, n->range, arena_printf(s->context.arena, "it is %s", topology_text(s, row)),
                      "`SwitchConfig::%s` takes %zu fields, got %u", name, count, n->kid_count - 1);
    return (value){.kind = VALUE_SWITCH_CONFIG, .number = row->code, .items = items, .count = count};
}

static bool is_switch_config(const ast *path)
{
    return ast_is(path, AST_PATH) && path->kid_count >= 2 && strcmp(path->kids[path->kid_count - 2]->text, "SwitchConfig") == 0;
}

/* `InputCmpI32::Less { boundary: 0 }`: a variant with one value, whose field has whatever name. */
STACK_APART static value evaluate_variant_literal(analysis *s, scope *names, const ast *n)
{
    unsigned wanted;
    value *given = ARENA_ARRAY(s->context.arena, value, 1), v;
    if (variant_is_unknown(ast_kid(n, 0)))
        return evaluate(s, names, ast_kid(n, 0), NULL);
    if (!variant_takes_arguments(ast_kid(n, 0), &wanted) || wanted != 1 || n->kid_count != 2)
        return unsupported(s, n);
    *given = evaluate_init(s, names, n->kids[1], NULL);
    return given->kind != VALUE_ERROR && variant_of(ast_kid(n, 0), given, 1, &v) ? v : *given;
}

static const ast *init_of(const ast *literal, const char *field)
{
    const ast *given = NULL;
    for (uint32_t k = 1; k < literal->kid_count; k++)
        if (strcmp(literal->kids[k]->text, field) == 0)
            given = literal->kids[k];
    return given;
}

/* A struct of the file, with all of its fields in the order in which it declares them. */
STACK_APART static value evaluate_struct(analysis *s, scope *names, const ast *n, const declared *expected)
{
    declared own = own_type(names, ast_kid(n, 0));
    const ast *record = own.record, *fields = record ? ast_kid(record, 2) : NULL;
    if (!record)
        return is_switch_config(ast_kid(n, 0)) ? evaluate_switch_config(s, names, n) : evaluate_variant_literal(s, names, n);
    value v = {.kind = VALUE_LIST, .record = record, .count = fields->kid_count};
    value *items = ARENA_ARRAY(s->context.arena, value, fields->kid_count), rest = {0};
    const ast *base = init_of(n, "..");
    const declared *types = expected && expected->record == record ? expected : own.scope ? &own : NULL;
    v.items = items;
    v.fields_in = types ? types->scope : NULL;
    if (base)
        rest = evaluate(s, names, ast_kid(base, 0), types);
    for (uint32_t k = 1; k < n->kid_count; k++)
        if (n->kids[k] != base && field_index(s, n->kids[k], record) < 0)
            return error_value;
    for (uint32_t i = 0; i < fields->kid_count; i++) {
        const ast *name = ast_kid(fields->kids[i], 1), *given = init_of(n, name->text);
        declared d = part_type(types, i, fields->kid_count);
        if (!given && base && rest.record == record) {
            items[i] = rest.items[i];
            continue;
        }
        if (!given)
            return rest.kind == VALUE_ERROR && base
                       ? rest
                       : refuse(s, E_ARGUMENTS, n->range, NULL, "field `%s` of `%s` is missing", name->text, record->text);
        items[i] = evaluate_init(s, names, given, &d);
    }
    return v;
}

static value evaluate_return(analysis *s, scope *names, const ast *n);

/* `&x`, `*x`: the same value, which may be a reference from here on. */
STACK_APART static value evaluate_borrowed(analysis *s, scope *names, const ast *n, const declared *expected)
{
    value v = evaluate(s, names, ast_kid(n, 0), expected);
    v.owned = false;
    return v;
}

static value evaluate_kind(analysis *s, scope *names, const ast *n, const declared *expected)
{
    switch (n->kind) {
    case AST_NONE: return (value){.kind = VALUE_UNIT};
    case AST_ERROR: s->kernel->bad = true; return error_value;
    case AST_PATH:
    case AST_TYPE_PATH: /* a generic argument is a type by its place */
        return n->kid_count >= 2 ? evaluate_variant(s, names, n) : evaluate_name(s, names, n, n->kids[0]->text, expected);
    case AST_BORROW:
    case AST_DEREF: return evaluate_borrowed(s, names, n, expected);
    case AST_FIELD: return evaluate_field(s, names, n);
    case AST_METHOD: return evaluate_method(s, names, n, expected);
    case AST_INT:
    case AST_TYPE_QUALIFIED: return evaluate_integer(s, names, n);
    case AST_BOOL: return (value){.kind = VALUE_BOOL, .number = n->value};
    case AST_UNARY: return evaluate_unary(s, names, n);
    case AST_BINARY: return evaluate_binary(s, names, n);
    case AST_CAST: return evaluate_cast(s, names, n);
    case AST_RANGE: return evaluate_range(s, names, n);
    case AST_INDEX: return evaluate_index(s, names, n);
    case AST_TUPLE:
    case AST_ARRAY: return n->kid_count == 0 && ast_is(n, AST_TUPLE) ? (value){.kind = VALUE_UNIT} : evaluate_list(s, names, n, expected);
    case AST_ARRAY_REPEAT: return evaluate_repeat(s, names, n);
    case AST_IF: return evaluate_if(s, names, n, expected);
    case AST_FOR: return evaluate_for(s, names, n);
    case AST_ASSIGN: return evaluate_assignment(s, names, n);
    case AST_CALL: return evaluate_call(s, names, n, expected);
    case AST_UNSAFE: return evaluate_block(s, names, ast_kid(n, 0), expected);
    case AST_CONST_BLOCK: return evaluate_const_block(s, names, n, expected);
    case AST_FLOAT: return constant_float(names, n);
    case AST_MACRO: return evaluate_assertion(s, names, n);
    case AST_STRUCT_LITERAL: return evaluate_struct(s, names, n, expected);
    case AST_BLOCK: return n->text[0] ? evaluate_labelled(s, names, n, expected) : evaluate_block(s, names, n, expected);
    case AST_MATCH: return evaluate_match(s, names, n, expected);
    case AST_WHILE: return evaluate_while(s, names, n);
    case AST_UNSUPPORTED:
        return strcmp(n->text, "return") == 0                                      ? evaluate_return(s, names, n)
               : strcmp(n->text, "break") == 0 || strcmp(n->text, "continue") == 0 ? evaluate_leave(s, names, n)
                                                                                   : unsupported(s, n);
    default: return unsupported(s, n);
    }
}

/* Is nothing half done where a statement in it ends the function or a loop? */
static bool is_whole_statement(const ast *n)
{
    return ast_is(n, AST_IF) || ast_is(n, AST_BLOCK) || ast_is(n, AST_UNSAFE) || ast_is(n, AST_UNSUPPORTED) || ast_is(n, AST_MATCH) ||
           ast_is(n, AST_WHILE) || ast_is(n, AST_FOR);
}

value evaluate(analysis *s, scope *names, const ast *n, const declared *expected)
{
    if (s->stopped)
        return error_value;
    bool outer = s->may_return;
    budget_spend_at(s->arena, n->range, 1);
    budget_enter(s->arena);
    bool may_leave = s->may_leave, whole = is_whole_statement(n);
    s->may_return = outer && whole;
    s->may_leave = may_leave && whole;
    value v = evaluate_kind(s, names, n, expected);
    s->may_return = outer;
    s->may_leave = may_leave;
    budget_leave(s->arena);
    return v;
}

/* `return value` where nothing is left half done: in the statements of a function and in those of its blocks and `if`s. */
STACK_APART static value evaluate_return(analysis *s, scope *names, const ast *n)
{
    if (!s->may_return)
        return unsupported(s, n);
    s->returned = evaluate(s, names, ast_kid(n, 1), s->result);
    s->returned_by = ast_is(ast_kid(n, 1), AST_NONE) ? n : ast_kid(n, 1);
    s->returning = true;
    return s->returned;
}

value evaluate_body(analysis *s, scope *names, const ast *body, const declared *result, const declared *expected, const ast **given)
{
    const struct declared *outer_result = s->result;
    bool outer = s->may_return, may_leave = s->may_leave;
    const frame *frames = s->frames;
    s->may_leave = false;
    s->frames = NULL;
    s->result = result->kind == DECLARED_TENSOR || result->tuple || result->array || result->record ? result : expected;
    s->may_return = true;
    value v = evaluate_block(s, names, body, s->result);
    if (given)
        *given = s->returning ? s->returned_by : body->kid_count == 0 ? body : ast_kid(ast_statement(body->kids[body->kid_count - 1]), 0);
    s->returning = false;
    s->may_return = outer;
    s->may_leave = may_leave;
    s->frames = frames;
    s->result = outer_result;
    return v;
}

/* ---- statements ---- */

static void bind_name(analysis *s, scope *names, const ast *pattern, value v, const declared *annotation)
{
    if (v.kind == VALUE_TENSOR && v.op->name[0] == '\0')
        v.op->name = pattern->text;
    symbol *y = scope_add(names, SYMBOL_VARIABLE, pattern->text, pattern->name_range);
    y->value = v;
    y->loop = s->loop;
    y->runs_if = s->kernel ? s->kernel->runs_if : NULL;
    y->mutable = pattern->value;
    y->declared = annotation;
}

/* A part is known only when the loop runs that counts the whole. */
static value part_of(const value *whole, value part)
{
    part.owned = false;
    part.loop = part.loop ? part.loop : whole->loop;
    part.chosen = part.chosen || whole->chosen;
    return part;
}

/* A value that has not as many parts as the pattern; `rest`: the place of `..`, if it is one of `kids`. */
STACK_APART static void refuse_elements(analysis *s, const ast *pattern, size_t kids, size_t rest, const value *v)
{
    size_t wanted = kids - (rest < kids);
    refuse(s, E_MISMATCH, pattern->range, v->kind == VALUE_LIST && v->count > wanted ? "`..` stands for those that are left" : NULL,
           "the pattern has %s%zu elements, but the value is %s%s", rest < kids ? "at least " : "", wanted, value_kind_name(v),
           v->kind == VALUE_LIST ? arena_printf(s->context.arena, " of %zu", v->count) : "");
}

/* What `name @ ..` stands for: all but those that other patterns take. */
STACK_APART static void bind_rest(analysis *s, scope *names, const ast *kid, const value *v, size_t first, size_t others)
{
    bool known = v->kind == VALUE_LIST;
    value rest = {.kind = VALUE_LIST, .items = known ? v->items + first : NULL, .count = known ? v->count - others : 0};
    bind_name(s, names, kid, known ? part_of(v, rest) : error_value, NULL);
}

/* The patterns from kid `first` on, each for an element; `..` and `name @ ..` for those that are left. Values are handed on by pointer: a
 * pattern is as deep as brackets are. */
STACK_APART static void bind_elements(analysis *s, scope *names, const ast *pattern, uint32_t first, const value *v)
{
    size_t kids = pattern->kid_count - first, rest = ast_pattern_rest(pattern, first), wanted = kids - (rest < kids);
    bool fits = v->kind == VALUE_LIST ? v->count == wanted || (rest < kids && v->count > wanted) : v->kind == VALUE_UNIT && kids == 0;
    if (!fits && v->kind != VALUE_ERROR) {
        refuse_elements(s, pattern, kids, rest, v);
        v = &error_value;
    }
    for (size_t i = 0; i < kids; i++) {
        const ast *kid = pattern->kids[first + i];
        if (i != rest) {
            value part = v->kind == VALUE_LIST ? part_of(v, v->items[i < rest ? i : v->count - (kids - i)]) : error_value;
            bind_pattern(s, names, kid, &part, NULL);
        } else if (ast_is(kid, AST_PAT_NAME)) {
            bind_rest(s, names, kid, v, i, wanted);
        }
    }
}

/* Is the struct pattern one for the value? Else it is refused. */
STACK_APART static bool fits_fields(analysis *s, scope *names, const ast *pattern, const value *v)
{
    const ast *path = ast_kid(pattern, 0);
    const symbol *y = scope_find_path(names, TYPE_NAMES, path);
    if (v->kind == VALUE_ERROR || (v->kind == VALUE_CONTEXT ? !y : v->record && (!y || y->kind != SYMBOL_OWN_TYPE || y->node == v->record)))
        return true;
    refuse(s, E_MISMATCH, pattern->range, "bind it to a name, and take that apart as what it is",
           "the pattern is for `%s`, but the value is %s", ast_last_segment(path)->text,
           v->record ? arena_printf(s->context.arena, "a `%s`", v->record->text) : value_kind_name(v));
    return false;
}

/* `Weights { w, bias: b, .. }`: fields of a struct of the file, or of the context. */
STACK_APART static void bind_fields(analysis *s, scope *names, const ast *pattern, const value *v)
{
    if (!fits_fields(s, names, pattern, v))
        v = &error_value;
    const ast *fields = v->record ? ast_kid(v->record, 2) : NULL;
    size_t named = 0;
    for (uint32_t i = 1; i < pattern->kid_count; i++) {
        const ast *kid = pattern->kids[i];
        if (!ast_is(kid, AST_PAT_FIELD))
            continue;
        named++;
        value part = part_of(v, field_of(s, kid, *v));
        bind_pattern(s, names, ast_kid(kid, 0), &part, NULL);
    }
    if (v->record && named < fields->kid_count && ast_pattern_rest(pattern, 1) == pattern->kid_count - 1)
        refuse(s, E_MISMATCH, pattern->range, "end it with `..`", "the pattern names %zu of the %u fields of `%s`", named,
               fields->kid_count, v->record->text);
}

/* `Weights(w, bias)`: of a struct of the file only. */
STACK_APART static bool fits_tuple_struct(analysis *s, const ast *pattern, const value *v)
{
    if (v->kind == VALUE_ERROR || v->record)
        return true;
    refuse(s, E_UNSUPPORTED, ast_kid(pattern, 0)->range, "a pattern takes tuples, arrays and structs of the file apart",
           "`%s(..)` is no pattern for %s", ast_last_segment(ast_kid(pattern, 0))->text, value_kind_name(v));
    return false;
}

/* The first of several that the value fits. */
STACK_APART static void bind_either(analysis *s, scope *names, const ast *pattern, const value *v)
{
    bool wrong = false;
    for (uint32_t i = 0; i < pattern->kid_count && !wrong; i++)
        if (pattern_fits(s, names, pattern->kids[i], v, &wrong)) {
            bind_pattern(s, names, pattern->kids[i], v, NULL);
            return;
        }
}

void bind_pattern(analysis *s, scope *names, const ast *pattern, const value *v, const declared *annotation)
{
    switch (pattern->kind) {
    case AST_PAT_NAME:
        bind_name(s, names, pattern, *v, annotation);
        if (pattern->kid_count > 0)
            bind_pattern(s, names, pattern->kids[0], v, NULL);
        break;
    case AST_PAT_REF: bind_pattern(s, names, ast_kid(pattern, 0), v, annotation); break;
    case AST_PAT_ARRAY:
    case AST_PAT_TUPLE: bind_elements(s, names, pattern, 0, v); break;
    case AST_PAT_TUPLE_STRUCT: bind_elements(s, names, pattern, 1, fits_tuple_struct(s, pattern, v) ? v : &error_value); break;
    case AST_PAT_STRUCT: bind_fields(s, names, pattern, v); break;
    case AST_PAT_OR: bind_either(s, names, pattern, v); break;
    case AST_PAT_WILD:
    case AST_PAT_VALUE:
    case AST_PAT_REST: break;
    default: s->kernel->bad = true;
    }
}

/* `let P = v else { .. }`: true if v fits P, or the block was left; what does not fit and goes on is refused, and no value. */
STACK_APART static bool let_fits(analysis *s, scope *names, const ast *let, const value *v)
{
    bool wrong = false;
    if (let->kid_count <= 3 || v->kind == VALUE_ERROR || pattern_fits(s, names, ast_kid(let, 0), v, &wrong) || wrong)
        return true;
    evaluate_block(s, names, let->kids[3], NULL);
    if (!is_left(s) && !s->stopped)
        refuse(s, E_CONST, let->kids[3]->range, "end it with `return`, `break` or `panic!`", "this `else` goes on after the `let`");
    return is_left(s);
}

/* `later`: what the variable gives, where it is the value of the block; NULL: not known. */
STACK_APART static void evaluate_let(analysis *s, scope *names, const ast *let, const declared *later)
{
    declared *annotation = ARENA_NEW(scope_arena(names), declared);
    *annotation = scope_type(names, ast_kid(let, 1));
    if (annotation->kind == DECLARED_ERROR)
        s->kernel->bad = true;
    size_t before = s->kernel->op_count;
    value v = evaluate_counted(s, names, ast_kid(let, 2), annotation->kind == DECLARED_NONE && later ? later : annotation);
    bool other = v.kind == VALUE_TENSOR && annotation->kind == DECLARED_TENSOR && v.op->bad && v.op->out.kind != annotation->tensor.kind;
    if (is_left(s))
        return;
    bool fits = let_fits(s, names, let, &v);
    if (is_left(s))
        return;
    if (!fits || annotation->kind == DECLARED_ERROR || other) /* what it gives is not what is meant */
        v = error_value;
    if (v.kind == VALUE_TENSOR)
        stage_adopt(v.op, annotation);
    if (v.kind == VALUE_TENSOR && s->kernel->op_count == before && !v.op->bad &&
        !stage_check_type(names, ast_kid(let, 2)->range, &v.op->out, annotation))
        s->kernel->bad = true;
    bind_pattern(s, names, ast_kid(let, 0), &v, annotation->kind == DECLARED_TENSOR ? annotation : NULL);
}

/* A stage as a statement: what it gives is dropped. */
STACK_APART static void warn_discarded(analysis *s, const ast *statement, const value *v, size_t ops_before)
{
    if (v->kind != VALUE_TENSOR || v->op->index < ops_before || v->op->bad || s->kernel->bad)
        return;
    diag *d = diag_add(s->context.diags, W_DISCARDED, ast_kid(statement, 0)->name_range, "the %s of `%s` is not used",
                       tensor_kind_word(v->op->out.kind), op_kind_word(v->op->kind));
    diag_help(s->context.diags, d, "bind it: `let name = ..;`, or remove the statement");
}

static bool is_item(const ast *n)
{
    return n->kind >= AST_AXES && n->kind <= AST_ITEM_IGNORED;
}

static bool is_name(const ast *expression, const char *name)
{
    return ast_is(expression, AST_PATH) && expression->kid_count == 1 && strcmp(expression->kids[0]->text, name) == 0;
}

static bool names_variable(const ast *pattern, const char *name)
{
    for (uint32_t i = 0; i < pattern->kid_count; i++)
        if (names_variable(pattern->kids[i], name))
            return true;
    return ast_is(pattern, AST_PAT_NAME) && strcmp(pattern->text, name) == 0;
}

/* Is the variable of the block's `let` number `index`, or a tuple with it, the block's value? Then *out is the variable's type. */
STACK_APART static bool goes_to(const ast *block, uint32_t index, const declared *expected, declared *out)
{
    const ast *last = ast_statement(block->kids[block->kid_count - 1]), *given = ast_given(ast_kid(last, 0)),
              *pattern = ast_kid(ast_statement(block->kids[index]), 0);
    bool is_value = ast_is(last, AST_EXPR_STMT) && (last->text[0] == '\0' || given != ast_kid(last, 0));
    if (!expected || !is_value || !ast_is(pattern, AST_PAT_NAME))
        return false;
    bool list = ast_is(given, AST_TUPLE) || ast_is(given, AST_ARRAY), record = ast_is(given, AST_STRUCT_LITERAL) && expected->record;
    bool found = is_name(given, pattern->text);
    *out = found ? *expected : (declared){0};
    for (uint32_t i = 0; list && i < given->kid_count && !found; i++)
        if ((found = is_name(given->kids[i], pattern->text)))
            *out = part_type(expected, i, given->kid_count);
    for (uint32_t i = 0; record && i < ast_kid(expected->record, 2)->kid_count && !found; i++) {
        const ast *init = init_of(given, ast_kid(ast_kid(expected->record, 2)->kids[i], 1)->text);
        const ast *from = init ? ast_kid(init, 0) : NULL;
        if ((found = from && (ast_is(from, AST_NONE) ? strcmp(init->text, pattern->text) == 0 : is_name(from, pattern->text))))
            *out = part_type(expected, i, ast_kid(expected->record, 2)->kid_count);
    }
    for (uint32_t i = index + 1; i < block->kid_count && found; i++)
        found =
            !ast_is(ast_statement(block->kids[i]), AST_LET) || !names_variable(ast_kid(ast_statement(block->kids[i]), 0), pattern->text);
    if (!found)
        return false;
    out->is_hint = true;
    return out->kind == DECLARED_TENSOR;
}

/* The variables of a `let` that was not understood: what stood under their names before is not meant any more. */
static void bind_lost(scope *names, const ast *error)
{
    for (uint32_t i = 0; i < error->kid_count; i++)
        if (error->kids[i]->value) {
            symbol *y = scope_add(names, SYMBOL_VARIABLE, error->kids[i]->text, error->kids[i]->range);
            y->value = error_value;
            y->node = error;
        }
}

/* Was the statement's chain cut by a `;`? The rest of it is the text that was not understood after it. */
static bool is_cut(const ast *block, uint32_t index)
{
    const ast *next = index + 1 < block->kid_count ? block->kids[index + 1] : NULL;
    return next && ast_is(next, AST_ERROR) && strcmp(next->text, ".") == 0;
}

STACK_APART static void bind_pattern_lost(analysis *s, scope *names, const ast *let)
{
    declared *any = ARENA_NEW(scope_arena(names), declared);
    *any = scope_type(names, ast_kid(let, 1));
    bind_pattern(s, names, ast_kid(let, 0), &error_value, any->kind == DECLARED_TENSOR ? any : NULL);
}

names_mark names_begin(const analysis *s)
{
    arena *names = s->context.names;
    return (names_mark){names, names ? arena_mark_here(names) : (arena_mark){0}};
}

enum { MOST_LISTS = 256 }; /* in a value, of which it is looked whether they hold names */

static bool lists_hold_names(const analysis *s, const value *v, unsigned *left)
{
    if (v->kind != VALUE_LIST)
        return false;
    if (v->record && v->fields_in && scope_arena(v->fields_in) == s->context.names)
        return true;
    if (*left == 0)
        return true;
    --*left;
    bool holds = false;
    budget_enter(s->arena);
    for (size_t i = 0; i < v->count && !holds; i++)
        holds = lists_hold_names(s, &v->items[i], left);
    budget_leave(s->arena);
    return holds;
}

/* Is there a struct in the value whose parameters are read in names that are forgotten? Lists share their elements, and `v = [v, v]`
 * doubles what there is to look at: of a value of many lists it is taken to be so, which costs memory alone. */
static bool holds_names(const analysis *s, const value *v)
{
    unsigned left = MOST_LISTS;
    return s->context.names && lists_hold_names(s, v, &left);
}

void names_end(const analysis *s, names_mark before, const value *v)
{
    bool stay = s->keeps_names || (v && holds_names(s, v)) || (s->returning && holds_names(s, &s->returned)) ||
                (s->leaving != LEAVES_NOTHING && holds_names(s, &s->left_with));
    if (before.names && !stay)
        arena_rewind(before.names, before.mark);
}

/* ---- #[after(name)] ---- */

/* The operation that ends the work which made the named memory; NULL: diagnosed. */
STACK_APART static const op *pin_of(analysis *s, scope *names, const ast *n)
{
    symbol *y = n->text[0] != '\0' ? scope_find(names, VALUE_NAMES, n->text) : NULL;
    bool memory = y && y->kind == SYMBOL_VARIABLE && (y->value.kind == VALUE_TENSOR || y->value.kind == VALUE_VIEW);
    const op *o = memory ? op_memory(y->value.op) : NULL;
    if ((y && y->value.kind == VALUE_ERROR) || (o && (o->bad || op_ends_work(o))))
        return o;
    s->kernel->bad = true;
    diag *d = n->text[0] == '\0' ? diag_add(s->context.diags, E_AFTER, n->name_range, "`after` takes the name of a variable")
              : o ? diag_add(s->context.diags, E_AFTER, n->name_range, "`%s` is there from the beginning, or written in parts", n->text)
                  : diag_add(s->context.diags, E_AFTER, n->name_range, "`%s` is no tensor that was made before", n->text);
    diag_help(s->context.diags, d, "name what a copy, `commit` or `to_trf` before this statement gave: #[after(name)]");
    return NULL;
}

/* The statement after its pins; each of its copies and chains is then issued after the last of the named ones. */
typedef struct pin_list {
    const op *after;
    size_t ops_before;
} pin_list;

STACK_APART static pin_list pins_begin(analysis *s, scope *names, const ast **n)
{
    pin_list pins = {NULL, s->kernel->op_count};
    for (; ast_is(*n, AST_AFTER); *n = ast_kid(*n, 0)) {
        const op *o = pin_of(s, names, *n);
        if (o && (!pins.after || o->index > pins.after->index))
            pins.after = o;
    }
    return pins;
}

static void pins_end(analysis *s, const pin_list *pins)
{
    for (size_t i = pins->ops_before; pins->after && i < s->kernel->op_count; i++)
        if (op_ends_work(s->kernel->ops[i]))
            s->kernel->ops[i]->after = pins->after;
}

/* What follows a `return` of the same block: no call of the function comes there. */
STACK_APART static void warn_unreachable(analysis *s, const ast *block, uint32_t at)
{
    const ast *given = ast_is(block->kids[at], AST_EXPR_STMT) ? ast_kid(block->kids[at], 0) : block->kids[at];
    if (!s->returning || !ast_is(given, AST_UNSUPPORTED) || s->returned.kind == VALUE_ERROR)
        return;
    for (uint32_t i = at + 1; i < block->kid_count; i++) {
        if (is_item(block->kids[i]) || ast_is(block->kids[i], AST_ATTR))
            continue;
        diag *d = diag_add(s->context.diags, W_UNREACHABLE, block->kids[i]->range, "what follows this `return` is not checked");
        diag_note(s->context.diags, d, given->range, "the function ends here");
        diag_help(s->context.diags, d, "remove one of the two");
        return;
    }
}

value evaluate_block(analysis *s, scope *outer, const ast *block, const declared *expected)
{
    budget_enter(s->arena);
    names_mark before = names_begin(s);
    scope *inner = scope_new(&s->context, outer);
    value last = {.kind = VALUE_UNIT};
    declared later;
    index_add_scope(&s->context, block->range, inner);
    size_t unnamed = s->unnamed_count;
    collect_items(s, inner, block, 0);
    resolve_uses(s);
    read_unnamed(s, unnamed);
    for (uint32_t i = 0; i < block->kid_count && !s->stopped && !is_left(s); i++) {
        const ast *n = block->kids[i];
        pin_list pins = pins_begin(s, inner, &n);
        if (is_cut(block, i) && (ast_is(n, AST_LET) || ast_is(n, AST_EXPR_STMT))) {
            s->kernel->bad = true;
            if (ast_is(n, AST_LET))
                bind_pattern_lost(s, inner, n);
        } else if (ast_is(n, AST_LET)) {
            evaluate_let(s, inner, n, goes_to(block, i, expected, &later) ? &later : NULL);
        } else if (ast_is(n, AST_EXPR_STMT)) {
            bool is_last = i + 1 == block->kid_count, is_tail = is_last && n->text[0] == '\0';
            bool meant = is_last && !is_tail && expected && expected->kind == DECLARED_TENSOR; /* the value, but for the `;` */
            size_t ops_before = s->kernel->op_count;
            later = meant ? *expected : (declared){0};
            later.is_hint = true;
            value v = evaluate(s, inner, ast_kid(n, 0), is_tail ? expected : meant ? &later : NULL);
            if (is_tail || (is_last && v.kind == VALUE_ERROR))
                last = v;
            else if (!meant && !is_left(s))
                warn_discarded(s, n, &v, ops_before);
        } else if (ast_is(n, AST_ERROR)) {
            s->kernel->bad = true;
            last = error_value;
            bind_lost(inner, n);
        } else if (!is_item(n) && !ast_is(n, AST_ATTR)) {
            last = evaluate(s, inner, n, i + 1 == block->kid_count ? expected : NULL);
        }
        pins_end(s, &pins);
        warn_unreachable(s, block, i);
    }
    names_end(s, before, &last);
    budget_leave(s->arena);
    return s->returning ? s->returned : last;
}
