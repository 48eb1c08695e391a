#include "runtime/step/kernel.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/machine/session.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/port_data.h"
#include "runtime/timing/schedule.h"

/* ---- does the kernel fit its tiles? ---- */

static uint32_t port_of(const binary_kernel *k, port_direction direction, uint32_t number)
{
    for (uint32_t i = 0; i < k->port_count; i++)
        if (k->ports[i].direction == direction && number-- == 0)
            return i;
    return k->port_count;
}

/* Is the port's logical tensor such a tile? Its first axis is the rows; one axis alone is a row. */
static bool is_tile(const binary_kernel *k, uint32_t number, const step_type *t, arena *a)
{
    if (number == k->port_count || t->kind != STEP_TILE)
        return false;
    tensor_type type = port_logical_type(&k->ports[number], k->axes, k->axis_count, a);
    int64_t rows = type.rank > 1 ? type.shape[0] : 1, elements = tensor_elements(&type);
    return type.dtype == t->dtype && t->rows == rows && elements >= 0 && t->columns >= 0 && elements == rows * t->columns;
}

static bool refuse(const step_node *n, diag_list *diags, const char *why)
{
    diag_add(diags, E_STEP_RUN, SRC_NOWHERE, "%s `%s` (line %" PRIu32 "): the kernel `%s` %s", step_op_row_of(n->op)->name, n->name,
             n->line, n->kernel, why);
    return false;
}

static bool takes(const binary_kernel *k, uint32_t number, const step_program *p, uint32_t type, arena *a)
{
    return is_tile(k, port_of(k, PORT_IN, number), &p->types[type], a);
}

/* Several outputs are a pair of the first and (the second and ..). */
static bool makes(const binary_kernel *k, const step_program *p, uint32_t type, arena *a)
{
    uint32_t made = 0;
    const step_type *t = &p->types[type];
    for (; t->kind == STEP_PAIR && made < STEP_MAP_INPUTS; t = &p->types[t->second], made++)
        if (!is_tile(k, port_of(k, PORT_OUT, made), &p->types[t->first], a))
            return false;
    return made < STEP_MAP_INPUTS && is_tile(k, port_of(k, PORT_OUT, made), t, a) && port_of(k, PORT_OUT, made + 1) == k->port_count;
}

static bool ports_fit(const step_program *p, const step_node *n, const binary_kernel *k, arena *a, diag_list *diags)
{
    uint32_t taken = n->op != STEP_MAP; /* the accumulator is the first */
    bool fits = taken == 0 || takes(k, 0, p, n->outputs[0].type, a);
    for (uint32_t i = 0; i < n->input_count; i++) {
        const step_type *t = &p->types[p->nodes[n->inputs[i].node].outputs[n->inputs[i].port].type];
        if (t->kind == STEP_PAIR) { /* the only input, as the reader of the binary has asked */
            fits = fits && takes(k, taken, p, t->first, a) && takes(k, taken + 1, p, t->second, a);
            taken += 2;
        } else {
            fits = fits && takes(k, taken++, p, (uint32_t)(t - p->types), a);
        }
    }
    fits = fits && port_of(k, PORT_IN, taken) == k->port_count && makes(k, p, n->outputs[0].type, a);
    return fits || refuse(n, diags, "has other ports than the tiles that it is applied to");
}

/* The axis that counts a port's rows; -1: it is a row. */
static int64_t row_axis(const binary_kernel *k, uint32_t number, arena *a)
{
    uint32_t *order, rank = port_logical_axes(&k->ports[number], k->axes, k->axis_count, a, &order);
    return rank > 1 ? (int64_t)order[0] : -1;
}

static uint32_t rows_of(const binary_kernel *k, uint32_t made, arena *a)
{
    int64_t rows = row_axis(k, port_of(k, PORT_OUT, made), a);
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < (uint32_t)step_fn_row_of(STEP_FN_KERNEL)->most_arity && port_of(k, PORT_IN, i) < k->port_count; i++)
        inputs |= (uint32_t)(rows >= 0 && row_axis(k, port_of(k, PORT_IN, i), a) == rows) << i;
    return inputs;
}

/* ---- what calls cost ---- */

static bool cycles_of(const step_kernel_run *r, const call_choice *choice, timing_preset timing, arena *a, diag_list *diags,
                      int64_t *cycles)
{
    binary_kernel calls;
    schedule s;
    calls_merge(r->binary->target, r->kernel, choice, a, &calls);
    if (!schedule_make(r->binary->target, &calls, timing, a, diags, &s))
        return false;
    *cycles = s.cycles;
    return true;
}

/* The cycles by which each further call of a row makes it longer say how far it overlaps the one before it. */
static bool measure_rows(step_kernel_run *r, timing_preset timing, arena *a, diag_list *diags)
{
    int64_t before = r->cost.cycles;
    r->cost.row_cycles = r->cost.next_cycles;
    for (uint32_t i = 0; r->cost.ahead && i < STEP_CALL_STEPS; i++) {
        int64_t all;
        if (!cycles_of(r, &(call_choice){.count = i + 2, .kept = r->kept, .first_loads = true, .ahead = true}, timing, a, diags, &all))
            return false;
        r->cost.row_cycles = all - before;
        r->cost.overlaps[i] = r->cost.row_cycles < r->cost.next_cycles ? r->cost.next_cycles - r->cost.row_cycles : 0;
        before = all;
    }
    return true;
}

static bool measure(step_kernel_run *r, const step_node *n, bool fits, timing_preset timing, arena *a, diag_list *diags)
{
    schedule s;
    if (!schedule_make(r->binary->target, r->kernel, timing, a, diags, &s))
        return false;
    r->cost.cycles = r->cost.next_cycles = s.cycles;
    r->cost.offchip_bytes = r->cost.next_bytes = r->facts.hbm_bytes;
    r->cost.ahead = fits && n->op == STEP_MAP;
    r->cost.onchip_bytes = (r->cost.ahead ? 2 : 1) * r->facts.dm_bytes * r->facts.slices + r->facts.trf_bytes;
    r->cost.ahead = r->cost.ahead && calls_may_follow(r->kernel);
    for (uint32_t i = 0; fits && i < CALL_INPUTS; i++)
        if (n->param[STEP_KEPT] >> i & 1 && r->facts.kept_bytes[i] > 0) {
            r->kept |= UINT32_C(1) << i;
            r->cost.next_bytes -= r->facts.kept_bytes[i];
        }
    if (r->kept && !cycles_of(r, &(call_choice){.count = 1, .kept = r->kept}, timing, a, diags, &r->cost.next_cycles))
        return false;
    return measure_rows(r, timing, a, diags);
}

static step_kernel_run *prepare(const binary *b, const step_program *p, const step_node *n, arena *a, diag_list *diags)
{
    step_kernel_run *r = ARENA_NEW(a, step_kernel_run);
    *r = (step_kernel_run){.binary = b, .kernel = binary_kernel_by_name(b, n->kernel), .arena = a};
    if (!r->kernel) {
        refuse(n, diags, "is not in the file");
        return NULL;
    }
    if (!ports_fit(p, n, r->kernel, a, diags) || !call_facts_of(b->target, r->kernel, a, diags, &r->facts))
        return NULL;
    for (uint32_t i = 0; i < STEP_MAP_INPUTS && port_of(r->kernel, PORT_OUT, i) < r->kernel->port_count; i++)
        r->rows_of[i] = rows_of(r->kernel, i, a);
    return r;
}

const step_kernel_run *const *step_kernel_runs_of(const binary *b, const step_program *p, timing_preset timing, arena *a, diag_list *diags)
{
    step_kernel_run **runs = ARENA_ARRAY(a, step_kernel_run *, p->node_count + 1);
    int64_t dm_bytes = 0; /* of a slice: two calls of each map, one of each fold, whose next call waits for the accumulator */
    for (uint32_t i = 0; i < p->node_count; i++) {
        if (!p->nodes[i].kernel)
            continue;
        if (!(runs[i] = prepare(b, p, &p->nodes[i], a, diags)))
            return NULL;
        dm_bytes += (p->nodes[i].op == STEP_MAP ? 2 : 1) * runs[i]->facts.dm_bytes;
    }
    for (uint32_t i = 0; i < p->node_count; i++)
        if (runs[i] && !measure(runs[i], &p->nodes[i], dm_bytes <= b->target->dm_bytes_per_slice, timing, a, diags))
            return NULL;
    return (const step_kernel_run *const *)runs;
}

const step_call_cost *step_call_cost_of(const step_kernel_run *r)
{
    return &r->cost;
}

/* ---- a run ---- */

static bool give(session *s, uint32_t number, const step_value *v, diag_list *diags)
{
    tensor *t = session_logical(s, number, diags);
    for (int64_t i = 0; t && i < v->tile.rows * v->tile.columns; i++)
        numeric_from_double(t->type.dtype, t->bytes, i, (double)v->tile.elements[i]);
    return t != NULL;
}

/* Elements on a stream are f32: integers past its 24 bits have no place there. */
static bool take(session *s, uint32_t number, step_value *v, step_fault *why, diag_list *diags)
{
    const tensor *t = session_logical(s, number, diags);
    for (int64_t i = 0; t && i < v->tile.rows * v->tile.columns; i++) {
        double x = numeric_to_double(t->type.dtype, t->bytes, i);
        v->tile.elements[i] = (float)x;
        if (x == x && (double)v->tile.elements[i] != x) {
            step_fail(why, "its kernel made %.0f, which no element on a stream can be", x);
            return false;
        }
    }
    return t != NULL;
}

static bool run_on(const step_kernel_run *r, session *s, step_value *const *in, uint32_t count, step_value *out, step_fault *why,
                   diag_list *diags)
{
    bool good = true;
    session_set_options(s, &(session_options){.threads = 1}); /* a tile is small */
    for (uint32_t i = 0; good && i < count; i++)
        good = give(s, port_of(r->kernel, PORT_IN, i), in[i], diags);
    good = good && session_run(s, false, diags);
    uint32_t made = 0;
    for (; good && out->kind == STEP_PAIR; out = out->pair[1])
        good = take(s, port_of(r->kernel, PORT_OUT, made++), out->pair[0], why, diags);
    return good && take(s, port_of(r->kernel, PORT_OUT, made), out, why, diags);
}

/* A tile without elements yet; its rows are real where those of all inputs with the same rows are. */
static step_value *result_tile(const step_kernel_run *r, const step_call *c, const step_type *t, uint32_t made, step_value *const *in,
                               uint32_t count)
{
    step_value *v = step_tile_new(c->pool, t->rows, t->columns);
    for (uint32_t i = 0; i < count; i++)
        if (r->rows_of[made] >> i & 1 && in[i]->tile.valid < v->tile.valid)
            v->tile.valid = in[i]->tile.valid;
    return v;
}

static step_value *results(const step_kernel_run *r, const step_call *c, step_value *const *in, uint32_t count)
{
    step_value *tiles[STEP_MAP_INPUTS];
    uint32_t made = 0;
    const step_type *t = c->type;
    for (; t->kind == STEP_PAIR; t = &c->types[t->second], made++)
        tiles[made] = result_tile(r, c, &c->types[t->first], made, in, count);
    step_value *all = result_tile(r, c, t, made, in, count);
    while (made-- > 0)
        all = step_pair_new(c->pool, tiles[made], all);
    return all;
}

/* An input that is loaded once is the same whenever the kernel is called. */
static bool is_what_it_was(const step_kernel_run *r, const step_call *c, step_value *const *in, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < STEP_MAP_INPUTS; i++) {
        if (!(r->kept >> i & 1))
            continue;
        const step_value *first = c->kept[i];
        if (!first)
            c->kept[i] = step_value_keep(in[i]);
        else if (first != in[i] && first->tile.elements && in[i]->tile.elements &&
                 memcmp(first->tile.elements, in[i]->tile.elements, (size_t)(first->tile.rows * first->tile.columns) * sizeof(float)) != 0)
            return false;
    }
    return true;
}

step_value *step_kernel_apply(const step_kernel_run *r, const step_call *c, step_value *const *in, uint32_t count)
{
    if (!is_what_it_was(r, c, in, count))
        return step_fail(c->fault, "its kernel loads an input once, which is not the same for this call");
    step_value *out = results(r, c, in, count);
    const step_value *first = out->kind == STEP_PAIR ? out->pair[0] : out;
    if (!first->tile.elements)
        return out;
    arena_mark mark = arena_mark_here(r->arena);
    diag_list diags;
    diag_list_init(&diags, r->arena);
    session *s = session_open(r->binary, r->kernel->name, r->arena, &diags);
    bool good = s && run_on(r, s, in, count, out, c->fault, &diags);
    session_close(s);
    if (!good) {
        if (!c->fault->set)
            step_fail(c->fault, "its kernel: %s", diags.count > 0 ? diags.items[0]->message : "no memory");
        step_value_drop(c->pool, out);
        out = NULL;
    }
    arena_rewind(r->arena, mark);
    return out;
}
