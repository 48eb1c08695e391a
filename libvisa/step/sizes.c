#include "libvisa/step/sizes.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ir/step/total.h"
#include "support/file.h"
#include "support/json_nesting.h"
#include "support/shown.h"

typedef struct reading {
    const char *file;
    const step_graph *graph;
    json_t *operators;
    step_size_list *out;
    arena *arena;
    diag_list *diags;
    bool good;
} reading;

static void refuse(reading *r, const char *what)
{
    if (!r->good)
        return;
    r->good = false;
    diag *d = diag_add(r->diags, E_STEP_TOKENS, SRC_NOWHERE, "%s: %s", shown_text(r->file, r->arena), what);
    diag_help(r->diags, d, "`visa-run --sizes=FILE` writes the sizes of a run of the same program, transformed by the same passes");
}

static bool is_bound(const reading *r, const char *name)
{
    for (size_t i = 0; i < r->out->count; i++)
        if (r->out->items[i].graph == r->graph && strcmp(r->out->items[i].name, name) == 0)
            return true;
    return false;
}

/* The symbol that the size is, or is so many times; NULL: it is something else. */
static const step_expr *symbol_in(const reading *r, const step_expr *e, int64_t *times)
{
    const step_expr *plain, *ragged, *more;
    *times = 1;
    if (!e || step_expr_is_symbol(e))
        return e;
    bool is_multiple = step_expr_part(r->graph->exprs, e, 0, &plain, &ragged) && !step_expr_part(r->graph->exprs, e, 1, &more, &more) &&
                       step_expr_is_number(plain, times) && *times > 0 && step_expr_is_symbol(ragged);
    return is_multiple ? ragged : NULL;
}

/* The first size that the list gives for a symbol is the symbol's value. */
static void bind(reading *r, const step_expr *size, const json_t *list)
{
    int64_t times;
    const step_expr *e = symbol_in(r, size, &times);
    if (!e || is_bound(r, step_expr_name(e)))
        return;
    size_t count = json_array_size(list);
    int64_t *values = ARENA_ARRAY(r->arena, int64_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);
        values[i] = json_integer_value(v);
        if (!json_is_integer(v) || values[i] < 0)
            refuse(r, "a size is a whole number from 0 on");
        if (values[i] % times)
            refuse(r,
                   arena_printf(r->arena, "a size is a multiple of %" PRId64 " in the program, and %" PRId64 " there", times, values[i]));
        values[i] /= times;
    }
    if (!step_expr_is_ragged(e))
        count = 1; /* the same at every place; 0 where there is none */
    ARENA_PUSH(r->arena, r->out->items, r->out->count, r->out->capacity, ((step_binding){step_expr_name(e), values, count, r->graph}));
}

/* A selector that names nothing is an empty group of chunks, which tokens show as one of an empty chunk: how many each names is read where
 * it says so. */
static void read_picks(reading *r, const step_graph_node *n)
{
    const step_stream *selector = n->spec.inputs[n->spec.input_count - 1];
    const json_t *from = json_array_get(json_object_get(json_array_get(r->operators, selector->node->index), "outputs"), selector->port);
    bind(r, n->outputs[0].dims[selector->rank + 1], json_object_get(from, "picks"));
}

static void read_output(reading *r, const step_stream *s, const json_t *output)
{
    const json_t *sizes = json_object_get(output, "sizes");
    if (json_array_size(sizes) != s->rank + 1) {
        refuse(r, arena_printf(r->arena, "output %u of `%s` has %zu dimensions there, and %u in the program", s->port, s->node->name,
                               json_array_size(sizes), s->rank + 1));
        return;
    }
    for (uint32_t i = 0; i <= s->rank; i++)
        bind(r, s->dims[i], json_array_get(sizes, i));
    if (s->data->kind != STEP_TILE)
        return;
    bind(r, s->data->rows, json_object_get(output, "rows"));
    bind(r, s->data->columns, json_object_get(output, "columns"));
}

static void read_graph(reading *r)
{
    if (json_array_size(r->operators) != r->graph->node_count)
        refuse(r, arena_printf(r->arena, "it has %zu operators of `%s`, and the program %zu", json_array_size(r->operators), r->graph->name,
                               r->graph->node_count));
    for (size_t i = 0; i < r->graph->node_count && r->good; i++) {
        const step_graph_node *n = r->graph->nodes[i];
        const json_t *o = json_array_get(r->operators, i), *outputs = json_object_get(o, "outputs");
        const char *name = json_string_value(json_object_get(o, "name"));
        if (!name || strcmp(name, n->name) != 0 || json_array_size(outputs) != n->output_count)
            refuse(r, arena_printf(r->arena, "operator %zu of `%s` is `%s`, and something else there", i, r->graph->name, n->name));
        if (n->spec.op == STEP_REASSEMBLE && !n->outputs[0].assumed)
            read_picks(r, n);
        for (uint32_t k = 0; k < n->output_count && r->good; k++)
            read_output(r, &n->outputs[k], json_array_get(outputs, k));
    }
}

bool step_sizes_read(const char *file, step_graph *const *graphs, size_t count, step_size_list *out, arena *a, diag_list *diags)
{
    size_t bytes;
    unsigned char *text = file_read_all(file, &bytes, diags);
    if (!text)
        return false;
    json_t *root = json_nests_too_deeply((const char *)text, bytes) ? NULL : json_loadb((const char *)text, bytes, 0, NULL);
    free(text);
    const char *program = json_string_value(json_object_get(root, "program"));
    reading r = {.file = file, .operators = json_object_get(root, "operators"), .out = out, .arena = a, .diags = diags, .good = true};
    bool found = false;
    for (size_t i = 0; i < count && program && r.good; i++)
        if (!graphs[i]->bad && strcmp(graphs[i]->name, program) == 0) {
            r.graph = graphs[i];
            found = true;
            read_graph(&r);
        }
    if (!found)
        refuse(&r, program ? arena_printf(a, "it is of a stream program `%s`, which the file has not", program)
                           : "it is no JSON object with the sizes of a run");
    json_decref(root);
    return r.good;
}
