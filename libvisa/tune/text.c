#include "libvisa/tune/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "libvisa/tune/machine.h"

void tune_line(tune_page *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(w->arena, format, args);
    va_end(args);
    for (int i = 0; i < w->depth; i++)
        strbuf_puts(&w->out->text, "    ");
    strbuf_puts(&w->out->text, text);
    strbuf_puts(&w->out->text, "\n");
}

static uint32_t next_line(const tune_page *w)
{
    uint32_t lines = 1;
    for (const char *c = w->out->text.text; *c; c++)
        lines += *c == '\n';
    return lines;
}

const char *tune_singular(arena *a, const char *text)
{
    char *out = arena_strdup(a, text), *to = out;
    for (const char *c = text; *c; c++) {
        bool is_one = *c == '1' && c[1] == ' ' && (c == text || c[-1] == ' ') && islower((unsigned char)c[2]);
        *to++ = *c;
        if (!is_one)
            continue;
        for (c++; islower((unsigned char)c[1]); c++)
            *to++ = *c;
        if (*c != 's')
            *to++ = *c;
    }
    *to = '\0';
    return out;
}

void tune_begin_step(tune_page *w, tune_step step, const char *why)
{
    int64_t cycles = w->found ? w->found->steps[step].cycles : 0;
    const char *text = cycles ? arena_printf(w->arena, "%s: %" PRId64 " cycles", why, cycles) : why;
    tune_line(w, "// %s", tune_singular(w->arena, text));
    w->out->steps[step].first = next_line(w);
}

void tune_end_step(tune_page *w, tune_step step)
{
    w->out->steps[step].last = next_line(w) - 1;
}

static void write_methods(tune_page *w, const tune_lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        tune_line(w, "    .%s", l->text[i]);
}

void tune_write_pass(tune_page *w, const tune_pass *pass, const char *narrowed)
{
    bool splits = pass->narrow.count > 0;
    tune_line(w, "    .vector_intra_slice_tag(TagMode::Zero)");
    write_methods(w, &pass->front);
    if (splits && !narrowed)
        tune_line(w, "    .vector_narrow_split::<_, _>()");
    else if (splits)
        tune_line(w, "    .vector_narrow_trim::<m![%s]>()", narrowed);
    write_methods(w, &pass->narrow);
    if (splits)
        tune_line(w, narrowed ? "    .vector_widen_pad::<_>()" : "    .vector_widen_concat::<_, _>()");
    write_methods(w, &pass->back);
}

/* Of what leaves the last pass. */
static void write_cast(tune_page *w, const target *t, const tune_question *q, const tune_epilogue *e, const char *packet)
{
    if (q->out_type != e->type)
        tune_line(w, "    .cast::<%s, m![%s # %" PRId64 "]>()", dtype_row_of(q->out_type)->name, packet,
                  t->flit_bytes * 8 / dtype_row_of(q->out_type)->bits);
}

void tune_write_fold(tune_page *w, const target *t, const tune_question *q, const tune_epilogue *e, const char *slice, const char *time,
                     const char *packet)
{
    const char *numbers = dtype_row_of(q->type)->accumulates_in == DTYPE_I32 ? "I32" : "F32";
    tune_line(w, "    .vector_init()");
    tune_line(w, "    .vector_inter_slice_reduce::<m![%s], m![%s]>(InterSliceReduceOp%s::Add)", slice, time, numbers);
    if (e->count > 0 && tune_pass_does_anything(&e->passes[0]))
        tune_write_pass(w, &e->passes[0], NULL);
    tune_line(w, "    .vector_final()");
    if (e->count <= 1)
        write_cast(w, t, q, e, packet);
}

/* The pass in front of it that left values in DM, by their name. */
static const char *name_of_values(const tune_page *w, const tune_epilogue *e, size_t pass)
{
    size_t before = pass - 1;
    while (before > 0 && e->passes[before].is_gate)
        before--;
    return before == 0 ? NULL : arena_printf(w->arena, "values%zu", before + 1);
}

void tune_write_later_pass(tune_page *w, const target *t, const tune_question *q, const tune_epilogue *e, size_t pass,
                           const tune_values_text *x)
{
    const tune_pass *p = &e->passes[pass];
    const bool is_last = pass + 1 == e->count;
    const char *before = name_of_values(w, e, pass), *type = dtype_row_of(tune_type_of_values(q))->name;
    if (p->is_gate)
        tune_line(w, "let gate: VrfTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", type, x->slice, x->element);
    else if (is_last)
        tune_line(w, "device.main");
    else
        tune_line(w, "let values%zu: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", pass + 1, type, x->slice, x->element);
    tune_line(w, "    .begin(%s)", before ? arena_printf(w->arena, "%s.view()", before) : x->from);
    tune_line(w, "    .fetch::<m![%s], m![%s]>()", x->time, x->packet);
    tune_line(w, "    .collect()");
    tune_line(w, "    .vector_init()");
    tune_write_pass(w, p, NULL);
    tune_line(w, "    .vector_final()");
    if (p->is_gate) {
        tune_line(w, "    .to_vrf();");
        return;
    }
    if (is_last)
        write_cast(w, t, q, e, x->packet);
    tune_line(w, "    .commit_trim::<m![%s]>()", x->packet);
    tune_line(w, is_last ? "    .commit_view(%s);" : "    .commit();", x->into);
}

static void end_block(tune_page *w)
{
    w->depth--;
    tune_line(w, "}");
}

void tune_write_by_both(tune_page *w, int64_t from, int64_t to, int64_t by_main, void (*write_step)(void *of, const char *by), void *of)
{
    const bool both = 2 * by_main > from;
    tune_line(w, "for j in %" PRId64 "..%" PRId64 " {", from, to);
    w->depth++;
    if (both) {
        tune_line(w, "if j %% 2 == 0 && j < %" PRId64 " {", 2 * by_main);
        w->depth++;
        write_step(of, "main");
        w->depth--;
        tune_line(w, "} else {");
        w->depth++;
    }
    write_step(of, "sub");
    if (both)
        end_block(w);
    end_block(w);
}

void tune_write_operand(tune_page *w, const tune_operand_text *x)
{
    tune_line(w, "let %s: VrfTensor<%s, Chip, Cluster, %s, m![%s]> = device.sub", x->name, dtype_row_of(x->type)->name, x->slice,
              x->element);
    tune_line(w, "    .begin(%s)", x->from);
    tune_line(w, "    .fetch::<m![%s], m![%s]>()", x->time, x->packet);
    if (x->from_type != x->type)
        tune_line(w, "    .fetch_cast::<%s>()", dtype_row_of(x->type)->name);
    if (x->hands)
        tune_line(w, "    .%s", x->hands);
    tune_line(w, "    .collect()");
    tune_line(w, "    .to_vrf();");
}

void tune_write_bring(tune_page *w, const target *t, const tune_question *q, int64_t count, const char *what, const char *cluster,
                      const char *slices, const char *element)
{
    tune_begin_step(w, TUNE_CLOSE,
                    count == 1
                        ? arena_printf(w->arena, "Pieces of a row are short: a copy brings a whole %s into each slice that writes", what)
                        : arena_printf(w->arena,
                                       "Pieces of a row are short: a copy brings %" PRId64 " whole %s into a slice, one after the other",
                                       count, strcmp(what, "row") == 0 ? "rows" : "batches"));
    tune_line(w, "let whole: DmTensor<%s, Chip, m![%s], m![%s], m![%s]> = products.to_dm(&mut device.tdma);",
              dtype_row_of(q->out_type)->name, cluster ? cluster : tune_idle_clusters(t, w->arena), slices, element);
    tune_end_step(w, TUNE_CLOSE);
}

void tune_write_copies(tune_page *w, const tune_share *shares, size_t count, unsigned has, const char *port, dtype type,
                       const char *element)
{
    if (strcmp(tune_chip_type(shares, count, has, w->arena), "Chip") == 0)
        return;
    tune_line(w, "// All of these chips have the same: each its own");
    tune_line(w, "let %s: HbmTensor<%s, Chip, m![%s]> = unsafe { %s.reshape() };", port, dtype_row_of(type)->name, element, port);
}

const char *tune_list(arena *a, const char *const *parts, size_t count)
{
    const char *text = NULL;
    for (size_t i = 0; i < count; i++)
        if (parts[i] && *parts[i])
            text = text ? arena_printf(a, "%s, %s", text, parts[i]) : parts[i];
    return text ? text : "1";
}
