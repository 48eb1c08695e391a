/* The bounded queues between operators, with simulated time.
 *
 * The one idea: a token is visible to its reader from a time on, and a place is free again one cycle after its value was taken; what
 * holds for two operators in the same cycle so never depends on which of them is simulated first. Only values take places: a stop or
 * the end belongs to the value before it (the simulator that the published figures come from fuses them). */
#ifndef VISA_RUNTIME_STEP_QUEUE_H
#define VISA_RUNTIME_STEP_QUEUE_H

#include "runtime/step/value.h"

typedef struct step_queue_item {
    step_token token;
    int64_t visible; /* cycle */
} step_queue_item;

typedef struct step_queue {
    step_queue_item *items; /* a ring of `capacity` (a power of two) items */
    uint32_t head, count, capacity;
    uint32_t depth; /* values; 0: any number */
    int64_t *taken; /* a ring of `depth` cycles: when values were taken */
    uint64_t sent_values, taken_values;
    uint32_t producer, consumer; /* nodes */
    int64_t starved, full;       /* cycles that its consumer waited for a value, its producer for room */
    int64_t held;                /* cycles that values lay in it, summed; while some do: less */
} step_queue;

void step_queue_init(step_queue *q, uint32_t depth, uint32_t producer, uint32_t consumer, arena *guard);
void step_queue_free(step_queue *q);

/* The cycle from which on a value may be sent; INT64_MAX while the queue is full. */
static inline int64_t step_queue_room(const step_queue *q)
{
    if (q->depth == 0 || q->sent_values < q->depth)
        return 0;
    uint64_t freed = q->sent_values - q->depth; /* the value that has to have left */
    return freed < q->taken_values ? q->taken[freed % q->depth] + 1 : INT64_MAX;
}

void step_queue_push(step_queue *q, step_token token, int64_t visible, arena *guard);

/* NULL when the queue is empty. */
static inline const step_queue_item *step_queue_head(const step_queue *q)
{
    return q->count > 0 ? &q->items[q->head] : NULL;
}

/* The token after the head; NULL when none has been sent. */
static inline const step_queue_item *step_queue_second(const step_queue *q)
{
    return q->count > 1 ? &q->items[(q->head + 1) & (q->capacity - 1)] : NULL;
}

/* Takes the head; its reference goes to the caller. */
step_token step_queue_pop(step_queue *q, int64_t now);

#endif
