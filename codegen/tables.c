#include "codegen/tables.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>


static uint32_t line_of(const emit_context *e, src_range range)
{
    return e->line_of ? e->line_of(e->user, range) : 0;
}

static bool is_stage(const op *o)
{
    return o->kind != IR_PORT_IN && o->kind != IR_PORT_OUT && o->kind != IR_ALLOC && o->kind != IR_VIEW && o->kind != IR_RESHAPE;
}

static const char *space_name(tensor_kind kind)
{
    switch (kind) {
    case TENSOR_HBM: return "hbm";
    case TENSOR_DM: return "dm";
    case TENSOR_TRF: return "trf";
    default: return "stream";
    }
}

/* The part of the packet or of time that is summed, as text for readers. */
static const char *summed_text(const emit_context *e, const mapping *from, const mapping *kept)
{
    return arena_printf(e->arena, "%s of %s", from->size == kept->size ? "nothing" : kept->size == 1 ? "all" : "the rest", mapping_text(from, e->arena));
}

/* ---- text ---- */

static void text_mapping(const tensor *t, strbuf *out)
{
    const char *separator = "";
    for (const char *p = tensor_kind_components(t->kind); *p; p++) {
        component c = component_of_letter(*p);
        strbuf_printf(out, "%s%s: ", separator, component_parameter(c));
        mapping_print(t->part[c], out);
        separator = " | ";
    }
}

static void text_entries(const sequencer_config *s, bool innermost_first, strbuf *out)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const sequencer_entry *x = &s->entries[innermost_first ? s->count - 1 - i : i];
        strbuf_printf(out, "      Entry %u: { size: %lld, stride: %lld", i, (long long)x->size, (long long)x->stride);
        if (s->access[0] == 'c')
            strbuf_printf(out, " -> %lld", (long long)x->stride2);
        strbuf_puts(out, " }");
        strbuf_pad_to(out, 48);
        mapping_print(x->term, out);
        strbuf_puts(out, x->stride == 0 && x->size > 1 ? "  (broadcast)\n" : "\n");
    }
}

static void text_sequencer(const op *o, strbuf *out)
{
    const sequencer_config *s = o->sequencer;
    strbuf_printf(out, "    sequencer: %s %s, base %lld bytes, packet %lld elements, access %lld bytes, contiguous %lld bytes; strides in elements, outermost first\n",
                  s->memory, s->access, (long long)s->base, (long long)s->packet, (long long)s->access_bytes, (long long)s->contiguous_bytes);
    text_entries(s, false, out);
}

/* What stands between the flits and the packet: the loops are numbered as in the command, innermost first. */
static void text_shift(const align_config *a, strbuf *out)
{
    if (a->transpose_rows > 1)
        strbuf_printf(out, "    Stream Adapter: each flit is transposed from %lld rows\n", (long long)a->transpose_rows);
    if (!a->shift)
        return;
    if (a->shift->shifts == 1) {
        strbuf_printf(out, "    Stream Adapter: initial_shift = %lld, in elements; limits [%lld, %lld] innermost first, pop_dim 1\n",
                      (long long)a->shift->initial_shift, (long long)a->tiling->size, (long long)a->packets);
        return;
    }
    strbuf_printf(out, "    Stream Adapter: initial_shift = %lld, shift_stride = %lld, in elements; %lld packets of each pop: ", (long long)a->shift->initial_shift,
                  (long long)a->shift->shift_stride, (long long)a->shift->shifts);
    mapping_print(a->shift->shifted, out);
    strbuf_printf(out, "; limits [%lld, %lld, %lld] innermost first, shift_dim 1, pop_dim 2\n", (long long)a->tiling->size, (long long)a->shift->shifts,
                  (long long)a->packets);
}

static void text_align(const align_config *a, strbuf *out)
{
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
    text_shift(a, out);
    strbuf_printf(out, "    TRF Sequencer: reg_read_size = %lld bytes, broadcast x%lld; strides in bytes, innermost first\n", (long long)a->reg_read_size,
                  (long long)a->broadcast);
    text_entries(&a->trf_sequencer, true, out);
}

static void text_reduce(const emit_context *e, const op *o, strbuf *out)
{
    if (o->contract)
        strbuf_printf(out, "    Reducer: tree depth %lld, %lld column%s per Row, sums %s\n", (long long)o->contract->tree_depth, (long long)o->contract->columns,
                      o->contract->columns == 1 ? "" : "s", summed_text(e, o->input->out.part[PACKET], o->contract->kept));
    if (o->accumulate) {
        strbuf_printf(out, "    Reducer: %s, keeps time ", o->accumulation == INTERLEAVED ? "Interleaved" : "Sequential");
        mapping_print(o->accumulate->kept, out);
        strbuf_printf(out, ", sums %s, %lld slot%s, buffer %lld of %lld\n", summed_text(e, o->input->out.part[TIME], o->accumulate->kept),
                      (long long)o->accumulate->slots, o->accumulate->slots == 1 ? "" : "s", (long long)o->accumulate->buffer, (long long)o->accumulate->buffer_limit);
    }
}

static void text_op(const emit_context *e, const op *o, strbuf *out)
{
    strbuf_printf(out, "  %s (line %u, %s context) %s\n    ", op_kind_name(o->kind), line_of(e, o->range), context_name(o->context), dtype_row_of(o->out.dtype)->name);
    text_mapping(&o->out, out);
    strbuf_puts(out, "\n");
    if (o->sequencer)
        text_sequencer(o, out);
    for (const dma_config *d = o->dma; d; d = d->next) {
        strbuf_printf(out, "    DMA: from %#llx to %#llx, packet %lld bytes%s; strides in bytes, source -> destination, outermost first\n", (long long)d->source_base,
                      (long long)d->destination_base, (long long)d->packet_bytes, d->granular ? ", element by element" : "");
        text_entries(&d->sequencer, false, out);
    }
    if (o->collect)
        strbuf_printf(out, "    Collect: %lld flit%s per packet, %lld bytes of padding\n", (long long)o->collect->flits_per_packet,
                      o->collect->flits_per_packet == 1 ? "" : "s", (long long)o->collect->pad_bytes);
    if (o->to_trf)
        strbuf_printf(out, "    TRF: TrfAddress::%s, Rows = %lld, %lld bytes per Row, reg_types %d, %s\n", trf_address_name(o->out.trf_address), (long long)o->to_trf->rows,
                      (long long)o->to_trf->bytes_per_row, o->to_trf->reg_type, o->to_trf->short_command ? "short command" : "full path");
    if (o->align)
        text_align(o->align, out);
    text_reduce(e, o, out);
    if (o->kind == IR_CAST)
        strbuf_printf(out, "    Cast: %s to %s\n", dtype_row_of(o->input->out.dtype)->name, dtype_row_of(o->out.dtype)->name);
    if (o->commit)
        strbuf_printf(out, "    Commit: commit_in_size %lld bytes, commit_size %lld bytes\n", (long long)o->commit->commit_in_bytes, (long long)o->commit->commit_bytes);
}

static bool is_whole(const tensor *t)
{
    for (const char *p = tensor_kind_components(t->kind); *p; p++)
        if (!t->part[component_of_letter(*p)])
            return false;
    return true;
}

const char *tables_op_text(const emit_context *e, const op *o)
{
    if (o->bad || !is_stage(o) || !is_whole(&o->out))
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
            strbuf_printf(&out, "  port %s: %s %s in %s", at->name, at->is_output ? "out" : "in", dtype_row_of(at->tensor.dtype)->name, space_name(at->tensor.kind));
            if (at->tensor.kind == TENSOR_HBM || at->tensor.kind == TENSOR_DM)
                strbuf_printf(&out, " at %lld", (long long)at->tensor.address);
            strbuf_puts(&out, ", ");
            text_mapping(&at->tensor, &out);
            strbuf_puts(&out, "\n");
        }
        for (size_t o = 0; o < k->op_count; o++)
            if (is_stage(k->ops[o]))
                text_op(e, k->ops[o], &out);
    }
    return out.text;
}

/* ---- JSON ---- */

static json_t *json_mapping(const emit_context *e, const tensor *t)
{
    json_t *j = json_object();
    for (const char *p = tensor_kind_components(t->kind); *p; p++) {
        component c = component_of_letter(*p);
        json_object_set_new(j, component_name(c), json_string(mapping_text(t->part[c], e->arena)));
    }
    return j;
}

static json_t *json_sequencer(const emit_context *e, const sequencer_config *s)
{
    json_t *entries = json_array();
    bool copy = s->access[0] == 'c';
    for (uint32_t i = 0; i < s->count; i++) {
        json_t *x = json_pack("{s:s, s:I}", "term", mapping_text(s->entries[i].term, e->arena), "size", (json_int_t)s->entries[i].size);
        json_object_set_new(x, copy ? "source_stride" : "stride", json_integer(s->entries[i].stride));
        if (copy)
            json_object_set_new(x, "destination_stride", json_integer(s->entries[i].stride2));
        json_array_append_new(entries, x);
    }
    json_t *j = json_object();
    if (s->memory)
        json_object_set_new(j, "memory", json_string(s->memory));
    json_object_set_new(j, "access", json_string(s->access));
    json_object_set_new(j, "unit", json_string(s->unit));
    if (!copy)
        json_object_set_new(j, "base", json_integer(s->base));
    json_object_set_new(j, "entries", entries);
    json_object_set_new(j, "packet", json_integer(s->packet));
    json_object_set_new(j, "access_bytes", json_integer(s->access_bytes));
    json_object_set_new(j, "contiguous_bytes", json_integer(s->contiguous_bytes));
    return j;
}

static json_t *json_tiling(const emit_context *e, const mapping *tiling)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tiling->count; i++) {
        strbuf term;
        strbuf_init(&term, e->arena);
        mapping_print_factor(&tiling->factors[i], &term);
        json_array_append_new(list, json_pack("{s:s, s:I}", "term", term.text, "size", (json_int_t)tiling->factors[i].extent));
    }
    return list;
}

static json_t *json_align(const emit_context *e, const align_config *a)
{
    json_t *j = json_object();
    json_object_set_new(j, "collect_flits", json_integer(a->collect_flits));
    json_object_set_new(j, "rows", json_integer(a->rows));
    json_object_set_new(j, "tiling", json_tiling(e, a->tiling));
    json_object_set_new(j, "packets", json_integer(a->packets));
    json_object_set_new(j, "transpose_rows", json_integer(a->transpose_rows));
    if (a->shift)
        json_object_set_new(j, "shift", json_pack("{s:I, s:I, s:I, s:s}", "initial_shift", (json_int_t)a->shift->initial_shift, "shift_stride",
                                                  (json_int_t)a->shift->shift_stride, "shifts", (json_int_t)a->shift->shifts, "term",
                                                  mapping_text(a->shift->shifted, e->arena)));
    json_object_set_new(j, "reg_read_size", json_integer(a->reg_read_size));
    json_object_set_new(j, "broadcast", json_integer(a->broadcast));
    json_object_set_new(j, "trf_sequencer", json_sequencer(e, &a->trf_sequencer));
    return j;
}

/* One object for contract and accumulate, each with the fields it decides. */
static json_t *json_reduce(const emit_context *e, const op *o)
{
    json_t *j = json_object();
    if (o->contract) {
        json_object_set_new(j, "tree_depth", json_integer(o->contract->tree_depth));
        json_object_set_new(j, "columns", json_integer(o->contract->columns));
        json_object_set_new(j, "kept", json_string(mapping_text(o->contract->kept, e->arena)));
        json_object_set_new(j, "contracted", json_integer((json_int_t)1 << o->contract->tree_depth));
        return j;
    }
    json_t *loops = json_array();
    for (uint32_t i = 0; i < o->accumulate->count; i++)
        json_array_append_new(loops, json_pack("{s:I, s:b, s:I}", "size", (json_int_t)o->accumulate->loops[i].size, "reduced", o->accumulate->loops[i].reduced,
                                               "slot_stride", (json_int_t)o->accumulate->loops[i].slot_stride));
    int64_t contracted = 1;
    for (uint32_t i = 0; i < o->accumulate->count; i++)
        contracted *= o->accumulate->loops[i].reduced ? o->accumulate->loops[i].size : 1;
    json_object_set_new(j, "kind", json_string(o->accumulation == INTERLEAVED ? "Interleaved" : "Sequential"));
    json_object_set_new(j, "kept", json_string(mapping_text(o->accumulate->kept, e->arena)));
    json_object_set_new(j, "contracted", json_integer(contracted));
    json_object_set_new(j, "loops", loops);
    json_object_set_new(j, "slots", json_integer(o->accumulate->slots));
    json_object_set_new(j, "buffer", json_integer(o->accumulate->buffer));
    json_object_set_new(j, "buffer_limit", json_integer(o->accumulate->buffer_limit));
    return j;
}

static json_t *json_op(const emit_context *e, const op *o, size_t index)
{
    json_t *j = json_object();
    json_object_set_new(j, "index", json_integer((json_int_t)index));
    json_object_set_new(j, "op", json_string(op_kind_name(o->kind)));
    json_object_set_new(j, "context", json_string(context_name(o->context)));
    json_object_set_new(j, "line", json_integer(line_of(e, o->range)));
    json_object_set_new(j, "dtype", json_string(dtype_row_of(o->out.dtype)->name));
    json_object_set_new(j, "mapping", json_mapping(e, &o->out));
    if (o->out.kind == TENSOR_DM || o->out.kind == TENSOR_HBM)
        json_object_set_new(j, "address", json_integer(o->out.address));
    if (o->sequencer)
        json_object_set_new(j, "sequencer", json_sequencer(e, o->sequencer));
    if (o->dma) {
        json_t *list = json_array();
        for (const dma_config *d = o->dma; d; d = d->next) {
            json_t *x = json_sequencer(e, &d->sequencer);
            json_object_set_new(x, "source_base", json_integer(d->source_base));
            json_object_set_new(x, "destination_base", json_integer(d->destination_base));
            json_object_set_new(x, "packet_bytes", json_integer(d->packet_bytes));
            json_object_set_new(x, "granular", json_boolean(d->granular));
            json_array_append_new(list, x);
        }
        json_object_set_new(j, "dma", list);
    }
    if (o->collect)
        json_object_set_new(j, "collect", json_pack("{s:I, s:I}", "flits_per_packet", (json_int_t)o->collect->flits_per_packet, "pad_bytes", (json_int_t)o->collect->pad_bytes));
    if (o->to_trf)
        json_object_set_new(j, "to_trf", json_pack("{s:s, s:s, s:I, s:I, s:I, s:b}", "row", mapping_text(o->out.part[ROW], e->arena), "address",
                                                   trf_address_name(o->out.trf_address), "rows", (json_int_t)o->to_trf->rows, "bytes_per_row",
                                                   (json_int_t)o->to_trf->bytes_per_row, "reg_type", (json_int_t)o->to_trf->reg_type, "short_command", o->to_trf->short_command));
    if (o->align)
        json_object_set_new(j, "align", json_align(e, o->align));
    if (o->contract || o->accumulate)
        json_object_set_new(j, "reduce", json_reduce(e, o));
    if (o->kind == IR_CAST)
        json_object_set_new(j, "cast", json_pack("{s:s, s:s}", "from", dtype_row_of(o->input->out.dtype)->name, "to", dtype_row_of(o->out.dtype)->name));
    if (o->commit)
        json_object_set_new(j, "commit", json_pack("{s:I, s:I}", "commit_in_bytes", (json_int_t)o->commit->commit_in_bytes, "commit_bytes", (json_int_t)o->commit->commit_bytes));
    return j;
}

static json_t *json_kernel(const emit_context *e, const kernel *k)
{
    json_t *ports = json_array(), *ops = json_array();
    for (size_t i = 0; i < k->port_count; i++) {
        const kernel_port *p = &k->ports[i];
        json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", p->name, "direction", p->is_output ? "out" : "in", "dtype", dtype_row_of(p->tensor.dtype)->name,
                              "space", space_name(p->tensor.kind), "address", (json_int_t)(p->tensor.address < 0 ? 0 : p->tensor.address));
        json_object_set_new(j, "mapping", json_mapping(e, &p->tensor));
        json_array_append_new(ports, j);
    }
    size_t index = 0;
    for (size_t i = 0; i < k->op_count; i++)
        if (is_stage(k->ops[i]))
            json_array_append_new(ops, json_op(e, k->ops[i], index++));
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
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    const char *kept = text ? arena_printf(e->arena, "%s\n", text) : NULL;
    free(text);
    return kept;
}
