#include "target/step/formula.h"

#include <string.h>

static const step_formula_row rows[] = {
#define STEP_FORMULA(symbol, code, name, operands, rule, flops, summary) {symbol, name, summary, operands, rule, flops},
#include "target/step/formula.def"
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

const step_formula_row *step_formula_row_of(uint64_t code)
{
    return code < ROW_COUNT ? &rows[code] : NULL;
}

const step_formula_row *step_formula_row_by_name(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].rule != STEP_LEAF && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool same_number(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

bool step_formula_equal(const step_formula *a, const step_formula *b)
{
    if (a == b || !a || !b)
        return a == b;
    if (a->count != b->count || a->values != b->values || a->result_count != b->result_count || a->state_count != b->state_count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->items[i].op != b->items[i].op || !same_number(a->items[i].number, b->items[i].number) ||
            memcmp(a->items[i].operands, b->items[i].operands, sizeof a->items[i].operands) != 0)
            return false;
    for (uint32_t i = 0; i < a->state_count; i++)
        if (a->states[i].rows != b->states[i].rows || a->states[i].columns != b->states[i].columns ||
            !same_number(a->states[i].value, b->states[i].value))
            return false;
    return memcmp(a->results, b->results, a->result_count * sizeof *a->results) == 0;
}
