#include "libvisa/dataflow.h"

#include <string.h>

#include "support/integer.h"

uint32_t dataflow_line(const dataflow_listing *l, src_range range)
{
    return range.file < 0 ? 0 : source_line_at(l->compilation->sources, range.file, range.begin);
}

double dataflow_rate(const dataflow_model *m)
{
    return (double)m->clock_hz * (double)m->batch / (double)m->latency;
}

dataflow_stage dataflow_stage_of(const dataflow_contraction *d, visa_stage_side side)
{
    enum { FLIT_BITS = 256 };
    const dataflow_model *m = d->model;
    const dataflow_interface *in = &m->interfaces[m->bottleneck], *out = in;
    while (out->kind != DATAFLOW_OUTPUT)
        out++;
    int64_t flits = ceil_div(out->shape.elements * out->bits, FLIT_BITS);
    dataflow_ratio feed = dataflow_ratio_of(d->stream_cycles, in->num_blocks);
    switch (side) {
    case VISA_STAGE_FEED: return (dataflow_stage){feed, feed, d->stream_cycles};
    case VISA_STAGE_CONTRACT: return (dataflow_stage){dataflow_ratio_of(in->cii, 1), dataflow_ratio_of(in->eii, 1), d->compute_cycles};
    default:
        return (dataflow_stage){dataflow_ratio_of(flits, 1), dataflow_ratio_of(flits * m->groups, 1), flits * m->groups * in->num_blocks};
    }
}

/* The n-th measured contraction of the kernel. */
static const visa_contraction *measured_of(const visa_contraction *measured, size_t count, const char *name, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(measured[i].kernel, name) == 0 && n-- == 0)
            return &measured[i];
    return NULL;
}

bool visa_dataflow(visa_compilation *c, bool json, const visa_contraction *measured, size_t count, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || c->diags.error_count > 0 || c->is_book || c->binary_only)
        return false;
    dataflow_listing l = {.compilation = c};
    for (size_t i = 0; i < c->module->count; i++) {
        const kernel *k = c->module->kernels[i];
        dataflow_contraction *found;
        size_t contractions = dataflow_of_kernel(k, c->arena, &c->diags, &found);
        for (size_t n = 0; n < contractions; n++) {
            const dataflow_contraction *d = &found[n];
            dataflow_place p = {k->name, dataflow_line(&l, d->align->range), d, measured_of(measured, count, k->name, n),
                                d->model->latency};
            p.cycles = d->stream_cycles > p.cycles ? d->stream_cycles : p.cycles;
            ARENA_PUSH(c->arena, l.places, l.count, l.capacity, p);
        }
    }
    if (l.count == 0 && c->module->dataflow_count == 0 && c->module->count == 0 && c->programs->count > 0) {
        diag *d = diag_add(&c->diags, E_STEP_OPTION, SRC_NOWHERE, "`%s` is a stream program and no dataflow model of blocks",
                           c->programs->graphs[0]->name);
        diag_help(&c->diags, d, "--emit=step-report has its costs, --emit=ir, dot and svg its graph");
        return false;
    }
    const char *text = json ? dataflow_json(&l) : dataflow_text(&l);
    *data = (const unsigned char *)text;
    *size = text ? strlen(text) : 0;
    return text != NULL && c->diags.error_count == 0;
}
