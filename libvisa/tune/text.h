/* The text of an answer, line by line, and where in it each step of the kernel is.
 *
 * The one idea: a kernel is written twice. The first time nothing is known of its cycles; it is compiled, and the second time each step has
 * those of its lines in its comment. */
#ifndef VISA_LIBVISA_TUNE_TEXT_H
#define VISA_LIBVISA_TUNE_TEXT_H

#include "libvisa/tune/plan.h"
#include "support/strbuf.h"

/* What a kernel does, in the order of its text; not every kernel has all of it. */
typedef enum tune_step {
    TUNE_LOAD_LYING, /* of an operand that is turned once, for all slices; columns, then rows */
    TUNE_LOAD_LYING_ROWS,
    TUNE_STORE_ZEROS, /* rows of zeros around an image, and its own rows between them */
    TUNE_LOAD_IMAGE,
    TUNE_STORE_IMAGE,
    TUNE_STORE_TURNED,
    TUNE_STORE_TURNED_ROWS,
    TUNE_LOAD_WEIGHTS,
    TUNE_HAND_WEIGHTS,
    TUNE_TURN_WEIGHTS, /* of a tensor that lies turned */
    TUNE_STORE_WEIGHTS,
    TUNE_LOAD_ROWS,
    TUNE_TURN_ROWS,
    TUNE_MULTIPLY,
    TUNE_SUMS,        /* those of the parts before this one, for the Vector Engine */
    TUNE_MULTIPLY_ON, /* parts of the sum after the first one, */
    TUNE_FINISH,      /* the last one into the result */
    TUNE_LOAD_EXTRA,  /* operands of what is done to the sums, one after the other */
    TUNE_KEEP_EXTRA = TUNE_LOAD_EXTRA + TUNE_EXTRAS_MAX,
    TUNE_TURN_EXTRA = TUNE_KEEP_EXTRA + TUNE_EXTRAS_MAX,
    TUNE_PASS = TUNE_TURN_EXTRA + TUNE_EXTRAS_MAX, /* over values in DM */
    TUNE_REGROUP = TUNE_PASS + TUNE_PASSES_MAX,
    TUNE_CLOSE, /* rows of the result, without what pads them */
    TUNE_STORE,
    TUNE_LAY_LOAD, /* of a tensor that is brought into another order */
    TUNE_LAY_UNPACK,
    TUNE_LAY_TURN,
    TUNE_LAY_BRING,
    TUNE_LAY_PACK,
    TUNE_LAY_STORE,
    TUNE_STEPS
} tune_step;

/* Lines of the text, from 1, and what a run of each step takes. */
typedef struct tune_step_place {
    uint32_t first, last; /* 0: the kernel has no such step */
    int64_t cycles;       /* 0: not known yet */
} tune_step_place;

typedef struct tune_text {
    strbuf text;
    tune_step_place steps[TUNE_STEPS];
} tune_text;

/* A text that is being written. */
typedef struct tune_page {
    tune_text *out;
    const tune_text *found; /* the result of compiling the same text; NULL: none yet */
    arena *arena;
    int depth; /* indentation of lines, in steps of 4 blanks */
} tune_page;

void tune_line(tune_page *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Plurals put right: "1 rows by 16 columns" becomes "1 row by 16 columns". */
const char *tune_singular(arena *a, const char *text);

/* A comment in front of a step, with what it takes where that is known; what follows until tune_end_step is the step. */
void tune_begin_step(tune_page *w, tune_step step, const char *why);
void tune_end_step(tune_page *w, tune_step step);

/* What is done to values, after `vector_init` or a reduction over slices. Float units take packets of 4: `narrowed` is what is left of
 * those where their padding is dropped, NULL: they are split. */
void tune_write_pass(tune_page *w, const tune_pass *pass, const char *narrowed);

/* Over slices that share a sum, in the inter-slice reducer, then the first pass of what is done to it, in the result's type where it is the
 * only one: the slices and the time of what is left, of packets of `packet`. */
void tune_write_fold(tune_page *w, const target *t, const tune_question *q, const tune_epilogue *e, const char *slice, const char *time,
                     const char *packet);

/* Values between two passes of what is done to sums: a piece of the result, in the slices that keep it. */
typedef struct tune_values_text {
    const char *from, *into; /* where the first pass left them and the last one leaves the result: views of tensors in DM */
    const char *slice, *element;
    const char *time, *packet; /* of a fetch: packets of all lanes of the Reducer */
} tune_values_text;

/* A pass that is not the first one: into the VRF where it is a gate, into DM for the next pass, or the result. */
void tune_write_later_pass(tune_page *w, const target *t, const tune_question *q, const tune_epilogue *e, size_t pass,
                           const tune_values_text *x);

/* A loop "j" over steps from..to - 1: every other one of the first 2 * by_main steps is the main context's, the others are sub's.
 * `write_step` writes a step of "main" or "sub". */
void tune_write_by_both(tune_page *w, int64_t from, int64_t to, int64_t by_main, void (*write_step)(void *of, const char *by), void *of);

/* What meets a stream in the Vector Engine, on its way from DM into the VRF. */
typedef struct tune_operand_text {
    const char *name, *slice, *element; /* as the VRF has it; the slices as a type, "Slice" or "m![N / 8]" */
    const char *from;                   /* the tensor in DM, with a tile if it is one: "bias.view()" */
    dtype from_type, type;
    const char *time, *packet; /* of its fetch */
    const char *hands;         /* a method that hands it on from slice to slice; NULL: each has its own */
} tune_operand_text;
/* By the sub context. */
void tune_write_operand(tune_page *w, const tune_operand_text *x);

/* A copy from DM to DM that brings so many whole rows (or batches: `what`) of the products into the slices that write them: `whole`.
 * `cluster`: NULL, one of them. */
void tune_write_bring(tune_page *w, const target *t, const tune_question *q, int64_t count, const char *what, const char *cluster,
                      const char *slices, const char *element);

/* Of a port whose tensor is in the HBM of several chips: a line that says which chip each copy is of. It has these of the shared axes. */
void tune_write_copies(tune_page *w, const tune_share *shares, size_t count, unsigned has, const char *port, dtype type,
                       const char *element);

/* The texts that are there (not NULL, not empty), with commas; "1" where none is. */
const char *tune_list(arena *a, const char *const *parts, size_t count);
#define TUNE_LIST(a, ...) \
    tune_list((a), (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

#endif
