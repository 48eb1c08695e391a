#include "runtime/timing/report_parts.h"

#include "codegen/copy_command.h"
#include <string.h>

bool report_format_by_name(const char *name, report_format *out)
{
    static const char *const names[] = {"text", "csv", "json", "html"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (report_format)i;
            return true;
        }
    return false;
}

const char *report_item_name(const schedule_item *item, arena *a)
{
    const char *first = command_row_of(item->commands->op)->name;
    if (item->count == 1)
        return first;
    return arena_printf(a, "%s .. %s", first, command_row_of(item->commands[item->count - 1].op)->name);
}

const char *report_item_formula(const schedule_item *item, arena *a)
{
    const char *text = duration_formula(&item->alone, a);
    if (item->writes.late_cycles)
        text = arena_printf(a, "%s + %lld late", text, (long long)item->writes.late_cycles);
    return arena_printf(a, "%s = %lld", text, (long long)(item->end - item->start));
}

bool report_of(const target *t, const binary_kernel *k, timing_preset preset, arena *a, diag_list *diags, report *out)
{
    *out = (report){0};
    if (!schedule_make(t, k, preset, a, diags, &out->schedule))
        return false;
    analysis_make(&out->schedule, a, &out->analysis);
    lint_make(&out->analysis, a, &out->lints, &out->lint_count);
    return true;
}

/* The end of what a command touches in a slice's DM, by its table: fetch and commit count elements from a base in bytes, a copy
 * counts bytes from slice to slice. 0: it touches none. */
static int64_t dm_end(const target *t, const command *c)
{
    bool fetches = c->op == OP_FETCH, copies = command_is_copy(c) && copy_command_read(c).destination.memory == COPY_DM;
    if (!fetches && !copies && c->op != OP_COMMIT)
        return 0;
    walk w = {.count = c->entry_count};
    copy_command k = copies ? copy_command_read(c) : (copy_command){0};
    for (unsigned i = 0; i < c->entry_count; i++) {
        w.size[i] = copies ? k.size[i] : command_entry(c, i, fetches ? FETCH_ENTRY_SIZE : COMMIT_ENTRY_SIZE);
        w.stride[i] = copies ? k.destination.stride[i] : command_entry(c, i, fetches ? FETCH_ENTRY_STRIDE : COMMIT_ENTRY_STRIDE);
        if (copies && w.stride[i] % t->dm_slice_stride_bytes == 0)
            w.stride[i] = 0; /* the same place in another slice */
    }
    walk_address low, high;
    walk_bounds(&w, &low, &high);
    if (high >> 48)
        return 0;
    if (copies)
        return k.destination.base % t->dm_slice_stride_bytes + (int64_t)high + k.packet_bytes;
    int64_t bits = dtype_row_of((dtype)command_get(c, fetches ? FETCH_DTYPE_IN : COMMIT_DTYPE))->bits;
    return command_get(c, fetches ? FETCH_BASE : COMMIT_BASE) + (((int64_t)high + 1) * bits + 7) / 8;
}

static int64_t highest_dm_byte(const target *t, const binary_kernel *k)
{
    int64_t highest = 0;
    for (int c = 0; c < 3; c++)
        for (size_t i = 0; i < k->streams[c].count; i++) {
            int64_t end = dm_end(t, &k->streams[c].commands[i]);
            highest = end > highest ? end : highest;
        }
    return highest;
}

bool report_figures_of(const target *t, const binary_kernel *k, timing_preset preset, arena *a, diag_list *diags, report_figures *out)
{
    report r;
    if (!report_of(t, k, preset, a, diags, &r))
        return false;
    const schedule_item *longest = NULL;
    for (size_t i = 0; i < r.schedule.count; i++)
        if (!longest || r.schedule.items[i].end - r.schedule.items[i].start > longest->end - longest->start)
            longest = &r.schedule.items[i];
    *out =
        (report_figures){.cycles = r.schedule.cycles,
                         .lower_bound = r.analysis.lower_bound,
                         .dm_bytes = highest_dm_byte(t, k),
                         .binds = longest ? duration_bound_name(longest->alone.bound) : "nothing",
                         .command = longest ? arena_printf(a, "%s, line %u", report_item_name(longest, a), longest->commands->line) : ""};
    return true;
}

const char *report_make(const target *t, const binary_kernel *k, const report_options *options, arena *a, diag_list *diags)
{
    report r;
    if (!report_of(t, k, options->preset, a, diags, &r))
        return NULL;
    const char *text = NULL;
    switch (options->format) {
    case REPORT_TEXT: text = report_text(&r, a); break;
    case REPORT_CSV: text = report_csv(&r, a); break;
    case REPORT_JSON: text = report_json(&r, a); break;
    case REPORT_HTML: text = report_html(&r, options, a); break;
    case REPORT_TRACE: text = report_trace(&r, a); break;
    }
    if (!text)
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "not enough memory for the report of kernel %s", k->name);
    return text;
}
