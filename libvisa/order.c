#include "libvisa/order.h"

#include <string.h>

#include "passes/allocate.h"
#include "passes/order.h"
#include "runtime/timing/price.h"

/* Cycles of the TRF that are followed for one piece of work, where a store and a contraction hold each other up: milliseconds. What takes
 * longer keeps the order of the text. */
static const int64_t FOLLOWED_CYCLES = INT64_C(1) << 18;

/* How far work may come before its place in the text. The further, the longer memories live: what no longer fits is tried with less. */
static const size_t windows[] = {SIZE_MAX, 16, 4, 1};
enum { WINDOWS = sizeof windows / sizeof *windows };

/* Where the memory of an operation lies. */
typedef struct place {
    int64_t address; /* bytes */
    trf_address half;
} place;

typedef struct pricing {
    pass_context *context;
    const emit_context *emit;
    kernel *kernel;
    work_list works; /* of the kernel as it stands */
    const order_graph *graph;
    arena *arena;
    const op **base;             /* the order that it comes with; NULL: the text's */
    place *settled;              /* by the index of an operation: what its configuration was derived for; NULL: not known */
    const binary_kernel *binary; /* of the kernel as it stands; NULL: none was made */
    price price;
    known_costs *known; /* of its copies, in whatever order */
} pricing;

/* The schedule of the kernel as it stands; false: it cannot be followed. */
static bool measure(pricing *x)
{
    emit_context e = *x->emit;
    e.arena = e.arena ? e.arena : x->arena;
    binary_kernel *made = ARENA_NEW(e.arena, binary_kernel);
    emit_kernel(&e, x->kernel, &x->works, made);
    x->binary = made;
    return price_make(e.target, x->binary, TIMING_DOCUMENTED, FOLLOWED_CYCLES, x->known, x->arena, &x->price);
}

static size_t command_count(const op *o)
{
    size_t pieces = 0;
    for (const dma_config *d = o->dma; d; d = d->next)
        pieces++;
    return work_context(o) == CONTEXT_DMA ? pieces : 1;
}

/* Cycles of each piece of work alone, by the index of its last operation; a copy has several commands. */
static int64_t *durations(const pricing *x)
{
    size_t next[CONTEXT_DMA + 1] = {0}, count = order_work_count(x->graph);
    int64_t *cycles = ARENA_ARRAY(x->arena, int64_t, x->kernel->op_count + 1);
    for (size_t i = 0; i < count; i++) {
        const op *o = order_work(x->graph, i);
        context c = work_context(o);
        for (size_t left = command_count(o); left > 0 && next[c] < x->price.count[c]; left--)
            cycles[o->index] += x->price.each[c][next[c]++];
    }
    return cycles;
}

static place *places(const pricing *x)
{
    place *all = ARENA_ARRAY(x->arena, place, x->kernel->op_count + 1);
    for (size_t i = 0; i < x->kernel->op_count; i++)
        all[i] = (place){x->kernel->ops[i]->out.address, x->kernel->ops[i]->out.trf_address};
    return all;
}

static bool same_places(const pricing *x, const place *a, const place *b)
{
    for (size_t i = 0; i < x->kernel->op_count; i++)
        if (a[i].address != b[i].address || a[i].half != b[i].half)
            return false;
    return true;
}

/* Memory for the order at hand; false: it does not fit, or would hold other configurations up. Where no memory moves, what was derived
 * for it stays. */
static bool settle(pricing *x)
{
    if (!allocate_again(x->context, x->kernel))
        return false;
    place *now = places(x);
    if (x->settled && same_places(x, x->settled, now))
        return true;
    x->settled = pipeline_run_again(x->context, x->kernel) ? now : NULL;
    return x->settled != NULL;
}

/* Issues in that order from now on. */
static bool take(pricing *x, const op **issue)
{
    x->kernel->issue = issue;
    x->kernel->issue_count = issue ? order_work_count(x->graph) : 0;
    if (!settle(x))
        return false;
    x->works = kernel_work_list(x->context->target, x->kernel, x->arena);
    return true;
}

/* The order that ends first with memory placed for it, by the durations alone; NULL: none ends before `length`. In the kernel's arena.
 * Where none does that is free to move anything anywhere, none is tried. */
static const op **best_order(pricing *x, const int64_t *cycles, int64_t length)
{
    size_t count = order_work_count(x->graph), bytes = count * sizeof(const op *);
    const op **best = NULL, **issue = ARENA_ARRAY(x->context->arena, const op *, count), **spare = NULL;
    bool is_shorter = false;
    int64_t least = order_least(x->graph, cycles, x->arena);
    for (int w = 0; w < WINDOWS && (w == 0 || is_shorter) && length > least; w++)
        for (order_rule rule = ORDER_TEXT + 1; rule < ORDER_RULES && (w == 0 || windows[w] + 1 < count) && length > least; rule++) {
            if (order_choose(x->graph, cycles, rule, windows[w], x->arena, issue) >= length)
                continue;
            is_shorter = true;
            if ((best && memcmp(best, issue, bytes) == 0) || !take(x, issue))
                continue;
            int64_t end = order_length(x->kernel, &x->works, cycles, x->arena);
            if (end >= length)
                continue;
            length = end;
            spare = best ? best : ARENA_ARRAY(x->context->arena, const op *, count);
            best = issue;
            issue = spare;
        }
    return best;
}

static void try_orders(pricing *x)
{
    kernel *k = x->kernel;
    const int64_t *cycles = durations(x);
    const binary_kernel *first = x->binary;
    const place *before = x->settled;
    const op **best = best_order(x, cycles, order_length(k, &x->works, cycles, x->arena));
    if (best && (k->issue == best || take(x, best)) && measure(x) && x->price.cycles < k->text_cycles) {
        k->cycles = x->price.cycles;
        return;
    }
    if (k->issue == x->base)
        return; /* none was tried */
    bool as_it_was = take(x, x->base) && same_places(x, before, x->settled);
    x->binary = as_it_was ? first : NULL;
}

const binary_kernel *kernel_order(pass_context *p, const emit_context *e, known_costs *known, kernel *k)
{
    arena *scratch = arena_new_inside(p->arena);
    pricing x = {.context = p, .emit = e, .kernel = k, .arena = scratch, .base = k->issue, .known = known};
    x.works = kernel_work_list(p->target, k, scratch);
    x.graph = order_graph_make(k, &x.works, scratch);
    if (x.graph && measure(&x)) {
        x.settled = places(&x);
        k->text_cycles = k->cycles = x.price.cycles;
        try_orders(&x);
    }
    arena_free(scratch);
    return e->arena ? x.binary : NULL;
}
