#include "runtime/timing/kernel_diff.h"

#include <string.h>

#include "runtime/timing/report_parts.h"
#include "support/align.h"
#include "support/strbuf.h"

typedef long long number;

/* ---- alignment ---- */

enum { SAME = 3, LIKE = 1 };

static bool same_command(const command *a, const command *b)
{
    return a->op == b->op && memcmp(a->fields, b->fields, sizeof a->fields) == 0 && command_same_entries(a, b);
}

typedef struct stream {
    const command *commands;
    size_t count;
} stream;

typedef struct streams {
    const stream *a, *b;
} streams;

static unsigned likeness(const void *user, size_t i, size_t k)
{
    const streams *of = user;
    const command *a = &of->a->commands[i], *b = &of->b->commands[k];
    return same_command(a, b) ? SAME : a->op == b->op ? LIKE : 0;
}

/* partner[i]: the command of b that stands for a's command i, or SIZE_MAX; of streams that are too long the command at its place. */
static void align_streams(const stream *a, const stream *b, size_t *partner, arena *arena_of)
{
    streams of = {a, b};
    if (!align_lists(a->count, b->count, likeness, &of, arena_of, partner))
        for (size_t i = 0; i < a->count && i < b->count; i++)
            partner[i] = a->commands[i].op == b->commands[i].op ? i : SIZE_MAX;
}

/* ---- commands ---- */

static void place(strbuf *s, char sign, context c, const command *x)
{
    strbuf_printf(s, "  %c %s 0x%04x %s, line %u", sign, context_name(c), x->offset, command_row_of(x->op)->name, x->line);
}

static void changed_fields(strbuf *s, const command *a, const command *b)
{
    const command_row *row = command_row_of(a->op);
    for (unsigned i = 0; i < row->field_count; i++) {
        const command_field_row *f = command_field_row_of((command_field)(row->first_field + i));
        if (a->fields[i] != b->fields[i])
            strbuf_printf(s, "      %s: %s -> %s%s%s\n", f->name, command_value_text(f, a->fields[i], s->arena),
                          command_value_text(f, b->fields[i], s->arena), command_value_name(f, a->fields[i]) ? "" : " ",
                          command_value_name(f, a->fields[i]) ? "" : f->unit); /* a name says what it is */
    }
}

static const char *entries_text(const command *c, arena *a)
{
    const command_row *row = command_row_of(c->op);
    strbuf s;
    strbuf_init(&s, a);
    for (unsigned i = 0; i < c->entry_count; i++) {
        strbuf_puts(&s, i ? ", " : "[");
        for (unsigned k = 0; k < row->column_count; k++)
            strbuf_printf(&s, "%s%lld", k ? ":" : "", (number)c->entries[i][k]);
    }
    strbuf_puts(&s, c->entry_count ? "]" : "[]");
    return s.text;
}

static bool is_moved(const command *c, const stream *other, const size_t *partner, size_t count)
{
    for (size_t k = 0; k < other->count; k++) {
        bool taken = false;
        for (size_t i = 0; i < count && !taken; i++)
            taken = partner[i] == k;
        if (!taken && same_command(c, &other->commands[k]))
            return true;
    }
    return false;
}

static void diff_stream(strbuf *s, context where, const stream *a, const stream *b)
{
    size_t *partner = ARENA_ARRAY(s->arena, size_t, a->count + 1), *back = ARENA_ARRAY(s->arena, size_t, b->count + 1);
    align_streams(a, b, partner, s->arena);
    for (size_t k = 0; k < b->count; k++)
        back[k] = SIZE_MAX;
    for (size_t i = 0; i < a->count; i++)
        if (partner[i] != SIZE_MAX)
            back[partner[i]] = i;
    for (size_t i = 0; i < a->count; i++) {
        const command *x = &a->commands[i];
        if (partner[i] == SIZE_MAX) {
            bool moved = is_moved(x, b, partner, a->count);
            place(s, moved ? '>' : '-', where, x);
            strbuf_puts(s, moved ? ": moved\n" : ": removed\n");
        } else if (!same_command(x, &b->commands[partner[i]])) {
            const command *y = &b->commands[partner[i]];
            place(s, '~', where, x);
            strbuf_printf(s, " -> 0x%04x, line %u\n", y->offset, y->line);
            changed_fields(s, x, y);
            if (!command_same_entries(x, y))
                strbuf_printf(s, "      table: %s -> %s\n", entries_text(x, s->arena), entries_text(y, s->arena));
        }
    }
    for (size_t k = 0; k < b->count; k++)
        if (back[k] == SIZE_MAX && !is_moved(&b->commands[k], a, back, b->count)) {
            place(s, '+', where, &b->commands[k]);
            strbuf_puts(s, ": added\n");
        }
}

/* ---- memory ---- */

static const port *port_of(const binary_kernel *k, const char *name)
{
    for (uint32_t i = 0; i < k->port_count; i++)
        if (strcmp(k->ports[i].name, name) == 0)
            return &k->ports[i];
    return NULL;
}

static const char *port_text(const binary_kernel *k, const port *p, arena *a)
{
    static const char *const spaces[] = {"HBM", "DM", "TRF", "stream"};
    const char *text = arena_printf(a, "%s in %s at %lld", dtype_row_of(p->dtype)->name, spaces[p->space], (number)p->address);
    for (int c = 0; c < COMPONENT_COUNT; c++)
        if (port_space_has(p->space, (port_component)c))
            text = arena_printf(a, "%s, %s m![%s]", text, port_component_name((port_component)c), layout_text(p->mapping[c], k->axes, a));
    return text;
}

static void diff_memory(strbuf *s, const binary_kernel *a, const binary_kernel *b)
{
    for (uint32_t i = 0; i < a->port_count; i++) {
        const port *p = &a->ports[i], *q = port_of(b, p->name);
        const char *was = port_text(a, p, s->arena), *is = q ? port_text(b, q, s->arena) : "removed";
        if (strcmp(was, is) != 0)
            strbuf_printf(s, "  port %s: %s -> %s\n", p->name, was, is);
    }
    for (uint32_t i = 0; i < b->port_count; i++)
        if (!port_of(a, b->ports[i].name))
            strbuf_printf(s, "  port %s: added, %s\n", b->ports[i].name, port_text(b, &b->ports[i], s->arena));
}

/* ---- cycles ---- */

enum { CAUSES = BOUND_COUNT };

/* Cycles on the critical path, by what binds the command that takes them. */
static void path_by_cause(const report *r, int64_t *cycles)
{
    for (size_t i = 0; i < r->schedule.count; i++)
        if (r->analysis.places[i].critical) {
            const schedule_item *item = &r->schedule.items[i];
            cycles[item->alone.bound] += item->end - item->start + item->queued;
        }
}

static void diff_cycles(strbuf *s, const report *a, const report *b)
{
    int64_t before[CAUSES] = {0}, after[CAUSES] = {0};
    path_by_cause(a, before);
    path_by_cause(b, after);
    strbuf_puts(s, "  cycles on the critical path, by what binds them\n");
    for (int i = 0; i < CAUSES; i++)
        if (before[i] || after[i])
            strbuf_printf(s, "    %-9s %9lld -> %9lld  %+lld\n", duration_bound_name((duration_bound)i), (number)before[i],
                          (number)after[i], (number)(after[i] - before[i]));
    int64_t x = a->schedule.end_sync_cycles, y = b->schedule.end_sync_cycles;
    if (x || y)
        strbuf_printf(s, "    end sync  %9lld -> %9lld  %+lld\n", (number)x, (number)y, (number)(y - x));
    strbuf_printf(s, "    all       %9lld -> %9lld  %+lld\n", (number)a->schedule.cycles, (number)b->schedule.cycles,
                  (number)(b->schedule.cycles - a->schedule.cycles));
}

static bool diff_kernels(strbuf *s, const binary *before, const binary_kernel *a, const binary *after, const binary_kernel *b,
                         timing_preset preset, diag_list *diags)
{
    report x, y;
    if (!report_of(before->target, a, preset, s->arena, diags, &x) || !report_of(after->target, b, preset, s->arena, diags, &y))
        return false;
    report_figures f, g;
    if (!report_figures_of(before->target, a, preset, s->arena, diags, &f) ||
        !report_figures_of(after->target, b, preset, s->arena, diags, &g))
        return false;
    strbuf_printf(s, strcmp(a->name, b->name) ? "kernel %s -> %s\n" : "kernel %s\n", a->name, b->name);
    size_t nothing = s->bytes;
    diff_memory(s, a, b);
    if (f.dm_bytes != g.dm_bytes)
        strbuf_printf(s, "  DM of a slice, bytes up to: %lld -> %lld\n", (number)f.dm_bytes, (number)g.dm_bytes);
    for (int c = 0; c < 3; c++)
        diff_stream(s, (context)c, &(stream){a->streams[c].commands, a->streams[c].count},
                    &(stream){b->streams[c].commands, b->streams[c].count});
    if (s->bytes == nothing)
        strbuf_puts(s, "  the same commands\n");
    else
        diff_cycles(s, &x, &y);
    return true;
}

const char *kernel_diff(const binary *before, const binary *after, timing_preset preset, arena *a, diag_list *diags)
{
    strbuf s;
    strbuf_init(&s, a);
    bool one_each = before->kernel_count == 1 && after->kernel_count == 1;
    for (size_t i = 0; i < before->kernel_count; i++) {
        const binary_kernel *k = &before->kernels[i], *other = one_each ? &after->kernels[0] : binary_kernel_by_name(after, k->name);
        if (!other)
            strbuf_printf(&s, "kernel %s: removed\n", k->name);
        else if (!diff_kernels(&s, before, k, after, other, preset, diags))
            return NULL;
    }
    for (size_t i = 0; i < after->kernel_count && !one_each; i++)
        if (!binary_kernel_by_name(before, after->kernels[i].name))
            strbuf_printf(&s, "kernel %s: added\n", after->kernels[i].name);
    return s.text;
}
