#include "ir/work.h"

static bool ends_chain(const op *o)
{
    return op_kind_is(o->kind, ENDS_CHAIN) && (!op_kind_is(o->kind, IS_PORT) || tensor_kind_is_stream(o->out.kind));
}

bool op_ends_work(const op *o)
{
    return ends_chain(o) || o->dma != NULL;
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
    memory_access x = {.memory = op_memory(o), .kind = of->kind, .begin = of->address, .write = write};
    if (of->kind == TENSOR_TRF) {
        int64_t half = t->trf_bytes / 2;
        x.begin = of->trf_address == TRF_SECOND_HALF ? half : 0;
        x.end = of->trf_address == TRF_FIRST_HALF ? half : 2 * half;
    } else if (of->kind == TENSOR_HBM || of->kind == TENSOR_DM) {
        x.end = x.begin +
                (o->kind == IR_VIEW ? (live_positions(of->part[ELEMENT]) * dtype_row_of(of->dtype)->bits + 7) / 8 : tensor_unit_bytes(of));
    } else {
        return;
    }
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
}

void work_make(const target *t, const op *last, arena *a, work *out)
{
    *out = (work){.first = last, .last = last, .context = last->dma ? CONTEXT_DMA : last->context};
    add_operands(t, out, a, last);
    while (!last->dma && !op_kind_is(out->first->kind, BEGINS_CHAIN)) {
        out->first = op_input(out->first);
        add_operands(t, out, a, out->first);
    }
}
