#include "runtime/plan/run.h"

#include <stdio.h>
#include <string.h>

#include "runtime/machine/machine_state.h"
#include "runtime/machine/session.h"
#include "runtime/plan/relocate.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/port_data.h"
#include "runtime/tensor/tensor_file.h"
#include "runtime/timing/analysis.h"
#include "runtime/timing/cycles.h"
#include "support/integer.h"
#include "support/shown.h"

enum { ZERO = 0, MOST_WRONG_STEPS = 20 };

typedef struct loop_value {
    const char *name;
    int64_t value;
} loop_value;

/* Where a buffer in DM is: as the first port that was bound to it. */
typedef struct resident {
    const binary_kernel *kernel; /* NULL: none was yet */
    const port *port;
    int64_t address; /* bytes, in each slice */
} resident;

enum { DM_ALIGNMENT = 512 };

struct plan_run {
    const plan *plan;
    const plan_options *options;
    arena *arena;
    memory_budget budget;
    memory *hbm, *dm;           /* dm: of each slice; NULL: no buffer is in DM */
    struct resident *residents; /* by buffer */
    int64_t dm_used;            /* bytes of each slice */
    bool **dense;               /* by kernel and port */
    loop_value loops[PLAN_MOST_LOOPS];
    int loop_count;
    bool dry;          /* steps are looked at, none is run */
    uint64_t compared; /* elements that argmax looks at, of all steps */
    uint16_t *order;
    size_t order_count, order_capacity;
    int wrong_steps;
};

/* Bytes of HBM. */
typedef struct span {
    const plan_buffer *buffer;
    int64_t address, elements;
} span;

/* ---- places ---- */

static int64_t *loop_of(plan_run *r, const char *name, size_t bytes)
{
    for (int i = 0; i < r->loop_count; i++)
        if (strlen(r->loops[i].name) == bytes && memcmp(r->loops[i].name, name, bytes) == 0)
            return &r->loops[i].value;
    return NULL;
}

/* The name with each {index} replaced by its value. False: it is longer than a buffer's name can be. */
static bool expand(plan_run *r, const char *name, char whole[PLAN_MOST_NAME + 1])
{
    int room = PLAN_MOST_NAME + 1;
    for (const char *open; (open = strchr(name, '{')); name = strchr(open, '}') + 1) {
        const char *close = strchr(open, '}');
        const int64_t *value = close ? loop_of(r, open + 1, (size_t)(close - open - 1)) : NULL;
        if (!value)
            break;
        int put = open - name < room ? snprintf(whole, (size_t)room, "%.*s%lld", (int)(open - name), name, (long long)*value) : room;
        if (put >= room)
            return false;
        whole += put;
        room -= put;
    }
    return snprintf(whole, (size_t)room, "%s", name) < room;
}

static bool span_of(plan_run *r, const plan_place *place, const char *where, arena *a, diag_list *diags, span *out);

static bool index_of(plan_run *r, const plan_index *index, const char *where, arena *a, diag_list *diags, int64_t *out)
{
    *out = index->number;
    if (index->loop)
        *out += *loop_of(r, index->loop, strlen(index->loop));
    if (!index->value)
        return true;
    span s;
    int32_t value = 0;
    if (!span_of(r, index->value, where, a, diags, &s))
        return false;
    if (s.buffer->type.dtype != DTYPE_I32 || s.elements != 1 || s.buffer->resident) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: an index is read from one element of type i32", where);
        return false;
    }
    if (!r->dry && !memory_read(&r->hbm[0], s.address, (unsigned char *)&value, sizeof value)) {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "%s: not enough memory", where);
        return false;
    }
    *out = value;
    return true;
}

static bool span_of(plan_run *r, const plan_place *place, const char *where, arena *a, diag_list *diags, span *out)
{
    char name[PLAN_MOST_NAME + 1];
    if (!expand(r, place->buffer, name)) {
        diag_add(diags, E_PLAN_NAME, SRC_NOWHERE,
                 "%s: the name of a buffer has at most %d bytes, with the values of its indices; this one has more", where, PLAN_MOST_NAME);
        return false;
    }
    const plan_buffer *b = plan_buffer_named(r->plan, name);
    if (!b) {
        diag_add(diags, E_PLAN_NAME, SRC_NOWHERE, "%s: no buffer is called %s", where, shown_input(name, a));
        return false;
    }
    if (place->at_count > b->type.rank) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: `at` has %d indices, buffer `%s` %d dimensions", where, place->at_count, b->name,
                 b->type.rank);
        return false;
    }
    int64_t first = 0, left = tensor_elements(&b->type), bits = dtype_row_of(b->type.dtype)->bits;
    for (int i = 0; i < place->at_count; i++) {
        int64_t at;
        if (!index_of(r, &place->at[i], where, a, diags, &at))
            return false;
        if (at < 0 || at >= b->type.shape[i]) {
            diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: index %lld of `at` is %lld, buffer `%s` has %lld there", where, (long long)i,
                     (long long)at, b->name, (long long)b->type.shape[i]);
            return false;
        }
        left /= b->type.shape[i];
        first += at * left;
    }
    if (b->resident && place->at_count > 0) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: buffer `%s` is in DM, and is used as a whole", where, b->name);
        return false;
    }
    if (first * bits % 8 != 0) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: the place in buffer `%s` begins in the middle of a byte", where, b->name);
        return false;
    }
    *out = (span){b, b->address + first * bits / 8, left};
    return true;
}

/* ---- buffers in DM ---- */

/* One layout over axes of two kernels: the same words, and axes of the same sizes in the same places. */
static bool same_layout(layout a, const layout_axis *axes_a, layout b, const layout_axis *axes_b)
{
    if (a.count != b.count)
        return false;
    for (size_t i = 0; i < a.count; i++) {
        uint64_t x = a.words[i], y = b.words[i];
        bool axis = (x & 255) == LAYOUT_AXIS;
        if (!axis && x != y)
            return false;
        if (axis && ((y & 255) != LAYOUT_AXIS || axes_a[x >> 8].size != axes_b[y >> 8].size))
            return false;
        for (size_t k = 0; axis && k < i; k++) /* two names are not one */
            if ((a.words[k] & 255) == LAYOUT_AXIS && (a.words[k] == x) != (b.words[k] == y))
                return false;
    }
    return true;
}

static bool same_place(const binary_kernel *a, const port *p, const binary_kernel *b, const port *q)
{
    for (int c = 0; c < COMPONENT_COUNT; c++)
        if (!same_layout(p->mapping[c], a->axes, q->mapping[c], b->axes))
            return false;
    return true;
}

/* The first port that a buffer in DM is bound to gives it its layout and a place; the others have the same layout. */
static bool take_resident(plan_run *r, const plan_kernel *k, const port *p, const span *s, const char *where, arena *a, diag_list *diags)
{
    resident *x = &r->residents[s->buffer - r->plan->buffers];
    tensor_type type = port_logical_type(p, k->kernel->axes, k->kernel->axis_count, a);
    if (type.dtype != s->buffer->type.dtype || tensor_elements(&type) != s->elements) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: port `%s` is %s %s, %lld elements; buffer `%s` is %lld of %s", where, p->name,
                 dtype_row_of(type.dtype)->name, tensor_shape_text(&type, a), (long long)tensor_elements(&type), s->buffer->name,
                 (long long)s->elements, dtype_row_of(s->buffer->type.dtype)->name);
        return false;
    }
    if (x->kernel && !same_place(x->kernel, x->port, k->kernel, p)) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE,
                 "%s: port `%s` has another layout in DM than port `%s` of kernel `%s`, and both are buffer `%s`", where, p->name,
                 x->port->name, x->kernel->name, s->buffer->name);
        return false;
    }
    if (x->kernel)
        return true;
    int64_t bytes = port_unit_bytes(p, k->kernel->axes);
    if (bytes > r->plan->target->dm_bytes_per_slice - r->dm_used) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: buffer `%s` takes %lld bytes of each slice's DM, of which %lld are left", where,
                 s->buffer->name, (long long)bytes, (long long)(r->plan->target->dm_bytes_per_slice - r->dm_used));
        return false;
    }
    *x = (resident){k->kernel, p, r->dm_used};
    r->dm_used += (bytes + DM_ALIGNMENT - 1) / DM_ALIGNMENT * DM_ALIGNMENT;
    return true;
}

/* ---- a kernel at its buffers ---- */

static bool port_fits(plan_run *r, const plan_kernel *k, uint32_t number, const span *s, const char *where, arena *a, diag_list *diags)
{
    const port *p = &k->kernel->ports[number];
    tensor_type type = port_logical_type(p, k->kernel->axes, k->kernel->axis_count, a);
    if ((p->space == PORT_DM) != s->buffer->resident) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: port `%s` is in %s, buffer `%s` in %s", where, p->name,
                 p->space == PORT_DM ? "DM" : "HBM", s->buffer->name, s->buffer->resident ? "DM" : "HBM");
        return false;
    }
    if (s->buffer->resident)
        return take_resident(r, k, p, s, where, a, diags);
    if (!r->dense[k - r->plan->kernels][number]) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: port `%s` is not dense elements in the HBM of one chip", where, p->name);
        return false;
    }
    if (type.dtype == s->buffer->type.dtype && tensor_elements(&type) == s->elements)
        return true;
    diag_add(diags, E_PLAN_FIT, SRC_NOWHERE, "%s: port `%s` is %s %s, %lld elements; what is left of buffer `%s` is %lld of %s", where,
             p->name, dtype_row_of(type.dtype)->name, tensor_shape_text(&type, a), (long long)tensor_elements(&type), s->buffer->name,
             (long long)s->elements, dtype_row_of(s->buffer->type.dtype)->name);
    return false;
}

/* The address of each port. */
static bool bind_ports(plan_run *r, const plan_step *step, const char *where, int64_t *addresses, arena *a, diag_list *diags)
{
    const binary_kernel *k = step->kernel->kernel;
    for (size_t b = 0; b < step->binding_count; b++) {
        span s;
        bool found = false, located = false;
        for (uint32_t i = 0; i < k->port_count; i++) { /* what is read and written is two ports of one name */
            if (strcmp(k->ports[i].name, step->bindings[b].port) != 0)
                continue;
            located = located || span_of(r, &step->bindings[b].place, where, a, diags, &s);
            if (!located || (r->dry && !port_fits(r, step->kernel, i, &s, where, a, diags)))
                return false;
            addresses[i] = s.buffer->resident ? r->residents[s.buffer - r->plan->buffers].address : s.address;
            found = true;
        }
        if (!found) {
            diag_add(diags, E_PLAN_NAME, SRC_NOWHERE, "%s: kernel `%s` has no port %s", where, k->name,
                     shown_input(step->bindings[b].port, a));
            return false;
        }
    }
    for (uint32_t i = 0; i < k->port_count; i++)
        if (addresses[i] < 0) {
            diag_add(diags, E_PLAN_NAME, SRC_NOWHERE, "%s: port `%s` of kernel `%s` is bound to no buffer", where, k->ports[i].name,
                     k->name);
            return false;
        }
    return true;
}

/* Runs a kernel that was moved, and compares it. */
static bool run_moved(plan_run *r, const binary *b, plan_cost *cost, const char *where, arena *a, diag_list *diags, plan_result *result)
{
    session *s = session_open(b, NULL, a, diags);
    if (!s)
        return false;
    session_set_options(
        s, &(session_options){
               .threads = r->options->threads, .cpu = r->options->cpu, .hbm = r->hbm, .dm = r->dm, .compared = r->options->checked});
    bool agrees = true, ok = session_run(s, false, diags);
    if (ok && r->options->checked) {
        const char *report;
        ok = session_check(s, !r->options->free_order, &agrees, &report, diags);
        cost->compared += ok;
    }
    session_close(s);
    if (!ok || !agrees)
        diag_add(diags, E_PLAN_STEP, SRC_NOWHERE, "%s: kernel `%s` %s", where, cost->kernel->kernel->name,
                 ok ? "differs from its reference" : "cannot be run");
    if (ok && !agrees) {
        result->agrees = false;
        cost->differing++;
        r->wrong_steps++;
    }
    return ok && r->wrong_steps < MOST_WRONG_STEPS;
}

static bool step_run(plan_run *r, const plan_step *step, diag_list *diags, plan_result *result)
{
    arena *a = arena_new_inside(r->arena);
    const plan_kernel *k = step->kernel;
    const binary_kernel *kernel = k->kernel;
    plan_cost *cost = &result->costs[k - r->plan->kernels];
    const char *where = arena_printf(a, "step %zu", step->number);
    int64_t *addresses = ARENA_ARRAY(a, int64_t, (size_t)kernel->port_count + 1);
    for (uint32_t i = 0; i < kernel->port_count; i++)
        addresses[i] = -1;
    binary_kernel moved;
    bool ok = bind_ports(r, step, where, addresses, a, diags) &&
              kernel_relocate(r->plan->target, kernel, addresses, r->plan->scratch, r->dm_used, a, diags, &moved);
    if (ok && r->dry) {
        ARENA_PUSH(r->arena, r->order, r->order_count, r->order_capacity, (uint16_t)(k - r->plan->kernels));
        cost->first_run = cost->runs++ ? cost->first_run : result->run_count;
        result->run_count++;
    } else if (ok) {
        binary b = {.target = r->plan->target, .kernels = &moved, .kernel_count = 1};
        ok = run_moved(r, &b, cost, where, a, diags, result);
    }
    arena_free(a);
    return ok;
}

/* ---- steps ---- */

/* The position of the largest element, read in pieces: a buffer may be as large as HBM. */
static bool largest_of(plan_run *r, const span *from, int32_t *best)
{
    unsigned char piece[4096];
    dtype type = from->buffer->type.dtype;
    const int64_t bytes = tensor_bytes(type, 1), room = (int64_t)sizeof piece / bytes;
    double most = 0;
    *best = 0;
    for (int64_t done = 0, count; done < from->elements; done += count) {
        count = smaller(room, from->elements - done);
        if (!memory_read(&r->hbm[0], from->address + done * bytes, piece, count * bytes))
            return false;
        for (int64_t i = 0; i < count; i++) {
            double value = numeric_to_double(type, piece, i);
            if (done + i == 0 || value > most) {
                *best = (int32_t)(done + i);
                most = value;
            }
        }
    }
    return true;
}

static bool find_largest(plan_run *r, const plan_step *step, const char *where, arena *a, diag_list *diags)
{
    span from, to;
    if (!span_of(r, &step->source, where, a, diags, &from) || !span_of(r, &step->into, where, a, diags, &to))
        return false;
    if (from.buffer->resident || to.buffer->resident || to.buffer->type.dtype != DTYPE_I32 || to.elements != 1 ||
        from.elements > INT32_MAX || dtype_row_of(from.buffer->type.dtype)->bits < 8) {
        diag_add(diags, E_PLAN_FIT, SRC_NOWHERE,
                 "%s: argmax takes elements in HBM of 8 bits or more, below 2^31 of them, and gives one i32", where);
        return false;
    }
    int32_t best;
    if (r->dry)
        r->compared += (uint64_t)from.elements;
    else if (largest_of(r, &from, &best) && memory_write(&r->hbm[0], to.address, (const unsigned char *)&best, sizeof best))
        memory_mark_written(&r->hbm[0], to.address, sizeof best);
    else {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "%s: not enough memory", where);
        return false;
    }
    return true;
}

static bool run_argmax(plan_run *r, const plan_step *step, diag_list *diags)
{
    arena *a = arena_new_inside(r->arena);
    bool ok = find_largest(r, step, arena_printf(a, "step %zu", step->number), a, diags);
    arena_free(a);
    return ok;
}

static bool run_steps(plan_run *r, const plan_step *steps, size_t count, diag_list *diags, plan_result *result, int64_t *done);

/* Ranges are numbers: a body in which the first round runs nothing runs nothing in any, and the others are not walked. */
static bool run_repeat(plan_run *r, const plan_step *step, diag_list *diags, plan_result *result, int64_t *done)
{
    loop_value *loop = &r->loops[r->loop_count++];
    const int64_t before = *done;
    bool ok = true, useful = true;
    for (*loop = (loop_value){step->index, step->from}; ok && useful && loop->value < step->to; loop->value++) {
        ok = run_steps(r, step->body, step->body_count, diags, result, done);
        useful = *done > before;
    }
    r->loop_count--;
    return ok;
}

static bool run_steps(plan_run *r, const plan_step *steps, size_t count, diag_list *diags, plan_result *result, int64_t *done)
{
    for (size_t i = 0; i < count; i++) {
        const plan_step *step = &steps[i];
        bool ok = step->kind == PLAN_RUN      ? step_run(r, step, diags, result)
                  : step->kind == PLAN_ARGMAX ? run_argmax(r, step, diags)
                                              : run_repeat(r, step, diags, result, done);
        if (!ok)
            return false;
        *done += step->kind != PLAN_REPEAT;
        if (!r->dry && r->options->progress && step->kind == PLAN_RUN)
            r->options->progress(r->options->progress_context, *done, result->run_count);
    }
    return true;
}

/* Has every repetition a step? (That its range is empty is no mistake.) */
static bool counts(const plan_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i].kind == PLAN_REPEAT && (steps[i].body_count == 0 || !counts(steps[i].body, steps[i].body_count)))
            return false;
    return true;
}

/* How often steps run and what that takes, counted before any of them is looked at. Numbers that are too large stay so. */
static void weigh(const plan_run *r, const plan_step *steps, size_t count, int64_t times, int64_t *runs, plan_result *result)
{
    for (size_t i = 0; i < count; i++) {
        const plan_step *step = &steps[i];
        if (step->kind == PLAN_REPEAT) {
            weigh(r, step->body, step->body_count, product_bounded(times, step->to - step->from), runs, result);
            continue;
        }
        *runs = smaller(times, INT64_MAX - *runs) + *runs;
        if (step->kind == PLAN_RUN) {
            int64_t cycles = product_bounded(times, result->costs[step->kernel - r->plan->kernels].analysis->schedule->cycles);
            result->cycles = smaller(cycles, INT64_MAX - result->cycles) + result->cycles;
        }
    }
}

/* Elements that argmax compares count as cycles do, so that a plan is not long without being told so. */
static bool is_too_long(const plan_run *r, const char *verb, uint64_t count, const char *of_what, diag_list *diags)
{
    if (count <= r->options->most_cycles)
        return false;
    diag *d = diag_add(diags, E_RUN_CYCLES, SRC_NOWHERE, "the plan %s %llu %s, at most %llu are run", verb, (unsigned long long)count,
                       of_what, (unsigned long long)r->options->most_cycles);
    diag_help(diags, d, "--max-cycles=%llu runs it", (unsigned long long)count);
    return true;
}

/* ---- the whole ---- */

/* What binds the longest of a kernel's commands. */
static const char *longest_binds(const schedule *s)
{
    const schedule_item *longest = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (!longest || s->items[i].end - s->items[i].start > longest->end - longest->start)
            longest = &s->items[i];
    return longest ? duration_bound_name(longest->alone.bound) : "nothing";
}

static bool cost_of(plan_run *r, plan_cost *cost, diag_list *diags)
{
    schedule *s = ARENA_NEW(r->arena, schedule);
    uint64_t cycles;
    if (!cycles_within(r->plan->target, cost->kernel->kernel, r->options->most_cycles, r->arena, &cycles, diags) ||
        !schedule_make(r->plan->target, cost->kernel->kernel, r->options->preset, r->arena, diags, s))
        return false;
    analysis *costs = ARENA_NEW(r->arena, analysis);
    analysis_make(s, r->arena, costs);
    cost->analysis = costs;
    cost->binds = longest_binds(s);
    return true;
}

plan_run *plan_run_open(const plan *p, const plan_options *options, arena *a, diag_list *diags, plan_result *result)
{
    plan_run *r = ARENA_NEW(a, plan_run);
    *r = (plan_run){.plan = p,
                    .options = options,
                    .arena = a,
                    .dry = true,
                    .dense = ARENA_ARRAY(a, bool *, p->kernel_count),
                    .residents = ARENA_ARRAY(a, resident, p->buffer_count + 1)};
    *result = (plan_result){.costs = ARENA_ARRAY(a, plan_cost, p->kernel_count), .cost_count = p->kernel_count, .agrees = true};
    for (size_t i = 0; i < p->kernel_count; i++) {
        const binary_kernel *k = p->kernels[i].kernel;
        result->costs[i] = (plan_cost){.kernel = &p->kernels[i]};
        r->dense[i] = ARENA_ARRAY(a, bool, (size_t)k->port_count + 1);
        for (uint32_t j = 0; j < k->port_count; j++)
            r->dense[i][j] = port_is_dense(k, j, a);
        if (!cost_of(r, &result->costs[i], diags))
            return NULL;
    }
    if (!counts(p->steps, p->step_count)) {
        diag_add(diags, E_PLAN, SRC_NOWHERE, "plan: a repetition has no steps");
        return NULL;
    }
    int64_t done = 0, steps = 0;
    weigh(r, p->steps, p->step_count, 1, &steps, result);
    if (steps > PLAN_MOST_RUNS) {
        diag_add(diags, E_PLAN, SRC_NOWHERE, "plan: more than %d steps, with repetitions", PLAN_MOST_RUNS);
        return NULL;
    }
    if (is_too_long(r, "takes", (uint64_t)result->cycles, "cycles of the machine", diags) ||
        !run_steps(r, p->steps, p->step_count, diags, result, &done) ||
        is_too_long(r, "compares", r->compared, "elements for argmax", diags))
        return NULL;
    result->order = r->order;
    r->hbm = machine_hbm_new(p->target, a, ZERO, &r->budget);
    r->dm = r->dm_used > 0 ? machine_dm_new(p->target, a, ZERO, &r->budget) : NULL;
    return r;
}

void plan_run_close(plan_run *r)
{
    if (r) {
        machine_hbm_free(r->plan->target, r->hbm);
        machine_dm_free(r->plan->target, r->dm);
    }
}

static bool load_buffer(plan_run *r, const plan_buffer *b, diag_list *diags)
{
    tensor t;
    if (!tensor_file_read(b->file, &b->type, r->options->rounds, r->arena, diags, &t))
        return false;
    bool ok = memory_write(&r->hbm[0], b->address, t.bytes, b->bytes);
    if (ok)
        memory_mark_written(&r->hbm[0], b->address, b->bytes);
    else
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory for buffer `%s`", b->name);
    tensor_free(&t);
    return ok;
}

bool plan_run_all(plan_run *r, plan_result *result, diag_list *diags)
{
    for (int parts = 0; parts < 2; parts++) /* a part's file replaces what the whole's has there */
        for (size_t i = 0; i < r->plan->buffer_count; i++) {
            const plan_buffer *b = &r->plan->buffers[i];
            if (b->file && (b->of != NULL) == parts && !load_buffer(r, b, diags))
                return false;
        }
    if (r->options->checked && result->run_count == 0) {
        diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "the plan runs no kernel");
        result->agrees = false;
        return true;
    }
    int64_t done = 0;
    r->dry = false;
    return run_steps(r, r->plan->steps, r->plan->step_count, diags, result, &done) || r->wrong_steps == MOST_WRONG_STEPS;
}

bool plan_run_output(plan_run *r, size_t i, output *to, diag_list *diags)
{
    const plan_buffer *b = plan_buffer_named(r->plan, r->plan->outputs[i].buffer);
    tensor t;
    bool ok = tensor_new(&b->type, r->arena, &t) && memory_read(&r->hbm[0], b->address, t.bytes, b->bytes);
    if (!ok)
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory for buffer `%s`", b->name);
    ok = ok && tensor_file_put(r->plan->outputs[i].file, &t, to, r->arena, diags);
    tensor_free(&t);
    return ok;
}
