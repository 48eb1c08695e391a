#include "libvisa/tune/ranges.h"

#include <inttypes.h>

#include "libvisa/tune/ranges_plan.h"
#include "libvisa/tune/ranges_write.h"

static size_t find(const target *t, const tune_question *q, arena *a, void *plans, size_t most)
{
    (void)a;
    return ranges_plans(t, q, plans, most);
}

static int64_t cycles_of(const void *plan)
{
    return ((const ranges_plan *)plan)->cycles;
}

static void write_text(const target *t, const tune_question *q, const void *plan, const char *head, const tune_text *found, arena *a,
                       tune_text *out)
{
    ranges_write(t, q, plan, head, found, a, out);
}

static const char *describe(const tune_question *q, const void *plan, arena *a)
{
    const ranges_plan *p = plan;
    strbuf out;
    strbuf_init(&out, a);
    if (q->axis_text[TUNE_ROW])
        tune_describe_split(q->axis_text[TUNE_ROW], &q->share[TUNE_ROW], q->size[TUNE_ROW], 1, 1, 1, p->rows, p->rows, &out);
    strbuf_printf(&out, "//   %s: %" PRId64 " ranges", q->axis_text[TUNE_COLUMN], p->iterations * p->stores);
    if (p->last_tile > 0)
        strbuf_puts(&out, " and a last one");
    strbuf_printf(&out, ", %" PRId64 " in a slice of each\n", p->tile);
    return out.text;
}

const tune_family ranges_family = {.plan_bytes = sizeof(ranges_plan),
                                   .most = 8,
                                   .compiled_anyway = 4,
                                   .find = find,
                                   .cycles_of = cycles_of,
                                   .write_text = write_text,
                                   .describe = describe};
