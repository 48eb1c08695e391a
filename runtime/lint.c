#include "runtime/lint.h"

#include <stdlib.h>
#include <string.h>

#include "support/advice.h"
#include "support/integer.h"
#include "support/strbuf.h"

typedef struct linter {
    const analysis *analysis;
    arena *arena;
    lint *items;
    size_t count, capacity;
    size_t passes; /* that contract */
} linter;

static void add(linter *l, lint item)
{
    if (item.cost > 0)
        ARENA_PUSH(l->arena, l->items, l->count, l->capacity, item);
}

/* ---- contiguous pieces in HBM ---- */

enum { MOST_PARTS = 64 };

/* The beginning of the expression that ends before word `end`. */
static size_t expression_start(layout l, size_t end)
{
    size_t wanted = 1;
    while (wanted > 0) {
        unsigned op = l.words[--end] & 0xff;
        wanted += op == LAYOUT_PAIR ? 1 : op == LAYOUT_AXIS || op == LAYOUT_BROADCAST ? (size_t)-1 : 0;
    }
    return end;
}

/* The parts of a list, innermost first; what is beyond MOST_PARTS stays one part. */
static size_t list_parts(layout l, layout *parts, size_t count)
{
    if ((l.words[l.count - 1] & 0xff) != LAYOUT_PAIR || count + 1 >= MOST_PARTS) {
        parts[count] = l;
        return count + 1;
    }
    size_t middle = expression_start(l, l.count - 1);
    count = list_parts((layout){l.words + middle, l.count - 1 - middle}, parts, count);
    return list_parts((layout){l.words, middle}, parts, count);
}

/* The HBM port at the highest address that is not above `address` (of one chip). */
static const port *port_at(const binary_kernel *k, int64_t address)
{
    const port *found = NULL;
    for (uint32_t i = 0; i < k->port_count; i++)
        if (k->ports[i].space == PORT_HBM && k->ports[i].address <= address && (!found || k->ports[i].address > found->address))
            found = &k->ports[i];
    return found;
}

/* "m![M, N # 128]": the innermost parts that make up a piece, padded to whole blocks; NULL: no parts do. */
static const char *padded_mapping(const linter *l, const port *p, int64_t piece_elements, int64_t padded)
{
    const layout_axis *axes = l->analysis->schedule->kernel->axes;
    layout parts[MOST_PARTS];
    size_t count = list_parts(p->mapping[COMPONENT_ELEMENT], parts, 0), inner = 0;
    int64_t size = 1;
    while (inner < count && size < piece_elements)
        size *= layout_size(parts[inner++], axes);
    if (size != piece_elements || inner == 0)
        return NULL;
    strbuf s;
    strbuf_init(&s, l->arena);
    strbuf_puts(&s, "m![");
    for (size_t i = count; i-- > 0;) {
        strbuf_puts(&s, inner > 1 && i == inner - 1 ? "[" : "");
        strbuf_puts(&s, layout_text(parts[i], axes, l->arena));
        strbuf_puts(&s, i ? ", " : inner > 1 ? "]" : "");
    }
    strbuf_printf(&s, " # %lld]", (long long)padded);
    return s.text;
}

static const char *nearest_pieces(const linter *l, const schedule_item *item, int64_t piece)
{
    const schedule *s = l->analysis->schedule;
    int64_t block = s->target->hbm_block_bytes;
    bool loads = command_get(item->commands, DMA_SOURCE) == 0;
    int64_t base = command_get(item->commands, loads ? DMA_SOURCE_BASE : DMA_DESTINATION_BASE) & ((INT64_C(1) << 36) - 1);
    const port *p = port_at(s->kernel, base);
    int64_t whole = ceil_div(piece, block) * block;
    if (!p)
        return arena_printf(l->arena, "pieces of a multiple of %lld bytes that begin at one", (long long)block);
    if (piece % block == 0)
        return arena_printf(l->arena, "`%s` at a multiple of %lld bytes: its pieces are whole blocks already", p->name, (long long)block);
    unsigned bits = dtype_row_of(p->dtype)->bits;
    const char *text = piece * 8 % bits == 0 ? padded_mapping(l, p, piece * 8 / bits, whole * 8 / bits) : NULL;
    if (text)
        return arena_printf(l->arena, "`%s` as %s, in HBM and DM: %lld bytes per piece", p->name, text, (long long)whole);
    return arena_printf(l->arena, "an order of `%s` in which %lld elements or a multiple lie side by side on both sides", p->name,
                        (long long)(block * 8 / bits));
}

static void check_pieces(linter *l, const schedule_item *item)
{
    const target *t = l->analysis->schedule->target;
    const dma_cost *d = &item->alone.dma;
    if (d->piece_bytes == 0 || (d->piece_bytes % t->hbm_block_bytes == 0 && d->unaligned_pieces == 0))
        return;
    int64_t bytes = d->steps * command_get(item->commands, DMA_PACKET_BYTES);
    int64_t whole = ceil_div(bytes, t->dma_request_bytes), dm = d->dmn_cycles;
    dm = dm < ceil_div(bytes, t->dmn_bytes_per_cycle) ? dm : ceil_div(bytes, t->dmn_bytes_per_cycle);
    int64_t ideal = t->dma_startup_cycles + (whole > dm ? whole : dm);
    add(l, (lint){.rule = W_DMA_PIECES,
                  .line = item->commands->line,
                  .cost = item->alone.total - ideal,
                  .found = arena_printf(l->arena, "%s, %lld of them begin inside a block of %lld; %lld blocks written in part",
                                        advice_pieces(l->arena, d->pieces, d->piece_bytes), (long long)d->unaligned_pieces, (long long)t->hbm_block_bytes,
                                        (long long)d->partial_writes),
                  .nearest = nearest_pieces(l, item, d->piece_bytes)});
}

/* ---- idle clusters and slices ---- */

typedef struct kept_axes {
    const layout_axis **items; /* the largest first */
    size_t count;
} kept_axes;

static void add_kept(kept_axes *k, const layout_axis *x)
{
    size_t at = k->count;
    for (size_t i = 0; i < k->count; i++)
        if (k->items[i] == x)
            return;
    for (; at > 0 && k->items[at - 1]->size < x->size; at--)
        k->items[at] = k->items[at - 1];
    k->items[at] = x;
    k->count++;
}

static bool has_axis(const einsum_tensor *t, uint32_t axis)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->axes[i] == axis)
            return true;
    return false;
}

/* The axes that contraction number `wanted` keeps, `of_weights` or not; none when there are not as many statements as passes. */
static kept_axes kept_axes_of(linter *l, size_t wanted, bool of_weights)
{
    const einsum *e = &l->analysis->schedule->kernel->einsum;
    kept_axes k = {ARENA_ARRAY(l->arena, const layout_axis *, e->axis_count), 0};
    size_t number = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *x = &e->statements[i];
        if (x->op != EINSUM_CONTRACT || number++ != wanted)
            continue;
        for (uint32_t d = 0; d < x->digit_count; d++)
            if (x->digits[d].kept && x->digits[d].size > 1 && has_axis(&e->tensors[x->b], x->digits[d].axis) == of_weights)
                add_kept(&k, &e->axes[x->digits[d].axis]);
    }
    if (number != l->passes)
        k.count = 0;
    return k;
}

/* Slice with as many positions as parts of whole axes give it: the largest axis first, then what of the others still fits. */
static const char *filled_slices(linter *l, const kept_axes *k, int64_t all, int64_t *slices)
{
    const char *list = "";
    size_t terms = 0;
    *slices = 1;
    for (size_t i = 0; i < k->count; i++) {
        const layout_axis *x = k->items[i];
        int64_t d = largest_divisor(x->size, all / *slices);
        if (d == 1)
            continue;
        const char *term = d == x->size ? x->name : arena_printf(l->arena, "%s / %lld", x->name, (long long)(x->size / d));
        list = arena_printf(l->arena, "%s%s%s", list, terms++ ? ", " : "", term);
        *slices *= d;
    }
    if (*slices < all)
        list = arena_printf(l->arena, terms > 1 ? "[%s] # %lld" : "%s # %lld", list, (long long)all);
    return arena_printf(l->arena, "Slice m![%s]", list);
}

/* The Slice, and Cluster where one axis fills both, that these axes allow. */
static const char *nearest_slices(linter *l, const kept_axes *k, int64_t *slices)
{
    const target *t = l->analysis->schedule->target;
    int64_t all = t->slices_per_cluster, both = all * t->clusters_per_chip;
    const layout_axis *widest = k->items[0];
    if (widest->size % both != 0)
        return filled_slices(l, k, all, slices);
    *slices = both;
    return arena_printf(l->arena, "Cluster m![%s / %lld], Slice m![%s%s %% %lld]", widest->name, (long long)(widest->size / t->clusters_per_chip), widest->name,
                        widest->size == both ? "" : arena_printf(l->arena, " / %lld", (long long)(widest->size / both)), (long long)all);
}

/* The weights' axes keep the Rows busy, and are taken from them only where the others do not suffice. */
static void check_slices(linter *l, const schedule_item *item, size_t number)
{
    const target *t = l->analysis->schedule->target;
    int64_t slices = item->units, all = t->slices_per_cluster * t->clusters_per_chip;
    const char *text = NULL;
    for (int of_weights = 0; of_weights < 2 && slices <= item->units; of_weights++) {
        kept_axes k = kept_axes_of(l, number, of_weights);
        if (k.count > 0)
            text = nearest_slices(l, &k, &slices);
    }
    if (slices <= item->units)
        return;
    int64_t work = item->alone.total - item->alone.fill;
    add(l, (lint){.rule = W_IDLE_SLICES,
                  .line = item->commands->line,
                  .cost = work - ceil_div(work * item->units, slices),
                  .found = advice_slices(l->arena, item->units, all),
                  .nearest = arena_printf(l->arena, "%s: %lld slices", text, (long long)slices)});
}

/* ---- idle lanes and Rows ---- */

static void check_lanes(linter *l, const schedule_item *item)
{
    const target *t = l->analysis->schedule->target;
    int64_t work = item->alone.total - item->alone.fill, used = t->mac_width_bytes - item->idle_lane_bytes;
    if (item->idle_lane_bytes > 0)
        add(l, (lint){.rule = W_MAC_IDLE,
                      .line = item->commands->line,
                      .cost = work - ceil_div(work * used, t->mac_width_bytes),
                      .found = advice_lanes(l->arena, used, t->mac_width_bytes),
                      .nearest = advice_more_lanes(l->arena, t->mac_width_bytes)});
    if (item->rows < t->rows)
        add(l, (lint){.rule = W_MAC_IDLE,
                      .line = item->commands->line,
                      .cost = work - ceil_div(work * item->rows, t->rows),
                      .found = advice_rows(l->arena, item->rows, t->rows),
                      .nearest = advice_more_rows(l->arena, t->rows)});
}

/* ---- one bank of DM ---- */

static void check_banks(linter *l, const schedule_item *item)
{
    if (!item->holds_dma)
        return;
    int64_t overlap = 0;
    for (size_t i = 0; i < l->analysis->schedule->count; i++) {
        const schedule_item *copy = &l->analysis->schedule->items[i];
        if (copy->commands->op == OP_DMA && (copy->start == item->end || copy->end == item->start))
            overlap += copy->end - copy->start;
    }
    int64_t cycles = item->end - item->start;
    add(l, (lint){.rule = W_DM_BANK,
                  .line = item->commands->line,
                  .cost = overlap < cycles ? overlap : cycles,
                  .found = arena_printf(l->arena, "%lld accesses in a row or more to one bank of DM, so no copy runs beside it", (long long)item->bank_streak),
                  .nearest = "an inner loop whose stride is no multiple of 128 bytes, and not 0"});
}

static bool contracts(const schedule_item *item)
{
    return item->alone.busy[ENGINE_REDUCER] > 0 && item->rows > 0;
}

static int by_cost(const void *a, const void *b)
{
    const lint *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return strcmp(x->found, y->found);
}

static int by_place(const void *a, const void *b)
{
    const lint *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    int order = (x->rule > y->rule) - (x->rule < y->rule);
    order = order ? order : strcmp(x->found, y->found);
    return order ? order : strcmp(x->nearest, y->nearest);
}

/* A line that runs several times says its piece once, with the cycles of all. */
static void merge_repeats(linter *l)
{
    size_t kept = 0;
    if (l->count > 0)
        qsort(l->items, l->count, sizeof *l->items, by_place);
    for (size_t i = 0; i < l->count; i++) {
        if (kept > 0 && by_place(&l->items[kept - 1], &l->items[i]) == 0) {
            l->items[kept - 1].cost += l->items[i].cost;
            l->items[kept - 1].times++;
            continue;
        }
        l->items[kept] = l->items[i];
        l->items[kept++].times = 1;
    }
    l->count = kept;
}

void lint_make(const analysis *x, arena *a, lint **out, size_t *count)
{
    linter l = {.analysis = x, .arena = a};
    size_t number = 0;
    for (size_t i = 0; i < x->schedule->count; i++)
        l.passes += contracts(&x->schedule->items[i]);
    for (size_t i = 0; i < x->schedule->count; i++) {
        const schedule_item *item = &x->schedule->items[i];
        if (item->commands->op == OP_DMA)
            check_pieces(&l, item);
        check_banks(&l, item);
        if (contracts(item)) {
            check_slices(&l, item, number++);
            check_lanes(&l, item);
        }
    }
    merge_repeats(&l);
    if (l.count > 0)
        qsort(l.items, l.count, sizeof *l.items, by_cost);
    *out = l.items;
    *count = l.count;
}
