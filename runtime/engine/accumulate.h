/* Reducer, temporal part: partial results meet in slots and leave as beats.
 *
 * The one idea: the loop table says for every step which slot it belongs to, whether it is the slot's first
 * visit (store) or a later one (add), and whether it is the last one (emit). A column that never had a live
 * lane is absent, not zero, until it leaves. */
#ifndef VISA_RUNTIME_ENGINE_ACCUMULATE_H
#define VISA_RUNTIME_ENGINE_ACCUMULATE_H

#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"

typedef struct accumulate {
    const command *command;
    bool sequential, is_float;
    int64_t rows, columns, slots;
    int64_t lanes, beat_bytes; /* values and bytes of one beat */
    int64_t beats_each;        /* beats that one emission makes */
    unsigned count;
    accumulate_loop loops[COMMAND_MAX_ENTRIES]; /* outermost first, none of size 1 */
    stream_shape shape;                         /* beats */
} accumulate;

/* `in`: `packets` steps of `rows` Rows with at least `columns` columns. */
bool accumulate_plan(accumulate *k, const target *t, const command *c, const stream_shape *in, fault *f);

/* The beats of one emission from the sums of a slot, cells[column * rows + row]; `seen` has the bits of the
 * columns that have a value, the others become zero. */
int64_t accumulate_emit(const accumulate *k, stream_word *cells, uint64_t seen, unsigned char *beats);

#endif
