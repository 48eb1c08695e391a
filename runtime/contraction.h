/* Stream Adapter, TRF Sequencer and the spatial part of the Reducer, step by step.
 *
 * The one idea: a packet of lanes is loaded once and used for `tiling` steps; a step pairs it with its
 * weights and makes one partial result per column and Row. */
#ifndef VISA_RUNTIME_CONTRACTION_H
#define VISA_RUNTIME_CONTRACTION_H

#include "runtime/mask.h"
#include "runtime/shift.h"
#include "runtime/stream.h"
#include "runtime/tree.h"
#include "runtime/weights.h"

/* The commands of one contraction; contract NULL: the aligned pair leaves as it is. */
typedef struct contraction_commands {
    const command *align, *shift, *trf_read, *contract, *masks; /* shift may be NULL */
    size_t mask_count;
} contraction_commands;

typedef struct contraction {
    contraction_commands commands;
    int64_t collect_flits, tiling, packets, steps;
    int64_t rows, lanes;
    int64_t packet_bytes; /* mac_width */
    int64_t data_bytes;   /* of one packet that come from flits; the others are zero */
    dtype operand;
    shift shift;
    weights weights;
    bool is_float;
    tree_shape tree;
    tree_kernel *kernel;
    mask_set masks;
    stream_shape shape; /* the contraction tensor: columns of the accumulator type */
} contraction;

bool contraction_plan(contraction *k, const target *t, const stream_shape *flits,
                      const contraction_commands *commands, arena *a, fault *f);

typedef struct contraction_run {
    float *lanes;        /* the packet */
    float *weights;      /* decoded */
    float *scratch;      /* 2 x lanes x Rows */
    stream_word *words;  /* columns x Rows: a step's result */
    unsigned char *live; /* per lane */
    const unsigned char *file;
    walk_cursor cursor;
    mask_state fixed_state; /* of every step, when the masks do not depend on it */
    uint64_t fixed_present;
    int64_t step;
} contraction_run;

/* Buffers of a run, in one allocation that serves slice after slice; free with contraction_run_free. */
bool contraction_run_new(const contraction *k, contraction_run *r);
void contraction_run_free(contraction_run *r);

bool contraction_open(const contraction *k, machine *m, int64_t unit_index, contraction_run *r, fault *f);
/* Takes the next packet: data_bytes bytes. */
void contraction_load(const contraction *k, contraction_run *r, const unsigned char *packet);
/* One step of the loaded packet: r->words[column * rows + row]; *present gets the bits of the columns that
 * have a value (the others are neutral for addition). */
bool contraction_step(const contraction *k, contraction_run *r, uint64_t *present, fault *f);

#endif
