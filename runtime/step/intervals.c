#include "runtime/step/intervals.h"

#include <inttypes.h>

#include "runtime/step/kernel.h"

/* How often the operator took a value of each input; of one that only makes values, how many left. */
static int64_t calculations_of(const step_run *r, uint32_t node)
{
    const step_node *n = &r->program->nodes[node];
    const step_totals *t = &r->totals[node];
    bool makes = t->offchip_bytes > 0 && t->values_out > t->values_in;
    return makes || n->input_count == 0 ? t->values_out : t->values_in / n->input_count;
}

/* Cycles of all calculations, one after the other, alone on the machine. */
static double cycles_of(const step_run *r, uint32_t node, int64_t calculations)
{
    const step_machine *m = &r->program->machine;
    const step_node *n = &r->program->nodes[node];
    const step_totals *t = &r->totals[node];
    if (n->kernel) {
        const step_kernel_run *k = r->kernels[node];
        return (double)k->cost.cycles + (double)(calculations - 1) * (double)k->cost.row_cycles;
    }
    double compute = n->flops_per_cycle > 0 ? (double)t->flops / (double)n->flops_per_cycle : 0;
    double memory = (double)t->offchip_bytes * (double)m->memory_interval_cycles / ((double)m->memory_channels * (double)m->request_bytes);
    return compute > memory ? compute : memory;
}

bool step_intervals_of(const step_run *r, uint32_t node, step_intervals *out)
{
    const step_totals *t = &r->totals[node];
    int64_t calculations = calculations_of(r, node);
    if (calculations <= 0)
        return false;
    out->latency = cycles_of(r, node, calculations);
    out->cii = out->latency / (double)calculations;
    out->eii = out->latency / (double)(t->values_out > 0 ? t->values_out : calculations);
    out->measured = t->busy_cycles + t->waits[STEP_MEMORY] + t->waits[STEP_MACHINE];
    return out->latency > 0;
}

void step_intervals_put(strbuf *s, const step_run *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const step_node *n = &r->program->nodes[i];
        step_intervals one;
        if (!step_intervals_of(r, i, &one))
            continue;
        if (!any)
            strbuf_puts(s, "  cycles of an operator alone          cII         eII            L   measured\n");
        any = true;
        strbuf_printf(s, "  %-14s %-12s %11.2f %11.2f %12.1f %10" PRId64 "\n", n->name, step_op_row_of(n->op)->name, one.cii, one.eii,
                      one.latency, one.measured);
    }
}
