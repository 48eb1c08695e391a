/* A contraction of batches whose sums take a detour over HBM, in rows of whole blocks, to what is done to them.
 *
 * The one idea: rows of a result that are no whole blocks of HBM are written in parts, and a contraction that has a batch has no slice with
 * enough of them that they are. What is made of rows alone has: its slices have rows that follow each other, whatever batch they are of. So
 * the kernel is two, one after the other. The first has more columns, so that its rows are whole blocks: its weights get rows that nobody
 * reads. The second reads the sums there without them. Either is the answer to a question of its own. */
#ifndef VISA_LIBVISA_TUNE_DETOUR_H
#define VISA_LIBVISA_TUNE_DETOUR_H

#include "libvisa/tune/expression.h"
#include "support/strbuf.h"
#include "target/target.h"

enum { DETOUR_SIZES_MAX = TUNE_AXES_MAX + 1 };

/* What is asked: its text, and sizes of its axes. */
typedef struct detour_question {
    const char *text, *out_type;
    visa_parameter sizes[DETOUR_SIZES_MAX];
    size_t size_count;
} detour_question;

typedef struct detour {
    detour_question first, second;
    const char *sums;       /* what the first one makes, as the second one calls it */
    const char *weights;    /* the tensor that has more columns in the first one: there they are an axis `wide`, */
    const char *wide, *own; /* and as they are handed over an axis of their own, since those of the result are another one's new name */
    const char *own_parts;  /* "K, L": of the question */
    int64_t columns, padded;
    size_t column_axes; /* of the question */
} detour;

/* False: the question has none. Lives in the arena. */
bool detour_of(const target *t, const tune_expression *e, const visa_tune_options *o, arena *a, detour *out);

/* One kernel of both, under `head`: the answers as their writers leave them, which are not laid out yet. False: they cannot be one. */
bool detour_join(const target *t, const detour *d, const char *head, const char *first, const char *second, arena *a, strbuf *out);

/* Lines of an answer's head that say what was chosen. */
const char *detour_choices(const char *answer, arena *a);

#endif
