#include "ir/dataflow/dataflow.h"

#include <inttypes.h>
#include <stdarg.h>

#include "ir/dataflow/dataflow_shape.h"
#include "support/integer.h"

/* ---- the constraints ---- */

static const char *const kind_names[] = {"input", "weight", "output", "config", "control"};

const char *dataflow_kind_name(dataflow_kind kind)
{
    return kind_names[kind];
}

static bool list_product(const int64_t *list, uint32_t rank, int64_t *out)
{
    *out = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (!dataflow_product(*out, list[i], out))
            return false;
    return true;
}

int64_t dataflow_block_elements(const dataflow_interface *i)
{
    int64_t elements;
    return list_product(i->block, i->rank, &elements) ? elements : -1;
}

int64_t dataflow_multipliers(const dataflow_model *m)
{
    int64_t sums[DATAFLOW_OUTPUT] = {0}, all;
    for (size_t i = 0; i < m->count; i++) {
        const dataflow_interface *face = &m->interfaces[i];
        int64_t product;
        if (face->kind >= DATAFLOW_OUTPUT)
            continue;
        if (!list_product(face->parallel, face->parallel_rank, &product) ||
            __builtin_add_overflow(sums[face->kind], product, &sums[face->kind]))
            return -1;
    }
    int64_t weights = sums[DATAFLOW_WEIGHT] > 0 ? sums[DATAFLOW_WEIGHT] : 1;
    return __builtin_mul_overflow(sums[DATAFLOW_INPUT], weights, &all) || all > INT64_C(1) << 62 ? -1 : all;
}

static bool check_ranks(dataflow_check *c, const dataflow_interface *i)
{
    const char *kind = kind_names[i->kind];
    bool tensor = i->tensor_rank > 0 && i->tensor_rank != i->rank, parallel = i->parallel_rank > 1 && i->parallel_rank != i->rank;
    if (tensor)
        diag_help(c->diags,
                  dataflow_refuse(c, E_DATAFLOW_RANK, i->tensor_range,
                                  "%s `%s`: the tensor has %" PRIu32 " dimensions and the block %" PRIu32, kind, i->name, i->tensor_rank,
                                  i->rank),
                  "write a 1 for each dimension that is not there");
    if (parallel)
        diag_help(c->diags,
                  dataflow_refuse(c, E_DATAFLOW_RANK, i->parallel_range, "%s `%s`: %s has %" PRIu32 " dimensions and the block %" PRIu32,
                                  kind, i->name, i->kind == DATAFLOW_INPUT ? "iPar" : "wPar", i->parallel_rank, i->rank),
                  i->kind == DATAFLOW_INPUT ? "one number is for the innermost dimension"
                                            : "one number is for the dimension that is cut into blocks");
    return !tensor && !parallel;
}

static bool check_positive(dataflow_check *c, const dataflow_interface *i, src_range at, const int64_t *list, uint32_t rank,
                           const char *what)
{
    for (uint32_t k = 0; k < rank; k++)
        if (list[k] < 1) {
            diag_help(c->diags,
                      dataflow_refuse(c, E_DATAFLOW_SIZE, at, "%s `%s`: dimension %" PRIu32 " of its %s is %" PRId64, kind_names[i->kind],
                                      i->name, k, what, list[k]),
                      "sizes are 1 or more");
            return false;
        }
    int64_t elements;
    if (list_product(list, rank, &elements))
        return true;
    diag_help(c->diags,
              dataflow_refuse(c, E_DATAFLOW_SIZE, at, "%s `%s`: its %s has more than 2^62 elements", kind_names[i->kind], i->name, what),
              "make it smaller");
    return false;
}

/* The one number that was given, or 1, is for that dimension. */
static void put_parallel(dataflow_interface *i, uint32_t dimension)
{
    int64_t given = i->parallel_rank == 1 ? i->parallel[0] : 1;
    const char *name = i->parallel_rank == 1 ? i->parallel_names[0] : NULL;
    for (uint32_t k = 0; k < i->rank; k++) {
        i->parallel[k] = k == dimension ? given : 1;
        i->parallel_names[k] = k == dimension ? name : NULL;
    }
    i->parallel_rank = i->rank;
}

/* One number is for the innermost dimension. */
static void spread_parallel(dataflow_interface *i)
{
    if (i->parallel_rank > 1 || i->rank == 0)
        return;
    put_parallel(i, i->rank - 1);
}

/* Of a weight, one number is for the dimension that is cut into blocks. */
static void spread_weight_parallel(dataflow_interface *i)
{
    if (i->parallel_rank != 1 || i->rank < 2) {
        spread_parallel(i);
        return;
    }
    uint32_t at = i->rank - 1;
    for (uint32_t k = i->rank; k-- > 0;)
        if (i->tensor[k] > i->block[k])
            at = k;
    put_parallel(i, at);
}

static void check_tiling(dataflow_check *c, const dataflow_interface *i)
{
    for (uint32_t k = 0; k < i->tensor_rank; k++)
        if (i->tensor[k] % i->block[k] != 0 && !c->model->pads)
            diag_help(c->diags,
                      dataflow_refuse(c, E_DATAFLOW_TILE, i->block_range,
                                      "%s `%s`: dimension %" PRIu32 " of the block, %" PRId64
                                      " elements, does not tile the tensor's %" PRId64,
                                      kind_names[i->kind], i->name, k, i->block[k], i->tensor[k]),
                      "take %s, or `pads: true`", dataflow_near_divisors(i->tensor[k], i->block[k], c->diags->arena));
}

int64_t dataflow_blocks(const dataflow_interface *i, uint32_t dimension)
{
    return i->tensor_rank ? ceil_div(i->tensor[dimension], i->block[dimension]) : 1;
}

/* 1 <= iPar <= block and iPar tiles it; 1 <= wPar <= blocks and wPar tiles them. */
static void check_parallel(dataflow_check *c, const dataflow_interface *i)
{
    bool input = i->kind == DATAFLOW_INPUT;
    for (uint32_t k = 0; k < i->rank; k++) {
        int64_t most = input ? i->block[k] : dataflow_blocks(i, k);
        const char *name = input ? "iPar" : "wPar", *of = input ? "elements of the block" : "blocks of the weight";
        if (i->parallel[k] < 1 || i->parallel[k] > most)
            diag_help(c->diags,
                      dataflow_refuse(c, E_DATAFLOW_PARALLEL, i->parallel_range,
                                      "%s `%s`: %s of dimension %" PRIu32 " is %" PRId64 "; there are %" PRId64 " %s", kind_names[i->kind],
                                      i->name, name, k, i->parallel[k], most, of),
                      "take 1 to %" PRId64, most);
        else if (most % i->parallel[k] != 0 && !c->model->pads)
            diag_help(c->diags,
                      dataflow_refuse(c, E_DATAFLOW_PARALLEL, i->parallel_range,
                                      "%s `%s`: %s of dimension %" PRIu32 ", %" PRId64 ", does not tile the %" PRId64 " %s",
                                      kind_names[i->kind], i->name, name, k, i->parallel[k], most, of),
                      "take %s", dataflow_near_divisors(most, i->parallel[k], c->diags->arena));
    }
}

static void check_interface(dataflow_check *c, dataflow_interface *i)
{
    if (i->kind > DATAFLOW_OUTPUT)
        return;
    bool ranks = check_ranks(c, i), block = check_positive(c, i, i->block_range, i->block, i->rank, "block");
    if (!check_positive(c, i, i->tensor_range, i->tensor, i->tensor_rank, "tensor") || !block || !ranks)
        return;
    if (i->kind == DATAFLOW_WEIGHT)
        spread_weight_parallel(i);
    else
        spread_parallel(i);
    check_tiling(c, i);
    if (i->kind != DATAFLOW_OUTPUT)
        check_parallel(c, i);
}

/* ---- the formulas ---- */

/* The blocks of all dimensions; `grouped`: as many of them at a time as the parallelism says. */
static bool count_blocks(const dataflow_interface *i, bool grouped, int64_t *out)
{
    *out = 1;
    for (uint32_t k = 0; k < i->tensor_rank; k++)
        if (!dataflow_product(*out, ceil_div(dataflow_blocks(i, k), grouped ? i->parallel[k] : 1), out))
            return false;
    return true;
}

/* An input's blocks and streams are filled up, a weight's blocks and groups of blocks. */
static bool padded_elements(const dataflow_interface *i, int64_t *out)
{
    int64_t tensor = 1, padded = 1;
    for (uint32_t k = 0; k < i->tensor_rank; k++) {
        int64_t by = i->kind == DATAFLOW_OUTPUT ? 1 : i->parallel[k], blocks = dataflow_blocks(i, k), block = i->block[k];
        if (i->kind == DATAFLOW_WEIGHT)
            blocks = ceil_div(blocks, by) * by;
        else
            block = ceil_div(block, by) * by;
        if (!dataflow_product(tensor, i->tensor[k], &tensor) || !dataflow_product(padded, blocks, &padded) ||
            !dataflow_product(padded, block, &padded))
            return false;
    }
    *out = padded - tensor;
    return true;
}

/* eII_i = cII_i x max over j of prod(num_blocks_W,j / wPar_j): the factor. */
static bool weight_groups(dataflow_check *c)
{
    int64_t *most = &c->model->groups;
    *most = 1;
    for (size_t k = 0; k < c->model->count; k++) {
        dataflow_interface *w = &c->model->interfaces[k];
        int64_t groups;
        if (w->kind != DATAFLOW_WEIGHT)
            continue;
        if (!count_blocks(w, false, &w->num_blocks) || !count_blocks(w, true, &groups))
            return dataflow_past(c, w, "the number of its blocks");
        *most = groups > *most ? groups : *most;
    }
    return true;
}

bool dataflow_formula(const dataflow_interface *input, dataflow_interval which, int64_t before, int64_t times, int64_t *cycles)
{
    (void)input, (void)which;
    return dataflow_product(before, times, cycles);
}

bool dataflow_given(const dataflow_interface *input, dataflow_interval which, int64_t before, int64_t times, int64_t *cycles)
{
    if (input->given[which] == 0)
        return dataflow_formula(input, which, before, times, cycles);
    *cycles = input->given[which];
    return true;
}

/* The stream, and the port that it needs. */
static bool check_stream(dataflow_check *c, const dataflow_interface *i)
{
    return (i->stream.bottom != 0 && i->physical.bottom != 0 && dataflow_port_bits(i->physical, i->bits ? i->bits : 1, false) >= 0) ||
           dataflow_past(c, i, "its stream, in elements or bits,");
}

/* Blocks of inputs and outputs grow by the batch. */
static bool batched_block(dataflow_check *c, dataflow_interface *i)
{
    return dataflow_product(dataflow_block_elements(i), c->model->batch, &i->block_elements) ||
           dataflow_past(c, i, "its block, with the batch,");
}

/* stream_I = iPar; cII = prod(block / stream); eII = cII x weight groups; L_i = eII_i x prod(num_blocks_I). */
static bool evaluate_input(dataflow_check *c, dataflow_interface *i)
{
    static const char *const names[] = {"its cII", "its eII", "its L"};
    int64_t stream = 1, times[DATAFLOW_INTERVALS] = {1, c->model->groups, 1}, *const results[] = {&i->cii, &i->eii, &i->latency},
            before = 1;
    for (uint32_t k = 0; k < i->rank; k++)
        if (!dataflow_product(times[DATAFLOW_CII], ceil_div(i->block[k], i->parallel[k]), &times[DATAFLOW_CII]) ||
            !dataflow_product(stream, i->parallel[k], &stream))
            return dataflow_past(c, i, names[DATAFLOW_CII]);
    if (!count_blocks(i, false, &i->num_blocks))
        return dataflow_past(c, i, "the number of its blocks");
    times[DATAFLOW_LATENCY] = i->num_blocks;
    for (int k = 0; k < DATAFLOW_INTERVALS; k++) {
        dataflow_function f = c->model->intervals[k] ? c->model->intervals[k] : dataflow_formula;
        if (!f(i, (dataflow_interval)k, before, times[k], results[k]))
            return dataflow_past(c, i, names[k]);
        before = *results[k];
    }
    i->stream = dataflow_multiply(dataflow_ratio_of(stream, 1), dataflow_ratio_of(c->model->batch, 1));
    i->physical = i->stream;
    return batched_block(c, i) && check_stream(c, i);
}

/* stream_W,j = max over i of wPar x iPar x block_W / block_I. Weights are shared by the inferences of a batch. */
static bool evaluate_weight(dataflow_check *c, dataflow_interface *w)
{
    int64_t together = 1;
    w->stream = (dataflow_ratio){0, 1};
    for (uint32_t k = 0; k < w->rank; k++)
        if (!dataflow_product(together, w->parallel[k], &together))
            return dataflow_past(c, w, "its wPar");
    for (size_t k = 0; k < c->model->count; k++) {
        const dataflow_interface *i = &c->model->interfaces[k];
        if (i->kind != DATAFLOW_INPUT)
            continue;
        dataflow_ratio one = dataflow_multiply(i->stream, dataflow_ratio_of(1, c->model->batch)),
                       blocks = dataflow_ratio_of(dataflow_block_elements(w), dataflow_block_elements(i));
        dataflow_ratio s = dataflow_multiply(dataflow_multiply(one, blocks), dataflow_ratio_of(together, 1));
        if (s.bottom == 0 || dataflow_larger(s, w->stream))
            w->stream = s;
        if (s.bottom == 0)
            break;
    }
    w->physical = w->stream;
    w->block_elements = dataflow_block_elements(w);
    return check_stream(c, w);
}

/* stream_O = stream_I,b x block_O / block_I,b, b the input with the largest eII; physical: all wPar calculations that run side by side. */
static bool evaluate_output(dataflow_check *c, dataflow_interface *o)
{
    const dataflow_interface *b = &c->model->interfaces[c->model->bottleneck];
    int64_t most = 1, together;
    for (size_t k = 0; k < c->model->count; k++) {
        const dataflow_interface *w = &c->model->interfaces[k];
        if (w->kind == DATAFLOW_WEIGHT && list_product(w->parallel, w->rank, &together) && together > most)
            most = together;
    }
    o->stream = dataflow_multiply(b->stream, dataflow_ratio_of(dataflow_block_elements(o), dataflow_block_elements(b)));
    o->physical = dataflow_multiply(o->stream, dataflow_ratio_of(most, 1));
    return batched_block(c, o) && check_stream(c, o);
}

static bool evaluate(dataflow_check *c)
{
    dataflow_model *m = c->model;
    bool any = false;
    if (!weight_groups(c))
        return false;
    m->latency = m->padding = 0;
    for (size_t k = 0; k < m->count; k++) {
        dataflow_interface *i = &m->interfaces[k];
        if (i->kind != DATAFLOW_INPUT)
            continue;
        if (!evaluate_input(c, i))
            return false;
        m->latency = i->latency > m->latency ? i->latency : m->latency;
        m->bottleneck = !any || i->eii > m->interfaces[m->bottleneck].eii ? k : m->bottleneck;
        any = true;
    }
    for (size_t k = 0; k < m->count; k++) {
        dataflow_interface *i = &m->interfaces[k];
        if ((i->kind == DATAFLOW_WEIGHT && !evaluate_weight(c, i)) || (i->kind == DATAFLOW_OUTPUT && !evaluate_output(c, i)))
            return false;
        int64_t padding = 0;
        if (i->kind <= DATAFLOW_OUTPUT && m->pads &&
            (!padded_elements(i, &padding) || __builtin_add_overflow(m->padding, padding, &m->padding)))
            return dataflow_past(c, i, "its padded tensor");
    }
    return true;
}

static size_t count_of(const dataflow_model *m, dataflow_kind kind)
{
    size_t count = 0;
    for (size_t k = 0; k < m->count; k++)
        count += m->interfaces[k].kind == kind;
    return count;
}

bool dataflow_evaluate(dataflow_model *m, diag_list *diags)
{
    dataflow_check c = {m, diags, false};
    if (count_of(m, DATAFLOW_INPUT) == 0 || count_of(m, DATAFLOW_OUTPUT) == 0)
        diag_help(diags,
                  dataflow_refuse(&c, E_DATAFLOW_INTERFACES, m->range, "`%s` has %zu inputs and %zu outputs", m->name,
                                  count_of(m, DATAFLOW_INPUT), count_of(m, DATAFLOW_OUTPUT)),
                  "a kernel has at least one of each");
    if (m->batch < 1)
        diag_help(diags, dataflow_refuse(&c, E_DATAFLOW_SIZE, m->range, "the batch of `%s` is %" PRId64, m->name, m->batch),
                  "a batch is 1 or more");
    if (m->clock_hz < 0)
        diag_help(diags, dataflow_refuse(&c, E_DATAFLOW_SIZE, m->range, "the clock of `%s` is %" PRId64 " Hz", m->name, m->clock_hz),
                  "a clock is 1 Hz or more");
    for (size_t k = 0; k < m->count; k++)
        check_interface(&c, &m->interfaces[k]);
    return !c.bad && evaluate(&c) && dataflow_shapes(m, diags);
}
