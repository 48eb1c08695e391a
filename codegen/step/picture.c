#include "codegen/step/picture.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/step/text.h"
#include "support/order.h"

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

/* Boxes in columns, and bends: where a line passes a column on its way. Lines of one output share their bends. */
typedef struct layout {
    const step_program *p;
    uint32_t *column; /* by node */
    uint32_t **bends; /* by node and output: the first of its bends; one for each column after its own that the output passes */
    uint32_t count;   /* of boxes and bends; boxes first, by node */
    uint32_t columns;
    double *middle; /* of each box and bend, in rows */
    double rows;
} layout;

typedef struct place {
    uint32_t at, column;
    double wish;
} place;

static const double bend_size = 0.3; /* in rows; a box is one */

static int by_column(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return order_then(ORDER(x->column, y->column), order_then(ORDER(x->wish, y->wish), ORDER(x->at, y->at)));
}

/* What a line to that column leaves last: the box that it comes from, or a bend. */
static uint32_t before(const layout *l, uint32_t node, uint32_t port, uint32_t column)
{
    uint32_t steps = column - l->column[node];
    return steps > 1 ? l->bends[node][port] + steps - 2 : node;
}

static double wish_of_box(const layout *l, uint32_t node)
{
    const step_node *n = &l->p->nodes[node];
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t k = 0; k < n->input_count; k++)
        if (n->inputs[k].node < node) {
            sum += l->middle[before(l, n->inputs[k].node, n->inputs[k].port, l->column[node])] + 0.01 * n->inputs[k].port;
            count++;
        }
    return count ? sum / count : l->middle[node];
}

/* Columns of boxes, and how far each output goes. */
static void find_columns(layout *l, uint32_t **last)
{
    for (uint32_t i = 0; i < l->p->node_count; i++) {
        const step_node *n = &l->p->nodes[i];
        for (uint32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k].node < i && l->column[n->inputs[k].node] >= l->column[i])
                l->column[i] = l->column[n->inputs[k].node] + 1;
        for (uint32_t k = 0; k < n->input_count; k++) {
            const step_input *in = &n->inputs[k];
            if (in->node < i && last[in->node][in->port] < l->column[i])
                last[in->node][in->port] = l->column[i];
        }
        l->columns = l->column[i] + 1 > l->columns ? l->column[i] + 1 : l->columns;
    }
}

/* Boxes and bends, each in its column; bends follow what they come from. */
static place *make_places(layout *l, uint32_t *const *last, arena *a)
{
    place *places = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < l->p->node_count; i++)
        ARENA_PUSH(a, places, count, capacity, ((place){i, l->column[i], i}));
    for (uint32_t i = 0; i < l->p->node_count; i++)
        for (uint32_t o = 0; o < l->p->nodes[i].output_count; o++) {
            l->bends[i][o] = (uint32_t)count;
            for (uint32_t c = l->column[i] + 1; c < last[i][o]; c++) {
                place bend = {(uint32_t)count, c, i};
                ARENA_PUSH(a, places, count, capacity, bend);
            }
        }
    l->count = (uint32_t)count;
    return places;
}

/* Column by column, in the order of wishes, none above its wish in the last sweep. */
static void set_middles(layout *l, place *places, const uint32_t *from, bool last)
{
    double bottom = 0;
    l->rows = 0;
    order_sort(places, l->count, sizeof *places, by_column);
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t at = places[i].at;
        bool box = at < l->p->node_count;
        double size = box ? 1 : bend_size, wish = box ? wish_of_box(l, at) : l->middle[from[at]];
        bottom = i > 0 && places[i].column == places[i - 1].column ? bottom : 0;
        l->middle[at] = last && places[i].column > 0 && wish > bottom + size / 2 ? wish : bottom + size / 2;
        bottom = l->middle[at] + size / 2;
        l->rows = bottom > l->rows ? bottom : l->rows;
    }
}

static layout lay_out(const step_program *p, arena *a)
{
    layout l = {.p = p, .column = ARENA_ARRAY(a, uint32_t, p->node_count + 1), .bends = ARENA_ARRAY(a, uint32_t *, p->node_count + 1)};
    uint32_t **last = ARENA_ARRAY(a, uint32_t *, p->node_count + 1);
    for (uint32_t i = 0; i < p->node_count; i++) {
        l.bends[i] = ARENA_ARRAY(a, uint32_t, p->nodes[i].output_count + 1);
        last[i] = ARENA_ARRAY(a, uint32_t, p->nodes[i].output_count + 1);
    }
    find_columns(&l, last);
    place *places = make_places(&l, last, a);
    uint32_t *from = ARENA_ARRAY(a, uint32_t, l.count + 1); /* by bend: what it comes from */
    l.middle = ARENA_ARRAY(a, double, l.count + 1);
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t o = 0; o < p->nodes[i].output_count; o++)
            for (uint32_t c = l.column[i] + 1; c < last[i][o]; c++)
                from[before(&l, i, o, c + 1)] = before(&l, i, o, c);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        set_middles(&l, places, from, sweep + 1 == SWEEPS);
        for (uint32_t i = 0; i < l.count; i++) {
            uint32_t at = places[i].at;
            places[i].wish = at < p->node_count ? wish_of_box(&l, at) : l.middle[from[at]];
        }
    }
    return l;
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

static double x_of(uint32_t column)
{
    return MARGIN + (double)column * COLUMN;
}

static double y_of(const layout *l, uint32_t at)
{
    return MARGIN + l->middle[at] * ROW;
}

static void put_curve(strbuf *s, double x1, double y1, double x2, double y2, double bend)
{
    strbuf_printf(s, "C%.0f %.0f %.0f %.0f %.0f %.0f", x1 + bend, y1, x2 - bend, y2, x2, y2);
}

static void put_edge(strbuf *s, const layout *l, uint32_t to, uint32_t input)
{
    const step_program *p = l->p;
    const step_input *in = &p->nodes[to].inputs[input];
    bool back = in->node >= to;
    double x = x_of(l->column[in->node]) + BOX_WIDTH, y = y_of(l, in->node), end = x_of(l->column[to]),
           y_end = y_of(l, to) + BOX_HEIGHT * ((input + 1.0) / (p->nodes[to].input_count + 1.0) - 0.5);
    strbuf_printf(s, "<path%s d=\"M%.0f %.0f", back ? " class=\"b\"" : "", x, y);
    for (uint32_t c = l->column[in->node] + 1; c < l->column[to] && !back; c++) {
        uint32_t at = before(l, in->node, in->port, c + 1);
        put_curve(s, x, y, x_of(c), y_of(l, at), (x_of(c) - x) / 2);
        x = x_of(c) + BOX_WIDTH;
        y = y_of(l, at);
        strbuf_printf(s, "H%.0f", x);
    }
    put_curve(s, x, y, end, y_end, back ? COLUMN : (end - x) / 2);
    strbuf_puts(s, "\"><title>");
    strbuf_puts_xml(s, arena_printf(s->arena, "%s.%" PRIu32 " to %s.%" PRIu32 ": %s; %s", p->nodes[in->node].name, in->port,
                                    p->nodes[to].name, input, step_output_text(p, &p->nodes[in->node].outputs[in->port], s->arena),
                                    step_depth_text(in, s->arena)));
    strbuf_puts(s, "</title></path>\n");
}

void step_svg_put(strbuf *s, const step_program *p, const double *heat, const char *const *notes)
{
    layout l = lay_out(p, s->arena);
    uint32_t width = l.columns * COLUMN + 2 * MARGIN, height = (uint32_t)(l.rows * ROW) + 2 * MARGIN;
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
            put_edge(s, &l, i, k);
    for (uint32_t i = 0; i < p->node_count; i++)
        put_box(s, p, i, x_of(l.column[i]), y_of(&l, i) - BOX_HEIGHT / 2.0, heat, notes);
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
