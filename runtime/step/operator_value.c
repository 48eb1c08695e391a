/* Operators that look at values: sources and sinks, the higher-order operators, zip. */
#include "runtime/step/operators.h"

#include <inttypes.h>

#include "runtime/step/call_cost.h"

/* ---- sources and sinks ---- */

static void source_start(step_actor *n)
{
    n->need = STEP_NEED_NOTHING;
}

static void source_fire(step_actor *n)
{
    const step_feed *f = &step_engine_run_of(n)->feeds[n->number];
    size_t *at = n->state;
    if (*at == f->count) {
        actor_send(n, 0, (step_token){.kind = STEP_DONE});
        actor_finish(n);
        return;
    }
    if (f->not_before && f->not_before[*at] > n->now)
        n->now = f->not_before[*at];
    step_token t = f->tokens[(*at)++];
    actor_send(n, 0, kept(t));
    actor_wait(n, t.kind == STEP_VALUE);
}

const step_rule rule_source = {.state_bytes = sizeof(size_t), .start = source_start, .fire = source_fire};

/* What it starts is started in cycle 0. */
static void once_fire(step_actor *n)
{
    actor_send_later(n, 0, step_token_of(step_address_new(actor_pool(n), 0)), -1);
    actor_send(n, 0, (step_token){.kind = STEP_DONE});
    actor_finish(n);
}

const step_rule rule_once = {.start = source_start, .fire = once_fire};

static void sink_fire(step_actor *n)
{
    step_token t = *actor_head(n, 0);
    step_value *taken = step_engine_run_of(n)->feeds[n->number].taken;
    if (taken && t.kind != STEP_DONE)
        step_buffer_push(actor_pool(n), taken, kept(t));
    actor_take(n, 0);
    actor_wait(n, t.kind == STEP_VALUE);
    if (t.kind == STEP_DONE)
        actor_finish(n);
}

const step_rule rule_sink = {.fire = sink_fire};

/* ---- what a function costs ---- */

static step_call call_of(step_actor *n, step_fault *fault)
{
    return (step_call){.fn = n->node->fn,
                       .type = actor_type(n, 0),
                       .n = n->node->param[STEP_N],
                       .first = n->node->param[STEP_FIRST],
                       .kernel = n->node->kernel ? step_engine_run_of(n)->kernels[n->number] : NULL,
                       .kept = n->kept,
                       .formula = n->node->formula,
                       .types = step_engine_run_of(n)->program->types,
                       .pool = actor_pool(n),
                       .fault = fault};
}

static uint32_t heads(const step_actor *n, step_value **in)
{
    for (uint32_t i = 0; i < n->node->input_count; i++)
        in[i] = actor_head(n, i)->value;
    return n->node->input_count;
}

/* A kernel's own commands read what it takes. */
static int64_t read_cycles(const step_actor *n)
{
    int64_t cycles = 0;
    for (uint32_t i = 0; i < n->node->input_count && !n->node->kernel; i++)
        cycles += actor_read_cycles(n, i);
    return cycles;
}

static int64_t compute_cycles(step_actor *n, step_cost cost)
{
    int64_t rate = n->node->flops_per_cycle;
    n->totals.flops += cost.flops;
    return cost.cycles + (rate > 0 ? (cost.flops + rate - 1) / rate : 0);
}

/* Cycles to write a result to memory on the chip, where it goes there. */
static int64_t write_cycles(const step_actor *n, const step_value *v)
{
    const step_program *p = step_engine_run_of(n)->program;
    int64_t rate = p->machine.onchip_bytes_per_cycle;
    return n->node->writes_back ? (step_value_bytes(p, n->node->outputs[0].type, v) + rate - 1) / rate : 0;
}

static step_token result_token(const step_actor *n, step_value *v)
{
    step_token t = step_token_of(v);
    t.in_memory = n->node->writes_back;
    return t;
}

static int64_t largest(int64_t a, int64_t b, int64_t c)
{
    int64_t m = a > b ? a : b;
    return m > c ? m : c;
}

/* What applying the function takes: cycles, or a call of its kernel. */
static void spend(step_actor *n, int64_t cycles)
{
    if (n->node->kernel)
        actor_call(n, cycles);
    else
        actor_wait(n, cycles);
}

/* Rows of the first operand and the second one of a product are written for it, and read. */
static void use_operands(step_actor *n)
{
    const step_program *p = step_engine_run_of(n)->program;
    if (!actor_is_limited(n) || !step_fn_acts(n->node->fn, STEP_ACTS_PRODUCT))
        return;
    uint32_t type = actor_input_type(n, 0);
    const step_value *a = actor_head(n, 0)->value, *b = a;
    if (n->node->input_count > 1) {
        type = actor_input_type(n, 1);
        b = actor_head(n, 1)->value;
    } else {
        type = p->types[type].second;
        a = a->pair[0];
        b = b->pair[1];
    }
    int64_t bytes = p->machine.compute_tile * a->tile.columns + step_value_bytes(p, type, b);
    actor_use(n, true, bytes);
    actor_use(n, false, bytes);
}

/* A stop or the end: the output has the input's. */
static void copy_structure(step_actor *n, step_token t)
{
    if (t.kind == STEP_DONE)
        actor_wait(n, n->result_at - n->now); /* of a call that went on after its next one could have begun */
    actor_send_all(n, t);
    actor_take_all(n);
    if (t.kind == STEP_DONE)
        actor_finish(n);
}

/* ---- map, zip ---- */

static void map_fire(step_actor *n)
{
    if (!actor_in_step(n))
        return;
    step_token t = *actor_head(n, 0);
    if (t.kind != STEP_VALUE) {
        copy_structure(n, t);
        return;
    }
    step_value *in[STEP_LOCKSTEP_MAX];
    step_fault fault = {0};
    step_call c = call_of(n, &fault);
    step_cost cost;
    step_value *v = step_map(&c, in, heads(n, in), &cost);
    if (!v) {
        actor_fault(n, "%s", fault.text);
        return;
    }
    use_operands(n);
    spend(n, largest(read_cycles(n), compute_cycles(n, cost), write_cycles(n, v)));
    actor_send(n, 0, result_token(n, v));
    actor_take_all(n);
}

const step_rule rule_map = {.fire = map_fire};

static void zip_fire(step_actor *n)
{
    if (!actor_in_step(n))
        return;
    step_token a = *actor_head(n, 0), b = *actor_head(n, 1);
    if (a.kind != STEP_VALUE) {
        copy_structure(n, a);
        return;
    }
    step_token t = step_token_of(step_pair_new(actor_pool(n), step_value_keep(a.value), step_value_keep(b.value)));
    t.in_memory = a.in_memory && b.in_memory;
    actor_send(n, 0, t);
    actor_take_all(n);
}

const step_rule rule_zip = {.fire = zip_fire};

/* ---- accum, scan ---- */

typedef struct fold {
    step_value *accumulator; /* NULL: nothing was taken yet */
    int64_t last;            /* cycles that the last value took */
} fold;

/* Does a stop that ends the group stand after the value already? Then the result is written while the value is folded. */
static bool group_ends(const step_actor *n)
{
    const step_queue_item *next = step_queue_second(n->inputs[0]);
    return n->node->op == STEP_ACCUM && next && next->visible <= n->now && next->token.kind == STEP_STOP &&
           next->token.level >= n->node->param[STEP_B];
}

/* The accumulator, as what it is shown as, is read and written. */
static void use_accumulator(step_actor *n, const fold *f, const step_call *c)
{
    if (!actor_is_limited(n) || n->node->kernel)
        return;
    step_value *v = step_shown(c, f->accumulator);
    int64_t bytes = step_value_bytes(step_engine_run_of(n)->program, n->node->outputs[0].type, v);
    step_value_drop(actor_pool(n), v);
    actor_use(n, false, bytes);
    actor_use(n, true, bytes);
}

/* The head's value into the accumulator. */
static bool fold_head(step_actor *n, fold *f, const step_call *c)
{
    step_value *in[STEP_LOCKSTEP_MAX];
    step_cost cost;
    uint32_t count = heads(n, in);
    f->accumulator = step_update(c, f->accumulator, in, count, &cost);
    if (!f->accumulator) {
        actor_fault(n, "%s", c->fault->text);
        return false;
    }
    f->last = largest(read_cycles(n), compute_cycles(n, cost), 0);
    if (n->node->writes_back && group_ends(n)) {
        step_value *v = step_shown(c, f->accumulator);
        f->last = largest(f->last, write_cycles(n, v), 0);
        step_value_drop(actor_pool(n), v);
    }
    use_operands(n);
    if (!step_fn_stacks(n->node->fn))
        use_accumulator(n, f, c);
    spend(n, f->last);
    if (n->node->kernel)
        f->last = largest(f->last, step_call_cost_of(c->kernel)->next_cycles, 0);
    return true;
}

static void fold_reset(step_actor *n, fold *f)
{
    step_value_drop(actor_pool(n), f->accumulator);
    *f = (fold){0};
}

static void accum_stop(step_actor *n, fold *f, const step_call *c, step_token t)
{
    int64_t b = n->node->param[STEP_B];
    actor_take_all(n);
    if (t.level < b)
        return;
    step_value *v = step_shown(c, f->accumulator);
    if (step_fn_stacks(n->node->fn))
        use_accumulator(n, f, c);
    actor_wait(n, write_cycles(n, v) - f->last);
    actor_send(n, 0, result_token(n, v));
    if (t.level > b)
        actor_send(n, 0, step_stop_of(t.level - (unsigned)b));
    fold_reset(n, f);
}

static void accum_structure(step_actor *n, fold *f, const step_call *c, step_token t)
{
    if (t.kind == STEP_DONE)
        copy_structure(n, t);
    else
        accum_stop(n, f, c, t);
}

static void scan_value(step_actor *n, fold *f, const step_call *c)
{
    if (step_fn_stacks(n->node->fn))
        use_accumulator(n, f, c);
    actor_send(n, 0, result_token(n, step_shown(c, f->accumulator)));
}

static void scan_structure(step_actor *n, fold *f, const step_call *c, step_token t)
{
    (void)c;
    if (t.kind == STEP_STOP && t.level >= n->node->param[STEP_B])
        fold_reset(n, f);
    copy_structure(n, t);
}

/* `value`: what becomes of the accumulator after each value; NULL: nothing. `structure`: what a stop and the end do. */
static void fold_fire(step_actor *n, void (*value)(step_actor *n, fold *f, const step_call *c),
                      void (*structure)(step_actor *n, fold *f, const step_call *c, step_token t))
{
    if (!actor_in_step(n))
        return;
    fold *f = n->state;
    step_fault fault = {0};
    step_call c = call_of(n, &fault);
    step_token t = *actor_head(n, 0);
    if (t.kind != STEP_VALUE) {
        structure(n, f, &c, t);
        return;
    }
    if (!fold_head(n, f, &c))
        return;
    if (value)
        value(n, f, &c);
    actor_take_all(n);
}

static void accum_fire(step_actor *n)
{
    fold_fire(n, NULL, accum_structure);
}

const step_rule rule_accum = {.state_bytes = sizeof(fold), .fire = accum_fire};

static void scan_fire(step_actor *n)
{
    fold_fire(n, scan_value, scan_structure);
}

const step_rule rule_scan = {.state_bytes = sizeof(fold), .fire = scan_fire};

/* ---- flat_map ---- */

typedef struct flattening {
    closing closing;
    step_value *in[STEP_LOCKSTEP_MAX]; /* the values whose stream is sent, which were taken; NULL: none */
    int64_t sent;                      /* of that stream */
} flattening;

/* Takes the heads, to send their stream. */
static void flat_start(step_actor *n, flattening *f)
{
    uint32_t count = heads(n, f->in);
    for (uint32_t i = 0; i < count; i++)
        step_value_keep(f->in[i]);
    closing_settle(n, &f->closing, (unsigned)n->node->param[STEP_B]);
    f->sent = 0;
    n->need = STEP_NEED_NOTHING;
}

static void flat_end(step_actor *n, flattening *f)
{
    for (uint32_t i = 0; i < n->node->input_count; i++)
        step_value_drop(actor_pool(n), f->in[i]);
    f->in[0] = NULL;
    n->need = STEP_NEED_ALL;
    closing_owe(n, &f->closing, (unsigned)n->node->param[STEP_B], actor_input_rank(n, 0));
}

/* The next value of the stream. */
static void flat_value(step_actor *n, flattening *f)
{
    step_fault fault = {0};
    step_call c = call_of(n, &fault);
    step_cost cost;
    step_value *v = step_flat(&c, f->in, n->node->input_count, f->sent, &cost);
    if (f->sent++ == 0) {
        actor_wait(n, largest(read_cycles(n), compute_cycles(n, cost), 0));
        actor_take_all(n); /* before there is room for all of it downstream */
    }
    if (v)
        actor_send(n, 0, step_token_of(v));
    else
        flat_end(n, f);
    if (fault.set)
        actor_fault(n, "%s", fault.text);
}

static void flat_map_fire(step_actor *n)
{
    flattening *f = n->state;
    if (!f->in[0]) {
        if (!actor_in_step(n))
            return;
        step_token t = *actor_head(n, 0);
        if (t.kind != STEP_VALUE) {
            closing_end(n, &f->closing, (unsigned)n->node->param[STEP_B], t);
            actor_take_all(n);
            return;
        }
        flat_start(n, f);
    }
    flat_value(n, f);
}

const step_rule rule_flat_map = {.state_bytes = sizeof(flattening), .fire = flat_map_fire};
