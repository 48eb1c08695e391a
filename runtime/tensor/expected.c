#include "runtime/tensor/expected.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/parallel.h"

struct expected {
    const reference_api *api;
    reference_kernel *kernel;
    einsum einsum; /* that the kernel was built from: the caller's, and after its tensors and statements
                      those of sums and casts */
    bool machine_order;
    const char *name;
    parallel_job *building;    /* NULL: it is not built on a thread */
    bool *is_input, *is_asked; /* by tensor; asked: somebody wants its values */
    uint32_t *sums;            /* by tensor: where its sums are; UINT32_MAX: nowhere */
    double *roundings;         /* by tensor */
    unsigned char **tensors;   /* by tensor; ours, but for inputs */
    double **bounds;
};

/* ---- which outputs have errors of independent roundings ---- */

static bool indexes(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank && einsum_digit_indexes(d, side); i++)
        if (t->axes[i] == d->axis)
            return true;
    return false;
}

/* The only statement that assigns it; NULL: none, or another one too. */
static const einsum_statement *only_statement(const einsum *e, uint32_t tensor)
{
    const einsum_statement *only = NULL;
    for (uint32_t i = 0; i < e->statement_count; i++)
        if (e->statements[i].dst == tensor) {
            if (only)
                return NULL;
            only = &e->statements[i];
        }
    return only;
}

static bool is_assigned(const einsum *e, uint32_t tensor)
{
    bool assigned = false;
    for (uint32_t i = 0; i < e->statement_count; i++)
        assigned = assigned || e->statements[i].dst == tensor;
    return assigned;
}

/* The input of which each of its elements is another element, copied or cast; the tensor count: it is no such
 * thing. Statements read what was assigned before, so this ends. */
static uint32_t origin_of(const einsum *e, uint32_t tensor)
{
    for (uint32_t steps = 0; steps <= e->statement_count; steps++) {
        if (!is_assigned(e, tensor))
            return e->tensors[tensor].port >= 0 ? tensor : e->tensor_count;
        const einsum_statement *s = only_statement(e, tensor);
        if (!s || s->op != MATH_COPY)
            break;
        for (uint32_t i = 0; i < s->digit_count; i++)
            if (s->digits[i].size > 1 && !indexes(e, s->sources[0], EINSUM_A, &s->digits[i]))
                return e->tensor_count;
        tensor = s->sources[0];
    }
    return e->tensor_count;
}

/* The window of a source that the digit moves along; NULL: none. */
static const einsum_window *window_of(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < e->window_count && einsum_digit_indexes(d, side); i++)
        for (uint32_t axis = 0; axis < t->rank; axis++)
            for (uint32_t k = 0; k < e->windows[i].term_count; k++)
                if (e->windows[i].axis == t->axes[axis] && e->windows[i].terms[k].axis == d->axis)
                    return &e->windows[i];
    return NULL;
}

/* Does the digit take the source to other elements, whatever the other kept digits are? So it does along a
 * window that no other axis moves along. */
static bool moves(const einsum *e, const einsum_statement *s, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    if (indexes(e, tensor, side, d))
        return true;
    const einsum_window *w = window_of(e, tensor, side, d);
    for (uint32_t i = 0; w && i < s->digit_count; i++)
        if (s->digits[i].kept && s->digits[i].size > 1 && s->digits[i].axis != d->axis && window_of(e, tensor, side, &s->digits[i]) == w)
            return false;
    return w != NULL;
}

/* Every output sums other terms than the others, and one source gives each term of a sum an element of its
 * own. */
static bool terms_are_independent(const einsum *e, const einsum_statement *s)
{
    uint32_t a = origin_of(e, s->sources[0]), b = origin_of(e, s->sources[1]);
    bool in_a = true, in_b = true, apart = true;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->size == 1)
            continue;
        if (d->kept)
            apart = apart && (moves(e, s, s->sources[0], EINSUM_A, d) || moves(e, s, s->sources[1], EINSUM_B, d));
        in_a = in_a && (d->kept || indexes(e, s->sources[0], EINSUM_A, d));
        in_b = in_b && (d->kept || indexes(e, s->sources[1], EINSUM_B, d));
    }
    return apart && (in_a || in_b) && a < e->tensor_count && b < e->tensor_count && a != b;
}

/* Terms of a sum; 0: the tensor's statements do not make it one rounding of sums of so many independent
 * terms. */
static double terms_of(const einsum *e, uint32_t tensor)
{
    double terms = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *s = &e->statements[i];
        for (uint32_t k = 0; k < s->source_count; k++)
            if (s->sources[k] == tensor)
                return 0;
        if (s->dst != tensor)
            continue;
        if (s->op != MATH_CONTRACT || !terms_are_independent(e, s))
            return 0;
        double product = 1;
        for (uint32_t k = 0; k < s->digit_count; k++)
            product *= s->digits[k].kept ? 1 : (double)s->digits[k].size;
        if (terms != 0 && terms != product)
            return 0;
        terms = product;
    }
    return terms;
}

/* ---- sums apart from their cast ---- */

static bool has_window(const einsum *e, uint32_t tensor)
{
    bool has = false;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        for (uint32_t k = 0; k < e->window_count; k++)
            has = has || e->windows[k].axis == e->tensors[tensor].axes[i];
    return has;
}

/* tensor[..] = cast(sums[..]) for the whole of it. */
static einsum_statement whole_copy(const einsum *e, uint32_t to, uint32_t from, arena *a)
{
    const einsum_tensor *t = &e->tensors[to];
    einsum_digit *digits = ARENA_ARRAY(a, einsum_digit, (size_t)t->rank + 1);
    for (uint32_t i = 0; i < t->rank; i++)
        digits[i] = (einsum_digit){.axis = t->axes[i], .kept = true, .weight = 1, .size = e->axes[t->axes[i]].size};
    return (einsum_statement){.op = MATH_COPY,
                              .dst = to,
                              .sources = {from},
                              .source_count = 1,
                              .accumulator = DTYPE_F32,
                              .digit_count = t->rank,
                              .digits = digits};
}

static void split_casts(expected *x, const einsum *e, arena *a)
{
    einsum_tensor *tensors = ARENA_ARRAY(a, einsum_tensor, 2 * (size_t)e->tensor_count + 1);
    einsum_statement *statements = ARENA_ARRAY(a, einsum_statement, (size_t)e->statement_count + e->tensor_count + 1);
    memcpy(tensors, e->tensors, e->tensor_count * sizeof *tensors);
    memcpy(statements, e->statements, e->statement_count * sizeof *statements);
    x->einsum.tensors = tensors;
    x->einsum.statements = statements;
    for (uint32_t t = 0; t < e->tensor_count; t++) {
        bool floats = dtype_row_of(e->tensors[t].dtype)->kind == DTYPE_KIND_FLOAT;
        double terms = floats && e->tensors[t].port >= 0 && !x->is_input[t] ? terms_of(e, t) : 0;
        if (terms < 2 || has_window(e, t))
            continue;
        x->roundings[t] = 2 * (terms - 1);
        x->sums[t] = t;
        if (e->tensors[t].dtype == DTYPE_F32)
            continue;
        x->sums[t] = x->einsum.tensor_count++;
        tensors[x->sums[t]] = e->tensors[t];
        tensors[x->sums[t]].port = -1;
        tensors[x->sums[t]].dtype = DTYPE_F32;
        for (uint32_t i = 0; i < e->statement_count; i++)
            if (statements[i].dst == t)
                statements[i].dst = x->sums[t];
        statements[x->einsum.statement_count++] = whole_copy(e, t, x->sums[t], a);
    }
}

/* The tensors whose values somebody asks for. The reference has storage of its own for others, and none where it computes them in passing.
 */
static void find_asked(expected *x)
{
    for (uint32_t t = 0; t < x->einsum.tensor_count; t++) {
        x->is_asked[t] |= x->einsum.tensors[t].port >= 0 && !x->is_input[t]; /* sums may have come before */
        if (x->sums[t] != UINT32_MAX)
            x->is_asked[x->sums[t]] = true;
    }
}

static bool make_storage(expected *x, diag_list *diags)
{
    const einsum *e = &x->einsum;
    for (uint32_t t = 0; t < e->tensor_count; t++) {
        if (!x->is_asked[t])
            continue;
        int64_t bytes = reference_tensor_bytes(e, t), elements = einsum_tensor_elements(e, t);
        x->tensors[t] = bytes < 0 ? NULL : calloc((size_t)bytes + 1, 1);
        x->bounds[t] = elements < 0 || x->machine_order ? NULL : calloc((size_t)elements + 1, sizeof(double));
        if (!x->tensors[t] || (!x->machine_order && !x->bounds[t])) {
            diag_add(diags, E_REFERENCE, SRC_NOWHERE, "not enough memory for the reference's tensor `%s`", e->tensors[t].name);
            return false;
        }
    }
    return true;
}

/* ---- build and run ---- */

static void build(expected *x, diag_list *diags)
{
    unsigned forms = (x->machine_order ? REFERENCE_VALUES | REFERENCE_MACHINE_ORDER : REFERENCE_BOUNDS) | REFERENCE_QUICK;
    x->api = reference_load(diags);
    x->kernel = x->api ? reference_compile(x->api, &x->einsum, x->name, forms, diags) : NULL;
}

/* Its errors are dropped: expected_ready tries again and reports them. */
static void build_beside(void *of)
{
    arena *a = arena_new();
    diag_list unsaid;
    if (a && !setjmp(*arena_guard(a))) {
        diag_list_init(&unsaid, a);
        build(of, &unsaid);
    }
    if (a)
        arena_free(a);
}

static expected *expected_new(const einsum *e, const bool *is_input, const char *name, bool machine_order, arena *a)
{
    size_t most = 2 * (size_t)e->tensor_count + 1;
    expected *x = ARENA_NEW(a, expected);
    *x = (expected){.einsum = *e,
                    .machine_order = machine_order,
                    .name = name,
                    .is_input = ARENA_ARRAY(a, bool, most),
                    .is_asked = ARENA_ARRAY(a, bool, most),
                    .sums = ARENA_ARRAY(a, uint32_t, most),
                    .roundings = ARENA_ARRAY(a, double, most),
                    .tensors = ARENA_ARRAY(a, unsigned char *, most),
                    .bounds = ARENA_ARRAY(a, double *, most)};
    memcpy(x->is_input, is_input, e->tensor_count * sizeof *is_input);
    for (uint32_t t = 0; t < most; t++)
        x->sums[t] = UINT32_MAX;
    if (!machine_order)
        split_casts(x, e, a);
    find_asked(x);
    return x;
}

expected *expected_open(const einsum *e, const bool *is_input, const char *name, bool machine_order, arena *a, diag_list *diags)
{
    expected *x = expected_new(e, is_input, name, machine_order, a);
    if (expected_ready(x, diags))
        return x;
    expected_close(x);
    return NULL;
}

expected *expected_begin(const einsum *e, const bool *is_input, const char *name, bool machine_order, arena *a)
{
    expected *x = expected_new(e, is_input, name, machine_order, a);
    x->building = parallel_begin(build_beside, x);
    return x;
}

static void end_building(expected *x)
{
    parallel_end(x->building);
    x->building = NULL;
}

bool expected_ready(expected *x, diag_list *diags)
{
    end_building(x);
    if (!x->kernel)
        build(x, diags);
    return x->kernel && make_storage(x, diags);
}

bool expected_run(expected *x, unsigned char *const *inputs, unsigned threads, diag_list *diags)
{
    for (uint32_t t = 0; t < x->einsum.tensor_count; t++)
        if (x->is_input[t])
            x->tensors[t] = inputs[t];
    return reference_run(x->api, x->kernel, x->tensors, x->machine_order ? NULL : x->bounds, threads, diags);
}

expected_tensor expected_of(const expected *x, uint32_t tensor)
{
    expected_tensor of = {.values = x->tensors[tensor], .bounds = x->bounds[tensor]};
    uint32_t sums = x->sums[tensor];
    if (sums == UINT32_MAX)
        return of;
    of.sums = (const float *)(const void *)x->tensors[sums];
    of.sum_bounds = x->bounds[sums];
    of.roundings = x->roundings[tensor];
    return of;
}

double expected_build_milliseconds(const expected *x)
{
    return (double)x->api->jit_nanoseconds(x->kernel) / 1e6;
}

void expected_close(expected *x)
{
    if (!x)
        return;
    end_building(x);
    for (uint32_t t = 0; t < x->einsum.tensor_count; t++)
        if (!x->is_input[t]) {
            free(x->tensors[t]);
            free(x->bounds[t]);
        }
    if (x->kernel)
        x->api->release(x->kernel);
}
