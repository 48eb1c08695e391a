/* The state of one expansion, and what the files of it call of each other: hidden behind frontend/expand.h.
 *
 * expand.c puts texts in place of nodes, flow.c those of `match`, `while` and `loop`. */
#ifndef VISA_FRONTEND_EXPAND_STATE_H
#define VISA_FRONTEND_EXPAND_STATE_H

#include "frontend/expand.h"
#include "frontend/macro.h"

/* A text that was put together: file `file` of the map. */
typedef struct expansion {
    int file;
    pieced_text text;
    src_range call; /* SRC_NOWHERE: no macro made it, only a form of what is there */
    const char *macro;
} expansion;

/* A trait of the file, whose functions and constants are those of each `impl` of it that has none of their name. */
typedef struct own_trait {
    const char *name;
    token_text_list text;
    uint32_t open;
} own_trait;

struct expander {
    source_map *sources;
    arena *arena;
    diag_list *diags;
    token_scanner *scanner;
    macro **macros;
    size_t macro_count, macro_capacity;
    expansion *expansions;
    size_t count, capacity;
    own_trait *traits;
    size_t trait_count, trait_capacity;
    const ast *items; /* a module's block: what stands last in it is no value */
};

/* The AST_FILE of a text; what is wrong with it is added to `diags`. */
ast *expand_parse(expander *e, expansion x, diag_list *diags);
/* What stands in place of a node. */
const ast *expand_walk(expander *e, const ast *node);
token_scanner *expand_scanner(expander *e);
/* Where tokens [begin, end) of a text are written. */
src_range expand_places(const token_text_list *t, uint32_t begin, uint32_t end);

#endif
