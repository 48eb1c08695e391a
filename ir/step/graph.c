#include "ir/step/graph.h"

#include <inttypes.h>
#include <string.h>

#include "ir/step/total.h"
#include "ir/step/type.h"
#include "support/budget.h"
#include "support/strbuf.h"

/* ---- adding ---- */

static bool check_param(step_graph *g, const step_spec *s, const step_param_row *row)
{
    int64_t value = s->param[row->slot];
    if (!step_param_row_is_of(row, s->op, s->fn) || (value >= row->minimum && value <= row->maximum))
        return true;
    diag *d = diag_add(g->diags, E_STEP_NUMBER, s->range, "`%s` of %s is %" PRId64 " %s; it has to be %" PRId64 " to %" PRId64, row->name,
                       step_op_row_of(s->op)->name, value, row->unit, row->minimum, row->maximum);
    diag_help(g->diags, d, "`%s` says: %s", row->name, row->summary);
    return false;
}

static bool check_params(step_graph *g, const step_spec *s)
{
    bool good = true;
    for (size_t i = 0; step_param_row_at(i); i++)
        good = check_param(g, s, step_param_row_at(i)) && good;
    return good;
}

/* How often a name was wanted. */
typedef struct step_stem {
    struct step_stem *next;
    const char *text;
    uint32_t count;
} step_stem;

/* By hash; as many lists, a power of two, as there are stems at least. */
typedef struct step_stems {
    step_stem **lists;
    size_t list_count, count;
} step_stems;

static step_stem **stem_list(const step_stems *all, const char *text)
{
    size_t hash = 0;
    while (*text)
        hash = hash * 31 + (unsigned char)*text++;
    return &all->lists[(hash ^ hash >> 7) & (all->list_count - 1)];
}

static step_stem *stem_of(step_graph *g, const char *text)
{
    step_stem *stem = g->stems ? *stem_list(g->stems, text) : NULL;
    while (stem && strcmp(stem->text, text) != 0) {
        budget_spend(g->arena, 1);
        stem = stem->next;
    }
    return stem;
}

static void link_stem(const step_stems *all, step_stem *stem)
{
    step_stem **list = stem_list(all, stem->text);
    stem->next = *list;
    *list = stem;
}

static void grow_stems(step_stems *all, arena *a)
{
    enum { FIRST_LISTS = 16 };
    step_stems old = *all;
    all->list_count = old.list_count ? 2 * old.list_count : FIRST_LISTS;
    all->lists = ARENA_ARRAY(a, step_stem *, all->list_count);
    for (size_t i = 0; i < old.list_count; i++)
        for (step_stem *stem = old.lists[i], *next; stem; stem = next) {
            next = stem->next;
            link_stem(all, stem);
        }
}

static step_stem *add_stem(step_graph *g, const char *text)
{
    if (!g->stems)
        g->stems = ARENA_NEW(g->arena, step_stems);
    if (g->stems->count == g->stems->list_count)
        grow_stems(g->stems, g->arena);
    step_stem *stem = ARENA_NEW(g->arena, step_stem);
    *stem = (step_stem){.text = arena_strdup(g->arena, text), .count = 1};
    link_stem(g->stems, stem);
    g->stems->count++;
    return stem;
}

/* The wanted name; the second and later ones have a number after a dot, which no written name has. */
static const char *unique_name(step_graph *g, const step_spec *s)
{
    const char *wanted = s->name ? s->name : step_op_row_of(s->op)->name, *name;
    step_stem *stem = stem_of(g, wanted);
    if (!stem)
        return add_stem(g, wanted)->text;
    do
        name = arena_printf(g->arena, "%s.%" PRIu32, wanted, ++stem->count);
    while (stem_of(g, name));
    return add_stem(g, name)->text;
}

static void add_node(step_graph *g, step_graph_node *n)
{
    n->index = (uint32_t)g->node_count;
    n->name = unique_name(g, &n->spec);
    n->depths = ARENA_ARRAY(g->arena, int64_t, n->spec.input_count + 1);
    for (uint32_t i = 0; i < n->spec.input_count; i++) {
        n->depths[i] = STEP_DEPTH_DEFAULT;
        n->spec.inputs[i]->node->outputs[n->spec.inputs[i]->port].used = true;
    }
    n->flops_per_cycle = n->spec.fn == STEP_FN_KERNEL ? 0 : g->default_flops_per_cycle;
    for (uint32_t i = 0; i < n->output_count; i++) {
        n->outputs[i].node = n;
        n->outputs[i].port = i;
        step_total_settle(g, &n->outputs[i]);
    }
    ARENA_PUSH(g->arena, g->nodes, g->node_count, g->node_capacity, n);
}

step_graph_node *step_graph_add(step_graph *g, const step_spec *spec)
{
    step_graph_node *n = ARENA_NEW(g->arena, step_graph_node);
    n->spec = *spec;
    const step_stream **inputs = ARENA_ARRAY(g->arena, const step_stream *, spec->input_count + 1);
    for (uint32_t i = 0; i < spec->input_count; i++)
        inputs[i] = spec->inputs[i];
    n->spec.inputs = inputs;
    if (!check_params(g, spec) || !step_infer(g, n)) {
        g->bad = true;
        return NULL;
    }
    add_node(g, n);
    return n;
}

/* ---- feedback ---- */

/* Stands for a source until there is one; it is no node of the graph. */
step_stream *step_graph_feedback(step_graph *g, const step_spec *spec)
{
    step_graph_node *n = ARENA_NEW(g->arena, step_graph_node);
    n->spec = *spec;
    n->name = spec->name ? spec->name : "feedback";
    n->output_count = 1;
    n->outputs = ARENA_NEW(g->arena, step_stream);
    n->outputs[0] = (step_stream){.node = n, .data = spec->data, .rank = spec->rank, .dims = spec->dims};
    ARENA_PUSH(g->arena, g->feedbacks, g->feedback_count, g->feedback_capacity, &n->outputs[0]);
    return &n->outputs[0];
}

static bool refuse_feedback(step_graph *g, src_range range, const char *text)
{
    diag *d = diag_add(g->diags, E_STEP_SHAPE, range, "%s", text);
    diag_help(g->diags, d, "`let s = feedback::<T>([sizes]);` and later once `s.connect(&source);`");
    g->bad = true;
    return false;
}

bool step_graph_connect(step_graph *g, step_stream *feedback, const step_stream *source, src_range range)
{
    size_t at = 0;
    while (at < g->feedback_count && g->feedbacks[at] != feedback)
        at++;
    if (at == g->feedback_count || source->node->index >= g->node_count || g->nodes[source->node->index] != source->node)
        return refuse_feedback(g, range, "a feedback stream is connected once, to a stream that has a source");
    if (feedback->rank != source->rank || !step_data_equal(feedback->data, source->data))
        return refuse_feedback(g, range,
                               arena_printf(g->arena, "feedback `%s` is %s, its source %s: rank and data type have to agree",
                                            feedback->node->name, step_stream_text(feedback, g->arena),
                                            step_stream_text(source, g->arena)));
    g->feedbacks[at] = g->feedbacks[--g->feedback_count];
    for (size_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->nodes[i]->spec.input_count; k++)
            if (g->nodes[i]->spec.inputs[k] == feedback)
                g->nodes[i]->spec.inputs[k] = source;
    source->node->outputs[source->port].used = true;
    return true;
}

void step_graph_close(step_graph *g)
{
    for (size_t i = 0; i < g->node_count && !g->bad; i++)
        for (uint32_t k = 0; k < g->nodes[i]->spec.input_count; k++) {
            const step_graph_node *from = g->nodes[i]->spec.inputs[k]->node;
            if (g->feedback_count == 0 && g->nodes[from->index] != from)
                refuse_feedback(g, g->nodes[i]->spec.range,
                                arena_printf(g->arena, "feedback `%s` is taken after it was connected", from->name));
        }
    for (size_t i = 0; i < g->feedback_count && !g->bad; i++)
        refuse_feedback(g, g->feedbacks[i]->node->spec.range,
                        arena_printf(g->arena, "feedback `%s` is never connected", g->feedbacks[i]->node->name));
}

/* ---- text ---- */

static void put_dims(strbuf *s, const step_expr *const *dims, uint32_t count, arena *a)
{
    strbuf_puts(s, "[");
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(s, "%s%s", i > 0 ? ", " : "", step_expr_text(dims[i], a));
    strbuf_puts(s, "]");
}

const char *step_shape_text(const step_stream *s, arena *a)
{
    strbuf text;
    strbuf_init(&text, a);
    put_dims(&text, (const step_expr *const *)s->dims, s->rank + 1, a);
    return text.text;
}

const char *step_data_text(const step_data *d, arena *a)
{
    strbuf text;
    switch (d->kind) {
    case STEP_TILE:
        return arena_printf(a, "%s tiles %s x %s", dtype_row_of(d->dtype)->name, step_expr_text(d->rows, a), step_expr_text(d->columns, a));
    case STEP_SELECTOR:
        return d->hot > 0 ? arena_printf(a, "selectors of %" PRId64 " of %" PRId64, d->hot, d->width)
                          : arena_printf(a, "selectors of %" PRId64, d->width);
    case STEP_PAIR: return arena_printf(a, "pairs (%s, %s)", step_data_text(d->first, a), step_data_text(d->second, a));
    case STEP_BOOL: return "bools";
    case STEP_ADDRESS: return "addresses";
    default: break;
    }
    strbuf_init(&text, a);
    strbuf_puts(&text, "buffers ");
    put_dims(&text, d->dims, d->dim_count, a);
    strbuf_printf(&text, " of %s", step_data_text(d->first, a));
    return text.text;
}

const char *step_stream_text(const step_stream *s, arena *a)
{
    return arena_printf(a, "%s of %s", step_shape_text(s, a), step_data_text(s->data, a));
}

/* ---- sizes ---- */

static const step_expr *bits_to_bytes(step_graph *g, const step_expr *elements, dtype t)
{
    unsigned bits = dtype_row_of(t)->bits;
    if (bits >= 8)
        return step_expr_multiply(g->exprs, elements, step_expr_number(g->exprs, bits / 8));
    return step_expr_ceil_divide(g->exprs, elements, 8 / bits);
}

const step_expr *step_data_bytes(step_graph *g, const step_data *d)
{
    const step_expr *bytes;
    switch (d->kind) {
    case STEP_TILE: return bits_to_bytes(g, step_expr_multiply(g->exprs, d->rows, d->columns), d->dtype);
    case STEP_SELECTOR: return step_expr_number(g->exprs, d->width);
    case STEP_PAIR: return step_expr_add(g->exprs, step_data_bytes(g, d->first), step_data_bytes(g, d->second));
    case STEP_BOOL: return step_expr_number(g->exprs, 1);
    case STEP_ADDRESS: return step_expr_number(g->exprs, 8);
    default: break;
    }
    bytes = step_data_bytes(g, d->first);
    for (uint32_t i = 0; i < d->dim_count; i++)
        bytes = step_expr_multiply(g->exprs, bytes, d->dims[i]);
    return bytes;
}
