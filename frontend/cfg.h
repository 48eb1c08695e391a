/* `#[cfg(..)]`: is an item or a statement part of the program?
 *
 * The one idea: what nobody can know stays. Known are what is false wherever kernels are compiled (`feature = ".."`, `debug_assertions`),
 * what the publisher's compiler sets (`furiosa_opt`, `backend = "npu"`), and what follows from them by `not`, `all` and `any`. */
#ifndef VISA_FRONTEND_CFG_H
#define VISA_FRONTEND_CFG_H

#include <stdbool.h>

/* The text behind `cfg`, brackets included. */
bool cfg_leaves_out(const char *predicate);
/* `cfg!(..)`: false where nobody knows. */
bool cfg_holds(const char *predicate, bool *out);

#endif
