/* visa_tune: from a question to a source. */
#include <inttypes.h>
#include <string.h>

#include "frontend/source.h"
#include "libvisa/compilation.h"
#include "libvisa/layout.h"
#include "libvisa/tune/search.h"

/* "M: 4 iterations x 2 clusters x 8 slices x 16" */
static void describe_split(const tune_question *q, const tune_split *s, tune_role role, strbuf *out)
{
    if (!q->axis_text[role])
        return;
    strbuf_printf(out, "//   %s:", q->axis_text[role]);
    if (s->loop > 1)
        strbuf_printf(out, " %" PRId64 " iterations x", s->loop);
    if (s->cluster > 1)
        strbuf_printf(out, " %" PRId64 " clusters x", s->cluster);
    if (s->slice > 1)
        strbuf_printf(out, " %" PRId64 " slices x", s->slice);
    strbuf_printf(out, " %" PRId64 " in a slice", s->tile);
    if (s->padded != q->size[role])
        strbuf_printf(out, ", padded to %" PRId64, s->padded);
    strbuf_puts(out, "\n");
}

static const char *head_of(const tune_question *q, const tune_answer *x, const attainable *b, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    strbuf_puts(&out, "// ");
    for (const char *c = q->text; *c; c++) /* one line */
        strbuf_append(&out, *c == '\n' || *c == '\r' || *c == '\t' || *c == '\v' || *c == '\f' ? " " : c, 1);
    strbuf_printf(&out, "\n// in %s, sums in %s, out %s.\n//\n", dtype_row_of(q->type)->name,
                  dtype_row_of(dtype_row_of(q->type)->accumulates_in)->name, dtype_row_of(q->out_type)->name);
    strbuf_printf(&out,
                  "// %" PRId64 " cycles, %" PRId64 ".%02" PRId64 " times the least that the timing model allows, %" PRId64
                  " (copies %" PRId64 ", products %" PRId64 ").\n",
                  x->cycles, x->cycles / b->cycles, x->cycles * 100 / b->cycles % 100, b->cycles, b->copies, b->products);
    strbuf_printf(&out, "// The DMA Engine works in %" PRId64 " %% of them.\n", x->dma_cycles * 100 / x->cycles);
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        describe_split(q, &x->plan.split[role], (tune_role)role, &out);
    if (x->plan.sum_loop > 1)
        strbuf_printf(&out, "//   %s: %" PRId64 " parts of %" PRId64 "\n", q->axis_text[TUNE_SUM], x->plan.sum_loop,
                      tune_sum_part(&x->plan));
    strbuf_printf(&out, "// Made by visac tune: %zu kernels compiled, %zu of them refused, %zu more left by the budget.\n", x->tried,
                  x->refused, x->left);
    return out.text;
}

static bool answer(visa_compilation *c, const visa_tune_options *o, const char **text, size_t *bytes)
{
    int file = source_map_add(c->sources, "question", o->question, strlen(o->question));
    tune_question q;
    tune_answer x;
    if (file < 0 || !tune_question_read(o->question, file, o, &c->diags, &q))
        return false;
    if (!tune_search(c->target, &q, o, c->arena, &x)) {
        src_range all = {file, 0, (uint32_t)strlen(o->question)};
        diag *d = diag_add(&c->diags, E_TUNE_NONE, all, "no kernel of the %zu that were tried compiles", x.tried);
        if (x.first_refusal)
            diag_note(&c->diags, d, SRC_NOWHERE, "the first one: %s", x.first_refusal);
        diag_help(&c->diags, d, "ask for sizes that are multiples of 64 elements, or for a part of the tensors");
        return false;
    }
    attainable bound = tune_bound_of(c->target, &q);
    tune_text out;
    tune_write(&q, &x.plan, c->target, head_of(&q, &x, &bound, c->arena), &x.found, c->arena, &out);
    if (!source_lay_out(&out.text))
        return false;
    *text = out.text.text;
    *bytes = out.text.bytes;
    return true;
}

visa_compilation *visa_tune(const visa_tune_options *o, const char **text, size_t *bytes)
{
    static const visa_options options = {.max_steps = UINT64_MAX};
    *text = NULL;
    *bytes = 0;
    visa_compilation *c = compilation_new(&options);
    if (!c || COMPILATION_STOPS(c))
        return c;
    compilation_begin(c);
    answer(c, o, text, bytes);
    return c;
}
