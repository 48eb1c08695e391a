#include "libvisa/tune/factors.h"

enum { FACTORS_MAX = 8, FACTORS_OF_SUMS = 3 };

typedef struct arranger {
    const tune_expression *e;
    unsigned sized; /* axes of more than one position */
    unsigned last;  /* the result's innermost of them */
    bool sums;
    arena *a;
} arranger;

typedef struct factor {
    const tune_node *node;
    unsigned axes;
} factor;

/* Axes of what a node makes, of more than one position. */
static unsigned axes_of(const arranger *x, const tune_node *n)
{
    if (!n)
        return 0;
    if (n->kind == TUNE_NODE_TENSOR)
        return tune_axes_of(x->e, n->tensor) & x->sized;
    unsigned axes = axes_of(x, n->left) | axes_of(x, n->right);
    bool ends = n->kind == TUNE_NODE_PRODUCT || (n->kind == TUNE_NODE_REDUCTION && n->fold != TUNE_FOLD_SOFTMAX);
    return ends ? axes & ~n->over : axes;
}

static bool is_product(const tune_node *n)
{
    return n->kind == TUNE_NODE_BINARY && n->what == TUNE_TIMES;
}

/* Has one of both all axes of the other? */
static bool is_element_wise(const arranger *x, const tune_node *a, const tune_node *b)
{
    unsigned left = axes_of(x, a), right = axes_of(x, b);
    return (left & ~right) == 0 || (right & ~left) == 0;
}

/* Is it a tensor, as weights are, which have the result's innermost axis? */
static bool are_weights(const arranger *x, const tune_node *n, const tune_node *rows)
{
    return n->kind == TUNE_NODE_TENSOR && (rows->kind == TUNE_NODE_TENSOR || !(axes_of(x, rows) & ~axes_of(x, n) & x->last));
}

/* May it stay as it is? A sum multiplies by a tensor with other axes what it takes. */
static bool stays(const arranger *x, const tune_node *n, bool is_summed)
{
    if (!is_product(n))
        return true;
    bool contracts = is_summed && (are_weights(x, n->left, n->right) || are_weights(x, n->right, n->left));
    return (contracts || is_element_wise(x, n->left, n->right)) && stays(x, n->left, false) && stays(x, n->right, false);
}

/* False: there are too many. */
static bool find_factors(const arranger *x, const tune_node *n, factor *out, size_t *count)
{
    if (is_product(n))
        return find_factors(x, n->left, out, count) && find_factors(x, n->right, out, count);
    if (*count == FACTORS_MAX)
        return false;
    out[(*count)++] = (factor){n, axes_of(x, n)};
    return true;
}

static factor multiply(const arranger *x, factor a, factor b)
{
    tune_node *n = ARENA_NEW(x->a, tune_node);
    *n = (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .range = a.node->range, .left = a.node, .right = b.node};
    return (factor){n, a.axes | b.axes};
}

static void take_out(factor *f, size_t *count, size_t at)
{
    for (--*count; at < *count; at++)
        f[at] = f[at + 1];
}

/* Each to one that has all of its axes, the rows rather than the weights, which are a tensor. */
static void multiply_element_wise(const arranger *x, factor *f, size_t *count)
{
    for (size_t i = *count; i-- > 0;) {
        size_t to = *count;
        for (size_t k = 0; k < *count; k++) {
            bool takes = k != i && (f[i].axes & ~f[k].axes) == 0 && (f[i].axes != f[k].axes || k < i);
            if (takes && (to == *count || (f[to].axes & x->last && !(f[k].axes & x->last))))
                to = k;
        }
        if (to == *count)
            continue;
        f[to] = multiply(x, f[to], f[i]);
        take_out(f, count, i);
    }
}

/* Of three one waits for the sum of two over axes that it has not, and others are left for the outer sum: `weights`, one that has the
 * result's innermost axis. */
static bool sum_two(const arranger *x, unsigned over, bool weights, factor *f, size_t *count)
{
    for (size_t last = *count; last-- > 0;) {
        if (weights != ((f[last].axes & x->last) != 0))
            continue;
        factor pair[2];
        size_t found = 0;
        for (size_t i = 0; i < *count; i++)
            if (i != last)
                pair[found++] = f[i];
        unsigned inner = over & pair[0].axes & pair[1].axes & ~f[last].axes, all = pair[0].axes | pair[1].axes | f[last].axes;
        bool are_tensors = pair[0].node->kind == TUNE_NODE_TENSOR && pair[1].node->kind == TUNE_NODE_TENSOR;
        if (inner == 0 || (over & all & ~inner) == 0 || !are_tensors)
            continue;
        tune_node *n = ARENA_NEW(x->a, tune_node);
        *n = (tune_node){
            .kind = TUNE_NODE_PRODUCT, .range = pair[0].node->range, .over = inner, .left = pair[0].node, .right = pair[1].node};
        f[1] = f[last];
        f[0] = (factor){n, (pair[0].axes | pair[1].axes) & ~inner};
        *count = 2;
        return true;
    }
    return false;
}

static void arrange_sum(const arranger *x, tune_node *sum)
{
    factor f[FACTORS_MAX];
    size_t count = 0;
    if (!find_factors(x, sum->left, f, &count))
        return;
    multiply_element_wise(x, f, &count);
    if ((count > 1 && !x->sums) ||
        (count == FACTORS_OF_SUMS && !sum_two(x, sum->over, true, f, &count) && !sum_two(x, sum->over, false, f, &count)) || count > 2)
        return;
    if (f[0].node->kind == TUNE_NODE_PRODUCT)
        sum->over &= ~f[0].node->over;
    bool is_contraction = count == 2 && f[0].node->kind == TUNE_NODE_TENSOR && f[1].node->kind == TUNE_NODE_TENSOR;
    sum->left = count == 1 ? f[0].node : multiply(x, f[0], f[1]).node;
    if (!is_contraction)
        return;
    sum->kind = TUNE_NODE_PRODUCT;
    sum->left = f[0].node;
    sum->right = f[1].node;
}

/* In the tree, and in no reduction of it? */
static bool stands_outside(const tune_node *tree, const tune_node *n)
{
    if (!tree || tree == n || tree->kind == TUNE_NODE_REDUCTION)
        return tree == n;
    return stands_outside(tree->left, n) || stands_outside(tree->right, n);
}

/* `mean(k) A[m, k] * B[n, k]` is a sum, and its factor. */
static tune_node *sum_of_mean(const arranger *x, tune_node *n)
{
    int64_t count = 1;
    for (size_t i = 0; i < x->e->axis_count; i++)
        count *= n->over >> i & 1 ? x->e->axes[i].size : 1;
    tune_node *sum = ARENA_NEW(x->a, tune_node), *part = ARENA_NEW(x->a, tune_node);
    *sum = *n;
    sum->fold = TUNE_FOLD_SUM;
    *part = (tune_node){.kind = TUNE_NODE_NUMBER, .range = n->range, .number = 1 / (double)count};
    *n = (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .range = n->range, .left = sum, .right = part};
    return sum;
}

/* ---- terms ---- */

enum { TERMS_MAX = 8 };

typedef struct term {
    const tune_node *node;
    bool is_subtracted;
} term;

static bool is_sum_of_terms(const tune_node *n)
{
    return n->kind == TUNE_NODE_BINARY && (n->what == TUNE_ADD || n->what == TUNE_SUBTRACT);
}

/* False: there are too many. `apart`: two of them meet of which none has all axes of the other. */
static bool find_terms(const arranger *x, const tune_node *n, bool is_subtracted, term *out, size_t *count, bool *apart)
{
    if (is_sum_of_terms(n)) {
        *apart = *apart || !is_element_wise(x, n->left, n->right);
        return find_terms(x, n->left, is_subtracted, out, count, apart) &&
               find_terms(x, n->right, is_subtracted != (n->what == TUNE_SUBTRACT), out, count, apart);
    }
    if (*count == TERMS_MAX)
        return false;
    out[(*count)++] = (term){n, is_subtracted};
    return true;
}

static const tune_node *binary(const arranger *x, src_range range, tune_operator what, const tune_node *a, const tune_node *b)
{
    tune_node *n = ARENA_NEW(x->a, tune_node);
    *n = (tune_node){.kind = TUNE_NODE_BINARY, .what = what, .range = range, .left = a, .right = b};
    return n;
}

/* `u[i] + v[j] - 2 * S[i, j]`: terms come in any order, so one that has all axes is in front, and the others meet it one by one. */
static void arrange_terms(const arranger *x, tune_node *n)
{
    term terms[TERMS_MAX];
    size_t count = 0, first = 0;
    bool apart = false;
    const unsigned all = axes_of(x, n);
    if (!find_terms(x, n, false, terms, &count, &apart) || !apart)
        return;
    while (first < count && axes_of(x, terms[first].node) != all)
        first++;
    if (first == count)
        return;
    const tune_node *made = terms[first].node;
    if (terms[first].is_subtracted) {
        tune_node *minus = ARENA_NEW(x->a, tune_node);
        *minus = (tune_node){.kind = TUNE_NODE_NUMBER, .range = n->range, .number = -1};
        made = binary(x, n->range, TUNE_TIMES, made, minus);
    }
    for (size_t i = 0; i < count; i++)
        if (i != first)
            made = binary(x, n->range, terms[i].is_subtracted ? TUNE_SUBTRACT : TUNE_ADD, made, terms[i].node);
    *n = *made;
}

/* Two tensors that have all axes together; without a sum their product is one over nothing. */
static const tune_node *product_of_two(const arranger *x, unsigned all, factor *f, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        for (size_t k = i + 1; k < *count; k++) {
            if (f[i].node->kind != TUNE_NODE_TENSOR || f[k].node->kind != TUNE_NODE_TENSOR || (f[i].axes | f[k].axes) != all)
                continue;
            tune_node *n = ARENA_NEW(x->a, tune_node);
            *n = (tune_node){.kind = TUNE_NODE_PRODUCT, .range = f[i].node->range, .left = f[i].node, .right = f[k].node};
            take_out(f, count, k);
            take_out(f, count, i);
            return n;
        }
    return NULL;
}

/* `a[m] * e[n] * S[m, n]`: so do factors. */
static void arrange_product(const arranger *x, tune_node *n)
{
    factor f[FACTORS_MAX];
    size_t count = 0, first = 0;
    const unsigned all = axes_of(x, n);
    if (!find_factors(x, n, f, &count))
        return;
    while (first < count && f[first].axes != all)
        first++;
    const tune_node *made = first < count ? f[first].node : product_of_two(x, all, f, &count);
    if (!made)
        return;
    if (first < count && made == f[first].node)
        take_out(f, &count, first);
    for (size_t i = 0; i < count; i++)
        made = binary(x, n->range, TUNE_TIMES, made, f[i].node);
    *n = *made;
}

/* Is it a part of a longer sum of terms, or of a longer product? */
static bool is_part(tune_node *const *nodes, size_t count, const tune_node *n)
{
    for (size_t i = 0; i < count; i++)
        if ((nodes[i]->left == n || nodes[i]->right == n) &&
            ((is_sum_of_terms(nodes[i]) && is_sum_of_terms(n)) || (is_product(nodes[i]) && is_product(n))))
            return true;
    return false;
}

void tune_factors_arrange(tune_expression *e, tune_node *const *nodes, size_t count, bool sums, arena *a)
{
    arranger x = {.e = e, .sums = sums, .a = a};
    const tune_tensor *out = &e->tensors[0];
    for (size_t i = 0; i < e->axis_count; i++)
        x.sized |= e->axes[i].size > 1 ? 1U << i : 0;
    for (size_t i = 0; i < out->count; i++)
        x.last = x.sized >> out->axes[i] & 1 ? 1U << out->axes[i] : x.last;
    for (size_t i = 0; i < count; i++) {
        tune_node *n = nodes[i];
        bool adds = n->kind == TUNE_NODE_REDUCTION && (n->fold == TUNE_FOLD_SUM || n->fold == TUNE_FOLD_MEAN);
        if (adds && n->fold == TUNE_FOLD_MEAN && is_product(n->left) && !is_element_wise(&x, n->left->left, n->left->right))
            n = sum_of_mean(&x, n);
        if (adds && n->fold == TUNE_FOLD_SUM && !stays(&x, n->left, true))
            arrange_sum(&x, n);
        else if (adds && n != nodes[i] && n->left->left->kind == TUNE_NODE_TENSOR && n->left->right->kind == TUNE_NODE_TENSOR)
            *n = (tune_node){.kind = TUNE_NODE_PRODUCT, .range = n->range, .over = n->over, .left = n->left->left, .right = n->left->right};
    }
    for (size_t i = 0; i < count; i++)
        if (is_product(nodes[i]) && stands_outside(e->root, nodes[i]) && !is_part(nodes, count, nodes[i]) && !stays(&x, nodes[i], false))
            arrange_product(&x, nodes[i]);
    for (size_t i = 0; i < count; i++)
        if (is_sum_of_terms(nodes[i]) && !is_part(nodes, count, nodes[i]))
            arrange_terms(&x, nodes[i]);
}
