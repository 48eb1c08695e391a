#include "runtime/timing/dm_extent.h"

#include "codegen/copy_command.h"
#include "runtime/machine/walk.h"

static bool copies_to_dm(const command *c, copy_command *k)
{
    if (!command_is_copy(c))
        return false;
    *k = copy_command_read(c);
    return k->destination.memory == COPY_DM;
}

/* Low and high address that a table walks from its base; false: past what an address can be. */
static bool bounds(const walk *w, int64_t *low, int64_t *high)
{
    walk_address from, to;
    walk_bounds(w, &from, &to);
    *low = (int64_t)from;
    *high = (int64_t)to;
    return !(to >> 48);
}

/* A fetch or commit counts elements from a base in bytes, a copy counts bytes from slice to slice. */
dm_extent dm_extent_of(const target *t, const command *c)
{
    bool fetches = c->op == OP_FETCH;
    copy_command k = {0};
    bool copies = copies_to_dm(c, &k);
    if (!fetches && !copies && c->op != OP_COMMIT)
        return (dm_extent){0};
    walk w = {.count = c->entry_count};
    for (unsigned i = 0; i < c->entry_count; i++) {
        w.size[i] = copies ? k.size[i] : command_entry(c, i, fetches ? FETCH_ENTRY_SIZE : COMMIT_ENTRY_SIZE);
        w.stride[i] = copies ? k.destination.stride[i] : command_entry(c, i, fetches ? FETCH_ENTRY_STRIDE : COMMIT_ENTRY_STRIDE);
        if (copies && w.stride[i] % t->dm_slice_stride_bytes == 0)
            w.stride[i] = 0; /* the same place in another slice */
    }
    int64_t low, high;
    if (!bounds(&w, &low, &high))
        return (dm_extent){0};
    int64_t base = copies ? k.destination.base % t->dm_slice_stride_bytes : command_get(c, fetches ? FETCH_BASE : COMMIT_BASE);
    if (copies)
        return (dm_extent){base + low, base + high + k.packet_bytes};
    int64_t bits = dtype_row_of((dtype)command_get(c, fetches ? FETCH_DTYPE_IN : COMMIT_DTYPE))->bits;
    return (dm_extent){base + low * bits / 8, base + ((high + 1) * bits + 7) / 8};
}

dm_extent dm_extent_written(const command *c)
{
    copy_command k;
    if (!copies_to_dm(c, &k))
        return (dm_extent){0};
    walk w = walk_of_copy(&k, &k.destination);
    int64_t low, high;
    return bounds(&w, &low, &high) ? (dm_extent){k.destination.base + low, k.destination.base + high + k.packet_bytes}
                                   : (dm_extent){0, INT64_MAX};
}

bool dm_extents_meet(dm_extent a, dm_extent b)
{
    return a.end > 0 && b.end > 0 && a.begin < b.end && b.begin < a.end;
}
