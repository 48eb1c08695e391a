/* Two vectors of packets at once: a node of the tree keeps as many for each of its levels. */
#define BLOCK_VECTOR 8
#define BLOCK_WIDE 2
#include <immintrin.h>

#include "runtime/fast/block_f32.h"

BLOCK_SET(block_avx2_float, float, column_float, CPU_AVX2, true, BLOCK_F32)
