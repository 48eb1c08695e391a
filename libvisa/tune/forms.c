#include "libvisa/tune/forms.h"

#include "libvisa/tune/bound.h"

static void swap_sizes(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* The other operand is the weights: rows are columns, and columns rows. */
static tune_question turned_around(const tune_question *q)
{
    tune_question x = *q;
    x.weights = q->stream;
    x.stream = q->weights;
    swap_sizes(&x.size[TUNE_ROW], &x.size[TUNE_COLUMN]);
    x.axis_text[TUNE_ROW] = q->axis_text[TUNE_COLUMN];
    x.axis_text[TUNE_COLUMN] = q->axis_text[TUNE_ROW];
    for (size_t i = 0; i < x.axis_count; i++) {
        tune_axis *a = &x.axes[i];
        a->role = a->role == TUNE_ROW ? TUNE_COLUMN : a->role == TUNE_COLUMN ? TUNE_ROW : a->role;
    }
    x.share[TUNE_ROW] = q->share[TUNE_COLUMN];
    x.share[TUNE_COLUMN] = q->share[TUNE_ROW];
    for (size_t i = 0; i < x.extra_count; i++) {
        x.extras[i].has[TUNE_ROW] = q->extras[i].has[TUNE_COLUMN];
        x.extras[i].has[TUNE_COLUMN] = q->extras[i].has[TUNE_ROW];
        x.extras[i].names[TUNE_ROW] = q->extras[i].names[TUNE_COLUMN];
        x.extras[i].names[TUNE_COLUMN] = q->extras[i].names[TUNE_ROW];
    }
    return x;
}

/* Chips share groups of columns, each with its channels; of one group no axis is left. */
static bool take_groups(const tune_question *q, int64_t chips, arena *a, tune_question *out)
{
    const tune_axis *group = &q->axes[q->window_group];
    if (group->size % chips != 0)
        return false;
    out->share[TUNE_COLUMN] = tune_share_of(group->name, group->size, chips, group->size / chips, a, &out->axis_text[TUNE_COLUMN]);
    out->groups = out->share[TUNE_COLUMN].part;
    out->size[TUNE_COLUMN] = q->size[TUNE_COLUMN] / chips;
    if (out->groups == 1)
        out->axis_text[TUNE_COLUMN] = q->axes[q->tensors[q->weights].axes[1]].name;
    return true;
}

/* The question of one chip, where so many share each kind of axis; false: it cannot be shared. An image is not: neighbours need its border.
 * `pads`: parts are padded, where that makes others; false as well: it makes none. */
static bool take_share(const tune_question *q, const int64_t chips[TUNE_SUM], bool pads, arena *a, tune_question *out)
{
    bool is_padded = false;
    *out = *q;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++) {
        if (chips[role] == 1)
            continue;
        if (role == TUNE_COLUMN && q->is_grouped) {
            if (!take_groups(q, chips[role], a, out))
                return false;
            continue;
        }
        int64_t padded = pads && q->window_count == 0 ? tune_padded_part(q->size[role], chips[role]) : 0,
                part = padded ? padded : q->size[role] / chips[role];
        if (!q->axis_text[role] || part * chips[role] < q->size[role] || (q->window_count > 0 && role == TUNE_ROW))
            return false;
        is_padded = is_padded || padded;
        out->share[role] = tune_share_of(q->axis_text[role], q->size[role], chips[role], part, a, &out->axis_text[role]);
        out->size[role] = part;
        if (role == TUNE_BATCH && out->size[role] == 1) /* no axis is left of it */
            out->axis_text[role] = NULL;
    }
    if (q->depthwise)
        out->axes[q->window_channel].size = out->size[TUNE_COLUMN];
    /* of one column that a chip has the rows are what lies side by side */
    if (q->window_count == 0 && q->size[TUNE_COLUMN] > 1 && out->size[TUNE_COLUMN] == 1 && out->size[TUNE_ROW] > 1)
        *out = turned_around(out);
    return is_padded == pads;
}

/* Columns of a result's packet that are padding: the last ones of each row are written in part. */
static int64_t columns_over(const target *t, const tune_question *q)
{
    return q->size[TUNE_COLUMN] % t->rows;
}

/* After all that promise as much. */
static void insert(const target *t, const tune_question *x, tune_question *forms, size_t *count)
{
    int64_t bound = tune_bound_of(t, x).cycles;
    if (*count == TUNE_FORMS_MAX)
        return;
    size_t at = (*count)++;
    for (; at > 0 && tune_bound_of(t, &forms[at - 1]).cycles > bound; at--)
        forms[at] = forms[at - 1];
    forms[at] = *x;
}

size_t tune_forms_of(const target *t, const tune_question *q, int64_t chips, arena *a, tune_question *forms)
{
    bool has_choice = q->tensors[TUNE_OUT].is_free && q->window_count == 0;
    tune_question of[] = {*q, turned_around(q)}, form;
    size_t first = has_choice && columns_over(t, q) > 0 && columns_over(t, &of[1]) == 0, count = 0;
    for (size_t i = 0; i < (has_choice ? 2 : 1); i++)
        for (int64_t rows = chips; rows >= 1; rows /= 2)
            for (int64_t columns = chips / rows; columns >= 1; columns /= 2) {
                int64_t shares[] = {[TUNE_BATCH] = chips / (rows * columns), [TUNE_ROW] = rows, [TUNE_COLUMN] = columns};
                for (int pads = 0; pads <= 1; pads++)
                    if (take_share(&of[i ^ first], shares, pads, a, &form))
                        insert(t, &form, forms, &count);
            }
    return count;
}

/* Elements in the HBM of a chip, which has a part of those that have the shared axis, and all of the others. */
static int64_t elements_of_chip(const tune_flow *f)
{
    int64_t all = 0;
    for (size_t i = 0; i < f->value_count; i++) {
        int64_t elements = i == 0 || f->values[i].tensor;
        for (size_t k = 0; k < f->values[i].count; k++)
            elements *= f->groups[f->values[i].groups[k]].size;
        all += elements;
    }
    return all;
}

size_t tune_forms_of_flow(const tune_flow *f, int64_t chips, arena *a, tune_flow *form)
{
    size_t count = 0;
    int64_t least = INT64_MAX;
    *form = *f;
    if (chips == 1)
        return 1;
    for (size_t g = 0; g < f->group_count; g++) {
        const flow_group *group = &f->groups[g];
        int64_t part = group->size % chips == 0 ? group->size / chips : tune_padded_part(group->size, chips);
        if (!(f->values[0].has >> g & 1) || group->is_reduced || part == 0)
            continue;
        tune_flow x = *f;
        x.share[g] = tune_share_of(group->text, group->size, chips, part, a, &x.groups[g].text);
        x.groups[g].size = x.share[g].part;
        count++;
        if (elements_of_chip(&x) >= least)
            continue;
        least = elements_of_chip(&x);
        *form = x;
    }
    return count;
}
