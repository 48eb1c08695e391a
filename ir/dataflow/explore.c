#include "ir/dataflow/explore.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dataflow/dataflow_shape.h"
#include "ir/dataflow/explore_front.h"
#include "support/integer.h"
#include "support/order.h"

enum { FIGURES_MAX = 62, DIMENSION_MAX = 48 }; /* powers of two */

/* ---- the space ---- */

static void find_divisors(explore *x, explore_parameter *p, int64_t n)
{
    size_t capacity = 0;
    for (int64_t d = 1; d <= n / d; d++) {
        if (n % d != 0)
            continue;
        ARENA_PUSH(x->arena, p->divisors, p->count, capacity, d);
        if (d != n / d)
            ARENA_PUSH(x->arena, p->divisors, p->count, capacity, n / d);
    }
    order_sort(p->divisors, p->count, sizeof *p->divisors, order_numbers);
}

static int by_product(const void *a, const void *b)
{
    const explore_level *x = a, *y = b;
    return ORDER(x->product, y->product);
}

/* The products of what the face has with what the parameter takes, equal ones together. */
static void multiply_levels(explore *x, explore_face *f, const explore_parameter *p)
{
    size_t count = 0;
    explore_level *all = ARENA_ARRAY(x->arena, explore_level, f->level_count * p->count);
    for (size_t i = 0; i < f->level_count; i++)
        for (size_t k = 0; k < p->count; k++)
            all[count++] = (explore_level){f->levels[i].product * p->divisors[k], f->levels[i].ways};
    order_sort(all, count, sizeof *all, by_product);
    f->level_count = 0;
    f->levels = all;
    for (size_t i = 0; i < count; i++) {
        if (f->level_count > 0 && all[f->level_count - 1].product == all[i].product)
            all[f->level_count - 1].ways += all[i].ways;
        else
            all[f->level_count++] = all[i];
    }
}

static bool refuse(const dataflow_model *m, diag_list *diags, const char *what, const char *help)
{
    diag_help(diags, diag_add(diags, E_DATAFLOW_EXPLORE, m->range, "`%s` %s", m->name, what), "%s", help);
    return false;
}

static bool open_face(explore *x, size_t interface, diag_list *diags)
{
    const dataflow_model *m = x->model;
    const dataflow_interface *i = &m->interfaces[interface];
    explore_face *f = &x->faces[x->face_count];
    *f = (explore_face){
        .interface = interface, .elements = dataflow_block_elements(i), .blocks = i->num_blocks, .bits = i->bits, .level_count = 1};
    f->levels = ARENA_NEW(x->arena, explore_level);
    f->levels[0] = (explore_level){1, 1};
    for (uint32_t d = 0; d < i->rank; d++) {
        int64_t n = i->kind == DATAFLOW_INPUT ? i->block[d] : dataflow_blocks(i, d);
        explore_parameter p = {.face = x->face_count, .interface = interface, .dimension = d, .behind = 1};
        if (n == 1)
            continue;
        if (n > INT64_C(1) << DIMENSION_MAX || x->parameter_count == EXPLORE_PARAMETERS_MAX)
            return refuse(m, diags, arena_printf(x->arena, "has a dimension above 2^%d, or too many of them", DIMENSION_MAX),
                          arena_printf(x->arena, "at most %d dimensions may be chosen", EXPLORE_PARAMETERS_MAX));
        find_divisors(x, &p, n);
        if (__builtin_mul_overflow(x->points, (int64_t)p.count, &x->points))
            return refuse(m, diags, "has more than 2^63 points", "explore a part of its interfaces");
        multiply_levels(x, f, &p);
        for (size_t k = x->parameter_count; k > 0 && x->parameters[k - 1].face == p.face; k--)
            x->parameters[k - 1].behind *= n;
        x->parameters[x->parameter_count++] = p;
    }
    for (size_t k = 0; k < x->input_count && i->kind == DATAFLOW_WEIGHT; k++)
        f->per_input[k] = dataflow_ratio_of(f->elements, x->faces[k].elements);
    x->face_count++;
    x->input_count += i->kind == DATAFLOW_INPUT;
    return true;
}

/* Cycles fall and widths rise: nothing lies beyond these two corners. */
static bool check_corners(const explore *x, diag_list *diags)
{
    int64_t least[EXPLORE_FACES_MAX], most[EXPLORE_FACES_MAX];
    for (size_t f = 0; f < x->face_count; f++) {
        least[f] = 1;
        most[f] = x->faces[f].levels[x->faces[f].level_count - 1].product;
    }
    explore_cost slow = explore_cost_of_products(x, least), wide = explore_cost_of_products(x, most);
    const int64_t figures[] = {slow.latency, wide.multipliers, wide.weight_bits, wide.input_bits, wide.block_bits};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (figures[i] > INT64_C(1) << FIGURES_MAX)
            return refuse(x->model, diags,
                          arena_printf(x->arena, "has points with more than 2^%d %s", FIGURES_MAX,
                                       i == 0   ? "cycles"
                                       : i == 1 ? "multipliers"
                                                : "bits per cycle"),
                          "make it smaller");
    return true;
}

bool explore_open(explore *x, const dataflow_model *m, arena *a, diag_list *diags)
{
    *x = (explore){.model = m, .arena = a, .parts = 1, .points = 1};
    x->parameters = ARENA_ARRAY(a, explore_parameter, EXPLORE_PARAMETERS_MAX);
    x->faces = ARENA_ARRAY(a, explore_face, EXPLORE_FACES_MAX);
    for (int k = 0; k < DATAFLOW_INTERVALS; k++)
        if (m->intervals[k])
            return refuse(m, diags, "says its intervals itself", "take cii, eii and latency away: the formulas say how they change");
    for (int kind = DATAFLOW_INPUT; kind <= DATAFLOW_WEIGHT; kind++)
        for (size_t i = 0; i < m->count; i++) {
            if (m->interfaces[i].kind != (dataflow_kind)kind)
                continue;
            if (x->face_count == EXPLORE_FACES_MAX)
                return refuse(m, diags, "has too many interfaces to explore",
                              arena_printf(a, "at most %d inputs and weights together", EXPLORE_FACES_MAX));
            if (!open_face(x, i, diags))
                return false;
        }
    if (!dataflow_always_tiles(m)) {
        x->trial = ARENA_NEW(a, dataflow_model);
        *x->trial = *m;
        x->trial->interfaces = ARENA_ARRAY(a, dataflow_interface, m->count);
        memcpy(x->trial->interfaces, m->interfaces, m->count * sizeof *m->interfaces);
    }
    return check_corners(x, diags);
}

/* ---- what a point costs: past 2^63 it is INT64_MAX, which no point is after check_corners ---- */

/* Whole elements of a x b x r; a x r is at most a block of the weight. */
static int64_t whole(int64_t a, int64_t b, dataflow_ratio r)
{
    if (r.bottom == 1)
        return product_bounded(product_bounded(a, r.top), b);
    __int128 one = (__int128)a * r.top, all = one / r.bottom * b + (one % r.bottom * b + r.bottom - 1) / r.bottom;
    return all > INT64_MAX ? INT64_MAX : (int64_t)all;
}

/* Elements of a weight's stream: max over inputs of wPar x iPar x block_W / block_I. */
static int64_t weight_stream(const explore *x, const explore_face *w, int64_t together, const int64_t *products)
{
    int64_t most = 0;
    for (size_t i = 0; i < x->input_count; i++) {
        int64_t s = whole(products[i], together, w->per_input[i]);
        most = s > most ? s : most;
    }
    return most;
}

explore_cost explore_cost_of_products(const explore *x, const int64_t *products)
{
    explore_cost c = {0};
    int64_t inputs = 0, weights = 0, groups = 1;
    for (size_t i = x->input_count; i < x->face_count; i++) {
        const explore_face *w = &x->faces[i];
        int64_t word = product_bounded(weight_stream(x, w, 1, products), w->bits), of_this = w->blocks / products[i];
        weights = sum_bounded(weights, products[i]);
        c.rows = products[i] > c.rows ? products[i] : c.rows;
        groups = of_this > groups ? of_this : groups;
        c.weight_bits = sum_bounded(c.weight_bits, product_bounded(weight_stream(x, w, products[i], products), w->bits));
        c.block_bits = word > c.block_bits ? word : c.block_bits;
    }
    for (size_t i = 0; i < x->input_count; i++) {
        const explore_face *in = &x->faces[i];
        int64_t latency = product_bounded(product_bounded(in->elements / products[i], groups), in->blocks),
                bits = product_bounded(product_bounded(products[i], in->bits), x->model->batch);
        inputs = sum_bounded(inputs, products[i]);
        c.latency = latency > c.latency ? latency : c.latency;
        c.input_bits = bits > c.input_bits ? bits : c.input_bits;
    }
    c.multipliers = product_bounded(inputs, weights ? weights : 1);
    return c;
}

static void products_of(const explore *x, const int64_t *choice, int64_t *products)
{
    for (size_t f = 0; f < x->face_count; f++)
        products[f] = 1;
    for (size_t i = 0; i < x->parameter_count; i++)
        products[x->parameters[i].face] *= x->parameters[i].divisors[choice[i]];
}

explore_cost explore_cost_of(const explore *x, const int64_t *choice)
{
    int64_t products[EXPLORE_FACES_MAX];
    products_of(x, choice, products);
    return explore_cost_of_products(x, products);
}

/* ---- FINN's folding ---- */

void explore_fold(explore *x, int64_t cycles)
{
    int64_t *choice = ARENA_ARRAY(x->arena, int64_t, x->parameter_count + 1), levels[EXPLORE_FACES_MAX] = {0};
    bool met = false;
    for (size_t i = 0; i < x->parameter_count && !met; i++)
        for (size_t k = 0; k < x->parameters[i].count && !met; k++) {
            choice[i] = (int64_t)k;
            explore_cost cost = explore_cost_of(x, choice);
            met = cost.latency < cycles;
            if (met || x->parameters[i].face >= x->input_count || k == 0 || x->limits.block_bits == 0 ||
                cost.block_bits <= x->limits.block_bits)
                continue;
            choice[i]--;
            break;
        }
    explore_cost cost = explore_cost_of(x, choice);
    x->legal = 1;
    x->folded = choice;
    explore_add(x, cost.latency, cost.multipliers, levels, 1);
}
