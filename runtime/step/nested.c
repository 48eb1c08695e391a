#include "runtime/step/nested.h"

#include <string.h>

#include "support/budget.h"

nested *nested_new(uint32_t rank, arena *a)
{
    nested *s = ARENA_NEW(a, nested);
    *s = (nested){.arena = a, .rank = rank};
    return s;
}

void nested_push(nested *s, const nested_value *v)
{
    ARENA_PUSH(s->arena, s->values, s->count, s->capacity, v);
}

static void push_size(arena *a, nested_sizes *d, int64_t size)
{
    ARENA_PUSH(a, d->of, d->count, d->capacity, size);
}

void nested_size(nested *s, uint32_t dim, int64_t size)
{
    push_size(s->arena, &s->dims[dim], size);
}

/* A new item of D_d in each of its empty groups is an empty group of D_d-1. */
static void settle(nested *s, uint32_t d)
{
    nested_sizes inside = {0};
    size_t at = 0;
    for (size_t g = 0; g < s->dims[d].count; g++) {
        for (int64_t i = 0; i < s->dims[d].of[g]; i++)
            push_size(s->arena, &inside, s->dims[d - 1].of[at++]);
        if (s->dims[d].of[g] > 0)
            continue;
        push_size(s->arena, &inside, 0);
        s->dims[d].of[g] = 1;
    }
    s->dims[d - 1] = inside;
}

void nested_settle(nested *s)
{
    for (uint32_t d = s->rank; d-- > 1;)
        settle(s, d);
}

void nested_copy_sizes(nested *to, uint32_t at, const nested *from, uint32_t first)
{
    for (uint32_t d = first; d <= from->rank; d++)
        for (size_t g = 0; g < from->dims[d].count; g++)
            nested_size(to, at + d - first, from->dims[d].of[g]);
}

/* Of each group of `d` the sum over its items. */
static nested_sizes added(const nested *s, uint32_t d, const nested_sizes *items)
{
    nested_sizes sums = {0};
    size_t at = 0;
    for (size_t g = 0; g < s->dims[d].count; g++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < s->dims[d].of[g]; i++)
            sum += items->of[at++];
        push_size(s->arena, &sums, sum);
    }
    return sums;
}

nested_sizes nested_items_of_groups(const nested *s, uint32_t low, uint32_t high)
{
    nested_sizes sizes = s->dims[low];
    for (uint32_t d = low + 1; d <= high; d++)
        sizes = added(s, d, &sizes);
    return sizes;
}

nested_sizes nested_values_of_items(const nested *s, uint32_t b)
{
    nested_sizes ones = {0};
    if (b > 0)
        return nested_items_of_groups(s, 0, b - 1);
    for (size_t i = 0; i < s->count; i++)
        push_size(s->arena, &ones, 1);
    return ones;
}

/* ---- items ---- */

nested_items nested_items_begin(const nested *s, uint32_t b)
{
    return (nested_items){.of = s, .b = b};
}

bool nested_items_left(const nested_items *i)
{
    return i->b == 0 ? i->value < i->of->count : i->at[i->b - 1] < i->of->dims[i->b - 1].count;
}

int64_t nested_items_move(nested_items *i, nested *to)
{
    int64_t items = 1;
    for (uint32_t d = i->b; d-- > 0;) { /* `items` groups of D_d */
        int64_t inside = 0;
        for (int64_t k = 0; k < items; k++) {
            int64_t size = i->of->dims[d].of[i->at[d]++];
            inside += size;
            if (to)
                nested_size(to, d, size);
        }
        items = inside;
    }
    for (int64_t k = 0; k < items; k++, i->value++)
        if (to)
            nested_push(to, i->of->values[i->value]);
    return items;
}

/* ---- from tokens ---- */

static const nested_value *value_of(const step_value *v, arena *a);

static nested_value *tile_of(const step_value *v, nested_value *out)
{
    out->tile.rows = v->tile.rows;
    out->tile.columns = v->tile.columns;
    out->tile.valid = v->tile.valid;
    out->tile.exact = v->tile.elements;
    return out;
}

static const nested_value *value_of(const step_value *v, arena *a)
{
    nested_value *out = ARENA_NEW(a, nested_value);
    *out = (nested_value){.kind = v->kind};
    switch (v->kind) {
    case STEP_TILE: tile_of(v, out); break;
    case STEP_SELECTOR:
        out->selector.count = v->selector.count;
        out->selector.picks = v->selector.picks;
        break;
    case STEP_PAIR:
        out->pair.first = value_of(v->pair[0], a);
        out->pair.second = value_of(v->pair[1], a);
        break;
    case STEP_BUFFER: out->buffer = nested_of_tokens(v->buffer.tokens, v->buffer.count, v->buffer.rank - 1, true, a); break;
    case STEP_BOOL: out->flag = v->flag; break;
    case STEP_ADDRESS: out->address = v->address; break;
    case STEP_KINDS: break;
    }
    return out;
}

nested *nested_of_tokens(const step_token *tokens, size_t count, uint32_t rank, bool part, arena *a)
{
    nested *s = nested_new(rank, a);
    int64_t open[STEP_RANK_MAX + 2] = {0};
    budget_spend(a, count);
    for (size_t i = 0; i < count; i++) {
        if (tokens[i].kind == STEP_VALUE) {
            nested_push(s, value_of(tokens[i].value, a));
            open[0]++;
        }
        for (uint32_t d = 0; tokens[i].kind == STEP_STOP && d < tokens[i].level && d < rank; d++) {
            nested_size(s, d, open[d]);
            open[d] = 0;
            open[d + 1]++;
        }
    }
    bool ends = (count == 0 && !part) || (tokens[count - 1].kind == STEP_STOP && tokens[count - 1].level == rank);
    for (uint32_t d = 0; d < rank && !ends; d++) {
        nested_size(s, d, open[d]);
        open[d] = 0;
        open[d + 1]++;
    }
    nested_size(s, rank, open[rank]);
    return s;
}
