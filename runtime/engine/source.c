#include "runtime/engine/source.h"

#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/machine/port.h"
#include "runtime/machine/proof.h"
#include "runtime/timing/duration.h"
#include "runtime/timing/schedule.h"
#include "support/integer.h"

static void copy_nibbles(unsigned char *to, int64_t to_index, const unsigned char *from, int64_t from_index, int64_t stride, int64_t count)
{
    if (stride == 1 && to_index % 2 == 0 && from_index % 2 == 0) {
        memcpy(to + to_index / 2, from + from_index / 2, (size_t)(count / 2));
        to_index += count / 2 * 2, from_index += count / 2 * 2, count %= 2;
    }
    for (; count > 0; count--, to_index++, from_index += stride) {
        unsigned value = from[from_index >> 1] >> (from_index & 1) * 4 & 15;
        unsigned char *d = &to[to_index >> 1];
        *d = to_index & 1 ? (unsigned char)((*d & 0x0f) | value << 4) : (unsigned char)((*d & 0xf0) | value);
    }
}

#define ELEMENT_COPY(name, bytes) \
    static void name(unsigned char *to, int64_t to_index, const unsigned char *from, int64_t from_index, int64_t stride, int64_t count) \
    { \
        to += to_index * (bytes); \
        from += from_index * (bytes); \
        if (stride == 1) \
            memcpy(to, from, (size_t)count *(bytes)); \
        else \
            for (int64_t i = 0; i < count; i++) \
                memcpy(to + i * (bytes), from + i * stride * (bytes), (bytes)); \
    }
ELEMENT_COPY(copy_bytes_1, 1)
ELEMENT_COPY(copy_bytes_2, 2)
ELEMENT_COPY(copy_bytes_4, 4)
#undef ELEMENT_COPY

static element_copy *element_copy_of(unsigned bits)
{
    switch (bits) {
    case 4: return copy_nibbles;
    case 8: return copy_bytes_1;
    case 16: return copy_bytes_2;
    default: return copy_bytes_4;
    }
}

/* One DM access returns adjacent bytes of one packet ("fetch_size"). */
static bool fetch_access_legal(const source *s, const command *c, fault *f)
{
    int64_t access_bits = command_get(c, FETCH_ACCESS_BYTES) * 8;
    const walk *w = &s->dm.elements;
    bool repeats = w->stride[w->count - 1] == 0; /* one element fills the access: a run of the loop's size */
    int64_t elements = access_bits / s->dm.bits, run = repeats ? w->size[w->count - 1] : walk_run(w);
    if (elements == 0)
        return fault_set(f, E_RUN_CHAIN, c, "access of %lld bits is smaller than an element of %u bits", (long long)access_bits,
                         s->dm.bits);
    if (s->shape.packet_elements % elements)
        return fault_set(f, E_RUN_CHAIN, c, "access of %lld elements does not divide the packet of %lld elements", (long long)elements,
                         (long long)s->shape.packet_elements);
    if (run % elements)
        return fault_set(f, E_RUN_CHAIN, c, "access of %lld elements does not divide the contiguous run of %lld", (long long)elements,
                         (long long)run);
    return true;
}

static bool fetch_types(source *s, const command *c, dtype in, dtype out, fault *f)
{
    if (in == out)
        return true;
    s->convert = convert_fetch(in, out);
    return s->convert || fault_set(f, E_RUN_CHAIN, c, "no fetch conversion from %s to %s", dtype_row_of(in)->name, dtype_row_of(out)->name);
}

/* The adapter's stages in their order: table, conversion, zero point. What the last of them leaves stays as it is, and its zero point goes
 * with the stream: i9 have one bit more than flits have room for. */
static bool fetch_adapters(source *s, const command *c, fault *f)
{
    dtype in = (dtype)command_get(c, FETCH_DTYPE_IN), out = (dtype)command_get(c, FETCH_DTYPE_OUT);
    dtype table = (dtype)command_get(c, FETCH_TABLE), cast = dtype_row_of(out)->staged;
    s->copy = element_copy_of(dtype_row_of(in)->bits);
    s->shape.dtype = out;
    s->shape.zero_point = command_get(c, FETCH_ZERO_POINT);
    if (dtype_is_staging(in))
        return fault_set(f, E_RUN_CHAIN, c, "%s elements are in no memory", dtype_row_of(in)->name);
    if (s->shape.zero_point && !dtype_is_staging(out))
        return fault_set(f, E_RUN_CHAIN, c, "a zero point of %lld, and %s elements", (long long)s->shape.zero_point,
                         dtype_row_of(out)->name);
    int64_t half = INT64_C(1) << (dtype_row_of(cast)->bits - 1);
    if (dtype_is_staging(out) && (s->shape.zero_point < -half || s->shape.zero_point >= half))
        return fault_set(f, E_RUN_CHAIN, c, "%s has no zero point %lld", dtype_row_of(cast)->name, (long long)s->shape.zero_point);
    if (table && c->context != CONTEXT_MAIN)
        return fault_set(f, E_RUN_CHAIN, c, "the %s context has no table to look up", context_name(c->context));
    if (table && !(s->lookup = convert_lookup(in, table)))
        return fault_set(f, E_RUN_CHAIN, c, "no table from %s to %s", dtype_row_of(in)->name, dtype_row_of(table)->name);
    return fetch_types(s, c, table ? table : in, cast, f);
}

static bool packet_bytes_of(stream_shape *shape, const command *c, fault *f)
{
    shape->packet_bytes = dtype_bytes(shape->dtype, shape->packet_elements);
    return shape->packet_bytes > 0 || fault_set(f, E_RUN_CHAIN, c, "a packet of %lld %s elements does not fill whole bytes",
                                                (long long)shape->packet_elements, dtype_row_of(shape->dtype)->name);
}

static bool fetch_plan(source *s, machine *m, const command *c, fault *f)
{
    unsigned bits = dtype_row_of((dtype)command_get(c, FETCH_DTYPE_IN))->bits;
    if (!fetch_adapters(s, c, f) ||
        !dm_walk_plan(&s->dm, m->target, c, command_get(c, FETCH_BASE), bits, FETCH_ENTRY_SIZE, FETCH_ENTRY_STRIDE, "reads", f))
        return false;
    s->shape.rows = 1;
    s->shape.packet_elements = command_get(c, FETCH_PACKET_ELEMENTS);
    if (s->dm.positions % s->shape.packet_elements)
        return fault_set(f, E_RUN_CHAIN, c, "%lld elements do not make whole packets of %lld elements", (long long)s->dm.positions,
                         (long long)s->shape.packet_elements);
    s->shape.packets = s->dm.positions / s->shape.packet_elements;
    return packet_bytes_of(&s->shape, c, f) && fetch_access_legal(s, c, f);
}

static bool port_matches(const stream_port *p, const stream_shape *shape)
{
    return p->usable && p->rows == shape->rows && p->packet_elements == shape->packet_elements;
}

bool stream_port_ready(machine *m, const command *c, uint32_t index, const stream_shape *shape, port_direction direction, fault *f)
{
    if (index >= m->kernel->port_count || m->kernel->ports[index].space != PORT_STREAM || m->kernel->ports[index].direction != direction)
        return fault_set(f, E_RUN_CHAIN, c, "port %u is not a stream %s port of the kernel", index,
                         direction == PORT_IN ? "input" : "output");
    const port *p = &m->kernel->ports[index];
    const stream_port *s = &m->streams[index];
    if (p->dtype != shape->dtype || !port_matches(s, shape))
        return fault_set(f, E_RUN_CHAIN, c,
                         "port %s has packets of %lld %s elements and %lld Rows, the command has %lld %s elements and "
                         "%lld Rows",
                         p->name, (long long)s->packet_elements, dtype_row_of(p->dtype)->name, (long long)s->rows,
                         (long long)shape->packet_elements, dtype_row_of(shape->dtype)->name, (long long)shape->rows);
    if (!stream_port_open(m, index))
        return fault_memory(f, c, "a stream port");
    for (int64_t unit = 0; unit < s->unit_count; unit++)
        if (shape->packets > s->steps - s->cursors[unit])
            return fault_set(f, E_RUN_CHAIN, c, "%lld packets, but port %s has only %lld time steps left", (long long)shape->packets,
                             p->name, (long long)(s->steps - s->cursors[unit]));
    return true;
}

static bool stream_in_plan(source *s, machine *m, const command *c, fault *f)
{
    s->shape = (stream_shape){.dtype = (dtype)command_get(c, STREAM_IN_DTYPE),
                              .packet_elements = command_get(c, STREAM_IN_PACKET_ELEMENTS),
                              .packets = command_get(c, STREAM_IN_PACKETS),
                              .rows = command_get(c, STREAM_IN_ROWS)};
    s->port = (uint32_t)command_get(c, STREAM_IN_PORT);
    if (!packet_bytes_of(&s->shape, c, f) || !stream_port_ready(m, c, s->port, &s->shape, PORT_IN, f))
        return false;
    s->stream = &m->streams[s->port];
    return true;
}

/* Bytes by which the last unit begins later than the first. */
static int64_t lift_span_bytes(const command *lift)
{
    int64_t bytes = 0;
    for (unsigned i = 0; lift && i < lift->entry_count; i++)
        bytes += command_entry(lift, i, LIFT_STRIDE);
    return bytes;
}

/* By which the last positions of all numbers follow the first ones; saturates. */
static int64_t start_span_bytes(const source *s)
{
    int64_t bytes = 0;
    for (unsigned i = 0; i < s->start_count; i++)
        if (__builtin_add_overflow(
                bytes, product_bounded(command_get(&s->start[i], START_POSITIONS) - 1, command_get(&s->start[i], START_STRIDE)), &bytes))
            return INT64_MAX;
    return bytes;
}

/* All of its units, at all of its positions, stay inside their DM. */
static bool places_legal(const source *s, const machine *m, fault *f)
{
    int64_t low = s->dm.low_byte + s->dm.span_bytes + lift_span_bytes(s->lift), end;
    for (unsigned i = 0; s->lift && i < s->lift->entry_count; i++) {
        int64_t bytes = command_entry(s->lift, i, LIFT_STRIDE);
        if (bytes % 8)
            return fault_set(f, E_RUN_CHAIN, s->lift, "entry %u: a unit would begin %lld bytes later, no multiple of 8", i,
                             (long long)bytes);
    }
    for (unsigned i = 0; i < s->start_count; i++) {
        int64_t bits = command_get(&s->start[i], START_BITS);
        if (bits != 32 && bits != 64)
            return fault_set(f, E_RUN_CHAIN, &s->start[i], "a start reads 32 or 64 bits, not %lld", (long long)bits);
        if (command_get(&s->start[i], START_BASE) > m->target->hbm_bytes_per_chip - bits / 8)
            return fault_set(f, E_RUN_ACCESS, &s->start[i], "reads its number outside HBM: address %lld, size %lld bytes",
                             (long long)command_get(&s->start[i], START_BASE), (long long)bits / 8);
    }
    if (__builtin_add_overflow(low, start_span_bytes(s), &end))
        end = INT64_MAX;
    return end <= m->target->dm_bytes_per_slice ||
           fault_set(f, E_RUN_ACCESS, s->lift ? s->lift : s->command, "reads end at byte %lld of the slice's DM, which has %lld bytes",
                     (long long)end, (long long)m->target->dm_bytes_per_slice);
}

bool source_start_bytes(const command *start, uint64_t number, int64_t *bytes, fault *f)
{
    int64_t positions = command_get(start, START_POSITIONS);
    *bytes = 0;
    if (number >= (uint64_t)positions)
        return fault_set(f, E_RUN_INDEX, start, "a number selects position %llu of an axis with %lld", (unsigned long long)number,
                         (long long)positions);
    *bytes = (int64_t)number * command_get(start, START_STRIDE); /* inside DM: places_legal */
    return true;
}

/* Does the chain write into granules that it reads? In whichever slices. */
static bool is_written(const stage *s, const machine *m)
{
    const source *k = s->plan;
    const stage *sink = chain_sink(s->chain);
    if (sink->type != &stage_commit)
        return false;
    const dm_walk *to = &((const commit *)sink->plan)->dm;
    int64_t unit = memory_granule(&m->units[0].dm),
            end = k->dm.low_byte + k->dm.span_bytes + lift_span_bytes(k->lift) + start_span_bytes(k);
    return to->low_byte / unit <= (end - 1) / unit && k->dm.low_byte / unit <= (to->low_byte + to->span_bytes - 1) / unit;
}

/* The numbers, once for all slices. */
static bool begin_source(const stage *s, machine *m, fault *f)
{
    source *k = s->plan;
    k->start_bytes = 0;
    k->stands = !is_written(s, m);
    for (unsigned i = 0; i < k->start_count; i++) {
        unsigned char bytes[8] = {0};
        int64_t base = command_get(&k->start[i], START_BASE), size = command_get(&k->start[i], START_BITS) / 8, moved;
        if (!memory_read(&m->hbm[0], base, bytes, size))
            return fault_memory(f, &k->start[i], "HBM");
        proof_read(m, &m->hbm[0], base, size);
        uint64_t number = 0;
        for (int64_t byte = size; byte-- > 0;)
            number = number << 8 | bytes[byte];
        if (!source_start_bytes(&k->start[i], number, &moved, f))
            return false;
        k->start_bytes += moved;
    }
    return true;
}

int64_t source_lift_bytes(const source *s, const machine *m, int64_t unit_index)
{
    int64_t place[3], bytes = 0;
    if (!s->lift)
        return 0;
    machine_unit_place(m, unit_index, &place[2], &place[1], &place[0]);
    for (unsigned i = 0; i < s->lift->entry_count; i++)
        if (place[command_entry(s->lift, i, LIFT_LEVEL)] / command_entry(s->lift, i, LIFT_DIV) % 2)
            bytes += command_entry(s->lift, i, LIFT_STRIDE);
    return bytes;
}

/* `s` has the commands. */
static bool source_plan(source *s, machine *m, const command *c, fault *f)
{
    return c->op == OP_FETCH ? fetch_plan(s, m, c, f) && places_legal(s, m, f) : stream_in_plan(s, m, c, f);
}

bool source_open(const source *s, machine *m, int64_t unit_index, source_run *r, fault *f)
{
    *r = (source_run){.poison = m->options.poison};
    if (s->stream) {
        r->position = stream_port_position(s->stream, m->target, unit_index);
        if (r->position >= 0)
            r->memory = stream_port_packet(s->stream, r->position, 0, s->stream->cursors[r->position]);
        return true;
    }
    memory *dm = &m->units[unit_index].dm;
    int64_t at = s->dm.low_byte + s->start_bytes + source_lift_bytes(s, m, unit_index);
    r->memory = s->stands ? memory_look(dm, at, s->dm.span_bytes) : memory_span(dm, at, s->dm.span_bytes);
    r->stands = r->memory && r->memory == memory_shared_at(dm, at, s->dm.span_bytes);
    walk_start(&s->dm.elements, &r->cursor);
    return r->memory || fault_memory(f, s->command, "a slice's DM");
}

static void fetch_raw(const source *s, source_run *r, unsigned char *to, int64_t elements)
{
    const walk *w = &s->dm.elements;
    int64_t size = w->size[w->count - 1], stride = w->stride[w->count - 1];
    for (int64_t done = 0; done < elements;) {
        int64_t left = size - r->cursor.run_position;
        int64_t take = elements - done < left ? elements - done : left;
        int64_t address = r->cursor.run_address + r->cursor.run_position * stride;
        s->copy(to, done, r->memory, address, stride, take);
        done += take;
        r->cursor.run_position += take;
        if (r->cursor.run_position == size)
            walk_next_run(w, &r->cursor);
    }
}

enum { RAW_ELEMENTS = 1024 };

static void fetch_converted(const source *s, source_run *r, unsigned char *to, int64_t elements)
{
    unsigned char raw[RAW_ELEMENTS * 4], looked_up[RAW_ELEMENTS * 4];
    unsigned bits_out = dtype_row_of(s->shape.dtype)->bits;
    for (int64_t i = 0; i < elements; i += RAW_ELEMENTS) {
        int64_t n = elements - i < RAW_ELEMENTS ? elements - i : RAW_ELEMENTS;
        unsigned char *last = to + i * bits_out / 8;
        fetch_raw(s, r, raw, n);
        if (s->lookup)
            s->lookup(s->convert ? looked_up : last, raw, n);
        if (s->convert)
            s->convert(last, s->lookup ? looked_up : raw, n);
    }
}

void source_read(const source *s, source_run *r, unsigned char *to, int64_t elements)
{
    if (s->convert || s->lookup) {
        fetch_converted(s, r, to, elements);
    } else if (!s->stream) {
        fetch_raw(s, r, to, elements);
    } else {
        size_t bytes = (size_t)(elements * dtype_row_of(s->shape.dtype)->bits / 8);
        if (r->memory) {
            memcpy(to, r->memory, bytes);
            r->memory += bytes;
        } else {
            memset(to, r->poison, bytes);
        }
    }
}

/* ---- as stages of a chain ---- */

enum { PIECE_BYTES = 8192 /* of packets, pushed at once */ };

static bool plan_source(stage *s, chain *c, fault *f)
{
    source *k = s->plan;
    bool fetches = s->commands->op == OP_FETCH;
    *k = (source){.command = s->commands, .lift = fetches ? chain_take(c, OP_LIFT) : NULL};
    for (const command *start; fetches && (start = chain_take(c, OP_START)); k->start_count++)
        k->start = k->start_count ? k->start : start;
    if (!source_plan(k, c->machine, s->commands, f))
        return false;
    s->out = k->shape;
    s->out.form = k->shape.rows > 1 || chain_peek(c)->op == OP_ACCUMULATE ? STREAM_PARTIALS : STREAM_PACKETS;
    return true;
}

static bool open_source(stage_run *r)
{
    return source_open(r->stage->plan, r->stage->chain->machine, r->unit_index, r->state, r->fault);
}

static void read_source(stage_run *r, unsigned char *to, int64_t elements)
{
    source_read(r->stage->plan, r->state, to, elements);
}

static bool source_has_places(const stage_run *at, int64_t elements)
{
    const source *s = at->stage->plan;
    unsigned bits = dtype_row_of(s->shape.dtype)->bits;
    const walk *w = &s->dm.elements;
    if (s->convert || s->lookup || elements * bits % 8)
        return false;
    if (s->stream)
        return ((const source_run *)at->state)->memory != NULL;
    bool whole_bytes = w->base * bits % 8 == 0;
    for (unsigned i = 0; i + 1 < w->count; i++)
        whole_bytes &= w->stride[i] * bits % 8 == 0;
    return whole_bytes && walk_run(w) % elements == 0;
}

static bool source_places(stage_run *run, int64_t elements, const unsigned char **to, int64_t count)
{
    const source *s = run->stage->plan;
    source_run *r = run->state;
    const walk *w = &s->dm.elements;
    int64_t bits = dtype_row_of(s->shape.dtype)->bits, bytes = elements * bits / 8;
    bool together = false;
    if (s->stream) {
        to[0] = r->memory;
        r->memory += count * bytes;
        return true;
    }
    for (int64_t i = 0; i < count;) {
        int64_t left = (w->size[w->count - 1] - r->cursor.run_position) / elements;
        int64_t n = count - i < left ? count - i : left;
        const unsigned char *at = r->memory + (r->cursor.run_address + r->cursor.run_position) * bits / 8;
        together = n == count;
        for (int64_t j = 0; j < (together ? 1 : n); j++, at += bytes)
            to[i + j] = at;
        i += n;
        r->cursor.run_position += n * elements;
        if (r->cursor.run_position == w->size[w->count - 1])
            walk_next_run(w, &r->cursor);
    }
    return together;
}

static bool source_places_stand(const stage_run *r)
{
    return ((const source_run *)r->state)->stands;
}

/* A contraction tensor from a port: the Rows of a step lie apart. */
static bool drive_partials(stage_run *r)
{
    const source *k = r->stage->plan;
    const source_run *at = r->state;
    const stream_port *p = k->stream;
    stream_word words[STREAM_MOST_WORDS];
    stream_partial partial = {words, ~UINT64_C(0)};
    for (int64_t step = 0; step < k->shape.packets; step++) {
        if (!at->memory)
            memset(words, at->poison, sizeof words);
        for (int64_t row = 0; at->memory && row < k->shape.rows; row++)
            for (int64_t g = 0; g < k->shape.packet_elements && g < STREAM_MOST_WORDS / k->shape.rows; g++)
                memcpy(&words[g * k->shape.rows + row], at->memory + (row * p->steps + step) * p->packet_bytes + g * 4, sizeof *words);
        if (!stage_push(r->next, &partial, 1))
            return false;
    }
    return true;
}

static bool drive_source(stage_run *r)
{
    const source *k = r->stage->plan;
    if (r->stage->out.form == STREAM_PARTIALS)
        return drive_partials(r);
    unsigned char piece[PIECE_BYTES];
    int64_t bits = dtype_row_of(k->shape.dtype)->bits;
    for (int64_t left = k->shape.packets * k->shape.packet_bytes, n; left > 0; left -= n) {
        n = smaller(left, PIECE_BYTES);
        source_read(k, r->state, piece, n * 8 / bits);
        if (!stage_push(r->next, piece, n))
            return false;
    }
    return true;
}

static void advance_port(const stage *s, const int64_t *units, size_t count)
{
    const source *k = s->plan;
    stream_port_advance(k->stream, s->chain->machine->target, units, count, k->shape.packets);
}

int64_t source_accesses(const source *s)
{
    if (s->stream)
        return 0;
    int64_t bytes = ceil_div(s->shape.packet_elements * (int64_t)s->dm.bits, 8);
    return ceil_div(bytes, command_get(s->command, FETCH_ACCESS_BYTES));
}

static void source_cycles(const stage *s, duration *d)
{
    const source *k = s->plan;
    int64_t accesses = source_accesses(k);
    bool partials = s->out.form == STREAM_PARTIALS;
    d->items = k->shape.packets;
    d->item_cycles = partials || accesses == 0 ? 1 : accesses;
    d->in = partials ? BOUND_MULTIPLY : BOUND_FETCH;
    duration_busy(d, ENGINE_FETCH, k->shape.packets, accesses);
    if (!k->lookup)
        return;
    const target *t = s->chain->machine->target;
    int64_t table_bits = dtype_row_of((dtype)command_get(k->command, FETCH_TABLE))->bits;
    int64_t bytes = product_bounded(product_bounded(k->shape.packets, k->shape.packet_elements), table_bits) / 8;
    d->fill += t->lookup_load_cycles;
    duration_leaves(d, ceil_div(product_bounded(bytes, t->lookup_cycles), t->lookup_bytes), 1, BOUND_LOOKUP);
}

static void fetch_traffic(const stage *s, int64_t units, schedule_item *item)
{
    const source *k = s->plan;
    item->dm_read_bytes =
        product_bounded(product_bounded(k->shape.packets, (k->shape.packet_elements * (int64_t)k->dm.bits + 7) / 8), units);
}

static unsigned fetch_ranges(const stage *s, proof_range *out)
{
    const source *k = s->plan;
    dm_walk dm = k->dm;
    dm.span_bytes += lift_span_bytes(k->lift) + start_span_bytes(k);
    *out = proof_dm_range(&dm, false);
    return 1;
}

static void fetch_proof(const stage *s, int64_t unit_index)
{
    const source *k = s->plan;
    dm_walk dm = k->dm;
    dm.low_byte += k->start_bytes + source_lift_bytes(k, s->chain->machine, unit_index);
    proof_dm_reads(s->chain->machine, &dm, unit_index);
}

/* Queues have no addresses. */
static void port_proof(const stage *s, int64_t unit_index)
{
    (void)unit_index;
    proof_doubt(s->chain->machine);
}

const stage_type stage_fetch = {.plan_bytes = sizeof(source),
                                .run_bytes = sizeof(source_run),
                                .plan = plan_source,
                                .begin = begin_source,
                                .open = open_source,
                                .read = read_source,
                                .has_places = source_has_places,
                                .places = source_places,
                                .places_stand = source_places_stand,
                                .drive = drive_source,
                                .cycles = source_cycles,
                                .traffic = fetch_traffic,
                                .ranges = fetch_ranges,
                                .proof_reads = fetch_proof,
                                .field = &field_fetch};

const stage_type stage_stream_in = {.plan_bytes = sizeof(source),
                                    .run_bytes = sizeof(source_run),
                                    .plan = plan_source,
                                    .open = open_source,
                                    .read = read_source,
                                    .has_places = source_has_places,
                                    .places = source_places,
                                    .drive = drive_source,
                                    .advance = advance_port,
                                    .cycles = source_cycles,
                                    .proof_reads = port_proof,
                                    .field = &field_stream_in};
