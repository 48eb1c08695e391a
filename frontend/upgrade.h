/* A file of an older release of the language, as the newest one writes it (visac --upgrade).
 *
 * The one idea: a call is found among the forms of its stage (FORM, target/engines.def), and what the newest form of that stage takes is
 * put together from what was written, argument by meaning: `_` where nothing was written, left out what is not taken any more. A stage that
 * the newest release has before it (commit_trim, contract_time) or after it (fetch_cast) says what the passes derived of the operation.
 * Everything else of the text stays: comments, names, white space. What cannot be expressed in the newest release is refused by name
 * (E-UPGRADE). */
#ifndef VISA_FRONTEND_UPGRADE_H
#define VISA_FRONTEND_UPGRADE_H

#include "frontend/ast.h"
#include "frontend/edit.h"
#include "frontend/expand.h"
#include "frontend/source.h"
#include "ir/kernel.h"

typedef struct upgrade_input {
    const source_map *sources;
    const expander *expander;
    const ast *tree;      /* of the file, with macros expanded */
    const module *module; /* its kernels, derived as far as they are right; NULL: there are none */
    mapping_context *mappings;
    arena *arena;
    diag_list *diags;
} upgrade_input;

/* The edits of the tree's file. False: something was refused. */
bool upgrade_edits(const upgrade_input *in, edit_list *out);

#endif
