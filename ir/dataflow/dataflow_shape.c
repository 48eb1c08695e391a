#include "ir/dataflow/dataflow_shape.h"

#include <inttypes.h>
#include <stdarg.h>

#include "support/integer.h"

const char *dataflow_near_divisors(int64_t n, int64_t v, arena *a)
{
    enum { SEARCHED = 44 }; /* power of two */
    int64_t below = 0, above = 0;
    if (n > INT64_C(1) << SEARCHED)
        return arena_printf(a, "a divisor of %" PRId64, n);
    for (int64_t d = 1; d <= n / d; d++) {
        if (n % d != 0)
            continue;
        const int64_t both[] = {d, n / d};
        for (int k = 0; k < 2; k++) {
            below = both[k] <= v && both[k] > below ? both[k] : below;
            above = both[k] >= v && (above == 0 || both[k] < above) ? both[k] : above;
        }
    }
    if (below == 0 || above == 0)
        return arena_printf(a, "%" PRId64, below + above);
    return arena_printf(a, "%" PRId64 " or %" PRId64, below, above);
}

diag *dataflow_refuse(dataflow_check *c, diag_id id, src_range at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(c->diags->arena, format, args);
    va_end(args);
    c->bad = true;
    return diag_add(c->diags, id, at, "%s", text);
}

bool dataflow_past(dataflow_check *s, const dataflow_interface *i, const char *what)
{
    diag_help(s->diags,
              dataflow_refuse(s, E_DATAFLOW_SIZE, i->range, "%s `%s`: %s is past 2^62", dataflow_kind_name(i->kind), i->name, what),
              "make it smaller");
    return false;
}

/* ---- the part of a block ---- */

/* A number of elements as a tile of the block, from the innermost dimension on. What is left over divides no dimension. */
static int64_t spread(int64_t count, const int64_t *room, uint32_t rank, int64_t *tile)
{
    for (uint32_t k = rank; k-- > 0;) {
        tile[k] = gcd(count, room[k]);
        count /= tile[k];
    }
    return count;
}

/* A number of elements that need not tile: whole rows, and so much of the next dimension. */
static void cover(int64_t count, const int64_t *room, uint32_t rank, int64_t *tile)
{
    for (uint32_t k = rank; k-- > 0;) {
        tile[k] = smaller(count, room[k]);
        count = ceil_div(count, tile[k]);
    }
}

static int64_t tile_elements(const int64_t *tile, uint32_t rank)
{
    int64_t elements = 1; /* of a part of a block */
    for (uint32_t k = 0; k < rank; k++)
        elements *= tile[k];
    return elements;
}

/* The dimension of the input that a dimension of another interface is aligned with, innermost with innermost. -1: none. */
static int beside(const dataflow_interface *i, const dataflow_interface *input, uint32_t dimension)
{
    return (int)dimension - (int)i->rank + (int)input->rank;
}

/* iPar x block / block of the input, in one dimension: elements per cycle. */
static dataflow_ratio rate_along(const dataflow_interface *i, const dataflow_interface *input, uint32_t dimension)
{
    int at = beside(i, input, dimension);
    dataflow_ratio one = at < 0 ? dataflow_ratio_of(1, 1) : dataflow_ratio_of(input->parallel[at], input->block[at]);
    return dataflow_multiply(one, dataflow_ratio_of(i->block[dimension], 1));
}

static bool is_regular(dataflow_ratio r)
{
    return r.bottom == 1 || r.top == 1;
}

/* Each dimension by itself, as the formula is written: whole elements, or an element every few cycles. */
static bool part_by_dimension(const dataflow_interface *i, const dataflow_interface *input, int64_t *part)
{
    for (uint32_t k = 0; k < i->rank; k++) {
        dataflow_ratio r = rate_along(i, input, k);
        if (!is_regular(r))
            return false;
        part[k] = r.bottom == 1 ? r.top : 1;
    }
    return true;
}

/* What of a block a transfer carries. False: what comes per cycle tiles no block; `part` then covers it. */
static bool part_of_block(const dataflow_interface *i, const dataflow_interface *input, int64_t *part)
{
    int64_t parallel = 1;
    for (uint32_t k = 0; k < input->rank; k++)
        parallel *= input->parallel[k];
    dataflow_ratio rate =
        dataflow_multiply(dataflow_ratio_of(parallel, dataflow_block_elements(input)), dataflow_ratio_of(dataflow_block_elements(i), 1));
    int64_t whole = ceil_div(rate.top, rate.bottom);
    bool regular = part_by_dimension(i, input, part);
    if (regular && (rate.bottom != 1 || tile_elements(part, i->rank) == whole))
        return true;
    if (spread(whole, i->block, i->rank, part) == 1)
        return true;
    cover(whole, i->block, i->rank, part);
    return false;
}

/* ---- what does not tile ---- */

/* With several inputs the streams of the others are the formulas' worst case, a width and no order of elements: NULL. */
static const dataflow_interface *only_input(const dataflow_model *m)
{
    const dataflow_interface *only = NULL;
    for (size_t k = 0; k < m->count; k++)
        if (m->interfaces[k].kind == DATAFLOW_INPUT) {
            if (only)
                return NULL;
            only = &m->interfaces[k];
        }
    return only;
}

/* Would this iPar of the input do? */
static bool tiles_with(const dataflow_interface *i, const dataflow_interface *input, uint32_t dimension, int64_t parallel)
{
    dataflow_interface other = *input;
    int64_t part[DATAFLOW_RANK_MAX];
    other.parallel[dimension] = parallel;
    return input->block[dimension] % parallel == 0 && part_of_block(i, &other, part);
}

/* The iPar nearest to the written one, below and above, with which the stream tiles; NULL: none in this dimension alone. */
static const char *near_parallel(const dataflow_interface *i, const dataflow_interface *input, uint32_t dimension, arena *a)
{
    enum { SEARCHED = 40 }; /* power of two */
    int64_t n = input->block[dimension], below = 0, above = 0;
    if (n > INT64_C(1) << SEARCHED)
        return NULL;
    for (int64_t d = 1; d <= n / d; d++) {
        if (n % d != 0)
            continue;
        const int64_t both[] = {d, n / d};
        for (int k = 0; k < 2; k++) {
            bool lower = both[k] < input->parallel[dimension];
            if ((lower ? both[k] <= below : above != 0 && both[k] >= above) || !tiles_with(i, input, dimension, both[k]))
                continue;
            *(lower ? &below : &above) = both[k];
        }
    }
    if (below == 0 && above == 0)
        return NULL;
    return below == 0 || above == 0 ? arena_printf(a, "%" PRId64, below + above) : arena_printf(a, "%" PRId64 " or %" PRId64, below, above);
}

static void refuse_part(dataflow_check *s, const dataflow_interface *i, const dataflow_interface *input)
{
    uint32_t at = 0; /* the dimension that is at fault */
    arena *a = s->diags->arena;
    while (at + 1 < i->rank && is_regular(rate_along(i, input, at)))
        at++;
    uint32_t of_input = beside(i, input, at) < 0 ? 0 : (uint32_t)beside(i, input, at);
    const char *near = near_parallel(i, input, of_input, a);
    diag *d = dataflow_refuse(s, E_DATAFLOW_STREAM, i->block_range,
                              "%s `%s`: dimension %" PRIu32 " of its stream, %s elements per cycle, does not tile the block's %" PRId64,
                              dataflow_kind_name(i->kind), i->name, at, dataflow_ratio_text(rate_along(i, input, at), a), i->block[at]);
    diag_note(s->diags, d, input->parallel_range,
              "iPar of `%s` in dimension %" PRIu32 " is %" PRId64 " of the %" PRId64 " elements of its block", input->name, of_input,
              input->parallel[of_input], input->block[of_input]);
    if (near)
        diag_help(s->diags, d, "take %s there, or `pads: true`", near);
    else
        diag_help(s->diags, d, "take the whole block of `%s` as its iPar, or `pads: true`", input->name);
}

/* ---- outputs ---- */

/* Blocks of all weights together: a calculation takes one block of each. */
static int64_t weight_blocks(const dataflow_model *m)
{
    int64_t most = 1;
    for (size_t k = 0; k < m->count; k++)
        if (m->interfaces[k].kind == DATAFLOW_WEIGHT)
            most = larger(most, m->interfaces[k].num_blocks);
    return most;
}

/* The tensor that is calculated: an output block for each input block, and innermost those of the weights. */
static bool calculate_tensor(const dataflow_interface *input, int64_t of_weights, dataflow_interface *o)
{
    int64_t blocks[DATAFLOW_RANK_MAX], elements = 1;
    for (uint32_t k = 0; k < o->rank; k++)
        blocks[k] = 1;
    for (uint32_t k = 0; k < input->rank; k++) {
        int at = beside(input, o, k);
        if (!dataflow_product(blocks[at < 0 ? 0 : at], dataflow_blocks(input, k), &blocks[at < 0 ? 0 : at]))
            return false;
    }
    if (!dataflow_product(blocks[o->rank - 1], of_weights, &blocks[o->rank - 1]))
        return false;
    for (uint32_t k = 0; k < o->rank; k++)
        if (!dataflow_product(blocks[k], o->block[k], &o->calculated[k]) || !dataflow_product(elements, o->calculated[k], &elements))
            return false;
    return true;
}

/* As many blocks as are calculated from one of the inputs? */
static bool is_calculated(const dataflow_model *m, int64_t of_weights, const dataflow_interface *o)
{
    int64_t blocks = 1, calculations;
    for (uint32_t k = 0; k < o->tensor_rank; k++)
        blocks *= dataflow_blocks(o, k);
    for (size_t k = 0; k < m->count; k++)
        if (m->interfaces[k].kind == DATAFLOW_INPUT && dataflow_product(m->interfaces[k].num_blocks, of_weights, &calculations) &&
            calculations == blocks)
            return true;
    return false;
}

static void refuse_tensor(dataflow_check *s, const dataflow_interface *input, int64_t of_weights, const dataflow_interface *o)
{
    const char *tensor = "";
    uint32_t at = 0;
    int64_t blocks = 1;
    arena *a = s->diags->arena;
    for (uint32_t k = 0; k < o->rank; k++)
        tensor = arena_printf(a, "%s%s%" PRId64, tensor, k ? ", " : "", o->calculated[k]);
    for (uint32_t k = 0; k < o->rank; k++)
        blocks *= dataflow_blocks(o, k);
    while (at + 1 < o->rank && o->tensor[at] == o->calculated[at])
        at++;
    diag *d = dataflow_refuse(s, E_DATAFLOW_OUTPUT, o->tensor_range,
                              "output `%s`: its tensor has %" PRId64 " block%s, and %" PRId64 " %s calculated, %" PRId64
                              " of `%s` times %" PRId64 " of the weights: dimension %" PRIu32 " is %" PRId64 " and not %" PRId64,
                              o->name, blocks, blocks == 1 ? "" : "s", input->num_blocks * of_weights,
                              input->num_blocks * of_weights == 1 ? "is" : "are", input->num_blocks, input->name, of_weights, at,
                              o->tensor[at], o->calculated[at]);
    diag_help(s->diags, d, "take `tensor: [%s]`", tensor);
}

static bool output_tensor(dataflow_check *s, const dataflow_interface *input, int64_t of_weights, dataflow_interface *o)
{
    if (!calculate_tensor(input, of_weights, o))
        return dataflow_past(s, o, "the tensor that is calculated");
    if (o->tensor_rank > 0 && !is_calculated(s->model, of_weights, o)) {
        refuse_tensor(s, input, of_weights, o);
        return false;
    }
    for (uint32_t k = 0; k < o->rank && o->tensor_rank > 0; k++)
        o->calculated[k] = o->tensor[k];
    return true;
}

/* The calculations that run side by side lie along the dimension that has all blocks of the weights; else from the innermost on. */
static void output_across(const dataflow_model *m, int64_t of_weights, dataflow_interface *o)
{
    int64_t together = ceil_div(of_weights, m->groups), blocks[DATAFLOW_RANK_MAX];
    for (uint32_t k = 0; k < o->rank; k++) {
        blocks[k] = ceil_div(o->calculated[k], o->block[k]);
        o->shape.across[k] = 1;
    }
    for (uint32_t k = o->rank; k-- > 0;)
        if (blocks[k] % of_weights == 0) {
            o->shape.across[k] = together;
            return;
        }
    if (spread(together, blocks, o->rank, o->shape.across) != 1)
        cover(together, blocks, o->rank, o->shape.across);
}

/* ---- all of it ---- */

/* The input that a weight's stream keeps up with. */
static const dataflow_interface *widest_input(const dataflow_model *m, const dataflow_interface *w)
{
    const dataflow_interface *widest = NULL;
    dataflow_ratio most = {0, 1};
    for (size_t k = 0; k < m->count; k++) {
        const dataflow_interface *i = &m->interfaces[k];
        if (i->kind != DATAFLOW_INPUT)
            continue;
        dataflow_ratio s = dataflow_multiply(i->stream, dataflow_ratio_of(dataflow_block_elements(w), dataflow_block_elements(i)));
        if (!widest || dataflow_larger(s, most)) {
            widest = i;
            most = s;
        }
    }
    return widest;
}

/* The word, the grid of words and their period, from what is side by side and what part of it. `input` gives the calculation's cycles. */
static bool finish_shape(dataflow_check *s, const dataflow_interface *input, dataflow_interface *i)
{
    dataflow_shape *shape = &i->shape;
    int64_t words = 1, grid = 1, bits;
    shape->elements = i->kind == DATAFLOW_WEIGHT ? 1 : s->model->batch;
    for (uint32_t k = 0; k < i->rank; k++) {
        int64_t blocks = i->kind == DATAFLOW_OUTPUT ? ceil_div(i->calculated[k], i->block[k]) : dataflow_blocks(i, k),
                of_block = ceil_div(i->block[k], shape->part[k]);
        if (!dataflow_product(shape->across[k], shape->part[k], &shape->word[k]) ||
            !dataflow_product(shape->elements, shape->word[k], &shape->elements) || !dataflow_product(words, of_block, &words) ||
            !dataflow_product(ceil_div(blocks, shape->across[k]), of_block, &shape->folded[k]) ||
            !dataflow_product(grid, shape->folded[k], &grid))
            return dataflow_past(s, i, "its word, or the number of its words,");
    }
    if (!dataflow_product(shape->elements, i->bits ? i->bits : 1, &bits))
        return dataflow_past(s, i, "its word, in bits,");
    shape->period = i->kind == DATAFLOW_INPUT ? dataflow_ratio_of(1, 1) : dataflow_ratio_of(input->cii, words);
    return true;
}

static bool shape_of(dataflow_check *s, int64_t of_weights, dataflow_interface *i)
{
    const dataflow_model *m = s->model;
    const dataflow_interface *input = i->kind == DATAFLOW_INPUT    ? i
                                      : i->kind == DATAFLOW_WEIGHT ? widest_input(m, i)
                                                                   : &m->interfaces[m->bottleneck];
    for (uint32_t k = 0; k < i->rank; k++)
        i->shape.across[k] = i->kind == DATAFLOW_WEIGHT ? i->parallel[k] : 1;
    for (uint32_t k = 0; k < i->rank && i->kind == DATAFLOW_INPUT; k++)
        i->shape.part[k] = i->parallel[k];
    if (i->kind == DATAFLOW_OUTPUT && !output_tensor(s, input, of_weights, i))
        return false;
    if (i->kind != DATAFLOW_INPUT && !part_of_block(i, input, i->shape.part) && !m->pads && only_input(m)) {
        refuse_part(s, i, input);
        return false;
    }
    if (i->kind == DATAFLOW_OUTPUT)
        output_across(m, of_weights, i);
    return finish_shape(s, input, i);
}

bool dataflow_shapes(dataflow_model *m, diag_list *diags)
{
    dataflow_check s = {m, diags, false};
    int64_t of_weights = weight_blocks(m);
    for (size_t k = 0; k < m->count; k++)
        if (m->interfaces[k].kind <= DATAFLOW_OUTPUT)
            shape_of(&s, of_weights, &m->interfaces[k]);
    return !s.bad;
}

/* ---- points of a design space ---- */

bool dataflow_streams_tile(const dataflow_model *m)
{
    const dataflow_interface *input = only_input(m);
    int64_t part[DATAFLOW_RANK_MAX];
    for (size_t k = 0; k < m->count && input && !m->pads; k++)
        if ((m->interfaces[k].kind == DATAFLOW_WEIGHT || m->interfaces[k].kind == DATAFLOW_OUTPUT) &&
            !part_of_block(&m->interfaces[k], input, part))
            return false;
    return true;
}

/* With every iPar a dimension has whole elements, or one every few cycles. */
static bool is_regular_always(const dataflow_interface *i, const dataflow_interface *input, uint32_t dimension)
{
    int at = beside(i, input, dimension);
    return at < 0 || i->block[dimension] == 1 || input->block[at] == 1 || i->block[dimension] == input->block[at];
}

bool dataflow_always_tiles(const dataflow_model *m)
{
    const dataflow_interface *input = only_input(m);
    bool always = true;
    for (size_t k = 0; k < m->count && input && !m->pads; k++) {
        const dataflow_interface *i = &m->interfaces[k];
        for (uint32_t d = 0; d < i->rank && (i->kind == DATAFLOW_WEIGHT || i->kind == DATAFLOW_OUTPUT); d++)
            always = always && is_regular_always(i, input, d);
    }
    return always;
}
