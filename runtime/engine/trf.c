#include "runtime/engine/trf.h"

/* Bytes of one row number: both bank columns. */
static int64_t line_bytes(const target *t)
{
    return t->trf_bank_columns * t->trf_row_bytes;
}

/* Row numbers of one bank that the mode may use. */
static int64_t bank_rows(const target *t, trf_address mode)
{
    return mode == TRF_FULL ? t->trf_bank_rows : t->trf_bank_rows / 2;
}

int64_t trf_address_of(const target *t, int64_t row, int64_t rows, trf_address mode, int64_t byte)
{
    int64_t line = byte / line_bytes(t);
    int64_t bank_row = row * (t->rows / rows) + line / bank_rows(t, mode);
    int64_t row_in_bank = line % bank_rows(t, mode) + (mode == TRF_SECOND_HALF ? t->trf_bank_rows / 2 : 0);
    return (bank_row * t->trf_bank_rows + row_in_bank) * line_bytes(t) + byte % line_bytes(t);
}

int64_t trf_partition_bytes(const target *t, int64_t rows, trf_address mode)
{
    return target_trf_capacity_bytes(t, mode) / rows;
}

int64_t trf_contiguous_bytes(const target *t, trf_address mode, int64_t byte)
{
    int64_t bank_bytes = bank_rows(t, mode) * line_bytes(t);
    return mode == TRF_FULL ? t->trf_bytes - byte : bank_bytes - byte % bank_bytes;
}

int64_t trf_apart_bytes(const target *t, int64_t rows)
{
    return t->rows / rows * t->trf_bank_rows * line_bytes(t);
}

bool trf_rows_legal(const target *t, int64_t rows)
{
    return rows >= 1 && rows <= t->rows && (rows & (rows - 1)) == 0 && t->rows % rows == 0;
}

bool trf_widens(dtype stream, int64_t reg_type)
{
    return reg_type == 1 && dtype_row_of(stream)->staged == DTYPE_I4;
}

dtype trf_stored(dtype stream, int64_t reg_type)
{
    return trf_widens(stream, reg_type) ? DTYPE_I8 : stream;
}
