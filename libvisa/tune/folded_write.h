/* The text of a kernel whose sums are shared by slices (folded_plan.h). */
#ifndef VISA_LIBVISA_TUNE_FOLDED_WRITE_H
#define VISA_LIBVISA_TUNE_FOLDED_WRITE_H

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/text.h"

/* Axes, types and parameters of a kernel whose sums slices share, with the mappings of Cluster and Slice, up to its body; a result that is
 * not written into a parameter is returned. */
void folded_write_head(tune_page *page, const target *t, const tune_question *q, const char *cluster, const char *slice, bool is_written);

/* `head`: lines in front of it; `found`: the result of compiling the same text, NULL: none yet. Lives in the arena. */
void folded_write(const target *t, const tune_question *q, const folded_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out);

#endif
