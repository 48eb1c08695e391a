/* Windows of an image that are folded, with no filters, as a question: Y[y, x, c] = max(r, s) I[y*2 + r, x*2 + s, c].
 *
 * The one idea: what lies along no window is one axis outside of all windows and one inside; the places of a window, whichever way it goes,
 * are one axis, too, which a pass of the Vector Engine folds as it folds any. */
#ifndef VISA_LIBVISA_TUNE_POOL_QUESTION_H
#define VISA_LIBVISA_TUNE_POOL_QUESTION_H

#include "libvisa/tune/question.h"

/* Axes of the result, outermost first: images, rows, places of a row, channels. */
enum { POOL_OUTER, POOL_ROWS, POOL_PLACES, POOL_INNER, POOL_DIMS };

typedef struct pool_dim {
    const char *name;               /* the kernel's axis: "Y", "N_B" of several; NULL: of one position, or there is none */
    const char *parts;              /* the question's axes: "N, B" */
    int64_t size;                   /* results */
    int64_t taps, stride, dilation; /* of a window; 1, 1, 1: it has none */
    const char *tap_axis;           /* its places alone: "S" */
} pool_dim;

/* A tensor that results meet: `bias[c]`, `R[y, x, c]`. */
typedef struct pool_extra {
    const char *port;
    dtype type;
    bool has[POOL_DIMS];
} pool_extra;

/* The places of a window at once, or those along one axis after those along the other. */
typedef enum pool_order { POOL_AT_ONCE, POOL_PLACES_FIRST, POOL_ROWS_FIRST, POOL_ORDERS } pool_order;

typedef struct pool_question {
    const char *text;
    pool_dim dims[POOL_DIMS];
    const char *taps;    /* the axis of a window's places: "R_S" */
    int64_t tap_count;   /* places of a window */
    tune_fold fold;      /* TUNE_FOLD_MEAN is a sum and what follows it */
    tune_question image; /* its windows, for what the image lacks (border.h); operand TUNE_LEFT */
    const char *result;
    dtype from, meets, into;                                         /* meets: in which it is worked on */
    tune_operation operations[POOL_ORDERS][TUNE_OPERATIONS_MAX + 3]; /* folds are among them */
    size_t operation_count[POOL_ORDERS];
    tune_epilogue passes[POOL_ORDERS];
    bool has_order[POOL_ORDERS];
    pool_extra extras[TUNE_EXTRAS_MAX];
    size_t extra_count;
    int64_t most_slices; /* of a cluster that work; 0: all */
} pool_question;

/* Is it one: is what a window goes over folded, and no operand of a contraction? */
bool pool_is_asked(const tune_expression *e);

/* False: diagnosed. Lives in the list's arena. */
bool pool_read(const tune_expression *e, const visa_tune_options *o, diag_list *diags, pool_question *out);

/* Elements of a place that the image has in HBM: whole words of 8 bytes. */
int64_t pool_channels_in_hbm(const pool_question *q);

/* Has HBM to hold the image once more, as windows take it? Not where what they leave out is behind them. */
bool pool_is_rewritten(const pool_question *q);

/* What a place around the image holds, so that it changes nothing, as memset has it, and what that is called; NULL: memset fills no memory
 * with it. */
const char *pool_border_value(const pool_question *q);
const char *pool_border_name(const pool_question *q);

/* Places of the image along an axis, for so many results. */
int64_t pool_places(const pool_dim *d, int64_t results);

#endif
