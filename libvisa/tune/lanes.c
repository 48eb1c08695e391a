#include "libvisa/tune/lanes.h"

#include "libvisa/tune/lanes_plan.h"
#include "libvisa/tune/lanes_write.h"

static size_t find(const target *t, const tune_question *q, arena *a, void *plans, size_t most)
{
    (void)a;
    return lanes_plans(t, q, plans, most);
}

static int64_t cycles_of(const void *plan)
{
    return ((const lanes_plan *)plan)->order.cycles;
}

static void write_text(const target *t, const tune_question *q, const void *plan, const char *head, const tune_text *found, arena *a,
                       tune_text *out)
{
    lanes_write(t, q, plan, head, found, a, out);
}

static const char *describe(const tune_question *q, const void *plan, arena *a)
{
    const lanes_plan *p = plan;
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

const tune_family lanes_family = {
    .plan_bytes = sizeof(lanes_plan), .most = 6, .find = find, .cycles_of = cycles_of, .write_text = write_text, .describe = describe};
