/* The syntax tree.
 *
 * The one idea: one uniform node. What a kind's kids, text and value mean is stated by its row of
 * frontend/ast.def; a missing optional kid is a node of kind AST_NONE (never NULL), so every position is
 * fixed and no reader counts. A node of kind AST_ERROR stands for text that was diagnosed already: whoever
 * meets it gives up on the construct silently.
 *
 * Nodes live in the arena of the compilation and are not changed once the parser returned them. Trees are at
 * most NESTING_MAX levels deep (deeper ones are a diagnostic), so recursion over them is safe. */
#ifndef VISA_FRONTEND_AST_H
#define VISA_FRONTEND_AST_H

#include <stdbool.h>

#include "support/arena.h"
#include "support/budget.h"
#include "support/diag.h"

typedef enum ast_kind {
#define AST(symbol, name, layout) AST_##symbol,
#include "frontend/ast.def"
#undef AST
    AST_KIND_COUNT
} ast_kind;

typedef struct ast {
    ast_kind kind : 16;  /* a file of many kernels is mostly nodes: each is 56 bytes in its arena */
    unsigned depth : 16; /* levels of the tree below and including this node */
    uint32_t kid_count;
    src_range range;      /* the whole construct, with the brackets around it if there are any */
    src_range name_range; /* the name, method or operator alone; equals range when the kind has none */
    const char *text;     /* never NULL; "" when the kind has none */
    int64_t value;
    struct ast **kids; /* never holds NULL */
} ast;

/* value of an AST_FN node: any of these together. */
typedef enum ast_fn_flag { AST_FN_ASYNC = 1, AST_FN_UNSAFE = 2, AST_FN_CONST = 4 } ast_fn_flag;

/* value of an AST_MOD node: it holds the functions of an `impl` (frontend/expand.h). A type may have several. */
enum { AST_MOD_OF_TYPE = 1 };
/* value of a parameter that an `impl` has and its type has not (AST_GENERICS). */
enum { AST_OF_NO_ARGUMENT = -1 };
/* value of an AST_TYPE_QUALIFIED node that is no type. */
enum { AST_QUALIFIED_VALUE = 1 };

const char *ast_kind_name(ast_kind kind);

/* What a block gives that ends in this expression: that of a `return`, or itself. */
const ast *ast_given(const ast *expression);
/* The statement after its pins (AST_AFTER). */
const ast *ast_statement(const ast *node);

/* The kid at that position, or a node of kind AST_NONE when there are fewer. Never NULL. */
const ast *ast_kid(const ast *node, uint32_t position);
/* Of an AST_PATH or AST_TYPE_PATH its last AST_SEGMENT; NULL: another kind of node. */
const ast *ast_last_segment(const ast *path);
/* Of the elements of a pattern, its kids from `first` on, the position of the `..`, or of `name @ ..`; their number: there is none. */
uint32_t ast_pattern_rest(const ast *pattern, uint32_t first);
/* Of an AST_FN its first attribute `#[name..]`; NULL: it has none. */
const ast *ast_attribute(const ast *fn, const char *name);
static inline bool ast_is(const ast *node, ast_kind kind)
{
    return node->kind == kind;
}

/* Same kinds, texts, values and kids; ranges do not matter. */
bool ast_equal(const ast *a, const ast *b);

/* The node in the input language, in one canonical spelling. What it prints parses back to an equal tree. */
const char *ast_text(const ast *node, arena *a);

/* The tree with `size` in place of the expression of each const item and the size of each axis called `name`, in modules
 * too; what does not change is shared. *found: there was one. */
const ast *ast_with_number(const ast *node, const char *name, int64_t size, arena *a, bool *found);
/* The names that it finds, in order, ended by NULL. */
const char *const *ast_number_names(const ast *tree, arena *a);

/* For tests and --emit=ast: one node per line, indented, with kind, text and value. */
const char *ast_dump(const ast *node, arena *a);

/* ---- Construction (the parser's) ---- */

ast *ast_new(arena *a, ast_kind kind, src_range range);
/* With these kids. */
ast *ast_new_of(arena *a, ast_kind kind, src_range range, ast *const *kids, size_t count);
/* The node that ast_kid gives where there is no kid, for a place that holds nothing and is nowhere. Nobody changes it. */
ast *ast_no_kid(void);
/* Appends a kid; the caller keeps `depth` of the result within NESTING_MAX. */
void ast_push(arena *a, ast *node, ast *kid);
void ast_push_all(arena *a, ast *node, ast *const *kids, size_t count);

#endif
