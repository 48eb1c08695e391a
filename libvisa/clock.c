/* What --time-report and --print-after show: microseconds of each step, and the kernels after a pass. */
#include <inttypes.h>
#include <string.h>

#include "ir/print.h"
#include "libvisa/compilation.h"
#include "passes/pass.h"

/* A step of the compilation, of all kernels together. */
struct timed_step {
    const char *what;
    double us;
};

void compilation_clock(visa_compilation *c)
{
    clock_gettime(CLOCK_MONOTONIC, &c->clock);
}

static double *time_of(visa_compilation *c, const char *what)
{
    for (size_t i = 0; i < c->time_count; i++)
        if (c->times[i].what == what)
            return &c->times[i].us;
    struct timed_step s = {.what = what};
    ARENA_PUSH(c->arena, c->times, c->time_count, c->time_capacity, s);
    return &c->times[c->time_count - 1].us;
}

void compilation_took(visa_compilation *c, const char *what)
{
    if (!c->options->time_report)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *time_of(c, what) += (double)(now.tv_sec - c->clock.tv_sec) * 1e6 + (double)(now.tv_nsec - c->clock.tv_nsec) / 1e3;
    c->clock = now;
}

bool compilation_prints(const visa_compilation *c, const char *pass_name)
{
    const char *wanted = c->options->print_after;
    return wanted && (strcmp(wanted, "all") == 0 || strcmp(wanted, pass_name) == 0);
}

void compilation_after_pass(void *user, const pass *done, const kernel *k)
{
    visa_compilation *c = user;
    compilation_took(c, done->name);
    if (compilation_prints(c, done->name))
        kernel_print(k, &c->pass_dumps[done - pipeline]);
}

static size_t pass_count(void)
{
    size_t count = 0;
    while (pipeline[count].name)
        count++;
    return count;
}

void compilation_begin_dumps(visa_compilation *c)
{
    c->pass_dumps = ARENA_ARRAY(c->arena, strbuf, pass_count());
    for (size_t i = 0; pipeline[i].name && c->options->print_after; i++)
        if (compilation_prints(c, pipeline[i].name))
            strbuf_init(&c->pass_dumps[i], c->arena);
}

void compilation_end_dumps(visa_compilation *c)
{
    for (size_t i = 0; pipeline[i].name && c->options->print_after; i++)
        if (compilation_prints(c, pipeline[i].name))
            strbuf_printf(&c->dumps, "// after %s: %s\n%s", pipeline[i].name, pipeline[i].summary, c->pass_dumps[i].text);
}

const char *visa_pass_dumps(const visa_compilation *c)
{
    return c->exhausted ? "" : c->dumps.text;
}

const char *visa_time_report(visa_compilation *c)
{
    if (c->exhausted || (budget_lift(c->arena), setjmp(*arena_guard(c->arena))))
        return "";
    strbuf text;
    strbuf_init(&text, c->arena);
    for (size_t i = 0; i < c->time_count; i++)
        strbuf_printf(&text, "%10.1f us  %s\n", c->times[i].us, c->times[i].what);
    if (c->time_count > 0) {
        const budget *spent = arena_budget(c->arena);
        strbuf_printf(&text, "%10" PRIu64 " steps\n%10" PRIu64 " bytes\n", spent->steps, spent->bytes);
    }
    return text.text;
}
