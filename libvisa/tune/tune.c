/* visa_tune: from a question to a source. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/source.h"
#include "libvisa/compilation.h"
#include "libvisa/layout.h"
#include "libvisa/tune/cache.h"
#include "libvisa/tune/file.h"
#include "libvisa/tune/search.h"
#include "libvisa/tune/team.h"
#include "libvisa/tune/window.h"

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

static const char *describe_plan(const tune_question *q, const tune_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        describe_split(q, &p->split[role], (tune_role)role, &out);
    if (p->sum_loop > 1)
        strbuf_printf(&out, "//   %s: %" PRId64 " parts of %" PRId64 "\n", q->axis_text[TUNE_SUM], p->sum_loop, tune_sum_part(p));
    return out.text;
}

bool tune_refuse_all(diag_list *diags, const tune_question *q, size_t tried, const char *first_refusal)
{
    src_range all = {q->tensors[TUNE_OUT].range.file, 0, (uint32_t)strlen(q->text)};
    diag *d = tried ? diag_add(diags, E_TUNE_NONE, all, "no kernel of the %zu that were tried compiles", tried)
                    : diag_add(diags, E_TUNE_NONE, all,
                               "no way was found to share these sizes out over the chip's memories: no kernel was tried");
    if (first_refusal)
        diag_note(diags, d, SRC_NOWHERE, "the first one: %s", first_refusal);
    diag_help(diags, d, "ask for sizes that are multiples of 64 elements, or for a part of the tensors");
    return false;
}

const char *tune_head(const tune_question *q, const target *t, const tune_answer *x, const char *how, arena *a)
{
    attainable bound = tune_bound_of(t, q), *b = &bound;
    strbuf out;
    strbuf_init(&out, a);
    strbuf_puts(&out, "// ");
    for (const char *c = q->text; *c; c++) /* one line */
        strbuf_append(&out, *c == '\n' || *c == '\r' || *c == '\t' || *c == '\v' || *c == '\f' ? " " : c, 1);
    strbuf_printf(&out, "\n// in %s, sums in %s, out %s.\n//\n", dtype_row_of(q->type)->name,
                  dtype_row_of(dtype_row_of(q->type)->accumulates_in)->name, dtype_row_of(q->out_type)->name);
    strbuf_printf(&out, "// %" PRId64 " cycles", x->cycles);
    if (q->timing != TIMING_DOCUMENTED)
        strbuf_printf(&out, " by --timing=%s", timing_preset_name(q->timing));
    if (b->cycles > 0) /* published schedules state no limits */
        strbuf_printf(&out,
                      ", %" PRId64 ".%02" PRId64 " times the least that the timing model allows, %" PRId64 " (copies %" PRId64
                      ", products %" PRId64 ")",
                      x->cycles / b->cycles, x->cycles * 100 / b->cycles % 100, b->cycles, b->copies, b->products);
    strbuf_puts(&out, ".\n");
    strbuf_printf(&out, "// The DMA Engine works in %" PRId64 " %% of them.\n", x->dma_cycles * 100 / x->cycles);
    strbuf_puts(&out, how);
    strbuf_printf(&out, "// Made by visac tune: %zu kernels compiled, %zu of them refused, %zu more left by the budget.\n", x->tried,
                  x->refused, x->left);
    return out.text;
}

/* The answer that the cache has; of several processes the first one looks. */
static bool found_before(visa_compilation *c, const visa_tune_options *o, strbuf *out)
{
    strbuf_init(out, c->arena);
    unsigned char *text = o->part == 0 && tune_cache_find(o, out) ? (unsigned char *)out->text : NULL;
    size_t bytes = out->bytes;
    if (!tune_team_share(o, &text, &bytes) || !text)
        return false;
    if (o->part > 0) {
        strbuf_append(out, (const char *)text, bytes);
        free(text);
    }
    return true;
}

bool tune_answer_one(visa_compilation *c, const visa_tune_options *o, int file, tune_question *q, strbuf *out)
{
    tune_answer x;
    tune_text text;
    tune_expression e;
    if (!tune_expression_read(o->question, file, o, &c->diags, &e))
        return false;
    if (!tune_is_contraction(&e))
        return tune_refuse_question(o->question, &c->diags, e.root->range, "a question has one sum, of two tensors");
    if (!tune_question_read(&e, o, &c->diags, q))
        return false;
    if (found_before(c, o, out))
        return true;
    if (q->window_count > 0) {
        if (!tune_window_answer(c->target, q, o, &c->diags, &text.text))
            return false;
    } else {
        if (!tune_search(c->target, q, o, c->arena, &x))
            return tune_refuse_all(&c->diags, q, x.tried, x.first_refusal);
        const char *how = describe_plan(q, &x.plan, c->arena);
        tune_write(q, &x.plan, c->target, tune_head(q, c->target, &x, how, c->arena), &x.found, c->arena, &text);
    }
    *out = text.text;
    if (o->part == 0)
        tune_cache_keep(o, out);
    return true;
}

static const visa_options any_work = {.max_steps = UINT64_MAX};

visa_compilation *visa_tune(const visa_tune_options *o, const char **text, size_t *bytes)
{
    *text = NULL;
    *bytes = 0;
    visa_compilation *c = compilation_new(&any_work);
    if (!c || COMPILATION_STOPS(c))
        return c;
    compilation_begin(c);
    int file = source_map_add(c->sources, "question", o->question, strlen(o->question));
    tune_question q;
    strbuf out;
    if (file >= 0 && tune_answer_one(c, o, file, &q, &out) && source_lay_out(&out)) {
        *text = out.text;
        *bytes = out.bytes;
    }
    return c;
}

visa_compilation *visa_tune_file(const char *name, const char *source, size_t source_size, const visa_tune_options *o, const char **text,
                                 size_t *bytes)
{
    *text = NULL;
    *bytes = 0;
    visa_compilation *c = compilation_new(&any_work);
    if (!c || COMPILATION_STOPS(c))
        return c;
    compilation_begin(c);
    int file = source_map_add(c->sources, name, source, source_size);
    strbuf out;
    if (file >= 0 && tune_answer_file(c, file, o, &out)) {
        *text = out.text;
        *bytes = out.bytes;
    }
    return c;
}
