/* A statement as people write it: "MK,NK->MN", and "MAP y[M] = max(x[M] + b[M], 0)" for what is no contraction. */
#ifndef VISA_TARGET_EINSUM_TEXT_H
#define VISA_TARGET_EINSUM_TEXT_H

#include "support/strbuf.h"
#include "target/einsum.h"

/* `dense`: names of axes are single letters and stand without spaces (einsum_is_dense). */
void einsum_print_statement(strbuf *out, const einsum *e, const einsum_statement *s, bool dense);
/* Have all axes of its tensors names of one letter? */
bool einsum_is_dense(const einsum *e);
/* The expression alone, over the sources' names with their axes. */
void einsum_print_expression(strbuf *out, const einsum *e, const einsum_statement *s);

#endif
