/* The report as one page: timeline, table, access pictures, tables and source, without a script or anything from elsewhere. */
#include "runtime/timing/report_parts.h"
#include "support/strbuf.h"

typedef long long number;

enum { WIDTH = 1100, LEFT = 90, ROW = 26, ROWS = 3 + ENGINE_COUNT };

/* What a page shows of a long kernel: so many commands at its beginning and as many at its end, so many lines of its tables. */
enum { ENDS_SHOWN = 500, LINES_SHOWN = 4000 };

static const char style[] =
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#ddd;--box:#f6f6f6;--path:#fff3d6}"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#1c1c1c;--line:#444;--box:#262626;--path:#463a17}}"
    "body{font:14px/1.4 "
    "sans-serif;margin:24px;color:var(--ink);background:var(--paper);max-width:1240px}h1{font-size:20px}h2{font-size:16px;margin-top:28px}"
    "table{border-collapse:collapse;font:12px/1.4 monospace}td,th{border-bottom:1px solid var(--line);padding:2px 8px;text-align:right}"
    "td.l,th.l{text-align:left}tr.c td{background:var(--path)}pre,.wide{overflow-x:auto}pre{font:12px/1.45 "
    "monospace;background:var(--box);padding:8px}"
    ".wide td{white-space:nowrap}svg{max-width:100%;height:auto}.time{min-width:640px}.time text{fill:var(--ink)}.time "
    "line{stroke:var(--line)}.time .c{stroke:var(--ink)}"
    ".two{display:flex;gap:16px;align-items:flex-start}.two>*{flex:1;min-width:0}@media(max-width:800px){body{margin:8px}.two{display:"
    "block}}"
    "li{margin:4px 0;overflow-wrap:anywhere}b.n{font-weight:600}";

static const char *const colours[ROWS] = {"#4269d0", "#3ca951", "#efb118", "#efb118", "#6cc5b0",
                                          "#97bbf5", "#a463f2", "#4269d0", "#ff8ab7", "#9c6b4e"};

/* Hairs, bars too narrow to be pointed at, that touch: one rectangle. */
typedef struct hairs {
    double from, to;
    bool critical;
} hairs;

typedef struct bars {
    strbuf *s;
    double scale; /* pixels of a cycle */
    hairs run[ROWS];
} bars;

#define HAIR_PIXELS 2.0
#define LEAST_PIXELS 0.75 /* so that nothing disappears */

static void rectangle(strbuf *s, int row, double from, double width, bool critical)
{
    strbuf_printf(s, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s>", from, row * ROW + 4,
                  width < LEAST_PIXELS ? LEAST_PIXELS : width, ROW - 8, colours[row], critical ? " class=\"c\"" : "");
}

static void hairs_end(bars *b, int row)
{
    hairs *h = &b->run[row];
    if (h->to > h->from) {
        rectangle(b->s, row, h->from, h->to - h->from, h->critical);
        strbuf_puts(b->s, "</rect>");
    }
    *h = (hairs){0};
}

static void hair(bars *b, int row, double from, double to, bool critical)
{
    hairs *h = &b->run[row];
    if (h->to == 0 || from > h->to + LEAST_PIXELS || critical != h->critical) {
        hairs_end(b, row);
        *h = (hairs){from, to, critical};
    }
    h->to = to > h->to ? to : h->to;
}

static void bar(bars *b, int row, int64_t start, int64_t cycles, const schedule_item *item, bool critical)
{
    strbuf *s = b->s;
    double from = LEFT + (double)start * b->scale, width = (double)cycles * b->scale;
    if (width < HAIR_PIXELS) {
        hair(b, row, from, from + (width < LEAST_PIXELS ? LEAST_PIXELS : width), critical);
        return;
    }
    hairs_end(b, row);
    rectangle(s, row, from, width, critical);
    strbuf_puts(s, "<title>");
    strbuf_puts_xml(s, arena_printf(s->arena, "%s, line %u: %lld to %lld; %s; %s binds", report_item_name(item, s->arena),
                                    report_item_first(item)->line, (number)start, (number)(start + cycles),
                                    report_item_formula(item, s->arena), duration_bound_name(item->alone.bound)));
    strbuf_puts(s, "</title></rect>");
}

static void timeline(strbuf *s, const report *r)
{
    bars b = {.s = s, .scale = (double)(WIDTH - LEFT) / (double)(r->schedule.cycles ? r->schedule.cycles : 1)};
    strbuf_printf(
        s, "<div class=\"wide\"><svg class=\"time\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"timeline\">",
        WIDTH, ROWS * ROW + 22, WIDTH, ROWS * ROW + 22);
    for (int row = 0; row < ROWS; row++) {
        const char *name = row < 3 ? context_name((context)row) : engine_name((engine)(row - 3));
        strbuf_printf(s, "<text x=\"0\" y=\"%d\" font-size=\"12\">%s</text><line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>", row * ROW + 17,
                      name, LEFT, WIDTH, (row + 1) * ROW, (row + 1) * ROW);
    }
    for (size_t i = 0; i < r->schedule.count; i++) {
        const schedule_item *item = &r->schedule.items[i];
        int64_t cycles = item->end - item->start;
        bar(&b, (int)item->context, item->start, cycles, item, r->analysis.places[i].critical);
        for (int e = 0; e < ENGINE_COUNT; e++)
            if (item->alone.busy[e] > 0)
                bar(&b, 3 + e, item->start, item->alone.busy[e] < cycles ? item->alone.busy[e] : cycles, item, false);
    }
    for (int row = 0; row < ROWS; row++)
        hairs_end(&b, row);
    for (int i = 0; i <= 4; i++)
        strbuf_printf(s, "<text x=\"%d\" y=\"%d\" font-size=\"11\" text-anchor=\"%s\">%lld</text>", LEFT + (WIDTH - LEFT) * i / 4,
                      ROWS * ROW + 16,
                      i == 0   ? "start"
                      : i == 4 ? "end"
                               : "middle",
                      (number)(r->schedule.cycles / 4 * i + r->schedule.cycles % 4 * i / 4));
    strbuf_puts(s,
                "</svg></div><p>Contexts above, engines below, cycles from left to right; framed commands are on the critical path.</p>");
}

static void table_row(strbuf *s, const report *r, size_t i)
{
    const schedule_item *item = &r->schedule.items[i];
    const item_place *p = &r->analysis.places[i];
    strbuf_printf(s,
                  "<tr%s><td>%lld</td><td>%lld</td><td>%lld</td><td class=\"l\">%s</td><td>%u</td><td class=\"l\">%s</td><td class=\"l\">",
                  p->critical ? " class=\"c\"" : "", (number)item->start, (number)item->end, (number)(item->end - item->start),
                  context_name(item->context), report_item_first(item)->line, report_item_name(item, s->arena));
    strbuf_puts_xml(s, report_item_formula(item, s->arena));
    strbuf_printf(s, "</td><td class=\"l\">%s</td><td>%lld</td><td class=\"l\">", duration_bound_name(item->alone.bound), (number)p->slack);
    if (p->predecessor != NO_PREDECESSOR)
        strbuf_printf(s, "%s, line %u", context_name(r->schedule.items[p->predecessor].context),
                      report_item_first(&r->schedule.items[p->predecessor])->line);
    strbuf_puts(s, "</td></tr>\n");
}

static bool is_long(const report *r)
{
    return r->schedule.count > 2 * ENDS_SHOWN;
}

static void table(strbuf *s, const report *r)
{
    strbuf_puts(s, "<div class=\"wide\"><table><tr><th>start</th><th>end</th><th>cycles</th><th class=\"l\">context</th><th>line</th><th "
                   "class=\"l\">commands</th>"
                   "<th class=\"l\">formula</th><th class=\"l\">binds</th><th>slack</th><th class=\"l\">began after</th></tr>\n");
    size_t count = r->schedule.count;
    for (size_t i = 0; i < count; i++) {
        if (i == ENDS_SHOWN && is_long(r)) {
            i = count - ENDS_SHOWN;
            strbuf_printf(s, "<tr><td class=\"l\" colspan=\"10\">%zu more, which --report=csv lists</td></tr>\n", i - ENDS_SHOWN);
        }
        table_row(s, r, i);
    }
    strbuf_puts(s, "</table></div>\n");
}

static void lints(strbuf *s, const report *r)
{
    if (r->lint_count == 0)
        return;
    strbuf_puts(s, "<h2>What would be faster</h2><ul>\n");
    for (size_t i = 0; i < r->lint_count; i++) {
        const lint *l = &r->lints[i];
        strbuf_printf(s, "<li>line %u, %s: about <b class=\"n\">%lld cycle%s</b>: ", l->line, diag_row_of(l->rule)->name, (number)l->cost,
                      l->cost == 1 ? "" : "s");
        strbuf_puts_xml(s, l->found);
        strbuf_puts(s, ". Nearest: <code>");
        strbuf_puts_xml(s, l->nearest);
        strbuf_puts(s, "</code></li>\n");
    }
    strbuf_puts(s, "</ul>\n");
}

/* The beginning of a text that may be long, and how much of it that is. */
static void first_lines(strbuf *s, const char *text)
{
    const char *end = text;
    for (int lines = 0; *end && lines < LINES_SHOWN; lines += *end++ == '\n')
        ;
    strbuf_puts_xml(s, arena_strndup(s->arena, text, (size_t)(end - text)));
    size_t more = 0;
    for (; *end; end++)
        more += *end == '\n';
    if (more)
        strbuf_printf(s, "%zu more lines, which --emit=tables prints\n", more);
}

/* Line numbers next to the text. */
static void source_text(strbuf *s, const char *text)
{
    for (unsigned line = 1; *text; line++) {
        const char *end = text;
        while (*end && *end != '\n')
            end++;
        strbuf_printf(s, "%4u  ", line);
        strbuf_puts_xml(s, arena_strndup(s->arena, text, (size_t)(end - text)));
        strbuf_puts(s, "\n");
        text = end + (*end == '\n');
    }
}

const char *report_html(const report *r, const report_options *o, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(
        &s,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>");
    strbuf_puts_xml(&s, r->schedule.kernel->name);
    strbuf_printf(&s, "</title><style>%s</style></head><body>\n<h1>", style);
    strbuf_puts_xml(&s, r->schedule.kernel->name);
    strbuf_printf(&s, ": %lld cycles</h1>\n<h2>Timeline</h2>\n", (number)r->schedule.cycles);
    timeline(&s, r);
    strbuf_puts(&s, "<h2>Commands</h2>\n");
    table(&s, r);
    lints(&s, r);
    strbuf_puts(&s, is_long(r) ? "<h2>Figures</h2><pre>" : "<h2>The whole report</h2><pre>");
    strbuf_puts_xml(&s, is_long(r) ? report_text_figures(r, a) : report_text(r, a));
    strbuf_puts(&s, "</pre>\n");
    if (o->pictures && *o->pictures)
        strbuf_printf(&s, "<h2>Access order of each sequencer over its tensor</h2><div>\n%s</div>\n", o->pictures);
    if (o->source && o->tables) {
        strbuf_puts(&s, "<h2>Tables, and the source</h2><div class=\"two\"><pre>");
        first_lines(&s, o->tables);
        strbuf_puts(&s, "</pre><pre>");
        source_text(&s, o->source);
        strbuf_puts(&s, "</pre></div>\n");
    }
    strbuf_puts(&s, "</body></html>\n");
    return s.text;
}
