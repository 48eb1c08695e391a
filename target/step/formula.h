/* A user function of tiles, as compiler, binary and simulator share it.
 *
 * The one idea: a list of instructions, each of which makes one tile of those before it; so it has no jumps, is as long to run as it is to
 * read, and sizes and FLOPs follow instruction by instruction (target/step/formula.def). */
#ifndef VISA_TARGET_STEP_FORMULA_H
#define VISA_TARGET_STEP_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum step_formula_op {
#define STEP_FORMULA(symbol, code, name, operands, rule, flops, summary) symbol = code,
#include "target/step/formula.def"
} step_formula_op;

typedef enum step_formula_rule { STEP_LEAF, STEP_EACH, STEP_ROWS, STEP_COLUMNS, STEP_PRODUCT, STEP_PRODUCT_T } step_formula_rule;

typedef struct step_formula_row {
    step_formula_op op;
    const char *name, *summary;
    unsigned operands;
    step_formula_rule rule;
    int64_t flops;
} step_formula_row;

/* NULL past the end, or for an unknown name. */
const step_formula_row *step_formula_row_of(uint64_t code);
const step_formula_row *step_formula_row_by_name(const char *name);

enum { STEP_OPERANDS = 3, STEP_LEAVES_MAX = 16, STEP_FORMULA_MAX = 1 << 12 };

typedef struct step_instruction {
    step_formula_op op;
    uint32_t operands[STEP_OPERANDS]; /* numbers of instructions before it; of FORMULA_VALUE: which value, states first */
    float number;                     /* of FORMULA_NUMBER */
} step_instruction;

/* What a part of a fold's state begins with. */
typedef struct step_initial {
    int64_t rows, columns;
    float value;
} step_initial;

typedef struct step_formula {
    const step_instruction *items;
    uint32_t count;
    uint32_t values;         /* tiles that come in with the streams: parts of pairs count one by one */
    const uint32_t *results; /* instructions; several: the result is a pair of the first and (a pair of ..) the others */
    uint32_t result_count;
    const step_initial *states; /* of a fold: as many as results; else none */
    uint32_t state_count;
} step_formula;

bool step_formula_equal(const step_formula *a, const step_formula *b);

#endif
