#include "runtime/timing/lint.h"

#include <limits.h>
#include <string.h>

#include "support/advice.h"

#include "codegen/copy_command.h"
#include "support/integer.h"
#include "support/order.h"
#include "support/strbuf.h"
#include "target/vector.h"

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

/* A part without the padding around it: only live cells are copied. */
static layout live_part(layout l)
{
    while (l.count > 1 && (l.words[l.count - 1] & 0xff) == LAYOUT_PAD)
        l.count--;
    return l;
}

typedef struct longer_pieces {
    int64_t bytes;
    const char *mapping; /* what lies together, as a list */
} longer_pieces;

/* The innermost parts of the port's element that make up whole blocks; all of them where none do. */
static longer_pieces longer_of(const linter *l, const port *p)
{
    const layout_axis *axes = l->analysis->schedule->kernel->axes;
    unsigned bits = dtype_row_of(p->dtype)->bits;
    int64_t block = l->analysis->schedule->target->hbm_block_bytes * 8 / bits, size = 1, cut = 0;
    layout parts[MOST_PARTS];
    size_t count = list_parts(p->mapping[COMPONENT_ELEMENT], parts, 0), inner = 0;
    for (; inner < count && size % block != 0; inner++) {
        parts[inner] = live_part(parts[inner]);
        int64_t all = layout_size(parts[inner], axes), wanted = block / gcd(block, size);
        bool suffices = all % wanted == 0;
        cut = suffices && wanted < all ? wanted : 0;
        size *= suffices ? wanted : all;
    }
    strbuf s;
    strbuf_init(&s, l->arena);
    strbuf_puts(&s, "m![");
    for (size_t i = inner; i-- > 0;) {
        strbuf_puts(&s, layout_text(parts[i], axes, l->arena));
        if (i == inner - 1 && cut)
            strbuf_printf(&s, " %% %lld", (long long)cut);
        strbuf_puts(&s, i ? ", " : "]");
    }
    return (longer_pieces){size * bits / 8, s.text};
}

/* What the same bytes take in pieces of so many, which begin at a block, by the same engines and spread over all of their DMNs. */
static int64_t copy_cycles(const target *t, const dma_cost *d, int64_t bytes, int64_t piece)
{
    int64_t pieces = ceil_div(bytes, piece), requests = pieces * ceil_div(smaller(piece, bytes), t->dma_request_bytes);
    int64_t engines = larger(d->engines, 1), each = ceil_div(pieces, engines * t->dma_dmns_per_engine),
            block = t->hbm_block_bytes / t->hbm_burst_bytes * t->hbm_burst_millicycles,
            hbm = ceil_div(ceil_div(requests, t->hbm_channels) * block, 1000);
    int64_t dmn = smaller(d->dmn_cycles, each * ceil_div(smaller(piece, bytes), t->dmn_bytes_per_cycle));
    if (!d->to_dm && piece % t->hbm_block_bytes != 0)
        hbm = ceil_div(pieces, t->hbm_channels) * (block * t->hbm_partial_write_factor / 1000);
    return t->dma_startup_cycles + larger(ceil_div(requests, engines), larger(dmn, hbm));
}

static void check_pieces(linter *l, const schedule_item *item)
{
    const schedule *s = l->analysis->schedule;
    const target *t = s->target;
    const dma_cost *d = &item->alone.dma;
    bool whole = d->piece_bytes % t->hbm_block_bytes == 0;
    if (d->piece_bytes == 0 || (whole && d->unaligned_pieces == 0))
        return;
    copy_command k = copy_command_read(item->commands);
    bool loads = k.source.memory == COPY_HBM;
    int64_t base = (loads ? k.source.base : k.destination.base) % t->hbm_chip_stride_bytes;
    int64_t bytes = d->steps * k.packet_bytes, piece = d->piece_bytes;
    const port *p = port_at(s->kernel, base);
    const char *nearest = arena_printf(l->arena, "pieces of a multiple of %lld bytes that begin at one", (long long)t->hbm_block_bytes);
    if (p && whole) {
        nearest = arena_printf(l->arena, "`%s` at a multiple of %lld bytes: its pieces are whole blocks already", p->name,
                               (long long)t->hbm_block_bytes);
    } else if (p) {
        longer_pieces longer = longer_of(l, p);
        if (longer.bytes <= piece)
            return; /* the tensor has no more */
        piece = longer.bytes;
        nearest =
            arena_printf(l->arena, "%s of `%s` side by side in DM too: %lld bytes per piece", longer.mapping, p->name, (long long)piece);
    }
    add(l, (lint){.rule = W_DMA_PIECES,
                  .line = item->commands->line,
                  .cost = item->alone.total - copy_cycles(t, d, bytes, piece),
                  .found = arena_printf(l->arena, "%s, %lld of them begin inside a block of %lld; %lld block%s written in part",
                                        advice_pieces(l->arena, d->pieces, d->piece_bytes), (long long)d->unaligned_pieces,
                                        (long long)t->hbm_block_bytes, (long long)d->partial_writes, d->partial_writes == 1 ? "" : "s"),
                  .nearest = nearest});
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

static bool only_in(const einsum_tensor *t, const einsum_tensor *other, uint32_t axis)
{
    return has_axis(t, axis) && !has_axis(other, axis);
}

/* The statement of contraction number `wanted`; NULL when there are not as many statements as passes. */
static const einsum_statement *statement_of(const linter *l, size_t wanted)
{
    const einsum *e = &l->analysis->schedule->kernel->einsum;
    const einsum_statement *found = NULL;
    size_t number = 0;
    for (uint32_t i = 0; i < e->statement_count; i++)
        if (e->statements[i].op == MATH_CONTRACT && number++ == wanted)
            found = &e->statements[i];
    return number == l->passes ? found : NULL;
}

/* The axes that a contraction keeps: those that only its weights have, or the others. */
static kept_axes kept_axes_of(linter *l, const einsum_statement *x, bool of_weights)
{
    const einsum *e = &l->analysis->schedule->kernel->einsum;
    kept_axes k = {ARENA_ARRAY(l->arena, const layout_axis *, e->axis_count), 0};
    for (uint32_t d = 0; x && d < x->digit_count; d++)
        if (x->digits[d].kept && x->digits[d].size > 1 &&
            only_in(&e->tensors[x->sources[1]], &e->tensors[x->sources[0]], x->digits[d].axis) == of_weights)
            add_kept(&k, &e->axes[x->digits[d].axis]);
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
    return arena_printf(l->arena, "Cluster m![%s / %lld], Slice m![%s%s %% %lld]", widest->name,
                        (long long)(widest->size / t->clusters_per_chip), widest->name,
                        widest->size == both ? "" : arena_printf(l->arena, " / %lld", (long long)(widest->size / both)), (long long)all);
}

/* The weights' axes keep the Rows busy, and are taken from them only where the others do not suffice. */
static void check_slices(linter *l, const schedule_item *item, size_t number)
{
    const target *t = l->analysis->schedule->target;
    int64_t slices = item->units, all = t->slices_per_cluster * t->clusters_per_chip;
    const char *text = NULL;
    for (int of_weights = 0; of_weights < 2 && slices <= item->units; of_weights++) {
        kept_axes k = kept_axes_of(l, statement_of(l, number), of_weights);
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
                  .nearest = arena_printf(l->arena, "%s: %lld slices of %s", text, (long long)slices,
                                          arena_count(l->arena, ceil_div(slices, t->slices_per_pe), "PE"))});
}

/* ---- idle lanes and Rows ---- */

/* What a contraction takes with 1 / `packets_divisor` of the packets, each so many times as long to feed, and 1 / `tiling_divisor` of the
 * steps for each. */
static int64_t contraction_with(const duration *d, int64_t packets_divisor, int64_t tiling_divisor)
{
    int64_t packets = ceil_div(d->items, packets_divisor), steps = ceil_div(d->tiling, tiling_divisor);
    int64_t in = packets * larger(d->feed_cycles * packets_divisor, steps), out = ceil_div(d->beats, tiling_divisor) * d->beat_cycles;
    return d->fill + larger(d->drains ? in + out : larger(in, out), d->routes * d->route_cycles); /* of a switch, as they are */
}

/* The summed steps of a contraction that could are adjacent in a packet. */
static int64_t summed_steps(const schedule_item *item)
{
    int64_t n = 1;
    for (size_t i = 0; i < item->count; i++) {
        const command *c = &item->commands[i];
        for (uint32_t e = 0; c->op == OP_ACCUMULATE && e < c->entry_count; e++)
            if (command_entry(c, e, ACCUMULATE_LOOP_REDUCED))
                n *= command_entry(c, e, ACCUMULATE_LOOP_SIZE);
    }
    return n;
}

/* How many times as much of the axes that only the weights have as this statement takes: the others are tiles of a loop. */
static int64_t other_tiles(const linter *l, const einsum_statement *x, const layout_axis *axis)
{
    const einsum *e = &l->analysis->schedule->kernel->einsum;
    int64_t taken = 1;
    for (uint32_t d = 0; d < x->digit_count; d++)
        taken *= &e->axes[x->digits[d].axis] == axis ? x->digits[d].size : 1;
    return axis->size / taken;
}

/* Rows take over steps that repeat a packet for other weights, or what other statements do. A packet that takes as long to arrive is fed no
 * faster. */
static void check_rows(linter *l, const schedule_item *item, size_t number)
{
    const target *t = l->analysis->schedule->target;
    const einsum_statement *x = statement_of(l, number);
    kept_axes k = kept_axes_of(l, x, true);
    int64_t tiles = 1, most = 1;
    const layout_axis *fits = NULL;
    for (size_t i = 0; i < k.count; i++)
        tiles *= other_tiles(l, x, k.items[i]);
    while (item->rows * most < t->rows && 2 * most <= item->alone.tiling * tiles)
        most *= 2;
    int64_t rows = item->rows * most, inside = smaller(most, item->alone.tiling);
    int64_t total = contraction_with(&item->alone, 1, inside);
    for (size_t i = 0; i < k.count; i++)
        fits = !fits && k.items[i]->size % rows == 0 ? k.items[i] : fits;
    const char *nearest = advice_more_rows(l->arena, rows);
    if (fits)
        nearest = arena_printf(l->arena, fits->size > rows ? "Row m![%s %% %lld]" : "Row m![%s]", fits->name, (long long)rows);
    add(l, (lint){.rule = W_MAC_IDLE,
                  .line = item->commands->line,
                  .cost = item->alone.total - ceil_div(total * inside, most),
                  .found = advice_rows(l->arena, item->rows, t->rows),
                  .nearest = nearest});
}

static void check_lanes(linter *l, const schedule_item *item)
{
    const target *t = l->analysis->schedule->target;
    int64_t used = t->mac_width_bytes - item->idle_lane_bytes;
    int64_t more = used > 0 ? largest_divisor(summed_steps(item), t->mac_width_bytes / used) : 1;
    add(l, (lint){.rule = W_MAC_IDLE,
                  .line = item->commands->line,
                  .cost = item->alone.total - contraction_with(&item->alone, more, 1),
                  .found = advice_lanes(l->arena, used, t->mac_width_bytes),
                  .nearest = advice_more_lanes(l->arena, used * more)});
}

/* ---- one bank of DM ---- */

static void check_banks(linter *l, const schedule_item *item)
{
    if (item->holds_dma)
        add(l, (lint){.rule = W_DM_BANK,
                      .line = item->commands->line,
                      .cost = item->held_cycles,
                      .found = arena_printf(l->arena, "%lld accesses in a row or more to one bank of DM, so no copy runs at the same time",
                                            (long long)item->bank_streak),
                      .nearest = "an inner loop whose stride is no multiple of 128 bytes, and not 0"});
}

/* ---- Vector passes ---- */

/* What a chain does in the Vector Engine. */
typedef struct vector_use {
    bool plain;                /* operations on each element and no more: no reduction, no tag that is asked for, nothing set aside */
    uint64_t alus;             /* a bit each */
    int first, last;           /* places of its operations in the order of the stages */
    unsigned narrow, narrowed; /* operations on packets of 4; of those, additions, which the clippers have too */
    bool splits;
} vector_use;

/* The float units stand together, in any order, and the division after them. */
static int place_of(const vector_op_row *row)
{
    bool is_float = row->class >= VECTOR_CLASS_FP_UNARY && row->class < VECTOR_CLASS_FP_DIV;
    return is_float ? (int)VECTOR_CLASS_FP_UNARY : (int)row->class;
}

static bool mixes(command_op op)
{
    switch (op) {
#define MIXES(command) case command:
#include "target/engines.def"
        return true;
    default: return false;
    }
}

static vector_use vector_use_of(const schedule_item *item)
{
    enum { SPLIT = 0, TRIM = 1 };
    vector_use u = {.plain = true, .first = INT_MAX};
    bool is_narrow = false;
    for (size_t i = 0; i < item->count; i++) {
        const command *c = &item->commands[i];
        if (c->op == OP_VECTOR_WIDTH) {
            is_narrow = command_get(c, VECTOR_WIDTH_KIND) <= TRIM;
            u.splits |= command_get(c, VECTOR_WIDTH_KIND) == SPLIT;
        }
        u.plain = u.plain && !mixes(c->op);
        if (c->op != OP_VECTOR_OP)
            continue;
        const vector_op_row *row = vector_op_row_of((unsigned)command_get(c, VECTOR_OP_CODE));
        u.alus |= UINT64_C(1) << row->alu;
        u.first = place_of(row) < u.first ? place_of(row) : u.first;
        u.last = place_of(row) > u.last ? place_of(row) : u.last;
        u.narrow += is_narrow;
        u.narrowed += is_narrow && row->op == VECTOR_ADD_F;
    }
    return u;
}

static const command *command_of(const schedule_item *item, command_op op)
{
    for (size_t i = 0; i < item->count; i++)
        if (item->commands[i].op == op)
            return &item->commands[i];
    return NULL;
}

static bool computes(const schedule_item *item)
{
    return command_of(item, OP_VECTOR) != NULL;
}

/* Halves of flits one after the other, for operations that whole flits can have. */
static void check_width(linter *l, const schedule_item *item)
{
    vector_use u = vector_use_of(item);
    const duration *d = &item->alone;
    bool clips = u.alus >> VECTOR_ALU_CLIP_ADD & 1;
    if (!u.plain || !u.splits || u.narrow != u.narrowed || (u.narrow > 0 && clips) || d->out != BOUND_VECTOR)
        return;
    int64_t in = larger(d->items * d->item_cycles, d->routes * d->route_cycles), now = larger(in, d->beats * d->beat_cycles);
    add(l, (lint){.rule = W_VECTOR_NARROW,
                  .line = item->commands->line,
                  .cost = now - larger(in, ceil_div(d->beats, 2) * d->beat_cycles),
                  .found = arena_printf(l->arena, "packets of 4 for %u operation%s", u.narrow, u.narrow == 1 ? "" : "s"),
                  .nearest = u.narrow ? "`vector_clip` with Add on packets of 8, without split and concat" : "no split and concat"});
}

/* Nobody else reads what lies at a place in DM. */
static bool has_one_reader(const linter *l, int64_t base)
{
    size_t readers = 0;
    for (size_t i = 0; i < l->analysis->schedule->count; i++) {
        const schedule_item *item = &l->analysis->schedule->items[i];
        const command *fetch = command_of(item, OP_FETCH);
        bool copies = command_is_copy(item->commands) && copy_command_read(item->commands).source.memory == COPY_DM &&
                      copy_command_read(item->commands).source.base % l->analysis->schedule->target->dm_slice_stride_bytes == base;
        readers += copies || (fetch && command_get(fetch, FETCH_BASE) == base);
    }
    return readers == 1;
}

/* A pass that reads what the one before it wrote, with units of the same stage or of later ones: those of a stage go in any order. */
static void check_passes(linter *l, const schedule_item *before, const schedule_item *item)
{
    const command *written = command_of(before, OP_COMMIT), *fetch = command_of(item, OP_FETCH);
    if (!written || !fetch || before->context != item->context || before->units != item->units ||
        command_get(written, COMMIT_BASE) != command_get(fetch, FETCH_BASE) ||
        command_get(written, COMMIT_DTYPE) != command_get(fetch, FETCH_DTYPE_IN) || command_of(before, OP_CAST) ||
        before->dm_written_bytes != item->dm_read_bytes || !has_one_reader(l, command_get(fetch, FETCH_BASE)))
        return;
    vector_use first = vector_use_of(before), second = vector_use_of(item);
    if (!first.plain || !second.plain || (first.alus & second.alus) || first.last > second.first || !first.alus || !second.alus)
        return;
    int64_t units = __builtin_popcountll(second.alus) * l->analysis->schedule->target->vector_alu_cycles;
    add(l, (lint){.rule = W_VECTOR_PASSES,
                  .line = item->commands->line,
                  .cost = smaller(item->alone.total, before->alone.total) - units,
                  .found = arena_printf(l->arena, "reads what the pass of line %u writes, with other units", before->commands->line),
                  .nearest = "the operations of both in one pass"});
}

static bool contracts(const schedule_item *item)
{
    return item->alone.busy[ENGINE_REDUCER] > 0 && item->rows > 0;
}

static int by_cost(const void *a, const void *b)
{
    const lint *x = a, *y = b;
    return order_then(ORDER(y->cost, x->cost), order_then(ORDER(x->line, y->line), strcmp(x->found, y->found)));
}

static int by_place(const void *a, const void *b)
{
    const lint *x = a, *y = b;
    return order_then(order_then(ORDER(x->line, y->line), ORDER(x->rule, y->rule)),
                      order_then(strcmp(x->found, y->found), strcmp(x->nearest, y->nearest)));
}

/* A line that runs several times says its piece once, with the cycles of all. */
static void merge_repeats(linter *l)
{
    size_t kept = 0;
    order_sort(l->items, l->count, sizeof *l->items, by_place);
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
    const schedule_item *pass = NULL; /* the Vector pass before */
    for (size_t i = 0; i < x->schedule->count; i++)
        l.passes += contracts(&x->schedule->items[i]);
    for (size_t i = 0; i < x->schedule->count; i++) {
        const schedule_item *item = &x->schedule->items[i];
        if (item->bitmaps)
            continue;
        if (command_is_copy(item->commands))
            check_pieces(&l, item);
        check_banks(&l, item);
        if (computes(item)) {
            check_width(&l, item);
            if (pass)
                check_passes(&l, pass, item);
            pass = item;
        } else if (!command_is_copy(item->commands) && item->context == CONTEXT_MAIN) {
            pass = NULL;
        }
        if (contracts(item)) {
            check_slices(&l, item, number);
            if (item->alone.tiling == 0) { /* sums from a port: no adapter feeds them */
                number++;
                continue;
            }
            check_rows(&l, item, number++);
            check_lanes(&l, item);
        }
    }
    merge_repeats(&l);
    order_sort(l.items, l.count, sizeof *l.items, by_cost);
    for (size_t i = 0; i < l.count; i++) {
        arena *scratch = arena_new_inside(a);
        schedule_change change = {.line = l.items[i].line, .less = l.items[i].cost / l.items[i].times};
        if (l.items[i].rule == W_DM_BANK)
            change = (schedule_change){.line = l.items[i].line, .starves_nothing = true};
        l.items[i].kernel_cycles = schedule_cycles_with(x->schedule, change, scratch);
        arena_free(scratch);
    }
    *out = l.items;
    *count = l.count;
}
