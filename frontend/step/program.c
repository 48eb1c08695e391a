#include "frontend/step/program.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/step/evaluate.h"
#include "support/order.h"

bool step_is_program(const ast *fn)
{
    return ast_is(fn, AST_FN) && ast_attribute(fn, "stream") != NULL;
}

/* ---- `#[stream(channels = 8, depth = 1, ..)]` ---- */

typedef struct setting {
    const char *name;
    int64_t *value, least, most;
} setting;

/* A number, or the name of a constant of the file. */
static step_term setting_value(step_evaluation *e, const ast *arg)
{
    const ast *given = ast_kid(arg, 0);
    if (ast_is(given, AST_INT))
        return step_evaluate(e, given);
    if (!ast_is(given, AST_RAW))
        return (step_term){.kind = TERM_UNIT};
    ast *segment = ast_new(e->arena, AST_SEGMENT, given->range), *path = ast_new(e->arena, AST_PATH, given->range);
    segment->text = given->text;
    ast_push(e->arena, path, segment);
    return step_evaluate(e, path);
}

/* FLOPs per cycle follow from the compute tile, unless the program says them; what the command line gives goes before both. */
static void settle_machine(step_graph *g, int64_t compute, const step_given *given)
{
    step_machine *m = &g->machine;
    m->compute_tile = given->compute_tile > 0 ? given->compute_tile : m->compute_tile;
    m->onchip_bytes = given->onchip_bytes > 0 ? given->onchip_bytes : m->onchip_bytes;
    g->default_flops_per_cycle = compute < 0 || given->compute_tile > 0 ? step_tile_flops(m->compute_tile) : compute;
}

static const char *most_text(const setting *s, arena *a)
{
    for (int bits = 10; bits <= 50; bits++)
        if (s->most == INT64_C(1) << bits)
            return arena_printf(a, "2^%d", bits);
    return arena_printf(a, "%lld", (long long)s->most);
}

static void read_settings(step_evaluation *e, const ast *attribute, const step_given *command_line)
{
    step_graph *g = e->graph;
    step_machine *m = &g->machine;
    const int64_t most = INT64_C(1) << 30;
    int64_t compute = -1;
    const setting settings[] = {
        {"channels", &m->memory_channels, 1, most},
        {"requests_per_cycle", &m->requests_per_cycle, 1, most},
        {"request_bytes", &m->request_bytes, 1, most},
        {"memory_latency", &m->memory_latency_cycles, 0, most},
        {"memory_interval", &m->memory_interval_cycles, 1, most},
        {"memory_startup", &m->memory_startup_cycles, 0, most},
        {"onchip_bytes_per_cycle", &m->onchip_bytes_per_cycle, 1, most},
        {"onchip_bytes", &m->onchip_bytes, 0, STEP_ONCHIP_BYTES_MAX},
        {"compute_tile", &m->compute_tile, 1, STEP_COMPUTE_TILE_MAX},
        {"depth", &g->default_depth, 0, most},
        {"compute", &compute, 0, most},
    };
    for (uint32_t i = 1; i < attribute->kid_count; i++) {
        const ast *arg = attribute->kids[i];
        const setting *found = NULL;
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
            found = strcmp(settings[k].name, arg->text) == 0 ? &settings[k] : found;
        step_term given = found ? setting_value(e, arg) : (step_term){.kind = TERM_UNIT};
        if (given.kind == TERM_ERROR)
            continue;
        if (given.kind != TERM_INT) {
            step_refuse(e, arg->range, "`%s` is no setting of #[stream] with a number; docs/step.md lists them", arg->text);
            continue;
        }
        int64_t value = given.number;
        if (value < found->least || value > found->most)
            step_refuse(e, arg->range, "`%s` has to be %lld to %s", arg->text, (long long)found->least, most_text(found, e->arena));
        else
            *found->value = value;
    }
    settle_machine(g, compute, command_line);
}

/* ---- results ---- */

static void add_sinks(step_evaluation *e, const ast *fn, const step_term *value, const char *name)
{
    if (value->kind == TERM_STREAM) {
        const step_stream *inputs[] = {value->stream};
        step_spec s = {.op = STEP_SINK, .name = name, .range = fn->name_range, .inputs = inputs, .input_count = 1};
        step_graph_node *n = step_graph_add(e->graph, &s);
        if (n)
            n->depths[0] = value->depth;
        return;
    }
    if (value->kind != TERM_LIST) {
        const ast *body = fn->kids[4];
        if (value->kind != TERM_ERROR && value->kind != TERM_UNIT)
            step_refuse(e, body->kid_count ? body->kids[body->kid_count - 1]->range : fn->name_range,
                        "a stream program returns streams, not %s", step_term_text(value));
        return;
    }
    budget_enter(e->arena);
    for (size_t i = 0; i < value->count; i++)
        add_sinks(e, fn, &value->items[i], arena_printf(e->arena, "%s%zu", name, i));
    budget_leave(e->arena);
}

/* A function of tiles or streams that no program of the file uses. */
static bool is_no_program(const ast *fn)
{
    for (uint32_t i = 0; i < fn->kids[2]->kid_count; i++)
        if (step_is_parameter(fn->kids[2]->kids[i]))
            return false;
    return fn->kids[2]->kid_count > 0;
}

static void read_program(step_evaluation *e, const ast *fn, const step_given *given)
{
    if (is_no_program(fn)) {
        step_refuse_with(
            e, fn->name_range,
            arena_printf(e->arena, "a program of the file uses it, as `x.map(%s)` or `%s(x)`, or it is left out", fn->text, fn->text),
            "`%s` takes no streams and no tensors, and no program uses it", fn->text);
        return;
    }
    read_settings(e, ast_attribute(fn, "stream"), given);
    step_read_generics(e, fn->kids[1]);
    for (uint32_t i = 0; i < fn->kids[2]->kid_count; i++)
        step_read_parameter(e, fn->kids[2]->kids[i]);
    if (!ast_is(fn->kids[4], AST_BLOCK)) {
        step_refuse(e, fn->range, "a stream program has a body");
        return;
    }
    step_term value = step_evaluate(e, fn->kids[4]);
    add_sinks(e, fn, &value, "out");
    step_graph_close(e->graph);
    if (e->graph->node_count == 0 && !e->graph->bad)
        step_refuse(e, fn->name_range, "the program has no operator");
}

/* The names that stream programs call, sorted, but those of a program in itself. */
typedef struct called_names {
    arena *arena;
    const char **items;
    size_t count, capacity;
} called_names;

static void collect_calls(called_names *c, const ast *n, const ast *caller)
{
    const ast *path = ast_is(n, AST_CALL) ? n->kids[0] : NULL;
    if (path && ast_is(path, AST_PATH) && path->kid_count == 1 && strcmp(path->kids[0]->text, caller->text) != 0)
        ARENA_PUSH(c->arena, c->items, c->count, c->capacity, path->kids[0]->text);
    for (uint32_t i = 0; ast_is(n, AST_LIST) && i < n->kid_count; i++) { /* a function of tiles is an argument */
        const ast *k = n->kids[i];
        if (ast_is(k, AST_PATH) && k->kid_count == 1 && strcmp(k->kids[0]->text, caller->text) != 0)
            ARENA_PUSH(c->arena, c->items, c->count, c->capacity, k->kids[0]->text);
    }
    for (uint32_t i = 0; i < n->kid_count; i++)
        collect_calls(c, n->kids[i], caller);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static called_names called_by_programs(const ast *file, arena *a)
{
    called_names c = {.arena = a};
    for (uint32_t i = 0; i < file->kid_count; i++)
        if (step_is_program(file->kids[i]))
            collect_calls(&c, file->kids[i], file->kids[i]);
    order_sort(c.items, c.count, sizeof *c.items, by_name);
    return c;
}

/* Programs that others call are parts of them. */
static bool is_whole(const called_names *called, const ast *fn)
{
    const char *name = fn->text;
    return step_is_program(fn) && !(called->count && bsearch(&name, called->items, called->count, sizeof *called->items, by_name));
}

const char *const *step_program_names(const ast *file, arena *a)
{
    called_names called = called_by_programs(file, a);
    const char **names = ARENA_ARRAY(a, const char *, file->kid_count + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < file->kid_count; i++)
        if (is_whole(&called, file->kids[i]))
            names[count++] = file->kids[i]->text;
    return names;
}

step_module *step_module_of(const ast *file, const char *only, const step_kernels *kernels, const step_given *given, arena *a,
                            diag_list *diags)
{
    step_module *m = ARENA_NEW(a, step_module);
    called_names called = called_by_programs(file, a);
    for (uint32_t i = 0; i < file->kid_count; i++) {
        const ast *fn = file->kids[i];
        if (!is_whole(&called, fn) || (only && strcmp(only, fn->text) != 0))
            continue;
        step_graph *g = ARENA_NEW(a, step_graph);
        *g = (step_graph){.name = fn->text,
                          .range = fn->name_range,
                          .arena = a,
                          .diags = diags,
                          .exprs = step_exprs_new(a),
                          .machine = STEP_MACHINE_DEFAULT,
                          .default_depth = STEP_DEFAULT_DEPTH};
        step_evaluation e = {.arena = a, .diags = diags, .file = file, .graph = g, .kernels = kernels};
        read_program(&e, fn, given);
        ARENA_PUSH(a, m->graphs, m->count, m->capacity, g);
    }
    return m;
}
