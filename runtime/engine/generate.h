/* Generate mode of the Commit Engine: flits of one word, which no fetch brings. */
#ifndef VISA_RUNTIME_ENGINE_GENERATE_H
#define VISA_RUNTIME_ENGINE_GENERATE_H

#include "runtime/engine/stream.h"

typedef struct generate {
    dtype dtype;
    uint32_t word;
} generate;

#endif
