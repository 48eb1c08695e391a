#include "frontend/variant.h"

#include <string.h>

#include "support/choice.h"

typedef struct variant_row {
    const char *type, *name;
    int64_t number;
    unsigned arguments; /* VARIANT_NAME: it stands alone */
    value_kind kind;
} variant_row;
enum { VARIANT_NAME = 100 };
#define PLAIN(type, name, number, kind) \
    { \
        type, name, number, VARIANT_NAME, kind \
    }
static const variant_row rows[] = {
    PLAIN("TrfAddress", "Full", TRF_FULL, VALUE_TRF_ADDRESS),
    PLAIN("TrfAddress", "FirstHalf", TRF_FIRST_HALF, VALUE_TRF_ADDRESS),
    PLAIN("TrfAddress", "SecondHalf", TRF_SECOND_HALF, VALUE_TRF_ADDRESS),
    PLAIN("AccumulationKind", "Interleaved", INTERLEAVED, VALUE_ACCUMULATION),
    PLAIN("AccumulationKind", "Sequential", SEQUENTIAL, VALUE_ACCUMULATION),
    PLAIN("LaneMode", "Interleaved", INTERLEAVED, VALUE_ACCUMULATION),
    PLAIN("LaneMode", "Sequential", SEQUENTIAL, VALUE_ACCUMULATION),
#define VARIANT(type, name, number) PLAIN(type, name, number, VALUE_VARIANT),
#define VARIANT_OF(type, name, number, arguments) {type, name, number, arguments, VALUE_VARIANT},
/* In April the two element types have an enumeration each. */
#define COMPARE_ARGUMENTS(constants) ((constants) ? (constants) : VARIANT_NAME)
#define VECTOR_COMPARE(symbol, code, name, constants, ...) \
    COMPARE("Cmp", name, code, constants), COMPARE("InputCmpI32", name, code, constants), COMPARE("InputCmpF32", name, code, constants),
#define COMPARE(type, name, code, constants) \
    { \
        type, name, code, COMPARE_ARGUMENTS(constants), VALUE_VARIANT \
    }
#include "target/engines.def"
};
enum { ROWS = sizeof rows / sizeof *rows, MOST_NEAR = 16, LISTED = 8 };

/* The second-last and the last name of a path. */
static bool names_of(const ast *path, const char **type, const char **name)
{
    if (path->kid_count < 2)
        return false;
    *type = path->kids[path->kid_count - 2]->text;
    *name = path->kids[path->kid_count - 1]->text;
    return true;
}

/* The n-th operation of that name; NULL: there are fewer. */
static const vector_op_row *operation(const char *type, const char *name, size_t n)
{
    const vector_op_row *row;
    for (size_t i = 0; (row = vector_op_row_at(i)); i++)
        if (row->type && strcmp(row->type, type) == 0 && strcmp(row->variant, name) == 0 && n-- == 0)
            return row;
    return NULL;
}

static const variant_row *row_of(const ast *path)
{
    const char *type, *name;
    for (size_t i = 0; names_of(path, &type, &name) && i < ROWS; i++)
        if (strcmp(rows[i].type, type) == 0 && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const char *variant_fields(arena *a, const topology_row *row)
{
    const char *text = "";
    for (size_t i = 0; row->fields[i]; i++)
        text = arena_printf(a, "%s%s%s: ..", text, i ? ", " : "{ ", row->fields[i]);
    return row->fields[0] ? arena_printf(a, "%s }", text) : text;
}

void variant_visit(arena *a, const char *type, void (*visit)(void *user, const char *name, const char *meaning), void *user)
{
    const topology_row *way;
    for (size_t i = 0; strcmp(type, "SwitchConfig") == 0 && (way = topology_row_at(i)); i++)
        visit(user, way->name, variant_fields(a, way));
    const vector_op_row *row;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].type, type) == 0)
            visit(user, rows[i].name, "");
    for (size_t i = 0; (row = vector_op_row_at(i)); i++)
        if (row->type && strcmp(row->type, type) == 0)
            visit(user, row->variant, row->meaning);
}

bool variant_takes_arguments(const ast *path, unsigned *count)
{
    const variant_row *row = row_of(path);
    const char *type, *name;
    *count = row ? row->arguments : 1;
    return row ? row->arguments != VARIANT_NAME : names_of(path, &type, &name) && operation(type, name, 1);
}

bool variant_of(const ast *path, const value *arguments, size_t count, value *out)
{
    const variant_row *row = row_of(path);
    if (row)
        *out = (value){.kind = row->kind, .variant = row->type, .number = row->number, .items = arguments, .count = count};
    return row;
}

bool variant_joins(const value *receiver, const char *method)
{
    return receiver->kind == VALUE_VARIANT && strcmp(receiver->variant, "Branched") == 0 &&
           (strcmp(method, "imm") == 0 || strcmp(method, "rf") == 0);
}

bool variant_takes_mode(const value *receiver, const char *method)
{
    return receiver->kind == VALUE_VECTOR_OP && strcmp(method, "with_mode") == 0;
}

const char *variant_typed(arena *a, const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].kind != VALUE_VARIANT && strcmp(rows[i].name, name) == 0)
            return arena_printf(a, "%s::%s", rows[i].type, name);
    return NULL;
}

const char *variant_operations(arena *a, const char *name)
{
    strbuf list;
    strbuf_init(&list, a);
    const vector_op_row *row, *last = NULL;
    for (size_t i = 0; (row = vector_op_row_at(i)); i++)
        if (row->type && strcmp(row->variant, name) == 0 && !(last && strcmp(last->type, row->type) == 0)) {
            strbuf_printf(&list, "%s`%s::%s`", last ? ", " : "", row->type, name);
            last = row;
        }
    return last ? list.text : NULL;
}

const char *variant_near_type(arena *a, const char *type, const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0 && choice_near(type, (const char *const[]){rows[i].type, NULL}))
            return arena_printf(a, "%s::%s", rows[i].type, name);
    return NULL;
}

bool variant_bare(const char *name, value *out)
{
    static const char *const types[] = {"VeRhs", "BitReq"}; /* as the prelude has it, or a `use` of the names */
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (rows[i].arguments == VARIANT_NAME && strcmp(rows[i].type, types[k]) == 0 && strcmp(rows[i].name, name) == 0) {
                *out = (value){.kind = VALUE_VARIANT, .variant = rows[i].type, .number = rows[i].number};
                return true;
            }
    return false;
}

/* One of several operations of a name: the argument is the unit that does it. */
static const char *find_by_unit(const char *type, const char *name, const value *argument, value *out)
{
    const vector_op_row *row;
    for (size_t n = 0; argument && argument->kind == VALUE_VARIANT && (row = operation(type, name, n)); n++)
        if (strcmp(argument->variant, "FpMulAlu") == 0 && argument->number == (int64_t)row->alu) {
            *out = (value){.kind = VALUE_VECTOR_OP, .number = row->op};
            return NULL;
        }
    return "say which unit multiplies: FpBinaryOp::MulF(FpMulAlu::Mul0), Mul1 or Fma";
}

bool variant_is_unknown(const ast *path)
{
    const char *type, *name;
    const vector_unknown *unknown;
    for (size_t i = 0; names_of(path, &type, &name) && (unknown = vector_unknown_at(i)); i++)
        if (strcmp(unknown->type, type) == 0 && strcmp(unknown->variant, name) == 0)
            return true;
    return false;
}

/* Bytes that both have in one piece. */
static size_t common_piece(const char *a, const char *b)
{
    size_t longest = 0;
    for (const char *x = a; *x; x++)
        for (const char *y = b; *y; y++) {
            size_t n = 0;
            while (x[n] && x[n] == y[n])
                n++;
            longest = n > longest ? n : longest;
        }
    return longest;
}

/* First those that have most in common with the name, else in their own order: `RightShiftRound` is some right shift. */
static void sort_by_piece(const char **names, size_t count, const char *name)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && common_piece(names[k], name) > common_piece(names[k - 1], name); k--) {
            const char *other = names[k];
            names[k] = names[k - 1];
            names[k - 1] = other;
        }
}

/* What is near a name of that type; NULL: no row has the type. */
static const char *help_of(arena *a, const char *type, const char *name)
{
    const char *near[MOST_NEAR + 1] = {0};
    size_t count = 0;
    const vector_op_row *row;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].type, type) == 0 && count < MOST_NEAR)
            near[count++] = rows[i].name;
    for (size_t i = 0; (row = vector_op_row_at(i)); i++)
        if (row->type && strcmp(row->type, type) == 0 && count < MOST_NEAR)
            near[count++] = row->variant;
    if (count == 0)
        return NULL;
    const char *best = choice_near(name, near);
    for (size_t i = 0; i < count && !best; i++) /* `Maximum` for `Max` */
        if (strncmp(near[i], name, strlen(near[i])) == 0 || strncmp(near[i], name, strlen(name)) == 0)
            best = near[i];
    if (best)
        return arena_printf(a, "did you mean `%s::%s`?", type, best);
    sort_by_piece(near, count, name);
    strbuf list;
    strbuf_init(&list, a);
    for (size_t i = 0; i < count && i < LISTED; i++)
        strbuf_printf(&list, "%s`%s`", i == 0 ? "" : ", ", near[i]);
    return arena_printf(a, "`%s` has %s%s", type, list.text, count > LISTED ? " and others" : "");
}

const char *variant_find(arena *a, const ast *path, const value *argument, value *out)
{
    const char *type, *name;
    *out = (value){.kind = VALUE_ERROR};
    if (!names_of(path, &type, &name))
        return NULL;
    const variant_row *found = row_of(path);
    if (found && found->arguments != VARIANT_NAME)
        return arena_printf(a, "write %s::%s(..), with %u value%s", type, name, found->arguments, found->arguments == 1 ? "" : "s");
    if (variant_of(path, NULL, 0, out))
        return NULL;
    const vector_op_row *row = operation(type, name, 0);
    if (row && operation(type, name, 1))
        return find_by_unit(type, name, argument, out);
    if (row) {
        *out = (value){.kind = VALUE_VECTOR_OP, .number = row->op};
        return NULL;
    }
    return help_of(a, type, name);
}

const char *variant_renamed(const char *type, const char *name, const char *new_type)
{
    const char *renamed = NULL;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < ROWS && strcmp(rows[i].type, type) == 0 && strcmp(rows[i].name, name) == 0; k++)
            if (strcmp(rows[k].type, new_type) == 0 && rows[k].number == rows[i].number && !renamed)
                renamed = rows[k].name;
    return renamed;
}
