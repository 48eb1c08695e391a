#include "runtime/step/statement.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/step/mathematics.h"
#include "runtime/tensor/expected.h"
#include "runtime/tensor/numeric.h"
#include "support/budget.h"

/* ---- what a statement is about ---- */

static const step_program *program_of(const statements *s)
{
    return s->in->run->program;
}

static uint32_t number_of(const statements *s, const step_node *n)
{
    return (uint32_t)(n - program_of(s)->nodes);
}

const nested *statement_input(const statements *s, const step_node *n, uint32_t input)
{
    return s->streams[n->inputs[input].node][n->inputs[input].port];
}

void statement_unknown(statements *s, const step_node *n, const char *why)
{
    if (!s->why)
        s->why = arena_printf(s->arena, "`%s` (%s, line %" PRIu32 "): %s", n->name, step_op_row_of(n->op)->name, n->line, why);
}

statements *statements_new(const step_judge_input *in, arena *a, diag_list *diags)
{
    const step_program *p = in->run->program;
    statements *s = ARENA_NEW(a, statements);
    *s = (statements){.in = in, .arena = a, .diags = diags};
    s->streams = ARENA_ARRAY(a, const nested **, p->node_count + 1);
    s->done = ARENA_ARRAY(a, bool, p->node_count + 1);
    s->kernels = ARENA_ARRAY(a, struct expected *, p->node_count + 1);
    s->memory = ARENA_ARRAY(a, statement_memory, p->tensor_count + 1);
    for (uint32_t i = 0; i < p->node_count; i++)
        s->streams[i] = ARENA_ARRAY(a, const nested *, p->nodes[i].output_count + 1);
    for (uint32_t t = 0; t < p->tensor_count; t++) {
        size_t tiles = (size_t)step_tensor_tiles(&p->tensors[t]);
        s->memory[t].loaded_by = ARENA_ARRAY(a, uint32_t, tiles + 1);
        s->memory[t].stored_by = ARENA_ARRAY(a, uint32_t, tiles + 1);
        s->memory[t].result = ARENA_ARRAY(a, const nested_value *, tiles + 1);
    }
    return s;
}

/* An output that is to be filled. */
static nested *output(statements *s, const step_node *n, uint32_t number, uint32_t rank)
{
    nested *out = nested_new(rank, s->arena);
    s->streams[number_of(s, n)][number] = out;
    return out;
}

static bool same_sizes(const nested *a, uint32_t from_a, const nested *b, uint32_t from_b)
{
    for (uint32_t d = 0; from_a + d <= a->rank; d++) {
        const nested_sizes *x = &a->dims[from_a + d], *y = &b->dims[from_b + d];
        if (x->count != y->count || (x->count > 0 && memcmp(x->of, y->of, x->count * sizeof *x->of) != 0))
            return false;
    }
    return true;
}

static const nested_value *plain(statements *s, nested_value v)
{
    nested_value *out = ARENA_NEW(s->arena, nested_value);
    *out = v;
    return out;
}

static const nested_value *one_selector(statements *s, uint32_t pick)
{
    uint32_t *picks = ARENA_NEW(s->arena, uint32_t);
    *picks = pick;
    return plain(s, (nested_value){.kind = STEP_SELECTOR, .selector = {1, picks}});
}

/* ---- memory off the chip ---- */

static bool place_is(statements *s, const step_node *n, int64_t tile, uint32_t *by)
{
    uint32_t me = number_of(s, n) + 1;
    if (tile < 0 || tile >= step_tensor_tiles(&program_of(s)->tensors[n->tensor])) {
        statement_unknown(s, n, "an address is outside its tensor");
        return false;
    }
    by[tile] = by[tile] == 0 || by[tile] == me ? me : (uint32_t)STATEMENT_SEVERAL;
    return true;
}

static void load(statements *s, const step_node *n, int64_t tile, nested *to)
{
    const step_tensor *t = &program_of(s)->tensors[n->tensor];
    if (!place_is(s, n, tile, s->memory[n->tensor].loaded_by))
        return;
    const nested_value *v =
        mathematics_exact(s->in->tensors[n->tensor] + tile * t->rows * t->columns, t->rows, t->columns, t->rows, s->arena);
    const step_type *type = &program_of(s)->types[n->outputs[0].type];
    if (type->dtype != t->dtype) {
        mathematics m = {.node = &(step_node){.fn = STEP_FN_CAST}, .type = type, .arena = s->arena};
        v = mathematics_map(&m, &v, 1);
    }
    nested_push(to, v);
}

static void store(statements *s, const step_node *n, int64_t tile, const nested_value *v)
{
    if (!place_is(s, n, tile, s->memory[n->tensor].stored_by))
        return;
    if (s->memory[n->tensor].stored_by[tile] == STATEMENT_SEVERAL)
        statement_unknown(s, n, "another operator writes the same tile, and which comes last is a matter of time");
    s->memory[n->tensor].result[tile] = v;
}

/* Places of a walk, and the sizes of its dimensions inside of one value. */
static void walk_sizes(const step_node *n, nested *out)
{
    int64_t groups = 1;
    for (uint32_t i = 0; i < n->walk_count; i++) {
        for (int64_t g = 0; g < groups; g++)
            nested_size(out, n->walk_count - 1 - i, n->walk_sizes[i]);
        groups *= n->walk_sizes[i];
    }
}

static int64_t walk_values(const step_node *n)
{
    int64_t values = 1;
    for (uint32_t i = 0; i < n->walk_count; i++)
        values *= n->walk_sizes[i];
    return values;
}

/* Where the k-th place is: its digits, innermost fastest. */
static int64_t walk_place(const step_node *n, int64_t k)
{
    int64_t place = 0;
    for (uint32_t i = n->walk_count; i-- > 0; k /= n->walk_sizes[i])
        place += k % n->walk_sizes[i] * n->walk_strides[i];
    return place;
}

static void state_linear_load(statements *s, const step_node *n, const nested *in)
{
    nested *out = output(s, n, 0, in->rank + n->walk_count);
    for (size_t v = 0; v < in->count && !s->why; v++) {
        walk_sizes(n, out);
        for (int64_t k = 0; k < walk_values(n) && !s->why; k++)
            load(s, n, n->param[STEP_BASE] + walk_place(n, k), out);
    }
    nested_copy_sizes(out, n->walk_count, in, 0);
    nested_settle(out);
}

static void state_random(statements *s, const step_node *n, const nested *in)
{
    nested *out = output(s, n, 0, in->rank);
    for (size_t v = 0; v < in->count && !s->why; v++) {
        int64_t tile = n->param[STEP_BASE] + in->values[v]->address;
        if (n->op == STEP_RANDOM_LOAD)
            load(s, n, tile, out);
        else
            store(s, n, tile, statement_input(s, n, 1)->values[v]);
        if (n->op == STEP_RANDOM_STORE)
            nested_push(out, plain(s, (nested_value){.kind = STEP_BOOL, .flag = true}));
    }
    nested_copy_sizes(out, 0, in, 0);
}

/* ---- buffers ---- */

static void state_bufferize(statements *s, const step_node *n, const nested *in)
{
    uint32_t b = (uint32_t)n->param[STEP_B];
    nested *out = output(s, n, 0, in->rank - b);
    for (nested_items i = nested_items_begin(in, b); nested_items_left(&i);) {
        nested *content = nested_new(b - 1, s->arena);
        nested_items_move(&i, content);
        nested_push(out, plain(s, (nested_value){.kind = STEP_BUFFER, .buffer = content}));
    }
    nested_copy_sizes(out, 0, in, b);
}

/* A buffer's content once more. */
static void put_content(statements *s, const step_node *n, const nested *content, nested *out)
{
    if (n->walk_count == 0) {
        nested_copy_sizes(out, 0, content, 0);
        for (size_t v = 0; v < content->count; v++)
            nested_push(out, content->values[v]);
        return;
    }
    walk_sizes(n, out);
    for (int64_t k = 0; k < walk_values(n); k++) {
        int64_t place = walk_place(n, k);
        if (place < 0 || place >= (int64_t)content->count) {
            statement_unknown(s, n, "a walk leaves the buffer");
            return;
        }
        nested_push(out, content->values[place]);
    }
}

static void state_streamify(statements *s, const step_node *n, const nested *in)
{
    const nested *ref = statement_input(s, n, 1);
    uint32_t c = (uint32_t)n->param[STEP_B];
    uint32_t view = n->walk_count > 0 ? n->walk_count
                                      : program_of(s)->types[program_of(s)->nodes[n->inputs[0].node].outputs[n->inputs[0].port].type].rank;
    nested *out = output(s, n, 0, ref->rank + view);
    nested_sizes reads = nested_values_of_items(ref, c);
    if (reads.count != in->count) {
        statement_unknown(s, n, "the reference has not as many groups as there are buffers");
        return;
    }
    for (size_t k = 0; k < in->count; k++)
        for (int64_t r = 0; r < reads.of[k] && !s->why; r++)
            put_content(s, n, in->values[k]->buffer, out);
    nested_copy_sizes(out, view, ref, 0);
    nested_settle(out);
}

/* ---- routing and merging ---- */

void statement_order(statements *s, const step_node *n)
{
    const step_arrivals *order = &s->in->run->arrivals[number_of(s, n)];
    nested *out = output(s, n, 1, 0);
    for (size_t i = 0; i < order->count; i++)
        nested_push(out, one_selector(s, order->ports[i]));
    nested_size(out, 0, (int64_t)order->count);
}

/* The next chunk to every output that the selector names. */
static void route(const nested_value *selector, nested_items *chunks, nested **out, int64_t *counts)
{
    nested_items again = *chunks;
    nested_items_move(chunks, NULL);
    for (uint32_t i = 0; i < selector->selector.count; i++) {
        nested_items copy = again;
        nested_items_move(&copy, out[selector->selector.picks[i]]);
        counts[selector->selector.picks[i]]++;
    }
}

static void state_partition(statements *s, const step_node *n, const nested *in)
{
    const nested *by = statement_input(s, n, 1);
    uint32_t b = (uint32_t)n->param[STEP_B];
    nested **out = ARENA_ARRAY(s->arena, nested *, n->output_count + 1);
    int64_t *counts = ARENA_ARRAY(s->arena, int64_t, n->output_count + 1);
    for (uint32_t o = 0; o < n->output_count; o++)
        out[o] = output(s, n, o, b);
    nested_items chunks = nested_items_begin(in, b);
    size_t selector = 0;
    if (by->dims[0].count != in->dims[b].count) {
        statement_unknown(s, n, "its selectors have other groups than its data");
        return;
    }
    for (size_t g = 0; g < by->dims[0].count; g++) {
        int64_t many = by->dims[0].of[g], there = in->dims[b].of[g];
        if (many == 0 && there == 1 && b > 0) { /* no chunk reads as one empty chunk */
            if (nested_items_move(&chunks, NULL) > 0)
                statement_unknown(s, n, "there is data without a selector");
        } else if (many != there) {
            statement_unknown(s, n, "there are not as many selectors as chunks");
            return;
        }
        for (int64_t k = 0; k < many; k++)
            route(by->values[selector++], &chunks, out, counts);
    }
    for (uint32_t o = 0; o < n->output_count; o++)
        nested_size(out[o], b, counts[o]);
}

/* Takes the next chunk of an input; false: there is none. */
static bool take_chunk(statements *s, const step_node *n, nested_items *chunks, uint32_t input, nested *out)
{
    if (!nested_items_left(&chunks[input])) {
        diag_add(s->diags, E_CHECK_MISMATCH, SRC_NOWHERE,
                 "`%s` (%s, line %" PRIu32 ") took more chunks of input %" PRIu32 " than there are", n->name, step_op_row_of(n->op)->name,
                 n->line, input);
        statement_unknown(s, n, "it took more chunks than there are");
        return false;
    }
    nested_items_move(&chunks[input], out);
    return true;
}

static void all_are_taken(statements *s, const step_node *n, const nested_items *chunks, uint32_t count)
{
    for (uint32_t i = 0; i < count && !s->why; i++)
        if (nested_items_left(&chunks[i])) {
            diag_add(s->diags, E_CHECK_MISMATCH, SRC_NOWHERE, "`%s` (%s, line %" PRIu32 ") did not take all chunks of input %" PRIu32,
                     n->name, step_op_row_of(n->op)->name, n->line, i);
            statement_unknown(s, n, "it did not take all chunks");
        }
}

/* Does the order name each of the picks once? */
static bool is_order_of(const nested_value *selector, const uint32_t *order)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < selector->selector.count; i++)
        for (uint32_t k = 0; k < selector->selector.count; k++)
            found += selector->selector.picks[i] == order[k];
    return found == selector->selector.count;
}

static nested_items *items_of(statements *s, const step_node *n, uint32_t count, uint32_t b)
{
    nested_items *chunks = ARENA_ARRAY(s->arena, nested_items, count + 1);
    for (uint32_t i = 0; i < count; i++)
        chunks[i] = nested_items_begin(statement_input(s, n, i), b);
    return chunks;
}

static void state_reassemble(statements *s, const step_node *n)
{
    const step_arrivals *order = &s->in->run->arrivals[number_of(s, n)];
    uint32_t b = (uint32_t)n->param[STEP_B], count = n->input_count - 1;
    const nested *by = statement_input(s, n, count);
    nested *out = output(s, n, 0, by->rank + b + 1);
    nested_items *chunks = items_of(s, n, count, b);
    size_t at = 0;
    for (size_t v = 0; v < by->count && !s->why; v++) {
        const nested_value *selector = by->values[v];
        if (at + selector->selector.count > order->count || !is_order_of(selector, order->ports + at)) {
            diag_add(s->diags, E_CHECK_MISMATCH, SRC_NOWHERE,
                     "`%s` (reassemble, line %" PRIu32 ") took other inputs than selector %zu names", n->name, n->line, v);
            statement_unknown(s, n, "it took other inputs than its selectors name");
            return;
        }
        for (uint32_t i = 0; i < selector->selector.count && !s->why; i++)
            take_chunk(s, n, chunks, order->ports[at++], out);
        nested_size(out, b, selector->selector.count);
    }
    nested_copy_sizes(out, b + 1, by, 0);
    all_are_taken(s, n, chunks, count);
    nested_settle(out);
}

static void state_merge(statements *s, const step_node *n)
{
    const step_arrivals *order = &s->in->run->arrivals[number_of(s, n)];
    uint32_t rank = statement_input(s, n, 0)->rank;
    nested *out = output(s, n, 0, rank);
    nested_items *chunks = items_of(s, n, n->input_count, rank);
    for (size_t i = 0; i < order->count && !s->why; i++)
        take_chunk(s, n, chunks, order->ports[i], out);
    nested_size(out, rank, (int64_t)order->count);
    all_are_taken(s, n, chunks, n->input_count);
}

static void state_parallelize(statements *s, const step_node *n, const nested *in)
{
    uint32_t b = (uint32_t)n->param[STEP_B], turn = 0;
    int64_t *counts = ARENA_ARRAY(s->arena, int64_t, n->output_count + 1);
    for (uint32_t o = 0; o < n->output_count; o++)
        output(s, n, o, b);
    for (nested_items i = nested_items_begin(in, b); nested_items_left(&i); turn = (turn + 1) % n->output_count) {
        nested_items_move(&i, (nested *)s->streams[number_of(s, n)][turn]);
        counts[turn]++;
    }
    for (uint32_t o = 0; o < n->output_count; o++)
        nested_size((nested *)s->streams[number_of(s, n)][o], b, counts[o]);
}

/* ---- kernels ---- */

static int64_t port_tensor(const binary_kernel *k, port_direction direction, uint32_t number)
{
    for (uint32_t i = 0; i < k->port_count; i++)
        if (k->ports[i].direction == direction && number-- == 0)
            for (uint32_t t = 0; t < k->einsum.tensor_count; t++)
                if (k->einsum.tensors[t].port == (int32_t)i)
                    return t;
    return -1;
}

static expected *reference_of(statements *s, const step_node *n, const binary_kernel *k)
{
    expected **x = &s->kernels[number_of(s, n)];
    bool *is_input = ARENA_ARRAY(s->arena, bool, k->einsum.tensor_count + 1);
    for (uint32_t t = 0; t < k->einsum.tensor_count; t++)
        is_input[t] = k->einsum.tensors[t].port >= 0 && k->ports[k->einsum.tensors[t].port].direction == PORT_IN;
    if (!*x && k->einsum.tensor_count > 0)
        *x = expected_open(&k->einsum, is_input, k->name, true, s->arena, s->diags);
    return *x;
}

/* Which leading rows are real: those of every input whose first axis is the output's. */
static int64_t valid_rows(const binary_kernel *k, int64_t result, const nested_value *const *in, uint32_t count, int64_t rows)
{
    const einsum_tensor *out = &k->einsum.tensors[result];
    int64_t valid = rows;
    for (uint32_t i = 0; i < count; i++) {
        const einsum_tensor *x = &k->einsum.tensors[port_tensor(k, PORT_IN, i)];
        bool same = out->rank > 1 && x->rank > 1 && out->axes[0] == x->axes[0];
        valid = same && in[i]->tile.valid < valid ? in[i]->tile.valid : valid;
    }
    return valid;
}

/* What the reference made of one output; NULL: it has none such. */
static const nested_value *kernel_tile(statements *s, const binary_kernel *k, const expected *x, uint32_t output, const step_type *type,
                                       const nested_value *const *in, uint32_t count, bool certain)
{
    int64_t result = port_tensor(k, PORT_OUT, output), elements = type->rows * type->columns;
    if (result < 0)
        return NULL;
    double *numbers = ARENA_ARRAY(s->arena, double, (size_t)elements + 1), *errors = ARENA_ARRAY(s->arena, double, (size_t)elements + 1);
    for (int64_t e = 0; e < elements; e++) {
        numbers[e] = numeric_to_double(type->dtype, expected_of(x, (uint32_t)result).values, e);
        errors[e] = certain ? 0 : INFINITY;
    }
    return plain(s,
                 (nested_value){.kind = STEP_TILE,
                                .tile = {type->rows, type->columns, valid_rows(k, result, in, count, type->rows), NULL, numbers, errors}});
}

/* Output by output, the first one and (the second one and ..). */
static const nested_value *kernel_tiles(statements *s, const binary_kernel *k, const expected *x, const step_type *type,
                                        const nested_value *const *in, uint32_t count, bool certain)
{
    const nested_value *tiles[STEP_MAP_INPUTS], *all;
    uint32_t made = 0;
    for (; type->kind == STEP_PAIR && made < STEP_MAP_INPUTS; type = &program_of(s)->types[type->second], made++)
        if (!(tiles[made] = kernel_tile(s, k, x, made, &program_of(s)->types[type->first], in, count, certain)))
            return NULL;
    all = kernel_tile(s, k, x, made, type, in, count, certain);
    while (all && made-- > 0)
        all = plain(s, (nested_value){.kind = STEP_PAIR, .pair = {tiles[made], all}});
    return all;
}

/* By its einsum section: the reference that LLVM builds, in the machine's order of additions. */
static const nested_value *apply_kernel(statements *s, const step_node *n, const nested_value *const *in, uint32_t count)
{
    const binary_kernel *k = binary_kernel_by_name(s->in->binary, n->kernel);
    const step_type *type = &program_of(s)->types[n->outputs[0].type];
    expected *x = k ? reference_of(s, n, k) : NULL;
    unsigned char **bytes = ARENA_ARRAY(s->arena, unsigned char *, (k ? k->einsum.tensor_count : 0) + 1);
    bool certain = true;
    for (uint32_t i = 0; x && i < count; i++) {
        int64_t t = port_tensor(k, PORT_IN, i), elements = in[i]->tile.rows * in[i]->tile.columns;
        if (t < 0)
            x = NULL;
        else
            bytes[t] = ARENA_ARRAY(s->arena, unsigned char, (size_t)elements * sizeof(double) + 1);
        for (int64_t e = 0; x && e < elements; e++) {
            numeric_from_double(k->einsum.tensors[t].dtype, bytes[t], e, mathematics_number(in[i], e));
            certain = certain && mathematics_error(in[i], e) == 0;
        }
    }
    bool ran = x && expected_run(x, bytes, 1, s->diags);
    const nested_value *all = ran ? kernel_tiles(s, k, x, type, in, count, certain) : NULL;
    if (!all)
        statement_unknown(s, n, "there is no reference of its kernel");
    return all;
}

void statements_free(statements *s)
{
    for (uint32_t i = 0; i < program_of(s)->node_count; i++)
        if (s->kernels[i])
            expected_close(s->kernels[i]);
}

/* ---- functions ---- */

enum { OPERANDS = STEP_MAP_INPUTS };

static mathematics about(const statements *s, const step_node *n)
{
    const step_type *types = program_of(s)->types;
    return (mathematics){.node = n, .type = &types[n->outputs[0].type], .types = types, .arena = s->arena};
}

/* The values at place v of all inputs; a pair is opened for a kernel. */
static uint32_t operands(const statements *s, const step_node *n, size_t v, const nested_value **in)
{
    const nested_value *first = statement_input(s, n, 0)->values[v];
    if (n->fn == STEP_FN_KERNEL && n->input_count == 1 && first->kind == STEP_PAIR) {
        in[0] = first->pair.first;
        in[1] = first->pair.second;
        return 2;
    }
    for (uint32_t i = 0; i < n->input_count; i++)
        in[i] = statement_input(s, n, i)->values[v];
    return n->input_count;
}

static bool in_step(statements *s, const step_node *n)
{
    for (uint32_t i = 1; i < n->input_count; i++)
        if (!same_sizes(statement_input(s, n, 0), 0, statement_input(s, n, i), 0)) {
            statement_unknown(s, n, "its inputs have different sizes");
            return false;
        }
    return true;
}

static void state_map(statements *s, const step_node *n, const nested *in)
{
    nested *out = output(s, n, 0, in->rank);
    mathematics m = about(s, n);
    const nested_value *v[OPERANDS];
    for (size_t i = 0; i < in->count && !s->why; i++) {
        uint32_t count = operands(s, n, i, v);
        nested_push(out, n->fn == STEP_FN_KERNEL ? apply_kernel(s, n, v, count) : mathematics_map(&m, v, count));
        if (m.why)
            statement_unknown(s, n, m.why);
    }
    nested_copy_sizes(out, 0, in, 0);
}

static const nested_value *folded(statements *s, const step_node *n, mathematics *m, const nested_value *accumulator, size_t i)
{
    const nested_value *v[OPERANDS + 1];
    uint32_t count = operands(s, n, i, v + 1);
    v[0] = n->fn == STEP_FN_KERNEL ? accumulator ? accumulator : mathematics_shown(m, NULL) : NULL;
    const nested_value *next = v[0] ? apply_kernel(s, n, v, count + 1) : mathematics_fold(m, accumulator, v + 1, count);
    if (m->why)
        statement_unknown(s, n, m->why);
    return next;
}

static void state_fold(statements *s, const step_node *n, const nested *in)
{
    uint32_t b = (uint32_t)n->param[STEP_B];
    bool shows_all = n->op == STEP_SCAN;
    nested *out = output(s, n, 0, shows_all ? in->rank : in->rank - b);
    nested_sizes values = nested_values_of_items(in, b);
    mathematics m = about(s, n);
    size_t at = 0;
    for (size_t g = 0; g < values.count; g++) {
        const nested_value *accumulator = NULL;
        for (int64_t i = 0; i < values.of[g] && !s->why; i++) {
            accumulator = folded(s, n, &m, accumulator, at++);
            if (shows_all && accumulator)
                nested_push(out, mathematics_shown(&m, accumulator));
        }
        if (!shows_all && !s->why)
            nested_push(out, mathematics_shown(&m, accumulator));
    }
    nested_copy_sizes(out, 0, in, shows_all ? 0 : b);
}

static void state_flat_map(statements *s, const step_node *n, const nested *in)
{
    bool inside = n->param[STEP_B] > 0;
    nested *out = output(s, n, 0, in->rank + inside);
    mathematics m = about(s, n);
    const nested_value *v[OPERANDS];
    size_t at = 0;
    for (size_t g = 0; g < in->dims[0].count; g++) {
        int64_t all = 0, values = 0;
        for (int64_t i = 0; i < in->dims[0].of[g] && !s->why; i++) {
            if (!mathematics_flat(&m, v, operands(s, n, at++, v), out, &values))
                statement_unknown(s, n, m.why);
            all += values;
            if (inside)
                nested_size(out, 0, values);
        }
        nested_size(out, inside, inside ? in->dims[0].of[g] : all);
    }
    nested_copy_sizes(out, 1 + inside, in, 1);
    nested_settle(out);
}

/* ---- shapes ---- */

static void copy_values(nested *out, const nested *in)
{
    for (size_t v = 0; v < in->count; v++)
        nested_push(out, in->values[v]);
}

static void state_flatten(statements *s, const step_node *n, const nested *in)
{
    uint32_t min = (uint32_t)n->param[STEP_B], max = (uint32_t)n->param[STEP_N];
    nested *out = output(s, n, 0, in->rank - (max - min));
    for (uint32_t d = 0; d < min; d++)
        out->dims[d] = in->dims[d];
    out->dims[min] = nested_items_of_groups(in, min, max);
    nested_copy_sizes(out, min + 1, in, max + 1);
    copy_values(out, in);
    nested_settle(out);
}

/* Of a dimension that is not fixed a tile of padding has nothing. */
static const nested_value *padding(statements *s, const step_node *n)
{
    const step_type *t = &program_of(s)->types[n->outputs[0].type];
    int64_t rows = t->rows < 0 ? 0 : t->rows, columns = t->columns < 0 ? 0 : t->columns;
    float *numbers = ARENA_ARRAY(s->arena, float, (size_t)(rows * columns) + 1);
    for (int64_t i = 0; i < rows * columns; i++)
        numbers[i] = (float)n->param[STEP_PAD_VALUE];
    return mathematics_exact(numbers, rows, columns, 0, s->arena);
}

static void push_flag(statements *s, nested *flags, bool flag)
{
    nested_push(flags, plain(s, (nested_value){.kind = STEP_BOOL, .flag = flag}));
}

/* Chunks of one group of D_b; its last one is filled. */
static void split(statements *s, const step_node *n, int64_t size, nested_items *items, nested *out, nested *flags)
{
    uint32_t b = (uint32_t)n->param[STEP_B];
    int64_t chunk = n->param[STEP_N], chunks = size / chunk + (size % chunk > 0);
    nested_size(out, b + 1, chunks);
    nested_size(flags, b + 1, chunks);
    for (int64_t k = 0; k < chunks * chunk && !s->why; k++) {
        int64_t values = 1;
        if (k % chunk == 0) {
            nested_size(out, b, chunk);
            nested_size(flags, b, chunk);
        }
        if (k < size) {
            nested before = *out;
            values = nested_items_move(items, out);
            for (uint32_t d = 0; d < b; d++)
                for (size_t g = before.dims[d].count; g < out->dims[d].count; g++)
                    nested_size(flags, d, out->dims[d].of[g]);
        } else if (b > 0) {
            statement_unknown(s, n, "groups are no whole number of chunks");
        } else {
            nested_push(out, padding(s, n));
        }
        for (int64_t v = 0; v < values; v++)
            push_flag(s, flags, k >= size);
    }
}

static void state_reshape(statements *s, const step_node *n, const nested *in)
{
    uint32_t b = (uint32_t)n->param[STEP_B];
    nested *out = output(s, n, 0, in->rank + 1), *flags = output(s, n, 1, in->rank + 1);
    nested_items items = nested_items_begin(in, b);
    for (size_t g = 0; g < in->dims[b].count && !s->why; g++)
        split(s, n, in->dims[b].of[g], &items, out, flags);
    nested_copy_sizes(out, b + 2, in, b + 1);
    nested_copy_sizes(flags, b + 2, in, b + 1);
    nested_settle(out);
    nested_settle(flags);
}

static void state_promote(statements *s, const step_node *n, const nested *in)
{
    nested *out = output(s, n, 0, in->rank + 1);
    int64_t all = in->dims[in->rank].of[0];
    nested_copy_sizes(out, 0, in, 0);
    if (all == 0)
        out->dims[in->rank] = (nested_sizes){0};
    nested_size(out, in->rank + 1, all > 0);
    copy_values(out, in);
}

static void state_expand(statements *s, const step_node *n, const nested *in)
{
    const nested *ref = statement_input(s, n, 1);
    uint32_t b = (uint32_t)n->param[STEP_B];
    nested *out = output(s, n, 0, ref->rank);
    nested_sizes have = nested_values_of_items(in, b), want = nested_values_of_items(ref, b);
    size_t at = 0;
    for (size_t k = 0; k < want.count; k++) {
        if (have.count != want.count || have.of[k] > 1 || (have.of[k] == 0 && want.of[k] > 0)) {
            statement_unknown(s, n, "the groups of the reference have no value each");
            return;
        }
        for (int64_t i = 0; i < want.of[k]; i++)
            nested_push(out, in->values[at]);
        at += (size_t)have.of[k];
    }
    nested_copy_sizes(out, 0, ref, 0);
}

static void state_repeat(statements *s, const step_node *n, const nested *in)
{
    nested *out = output(s, n, 0, in->rank + 1);
    for (size_t v = 0; v < in->count; v++) {
        nested_size(out, 0, n->param[STEP_N]);
        budget_spend(s->arena, (uint64_t)n->param[STEP_N]);
        for (int64_t i = 0; i < n->param[STEP_N]; i++)
            nested_push(out, in->values[v]);
    }
    nested_copy_sizes(out, 1, in, 0);
    nested_settle(out);
}

static void state_zip(statements *s, const step_node *n, const nested *in)
{
    nested *out = output(s, n, 0, in->rank);
    for (size_t v = 0; v < in->count; v++)
        nested_push(out, plain(s, (nested_value){.kind = STEP_PAIR, .pair = {in->values[v], statement_input(s, n, 1)->values[v]}}));
    nested_copy_sizes(out, 0, in, 0);
}

/* ---- any of them ---- */

static void state_source(statements *s, const step_node *n)
{
    const step_feed *f = &s->in->run->feeds[number_of(s, n)];
    nested *read = nested_of_tokens(f->tokens, f->count, n->outputs[0].rank, false, s->arena);
    s->streams[number_of(s, n)][0] = read;
}

static void state_once(statements *s, const step_node *n)
{
    nested *out = output(s, n, 0, 0);
    nested_push(out, plain(s, (nested_value){.kind = STEP_ADDRESS}));
    nested_size(out, 0, 1);
}

void statement_make(statements *s, const step_node *n)
{
    const nested *in = n->input_count > 0 ? statement_input(s, n, 0) : NULL;
    bool lock_step = n->op == STEP_MAP || n->op == STEP_ACCUM || n->op == STEP_SCAN || n->op == STEP_FLAT_MAP || n->op == STEP_ZIP ||
                     n->op == STEP_RANDOM_STORE;
    if (lock_step && !in_step(s, n))
        return;
    switch (n->op) {
    case STEP_SOURCE: state_source(s, n); break;
    case STEP_SINK: break;
    case STEP_ONCE: state_once(s, n); break;
    case STEP_LINEAR_LOAD: state_linear_load(s, n, in); break;
    case STEP_LINEAR_STORE:
        for (size_t v = 0; v < in->count && !s->why; v++)
            store(s, n, n->param[STEP_BASE] + (int64_t)v, in->values[v]);
        break;
    case STEP_RANDOM_LOAD:
    case STEP_RANDOM_STORE: state_random(s, n, in); break;
    case STEP_BUFFERIZE: state_bufferize(s, n, in); break;
    case STEP_STREAMIFY: state_streamify(s, n, in); break;
    case STEP_PARTITION: state_partition(s, n, in); break;
    case STEP_REASSEMBLE: state_reassemble(s, n); break;
    case STEP_EAGER_MERGE: state_merge(s, n); break;
    case STEP_PARALLELIZE: state_parallelize(s, n, in); break;
    case STEP_BROADCAST: s->streams[number_of(s, n)][0] = in; break;
    case STEP_MAP: state_map(s, n, in); break;
    case STEP_ACCUM:
    case STEP_SCAN: state_fold(s, n, in); break;
    case STEP_FLAT_MAP: state_flat_map(s, n, in); break;
    case STEP_FLATTEN: state_flatten(s, n, in); break;
    case STEP_RESHAPE: state_reshape(s, n, in); break;
    case STEP_PROMOTE: state_promote(s, n, in); break;
    case STEP_EXPAND: state_expand(s, n, in); break;
    case STEP_REPEAT: state_repeat(s, n, in); break;
    case STEP_ZIP: state_zip(s, n, in); break;
    }
}
