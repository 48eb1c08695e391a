/* Lane products and their sums over a field. */
#include <stdlib.h>

#include "runtime/field/align.h"
#include "runtime/field/contract.h"
#include "runtime/field/product.h"
#include "support/integer.h"

enum { MOST_LANES = 128 };

typedef struct contract_state {
    mask_unit unit; /* where the slice is, for its masks */
    unsigned char live[MOST_LANES];
    field_products *products;
} contract_state;

static bool open_contract(field_stage_run *r)
{
    contract_state *s = r->state;
    s->unit = contraction_unit(r->run->machine->plans, r->run->unit);
    s->products = field_products_best();
    return true;
}

mask_state field_contract_live(field_stage_run *r, int64_t step, const unsigned char **live)
{
    const contraction *k = r->stage->plan;
    contract_state *s = r->state;
    *live = s->live;
    return k->masks.count ? mask_set_at(&k->masks, &s->unit, step, s->live) : MASK_ALL;
}

/* Products of lanes and weights that repeat; `live`: NULL, all count. */
static field_value sum_of(const field_value *lanes, const field_value *weight, int64_t first, int64_t count, int64_t period,
                          const unsigned char *live)
{
    field_sum sum = 0;
    for (int64_t i = first; i < first + count; i++)
        if (!live || live[i]) {
            sum += (field_sum)lanes[i] * weight[i & (period - 1)];
            sum = (i - first) % FIELD_MOST_PRODUCTS == FIELD_MOST_PRODUCTS - 1 ? field_fold(sum) : sum;
        }
    return field_of_sum(sum);
}

/* A whole step, in order. */
static void read_step(field_stage_run *r, int64_t step, field_value *out)
{
    const contraction *k = r->stage->plan;
    contract_state *s = r->state;
    int64_t width = INT64_C(1) << k->tree.depth, row_values = 0;
    const unsigned char *live;
    mask_state state = field_contract_live(r, step, &live);
    const field_value *weight = state == MASK_NONE ? NULL : field_align_weights(r->before, step, &row_values);
    if (!weight) {
        for (int64_t i = 0; i < k->rows * k->tree.columns; i++)
            out[i] = 0;
        return;
    }
    const field_value *lanes = field_align_lanes(r->before, step);
    if (state == MASK_ALL && k->weights.read_elements >= k->tree.columns * width) {
        s->products(&(field_packet){lanes, weight, row_values, k->rows, k->tree.columns, width}, out);
        return;
    }
    for (int64_t row = 0; row < k->rows; row++)
        for (int64_t g = 0; g < k->tree.columns; g++)
            *out++ = sum_of(lanes, weight + row * row_values, g * width, width, k->weights.read_elements, state == MASK_SOME ? live : NULL);
}

static void note(field_terms *terms, field_value lane, field_value weight)
{
    if (terms->count == terms->capacity) {
        size_t capacity = terms->capacity ? 2 * terms->capacity : 1024;
        field_term *items = realloc(terms->items, capacity * sizeof *items);
        if (!items)
            return;
        terms->items = items;
        terms->capacity = capacity;
    }
    terms->items[terms->count++] = (field_term){lane, weight};
}

/* One column of one Row; its terms are noted. */
static field_value read_one(field_stage_run *r, int64_t step, int64_t row, int64_t column)
{
    const contraction *k = r->stage->plan;
    field_terms *terms = field_trace_noting(r->run->machine->trace);
    int64_t width = INT64_C(1) << k->tree.depth, first = column * width;
    field_value lanes[MOST_LANES], weight[MOST_LANES], sum = 0;
    const unsigned char *live;
    mask_state state = field_contract_live(r, step, &live);
    bool some = state == MASK_ALL;
    for (int64_t i = 0; state == MASK_SOME && i < width; i++)
        some |= live[first + i];
    if (!some)
        return 0;
    if (terms)
        terms->depth++;
    field_before(r, ((step * 2 + 0) * k->rows + row) * k->lanes + first, width, lanes);
    field_before(r, ((step * 2 + 1) * k->rows + row) * k->lanes + first, width, weight);
    if (terms)
        terms->depth--;
    for (int64_t i = 0; i < width && !r->run->fault->set; i++)
        if (state == MASK_ALL || live[first + i]) {
            if (terms && terms->depth == 0)
                note(terms, lanes[i], weight[i]);
            sum = field_add(sum, field_multiply(lanes[i], weight[i]));
        }
    if (terms && terms->depth == 0)
        terms->is_sum = true;
    return sum;
}

static void read_contract(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const contraction *k = r->stage->plan;
    int64_t columns = k->tree.columns, each = columns * k->rows;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        part = !r->run->machine->trace && first % each == 0 && count >= each ? each : 1;
        if (part == each && !r->run->machine->trace)
            read_step(r, first / each, out);
        else
            *out = read_one(r, first / each, first / columns % k->rows, first % columns);
    }
}

/* Columns of whole packets, whose terms are asked for together. */
enum { MOST_TERMS = 512 };
typedef struct column_block {
    field_spans data, weights;
    int64_t count, width; /* columns; lanes of each */
    field_value *out;
} column_block;

static void read_columns(field_stage_run *r, column_block *b)
{
    field_terms *terms = field_trace_noting(r->run->machine->trace);
    field_value lanes[MOST_TERMS], weight[MOST_TERMS];
    if (terms)
        terms->depth++;
    field_before_spans(r, &b->data, lanes);
    field_before_spans(r, &b->weights, weight);
    if (terms)
        terms->depth--;
    bool notes = terms && terms->depth == 0;
    for (int64_t i = 0; i < b->count && !r->run->fault->set; i++) {
        b->out[i] = sum_of(lanes + i * b->width, weight + i * b->width, 0, b->width, MOST_TERMS, NULL);
        for (int64_t j = 0; notes && j < b->width; j++)
            note(terms, lanes[i * b->width + j], weight[i * b->width + j]);
    }
    if (notes)
        terms->is_sum = true;
    b->out += b->count;
    b->count = 0;
}

static void read_contract_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    const contraction *k = r->stage->plan;
    column_block b = {.width = INT64_C(1) << k->tree.depth, .out = out};
    for (size_t i = 0; i < count; i++)
        for (int64_t j = 0; j < spans[i].count && !r->run->fault->set; j++) {
            int64_t at = spans[i].first + j * spans[i].apart, column = at % k->tree.columns, row = at / k->tree.columns % k->rows,
                    step = at / k->tree.columns / k->rows;
            const unsigned char *live;
            if (field_contract_live(r, step, &live) == MASK_ALL) {
                int64_t first = (step * 2 * k->rows + row) * k->lanes + column * b.width;
                field_spans_add(&b.data, (field_span){first, 1, b.width});
                field_spans_add(&b.weights, (field_span){first + k->rows * k->lanes, 1, b.width});
                b.count++;
            } else {
                if (b.count > 0)
                    read_columns(r, &b);
                *b.out++ = read_one(r, step, row, column);
            }
            if (b.count > 0 && (b.count + 1) * b.width > MOST_TERMS)
                read_columns(r, &b);
        }
    if (b.count > 0 && !r->run->fault->set)
        read_columns(r, &b);
    field_spans_free(&b.data);
    field_spans_free(&b.weights);
}

const field_stage field_contract = {
    .state_bytes = sizeof(contract_state), .open = open_contract, .read = read_contract, .read_spans = read_contract_spans};
