/* What is asked of `visac tune`: a contraction as text, `C[m,n] = sum(k) A[m,k] * B[n,k]`, with what is done to each sum, sizes and types.
 *
 * The one idea: what an axis is follows from where it stands. In all three tensors it is a batch, in the result and one operand it is
 * kept, in both operands it is summed; anything else is no contraction. The operand that has the innermost axis of the result becomes
 * the weights, whose axis lies side by side in what leaves the Reducer; the other one streams past them. */
#ifndef VISA_LIBVISA_TUNE_QUESTION_H
#define VISA_LIBVISA_TUNE_QUESTION_H

#include "include/visa.h"
#include "libvisa/tune/epilogue.h"
#include "support/diag.h"
#include "target/target.h"

/* TUNE_ROW: kept, of the operand that streams; TUNE_COLUMN: kept, of the weights. */
typedef enum tune_role { TUNE_BATCH, TUNE_ROW, TUNE_COLUMN, TUNE_SUM, TUNE_ROLES } tune_role;

enum { TUNE_AXES_MAX = 16, TUNE_TEXT_MAX = 4096, TUNE_EXTRAS_MAX = 4 };

typedef struct tune_axis {
    const char *name;  /* as an axis of a kernel: upper case */
    const char *asked; /* as the question spells it */
    int64_t size;      /* elements */
    tune_role role;
    src_range range;    /* of its first mention */
    unsigned stands_in; /* a bit by tensor */
} tune_axis;

typedef enum tune_place { TUNE_LEFT, TUNE_RIGHT, TUNE_OUT, TUNE_PLACES } tune_place;

typedef struct tune_tensor {
    const char *name; /* lower case */
    const char *port; /* that, or another one where a kernel has it otherwise */
    size_t axes[TUNE_AXES_MAX], count;
    src_range range;
} tune_tensor;

/* `y*2 + r`: the place of a kept axis and a summed one in an image. */
typedef struct tune_window {
    size_t kept, summed; /* axes */
    int64_t stride, dilation;
} tune_window;
enum { TUNE_WINDOWS = 2 };

/* An operand of what is done to the sums: `bias[n]: bf16`. */
typedef struct tune_extra {
    tune_tensor tensor;
    const char *asked_type; /* NULL: that of the values that it meets */
    dtype type;
    bool has[TUNE_SUM]; /* axes of this role: all of them */
} tune_extra;

typedef struct tune_question {
    const char *text;
    tune_axis axes[TUNE_AXES_MAX];
    size_t axis_count;
    tune_tensor tensors[TUNE_PLACES];
    tune_place stream, weights;        /* which operand is what */
    bool turned[TUNE_PLACES];          /* lies [batch, summed, kept] in HBM: what is kept is innermost, not the sum */
    int64_t size[TUNE_ROLES];          /* of all axes of a role together; 1 without one */
    const char *axis_text[TUNE_ROLES]; /* the kernel's axis: "M", "H_W" for several, NULL for none */
    dtype type, out_type, meets;       /* meets: in which the sums are worked on */
    tune_window windows[TUNE_WINDOWS]; /* of a convolution, rows and places in them */
    size_t window_count;               /* 0 or TUNE_WINDOWS */
    size_t window_channel;             /* axis */
    tune_extra extras[TUNE_EXTRAS_MAX];
    size_t extra_count;
    tune_operation operations[TUNE_OPERATIONS_MAX + 1]; /* [0] adds the sums up to here, where a sum has parts */
    size_t operation_count;                             /* without that one */
    tune_epilogue whole, last_part;                     /* of whole sums, and of the last part of one */
} tune_question;

/* Places of an image along a window. */
int64_t tune_window_places(const tune_question *q, size_t window);

/* What is done to sums in so many parts. */
const tune_epilogue *tune_epilogue_of(const tune_question *q, int64_t parts);

/* The kept axis of an operand. */
tune_role tune_kept_of(const tune_question *q, tune_place operand);

/* Reads file `file`, whose text it is. False: diagnosed. Lives in the list's arena. */
bool tune_question_read(const char *text, int file, const visa_tune_options *options, diag_list *diags, tune_question *out);

#endif
