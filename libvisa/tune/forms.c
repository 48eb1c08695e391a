#include "libvisa/tune/forms.h"

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
    for (size_t i = 0; i < x.extra_count; i++) {
        x.extras[i].has[TUNE_ROW] = q->extras[i].has[TUNE_COLUMN];
        x.extras[i].has[TUNE_COLUMN] = q->extras[i].has[TUNE_ROW];
    }
    return x;
}

/* Columns of a result's packet that are padding: the last ones of each row are written in part. */
static int64_t columns_over(const target *t, const tune_question *q)
{
    return q->size[TUNE_COLUMN] % t->rows;
}

size_t tune_forms_of(const target *t, const tune_question *q, tune_question *forms)
{
    forms[0] = *q;
    if (!q->tensors[TUNE_OUT].is_free || q->window_count > 0)
        return 1;
    forms[1] = turned_around(q);
    bool is_better = columns_over(t, q) > 0 && columns_over(t, &forms[1]) == 0;
    if (is_better) {
        tune_question first = forms[1];
        forms[1] = forms[0];
        forms[0] = first;
    }
    return 2;
}
