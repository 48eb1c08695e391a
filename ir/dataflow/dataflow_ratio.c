#include "ir/dataflow/dataflow_ratio.h"

#include <inttypes.h>

#include "support/integer.h"

dataflow_ratio dataflow_ratio_of(int64_t top, int64_t bottom)
{
    int64_t d = gcd(top, bottom);
    return d == 0 ? (dataflow_ratio){0, 0} : (dataflow_ratio){top / d, bottom / d};
}

bool dataflow_product(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out) && *out <= DATAFLOW_MAX;
}

dataflow_ratio dataflow_multiply(dataflow_ratio a, dataflow_ratio b)
{
    if (a.bottom == 0 || b.bottom == 0)
        return (dataflow_ratio){0, 0};
    dataflow_ratio x = dataflow_ratio_of(a.top, b.bottom), y = dataflow_ratio_of(b.top, a.bottom);
    dataflow_ratio r;
    return dataflow_product(x.top, y.top, &r.top) && dataflow_product(x.bottom, y.bottom, &r.bottom) ? r : (dataflow_ratio){0, 0};
}

bool dataflow_larger(dataflow_ratio a, dataflow_ratio b)
{
    return (__int128)a.top * b.bottom > (__int128)b.top * a.bottom;
}

const char *dataflow_ratio_text(dataflow_ratio r, arena *a)
{
    if (r.bottom == 1)
        return arena_printf(a, "%" PRId64, r.top);
    return arena_printf(a, "%" PRId64 "/%" PRId64, r.top, r.bottom);
}

int64_t dataflow_port_bits(dataflow_ratio stream, int64_t element_bits, bool bytes)
{
    int64_t bits;
    if (!dataflow_product(ceil_div(stream.top, stream.bottom), element_bits, &bits))
        return -1;
    return bytes ? ceil_div(bits, 8) * 8 : bits;
}
