#include "runtime/step/engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/step/call_cost.h"
#include "target/step/spill.h"

/* The machine on which the kernels of the program run. */
typedef struct step_machine_use {
    int64_t end;     /* of the latest call */
    uint32_t node;   /* whose call it was */
    uint32_t in_row; /* of that node's calls that overlapped, before it */
    bool used;
} step_machine_use;

struct step_engine {
    step_run *run;
    diag_list *diags;
    step_actor *actors;
    step_queue *queues;
    uint32_t queue_count;
    step_offchip *offchip;
    step_record *record; /* NULL: not kept */
    uint32_t *work;      /* a ring: nodes that may be able to go on, each once at most */
    uint32_t work_at, work_count;
    uint32_t *merges, merge_count;   /* nodes that take what comes first */
    uint32_t *callers, caller_count; /* nodes that run kernels */
    step_machine_use machine;
    int64_t sent; /* tokens, while there is a limit */
    bool failed;
};

step_run *step_engine_run_of(const step_actor *n)
{
    return n->engine->run;
}

step_pool *actor_pool(const step_actor *n)
{
    return n->engine->run->pool;
}

const step_type *actor_type(const step_actor *n, uint32_t output)
{
    return &n->engine->run->program->types[n->node->outputs[output].type];
}

static const step_output *source_of(const step_actor *n, uint32_t port)
{
    const step_input *in = &n->node->inputs[port];
    return &n->engine->run->program->nodes[in->node].outputs[in->port];
}

uint32_t actor_input_type(const step_actor *n, uint32_t port)
{
    return source_of(n, port)->type;
}

uint32_t actor_input_rank(const step_actor *n, uint32_t port)
{
    return source_of(n, port)->rank;
}

/* ---- who may go on ---- */

static void schedule(step_actor *n)
{
    step_engine *e = n->engine;
    uint32_t capacity = e->run->program->node_count;
    if (n->scheduled || n->asking)
        return;
    n->scheduled = true;
    e->work[(e->work_at + e->work_count++) % capacity] = n->number;
}

static step_actor *next_work(step_engine *e)
{
    step_actor *n = &e->actors[e->work[e->work_at]];
    e->work_at = (e->work_at + 1) % e->run->program->node_count;
    e->work_count--;
    n->scheduled = false;
    return n;
}

/* ---- deeds ---- */

static step_deed *add_deed(step_actor *n, step_deed_kind kind)
{
    if (n->deed_count == n->deed_capacity) {
        uint32_t capacity = n->deed_capacity ? 2 * n->deed_capacity : 8;
        step_deed *deeds = realloc(n->deeds, capacity * sizeof *deeds);
        if (!deeds)
            longjmp(*arena_guard(n->engine->run->arena), 1);
        n->deeds = deeds;
        n->deed_capacity = capacity;
    }
    n->deeds[n->deed_count] = (step_deed){.kind = kind};
    return &n->deeds[n->deed_count++];
}

void actor_wait(step_actor *n, int64_t cycles)
{
    if (cycles > 0)
        add_deed(n, STEP_WAIT)->cycles = cycles;
}

void actor_send_later(step_actor *n, uint32_t port, step_token token, int64_t later)
{
    step_deed *d = add_deed(n, STEP_SEND);
    d->port = port;
    d->token = token;
    d->cycles = later;
}

void actor_send(step_actor *n, uint32_t port, step_token token)
{
    actor_send_later(n, port, token, 0);
}

void actor_send_all(step_actor *n, step_token token)
{
    for (uint32_t i = 0; i < n->node->output_count; i++)
        actor_send(n, i, token);
}

void actor_take(step_actor *n, uint32_t port)
{
    add_deed(n, STEP_TAKE)->port = port;
}

void actor_take_all(step_actor *n)
{
    for (uint32_t i = 0; i < n->node->input_count; i++)
        actor_take(n, i);
}

void actor_ask(step_actor *n, bool writes, int64_t requests, int64_t bytes)
{
    n->totals.offchip_bytes += bytes;
    if (n->engine->run->limit > 0 && requests > n->engine->run->limit) {
        actor_fault(n, "a tile of %" PRId64 " requests, where the run may have %" PRId64, requests, n->engine->run->limit);
        return;
    }
    if (requests == 0)
        return;
    step_deed *d = add_deed(n, STEP_ASK);
    d->cycles = requests;
    d->port = writes;
    n->totals.requests += requests;
}

void actor_use(step_actor *n, bool writes, int64_t bytes)
{
    const step_run *r = n->engine->run;
    int64_t before = n->totals.access_bytes;
    if (!actor_is_limited(n))
        return;
    if (__builtin_add_overflow(before, bytes, &n->totals.access_bytes))
        n->totals.access_bytes = INT64_MAX;
    if (!r->spills)
        return;
    const step_spill *owner = &r->spills[r->spills[n->number].owner];
    int64_t moved = step_spill_moved(owner, n->totals.access_bytes) - step_spill_moved(owner, before);
    int64_t request = r->program->machine.request_bytes;
    n->totals.spill_bytes += moved;
    actor_ask(n, writes, moved / request + (moved % request > 0), moved);
}

static const step_call_cost *call_cost(const step_actor *n)
{
    return step_call_cost_of(n->engine->run->kernels[n->number]);
}

void actor_call(step_actor *n, int64_t cycles)
{
    const step_call_cost *k = call_cost(n);
    n->totals.offchip_bytes += n->calls++ == 0 ? k->offchip_bytes : k->next_bytes;
    add_deed(n, STEP_CALL)->cycles = cycles;
}

void actor_finish(step_actor *n)
{
    n->finished = true;
}

void actor_came(step_actor *n, uint32_t input)
{
    step_arrivals *a = n->engine->run->arrivals ? &n->engine->run->arrivals[n->number] : NULL;
    if (a)
        ARENA_PUSH(n->engine->run->arena, a->ports, a->count, a->capacity, input);
}

void actor_fault(step_actor *n, const char *format, ...)
{
    step_engine *e = n->engine;
    if (e->failed)
        return;
    e->failed = true;
    char text[2 * STEP_FAULT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    diag_add(e->diags, E_STEP_RUN, SRC_NOWHERE, "%s `%s` (line %u), after %" PRId64 " values: %s", step_op_row_of(n->node->op)->name,
             n->node->name, n->node->line, n->totals.values_in, text);
}

static const char *token_text(const step_token *t, char *text, size_t bytes)
{
    snprintf(text, bytes, t->kind == STEP_STOP ? "stop S%u" : t->kind == STEP_DONE ? "its end" : "a value", t->level);
    return text;
}

bool actor_in_step(step_actor *n)
{
    const step_token *first = actor_head(n, 0);
    for (uint32_t i = 1; i < n->node->input_count; i++) {
        const step_token *t = actor_head(n, i);
        if (t->kind == first->kind && t->level == first->level)
            continue;
        char a[16], b[16];
        actor_fault(n, "input 0 has %s where input %u has %s: streams in lock step need one structure", token_text(first, a, sizeof a), i,
                    token_text(t, b, sizeof b));
        return false;
    }
    return true;
}

int64_t actor_read_cycles(const step_actor *n, uint32_t port)
{
    const step_token *t = actor_head(n, port);
    if (t->kind != STEP_VALUE || !t->in_memory)
        return 0;
    int64_t bytes = step_value_bytes(n->engine->run->program, actor_input_type(n, port), t->value);
    int64_t rate = n->engine->run->program->machine.onchip_bytes_per_cycle;
    return (bytes + rate - 1) / rate;
}

/* Has it ended, with everything sent? */
static bool ended(const step_actor *n)
{
    return n->finished && n->deed_at == n->deed_count;
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Cycles up to `until` in which the node did nothing of its own. */
static void count_wait(step_actor *n, step_state state, int64_t until)
{
    if (until <= n->now)
        return;
    n->totals.waits[state] += until - n->now;
    if (n->engine->record)
        step_record_node(n->engine->record, n->number, state, n->now, until);
}

/* False when the token has to wait for room. */
static bool do_send(step_actor *n, const step_deed *d)
{
    step_queue **edges = n->outputs[d->port], *last = NULL;
    int64_t room = n->now;
    if (d->token.kind == STEP_VALUE)
        for (step_queue **q = edges; *q; q++)
            if (step_queue_room(*q) > room) {
                room = step_queue_room(*q);
                last = *q;
            }
    n->full = room == INT64_MAX;
    if (n->full)
        return false;
    if (last) {
        last->full += room - n->now;
        count_wait(n, STEP_FULL, room);
    }
    n->now = room;
    if (n->engine->run->limit > 0 && ++n->engine->sent > n->engine->run->limit) {
        actor_fault(n, "the run may send %" PRId64 " tokens", n->engine->run->limit);
        return false;
    }
    n->totals.values_out += d->token.kind == STEP_VALUE;
    step_seen_token(&n->seen[d->port], n->engine->run->program, &n->node->outputs[d->port], d->token);
    for (step_queue **q = edges; *q; q++) {
        if (d->token.value)
            step_value_keep(d->token.value);
        int64_t visible = later_of(n->now, n->result_at) + 1 + d->cycles;
        step_queue_push(*q, d->token, d->token.kind == STEP_DONE ? 0 : visible, n->engine->run->arena);
        if (d->token.kind == STEP_VALUE) {
            (*q)->held -= visible;
            if (n->engine->record)
                step_record_queue(n->engine->record, (uint32_t)(*q - n->engine->queues), visible, 1);
        }
        schedule(&n->engine->actors[(*q)->consumer]);
    }
    step_value_drop(n->engine->run->pool, d->token.value);
    return true;
}

static void do_take(step_actor *n, uint32_t port)
{
    step_queue *q = n->inputs[port];
    step_token t = step_queue_pop(q, n->now);
    if (t.kind == STEP_VALUE) {
        n->totals.values_in++;
        q->held += n->now;
        if (n->engine->record)
            step_record_queue(n->engine->record, (uint32_t)(q - n->engine->queues), n->now, -1);
    }
    step_value_drop(n->engine->run->pool, t.value);
    if (n->engine->actors[q->producer].full)
        schedule(&n->engine->actors[q->producer]);
}

/* Carries deeds out until one has to wait. True when none is left. */
static bool do_deeds(step_actor *n)
{
    while (n->deed_at < n->deed_count) {
        step_deed *d = &n->deeds[n->deed_at];
        switch (d->kind) {
        case STEP_WAIT:
            n->deed_at++;
            n->totals.busy_cycles += d->cycles;
            if (n->engine->record)
                step_record_node(n->engine->record, n->number, STEP_BUSY, n->now, n->now + d->cycles);
            n->now += d->cycles;
            continue;
        case STEP_SEND:
            if (!do_send(n, d))
                return false;
            break;
        case STEP_TAKE: do_take(n, d->port); break;
        case STEP_ASK:
            n->deed_at++;
            n->asking = true;
            step_offchip_ask(n->engine->offchip, n->number, d->port, d->cycles, n->now);
            return false;
        case STEP_CALL: n->calling = n->asking = true; return false;
        }
        n->deed_at++;
    }
    n->deed_at = n->deed_count = 0;
    return true;
}

/* ---- when a node fires ---- */

/* The cycle in which the input shows a token; INT64_MAX while it has none. */
static int64_t shows(const step_actor *n, uint32_t port)
{
    const step_queue_item *head = step_queue_head(n->inputs[port]);
    return head ? head->visible : INT64_MAX;
}

/* The cycle in which everything that the node needs is there; INT64_MAX while something is missing. */
static int64_t ready(const step_actor *n)
{
    int64_t cycle = n->need == STEP_NEED_ANY ? INT64_MAX : 0;
    switch (n->need) {
    case STEP_NEED_PORT: return shows(n, n->need_port);
    case STEP_NEED_SET:
        for (uint32_t i = 0; i < n->need_count; i++)
            cycle = later_of(cycle, shows(n, n->need_set[i]));
        break;
    case STEP_NEED_ALL:
        for (uint32_t i = 0; i < n->node->input_count; i++)
            cycle = later_of(cycle, shows(n, i));
        break;
    case STEP_NEED_ANY:
        for (uint32_t i = 0; i < n->node->input_count; i++)
            cycle = shows(n, i) < cycle ? shows(n, i) : cycle;
        break;
    case STEP_NEED_NOTHING: break;
    }
    return cycle;
}

/* What the node needed is there in `cycle`: who was last made it wait. */
static void count_starved(step_actor *n, int64_t cycle)
{
    if (cycle <= n->now)
        return;
    uint32_t count = n->need == STEP_NEED_PORT ? 1 : n->need == STEP_NEED_SET ? n->need_count : n->node->input_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t port = n->need == STEP_NEED_PORT ? n->need_port : n->need == STEP_NEED_SET ? n->need_set[i] : i;
        if (shows(n, port) == cycle) {
            n->inputs[port]->starved += cycle - n->now;
            break;
        }
    }
    count_wait(n, STEP_STARVED, cycle);
}

/* False, and diagnosed: the clock of the node is past the limit. */
static bool in_time(const step_actor *n)
{
    step_engine *e = n->engine;
    int64_t most = e->run->max_cycles;
    if (most == 0 || n->now <= most)
        return true;
    if (!e->failed) {
        diag *d = diag_add(e->diags, E_RUN_CYCLES, SRC_NOWHERE,
                           "%s `%s` (line %u), after %" PRId64 " values: cycle %" PRId64 "; a run may take %" PRId64,
                           step_op_row_of(n->node->op)->name, n->node->name, n->node->line, n->totals.values_in, n->now, most);
        diag_help(e->diags, d, "to run it to its end: --max-cycles=0");
    }
    e->failed = true;
    return false;
}

static void run_actor(step_actor *n)
{
    while (!n->engine->failed && do_deeds(n) && in_time(n)) {
        n->totals.end_cycle = n->now;
        int64_t cycle = n->finished ? INT64_MAX : ready(n);
        if (cycle == INT64_MAX || (n->need == STEP_NEED_ANY && cycle > 0 && !n->chosen))
            return;
        n->chosen = false;
        count_starved(n, cycle);
        n->now = later_of(n->now, cycle);
        n->rule->fire(n);
    }
}

/* ---- the whole graph ---- */

/* Everything that can be done before the memory's next cycle. */
static void settle(step_engine *e)
{
    while (e->work_count > 0 && !e->failed)
        run_actor(next_work(e));
}

/* Of the nodes that take what comes first, the one that can go on earliest; NULL when none has anything. */
static step_actor *earliest_merge(step_engine *e, int64_t *cycle)
{
    step_actor *first = NULL;
    *cycle = INT64_MAX;
    for (uint32_t i = 0; i < e->merge_count; i++) {
        step_actor *n = &e->actors[e->merges[i]];
        if (n->finished || n->full || n->need != STEP_NEED_ANY)
            continue;
        int64_t at = ready(n);
        at = at == INT64_MAX ? at : later_of(n->now, at);
        if (at < *cycle) {
            *cycle = at;
            first = n;
        }
    }
    return first;
}

/* Does the node go on with its kernel before the machine has ended with it? */
static bool goes_on(const step_engine *e, const step_actor *n)
{
    return e->machine.used && e->machine.node == n->number && call_cost(n)->ahead && n->now <= e->machine.end;
}

/* Who gets the machine next, and from which cycle on that is sure: the operator that has it, while its inputs come in time; then whoever
 * came first. NULL: nobody wants it. */
static step_actor *next_caller(step_engine *e, int64_t *cycle)
{
    step_actor *first = NULL;
    *cycle = INT64_MAX;
    for (uint32_t i = 0; i < e->caller_count; i++) {
        step_actor *n = &e->actors[e->callers[i]];
        if (!n->calling)
            continue;
        if (goes_on(e, n)) {
            *cycle = n->now;
            return n;
        }
        if (!first || n->now < first->now)
            first = n;
    }
    if (first)
        *cycle = later_of(first->now, e->machine.end);
    return first;
}

static int64_t overlap_after(const step_call_cost *k, uint32_t in_row)
{
    return k->ahead ? k->overlaps[in_row < STEP_CALL_STEPS ? in_row : STEP_CALL_STEPS - 1] : 0;
}

/* The machine runs the node's kernel. The node goes on when its next call could begin, and what it sends is seen when this one has ended.
 */
static void run_call(step_engine *e, step_actor *n)
{
    const step_call_cost *k = call_cost(n);
    step_machine_use *m = &e->machine;
    int64_t begin = later_of(n->now, goes_on(e, n) ? m->end - overlap_after(k, m->in_row) : m->end);
    m->in_row = begin < m->end ? m->in_row + 1 : 0;
    m->end = begin + later_of(n->calls == 1 ? k->cycles : k->next_cycles, n->deeds[n->deed_at].cycles);
    m->node = n->number;
    m->used = true;
    count_wait(n, STEP_MACHINE, begin);
    n->now = later_of(begin, m->end - overlap_after(k, m->in_row));
    n->totals.busy_cycles += n->now - begin;
    if (e->record)
        step_record_node(e->record, n->number, STEP_BUSY, begin, n->now);
    n->result_at = m->end;
    n->calling = n->asking = false;
    n->deed_at++;
    schedule(n);
}

/* The memory's cycles up to the first one that answers somebody, but none from which an answer could not come before `cycle`. */
static bool run_memory(step_engine *e, int64_t cycle)
{
    const step_answer *answers;
    uint32_t count = step_offchip_run(e->offchip, cycle, &answers);
    for (uint32_t i = 0; i < count; i++) {
        step_actor *n = &e->actors[answers[i].node];
        n->asking = false;
        count_wait(n, STEP_MEMORY, answers[i].cycle);
        n->now = answers[i].cycle;
        schedule(n);
    }
    return count > 0;
}

/* Time is local: a node goes on as soon as it knows what it takes and when that was there. Only the memory, the nodes that take what
 * comes first and those that want the machine of the kernels depend on what others do at the same time; they wait until nothing else can go
 * on, and then the earliest goes first. */
static void run_graph(step_engine *e)
{
    while (!e->failed) {
        settle(e);
        int64_t merges, calls;
        step_actor *merge = earliest_merge(e, &merges), *caller = next_caller(e, &calls);
        if (run_memory(e, calls < merges ? calls : merges))
            continue;
        if (!merge && !caller)
            return;
        if (calls < merges) {
            run_call(e, caller);
            continue;
        }
        merge->chosen = true;
        schedule(merge);
    }
}

/* ---- deadlock ---- */

/* The node that this one waits for, and why. */
static uint32_t waits_for(const step_actor *n, arena *a, const char **why)
{
    if (n->full) {
        const step_deed *d = &n->deeds[n->deed_at];
        for (step_queue **q = n->outputs[d->port]; *q; q++)
            if (step_queue_room(*q) == INT64_MAX) {
                *why = arena_printf(a, "has a value for `%s`, whose queue is full (%u values)",
                                    n->engine->actors[(*q)->consumer].node->name, (*q)->depth);
                return (*q)->consumer;
            }
    }
    uint32_t port = n->need == STEP_NEED_PORT ? n->need_port : 0;
    for (uint32_t i = 0; i < n->node->input_count && n->need != STEP_NEED_PORT; i++)
        if (shows(n, i) == INT64_MAX) {
            port = i;
            break;
        }
    if (n->need == STEP_NEED_SET)
        for (uint32_t i = 0; i < n->need_count; i++)
            if (shows(n, n->need_set[i]) == INT64_MAX)
                port = n->need_set[i];
    uint32_t from = n->inputs[port]->producer;
    *why = arena_printf(a, "waits for a token of `%s`, whose queue is empty", n->engine->actors[from].node->name);
    return from;
}

static void report_deadlock(step_engine *e)
{
    arena *a = e->diags->arena;
    uint32_t count = e->run->program->node_count, blocked = 0, at = count;
    for (uint32_t i = count; i-- > 0;)
        if (!ended(&e->actors[i])) {
            blocked++;
            at = i;
        }
    const char *why;
    for (uint32_t i = 0; i < count; i++) /* onto the cycle */
        at = ended(&e->actors[at]) ? at : waits_for(&e->actors[at], a, &why);
    diag *d = diag_add(e->diags, E_STEP_DEADLOCK, SRC_NOWHERE, "%u of %u operators wait for each other for ever", blocked, count);
    uint32_t first = at;
    do {
        uint32_t next = ended(&e->actors[at]) ? at : waits_for(&e->actors[at], a, &why);
        diag_note(e->diags, d, SRC_NOWHERE, "%s `%s` (line %u) %s", step_op_row_of(e->actors[at].node->op)->name, e->actors[at].node->name,
                  e->actors[at].node->line, why);
        at = next;
    } while (at != first);
    diag_help(e->diags, d, "give the full queue more depth (`.depth(n)`), or none (`.depth(0)`)");
}

/* ---- setting up and tearing down ---- */

static void connect(step_engine *e)
{
    const step_program *p = e->run->program;
    arena *a = e->run->arena;
    uint32_t **counts = ARENA_ARRAY(a, uint32_t *, p->node_count);
    for (uint32_t i = 0; i < p->node_count; i++) {
        step_actor *n = &e->actors[i];
        counts[i] = ARENA_ARRAY(a, uint32_t, p->nodes[i].output_count + 1);
        n->outputs = ARENA_ARRAY(a, step_queue **, p->nodes[i].output_count + 1);
        n->inputs = ARENA_ARRAY(a, step_queue *, p->nodes[i].input_count + 1);
        e->queue_count += p->nodes[i].input_count;
    }
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t k = 0; k < p->nodes[i].input_count; k++)
            counts[p->nodes[i].inputs[k].node][p->nodes[i].inputs[k].port]++;
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t o = 0; o < p->nodes[i].output_count; o++) {
            e->actors[i].outputs[o] = ARENA_ARRAY(a, step_queue *, counts[i][o] + 1);
            counts[i][o] = 0;
        }
    e->queues = ARENA_ARRAY(a, step_queue, e->queue_count + 1); /* zero: nothing to free */
    step_queue *q = e->queues;
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t k = 0; k < p->nodes[i].input_count; k++, q++) {
            const step_input *in = &p->nodes[i].inputs[k];
            step_queue_init(q, in->depth, in->node, i, a);
            e->actors[i].inputs[k] = q;
            e->actors[in->node].outputs[in->port][counts[in->node][in->port]++] = q;
        }
}

static bool hands_on(step_op op)
{
    return op == STEP_EXPAND || op == STEP_REPEAT || op == STEP_PROMOTE || op == STEP_FLATTEN || op == STEP_BROADCAST;
}

/* What a load's tiles come to, followed forward from each load; what is handed on is followed further. */
static bool only_kernels_take(const step_program *p, uint32_t load, bool *reached, arena *a)
{
    uint32_t *front = ARENA_ARRAY(a, uint32_t, p->node_count + 1), count = 1, kernels = 0;
    memset(reached, 0, p->node_count * sizeof *reached);
    front[0] = load;
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t i = 0; i < p->node_count; i++)
            for (uint32_t k = 0; k < p->nodes[i].input_count; k++) {
                const step_node *n = &p->nodes[i];
                if (n->inputs[k].node != front[at])
                    continue;
                if (!n->kernel && (!hands_on(n->op) || k > 0))
                    return false;
                kernels += n->kernel != NULL;
                if (!n->kernel && !reached[i])
                    front[count++] = i;
                reached[i] = true;
            }
    return kernels > 0;
}

const bool *step_engine_in_place(const step_program *p, arena *a)
{
    bool *in_place = ARENA_ARRAY(a, bool, p->node_count + 1), *reached = ARENA_ARRAY(a, bool, p->node_count + 1), any = false;
    for (uint32_t i = 0; i < p->node_count; i++)
        any = any || p->nodes[i].kernel;
    for (uint32_t i = 0; any && i < p->node_count; i++) {
        const step_node *n = &p->nodes[i];
        arena_mark before = arena_mark_here(a);
        in_place[i] = (n->op == STEP_LINEAR_LOAD || n->op == STEP_RANDOM_LOAD) &&
                      p->types[n->outputs[0].type].dtype == p->tensors[n->tensor].dtype && only_kernels_take(p, i, reached, a);
        arena_rewind(a, before);
    }
    return in_place;
}

static void set_up(step_engine *e)
{
    const step_program *p = e->run->program;
    arena *a = e->run->arena;
    e->actors = ARENA_ARRAY(a, step_actor, p->node_count + 1);
    e->run->in_place = step_engine_in_place(p, a);
    e->work = ARENA_ARRAY(a, uint32_t, p->node_count + 1);
    e->merges = ARENA_ARRAY(a, uint32_t, p->node_count + 1);
    e->callers = ARENA_ARRAY(a, uint32_t, p->node_count + 1);
    connect(e);
    e->offchip = step_offchip_new(&p->machine, p->node_count, a);
    e->record = e->run->keep_record ? step_record_new(p->node_count, e->queue_count, a) : NULL;
    for (uint32_t i = 0; i < p->node_count; i++) {
        step_actor *n = &e->actors[i];
        n->engine = e;
        n->node = &p->nodes[i];
        n->number = i;
        n->rule = step_rule_of(p->nodes[i].op);
        n->state = arena_alloc(a, n->rule->state_bytes + 1);
        n->seen = ARENA_ARRAY(a, step_seen, p->nodes[i].output_count + 1);
        for (uint32_t o = 0; e->run->keep_sizes && o < p->nodes[i].output_count; o++)
            step_seen_keep_sizes(&n->seen[o], a);
        n->need_set = ARENA_ARRAY(a, uint32_t, p->nodes[i].input_count + 1);
        if (n->rule->start)
            n->rule->start(n);
        if (n->need == STEP_NEED_ANY)
            e->merges[e->merge_count++] = i;
        if (p->nodes[i].kernel)
            e->callers[e->caller_count++] = i;
        schedule(n);
    }
}

/* Also of an engine that was set up half. */
static void tear_down(step_engine *e)
{
    for (uint32_t i = 0; e->actors && i < e->run->program->node_count; i++) {
        free(e->actors[i].deeds);
        for (int k = 0; k < STEP_MAP_INPUTS; k++)
            step_value_drop(e->run->pool, e->actors[i].kept[k]);
    }
    for (uint32_t i = 0; e->queues && i < e->queue_count; i++)
        step_queue_free(&e->queues[i]);
    step_offchip_free(e->offchip);
}

static void take_edges(step_engine *e)
{
    step_run *r = e->run;
    step_edge_totals *edges = ARENA_ARRAY(r->arena, step_edge_totals, e->queue_count + 1);
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++)
        for (uint32_t k = 0; k < r->program->nodes[i].input_count; k++, at++) {
            const step_queue *q = &e->queues[at];
            const step_input *in = &r->program->nodes[i].inputs[k];
            edges[at] = (step_edge_totals){in->node, in->port, i, k, in->depth, q->starved, q->full, (int64_t)q->taken_values, q->held};
        }
    r->edges = edges;
    r->edge_count = e->queue_count;
    r->record = e->record;
}

static void take_results(step_engine *e)
{
    step_run *r = e->run;
    step_totals *totals = ARENA_ARRAY(r->arena, step_totals, r->program->node_count + 1);
    r->seen = ARENA_ARRAY(r->arena, step_seen *, r->program->node_count + 1);
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        totals[i] = e->actors[i].totals;
        r->seen[i] = e->actors[i].seen;
        r->cycles = later_of(r->cycles, totals[i].end_cycle);
    }
    r->totals = totals;
    take_edges(e);
    r->offchip_requests = step_offchip_requests(e->offchip);
}

static bool run_to_end(step_engine *e)
{
    set_up(e);
    run_graph(e);
    bool all_ended = true;
    for (uint32_t i = 0; i < e->run->program->node_count; i++)
        all_ended = all_ended && ended(&e->actors[i]);
    if (!e->failed && !all_ended)
        report_deadlock(e);
    take_results(e);
    return !e->failed && all_ended;
}

bool step_engine_run(step_run *r, diag_list *diags)
{
    step_engine *e = ARENA_NEW(r->arena, step_engine);
    *e = (step_engine){.run = r, .diags = diags};
    jmp_buf outer; /* exhausted memory passes here, so that the queues are freed */
    memcpy(&outer, arena_guard(r->arena), sizeof outer);
    if (setjmp(*arena_guard(r->arena))) {
        tear_down(e);
        memcpy(arena_guard(r->arena), &outer, sizeof outer);
        longjmp(*arena_guard(r->arena), 1);
    }
    bool good = run_to_end(e);
    memcpy(arena_guard(r->arena), &outer, sizeof outer);
    tear_down(e);
    return good;
}
