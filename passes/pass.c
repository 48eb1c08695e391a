#include "passes/pass.h"

#include <stdarg.h>

/* IR_OP_COUNT: every kind. A kernel that is not bad has no bad operation. */
static void visit_ops(pass_context *p, kernel *k, op_kind kind, void (*visit)(pass_context *, kernel *, op *))
{
    bool every = kind == IR_OP_COUNT;
    for (op **at = k->ops, **end = at + k->op_count; at < end; at++) {
        op *o = *at;
        if (o->kind != kind && !every && !k->bad)
            continue;
        if (k->bad && op_uses_bad(o))
            o->bad = true;
        if (o->bad || (o->kind != kind && !every))
            continue;
        p->diags->repeating = o->repeated;
        visit(p, k, o);
    }
    p->diags->repeating = 0;
}

void pass_each(pass_context *p, kernel *k, op_kind kind, void (*visit)(pass_context *, kernel *, op *))
{
    visit_ops(p, k, kind, visit);
}

void pass_all(pass_context *p, kernel *k, void (*visit)(pass_context *, kernel *, op *))
{
    visit_ops(p, k, IR_OP_COUNT, visit);
}

src_range op_part_range(const op *o, component part)
{
    return part < MAPPING_COMPONENTS && o->parts[part].file >= 0 ? o->parts[part] : o->range;
}

static diag *refuse_v(pass_context *p, kernel *k, op *o, src_range range, diag_id id, const char *format, va_list args)
{
    o->bad = true;
    k->bad = true;
    return diag_add(p->diags, id, range, "%s", arena_vprintf(p->arena, format, args));
}

diag *pass_refuse(pass_context *p, kernel *k, op *o, component part, diag_id id, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag *d = refuse_v(p, k, o, op_part_range(o, part), id, format, args);
    va_end(args);
    if (o->parts_elsewhere && part < MAPPING_COMPONENTS && o->parts[part].file >= 0)
        diag_note(p->diags, d, o->range, "`%s` has that type here", pass_name(o));
    return d;
}

diag *pass_refuse_at(pass_context *p, kernel *k, op *o, src_range range, diag_id id, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag *d = refuse_v(p, k, o, range.file >= 0 ? range : o->range, id, format, args);
    va_end(args);
    return d;
}

void pass_replace_at(pass_context *p, const op *o, diag *d, src_range range, const mapping *m)
{
    bool ours = m && !o->parts_elsewhere && !o->parts_generic && !mapping_is_local(m);
    diag_replace(p->diags, d, ours ? range : SRC_NOWHERE, "%s", pass_text(p, m));
}

void pass_replace(pass_context *p, const op *o, diag *d, component part, const mapping *m)
{
    pass_replace_at(p, o, d, o->parts[part], m);
}

void pass_help_part(pass_context *p, const op *o, diag *d, component part, const mapping *m, const char *words)
{
    diag_help(p->diags, d, "%s %s", words, pass_text(p, m));
    pass_replace(p, o, d, part, m);
}

void pass_help_parts(pass_context *p, const op *o, diag *d, const char *words, written_part first, written_part second)
{
    diag_help(p->diags, d, "%s %s %s, %s %s", words, first.name, pass_text(p, first.mapping), second.name, pass_text(p, second.mapping));
    pass_replace(p, o, d, first.part, first.mapping);
    pass_replace(p, o, d, second.part, second.mapping);
}

void pass_help_out(pass_context *p, const op *o, diag *d, const char *words, const mapping *time, const mapping *packet)
{
    pass_help_parts(p, o, d, words, (written_part){TIME, "OutTime", time}, (written_part){PACKET, "OutPacket", packet});
}

const char *pass_row_counts(const pass_context *p)
{
    const char *text = "1";
    for (int64_t rows = 2; rows <= p->target->rows; rows *= 2)
        text = arena_printf(p->arena, "%s,%s %lld", text, rows == p->target->rows ? " or" : "", (long long)rows);
    return text;
}

const char *pass_name(const op *o)
{
    return o->name[0] ? o->name : op_kind_name(o->kind);
}

const char *pass_text(pass_context *p, const mapping *m)
{
    return m ? arena_printf(p->arena, "m![%s]", mapping_text(m, p->arena)) : "a mapping of more than 2^62 positions";
}

const char *pass_bytes(pass_context *p, int64_t bits)
{
    return bits % 8 ? arena_printf(p->arena, "%lld.5 bytes", (long long)(bits / 8)) : arena_count(p->arena, bits / 8, "byte");
}

int64_t elements_of(dtype t, int64_t bytes)
{
    return bytes * 8 / dtype_row_of(t)->bits;
}

const mapping *pass_outer(pass_context *p, const mapping *m, int64_t n)
{
    const mapping *out = NULL;
    return m && mapping_stride(p->mappings, m, n, &out) == MAPPING_OK ? out : NULL;
}

const mapping *pass_inner(pass_context *p, const mapping *m, int64_t n)
{
    const mapping *out = NULL;
    return m && mapping_modulo(p->mappings, m, n, &out) == MAPPING_OK ? out : NULL;
}

const mapping *pass_digit(pass_context *p, const mapping *m, int64_t low, int64_t size)
{
    const mapping *outer = pass_outer(p, m, low);
    return outer ? pass_inner(p, outer, size) : NULL;
}

const mapping *pass_pair(pass_context *p, const mapping *outer, const mapping *inner)
{
    const mapping *out = NULL;
    return outer && inner && mapping_pair(p->mappings, outer, inner, &out) == MAPPING_OK ? out : NULL;
}

const mapping *pass_pad(pass_context *p, const mapping *m, int64_t n)
{
    const mapping *out = NULL;
    return mapping_pad(p->mappings, m, n, PAD_TOP, &out) == MAPPING_OK ? out : NULL;
}

bool pass_is_group(pass_context *p, const factor **pieces, size_t count)
{
    const mapping *all = mapping_identity(p->mappings);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i; k > 0 && pieces[k - 1]->weight < pieces[k]->weight; k--) {
            const factor *swap = pieces[k];
            pieces[k] = pieces[k - 1];
            pieces[k - 1] = swap;
        }
    for (size_t i = 0; i < count && all; i++) {
        factor live = *pieces[i];
        live.extent = live.live;
        all = pass_pair(p, all, mapping_of_factor(p->mappings, &live));
    }
    const mapping *whole = NULL;
    return all && count && mapping_pad(p->mappings, pieces[0]->inner, all->size, PAD_TOP, &whole) == MAPPING_OK &&
           mapping_equal(p->mappings, all, whole);
}

const mapping *pass_beside(pass_context *p, const tensor *t)
{
    const mapping *all = mapping_identity(p->mappings);
    for (component c = CHIP; c <= ROW && all; c++)
        if (t->part[c])
            all = pass_pair(p, all, t->part[c]);
    return all;
}

const axis *pass_shared_digit(const mapping *a, const mapping *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++) {
            const factor *x = &a->factors[i], *y = &b->factors[j];
            if (x->axis && x->axis == y->axis && x->weight < y->weight * y->live && y->weight < x->weight * x->live)
                return x->axis;
        }
    return NULL;
}

/* ---- sequences in configurations and in words ---- */

sequence_limits sequencer_limits(const target *t, int64_t scale)
{
    return (sequence_limits){.entries = t->sequencer_entries,
                             .entry_size = t->sequencer_entry_size,
                             .stride_min = t->sequencer_stride_min,
                             .stride_max = t->sequencer_stride_max,
                             .scale = scale};
}

void sequencer_config_fill(sequencer_config *config, const sequence *seq, int64_t scale)
{
    config->count = (uint32_t)seq->count;
    for (size_t i = 0; i < seq->count; i++)
        config->entries[i] =
            (sequencer_entry){.term = seq->parts[i].term, .size = seq->parts[i].size, .stride = seq->parts[i].stride * scale};
}

diag_id sequence_id(const sequence *seq)
{
    static const diag_id ids[] = {
        [SEQUENCE_INSUFFICIENT] = E_SEQ_INSUFFICIENT,
        [SEQUENCE_INCOMPATIBLE] = E_SEQ_INCOMPATIBLE,
        [SEQUENCE_TWICE] = E_SEQ_TWICE,
        [SEQUENCE_PADDING] = E_SEQ_PAD,
        [SEQUENCE_BROADCAST] = E_SEQ_WRITE_BCAST,
        [SEQUENCE_UNWRITTEN] = E_SEQ_UNWRITTEN,
        [SEQUENCE_OUTSIDE] = E_SEQ_WRITE_OOB,
        [SEQUENCE_ENTRIES] = E_SEQ_ENTRIES,
        [SEQUENCE_ENTRY_SIZE] = E_SEQ_ITER,
        [SEQUENCE_STRIDE] = E_SEQ_STRIDE,
        [SEQUENCE_WINDOW_WRITE] = E_SEQ_WINDOW,
        [SEQUENCE_WINDOW_TERMS] = E_SEQ_WINDOW,
        [SEQUENCE_WINDOW_SHARED] = E_SEQ_WINDOW,
        [SEQUENCE_WINDOW_MISSING] = E_SEQ_WINDOW,
        [SEQUENCE_WINDOW_BORDER] = E_SEQ_WINDOW,
    };
    return ids[seq->failure];
}

const char *sequence_table(pass_context *p, const sequence *seq)
{
    strbuf s;
    strbuf_init(&s, p->arena);
    for (size_t i = 0; i < seq->count; i++) {
        strbuf_printf(&s, "%s", i ? ", " : "");
        mapping_print(seq->parts[i].term, &s);
        strbuf_printf(&s, " %lld : %lld", (long long)seq->parts[i].size, (long long)seq->parts[i].stride);
    }
    return seq->count ? s.text : "none";
}

const char *sequence_reason(pass_context *p, const sequence *seq)
{
    const char *term = seq->term ? mapping_text(seq->term, p->arena) : "";
    const char *name = seq->axis ? seq->axis->name : "";
    long long measure = seq->measure, limit = seq->limit;
    switch (seq->failure) {
    case SEQUENCE_INSUFFICIENT:
        return arena_printf(p->arena, "insufficient input: the stream asks for `%s`, but the buffer does not store that digit%s%s", term,
                            seq->axis ? " of axis " : "", name);
    case SEQUENCE_INCOMPATIBLE:
        return !seq->axis
                   ? arena_printf(p->arena,
                                  "incompatible shapes: the group `%s` goes on over an axis's end, where the buffer's addresses do not",
                                  term)
                   : arena_printf(p->arena, "incompatible shapes: `%s` cuts axis %s where the buffer's digits do not", term, name);
    case SEQUENCE_TWICE:
        return !seq->axis ? arena_printf(p->arena, "`%s` counts through what another term counts through", term)
                          : arena_printf(p->arena, "axis %s is used twice: `%s` counts through a digit that another term counts through",
                                         name, term);
    case SEQUENCE_PADDING: return arena_printf(p->arena, "the padding of `%s` cannot be expressed as a loop", term);
    case SEQUENCE_BROADCAST:
        return arena_printf(p->arena,
                            "`%s` of the stream has no place in the destination: one cell would receive several "
                            "values",
                            term);
    case SEQUENCE_UNWRITTEN: return arena_printf(p->arena, "`%s` of the destination is not written completely", term);
    case SEQUENCE_OUTSIDE:
        return arena_printf(p->arena, "padding of the stream would be written over live cells or outside the tensor, at `%s`", term);
    case SEQUENCE_ENTRIES:
        return arena_printf(p->arena, "the walk needs %lld sequencer entries after merging, the table has %lld", measure, limit);
    case SEQUENCE_ENTRY_SIZE:
        return arena_printf(p->arena, "`%s` needs %lld iterations, an entry has at most %lld, and no divisor splits it", term, measure,
                            limit);
    case SEQUENCE_STRIDE:
        return arena_printf(p->arena, "`%s` needs a stride of %lld elements, beyond the signed 32-bit field", term, measure);
    case SEQUENCE_WINDOW_WRITE:
        return arena_printf(p->arena, "`%s` would be written through the window `%s`, whose places several indices share", term, name);
    case SEQUENCE_WINDOW_TERMS:
        return arena_printf(p->arena, "the window `%s` is read by some of its terms, but `%s` is not among them", name, term);
    case SEQUENCE_WINDOW_SHARED:
        return arena_printf(p->arena, "`%s` selects a place of the window `%s` and of another part of the buffer at once", term, name);
    case SEQUENCE_WINDOW_BORDER:
        return arena_printf(
            p->arena, "the window `%s` is not held as a whole: `%s` reaches places that are zero, and only @align reads those", name, term);
    case SEQUENCE_WINDOW_MISSING: return arena_printf(p->arena, "the buffer has the terms of the window `%s`, but not the window", name);
    case SEQUENCE_OK: break;
    }
    return "no reason";
}

/* Why neighbours did not merge, for a table that is too long. */
static void explain_merging(pass_context *p, diag *d, const sequence *seq)
{
    for (size_t i = 0; i + 1 < seq->count; i++) {
        const sequence_part *o = &seq->parts[i], *f = &seq->parts[i + 1];
        diag_note(p->diags, d, SRC_NOWHERE, "`%s` and `%s` do not merge: %lld is not %lld x %lld", mapping_text(o->term, p->arena),
                  mapping_text(f->term, p->arena), (long long)o->stride, (long long)f->size, (long long)f->stride);
    }
}

const char *sequence_advice(pass_context *p, const sequence *seq)
{
    const char *name = seq->axis ? seq->axis->name : "";
    switch (seq->failure) {
    case SEQUENCE_INSUFFICIENT:
        return !seq->axis
                   ? "store the whole group in the buffer"
                   : arena_printf(p->arena,
                                  "store the whole axis `%s` in the buffer, or name a new axis with axes! for an intended broadcast", name);
    case SEQUENCE_INCOMPATIBLE:
        return !seq->axis
                   ? "store the axes of the group next to each other in its order, or stream them one by one"
                   : arena_printf(p->arena, "cut `%s` at common divisors on both sides, or stream it in the buffer's own order", name);
    case SEQUENCE_TWICE:
        return !seq->axis ? "let each digit of an axis occur once in the stream"
                          : arena_printf(p->arena, "let each digit of `%s` occur once in the stream", name);
    case SEQUENCE_ENTRIES: return "stream neighbouring digits in the buffer's own order, so that they merge";
    case SEQUENCE_ENTRY_SIZE: return arena_printf(p->arena, "pad the axis to a size that has a divisor up to %lld", (long long)seq->limit);
    case SEQUENCE_UNWRITTEN:
    case SEQUENCE_BROADCAST:
    case SEQUENCE_OUTSIDE: return "declare the destination with exactly the stream's digits and padding";
    case SEQUENCE_PADDING: return "pad the outermost axis of the group instead of the group";
    case SEQUENCE_WINDOW_WRITE:
    case SEQUENCE_WINDOW_BORDER:
    case SEQUENCE_WINDOW_MISSING: return arena_printf(p->arena, "move the window as it is: name `%s` on both sides", name);
    case SEQUENCE_WINDOW_TERMS: return arena_printf(p->arena, "name every term of `%s` in the stream, or `%s` itself", name, name);
    case SEQUENCE_WINDOW_SHARED: return arena_printf(p->arena, "let each term of `%s` stand in one part of the buffer only", name);
    case SEQUENCE_STRIDE:
        return arena_printf(p->arena, "keep it within %lld elements: cut the buffer into smaller tensors", (long long)seq->limit);
    case SEQUENCE_OK: break;
    }
    return NULL;
}

void sequence_explain(pass_context *p, diag *d, const sequence *seq, const mapping *buffer, const mapping *time, const mapping *packet,
                      const char *remedy)
{
    diag_note(p->diags, d, SRC_NOWHERE, "buffer %s; stream time %s, packet %s", pass_text(p, buffer), pass_text(p, time),
              pass_text(p, packet));
    diag_note(p->diags, d, SRC_NOWHERE, "entries so far (term, size : stride in elements, outermost first): %s", sequence_table(p, seq));
    if (seq->failure == SEQUENCE_ENTRIES)
        explain_merging(p, d, seq);
    const char *advice = sequence_advice(p, seq);
    if (advice)
        diag_help(p->diags, d, "%s%s%s", advice, remedy ? "; accepted: " : "", remedy ? remedy : "");
}
