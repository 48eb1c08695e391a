#include "codegen/step/text.h"

#include <inttypes.h>

static const char *extent_text(int64_t extent, arena *a)
{
    return extent < 0 ? "?" : arena_printf(a, "%" PRId64, extent);
}

enum { PARTS_DEEP = 3 }; /* parts of parts further down are shown by their numbers: a file may nest them without end */

static const char *part_text(const step_program *p, uint32_t type, unsigned depth, arena *a)
{
    const step_type *t = &p->types[type];
    if (depth > PARTS_DEEP)
        return arena_printf(a, "type %" PRIu32, type);
    switch (t->kind) {
    case STEP_TILE:
        return arena_printf(a, "%s tiles %s x %s", dtype_row_of(t->dtype)->name, extent_text(t->rows, a), extent_text(t->columns, a));
    case STEP_SELECTOR:
        return t->hot > 0 ? arena_printf(a, "selectors of %" PRId64 " of %" PRId64, t->hot, t->width)
                          : arena_printf(a, "selectors of %" PRId64, t->width);
    case STEP_BUFFER:
        return arena_printf(a, "buffers of %" PRIu32 " dimension%s of %s", t->rank, t->rank == 1 ? "" : "s",
                            part_text(p, t->first, depth + 1, a));
    case STEP_PAIR: return arena_printf(a, "pairs (%s, %s)", part_text(p, t->first, depth + 1, a), part_text(p, t->second, depth + 1, a));
    case STEP_BOOL: return "bools";
    default: return "addresses";
    }
}

const char *step_type_text(const step_program *p, uint32_t type, arena *a)
{
    return part_text(p, type, 0, a);
}

static void put_list(strbuf *s, const int64_t *values, uint32_t count)
{
    strbuf_puts(s, "[");
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(s, "%s%" PRId64, i > 0 ? ", " : "", values[i]);
    strbuf_puts(s, "]");
}

const char *step_machine_text(const step_machine *m, arena *a)
{
    const char *units = "", *room = ""; /* where they are not the paper's */
    if (m->compute_tile != STEP_MACHINE_DEFAULT.compute_tile)
        units = arena_printf(a, "; compute tiles of %" PRId64 " x %" PRId64, m->compute_tile, m->compute_tile);
    if (m->onchip_bytes > 0)
        room = arena_printf(a, "; %" PRId64 " bytes on the chip", m->onchip_bytes);
    return arena_printf(a,
                        "%" PRId64 " memory channels, %" PRId64 " requests of %" PRId64 " bytes per cycle; latency %" PRId64
                        ", interval %" PRId64 ", start-up %" PRId64 " cycles; %" PRId64 " bytes per cycle on the chip%s%s",
                        m->memory_channels, m->requests_per_cycle, m->request_bytes, m->memory_latency_cycles, m->memory_interval_cycles,
                        m->memory_startup_cycles, m->onchip_bytes_per_cycle, units, room);
}

const char *step_tensor_text(const step_tensor *t, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, t->written ? "read and written: " : "read: ");
    put_list(&s, t->shape, t->dim_count);
    strbuf_printf(&s, " of %s tiles %" PRId64 " x %" PRId64, dtype_row_of(t->dtype)->name, t->rows, t->columns);
    return s.text;
}

static void put_params(strbuf *s, const step_node *n)
{
    for (size_t i = 0; step_param_row_at(i); i++) {
        const step_param_row *row = step_param_row_at(i);
        if (step_param_row_is_of(row, n->op, n->fn))
            strbuf_printf(s, ", %s = %" PRId64, row->name, n->param[row->slot]);
    }
}

/* "|2 of 0 1x1 -inf| t0 = value 0; t1 = row_max t0; -> t1": states with their sizes and beginnings, instructions, results. */
static void put_formula(strbuf *s, const step_formula *f)
{
    strbuf_puts(s, ", |");
    for (uint32_t i = 0; i < f->state_count; i++)
        strbuf_printf(s, "%s%" PRId64 " x %" PRId64 " of %.9g", i > 0 ? ", " : "state ", f->states[i].rows, f->states[i].columns,
                      (double)f->states[i].value);
    strbuf_printf(s, "%s%" PRIu32 " value%s|", f->state_count > 0 ? "; " : "", f->values, f->values == 1 ? "" : "s");
    for (uint32_t i = 0; i < f->count; i++) {
        const step_formula_row *row = step_formula_row_of(f->items[i].op);
        strbuf_printf(s, " t%" PRIu32 " = %s", i, row->name);
        if (row->op == FORMULA_VALUE)
            strbuf_printf(s, " %" PRIu32, f->items[i].operands[0]);
        if (row->op == FORMULA_NUMBER)
            strbuf_printf(s, " %.9g", (double)f->items[i].number);
        for (unsigned k = 0; k < row->operands; k++)
            strbuf_printf(s, " t%" PRIu32, f->items[i].operands[k]);
        strbuf_puts(s, ";");
    }
    for (uint32_t i = 0; i < f->result_count; i++)
        strbuf_printf(s, "%s t%" PRIu32, i > 0 ? "," : " ->", f->results[i]);
}

static void put_function(strbuf *s, const step_node *n)
{
    if (n->fn == STEP_FN_NONE)
        return;
    if (n->fn == STEP_FN_KERNEL)
        strbuf_printf(s, ", kernel::%s", n->kernel);
    else if (n->fn == STEP_FN_FORMULA) {
        put_formula(s, n->formula);
        strbuf_printf(s, ", %" PRId64 " FLOPs per cycle", n->flops_per_cycle);
    } else
        strbuf_printf(s, ", %s, %" PRId64 " FLOPs per cycle", step_fn_row_of(n->fn)->name, n->flops_per_cycle);
}

const char *step_node_text(const step_program *p, const step_node *n, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, step_op_row_of(n->op)->name);
    put_function(&s, n);
    put_params(&s, n);
    if (n->op >= STEP_LINEAR_LOAD && n->op <= STEP_RANDOM_STORE)
        strbuf_printf(&s, ", tensor %s", p->tensors[n->tensor].name);
    if (n->walk_count > 0) {
        strbuf_puts(&s, ", walk ");
        put_list(&s, n->walk_sizes, n->walk_count);
        strbuf_puts(&s, " strides ");
        put_list(&s, n->walk_strides, n->walk_count);
        strbuf_puts(&s, " tiles");
    }
    strbuf_puts(&s, n->writes_back ? ", written back" : "");
    return s.text;
}

const char *step_depth_text(const step_input *in, arena *a)
{
    return in->depth ? arena_printf(a, "depth %" PRIu32 " values", in->depth) : "any depth";
}

const char *step_output_text(const step_program *p, const step_output *o, arena *a)
{
    return arena_printf(a, "%s of %s", o->shape, step_type_text(p, o->type, a));
}

static void put_node(strbuf *s, const step_program *p, uint32_t index)
{
    const step_node *n = &p->nodes[index];
    strbuf_printf(s, "  %" PRIu32 " %s = %s, line %" PRIu32 "\n", index, n->name, step_node_text(p, n, s->arena), n->line);
    for (uint32_t i = 0; i < n->input_count; i++)
        strbuf_printf(s, "    in %" PRIu32 "  %s.%" PRIu32 ", %s\n", i, p->nodes[n->inputs[i].node].name, n->inputs[i].port,
                      step_depth_text(&n->inputs[i], s->arena));
    for (uint32_t i = 0; i < n->output_count; i++)
        strbuf_printf(s, "    out %" PRIu32 " %s\n", i, step_output_text(p, &n->outputs[i], s->arena));
}

void step_program_print(const step_program *p, strbuf *s)
{
    strbuf_printf(s, "stream program %s\n", p->name);
    strbuf_printf(s, "  machine: %s\n", step_machine_text(&p->machine, s->arena));
    for (uint32_t i = 0; i < p->tensor_count; i++)
        strbuf_printf(s, "  tensor %s, %s\n", p->tensors[i].name, step_tensor_text(&p->tensors[i], s->arena));
    for (uint32_t i = 0; i < p->node_count; i++)
        put_node(s, p, i);
}
