#include "runtime/plan/report.h"

#include <jansson.h>
#include <stdlib.h>

#include "runtime/timing/analysis.h"
#include "support/json_text.h"
#include "support/shown.h"
#include "support/strbuf.h"

enum { DRAWN_RUNS = 2000 /* of a timeline */ };

static int64_t cycles_of(const plan_cost *c)
{
    return c->runs * c->analysis->schedule->cycles;
}

/* Bytes of HBM that a run moves. */
static int64_t hbm_bytes(const plan_cost *c)
{
    return c->analysis->hbm_read_bytes + c->analysis->hbm_written_bytes;
}

/* The least that all runs could take. */
static int64_t bound_of(const plan_result *r)
{
    int64_t bound = 0;
    for (size_t i = 0; i < r->cost_count; i++)
        bound += r->costs[i].runs * r->costs[i].analysis->lower_bound;
    return bound;
}

static int64_t bytes_of(const plan_result *r)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < r->cost_count; i++)
        bytes += r->costs[i].runs * hbm_bytes(&r->costs[i]);
    return bytes;
}

static double percent(int64_t part, int64_t whole)
{
    return (double)analysis_permille(part, whole) / 10;
}

/* ---- text ---- */

static void engines_text(const plan_result *r, strbuf *s)
{
    strbuf_puts(s, "engines, of all cycles:");
    const char *comma = "";
    for (int e = 0; e < ENGINE_COUNT; e++) {
        int64_t busy = 0;
        for (size_t i = 0; i < r->cost_count; i++)
            busy += r->costs[i].runs * r->costs[i].analysis->engine_busy[e];
        if (busy == 0)
            continue;
        strbuf_printf(s, "%s %s %.1f %%", comma, engine_name((engine)e), percent(busy, r->cycles));
        comma = ",";
    }
    strbuf_puts(s, "\n");
}

static const char *text_report(const plan_result *r, const char *name, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "plan %s: %lld runs of kernels, %lld cycles\n", name, (long long)r->run_count, (long long)r->cycles);
    strbuf_printf(&s, "%8s %12s %14s %7s %12s %7s  %-16s %s\n", "runs", "cycles each", "cycles", "share", "HBM bytes", "bound",
                  "longest binds", "kernel");
    for (size_t i = 0; i < r->cost_count; i++) {
        const plan_cost *c = &r->costs[i];
        if (c->runs == 0)
            continue;
        strbuf_printf(&s, "%8lld %12lld %14lld %5.1f %% %12lld %5.1f %%  %-16s %s\n", (long long)c->runs,
                      (long long)c->analysis->schedule->cycles, (long long)cycles_of(c), percent(cycles_of(c), r->cycles),
                      (long long)hbm_bytes(c), percent(c->analysis->lower_bound, c->analysis->schedule->cycles), c->binds,
                      shown_text(c->kernel->name, a));
    }
    engines_text(r, &s);
    strbuf_printf(&s, "bytes of HBM: %lld; lower bound: %lld cycles, %.1f %% of what is taken\n", (long long)bytes_of(r),
                  (long long)bound_of(r), percent(bound_of(r), r->cycles));
    return s.text;
}

/* ---- JSON ---- */

static json_t *cost_json(const plan_cost *c)
{
    json_t *engines = json_object();
    for (int e = 0; e < ENGINE_COUNT; e++)
        if (c->analysis->engine_busy[e])
            json_object_set_new(engines, engine_name((engine)e), json_integer(c->analysis->engine_busy[e]));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:o}", "name", c->kernel->name, "kernel",
                     c->kernel->kernel->name, "runs", (json_int_t)c->runs, "cycles", (json_int_t)c->analysis->schedule->cycles,
                     "hbm_read_bytes", (json_int_t)c->analysis->hbm_read_bytes, "hbm_written_bytes",
                     (json_int_t)c->analysis->hbm_written_bytes, "lower_bound", (json_int_t)c->analysis->lower_bound, "multiplications",
                     (json_int_t)c->analysis->multiplications, "binds", c->binds, "compared", (json_int_t)c->compared, "differing",
                     (json_int_t)c->differing, "engine_cycles", engines);
}

static const char *json_report(const plan_result *r, const char *name, arena *a)
{
    json_t *kernels = json_array(), *order = json_array();
    for (size_t i = 0; i < r->cost_count; i++)
        json_array_append_new(kernels, cost_json(&r->costs[i]));
    for (int64_t i = 0; i < r->run_count; i++)
        json_array_append_new(order, json_integer(r->order[i]));
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "plan", name, "runs", (json_int_t)r->run_count, "cycles", (json_int_t)r->cycles,
                  "lower_bound", (json_int_t)bound_of(r), "hbm_bytes", (json_int_t)bytes_of(r), "kernels", kernels, "order", order);
    const char *text = json_dump_text(root, JSON_INDENT(1), a);
    return text ? text : "";
}

/* ---- the page ---- */

/* Hues as far apart as the golden angle has them. */
static int hue_of(size_t kernel)
{
    return (int)(kernel * 137 % 360);
}

static void timeline(const plan_result *r, strbuf *s)
{
    enum { WIDTH = 1000, ROW = 22 };
    size_t rows = r->cost_count;
    int64_t at = 0, drawn = r->run_count < DRAWN_RUNS ? r->run_count : DRAWN_RUNS, all = 0;
    for (int64_t i = 0; i < drawn; i++)
        all += r->costs[r->order[i]].analysis->schedule->cycles;
    strbuf_printf(s, "<svg viewBox=\"0 0 %d %zu\" role=\"img\">\n", WIDTH, rows * ROW);
    for (int64_t i = 0; i < drawn; i++) {
        size_t k = r->order[i];
        int64_t cycles = r->costs[k].analysis->schedule->cycles;
        strbuf_printf(s, "<rect x=\"%.3f\" y=\"%zu\" width=\"%.3f\" height=\"%d\" fill=\"hsl(%d 60%% 50%%)\"/>\n",
                      (double)at / (double)(all ? all : 1) * WIDTH, k * ROW, (double)cycles / (double)(all ? all : 1) * WIDTH, ROW - 2,
                      hue_of(k));
        at += cycles;
    }
    strbuf_puts(s, "</svg>\n");
    if (drawn < r->run_count)
        strbuf_printf(s, "<p>The first %lld of %lld runs are drawn.</p>\n", (long long)drawn, (long long)r->run_count);
}

static const char *html_report(const plan_result *r, const char *name, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    strbuf_puts_xml(&s, name);
    strbuf_puts(&s,
                "</title><style>body{font:14px sans-serif;max-width:70em;margin:2em auto}table{border-collapse:collapse}"
                "td,th{padding:.2em .7em;text-align:right}td:first-child,th:first-child{text-align:left}svg{width:100%;background:#f4f4f4}"
                "pre{background:#f4f4f4;padding:1em;overflow:auto}</style></head><body>\n<h1>");
    strbuf_puts_xml(&s, name);
    strbuf_printf(&s,
                  "</h1>\n<p>%lld runs of kernels, %lld cycles; lower bound %lld, %.1f %%; %lld bytes of HBM.</p>\n<h2>Timeline</h2>\n"
                  "<p>A row for each kernel, in the order of the table; to the right, cycles.</p>\n",
                  (long long)r->run_count, (long long)r->cycles, (long long)bound_of(r), percent(bound_of(r), r->cycles),
                  (long long)bytes_of(r));
    timeline(r, &s);
    strbuf_puts(&s, "<h2>Kernels</h2>\n<table><tr><th>kernel<th>runs<th>cycles each<th>share<th>HBM bytes each<th>share of the bound"
                    "<th>longest binds");
    for (int e = 0; e < ENGINE_COUNT; e++)
        strbuf_printf(&s, "<th>%s", engine_name((engine)e));
    strbuf_puts(&s, "</tr>\n");
    for (size_t i = 0; i < r->cost_count; i++) {
        const plan_cost *c = &r->costs[i];
        strbuf_printf(&s, "<tr><td style=\"border-left:.6em solid hsl(%d 60%% 50%%)\">", hue_of(i));
        strbuf_puts_xml(&s, shown_text(c->kernel->name, a));
        strbuf_printf(&s, "<td>%lld<td>%lld<td>%.1f %%<td>%lld<td>%.1f %%<td>%s", (long long)c->runs,
                      (long long)c->analysis->schedule->cycles, percent(cycles_of(c), r->cycles), (long long)hbm_bytes(c),
                      percent(c->analysis->lower_bound, c->analysis->schedule->cycles), c->binds);
        for (int e = 0; e < ENGINE_COUNT; e++)
            strbuf_printf(&s, "<td>%.1f %%", percent(c->analysis->engine_busy[e], c->analysis->schedule->cycles));
        strbuf_puts(&s, "</tr>\n");
    }
    strbuf_puts(&s, "</table>\n</body></html>\n");
    return s.text;
}

const char *plan_report(const plan_result *r, const char *file, report_format format, arena *a)
{
    const char *name = shown_text(file, a);
    switch (format) {
    case REPORT_TEXT: return text_report(r, name, a);
    case REPORT_JSON: return json_report(r, name, a);
    case REPORT_HTML: return html_report(r, name, a);
    default: return NULL;
    }
}
