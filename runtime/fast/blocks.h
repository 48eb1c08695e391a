/* A contraction as blocks: the fast way through contraction and accumulator.
 *
 * The one idea: in the nest of a contraction (nest.h) only the sums of one output have an order, so its loops
 * are walked region by region: a region's packets are read together, its kept loops become vectors and blocks
 * (block.h), its reduced loops a list of steps. Outputs leave in the order of the nest.
 *
 * A contraction that is no such nest, or whose packets slide over flits (shift.h), goes step by step (contraction.h); both give the same
 * bits. */
#ifndef VISA_RUNTIME_FAST_BLOCKS_H
#define VISA_RUNTIME_FAST_BLOCKS_H

#include "runtime/fast/block.h"
#include "runtime/machine/nest.h"

/* One iteration of some loops of a region, relative to the region's first step. */
typedef struct blocks_offset {
    int64_t packet, weights; /* packets, bytes of a Row's partition */
    int64_t masks[NEST_MOST_MASKS];
    int64_t distinct; /* reduced: number of its packet among the region's distinct ones */
} blocks_offset;

typedef struct blocks_list {
    blocks_offset *items;
    int64_t count;
} blocks_list;

/* `chunk` iterations of the nest's loop `level`, with everything inside. */
typedef struct blocks_region {
    int64_t chunk, packets;
    blocks_list shared; /* kept, other packets, the same weights: what vectors are made of */
    blocks_list tiles;  /* kept, the same packets */
    blocks_list pairs;  /* kept, other packets and other weights */
    blocks_list reduced;
    int64_t *distinct; /* packet of each distinct reduced packet */
    int64_t distinct_count;
    bool in_a_row;       /* the distinct packets follow each other */
    int64_t shared_step; /* packets from one shared iteration to the next; 0: it is not the same everywhere */
    int64_t *emit;       /* kept iterations in the nest's order: the vector and in it the packet, as vector * group + packet */
    int64_t *cells;      /* and their first words among those of all vectors */
    int64_t emit_count;
} blocks_region;

/* What one set of kernels makes of the contraction. */
typedef struct blocks_form {
    const block_set *set; /* NULL: not used */
    block_expand *expand;
    int64_t words, column_words; /* used words of a packet, words of a column */
    int64_t packet_words;        /* all words of a packet */
    int64_t word_bytes;          /* before packing */
    int64_t group;
    int64_t outputs;      /* of a group: words of a column's cells */
    int64_t weight_words; /* of a packed word of the weights */
    bool in_room;         /* block_set.widens: kernels weave its packets */
    int64_t row_words;    /* block_set.weights_in_rows: from one Row's weights to the next */
    bool in_file;         /* and they are read in the register file itself */
} blocks_form;

enum { BLOCKS_FAST, BLOCKS_SAFE, BLOCKS_FORMS };

typedef struct blocks {
    const contraction *contraction;
    nest nest;
    unsigned level;
    int64_t regions_each; /* regions of one walk through loop `level` */
    blocks_region full, rest;
    blocks_form forms[BLOCKS_FORMS]; /* SAFE only where FAST may not be given any values */
    unsigned rows_log2;
    bool is_float, kept_masks;  /* masks differ between kept iterations of a region */
    int64_t boxes, box_vectors; /* sums that are kept from region to region, and the vectors of one region */
    int64_t raw_bytes;          /* from one packet to the next as it is read */
} blocks;

/* False: the contraction has to go step by step, or memory is short. */
bool blocks_plan(blocks *p, const contraction *k, const accumulate *sums, cpu_level most);
void blocks_free(blocks *p);

/* The vectors that one pair and tile of a region makes of its shared iterations, and the first iteration of a vector. The last vector ends
 * with the last iteration, and sums some again that the one before it has; only where there are fewer than a group the last one fills it.
 */
int64_t blocks_shared_vectors(const blocks_region *g, const blocks_form *f);
int64_t blocks_vector_begin(const blocks_region *g, const blocks_form *f, int64_t vector);

/* A region's packets as a form takes them. */
typedef struct blocks_packed {
    const blocks_region *region; /* NULL: none */
    int form;
    const unsigned char *from; /* where they were */
    block_word *words;
    int64_t pair, vector; /* words from pair to pair, from vector to vector */
    block_range range;
} blocks_packed;

/* The weights of a register file as forms take them. */
typedef struct blocks_weights {
    const unsigned char *file; /* NULL: none, or one that no other slice has */
    block_word *words[BLOCKS_FORMS];
    const block_word *at[BLOCKS_FORMS]; /* these, or in the file */
    bool ready[BLOCKS_FORMS];           /* they hold those of the slice */
    block_range range;                  /* block_in_range only */
} blocks_weights;

/* A slice's run; a worker uses the same buffers slice after slice. */
typedef struct blocks_run {
    unsigned char *raw;           /* room for the packets of a region, raw_bytes apart */
    const unsigned char **places; /* where they are; */
    int64_t apart;                /* not 0: so many bytes apart, only places[0] says where */
    bool stands;                  /* another slice that has the same place finds the same packets there */
    blocks_packed *kept;          /* such as were packed, by the number of the region in the slice's walk, the last one for all others */
    int64_t kept_count, region_number, packed_words;
    const unsigned char *first; /* the first packet's words of a form, */
    int64_t words_apart;        /* bytes to the next one's; 0: at `places` */
    block_word *expanded, *packed, *cells;
    block_word *before;     /* the cells of a box, to go back to (block_set.look) */
    block_word *aside;      /* sums of a vector, three of them: of one packet, as they were, and zeros */
    const block_word *data; /* of the region, packed or, in place, where it lies: */
    bool in_place;
    block_word *room; /* for sets that widen; whose packets it holds: */
    const block_word *room_data;
    int64_t room_version, room_vectors;
    int64_t data_pair, data_vector; /* words from pair to pair (packed), from vector to vector */
    int64_t data_packet;            /* bytes from one packet of a vector to the next */
    uint64_t *seen;                 /* per vector and packet of its group: columns that have a value */
    blocks_weights *weights;        /* this slice's, one of */
    blocks_weights *files;          /* such as were packed, the first one for files that no other slice has */
    int64_t file_count, most_files, weight_words[BLOCKS_FORMS];
    block_range data_range; /* block_in_range only */
    bool out_of_range;      /* block_set.look: the packets that were looked at last */
    const unsigned char *file;
    block_step *steps;
    block_word *keep, *start;
    int64_t *start_version; /* per pair and tile */
    int64_t version, step_count;
    uint64_t present;
    int64_t mask_sums[NEST_MOST_MASKS];
    const blocks_region *steps_region;
    int64_t steps_base, steps_apart; /* bytes; of packets that are taken where they lie */
    int steps_form;
    bool steps_in_place;
    int64_t counter[NEST_MOST_LOOPS]; /* of the loops around the region; the last is loop `level`, in iterations */
    const blocks_region *region;
    int64_t base; /* weights of the region's first step, bytes */
    int64_t outer_masks[NEST_MOST_MASKS];
    int64_t box, form_group;
    bool fresh, complete, done;
} blocks_run;

bool blocks_run_new(const blocks *p, blocks_run *r);
void blocks_run_free(blocks_run *r);

/* file: the slice's TRF; `shared`: other slices have the same one. What is opened is closed on the same thread. */
void blocks_open(const blocks *p, blocks_run *r, const unsigned char *file, bool shared);
void blocks_close(const blocks *p);
/* Packets that the next region takes; 0: there is none. The caller says in r->places and r->apart where they are. */
int64_t blocks_next(const blocks *p, blocks_run *r);
/* Sums the region that was read. Returns how many outputs are complete. */
int64_t blocks_sum(const blocks *p, blocks_run *r);
/* How many outputs from `number` on, at most so many, have all their words in place one after the other, `words`, Row by Row; 0: they have
 * to be taken one by one. */
int64_t blocks_beats(const blocks *p, const blocks_run *r, int64_t number, int64_t most, const stream_word **words);
/* The words of complete output `number` of the region: words[column * rows + row], and the bits of the columns
 * that have a value. */
uint64_t blocks_words(const blocks *p, const blocks_run *r, int64_t number, stream_word *words);

#endif
