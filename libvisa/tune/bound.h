/* The least that any kernel of a question takes by the timing model.
 *
 * The one idea: a question says how many bytes, products and passes there are, whatever the plan; runtime/timing/attainable.h has the rule
 * that makes cycles of them, for reports, too. */
#ifndef VISA_LIBVISA_TUNE_BOUND_H
#define VISA_LIBVISA_TUNE_BOUND_H

#include "libvisa/tune/question.h"
#include "runtime/timing/attainable.h"

attainable tune_bound_of(const target *t, const tune_question *q);

#endif
