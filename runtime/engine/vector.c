#include "runtime/engine/vector.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
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
    bool tags;                /* the elements have some */
    bool reduced;             /* so that tags are those of other elements */
    dtype stash;
    bool paired;                       /* two streams */
    const command *guard, *read, *zip; /* that stand in front of the next operation; NULL: none */
} planning;

static bool in_order(planning *p, const command *c, int rank, bool again)
{
    if (rank < p->rank || (rank == p->rank && !again))
        return fault_set(p->fault, E_RUN_CHAIN, c, "comes too late: a pass has its stages in one order");
    p->rank = rank;
    return true;
}

/* The operands of the command as a mode. */
static bool take_mode(planning *p, const command *c, const vector_op_row *row, unsigned *mode)
{
    const command_field fields[] = {VECTOR_OP_A, VECTOR_OP_B, VECTOR_OP_C}, constants[] = {VECTOR_OP_FIRST, VECTOR_OP_SECOND};
    *mode = 0;
    for (unsigned i = 0; i < VECTOR_OPERANDS; i++) {
        int64_t from = command_get(c, fields[i]);
        if (from > (row->operands == 3 ? 2 : row->operands - 1) || (i >= row->operands && from))
            return fault_set(p->fault, E_RUN_CHAIN, c, "operand %u of %s is number %lld", i + 1, row->name, (long long)from);
        *mode |= (unsigned)from << 2 * i;
    }
    for (unsigned i = 0; i < 2; i++)
        if (command_get(c, constants[i]) && !vector_mode_names(row, *mode, i + 1))
            return fault_set(p->fault, E_RUN_CHAIN, c, "has a constant %u that no operand is", i + 1);
    return true;
}

/* Is it another operand of the operation in front of it? */
static bool is_more(const planning *p)
{
    return p->guard && command_get(p->guard, VECTOR_GUARD_MORE);
}

/* Each unit once: an operation has it with all of its operands. */
static bool take_unit(planning *p, const command *c, const vector_op_row *row)
{
    const vector_step *last = p->pass->count ? &p->pass->steps[p->pass->count - 1] : NULL;
    if (is_more(p))
        return (last && last->kind == VECTOR_STEP_OP && last->row == row) ||
               fault_set(p->fault, E_RUN_CHAIN, c, "is another operand of an operation that is not in front of it");
    if (row->alu == VECTOR_ALU_NONE)
        return true;
    if (p->used >> row->alu & 1)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s is already in use", vector_alu_name(row->alu));
    p->used |= UINT64_C(1) << row->alu;
    p->pass->units++;
    return true;
}

/* The walk of the command in front of the operation, into the step. */
static bool take_read(planning *p, const command *c, int64_t vrf_bytes, vector_step *s)
{
    if (!p->read)
        return true;
    vector_read *r = &p->pass->reads[p->pass->read_count];
    if (p->pass->read_count == VECTOR_MOST_READS)
        return fault_set(p->fault, E_RUN_CHAIN, p->read, "is one of more than %d reads of a pass", VECTOR_MOST_READS);
    *r = (vector_read){
        .count = p->read->entry_count, .base = command_get(p->read, VECTOR_READ_BASE), .lanes = command_get(p->read, VECTOR_READ_LANES)};
    int64_t packets = 1, low = 0, high = 0;
    for (unsigned i = 0; i < r->count; i++) {
        r->size[i] = command_entry(p->read, i, VECTOR_READ_ENTRY_SIZE);
        r->stride[i] = command_entry(p->read, i, VECTOR_READ_ENTRY_STRIDE);
        if (__builtin_mul_overflow(packets, r->size[i], &packets))
            return fault_set(p->fault, E_RUN_CHAIN, p->read, "the number of packets overflows");
        int64_t span = (r->size[i] - 1) * r->stride[i];
        low += span < 0 ? span : 0;
        high += span > 0 ? span : 0;
    }
    if (packets != p->at.packets || (r->lanes != 1 && r->lanes != p->at.packet_elements))
        return fault_set(p->fault, E_RUN_CHAIN, p->read, "reads %lld words for each of %lld packets, the stream has %lld of %lld elements",
                         (long long)r->lanes, (long long)packets, (long long)p->at.packets, (long long)p->at.packet_elements);
    if (r->base + low < 0 || r->base + high + 4 * r->lanes > vrf_bytes || (r->base | low | high) % 4)
        return fault_set(p->fault, E_RUN_ACCESS, p->read, "reads the VRF from byte %lld to %lld in words of 4, it has %lld bytes",
                         (long long)(r->base + low), (long long)(r->base + high + 4 * r->lanes), (long long)vrf_bytes);
    if (s->takes_stash || !vector_mode_names(s->row, s->mode, 1) || command_get(c, VECTOR_OP_FIRST))
        return fault_set(p->fault, E_RUN_CHAIN, c,
                         "takes a word of the VRF as an operand that it does not have, or has something else there");
    s->read = (int)p->pass->read_count++;
    return true;
}

/* Two streams become one by an operation on two operands; before that it is done for one of them, or for both. */
static bool take_zip(planning *p, const command *c, const vector_op_row *row, unsigned groups)
{
    if (groups != VECTOR_BOTH_GROUPS && (!p->paired || p->zip || row->from != row->to))
        return fault_set(p->fault, E_RUN_CHAIN, p->guard, "is for one stream of two, and there are no two or it converts");
    if (!p->zip)
        return true;
    if ((dtype)command_get(p->zip, VECTOR_ZIP_DTYPE) != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, p->zip, "takes other elements than the stream has");
    if (!p->paired || p->guard || p->read || row->operands != 2 || command_get(c, VECTOR_OP_STASH) || command_get(c, VECTOR_OP_FIRST))
        return fault_set(p->fault, E_RUN_CHAIN, p->zip, "makes one of two streams, by an operation on two operands without others");
    return true;
}

static bool add_op(planning *p, const command *c, int64_t vrf_bytes)
{
    const vector_op_row *row = vector_op_row_of((unsigned)command_get(c, VECTOR_OP_CODE));
    if (!row || row->class == VECTOR_CLASS_REDUCE || row->class == VECTOR_CLASS_SLICES)
        return fault_set(p->fault, E_RUN_CHAIN, c, "there is no operation 0x%llx", (long long)command_get(c, VECTOR_OP_CODE));
    int rank = rank_of(row);
    bool narrow = row->class == VECTOR_CLASS_FP_UNARY || row->class == VECTOR_CLASS_FP_BINARY || row->class == VECTOR_CLASS_FP_TERNARY ||
                  row->class == VECTOR_CLASS_FP_DIV;
    unsigned mode;
    if (!take_mode(p, c, row, &mode))
        return false;
    if (row->from != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes %s elements, the stream has %s", row->name, dtype_row_of(row->from)->name,
                         dtype_row_of(p->at.dtype)->name);
    if (rank && narrow != (p->at.packet_elements == 4))
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes packets of %d elements, the stream has %lld", row->name, narrow ? 4 : 8,
                         (long long)p->at.packet_elements);
    if (rank && !in_order(p, c, rank, is_more(p) || (rank != 3 && rank != 7 && rank != 9)))
        return false;
    if (!take_unit(p, c, row))
        return false;
    unsigned groups = p->guard ? (unsigned)command_get(p->guard, VECTOR_GUARD_GROUPS) : VECTOR_BOTH_GROUPS;
    if (!take_zip(p, c, row, groups))
        return false;
    bool stash = command_get(c, VECTOR_OP_STASH);
    if (stash && (!vector_mode_names(row, mode, 1) || command_get(c, VECTOR_OP_FIRST)))
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes the stash as an operand that it does not have, or has a constant there");
    if (stash && (!p->stashed || p->stash != row->from))
        return fault_set(p->fault, E_RUN_CHAIN, c, p->stashed ? "stash type mismatch" : "nothing is set aside");
    if (stash && p->stash_gone)
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes the stash after a reduction of its packets");
    vector_step *s = &p->pass->steps[p->pass->count++];
    *s = (vector_step){.kind = p->zip ? VECTOR_STEP_ZIP : VECTOR_STEP_OP,
                       .row = row,
                       .groups = groups,
                       .function = vector_function_of(p->pass->set, row->op),
                       .mode = mode,
                       .takes_stash = stash,
                       .read = -1,
                       .tags = p->guard ? (unsigned)command_get(p->guard, VECTOR_GUARD_TAGS) : VECTOR_ALL_TAGS,
                       .lanes = p->at.packet_elements};
    s->constants[0] = (stream_word)command_get(c, VECTOR_OP_FIRST);
    s->constants[1] = (stream_word)command_get(c, VECTOR_OP_SECOND);
    if (s->tags != VECTOR_ALL_TAGS && row->from != row->to)
        return fault_set(p->fault, E_RUN_CHAIN, c, "converts elements of some tags only");
    if (s->tags != VECTOR_ALL_TAGS && p->reduced)
        return fault_set(p->fault, E_RUN_CHAIN, c, "is for some tags after a reduction of the elements that have them");
    if (s->tags != VECTOR_ALL_TAGS && !p->tags)
        return fault_set(p->fault, E_RUN_CHAIN, c, "is for some tags, and no element has one");
    p->pass->by_tag = p->pass->by_tag || s->tags != VECTOR_ALL_TAGS;
    if (!take_read(p, c, vrf_bytes, s))
        return false;
    p->paired = p->paired && !p->zip;
    p->guard = p->read = p->zip = NULL;
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
        p->pass->narrow_packets = p->at.packets * (p->paired ? 2 : 1);
    if (p->paired && (kind == VECTOR_TRIM || kind == VECTOR_PAD))
        return fault_set(p->fault, E_RUN_CHAIN, c, "is not done to two streams");
    p->pass->steps[p->pass->count++] = (vector_step){.kind = VECTOR_STEP_WIDTH, .width = kind};
    return true;
}

static bool add_reduction(planning *p, chain *whole, const command *c)
{
    vector_reduction *r = &p->pass->reduction;
    const command *counts = chain_peek(whole);
    unsigned count = 0;
    bool splits = p->at.packets != p->flits;
    if (p->pass->inside)
        return fault_set(p->fault, E_RUN_CHAIN, c, "stands in a pass over two streams");
    if (p->at.packet_elements != REDUCE_LANES)
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes packets of %d elements, the stream has %lld", REDUCE_LANES,
                         (long long)p->at.packet_elements);
    if (!in_order(p, c, RANK_REDUCE, false))
        return false;
    while (chain_take(whole, OP_VALID_COUNT))
        count++;
    if (!vector_reduction_plan(r, c, counts, count, p->at.packets, splits, p->pass->set, p->fault))
        return false;
    if (r->row->from != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, c, "%s takes %s elements, the stream has %s", r->row->name,
                         dtype_row_of(r->row->from)->name, dtype_row_of(p->at.dtype)->name);
    p->at.packets = r->results;
    if (r->tree)
        p->at.computed_bytes = smaller(p->at.computed_bytes, 4);
    p->stash_gone = p->stashed;
    p->reduced = true;
    p->used |= UINT64_C(1) << r->row->alu;
    p->pass->units++;
    p->pass->steps[p->pass->count++] = (vector_step){.kind = VECTOR_STEP_REDUCE};
    return true;
}

static bool add_stash(planning *p, const command *c)
{
    if (p->stashed || p->pass->inside)
        return fault_set(p->fault, E_RUN_CHAIN, c, p->stashed ? "is the second one of a pass" : "stands in a pass over two streams");
    if ((dtype)command_get(c, VECTOR_STASH_DTYPE) != p->at.dtype)
        return fault_set(p->fault, E_RUN_CHAIN, c, "takes %s elements, the stream has %s",
                         dtype_row_of((dtype)command_get(c, VECTOR_STASH_DTYPE))->name, dtype_row_of(p->at.dtype)->name);
    p->stashed = true;
    p->stash = p->at.dtype;
    p->pass->steps[p->pass->count++] = (vector_step){.kind = VECTOR_STEP_STASH};
    return true;
}

/* Two streams by turns. */
static bool add_unzip(planning *p, const command *c)
{
    int64_t inside = command_get(c, VECTOR_UNZIP_INSIDE);
    if (p->at.packets % (2 * inside))
        return fault_set(p->fault, E_RUN_CHAIN, c, "parts turns of %lld packets, the stream has %lld", (long long)inside,
                         (long long)p->at.packets);
    p->pass->inside = inside;
    p->paired = true;
    p->at.packets /= 2;
    p->pass->steps[p->pass->count++] = (vector_step){.kind = VECTOR_STEP_UNZIP};
    return true;
}

/* The tags, and the comparisons after them. */
static bool add_tag(planning *p, chain *c)
{
    vector_pass *pass = p->pass;
    pass->tagged = p->at.dtype;
    p->tags = true;
    pass->steps[pass->count++] = (vector_step){.kind = VECTOR_STEP_TAG};
    for (const command *k; (k = chain_take(c, OP_VECTOR_COMPARE));) {
        vector_comparison *bit = &pass->tag[command_get(k, VECTOR_COMPARE_BIT)];
        const vector_compare_row *row = vector_compare_row_of((unsigned)command_get(k, VECTOR_COMPARE_KIND));
        if (!row || bit->compare != VECTOR_COMPARE_FALSE)
            return fault_set(p->fault, E_RUN_CHAIN, k, row ? "says a bit of the tag twice" : "there is no such comparison");
        *bit = (vector_comparison){(vector_compare)command_get(k, VECTOR_COMPARE_KIND), (uint32_t)command_get(k, VECTOR_COMPARE_WITH)};
        if (bit->with && !row->constants)
            return fault_set(p->fault, E_RUN_CHAIN, k, "has a constant that %s does not take", row->name);
    }
    return true;
}

static bool takes_type(const command *c, command_field field, const stream_shape *at, fault *f)
{
    dtype type = (dtype)command_get(c, field);
    return type == at->dtype ||
           fault_set(f, E_RUN_CHAIN, c, "takes %s elements, the stream has %s", dtype_row_of(type)->name, dtype_row_of(at->dtype)->name);
}

/* The next command of the pass, of those that come in any number; 1: it was taken, 0: it is none of them, -1: a fault. */
static int add_next(planning *p, chain *c)
{
    const command *k;
    if (p->pass->count == VECTOR_MOST_STEPS) {
        fault_set(p->fault, E_RUN_CHAIN, chain_peek(c), "is one of more than %d steps of a pass", VECTOR_MOST_STEPS);
        return -1;
    }
    bool bare = !p->guard && !p->read && !p->zip; /* nothing waits for its operation */
    if (bare && (k = chain_take(c, OP_VECTOR_ZIP)))
        p->zip = k;
    else if (!p->guard && !p->read && (k = chain_take(c, OP_VECTOR_GUARD)))
        p->guard = k;
    else if (!p->read && (k = chain_take(c, OP_VECTOR_READ)))
        p->read = k;
    else if ((k = chain_take(c, OP_VECTOR_OP)))
        return add_op(p, k, c->machine->target->vrf_bytes) ? 1 : -1;
    else if (bare && (k = chain_take(c, OP_VECTOR_WIDTH)))
        return add_width(p, k) ? 1 : -1;
    else if (bare && (k = chain_take(c, OP_VECTOR_REDUCE)))
        return add_reduction(p, c, k) ? 1 : -1;
    else if (bare && (k = chain_take(c, OP_VECTOR_STASH)))
        return add_stash(p, k) ? 1 : -1;
    else
        return 0;
    return 1;
}

static bool is_reinterpretation(const command *c)
{
    const vector_op_row *row = c->op == OP_VECTOR_OP ? vector_op_row_of((unsigned)command_get(c, VECTOR_OP_CODE)) : NULL;
    return row && row->class == VECTOR_CLASS_REINTERPRET;
}

/* What tells its elements apart, the tag or two streams; *begun: there is such a command. Over slices nothing comes by turns. */
static bool add_beginning(planning *p, chain *c, bool over_slices, bool *begun)
{
    const command *k = over_slices ? NULL : chain_take(c, OP_VECTOR_UNZIP);
    *begun = true;
    if (k)
        return takes_type(k, VECTOR_UNZIP_DTYPE, &p->at, p->fault) && add_unzip(p, k);
    k = chain_take(c, OP_VECTOR_TAG);
    *begun = k != NULL;
    return !k || (takes_type(k, VECTOR_TAG_DTYPE, &p->at, p->fault) && add_tag(p, c));
}

/* What must be there before the pass can end. */
static const char *unfinished(const planning *p, bool begun)
{
    if (!begun)
        return "vector; vector_tag and vector_unzip can";
    if (p->zip || p->guard || p->read)
        return "vector_zip, vector_guard or vector_read; vector_op can";
    return p->paired ? "two streams; vector_zip can" : "an operation of the Vector Engine; vector_op, vector_width and vector_final can";
}

bool vector_pass_plan(stage *s, chain *c, const stream_shape *in, vector_pass *pass, const vector_pass *before, fault *f)
{
    planning p = {.pass = pass, .fault = f, .at = *in, .flits = in->packets, .used = before ? before->used : 0};
    bool begun;
    int taken = 1;
    memset(pass, 0, offsetof(vector_pass, steps));
    pass->lanes = VECTOR_LANES;
    pass->set = vector_set_of(c->machine->options.cpu);
    while (taken > 0 && is_reinterpretation(chain_peek(c)))
        taken = add_next(&p, c);
    if (taken < 0 || !add_beginning(&p, c, before != NULL, &begun))
        return false;
    while (begun && (taken = add_next(&p, c)) > 0)
        continue;
    if (taken < 0)
        return false;
    bool waits = p.zip || p.guard || p.read || p.paired, slices = !before && chain_peek(c)->op == OP_VECTOR_SLICES;
    const command *k = waits ? NULL : slices ? chain_peek(c) : chain_take(c, OP_VECTOR_FINAL);
    if (!k || (!before && !begun && !slices))
        return chain_unexpected(c, unfinished(&p, begun), f);
    if (slices && pass->inside)
        return fault_set(f, E_RUN_CHAIN, k, "stands in a pass over two streams");
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
    enum { BLOCKS = 6 };
    size_t words = (size_t)(2 * (flits + 2 * VECTOR_MOST_INSIDE) + 1) * 8;
    free(at->stream.words);
    at->stream.words = malloc(BLOCKS * words * sizeof *at->stream.words);
    stream_word **const others[] = {&at->other.words, &at->stash.words, &at->tags.words, &at->operand, &at->result};
    for (size_t i = 0; i + 1 < BLOCKS; i++)
        *others[i] = at->stream.words ? at->stream.words + (i + 1) * words : NULL;
    at->capacity = at->stream.words ? flits : 0;
    return at->stream.words || fault_memory(r->fault, r->stage->commands, "the buffers of a slice");
}

void vector_pass_free(stage_run *r)
{
    free(((vector_run *)r->state)->stream.words);
}

bool vector_pass_open(stage_run *r, const vector_pass *p)
{
    vector_run *at = r->state;
    machine *m = r->stage->chain->machine;
    at->reduction = (vector_reduction_run){.packet = 0};
    at->stream.holds_half = at->other.holds_half = at->stash.holds_half = at->tags.holds_half = false;
    at->held_count = 0;
    memset(at->read, 0, sizeof at->read);
    at->vrf = p->read_count ? memory_span(&m->units[r->unit_index].vrf, 0, m->target->vrf_bytes) : NULL;
    return at->vrf || !p->read_count || fault_memory(r->fault, r->stage->commands, "a slice's VRF");
}

int64_t vector_read_address(const vector_read *r, int64_t packet)
{
    int64_t address = r->base;
    for (unsigned i = r->count; i-- > 0;) {
        address += packet % r->size[i] * r->stride[i];
        packet /= r->size[i];
    }
    return address;
}

/* Operand 1 of the block's packets, from the VRF. */
static void run_read(const vector_pass *p, const vector_step *s, vector_run *at)
{
    const vector_read *r = &p->reads[s->read];
    stream_word *to = at->operand;
    int64_t *done = &at->read[s->read], size = r->count ? r->size[r->count - 1] : 1, in_loop = *done % size, address = 0;
    for (int64_t i = 0; i < at->stream.count; i += s->lanes, to += s->lanes, ++*done, in_loop = in_loop + 1 == size ? 0 : in_loop + 1) {
        address = i == 0 || in_loop == 0 ? vector_read_address(r, *done) : address + r->stride[r->count - 1];
        const unsigned char *from = at->vrf + address;
        memcpy(to, from, (size_t)r->lanes * sizeof *to);
        for (int64_t lane = r->lanes; lane < s->lanes; lane++)
            to[lane] = to[0];
    }
}

static void run_op(const vector_pass *p, const vector_step *s, vector_run *at, const vector_block *block)
{
    stream_word *words = block->words, *out = s->tags == VECTOR_ALL_TAGS ? words : at->result;
    vector_operand operands[VECTOR_OPERANDS];
    if (s->read >= 0)
        run_read(p, s, at);
    for (unsigned i = 0; i < s->row->operands; i++) {
        unsigned from = vector_mode_of(s->mode, i);
        if (from == 1 && (s->takes_stash || s->read >= 0))
            operands[i] = (vector_operand){s->takes_stash ? at->stash.words : at->operand, 1};
        else
            operands[i] = from ? (vector_operand){&s->constants[from - 1], 0} : (vector_operand){words, 1};
    }
    s->function(out, operands, block->count);
    if (out != words)
        vector_select(p->set, words, out, at->tags.words, s->tags, block->count);
}

/* Whole turns: the packets of group 0, and those of group 1. */
static void run_unzip(const vector_pass *p, vector_run *at)
{
    int64_t turn = 2 * p->inside * 8, half = turn / 2, from = 0, to = 0, count = at->held_count + at->stream.count;
    stream_word *in = at->result; /* nobody needs it here */
    memcpy(in, at->held, (size_t)at->held_count * sizeof *in);
    memcpy(in + at->held_count, at->stream.words, (size_t)at->stream.count * sizeof *in);
    for (; count - from >= turn; from += turn, to += half) {
        memcpy(at->stream.words + to, in + from, (size_t)half * sizeof *in);
        memcpy(at->other.words + to, in + from + half, (size_t)half * sizeof *in);
    }
    at->held_count = count - from;
    memcpy(at->held, in + from, (size_t)at->held_count * sizeof *in);
    at->stream.count = at->other.count = to;
}

static void run_zip(const vector_step *s, vector_run *at)
{
    vector_operand operands[VECTOR_OPERANDS];
    for (unsigned i = 0; i < s->row->operands; i++)
        operands[i] = (vector_operand){vector_mode_of(s->mode, i) ? at->other.words : at->stream.words, 1};
    s->function(at->stream.words, operands, at->stream.count);
    at->other.count = 0;
}

static void run_tag(const vector_pass *p, vector_run *at)
{
    at->tags.count = at->stream.count;
    memset(at->tags.words, 0, (size_t)at->tags.count * sizeof *at->tags.words);
    for (unsigned bit = 0; bit < VECTOR_TAG_BITS; bit++)
        vector_compare_all(p->set, at->tags.words, bit, &p->tag[bit], p->tagged, at->stream.words, at->stream.count);
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

static void run_step(const vector_pass *p, const vector_step *s, vector_run *at, unsigned char poison, int64_t slice)
{
    switch (s->kind) {
    case VECTOR_STEP_OP:
        if (s->groups & 1)
            run_op(p, s, at, &at->stream);
        if (s->groups & 2 && at->other.count)
            run_op(p, s, at, &at->other);
        break;
    case VECTOR_STEP_UNZIP: run_unzip(p, at); break;
    case VECTOR_STEP_ZIP: run_zip(s, at); break;
    case VECTOR_STEP_REDUCE:
        at->stream.count = REDUCE_LANES * vector_reduction_run_packets(&p->reduction, &at->reduction, slice, at->stream.words,
                                                                       at->stream.count / REDUCE_LANES, poison);
        break;
    case VECTOR_STEP_TAG:
        if (p->by_tag)
            run_tag(p, at);
        break;
    case VECTOR_STEP_STASH:
        at->stash.count = at->stream.count;
        memcpy(at->stash.words, at->stream.words, (size_t)at->stash.count * sizeof *at->stash.words);
        break;
    default:
        at->stream.count = run_width(&at->stream, s->width, poison);
        at->other.count = at->other.count ? run_width(&at->other, s->width, poison) : 0;
        at->stash.count = at->stash.count ? run_width(&at->stash, s->width, poison) : 0;
        at->tags.count = at->tags.count ? run_width(&at->tags, s->width, poison) : 0;
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
    at->other.count = at->stash.count = at->tags.count = 0;
    memcpy(at->stream.words, flits, (size_t)at->stream.count * sizeof *at->stream.words);
    for (unsigned i = 0; i < p->count; i++)
        run_step(p, &p->steps[i], at, poison, slice);
    return at->stream.count == 0 || stage_push(r->next, at->stream.words, at->stream.count / p->lanes);
}

static bool push_vector(stage_run *r, const void *flits, int64_t count)
{
    return vector_pass_push(r, r->stage->plan, flits, count);
}

/* The bytes of the VRF between the first and the last that the pass reads. */
static void read_hull(const vector_pass *p, int64_t *low, int64_t *end)
{
    *low = INT64_MAX;
    *end = 0;
    for (unsigned i = 0; i < p->read_count; i++) {
        const vector_read *r = &p->reads[i];
        int64_t from = r->base, to = r->base + 4 * r->lanes;
        for (unsigned k = 0; k < r->count; k++) {
            from += smaller((r->size[k] - 1) * r->stride[k], 0);
            to += larger((r->size[k] - 1) * r->stride[k], 0);
        }
        *low = smaller(*low, from);
        *end = larger(*end, to);
    }
}

unsigned vector_pass_ranges(const vector_pass *p, proof_range *out)
{
    *out = (proof_range){.space = PROOF_VRF};
    read_hull(p, &out->begin, &out->end);
    return p->read_count > 0;
}

void vector_pass_proof(const stage *s, const vector_pass *p, int64_t unit_index)
{
    machine *m = s->chain->machine;
    for (unsigned i = 0; i < p->read_count; i++) {
        vector_pass one = {.read_count = 1, .reads = {p->reads[i]}};
        int64_t low, end;
        read_hull(&one, &low, &end);
        proof_read(m, &m->units[unit_index].vrf, low, end - low);
    }
}

static bool open_vector(stage_run *r)
{
    return vector_pass_open(r, r->stage->plan);
}

static unsigned vector_ranges(const stage *s, proof_range *out)
{
    return vector_pass_ranges(s->plan, out);
}

static void vector_proof(const stage *s, int64_t unit_index)
{
    vector_pass_proof(s, s->plan, unit_index);
}

/* A packet for each cycle; the first one leaves after all units. */
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

const stage_type stage_vector = {.plan_bytes = sizeof(vector_pass),
                                 .run_bytes = sizeof(vector_run),
                                 .plan = plan_vector,
                                 .run_free = vector_pass_free,
                                 .open = open_vector,
                                 .push = push_vector,
                                 .cycles = vector_cycles,
                                 .ranges = vector_ranges,
                                 .proof_reads = vector_proof,
                                 .field = &field_vector};
