/* The record of a run as Chrome's trace events, which Perfetto and chrome://tracing open. */
#include <inttypes.h>

#include "runtime/step/stall.h"

/* Neighbouring buckets in one state are one span. */
static void put_node(strbuf *s, const step_run *r, uint32_t node)
{
    int64_t width = step_record_width(r->record);
    uint32_t buckets = step_record_buckets(r->record);
    for (uint32_t from = 0, to; from < buckets; from = to) {
        step_state state = step_record_state(r->record, node, from);
        int64_t busy = 0;
        for (to = from; to < buckets && step_record_state(r->record, node, to) == state; to++)
            busy += step_record_cycles(r->record, node, STEP_BUSY, to);
        if (state != STEP_STATES)
            strbuf_printf(s,
                          ",\n{\"name\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %" PRIu32 ", \"ts\": %" PRId64 ", \"dur\": %" PRId64
                          ", \"args\": {\"busy cycles\": %" PRId64 ", \"line\": %" PRIu32 "}}",
                          step_state_names[state], node + 1, from * width, (to - from) * width, busy, r->program->nodes[node].line);
    }
}

static void put_queue(strbuf *s, const step_run *r, uint32_t edge)
{
    const step_edge_totals *e = &r->edges[edge];
    int64_t held = 0, width = step_record_width(r->record);
    double before = -1;
    for (uint32_t b = 0; b < step_record_buckets(r->record); b++) {
        double fill = step_record_fill(r->record, edge, b, &held);
        if (fill > before || fill < before)
            strbuf_printf(s,
                          ",\n{\"name\": \"%s.%" PRIu32 " to %s.%" PRIu32 "\", \"ph\": \"C\", \"pid\": 2, \"ts\": %" PRId64
                          ", \"args\": {\"values\": %.3g}}",
                          r->program->nodes[e->producer].name, e->producer_port, r->program->nodes[e->consumer].name, e->port, b * width,
                          fill);
        before = fill;
    }
}

const char *step_trace_text(const step_run *r)
{
    strbuf s;
    strbuf_init(&s, r->arena);
    strbuf_printf(&s,
                  "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"program\": \"%s\", \"cycles\": %" PRId64
                  ", \"cycles of a step\": %" PRId64
                  "},\n\"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"%s\"}}"
                  ",\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 2, \"args\": {\"name\": \"queues\"}}",
                  r->program->name, r->cycles, step_record_width(r->record), r->program->name);
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        strbuf_printf(&s,
                      ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %" PRIu32 ", \"args\": {\"name\": \"%s\"}}"
                      ",\n{\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": 1, \"tid\": %" PRIu32
                      ", \"args\": {\"sort_index\": %" PRIu32 "}}",
                      i + 1, r->program->nodes[i].name, i + 1, i + 1);
        put_node(&s, r, i);
    }
    for (uint32_t i = 0; i < r->edge_count; i++)
        put_queue(&s, r, i);
    strbuf_puts(&s, "]}\n");
    return s.text;
}
