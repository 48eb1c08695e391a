/* What does not fit on the chip, from a program's costs alone: the share that a run finds (runtime/step/spill.h), where all sizes have
 * numbers. */
#ifndef VISA_CODEGEN_STEP_SPILL_H
#define VISA_CODEGEN_STEP_SPILL_H

#include "ir/step/bind.h"
#include "passes/step/metrics.h"

typedef struct step_spill_cost {
    bool known;             /* all sizes that it takes have numbers */
    int64_t spilled_bytes;  /* of memory that operators want */
    int64_t traffic_bytes;  /* moved off the chip and back because of them */
    const int64_t *by_node; /* of those, by index */
} step_spill_cost;

/* Of a graph whose chip holds a limited number of bytes. */
step_spill_cost step_spill_cost_of(const step_graph *g, const step_metrics *m, const step_bindings *b, arena *a);

#endif
