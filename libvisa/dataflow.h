/* Dataflow models for readers and programs: --emit=dataflow and --emit=dataflow-json (docs/dataflow.md).
 *
 * The one idea: the items of the file first, then every contraction of every kernel with what it takes to feed it, and besides that what
 * the cycle model says of the same chain, which the caller brings along. */
#ifndef VISA_LIBVISA_DATAFLOW_H
#define VISA_LIBVISA_DATAFLOW_H

#include "libvisa/compilation.h"
#include "passes/dataflow.h"

/* A contraction and what was measured of it. */
typedef struct dataflow_place {
    const char *kernel;
    uint32_t line;
    const dataflow_contraction *contraction;
    const visa_contraction *measured; /* NULL: nothing was */
    int64_t cycles;                   /* max(L, stream) */
} dataflow_place;

typedef struct dataflow_listing {
    visa_compilation *compilation;
    dataflow_place *places;
    size_t count, capacity;
} dataflow_listing;

/* cII, eII and L of a stage, in cycles: flits of a packet before the multiplications, steps in them, flits of results after. */
typedef struct dataflow_stage {
    dataflow_ratio cii, eii; /* a packet that several blocks share is a part of each */
    int64_t latency;
} dataflow_stage;
dataflow_stage dataflow_stage_of(const dataflow_contraction *d, visa_stage_side side);

uint32_t dataflow_line(const dataflow_listing *l, src_range range);
/* Inferences per second, 0: no clock. */
double dataflow_rate(const dataflow_model *m);
const char *dataflow_text(const dataflow_listing *l);
/* NULL: out of memory. */
const char *dataflow_json(const dataflow_listing *l);

#endif
