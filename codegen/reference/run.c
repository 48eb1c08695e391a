#include "codegen/reference/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codegen/reference/division.h"
#include "codegen/reference/fault.h"
#include "codegen/reference/kernel.h"
#include "codegen/reference/plan.h"

/* ---- storage ---- */

static int64_t scratch_of_part(int64_t bytes)
{
    return (bytes + 127) / 64 * 64;
}

enum { FEW_TENSORS = 8, NEAR_BYTES = 1 << 14 };

/* Storage of one run: the caller's where there is some, and our own for the rest. */
typedef struct run_storage {
    unsigned char **tensors, **own_tensors;
    double **bounds, **own_bounds;
    run_scratch *scratch;
    void *few[4 * FEW_TENSORS]; /* the pointers above point here */
} run_storage;

static run_scratch *take_scratch(reference_kernel *k, int64_t bytes)
{
    run_scratch *s = atomic_exchange(&k->spare, NULL);
    if (s && s->bytes >= bytes)
        return s;
    free(s);
    s = aligned_alloc(64, sizeof *s + (size_t)(bytes + 63) / 64 * 64);
    if (s)
        s->bytes = bytes;
    return s;
}

static void run_storage_free(reference_kernel *k, run_storage *r)
{
    for (uint32_t i = 0; r->tensors && i < k->tensor_count; i++) {
        free(r->own_tensors[i]);
        free(r->own_bounds[i]);
    }
    if ((void **)r->tensors != r->few)
        free(r->tensors);
    if (r->scratch)
        free(atomic_exchange(&k->spare, r->scratch));
}

static bool run_tensor(const reference_kernel *k, run_storage *r, uint32_t i, unsigned char *given)
{
    if (!given && k->tensors[i].assigned)
        given = r->own_tensors[i] = malloc((size_t)k->tensors[i].bytes);
    return (r->tensors[i] = given) != NULL;
}

static bool run_bound(const reference_kernel *k, run_storage *r, uint32_t i, double *given)
{
    const kernel_tensor *t = &k->tensors[i];
    size_t bytes = (size_t)t->elements * sizeof(double);
    if (t->exact && given)
        memset(given, 0, bytes);
    if (!t->exact && !given)
        given = r->own_bounds[i] = malloc(bytes);
    r->bounds[i] = given;
    return given || t->exact;
}

static char *run_storage_make(reference_kernel *k, unsigned char *const *tensors, double *const *bounds, int64_t scratch_bytes,
                              run_storage *r)
{
    size_t count = k->tensor_count;
    void **pointers = count <= FEW_TENSORS ? r->few : calloc(4 * count, sizeof *pointers);
    r->scratch = take_scratch(k, scratch_bytes);
    r->tensors = (unsigned char **)pointers;
    if (!pointers || !r->scratch)
        return fault_text("out of memory");
    r->own_tensors = r->tensors + count;
    r->bounds = (double **)(pointers + 2 * count);
    r->own_bounds = r->bounds + count;
    for (uint32_t i = 0; i < k->tensor_count; i++) {
        if (!tensors[i] && !k->tensors[i].assigned && k->tensors[i].used)
            return fault_text("tensor %u is read and was not given", i);
        if (!tensors[i] && !k->tensors[i].assigned)
            continue;
        if (!run_tensor(k, r, i, tensors[i]) || (bounds && !run_bound(k, r, i, bounds[i])))
            return fault_text("out of memory");
    }
    return NULL;
}

/* ---- parts in threads ---- */

enum { MOST_MEMBERS = 64 };

/* The kernel's one form or the other. */
typedef struct run_form {
    step_function *function;
    const run_storage *storage;
    int64_t scratch_each;
    bool bounded;
} run_form;

typedef struct run_step {
    const run_form *form;
    int64_t number;
    division division;
    bool begun[MOST_MEMBERS]; /* each has computed a part */
} run_step;

static const kernel_form *form_of(const kernel_step *s, const run_form *r)
{
    return r->bounded ? &s->bounded : &s->plain;
}

static void run_part(void *argument, unsigned number, unsigned member)
{
    run_step *s = argument;
    const run_form *r = s->form;
    plan_part part = division_part(&s->division, number, !s->begun[member]);
    s->begun[member] = true;
    r->function(r->storage->tensors, r->storage->bounds, r->storage->scratch->data + member * r->scratch_each, &part, s->number);
}

static void run_alone(const kernel_step *s, const run_form *r, int64_t number)
{
    r->function(r->storage->tensors, r->storage->bounds, r->storage->scratch->data, &form_of(s, r)->whole, number);
}

/* `awake`: helpers are, probably. */
static unsigned members_of(const kernel_step *s, unsigned threads, bool awake)
{
    unsigned most = threads < MOST_MEMBERS ? threads : MOST_MEMBERS;
    double worth = s->clocks / (awake ? PLAN_WORTH_HELP : PLAN_WORTH_A_THREAD);
    return !s->shared || worth < 2 ? 1 : worth < most ? (unsigned)worth : most;
}

static unsigned most_members(const reference_kernel *k, unsigned threads, bool awake)
{
    unsigned most = 1;
    for (uint32_t i = 0; i < k->step_count; i++) {
        unsigned members = members_of(&k->steps[i], threads, awake);
        most = members > most ? members : most;
    }
    return most;
}

static void run_in_threads(team *helpers, const kernel_step *s, const run_form *r, int64_t number, unsigned members)
{
    run_step step = {.form = r, .number = number, .division = division_make(form_of(s, r), s->clocks, members)};
    team_run(helpers, members, step.division.count, run_part, &step);
}

/* Statements with indices run alone: what they count is in the first storage. */
static void begin_counting(const reference_kernel *k, unsigned char *scratch)
{
    if (k->outside >= 0)
        memset(scratch + k->outside, 0, sizeof(uint64_t));
}

static void end_counting(reference_kernel *k, const unsigned char *scratch)
{
    uint64_t outside = 0;
    if (k->outside >= 0)
        memcpy(&outside, scratch + k->outside, sizeof outside);
    if (outside)
        atomic_fetch_add(&k->all_outside, outside);
}

static uint64_t now_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A short run is not worth waking anybody, unless it follows the last one so soon that helpers still watch for work, or will watch for the
 * next. */
static void run_helped(reference_kernel *k, const run_form *r, unsigned threads)
{
    enum { WATCHED_NANOSECONDS = 50000 };
    bool awake = now_nanoseconds() - k->helped_until < WATCHED_NANOSECONDS;
    unsigned most = most_members(k, threads, awake);
    if (team_count(k->helpers) + 1 < most) {
        team_free(k->helpers);
        k->helpers = team_new(most - 1);
    }
    for (uint32_t i = 0; i < k->step_count; i++) {
        unsigned members = members_of(&k->steps[i], threads, awake);
        if (members > 1)
            run_in_threads(k->helpers, &k->steps[i], r, i, members);
        else
            run_alone(&k->steps[i], r, i);
    }
    k->helped_until = now_nanoseconds();
}

/* Of several runs at once, one has help; another one computes alone, which gives the same. */
static void run_steps(reference_kernel *k, const run_form *r, unsigned threads)
{
    if (most_members(k, threads, true) > 1 && pthread_mutex_trylock(&k->helping) == 0) {
        run_helped(k, r, threads);
        pthread_mutex_unlock(&k->helping);
        return;
    }
    for (uint32_t i = 0; i < k->step_count; i++)
        run_alone(&k->steps[i], r, i);
}

/* Needs a run no storage but what lies near? Then it takes less time than to ask for some. */
static bool is_near(const reference_kernel *k, unsigned char *const *tensors)
{
    bool given = k->alone && k->plain_scratch_bytes <= NEAR_BYTES;
    for (uint32_t i = 0; given && i < k->tensor_count; i++)
        given = tensors[i] || (!k->tensors[i].assigned && !k->tensors[i].used);
    return given;
}

static void run_near_by(reference_kernel *k, unsigned char *const *tensors)
{
    _Alignas(64) unsigned char scratch[NEAR_BYTES];
    begin_counting(k, scratch);
    for (uint32_t i = 0; i < k->step_count; i++)
        k->step(tensors, NULL, scratch, &k->steps[i].plain.whole, i);
    end_counting(k, scratch);
}

/* Apart from the run near by: clearing what it keeps takes longer than a small run. */
static __attribute__((noinline)) char *run_with_storage(reference_kernel *k, unsigned char *const *tensors, double *const *bounds,
                                                        unsigned threads)
{
    run_storage r = {0};
    int64_t scratch_each = scratch_of_part(bounds ? k->scratch_bytes : k->plain_scratch_bytes);
    char *fault = run_storage_make(k, tensors, bounds,
                                   scratch_each * (threads < 1              ? 1
                                                   : threads < MOST_MEMBERS ? threads
                                                                            : MOST_MEMBERS),
                                   &r);
    run_form form = {bounds ? k->bounded : k->step, &r, scratch_each, bounds != NULL};
    if (!fault) {
        begin_counting(k, r.scratch->data);
        run_steps(k, &form, threads);
        end_counting(k, r.scratch->data);
    }
    run_storage_free(k, &r);
    return fault;
}

char *kernel_run(reference_kernel *k, unsigned char *const *tensors, double *const *bounds, unsigned threads)
{
    if (bounds ? !k->bounded : !k->step)
        return fault_text("the kernel was built without this form");
    if (bounds || !is_near(k, tensors))
        return run_with_storage(k, tensors, bounds, threads);
    run_near_by(k, tensors);
    return NULL;
}
