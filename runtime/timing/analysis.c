#include "runtime/timing/analysis.h"

#include "support/integer.h"

#include "codegen/copy_command.h"
#include "runtime/timing/hbm_address.h"
#include "support/order.h"

/* ---- who waits for whom ---- */

/* The items of each context, in order. */
typedef struct item_order {
    const schedule *schedule;
    size_t *items[3], count[3];
} item_order;

static void order_items(const schedule *s, arena *a, item_order *o)
{
    *o = (item_order){.schedule = s};
    for (int c = 0; c < 3; c++)
        o->items[c] = ARENA_ARRAY(a, size_t, s->count + 1);
    for (size_t i = 0; i < s->count; i++) {
        int c = (int)s->items[i].context;
        o->items[c][o->count[c]++] = i;
    }
}

/* The item that completes the first `count` commands of a context, or NO_PREDECESSOR. */
static int64_t item_completing(const item_order *o, int where, int64_t count)
{
    const command *base = o->schedule->kernel->streams[where].commands;
    size_t low;
    ORDER_FIRST(&low, o->count[where], i, o->schedule->items[o->items[where][i]].commands - base < count);
    return low ? (int64_t)o->items[where][low - 1] : NO_PREDECESSOR;
}

/* Calls visit for each item that item i needs: the one before it in its context, and those that its waits name. */
static void each_need(const item_order *o, size_t i, void (*visit)(void *, size_t needed), void *user)
{
    const schedule *s = o->schedule;
    const schedule_item *item = &s->items[i];
    const command *base = s->kernel->streams[item->context].commands, *at = item->commands;
    int64_t before = item_completing(o, (int)item->context, at - base);
    if (before != NO_PREDECESSOR)
        visit(user, (size_t)before);
    for (size_t n = 0; s->loads && n < i; n++) /* its own bitmaps, and others while which it had to stand still */
        if (s->items[n].bitmaps && s->items[n].end <= item->start &&
            (s->items[n].context == item->context ? s->items[n].commands == at && !item->bitmaps
                                                  : item->context != CONTEXT_MAIN && timing_by_rates(s->preset)))
            visit(user, n);
    for (size_t n = 0; s->starves && n < i; n++) /* a chain that starves the DMA and a copy: whichever began later needs the other */
        if (s->items[n].end <= item->start &&
            (s->items[n].holds_dma ? command_is_copy(item->commands) : item->holds_dma && command_is_copy(s->items[n].commands)))
            visit(user, n);
    for (const command *c = at; c > base && (c[-1].op == OP_WAIT || c[-1].op == OP_UNITS || c[-1].op == OP_GUARD); c--)
        if (c[-1].op == OP_WAIT) {
            int64_t other = item_completing(o, (int)command_get(&c[-1], WAIT_CONTEXT), command_get(&c[-1], WAIT_COUNT));
            if (other != NO_PREDECESSOR && other != (int64_t)i)
                visit(user, (size_t)other);
        }
}

typedef struct latest {
    const schedule *schedule;
    int64_t item;
} latest;

static void keep_latest(void *user, size_t needed)
{
    latest *l = user;
    if (l->item == NO_PREDECESSOR || l->schedule->items[needed].end > l->schedule->items[l->item].end)
        l->item = (int64_t)needed;
}

typedef struct limits {
    int64_t *late_end, start;
} limits;

static void limit_end(void *user, size_t needed)
{
    limits *l = user;
    if (l->start < l->late_end[needed])
        l->late_end[needed] = l->start;
}

static void find_path(const schedule *s, arena *a, item_place *places)
{
    item_order order;
    order_items(s, a, &order);
    int64_t *late_end = ARENA_ARRAY(a, int64_t, s->count + 1), last = NO_PREDECESSOR;
    for (size_t i = 0; i < s->count; i++) {
        latest l = {s, NO_PREDECESSOR};
        each_need(&order, i, keep_latest, &l);
        places[i].predecessor = l.item;
        late_end[i] = s->cycles - s->end_sync_cycles;
        if (s->items[i].end == late_end[i] && last == NO_PREDECESSOR)
            last = (int64_t)i;
    }
    /* What needs an item begins at its end or later, so by descending start all that need it are done. */
    for (size_t i = s->count; i-- > 0;) {
        const schedule_item *item = &s->items[i];
        limits l = {late_end, late_end[i] - (item->end - item->start) - item->queued};
        places[i].slack = late_end[i] - item->end;
        each_need(&order, i, limit_end, &l);
    }
    for (int64_t i = last; i != NO_PREDECESSOR; i = places[i].predecessor)
        places[i].critical = true;
}

/* ---- the least that the mathematics needs ---- */

/* Digits of one axis, the largest weight first; they do not overlap. How many of their combinations stay below `limit`? */
static int64_t below(const einsum_digit *const *digits, size_t count, int64_t limit)
{
    int64_t rest = 1, reach = 0;
    if (limit <= 0)
        return 0;
    if (count == 0)
        return 1;
    for (size_t i = 1; i < count; i++) {
        rest = product_bounded(rest, digits[i]->size);
        reach += (digits[i]->size - 1) * digits[i]->weight;
    }
    int64_t weight = digits[0]->weight, size = digits[0]->size;
    int64_t whole = limit > reach ? (limit - 1 - reach) / weight + 1 : 0; /* counters with which all others stay below */
    whole = whole < size ? whole : size;
    int64_t sum = product_bounded(whole, rest);
    for (int64_t c = whole; c < size && c * weight < limit; c++)
        sum = sum_bounded(sum, below(digits + 1, count - 1, limit - c * weight));
    return sum;
}

/* Coordinates of an axis that a statement runs through, or, with a side, those at which it meets this operand. */
static int64_t coordinates(const einsum *e, const einsum_statement *s, uint32_t axis, const einsum_side *side)
{
    const einsum_digit *mine[EINSUM_STATEMENT_DIGITS];
    size_t count = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->axis != axis || d->size == 1 || (side && !einsum_digit_indexes(d, *side)))
            continue;
        size_t at = count++;
        for (; at > 0 && mine[at - 1]->weight < d->weight; at--)
            mine[at] = mine[at - 1];
        mine[at] = d;
    }
    return count ? below(mine, count, e->axes[axis].size - einsum_largest_shift(s, axis)) : 1;
}

static int64_t combinations(const einsum *e, const einsum_statement *s)
{
    int64_t all = 1;
    for (uint32_t axis = 0; axis < e->axis_count; axis++)
        all = product_bounded(all, coordinates(e, s, axis, NULL));
    return all;
}

/* ---- the elements of a port that are touched ---- */

/* Those of a tensor that one operand of a statement names. The same part named again has the same key. */
typedef struct touch {
    uint32_t tensor;
    uint64_t key;
    int64_t elements;
} touch;

static uint64_t mix(uint64_t key, uint64_t value)
{
    return (key ^ value) * UINT64_C(0x100000001b3) ^ key >> 29;
}

static int64_t places(const einsum *e, const einsum_statement *s, uint32_t axis, const einsum_side *side)
{
    int64_t n = coordinates(e, s, axis, side), reach = 0;
    for (uint32_t w = 0; n == 1 && w < e->window_count; w++)
        for (uint32_t i = 0; e->windows[w].axis == axis && i < e->windows[w].term_count; i++) {
            const einsum_term *t = &e->windows[w].terms[i];
            reach = sum_bounded(reach, product_bounded(smaller(coordinates(e, s, t->axis, side), t->extent) - 1, t->stride));
        }
    return smaller(sum_bounded(n, reach), e->axes[axis].size);
}

static touch touch_of(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t tensor)
{
    touch t = {.tensor = tensor, .key = UINT64_C(0xcbf29ce484222325), .elements = 1};
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        t.elements = product_bounded(t.elements, places(e, s, e->tensors[tensor].axes[i], &side));
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].side == side)
            t.key = mix(mix(t.key, s->shifts[i].axis), (uint64_t)s->shifts[i].offset);
    return t;
}

static int by_part(const void *a, const void *b)
{
    const touch *x = a, *y = b;
    return order_then(ORDER(x->tensor, y->tensor), order_then(ORDER(x->key, y->key), ORDER(y->elements, x->elements)));
}

/* Of each part the most that one operand names; parts that begin elsewhere are taken for others, up to the whole tensor. */
static int64_t *touched_elements(const einsum *e, arena *a)
{
    touch *all = ARENA_ARRAY(a, touch, (size_t)e->statement_count * EINSUM_SIDES + 1);
    int64_t *elements = ARENA_ARRAY(a, int64_t, e->tensor_count + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *s = &e->statements[i];
        for (unsigned side = 0; side < einsum_side_count(s); side++)
            all[count++] = touch_of(e, s, (einsum_side)side, einsum_operand(s, (einsum_side)side));
    }
    order_sort(all, count, sizeof *all, by_part);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || all[i].tensor != all[i - 1].tensor || all[i].key != all[i - 1].key)
            elements[all[i].tensor] = sum_bounded(elements[all[i].tensor], all[i].elements);
    for (uint32_t i = 0; i < e->tensor_count; i++)
        elements[i] = smaller(elements[i], einsum_tensor_elements(e, i));
    return elements;
}

/* ---- the bound ---- */

/* As many as the tensors of the ports are spread over. */
static int64_t chips_of(const binary_kernel *k)
{
    int64_t chips = 1;
    for (uint32_t i = 0; i < k->port_count; i++)
        chips = larger(chips, layout_size(k->ports[i].mapping[COMPONENT_CHIP], k->axes));
    return chips;
}

static bool reaches_far_bank(const binary_kernel *k, const port *p)
{
    int64_t elements = layout_size(p->mapping[COMPONENT_ELEMENT], k->axes);
    return sum_bounded(p->address, product_bounded(elements, dtype_row_of(p->dtype)->bits) / 8) >> HBM_FAR_BIT != 0;
}

/* Is the tensor read, or written, by a statement that computes? What is only moved may travel with something else in one copy. */
static bool meets_computation(const einsum *e, uint32_t tensor, bool written)
{
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *x = &e->statements[i];
        if (x->op != MATH_CONTRACT && x->op != MATH_MAP && x->op != MATH_REDUCE)
            continue;
        if (written && x->dst == tensor)
            return true;
        for (uint32_t k = 0; !written && k < x->source_count; k++)
            if (x->sources[k] == tensor)
                return true;
    }
    return false;
}

/* What all of a tensor needs at least: ports in HBM, a bit each, and of an element operands to multiply, in bits. */
typedef struct need {
    uint64_t ports;
    int64_t bits;
    bool written;
} need;

/* A share of the results needs at least that share of what they are made of. */
static need need_of(const einsum *e, const einsum_statement *s, const need *of)
{
    need n = {.written = true};
    int64_t made = larger(1, touch_of(e, s, EINSUM_DST, s->dst).elements);
    for (uint32_t k = 0; k < s->source_count; k++) {
        uint32_t from = s->sources[k];
        int64_t read = touch_of(e, s, (einsum_side)(EINSUM_A + k), from).elements;
        n.ports |= of[from].ports;
        if (s->op == MATH_COPY || s->op == MATH_MAP || s->op == MATH_REDUCE)
            n.bits = larger(n.bits, product_bounded(of[from].bits, read) / made);
    }
    if (s->op == MATH_CONTRACT)
        n.bits = product_bounded(combinations(e, s), dtype_row_of(e->tensors[s->sources[0]].dtype)->bits) / made;
    return n;
}

/* What is loaded before the first product, and the products that each part of the only result in HBM needs its share of. What several
 * statements make, or one in part, needs nothing for sure; a result needs the least that one of its parts does. */
static void count_needs(const schedule *s, const int64_t *elements, int64_t bits_per_cycle, arena *a, attainable_work *work)
{
    enum { MOST_PORTS = 64 };
    const einsum *e = &s->kernel->einsum;
    need *needs = ARENA_ARRAY(a, need, e->tensor_count + 1);
    bool multiplies = false;
    int64_t least = INT64_MAX;
    uint32_t result = 0, results = 0;
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        int32_t number = e->tensors[i].port;
        if (number >= 0 && number < MOST_PORTS && s->kernel->ports[number].space == PORT_HBM)
            needs[i].ports = UINT64_C(1) << number;
    }
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *x = &e->statements[i];
        need n = need_of(e, x, needs), *to = &needs[x->dst];
        int32_t number = e->tensors[x->dst].port;
        if (x->op == MATH_CONTRACT) {
            int64_t loads = __builtin_popcountll(n.ports);
            work->first_loads = multiplies ? smaller(work->first_loads, loads) : loads;
            multiplies = true;
        }
        if (number >= 0) {
            if (s->kernel->ports[number].space == PORT_HBM) {
                least = smaller(least, n.bits);
                result = x->dst;
                results += !needs[x->dst].written;
                needs[x->dst].written = true;
            }
            continue;
        }
        bool is_whole = !to->written && touch_of(e, x, EINSUM_DST, x->dst).elements == einsum_tensor_elements(e, x->dst);
        *to = (need){to->written ? to->ports & n.ports : n.ports, is_whole ? n.bits : 0, true};
    }
    if (results != 1 || work->stores != 1)
        return;
    work->stored_bytes = product_bounded(elements[result], dtype_row_of(e->tensors[result].dtype)->bits) / 8;
    work->stored_mac_cycles = product_bounded(least, elements[result]) / bits_per_cycle;
}

/* Statements may run side by side, on other slices: what they multiply is added up before it is divided. */
static void count_einsum(const schedule *s, arena *a, analysis *out)
{
    const einsum *e = &s->kernel->einsum;
    const target *t = s->target;
    out->chips = chips_of(s->kernel);
    int64_t bits_per_cycle = out->chips * t->clusters_per_chip * t->slices_per_cluster * t->rows * t->mac_width_bytes * 8, operand_bits = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *x = &e->statements[i];
        if (x->op != MATH_CONTRACT)
            continue;
        int64_t macs = combinations(e, x), bits = dtype_row_of(e->tensors[x->sources[0]].dtype)->bits;
        out->machine_macs = bits_per_cycle / bits;
        out->multiplications = sum_bounded(out->multiplications, macs);
        operand_bits = sum_bounded(operand_bits, product_bounded(macs, bits));
    }
    out->mac_bound = ceil_div(operand_bits, bits_per_cycle);
    const int64_t *elements = touched_elements(e, a);
    attainable_work work = {.chips = out->chips, .mac_cycles = out->mac_bound};
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        int32_t number = e->tensors[i].port;
        if (number < 0 || s->kernel->ports[number].space != PORT_HBM)
            continue;
        int64_t bits = product_bounded(elements[i], dtype_row_of(e->tensors[i].dtype)->bits);
        out->port_bytes = sum_bounded(out->port_bytes, ceil_div(bits, 8));
        work.far_bank = work.far_bank || reaches_far_bank(s->kernel, &s->kernel->ports[number]);
        work.loads += elements[i] > 0 && meets_computation(e, i, false);
        work.stores += elements[i] > 0 && meets_computation(e, i, true);
    }
    out->byte_bound = ceil_div(out->port_bytes, out->chips * t->hbm_bytes_per_cycle);
    out->lower_bound = larger(out->mac_bound, out->byte_bound);
    work.bytes = out->port_bytes;
    count_needs(s, elements, bits_per_cycle, a, &work);
    out->attainable = attainable_of(t, s->preset, &work);
}

/* ---- sums ---- */

static void count_dma(const schedule_item *item, analysis *out)
{
    copy_command k = copy_command_read(item->commands);
    int64_t bytes = product_bounded(item->alone.dma.steps, k.packet_bytes), none = 0; /* nobody reads zeros */
    int64_t *from = k.source.memory == COPY_NONE ? &none : k.source.memory == COPY_DM ? &out->dm_read_bytes : &out->hbm_read_bytes;
    int64_t *to = k.destination.memory == COPY_DM ? &out->dm_written_bytes : &out->hbm_written_bytes;
    *from = sum_bounded(*from, bytes);
    *to = sum_bounded(*to, bytes);
}

static void count_item(const schedule_item *item, analysis *out)
{
    for (int i = 0; i < ENGINE_COUNT; i++)
        out->engine_busy[i] = sum_bounded(out->engine_busy[i], item->alone.busy[i]);
    if (command_is_copy(item->commands))
        count_dma(item, out);
    out->dm_read_bytes = sum_bounded(out->dm_read_bytes, item->dm_read_bytes);
    out->dm_written_bytes = sum_bounded(out->dm_written_bytes, item->dm_written_bytes);
    out->trf_written_bytes = sum_bounded(out->trf_written_bytes, item->trf_written_bytes);
    out->trf_read_bytes = sum_bounded(out->trf_read_bytes, item->trf_read_bytes);
    out->lane_products = sum_bounded(out->lane_products, item->lane_products);
    out->trf_hits = sum_bounded(out->trf_hits, item->reads.column_hits);
    out->trf_misses = sum_bounded(out->trf_misses, item->reads.column_misses);
}

void analysis_make(const schedule *s, arena *a, analysis *out)
{
    *out = (analysis){.schedule = s, .places = ARENA_ARRAY(a, item_place, s->count + 1)};
    find_path(s, a, out->places);
    for (size_t i = 0; i < s->count; i++)
        count_item(&s->items[i], out);
    count_einsum(s, a, out);
    out->reducer_capacity = product_bounded(s->cycles, out->machine_macs);
}

int64_t analysis_permille(int64_t part, int64_t whole)
{
    return whole > 0 ? (int64_t)((__int128)part * 1000 / whole) : 0;
}
