#include "runtime/tensor/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/index_values.h"
#include "runtime/machine/parallel.h"
#include "runtime/tensor/convert.h"
#include "runtime/tensor/mix.h"
#include "runtime/tensor/numeric.h"
#include "support/strbuf.h"

#define ELEMENT_LIMIT (INT64_C(1) << 60)

int64_t tensor_elements(const tensor_type *type)
{
    int64_t elements = 1;
    bool fits = true;
    for (int i = 0; i < type->rank; i++) {
        if (type->shape[i] < 0)
            return -1;
        if (type->shape[i] == 0)
            return 0;
        fits = fits && !__builtin_mul_overflow(elements, type->shape[i], &elements) && elements <= ELEMENT_LIMIT;
    }
    return fits ? elements : -1;
}

int64_t tensor_bytes(dtype t, int64_t elements)
{
    unsigned bits = dtype_row_of(t)->bits;
    if (elements < 0 || elements > ELEMENT_LIMIT)
        return -1;
    return bits < 8 ? (elements + 1) / 2 : elements * (int64_t)(bits / 8);
}

static void type_copy(const tensor_type *type, arena *a, tensor_type *out)
{
    *out = *type;
    if (type->rank == 0)
        return;
    int64_t *shape = ARENA_ARRAY(a, int64_t, (size_t)type->rank);
    memcpy(shape, type->shape, (size_t)type->rank * sizeof *shape);
    out->shape = shape;
    if (!type->names)
        return;
    const char **names = ARENA_ARRAY(a, const char *, (size_t)type->rank);
    for (int i = 0; i < type->rank; i++)
        names[i] = arena_strdup(a, type->names[i]);
    out->names = names;
}

bool tensor_new(const tensor_type *type, arena *a, tensor *out)
{
    int64_t size = tensor_bytes(type->dtype, tensor_elements(type));
    *out = (tensor){0};
    if (size < 0)
        return false;
    unsigned char *bytes = calloc(size ? (size_t)size : 1, 1);
    if (!bytes)
        return false;
    type_copy(type, a, &out->type);
    out->bytes = bytes;
    out->size = (size_t)size;
    return true;
}

void tensor_free(tensor *t)
{
    free(t->bytes);
    *t = (tensor){0};
}

const char *tensor_shape_text(const tensor_type *type, arena *a)
{
    enum { SHOWN = 32 };
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, "[");
    for (int i = 0; i < type->rank && i < SHOWN; i++) {
        if (i)
            strbuf_puts(&s, ", ");
        if (type->names)
            strbuf_printf(&s, "%s=", type->names[i]);
        strbuf_printf(&s, "%" PRId64, type->shape[i]);
    }
    if (type->rank > SHOWN)
        strbuf_printf(&s, ", ... %d axes", type->rank);
    strbuf_puts(&s, "]");
    return s.text;
}

/* One loop nest over the result: sizes of its axes and their strides in the source, in elements. */
typedef struct permutation {
    int rank;
    int64_t *size, *stride, *counter;
} permutation;

static void copy_run(dtype t, unsigned char *to, int64_t at, const unsigned char *from, int64_t first, int64_t stride, int64_t count)
{
    switch (dtype_row_of(t)->bits) {
    case 4:
        for (int64_t i = 0; i < count; i++)
            numeric_i4_put(to, at + i, numeric_i4_get(from, first + i * stride));
        break;
    case 8:
        for (int64_t i = 0; i < count; i++)
            to[at + i] = from[first + i * stride];
        break;
    case 16:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 2 * (at + i), from + 2 * (first + i * stride), 2);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * (at + i), from + 4 * (first + i * stride), 4);
        break;
    }
}

/* Steps every loop but the innermost; returns the source element of the next run. */
static int64_t next_run(permutation *p, int64_t source)
{
    for (int i = p->rank - 2; i >= 0; i--) {
        source += p->stride[i];
        if (++p->counter[i] < p->size[i])
            break;
        source -= p->size[i] * p->stride[i];
        p->counter[i] = 0;
    }
    return source;
}

static permutation permutation_of(const tensor_type *from, const int *order, arena *a)
{
    size_t rank = (size_t)from->rank;
    permutation p = {from->rank, ARENA_ARRAY(a, int64_t, rank), ARENA_ARRAY(a, int64_t, rank), ARENA_ARRAY(a, int64_t, rank)};
    int64_t *strides = ARENA_ARRAY(a, int64_t, rank), weight = 1;
    for (int i = from->rank - 1; i >= 0; i--) {
        strides[i] = weight;
        (void)__builtin_mul_overflow(weight, from->shape[i], &weight); /* can only pass 2^63 when there are no elements */
    }
    for (int i = 0; i < from->rank; i++) {
        p.size[i] = from->shape[order[i]];
        p.stride[i] = strides[order[i]];
    }
    return p;
}

bool tensor_permute(const tensor *from, const int *order, arena *a, tensor *out)
{
    int rank = from->type.rank;
    tensor_type type = from->type;
    permutation p = {0};
    const char **names = NULL;
    if (rank) {
        p = permutation_of(&from->type, order, a);
        names = type.names ? ARENA_ARRAY(a, const char *, (size_t)rank) : NULL;
        for (int i = 0; names && i < rank; i++)
            names[i] = type.names[order[i]];
        type.shape = p.size;
        type.names = names;
    }
    if (!tensor_new(&type, a, out))
        return false;
    int64_t elements = tensor_elements(&type), source = 0;
    int64_t run = rank ? p.size[rank - 1] : 1, stride = rank ? p.stride[rank - 1] : 1;
    for (int64_t at = 0; at < elements; at += run) {
        copy_run(type.dtype, out->bytes, at, from->bytes, source, stride, run);
        source = next_run(&p, source);
    }
    return true;
}

/* Before it is mixed: number `number` from 0 on of the sequence that `seed` begins. */
static uint64_t random_state(uint64_t seed, int64_t number)
{
    return seed + ((uint64_t)number + 1) * MIX_STEP;
}

enum { PIECE = 1024 /* elements, whole bytes of every type */, BLOCK = 256 /* the same, that are made together */ };

typedef struct filling {
    tensor *tensor;
    int64_t elements;
    uint64_t seed;
} filling;

/* The last bits of a word as an element of 4 or 8 bits. */
static void put_code(unsigned char *to, unsigned bits, int64_t element, uint32_t word)
{
    if (bits == 8)
        to[element] = (unsigned char)word;
    else
        numeric_i4_put(to, element, (int32_t)word);
}

static void fill_pieces(void *of, unsigned part, int64_t first, int64_t end)
{
    const filling *f = of;
    dtype t = f->tensor->type.dtype;
    bool is_float = dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
    convert_run *narrow = convert_cast(is_float ? DTYPE_F32 : DTYPE_I32, t);
    bool codes = !narrow && dtype_row_of(t)->bits < 32; /* nothing narrows to it, and any code is a number */
    (void)part;
    for (int64_t at = first * PIECE, n; at < end * PIECE && at < f->elements; at += n) {
        uint64_t states[BLOCK];
        uint32_t words[BLOCK];
        n = f->elements - at < BLOCK ? f->elements - at : BLOCK;
        mix_counted(&(mix_form){.shift = 32}, random_state(f->seed, at), MIX_STEP, states, n);
        for (int64_t i = 0; i < n; i++)
            words[i] = is_float && !codes ? f32_bits((float)((uint32_t)states[i] >> 8) * 0x1p-23f - 1) : (uint32_t)states[i];
        unsigned char *to = f->tensor->bytes + tensor_bytes(t, at);
        if (codes)
            for (int64_t i = 0; i < n; i++)
                put_code(to, dtype_row_of(t)->bits, i, words[i]);
        else if (narrow)
            narrow(to, (const unsigned char *)words, n);
        else
            memcpy(to, words, (size_t)n * sizeof *words);
    }
}

void tensor_fill_random(tensor *t, uint64_t seed, unsigned threads)
{
    enum { LEAST = 128 /* pieces that repay a thread */ };
    filling f = {t, t->bytes ? tensor_elements(&t->type) : 0, seed};
    parallel_parts((f.elements + PIECE - 1) / PIECE, LEAST, threads, fill_pieces, &f);
}

void tensor_fill_multiples(tensor *t, uint64_t seed, const index_values *of)
{
    int64_t elements = t->bytes ? tensor_elements(&t->type) : 0, most = INT32_MAX / of->unit + 1;
    index_values some = *of;
    some.count = some.count < most ? some.count : most;
    for (int64_t i = 0; i < elements; i++) {
        int32_t value = (int32_t)index_values_draw(&some, i, mix_word(random_state(seed, index_values_place(of, i))));
        if (t->type.dtype == DTYPE_U8)
            t->bytes[i] = (unsigned char)value;
        else
            memcpy(t->bytes + i * (int64_t)sizeof value, &value, sizeof value);
    }
}
