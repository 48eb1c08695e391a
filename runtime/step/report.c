#include "runtime/step/report.h"

#include <inttypes.h>

#include "runtime/step/intervals.h"
#include "runtime/step/kernel.h"
#include "runtime/step/spill.h"
#include "runtime/step/stall.h"
#include "support/strbuf.h"

static step_totals sum_of(const step_run *r)
{
    step_totals sum = {0};
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        sum.flops += r->totals[i].flops;
        sum.offchip_bytes += r->totals[i].offchip_bytes;
        sum.requests += r->totals[i].requests;
        sum.values_in += r->totals[i].values_in;
        sum.values_out += r->totals[i].values_out;
        sum.spill_bytes += r->totals[i].spill_bytes;
    }
    return sum;
}

static step_onchip onchip_of(const step_run *r)
{
    step_onchip sum = {0, 0};
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        step_onchip one = step_spill_wanted(r, i);
        sum.paper += one.paper;
        sum.artifact += one.artifact;
    }
    return sum;
}

/* What the program has, whether it is used or not. */
typedef struct capacity {
    int64_t flops_per_cycle; /* of all operators that compute */
    double bytes_per_cycle;  /* of the memory off the chip */
} capacity;

static capacity capacity_of(const step_run *r)
{
    const step_machine *m = &r->program->machine;
    capacity c = {.bytes_per_cycle = (double)m->memory_channels * (double)m->request_bytes / (double)m->memory_interval_cycles};
    for (uint32_t i = 0; i < r->program->node_count; i++)
        c.flops_per_cycle += step_fn_acts(r->program->nodes[i].fn, STEP_ACTS_COMPUTES) ? r->program->nodes[i].flops_per_cycle : 0;
    return c;
}

/* Percent of what could have been in so many cycles. */
static double percent(int64_t amount, double each_cycle, int64_t cycles)
{
    return each_cycle > 0 && cycles > 0 ? 100 * (double)amount / (each_cycle * (double)cycles) : 0;
}

static double per_cycle(int64_t amount, int64_t cycles)
{
    return cycles > 0 ? (double)amount / (double)cycles : 0;
}

/* ---- kernels: the level below ---- */

/* How often a node ran its kernel: once for each value that came to each input. */
static int64_t runs_of(const step_run *r, uint32_t node)
{
    return r->totals[node].values_in / r->program->nodes[node].input_count;
}

static int64_t kernel_bytes(const step_run *r)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < r->program->node_count; i++)
        bytes += r->program->nodes[i].kernel ? r->totals[i].offchip_bytes : 0;
    return bytes;
}

/* "a b": the inputs that are loaded once. */
static const char *kept_names(const step_run *r, const step_kernel_run *k, const char *around, const char *between)
{
    strbuf s;
    strbuf_init(&s, r->arena);
    for (uint32_t i = 0, input = 0; i < k->kernel->port_count; i++) {
        const port *p = &k->kernel->ports[i];
        if (p->direction != PORT_IN)
            continue;
        if (k->kept >> input++ & 1)
            strbuf_printf(&s, "%s%s%s%s", s.bytes > 0 ? between : "", around, p->name, around);
    }
    return s.text;
}

static void put_kernels_json(strbuf *s, const step_run *r)
{
    const char *between = "";
    strbuf_printf(s, " \"kernel_offchip_bytes\": %" PRId64 ", \"kernels\": [", kernel_bytes(r));
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const step_kernel_run *k = r->program->nodes[i].kernel ? r->kernels[i] : NULL;
        if (!k)
            continue;
        strbuf_printf(s,
                      "%s\n  {\"node\": \"%s\", \"kernel\": \"%s\", \"runs\": %" PRId64 ", \"cycles\": %" PRId64
                      ", \"next_cycles\": %" PRId64 ", \"row_cycles\": %" PRId64 ", \"offchip_bytes\": %" PRId64
                      ", \"next_offchip_bytes\": %" PRId64 ", \"kept\": [%s], \"dm_bytes\": %" PRId64 ", \"trf_bytes\": %" PRId64
                      ", \"onchip_bytes\": %" PRId64 "}",
                      between, r->program->nodes[i].name, k->kernel->name, runs_of(r, i), k->cost.cycles, k->cost.next_cycles,
                      k->cost.row_cycles, k->cost.offchip_bytes, k->cost.next_bytes, kept_names(r, k, "\"", ", "), k->facts.dm_bytes,
                      k->facts.trf_bytes, k->cost.onchip_bytes);
        between = ",";
    }
    strbuf_puts(s, "],\n");
}

static void put_kernels(strbuf *s, const step_run *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const step_kernel_run *k = r->program->nodes[i].kernel ? r->kernels[i] : NULL;
        if (k && !any)
            strbuf_puts(s, "  kernel         in                runs  cycles first   others in a row  bytes first  of others  on the chip  "
                           "loaded once\n");
        any = any || k;
        if (k)
            strbuf_printf(
                s, "  %-14s %-12s %9" PRId64 " %13" PRId64 " %8" PRId64 " %8" PRId64 " %12" PRId64 " %10" PRId64 " %12" PRId64 "  %s\n",
                k->kernel->name, r->program->nodes[i].name, runs_of(r, i), k->cost.cycles, k->cost.next_cycles, k->cost.row_cycles,
                k->cost.offchip_bytes, k->cost.next_bytes, k->cost.onchip_bytes, k->kept ? kept_names(r, k, "", " ") : "nothing");
    }
    if (any)
        strbuf_printf(s, "  of the off-chip bytes operators of the stream move %" PRId64 ", commands of kernels %" PRId64 "\n",
                      sum_of(r).offchip_bytes - kernel_bytes(r), kernel_bytes(r));
}

static void put_json(strbuf *s, const step_run *r)
{
    step_totals sum = sum_of(r);
    step_onchip onchip = onchip_of(r);
    capacity has = capacity_of(r);
    strbuf_printf(s,
                  "{\"program\": \"%s\", \"cycles\": %" PRId64 ", \"offchip_bytes\": %" PRId64 ", \"offchip_requests\": %" PRId64
                  ", \"flops\": %" PRId64 ", \"onchip_bytes\": {\"paper\": %" PRId64 ", \"artifact\": %" PRId64
                  "}, \"allocated_flops_per_cycle\": %" PRId64
                  ", \"peak_offchip_bytes_per_cycle\": %.6g, \"compute_utilisation_percent\": %.4f"
                  ", \"bandwidth_utilisation_percent\": %.4f,\n",
                  r->program->name, r->cycles, sum.offchip_bytes, sum.requests, sum.flops, onchip.paper, onchip.artifact,
                  has.flops_per_cycle, has.bytes_per_cycle, percent(sum.flops, (double)has.flops_per_cycle, r->cycles),
                  percent(sum.offchip_bytes - kernel_bytes(r), has.bytes_per_cycle, r->cycles));
    if (r->program->machine.onchip_bytes > 0)
        strbuf_printf(s, " \"onchip_capacity\": %" PRId64 ", \"spilled_bytes\": %" PRId64 ", \"spill_traffic_bytes\": %" PRId64 ",\n",
                      r->program->machine.onchip_bytes, step_spill_bytes(r), sum.spill_bytes);
    put_kernels_json(s, r);
    strbuf_puts(s, " \"operators\": [");
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const step_node *n = &r->program->nodes[i];
        const step_totals *t = &r->totals[i];
        onchip = step_spill_wanted(r, i);
        strbuf_printf(s,
                      "%s\n  {\"name\": \"%s\", \"operator\": \"%s\", \"line\": %" PRIu32 ", \"values_in\": %" PRId64
                      ", \"values_out\": %" PRId64 ", \"flops\": %" PRId64 ", \"busy_cycles\": %" PRId64 ", \"offchip_bytes\": %" PRId64
                      ", \"spill_traffic_bytes\": %" PRId64 ", \"requests\": %" PRId64 ", \"onchip_bytes\": {\"paper\": %" PRId64
                      ", \"artifact\": %" PRId64 "}, \"waits\": {\"value\": %" PRId64 ", \"room\": %" PRId64 ", \"memory\": %" PRId64
                      ", \"machine\": %" PRId64 "}, \"end\": %" PRId64 "}",
                      i > 0 ? "," : "", n->name, step_op_row_of(n->op)->name, n->line, t->values_in, t->values_out, t->flops,
                      t->busy_cycles, t->offchip_bytes, t->spill_bytes, t->requests, onchip.paper, onchip.artifact, t->waits[STEP_STARVED],
                      t->waits[STEP_FULL], t->waits[STEP_MEMORY], t->waits[STEP_MACHINE], t->end_cycle);
        step_intervals one;
        if (step_intervals_of(r, i, &one)) {
            s->bytes--; /* the brace stays open */
            strbuf_printf(s, ", \"cII\": %.6g, \"eII\": %.6g, \"L\": %.6g, \"measured_cycles\": %" PRId64 "}", one.cii, one.eii,
                          one.latency, one.measured);
        }
    }
    strbuf_puts(s, "]");
    step_stalls_put_json(s, r);
    strbuf_puts(s, "}\n");
}

/* A row for each operator. */
static void put_csv(strbuf *s, const step_run *r)
{
    strbuf_puts(s, "program,name,operator,line,values_in,values_out,flops,busy_cycles,waits_for_value,waits_for_room,waits_for_memory,"
                   "waits_for_machine,offchip_bytes,requests,onchip_bytes_paper,onchip_bytes_artifact,end\n");
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const step_node *n = &r->program->nodes[i];
        const step_totals *t = &r->totals[i];
        step_onchip onchip = step_spill_wanted(r, i);
        strbuf_printf(s, "%s,%s,%s,%" PRIu32, r->program->name, n->name, step_op_row_of(n->op)->name, n->line);
        const int64_t figures[] = {
            t->values_in,          t->values_out,          t->flops,         t->busy_cycles, t->waits[STEP_STARVED], t->waits[STEP_FULL],
            t->waits[STEP_MEMORY], t->waits[STEP_MACHINE], t->offchip_bytes, t->requests,    onchip.paper,           onchip.artifact,
            t->end_cycle};
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            strbuf_printf(s, ",%" PRId64, figures[k]);
        strbuf_puts(s, "\n");
    }
}

static void put_text(strbuf *s, const step_run *r)
{
    step_totals sum = sum_of(r);
    step_onchip onchip = onchip_of(r);
    capacity has = capacity_of(r);
    strbuf_printf(s, "%s: %" PRId64 " cycles\n", r->program->name, r->cycles);
    strbuf_printf(s, "  off-chip  %" PRId64 " bytes in %" PRId64 " requests, %.1f bytes per cycle\n", sum.offchip_bytes, sum.requests,
                  per_cycle(sum.offchip_bytes, r->cycles));
    strbuf_printf(s, "  compute   %" PRId64 " FLOPs, %.1f per cycle\n", sum.flops, per_cycle(sum.flops, r->cycles));
    strbuf_printf(s, "  on-chip   %" PRId64 " bytes by the paper's equations, %" PRId64 " by those of its artifact\n", onchip.paper,
                  onchip.artifact);
    if (r->program->machine.onchip_bytes > 0)
        strbuf_printf(s, "  spilled   %" PRId64 " bytes do not fit into %" PRId64 ", of the off-chip bytes %" PRId64 " are theirs\n",
                      step_spill_bytes(r), r->program->machine.onchip_bytes, sum.spill_bytes);
    strbuf_printf(s, "  used      %.2f %% of %" PRId64 " allocated FLOPs per cycle, %.2f %% of %.6g off-chip bytes per cycle\n",
                  percent(sum.flops, (double)has.flops_per_cycle, r->cycles), has.flops_per_cycle,
                  percent(sum.offchip_bytes - kernel_bytes(r), has.bytes_per_cycle, r->cycles), has.bytes_per_cycle);
    strbuf_puts(s, "  operator                          in       out    busy cycles      bytes  ends at\n");
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const step_totals *t = &r->totals[i];
        strbuf_printf(s, "  %-14s %-12s %9" PRId64 " %9" PRId64 " %14" PRId64 " %10" PRId64 " %8" PRId64 "\n", r->program->nodes[i].name,
                      step_op_row_of(r->program->nodes[i].op)->name, t->values_in, t->values_out, t->busy_cycles, t->offchip_bytes,
                      t->end_cycle);
    }
    step_intervals_put(s, r);
    step_stalls_put(s, r);
    put_kernels(s, r);
}

step_figures step_report_figures(const step_run *r)
{
    step_totals sum = sum_of(r);
    step_onchip onchip = onchip_of(r);
    return (step_figures){.cycles = r->cycles,
                          .offchip_bytes = sum.offchip_bytes,
                          .onchip_paper = onchip.paper,
                          .onchip_artifact = onchip.artifact,
                          .allocated_flops_per_cycle = capacity_of(r).flops_per_cycle,
                          .moves = sum.values_in + sum.values_out + sum.requests};
}

const char *step_report_make(const step_run *r, report_format format)
{
    strbuf s;
    strbuf_init(&s, r->arena);
    switch (format) {
    case REPORT_CSV: put_csv(&s, r); break;
    case REPORT_JSON: put_json(&s, r); break;
    case REPORT_TRACE: return step_trace_text(r);
    default: put_text(&s, r);
    }
    return format == REPORT_HTML ? step_page_text(r, s.text) : s.text;
}
