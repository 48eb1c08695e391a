/* Values made of others, tuples, arrays and structs: their literals, and their parts by index and by field. */
#include <stdlib.h>
#include <string.h>

#include "frontend/analysis.h"
#include "frontend/constant.h"
#include "frontend/stage.h"
#include "frontend/variant.h"
#include "support/budget.h"
#include "support/choice.h"

declared part_type(const declared *whole, size_t i, size_t count)
{
    const ast *type = !whole                                                           ? NULL
                      : whole->array                                                   ? ast_kid(whole->array, 0)
                      : whole->tuple && whole->tuple->kid_count == count               ? whole->tuple->kids[i]
                      : whole->record && ast_kid(whole->record, 2)->kid_count == count ? ast_kid(ast_kid(whole->record, 2)->kids[i], 2)
                                                                                       : NULL;
    return type ? scope_type(whole->scope, type) : (declared){0};
}

STACK_APART value evaluate_list(analysis *s, scope *names, const ast *n, const declared *expected)
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

STACK_APART value evaluate_repeat(analysis *s, scope *names, const ast *n)
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

STACK_APART value evaluate_index(analysis *s, scope *names, const ast *n)
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

/* ---- fields ---- */

enum { NAMES_OF_STEP = 8 }; /* that are looked through */

int64_t field_find(arena *a, const ast *record, const char *name)
{
    const ast *fields = ast_kid(record, 2);
    budget_spend(a, 1 + fields->kid_count / NAMES_OF_STEP);
    for (uint32_t i = 0; i < fields->kid_count; i++) {
        const char *field = ast_kid(fields->kids[i], 1)->text, *tuple = field[0] == '_' ? field + 1 : field; /* of a tuple struct */
        if (strcmp(field, name) == 0 || strcmp(tuple, name) == 0)
            return i;
    }
    return -1;
}

STACK_APART int64_t field_index(analysis *s, const ast *n, const ast *record)
{
    const ast *fields = ast_kid(record, 2);
    int64_t index = field_find(s->arena, record, n->text);
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

STACK_APART value field_of(analysis *s, const ast *n, value v)
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

STACK_APART value evaluate_field(analysis *s, scope *names, const ast *n)
{
    return field_of(s, n, evaluate(s, names, ast_kid(n, 0), NULL));
}

/* ---- struct literals ---- */

value evaluate_init(analysis *s, scope *names, const ast *init, const declared *expected)
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

const ast *init_of(const ast *literal, const char *field)
{
    const ast *given = NULL;
    for (uint32_t k = 1; k < literal->kid_count; k++)
        if (strcmp(literal->kids[k]->text, field) == 0)
            given = literal->kids[k];
    return given;
}

STACK_APART value evaluate_struct(analysis *s, scope *names, const ast *n, const declared *expected)
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
        budget_spend(s->arena, 1 + n->kid_count / NAMES_OF_STEP);
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
