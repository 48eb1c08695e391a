/* The search: estimates say what is tried first, compilations say what is taken.
 *
 * The one idea: what may be spent is counted in steps of work, not in seconds, so that the same question has the same answer on every
 * machine. A plan is judged by its text alone, compiled as any source is, and by the timing model's schedule of its commands. */
#ifndef VISA_LIBVISA_TUNE_SEARCH_H
#define VISA_LIBVISA_TUNE_SEARCH_H

#include "libvisa/tune/space.h"
#include "libvisa/tune/write.h"
#include "runtime/timing/attainable.h"

typedef struct tune_answer {
    timing_preset timing; /* whose cycles these are */
    tune_plan plan;
    tune_text found;             /* with the cycles of each step */
    int64_t cycles, dma_cycles;  /* of the kernel; in which the DMA Engine works */
    size_t tried, refused, left; /* plans: compiled, of which refused, and not compiled any more */
    const char *first_refusal;   /* NULL: none was */
    uint64_t work_left;          /* of the budget, in steps */
    uint64_t looked_for;         /* steps that it took to find the plans, which are not of the budget */
} tune_answer;

/* What a compilation says of one plan. */
typedef struct tune_trial {
    timing_preset timing;       /* given: whose cycles are counted */
    tune_text text;             /* with the cycles of each step */
    int64_t cycles, dma_cycles; /* as in tune_answer */
    uint64_t steps;             /* of work that it took */
    const char *refusal;        /* "E-DMA-ALIGN: ..", NULL: it compiles */
} tune_trial;

/* Compiles and prices out->text; lives in the arena. False: no memory. */
bool tune_try_text(arena *a, tune_trial *out);

/* The same in an arena of its own, and counts it in `found`, of whose work it takes. `is_best`: it takes the fewest cycles so far, which
 * `found` has now, and those of its steps. False: no memory. */
bool tune_try_another(arena *scratch, arena *a, tune_trial *one, tune_answer *found, bool *is_best);

/* Writes, compiles and prices it; lives in the arena. False: no memory. */
bool tune_try(const target *t, const tune_question *q, const tune_plan *p, arena *a, tune_trial *out);

/* A kernel that was found, as its writer left it. */
typedef struct tune_found {
    strbuf text;
    int64_t cycles;
    attainable bound;
    const char *types, *work;    /* as in its head */
    size_t tried, refused, left; /* as in tune_answer */
} tune_found;

/* False: no plan compiles. */
bool tune_search(const target *t, const tune_question *q, const visa_tune_options *o, arena *a, tune_answer *out);

/* A family of kernels beside those of tune_plan: few plans of a type of its own. */
typedef struct tune_family {
    size_t plan_bytes;
    size_t most, compiled_anyway; /* plans that are compiled; the first so many of them where nothing is left of the work, too */
    size_t (*find)(const target *t, const tune_question *q, arena *a, void *plans,
                   size_t most);            /* the best estimates, the best one first */
    int64_t (*cycles_of)(const void *plan); /* as estimated */
    void (*write_text)(const target *t, const tune_question *q, const void *plan, const char *head, const tune_text *found, arena *a,
                       tune_text *out);
    const char *(*describe)(const tune_question *q, const void *plan, arena *a); /* a line for each axis, as tune_describe_split has it */
} tune_family;

/* Compiles those that may take fewer cycles than what `found` has (0: nothing yet), with what its search has left of the work; counts them
 * there. Returns the fastest plan, which lives in the arena, and whose cycles `found` has then, and those of its steps; NULL: none is
 * faster. */
const void *tune_search_family(const tune_family *x, const target *t, const tune_question *q, arena *a, tune_answer *found);

/* Lines in front of a kernel: the question, its types, its cycles and how far they are from the bound, whose second part is of `work`;
 * `how`: lines that say what is chosen. */
const char *tune_head(const char *question, const char *types, const char *work, const attainable *bound, const tune_answer *x,
                      const char *how, arena *a);

/* The same of a contraction. */
const char *tune_head_of_contraction(const tune_question *q, const attainable *bound, const tune_answer *x, const char *how, arena *a);

/* "//   M: 2 chips x 4 iterations x 2 clusters x 8 slices x 16 in a slice" */
void tune_describe_split(const char *name, const tune_share *share, int64_t size, int64_t loop, int64_t cluster, int64_t slice,
                         int64_t tile, int64_t padded, strbuf *out);

/* Diagnoses that nothing compiles of a question, which is the text there; false. */
bool tune_refuse_all(diag_list *diags, src_range question, size_t tried, const char *first_refusal);

#endif
