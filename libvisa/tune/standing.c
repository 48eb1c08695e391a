#include "libvisa/tune/standing.h"

#include "libvisa/tune/standing_plan.h"
#include "libvisa/tune/standing_write.h"

static size_t find(const target *t, const tune_question *q, arena *a, void *plans, size_t most)
{
    return standing_plans(t, q, a, plans, most);
}

static int64_t cycles_of(const void *plan)
{
    return ((const standing_plan *)plan)->order.cycles;
}

static void write_text(const target *t, const tune_question *q, const void *plan, const char *head, const tune_text *found, arena *a,
                       tune_text *out)
{
    standing_write(t, q, plan, head, found, a, out);
}

static const char *describe(const tune_question *q, const void *plan, arena *a)
{
    const standing_plan *p = plan;
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

const tune_family standing_family = {
    .plan_bytes = sizeof(standing_plan), .most = 6, .find = find, .cycles_of = cycles_of, .write_text = write_text, .describe = describe};
