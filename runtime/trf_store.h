/* SRAM-to-TRF: flits fill one Row after the other, 32 bytes each. */
#ifndef VISA_RUNTIME_TRF_STORE_H
#define VISA_RUNTIME_TRF_STORE_H

#include "runtime/machine_state.h"
#include "runtime/stream.h"

typedef struct trf_store {
    const command *command;
    trf_address mode;
    int64_t rows, base, flits_per_row, flit_bytes;
} trf_store;

bool trf_store_plan(trf_store *k, const target *t, const command *c, const stream_shape *flits, fault *f);

typedef struct trf_store_run {
    unsigned char *file; /* the slice's register file */
    int64_t flit;        /* flits stored so far */
} trf_store_run;

bool trf_store_open(const trf_store *k, machine *m, int64_t unit_index, trf_store_run *r, fault *f);
void trf_store_push(const trf_store *k, const target *t, trf_store_run *r, const unsigned char *flits,
                    int64_t count);

#endif
