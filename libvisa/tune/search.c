#include "libvisa/tune/search.h"

#include <string.h>

#include "libvisa/compilation.h"
#include "runtime/timing/price.h"
#include "support/integer.h"

/* Cycles of the TRF that are followed for one piece of work. */
static const int64_t FOLLOWED_CYCLES = INT64_C(1) << 22;
/* Estimates are this much too high at most, in percent: beyond the best cycles no plan is tried. */
enum { ESTIMATE_ERROR_PERCENT = 25, REFUSED_OF_A_KIND = 4 };

static tune_step step_of_line(const tune_text *text, uint32_t line)
{
    int step = 0;
    while (step < TUNE_STEPS && (line < text->steps[step].first || line > text->steps[step].last))
        step++;
    return (tune_step)step;
}

/* What the commands of a compilation take. */
static bool measure(visa_compilation *c, tune_trial *out)
{
    const unsigned char *data;
    size_t size;
    binary b;
    price p;
    if (!visa_emit(c, VISA_EMIT_BINARY, &data, &size) || COMPILATION_STOPS(c) || !binary_read(data, size, c->arena, &c->diags, &b) ||
        !price_make(c->target, &b.kernels[0], FOLLOWED_CYCLES, c->arena, &p))
        return false;
    out->cycles = p.cycles;
    out->dma_cycles = 0;
    for (int x = 0; x < 3; x++)
        for (size_t i = 0; i < p.count[x]; i++) {
            tune_step step = step_of_line(&out->text, p.line[x][i]);
            if (step < TUNE_STEPS && out->text.steps[step].cycles == 0)
                out->text.steps[step].cycles = p.each[x][i];
            out->dma_cycles += x == CONTEXT_DMA ? p.each[x][i] : 0;
        }
    return true;
}

/* "E-DMA-ALIGN: ..": the first error. */
static const char *refusal(const visa_compilation *c, arena *a)
{
    for (size_t i = 0; i < c->diags.count; i++)
        if (c->diags.items[i]->severity == DIAG_ERROR)
            return arena_printf(a, "%s: %s", diag_row_of(c->diags.items[i]->id)->name, c->diags.items[i]->message);
    return "its commands cannot be followed";
}

bool tune_try_text(arena *a, tune_trial *out)
{
    visa_compilation *c = visa_compile("tuned.vm", out->text.text.text, out->text.text.bytes, &(visa_options){.binary_only = true});
    if (!c)
        return false;
    if (!measure(c, out))
        out->refusal = refusal(c, a);
    out->steps = visa_steps(c);
    visa_free(c);
    return true;
}

bool tune_try(const target *t, const tune_question *q, const tune_plan *p, arena *a, tune_trial *out)
{
    *out = (tune_trial){0};
    tune_write(q, p, t, "", NULL, a, &out->text);
    return tune_try_text(a, out);
}

bool tune_search(const target *t, const tune_question *q, const visa_tune_options *o, arena *a, tune_answer *out)
{
    *out = (tune_answer){0};
    size_t count, best = SIZE_MAX, refused[TUNE_KINDS] = {0};
    bool accepted[TUNE_KINDS] = {false};
    arena *scratch = arena_new_inside(a);
    tune_plan *plans = tune_space(t, q, TUNE_KEPT_OF_A_KIND, scratch, &count);
    uint64_t left = o->work;
    for (size_t i = 0; i < count; i++) {
        unsigned kind = tune_kind_of(q, &plans[i]);
        bool hopeless = !accepted[kind] && refused[kind] >= REFUSED_OF_A_KIND;
        if (hopeless || (best != SIZE_MAX && plans[i].cycles > out->cycles + out->cycles * ESTIMATE_ERROR_PERCENT / 100))
            continue;
        if (left == 0 && best != SIZE_MAX) {
            out->left++;
            continue;
        }
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one;
        if (!tune_try(t, q, &plans[i], scratch, &one))
            break;
        bool legal = !one.refusal;
        out->tried++;
        left -= smaller((int64_t)left, (int64_t)one.steps);
        if (!legal && !out->first_refusal)
            out->first_refusal = arena_strdup(a, one.refusal);
        accepted[kind] = accepted[kind] || legal;
        refused[kind] += !legal;
        out->refused += !legal;
        if (legal && (best == SIZE_MAX || one.cycles < out->cycles)) {
            best = i;
            out->cycles = one.cycles;
            out->dma_cycles = one.dma_cycles;
            out->plan = plans[i];
            memcpy(out->found.steps, one.text.steps, sizeof one.text.steps);
        }
        arena_rewind(scratch, mark);
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - left), (int64_t)o->work);
    }
    arena_free(scratch);
    return best != SIZE_MAX;
}
