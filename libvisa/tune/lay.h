/* A tensor in another order of its axes, as a question: `Y[n, m] = X[m, n]`. */
#ifndef VISA_LIBVISA_TUNE_LAY_H
#define VISA_LIBVISA_TUNE_LAY_H

#include "libvisa/tune/file.h"
#include "libvisa/tune/lay_plan.h"
#include "libvisa/tune/search.h"

/* Is a question nothing but that? `Y[m, n] = X[m, n]` is none. */
bool lay_read(const tune_expression *e, const visa_tune_options *o, arena *a, lay_order *out);

/* The best plan, what it takes, and why the first one was refused; all of *out but its plan. False: none compiles. */
bool lay_search(const target *t, const visa_tune_options *o, const lay_order *x, arena *a, tune_answer *out, lay_plan *plan);

/* A kernel for it; false: diagnosed. */
bool lay_answer(const target *t, const visa_tune_options *o, const tune_expression *e, const lay_order *x, diag_list *diags, strbuf *out);

/* A function of that name, for a kernel that has other work, whose argument and value are the tensor in both orders; the argument may be in
 * DM: its type, or NULL. */
void lay_write_function(const target *t, const lay_order *x, const lay_plan *p, const tune_text *found, const char *name,
                        const char *dm_type, arena *a, strbuf *out);

#endif
