/* The Reducer's spatial arithmetic: lane products and the tree over neighbouring lanes.
 *
 * The one idea: everything is f32. Products of i4, i8, f8 and bf16 values are exact in it, and so are the
 * sums of one packet of integer products (at most 2^21), so one set of kernels serves all types; integers go
 * back to i32 afterwards. Weights stand as [lane][Row], so that the additions of a tree node are one vector
 * over the Rows; one or two Rows are too few for that and stand as [Row][lane].
 *
 * A masked lane contributes nothing: it enters the tree as -0.0, which leaves every other value, +0.0
 * included, as it is. */
#ifndef VISA_RUNTIME_ENGINE_TREE_H
#define VISA_RUNTIME_ENGINE_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tree_shape {
    int64_t rows;
    int64_t columns; /* that are computed, from lane 0 on */
    unsigned depth;  /* levels: 2^depth lanes make a column */
    int64_t period;  /* lanes after which the weights repeat: a power of two, at least 8 */
} tree_shape;

/* out[column * rows + row]. `weights` holds period x rows floats; `live` (a byte per lane) is NULL when all
 * lanes count; `scratch` has room for 2 x lanes x rows floats. */
typedef void tree_kernel(const tree_shape *s, const float *lanes, const float *weights, const unsigned char *live, float *out,
                         float *scratch);

/* Do the weights of so many Rows stand as [Row][lane]? */
static inline bool tree_rows_apart(int64_t rows)
{
    return rows <= 2;
}

/* The fastest kernel for this shape on this processor; all give the same bits. */
tree_kernel *tree_kernel_for(const tree_shape *s);
/* The one for any processor. */
tree_kernel *tree_kernel_portable(const tree_shape *s);

#endif
