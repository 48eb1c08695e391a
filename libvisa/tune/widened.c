#include "libvisa/tune/widened.h"

#include <inttypes.h>

#include "support/integer.h"

enum { LANES = 8, WORD_BITS = 64 };

/* In which the Vector Engine has elements of a type. */
static dtype fetched_as(dtype stored)
{
    return target_converts(ENGINE_ID_FETCH, stored, DTYPE_I32) ? DTYPE_I32 : DTYPE_F32;
}

bool widened_converts(dtype stored, dtype multiplied)
{
    if (target_converts(ENGINE_ID_FETCH, stored, multiplied))
        return true;
    const bool is_narrower = dtype_row_of(stored)->bits < dtype_row_of(multiplied)->bits;
    return is_narrower && target_converts(ENGINE_ID_FETCH, stored, fetched_as(stored)) &&
           target_converts(ENGINE_ID_CAST, DTYPE_F32, multiplied);
}

int64_t widened_cycles(const tune_question *q, tune_role role, int64_t elements)
{
    enum { FILL = 24 };
    return tune_is_widened(q, role) ? FILL + elements / LANES : 0;
}

int64_t widened_packet(const tune_question *q, tune_role role, int64_t sums)
{
    const dtype stored = tune_stored_of(q, role);
    const bool casts = target_converts(ENGINE_ID_FETCH, stored, q->type);
    return casts ? gcd(sums, 2 * LANES) : larger(LANES, WORD_BITS / dtype_row_of(stored)->bits);
}

void widened_write(tune_page *w, const target *t, const tune_question *q, tune_role role, const widened_text *x)
{
    const dtype stored = tune_stored_of(q, role), between = fetched_as(stored);
    const char *type = dtype_row_of(q->type)->name;
    const bool casts = target_converts(ENGINE_ID_FETCH, stored, q->type);
    tune_line(w, "let %s: DmTensor<%s, Chip, Cluster, %s, m![%s]> = device.main", x->into, type, x->slice, x->element);
    tune_line(w, "    .begin(%s.view())", x->from);
    tune_line(w, "    .fetch::<m![%s], m![%s]>()", x->time, x->packet);
    tune_line(w, "    .fetch_cast::<%s>()", casts ? type : dtype_row_of(between)->name);
    tune_line(w, "    .collect()");
    if (between == DTYPE_I32) {
        tune_line(w, "    .vector_init()");
        tune_line(w, "    .vector_intra_slice_tag(TagMode::Zero)");
        if (x->zero)
            tune_line(w, "    .vector_fxp(FxpBinaryOp::SubFxp, %s)", x->zero);
        tune_line(w, "    .vector_fxp_to_fp(31)");
        tune_line(w, "    .vector_final()");
    }
    if (!casts)
        tune_line(w, "    .cast::<%s, m![%s # %" PRId64 "]>()", type, x->flit, t->flit_bytes * 8 / dtype_row_of(q->type)->bits);
    tune_line(w, "    .commit_trim::<m![%s]>()", x->flit);
    tune_line(w, "    .commit();");
}
