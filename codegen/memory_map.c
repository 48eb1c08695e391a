#include "codegen/memory_map.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "ir/placed.h"
#include "ir/work.h"
#include "support/json_text.h"
#include "support/strbuf.h"

static uint32_t line_of(const emit_context *e, const op *o)
{
    return e->line_of ? e->line_of(e->user, o->range) : 0;
}

static const char *name_of(const op *o)
{
    return o->name[0] ? o->name : op_kind_name(o->kind);
}

static const char *origin_of(const op *o)
{
    return o->kind == IR_PORT_IN ? "port" : o->stash_bytes > 0 ? "fixed" : o->unplaced ? "chosen" : "given";
}

/* ---- text ---- */

static void put_list(const emit_context *e, tensor_kind kind, const placed_list *l, strbuf *out)
{
    strbuf_printf(out, "  %s: %" PRId64 " bytes used of %" PRId64 ", at most %" PRId64 " live at once\n", memory_name(kind), l->peak,
                  l->limit, l->least);
    strbuf_puts(out, "         begin           end         bytes  work       lines        by      name\n");
    for (size_t i = 0; i < l->count; i++) {
        const placed_memory *x = &l->items[i];
        const char *steps = arena_printf(e->arena, "%u..%u", x->live.first, x->live.last);
        const char *lines = arena_printf(e->arena, "%u..%u", line_of(e, x->live.first_use), line_of(e, x->live.last_use));
        strbuf_printf(out, "  %12" PRId64 "  %12" PRId64 "  %12" PRId64 "  %-9s  %-11s  %-6s  %s\n", x->begin, x->end, x->end - x->begin,
                      steps, lines, origin_of(x->op), name_of(x->op));
    }
}

const char *memory_text(const emit_context *e, const module *m)
{
    strbuf out;
    strbuf_init(&out, e->arena);
    for (size_t i = 0; i < m->count; i++) {
        const kernel *k = m->kernels[i];
        const op *const *works;
        size_t count = kernel_works(k, e->arena, &works);
        strbuf_printf(&out, "kernel %s, %zu piece%s of work\n", k->name, count, count == 1 ? "" : "s");
        for (int kind = 0; kind < TENSOR_MEMORY_COUNT; kind++) {
            placed_list l = placed_memories(e->target, k, tensor_memories[kind], e->arena);
            if (l.count > 0)
                put_list(e, tensor_memories[kind], &l, &out);
        }
    }
    return out.text;
}

/* ---- JSON ---- */

static json_t *memory_of(const emit_context *e, const placed_memory *x)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:[I,I], s:[i,i]}", "name", name_of(x->op), "by", origin_of(x->op), "op", (int)x->op->index,
                     "begin", (json_int_t)x->begin, "end", (json_int_t)x->end, "work", (json_int_t)x->live.first, (json_int_t)x->live.last,
                     "lines", (int)line_of(e, x->live.first_use), (int)line_of(e, x->live.last_use));
}

static json_t *kernel_of(const emit_context *e, const kernel *k)
{
    static const char *const keys[] = {"hbm", "dm", "trf", "vrf", "spm"};
    const op *const *works;
    json_t *j = json_pack("{s:s, s:I}", "name", k->name, "works", (json_int_t)kernel_works(k, e->arena, &works));
    for (int kind = 0; kind < TENSOR_MEMORY_COUNT; kind++) {
        placed_list l = placed_memories(e->target, k, tensor_memories[kind], e->arena);
        json_t *all = json_array();
        for (size_t i = 0; i < l.count; i++)
            json_array_append_new(all, memory_of(e, &l.items[i]));
        json_object_set_new(j, keys[kind],
                            json_pack("{s:I, s:I, s:I, s:o}", "limit", (json_int_t)l.limit, "peak", (json_int_t)l.peak, "least",
                                      (json_int_t)l.least, "memories", all));
    }
    return j;
}

const char *memory_json(const emit_context *e, const module *m)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < m->count; i++)
        json_array_append_new(kernels, kernel_of(e, m->kernels[i]));
    json_t *all = json_pack("{s:i, s:s, s:o}", "format", 1, "target", e->target->name, "kernels", kernels);
    return json_dump_text(all, JSON_INDENT(2), e->arena);
}

/* ---- picture ---- */

/* Pixels. */
enum { LEFT = 120, TOP = 48, WIDTH = 720, ROW_HEIGHT = 220, GAP = 64, LEAST_HEIGHT = 3, LABELLED_HEIGHT = 11, LABELLED_WIDTH = 24 };

/* Time from left to right, one column for each piece of work; addresses upwards, as far as they are used. */
static void put_picture(const emit_context *e, const kernel *k, tensor_kind kind, const placed_list *l, int top, strbuf *out)
{
    double column = (double)WIDTH / (l->works + 1), scale = (double)ROW_HEIGHT / (double)(l->peak > 0 ? l->peak : 1);
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"title\">%s: ", LEFT, top - 8, memory_name(kind));
    strbuf_puts_xml(out, k->name);
    strbuf_printf(out, ", %" PRId64 " bytes used of %" PRId64 ", at most %" PRId64 " live at once</text>\n", l->peak, l->limit, l->least);
    strbuf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n", LEFT, top, WIDTH, ROW_HEIGHT);
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"tick\">%" PRId64 "</text>\n<text x=\"%d\" y=\"%d\" class=\"tick\">0</text>\n",
                  LEFT - 6, top + 10, l->peak, LEFT - 6, top + ROW_HEIGHT);
    for (size_t i = 0; i < l->count; i++) {
        const placed_memory *x = &l->items[i];
        uint32_t last = x->live.last < l->works ? x->live.last : l->works;
        double left = LEFT + column * x->live.first, width = column * (last - x->live.first + 1),
               height = scale * (double)(x->end - x->begin);
        double y = top + ROW_HEIGHT - scale * (double)x->end;
        strbuf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"><title>", left, y, width,
                      height > LEAST_HEIGHT ? height : LEAST_HEIGHT, origin_of(x->op));
        strbuf_puts_xml(out, name_of(x->op));
        strbuf_printf(out, ": bytes %" PRId64 "..%" PRId64 ", work %u..%u, lines %u..%u</title></rect>\n", x->begin, x->end, x->live.first,
                      last, line_of(e, x->live.first_use), line_of(e, x->live.last_use));
        if (height >= LABELLED_HEIGHT && width >= LABELLED_WIDTH) {
            strbuf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">", left + 3, y + height / 2 + 4);
            strbuf_puts_xml(out, name_of(x->op));
            strbuf_puts(out, "</text>\n");
        }
    }
}

const char *memory_svg(const emit_context *e, const module *m)
{
    strbuf body, out;
    strbuf_init(&body, e->arena);
    strbuf_init(&out, e->arena);
    int top = TOP;
    for (size_t i = 0; i < m->count; i++)
        for (int kind = 0; kind < TENSOR_MEMORY_COUNT; kind++) {
            placed_list l = placed_memories(e->target, m->kernels[i], tensor_memories[kind], e->arena);
            if (l.count == 0)
                continue;
            put_picture(e, m->kernels[i], tensor_memories[kind], &l, top, &body);
            top += ROW_HEIGHT + GAP;
        }
    strbuf_printf(&out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n"
                  "<style>.frame{fill:none;stroke:#999} .chosen{fill:#9ec5e8;stroke:#33638f} .given{fill:#d9d9d9;stroke:#666} "
                  ".fixed{fill:#e8c5c5;stroke:#8f3333} "
                  ".port{fill:#f3d9a4;stroke:#8a6a1f} .tick{text-anchor:end;fill:#555} .title{font-size:13px}</style>\n"
                  "<text x=\"%d\" y=\"18\">memory over time: one column for each piece of work, in the order of issue; blue: placed by "
                  "visac, grey: by the "
                  "source, yellow: ports that come in, red: what a pass sets aside</text>\n%s</svg>\n",
                  LEFT + WIDTH + 24, top, LEFT, body.bytes ? body.text : "");
    return out.text;
}

/* ---- order ---- */

static void put_order(const emit_context *e, const kernel *k, strbuf *out)
{
    kernel text = *k;
    text.issue = NULL;
    const op *const *issue, *const *written;
    size_t count = kernel_works(k, e->arena, &issue), *place = ARENA_ARRAY(e->arena, size_t, k->op_count + 1), moved = 0, next = 0;
    kernel_works(&text, e->arena, &written);
    for (size_t i = 0; i < count; i++)
        place[written[i]->index] = i;
    bool *is_issued = ARENA_ARRAY(e->arena, bool, count + 1), *is_moved = ARENA_ARRAY(e->arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) { /* moved: issued while something that stands before it in the text is not */
        is_issued[place[issue[i]->index]] = true;
        is_moved[i] = place[issue[i]->index] > next;
        moved += is_moved[i];
        while (next < count && is_issued[next])
            next++;
    }
    strbuf_printf(out, "kernel %s: %zu piece%s of work, %zu issued before what the text has before %s", k->name, count,
                  count == 1 ? "" : "s", moved, moved == 1 ? "it" : "them");
    if (moved > 0 && k->moved_for_room)
        strbuf_puts(out, ": in the order of the text memory does not fit");
    else if (moved > 0)
        strbuf_printf(out, ": %" PRId64 " cycles instead of %" PRId64 ", %" PRId64 " saved", k->cycles, k->text_cycles,
                      k->text_cycles - k->cycles);
    strbuf_puts(out, "\n");
    for (size_t i = 0; i < count && moved > 0; i++) {
        work w;
        work_make(e->target, issue[i], e->arena, &w);
        size_t from = place[issue[i]->index];
        strbuf_printf(out, "  %5zu  %-4s  line %-5u %s%s%s%s%s", i, context_name(w.context), line_of(e, w.first),
                      op_kind_name(w.first->kind), w.first != w.last ? " .. " : "", w.first != w.last ? op_kind_name(w.last->kind) : "",
                      w.last->name[0] ? " " : "", w.last->name);
        strbuf_puts(out, is_moved[i] ? arena_printf(e->arena, "; in the text %zu\n", from) : "\n");
    }
}

const char *order_text(const emit_context *e, const module *m, bool moved_only)
{
    strbuf out;
    strbuf_init(&out, e->arena);
    strbuf_puts(&out, "");
    for (size_t i = 0; i < m->count; i++)
        if (m->kernels[i]->issue || !moved_only)
            put_order(e, m->kernels[i], &out);
    return out.text;
}
