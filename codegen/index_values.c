#include "codegen/index_values.h"

#include <string.h>

/* Both limits of one list hold. */
static void meet(index_values *have, int64_t unit, int64_t count)
{
    if (have->count != 0 && count >= have->count)
        return;
    have->unit = unit;
    have->count = count;
}

/* Is the list a number of 64 bits, of which the statement reads the low half? */
static bool is_low_half(const einsum *e, const einsum_statement *s, uint32_t side)
{
    const einsum_tensor *list = &e->tensors[einsum_operand(s, (einsum_side)side)];
    static const char word[] = ".word"; /* no source can write such a name (frontend/running.c) */
    const char *name = list->rank == 1 ? e->axes[list->axes[0]].name : "";
    size_t length = strlen(name), end = sizeof word - 1;
    return length > end && strcmp(name + length - end, word) == 0;
}

static void mark_lists(const einsum *e, const einsum_statement *s, index_values *values)
{
    for (uint32_t i = 0; i < einsum_index_count(s); i++) {
        const einsum_index *x = &s->indices[i];
        if (x->positions > 0) {
            meet(&values[s->sources[i + 1]], x->step, x->positions);
            values[s->sources[i + 1]].rows = true;
            values[s->sources[i + 1]].wide |= is_low_half(e, s, EINSUM_B + i);
        }
    }
    if (s->counted) { /* none up to all of a span */
        index_values *count = &values[einsum_operand(s, einsum_count_side(s))];
        count->counts = true;
        meet(count, 1, s->count_span + 1);
    }
}

/* The constant that the only source is multiplied by; 0: the statement is something else. */
static int64_t factor_of(const einsum_statement *s)
{
    if (s->op == MATH_COPY)
        return 1;
    if (s->op != MATH_MAP || s->step_count != 3 || s->steps[2].op != SCALAR_MUL_I32)
        return 0;
    for (int i = 0; i < 2; i++)
        if (s->steps[i].op == SCALAR_SOURCE && s->steps[1 - i].op == SCALAR_CONSTANT_I32 && (int32_t)s->steps[1 - i].argument > 0)
            return (int32_t)s->steps[1 - i].argument;
    return 0;
}

enum { MOST_COMPARED = 1 << 20 };

static void add_bound(index_values *x, uint32_t bound)
{
    for (uint32_t i = 0; i < x->bound_count; i++)
        if (x->bounds[i] == (int32_t)bound)
            return;
    if (x->bound_count < INDEX_BOUNDS)
        x->bounds[x->bound_count++] = (int32_t)bound;
}

/* A range is what is taken off the number, its begin, and in front of that constant its span: the last one inside and the first one outside
 * of both ends. A constant that is no span gives numbers that decide nothing. */
static void mark_bounds(const einsum_statement *s, index_values *x)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i + 1 < s->step_count; i++) {
        if (s->steps[i].op != SCALAR_CONSTANT_I32)
            continue;
        uint32_t first = (uint32_t)s->steps[i].argument, last = first + before;
        before = first;
        if (s->steps[i + 1].op != SCALAR_SUB_I32)
            continue;
        add_bound(x, first - 1);
        add_bound(x, first);
        add_bound(x, last);
        add_bound(x, last + 1);
    }
}

/* A number that is 0 or 1 is what a condition says: its numbers are near those that it compares them with. */
static void mark_condition(const einsum *e, const einsum_statement *s, index_values *values)
{
    int64_t most = 1;
    for (uint32_t i = 0; i < s->step_count; i++) {
        int64_t with = (int32_t)s->steps[i].argument;
        with = with < 0 ? -with : with;
        if (s->steps[i].op == SCALAR_CONSTANT_I32 && with > most && with <= MOST_COMPARED)
            most = with;
    }
    for (uint32_t i = 0; i < s->source_count; i++) {
        index_values *x = &values[s->sources[i]];
        bool bits = e->tensors[s->sources[i]].dtype == DTYPE_U8;
        int64_t count = bits ? 2 : most + 2;
        if (x->count == 0 || (x->counts && count > x->count)) {
            x->unit = 1;
            x->count = count;
            x->counts = true;
            x->wide = e->tensors[s->sources[i]].rank > 0;
        }
        if (!bits)
            mark_bounds(s, x);
    }
}

/* Which tensors a result depends on. A port that is none of them may be a list of a table with one row, which no statement reads. */
static bool *needed_tensors(const einsum *e, arena *scratch)
{
    bool *needed = ARENA_ARRAY(scratch, bool, (size_t)e->tensor_count + 1);
    for (uint32_t i = e->statement_count; i-- > 0;) { /* what reads it comes after it */
        const einsum_statement *s = &e->statements[i];
        bool reads = e->tensors[s->dst].port >= 0 || needed[s->dst];
        for (uint32_t k = 0; reads && k < s->source_count; k++)
            needed[s->sources[k]] = true;
    }
    return needed;
}

bool index_values_of_port(const binary_kernel *k, uint32_t number, arena *scratch, index_values *out)
{
    const einsum *e = &k->einsum;
    index_values *values = ARENA_ARRAY(scratch, index_values, (size_t)e->tensor_count + 1);
    for (uint32_t i = 0; i < e->statement_count; i++)
        mark_lists(e, &e->statements[i], values);
    for (uint32_t i = e->statement_count; i-- > 0;) { /* what is made of the port comes after it */
        const einsum_statement *s = &e->statements[i];
        if (s->op == MATH_MAP && s->digit_count == 0 && values[s->dst].count == 2)
            mark_condition(e, s, values);
        int64_t factor = values[s->dst].count ? factor_of(s) : 0;
        if (factor > 0 && values[s->dst].unit % factor == 0)
            meet(&values[s->sources[0]], values[s->dst].unit / factor, values[s->dst].count); /* of a count a count */
        if (factor > 0 && values[s->dst].counts)
            values[s->sources[0]].counts = true;
        if (factor > 0 && values[s->dst].rows)
            values[s->sources[0]].rows = true;
    }
    const bool *needed_by_result = needed_tensors(e, scratch);
    bool integers = k->ports[number].dtype == DTYPE_I32, needed = false;
    for (uint32_t t = 0; t < e->tensor_count; t++) {
        if (e->tensors[t].port != (int32_t)number)
            continue;
        needed = needed || needed_by_result[t];
        if (values[t].count > 0) {
            *out = values[t];
            return true;
        }
    }
    if (!integers || needed)
        return false;
    *out = (index_values){.unit = 1, .count = 1};
    return true;
}
