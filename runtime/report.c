#include "runtime/report.h"

#include <jansson.h>
#include <stdlib.h>

#include "runtime/schedule.h"

enum { REPORT_FORMAT_VERSION = 1 };

static const command *last_of(const schedule_item *item)
{
    return &item->commands[item->count - 1];
}

/* "fetch .. trf_store", "dma" */
static const char *item_name(const schedule_item *item, arena *a)
{
    const char *first = command_row_of(item->commands->op)->name;
    return item->count == 1 ? first : arena_printf(a, "%s .. %s", first, command_row_of(last_of(item)->op)->name);
}

static const char *item_formula(const schedule_item *item, arena *a)
{
    const char *text = duration_formula(&item->alone, a);
    return item->trf_store ? arena_printf(a, "%s + %lld stalled", text, (long long)item->writes.stall_cycles) : text;
}

/* ---- text ---- */

static const char *trf_lines(const schedule_item *item, arena *a)
{
    const trf_read_counts *r = &item->reads;
    const trf_write_counts *w = &item->writes;
    const char *text = "";
    if (item->trf_read)
        text = arena_printf(a, "%46strf_read, line %u: %lld reads, %lld column hits, %lld misses; held stores for %lld cycles\n", "",
                            item->trf_read->line, (long long)r->reads, (long long)r->column_hits,
                            (long long)r->column_misses, (long long)item->held_stall_cycles);
    if (item->trf_store)
        text = arena_printf(a, "%s%46strf_store, line %u: %lld flits, %lld of them stalled, %lld stall cycles\n", text, "",
                            item->trf_store->line, (long long)w->flits, (long long)w->stalled_flits,
                            (long long)w->stall_cycles);
    return text;
}

static const char *item_lines(const schedule_item *item, arena *a)
{
    return arena_printf(a, "%9lld %9lld %9lld  %-4s %5u  %-20s  %s; %s\n%s", (long long)item->start, (long long)item->end,
                        (long long)(item->end - item->start), context_name(item->context), item->commands->line,
                        item_name(item, a), item_formula(item, a), duration_bound_name(item->alone.bound),
                        trf_lines(item, a));
}

static const char *report_text(const schedule *s, arena *a)
{
    size_t bytes = 0, capacity = 0;
    char *text = NULL;
    const char *line = arena_printf(a, "kernel %s: %lld cycles; one after the other %lld, overlap saves %lld\n", s->kernel->name,
                                    (long long)s->cycles, (long long)s->serial_cycles,
                                    (long long)(s->serial_cycles - s->cycles));
    for (size_t i = 0;; i++) {
        for (; *line; line++)
            ARENA_PUSH(a, text, bytes, capacity, *line);
        if (i > s->count)
            break;
        line = i ? item_lines(&s->items[i - 1], a)
                 : "    start       end    cycles  context line  commands            formula; what binds\n";
    }
    ARENA_PUSH(a, text, bytes, capacity, '\0');
    return text;
}

/* ---- JSON ---- */

static json_t *place_json(const command *c)
{
    return json_pack("{s:s, s:i, s:i}", "command", command_row_of(c->op)->name, "offset", (int)c->offset, "line",
                     (int)c->line);
}

static json_t *cycles_json(const schedule_item *item, arena *a)
{
    const duration *c = &item->alone;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:I}", "text", item_formula(item, a), "bound",
                     duration_bound_name(c->bound), "fill", (json_int_t)c->fill, "items", (json_int_t)c->items,
                     "item_cycles", (json_int_t)c->item_cycles, "beats", (json_int_t)c->beats, "beat_cycles",
                     (json_int_t)c->beat_cycles, "drains", c->drains, "undisturbed", (json_int_t)c->total);
}

static json_t *read_json(const schedule_item *item)
{
    json_t *o = place_json(item->trf_read);
    json_t *counts = json_pack("{s:I, s:I, s:I, s:I}", "reads", (json_int_t)item->reads.reads, "column_hits",
                               (json_int_t)item->reads.column_hits, "column_misses",
                               (json_int_t)item->reads.column_misses, "held_stall_cycles",
                               (json_int_t)item->held_stall_cycles);
    json_object_update(o, counts);
    json_decref(counts);
    return o;
}

static json_t *store_json(const schedule_item *item)
{
    json_t *o = place_json(item->trf_store);
    json_t *counts = json_pack("{s:I, s:I, s:I}", "flits", (json_int_t)item->writes.flits, "stalled_flits",
                               (json_int_t)item->writes.stalled_flits, "stall_cycles",
                               (json_int_t)item->writes.stall_cycles);
    json_object_update(o, counts);
    json_decref(counts);
    return o;
}

static json_t *item_json(const schedule_item *item, arena *a)
{
    json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "context", context_name(item->context), "start",
                          (json_int_t)item->start, "end", (json_int_t)item->end, "cycles",
                          (json_int_t)(item->end - item->start), "formula", cycles_json(item, a), "commands",
                          json_array());
    for (size_t i = 0; i < item->count; i++)
        json_array_append_new(json_object_get(o, "commands"), place_json(&item->commands[i]));
    if (item->trf_read)
        json_object_set_new(o, "trf_read", read_json(item));
    if (item->trf_store)
        json_object_set_new(o, "trf_store", store_json(item));
    return o;
}

/* NULL when there is no memory. */
static const char *report_json(const schedule *s, arena *a)
{
    json_t *items = json_array();
    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(items, item_json(&s->items[i], a));
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o}", "format", REPORT_FORMAT_VERSION, "kernel",
                             s->kernel->name, "cycles", (json_int_t)s->cycles, "serial_cycles",
                             (json_int_t)s->serial_cycles, "saved_cycles", (json_int_t)(s->serial_cycles - s->cycles),
                             "busy", "main", (json_int_t)s->busy[CONTEXT_MAIN], "sub", (json_int_t)s->busy[CONTEXT_SUB],
                             "dma", (json_int_t)s->busy[CONTEXT_DMA], "items", items);
    char *dumped = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    const char *text = dumped ? arena_printf(a, "%s\n", dumped) : NULL;
    free(dumped);
    return text;
}

const char *report_make(const target *t, const binary_kernel *k, report_format format, arena *a, diag_list *diags)
{
    schedule s;
    if (!schedule_make(t, k, a, diags, &s))
        return NULL;
    const char *text = format == REPORT_JSON ? report_json(&s, a) : report_text(&s, a);
    if (!text)
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory for the report of kernel %s", k->name);
    return text;
}
