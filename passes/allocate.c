/* Rules. Explicit addresses are honoured. A port without an address is placed at the lowest boundary (4 KiB in HBM, 8 bytes in DM) that
 * overlaps no other tensor of the kernel in that memory. A tensor must fit its memory, start on a multiple of its element size ("Memory and
 * Stream"), and nothing may be written over a tensor that is read later: neither in DM and VRF nor in the halves of the TRF. */
#include "passes/allocate.h"

#include <string.h>

#include "ir/placed.h"
#include "ir/work.h"
#include "passes/place.h"
#include "passes/room.h"
#include "support/budget.h"
#include "support/order.h"

enum { PORT_ALIGNMENT_BYTES = 4096 };

static bool is_memory(const op *o, tensor_kind kind)
{
    return o->out.kind == kind && o->kind != IR_PORT_OUT && o->kind != IR_VIEW && !op_into(o);
}

static bool has_address(const op *o)
{
    return tensor_kind_has_address(o->out.kind) && is_memory(o, o->out.kind);
}

static int64_t bytes_of(const op *o)
{
    return tensor_unit_bytes(&o->out);
}

/* By operation: the last one that uses the memory it made, itself or through views. Views and their memory share an entry. */
static uint32_t *last_uses(pass_context *p, const kernel *k)
{
    uint32_t *last = ARENA_ARRAY(p->arena, uint32_t, k->op_count + 1);
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        last[i] = o->index;
        for (size_t j = 0; j < o->operand_count && o->kind != IR_VIEW; j++)
            last[op_root(o->operands[j].of)->index] = o->index;
    }
    return last;
}

typedef struct span {
    int64_t begin, end; /* bytes */
} span;

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return ORDER(x->begin, y->begin);
}

/* What lies somewhere in one memory, by where it begins. */
typedef struct taken_spans {
    span *items;
    size_t count;
    size_t last;        /* the port that was placed the last, */
    int64_t last_bytes; /* of so many: one of no fewer finds no room in front of it. -1: none yet */
} taken_spans;

static taken_spans *spans_of(const pass_context *p, const kernel *k, tensor_kind kind)
{
    taken_spans *t = ARENA_NEW(p->arena, taken_spans);
    *t = (taken_spans){.items = ARENA_ARRAY(p->arena, span, k->op_count + 1), .last_bytes = -1};
    for (size_t i = 0; i < k->op_count; i++) {
        const op *o = k->ops[i];
        if (is_memory(o, kind) && o->out.address >= 0 && bytes_of(o) > 0)
            t->items[t->count++] = (span){o->out.address, o->out.address + bytes_of(o)};
    }
    order_sort(t->items, t->count, sizeof *t->items, by_begin);
    return t;
}

static void place_port(const pass_context *p, taken_spans *t, op *o)
{
    int64_t bytes = bytes_of(o), unit = o->out.kind == TENSOR_HBM ? PORT_ALIGNMENT_BYTES : p->target->dma_dm_multiple_bytes;
    bool behind = t->last_bytes >= 0 && bytes >= t->last_bytes;
    size_t from = behind ? t->last : 0, i = from;
    int64_t address = behind ? t->items[from].begin : 0;
    for (; i < t->count && t->items[i].begin < address + bytes; i++)
        if (address < t->items[i].end)
            address = (t->items[i].end + unit - 1) / unit * unit;
    o->out.address = address;
    if (bytes == 0)
        return;
    while (i > 0 && t->items[i - 1].begin > address)
        i--;
    memmove(&t->items[i + 1], &t->items[i], (t->count++ - i) * sizeof *t->items);
    t->items[i] = (span){address, address + bytes};
    budget_spend(p->arena, 1 + t->count - (from < i ? from : i));
    t->last = i;
    t->last_bytes = bytes;
}

static void check_capacity(pass_context *p, kernel *k, op *o)
{
    bool hbm = o->out.kind == TENSOR_HBM, spm = o->out.kind == TENSOR_SPM;
    int64_t bytes = bytes_of(o), limit = memory_limit(p->target, o->out.kind);
    int64_t element = dtype_row_of(o->out.dtype)->bits / 8;
    if (bytes < 0) {
        const mapping *m = o->out.part[ELEMENT];
        diag *d = pass_refuse(p, k, o, ELEMENT, E_COLLECT_BYTES, "Element %s of %s is not a whole number of bytes, or too large",
                              pass_text(p, m), dtype_row_of(o->out.dtype)->name);
        int64_t unit = p->target->dma_dm_multiple_bytes * 8 / dtype_row_of(o->out.dtype)->bits, whole = (m->size / unit + 1) * unit;
        if (m->size % 2) {
            diag_help(p->diags, d, "pad to %lld, units of %lld bytes: %s", (long long)whole, (long long)p->target->dma_dm_multiple_bytes,
                      pass_text(p, pass_pad(p, m, whole)));
            pass_replace(p, o, d, ELEMENT, pass_pad(p, m, whole));
        } else
            diag_help(p->diags, d, "spread an axis over several tensors");
        return;
    }
    if (o->out.address < 0)
        o->out.address = 0;
    if (bytes > limit || o->out.address > limit - bytes) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_CAPACITY, "the tensor takes %s of %s at address %lld, %s has %s",
                              arena_count(p->arena, bytes, "byte"), memory_name(o->out.kind), (long long)o->out.address,
                              hbm   ? "a chip"
                              : spm ? "a PE"
                                    : "a slice",
                              arena_count(p->arena, limit, "byte"));
        if (bytes <= limit)
            diag_help(p->diags, d, "the highest address for it is %lld", (long long)((limit - bytes) / 8 * 8));
        else
            diag_help(p->diags, d, "spread an axis over %s",
                      hbm   ? "Chip, or over several tensors"
                      : spm ? "Cluster, or take the list in tiles"
                            : "Slice or Cluster");
        return;
    }
    if (element > 1 && o->out.address % element) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_ADDRESS, "address %lld is not a multiple of the element size, %s",
                              (long long)o->out.address, arena_count(p->arena, element, "byte"));
        diag_help(p->diags, d, "use %lld", (long long)(o->out.address / element * element));
    }
}

/* Tensors of memory that are read at or after the operation at hand. */
typedef struct live_list {
    op **items;
    size_t count, capacity;
    const uint32_t *last;
} live_list;

static void live_prune(pass_context *p, live_list *live, uint32_t index)
{
    size_t kept = 0;
    budget_spend(p->arena, 1 + live->count); /* and who asks next looks at no more of them */
    for (size_t i = 0; i < live->count; i++)
        if (live->last[live->items[i]->index] > index)
            live->items[kept++] = live->items[i];
    live->count = kept;
}

static bool check_overlap(pass_context *p, kernel *k, op *writer, const live_list *live)
{
    for (size_t i = 0; i < live->count; i++) {
        op *other = live->items[i];
        if (other->bad || other->out.kind != writer->out.kind || other->unplaced || writer->unplaced) /* place_memories keeps those apart */
            continue;
        int64_t a = writer->out.address, b = other->out.address, a_end = a + bytes_of(writer), b_end = b + bytes_of(other);
        if (a >= b_end || b >= a_end)
            continue;
        op *reader = k->ops[live->last[other->index]];
        diag *d = diag_add(p->diags, W_OVERLAP, writer->range,
                           "%s writes bytes %lld..%lld over `%s` (bytes %lld..%lld), which is read later: visac places the kernel's memory",
                           op_kind_word(writer->kind), (long long)a, (long long)a_end, other->name, (long long)b, (long long)b_end);
        diag_note(p->diags, d, other->range, "`%s` is written here", other->name);
        diag_note(p->diags, d, reader->range, "and read here");
        diag_help(p->diags, d, "the first free address after it is %lld", (long long)((b_end + 7) / 8 * 8));
        return true;
    }
    return false;
}

/* A copy inside one memory that reads what it has written over: the machine does not keep the source. Where all units and addresses are the
 * same, it copies each byte to itself. */
static bool check_source(pass_context *p, op *writer)
{
    const op *in = op_input(writer);
    if (op_row_of(writer->kind)->contexts != IN_DMA || in->out.kind != writer->out.kind || op_into(writer))
        return false;
    const op *from = op_memory(in);
    const tensor *source = &in->out, *to = &writer->out;
    for (component c = CHIP; c <= SLICE; c++)
        if (source->part[c] && to->part[c] && !mapping_equal(p->mappings, source->part[c], to->part[c]))
            return false;
    int64_t a = to->address, b = from->out.address, a_end = a + bytes_of(writer), b_end = b + bytes_of(from);
    bool onto_itself = in == from && a == b && mapping_equal(p->mappings, source->part[ELEMENT], to->part[ELEMENT]);
    if (a >= b_end || b >= a_end || onto_itself)
        return false;
    diag *d = diag_add(p->diags, W_OVERLAP, writer->range,
                       "%s writes bytes %lld..%lld over `%s` (bytes %lld..%lld), which it still reads: visac places the kernel's memory",
                       op_kind_word(writer->kind), (long long)a, (long long)a_end, from->name, (long long)b, (long long)b_end);
    diag_note(p->diags, d, from->range, "`%s` is written here", from->name);
    diag_help(p->diags, d, "the first free address after it is %lld", (long long)((b_end + 7) / 8 * 8));
    return true;
}

static bool halves_overlap(trf_address a, trf_address b)
{
    return a == b || a == TRF_FULL || b == TRF_FULL;
}

/* A TRF tensor that comes from outside must fit as one that to_trf stores ("TRF Sequencer", TRF Address Modes). */
static void check_trf_port(pass_context *p, kernel *k, op *o)
{
    int64_t rows = o->out.part[ROW]->size, per_row = tensor_unit_bytes(&o->out);
    int64_t capacity = target_trf_capacity_bytes(p->target, o->out.trf_address);
    if (per_row >= 0 && per_row <= capacity / rows)
        return;
    diag *d = pass_refuse(p, k, o, ELEMENT, E_TRF_CAPACITY, "TRF data (%s x %s) exceeds register file capacity (%s for TrfAddress::%s)",
                          arena_count(p->arena, rows, "row"), arena_count(p->arena, per_row, "byte"),
                          arena_count(p->arena, capacity, "byte"), trf_address_name(o->out.trf_address));
    diag_help(p->diags, d, "take at most %s per @Row", arena_count(p->arena, capacity / rows, "byte"));
}

static void check_trf(pass_context *p, kernel *k, op *writer, const live_list *live)
{
    for (size_t i = 0; i < live->count; i++) {
        op *other = live->items[i];
        if (other->bad || other->unplaced || writer->unplaced || other->out.kind != TENSOR_TRF ||
            !halves_overlap(other->out.trf_address, writer->out.trf_address))
            continue;
        diag *d = pass_refuse(p, k, writer, MAPPING_COMPONENTS, E_TRF_OVERLAP,
                              "TrfAddress::%s overlaps `%s` in TrfAddress::%s, which is read later",
                              trf_address_name(writer->out.trf_address), other->name, trf_address_name(other->out.trf_address));
        diag_note(p->diags, d, other->range, "`%s` is stored here", other->name);
        diag_help(p->diags, d, "keep two tensors in FirstHalf and SecondHalf");
        return;
    }
}

/* TRF parameters of a stream kernel come without an address: one takes all, two take a half each. */
static void place_trf_ports(kernel *k)
{
    op *ports[2] = {0};
    size_t count = 0;
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->kind == IR_PORT_IN && k->ops[i]->out.kind == TENSOR_TRF) {
            if (count < 2)
                ports[count] = k->ops[i];
            count++;
        }
    if (count == 2) {
        ports[0]->out.trf_address = TRF_FIRST_HALF;
        ports[1]->out.trf_address = TRF_SECOND_HALF;
    }
}

/* What lies in another one's memory goes with it: reshapes, views, and writes, which go where their view is. */
static void follow_memory(op *o)
{
    if (o->kind == IR_RESHAPE)
        o->out.address = op_input(o)->out.address;
    else if (o->kind == IR_VIEW)
        o->out.address = op_root(o)->out.address + o->window->displacement * dtype_row_of(o->out.dtype)->bits / 8;
    else if (op_into(o))
        o->out.address = op_into(o)->out.address;
}

/* A view begins at a byte. */
static void place_view(pass_context *p, kernel *k, op *o)
{
    int64_t bits = dtype_row_of(o->out.dtype)->bits, from = o->window->displacement * bits;
    if (from % 8) {
        diag *d = pass_refuse(p, k, o, MAPPING_COMPONENTS, E_ADDRESS, "the tile starts at bit %lld of `%s`, inside a byte", (long long)from,
                              op_root(o)->name);
        diag_help(p->diags, d, "start it an element earlier or later");
        return;
    }
    follow_memory(o);
}

/* Addresses of the source that cannot be meant: a tensor is written over one that is read later. Warns. */
static bool addresses_overlap(pass_context *p, kernel *k)
{
    live_list live = {.last = last_uses(p, k)};
    bool found = false;
    for (size_t i = 0; i < k->op_count; i++) {
        op *o = k->ops[i];
        p->diags->repeating = o->repeated;
        if (o->bad || op_uses_bad(o))
            continue;
        follow_memory(o);
        if (!has_address(o) || bytes_of(o) < 0)
            continue;
        live_prune(p, &live, o->index);
        if (o->index > 0 && o->kind != IR_RESHAPE && !o->unplaced)
            found = check_overlap(p, k, o, &live) || check_source(p, o) || found;
        ARENA_PUSH(p->arena, live.items, live.count, live.capacity, o);
    }
    p->diags->repeating = 0;
    return found;
}

static void allocate_one(pass_context *p, kernel *k, op *o, live_list *live)
{
    bool memory = has_address(o), trf = is_memory(o, TENSOR_TRF);
    if (op_uses_bad(o))
        o->bad = true;
    if (o->kind == IR_RESHAPE) {
        follow_memory(o);
        o->unplaced = op_root(op_input(o))->unplaced;
    }
    if (memory && !o->bad)
        check_capacity(p, k, o);
    if (!o->bad && o->kind == IR_VIEW)
        place_view(p, k, o);
    if (!o->bad && op_into(o))
        follow_memory(o);
    if (!memory && !trf)
        return;
    live_prune(p, live, o->index);
    if (trf && !o->bad)
        check_trf(p, k, o, live);
    if (o->kind == IR_PORT_IN && o->out.kind == TENSOR_TRF && !o->bad)
        check_trf_port(p, k, o);
    ARENA_PUSH(p->arena, live->items, live->count, live->capacity, o);
}

/* Since 0.7 what a pass sets aside takes bytes of the VRF while the pass runs. */
static void reserve_stashes(pass_context *p, kernel *k)
{
    for (size_t i = 0; i < k->op_count && k->dialect >= DIALECT_V0_7; i++)
        if (k->ops[i]->kind == IR_VECTOR_STASH)
            k->ops[i]->stash_bytes = p->target->vrf_stash_bytes;
}

/* A memory of the VRF that lies where it was told to, and a stash while it is live. */
static void check_stashes(pass_context *p, kernel *k)
{
    int64_t from = p->target->vrf_bytes - p->target->vrf_stash_bytes;
    const live_range *live = NULL;
    for (size_t i = 0; i < k->op_count; i++) {
        const op *stash = k->ops[i];
        if (stash->stash_bytes == 0)
            continue;
        budget_spend(p->arena, k->op_count);
        uint32_t works;
        live = live ? live : kernel_live_ranges(k, p->arena, &works);
        for (size_t j = 0; j < k->op_count; j++) {
            op *o = k->ops[j];
            if (!is_memory(o, TENSOR_VRF) || !op_makes_memory(o) || o->bad || o->out.address + bytes_of(o) <= from ||
                live[j].last < live[i].first || live[i].last < live[j].first)
                continue;
            diag *d = pass_refuse(p, k, o, ELEMENT, E_VRF_STASH,
                                  "the tensor ends at byte %lld of the VRF, of which a stash leaves %s while it is live",
                                  (long long)(o->out.address + bytes_of(o)), arena_count(p->arena, from, "byte"));
            diag_note(p->diags, d, stash->range, "the stash");
            diag_help(p->diags, d, "use it in a pass of its own, or store less");
        }
    }
}

/* --place=auto: addresses of the source are ignored. */
static void forget_addresses(kernel *k)
{
    for (size_t i = 0; i < k->op_count; i++) {
        op *o = k->ops[i];
        bool port = o->kind == IR_PORT_IN || o->parameter;
        if (op_makes_memory(o) && !port)
            op_leave_unplaced(o);
    }
}

static void place_ports(const pass_context *p, const kernel *k)
{
    taken_spans *taken[TENSOR_KIND_COUNT] = {0};
    for (size_t i = 0; i < k->op_count; i++) {
        op *o = k->ops[i];
        if ((o->kind != IR_PORT_IN && !o->parameter) || o->out.address >= 0 || bytes_of(o) < 0 || !has_address(o))
            continue;
        if (!taken[o->out.kind])
            taken[o->out.kind] = spans_of(p, k, o->out.kind);
        place_port(p, taken[o->out.kind], o);
    }
}

/* Ports show where their tensors live. */
static void show_ports(kernel *k)
{
    for (size_t j = 0; j < k->op_count; j++) {
        const op *o = k->ops[j], *at = o->kind == IR_PORT_IN ? o : op_input(o);
        if (o->kind != IR_PORT_IN && o->kind != IR_PORT_OUT)
            continue;
        k->ports[o->port].tensor.address = at->out.address < 0 ? 0 : at->out.address;
        k->ports[o->port].tensor.trf_address = at->out.trf_address;
    }
}

static void follow_memories(kernel *k)
{
    for (size_t i = 0; i < k->op_count; i++)
        follow_memory(k->ops[i]);
}

bool allocate_again(pass_context *p, kernel *k)
{
    if (!place_memories(p, k, false))
        return false;
    follow_memories(k);
    show_ports(k);
    return true;
}

/* In the order of the text, or in one for which there is room. */
static void place_in_some_order(pass_context *p, kernel *k)
{
    if (place_memories(p, k, false))
        return;
    follow_memories(k); /* of what was placed: who writes a part of a memory is known by its bytes */
    if (!p->keeps_order && !k->bad && order_for_room(p->target, k, p->arena) && place_memories(p, k, false))
        return;
    k->issue = NULL;
    k->issue_count = 0;
    k->moved_for_room = false;
    place_memories(p, k, true);
}

void pass_allocate(pass_context *p, kernel *k)
{
    place_trf_ports(k);
    reserve_stashes(p, k);
    if (p->places_all)
        forget_addresses(k);
    place_ports(p, k);
    if (!p->places_all && addresses_overlap(p, k))
        forget_addresses(k);
    place_in_some_order(p, k);
    live_list live = {.last = last_uses(p, k)};
    for (size_t i = 0; i < k->op_count; i++) {
        p->diags->repeating = k->ops[i]->repeated;
        allocate_one(p, k, k->ops[i], &live);
    }
    p->diags->repeating = 0;
    check_stashes(p, k);
    show_ports(k);
}
