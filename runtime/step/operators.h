/* What the rules of several operators share.
 *
 * The one idea: an operator that adds inner dimensions closes them after each value, but with the highest stop only: the level is known
 * when the next token is. So the closing stop is owed until then. A stream of rank 0 has no stops; there nothing can be added, and the
 * closing stop is sent at once. */
#ifndef VISA_RUNTIME_STEP_OPERATORS_H
#define VISA_RUNTIME_STEP_OPERATORS_H

#include "runtime/step/engine.h"

enum { STEP_LOCKSTEP_MAX = STEP_MAP_INPUTS };

extern const step_rule rule_source, rule_sink, rule_once, rule_map, rule_zip, rule_accum, rule_scan, rule_flat_map;
extern const step_rule rule_flatten, rule_reshape, rule_promote, rule_expand, rule_repeat;
extern const step_rule rule_partition, rule_reassemble, rule_eager_merge, rule_parallelize, rule_broadcast;
extern const step_rule rule_linear_load, rule_linear_store, rule_random_load, rule_random_store, rule_bufferize, rule_streamify;

static inline step_token kept(step_token t)
{
    if (t.value)
        step_value_keep(t.value);
    return t;
}

/* Of a value of that type; of another token nothing. */
static inline void actor_use_value(step_actor *n, bool writes, uint32_t type, step_token t)
{
    if (t.kind == STEP_VALUE && actor_is_limited(n))
        actor_use(n, writes, step_value_bytes(step_engine_run_of(n)->program, type, t.value));
}

typedef struct closing {
    bool owed; /* a stop that closes the added dimensions */
} closing;

/* After a value's content: owes the stop `level` (0: nothing), or sends it where the input has no stops. */
static inline void closing_owe(step_actor *n, closing *c, unsigned level, uint32_t input_rank)
{
    c->owed = level > 0 && input_rank > 0;
    if (level > 0 && input_rank == 0)
        actor_send(n, 0, step_stop_of(level));
}

/* In front of the next value's content. */
static inline void closing_settle(step_actor *n, closing *c, unsigned level)
{
    if (c->owed)
        actor_send(n, 0, step_stop_of(level));
    c->owed = false;
}

/* At a stop, which the owed one joins, or the end, which the node comes to. */
static inline void closing_end(step_actor *n, closing *c, unsigned level, step_token t)
{
    if (t.kind == STEP_STOP) {
        c->owed = false;
        actor_send(n, 0, step_stop_of(level + t.level));
        return;
    }
    closing_settle(n, c, level);
    actor_send(n, 0, t);
    actor_finish(n);
}

#endif
