#include "runtime/step/offchip.h"

#include <stdlib.h>

typedef struct port {
    uint64_t order; /* readers before writers, then by node */
    int64_t left;   /* requests that are not issued yet */
    int64_t latest; /* start of the latest service */
    int64_t first;  /* cycle of the first group */
} port;

struct step_offchip {
    step_machine machine;
    int64_t *free_at; /* by channel, cycle */
    int64_t offset;   /* the running channel */
    int64_t next, issued;
    bool idle;     /* nobody issued anything in the last cycle */
    int64_t clock; /* after the last cycle that was simulated */
    port *ports;   /* by order */
    uint32_t count;
    step_answer *answers;
};

step_offchip *step_offchip_new(const step_machine *m, uint32_t node_count, arena *guard)
{
    step_offchip *o = calloc(1, sizeof *o);
    if (!o)
        longjmp(*arena_guard(guard), 1);
    o->machine = *m;
    o->next = INT64_MAX;
    o->free_at = calloc((size_t)m->memory_channels, sizeof *o->free_at);
    o->ports = malloc((node_count + 1) * sizeof *o->ports);
    o->answers = malloc((node_count + 1) * sizeof *o->answers);
    if (o->free_at && o->ports && o->answers)
        return o;
    step_offchip_free(o);
    longjmp(*arena_guard(guard), 1);
}

void step_offchip_free(step_offchip *o)
{
    if (!o)
        return;
    free(o->free_at);
    free(o->ports);
    free(o->answers);
    free(o);
}

void step_offchip_ask(step_offchip *o, uint32_t node, bool writes, int64_t requests, int64_t now)
{
    uint64_t order = (uint64_t)writes << 32 | node;
    uint32_t at = o->count++;
    for (; at > 0 && o->ports[at - 1].order > order; at--)
        o->ports[at] = o->ports[at - 1];
    int64_t first = now + 1 > o->clock ? now + 1 : o->clock;
    o->ports[at] = (port){.order = order, .left = requests, .first = first};
    if (first < o->next)
        o->next = first;
}

int64_t step_offchip_next(const step_offchip *o)
{
    return o->next;
}

int64_t step_offchip_requests(const step_offchip *o)
{
    return o->issued;
}

/* One cycle: a group of every port. Returns whether a port has issued its last request. */
static bool issue_cycle(step_offchip *o, int64_t now)
{
    const int64_t channels = o->machine.memory_channels, interval = o->machine.memory_interval_cycles,
                  group = o->machine.requests_per_cycle;
    int64_t *free_at = o->free_at;
    int64_t offset = o->offset, step = 0, total = 0; /* step: requests of this cycle modulo the channels */
    bool ended = false;
    for (uint32_t i = 0; i < o->count; i++) {
        port *p = &o->ports[i];
        if (p->first > now)
            continue;
        int64_t m = p->left < group ? p->left : group;
        for (int64_t k = 0; k < m; k++) {
            offset += step;
            offset -= offset >= channels ? channels : 0;
            step = step + 1 == channels ? 0 : step + 1;
            int64_t start = free_at[offset] > now + 1 ? free_at[offset] : now + 1;
            free_at[offset] = start + interval;
            p->latest = start > p->latest ? start : p->latest;
        }
        p->left -= m;
        total += m;
        ended = ended || p->left == 0;
    }
    o->offset = (offset + step) % channels;
    o->issued += total;
    o->idle = total == 0;
    return ended;
}

/* After a cycle in which no port was due: none was asked before it. */
static int64_t first_due(const step_offchip *o)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < o->count; i++)
        first = o->ports[i].first < first ? o->ports[i].first : first;
    return first;
}

/* Moves the ports that have issued everything to the answers. */
static uint32_t take_ended(step_offchip *o)
{
    int64_t answer = o->machine.memory_latency_cycles + o->machine.memory_startup_cycles + 1; /* cycles after the start */
    uint32_t kept = 0, ended = 0;
    for (uint32_t i = 0; i < o->count; i++)
        if (o->ports[i].left > 0)
            o->ports[kept++] = o->ports[i];
        else
            o->answers[ended++] = (step_answer){.node = (uint32_t)o->ports[i].order, .cycle = o->ports[i].latest + answer};
    o->count = kept;
    return ended;
}

uint32_t step_offchip_run(step_offchip *o, int64_t end, const step_answer **answers)
{
    bool ended = false;
    while (o->next < end && !ended) {
        ended = issue_cycle(o, o->next);
        o->clock = ++o->next;
        if (o->idle)
            o->next = first_due(o);
    }
    uint32_t count = ended ? take_ended(o) : 0;
    if (o->count == 0)
        o->next = INT64_MAX;
    *answers = o->answers;
    return count;
}
