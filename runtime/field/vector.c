/* Vector Engine over a field: the expression of each operation (target/vector.h), of which sums and products are those of the field and
 * everything else a function that nothing is known of. */
#include "runtime/engine/vector.h"

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

/* Elements behind the first `steps` steps of the pass; of the stash: those that were set aside, in the packets that these steps make of
 * them. */
static void read_behind(field_stage_run *r, unsigned steps, bool stash, int64_t first, int64_t count, field_value *out)
{
    const vector_pass *p = r->stage->plan;
    unsigned ops = 0; /* steps behind the last change of width */
    while (ops < steps && (p->steps[steps - 1 - ops].row || (p->steps[steps - 1 - ops].stashes && !stash)))
        ops++;
    const vector_step *at = ops < steps ? &p->steps[steps - 1 - ops] : NULL;
    if (!at)
        field_before(r, first, count, out);
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
    read_behind(r, ((const vector_pass *)r->stage->plan)->count, false, first, count, out);
}

const field_stage field_vector = {.read = read_vector};
