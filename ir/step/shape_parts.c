#include "ir/step/shape_parts.h"

#include <inttypes.h>
#include <string.h>

#include "support/budget.h"

void shape_nest(step_graph *g, step_data *d)
{
    const step_data *second = d->second ? d->second : d->first;
    d->depth = 1 + (second->depth > d->first->depth ? second->depth : d->first->depth);
    if (__builtin_add_overflow(d->first->parts + 1, d->second ? second->parts : 0, &d->parts))
        d->parts = UINT64_MAX - 1;
    budget_nested(g->arena, d->depth, d->parts);
}

/* ---- complaining ---- */

enum { NOTES_MAX = 4 }; /* inputs that a diagnostic shows */

static const char *op_name(const step_graph_node *n)
{
    return step_op_row_of(n->spec.op)->name;
}

/* Always false. Shows the inputs' shapes, and what would be accepted. */
bool shape_refuse(step_graph *g, const step_graph_node *n, diag_id id, const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(g->arena, format, args);
    va_end(args);
    diag *d = diag_add(g->diags, id, n->spec.range, "%s: %s", op_name(n), text);
    for (uint32_t i = 0; i < n->spec.input_count && i < NOTES_MAX; i++)
        diag_note(g->diags, d, n->spec.inputs[i]->node->spec.range, "input %" PRIu32 " is %s", i,
                  step_stream_text(n->spec.inputs[i], g->arena));
    diag_help(g->diags, d, "%s", help);
    return false;
}

const char *shape_text_of(step_graph *g, const step_expr *e)
{
    return step_expr_text(e, g->arena);
}

/* ---- making outputs ---- */

step_stream *shape_output(step_graph *g, step_graph_node *n, uint32_t port, uint32_t rank, const step_data *data)
{
    step_stream *s = &n->outputs[port];
    s->rank = rank;
    s->data = data;
    s->dims = ARENA_ARRAY(g->arena, const step_expr *, rank + 1);
    return s;
}

void shape_outputs(step_graph *g, step_graph_node *n, uint32_t count)
{
    n->output_count = count;
    n->outputs = ARENA_ARRAY(g->arena, step_stream, count + 1);
}

/* One output with the first input's shape. */
bool shape_same_shape(step_graph *g, step_graph_node *n, const step_data *data)
{
    const step_stream *in = n->spec.inputs[0];
    shape_outputs(g, n, 1);
    memcpy(shape_output(g, n, 0, in->rank, data)->dims, in->dims, (in->rank + 1) * sizeof *in->dims);
    return data != NULL;
}

const step_expr *shape_absorbed(step_graph *g, const step_stream *in, uint32_t min, uint32_t max, const step_expr *e,
                                const step_expr *places, const step_expr *total)
{
    bool is_new;
    if (!e || !step_expr_is_ragged(e) || step_expr_is_symbol(e))
        return e;
    const step_expr *size = step_groups_absorbed(g, in, min, max, e, &is_new);
    if (is_new)
        step_total_define(g, size, places, e, total);
    return size;
}

const step_expr *shape_number(step_graph *g, int64_t value)
{
    return step_expr_number(g->exprs, value);
}

const char shape_equal_help[] = "sizes are equal when their expressions are; where you know more than they say, write `.assume([..])`";

bool shape_rank_at_least(step_graph *g, const step_graph_node *n, uint32_t input, int64_t least, const char *what)
{
    const step_stream *s = n->spec.inputs[input];
    if (s->rank >= least)
        return true;
    return shape_refuse(g, n, E_STEP_SHAPE, "`promote`, `repeat` and `reshape` raise a rank; a rank is one less than the dimensions",
                        "input %" PRIu32 " has rank %" PRIu32 " and `%s` wants %" PRId64, input, s->rank, what, least);
}

bool shape_rank_fits(step_graph *g, const step_graph_node *n, int64_t rank)
{
    return rank <= STEP_RANK_MAX || shape_refuse(g, n, E_STEP_SHAPE, "`flatten` joins dimensions that need not be apart",
                                                 "the output would have rank %" PRId64 "; ranks end at %d", rank, STEP_RANK_MAX);
}

/* Equal ranks, and D_from .. D_a of both equal. */
bool shape_same_dims(step_graph *g, const step_graph_node *n, const step_stream *a, const step_stream *b, uint32_t from)
{
    if (a->rank != b->rank)
        return shape_refuse(g, n, E_STEP_SHAPE, "`repeat` or `expand` the stream that has fewer dimensions",
                            "ranks %" PRIu32 " and %" PRIu32 " in lock step", a->rank, b->rank);
    for (uint32_t i = a->rank + 1; i-- > from;)
        if (step_dim(a, i) != step_dim(b, i))
            return shape_refuse(g, n, E_STEP_SHAPE, shape_equal_help, "dimension D%" PRIu32 " is %s of one input and %s of another", i,
                                shape_text_of(g, step_dim(a, i)), shape_text_of(g, step_dim(b, i)));
    return true;
}

bool shape_is_kind(step_graph *g, const step_graph_node *n, uint32_t input, step_kind kind, const char *what)
{
    const step_data *d = n->spec.inputs[input]->data;
    return d->kind == kind || shape_refuse(g, n, E_STEP_TYPE, "docs/step.md has a table of what each operator takes",
                                           "input %" PRIu32 " carries %s; it takes %s", input, step_data_text(d, g->arena), what);
}

bool shape_in_step(step_graph *g, const step_graph_node *n)
{
    for (uint32_t i = 1; i < n->spec.input_count; i++)
        if (!shape_same_dims(g, n, n->spec.inputs[0], n->spec.inputs[i], 0))
            return false;
    return true;
}

const step_data *shape_plain_data(step_graph *g, step_kind kind)
{
    step_data *d = ARENA_NEW(g->arena, step_data);
    d->kind = kind;
    return d;
}
