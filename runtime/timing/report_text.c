/* The report to read, and the same lines as comma-separated values. */
#include "runtime/timing/report_parts.h"
#include "support/strbuf.h"

typedef long long number;

static void trf_lines(const schedule_item *item, strbuf *s)
{
    const trf_read_counts *r = &item->reads;
    const trf_write_counts *w = &item->writes;
    if (item->trf_read)
        strbuf_printf(s, "%46strf_read, line %u: %s, %s, %lld %s; held stores for %s\n", "", item->trf_read->line,
                      arena_count(s->arena, r->reads, "read"), arena_count(s->arena, r->column_hits, "column hit"),
                      (number)r->column_misses, r->column_misses == 1 ? "miss" : "misses",
                      arena_count(s->arena, item->held_stall_cycles, "cycle"));
    if (item->trf_store)
        strbuf_printf(s, "%46strf_store, line %u: %s, %lld of them stalled, %s\n", "", item->trf_store->line,
                      arena_count(s->arena, w->flits, "flit"), (number)w->stalled_flits,
                      arena_count(s->arena, w->stall_cycles, "stall cycle"));
}

/* "after dma line 12", "slack 30". */
static const char *place_text(const report *r, size_t i, arena *a)
{
    const item_place *p = &r->analysis.places[i];
    const schedule_item *before = p->predecessor == NO_PREDECESSOR ? NULL : &r->schedule.items[p->predecessor];
    const char *after =
        before ? arena_printf(a, "after %s line %u", context_name(before->context), report_item_first(before)->line) : "at the start";
    if (p->critical)
        return arena_printf(a, "critical, %s", after);
    return arena_printf(a, "slack %lld, %s", (number)p->slack, after);
}

static void item_lines(const report *r, size_t i, strbuf *s)
{
    const schedule_item *item = &r->schedule.items[i];
    arena *a = s->arena;
    strbuf_printf(s, "%9lld %9lld %9lld  %-4s %5u  %-20s  %s; %s%s; %s\n", (number)item->start, (number)item->end,
                  (number)(item->end - item->start), context_name(item->context), report_item_first(item)->line, report_item_name(item, a),
                  report_item_formula(item, a), duration_bound_name(item->alone.bound), item->alone.interpolated ? ", interpolated" : "",
                  place_text(r, i, a));
    trf_lines(item, s);
}

static const char *percent(int64_t part, int64_t whole, arena *a)
{
    int64_t permille = analysis_permille(part, whole);
    return arena_printf(a, "%lld.%lld %%", (number)(permille / 10), (number)(permille % 10));
}

/* Those that have something to do. */
static void engine_lines(const report *r, strbuf *s)
{
    const char *separator = "";
    strbuf_puts(s, "engines, of all cycles:");
    for (int i = 0; i < ENGINE_COUNT; i++)
        if (r->analysis.engine_busy[i] > 0) {
            strbuf_printf(s, "%s %s %s", separator, engine_name((engine)i),
                          percent(r->analysis.engine_busy[i], r->schedule.cycles, s->arena));
            separator = ",";
        }
    strbuf_puts(s, "\n");
}

static void use_lines(const report *r, strbuf *s)
{
    const analysis *x = &r->analysis;
    arena *a = s->arena;
    if (x->machine_macs)
        strbuf_printf(s, "multiplications: %lld needed, %lld done: %s of the lanes that ran, %s of %s in all cycles\n",
                      (number)x->multiplications, (number)x->lane_products, percent(x->multiplications, x->lane_products, a),
                      percent(x->multiplications, x->reducer_capacity, a),
                      x->chips > 1 ? arena_printf(a, "%lld chips", (number)x->chips) : "the chip");
    strbuf_printf(s, "bytes: HBM %lld read, %lld written; DM %lld read, %lld written; TRF %lld read, %lld written",
                  (number)x->hbm_read_bytes, (number)x->hbm_written_bytes, (number)x->dm_read_bytes, (number)x->dm_written_bytes,
                  (number)x->trf_read_bytes, (number)x->trf_written_bytes);
    strbuf_puts(s, x->trf_hits + x->trf_misses
                       ? arena_printf(a, "; TRF cache %s hits\n", percent(x->trf_hits, x->trf_hits + x->trf_misses, a))
                       : "\n");
    if (x->lower_bound)
        strbuf_printf(
            s,
            "lower bound: max(%lld for the multiplications, %lld for %lld bytes of ports) = %lld cycles; reached %lld, %lld.%lld times\n",
            (number)x->mac_bound, (number)x->byte_bound, (number)x->port_bytes, (number)x->lower_bound, (number)r->schedule.cycles,
            (number)(r->schedule.cycles / x->lower_bound), (number)(r->schedule.cycles % x->lower_bound * 10 / x->lower_bound));
    const attainable *y = &x->attainable;
    if (y->cycles)
        strbuf_printf(s,
                      "attainable: max(%lld for %s of %lld to start and %lld.%01lld bytes a cycle%s, %lld for the products "
                      "between copies%s) = %lld cycles; reached %lld, %lld.%02lld times\n",
                      (number)y->copies, arena_count(s->arena, y->starts, "copy"), (number)y->start_cycles,
                      (number)(y->bytes_per_kcycle / 1000), (number)(y->bytes_per_kcycle % 1000 / 100),
                      y->row_cycles ? arena_printf(s->arena, ", %lld for rows of HBM", (number)y->row_cycles) : "", (number)y->products,
                      y->waits > y->copies && y->waits > y->products
                          ? arena_printf(s->arena, ", %lld where stores wait for their products", (number)y->waits)
                          : "",
                      (number)y->cycles, (number)r->schedule.cycles, (number)(r->schedule.cycles / y->cycles),
                      (number)(r->schedule.cycles % y->cycles * 100 / y->cycles));
}

static void lint_lines(const report *r, strbuf *s)
{
    for (size_t i = 0; i < r->lint_count; i++) {
        const lint *l = &r->lints[i];
        const char *times = l->times > 1 ? arena_printf(s->arena, " in %lld commands", (number)l->times) : "";
        strbuf_printf(s, "line %u: warning[%s]: about %lld cycle%s%s: %s\nhelp: %s\n", l->line, diag_row_of(l->rule)->name, (number)l->cost,
                      l->cost == 1 ? "" : "s", times, l->found, l->nearest);
        if (l->kernel_cycles >= 0)
            strbuf_printf(s, "      with that alone the kernel takes %lld cycles; what else the mapping changes is not in it\n",
                          (number)l->kernel_cycles);
    }
}

static void figures(const report *r, strbuf *s)
{
    engine_lines(r, s);
    use_lines(r, s);
    lint_lines(r, s);
}

const char *report_text_figures(const report *r, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    figures(r, &s);
    return s.text;
}

const char *report_text(const report *r, arena *a)
{
    const schedule *x = &r->schedule;
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "kernel %s: %lld cycles; one after the other %lld, overlap saves %lld\n", x->kernel->name, (number)x->cycles,
                  (number)x->serial_cycles, (number)(x->serial_cycles - x->cycles));
    strbuf_puts(&s,
                "    start       end    cycles  context line  commands            formula; what binds; slack and what it began after\n");
    for (size_t i = 0; i < x->count; i++)
        item_lines(r, i, &s);
    if (x->end_sync_cycles)
        strbuf_printf(&s, "%9lld %9lld %9lld  synchronisation after the last store\n", (number)(x->cycles - x->end_sync_cycles),
                      (number)x->cycles, (number)x->end_sync_cycles);
    figures(r, &s);
    return s.text;
}

const char *report_csv(const report *r, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, "kernel,context,line,offset,commands,start,end,cycles,binds,slack,critical,after_context,after_line");
    for (int i = 0; i < ENGINE_COUNT; i++)
        strbuf_printf(&s, ",%s", engine_name((engine)i));
    strbuf_puts(&s, ",formula\n");
    for (size_t i = 0; i < r->schedule.count; i++) {
        const schedule_item *item = &r->schedule.items[i];
        const item_place *p = &r->analysis.places[i];
        const schedule_item *before = p->predecessor == NO_PREDECESSOR ? NULL : &r->schedule.items[p->predecessor];
        strbuf_printf(&s, "%s,%s,%u,%u,%s,%lld,%lld,%lld,%s,%lld,%d,%s,", r->schedule.kernel->name, context_name(item->context),
                      report_item_first(item)->line, report_item_first(item)->offset, report_item_name(item, a), (number)item->start,
                      (number)item->end, (number)(item->end - item->start), duration_bound_name(item->alone.bound), (number)p->slack,
                      p->critical, before ? context_name(before->context) : "");
        if (before)
            strbuf_printf(&s, "%u", report_item_first(before)->line);
        for (int e = 0; e < ENGINE_COUNT; e++)
            strbuf_printf(&s, ",%lld", (number)item->alone.busy[e]);
        strbuf_printf(&s, ",\"%s\"\n", report_item_formula(item, a));
    }
    return s.text;
}
