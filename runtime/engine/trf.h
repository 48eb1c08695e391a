/* The Tensor Register File's address bits.
 *
 * The one idea: a Row sees its partition as bytes 0, 1, 2 ...; one function turns (Row, byte) into the place
 * in the register file, and store, read and ports all go through it ("TRF Memory Layout"). */
#ifndef VISA_RUNTIME_ENGINE_TRF_H
#define VISA_RUNTIME_ENGINE_TRF_H

#include "target/target.h"

/* The logical-byte location of `byte` of Row `row` when `rows` Rows share the file: bank row, row in bank,
 * bank column and the byte inside the 32-byte row, most significant first. With fewer Rows than bank rows the
 * freed bank-row bits extend the row number. `byte` must be below trf_partition_bytes. */
int64_t trf_address_of(const target *t, int64_t row, int64_t rows, trf_address mode, int64_t byte);

/* Bytes that one of `rows` Rows has. */
int64_t trf_partition_bytes(const target *t, int64_t rows, trf_address mode);

/* Bytes from `byte` on that stay together in the file, as far as the Row's partition goes: in whole banks one follows the other. */
int64_t trf_contiguous_bytes(const target *t, trf_address mode, int64_t byte);

/* From the bytes of one of `rows` Rows to the same ones of the next. */
int64_t trf_apart_bytes(const target *t, int64_t rows);

/* Does the store with this reg_types code keep the 4-bit elements of a stream in 8 bits ("TRF Memory Layout": 1, i4 to i8)? */
bool trf_widens(dtype stream, int64_t reg_type);
/* The type that they have in the file. */
dtype trf_stored(dtype stream, int64_t reg_type);

/* Is this a Row count that the file can be split for: 1, 2, 4, 8? */
bool trf_rows_legal(const target *t, int64_t rows);

#endif
