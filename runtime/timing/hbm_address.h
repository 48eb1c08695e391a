/* Where a byte of a chip's HBM lies: its channel, bank and row.
 *
 * The one idea: channel and bank are sums of address bits modulo 2, so that what a set of bits reaches can be told from each alone. */
#ifndef VISA_RUNTIME_TIMING_HBM_ADDRESS_H
#define VISA_RUNTIME_TIMING_HBM_ADDRESS_H

#include <stdint.h>

enum { HBM_CHANNEL_BITS = 4, HBM_BLOCK_BITS = 8, HBM_ROW_BIT = 21, HBM_FAR_BIT = 34, HBM_BANKS = 64 };

/* Bytes that are no further apart are in one row, if they are in one bank of a channel: bits 17 to 20 are of the bank, and those above them
 * of the row. */
enum { HBM_ONE_ROW_BYTES = 15 << 17 };

/* HBM geometry: bits 9..12 of the address, with those of four higher groups; bit 8 is the stack. */
static inline unsigned hbm_channel_of(int64_t address)
{
    uint64_t groups = (uint64_t)address >> (HBM_BLOCK_BITS + 1);
    uint64_t channel = groups ^ groups >> HBM_CHANNEL_BITS ^ groups >> 2 * HBM_CHANNEL_BITS ^ groups >> 3 * HBM_CHANNEL_BITS ^
                       groups >> 4 * HBM_CHANNEL_BITS;
    return (unsigned)(channel & 15) << 1 | ((unsigned)(address >> HBM_BLOCK_BITS) & 1);
}

/* Bank group (bits 13, 19), bank (17, 18), slice (20, 34). */
static inline unsigned hbm_bank_of(int64_t a)
{
    return (unsigned)((a >> 13 & 1) | (a >> 19 & 1) << 1 | (a >> 17 & 3) << 2 | (a >> 20 & 1) << 4 | (a >> HBM_FAR_BIT & 1) << 5);
}

#endif
