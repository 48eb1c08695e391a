#include "target/scalar.h"

static const scalar_row rows[] = {
#define NONE SCALAR_NONE
#define I32 SCALAR_I32
#define F32 SCALAR_F32
#define BOOL SCALAR_BOOL
#define FOLDS SCALAR_FOLDS
#define COMMUTES SCALAR_COMMUTES
#define ASSOCIATES SCALAR_ASSOCIATES
#define SCALAR(symbol, code, name, a, b, c, result, flags, identity, bound, ulps, text, meaning) \
    {SCALAR_##symbol, name, {a, b, c}, result, flags, identity, BOUND_##bound, ulps, text, meaning},
#include "target/scalar.def"
#undef SCALAR
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Two operations of one code would be two cases here. */
const scalar_row *scalar_row_of(unsigned code)
{
    size_t i = 0;
    switch (code) {
#define SCALAR(symbol, value, name, a, b, c, result, flags, identity, bound, ulps, text, meaning) case value:
#include "target/scalar.def"
#undef SCALAR
        while (rows[i].op != code)
            i++;
        return &rows[i];
    default: return NULL;
    }
}

const scalar_row *scalar_row_at(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

unsigned scalar_arity(const scalar_row *row)
{
    unsigned n = 0;
    while (n < SCALAR_OPERANDS && row->operands[n] != SCALAR_NONE)
        n++;
    return n;
}

const char *scalar_type_name(scalar_type t)
{
    static const char *const names[] = {"nothing", "i32", "f32", "bool"};
    return names[t];
}

scalar_type scalar_type_of(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_INT ? SCALAR_I32 : SCALAR_F32;
}

static const char *push(scalar_stack *s, scalar_type t)
{
    if (s->depth == SCALAR_MAX_DEPTH)
        return "the expression has more than 32 values at once";
    s->types[s->depth++] = t;
    return NULL;
}

const char *scalar_take(scalar_stack *s, const scalar_step *step, const dtype *sources, uint32_t source_count)
{
    if (step->op == SCALAR_SOURCE)
        return step->argument < source_count ? push(s, scalar_type_of(sources[step->argument]))
                                             : "the expression names a source that there is not";
    if (step->op == SCALAR_CONSTANT_I32 || step->op == SCALAR_CONSTANT_F32)
        return push(s, step->op == SCALAR_CONSTANT_I32 ? SCALAR_I32 : SCALAR_F32);
    const scalar_row *row = scalar_row_of(step->op);
    if (!row)
        return "the operation of the expression is not known";
    if (step->argument)
        return "an operation of the expression has an argument";
    unsigned arity = scalar_arity(row);
    if (s->depth < arity)
        return "the expression has fewer values than an operation takes";
    s->depth -= arity;
    for (unsigned i = 0; i < arity; i++)
        if (s->types[s->depth + i] != row->operands[i])
            return "the expression has a value of another type than an operation takes";
    return push(s, row->result);
}

scalar_type scalar_result(const scalar_step *steps, uint32_t count, const dtype *sources, uint32_t source_count)
{
    scalar_stack s = {.depth = 0};
    for (uint32_t i = 0; i < count; i++)
        if (scalar_take(&s, &steps[i], sources, source_count))
            return SCALAR_NONE;
    return s.depth == 1 && s.types[0] != SCALAR_BOOL ? s.types[0] : SCALAR_NONE;
}

const scalar_step scalar_relu_steps[SCALAR_RELU_STEPS] = {
    {SCALAR_SOURCE, 0}, {SCALAR_CONSTANT_F32, 0}, {SCALAR_LE_F32, 0}, {SCALAR_CONSTANT_F32, 0}, {SCALAR_SOURCE, 0}, {SCALAR_SELECT_F32, 0},
};
