/* Rule. A chain reads while it writes, so it may write over its own source only where no byte is written before it is read: both walks are
 * one run of addresses from the same one on, and no more is written than read. Anything else over the source is a warning, since whether a
 * flit comes too early depends on walks that are not compared here. */
#include "passes/in_place.h"

#include "ir/work.h"

static bool is_one_run(const op *o)
{
    int64_t steps = 1;
    for (uint32_t i = 0; i < o->sequencer->count; i++)
        steps *= o->sequencer->entries[i].size;
    return o->sequencer->contiguous_bytes >= steps * dtype_row_of(o->kind == IR_FETCH ? op_input(o)->out.dtype : o->out.dtype)->bits / 8;
}

static const op *fetch_of(const op *commit)
{
    const op *o = commit;
    while (o && !op_kind_is(o->kind, BEGINS_CHAIN))
        o = op_input(o);
    return o && o->kind == IR_FETCH && o->sequencer ? o : NULL;
}

static bool same_units(pass_context *p, const tensor *a, const tensor *b)
{
    for (component c = CHIP; c <= SLICE; c++)
        if (!a->part[c] || !b->part[c] || !mapping_equal(p->mappings, a->part[c], b->part[c]))
            return false;
    return true;
}

static void check_commit(pass_context *p, kernel *k, op *commit)
{
    const op *fetch = fetch_of(commit);
    work w;
    if (!fetch || !commit->sequencer || k->bad)
        return;
    work_make(p->target, commit, p->arena, &w);
    for (size_t i = 0; i < w.access_count; i++)
        for (size_t j = 0; j < w.access_count; j++) {
            const memory_access *read = &w.accesses[i], *write = &w.accesses[j];
            if (read->write || !write->write || read->kind != TENSOR_DM || write->kind != TENSOR_DM || read->begin >= write->end ||
                write->begin >= read->end || !same_units(p, &read->memory->out, &write->memory->out))
                continue;
            bool safe =
                read->begin == write->begin && write->end <= read->end && is_one_run(fetch) && is_one_run(commit) && !op_second(fetch);
            if (safe)
                continue;
            diag *d =
                diag_add(p->diags, W_IN_PLACE, commit->range,
                         "commit writes bytes %lld..%lld over `%s` (bytes %lld..%lld), which the same chain still reads",
                         (long long)write->begin, (long long)write->end, read->memory->name, (long long)read->begin, (long long)read->end);
            diag_note(p->diags, d, fetch->range, "it is read here");
            diag_help(p->diags, d, "the first free address after it is %lld", (long long)((read->end + 7) / 8 * 8));
            return;
        }
}

void pass_in_place(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_COMMIT, check_commit);
}
