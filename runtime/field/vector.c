/* Vector Engine over a field: the expression of each operation (target/vector.h), of which sums and products are those of the field and
 * everything else a function that nothing is known of. */
#include "runtime/engine/vector_slices.h"

#include <stdlib.h>

#include "runtime/field/engine.h"
#include "runtime/field/function.h"
#include "support/integer.h"

/* Whose elements: the stream's, or what goes along with it in its packets. */
typedef enum wanted { STREAM, STASH, TAGGED, OTHER /* group 1 of two streams, of which STREAM is group 0 */ } wanted;

static void read_behind(field_stage_run *r, unsigned steps, wanted what, int64_t first, int64_t count, field_value *out);

/* The pass of stage_vector, or the part of it after a reduction over slices. */
static const vector_pass *pass_of(const field_stage_run *r)
{
    return r->stage->type == &stage_vector ? r->stage->plan : &((const vector_slices *)r->stage->plan)->pass;
}

/* Is the element's tag in the set? The expression that the mathematics has, of the element that the tag is of. */
static field_value done_by_tag(field_stage_run *r, unsigned number, int64_t element, field_value done, field_value stream)
{
    const vector_pass *p = pass_of(r);
    const vector_step *s = &p->steps[number];
    scalar_step steps[VECTOR_GUARD_STEPS + 3], tagged = {SCALAR_SOURCE, 0};
    bool always;
    uint32_t count = vector_guard_steps(s->tags, p->tag, p->tagged, &tagged, 1, steps, &always);
    if (count == 0)
        return always ? done : stream;
    field_value operands[] = {0, done, stream};
    read_behind(r, number, TAGGED, element, 1, operands);
    steps[count++] = (scalar_step){SCALAR_SOURCE, 1};
    steps[count++] = (scalar_step){SCALAR_SOURCE, 2};
    steps[count++] = (scalar_step){s->row->to == DTYPE_F32 ? SCALAR_SELECT_F32 : SCALAR_SELECT_I32, 0};
    return field_expression(r->run->machine->seed, steps, count, operands);
}

/* The word of the VRF that is the element's. */
static field_value read_vrf(field_stage_run *r, const vector_step *s, int64_t element)
{
    const vector_read *read = &pass_of(r)->reads[s->read];
    int64_t byte = vector_read_address(read, element / s->lanes) + (read->lanes > 1 ? element % s->lanes * 4 : 0);
    field_value out = 0;
    field_read(r->run, &(field_place){FIELD_VRF, r->run->unit, byte * 8}, s->row->from, 1, 1, &out);
    return out;
}

static field_value apply(field_stage_run *r, unsigned number, int64_t element, field_value stream)
{
    const vector_step *s = &pass_of(r)->steps[number];
    field_value operands[VECTOR_OPERANDS], beside = 0;
    if (s->takes_stash)
        read_behind(r, number, STASH, element, 1, &beside);
    else if (s->read >= 0)
        beside = read_vrf(r, s, element);
    for (unsigned i = 0; i < s->row->operands; i++) {
        unsigned from = vector_mode_of(s->mode, i);
        if (from == 1 && (s->takes_stash || s->read >= 0))
            operands[i] = beside;
        else
            operands[i] = from ? field_constant(r->run->machine->seed, vector_constant_type(s->row), s->constants[from - 1]) : stream;
    }
    field_value done = field_expression(r->run->machine->seed, s->row->steps, s->row->step_count, operands);
    return s->tags == VECTOR_ALL_TAGS ? done : done_by_tag(r, number, element, done, stream);
}

/* Elements after a change of width, by number: those before it. */
static void read_width(field_stage_run *r, unsigned steps, wanted what, vector_width_kind kind, int64_t first, int64_t count,
                       field_value *out)
{
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t packet, lane;
        switch (kind) {
        case VECTOR_TRIM: /* 4 of 8 */
            packet = first / 4, lane = first % 4;
            part = smaller(count, 4 - lane);
            read_behind(r, steps, what, 8 * packet + lane, part, out);
            break;
        case VECTOR_PAD: /* 4 and 4 of filling */
            packet = first / 8, lane = first % 8;
            part = smaller(count, (lane < 4 ? 4 : 8) - lane);
            if (lane < 4)
                read_behind(r, steps, what, 4 * packet + lane, part, out);
            for (int64_t i = 0; lane >= 4 && i < part; i++)
                out[i] = field_unknown(&r->run->unknowns);
            break;
        default: /* the same elements in other packets */ part = count; read_behind(r, steps, what, first, part, out);
        }
    }
}

/* ---- reductions ---- */

/* What a fold of field values is: a sum, a product, or the multiset of its terms. */
typedef struct folding {
    scalar_op fold;
    field_value value;
    field_function terms;
} folding;

static folding fold_begin(uint64_t seed, const vector_op_row *row)
{
    scalar_op fold = vector_fold_of(row);
    return (folding){fold, fold == SCALAR_MUL_F32, field_function_begin(seed, fold)};
}

static void fold_take(folding *f, uint64_t seed, field_value term)
{
    if (f->fold == SCALAR_ADD_F32 || f->fold == SCALAR_ADD_I32)
        f->value = field_add(f->value, term);
    else if (f->fold == SCALAR_MUL_F32)
        f->value = field_multiply(f->value, term);
    else
        field_function_join(&f->terms, seed, f->fold, term);
}

static field_value fold_end(const folding *f)
{
    bool ring = f->fold == SCALAR_ADD_F32 || f->fold == SCALAR_ADD_I32 || f->fold == SCALAR_MUL_F32;
    return ring ? f->value : field_function_end(&f->terms);
}

/* Lanes of one result while their packets are met. */
typedef struct reducing {
    field_stage_run *run;
    unsigned steps;      /* in front of the reduction */
    int64_t lane, count; /* of the result */
    folding folds[REDUCE_LANES];
} reducing;

static void take_packet(void *of, int64_t packet)
{
    reducing *x = of;
    const vector_reduction *r = &pass_of(x->run)->reduction;
    field_machine *m = x->run->run->machine;
    int64_t slices = m->plans->target->slices_per_cluster, valid = vector_reduction_lanes(r, x->run->run->unit % slices, packet);
    int64_t first = r->tree ? 0 : x->lane, end = r->tree ? valid : smaller(valid, x->lane + x->count);
    field_value v[REDUCE_LANES];
    if (first >= end)
        return;
    read_behind(x->run, x->steps, STREAM, packet * REDUCE_LANES + first, end - first, v);
    for (int64_t i = 0; i < end - first; i++)
        fold_take(&x->folds[r->tree ? 0 : i], m->seed, v[i]);
}

/* Lanes of a packet together: stages in front may run in order. */
static void read_reduction(field_stage_run *r, unsigned steps, int64_t first, int64_t count, field_value *out)
{
    const vector_reduction *k = &pass_of(r)->reduction;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        reducing x = {.run = r, .steps = steps, .lane = first % REDUCE_LANES};
        part = x.count = k->tree ? 1 : smaller(count, REDUCE_LANES - x.lane);
        if (k->tree && x.lane > 0) {
            out[0] = field_unknown(&r->run->unknowns);
            continue;
        }
        for (int64_t i = 0; i < part; i++)
            x.folds[i] = fold_begin(r->run->machine->seed, k->row);
        vector_reduction_packets(k, first / REDUCE_LANES, take_packet, &x);
        for (int64_t i = 0; i < part; i++)
            out[i] = fold_end(&x.folds[i]);
    }
}

/* ---- over slices ---- */

/* Element by element, what the stage before this one gives in each slice of the group that sends. */
static void read_slices(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const vector_slices *k = r->stage->plan;
    const chain *c = r->run->chain;
    field_machine *m = r->run->machine;
    int64_t slices = m->plans->target->slices_per_cluster, slice = r->run->unit % slices, group = slice - slice % k->ring;
    folding *folds = malloc((size_t)count * sizeof *folds + 1);
    unsigned number = (unsigned)(r - r->run->stages);
    for (int64_t i = 0; folds && i < count; i++)
        folds[i] = fold_begin(m->seed, k->row);
    for (int64_t s = group; folds && s < group + k->ring; s++) {
        field_run there;
        if (!(c->mid_units.slices[s / 64 % 4] >> s % 64 & 1) ||
            !field_run_open(&there, m, c, r->run->time, r->run->unit - slice + s, r->run->fault))
            continue;
        for (int64_t i = 0, part; i < count; i += part) {
            int64_t at = first + i, lane = at % VECTOR_LANES;
            field_value v[VECTOR_LANES];
            part = smaller(count - i, VECTOR_LANES - lane);
            field_stage_run *before = &there.stages[number - 1];
            before->stage->type->field->read(before, vector_slices_step(k, slice, at / VECTOR_LANES) * VECTOR_LANES + lane, part, v);
            for (int64_t j = 0; j < part; j++)
                fold_take(&folds[i + j], m->seed, v[j]);
        }
        field_run_close(&there);
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = folds ? fold_end(&folds[i]) : field_unknown(&r->run->unknowns);
    free(folds);
}

/* ---- two streams ---- */

/* Elements of one stream of two, by number: those that came by turns. */
static void read_unzipped(field_stage_run *r, unsigned steps, wanted what, int64_t first, int64_t count, field_value *out)
{
    int64_t inside = pass_of(r)->inside * 8;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        part = smaller(count, inside - first % inside);
        read_behind(r, steps, STREAM, (2 * (first / inside) + (what == OTHER)) * inside + first % inside, part, out);
    }
}

static void read_zipped(field_stage_run *r, unsigned number, int64_t first, int64_t count, field_value *out)
{
    const vector_step *s = &pass_of(r)->steps[number];
    for (int64_t i = 0; i < count; i++) {
        field_value groups[2], operands[VECTOR_OPERANDS];
        read_behind(r, number, STREAM, first + i, 1, &groups[0]);
        read_behind(r, number, OTHER, first + i, 1, &groups[1]);
        for (unsigned k = 0; k < s->row->operands; k++)
            operands[k] = groups[vector_mode_of(s->mode, k)];
        out[i] = field_expression(r->run->machine->seed, s->row->steps, s->row->step_count, operands);
    }
}

/* ---- the pass ---- */

/* Elements after the first `steps` steps of the pass; of what goes along with the stream: those that it was made of, in the packets that
 * these steps make of them. */
static void read_behind(field_stage_run *r, unsigned steps, wanted what, int64_t first, int64_t count, field_value *out)
{
    const vector_pass *p = pass_of(r);
    static const vector_step_kind made_by[] = {
        [STREAM] = VECTOR_STEP_WIDTH, [STASH] = VECTOR_STEP_STASH, [TAGGED] = VECTOR_STEP_TAG, [OTHER] = VECTOR_STEP_WIDTH};
    unsigned from = steps; /* the last step but operations in front, which is looked for */
    while (from > 0 && p->steps[from - 1].kind != VECTOR_STEP_WIDTH && p->steps[from - 1].kind != VECTOR_STEP_UNZIP &&
           p->steps[from - 1].kind != VECTOR_STEP_ZIP && p->steps[from - 1].kind != VECTOR_STEP_REDUCE &&
           p->steps[from - 1].kind != made_by[what])
        from--;
    const vector_step *at = from > 0 ? &p->steps[from - 1] : NULL;
    if (!at && r->stage->type == &stage_vector_slices)
        read_slices(r, first, count, out);
    else if (!at)
        field_before(r, first, count, out);
    else if (at->kind == VECTOR_STEP_WIDTH)
        read_width(r, from - 1, what, at->width, first, count, out);
    else if (at->kind == VECTOR_STEP_REDUCE)
        read_reduction(r, from - 1, first, count, out);
    else if (at->kind == VECTOR_STEP_UNZIP)
        read_unzipped(r, from - 1, what, first, count, out);
    else if (at->kind == VECTOR_STEP_ZIP)
        read_zipped(r, from - 1, first, count, out);
    else
        read_behind(r, from - 1, STREAM, first, count, out);
    unsigned group = what == OTHER ? 2 : 1;
    for (unsigned i = from; i < steps && (what == STREAM || what == OTHER); i++)
        for (int64_t k = 0; k < count && p->steps[i].kind == VECTOR_STEP_OP && (p->steps[i].groups & group); k++)
            out[k] = apply(r, i, first + k, out[k]);
}

/* Does an operation read elements of its packet again, as they were further in front? */
static bool reads_again(const vector_pass *p)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->steps[i].kind == VECTOR_STEP_STASH || p->steps[i].kind == VECTOR_STEP_TAG)
            return true;
    return false;
}

/* What is read again comes flit by flit: stages in front that run in order keep their last results and no earlier ones. */
static void read_vector(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    enum { FLIT = 8 };
    const vector_pass *p = pass_of(r);
    bool again = reads_again(p);
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        part = again ? smaller(count, FLIT - first % FLIT) : count;
        read_behind(r, p->count, STREAM, first, part, out);
    }
}

const field_stage field_vector = {.read = read_vector};
const field_stage field_vector_slices = {.read = read_vector};
