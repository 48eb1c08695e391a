#include "runtime/engine/vector.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/timing/duration.h"
#include "support/integer.h"

/* ---- the pass ---- */

/* The stages in their order: an operation's class, and changes of width between them. */
static int rank_of(const vector_op_row *row)
{
    static const int ranks[] = {
        [VECTOR_CLASS_LOGIC] = 1,    [VECTOR_CLASS_FXP] = 2,       [VECTOR_CLASS_FXP_TO_FP] = 3,
        [VECTOR_CLASS_FP_UNARY] = 5, [VECTOR_CLASS_FP_BINARY] = 5, [VECTOR_CLASS_FP_TERNARY] = 5,
        [VECTOR_CLASS_FP_DIV] = 7,   [VECTOR_CLASS_FP_TO_FXP] = 9, [VECTOR_CLASS_CLIP] = 10,
    };
    return row->class == VECTOR_CLASS_REINTERPRET ? 0 : ranks[row->class];
}
enum { RANK_NARROW = 4, RANK_REDUCE = 6, RANK_WIDEN = 8 };

/* While a pass is planned. */
typedef struct planning {
    vector_pass *pass;
    fault *fault;
    stream_shape at;
    int64_t flits; /* that arrive */
    int rank;
    uint64_t used;            /* bit per unit */
    bool stashed, stash_gone; /* set aside; in packets that were reduced since */
    dtype stash;
} planning;

static bool in_order(planning *p, const command *c, int rank, bool again)
{
    if (rank < p->rank || (rank == p->rank && !again))
        return fault_set(p->fault, E_RUN_CHAIN, c, "comes too late: a pass has its stages in one order");
    p->rank = rank;
    return true;
}

static bool add_op(planning *p, const command *c)
{
    const vector_op_row *row = vector_op_row_of((unsigned)command_get(c, VECTOR_OP_CODE));
    if (!row || row->class == VECTOR_CLASS_REDUCE || row->class == VECTOR_CLASS_SLICES)
        return fault_set(p->fault, E_RUN_CHAIN, c, "there is no operation 0x%llx", (long long)command_get(c, VECTOR_OP_CODE));
    const command_field fields[] = {VECTOR_OP_A, VECTOR_OP_B, VECTOR_OP_C};
    unsigned mode = 0;
    for (unsigned i = 0; i < VECTOR_OPERANDS; i++) {
        int64_t from = command_get(c, fields[i]);
        if (from > (row->operands == 3 ? 2 : row->operands - 1) || (i >= row->operands && from))
            return fault_set(p->fault, E_RUN_CHAIN, c, "operand %u of %s is number %lld", i + 1, row->name, (long long)from);
        mode |= (unsigned)from << 2 * i;
    }
    int rank = rank_of(row);
    bool narrow = row->class == VECTOR_CLASS_FP_UNARY || row->class == VECTOR_CLASS_FP_BINARY || row->class == VECTOR_CLASS_FP_TERNARY ||
                  row->class == VECTOR_CLASS_FP_DIV;
    if (row->from != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes %s elements, the stream has %s", row->name, dtype_row_of(row->from)->name,
                         dtype_row_of(p->at.dtype)->name);
    if (rank && narrow != (p->at.packet_elements == 4))
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes packets of %d elements, the stream has %lld", row->name, narrow ? 4 : 8,
                         (long long)p->at.packet_elements);
    const command_field constants[] = {VECTOR_OP_FIRST, VECTOR_OP_SECOND};
    for (unsigned i = 0; i < 2; i++)
        if (command_get(c, constants[i]) && !vector_mode_names(row, mode, i + 1))
            return fault_set(p->fault, E_RUN_CHAIN, c, "has a constant %u that no operand is", i + 1);
    if (rank && !in_order(p, c, rank, rank != 3 && rank != 7 && rank != 9))
        return false;
    if (row->alu != VECTOR_ALU_NONE && p->used >> row->alu & 1)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s is already in use", vector_alu_name(row->alu));
    if (row->alu != VECTOR_ALU_NONE) {
        p->used |= UINT64_C(1) << row->alu;
        p->pass->units++;
    }
    vector_step *s = &p->pass->steps[p->pass->count++];
    bool stash = command_get(c, VECTOR_OP_STASH);
    if (stash && (!vector_mode_names(row, mode, 1) || command_get(c, VECTOR_OP_FIRST)))
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes the stash as an operand that it does not have, or has a constant there");
    if (stash && (!p->stashed || p->stash != row->from))
        return fault_set(p->fault, E_RUN_CHAIN, c, p->stashed ? "stash type mismatch" : "nothing is set aside");
    if (stash && p->stash_gone)
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes the stash behind a reduction of its packets");
    *s = (vector_step){.row = row, .function = vector_function_of(row->op), .mode = mode, .takes_stash = stash};
    s->constants[0] = (stream_word)command_get(c, VECTOR_OP_FIRST);
    s->constants[1] = (stream_word)command_get(c, VECTOR_OP_SECOND);
    p->at.dtype = row->to;
    return true;
}

static bool add_width(planning *p, const command *c)
{
    vector_width_kind kind = (vector_width_kind)command_get(c, VECTOR_WIDTH_KIND);
    bool narrows = kind == VECTOR_SPLIT || kind == VECTOR_TRIM;
    if ((p->at.packet_elements == 8) != narrows)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes packets of %d elements, the stream has %lld", vector_width_name(kind),
                         narrows ? 8 : 4, (long long)p->at.packet_elements);
    if (!in_order(p, c, narrows ? RANK_NARROW : RANK_WIDEN, false))
        return false;
    if (kind == VECTOR_CONCAT && p->at.packets % 2)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%lld packets of 4 elements are no whole number of flits", (long long)p->at.packets);
    if (kind == VECTOR_SPLIT && __builtin_mul_overflow(p->at.packets, 2, &p->at.packets))
        return fault_set(p->fault, E_RUN_CHAIN, c, "the number of packets overflows");
    if (kind == VECTOR_CONCAT)
        p->at.packets /= 2;
    p->at.packet_elements = narrows ? 4 : 8;
    p->at.packet_bytes = 4 * p->at.packet_elements;
    if (kind != VECTOR_CONCAT)
        p->at.computed_bytes = smaller(p->at.computed_bytes, 16); /* of a split flit: of each half, at most */
    else
        p->at.computed_bytes += 16; /* of the second packet */
    if (narrows)
        p->pass->narrow_packets = p->at.packets;
    p->pass->steps[p->pass->count++] = (vector_step){.width = kind};
    return true;
}

static bool add_reduction(planning *p, chain *whole, const command *c)
{
    vector_reduction *r = &p->pass->reduction;
    const command *counts = chain_peek(whole);
    unsigned count = 0;
    bool splits = p->at.packets != p->flits;
    if (p->at.packet_elements != REDUCE_LANES)
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes packets of %d elements, the stream has %lld", REDUCE_LANES,
                         (long long)p->at.packet_elements);
    if (!in_order(p, c, RANK_REDUCE, false))
        return false;
    while (chain_take(whole, OP_VALID_COUNT))
        count++;
    if (!vector_reduction_plan(r, c, counts, count, p->at.packets, splits, p->fault))
        return false;
    if (r->row->from != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes %s elements, the stream has %s", r->row->name,
                         dtype_row_of(r->row->from)->name, dtype_row_of(p->at.dtype)->name);
    p->at.packets = r->results;
    if (r->tree)
        p->at.computed_bytes = smaller(p->at.computed_bytes, 4);
    p->stash_gone = p->stashed;
    p->used |= UINT64_C(1) << r->row->alu;
    p->pass->units++;
    p->pass->steps[p->pass->count++] = (vector_step){.reduces = true};
    return true;
}

static bool add_stash(planning *p, const command *c)
{
    if (p->stashed)
        return fault_set(p->fault, E_RUN_CHAIN, c, "is the second one of a pass");
    if ((dtype)command_get(c, VECTOR_STASH_DTYPE) != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes %s elements, the stream has %s",
                         dtype_row_of((dtype)command_get(c, VECTOR_STASH_DTYPE))->name, dtype_row_of(p->at.dtype)->name);
    p->stashed = true;
    p->stash = p->at.dtype;
    p->pass->steps[p->pass->count++] = (vector_step){.stashes = true};
    return true;
}

static bool takes_type(const command *c, command_field field, const stream_shape *at, fault *f)
{
    dtype type = (dtype)command_get(c, field);
    return type == at->dtype ||
           fault_set(f, E_RUN_CHAIN, c, "takes %s elements, the stream has %s", dtype_row_of(type)->name, dtype_row_of(at->dtype)->name);
}

/* Its operations, behind the tag. */
static bool plan_steps(planning *p, chain *c)
{
    const command *k;
    for (;;) {
        if (p->pass->count == VECTOR_MOST_STEPS)
            return fault_set(p->fault, E_RUN_CHAIN, chain_peek(c), "is one of more than %d steps of a pass", VECTOR_MOST_STEPS);
        if ((k = chain_take(c, OP_VECTOR_OP))) {
            if (!add_op(p, k))
                return false;
        } else if ((k = chain_take(c, OP_VECTOR_WIDTH))) {
            if (!add_width(p, k))
                return false;
        } else if ((k = chain_take(c, OP_VECTOR_REDUCE))) {
            if (!add_reduction(p, c, k))
                return false;
        } else if ((k = chain_take(c, OP_VECTOR_STASH))) {
            if (!add_stash(p, k))
                return false;
        } else {
            return true;
        }
    }
}

bool vector_pass_plan(stage *s, chain *c, const stream_shape *in, vector_pass *pass, const vector_pass *before, fault *f)
{
    planning p = {.pass = pass, .fault = f, .at = *in, .flits = in->packets, .used = before ? before->used : 0};
    const command *k;
    *pass = (vector_pass){.lanes = VECTOR_LANES};
    if ((k = chain_take(c, OP_VECTOR_TAG))) {
        if (!takes_type(k, VECTOR_TAG_DTYPE, in, f) || !plan_steps(&p, c))
            return false;
    }
    bool tagged = k != NULL, slices = !before && chain_peek(c)->op == OP_VECTOR_SLICES;
    k = slices ? chain_peek(c) : chain_take(c, OP_VECTOR_FINAL);
    if (!k || (!before && !tagged && !slices))
        return chain_unexpected(
            c, tagged ? "an operation of the Vector Engine; vector_op, vector_width and vector_final can" : "vector; vector_tag can", f);
    if (p.at.packet_elements != VECTOR_LANES)
        return fault_set(f, E_RUN_CHAIN, k, "takes packets of 8 elements, the stream has %lld", (long long)p.at.packet_elements);
    pass->used = p.used;
    s->out = p.at;
    s->out.form = STREAM_BEATS;
    return slices || takes_type(k, VECTOR_FINAL_DTYPE, &p.at, f);
}

static bool plan_vector(stage *s, chain *c, fault *f)
{
    if (!takes_type(s->commands, VECTOR_DTYPE, &s->in, f))
        return false;
    if (s->in.dtype != DTYPE_I32 && s->in.dtype != DTYPE_F32)
        return fault_set(f, E_RUN_CHAIN, s->commands, "takes i32 and f32 elements, the stream has %s", dtype_row_of(s->in.dtype)->name);
    return vector_pass_plan(s, c, &s->in, s->plan, NULL, f);
}

/* ---- at work ---- */

static bool vector_room(stage_run *r, int64_t flits)
{
    vector_run *at = r->state;
    if (flits <= at->capacity)
        return true;
    size_t words = (size_t)(2 * flits + 1) * 8;
    free(at->stream.words);
    at->stream.words = malloc(2 * words * sizeof *at->stream.words);
    at->stash.words = at->stream.words ? at->stream.words + words : NULL;
    at->capacity = at->stream.words ? flits : 0;
    return at->stream.words || fault_memory(r->fault, r->stage->commands, "the buffers of a slice");
}

void vector_pass_free(stage_run *r)
{
    free(((vector_run *)r->state)->stream.words);
}

bool vector_pass_open(stage_run *r)
{
    vector_run *at = r->state;
    at->stream.holds_half = at->stash.holds_half = false;
    at->reduction = (vector_reduction_run){.packet = 0};
    return true;
}

static void run_op(const vector_step *s, const vector_run *at)
{
    stream_word *words = at->stream.words;
    vector_operand operands[VECTOR_OPERANDS];
    for (unsigned i = 0; i < s->row->operands; i++) {
        unsigned from = vector_mode_of(s->mode, i);
        if (from == 1 && s->takes_stash)
            operands[i] = (vector_operand){at->stash.words, 1};
        else
            operands[i] = from ? (vector_operand){&s->constants[from - 1], 0} : (vector_operand){words, 1};
    }
    s->function(words, operands, at->stream.count);
}

/* Packets of the new width, from those of the block; returns how many words these are. */
static int64_t run_width(vector_block *at, vector_width_kind kind, unsigned char poison)
{
    stream_word *w = at->words;
    int64_t count = at->count;
    switch (kind) {
    case VECTOR_SPLIT: return count;
    case VECTOR_TRIM:
        for (int64_t i = 0; i < count / 8; i++)
            memmove(w + 4 * i, w + 8 * i, 4 * sizeof *w);
        return count / 2;
    case VECTOR_PAD:
        for (int64_t i = count / 4; i-- > 0;) {
            memmove(w + 8 * i, w + 4 * i, 4 * sizeof *w);
            memset(w + 8 * i + 4, poison, 4 * sizeof *w);
        }
        return 2 * count;
    default: /* concat */
        if (at->holds_half) {
            memmove(w + 4, w, (size_t)count * sizeof *w);
            memcpy(w, at->half, sizeof at->half);
            count += 4;
        }
        at->holds_half = count % 8 != 0;
        if (at->holds_half)
            memcpy(at->half, w + count - 4, sizeof at->half);
        return count - count % 8;
    }
}

bool vector_pass_push(stage_run *r, const vector_pass *p, const void *flits, int64_t count)
{
    vector_run *at = r->state;
    if (!vector_room(r, count))
        return false;
    unsigned char poison = r->stage->chain->machine->options.poison;
    int64_t slice = r->unit_index % r->stage->chain->machine->target->slices_per_cluster;
    at->stream.count = count * p->lanes;
    at->stash.count = 0;
    memcpy(at->stream.words, flits, (size_t)at->stream.count * sizeof *at->stream.words);
    for (unsigned i = 0; i < p->count; i++)
        if (p->steps[i].row) {
            run_op(&p->steps[i], at);
        } else if (p->steps[i].reduces) {
            at->stream.count = REDUCE_LANES * vector_reduction_run_packets(&p->reduction, &at->reduction, slice, at->stream.words,
                                                                           at->stream.count / REDUCE_LANES, poison);
        } else if (p->steps[i].stashes) {
            at->stash.count = at->stream.count;
            memcpy(at->stash.words, at->stream.words, (size_t)at->stash.count * sizeof *at->stash.words);
        } else {
            at->stream.count = run_width(&at->stream, p->steps[i].width, poison);
            at->stash.count = at->stash.count ? run_width(&at->stash, p->steps[i].width, poison) : 0;
        }
    return at->stream.count == 0 || stage_push(r->next, at->stream.words, at->stream.count / p->lanes);
}

static bool push_vector(stage_run *r, const void *flits, int64_t count)
{
    return vector_pass_push(r, r->stage->plan, flits, count);
}

/* A packet for each cycle; the first one leaves behind all units. */
static void vector_cycles(const stage *s, duration *d)
{
    const vector_pass *p = s->plan;
    int64_t packets = larger(p->narrow_packets, s->in.packets), before = 0;
    d->fill += p->units * s->chain->machine->target->vector_alu_cycles;
    duration_busy(d, ENGINE_VECTOR, packets, 1);
    if (__builtin_mul_overflow(d->beats, d->beat_cycles, &before) || before >= packets)
        return;
    d->beats = packets;
    d->beat_cycles = 1;
    d->out = BOUND_VECTOR;
}

const stage_type stage_vector = {.op = OP_VECTOR,
                                 .takes = 1 << STREAM_FLITS | 1 << STREAM_BEATS,
                                 .plan_bytes = sizeof(vector_pass),
                                 .run_bytes = sizeof(vector_run),
                                 .plan = plan_vector,
                                 .run_free = vector_pass_free,
                                 .open = vector_pass_open,
                                 .push = push_vector,
                                 .cycles = vector_cycles,
                                 .field = &field_vector};
