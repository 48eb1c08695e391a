/* Calls in a stream program: operators as methods and functions, and other #[stream] functions. */
#include "frontend/step/evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "frontend/step/signature.h"
#include "ir/step/total.h"
#include "ir/step/type.h"

/* ---- arguments ---- */

typedef struct arguments {
    step_evaluation *e;
    const ast *call; /* for places */
    const char *name;
    step_term receiver, *items;
    const ast *const *nodes;
    size_t count;
    const ast *generics;
    bool bad;
} arguments;

STACK_APART static arguments arguments_of(step_evaluation *e, const ast *call, const char *name, const ast *list, const ast *generics)
{
    arguments a = {
        .e = e, .call = call, .name = name, .count = list->kid_count, .nodes = (const ast *const *)list->kids, .generics = generics};
    const char *wanted = e->wanted_name;
    e->wanted_name = NULL;
    a.items = ARENA_ARRAY(e->arena, step_term, a.count + 1);
    for (size_t i = 0; i < a.count; i++) {
        a.items[i] = step_evaluate(e, list->kids[i]);
        a.bad = a.bad || a.items[i].kind == TERM_ERROR;
    }
    e->wanted_name = wanted;
    return a;
}

static bool count_is(arguments *a, unsigned least, unsigned most)
{
    if (!a->bad && (a->count < least || a->count > most)) {
        const char *takes = step_count_text(a->e->arena, least, most, "argument");
        step_refuse_with(a->e, a->call->range, step_signature(a->name), "`%s` takes %s, not %zu", a->name, takes, a->count);
        a->bad = true;
    }
    return !a->bad;
}

static const step_term *wanted(arguments *a, size_t i, step_term_kind kind, const char *what)
{
    const step_term *t = i < a->count ? &a->items[i] : &step_term_error;
    if (!a->bad && t->kind != kind) {
        step_refuse(a->e, i < a->count ? a->nodes[i]->range : a->call->range, "argument %zu of `%s` is %s; it takes %s", i + 1, a->name,
                    step_term_text(t), what);
        a->bad = true;
    }
    return t;
}

static int64_t number(arguments *a, size_t i)
{
    return wanted(a, i, TERM_INT, "an integer")->number;
}

/* Integers of a list. */
static const int64_t *numbers(arguments *a, size_t i, uint32_t *count)
{
    const step_term *t = wanted(a, i, TERM_LIST, "a list of integers");
    int64_t *out = ARENA_ARRAY(a->e->arena, int64_t, t->count + 1);
    *count = (uint32_t)t->count;
    for (size_t k = 0; k < t->count && !a->bad; k++) {
        a->bad = a->bad || t->items[k].kind == TERM_ERROR;
        if (!a->bad && (t->items[k].kind != TERM_INT || t->count > STEP_RANK_MAX)) {
            step_refuse(a->e, a->nodes[i]->range, "a walk has 1 to %d integer sizes and strides", STEP_RANK_MAX);
            a->bad = true;
        }
        out[k] = t->items[k].number;
    }
    return out;
}

/* ---- making nodes ---- */

typedef struct building {
    step_spec spec;
    const step_stream **inputs;
    int64_t *depths;
    size_t capacity;
} building;

static building begin(arguments *a, step_op op)
{
    return (building){
        .spec = {.op = op, .name = a->e->wanted_name, .range = ast_is(a->call, AST_METHOD) ? a->call->name_range : a->call->range}};
}

static void add_input(arguments *a, building *b, const step_term *t)
{
    if (t->kind != TERM_STREAM && t->kind != TERM_FEEDBACK) {
        if (!a->bad && t->kind != TERM_ERROR)
            step_refuse(a->e, a->call->range, "`%s` takes a stream, not %s", a->name, step_term_text(t));
        a->bad = true;
        return;
    }
    size_t depth_capacity = b->capacity;
    uint32_t count = b->spec.input_count;
    ARENA_PUSH(a->e->arena, b->depths, count, depth_capacity, t->depth);
    ARENA_PUSH(a->e->arena, b->inputs, b->spec.input_count, b->capacity, (const step_stream *)t->stream);
    b->spec.inputs = b->inputs;
}

static step_term stream_term(step_stream *s)
{
    return (step_term){.kind = TERM_STREAM, .stream = s, .depth = STEP_DEPTH_DEFAULT};
}

/* The node's output, a list of them when there are several, or nothing. */
static step_term finish(arguments *a, building *b)
{
    if (a->bad) {
        a->e->graph->bad = true;
        return step_term_error;
    }
    step_graph_node *n = step_graph_add(a->e->graph, &b->spec);
    if (!n)
        return step_term_error;
    for (uint32_t i = 0; i < b->spec.input_count; i++)
        n->depths[i] = b->depths[i];
    if (n->output_count == 0)
        return (step_term){.kind = TERM_UNIT};
    if (n->output_count == 1 && b->spec.op != STEP_PARTITION && b->spec.op != STEP_PARALLELIZE)
        return stream_term(&n->outputs[0]);
    step_term list = {.kind = TERM_LIST, .count = n->output_count, .items = ARENA_ARRAY(a->e->arena, step_term, n->output_count)};
    for (uint32_t i = 0; i < n->output_count; i++)
        list.items[i] = stream_term(&n->outputs[i]);
    return list;
}

static void add_list(arguments *a, building *b, size_t i)
{
    const step_term *list = wanted(a, i, TERM_LIST, "a list of streams");
    for (size_t k = 0; k < list->count && !a->bad; k++)
        add_input(a, b, &list->items[k]);
}

/* `::<f32>` of an operator that makes tiles. */
static void read_result_dtype(arguments *a, building *b)
{
    if (!ast_is(a->generics, AST_GENERIC_ARGS))
        return;
    const ast *type = ast_kid(a->generics, 0);
    b->spec.has_dtype = ast_is(type, AST_TYPE_PATH) && dtype_by_name(type->kids[type->kid_count - 1]->text, &b->spec.dtype);
    if (!b->spec.has_dtype || a->generics->kid_count != 1) {
        step_refuse(a->e, a->generics->range, "`%s` takes one type argument, the element type of its result", a->name);
        a->bad = true;
    }
}

/* The function at argument i, and streams after it. */
static void add_function(arguments *a, building *b, size_t i)
{
    const step_term *f = wanted(a, i, TERM_FUNCTION, "a function");
    b->spec.fn = f->fn;
    b->spec.data = f->data;
    b->spec.kernel = f->kernel;
    bool folds = b->spec.op == STEP_ACCUM || b->spec.op == STEP_SCAN, own = f->fn == STEP_FN_FORMULA;
    if (f->fn == STEP_FN_KERNEL)
        b->spec.param[STEP_N] = f->kernel->flops;
    if (f->fn == STEP_FN_SELECT)
        b->spec.param[STEP_N] = f->number;
    if (f->fn == STEP_FN_ADDRESSES) {
        b->spec.param[STEP_N] = f->number;
        b->spec.param[STEP_FIRST] = f->end;
    }
    add_input(a, b, &a->receiver);
    for (size_t k = i + 1 + (own && folds); k < a->count; k++)
        add_input(a, b, &a->items[k]);
    read_result_dtype(a, b);
    if (!own || a->bad)
        return;
    if (folds && a->count < i + 2)
        step_refuse(a->e, a->call->range,
                    "a fold with a function of your own begins with something: `x.%s(b, f, full(rows, columns, 0.0))`", a->name);
    else
        b->spec.formula =
            step_read_formula(a->e, a->nodes[i]->range, f, b->spec.inputs, b->spec.input_count, folds ? &a->items[i + 1] : NULL);
    a->bad = a->bad || !b->spec.formula;
}

/* ---- operators as methods of streams ---- */

STACK_APART static step_term call_map(arguments *a)
{
    enum { MOST = 3 };
    building b = begin(a, STEP_MAP);
    bool kernel = a->count > 0 && a->items[0].kind == TERM_FUNCTION && a->items[0].fn == STEP_FN_KERNEL;
    if (count_is(a, 1, kernel ? STEP_MAP_INPUTS : MOST))
        add_function(a, &b, 0);
    return finish(a, &b);
}

STACK_APART static step_term call_fold(arguments *a, step_op op)
{
    building b = begin(a, op);
    bool own = a->count > 1 && a->items[1].kind == TERM_FUNCTION && a->items[1].fn == STEP_FN_FORMULA; /* with what it begins */
    if (count_is(a, 2, own ? 4 : 3)) {
        b.spec.param[STEP_B] = number(a, 0);
        add_function(a, &b, 1);
    }
    return finish(a, &b);
}

STACK_APART static step_term call_flat_map(arguments *a)
{
    building b = begin(a, STEP_FLAT_MAP);
    if (count_is(a, 2, 3)) {
        add_function(a, &b, 1);
        b.spec.param[STEP_B] = number(a, 0);
    }
    return finish(a, &b);
}

/* One stream, up to two numbers. */
STACK_APART static step_term call_numbers(arguments *a, step_op op, size_t count)
{
    building b = begin(a, op);
    add_input(a, &b, &a->receiver);
    if (count_is(a, count, count))
        for (size_t i = 0; i < count; i++)
            b.spec.param[i] = number(a, i);
    return finish(a, &b);
}

/* x.reshape(b, chunk), or with what fills an incomplete chunk. */
STACK_APART static step_term call_reshape(arguments *a)
{
    building b = begin(a, STEP_RESHAPE);
    add_input(a, &b, &a->receiver);
    if (count_is(a, 2, 3)) {
        b.spec.param[STEP_B] = number(a, 0);
        b.spec.param[STEP_N] = number(a, 1);
        b.spec.param[STEP_PAD] = a->count == 3;
        b.spec.param[STEP_PAD_VALUE] = a->count == 3 ? number(a, 2) : 0;
    }
    return finish(a, &b);
}

STACK_APART static step_term call_repeat(arguments *a)
{
    building b = begin(a, STEP_REPEAT);
    add_input(a, &b, &a->receiver);
    if (count_is(a, 1, 1))
        b.spec.param[STEP_N] = number(a, 0);
    return finish(a, &b);
}

/* x.expand(&reference, b) and buffers.streamify(&reference, c, [sizes], [strides]). */
STACK_APART static step_term call_with_reference(arguments *a, step_op op)
{
    building b = begin(a, op);
    add_input(a, &b, &a->receiver);
    if (!count_is(a, 2, op == STEP_STREAMIFY ? 4 : 2))
        return finish(a, &b);
    add_input(a, &b, &a->items[0]);
    b.spec.param[STEP_B] = number(a, 1);
    if (a->count == 4) {
        uint32_t strides;
        b.spec.walk_sizes = numbers(a, 2, &b.spec.walk_count);
        b.spec.walk_strides = numbers(a, 3, &strides);
        if (!a->bad && strides != b.spec.walk_count) {
            step_refuse(a->e, a->call->range, "a walk of %" PRIu32 " sizes and %" PRIu32 " strides", b.spec.walk_count, strides);
            a->bad = true;
        }
    }
    return finish(a, &b);
}

/* What made selectors of these bools before; NULL: nothing. */
static step_stream *selectors_of(const step_graph *g, const step_stream *bools)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const step_spec *s = &g->nodes[i]->spec;
        if (s->op == STEP_MAP && s->fn == STEP_FN_SELECT && s->inputs[0] == bools && s->param[STEP_N] == 1 && s->data->width == 2)
            return &g->nodes[i]->outputs[0];
    }
    return NULL;
}

/* A selector, or bools as one of two outputs, the second one where they are true. */
static void add_selector(arguments *a, building *b, const step_term *t)
{
    step_term selector = *t;
    if (!a->bad && t->kind == TERM_STREAM && t->stream->data->kind == STEP_BOOL) {
        step_stream *known = selectors_of(a->e->graph, t->stream);
        building made = {.spec = {.op = STEP_MAP, .fn = STEP_FN_SELECT, .range = b->spec.range}};
        step_data *data = ARENA_NEW(a->e->arena, step_data);
        *data = (step_data){.kind = STEP_SELECTOR, .width = 2, .hot = 1};
        made.spec.data = data;
        made.spec.param[STEP_N] = 1;
        add_input(a, &made, t);
        selector = known ? stream_term(known) : finish(a, &made);
    }
    add_input(a, b, &selector);
}

/* x.partition(b, &selector): as many outputs as the selector can name. */
STACK_APART static step_term call_partition(arguments *a)
{
    building b = begin(a, STEP_PARTITION);
    add_input(a, &b, &a->receiver);
    if (!count_is(a, 2, 2))
        return finish(a, &b);
    b.spec.param[STEP_B] = number(a, 0);
    add_selector(a, &b, &a->items[1]);
    if (!a->bad)
        b.spec.output_count = b.inputs[1]->data->kind == STEP_SELECTOR ? (uint32_t)b.inputs[1]->data->width : 1;
    return finish(a, &b);
}

STACK_APART static step_term call_parallelize(arguments *a)
{
    building b = begin(a, STEP_PARALLELIZE);
    add_input(a, &b, &a->receiver);
    if (!count_is(a, 2, 2))
        return finish(a, &b);
    int64_t n = number(a, 1);
    b.spec.param[STEP_B] = number(a, 0);
    if (!a->bad && (n < 1 || n > 1 << 16)) {
        step_refuse(a->e, a->nodes[1]->range, "%" PRId64 " outputs; it has to be 1 to %d", n, 1 << 16);
        a->bad = true;
    }
    b.spec.output_count = (uint32_t)n;
    return finish(a, &b);
}

STACK_APART static step_term call_zip(arguments *a)
{
    building b = begin(a, STEP_ZIP);
    add_input(a, &b, &a->receiver);
    if (count_is(a, 1, 1))
        add_input(a, &b, &a->items[0]);
    return finish(a, &b);
}

/* ---- how the machine runs a node ---- */

static step_term set_node(arguments *a, const char *what)
{
    step_graph_node *n = a->receiver.stream->node;
    if (strcmp(what, "write_back") == 0) {
        if (count_is(a, 0, 0))
            n->writes_back = true;
    } else if (count_is(a, 1, 1)) {
        int64_t v = number(a, 0);
        if (!a->bad && (v < 0 || v > INT64_C(1) << 40))
            return step_refuse(a->e, a->nodes[0]->range, "%" PRId64 " is outside 0 to 2^40", v);
        if (what[0] == 'c' && n->spec.fn == STEP_FN_KERNEL)
            return step_refuse(a->e, a->call->name_range, "`%s` runs a kernel, which takes its own cycles", n->name);
        if (what[0] == 'c')
            n->flops_per_cycle = v;
        else
            a->receiver.depth = v;
    }
    return a->bad ? step_term_error : a->receiver;
}

/* The sizes of a list, or those of another stream. */
static bool read_assumed(arguments *a, const step_expr ***dims, uint32_t *count)
{
    if (a->items[0].kind != TERM_STREAM && a->items[0].kind != TERM_FEEDBACK)
        return step_read_sizes(a->e, a->nodes[0]->range, &a->items[0], dims, count);
    *dims = a->items[0].stream->dims;
    *count = a->items[0].stream->rank + 1;
    return true;
}

/* x.assume([..]), x.assume(&y): the writer knows sizes that cannot be derived. */
static step_term assume(arguments *a)
{
    const step_expr **dims;
    uint32_t count;
    if (!count_is(a, 1, 1) || !read_assumed(a, &dims, &count))
        return step_term_error;
    step_stream *s = a->receiver.stream;
    if (count != s->rank + 1)
        return step_refuse(a->e, a->nodes[0]->range, "%" PRIu32 " sizes for %s", count, step_shape_text(s, a->e->arena));
    int64_t x, y;
    for (uint32_t i = 0; i < count; i++)
        if (step_expr_is_number(dims[i], &x) && step_expr_is_number(s->dims[i], &y) && x != y)
            return step_refuse(a->e, a->nodes[0]->range, "size %" PRIu32 " is %" PRId64 ", not %" PRId64, i, y, x);
    step_total_assume(a->e->graph, s, dims);
    return a->receiver;
}

/* s.connect(&source) */
STACK_APART static step_term call_connect(arguments *a)
{
    if (!count_is(a, 1, 1))
        return step_term_error;
    const step_term *source = wanted(a, 0, TERM_STREAM, "a stream");
    if (a->bad || !step_graph_connect(a->e->graph, a->receiver.stream, source->stream, a->call->range))
        return step_term_error;
    return (step_term){.kind = TERM_UNIT};
}

STACK_APART static step_term call_div_ceil(arguments *a)
{
    if (!count_is(a, 1, 1))
        return step_term_error;
    int64_t divisor = number(a, 0);
    step_exprs *x = a->e->graph->exprs;
    if (a->bad || divisor < 1)
        return a->bad ? step_term_error : step_refuse(a->e, a->nodes[0]->range, "a size is divided by %" PRId64, divisor);
    if (a->receiver.kind == TERM_INT)
        return (step_term){.kind = TERM_INT, .number = a->receiver.number / divisor + (a->receiver.number % divisor > 0)};
    return (step_term){.kind = TERM_SIZE, .size = step_expr_ceil_divide(x, a->receiver.size, divisor)};
}

/* What follows an operator and says something about it; a `let` around names the operator. */
static bool is_setting(const char *method)
{
    return strcmp(method, "compute") == 0 || strcmp(method, "depth") == 0 || strcmp(method, "write_back") == 0 ||
           strcmp(method, "assume") == 0;
}

STACK_APART static step_term call_stream(arguments *a)
{
    const char *m = a->name;
    if (strcmp(m, "map") == 0)
        return call_map(a);
    if (strcmp(m, "accum") == 0)
        return call_fold(a, STEP_ACCUM);
    if (strcmp(m, "scan") == 0)
        return call_fold(a, STEP_SCAN);
    if (strcmp(m, "flat_map") == 0)
        return call_flat_map(a);
    if (strcmp(m, "zip") == 0)
        return call_zip(a);
    if (strcmp(m, "bufferize") == 0)
        return call_numbers(a, STEP_BUFFERIZE, 1);
    if (strcmp(m, "streamify") == 0)
        return call_with_reference(a, STEP_STREAMIFY);
    if (strcmp(m, "partition") == 0)
        return call_partition(a);
    if (strcmp(m, "parallelize") == 0)
        return call_parallelize(a);
    if (strcmp(m, "broadcast") == 0)
        return call_numbers(a, STEP_BROADCAST, 0);
    if (strcmp(m, "flatten") == 0)
        return call_numbers(a, STEP_FLATTEN, 2);
    if (strcmp(m, "reshape") == 0)
        return call_reshape(a);
    if (strcmp(m, "promote") == 0)
        return call_numbers(a, STEP_PROMOTE, 0);
    if (strcmp(m, "expand") == 0)
        return call_with_reference(a, STEP_EXPAND);
    if (strcmp(m, "repeat") == 0)
        return call_repeat(a);
    if (strcmp(m, "assume") == 0)
        return assume(a);
    if (is_setting(m))
        return set_node(a, m);
    const char *near = step_nearest_operator(m);
    return step_refuse_with(a->e, a->call->name_range, near ? step_signature(near) : "docs/step.md has a table of the operators",
                            "a stream has no operator `%s`", m);
}

/* Like a stream, but for what asks for the node that follows it. */
STACK_APART static step_term call_feedback(arguments *a)
{
    if (strcmp(a->name, "connect") == 0)
        return call_connect(a);
    if (strcmp(a->name, "compute") == 0 || strcmp(a->name, "write_back") == 0 || strcmp(a->name, "assume") == 0)
        return step_refuse(a->e, a->call->name_range, "a feedback stream has no `%s`", a->name);
    return call_stream(a);
}

/* ---- methods of tensors off the chip ---- */

static void row_major(arguments *a, building *b, const step_graph_tensor *t)
{
    int64_t *strides = ARENA_ARRAY(a->e->arena, int64_t, t->dim_count), stride = 1;
    for (uint32_t i = t->dim_count; i-- > 0; stride *= t->shape[i])
        strides[i] = stride;
    b->spec.walk_sizes = t->shape;
    b->spec.walk_strides = strides;
    b->spec.walk_count = t->dim_count;
}

/* w.linear_load(&reference), or with [sizes], [strides] of the walk and the tile where it begins. */
STACK_APART static step_term call_linear_load(arguments *a)
{
    building b = begin(a, STEP_LINEAR_LOAD);
    b.spec.tensor = a->receiver.tensor;
    if (!count_is(a, 1, 4))
        return finish(a, &b);
    add_input(a, &b, &a->items[0]);
    row_major(a, &b, a->receiver.tensor);
    if (a->count == 4)
        b.spec.param[STEP_BASE] = number(a, 3);
    if (a->count >= 3) {
        uint32_t strides;
        b.spec.walk_sizes = numbers(a, 1, &b.spec.walk_count);
        b.spec.walk_strides = numbers(a, 2, &strides);
        if (!a->bad && strides != b.spec.walk_count) {
            step_refuse(a->e, a->call->range, "a walk of %" PRIu32 " sizes and %" PRIu32 " strides", b.spec.walk_count, strides);
            a->bad = true;
        }
    } else if (a->count == 2) {
        step_refuse(a->e, a->call->range, "a walk needs its sizes and its strides");
        a->bad = true;
    }
    read_result_dtype(a, &b);
    return finish(a, &b);
}

static step_term refuse_store(const arguments *a)
{
    const step_graph_tensor *t = a->receiver.tensor;
    diag *d = diag_add(a->e->diags, E_STEP_PROGRAM, a->call->range, "`%s` is not `&mut`, so nothing is stored in it", t->name);
    diag_note(a->e->diags, d, t->range, "it is declared here");
    a->e->graph->bad = true;
    return step_term_error;
}

STACK_APART static step_term call_store(arguments *a, step_op op)
{
    building b = begin(a, op);
    b.spec.tensor = a->receiver.tensor;
    size_t streams = op == STEP_RANDOM_STORE ? 2 : 1;
    if (!a->receiver.tensor->written && op != STEP_RANDOM_LOAD)
        return refuse_store(a);
    if (!count_is(a, streams, streams + 1))
        return finish(a, &b);
    for (size_t i = 0; i < streams; i++)
        add_input(a, &b, &a->items[i]);
    if (a->count > streams)
        b.spec.param[STEP_BASE] = number(a, streams);
    read_result_dtype(a, &b);
    return finish(a, &b);
}

STACK_APART static step_term call_tensor(arguments *a)
{
    if (strcmp(a->name, "linear_load") == 0)
        return call_linear_load(a);
    if (strcmp(a->name, "random_load") == 0)
        return call_store(a, STEP_RANDOM_LOAD);
    if (strcmp(a->name, "linear_store") == 0)
        return call_store(a, STEP_LINEAR_STORE);
    if (strcmp(a->name, "random_store") == 0)
        return call_store(a, STEP_RANDOM_STORE);
    return step_refuse(a->e, a->call->name_range,
                       "a tensor off the chip has no `%s`; it has linear_load, linear_store, random_load, random_store", a->name);
}

/* ---- methods of lists: what a loop fills ---- */

STACK_APART static step_term call_list(arguments *a)
{
    if (strcmp(a->name, "len") == 0)
        return (step_term){.kind = TERM_INT, .number = (int64_t)a->receiver.count};
    if (strcmp(a->name, "rev") == 0) {
        step_term list = a->receiver;
        list.items = ARENA_ARRAY(a->e->arena, step_term, list.count + 1);
        for (size_t i = 0; i < list.count; i++)
            list.items[i] = a->receiver.items[list.count - 1 - i];
        return list;
    }
    const char *help = step_signature(a->name) ? "an operator with several outputs gives a list: `[i]`, or `.0` and `.1`, is one of them"
                                               : "a list has push, len and rev";
    return step_refuse_with(a->e, a->call->name_range, help, "a list has no `%s`", a->name);
}

/* list.push(x): the list is a `let mut`. */
static step_term push(step_evaluation *e, const ast *n)
{
    const ast *place = n->kids[0];
    step_term value = ast_kid(n, 2)->kid_count == 1 ? step_evaluate(e, ast_kid(n, 2)->kids[0]) : step_term_error; /* may move the names */
    step_name *name = ast_is(place, AST_PATH) && place->kid_count == 1 ? (step_name *)step_lookup(e, place->kids[0]->text) : NULL;
    if (name && !name->mutable && name->value.kind == TERM_LIST) {
        diag *d = diag_add(e->diags, E_STEP_PROGRAM, n->range, "`%s` is not `mut`: `push` adds one value to a `let mut` list", name->name);
        diag_note(e->diags, d, name->range, "it is bound here");
        e->graph->bad = true;
        return step_term_error;
    }
    if (!name || name->value.kind != TERM_LIST || ast_kid(n, 2)->kid_count != 1)
        return step_refuse(e, n->range, "`push` adds one value to a `let mut` list");
    step_term *list = &name->value;
    list->items = arena_grow(e->arena, list->items, list->count, list->count + 1, sizeof value);
    list->items[list->count++] = value;
    return (step_term){.kind = TERM_UNIT};
}

step_term step_call_method(step_evaluation *e, const ast *n)
{
    if (strcmp(n->text, "push") == 0)
        return push(e, n);
    const char *name = e->wanted_name;
    if (!is_setting(n->text))
        e->wanted_name = NULL;
    step_term receiver = step_evaluate(e, n->kids[0]);
    e->wanted_name = name;
    arguments a = arguments_of(e, n, n->text, n->kids[2], n->kids[1]);
    a.receiver = receiver;
    if (receiver.kind == TERM_ERROR || a.bad)
        return step_term_error;
    switch (receiver.kind) {
    case TERM_STREAM: return call_stream(&a);
    case TERM_FEEDBACK: return call_feedback(&a);
    case TERM_TENSOR: return call_tensor(&a);
    case TERM_LIST: return call_list(&a);
    case TERM_TILE: {
        step_term *all = ARENA_ARRAY(e->arena, step_term, a.count + 1);
        all[0] = receiver;
        for (size_t i = 0; i < a.count; i++)
            all[i + 1] = a.items[i];
        return step_formula_apply(e, n->range, n->text, all, a.count + 1);
    }
    case TERM_INT:
    case TERM_SIZE:
        if (strcmp(n->text, "div_ceil") == 0)
            return call_div_ceil(&a);
        break;
    default: break;
    }
    return step_refuse(e, n->name_range, "%s has no `%s`", step_term_text(&receiver), n->text);
}

/* ---- functions ---- */

/* `kernel::NAME`; a kernel in a module is `kernel::module::NAME`. */
static step_term kernel_named(step_evaluation *e, const ast *path)
{
    const char *name = path->kids[1]->text;
    for (uint32_t i = 2; i < path->kid_count; i++)
        name = arena_printf(e->arena, "%s::%s", name, path->kids[i]->text);
    for (size_t i = 0; i < e->kernels->count; i++) {
        const step_kernel *k = &e->kernels->items[i];
        if (strcmp(k->name, name) != 0)
            continue;
        if (k->bad)
            e->graph->bad = true;
        if (k->why)
            return step_refuse(e, path->range, "the kernel `%s` is no function of tiles: %s", name, k->why);
        return k->bad ? step_term_error : (step_term){.kind = TERM_FUNCTION, .fn = STEP_FN_KERNEL, .kernel = k};
    }
    return step_refuse(e, path->range, "there is no kernel `%s` in this file", name);
}

static step_term refuse_name(step_evaluation *e, src_range range, const char *name)
{
    const char *near = step_nearest_function(name, e->arena);
    const char *help = near ? arena_printf(e->arena, "is it the function `%s`?", near) : "docs/step.md has a table of the functions";
    return step_refuse_with(e, range, help, "`%s` is neither a name nor a function of this program", name);
}

step_term step_function_named(step_evaluation *e, const ast *path)
{
    const ast *segment = path->kids[path->kid_count - 1];
    if (path->kid_count == 2 && strcmp(path->kids[0]->text, "f32") == 0 && strstr(segment->text, "INFINITY"))
        return (step_term){.kind = TERM_FLOAT, .real = strcmp(segment->text, "INFINITY") == 0 ? INFINITY : -INFINITY};
    const ast *own = path->kid_count == 1 ? step_program_function(e->file, segment->text) : NULL;
    if (own)
        return (step_term){.kind = TERM_FUNCTION, .fn = STEP_FN_FORMULA, .body = own};
    if (path->kid_count >= 2 && strcmp(path->kids[0]->text, "kernel") == 0)
        return kernel_named(e, path);
    const step_fn_row *row = path->kid_count == 1 ? step_fn_row_by_name(segment->text) : NULL;
    const step_formula_row *operation = !row && path->kid_count == 1 ? step_formula_row_by_name(segment->text) : NULL;
    if (operation)
        return (step_term){.kind = TERM_FUNCTION, .fn = STEP_FN_FORMULA, .operation = operation};
    if (!row && step_is_lost(e, segment->text))
        return step_term_error;
    if (!row || row->fn == STEP_FN_NONE || row->fn == STEP_FN_KERNEL || row->fn == STEP_FN_FORMULA)
        return refuse_name(e, path->range, segment->text);
    step_term f = {.kind = TERM_FUNCTION, .fn = row->fn};
    const ast *generics = ast_kid(segment, 0);
    if (ast_is(generics, AST_GENERIC_ARGS))
        f.data = step_read_data(e, ast_kid(generics, 0));
    return f;
}

const ast *step_program_function(const ast *file, const char *name)
{
    for (uint32_t i = 0; i < file->kid_count; i++)
        if (ast_is(file->kids[i], AST_FN) && strcmp(file->kids[i]->text, name) == 0 && step_is_program(file->kids[i]))
            return file->kids[i];
    return NULL;
}

/* A function of the file is evaluated where it is called, with its own names. */
STACK_APART step_term step_call_program(step_evaluation *e, src_range range, const ast *fn, const step_term *items, size_t count)
{
    const ast *params = fn->kids[2];
    if (count != params->kid_count)
        return step_refuse(e, range, "`%s` takes %" PRIu32 " arguments, not %zu", fn->text, params->kid_count, count);
    if (++e->steps > STEP_EVALUATIONS_MAX)
        return step_refuse(e, range, "the program takes more than %d iterations and calls", STEP_EVALUATIONS_MAX);
    size_t scope = e->scope, mark = step_enter(e);
    e->scope = mark;
    for (size_t i = 0; i < count; i++)
        step_bind_pattern(e, params->kids[i]->kids[1], items[i]);
    step_term value = step_evaluate(e, fn->kids[4]);
    e->scope = scope;
    step_leave(e, mark);
    return value;
}

STACK_APART static step_term call_once(arguments *a)
{
    building b = begin(a, STEP_ONCE);
    count_is(a, 0, 0);
    return finish(a, &b);
}

/* feedback::<T>([sizes]) */
STACK_APART static step_term call_declare(arguments *a)
{
    if (!ast_is(a->generics, AST_GENERIC_ARGS) || a->generics->kid_count != 1)
        return step_refuse(a->e, a->call->range, "`feedback` says what it carries and its sizes: `feedback::<Selector<4, 1>>([B])`");
    step_spec s = {.name = a->e->wanted_name, .range = a->call->range, .data = step_read_data(a->e, ast_kid(a->generics, 0))};
    uint32_t count;
    if (!s.data || !count_is(a, 1, 1) || !step_read_sizes(a->e, a->nodes[0]->range, &a->items[0], &s.dims, &count))
        return step_term_error;
    s.rank = count - 1;
    return (step_term){.kind = TERM_FEEDBACK, .stream = step_graph_feedback(a->e->graph, &s), .depth = STEP_DEPTH_DEFAULT};
}

STACK_APART static step_term call_reassemble(arguments *a)
{
    building b = begin(a, STEP_REASSEMBLE);
    if (count_is(a, 3, 3)) {
        b.spec.param[STEP_B] = number(a, 0);
        add_list(a, &b, 1);
        add_selector(a, &b, &a->items[2]);
    }
    return finish(a, &b);
}

STACK_APART static step_term call_eager_merge(arguments *a)
{
    building b = begin(a, STEP_EAGER_MERGE);
    if (count_is(a, 1, 1))
        add_list(a, &b, 0);
    if (!a->bad && b.spec.input_count == 0)
        return step_refuse(a->e, a->call->range, "`eager_merge` of no streams");
    return finish(a, &b);
}

/* select::<Selector<4, 1>>(n) */
STACK_APART static step_term call_select(arguments *a)
{
    step_term f = {.fn = STEP_FN_SELECT};
    if (!ast_is(a->generics, AST_GENERIC_ARGS) || a->generics->kid_count != 1)
        return step_refuse(a->e, a->call->range, "`select` says what it makes: `select::<Selector<4, 1>>(1)`");
    f.data = step_read_data(a->e, ast_kid(a->generics, 0));
    if (!f.data || !count_is(a, 1, 1))
        return step_term_error;
    f.number = number(a, 0);
    f.kind = a->bad ? TERM_ERROR : TERM_FUNCTION;
    return f;
}

step_term step_call_function(step_evaluation *e, const ast *n)
{
    const ast *path = n->kids[0];
    if (!ast_is(path, AST_PATH) || path->kid_count != 1)
        return step_refuse(e, path->range, "this cannot be called");
    const char *name = path->kids[0]->text;
    arguments a = arguments_of(e, n, name, n->kids[1], ast_kid(path->kids[0], 0));
    if (a.bad)
        return step_term_error;
    if (strcmp(name, "once") == 0)
        return call_once(&a);
    if (strcmp(name, "feedback") == 0)
        return call_declare(&a);
    if (strcmp(name, "reassemble") == 0)
        return call_reassemble(&a);
    if (strcmp(name, "eager_merge") == 0)
        return call_eager_merge(&a);
    if (strcmp(name, "addresses") == 0) {
        if (!count_is(&a, 1, 2))
            return step_term_error;
        step_term f = {.fn = STEP_FN_ADDRESSES, .number = number(&a, 0), .end = a.count > 1 ? number(&a, 1) : 0};
        f.kind = a.bad ? TERM_ERROR : TERM_FUNCTION;
        return f;
    }
    if (strcmp(name, "select") == 0 && !e->formula)
        return call_select(&a);
    bool own = e->formula && step_formula_row_by_name(name);
    if (strcmp(name, "full") == 0 || strcmp(name, "zeros") == 0)
        return step_initial_tile(e, n, a.items, a.count);
    const ast *fn = own ? NULL : step_program_function(e->file, name);
    if (own)
        return step_formula_apply(e, n->range, name, a.items, a.count);
    if (!fn && step_is_lost(e, name))
        return step_term_error;
    const char *near = e->formula ? step_nearest_function(name, e->arena) : NULL;
    const char *help = near         ? arena_printf(e->arena, "did you mean `%s`?", near)
                       : e->formula ? "docs/step.md has a table of what functions of tiles are made of"
                       : step_nearest_operator(name)
                           ? "operators are methods: `x.map(f)`; functions of values stand without their arguments"
                           : NULL;
    return fn ? step_call_program(e, n->range, fn, a.items, a.count)
              : step_refuse_with(e, path->range, help, "there is no #[stream] function `%s`", name);
}
