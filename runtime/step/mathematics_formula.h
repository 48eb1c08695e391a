/* User functions of tiles as mathematics (target/step/formula.def): each instruction over real numbers with their errors.
 *
 * The one idea: an instruction makes a tile of numbers that are known up to an error (runtime/step/real.h) of the tiles before it. Nothing
 * of runtime/step/formula.c is in it. */
#ifndef VISA_RUNTIME_STEP_MATHEMATICS_FORMULA_H
#define VISA_RUNTIME_STEP_MATHEMATICS_FORMULA_H

#include "runtime/step/mathematics.h"

/* What the function gives, not rounded; a fold's state NULL: what it begins with. NULL with m->why. */
const nested_value *mathematics_formula(mathematics *m, const nested_value *state, const nested_value *const *in, uint32_t count);
/* What a fold begins with. */
const nested_value *mathematics_formula_begin(mathematics *m);
/* Rounded, each part to its type. */
const nested_value *mathematics_formula_shown(mathematics *m, const nested_value *v);

#endif
