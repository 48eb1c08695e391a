#include "runtime/step/record.h"

#include <string.h>

enum { CELLS = 1 << 20, BUCKETS_LEAST = 64, BUCKETS_MOST = 1 << 14 };

const char *const step_state_names[STEP_STATES] = {"busy", "waits for a value", "waits for room", "waits for memory",
                                                   "waits for the machine"};

typedef struct queue_bucket {
    int64_t change, area; /* values that came less those that went; and for how many cycles of the bucket, summed */
} queue_bucket;

struct step_record {
    uint32_t nodes, queues, buckets, used;
    int64_t width;
    int64_t (*states)[STEP_STATES]; /* by node and bucket */
    queue_bucket *fills;            /* by queue and bucket */
};

step_record *step_record_new(uint32_t nodes, uint32_t queues, arena *a)
{
    step_record *r = ARENA_NEW(a, step_record);
    uint32_t rows = nodes + queues + 1, buckets = BUCKETS_LEAST;
    while (buckets < BUCKETS_MOST && (uint64_t)2 * buckets * rows <= CELLS)
        buckets *= 2;
    *r = (step_record){.nodes = nodes, .queues = queues, .buckets = buckets, .width = 1};
    r->states = arena_alloc(a, (size_t)nodes * buckets * sizeof *r->states + 1);
    r->fills = ARENA_ARRAY(a, queue_bucket, (size_t)queues * buckets + 1);
    return r;
}

static void halve(step_record *r)
{
    uint32_t half = r->buckets / 2;
    for (uint32_t n = 0; n < r->nodes; n++) {
        int64_t(*s)[STEP_STATES] = r->states + (size_t)n * r->buckets;
        for (uint32_t i = 0; i < half; i++)
            for (int k = 0; k < STEP_STATES; k++)
                s[i][k] = s[2 * i][k] + s[2 * i + 1][k];
        memset(s + half, 0, half * sizeof *s);
    }
    for (uint32_t q = 0; q < r->queues; q++) {
        queue_bucket *f = r->fills + (size_t)q * r->buckets;
        for (uint32_t i = 0; i < half; i++)
            f[i] = (queue_bucket){f[2 * i].change + f[2 * i + 1].change, f[2 * i].area + f[2 * i].change * r->width + f[2 * i + 1].area};
        memset(f + half, 0, half * sizeof *f);
    }
    r->width *= 2;
    r->used = (r->used + 1) / 2;
}

static uint32_t bucket_of(step_record *r, int64_t cycle)
{
    while (cycle / r->width >= r->buckets)
        halve(r);
    uint32_t bucket = (uint32_t)(cycle / r->width);
    r->used = bucket + 1 > r->used ? bucket + 1 : r->used;
    return bucket;
}

void step_record_node(step_record *r, uint32_t node, step_state state, int64_t from, int64_t to)
{
    if (to <= from)
        return;
    bucket_of(r, to - 1);
    int64_t(*s)[STEP_STATES] = r->states + (size_t)node * r->buckets;
    for (int64_t at = from; at < to;) {
        int64_t end = (at / r->width + 1) * r->width;
        end = end < to ? end : to;
        s[at / r->width][state] += end - at;
        at = end;
    }
}

void step_record_queue(step_record *r, uint32_t queue, int64_t cycle, int change)
{
    uint32_t bucket = bucket_of(r, cycle);
    queue_bucket *f = r->fills + (size_t)queue * r->buckets + bucket;
    f->change += change;
    f->area += change * ((bucket + 1) * r->width - cycle);
}

int64_t step_record_width(const step_record *r)
{
    return r->width;
}

uint32_t step_record_buckets(const step_record *r)
{
    return r->used;
}

int64_t step_record_cycles(const step_record *r, uint32_t node, step_state state, uint32_t bucket)
{
    return r->states[(size_t)node * r->buckets + bucket][state];
}

step_state step_record_state(const step_record *r, uint32_t node, uint32_t bucket)
{
    const int64_t *s = r->states[(size_t)node * r->buckets + bucket];
    step_state most = STEP_BUSY;
    int64_t all = 0;
    for (int k = 0; k < STEP_STATES; k++) {
        all += s[k];
        most = s[k] > s[most] ? (step_state)k : most;
    }
    return r->width - all > s[most] ? STEP_STATES : most;
}

double step_record_fill(const step_record *r, uint32_t queue, uint32_t bucket, int64_t *held)
{
    const queue_bucket *f = &r->fills[(size_t)queue * r->buckets + bucket];
    int64_t area = *held * r->width + f->area;
    *held += f->change;
    return (double)area / (double)r->width;
}
