#include "ir/print.h"

#include "ir/work.h"

#include <stdarg.h>

static void print_tensor(const tensor *t, strbuf *out)
{
    strbuf_printf(out, "%s %s", dtype_row_of(t->dtype)->name, tensor_kind_name(t->kind));
    const char *separator = " [";
    for (const component *p = tensor_kind_components(t->kind); *p < MAPPING_COMPONENTS; p++) {
        component c = *p;
        strbuf_printf(out, "%s%s: ", separator, component_parameter(c));
        if (t->part[c])
            mapping_print(t->part[c], out);
        else
            strbuf_puts(out, "_");
        separator = " | ";
    }
    strbuf_puts(out, "]");
    if (t->kind == TENSOR_TRF)
        strbuf_printf(out, " in %s", trf_address_name(t->trf_address));
    else if (tensor_kind_has_address(t->kind) && t->address >= 0)
        strbuf_printf(out, " at %lld", (long long)t->address);
}

static void print_entries(const sequencer_config *s, strbuf *out)
{
    strbuf_puts(out, " [");
    for (uint32_t i = 0; i < s->count; i++) {
        strbuf_printf(out, "%s%lld : %lld", i ? ", " : "", (long long)s->entries[i].size, (long long)s->entries[i].stride);
        if (s->walk == WALK_COPY)
            strbuf_printf(out, " -> %lld", (long long)s->entries[i].stride2);
        if (s->entries[i].stride3)
            strbuf_printf(out, " by %lld", (long long)s->entries[i].stride3);
    }
    strbuf_printf(out, "] %ss", walk_row_of(s->walk)->unit);
}

/* A line of its own; nothing for the empty text. */
__attribute__((format(printf, 2, 3))) static void print_line(strbuf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(out->arena, format, args);
    va_end(args);
    if (*text)
        strbuf_printf(out, "\n        %s", text);
}

/* ---- a function for each CONFIG row ---- */

static void print_sequencer(const op *o, strbuf *out)
{
    strbuf_puts(out, "\n        sequencer");
    print_entries(o->sequencer, out);
    strbuf_printf(out, ", access %lld bytes, run %lld bytes", (long long)o->sequencer->access_bytes,
                  (long long)o->sequencer->contiguous_bytes);
}

static void print_dma(const op *o, strbuf *out)
{
    for (const dma_config *d = o->dma; d; d = d->next) {
        strbuf_puts(out, "\n        dma");
        print_entries(&d->sequencer, out);
        strbuf_printf(out, ", packet %lld bytes", (long long)d->packet_bytes);
    }
}

static void print_align(const op *o, strbuf *out)
{
    const align_config *a = o->align;
    strbuf_printf(out, "\n        stream_adapter collect_flits %lld, rows %lld, tiling ", (long long)a->collect_flits, (long long)a->rows);
    mapping_print(a->tiling, out);
    if (a->transpose_rows > 1)
        strbuf_printf(out, ", transpose_rows %lld", (long long)a->transpose_rows);
    if (a->shift)
        strbuf_printf(out, ", initial_shift %lld, shift_stride %lld, shifts %lld", (long long)a->shift->initial_shift,
                      (long long)a->shift->shift_stride, (long long)a->shift->shifts);
    if (a->reg_read_size) {
        strbuf_printf(out, "\n        trf_sequencer reg_read_size %lld", (long long)a->reg_read_size);
        print_entries(&a->trf_sequencer, out);
    }
}

static void print_contract(const op *o, strbuf *out)
{
    static const char *const counters[] = {"step", "lane", "slice", "cluster", "chip"};
    strbuf_printf(out, "\n        contract depth %lld, columns %lld", (long long)o->contract->tree_depth, (long long)o->contract->columns);
    for (const lane_mask *m = o->contract->masks; m; m = m->next) {
        strbuf_puts(out, "\n        mask");
        for (uint32_t i = 0; i < m->count; i++)
            strbuf_printf(out, "%s(%s / %lld %% %lld) * %lld", i ? " + " : " ", counters[m->terms[i].counter], (long long)m->terms[i].div,
                          (long long)m->terms[i].mod, (long long)m->terms[i].weight);
        strbuf_printf(out, " < %lld", (long long)m->limit);
    }
}

static void print_accumulate(const op *o, strbuf *out)
{
    strbuf_printf(out, "\n        accumulate %s", o->accumulation == INTERLEAVED ? "Interleaved" : "Sequential");
    for (uint32_t i = 0; i < o->accumulate->count; i++)
        strbuf_printf(out, " %s %lld", o->accumulate->loops[i].reduced ? "sum" : "keep", (long long)o->accumulate->loops[i].size);
    strbuf_printf(out, ", slots %lld", (long long)o->accumulate->slots);
}

static void print_vector_op(const op *o, strbuf *out)
{
    const vector_op_config *v = o->vector_op;
    strbuf_printf(out, "\n        vector_op %s(", v->row->name);
    for (unsigned i = 0; i < v->row->operands; i++) {
        unsigned from = vector_mode_of(v->mode, i);
        const op *beside = op_stash(o) ? op_stash(o) : op_vrf(o);
        if (v->zip)
            strbuf_printf(out, "%sgroup %u", i ? ", " : "", from);
        else if (from == 1 && beside)
            strbuf_printf(out, "%s%%%u", i ? ", " : "", beside->index);
        else if (from)
            strbuf_printf(out, "%s%#x", i ? ", " : "", (unsigned)v->constants[from - 1]);
        else
            strbuf_printf(out, "%sstream", i ? ", " : "");
    }
    strbuf_puts(out, ")");
    if (v->tags != VECTOR_ALL_TAGS)
        strbuf_printf(out, " of tags %#06x", v->tags);
    if (v->groups != VECTOR_BOTH_GROUPS)
        strbuf_printf(out, " of group %u", v->groups >> 1);
}

static void print_vector_tag(const op *o, strbuf *out)
{
    strbuf_puts(out, "\n        vector_tag");
    for (unsigned bit = 0; bit < VECTOR_TAG_BITS; bit++)
        strbuf_printf(out, "%s %s %#x", bit ? "," : "", vector_compare_row_of(o->vector_tag->of[bit].compare)->name,
                      (unsigned)o->vector_tag->of[bit].with);
}

static void print_vector_reduce(const op *o, strbuf *out)
{
    const vector_reduce_config *r = o->vector_reduce;
    strbuf_printf(out, "\n        vector_reduce %s%s", r->row->name, r->tree ? " tree" : "");
    for (uint32_t i = 0; i < r->count; i++)
        strbuf_printf(out, " %s %lld", r->loops[i].reduced ? "reduce" : "keep", (long long)r->loops[i].size);
    strbuf_printf(out, ", slots %lld", (long long)r->slots);
    for (const valid_count *v = r->counts; v; v = v->next) {
        strbuf_printf(out, "\n        valid_count %s", valid_count_name(v->kind));
        for (uint32_t i = 0; i < v->count; i++)
            strbuf_printf(out, " %lld:%lld", (long long)v->loops[i].size, (long long)v->loops[i].stride);
        strbuf_printf(out, " < %lld", (long long)v->limit);
        if (v->kind == VALID_COUNT_CLIPPER)
            strbuf_printf(out, ", span %lld", (long long)v->span);
        else
            strbuf_printf(out, ", slice %lld of mask %#llx", (long long)v->slice, (unsigned long long)v->slice_mask);
    }
}

static void print_vector_slices(const op *o, strbuf *out)
{
    const vector_slices_config *r = o->vector_slices;
    strbuf_printf(out, "\n        vector_slices %s ring %lld", r->row->name, (long long)r->ring);
    for (uint32_t i = 0; i < r->count; i++) {
        strbuf_printf(out, " %lld:%lld", (long long)r->loops[i].size, (long long)r->loops[i].stride);
        if (r->loops[i].place)
            strbuf_printf(out, "@%lld", (long long)r->loops[i].place);
    }
}

/* A mapping of a configuration; "?" until its pass has run, or where that refused the operation. */
static const char *derived(const mapping *m, arena *a)
{
    return m ? mapping_text(m, a) : "?";
}

/* Those that have a CONFIG_IR row. */
#define NUMBER(n) ((long long)(n))
#define DERIVED(mapping, arena) derived((mapping), (arena))
#define CONFIG_IR(config, ...) \
    static void print_##config(const op *o, strbuf *out) \
    { \
        const config##_config *x = o->config; \
        (void)x; \
        print_line(out, __VA_ARGS__); \
    }
#include "target/engines.def"

static void print_configuration(const op *o, strbuf *out)
{
#define CONFIG(name, ...) \
    if (o->name) \
        print_##name(o, out);
#include "target/engines.def"
}

static void print_operands(const op *o, strbuf *out)
{
    for (size_t i = 0; i < o->operand_count; i++) {
        const op_operand *x = &o->operands[i];
        strbuf_printf(out, "%s %%%u", operand_access_of(x->role) == WRITES ? " into" : i ? "," : "", x->of->index);
        if (x->role == OPERAND_SECOND)
            strbuf_printf(out, " by %s", o->interleave->name);
    }
}

static void print_guards(const op *o, strbuf *out)
{
    for (const run_guard *g = o->runs_if; g && op_row_of(o->kind)->contexts; g = g->outer)
        strbuf_printf(out, "\n        if %%%u - %lld, modulo 2^%u, is at most %llu", g->port->index, (long long)(int64_t)g->first, g->bits,
                      (unsigned long long)g->span);
}

void kernel_print(const kernel *k, strbuf *out)
{
    strbuf_printf(out, "kernel %s\n", k->name);
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        strbuf_printf(out, "    %%%u = %s %s", o->index, context_name(o->context), op_kind_name(o->kind));
        print_operands(o, out);
        if (o->kind == IR_PORT_IN || o->kind == IR_PORT_OUT)
            strbuf_printf(out, " \"%s\"", o->name);
        strbuf_puts(out, ": ");
        print_tensor(&o->out, out);
        print_configuration(o, out);
        print_guards(o, out);
        strbuf_puts(out, o->bad ? "  (refused)\n" : "\n");
    }
}

void module_print(const module *m, strbuf *out)
{
    for (size_t i = 0; i < m->count; i++)
        kernel_print(m->kernels[i], out);
}
