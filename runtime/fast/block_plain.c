/* Blocks in C for any processor. A packet's sum of integer products is below 2^24, so that floats hold it. */
#define BLOCK_VECTOR 8
#define BLOCK_WIDE 2
#include "runtime/fast/block_f32.h"

INLINE void column_int(const block_run *r, int64_t number, int group, int wide, vector_w *sum)
{
    column_any(r, number, group, wide, false, sum);
}

BLOCK_SET(block_plain_float, float, column_float, CPU_PLAIN, true, BLOCK_F32)
BLOCK_SET(block_plain_int, int, column_int, CPU_PLAIN, false, BLOCK_F32)
