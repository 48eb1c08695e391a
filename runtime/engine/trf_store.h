/* SRAM-to-TRF: flits fill one Row after the other, 32 bytes each. */
#ifndef VISA_RUNTIME_ENGINE_TRF_STORE_H
#define VISA_RUNTIME_ENGINE_TRF_STORE_H

#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"

typedef struct trf_store {
    const command *command;
    trf_address mode;
    int64_t rows, base, flits_per_row, flit_bytes;
} trf_store;

#endif
