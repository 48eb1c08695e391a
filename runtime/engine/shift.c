#include "runtime/engine/shift.h"

#include <string.h>

enum { NO_DIM = 8 /* of shift_dim and initial_shift_dim */ };

static bool ranges_legal(const target *t, const command *c, dtype type, fault *f)
{
    int64_t bits = dtype_row_of(type)->bits, rows = command_get(c, SHIFT_TRANSPOSE_ROWS);
    int64_t most = t->initial_shift_bytes * 8 / bits, stride = t->shift_stride_bytes * 8 / bits;
    if (rows > 1 && !(dtype_row_of(type)->transpose_rows & rows))
        return fault_set(f, E_RUN_CHAIN, c, "a flit of %s cannot be transposed from %lld rows", dtype_row_of(type)->name, (long long)rows);
    if (command_get(c, SHIFT_STRIDE) >= stride)
        return fault_set(f, E_RUN_CHAIN, c, "shift_stride %lld of %s is above %lld", (long long)command_get(c, SHIFT_STRIDE),
                         dtype_row_of(type)->name, (long long)stride - 1);
    for (unsigned i = 0; i < c->entry_count; i++) {
        int64_t initial = command_entry(c, i, SHIFT_INITIAL);
        if (initial <= -most || initial > most)
            return fault_set(f, E_RUN_CHAIN, c, "initial_shift %lld of %s is not between %lld and %lld", (long long)initial,
                             dtype_row_of(type)->name, (long long)(1 - most), (long long)most);
    }
    return true;
}

/* Iterations of the loops [from, to); 0 when they overflow. */
static int64_t iterations(const command *c, int64_t from, int64_t to)
{
    int64_t product = 1;
    for (int64_t i = from; i < to; i++)
        if (__builtin_mul_overflow(product, command_entry(c, (unsigned)i, SHIFT_LIMIT), &product))
            return 0;
    return product;
}

static bool dims_legal(const command *c, fault *f)
{
    int64_t count = c->entry_count, pop = command_get(c, SHIFT_POP_DIM), dim = command_get(c, SHIFT_DIM),
            initial = command_get(c, SHIFT_INITIAL_DIM);
    if (pop >= count || (dim != NO_DIM && dim >= pop) || (initial != NO_DIM && (initial < pop || initial >= count)))
        return fault_set(f, E_RUN_CHAIN, c, "shift_dim %lld, pop_dim %lld and initial_shift_dim %lld do not fit %lld loops", (long long)dim,
                         (long long)pop, (long long)initial, (long long)count);
    if ((dim == NO_DIM) != (command_get(c, SHIFT_STRIDE) == 0))
        return fault_set(f, E_RUN_CHAIN, c, "shift_dim %lld with shift_stride %lld", (long long)dim,
                         (long long)command_get(c, SHIFT_STRIDE));
    int64_t used = initial == NO_DIM ? 1 : command_entry(c, (unsigned)initial, SHIFT_LIMIT);
    if (used > count)
        return fault_set(f, E_RUN_CHAIN, c, "loop %lld has %lld initial shifts, the table holds %lld", (long long)initial, (long long)used,
                         (long long)count);
    for (int64_t i = used; i < count; i++)
        if (command_entry(c, (unsigned)i, SHIFT_INITIAL) != 0)
            return fault_set(f, E_RUN_CHAIN, c, "initial_shift of entry %lld is used by no index", (long long)i);
    return true;
}

bool shift_plan(shift *k, const target *t, const command *c, dtype type, int64_t flits, int64_t steps, int64_t packets, fault *f)
{
    *k = (shift){.command = c,
                 .bits = dtype_row_of(type)->bits,
                 .flit_bytes = t->flit_bytes,
                 .flits = flits,
                 .packet_bytes = t->mac_width_bytes,
                 .rows = command_get(c, SHIFT_TRANSPOSE_ROWS),
                 .stride = command_get(c, SHIFT_STRIDE),
                 .limit = 1,
                 .initial_div = 1,
                 .initial_mod = 1};
    if (flits * t->flit_bytes > SHIFT_MAX_BYTES)
        return fault_set(f, E_RUN_CHAIN, c, "%lld flits do not fit the flit buffer", (long long)flits);
    if (!ranges_legal(t, c, type, f) || !dims_legal(c, f))
        return false;
    int64_t pop = command_get(c, SHIFT_POP_DIM), dim = command_get(c, SHIFT_DIM), initial = command_get(c, SHIFT_INITIAL_DIM);
    if (iterations(c, 0, pop) != steps || iterations(c, pop, c->entry_count) != packets)
        return fault_set(f, E_RUN_CHAIN, c, "the loops do not make %lld steps for each of %lld packets", (long long)steps,
                         (long long)packets);
    k->repeat = dim == NO_DIM ? steps : iterations(c, 0, dim);
    k->windows = steps / k->repeat;
    if (dim != NO_DIM)
        k->limit = command_entry(c, (unsigned)dim, SHIFT_LIMIT);
    if (initial != NO_DIM) {
        k->initial_div = iterations(c, pop, initial);
        k->initial_mod = command_entry(c, (unsigned)initial, SHIFT_LIMIT);
    }
    for (unsigned i = 0; i < c->entry_count; i++)
        k->initial[i] = command_entry(c, i, SHIFT_INITIAL);
    return true;
}

/* ---- bytes ---- */

static unsigned nibble_at(const unsigned char *from, int64_t i)
{
    return from[i / 2] >> i % 2 * 4 & 15;
}

/* to[column][row] = from[row][column] of one flit. */
static void flit_turn(const shift *k, const unsigned char *from, unsigned char *to)
{
    int64_t elements = k->flit_bytes * 8 / k->bits, columns = elements / k->rows, bytes = k->bits / 8;
    memset(to, 0, (size_t)k->flit_bytes);
    for (int64_t i = 0; i < elements; i++) {
        int64_t at = i % columns * k->rows + i / columns;
        if (bytes > 0)
            memcpy(to + at * bytes, from + i * bytes, (size_t)bytes);
        else
            to[at / 2] |= (unsigned char)(nibble_at(from, i) << at % 2 * 4);
    }
}

void shift_pop(const shift *k, const unsigned char *flits, unsigned char source[SHIFT_MAX_BYTES])
{
    if (k->rows == 1)
        memcpy(source, flits, (size_t)(k->flits * k->flit_bytes));
    for (int64_t i = 0; i < k->flits && k->rows > 1; i++)
        flit_turn(k, flits + i * k->flit_bytes, source + i * k->flit_bytes);
}

static unsigned byte_at(const unsigned char *from, int64_t count, int64_t i)
{
    return i >= 0 && i < count ? from[i] : 0;
}

void shift_window(const shift *k, const unsigned char *source, int64_t pop, int64_t window, unsigned char *packet)
{
    int64_t offset = k->initial[pop / k->initial_div % k->initial_mod] + window % k->limit * k->stride;
    int64_t first = offset * k->bits, count = k->flits * k->flit_bytes;
    unsigned nibble = (unsigned)(first & 4);
    first = (first - nibble) / 8;
    for (int64_t i = 0; i < k->packet_bytes; i++) {
        unsigned pair = byte_at(source, count, first + i) | byte_at(source, count, first + i + 1) << 8;
        packet[i] = (unsigned char)(pair >> nibble);
    }
}
