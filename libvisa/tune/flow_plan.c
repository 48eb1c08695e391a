#include "libvisa/tune/flow_plan.h"

#include <string.h>

#include "support/integer.h"

enum { LANES = 8, NO_GROUP = FLOW_GROUPS_MAX };

size_t flow_shared_group(const tune_flow *f, const flow_plan *p)
{
    size_t g = 0;
    while (g < f->group_count && !(f->groups[g].is_reduced && p->split[g].slice > 1))
        g++;
    return g < f->group_count ? g : NO_GROUP;
}

size_t flow_fold_of(const flow_step *s, size_t group)
{
    size_t k = 0;
    while (k < s->count && !(s->operations[k].what >= TUNE_FOLD_ADD && s->operations[k].group == group))
        k++;
    return k;
}

flow_ring flow_ring_of(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v)
{
    flow_ring none = {1, NO_GROUP, 0};
    size_t shared = flow_shared_group(f, p), outer = 0;
    if (!p->rings || shared == NO_GROUP || !v->tensor || v->place != FLOW_DM || (v->has >> shared & 1) ||
        !(f->rows_alone >> (v - f->values) & 1))
        return none;
    while (outer + 1 < v->count && p->split[v->groups[outer]].tile == 1)
        outer++;
    int64_t slices = p->split[shared].slice;
    if (outer + 1 < v->count && p->split[v->groups[outer]].tile % slices == 0)
        return (flow_ring){slices, v->groups[outer], 0};
    size_t summed = v->groups[v->count - 1];
    int64_t packet = flow_packet_of(f, p, t, summed), packets = p->split[summed].tile / packet;
    bool is_whole = p->split[summed].tile == f->groups[summed].size;
    for (size_t i = 0; i + 1 < v->count; i++)
        packets *= p->split[v->groups[i]].tile;
    return is_whole && packets > 1 && slices % packets == 0 ? (flow_ring){packets, NO_GROUP, packet} : none;
}

flow_ring flow_left_of(const tune_flow *f, const flow_plan *p, const flow_value *v)
{
    flow_ring none = {1, NO_GROUP, 0};
    if (v != &f->values[0] && !v->is_left)
        return none;
    size_t shared = flow_shared_group(f, p), left = 0;
    unsigned all = f->values[0].has;
    bool waits = false;
    for (size_t i = 1; i < f->value_count; i++)
        if (f->values[i].is_left) {
            all &= f->values[i].has;
            waits = true;
        }
    if (!waits || shared == NO_GROUP)
        return none;
    const flow_value *out = &f->values[0];
    while (left < out->count && !((all >> out->groups[left] & 1) && p->split[out->groups[left]].tile > 1))
        left++;
    if (left == out->count || p->split[out->groups[left]].tile % p->split[shared].slice != 0)
        return none;
    return (flow_ring){p->split[shared].slice, out->groups[left], 0};
}

flow_ring flow_flits_of(const tune_flow *f, const flow_plan *p, const flow_step *s)
{
    enum { WAITS = 32 }; /* cycles until the first flits of two passes more are there */
    const flow_ring none = {1, NO_GROUP, 0};
    const tune_operation *o = &s->operations[0];
    const flow_value *from = &f->values[s->from], *to = &f->values[s->to];
    if (s->kind != FLOW_PASS || s->count != 1 || o->what < TUNE_FOLD_MAX || from->place != FLOW_DM || to->place != FLOW_VRF)
        return none;
    const flow_split *shared = &p->split[o->group];
    if (shared->slice == 1 || !from->is_packed || from->groups[from->count - 1] != o->group || shared->tile % LANES != 0 ||
        shared->padded != f->groups[o->group].size)
        return none;
    int64_t rows = 1;
    size_t left = NO_GROUP;
    for (size_t i = 0; i + 1 < from->count; i++) {
        const int64_t tile = p->split[from->groups[i]].tile;
        rows *= tile;
        left = left == NO_GROUP && tile % shared->slice == 0 ? from->groups[i] : left;
    }
    const int64_t flits = rows * (shared->tile / LANES);
    return left != NO_GROUP && 2 * flits / shared->slice + rows + WAITS < flits ? (flow_ring){shared->slice, left, 0} : none;
}

/* Is it an operand of these operations, and of no others? */
static bool follows_fold(const tune_flow *f, const flow_value *v, size_t group)
{
    bool follows = false;
    for (size_t i = 0; i < f->step_count; i++) {
        const flow_step *s = &f->steps[i];
        const size_t from = i + 1 == f->step_count ? flow_fold_of(s, group) : s->count;
        for (size_t k = 0; k < s->count; k++)
            if (tune_flow_operand(f, &s->operations[k]) == v) {
                if (k <= from)
                    return false;
                follows = true;
            }
    }
    return follows;
}

unsigned flow_gathered_of(const tune_flow *f, const flow_plan *p, const flow_value *v)
{
    const size_t shared = flow_shared_group(f, p);
    const flow_value *kept = v;
    if (shared == NO_GROUP || (v->has >> shared & 1) || flow_left_of(f, p, &f->values[0]).slices > 1)
        return 0;
    for (size_t i = 0; v->place == FLOW_DM && i < f->step_count; i++)
        if (f->steps[i].kind == FLOW_PASS && f->steps[i].from == (size_t)(v - f->values))
            kept = &f->values[f->steps[i].to];
    if (kept->place != FLOW_VRF || (kept != v && !(f->copied_alone >> (v - f->values) & 1)))
        return 0;
    return follows_fold(f, kept, shared) ? 1U << shared : 0;
}

flow_handing flow_handing_of(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v)
{
    flow_handing none = {1, 1, 1, 1, NO_GROUP}, h = none;
    if (!v->tensor || v->place != FLOW_DM || v->count < 2)
        return none;
    const bool is_kept = p->hands_kept && (f->copied_alone >> (v - f->values) & 1) && flow_gathered_of(f, p, v) == 0;
    if (!is_kept && !(p->hands && (f->filled_alone >> (v - f->values) & 1)))
        return none;
    int64_t used = 1;
    for (size_t g = 0; g < f->group_count; g++) {
        bool has = v->has >> g & 1;
        used *= p->split[g].slice;
        if (!has && (f->share[g].axis || (p->split[g].slice > 1 && h.group != NO_GROUP))) /* chips share it, or there is another one */
            return none;
        h.group = !has && p->split[g].slice > 1 ? g : h.group;
    }
    if (h.group == NO_GROUP || f->groups[h.group].is_reduced)
        return none;
    for (size_t i = 0; i + 2 < v->count; i++)
        if (p->split[v->groups[i]].tile > 1 && !is_kept)
            return none;
    const flow_split *kept = &p->split[v->groups[v->count - 2]];
    h.slices = p->split[h.group].slice;
    if (kept->tile % h.slices != 0)
        return none;
    h.groups = is_kept ? 1 : smaller(h.slices, kept->tile / LANES);
    h.lanes = h.slices / h.groups;
    if (!is_kept && (kept->tile / LANES % h.groups != 0 || LANES % h.lanes != 0))
        return none;
    h.inside = t->slices_per_cluster / used; /* idle slices, and the digits after it */
    for (size_t g = 0; g < f->group_count; g++)
        h.inside *= g > h.group || f->groups[g].is_reduced ? p->split[g].slice : 1;
    return h;
}

/* Is what each slice brings of weights so many equal parts? */
static bool hands_parts(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v, int64_t parts)
{
    const flow_handing h = flow_handing_of(f, p, t, v);
    if (!p->halves || h.slices == 1 || (f->copied_alone >> (v - f->values) & 1))
        return false;
    return h.lanes * parts <= LANES || p->split[v->groups[v->count - 2]].tile % (parts * LANES * h.groups) == 0;
}

bool flow_hands_halves(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v)
{
    return hands_parts(f, p, t, v, 2);
}

bool flow_comes_twice(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v)
{
    return p->twice && hands_parts(f, p, t, v, 4);
}

int64_t flow_folded_lanes(const tune_flow *f, const flow_plan *p, const size_t *groups, size_t count, size_t folded)
{
    const bool is_whole = f->groups[folded].size % LANES == 0 || p->split[folded].slice == 1;
    return is_whole || count == 0 || groups[count - 1] != folded ? LANES : gcd(f->groups[folded].size, LANES);
}

size_t flow_looped_group(const flow_plan *p)
{
    size_t g = 0;
    while (g < FLOW_GROUPS_MAX && p->split[g].loop <= 1)
        g++;
    return g;
}

bool flow_results_stay(const flow_plan *p)
{
    size_t g = flow_looped_group(p);
    return g < FLOW_GROUPS_MAX && p->split[g].stays;
}

int64_t flow_stores_of(const flow_split *s)
{
    return s->stays ? 1 : s->loop;
}

int64_t flow_stored_tile(const flow_plan *p, size_t group)
{
    const flow_split *s = &p->split[group];
    return s->stays ? s->loop * s->tile : s->tile;
}

bool flow_comes_ahead(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v)
{
    size_t g = flow_looped_group(p);
    if (!p->ahead || g == NO_GROUP || !(v->has >> g & 1) || !v->tensor || v->place != FLOW_DM || flow_ring_of(f, p, t, v).packet > 0)
        return false;
    return (f->rows_alone >> (v - f->values) & 1) ||
           (v->count == 1 && (f->copied_alone >> (v - f->values) & 1) && flow_handing_of(f, p, t, v).slices == 1);
}

int64_t flow_tile_of(const tune_flow *f, const flow_plan *p, const target *t, const flow_value *v)
{
    int64_t elements = flow_comes_ahead(f, p, t, v) ? p->split[flow_looped_group(p)].loop : 1;
    for (size_t i = 0; i < v->count; i++)
        elements *= p->split[v->groups[i]].tile;
    elements /= flow_ring_of(f, p, t, v).slices * flow_handing_of(f, p, t, v).slices * flow_left_of(f, p, v).slices;
    int64_t inner = (v->is_packed || v->place == FLOW_TRF) && v->count > 0 ? p->split[v->groups[v->count - 1]].tile : 1;
    if (v->place == FLOW_TRF) /* whole flits */
        return elements / inner * round_up(inner, t->flit_bytes * 8 / dtype_row_of(v->type)->bits);
    return v->tensor && v->place == FLOW_DM ? elements : elements / inner * round_up(inner, LANES);
}

const flow_group *flow_row_of_result(const tune_flow *f)
{
    return &f->groups[f->values[0].groups[f->values[0].count - 1]];
}

size_t flow_inner_of_result(const tune_flow *f)
{
    const flow_value *out = &f->values[0];
    size_t count = out->count;
    while (count > 0 && f->groups[out->groups[count - 1]].size == 1)
        count--;
    return count > 0 ? out->groups[count - 1] : NO_GROUP;
}

size_t flow_outer_of_result(const tune_flow *f)
{
    const flow_value *out = &f->values[0];
    for (size_t i = 0; i < out->count; i++)
        if (f->groups[out->groups[i]].size > 1)
            return out->groups[i];
    return NO_GROUP;
}

size_t flow_packed_group(const tune_flow *f)
{
    const flow_value *out = &f->values[0];
    if (out->count < 2 || f->groups[out->groups[out->count - 1]].size * dtype_row_of(out->type)->bits % 64 == 0)
        return NO_GROUP;
    return out->groups[out->count - 2];
}

int64_t flow_packed_rows(const tune_flow *f)
{
    return 64 / gcd(64, flow_row_of_result(f)->size * dtype_row_of(f->values[0].type)->bits);
}

flow_split flow_brought_split(const tune_flow *f, const flow_plan *p)
{
    size_t g = flow_outer_of_result(f);
    int64_t loop = flow_stores_of(&p->split[g]),
            slices = power_of_two_above(ceil_div(f->groups[g].size / loop, p->brought * p->brought_clusters));
    return (flow_split){.loop = loop,
                        .cluster = p->brought_clusters,
                        .is_even =
                            loop > 1 && p->brought_clusters > 1 && loop * p->brought_clusters * slices * p->brought != f->groups[g].size,
                        .slice = slices,
                        .tile = p->brought,
                        .padded = p->brought_clusters * slices * p->brought};
}

int64_t flow_packet(const tune_flow *f, const target *t, size_t summed)
{
    int64_t flit = t->flit_bytes * 8 / dtype_row_of(f->type)->bits;
    return f->groups[summed].size <= flit ? flit : 2 * flit;
}

int64_t flow_packet_of(const tune_flow *f, const flow_plan *p, const target *t, size_t summed)
{
    return smaller(flow_packet(f, t, summed), p->split[summed].tile);
}

int64_t flow_inner_rows(const tune_flow *f, const flow_plan *p, const flow_value *sums)
{
    const flow_value *rows = &f->values[sums->rows];
    return rows->count > 1 ? p->split[rows->groups[rows->count - 2]].tile : 1;
}

flow_lying flow_lying_of(const tune_flow *f, const flow_plan *p, const flow_value *sums)
{
    enum { COLUMNS = 32, REGISTERS = 4 };
    const flow_value *rows = &f->values[sums->rows];
    const int64_t kept = p->split[sums->groups[sums->count - 1]].tile, bits = dtype_row_of(f->type)->bits,
                  inner = flow_inner_rows(f, p, sums);
    flow_lying x = {.packet = gcd(kept, COLUMNS), .groups = gcd(REGISTERS, ceil_div(inner, LANES))};
    int64_t packets = p->split[sums->summed].tile * kept / x.packet * ceil_div(inner, LANES * x.groups);
    for (size_t i = 0; i + 2 < rows->count; i++)
        packets *= p->split[rows->groups[i]].tile;
    x.cycles = packets * larger(ceil_div(x.packet * bits, 256), x.groups);
    return x;
}

bool flow_lying_nests(const tune_flow *f, const flow_plan *p, const flow_value *sums)
{
    const flow_lying x = flow_lying_of(f, p, sums);
    const int64_t inner = flow_inner_rows(f, p, sums), left = inner / flow_left_of(f, p, &f->values[0]).slices;
    return x.packet >= LANES && (inner <= LANES || inner % LANES == 0) && (left % LANES == 0 || LANES % larger(1, left) == 0) &&
           (left < LANES || left / LANES % x.groups == 0 || x.groups % (left / LANES) == 0);
}

int64_t flow_turn_columns(const tune_flow *f, int64_t tile)
{
    return dtype_row_of(f->type)->bits == 4 || tile % 16 == 0 ? 16 : 8;
}

/* What a contraction needs of its sum's axis and of the weights' innermost one. */
static int64_t unit_of_sums(const tune_flow *f, const target *t, const flow_value *sums, size_t group)
{
    if (sums->summed == group)
        return flow_packet(f, t, group);
    return sums->is_packed && sums->groups[sums->count - 1] == group ? flow_turn_columns(f, LANES) : 1;
}

int64_t flow_unit(const tune_flow *f, const target *t, size_t group)
{
    int64_t unit = 1;
    for (size_t i = 0; i < f->value_count; i++)
        if (f->values[i].place == FLOW_STREAM)
            unit = larger(unit, unit_of_sums(f, t, &f->values[i], group));
    for (size_t i = 0; i < f->value_count; i++) {
        const flow_value *v = &f->values[i];
        bool is_inner = i == 0 ? flow_inner_of_result(f) == group : v->tensor && v->count > 0 && v->groups[v->count - 1] == group;
        if (is_inner)
            unit = larger(unit, larger(1, 64 / dtype_row_of(v->type)->bits));
    }
    for (size_t i = 0; i < f->step_count; i++) {
        const flow_step *s = &f->steps[i];
        const flow_value *from = &f->values[s->from];
        if (s->kind == FLOW_PASS && !tune_flow_is_copy(f, s) && from->is_packed && from->count > 0 &&
            from->groups[from->count - 1] == group)
            unit = larger(unit, LANES);
    }
    return unit;
}

tune_epilogue flow_passes(const tune_flow *f, const flow_plan *p, const flow_step *s, arena *a)
{
    tune_operation *operations = ARENA_ARRAY(a, tune_operation, TUNE_OPERATIONS_MAX);
    const flow_value *from = &f->values[s->from], *to = &f->values[s->to];
    memcpy(operations, s->operations, s->count * sizeof *operations);
    for (size_t i = 0; i < s->count; i++)
        if (operations[i].what >= TUNE_FOLD_ADD) {
            const flow_split *split = &p->split[operations[i].group];
            operations[i].in_slice = !operations[i].is_summed && (split->tile > 1 || split->slice == 1);
            operations[i].over_slices = split->slice > 1;
        }
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!operations[i].is_summed || operations[i].over_slices)
            operations[count++] = operations[i];
    bool real = from->type == DTYPE_F32 || target_converts(ENGINE_ID_FETCH, from->type, DTYPE_F32);
    return tune_epilogue_make(operations, count, f->meets == DTYPE_I32, real ? DTYPE_F32 : DTYPE_I32, to->type, a);
}
