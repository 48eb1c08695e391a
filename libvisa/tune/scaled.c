#include "libvisa/tune/scaled.h"

#include <math.h>

#include "libvisa/tune/factors.h"

enum { FACTORS_MAX = TUNE_TENSORS_MAX, SUMS_MAX = 4 };

/* A sum inside of the outermost one: its factors are some of all, one after the other. */
typedef struct inner_sum {
    size_t begin, end;
    unsigned over;
} inner_sum;

/* Sums of sums as one sum over all of their axes. */
typedef struct flat_sum {
    const tune_expression *e;
    size_t factors[FACTORS_MAX], count;  /* tensors, */
    const tune_node *zeros[FACTORS_MAX]; /* and what is subtracted from each; NULL: nothing */
    double signs[FACTORS_MAX];           /* -1: it is added */
    double number;
    unsigned over;
    inner_sum inner[SUMS_MAX];
    size_t inner_count;
} flat_sum;

static bool is_sum(const tune_node *n)
{
    return n->kind == TUNE_NODE_PRODUCT || (n->kind == TUNE_NODE_REDUCTION && n->fold == TUNE_FOLD_SUM);
}

/* `W[n, k] - z[n]`, `W[n, k] - 8`, `W[n, k] + 8`, `8 - W[n, k]`. */
static bool take_zero(const tune_node *n, flat_sum *out)
{
    const bool adds = n->what == TUNE_ADD, reversed = n->left->kind == TUNE_NODE_NUMBER;
    const tune_node *of = reversed ? n->right : n->left, *zero = reversed ? n->left : n->right;
    if (of->kind != TUNE_NODE_TENSOR || out->count == FACTORS_MAX ||
        (zero->kind != TUNE_NODE_NUMBER && (adds || zero->kind != TUNE_NODE_TENSOR)))
        return false;
    out->number *= reversed && !adds ? -1 : 1;
    out->zeros[out->count] = zero;
    out->signs[out->count] = adds ? -1 : 1;
    out->factors[out->count++] = of->tensor;
    return true;
}

/* False: something else than products, sums, tensors and numbers is among them, or there are too many. */
static bool flatten(const tune_node *n, flat_sum *out)
{
    if (n->kind == TUNE_NODE_NUMBER) {
        out->number *= n->number;
        return true;
    }
    if (n->kind == TUNE_NODE_TENSOR) {
        if (out->count == FACTORS_MAX)
            return false;
        out->zeros[out->count] = NULL;
        out->factors[out->count++] = n->tensor;
        return true;
    }
    if (n->kind == TUNE_NODE_BINARY && (n->what == TUNE_SUBTRACT || n->what == TUNE_ADD))
        return take_zero(n, out);
    if (n->kind == TUNE_NODE_BINARY && n->what == TUNE_TIMES)
        return flatten(n->left, out) && flatten(n->right, out);
    if (!is_sum(n) || out->inner_count == SUMS_MAX || (out->over & n->over))
        return false;
    inner_sum *one = &out->inner[out->inner_count++];
    *one = (inner_sum){.begin = out->count, .over = n->over};
    out->over |= n->over;
    if (!flatten(n->left, out) || (n->right && !flatten(n->right, out)))
        return false;
    one->end = out->count;
    return true;
}

/* Does no factor outside of a sum have an axis by the name of one that ends in it? */
static bool keeps_axes_apart(const flat_sum *x)
{
    for (size_t i = 0; i < x->inner_count; i++)
        for (size_t k = 0; k < x->count; k++) {
            const bool is_outside = k < x->inner[i].begin || k >= x->inner[i].end,
                       has_zero = x->zeros[k] && x->zeros[k]->kind == TUNE_NODE_TENSOR;
            const unsigned has = tune_axes_of(x->e, x->factors[k]) | (has_zero ? tune_axes_of(x->e, x->zeros[k]->tensor) : 0);
            if (is_outside && (has & x->inner[i].over))
                return false;
        }
    return true;
}

/* Do the groups of an operand stand outside of what each of them adds? */
static bool has_groups_outside(const tune_expression *e, size_t tensor, unsigned groups, unsigned added)
{
    const tune_tensor *t = &e->tensors[tensor];
    bool adds = false;
    for (size_t i = 0; i < t->count; i++) {
        adds = adds || added >> t->axes[i] & 1;
        if (adds && groups >> t->axes[i] & 1)
            return false;
    }
    return true;
}

static const tune_node *node(arena *a, tune_node n)
{
    tune_node *out = ARENA_NEW(a, tune_node);
    *out = n;
    return out;
}

/* The zero point of a factor: of an operand, with axes of its own and of the groups. False: it is none. */
static bool put_zero(const flat_sum *x, size_t factor, unsigned over, unsigned groups, tune_expression *out)
{
    enum { LARGEST = 128 }; /* whose difference from an i8 is in bf16 */
    const tune_node *zero = x->zeros[factor];
    tune_tensor *t = &out->tensors[x->factors[factor]];
    if (!zero)
        return true;
    t->has_zero = true;
    t->zero = zero->kind == TUNE_NODE_TENSOR ? zero->tensor : 0;
    t->zero_number = zero->number * x->signs[factor];
    if (t->zero == 0)
        return t->zero_number == floor(t->zero_number) && fabs(t->zero_number) <= LARGEST;
    const unsigned has = tune_axes_of(x->e, t->zero), of = has & over;
    for (size_t i = 0; i < x->count; i++)
        if (x->factors[i] == t->zero)
            return false;
    return !(has & ~tune_axes_of(x->e, x->factors[factor])) && (of == 0 || of == groups);
}

/* The contraction in place of the sums `of`, with what all of its results are multiplied with. NULL: it is none. */
static const tune_node *contraction_of(const tune_node *of, const flat_sum *x, arena *a, tune_expression *out)
{
    const tune_expression *e = x->e;
    unsigned sized = 0, groups = 0;
    size_t operands[2], operand_count = 0;
    for (size_t i = 0; i < e->axis_count; i++)
        sized |= e->axes[i].size > 1 ? 1U << i : 0;
    const unsigned over = x->over & sized;
    for (size_t i = 0; i < x->count; i++) {
        const unsigned has = tune_axes_of(e, x->factors[i]) & over;
        if (has == over) {
            if (operand_count == 2)
                return NULL;
            operands[operand_count++] = x->factors[i];
        } else
            groups |= has;
        if (x->zeros[i] && has != over)
            return NULL;
        groups |= x->zeros[i] && x->zeros[i]->kind == TUNE_NODE_TENSOR ? tune_axes_of(e, x->zeros[i]->tensor) & over : 0;
    }
    if (operand_count < 2 || operands[0] == operands[1] || over == 0 || groups == over)
        return NULL;
    const unsigned left = tune_axes_of(e, operands[0]) & sized, right = tune_axes_of(e, operands[1]) & sized;
    if ((left | right) == (left & right) || !has_groups_outside(e, operands[0], groups, over & ~groups) ||
        !has_groups_outside(e, operands[1], groups, over & ~groups))
        return NULL;
    *out = *e;
    out->scale_count = 0;
    out->grouped = groups;
    for (size_t i = 0; i < x->count; i++)
        if (!put_zero(x, i, over, groups, out))
            return NULL;
    const tune_node *tensors[2];
    for (int i = 0; i < 2; i++)
        tensors[i] = node(a, (tune_node){.kind = TUNE_NODE_TENSOR, .range = of->range, .tensor = operands[i]});
    const tune_node *made =
        node(a, (tune_node){.kind = TUNE_NODE_PRODUCT, .range = of->range, .over = x->over, .left = tensors[0], .right = tensors[1]});
    for (size_t i = 0; i < x->count; i++) {
        const size_t tensor = x->factors[i];
        const unsigned has = tune_axes_of(e, tensor) & over;
        if (has == over)
            continue;
        if (has != 0 && (has != groups || out->scale_count == TUNE_SCALES_MAX))
            return NULL;
        if ((tune_axes_of(e, tensor) & x->over) && !out->tensors[tensor].asked_type) /* of one group, too */
            out->tensors[tensor].asked_type = "f32";
        if (has != 0) {
            out->scales[out->scale_count++] = tensor;
            continue;
        }
        const tune_node *factor = node(a, (tune_node){.kind = TUNE_NODE_TENSOR, .range = of->range, .tensor = tensor});
        made = node(a, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .range = of->range, .left = made, .right = factor});
    }
    if (x->number != 1) {
        const tune_node *factor = node(a, (tune_node){.kind = TUNE_NODE_NUMBER, .range = of->range, .number = x->number});
        made = node(a, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .range = of->range, .left = made, .right = factor});
    }
    return made;
}

/* The outermost sum of a tree; NULL: it has none. */
static const tune_node *sum_in(const tune_node *n)
{
    if (!n || n->kind == TUNE_NODE_PRODUCT || n->kind == TUNE_NODE_REDUCTION)
        return n;
    const tune_node *left = sum_in(n->left);
    return left ? left : sum_in(n->right);
}

/* The tree with another node in the place of one. */
static const tune_node *with_node(const tune_node *n, const tune_node *from, const tune_node *to, arena *a)
{
    if (!n || n == from)
        return n ? to : NULL;
    tune_node copy = *n;
    copy.left = with_node(n->left, from, to, a);
    copy.right = with_node(n->right, from, to, a);
    return node(a, copy);
}

static bool has_tensor(const tune_node *n, size_t tensor)
{
    return n && ((n->kind == TUNE_NODE_TENSOR && n->tensor == tensor) || has_tensor(n->left, tensor) || has_tensor(n->right, tensor));
}

static bool has_tensor_outside(const tune_node *n, const tune_node *sum, size_t tensor)
{
    return n && n != sum &&
           ((n->kind == TUNE_NODE_TENSOR && n->tensor == tensor) || has_tensor_outside(n->left, sum, tensor) ||
            has_tensor_outside(n->right, sum, tensor));
}

bool tune_scaled_read(const tune_expression *e, arena *a, tune_expression *out)
{
    const tune_node *sum = sum_in(e->root);
    flat_sum x = {.e = e, .number = 1};
    if (!sum || e->window_count > 0 || !is_sum(sum) || !flatten(sum, &x) || !keeps_axes_apart(&x))
        return false;
    const size_t inside = tune_count_products(sum) + tune_count_reductions(sum);
    if (tune_count_products(e->root) + tune_count_reductions(e->root) != inside)
        return false;
    const tune_node *made = contraction_of(sum, &x, a, out);
    if (!made || (sum->kind == TUNE_NODE_PRODUCT && out->scale_count == 0))
        return false;
    for (size_t i = 0; i < x.count; i++)
        if (out->tensors[x.factors[i]].zero && has_tensor_outside(e->root, sum, out->tensors[x.factors[i]].zero))
            return false;
    out->root = with_node(e->root, sum, made, a);
    for (size_t i = 0; i < out->scale_count; i++)
        if (has_tensor(out->root, out->scales[i]))
            return false;
    return true;
}

tune_expression tune_scaled_flowing(const tune_expression *scaled, bool flat, arena *a)
{
    tune_expression x = *scaled;
    const tune_node *sum = sum_in(scaled->root);
    const src_range range = sum->range;
    const tune_node *made =
        flat ? node(a, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .range = range, .left = sum->left, .right = sum->right})
             : node(a,
                    (tune_node){
                        .kind = TUNE_NODE_PRODUCT, .range = range, .over = sum->over & ~x.grouped, .left = sum->left, .right = sum->right});
    for (size_t i = 0; i < x.scale_count; i++) {
        const tune_node *scale = node(a, (tune_node){.kind = TUNE_NODE_TENSOR, .range = range, .tensor = x.scales[i]});
        made = node(a, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .range = range, .left = made, .right = scale});
    }
    tune_node *all = ARENA_NEW(a, tune_node);
    *all = (tune_node){
        .kind = TUNE_NODE_REDUCTION, .fold = TUNE_FOLD_SUM, .range = range, .over = flat ? sum->over : sum->over & x.grouped, .left = made};
    x.root = with_node(scaled->root, sum, all, a);
    tune_factors_arrange(&x, &all, 1, true, a);
    return tune_expression_flowing(&x, a);
}

const char *tune_scaled_operand(const tune_expression *scaled)
{
    return scaled->tensors[sum_in(scaled->root)->left->tensor].name;
}
