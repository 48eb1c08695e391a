/* How many groups a stream's tokens have (reference/step.md section 1).
 *
 * The one idea: tokens cannot tell a group without groups from a group with one empty group: a bare stop closes one empty innermost group
 * and everything around it. So where a dimension that has others inside and outside of it is 0, there is one group, and one in each
 * dimension further in. Operators that give a value for each group (accum, bufferize) or deal groups out count them so. */
#ifndef VISA_IR_STEP_GROUPS_H
#define VISA_IR_STEP_GROUPS_H

#include "ir/step/graph.h"

/* The sizes D_top .. D_b as tokens have them, inside of what is outside of D_top; fills dims, outermost first. D_0 is 0 where a group
 * stands for none. */
void step_groups_dims(step_graph *g, const step_stream *s, uint32_t top, uint32_t b, const step_expr **dims);
/* Groups of b dimensions of the whole stream; for b = 0 its values. */
const step_expr *step_groups_count(step_graph *g, const step_stream *s, uint32_t b);
/* The same, where 0 outside of D_top is 0. */
const step_expr *step_groups_inside(step_graph *g, const step_stream *s, uint32_t top, uint32_t b);
/* 1 where the group is one of the stream's own, 0 where it stands for groups that are not there: for what each group of b dimensions has.
 */
const step_expr *step_groups_real(step_graph *g, const step_stream *s, uint32_t b);
/* A size for each group of b dimensions, that is made of `of` in one of these ways: one symbol wherever groups and `of` are the same.
 * *is_new: nothing is known of it yet. */
typedef enum step_group_use { STEP_GROUP_FOLDED, STEP_GROUP_JOINED, STEP_GROUP_SHARED, STEP_GROUP_ABSORBED } step_group_use;
const step_expr *step_groups_size(step_graph *g, const step_stream *s, uint32_t b, step_group_use use, const step_expr *of, bool *is_new);
/* The same for a dimension that D_max .. D_min of the stream become. */
const step_expr *step_groups_absorbed(step_graph *g, const step_stream *s, uint32_t min, uint32_t max, const step_expr *of, bool *is_new);
/* A size that the values of `by` determine, of b dimensions inside of each: one symbol whoever asks. It is ragged, or not. */
const step_expr *step_groups_counted(step_graph *g, const step_stream *by, uint32_t b, bool is_ragged);
/* What sizes of the values of each group of b dimensions add up to, of which a group has `folded`. */
const step_expr *step_groups_joined(step_graph *g, const step_stream *s, uint32_t b, const step_expr *each, const step_expr *folded);
/* What a size is that all values of each group of b dimensions share. */
const step_expr *step_groups_shared(step_graph *g, const step_stream *s, uint32_t b, const step_expr *each);

#endif
