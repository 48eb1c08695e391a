/* The Reducer's slots over a field: which slot a step belongs to, and whether it stores or adds, is the loop
 * table's; what is added is not. */
#include "runtime/field/accumulate.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/field/engine.h"
#include "support/integer.h"

typedef struct accumulate_state {
    field_value *cells;     /* slots x Rows x columns of the stream */
    field_value *partial;   /* of a step */
    field_value *beats;     /* of the last emission */
    int64_t emission;       /* whose beats these are; -1: none */
    int64_t step;           /* the next one */
    field_step_place place; /* of it */
    int64_t inner;          /* its iteration of the innermost loop */
} accumulate_state;

/* The steps of the loops from the outermost reduced one on. */
static int64_t group_steps(const accumulate *k, unsigned *first)
{
    int64_t steps = 1;
    unsigned i = 0;
    while (i < k->count && !k->loops[i].reduced)
        i++;
    *first = i;
    for (; i < k->count; i++)
        steps *= k->loops[i].size;
    return steps;
}

field_step_place field_accumulate_place(const accumulate *k, int64_t step)
{
    field_step_place p = {.stores = true, .emits = true};
    int64_t factor = 1;
    for (unsigned i = k->count; i-- > 0;) {
        const accumulate_loop *l = &k->loops[i];
        int64_t c = step % l->size;
        step /= l->size;
        p.slot += c * l->slot_stride;
        if (l->reduced) {
            p.stores &= c == 0;
            p.emits &= c == l->size - 1;
        } else {
            p.emission += c * factor;
            factor *= l->size;
        }
    }
    return p;
}

bool field_accumulate_lane(const accumulate *k, int64_t beat, int64_t lane, int64_t *row, int64_t *column, bool *zero)
{
    int64_t per_row = k->beats_each / k->rows;
    *row = k->sequential ? beat / per_row : lane;
    *column = k->sequential ? beat % per_row * k->lanes + lane : beat;
    *zero = k->sequential;
    return k->sequential ? *column < k->columns : *row < k->rows;
}

/* ---- in order ---- */

static void emit(field_stage_run *r, const field_value *cells, int64_t line)
{
    const accumulate *k = r->stage->plan;
    accumulate_state *s = r->state;
    for (int64_t beat = 0; beat < k->beats_each; beat++)
        for (int64_t lane = 0; lane < k->lanes; lane++) {
            int64_t row, column;
            bool zero;
            bool data = field_accumulate_lane(k, beat, lane, &row, &column, &zero);
            s->beats[beat * k->lanes + lane] = data ? cells[row * line + column] : zero ? 0 : field_unknown(&r->run->unknowns);
        }
}

/* The place of the next step, from that of this one where only the innermost loop counts on. */
static void count_on(const accumulate *k, accumulate_state *s)
{
    const accumulate_loop *inner = k->count ? &k->loops[k->count - 1] : NULL;
    s->step++;
    if (!inner || ++s->inner >= inner->size - 1 || s->inner < 2) {
        s->inner = inner ? s->step % inner->size : 0;
        s->place = field_accumulate_place(k, s->step);
        return;
    }
    s->place.slot += inner->slot_stride;
    s->place.emission += !inner->reduced;
}

static void run_step(field_stage_run *r)
{
    const accumulate *k = r->stage->plan;
    accumulate_state *s = r->state;
    int64_t line = r->before->stage->out.packet_elements, each = k->rows * line;
    field_step_place p = s->place;
    field_value *cells = s->cells + p.slot * each;
    if (p.stores)
        field_before(r, s->step * each, each, cells);
    else {
        field_before(r, s->step * each, each, s->partial);
        for (int64_t i = 0; i < each; i++)
            cells[i] = field_add(cells[i], s->partial[i]);
    }
    count_on(k, s);
    if (p.emits) {
        emit(r, cells, line);
        s->emission = p.emission;
    }
}

static bool make_room(field_stage_run *r)
{
    const accumulate *k = r->stage->plan;
    accumulate_state *s = r->state;
    size_t each = (size_t)(k->rows * r->before->stage->out.packet_elements);
    s->cells = calloc((size_t)k->slots * each + each + (size_t)(k->beats_each * k->lanes), sizeof *s->cells);
    if (!s->cells)
        return fault_memory(r->run->fault, k->command, "the slots of a slice");
    s->partial = s->cells + (size_t)k->slots * each;
    s->beats = s->partial + each;
    s->emission = -1;
    s->place = field_accumulate_place(k, 0);
    return true;
}

/* The last step of an emission. */
static int64_t emitting_step(const accumulate *k, int64_t emission)
{
    int64_t step = 0, factor = 1;
    for (unsigned i = k->count; i-- > 0;) {
        const accumulate_loop *l = &k->loops[i];
        step += (l->reduced ? l->size - 1 : emission % l->size) * factor;
        emission /= l->reduced ? 1 : l->size;
        factor *= l->size;
    }
    return step;
}

/* Back to an emission that was left behind, by a reader that takes lanes one after the other: its loops from the outermost reduced one on
 * begin with their stores. */
static void go_back(field_stage_run *r, int64_t emission)
{
    const accumulate *k = r->stage->plan;
    accumulate_state *s = r->state;
    unsigned outer;
    const int64_t steps = group_steps(k, &outer), inner = k->count ? k->loops[k->count - 1].size : 1;
    s->step = emitting_step(k, emission) / steps * steps;
    s->inner = s->step % inner;
    s->place = field_accumulate_place(k, s->step);
    s->emission = -1;
}

static void read_in_order(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const accumulate *k = r->stage->plan;
    accumulate_state *s = r->state;
    int64_t each = k->beats_each * k->lanes;
    if (!s->cells && !make_room(r))
        return;
    for (int64_t part; count > 0 && !r->run->fault->set; first += part, out += part, count -= part) {
        if (s->emission > first / each)
            go_back(r, first / each);
        while (s->emission != first / each && s->step < r->stage->in.packets && !r->run->fault->set)
            run_step(r);
        part = smaller(count, each - first % each);
        memcpy(out, s->beats + first % each, (size_t)part * sizeof *out);
    }
}

/* ---- one value ---- */

static field_value read_one(field_stage_run *r, int64_t emission, int64_t row, int64_t column)
{
    const accumulate *k = r->stage->plan;
    int64_t line = r->before->stage->out.packet_elements, last = emitting_step(k, emission);
    unsigned outer;
    int64_t steps = group_steps(k, &outer), slot = field_accumulate_place(k, last).slot, from = last / steps * steps;
    for (int64_t step = last; step > from; step--) { /* what came before the store in this slot is overwritten */
        field_step_place p = field_accumulate_place(k, step);
        if (p.slot == slot && p.stores) {
            from = step;
            break;
        }
    }
    enum { BLOCK = 256 };
    field_value sum = 0, partial[BLOCK];
    field_spans asked = {0};
    int64_t count = 0;
    for (int64_t step = from; step <= last && !r->run->fault->set; step++) {
        if (field_accumulate_place(k, step).slot == slot) {
            field_spans_add(&asked, (field_span){(step * k->rows + row) * line + column, 1, 1});
            count++;
        }
        if (count < BLOCK && step < last)
            continue;
        field_before_spans(r, &asked, partial);
        for (int64_t i = 0; i < count; i++)
            sum = field_add(sum, partial[i]);
        count = 0;
    }
    field_spans_free(&asked);
    return sum;
}

static bool all_lanes_are_sums(const accumulate *k)
{
    int64_t row, column;
    bool zero, all = true;
    for (int64_t i = 0; i < k->beats_each * k->lanes; i++)
        all = all && field_accumulate_lane(k, i / k->lanes, i % k->lanes, &row, &column, &zero);
    return all;
}

static void read_accumulate(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const accumulate *k = r->stage->plan;
    if (!r->run->machine->trace && !r->run->first_name) {
        read_in_order(r, first, count, out);
        return;
    }
    if (r->run->first_name && count > k->beats_each * k->lanes && all_lanes_are_sums(k)) {
        for (int64_t i = 0; i < count; i++)
            out[i] = r->run->first_name + (field_value)(first + i);
        return;
    }
    for (; count > 0; first++, out++, count--) {
        int64_t beat = first / k->lanes, row, column;
        bool zero;
        if (field_accumulate_lane(k, beat % k->beats_each, first % k->lanes, &row, &column, &zero))
            *out = r->run->first_name ? r->run->first_name + (field_value)first : read_one(r, beat / k->beats_each, row, column);
        else
            *out = zero ? 0 : field_unknown(&r->run->unknowns);
    }
}

static void close_accumulate(field_stage_run *r)
{
    free(((accumulate_state *)r->state)->cells);
}

const field_stage field_accumulate = {.state_bytes = sizeof(accumulate_state), .close = close_accumulate, .read = read_accumulate};
