/* A contraction that is asked of `visac tune`, `C[m,n] = sum(k) A[m,k] * B[n,k]`, with what is done to each sum, sizes and types.
 *
 * The one idea: what an axis is follows from where it stands. In all three tensors it is a batch, in the result and one operand it is
 * kept, in both operands it is summed; anything else is no contraction. The operand that has the innermost axis of the result becomes
 * the weights, whose axis lies side by side in what leaves the Reducer; the other one streams past them. */
#ifndef VISA_LIBVISA_TUNE_QUESTION_H
#define VISA_LIBVISA_TUNE_QUESTION_H

#include "libvisa/tune/chips.h"
#include "libvisa/tune/expression.h"
#include "runtime/timing/timing_preset.h"
#include "target/target.h"

enum { TUNE_EXTRAS_MAX = 4 };

typedef enum tune_place { TUNE_LEFT, TUNE_RIGHT, TUNE_OUT, TUNE_PLACES } tune_place;

/* An operand of what is done to the sums: `bias[n]: bf16`. */
typedef struct tune_extra {
    tune_tensor tensor;
    const char *asked_type; /* NULL: that of the values that it meets */
    dtype type;
    bool has[TUNE_SUM];   /* axes of this role: all of them. Axes of one position count where it has no kept axis else */
    bool names[TUNE_SUM]; /* the axis of this role, of one position, in the question */
    int64_t groups;       /* of the sum, for each of which it has elements, and whose sums meet them; 1: all of it */
    bool groups_first;    /* these stand outside of what is kept */
    tune_place zero_of;   /* TUNE_OUT, or it is the zero point of this operand, which meets its elements (widened.h) */
} tune_extra;

typedef struct tune_question {
    const char *text;
    tune_axis axes[TUNE_AXES_MAX];
    size_t axis_count, made_axes; /* after those: of one position, which have no name (windows.h) */
    tune_tensor tensors[TUNE_PLACES];
    tune_place stream, weights;          /* which operand is what */
    bool turned[TUNE_PLACES];            /* lies [batch, summed, kept] in HBM: what is kept is innermost, not the sum */
    int64_t size[TUNE_ROLES];            /* of all axes of a role together; 1 without one */
    int64_t group;                       /* elements of the sum whose sum meets scales, or has a zero point (scaled.h); 0: all of it */
    bool folds_groups;                   /* sums of groups meet scales, before these are added */
    const char *group_axis, *added_axis; /* the kernel's axes of that sum: of groups, and of what each of them adds */
    tune_share share[TUNE_ROLES];        /* of chips; sizes and axes are those of one */
    const char *axis_text[TUNE_ROLES];   /* the kernel's axis: "M", "H_W" for several, NULL for none */
    bool is_implied[TUNE_ROLES];         /* the question has none: it is of one position */
    dtype stored[TUNE_PLACES];           /* operands in HBM and DM: `type`, or f32 that is cast where it is fetched */
    dtype type, out_type, meets;         /* meets: in which the sums are worked on */
    int64_t most_slices;                 /* of a cluster that work; 0: all */
    timing_preset timing;                /* whose cycles are to be few */
    tune_window windows[TUNE_WINDOWS];   /* of a convolution, rows and places in them */
    size_t window_count;                 /* 0 or TUNE_WINDOWS */
    size_t window_channel;               /* axis */
    int64_t groups;                      /* of channels and columns of their own: an axis of all three tensors; 1: none */
    bool is_grouped;                     /* there is that axis, of which a chip may have one position; */
    size_t window_group;                 /* which it is */
    bool depthwise;                      /* each channel has a filter of its own: channels are the columns, and nothing of them is summed */
    tune_extra extras[TUNE_EXTRAS_MAX];
    size_t extra_count;
    tune_operation operations[TUNE_OPERATIONS_MAX + 1]; /* [0] adds the sums up to here, where a sum has parts */
    size_t operation_count;                             /* without that one */
    tune_epilogue whole, last_part;                     /* of whole sums, and of the last part of one; */
    tune_epilogue waiting;                              /* of whole sums that wait in DM for what meets them: the first pass is none */
} tune_question;

/* Places of an image along a window, and of them those that a window takes: a stride may pass some. */
int64_t tune_window_places(const tune_question *q, size_t window);
int64_t tune_window_used(const tune_question *q, size_t window);

/* A window of one place, which is none: an axis of the image. */
tune_window tune_plain_window(const tune_question *q, size_t tensor, size_t kept, size_t summed);

/* Of the places that windows take, those that the image has: `count`, from place `to` of a window's first row on, which are the image's
 * from `from` on. The others are zeros. */
typedef struct tune_border {
    int64_t from, to, count;
    bool zeros;   /* there are others */
    bool differs; /* or the image has more: what windows take is not the image as it lies */
} tune_border;
tune_border tune_border_of(const tune_question *q, size_t window);

/* Does the kernel make an image with zeros around it? */
bool tune_has_border(const tune_question *q);

/* How a kernel writes the zero of a type: memset takes no calls on the device. NULL: memset fills no memory with it. */
const char *tune_zero_of(dtype type);

/* Places of the window, of one place of the image, at most: in so many results it is a factor. */
int64_t tune_window_uses(const tune_question *q, size_t window);

/* What is done to sums in so many parts; or that wait. */
const tune_epilogue *tune_epilogue_of(const tune_question *q, int64_t parts, bool waits);

/* Of values that wait in DM between two passes of what is done to sums. */
dtype tune_type_of_values(const tune_question *q);

/* Whose cycles are to be few. */
timing_preset tune_timing_of(const visa_tune_options *o);

/* As the operand that has the kept axis of a role lies in HBM; and is that another type than the one that is multiplied? Of an image, whose
 * fetch casts, it is not asked. */
dtype tune_stored_of(const tune_question *q, tune_role role);
bool tune_is_widened(const tune_question *q, tune_role role);

/* Groups of the sum that are added after they have met their scales; 1: none. */
int64_t tune_groups_of(const tune_question *q);

/* Is it one number for all results? */
bool tune_is_one_element(const tune_question *q, const tune_extra *e);

/* The axis of a role in its port; NULL: it has none. */
const char *tune_axis_of_extra(const tune_question *q, const tune_extra *e, tune_role role);

/* Kinds of axes that it has, a bit each. */
unsigned tune_roles_of_extra(const tune_extra *e);

/* The kept axis of an operand. */
tune_role tune_kept_of(const tune_question *q, tune_place operand);

/* One contraction, and no reductions: what tune_question_read reads. */
bool tune_is_contraction(const tune_expression *e);

/* False: diagnosed. Lives in the list's arena. */
bool tune_question_read(const tune_expression *e, const visa_tune_options *options, diag_list *diags, tune_question *out);

/* The contraction with one axis for each role, and the operand that streams in front, among the tensors as well: however it is spelt. Axes
 * of one position are absent; `implies`: each operand has a kept axis nevertheless; `sums`: both have a summed one, which may be left out
 * where it is of one position. Lives in the arena. */
tune_expression tune_question_joined(const tune_expression *e, const tune_question *q, bool implies, bool sums, arena *a);

/* Bytes that are filled by so many elements; the last half of one may be open. */
int64_t tune_bytes_of(dtype type, int64_t elements);

/* Elements of a block of the Transpose Engine, of an operand that lies turned: of the sum, which leave as 8 bytes, and of the kept axis. */
int64_t tune_turn_rows(const target *t, const tune_question *q);
int64_t tune_turn_columns(const tune_question *q, int64_t tile);

/* Positions of a tile as they are turned: whole blocks. */
int64_t tune_turned_tile(const tune_question *q, int64_t tile);

#endif
