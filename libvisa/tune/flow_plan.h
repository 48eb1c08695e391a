/* How a flow is divided over clusters, slices and iterations, and all that follows from it: what goes around, waits, is brought and is
 * folded where.
 *
 * The one idea: a plan is numbers and a few choices. What they mean for a value or a step is a question that the search asks to estimate a
 * plan and the writer asks to write it, of the same functions. */
#ifndef VISA_LIBVISA_TUNE_FLOW_PLAN_H
#define VISA_LIBVISA_TUNE_FLOW_PLAN_H

#include "libvisa/tune/flow.h"
#include "target/target.h"

/* Digits of a kernel's axis, outermost first: iterations, which share it without a rest; then, of one iteration's positions and their
 * padding, those of clusters, of slices, and of the tile that a slice has. padded == cluster * slice * tile. */
typedef struct flow_split {
    int64_t loop, cluster, slice, tile, padded;
    bool is_even; /* clusters share it without a rest, too, and the padding is in each of them */
    bool stays;   /* iterations are between slices and tile: a slice has positions of all of them side by side, without padding, and results
                     stay in DM until the loop has ended */
} flow_split;

/* At most one axis has iterations. Of those that are reduced at most one is shared by slices, which are the innermost then. */
typedef struct flow_plan {
    flow_split split[FLOW_GROUPS_MAX];
    bool main_weights; /* the TRF is filled by the main context */
    bool rings;        /* slices that share what is reduced bring a part of the rows each, which go around by the Switch Engine */
    bool hands;        /* slices that share weights bring a part of them each, which go around on the way into the TRF */
    bool hands_kept;   /* and of what goes into the VRF alone, on the way there */
    bool halves;       /* weights go around by both contexts, a half each, into DM; main fills the TRF with them */
    bool twice;        /* and come in two copies, of which the first one goes around while the other one comes */
    bool ahead;        /* rows of all iterations come in one copy in front of their loop */
    int64_t brought;   /* positions of the result's outermost axis that a slice writes after a copy from DM to DM has brought them there; */
    int64_t brought_clusters; /* in so many clusters. 0: slices write what they have computed */
    bool packs;               /* rows that are no whole 8 bytes lie one after the other in front of that copy, without what pads them */
    int64_t cycles;           /* as estimated */
} flow_plan;

/* The axis that slices share, of those that are reduced; FLOW_GROUPS_MAX: there is none. */
size_t flow_shared_group(const tune_flow *f, const flow_plan *p);

/* The axis that has iterations; FLOW_GROUPS_MAX: there are none. */
size_t flow_looped_group(const flow_plan *p);

/* Do results wait for the end of the loop? Stores that share an axis of them, and positions of it that a slice stores at once. */
bool flow_results_stay(const flow_plan *p);
int64_t flow_stores_of(const flow_split *s);
int64_t flow_stored_tile(const flow_plan *p, size_t group);

/* Which operation of a step is the fold over that group; their count: none is. */
size_t flow_fold_of(const flow_step *s, size_t group);

/* Positions of an axis in a tile are a multiple of it: what is innermost in a tensor is copied in whole 8 bytes, and fetched in flits. */
int64_t flow_unit(const tune_flow *f, const target *t, size_t group);

/* The step's operations as passes, for what the plan shares over slices; lives in the arena. */
tune_epilogue flow_passes(const tune_flow *f, const flow_plan *p, const flow_step *s, arena *a);

/* Elements of a packet of a stream from DM that is folded. No two slices may count another number of lanes of a flit, so where the axis is
 * no whole flits packets are of fewer lanes, and each of them counts or does not. */
int64_t flow_folded_lanes(const tune_flow *f, const flow_plan *p, const size_t *groups, size_t count, size_t folded);

/* Elements of a packet that is multiplied in a step: a flit or two. */
int64_t flow_packet(const tune_flow *f, const target *t, size_t summed);
int64_t flow_packet_of(const tune_flow *f, const flow_plan *p, const target *t, size_t summed); /* a flit where a slice has no more */

/* Of sums whose operand streams as it lies, [summed, kept]: elements of a packet, which all leave the tree, each for a column of the
 * accumulator; and how many groups of 8 rows a packet meets, a register each. */
typedef struct flow_lying {
    int64_t packet, groups;
    int64_t cycles; /* of the Reducer: a packet comes flit by flit */
} flow_lying;
flow_lying flow_lying_of(const tune_flow *f, const flow_plan *p, const flow_value *sums);

/* Rows of the innermost kept group that a slice has; the others stand outside of them. */
int64_t flow_inner_rows(const tune_flow *f, const flow_plan *p, const flow_value *sums);

/* Are these, and the rows that slices have after they are folded, digits of what a slice has? */
bool flow_lying_nests(const tune_flow *f, const flow_plan *p, const flow_value *sums);

/* Elements of a block of the Transpose Engine, of the axis that was innermost. */
int64_t flow_turn_columns(const tune_flow *f, int64_t tile);

/* What the result is rows of. */
const flow_group *flow_row_of_result(const tune_flow *f);

/* The outermost axis of the result, and the one whose positions lie side by side in it; FLOW_GROUPS_MAX: it has one element. */
size_t flow_outer_of_result(const tune_flow *f);
size_t flow_inner_of_result(const tune_flow *f);

/* Of a result whose innermost axis is no whole words of 8 bytes: the axis in front of it, whose positions are rows of it. FLOW_GROUPS_MAX:
 * there is none, or rows are whole words. */
size_t flow_packed_group(const tune_flow *f);

/* Rows that are whole words together. */
int64_t flow_packed_rows(const tune_flow *f);

/* How that copy leaves the positions of this axis. */
flow_split flow_brought_split(const tune_flow *f, const flow_plan *p);

/* Of rows that go around: so many slices bring a part of this group each, the outermost that a slice has several positions of; or a packet
 * each, of all rows and steps that there are, no group. One slice: they do not. Rows go around that nothing else needs, where slices share
 * an axis that they have not; of these the innermost so many are a ring. */
typedef struct flow_ring {
    int64_t slices;
    size_t group;
    int64_t packet; /* elements; 0: parts of a group are brought */
} flow_ring;
flow_ring flow_ring_of(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v);

/* Groups whose slices have it in their first one alone, a bit each: what nothing needs but operations on the result after it has been
 * folded over them. */
unsigned flow_gathered_of(const tune_flow *f, const flow_plan *p, const flow_value *v);

/* Of a result whose division waits: slices that share what is folded have a part of this group each, where they have one of it; else the
 * first of them has all. One slice: so it is. */
flow_ring flow_left_of(const tune_flow *f, const flow_plan *p, const flow_value *v);

/* Of a fold of values in DM over what slices share, whose result all of them need: whole flits of a row are folded over slices first, and
 * each slice gets some rows, positions of this group, folds what is in the flits of these, and sends them around. One slice: each folds its
 * own flits first, which takes two cycles for each of them. */
flow_ring flow_flits_of(const tune_flow *f, const flow_plan *p, const flow_step *s);

/* Of weights that are handed on: slices that have parts of this group, which the weights have not, bring a part of them each. Of the
 * weights' kept axis that is the inner part of the 8 in the lanes, and the inner part of what is outside of them; of what goes into the
 * VRF, where no lanes are, the inner part of the axis in front of the innermost. `inside`: slices between two that differ in the group;
 * rings go over these, too. One slice: they are not handed on. */
typedef struct flow_handing {
    int64_t slices, lanes, groups, inside;
    size_t group;
} flow_handing;
flow_handing flow_handing_of(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v);

/* Do its halves go around by both contexts? Each slice must bring an even part. And those of each of two copies? */
bool flow_hands_halves(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v);
bool flow_comes_twice(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v);

/* What comes in front of the loop, though iterations share it: rows of a contraction that nothing else needs, and of the operands that are
 * kept in the VRF those with no other axis. */
bool flow_comes_ahead(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v);

/* Elements that a slice has of a value. */
int64_t flow_tile_of(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v);

#endif
