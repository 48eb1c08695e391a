#include "runtime/step/stall.h"

#include <inttypes.h>

#include "support/order.h"

enum { SHOWN = 8 };

static int by_cost(const void *a, const void *b)
{
    const step_edge_totals *const *x = a, *const *y = b;
    return order_then(ORDER((*y)->starved + (*y)->full, (*x)->starved + (*x)->full), ORDER(*x, *y));
}

void step_stalls_put(strbuf *s, const step_run *r)
{
    const step_edge_totals **edges = ARENA_ARRAY(s->arena, const step_edge_totals *, r->edge_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->edge_count; i++)
        if (r->edges[i].starved + r->edges[i].full > 0)
            edges[count++] = &r->edges[i];
    if (count == 0)
        return;
    order_sort(edges, count, sizeof *edges, by_cost);
    strbuf_puts(s, "  who waits for whom                       for a value  for room  values held\n");
    for (uint32_t i = 0; i < count && i < SHOWN; i++) {
        const step_edge_totals *e = edges[i];
        strbuf_printf(s, "  %-40s %11" PRId64 " %9" PRId64 " %12.1f\n",
                      arena_printf(s->arena, "%s -> %s", r->program->nodes[e->producer].name, r->program->nodes[e->consumer].name),
                      e->starved, e->full, r->cycles > 0 ? (double)e->held / (double)r->cycles : 0);
    }
    if (count > SHOWN)
        strbuf_printf(s, "  %" PRIu32 " more edges, which --report=json lists\n", count - SHOWN);
}

void step_stalls_put_json(strbuf *s, const step_run *r)
{
    strbuf_puts(s, ",\n \"edges\": [");
    for (uint32_t i = 0; i < r->edge_count; i++) {
        const step_edge_totals *e = &r->edges[i];
        strbuf_printf(s,
                      "%s\n  {\"from\": \"%s\", \"output\": %" PRIu32 ", \"to\": \"%s\", \"input\": %" PRIu32 ", \"depth\": %" PRIu32
                      ", \"values\": %" PRId64 ", \"waits_for_value\": %" PRId64 ", \"waits_for_room\": %" PRId64
                      ", \"value_cycles\": %" PRId64 "}",
                      i > 0 ? "," : "", r->program->nodes[e->producer].name, e->producer_port, r->program->nodes[e->consumer].name, e->port,
                      e->depth, e->values, e->starved, e->full, e->held);
    }
    strbuf_puts(s, "]");
}
