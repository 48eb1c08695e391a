#include "libvisa/tune/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/team.h"
#include "libvisa/tune/window_write.h"
#include "libvisa/tune/windows.h"
#include "support/integer.h"

enum { MOST_PLANS = 960, MOST_OTHERS = 16 /* of the best, with the border the other way */ };

typedef struct search {
    const target *target;
    const tune_question *question;
    const window_plan *plans;
    arena *scratch;
} search;

static bool try_window(const search *x, size_t plan, tune_trial *out)
{
    *out = (tune_trial){.timing = x->question->timing};
    window_write(x->target, x->question, &x->plans[plan], "", NULL, x->scratch, &out->text);
    return tune_try_text(x->scratch, out);
}

static bool compile_plan(void *of, size_t plan, tune_outcome *out)
{
    search *x = of;
    arena_mark mark = arena_mark_here(x->scratch);
    tune_trial one;
    bool good = try_window(x, plan, &one);
    if (good)
        *out = (tune_outcome){.legal = !one.refusal, .cycles = one.cycles, .dma_cycles = one.dma_cycles, .steps = one.steps};
    arena_rewind(x->scratch, mark);
    return good;
}

/* What is known of the first `count` plans. */
typedef struct best_plans {
    size_t plan[MOST_OTHERS], count;
} best_plans;

static best_plans best_of(const tune_outcome *outcomes, size_t count)
{
    best_plans b = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        size_t at = b.count;
        while (at > 0 && outcomes[i].legal && outcomes[i].cycles < outcomes[b.plan[at - 1]].cycles)
            at--;
        if (!outcomes[i].known || !outcomes[i].legal || at == MOST_OTHERS)
            continue;
        b.count = (size_t)smaller(MOST_OTHERS, (int64_t)b.count + 1);
        memmove(&b.plan[at + 1], &b.plan[at], (b.count - at - 1) * sizeof b.plan[0]);
        b.plan[at] = i;
    }
    return b;
}

/* The best so far once more, with the border of the image the other way, behind all plans. How many that are. */
static size_t add_other_ways(const target *t, const tune_question *q, const tune_outcome *outcomes, window_plan *plans, size_t count)
{
    if (!border_has_choice(t, q, window_place_elements(t, q)))
        return 0;
    const best_plans b = best_of(outcomes, count);
    for (size_t i = 0; i < b.count; i++) {
        window_plan *other = &plans[count + i];
        *other = plans[b.plan[i]];
        other->border = other->border == BORDER_APART ? BORDER_TOGETHER : BORDER_APART;
    }
    return b.count;
}

/* A search at its plans. */
typedef struct progress {
    const visa_tune_options *options;
    search of;
    arena *scratch;
    tune_outcome *outcomes;
    size_t tried, refused, fastest, first_refused; /* SIZE_MAX: none */
    uint64_t left;
} progress;

/* Compiles plans from..to - 1; unless `anyway` as far as there is work left, or no plan is known. False: it cannot go on. */
static bool try_plans(progress *x, size_t from, size_t to, bool anyway)
{
    const visa_tune_options *o = x->options;
    for (size_t i = from; i < to && (anyway || x->left > 0 || x->fastest == SIZE_MAX); i++) {
        size_t next[MOST_PLANS + MOST_OTHERS], here = smaller((int64_t)(to - i), (int64_t)tune_team_size(o));
        for (size_t n = 0; n < here; n++)
            next[n] = i + n;
        const tune_outcome *one = &x->outcomes[i];
        if (!one->known && !tune_team_run(o, next, here, compile_plan, &x->of, x->scratch, x->outcomes))
            return false;
        x->tried++;
        x->refused += !one->legal;
        x->left -= (uint64_t)smaller((int64_t)x->left, (int64_t)one->steps);
        if (!one->legal && x->first_refused == SIZE_MAX)
            x->first_refused = i;
        if (one->legal && (x->fastest == SIZE_MAX || one->cycles < x->outcomes[x->fastest].cycles))
            x->fastest = i;
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - x->left), (int64_t)o->work);
    }
    return true;
}

bool tune_window_search(const target *t, const tune_question *q, const visa_tune_options *o, arena *a, tune_answer *out, window_plan *plan)
{
    arena *scratch = arena_new_inside(a);
    window_plan *plans = ARENA_ARRAY(a, window_plan, MOST_PLANS + MOST_OTHERS + 1);
    progress x = {.options = o,
                  .of = {t, q, plans, arena_new_inside(scratch)},
                  .scratch = scratch,
                  .outcomes = ARENA_ARRAY(scratch, tune_outcome, MOST_PLANS + MOST_OTHERS + 1),
                  .fastest = SIZE_MAX,
                  .first_refused = SIZE_MAX,
                  .left = o->work};
    size_t count = window_plans(t, q, plans, MOST_PLANS);
    if (try_plans(&x, 0, count, false)) {
        size_t others = add_other_ways(t, q, x.outcomes, plans, count);
        try_plans(&x, count, count + others, true);
        count += others;
        if (x.fastest != SIZE_MAX && tune_has_border(q)) { /* and the best one with little of its border filled */
            plans[count] = plans[x.fastest];
            plans[count].short_border = true;
            plans[count].border = border_has_choice(t, q, window_place_elements(t, q)) ? BORDER_APART : plans[count].border;
            try_plans(&x, count, count + 1, true);
            count++;
        }
    }
    size_t shown = x.fastest != SIZE_MAX ? x.fastest : x.first_refused;
    tune_trial found = {0};
    *out = (tune_answer){.timing = q->timing, .tried = x.tried, .refused = x.refused, .left = count - x.tried};
    bool good = shown != SIZE_MAX && try_window(&x.of, shown, &found) && !found.refusal;
    out->first_refusal = found.refusal ? arena_strdup(a, found.refusal) : NULL;
    if (good) {
        *plan = plans[x.fastest];
        out->cycles = found.cycles;
        out->dma_cycles = found.dma_cycles;
        memcpy(out->found.steps, found.text.steps, sizeof found.text.steps);
    }
    arena_free(scratch);
    return good;
}

const char *tune_window_describe(const tune_question *q, const window_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        if (q->share[role].axis)
            strbuf_printf(&out, "//   %s: %" PRId64 " chips x %" PRId64 "\n", q->share[role].axis, q->share[role].chips,
                          q->share[role].part);
    const char *place = q->axes[q->windows[1].kept].name, *row = q->axes[q->windows[0].kept].name;
    bool is_product = tune_is_product(q); /* whose axes have no other names */
    if (!is_product || q->size[TUNE_ROW] > 1)
        strbuf_printf(&out, "//   %s: %" PRId64 " in a slice, %" PRId64 " slices%s\n", is_product ? row : "rows of results", p->rows,
                      p->row_slices, p->rows_of_clusters ? " in each cluster" : "");
    if (place)
        strbuf_printf(&out, "//   places in a row: %" PRId64 " in a slice, %" PRId64 " slices\n", p->places, p->place_slices);
    strbuf_printf(&out, "//   %s: %" PRId64 " in a slice, %" PRId64 " slices%s\n", is_product ? q->axis_text[TUNE_COLUMN] : "columns",
                  p->columns, p->column_slices, p->columns_of_clusters ? " in each cluster" : "");
    const tune_axis *channel = &q->axes[q->window_channel];
    if (p->sum_slices > 1)
        strbuf_printf(&out, "//   %s: %" PRId64 " in a slice, %" PRId64 " slices\n", is_product ? channel->name : "channels",
                      channel->size / p->sum_slices, p->sum_slices);
    return out.text;
}
