#include "libvisa/tune/scaled_write.h"

#include <inttypes.h>

#include "support/integer.h"

enum { WORD_BITS = 64 };

/* "K / 2 % 8" of so many positions. */
static const char *digit_of(const char *axis, int64_t size, int64_t stride, int64_t count, arena *a)
{
    if (count == 1)
        return NULL;
    const char *text = stride > 1 ? arena_printf(a, "%s / %" PRId64, axis, stride) : axis;
    return stride * count < size ? arena_printf(a, "%s %% %" PRId64, text, count) : text;
}

const char *scaled_sum_digit(const tune_question *q, int64_t stride, int64_t count, arena *a)
{
    const int64_t groups = tune_groups_of(q);
    if (stride >= q->group)
        return digit_of(q->group_axis, groups, stride / q->group, count, a);
    if (stride * count <= q->group)
        return digit_of(q->added_axis, q->group, stride, count, a);
    return TUNE_LIST(a, digit_of(q->group_axis, groups, 1, stride * count / q->group, a),
                     digit_of(q->added_axis, q->group, stride, q->group / stride, a));
}

int64_t scaled_padded_groups(const tune_extra *e)
{
    return round_up(e->groups, larger(1, WORD_BITS / dtype_row_of(e->type)->bits));
}

const char *scaled_digit(const tune_question *q, const tune_extra *e, int64_t stride, int64_t count, arena *a)
{
    const int64_t padded = scaled_padded_groups(e);
    const char *axis = padded == e->groups ? q->group_axis : arena_printf(a, "%s # %" PRId64, q->group_axis, padded);
    return digit_of(axis, padded, stride, count, a);
}

int64_t scaled_zero_unit(const tune_extra *e)
{
    return e->groups > 1 && !e->groups_first ? 1 : WORD_BITS / dtype_row_of(e->type)->bits;
}

bool scaled_is_turned(const tune_extra *e)
{
    return e->groups > 1 && e->zero_of == TUNE_OUT && e->has[TUNE_COLUMN] && !e->groups_first;
}

int64_t scaled_packet(const target *t, const tune_extra *e)
{
    return gcd(scaled_padded_groups(e), t->vector_lanes);
}

int64_t scaled_turn_cycles(const target *t, const tune_extra *e, int64_t rows, int64_t columns)
{
    enum { FILL = 16 };
    const int64_t elements = rows * columns * scaled_padded_groups(e);
    return scaled_is_turned(e) ? FILL + larger(elements / scaled_packet(t, e), elements / SCALED_LANES) : 0;
}

void scaled_write_turn(tune_page *w, const target *t, const tune_question *q, const tune_extra *e, const scaled_turn *x)
{
    const int64_t packet = scaled_packet(t, e), groups = scaled_padded_groups(e);
    const char *type = dtype_row_of(q->meets)->name, *of_packet = scaled_digit(q, e, 1, packet, w->arena),
               *packets = scaled_digit(q, e, packet, groups / packet, w->arena);
    tune_line(w, "let %s: DmTensor<%s, Chip, Cluster, Slice, m![%s]> = device.main", x->name, type,
              TUNE_LIST(w->arena, x->outside, scaled_digit(q, e, 1, groups, w->arena), x->lanes));
    tune_line(w, "    .begin(%s)", x->from);
    tune_line(w, "    .fetch::<m![%s], m![%s]>()", TUNE_LIST(w->arena, x->outside, x->words, packets, x->word), of_packet);
    if (e->type != q->meets)
        tune_line(w, "    .fetch_cast::<%s>()", type);
    tune_line(w, "    .collect()");
    tune_line(w, "    .transpose::<m![%s], m![%s # %" PRId64 "]>()", TUNE_LIST(w->arena, x->outside, x->words, packets, of_packet), x->word,
              t->vector_lanes);
    tune_line(w, "    .commit_trim::<m![%s]>()", x->word);
    tune_line(w, "    .commit();");
}
