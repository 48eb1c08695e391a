#include "codegen/tables.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ir/config.h"

static uint32_t line_of(const emit_context *e, src_range range)
{
    return e->line_of ? e->line_of(e->user, range) : 0;
}

static const char *space_name(tensor_kind kind)
{
    switch (kind) {
    case TENSOR_HBM: return "hbm";
    case TENSOR_DM: return "dm";
    case TENSOR_TRF: return "trf";
    case TENSOR_VRF: return "vrf";
    case TENSOR_SPM: return "spm";
    default: return "stream";
    }
}

/* The part of the packet or of time that is summed, as text for readers. */
static const char *summed_text(const emit_context *e, const mapping *from, const mapping *kept)
{
    return arena_printf(e->arena, "%s of %s",
                        from->size == kept->size ? "nothing"
                        : kept->size == 1        ? "all"
                                                 : "the rest",
                        mapping_text(from, e->arena));
}

/* ---- text ---- */

static void text_mapping(const tensor *t, const mapping_names *const *names, strbuf *out)
{
    const char *separator = "";
    for (const component *p = tensor_kind_components(t->kind); *p < MAPPING_COMPONENTS; p++) {
        component c = *p;
        strbuf_printf(out, "%s%s: ", separator, component_parameter(c));
        strbuf_puts(out, mapping_text_named(t->part[c], names ? names[c] : NULL, out->arena));
        separator = " | ";
    }
}

static void text_entries(const sequencer_config *s, bool innermost_first, strbuf *out)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const sequencer_entry *x = &s->entries[innermost_first ? s->count - 1 - i : i];
        strbuf_printf(out, "      Entry %u: { size: %lld, stride: %lld", i, (long long)x->size, (long long)x->stride);
        if (s->walk == WALK_COPY)
            strbuf_printf(out, " -> %lld", (long long)x->stride2);
        strbuf_puts(out, " }");
        strbuf_pad_to(out, 48);
        mapping_print(x->term, out);
        strbuf_puts(out, x->stride == 0 && x->size > 1 ? "  (broadcast)\n" : "\n");
    }
}

/* ---- text: a function for each CONFIG row ---- */

static void text_sequencer(const emit_context *e, const op *o, strbuf *out)
{
    const sequencer_config *s = o->sequencer;
    const walk_row *walk = walk_row_of(s->walk);
    strbuf_printf(out,
                  "    sequencer: %s %s, base %s, packet %s, access %s, contiguous %s; strides in "
                  "%ss, outermost first\n",
                  walk->memory, walk->access, arena_count(e->arena, s->base, "byte"), arena_count(e->arena, s->packet, "element"),
                  arena_count(e->arena, s->access_bytes, "byte"), arena_count(e->arena, s->contiguous_bytes, "byte"), walk->unit);
    text_entries(s, false, out);
}

static void text_dma(const emit_context *e, const op *o, strbuf *out)
{
    for (const dma_config *d = o->dma; d; d = d->next) {
        strbuf_printf(out, "    DMA: from %#llx to %#llx, packet %s%s; strides in bytes, source -> destination, outermost first\n",
                      (long long)d->source_base, (long long)d->destination_base, arena_count(e->arena, d->packet_bytes, "byte"),
                      d->granular ? ", element by element" : "");
        text_entries(&d->sequencer, false, out);
    }
}

/* What is between the flits and the packet: the loops are numbered as in the command, innermost first. */
static void text_shift(const emit_context *e, const align_config *a, strbuf *out)
{
    if (a->transpose_rows > 1)
        strbuf_printf(out, "    Stream Adapter: each flit is transposed from %s\n", arena_count(e->arena, a->transpose_rows, "row"));
    if (!a->shift)
        return;
    if (a->shift->shifts == 1) {
        strbuf_printf(out, "    Stream Adapter: initial_shift = %lld, in elements; limits [%lld, %lld] innermost first, pop_dim 1\n",
                      (long long)a->shift->initial_shift, (long long)a->tiling->size, (long long)a->packets);
        return;
    }
    strbuf_printf(out, "    Stream Adapter: initial_shift = %lld, shift_stride = %lld, in elements; %s of each pop: ",
                  (long long)a->shift->initial_shift, (long long)a->shift->shift_stride, arena_count(e->arena, a->shift->shifts, "packet"));
    mapping_print(a->shift->term, out);
    strbuf_printf(out, "; limits [%lld, %lld, %lld] innermost first, shift_dim 1, pop_dim 2\n", (long long)a->tiling->size,
                  (long long)a->shift->shifts, (long long)a->packets);
}

static void text_align(const emit_context *e, const op *o, strbuf *out)
{
    const align_config *a = o->align;
    strbuf_printf(out, "    Stream Adapter: collect_flits = %lld, Rows = %lld, ", (long long)a->collect_flits, (long long)a->rows);
    if (a->tiling->size == 1) {
        strbuf_puts(out, "no tiling\n");
    } else {
        strbuf_puts(out, "tiling");
        for (size_t i = 0; i < a->tiling->count; i++) {
            strbuf_puts(out, i ? ", " : " ");
            mapping_print_factor(&a->tiling->factors[i], out);
            strbuf_printf(out, " = %lld", (long long)a->tiling->factors[i].extent);
        }
        strbuf_puts(out, "\n");
    }
    text_shift(e, a, out);
    strbuf_printf(out, "    TRF Sequencer: reg_read_size = %s, broadcast x%lld; strides in bytes, innermost first\n",
                  arena_count(e->arena, a->reg_read_size, "byte"), (long long)a->broadcast);
    text_entries(&a->trf_sequencer, true, out);
}

static void text_contract(const emit_context *e, const op *o, strbuf *out)
{
    strbuf_printf(out, "    Reducer: tree depth %lld, %s per Row, sums %s\n", (long long)o->contract->tree_depth,
                  arena_count(e->arena, o->contract->columns, "column"), summed_text(e, op_input(o)->out.part[PACKET], o->contract->kept));
}

static void text_accumulate(const emit_context *e, const op *o, strbuf *out)
{
    strbuf_printf(out, "    Reducer: %s, keeps time ", o->accumulation == INTERLEAVED ? "Interleaved" : "Sequential");
    mapping_print(o->accumulate->kept, out);
    strbuf_printf(out, ", sums %s, %s, buffer %lld of %lld\n", summed_text(e, op_input(o)->out.part[TIME], o->accumulate->kept),
                  arena_count(e->arena, o->accumulate->slots, "slot"), (long long)o->accumulate->buffer,
                  (long long)o->accumulate->buffer_limit);
}

/* "stream, 2.5": what each operand is. */
static const char *vector_operands_text(const emit_context *e, const op *o)
{
    const vector_op_config *v = o->vector_op;
    const char *text = "";
    for (unsigned i = 0; i < v->row->operands; i++) {
        unsigned from = vector_mode_of(v->mode, i);
        const char *separator = i ? ", " : "";
        float x;
        if (from)
            memcpy(&x, &v->constants[from - 1], sizeof x);
        if (v->zip)
            text = arena_printf(e->arena, "%s%sgroup %u", text, separator, from);
        else if (!from)
            text = arena_printf(e->arena, "%s%sstream", text, separator);
        else if (from == 1 && op_stash(o))
            text = arena_printf(e->arena, "%s%sstash", text, separator);
        else if (from == 1 && op_vrf(o))
            text = arena_printf(e->arena, "%s%s%s", text, separator, op_vrf(o)->name[0] ? op_vrf(o)->name : "vrf");
        else if (vector_constant_type(v->row) == DTYPE_F32)
            text = arena_printf(e->arena, "%s%s%.9g", text, separator, (double)x);
        else
            text = arena_printf(e->arena, "%s%s%d", text, separator, (int)(int32_t)v->constants[from - 1]);
    }
    return text;
}

static void text_vector_op(const emit_context *e, const op *o, strbuf *out)
{
    const vector_op_row *row = o->vector_op->row;
    strbuf_printf(out, "    Vector: %s(%s)", row->name, vector_operands_text(e, o));
    if (row->alu != VECTOR_ALU_NONE)
        strbuf_printf(out, " in %s", vector_alu_name(row->alu));
    if (!o->vector_op->tags)
        strbuf_puts(out, ", never taken: no command");
    else if (o->vector_op->tags != VECTOR_ALL_TAGS)
        strbuf_printf(out, ", tags %#06x", o->vector_op->tags);
    if (o->vector_op->groups != VECTOR_BOTH_GROUPS)
        strbuf_printf(out, ", group %u", o->vector_op->groups >> 1);
    strbuf_puts(out, "\n");
}

/* "A 3 : 0, R # 12 / 4 4 : 1" without the terms: sizes and strides of the loops. */
static const char *valid_count_text(const emit_context *e, const valid_count *v)
{
    const char *text = "index";
    for (uint32_t i = 0; i < v->count; i++)
        text = arena_printf(e->arena, "%s%s %lld : %lld", text, i ? "," : "", (long long)v->loops[i].size, (long long)v->loops[i].stride);
    if (v->kind == VALID_COUNT_CLIPPER)
        return arena_printf(e->arena, "%s, below %lld, span %lld", text, (long long)v->limit, (long long)v->span);
    return arena_printf(e->arena, "%s, below %lld where slice & %#llx %s %lld", text, (long long)v->limit,
                        (unsigned long long)v->slice_mask, v->kind == VALID_COUNT_SLICE_MAJOR ? "is" : "reaches", (long long)v->slice);
}

static void text_vector_reduce(const emit_context *e, const op *o, strbuf *out)
{
    const vector_reduce_config *r = o->vector_reduce;
    strbuf_printf(out, "    Vector: %s over %s%s, time", r->row->name, r->label->name, r->tree ? ", the lanes of a packet as a tree" : "");
    for (uint32_t i = 0; i < r->count; i++)
        strbuf_printf(out, "%s %s %lld", i ? "," : "", r->loops[i].reduced ? "reduces" : "keeps", (long long)r->loops[i].size);
    strbuf_printf(out, "; %s\n", arena_count(e->arena, r->slots, "slot"));
    for (const valid_count *v = r->counts; v; v = v->next)
        strbuf_printf(out, "    Valid count: %s, %s\n", valid_count_name(v->kind), valid_count_text(e, v));
}

static void text_vector_slices(const emit_context *e, const op *o, strbuf *out)
{
    const vector_slices_config *r = o->vector_slices;
    strbuf_printf(out, "    Vector: %s over groups of %s", r->row->name, arena_count(e->arena, r->ring, "slice"));
    for (uint32_t i = 0; i < r->count; i++)
        if (r->loops[i].place)
            strbuf_printf(out, ", time / %lld %% %lld to slice / %lld", (long long)r->loops[i].stride, (long long)r->loops[i].size,
                          (long long)r->loops[i].place);
    strbuf_puts(out, "\n");
}

/* "Equal 0, Less 5, False, False": bit 0 first. */
static const char *comparisons_text(const emit_context *e, const op *o)
{
    const char *text = "";
    for (unsigned bit = 0; bit < VECTOR_TAG_BITS; bit++) {
        const vector_comparison *c = &o->vector_tag->of[bit];
        const vector_compare_row *row = vector_compare_row_of(c->compare);
        float x;
        memcpy(&x, &c->with, sizeof x);
        text = arena_printf(e->arena, "%s%s%s", text, bit ? ", " : "", row->name);
        if (row->constants)
            text = o->out.dtype == DTYPE_F32 ? arena_printf(e->arena, "%s %.9g", text, (double)x)
                                             : arena_printf(e->arena, "%s %d", text, (int)(int32_t)c->with);
    }
    return text;
}

static void text_vector_tag(const emit_context *e, const op *o, strbuf *out)
{
    strbuf_printf(out, "    Vector: tag bits %s\n", comparisons_text(e, o));
}

/* Those that have a CONFIG_TABLES row. */
#define NUMBER(n) ((long long)(n))
#define CONFIG_TABLES(config, ...) \
    static void text_##config(const emit_context *e, const op *o, strbuf *out) \
    { \
        const config##_config *x = o->config; \
        (void)e, (void)x; \
        strbuf_puts(out, "    "); \
        strbuf_printf(out, __VA_ARGS__); \
        strbuf_puts(out, "\n"); \
    }
#include "support/json_text.h"
#include "target/engines.def"

static void text_op(const emit_context *e, const op *o, strbuf *out)
{
    strbuf_printf(out, "  %s (line %u, %s context) %s\n    ", op_kind_name(o->kind), line_of(e, o->range), context_name(o->context),
                  dtype_row_of(o->out.dtype)->name);
    text_mapping(&o->out, NULL, out);
    strbuf_puts(out, "\n");
#define CONFIG(name, ...) \
    if (o->name) \
        text_##name(e, o, out);
#include "target/engines.def"
}

static bool is_whole(const tensor *t)
{
    for (const component *p = tensor_kind_components(t->kind); *p < MAPPING_COMPONENTS; p++)
        if (!t->part[*p])
            return false;
    return true;
}

const char *tables_op_text(const emit_context *e, const op *o)
{
    if (o->bad || !op_kind_is_stage(o->kind) || !is_whole(&o->out))
        return NULL;
    strbuf out;
    strbuf_init(&out, e->arena);
    text_op(e, o, &out);
    return out.text;
}

const char *tables_text(const emit_context *e, const module *m)
{
    strbuf out;
    strbuf_init(&out, e->arena);
    for (size_t i = 0; i < m->count; i++) {
        const kernel *k = m->kernels[i];
        strbuf_printf(&out, "%skernel %s (line %u): %s\n", i ? "\n" : "", k->name, line_of(e, k->range), k->einsum->e.text);
        for (size_t p = 0; p < k->port_count; p++) {
            const kernel_port *at = &k->ports[p];
            strbuf_printf(&out, "  port %s: %s %s in %s", at->name, at->is_output ? "out" : "in", dtype_row_of(at->tensor.dtype)->name,
                          space_name(at->tensor.kind));
            if (at->tensor.kind == TENSOR_HBM || at->tensor.kind == TENSOR_DM)
                strbuf_printf(&out, " at %lld", (long long)at->tensor.address);
            strbuf_puts(&out, ", ");
            text_mapping(&at->tensor, at->named, &out);
            strbuf_puts(&out, "\n");
        }
        for (size_t o = 0; o < k->op_count; o++)
            if (op_kind_is_stage(k->ops[o]->kind))
                text_op(e, k->ops[o], &out);
    }
    return out.text;
}

/* ---- JSON ---- */

static json_t *json_mapping(const emit_context *e, const tensor *t, const mapping_names *const *names)
{
    json_t *j = json_object();
    for (const component *p = tensor_kind_components(t->kind); *p < MAPPING_COMPONENTS; p++) {
        component c = *p;
        json_object_set_new(j, component_name(c), json_string(mapping_text_named(t->part[c], names ? names[c] : NULL, e->arena)));
    }
    return j;
}

/* ---- what CONFIG_SHOWN rows show: a function each; NULL: nothing ---- */

static json_t *json_fields(const emit_context *e, const op *o, config_id id, const void *config);

static json_t *json_sequencer_memory(const emit_context *e, const op *o, const sequencer_config *s)
{
    (void)e, (void)o;
    return s->walk == WALK_COPY ? NULL : json_string(walk_row_of(s->walk)->memory);
}

static json_t *json_sequencer_access(const emit_context *e, const op *o, const sequencer_config *s)
{
    (void)e, (void)o;
    return json_string(walk_row_of(s->walk)->access);
}

static json_t *json_sequencer_unit(const emit_context *e, const op *o, const sequencer_config *s)
{
    (void)e, (void)o;
    return json_string(walk_row_of(s->walk)->unit);
}

static json_t *json_sequencer_base(const emit_context *e, const op *o, const sequencer_config *s)
{
    (void)e, (void)o;
    return s->walk == WALK_COPY ? NULL : json_integer(s->base);
}

static json_t *json_sequencer_entries(const emit_context *e, const op *o, const sequencer_config *s)
{
    (void)o;
    json_t *entries = json_array();
    bool copy = s->walk == WALK_COPY;
    for (uint32_t i = 0; i < s->count; i++) {
        json_t *x = json_pack("{s:s, s:I}", "term", mapping_text(s->entries[i].term, e->arena), "size", (json_int_t)s->entries[i].size);
        json_object_set_new(x, copy ? "source_stride" : "stride", json_integer(s->entries[i].stride));
        if (copy)
            json_object_set_new(x, "destination_stride", json_integer(s->entries[i].stride2));
        json_array_append_new(entries, x);
    }
    return entries;
}

static json_t *json_to_trf_row(const emit_context *e, const op *o, const to_trf_config *x)
{
    (void)x;
    return json_string(mapping_text(o->out.part[ROW], e->arena));
}

static json_t *json_to_trf_address(const emit_context *e, const op *o, const to_trf_config *x)
{
    (void)e, (void)x;
    return json_string(trf_address_name(o->out.trf_address));
}

static json_t *json_to_vrf_address(const emit_context *e, const op *o, const to_vrf_config *x)
{
    (void)e, (void)x;
    return json_integer((json_int_t)o->out.address);
}

static json_t *json_align_tiling(const emit_context *e, const op *o, const align_config *a)
{
    (void)o;
    json_t *list = json_array();
    for (size_t i = 0; i < a->tiling->count; i++) {
        strbuf term;
        strbuf_init(&term, e->arena);
        mapping_print_factor(&a->tiling->factors[i], &term);
        json_array_append_new(list, json_pack("{s:s, s:I}", "term", term.text, "size", (json_int_t)a->tiling->factors[i].extent));
    }
    return list;
}

static json_t *json_align_shift(const emit_context *e, const op *o, const align_config *a)
{
    return a->shift ? json_fields(e, o, CONFIG_shift, a->shift) : NULL;
}

static json_t *json_align_trf_sequencer(const emit_context *e, const op *o, const align_config *a)
{
    return json_fields(e, o, CONFIG_sequencer, &a->trf_sequencer);
}

static json_t *json_contract_contracted(const emit_context *e, const op *o, const contract_config *x)
{
    (void)e, (void)o;
    return json_integer((json_int_t)1 << x->tree_depth);
}

static json_t *json_accumulate_kind(const emit_context *e, const op *o, const accumulate_config *x)
{
    (void)e, (void)x;
    return json_string(o->accumulation == INTERLEAVED ? "Interleaved" : "Sequential");
}

static json_t *json_accumulate_contracted(const emit_context *e, const op *o, const accumulate_config *x)
{
    (void)e, (void)o;
    int64_t contracted = 1;
    for (uint32_t i = 0; i < x->count; i++)
        contracted *= x->loops[i].reduced ? x->loops[i].size : 1;
    return json_integer(contracted);
}

static json_t *slot_loops(const accumulate_loop *from, uint32_t count)
{
    json_t *loops = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(loops, json_pack("{s:I, s:b, s:I}", "size", (json_int_t)from[i].size, "reduced", from[i].reduced,
                                               "slot_stride", (json_int_t)from[i].slot_stride));
    return loops;
}

static json_t *json_accumulate_loops(const emit_context *e, const op *o, const accumulate_config *x)
{
    (void)e, (void)o;
    return slot_loops(x->loops, x->count);
}

static json_t *json_lift_digits(const emit_context *e, const op *o, const lift_config *x)
{
    (void)o;
    json_t *digits = json_array();
    for (uint32_t i = 0; i < x->count; i++)
        json_array_append_new(digits, json_pack("{s:s, s:s, s:I, s:I}", "level", component_name(x->digits[i].level), "term",
                                                mapping_text(x->digits[i].term, e->arena), "div", (json_int_t)x->digits[i].div,
                                                "stride_bytes", (json_int_t)x->digits[i].stride_bytes));
    return digits;
}

static json_t *json_start_numbers(const emit_context *e, const op *o, const start_config *x)
{
    (void)o;
    json_t *numbers = json_array();
    for (uint32_t i = 0; i < x->count; i++) {
        const run_start *of = x->numbers[i].of;
        json_array_append_new(numbers, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "number", of->port->name, "index",
                                                 mapping_text(of->index, e->arena), "base", (json_int_t)x->numbers[i].base, "bits",
                                                 (json_int_t)of->bits, "positions", (json_int_t)of->positions, "stride_bytes",
                                                 (json_int_t)x->numbers[i].stride_bytes));
    }
    return numbers;
}

static json_t *json_vector_op_operation(const emit_context *e, const op *o, const vector_op_config *v)
{
    (void)e, (void)o;
    return json_string(v->row->name);
}

static json_t *json_vector_op_alu(const emit_context *e, const op *o, const vector_op_config *v)
{
    (void)e, (void)o;
    return v->row->alu == VECTOR_ALU_NONE ? NULL : json_string(vector_alu_name(v->row->alu));
}

static json_t *json_vector_op_operands(const emit_context *e, const op *o, const vector_op_config *v)
{
    (void)v;
    return json_string(vector_operands_text(e, o));
}

static json_t *json_vector_op_tags(const emit_context *e, const op *o, const vector_op_config *v)
{
    (void)e, (void)o;
    return v->tags == VECTOR_ALL_TAGS ? NULL : json_integer(v->tags);
}

static json_t *json_vector_op_group(const emit_context *e, const op *o, const vector_op_config *v)
{
    (void)e, (void)o;
    return v->groups == VECTOR_BOTH_GROUPS ? NULL : json_integer(v->groups >> 1);
}

static json_t *json_vector_tag_comparisons(const emit_context *e, const op *o, const vector_tag_config *x)
{
    (void)x;
    return json_string(comparisons_text(e, o));
}

static json_t *json_vector_width_kind(const emit_context *e, const op *o, const vector_width_config *w)
{
    (void)e, (void)o;
    return json_string(vector_width_name(w->kind));
}

static json_t *json_vector_reduce_operation(const emit_context *e, const op *o, const vector_reduce_config *r)
{
    (void)e, (void)o;
    return json_string(r->row->name);
}

static json_t *json_vector_reduce_loops(const emit_context *e, const op *o, const vector_reduce_config *r)
{
    (void)e, (void)o;
    return slot_loops(r->loops, r->count);
}

static json_t *json_vector_reduce_valid_counts(const emit_context *e, const op *o, const vector_reduce_config *r)
{
    (void)e, (void)o;
    json_t *counts = json_array();
    for (const valid_count *v = r->counts; v; v = v->next) {
        json_t *loops = json_array();
        for (uint32_t i = 0; i < v->count; i++)
            json_array_append_new(loops,
                                  json_pack("{s:I, s:I}", "size", (json_int_t)v->loops[i].size, "stride", (json_int_t)v->loops[i].stride));
        json_array_append_new(counts, json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "kind", valid_count_name(v->kind), "limit",
                                                (json_int_t)v->limit, "span", (json_int_t)v->span, "slice_mask", (json_int_t)v->slice_mask,
                                                "slice", (json_int_t)v->slice, "loops", loops));
    }
    return counts;
}

static json_t *json_vector_slices_operation(const emit_context *e, const op *o, const vector_slices_config *r)
{
    (void)e, (void)o;
    return json_string(r->row->name);
}

static json_t *json_vector_slices_loops(const emit_context *e, const op *o, const vector_slices_config *r)
{
    (void)e, (void)o;
    json_t *loops = json_array();
    for (uint32_t i = 0; i < r->count; i++)
        json_array_append_new(loops, json_pack("{s:I, s:I, s:I}", "size", (json_int_t)r->loops[i].size, "stride",
                                               (json_int_t)r->loops[i].stride, "place", (json_int_t)r->loops[i].place));
    return loops;
}

/* The same with any struct, for the table below. */
#define CONFIG_SHOWN(config, field) \
    static json_t *shown_##config##_##field(const emit_context *e, const op *o, const void *x) \
    { \
        return json_##config##_##field(e, o, x); \
    }
#include "target/engines.def"

static json_t *json_field(const emit_context *e, const op *o, size_t row, const void *config)
{
    static json_t *(*const shown[])(const emit_context *, const op *, const void *) = {
#define CONFIG_NUMBER(...) NULL,
#define CONFIG_CHOICE CONFIG_NUMBER
#define CONFIG_FLAG CONFIG_NUMBER
#define CONFIG_TERM CONFIG_NUMBER
#define CONFIG_DTYPE CONFIG_NUMBER
#define CONFIG_WORD CONFIG_NUMBER
#define CONFIG_SHOWN(config, field) shown_##config##_##field,
#include "target/engines.def"
    };
    const config_row *r = config_row_at(row);
    const void *member = (const char *)config + r->offset;
    switch (r->kind) {
    case FIELD_NUMBER:
    case FIELD_CHOICE: return json_integer(*(const int64_t *)member);
    case FIELD_FLAG: return json_boolean(*(const bool *)member);
    case FIELD_TERM: return json_string(mapping_text(*(const mapping *const *)member, e->arena));
    case FIELD_WORD: return json_string(r->names(*(const int64_t *)member));
    case FIELD_DTYPE: return json_string(dtype_row_of(*(const dtype *)member)->name);
    default: return shown[row](e, o, config);
    }
}

static void json_add_fields(const emit_context *e, const op *o, config_id id, const void *config, json_t *to)
{
    for (size_t row = config_first_row(id); row < config_first_row(id + 1); row++) {
        json_t *field = json_field(e, o, row, config);
        if (field)
            json_object_set_new(to, config_row_at(row)->field, field);
    }
}

static json_t *json_fields(const emit_context *e, const op *o, config_id id, const void *config)
{
    json_t *j = json_object();
    json_add_fields(e, o, id, config, j);
    return j;
}

/* A list, since a copy can be several commands: each a sequencer with the fields of a copy. */
static json_t *json_copies(const emit_context *e, const op *o)
{
    json_t *list = json_array();
    for (const dma_config *d = o->dma; d; d = d->next) {
        json_t *x = json_fields(e, o, CONFIG_sequencer, &d->sequencer);
        json_add_fields(e, o, CONFIG_dma, d, x);
        json_array_append_new(list, x);
    }
    return list;
}

static json_t *json_config(const emit_context *e, const op *o, config_id id, const void *config)
{
    return id == CONFIG_dma ? json_copies(e, o) : json_fields(e, o, id, config);
}

/* Its index is that of --draw and of --emit=memory-json: loads and values that are no stages have numbers, too. */
static json_t *json_op(const emit_context *e, const op *o)
{
    json_t *j = json_object();
    json_object_set_new(j, "index", json_integer((json_int_t)o->index));
    json_object_set_new(j, "op", json_string(op_kind_name(o->kind)));
    json_object_set_new(j, "context", json_string(context_name(o->context)));
    json_object_set_new(j, "line", json_integer(line_of(e, o->range)));
    json_object_set_new(j, "dtype", json_string(dtype_row_of(o->out.dtype)->name));
    json_object_set_new(j, "mapping", json_mapping(e, &o->out, NULL));
    if (o->out.kind == TENSOR_DM || o->out.kind == TENSOR_HBM)
        json_object_set_new(j, "address", json_integer(o->out.address));
#define CONFIG(name, key, summary) \
    if (o->name) \
        json_object_set_new(j, key, json_config(e, o, CONFIG_##name, o->name));
#include "target/engines.def"
    return j;
}

static json_t *json_kernel(const emit_context *e, const kernel *k)
{
    json_t *ports = json_array(), *ops = json_array();
    for (size_t i = 0; i < k->port_count; i++) {
        const kernel_port *p = &k->ports[i];
        json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", p->name, "direction", p->is_output ? "out" : "in", "dtype",
                              dtype_row_of(p->tensor.dtype)->name, "space", space_name(p->tensor.kind), "address",
                              (json_int_t)(p->tensor.address < 0 ? 0 : p->tensor.address));
        json_object_set_new(j, "mapping", json_mapping(e, &p->tensor, p->named));
        json_array_append_new(ports, j);
    }
    for (size_t i = 0; i < k->op_count; i++)
        if (op_kind_is_stage(k->ops[i]->kind))
            json_array_append_new(ops, json_op(e, k->ops[i]));
    json_t *j = json_pack("{s:s, s:I, s:s}", "name", k->name, "line", (json_int_t)line_of(e, k->range), "einsum", k->einsum->e.text);
    json_object_set_new(j, "ports", ports);
    json_object_set_new(j, "ops", ops);
    return j;
}

const char *tables_json(const emit_context *e, const module *m)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < m->count; i++)
        json_array_append_new(kernels, json_kernel(e, m->kernels[i]));
    json_t *root = json_pack("{s:i, s:s, s:s}", "format", 1, "visac", VISA_VERSION, "target", e->target->name);
    json_object_set_new(root, "kernels", kernels);
    return json_dump_text(root, JSON_INDENT(2), e->arena);
}
