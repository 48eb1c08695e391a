/* Types as written: element types, tensors, views, contexts. What a type argument leaves open is NULL. */
#include <string.h>

#include "frontend/running.h"
#include "frontend/scope.h"
#include "support/budget.h"
#include "support/choice.h"

/* "i4, i8, .." */
static const char *dtype_names(arena *a)
{
    strbuf list;
    strbuf_init(&list, a);
    for (int t = 0; t < DTYPE_COUNT; t++)
        strbuf_printf(&list, "%s%s", t ? ", " : "", dtype_row_of((dtype)t)->name);
    return list.text;
}

static bool read_dtype(scope *s, const ast *type, dtype *out, bool *infer)
{
    if (ast_is(type, AST_TYPE_INFER)) {
        *infer = true;
        return false;
    }
    const ast *last = ast_last_segment(type);
    if (last && dtype_by_name(last->text, out))
        return true;
    symbol *y = last ? scope_find_path(s, TYPE_NAMES, type) : NULL;
    if (y && y->kind == SYMBOL_ALIAS && !y->busy) {
        scope *in = scope_applied(s, y->scope, y->generics, last);
        y->busy = true;
        bool ok = scope_dtype(in, y->node, out, infer);
        y->busy = false;
        return ok;
    }
    if (!ast_is(type, AST_ERROR) && !(last && !y && scope_is_lost(s, last->text))) {
        diag *d =
            diag_add(scope_context_of(s)->diags, E_TYPE, type->range, last ? "`%s` is not an element type" : "%s is not an element type",
                     last                    ? last->text
                     : ast_is(type, AST_MAP) ? "a mapping"
                                             : "this");
        diag_help(scope_context_of(s)->diags, d, "element types: %s", dtype_names(scope_context_of(s)->arena));
    }
    return false;
}

bool scope_dtype(scope *s, const ast *type, dtype *out, bool *infer)
{
    arena *a = scope_context_of(s)->arena;
    budget_spend_at(a, type->range, 1);
    budget_enter(a);
    bool ok = read_dtype(s, type, out, infer);
    budget_leave(a);
    return ok;
}

/* Lifetimes, `{ T }` and a const parameter in front of the element type carry no meaning in a tensor type. A const parameter
 * may have the name of an axis, so its place decides: there is one argument more than the type has. */
static uint32_t first_meaningful(scope *s, const ast *args, size_t wanted)
{
    uint32_t first = 0;
    while (first < args->kid_count && (ast_is(args->kids[first], AST_LIFETIME) || ast_is(args->kids[first], AST_CONST_ARG)))
        first++;
    const ast *last = first < args->kid_count ? ast_last_segment(args->kids[first]) : NULL;
    symbol *y = last ? scope_find(s, VALUE_NAMES, last->text) : NULL;
    dtype sums;
    bool both =
        last && args->kid_count - first == wanted + 1 && dtype_by_name(last->text, &sums); /* ContractOuterTensor names its sums, too */
    bool constant = args->kid_count - first == wanted + 1 && y && (y->kind == SYMBOL_CONST_PARAM || y->kind == SYMBOL_VARIABLE);
    return constant || both ? first + 1 : first;
}

STACK_APART static declared tensor_type(scope *s, const ast *segment, tensor_kind kind)
{
    declared d = {.kind = DECLARED_TENSOR, .range = segment->range, .generic = scope_is_generic(s)};
    const ast *args = ast_kid(segment, 0);
    const component *components = tensor_kind_components(kind);
    d.tensor = (tensor){.kind = kind, .address = -1};
    for (int i = 0; i < MAPPING_COMPONENTS; i++)
        d.parts[i] = SRC_NOWHERE;
    size_t wanted = 1, got = 0;
    while (components[wanted - 1] < MAPPING_COMPONENTS)
        wanted++;
    for (uint32_t i = first_meaningful(s, args, wanted); i < args->kid_count; i++) {
        const ast *arg = args->kids[i];
        bool infer = false;
        if (got == 0) {
            d.has_dtype = scope_dtype(s, arg, &d.tensor.dtype, &infer);
            if (!d.has_dtype && !infer)
                d.kind = DECLARED_ERROR;
            if (d.has_dtype && dtype_is_staging(d.tensor.dtype) && (kind == TENSOR_HBM || kind == TENSOR_DM)) {
                const char *name = dtype_row_of(d.tensor.dtype)->name;
                diag *e = diag_add(scope_context_of(s)->diags, E_STAGING, arg->range, "no memory holds %s elements", name);
                diag_help(scope_context_of(s)->diags, e, "declare %s; fetch_zero_point_sub::<%s>(zero_point) gives a stream of %s",
                          dtype_row_of(dtype_row_of(d.tensor.dtype)->staged)->name, name, name);
                d.kind = DECLARED_ERROR;
            }
        } else if (got < wanted) {
            component c = components[got - 1];
            d.tensor.part[c] = scope_mapping(s, arg, &infer);
            d.parts[c] = arg->range;
            d.named[c] = d.tensor.part[c] ? scope_mapping_names(s, arg) : NULL;
            if (!d.tensor.part[c] && !infer)
                d.kind = DECLARED_ERROR;
        }
        got++;
    }
    if (got != wanted && args->kid_count > 0) {
        diag *e = diag_add(scope_context_of(s)->diags, E_ARGUMENTS, segment->range,
                           "%s takes an element type and %zu mappings, got %zu arguments", tensor_kind_word(kind), wanted - 1, got);
        strbuf list;
        strbuf_init(&list, scope_context_of(s)->arena);
        for (const component *p = components; *p < MAPPING_COMPONENTS; p++)
            strbuf_printf(&list, ", %s", component_word(*p));
        diag_help(scope_context_of(s)->diags, e, "they are %s<Dtype%s>", tensor_kind_word(kind), list.text);
        d.kind = DECLARED_ERROR;
    }
    return d;
}

static const char *const unsupported_types[] = {"HostTensor", "VectorBranchTensor", "StreamTensor", "VectorTensor", NULL};

static bool is_listed(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static const struct {
    const char *name;
    tensor_kind kind;
    bool mutable;
} views[] = {{"HbmTensorView", TENSOR_HBM, false},
             {"HbmTensorViewMut", TENSOR_HBM, true},
             {"DmTensorView", TENSOR_DM, false},
             {"DmTensorViewMut", TENSOR_DM, true}};
enum { VIEWS = sizeof views / sizeof *views };

const char *scope_suggest_type(const char *name)
{
    const char *known[TENSOR_KIND_COUNT + VIEWS + 3] = {"Context", "Device"};
    size_t count = 2;
    for (tensor_kind kind = 0; kind < TENSOR_KIND_COUNT; kind++)
        known[count++] = tensor_kind_name(kind);
    for (size_t i = 0; i < VIEWS; i++)
        known[count++] = views[i].name;
    return strcmp(name, "Tensor") == 0 ? NULL : choice_near(name, known); /* the library's word for all of them is no slip */
}

static void read_type(scope *s, const ast *type, declared *out);

/* Is the name how some release calls that type? Where one release is asked for, another one's name is diagnosed. */
static bool is_spelt(scope *s, const ast *name, const char *type)
{
    const scope_context *c = scope_context_of(s);
    unsigned releases = dialect_spelt(type, name->text);
    if (releases && c->one_dialect && !(releases >> c->dialect & 1)) {
        diag *d = diag_add(c->diags, E_DIALECT, name->name_range, "%s has no type `%s`", dialect_name(c->dialect), name->text);
        diag_help(c->diags, d, "in %s it is `%s`", dialect_name(c->dialect), dialect_word(c->dialect, type));
        diag_replace(c->diags, d, name->name_range, "%s", dialect_word(c->dialect, type));
    }
    return releases != 0;
}

/* A part of the context, as functions that a kernel calls take it. A const parameter in place of the name leaves open which it is. */
static bool unit_type_named(const ast *last, declared *out)
{
    static const struct {
        const char *type, *unit; /* "": whatever is written */
        unsigned units;
    } rows[] = {
        {"TuContext", "Main", IN_MAIN},   {"TuContext", "Sub", IN_SUB},   {"TuContext", "", IN_MAIN | IN_SUB},
        {"DmaContext", "Tensor", IN_DMA}, {"DmaContext", "Pcie", IN_DMA}, {"DmaContext", "", IN_DMA},
    };
    const ast *written = ast_kid(ast_kid(last, 0), 0);
    const ast *unit = ast_last_segment(ast_is(written, AST_CONST_ARG) ? ast_kid(written, 0) : written);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(last->text, rows[i].type) == 0 && (rows[i].unit[0] == '\0' || (unit && strcmp(unit->text, rows[i].unit) == 0))) {
            out->kind = DECLARED_UNIT_OF_CONTEXT;
            out->units = rows[i].units;
            return true;
        }
    return false;
}

/* HbmTensor and its kind, and views of them. False: the name is another one. */
STACK_APART static bool tensor_type_named(scope *s, const ast *last, declared *out)
{
    for (tensor_kind kind = 0; kind < TENSOR_KIND_COUNT; kind++)
        if (is_spelt(s, last, tensor_kind_name(kind))) {
            *out = tensor_type(s, last, kind);
            return true;
        }
    for (size_t i = 0; i < VIEWS; i++)
        if (strcmp(last->text, views[i].name) == 0) {
            *out = tensor_type(s, last, views[i].kind);
            out->is_view = true;
            out->mutable = views[i].mutable;
            return true;
        }
    return false;
}

/* A name that is no type of ours: diagnosed where it is a slip. */
STACK_APART static void other_type(scope *s, const ast *type, const ast *last, const symbol *y, declared *out)
{
    diag_list *diags = scope_context_of(s)->diags;
    if (is_listed(last->text, unsupported_types)) {
        diag *e = diag_add(diags, E_UNSUPPORTED, type->range, "`%s` is not supported yet", last->text);
        diag_help(diags, e, "a kernel begins and ends with tensors of HBM or DM, or with the stream of a stage, as CollectTensor");
        out->kind = DECLARED_ERROR;
    } else if (!y && out->kind == DECLARED_OTHER && scope_is_lost(s, last->text)) {
        out->kind = DECLARED_ERROR;
    } else if (!y && out->kind == DECLARED_OTHER && scope_suggest_type(last->text)) {
        diag *e = diag_add(diags, E_NAME, last->name_range, "there is no type `%s`", last->text);
        diag_help(diags, e, "did you mean `%s`?", scope_suggest_type(last->text));
        out->kind = DECLARED_ERROR;
    }
}

/* The types of numbers, which are most of all types that a call reads: no slip of anybody's, unless the file gives the name another
 * meaning. */
static bool is_number_type(const char *name)
{
    static const char *const numbers[] = {"usize", "isize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bool", NULL};
    return is_listed(name, numbers);
}

/* An alias leads to the next type: what it needs of the stack is all that a level takes. */
static void path_type(scope *s, const ast *type, declared *out)
{
    const ast *last = ast_last_segment(type);
    bool number = last && is_number_type(last->text);
    if (!last || (!number && tensor_type_named(s, last, out)))
        return;
    if (is_spelt(s, last, "Context"))
        out->kind = DECLARED_CONTEXT;
    if (strcmp(last->text, "HbmScalar") == 0 && !scope_find_path(s, TYPE_NAMES, type)) {
        out->run = run_type_of(s, last);
        out->kind = out->run ? DECLARED_SCALAR : DECLARED_ERROR;
        return;
    }
    symbol *y = scope_find_path(s, TYPE_NAMES, type);
    if (number && !y) {
        out->kind = scope_is_lost(s, last->text) ? DECLARED_ERROR : DECLARED_OTHER;
        return;
    }
    if (!y && unit_type_named(last, out))
        return;
    if (y && y->kind == SYMBOL_OWN_TYPE && y->node) {
        out->record = y->node;
        out->scope = scope_applied(s, y->scope, ast_kid(y->node, 1), last);
        return;
    }
    if (!y || y->kind != SYMBOL_ALIAS || y->busy) {
        other_type(s, type, last, y, out);
        return;
    }
    scope *in = scope_applied(s, y->scope, y->generics, last);
    y->busy = true;
    read_type(in, y->node, out);
    y->busy = false;
    out->by_name = true;
}

static void type_kind(scope *s, const ast *type, declared *out)
{
    switch (type->kind) {
    case AST_NONE:
    case AST_TYPE_INFER: out->kind = DECLARED_NONE; return;
    case AST_ERROR: out->kind = DECLARED_ERROR; return;
    case AST_TYPE_REF:
        read_type(s, ast_kid(type, 0), out);
        out->mutable = out->mutable || type->text[0] != '\0';
        return;
    case AST_TYPE_TUPLE:
        out->kind = type->kid_count == 0 ? DECLARED_UNIT : DECLARED_OTHER;
        out->tuple = type->kid_count ? type : NULL;
        out->scope = s;
        return;
    case AST_TYPE_ARRAY:
        out->array = type;
        out->scope = s;
        return;
    case AST_TYPE_PATH: path_type(s, type, out); return;
    default: return;
    }
}

static void read_type(scope *s, const ast *type, declared *out)
{
    arena *a = scope_context_of(s)->arena;
    budget_spend(a, 1);
    budget_enter(a);
    memset(out, 0, sizeof *out);
    out->kind = DECLARED_OTHER;
    out->range = type->range;
    type_kind(s, type, out);
    budget_leave(a);
}

declared scope_type(scope *s, const ast *type)
{
    declared d;
    read_type(s, type, &d);
    return d;
}

declared scope_type_of_path(scope *s, const ast *path)
{
    ast *type = ast_new(scope_context_of(s)->arena, AST_TYPE_PATH, path->range);
    for (uint32_t i = 0; i + 1 < path->kid_count; i++)
        ast_push(scope_context_of(s)->arena, type, path->kids[i]);
    return scope_type(s, type);
}
