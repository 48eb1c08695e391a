#include "libvisa/tune/lay.h"

#include <string.h>

#include "libvisa/tune/lay_write.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/question.h"
#include "support/integer.h"

enum { PLANS = 160, PLANS_ANYWAY = 8 };

static bool read_type(const char *asked, dtype *out)
{
    return !asked || dtype_by_name(asked, out);
}

/* A tensor without a type has that of all, and the result, where nothing says it, i32 or f32, in which values are worked on. */
static bool read_types(const tune_expression *e, const visa_tune_options *o, lay_order *x)
{
    enum { LEAST_BITS = 8 }; /* an element is fetched alone */
    x->from = DTYPE_BF16;
    if (!read_type(o->dtype, &x->from) || !read_type(e->tensors[1].asked_type, &x->from))
        return false;
    x->into = dtype_row_of(x->from)->kind == DTYPE_KIND_INT ? DTYPE_I32 : DTYPE_F32;
    if (dtype_row_of(x->from)->bits < LEAST_BITS)
        return false;
    return read_type(o->out_dtype, &x->into) && (x->from == x->into || target_converts(ENGINE_ID_FETCH, x->from, x->into));
}

bool lay_read(const tune_expression *e, const visa_tune_options *o, arena *a, lay_order *out)
{
    const tune_tensor *to = &e->tensors[0], *from = &e->tensors[1];
    *out = (lay_order){.most_slices = o->slices};
    if (e->root->kind != TUNE_NODE_TENSOR || e->tensor_count != 2 || e->window_count > 0 || to->count != from->count || o->chips > 1 ||
        !read_types(e, o, out))
        return false;
    size_t place[TUNE_AXES_MAX] = {0};
    for (size_t i = 0; i < to->count; i++) {
        const tune_axis *one = &e->axes[to->axes[i]];
        place[to->axes[i]] = i;
        out->axes[out->count++] = (lay_axis){.name = one->name, .parts = one->name, .size = one->size, .padded = one->size};
    }
    for (size_t i = 0; i < from->count; i++)
        out->source[i] = place[from->axes[i]];
    return lay_order_join(out, a);
}

static void write_function(tune_page *w, const target *t, const lay_order *x, const lay_plan *p, const char *name, const char *taken,
                           const char *dm_type)
{
    tune_line(w, "fn %s(", name);
    tune_line(w, "    device: &mut Device,");
    if (dm_type)
        tune_line(w, "    %s: &%s,", taken, dm_type);
    else
        tune_line(w, "    %s: &HbmTensor<%s, Chip, m![%s]>,", taken, dtype_row_of(x->from)->name, lay_source(x, w->arena));
    tune_line(w, ") -> HbmTensor<%s, Chip, m![%s]> {", dtype_row_of(x->into)->name, lay_target(x, w->arena));
    w->depth++;
    lay_write(w, t, x, p, taken);
    w->depth--;
    tune_line(w, "}");
}

/* A file with that kernel alone. */
static void write_kernel(const target *t, const lay_order *x, const lay_plan *p, const char *taken, const char *head,
                         const tune_text *found, arena *a, tune_text *out)
{
    *out = (tune_text){0};
    strbuf_init(&out->text, a);
    tune_page w = {.out = out, .found = found, .arena = a};
    strbuf_puts(&out->text, head);
    const char *axes = NULL;
    for (size_t i = 0; i < x->count; i++)
        axes = arena_printf(a, "%s%s%s = %lld", axes ? axes : "", axes ? ", " : "", x->axes[i].name, (long long)x->axes[i].size);
    strbuf_printf(&out->text, "axes![%s", axes);
    lay_write_axes(&w, x, p);
    strbuf_puts(&out->text, "];\n\ntype Chip = m![1];\n\n");
    tune_line(&w, "%s", tune_device(t, 1, a));
    write_function(&w, t, x, p, TUNE_KERNEL, taken, NULL);
}

void lay_write_function(const target *t, const lay_order *x, const lay_plan *p, const tune_text *found, const char *name,
                        const char *dm_type, arena *a, strbuf *out)
{
    tune_text text = {0};
    strbuf_init(&text.text, a);
    tune_page w = {.out = &text, .found = found, .arena = a};
    write_function(&w, t, x, p, name, "x", dm_type);
    strbuf_puts(out, text.text.text);
}

bool lay_search(const target *t, const visa_tune_options *o, const lay_order *x, arena *a, tune_answer *out, lay_plan *plan)
{
    *out = (tune_answer){.timing = tune_timing_of(o), .work_left = o->work};
    arena *scratch = arena_new_inside(a);
    lay_plan *plans = ARENA_ARRAY(scratch, lay_plan, PLANS);
    const size_t count = lay_plans(t, x, plans, PLANS);
    for (size_t i = 0; i < count; i++) {
        if (out->work_left == 0 && i >= PLANS_ANYWAY && out->cycles > 0) {
            out->left++;
            continue;
        }
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = out->timing};
        write_kernel(t, x, &plans[i], "x", "", NULL, scratch, &one.text);
        bool is_best;
        if (!tune_try_another(scratch, a, &one, out, &is_best))
            break;
        if (is_best)
            *plan = plans[i];
        arena_rewind(scratch, mark);
    }
    arena_free(scratch);
    return out->cycles > 0;
}

static attainable bound_of(const target *t, const lay_order *x, timing_preset timing)
{
    attainable_work w = {.chips = 1, .loads = 1, .stores = 1, .slices = tune_slices_of(t, x->most_slices)};
    int64_t elements = 1;
    for (size_t i = 0; i < x->count; i++)
        elements *= x->axes[i].size;
    int64_t stored = tune_bytes_of(x->into, elements);
    w.bytes = tune_bytes_of(x->from, elements) + stored;
    w.ending_bytes = stored % t->hbm_block_bytes != 0 ? stored : 0;
    w.mac_cycles = elements / (t->vector_lanes * w.slices * t->clusters_per_chip);
    w.first_loads = 1;
    return attainable_of(t, timing, &w);
}

bool lay_answer(const target *t, const visa_tune_options *o, const tune_expression *e, const lay_order *x, diag_list *diags, strbuf *out)
{
    arena *a = diags->arena;
    lay_plan plan;
    tune_answer answer;
    tune_text text;
    if (!lay_search(t, o, x, a, &answer, &plan))
        return tune_refuse_all(diags, tune_whole_range(e->file, e->text), answer.tried, answer.first_refusal);
    attainable bound = bound_of(t, x, answer.timing);
    const char *types = arena_printf(a, "in %s, out %s.", dtype_row_of(x->from)->name, dtype_row_of(x->into)->name);
    write_kernel(t, x, &plan, e->tensors[1].port, tune_head(e->text, types, "passes", &bound, &answer, lay_describe(t, x, &plan, a), a),
                 &answer.found, a, &text);
    *out = text.text;
    return true;
}
