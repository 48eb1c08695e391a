/* Vector Engine over a field: the expression of each operation (target/vector.h), of which sums and products are those of the field and
 * everything else a function that nothing is known of. */
#include "runtime/engine/vector.h"

#include "runtime/field/engine.h"
#include "runtime/field/function.h"
#include "support/integer.h"

/* Whose elements: the stream's, or what goes along with it in its packets. */
typedef enum wanted { STREAM, STASH, TAGGED, OTHER /* group 1 of two streams, of which STREAM is group 0 */ } wanted;

static void read_behind(field_stage_run *r, unsigned steps, wanted what, int64_t first, int64_t count, field_value *out);

/* Is the element's tag in the set? The expression that the mathematics has, of the element that the tag is of. */
static field_value done_by_tag(field_stage_run *r, unsigned number, int64_t element, field_value done, field_value stream)
{
    const vector_pass *p = r->stage->plan;
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
    const vector_read *read = &((const vector_pass *)r->stage->plan)->reads[s->read];
    int64_t byte = vector_read_address(read, element / s->lanes) + (read->lanes > 1 ? element % s->lanes * 4 : 0);
    field_value out = 0;
    field_read(r->run, &(field_place){FIELD_VRF, r->run->unit, byte * 8}, s->row->from, 1, 1, &out);
    return out;
}

static field_value apply(field_stage_run *r, unsigned number, int64_t element, field_value stream)
{
    const vector_step *s = &((const vector_pass *)r->stage->plan)->steps[number];
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

/* Elements behind a change of width, by number: those in front of it. */
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

/* Elements of one stream of two, by number: those that came by turns. */
static void read_unzipped(field_stage_run *r, unsigned steps, wanted what, int64_t first, int64_t count, field_value *out)
{
    int64_t inside = ((const vector_pass *)r->stage->plan)->inside * 8;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        part = smaller(count, inside - first % inside);
        read_behind(r, steps, STREAM, (2 * (first / inside) + (what == OTHER)) * inside + first % inside, part, out);
    }
}

static void read_zipped(field_stage_run *r, unsigned number, int64_t first, int64_t count, field_value *out)
{
    const vector_step *s = &((const vector_pass *)r->stage->plan)->steps[number];
    for (int64_t i = 0; i < count; i++) {
        field_value groups[2], operands[VECTOR_OPERANDS];
        read_behind(r, number, STREAM, first + i, 1, &groups[0]);
        read_behind(r, number, OTHER, first + i, 1, &groups[1]);
        for (unsigned k = 0; k < s->row->operands; k++)
            operands[k] = groups[vector_mode_of(s->mode, k)];
        out[i] = field_expression(r->run->machine->seed, s->row->steps, s->row->step_count, operands);
    }
}

/* Elements behind the first `steps` steps of the pass; of what goes along with the stream: those that it was made of, in the packets that
 * these steps make of them. */
static void read_behind(field_stage_run *r, unsigned steps, wanted what, int64_t first, int64_t count, field_value *out)
{
    const vector_pass *p = r->stage->plan;
    static const vector_step_kind made_by[] = {
        [STREAM] = VECTOR_STEP_WIDTH, [STASH] = VECTOR_STEP_STASH, [TAGGED] = VECTOR_STEP_TAG, [OTHER] = VECTOR_STEP_WIDTH};
    unsigned from = steps; /* the last step but operations in front, which is looked for */
    while (from > 0 && p->steps[from - 1].kind != VECTOR_STEP_WIDTH && p->steps[from - 1].kind != VECTOR_STEP_UNZIP &&
           p->steps[from - 1].kind != VECTOR_STEP_ZIP && p->steps[from - 1].kind != made_by[what])
        from--;
    const vector_step *at = from > 0 ? &p->steps[from - 1] : NULL;
    if (!at)
        field_before(r, first, count, out);
    else if (at->kind == VECTOR_STEP_WIDTH)
        read_width(r, from - 1, what, at->width, first, count, out);
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

static void read_vector(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    read_behind(r, ((const vector_pass *)r->stage->plan)->count, STREAM, first, count, out);
}

const field_stage field_vector = {.read = read_vector};
