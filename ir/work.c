#include "ir/work.h"

static bool ends_chain(const op *o)
{
    return op_kind_is(o->kind, ENDS_CHAIN) && (!op_kind_is(o->kind, IS_PORT) || tensor_kind_is_stream(o->out.kind));
}

/* Memory that begins as zeros (passes/coverage.c): the DMA writes them. */
static bool is_zero_fill(const op *o)
{
    return o->kind == IR_ALLOC && o->dma;
}

static bool is_copy(const op *o)
{
    return op_row_of(o->kind)->contexts == IN_DMA || is_zero_fill(o);
}

bool op_ends_work(const op *o)
{
    return ends_chain(o) || is_copy(o);
}

const tensor_kind tensor_memories[] = {
#define MEMORY(symbol) symbol,
#include "ir/tensor.def"
};

bool tensor_kind_is_memory(tensor_kind kind)
{
    bool is_memory = false;
    for (size_t i = 0; i < TENSOR_MEMORY_COUNT; i++)
        is_memory = is_memory || tensor_memories[i] == kind;
    return is_memory;
}

bool tensor_kind_has_address(tensor_kind kind)
{
    return tensor_kind_is_memory(kind) && kind != TENSOR_TRF;
}

bool op_makes_memory(const op *o)
{
    bool writes = false;
    for (size_t i = 0; i < o->operand_count; i++)
        writes = writes || operand_access_of(o->operands[i].role) == WRITES;
    return tensor_kind_is_memory(o->out.kind) && o->kind != IR_PORT_OUT && o->kind != IR_VIEW && o->kind != IR_RESHAPE && !writes;
}

typedef struct issue_list {
    const op **items;
    size_t count;
    bool *filled; /* by operation: its zeros are in the list */
} issue_list;

/* Zeros are written right before the memory is used: until there its bytes may be another one's. */
static void add_fills(issue_list *l, const op *o)
{
    for (size_t i = 0; i < o->operand_count; i++) {
        const op *memory = tensor_kind_is_memory(o->operands[i].of->out.kind) ? op_memory(o->operands[i].of) : NULL;
        if (!memory || !is_zero_fill(memory) || l->filled[memory->index])
            continue;
        l->filled[memory->index] = true;
        l->items[l->count++] = memory;
    }
}

static void add_work(issue_list *l, const op *o)
{
    for (const op *stage = o; stage; stage = is_copy(o) || op_kind_is(stage->kind, BEGINS_CHAIN) ? NULL : op_input(stage))
        add_fills(l, stage);
    l->items[l->count++] = o;
}

/* Is it known of all zeros that are written when they are? */
static bool has_fills(const kernel *k)
{
    size_t fills = 0;
    for (size_t i = 0; i < k->op_count; i++)
        fills += is_zero_fill(k->ops[i]);
    for (size_t i = 0; k->issue && i < k->issue_count && fills > 0; i++)
        fills -= is_zero_fill(k->issue[i]);
    return fills == 0;
}

size_t kernel_works(const kernel *k, arena *a, const op *const **out)
{
    *out = k->issue;
    if (k->issue && has_fills(k))
        return k->issue_count;
    issue_list l = {ARENA_ARRAY(a, const op *, k->op_count + 1), 0, ARENA_ARRAY(a, bool, k->op_count + 1)};
    for (size_t i = 0; k->issue && i < k->issue_count; i++)
        add_work(&l, k->issue[i]);
    for (size_t i = 0; i < k->op_count && !k->issue; i++)
        if (op_ends_work(k->ops[i]) && !is_zero_fill(k->ops[i]))
            add_work(&l, k->ops[i]);
    for (size_t i = 0; i < k->op_count; i++) /* nothing is ever written there */
        if (is_zero_fill(k->ops[i]) && !l.filled[i])
            l.items[l.count++] = k->ops[i];
    *out = l.items;
    return l.count;
}

/* One past the last position that holds an element: a tile does not own what is after it. */
static int64_t live_positions(const mapping *m)
{
    int64_t last = 0, stride = 1;
    for (size_t i = m->count; i-- > 0;) {
        last += (m->factors[i].live - 1) * stride;
        stride *= m->factors[i].extent;
    }
    return last + 1;
}

/* The memory that `o` makes or is a view of; a stream is none. */
static void add_access(const target *t, work *w, arena *a, const op *o, bool write)
{
    const tensor *of = &o->out;
    if (of->kind != TENSOR_TRF && !tensor_kind_has_address(of->kind))
        return;
    memory_access x = {.memory = op_memory(o), .kind = of->kind, .begin = of->address, .write = write};
    if (of->kind == TENSOR_TRF) {
        int64_t half = t->trf_bytes / 2;
        x.begin = of->trf_address == TRF_SECOND_HALF ? half : 0;
        x.end = of->trf_address == TRF_FIRST_HALF ? half : 2 * half;
    } else {
        x.end = x.begin +
                (o->kind == IR_VIEW ? (live_positions(of->part[ELEMENT]) * dtype_row_of(of->dtype)->bits + 7) / 8 : tensor_unit_bytes(of));
        for (const run_start *s = o->starts; s; s = s->outer) /* nobody knows which position: all of them */
            x.end += (s->positions - 1) * s->stride * dtype_row_of(of->dtype)->bits / 8;
    }
    ARENA_PUSH(a, w->accesses, w->access_count, w->access_capacity, x);
}

/* What is set aside lies at the end of the VRF while its pass runs. */
static void add_stash(const target *t, work *w, arena *a, const op *o)
{
    memory_access x = {
        .memory = o, .kind = TENSOR_VRF, .begin = t->vrf_bytes - o->stash_bytes, .end = t->vrf_bytes, .write = o->stash_bytes > 0};
    if (x.write)
        ARENA_PUSH(a, w->accesses, w->access_count, w->access_capacity, x);
}

/* What an operation makes is written too, unless it writes into what is there. */
static void add_operands(const target *t, work *w, arena *a, const op *o)
{
    bool makes = true;
    for (size_t i = 0; i < o->operand_count; i++) {
        bool write = operand_access_of(o->operands[i].role) == WRITES;
        makes = makes && !write;
        add_access(t, w, a, o->operands[i].of, write);
    }
    if (makes)
        add_access(t, w, a, o, true);
    add_stash(t, w, a, o);
}

context work_context(const op *last)
{
    return is_copy(last) ? CONTEXT_DMA : last->context;
}

const op *work_pin(const work *w)
{
    return w->last->after;
}

void work_make(const target *t, const op *last, arena *a, work *out)
{
    bool copy = is_copy(last);
    *out = (work){.first = last, .last = last, .context = work_context(last)};
    add_operands(t, out, a, last);
    while (!copy && !op_kind_is(out->first->kind, BEGINS_CHAIN)) {
        out->first = op_input(out->first);
        add_operands(t, out, a, out->first);
    }
}

work_list kernel_work_list(const target *t, const kernel *k, arena *a)
{
    const op *const *ops;
    size_t count = kernel_works(k, a, &ops);
    work *items = arena_alloc_unset(a, count * sizeof *items);
    for (size_t i = 0; i < count; i++)
        work_make(t, ops[i], a, &items[i]);
    return (work_list){items, count};
}

/* ---- live ranges ---- */

static void touch(live_range *ranges, const op *o, uint32_t step, const op *by)
{
    live_range *r = &ranges[op_memory(o)->index];
    if (r->first > step) {
        r->first = step;
        r->first_use = by;
    }
    if (!r->last_use || r->last <= step) {
        r->last = step;
        r->last_use = by;
    }
}

static void touch_operands(live_range *ranges, const op *o, uint32_t step)
{
    for (size_t i = 0; i < o->operand_count; i++)
        if (tensor_kind_is_memory(o->operands[i].of->out.kind))
            touch(ranges, o->operands[i].of, step, o);
    if (op_makes_memory(o) || o->stash_bytes > 0)
        touch(ranges, o, step, o);
}

/* What is returned is there at the end, whoever touched it last. */
static void outlast(live_range *r, uint32_t end, const op *port)
{
    if (!r->last_use)
        *r = (live_range){0, end, port, port};
    r->last = end;
}

const live_range *kernel_live_ranges(const kernel *k, arena *a, uint32_t *work_count)
{
    const op *const *works;
    uint32_t count = *work_count = (uint32_t)kernel_works(k, a, &works);
    live_range *ranges = ARENA_ARRAY(a, live_range, k->op_count + 1);
    for (size_t i = 0; i < k->op_count; i++)
        ranges[i].first = UINT32_MAX;
    for (uint32_t step = 0; step < count; step++) {
        const op *o = works[step];
        touch_operands(ranges, o, step);
        while (!is_copy(o) && !op_kind_is(o->kind, BEGINS_CHAIN)) {
            o = op_input(o);
            touch_operands(ranges, o, step);
        }
    }
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        if (o->kind == IR_PORT_IN && tensor_kind_is_memory(o->out.kind))
            ranges[i] = (live_range){0, count, o, ranges[i].last_use ? ranges[i].last_use : o};
        else if (o->kind == IR_PORT_OUT && tensor_kind_is_memory(o->out.kind))
            outlast(&ranges[op_memory(op_input(o))->index], count, o);
    }
    for (size_t i = 0; i < k->op_count; i++)
        if (!ranges[i].last_use)
            ranges[i] = (live_range){0, 0, k->ops[i], k->ops[i]};
    return ranges;
}
