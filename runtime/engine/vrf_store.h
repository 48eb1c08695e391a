/* Flits fill a slice's VRF, one after the other. */
#ifndef VISA_RUNTIME_ENGINE_VRF_STORE_H
#define VISA_RUNTIME_ENGINE_VRF_STORE_H

#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"

typedef struct vrf_store {
    int64_t base, bytes; /* in the VRF */
} vrf_store;

#endif
