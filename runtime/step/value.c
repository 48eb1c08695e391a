#include "runtime/step/value.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/tensor/numeric.h"

enum { SLAB_VALUES = 1024 };

typedef struct slab {
    struct slab *next;
    step_value values[SLAB_VALUES];
} slab;

struct step_pool {
    arena *guard;
    bool with_elements;
    slab *slabs;
    step_value **unused; /* a stack with room for every value of the slabs */
    size_t unused_count, slab_count;
};

step_pool *step_pool_new(arena *guard, bool with_elements)
{
    step_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        longjmp(*arena_guard(guard), 1);
    pool->guard = guard;
    pool->with_elements = with_elements;
    return pool;
}

static void *need(step_pool *pool, void *memory)
{
    if (!memory)
        longjmp(*arena_guard(pool->guard), 1);
    return memory;
}

static void release_parts(step_value *v)
{
    if (v->kind == STEP_TILE)
        free(v->tile.elements);
    if (v->kind == STEP_SELECTOR)
        free(v->selector.picks);
    if (v->kind == STEP_BUFFER)
        free(v->buffer.tokens);
}

void step_pool_free(step_pool *pool)
{
    if (!pool)
        return;
    for (slab *s = pool->slabs, *next; s; s = next) {
        next = s->next;
        for (size_t i = 0; i < SLAB_VALUES; i++)
            if (s->values[i].references > 0)
                release_parts(&s->values[i]);
        free(s);
    }
    free(pool->unused);
    free(pool);
}

static void add_slab(step_pool *pool)
{
    size_t values = (pool->slab_count + 1) * SLAB_VALUES;
    pool->unused = need(pool, realloc(pool->unused, values * sizeof *pool->unused));
    slab *s = need(pool, calloc(1, sizeof *s));
    s->next = pool->slabs;
    pool->slabs = s;
    pool->slab_count++;
    for (size_t i = SLAB_VALUES; i-- > 0;)
        pool->unused[pool->unused_count++] = &s->values[i];
}

static step_value *value_new(step_pool *pool, step_kind kind)
{
    if (pool->unused_count == 0)
        add_slab(pool);
    step_value *v = pool->unused[--pool->unused_count];
    *v = (step_value){.references = 1, .kind = kind};
    return v;
}

step_value *step_tile_new(step_pool *pool, int64_t rows, int64_t columns)
{
    if (rows > STEP_TILE_MAX || columns > STEP_TILE_MAX) /* stacked by a program; what is declared is smaller */
        longjmp(*arena_guard(pool->guard), 1);
    step_value *v = value_new(pool, STEP_TILE);
    v->tile.rows = v->tile.valid = rows;
    v->tile.columns = columns;
    if (pool->with_elements)
        v->tile.elements = need(pool, calloc((size_t)(rows * columns) + 1, sizeof(float)));
    return v;
}

step_value *step_selector_new(step_pool *pool, const uint32_t *picks, uint32_t count)
{
    step_value *v = value_new(pool, STEP_SELECTOR);
    v->selector.picks = need(pool, malloc(count * sizeof *picks + 1));
    v->selector.count = count;
    if (count > 0)
        memcpy(v->selector.picks, picks, count * sizeof *picks);
    return v;
}

step_value *step_buffer_new(step_pool *pool, uint32_t rank)
{
    step_value *v = value_new(pool, STEP_BUFFER);
    v->buffer.rank = rank;
    return v;
}

void step_buffer_push(step_pool *pool, step_value *buffer, step_token token)
{
    if (buffer->buffer.count == buffer->buffer.capacity) {
        size_t capacity = buffer->buffer.capacity ? 2 * buffer->buffer.capacity : 8;
        buffer->buffer.tokens = need(pool, realloc(buffer->buffer.tokens, capacity * sizeof token));
        buffer->buffer.capacity = capacity;
    }
    buffer->buffer.tokens[buffer->buffer.count++] = token;
    buffer->buffer.values += token.kind == STEP_VALUE;
}

step_value *step_pair_new(step_pool *pool, step_value *first, step_value *second)
{
    step_value *v = value_new(pool, STEP_PAIR);
    v->pair[0] = first;
    v->pair[1] = second;
    return v;
}

step_value *step_bool_new(step_pool *pool, bool flag)
{
    step_value *v = value_new(pool, STEP_BOOL);
    v->flag = flag;
    return v;
}

step_value *step_address_new(step_pool *pool, int64_t address)
{
    step_value *v = value_new(pool, STEP_ADDRESS);
    v->address = address;
    return v;
}

void step_value_drop(step_pool *pool, step_value *v)
{
    if (!v || --v->references > 0)
        return;
    if (v->kind == STEP_PAIR)
        for (int i = 0; i < 2; i++)
            step_value_drop(pool, v->pair[i]);
    if (v->kind == STEP_BUFFER)
        for (size_t i = 0; i < v->buffer.count; i++)
            step_value_drop(pool, v->buffer.tokens[i].value);
    release_parts(v);
    pool->unused[pool->unused_count++] = v;
}

static int64_t tile_bytes(dtype t, int64_t elements)
{
    return (elements * (int64_t)dtype_row_of(t)->bits + 7) / 8;
}

int64_t step_value_bytes(const step_program *p, uint32_t type, const step_value *v)
{
    const step_type *t = &p->types[type];
    int64_t bytes = 0;
    switch (t->kind) {
    case STEP_TILE: return tile_bytes(t->dtype, v->tile.rows * v->tile.columns);
    case STEP_SELECTOR: return t->width;
    case STEP_PAIR: return step_value_bytes(p, t->first, v->pair[0]) + step_value_bytes(p, t->second, v->pair[1]);
    case STEP_BOOL: return 1;
    case STEP_ADDRESS: return 8;
    default: break;
    }
    for (size_t i = 0; i < v->buffer.count; i++)
        if (v->buffer.tokens[i].kind == STEP_VALUE)
            bytes += step_value_bytes(p, t->first, v->buffer.tokens[i].value);
    return bytes;
}

float step_round(dtype t, float x)
{
    if (t == DTYPE_F32)
        return x;
    if (t == DTYPE_BF16)
        return numeric_bf16_to_f32(numeric_f32_to_bf16(x));
    unsigned char bits[8] = {0};
    numeric_from_double(t, bits, 0, (double)x);
    return (float)numeric_to_double(t, bits, 0);
}
