/* Of visac-plugins, which runs what it compiles. */
#include "tools/tune_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/variants/program_tune.h"
#include "tools/explore.h"
#include "tools/progress.h"
#include "tools/variants.h"
#include "tools/visac_arguments.h"

/* Seconds of work without --budget: a run costs more than a compilation. */
enum { SECONDS = 20 };

static int search(arguments *a, const program_tune_options *o, arena *memory, diag_list *diags)
{
    variant_source source = {tool_input_name(a->question), (const char *)a->tuned, a->tuned_bytes};
    const char *messages;
    const program_answer *x = program_tune(&source, o, memory, diags, &messages);
    const char *text = x ? program_tune_text(x, o, memory) : NULL;
    if (a->ranks.rank > 0) /* the first process says and writes it */
        return x ? EXIT_DONE : EXIT_INPUT;
    fputs(x ? "" : messages, stderr);
    return text && output_put(a->to, text, strlen(text)) && output_set_commit(a->files) ? EXIT_DONE : EXIT_INPUT;
}

int tune_programs(arguments *a, arena *memory, diag_list *diags)
{
    program_tune_options o = {.variant = {a->options, a->format, a->run.report.options.preset},
                              .inputs = a->inputs,
                              .input_count = a->input_count,
                              .program = a->run.kernel,
                              .file = a->question,
                              .work = a->budget_given ? a->tune.work : (uint64_t)SECONDS * VISA_TUNE_STEPS_OF_SECOND,
                              .max_cycles = a->run.max_cycles < INT64_MAX ? (int64_t)a->run.max_cycles : 0,
                              .json = a->emit_given && a->emit == EMIT_JSON};
    variants v = {.tool = "visac", .sweep = a->sweep, .options = o.variant};
    swept_axes axes = {0};
    if (a->sweep && !variants_axes(&v, &axes, memory))
        return EXIT_USAGE;
    o.axes = axes.axes;
    o.axis_count = axes.count;
    if (a->ranks.api)
        o.team = (peers){a->ranks.rank, a->ranks.count, NULL, a->ranks.api->gather, a->ranks.api->share};
    progress line = progress_begin("tune");
    o.progress = line.shown && a->ranks.rank == 0 ? progress_show : NULL;
    o.user = &line;
    int status = search(a, &o, memory, diags);
    progress_end(&line);
    return status;
}
