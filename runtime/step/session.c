#include "runtime/step/session.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/step/engine.h"
#include "runtime/step/judge.h"
#include "runtime/step/kernel.h"
#include "runtime/step/report.h"
#include "runtime/step/spill.h"
#include "runtime/step/tokens.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/tensor_file.h"
#include "support/file.h"
#include "support/json_text.h"
#include "support/shown.h"
#include "support/strbuf.h"

struct step_session {
    const step_program *program;
    step_session_options options;
    arena *arena;
    step_run run;
    const binary *binary;
    bool *filled;   /* by tensor: from a file */
    float **before; /* by tensor: what lay in it before the run, for a check; else NULL */
    finding_list found;
};

/* ---- opening ---- */

step_session *step_session_open(const binary *b, const step_program *p, const step_session_options *options, arena *a, diag_list *diags)
{
    step_session *s = ARENA_NEW(a, step_session);
    const step_kernel_run *const *kernels = step_kernel_runs_of(b, p, options->timing, a, diags);
    if (!kernels)
        return NULL;
    s->binary = b;
    s->program = options->unbounded ? step_program_unbounded(p, a) : p;
    if (options->onchip_bytes > 0)
        s->program = step_program_with_room(s->program, options->onchip_bytes, a);
    if (!step_spill_has_room(s->program, kernels, diags))
        return NULL;
    s->options = *options;
    s->arena = a;
    s->filled = ARENA_ARRAY(a, bool, p->tensor_count + 1);
    s->before = ARENA_ARRAY(a, float *, p->tensor_count + 1);
    s->run = (step_run){.program = s->program,
                        .kernels = kernels,
                        .arena = a,
                        .pool = step_pool_new(a, !options->timing_only),
                        .keep_sizes = options->keep_sizes,
                        .keep_record = options->keep_record,
                        .max_cycles = options->max_cycles,
                        .arrivals = options->checked ? ARENA_ARRAY(a, step_arrivals, p->node_count + 1) : NULL};
    s->run.stores = ARENA_ARRAY(a, step_store, p->tensor_count + 1);
    s->run.feeds = ARENA_ARRAY(a, step_feed, p->node_count + 1);
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].op == STEP_SINK)
            s->run.feeds[i].taken = step_buffer_new(s->run.pool, 0);
    return s;
}

void step_session_close(step_session *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->program->tensor_count; i++) {
        if (s->before[i] != s->run.stores[i].elements)
            free(s->before[i]);
        free(s->run.stores[i].elements);
    }
    step_pool_free(s->run.pool);
}

/* ---- names ---- */

static const step_node *node_named(const step_session *s, step_op op, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        const step_node *n = &s->program->nodes[i];
        if (n->op == op && strlen(n->name) == bytes && strncmp(n->name, name, bytes) == 0)
            return n;
    }
    return NULL;
}

static int64_t tensor_named(const step_session *s, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < s->program->tensor_count; i++)
        if (strlen(s->program->tensors[i].name) == bytes && strncmp(s->program->tensors[i].name, name, bytes) == 0)
            return i;
    return -1;
}

/* ---- tensors ---- */

/* A file has the tiles' dimensions and after them those of a tile. */
static tensor_type type_of_tensor(const step_session *s, uint32_t index)
{
    const step_tensor *t = &s->program->tensors[index];
    int64_t *shape = ARENA_ARRAY(s->arena, int64_t, t->dim_count + 2);
    memcpy(shape, t->shape, t->dim_count * sizeof *shape);
    shape[t->dim_count] = t->rows;
    shape[t->dim_count + 1] = t->columns;
    return (tensor_type){.dtype = t->dtype, .rank = (int)t->dim_count + 2, .shape = shape};
}

static bool allocate(step_session *s, uint32_t index, diag_list *diags)
{
    step_store *store = &s->run.stores[index];
    tensor_type type = type_of_tensor(s, index);
    int64_t elements = tensor_elements(&type);
    store->elements = elements > 0 ? calloc((size_t)elements, sizeof *store->elements) : NULL;
    if (!store->elements)
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "no memory for the %" PRId64 " elements of `%s`", elements,
                 s->program->tensors[index].name);
    return store->elements != NULL;
}

static bool take_elements(step_session *s, uint32_t index, const tensor *t, diag_list *diags)
{
    if (!s->run.stores[index].elements && !allocate(s, index, diags))
        return false;
    int64_t elements = tensor_elements(&t->type);
    for (int64_t i = 0; i < elements; i++)
        s->run.stores[index].elements[i] = (float)numeric_to_double(t->type.dtype, t->bytes, i);
    return true;
}

static bool fill_tensor(step_session *s, uint32_t index, diag_list *diags)
{
    tensor t;
    tensor_type type = type_of_tensor(s, index);
    if (s->program->tensors[index].written)
        return s->run.stores[index].elements || allocate(s, index, diags);
    if (!tensor_new(&type, s->arena, &t)) {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "no memory for `%s`", s->program->tensors[index].name);
        return false;
    }
    tensor_fill_random(&t, s->options.seed + index, 1);
    bool good = take_elements(s, index, &t, diags);
    tensor_free(&t);
    return good;
}

static bool input_tensor(step_session *s, uint32_t index, const char *file, diag_list *diags)
{
    tensor t;
    tensor_type type = type_of_tensor(s, index);
    s->filled[index] = true;
    if (s->options.timing_only)
        return true;
    if (!tensor_file_read(file, &type, s->options.rounds, s->arena, diags, &t))
        return false;
    bool good = take_elements(s, index, &t, diags);
    tensor_free(&t);
    return good;
}

/* ---- streams ---- */

static bool input_stream(step_session *s, const step_node *n, const char *file, diag_list *diags)
{
    size_t bytes;
    unsigned char *text = file_read_all(file, &bytes, diags);
    if (!text)
        return false;
    step_feed *feed = &s->run.feeds[n - s->program->nodes];
    bool good =
        step_tokens_read(s->program, &n->outputs[0], (const char *)text, bytes,
                         arena_printf(s->arena, "%s (%s)", shown_text(file, s->arena), n->name), s->run.pool, s->arena, diags, feed);
    free(text);
    return good;
}

bool step_session_input(step_session *s, const char *spec, diag_list *diags)
{
    const char *equals = strchr(spec, '=');
    size_t bytes = equals ? (size_t)(equals - spec) : 0;
    const step_node *n = equals ? node_named(s, STEP_SOURCE, spec, bytes) : NULL;
    int64_t t = equals ? tensor_named(s, spec, bytes) : -1;
    if (n ? s->run.feeds[n - s->program->nodes].tokens != NULL : t >= 0 && s->filled[t]) {
        diag *d = diag_add(diags, E_PORT, SRC_NOWHERE, "the input `%.*s` is given twice, the second time from %s", (int)bytes, spec,
                           shown_input(equals + 1, s->arena));
        diag_help(diags, d, "give it once");
        return false;
    }
    if (n)
        return input_stream(s, n, equals + 1, diags);
    if (t >= 0)
        return input_tensor(s, (uint32_t)t, equals + 1, diags);
    diag_add(diags, E_PORT, SRC_NOWHERE, "--input %s: the program `%s` has no stream and no tensor of that name; it takes NAME=FILE", spec,
             s->program->name);
    return false;
}

/* What a program does not write stays what it was. */
static bool keep_before(step_session *s, uint32_t index, diag_list *diags)
{
    const step_tensor *t = &s->program->tensors[index];
    size_t bytes = (size_t)(step_tensor_tiles(t) * t->rows * t->columns) * sizeof(float);
    s->before[index] = t->written ? malloc(bytes) : s->run.stores[index].elements;
    if (!s->before[index]) {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "no memory for another %zu bytes of `%s`", bytes, t->name);
        return false;
    }
    if (t->written)
        memcpy(s->before[index], s->run.stores[index].elements, bytes);
    return true;
}

bool step_session_run(step_session *s, diag_list *diags)
{
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        const step_node *n = &s->program->nodes[i];
        if (n->op != STEP_SOURCE || s->run.feeds[i].tokens)
            continue;
        diag *d = diag_add(diags, E_PORT, SRC_NOWHERE, "the stream `%s` has no tokens", n->name);
        diag_help(diags, d, "--input %s=FILE with a JSON array of tokens", n->name);
        return false;
    }
    for (uint32_t i = 0; i < s->program->tensor_count && !s->options.timing_only; i++)
        if (!s->filled[i] && !fill_tensor(s, i, diags))
            return false;
    for (uint32_t i = 0; i < s->program->tensor_count && s->options.checked; i++)
        if (!keep_before(s, i, diags))
            return false;
    return step_spill_prepare(&s->run, diags) && step_engine_run(&s->run, diags);
}

const finding_list *step_session_findings(const step_session *s)
{
    return &s->found;
}

bool step_session_check(step_session *s, bool *agrees, const char **report, diag_list *diags)
{
    size_t before = diags->error_count;
    *agrees = step_judge(&(step_judge_input){s->binary, &s->run, s->before}, s->arena, report, &s->found, diags);
    for (size_t i = 0; i < diags->count; i++)
        if (diags->items[i]->severity == DIAG_ERROR && diags->items[i]->id != E_CHECK_MISMATCH)
            return false;
    return *agrees || diags->error_count > before;
}

static bool output_tensor(const step_session *s, uint32_t index, const char *file, output *to, diag_list *diags)
{
    tensor t;
    tensor_type type = type_of_tensor(s, index);
    if (!s->run.stores[index].elements || !tensor_new(&type, s->arena, &t)) {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "`%s` has no values to write", s->program->tensors[index].name);
        return false;
    }
    for (int64_t i = 0; i < tensor_elements(&type); i++)
        numeric_from_double(type.dtype, t.bytes, i, (double)s->run.stores[index].elements[i]);
    bool good = tensor_file_put(file, &t, to, s->arena, diags);
    tensor_free(&t);
    return good;
}

bool step_session_output(step_session *s, const char *spec, output *to, diag_list *diags)
{
    const char *equals = strchr(spec, '=');
    size_t bytes = equals ? (size_t)(equals - spec) : 0;
    const step_node *n = equals ? node_named(s, STEP_SINK, spec, bytes) : NULL;
    int64_t t = equals ? tensor_named(s, spec, bytes) : -1;
    if (t >= 0 && s->program->tensors[t].written)
        return output_tensor(s, (uint32_t)t, equals + 1, to, diags);
    if (!n) {
        diag_add(diags, E_PORT, SRC_NOWHERE, "--output %s: the program `%s` gives no stream or tensor of that name; it takes NAME=FILE",
                 spec, s->program->name);
        return false;
    }
    const step_input *from = &n->inputs[0];
    const char *text = step_tokens_text(s->program, s->program->nodes[from->node].outputs[from->port].type,
                                        s->run.feeds[n - s->program->nodes].taken, s->arena);
    return output_put(to, text, strlen(text));
}

const char *step_session_report(const step_session *s, report_format format)
{
    return step_report_make(&s->run, format);
}

step_figures step_session_figures(const step_session *s)
{
    return step_report_figures(&s->run);
}

bool step_session_sizes(const step_session *s, output *to)
{
    const char *text = step_seen_sizes_text(s->program, s->run.seen, s->arena);
    return output_put(to, text, strlen(text));
}

const char *step_session_describe(const step_session *s)
{
    strbuf text;
    strbuf_init(&text, s->arena);
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        const step_node *n = &s->program->nodes[i];
        if (n->op == STEP_SOURCE)
            strbuf_printf(&text, "in  %s: stream %s\n", n->name, n->outputs[0].shape);
        if (n->op == STEP_SINK)
            strbuf_printf(&text, "out %s: stream %s\n", n->name, s->program->nodes[n->inputs[0].node].outputs[n->inputs[0].port].shape);
    }
    for (uint32_t i = 0; i < s->program->tensor_count; i++) {
        const step_tensor *t = &s->program->tensors[i];
        strbuf_printf(&text, "%s %s: %" PRId64 " %s tiles %" PRId64 " x %" PRId64 "\n", t->written ? "out" : "in ", t->name,
                      step_tensor_tiles(t), dtype_row_of(t->dtype)->name, t->rows, t->columns);
    }
    return text.text;
}

const char *step_session_describe_json(const step_session *s)
{
    json_t *ports = json_array(), *root = json_pack("{s:i, s:s}", "format", 1, "program", s->program->name);
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        const step_node *n = &s->program->nodes[i];
        const step_input *from = n->op == STEP_SINK ? &n->inputs[0] : NULL;
        if (n->op == STEP_SOURCE || from)
            json_array_append_new(ports, json_pack("{s:s, s:s, s:s}", "name", n->name, "direction", from ? "out" : "in", "stream",
                                                   from ? s->program->nodes[from->node].outputs[from->port].shape : n->outputs[0].shape));
    }
    for (uint32_t i = 0; i < s->program->tensor_count; i++) {
        const step_tensor *t = &s->program->tensors[i];
        json_array_append_new(ports, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", t->name, "direction", t->written ? "out" : "in",
                                               "dtype", dtype_row_of(t->dtype)->name, "tiles", (json_int_t)step_tensor_tiles(t), "rows",
                                               (json_int_t)t->rows, "columns", (json_int_t)t->columns));
    }
    json_object_set_new(root, "ports", ports);
    return json_dump_text(root, JSON_INDENT(2), s->arena);
}
