#include "passes/room.h"

#include "ir/placed.h"
#include "passes/order.h"
#include "support/budget.h"

/* A memory that some work touches. */
typedef struct occupant {
    tensor_kind kind;
    int64_t bytes;
    uint32_t left; /* pieces of work that touch it and are not taken */
    bool live;     /* one was taken, or it is needed at the end */
    bool stays;    /* it comes in, or lies there from the beginning */
} occupant;

typedef struct touches {
    uint32_t *items; /* occupants, by the index of their operations */
    size_t count, capacity;
} touches;

typedef struct room {
    const order_graph *graph;
    const target *target;
    occupant *occupants; /* by the index of the operation that makes them */
    touches *of;         /* by work */
    uint32_t *followers; /* by work: that are not taken */
    bool *is_taken;
    int64_t load[TENSOR_KIND_COUNT];
} room;

static int64_t bytes_of(const target *t, const op *o)
{
    if (o->stash_bytes > 0)
        return o->stash_bytes;
    int64_t bytes = tensor_unit_bytes(&o->out);
    if (o->out.kind != TENSOR_TRF)
        return bytes;
    int64_t rows = o->out.part[ROW] ? o->out.part[ROW]->size : 1, half = t->trf_bytes / 2;
    return bytes <= target_trf_capacity_bytes(t, TRF_FIRST_HALF) / rows ? half : 2 * half;
}

static void touch(room *r, uint32_t number, const op *memory, arena *a)
{
    touches *w = &r->of[number];
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i] == memory->index)
            return;
    occupant *x = &r->occupants[memory->index];
    if (x->left++ == 0) {
        x->kind = memory->stash_bytes > 0 ? TENSOR_VRF : memory->out.kind;
        x->bytes = bytes_of(r->target, memory);
    }
    ARENA_PUSH(a, w->items, w->count, w->capacity, memory->index);
}

/* Bytes that its memories take besides what is live. */
static void add_touched(const room *r, size_t number, int64_t load[TENSOR_KIND_COUNT])
{
    for (size_t i = 0; i < r->of[number].count; i++) {
        const occupant *x = &r->occupants[r->of[number].items[i]];
        load[x->kind] += x->live ? 0 : x->bytes;
    }
}

static bool has_room(const room *r, size_t number)
{
    int64_t load[TENSOR_KIND_COUNT];
    for (int i = 0; i < TENSOR_KIND_COUNT; i++)
        load[i] = r->load[i];
    add_touched(r, number, load);
    for (size_t i = 0; i < TENSOR_MEMORY_COUNT; i++)
        if (load[tensor_memories[i]] > memory_limit(r->target, tensor_memories[i]))
            return false;
    return true;
}

static void take(room *r, size_t number)
{
    size_t count;
    const uint32_t *before = order_before(r->graph, number, &count);
    add_touched(r, number, r->load);
    r->is_taken[number] = true;
    for (size_t i = 0; i < r->of[number].count; i++) {
        occupant *x = &r->occupants[r->of[number].items[i]];
        x->live = --x->left > 0 || x->stays;
        r->load[x->kind] -= x->live ? 0 : x->bytes;
    }
    for (size_t i = 0; i < count; i++)
        r->followers[before[i]]--;
}

static void begin(room *r, const kernel *k, const work_list *works, arena *a)
{
    size_t count = order_work_count(r->graph);
    for (uint32_t i = 0; i < count; i++) {
        const work *w = &works->items[i];
        for (size_t j = 0; j < w->access_count; j++)
            touch(r, i, w->accesses[j].memory, a);
        size_t befores;
        const uint32_t *before = order_before(r->graph, i, &befores);
        for (size_t j = 0; j < befores; j++)
            r->followers[before[j]]++;
    }
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i], *memory = o->kind == IR_PORT_OUT && op_input(o) ? op_memory(op_input(o)) : o;
        occupant *x = &r->occupants[memory->index];
        bool comes_in = o->kind == IR_PORT_IN;
        if (x->left == 0 || x->live || !(comes_in || o->kind == IR_PORT_OUT))
            continue;
        x->live = true;
        x->stays = comes_in;
        r->load[x->kind] += x->bytes;
    }
}

bool order_for_room(const target *t, kernel *k, arena *a)
{
    arena *scratch = arena_new_inside(a);
    work_list works = kernel_work_list(t, k, scratch);
    room r = {.graph = order_graph_make(k, &works, scratch), .target = t};
    size_t count = r.graph ? order_work_count(r.graph) : 0, left = count;
    const op **issue = ARENA_ARRAY(a, const op *, count + 1);
    r.occupants = ARENA_ARRAY(scratch, occupant, k->op_count + 1);
    r.of = ARENA_ARRAY(scratch, touches, count + 1);
    r.followers = ARENA_ARRAY(scratch, uint32_t, count + 1);
    r.is_taken = ARENA_ARRAY(scratch, bool, count + 1);
    if (r.graph)
        begin(&r, k, &works, scratch);
    for (bool found = true; left > 0 && found;) {
        found = false;
        for (size_t i = count; i-- > 0 && !found;) {
            budget_spend(scratch, 1);
            if (r.is_taken[i] || r.followers[i] > 0 || !has_room(&r, i))
                continue;
            take(&r, i);
            issue[--left] = order_work(r.graph, i);
            found = true;
        }
    }
    if (count > 0 && left == 0) {
        k->issue = issue;
        k->issue_count = count;
        k->moved_for_room = true;
    }
    arena_free(scratch);
    return k->issue != NULL;
}
