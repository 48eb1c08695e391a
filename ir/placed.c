#include "ir/placed.h"

#include "support/order.h"

const char *memory_name(tensor_kind kind)
{
    switch (kind) {
    case TENSOR_HBM: return "a chip's HBM";
    case TENSOR_DM: return "a slice's DM";
    case TENSOR_VRF: return "a slice's VRF";
    case TENSOR_SPM: return "a PE's SPM";
    default: return "a slice's TRF";
    }
}

int64_t memory_limit(const target *t, tensor_kind kind)
{
    switch (kind) {
    case TENSOR_HBM: return t->hbm_bytes_per_chip;
    case TENSOR_DM: return t->dm_bytes_per_slice;
    case TENSOR_VRF: return t->vrf_bytes;
    case TENSOR_SPM: return t->spm_bytes_per_pe;
    default: return t->trf_bytes;
    }
}

static int by_address(const void *a, const void *b)
{
    const placed_memory *x = a, *y = b;
    return order_then(ORDER(x->begin, y->begin), order_then(ORDER(x->live.first, y->live.first), ORDER(x->op->index, y->op->index)));
}

placed_list placed_memories(const target *t, const kernel *k, tensor_kind kind, arena *a)
{
    placed_list out = {.limit = memory_limit(t, kind)};
    const live_range *live = kernel_live_ranges(k, a, &out.works);
    out.items = ARENA_ARRAY(a, placed_memory, k->op_count + 1);
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        const live_range *r = &live[i];
        if (kind == TENSOR_VRF && o->stash_bytes > 0) {
            out.items[out.count++] = (placed_memory){o, t->vrf_bytes - o->stash_bytes, t->vrf_bytes, *r};
            out.peak = t->vrf_bytes;
            continue;
        }
        if (o->out.kind != kind || !op_makes_memory(o))
            continue;
        int64_t half = t->trf_bytes / 2, bytes = kind != TENSOR_TRF               ? tensor_unit_bytes(&o->out)
                                                 : o->out.trf_address == TRF_FULL ? 2 * half
                                                                                  : half;
        int64_t begin = kind != TENSOR_TRF ? o->out.address : o->out.trf_address == TRF_SECOND_HALF ? half : 0;
        out.items[out.count++] = (placed_memory){o, begin, begin + bytes, *r};
        out.peak = begin + bytes > out.peak ? begin + bytes : out.peak;
    }
    for (size_t i = 0; i < out.count; i++) {
        int64_t load = 0;
        for (size_t j = 0; j < out.count; j++)
            if (out.items[j].live.first <= out.items[i].live.first && out.items[i].live.first <= out.items[j].live.last)
                load += out.items[j].end - out.items[j].begin;
        out.least = load > out.least ? load : out.least;
    }
    order_sort(out.items, out.count, sizeof *out.items, by_address);
    return out;
}
