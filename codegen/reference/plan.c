#include "codegen/reference/plan.h"

#include <stdlib.h>

#include "codegen/reference/check.h"
#include "codegen/reference/elements_plan.h"
#include "codegen/reference/fault.h"
#include "codegen/reference/forward.h"
#include "codegen/reference/fuse.h"
#include "codegen/reference/place.h"
#include "codegen/reference/settle.h"
#include "codegen/reference/sharing.h"
#include "codegen/reference/tile.h"
#include "codegen/reference/twin.h"
#include "codegen/reference/units.h"
#include "codegen/reference/walk.h"

/* From here on an f32 sum of magnitudes is no longer good to 1%. */
#define WIDE_BOUND_TERMS (INT64_C(1) << 16)
/* Of so many products a bound is computed once more in f64: half a second. */
#define PRECISE_PRODUCTS 0x1p32

/* ---- groups of digits ---- */

/* Does some combination of the digits reach the end of the axis, and is the axis kept and summed at once?
 * Then whether a term exists depends on both, and the kept digits cannot be rows or columns of a dense
 * product. */
static bool axis_couples(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    int64_t last = 0;
    bool kept = false, summed = false;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->axis != axis || d->size == 1)
            continue;
        last += (d->size - 1) * d->weight;
        kept |= d->kept;
        summed |= !d->kept;
    }
    return kept && summed && last + einsum_largest_shift(s, axis) >= e->axes[axis].size;
}

/* Does a window cut the two digits, of which the outer counts on from the inner, apart? */
static bool windows_separate(const einsum *e, const einsum_digit *outer, const einsum_digit *inner)
{
    einsum_digit both = *inner;
    both.size *= outer->size;
    for (uint32_t i = 0; i < e->window_count; i++)
        for (uint32_t k = 0; k < e->windows[i].term_count; k++) {
            const einsum_term *t = &e->windows[i].terms[k];
            int64_t whole = walk_term_weight(t, &both);
            if (whole < 0 || (whole == 0) != (walk_term_weight(t, outer) == 0) || (whole == 0) != (walk_term_weight(t, inner) == 0))
                return true;
        }
    return false;
}

/* Are the two apart in the order of a sum? */
static bool order_separates(const reference_plan *p, const einsum_digit *outer, const einsum_digit *inner)
{
    return p->purpose.machine_order && !inner->kept &&
           (outer->lane != inner->lane * inner->size || outer->group != inner->group || outer->stride != inner->stride * inner->size);
}

/* Digits that count on from each other are one longer digit. */
static void digits_append(const reference_plan *p, plan_digits *list, const einsum_digit *d)
{
    const einsum *e = p->e;
    list->combinations *= d->size;
    einsum_digit *outer = list->count ? &list->items[list->count - 1] : NULL;
    int64_t span = d->size * d->weight;
    if (outer && outer->axis == d->axis && outer->kept == d->kept && outer->broadcast == d->broadcast && outer->weight == span &&
        !windows_separate(e, outer, d) && !order_separates(p, outer, d)) {
        outer->size *= d->size;
        outer->weight = d->weight;
        outer->lane = d->lane;
        outer->stride = d->stride;
        return;
    }
    list->items[list->count++] = *d;
}

static plan_group digit_group(const einsum *e, const einsum_statement *s, const einsum_digit *d)
{
    if (!d->kept)
        return PLAN_DEPTH;
    if (s->op != MATH_CONTRACT)
        return PLAN_BATCH;
    bool in_a = walk_varies(e, s->sources[0], EINSUM_A, d), in_b = walk_varies(e, s->sources[1], EINSUM_B, d);
    if ((in_a && in_b) || axis_couples(e, s, d->axis))
        return PLAN_BATCH;
    return in_b ? PLAN_COLUMN : PLAN_ROW;
}

/* Does a digit of the group lie side by side in the destination? */
static bool is_innermost(const einsum *e, const plan_statement *p, plan_group group)
{
    const plan_digits *digits = &p->digits[group];
    return digits->count && walk_run(e, p->of->dst, EINSUM_DST, digits) > 1;
}

static void swap_sides(plan_statement *p)
{
    plan_digits swap = p->digits[PLAN_ROW];
    p->digits[PLAN_ROW] = p->digits[PLAN_COLUMN];
    p->digits[PLAN_COLUMN] = swap;
    p->row_source = p->of->sources[1];
    p->column_source = p->of->sources[0];
    p->row_side = EINSUM_B;
    p->column_side = EINSUM_A;
}

/* Does a swap of rows and columns, of which there are too few for a vector, cost more than the lanes that they leave empty? The result's
 * elements would be stored one by one, and where depth lies side by side in the rows, these would be transposed instead of read where they
 * lie: measured, that pays for less than half a vector, or without masks for one element of it. */
static bool swap_is_dear(const einsum *e, const plan_statement *p, const plan_machine *m)
{
    enum { FEW_TERMS = 8 };
    const plan_digits *depth = &p->digits[PLAN_DEPTH];
    int64_t fewest = m->masks ? m->lanes / 2 : 2;
    bool enough = p->digits[PLAN_COLUMN].combinations >= fewest && walk_run(e, p->row_source, p->row_side, depth) > 1;
    return is_innermost(e, p, PLAN_COLUMN) && (enough || depth->combinations < FEW_TERMS);
}

/* Vectors run over the columns: what lies side by side in the destination, but the longer side when the shorter one cannot fill a
 * register. */
static void group_digits(const reference_plan *plan, plan_statement *p)
{
    const einsum *e = plan->e;
    int64_t lanes = plan->machine.lanes;
    const einsum_statement *s = p->of;
    for (int g = 0; g < PLAN_GROUP_COUNT; g++)
        p->digits[g].combinations = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].size > 1)
            digits_append(plan, &p->digits[digit_group(e, s, &s->digits[i])], &s->digits[i]);
    if (s->op != MATH_CONTRACT)
        return;
    p->row_source = s->sources[0];
    p->column_source = s->sources[1];
    p->row_side = EINSUM_A;
    p->column_side = EINSUM_B;
    int64_t rows = p->digits[PLAN_ROW].combinations, columns = p->digits[PLAN_COLUMN].combinations;
    bool fills = rows >= lanes && is_innermost(e, p, PLAN_ROW) && !is_innermost(e, p, PLAN_COLUMN);
    if (fills || (columns < lanes && rows > columns && !swap_is_dear(e, p, &plan->machine)))
        swap_sides(p);
}

/* ---- what is asked of a statement ---- */

static double tile_clocks(const plan_statement *s, const plan_tile *t)
{
    enum { VECTORS_A_CLOCK = 2, TILE_REGISTERS_GAIN = 8 };
    double clocks = 1;
    for (int g = 0; g < PLAN_GROUP_COUNT; g++)
        clocks *= (double)s->digits[g].combinations;
    if (s->of->op == MATH_CONTRACT)
        clocks /= (double)(t->lanes * t->per) * VECTORS_A_CLOCK * (plan_in_tile_registers(t) ? TILE_REGISTERS_GAIN : 1);
    return clocks;
}

double plan_clocks(const plan_statement *s)
{
    return tile_clocks(s, &s->tile);
}

double plan_bound_clocks(const reference_plan *p, const plan_statement *s)
{
    return p->exact[s->of->dst] || s->of->op == MATH_COPY ? 0 : tile_clocks(s, &s->bound_tile);
}

double plan_shared_clocks(const plan_statement *s)
{
    enum { TILE_REGISTERS_WAIT = 4 };
    return plan_clocks(s) * (plan_in_tile_registers(&s->tile) ? TILE_REGISTERS_WAIT : 1);
}

bool plan_is_shared(const reference_plan *p, const plan_statement *s)
{
    bool apart = dtype_row_of(p->e->tensors[s->of->dst].dtype)->bits >= 8; /* two parts never write one byte */
    return s->of->op == MATH_CONTRACT && !s->absorbed && apart && !s->unbounded && (s->covers || s->settled || !s->first) &&
           plan_shared_clocks(s) >= 2 * PLAN_WORTH_HELP;
}

plan_part plan_whole(const plan_statement *s, bool blocks)
{
    const plan_tile *t = blocks ? &s->block_tile : &s->tile;
    int64_t rows = t->padded_rows / t->rows, columns = t->padded_columns / t->columns;
    return (plan_part){.end = {s->digits[PLAN_BATCH].combinations, rows, columns, rows, columns}};
}

plan_group plan_longer(const plan_statement *s)
{
    return s->tile.padded_rows > s->tile.padded_columns ? PLAN_ROW : PLAN_COLUMN;
}

bool plan_is_parameter(const reference_plan *p, uint32_t tensor)
{
    return p->e->tensors[tensor].port >= 0 && (p->assigned[tensor] || p->used[tensor]);
}

bool plan_covers_axis(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    int64_t next = 1;
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = 0; i < s->digit_count && !found; i++)
            if (s->digits[i].axis == axis && s->digits[i].kept && s->digits[i].size > 1 && s->digits[i].weight == next) {
                next *= s->digits[i].size;
                found = next <= e->axes[axis].size;
            }
    }
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].axis == axis)
            return false;
    return next == e->axes[axis].size;
}

bool plan_covers_destination(const einsum *e, const einsum_statement *s)
{
    const einsum_tensor *t = &e->tensors[s->dst];
    if (s->op == MATH_SCATTER)
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (walk_window(e, t->axes[i]) || !plan_covers_axis(e, s, t->axes[i]))
            return false;
    return true;
}

/* The one place of the axis at which the statement writes all that there is along the others; -1: it does not. */
static int64_t written_place(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    const einsum_tensor *t = &e->tensors[s->dst];
    bool writes = s->op != MATH_SCATTER && !einsum_walks_axis(s, EINSUM_DST, axis);
    for (uint32_t i = 0; i < t->rank && writes; i++)
        writes = !walk_window(e, t->axes[i]) && (t->axes[i] == axis || plan_covers_axis(e, s, t->axes[i]));
    return writes ? einsum_shift_along(s, EINSUM_DST, axis) : -1;
}

/* Do this statement and those after it write the destination at one place of the axis each, at all of them, before anybody reads it? */
static bool is_completed(const reference_plan *p, uint32_t number, uint32_t axis)
{
    enum { MOST_PLACES = 64 };
    const einsum *e = p->e;
    uint32_t dst = p->statements[number].of->dst;
    int64_t size = e->axes[axis].size;
    uint64_t written = 0, all = size < MOST_PLACES ? (UINT64_C(1) << size) - 1 : 0;
    for (uint32_t i = number; i < e->statement_count && written != all; i++) {
        const plan_statement *s = &p->statements[i];
        if (s->absorbed)
            continue;
        for (unsigned k = 0; k < s->source_count; k++)
            if (s->sources[k] == dst)
                return false;
        if (s->of->dst != dst)
            continue;
        int64_t place = written_place(e, s->of, axis);
        if (place < 0)
            return false;
        written |= UINT64_C(1) << place;
    }
    return all && written == all;
}

/* The first statement of a tensor that is written at each place of an axis by one of its own. */
static void find_completed(reference_plan *p, plan_statement *s, uint32_t number)
{
    const einsum_tensor *t = &p->e->tensors[s->of->dst];
    for (uint32_t i = 0; i < t->rank && s->first && !s->absorbed && !s->covers; i++)
        s->completed = s->completed || (p->e->axes[t->axes[i]].size > 1 && is_completed(p, number, t->axes[i]));
}

/* Whole vectors of the result can be narrowed and stored. */
static bool result_is_plain(const reference_plan *plan, const plan_statement *s)
{
    const einsum *e = plan->e;
    static const plan_group kept[] = {PLAN_BATCH, PLAN_ROW, PLAN_COLUMN};
    int64_t run = walk_run(e, s->of->dst, EINSUM_DST, &s->digits[PLAN_COLUMN]);
    return dtype_row_of(e->tensors[s->of->dst].dtype)->bits >= 8 && (s->digits[PLAN_COLUMN].count > 0 || place_along_depth(plan, s)) &&
           (run == INT64_MAX || (run > 0 && run % s->tile.lanes == 0)) && !walk_is_guarded(e, s, s->of->dst, EINSUM_DST, kept, 3);
}

/* ---- all of it ---- */

/* Shifts and the beginnings of windows are a constant distance in each operand. */
static void find_bases(const einsum *e, plan_statement *p)
{
    const einsum_statement *s = p->of;
    for (unsigned side = EINSUM_A; side <= p->source_count; side++) {
        uint32_t tensor = plan_operand(p, side);
        for (uint32_t i = 0; i < e->tensors[tensor].rank; i++) {
            uint32_t axis = e->tensors[tensor].axes[i];
            if (walk_has_border(e, s, (einsum_side)side, axis))
                p->base[side] -= walk_window(e, axis)->first * walk_axis_stride(e, tensor, axis);
        }
    }
    for (uint32_t i = 0; i < s->shift_count; i++)
        p->base[s->shifts[i].side] += walk_shift(e, plan_operand(p, s->shifts[i].side), s->shifts[i].axis, s->shifts[i].offset);
}

/* What is made of exact values is exact, whatever it rounds, unless it is a sum whose order can be seen; one product that f32 holds is no
 * sum. */
static bool result_is_exact(const reference_plan *p, const plan_statement *s)
{
    bool one = s->digits[PLAN_DEPTH].combinations == 1;
    for (unsigned i = 0; i < s->source_count; i++)
        if (!p->exact[s->sources[i]])
            return false;
    if (elements_plan_approximates(s))
        return false;
    if (s->of->op == MATH_REDUCE)
        return one || scalar_row_of(s->of->fold)->flags & SCALAR_ASSOCIATES;
    return s->of->op != MATH_CONTRACT || s->integer || (s->exact_products && one);
}

/* Its rules, who uses what, and its expression. */
static char *begin_one(reference_plan *p, uint32_t number)
{
    plan_statement *s = &p->statements[number];
    s->of = &p->e->statements[number];
    char *fault = check_statement(p, number);
    if (fault)
        return fault;
    s->source_count = s->of->source_count;
    for (unsigned i = 0; i < s->source_count; i++) {
        s->sources[i] = s->of->sources[i];
        p->used[s->sources[i]] = true;
    }
    s->first = !p->assigned[s->of->dst];
    p->assigned[s->of->dst] = true;
    p->calls_functions |= math_row_of(s->of->op)->has_expression;
    return math_row_of(s->of->op)->has_expression && !elements_plan_nodes(s) ? fault_text("out of memory") : NULL;
}

/* Is more than a copy made of its sums? Those that are outputs, as they are or cast, are judged together, by the bound that holds for any
 * order (judge.h). And it takes two products in f64, too much where there are very many. */
static bool bounds_precisely(const reference_plan *p, const plan_statement *s)
{
    double products = 1;
    bool computed = s->fused;
    for (uint32_t i = 0; i < s->of->digit_count; i++)
        products *= (double)s->of->digits[i].size;
    for (uint32_t i = 0; i < p->e->statement_count; i++)
        for (unsigned k = 0; k < p->statements[i].source_count; k++)
            computed = computed ||
                       (!p->statements[i].absorbed && p->statements[i].of->op != MATH_COPY && p->statements[i].sources[k] == s->of->dst);
    return computed && !p->purpose.machine_order && !s->integer && products <= PRECISE_PRODUCTS;
}

static char *plan_one(reference_plan *p, uint32_t number)
{
    const einsum *e = p->e;
    plan_statement *s = &p->statements[number];
    char *fault = NULL;
    if (s->absorbed)
        return NULL;
    find_bases(e, s);
    group_digits(p, s);
    s->covers = plan_covers_destination(e, s->of);
    s->integer = dtype_row_of(s->of->op == MATH_CONTRACT ? s->of->accumulator : e->tensors[s->of->dst].dtype)->kind == DTYPE_KIND_INT;
    if (s->of->op != MATH_CONTRACT)
        fault = elements_plan(p, s, number);
    if (s->of->op == MATH_CONTRACT) {
        s->exact_products = e->tensors[s->sources[0]].dtype != DTYPE_F32 && e->tensors[s->sources[1]].dtype != DTYPE_F32;
        s->precise_bound = bounds_precisely(p, s);
        s->wide_bound = s->precise_bound || s->digits[PLAN_DEPTH].combinations > WIDE_BOUND_TERMS;
        if (p->purpose.machine_order && !s->integer && s->of->piece_count) {
            s->order_places = 1;
            for (uint32_t i = 0; i < s->of->piece_count; i++)
                s->order_places *= s->of->pieces[i].size;
        }
        tile_choose(p, s);
        s->stores_blocks = result_is_plain(p, s);
        if (s->stores_blocks)
            place_operands(p, s);
        fault = place_scratch(s, number);
    }
    if (fault)
        return fault;
    p->scratch_bytes = most_of(p->scratch_bytes, s->scratch.end);
    p->plain_scratch_bytes = most_of(p->plain_scratch_bytes, s->scratch.plain_end);
    p->exact[s->of->dst] = p->exact[s->of->dst] && result_is_exact(p, s);
    return NULL;
}

/* Integers that are off wrap, and an index that is off is another place. */
static bool has_no_bound(const reference_plan *p, const plan_statement *s)
{
    if (p->exact[s->of->dst])
        return false;
    for (uint32_t i = 0; i < einsum_index_count(s->of) + s->of->counted; i++)
        if (!p->exact[s->sources[i + 1]])
            return true;
    return s->of->op == MATH_CONTRACT && s->integer && !(p->exact[s->sources[0]] && p->exact[s->sources[1]]);
}

/* After all other scratch storage. */
static void place_outside(reference_plan *p)
{
    enum { BYTES = 64 };
    for (uint32_t i = 0; i < p->e->statement_count; i++)
        p->has_indices |= einsum_index_count(&p->e->statements[i]) > 0;
    if (!p->has_indices)
        return;
    p->outside = (most_of(p->scratch_bytes, p->plain_scratch_bytes) + BYTES - 1) / BYTES * BYTES;
    p->scratch_bytes = p->plain_scratch_bytes = p->outside + BYTES;
}

/* From here on places that nobody touches are left out. */
static char *pack(reference_plan *p)
{
    p->packed = malloc(sizeof *p->packed);
    p->units = units_find(p->e);
    if (!p->packed || !p->units)
        return fault_text("out of memory");
    *p->packed = *p->e;
    p->packed->units = (const int64_t *const *)p->units;
    p->e = p->packed;
    return NULL;
}

static char *plan_all(reference_plan *p)
{
    const einsum *e = p->e;
    char *fault = check_tensors(e);
    for (uint32_t i = 0; i < e->tensor_count; i++)
        p->exact[i] = true;
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        fault = begin_one(p, i);
    if (!fault && !p->purpose.whole)
        fault = pack(p);
    e = p->e;
    if (!fault && !(forward_copies(p) && fuse_statements(p)))
        fault = fault_text("out of memory");
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        fault = plan_one(p, i);
    /* What is assigned in parts is exact when all parts are, also for a reader between them. */
    for (bool changed = !fault; changed;) {
        changed = false;
        for (uint32_t i = 0; i < e->statement_count; i++) {
            uint32_t dst = p->statements[i].of->dst;
            if (!p->statements[i].absorbed && p->exact[dst] && !result_is_exact(p, &p->statements[i])) {
                p->exact[dst] = false;
                changed = true;
            }
        }
    }
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        p->statements[i].unbounded = !p->statements[i].absorbed && has_no_bound(p, &p->statements[i]);
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        find_completed(p, &p->statements[i], i);
    if (!fault && !settle_find(p))
        fault = fault_text("out of memory");
    if (!fault)
        twin_find(p);
    for (uint32_t i = 0; i < e->statement_count && !fault; i++)
        sharing_find(p, i);
    place_outside(p);
    return fault;
}

char *plan_build(const einsum *e, plan_machine machine, plan_purpose purpose, reference_plan *out)
{
    *out = (reference_plan){.e = e, .machine = machine, .purpose = purpose};
    out->statements = calloc((size_t)e->statement_count + 1, sizeof *out->statements);
    out->assigned = calloc((size_t)e->tensor_count + 1, sizeof *out->assigned);
    out->used = calloc((size_t)e->tensor_count + 1, sizeof *out->used);
    out->exact = calloc((size_t)e->tensor_count + 1, sizeof *out->exact);
    bool have = out->statements && out->assigned && out->used && out->exact;
    char *fault = have ? plan_all(out) : fault_text("out of memory");
    if (fault)
        plan_free(out);
    return fault;
}

void plan_free(reference_plan *p)
{
    for (uint32_t i = 0; p->statements && i < p->e->statement_count; i++)
        fuse_free(&p->statements[i]);
    free(p->statements);
    free(p->assigned);
    free(p->used);
    free(p->exact);
    free(p->packed);
    free(p->units);
    *p = (reference_plan){0};
}
