/* A convolution some of whose tensors lie otherwise than its kernels take them: PyTorch's, of images [n, c, y, x] and filters [f, c, r, s].
 *
 * The one idea: it is the known question with passes in front of it and behind it that bring these tensors into another order (lay.h), by
 * functions of their own: operands by way of HBM, the result from DM where it leaves in one copy. The kernel in the middle is what the
 * known question has. */
#ifndef VISA_LIBVISA_TUNE_RELAID_H
#define VISA_LIBVISA_TUNE_RELAID_H

#include "libvisa/compilation.h"
#include "libvisa/tune/question.h"
#include "libvisa/tune/search.h"

/* The known question. False: there is none, or nothing lies otherwise. */
bool relaid_read(const tune_expression *e, const visa_tune_options *o, arena *a, tune_question *out);

/* Of the known question's kernel that of the question, *out. False: diagnosed, in *diags. */
bool relaid_weave(visa_compilation *c, const target *t, const visa_tune_options *o, const tune_expression *e, const tune_question *q,
                  const tune_found *known, diag_list *diags, strbuf *out);

#endif
