#include "frontend/variant.h"

#include <string.h>

#include "support/choice.h"

static const struct {
    const char *type, *name;
    int64_t number;
} rows[] = {
#define VARIANT(type, name, number) {type, name, number},
#include "target/engines.def"
};
enum { ROWS = sizeof rows / sizeof *rows, MOST_NEAR = 16 };

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

bool variant_takes_argument(const ast *path)
{
    const char *type, *name;
    return names_of(path, &type, &name) && operation(type, name, 1);
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
    return arena_printf(a, best ? "did you mean `%s::%s`?" : "`%s` has `%s` and others", type, best ? best : near[0]);
}

const char *variant_find(arena *a, const ast *path, const value *argument, value *out)
{
    const char *type, *name;
    *out = (value){.kind = VALUE_ERROR};
    if (!names_of(path, &type, &name))
        return NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].type, type) == 0 && strcmp(rows[i].name, name) == 0) {
            *out = (value){.kind = VALUE_VARIANT, .variant = rows[i].type, .number = rows[i].number};
            return NULL;
        }
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
