#include "codegen/step/program.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/step/check.h"
#include "codegen/words.h"
#include "support/budget.h"
#include "support/float_bits.h"

/* The section, in 64-bit words (docs/format.md, "Stream programs"):
 *   nodes | types << 32;  tensors | string bytes << 32;  name;  the machine's numbers in the order of step_machine
 *   types, tensors, nodes; strings. */

enum { NO_TENSOR = 0xffff, FLAG_WRITES_BACK = 1 };

int64_t step_tensor_tiles(const step_tensor *t)
{
    int64_t tiles = 1;
    for (uint32_t i = 0; i < t->dim_count; i++)
        tiles *= t->shape[i];
    return tiles;
}

const step_program *step_program_unbounded(const step_program *p, arena *a)
{
    step_program *copy = ARENA_NEW(a, step_program);
    step_node *nodes = ARENA_ARRAY(a, step_node, p->node_count + 1);
    *copy = *p;
    for (uint32_t i = 0; i < p->node_count; i++) {
        step_input *inputs = ARENA_ARRAY(a, step_input, p->nodes[i].input_count + 1);
        nodes[i] = p->nodes[i];
        for (uint32_t k = 0; k < nodes[i].input_count; k++) {
            inputs[k] = p->nodes[i].inputs[k];
            inputs[k].depth = 0;
        }
        nodes[i].inputs = inputs;
    }
    copy->nodes = nodes;
    return copy;
}

const step_program *step_program_with_room(const step_program *p, int64_t onchip_bytes, arena *a)
{
    step_program *copy = ARENA_NEW(a, step_program);
    *copy = *p;
    copy->machine.onchip_bytes = onchip_bytes;
    return copy;
}

/* ---- encoder ---- */

static void put_machine(word_writer *w, const step_machine *m)
{
    const int64_t numbers[] = {m->onchip_bytes_per_cycle, m->memory_channels,       m->requests_per_cycle,
                               m->request_bytes,          m->memory_latency_cycles, m->memory_interval_cycles,
                               m->memory_startup_cycles,  m->compute_tile,          m->onchip_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        word_writer_put(w, (uint64_t)numbers[i]);
}

static void put_type(word_writer *w, const step_type *t)
{
    word_writer_put(w, (uint64_t)t->kind | (uint64_t)t->dtype << 8 | (uint64_t)t->rank << 16 | (uint64_t)t->hot << 32);
    word_writer_put(w, (uint64_t)t->rows);
    word_writer_put(w, (uint64_t)t->columns);
    word_writer_put(w, (uint64_t)t->width);
    word_writer_put(w, t->first | (uint64_t)t->second << 32);
}

static void put_tensor(word_writer *w, const step_tensor *t)
{
    word_writer_put(w,
                    word_writer_string(w, t->name) | (uint64_t)t->dtype << 32 | (uint64_t)t->written << 40 | (uint64_t)t->dim_count << 48);
    word_writer_put(w, (uint64_t)t->rows);
    word_writer_put(w, (uint64_t)t->columns);
    for (uint32_t i = 0; i < t->dim_count; i++)
        word_writer_put(w, (uint64_t)t->shape[i]);
}

/* instructions | results << 16 | states << 32 | values << 48; the results, an instruction a word; two words for each instruction: its code
 * and operands, 16 bits each, and its number; three for each state: rows, columns, what it begins with. */
static void put_formula(word_writer *w, const step_formula *f)
{
    word_writer_put(w, f->count | (uint64_t)f->result_count << 16 | (uint64_t)f->state_count << 32 | (uint64_t)f->values << 48);
    for (uint32_t i = 0; i < f->result_count; i++)
        word_writer_put(w, f->results[i]);
    for (uint32_t i = 0; i < f->count; i++) {
        const step_instruction *n = &f->items[i];
        uint32_t bits;
        memcpy(&bits, &n->number, sizeof bits);
        word_writer_put(w,
                        (uint64_t)n->op | (uint64_t)n->operands[0] << 16 | (uint64_t)n->operands[1] << 32 | (uint64_t)n->operands[2] << 48);
        word_writer_put(w, bits);
    }
    for (uint32_t i = 0; i < f->state_count; i++) {
        uint32_t bits;
        memcpy(&bits, &f->states[i].value, sizeof bits);
        word_writer_put(w, (uint64_t)f->states[i].rows);
        word_writer_put(w, (uint64_t)f->states[i].columns);
        word_writer_put(w, bits);
    }
}

static void put_node(word_writer *w, const step_node *n)
{
    uint64_t flags = n->writes_back ? FLAG_WRITES_BACK : 0;
    word_writer_put(w, (uint64_t)n->op | (uint64_t)n->fn << 16 | (uint64_t)n->tensor << 32 | (uint64_t)n->walk_count << 48 | flags << 56);
    word_writer_put(w, n->input_count | (uint64_t)n->output_count << 32);
    word_writer_put(w, word_writer_string(w, n->name) | (uint64_t)n->line << 32);
    word_writer_put(w, (uint64_t)n->flops_per_cycle);
    if (n->fn == STEP_FN_KERNEL)
        word_writer_put(w, word_writer_string(w, n->kernel));
    if (n->fn == STEP_FN_FORMULA)
        put_formula(w, n->formula);
    for (int i = 0; i < STEP_PARAMS; i++)
        word_writer_put(w, (uint64_t)n->param[i]);
    for (uint32_t i = 0; i < n->input_count; i++) {
        word_writer_put(w, n->inputs[i].node | (uint64_t)n->inputs[i].port << 32);
        word_writer_put(w, n->inputs[i].depth);
    }
    for (uint32_t i = 0; i < n->output_count; i++)
        word_writer_put(w, word_writer_string(w, n->outputs[i].shape) | (uint64_t)n->outputs[i].type << 32 |
                               (uint64_t)n->outputs[i].rank << 56);
    for (uint32_t i = 0; i < n->walk_count; i++) {
        word_writer_put(w, (uint64_t)n->walk_sizes[i]);
        word_writer_put(w, (uint64_t)n->walk_strides[i]);
    }
}

bool step_program_encode(const step_program *p, arena *a, uint64_t **words, size_t *count)
{
    word_writer w;
    word_writer_init(&w, a);
    if (p->type_count >= 1 << 24 || p->node_count > STEP_NODES_MAX || p->tensor_count >= NO_TENSOR)
        return false;
    word_writer_put(&w, p->node_count | (uint64_t)p->type_count << 32);
    word_writer_put(&w, 0);
    word_writer_put(&w, word_writer_string(&w, p->name));
    put_machine(&w, &p->machine);
    for (uint32_t i = 0; i < p->type_count; i++)
        put_type(&w, &p->types[i]);
    for (uint32_t i = 0; i < p->tensor_count; i++)
        put_tensor(&w, &p->tensors[i]);
    for (uint32_t i = 0; i < p->node_count; i++)
        put_node(&w, &p->nodes[i]);
    w.words[1] = p->tensor_count | (uint64_t)w.string_bytes << 32;
    word_writer_finish(&w);
    *words = w.words;
    *count = w.count;
    return !w.failed;
}

/* ---- decoder: each check next to the word that it is about ---- */

typedef struct reader {
    word_reader in;
    arena *arena;
    step_program *program;
    step_type *types;
    step_tensor *tensors;
    step_node *nodes;
} reader;

static bool fault(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fault(reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(r->arena, format, args);
    va_end(args);
    return word_reader_fault(&r->in, r->in.at > 0 ? r->in.at - 1 : 0, "%s", text);
}

static int64_t number(reader *r, int64_t least, int64_t most, const char *what)
{
    int64_t value = (int64_t)word_reader_next(&r->in);
    if (!r->in.failed && (value < least || value > most))
        fault(r, "%s is %" PRId64 ", outside %" PRId64 " to %" PRId64, what, value, least, most);
    return r->in.failed ? least : value;
}

static void read_machine(reader *r)
{
    step_machine *m = &r->program->machine;
    const int64_t most = INT64_C(1) << 30;
    m->onchip_bytes_per_cycle = number(r, 1, most, "onchip_bytes_per_cycle");
    m->memory_channels = number(r, 1, 1 << 16, "channels");
    m->requests_per_cycle = number(r, 1, most, "requests_per_cycle");
    m->request_bytes = number(r, 1, most, "request_bytes");
    m->memory_latency_cycles = number(r, 0, most, "memory_latency");
    m->memory_interval_cycles = number(r, 1, most, "memory_interval");
    m->memory_startup_cycles = number(r, 0, most, "memory_startup");
    m->compute_tile = number(r, 1, STEP_COMPUTE_TILE_MAX, "compute_tile");
    m->onchip_bytes = number(r, 0, STEP_ONCHIP_BYTES_MAX, "onchip_bytes");
}

enum { SIZE_BITS = 31 }; /* of the sizes and strides of walks, and of dimensions */

static bool read_type(reader *r, uint32_t index)
{
    step_type *t = &r->types[index];
    uint64_t head = word_reader_next(&r->in);
    if ((head >> 24 & 0xff) || (head & 0xff) >= STEP_KINDS || (head >> 8 & 0xff) >= DTYPE_COUNT || (head >> 16 & 0xff) > STEP_RANK_MAX)
        return fault(r, "no data type has the head 0x%" PRIx64, head);
    *t = (step_type){.kind = (step_kind)(head & 0xff),
                     .dtype = (dtype)(head >> 8 & 0xff),
                     .rank = (uint32_t)(head >> 16 & 0xff),
                     .hot = (int64_t)(head >> 32)};
    bool is_tile = t->kind == STEP_TILE;
    t->rows = number(r, is_tile ? -1 : 0, is_tile ? STEP_TILE_MAX : 0, "rows");
    t->columns = number(r, is_tile ? -1 : 0, is_tile ? STEP_TILE_MAX : 0, "columns");
    t->width = number(r, t->kind == STEP_SELECTOR, t->kind == STEP_SELECTOR ? STEP_NODES_MAX : 0, "the width of a selector");
    if (t->hot > t->width)
        return fault(r, "a selector of %" PRId64 " outputs that names %" PRId64 " each time", t->width, t->hot);
    uint64_t parts = word_reader_next(&r->in);
    t->first = (uint32_t)parts;
    t->second = (uint32_t)(parts >> 32);
    bool has_first = t->kind == STEP_BUFFER || t->kind == STEP_PAIR, has_second = t->kind == STEP_PAIR;
    if ((has_first ? t->first >= index : t->first != 0) || (has_second ? t->second >= index : t->second != 0))
        return fault(r, "the parts of data type %" PRIu32 " do not stand before it", index);
    enum { PARTS_MAX = 1 << 16 };
    const step_type *first = &r->types[t->first], *second = &r->types[t->second];
    if (has_first) {
        t->depth = 1 + (has_second && second->depth > first->depth ? second->depth : first->depth);
        t->parts = 1 + first->parts + (has_second ? second->parts : 0);
    }
    if (t->depth > NESTING_MAX || t->parts > PARTS_MAX)
        return fault(r, "data type %" PRIu32 " nests %" PRIu32 " levels deep with %" PRIu32 " parts; at most %d and %d", index, t->depth,
                     t->parts, NESTING_MAX, PARTS_MAX);
    return !r->in.failed;
}

static bool read_tensor(reader *r, step_tensor *t)
{
    uint64_t head = word_reader_next(&r->in);
    t->name = word_reader_name(&r->in, head & 0xffffffff);
    uint64_t type = head >> 32 & 0xff, written = head >> 40 & 0xff, dims = head >> 48;
    if (r->in.failed)
        return false;
    if (type >= DTYPE_COUNT || written > 1 || dims < 1 || dims > STEP_RANK_MAX + 1)
        return fault(r, "tensor `%s` has dtype code %" PRIu64 ", direction %" PRIu64 ", %" PRIu64 " dimensions", t->name, type, written,
                     dims);
    t->dtype = (dtype)type;
    t->written = written != 0;
    t->dim_count = (uint32_t)dims;
    t->rows = number(r, 1, STEP_TILE_MAX, "rows");
    t->columns = number(r, 1, STEP_TILE_MAX, "columns");
    int64_t *shape = ARENA_ARRAY(r->arena, int64_t, dims), elements = t->rows * t->columns;
    for (uint64_t i = 0; i < dims; i++) {
        shape[i] = number(r, 1, INT64_C(1) << SIZE_BITS, "a dimension");
        if (__builtin_mul_overflow(elements, shape[i], &elements) || elements > INT64_C(1) << 50)
            return fault(r, "tensor `%s` has more than 2^50 elements", t->name);
    }
    t->shape = shape;
    return !r->in.failed;
}

static bool row_fits(reader *r, const step_node *n)
{
    for (size_t i = 0; step_param_row_at(i); i++) {
        const step_param_row *row = step_param_row_at(i);
        if (step_param_row_is_of(row, n->op, n->fn) && (n->param[row->slot] < row->minimum || n->param[row->slot] > row->maximum))
            return fault(r, "`%s` of node `%s` is %" PRId64 ", outside %" PRId64 " to %" PRId64, row->name, n->name, n->param[row->slot],
                         row->minimum, row->maximum);
    }
    return true;
}

static bool counts_fit(reader *r, const step_node *n)
{
    const step_op_row *row = step_op_row_of(n->op);
    bool inputs = (int64_t)n->input_count >= row->least_inputs && (row->most_inputs < 0 || (int64_t)n->input_count <= row->most_inputs);
    bool outputs = row->outputs < 0 ? n->output_count >= 1 : n->output_count == (uint32_t)row->outputs;
    return (inputs && outputs) ||
           fault(r, "node `%s` (%s) has %" PRIu32 " inputs and %" PRIu32 " outputs", n->name, row->name, n->input_count, n->output_count);
}

static bool uses_memory(step_op op)
{
    return op >= STEP_LINEAR_LOAD && op <= STEP_RANDOM_STORE;
}

static bool read_edges(reader *r, step_node *n)
{
    step_input *inputs = ARENA_ARRAY(r->arena, step_input, n->input_count + 1);
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint64_t from = word_reader_next(&r->in);
        inputs[i] = (step_input){(uint32_t)from, (uint32_t)(from >> 32), (uint32_t)number(r, 0, 1 << 24, "the depth of a queue")};
        if (inputs[i].node >= r->program->node_count)
            return fault(r, "input %" PRIu32 " of `%s` comes from node %" PRIu32 " of %" PRIu32, i, n->name, inputs[i].node,
                         r->program->node_count);
    }
    n->inputs = inputs;
    step_output *outputs = ARENA_ARRAY(r->arena, step_output, n->output_count + 1);
    for (uint32_t i = 0; i < n->output_count; i++) {
        uint64_t word = word_reader_next(&r->in);
        outputs[i] = (step_output){.type = (uint32_t)(word >> 32 & 0xffffff), .rank = (uint32_t)(word >> 56)};
        outputs[i].shape = word_reader_text(&r->in, word & 0xffffffff);
        if (!r->in.failed && (outputs[i].type >= r->program->type_count || outputs[i].rank > STEP_RANK_MAX))
            return fault(r, "output %" PRIu32 " of `%s` has data type %" PRIu32 " and rank %" PRIu32, i, n->name, outputs[i].type,
                         outputs[i].rank);
    }
    n->outputs = outputs;
    return !r->in.failed;
}

static bool read_walk(reader *r, step_node *n)
{
    int64_t *sizes = ARENA_ARRAY(r->arena, int64_t, n->walk_count + 1), *strides = ARENA_ARRAY(r->arena, int64_t, n->walk_count + 1),
            reach = 0; /* reach: in 16 tiles */
    for (uint32_t i = 0; i < n->walk_count; i++) {
        sizes[i] = number(r, 1, INT64_C(1) << SIZE_BITS, "the size of a walk");
        strides[i] = number(r, -(INT64_C(1) << SIZE_BITS), INT64_C(1) << SIZE_BITS, "the stride of a walk");
        reach += sizes[i] * (strides[i] < 0 ? -strides[i] : strides[i]) >> 4;
    }
    if (reach > INT64_C(1) << 58)
        return fault(r, "the walk of `%s` goes past 2^62 tiles", n->name);
    n->walk_sizes = sizes;
    n->walk_strides = strides;
    return !r->in.failed;
}

/* A float's bits. */
static float read_float(reader *r)
{
    uint64_t word = word_reader_next(&r->in);
    uint32_t bits = (uint32_t)word;
    float value = f32_of_bits(bits);
    if (word >> 32)
        fault(r, "no number has the bits 0x%" PRIx64, word);
    return value;
}

static bool read_instruction(reader *r, const step_formula *f, uint32_t index, step_instruction *out)
{
    uint64_t head = word_reader_next(&r->in);
    const step_formula_row *row = step_formula_row_of(head & 0xffff);
    if (!row)
        return fault(r, "no instruction has the code %" PRIu64, head & 0xffff);
    *out = (step_instruction){.op = row->op};
    for (unsigned k = 0; k < STEP_OPERANDS; k++) {
        uint32_t operand = (uint32_t)(head >> (16 * (k + 1)) & 0xffff);
        uint32_t end = k < row->operands ? index : k == 0 && row->op == FORMULA_VALUE ? f->state_count + f->values : 1;
        if (operand >= end)
            return fault(r, "operand %u of instruction %" PRIu32 " is %" PRIu32 " of %" PRIu32, k, index, operand, end);
        out->operands[k] = operand;
    }
    out->number = read_float(r);
    return !r->in.failed;
}

static bool read_formula(reader *r, step_node *n)
{
    uint64_t head = word_reader_next(&r->in);
    step_formula *f = ARENA_NEW(r->arena, step_formula);
    *f = (step_formula){.count = (uint32_t)(head & 0xffff),
                        .result_count = (uint32_t)(head >> 16 & 0xffff),
                        .state_count = (uint32_t)(head >> 32 & 0xffff),
                        .values = (uint32_t)(head >> 48)};
    bool folds = n->op == STEP_ACCUM || n->op == STEP_SCAN;
    if (f->count < 1 || f->count > STEP_FORMULA_MAX || f->result_count < 1 || f->result_count > STEP_LEAVES_MAX || f->values < 1 ||
        f->values > STEP_LEAVES_MAX || f->state_count != (folds ? f->result_count : 0))
        return fault(r, "node `%s` has a function with the head 0x%" PRIx64, n->name, head);
    uint32_t *results = ARENA_ARRAY(r->arena, uint32_t, f->result_count);
    step_instruction *items = ARENA_ARRAY(r->arena, step_instruction, f->count);
    step_initial *states = ARENA_ARRAY(r->arena, step_initial, f->state_count + 1);
    for (uint32_t i = 0; i < f->result_count; i++)
        results[i] = (uint32_t)number(r, 0, f->count - 1, "a result");
    for (uint32_t i = 0; i < f->count && !r->in.failed; i++)
        read_instruction(r, f, i, &items[i]);
    for (uint32_t i = 0; i < f->state_count && !r->in.failed; i++) {
        states[i].rows = number(r, 1, STEP_TILE_MAX, "rows of a state");
        states[i].columns = number(r, 1, STEP_TILE_MAX, "columns of a state");
        states[i].value = read_float(r);
    }
    f->results = results;
    f->items = items;
    f->states = states;
    n->formula = f;
    return !r->in.failed;
}

static bool read_node(reader *r, step_node *n)
{
    uint64_t head = word_reader_next(&r->in), counts = word_reader_next(&r->in), name = word_reader_next(&r->in);
    const step_op_row *op = step_op_row_of(head & 0xffff);
    const step_fn_row *fn = step_fn_row_of(head >> 16 & 0xffff);
    n->name = word_reader_name(&r->in, name & 0xffffffff);
    if (r->in.failed)
        return false;
    if (!op || !fn || head >> 57)
        return fault(r, "node `%s` has the unknown head 0x%" PRIx64, n->name, head);
    n->op = op->op;
    n->fn = fn->fn;
    n->tensor = (uint32_t)(head >> 32 & 0xffff);
    n->walk_count = (uint32_t)(head >> 48 & 0xff);
    n->writes_back = head >> 56 & FLAG_WRITES_BACK;
    n->line = (uint32_t)(name >> 32);
    n->input_count = (uint32_t)counts;
    n->output_count = (uint32_t)(counts >> 32);
    bool walks = n->op == STEP_LINEAR_LOAD || n->op == STEP_STREAMIFY;
    if (uses_memory(n->op) ? n->tensor >= r->program->tensor_count : n->tensor != 0)
        return fault(r, "node `%s` names tensor %" PRIu32 " of %" PRIu32, n->name, n->tensor, r->program->tensor_count);
    if (n->walk_count > (walks ? STEP_RANK_MAX : 0))
        return fault(r, "node `%s` has a walk of %" PRIu32 " loops", n->name, n->walk_count);
    n->flops_per_cycle = number(r, 0, INT64_C(1) << 40, "compute");
    n->kernel = n->fn == STEP_FN_KERNEL ? word_reader_name(&r->in, word_reader_next(&r->in)) : NULL;
    if (n->fn == STEP_FN_FORMULA && !read_formula(r, n))
        return false;
    for (int i = 0; i < STEP_PARAMS; i++)
        n->param[i] = (int64_t)word_reader_next(&r->in);
    if (!counts_fit(r, n) || !row_fits(r, n) || !word_reader_has(&r->in, n->input_count, 2, "inputs"))
        return false;
    return word_reader_has(&r->in, n->output_count, 1, "outputs") && read_edges(r, n) && read_walk(r, n);
}

static bool ports_exist(reader *r)
{
    for (uint32_t i = 0; i < r->program->node_count; i++)
        for (uint32_t k = 0; k < r->nodes[i].input_count; k++) {
            const step_input *in = &r->nodes[i].inputs[k];
            if (in->port >= r->nodes[in->node].output_count)
                return fault(r, "input %" PRIu32 " of `%s` is output %" PRIu32 " of `%s`, which has %" PRIu32, k, r->nodes[i].name,
                             in->port, r->nodes[in->node].name, r->nodes[in->node].output_count);
        }
    return true;
}

static bool read_header(reader *r, arena *a)
{
    uint64_t first = word_reader_next(&r->in), second = word_reader_next(&r->in), name = word_reader_next(&r->in);
    r->program->node_count = (uint32_t)first;
    r->program->type_count = (uint32_t)(first >> 32);
    r->program->tensor_count = (uint32_t)second;
    if (!word_reader_take_strings(&r->in, second >> 32, a))
        return false;
    r->program->name = word_reader_name(&r->in, name);
    read_machine(r);
    return !r->in.failed && word_reader_has(&r->in, r->program->type_count, 5, "data types") &&
           word_reader_has(&r->in, r->program->tensor_count, 4, "tensors") && word_reader_has(&r->in, r->program->node_count, 8, "nodes");
}

bool step_program_decode(const uint64_t *words, size_t word_count, const char *section, arena *a, diag_list *diags, step_program *out)
{
    reader r = {.arena = a, .program = out};
    *out = (step_program){0};
    word_reader_init(&r.in, words, word_count, section, diags);
    if (!read_header(&r, a))
        return false;
    r.types = ARENA_ARRAY(a, step_type, out->type_count + 1);
    r.tensors = ARENA_ARRAY(a, step_tensor, out->tensor_count + 1);
    r.nodes = ARENA_ARRAY(a, step_node, out->node_count + 1);
    out->types = r.types;
    out->tensors = r.tensors;
    out->nodes = r.nodes;
    for (uint32_t i = 0; i < out->type_count; i++)
        if (!read_type(&r, i))
            return false;
    for (uint32_t i = 0; i < out->tensor_count; i++)
        if (!read_tensor(&r, &r.tensors[i]))
            return false;
    for (uint32_t i = 0; i < out->node_count; i++)
        if (!read_node(&r, &r.nodes[i]))
            return false;
    return word_reader_end(&r.in) && ports_exist(&r) && step_program_check(out, &r.in);
}
