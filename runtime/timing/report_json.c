/* The report for programs: docs/timing.md, "In JSON". */
#include <jansson.h>
#include <stdlib.h>

#include "runtime/timing/report_parts.h"
#include "support/json_text.h"

enum { REPORT_FORMAT_VERSION = 1 };

static json_t *place_json(const command *c)
{
    return json_pack("{s:s, s:i, s:i}", "command", command_row_of(c->op)->name, "offset", (int)c->offset, "line", (int)c->line);
}

static json_t *cycles_json(const schedule_item *item, arena *a)
{
    const duration *c = &item->alone;
    json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:I}", "text", report_item_formula(item, a), "bound",
                          duration_bound_name(c->bound), "fill", (json_int_t)c->fill, "items", (json_int_t)c->items, "item_cycles",
                          (json_int_t)c->item_cycles, "beats", (json_int_t)c->beats, "beat_cycles", (json_int_t)c->beat_cycles, "drains",
                          c->drains, "undisturbed", (json_int_t)c->total);
    json_object_set_new(o, "interpolated", json_boolean(c->interpolated));
    json_object_set_new(o, "stood_cycles", json_integer((json_int_t)item->stood_cycles));
    if (c->dma.steps > 0)
        json_object_set_new(o, "dma",
                            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "requests", (json_int_t)c->dma.requests,
                                      "engines", (json_int_t)c->dma.engines, "engine_steps", (json_int_t)c->dma.engine_steps, "link_cycles",
                                      (json_int_t)c->dma.link_cycles, "channel_cycles", (json_int_t)c->dma.hbm_cycles, "dmn_cycles",
                                      (json_int_t)c->dma.dmn_cycles, "pieces", (json_int_t)c->dma.pieces, "piece_bytes",
                                      (json_int_t)c->dma.piece_bytes, "unaligned_pieces", (json_int_t)c->dma.unaligned_pieces,
                                      "partial_writes", (json_int_t)c->dma.partial_writes));
    return o;
}

static json_t *read_json(const schedule_item *item)
{
    json_t *o = place_json(item->trf_read);
    json_t *counts =
        json_pack("{s:I, s:I, s:I, s:I}", "reads", (json_int_t)item->reads.reads, "column_hits", (json_int_t)item->reads.column_hits,
                  "column_misses", (json_int_t)item->reads.column_misses, "held_stall_cycles", (json_int_t)item->held_stall_cycles);
    json_object_update(o, counts);
    json_decref(counts);
    return o;
}

static json_t *store_json(const schedule_item *item)
{
    json_t *o = place_json(item->trf_store);
    json_t *counts =
        json_pack("{s:I, s:I, s:I, s:I}", "flits", (json_int_t)item->writes.flits, "stalled_flits", (json_int_t)item->writes.stalled_flits,
                  "stall_cycles", (json_int_t)item->writes.stall_cycles, "late_cycles", (json_int_t)item->writes.late_cycles);
    json_object_update(o, counts);
    json_decref(counts);
    return o;
}

static json_t *busy_json(const int64_t *cycles)
{
    json_t *o = json_object();
    for (int i = 0; i < ENGINE_COUNT; i++)
        json_object_set_new(o, engine_name((engine)i), json_integer((json_int_t)cycles[i]));
    return o;
}

static json_t *item_json(const report *r, size_t number, arena *a)
{
    const schedule_item *item = &r->schedule.items[number];
    const item_place *p = &r->analysis.places[number];
    json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:b, s:o, s:o}", "context", context_name(item->context), "start",
                          (json_int_t)item->start, "end", (json_int_t)item->end, "cycles", (json_int_t)(item->end - item->start), "formula",
                          cycles_json(item, a), "commands", json_array(), "slack", (json_int_t)p->slack, "critical", p->critical,
                          "predecessor", p->predecessor == NO_PREDECESSOR ? json_null() : json_integer((json_int_t)p->predecessor),
                          "engines", busy_json(item->alone.busy));
    for (size_t i = 0; i < item->count; i++)
        json_array_append_new(json_object_get(o, "commands"), place_json(&report_item_first(item)[i]));
    if (item->trf_read)
        json_object_set_new(o, "trf_read", read_json(item));
    if (item->trf_store)
        json_object_set_new(o, "trf_store", store_json(item));
    return o;
}

static json_t *lints_json(const report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->lint_count; i++) {
        const lint *l = &r->lints[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:I, s:I, s:I, s:s, s:s}", "rule", diag_row_of(l->rule)->name, "line",
                                              (int)l->line, "cost_cycles", (json_int_t)l->cost, "commands", (json_int_t)l->times,
                                              "kernel_cycles", (json_int_t)l->kernel_cycles, "found", l->found, "nearest", l->nearest));
    }
    return list;
}

static json_t *use_json(const analysis *x)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "multiplications", (json_int_t)x->multiplications,
                     "lane_products", (json_int_t)x->lane_products, "hbm_read_bytes", (json_int_t)x->hbm_read_bytes, "hbm_written_bytes",
                     (json_int_t)x->hbm_written_bytes, "dm_read_bytes", (json_int_t)x->dm_read_bytes, "dm_written_bytes",
                     (json_int_t)x->dm_written_bytes, "trf_read_bytes", (json_int_t)x->trf_read_bytes, "trf_written_bytes",
                     (json_int_t)x->trf_written_bytes, "trf_column_hits", (json_int_t)x->trf_hits, "trf_column_misses",
                     (json_int_t)x->trf_misses);
}

static json_t *attainable_json(const attainable *y)
{
    if (!y->cycles)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cycles", (json_int_t)y->cycles, "copies", (json_int_t)y->copies,
                     "starts", (json_int_t)y->starts, "start_cycles", (json_int_t)y->start_cycles, "bytes", (json_int_t)y->bytes,
                     "bytes_per_kcycle", (json_int_t)y->bytes_per_kcycle, "row_cycles", (json_int_t)y->row_cycles, "products",
                     (json_int_t)y->products, "waits", (json_int_t)y->waits);
}

const char *report_json(const report *r, arena *a)
{
    const schedule *s = &r->schedule;
    const analysis *x = &r->analysis;
    json_t *items = json_array();
    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(items, item_json(r, i, a));
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:o, s:o, s:I}", "format",
        REPORT_FORMAT_VERSION, "kernel", s->kernel->name, "timing", timing_preset_name(s->preset), "cycles", (json_int_t)s->cycles,
        "serial_cycles", (json_int_t)s->serial_cycles, "saved_cycles", (json_int_t)(s->serial_cycles - s->cycles), "busy", "main",
        (json_int_t)s->busy[CONTEXT_MAIN], "sub", (json_int_t)s->busy[CONTEXT_SUB], "dma", (json_int_t)s->busy[CONTEXT_DMA], "engines",
        busy_json(x->engine_busy), "use", use_json(x), "lower_bound", "cycles", (json_int_t)x->lower_bound, "multiplications",
        (json_int_t)x->mac_bound, "bytes", (json_int_t)x->byte_bound, "port_bytes", (json_int_t)x->port_bytes, "lints", lints_json(r),
        "items", items, "end_sync_cycles", (json_int_t)s->end_sync_cycles);
    if (root)
        json_object_set_new(root, "attainable", attainable_json(&x->attainable));
    return json_dump_text(root, JSON_INDENT(2), a);
}
