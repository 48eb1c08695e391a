/* Operators that change the structure of a stream and not its values. */
#include "runtime/step/operators.h"

#include <inttypes.h>

/* ---- flatten ---- */

static void flatten_fire(step_actor *n)
{
    step_token t = *actor_head(n, 0);
    int64_t min = n->node->param[STEP_B], max = n->node->param[STEP_N];
    if (t.kind == STEP_STOP && t.level > min)
        t.level = (uint8_t)(t.level > max ? t.level - (max - min) : min);
    bool some = t.kind != STEP_STOP || t.level > 0;
    t = kept(t);
    actor_take(n, 0);
    if (some)
        actor_send(n, 0, t);
    if (t.kind == STEP_DONE)
        actor_finish(n);
}

const step_rule rule_flatten = {.fire = flatten_fire};

/* ---- reshape ---- */

typedef struct chunks {
    closing closing;
    int64_t filled; /* of the open chunk: values, or for b > 0 closed dimensions */
} chunks;

static void send_padding(step_actor *n)
{
    const step_type *t = actor_type(n, 0);
    step_value *v = step_tile_new(actor_pool(n), t->rows < 0 ? 0 : t->rows, t->columns < 0 ? 0 : t->columns);
    v->tile.valid = 0;
    for (int64_t k = 0; v->tile.elements && k < v->tile.rows * v->tile.columns; k++)
        v->tile.elements[k] = step_round(t->dtype, (float)n->node->param[STEP_PAD_VALUE]);
    actor_send(n, 0, step_token_of(v));
    actor_send(n, 1, step_token_of(step_bool_new(actor_pool(n), true)));
}

/* Fills the open chunk, one tile at a time. False while it is not full, or with a fault when it may not be filled. */
static bool complete_chunk(step_actor *n, chunks *c)
{
    int64_t size = n->node->param[STEP_N];
    if (c->filled == 0)
        return true;
    if (!n->node->param[STEP_PAD]) {
        actor_fault(n, "a dimension ends with %" PRId64 " of the %" PRId64 " values of a chunk, and nothing says how to pad it", c->filled,
                    size);
        return false;
    }
    send_padding(n);
    c->filled = (c->filled + 1) % size;
    c->closing.owed = c->filled == 0;
    return false;
}

static void send_both(step_actor *n, unsigned level)
{
    actor_send_all(n, step_stop_of(level));
}

/* Takes the token, unless its chunk has to be filled first: then it is looked at again. */
static void reshape_values(step_actor *n, step_token t)
{
    chunks *c = n->state;
    if (t.kind == STEP_VALUE) {
        t = kept(t);
        actor_take(n, 0);
        if (c->closing.owed)
            send_both(n, 1);
        c->closing.owed = false;
        actor_send(n, 0, t);
        actor_send(n, 1, step_token_of(step_bool_new(actor_pool(n), false)));
        if (++c->filled < n->node->param[STEP_N])
            return;
        c->filled = 0;
        c->closing.owed = true; /* in rank 0 as well: the published runs deadlock where a chunk waits for the token after it */
        return;
    }
    if (!complete_chunk(n, c))
        return;
    actor_take(n, 0);
    if (t.kind == STEP_STOP)
        send_both(n, t.level + 1u);
    else if (c->closing.owed)
        send_both(n, 1);
    c->closing.owed = false;
    if (t.kind == STEP_DONE) {
        actor_send_all(n, t);
        actor_finish(n);
    }
}

/* b > 0: every chunk-th end of dimension b - 1 also ends a chunk. */
static void reshape_dimension(step_actor *n, step_token t)
{
    chunks *c = n->state;
    int64_t b = n->node->param[STEP_B], size = n->node->param[STEP_N];
    actor_take(n, 0);
    if (t.kind == STEP_DONE)
        actor_finish(n);
    if (t.kind != STEP_STOP || t.level < b) {
        if (t.kind == STEP_VALUE)
            actor_send(n, 1, step_token_of(step_bool_new(actor_pool(n), false)));
        else
            actor_send(n, 1, t);
        actor_send(n, 0, t);
        return;
    }
    bool whole = ++c->filled == size;
    c->filled = whole ? 0 : c->filled;
    if (t.level > b && !whole) {
        actor_fault(n, "dimension %" PRId64 " ends inside a chunk of %" PRId64, b, size);
        return;
    }
    send_both(n, t.level + (unsigned)whole);
}

static void reshape_fire(step_actor *n)
{
    step_token t = *actor_head(n, 0);
    if (n->node->param[STEP_B] > 0)
        reshape_dimension(n, kept(t));
    else
        reshape_values(n, t);
}

const step_rule rule_reshape = {.state_bytes = sizeof(chunks), .fire = reshape_fire};

/* ---- promote ---- */

typedef struct outermost {
    bool some; /* a value or stop was sent */
    bool held; /* the stop of the highest level, which may be the last */
} outermost;

static void promote_fire(step_actor *n)
{
    step_token t = *actor_head(n, 0);
    outermost *o = n->state;
    unsigned rank = actor_input_rank(n, 0);
    t = kept(t);
    actor_take(n, 0);
    if (t.kind == STEP_DONE) {
        if (o->some)
            actor_send(n, 0, step_stop_of(rank + 1));
        actor_send(n, 0, t);
        actor_finish(n);
    } else {
        if (o->held)
            actor_send(n, 0, step_stop_of(rank));
        o->held = t.kind == STEP_STOP && t.level == rank;
        o->some = true;
        if (!o->held)
            actor_send(n, 0, t);
    }
}

const step_rule rule_promote = {.state_bytes = sizeof(outermost), .fire = promote_fire};

/* ---- expand, repeat ---- */

enum { DATA = 0, REFERENCE = 1 };

typedef struct expansion {
    bool closing; /* the value was taken; the data's stop has to equal `level` */
    uint8_t level;
} expansion;

static void expand_close(step_actor *n, expansion *e)
{
    const step_token *data = actor_head(n, DATA);
    if (data->kind != STEP_STOP || data->level != e->level) {
        actor_fault(n, "the reference closes %u dimensions where the data has %s", e->level,
                    data->kind == STEP_STOP ? "another stop" : "none");
        return;
    }
    e->closing = false;
    actor_send(n, 0, step_stop_of(e->level));
    actor_take(n, DATA);
    n->need = STEP_NEED_ALL;
}

static void expand_stop(step_actor *n, expansion *e, step_token data, step_token reference)
{
    actor_take(n, REFERENCE);
    if (reference.level < n->node->param[STEP_B]) {
        actor_send(n, 0, reference);
        return;
    }
    actor_use_value(n, true, actor_input_type(n, DATA), data);
    if (data.kind == STEP_VALUE)
        actor_take(n, DATA);
    e->closing = true;
    e->level = reference.level;
    actor_need_port(n, DATA);
}

static void expand_fire(step_actor *n)
{
    expansion *e = n->state;
    if (e->closing) {
        expand_close(n, e);
        return;
    }
    step_token data = *actor_head(n, DATA), reference = *actor_head(n, REFERENCE);
    if (reference.kind == STEP_STOP) {
        expand_stop(n, e, data, reference);
    } else if (reference.kind != data.kind) {
        actor_fault(n, "the data and the reference do not have the same groups");
    } else {
        data = kept(data);
        actor_take(n, REFERENCE);
        actor_use_value(n, false, n->node->outputs[0].type, data);
        actor_send(n, 0, data);
        if (data.kind == STEP_DONE) {
            actor_take(n, DATA);
            actor_finish(n);
        }
    }
}

const step_rule rule_expand = {.state_bytes = sizeof(expansion), .fire = expand_fire};

typedef struct repetition {
    closing closing;
    int64_t sent; /* copies of the head */
} repetition;

/* One copy at a time. */
static void repeat_fire(step_actor *n)
{
    repetition *r = n->state;
    step_token t = *actor_head(n, 0);
    if (t.kind != STEP_VALUE) {
        closing_end(n, &r->closing, 1, t);
        actor_take(n, 0);
        return;
    }
    if (r->sent == 0) {
        closing_settle(n, &r->closing, 1);
        actor_use_value(n, true, actor_input_type(n, 0), t);
    }
    actor_use_value(n, false, n->node->outputs[0].type, t);
    actor_send(n, 0, kept(t));
    actor_wait(n, 1);
    if (++r->sent < n->node->param[STEP_N])
        return;
    r->sent = 0;
    closing_owe(n, &r->closing, 1, actor_input_rank(n, 0));
    actor_take(n, 0);
}

const step_rule rule_repeat = {.state_bytes = sizeof(repetition), .fire = repeat_fire};
