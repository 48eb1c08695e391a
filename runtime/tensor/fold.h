/* Sets of numbers, as short as a reader wants them: "5", "0..7", "1, 3 .. 15", "3, 4, 9 and 12 more".
 *
 * The one idea: whoever looks for a mistake looks for its pattern, so values are sorted, repeated ones dropped, and an
 * arithmetic sequence is named by its ends. */
#ifndef VISA_RUNTIME_TENSOR_FOLD_H
#define VISA_RUNTIME_TENSOR_FOLD_H

#include "support/arena.h"

/* Sorts `values`. all: how many there could be; when all of 0 .. all - 1 are there, "all 8"; 0: not known. */
const char *fold_text(int64_t *values, size_t count, int64_t all, arena *a);

#endif
