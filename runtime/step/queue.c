#include "runtime/step/queue.h"

#include <stdlib.h>

static void *need(void *memory, arena *guard)
{
    if (!memory)
        longjmp(*arena_guard(guard), 1);
    return memory;
}

void step_queue_init(step_queue *q, uint32_t depth, uint32_t producer, uint32_t consumer, arena *guard)
{
    *q = (step_queue){.depth = depth, .producer = producer, .consumer = consumer};
    if (depth > 0)
        q->taken = need(calloc(depth, sizeof *q->taken), guard);
}

void step_queue_free(step_queue *q)
{
    free(q->items);
    free(q->taken);
}

static void grow(step_queue *q, arena *guard)
{
    uint32_t capacity = q->capacity ? 2 * q->capacity : 4;
    step_queue_item *items = need(malloc(capacity * sizeof *items), guard);
    for (uint32_t i = 0; i < q->count; i++)
        items[i] = q->items[(q->head + i) & (q->capacity - 1)];
    free(q->items);
    q->items = items;
    q->head = 0;
    q->capacity = capacity;
}

void step_queue_push(step_queue *q, step_token token, int64_t visible, arena *guard)
{
    if (q->count == q->capacity)
        grow(q, guard);
    q->items[(q->head + q->count++) & (q->capacity - 1)] = (step_queue_item){.token = token, .visible = visible};
    q->sent_values += token.kind == STEP_VALUE;
}

step_token step_queue_pop(step_queue *q, int64_t now)
{
    step_token token = q->items[q->head].token;
    q->head = (q->head + 1) & (q->capacity - 1);
    q->count--;
    if (token.kind != STEP_VALUE)
        return token;
    if (q->depth > 0)
        q->taken[q->taken_values % q->depth] = now;
    q->taken_values++;
    return token;
}
