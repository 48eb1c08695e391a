/* `visac tune FILE.vm` of a file with a stream program: constants, queues and transformations, judged by runs.
 *
 * The one idea: a point is a value for each free constant and a choice of transformations; it is compiled and run as always, without
 * values. The search begins with the file as it is, and changes one thing at a time of each point that no other beats in cycles, memory on
 * the chip and traffic, until nothing new comes or the work that it may do is done. Work is counted, not measured, so that the same
 * question has the same answer, with any number of processes. */
#ifndef VISA_LIBVISA_VARIANTS_PROGRAM_TUNE_H
#define VISA_LIBVISA_VARIANTS_PROGRAM_TUNE_H

#include "libvisa/variants/program_team.h"
#include "libvisa/variants/sweep.h"
#include "runtime/step/figures.h"

typedef struct program_tune_options {
    variant_options variant; /* its passes are those that may be used; none: those that need no parameter */
    const swept *axes;       /* constants and their values; none: found */
    size_t axis_count;
    const char *const *inputs; /* NAME=FILE: tokens of the program's streams */
    size_t input_count;
    const char *program; /* NULL: the only one */
    const char *file;    /* as the user named it, in commands */
    uint64_t work;       /* steps, VISA_TUNE_STEPS_OF_SECOND in a second or so */
    int64_t max_cycles;  /* of a run; 0: any number */
    bool json;
    peers team;                                               /* processes that answer together, with the same options but for `part` */
    void (*progress)(void *user, int64_t done, int64_t work); /* NULL: silent */
    void *user;
} program_tune_options;

typedef struct program_point {
    int64_t *values;     /* by axis */
    uint32_t passes;     /* a bit for each */
    const char *refused; /* why it is none; NULL: it is one */
    step_figures figures;
    bool front; /* no other one beats it */
} program_point;

typedef struct program_answer {
    const char *name;  /* of the program */
    const swept *axes; /* that were varied */
    size_t axis_count;
    const char *const *passes;
    size_t pass_count;
    const program_point *points; /* the first one: the file as it is */
    size_t point_count;
    bool stopped; /* by the work that it may do */
} program_answer;

/* NULL: diagnosed, or *messages gives the reason (diagnostics of the file as it is; of the process that tried it). */
const program_answer *program_tune(const variant_source *s, const program_tune_options *o, arena *memory, diag_list *diags,
                                   const char **messages);

/* The front as a table, or everything as JSON, with the commands that give the point with the fewest cycles again. */
const char *program_tune_text(const program_answer *x, const program_tune_options *o, arena *a);

#endif
