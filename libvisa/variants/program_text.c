/* What `visac tune` says of a stream program. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "libvisa/variants/program_tune.h"
#include "support/json_text.h"
#include "support/strbuf.h"

static const char *passes_text(const program_answer *x, uint32_t passes, const char *before, const char *between, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    for (size_t i = 0; i < x->pass_count; i++)
        if (passes >> i & 1)
            strbuf_printf(&s, "%s%s%s", s.bytes > 0 ? between : "", before, x->passes[i]);
    return s.text;
}

/* Fewest cycles, then least memory, then least traffic, then first. */
static size_t best_of(const program_answer *x)
{
    size_t best = x->point_count;
    for (size_t i = 0; i < x->point_count; i++) {
        const step_figures *p = &x->points[i].figures, *q = best < x->point_count ? &x->points[best].figures : NULL;
        if (!x->points[i].front)
            continue;
        bool less = !q || p->cycles < q->cycles ||
                    (p->cycles == q->cycles &&
                     (p->onchip_paper < q->onchip_paper || (p->onchip_paper == q->onchip_paper && p->offchip_bytes < q->offchip_bytes)));
        best = less ? i : best;
    }
    return best;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-./=:,+@%", c);
}

/* As a shell reads it. */
static const char *quoted(const char *text, arena *a)
{
    strbuf s;
    bool plain = *text;
    strbuf_init(&s, a);
    for (const char *c = text; *c; c++)
        plain = plain && is_plain(*c);
    if (plain)
        return text;
    strbuf_puts(&s, "'");
    for (const char *c = text; *c; c++)
        strbuf_append(&s, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
    strbuf_puts(&s, "'");
    return s.text;
}

static const char *compile_command(const program_answer *x, const program_point *p, const program_tune_options *o, arena *a)
{
    const visa_options *v = &o->variant.compile;
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "visac %s", quoted(o->file, a));
    for (size_t i = 0; i < v->parameter_count; i++) {
        const char *values = "";
        for (size_t k = 0; k < v->parameters[i].count; k++)
            values = arena_printf(a, "%s%s%" PRId64, values, k > 0 ? "," : "", v->parameters[i].values[k]);
        strbuf_printf(&s, " -D %s", quoted(arena_printf(a, "%s=%s", v->parameters[i].name, values), a));
    }
    for (size_t i = 0; i < x->axis_count; i++)
        strbuf_printf(&s, " -D %s=%" PRId64, x->axes[i].name, p->values[i]);
    for (size_t i = 0; i < x->pass_count; i++)
        if (p->passes >> i & 1)
            strbuf_printf(&s, " --pass=%s", quoted(x->passes[i], a));
    if (v->step_onchip_bytes > 0)
        strbuf_printf(&s, " --onchip-bytes=%" PRId64, v->step_onchip_bytes);
    if (v->step_compute_tile > 0)
        strbuf_printf(&s, " --compute-tile=%" PRId64, v->step_compute_tile);
    if (o->program)
        strbuf_printf(&s, " --kernel=%s", quoted(o->program, a));
    strbuf_puts(&s, " -o best.bin");
    return s.text;
}

static const char *run_command(const program_tune_options *o, arena *a)
{
    static const char *const presets[] = {"", " --timing=schedule", " --timing=measured"};
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "visa-run best.bin --timing-only --report%s", presets[o->variant.preset]);
    if (o->program)
        strbuf_printf(&s, " --kernel=%s", quoted(o->program, a));
    if (o->max_cycles != 100000000)
        strbuf_printf(&s, " --max-cycles=%" PRId64, o->max_cycles);
    for (size_t i = 0; i < o->input_count; i++)
        strbuf_printf(&s, " --input %s", quoted(o->inputs[i], a));
    return s.text;
}

/* ---- text ---- */

static void put_row(strbuf *s, const program_answer *x, const program_point *p, const char *after)
{
    const step_figures *f = &p->figures;
    for (size_t i = 0; i < x->axis_count; i++)
        strbuf_printf(s, "%10" PRId64, p->values[i]);
    strbuf_printf(s, " %12" PRId64 " %16" PRId64 " %16" PRId64 " %16" PRId64 " %12" PRId64 "  %s%s\n", f->cycles, f->onchip_paper,
                  f->onchip_artifact, f->offchip_bytes, f->allocated_flops_per_cycle, passes_text(x, p->passes, "", " ", s->arena), after);
}

static size_t refused_count(const program_answer *x)
{
    size_t count = 0;
    for (size_t i = 0; i < x->point_count; i++)
        count += x->points[i].refused != NULL;
    return count;
}

/* Why no point has the transformation: what the first one with it and the fewest others was refused for. NULL: one has it, or none was
 * tried. */
static const char *never_legal(const program_answer *x, size_t pass)
{
    const program_point *first = NULL;
    for (size_t i = 0; i < x->point_count; i++) {
        const program_point *p = &x->points[i];
        if (!(p->passes >> pass & 1))
            continue;
        if (!p->refused)
            return NULL;
        first = !first || __builtin_popcount(p->passes) < __builtin_popcount(first->passes) ? p : first;
    }
    return first ? first->refused : NULL;
}

/* Of those that were asked for. */
static void put_never_legal(strbuf *s, const program_answer *x, const program_tune_options *o)
{
    for (size_t i = 0; i < x->pass_count && o->variant.compile.step_pass_count > 0; i++) {
        const char *why = never_legal(x, i);
        if (why)
            strbuf_printf(s, "no point has %s: %s\n", x->passes[i], why);
    }
}

static const char *table(const program_answer *x, const program_tune_options *o, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "stream program %s: %zu points run, %zu refused%s\n", x->name, x->point_count - refused_count(x), refused_count(x),
                  x->stopped ? ", more were left when the work was done (--budget)" : ", no other one differs from the front in one thing");
    for (size_t i = 0; i < x->axis_count; i++)
        strbuf_printf(&s, "%10s", x->axes[i].name);
    strbuf_printf(&s, " %12s %16s %16s %16s %12s  passes\n", "cycles", "on-chip, paper", "artifact", "off-chip bytes", "FLOPs/cycle");
    size_t best = best_of(x);
    bool begin_shown = false;
    for (int64_t last = -1;;) { /* by cycles; of equal ones in their order */
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < x->point_count; i++)
            if (x->points[i].front && x->points[i].figures.cycles > last && x->points[i].figures.cycles < next)
                next = x->points[i].figures.cycles;
        if (next == INT64_MAX)
            break;
        for (size_t i = 0; i < x->point_count; i++)
            if (x->points[i].front && x->points[i].figures.cycles == next) {
                put_row(&s, x, &x->points[i], i == best ? "  <- fewest cycles" : i == 0 ? "  <- first" : "");
                begin_shown = begin_shown || i == 0;
            }
        last = next;
    }
    if (!begin_shown) {
        strbuf_puts(&s, "the first point\n");
        put_row(&s, x, &x->points[0], "");
    }
    put_never_legal(&s, x, o);
    strbuf_printf(&s, "fewest cycles again:\n  %s\n  %s\n", compile_command(x, &x->points[best], o, a), run_command(o, a));
    return s.text;
}

/* ---- JSON ---- */

static json_t *point_json(const program_answer *x, const program_point *p)
{
    json_t *j = json_object(), *values = json_object(), *passes = json_array();
    for (size_t i = 0; i < x->axis_count; i++)
        json_object_set_new(values, x->axes[i].name, json_integer(p->values[i]));
    for (size_t i = 0; i < x->pass_count; i++)
        if (p->passes >> i & 1)
            json_array_append_new(passes, json_string(x->passes[i]));
    json_object_set_new(j, "values", values);
    json_object_set_new(j, "passes", passes);
    if (p->refused) {
        json_object_set_new(j, "refused", json_string(p->refused));
        return j;
    }
    json_object_set_new(j, "cycles", json_integer(p->figures.cycles));
    json_object_set_new(
        j, "onchip_bytes",
        json_pack("{s:I, s:I}", "paper", (json_int_t)p->figures.onchip_paper, "artifact", (json_int_t)p->figures.onchip_artifact));
    json_object_set_new(j, "offchip_bytes", json_integer(p->figures.offchip_bytes));
    json_object_set_new(j, "allocated_flops_per_cycle", json_integer(p->figures.allocated_flops_per_cycle));
    json_object_set_new(j, "front", json_boolean(p->front));
    return j;
}

static const char *document(const program_answer *x, const program_tune_options *o, arena *a)
{
    json_t *root = json_object(), *axes = json_object(), *points = json_array(), *passes = json_array();
    size_t best = best_of(x);
    for (size_t i = 0; i < x->axis_count; i++) {
        json_t *values = json_array();
        for (size_t k = 0; k < x->axes[i].count; k++)
            json_array_append_new(values, json_integer(x->axes[i].values[k]));
        json_object_set_new(axes, x->axes[i].name, values);
    }
    for (size_t i = 0; i < x->pass_count; i++)
        json_array_append_new(passes, json_string(x->passes[i]));
    for (size_t i = 0; i < x->point_count; i++)
        json_array_append_new(points, point_json(x, &x->points[i]));
    json_object_set_new(root, "format", json_integer(1));
    json_object_set_new(root, "program", json_string(x->name));
    json_object_set_new(root, "constants", axes);
    json_object_set_new(root, "passes", passes);
    json_object_set_new(root, "points", points);
    json_object_set_new(root, "stopped", json_boolean(x->stopped));
    json_object_set_new(root, "best", json_integer((json_int_t)best));
    json_object_set_new(root, "commands", json_pack("[s, s]", compile_command(x, &x->points[best], o, a), run_command(o, a)));
    return json_dump_text(root, JSON_INDENT(1), a);
}

const char *program_tune_text(const program_answer *x, const program_tune_options *o, arena *a)
{
    return o->json ? document(x, o, a) : table(x, o, a);
}
