#include "codegen/emit.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "codegen/hazard.h"

_Static_assert((int)CHIP == (int)COMPONENT_CHIP && (int)PACKET == (int)COMPONENT_PACKET && (int)ELEMENT == (int)COMPONENT_ELEMENT &&
                   (int)TIME == (int)COMPONENT_TIME,
               "the components of tensors and ports have one order");

/* Chip, Cluster and Slice of a tensor, and the machine's unit at which each begins. Mappings are interned: equal ones are one object. */
typedef struct unit_places {
    const mapping *parts[TILE_UNITS];
    int64_t first[TILE_UNITS];
} unit_places;

typedef struct stream {
    command *items;
    size_t count, capacity;
    int64_t units[COMMAND_MAX_FIELDS]; /* fields of the last units command */
    bool has_units;
    unit_places places; /* what it was made of */
    size_t waited[3];   /* commands of the other contexts already waited for */
} stream;

typedef struct emission {
    const emit_context *e;
    arena *scratch; /* of the kernel at hand */
    const kernel *kernel;
    stream streams[3];
    hazard_log *done; /* work so far */
    size_t *complete; /* by the index of the last operation: commands of its context that are complete with it */
    const axis **axes;
    size_t axis_count, axis_capacity;
} emission;

/* ---- axes and layouts ---- */

static uint32_t axis_number(emission *m, const axis *a)
{
    for (size_t i = 0; i < m->axis_count; i++)
        if (m->axes[i] == a)
            return (uint32_t)i;
    for (uint32_t i = 0; i < a->term_count; i++)
        axis_number(m, a->terms[i].of);
    ARENA_PUSH(m->scratch, m->axes, m->axis_count, m->axis_capacity, a);
    return (uint32_t)m->axis_count - 1;
}

static layout emit_layout(emission *m, const mapping *part, const mapping_names *names)
{
    const mapping_step *steps;
    size_t count = mapping_postfix(part, names, m->scratch, &steps);
    uint64_t *words = ARENA_ARRAY(m->e->arena, uint64_t, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t n = (uint64_t)steps[i].n;
        switch (steps[i].op) {
        case 'A': words[i] = LAYOUT_WORD(LAYOUT_AXIS, axis_number(m, steps[i].axis)); break;
        case '1': words[i] = LAYOUT_WORD(LAYOUT_BROADCAST, n); break;
        case '/': words[i] = LAYOUT_WORD(LAYOUT_STRIDE, n); break;
        case '%': words[i] = LAYOUT_WORD(LAYOUT_MODULO, n); break;
        case '=': words[i] = LAYOUT_WORD(LAYOUT_RESIZE, n); break;
        case '#': words[i] = LAYOUT_WORD(LAYOUT_PAD, n); break;
        default: words[i] = LAYOUT_WORD(LAYOUT_PAIR, 0); break;
        }
    }
    return (layout){words, count};
}

/* ---- commands ---- */

/* The same commands, with room for so many: most have fewer entries than there is room for. */
static command *copy_commands(const command *from, size_t count, size_t capacity, arena *a)
{
    command *copy = arena_alloc_unset(a, capacity * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        memcpy(&copy[i], &from[i], offsetof(command, entries) + from[i].entry_count * sizeof *from->entries);
    return copy;
}

/* One more, whose fields are all zero, until the next one is pushed. */
static command *push(emission *m, command_op code, const op *at, context c)
{
    enum { FIRST_COMMANDS = 16 };
    stream *s = &m->streams[c];
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : FIRST_COMMANDS;
        s->items = copy_commands(s->items, s->count, s->capacity, m->scratch);
    }
    command *k = &s->items[s->count++];
    memset(k, 0, offsetof(command, entries) + command_row_of(code)->most_entries * sizeof *k->entries);
    k->op = code;
    k->context = c;
    k->line = m->e->line_of ? m->e->line_of(m->e->user, at->range) : 0;
    return k;
}

/* Waits for what other contexts must have completed before `w` may start. */
static void push_waits(emission *m, const work *w, const op *at)
{
    for (context c = 0; c < 3; c++) {
        size_t needed = c == w->context ? 0 : hazard_log_before(m->done, c, w->accesses, w->access_count);
        const op *pin = c == w->context ? NULL : work_pin(w);
        if (pin && work_context(pin) == c && m->complete[pin->index] > needed)
            needed = m->complete[pin->index];
        if (needed <= m->streams[w->context].waited[c])
            continue;
        command *k = push(m, OP_WAIT, at, w->context);
        command_set(k, WAIT_CONTEXT, c);
        command_set(k, WAIT_COUNT, (int64_t)needed);
        m->streams[w->context].waited[c] = needed;
    }
}

static void finish_work(emission *m, const work *w)
{
    for (size_t i = 0; i < w->access_count; i++)
        hazard_log_add(m->done, w->context, &w->accesses[i], m->streams[w->context].count);
    m->complete[w->last->index] = m->streams[w->context].count;
}

/* Live positions of a unit component, which begins at the machine's unit `first`, as a bit mask over words of 64. */
static void live_mask(const emission *m, const mapping *part, int64_t first, uint64_t *words, size_t word_count)
{
    const axis *axes[64];
    uint32_t count = mapping_axes(part, axes, 64), coord_count = 1;
    for (uint32_t k = 0; k < count; k++)
        coord_count = axes[k]->number >= coord_count ? axes[k]->number + 1 : coord_count;
    int64_t *coords = ARENA_ARRAY(m->e->arena, int64_t, coord_count), left = 1; /* so many positions are live, or fewer */
    for (uint32_t k = 0; k < part->count; k++)
        left *= part->factors[k].live;
    for (int64_t i = 0, unit = first; left > 0 && i < part->size && unit < (int64_t)(64 * word_count); i++, unit++) {
        memset(coords, 0, coord_count * sizeof *coords);
        if (!mapping_map(part, i, coords))
            continue;
        words[unit / 64] |= (uint64_t)1 << (unit % 64);
        left--;
    }
}

/* The live slices, in four words from that field on. */
static void set_slices(const emission *m, command *k, const mapping *part, int64_t first, command_field to)
{
    uint64_t slices[4] = {0};
    live_mask(m, part, first, slices, 4);
    for (int i = 0; i < 4; i++)
        command_set(k, (command_field)(to + i), (int64_t)slices[i]);
}

static void push_units(emission *m, const op *at, const tensor *t, context c)
{
    const op *view = at->kind == IR_FETCH ? op_input(at) : NULL;
    unit_places places = {.parts = {t->part[CHIP], t->part[CLUSTER], t->part[SLICE]}};
    if (view && view->window)
        memcpy(places.first, view->window->units, sizeof places.first);
    stream *s = &m->streams[c];
    if (s->has_units && memcmp(&s->places, &places, sizeof places) == 0)
        return;
    s->places = places;
    command *k = push(m, OP_UNITS, at, c);
    uint64_t chips = 0, clusters = 0;
    live_mask(m, t->part[CHIP], places.first[CHIP], &chips, 1);
    live_mask(m, t->part[CLUSTER], places.first[CLUSTER], &clusters, 1);
    command_set(k, UNITS_CHIPS, (int64_t)chips);
    command_set(k, UNITS_CLUSTERS, (int64_t)clusters);
    set_slices(m, k, t->part[SLICE], places.first[SLICE], UNITS_SLICES_0);
    if (s->has_units && memcmp(s->units, k->fields, sizeof s->units) == 0) {
        s->count--;
        return;
    }
    memcpy(s->units, k->fields, sizeof s->units);
    s->has_units = true;
}

/* ---- the commands of each operation, push_ and the first of them ---- */

static void fill_entries(command *k, const sequencer_config *s, command_column size, command_column stride, bool innermost_first)
{
    k->entry_count = s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        const sequencer_entry *from = &s->entries[innermost_first ? s->count - 1 - i : i];
        command_set_entry(k, i, size, from->size);
        command_set_entry(k, i, stride, from->stride);
    }
}

static void push_lift(emission *m, const op *o, context c)
{
    command *k = push(m, OP_LIFT, o, c);
    for (uint32_t i = 0; i < o->lift->count; i++) {
        command_set_entry(k, i, LIFT_LEVEL, o->lift->digits[i].level - CHIP);
        command_set_entry(k, i, LIFT_DIV, o->lift->digits[i].div);
        command_set_entry(k, i, LIFT_STRIDE, o->lift->digits[i].stride_bytes);
    }
    k->entry_count = o->lift->count;
}

static void push_OP_FETCH(emission *m, const op *o, context c)
{
    command *k = push(m, OP_FETCH, o, c);
    command_set(k, FETCH_BASE, o->sequencer->base);
    command_set(k, FETCH_DTYPE_IN, op_input(o)->out.dtype);
    command_set(k, FETCH_DTYPE_OUT, o->out.dtype);
    command_set(k, FETCH_TABLE, o->adapter && o->adapter->table ? (int64_t)o->adapter->looked_up : 0);
    command_set(k, FETCH_ZERO_POINT, o->adapter ? o->adapter->zero_point : 0);
    command_set(k, FETCH_ACCESS_BYTES, o->sequencer->access_bytes);
    command_set(k, FETCH_PACKET_ELEMENTS, o->sequencer->packet);
    fill_entries(k, o->sequencer, FETCH_ENTRY_SIZE, FETCH_ENTRY_STRIDE, false);
    if (o->lift)
        push_lift(m, o, c);
    for (uint32_t i = 0; o->start && i < o->start->count; i++) {
        k = push(m, OP_START, o, c);
        command_set(k, START_BITS, o->start->numbers[i].of->bits);
        command_set(k, START_STRIDE, o->start->numbers[i].stride_bytes);
        command_set(k, START_BASE, o->start->numbers[i].base);
        command_set(k, START_POSITIONS, o->start->numbers[i].of->positions);
    }
}

/* Loops, innermost first: tiling, shift, pop ("Stream Adapter", Advanced Operations). */
static void push_shift(emission *m, const op *o, context c)
{
    enum { NONE = 8 };
    const align_config *a = o->align;
    command *k = push(m, OP_SHIFT, o, c);
    command_set(k, SHIFT_TRANSPOSE_ROWS, a->transpose_rows);
    command_set(k, SHIFT_INITIAL_DIM, NONE);
    bool moves = a->shift && a->shift->shifts > 1;
    command_set(k, SHIFT_DIM, moves ? 1 : NONE);
    command_set(k, SHIFT_STRIDE, moves ? a->shift->shift_stride : 0);
    command_set_entry(k, k->entry_count++, SHIFT_LIMIT, a->tiling->size);
    if (moves)
        command_set_entry(k, k->entry_count++, SHIFT_LIMIT, a->shift->shifts);
    command_set(k, SHIFT_POP_DIM, k->entry_count);
    command_set_entry(k, k->entry_count++, SHIFT_LIMIT, a->packets);
    command_set_entry(k, 0, SHIFT_INITIAL, a->shift ? a->shift->initial_shift : 0);
}

static void push_OP_ALIGN(emission *m, const op *o, context c)
{
    const align_config *a = o->align;
    command *k = push(m, OP_ALIGN, o, c);
    command_set(k, ALIGN_COLLECT_FLITS, a->collect_flits);
    command_set(k, ALIGN_ROWS, a->rows);
    command_set(k, ALIGN_DTYPE, o->out.dtype);
    command_set(k, ALIGN_TILING, a->tiling->size * (a->shift ? a->shift->shifts : 1));
    command_set(k, ALIGN_PACKETS, a->packets);
    if (a->shift || a->transpose_rows > 1)
        push_shift(m, o, c);
    k = push(m, OP_TRF_READ, o, c);
    command_set(k, TRF_READ_ADDRESS, op_weights(o)->out.trf_address);
    command_set(k, TRF_READ_ROWS, a->rows);
    const tensor *weights = &op_weights(o)->out;
    command_set(k, TRF_READ_REG_TYPE, tensor_reg_type(weights));
    command_set(k, TRF_READ_DTYPE, weights->dtype);
    command_set(k, TRF_READ_SIZE, a->reg_read_size);
    fill_entries(k, &a->trf_sequencer, TRF_READ_ENTRY_SIZE, TRF_READ_ENTRY_STRIDE, true);
}

static void push_OP_CONTRACT(emission *m, const op *o, context c)
{
    command *k = push(m, OP_CONTRACT, o, c);
    command_set(k, CONTRACT_DTYPE, op_input(o)->out.dtype);
    command_set(k, CONTRACT_DEPTH, o->contract->tree_depth);
    command_set(k, CONTRACT_COLUMNS, o->contract->columns);
    for (const lane_mask *mask = o->contract->masks; mask; mask = mask->next) {
        k = push(m, OP_MASK, o, c);
        command_set(k, MASK_LIMIT, mask->limit);
        k->entry_count = mask->count;
        for (uint32_t i = 0; i < mask->count; i++) {
            command_set_entry(k, i, MASK_COUNTER, mask->terms[i].counter);
            command_set_entry(k, i, MASK_DIV, mask->terms[i].div);
            command_set_entry(k, i, MASK_MOD, mask->terms[i].mod);
            command_set_entry(k, i, MASK_WEIGHT, mask->terms[i].weight);
        }
    }
}

/* The loops of a sum over time. */
static void set_loops(command *k, const accumulate_loop *loops, uint32_t count, command_column size, command_column reduced,
                      command_column slot)
{
    k->entry_count = count;
    for (uint32_t i = 0; i < count; i++) {
        command_set_entry(k, i, size, loops[i].size);
        command_set_entry(k, i, reduced, loops[i].reduced);
        command_set_entry(k, i, slot, loops[i].slot_stride);
    }
}

static void push_OP_ACCUMULATE(emission *m, const op *o, context c)
{
    const accumulate_config *a = o->accumulate;
    command *k = push(m, OP_ACCUMULATE, o, c);
    command_set(k, ACCUMULATE_KIND, o->accumulation);
    command_set(k, ACCUMULATE_ROWS, a->rows);
    command_set(k, ACCUMULATE_COLUMNS, a->columns);
    command_set(k, ACCUMULATE_SLOTS, a->slots);
    set_loops(k, a->loops, a->count, ACCUMULATE_LOOP_SIZE, ACCUMULATE_LOOP_REDUCED, ACCUMULATE_LOOP_SLOT);
}

static void push_OP_VECTOR_REDUCE(emission *m, const op *o, context c)
{
    const vector_reduce_config *r = o->vector_reduce;
    command *k = push(m, OP_VECTOR_REDUCE, o, c);
    command_set(k, VECTOR_REDUCE_CODE, r->row->op);
    command_set(k, VECTOR_REDUCE_TREE, r->tree);
    command_set(k, VECTOR_REDUCE_SLOTS, r->slots);
    set_loops(k, r->loops, r->count, VECTOR_REDUCE_LOOP_SIZE, VECTOR_REDUCE_LOOP_REDUCED, VECTOR_REDUCE_LOOP_SLOT);
    for (const valid_count *v = r->counts; v; v = v->next) {
        k = push(m, OP_VALID_COUNT, o, c);
        command_set(k, VALID_COUNT_KIND, v->kind);
        command_set(k, VALID_COUNT_SPAN, v->span);
        command_set(k, VALID_COUNT_MASK, v->slice_mask);
        command_set(k, VALID_COUNT_SLICE, v->slice);
        command_set(k, VALID_COUNT_LIMIT, v->limit);
        k->entry_count = v->count;
        for (uint32_t i = 0; i < v->count; i++) {
            command_set_entry(k, i, VALID_COUNT_SIZE, v->loops[i].size);
            command_set_entry(k, i, VALID_COUNT_STRIDE, v->loops[i].stride);
        }
    }
}

static void push_OP_VECTOR_SLICES(emission *m, const op *o, context c)
{
    const vector_slices_config *r = o->vector_slices;
    command *k = push(m, OP_VECTOR_SLICES, o, c);
    command_set(k, VECTOR_SLICES_CODE, r->row->op);
    command_set(k, VECTOR_SLICES_RING, r->ring);
    set_slices(m, k, o->out.part[SLICE], 0, VECTOR_SLICES_0);
    k->entry_count = r->count;
    for (uint32_t i = 0; i < r->count; i++) {
        command_set_entry(k, i, VECTOR_SLICES_SIZE, r->loops[i].size);
        command_set_entry(k, i, VECTOR_SLICES_PLACE, r->loops[i].place);
        command_set_entry(k, i, VECTOR_SLICES_STRIDE, r->loops[i].stride);
    }
}

static void push_OP_COMMIT(emission *m, const op *o, context c)
{
    command *k = push(m, OP_COMMIT, o, c);
    command_set(k, COMMIT_BASE, o->sequencer->base);
    command_set(k, COMMIT_DTYPE, o->out.dtype);
    command_set(k, COMMIT_IN_BYTES, o->commit->commit_in_bytes);
    command_set(k, COMMIT_BYTES, o->commit->commit_bytes);
    command_set(k, COMMIT_CAST, !o->commit_cast ? 0 : o->commit_cast->relu ? 2 : 1);
    fill_entries(k, o->sequencer, COMMIT_ENTRY_SIZE, COMMIT_ENTRY_STRIDE, false);
}

/* Strides of both sides. */
static void fill_copy_entries(command *k, const sequencer_config *s, command_column size, command_column source, command_column destination)
{
    fill_entries(k, s, size, source, false);
    for (uint32_t i = 0; i < s->count; i++)
        command_set_entry(k, i, destination, s->entries[i].stride2);
}

/* One for each piece of the copy. */
static void push_OP_DMA(emission *m, const op *o, context c)
{
    for (const dma_config *d = o->dma; d; d = d->next) {
        command *k = push(m, OP_DMA, o, c);
        command_set(k, DMA_SOURCE, d->zeros ? 2 : op_input(o)->out.kind != TENSOR_HBM);
        command_set(k, DMA_DESTINATION, o->out.kind != TENSOR_HBM);
        command_set(k, DMA_GRANULAR, d->granular);
        command_set(k, DMA_PACKET_BYTES, d->packet_bytes);
        command_set(k, DMA_SOURCE_BASE, d->source_base);
        command_set(k, DMA_DESTINATION_BASE, d->destination_base);
        fill_copy_entries(k, &d->sequencer, DMA_ENTRY_SIZE, DMA_ENTRY_SOURCE_STRIDE, DMA_ENTRY_DESTINATION_STRIDE);
    }
}

/* The same with a list that moves the HBM side. */
static void push_OP_DMA_INDIRECT(emission *m, const op *o, context c)
{
    for (const dma_config *d = o->dma; d; d = d->next) {
        command *k = push(m, OP_DMA_INDIRECT, o, c);
        command_set(k, INDIRECT_SCATTER, o->kind == IR_SCATTER);
        command_set(k, INDIRECT_LIST, o->indirect->wide ? COPY_HBM_WIDE : op_index(o)->out.kind != TENSOR_HBM ? COPY_DM : COPY_HBM);
        command_set(k, INDIRECT_PACKET_BYTES, d->packet_bytes);
        command_set(k, INDIRECT_SOURCE_BASE, d->source_base);
        command_set(k, INDIRECT_DESTINATION_BASE, d->destination_base);
        command_set(k, INDIRECT_LIST_BASE, d->list_base);
        command_set(k, INDIRECT_UNIT, o->indirect->unit);
        command_set(k, INDIRECT_POSITIONS, o->indirect->positions);
        command_set(k, INDIRECT_STRIDE, o->indirect->stride);
        if (o->indirect->counted) {
            command_set(k, INDIRECT_COUNTED, 1);
            command_set(k, INDIRECT_COUNT_BASE, o->indirect->count_base);
            command_set(k, INDIRECT_FIRST, d->list_first);
        }
        fill_copy_entries(k, &d->sequencer, INDIRECT_ENTRY_SIZE, INDIRECT_ENTRY_SOURCE_STRIDE, INDIRECT_ENTRY_DESTINATION_STRIDE);
        for (uint32_t i = 0; i < d->sequencer.count; i++)
            command_set_entry(k, i, INDIRECT_ENTRY_LIST_STRIDE, d->sequencer.entries[i].stride3);
    }
}

static void push_OP_SWITCH(emission *m, const op *o, context c)
{
    const route_config *r = o->route;
    command *k = push(m, OP_SWITCH, o, c);
    command_set(k, SWITCH_TOPOLOGY, r->topology);
    command_set(k, SWITCH_RING, r->ring_size);
    command_set(k, SWITCH_SLICE1, r->slice1);
    command_set(k, SWITCH_SLICE0, r->slice0);
    command_set(k, SWITCH_TIME0, r->time0);
    set_slices(m, k, o->out.part[SLICE], 0, SWITCH_SLICES_0);
    if (r->topology != TOPOLOGY_CUSTOM)
        return;
    k = push(m, OP_SNOOP, o, c);
    for (uint32_t i = 0; i < r->count; i++) {
        command_set_entry(k, k->entry_count, SNOOP_DIV, r->digits[i].div);
        command_set_entry(k, k->entry_count, SNOOP_SIZE, r->digits[i].size);
        command_set_entry(k, k->entry_count, SNOOP_WEIGHT, r->digits[i].weight);
        command_set_entry(k, k->entry_count++, SNOOP_MOVED, r->digits[i].moved);
    }
    if (k->entry_count == 0) { /* all slices copy from slice 0 */
        command_set_entry(k, 0, SNOOP_DIV, 1);
        command_set_entry(k, 0, SNOOP_SIZE, 1);
        k->entry_count = 1;
    }
}

static void push_OP_VECTOR_TAG(emission *m, const op *o, context c)
{
    command *k = push(m, OP_VECTOR_TAG, o, c);
    command_set(k, VECTOR_TAG_DTYPE, o->out.dtype);
    for (unsigned bit = 0; o->vector_tag && bit < VECTOR_TAG_BITS; bit++) {
        if (o->vector_tag->of[bit].compare == VECTOR_COMPARE_FALSE)
            continue;
        k = push(m, OP_VECTOR_COMPARE, o, c);
        command_set(k, VECTOR_COMPARE_BIT, bit);
        command_set(k, VECTOR_COMPARE_KIND, o->vector_tag->of[bit].compare);
        command_set(k, VECTOR_COMPARE_WITH, o->vector_tag->of[bit].with);
    }
}

/* First the commands for which elements the operation is, and what it takes besides the stream. */
static void push_OP_VECTOR_OP(emission *m, const op *o, context c)
{
    const vector_op_config *v = o->vector_op;
    command *k;
    if (!v->tags)
        return; /* operands in front of it take every element */
    if (v->zip) {
        k = push(m, OP_VECTOR_ZIP, o, c);
        command_set(k, VECTOR_ZIP_DTYPE, v->row->from);
    }
    if (v->tags != VECTOR_ALL_TAGS || v->groups != VECTOR_BOTH_GROUPS || v->more) {
        k = push(m, OP_VECTOR_GUARD, o, c);
        command_set(k, VECTOR_GUARD_TAGS, v->tags);
        command_set(k, VECTOR_GUARD_MORE, v->more);
        command_set(k, VECTOR_GUARD_GROUPS, v->groups);
    }
    if (op_vrf(o)) {
        k = push(m, OP_VECTOR_READ, o, c);
        command_set(k, VECTOR_READ_BASE, o->sequencer->base);
        command_set(k, VECTOR_READ_LANES, o->sequencer->packet);
        fill_entries(k, o->sequencer, VECTOR_READ_ENTRY_SIZE, VECTOR_READ_ENTRY_STRIDE, false);
    }
    k = push(m, OP_VECTOR_OP, o, c);
    command_set(k, VECTOR_OP_CODE, v->row->op);
    command_set(k, VECTOR_OP_A, vector_mode_of(v->mode, 0));
    command_set(k, VECTOR_OP_B, vector_mode_of(v->mode, 1));
    command_set(k, VECTOR_OP_C, vector_mode_of(v->mode, 2));
    command_set(k, VECTOR_OP_STASH, op_stash(o) != NULL);
    command_set(k, VECTOR_OP_FIRST, op_stash(o) || op_vrf(o) ? 0 : v->constants[0]);
    command_set(k, VECTOR_OP_SECOND, v->constants[1]);
}

/* Commands made from VALUES rows. */
#define VALUE(field, value) command_set(k, field, value);
#define VALUES(code, ...) \
    static void push_##code(emission *m, const op *o, context c) \
    { \
        command *k = push(m, code, o, c); \
        __VA_ARGS__ \
    }
#include "target/engines.def"

static void push_stage(emission *m, const op *o, context c)
{
    static void (*const push_commands[IR_OP_COUNT])(emission *, const op *, context) = {
#define OPERATION(symbol, name, command, properties) [IR_##symbol] = push_##command,
#include "target/engines.def"
    };
    if (o->kind == IR_ALLOC) /* zeros, before anything is written */
        push_OP_DMA(m, o, c);
    else
        push_commands[o->kind](m, o, c);
}

/* ---- chains and copies ---- */

/* Guards of the work that ends with `last`, the outermost first; each is for all commands up to the end of the work. */
static void push_guards(emission *m, const op *last, context c)
{
    size_t count = 0;
    for (const run_guard *g = last->runs_if; g; g = g->outer)
        count++;
    const run_guard **guards = ARENA_ARRAY(m->scratch, const run_guard *, count);
    count = 0;
    for (const run_guard *g = last->runs_if; g; g = g->outer)
        guards[count++] = g;
    while (count-- > 0) {
        command *k = push(m, OP_GUARD, last, c);
        command_set(k, GUARD_BITS, guards[count]->bits);
        command_set(k, GUARD_BASE, guards[count]->port->out.address);
        command_set(k, GUARD_FIRST, (int64_t)guards[count]->first);
        command_set(k, GUARD_SPAN, (int64_t)guards[count]->span);
    }
}

/* From the first of the commands on, where there are all of them. */
static void finish_guards(emission *m, size_t first, context c)
{
    stream *s = &m->streams[c];
    for (size_t i = first; i < s->count && s->items[i].op == OP_GUARD; i++)
        command_set(&s->items[i], GUARD_COMMANDS, (int64_t)(s->count - i - 1));
}

/* Guards are for one copy: of several pieces each has its own. */
static void push_guarded_copies(emission *m, const op *last, context c)
{
    stream *s = &m->streams[c];
    size_t first = s->count;
    push_stage(m, last, c);
    if (!last->runs_if)
        return;
    size_t count = s->count - first;
    command *copies = ARENA_ARRAY(m->scratch, command, count);
    memcpy(copies, &s->items[first], count * sizeof *copies);
    s->count = first;
    for (size_t i = 0; i < count; i++) {
        first = s->count;
        push_guards(m, last, c);
        *push(m, copies[i].op, last, c) = copies[i];
        finish_guards(m, first, c);
    }
}

static void push_chain(emission *m, const work *w)
{
    const op *stages[64];
    size_t count = 0, first = m->streams[w->context].count;
    for (const op *o = w->last; o != w->first && count < 63; o = op_input(o))
        stages[count++] = o;
    push_guards(m, w->last, w->context);
    push_stage(m, w->first, w->context);
    while (count-- > 0)
        push_stage(m, stages[count], w->context);
    finish_guards(m, first, w->context);
}

static void push_work(emission *m, const work *w)
{
    push_waits(m, w, w->first);
    if (w->context != CONTEXT_DMA)
        push_units(m, w->first, &w->first->out, w->context);
    if (w->context == CONTEXT_DMA)
        push_guarded_copies(m, w->last, w->context);
    else
        push_chain(m, w);
    finish_work(m, w);
}

/* ---- ports and einsum ---- */

static port_space space_of(tensor_kind kind)
{
    switch (kind) {
    case TENSOR_HBM: return PORT_HBM;
    case TENSOR_DM: return PORT_DM;
    case TENSOR_TRF: return PORT_TRF;
    case TENSOR_VRF: return PORT_VRF;
    default: return PORT_STREAM;
    }
}

static const port *emit_ports(emission *m, mapping_context *c)
{
    const kernel *k = m->kernel;
    port *ports = ARENA_ARRAY(m->e->arena, port, k->port_count);
    for (size_t i = 0; i < k->port_count; i++) {
        const tensor *t = &k->ports[i].tensor;
        port *p = &ports[i];
        *p = (port){.name = k->ports[i].name,
                    .direction = k->ports[i].is_output ? PORT_OUT : PORT_IN,
                    .space = space_of(t->kind),
                    .dtype = t->dtype,
                    .trf_address = t->kind == TENSOR_TRF ? t->trf_address : TRF_FULL,
                    .address = t->kind == TENSOR_HBM || t->kind == TENSOR_DM || t->kind == TENSOR_VRF ? t->address : 0};
        for (int part = 0; part < COMPONENT_COUNT; part++)
            if (port_space_has(p->space, (port_component)part))
                p->mapping[part] = emit_layout(m, t->part[part] ? t->part[part] : mapping_identity(c), k->ports[i].named[part]);
    }
    return ports;
}

/* The IR's statements with the axis numbers of the binary, in which only the axes that the kernel uses have one. */

static einsum_term *emit_terms(emission *m, const window_term *of, uint32_t count)
{
    einsum_term *terms = ARENA_ARRAY(m->e->arena, einsum_term, count);
    for (uint32_t k = 0; k < count; k++)
        terms[k] = (einsum_term){axis_number(m, of[k].of), of[k].weight, of[k].extent, of[k].stride};
    return terms;
}

static uint32_t einsum_axis(emission *m, uint32_t number)
{
    return axis_number(m, m->kernel->einsum->axes[number]);
}

/* Those that a reshape makes of its axes, and the windows among the axes so far. */
static void emit_windows(emission *m, einsum *out)
{
    const einsum *from = &m->kernel->einsum->e;
    einsum_window *windows = ARENA_ARRAY(m->e->arena, einsum_window, m->axis_count + from->window_count);
    for (uint32_t i = 0; i < from->window_count; i++) {
        einsum_term *terms = ARENA_ARRAY(m->e->arena, einsum_term, from->windows[i].term_count);
        windows[i] = from->windows[i];
        windows[i].axis = einsum_axis(m, from->windows[i].axis);
        windows[i].terms = terms;
        for (uint32_t k = 0; k < windows[i].term_count; k++) {
            terms[k] = from->windows[i].terms[k];
            terms[k].axis = einsum_axis(m, terms[k].axis);
        }
    }
    for (size_t i = 0; i < m->axis_count; i++) {
        const axis *a = m->axes[i];
        if (a->term_count > 0)
            windows[out->window_count++] =
                (einsum_window){(uint32_t)i, a->term_count, emit_terms(m, a->terms, a->term_count), a->bordered, a->first};
    }
    out->windows = windows;
}

static const uint32_t *emit_axes(emission *m, const einsum_tensor *t)
{
    uint32_t *axes = ARENA_ARRAY(m->e->arena, uint32_t, t->rank);
    for (uint32_t k = 0; k < t->rank; k++)
        axes[k] = einsum_axis(m, t->axes[k]);
    return axes;
}

static void emit_statement(emission *m, einsum_statement *s)
{
    einsum_digit *digits = ARENA_ARRAY(m->e->arena, einsum_digit, s->digit_count);
    for (uint32_t k = 0; k < s->digit_count; k++) {
        digits[k] = s->digits[k];
        digits[k].axis = einsum_axis(m, digits[k].axis);
    }
    einsum_shift *shifts = ARENA_ARRAY(m->e->arena, einsum_shift, s->shift_count);
    for (uint32_t k = 0; k < s->shift_count; k++) {
        shifts[k] = s->shifts[k];
        shifts[k].axis = einsum_axis(m, shifts[k].axis);
    }
    einsum_index *indices = ARENA_ARRAY(m->e->arena, einsum_index, einsum_index_count(s));
    for (uint32_t k = 0; k < einsum_index_count(s); k++) {
        indices[k] = s->indices[k];
        indices[k].axis = einsum_axis(m, indices[k].axis);
    }
    s->digits = digits;
    s->shifts = shifts;
    s->indices = indices;
}

static void emit_einsum(emission *m, einsum *out)
{
    *out = m->kernel->einsum->e;
    einsum_tensor *tensors = ARENA_ARRAY(m->e->arena, einsum_tensor, out->tensor_count);
    for (uint32_t i = 0; i < out->tensor_count; i++) {
        tensors[i] = out->tensors[i];
        tensors[i].axes = emit_axes(m, &tensors[i]);
    }
    einsum_statement *statements = ARENA_ARRAY(m->e->arena, einsum_statement, out->statement_count);
    for (uint32_t i = 0; i < out->statement_count; i++) {
        statements[i] = out->statements[i];
        emit_statement(m, &statements[i]);
    }
    out->tensors = tensors;
    out->statements = statements;
    emit_windows(m, out);
}

void emit_kernel(const emit_context *e, const kernel *k, const work_list *works, binary_kernel *out)
{
    arena *scratch = arena_new_inside(e->arena);
    emission m = {.e = e,
                  .scratch = scratch,
                  .kernel = k,
                  .done = hazard_log_new(scratch),
                  .complete = ARENA_ARRAY(scratch, size_t, k->op_count + 1)};
    mapping_context *none = mapping_context_new(scratch);
    *out = (binary_kernel){.name = k->name, .ports = emit_ports(&m, none), .port_count = (uint32_t)k->port_count};
    work_list all = works ? *works : kernel_work_list(e->target, k, scratch);
    for (size_t i = 0; i < all.count; i++)
        push_work(&m, &all.items[i]);
    emit_einsum(&m, &out->einsum);
    layout_axis *axes = ARENA_ARRAY(e->arena, layout_axis, m.axis_count);
    for (size_t i = 0; i < m.axis_count; i++)
        axes[i] = (layout_axis){m.axes[i]->name, m.axes[i]->size};
    out->axes = out->einsum.axes = axes;
    out->axis_count = out->einsum.axis_count = (uint32_t)m.axis_count;
    for (int c = 0; c < 3; c++) {
        out->streams[c].commands = copy_commands(m.streams[c].items, m.streams[c].count, m.streams[c].count, e->arena);
        out->streams[c].count = m.streams[c].count;
    }
    arena_free(scratch);
}
