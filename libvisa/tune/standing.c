#include "libvisa/tune/standing.h"

#include "libvisa/tune/standing_write.h"

enum { MOST_COMPILED = 4 };

bool standing_search(const target *t, const tune_question *q, arena *a, tune_answer *found, standing_plan *best)
{
    standing_plan plans[MOST_COMPILED];
    size_t count = standing_plans(t, q, plans, MOST_COMPILED);
    arena *scratch = arena_new_inside(a);
    bool better = false;
    for (size_t i = 0; i < count && (found->cycles == 0 || plans[i].cycles < found->cycles); i++) {
        if (found->work_left == 0 && found->cycles > 0) {
            found->left++;
            continue;
        }
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = q->timing};
        standing_write(t, q, &plans[i], "", NULL, scratch, &one.text);
        if (tune_try_other(scratch, a, &one, found)) {
            better = true;
            *best = plans[i];
        }
        arena_rewind(scratch, mark);
    }
    arena_free(scratch);
    return better;
}

const char *standing_describe(const tune_question *q, const standing_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    tune_describe_split(q->axis_text[TUNE_ROW], &q->share[TUNE_ROW], q->size[TUNE_ROW], p->steps, p->clusters, p->groups, standing_rows(p),
                        q->size[TUNE_ROW], &out);
    tune_describe_split(q->axis_text[TUNE_COLUMN], &q->share[TUNE_COLUMN], q->size[TUNE_COLUMN], 1, 1, p->column_slices, p->columns,
                        standing_padded_columns(p), &out);
    tune_describe_split(q->axis_text[TUNE_SUM], &q->share[TUNE_SUM], q->size[TUNE_SUM], 1, 1, p->sum_slices, p->sums, q->size[TUNE_SUM],
                        &out);
    return out.text;
}
