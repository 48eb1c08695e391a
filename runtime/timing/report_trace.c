/* A schedule as Chrome's trace events, which Perfetto and chrome://tracing open: one row per engine, one cycle per
 * microsecond, because the format counts in microseconds. */
#include <jansson.h>
#include <stdlib.h>

#include "runtime/timing/report_parts.h"
#include "support/json_text.h"

/* A row of a viewer. The contexts come first: they say when a command runs; the engines say for how long of it they work. */
static int row_of_context(context c)
{
    return 1 + (int)c;
}

static int row_of_engine(engine e)
{
    return 10 + (int)e;
}

static void name_row(json_t *events, int row, const char *name)
{
    json_array_append_new(
        events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid", 1, "tid", row, "args", "name", name));
    json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "name", "thread_sort_index", "ph", "M", "pid", 1, "tid", row,
                                            "args", "sort_index", row));
}

static void add_span(json_t *events, int row, int64_t start, int64_t cycles, const schedule_item *item, arena *a)
{
    const char *name = arena_printf(a, "%s, line %u", report_item_name(item, a), report_item_first(item)->line);
    json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:{s:s, s:s, s:i, s:I}}", "name", name, "ph", "X", "pid", 1,
                                            "tid", row, "ts", (json_int_t)start, "dur", (json_int_t)cycles, "args", "formula",
                                            report_item_formula(item, a), "binds", duration_bound_name(item->alone.bound), "line",
                                            (int)report_item_first(item)->line, "cycles", (json_int_t)cycles));
}

const char *report_trace(const report *r, arena *a)
{
    json_t *events = json_array();
    json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:{s:s}}", "name", "process_name", "ph", "M", "pid", 1, "args", "name",
                                            r->schedule.kernel->name));
    for (int c = 0; c < 3; c++)
        name_row(events, row_of_context((context)c), arena_printf(a, "%s context", context_name((context)c)));
    for (int e = 0; e < ENGINE_COUNT; e++)
        for (size_t i = 0; i < 2; i++)
            if (i == 0 || (e != ENGINE_DMA && r->schedule.busy[CONTEXT_SUB]))
                name_row(events, row_of_engine((engine)e) + 20 * (int)i,
                         arena_printf(a, "%s engine%s", engine_name((engine)e), i ? ", sub" : ""));
    for (size_t i = 0; i < r->schedule.count; i++) {
        const schedule_item *item = &r->schedule.items[i];
        int64_t cycles = item->end - item->start;
        add_span(events, row_of_context(item->context), item->start, cycles, item, a);
        for (int e = 0; e < ENGINE_COUNT; e++) {
            int64_t busy = item->alone.busy[e] < cycles ? item->alone.busy[e] : cycles;
            int row = row_of_engine((engine)e) + (item->context == CONTEXT_SUB ? 20 : 0);
            if (busy > 0)
                add_span(events, row, item->start, busy, item, a);
        }
    }
    json_t *root = json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ns");
    return json_dump_text(root, JSON_INDENT(1), a);
}
