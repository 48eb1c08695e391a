#include "passes/place.h"

#include <stdlib.h>

#include "ir/placed.h"
#include "ir/work.h"
#include "passes/storage.h"
#include "support/budget.h"
#include "support/order.h"

/* A tensor starts at a multiple of 256 bytes, the unit of HBM requests; in DM, where an odd multiple of it is read at half the rate
 * (measured on hardware, not charged by the timing model), of 512. Where that does not fit, at the least that copies and commits allow. In
 * the VRF a tensor begins with a flit, in SPM a list with an element. */
typedef struct memory_row {
    tensor_kind kind;
    int64_t alignments[3]; /* bytes, the best first */
} memory_row;
static const memory_row memory_rows[] = {
    {TENSOR_HBM, {1 << 20, 4096, 256}},
    {TENSOR_DM, {512, 256, 8}},
    {TENSOR_VRF, {32, 32, 32}},
    {TENSOR_SPM, {64, 8, 4}},
};
enum { MEMORY_ROWS = sizeof memory_rows / sizeof *memory_rows, TOLD_TENSORS = 6 };

typedef struct placing {
    pass_context *context;
    kernel *kernel;
    const live_range *live; /* by index of the operation */
    uint32_t works;
    bool told;
    const memory_row *row;
    op **owners; /* of the items */
    storage_item *items;
    size_t count;
} placing;

/* ---- HBM and DM ---- */

/* By how many pieces of work a live range is widened on both sides: bytes that are reused so much later make nobody wait. What takes more
 * than an eighth of the memory gives way before the rest does, which is widened at least as far. */
static const uint32_t slacks[] = {UINT32_MAX, 16, 8, 4, 2, 1, 0};
enum { SLACKS = sizeof slacks / sizeof *slacks, LARGE = 8 };

static void collect(placing *x, arena *a)
{
    const kernel *k = x->kernel;
    x->owners = arena_alloc_unset(a, k->op_count * sizeof *x->owners);
    x->items = arena_alloc_unset(a, k->op_count * sizeof *x->items);
    x->count = 0;
    for (size_t i = 0; i < k->op_count; i++) {
        op *o = k->ops[i];
        if (o->stash_bytes > 0 && x->row->kind == TENSOR_VRF && !o->bad) {
            x->items[x->count] =
                (storage_item){.bytes = o->stash_bytes, .fixed = true, .offset = x->context->target->vrf_bytes - o->stash_bytes};
            x->owners[x->count++] = o;
            continue;
        }
        int64_t bytes = o->out.kind == x->row->kind && op_makes_memory(o) && !o->bad ? tensor_unit_bytes(&o->out) : 0;
        if (bytes <= 0 || bytes > memory_limit(x->context->target, o->out.kind)) /* refused on its own (E-CAPACITY) */
            continue;
        x->items[x->count] = (storage_item){.bytes = bytes, .fixed = !o->unplaced, .offset = o->unplaced ? 0 : o->out.address};
        x->owners[x->count++] = o;
    }
}

static void set_ranges(placing *x, uint32_t large_slack, uint32_t small_slack, int64_t alignment)
{
    int64_t large = memory_limit(x->context->target, x->row->kind) / LARGE;
    for (size_t i = 0; i < x->count; i++) {
        const live_range *r = &x->live[x->owners[i]->index];
        uint32_t slack = x->items[i].bytes > large ? large_slack : small_slack;
        x->items[i].first = r->first > slack ? r->first - slack : 0;
        x->items[i].last = slack < x->works && r->last < x->works - slack ? r->last + slack : x->works;
        x->items[i].alignment = alignment;
    }
}

static bool is_live_at(const placing *x, size_t i, uint32_t step)
{
    const live_range *r = &x->live[x->owners[i]->index];
    return r->first <= step && step <= r->last;
}

/* Bytes that are live in each step, 0 to `works`, of ranges that begin and end there: what begins adds its bytes, what has ended takes
 * them. */
static int64_t *loads_begin(const placing *x, arena *a)
{
    return ARENA_ARRAY(a, int64_t, (size_t)x->works + 2);
}

static void loads_add(int64_t *loads, int64_t first, int64_t last, int64_t bytes)
{
    loads[first] += bytes;
    loads[last + 1] -= bytes;
}

static void loads_end(const placing *x, int64_t *loads)
{
    for (size_t step = 1; step <= x->works; step++)
        loads[step] += loads[step - 1];
    budget_spend(x->context->arena, x->count + x->works);
}

/* Number of the item whose first work has the most bytes live, and how many. */
static size_t fullest(const placing *x, int64_t *load)
{
    arena *scratch = arena_new_inside(x->context->arena);
    int64_t *loads = loads_begin(x, scratch);
    for (size_t i = 0; i < x->count; i++) {
        const live_range *r = &x->live[x->owners[i]->index];
        loads_add(loads, r->first, r->last, x->items[i].bytes);
    }
    loads_end(x, loads);
    size_t at = 0;
    *load = -1;
    for (size_t i = 0; i < x->count; i++) {
        uint32_t first = x->live[x->owners[i]->index].first;
        if (loads[first] > *load) {
            *load = loads[first];
            at = i;
        }
    }
    arena_free(scratch);
    return at;
}

/* The most bytes that are live at once in the ranges at hand. */
static int64_t load_of(const placing *x)
{
    arena *scratch = arena_new_inside(x->context->arena);
    int64_t *loads = loads_begin(x, scratch), most = 0;
    for (size_t i = 0; i < x->count; i++)
        loads_add(loads, x->items[i].first, x->items[i].last, x->items[i].bytes);
    loads_end(x, loads);
    for (size_t step = 0; step <= x->works; step++)
        most = loads[step] > most ? loads[step] : most;
    arena_free(scratch);
    return most;
}

static void note_live(const placing *x, diag *d, uint32_t step)
{
    diag_list *diags = x->context->diags;
    bool *is_told = ARENA_ARRAY(x->context->arena, bool, x->count + 1);
    int64_t rest = 0;
    size_t others = 0, count = 0;
    for (size_t told = 0; told < TOLD_TENSORS; told++) {
        size_t largest = x->count;
        for (size_t i = 0; i < x->count; i++)
            if (is_live_at(x, i, step) && !is_told[i] && (largest == x->count || x->items[i].bytes > x->items[largest].bytes))
                largest = i;
        if (largest == x->count)
            break;
        is_told[largest] = true;
        count++;
        const op *o = x->owners[largest];
        const live_range *r = &x->live[o->index];
        diag_note(diags, d, o->range, "`%s` takes %lld bytes%s from here", pass_name(o), (long long)x->items[largest].bytes,
                  x->items[largest].fixed ? arena_printf(x->context->arena, " at %lld", (long long)x->items[largest].offset) : "");
        if (r->last_use->range.begin != o->range.begin)
            diag_note(diags, d, r->last_use->range, "to here");
    }
    for (size_t i = 0; i < x->count; i++)
        if (is_live_at(x, i, step) && !is_told[i]) {
            rest += x->items[i].bytes;
            others++;
        }
    if (others > 0)
        diag_note(diags, d, SRC_NOWHERE, "and %zu more, %lld bytes together", others, (long long)rest);
}

/* One that is there in this step and not touched by it: if it came later, or its work were done before, it would not be in the way. */
static const op *idle_at(const placing *x, uint32_t step)
{
    const op *idle = NULL;
    int64_t bytes = 0;
    for (size_t i = 0; i < x->count; i++) {
        const live_range *r = &x->live[x->owners[i]->index];
        bool port = x->owners[i]->kind == IR_PORT_IN || x->items[i].fixed;
        if (r->first < step && step < r->last && !port && x->items[i].bytes > bytes) {
            idle = x->owners[i];
            bytes = x->items[i].bytes;
        }
    }
    return idle;
}

/* The work that is the last to use tensors which are too large together: no order of the work helps. */
static bool is_taken_together(const placing *x, uint32_t step, int64_t limit)
{
    arena *scratch = arena_new_inside(x->context->arena);
    int64_t *ending = ARENA_ARRAY(scratch, int64_t, (size_t)x->works + 1); /* bytes, by the last work of a tensor */
    for (size_t i = 0; i < x->count; i++)
        ending[x->live[x->owners[i]->index].last] += x->items[i].bytes;
    budget_spend(scratch, x->count + x->works);
    bool together = false;
    for (size_t i = 0; i < x->count && !together; i++) {
        uint32_t last = x->live[x->owners[i]->index].last;
        together = is_live_at(x, i, step) && last > step && ending[last] > limit;
    }
    arena_free(scratch);
    return together;
}

static const op *stash_at(const placing *x, uint32_t step)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->owners[i]->stash_bytes > 0 && is_live_at(x, i, step))
            return x->owners[i];
    return NULL;
}

static void refuse(placing *x, const storage_result *r)
{
    int64_t load, limit = memory_limit(x->context->target, x->row->kind);
    size_t at = fullest(x, &load);
    uint32_t step = x->live[x->owners[at]->index].first;
    op *o = x->owners[at];
    const op *stash = stash_at(x, step);
    diag *d;
    if (load > limit && stash)
        d = pass_refuse(x->context, x->kernel, o, MAPPING_COMPONENTS, E_VRF_STASH,
                        "%s are live at once here, %s has %lld, of which the stash of the same pass takes %lld",
                        arena_count(x->context->arena, load, "byte"), memory_name(x->row->kind), (long long)limit,
                        (long long)stash->stash_bytes);
    else if (load > limit)
        d = pass_refuse(x->context, x->kernel, o, MAPPING_COMPONENTS, E_PLACE, "%s are live at once here, %s has %lld",
                        arena_count(x->context->arena, load, "byte"), memory_name(x->row->kind), (long long)limit);
    else
        d = pass_refuse(x->context, x->kernel, o, MAPPING_COMPONENTS, E_PLACE,
                        "at most %s are live at once, here, but %s up to byte %lld, and %s has %lld",
                        arena_count(x->context->arena, load, "byte"),
                        r->is_least ? "every placement goes" : "every placement that was tried goes", (long long)r->peak,
                        memory_name(x->row->kind), (long long)limit);
    note_live(x, d, step);
    const op *idle = idle_at(x, step);
    if (stash)
        diag_help(x->context->diags, d, "store at most %s for a pass with a stash, or use them in a pass of their own",
                  arena_count(x->context->arena, limit - stash->stash_bytes, "byte"));
    else if (is_taken_together(x, step, limit))
        diag_help(x->context->diags, d, "one piece of work takes them all: let it be two, with a commit between, or store less");
    else if (idle)
        diag_help(x->context->diags, d, "make `%s` later, or use it up before: nothing here needs it%s", pass_name(idle),
                  x->row->kind == TENSOR_DM ? "; or spread an axis of the largest over Slice or Cluster" : "");
    else
        diag_help(x->context->diags, d, "spread an axis of the largest over %s, or work on tiles of it",
                  x->row->kind == TENSOR_DM ? "Slice or Cluster" : "Chip");
}

/* Does anything in this memory wait for a place? */
static bool has_unplaced(const placing *x)
{
    bool any = false;
    for (size_t i = 0; i < x->kernel->op_count && !any; i++)
        any = x->kernel->ops[i]->unplaced && x->kernel->ops[i]->out.kind == x->row->kind;
    return any;
}

static bool place_row(placing *x)
{
    if (!has_unplaced(x))
        return true;
    int64_t limit = memory_limit(x->context->target, x->row->kind);
    arena *scratch = arena_new_inside(x->context->arena);
    collect(x, scratch);
    bool any = false, done = false;
    for (size_t i = 0; i < x->count; i++)
        any = any || !x->items[i].fixed;
    storage_result r = {0};
    for (int l = 0; l < SLACKS && any && !done; l++)
        for (int s = 0; s <= l && !done; s++)
            for (int a = 0; a < (s == SLACKS - 1 ? 3 : 2) && !done; a++) {
                set_ranges(x, slacks[l], slacks[s], x->row->alignments[a]);
                bool last = s == SLACKS - 1 && a == 2;
                if (!last && load_of(x) > limit)
                    continue;
                r = storage_pack(x->items, x->count, limit, scratch);
                done = r.peak <= limit;
            }
    for (size_t i = 0; i < x->count && done; i++)
        if (!x->items[i].fixed)
            x->owners[i]->out.address = x->items[i].offset;
    if (any && !done && x->told)
        refuse(x, &r);
    arena_free(scratch);
    return done || !any;
}

/* ---- the halves of the TRF ---- */

enum { TRF_SEARCH_STEPS = 1 << 16 };

typedef int64_t half_times[2];

typedef struct halves {
    placing *placing;
    op **owners;            /* by their first work */
    int *taken;             /* trf_address */
    half_times *until;      /* of each half: the last work that needs it, of all those in front; -1: none */
    half_times *from;       /* and the first of those behind that are told where to lie; INT64_MAX: none */
    size_t count, farthest; /* the first that found no place, at best */
    int64_t steps_left;
} halves;

static bool fits_half(const target *t, const op *o)
{
    int64_t rows = o->out.part[ROW] ? o->out.part[ROW]->size : 1, bytes = tensor_unit_bytes(&o->out);
    return bytes >= 0 && bytes <= target_trf_capacity_bytes(t, TRF_FIRST_HALF) / rows;
}

static bool is_in_half(int place, int half)
{
    return place == TRF_FULL || place == (half ? TRF_SECOND_HALF : TRF_FIRST_HALF);
}

/* Those in front begin no later, those behind no earlier: each half is a line of time, of which two ends are enough. */
static bool is_free(const halves *h, size_t i, trf_address place)
{
    const live_range *mine = &h->placing->live[h->owners[i]->index];
    bool is_free = true;
    for (int half = 0; half < 2; half++)
        is_free = is_free && (!is_in_half((int)place, half) || (h->until[i][half] < mine->first && h->from[i][half] > mine->last));
    return is_free;
}

static void take(const halves *h, size_t i, trf_address place)
{
    int64_t last = h->placing->live[h->owners[i]->index].last;
    h->taken[i] = (int)place;
    for (int half = 0; half < 2; half++)
        h->until[i + 1][half] = is_in_half((int)place, half) && last > h->until[i][half] ? last : h->until[i][half];
}

static void look_ahead(const halves *h)
{
    h->from[h->count][0] = h->from[h->count][1] = INT64_MAX;
    for (size_t i = h->count; i-- > 0;)
        for (int half = 0; half < 2; half++) {
            const op *next = i + 1 < h->count ? h->owners[i + 1] : NULL;
            h->from[i][half] = next && !next->unplaced && is_in_half((int)next->out.trf_address, half) ? h->placing->live[next->index].first
                                                                                                       : h->from[i + 1][half];
        }
}

/* Tensors by their first work; each takes the half that has been free for longer, since a store into it may begin while the other one is
 * still read, and that one when this leads nowhere. */
static bool take_halves(halves *h)
{
    uint8_t *tried = ARENA_ARRAY(h->placing->context->arena, uint8_t, h->count + 1);
    look_ahead(h);
    h->until[0][0] = h->until[0][1] = -1;
    for (size_t i = 0; i < h->count;) {
        budget_spend(h->placing->context->arena, 1);
        op *o = h->owners[i];
        bool half = fits_half(h->placing->context->target, o), found = false;
        int options = !o->unplaced ? 1 : half ? 2 : 1;
        trf_address first = h->until[i][1] < h->until[i][0] ? TRF_SECOND_HALF : TRF_FIRST_HALF;
        while (!found && tried[i] < options) {
            trf_address place = !o->unplaced ? o->out.trf_address
                                : !half      ? TRF_FULL
                                : tried[i]   ? (first == TRF_FIRST_HALF ? TRF_SECOND_HALF : TRF_FIRST_HALF)
                                             : first;
            tried[i]++;
            if (!o->unplaced || is_free(h, i, place)) {
                take(h, i, place);
                found = true;
            }
        }
        if (found) {
            i++;
            continue;
        }
        h->farthest = i > h->farthest ? i : h->farthest;
        tried[i] = 0;
        if (i == 0 || h->steps_left-- <= 0)
            return false;
        i--;
    }
    return true;
}

typedef struct stored {
    uint32_t first;
    op *op;
} stored;

static int by_first(const void *a, const void *b)
{
    const stored *x = a, *y = b;
    return order_then(ORDER(x->first, y->first), ORDER(x->op->index, y->op->index));
}

static void refuse_half(const halves *h)
{
    const placing *x = h->placing;
    op *o = h->owners[h->farthest];
    const live_range *mine = &x->live[o->index];
    diag *d = pass_refuse(x->context, x->kernel, o, MAPPING_COMPONENTS, E_PLACE, "no half of the TRF is free for these %lld bytes per Row",
                          (long long)tensor_unit_bytes(&o->out));
    for (size_t j = 0; j < h->count; j++) {
        const live_range *r = &x->live[h->owners[j]->index];
        if (h->owners[j] == o || r->first > mine->last || r->last < mine->first)
            continue;
        diag_note(x->context->diags, d, h->owners[j]->range, "`%s` takes %s from here", pass_name(h->owners[j]),
                  fits_half(x->context->target, h->owners[j]) ? "a half" : "all of it");
        diag_note(x->context->diags, d, r->last_use->range, "to here");
    }
    diag_help(x->context->diags, d,
              "store `%s` when one of them is no longer read, or keep fewer weights: two tensors of up to half the TRF fit", pass_name(o));
}

static bool place_trf(placing *x)
{
    const kernel *k = x->kernel;
    arena *scratch = arena_new_inside(x->context->arena);
    halves h = {.placing = x, .steps_left = TRF_SEARCH_STEPS};
    stored *all = arena_alloc_unset(scratch, k->op_count * sizeof *all);
    bool any = false;
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->out.kind == TENSOR_TRF && op_makes_memory(k->ops[i]) && !k->ops[i]->bad) {
            all[h.count++] = (stored){x->live[i].first, k->ops[i]};
            any = any || k->ops[i]->unplaced;
        }
    order_sort(all, h.count, sizeof *all, by_first);
    h.owners = ARENA_ARRAY(scratch, op *, h.count + 1);
    h.taken = ARENA_ARRAY(scratch, int, h.count + 1);
    h.until = ARENA_ARRAY(scratch, half_times, h.count + 1);
    h.from = ARENA_ARRAY(scratch, half_times, h.count + 1);
    for (size_t i = 0; i < h.count; i++)
        h.owners[i] = all[i].op;
    bool ok = !any || take_halves(&h);
    for (size_t i = 0; i < h.count && any && ok; i++)
        h.owners[i]->out.trf_address = (trf_address)h.taken[i];
    if (!ok && x->told)
        refuse_half(&h);
    arena_free(scratch);
    return ok;
}

/* ---- all ---- */

bool place_memories(pass_context *p, kernel *k, bool told)
{
    bool any = false, ok = true;
    for (size_t i = 0; i < k->op_count; i++)
        any = any || k->ops[i]->unplaced;
    if (!any)
        return true;
    arena *scratch = arena_new_inside(p->arena);
    placing x = {.context = p, .kernel = k, .told = told};
    x.live = kernel_live_ranges(k, scratch, &x.works);
    for (int i = 0; i < MEMORY_ROWS; i++) {
        x.row = &memory_rows[i];
        ok = place_row(&x) && ok;
    }
    ok = place_trf(&x) && ok;
    arena_free(scratch);
    return ok;
}
