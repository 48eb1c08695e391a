#include "libvisa/tune/pointwise.h"

#include "libvisa/tune/window.h"
#include "libvisa/tune/window_write.h"
#include "libvisa/tune/windows.h"

static size_t find(const target *t, const tune_question *q, arena *a, void *plans, size_t most)
{
    (void)a;
    if (!tune_is_pointwise(t, q))
        return 0;
    tune_question image = tune_windows_of_product(q);
    return window_plans(t, &image, plans, most);
}

static int64_t cycles_of(const void *plan)
{
    return ((const window_plan *)plan)->cycles;
}

static void write_text(const target *t, const tune_question *q, const void *plan, const char *head, const tune_text *found, arena *a,
                       tune_text *out)
{
    tune_question image = tune_windows_of_product(q);
    window_write(t, &image, plan, head, found, a, out);
}

static const char *describe(const tune_question *q, const void *plan, arena *a)
{
    tune_question image = tune_windows_of_product(q);
    return tune_window_describe(&image, plan, a);
}

const tune_family pointwise_family = {
    .plan_bytes = sizeof(window_plan), .most = 64, .find = find, .cycles_of = cycles_of, .write_text = write_text, .describe = describe};
