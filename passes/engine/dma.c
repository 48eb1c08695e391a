/* Rule ("DMA Engine"): a copy is the identity on the tensor, so every live source element has a place in the destination; what only the
 * destination has is a broadcast. The loops follow the destination's digits, cut where the source's are cut; each loop has a stride on
 * both sides. The packet is the longest run that is contiguous on both, or a divisor of it; a run that nothing large divides takes two
 * commands. A digit whose live values are no whole number of loops (15 rows over 4 engines) takes several: one per digit of its count, as
 * a number in the loops' radices. */
#include "passes/engine/dma.h"

#include <string.h>

#include "support/order.h"

size_t dma_spaces(const pass_context *p, const tensor *t, sequence_space *out)
{
    size_t count = 0;
    int64_t slice = p->target->dm_slice_stride_bytes * 8, cluster = slice * p->target->slices_per_cluster;
    if (t->kind == TENSOR_HBM) {
        out[count++] = (sequence_space){t->part[CHIP], p->target->hbm_chip_stride_bytes * 8};
    } else if (t->kind == TENSOR_SPM) {
        out[count++] = (sequence_space){t->part[CHIP], cluster * p->target->clusters_per_chip};
        out[count++] = (sequence_space){t->part[CLUSTER], cluster};
        out[count++] = (sequence_space){t->part[PE], slice * p->target->slices_per_pe};
    } else {
        out[count++] = (sequence_space){t->part[CHIP], cluster * p->target->clusters_per_chip};
        out[count++] = (sequence_space){t->part[CLUSTER], cluster};
        out[count++] = (sequence_space){t->part[SLICE], slice};
    }
    out[count++] = (sequence_space){t->part[ELEMENT], dtype_row_of(t->dtype)->bits};
    return count;
}

int64_t dma_base(const pass_context *p, const op *o)
{
    int64_t slice = p->target->dm_slice_stride_bytes, cluster = slice * p->target->slices_per_cluster;
    bool hbm = o->out.kind == TENSOR_HBM;
    const int64_t apart[TILE_UNITS] = {hbm ? p->target->hbm_chip_stride_bytes : cluster * p->target->clusters_per_chip, cluster, slice};
    int64_t base = o->out.address + (o->out.kind == TENSOR_SPM ? p->target->spm_base_bytes : 0);
    for (int c = 0; o->kind == IR_VIEW && c < TILE_UNITS; c++)
        base += o->window->units[c] * apart[c];
    return base;
}

/* ---- commands of one digit, and of all ---- */

/* A copy is 64 loops long and has a few: only those are taken over. */
static void copy_set(copy *to, const copy *from)
{
    memcpy(to->loops, from->loops, from->count * sizeof *from->loops);
    to->count = from->count;
    to->source = from->source;
    to->destination = from->destination;
    to->run_bits = from->run_bits;
}

/* The parts of one destination digit, outermost first, and the values to walk. Value v < live is v's digits in the loops' sizes. */
typedef struct copy_digit {
    const sequence_part *parts;
    size_t count;
    int64_t live;
    const sequence_space *spaces;
} copy_digit;

static void add_loop(const copy_digit *d, size_t i, int64_t size, copy *c)
{
    const sequence_part *part = &d->parts[i];
    if (size > 1 && c->count < COPY_MAX_LOOPS)
        c->loops[c->count++] = (copy_loop){part->term, size, part->stride, part->position * d->spaces[part->segment].stride};
}

/* One more in the list, like `from`; its other loops hold anything. */
static copy *push_copy(copy_list *l, const copy *from)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 1;
        l->items = arena_grow(l->arena, l->items, l->count, l->capacity, sizeof *l->items);
    }
    copy *c = &l->items[l->count++];
    copy_set(c, from);
    return c;
}

/* Appends to `out` the copies of `base` combined with the values of the digit: with live = (x0, x1, ...) in the loops'
 * radices, block j has the loops before j fixed at x, loop j running below x[j], and those after it whole. */
static void expand_digit(copy_list *out, const copy *base, const copy_digit *d)
{
    int64_t rest = d->live, inner = 1, source = base->source, destination = base->destination;
    for (size_t i = 1; i < d->count; i++)
        inner *= d->parts[i].size;
    for (size_t j = 0; j < d->count && rest > 0; j++) {
        int64_t whole = rest / inner;
        if (whole > 0) {
            if (out->count == COPY_MAX_COMMANDS) {
                out->too_many = true;
                return;
            }
            copy *block = push_copy(out, base);
            block->source = source;
            block->destination = destination;
            add_loop(d, j, whole, block);
            for (size_t i = j + 1; i < d->count; i++)
                add_loop(d, i, d->parts[i].size, block);
            source += whole * d->parts[j].stride;
            destination += whole * d->parts[j].position * d->spaces[d->parts[j].segment].stride;
        }
        rest -= whole * inner;
        if (j + 1 < d->count)
            inner /= d->parts[j + 1].size;
    }
}

copy_list copy_expand(arena *a, const sequence *seq, const sequence_space *destination)
{
    copy_list all = {.arena = a};
    copy none;
    none.count = 0;
    none.source = none.destination = none.run_bits = 0;
    push_copy(&all, &none);
    for (size_t i = 0; i < seq->count;) {
        copy_digit d = {.parts = &seq->parts[i], .live = seq->parts[i].live, .spaces = destination};
        while (i < seq->count && seq->parts[i].digit == d.parts->digit) {
            d.count++;
            i++;
        }
        copy_list next = {.arena = a};
        for (size_t k = 0; k < all.count && !next.too_many; k++)
            expand_digit(&next, &all.items[k], &d);
        all = next;
        if (all.too_many)
            break;
    }
    return all;
}

/* ---- one command ---- */

static int by_destination(const void *a, const void *b)
{
    const copy_loop *x = a, *y = b;
    return order_then(ORDER(x->destination, y->destination), ORDER(x->source, y->source));
}

void copy_merge(pass_context *p, copy *c, int64_t element_bits)
{
    order_sort(c->loops, c->count, sizeof *c->loops, by_destination);
    c->run_bits = element_bits;
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        copy_loop l = c->loops[i], *inner = kept ? &c->loops[kept - 1] : NULL;
        if (kept == 0 && l.source == c->run_bits && l.destination == c->run_bits) {
            c->run_bits *= l.size;
        } else if (inner && l.source == inner->source * inner->size && l.destination == inner->destination * inner->size) {
            inner->term = pass_pair(p, l.term, inner->term);
            inner->size *= l.size;
        } else {
            c->loops[kept++] = l;
        }
    }
    c->count = kept;
}

/* Bytes of which the destination takes a whole number. */
static int64_t written_unit(const pass_context *p, const op *o)
{
    return o->kind == IR_TO_DM ? p->target->dma_dm_multiple_bytes : 1;
}

/* Of which a run of that many bytes is cut into packets: of requests where possible, else of what the destination takes. */
static int64_t packet_unit(const pass_context *p, const op *o, int64_t bytes)
{
    int64_t unit = written_unit(p, o);
    return bytes % p->target->dma_request_bytes == 0 ? p->target->dma_request_bytes : bytes % unit == 0 ? unit : 1;
}

/* The largest packet of at most 4096 bytes that a run is a whole number of. */
static int64_t packet_of_run(const pass_context *p, const op *o, int64_t bytes)
{
    int64_t unit = packet_unit(p, o, bytes), limit = p->target->dma_packet_max_bytes;
    return bytes <= limit ? bytes : unit * largest_divisor(bytes / unit, limit / unit);
}

static int64_t requests_of(const pass_context *p, int64_t bytes, int64_t packet)
{
    return bytes / packet * ((packet - 1) / p->target->dma_request_bytes + 1);
}

/* "DMA Engine", Packet size: a run without a large divisor degrades to small packets (4099 bytes: to single ones) and takes two commands
 * instead, of the largest packets and of what is left (4096 + 3), where the requests that this saves are more than the start-up of another
 * command. */
static bool cut_run(const pass_context *p, const op *o, copy *c, copy *rest)
{
    int64_t bytes = c->run_bits / 8, most = p->target->dma_packet_max_bytes, head = bytes - bytes % most, runs = 1;
    if (bytes <= most || head == bytes || bytes % written_unit(p, o))
        return false;
    for (size_t i = 0; i < c->count && runs <= p->target->dma_startup_cycles; i++)
        runs *= c->loops[i].size;
    int64_t saved =
        requests_of(p, bytes, packet_of_run(p, o, bytes)) - requests_of(p, head, most) - requests_of(p, bytes - head, bytes - head);
    if (saved <= p->target->dma_startup_cycles / runs)
        return false;
    copy_set(rest, c);
    rest->source += head * 8;
    rest->destination += head * 8;
    rest->run_bits = (bytes - head) * 8;
    c->run_bits = head * 8;
    return true;
}

/* The run as a loop over packets. */
static int64_t copy_packet_bytes(const pass_context *p, const op *o, copy *c)
{
    int64_t bytes = c->run_bits / 8, packet = packet_of_run(p, o, bytes);
    if (bytes > packet && c->count < COPY_MAX_LOOPS) {
        for (size_t i = c->count++; i > 0; i--)
            c->loops[i] = c->loops[i - 1];
        c->loops[0] = (copy_loop){mapping_identity(p->mappings), bytes / packet, packet * 8, packet * 8};
    }
    return packet;
}

/* Loops above the iteration limit become two; NULL, or the term of one that cannot be split. */
static const copy_loop *copy_split_large(const pass_context *p, copy *c)
{
    for (size_t i = 0; i < c->count; i++) {
        copy_loop *l = &c->loops[i];
        if (l->size <= p->target->sequencer_entry_size)
            continue;
        int64_t n = largest_divisor(l->size, p->target->sequencer_entry_size);
        if (n == 1 || c->count == COPY_MAX_LOOPS)
            return l;
        for (size_t j = c->count++; j > i + 1; j--)
            c->loops[j] = c->loops[j - 1];
        c->loops[i + 1] = (copy_loop){l->term, l->size / n, l->source * n, l->destination * n};
        l->size = n;
    }
    return NULL;
}

/* The first quantity that is no multiple of the 8 bytes which a DM destination needs ("DMA Engine", Alignment); NULL: none. */
static const char *misaligned(const pass_context *p, const op *o, const copy *c, int64_t packet, int64_t *value)
{
    int64_t unit = p->target->dma_dm_multiple_bytes;
    const struct {
        const char *name;
        int64_t bytes;
    } checks[] = {{"packet", packet},
                  {"destination address", o->out.address + c->destination / 8},
                  {"source address", op_input(o)->out.address + c->source / 8}};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].bytes % unit) {
            *value = checks[i].bytes;
            return checks[i].name;
        }
    for (size_t i = 0; i < c->count; i++)
        if (c->loops[i].destination % (8 * unit)) {
            *value = c->loops[i].destination / 8;
            return "destination stride";
        }
    return NULL;
}

/* Do their innermost positions count other digits? No padding there makes a run of both. */
static bool ends_otherwise(const mapping *a, const mapping *b)
{
    if (!a || !b || a->count == 0 || b->count == 0)
        return false;
    const factor *x = &a->factors[a->count - 1], *y = &b->factors[b->count - 1];
    return x->kind == FACTOR_AXIS && y->kind == FACTOR_AXIS && (x->axis != y->axis || x->weight != y->weight);
}

/* Where the innermost axis has to be padded so that rows begin at multiples of `unit` elements. */
static const char *unpadded_side(const mapping *from, const mapping *to, int64_t unit)
{
    bool from_ends = from && from->count && from->factors[from->count - 1].extent % unit == 0,
         to_ends = to && to->count && to->factors[to->count - 1].extent % unit == 0;
    return from_ends == to_ends ? "on both sides" : to_ends ? "of the source" : "of the destination";
}

/* The source's innermost axis, of which the destination has nothing in Element: a slice for each of its elements; NULL: it has some. */
static const axis *spread_axis(const op *o, int64_t elements)
{
    const mapping *from = op_input(o)->out.part[ELEMENT], *to = o->out.part[ELEMENT];
    const factor *last = from && from->count ? &from->factors[from->count - 1] : NULL;
    bool run = last && last->kind == FACTOR_AXIS && last->extent % elements == 0;
    return run && to && !mapping_mentions(to, last->axis) ? last->axis : NULL;
}

/* A run of a single element is allowed with a warning where April is written, since its public kernels do it; since 0.6, and anything else,
 * is an error. */
static bool copy_aligned(pass_context *p, kernel *k, op *o, const copy *c, int64_t packet, bool *granular, bool *warned)
{
    int64_t value = 0, unit = p->target->dma_dm_multiple_bytes;
    const char *what = o->kind == IR_TO_DM ? misaligned(p, o, c, packet, &value) : NULL;
    *granular = what != NULL;
    if (!what)
        return true;
    if (c->run_bits == dtype_row_of(o->out.dtype)->bits && k->dialect == DIALECT_APRIL) {
        if (!*warned) {
            diag *d = diag_add(p->diags, W_DMA_GRANULE, op_part_range(o, ELEMENT),
                               "source and destination have only %s in common runs: the transfer goes element by element",
                               arena_count(p->arena, packet, "byte"));
            diag_help(p->diags, d, "keep %lld bytes or more in the same order, and next to each other, on both sides", (long long)unit);
        }
        *warned = true;
        return true;
    }
    diag *d = pass_refuse(p, k, o, ELEMENT, E_DMA_ALIGN, "DMA %s of %s is not a multiple of %s, which a DM destination needs", what,
                          arena_count(p->arena, value, "byte"), arena_count(p->arena, unit, "byte"));
    if (strstr(what, "address"))
        diag_help(p->diags, d, "place the tensor at a multiple of %lld", (long long)unit);
    else if (ends_otherwise(op_input(o)->out.part[ELEMENT], o->out.part[ELEMENT]))
        diag_help(p->diags, d, "keep %lld bytes or more in the same order, and next to each other, on both sides", (long long)unit);
    else if (spread_axis(o, elements_of(o->out.dtype, unit)))
        diag_help(p->diags, d, "keep %lld neighbours of `%s` in Element, and spread the rest over the slices",
                  (long long)elements_of(o->out.dtype, unit), spread_axis(o, elements_of(o->out.dtype, unit))->name);
    else
        diag_help(p->diags, d, "pad the innermost axis %s to a multiple of %lld elements",
                  unpadded_side(op_input(o)->out.part[ELEMENT], o->out.part[ELEMENT], elements_of(o->out.dtype, unit)),
                  (long long)elements_of(o->out.dtype, unit));
    return false;
}

static bool whole_bytes(const copy *c)
{
    bool whole = c->run_bits % 8 == 0 && c->source % 8 == 0 && c->destination % 8 == 0;
    for (size_t i = 0; i < c->count; i++)
        whole = whole && c->loops[i].source % 8 == 0 && c->loops[i].destination % 8 == 0;
    return whole;
}

/* Appends the loops as commands at *end and returns the new end; loops beyond the table's entries are unrolled, outermost first. */
static dma_config **copy_commands(pass_context *p, const copy *c, size_t count, dma_config like, dma_config **end)
{
    if (count > SEQUENCER_MAX_ENTRIES) {
        const copy_loop *l = &c->loops[count - 1];
        for (int64_t i = 0; i < l->size; i++) {
            end = copy_commands(p, c, count - 1, like, end);
            like.source_base += l->source / 8;
            like.destination_base += l->destination / 8;
        }
        return end;
    }
    dma_config *d = ARENA_NEW(p->arena, dma_config);
    *d = like;
    sequencer_config *s = &d->sequencer;
    *s = (sequencer_config){
        .walk = WALK_COPY, .packet = d->packet_bytes, .access_bytes = d->packet_bytes, .contiguous_bytes = c->run_bits / 8};
    for (size_t i = count; i-- > 0;)
        s->entries[s->count++] =
            (sequencer_entry){c->loops[i].term, c->loops[i].size, c->loops[i].source / 8, c->loops[i].destination / 8, 0};
    if (s->count == 0)
        s->entries[s->count++] = (sequencer_entry){.term = mapping_identity(p->mappings), .size = 1};
    *end = d;
    return &d->next;
}

static int64_t unrolled(const copy *c)
{
    int64_t commands = 1;
    for (size_t i = SEQUENCER_MAX_ENTRIES; i < c->count && commands <= COPY_MAX_COMMANDS; i++)
        commands *= c->loops[i].size;
    return commands;
}

/* ---- the whole copy ---- */

/* Does the destination have what the window is read by, instead of the window: digits of its terms, or another window over them, a tile? */
static bool has_terms_of(const axis *window, const sequence_space *to, size_t to_count)
{
    bool found = false;
    for (size_t i = 0; i < to_count; i++) {
        if (mapping_mentions(to[i].mapping, window))
            return false;
        for (uint32_t t = 0; t < window->term_count; t++)
            found = found || mapping_mentions(to[i].mapping, window->terms[t].of);
        for (size_t k = 0; k < to[i].mapping->count; k++) {
            const axis *a = to[i].mapping->factors[k].axis;
            for (uint32_t t = 0; a && t < a->term_count; t++)
                found = found || a->terms[t].of == window->terms[0].of;
        }
    }
    return found;
}

/* A window that the destination has by its terms, or in tiles, is covered when all digits of its terms are there: every place is some sum
 * of them. Is the factor such a window? */
static bool is_open(const factor *f, const sequence_space *to, size_t to_count)
{
    const axis *a = f->axis;
    return a && a->term_count > 0 && !a->bordered && f->live == a->size && has_terms_of(a, to, to_count);
}

/* The mapping with the terms of its open windows in their place. */
static const mapping *open_windows(pass_context *p, const mapping *m, const sequence_space *to, size_t to_count)
{
    const mapping *out = mapping_identity(p->mappings);
    size_t first = 0;
    while (first < m->count && !is_open(&m->factors[first], to, to_count))
        first++;
    if (first == m->count)
        return m;
    for (size_t i = 0; i < m->count && out; i++) {
        const axis *a = m->factors[i].axis;
        bool open = is_open(&m->factors[i], to, to_count);
        if (!open)
            out = pass_pair(p, out, mapping_of_factor(p->mappings, &m->factors[i]));
        for (uint32_t k = 0; open && k < a->term_count && out; k++) {
            const window_term *t = &a->terms[k];
            factor digit = {.kind = FACTOR_AXIS, .axis = t->of, .weight = t->weight, .live = t->extent, .extent = t->extent};
            out = pass_pair(p, out, mapping_of_factor(p->mappings, &digit));
        }
    }
    return out ? out : m;
}

/* ---- what a refusal shows ---- */

static bool has_units(const tensor *t)
{
    for (component c = CHIP; c < MAPPING_COMPONENTS; c++)
        if (c != ELEMENT && t->part[c] && !mapping_is_hole(t->part[c]))
            return true;
    return false;
}

static const char *place_text(pass_context *p, const tensor *t)
{
    const char *text = "";
    for (component c = CHIP; c < MAPPING_COMPONENTS; c++)
        if (c != ELEMENT && t->part[c] && !mapping_is_hole(t->part[c]))
            text = arena_printf(p->arena, "%s%s %s, ", text, component_parameter(c), pass_text(p, t->part[c]));
    return arena_printf(p->arena, "%sElement %s", text, pass_text(p, t->part[ELEMENT]));
}

static void note_sides(pass_context *p, diag *d, const op *o)
{
    diag_note(p->diags, d, SRC_NOWHERE, "source %s; destination %s", place_text(p, &op_input(o)->out), place_text(p, &o->out));
}

/* No loops walk both sides. */
static void refuse_loops(pass_context *p, kernel *k, op *o, const sequence *seq, bool source_order)
{
    diag *d = pass_refuse(p, k, o, ELEMENT, sequence_id(seq), "no DMA loops copy this: %s", sequence_reason(p, seq));
    note_sides(p, d, o);
    if (source_order)
        diag_note(p->diags, d, SRC_NOWHERE,
                  "entries so far (term of the destination, size : stride in bits of the source, outermost first): %s",
                  sequence_table(p, seq));
    if (seq->failure == SEQUENCE_INSUFFICIENT && seq->axis)
        diag_help(p->diags, d, "take the copy from a source that holds the whole axis `%s`", seq->axis->name);
    else if (seq->failure == SEQUENCE_TWICE && seq->axis)
        diag_help(p->diags, d, "let each digit of `%s` occur once in the destination", seq->axis->name);
    else if (sequence_id(seq) == E_SEQ_WINDOW)
        diag_help(p->diags, d, "%s", sequence_advice(p, seq));
    else
        diag_help(p->diags, d, "cut the axes at common divisors on both sides");
}

/* An axis of a group that the destination does not have at all: its loops move, by the group's other axes. */
static const axis *axis_without_place(const sequence_space *from, size_t from_count, const sequence_space *to, size_t to_count)
{
    for (size_t i = 0; i < from_count; i++)
        for (size_t k = 0; k < from[i].mapping->count; k++) {
            const mapping *group = from[i].mapping->factors[k].inner;
            const axis *axes[16];
            uint32_t count = group ? mapping_axes(group, axes, 16) : 0;
            for (uint32_t n = 0; n < count && n < 16; n++) {
                bool found = false;
                for (size_t t = 0; t < to_count && !found; t++)
                    found = mapping_mentions(to[t].mapping, axes[n]);
                if (!found)
                    return axes[n];
            }
        }
    return NULL;
}

static bool names_axis(const mapping *m)
{
    const axis *first;
    return mapping_axes(m, &first, 1) > 0;
}

static bool repeats_a_place(const sequence *seq)
{
    bool repeats = false;
    for (size_t i = 0; i < seq->count; i++)
        repeats = repeats || seq->parts[i].stride == 0;
    return repeats;
}

static bool covers_source(pass_context *p, kernel *k, op *o, const sequence_space *source, size_t from_count, const sequence_space *to,
                          size_t to_count)
{
    sequence whole;
    sequence_space from[COPY_SPACES];
    const mapping *held[COPY_SPACES];
    for (size_t i = 0; i < from_count; i++)
        from[i] = (sequence_space){open_windows(p, source[i].mapping, to, to_count), source[i].stride};
    for (size_t i = 0; i < to_count; i++)
        held[i] = to[i].mapping;
    sequence_space all = {mapping_gather(p->mappings, held, to_count), 1}; /* wherever it is held */
    const sequence_space *places = all.mapping ? &all : to;
    size_t place_count = all.mapping ? 1 : to_count;
    bool found =
        sequence_derive_spaces(p->mappings, places, place_count, NULL, from, from_count, SEQUENCE_COPY | SEQUENCE_NAMELESS, &whole);
    if (!found || repeats_a_place(&whole)) /* names are for what is refused, or may be */
        found = sequence_derive_spaces(p->mappings, places, place_count, NULL, from, from_count, SEQUENCE_COPY, &whole);
    const char *reason = found ? NULL : sequence_reason(p, &whole);
    for (size_t i = 0; found && i < whole.count && !reason; i++)
        if (whole.parts[i].stride == 0 && names_axis(whole.parts[i].term)) /* copies without a name are in any one of them */
            reason = arena_printf(p->arena, "`%s` has no place in it", mapping_text(whole.parts[i].term, p->arena));
    const axis *lost = reason ? NULL : axis_without_place(from, from_count, to, to_count);
    if (lost)
        reason = arena_printf(p->arena, "`%s` has no place in it", lost->name);
    if (!reason)
        return true;
    if (!found && whole.failure == SEQUENCE_INCOMPATIBLE) { /* it may be all there, in other pieces */
        refuse_loops(p, k, o, &whole, false);
        return false;
    }
    diag *d = pass_refuse(p, k, o, ELEMENT, E_DMA_COVER, "the destination does not hold all of the source: %s", reason);
    note_sides(p, d, o);
    int64_t bytes = tensor_unit_bytes(&op_input(o)->out);
    bool plain = !op_into(o) && !has_units(&op_input(o)->out) && !has_units(&o->out) && bytes > 0 &&
                 bytes % p->target->dma_dm_multiple_bytes == 0 && bytes <= p->target->dm_bytes_per_slice - o->out.address;
    diag_help(p->diags, d, "declare the destination with every axis of the source%s%s; a part is moved through a tile",
              plain ? ", as in Element " : "", plain ? pass_text(p, op_input(o)->out.part[ELEMENT]) : "");
    return false;
}

/* Is the innermost padding of this view what a tile left out? */
static bool ends_in_tile(const op *o)
{
    const mapping *m = o->guard;
    return m && m->count > 0 && m->factors[m->count - 1].pad == PAD_BOTTOM;
}

/* A DM destination wants whole units of 8 bytes, and memory in HBM that is the kernel's own may have them. Where the live values of the
 * innermost digit are none, but with the padding that both sides share they are, the padding goes with the data; not after a tile, where
 * other data follows. */
static bool takes_padding(const pass_context *p, const op *o)
{
    const mapping *element = o->out.part[ELEMENT];
    bool tiles = ends_in_tile(op_input(o)) || (op_into(o) && ends_in_tile(op_into(o)));
    if (tiles || element->count == 0)
        return false;
    const factor *inner = &element->factors[element->count - 1];
    const mapping *from = op_input(o)->out.part[ELEMENT];
    bool guarded = inner->pad == PAD_BOTTOM || (from->count > 0 && from->factors[from->count - 1].pad == PAD_BOTTOM);
    bool local = op_into(o) && op_root(op_into(o))->kind == IR_ALLOC && !guarded;
    if (o->kind != IR_TO_DM && !local)
        return false;
    int64_t unit = p->target->dma_dm_multiple_bytes * 8, bits = dtype_row_of(o->out.dtype)->bits;
    return inner->live % (unit / gcd(unit, bits)) && inner->extent % (unit / gcd(unit, bits)) == 0;
}

/* The padding that would have to be written is one that must not be. */
static bool writes_guarded(pass_context *p, kernel *k, op *o)
{
    const mapping *element = o->out.part[ELEMENT];
    if (!takes_padding(p, o) || element->factors[element->count - 1].pad != PAD_BOTTOM)
        return false;
    int64_t live = element->factors[element->count - 1].live;
    diag *d =
        pass_refuse(p, k, o, ELEMENT, E_PAD_WRITE, "%s writes DM in units of %lld bytes: %lld elements of %s reach into padding `#{!}`",
                    op_kind_name(o->kind), (long long)p->target->dma_dm_multiple_bytes, (long long)live, dtype_row_of(o->out.dtype)->name);
    diag_help(p->diags, d, "declare padding that may be written: m![%s]",
              mapping_text(mapping_plain_padding(p->mappings, element), p->arena));
    return true;
}

static int by_source(const void *a, const void *b)
{
    const copy_loop *x = a, *y = b;
    return order_then(ORDER(x->source, y->source), ORDER(x->destination, y->destination));
}

/* Rows of HBM are read one after the other ("DMA Engine", Good stream orders: strides that change rows stand outside). A copy that would go
 * again over more than a row of each bank, for the next slice, goes over the source in its order instead. */
static void order_by_rows(const op *o, copy *c)
{
    enum { ROW_BYTES = 1 << 21 }; /* HBM geometry: the bits of an address above these are a bank's row */
    int64_t reach = c->run_bits / 8;
    bool again = false;
    if (o->kind != IR_TO_DM || op_input(o)->out.kind != TENSOR_HBM || c->count > SEQUENCER_MAX_ENTRIES)
        return;
    for (size_t i = 0; i < c->count; i++) {
        int64_t stride = c->loops[i].source / 8;
        if (stride < 0)
            return;
        again = again || (reach > ROW_BYTES && stride < reach);
        reach += stride * (c->loops[i].size - 1);
    }
    if (again)
        order_sort(c->loops, c->count, sizeof *c->loops, by_source);
}

/* What a copy's commands are appended to. */
typedef struct copy_output {
    dma_config **end;
    int64_t commands;
    bool warned;
} copy_output;

/* The commands of loops whose run is cut into packets of one size; false with a diagnostic. */
static bool copy_packets(pass_context *p, kernel *k, op *o, copy *c, copy_output *out)
{
    bool granular;
    int64_t packet = copy_packet_bytes(p, o, c);
    if (!copy_aligned(p, k, o, c, packet, &granular, &out->warned))
        return false;
    const copy_loop *large = copy_split_large(p, c);
    if (large) {
        diag *d =
            pass_refuse(p, k, o, ELEMENT, E_DMA_ENTRIES, "`%s` needs %lld iterations, an entry has at most %lld, and no divisor splits it",
                        mapping_text(large->term, p->arena), (long long)large->size, (long long)p->target->sequencer_entry_size);
        diag_help(p->diags, d, "pad the axis to a size that has a divisor up to %lld", (long long)p->target->sequencer_entry_size);
        return false;
    }
    out->commands += unrolled(c);
    if (out->commands > COPY_MAX_COMMANDS)
        return true;
    dma_config like = {.source_base = dma_base(p, op_input(o)) + c->source / 8,
                       .destination_base = dma_base(p, op_into(o) ? op_into(o) : o) + c->destination / 8,
                       .packet_bytes = packet,
                       .granular = granular};
    order_by_rows(o, c);
    out->end = copy_commands(p, c, c->count, like, out->end);
    return true;
}

/* The commands of all copies. */
static void copy_all(pass_context *p, kernel *k, op *o, copy_list all)
{
    copy_output out = {.end = &o->dma};
    for (size_t i = 0; i < all.count && !all.too_many; i++) {
        copy *c = &all.items[i], rest;
        copy_merge(p, c, dtype_row_of(o->out.dtype)->bits);
        if (!whole_bytes(c)) {
            diag *d = pass_refuse(p, k, o, ELEMENT, E_DMA_ALIGN, "the copy would have to cut bytes: %s elements have %u bits",
                                  dtype_row_of(o->out.dtype)->name, dtype_row_of(o->out.dtype)->bits);
            diag_help(p->diags, d, "keep the innermost axis, with an even number of elements, the same on both sides");
            return;
        }
        bool cut = cut_run(p, o, c, &rest);
        if (!copy_packets(p, k, o, c, &out) || (cut && !copy_packets(p, k, o, &rest, &out)))
            return;
        all.too_many = out.commands > COPY_MAX_COMMANDS;
    }
    if (all.too_many) {
        diag *d = pass_refuse(p, k, o, ELEMENT, E_DMA_ENTRIES, "the copy would take more than %d DMA commands of %lld entries",
                              COPY_MAX_COMMANDS, (long long)p->target->sequencer_entries);
        diag_help(p->diags, d, "keep neighbouring digits together on both sides");
    }
}

static const mapping *guard_or(const op *view, const mapping *element)
{
    return view->guard ? view->guard : element;
}

static void copy_one(pass_context *p, kernel *k, op *o)
{
    sequence_space from[COPY_SPACES], to[COPY_SPACES];
    size_t from_count = dma_spaces(p, &op_input(o)->out, from), to_count = dma_spaces(p, &o->out, to);
    if (!covers_source(p, k, o, from, from_count, to, to_count))
        return;
    sequence seq;
    if (writes_guarded(p, k, o))
        return;
    sequence_access access = SEQUENCE_COPY;
    if (takes_padding(p, o)) { /* that of the tile, and not what is outside of it */
        access = SEQUENCE_COPY_PADDED;
        from[from_count - 1].mapping = guard_or(op_input(o), from[from_count - 1].mapping);
        to[to_count - 1].mapping = op_into(o) ? guard_or(op_into(o), to[to_count - 1].mapping) : to[to_count - 1].mapping;
    }
    if (!sequence_derive_spaces(p->mappings, from, from_count, NULL, to, to_count, access, &seq)) {
        refuse_loops(p, k, o, &seq, true);
        return;
    }
    arena *scratch = arena_new_inside(p->arena);
    copy_all(p, k, o, copy_expand(scratch, &seq, to));
    arena_free(scratch);
}

static void add_zero_loop(pass_context *p, sequencer_config *s, int64_t size, int64_t stride)
{
    const mapping *term = mapping_identity(p->mappings);
    if (size > 1 && s->count < SEQUENCER_MAX_ENTRIES && mapping_broadcast(p->mappings, size, &term) == MAPPING_OK)
        s->entries[s->count++] = (sequencer_entry){.term = term, .size = size, .stride2 = stride};
}

/* `rounds` times `count` packets, from a byte of each unit on. */
typedef struct zero_piece {
    int64_t begin, packet; /* bytes */
    int64_t rounds, count;
} zero_piece;

static dma_config *zero_packets(pass_context *p, const op *memory, const zero_piece *z)
{
    sequence_space spaces[COPY_SPACES];
    size_t units = dma_spaces(p, &memory->out, spaces) - 1;
    dma_config *d = ARENA_NEW(p->arena, dma_config);
    *d = (dma_config){.zeros = true, .destination_base = dma_base(p, memory) + z->begin, .packet_bytes = z->packet};
    d->granular = memory->out.kind == TENSOR_DM && (z->packet | z->begin | memory->out.address) % p->target->dma_dm_multiple_bytes;
    d->sequencer.walk = WALK_COPY;
    for (size_t i = 0; i < units; i++)
        add_zero_loop(p, &d->sequencer, spaces[i].mapping->size, spaces[i].stride / 8);
    add_zero_loop(p, &d->sequencer, z->rounds, z->count * z->packet);
    add_zero_loop(p, &d->sequencer, z->count, z->packet);
    if (d->sequencer.count == 0)
        d->sequencer.entries[d->sequencer.count++] = (sequencer_entry){.term = mapping_identity(p->mappings), .size = 1};
    return d;
}

/* The longest packets, as many as an entry counts and as often as they go into the memory; then as many as are left, and one of the last
 * bytes. */
void dma_zero(pass_context *p, op *memory)
{
    int64_t bytes = tensor_unit_bytes(&memory->out), most = p->target->dma_packet_max_bytes, count = p->target->sequencer_entry_size,
            whole = bytes / most, left = whole % count;
    const zero_piece pieces[] = {
        {0, most, whole / count, count}, {(whole - left) * most, most, 1, left}, {whole * most, bytes % most, 1, 1}};
    dma_config **end = &memory->dma;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        if (pieces[i].packet > 0 && pieces[i].rounds > 0 && pieces[i].count > 0) {
            *end = zero_packets(p, memory, &pieces[i]);
            end = &(*end)->next;
        }
}

void pass_dma(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_TO_DM, copy_one);
    pass_each(p, k, IR_TO_HBM, copy_one);
    pass_each(p, k, IR_TO_SPM, copy_one);
    for (size_t i = 0; i < k->op_count; i++) /* zeros go where their memory went */
        if (k->ops[i]->kind == IR_ALLOC && k->ops[i]->dma)
            dma_zero(p, k->ops[i]);
}
