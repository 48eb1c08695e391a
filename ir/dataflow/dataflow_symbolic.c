#include "ir/dataflow/dataflow_symbolic.h"

#include <inttypes.h>
#include <string.h>

#include "support/strbuf.h"

enum { FACTORS_MAX = 12 * DATAFLOW_RANK_MAX };

/* A product. Numbers whose product would pass 2^62 are adjacent as text. */
typedef struct term {
    dataflow_ratio number;
    const char *top[FACTORS_MAX], *bottom[FACTORS_MAX];
    size_t top_count, bottom_count;
} term;

/* A size: a name, or a number where the name is NULL. */
typedef struct size_symbol {
    const char *name;
    int64_t number;
} size_symbol;

static term one(void)
{
    return (term){.number = {1, 1}};
}

static bool cancel(const char **list, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i], name) == 0) {
            memmove(&list[i], &list[i + 1], (--*count - i) * sizeof *list);
            return true;
        }
    return false;
}

static void put(const char **list, size_t *count, const char **other, size_t *other_count, const char *name)
{
    if (!cancel(other, other_count, name) && *count < FACTORS_MAX)
        list[(*count)++] = name;
}

static void times_name(term *t, const char *name)
{
    put(t->top, &t->top_count, t->bottom, &t->bottom_count, name);
}

static void over_name(term *t, const char *name)
{
    put(t->bottom, &t->bottom_count, t->top, &t->top_count, name);
}

static void times_ratio(term *t, dataflow_ratio r, arena *a)
{
    dataflow_ratio product = dataflow_multiply(t->number, r);
    if (product.bottom != 0) {
        t->number = product;
        return;
    }
    times_name(t, arena_printf(a, "%" PRId64, r.top));
    over_name(t, arena_printf(a, "%" PRId64, r.bottom));
}

static void times_size(term *t, size_symbol s, arena *a)
{
    if (s.name)
        times_name(t, s.name);
    else
        times_ratio(t, dataflow_ratio_of(s.number, 1), a);
}

static void over_size(term *t, size_symbol s, arena *a)
{
    if (s.name)
        over_name(t, s.name);
    else
        times_ratio(t, dataflow_ratio_of(1, s.number), a);
}

static void times_term(term *t, const term *by, arena *a)
{
    times_ratio(t, by->number, a);
    for (size_t i = 0; i < by->top_count; i++)
        times_name(t, by->top[i]);
    for (size_t i = 0; i < by->bottom_count; i++)
        over_name(t, by->bottom[i]);
}

static size_t text_factors(int64_t number, const char *const *names, size_t count, strbuf *out)
{
    size_t said = 0;
    if (number != 1 || count == 0) {
        strbuf_printf(out, "%" PRId64, number);
        said++;
    }
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "%s%s", said++ ? " * " : "", names[i]);
    return said;
}

static const char *text_of(const term *t, arena *a)
{
    strbuf top, bottom;
    strbuf_init(&top, a);
    strbuf_init(&bottom, a);
    text_factors(t->number.top, t->top, t->top_count, &top);
    if (t->number.bottom == 1 && t->bottom_count == 0)
        return top.text;
    size_t factors = text_factors(t->number.bottom, t->bottom, t->bottom_count, &bottom);
    return arena_printf(a, factors > 1 ? "%s / (%s)" : "%s / %s", top.text, bottom.text);
}

static bool is_number(const term *t)
{
    return t->top_count + t->bottom_count == 0;
}

/* ---- the largest of several products ---- */

typedef struct largest {
    term *terms;
    size_t count, capacity;
} largest;

/* Equal ones once, and of numbers the larger. */
static void consider(largest *l, const term *t, arena *a)
{
    for (size_t i = 0; i < l->count; i++) {
        term *known = &l->terms[i];
        if (strcmp(text_of(known, a), text_of(t, a)) == 0)
            return;
        if (!is_number(known) || !is_number(t))
            continue;
        if ((__int128)t->number.top * known->number.bottom > (__int128)known->number.top * t->number.bottom)
            *known = *t;
        return;
    }
    ARENA_PUSH(a, l->terms, l->count, l->capacity, *t);
}

static term largest_of(const largest *l, arena *a)
{
    if (l->count == 1)
        return l->terms[0];
    term t = one();
    const char *list = "";
    for (size_t i = 0; i < l->count; i++)
        list = arena_printf(a, "%s%s%s", list, i ? ", " : "", text_of(&l->terms[i], a));
    if (l->count > 0)
        times_name(&t, arena_printf(a, "max(%s)", list));
    return t;
}

/* ---- the sizes of an interface ---- */

static size_symbol tensor_of(const dataflow_interface *i, uint32_t k)
{
    return (size_symbol){i->tensor_names[k], i->tensor[k]};
}

static size_symbol block_of(const dataflow_interface *i, uint32_t k)
{
    return (size_symbol){i->block_names[k], i->block[k]};
}

/* What the dimension's parameter is at most. */
static int64_t room(const dataflow_interface *i, uint32_t k)
{
    return i->kind == DATAFLOW_INPUT ? i->block[k] : dataflow_blocks(i, k);
}

static size_symbol parallel_of(const dataflow_interface *i, uint32_t k, arena *a)
{
    const char *kind = i->kind == DATAFLOW_INPUT ? "iPar" : "wPar";
    uint32_t open = 0;
    for (uint32_t d = 0; d < i->rank; d++)
        open += room(i, d) > 1;
    if (i->parallel_names[k] || room(i, k) == 1)
        return (size_symbol){i->parallel_names[k], i->parallel[k]};
    return (size_symbol){open == 1 ? arena_printf(a, "%s_%s", kind, i->name) : arena_printf(a, "%s_%s_%" PRIu32, kind, i->name, k), 0};
}

/* a / b, rounded up where blocks are padded. */
static term quotient(const dataflow_model *m, const term *of, size_symbol by, arena *a)
{
    term t = *of;
    over_size(&t, by, a);
    bool whole = t.bottom_count == 0 && t.number.bottom == 1;
    if (!m->pads || whole)
        return t;
    term up = one();
    if (is_number(&t))
        up.number = dataflow_ratio_of(t.number.top / t.number.bottom + 1, 1);
    else
        times_name(&up, arena_printf(a, "ceil(%s)", text_of(&t, a)));
    return up;
}

static term blocks_of(const dataflow_model *m, const dataflow_interface *i, uint32_t k, arena *a)
{
    term t = one();
    times_size(&t, tensor_of(i, k), a);
    return quotient(m, &t, block_of(i, k), a);
}

static term num_blocks(const dataflow_model *m, const dataflow_interface *i, arena *a)
{
    term t = one();
    for (uint32_t k = 0; k < i->tensor_rank; k++) {
        term blocks = blocks_of(m, i, k, a);
        times_term(&t, &blocks, a);
    }
    return t;
}

static void times_block(term *t, const dataflow_interface *i, bool over, arena *a)
{
    for (uint32_t k = 0; k < i->rank; k++)
        (over ? over_size : times_size)(t, block_of(i, k), a);
}

static void times_parallel(term *t, const dataflow_interface *i, arena *a)
{
    for (uint32_t k = 0; k < i->rank; k++)
        times_size(t, parallel_of(i, k, a), a);
}

/* ---- the formulas ---- */

/* The largest prod(num_blocks / wPar). It is never less than 1. */
static term groups(const dataflow_model *m, arena *a)
{
    largest l = {0};
    for (size_t j = 0; j < m->count; j++) {
        const dataflow_interface *w = &m->interfaces[j];
        term t = one();
        if (w->kind != DATAFLOW_WEIGHT)
            continue;
        for (uint32_t k = 0; k < w->tensor_rank; k++) {
            term blocks = blocks_of(m, w, k, a), of_dimension = quotient(m, &blocks, parallel_of(w, k, a), a);
            times_term(&t, &of_dimension, a);
        }
        if (!is_number(&t) || t.number.top > t.number.bottom)
            consider(&l, &t, a);
    }
    return largest_of(&l, a);
}

/* An interval that the kernel says itself stands for what the formula would say. */
static void replace_given(const dataflow_model *m, const dataflow_interface *i, dataflow_interval which, term *t, arena *a)
{
    static const char *const names[] = {"cII", "eII", "L"};
    dataflow_function f = m->intervals[which];
    if (!f || f == dataflow_formula || (f == dataflow_given && i->given[which] == 0))
        return;
    *t = one();
    if (f == dataflow_given)
        times_ratio(t, dataflow_ratio_of(i->given[which], 1), a);
    else
        times_name(t, arena_printf(a, "%s_%s", names[which], i->name));
}

static void intervals_of(const dataflow_model *m, const dataflow_interface *i, arena *a, term out[DATAFLOW_INTERVALS])
{
    term *cii = &out[DATAFLOW_CII], *eii = &out[DATAFLOW_EII], *latency = &out[DATAFLOW_LATENCY], weights = groups(m, a),
         blocks = num_blocks(m, i, a);
    *cii = one();
    for (uint32_t k = 0; k < i->rank; k++) {
        term block = one();
        times_size(&block, block_of(i, k), a);
        block = quotient(m, &block, parallel_of(i, k, a), a);
        times_term(cii, &block, a);
    }
    replace_given(m, i, DATAFLOW_CII, cii, a);
    *eii = *cii;
    times_term(eii, &weights, a);
    replace_given(m, i, DATAFLOW_EII, eii, a);
    *latency = *eii;
    times_term(latency, &blocks, a);
    replace_given(m, i, DATAFLOW_LATENCY, latency, a);
}

static term input_stream(const dataflow_model *m, const dataflow_interface *i, arena *a)
{
    term t = one();
    times_parallel(&t, i, a);
    times_size(&t, (size_symbol){m->batch_name, m->batch}, a);
    return t;
}

/* max over inputs of wPar x iPar x block_W / block_I */
static term weight_stream(const dataflow_model *m, const dataflow_interface *w, arena *a)
{
    largest l = {0};
    for (size_t k = 0; k < m->count; k++) {
        const dataflow_interface *i = &m->interfaces[k];
        term t = one();
        if (i->kind != DATAFLOW_INPUT)
            continue;
        times_parallel(&t, w, a);
        times_parallel(&t, i, a);
        times_block(&t, w, false, a);
        times_block(&t, i, true, a);
        consider(&l, &t, a);
    }
    return largest_of(&l, a);
}

/* stream_I,b x block_O / block_I,b, for the input b that has the largest eII at the model's numbers */
static term output_stream(const dataflow_model *m, const dataflow_interface *o, arena *a)
{
    const dataflow_interface *b = &m->interfaces[m->bottleneck];
    term t = input_stream(m, b, a);
    times_block(&t, o, false, a);
    times_block(&t, b, true, a);
    return t;
}

dataflow_symbols dataflow_symbolic(const dataflow_model *m, const dataflow_interface *i, arena *a)
{
    dataflow_symbols s = {0};
    term stream = i->kind == DATAFLOW_INPUT    ? input_stream(m, i, a)
                  : i->kind == DATAFLOW_WEIGHT ? weight_stream(m, i, a)
                                               : output_stream(m, i, a);
    s.stream = text_of(&stream, a);
    if (i->kind != DATAFLOW_INPUT)
        return s;
    term intervals[DATAFLOW_INTERVALS];
    intervals_of(m, i, a, intervals);
    s.cii = text_of(&intervals[DATAFLOW_CII], a);
    s.eii = text_of(&intervals[DATAFLOW_EII], a);
    s.latency = text_of(&intervals[DATAFLOW_LATENCY], a);
    return s;
}

const char *dataflow_symbolic_latency(const dataflow_model *m, arena *a)
{
    largest l = {0};
    for (size_t k = 0; k < m->count; k++) {
        term intervals[DATAFLOW_INTERVALS];
        if (m->interfaces[k].kind != DATAFLOW_INPUT)
            continue;
        intervals_of(m, &m->interfaces[k], a, intervals);
        consider(&l, &intervals[DATAFLOW_LATENCY], a);
    }
    term t = largest_of(&l, a);
    return text_of(&t, a);
}
