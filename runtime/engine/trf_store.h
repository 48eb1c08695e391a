/* SRAM-to-TRF: flits fill one Row after the other, 32 bytes each. */
#ifndef VISA_RUNTIME_ENGINE_TRF_STORE_H
#define VISA_RUNTIME_ENGINE_TRF_STORE_H

#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"

typedef struct trf_store {
    const command *command;
    trf_address mode;
    int64_t rows, base, flits_per_row, flit_bytes; /* bytes: in the TRF */
    bool widens;                                   /* 4-bit elements become 8-bit ones */
    bool signs;                                    /* elements of 5 or 9 bits: those less a zero point */
    int64_t zero_point, bits;                      /* of an element of the stream */
} trf_store;

#endif
