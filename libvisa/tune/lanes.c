#include "libvisa/tune/lanes.h"

#include "libvisa/tune/lanes_write.h"

enum { MOST_COMPILED = 6 };

static int64_t cycles_of(const void *plans, size_t i)
{
    return ((const lanes_plan *)plans)[i].order.cycles;
}

static void write_one(const tune_others *x, size_t i, arena *a, tune_text *out)
{
    lanes_write(x->target, x->question, &((const lanes_plan *)x->plans)[i], "", NULL, a, out);
}

bool lanes_search(const target *t, const tune_question *q, arena *a, tune_answer *found, lanes_plan *best)
{
    lanes_plan plans[MOST_COMPILED];
    tune_others x = {.target = t, .question = q, .plans = plans, .cycles = cycles_of, .write_text = write_one};
    x.count = lanes_plans(t, q, plans, MOST_COMPILED);
    size_t i = tune_try_others(&x, a, found);
    if (i == x.count)
        return false;
    *best = plans[i];
    return true;
}

const char *lanes_describe(const tune_question *q, const lanes_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    for (tune_role role = TUNE_ROW; role <= TUNE_COLUMN; role++)
        if (role == p->around)
            tune_describe_split(q->axis_text[role], &q->share[role], q->size[role], p->order.steps, p->clusters, p->groups, p->step,
                                q->size[role], &out);
        else
            tune_describe_split(q->axis_text[role], &q->share[role], q->size[role], 1, 1, p->standing_slices, p->standing,
                                lanes_padded_standing(p), &out);
    tune_describe_split(q->axis_text[TUNE_SUM], &q->share[TUNE_SUM], q->size[TUNE_SUM], 1, 1, p->sum_slices, p->sums, q->size[TUNE_SUM],
                        &out);
    return out.text;
}
