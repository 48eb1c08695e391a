/* User functions of tiles, run: instruction after instruction (target/step/formula.h). */
#ifndef VISA_RUNTIME_STEP_FORMULA_H
#define VISA_RUNTIME_STEP_FORMULA_H

#include "runtime/step/function.h"

/* Of the streams' values: a new reference, rounded, or NULL with a fault. */
step_value *step_formula_map(const step_call *c, step_value *const *in, uint32_t count, step_cost *cost);
/* The next state, not rounded; `state` NULL: it begins. Takes no reference over. */
step_value *step_formula_update(const step_call *c, const step_value *state, step_value *const *in, uint32_t count, step_cost *cost);
/* What a state shows, rounded; NULL: what it begins with. */
step_value *step_formula_shown(const step_call *c, const step_value *state);

#endif
