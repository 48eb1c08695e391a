#include "libvisa/tune/pool_question.h"

#include <string.h>

#include "support/integer.h"

enum { WORD_BITS = 64 }; /* that copies move, and DM is written in */

typedef struct reader {
    const tune_expression *e;
    diag_list *diags;
    arena *a;
    pool_question *q;
    dtype type;    /* of tensors that say none */
    size_t image;  /* tensor */
    unsigned over; /* axes that are folded */
    bool folds;
    bool is_back[TUNE_OPERATIONS_MAX]; /* of what stands around the image, from outside: it follows the fold */
    tune_operation around[TUNE_OPERATIONS_MAX];
    size_t around_count;
} reader;

static bool refuse(reader *r, diag_id id, src_range range, const char *what, const char *help)
{
    diag *d = diag_add(r->diags, id, range, "%s", what);
    diag_help(r->diags, d, "%s", help);
    return false;
}

static bool refuse_form(reader *r, src_range range, const char *what)
{
    return refuse(r, E_TUNE_LAYOUT, range, what,
                  "windows are folded as Y[n, y, x, c] = max(r, s) I[n, y*2 + r, x*2 + s, c], by max, min, sum or mean, with or without n, "
                  "along one axis, too: the result's axes stand in the image's order, and what lies side by side is in no window");
}

static bool holds(const tune_node *n, size_t tensor)
{
    return n && ((n->kind == TUNE_NODE_TENSOR && n->tensor == tensor) || holds(n->left, tensor) || holds(n->right, tensor));
}

/* The tensor beside the image in `sum(r, s) I[y + r, x + s, c] * b[c]`, which the sum has as a factor; NULL: it is multiplied inside. */
static const tune_node *factor_of(const tune_expression *e, const tune_node *n, size_t image)
{
    const tune_node *other = n->left->tensor == image ? n->right : n->left;
    return n->kind == TUNE_NODE_PRODUCT && other->tensor != image && !(tune_axes_of(e, other->tensor) & n->over) ? other : NULL;
}

bool pool_is_asked(const tune_expression *e)
{
    if (e->window_count == 0)
        return false;
    const size_t image = e->windows[0].tensor;
    bool folds = false;
    for (const tune_node *n = e->root; n && n->kind != TUNE_NODE_TENSOR; n = holds(n->left, image) ? n->left : n->right) {
        if (!holds(n, image) || (n->kind == TUNE_NODE_PRODUCT && !factor_of(e, n, image)))
            return false;
        folds = folds || n->kind == TUNE_NODE_REDUCTION || n->kind == TUNE_NODE_PRODUCT;
    }
    return folds;
}

/* ---- types ---- */

static bool find_type(reader *r, const tune_tensor *t, dtype *out)
{
    *out = r->type;
    if (!t->asked_type || dtype_by_name(t->asked_type, out))
        return true;
    return refuse(r, E_TUNE_TYPE, t->range, arena_printf(r->a, "`%s` is of `%s`, which is no type of a tensor", t->name, t->asked_type),
                  "give it another type, or leave it away");
}

/* In which the Vector Engine has what is fetched. */
static dtype worked_in(dtype type)
{
    return dtype_row_of(type)->kind == DTYPE_KIND_INT ? DTYPE_I32 : DTYPE_F32;
}

static bool is_fetched_as(dtype type, dtype as)
{
    return type == as || target_converts(ENGINE_ID_FETCH, type, as);
}

static bool find_types(reader *r, const visa_tune_options *o)
{
    pool_question *q = r->q;
    const tune_tensor *image = &r->e->tensors[r->image];
    const char *type = o->dtype ? o->dtype : "bf16";
    if (!dtype_by_name(type, &r->type))
        return refuse(r, E_TUNE_TYPE, SRC_NOWHERE, arena_printf(r->a, "`%s` is no type of a tensor", type),
                      "take i4, i8, i16, i32, f8e4m3, f8e5m2, bf16 or f32");
    if (!find_type(r, image, &q->from))
        return false;
    if (!is_fetched_as(q->from, worked_in(q->from)))
        return refuse(r, E_TUNE_TYPE, image->range,
                      arena_printf(r->a, "`%s` is of `%s`, which is not fetched as the i32 or f32 that the Vector Engine works on",
                                   image->name, dtype_row_of(q->from)->name),
                      "take i4, i8, i16, i32, f8e4m3, f8e5m2, bf16 or f32");
    return true;
}

/* Of integers everything is whole that stays so; a result in another type is made of the whole numbers or floats at the end. */
static bool find_result_type(reader *r, const visa_tune_options *o)
{
    pool_question *q = r->q;
    bool whole = worked_in(q->from) == DTYPE_I32 && q->fold != TUNE_FOLD_MEAN;
    for (size_t i = 0; i < q->operation_count[0]; i++)
        whole = whole && (q->operations[0][i].what >= TUNE_FOLD_ADD || tune_operations_are_whole(&q->operations[0][i], 1));
    for (size_t i = 0; i < q->extra_count; i++)
        whole = whole && dtype_row_of(q->extras[i].type)->kind == DTYPE_KIND_INT;
    q->meets = q->into = whole ? DTYPE_I32 : DTYPE_F32;
    if (o->out_dtype) {
        bool known = dtype_by_name(o->out_dtype, &q->into);
        dtype last = whole || (known && dtype_row_of(q->into)->kind == DTYPE_KIND_INT) ? DTYPE_I32 : DTYPE_F32;
        if (!known || dtype_row_of(q->into)->bits < 8 || (q->into != last && !target_converts(ENGINE_ID_CAST, last, q->into)))
            return refuse(r, E_TUNE_TYPE, SRC_NOWHERE,
                          arena_printf(r->a, "results are %s, which the Cast Engine does not make `%s` of whole bytes",
                                       dtype_row_of(q->meets)->name, o->out_dtype),
                          arena_printf(r->a, "leave --out away for %s", dtype_row_of(q->meets)->name));
    }
    for (size_t i = 0; i < q->extra_count; i++)
        if (!is_fetched_as(q->extras[i].type, q->meets))
            return refuse(r, E_TUNE_TYPE, tune_whole_range(r->e->file, r->e->text),
                          arena_printf(r->a, "`%s` is of `%s`, which is not fetched as %s", q->extras[i].port,
                                       dtype_row_of(q->extras[i].type)->name, dtype_row_of(q->meets)->name),
                          "give it a type after a colon, b[c]: f32");
    for (int i = 0; i < POOL_ORDERS; i++)
        q->passes[i] = tune_epilogue_make(q->operations[i], q->operation_count[i], whole, worked_in(q->from), q->into, r->a);
    return true;
}

/* ---- what is done around the fold ---- */

static bool say_around(reader *r, const tune_node *n, tune_operation o)
{
    if (r->around_count == TUNE_OPERATIONS_MAX)
        return refuse(r, E_TUNE_QUESTION, n->range, "at most 24 operations stand around a window", "ask for it in parts");
    r->is_back[r->around_count] = !r->folds;
    r->around[r->around_count++] = o;
    return true;
}

/* A tensor with the channels, and all axes of each place that it has, in the result's order. */
static bool add_extra(reader *r, const tune_node *n, tune_operation o)
{
    pool_question *q = r->q;
    const tune_tensor *t = &r->e->tensors[n->tensor];
    if (n->tensor == r->image)
        return refuse_form(r, t->range, "a tensor stands beside what windows take");
    o.operand = t->port;
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].port == t->port)
            return say_around(r, n, o);
    if (q->extra_count == TUNE_EXTRAS_MAX)
        return refuse(r, E_TUNE_QUESTION, t->range, "at most 4 tensors meet what is folded", "ask for it in parts");
    pool_extra *x = &q->extras[q->extra_count++];
    *x = (pool_extra){.port = t->port};
    return find_type(r, t, &x->type) && say_around(r, n, o);
}

static bool take_binary(reader *r, const tune_node *n, const tune_node *other, bool reversed)
{
    tune_operation o = {.what = n->what, .reversed = reversed && (n->what == TUNE_SUBTRACT || n->what == TUNE_DIVIDE)};
    if (other->kind == TUNE_NODE_TENSOR)
        return add_extra(r, other, o);
    if (other->kind != TUNE_NODE_NUMBER)
        return refuse(r, E_TUNE_QUESTION, other->range, "what meets a window's value is computed", "compute it in front of the kernel");
    o.value = other->number;
    if (n->what == TUNE_SUBTRACT && !reversed) {
        o.what = TUNE_ADD;
        o.value = -o.value;
    }
    return say_around(r, n, o);
}

/* Folds of one kind around each other are one. */
static bool take_fold(reader *r, const tune_node *n, tune_fold fold)
{
    const bool follows = r->around_count > 0 && !r->is_back[r->around_count - 1];
    if (fold == TUNE_FOLD_SOFTMAX || (r->folds && (fold != r->q->fold || follows)))
        return refuse_form(r, n->range, "a window is folded in two ways");
    r->folds = true;
    r->q->fold = fold;
    r->over |= n->over;
    return true;
}

/* From the root to the image. */
static bool find_operations(reader *r)
{
    const tune_node *n = r->e->root;
    while (n->kind != TUNE_NODE_TENSOR) {
        const bool left = holds(n->left, r->image);
        if (n->right && left && holds(n->right, r->image))
            return refuse_form(r, n->range, "the image stands here twice");
        switch (n->kind) {
        case TUNE_NODE_FUNCTION:
            if (!say_around(r, n, (tune_operation){.what = n->what}))
                return false;
            break;
        case TUNE_NODE_BINARY:
            if (!take_binary(r, n, left ? n->right : n->left, !left))
                return false;
            break;
        case TUNE_NODE_PRODUCT:
            if (!take_fold(r, n, TUNE_FOLD_SUM))
                return false;
            r->folds = false; /* the factor of a sum follows it */
            if (!add_extra(r, left ? n->right : n->left, (tune_operation){.what = TUNE_TIMES}))
                return false;
            r->folds = true;
            break;
        default:
            if (!take_fold(r, n, n->fold))
                return false;
        }
        n = left ? n->left : n->right;
    }
    return true;
}

static void put(reader *r, tune_operation o)
{
    for (int i = 0; i < POOL_ORDERS; i++)
        r->q->operations[i][r->q->operation_count[i]++] = o;
}

static void put_folds(reader *r)
{
    static const tune_operator of_fold[] = {[TUNE_FOLD_SUM] = TUNE_FOLD_ADD,
                                            [TUNE_FOLD_LARGEST] = TUNE_FOLD_MAX,
                                            [TUNE_FOLD_SMALLEST] = TUNE_FOLD_MIN,
                                            [TUNE_FOLD_MEAN] = TUNE_FOLD_ADD};
    pool_question *q = r->q;
    const char *const axes[POOL_ORDERS][2] = {{q->taps, NULL},
                                              {q->dims[POOL_PLACES].tap_axis, q->dims[POOL_ROWS].tap_axis},
                                              {q->dims[POOL_ROWS].tap_axis, q->dims[POOL_PLACES].tap_axis}};
    for (int i = 0; i < POOL_ORDERS; i++)
        for (int k = 0; k < 2; k++)
            if (axes[i][k])
                q->operations[i][q->operation_count[i]++] =
                    (tune_operation){.what = of_fold[q->fold], .operand = axes[i][k], .in_slice = true};
}

/* Is an axis of windows nothing but digits, so that no two of them share a place of the image, or is there one? */
static bool are_digits(const pool_dim *d)
{
    return (d->size == 1 && d->dilation == 1) || (d->dilation == 1 && d->stride == d->taps) || (d->stride == 1 && d->dilation == d->size);
}

/* Windows of both axes may be folded one after the other. At once they name digits of one axis, both or neither as those of a window: what
 * is a digit beside it is not found in the mathematics of a statement. */
static void find_orders(pool_question *q)
{
    const pool_dim *y = &q->dims[POOL_ROWS], *x = &q->dims[POOL_PLACES];
    const bool both = y->taps > 1 && x->taps > 1;
    q->has_order[POOL_AT_ONCE] = !both || are_digits(y) == are_digits(x);
    q->has_order[POOL_PLACES_FIRST] = q->has_order[POOL_ROWS_FIRST] = both;
}

/* A bound is the same in front of the largest or smallest as behind it. */
static bool may_follow(const reader *r, const tune_operation *o)
{
    return (r->q->fold == TUNE_FOLD_LARGEST || r->q->fold == TUNE_FOLD_SMALLEST) && !o->operand &&
           (o->what == TUNE_LARGER || o->what == TUNE_SMALLER);
}

/* From inside: what is done to the image, the fold, and what is done to what it gives. */
static bool order_operations(reader *r)
{
    pool_question *q = r->q;
    size_t inside = 0;
    while (inside < r->around_count && !r->is_back[r->around_count - 1 - inside])
        inside++;
    size_t follow = inside; /* of those in front, from outside, so many may as well follow */
    for (size_t i = 0; i < inside; i++)
        if (!may_follow(r, &r->around[r->around_count - 1 - i]))
            follow = inside - 1 - i;
    for (size_t i = 0; i < inside - follow; i++)
        put(r, r->around[r->around_count - 1 - i]);
    const bool has_front = q->operation_count[0] > 0;
    put_folds(r);
    find_orders(q);
    if (q->fold == TUNE_FOLD_MEAN && q->tap_count > 1) {
        bool exact = tune_is_power_of_two((double)q->tap_count);
        put(r, exact ? (tune_operation){.what = TUNE_TIMES, .value = 1 / (double)q->tap_count}
                     : (tune_operation){.what = TUNE_DIVIDE, .value = (double)q->tap_count});
    }
    for (size_t i = inside - follow; i < r->around_count; i++)
        put(r, r->around[r->around_count - 1 - i]);
    if (has_front && (tune_border_of(&q->image, 0).zeros || tune_border_of(&q->image, 1).zeros))
        return refuse(r, E_TUNE_QUESTION, r->e->root->range, "something is done to the image, and windows take places around it",
                      "do it in a kernel in front of this one, or where windows take no border");
    return true;
}

/* ---- axes ---- */

/* Kept axes of the image in its order, those of one position left out. */
typedef struct place {
    size_t axis;
    const tune_window *window; /* NULL: it has none */
} place;

static bool is_plain(const tune_expression *e, const tune_window *w)
{
    return e->axes[w->summed].size == 1 && w->stride == 1 && w->before == 0 && w->own.size == e->axes[w->kept].size;
}

static size_t places_of(const reader *r, place *out)
{
    const tune_expression *e = r->e;
    const tune_tensor *t = &e->tensors[r->image];
    size_t count = 0, windows = 0;
    for (size_t i = 0; i < e->window_count; i++)
        windows += !is_plain(e, &e->windows[i]);
    for (size_t i = 0; i < t->count; i++) {
        const tune_window *w = NULL;
        for (size_t k = 0; k < e->window_count && !w; k++)
            w = e->windows[k].kept == t->axes[i] ? &e->windows[k] : NULL;
        const bool counts = w && (!is_plain(e, w) || windows == 0);
        if (counts || e->axes[t->axes[i]].size > 1)
            out[count++] = (place){t->axes[i], counts ? w : NULL};
        windows += windows == 0 && w;
        i += w != NULL;
    }
    const size_t last = t->count - 1;
    bool is_kept = count > 0 && !out[count - 1].window;
    for (size_t k = 0; k < e->window_count; k++)
        is_kept = is_kept || e->windows[k].summed == t->axes[last];
    if (!is_kept) /* one channel */
        out[count++] = (place){t->axes[last], NULL};
    return count;
}

static bool check_axes(reader *r, const place *places, size_t count)
{
    const tune_expression *e = r->e;
    const tune_tensor *out = &e->tensors[0];
    unsigned summed = 0;
    size_t at = 0;
    for (size_t i = 0; i < e->window_count; i++) {
        const tune_axis *a = &e->axes[e->windows[i].summed];
        summed |= 1U << e->windows[i].summed;
        if (a->size > 1 && !(r->over >> e->windows[i].summed & 1))
            return refuse(r, E_TUNE_AXIS, a->range, arena_printf(r->a, "axis `%s` is not in the result and not folded", a->asked),
                          arena_printf(r->a, "fold it with the window: max(%s)", a->asked));
        if (e->windows[i].tensor != r->image)
            return refuse_form(r, e->tensors[e->windows[i].tensor].range, "windows go over two tensors");
    }
    for (size_t i = 0; i < e->axis_count; i++)
        if ((r->over >> i & 1) && !(summed >> i & 1) && e->axes[i].size > 1)
            return refuse_form(r, e->axes[i].range, arena_printf(r->a, "axis `%s` is folded, and is in no window", e->axes[i].asked));
    for (size_t i = 0; i < out->count; i++) {
        if (e->axes[out->axes[i]].size == 1)
            continue;
        while (at < count && e->axes[places[at].axis].size == 1)
            at++;
        if (at == count || places[at].axis != out->axes[i])
            return refuse_form(r, out->range, "the result's axes are not those of the image, in its order");
        at++;
    }
    while (at < count && e->axes[places[at].axis].size == 1)
        at++;
    if (at < count)
        return refuse(r, E_TUNE_AXIS, e->axes[places[at].axis].range,
                      arena_printf(r->a, "axis `%s` is not in the result and not folded", e->axes[places[at].axis].asked),
                      "an axis of the image stands in the result, or a window goes along it");
    return true;
}

static void join(const reader *r, pool_dim *d, size_t axis)
{
    const tune_axis *x = &r->e->axes[axis];
    d->name = d->name ? arena_printf(r->a, "%s_%s", d->name, x->name) : x->name;
    d->parts = d->parts ? arena_printf(r->a, "%s, %s", d->parts, x->name) : x->name;
    d->size *= x->size;
}

static void name_dim(const reader *r, pool_dim *d)
{
    if (d->name && strcmp(d->name, d->parts) != 0)
        d->name = tune_unused_name(r->e->axes, r->e->axis_count, d->name, r->a);
}

/* What each of the result's axes is; the windows of the image, of which there are two then. */
static bool find_dims(reader *r)
{
    const tune_expression *e = r->e;
    pool_question *q = r->q;
    place places[TUNE_AXES_MAX];
    const size_t count = places_of(r, places);
    size_t windows = 0, made = e->axis_count;
    if (!check_axes(r, places, count))
        return false;
    if (made + 2 * TUNE_WINDOWS > TUNE_AXES_MAX)
        return refuse_form(r, e->tensors[r->image].range, "there are too many axes");
    tune_question *image = &q->image;
    image->axis_count = e->axis_count;
    memcpy(image->axes, e->axes, sizeof image->axes);
    for (int d = 0; d < POOL_DIMS; d++)
        q->dims[d] = (pool_dim){.size = 1, .taps = 1, .stride = 1, .dilation = 1};
    int at = POOL_OUTER;
    for (size_t i = 0; i < count; i++) {
        const tune_window *w = places[i].window;
        if (w) {
            pool_dim *d = &q->dims[at = POOL_ROWS + (int)windows];
            join(r, d, places[i].axis);
            d->taps = e->axes[w->summed].size;
            d->tap_axis = e->axes[w->summed].name;
            d->stride = w->stride;
            d->dilation = w->dilation;
            image->windows[windows++] = *w;
        } else {
            const bool is_last = i + 1 == count;
            at = windows == 0 ? POOL_OUTER : windows == 1 && !is_last ? POOL_PLACES : POOL_INNER;
            for (size_t k = i + 1; k < count && windows > 0; k++)
                if (places[k].window)
                    return refuse_form(r, e->tensors[r->image].range, "an axis stands between two windows");
            join(r, &q->dims[at], places[i].axis);
        }
    }
    if (at != POOL_INNER)
        return refuse(
            r, E_TUNE_LAYOUT, e->tensors[r->image].range, "a window goes over what lies side by side in the image",
            "bring channels inside first, T[n, y, x, c] = I[n, c, y, x], in a kernel of its own, and ask for Y[n, y, x, c] = max(r, s) "
            "T[n, y*2 + r, x*2 + s, c]");
    for (int d = 0; d < POOL_DIMS; d++)
        name_dim(r, &q->dims[d]);
    for (; windows < TUNE_WINDOWS; windows++) { /* an axis of places without a window, or none */
        const pool_dim *d = &q->dims[POOL_ROWS + windows];
        image->axes[made] = (tune_axis){.name = d->name, .size = d->size};
        image->axes[made + 1] = (tune_axis){.size = 1};
        image->windows[windows] = tune_plain_window(image, r->image, made, made + 1);
        made += 2;
    }
    image->window_count = TUNE_WINDOWS;
    const char *down = q->dims[POOL_ROWS].tap_axis, *across = q->dims[POOL_PLACES].tap_axis;
    q->taps = across ? arena_printf(r->a, "%s_%s", down, across) : down;
    q->taps = across ? tune_unused_name(e->axes, e->axis_count, q->taps, r->a) : down;
    q->tap_count = q->dims[POOL_ROWS].taps * q->dims[POOL_PLACES].taps;
    return true;
}

/* Which of the result's axes a tensor has that meets it: all of each place. */
static bool find_axes_of_extras(reader *r)
{
    const tune_expression *e = r->e;
    for (size_t i = 0; i < r->q->extra_count; i++) {
        pool_extra *x = &r->q->extras[i];
        size_t number = 1;
        while (e->tensors[number].port != x->port)
            number++;
        const tune_tensor *t = &e->tensors[number];
        size_t at = 0;
        while (at < t->count && e->axes[t->axes[at]].size == 1)
            at++;
        place places[TUNE_AXES_MAX];
        const size_t count = places_of(r, places);
        size_t windows = 0;
        int64_t sizes[POOL_DIMS] = {1, 1, 1, 1};
        for (size_t k = 0; k < count; k++) {
            windows += places[k].window != NULL;
            int d = places[k].window                ? POOL_ROWS + (int)windows - 1
                    : windows == 0                  ? POOL_OUTER
                    : windows == 1 && k + 1 < count ? POOL_PLACES
                                                    : POOL_INNER;
            if (at == t->count || t->axes[at] != places[k].axis)
                continue;
            sizes[d] *= e->axes[places[k].axis].size;
            for (at++; at < t->count && e->axes[t->axes[at]].size == 1;)
                at++;
        }
        bool is = at == t->count && sizes[POOL_INNER] == r->q->dims[POOL_INNER].size;
        for (int d = 0; d < POOL_DIMS; d++) {
            x->has[d] = sizes[d] > 1;
            is = is && (sizes[d] == 1 || sizes[d] == r->q->dims[d].size);
        }
        if (!is)
            return refuse_form(r, t->range, "what meets a window's value has not the channels, or has other axes than the result");
    }
    return true;
}

/* Has one of the windows along an axis no place of the image? Of very many those at both ends are looked at. */
static bool misses_image(const tune_question *q, const tune_window *w)
{
    enum { MOST = 1 << 15 };
    const int64_t count = q->axes[w->kept].size, taps = q->axes[w->summed].size;
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = i * w->stride - w->before, tap = begin < 0 ? ceil_div(-begin, w->dilation) : 0;
        if (tap >= taps || begin + tap * w->dilation >= w->own.size)
            return true;
        if (i == MOST && count > 2 * MOST)
            i = count - MOST;
    }
    return false;
}

bool pool_read(const tune_expression *e, const visa_tune_options *o, diag_list *diags, pool_question *out)
{
    *out = (pool_question){.text = e->text, .most_slices = o->slices, .result = e->tensors[0].port};
    reader r = {.e = e, .diags = diags, .a = diags->arena, .q = out, .image = e->windows[0].tensor};
    out->image.tensors[TUNE_LEFT] = e->tensors[r.image];
    out->image.stream = TUNE_LEFT;
    out->image.weights = TUNE_RIGHT;
    if (o->chips > 1)
        return refuse(&r, E_TUNE_MACHINE, tune_whole_range(e->file, e->text), "windows that are folded are of one chip",
                      "ask for what each chip has, a part of the images or channels");
    if (!find_types(&r, o) || !find_operations(&r) || !find_dims(&r) || !find_axes_of_extras(&r) || !order_operations(&r))
        return false;
    out->image.stored[TUNE_LEFT] = out->from;
    out->image.size[TUNE_BATCH] = out->dims[POOL_OUTER].size;
    if (!find_result_type(&r, o))
        return false;
    if (!out->passes[0].passes[0].fold)
        return refuse(&r, E_TUNE_QUESTION, e->root->range, "what is done to the image takes a pass of its own",
                      "do it in a kernel in front of this one");
    for (size_t i = 0; i < TUNE_WINDOWS; i++)
        if ((out->fold == TUNE_FOLD_LARGEST || out->fold == TUNE_FOLD_SMALLEST) && misses_image(&out->image, &out->image.windows[i]))
            return refuse(&r, E_TUNE_LAYOUT, out->image.windows[i].own.range,
                          "a window takes no place of the image, and has no largest or smallest",
                          "let the border be less than a window, and ask for no results behind the image");
    if (pool_is_rewritten(out) && !pool_border_value(out))
        return refuse(
            &r, E_TUNE_TYPE, e->tensors[r.image].range,
            arena_printf(r.a, "windows take places around an image of `%s`, of which memory is not filled", dtype_row_of(out->from)->name),
            "take i8, f8e4m3, bf16 or f32, or put the border around it in front of the kernel");
    return true;
}

int64_t pool_channels_in_hbm(const pool_question *q)
{
    return round_up(q->dims[POOL_INNER].size, WORD_BITS / dtype_row_of(q->from)->bits);
}

bool pool_is_rewritten(const pool_question *q)
{
    bool is = false;
    for (size_t i = 0; i < TUNE_WINDOWS; i++) {
        const tune_border b = tune_border_of(&q->image, i);
        const pool_dim *d = &q->dims[POOL_ROWS + i];
        is = is || b.zeros || b.from > 0 || (b.differs && are_digits(d)); /* mappings have padding after no group of digits */
    }
    return is;
}

const char *pool_border_value(const pool_question *q)
{
    static const struct {
        dtype type;
        const char *least, *most;
    } ends[] = {{DTYPE_I4, "const { i4::from_i32(-8) }", "const { i4::from_i32(7) }"},
                {DTYPE_I8, "-128", "127"},
                {DTYPE_I16, "-32768", "32767"},
                {DTYPE_I32, "-2147483648", "2147483647"},
                {DTYPE_F8E4M3, "const { f8e4m3::from_f32(-448.0) }", "const { f8e4m3::from_f32(448.0) }"},
                {DTYPE_BF16, "const { bf16::from_f32(-3.38953139e38) }", "const { bf16::from_f32(3.38953139e38) }"},
                {DTYPE_F32, "const { -1.0 / 0.0 }", "const { 1.0 / 0.0 }"}};
    if ((q->fold == TUNE_FOLD_SUM || q->fold == TUNE_FOLD_MEAN) && (q->from == DTYPE_I16 || q->from == DTYPE_I32))
        return "0";
    if (q->fold == TUNE_FOLD_SUM || q->fold == TUNE_FOLD_MEAN)
        return tune_zero_of(q->from);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i].type == q->from)
            return q->fold == TUNE_FOLD_LARGEST ? ends[i].least : ends[i].most;
    return NULL;
}

const char *pool_border_name(const pool_question *q)
{
    return q->fold == TUNE_FOLD_LARGEST ? "the least value" : q->fold == TUNE_FOLD_SMALLEST ? "the largest value" : "zeros";
}

int64_t pool_places(const pool_dim *d, int64_t results)
{
    return (results - 1) * d->stride + (d->taps - 1) * d->dilation + 1;
}
