/* Which release of the language a text is written in.
 *
 * The one idea: it is not declared, every call shows it. Each call of a stage, each type of a stream and each device parameter is of some
 * releases (FORM, target/engines.def; WORD, target/dialect.def); the text is of the newest release that has them all. Where two contradict
 * each other the first counts. */
#ifndef VISA_FRONTEND_DIALECT_H
#define VISA_FRONTEND_DIALECT_H

#include "frontend/ast.h"
#include "target/dialect.h"

/* The releases of `set` that have all that stands below the node: never empty when `set` is not. *mixed: something stands there that is of
 * none of them. */
unsigned dialect_narrow(unsigned set, const ast *node, bool *mixed, arena *a);

#endif
