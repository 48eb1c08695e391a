#include "libvisa/tune/standing.h"

#include "libvisa/tune/standing_write.h"

enum { MOST_COMPILED = 6 };

static int64_t cycles_of(const void *plans, size_t i)
{
    return ((const standing_plan *)plans)[i].order.cycles;
}

static void write_one(const tune_others *x, size_t i, arena *a, tune_text *out)
{
    standing_write(x->target, x->question, &((const standing_plan *)x->plans)[i], "", NULL, a, out);
}

bool standing_search(const target *t, const tune_question *q, arena *a, tune_answer *found, standing_plan *best)
{
    standing_plan plans[MOST_COMPILED];
    tune_others x = {.target = t, .question = q, .plans = plans, .cycles = cycles_of, .write_text = write_one};
    x.count = standing_plans(t, q, a, plans, MOST_COMPILED);
    size_t i = tune_try_others(&x, a, found);
    if (i == x.count)
        return false;
    *best = plans[i];
    return true;
}

const char *standing_describe(const tune_question *q, const standing_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    tune_describe_split(q->axis_text[TUNE_ROW], &q->share[TUNE_ROW], q->size[TUNE_ROW], p->steps, p->clusters, p->groups, standing_rows(p),
                        standing_padded_rows(p), &out);
    tune_describe_split(q->axis_text[TUNE_COLUMN], &q->share[TUNE_COLUMN], q->size[TUNE_COLUMN], 1, 1, p->column_slices, p->columns,
                        standing_padded_columns(p), &out);
    tune_describe_split(q->axis_text[TUNE_SUM], &q->share[TUNE_SUM], q->size[TUNE_SUM], 1, 1, p->sum_slices, p->sums,
                        standing_padded_sum(p), &out);
    return out.text;
}
