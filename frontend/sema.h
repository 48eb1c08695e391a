/* From the syntax tree to kernels.
 *
 * The one idea: a function with tensor parameters is a kernel; its body is evaluated once, in order, and what evaluation
 * makes is the list of operations. Everything that carries no meaning for that (imports, attributes, lifetimes,
 * host functions) is passed over; what would carry meaning and is not supported is named. */
#ifndef VISA_FRONTEND_SEMA_H
#define VISA_FRONTEND_SEMA_H

#include "frontend/ast.h"
#include "ir/kernel.h"
#include "target/dialect.h"

/* What follows from a tree alone, whatever numbers it is compiled with, modules of other files left out. */
typedef struct sema_survey {
    const char **called; /* names of functions that others call, the host's left out; sorted */
    size_t called_count;
    unsigned dialects; /* those, of the releases that were meant, that have all that is written: one at least */
    bool mixed;        /* words of releases that have no other in common */
} sema_survey;

/* `dialects`: the releases that may be meant (frontend/dialect.h); 0: all. Lives in the arena. */
const sema_survey *sema_survey_of(const ast *file, unsigned dialects, arena *a);
/* The same of a file by those of its parts in their order, each of all releases; NULL: one must be made of the whole. */
const sema_survey *sema_survey_join(const sema_survey *const *parts, size_t count, arena *a);

typedef struct sema_options {
    const char *only; /* the one kernel or dataflow item to read; NULL: all. When it is not there, `left_out` of the module has what is. */
    /* The items of `mod x;` (the AST_MOD node): an AST_FILE, or NULL when it was diagnosed. NULL: such modules are empty. */
    const ast *(*load)(void *user, const ast *module);
    void *user;
    struct source_index *index; /* frontend/index.h: filled; NULL: nobody will ask */
    /* What follows, for each kernel as soon as it is there, before the next one is read; NULL: nothing. What a kernel is made of lives in
     * `kernels` (NULL: with the rest), and of what is there the next one uses nothing: kernel_forget, and the arena may be rewound. */
    void (*done)(void *user, kernel *k);
    arena *kernels;
    /* Is the file's kernel of that number to be read? `text`: its function. The others are in the module by their names alone. NULL: all
     * are. */
    bool (*takes)(void *user, size_t number, src_range text);
    /* A kernel that nobody asks about now is named, and its body is not read. `d`: the release of the file; `mixed`: it has words that this
     * one has not. Called for every kernel, before it is read. NULL: all are read. */
    bool (*passes_over)(void *user, const ast *fn, dialect d, bool mixed);
    const sema_survey *survey; /* of the file; NULL: nobody has made one */
    const char *const *called; /* names of functions that text calls which is not there */
    size_t called_count;
    const dialect *dialect; /* the one release that the file is written in; NULL: the text tells it */
} sema_options;

/* All kernels of a file, in source order. A kernel with errors is in the module with `bad` set. A function that others call, the host's
 * left out, and that is no #[device] function is compiled where it is called. */
module *sema_module(const ast *file, mapping_context *mappings, arena *a, diag_list *diags, const sema_options *options);

#endif
