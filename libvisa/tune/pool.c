#include "libvisa/tune/pool.h"

#include <string.h>

#include "libvisa/tune/machine.h"
#include "libvisa/tune/pool_write.h"
#include "libvisa/tune/search.h"
#include "support/integer.h"

enum { PLANS = 96, PLANS_ANYWAY = 8 };

typedef struct pool_search {
    const target *t;
    const pool_question *q;
    arena *a, *scratch;
    tune_answer *found; /* of the best plan */
    pool_plan *best;
} pool_search;

/* False: no memory. */
static bool try_plan(pool_search *s, const pool_plan *p)
{
    arena_mark mark = arena_mark_here(s->scratch);
    tune_trial one = {.timing = s->found->timing};
    pool_write(s->t, s->q, p, "", NULL, s->scratch, &one.text);
    bool is_best;
    const bool is_tried = tune_try_another(s->scratch, s->a, &one, s->found, &is_best);
    if (is_best)
        *s->best = *p;
    arena_rewind(s->scratch, mark);
    return is_tried;
}

/* The best plan, and what it takes; of *out all but its plan. False: no plan compiles. */
static bool search(const target *t, const visa_tune_options *o, const pool_question *q, arena *a, tune_answer *out, pool_plan *plan)
{
    enum { FAR_PERCENT = 300 }; /* of an estimate: what is left will not be faster */
    *out = (tune_answer){.timing = tune_timing_of(o), .work_left = o->work};
    pool_search s = {.t = t, .q = q, .a = a, .scratch = arena_new_inside(a), .found = out, .best = plan};
    pool_plan *plans = ARENA_ARRAY(s.scratch, pool_plan, PLANS);
    const size_t count = pool_plans(t, q, plans, PLANS);
    for (size_t i = 0; i < count; i++) {
        const bool is_far = out->cycles > 0 && plans[i].cycles > plans[0].cycles * FAR_PERCENT / 100;
        if (out->cycles > 0 && (is_far || (out->work_left == 0 && i >= PLANS_ANYWAY))) {
            out->left++;
            continue;
        }
        if (!try_plan(&s, &plans[i]))
            break;
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - out->work_left), (int64_t)o->work);
    }
    if (out->cycles > 0 && pool_is_rewritten(q) && !plan->frames) { /* the best one with its border made otherwise */
        pool_plan other = *plan;
        other.short_border = false;
        try_plan(&s, &other);
    }
    arena_free(s.scratch);
    return out->cycles > 0;
}

/* Of the image what windows take; each element of it and each result goes through the Vector Engine once at least. */
static attainable bound_of(const target *t, const pool_question *q, timing_preset timing)
{
    attainable_work w = {
        .chips = 1, .loads = 1 + (int64_t)q->extra_count, .stores = 1, .first_loads = 1, .slices = tune_slices_of(t, q->most_slices)};
    int64_t results = 1, taken = q->dims[POOL_OUTER].size * q->dims[POOL_INNER].size;
    for (int d = 0; d < POOL_DIMS; d++)
        results *= q->dims[d].size;
    for (size_t i = 0; i < TUNE_WINDOWS; i++)
        taken *= smaller(tune_window_used(&q->image, i), tune_border_of(&q->image, i).count);
    const int64_t stored = tune_bytes_of(q->into, results);
    w.bytes = tune_bytes_of(q->from, taken) + stored;
    for (size_t i = 0; i < q->extra_count; i++) {
        int64_t elements = q->dims[POOL_INNER].size;
        for (int d = 0; d < POOL_INNER; d++)
            elements *= q->extras[i].has[d] ? q->dims[d].size : 1;
        w.bytes += tune_bytes_of(q->extras[i].type, elements);
    }
    w.ending_bytes = stored % t->hbm_block_bytes != 0 ? stored : 0;
    w.mac_cycles = larger(taken, results) / (t->vector_lanes * w.slices * t->clusters_per_chip);
    return attainable_of(t, timing, &w);
}

bool pool_answer(const target *t, const visa_tune_options *o, const tune_expression *e, const pool_question *q, diag_list *diags,
                 strbuf *out)
{
    arena *a = diags->arena;
    pool_plan plan;
    tune_answer answer;
    tune_text text;
    if (!search(t, o, q, a, &answer, &plan))
        return tune_refuse_all(diags, tune_whole_range(e->file, e->text), answer.tried, answer.first_refusal);
    const attainable bound = bound_of(t, q, answer.timing);
    const char *types = arena_printf(a, "in %s, out %s.", dtype_row_of(q->from)->name, dtype_row_of(q->into)->name);
    pool_write(t, q, &plan, tune_head(e->text, types, "passes", &bound, &answer, pool_describe(t, q, &plan, a), a), &answer.found, a,
               &text);
    *out = text.text;
    return true;
}
