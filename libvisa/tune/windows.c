#include "libvisa/tune/windows.h"

#include <string.h>

#include "support/integer.h"

static size_t make_axis(tune_question *q, tune_role role)
{
    size_t axis = q->axis_count + q->made_axes++;
    q->axes[axis] = (tune_axis){.size = 1, .role = role};
    return axis;
}

static void insert_axis(tune_tensor *t, size_t at, size_t axis)
{
    memmove(&t->axes[at + 1], &t->axes[at], (t->count - at) * sizeof *t->axes);
    t->axes[at] = axis;
    t->count++;
}

static size_t position_of(const tune_tensor *t, size_t axis)
{
    size_t at = 0;
    while (at < t->count && t->axes[at] != axis)
        at++;
    return at;
}

void tune_windows_complete(tune_question *q)
{
    tune_tensor *image = &q->tensors[q->stream], *filter = &q->tensors[q->weights], *out = &q->tensors[TUNE_OUT];
    const tune_window given = q->windows[0];
    size_t at = position_of(image, given.kept), down = position_of(filter, given.summed), row = position_of(out, given.kept),
           after = image->count - at - 2 - (q->groups > 1); /* with the channels, or those of a group */
    bool has_images = image->count > 1 && q->axes[image->axes[0]].role == TUNE_BATCH;
    if (q->window_count != 1 || after < 1 || after > 2 || at > (size_t)has_images + (after == 1) || down == filter->count ||
        row == out->count || q->axis_count + TUNE_WINDOWS > TUNE_AXES_MAX)
        return;
    size_t summed = make_axis(q, TUNE_SUM), kept;
    bool is_before = after == 1 && at == (size_t)has_images + 1; /* `I[y, x + s, c]` */
    kept = is_before ? image->axes[at - 1] : after == 2 ? image->axes[at + 2] : make_axis(q, TUNE_ROW);
    if (after == 1 && !is_before) {
        insert_axis(image, at + 2, kept);
        insert_axis(out, row + 1, kept);
    }
    insert_axis(image, is_before ? at : at + 3, summed);
    insert_axis(filter, is_before ? down : down + 1, summed);
    q->windows[is_before ? 0 : 1] = tune_plain_window(q, given.tensor, kept, summed);
    q->windows[is_before ? 1 : 0] = given;
    q->window_count = TUNE_WINDOWS;
}

/* Where an axis stands in a tensor. A place without a window is before the window, or after it, as in the result. */
static size_t rank_of(const tune_question *q, tune_place place, size_t axis)
{
    const tune_tensor *out = &q->tensors[TUNE_OUT];
    enum { FIRST, IN_GROUP, ALONE, WINDOW, ALONE_AFTER = WINDOW + 2 * TUNE_WINDOWS, LAST, LAST_IN_GROUP };
    const bool in_group = q->groups > 1 && axis != q->window_group;
    for (size_t i = 0; i < q->window_count; i++)
        if (axis == q->windows[i].kept || axis == q->windows[i].summed)
            return WINDOW + 2 * i + (axis == q->windows[i].summed);
    switch (q->axes[axis].role) {
    case TUNE_BATCH: return FIRST;
    case TUNE_ROW: return position_of(out, axis) < position_of(out, q->windows[0].kept) ? ALONE : ALONE_AFTER;
    case TUNE_COLUMN: return (place == q->weights && !q->depthwise ? FIRST : LAST) + in_group;
    default: return LAST + in_group;
    }
}

void tune_windows_arrange(tune_question *q)
{
    const tune_tensor *out = &q->tensors[TUNE_OUT];
    if (q->tensors[q->stream].is_free && q->window_count == TUNE_WINDOWS &&
        position_of(out, q->windows[1].kept) < position_of(out, q->windows[0].kept)) {
        const tune_window first = q->windows[0];
        q->windows[0] = q->windows[1];
        q->windows[1] = first;
    }
    for (int p = 0; p < TUNE_PLACES && q->window_count > 0; p++) {
        tune_tensor *t = &q->tensors[p];
        for (size_t i = 1; t->is_free && i < t->count; i++)
            for (size_t k = i; k > 0 && rank_of(q, (tune_place)p, t->axes[k - 1]) > rank_of(q, (tune_place)p, t->axes[k]); k--) {
                size_t axis = t->axes[k];
                t->axes[k] = t->axes[k - 1];
                t->axes[k - 1] = axis;
            }
    }
}

static bool is_none(const tune_question *q, const tune_window *w)
{
    return q->axes[w->kept].size == 1 && q->axes[w->summed].size == 1;
}

void tune_windows_order(tune_question *q)
{
    const tune_window first = q->windows[0];
    if (!is_none(q, &first) || is_none(q, &q->windows[1]))
        return;
    q->windows[0] = q->windows[1];
    q->windows[1] = first;
}

/* Row by row, in whole words and packets. */
bool tune_is_pointwise(const target *t, const tune_question *q)
{
    enum { WORD_BYTES = 8 }; /* that ports of images are padded to */
    bool is = q->window_count == 0 && q->size[TUNE_BATCH] == 1 && q->size[TUNE_COLUMN] % t->rows == 0 &&
              tune_bytes_of(q->type, q->size[TUNE_SUM]) % WORD_BYTES == 0;
    /* all results are in DM at once, which few questions without any kernel have room for */
    is = is && q->size[TUNE_ROW] <= t->dm_bytes_per_slice * t->slices_per_cluster * t->clusters_per_chip /
                                        larger(1, tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]));
    for (int role = 0; role < TUNE_ROLES; role++)
        is = is && !q->share[role].axis;
    for (int p = TUNE_LEFT; p <= TUNE_OUT; p++)
        is = is && !q->turned[p] && !q->tensors[p].is_free;
    for (size_t i = 0; i < q->extra_count; i++)
        is = is && q->extras[i].has[TUNE_COLUMN];
    return is;
}

bool tune_is_product(const tune_question *q)
{
    return !q->axes[q->windows[0].summed].name && !q->axes[q->windows[1].kept].name && !q->axes[q->windows[1].summed].name;
}

tune_question tune_windows_of_product(const tune_question *q)
{
    tune_question x = *q;
    size_t of_role[TUNE_ROLES] = {0};
    x.axis_count = 0;
    for (int role = TUNE_ROW; role < TUNE_ROLES; role++)
        if (q->axis_text[role]) {
            of_role[role] = x.axis_count;
            x.axes[x.axis_count++] = (tune_axis){.name = q->axis_text[role], .size = q->size[role], .role = (tune_role)role};
        }
    if (!q->axis_text[TUNE_ROW])
        of_role[TUNE_ROW] = make_axis(&x, TUNE_ROW);
    x.axis_text[TUNE_BATCH] = NULL;
    size_t down = make_axis(&x, TUNE_SUM), place = make_axis(&x, TUNE_ROW), across = make_axis(&x, TUNE_SUM);
    x.windows[0] = tune_plain_window(&x, q->stream, of_role[TUNE_ROW], down);
    x.windows[1] = tune_plain_window(&x, q->stream, place, across);
    x.window_count = TUNE_WINDOWS;
    x.window_channel = of_role[TUNE_SUM];
    return x;
}
