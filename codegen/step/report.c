#include "codegen/step/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/step/emit.h"
#include "codegen/step/picture.h"
#include "codegen/step/spill.h"
#include "ir/step/total.h"
#include "passes/step/metrics.h"
#include "support/json_text.h"

typedef struct symbol {
    const char *name;
    bool ragged;
} symbol;

typedef struct reporting {
    const emit_context *e;
    arena *arena;
    step_graph *graph;
    const step_metrics *metrics;
    step_bindings bindings;
    symbol *symbols; /* in order of occurrence */
    size_t symbol_count, symbol_capacity;
    bool limited; /* the chip holds a limited number of bytes */
    step_spill_cost spill;
} reporting;

/* ---- symbols ---- */

static void visit_symbol(void *user, const char *name, bool ragged)
{
    reporting *r = user;
    symbol s = {name, ragged};
    for (size_t i = 0; i < r->symbol_count; i++)
        if (strcmp(r->symbols[i].name, name) == 0)
            return;
    ARENA_PUSH(r->arena, r->symbols, r->symbol_count, r->symbol_capacity, s);
}

static void visit(reporting *r, const step_expr *e)
{
    if (e)
        step_expr_symbols(e, visit_symbol, r);
}

static void collect_symbols(reporting *r)
{
    for (size_t i = 0; i < r->graph->node_count; i++) {
        const step_graph_node *n = r->graph->nodes[i];
        const step_cost_expr *c = &r->metrics->nodes[i];
        for (uint32_t o = 0; o < n->output_count; o++) {
            for (uint32_t d = 0; d <= n->outputs[o].rank; d++)
                visit(r, n->outputs[o].dims[d]);
            visit(r, step_cardinality(r->graph, &n->outputs[o]));
        }
        visit(r, c->offchip_bytes);
        visit(r, c->flops);
        for (int q = 0; q < STEP_EQUATIONS; q++)
            visit(r, c->onchip_bytes[q]);
        if (r->limited)
            visit(r, r->metrics->accesses[i]);
    }
}

static bool number_of(const reporting *r, const step_expr *e, int64_t *value)
{
    const char *missing;
    return step_bind_evaluate(&r->bindings, e, value, &missing);
}

static reporting reporting_of(const emit_context *e, const step_cost_report *what, step_graph *g)
{
    reporting r = {.e = e,
                   .arena = e->arena,
                   .graph = g,
                   .metrics = step_measure(g),
                   .bindings = {g, what->bindings, what->binding_count},
                   .limited = g->machine.onchip_bytes > 0};
    collect_symbols(&r);
    if (r.limited)
        r.spill = step_spill_cost_of(g, r.metrics, &r.bindings, e->arena);
    return r;
}

static uint32_t line_of(const reporting *r, const step_graph_node *n)
{
    return r->e->line_of(r->e->user, n->spec.range);
}

/* Values that go in: of what has outputs, out of the first one. */
static const step_expr *values_of(const reporting *r, const step_graph_node *n)
{
    return step_cardinality(r->graph, n->output_count > 0 ? &n->outputs[0] : n->spec.inputs[0]);
}

/* ---- families of terms ---- */

typedef struct term {
    const char *text;
    size_t bytes;
} term;

/* The terms of a sum, as they are printed. */
static size_t terms_of(const char *text, term **terms, arena *a)
{
    size_t count = 0, capacity = 0;
    int inside = 0;
    *terms = NULL;
    for (const char *begin = text, *at = text;; at++) {
        inside += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at && (inside > 0 || strncmp(at, " + ", 3) != 0))
            continue;
        term t = {begin, (size_t)(at - begin)};
        ARENA_PUSH(a, *terms, count, capacity, t);
        if (!*at)
            return count;
        begin = at + 3;
    }
}

/* Where the number of a symbol stands in which two terms differ, being one more in the second; false: they differ otherwise. */
static bool follows(const term *a, const term *b, size_t *at, int64_t *number)
{
    size_t same = 0;
    while (same < a->bytes && same < b->bytes && a->text[same] == b->text[same])
        same++;
    while (same > 0 && strchr("0123456789", a->text[same - 1]))
        same--;
    bool named = same > 0 && (strchr("_", a->text[same - 1]) || ((a->text[same - 1] | 32) >= 'a' && (a->text[same - 1] | 32) <= 'z'));
    if (!named || same == a->bytes || same == b->bytes || !strchr("0123456789", a->text[same]) || !strchr("0123456789", b->text[same]))
        return false;
    char *end_a, *end_b;
    long long x = strtoll(a->text + same, &end_a, 10), y = strtoll(b->text + same, &end_b, 10);
    size_t rest_a = a->bytes - (size_t)(end_a - a->text), rest_b = b->bytes - (size_t)(end_b - b->text);
    *at = same;
    *number = x;
    return y == x + 1 && rest_a == rest_b && strncmp(end_a, end_b, rest_a) == 0;
}

/* From this many on they are written as one. */
enum { FAMILY = 4 };

static void put_family(strbuf *s, const term *first, size_t at, int64_t from, int64_t to)
{
    char *end;
    size_t times = strspn(first->text, "0123456789");
    times = times > 0 && first->text[times] == '*' ? times + 1 : 0;
    strtoll(first->text + at, &end, 10);
    strbuf_printf(s, "%.*ssum(%.*s[%" PRId64 "..%" PRId64 "]%.*s)", (int)times, first->text, (int)(at - times), first->text + times, from,
                  to, (int)(first->bytes - (size_t)(end - first->text)), end);
}

/* "4*r0 + 4*r1 + 4*r2 + 4*r3" as "4*sum(r[0..3])": what differs in nothing but the number of a symbol. */
static const char *families_text(const char *text, arena *a)
{
    term *terms;
    size_t count = terms_of(text, &terms, a), last;
    strbuf s;
    strbuf_init(&s, a);
    for (size_t i = 0; i < count; i = last + 1) {
        size_t at = 0, here;
        int64_t from = 0, number;
        for (last = i; last + 1 < count && follows(&terms[last], &terms[last + 1], &here, &number) && (last == i || here == at); last++) {
            at = here;
            from = last == i ? number : from;
        }
        strbuf_puts(&s, i > 0 ? " + " : "");
        if (last - i + 1 >= FAMILY) {
            put_family(&s, &terms[i], at, from, from + (int64_t)(last - i));
            continue;
        }
        last = i;
        strbuf_printf(&s, "%.*s", (int)terms[i].bytes, terms[i].text);
    }
    return s.text;
}

/* ---- text ---- */

static bool is_zero(const step_expr *e)
{
    int64_t value;
    return e && step_expr_is_number(e, &value) && value == 0;
}

/* "4*B = 256", "4*B", "256". */
static const char *cost_text(const reporting *r, const step_expr *e)
{
    int64_t value;
    const char *text = families_text(step_expr_text(e, r->arena), r->arena);
    bool plain = e && step_expr_is_number(e, &value);
    return !plain && number_of(r, e, &value) ? arena_printf(r->arena, "%s = %" PRId64, text, value) : text;
}

static void put_cost(strbuf *s, const reporting *r, const char *what, const step_expr *e, bool always)
{
    if (always || !is_zero(e))
        strbuf_printf(s, "    %-24s %s\n", what, cost_text(r, e));
}

static void put_costs(strbuf *s, const reporting *r, const step_cost_expr *c, bool always)
{
    put_cost(s, r, "off-chip bytes", c->offchip_bytes, always);
    for (int q = 0; q < STEP_EQUATIONS; q++)
        put_cost(s, r, arena_printf(r->arena, "on-chip bytes, %s", step_equation_names[q]), c->onchip_bytes[q], always);
    put_cost(s, r, "FLOPs", c->flops, always);
}

static void put_number(strbuf *s, const char *what, int64_t number)
{
    strbuf_printf(s, "    %-24s %" PRId64 "\n", what, number);
}

static void put_node(strbuf *s, const reporting *r, const step_graph_node *n)
{
    strbuf_printf(s, "  %s (%s, line %" PRIu32 ")\n", n->name, step_op_row_of(n->spec.op)->name, line_of(r, n));
    bool several = n->output_count > 1;
    for (uint32_t o = 0; o < n->output_count; o++)
        strbuf_printf(s, "    %-24s %s\n", several ? arena_printf(r->arena, "output %" PRIu32, o) : "output",
                      step_stream_text(&n->outputs[o], r->arena));
    for (uint32_t o = 0; o < n->output_count && several; o++)
        put_cost(s, r, arena_printf(r->arena, "values, output %" PRIu32, o), step_cardinality(r->graph, &n->outputs[o]), true);
    if (!several)
        put_cost(s, r, "values", values_of(r, n), true);
    put_costs(s, r, &r->metrics->nodes[n->index], false);
    if (r->limited && r->spill.known && r->spill.by_node[n->index] > 0)
        put_number(s, "off-chip bytes, spilled", r->spill.by_node[n->index]);
}

/* Of the whole program, on a chip that holds so many bytes. */
static void put_spill(strbuf *s, const reporting *r)
{
    int64_t bytes;
    if (!r->limited)
        return;
    put_number(s, "on-chip capacity", r->graph->machine.onchip_bytes);
    if (!r->spill.known) {
        strbuf_printf(s, "    %-24s %s\n", "bytes that do not fit", "known when all sizes have numbers (-D, --sizes)");
        return;
    }
    put_number(s, "bytes that do not fit", r->spill.spilled_bytes);
    put_number(s, "off-chip bytes, spilled", r->spill.traffic_bytes);
    if (number_of(r, r->metrics->total.offchip_bytes, &bytes) && !__builtin_add_overflow(bytes, r->spill.traffic_bytes, &bytes))
        put_number(s, "off-chip bytes, all", bytes);
}

static void put_intensity(strbuf *s, const reporting *r)
{
    const step_cost_expr *t = &r->metrics->total;
    int64_t flops, bytes;
    const char *ratio = arena_printf(r->arena, "(%s) / (%s)", families_text(step_expr_text(t->flops, r->arena), r->arena),
                                     families_text(step_expr_text(t->offchip_bytes, r->arena), r->arena));
    if (is_zero(t->offchip_bytes))
        return;
    if (number_of(r, t->flops, &flops) && number_of(r, t->offchip_bytes, &bytes) && bytes > 0)
        ratio = arena_printf(r->arena, "%s = %.4f", ratio, (double)flops / (double)bytes);
    strbuf_printf(s, "    %-24s %s\n", "FLOPs per off-chip byte", ratio);
}

static void put_symbols(strbuf *s, const reporting *r)
{
    if (r->symbol_count > 0)
        strbuf_puts(s, "  sizes\n");
    for (size_t i = 0; i < r->symbol_count; i++) {
        int64_t value;
        const symbol *y = &r->symbols[i];
        bool known = !y->ragged && number_of(r, step_expr_symbol(r->graph->exprs, y->name, false), &value);
        strbuf_printf(s, "    %-24s %s\n", y->ragged ? arena_printf(r->arena, "~%s", y->name) : y->name,
                      y->ragged ? "differs by outer index"
                      : known   ? arena_printf(r->arena, "%" PRId64, value)
                                : "not given");
    }
}

const char *step_cost_text(const emit_context *e, const step_cost_report *what)
{
    strbuf s;
    strbuf_init(&s, e->arena);
    for (size_t i = 0; i < what->count; i++) {
        reporting r = reporting_of(e, what, what->graphs[i]);
        strbuf_printf(&s, "%sstream program %s\n", i > 0 ? "\n" : "", r.graph->name);
        put_symbols(&s, &r);
        for (size_t k = 0; k < r.graph->node_count; k++)
            put_node(&s, &r, r.graph->nodes[k]);
        strbuf_puts(&s, "  total\n");
        put_costs(&s, &r, &r.metrics->total, true);
        put_intensity(&s, &r);
        put_spill(&s, &r);
    }
    return s.text;
}

/* ---- CSV and the page ---- */

static void put_field(strbuf *s, const reporting *r, const step_expr *e)
{
    int64_t value;
    if (number_of(r, e, &value))
        strbuf_printf(s, ",%" PRId64, value);
    else
        strbuf_printf(s, ",\"%s\"", step_expr_text(e, r->arena));
}

static void put_fields(strbuf *s, const reporting *r, const step_cost_expr *c)
{
    put_field(s, r, c->offchip_bytes);
    for (int q = 0; q < STEP_EQUATIONS; q++)
        put_field(s, r, c->onchip_bytes[q]);
    put_field(s, r, c->flops);
    strbuf_puts(s, "\n");
}

/* A row for each output; what the operator costs stands in the first. */
static void put_rows(strbuf *s, const reporting *r, const step_graph_node *n)
{
    const step_expr *none = step_expr_number(r->graph->exprs, 0);
    const step_cost_expr nothing = {none, {none, none}, none};
    for (uint32_t o = 0; o == 0 || o < n->output_count; o++) {
        const step_stream *out = n->output_count > 0 ? &n->outputs[o] : NULL;
        strbuf_printf(s, "%s,%s,%s,%" PRIu32 ",\"%s\"", r->graph->name, n->name, step_op_row_of(n->spec.op)->name, line_of(r, n),
                      out ? step_stream_text(out, r->arena) : "");
        put_field(s, r, out ? step_cardinality(r->graph, out) : values_of(r, n));
        put_fields(s, r, o == 0 ? &r->metrics->nodes[n->index] : &nothing);
    }
}

const char *step_cost_csv(const emit_context *e, const step_cost_report *what)
{
    strbuf s;
    strbuf_init(&s, e->arena);
    strbuf_puts(&s, "program,name,operator,line,output,values,offchip_bytes");
    for (int q = 0; q < STEP_EQUATIONS; q++)
        strbuf_printf(&s, ",onchip_bytes_%s", step_equation_names[q]);
    strbuf_puts(&s, ",flops\n");
    for (size_t i = 0; i < what->count; i++) {
        reporting r = reporting_of(e, what, what->graphs[i]);
        for (size_t k = 0; k < r.graph->node_count; k++)
            put_rows(&s, &r, r.graph->nodes[k]);
        strbuf_printf(&s, "%s,total,,,,", r.graph->name);
        put_fields(&s, &r, &r.metrics->total);
    }
    return s.text;
}

const char *step_cost_page(const emit_context *e, const step_cost_report *what)
{
    strbuf s;
    strbuf_init(&s, e->arena);
    step_page_begin(&s, what->count == 1 ? what->graphs[0]->name : "stream programs");
    for (size_t i = 0; i < what->count; i++) {
        strbuf_puts(&s, "<h2>");
        strbuf_puts_xml(&s, what->graphs[i]->name);
        strbuf_puts(&s, "</h2><div class=\"wide\">\n");
        step_svg_put(&s, step_emit(e, what->graphs[i]), NULL, NULL);
        strbuf_puts(&s, "</div>\n");
    }
    strbuf_puts(&s, "<h2>Costs</h2><pre>");
    strbuf_puts_xml(&s, step_cost_text(e, what));
    strbuf_puts(&s, "</pre>\n");
    step_page_end(&s);
    return s.text;
}

/* ---- JSON ---- */

/* {"expr": .., "value": ..}; null where a size is not known. */
static json_t *cost_json(const reporting *r, const step_expr *e)
{
    int64_t value;
    json_t *j = json_object();
    json_object_set_new(j, "expr", e ? json_string(step_expr_text(e, r->arena)) : json_null());
    json_object_set_new(j, "value", e && number_of(r, e, &value) ? json_integer(value) : json_null());
    return j;
}

static json_t *dimension_json(const reporting *r, const step_expr *d)
{
    int64_t value;
    json_t *j = cost_json(r, d);
    json_object_set_new(j, "class", json_string(step_expr_is_number(d, &value) ? "static" : step_expr_is_ragged(d) ? "ragged" : "dynamic"));
    return j;
}

static json_t *output_json(const reporting *r, const step_stream *s)
{
    json_t *j = json_object(), *shape = json_array();
    for (uint32_t i = 0; i <= s->rank; i++)
        json_array_append_new(shape, dimension_json(r, s->dims[i]));
    json_object_set_new(j, "shape", shape);
    json_object_set_new(j, "type", json_string(step_data_text(s->data, r->arena)));
    json_object_set_new(j, "values", cost_json(r, step_cardinality(r->graph, s)));
    return j;
}

static void set_costs(const reporting *r, json_t *j, const step_cost_expr *c)
{
    json_t *onchip = json_object();
    json_object_set_new(j, "offchip_bytes", cost_json(r, c->offchip_bytes));
    for (int q = 0; q < STEP_EQUATIONS; q++)
        json_object_set_new(onchip, step_equation_names[q], cost_json(r, c->onchip_bytes[q]));
    json_object_set_new(j, "onchip_bytes", onchip);
    json_object_set_new(j, "flops", cost_json(r, c->flops));
    int64_t flops, bytes;
    bool known = number_of(r, c->flops, &flops) && number_of(r, c->offchip_bytes, &bytes) && bytes > 0;
    json_object_set_new(j, "flops_per_offchip_byte", known ? json_real((double)flops / (double)bytes) : json_null());
}

static json_t *node_json(const reporting *r, const step_graph_node *n)
{
    json_t *j = json_object(), *outputs = json_array();
    json_object_set_new(j, "name", json_string(n->name));
    json_object_set_new(j, "operator", json_string(step_op_row_of(n->spec.op)->name));
    json_object_set_new(j, "line", json_integer(line_of(r, n)));
    for (uint32_t o = 0; o < n->output_count; o++)
        json_array_append_new(outputs, output_json(r, &n->outputs[o]));
    json_object_set_new(j, "outputs", outputs);
    set_costs(r, j, &r->metrics->nodes[n->index]);
    if (r->limited)
        json_object_set_new(j, "spill_traffic_bytes", r->spill.known ? json_integer(r->spill.by_node[n->index]) : json_null());
    return j;
}

static json_t *symbols_json(const reporting *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->symbol_count; i++) {
        int64_t value;
        const symbol *y = &r->symbols[i];
        json_t *j = json_object();
        bool known = !y->ragged && number_of(r, step_expr_symbol(r->graph->exprs, y->name, false), &value);
        json_object_set_new(j, "name", json_string(y->name));
        json_object_set_new(j, "ragged", json_boolean(y->ragged));
        json_object_set_new(j, "value", known ? json_integer(value) : json_null());
        json_array_append_new(list, j);
    }
    return list;
}

static json_t *program_json(const reporting *r)
{
    json_t *j = json_object(), *operators = json_array(), *total = json_object();
    json_object_set_new(j, "program", json_string(r->graph->name));
    json_object_set_new(j, "sizes", symbols_json(r));
    for (size_t i = 0; i < r->graph->node_count; i++)
        json_array_append_new(operators, node_json(r, r->graph->nodes[i]));
    json_object_set_new(j, "operators", operators);
    set_costs(r, total, &r->metrics->total);
    if (r->limited) {
        json_object_set_new(total, "onchip_capacity", json_integer(r->graph->machine.onchip_bytes));
        json_object_set_new(total, "spilled_bytes", r->spill.known ? json_integer(r->spill.spilled_bytes) : json_null());
        json_object_set_new(total, "spill_traffic_bytes", r->spill.known ? json_integer(r->spill.traffic_bytes) : json_null());
    }
    json_object_set_new(j, "total", total);
    return j;
}

const char *step_cost_json(const emit_context *e, const step_cost_report *what)
{
    json_t *list = json_array();
    for (size_t i = 0; i < what->count; i++) {
        reporting r = reporting_of(e, what, what->graphs[i]);
        json_array_append_new(list, program_json(&r));
    }
    return json_dump_text(list, JSON_INDENT(2), e->arena);
}
