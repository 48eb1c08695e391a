/* Commit Engine: the loops that write DM, the kept bytes of a flit and those of one write. */
#ifndef VISA_PASSES_ENGINE_COMMIT_H
#define VISA_PASSES_ENGINE_COMMIT_H

#include "passes/pass.h"

void pass_commit(pass_context *p, kernel *k);

#endif
