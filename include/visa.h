/* The C API of visac: source text in, command streams and tables out.
 *
 * A visa_compilation owns everything that comes from one source text, until visa_free. No globals: compilations
 * in several threads do not know of each other. Nothing here prints, exits or aborts; nothing links LLVM.
 *
 *     visa_compilation *c = visa_compile("matmul.vm", text, bytes, NULL);
 *     if (visa_error_count(c) == 0)
 *         visa_emit(c, VISA_EMIT_BINARY, &data, &size);
 *     visa_free(c);
 */
#ifndef VISA_H
#define VISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VISA_API __attribute__((visibility("default")))

typedef struct visa_compilation visa_compilation;

/* A constant or an axis of the file, or a size of its stream programs, with another value. Several values: the sizes of a ragged
 * dimension. */
typedef struct visa_parameter {
    const char *name;
    const int64_t *values;
    size_t count;
} visa_parameter;

/* As written; as the timing model ends first; that where visac places memory, as written where the source gives every address. */
typedef enum visa_order { VISA_ORDER_AUTO, VISA_ORDER_SOURCE, VISA_ORDER_FREE } visa_order;

typedef struct visa_options {
    const char *target;  /* "rngd"; NULL: the default */
    const char *dialect; /* "0.6": what that release of the language does not write is refused; NULL: all releases are read */
    bool warnings_are_errors;
    const char *const *warnings;    /* what follows -W (visa_knows_warning), in order, ended by NULL; NULL: none */
    const char *print_after;        /* a pass name, "all", or NULL: dumps for visa_pass_dumps */
    bool time_report;               /* measure for visa_time_report */
    const char *kernel;             /* compile this kernel only; NULL: all */
    bool places_all;                /* --place=auto: addresses of the source are not looked at, all memory is placed */
    visa_order order;               /* of work that does not depend on each other */
    const char *const *step_passes; /* "NAME:parameter=value,..", in order, on every stream program */
    size_t step_pass_count;
    const char *step_sizes;           /* a file of `visa-run --sizes`: numbers for the sizes of a stream program; NULL: none */
    const visa_parameter *parameters; /* other numbers for constants, axes and sizes of the file; outlive the compilation */
    size_t parameter_count;
    bool parse_only; /* for visa_format and VISA_EMIT_AST: the meaning is not looked at */
    bool editor;     /* keep what include/visa_editor.h answers from */
    /* The text of a module's file as it stands in an editor, in `*text` and `*bytes`; false: read the file. NULL: all are read. */
    bool (*open_text)(void *user, const char *path, const char **text, size_t *bytes);
    void *user;         /* of open_text */
    bool modules;       /* read the files of `mod x;`, next to the file called `name` */
    size_t error_limit; /* visa_diagnostics says no more errors than this, and how many there are; 0: all */
    bool binary_only;   /* nothing but VISA_EMIT_BINARY will be asked for: a kernel is written and forgotten before the next one is read */
    uint64_t max_steps, max_bytes; /* of work and of memory, docs/usage.md; 0: the default, UINT64_MAX: any number */
    uint64_t
        max_milliseconds; /* of processor time in this call and all that ask something of its result, or up to visa_ask; 0: any number */
    bool book;            /* the text is a chapter in Markdown: each ```rust block is compiled, for visa_verdicts; nothing is emitted */
    int64_t step_onchip_bytes; /* that the chip of stream programs holds, instead of what they say; 0: that */
    int64_t step_compute_tile; /* rows and columns of what their compute units take; 0: what they say */
    size_t jobs; /* threads that compile a file's kernels, where binary_only is set: the same bytes and messages with any number; 0: none
                    but the caller's */
    bool again;  /* visa_compile_again may follow: what is read of the text is kept. By the caller's thread alone */
} visa_options;

/* Compiles a text. `name` stands in diagnostics. NULL only when there is no memory, or for an unknown target, pass or warning. */
VISA_API visa_compilation *visa_compile(const char *name, const char *text, size_t bytes, const visa_options *options);
VISA_API void visa_free(visa_compilation *c);
/* Compiles its text again with other parameters or transformations (warnings stay as they were chosen first): the result is that of
 * visa_compile with the same options, and costs as many steps, but nothing of the text is read again, and memory that is there is used.
 * Files of modules are. What came of `c` before is gone. False: it was not compiled with `again`, is a book's or an editor's, was stopped
 * while it was read, or the options name another target or are of a book, an editor or parse_only; nothing happened. */
VISA_API bool visa_compile_again(visa_compilation *c, const visa_options *options);

VISA_API size_t visa_error_count(const visa_compilation *c);
/* Was it, or a question to it, stopped because it took too much work, memory or time (E-BUDGET)? Then it does not say all that is wrong. */
VISA_API bool visa_gave_up(const visa_compilation *c);
/* What all calls from here on that ask something of it may cost together: steps, 0 for the default, and milliseconds of processor time from
 * now on, 0 for any number. */
VISA_API void visa_ask(visa_compilation *c, uint64_t max_steps, uint64_t max_milliseconds);
/* The steps of work that it took so far, questions included. */
VISA_API uint64_t visa_steps(const visa_compilation *c);
VISA_API size_t visa_warning_count(const visa_compilation *c);

/* The i-th file that was read for a `mod` of the text, or that one names where nothing is compiled, or NULL: what is written must not be
 * one of them. */
VISA_API const char *visa_module_file(const visa_compilation *c, size_t i);
/* An error that a program met with the compilation's output, under an id that visa_explain knows, so that one text, JSON or SARIF says all;
 * `help` may be NULL. */
VISA_API void visa_add_error(visa_compilation *c, const char *id, const char *message, const char *const *notes, size_t note_count,
                             const char *help);

/* Did the system end it and not the text: no memory, a file that cannot be read or written? */
VISA_API bool visa_has_system_fault(const visa_compilation *c);

/* NAME, no-NAME, error, error=NAME, no-error=NAME: a warning's NAME is its id in lower case without W-, `performance` or `all`. */
VISA_API bool visa_knows_warning(const char *option);

typedef enum visa_diagnostics_format {
    VISA_DIAGNOSTICS_TEXT,
    VISA_DIAGNOSTICS_COLOUR,
    VISA_DIAGNOSTICS_JSON,
    VISA_DIAGNOSTICS_SARIF
} visa_diagnostics_format;
/* All diagnostics in source order; owned by the compilation. */
VISA_API const char *visa_diagnostics(visa_compilation *c, visa_diagnostics_format format);

typedef enum visa_emit_kind {
    VISA_EMIT_BINARY, /* the ELF file, docs/format.md */
    VISA_EMIT_TABLES, /* sequencer tables to read */
    VISA_EMIT_JSON,   /* the same for programs, docs/tables.schema.json */
    VISA_EMIT_IR,
    VISA_EMIT_AST,
    VISA_EMIT_STEP_REPORT, /* what stream programs cost, to read */
    VISA_EMIT_STEP_JSON,   /* the same for programs */
    VISA_EMIT_MEMORY,      /* what lies where and for how long, to read */
    VISA_EMIT_MEMORY_JSON, /* the same for programs */
    VISA_EMIT_MEMORY_SVG,  /* and as a picture */
    VISA_EMIT_ORDER,       /* what is issued when, what was moved and what that saves */
    VISA_EMIT_MOVED,       /* the same of kernels in which something was moved */
    VISA_EMIT_STEP_DOT,    /* the graphs of stream programs, for Graphviz */
    VISA_EMIT_STEP_SVG,    /* the graph of the only one, as a picture */
    VISA_EMIT_STEP_CSV,    /* what stream programs cost, an operator a row */
    VISA_EMIT_STEP_PAGE,   /* and as a page (HTML) with the graphs */
    VISA_EMIT_FINN,        /* dataflow items as operators of FINN: a Python module */
} visa_emit_kind;
/* False when the compilation has errors (more may have been added). AST is there even then. *data belongs to the compilation and has a
 * NUL after it. */
VISA_API bool visa_emit(visa_compilation *c, visa_emit_kind kind, const unsigned char **data, size_t *size);

/* The text in its canonical layout: the same tokens and comments, other white space. False when it cannot be read (see the
 * diagnostics), or when there is no memory; errors of meaning do not matter. *data belongs to the compilation and has a NUL after it. */
VISA_API bool visa_format(visa_compilation *c, const char **data, size_t *size);
/* The text as the newest release of the language writes it: the same tokens and comments but for calls, types and words that older releases
 * write otherwise; in its canonical layout if it was. `options` are those of the compilation, with places_all and without binary_only.
 * False: something cannot be expressed (E-UPGRADE), or the text cannot be read. *data belongs to the compilation and has a NUL after it. */
VISA_API bool visa_upgrade(visa_compilation *c, const visa_options *options, const char **data, size_t *size);
/* After it: the `number`-th file of a module, from 0 on, that the newest release writes otherwise, too. False: there are no more. */
VISA_API bool visa_upgraded_module(const visa_compilation *c, size_t number, const char **path, const char **data, size_t *size);
/* The text with one of its copies done by the Tensor Unit: packets that several slices hold, or others, go through the Switch
 * Engine. `number` counts the ways that the mappings allow from 0 on. Nothing is promised of the text but that it is worth a try:
 * whoever asks compiles and times it. False: there are fewer. The compilation has no errors, and is not binary_only. */
typedef struct visa_switched_text {
    const char *text;  /* owned by the compilation, as `words` */
    const char *words; /* what is done otherwise, a phrase */
    uint32_t line;     /* of the copy */
    bool routes;       /* packets go to other slices */
} visa_switched_text;
VISA_API bool visa_switched(visa_compilation *c, size_t number, visa_switched_text *out);
/* What the contractions on that line (0: on all) read of the TRF: each size that a read may have, with its verdict. Errors of meaning do
 * not matter. False: there is none (E-EXPLAIN). *data belongs to the compilation and has a NUL after it. */
VISA_API bool visa_explain_mapping(visa_compilation *c, uint32_t line, const char **data, size_t *size);
/* The same as a page of HTML. */
VISA_API bool visa_explain_mapping_page(visa_compilation *c, uint32_t line, const char **data, size_t *size);
/* Kernels and stream programs: what a binary would hold. */
VISA_API size_t visa_kernel_count(const visa_compilation *c);
/* How many of these are stream programs. */
VISA_API size_t visa_program_count(const visa_compilation *c);
/* Dataflow items, which a binary does not hold. */
VISA_API size_t visa_item_count(const visa_compilation *c);

/* An engine of a contraction's chain, and what passes through it. */
typedef enum visa_stage_side { VISA_STAGE_FEED, VISA_STAGE_CONTRACT, VISA_STAGE_RESULT } visa_stage_side;
typedef struct visa_stage {
    const char *engine; /* "collect" */
    visa_stage_side side;
    int64_t busy_cycles;
} visa_stage;

/* What the machine's cycle model says of a contraction: for visa_dataflow, in program order, kernel by kernel. */
typedef struct visa_contraction {
    const char *kernel;
    int64_t cycles, fill_cycles, drain_cycles;
    int64_t load_cycles; /* of its weights into the TRF; 0: none */
    const char *load_engine;
    const char *engine, *formula; /* what binds it, "collect"; "8 + max(32 x 2, 32 x 1)" */
    const visa_stage *stages;     /* the engines that are busy, in the order of the datapath */
    size_t stage_count;
} visa_contraction;

/* Dataflow items and the contractions of kernels as dataflow models, as text or JSON (docs/dataflow.md). False when the compilation has
 * errors. */
VISA_API bool visa_dataflow(visa_compilation *c, bool json, const visa_contraction *measured, size_t count, const unsigned char **data,
                            size_t *size);

typedef enum visa_explore_form {
    VISA_EXPLORE_TEXT,
    VISA_EXPLORE_CSV,
    VISA_EXPLORE_SVG,
    VISA_EXPLORE_KERNEL,
    VISA_EXPLORE_JSON,
    VISA_EXPLORE_POINT /* nothing is explored: the point that is written, as a kernel */
} visa_explore_form;

/* What to look for in the design space of a dataflow item. Limits: 0 is none. */
typedef struct visa_explore_options {
    const char *model; /* NULL: the file's only one */
    visa_explore_form form;
    int64_t multipliers, weight_bits, input_bits, block_bits, rows;
    bool target_limits;    /* those of the machine too */
    int64_t target_cycles; /* L at most; 0: any */
    bool folding;          /* FINN's search for target_cycles instead of all points */
    int64_t part, parts;   /* of several processes: this one walks every parts-th piece of the space, from `part` on; parts 0: all of it */
    /* Hands over this process's numbers. In the process that writes (part 0): all of them one after the other, its own first, and how many
     * of each, malloc'd, for visa_explore to free; in the others *ranks is 0. NULL: there is one process. */
    bool (*gather)(void *user, const int64_t *mine, size_t count, int64_t **all, size_t **counts, size_t *ranks);
    void (*progress)(void *user, int64_t done, int64_t points); /* NULL: silent */
    void *user;
    bool chain;          /* all items together (or the one that is named): the fewest multipliers with which the slowest is fast enough */
    int64_t target_rate; /* inferences per second at the clock of the items, instead of target_cycles; 0: none */
} visa_explore_options;
/* *size is 0 where another process writes. False: diagnosed, or out of memory. */
VISA_API bool visa_explore(visa_compilation *c, const visa_explore_options *options, const unsigned char **data, size_t *size);

/* A contraction for which a kernel is looked for (docs/tune.md). */
typedef struct visa_tune_options {
    const char *question;        /* "C[m,n] = sum(k) A[m,k] * B[n,k]" */
    const visa_parameter *sizes; /* of its axes; one value each */
    size_t size_count;
    const char *dtype, *out_dtype; /* of the operands, NULL: bf16; of the result, NULL: the type of the sums */
    uint64_t work; /* steps of work that compilations may take together, as many seconds as VISA_TUNE_STEPS_OF_SECOND are in it */
    void (*progress)(void *user, int64_t done, int64_t work); /* NULL: silent */
    void *user;
    /* A folder where answers are kept, made if it is not there, and looked for before a search begins; NULL: none is. Those of another
     * build (any text) or version are not taken. */
    const char *cache, *cache_build;
    /* Of several processes that answer together, all with the same options but for `part`, from 0 on: `gather` is that of
     * visa_explore_options; `share` hands part 0's bytes (NULL: none) to the others, malloc'd. NULL: there is one process. Each has the
     * answer, the same whatever `parts` is. */
    int64_t part, parts;
    bool (*gather)(void *user, const int64_t *mine, size_t count, int64_t **all, size_t **counts, size_t *ranks);
    bool (*share)(unsigned char **bytes, size_t *size);
    const char *timing; /* whose cycles are to be few, of the presets of docs/timing.md; NULL: documented */
    /* Clusters of a chip and slices of a cluster that work at most, powers of two; 0: all. */
    int64_t clusters, slices;
    int64_t chips;            /* that share the work, a power of two; 0: one */
    const char *free_tensors; /* "b,c": those whose layout in HBM the kernel chooses; NULL: none */
} visa_tune_options;
enum { VISA_TUNE_STEPS_OF_SECOND = 4000000 };
/* A compilation of the question, whose diagnostics say why there is no kernel. *text, which it owns, is the kernel's source with a NUL
 * after it, or NULL. NULL only when there is no memory. */
VISA_API visa_compilation *visa_tune(const visa_tune_options *options, const char **text, size_t *bytes);
/* The same for a file whose functions without a body are questions, under #[einsum("..")]: its text with kernels in their places. Of the
 * options the work, the progress and the part of the machine count, which #[device(pe = n)] in front of a function says of it; types where
 * a function declares none. */
VISA_API visa_compilation *visa_tune_file(const char *name, const char *source, size_t source_bytes, const visa_tune_options *options,
                                          const char **text, size_t *bytes);

/* A picture (SVG) of the order and the count of accesses of one operation's sequencer over its tensor. `what` is "[KERNEL:]OP": the name of
 * an operation (fetch, commit, align, to_dm, to_hbm) that occurs once, or its index in VISA_EMIT_JSON. False: diagnosed. */
VISA_API bool visa_draw(visa_compilation *c, const char *what, const unsigned char **data, size_t *size);

/* The pictures of a kernel, one SVG after the other: one of the copies of a stage in a loop that walk alike. */
VISA_API bool visa_pictures(visa_compilation *c, const char *kernel, const unsigned char **data, size_t *size);

/* Of a book: a line for each block and a summary. "" when nothing was asked for; owned by the compilation, like the next two. */
VISA_API const char *visa_verdicts(const visa_compilation *c);
VISA_API const char *visa_pass_dumps(const visa_compilation *c);
VISA_API const char *visa_time_report(visa_compilation *c);

/* ---- Pairs of mappings, without a program ----
 *
 * A visa_deriver knows axes and turns mapping expressions, as they stand between `m![` and `]`, into loops:
 *
 *     visa_deriver *d = visa_deriver_new(NULL);
 *     visa_deriver_axis(d, "A", 8);
 *     visa_deriver_axis(d, "B", 512);
 *     visa_entry entries[VISA_MAX_ENTRIES];
 *     size_t count;
 *     if (!visa_derive(d, "A, B", "B", "A", VISA_READ, entries, &count))
 *         puts(visa_deriver_error(d));
 *
 * Texts that it hands out are its own and hold until its next call. It remembers the mappings that it read, some hundreds of texts, so that
 * a pair whose mappings it has seen costs the derivation alone; beyond a mebibyte it forgets them all. However many pairs are derived, its
 * memory does not grow further. One deriver belongs to one thread at a time. */
typedef struct visa_deriver visa_deriver;

/* NULL: no memory, or an unknown target (NULL: the default one). */
VISA_API visa_deriver *visa_deriver_new(const char *target);
VISA_API void visa_deriver_free(visa_deriver *d);
/* Declares an axis of `size` elements; a name that is declared again has the new size. */
VISA_API bool visa_deriver_axis(visa_deriver *d, const char *name, int64_t size);
/* Steps of work that a call may take (E-BUDGET); 0: the default, that of a compilation, UINT64_MAX: any number. */
VISA_API void visa_deriver_limit(visa_deriver *d, uint64_t max_steps);
/* Forgets every axis. */
VISA_API void visa_deriver_clear(visa_deriver *d);
/* Why the last call gave false: the message, then lines "note: .." and "help: ..". "" when it did not. */
VISA_API const char *visa_deriver_error(const visa_deriver *d);

typedef enum visa_access {
    VISA_READ,  /* what the buffer does not mention is a broadcast, padding may be read */
    VISA_WRITE, /* every live cell exactly once, and nothing but padding otherwise */
} visa_access;

enum { VISA_MAX_ENTRIES = 8 };
typedef struct visa_entry {
    int64_t size;   /* iterations */
    int64_t stride; /* elements of the buffer */
} visa_entry;

/* The sequencer entries, outermost first, that walk `buffer` in the order of the stream [time, packet]. `entries` has room for
 * VISA_MAX_ENTRIES. */
VISA_API bool visa_derive(visa_deriver *d, const char *buffer, const char *time, const char *packet, visa_access access,
                          visa_entry *entries, size_t *count);
/* The positions of a mapping, and its shortest equivalent form. */
VISA_API bool visa_mapping(visa_deriver *d, const char *mapping, int64_t *size, const char **shortest);
/* The index at a position ("A:1 B:3", in order of first mention; "" for the empty index), or NULL where there is padding. */
VISA_API bool visa_map(visa_deriver *d, const char *mapping, int64_t position, const char **index);
/* Do both mean the same at every position? */
VISA_API bool visa_equal(visa_deriver *d, const char *left, const char *right, bool *equal);

/* The explanation of a diagnostic id ("E-COLLECT-FLIT"), or NULL. Static. */
VISA_API const char *visa_explain(const char *id, const char **title);
/* The i-th machine that options.target may name, or NULL. */
VISA_API const char *visa_target_name(size_t i);
/* The releases of the language, oldest first; NULL: there are fewer. */
VISA_API const char *visa_dialect_name(size_t i);
/* Is that one of them, in whatever case? */
VISA_API bool visa_knows_dialect(const char *name);
/* The i-th transformation of stream programs, or NULL, with its parameters: "node, rows". */
VISA_API const char *visa_step_pass_name(size_t i, const char **summary, const char **parameters);
/* The i-th pass name, or NULL; for --help. */
VISA_API const char *visa_pass_name(size_t i, const char **summary);
VISA_API const char *visa_version(void);

#ifdef __cplusplus
}
#endif

#endif
