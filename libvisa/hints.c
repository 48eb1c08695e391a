/* include/visa_editor.h: what was derived, where an editor may show it.
 *
 * The one idea: an operation knows which of its mappings were written and which were inferred, and which sequencer it got; when its command
 * runs the binary says, as visac --report has it. All of it stands after the call that it is of. */
#include <inttypes.h>
#include <string.h>

#include "frontend/parser.tab.h"
#include "libvisa/editor.h"
#include "runtime/timing/line_cycles.h"
#include "support/budget.h"
#include "support/order.h"
#include "support/strbuf.h"

typedef struct hints {
    visa_compilation *c;
    uint32_t begin, end;
    token_list tokens;
    visa_hint *items;
    size_t count, capacity;
} hints;

static void add(hints *h, uint32_t offset, visa_hint_kind kind, const char *text, const char *more)
{
    visa_hint one = {offset, kind, text, more};
    ARENA_PUSH(h->c->arena, h->items, h->count, h->capacity, one);
}

/* Where a call ends whose name begins there: after `::<..>` and `(..)`. */
static uint32_t end_of_call(const hints *h, src_range name)
{
    const token_list *t = &h->tokens;
    uint32_t i = token_from(t->items, (uint32_t)t->count, name.begin) + 1;
    if (i + 1 < t->count && t->items[i].kind == T_COLON2 && t->items[i + 1].kind == '<') {
        int depth = 0;
        for (i++; i < t->count; i++) {
            uint16_t kind = t->items[i].kind;
            depth += kind == '<' ? 1 : kind == '>' || kind == T_GT_GT ? -1 : 0;
            if (depth == 0 || kind == ';' || kind == '{')
                break;
            if (t->items[i].match != TOKEN_NONE && t->items[i].match > i)
                i = t->items[i].match;
        }
        i++;
    }
    bool called = i < t->count && t->items[i].kind == '(' && t->items[i].match != TOKEN_NONE;
    return called ? t->items[t->items[i].match].end : name.end;
}

static bool is_shown(component p)
{
    return p != CHIP && p != CLUSTER && p != SLICE;
}

static void hint_mapping(hints *h, const op *o, uint32_t offset)
{
    strbuf s;
    strbuf_init(&s, h->c->arena);
    for (const component *p = tensor_kind_components(o->out.kind); *p < MAPPING_COMPONENTS; p++)
        if (is_shown(*p) && o->out.part[*p] && o->parts[*p].begin == o->parts[*p].end) {
            strbuf_printf(&s, "%s%s m![", s.bytes ? ", " : "", component_parameter(*p));
            mapping_print(o->out.part[*p], &s);
            strbuf_puts(&s, "]");
        }
    if (s.bytes)
        add(h, offset, VISA_HINT_MAPPING, s.text, "inferred: it does not stand here");
}

static void put_entries(const sequencer_config *q, strbuf *s)
{
    strbuf_puts(s, "[");
    for (int i = 0; i < (int)q->count; i++)
        strbuf_printf(s, "%s%" PRId64 ":%" PRId64, i ? ", " : "", q->entries[i].size, q->entries[i].stride);
    strbuf_puts(s, "]");
}

static void hint_sequencer(hints *h, const op *o, uint32_t offset)
{
    strbuf s;
    strbuf_init(&s, h->c->arena);
    const char *more = "iterations:stride of the sequencer, outermost first";
    if (o->sequencer) {
        put_entries(o->sequencer, &s);
        more = arena_printf(h->c->arena, "%s, in %ss; an access has %" PRId64 " bytes", more, walk_row_of(o->sequencer->walk)->unit,
                            o->sequencer->access_bytes);
    } else if (o->align && o->align->reg_read_size) {
        put_entries(&o->align->trf_sequencer, &s);
        more = arena_printf(h->c->arena, "%s, of the TRF; a read has %" PRId64 " bytes", more, o->align->reg_read_size);
    } else if (o->dma) {
        put_entries(&o->dma->sequencer, &s);
        more = arena_printf(h->c->arena, "%s, in bytes of the source%s", more, o->dma->next ? "; the first of several copies" : "");
    }
    if (s.bytes)
        add(h, offset, VISA_HINT_SEQUENCER, s.text, more);
}

static void hint_operations(hints *h)
{
    for (size_t k = 0; k < h->c->module->count; k++)
        for (size_t i = 0; i < h->c->module->kernels[k]->op_count; i++) {
            const op *o = h->c->module->kernels[k]->ops[i];
            budget_spend(h->c->arena, 1);
            if (o->range.file != 0 || o->range.begin < h->begin || o->range.begin >= h->end || o->repeated || o->bad ||
                !op_kind_is_stage(o->kind))
                continue;
            uint32_t offset = end_of_call(h, o->range);
            hint_mapping(h, o, offset);
            hint_sequencer(h, o, offset);
        }
}

/* ---- cycles ---- */

static void hint_cycles(hints *h, const unsigned char *bytes, size_t size)
{
    arena *a = h->c->arena;
    binary b;
    diag_list silent;
    line_cycles_list lines;
    diag_list_init(&silent, a);
    if (!binary_read(bytes, size, a, &silent, &b))
        return;
    line_cycles_make(&b, TIMING_DOCUMENTED, a, &lines);
    for (size_t i = 0; i < lines.count; i++) {
        const line_cycles *one = &lines.items[i];
        source_line line = source_line_of(h->c->sources, 0, one->line);
        uint32_t offset = line.begin + line.bytes;
        while (offset > line.begin && strchr(" \t\r", line.text[offset - 1 - line.begin]))
            offset--;
        if (offset < h->begin || offset > h->end)
            continue;
        const char *more = one->runs > 1 ? arena_printf(a, "of %" PRId64 " runs; visac --report says when, and what binds them", one->runs)
                                         : "of what begins here; visac --report says when, and what binds it";
        add(h, offset, VISA_HINT_CYCLES, arena_printf(a, "%" PRId64 " cycles", one->cycles), more);
    }
}

static int by_offset(const void *a, const void *b)
{
    const visa_hint *x = a, *y = b;
    return order_then(ORDER(x->offset, y->offset), ORDER(x->kind, y->kind));
}

size_t visa_hints(visa_compilation *c, uint32_t begin, uint32_t end, const visa_hint **list)
{
    const unsigned char *bytes;
    size_t size;
    *list = NULL;
    bool whole = visa_error_count(c) == 0 && visa_emit(c, VISA_EMIT_BINARY, &bytes, &size); /* with guards of their own */
    if (c->exhausted || !c->module || COMPILATION_STOPS(c))
        return 0;
    hints h = {.c = c, .begin = begin, .end = end, .tokens = editor_tokens(c)};
    hint_operations(&h);
    if (whole)
        hint_cycles(&h, bytes, size);
    order_sort(h.items, h.count, sizeof *h.items, by_offset);
    *list = h.items;
    return h.count;
}
