/* A plan: what is chosen for a question, before it is text.
 *
 * The one idea: each kept axis is a number with four digits, outermost first: the iterations of a loop, the clusters, the slices, and
 * the tile that a slice has of it in one iteration. Everything else (which bytes each copy moves, how long each chain takes) follows from
 * those digits and a few choices of how operands travel. Whether a plan is legal is the compiler's to say, not this file's. */
#ifndef VISA_LIBVISA_TUNE_PLAN_H
#define VISA_LIBVISA_TUNE_PLAN_H

#include "libvisa/tune/aside.h"
#include "libvisa/tune/measured.h"
#include "target/target.h"

enum { TUNE_MOST_LOOPS = 256 }; /* iterations of a plan's loops, all together */

/* padded == loop * cluster * slice * tile, all in positions of the axis, or more where few columns are padded to be turned. Iterations
 * share an axis without a rest, and their clusters do: there padding is at the end of each cluster's part. Without a loop it is at the end
 * of the axis, or clusters have theirs each (apart). */
typedef struct tune_split {
    int64_t padded, loop, cluster, slice, tile;
    bool apart;
} tune_split;

typedef struct tune_plan {
    tune_split split[TUNE_SUM];   /* batch, row, column; the tile of a batch is 1 */
    int64_t sum_loop;             /* parts of the sum, one after the other: the outermost loop, around one of rows at most; 1: whole sums */
    int64_t sum_padded;           /* elements of a whole sum, a multiple of the packet */
    int64_t flit, packet;         /* elements: of 32 bytes, and of what is multiplied in a step, one flit or two */
    int64_t lanes;                /* columns side by side in the Rows: 1, 2, 4 or 8 */
    int64_t lanes_kept;           /* of a result's packet in DM, padded to whole 8 bytes */
    bool results_stay;            /* in DM until the loop over columns has ended: a slice has columns of all iterations side by side */
    int64_t joined;               /* or, 1: no, those of so many neighbours, which the Switch Engine brings into one slice each iteration */
    bool columns_outside;         /* the loop over columns is the outer one: weights stay while rows pass */
    bool rings;                   /* rows are spread over the slices of a column group, and go around by the Switch Engine */
    int64_t ring_rows, ring_sums; /* those slices, as digits of a tile's rows and of the sum */
    bool spreads;                 /* weights are spread over the slices of a row group, which are neighbours then, and go around on their
                                     way into the TRF */
    bool main_weights;            /* the TRF is filled by the main context: 32 bytes a cycle instead of 8, but not while it multiplies */
    int64_t gather;               /* slices that share rows of weights that lie turned, so that a copy's runs are longer; 1: none */
    int64_t aside[TUNE_SUM];      /* of an operand that lies turned, by its kept axis: it is turned once, aside, by slices that have so many
                                     positions of that axis each; 0: slices turn what they get of it */
    bool sums_wait;               /* in DM, for the operands of what is done to them: these are copied last, while others are multiplied */
    bool extras_once;             /* operands of what is done to the sums, of columns: those of all iterations come in one copy */
    int64_t handed;     /* or so many slices with the same columns get them once, and the Switch Engine hands them on; 1: each gets them */
    int64_t hand_parts; /* of those slices that bring a part of the columns each, by a named topology; 0: one has all, and bitmaps say who
                           copies it */
    int64_t column_sharers; /* slices with the same weights of which one gets a copy, and the main context hands it on; 1: each gets one */
    int64_t row_sharers;    /* neighbours with the same rows, which get them once: some bring a part of the sum each, and the Switch Engine
                               takes these around to all; 1: each gets all */
    int64_t row_parts;      /* those parts */
    bool rows_ahead;        /* those of all parts of the sum come at once, ahead of the first part */
    bool rows_by_sub;       /* around by the sub context, while main fills the TRF */
    int64_t row_copies;     /* that bring the rows of all iterations before the first is multiplied; 0: each iteration has its own */
    int64_t regroup;        /* slices that exchange rows for columns before the store, 1: none, so that a row's pieces are longer */
    bool by_sub;            /* that exchange, or the joining of columns, is the sub context's: main multiplies on */
    bool closes;            /* a slice writes whole rows one after the other, so many that they are whole blocks of HBM */
    int64_t brought;        /* rows of the result, or batches, that a slice writes after a copy from DM to DM has brought them there;
                               0: slices write what they have computed */
    int64_t brought_clusters; /* in so many clusters */
    int64_t brought_partial;  /* cycles of the blocks of HBM that they write in part */
    int64_t idle_inside;      /* of the slices that idle, as a digit inside the columns; the others are between rows and columns */
    int64_t cycles;           /* as estimated */
} tune_plan;

/* How an operand lies in HBM: is that the plan's to say? Then what a copy brings into a slice is one run; or, elements, the blocks of its
 * sums stand outside of the slices, which have one each side by side: where runs of a block are loaded faster than longer ones. 0: no. */
bool tune_is_free(const tune_question *q, tune_role role);
int64_t tune_free_block(const target *t, const tune_question *q, const tune_plan *p, tune_role role, int64_t sums);

/* The same where a sum is no whole blocks: columns of which parts of the sum are a block together; 0: there are none. */
int64_t tune_free_columns(const target *t, const tune_question *q, const tune_plan *p);

/* By the timing whose copies are fastest in runs of one block of HBM: elements of the blocks of a sum that lie outside of the positions of
 * a slice in DM, so that no run is longer. 0: a position has its whole sum. */
int64_t tune_dealt_block(const target *t, const tune_question *q, const tune_plan *p, tune_role role);

/* The same of columns whose sum is no whole blocks: so many stay together as are whole blocks, and of these a slice has every other one
 * first. 0: they are in their order. */
int64_t tune_dealt_columns(const target *t, const tune_question *q, const tune_plan *p);

/* Is there padding inside iterations, or clusters? */
bool tune_pads_inside(const tune_split *s, int64_t size);

/* Positions of a kept axis from one iteration, slice and cluster to the next. */
int64_t tune_loop_stride(const tune_plan *p, tune_role role);
int64_t tune_slice_stride(const tune_plan *p, tune_role role);
int64_t tune_cluster_stride(const tune_plan *p, tune_role role);

/* The role whose slices are neighbours: what the slices of the other one share stays within short rings. */
tune_role tune_inner_role(const tune_plan *p);

/* The parts of a slice's columns that its row group brings, as digits of the lanes, of their groups and of the sum: the outermost ones,
 * since a switch adds digits of the slices to time in one place. False: they do not share it evenly. */
typedef struct tune_spread {
    int64_t lanes, groups, sums;
} tune_spread;
bool tune_spread_of(const target *t, const tune_question *q, const tune_plan *p, tune_spread *out);

/* Does an operand of what is done to the sums come for the columns of all iterations at once? */
bool tune_comes_once(const tune_plan *p, const tune_extra *e);

/* Does it go to one of the slices that have the same columns, to be handed on? The slices of a ring in which each finds that one. */
bool tune_is_handed_on(const tune_plan *p, const tune_extra *e);
int64_t tune_handing_ring(const target *t, const tune_plan *p);

/* Where parts are brought: those of slices that hand on (the others among them have padding, which goes around, too), and slices between
 * one of them and the next. */
int64_t tune_hand_padding(const tune_plan *p);
int64_t tune_hand_inside(const target *t, const tune_plan *p);

/* Iterations whose rows one copy brings. */
int64_t tune_rows_at_once(const tune_plan *p);

/* Elements of what is multiplied in a step: one flit of the sum, or two. */
int64_t tune_packet_of(const target *t, const tune_question *q);

/* Elements of the sum in one of its parts, and those of a row that are copied together. */
int64_t tune_sum_part(const tune_plan *p);
int64_t tune_sum_of_rows(const tune_plan *p);

/* May rows of all parts of the sum come ahead? */
bool tune_can_come_ahead(const tune_question *q, const tune_plan *p);

/* Padded digits of `size` elements: the tile is what is left for a slice. */
tune_split tune_split_of(int64_t size, int64_t loop, int64_t cluster, int64_t slice, int64_t tile_multiple);

/* Is it so that slices get it lying [summed, kept], and turn it? */
bool tune_lies_turned(const tune_question *q, const tune_plan *p, tune_role role);

/* Do positions of an operand's kept axis follow each other in DM as they do in HBM, without what pads the sum to whole packets? A copy has
 * long runs then, and the fetch pads: what it reads of the next position counts for nothing. */
bool tune_is_dense(const tune_question *q, const tune_plan *p, tune_role role);

/* Operands that are turned aside, in parts of the sum: the next part is turned in front of that iteration over rows of the part at hand,
 * while others are multiplied; 0: each part in front of all of its iterations. */
int64_t tune_turns_ahead(const tune_plan *p);

/* Elements of the packets in which a pass strips the padding that rows have in DM; 0: they have none, or it cannot be stripped. */
int64_t tune_closing_packet(const target *t, const tune_question *q, const tune_plan *p);

/* Of an operand that is turned aside: what is done, a part of the sum at a time. */
aside tune_aside_of(const target *t, const tune_question *q, const tune_plan *p, tune_role role);

/* By which timing is it? What a copy takes to begin, and a pass of so many documented cycles. */
bool tune_is_measured(const tune_question *q);
int64_t tune_start_cycles(const target *t, const tune_question *q);
int64_t tune_pass_cycles(const tune_question *q, measured_pass kind, int64_t documented);

/* What follows from the digits, of which its cycles are made, too: do columns of all iterations lie side by side in a slice; results there
 * for each of those of an iteration; positions of the columns with padding, and is there padding in rows; clusters, and slices that share
 * weights which go around. */
bool tune_columns_stay(const tune_plan *p, tune_role role);
int64_t tune_iterations_that_stay(const tune_plan *p);
int64_t tune_columns_of_results(const tune_split *s);
bool tune_pads_rows(const tune_question *q, const tune_plan *p);
int64_t tune_clusters_of(const tune_plan *p);
int64_t tune_spread_slices(const tune_plan *p);

/* Does an operand lie so that what a slice gets of it is one run, without what pads a sum? */
bool tune_is_one_run(const tune_question *q, const tune_plan *p, tune_role role);

/* Elements of a sum as they lie row by row in HBM: one that is no whole words is padded in its port. */
int64_t tune_sum_in_hbm(const tune_question *q, const tune_plan *p);

/* Of a slice: elements of an operand of what is done to the sums; bytes of all of them in the VRF, with the padding that some are handed on
 * with; bytes that follow each other in DM of a column's sum. */
int64_t tune_elements_of_extra(const tune_extra *e, const tune_plan *p);
int64_t tune_vrf_of_operands(const tune_question *q, const tune_plan *p);
int64_t tune_column_bytes(const tune_question *q, const tune_plan *p);

/* May weights be handed on as p->column_sharers says, may rows be taken around as p->row_sharers and p->row_parts say? */
bool tune_can_share_columns(const target *t, const tune_question *q, const tune_plan *p);
bool tune_can_share_rows(const tune_question *q, const tune_plan *p);

/* Fills in what follows from the splits and choices; false: the machine has no such plan (its memories, its slices). The first looks at
 * what does not depend on who hands operands on, what waits, copies of rows, and how results are stored. */
bool tune_plan_begin(const target *t, const tune_question *q, tune_plan *p);
bool tune_plan_complete(const target *t, const tune_question *q, tune_plan *p);

#endif
