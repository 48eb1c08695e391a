#include "runtime/tensor/numeric.h"

#include <math.h>

static uint32_t load16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t load32(const unsigned char *p)
{
    return load16(p) | load16(p + 2) << 16;
}

static void store(unsigned char *p, uint32_t bits, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (unsigned char)(bits >> 8 * i);
}

int32_t numeric_wrap(dtype t, int32_t value)
{
    unsigned drop = 32 - dtype_row_of(t)->bits;
    return (int32_t)((uint32_t)value << drop) >> drop;
}

void numeric_i4_pack(const unsigned char *bytes, int64_t elements, unsigned char *packed)
{
    int64_t i = 0;
    for (; i + 1 < elements; i += 2)
        packed[i / 2] = (unsigned char)((bytes[i] & 0xf) | bytes[i + 1] << 4);
    if (i < elements)
        packed[i / 2] = bytes[i] & 0xf;
}

void numeric_i4_unpack(dtype t, const unsigned char *packed, int64_t elements, unsigned char *bytes)
{
    for (int64_t i = 0; i < elements; i++)
        bytes[i] = (unsigned char)(t == DTYPE_I4 ? (unsigned)numeric_i4_get(packed, i) : numeric_i4_bits(packed, i));
}

double numeric_to_double(dtype t, const void *buffer, int64_t element)
{
    const unsigned char *bytes = buffer;
    switch (t) {
    case DTYPE_I4:
    case DTYPE_I5: return numeric_i4_get(bytes, element);
    case DTYPE_U8: return bytes[element];
    case DTYPE_F4E2M1: return numeric_f4e2m1_to_f32(numeric_i4_bits(bytes, element));
    case DTYPE_I8:
    case DTYPE_I9: return (int8_t)bytes[element];
    case DTYPE_I16: return (int16_t)load16(bytes + 2 * element);
    case DTYPE_I32: return (int32_t)load32(bytes + 4 * element);
    case DTYPE_F8E4M3: return numeric_f8e4m3_to_f32(bytes[element]);
    case DTYPE_F8E5M2: return numeric_f8e5m2_to_f32(bytes[element]);
    case DTYPE_BF16: return numeric_bf16_to_f32((uint16_t)load16(bytes + 2 * element));
    case DTYPE_F32: return f32_of_bits(load32(bytes + 4 * element));
    case DTYPE_COUNT: break;
    }
    return 0;
}

/* The nearest integer, ties to even. Beyond 2^52 a double is one; below, adding 2^52 leaves no place for a fraction, and the processor
 * rounds as it adds. (The C library's own would be all that visac needs of libm, a tenth of the time that it takes to start.) */
static double nearest_integer(double value)
{
    if (fabs(value) >= 0x1p52)
        return value;
    return value < 0 ? (value - 0x1p52) + 0x1p52 : (value + 0x1p52) - 0x1p52;
}

/* The residue modulo 2^32 of an integer beyond 2^62: its 53 bits, shifted. */
static uint32_t large_residue(double integer)
{
    uint64_t bits = f64_bits(integer);
    unsigned shift = (unsigned)(bits >> 52 & 0x7ff) - 1075;
    uint64_t mantissa = (bits & 0xfffffffffffffu) | UINT64_C(1) << 52;
    uint32_t residue = shift < 32 ? (uint32_t)(mantissa << shift) : 0;
    return integer < 0 ? -residue : residue;
}

/* The residue modulo 2^32 of the nearest integer. */
static uint32_t integer_bits(double value)
{
    if (!isfinite(value))
        return 0;
    double nearest = nearest_integer(value);
    return fabs(nearest) < 0x1p62 ? (uint32_t)(int64_t)nearest : large_residue(nearest);
}

void numeric_from_double(dtype t, void *buffer, int64_t element, double value)
{
    unsigned char *bytes = buffer;
    switch (t) {
    case DTYPE_I4:
    case DTYPE_I5: numeric_i4_put(bytes, element, (int32_t)integer_bits(value)); break;
    case DTYPE_F4E2M1: numeric_i4_put(bytes, element, (int32_t)numeric_f32_to_f4e2m1((float)value)); break;
    case DTYPE_U8:
    case DTYPE_I9:
    case DTYPE_I8: bytes[element] = (unsigned char)integer_bits(value); break;
    case DTYPE_I16: store(bytes + 2 * element, integer_bits(value), 2); break;
    case DTYPE_I32: store(bytes + 4 * element, integer_bits(value), 4); break;
    case DTYPE_F8E4M3: bytes[element] = numeric_f32_to_f8e4m3((float)value); break;
    case DTYPE_F8E5M2: bytes[element] = numeric_f32_to_f8e5m2((float)value); break;
    case DTYPE_BF16: store(bytes + 2 * element, numeric_f32_to_bf16((float)value), 2); break;
    case DTYPE_F32: store(bytes + 4 * element, f32_bits((float)value), 4); break;
    case DTYPE_COUNT: break;
    }
}
