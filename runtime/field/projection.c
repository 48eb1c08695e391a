#include "runtime/field/projection.h"

#include <stdlib.h>

#include "runtime/field/residue.h"
#include "runtime/machine/parallel.h"

enum {
    MOST_STATEMENTS = 1024, /* whose parts of the tensor are compared with each other */
    MOST_LINES = 1 << 22,
    BLOCK = 256,          /* lines whose values are made together */
    LEAST_TERMS = 1 << 16 /* that are worth a thread */
};
/* Elements of the sources that are read, one after the other. */
#define MOST_READ 1e9

/* ---- factors ---- */

static uint64_t factor_key(uint64_t seed, uint32_t tensor, uint32_t axis)
{
    return field_hash(field_hash(seed, UINT64_C(0x500000000) + tensor), axis);
}

bool field_factors_new(const einsum *e, uint32_t tensor, uint64_t seed, field_factors *out)
{
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t all = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        all += e->axes[t->axes[i]].size;
    *out = (field_factors){.rank = t->rank,
                           .sizes = malloc(((size_t)t->rank + 1) * sizeof *out->sizes),
                           .of = malloc(((size_t)t->rank + 1) * sizeof *out->of),
                           .held = malloc(((size_t)all + 1) * sizeof *out->held)};
    if (!out->sizes || !out->of || !out->held)
        return false;
    field_value *next = out->held;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint64_t key = factor_key(seed, tensor, i);
        out->sizes[i] = e->axes[t->axes[i]].size;
        out->of[i] = next;
        for (int64_t c = 0; c < out->sizes[i]; c++)
            *next++ = field_of_hash(field_hash(key, (uint64_t)c));
    }
    return true;
}

void field_factors_free(field_factors *f)
{
    free(f->sizes);
    free(f->of);
    free(f->held);
    *f = (field_factors){0};
}

void field_factors_of(const field_factors *f, int64_t element, int64_t count, field_value *out)
{
    int64_t inner = f->rank ? f->sizes[f->rank - 1] : 1;
    for (int64_t done = 0, part; done < count; done += part, element += part) {
        int64_t line = element / inner, first = element % inner;
        field_value outer = 1;
        part = inner - first < count - done ? inner - first : count - done;
        for (uint32_t i = f->rank; i-- > 1; line /= f->sizes[i - 1])
            outer = residue_product(outer, f->of[i - 1][line % f->sizes[i - 1]]);
        for (int64_t c = 0; c < part; c++)
            out[done + c] = f->rank ? residue_product(outer, f->of[f->rank - 1][first + c]) : 1;
    }
}

/* ---- digits ---- */

/* Which sources a digit moves, where more than one value of it counts. */
typedef enum digit_class { CLASS_ROW, CLASS_COLUMN, CLASS_BOTH, CLASSES } digit_class; /* what moves neither counts as a row */

static bool moves(const einsum *e, const einsum_statement *s, const einsum_digit *d, einsum_side side)
{
    return einsum_tensor_has(&e->tensors[einsum_operand(s, side)], d->axis) && einsum_digit_indexes(d, side);
}

static digit_class class_of(const einsum *e, const einsum_statement *s, const einsum_digit *d)
{
    bool a = moves(e, s, d, EINSUM_A), b = moves(e, s, d, EINSUM_B);
    return a && b ? CLASS_BOTH : b ? CLASS_COLUMN : CLASS_ROW;
}

/* Classes of the axis's digits of more than one value, those that are kept or all: a bit for each. */
static unsigned classes_of(const einsum *e, const einsum_statement *s, uint32_t axis, bool kept)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].axis == axis && s->digits[i].size > 1 && (s->digits[i].kept || !kept))
            found |= 1U << class_of(e, s, &s->digits[i]);
    return found;
}

static bool is_alone(unsigned classes)
{
    return (classes & (classes - 1)) == 0;
}

/* May a combination of digits leave the axis? */
static bool is_guarded(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    return einsum_reach(s, EINSUM_SIDES, axis).end + einsum_largest_shift(s, axis) > e->axes[axis].size;
}

/* Do two combinations of kept digits of an axis never have the same coordinate? */
static bool is_counted_once(const einsum_statement *s, uint32_t axis)
{
    int64_t reached = 0; /* by digits below */
    for (int64_t below = 0;;) {
        const einsum_digit *next = NULL;
        for (uint32_t i = 0; i < s->digit_count; i++) {
            const einsum_digit *d = &s->digits[i];
            if (d->kept && d->axis == axis && d->size > 1 && d->weight > below && (!next || d->weight < next->weight))
                next = d;
        }
        if (!next)
            break;
        if (next->weight <= reached)
            return false;
        below = next->weight;
        reached += (next->size - 1) * next->weight;
    }
    for (uint32_t i = 0; i < s->digit_count; i++) /* of the same weight */
        for (uint32_t j = 0; j < i; j++)
            if (s->digits[i].kept && s->digits[j].kept && s->digits[i].axis == axis && s->digits[j].axis == axis && s->digits[i].size > 1 &&
                s->digits[j].size > 1 && s->digits[i].weight == s->digits[j].weight)
                return false;
    return true;
}

static double combinations_of(const einsum *e, const einsum_statement *s, digit_class of)
{
    double count = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].size > 1 && class_of(e, s, &s->digits[i]) == of)
            count *= (double)s->digits[i].size;
    return count;
}

/* ---- is it possible? ---- */

static bool is_plain_input(const binary_kernel *k, const field_inputs *inputs, uint32_t tensor)
{
    const einsum *e = &k->einsum;
    int32_t number = e->tensors[tensor].port;
    bool plain = number >= 0 && k->ports[number].direction == PORT_IN && inputs->rows[number].count == 0;
    for (uint32_t i = 0; i < e->statement_count; i++)
        plain = plain && e->statements[i].dst != tensor;
    return plain;
}

static bool has_window(const einsum *e, uint32_t tensor)
{
    for (uint32_t i = 0; i < e->window_count; i++)
        if (einsum_tensor_has(&e->tensors[tensor], e->windows[i].axis))
            return true;
    return false;
}

static bool statement_projects(const binary_kernel *k, const field_inputs *inputs, const einsum_statement *s)
{
    const einsum *e = &k->einsum;
    if (s->op != MATH_CONTRACT || s->source_count != 2 || has_window(e, s->dst))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!is_plain_input(k, inputs, s->sources[i]) || has_window(e, s->sources[i]))
            return false;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        unsigned all = classes_of(e, s, d->axis, false);
        if (d->kept && d->size > 1 && (!einsum_tensor_has(&e->tensors[s->dst], d->axis) || !einsum_digit_indexes(d, EINSUM_DST)))
            return false;
        if (!is_alone(classes_of(e, s, d->axis, true)) || !is_counted_once(s, d->axis))
            return false;
        if (is_guarded(e, s, d->axis) && (all & 1U << CLASS_ROW) && (all & 1U << CLASS_COLUMN))
            return false; /* whether a row's term exists depends on the column */
    }
    double rows = combinations_of(e, s, CLASS_ROW), columns = combinations_of(e, s, CLASS_COLUMN);
    return rows <= MOST_LINES && columns <= MOST_LINES && combinations_of(e, s, CLASS_BOTH) * (rows + columns) <= MOST_READ;
}

/* Do two statements assign elements of their own? */
static bool are_apart(const einsum *e, const einsum_statement *s, const einsum_statement *t)
{
    const einsum_tensor *of = &e->tensors[s->dst];
    for (uint32_t i = 0; i < of->rank; i++) {
        einsum_span a = einsum_reach(s, EINSUM_DST, of->axes[i]), b = einsum_reach(t, EINSUM_DST, of->axes[i]);
        if (a.end <= b.low || b.end <= a.low)
            return true;
    }
    return false;
}

bool field_projects(const binary_kernel *k, const field_inputs *inputs, uint32_t tensor)
{
    const einsum *e = &k->einsum;
    uint32_t makers = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *s = &e->statements[i];
        if (s->dst != tensor)
            continue;
        if (++makers > MOST_STATEMENTS || !statement_projects(k, inputs, s))
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (e->statements[j].dst == tensor && !are_apart(e, s, &e->statements[j]))
                return false;
    }
    return makers > 0;
}

/* ---- the projection ---- */

/* Digits of a class, whose combinations are numbered. */
typedef struct digit_list {
    const einsum_digit *items[EINSUM_STATEMENT_DIGITS];
    unsigned count;
    int64_t combinations;
} digit_list;

/* A source, and the digits that move it alone. */
typedef struct source_side {
    einsum_side side;
    uint64_t key; /* of the input */
    digit_list digits;
    const uint32_t *guards; /* axes of which it is asked here whether their coordinates exist */
    unsigned guard_count;
    int64_t *elements, *coordinates; /* by line; of each guard by line */
    uint64_t *factors;
    int64_t apart; /* elements between two lines that follow each other; 0: not always as many */
    int64_t base;  /* of the element: shifts */
} source_side;

typedef struct projecting {
    const binary_kernel *kernel;
    const einsum_statement *s;
    const field_factors *factors;
    source_side sides[2];
    digit_list both;
    uint64_t sums[PARALLEL_PARTS];
} projecting;

/* Those of an axis with the heaviest first, so that its coordinates follow each other where they can. */
static void list_digits(const einsum *e, const einsum_statement *s, digit_class of, digit_list *out)
{
    out->count = 0;
    out->combinations = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].size > 1 && class_of(e, s, &s->digits[i]) == of) {
            unsigned at = out->count++;
            for (; at > 0 && out->items[at - 1]->axis == s->digits[i].axis && out->items[at - 1]->weight < s->digits[i].weight; at--)
                out->items[at] = out->items[at - 1];
            out->items[at] = &s->digits[i];
            out->combinations *= s->digits[i].size;
        }
}

/* What a combination of the digits adds to the coordinate of an axis, on a side (EINSUM_SIDES: all of them; of the destination those kept).
 */
static int64_t added(const digit_list *l, int64_t number, uint32_t axis, einsum_side side)
{
    int64_t sum = 0;
    for (unsigned i = l->count; i-- > 0; number /= l->items[i]->size) {
        const einsum_digit *d = l->items[i];
        if (d->axis == axis && (side != EINSUM_DST || d->kept) && (side == EINSUM_SIDES || einsum_digit_indexes(d, side)))
            sum += number % d->size * d->weight;
    }
    return sum;
}

static int64_t element_of(const projecting *p, const digit_list *l, int64_t number, einsum_side side, bool shifted)
{
    const einsum *e = &p->kernel->einsum;
    const einsum_tensor *t = &e->tensors[einsum_operand(p->s, side)];
    int64_t element = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        element = element * e->axes[t->axes[i]].size + added(l, number, t->axes[i], side) +
                  (shifted ? einsum_shift_along(p->s, side, t->axes[i]) : 0);
    return element;
}

/* The factors of the destination's axes that digits of the list move; with `still` those that none does. */
static uint64_t factor_of(const projecting *p, const digit_list *l, int64_t number, bool still)
{
    const einsum_tensor *t = &p->kernel->einsum.tensors[p->s->dst];
    uint64_t factor = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool moved = false;
        for (unsigned d = 0; d < l->count; d++)
            moved |= l->items[d]->axis == t->axes[i] && l->items[d]->kept;
        if (!moved && !(still && classes_of(&p->kernel->einsum, p->s, t->axes[i], true) == 0))
            continue;
        int64_t at = added(l, number, t->axes[i], EINSUM_DST) + einsum_shift_along(p->s, EINSUM_DST, t->axes[i]);
        factor = at < p->factors->sizes[i] ? residue_product(factor, p->factors->of[i][at]) : 0;
    }
    return factor;
}

static void side_free(source_side *x)
{
    free(x->elements);
    free(x->coordinates);
    free(x->factors);
}

static bool side_open(projecting *p, source_side *x, einsum_side side, const field_inputs *inputs, const uint32_t *guards,
                      unsigned guard_count)
{
    const einsum *e = &p->kernel->einsum;
    x->side = side;
    x->guards = guards;
    x->guard_count = guard_count;
    x->key = field_input_key(inputs->seed, (uint32_t)e->tensors[einsum_operand(p->s, side)].port);
    list_digits(e, p->s, side == EINSUM_A ? CLASS_ROW : CLASS_COLUMN, &x->digits);
    size_t lines = (size_t)x->digits.combinations;
    x->elements = malloc(lines * sizeof *x->elements);
    x->factors = malloc(lines * sizeof *x->factors);
    x->coordinates = malloc((lines * guard_count + 1) * sizeof *x->coordinates);
    if (!x->elements || !x->factors || !x->coordinates)
        return false;
    for (int64_t i = 0; i < x->digits.combinations; i++) {
        x->elements[i] = element_of(p, &x->digits, i, side, false);
        x->factors[i] = factor_of(p, &x->digits, i, false);
        for (unsigned g = 0; g < guard_count; g++)
            x->coordinates[(size_t)g * lines + (size_t)i] = added(&x->digits, i, guards[g], EINSUM_SIDES);
    }
    x->apart = x->digits.combinations > 1 ? x->elements[1] - x->elements[0] : 0;
    for (int64_t i = 1; i < x->digits.combinations; i++)
        x->apart = x->elements[i] - x->elements[i - 1] == x->apart ? x->apart : 0;
    x->base = element_of(p, &(digit_list){.combinations = 1}, 0, side, true);
    return true;
}

static bool is_inside(const projecting *p, const source_side *x, int64_t both, int64_t line)
{
    const einsum *e = &p->kernel->einsum;
    for (unsigned g = 0; g < x->guard_count; g++)
        if (x->coordinates[g * x->digits.combinations + line] + added(&p->both, both, x->guards[g], EINSUM_SIDES) +
                einsum_largest_shift(p->s, x->guards[g]) >=
            e->axes[x->guards[g]].size)
            return false;
    return true;
}

/* The lines of a source, each times its factor. */
static uint64_t sum_of_lines(const projecting *p, const source_side *x, int64_t both)
{
    int64_t base = x->base + element_of(p, &p->both, both, x->side, false), lines = x->digits.combinations;
    unsigned __int128 sum = 0;
    for (int64_t first = 0, count; first < lines; first += count) {
        uint64_t values[BLOCK];
        count = first + BLOCK < lines ? BLOCK : lines - first;
        if (x->apart > 0) {
            field_inputs_from(x->key, (uint64_t)(base + x->elements[first]), x->apart, count, values);
        } else {
            for (int64_t i = 0; i < count; i++)
                values[i] = (uint64_t)(base + x->elements[first + i]);
            field_inputs_at(x->key, values, count);
        }
        for (int64_t i = 0; x->guard_count > 0 && i < count; i++)
            values[i] = is_inside(p, x, both, first + i) ? values[i] : 0;
        for (int64_t i = 0, end; i < count; i = end) {
            end = i + RESIDUE_PRODUCTS < count ? i + RESIDUE_PRODUCTS : count;
            sum = residue(sum);
            for (int64_t j = i; j < end; j++)
                sum += (unsigned __int128)x->factors[first + j] * values[j];
        }
    }
    return residue(sum);
}

static void project_part(void *of, unsigned part, int64_t first, int64_t end)
{
    projecting *p = of;
    uint64_t sum = 0;
    for (int64_t i = first; i < end; i++) {
        uint64_t rows = sum_of_lines(p, &p->sides[0], i), columns = sum_of_lines(p, &p->sides[1], i);
        sum = residue((unsigned __int128)residue_product(rows, columns) * factor_of(p, &p->both, i, true) + sum);
    }
    p->sums[part] = sum;
}

/* Axes whose coordinates may not exist, by the side that knows: what moves the columns is theirs. */
static void list_guards(const einsum *e, const einsum_statement *s, uint32_t guards[2][EINSUM_STATEMENT_DIGITS], unsigned *counts)
{
    counts[0] = counts[1] = 0;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        uint32_t axis = s->digits[i].axis;
        bool known = false;
        for (uint32_t j = 0; j < i; j++)
            known |= s->digits[j].axis == axis;
        int side = (classes_of(e, s, axis, false) & 1U << CLASS_COLUMN) != 0;
        if (!known && is_guarded(e, s, axis))
            guards[side][counts[side]++] = axis;
    }
}

static bool add_statement(const binary_kernel *k, const einsum_statement *s, const field_inputs *inputs, const field_factors *factors,
                          unsigned threads, uint64_t *sum)
{
    projecting *p = calloc(1, sizeof *p);
    uint32_t guards[2][EINSUM_STATEMENT_DIGITS];
    unsigned counts[2];
    if (!p)
        return false;
    *p = (projecting){.kernel = k, .s = s, .factors = factors};
    list_guards(&k->einsum, s, guards, counts);
    list_digits(&k->einsum, s, CLASS_BOTH, &p->both);
    bool done = side_open(p, &p->sides[0], EINSUM_A, inputs, guards[0], counts[0]) &&
                side_open(p, &p->sides[1], EINSUM_B, inputs, guards[1], counts[1]);
    if (done) {
        int64_t lines = p->sides[0].digits.combinations + p->sides[1].digits.combinations;
        unsigned parts = parallel_parts(p->both.combinations, LEAST_TERMS / lines + 1, parallel_workers(threads), project_part, p);
        for (unsigned i = 0; i < parts; i++)
            *sum = residue((unsigned __int128)*sum + p->sums[i]);
    }
    side_free(&p->sides[0]);
    side_free(&p->sides[1]);
    free(p);
    return done;
}

bool field_projection(const binary_kernel *k, const field_inputs *inputs, uint32_t tensor, const field_factors *factors, unsigned threads,
                      field_value *out)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k->einsum.statement_count; i++)
        if (k->einsum.statements[i].dst == tensor && !add_statement(k, &k->einsum.statements[i], inputs, factors, threads, &sum))
            return false;
    *out = sum;
    return true;
}
