/* The diagnostics of a compilation that are shown: as many as the limit lets through. */

#include "frontend/render.h"
#include "libvisa/compilation.h"

static const char out_of_memory_text[] = "error: out of memory\n";

size_t visa_error_count(const visa_compilation *c)
{
    return c->exhausted ? 1 : c->diags.error_count;
}

void visa_add_error(visa_compilation *c, const char *id, const char *message, const char *const *notes, size_t note_count, const char *help)
{
    if (c->exhausted || setjmp(*arena_guard(c->arena)))
        return;
    diag *d = diag_add(&c->diags, diag_id_by_name(id), SRC_NOWHERE, "%s", message);
    for (size_t i = 0; i < note_count; i++)
        diag_note(&c->diags, d, SRC_NOWHERE, "%s", notes[i]);
    if (help)
        diag_help(&c->diags, d, "%s", help);
}

bool visa_has_system_fault(const visa_compilation *c)
{
    bool found = c->exhausted;
    for (size_t i = 0; !found && i < c->diags.count; i++)
        found = c->diags.items[i]->id == E_FILE_READ || c->diags.items[i]->id == E_FILE_WRITE;
    return found;
}

size_t visa_warning_count(const visa_compilation *c)
{
    return c->exhausted ? 0 : c->diags.count - c->diags.error_count;
}

/* The list as far as the limit lets it be shown, and after it how much is missing. */
static void limit_diagnostics(visa_compilation *c)
{
    size_t errors = 0, end = 0;
    c->shown = c->diags;
    c->shown_count = c->diags.count;
    while (end < c->shown.count && (errors < c->error_limit || c->shown.items[end]->severity != DIAG_ERROR))
        errors += c->shown.items[end++]->severity == DIAG_ERROR;
    if (c->error_limit == 0 || end == c->shown.count)
        return;
    diag_list_init(&c->shown, c->arena);
    for (size_t i = 0; i < end; i++)
        ARENA_PUSH(c->arena, c->shown.items, c->shown.count, c->shown.capacity, c->diags.items[i]);
    diag *d = diag_add(&c->shown, E_ERROR_LIMIT, SRC_NOWHERE, "%zu of %zu errors are shown", errors, c->diags.error_count);
    diag_help(&c->shown, d, "-ferror-limit=0 shows all of them");
}

const diag_list *compilation_shown(visa_compilation *c)
{
    if (c->shown_count == c->diags.count && c->shown_count > 0)
        return &c->shown;
    expand_settle(c->expander, &c->diags);
    diag_list_sort(&c->diags);
    limit_diagnostics(c);
    return &c->shown;
}

const char *visa_diagnostics(visa_compilation *c, visa_diagnostics_format format)
{
    if (c->exhausted || (budget_lift(c->arena), setjmp(*arena_guard(c->arena)))) /* the report of a fault is not limited */
        return out_of_memory_text;
    const diag_list *shown = compilation_shown(c);
    if (format == VISA_DIAGNOSTICS_JSON)
        return render_json(shown, c->sources, c->arena);
    if (format == VISA_DIAGNOSTICS_SARIF)
        return render_sarif(shown, c->sources, VISA_VERSION, c->arena);
    return render_text(shown, c->sources, format == VISA_DIAGNOSTICS_COLOUR, c->arena);
}

uint32_t compilation_line_of(void *user, src_range range)
{
    const visa_compilation *c = user;
    src_range call;
    range = expand_place(c->expander, range, &call);
    return range.file < 0 ? 0 : source_line_at(c->sources, range.file, range.begin);
}
