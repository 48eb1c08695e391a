#include "libvisa/tune/window_parts.h"

#include "support/integer.h"

enum { VALUE_BYTES = 4 }; /* of an element in the VRF, whatever it is in DM */

int64_t window_parts_count(const window_parts *x)
{
    return x->rows * x->places * x->columns;
}

bool window_parts_have(const window_plan *p, const tune_extra *e)
{
    return e->has[TUNE_ROW] && p->sums_wait;
}

/* In the VRF while all passes run. */
static int64_t bytes_of_all(const target *t, const tune_question *q, const window_plan *p)
{
    window_results r = window_results_of(t, p);
    int64_t elements = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        if (!q->extras[i].has[TUNE_ROW])
            elements += r.columns * window_hand_padding(p);
        else if (!window_parts_have(p, &q->extras[i]))
            elements += r.rows * r.places * r.columns;
    return VALUE_BYTES * elements + (tune_epilogue_stashes(tune_epilogue_of(q, 1, p->sums_wait)) ? TUNE_STASH_BYTES : 0);
}

/* Results of which what meets each of them has room in so many bytes. */
static int64_t results_in(const tune_question *q, const window_plan *p, int64_t bytes)
{
    int64_t each = tune_epilogue_has_gate(tune_epilogue_of(q, 1, p->sums_wait));
    for (size_t i = 0; i < q->extra_count; i++)
        each += window_parts_have(p, &q->extras[i]);
    return each == 0 ? INT64_MAX : bytes / (VALUE_BYTES * each);
}

/* The fewest parts of so many such that each has so many at most; all: that is not possible. */
static int64_t fewest_parts(int64_t count, int64_t most)
{
    return most < 1 ? count : count / largest_divisor(count, most);
}

/* Parts of rows, and of places where one row is too many, with columns in so many parts. False: a place is too many as well. */
static bool parts_beside(const window_results *r, int64_t columns, int64_t most, window_parts *out)
{
    int64_t here = r->columns / columns;
    *out = (window_parts){.rows = fewest_parts(r->rows, most / (r->places * here)), .places = 1, .columns = columns};
    if (out->rows == r->rows)
        out->places = fewest_parts(r->places, most / here);
    return r->rows / out->rows * (r->places / out->places) * here <= most;
}

bool window_parts_of(const target *t, const tune_question *q, const window_plan *p, window_parts *out)
{
    window_results r = window_results_of(t, p);
    int64_t left = t->vrf_bytes - bytes_of_all(t, q, p), most = left < 0 ? 0 : results_in(q, p, left);
    int64_t groups = q->groups == 1 ? r.columns / t->rows : 1; /* columns of a group of channels are one part */
    bool found = false;
    *out = (window_parts){1, 1, 1};
    if (left < 0)
        return false;
    for (int64_t columns = 1; columns <= groups && !(found && columns >= window_parts_count(out)); columns++) {
        window_parts one;
        if (groups % columns != 0 || !parts_beside(&r, columns, most, &one) ||
            (found && window_parts_count(&one) >= window_parts_count(out)))
            continue;
        *out = one;
        found = true;
    }
    return found;
}

bool window_has_room(const target *t, const tune_question *q, const window_plan *p)
{
    window_results r = window_results_of(t, p);
    int64_t channels = q->depthwise ? p->columns : window_shape_of(t, q, p).channels / p->sum_slices * window_groups_of(t, q, p->columns),
            image = window_places_of(q, p, 0, p->rows) * window_places_of(q, p, 1, p->places) * channels,
            results = r.rows * r.places * r.columns;
    return tune_bytes_of(q->stored[q->stream], image) + tune_bytes_of(q->out_type, results) <= t->dm_bytes_per_slice;
}
