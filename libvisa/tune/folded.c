#include "libvisa/tune/folded.h"

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/folded_write.h"

static size_t find(const target *t, const tune_question *q, arena *a, void *plans, size_t most)
{
    (void)a;
    return folded_plans(t, q, plans, most);
}

static int64_t cycles_of(const void *plan)
{
    return ((const folded_plan *)plan)->cycles;
}

static void write_text(const target *t, const tune_question *q, const void *plan, const char *head, const tune_text *found, arena *a,
                       tune_text *out)
{
    folded_write(t, q, plan, head, found, a, out);
}

static const char *describe(const tune_question *q, const void *plan, arena *a)
{
    const folded_plan *p = plan;
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

/* Their estimates are close, so the first few are tried where nothing is left of the work, too. */
const tune_family folded_family = {.plan_bytes = sizeof(folded_plan),
                                   .most = 8,
                                   .compiled_anyway = 3,
                                   .find = find,
                                   .cycles_of = cycles_of,
                                   .write_text = write_text,
                                   .describe = describe};
