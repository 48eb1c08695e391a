#include "runtime/machine/origin.h"

#include "runtime/machine/walk.h"
#include "support/order.h"

enum { MOST_STEPS = 1 << 20, HBM = 0, DM = 1 };

/* Bytes [begin, begin + bytes) came from `from` on; of several the one with the highest `order` counts. */
typedef struct piece {
    int64_t begin, bytes, from, order;
    const command *command;
} piece;

typedef struct pieces {
    piece *items;
    size_t count, capacity;
} pieces;

struct origin_map {
    const target *target;
    pieces copies;  /* HBM address -> DM address */
    pieces commits; /* DM address in a slice -> element of the chain */
    const binary_kernel *kernel;
};

static bool read_walk(const command *c, command_column size, command_column stride, int64_t base, walk *w)
{
    *w = (walk){.count = c->entry_count, .base = base};
    for (unsigned i = 0; i < c->entry_count; i++) {
        w->size[i] = command_entry(c, i, size);
        w->stride[i] = command_entry(c, i, stride);
    }
    walk_address low, high;
    walk_bounds(w, &low, &high);
    return low >= 0 && high < (walk_address)1 << 48;
}

static bool add_copy(pieces *p, const command *c, int64_t order, arena *a)
{
    walk from, to;
    int64_t steps;
    if (!read_walk(c, DMA_ENTRY_SIZE, DMA_ENTRY_SOURCE_STRIDE, command_get(c, DMA_SOURCE_BASE), &from) ||
        !read_walk(c, DMA_ENTRY_SIZE, DMA_ENTRY_DESTINATION_STRIDE, command_get(c, DMA_DESTINATION_BASE), &to) ||
        !walk_positions(&from, &steps) || steps > MOST_STEPS - (int64_t)p->count)
        return false;
    walk_cursor f, t;
    walk_start(&from, &f);
    walk_start(&to, &t);
    for (int64_t i = 0; i < steps; i++) {
        piece x = {walk_step(&to, &t), command_get(c, DMA_PACKET_BYTES), walk_step(&from, &f), order, c};
        ARENA_PUSH(a, p->items, p->count, p->capacity, x);
    }
    return true;
}

static bool add_commit(pieces *p, const command *c, int64_t order, arena *a)
{
    int64_t bits = dtype_row_of((dtype)command_get(c, COMMIT_DTYPE))->bits, steps;
    walk w;
    if (bits < 8 || !read_walk(c, COMMIT_ENTRY_SIZE, COMMIT_ENTRY_STRIDE, 0, &w) || !walk_positions(&w, &steps) ||
        steps > MOST_STEPS - (int64_t)p->count)
        return false;
    walk_cursor at;
    walk_start(&w, &at);
    for (int64_t i = 0; i < steps; i++) {
        piece x = {command_get(c, COMMIT_BASE) + walk_step(&w, &at) * (bits / 8), bits / 8, i, order, c};
        ARENA_PUSH(a, p->items, p->count, p->capacity, x);
    }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return order_then(ORDER(x->begin, y->begin), ORDER(x->order, y->order));
}

origin_map *origin_map_new(const target *t, const binary_kernel *k, arena *a)
{
    origin_map *m = ARENA_NEW(a, origin_map);
    m->target = t;
    m->kernel = k;
    for (int c = 0; c < 3; c++)
        for (size_t i = 0; i < k->streams[c].count; i++) {
            const command *x = &k->streams[c].commands[i];
            bool copy = x->op == OP_DMA && command_get(x, DMA_SOURCE) == DM && command_get(x, DMA_DESTINATION) == HBM;
            if ((copy && !add_copy(&m->copies, x, (int64_t)i, a)) || (x->op == OP_COMMIT && !add_commit(&m->commits, x, (int64_t)i, a)))
                return NULL;
        }
    order_sort(m->copies.items, m->copies.count, sizeof *m->copies.items, by_begin);
    order_sort(m->commits.items, m->commits.count, sizeof *m->commits.items, by_begin);
    return m;
}

/* The last piece that begins at or before the address, if it reaches it. */
static const piece *piece_at(const pieces *p, int64_t address)
{
    size_t low;
    ORDER_FIRST(&low, p->count, i, p->items[i].begin <= address);
    return low && address - p->items[low - 1].begin < p->items[low - 1].bytes ? &p->items[low - 1] : NULL;
}

/* The accumulate in the chain that ends at a commit, or NULL. */
static const command *accumulate_of(const command *commit)
{
    const command *c = commit - 1;
    while (c->op != OP_ACCUMULATE && c->op != OP_FETCH && c->op != OP_STREAM_IN && c->op != OP_GENERATE)
        c--;
    return c->op == OP_ACCUMULATE ? c : NULL;
}

bool origin_of(const origin_map *m, int64_t hbm_address, origin *out)
{
    const piece *copy = piece_at(&m->copies, hbm_address);
    if (!copy)
        return false;
    int64_t dm = copy->from + hbm_address - copy->begin, window = m->target->dm_slice_stride_bytes;
    *out = (origin){.slice = dm / window, .time = -1, .lane = -1, .row = -1};
    const piece *element = piece_at(&m->commits, dm % window);
    if (!element)
        return true;
    int64_t lanes = command_get(element->command, COMMIT_IN_BYTES) / (command_get(element->command, COMMIT_CAST) ? 4 : element->bytes);
    const command *sums = accumulate_of(element->command);
    out->time = element->from / lanes;
    out->lane = element->from % lanes;
    if (sums && command_get(sums, ACCUMULATE_KIND) == 0 && command_get(sums, ACCUMULATE_ROWS) == m->target->rows)
        out->row = out->lane;
    return true;
}
