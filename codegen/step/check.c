#include "codegen/step/check.h"

#include <inttypes.h>

typedef struct checked {
    const step_program *program;
    const step_node *node;
    word_reader *in;
} checked;

static const step_output *source(const checked *c, uint32_t input)
{
    const step_input *in = &c->node->inputs[input];
    return &c->program->nodes[in->node].outputs[in->port];
}

static const step_type *type_in(const checked *c, uint32_t input)
{
    return &c->program->types[source(c, input)->type];
}

static const step_type *type_out(const checked *c, uint32_t output)
{
    return &c->program->types[c->node->outputs[output].type];
}

static bool fault(const checked *c, const char *what)
{
    return word_reader_fault(c->in, c->in->at > 0 ? c->in->at - 1 : 0, "node `%s` (%s): %s", c->node->name,
                             step_op_row_of(c->node->op)->name, what);
}

static bool is(const checked *c, uint32_t input, step_kind kind)
{
    return type_in(c, input)->kind == kind || fault(c, "an input carries another kind of value");
}

static bool makes(const checked *c, uint32_t output, step_kind kind)
{
    return type_out(c, output)->kind == kind || fault(c, "an output carries another kind of value");
}

static bool same_type(const checked *c, uint32_t input, uint32_t output)
{
    return source(c, input)->type == c->node->outputs[output].type || fault(c, "an output's data type is not that of the input");
}

/* An input that becomes the output together with others: where selectors of one name one output and those of another two, the output's say
 * nothing. */
static bool joins_type(const checked *c, uint32_t input)
{
    const step_type *in = type_in(c, input), *out = type_out(c, 0);
    bool less_known = in->kind == STEP_SELECTOR && out->kind == STEP_SELECTOR && in->width == out->width && out->hot == 0;
    return less_known || same_type(c, input, 0);
}

static bool rank_is(const checked *c, uint32_t output, int64_t rank)
{
    return (int64_t)c->node->outputs[output].rank == rank || fault(c, "an output's rank does not follow from the inputs");
}

static bool in_step(const checked *c)
{
    for (uint32_t i = 1; i < c->node->input_count; i++)
        if (source(c, i)->rank != source(c, 0)->rank)
            return fault(c, "inputs in lock step have different ranks");
    return true;
}

static bool tile_of_tensor(const checked *c, const step_type *t)
{
    const step_tensor *s = &c->program->tensors[c->node->tensor];
    return (t->kind == STEP_TILE && t->rows == s->rows && t->columns == s->columns) || fault(c, "its tiles are not those of its tensor");
}

/* ---- functions ---- */

static bool all_tiles(const checked *c, const step_type *const *in, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (in[i]->kind != STEP_TILE)
            return fault(c, "its function takes tiles");
    return makes(c, 0, STEP_TILE);
}

static bool is_number(const step_type *t)
{
    return t->kind == STEP_ADDRESS || t->kind == STEP_SELECTOR;
}

/* Tiles come in. A tile goes out, or of a map a chain of pairs of tiles. */
static bool kernel_fits(const checked *c, const step_type *const *in, uint32_t count)
{
    const step_type *t = type_out(c, 0);
    bool tiles = true;
    for (uint32_t i = 0; i < count; i++)
        tiles = tiles && in[i]->kind == STEP_TILE;
    for (; c->node->op == STEP_MAP && tiles && t->kind == STEP_PAIR; t = &c->program->types[t->second])
        tiles = c->program->types[t->first].kind == STEP_TILE;
    return (tiles && t->kind == STEP_TILE) || fault(c, "a kernel takes tiles and makes tiles");
}

static bool operands_fit(const checked *c, const step_type *const *in, uint32_t count)
{
    switch (c->node->fn) {
    case STEP_FN_IDENTITY: return same_type(c, 0, 0);
    case STEP_FN_SIGNAL: return makes(c, 0, STEP_ADDRESS);
    case STEP_FN_ADDRESSES:
        return (is_number(in[0]) && is_number(in[count - 1]) && makes(c, 0, STEP_ADDRESS)) || fault(c, "its function takes numbers");
    case STEP_FN_LAST:
        return (is_number(in[0]) && makes(c, 0, STEP_SELECTOR) && type_out(c, 0)->width == 2 && type_out(c, 0)->hot == 1) ||
               fault(c, "its function makes selectors of 1 of 2 from numbers");
    case STEP_FN_SET_VALID_ROWS:
        return (in[0]->kind == STEP_TILE && in[1]->kind == STEP_ADDRESS && makes(c, 0, STEP_TILE)) ||
               fault(c, "its function takes a tile and a number");
    case STEP_FN_SELECT:
        return ((in[0]->kind == STEP_ADDRESS || in[0]->kind == STEP_BOOL) && makes(c, 0, STEP_SELECTOR) && type_out(c, 0)->hot == 1) ||
               fault(c, "its function makes selectors of one output of addresses or bools");
    case STEP_FN_KERNEL: return (c->node->flops_per_cycle == 0 && kernel_fits(c, in, count)) || fault(c, "a kernel takes its own cycles");
    case STEP_FN_FIRST:
        return (in[0]->kind == STEP_PAIR && c->node->outputs[0].type == in[0]->first) || fault(c, "its function takes a pair");
    case STEP_FN_SECOND:
        return (in[0]->kind == STEP_PAIR && c->node->outputs[0].type == in[0]->second) || fault(c, "its function takes a pair");
    default: return all_tiles(c, in, count);
    }
}

/* Tiles and bools in it, parts of pairs one by one; anything else counts as too many. */
static uint32_t leaves_of(const step_program *p, const step_type *t)
{
    uint32_t count = 0;
    for (; t->kind == STEP_PAIR && count <= STEP_LEAVES_MAX; t = &p->types[t->second])
        count += leaves_of(p, &p->types[t->first]);
    return t->kind == STEP_TILE || t->kind == STEP_BOOL ? count + 1 : STEP_LEAVES_MAX + 1;
}

/* The tiles that come in, and a chain of pairs of as many tiles as there are results, of one element type. */
static bool formula_fits(const checked *c)
{
    const step_formula *f = c->node->formula;
    uint32_t values = 0, results = 1;
    for (uint32_t i = 0; i < c->node->input_count && values <= STEP_LEAVES_MAX; i++)
        values += leaves_of(c->program, type_in(c, i));
    const step_type *t = type_out(c, 0);
    bool tiles = true;
    for (; t->kind == STEP_PAIR; t = &c->program->types[t->second], results++)
        tiles = tiles && c->program->types[t->first].kind == STEP_TILE;
    return (values == f->values && tiles && t->kind == STEP_TILE && results == f->result_count && in_step(c)) ||
           fault(c, "its function does not fit its streams");
}

static bool function_fits(const checked *c, unsigned use)
{
    const step_fn_row *row = step_fn_row_of(c->node->fn);
    const step_type *in[STEP_MAP_INPUTS];
    uint32_t count = 0, own = use == STEP_USE_UPDATE;
    const step_type *first = type_in(c, 0);
    if (!(row->use & use))
        return fault(c, "its function is none for this operator");
    if (c->node->fn == STEP_FN_FORMULA)
        return formula_fits(c);
    if (c->node->input_count == 1 && first->kind == STEP_PAIR && row->most_arity - (int)own > 1) {
        in[count++] = &c->program->types[first->first];
        in[count++] = &c->program->types[first->second];
    } else {
        for (uint32_t i = 0; i < c->node->input_count; i++)
            in[count++] = type_in(c, i);
    }
    if ((int)(count + own) < row->least_arity || (int)(count + own) > row->most_arity)
        return fault(c, "its function takes another number of values");
    return in_step(c) && operands_fit(c, in, count);
}

/* ---- operators ---- */

/* Outputs of the input's type, of that rank more. */
static bool outputs_are_like(const checked *c, int64_t b)
{
    for (uint32_t i = 0; i < c->node->output_count; i++)
        if (!same_type(c, 0, i) || !rank_is(c, i, b))
            return false;
    return true;
}

static bool check_partition(const checked *c)
{
    int64_t b = c->node->param[STEP_B];
    if (!is(c, 1, STEP_SELECTOR))
        return false;
    if (type_in(c, 1)->width != c->node->output_count || (int64_t)source(c, 0)->rank != source(c, 1)->rank + b)
        return fault(c, "the selector's width or rank does not fit");
    return outputs_are_like(c, b);
}

static bool check_parallelize(const checked *c)
{
    int64_t b = c->node->param[STEP_B];
    if ((int64_t)source(c, 0)->rank < b)
        return fault(c, "the rank is too low");
    return outputs_are_like(c, b);
}

static bool check_reassemble(const checked *c)
{
    int64_t b = c->node->param[STEP_B];
    uint32_t last = c->node->input_count - 1;
    if (!is(c, last, STEP_SELECTOR))
        return false;
    if (type_in(c, last)->width != last)
        return fault(c, "the selector's width is not the number of inputs");
    for (uint32_t i = 0; i < last; i++)
        if (!joins_type(c, i) || (int64_t)source(c, i)->rank != b)
            return fault(c, "an input has another rank or data type");
    return rank_is(c, 0, (int64_t)source(c, last)->rank + b + 1);
}

static bool check_eager_merge(const checked *c)
{
    for (uint32_t i = 0; i < c->node->input_count; i++)
        if (!joins_type(c, i) || source(c, i)->rank != source(c, 0)->rank)
            return fault(c, "an input has another rank or data type");
    if (!makes(c, 1, STEP_SELECTOR) || type_out(c, 1)->width != c->node->input_count || type_out(c, 1)->hot != 1)
        return fault(c, "its selectors do not name one of its inputs");
    return rank_is(c, 0, source(c, 0)->rank) && rank_is(c, 1, 0);
}

static bool check_streamify(const checked *c)
{
    if (!is(c, 0, STEP_BUFFER))
        return false;
    const step_type *buffer = type_in(c, 0);
    if ((int64_t)source(c, 1)->rank != source(c, 0)->rank + c->node->param[STEP_B] || c->node->outputs[0].type != buffer->first)
        return fault(c, "the reference's rank or the output's data type does not fit");
    return rank_is(c, 0, (int64_t)source(c, 1)->rank + (c->node->walk_count > 0 ? c->node->walk_count : buffer->rank));
}

static bool check_bufferize(const checked *c)
{
    int64_t b = c->node->param[STEP_B];
    const step_type *t = type_out(c, 0);
    if (t->kind != STEP_BUFFER || t->first != source(c, 0)->type || t->rank != b)
        return fault(c, "its output is no buffer of what it takes");
    return rank_is(c, 0, (int64_t)source(c, 0)->rank - b);
}

static bool check_reshape(const checked *c)
{
    bool pads_tiles = !c->node->param[STEP_PAD] || type_in(c, 0)->kind == STEP_TILE;
    if (!pads_tiles || c->node->param[STEP_B] > (int64_t)source(c, 0)->rank)
        return fault(c, "only tiles are padded, and only a dimension that exists is split");
    return same_type(c, 0, 0) && makes(c, 1, STEP_BOOL) && rank_is(c, 0, (int64_t)source(c, 0)->rank + 1) &&
           rank_is(c, 1, (int64_t)source(c, 0)->rank + 1);
}

static bool check_flatten(const checked *c)
{
    int64_t min = c->node->param[STEP_B], max = c->node->param[STEP_N];
    if (min >= max || max > (int64_t)source(c, 0)->rank)
        return fault(c, "min and max are no range of its dimensions");
    return same_type(c, 0, 0) && rank_is(c, 0, (int64_t)source(c, 0)->rank - (max - min));
}

static bool check_zip(const checked *c)
{
    const step_type *t = type_out(c, 0);
    if (t->kind != STEP_PAIR || t->first != source(c, 0)->type || t->second != source(c, 1)->type)
        return fault(c, "its output is no pair of what it takes");
    return in_step(c) && rank_is(c, 0, source(c, 0)->rank);
}

static bool check_node(const checked *c)
{
    const step_node *n = c->node;
    int64_t rank = n->input_count > 0 ? source(c, 0)->rank : 0, b = n->param[STEP_B];
    switch (n->op) {
    case STEP_SOURCE:
    case STEP_SINK: return true;
    case STEP_ONCE: return makes(c, 0, STEP_ADDRESS) && rank_is(c, 0, 0);
    case STEP_LINEAR_LOAD: return tile_of_tensor(c, type_out(c, 0)) && rank_is(c, 0, rank + n->walk_count);
    case STEP_LINEAR_STORE: return tile_of_tensor(c, type_in(c, 0));
    case STEP_RANDOM_LOAD: return is(c, 0, STEP_ADDRESS) && tile_of_tensor(c, type_out(c, 0)) && rank_is(c, 0, rank);
    case STEP_RANDOM_STORE:
        return is(c, 0, STEP_ADDRESS) && tile_of_tensor(c, type_in(c, 1)) && in_step(c) && makes(c, 0, STEP_BOOL) && rank_is(c, 0, rank);
    case STEP_BUFFERIZE: return check_bufferize(c);
    case STEP_STREAMIFY: return check_streamify(c);
    case STEP_PARTITION: return check_partition(c);
    case STEP_REASSEMBLE: return check_reassemble(c);
    case STEP_EAGER_MERGE: return check_eager_merge(c);
    case STEP_PARALLELIZE: return check_parallelize(c);
    case STEP_BROADCAST: return same_type(c, 0, 0) && rank_is(c, 0, rank);
    case STEP_MAP: return function_fits(c, STEP_USE_MAP) && rank_is(c, 0, rank);
    case STEP_ACCUM: return function_fits(c, STEP_USE_UPDATE) && rank_is(c, 0, rank - b);
    case STEP_SCAN: return function_fits(c, STEP_USE_UPDATE) && rank_is(c, 0, rank);
    case STEP_FLAT_MAP: return function_fits(c, STEP_USE_FLAT) && rank_is(c, 0, rank + b);
    case STEP_FLATTEN: return check_flatten(c);
    case STEP_RESHAPE: return check_reshape(c);
    case STEP_PROMOTE: return same_type(c, 0, 0) && rank_is(c, 0, rank + 1);
    case STEP_EXPAND: return same_type(c, 0, 0) && in_step(c) && rank_is(c, 0, rank);
    case STEP_REPEAT: return same_type(c, 0, 0) && rank_is(c, 0, rank + 1);
    case STEP_ZIP: return check_zip(c);
    }
    return false;
}

bool step_program_check(const step_program *p, word_reader *in)
{
    for (uint32_t i = 0; i < p->node_count; i++) {
        checked c = {p, &p->nodes[i], in};
        if (!check_node(&c))
            return false;
    }
    return true;
}
