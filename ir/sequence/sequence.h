/* The sequencer derivation: which (size, stride) loops walk a buffer in the order of a stream.
 *
 * The one idea: a buffer mapping stores the coordinates of each axis in digits, every digit with a stride of
 * positions; a stream term asks for a digit of an axis. Where the term's digit starts and ends on the
 * buffer's digit boundaries, the address is linear in it, piece by piece, and each piece is one loop. The
 * fetch, commit, DMA and TRF sequencers all use this one derivation ("Sequencer"; "TRF Sequencer, Sequencer
 * Configuration"); they differ in units and limits only.
 *
 * Sizes are iterations and strides are elements of the buffer; outermost loop first. */
#ifndef VISA_IR_SEQUENCE_SEQUENCE_H
#define VISA_IR_SEQUENCE_SEQUENCE_H

#include "ir/mapping/mapping.h"

/* One loop. `term` is the part of the stream that it runs through, for readers and diagnostics. */
typedef struct sequence_part {
    const mapping *term;
    int64_t size, stride;
    int64_t live;     /* SEQUENCE_COPY: values of the whole stream digit that this loop is a part of; its loops may
                       * multiply to more, the outermost being cut short */
    int64_t position; /* positions of its segment between two iterations */
    unsigned segment; /* of the stream */
    unsigned digit;   /* number of the stream digit */
    bool packet;      /* belongs to the packet, not to time */
} sequence_part;

typedef enum sequence_failure {
    SEQUENCE_OK,
    SEQUENCE_INSUFFICIENT,   /* the buffer has the axis but not this digit of it */
    SEQUENCE_INCOMPATIBLE,   /* no common factorisation of the axis */
    SEQUENCE_TWICE,          /* two stream terms count through the same digit */
    SEQUENCE_PADDING,        /* padding that no loop expresses */
    SEQUENCE_BROADCAST,      /* write: a stream term has no place in the buffer */
    SEQUENCE_UNWRITTEN,      /* write: live cells that no stream term reaches */
    SEQUENCE_OUTSIDE,        /* write: dead stream positions would land on live cells or outside */
    SEQUENCE_ENTRIES,        /* more loops than the table has entries, after merging */
    SEQUENCE_ENTRY_SIZE,     /* an iteration count that cannot be split */
    SEQUENCE_STRIDE,         /* a stride beyond its field */
    SEQUENCE_WINDOW_WRITE,   /* write: a stream term lands on a term of a sliding window */
    SEQUENCE_WINDOW_TERMS,   /* a window is read by some of its terms only, or by a term and as itself */
    SEQUENCE_WINDOW_SHARED,  /* a term of a window stands in another part of the buffer too */
    SEQUENCE_WINDOW_BORDER,  /* a window that is not held as a whole is read by its terms */
    SEQUENCE_WINDOW_MISSING, /* the stream has a window of which the buffer has only terms */
} sequence_failure;

typedef struct sequence {
    sequence_part *parts; /* outermost first, none of size 1 */
    size_t count, capacity;
    sequence_failure failure;
    const mapping *term; /* the stream term (or, unwritten, the buffer digit) at fault */
    const axis *axis;
    int64_t measure, limit; /* the two numbers of a limit that was exceeded */
} sequence;

typedef enum sequence_access {
    SEQUENCE_READ,
    SEQUENCE_WRITE,
    SEQUENCE_COPY,         /* like a read, but only live values are walked, and a digit need not be a whole number of loops */
    SEQUENCE_COPY_PADDED,  /* the same, but the innermost digit is walked with what padding buffer and stream share */
    SEQUENCE_BORDERS = 8,  /* added to one of them: outside the buffer there are zeros, so that every window offers its terms */
    SEQUENCE_NAMELESS = 4, /* added to one of them: every `term` is NULL, for who wants numbers only and wants them soon */
} sequence_access;

/* Derives the loops of the stream [time, packet] over `buffer`.
 *
 * A sliding window in the buffer offers itself and, when it is whole and all of its places are held, the digits of its terms, whose
 * addresses overlap: they are for reading only, and a stream that names one names all of them.
 *
 * Read: a stream axis that the buffer does not mention is a broadcast (stride 0); padding may be over-read.
 * Write: every live cell is written exactly once, no broadcast, dead positions only reach padding.
 * On failure seq->failure says why; the parts found so far stay for the diagnostic. */
bool sequence_derive(mapping_context *c, const mapping *buffer, const mapping *time, const mapping *packet, sequence_access access,
                     sequence *seq);

/* A buffer in several address spaces, or a stream in several segments: a mapping and the distance of its positions. */
typedef struct sequence_space {
    const mapping *mapping;
    int64_t stride;
} sequence_space;

/* The same for a buffer in several places, of which one unit holds its share: an axis that `beside` (Chip, Cluster, Slice, Row)
 * names is mentioned by the tensor, so that a digit of it which the unit does not hold is insufficient input, not a broadcast. */
bool sequence_derive_stream(mapping_context *c, const sequence_space *buffer, size_t buffer_count, const mapping *beside,
                            const mapping *time, const mapping *packet, sequence_access access, sequence *seq);

/* The derivation itself: loops of the stream segments (outermost first; strides are not used) over the parts of the
 * buffer. No segment is the packet. */
bool sequence_derive_spaces(mapping_context *c, const sequence_space *buffer, size_t buffer_count, const mapping *beside,
                            const sequence_space *stream, size_t stream_count, sequence_access access, sequence *seq);

/* Merges neighbours whose outer stride is inner size x inner stride: the walk stays the same. With
 * `across_packet` also over the boundary of time and packet. */
void sequence_merge(mapping_context *c, sequence *seq, bool across_packet);

typedef struct sequence_limits {
    int64_t entries, entry_size, stride_min, stride_max; /* strides in units of `scale` per element */
    int64_t scale;                                       /* multiplies strides before the check (bytes, bits) */
} sequence_limits;

/* Merges, and then does what can be done to fit the table: merging over the packet boundary, splitting a too large size
 * over two entries. False with a failure set when it does not fit. Afterwards at least one part is there. */
bool sequence_fit(mapping_context *c, sequence *seq, sequence_limits limits);

/* Elements that lie in one run of addresses from the innermost loop outwards ("contiguous_sram_access_size", in
 * elements). An innermost stride of 0 counts as a run; one other than 0 or 1 is a run of one element. */
int64_t sequence_run(const sequence *seq);

/* Lowest and highest element offset that the walk touches. */
void sequence_reach(const sequence *seq, int64_t *lowest, int64_t *highest);

#endif
