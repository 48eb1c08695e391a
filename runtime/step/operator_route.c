/* Operators that route and merge: partition, reassemble, eager merge, parallelize, broadcast. */
#include "runtime/step/operators.h"

#include <inttypes.h>
#include <string.h>

/* ---- partition ---- */

enum { DATA = 0, SELECTOR = 1 };

typedef struct routing {
    step_value *selector; /* of the chunk that is being routed; NULL: between chunks */
    int64_t owed;         /* dimensions that the data closed together with the chunk's own */
    bool some;            /* a chunk was routed since the selector's last stop */
} routing;

static void send_to_picks(step_actor *n, const step_value *selector, step_token t)
{
    for (uint32_t i = 0; i < selector->selector.count; i++)
        actor_send(n, selector->selector.picks[i], kept(t));
}

static void chunk_ends(step_actor *n, routing *r)
{
    step_value_drop(actor_pool(n), r->selector);
    r->selector = NULL;
    r->some = true;
    actor_need_port(n, SELECTOR);
}

/* One token of a chunk. */
static void route_token(step_actor *n, routing *r)
{
    step_token t = *actor_head(n, DATA);
    int64_t b = n->node->param[STEP_B];
    if (t.kind == STEP_DONE || (b == 0 && t.kind == STEP_STOP)) {
        actor_fault(n, "the data ends, or closes a dimension, where the selector names outputs for a chunk");
        return;
    }
    if (t.kind == STEP_VALUE) {
        actor_wait(n, actor_read_cycles(n, DATA));
        actor_take(n, DATA);
        actor_wait(n, 1);
        t.in_memory = false;
    } else {
        actor_take(n, DATA);
        r->owed = t.level > b ? t.level - b : 0;
        t.level = (uint8_t)(t.level > b ? b : t.level);
    }
    send_to_picks(n, r->selector, t);
    if (b == 0 || (t.kind == STEP_STOP && t.level == b))
        chunk_ends(n, r);
}

/* A stop of the selector that the data has closed already, or has to close now. */
static void route_stop(step_actor *n, routing *r, step_token stop)
{
    int64_t b = n->node->param[STEP_B];
    if (r->owed > 0 || (b > 0 && r->some)) {
        if (r->owed != stop.level)
            actor_fault(n, "the selector closes %u dimensions after a chunk and the data %" PRId64, stop.level, r->owed);
        r->owed = 0;
        r->some = false;
        actor_take(n, SELECTOR);
        return;
    }
    if (n->need == STEP_NEED_PORT) {
        n->need = STEP_NEED_ALL;
        return;
    }
    const step_token *t = actor_head(n, DATA);
    if (t->kind != STEP_STOP || t->level != stop.level + b)
        actor_fault(n, "the selector has stop S%u and the data no stop S%" PRId64, stop.level, stop.level + b);
    actor_take_all(n);
    r->some = false;
    actor_need_port(n, SELECTOR);
}

static void route_done(step_actor *n, step_token t)
{
    if (n->need == STEP_NEED_PORT) {
        n->need = STEP_NEED_ALL;
        return;
    }
    if (actor_head(n, DATA)->kind != STEP_DONE)
        actor_fault(n, "the selector has ended and data is left");
    actor_send_all(n, t);
    actor_take_all(n);
    actor_finish(n);
}

static void partition_fire(step_actor *n)
{
    routing *r = n->state;
    if (r->selector) {
        route_token(n, r);
        return;
    }
    step_token t = *actor_head(n, SELECTOR);
    if (t.kind != STEP_STOP && r->owed > 0) {
        actor_fault(n, "the data closes %" PRId64 " dimensions after a chunk and the selector none", r->owed);
    } else if (t.kind == STEP_STOP) {
        route_stop(n, r, t);
    } else if (t.kind == STEP_DONE) {
        route_done(n, t);
    } else {
        r->selector = step_value_keep(t.value);
        actor_take(n, SELECTOR);
        actor_need_port(n, DATA);
    }
}

static void partition_start(step_actor *n)
{
    actor_need_port(n, SELECTOR);
}

const step_rule rule_partition = {.state_bytes = sizeof(routing), .start = partition_start, .fire = partition_fire};

/* ---- reassemble ---- */

typedef enum phase { SELECTING, ARRIVING, COPYING, ENDING } phase;

typedef struct assembly {
    closing closing;
    phase phase;
    uint32_t at; /* of the picks, in order of arrival, the one that is copied */
} assembly;

static void need_selector(step_actor *n, assembly *s)
{
    s->phase = SELECTING;
    actor_need_port(n, n->node->input_count - 1);
}

/* The chunks that the selector names, in the order in which they arrived. */
static void sort_by_arrival(step_actor *n)
{
    for (uint32_t i = 1; i < n->need_count; i++) {
        uint32_t port = n->need_set[i], k = i;
        for (; k > 0 && actor_arrival(n, n->need_set[k - 1]) > actor_arrival(n, port); k--)
            n->need_set[k] = n->need_set[k - 1];
        n->need_set[k] = port;
    }
}

static void chunk_copied(step_actor *n, assembly *s, unsigned b)
{
    if (++s->at < n->need_count) {
        if (b > 0)
            actor_send(n, 0, step_stop_of(b));
        actor_need_port(n, n->need_set[s->at]);
        return;
    }
    closing_owe(n, &s->closing, b + 1, actor_input_rank(n, n->node->input_count - 1));
    need_selector(n, s);
}

static void copy_token(step_actor *n, assembly *s)
{
    uint32_t port = n->need_set[s->at];
    step_token t = *actor_head(n, port);
    unsigned b = (unsigned)n->node->param[STEP_B];
    if (t.kind == STEP_DONE || (t.kind == STEP_STOP && (b == 0 || t.level > b))) {
        actor_fault(n, "input %u has ended where the selector wants a chunk of it", port);
        return;
    }
    if (t.kind == STEP_VALUE)
        actor_wait(n, actor_arrival(n, port) + 1 + actor_read_cycles(n, port) - n->now);
    t.in_memory = false;
    bool last = b == 0 || (t.kind == STEP_STOP && t.level == b), goes_on = t.kind == STEP_VALUE || !last;
    t = goes_on ? kept(t) : t;
    actor_take(n, port); /* before there is room for it downstream */
    if (goes_on)
        actor_send(n, 0, t);
    if (last)
        chunk_copied(n, s, b);
}

static void select_chunks(step_actor *n, assembly *s, step_token t)
{
    unsigned b = (unsigned)n->node->param[STEP_B];
    uint32_t selector = n->node->input_count - 1;
    actor_take(n, selector);
    if (t.kind != STEP_VALUE) {
        if (t.kind == STEP_DONE) {
            closing_settle(n, &s->closing, b + 1);
            actor_send(n, 0, t); /* at once: what it selects from may end only after it, by feedback */
            s->phase = ENDING;
            n->need = STEP_NEED_SET;
            n->need_count = selector;
            for (uint32_t i = 0; i < selector; i++)
                n->need_set[i] = i;
            return;
        }
        closing_end(n, &s->closing, b + 1, t);
        return;
    }
    closing_settle(n, &s->closing, b + 1);
    n->need_count = t.value->selector.count;
    memcpy(n->need_set, t.value->selector.picks, n->need_count * sizeof *n->need_set);
    if (n->need_count == 0) {
        closing_owe(n, &s->closing, b + 1, actor_input_rank(n, selector));
        return;
    }
    s->phase = ARRIVING;
    s->at = 0;
    n->need = STEP_NEED_SET;
}

static void assembly_ends(step_actor *n)
{
    for (uint32_t i = 0; i < n->need_count; i++) {
        if (actor_head(n, i)->kind != STEP_DONE) {
            actor_fault(n, "the selector has ended and input %u is not used up", i);
            return;
        }
        actor_take(n, i);
    }
    actor_finish(n);
}

static void reassemble_fire(step_actor *n)
{
    assembly *s = n->state;
    switch (s->phase) {
    case SELECTING: select_chunks(n, s, *actor_head(n, n->node->input_count - 1)); break;
    case ARRIVING:
        sort_by_arrival(n);
        for (uint32_t i = 0; i < n->need_count; i++)
            actor_came(n, n->need_set[i]);
        s->phase = COPYING;
        actor_need_port(n, n->need_set[0]);
        break;
    case COPYING: copy_token(n, s); break;
    case ENDING: assembly_ends(n); break;
    }
}

static void reassemble_start(step_actor *n)
{
    need_selector(n, n->state);
}

const step_rule rule_reassemble = {.state_bytes = sizeof(assembly), .start = reassemble_start, .fire = reassemble_fire};

/* ---- eager merge ---- */

typedef struct merge {
    bool inside; /* of a chunk of input `port` */
    uint32_t port;
    uint32_t ended; /* inputs */
} merge;

/* The input whose head was there first. Inputs that have ended are taken and never shown again. */
static uint32_t first_arrival(const step_actor *n)
{
    uint32_t first = n->node->input_count;
    for (uint32_t i = 0; i < n->node->input_count; i++) {
        const step_queue_item *head = step_queue_head(n->inputs[i]);
        if (head && head->visible <= n->now && (first == n->node->input_count || head->visible < actor_arrival(n, first)))
            first = i;
    }
    return first;
}

static void merge_token(step_actor *n, merge *m)
{
    step_token t = *actor_head(n, m->port);
    uint32_t rank = actor_input_rank(n, m->port);
    if (!m->inside)
        actor_came(n, m->port);
    if (!m->inside)
        actor_send(n, 1, step_token_of(step_selector_new(actor_pool(n), &m->port, 1)));
    t = kept(t);
    actor_take(n, m->port);
    actor_send(n, 0, t);
    m->inside = !(rank == 0 || (t.kind == STEP_STOP && t.level == rank));
    if (m->inside)
        actor_need_port(n, m->port);
    else
        n->need = STEP_NEED_ANY;
}

static void eager_merge_fire(step_actor *n)
{
    merge *m = n->state;
    if (!m->inside)
        m->port = first_arrival(n);
    if (actor_head(n, m->port)->kind != STEP_DONE) {
        merge_token(n, m);
        return;
    }
    actor_take(n, m->port);
    if (m->inside)
        actor_fault(n, "input %u ends inside a chunk", m->port);
    if (++m->ended < n->node->input_count)
        return;
    actor_send_all(n, (step_token){.kind = STEP_DONE});
    actor_finish(n);
}

static void eager_merge_start(step_actor *n)
{
    n->need = STEP_NEED_ANY;
}

const step_rule rule_eager_merge = {.state_bytes = sizeof(merge), .start = eager_merge_start, .fire = eager_merge_fire};

/* ---- parallelize ---- */

static void parallelize_fire(step_actor *n)
{
    uint32_t *turn = n->state;
    step_token t = *actor_head(n, 0);
    int64_t b = n->node->param[STEP_B];
    actor_take(n, 0);
    if (t.kind == STEP_DONE) {
        actor_send_all(n, t);
        actor_finish(n);
        return;
    }
    bool ends = b == 0 ? t.kind == STEP_VALUE : t.kind == STEP_STOP && t.level >= b;
    if (t.kind == STEP_STOP && t.level > b)
        t.level = (uint8_t)b;
    if (t.kind == STEP_VALUE || t.level > 0)
        actor_send(n, *turn, kept(t));
    if (ends)
        *turn = (*turn + 1) % n->node->output_count;
}

const step_rule rule_parallelize = {.state_bytes = sizeof(uint32_t), .fire = parallelize_fire};

/* ---- broadcast ---- */

/* The token is taken before there is room for it downstream: the queue in front and the node itself hold one each. */
static void broadcast_fire(step_actor *n)
{
    step_token t = *actor_head(n, 0);
    actor_take(n, 0);
    actor_send(n, 0, kept(t));
    if (t.kind == STEP_DONE)
        actor_finish(n);
}

const step_rule rule_broadcast = {.fire = broadcast_fire};
