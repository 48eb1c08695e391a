#include "runtime/step/seen.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "support/integer.h"
#include "support/strbuf.h"

typedef struct numbers {
    int64_t *items;
    size_t count, capacity;
} numbers;

struct step_seen_sizes {
    arena *arena;
    numbers dims[STEP_RANK_MAX + 1]; /* D_i */
    int64_t open[STEP_RANK_MAX + 1]; /* of the group that has not ended */
    numbers rows, columns;           /* of tiles whose type does not say them */
    numbers picks;                   /* outputs that each selector names */
};

static void push(step_seen_sizes *s, numbers *to, int64_t value)
{
    ARENA_PUSH(s->arena, to->items, to->count, to->capacity, value);
}

void step_seen_keep_sizes(step_seen *s, arena *a)
{
    s->sizes = ARENA_NEW(a, step_seen_sizes);
    s->sizes->arena = a;
}

static void count_token(step_seen_sizes *s, const step_type *type, const step_output *o, step_token t)
{
    if (t.kind == STEP_VALUE) {
        s->open[0]++;
        if (type->kind == STEP_SELECTOR)
            push(s, &s->picks, t.value->selector.count);
        if (type->kind == STEP_TILE && type->rows < 0)
            push(s, &s->rows, t.value->tile.rows);
        if (type->kind == STEP_TILE && type->columns < 0)
            push(s, &s->columns, t.value->tile.columns);
        return;
    }
    uint32_t closed = t.kind == STEP_DONE ? o->rank + 1 : t.level;
    uint32_t from = t.kind == STEP_DONE ? o->rank : 0; /* the stops closed what is inside */
    for (uint32_t i = from; i < closed; i++) {
        push(s, &s->dims[i], s->open[i]);
        s->open[i] = 0;
        if (i + 1 <= o->rank)
            s->open[i + 1]++;
    }
}

void step_seen_token(step_seen *s, const step_program *p, const step_output *o, step_token t)
{
    const step_type *type = &p->types[o->type];
    if (s->sizes)
        count_token(s->sizes, type, o, t);
    if (t.kind != STEP_VALUE)
        return;
    s->values++;
    s->bytes = larger(s->bytes, step_value_bytes(p, o->type, t.value));
    const step_value *first = type->kind == STEP_PAIR ? t.value->pair[0] : t.value;
    if (first->kind == STEP_TILE)
        s->columns = larger(s->columns, first->tile.columns);
    if (type->kind == STEP_PAIR)
        s->second = larger(s->second, step_value_bytes(p, type->second, t.value->pair[1]));
}

/* ---- memory on the chip ---- */

static int64_t tile_bytes(dtype t, int64_t rows, int64_t columns)
{
    return (rows * columns * (int64_t)dtype_row_of(t)->bits + 7) / 8;
}

/* Of any value of the type; 0 where that depends on the value. */
static int64_t type_bytes(const step_program *p, uint32_t type)
{
    const step_type *t = &p->types[type];
    switch (t->kind) {
    case STEP_TILE: return t->rows < 0 || t->columns < 0 ? 0 : tile_bytes(t->dtype, t->rows, t->columns);
    case STEP_SELECTOR: return t->width;
    case STEP_PAIR: return type_bytes(p, t->first) + type_bytes(p, t->second);
    case STEP_BOOL: return 1;
    case STEP_ADDRESS: return 8;
    default: return 0;
    }
}

typedef struct looking {
    const step_program *program;
    const step_node *node;
    step_seen *const *seen;
} looking;

static const step_seen *came(const looking *l, uint32_t input)
{
    const step_input *in = &l->node->inputs[input];
    return &l->seen[in->node][in->port];
}

static uint32_t type_of_input(const looking *l, uint32_t input)
{
    const step_input *in = &l->node->inputs[input];
    return l->program->nodes[in->node].outputs[in->port].type;
}

static int64_t value_bytes(const looking *l, const step_seen *s, uint32_t type)
{
    return s->values > 0 ? s->bytes : type_bytes(l->program, type);
}

static int64_t result_bytes(const looking *l)
{
    return value_bytes(l, &l->seen[l->node - l->program->nodes][0], l->node->outputs[0].type);
}

/* The product of the innermost `count` sizes of a shape, "[B, 4, 2]"; 0 where one of them is no number. */
static int64_t fixed_sizes(const char *shape, uint32_t count)
{
    int64_t product = 1;
    const char *end = strrchr(shape, ']');
    for (uint32_t i = 0; i < count && end; i++) {
        const char *begin = end;
        while (begin > shape && isdigit((unsigned char)begin[-1]))
            begin--;
        bool is_number = begin < end && begin > shape && (begin[-1] == ' ' || begin[-1] == '[') && (i + 1 == count || begin[-1] == ' ');
        if (!is_number || __builtin_mul_overflow(product, strtoll(begin, NULL, 10), &product))
            return 0;
        end = begin - 2 >= shape ? begin - 2 : NULL; /* the comma */
    }
    return product;
}

/* A buffer as large as those that came, or as the shape says. */
static int64_t buffer_bytes(const looking *l)
{
    const step_input *in = &l->node->inputs[0];
    const step_output *from = &l->program->nodes[in->node].outputs[in->port];
    int64_t seen = result_bytes(l), each = type_bytes(l->program, from->type),
            said = fixed_sizes(from->shape, (uint32_t)l->node->param[STEP_B]);
    return came(l, 0)->values > 0 || __builtin_mul_overflow(each, said, &each) ? seen : each;
}

static int64_t columns_of(const step_program *p, const step_seen *s, uint32_t type)
{
    const step_type *t = &p->types[type];
    const step_type *first = t->kind == STEP_PAIR ? &p->types[t->first] : t;
    return s->values > 0 ? s->columns : first->columns > 0 ? first->columns : 0;
}

/* Of a product: rows of the input that the matrix unit holds, whose elements the equation gives no size, and the weight. */
static int64_t operand_bytes(const looking *l)
{
    if (!step_fn_acts(l->node->fn, STEP_ACTS_PRODUCT))
        return 0;
    uint32_t type = type_of_input(l, 0);
    int64_t rows = l->program->machine.compute_tile * columns_of(l->program, came(l, 0), type);
    if (l->node->input_count > 1)
        return rows + value_bytes(l, came(l, 1), type_of_input(l, 1));
    return rows + (came(l, 0)->values > 0 ? came(l, 0)->second : type_bytes(l->program, l->program->types[type].second));
}

static int64_t stored_bytes(const looking *l)
{
    const step_tensor *t = &l->program->tensors[l->node->tensor];
    return tile_bytes(t->dtype, t->rows, t->columns);
}

step_onchip step_seen_onchip(const step_program *p, uint32_t node, step_seen *const *seen)
{
    const looking l = {p, &p->nodes[node], seen};
    int64_t bytes;
    switch (l.node->op) {
    case STEP_LINEAR_LOAD:
    case STEP_RANDOM_LOAD: bytes = stored_bytes(&l); return (step_onchip){2 * bytes, seen[node][0].values > 0 ? bytes : 0};
    case STEP_LINEAR_STORE: bytes = stored_bytes(&l); return (step_onchip){2 * bytes, came(&l, 0)->values > 0 ? bytes : 0};
    case STEP_RANDOM_STORE: bytes = stored_bytes(&l); return (step_onchip){2 * bytes, came(&l, 1)->values > 0 ? bytes : 0};
    case STEP_BUFFERIZE:
        bytes = value_bytes(&l, came(&l, 0), type_of_input(&l, 0)) + 2 * buffer_bytes(&l);
        return (step_onchip){bytes, came(&l, 0)->values > 0 ? bytes : 0};
    case STEP_ACCUM:
    case STEP_SCAN:
    case STEP_EXPAND:
    case STEP_REPEAT:
        bytes = result_bytes(&l);
        return (step_onchip){bytes + (l.node->op == STEP_ACCUM ? operand_bytes(&l) : 0), seen[node][0].values > 0 ? bytes : 0};
    case STEP_MAP: return (step_onchip){operand_bytes(&l), 0};
    default: return (step_onchip){0, 0};
    }
}

/* ---- sizes ---- */

static void put_numbers(strbuf *s, const numbers *n)
{
    strbuf_puts(s, "[");
    for (size_t i = 0; i < n->count; i++)
        strbuf_printf(s, "%s%" PRId64, i > 0 ? ", " : "", n->items[i]);
    strbuf_puts(s, "]");
}

static void put_list(strbuf *s, const char *name, const numbers *n)
{
    strbuf_printf(s, ", \"%s\": ", name);
    put_numbers(s, n);
}

static void put_output(strbuf *s, const step_program *p, const step_output *o, const step_seen_sizes *z)
{
    const step_type *type = &p->types[o->type];
    strbuf_puts(s, "{\"sizes\": [");
    for (uint32_t i = o->rank + 1; i-- > 0;) {
        put_numbers(s, &z->dims[i]);
        strbuf_puts(s, i > 0 ? ", " : "]");
    }
    if (type->kind == STEP_TILE && type->rows < 0)
        put_list(s, "rows", &z->rows);
    if (type->kind == STEP_TILE && type->columns < 0)
        put_list(s, "columns", &z->columns);
    if (type->kind == STEP_SELECTOR)
        put_list(s, "picks", &z->picks);
    strbuf_puts(s, "}");
}

const char *step_seen_sizes_text(const step_program *p, step_seen *const *seen, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "{\"program\": \"%s\", \"operators\": [", p->name);
    for (uint32_t i = 0; i < p->node_count; i++) {
        strbuf_printf(&s, "%s\n  {\"name\": \"%s\", \"outputs\": [", i > 0 ? "," : "", p->nodes[i].name);
        for (uint32_t o = 0; o < p->nodes[i].output_count; o++) {
            strbuf_puts(&s, o > 0 ? ", " : "");
            put_output(&s, p, &p->nodes[i].outputs[o], seen[i][o].sizes);
        }
        strbuf_puts(&s, "]}");
    }
    strbuf_puts(&s, "]}\n");
    return s.text;
}
