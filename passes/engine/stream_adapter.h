/* Stream Adapter: flits into packets, packets over Rows and tiling steps. */
#ifndef VISA_PASSES_ENGINE_STREAM_ADAPTER_H
#define VISA_PASSES_ENGINE_STREAM_ADAPTER_H

#include "passes/pass.h"

void pass_stream_adapter(pass_context *p, kernel *k);

#endif
