/* A run of a stream program as one page: graph, timeline, queues, report; without a script or anything from elsewhere. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/step/picture.h"
#include "runtime/step/stall.h"
#include "support/order.h"

enum { WIDTH = 1000, LEFT = 230, RIGHT = 110, LABEL = 40, ROW = 15, COLUMNS = 500, QUEUES = 60, OPERATORS = 400 };

static const char *const colours[STEP_STATES] = {"#3ca951", "#d8dbe2", "#efb118", "#4269d0", "#9c6ade"};

/* So many buckets of the record make a column of the picture. */
static uint32_t buckets_of_column(const step_run *r)
{
    return (step_record_buckets(r->record) + COLUMNS - 1) / COLUMNS;
}

static step_state state_of(const step_run *r, uint32_t node, uint32_t column, uint32_t per)
{
    int64_t cycles[STEP_STATES + 1] = {0};
    uint32_t first = column * per, end = first + per, most = 0;
    for (uint32_t b = first; b < end && b < step_record_buckets(r->record); b++) {
        int64_t idle = step_record_width(r->record);
        for (int k = 0; k < STEP_STATES; k++) {
            int64_t one = step_record_cycles(r->record, node, (step_state)k, b);
            cycles[k] += one;
            idle -= one;
        }
        cycles[STEP_STATES] += idle;
    }
    for (uint32_t k = 1; k <= STEP_STATES; k++)
        most = cycles[k] > cycles[most] ? k : most;
    return (step_state)most;
}

/* Where the text of a row stands. */
static uint32_t baseline(uint32_t row)
{
    return row * ROW + ROW - 4;
}

/* A long one is cut, and whole under the pointer. */
static void put_label(strbuf *s, uint32_t row, const char *text)
{
    size_t bytes = strlen(text);
    strbuf_printf(s, "<text x=\"0\" y=\"%" PRIu32 "\" font-size=\"10\">", baseline(row));
    strbuf_append_xml(s, text, bytes > LABEL ? LABEL - 2 : bytes);
    if (bytes > LABEL) {
        strbuf_puts(s, "..<title>");
        strbuf_puts_xml(s, text);
        strbuf_puts(s, "</title>");
    }
    strbuf_puts(s, "</text>");
}

static void begin_rows(strbuf *s, const char *label, uint32_t rows)
{
    strbuf_printf(
        s, "<div class=\"wide\"><svg width=\"%d\" height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\" role=\"img\" aria-label=\"%s\">",
        WIDTH + RIGHT, rows * ROW + ROW, WIDTH + RIGHT, rows * ROW + ROW, label);
}

static void end_rows(strbuf *s, const step_run *r, uint32_t rows)
{
    strbuf_printf(s,
                  "<text x=\"%d\" y=\"%" PRIu32 "\" font-size=\"10\">0</text><text x=\"%d\" y=\"%" PRIu32
                  "\" font-size=\"10\" text-anchor=\"end\">%" PRId64 " cycles</text></svg></div>\n",
                  LEFT, baseline(rows), WIDTH, baseline(rows), r->cycles);
}

static void put_timeline(strbuf *s, const step_run *r)
{
    uint32_t rows = r->program->node_count < OPERATORS ? r->program->node_count : OPERATORS, per = buckets_of_column(r);
    uint32_t columns = per ? (step_record_buckets(r->record) + per - 1) / per : 0;
    begin_rows(s, "timeline of operators", rows);
    for (uint32_t node = 0; node < rows; node++) {
        put_label(s, node, r->program->nodes[node].name);
        for (uint32_t from = 0, to; from < columns; from = to) {
            step_state state = state_of(r, node, from, per);
            for (to = from + 1; to < columns && state_of(r, node, to, per) == state; to++)
                ;
            double scale = (double)(WIDTH - LEFT) / columns;
            if (state < STEP_STATES)
                strbuf_printf(s, "<rect x=\"%.1f\" y=\"%" PRIu32 "\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>%s</title></rect>",
                              LEFT + from * scale, node * ROW + 2, (to - from) * scale, ROW - 4, colours[state], step_state_names[state]);
        }
    }
    end_rows(s, r, rows);
    strbuf_puts(s, "<p>");
    for (int k = 0; k < STEP_STATES; k++)
        strbuf_printf(s, "<span style=\"background:%s\">&#160;&#160;&#160;</span> %s &#160; ", colours[k], step_state_names[k]);
    int64_t cycles = per * step_record_width(r->record);
    if (cycles > 1)
        strbuf_printf(s, "A column is %" PRId64 " cycles and shows what the operator did for most of them.", cycles);
    if (r->program->node_count > OPERATORS)
        strbuf_printf(s, " The first %d of %" PRIu32 " operators.", OPERATORS, r->program->node_count);
    strbuf_puts(s, "</p>\n");
}

static int by_held(const void *a, const void *b)
{
    const step_edge_totals *const *x = a, *const *y = b;
    return order_then(ORDER((*y)->held, (*x)->held), ORDER(*x, *y));
}

/* How full a queue was, as a line over the time. */
static void put_queue(strbuf *s, const step_run *r, const step_edge_totals *e, uint32_t row)
{
    uint32_t per = buckets_of_column(r), buckets = step_record_buckets(r->record), columns = (buckets + per - 1) / per;
    double *fill = ARENA_ARRAY(s->arena, double, columns + 1), most = 0, scale = (double)(WIDTH - LEFT) / columns;
    int64_t held = 0;
    for (uint32_t b = 0; b < buckets; b++)
        fill[b / per] += step_record_fill(r->record, (uint32_t)(e - r->edges), b, &held) / per;
    for (uint32_t c = 0; c < columns; c++)
        most = fill[c] > most ? fill[c] : most;
    put_label(s, row, arena_printf(s->arena, "%s -> %s", r->program->nodes[e->producer].name, r->program->nodes[e->consumer].name));
    strbuf_printf(s, "<polyline fill=\"none\" stroke=\"#4269d0\" points=\"");
    for (uint32_t c = 0; c < columns; c++)
        strbuf_printf(s, "%.1f,%.1f ", LEFT + c * scale, row * ROW + ROW - 2 - (most > 0 ? fill[c] / most * (ROW - 4) : 0));
    strbuf_printf(s, "\"/><text x=\"%d\" y=\"%" PRIu32 "\" font-size=\"9\">up to %.1f values</text>", WIDTH + 4, baseline(row), most);
}

static void put_queues(strbuf *s, const step_run *r)
{
    const step_edge_totals **edges = ARENA_ARRAY(s->arena, const step_edge_totals *, r->edge_count + 1);
    for (uint32_t i = 0; i < r->edge_count; i++)
        edges[i] = &r->edges[i];
    order_sort(edges, r->edge_count, sizeof *edges, by_held);
    uint32_t rows = r->edge_count < QUEUES ? r->edge_count : QUEUES;
    begin_rows(s, "queues", rows);
    for (uint32_t i = 0; i < rows && step_record_buckets(r->record) > 0; i++)
        put_queue(s, r, edges[i], i);
    end_rows(s, r, rows);
    if (r->edge_count > QUEUES)
        strbuf_printf(s, "<p>The %d fullest of %" PRIu32 " queues; --trace has all.</p>\n", QUEUES, r->edge_count);
}

const char *step_page_text(const step_run *r, const char *text)
{
    strbuf s;
    strbuf_init(&s, r->arena);
    uint32_t count = r->program->node_count;
    double *heat = ARENA_ARRAY(r->arena, double, count + 1);
    const char **notes = ARENA_ARRAY(r->arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const step_totals *t = &r->totals[i];
        double share = r->cycles > 0 ? (double)t->busy_cycles / (double)r->cycles : 0;
        heat[i] = share < 1 ? share : 1;
        notes[i] =
            arena_printf(r->arena, "%s %" PRId64 " of %" PRId64 " cycles; %s %" PRId64 ", %s %" PRId64 ", %s %" PRId64 ", %s %" PRId64,
                         step_state_names[STEP_BUSY], t->busy_cycles, r->cycles, step_state_names[STEP_STARVED], t->waits[STEP_STARVED],
                         step_state_names[STEP_FULL], t->waits[STEP_FULL], step_state_names[STEP_MEMORY], t->waits[STEP_MEMORY],
                         step_state_names[STEP_MACHINE], t->waits[STEP_MACHINE]);
    }
    step_page_begin(&s, arena_printf(r->arena, "%s: %" PRId64 " cycles", r->program->name, r->cycles));
    strbuf_puts(&s,
                "<h2>Graph</h2><p>The red line in a box is the share of the run in which the operator was busy.</p><div class=\"wide\">\n");
    step_svg_put(&s, r->program, heat, notes);
    strbuf_puts(&s, "</div>\n<h2>Timeline</h2>\n");
    put_timeline(&s, r);
    strbuf_puts(&s, "<h2>Queues</h2>\n");
    put_queues(&s, r);
    strbuf_puts(&s, "<h2>The whole report</h2><pre>");
    strbuf_puts_xml(&s, text);
    strbuf_puts(&s, "</pre>\n");
    step_page_end(&s);
    return s.text;
}
