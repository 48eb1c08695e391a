#include "libvisa/tune/folded.h"

#include "libvisa/tune/folded_write.h"

/* Their estimates are close, so the first few are tried where nothing is left of the work, too. */
enum { MOST_COMPILED = 8, MOST_BEYOND = 3 };

static int64_t cycles_of(const void *plans, size_t i)
{
    return ((const folded_plan *)plans)[i].cycles;
}

static void write_one(const tune_others *x, size_t i, arena *a, tune_text *out)
{
    folded_write(x->target, x->question, &((const folded_plan *)x->plans)[i], "", NULL, a, out);
}

bool folded_search(const target *t, const tune_question *q, arena *a, tune_answer *found, folded_plan *best)
{
    folded_plan plans[MOST_COMPILED];
    tune_others x = {.target = t, .question = q, .plans = plans, .cycles = cycles_of, .write_text = write_one};
    x.count = folded_plans(t, q, plans, MOST_COMPILED);
    x.compiled_anyway = MOST_BEYOND;
    size_t i = tune_try_others(&x, a, found);
    if (i == x.count)
        return false;
    *best = plans[i];
    return true;
}

const char *folded_describe(const tune_question *q, const folded_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    tune_describe_split(q->axis_text[TUNE_ROW], &q->share[TUNE_ROW], q->size[TUNE_ROW], 1, 1, p->row_slices, p->rows, folded_padded_rows(p),
                        &out);
    tune_describe_split(q->axis_text[TUNE_COLUMN], &q->share[TUNE_COLUMN], q->size[TUNE_COLUMN], p->iterations, p->clusters, p->groups,
                        p->columns, q->size[TUNE_COLUMN], &out);
    tune_describe_split(q->axis_text[TUNE_SUM], &q->share[TUNE_SUM], q->size[TUNE_SUM], 1, 1, p->sum_slices, p->sums, folded_padded_sum(p),
                        &out);
    return out.text;
}
