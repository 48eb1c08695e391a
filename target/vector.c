#include "target/vector.h"

const char *vector_alu_name(vector_alu a)
{
    static const char *const names[] = {
        [VECTOR_ALU_NONE] = "none",
#define VECTOR_ALU(symbol, name) [VECTOR_ALU_##symbol] = name,
#include "target/engines.def"
    };
    return names[a];
}

const char *vector_width_name(vector_width_kind k)
{
    static const char *const names[] = {"split", "trim", "concat", "pad"};
    return names[k];
}

const char *valid_count_name(valid_count_kind k)
{
    static const char *const names[] = {"packet clipper", "time filter, slice major", "time filter, time major"};
    return names[k];
}

/* The expressions, an array for each operation. */
#define A \
    { \
        SCALAR_SOURCE, 0 \
    }
#define B \
    { \
        SCALAR_SOURCE, 1 \
    }
#define C \
    { \
        SCALAR_SOURCE, 2 \
    }
#define INT(n) \
    { \
        SCALAR_CONSTANT_I32, (n) \
    }
#define DO(op) \
    { \
        SCALAR_##op, 0 \
    }
#define STEPS(...) \
    { \
        __VA_ARGS__ \
    }
#define VECTOR_OP(symbol, code, class, type, variant, alu, operands, from, to, steps, meaning) \
    static const scalar_step symbol##_steps[] = steps;
#include "target/engines.def"

static const vector_op_row rows[] = {
#define VECTOR_OP(symbol, code, class, type, variant, alu, operands, from, to, steps, meaning) \
    {VECTOR_##symbol, \
     #symbol, \
     VECTOR_CLASS_##class, \
     type, \
     variant, \
     VECTOR_ALU_##alu, \
     operands, \
     DTYPE_##from, \
     DTYPE_##to, \
     symbol##_steps, \
     sizeof symbol##_steps / sizeof(scalar_step), \
     meaning},
#include "target/engines.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

const vector_op_row *vector_op_row_at(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

const vector_op_row *vector_op_row_of(unsigned code)
{
    for (size_t i = 0; i < ROWS; i++)
        if ((unsigned)rows[i].op == code)
            return &rows[i];
    return NULL;
}

const vector_unknown *vector_unknown_at(size_t index)
{
    static const vector_unknown unknown[] = {
#define VECTOR_UNKNOWN(type, variant) {type, variant},
#include "target/engines.def"
    };
    return index < sizeof unknown / sizeof *unknown ? &unknown[index] : NULL;
}
