#include "libvisa/tune/aside.h"

#include "libvisa/tune/machine.h"
#include "support/integer.h"

int64_t aside_flit_of(const target *t, const tune_question *q)
{
    return t->flit_bytes * 8 / dtype_row_of(q->type)->bits;
}

/* Runs of a copy are of 128 bytes, where the axis has them; slices of a cluster are a power of two. */
int64_t aside_kept_of(const target *t, const tune_question *q, tune_role role)
{
    enum { RUN_BYTES = 128 };
    tune_place operand = role == TUNE_ROW ? q->stream : q->weights;
    int64_t size = q->size[role], unit = tune_turn_columns(q, 16);
    if (!q->turned[operand] || q->size[TUNE_BATCH] > 1 || q->size[TUNE_SUM] % (2 * aside_flit_of(t, q)) != 0 || size % unit != 0)
        return 0;
    int64_t kept = unit;
    while (size % (2 * kept) == 0 && tune_bytes_of(q->type, kept) < RUN_BYTES)
        kept *= 2;
    int64_t parts = size / kept;
    return parts <= tune_slices_of(t, q->most_slices) && t->slices_per_cluster % parts == 0 ? kept : 0;
}

aside_turners aside_turners_of(const target *t, const tune_question *q, const aside *x)
{
    aside_turners of = {.of_kept = q->size[x->role] / x->kept, .of_sum = 1};
    int64_t flits = x->sums / aside_flit_of(t, q);
    of.clusters = flits % t->clusters_per_chip == 0 ? t->clusters_per_chip : 1;
    while (of.of_kept * of.of_sum * 2 <= tune_slices_of(t, q->most_slices) && flits % (of.clusters * of.of_sum * 2) == 0)
        of.of_sum *= 2;
    of.sums = x->sums / (of.clusters * of.of_sum);
    return of;
}

int64_t aside_block_of(const target *t, const tune_question *q, tune_role role, int64_t taken)
{
    int64_t block = round_up(taken, t->hbm_block_bytes / t->flit_bytes);
    return q->size[role] % block == 0 ? block : q->size[role];
}
