#include "frontend/dataflow.h"

#include <stdlib.h>
#include <string.h>

typedef struct reading {
    scope *scope;
    diag_list *diags;
    arena *arena;
    dataflow_model *model;
    size_t capacity;
    bool bad;
} reading;

static void refuse(reading *r, src_range at, const char *what, const char *help)
{
    diag_help(r->diags, diag_add(r->diags, E_DATAFLOW_ITEM, at, "%s", what), "%s", help);
    r->bad = true;
}

static void read_number(reading *r, const ast *n, int64_t *out)
{
    if (!scope_integer(r->scope, n, out))
        r->bad = true;
}

/* The name of a constant that stands there alone, for formulas; NULL: a number, or an expression. */
static const char *constant_name(reading *r, const ast *n)
{
    return ast_is(n, AST_PATH) ? ast_text(n, r->arena) : NULL;
}

/* `[1, MW]`, or one number. */
static void read_list(reading *r, const ast *n, int64_t *list, const char **names, uint32_t *rank, src_range *range)
{
    bool array = ast_is(n, AST_ARRAY);
    uint32_t count = array ? n->kid_count : 1;
    *range = n->range;
    *rank = count;
    if (count == 0 || count > DATAFLOW_RANK_MAX) {
        *rank = 0;
        refuse(r, n->range, arena_printf(r->arena, "a list of %u sizes", count),
               arena_printf(r->arena, "an interface has 1 to %d dimensions", DATAFLOW_RANK_MAX));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const ast *number = array ? n->kids[i] : n;
        read_number(r, number, &list[i]);
        names[i] = constant_name(r, number);
    }
}

/* A type of the machine, or i1 to i64 and u1 to u64, of as many bits as they say: what the machine keeps in more or fewer (i5, i9) is so
 * only in its kernels. */
static void read_type(reading *r, const ast *n, dataflow_interface *i)
{
    const ast *last = ast_is(n, AST_PATH) ? ast_last_segment(n) : NULL;
    const char *name = last ? last->text : "";
    dtype known;
    char *end;
    i->type = name;
    unsigned long bits = (name[0] == 'i' || name[0] == 'u') && name[1] >= '1' && name[1] <= '9' ? strtoul(name + 1, &end, 10) : 0;
    if (bits == 0 && dtype_by_name(name, &known))
        i->bits = dtype_row_of(known)->bits;
    else if (bits == 0 || bits > 64 || *end)
        refuse(r, n->range, arena_printf(r->arena, "`%s` is no element type", ast_text(n, r->arena)),
               "write a type of the machine (i8, bf16), or i1 to i64, u1 to u64");
    else
        i->bits = (int64_t)bits;
}

static void read_name(reading *r, const ast *n, const char **out)
{
    size_t bytes = strlen(n->text);
    if (!ast_is(n, AST_STRING) || bytes < 3 || n->text[0] != '"')
        refuse(r, n->range, "a name is a string", "write `name: \"x\"`");
    else
        *out = arena_strndup(r->arena, n->text + 1, bytes - 2);
}

/* ---- interfaces ---- */

static const char *const literals[] = {"Input", "Weight", "Output", "Config", "Control"};

typedef struct interface_field {
    const char *name;
    unsigned kinds; /* bits of dataflow_kind */
} interface_field;

enum {
    IN_INPUT = 1 << DATAFLOW_INPUT,
    IN_WEIGHT = 1 << DATAFLOW_WEIGHT,
    IN_OUTPUT = 1 << DATAFLOW_OUTPUT,
    IN_STREAMS = IN_INPUT | IN_WEIGHT | IN_OUTPUT
};

static const interface_field interface_fields[] = {
    {"name", IN_STREAMS}, {"tensor", IN_STREAMS}, {"block", IN_STREAMS}, {"dtype", IN_STREAMS}, {"i_par", IN_INPUT},
    {"w_par", IN_WEIGHT}, {"cii", IN_INPUT},      {"eii", IN_INPUT},     {"latency", IN_INPUT},
};

static const char *fields_of(reading *r, dataflow_kind kind)
{
    const char *text = "";
    for (size_t k = 0; k < sizeof interface_fields / sizeof *interface_fields; k++)
        if (interface_fields[k].kinds & 1u << kind)
            text = arena_printf(r->arena, "%s%s%s", text, *text ? ", " : "", interface_fields[k].name);
    return text;
}

/* The intervals that a kernel knows better than the formulas. */
static void read_given(reading *r, dataflow_interface *i, dataflow_interval which, const ast *n)
{
    int64_t cycles = 0;
    read_number(r, n, &cycles);
    if (!r->bad && cycles < 1)
        refuse(r, n->range, arena_printf(r->arena, "an interval of %lld cycles", (long long)cycles), "an interval is 1 cycle or more");
    i->given[which] = cycles;
    r->model->intervals[which] = dataflow_given;
}

static void read_interface_field(reading *r, dataflow_interface *i, const ast *field)
{
    const char *name = field->text;
    const ast *n = ast_kid(field, 0);
    unsigned kinds = 0;
    for (size_t k = 0; k < sizeof interface_fields / sizeof *interface_fields; k++)
        kinds |= strcmp(interface_fields[k].name, name) == 0 ? interface_fields[k].kinds : 0;
    if (!(kinds & 1u << i->kind) || ast_is(n, AST_NONE))
        refuse(r, field->name_range, arena_printf(r->arena, "`%s` is no field of %s, or has no value", name, literals[i->kind]),
               arena_printf(r->arena, "its fields are %s", fields_of(r, i->kind)));
    else if (strcmp(name, "name") == 0)
        read_name(r, n, &i->name);
    else if (strcmp(name, "tensor") == 0)
        read_list(r, n, i->tensor, i->tensor_names, &i->tensor_rank, &i->tensor_range);
    else if (strcmp(name, "block") == 0)
        read_list(r, n, i->block, i->block_names, &i->rank, &i->block_range);
    else if (strcmp(name, "dtype") == 0)
        read_type(r, n, i);
    else if (strcmp(name, "cii") == 0)
        read_given(r, i, DATAFLOW_CII, n);
    else if (strcmp(name, "eii") == 0)
        read_given(r, i, DATAFLOW_EII, n);
    else if (strcmp(name, "latency") == 0)
        read_given(r, i, DATAFLOW_LATENCY, n);
    else
        read_list(r, n, i->parallel, i->parallel_names, &i->parallel_rank, &i->parallel_range);
}

/* Config and Control have no part in the model: everything but the name is kept as it is written. */
static void read_attribute(reading *r, dataflow_interface *i, const ast *field)
{
    if (strcmp(field->text, "name") == 0) {
        read_name(r, ast_kid(field, 0), &i->name);
        return;
    }
    const char *said = ast_is(ast_kid(field, 0), AST_NONE) ? field->text : ast_text(ast_kid(field, 0), r->arena);
    i->text = arena_printf(r->arena, "%s%s%s: %s", i->text, *i->text ? ", " : "", field->text, said);
}

static void require_fields(reading *r, const dataflow_interface *i)
{
    if (!i->name)
        refuse(r, i->range, arena_printf(r->arena, "this %s has no name", dataflow_kind_name(i->kind)), "write `name: \"x\"`");
    if (i->kind <= DATAFLOW_OUTPUT && i->rank == 0)
        refuse(r, i->range, arena_printf(r->arena, "this %s has no block", dataflow_kind_name(i->kind)), "write `block: [1, N]`");
    if (i->kind < DATAFLOW_OUTPUT && (i->tensor_rank == 0 || i->bits == 0))
        refuse(r, i->range, arena_printf(r->arena, "this %s has no tensor or no dtype", dataflow_kind_name(i->kind)),
               "write `tensor: [M, N], dtype: i8`");
}

static bool is_literal(const ast *n, const char *name)
{
    const ast *last = ast_is(n, AST_STRUCT_LITERAL) ? ast_last_segment(ast_kid(n, 0)) : NULL;
    return last && strcmp(last->text, name) == 0;
}

/* A field stated twice. */
static bool said_twice(reading *r, const ast *literal, uint32_t at)
{
    for (uint32_t k = 1; k < at; k++)
        if (strcmp(literal->kids[k]->text, literal->kids[at]->text) == 0) {
            refuse(r, literal->kids[at]->name_range, arena_printf(r->arena, "`%s` is given twice", literal->kids[at]->text),
                   "take one of them away");
            return true;
        }
    return false;
}

static void read_interface(reading *r, dataflow_kind kind, const ast *n)
{
    if (!is_literal(n, literals[kind])) {
        refuse(r, n->range, arena_printf(r->arena, "expected %s { .. } here", literals[kind]),
               arena_printf(r->arena, "its fields are %s", kind > DATAFLOW_OUTPUT ? "name, and whatever you like" : fields_of(r, kind)));
        return;
    }
    bool was_bad = r->bad;
    r->bad = false;
    dataflow_interface i = {.kind = kind, .range = ast_kid(n, 0)->range, .text = ""};
    i.tensor_range = i.block_range = i.parallel_range = i.range;
    for (uint32_t k = 1; k < n->kid_count; k++) {
        if (said_twice(r, n, k))
            continue;
        if (kind > DATAFLOW_OUTPUT)
            read_attribute(r, &i, n->kids[k]);
        else
            read_interface_field(r, &i, n->kids[k]);
    }
    if (!r->bad)
        require_fields(r, &i);
    for (size_t k = 0; k < r->model->count && i.name; k++)
        if (strcmp(r->model->interfaces[k].name, i.name) == 0)
            refuse(r, n->range, arena_printf(r->arena, "two interfaces are called `%s`", i.name), "rename one of the two");
    if (!r->bad)
        ARENA_PUSH(r->arena, r->model->interfaces, r->model->count, r->capacity, i);
    r->bad = r->bad || was_bad;
}

/* ---- items ---- */

static void read_interfaces(reading *r, dataflow_kind kind, const ast *n)
{
    if (!ast_is(n, AST_ARRAY)) {
        refuse(r, n->range, "expected a list of interfaces here", arena_printf(r->arena, "write `[%s { .. }]`", literals[kind]));
        return;
    }
    for (uint32_t i = 0; i < n->kid_count; i++)
        read_interface(r, kind, n->kids[i]);
}

static void read_field(reading *r, const ast *field)
{
    static const char *const lists[] = {"inputs", "weights", "outputs", "config", "control"};
    const ast *n = ast_kid(field, 0);
    for (int k = 0; k < 5; k++)
        if (strcmp(field->text, lists[k]) == 0) {
            read_interfaces(r, (dataflow_kind)k, n);
            return;
        }
    if (strcmp(field->text, "batch") == 0) {
        read_number(r, n, &r->model->batch);
        r->model->batch_name = constant_name(r, n);
    } else if (strcmp(field->text, "clock_hz") == 0)
        read_number(r, n, &r->model->clock_hz);
    else if (strcmp(field->text, "pads") == 0 && ast_is(n, AST_BOOL))
        r->model->pads = n->value != 0;
    else
        refuse(r, field->name_range, arena_printf(r->arena, "`%s` is no field of Dataflow with such a value", field->text),
               "its fields are inputs, weights, outputs, config, control, batch, clock_hz, and pads: true or false");
}

bool dataflow_is_item(const ast *item)
{
    const ast *type = ast_kid(item, 1), *last = ast_is(item, AST_CONST) && ast_is(type, AST_TYPE_PATH) ? ast_last_segment(type) : NULL;
    return last && strcmp(last->text, "Dataflow") == 0;
}

dataflow_model *dataflow_read(scope *s, const ast *item)
{
    scope_context *c = scope_context_of(s);
    dataflow_model *m = ARENA_NEW(c->arena, dataflow_model);
    *m = (dataflow_model){.name = item->text, .range = item->name_range, .batch = 1};
    reading r = {.scope = s, .diags = c->diags, .arena = c->arena, .model = m};
    const ast *literal = ast_kid(item, 2);
    if (!is_literal(literal, "Dataflow")) {
        refuse(&r, literal->range, "expected Dataflow { .. } here",
               "its fields are inputs, weights, outputs, config, control, batch, clock_hz, pads");
        return NULL;
    }
    for (uint32_t i = 1; i < literal->kid_count; i++)
        if (!said_twice(&r, literal, i))
            read_field(&r, literal->kids[i]);
    if (r.bad)
        return NULL;
    return dataflow_evaluate(m, c->diags) ? m : NULL;
}
