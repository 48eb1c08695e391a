/* Vector Engine over a field: the expression of each operation (target/vector.h), of which sums and products are those of the field and
 * everything else a function that nothing is known of. */
#include "runtime/engine/vector_slices.h"

#include <stdlib.h>

#include "runtime/field/engine.h"
#include "runtime/field/function.h"
#include "support/integer.h"

static field_value apply(const field_stage_run *r, const vector_step *s, field_value stream, field_value stash)
{
    field_value operands[VECTOR_OPERANDS];
    for (unsigned i = 0; i < s->row->operands; i++) {
        unsigned from = vector_mode_of(s->mode, i);
        if (from == 1 && s->takes_stash)
            operands[i] = stash;
        else
            operands[i] = from ? field_constant(r->run->machine->seed, vector_constant_type(s->row), s->constants[from - 1]) : stream;
    }
    return field_expression(r->run->machine->seed, s->row->steps, s->row->step_count, operands);
}

/* The pass of stage_vector, or what of it is behind a reduction over slices. */
static const vector_pass *pass_of(const field_stage_run *r)
{
    return r->stage->type == &stage_vector ? r->stage->plan : &((const vector_slices *)r->stage->plan)->pass;
}

static void read_behind(field_stage_run *r, unsigned steps, bool stash, int64_t first, int64_t count, field_value *out);

/* Elements behind a change of width, by number: those in front of it. */
static void read_width(field_stage_run *r, unsigned steps, bool stash, vector_width_kind kind, int64_t first, int64_t count,
                       field_value *out)
{
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t packet, lane;
        switch (kind) {
        case VECTOR_TRIM: /* 4 of 8 */
            packet = first / 4, lane = first % 4;
            part = smaller(count, 4 - lane);
            read_behind(r, steps, stash, 8 * packet + lane, part, out);
            break;
        case VECTOR_PAD: /* 4 and 4 of filling */
            packet = first / 8, lane = first % 8;
            part = smaller(count, (lane < 4 ? 4 : 8) - lane);
            if (lane < 4)
                read_behind(r, steps, stash, 4 * packet + lane, part, out);
            for (int64_t i = 0; lane >= 4 && i < part; i++)
                out[i] = field_unknown(&r->run->unknowns);
            break;
        default: /* the same elements in other packets */ part = count; read_behind(r, steps, stash, first, part, out);
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

/* One result while its packets are met. */
typedef struct reducing {
    field_stage_run *run;
    unsigned steps; /* in front of the reduction */
    int64_t lane;   /* of the result */
    folding fold;
} reducing;

static void take_packet(void *of, int64_t packet)
{
    reducing *x = of;
    const vector_reduction *r = &pass_of(x->run)->reduction;
    field_machine *m = x->run->run->machine;
    int64_t slices = m->plans->target->slices_per_cluster, valid = vector_reduction_lanes(r, x->run->run->unit % slices, packet);
    int64_t first = r->tree ? 0 : x->lane, end = r->tree ? valid : smaller(valid, x->lane + 1);
    field_value v[REDUCE_LANES];
    if (first >= end)
        return;
    read_behind(x->run, x->steps, false, packet * REDUCE_LANES + first, end - first, v);
    for (int64_t i = 0; i < end - first; i++)
        fold_take(&x->fold, m->seed, v[i]);
}

static void read_reduction(field_stage_run *r, unsigned steps, int64_t first, int64_t count, field_value *out)
{
    const vector_reduction *k = &pass_of(r)->reduction;
    for (int64_t i = 0; i < count; i++) {
        reducing x = {.run = r, .steps = steps, .lane = (first + i) % REDUCE_LANES, .fold = fold_begin(r->run->machine->seed, k->row)};
        if (k->tree && x.lane > 0) {
            out[i] = field_unknown(&r->run->unknowns);
            continue;
        }
        vector_reduction_packets(k, (first + i) / REDUCE_LANES, take_packet, &x);
        out[i] = fold_end(&x.fold);
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

/* Elements behind the first `steps` steps of the pass; of the stash: those that were set aside, in the packets that these steps make of
 * them. */
static void read_behind(field_stage_run *r, unsigned steps, bool stash, int64_t first, int64_t count, field_value *out)
{
    const vector_pass *p = pass_of(r);
    unsigned ops = 0; /* steps behind the last change of width */
    while (ops < steps && (p->steps[steps - 1 - ops].row || (p->steps[steps - 1 - ops].stashes && !stash)))
        ops++;
    const vector_step *at = ops < steps ? &p->steps[steps - 1 - ops] : NULL;
    if (!at && r->stage->type == &stage_vector_slices)
        read_slices(r, first, count, out);
    else if (!at)
        field_before(r, first, count, out);
    else if (at->reduces)
        read_reduction(r, steps - ops - 1, first, count, out);
    else if (at->stashes)
        read_behind(r, steps - ops - 1, false, first, count, out);
    else
        read_width(r, steps - ops - 1, stash, at->width, first, count, out);
    for (unsigned i = steps - ops; i < steps && !stash; i++)
        for (int64_t k = 0; k < count && p->steps[i].row; k++) {
            field_value aside = 0;
            if (p->steps[i].takes_stash)
                read_behind(r, i, true, first + k, 1, &aside);
            out[k] = apply(r, &p->steps[i], out[k], aside);
        }
}

static void read_vector(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    read_behind(r, pass_of(r)->count, false, first, count, out);
}

const field_stage field_vector = {.read = read_vector};
const field_stage field_vector_slices = {.read = read_vector};
