#include "libvisa/tune/search.h"

#include <string.h>

#include "libvisa/compilation.h"
#include "libvisa/tune/team.h"
#include "runtime/timing/price.h"
#include "support/budget.h"
#include "support/integer.h"

/* Cycles of the TRF that are followed for one piece of work. */
static const int64_t FOLLOWED_CYCLES = INT64_C(1) << 22;
/* Estimates are this much too high at most, in percent: beyond the best cycles no plan is tried. By measured timing they are rougher, as
 * what many short pieces take is. */
enum { ESTIMATE_ERROR_PERCENT = 25, MEASURED_ERROR_PERCENT = 100, REFUSED_OF_A_KIND = 4 };

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
        !price_make(c->target, &b.kernels[0], out->timing, FOLLOWED_CYCLES, c->costs, c->arena, &p))
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
    *out = (tune_trial){.timing = q->timing};
    tune_write(q, p, t, "", NULL, a, &out->text);
    return tune_try_text(a, out);
}

bool tune_try_another(arena *scratch, arena *a, tune_trial *one, tune_answer *found, bool *is_best)
{
    *is_best = false;
    if (!tune_try_text(scratch, one))
        return false;
    found->tried++;
    found->refused += one->refusal != NULL;
    found->work_left -= (uint64_t)smaller((int64_t)found->work_left, (int64_t)one->steps);
    if (one->refusal && !found->first_refusal)
        found->first_refusal = arena_strdup(a, one->refusal);
    *is_best = !one->refusal && (found->cycles == 0 || one->cycles < found->cycles);
    if (*is_best) {
        found->cycles = one->cycles;
        found->dma_cycles = one->dma_cycles;
        memcpy(found->found.steps, one->text.steps, sizeof one->text.steps);
    }
    return true;
}

const void *tune_search_family(const tune_family *x, const target *t, const tune_question *q, arena *a, tune_answer *found)
{
    char *plans = arena_alloc(a, x->most * x->plan_bytes);
    const size_t count = x->find(t, q, a, plans, x->most);
    arena *scratch = arena_new_inside(a);
    const void *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const void *plan = plans + i * x->plan_bytes;
        if (found->cycles > 0 && x->cycles_of(plan) >= found->cycles)
            break;
        if (found->work_left == 0 && found->cycles > 0 && i >= x->compiled_anyway) {
            found->left++;
            continue;
        }
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = q->timing};
        x->write_text(t, q, plan, "", NULL, scratch, &one.text);
        bool is_best;
        if (tune_try_another(scratch, a, &one, found, &is_best) && is_best)
            best = plan;
        arena_rewind(scratch, mark);
    }
    arena_free(scratch);
    return best;
}

/* A search at one of its plans. */
typedef struct search {
    const target *target;
    const tune_question *question;
    const tune_plan *plans;
    size_t count, best; /* SIZE_MAX: none compiled yet */
    int64_t cycles;     /* of that */
    size_t refused[TUNE_KINDS];
    bool accepted[TUNE_KINDS];
    tune_outcome *outcomes; /* of each plan */
    arena *scratch;
} search;

static bool compile_plan(void *of, size_t plan, tune_outcome *out)
{
    search *x = of;
    arena_mark mark = arena_mark_here(x->scratch);
    tune_trial one;
    bool good = tune_try(x->target, x->question, &x->plans[plan], x->scratch, &one);
    if (good)
        *out = (tune_outcome){.legal = !one.refusal, .cycles = one.cycles, .dma_cycles = one.dma_cycles, .steps = one.steps};
    arena_rewind(x->scratch, mark);
    return good;
}

/* Is a plan worth its compilation, by what is known up to here? */
static bool is_worth_it(const search *x, size_t plan)
{
    unsigned kind = tune_kind_of(x->question, &x->plans[plan]);
    bool hopeless = !x->accepted[kind] && x->refused[kind] >= REFUSED_OF_A_KIND;
    int64_t error_percent = x->question->timing == TIMING_MEASURED ? MEASURED_ERROR_PERCENT : ESTIMATE_ERROR_PERCENT;
    return !hopeless && (x->best == SIZE_MAX || x->plans[plan].cycles <= x->cycles + x->cycles * error_percent / 100);
}

/* What a plan takes, and what those after it do that other processes compile meanwhile. */
static bool find_outcome(search *x, const visa_tune_options *o, size_t plan)
{
    size_t most = tune_team_size(o), next = 0, *plans = ARENA_ARRAY(x->scratch, size_t, most);
    for (size_t i = plan; i < x->count && next < most; i++)
        if (!x->outcomes[i].known && is_worth_it(x, i))
            plans[next++] = i;
    return tune_team_run(o, plans, next, compile_plan, x, x->scratch, x->outcomes);
}

bool tune_search(const target *t, const tune_question *q, const visa_tune_options *o, arena *a, tune_answer *out)
{
    *out = (tune_answer){.timing = q->timing};
    arena *scratch = arena_new_inside(a);
    search *x = ARENA_NEW(scratch, search);
    *x = (search){.target = t, .question = q, .best = SIZE_MAX, .scratch = arena_new_inside(scratch)};
    uint64_t before = arena_budget(scratch)->steps;
    x->plans = tune_space(t, q, TUNE_KEPT_OF_A_KIND, scratch, &x->count);
    out->looked_for = arena_budget(scratch)->steps - before;
    x->outcomes = ARENA_ARRAY(scratch, tune_outcome, x->count);
    size_t first_refused = SIZE_MAX;
    uint64_t left = o->work;
    for (size_t i = 0; i < x->count; i++) {
        if (!is_worth_it(x, i))
            continue;
        if (left == 0 && x->best != SIZE_MAX) {
            out->left++;
            continue;
        }
        arena_mark mark = arena_mark_here(x->scratch);
        if (!x->outcomes[i].known && !find_outcome(x, o, i))
            break;
        arena_rewind(x->scratch, mark);
        const tune_outcome *one = &x->outcomes[i];
        unsigned kind = tune_kind_of(q, &x->plans[i]);
        out->tried++;
        left -= smaller((int64_t)left, (int64_t)one->steps);
        if (!one->legal && first_refused == SIZE_MAX)
            first_refused = i;
        x->accepted[kind] = x->accepted[kind] || one->legal;
        x->refused[kind] += !one->legal;
        out->refused += !one->legal;
        if (one->legal && (x->best == SIZE_MAX || one->cycles < x->cycles)) {
            x->best = i;
            x->cycles = one->cycles;
        }
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - left), (int64_t)o->work);
    }
    out->work_left = left;
    /* What only the process knows that compiled it: the cycles of each step, or why a plan was refused. */
    size_t shown = x->best != SIZE_MAX ? x->best : first_refused;
    tune_trial one = {0};
    bool good = shown != SIZE_MAX && tune_try(t, q, &x->plans[shown], x->scratch, &one);
    if (good && one.refusal)
        out->first_refusal = arena_strdup(a, one.refusal);
    if (good) {
        out->plan = x->plans[shown];
        out->cycles = one.cycles;
        out->dma_cycles = one.dma_cycles;
        memcpy(out->found.steps, one.text.steps, sizeof one.text.steps);
    }
    good = good && !one.refusal;
    arena_free(scratch);
    return good;
}
