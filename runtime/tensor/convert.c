#include "runtime/tensor/convert.h"

#include <string.h>

#include "runtime/machine/cpu.h"
#include "runtime/tensor/numeric.h"

/* Elements of a run, at whatever address: memcpy of a constant size is a plain load or store. */
#define CONVERT_LANES(name, type, conversion, attribute) \
    attribute static void name(float *restrict to, const unsigned char *restrict from, int64_t elements) \
    { \
        for (int64_t i = 0; i < elements; i++) { \
            type x; \
            memcpy(&x, from + i * (int64_t)sizeof x, sizeof x); \
            to[i] = conversion(x); \
        } \
    }

/* Nibbles are first spread to one per byte, which vectorises, and then converted like i8. */
#define CONVERT_LANES_I4(name, lanes_i8, attribute) \
    attribute static void name(float *restrict to, const unsigned char *restrict from, int64_t elements) \
    { \
        unsigned char spread[2 * NIBBLE_BYTES]; \
        for (int64_t done = 0; done < elements; done += 2 * NIBBLE_BYTES) { \
            int64_t n = elements - done < 2 * NIBBLE_BYTES ? elements - done : 2 * NIBBLE_BYTES; \
            for (int64_t i = 0; i < (n + 1) / 2; i++) { \
                unsigned char byte = from[done / 2 + i]; \
                spread[2 * i] = (unsigned char)(((byte & 15) ^ 8) - 8); \
                spread[2 * i + 1] = (unsigned char)((byte >> 4 ^ 8) - 8); \
            } \
            lanes_i8(to + done, spread, n); \
        } \
    }

enum { NIBBLE_BYTES = 64 };

#define CONVERT_SET(suffix, attribute) \
    CONVERT_LANES(i8_##suffix, int8_t, (float), attribute) \
    CONVERT_LANES(f8e4m3_##suffix, uint8_t, numeric_f8e4m3_to_f32, attribute) \
    CONVERT_LANES(f8e5m2_##suffix, uint8_t, numeric_f8e5m2_to_f32, attribute) \
    CONVERT_LANES(bf16_##suffix, uint16_t, numeric_bf16_to_f32, attribute) \
    CONVERT_LANES_I4(i4_##suffix, i8_##suffix, attribute) \
    static convert_lanes *operand_##suffix(dtype from) \
    { \
        switch (from) { \
        case DTYPE_I4: \
        case DTYPE_I5: return i4_##suffix; \
        case DTYPE_I9: \
        case DTYPE_I8: return i8_##suffix; \
        case DTYPE_F8E4M3: return f8e4m3_##suffix; \
        case DTYPE_F8E5M2: return f8e5m2_##suffix; \
        case DTYPE_BF16: return bf16_##suffix; \
        default: return NULL; \
        } \
    }

CONVERT_SET(base, )
#if defined(__x86_64__)
CONVERT_SET(avx2, __attribute__((target("avx2"))))
#endif

convert_lanes *convert_operand(dtype from)
{
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2, false))
        return operand_avx2(from);
#endif
    return operand_base(from);
}

convert_lanes *convert_operand_portable(dtype from)
{
    return operand_base(from);
}

#define CONVERT_RUN_AT(name, from_type, to_type, conversion, attribute) \
    attribute static void name(unsigned char *to, const unsigned char *from, int64_t elements) \
    { \
        for (int64_t i = 0; i < elements; i++) { \
            from_type x; \
            memcpy(&x, from + i * (int64_t)sizeof x, sizeof x); \
            to_type y = conversion(x); \
            memcpy(to + i * (int64_t)sizeof y, &y, sizeof y); \
        } \
    }
/* A conversion for this processor: the same loop in vectors of 256 bits where there are any. */
#if defined(__x86_64__)
#define CONVERT_RUN(name, from_type, to_type, conversion) \
    CONVERT_RUN_AT(name##_base, from_type, to_type, conversion, ) \
    CONVERT_RUN_AT(name##_avx2, from_type, to_type, conversion, __attribute__((target("avx2")))) \
    static void name(unsigned char *to, const unsigned char *from, int64_t elements) \
    { \
        (cpu_has(CPU_AVX2, false) ? name##_avx2 : name##_base)(to, from, elements); \
    }
#else
#define CONVERT_RUN(name, from_type, to_type, conversion) CONVERT_RUN_AT(name, from_type, to_type, conversion, )
#endif
CONVERT_RUN(convert_I8_I32, int8_t, int32_t, (int32_t))
CONVERT_RUN(convert_I16_I32, int16_t, int32_t, (int32_t))
CONVERT_RUN(convert_F8E4M3_F32, uint8_t, float, numeric_f8e4m3_to_f32)
CONVERT_RUN(convert_F8E5M2_F32, uint8_t, float, numeric_f8e5m2_to_f32)
CONVERT_RUN(convert_BF16_F32, uint16_t, float, numeric_bf16_to_f32)
CONVERT_RUN(convert_F32_BF16, float, uint16_t, numeric_f32_to_bf16)
CONVERT_RUN(convert_F32_F8E4M3, float, uint8_t, numeric_f32_to_f8e4m3)
CONVERT_RUN(convert_F32_F8E5M2, float, uint8_t, numeric_f32_to_f8e5m2)
CONVERT_RUN(convert_I32_I16, uint32_t, uint16_t, (uint16_t))
CONVERT_RUN(convert_I32_I8, uint32_t, uint8_t, (uint8_t))

static void convert_I4_I32(unsigned char *to, const unsigned char *from, int64_t elements)
{
    for (int64_t i = 0; i < elements; i++) {
        int32_t value = numeric_i4_get(from, i);
        memcpy(to + 4 * i, &value, sizeof value);
    }
}

static void convert_I32_I4(unsigned char *to, const unsigned char *from, int64_t elements)
{
    for (int64_t i = 0; i < elements; i++) {
        int32_t value;
        memcpy(&value, from + 4 * i, sizeof value);
        numeric_i4_put(to, i, value);
    }
}

/* One of the sixteen codes in each nibble, as the bytes of an 8-bit float: both of a byte together, as the table has them ("Fetch Adapter",
 * Table Lookup: 4-bit keys stand in pairs). */
static void lookup_pairs(const unsigned char *table, unsigned char *to, const unsigned char *from, int64_t elements)
{
    for (int64_t i = 0; i < elements; i++)
        to[i] = table[numeric_i4_bits(from, i)];
}

static void lookup_F4E2M1_F8E4M3(unsigned char *to, const unsigned char *from, int64_t elements)
{
    static const unsigned char table[] = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c, 0x80, 0xb0, 0xb8, 0xbc, 0xc0, 0xc4, 0xc8, 0xcc};
    lookup_pairs(table, to, from, elements);
}

static void lookup_F4E2M1_F8E5M2(unsigned char *to, const unsigned char *from, int64_t elements)
{
    static const unsigned char table[] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};
    lookup_pairs(table, to, from, elements);
}

static uint16_t bf16_of_f8e4m3(uint8_t code)
{
    return numeric_f32_to_bf16(numeric_f8e4m3_to_f32(code));
}

static uint16_t bf16_of_f8e5m2(uint8_t code)
{
    return numeric_f32_to_bf16(numeric_f8e5m2_to_f32(code));
}
CONVERT_RUN(lookup_F8E4M3_BF16, uint8_t, uint16_t, bf16_of_f8e4m3)
CONVERT_RUN(lookup_F8E5M2_BF16, uint8_t, uint16_t, bf16_of_f8e5m2)

static uint16_t relu_bf16(float x)
{
    return x == x && f32_bits(x) >> 31 ? 0 : numeric_f32_to_bf16(x);
}
CONVERT_RUN(run_relu, float, uint16_t, relu_bf16)

void convert_relu(unsigned char *to, const unsigned char *from, int64_t elements)
{
    run_relu(to, from, elements);
}

convert_run *convert_lookup(dtype from, dtype to)
{
#define LOOKUP(f, t) \
    if (from == DTYPE_##f && to == DTYPE_##t) \
        return lookup_##f##_##t;
#include "target/engines.def"
    return NULL;
}

static convert_run *convert_by(engine_id engine, dtype from, dtype to)
{
    static const struct {
        engine_id engine;
        dtype from, to;
        convert_run *run;
    } rows[] = {
#define CONVERSION(engine, from, to) {ENGINE_ID_##engine, DTYPE_##from, DTYPE_##to, convert_##from##_##to},
#include "target/engines.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].engine == engine && rows[i].from == from && rows[i].to == to)
            return rows[i].run;
    return NULL;
}

convert_run *convert_fetch(dtype from, dtype to)
{
    return convert_by(ENGINE_ID_FETCH, from, to);
}

convert_run *convert_commit(dtype from, dtype to)
{
    return convert_by(ENGINE_ID_COMMIT, from, to);
}

convert_run *convert_cast(dtype from, dtype to)
{
    return convert_by(ENGINE_ID_CAST, from, to);
}
