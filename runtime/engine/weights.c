#include "runtime/engine/weights.h"

#include <string.h>

#include "runtime/engine/tree.h"
#include "runtime/engine/trf.h"
#include "runtime/tensor/numeric.h"
#include "support/integer.h"

enum { LEAST_PERIOD = 8 /* lanes: a node of the tree kernels */ };

/* The hardware numbers entries from the inside; a walk goes from the outside. */
static walk table_read(const command *c)
{
    walk w = {.count = c->entry_count, .base = command_get(c, TRF_READ_BASE)};
    for (unsigned i = 0; i < w.count; i++) {
        w.size[w.count - 1 - i] = command_entry(c, i, TRF_READ_ENTRY_SIZE);
        w.stride[w.count - 1 - i] = command_entry(c, i, TRF_READ_ENTRY_STRIDE);
    }
    return w;
}

/* A read is one access of a bank column, or of both at once: its address is a multiple of its size. */
static bool aligned(const weights *w, fault *f)
{
    if (w->table.base % w->read_bytes)
        return fault_set(f, E_RUN_ACCESS, w->command, "base %lld is not a multiple of reg_read_size %lld bytes", (long long)w->table.base,
                         (long long)w->read_bytes);
    for (unsigned i = 0; i < w->table.count; i++)
        if (w->table.size[i] > 1 && w->table.stride[i] % w->read_bytes)
            return fault_set(f, E_RUN_ACCESS, w->command, "entry %u: stride %lld is not a multiple of reg_read_size %lld bytes",
                             w->table.count - 1 - i, (long long)w->table.stride[i], (long long)w->read_bytes);
    return true;
}

static bool types_legal(const weights *w, const command *c, fault *f)
{
    const dtype_row *type = dtype_row_of(w->operand);
    const dtype_row *named = dtype_row_of((dtype)command_get(c, TRF_READ_DTYPE));
    bool widens = trf_widens((dtype)command_get(c, TRF_READ_DTYPE), command_get(c, TRF_READ_REG_TYPE));
    if (!w->decode || (!widens && command_get(c, TRF_READ_REG_TYPE) != named->trf_reg_type))
        return fault_set(f, E_RUN_CHAIN, c, "reg_type %lld is not that of %s", (long long)command_get(c, TRF_READ_REG_TYPE), named->name);
    if (w->read_elements == 0)
        return fault_set(f, E_RUN_CHAIN, c, "reg_read_size of %lld bytes is smaller than an element of %u bits", (long long)w->read_bytes,
                         type->bits);
    if ((w->read_bytes & (w->read_bytes - 1)) != 0 || w->read_bytes > w->target->mac_width_bytes)
        return fault_set(f, E_RUN_CHAIN, c, "reg_read_size of %lld bytes is not a power of two up to %lld", (long long)w->read_bytes,
                         (long long)w->target->mac_width_bytes);
    if (!trf_rows_legal(w->target, w->rows))
        return fault_set(f, E_RUN_CHAIN, c, "the register file has no %lld Rows", (long long)w->rows);
    return true;
}

/* What has to be decoded: the walk's range, as far as it lies in the partition. */
static void range_set(weights *w)
{
    walk_address low, high, last = w->partition_bytes - w->read_bytes;
    walk_bounds(&w->table, &low, &high);
    w->inside = low >= 0 && high <= last;
    low = low < 0 ? 0 : low;
    high = high > last ? last : high;
    w->low_byte = low <= high ? (int64_t)low : 0;
    w->reads = low <= high ? (int64_t)(high - low) / w->read_bytes + 1 : 0;
}

bool weights_plan(weights *w, const target *t, const command *c, fault *f)
{
    dtype operand = trf_stored((dtype)command_get(c, TRF_READ_DTYPE), command_get(c, TRF_READ_REG_TYPE));
    *w = (weights){.command = c,
                   .target = t,
                   .mode = (trf_address)command_get(c, TRF_READ_ADDRESS),
                   .rows = command_get(c, TRF_READ_ROWS),
                   .read_bytes = command_get(c, TRF_READ_SIZE),
                   .table = table_read(c),
                   .decode = convert_operand(operand),
                   .operand = operand,
                   .signs = dtype_is_staging(operand)};
    w->read_elements = w->read_bytes * 8 / dtype_row_of(operand)->bits;
    if (!types_legal(w, c, f))
        return false;
    w->period = w->read_elements < LEAST_PERIOD ? LEAST_PERIOD : w->read_elements;
    w->read_shift = (unsigned)__builtin_ctzll((unsigned long long)w->read_bytes);
    w->read_floats = w->period * w->rows;
    w->partition_bytes = trf_partition_bytes(t, w->rows, w->mode);
    w->walk = w->table;
    walk_merge(&w->walk);
    if (!walk_positions(&w->table, &w->steps))
        return fault_set(f, E_RUN_CHAIN, c, "the product of the entry sizes overflows");
    range_set(w);
    return aligned(w, f);
}

/* Where weights are few, the rest of the file is never touched. Pieces that lie in several pools are made one. */
const unsigned char *weights_file(const weights *w, memory *trf)
{
    const unsigned char *file = NULL;
    int64_t end = w->low_byte + w->reads * w->read_bytes;
    for (int64_t row = 0; row < w->rows; row++)
        for (int64_t byte = w->low_byte, part; byte < end; byte += part) {
            int64_t at = trf_address_of(w->target, row, w->rows, w->mode, byte);
            part = smaller(end - byte, trf_contiguous_bytes(w->target, w->mode, byte));
            const unsigned char *found = memory_look(trf, at, part);
            if (!found)
                return NULL;
            if (file && found != file + at)
                return memory_look(trf, 0, w->target->trf_bytes);
            file = found - at;
        }
    return file ? file : memory_look(trf, 0, 1);
}

bool weights_outside(const weights *w, int64_t step, int64_t address, fault *f)
{
    int64_t counters[WALK_MAX_LOOPS];
    char text[160];
    walk_counters(&w->table, step, counters);
    walk_counters_text(&w->table, counters, text, sizeof text);
    return fault_set(f, E_RUN_ACCESS, w->command,
                     "reads outside the Row's partition: entry counters, outermost first, %s, address %lld, size %lld "
                     "bytes; %s with %lld Rows has %lld bytes per Row",
                     text, (long long)address, (long long)w->read_bytes, trf_address_name(w->mode), (long long)w->rows,
                     (long long)w->partition_bytes);
}

size_t weights_float_count(const weights *w)
{
    return (size_t)(w->reads * w->read_floats);
}

enum { PIECE_BYTES = 512 };

/* Scatters a piece's elements to one Row's place of every lane, repeating short reads. */
static void scatter(const weights *w, const float *piece, int64_t first, int64_t elements, int64_t row, float *to)
{
    bool apart = tree_rows_apart(w->rows);
    for (int64_t i = 0; i < elements; i++) {
        int64_t read = (first + i) / w->read_elements, lane = (first + i) % w->read_elements;
        for (; lane < w->period; lane += w->read_elements)
            to[apart ? (read * w->rows + row) * w->period + lane : (read * w->period + lane) * w->rows + row] = piece[i];
    }
}

/* Low bits of elements and, where they are negative, ones in the places of their signs: the low bits without a sign, less 2^bits. */
static void decode_differences(const weights *w, float *to, const unsigned char *from, const unsigned char *signs, int64_t elements)
{
    bool nibbles = dtype_row_of(w->operand)->bits == 4;
    for (int64_t i = 0; i < elements; i++) {
        int low = nibbles ? (int)numeric_i4_bits(from, i) : from[i], sign = nibbles ? (int)numeric_i4_bits(signs, i) : signs[i];
        to[i] = (float)(low - (sign ? (nibbles ? 16 : 256) : 0));
    }
}

void weights_decode(const weights *w, const unsigned char *file, const unsigned char *signs, float *to)
{
    float piece[PIECE_BYTES * 2];
    int64_t bits = dtype_row_of(w->operand)->bits, end = w->low_byte + w->reads * w->read_bytes;
    for (int64_t row = 0; row < w->rows; row++)
        for (int64_t byte = w->low_byte, part; byte < end; byte += part) {
            int64_t together = trf_contiguous_bytes(w->target, w->mode, byte);
            part = end - byte < PIECE_BYTES ? end - byte : PIECE_BYTES;
            part = together < part ? together : part;
            int64_t elements = part * 8 / bits;
            int64_t at = trf_address_of(w->target, row, w->rows, w->mode, byte);
            if (w->signs)
                decode_differences(w, piece, file + at, signs + at, elements);
            else
                w->decode(piece, file + at, elements);
            scatter(w, piece, (byte - w->low_byte) * 8 / bits, elements, row, to);
        }
}

void weights_packet(const weights *w, const unsigned char *file, int64_t row, int64_t address, unsigned char *to)
{
    const unsigned char *from = file + trf_address_of(w->target, row, w->rows, w->mode, address);
    for (int64_t i = 0; i < w->target->mac_width_bytes; i += w->read_bytes)
        memcpy(to + i, from, (size_t)w->read_bytes);
}
