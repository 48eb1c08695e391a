#include "libvisa/tune/question.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libvisa/tune/widened.h"
#include "libvisa/tune/windows.h"
#include "support/integer.h"

typedef struct reader {
    const tune_expression *e;
    diag_list *diags;
    tune_question *q;
    size_t left, right; /* tensors of the contraction */
    unsigned summed;    /* axes of sum(..) */
} reader;

static bool refuse(reader *r, src_range range, const char *what)
{
    return tune_refuse_question(r->e->text, r->diags, range, what);
}

static bool refuse_window(reader *r, src_range range, const char *what)
{
    return tune_refuse_window(r->diags, range, what);
}

/* ---- what is done to a sum ---- */

/* A part of the right side: a number, a tensor and what it is multiplied by, or what the operations up to here have made of the sum. */
typedef enum value_kind { VALUE_NUMBER, VALUE_TENSOR, VALUE_SUM } value_kind;
typedef struct value {
    value_kind kind;
    double number;    /* or the factor of a tensor */
    const char *name; /* of a tensor */
} value;

static bool append(reader *r, const tune_node *n, tune_operation o)
{
    tune_question *q = r->q;
    if (q->operation_count == TUNE_OPERATIONS_MAX)
        return refuse(r, n->range, arena_printf(r->diags->arena, "at most %d operations are done to a sum", TUNE_OPERATIONS_MAX));
    q->operations[++q->operation_count] = o;
    return true;
}

/* Of a tensor and a number: a tensor with a factor. False: that is none, or the factor would be rounded where what is asked is not. */
static bool scale(const tune_node *n, value *a, value b)
{
    bool reversed = a->kind == VALUE_NUMBER;
    double number = reversed ? a->number : b.number;
    value tensor = reversed ? b : *a;
    if (n->what != TUNE_TIMES || tensor.kind != VALUE_TENSOR || (a->kind != VALUE_NUMBER && b.kind != VALUE_NUMBER) ||
        (tensor.number != 1 && !tune_is_power_of_two(number)))
        return false;
    tensor.number *= number;
    *a = tensor;
    return true;
}

/* A tensor with a factor, which the machine multiplies by it where the sum is added; a product of both takes it by itself. */
static bool append_scaled(reader *r, const tune_node *n, bool reversed, value other)
{
    const tune_operation negated = {.what = TUNE_TIMES, .value = -1}, by_factor = {.what = TUNE_TIMES, .value = other.number};
    tune_operation o = {.what = TUNE_ADD_TIMES, .operand = other.name, .value = other.number};
    switch (n->what) {
    case TUNE_ADD: return append(r, n, o);
    case TUNE_SUBTRACT:
        if (reversed)
            return append(r, n, negated) && append(r, n, o);
        o.value = -o.value;
        return append(r, n, o);
    case TUNE_TIMES: o.what = TUNE_TIMES; return append(r, n, by_factor) && append(r, n, o);
    default: return refuse(r, n->range, "a tensor with a factor meets the sum in + , - and * alone: multiply it in front of the kernel");
    }
}

static bool refuse_apart(reader *r, src_range range)
{
    diag *d = diag_add(r->diags, E_TUNE_QUESTION, range, "an operation without the sum");
    diag_help(
        r->diags, d,
        "begin with the sum, as (sum(k) A[m, k] * B[n, k]) * s[m] * t[n] in place of .. * (s[m] * t[n]), or compute it in front of the "
        "kernel");
    return false;
}

/* Of two parts of which one is the sum's. */
static bool combine(reader *r, const tune_node *n, value *a, value b)
{
    if (a->kind != VALUE_SUM && b.kind != VALUE_SUM)
        return scale(n, a, b) || refuse_apart(r, n->range);
    bool reversed = b.kind == VALUE_SUM;
    value other = reversed ? *a : b;
    tune_operator what = n->what;
    *a = (value){.kind = VALUE_SUM};
    if (other.kind == VALUE_TENSOR && other.number != 1)
        return append_scaled(r, n, reversed, other);
    tune_operation o = {.what = what,
                        .reversed = reversed && (what == TUNE_SUBTRACT || what == TUNE_DIVIDE),
                        .operand = other.name,
                        .value = other.kind == VALUE_NUMBER ? other.number : 0};
    if (what == TUNE_SUBTRACT && !reversed && !other.name) {
        o.what = TUNE_ADD;
        o.value = -other.number;
    }
    return append(r, n, o);
}

/* The operand of what is done to the sums; one that stands twice is one. */
static bool add_extra(reader *r, size_t tensor, value *out)
{
    tune_question *q = r->q;
    const tune_tensor *t = &r->e->tensors[tensor];
    *out = (value){.kind = VALUE_TENSOR, .number = 1, .name = t->port};
    if (tensor == r->left || tensor == r->right)
        return refuse(r, t->range, arena_printf(r->diags->arena, "`%s` is an operand of the contraction, and meets its sums", t->name));
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].tensor.port == t->port)
            return true;
    if (q->extra_count == TUNE_EXTRAS_MAX)
        return refuse(r, t->range, arena_printf(r->diags->arena, "at most %d tensors meet a sum", TUNE_EXTRAS_MAX));
    q->extras[q->extra_count++] = (tune_extra){.tensor = *t, .asked_type = t->asked_type, .groups = 1, .zero_of = TUNE_OUT};
    return true;
}

/* Sums of groups meet their scales, and are added then. */
static bool find_scales(reader *r, const tune_node *n)
{
    for (size_t i = 0; i < r->e->scale_count; i++) {
        value scale;
        if (!add_extra(r, r->e->scales[i], &scale) || !append(r, n, (tune_operation){.what = TUNE_TIMES, .operand = scale.name}))
            return false;
        r->q->extras[r->q->extra_count - 1].groups = 0; /* as many as there are */
    }
    return r->e->scale_count == 0 || append(r, n, (tune_operation){.what = TUNE_FOLD_ADD, .in_slice = true});
}

/* The operations in their order: that of the text, from inside. */
static bool find_operations(reader *r, const tune_node *n, value *out)
{
    value b;
    switch (n->kind) {
    case TUNE_NODE_NUMBER: *out = (value){.number = n->number}; return true;
    case TUNE_NODE_TENSOR: return add_extra(r, n->tensor, out);
    case TUNE_NODE_PRODUCT: *out = (value){.kind = VALUE_SUM}; return find_scales(r, n);
    case TUNE_NODE_BINARY: return find_operations(r, n->left, out) && find_operations(r, n->right, &b) && combine(r, n, out, b);
    default:
        if (!find_operations(r, n->left, out))
            return false;
        if (out->kind != VALUE_SUM)
            return refuse(r, n->range, "a function without the sum: compute it in front of the kernel");
        return append(r, n, (tune_operation){.what = n->what});
    }
}

static const tune_node *product_in(const tune_node *n)
{
    if (!n || n->kind == TUNE_NODE_PRODUCT)
        return n;
    const tune_node *left = product_in(n->left);
    return left ? left : product_in(n->right);
}

bool tune_is_contraction(const tune_expression *e)
{
    return tune_count_products(e->root) == 1 && tune_count_reductions(e->root) == 0;
}

/* Zero points of the operands that are tensors. */
static bool find_zeros(reader *r)
{
    tune_question *q = r->q;
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT; p++) {
        value zero;
        const size_t tensor = q->tensors[p].zero;
        if (tensor == 0)
            continue;
        if (!add_extra(r, tensor, &zero))
            return false;
        q->extras[q->extra_count - 1].zero_of = (tune_place)p;
        q->extras[q->extra_count - 1].groups = tune_axes_of(r->e, tensor) & r->e->grouped ? 0 : 1;
    }
    return true;
}

/* The two operands, and what is done to their sums. */
static bool find_contraction(reader *r)
{
    tune_question *q = r->q;
    const tune_expression *e = r->e;
    const tune_node *product = product_in(e->root);
    value v;
    r->left = product->left->tensor;
    r->right = product->right->tensor;
    r->summed = product->over;
    q->axis_count = e->axis_count;
    memcpy(q->axes, e->axes, sizeof q->axes);
    q->tensors[TUNE_OUT] = e->tensors[0];
    q->tensors[TUNE_LEFT] = e->tensors[r->left];
    q->tensors[TUNE_RIGHT] = e->tensors[r->right];
    q->window_count = e->window_count;
    memcpy(q->windows, e->windows, sizeof q->windows);
    return find_zeros(r) && find_operations(r, e->root, &v);
}

/* Bits of the tensors that an axis stands in. */
static unsigned stands_in(const reader *r, size_t axis)
{
    unsigned in = 0;
    for (int p = 0; p < TUNE_PLACES; p++)
        for (size_t i = 0; i < r->q->tensors[p].count; i++)
            in |= r->q->tensors[p].axes[i] == axis ? 1U << p : 0;
    return in;
}

static void remove_axis(tune_question *q, size_t axis)
{
    q->axes[axis].role = TUNE_ROLES;
    for (int p = 0; p < TUNE_PLACES; p++) {
        tune_tensor *t = &q->tensors[p];
        size_t kept = 0;
        for (size_t i = 0; i < t->count; i++)
            if (t->axes[i] != axis)
                t->axes[kept++] = t->axes[i];
        t->count = kept;
    }
}

/* A window with an axis of all three tensors: channels with filters of their own, or, where there are columns, too, groups of both. One
 * group is none. */
static void find_filters(tune_question *q)
{
    const tune_tensor out = q->tensors[TUNE_OUT];
    bool has_columns = false;
    for (size_t i = 0; i < out.count; i++)
        has_columns = has_columns || q->axes[out.axes[i]].role == TUNE_COLUMN;
    for (size_t i = 0; i < out.count && q->window_count > 0; i++) {
        size_t axis = out.axes[i];
        if (q->axes[axis].role != TUNE_BATCH)
            continue;
        if (has_columns && q->axes[axis].size == 1) {
            remove_axis(q, axis);
            continue;
        }
        q->axes[axis].role = TUNE_COLUMN;
        q->depthwise = !has_columns;
        if (has_columns) {
            q->groups = q->axes[axis].size;
            q->is_grouped = true;
            q->window_group = axis;
        }
    }
}

/* Of images in a row each is an iteration: the axis of their result's first place, where no window moves over it. */
static void find_images(tune_question *q)
{
    const tune_tensor *out = &q->tensors[TUNE_OUT];
    size_t first = out->count > 0 ? out->axes[0] : 0;
    bool is_moved_over = false;
    for (size_t i = 0; i < q->window_count; i++)
        is_moved_over = is_moved_over || q->windows[i].kept == first;
    if (q->window_count > 0 && out->count == 4 + (q->groups > 1) && q->axes[first].role == TUNE_ROW && !is_moved_over)
        q->axes[first].role = TUNE_BATCH;
}

/* The operand that has the innermost kept axis of the result; one of one position counts where there is no other. */
static tune_place weights_of(const reader *r)
{
    enum { LEFT = 1 << TUNE_LEFT, RIGHT = 1 << TUNE_RIGHT };
    const tune_question *q = r->q;
    const tune_tensor *out = &q->tensors[TUNE_OUT];
    unsigned found = RIGHT;
    bool is_found = false;
    for (size_t i = out->count; i > 0; i--) {
        size_t axis = out->axes[i - 1];
        unsigned in = stands_in(r, axis) & (LEFT | RIGHT);
        if ((in != LEFT && in != RIGHT) || (is_found && q->axes[axis].size == 1))
            continue;
        found = in;
        is_found = true;
        if (q->axes[axis].size > 1)
            break;
    }
    return found == LEFT ? TUNE_LEFT : TUNE_RIGHT;
}

/* What each axis is, by the tensors that it stands in. One of one position that is of no role is none of the kernel. */
static bool assign_roles(reader *r)
{
    enum { LEFT = 1 << TUNE_LEFT, RIGHT = 1 << TUNE_RIGHT, OUT = 1 << TUNE_OUT };
    tune_question *q = r->q;
    q->weights = weights_of(r);
    if (q->window_count > 0) /* what a window moves over streams */
        q->weights = q->windows[0].tensor == r->left ? TUNE_RIGHT : TUNE_LEFT;
    q->stream = q->weights == TUNE_LEFT ? TUNE_RIGHT : TUNE_LEFT;
    for (size_t i = 0; i < q->axis_count; i++) {
        tune_axis *a = &q->axes[i];
        unsigned in = stands_in(r, i);
        bool is_summed = r->summed >> i & 1;
        diag *d = NULL;
        a->role = TUNE_ROLES;
        if (in == (LEFT | RIGHT | OUT))
            a->role = TUNE_BATCH;
        else if (in == (OUT | 1U << q->stream))
            a->role = TUNE_ROW;
        else if (in == (OUT | 1U << q->weights))
            a->role = TUNE_COLUMN;
        else if (in == (LEFT | RIGHT))
            a->role = TUNE_SUM;
        else if (a->size == 1)
            continue;
        else if (in == OUT || in == 0)
            d = diag_add(r->diags, E_TUNE_AXIS, a->range, "axis `%s` stands in no operand", a->asked);
        else
            d = diag_add(r->diags, E_TUNE_AXIS, a->range, "axis `%s` stands in one operand only: no multiplication is summed over it",
                         a->asked);
        if (!d && a->size > 1 && is_summed != (a->role == TUNE_SUM))
            d = diag_add(r->diags, E_TUNE_AXIS, a->range,
                         is_summed ? "axis `%s` is summed and stands in the result" : "axis `%s` is not in the result and not in sum(..)",
                         a->asked);
        if (d) {
            diag_help(r->diags, d,
                      "an axis stands in both operands, in one and the result, or in all three; sum(..) names those that the result lacks");
            return false;
        }
    }
    return true;
}

/* The axes of a role in a tensor, in its order, must be those of the question and lie together: [batch, kept, summed], or turned. */
static bool check_order(reader *r, tune_place place)
{
    tune_question *q = r->q;
    const tune_tensor *t = &q->tensors[place];
    size_t last[TUNE_ROLES] = {0};
    int role = TUNE_BATCH, inside = TUNE_ROLES; /* the kind at hand, and the one that may not come any more */
    for (size_t i = 0; i < t->count; i++) {
        const tune_axis *a = &q->axes[t->axes[i]];
        bool changes = (int)a->role != role;
        if (a->size == 1) /* lies anywhere */
            continue;
        if (changes && (a->role == TUNE_BATCH || (int)a->role == inside)) {
            diag *d = diag_add(r->diags, E_TUNE_LAYOUT, t->range,
                               "the axes of `%s` are not in the order batch, kept, summed, or batch, summed, kept: `%s` stands apart from "
                               "its kind or after an axis of a later one",
                               t->name, a->asked);
            diag_help(r->diags, d,
                      "write them in that order; a tensor that lies otherwise in HBM is brought into it by a kernel of its own");
            return false;
        }
        if (changes) {
            q->turned[place] = role == TUNE_SUM;
            inside = role == TUNE_BATCH ? inside : role;
        }
        role = (int)a->role;
        if (last[role] > t->axes[i] + 1) {
            diag *d =
                diag_add(r->diags, E_TUNE_LAYOUT, t->range, "`%s` has `%s` in another order than the tensors before it", t->name, a->asked);
            diag_help(r->diags, d, "write axes of one kind in one order in all tensors");
            return false;
        }
        last[role] = t->axes[i] + 1;
    }
    return true;
}

int64_t tune_window_places(const tune_question *q, size_t window)
{
    return tune_places_of(q->axes, &q->windows[window]);
}

tune_window tune_plain_window(const tune_question *q, size_t tensor, size_t kept, size_t summed)
{
    const tune_axis *own = &q->axes[kept];
    return (tune_window){tensor, kept, summed, .stride = 1, .dilation = 1, .own = *own, .wide = own->name};
}

tune_border tune_border_of(const tune_question *q, size_t window)
{
    const tune_window *w = &q->windows[window];
    int64_t places = tune_window_places(q, window);
    tune_border b = {.from = larger(0, -w->before), .to = larger(0, w->before)};
    b.count = smaller(places - b.to, w->own.size - b.from);
    b.zeros = b.count < places;
    b.differs = b.zeros || w->own.size != places;
    return b;
}

bool tune_has_border(const tune_question *q)
{
    return q->window_count > 0 && (tune_border_of(q, 0).differs || tune_border_of(q, 1).differs);
}

const char *tune_zero_of(dtype type)
{
    switch (type) {
    case DTYPE_I4: return "const { i4::from_i32(0) }";
    case DTYPE_I8: return "0";
    case DTYPE_F8E4M3: return "const { f8e4m3::from_f32(0.0) }";
    case DTYPE_BF16: return "const { bf16::from_f32(0.0) }";
    case DTYPE_F32: return "0.0";
    default: return NULL;
    }
}

/* Places of the window that are so many after each other fall on the same places of the image. */
static int64_t period_of_uses(const tune_window *w)
{
    return w->stride / gcd(w->stride, w->dilation);
}

int64_t tune_window_uses(const tune_question *q, size_t window)
{
    const tune_window *w = &q->windows[window];
    return smaller(q->axes[w->kept].size, ceil_div(q->axes[w->summed].size, period_of_uses(w)));
}

int64_t tune_window_used(const tune_question *q, size_t window)
{
    const tune_window *w = &q->windows[window];
    int64_t kept = q->axes[w->kept].size, summed = q->axes[w->summed].size, apart = smaller(summed, period_of_uses(w));
    return apart * kept + (summed - apart) * smaller(kept, w->dilation / gcd(w->stride, w->dilation));
}

/* A convolution in the one form that kernels are made for. */
static bool check_windows(reader *r)
{
    tune_question *q = r->q;
    const tune_tensor *image = &q->tensors[q->stream], *filter = &q->tensors[q->weights], *out = &q->tensors[TUNE_OUT];
    size_t grouped = q->groups > 1, first = image->count == 6 + grouped, y = q->windows[0].kept, x = q->windows[1].kept,
           down = q->windows[0].summed, across = q->windows[1].summed;
    size_t filters = q->depthwise ? 3 : 4 + grouped, at = !q->depthwise + grouped; /* of the window in it */
    bool counts = q->window_count == TUNE_WINDOWS && (image->count == 5 + grouped || first) && filter->count == filters &&
                  out->count == 3 + first + grouped;
    if (counts && grouped &&
        (image->axes[first + 4] != q->window_group || out->axes[first + 2] != q->window_group || filter->axes[0] != q->window_group))
        return refuse_window(r, image->range,
                             "groups of channels stand outside of the channels, of the columns, and of the columns' filters");
    if (!counts || image->axes[first] != y || image->axes[first + 2] != x || out->axes[first] != y || out->axes[first + 1] != x ||
        (first && out->axes[0] != image->axes[0]) || filter->axes[at] != down || filter->axes[at + 1] != across ||
        filter->axes[at + 2] != image->axes[first + 4 + grouped] ||
        out->axes[first + 2 + grouped] != filter->axes[q->depthwise ? 2 : grouped])
        return refuse_window(r, image->range,
                             "windows stand in a question that is no convolution of images whose channels are innermost, nor one whose "
                             "filters are [r, s, c] for each channel");
    q->window_channel = image->axes[first + 4 + grouped];
    if (q->depthwise && dtype_row_of(q->type)->bits == 4 && q->size[TUNE_COLUMN] <= 8)
        return refuse_window(r, filter->range, "filters of single channels of i4 are more than 8: packets have 16 channels");
    __int128 cells = (__int128)q->groups * q->axes[q->window_channel].size;
    for (size_t i = 0; i < TUNE_WINDOWS; i++) {
        cells *= larger(tune_window_places(q, i), q->windows[i].own.size);
        if (cells > TUNE_MOST_PRODUCTS) {
            diag *d = diag_add(r->diags, E_TUNE_SIZE, image->range, "an image of `%s` has more than 2^52 elements", image->name);
            diag_help(r->diags, d, "ask for a part of it that one launch computes");
            return false;
        }
    }
    if (tune_has_border(q) && !tune_zero_of(q->stored[q->stream]))
        return refuse_window(r, image->range,
                             arena_printf(r->diags->arena,
                                          "memory is filled with zeros of i4, i8, f8e4m3, bf16 and f32, not of %s: hand the "
                                          "image over with its border",
                                          dtype_row_of(q->stored[q->stream])->name));
    for (size_t i = 0; i < q->extra_count; i++) {
        const tune_extra *e = &q->extras[i];
        bool of_results = e->has[TUNE_ROW] && e->has[TUNE_COLUMN] && e->has[TUNE_BATCH] == first;
        if (!of_results && !(e->has[TUNE_COLUMN] && !e->has[TUNE_ROW] && !e->has[TUNE_BATCH]))
            return refuse_window(r, e->tensor.range,
                                 "what meets the sums of a convolution has an element for each column, or for each result");
    }
    return true;
}

static bool refuse_extra(reader *r, const tune_extra *e, diag_id id, const char *what, const char *help)
{
    diag *d = diag_add(r->diags, id, e->tensor.range, "`%s` %s", e->tensor.name, what);
    diag_help(r->diags, d, "%s", help);
    return false;
}

/* Axes of a role follow each other in every tensor, so they are one axis to a kernel: "K_L". */
static void name_roles(tune_question *q, arena *a)
{
    for (int role = 0; role < TUNE_ROLES; role++) {
        q->size[role] = 1;
        bool joined = false;
        for (size_t i = 0; i < q->axis_count; i++)
            if ((int)q->axes[i].role == role) {
                q->size[role] *= q->axes[i].size;
                joined = q->axis_text[role] != NULL;
                q->axis_text[role] = joined ? arena_printf(a, "%s_%s", q->axis_text[role], q->axes[i].name) : q->axes[i].name;
            }
        q->axis_text[role] = joined ? tune_unused_name(q->axes, q->axis_count, q->axis_text[role], a) : q->axis_text[role];
    }
}

/* Axes of the sum, of those that have a bit, as one: "G_H". */
static const char *join_sums(const tune_question *q, unsigned of, int64_t *size, arena *a)
{
    const char *text = NULL;
    bool joined = false;
    *size = 1;
    for (size_t i = 0; i < q->axis_count; i++)
        if (q->axes[i].role == TUNE_SUM && (of >> i & 1)) {
            *size *= q->axes[i].size;
            joined = text != NULL;
            text = joined ? arena_printf(a, "%s_%s", text, q->axes[i].name) : q->axes[i].name;
        }
    return joined ? tune_unused_name(q->axes, q->axis_count, text, a) : text;
}

/* Where sums of groups meet scales the kernel has an axis of groups, and one of what each of them adds. */
static void find_group(const reader *r)
{
    tune_question *q = r->q;
    int64_t groups;
    if (r->e->grouped == 0)
        return;
    q->folds_groups = r->e->scale_count > 0;
    q->group_axis = join_sums(q, r->e->grouped, &groups, r->diags->arena);
    q->added_axis = join_sums(q, ~r->e->grouped, &q->group, r->diags->arena);
    q->axis_text[TUNE_SUM] = arena_printf(r->diags->arena, "%s, %s", q->group_axis, q->added_axis);
}

/* A sum over nothing is over one position; columns of one position are padded for what is done to sums, and a tensor after them has a kept
 * axis. One that the question lacks has a name that it has not. */
static void imply_axes(tune_question *q, arena *a)
{
    static const char *const names[] = {[TUNE_ROW] = "ROW", [TUNE_COLUMN] = "COLUMN", [TUNE_SUM] = "SUM"};
    bool has[TUNE_ROLES] = {[TUNE_COLUMN] = q->operation_count > 0, [TUNE_SUM] = true};
    for (size_t i = 0; i < q->extra_count; i++)
        has[TUNE_ROW] = has[TUNE_ROW] || q->extras[i].has[TUNE_ROW];
    for (int role = TUNE_ROW; role <= TUNE_SUM; role++) {
        q->is_implied[role] = has[role] && !q->axis_text[role];
        if (q->is_implied[role])
            q->axis_text[role] = tune_unused_name(q->axes, q->axis_count, names[role], a);
    }
}

/* Of a tensor after the sum, axes of one position count for nothing, but one of them where it has no kept axis else. */
static bool settle_extra(reader *r, tune_extra *e)
{
    tune_question *q = r->q;
    if (e->has[TUNE_ROW] || e->has[TUNE_COLUMN])
        return true;
    if (q->window_count > 0 || (q->size[TUNE_ROW] > 1 && q->size[TUNE_COLUMN] > 1))
        return refuse_extra(r, e, E_TUNE_AXIS, "has no axis of the result that an operand keeps", "write a number in its place");
    e->has[q->size[TUNE_COLUMN] == 1 ? TUNE_COLUMN : TUNE_ROW] = true;
    return true;
}

static bool refuse_group_order(reader *r, const tune_extra *e)
{
    return refuse_extra(r, e, E_TUNE_LAYOUT, "has its axes in another order than the result and the sum have them",
                        "write the groups of the sum innermost, or in front of what is kept, in the order of the operands");
}

/* An axis of the groups' scales that numbers groups stands inside of all kept ones, or outside of them. */
static bool check_group_axis(reader *r, tune_extra *e, size_t axis, bool is_inside, size_t *before)
{
    e->groups_first = e->groups_first || !is_inside;
    if (*before > axis || e->groups_first == is_inside)
        return refuse_group_order(r, e);
    *before = axis + 1;
    return true;
}

/* Operands after the sum have whole groups of kept axes, in the order of the result. */
static bool check_extras(reader *r)
{
    tune_question *q = r->q;
    for (size_t i = 0; i < q->extra_count; i++) {
        tune_extra *e = &q->extras[i];
        int64_t size[TUNE_ROLES] = {1, 1, 1, 1};
        bool stands[TUNE_ROLES + 1] = {false};
        size_t before = 0, group_before = 0, kept = 0;
        int role = TUNE_BATCH;
        const bool is_scale = e->groups == 0;
        e->groups = is_scale ? tune_groups_of(q) : 1;
        for (size_t n = 0; n < e->tensor.count; n++) {
            const tune_axis *a = &q->axes[e->tensor.axes[n]];
            stands[a->role] = true;
            if (a->size == 1)
                continue;
            if (is_scale && a->role == TUNE_SUM) {
                if (!check_group_axis(r, e, e->tensor.axes[n], kept > 0, &group_before))
                    return false;
                continue;
            }
            kept += a->role != TUNE_BATCH;
            if (is_scale && group_before > 0 && (a->role == TUNE_BATCH || !e->groups_first))
                return refuse_group_order(r, e);
            if (a->role == TUNE_SUM)
                return refuse_extra(r, e, E_TUNE_AXIS, "has an axis that is summed, and meets the sum",
                                    "multiply it in front of the kernel");
            if ((int)a->role < role || ((int)a->role == role && before > e->tensor.axes[n]))
                return refuse_extra(r, e, E_TUNE_LAYOUT, "has its axes in another order than the result has them",
                                    "write them as the result's: batches, those of rows, those of columns");
            size[a->role] *= a->size;
            role = (int)a->role;
            before = e->tensor.axes[n] + 1;
        }
        for (int k = TUNE_BATCH; k < TUNE_SUM; k++) {
            e->has[k] = q->window_count > 0 ? stands[k] : size[k] > 1;
            e->names[k] = stands[k] && q->size[k] == 1;
            if (e->has[k] && size[k] != q->size[k])
                return refuse_extra(r, e, E_TUNE_LAYOUT, "has some axes of a kind and lacks others", "give it all of them, or none");
        }
        e->groups_first = e->groups_first && kept > 0;
        if (!is_scale && e->zero_of == TUNE_OUT && !settle_extra(r, e))
            return false;
    }
    return true;
}

/* Are sums, all that is done to them, and the result integers? */
static bool stays_whole(const tune_question *q, dtype multiplied)
{
    bool whole = dtype_row_of(multiplied)->accumulates_in == DTYPE_I32 && dtype_row_of(q->out_type)->kind == DTYPE_KIND_INT &&
                 tune_operations_are_whole(q->operations + 1, q->operation_count);
    for (size_t i = 0; i < q->extra_count; i++) {
        dtype type;
        const char *asked = q->extras[i].asked_type;
        if (q->extras[i].zero_of != TUNE_OUT)
            continue;
        const bool is_float = asked ? dtype_by_name(asked, &type) && dtype_row_of(type)->kind != DTYPE_KIND_INT
                                    : multiplied != q->type; /* sums are f32 then, and what meets them is */
        whole = whole && !is_float;
    }
    return whole;
}

/* What is done to the sums, and in which types. */
static bool find_epilogue(reader *r)
{
    tune_question *q = r->q;
    dtype sums = dtype_row_of(q->type)->accumulates_in;
    bool whole = stays_whole(q, q->type);
    dtype meets = q->meets = whole ? DTYPE_I32 : DTYPE_F32;
    for (size_t i = 0; i < q->extra_count; i++) {
        tune_extra *e = &q->extras[i];
        e->type = meets;
        if (e->zero_of != TUNE_OUT) {
            e->type = q->stored[e->zero_of];
            if (e->asked_type && (!dtype_by_name(e->asked_type, &e->type) || (e->type != DTYPE_I4 && e->type != DTYPE_I8)))
                return refuse_extra(r, e, E_TUNE_TYPE,
                                    arena_printf(r->diags->arena, "is of `%s`, and a zero point is of i4 or i8", e->asked_type),
                                    "give it another type, or leave it away");
            continue;
        }
        if (e->asked_type &&
            (!dtype_by_name(e->asked_type, &e->type) || (e->type != meets && !target_converts(ENGINE_ID_FETCH, e->type, meets))))
            return refuse_extra(r, e, E_TUNE_TYPE,
                                arena_printf(r->diags->arena, "is of `%s`, which is not fetched as the %s that it meets", e->asked_type,
                                             dtype_row_of(meets)->name),
                                "give it another type, or leave it away");
    }
    q->operations[0] = (tune_operation){.what = TUNE_ADD, .operand = "before", .of_sums = true};
    for (size_t i = 1; i <= q->operation_count; i++)
        if (q->operations[i].what == TUNE_FOLD_ADD)
            q->operations[i].operand = q->group_axis;
    q->whole = tune_epilogue_make(q->operations + 1, q->operation_count, whole, sums, q->out_type, r->diags->arena);
    q->last_part = tune_epilogue_make(q->operations, q->operation_count + 1, whole, sums, q->out_type, r->diags->arena);
    if (q->extra_count > 0 && q->group == 0 && q->whole.count < TUNE_PASSES_MAX) {
        q->waiting = q->whole;
        q->waiting.passes = ARENA_ARRAY(r->diags->arena, tune_pass, ++q->waiting.count);
        for (size_t i = 0; i < q->whole.count; i++)
            q->waiting.passes[i + 1] = q->whole.passes[i];
    }
    return true;
}

const tune_epilogue *tune_epilogue_of(const tune_question *q, int64_t parts, bool waits)
{
    return waits ? &q->waiting : parts > 1 ? &q->last_part : &q->whole;
}

/* Operands have the type that is multiplied, or one that is made it: where the image or filter of a convolution is fetched, or in a pass.
 */
static bool find_stored_types(reader *r)
{
    tune_question *q = r->q;
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT; p++) {
        const tune_tensor *t = &q->tensors[p];
        q->stored[p] = q->type;
        if (t->has_zero &&
            (!t->asked_type || (strcmp(t->asked_type, "i4") != 0 && strcmp(t->asked_type, "i8") != 0) || q->type != DTYPE_BF16)) {
            diag *d = diag_add(r->diags, E_TUNE_TYPE, t->range, "`%s` has a zero point, and is of neither i4 nor i8", t->name);
            diag_help(r->diags, d, "give it one of these types, or subtract in front of the kernel");
            return false;
        }
        if (!t->asked_type)
            continue;
        bool is_known = dtype_by_name(t->asked_type, &q->stored[p]),
             casts = is_known && (q->window_count > 0 ? target_converts(ENGINE_ID_FETCH, q->stored[p], q->type)
                                                      : widened_converts(q->stored[p], q->type));
        if (casts || strcmp(t->asked_type, dtype_row_of(q->type)->name) == 0)
            continue;
        diag *d = diag_add(r->diags, E_TUNE_TYPE, t->range, "`%s` is of `%s`, and %s is multiplied", t->name, t->asked_type,
                           dtype_row_of(q->type)->name);
        diag_help(r->diags, d,
                  "leave the type away, --dtype gives it to both operands; where bf16 is multiplied an operand may be f32, and that of a "
                  "contraction i4, i8, f8e4m3 or f8e5m2");
        return false;
    }
    return true;
}

/* Of two types of operands the one that the other one is made is multiplied, whichever of them --dtype gives. */
static void widen_type(tune_question *q)
{
    const dtype given = q->type;
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT && q->window_count == 0; p++) {
        dtype asked;
        const char *name = q->tensors[p].asked_type;
        if (name && dtype_by_name(name, &asked) && asked != DTYPE_F32 && dtype_is_operand(asked) && !dtype_is_staging(asked) &&
            dtype_row_of(asked)->bits > dtype_row_of(q->type)->bits && widened_converts(given, asked))
            q->type = asked;
    }
    const bool has_zero = q->tensors[TUNE_LEFT].has_zero || q->tensors[TUNE_RIGHT].has_zero;
    if (has_zero && dtype_row_of(given)->kind == DTYPE_KIND_INT) /* the difference of two has a bit more */
        q->type = DTYPE_BF16;
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT && q->type != given; p++)
        if (!q->tensors[p].asked_type)
            q->tensors[p].asked_type = dtype_row_of(given)->name;
}

static bool find_types(reader *r, const visa_tune_options *o)
{
    tune_question *q = r->q;
    const char *type = o->dtype ? o->dtype : "bf16";
    if (!dtype_by_name(type, &q->type) || !dtype_is_operand(q->type) || dtype_is_staging(q->type)) {
        diag *d = diag_add(r->diags, E_TUNE_TYPE, SRC_NOWHERE, "`%s` is no type that the Reducer multiplies", type);
        diag_help(r->diags, d, "take i4, i8, f8e4m3, f8e5m2 or bf16");
        return false;
    }
    const dtype given = q->type;
    widen_type(q);
    q->out_type = DTYPE_I32;
    dtype last = q->out_type = stays_whole(q, given) ? DTYPE_I32 : DTYPE_F32;
    if (!o->out_dtype)
        return true;
    const char *found = dtype_row_of(last)->name;
    bool known = dtype_by_name(o->out_dtype, &q->out_type);
    if (known) /* sums of integers become f32 for it, and others are rounded */
        last = dtype_row_of(q->out_type)->kind == DTYPE_KIND_INT ? DTYPE_I32 : DTYPE_F32;
    if (!known || (q->out_type != last && !target_converts(ENGINE_ID_CAST, last, q->out_type))) {
        diag *d = diag_add(r->diags, E_TUNE_TYPE, SRC_NOWHERE, "%s of %s are %s, which the Cast Engine does not make `%s`",
                           q->operation_count ? "results" : "sums", type, found, o->out_dtype);
        diag_help(r->diags, d, "leave --out away for %s", found);
        return false;
    }
    return true;
}

/* Rows of what lies turned are of the kept axis. Where either axis has one position nothing is turned. */
static void find_rows(tune_question *q)
{
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT; p++)
        q->turned[p] = q->turned[p] && q->size[TUNE_SUM] > 1 && q->size[tune_kept_of(q, (tune_place)p)] > 1;
}

/* What is made of another type has rows of whole words of the copy that brings it, of the sum or, where it lies turned, of what is kept;
 * zero points meet rows of the sum. */
static bool check_widened(const tune_question *q, diag_list *diags)
{
    enum { WORD_BITS = 64 };
    for (int p = TUNE_LEFT; p <= TUNE_RIGHT; p++) {
        const int64_t unit = larger(8, WORD_BITS / dtype_row_of(q->stored[p])->bits), row = q->turned[p]
                                                                                                ? q->size[tune_kept_of(q, (tune_place)p)]
                                                                                            : q->group > 0 ? q->group
                                                                                                           : q->size[TUNE_SUM];
        const bool meets_zeros = q->turned[p] && q->tensors[p].zero > 0;
        if (q->stored[p] == q->type || (row % unit == 0 && !meets_zeros))
            continue;
        diag *d = diag_add(diags, E_TUNE_LAYOUT, q->tensors[p].range,
                           meets_zeros ? "`%s` is stored in %s, and %s is multiplied: its zero points meet no rows of %" PRId64
                                         " elements of the sum"
                                       : "`%s` is stored in %s, and %s is multiplied: its rows are no whole %" PRId64 " elements",
                           q->tensors[p].name, dtype_row_of(q->stored[p])->name, dtype_row_of(q->type)->name, unit);
        diag_help(diags, d, "write what is summed innermost in it, and take a multiple of %" PRId64 " of that; zeros change nothing", unit);
        return false;
    }
    return true;
}

static bool check_rows(const tune_question *q, diag_list *diags)
{
    tune_role innermost = q->size[TUNE_COLUMN] > 1 ? TUNE_COLUMN : q->size[TUNE_ROW] > 1 ? TUNE_ROW : TUNE_BATCH;
    for (int p = TUNE_LEFT; p <= TUNE_OUT; p++) {
        const dtype_row *of = dtype_row_of(p == TUNE_OUT ? q->out_type : q->stored[p]);
        int64_t row = q->size[p == TUNE_OUT ? innermost : q->turned[p] ? tune_kept_of(q, (tune_place)p) : TUNE_SUM];
        if (row * of->bits % 8 == 0)
            continue;
        diag *d = diag_add(diags, E_TUNE_SIZE, SRC_NOWHERE,
                           "rows of %" PRId64 " elements of %s in `%s` do not end with a byte, which no copy can cut", row, of->name,
                           q->tensors[p].name);
        diag_help(diags, d, "take an even number of elements; zeros change nothing");
        return false;
    }
    return true;
}

dtype tune_stored_of(const tune_question *q, tune_role role)
{
    return q->window_count > 0 ? q->type : q->stored[role == TUNE_ROW ? q->stream : q->weights];
}

bool tune_is_widened(const tune_question *q, tune_role role)
{
    return tune_stored_of(q, role) != q->type;
}

int64_t tune_groups_of(const tune_question *q)
{
    return q->group > 0 ? q->size[TUNE_SUM] / q->group : 1;
}

bool tune_is_one_element(const tune_question *q, const tune_extra *e)
{
    return e->groups == 1 && e->has[TUNE_ROW] && !e->has[TUNE_COLUMN] && !e->has[TUNE_BATCH] && q->size[TUNE_ROW] == 1;
}

const char *tune_axis_of_extra(const tune_question *q, const tune_extra *e, tune_role role)
{
    return e->has[role] || e->names[role] ? q->axis_text[role] : NULL;
}

unsigned tune_roles_of_extra(const tune_extra *e)
{
    unsigned roles = 0;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        roles |= e->has[role] ? 1U << role : 0;
    return roles;
}

tune_role tune_kept_of(const tune_question *q, tune_place operand)
{
    return operand == q->weights ? TUNE_COLUMN : TUNE_ROW;
}

dtype tune_type_of_values(const tune_question *q)
{
    return q->meets == DTYPE_I32 ? DTYPE_I32 : DTYPE_F32;
}

timing_preset tune_timing_of(const visa_tune_options *o)
{
    timing_preset timing = TIMING_DOCUMENTED;
    if (o->timing)
        timing_preset_by_name(o->timing, &timing);
    return timing;
}

bool tune_question_read(const tune_expression *e, const visa_tune_options *options, diag_list *diags, tune_question *out)
{
    *out = (tune_question){.text = e->text, .groups = 1};
    reader r = {.e = e, .diags = diags, .q = out};
    out->timing = tune_timing_of(options);
    out->most_slices = options->slices;
    if (!find_contraction(&r) || !assign_roles(&r))
        return false;
    find_filters(out);
    find_images(out);
    name_roles(out, diags->arena);
    find_group(&r);
    if (!find_types(&r, options) || !find_stored_types(&r) || !check_extras(&r) || !find_epilogue(&r))
        return false;
    imply_axes(out, diags->arena);
    tune_windows_arrange(out);
    tune_windows_complete(out);
    if (out->window_count > 0 && !check_windows(&r))
        return false;
    tune_windows_order(out);
    for (int p = 0; p < TUNE_PLACES && out->window_count == 0; p++)
        if (!out->tensors[p].is_free && !check_order(&r, (tune_place)p))
            return false;
    if (out->window_count > 0)
        return true;
    find_rows(out);
    return check_widened(out, diags) && check_rows(out, diags);
}

/* A tree over the axes of roles, of which `summed` are summed, a bit each, and tensors with other numbers. */
static const tune_node *join_axes(const tune_node *n, const tune_question *q, unsigned summed, const size_t *number_of, arena *a)
{
    if (!n)
        return NULL;
    tune_node *made = ARENA_NEW(a, tune_node);
    *made = *n;
    made->over = 0;
    for (size_t i = 0; i < q->axis_count; i++)
        made->over |= n->over >> i & 1 && q->axes[i].role == TUNE_SUM ? summed : 0;
    if (n->kind == TUNE_NODE_PRODUCT) /* which may name none of them */
        made->over = summed;
    made->left = join_axes(n->left, q, summed, number_of, a);
    made->right = join_axes(n->right, q, summed, number_of, a);
    if (n->kind == TUNE_NODE_TENSOR)
        made->tensor = number_of[n->tensor];
    if (n->kind == TUNE_NODE_PRODUCT && made->left->tensor > made->right->tensor) {
        const tune_node *left = made->left;
        made->left = made->right;
        made->right = left;
    }
    return made;
}

/* Has the operand, or the result, the kept axis of a role? */
static bool keeps(const tune_question *q, const size_t *operands, size_t tensor, tune_role role)
{
    return tensor == 0 || tensor == operands[role == TUNE_ROW ? q->stream : q->weights];
}

/* An axis of one position that values have: rows in front of columns, what is kept in front of the sum. */
static void imply_axis(const tune_expression *e, tune_tensor *x, size_t axis, tune_role role)
{
    size_t at = 0;
    while (at < x->count && (e->absent >> x->axes[at] & 1 || e->axes[x->axes[at]].role < role))
        at++;
    memmove(&x->axes[at + 1], &x->axes[at], (x->count - at) * sizeof *x->axes);
    x->axes[at] = axis;
    x->count++;
}

tune_expression tune_question_joined(const tune_expression *e, const tune_question *q, bool implies, bool sums, arena *a)
{
    tune_expression joined = *e;
    size_t of_role[TUNE_ROLES] = {0}, implied[TUNE_ROLES] = {0};
    joined.axis_count = 0;
    joined.absent = joined.implied = 0;
    for (int role = 0; role < TUNE_ROLES; role++) {
        const bool is_named = q->axis_text[role] && (role == TUNE_SUM ? sums : !q->is_implied[role]);
        if (is_named) {
            joined.absent |= role != TUNE_SUM && q->size[role] == 1 ? 1U << joined.axis_count : 0;
            of_role[role] = joined.axis_count;
            joined.axes[joined.axis_count++] =
                (tune_axis){q->axis_text[role], q->axis_text[role], q->size[role], (tune_role)role, e->axes[0].range};
        }
        if (!implies || q->size[role] > 1 || (role != TUNE_ROW && role != TUNE_COLUMN))
            continue;
        const char *name = q->axis_text[role] ? q->axis_text[role] : role == TUNE_ROW ? "ROW" : "COLUMN";
        name = is_named ? name : tune_unused_name(q->axes, q->axis_count, name, a);
        joined.implied |= 1U << joined.axis_count;
        implied[role] = joined.axis_count;
        joined.axes[joined.axis_count++] = (tune_axis){name, name, 1, (tune_role)role, e->axes[0].range};
    }
    /* where tensors lie in HBM is by their order, and which channels they lie in counts */
    const tune_node *product = product_in(e->root);
    const size_t operands[TUNE_PLACES] = {[TUNE_LEFT] = product->left->tensor, [TUNE_RIGHT] = product->right->tensor};
    size_t number_of[TUNE_TENSORS_MAX] = {0}, next = 1;
    number_of[operands[q->stream]] = next++;
    number_of[operands[q->weights]] = next++;
    for (size_t t = 1; t < e->tensor_count; t++)
        if (number_of[t] == 0)
            number_of[t] = next++;
    for (size_t t = 0; t < e->tensor_count; t++) {
        tune_tensor *x = &joined.tensors[number_of[t]];
        unsigned seen = 0;
        *x = e->tensors[t];
        x->count = 0;
        for (size_t i = 0; i < e->tensors[t].count; i++) {
            const tune_axis *axis = &q->axes[e->tensors[t].axes[i]];
            const tune_role role = axis->role;
            if (role == TUNE_ROLES || seen >> role & 1 || (axis->size == 1 && q->size[role] > 1)) /* the others are where the role is */
                continue;
            seen |= 1U << role;
            if (role != TUNE_SUM || q->size[role] > 1)
                x->axes[x->count++] = of_role[role];
        }
        if (q->size[TUNE_SUM] == 1 &&
            (t == operands[TUNE_LEFT] || t == operands[TUNE_RIGHT])) /* one position lies anywhere, or is implied */
            x->axes[x->count++] = of_role[TUNE_SUM];
        for (int role = TUNE_ROW; role <= TUNE_COLUMN; role++)
            if (implies && q->size[role] == 1 && keeps(q, operands, t, (tune_role)role))
                imply_axis(&joined, x, implied[role], (tune_role)role);
    }
    joined.root = join_axes(e->root, q, sums ? 1U << of_role[TUNE_SUM] : 0, number_of, a);
    return joined;
}

int64_t tune_turn_rows(const target *t, const tune_question *q)
{
    return t->transpose_row_bytes * 8 / dtype_row_of(q->type)->bits;
}

int64_t tune_turn_columns(const tune_question *q, int64_t tile)
{
    return dtype_row_of(q->type)->bits == 4 || tile % 16 == 0 ? 16 : 8;
}

int64_t tune_turned_tile(const tune_question *q, int64_t tile)
{
    return round_up(tile, tune_turn_columns(q, tile));
}

int64_t tune_bytes_of(dtype type, int64_t elements)
{
    return ceil_div(elements * dtype_row_of(type)->bits, 8);
}
