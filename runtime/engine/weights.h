/* TRF Sequencer: the weights of every computation step, per Row.
 *
 * The one idea: the same small part of the TRF is read again and again, so it is decoded once per slice into
 * floats that stand [read][lane][Row] (tree.h), and a step is only a pointer to one read. */
#ifndef VISA_RUNTIME_ENGINE_WEIGHTS_H
#define VISA_RUNTIME_ENGINE_WEIGHTS_H

#include "runtime/machine/machine_state.h"
#include "runtime/machine/walk.h"
#include "runtime/tensor/convert.h"

typedef struct weights {
    const command *command;
    const target *target;
    trf_address mode;
    int64_t rows, partition_bytes;
    int64_t read_bytes;    /* reg_read_size */
    unsigned read_shift;   /* its log2 */
    int64_t read_floats;   /* of one decoded read: period x Rows */
    int64_t read_elements; /* elements of one read */
    int64_t period;        /* lanes of one decoded read, repeated to at least 8 */
    walk table;            /* bytes, outermost first, as in the command */
    walk walk;             /* the same, merged */
    int64_t steps;
    bool inside;      /* every address lies in the partition */
    int64_t low_byte; /* of the decoded part of each partition */
    int64_t reads;    /* decoded reads */
    convert_lanes *decode;
    dtype operand; /* in the file */
    bool signs;    /* elements of 5 or 9 bits */
} weights;

bool weights_plan(weights *w, const target *t, const command *c, fault *f);

/* A slice's register file, of which the walk's range is there; NULL: no memory left. */
const unsigned char *weights_file(const weights *w, memory *trf);

/* The fault of a step whose read leaves the partition. */
bool weights_outside(const weights *w, int64_t step, int64_t address, fault *f);

static inline bool weights_address_inside(const weights *w, int64_t address)
{
    return address >= 0 && address <= w->partition_bytes - w->read_bytes;
}

/* Floats of the decoded part. */
size_t weights_float_count(const weights *w);
/* Decodes from the slice's register file; signs: NULL unless w->signs. */
void weights_decode(const weights *w, const unsigned char *file, const unsigned char *signs, float *to);

/* The weights of a read at `address`, period x rows floats. */
static inline const float *weights_at(const weights *w, const float *decoded, int64_t address)
{
    return decoded + ((address - w->low_byte) >> w->read_shift) * w->read_floats;
}

/* The weight packet itself, read_bytes repeated to the whole width: bytes of one Row. */
void weights_packet(const weights *w, const unsigned char *file, int64_t row, int64_t address, unsigned char *to);

#endif
