/* What stalls whom in a run of a stream program: as text, as JSON, as events of a trace, and as a page.
 *
 * The one idea: whenever an operator goes on, the edge that let it wait is known (runtime/step/engine.c); so every cycle of waiting has a
 * name, and the longest are those to look at. */
#ifndef VISA_RUNTIME_STEP_STALL_H
#define VISA_RUNTIME_STEP_STALL_H

#include "runtime/step/engine.h"
#include "support/strbuf.h"

/* The edges that cost most. Nothing where nobody waited. */
void step_stalls_put(strbuf *s, const step_run *r);
/* `, "edges": [..]`: every edge with what went through and what waited. */
void step_stalls_put_json(strbuf *s, const step_run *r);

/* Of a run that kept its record. Chrome's trace events: a row for each operator, a counter for each queue, one cycle per microsecond. */
const char *step_trace_text(const step_run *r);
/* Graph, timeline, queues and the report (`text`). */
const char *step_page_text(const step_run *r, const char *text);

#endif
