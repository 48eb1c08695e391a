/* What travels on a stream: values, and the tokens that carry them.
 *
 * The one idea: a value is immutable and shared; a broadcast or a buffer only counts a reference. Elements of tiles are kept as
 * f32 whatever their type on the stream (every type that a tile may have is a subset), and not at all when only time is asked for. */
#ifndef VISA_RUNTIME_STEP_VALUE_H
#define VISA_RUNTIME_STEP_VALUE_H

#include "codegen/step/program.h"

typedef struct step_value step_value;

typedef enum step_token_kind { STEP_VALUE, STEP_STOP, STEP_DONE } step_token_kind;

typedef struct step_token {
    step_token_kind kind;
    uint8_t level;     /* of a stop: dimensions that it closes */
    bool in_memory;    /* the value lies in memory on the chip: who takes it pays the read */
    step_value *value; /* of a value token, else NULL */
} step_token;

struct step_value {
    uint32_t references;
    step_kind kind;
    union {
        struct {
            int64_t rows, columns, valid; /* valid: leading rows that are no padding */
            float *elements;              /* row-major; NULL when only time is simulated */
        } tile;
        struct {
            uint32_t count;
            uint32_t *picks; /* ascending */
        } selector;
        struct {
            size_t count, capacity;
            uint32_t rank;
            step_token *tokens; /* its content without the closing stop */
            int64_t values;     /* value tokens among them */
        } buffer;
        step_value *pair[2];
        bool flag;
        int64_t address;
    };
};

/* Owns every value of one run. When memory runs out it leaves through the arena's guard; step_pool_free then frees what was live. */
typedef struct step_pool step_pool;
step_pool *step_pool_new(arena *guard, bool with_elements);
void step_pool_free(step_pool *pool);

/* Each returns a new reference, never NULL. The elements of a tile are zero. */
step_value *step_tile_new(step_pool *pool, int64_t rows, int64_t columns);
step_value *step_selector_new(step_pool *pool, const uint32_t *picks, uint32_t count);
step_value *step_buffer_new(step_pool *pool, uint32_t rank);
void step_buffer_push(step_pool *pool, step_value *buffer, step_token token);      /* takes over the token's reference */
step_value *step_pair_new(step_pool *pool, step_value *first, step_value *second); /* takes over both references */
step_value *step_bool_new(step_pool *pool, bool flag);
step_value *step_address_new(step_pool *pool, int64_t address);

static inline step_value *step_value_keep(step_value *v)
{
    v->references++;
    return v;
}
void step_value_drop(step_pool *pool, step_value *v); /* NULL is nothing */

static inline step_token step_token_of(step_value *v)
{
    return (step_token){.kind = STEP_VALUE, .value = v};
}
static inline step_token step_stop_of(unsigned level)
{
    return (step_token){.kind = STEP_STOP, .level = (uint8_t)level};
}

/* Bytes that a value of this type takes: a tile its elements in the type's width, a selector one byte for each output that it can
 * name, a pair the sum, a buffer its content. */
int64_t step_value_bytes(const step_program *p, uint32_t type, const step_value *v);

/* Rounds an element to the type, as a cast does (docs/numerics.md). */
float step_round(dtype t, float x);

#endif
