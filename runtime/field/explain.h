/* Which terms of a wrong element are wrong, by name.
 *
 * The one idea: the element is traced back through the machine, and the factors of every product that is met
 * are looked for among the elements of the reference's tensors, of which no two have one value. The terms
 * that the element should have are those of the einsum; what is in one list and not in the other is what is
 * wrong. */
#ifndef VISA_RUNTIME_FIELD_EXPLAIN_H
#define VISA_RUNTIME_FIELD_EXPLAIN_H

#include "runtime/field/engine.h"
#include "runtime/field/expected.h"

typedef struct field_wrong {
    int64_t element, position; /* of the output's tensor; its first place in the port */
    field_value machine;
} field_wrong;

/* "out[M=3, N=1] lacks a[M=3, K=4094] * b[N=1, K=4094]": of the first of them; notes on d say it of others,
 * and what they have in common. */
void field_explain(field_machine *m, field_expected *x, uint32_t port, uint32_t tensor, const field_wrong *wrong, size_t count,
                   diag_list *diags, diag *d);

#endif
