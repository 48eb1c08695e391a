#include "runtime/field/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/field/engine.h"
#include "runtime/field/explain.h"
#include "runtime/field/projection.h"
#include "runtime/field/sums.h"
#include "runtime/machine/launch.h"
#include "runtime/machine/parallel.h"
#include "runtime/tensor/compare.h"
#include "runtime/tensor/fold.h"
#include "runtime/tensor/port_data.h"
#include "support/integer.h"
#include "support/order.h"
#include "support/strbuf.h"

/* What is run as a whole: 512 x 512 x 2048 products and what moves them. Beyond, elements are sampled. */
#define WHOLE_WORK 2e9
#define WHOLE_PRODUCTS ((double)(INT64_C(1) << 30))
#define WHOLE_MAP_PRODUCTS ((double)(INT64_C(1) << 24)) /* besides maps, whose elements are computed one by one */
#define WHOLE_ELEMENTS (INT64_C(1) << 26)
#define MEMORY_BYTES (INT64_C(1) << 31)
enum { MOST_WRONG = 1 << 16, LEAST_SAMPLES = 64, MOST_SAMPLES = 4096, SAMPLED_TERMS = 1 << 22 };

typedef struct checking {
    const binary_kernel *kernel;
    const field_options *options;
    field_machine *machine;
    field_expected *expected;
    bool whole;
    arena *arena;
    diag_list *diags;
} checking;

/* ---- outputs ---- */

/* Elements of an output that were read from the machine. */
typedef struct reading {
    int64_t *position; /* by number in the list, the first place; -1: none */
    field_value *value;
    int64_t *elements;   /* NULL: all */
    field_value *should; /* of those in the list what the mathematics says, FIELD_NOTHING: it cannot be known; NULL: not asked yet */
    int64_t count;
    int64_t copies_differ, copy_position; /* places that hold another value than the first one of their element */
} reading;

static bool no_memory(diag_list *diags, const port *p)
{
    diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory for port `%s`", p->name);
    return false;
}

static void reading_free(reading *r)
{
    free(r->position);
    free(r->value);
    free(r->elements);
    free(r->should);
    *r = (reading){0};
}

static bool reading_new(const checking *c, const port *p, int64_t count, reading *r)
{
    *r = (reading){.position = malloc((size_t)count * sizeof *r->position + 1),
                   .value = malloc((size_t)count * sizeof *r->value + 1),
                   .count = count,
                   .copy_position = -1};
    if (!r->position || !r->value)
        return no_memory(c->diags, p);
    memset(r->position, 0xff, (size_t)count * sizeof *r->position);
    return true;
}

/* The place of an element in the sorted list; -1: it is not in it. */
static int64_t listed(const reading *r, int64_t element)
{
    if (!r->elements)
        return element;
    const int64_t *found = bsearch(&element, r->elements, (size_t)r->count, sizeof element, order_numbers);
    return found ? found - r->elements : -1;
}

/* `r` NULL: each that there is. */
static bool is_wanted(const reading *r, int64_t element)
{
    return element >= 0 && (!r || listed(r, element) >= 0);
}

static void take_one(reading *r, int64_t at, int64_t position, field_value value)
{
    if (r->position[at] < 0) {
        r->position[at] = position;
        r->value[at] = value;
    } else if (r->value[at] != value) {
        r->copies_differ++;
        r->copy_position = r->copy_position < 0 ? position : r->copy_position;
    }
}

/* What reads a port hands over: values side by side, of positions from `position` on. False: no more is wanted. */
typedef bool port_taker(void *of, const field_numbers *numbers, int64_t position, int64_t count, const field_value *values);

static bool take(void *of, const field_numbers *numbers, int64_t position, int64_t count, const field_value *values)
{
    reading *r = of;
    for (int64_t i = 0; i < count; i++)
        take_one(r, listed(r, field_number_at(numbers, position + i)), position + i, values[i]);
    return true;
}

/* Those in the list, of a port whose elements lie in order. */
static void read_listed(field_run *end, uint32_t number, reading *r)
{
    dtype type = end->machine->plans->kernel->ports[number].dtype;
    for (int64_t i = 0; i < r->count && !end->fault->set; i++) {
        field_place at;
        field_value value;
        field_port_place(end->machine, number, r->elements[i], &at);
        if (at.number < 0)
            continue;
        field_read(end, &at, type, 1, 1, &value);
        take_one(r, i, r->elements[i], value);
    }
}

/* All positions with elements that are wanted (`of`; NULL: all), as the machine's port has them at the end. */
static void read_all(field_run *end, uint32_t number, const field_numbers *numbers, const reading *wanted, port_taker *taker, void *of)
{
    enum { BLOCK = 1024 };
    field_machine *m = end->machine;
    const port *p = &m->plans->kernel->ports[number];
    field_value values[BLOCK];
    int64_t bits = dtype_row_of(p->dtype)->bits, positions = field_port_positions(m, number);
    bool going = true;
    for (int64_t i = 0, n; i < positions && going && !end->fault->set; i += n) {
        field_place at;
        n = smaller(field_port_place(m, number, i, &at), positions - i);
        for (int64_t j = 0, live; j < n && going && at.number >= 0; j += live) {
            int64_t most = smaller(n - j, BLOCK);
            live = numbers->in_order && !wanted ? most : 0;
            while (live < most && is_wanted(wanted, field_number_at(numbers, i + j + live)))
                live++;
            field_place here = {at.space, at.number, at.bit + j * bits};
            if (live > 0) {
                field_read(end, &here, p->dtype, 1, live, values);
                going = taker(of, numbers, i + j, live, values);
            }
            live = larger(live, 1);
        }
    }
}

/* What the machine's port has at the end, of all elements or of those in a list. False: no memory, or a fault. */
static bool read_port(checking *c, uint32_t number, reading *list, port_taker *taker, void *of)
{
    field_machine *m = c->machine;
    field_numbers numbers;
    if (!field_port_numbers(m, number, &numbers))
        return no_memory(c->diags, &c->kernel->ports[number]);
    fault f = {0};
    field_run end = {
        .machine = m, .time = m->event_count, .unknowns = {.seed = m->seed, .key = field_hash(m->event_count, number)}, .fault = &f};
    if (numbers.in_order && list && list->elements) /* few of many */
        read_listed(&end, number, list);
    else
        read_all(&end, number, &numbers, list, taker, of);
    free(numbers.list);
    if (f.set)
        fault_report(&f, c->kernel->name, c->diags);
    return !f.set;
}

/* Every coordinate of every axis is met about equally often: along each axis a random permutation of equal
 * parts. */
static void choose(const checking *c, const tensor_type *type, uint32_t number, reading *r)
{
    int64_t n = r->count;
    int64_t *order = malloc((size_t)n * sizeof *order + 1);
    for (int64_t i = 0; i < n; i++)
        r->elements[i] = 0;
    for (int axis = 0; axis < type->rank && order; axis++) {
        uint64_t key = field_hash(field_hash(c->machine->seed, UINT64_C(0x400000000) + number), (uint64_t)axis);
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        for (int64_t i = n - 1; i > 0; i--) {
            int64_t j = (int64_t)(field_hash(key, (uint64_t)i) % (uint64_t)(i + 1)), swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t size = type->shape[axis], low = (int64_t)((__int128)order[i] * size / n),
                    high = (int64_t)(((__int128)order[i] + 1) * size / n);
            int64_t at = low + (high > low ? (int64_t)(field_hash(~key, (uint64_t)i) % (uint64_t)(high - low)) : 0);
            r->elements[i] = r->elements[i] * size + smaller(at, size - 1);
        }
    }
    free(order);
    order_sort(r->elements, (size_t)n, sizeof *r->elements, order_numbers);
    r->count = 0;
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || r->elements[i] != r->elements[i - 1])
            r->elements[r->count++] = r->elements[i];
}

static int64_t sample_count(const checking *c)
{
    if (c->options->samples > 0)
        return c->options->samples;
    double fit = SAMPLED_TERMS / einsum_most_terms(&c->kernel->einsum);
    return fit < LEAST_SAMPLES ? LEAST_SAMPLES : fit > MOST_SAMPLES ? MOST_SAMPLES : (int64_t)fit;
}

/* ---- one output ---- */

/* The einsum's tensor of a port, which has its axes in its order. */
static bool tensor_of(const checking *c, uint32_t number, const tensor_type *type, uint32_t *found)
{
    const einsum *e = &c->kernel->einsum;
    uint32_t t = 0;
    while (t < e->tensor_count && e->tensors[t].port != (int32_t)number)
        t++;
    bool same = t < e->tensor_count && (int)e->tensors[t].rank == type->rank;
    for (int i = 0; same && i < type->rank; i++)
        same = strcmp(e->axes[e->tensors[t].axes[i]].name, type->names[i]) == 0 && e->axes[e->tensors[t].axes[i]].size == type->shape[i];
    *found = t;
    if (!same)
        diag_add(c->diags, E_BIN_FORMAT, SRC_NOWHERE, "section .visa.einsum.%s has no tensor that fits port `%s`", c->kernel->name,
                 c->kernel->ports[number].name);
    return same;
}

static bool has_rows(const einsum *e)
{
    for (uint32_t i = 0; i < e->statement_count; i++)
        if (einsum_index_count(&e->statements[i]) > 0)
            return true;
    return false;
}

static bool has_zeros(const einsum *e)
{
    for (uint32_t i = 0; i < e->statement_count; i++)
        if (e->statements[i].op == MATH_FILL)
            return true;
    return false;
}

/* ---- the two sides of an output ---- */

typedef struct both_sides {
    checking *checking;
    uint32_t port, tensor;
    reading *reading;
    bool read;
} both_sides;

/* They have nothing in common but the inputs, so that two threads may ask them. */
static void ask_side(void *of, unsigned worker, size_t side)
{
    both_sides *b = of;
    checking *c = b->checking;
    reading *r = b->reading;
    (void)worker;
    if (side == 0)
        b->read = read_port(c, b->port, r, take, r);
    for (int64_t i = 0; side == 1 && i < r->count; i++)
        if (!field_expected_value(c->expected, b->tensor, c->kernel->einsum.statement_count, r->elements[i], &r->should[i]))
            r->should[i] = FIELD_NOTHING;
}

/* `in_einsum`: the port's tensor there; NULL: the machine's side alone. */
static bool read_output(checking *c, uint32_t number, const uint32_t *in_einsum, const tensor_type *type, reading *r)
{
    const port *p = &c->kernel->ports[number];
    int64_t elements = tensor_elements(type), wanted = c->whole ? elements : smaller(sample_count(c), elements);
    if (!reading_new(c, p, wanted, r))
        return false;
    if (wanted < elements) {
        r->elements = malloc((size_t)wanted * sizeof *r->elements + 1);
        if (!r->elements)
            return no_memory(c->diags, p);
        choose(c, type, number, r);
    }
    if (!r->elements || !in_einsum)
        return read_port(c, number, r, take, r);
    r->should = malloc((size_t)wanted * sizeof *r->should + 1);
    if (!r->should)
        return no_memory(c->diags, p);
    both_sides b = {c, number, *in_einsum, r, false};
    parallel_for(2, parallel_workers(c->options->threads) > 1 ? 2 : 1, ask_side, &b);
    return b.read;
}

/* Elements that are another polynomial. */
static bool find_wrong(checking *c, uint32_t t, const reading *r, field_wrong *wrong, size_t *count, field_output *out)
{
    *count = 0;
    for (int64_t i = 0; i < r->count; i++) {
        int64_t element = r->elements ? r->elements[i] : i;
        field_value should = r->should ? r->should[i] : FIELD_NOTHING;
        if (r->position[i] < 0)
            continue;
        if (r->should ? should == FIELD_NOTHING
                      : !field_expected_value(c->expected, t, c->kernel->einsum.statement_count, element, &should)) {
            diag_add(c->diags, E_RUN_LIMIT, SRC_NOWHERE,
                     "statements of kernel `%s` depend on too many others for an element to be computed", c->kernel->name);
            return false;
        }
        out->compared++;
        if (should == r->value[i])
            continue;
        out->differing++;
        if (*count < MOST_WRONG)
            wrong[(*count)++] = (field_wrong){element, r->position[i], r->value[i]};
    }
    return true;
}

static void note_axes(const checking *c, const tensor_type *type, const field_wrong *wrong, size_t count, diag *d)
{
    strbuf s;
    strbuf_init(&s, c->arena);
    int64_t *values = ARENA_ARRAY(c->arena, int64_t, count), inner = 1;
    const char **texts = ARENA_ARRAY(c->arena, const char *, (size_t)type->rank + 1);
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        for (size_t i = 0; i < count; i++)
            values[i] = wrong[i].element / inner % type->shape[axis];
        texts[axis] = fold_text(values, count, type->shape[axis], c->arena);
        inner *= type->shape[axis];
    }
    for (int axis = 0; axis < type->rank; axis++)
        strbuf_printf(&s, "%s%s %s", axis ? ", " : "", type->names[axis], texts[axis]);
    if (type->rank)
        diag_note(c->diags, d, SRC_NOWHERE, "differing: %s", s.text);
}

/* The line for people. */
static const char *output_text(const field_output *o, arena *a)
{
    const char *of = o->compared == o->elements ? arena_printf(a, "%s%" PRId64, o->elements > 1 ? "all " : "", o->elements)
                                                : arena_printf(a, "%" PRId64 " of %" PRId64, o->compared, o->elements);
    const char *values = o->elements == 1 ? "value" : "values", *how = o->sampled ? ", sampled," : "";
    if (o->differing > 0)
        return arena_printf(a, "algebra: %" PRId64 " of %" PRId64 " %s%s are other polynomials", o->differing, o->compared, values, how);
    return arena_printf(a, "algebra: %s %s%s proven%s, to within 2^%.0f", of, values, how, o->lists ? " for the lists drawn" : "",
                        ceil(o->log2_probability));
}

static bool check_output(checking *c, uint32_t number, field_output *out)
{
    const port *p = &c->kernel->ports[number];
    tensor_type type = port_logical_type(p, c->kernel->axes, c->kernel->axis_count, c->arena);
    uint32_t in_einsum = 0;
    reading r = {0};
    field_wrong *wrong = malloc(MOST_WRONG * sizeof *wrong);
    size_t count = 0;
    *out = (field_output){.name = p->name, .elements = tensor_elements(&type), .lists = has_rows(&c->kernel->einsum)};
    bool done = wrong && tensor_of(c, number, &type, &in_einsum) && read_output(c, number, &in_einsum, &type, &r) &&
                find_wrong(c, in_einsum, &r, wrong, &count, out);
    if (done) {
        out->degree = einsum_degree(&c->kernel->einsum, in_einsum);
        out->sampled = !c->whole && out->compared < out->elements;
        out->sample_count = out->sampled && r.elements ? (size_t)r.count : 0;
        out->sample = out->sample_count ? ARENA_ARRAY(c->arena, int64_t, out->sample_count) : NULL;
        for (size_t i = 0; i < out->sample_count; i++)
            out->sample[i] = r.elements[i];
        out->log2_probability = log2((double)larger(out->degree, 1)) + log2((double)larger(out->compared, 1)) - 61;
    }
    if (done && count > 0) {
        diag *d = diag_add(c->diags, E_CHECK_MISMATCH, SRC_NOWHERE, "%s: %s", p->name, output_text(out, c->arena));
        field_explain(c->machine, c->expected, number, in_einsum, wrong, count, c->diags, d);
        note_axes(c, &type, wrong, count, d);
    } else if (done && r.copies_differ > 0) {
        diag_add(c->diags, E_CHECK_MISMATCH, SRC_NOWHERE,
                 "%s: algebra: %" PRId64 " copies of broadcast elements differ from the first, at position %" PRId64 " of the port",
                 p->name, r.copies_differ, r.copy_position);
        out->differing += r.copies_differ;
    }
    reading_free(&r);
    free(wrong);
    return done;
}

/* ---- the kernel ---- */

double field_stored_elements(const binary_kernel *k)
{
    double sum = 0;
    for (uint32_t t = 0; t < k->einsum.tensor_count; t++)
        sum += (double)einsum_tensor_elements(&k->einsum, t);
    for (uint32_t i = 0; i < k->port_count; i++)
        sum += (double)port_physical_elements(&k->ports[i], k->axes);
    return sum;
}

static bool has_maps(const einsum *e)
{
    for (uint32_t i = 0; i < e->statement_count; i++)
        if (e->statements[i].op == MATH_MAP || e->statements[i].op == MATH_REDUCE)
            return true;
    return false;
}

/* Is all of the reference little enough? Elements besides maps and rows are computed one by one. */
static bool is_small(const checking *c)
{
    const einsum *e = &c->kernel->einsum;
    double products = has_maps(e) || has_rows(e) ? WHOLE_MAP_PRODUCTS : WHOLE_PRODUCTS;
    return c->options->samples == 0 && einsum_products(e) <= products && field_stored_elements(c->kernel) <= (double)WHOLE_ELEMENTS;
}

/* Runs all of it, or prepares the way back. */
static bool prepare(checking *c)
{
    field_machine *m = c->machine;
    c->whole = m->work <= WHOLE_WORK && is_small(c);
    if (c->whole) {
        field_result result = field_machine_run(m, MEMORY_BYTES, c->diags);
        if (result == FIELD_FAILED)
            return false;
        c->whole = result == FIELD_DONE;
    }
    if (!c->whole && !(m->trace = field_trace_new(m))) {
        diag_add(c->diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory to trace kernel `%s`", c->kernel->name);
        return false;
    }
    return true;
}

/* A statement that is no copy, contraction, map, reduction, gather or scatter; NULL: there is none. The machine has no engine for these
 * yet, and so no twin. */
static const char *other_statement(const einsum *e)
{
    for (uint32_t i = 0; i < e->statement_count; i++)
        if (e->statements[i].op != MATH_COPY && e->statements[i].op != MATH_CONTRACT && e->statements[i].op != MATH_MAP &&
            e->statements[i].op != MATH_REDUCE && e->statements[i].op != MATH_GATHER && e->statements[i].op != MATH_SCATTER &&
            (e->statements[i].op != MATH_FILL || e->statements[i].bits != 0))
            return math_row_of(e->statements[i].op)->name;
    return NULL;
}

/* Does a list move rows? Of a table of one row the mathematics has a copy, and the machine a list. */
static bool takes_rows(const binary_kernel *k)
{
    for (size_t i = 0; i < k->streams[CONTEXT_DMA].count; i++)
        if (k->streams[CONTEXT_DMA].commands[i].op == OP_DMA_INDIRECT)
            return true;
    return has_rows(&k->einsum);
}

/* What cannot be traced back from an output; NULL: all can. */
static const char *followed_forwards(const binary_kernel *k)
{
    return takes_rows(k) ? "rows by index" : has_zeros(&k->einsum) ? "zeros that are written without a source" : NULL;
}

static bool checking_open(checking *c, const target *t)
{
    const char *other = other_statement(&c->kernel->einsum);
    if (other) {
        diag_add(c->diags, E_REFERENCE, SRC_NOWHERE, "kernel `%s`: the algebra has no %s", c->kernel->name, other);
        return false;
    }
    if (c->kernel->einsum.tensor_count == 0) {
        diag_add(c->diags, E_BIN_FORMAT, SRC_NOWHERE, "the binary has no section .visa.einsum.%s to check against", c->kernel->name);
        return false;
    }
    c->machine = field_machine_new(t, c->kernel, c->options->seed, c->options->threads, c->arena, c->diags);
    if (!c->machine || !prepare(c))
        return false;
    if (!c->whole && followed_forwards(c->kernel)) {
        diag_add(c->diags, E_REFERENCE, SRC_NOWHERE, "kernel `%s`: %s are followed only where all of the kernel is run", c->kernel->name,
                 followed_forwards(c->kernel));
        return false;
    }
    bool simple = !has_maps(&c->kernel->einsum) && !followed_forwards(c->kernel);
    c->expected = field_expected_new(c->kernel, &c->machine->inputs, c->whole && simple, c->options->threads, c->diags);
    return c->expected;
}

static void checking_close(checking *c)
{
    field_expected_free(c->expected);
    field_machine_free(c->machine);
}

/* ---- projections ---- */

/* Are all outputs products of inputs? */
static bool may_project(checking *c)
{
    const einsum *e = &c->kernel->einsum;
    arena *scratch = arena_new_inside(c->arena);
    field_inputs inputs = field_inputs_new(c->kernel, field_machine_seed(c->options->seed), scratch);
    bool all = c->options->samples == 0 && !takes_rows(c->kernel) && field_stored_elements(c->kernel) <= (double)WHOLE_ELEMENTS &&
               !c->options->singly;
    for (uint32_t i = 0; i < c->kernel->port_count && all; i++) {
        uint32_t t = 0;
        while (t < e->tensor_count && e->tensors[t].port != (int32_t)i)
            t++;
        all = c->kernel->ports[i].direction == PORT_IN || (t < e->tensor_count && field_projects(c->kernel, &inputs, t));
    }
    arena_free(scratch);
    return all;
}

/* The machine's projection of an output, as far as it was read. */
typedef struct projecting {
    field_machine *machine;
    const field_factors *factors;
    field_value sum;   /* of what is known; */
    int64_t projected; /* elements */
} projecting;

/* Of values that begin with a name, how many are names one after the other. */
static int64_t names_in_order(const field_value *values, int64_t count)
{
    int64_t n = 1;
    while (n < count && values[n] == values[0] + (field_value)n)
        n++;
    return n;
}

/* Elements side by side. False: a value is not known. */
static bool project_some(projecting *p, int64_t element, int64_t count, const field_value *values)
{
    enum { BLOCK = 1024 };
    field_value of[BLOCK];
    bool done = true;
    for (int64_t i = 0, n; i < count && done; i += n) {
        n = smaller(BLOCK, count - i);
        field_factors_of(p->factors, element + i, n, of);
        for (int64_t j = 0, some; j < n && done; j += some) {
            field_value v = values[i + j];
            some = field_is_name(v) ? names_in_order(values + i + j, n - j) : 1;
            if (field_is_name(v))
                done = field_sums_want(p->machine->sums, v, of + j, some);
            else if ((done = v != FIELD_NOTHING))
                p->sum = field_add(p->sum, field_multiply(v, of[j]));
        }
    }
    p->projected += count;
    return done;
}

/* Of a port whose elements lie in order: none has to be kept. */
static bool take_projected(void *of, const field_numbers *numbers, int64_t position, int64_t count, const field_value *values)
{
    (void)numbers;
    return project_some(of, position, count, values);
}

/* False: it is not known, or elements have no place, or copies of one differ. */
static bool project_port(checking *c, uint32_t number, int64_t elements, projecting *p)
{
    const port *of = &c->kernel->ports[number];
    if (port_is_in_order(of))
        return read_port(c, number, NULL, take_projected, p) && p->projected == elements;
    reading r = {0};
    bool done = reading_new(c, of, elements, &r) && read_port(c, number, &r, take, &r) && r.copies_differ == 0;
    for (int64_t i = 0; done && i < elements; i++)
        done = r.position[i] >= 0;
    done = done && project_some(p, 0, elements, r.value);
    reading_free(&r);
    return done;
}

/* Adds an output's projection to what there is of each side. */
static bool project_output(checking *c, uint32_t number, field_output *out, field_value *is, field_value *should)
{
    const port *p = &c->kernel->ports[number];
    tensor_type type = port_logical_type(p, c->kernel->axes, c->kernel->axis_count, c->arena);
    uint32_t t = 0;
    field_factors factors = {0};
    projecting machines = {.machine = c->machine, .factors = &factors};
    field_value other = 0;
    *out = (field_output){.name = p->name, .elements = tensor_elements(&type), .projected = true};
    out->compared = out->elements;
    bool done = tensor_of(c, number, &type, &t) && field_factors_new(&c->kernel->einsum, t, c->machine->seed, &factors) &&
                project_port(c, number, out->elements, &machines) &&
                field_projection(c->kernel, &c->machine->inputs, t, &factors, c->options->threads, &other);
    if (done) {
        out->degree = einsum_degree(&c->kernel->einsum, t);
        out->log2_probability = log2((double)(out->degree + type.rank)) - 61;
        *is = field_add(*is, machines.sum);
        *should = field_add(*should, other);
    }
    field_factors_free(&factors);
    return done;
}

/* All outputs at once. False: some differ, or it cannot be known this way; what a diagnostic says is for elements to find, one by one. */
static bool project(const checking *of, const target *t, field_output *outputs, uint32_t *count)
{
    diag_list unsaid;
    checking c = *of;
    diag_list_init(&unsaid, c.arena);
    c.diags = &unsaid;
    c.machine = may_project(&c) ? field_machine_new(t, c.kernel, c.options->seed, c.options->threads, c.arena, &unsaid) : NULL;
    field_machine *m = c.machine;
    field_value is = 0, should = 0, named = 0;
    if (!m)
        return false;
    m->sums = field_sums_new();
    bool done = m->sums && m->work - m->named_products <= WHOLE_WORK && field_machine_run(m, MEMORY_BYTES, &unsaid) == FIELD_DONE;
    *count = 0;
    c.whole = true;
    for (uint32_t i = 0; i < c.kernel->port_count && done; i++)
        if (c.kernel->ports[i].direction != PORT_IN)
            done = project_output(&c, i, &outputs[(*count)++], &is, &should);
    done = done && field_sums_total(m->sums, m, &named) && field_add(is, named) == should;
    field_sums_free(m->sums);
    field_machine_free(m);
    return done;
}

enum { MOST_LAUNCHES = 8, DRAWS = 64 };

/* Takes, of the next seeds, the one with whose numbers most conditions hold that did not yet; the first time the one that there is. How
 * many they are; 0: no seed has one. */
static size_t next_numbers(const binary_kernel *k, bool first, uint64_t *seed, bool *seen, arena *a)
{
    size_t conditions = launch_conditions(k), most = 0;
    uint64_t best = *seed;
    bool *then = ARENA_ARRAY(a, bool, conditions + 1), *best_then = ARENA_ARRAY(a, bool, conditions + 1);
    if (conditions == 0)
        return 0;
    for (uint64_t i = first ? 0 : 1; i <= (first ? 0 : DRAWS); i++) {
        arena *scratch = arena_new_inside(a);
        memcpy(then, seen, conditions * sizeof *then);
        uint64_t next = *seed + i * UINT64_C(0x9e3779b97f4a7c15);
        size_t more = launch_hold(k, field_inputs_new(k, field_machine_seed(next), scratch).numbers, then);
        arena_free(scratch);
        if (more > most || first) {
            most = more;
            best = next;
            memcpy(best_then, then, conditions * sizeof *then);
        }
    }
    if (most > 0)
        memcpy(seen, best_then, conditions * sizeof *seen);
    *seed = best;
    return most;
}

/* All outputs with the numbers of this seed; what differs, differs. */
static bool check_numbers(checking *c, const target *t, bool first, field_verdict *out, double *probability)
{
    uint32_t number = 0;
    field_output *projected = ARENA_ARRAY(c->arena, field_output, (size_t)c->kernel->port_count + 1);
    if (project(c, t, projected, &number)) {
        for (uint32_t i = 0; i < number; i++) {
            out->outputs[i] = first ? projected[i] : out->outputs[i];
            *probability += exp2(projected[i].log2_probability);
        }
        out->output_count = number;
        return true;
    }
    number = 0;
    c->machine = NULL;
    c->expected = NULL;
    bool done = checking_open(c, t);
    for (uint32_t i = 0; i < c->kernel->port_count && done; i++) {
        if (c->kernel->ports[i].direction == PORT_IN)
            continue;
        field_output o, *have = &out->outputs[number];
        done = check_output(c, i, &o);
        if (first || (have->differing == 0 && o.differing > 0))
            *have = o;
        number++;
        out->agrees = out->agrees && o.differing == 0;
        *probability += exp2(o.log2_probability);
    }
    out->output_count = number;
    checking_close(c);
    return done;
}

bool field_check(const target *t, const binary_kernel *k, const field_options *options, arena *a, diag_list *diags, field_verdict *out)
{
    checking c = {.kernel = k, .options = options, .arena = a, .diags = diags};
    *out = (field_verdict){
        .kernel = k, .seed = options->seed, .agrees = true, .outputs = ARENA_ARRAY(a, field_output, (size_t)k->port_count + 1), .text = ""};
    out->undecided = other_statement(&k->einsum);
    if (out->undecided) {
        out->text = arena_printf(a, "%s: algebra: not decided: its mathematics has a %s\n", k->name, out->undecided);
        return true;
    }
    const char *list = field_computed_list(&k->einsum, k->ports);
    const char *large = is_small(&c) ? NULL : followed_forwards(k);
    if (list || large) {
        out->undecided = list ? "list" : takes_rows(k) ? "gather" : "fill";
        out->text =
            list ? arena_printf(a,
                                "%s: algebra: not decided: the list %s is computed, and has no numbers here; --check=numbers compares it\n",
                                k->name, list)
                 : arena_printf(a, "%s: algebra: not decided: %s are followed only where all of the kernel is run\n", k->name, large);
        return true;
    }
    bool done = true;
    double probability = 0;
    size_t conditions = launch_conditions(k), seen_count = 0;
    bool *seen = ARENA_ARRAY(a, bool, conditions + 1);
    field_options drawn = *options;
    c.options = &drawn;
    for (int launch = 0; launch < MOST_LAUNCHES && done && out->agrees; launch++) {
        size_t more = next_numbers(k, launch == 0, &drawn.seed, seen, a);
        if (launch > 0 && more == 0)
            break;
        seen_count += more;
        done = check_numbers(&c, t, launch == 0, out, &probability);
    }
    for (uint32_t i = 0; i < out->output_count && done; i++)
        out->text = arena_printf(a, "%s%s: %s: %s\n", out->text, k->name, out->outputs[i].name, output_text(&out->outputs[i], a));
    if (seen_count < conditions && done && out->agrees)
        out->text = arena_printf(a, "%s%s: algebra: %zu of %zu conditions on numbers did not hold: what they guard was not run\n",
                                 out->text, k->name, conditions - seen_count, conditions);
    out->log2_probability = probability > 0 ? log2(probability) : -61;
    return done;
}

bool field_dump(const target *t, const binary_kernel *k, const field_options *options, arena *a, diag_list *diags, const char **text)
{
    checking c = {.kernel = k, .options = options, .arena = a, .diags = diags};
    strbuf s;
    strbuf_init(&s, a);
    bool done = checking_open(&c, t);
    for (uint32_t i = 0; i < k->port_count && done; i++) {
        tensor_type type = port_logical_type(&k->ports[i], k->axes, k->axis_count, a);
        reading r = {0};
        if (k->ports[i].direction == PORT_IN)
            continue;
        done = read_output(&c, i, NULL, &type, &r);
        for (int64_t j = 0; done && j < r.count; j++)
            if (r.position[j] >= 0)
                strbuf_printf(&s, "%s %" PRId64 " %" PRIu64 "\n", k->ports[i].name, r.elements ? r.elements[j] : j, r.value[j]);
        reading_free(&r);
    }
    checking_close(&c);
    *text = s.text;
    return done;
}
