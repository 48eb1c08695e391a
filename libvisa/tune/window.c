#include "libvisa/tune/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/team.h"
#include "libvisa/tune/window_write.h"
#include "libvisa/tune/windows.h"
#include "support/integer.h"

enum { MOST_PLANS = 960 };

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

bool tune_window_search(const target *t, const tune_question *q, const visa_tune_options *o, arena *a, tune_answer *out, window_plan *plan)
{
    arena *scratch = arena_new_inside(a);
    window_plan *plans = ARENA_ARRAY(a, window_plan, MOST_PLANS + 1);
    tune_outcome *outcomes = ARENA_ARRAY(scratch, tune_outcome, MOST_PLANS + 1);
    search s = {t, q, plans, arena_new_inside(scratch)};
    size_t count = window_plans(t, q, plans, MOST_PLANS), tried = 0, refused = 0, fastest = SIZE_MAX, first_refused = SIZE_MAX;
    uint64_t left = o->work;
    for (size_t i = 0; i < count && (left > 0 || fastest == SIZE_MAX); i++) {
        size_t next[MOST_PLANS], here = smaller((int64_t)(count - i), (int64_t)tune_team_size(o));
        for (size_t n = 0; n < here; n++)
            next[n] = i + n;
        if (!outcomes[i].known && !tune_team_run(o, next, here, compile_plan, &s, scratch, outcomes))
            break;
        tried++;
        refused += !outcomes[i].legal;
        left -= (uint64_t)smaller((int64_t)left, (int64_t)outcomes[i].steps);
        if (!outcomes[i].legal && first_refused == SIZE_MAX)
            first_refused = i;
        if (outcomes[i].legal && (fastest == SIZE_MAX || outcomes[i].cycles < outcomes[fastest].cycles))
            fastest = i;
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - left), (int64_t)o->work);
    }
    const size_t not_tried = count - tried;
    if (fastest != SIZE_MAX && tune_has_border(q)) { /* the best one with its border made otherwise */
        tune_outcome *other = &outcomes[count], *best = &outcomes[fastest];
        plans[count] = plans[fastest];
        plans[count].short_border = true;
        const bool is_tried = compile_plan(&s, count, other);
        tried += is_tried;
        fastest = is_tried && other->legal && other->cycles < best->cycles ? count : fastest;
    }
    size_t shown = fastest != SIZE_MAX ? fastest : first_refused;
    tune_trial found = {0};
    *out = (tune_answer){.timing = q->timing, .tried = tried, .refused = refused, .left = not_tried};
    bool good = shown != SIZE_MAX && try_window(&s, shown, &found) && !found.refusal;
    out->first_refusal = found.refusal ? arena_strdup(a, found.refusal) : NULL;
    if (good) {
        *plan = plans[fastest];
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
