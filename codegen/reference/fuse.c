#include "codegen/reference/fuse.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/reference/walk.h"

/* ---- who may be fused ---- */

typedef struct pair {
    reference_plan *p;
    plan_statement *maker, *reader;
    unsigned slot; /* of the reader's sources */
} pair;

bool fuse_has_window(const einsum *e, uint32_t tensor)
{
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        if (walk_window(e, e->tensors[tensor].axes[i]))
            return true;
    return false;
}

/* Do all digits of the axis, or none of them, move the operand? Else the axis is walked in part only. */
bool fuse_moves_alike(const plan_statement *s, unsigned side, uint32_t axis, bool *moves)
{
    bool any = false, all = true;
    for (uint32_t i = 0; i < s->of->digit_count; i++) {
        const einsum_digit *d = &s->of->digits[i];
        if (d->axis != axis || d->size == 1)
            continue;
        any |= einsum_digit_indexes(d, (einsum_side)side);
        all &= einsum_digit_indexes(d, (einsum_side)side);
    }
    *moves = any;
    return all || !any;
}

/* No window, and every axis moves as a whole or not at all. */
static bool walks_whole_axes(const einsum *e, const plan_statement *s, unsigned side)
{
    uint32_t tensor = plan_operand(s, side);
    bool moves;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        if (!fuse_moves_alike(s, side, e->tensors[tensor].axes[i], &moves))
            return false;
    return !fuse_has_window(e, tensor);
}

static bool is_shifted(const plan_statement *s, unsigned side)
{
    for (uint32_t i = 0; i < s->of->shift_count; i++)
        if ((unsigned)s->of->shifts[i].side == side)
            return true;
    return false;
}

/* Does nobody assign what the maker reads, from the maker up to the reader itself? */
static bool sources_stay(const pair *x)
{
    for (const plan_statement *s = x->maker + 1; s <= x->reader; s++)
        for (unsigned i = 0; i < x->maker->source_count; i++)
            if (s->of->dst == x->maker->sources[i])
                return false;
    return true;
}

/* Does a place that the maker reads, of an axis, bear on what the reader walks? */
static bool is_moved(const pair *x)
{
    for (uint32_t i = 0; i < x->maker->of->shift_count; i++)
        for (uint32_t k = 0; k < x->reader->of->digit_count + x->maker->of->digit_count; k++) {
            const einsum_digit *d =
                k < x->reader->of->digit_count ? &x->reader->of->digits[k] : &x->maker->of->digits[k - x->reader->of->digit_count];
            if (d->axis == x->maker->of->shifts[i].axis && d->size > 1)
                return true;
        }
    return false;
}

static bool map_fits(const pair *x)
{
    const einsum *e = x->p->e;
    if ((x->maker->of->op != MATH_MAP && x->maker->of->op != MATH_COPY) || is_shifted(x->maker, EINSUM_DST) || is_moved(x) ||
        is_shifted(x->reader, EINSUM_A + x->slot))
        return false;
    for (unsigned i = 0; i < x->maker->source_count; i++)
        if (!walks_whole_axes(e, x->maker, EINSUM_A + i))
            return false;
    return !fuse_has_window(e, x->maker->of->dst);
}

static bool same_axes(const einsum_tensor *a, const einsum_tensor *b)
{
    for (uint32_t i = 0; i < a->rank; i++)
        if (!einsum_tensor_has(b, a->axes[i]))
            return false;
    return a->rank == b->rank;
}

/* What storing an element in the type and reading it again does; 0: nothing, or nothing that an operation does. */
static scalar_op stored_as(dtype t)
{
    switch (t) {
    case DTYPE_I4: return SCALAR_WRAP_I4;
    case DTYPE_I8: return SCALAR_WRAP_I8;
    case DTYPE_I16: return SCALAR_WRAP_I16;
    case DTYPE_F8E4M3: return SCALAR_ROUND_F8E4M3;
    case DTYPE_F8E5M2: return SCALAR_ROUND_F8E5M2;
    case DTYPE_BF16: return SCALAR_ROUND_BF16;
    default: return (scalar_op)0;
    }
}

/* Can a value stay in a register that would be stored and read again? */
static bool is_sayable(dtype t)
{
    return t == DTYPE_I32 || t == DTYPE_F32 || stored_as(t);
}

/* The reader walks every element of its result, and with it that element of the sums. */
static bool contraction_fits(const pair *x)
{
    const einsum *e = x->p->e;
    const plan_statement *m = x->maker, *r = x->reader;
    bool moves;
    if (m->of->op != MATH_CONTRACT || r->of->op != MATH_MAP || r->of->shift_count || !plan_covers_destination(e, r->of) ||
        !same_axes(&e->tensors[m->of->dst], &e->tensors[r->of->dst]) || fuse_has_window(e, r->of->dst))
        return false;
    for (uint32_t i = 0; i < e->tensors[m->of->dst].rank; i++)
        if (!fuse_moves_alike(r, EINSUM_A + x->slot, e->tensors[m->of->dst].axes[i], &moves) ||
            (!moves && e->axes[e->tensors[m->of->dst].axes[i]].size > 1))
            return false;
    for (uint32_t i = 0; i < m->of->digit_count; i++)
        if (!m->of->digits[i].kept && m->of->digits[i].size > 1 && einsum_tensor_has(&e->tensors[r->of->dst], m->of->digits[i].axis))
            return false;
    for (unsigned i = 0; i < r->source_count; i++)
        if (!walks_whole_axes(e, r, EINSUM_A + i))
            return false;
    return true;
}

/* ---- nodes ---- */

/* Nodes of a statement that has no expression of its own: the element that it copies, or the sum. */
static plan_node lone_node(const plan_statement *s)
{
    return (plan_node){.op = s->of->op == MATH_CONTRACT ? PLAN_SUM : SCALAR_SOURCE};
}

/* The maker's nodes, its value as it would be stored, then the reader's, in which that stands for the source.
 * `renumber`: new numbers of the sources of each. */
static bool join_nodes(const pair *x, const unsigned *of_maker, const unsigned *of_reader, plan_node **out, unsigned *count)
{
    const plan_statement *m = x->maker, *r = x->reader;
    plan_node lone = lone_node(m);
    const plan_node *made = m->node_count ? m->nodes : &lone;
    unsigned made_count = m->node_count ? m->node_count : 1, n = 0;
    plan_node *nodes = calloc((size_t)made_count + r->node_count + 1, sizeof *nodes);
    uint16_t *place = calloc((size_t)r->node_count + 1, sizeof *place);
    for (unsigned i = 0; nodes && i < made_count; i++) {
        nodes[n] = made[i];
        nodes[n].argument = made[i].op == SCALAR_SOURCE ? of_maker[made[i].argument] : made[i].argument;
        n++;
    }
    scalar_op store = stored_as(x->p->e->tensors[m->of->dst].dtype);
    if (nodes && store) {
        nodes[n] = (plan_node){.op = store, .operands = {(uint16_t)(n - 1)}};
        n++;
    }
    uint16_t value = (uint16_t)(n - 1);
    for (unsigned i = 0; nodes && place && i < r->node_count; i++) {
        const plan_node *from = &r->nodes[i];
        place[i] = (uint16_t)n;
        if (from->op == SCALAR_SOURCE && from->argument == x->slot) {
            place[i] = value;
            continue;
        }
        nodes[n] = *from;
        nodes[n].argument = from->op == SCALAR_SOURCE ? of_reader[from->argument] : from->argument;
        for (unsigned k = 0; k < SCALAR_OPERANDS; k++)
            nodes[n].operands[k] = place[from->operands[k]];
        n++;
    }
    if (nodes && place && place[r->node_count - 1] == value) { /* the reader's value is the last node */
        n = value + 1u;
    }
    bool have = nodes && place;
    free(place);
    *out = nodes;
    *count = n;
    return have;
}

/* ---- the statement that is left ---- */

/* Is an operand of `s` along the digit's axis where the element is, or the same everywhere? */
static bool follows(const plan_statement *s, unsigned side, uint32_t axis)
{
    bool moves;
    (void)fuse_moves_alike(s, side, axis, &moves);
    return moves;
}

bool fuse_copy_digits(plan_statement *to, const einsum_statement *from, uint32_t more_shifts)
{
    einsum_digit *digits = calloc((size_t)from->digit_count + 1, sizeof *digits);
    einsum_shift *shifts = calloc((size_t)from->shift_count + more_shifts + 1, sizeof *shifts);
    if (digits && from->digit_count)
        memcpy(digits, from->digits, from->digit_count * sizeof *digits);
    if (shifts && from->shift_count)
        memcpy(shifts, from->shifts, from->shift_count * sizeof *shifts);
    to->made = calloc(1, sizeof *to->made);
    if (to->made) {
        *to->made = *from;
        to->made->digits = digits;
        to->made->shifts = shifts;
    }
    to->made_digits = digits;
    to->made_shifts = shifts;
    return digits && shifts && to->made;
}

void fuse_free_digits(plan_statement *s)
{
    free(s->made);
    free(s->made_digits);
    free(s->made_shifts);
}

void fuse_free(plan_statement *s)
{
    fuse_free_digits(s);
    free(s->nodes);
}

static void set_broadcast(einsum_digit *d, unsigned source, bool broadcast)
{
    d->broadcast = (d->broadcast & ~(1u << (EINSUM_A + source))) | (unsigned)broadcast << (EINSUM_A + source);
}

/* The reader walks; its sources but the one that was removed, then the maker's. */
static bool join_map(const pair *x, plan_statement *to)
{
    const plan_statement *m = x->maker, *r = x->reader;
    const einsum *e = x->p->e;
    unsigned of_maker[PLAN_SOURCES], of_reader[PLAN_SOURCES] = {0};
    for (unsigned i = 0; i < r->source_count; i++) {
        of_reader[i] = to->source_count;
        if (i != x->slot)
            to->sources[to->source_count++] = r->sources[i];
    }
    for (unsigned i = 0; i < m->source_count; i++) {
        of_maker[i] = to->source_count;
        to->sources[to->source_count++] = m->sources[i];
    }
    if (!fuse_copy_digits(to, r->of, m->of->shift_count) || !join_nodes(x, of_maker, of_reader, &to->nodes, &to->node_count))
        return false;
    for (uint32_t k = 0; k < r->of->digit_count; k++) {
        einsum_digit *d = &to->made_digits[k];
        const einsum_digit *old = &r->of->digits[k];
        d->broadcast = 0;
        for (unsigned i = 0; i < r->source_count; i++)
            if (i != x->slot)
                set_broadcast(d, of_reader[i], !einsum_digit_indexes(old, (einsum_side)(EINSUM_A + i)));
        bool moves = einsum_digit_indexes(old, (einsum_side)(EINSUM_A + x->slot)) && einsum_tensor_has(&e->tensors[m->of->dst], d->axis);
        for (unsigned i = 0; i < m->source_count; i++)
            set_broadcast(d, of_maker[i], !(moves && follows(m, EINSUM_A + i, d->axis)));
    }
    for (uint32_t k = 0; k < r->of->shift_count; k++)
        if (r->of->shifts[k].side != EINSUM_DST)
            to->made_shifts[k].side = (einsum_side)(EINSUM_A + of_reader[r->of->shifts[k].side - EINSUM_A]);
    for (uint32_t k = 0; k < m->of->shift_count; k++) {
        einsum_shift h = m->of->shifts[k];
        h.side = (einsum_side)(EINSUM_A + of_maker[h.side - EINSUM_A]);
        to->made_shifts[to->made->shift_count++] = h;
    }
    return true;
}

/* The contraction walks; its sources, then the reader's others. */
static bool join_contraction(const pair *x, plan_statement *to)
{
    const plan_statement *m = x->maker, *r = x->reader;
    unsigned of_maker[PLAN_SOURCES], of_reader[PLAN_SOURCES] = {0};
    for (unsigned i = 0; i < m->source_count; i++) {
        of_maker[i] = to->source_count;
        to->sources[to->source_count++] = m->sources[i];
    }
    for (unsigned i = 0; i < r->source_count; i++) {
        of_reader[i] = to->source_count;
        if (i != x->slot)
            to->sources[to->source_count++] = r->sources[i];
    }
    if (!fuse_copy_digits(to, m->of, 0) || !join_nodes(x, of_maker, of_reader, &to->nodes, &to->node_count))
        return false;
    to->made->dst = r->of->dst;
    for (uint32_t k = 0; k < m->of->digit_count; k++)
        for (unsigned i = 0; i < r->source_count; i++)
            if (i != x->slot)
                set_broadcast(&to->made_digits[k], of_reader[i],
                              !m->of->digits[k].kept || !follows(r, EINSUM_A + i, m->of->digits[k].axis));
    return true;
}

/* False without memory. */
static bool join(const pair *x, bool map)
{
    plan_statement *m = x->maker, *r = x->reader, made = {.first = r->first, .fused = true};
    uint32_t between = m->of->dst;
    bool have = map ? join_map(x, &made) : join_contraction(x, &made);
    fuse_free(r);
    fuse_free(m);
    *m = (plan_statement){.of = &x->p->e->statements[m - x->p->statements], .absorbed = true};
    made.of = made.made;
    *r = made;
    x->p->assigned[between] = x->p->used[between] = false;
    return have;
}

/* ---- all statements ---- */

/* Who alone assigns each tensor, and who alone reads it, by statement number. */
typedef struct uses {
    uint32_t *maker, *makers, *readers; /* by tensor: one of them; how many there are; how many sources it is */
} uses;

/* Is each element read once? What is read again and again is better kept than made again. */
static bool reads_once(const pair *x)
{
    const einsum_tensor *t = &x->p->e->tensors[x->maker->of->dst];
    for (uint32_t i = 0; i < x->reader->of->digit_count; i++) {
        const einsum_digit *d = &x->reader->of->digits[i];
        if (d->size > 1 && !(einsum_digit_indexes(d, (einsum_side)(EINSUM_A + x->slot)) && einsum_tensor_has(t, d->axis)))
            return false;
    }
    return true;
}

static bool is_worth(const pair *x)
{
    unsigned nodes = x->maker->node_count + x->reader->node_count + 2;
    return x->maker->source_count + x->reader->source_count <= PLAN_SOURCES && nodes <= PLAN_MAX_NODES && reads_once(x);
}

static bool fuse_into(reference_plan *p, const uses *u, uint32_t number, bool maps, bool *changed)
{
    plan_statement *r = &p->statements[number];
    for (unsigned slot = 0; slot < r->source_count && !r->absorbed && (r->of->op == MATH_MAP || r->of->op == MATH_REDUCE); slot++) {
        uint32_t tensor = r->sources[slot];
        pair x = {p, &p->statements[u->maker[tensor]], r, slot};
        if (p->e->tensors[tensor].port >= 0 || u->makers[tensor] != 1 || u->readers[tensor] != 1 || x.maker->absorbed || !is_worth(&x) ||
            !plan_covers_destination(p->e, x.maker->of) || !sources_stay(&x) || !is_sayable(p->e->tensors[x.maker->of->dst].dtype) ||
            !(maps ? map_fits(&x) : contraction_fits(&x)))
            continue;
        *changed = true;
        return join(&x, maps);
    }
    return true;
}

static bool fuse_all(reference_plan *p, const uses *u)
{
    const einsum *e = p->e;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const plan_statement *s = &p->statements[i];
        if (s->absorbed)
            continue;
        u->maker[s->of->dst] = i;
        u->makers[s->of->dst]++;
        for (unsigned k = 0; k < s->source_count; k++)
            u->readers[s->sources[k]]++;
    }
    for (uint32_t i = 0; i < e->statement_count; i++)
        for (int maps = 1; maps >= 0; maps--)
            for (bool changed = true; changed;) {
                changed = false;
                if (!fuse_into(p, u, i, maps, &changed))
                    return false;
            }
    return true;
}

bool fuse_statements(reference_plan *p)
{
    uint32_t *all = calloc(3 * (size_t)p->e->tensor_count + 1, sizeof *all);
    bool have = all && fuse_all(p, &(uses){all, all + p->e->tensor_count, all + 2 * (size_t)p->e->tensor_count});
    free(all);
    return have;
}
