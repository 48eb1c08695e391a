/* A question's text as a tree, with its axes, tensors and sizes; what kind of kernel answers it is decided over that tree.
 *
 * The one idea: the text says what is computed, and nothing of how. The same tree is a contraction with operations on its sums
 * (question.h), or values that go through the Vector Engine (flow.h). */
#ifndef VISA_LIBVISA_TUNE_EXPRESSION_H
#define VISA_LIBVISA_TUNE_EXPRESSION_H

#include "include/visa.h"
#include "libvisa/tune/epilogue.h"
#include "support/diag.h"

enum { TUNE_AXES_MAX = 16, TUNE_TEXT_MAX = 4096, TUNE_TENSORS_MAX = 12, TUNE_NODES_MAX = 512, TUNE_SCALES_MAX = 2 };

/* TUNE_ROW: kept, of the operand that streams; TUNE_COLUMN: kept, of the weights. */
typedef enum tune_role { TUNE_BATCH, TUNE_ROW, TUNE_COLUMN, TUNE_SUM, TUNE_ROLES } tune_role;

typedef struct tune_axis {
    const char *name;  /* as an axis of a kernel: upper case */
    const char *asked; /* as the question spells it */
    int64_t size;      /* elements */
    tune_role role;    /* in a contraction */
    src_range range;   /* of its first mention */
} tune_axis;

typedef struct tune_tensor {
    const char *asked;      /* as the question spells it */
    const char *name;       /* lower case; of a second one that is called so, or lies otherwise, with a number */
    const char *port;       /* that, or another one where a kernel has it otherwise */
    const char *asked_type; /* after a colon; NULL: none */
    size_t axes[TUNE_AXES_MAX], count;
    src_range range;
    bool is_free;       /* how it lies in HBM is for the kernel to say */
    size_t row_axes;    /* so many of its innermost axes are rows that end with padding in HBM, */
    int64_t row_in_hbm; /* elements from one to the next; 0: they follow each other */
    bool has_zero;      /* a zero point is subtracted from its elements before they are multiplied (scaled.h): */
    size_t zero;        /* a tensor's, or, 0, */
    double zero_number; /* this number */
} tune_tensor;

/* `h = y*2 + r - 1`: the place of a kept axis and a summed one in an image. */
typedef struct tune_window {
    size_t tensor;
    size_t kept, summed; /* axes */
    int64_t stride, dilation;
    int64_t before;   /* places of zeros in front of the image that windows take and it has not; negative: places of it that none takes */
    tune_axis own;    /* the image's own axis, H; not asked: its size follows from the windows */
    const char *wide; /* the axis of the image with these zeros, where a kernel makes them */
} tune_window;
enum { TUNE_WINDOWS = 2 };

typedef enum tune_node_kind {
    TUNE_NODE_NUMBER,
    TUNE_NODE_TENSOR,
    TUNE_NODE_PRODUCT,  /* sum(..) of two tensors: a contraction */
    TUNE_NODE_BINARY,   /* TUNE_ADD .. TUNE_SMALLER */
    TUNE_NODE_FUNCTION, /* of one value */
    TUNE_NODE_REDUCTION /* over axes: sum, largest, smallest, mean, softmax */
} tune_node_kind;

typedef enum tune_fold { TUNE_FOLD_SUM, TUNE_FOLD_LARGEST, TUNE_FOLD_SMALLEST, TUNE_FOLD_MEAN, TUNE_FOLD_SOFTMAX } tune_fold;

typedef struct tune_node {
    tune_node_kind kind;
    src_range range;
    double number;
    size_t tensor;      /* in tune_expression.tensors */
    tune_operator what; /* of a binary operation or a function */
    tune_fold fold;
    unsigned over; /* axes that are summed or reduced, a bit each */
    const struct tune_node *left, *right;
} tune_node;

typedef struct tune_expression {
    const char *text;
    int file;
    tune_axis axes[TUNE_AXES_MAX];
    size_t axis_count;
    tune_tensor tensors[TUNE_TENSORS_MAX]; /* [0]: the result */
    size_t tensor_count;
    tune_window windows[TUNE_WINDOWS];
    size_t window_count;
    const tune_node *root;
    size_t node_count;
    size_t scales[TUNE_SCALES_MAX], scale_count; /* tensors that sums of groups meet (scaled.h) */
    unsigned grouped;                            /* and the axes that number the groups, a bit each */
    unsigned absent, implied; /* axes of one position, a bit each: ports have them and values do not; values have them and ports do not */
} tune_expression;

extern const int64_t TUNE_MOST_PRODUCTS; /* multiplications of a question, so that sums of cycles stay in 64 bits */

/* Reads file `file`, whose text it is, and the sizes of its axes. False: diagnosed. Lives in the list's arena. */
bool tune_expression_read(const char *text, int file, const visa_tune_options *options, diag_list *diags, tune_expression *out);

/* As what flows through the Vector Engine: axes of one position are absent, and where a tensor has no others all have one that is implied.
 * Lives in the arena. */
tune_expression tune_expression_flowing(const tune_expression *e, arena *a);

/* Axes of a tensor, a bit each. */
unsigned tune_axes_of(const tune_expression *e, size_t tensor);

/* Places that the windows take, of the image and of zeros around it; of too many one more than TUNE_MOST_PRODUCTS. */
int64_t tune_places_of(const tune_axis *axes, const tune_window *w);

/* Contractions in a tree, and reductions. */
size_t tune_count_products(const tune_node *n);
size_t tune_count_reductions(const tune_node *n);

/* The same computation? */
bool tune_same_node(const tune_node *a, const tune_node *b);

/* Has it a reciprocal in f32, so that neither rounds? */
bool tune_is_power_of_two(double x);

/* Is one of the axes called so? */
bool tune_is_axis(const tune_axis *axes, size_t count, const char *name);

/* The name, with as many _ after it as no axis has. */
const char *tune_unused_name(const tune_axis *axes, size_t count, const char *name, arena *a);

/* All of a question. */
src_range tune_whole_range(int file, const char *text);

/* "this is no question", with the form that one has; false. */
bool tune_refuse_question(const char *text, diag_list *diags, src_range range, const char *what);
bool tune_refuse_window(diag_list *diags, src_range range, const char *what);

#endif
