#include "libvisa/tune/folded.h"

#include <inttypes.h>

#include "libvisa/tune/folded_write.h"
#include "support/integer.h"

/* Their estimates are close, so the first few are tried where nothing is left of the work, too. */
enum { MOST_COMPILED = 8, MOST_BEYOND = 3 };

bool folded_search(const target *t, const tune_question *q, arena *a, tune_answer *found, folded_plan *best)
{
    folded_plan plans[MOST_COMPILED];
    size_t count = folded_plans(t, q, plans, MOST_COMPILED);
    arena *scratch = arena_new_inside(a);
    bool better = false;
    for (size_t i = 0; i < count && (found->cycles == 0 || plans[i].cycles < found->cycles); i++) {
        if (found->work_left == 0 && found->cycles > 0 && i >= MOST_BEYOND) {
            found->left++;
            continue;
        }
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = q->timing};
        folded_write(t, q, &plans[i], "", NULL, scratch, &one.text);
        if (tune_try_other(scratch, a, &one, found)) {
            better = true;
            *best = plans[i];
        }
        arena_rewind(scratch, mark);
    }
    arena_free(scratch);
    return better;
}

const char *folded_describe(const tune_question *q, const folded_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    tune_describe_split(q->axis_text[TUNE_ROW], &q->share[TUNE_ROW], q->size[TUNE_ROW], 1, 1, p->row_slices, p->rows, folded_padded_rows(p),
                        &out);
    tune_describe_split(q->axis_text[TUNE_COLUMN], &q->share[TUNE_COLUMN], q->size[TUNE_COLUMN], p->iterations, p->clusters, p->groups,
                        p->columns, q->size[TUNE_COLUMN], &out);
    tune_describe_split(q->axis_text[TUNE_SUM], &q->share[TUNE_SUM], q->size[TUNE_SUM], 1, 1, p->sum_slices, p->sums, q->size[TUNE_SUM],
                        &out);
    return out.text;
}
