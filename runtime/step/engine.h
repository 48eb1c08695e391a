/* The simulator of a Streaming Tensor Program: operators as nodes that fire when their inputs show a token.
 *
 * The one idea: an operator (runtime/step/operator_*.c) is a token rule and knows no clock. When the inputs that it waits for show a
 * token, its rule looks at them and leaves a list of deeds (wait so many cycles, send, take, ask memory), which the engine
 * carries out one after the other. Time is local: a node goes on as soon as it knows what it takes and when that was there, and queues
 * carry times; only the memory and nodes that take what comes first wait until nobody else can go on. So a run is a function of its inputs.
 */
#ifndef VISA_RUNTIME_STEP_ENGINE_H
#define VISA_RUNTIME_STEP_ENGINE_H

#include "runtime/step/function.h"
#include "runtime/step/offchip.h"
#include "runtime/step/queue.h"
#include "runtime/step/record.h"
#include "runtime/step/seen.h"

typedef struct step_engine step_engine;
typedef struct step_actor step_actor;

typedef enum step_deed_kind { STEP_WAIT, STEP_SEND, STEP_TAKE, STEP_ASK, STEP_CALL } step_deed_kind;

typedef struct step_deed {
    step_deed_kind kind;
    uint32_t port;
    int64_t cycles; /* wait: how long; send: how much later than usual it is visible; ask: requests; call: how long at least */
    step_token token;
} step_deed;

/* What a node waits for before its rule is called again. */
typedef enum step_need { STEP_NEED_ALL, STEP_NEED_PORT, STEP_NEED_ANY, STEP_NEED_SET, STEP_NEED_NOTHING } step_need;

typedef struct step_rule {
    size_t state_bytes;
    void (*start)(step_actor *n); /* NULL: the state is zero and all inputs are needed */
    void (*fire)(step_actor *n);
} step_rule;

typedef struct step_totals {
    int64_t values_in, values_out, flops, busy_cycles, requests, offchip_bytes, end_cycle;
    int64_t access_bytes;       /* written to memory on the chip and read there, while that has a capacity */
    int64_t spill_bytes;        /* of offchip_bytes: moved because that capacity was too small */
    int64_t waits[STEP_STATES]; /* cycles in each state but STEP_BUSY, which busy_cycles counts */
} step_totals;

/* What an edge of the graph cost those at its ends. */
typedef struct step_edge_totals {
    uint32_t producer, producer_port, consumer, port, depth;
    int64_t starved, full; /* cycles: its consumer waited for a value; its producer for room */
    int64_t values, held;  /* values that went through, and for how many cycles they lay in it, summed */
} step_edge_totals;

struct step_actor {
    step_engine *engine;
    const step_node *node;
    const step_rule *rule;
    uint32_t number;
    step_queue **inputs;
    step_queue ***outputs; /* by port, the edges of the broadcast; NULL-terminated */
    int64_t now;
    step_deed *deeds;
    uint32_t deed_at, deed_count, deed_capacity;
    step_need need;
    uint32_t need_port, *need_set, need_count;
    bool finished, scheduled, full, asking; /* full: a send waits for room */
    bool chosen;                            /* takes what comes first, and it is known what does */
    bool calling;                           /* waits for the machine on which kernels run */
    int64_t calls;                          /* of a kernel, so far */
    int64_t result_at;                      /* cycle in which the latest of them ends: before it nothing that was sent is seen */
    step_value *kept[STEP_MAP_INPUTS];      /* what its kernel's inputs were that are the same for all calls */
    void *state;
    step_seen *seen; /* by output */
    step_totals totals;
};

/* ---- for rules: looking ---- */

/* The head of an input; only of those that the node needed. */
static inline const step_token *actor_head(const step_actor *n, uint32_t input)
{
    return &step_queue_head(n->inputs[input])->token;
}
static inline int64_t actor_arrival(const step_actor *n, uint32_t input)
{
    return step_queue_head(n->inputs[input])->visible;
}
const step_type *actor_type(const step_actor *n, uint32_t output);
uint32_t actor_input_type(const step_actor *n, uint32_t input);
uint32_t actor_input_rank(const step_actor *n, uint32_t input);
step_pool *actor_pool(const step_actor *n);

/* ---- for rules: deeds, in the order in which they are added ---- */

void actor_wait(step_actor *n, int64_t cycles);
void actor_send(step_actor *n, uint32_t input, step_token token); /* takes the reference over */
void actor_send_later(step_actor *n, uint32_t input, step_token token, int64_t later);
void actor_send_all(step_actor *n, step_token token); /* a stop or the end, to every output */
void actor_take(step_actor *n, uint32_t input);       /* the head, and drops it */
void actor_take_all(step_actor *n);
void actor_ask(step_actor *n, bool writes, int64_t requests, int64_t bytes);
/* Writes so many bytes of its memory on the chip, or reads them: what of them lies off the chip is asked for. */
void actor_use(step_actor *n, bool writes, int64_t bytes);
/* A call of the node's kernel, or these cycles if they are more. */
void actor_call(step_actor *n, int64_t cycles);
/* Everything was sent: after these deeds the node has ended. */
void actor_finish(step_actor *n);

/* ---- for rules: what comes next ---- */

static inline void actor_need_port(step_actor *n, uint32_t input)
{
    n->need = STEP_NEED_PORT;
    n->need_port = input;
}

/* The input came before others that could have. */
void actor_came(step_actor *n, uint32_t input);

/* A fault of this node, with the token's position in the input: ends the run. */
void actor_fault(step_actor *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Do the heads of all inputs (VALUE, or equal STOP, or DONE) agree? A fault when not. */
bool actor_in_step(step_actor *n);

/* Cycles to read the head of an input when it lies in memory on the chip. */
int64_t actor_read_cycles(const step_actor *n, uint32_t input);

/* The rule of an operator. */
const step_rule *step_rule_of(step_op op);

/* ---- running ---- */

/* Tensors off the chip while a program runs; tiles are stored as f32 elements, tile after tile. */
typedef struct step_store {
    int64_t tiles;
    float *elements; /* NULL when only time is simulated; the caller's */
} step_store;

/* A stream at the edge of the graph: what a source sends, or where a sink's tokens go. */
typedef struct step_feed {
    const step_token *tokens;  /* of a source: without the end; may be NULL for a sink */
    const int64_t *not_before; /* of each token the cycle before which it is not sent; NULL: none names one */
    size_t count;
    step_value *taken; /* of a sink: a buffer that collects its tokens; NULL: they are dropped */
} step_feed;

/* Which inputs came first, of an operator that takes what comes first. */
typedef struct step_arrivals {
    uint32_t *ports;
    size_t count, capacity;
} step_arrivals;

typedef struct step_run {
    const step_program *program;
    step_store *stores;                           /* by tensor */
    step_feed *feeds;                             /* by node; used by sources and sinks */
    const struct step_kernel_run *const *kernels; /* by node; used by those that run a kernel */
    const bool *in_place;                         /* by node, filled by the run: loads that move nothing (below) */
    const struct step_spill *spills;              /* by node: what does not fit on the chip; NULL: everything does */
    step_pool *pool;
    arena *arena;            /* its guard is where exhausted memory leaves */
    bool keep_sizes;         /* of every stream */
    bool keep_record;        /* of where the time goes */
    step_arrivals *arrivals; /* by node, filled by the run; NULL: nobody asks */
    int64_t max_cycles;      /* 0: any number */
    int64_t limit;           /* of tokens that are sent and of requests of one tile; 0: none */
    /* results */
    int64_t cycles;
    const step_totals *totals;     /* by node */
    step_seen **seen;              /* by node and output */
    const step_edge_totals *edges; /* in the order of the nodes and of their inputs */
    uint32_t edge_count;
    const step_record *record; /* NULL: not kept; its queues are the edges */
    int64_t offchip_requests;
} step_run;

/* Runs the graph to its end. False with diagnostics on a fault of an operator or a deadlock. */
bool step_engine_run(step_run *r, diag_list *diags);

/* Loads whose tiles only kernels take, as they are stored: their commands move them from where they lie. */
const bool *step_engine_in_place(const step_program *p, arena *a);

step_run *step_engine_run_of(const step_actor *n);

/* Does the chip hold a limited number of bytes, so that actor_use counts? */
static inline bool actor_is_limited(const step_actor *n)
{
    return step_engine_run_of(n)->program->machine.onchip_bytes > 0;
}

#endif
