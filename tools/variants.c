#include "tools/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/step/diff.h"
#include "runtime/step/sweep.h"
#include "runtime/timing/kernel_diff.h"
#include "support/budget.h"
#include "support/file.h"
#include "support/shown.h"
#include "support/strbuf.h"
#include "tools/options.h"

static uint64_t steps_of(const variants *v)
{
    return v->options.max_steps ? v->options.max_steps : COMPILE_STEPS_MAX;
}

/* A constant and the values that it takes in turn. */
typedef struct swept {
    visa_parameter parameter; /* of the value at hand */
    const int64_t *values;
    size_t count, at;
} swept;

/* What a legal variant takes, for the front of cycles against memory. */
typedef struct sweep_point {
    const char *values, *kernel;
    int64_t cycles, dm_bytes;
} sweep_point;

typedef struct sweep {
    const variants *variants;
    const char *text;
    size_t bytes;
    swept *axes;
    size_t axis_count;
    uint64_t left;                /* steps, for all of the sweep */
    bool any_kernel, any_program; /* was legal */
    strbuf out, programs;         /* rows of kernels, and of stream programs, which have other columns */
    sweep_point *points;
    size_t point_count, point_capacity;
} sweep;

static const char *values_at_hand(const sweep *s)
{
    const char *text = "";
    for (size_t i = 0; i < s->axis_count; i++)
        text = arena_printf(s->out.arena, "%s%s%10lld", text, i ? " " : "", (long long)s->axes[i].values[s->axes[i].at]);
    return text;
}

static bool give_up(const sweep *s, diag_list *diags)
{
    const char *upto = "";
    for (size_t i = 0; i < s->axis_count; i++)
        upto = arena_printf(s->out.arena, "%s%s%s = %lld", upto, i ? ", " : "", s->axes[i].parameter.name,
                            (long long)s->axes[i].values[s->axes[i].at]);
    diag *d = diag_add(diags, E_BUDGET, SRC_NOWHERE, "--sweep takes more than %llu steps of work with the values up to %s",
                       (unsigned long long)steps_of(s->variants), upto);
    diag_help(diags, d, "give fewer values at once, or no limit: --max-steps=0");
    return false;
}

/* One variant: a row of the table. False: not even a row. */
static bool sweep_row(sweep *s, diag_list *diags)
{
    const variants *v = s->variants;
    visa_options options = v->options;
    visa_parameter *all = ARENA_ARRAY(s->out.arena, visa_parameter, options.parameter_count + s->axis_count);
    for (size_t i = 0; i < options.parameter_count; i++)
        all[i] = options.parameters[i];
    for (size_t i = 0; i < s->axis_count; i++) {
        s->axes[i].parameter.values = &s->axes[i].values[s->axes[i].at];
        all[options.parameter_count++] = s->axes[i].parameter;
    }
    options.parameters = all;
    options.max_steps = s->left;
    visa_compilation *c = visa_compile(tool_input_name(v->before), s->text, s->bytes, &options);
    if (!c) {
        fprintf(stderr, "%s: error: out of memory\n", v->tool);
        return false;
    }
    if (s->left != UINT64_MAX)
        s->left -= visa_steps(c) < s->left ? visa_steps(c) : s->left - 1;
    if (visa_gave_up(c)) {
        visa_free(c);
        return give_up(s, diags);
    }
    const unsigned char *data;
    size_t size;
    binary b;
    report_figures f;
    const char *values = values_at_hand(s);
    bool legal = visa_emit(c, VISA_EMIT_BINARY, &data, &size) && binary_read(data, size, s->out.arena, diags, &b);
    bool ok = legal || !visa_has_system_fault(c);
    if (!ok)
        fputs(visa_diagnostics(c, v->format), stderr);
    if (!legal && ok) {
        const char *why = visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT);
        strbuf_printf(&s->out, "%s  refused  %.*s\n", values, (int)strcspn(why, "\n"), why);
    }
    s->any_kernel |= legal && b.kernel_count > 0;
    s->any_program |= legal && b.program_count > 0;
    if (legal && ok && b.program_count > 0 && visa_emit(c, VISA_EMIT_STEP_JSON, &data, &size))
        strbuf_puts(&s->programs, step_sweep_rows((const char *)data, values, s->out.arena));
    for (size_t i = 0; legal && ok && i < b.kernel_count; i++) {
        ok = report_figures_of(b.target, &b.kernels[i], v->preset, s->out.arena, diags, &f);
        if (!ok)
            break;
        strbuf_printf(&s->out, "%s  legal    %-16s %10lld %12lld %12lld  %s: %s\n", values, b.kernels[i].name, (long long)f.cycles,
                      (long long)f.dm_bytes, (long long)f.lower_bound, f.command, f.binds);
        sweep_point p = {values, arena_strdup(s->out.arena, b.kernels[i].name), f.cycles, f.dm_bytes};
        ARENA_PUSH(s->out.arena, s->points, s->point_count, s->point_capacity, p);
    }
    visa_free(c);
    return ok;
}

/* Does another variant of the kernel take as little of both, and of one less, or is it the same and stands before? */
static bool is_beaten(const sweep *s, size_t number)
{
    const sweep_point *p = &s->points[number];
    for (size_t i = 0; i < s->point_count; i++) {
        const sweep_point *q = &s->points[i];
        bool less = q->cycles < p->cycles || q->dm_bytes < p->dm_bytes || i < number;
        if (i != number && strcmp(q->kernel, p->kernel) == 0 && q->cycles <= p->cycles && q->dm_bytes <= p->dm_bytes && less)
            return true;
    }
    return false;
}

static int by_kernel_and_memory(const void *a, const void *b)
{
    const sweep_point *x = a, *y = b;
    int order = strcmp(x->kernel, y->kernel);
    return order ? order : (x->dm_bytes > y->dm_bytes) - (x->dm_bytes < y->dm_bytes);
}

/* The variants that no other beats in cycles and memory both. */
static void sweep_front(sweep *s, const char *names)
{
    sweep_point *front = ARENA_ARRAY(s->out.arena, sweep_point, s->point_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < s->point_count; i++)
        if (!is_beaten(s, i))
            front[count++] = s->points[i];
    if (count > 1)
        qsort(front, count, sizeof *front, by_kernel_and_memory);
    strbuf_printf(&s->out, "front: fewer cycles take more DM\n%s           kernel               cycles  DM bytes up\n", names);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&s->out, "%s           %-16s %10lld %12lld\n", front[i].values, front[i].kernel, (long long)front[i].cycles,
                      (long long)front[i].dm_bytes);
}

/* "A=1,2,B=3": a word with `=` begins another constant. False: said why. */
static bool read_axes(sweep *s, arena *memory)
{
    const variants *v = s->variants;
    size_t words = 1;
    for (const char *at = v->sweep; *at; at++)
        words += *at == ',';
    s->axes = ARENA_ARRAY(memory, swept, words);
    int64_t *values = ARENA_ARRAY(memory, int64_t, words);
    for (const char *at = v->sweep; *at;) {
        size_t length = strcspn(at, ",");
        const char *word = arena_strndup(memory, at, length), *equals = strchr(word, '='), *number = equals ? equals + 1 : word;
        uint64_t value;
        if (equals && equals > word) {
            s->axes[s->axis_count++] =
                (swept){.parameter = {.count = 1, .name = arena_strndup(memory, word, (size_t)(equals - word))}, .values = values};
        } else if (s->axis_count == 0 || equals) {
            break;
        }
        if (!*number && s->axes[s->axis_count - 1].count == 0)
            break;
        if (!tool_number(number, &value) || value > INT64_MAX) {
            tool_usage_error(v->tool, "--sweep: `%s` is not a number", number);
            return false;
        }
        s->axes[s->axis_count - 1].count++;
        *values++ = (int64_t)value;
        at += length + (at[length] == ',');
        if (!*at)
            return true;
    }
    tool_usage_error(v->tool, "--sweep is NAME=VALUE,VALUE or NAME=VALUE,VALUE,NAME=VALUE,VALUE, not `%s`", v->sweep);
    return false;
}

/* The next combination, the last constant fastest. */
static bool next_combination(sweep *s)
{
    for (size_t i = s->axis_count; i-- > 0;) {
        if (++s->axes[i].at < s->axes[i].count)
            return true;
        s->axes[i].at = 0;
    }
    return false;
}

static bool names_differ(const sweep *s)
{
    const variants *v = s->variants;
    for (size_t i = 0; i < s->axis_count; i++) {
        const char *name = s->axes[i].parameter.name;
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->axes[k].parameter.name, name) == 0) {
                tool_usage_error(v->tool, "--sweep has values of `%s` twice: give them together", name);
                return false;
            }
        for (size_t k = 0; k < v->options.parameter_count; k++)
            if (strcmp(v->options.parameters[k].name, name) == 0) {
                tool_usage_error(v->tool, "`%s` has a value from -D and those of --sweep: give one of them", name);
                return false;
            }
    }
    return true;
}

int variants_sweep(const variants *v, arena *memory, diag_list *diags)
{
    sweep s = {.variants = v, .left = steps_of(v)};
    if (!read_axes(&s, memory) || !names_differ(&s))
        return EXIT_USAGE;
    unsigned char *text = file_read_all(v->before, &s.bytes, diags);
    if (!text)
        return EXIT_INPUT;
    s.text = arena_strndup(memory, (const char *)text, s.bytes);
    free(text);
    strbuf_init(&s.out, memory);
    strbuf_init(&s.programs, memory);
    const char *names = "";
    for (size_t i = 0; i < s.axis_count; i++)
        names = arena_printf(memory, "%s%s%10s", names, i ? " " : "", s.axes[i].parameter.name);
    do {
        if (!sweep_row(&s, diags))
            return EXIT_INPUT;
    } while (next_combination(&s));
    if (s.axis_count > 1 && s.point_count > 0)
        sweep_front(&s, names);
    const char *out = s.out.text;
    if (s.any_kernel || !s.any_program)
        out = arena_printf(memory, "%s           kernel               cycles  DM bytes up  lower bound  longest command: what binds\n%s",
                           names, out);
    if (s.any_program)
        out = arena_printf(memory, "%s%s%s", out, step_sweep_head(names, memory), s.programs.text);
    bool written = output_put(v->to, out, strlen(out)) && output_set_commit(v->files);
    return written && (s.any_kernel || s.any_program) ? EXIT_DONE : EXIT_INPUT;
}

/* A binary from either kind of file; of a source also the costs of its stream programs. */
static bool load_kernels(const variants *v, const char *file, arena *memory, diag_list *diags, binary *out, const char **costs)
{
    *costs = NULL;
    size_t size;
    unsigned char *bytes = file_read_all(file, &size, diags);
    if (!bytes)
        return false;
    bool is_binary = size >= 4 && memcmp(bytes,
                                         "\x7f"
                                         "ELF",
                                         4) == 0,
         ok;
    if (is_binary) {
        size_t before = diags->count;
        ok = binary_read(bytes, size, memory, diags, out);
        for (size_t i = before; i < diags->count; i++) /* of which of the two files */
            diags->items[i]->message = arena_printf(memory, "%s: %s", shown_text(file, memory), diags->items[i]->message);
    } else {
        const unsigned char *data;
        size_t data_size;
        visa_compilation *c = visa_compile(tool_input_name(file), (const char *)bytes, size, &v->options);
        ok = c && visa_emit(c, VISA_EMIT_BINARY, &data, &data_size) && binary_read(data, data_size, memory, diags, out);
        if (ok && out->program_count > 0 && visa_emit(c, VISA_EMIT_STEP_JSON, &data, &data_size))
            *costs = arena_strndup(memory, (const char *)data, data_size);
        if (!c)
            fprintf(stderr, "%s: error: out of memory\n", v->tool);
        else if (visa_error_count(c) > 0)
            fputs(visa_diagnostics(c, v->format), stderr);
        visa_free(c);
    }
    free(bytes);
    return ok;
}

int variants_diff(const variants *v, arena *memory, diag_list *diags)
{
    binary before, after;
    const char *costs_before, *costs_after;
    bool loaded = load_kernels(v, v->before, memory, diags, &before, &costs_before);
    if (!load_kernels(v, v->after, memory, diags, &after, &costs_after) || !loaded)
        return EXIT_INPUT;
    const char *text = kernel_diff(&before, &after, v->preset, memory, diags);
    if (text)
        text = arena_printf(memory, "%s%s", text,
                            step_diff((step_diff_side){&before, costs_before}, (step_diff_side){&after, costs_after}, memory));
    return text && output_put(v->to, text, strlen(text)) && output_set_commit(v->files) ? EXIT_DONE : EXIT_INPUT;
}
