/* Stream Adapter and TRF Sequencer over a field: how the stage after them takes many pairs at once. */
#ifndef VISA_RUNTIME_FIELD_ALIGN_H
#define VISA_RUNTIME_FIELD_ALIGN_H

#include "runtime/field/engine.h"

/* The data of a step, all its lanes; they stay until the next call. */
const field_value *field_align_lanes(field_stage_run *r, int64_t step);
/* The weights of a step: those of Row 0, of as many lanes as a read has, after which they repeat; those of
 * the next Row are *row_values after them. NULL with the fault: a read outside the partition. Steps are
 * asked for in order. */
const field_value *field_align_weights(field_stage_run *r, int64_t step, int64_t *row_values);
/* Weights of all reads, as above, those of a read after those of the one before it. NULL with the fault. */
const field_value *field_align_reads(field_stage_run *r, int64_t *row_values);
/* Which read each step takes, of the plan's first `count` steps. False: one lies outside the partition. */
bool field_align_steps(const weights *w, int64_t count, int32_t *reads);

#endif
