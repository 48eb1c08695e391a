/* What a compilation owns: shared by the files of libvisa/, hidden from everybody else. */
#ifndef VISA_LIBVISA_COMPILATION_H
#define VISA_LIBVISA_COMPILATION_H

#include <time.h>

#include "codegen/container.h"
#include "frontend/expand.h"
#include "frontend/index.h"
#include "frontend/sema.h"
#include "frontend/source.h"
#include "frontend/step/program.h"
#include "frontend/upgrade.h"
#include "include/visa.h"
#include "ir/step/bind.h"
#include "runtime/timing/known_costs.h"
#include "support/strbuf.h"
#include "target/target.h"

struct pass; /* passes/pass.h */
struct step_pass;
struct emit_context;

/* A ```rust block of a chapter: a file of its own, and where in the chapter it begins. */
typedef struct book_block {
    int file;
    uint32_t first_byte;
} book_block;

/* A file of a module that was read. */
typedef struct read_module {
    int file;
    const ast *parsed, *tree; /* as they are of the first file */
    const char *upgraded;     /* visa_upgrade: its text; NULL: it is as it was */
} read_module;

struct visa_compilation {
    arena *arena;
    diag_list diags;
    source_map *sources;
    const char **module_files; /* that were read for `mod` */
    size_t module_file_count, module_file_capacity;
    read_module *modules;
    size_t module_count, module_capacity;
    mapping_context *mappings;
    const target *target;
    const ast *file; /* as it was parsed */
    const ast *tree; /* with macros expanded and numbers from outside */
    expander *expander;
    module *module;
    step_module *programs;
    bool has_programs;     /* stream programs, which may run kernels */
    step_kernels kernels;  /* those, then */
    arena *kernel_arena;   /* with binary_only of the kernel at hand, else of everything */
    binary_writer *writer; /* of the file under way; NULL: none is */
    diag_list write_diags; /* what is reported if nothing else is wrong */
    bool write_failed;
    const unsigned char *image; /* the file; NULL: not written yet */
    size_t image_bytes;
    arena_mark no_kernel;   /* of kernel_arena */
    bool *is_set;           /* by parameter: a constant or an axis had its name */
    step_binding *bindings; /* by parameter */
    size_t binding_count;
    const visa_options *options;
    size_t error_limit;
    strbuf *pass_dumps; /* by row of the pipeline: kernels one after the other */
    strbuf dumps;
    struct timed_step *times; /* in the order of their first ends */
    size_t time_count, time_capacity;
    strbuf verdicts; /* of a book's blocks */
    struct timespec clock;
    size_t syntax_errors;
    diag_list shown;     /* of `diags` what is shown: as many errors as the limit lets through */
    size_t shown_count;  /* of `diags` when that was decided; 0: not yet */
    source_index *index; /* options->editor; else NULL */
    const struct visa_completion *completions;
    size_t completion_count;
    struct visa_outline *outline;
    size_t outline_count, outline_capacity;
    bool outlined;                 /* all of it is there */
    struct token_list *tokens;     /* of file 0, for an editor; NULL: not asked for yet */
    const struct visa_name *names; /* the same */
    size_t name_count;
    const char *chapter; /* of a book: its text, and its blocks */
    size_t chapter_bytes;
    book_block *blocks;
    size_t block_count, block_capacity;
    bool exhausted, is_book, binary_only;
    uint64_t max_steps, max_bytes, max_milliseconds; /* UINT64_MAX, UINT64_MAX, 0: any number */
    bool gave_up;                                    /* what may be spent was spent */
    bool interrupted;                                /* because somebody waits: it was not too much */
    struct jobs *jobs;                               /* that made its kernels, whose memory they are in; NULL: it did */
    /* libvisa/recall.h; NULL: nothing is known from before, or will be afterwards. It may be freed before the compilation is asked. */
    struct visa_recall *recall;
    bool unlike, learnt;    /* something is not as it is known; something became known */
    bool *alone;            /* by function of the recall: nothing calls it */
    struct recalled *reads; /* the function that is being read; NULL: another one */
    const ast *reads_node;  /* it */
    size_t lost_before;     /* of the index when that began */
    size_t diags_before;    /* of `diags` when that began */
    size_t diags_parsed;    /* of `diags` when all was parsed */
    bool *doubted;          /* by item outside of bodies: something was said of it where a function asked */
    bool has_doubts;
    size_t pending;          /* functions that are stale, and were not compiled */
    const src_range *blanks; /* what is not there to be asked about */
    size_t blank_count;
    const sema_survey *survey;     /* of `tree` */
    struct compilation_read *read; /* options->again: what visa_compile_again goes back to; NULL: nothing is */
    known_costs *costs;            /* of its kernels so far that were ordered; NULL: none was */
};

/* A compilation whose text was read, and nothing made of it yet: what it was, and the point of its arena to go back to. */
typedef struct compilation_read {
    visa_compilation as_read;
    const source_map *sources;
    const expander *expander;
    uint64_t steps;
    arena_mark end;
    arena *costs_arena; /* NULL: none, or it went with the others when a compilation was unwound */
    known_costs *costs;
    arena_mark no_costs; /* of costs_arena */
} compilation_read;

/* visa_compile, with what is known from before; the text is as the recall wants it. */
visa_compilation *compilation_compile(const char *name, const char *text, size_t bytes, const visa_options *options,
                                      struct visa_recall *recall);

/* One of nothing yet, for a known target; the options are the caller's. NULL: no memory, or no such target. */
visa_compilation *compilation_new(const visa_options *options);

/* For the guard of the arena: its memory is exhausted, or what it may spend, which is diagnosed. Always true. */
bool compilation_unwound(visa_compilation *c);
/* Is there nothing to be asked, or was the call unwound? */
#define COMPILATION_STOPS(c) ((c)->exhausted || (compilation_ask(c), setjmp(*arena_guard((c)->arena))) ? compilation_unwound(c) : false)
void compilation_ask(visa_compilation *c);

/* What is shown of its diagnostics, in source order. */
const diag_list *compilation_shown(visa_compilation *c);

/* What a rewriting of its text reads. */
upgrade_input compilation_upgrade_input(visa_compilation *c);
/* The line of a range, 0 for none: for emit_context. */
uint32_t compilation_line_of(void *user, src_range range);

/* --time-report: from here on; and what it took since then, or since the step before. */
void compilation_clock(visa_compilation *c);
void compilation_took(visa_compilation *c, const char *what);
/* --print-after: is it of this pass, or transformation? */
bool compilation_prints(const visa_compilation *c, const char *pass_name);
void compilation_begin_dumps(visa_compilation *c);
void compilation_after_pass(void *compilation, const struct pass *done, const kernel *k);
void compilation_end_dumps(visa_compilation *c);

/* The tree of a file with another number for each constant, axis and size of a kernel that -D names. */
const ast *compilation_set_parameters(visa_compilation *c, const ast *tree);
/* For sema_options: the items of `mod NAME;`, or NULL, diagnosed. */
const ast *compilation_load_module(void *compilation, const ast *n);
/* Where nothing is compiled: the files that `mod NAME;` may mean are known by name, so that what is written is none of them. */
void compilation_name_modules(visa_compilation *c);

/* A transformation by the first bytes of its name, or NULL. */
const struct step_pass *compilation_step_pass(const char *name, size_t bytes);
/* "NAME:P=V,..": transforms every stream program. */
void compilation_run_step_pass(visa_compilation *c, const char *text);
/* What is no constant and no axis gives its number to a size of a stream program. */
void compilation_check_parameters(visa_compilation *c);
/* Those of a run; what was given by name comes first. */
void compilation_read_sizes(visa_compilation *c);
void compilation_print_programs(const struct emit_context *e, const visa_compilation *c, strbuf *out);

/* The binary, a kernel after the other. */
void compilation_begin_file(visa_compilation *c);
/* `emitted`: what emit_kernel makes of it; NULL: not known yet. */
void compilation_write_kernel(visa_compilation *c, const kernel *k, const binary_kernel *emitted, arena *scratch);

/* Derives and, for a binary, writes and forgets a kernel. */
void compilation_finish_kernel(void *compilation, kernel *k);
/* Compiles a file of c->sources and leaves its tree and kernels in `c`. */
void compilation_run_file(visa_compilation *c, int file);

/* Compiles each ```rust block of a chapter by itself and writes c->verdicts. */
void compilation_run_book(visa_compilation *c, const char *name, const char *text, size_t bytes);
/* The chapter with what the diagnostics of its blocks ask for; how many were taken, with 0 *out is not written. */
size_t compilation_fix_book(visa_compilation *c, strbuf *out);

#endif
