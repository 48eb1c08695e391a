/* include/visa_run.h: a session with the machine (runtime/machine/session.h) whose errors are texts.
 *
 * The one idea: a call is unwound when memory ends, leaves its diagnostics as one text, and forgets what the last call left: however often
 * a kernel runs, its memory does not grow. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa_run.h"
#include "runtime/field/verdict.h"
#include "runtime/machine/session.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/port_data.h"
#include "runtime/timing/report.h"
#include "support/budget.h"
#include "support/strbuf.h"

struct visa_kernel {
    arena *arena;
    arena_mark opened; /* what is after it belongs to the last call */
    diag_list diags;
    binary binary;
    const binary_kernel *kernel;
    session *session; /* NULL: the bytes cannot be run, and `error` stays */
    const char *error;
    const char *verdict; /* of the last check */
};

/* The diagnostics of a call as its text. */
static bool finish(visa_kernel *k, bool good)
{
    strbuf s;
    if (k->diags.count) {
        strbuf_init(&s, k->arena);
        diag_list_put(&k->diags, NULL, &s);
        k->error = s.text;
    }
    return good;
}

/* Is there a session to ask? Then the last call's diagnostics are forgotten. */
static bool begin(visa_kernel *k)
{
    if (!k->session)
        return false;
    arena_rewind(k->arena, k->opened);
    diag_list_init(&k->diags, k->arena);
    k->error = "";
    return true;
}

static bool unwound(visa_kernel *k)
{
    k->error = "out of memory";
    return false;
}

visa_kernel *visa_kernel_open(const void *bytes, size_t size, const char *name)
{
    arena *a = arena_new();
    visa_kernel *volatile k = NULL;
    if (!a || setjmp(*arena_guard(a))) {
        if (k)
            session_close(k->session);
        arena_free(a);
        return NULL;
    }
    visa_kernel *new = ARENA_NEW(a, visa_kernel);
    *new = (visa_kernel){.arena = a, .error = ""};
    k = new;
    diag_list_init(&new->diags, a);
    if (binary_read(bytes, size, a, &new->diags, &new->binary)) {
        new->kernel = binary_choose_kernel(&new->binary, name, &new->diags);
        new->session = new->kernel ? session_open(&new->binary, name, a, &new->diags) : NULL;
    }
    finish(new, new->session);
    new->opened = arena_mark_here(a);
    return new;
}

void visa_kernel_close(visa_kernel *k)
{
    if (!k)
        return;
    session_close(k->session);
    arena_free(k->arena);
}

const char *visa_kernel_error(const visa_kernel *k)
{
    return k->error;
}

const char *visa_kernel_name(const visa_kernel *k)
{
    return k->kernel ? k->kernel->name : "";
}

bool visa_port_at(visa_kernel *k, size_t i, visa_port *out)
{
    if (!begin(k) || i >= k->kernel->port_count)
        return false;
    if (setjmp(*arena_guard(k->arena)))
        return unwound(k);
    const port *p = &k->kernel->ports[i];
    tensor_type t = port_logical_type(p, k->kernel->axes, k->kernel->axis_count, k->arena);
    const dtype_row *element = dtype_row_of(t.dtype);
    *out = (visa_port){.name = p->name,
                       .type = element->name,
                       .element_bits = element->bits,
                       .is_output = p->direction == PORT_OUT,
                       .rank = (size_t)t.rank};
    for (int axis = 0; axis < t.rank && axis < VISA_PORT_RANK_MAX; axis++) {
        out->shape[axis] = t.shape[axis];
        out->axis_names[axis] = t.names[axis];
    }
    return true;
}

void *visa_port_data(visa_kernel *k, size_t i, size_t *bytes)
{
    if (!begin(k) || i >= k->kernel->port_count)
        return NULL;
    if (setjmp(*arena_guard(k->arena))) {
        unwound(k);
        return NULL;
    }
    tensor *t = session_logical(k->session, (uint32_t)i, &k->diags);
    finish(k, t);
    if (t && bytes)
        *bytes = t->size;
    return t ? t->bytes : NULL;
}

bool visa_port_round(visa_kernel *k, size_t i, const float *values, size_t count)
{
    if (!begin(k))
        return false;
    if (setjmp(*arena_guard(k->arena)))
        return unwound(k);
    bool is_input = i < k->kernel->port_count && k->kernel->ports[i].direction == PORT_IN;
    tensor *t = is_input ? session_logical(k->session, (uint32_t)i, &k->diags) : NULL;
    bool fits = t && (uint64_t)tensor_elements(&t->type) == count;
    if (!is_input)
        diag_add(&k->diags, E_PORT, SRC_NOWHERE, "kernel `%s` has no input number %zu", visa_kernel_name(k), i);
    else if (t && !fits)
        diag_add(&k->diags, E_PORT, SRC_NOWHERE, "port `%s` has %lld elements, %zu are given", k->kernel->ports[i].name,
                 (long long)tensor_elements(&t->type), count);
    for (size_t e = 0; fits && e < count; e++)
        numeric_from_double(t->type.dtype, t->bytes, (int64_t)e, values[e]);
    return finish(k, fits);
}

static bool run(visa_kernel *k, const visa_run_options *options, bool twice)
{
    visa_run_options o = options ? *options : (visa_run_options){0};
    uint64_t cycles;
    session_set_options(k->session, &(session_options){.threads = o.threads});
    return session_cycles(k->session, o.max_cycles ? o.max_cycles : RUN_CYCLES_MAX, &cycles, &k->diags) &&
           session_fill(k->session, o.seed ? o.seed : 1, &k->diags) && session_run(k->session, twice, &k->diags);
}

bool visa_kernel_run(visa_kernel *k, const visa_run_options *options)
{
    if (!begin(k))
        return false;
    return setjmp(*arena_guard(k->arena)) ? unwound(k) : finish(k, run(k, options, false));
}

bool visa_kernel_check(visa_kernel *k, const visa_run_options *options, int what, bool *agrees, const char **report)
{
    if (report)
        *report = "";
    *agrees = false;
    k->verdict = "not compared";
    if (!begin(k))
        return false;
    if (setjmp(*arena_guard(k->arena)))
        return unwound(k);
    const char *numbers = "";
    field_verdict proof = {.agrees = true, .text = ""};
    bool good = true;
    *agrees = what & (VISA_CHECK_NUMBERS | VISA_CHECK_ALGEBRA);
    if (what & VISA_CHECK_NUMBERS)
        good = run(k, options, true) && session_check(k->session, true, agrees, &numbers, &k->diags);
    if (good && (what & VISA_CHECK_ALGEBRA)) {
        field_options o = {.seed = options && options->seed ? options->seed : 1, .threads = options ? options->threads : 0};
        good = field_check(k->binary.target, k->kernel, &o, k->arena, &k->diags, &proof);
    }
    verdict_item found = {.differs = !good && verdict_is_difference(&k->diags),
                          .numbers = good && (what & VISA_CHECK_NUMBERS) ? session_findings(k->session) : NULL,
                          .algebra = good && (what & VISA_CHECK_ALGEBRA) ? &proof : NULL};
    k->verdict = verdict_word(&found);
    *agrees = good && *agrees && proof.agrees;
    if (report)
        *report = arena_printf(k->arena, "%s%s", numbers, proof.text ? proof.text : "");
    return finish(k, *agrees);
}

const char *visa_kernel_verdict(const visa_kernel *k)
{
    return k->verdict ? k->verdict : "not compared";
}

/* A format and a preset by name; NULL is the first. */
static bool read_options(visa_kernel *k, const char *format, const char *timing, report_options *out)
{
    *out = (report_options){.format = REPORT_TEXT};
    bool good = (!format || report_format_by_name(format, &out->format)) && (!timing || timing_preset_by_name(timing, &out->preset));
    if (!good)
        k->error = "there is no such form of a report, or no such timing";
    return good;
}

const char *visa_kernel_report(visa_kernel *k, const char *format, const char *timing)
{
    report_options o;
    if (!begin(k) || !read_options(k, format, timing, &o))
        return NULL;
    if (setjmp(*arena_guard(k->arena))) {
        unwound(k);
        return NULL;
    }
    const char *text = report_make(k->binary.target, k->kernel, &o, k->arena, &k->diags);
    finish(k, text);
    return text;
}

int64_t visa_kernel_cycles(visa_kernel *k, const char *timing)
{
    report_options o;
    report_figures figures;
    if (!begin(k) || !read_options(k, NULL, timing, &o))
        return -1;
    if (setjmp(*arena_guard(k->arena))) {
        unwound(k);
        return -1;
    }
    bool good = report_figures_of(k->binary.target, k->kernel, o.preset, k->arena, &k->diags, &figures);
    return finish(k, good) ? figures.cycles : -1;
}
