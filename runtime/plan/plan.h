/* A plan: kernels that run one after the other on one HBM.
 *
 * The one idea: a buffer is dense elements at a place of HBM that belongs to nobody's kernel; a step names a kernel and says which buffer
 * each of its ports is. Nothing is copied between steps: the kernel is moved to its buffers (relocate.h). docs/plan.md is the format. */
#ifndef VISA_RUNTIME_PLAN_PLAN_H
#define VISA_RUNTIME_PLAN_PLAN_H

#include "codegen/container.h"
#include "runtime/tensor/tensor.h"

enum {
    PLAN_MOST_BYTES = 64 << 20,   /* of a plan's text */
    PLAN_MOST_KERNELS = 1 << 12,  /* kernels, each looked up by its name in a row of all */
    PLAN_MOST_BUFFERS = 1 << 16,  /* buffers */
    PLAN_MOST_RUNS = 1 << 20,     /* steps, with repetitions */
    PLAN_MOST_LOOPS = 8,          /* repetitions inside of each other */
    PLAN_MOST_RANK = 8,           /* dimensions of a buffer */
    PLAN_MOST_NAME = 255,         /* bytes of a buffer's name, with the values of its indices */
    PLAN_BUFFER_ALIGNMENT = 4096, /* bytes, of a buffer's place in HBM */
};

typedef struct plan_kernel {
    const char *name, *file;
    const binary *binary;
    const binary_kernel *kernel;
} plan_kernel;

typedef struct plan_buffer {
    const char *name, *file; /* file NULL: zeros */
    bool resident;           /* in DM, laid out as the ports that it is bound to */
    const char *of;          /* the buffer that it is a part of, from element `first` on; NULL: it has a place of its own */
    int64_t first;
    tensor_type type;
    int64_t address, bytes; /* in HBM of chip 0 */
} plan_buffer;

/* A number, an index of a repetition plus a number, or what an i32 buffer holds at one place when the step begins. */
typedef struct plan_index {
    const char *loop; /* NULL: none */
    int64_t number;
    const struct plan_place *value; /* NULL: none */
} plan_index;

/* A buffer, or the part of it that is left when its first dimensions are chosen. `{l}` in the name is the index l. */
typedef struct plan_place {
    const char *buffer;
    plan_index at[PLAN_MOST_RANK];
    int at_count;
} plan_place;

typedef struct plan_binding {
    const char *port;
    plan_place place;
} plan_binding;

typedef enum plan_step_kind { PLAN_RUN, PLAN_REPEAT, PLAN_ARGMAX } plan_step_kind;

typedef struct plan_step {
    plan_step_kind kind;
    size_t number; /* in the plan's text, from 1 */
    /* PLAN_RUN */
    const plan_kernel *kernel;
    plan_binding *bindings;
    size_t binding_count;
    /* PLAN_REPEAT: index from `from` to below `to` */
    const char *index;
    int64_t from, to;
    struct plan_step *body;
    size_t body_count;
    /* PLAN_ARGMAX: the position of the largest element of `source`, the first of equals, into one i32 of `into` */
    plan_place source, into;
} plan_step;

typedef struct plan_output {
    const char *buffer, *file;
} plan_output;

typedef struct plan {
    const char *folder; /* of its file, which the names of files in it begin from; "" where it is the current one */
    const target *target;
    plan_kernel *kernels;
    size_t kernel_count;
    plan_buffer *buffers;
    size_t buffer_count;
    plan_step *steps;
    size_t step_count;
    plan_output *outputs;
    size_t output_count;
    int64_t scratch; /* the first byte of HBM that no buffer has */
} plan;

/* Reads a plan and the binaries that it names; `file` names it in messages. NULL with diagnostics. Nothing is run, no tensor is read. */
plan *plan_read(const char *file, const char *text, size_t bytes, arena *a, diag_list *diags);

/* The buffer with that name, or NULL. */
const plan_buffer *plan_buffer_named(const plan *p, const char *name);

#endif
