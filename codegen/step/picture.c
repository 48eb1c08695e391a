#include "codegen/step/picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/step/text.h"

enum { BOX_WIDTH = 132, BOX_HEIGHT = 34, COLUMN = 190, ROW = 50, MARGIN = 12, SWEEPS = 4, TEXT_LETTERS = 21 };

/* ---- Graphviz ---- */

static void put_quoted(strbuf *s, const char *text)
{
    strbuf_puts(s, "\"");
    for (; *text; text++)
        if (*text == '\n')
            strbuf_puts(s, "\\n");
        else
            strbuf_printf(s, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    strbuf_puts(s, "\"");
}

static bool is_offchip(const step_node *n)
{
    return n->op >= STEP_LINEAR_LOAD && n->op <= STEP_RANDOM_STORE;
}

/* "map matmul", "linear_load w1", "reshape". */
static const char *kind_text(const step_program *p, const step_node *n, arena *a)
{
    const char *op = step_op_row_of(n->op)->name;
    if (n->fn == STEP_FN_KERNEL)
        return arena_printf(a, "%s kernel::%s", op, n->kernel);
    if (n->fn != STEP_FN_NONE)
        return arena_printf(a, "%s %s", op, step_fn_row_of(n->fn)->name);
    return is_offchip(n) ? arena_printf(a, "%s %s", op, p->tensors[n->tensor].name) : op;
}

const char *step_dot_text(const step_program *p, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, "digraph ");
    put_quoted(&s, p->name);
    strbuf_puts(&s, " {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (uint32_t i = 0; i < p->node_count; i++) {
        const step_node *n = &p->nodes[i];
        strbuf_printf(&s, "  n%" PRIu32 " [label=", i);
        put_quoted(&s, arena_printf(a, "%s\n%s, line %" PRIu32, n->name, kind_text(p, n, a), n->line));
        strbuf_puts(&s, n->op == STEP_SOURCE || n->op == STEP_SINK ? ", shape=ellipse" : is_offchip(n) ? ", shape=cylinder" : "");
        strbuf_puts(&s, "];\n");
    }
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t k = 0; k < p->nodes[i].input_count; k++) {
            const step_input *in = &p->nodes[i].inputs[k];
            strbuf_printf(&s, "  n%" PRIu32 " -> n%" PRIu32 " [label=", in->node, i);
            put_quoted(&s, step_output_text(p, &p->nodes[in->node].outputs[in->port], a));
            strbuf_puts(&s, in->node >= i ? ", style=dashed, constraint=false];\n" : "];\n");
        }
    strbuf_puts(&s, "}\n");
    return s.text;
}

/* ---- layout ---- */

typedef struct place {
    uint32_t node, column;
    double height; /* where it wants to stand, in rows; then where it does */
} place;

static int by_column(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    if (x->height < y->height || x->height > y->height)
        return x->height < y->height ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Where each node of a column wants to stand: at the mean of those that it takes from. */
static void wish(const step_program *p, place *places, const double *height)
{
    for (uint32_t i = 0; i < p->node_count; i++) {
        const step_node *n = &p->nodes[places[i].node];
        double sum = 0;
        uint32_t count = 0;
        for (uint32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k].node < places[i].node) {
                sum += height[n->inputs[k].node] + 0.01 * n->inputs[k].port;
                count++;
            }
        places[i].height = count ? sum / count : height[places[i].node];
    }
}

/* Nodes in the order of columns, each with its column and height; returns how many columns and rows there are. */
static place *lay_out(const step_program *p, arena *a, uint32_t *columns, uint32_t *rows)
{
    place *places = ARENA_ARRAY(a, place, p->node_count + 1);
    uint32_t *column = ARENA_ARRAY(a, uint32_t, p->node_count + 1);
    double *height = ARENA_ARRAY(a, double, p->node_count + 1);
    *columns = *rows = 0;
    for (uint32_t i = 0; i < p->node_count; i++) {
        for (uint32_t k = 0; k < p->nodes[i].input_count; k++) {
            uint32_t from = p->nodes[i].inputs[k].node;
            if (from < i && column[from] >= column[i])
                column[i] = column[from] + 1;
        }
        *columns = column[i] + 1 > *columns ? column[i] + 1 : *columns;
        height[i] = i;
        places[i] = (place){i, column[i], i};
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        if (p->node_count > 0)
            qsort(places, p->node_count, sizeof *places, by_column);
        for (uint32_t i = 0, row = 0; i < p->node_count; i++) {
            row = i > 0 && places[i].column == places[i - 1].column ? row + 1 : 0;
            places[i].height = height[places[i].node] = row;
            *rows = row + 1 > *rows ? row + 1 : *rows;
        }
        if (sweep + 1 < SWEEPS)
            wish(p, places, height);
    }
    return places;
}

/* ---- the picture ---- */

static void put_text(strbuf *s, double x, double y, int size, const char *text)
{
    strbuf_printf(s, "<text x=\"%.0f\" y=\"%.0f\" font-size=\"%d\">", x, y, size);
    size_t bytes = strlen(text);
    strbuf_puts_xml(s, bytes > TEXT_LETTERS ? arena_printf(s->arena, "%.*s..", TEXT_LETTERS - 2, text) : text);
    strbuf_puts(s, "</text>");
}

static void put_box(strbuf *s, const step_program *p, uint32_t node, double x, double y, const double *heat, const char *const *notes)
{
    const step_node *n = &p->nodes[node];
    bool edge = n->op == STEP_SOURCE || n->op == STEP_SINK;
    strbuf_printf(s, "<g><rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"%d\"/>",
                  edge            ? "e"
                  : is_offchip(n) ? "m"
                                  : "o",
                  x, y, BOX_WIDTH, BOX_HEIGHT, edge ? BOX_HEIGHT / 2 : 4);
    if (heat && heat[node] > 0)
        strbuf_printf(s, "<rect class=\"h\" x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"4\"/>", x, y + BOX_HEIGHT - 4,
                      heat[node] * BOX_WIDTH);
    put_text(s, x + 6, y + 14, 11, n->name);
    put_text(s, x + 6, y + 26, 9, kind_text(p, n, s->arena));
    strbuf_puts(s, "<title>");
    strbuf_puts_xml(s, arena_printf(s->arena, "%s = %s, line %" PRIu32, n->name, step_node_text(p, n, s->arena), n->line));
    for (uint32_t o = 0; o < n->output_count; o++)
        strbuf_puts_xml(s, arena_printf(s->arena, "\nout %" PRIu32 " %s", o, step_output_text(p, &n->outputs[o], s->arena)));
    if (notes && notes[node])
        strbuf_puts_xml(s, arena_printf(s->arena, "\n%s", notes[node]));
    strbuf_puts(s, "</title></g>\n");
}

static void put_edge(strbuf *s, const step_program *p, uint32_t to, uint32_t input, const double (*at)[2])
{
    const step_input *in = &p->nodes[to].inputs[input];
    bool back = in->node >= to;
    double x1 = at[in->node][0] + BOX_WIDTH, y1 = at[in->node][1] + BOX_HEIGHT / 2.0, x2 = at[to][0], count = p->nodes[to].input_count,
           y2 = at[to][1] + BOX_HEIGHT * (input + 1.0) / (count + 1.0), bend = back ? COLUMN : (x2 - x1) / 2;
    strbuf_printf(s, "<path%s d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"><title>", back ? " class=\"b\"" : "", x1, y1, x1 + bend, y1,
                  x2 - bend, y2, x2, y2);
    strbuf_puts_xml(s, arena_printf(s->arena, "%s.%" PRIu32 " to %s.%" PRIu32 ": %s; %s", p->nodes[in->node].name, in->port,
                                    p->nodes[to].name, input, step_output_text(p, &p->nodes[in->node].outputs[in->port], s->arena),
                                    step_depth_text(in, s->arena)));
    strbuf_puts(s, "</title></path>\n");
}

void step_svg_put(strbuf *s, const step_program *p, const double *heat, const char *const *notes)
{
    uint32_t columns, rows;
    const place *places = lay_out(p, s->arena, &columns, &rows);
    double(*at)[2] = arena_alloc(s->arena, ((size_t)p->node_count + 1) * sizeof *at);
    uint32_t width = columns * COLUMN + 2 * MARGIN, height = rows * ROW + 2 * MARGIN + BOX_HEIGHT;
    for (uint32_t i = 0; i < p->node_count; i++) {
        at[places[i].node][0] = MARGIN + (double)places[i].column * COLUMN;
        at[places[i].node][1] = MARGIN + BOX_HEIGHT / 2.0 + places[i].height * ROW;
    }
    strbuf_printf(s,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" width=\"%" PRIu32 "\" height=\"%" PRIu32
                  "\" viewBox=\"0 0 %" PRIu32 " %" PRIu32 "\" font-family=\"sans-serif\" role=\"img\" aria-label=\"graph of ",
                  width, height, width, height);
    strbuf_puts_xml(s, p->name);
    strbuf_puts(s,
                "\"><style>.graph rect{fill:#fff;stroke:#667}.graph .e{fill:#eef}.graph .m{fill:#fff3d6}.graph .h{fill:#d0424a;stroke:none}"
                ".graph path{fill:none;stroke:#889}.graph .b{stroke-dasharray:4 3}.graph text{fill:#222}</style>\n");
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t k = 0; k < p->nodes[i].input_count; k++)
            put_edge(s, p, i, k, (const double(*)[2])at);
    for (uint32_t i = 0; i < p->node_count; i++)
        put_box(s, p, i, at[i][0], at[i][1], heat, notes);
    strbuf_puts(s, "</svg>\n");
}

/* ---- pages ---- */

void step_page_begin(strbuf *s, const char *title)
{
    strbuf_puts(s, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                   "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    strbuf_puts_xml(s, title);
    strbuf_puts(s, "</title><style>body{font:14px/1.4 sans-serif;margin:24px;color:#222;background:#fff}h1{font-size:20px}"
                   "h2{font-size:16px;margin-top:28px}table{border-collapse:collapse;font:12px/1.4 monospace}"
                   "td,th{border-bottom:1px solid #ddd;padding:2px 8px;text-align:right}td.l,th.l{text-align:left}"
                   ".wide{overflow:auto;max-height:80vh}pre{font:12px/1.45 monospace;background:#f6f6f6;padding:8px;overflow-x:auto}"
                   "</style></head><body>\n<h1>");
    strbuf_puts_xml(s, title);
    strbuf_puts(s, "</h1>\n");
}

void step_page_end(strbuf *s)
{
    strbuf_puts(s, "</body></html>\n");
}
