/* Reducer, first half: how many neighbouring lanes the tree sums, and which lanes count. */
#ifndef VISA_PASSES_ENGINE_CONTRACT_H
#define VISA_PASSES_ENGINE_CONTRACT_H

#include "passes/pass.h"

void pass_contract(pass_context *p, kernel *k);

#endif
