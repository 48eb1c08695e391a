/* The rows of target/step/step.def as tables. */
#include "target/step/step.h"

#include <string.h>

static const step_op_row ops[] = {
#define STEP_OP(symbol, code, name, least, most, outputs, summary) {symbol, name, summary, least, most, outputs},
#include "target/step/step.def"
};

static const step_fn_row functions[] = {
#define STEP_FN(symbol, code, name, least, most, use, acts, summary) {symbol, name, summary, least, most, use, acts},
#include "target/step/step.def"
};

static const step_param_row params[] = {
#define STEP_PARAM(op, fn, slot, name, minimum, maximum, unit, summary) {op, fn, slot, name, unit, summary, minimum, maximum},
#include "target/step/step.def"
};

enum { OP_COUNT = sizeof ops / sizeof *ops, FN_COUNT = sizeof functions / sizeof *functions, PARAM_COUNT = sizeof params / sizeof *params };

const step_op_row *step_op_row_at(size_t index)
{
    return index < OP_COUNT ? &ops[index] : NULL;
}

const step_op_row *step_op_row_of(uint64_t code)
{
    for (size_t i = 0; i < OP_COUNT; i++)
        if (ops[i].op == code)
            return &ops[i];
    return NULL;
}

const step_fn_row *step_fn_row_at(size_t index)
{
    return index < FN_COUNT ? &functions[index] : NULL;
}

const step_fn_row *step_fn_row_of(uint64_t code)
{
    return code < FN_COUNT ? &functions[code] : NULL;
}

const step_fn_row *step_fn_row_by_name(const char *name)
{
    for (size_t i = 0; i < FN_COUNT; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

const step_param_row *step_param_row_at(size_t index)
{
    return index < PARAM_COUNT ? &params[index] : NULL;
}

bool step_param_row_is_of(const step_param_row *row, step_op op, step_fn fn)
{
    return row->op == op && (row->fn == STEP_FN_NONE || row->fn == fn);
}

bool step_fn_acts(step_fn fn, unsigned ways)
{
    const step_fn_row *row = step_fn_row_of((uint64_t)fn);
    return row && row->acts & ways;
}

bool step_fn_stacks(step_fn fn)
{
    return fn == STEP_FN_RETILE_ROWS || fn == STEP_FN_RETILE_COLS;
}
