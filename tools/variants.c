#include "tools/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/variants/advise.h"
#include "libvisa/variants/difference.h"
#include "libvisa/variants/program_space.h"
#include "libvisa/variants/sweep.h"
#include "support/file.h"
#include "tools/options.h"

static bool read_source(const char *file, arena *memory, diag_list *diags, variant_source *out)
{
    unsigned char *bytes = file_read_all(file, &out->size, diags);
    if (!bytes)
        return false;
    out->name = tool_input_name(file);
    out->text = arena_strndup(memory, (const char *)bytes, out->size);
    free(bytes);
    return true;
}

/* Reads what is compiled in several variants, with options that have to say something of it. */
static bool read_fitting(const variants *v, const char *file, arena *memory, diag_list *diags, variant_source *out)
{
    return read_source(file, memory, diags, out) && (!v->fits || v->fits(v->given, out, diags));
}

/* What a library reports besides diagnostics. */
static void say_rest(const variants *v, const char *messages, const char *fault)
{
    fputs(messages, stderr);
    if (fault)
        fprintf(stderr, "%s: error: %s\n", v->tool, fault);
}

static bool write_text(const variants *v, const char *text)
{
    return output_put(v->to, text, strlen(text)) && output_set_commit(v->files);
}

/* ---- --sweep ---- */

/* "A=1,2,B=3": a word with `=` begins another constant. False: reported. */
static bool read_axes(const variants *v, swept_axes *s, arena *memory)
{
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
            s->axes[s->count++] = (swept){.name = arena_strndup(memory, word, (size_t)(equals - word)), .values = values};
        } else if (s->count == 0 || equals) {
            break;
        }
        if (!*number && s->axes[s->count - 1].count == 0)
            break;
        if (!tool_number(number, &value) || value > INT64_MAX) {
            tool_usage_error(v->tool, "--sweep: `%s` is not a number", number);
            return false;
        }
        s->axes[s->count - 1].count++;
        *values++ = (int64_t)value;
        at += length + (at[length] == ',');
        if (!*at)
            return true;
    }
    tool_usage_error(v->tool, "--sweep is NAME=VALUE,VALUE or NAME=VALUE,VALUE,NAME=VALUE,VALUE, not `%s`", v->sweep);
    return false;
}

static bool names_differ(const variants *v, const swept_axes *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const char *name = s->axes[i].name;
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->axes[k].name, name) == 0) {
                tool_usage_error(v->tool, "--sweep has values of `%s` twice: give them together", name);
                return false;
            }
        for (size_t k = 0; k < v->options.compile.parameter_count; k++)
            if (strcmp(v->options.compile.parameters[k].name, name) == 0) {
                tool_usage_error(v->tool, "`%s` has a value from -D and those of --sweep: give one of them", name);
                return false;
            }
    }
    return true;
}

bool variants_axes(const variants *v, swept_axes *out, arena *memory)
{
    return read_axes(v, out, memory) && names_differ(v, out);
}

int variants_sweep(const variants *v, arena *memory, diag_list *diags)
{
    swept_axes s = {0};
    variant_source source;
    sweep_table table;
    if (!variants_axes(v, &s, memory))
        return EXIT_USAGE;
    if (!read_fitting(v, v->before, memory, diags, &source))
        return EXIT_INPUT;
    bool made = sweep_source(&source, s.axes, s.count, &v->options, memory, diags, &table);
    say_rest(v, table.messages, table.fault);
    return made && write_text(v, table.text) && table.any ? EXIT_DONE : EXIT_INPUT;
}

/* ---- diff ---- */

static bool load_side(const variants *v, difference_side *side, arena *memory, diag_list *diags)
{
    if (!read_fitting(v, side->file, memory, diags, &side->source))
        return false;
    bool loaded = difference_load(side, &v->options, memory, diags);
    say_rest(v, side->messages, side->fault);
    return loaded;
}

int variants_diff(const variants *v, arena *memory, diag_list *diags)
{
    difference_side before = {.file = v->before}, after = {.file = v->after};
    bool loaded = load_side(v, &before, memory, diags);
    if (!load_side(v, &after, memory, diags) || !loaded)
        return EXIT_INPUT;
    const char *text = difference_text(&before, &after, v->options.preset, memory, diags);
    return text && write_text(v, text) ? EXIT_DONE : EXIT_INPUT;
}

/* ---- advise ---- */

int variants_advise(const variants *v, bool applies, arena *memory, diag_list *diags)
{
    variant_source source;
    advice found;
    if (!read_fitting(v, v->before, memory, diags, &source))
        return EXIT_INPUT;
    if (!advise_source(&source, &v->options, memory, &found)) {
        bool streams = found.no_kernel && program_is_in(source.text, source.size);
        if (found.no_kernel) {
            diag *d = diag_add(diags, streams ? E_STEP_OPTION : E_KERNEL, SRC_NOWHERE, "visac advise changes kernels, and %s holds none",
                               source.name);
            diag_help(diags, d, "%s",
                      streams ? "`visac tune FILE.vm` looks for sizes, queues and transformations of a stream program"
                              : "a kernel is a function of a Context");
        }
        say_rest(v, found.refused, found.fault);
        return EXIT_INPUT;
    }
    if (applies)
        fputs(found.changes, stderr);
    return write_text(v, applies ? found.source : found.changes) ? EXIT_DONE : EXIT_INPUT;
}

const char *variants_switches(const char *file, const unsigned char *text, size_t bytes, const visa_options *options, timing_preset preset,
                              arena *memory)
{
    variant_source source = {tool_input_name(file), (const char *)text, bytes};
    variant_options o = {.compile = *options, .preset = preset};
    const char *messages = advise_switches(&source, &o, memory);
    return messages[0] ? arena_printf(memory, "could be a stream, which visac advise --apply writes:\n%s", messages) : "";
}
