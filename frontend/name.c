/* What a name in an expression stands for: a variable, a constant, which is read where it was written, or a variant. */
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "support/budget.h"
#include "support/choice.h"

bool is_of_type(analysis *s, const char *what, const ast *type, const ast *n, const value *v)
{
    static const char *const integers[] = {"usize", "isize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"};
    const ast *name = ast_last_segment(type), *length = ast_kid(type, 1);
    bool fits = v->kind == VALUE_LIST || !ast_is(type, AST_TYPE_ARRAY), array = ast_is(type, AST_TYPE_ARRAY) && v->kind == VALUE_LIST;
    fits = fits && (!name || !choice_has(integers, sizeof integers / sizeof *integers, name->text) || v->kind == VALUE_INT);
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

STACK_APART value evaluate_const(analysis *s, symbol *y, const ast *path)
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

STACK_APART value evaluate_name(analysis *s, scope *names, const ast *path, const char *name, const declared *expected)
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

STACK_APART value evaluate_variant(analysis *s, scope *names, const ast *path)
{
    const char *type = path->kids[path->kid_count - 2]->text, *name = path->kids[path->kid_count - 1]->text;
    if (strcmp(name, "SIZE") == 0) {
        int64_t size = 0;
        bool found = scope_integer(names, path, &size);
        return integer_found(s, found, size);
    }
    symbol *y = scope_find_path(names, VALUE_NAMES, path);
    if (y && y->kind == SYMBOL_CONST)
        return evaluate_const(s, y, path);
    if (y && y->kind == SYMBOL_FUNCTION)
        return refuse_function(s, path, name);
    int64_t bound = 0;
    bool fits = false;
    if (!y && scope_integer_bound(names, path, &bound, &fits))
        return integer_found(s, fits, bound);
    if (is_switch_config(path))
        return evaluate_switch_name(s, path);
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
