#include "libvisa/tune/flow.h"

#include <inttypes.h>
#include <string.h>

#include "target/target.h"

/* Operations of what a softmax takes that are computed again, instead of being kept. */
enum { COMPUTED_AGAIN = 1 };

typedef struct kept {
    const tune_node *node;
    size_t value;
} kept;

typedef struct lowering {
    tune_flow *f;
    diag_list *diags;
    arena *a;
    bool whole;
    kept in_vrf[FLOW_VALUES_MAX], in_dm[FLOW_VALUES_MAX];
    size_t in_vrf_count, in_dm_count;
    unsigned named; /* by fold, how many are called so */
} lowering;

/* Operations on a stream that are not a step yet. */
typedef struct chain {
    size_t source;
    tune_operation operations[TUNE_OPERATIONS_MAX];
    size_t count;
} chain;

static bool refuse_at(lowering *l, diag_id id, src_range range, const char *what, const char *help)
{
    diag *d = diag_add(l->diags, id, range, "%s", what);
    diag_help(l->diags, d, "%s", help);
    return false;
}

/* ---- groups of axes ---- */

/* Sets of axes that a node needs together: those of tensors, and those of reductions. */
static void mark(const tune_node *n, unsigned *tensors, unsigned *folds, size_t *fold_count)
{
    if (!n)
        return;
    if (n->kind == TUNE_NODE_TENSOR)
        *tensors |= 1U << n->tensor;
    if ((n->kind == TUNE_NODE_REDUCTION || n->kind == TUNE_NODE_PRODUCT) && *fold_count < TUNE_AXES_MAX)
        folds[(*fold_count)++] = n->over;
    mark(n->left, tensors, folds, fold_count);
    mark(n->right, tensors, folds, fold_count);
}

/* The axis beside a tensor's place `i` that values have, to one side; TUNE_AXES_MAX: there is none. */
static size_t axis_beside(const tune_expression *e, const tune_tensor *x, size_t i, int side)
{
    for (i += (size_t)side; i < x->count; i += (size_t)side) /* in front of the first one it wraps around */
        if (!(e->absent >> x->axes[i] & 1))
            return x->axes[i];
    return TUNE_AXES_MAX;
}

/* Do two axes stand next to each other, in that order, wherever one of them stands? */
static bool together(const lowering *l, size_t a, size_t b, const unsigned *folds, size_t fold_count)
{
    const tune_expression *e = l->f->e;
    for (size_t i = 0; i < fold_count; i++) /* what is folded ends with whole flits, so that slices can share it */
        if ((folds[i] >> a & 1) != (folds[i] >> b & 1) || ((folds[i] >> a & 1) && e->axes[b].size % 8 != 0))
            return false;
    for (size_t t = 0; t < e->tensor_count; t++) {
        const tune_tensor *x = &e->tensors[t];
        size_t row = x->row_in_hbm > 0 ? x->count - x->row_axes : 0;
        if (row > 0 && x->axes[row] == b && x->axes[row - 1] == a) /* rows do not follow each other */
            return false;
        for (size_t i = 0; i < x->count; i++)
            if ((x->axes[i] == a && axis_beside(e, x, i, 1) != b) || (x->axes[i] == b && axis_beside(e, x, i, -1) != a))
                return false;
    }
    return true;
}

static bool find_groups(lowering *l)
{
    tune_flow *f = l->f;
    const tune_expression *e = f->e;
    unsigned tensors = 0, folds[TUNE_AXES_MAX], done = e->absent, reduced = 0;
    size_t fold_count = 0;
    mark(e->root, &tensors, folds, &fold_count);
    for (size_t i = 0; i < fold_count; i++)
        reduced |= folds[i];
    for (size_t first = 0; first < e->axis_count; first++) {
        if (done >> first & 1)
            continue;
        /* begin with the first axis of a run */
        size_t begin = first;
        for (size_t a = 0; a < e->axis_count; a++)
            if (!(done >> a & 1) && a != begin && together(l, a, begin, folds, fold_count)) {
                begin = a;
                a = SIZE_MAX;
            }
        if (f->group_count == FLOW_GROUPS_MAX)
            return refuse_at(l, E_TUNE_LAYOUT, e->axes[first].range, "this question has more than 8 kinds of axes",
                             "write axes that stand side by side in all tensors as one");
        flow_group *g = &f->groups[f->group_count++];
        *g = (flow_group){.size = 1};
        for (size_t at = begin; at < e->axis_count;) {
            const char *name = e->axes[at].name;
            g->text = g->text ? arena_printf(l->a, "%s_%s", g->text, name) : name;
            g->parts = g->parts ? arena_printf(l->a, "%s, %s", g->parts, name) : name;
            g->size *= e->axes[at].size;
            g->axes |= 1U << at;
            done |= 1U << at;
            size_t next = 0;
            while (next < e->axis_count && (done >> next & 1 || !together(l, at, next, folds, fold_count)))
                next++;
            at = next;
        }
        if (strcmp(g->text, g->parts) != 0)
            g->text = tune_unused_name(e->axes, e->axis_count, g->text, l->a);
        g->is_reduced = g->axes & reduced;
        if (begin != first)
            first--;
    }
    return true;
}

static unsigned groups_of_axes(const tune_flow *f, unsigned axes)
{
    unsigned groups = 0;
    for (size_t g = 0; g < f->group_count; g++)
        groups |= f->groups[g].axes & axes ? 1U << g : 0;
    return groups;
}

/* Groups of what a node computes. */
static unsigned groups_of(const tune_flow *f, const tune_node *n)
{
    unsigned of = n->left ? groups_of(f, n->left) : 0;
    of |= n->right ? groups_of(f, n->right) : 0;
    if (n->kind == TUNE_NODE_TENSOR)
        return groups_of_axes(f, tune_axes_of(f->e, n->tensor));
    bool goes = n->kind == TUNE_NODE_PRODUCT || (n->kind == TUNE_NODE_REDUCTION && n->fold != TUNE_FOLD_SOFTMAX);
    return goes ? of & ~groups_of_axes(f, n->over) : of;
}

unsigned tune_flow_groups(const tune_flow *f, const flow_step *s, size_t count)
{
    unsigned has = f->values[s->from].has;
    for (size_t i = 0; i < count; i++)
        if (s->operations[i].what >= TUNE_FOLD_ADD)
            has &= ~(1U << s->operations[i].group);
    return has;
}

const flow_value *tune_flow_operand(const tune_flow *f, const tune_operation *o)
{
    for (size_t i = 1; o->operand && o->what < TUNE_FOLD_ADD && i < f->value_count; i++)
        if (f->values[i].place == FLOW_VRF && strcmp(f->values[i].name, o->operand) == 0)
            return &f->values[i];
    return NULL;
}

unsigned tune_flow_depends(const tune_flow *f, size_t value)
{
    const flow_value *v = &f->values[value];
    return v->place == FLOW_STREAM ? v->has | f->values[v->rows].has | f->values[v->weights].has | (v->lying ? f->values[v->lying].has : 0)
                                   : v->has;
}

/* ---- values ---- */

static bool has_name(const tune_flow *f, const char *name)
{
    for (size_t i = 0; i < f->e->tensor_count; i++)
        if (strcmp(f->e->tensors[i].port, name) == 0)
            return true;
    for (size_t i = 1; i < f->value_count; i++)
        if (strcmp(f->values[i].name, name) == 0)
            return true;
    return false;
}

static const char *fresh_name(lowering *l, const char *base)
{
    const char *name = base;
    for (int i = 2; has_name(l->f, name); i++)
        name = arena_printf(l->a, "%s%d", base, i);
    return name;
}

static bool add_value(lowering *l, flow_value v, size_t *out)
{
    if (l->f->value_count == FLOW_VALUES_MAX)
        return refuse_at(l, E_TUNE_QUESTION, l->f->e->root->range, "this question has more than 32 values on its way",
                         "ask for it in parts");
    *out = l->f->value_count;
    l->f->values[l->f->value_count++] = v;
    return true;
}

static bool add_step(lowering *l, flow_step s)
{
    if (l->f->step_count == FLOW_STEPS_MAX)
        return refuse_at(l, E_TUNE_QUESTION, l->f->e->root->range, "this question has more than 32 steps", "ask for it in parts");
    l->f->steps[l->f->step_count++] = s;
    return true;
}

size_t tune_flow_order_in_hbm(const tune_flow *f, size_t tensor, size_t *groups)
{
    const tune_tensor *t = &f->e->tensors[tensor];
    unsigned has = 0;
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        for (size_t g = 0; g < f->group_count; g++)
            if (f->groups[g].axes >> t->axes[i] & 1 && !(has >> g & 1)) {
                groups[count++] = g;
                has |= 1U << g;
            }
    return count;
}

/* A tensor in the order of its axes. */
static void lay_out_tensor(const tune_flow *f, size_t tensor, flow_value *v)
{
    v->count = tune_flow_order_in_hbm(f, tensor, v->groups);
    for (size_t i = 0; i < v->count; i++)
        v->has |= 1U << v->groups[i];
    v->is_packed = v->count > 0;
}

static bool find_type(lowering *l, const tune_tensor *t, dtype *out)
{
    *out = l->f->type;
    if (t->asked_type && !dtype_by_name(t->asked_type, out))
        return refuse_at(l, E_TUNE_TYPE, t->range,
                         arena_printf(l->a, "`%s` is of `%s`, which is no type of a tensor", t->name, t->asked_type),
                         "give it another type, or leave it away");
    bool whole = *out == DTYPE_I32 || target_converts(ENGINE_ID_FETCH, *out, DTYPE_I32),
         real = *out == DTYPE_F32 || target_converts(ENGINE_ID_FETCH, *out, DTYPE_F32);
    return whole || real ||
           refuse_at(l, E_TUNE_TYPE, t->range,
                     arena_printf(l->a, "`%s` is of `%s`, which is not fetched as the i32 or f32 that the Vector Engine works on", t->name,
                                  dtype_row_of(*out)->name),
                     "take i4, i8, i16, i32, f8e4m3, f8e5m2, bf16 or f32");
}

/* The tensor in DM, loaded when it is first needed. */
static bool load(lowering *l, size_t tensor, size_t *out)
{
    tune_flow *f = l->f;
    for (size_t i = 1; i < f->value_count; i++)
        if (f->values[i].tensor == tensor && f->values[i].place == FLOW_DM) {
            *out = i;
            return true;
        }
    const tune_tensor *t = &f->e->tensors[tensor];
    flow_value v = {.name = t->port, .tensor = tensor, .place = FLOW_DM};
    lay_out_tensor(f, tensor, &v);
    return find_type(l, t, &v.type) && add_value(l, v, out) && add_step(l, (flow_step){.kind = FLOW_LOAD, .to = *out});
}

/* What a chain makes, as a value of a type. */
static bool end_chain(lowering *l, const chain *c, flow_place place, dtype type, const char *name, const char *why, size_t *out)
{
    tune_flow *f = l->f;
    flow_step s = {.kind = FLOW_PASS, .from = c->source, .count = c->count, .why = why};
    memcpy(s.operations, c->operations, sizeof s.operations);
    const flow_value *from = &f->values[c->source];
    flow_value v = {.name = fresh_name(l, name), .place = place, .type = type, .has = tune_flow_groups(f, &s, s.count)};
    for (size_t i = 0; i < from->count; i++)
        if (v.has >> from->groups[i] & 1)
            v.groups[v.count++] = from->groups[i];
    v.is_packed = from->is_packed && v.count > 0 && v.groups[v.count - 1] == from->groups[from->count - 1];
    if (!add_value(l, v, out))
        return false;
    s.to = *out;
    return add_step(l, s);
}

static bool lower(lowering *l, const tune_node *n, chain *out);

static bool append(lowering *l, const tune_node *n, chain *c, tune_operation o)
{
    if (c->count == TUNE_OPERATIONS_MAX)
        return refuse_at(l, E_TUNE_QUESTION, n->range, "more than 24 operations follow each other on one value", "ask for it in parts");
    /* products in front of quotients: the division's unit comes after the others of a pass */
    size_t at = c->count;
    while (o.what == TUNE_TIMES && at > 0 && c->operations[at - 1].what == TUNE_DIVIDE && !c->operations[at - 1].reversed)
        at--;
    memmove(&c->operations[at + 1], &c->operations[at], (c->count - at) * sizeof o);
    c->operations[at] = o;
    c->count++;
    return true;
}

static const char *fold_name(const tune_node *n)
{
    static const char *const names[] = {[TUNE_FOLD_SUM] = "total",
                                        [TUNE_FOLD_LARGEST] = "largest",
                                        [TUNE_FOLD_SMALLEST] = "least",
                                        [TUNE_FOLD_MEAN] = "mean",
                                        [TUNE_FOLD_SOFTMAX] = "shares"};
    return n->kind == TUNE_NODE_REDUCTION ? names[n->fold] : "operand";
}

/* The node's values in the VRF: each is made once. */
static bool keep(lowering *l, const tune_node *n, const char **name)
{
    tune_flow *f = l->f;
    for (size_t i = 0; i < l->in_vrf_count; i++)
        if (tune_same_node(l->in_vrf[i].node, n)) {
            *name = f->values[l->in_vrf[i].value].name;
            return true;
        }
    chain c;
    size_t value;
    const char *base = n->kind == TUNE_NODE_TENSOR ? arena_printf(l->a, "%s_kept", f->e->tensors[n->tensor].port) : fold_name(n);
    const char *why =
        n->kind == TUNE_NODE_TENSOR ? "Into the VRF, where each step of a pass reads its part" : "Into the VRF: an operand of what follows";
    if (!lower(l, n, &c) || !end_chain(l, &c, FLOW_VRF, f->meets, base, why, &value))
        return false;
    if (l->in_vrf_count < FLOW_VALUES_MAX)
        l->in_vrf[l->in_vrf_count++] = (kept){n, value};
    *name = f->values[value].name;
    return true;
}

/* What is computed in a tree: contractions count for more than all else. */
static size_t work_of(const tune_node *n)
{
    if (!n || n->kind == TUNE_NODE_NUMBER || n->kind == TUNE_NODE_TENSOR)
        return 0;
    return (n->kind == TUNE_NODE_PRODUCT ? TUNE_NODES_MAX : 1) + work_of(n->left) + work_of(n->right);
}

/* Of two values with the same axes that in which more is computed streams, or, as a reading has it, the other one: on whichever side of
 * the operation they stand. A tensor waits. */
static bool right_streams(lowering *l, const tune_node *a, const tune_node *b)
{
    size_t left = work_of(a), right = work_of(b);
    if (left == right)
        return false;
    l->f->has_choice = l->f->has_choice || (left > 0 && right > 0);
    return (left < right) != (l->f->how.streams_less && left > 0 && right > 0);
}

/* An operation of two values: the one with more axes streams. */
static bool lower_binary(lowering *l, const tune_node *n, chain *out)
{
    const tune_node *a = n->left, *b = n->right;
    tune_operation o = {.what = n->what};
    if (b->kind == TUNE_NODE_NUMBER || a->kind == TUNE_NODE_NUMBER) {
        bool reversed = a->kind == TUNE_NODE_NUMBER;
        o.value = reversed ? a->number : b->number;
        o.reversed = reversed && (n->what == TUNE_SUBTRACT || n->what == TUNE_DIVIDE);
        if (n->what == TUNE_SUBTRACT && !reversed) {
            o.what = TUNE_ADD;
            o.value = -o.value;
        }
        return lower(l, reversed ? b : a, out) && append(l, n, out, o);
    }
    unsigned of_a = groups_of(l->f, a), of_b = groups_of(l->f, b);
    if ((of_a | of_b) != of_a && (of_a | of_b) != of_b)
        return refuse_at(l, E_TUNE_AXIS, n->range, "each of these two has axes that the other one lacks: no stream has all of them",
                         "a contraction multiplies such operands, sum(k) A[m, k] * B[n, k]; for one without a sum, make one of them whole "
                         "in front of the kernel");
    bool reversed = of_a != (of_a | of_b) || (of_a == of_b && right_streams(l, a, b));
    o.reversed = reversed && (n->what == TUNE_SUBTRACT || n->what == TUNE_DIVIDE);
    return keep(l, reversed ? a : b, &o.operand) && lower(l, reversed ? b : a, out) && append(l, n, out, o);
}

static tune_node *node(lowering *l, tune_node n)
{
    tune_node *out = ARENA_NEW(l->a, tune_node);
    *out = n;
    return out;
}

/* In DM, for a chain that reads it more than once. */
static bool keep_in_dm(lowering *l, const tune_node *n)
{
    chain c;
    size_t value;
    for (size_t i = 0; i < l->in_dm_count; i++)
        if (tune_same_node(l->in_dm[i].node, n))
            return true;
    if (!lower(l, n, &c))
        return false;
    bool is_stream = l->f->values[c.source].place == FLOW_STREAM;
    l->f->has_sums_again = l->f->has_sums_again || is_stream;
    if (is_stream && l->f->how.multiplies_again)
        return true;
    if ((c.count <= COMPUTED_AGAIN && !is_stream) || l->in_dm_count == FLOW_VALUES_MAX)
        return true;
    if (!end_chain(l, &c, FLOW_DM, l->f->meets, "values", "In DM, since it is read more than once", &value))
        return false;
    l->in_dm[l->in_dm_count++] = (kept){n, value};
    return true;
}

/* How often a computation stands in a tree. */
static size_t occurrences(const tune_node *in, const tune_node *of)
{
    return in ? tune_same_node(in, of) + occurrences(in->left, of) + occurrences(in->right, of) : 0;
}

/* The powers of a softmax; the largest is subtracted, so that none overflows. */
static const tune_node *powers_of(lowering *l, const tune_node *n)
{
    src_range r = n->range;
    const tune_node *x = n->left;
    const tune_node *largest =
        node(l, (tune_node){.kind = TUNE_NODE_REDUCTION, .fold = TUNE_FOLD_LARGEST, .over = n->over, .left = x, .range = r});
    const tune_node *less = node(l, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_SUBTRACT, .left = x, .right = largest, .range = r});
    return node(l, (tune_node){.kind = TUNE_NODE_FUNCTION, .what = TUNE_EXP, .left = less, .range = r});
}

/* What a softmax is of lies where it is read more than once from. */
static bool begin_softmax(lowering *l, const tune_node *n)
{
    chain of;
    if (!keep_in_dm(l, n->left) || !lower(l, n->left, &of))
        return false;
    if (l->f->softmax_count < FLOW_SOFTMAXES_MAX)
        l->f->softmaxes[l->f->softmax_count++] = (flow_softmax){.of = of.source, .has = groups_of(l->f, n->left)};
    return true;
}

/* Powers over their sum. */
static bool lower_softmax(lowering *l, const tune_node *n, chain *out)
{
    src_range r = n->range;
    const tune_node *power = powers_of(l, n);
    const tune_node *sum =
        node(l, (tune_node){.kind = TUNE_NODE_REDUCTION, .fold = TUNE_FOLD_SUM, .over = n->over, .left = power, .range = r});
    return begin_softmax(l, n) &&
           lower_binary(l, node(l, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_DIVIDE, .left = power, .right = sum, .range = r}),
                        out);
}

/* Group by group, the innermost last: what is kept of a packet is then folded first. */
static bool lower_fold(lowering *l, const tune_node *n, chain *out)
{
    static const tune_operator of_fold[] = {[TUNE_FOLD_SUM] = TUNE_FOLD_ADD,
                                            [TUNE_FOLD_LARGEST] = TUNE_FOLD_MAX,
                                            [TUNE_FOLD_SMALLEST] = TUNE_FOLD_MIN,
                                            [TUNE_FOLD_MEAN] = TUNE_FOLD_ADD};
    tune_flow *f = l->f;
    unsigned over = groups_of_axes(f, n->over), has = groups_of(f, n->left);
    double size = 1;
    if (over & ~has)
        return refuse_at(l, E_TUNE_AXIS, n->range, "an axis is reduced that the values do not have",
                         "leave it away, or give it to a tensor");
    if (!lower(l, n->left, out))
        return false;
    for (size_t g = 0; g < f->group_count; g++)
        if (over >> g & 1) {
            size *= (double)f->groups[g].size;
            if (!append(l, n, out, (tune_operation){.what = of_fold[n->fold], .operand = f->groups[g].text, .group = g}))
                return false;
        }
    return n->fold != TUNE_FOLD_MEAN || size == 1 || append(l, n, out, (tune_operation){.what = TUNE_DIVIDE, .value = size});
}

/* ---- contractions ---- */

static bool is_operand_type(dtype type)
{
    return dtype_is_operand(type) && !dtype_is_staging(type);
}

/* sum(..) of two values that have each an axis which the other one lacks: their product is the Reducer's. */
static bool is_contraction(const tune_flow *f, const tune_node *n, const tune_node **a, const tune_node **b)
{
    const tune_node *of = n->left;
    if (n->kind == TUNE_NODE_PRODUCT) {
        *a = n->left;
        *b = n->right;
    } else if (n->kind == TUNE_NODE_REDUCTION && n->fold == TUNE_FOLD_SUM && of->kind == TUNE_NODE_BINARY && of->what == TUNE_TIMES &&
               of->right->kind != TUNE_NODE_NUMBER && of->left->kind != TUNE_NODE_NUMBER) {
        *a = of->left;
        *b = of->right;
    } else
        return false;
    unsigned of_a = groups_of(f, *a), of_b = groups_of(f, *b);
    return (of_a & ~of_b) && (of_b & ~of_a);
}

/* Groups that are reduced over values, where those of packets are best. */
static unsigned folded_groups(const tune_flow *f, const tune_node *n)
{
    if (!n)
        return 0;
    unsigned own = n->kind == TUNE_NODE_REDUCTION || n->kind == TUNE_NODE_PRODUCT ? groups_of_axes(f, n->over) : 0;
    return own | folded_groups(f, n->left) | folded_groups(f, n->right);
}

/* The weights are the operand whose axis lies side by side in what leaves the Reducer: that which is reduced next, or the result's. */
static bool left_is_weights(const tune_flow *f, unsigned of_a, unsigned of_b, unsigned summed)
{
    unsigned folded = folded_groups(f, f->e->root) & ~summed;
    const flow_value *out = &f->values[0];
    if (((of_a & ~of_b) & folded) || ((of_b & ~of_a) & folded))
        return !((of_b & ~of_a) & folded);
    return out->count > 0 && ((of_a & ~of_b) >> out->groups[out->count - 1] & 1);
}

static bool refuse_layout(lowering *l, const tune_node *n, const char *what)
{
    return refuse_at(l, E_TUNE_LAYOUT, n->range, what,
                     "write what is summed innermost in both tensors, or in front of the kept axis of the weights");
}

static bool is_softmax(const tune_node *n)
{
    return n->kind == TUNE_NODE_REDUCTION && n->fold == TUNE_FOLD_SOFTMAX;
}

/* Shares that meet weights in their own sum; of integers they would be rounded to other ones. */
static bool can_divide_after(const tune_flow *f, const tune_node *n, size_t group)
{
    return is_softmax(n) && groups_of_axes(f, n->over) == 1U << group && dtype_row_of(f->type)->accumulates_in == DTYPE_F32;
}

/* Whatever its order in HBM, a copy puts batches in front; what is innermost stays. */
static void put_batches_first(flow_value *v, unsigned batches)
{
    size_t rest[FLOW_GROUPS_MAX], count = 0, first = 0;
    for (size_t i = 0; i + 1 < v->count; i++)
        if (batches >> v->groups[i] & 1)
            v->groups[first++] = v->groups[i];
        else
            rest[count++] = v->groups[i];
    memcpy(&v->groups[first], rest, count * sizeof *rest);
}

/* In DM as the Reducer takes it: [batch, kept, summed]; or [batch, summed, kept], where `may_lie`. */
static bool lay_for_reducer(lowering *l, const tune_node *n, size_t summed, bool is_weights, bool may_lie, unsigned batches, size_t *out)
{
    tune_flow *f = l->f;
    if (n->kind != TUNE_NODE_TENSOR) {
        chain c;
        if (is_weights)
            return refuse_at(l, E_TUNE_QUESTION, n->range, "weights that are computed in the same kernel",
                             "let a tensor be the operand that has the result's innermost axis");
        const size_t known = f->softmax_count;
        bool can_wait = can_divide_after(f, n, summed), waits = f->how.divides_after && can_wait;
        f->has_divisions = f->has_divisions || can_wait;
        if (waits && !begin_softmax(l, n))
            return false;
        if (!lower(l, waits ? powers_of(l, n) : n, &c) ||
            !end_chain(l, &c, FLOW_DM, f->type, "rows", "The rows of the next contraction, in its type", out))
            return false;
        if (is_softmax(n) && f->softmax_count > known)
            f->softmaxes[waits ? known : f->softmax_count - 1].rows = *out;
    } else {
        const size_t known = f->value_count;
        if (!load(l, n->tensor, out))
            return false;
        if (f->value_count > known)
            put_batches_first(&f->values[*out], batches);
    }
    const flow_value v = f->values[*out];
    bool casts = v.type != f->type && target_converts(ENGINE_ID_FETCH, v.type, f->type) && v.groups[v.count - 1] == summed;
    if (!is_operand_type(f->type) || (v.type != f->type && !casts))
        return refuse_at(
            l, E_TUNE_TYPE, n->range,
            arena_printf(l->a, "an operand of a contraction is of `%s`, which the Reducer does not multiply here",
                         dtype_row_of(v.type)->name),
            "take i4, i8, f8e4m3, f8e5m2 or bf16, the same for all operands; f32 is cast for bf16 where what is summed is innermost");
    if (v.groups[v.count - 1] == summed)
        return true;
    if (!is_weights || v.count < 2 || v.groups[v.count - 2] != summed)
        return refuse_layout(l, n, "an operand of a contraction lies in an order that is not turned here");
    f->has_lying = f->has_lying || may_lie;
    if (may_lie && f->how.streams_lying)
        return true;
    flow_value turned = v;
    turned.tensor = 0;
    turned.name = fresh_name(l, "turned");
    turned.groups[v.count - 2] = v.groups[v.count - 1];
    turned.groups[v.count - 1] = summed;
    size_t from = *out;
    for (size_t i = 0; i < f->step_count; i++)
        if (f->steps[i].kind == FLOW_TURN && f->steps[i].from == from) {
            *out = f->steps[i].to;
            return true;
        }
    return add_value(l, turned, out) &&
           add_step(l, (flow_step){.kind = FLOW_TURN, .from = from, .to = *out, .why = "Packets are of the sum: blocks are turned"});
}

/* The sums of rows and weights, as they leave the Reducer. */
static flow_value sums_of(const tune_flow *f, size_t rows, size_t weights, size_t group)
{
    const flow_value *r = &f->values[rows], *w = &f->values[weights];
    flow_value sums = {.name = "sums",
                       .place = FLOW_STREAM,
                       .type = dtype_row_of(f->type)->accumulates_in,
                       .is_packed = w->is_packed,
                       .rows = rows,
                       .weights = weights,
                       .summed = group};
    for (size_t i = 0; i < r->count; i++)
        if (r->groups[i] != group)
            sums.groups[sums.count++] = r->groups[i];
    for (size_t i = 0; i < w->count; i++)
        if (w->groups[i] != group && !(r->has >> w->groups[i] & 1))
            sums.groups[sums.count++] = w->groups[i];
    sums.has = (r->has | w->has) & ~(1U << group);
    return sums;
}

/* What the sums of powers and weights are divided by: powers times ones. */
static bool divide_by_total(lowering *l, const tune_node *n, size_t rows, tune_operation summed, chain *out)
{
    tune_flow *f = l->f;
    chain c = {0};
    size_t ones, total;
    const size_t group = summed.group;
    const flow_value column = {
        .name = fresh_name(l, "ones"), .place = FLOW_TRF, .type = f->type, .groups = {group}, .count = 1, .has = 1U << group};
    if (!add_value(l, column, &ones) ||
        !add_step(l, (flow_step){.kind = FLOW_ONES, .to = ones, .why = "A column of ones: the Reducer adds what it meets"}) ||
        !add_value(l, sums_of(f, rows, ones, group), &c.source) || !append(l, n, &c, summed) ||
        !end_chain(l, &c, FLOW_VRF, f->meets, "total", "What is divided by", &total))
        return false;
    f->values[total].is_left = true;
    return append(l, n, out, (tune_operation){.what = TUNE_DIVIDE, .operand = f->values[total].name});
}

static bool lower_contraction(lowering *l, const tune_node *n, const tune_node *a, const tune_node *b, chain *out)
{
    tune_flow *f = l->f;
    unsigned of_a = groups_of(f, a), of_b = groups_of(f, b), summed = groups_of_axes(f, n->over);
    size_t group = 0, rows, columns, weights;
    while (group + 1 < f->group_count && !(summed >> group & 1))
        group++;
    if (summed != 1U << group || (of_a & of_b & summed) != summed)
        return refuse_at(l, E_TUNE_AXIS, n->range, "the axes of a sum do not lie side by side in both operands of its contraction",
                         "write them side by side, and in both");
    bool computes_a = a->kind != TUNE_NODE_TENSOR, computes_b = b->kind != TUNE_NODE_TENSOR; /* what is computed are rows */
    if (computes_a != computes_b ? computes_b : left_is_weights(f, of_a, of_b, summed)) {
        const tune_node *other = a;
        a = b;
        b = other;
    }
    const size_t known = f->step_count;
    const unsigned batches = of_a & of_b & ~summed;
    const bool is_folded = (of_a | of_b) & ~summed & folded_groups(f, f->e->root); /* what is folded must leave the Reducer innermost */
    if (!lay_for_reducer(l, a, group, false, false, batches, &rows) || !lay_for_reducer(l, b, group, true, !is_folded, batches, &columns))
        return false;
    const bool lies = f->values[columns].groups[f->values[columns].count - 1] != group;
    const tune_operation summed_here = {.what = TUNE_FOLD_ADD, .operand = f->groups[group].text, .group = group, .is_summed = true};
    *out = (chain){0};
    for (size_t i = 0; i < f->value_count && f->step_count == known && !lies; i++) { /* the same sums again */
        const flow_value *v = &f->values[i];
        for (size_t k = 0; v->place == FLOW_STREAM && v->rows == rows && v->summed == group && k < known; k++)
            if (f->steps[k].kind == FLOW_FILL && f->steps[k].from == columns && f->steps[k].to == v->weights) {
                out->source = i;
                return append(l, n, out, summed_here);
            }
    }
    flow_value w = f->values[lies ? rows : columns];
    w.tensor = 0;
    w.place = FLOW_TRF;
    w.type = f->type;
    w.name = fresh_name(l, "weights");
    const flow_step fill = {.kind = FLOW_FILL, .from = lies ? rows : columns, .to = f->value_count};
    if (!add_value(l, w, &weights) || (!lies && !add_step(l, fill)))
        return false;
    f->batches |= f->values[rows].has & f->values[columns].has & ~summed;
    flow_value sums = sums_of(f, rows, columns, group);
    sums.weights = weights;
    sums.lying = lies ? columns : 0;
    sums.is_packed = lies || sums.is_packed;
    if (!add_value(l, sums, &out->source) || !append(l, n, out, summed_here))
        return false;
    const bool waits = f->how.divides_after && can_divide_after(f, a, group);
    return (!waits || divide_by_total(l, n, rows, summed_here, out)) && (!lies || add_step(l, fill)); /* the TRF holds two tensors */
}

static bool lower(lowering *l, const tune_node *n, chain *out)
{
    *out = (chain){0};
    for (size_t i = 0; i < l->in_dm_count; i++)
        if (tune_same_node(l->in_dm[i].node, n)) {
            out->source = l->in_dm[i].value;
            return true;
        }
    const tune_node *a, *b;
    if (is_contraction(l->f, n, &a, &b)) {
        size_t value;
        if (!lower_contraction(l, n, a, b, out))
            return false;
        if (occurrences(l->f->e->root, n) < 2 || l->in_dm_count == FLOW_VALUES_MAX)
            return true;
        l->f->has_sums_again = true;
        if (l->f->how.multiplies_again)
            return true;
        if (!end_chain(l, out, FLOW_DM, l->f->meets, "values", "In DM, since they are read more than once", &value))
            return false;
        l->in_dm[l->in_dm_count++] = (kept){n, value};
        *out = (chain){.source = value};
        return true;
    }
    switch (n->kind) {
    case TUNE_NODE_NUMBER:
        return refuse_at(l, E_TUNE_QUESTION, n->range, "a number stands where the values of a tensor are worked on",
                         "give it a tensor, Y[r, c] = X[r, c] + 1");
    case TUNE_NODE_TENSOR: return load(l, n->tensor, &out->source);
    case TUNE_NODE_BINARY: return lower_binary(l, n, out);
    case TUNE_NODE_FUNCTION: return lower(l, n->left, out) && append(l, n, out, (tune_operation){.what = n->what});
    case TUNE_NODE_PRODUCT: {
        const tune_node *times =
            node(l, (tune_node){.kind = TUNE_NODE_BINARY, .what = TUNE_TIMES, .left = n->left, .right = n->right, .range = n->range});
        return lower_fold(
            l, node(l, (tune_node){.kind = TUNE_NODE_REDUCTION, .fold = TUNE_FOLD_SUM, .over = n->over, .left = times, .range = n->range}),
            out);
    }
    default: return n->fold == TUNE_FOLD_SOFTMAX ? lower_softmax(l, n, out) : lower_fold(l, n, out);
    }
}

/* ---- types and axes ---- */

/* Is everything an integer, and stays one? */
static bool is_whole(const tune_flow *f, const tune_node *n)
{
    dtype type = f->type;
    switch (n->kind) {
    case TUNE_NODE_NUMBER: return tune_operations_are_whole(&(tune_operation){.what = TUNE_ADD, .value = n->number}, 1);
    case TUNE_NODE_TENSOR:
        if (f->e->tensors[n->tensor].asked_type && !dtype_by_name(f->e->tensors[n->tensor].asked_type, &type))
            return false;
        return dtype_row_of(type)->kind == DTYPE_KIND_INT;
    case TUNE_NODE_REDUCTION: return n->fold != TUNE_FOLD_MEAN && n->fold != TUNE_FOLD_SOFTMAX && is_whole(f, n->left);
    case TUNE_NODE_PRODUCT: return is_whole(f, n->left) && is_whole(f, n->right);
    default:
        return tune_operations_are_whole(&(tune_operation){.what = n->what}, 1) && is_whole(f, n->left) &&
               (!n->right || is_whole(f, n->right));
    }
}

static bool find_types(lowering *l, const visa_tune_options *o)
{
    tune_flow *f = l->f;
    const char *type = o->dtype ? o->dtype : "bf16";
    if (!dtype_by_name(type, &f->type))
        return refuse_at(l, E_TUNE_TYPE, SRC_NOWHERE, arena_printf(l->a, "`%s` is no type of a tensor", type),
                         "take i4, i8, i16, i32, f8e4m3, f8e5m2, bf16 or f32");
    l->whole = is_whole(f, f->e->root);
    f->meets = f->out_type = l->whole ? DTYPE_I32 : DTYPE_F32;
    if (!o->out_dtype)
        return true;
    bool known = dtype_by_name(o->out_dtype, &f->out_type);
    dtype last = l->whole || (known && dtype_row_of(f->out_type)->kind == DTYPE_KIND_INT) ? DTYPE_I32 : DTYPE_F32;
    bool makes =
        known && dtype_row_of(f->out_type)->bits >= 8 && (f->out_type == last || target_converts(ENGINE_ID_CAST, last, f->out_type));
    return makes || refuse_at(l, E_TUNE_TYPE, SRC_NOWHERE,
                              arena_printf(l->a, "results are %s, which the Cast Engine does not make `%s` of whole bytes",
                                           dtype_row_of(f->meets)->name, o->out_dtype),
                              arena_printf(l->a, "leave --out away for %s", dtype_row_of(f->meets)->name));
}

/* Result and right side have the same axes. */
static bool check_axes(lowering *l)
{
    const tune_flow *f = l->f;
    const tune_expression *e = f->e;
    unsigned out = tune_axes_of(e, 0), has = groups_of(f, e->root), used = 0;
    for (size_t t = 1; t < e->tensor_count; t++)
        used |= tune_axes_of(e, t);
    for (size_t i = 0; i < e->axis_count; i++) {
        const tune_axis *a = &e->axes[i];
        if (e->absent >> i & 1)
            continue;
        bool in_out = out >> i & 1, in_right = has & groups_of_axes(f, 1U << i);
        if (in_out == in_right && (in_out || used >> i & 1))
            continue;
        const char *what = !(used >> i & 1) ? "axis `%s` stands in no operand"
                           : in_out         ? "axis `%s` is reduced and stands in the result"
                                            : "axis `%s` is not in the result and not in sum(..)";
        diag *d = diag_add(l->diags, E_TUNE_AXIS, a->range, what, a->asked);
        diag_help(l->diags, d, "an axis of a tensor stands in the result, or in sum(..), max(..), min(..) or mean(..) around it");
        return false;
    }
    if (e->window_count > 0)
        return tune_refuse_window(l->diags, e->tensors[e->windows[0].tensor].range, "a window stands in a question that is no convolution");
    return true;
}

/* Is a value the rows of one contraction, and needed for nothing else? */
static bool is_rows_alone(const tune_flow *f, size_t number)
{
    size_t contractions = 0;
    for (size_t i = 0; i < f->value_count; i++)
        contractions += f->values[i].place == FLOW_STREAM && f->values[i].rows == number;
    for (size_t i = 0; i < f->step_count; i++) {
        const flow_step *s = &f->steps[i];
        if (s->kind != FLOW_LOAD && s->from == number)
            return false;
        for (size_t k = 0; k < s->count; k++)
            if (tune_flow_operand(f, &s->operations[k]) == &f->values[number])
                return false;
    }
    return contractions == 1;
}

bool tune_flow_is_copy(const tune_flow *f, const flow_step *s)
{
    dtype type = f->values[s->from].type;
    return s->kind == FLOW_PASS && s->count == 0 && f->values[s->to].place == FLOW_VRF &&
           (type == f->meets || target_converts(ENGINE_ID_FETCH, type, f->meets));
}

/* Is a value there for one step alone, which fills the TRF with it, or copies it into the VRF? */
static bool is_for_one_step(const tune_flow *f, size_t number, bool is_copied)
{
    size_t readers = 0;
    for (size_t i = 0; i < f->value_count; i++)
        if (f->values[i].place == FLOW_STREAM && f->values[i].rows == number)
            return false;
    for (size_t i = 0; i < f->step_count; i++) {
        const flow_step *s = &f->steps[i];
        if (s->kind == FLOW_LOAD || s->from != number)
            continue;
        if (is_copied ? !tune_flow_is_copy(f, s) : s->kind != FLOW_FILL)
            return false;
        readers++;
    }
    return readers == 1;
}

/* The fold of a step that nothing but functions and numbers follow; NULL: it has none. */
static const tune_operation *fold_alone(const tune_flow *f, const flow_step *s)
{
    for (size_t k = s->count; k-- > 0 && !tune_flow_operand(f, &s->operations[k]);)
        if (s->operations[k].what >= TUNE_FOLD_ADD)
            return &s->operations[k];
    return NULL;
}

/* Two contractions over the same axes that meet, `silu(sum(k) ..) * (sum(k) ..)`: where slices share them the operand is in all of these,
 * or, as a reading has it, wherever the result is. */
static void leave_operands(tune_flow *f)
{
    const flow_step *last = &f->steps[f->step_count - 1];
    size_t folded = last->count;
    for (size_t k = 0; k < last->count; k++)
        folded = last->operations[k].what >= TUNE_FOLD_ADD ? k : folded;
    for (size_t i = 0; i + 1 < f->step_count && folded < last->count; i++) {
        const flow_step *s = &f->steps[i];
        const tune_operation *fold = s->kind == FLOW_PASS ? fold_alone(f, s) : NULL;
        flow_value *v = &f->values[s->to];
        if (!fold || fold->group != last->operations[folded].group || v->place != FLOW_VRF || v->has != f->values[0].has ||
            f->values[s->from].place != FLOW_STREAM || f->values[last->from].place != FLOW_STREAM)
            continue;
        bool follows = false, elsewhere = false;
        for (size_t n = 0; n < f->step_count; n++)
            for (size_t k = 0; k < f->steps[n].count; k++)
                if (tune_flow_operand(f, &f->steps[n].operations[k]) == v) {
                    bool is_after = n + 1 == f->step_count && k > folded;
                    follows = follows || is_after;
                    elsewhere = elsewhere || !is_after;
                }
        f->has_meeting = f->has_meeting || (follows && !elsewhere);
        v->is_left = v->is_left || (f->how.leaves_sums && follows && !elsewhere);
    }
}

bool tune_flow_read(const tune_expression *e, const visa_tune_options *options, flow_reading how, diag_list *diags, tune_flow *out)
{
    *out = (tune_flow){.e = e, .value_count = 1, .most_slices = options->slices, .how = how};
    lowering l = {.f = out, .diags = diags, .a = diags->arena};
    if (!find_types(&l, options) || !find_groups(&l) || !check_axes(&l))
        return false;
    flow_value *result = &out->values[0];
    *result = (flow_value){.name = e->tensors[0].port, .place = FLOW_OUT, .type = out->out_type};
    lay_out_tensor(out, 0, result);
    chain c;
    if (!lower(&l, e->root, &c))
        return false;
    flow_step s = {.kind = FLOW_PASS, .from = c.source, .count = c.count, .why = "The result"};
    memcpy(s.operations, c.operations, sizeof s.operations);
    const flow_value *from = &out->values[c.source];
    bool keeps_packets = from->is_packed && result->has >> from->groups[from->count - 1] & 1;
    if (keeps_packets && from->groups[from->count - 1] != result->groups[result->count - 1]) {
        diag *d = diag_add(diags, E_TUNE_LAYOUT, e->tensors[0].range,
                           "`%s` has another innermost axis than `%s`, whose packets it is made of", e->tensors[0].name, from->name);
        diag_help(diags, d, "write the result's axes in the order of `%s`", from->name);
        return false;
    }
    if (!add_step(&l, s))
        return false;
    leave_operands(out);
    for (size_t i = 0; i < out->value_count; i++) {
        out->rows_alone |= is_rows_alone(out, i) ? UINT32_C(1) << i : 0;
        out->filled_alone |= is_for_one_step(out, i, false) ? UINT32_C(1) << i : 0;
        out->copied_alone |= is_for_one_step(out, i, true) ? UINT32_C(1) << i : 0;
    }
    return true;
}
