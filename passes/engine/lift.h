/* Lifts of a fetch: units that hold the same read each its own part. */
#ifndef VISA_PASSES_ENGINE_LIFT_H
#define VISA_PASSES_ENGINE_LIFT_H

#include "passes/pass.h"

/* Fills the digits of o->lift, in order, units outside in. False: refused. */
bool lift_derive(pass_context *p, kernel *k, op *o);

#endif
