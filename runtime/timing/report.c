#include "runtime/timing/report_parts.h"

#include "runtime/timing/dm_extent.h"
#include "support/choice.h"

bool report_format_by_name(const char *name, report_format *out)
{
    static const char *const names[] = {"text", "csv", "json", "html"};
    size_t i = choice_index(names, 4, name);
    if (i < 4)
        *out = (report_format)i;
    return i < 4;
}

const command *report_item_first(const schedule_item *item)
{
    return item->bitmaps ? item->bitmaps : item->commands;
}

const char *report_item_name(const schedule_item *item, arena *a)
{
    const char *first = command_row_of(report_item_first(item)->op)->name;
    if (item->count == 1)
        return first;
    return arena_printf(a, "%s .. %s", first, command_row_of(item->commands[item->count - 1].op)->name);
}

const char *report_item_formula(const schedule_item *item, arena *a)
{
    const char *text = duration_formula(&item->alone, a);
    if (item->writes.late_cycles)
        text = arena_printf(a, "%s + %lld late", text, (long long)item->writes.late_cycles);
    if (item->stood_cycles)
        text = arena_printf(a, "%s + %lld held", text, (long long)item->stood_cycles);
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

static int64_t highest_dm_byte(const target *t, const binary_kernel *k)
{
    int64_t highest = 0;
    for (int c = 0; c < 3; c++)
        for (size_t i = 0; i < k->streams[c].count; i++) {
            int64_t end = dm_extent_of(t, &k->streams[c].commands[i]).end;
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
    *out = (report_figures){
        .cycles = r.schedule.cycles,
        .lower_bound = r.analysis.lower_bound,
        .dm_bytes = highest_dm_byte(t, k),
        .binds = longest ? duration_bound_name(longest->alone.bound) : "nothing",
        .command = longest ? arena_printf(a, "%s, line %u", report_item_name(longest, a), report_item_first(longest)->line) : ""};
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
