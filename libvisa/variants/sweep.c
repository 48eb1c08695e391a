#include "libvisa/variants/sweep.h"

#include <string.h>

#include "libvisa/variants/sweep_items.h"
#include "runtime/step/sweep.h"
#include "runtime/timing/report.h"
#include "support/budget.h"
#include "support/order.h"
#include "support/strbuf.h"

/* What a legal variant takes, for the front of cycles against what they cost: bytes of DM, or multipliers. */
typedef struct sweep_point {
    const char *values, *name;
    const char *work; /* sizes: with others it computes something else */
    int64_t cycles, cost;
} sweep_point;

/* Those of one kind. */
typedef struct sweep_points {
    sweep_point *list;
    size_t count, capacity;
} sweep_points;

typedef struct sweep {
    const variant_source *source;
    const variant_options *options;
    const swept *axes;
    size_t axis_count;
    size_t *at;                             /* of each axis: which of its values is at hand */
    visa_compilation *compilation;          /* of the variant at hand; NULL: there was none yet */
    uint64_t left;                          /* steps, for all of the sweep */
    bool any_kernel, any_program, any_item; /* was legal */
    bool limited;                           /* some program's chip holds a limited number of bytes */
    const char *refusal;                    /* the diagnostics of the first variant that was refused */
    sweep_table *table;                     /* what is reported besides the rows */
    strbuf out, programs, items;            /* rows of kernels, and of stream programs and dataflow items, which have other columns */
    sweep_points kernel_points, item_points;
} sweep;

static const char *values_at_hand(const sweep *s)
{
    const char *text = "";
    for (size_t i = 0; i < s->axis_count; i++)
        text = arena_printf(s->out.arena, "%s%s%10lld", text, i ? " " : "", (long long)s->axes[i].values[s->at[i]]);
    return text;
}

static bool give_up(const sweep *s, diag_list *diags)
{
    const char *upto = "";
    for (size_t i = 0; i < s->axis_count; i++)
        upto = arena_printf(s->out.arena, "%s%s%s = %lld", upto, i ? ", " : "", s->axes[i].name, (long long)s->axes[i].values[s->at[i]]);
    diag *d = diag_add(diags, E_BUDGET, SRC_NOWHERE, "--sweep takes more than %llu steps of work with the values up to %s",
                       (unsigned long long)variant_steps(s->options), upto);
    diag_help(diags, d, "give fewer values at once, or no limit: --max-steps=0");
    return false;
}

static const char *axes_of(const binary_kernel *k, arena *a)
{
    const char *text = "";
    for (uint32_t i = 0; i < k->axis_count; i++)
        text = arena_printf(a, "%s%s = %lld, ", text, k->axes[i].name, (long long)k->axes[i].size);
    return text;
}

static const char *multipliers_text(int64_t count, arena *a)
{
    return count == INT64_MAX ? "> 2^62" : arena_printf(a, "%lld", (long long)count);
}

/* A row for each dataflow item. False: none, and what the compiler says of it is said. */
static bool item_rows(sweep *s, visa_compilation *c, const char *values)
{
    const unsigned char *data;
    size_t size;
    sweep_item *items;
    arena *a = s->out.arena;
    if (!visa_dataflow(c, true, NULL, 0, &data, &size))
        return false;
    size_t count = sweep_items_read((const char *)data, a, &items);
    for (size_t i = 0; i < count; i++) {
        const sweep_item *m = &items[i];
        strbuf_printf(&s->items, "%s  legal    %-16s %10lld %12s %12lld %12lld %14s\n", values, m->name, (long long)m->latency,
                      multipliers_text(m->multipliers, a), (long long)m->weight_bits, (long long)m->input_bits,
                      m->rate > 0 ? arena_printf(a, "%.1f", m->rate) : "-");
        sweep_point p = {values, m->name, m->tensors, m->latency, m->multipliers};
        ARENA_PUSH(a, s->item_points.list, s->item_points.count, s->item_points.capacity, p);
    }
    s->any_item |= count > 0;
    return count > 0;
}

/* What the text says is read once, where it can be; NULL: no memory. */
static visa_compilation *compile(sweep *s, const visa_options *options)
{
    if (s->compilation && visa_compile_again(s->compilation, options))
        return s->compilation;
    visa_free(s->compilation);
    s->compilation = visa_compile(s->source->name, s->source->text, s->source->size, options);
    return s->compilation;
}

/* One variant: a row of the table. False: not even a row. */
static bool sweep_row(sweep *s, diag_list *diags)
{
    visa_options options = s->options->compile;
    visa_parameter *all = ARENA_ARRAY(s->out.arena, visa_parameter, options.parameter_count + s->axis_count);
    for (size_t i = 0; i < options.parameter_count; i++)
        all[i] = options.parameters[i];
    for (size_t i = 0; i < s->axis_count; i++)
        all[options.parameter_count++] = (visa_parameter){.name = s->axes[i].name, .values = &s->axes[i].values[s->at[i]], .count = 1};
    options.parameters = all;
    options.max_steps = s->left;
    options.again = true;
    visa_compilation *c = compile(s, &options);
    if (!c) {
        s->table->fault = "out of memory";
        return false;
    }
    variant_spend(&s->left, c);
    const unsigned char *data;
    size_t size;
    binary b;
    report_figures f;
    const char *values = values_at_hand(s);
    bool has_items = visa_error_count(c) == 0 && visa_item_count(c) > 0, only_items = has_items && visa_kernel_count(c) == 0;
    bool good = !has_items || item_rows(s, c, values);
    bool legal = good && !only_items && visa_emit(c, VISA_EMIT_BINARY, &data, &size) && binary_read(data, size, s->out.arena, diags, &b);
    if (!legal && visa_gave_up(c)) /* read or written */
        return give_up(s, diags);
    bool ok = legal || !visa_has_system_fault(c);
    if (!ok)
        s->table->messages = arena_strdup(s->out.arena, visa_diagnostics(c, s->options->format));
    if (!legal && ok && !(good && only_items)) {
        const char *why = visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT);
        if (!s->refusal)
            s->refusal = arena_strdup(s->out.arena, visa_diagnostics(c, s->options->format));
        strbuf *const tables[] = {&s->out, &s->programs, &s->items};
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            strbuf_printf(tables[i], "%s  refused  %.*s\n", values, (int)strcspn(why, "\n"), why);
    }
    s->any_kernel |= legal && b.kernel_count > 0;
    s->any_program |= legal && b.program_count > 0;
    for (size_t i = 0; legal && i < b.program_count; i++)
        s->limited |= b.programs[i].machine.onchip_bytes > 0;
    if (legal && ok && b.program_count > 0 && visa_emit(c, VISA_EMIT_STEP_JSON, &data, &size))
        strbuf_puts(&s->programs, step_sweep_rows((const char *)data, values, s->out.arena));
    for (size_t i = 0; legal && ok && i < b.kernel_count; i++) {
        ok = report_figures_of(b.target, &b.kernels[i], s->options->preset, s->out.arena, diags, &f);
        if (!ok)
            break;
        strbuf_printf(&s->out, "%s  legal    %-16s %10lld %12lld %12lld  %s: %s\n", values, b.kernels[i].name, (long long)f.cycles,
                      (long long)f.dm_bytes, (long long)f.lower_bound, f.command, f.binds);
        sweep_point p = {values, arena_strdup(s->out.arena, b.kernels[i].name), axes_of(&b.kernels[i], s->out.arena), f.cycles, f.dm_bytes};
        ARENA_PUSH(s->out.arena, s->kernel_points.list, s->kernel_points.count, s->kernel_points.capacity, p);
    }
    return ok;
}

/* Does another variant that computes the same take as little of both, and of one less, or is it the same and stands before? */
static bool is_beaten(const sweep_points *all, size_t number)
{
    const sweep_point *p = &all->list[number];
    for (size_t i = 0; i < all->count; i++) {
        const sweep_point *q = &all->list[i];
        bool less = q->cycles < p->cycles || q->cost < p->cost || i < number;
        if (i != number && strcmp(q->name, p->name) == 0 && strcmp(q->work, p->work) == 0 && q->cycles <= p->cycles && q->cost <= p->cost &&
            less)
            return true;
    }
    return false;
}

static int by_name_and_cost(const void *a, const void *b)
{
    const sweep_point *x = a, *y = b;
    return order_then(strcmp(x->name, y->name), order_then(strcmp(x->work, y->work), ORDER(x->cost, y->cost)));
}

/* The variants that no other beats in cycles and cost both. */
static void sweep_front(sweep_points *all, const char *head, strbuf *out)
{
    if (all->count == 0)
        return;
    sweep_point *front = ARENA_ARRAY(out->arena, sweep_point, all->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (!is_beaten(all, i))
            front[count++] = all->list[i];
    order_sort(front, count, sizeof *front, by_name_and_cost);
    strbuf_puts(out, head);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "%s           %-16s %10lld %12lld\n", front[i].values, front[i].name, (long long)front[i].cycles,
                      (long long)front[i].cost);
}

/* The next combination, the last constant fastest. */
static bool next_combination(sweep *s)
{
    for (size_t i = s->axis_count; i-- > 0;) {
        if (++s->at[i] < s->axes[i].count)
            return true;
        s->at[i] = 0;
    }
    return false;
}

bool sweep_source(const variant_source *source, const swept *axes, size_t count, const variant_options *o, arena *memory, diag_list *diags,
                  sweep_table *out)
{
    *out = (sweep_table){.text = "", .messages = ""};
    sweep s = {.source = source, .options = o, .axes = axes, .axis_count = count, .left = variant_steps(o), .table = out};
    s.at = ARENA_ARRAY(memory, size_t, count + 1);
    strbuf_init(&s.out, memory);
    strbuf_init(&s.programs, memory);
    strbuf_init(&s.items, memory);
    const char *names = "";
    for (size_t i = 0; i < count; i++)
        names = arena_printf(memory, "%s%s%10s", names, i ? " " : "", axes[i].name);
    bool good = sweep_row(&s, diags);
    while (good && next_combination(&s))
        good = sweep_row(&s, diags);
    visa_free(s.compilation);
    if (!good)
        return false;
    if (count > 1) {
        sweep_front(
            &s.kernel_points,
            arena_printf(memory, "front: fewer cycles take more DM\n%s           kernel               cycles  DM bytes up\n", names),
            &s.out);
        sweep_front(&s.item_points,
                    arena_printf(memory,
                                 "front: fewer cycles take more multipliers\n%s           dataflow item             L  multipliers\n",
                                 names),
                    &s.items);
    }
    if (s.any_kernel || !(s.any_program || s.any_item))
        out->text =
            arena_printf(memory, "%s           kernel               cycles  DM bytes up  lower bound  longest command: what binds\n%s",
                         names, s.out.text);
    if (s.any_program)
        out->text = arena_printf(memory, "%s%s%s", out->text, step_sweep_head(names, s.limited, memory), s.programs.text);
    if (s.any_item)
        out->text =
            arena_printf(memory, "%s%s           dataflow item             L  multipliers  weight bits   input bits   inferences/s\n%s",
                         out->text, names, s.items.text);
    out->any = s.any_kernel || s.any_program || s.any_item;
    if (!out->any)
        out->messages = s.refusal;
    return true;
}
