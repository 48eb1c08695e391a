#include "runtime/tensor/judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/tensor/compare.h"
#include "runtime/tensor/numeric.h"

#define UNIT 0x1p-24

/* Sums over the outputs of a group. */
typedef struct group {
    double count, z, zz, wz, ww;
} group;

typedef struct trial {
    const judge_case *of;
    double walk;                              /* t^2 of the partial sums */
    double value_limit;                       /* |z| of one value */
    double group_logarithm, weight_logarithm; /* -ln of what may go wrong in a test of a group, and with its weights */
    group *groups;                            /* all, and after it each index of each axis */
    int64_t group_count;
    judge_verdict *out;
} trial;

/* t with 2 exp(-t^2 / 2) = exp(-logarithm). */
static double normal_limit(double logarithm)
{
    return sqrt(2 * (logarithm + log(2)));
}

/* m (1 + y) with m (y - ln(1 + y)) / 2 = logarithm: what a sum of m squares stays below. */
static double spread_limit(double m, double logarithm)
{
    double low = 0, high = 1;
    while (m * (high - log1p(high)) / 2 < logarithm)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double y = (low + high) / 2;
        *(m * (y - log1p(y)) / 2 < logarithm ? &low : &high) = y;
    }
    return m * (1 + high);
}

/* ---- one output ---- */

static uint32_t order_of(float x)
{
    uint32_t bits = f32_bits(x);
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static float of_order(uint32_t order)
{
    return f32_of_bits(order & 0x80000000 ? order & 0x7fffffff : ~order);
}

static double cast_value(dtype t, float x)
{
    unsigned char code[4] = {0};
    numeric_from_double(t, code, 0, x);
    return numeric_to_double(t, code, 0);
}

/* How far a sum that was cast to `value` is from `sum` at least, with its sign. */
static double distance(dtype t, double value, float sum)
{
    if (t == DTYPE_F32)
        return value - sum;
    if (cast_value(t, sum) == value || cast_value(t, (float)value) != value)
        return 0;
    uint32_t inside = order_of((float)value), outside = order_of(sum);
    while (inside - outside != 1 && outside - inside != 1) {
        uint32_t middle = inside / 2 + outside / 2 + (inside & outside & 1);
        *(cast_value(t, of_order(middle)) == value ? &inside : &outside) = middle;
    }
    return (double)of_order(inside) - sum;
}

static void found(trial *t, double part, judge_test test, int axis, int64_t index)
{
    if (part <= t->out->worst)
        return;
    t->out->worst = part;
    t->out->test = test;
    t->out->axis = axis;
    t->out->index = index;
}

static void add_value(group *g, double z, double w)
{
    g->count++;
    g->z += z;
    g->zz += z * z;
    g->wz += w * z;
    g->ww += w * w;
}

static void add_element(trial *t, int64_t element)
{
    const judge_case *c = t->of;
    double bound = c->bounds[element], machine = numeric_to_double(c->type->dtype, c->machine, element);
    if (!(bound > 0) || !isfinite(bound) || !isfinite(machine) || !isfinite(c->sums[element]))
        return;
    double worst = bound * bound / c->roundings, walk = UNIT * t->walk * bound, deviation = sqrt(worst < walk ? worst : walk);
    double z = distance(c->type->dtype, machine, c->sums[element]) / deviation, w = c->sums[element] / deviation;
    t->out->outside += fabs(z) > t->value_limit;
    found(t, fabs(z) / t->value_limit, JUDGE_VALUE, -1, element);
    add_value(&t->groups[0], z, w);
    group *behind = t->groups + t->group_count;
    for (int axis = c->type->rank - 1; axis >= 0; axis--) {
        int64_t size = c->type->shape[axis];
        behind -= size;
        add_value(&behind[element % size], z, w);
        element /= size;
    }
}

/* ---- groups ---- */

static void judge_group(trial *t, const group *g, int axis, int64_t index)
{
    if (g->count == 0)
        return;
    double limit = normal_limit(t->group_logarithm), errors = spread_limit(g->count, t->weight_logarithm) / 2;
    found(t, fabs(g->z) / (limit * sqrt(g->count)), JUDGE_BIAS, axis, index);
    found(t, fabs(g->wz) / (limit * (sqrt(g->ww) + sqrt(errors)) + sqrt(g->zz * errors)), JUDGE_SCALE, axis, index);
    found(t, sqrt(g->zz / spread_limit(g->count, t->group_logarithm)), JUDGE_SPREAD, axis, index);
}

static int64_t count_groups(const tensor_type *type)
{
    int64_t groups = 1;
    for (int i = 0; i < type->rank; i++)
        groups += type->shape[i];
    return groups;
}

bool judge_output(const judge_case *c, judge_verdict *out)
{
    int64_t elements = tensor_elements(c->type), groups = count_groups(c->type);
    double quarter = c->false_alarm / 4, many = elements > 0 ? (double)elements : 1;
    trial t = {.of = c, .group_count = groups, .out = out, .groups = calloc((size_t)groups, sizeof *t.groups)};
    *out = (judge_verdict){.axis = -1};
    if (!t.groups)
        return false;
    t.walk = 2 * log(2 * c->roundings * many / quarter);
    t.value_limit = normal_limit(log(many / quarter));
    t.group_logarithm = log(3 * (double)groups / quarter);
    t.weight_logarithm = log((double)groups / quarter);
    for (int64_t i = 0; i < elements; i++)
        if (!c->covered || c->covered[i])
            add_element(&t, i);
    const group *g = t.groups;
    out->values = (int64_t)g->count;
    out->slope = g->ww > 0 ? g->wz / g->ww : 0;
    judge_group(&t, g++, -1, 0);
    for (int axis = 0; axis < c->type->rank; axis++)
        for (int64_t i = 0; i < c->type->shape[axis]; i++)
            judge_group(&t, g++, axis, i);
    free(t.groups);
    return true;
}

const char *judge_text(const judge_case *c, const judge_verdict *v, arena *a)
{
    static const char *const names[JUDGE_TESTS] = {"one value", "bias", "scale", "spread"};
    if (v->worst <= 1)
        return arena_printf(a, "together %.2g of what rounding explains", v->worst);
    const char *place = "over all values";
    if (v->test == JUDGE_VALUE)
        place = arena_printf(a, "at %s", compare_place_text(c->type, v->index, a));
    else if (v->axis >= 0)
        place = arena_printf(a, "at %s=%" PRId64, c->type->names ? c->type->names[v->axis] : "its index", v->index);
    const char *text = arena_printf(a, "off by %.3g times what rounding explains, in %s %s", v->worst, names[v->test], place);
    if (v->test == JUDGE_SCALE && v->axis < 0)
        text = arena_printf(a, "%s: %.2g of the value", text, v->slope);
    return v->outside ? arena_printf(a, "%s; %" PRId64 " of %" PRId64 " by themselves", text, v->outside, v->values) : text;
}
