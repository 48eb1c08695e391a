/* One of several by name: a kernel, an option, a method.
 *
 * The one idea: who names something that is not there is told the nearest name that is, or all of them. */
#ifndef VISA_SUPPORT_CHOICE_H
#define VISA_SUPPORT_CHOICE_H

#include "support/diag.h"

/* Is `candidate` what a misspelt `name` may mean, and nearer than *best? Then *best is its distance; begin with CHOICE_FAR. */
#define CHOICE_FAR (~0u)
bool choice_is_nearer(const char *name, const char *candidate, unsigned *best);
/* The nearest of a NULL-ended list, or NULL. */
const char *choice_near(const char *name, const char *const *known);

/* Where the name is among so many; `count`: it is none of them. */
size_t choice_index(const char *const *known, size_t count, const char *name);
static inline bool choice_has(const char *const *known, size_t count, const char *name)
{
    return choice_index(known, count, name) < count;
}

/* "a, b, c" of a NULL-ended list; "" when it is empty. */
const char *choice_list(arena *a, const char *const *known);
/* No kernel is called `given`, or no name was given (NULL) where there is not exactly one. `file`: where they were looked for,
 * NULL: "the file"; `known`: all of them, NULL-ended. */
void choice_refuse_kernel(diag_list *diags, const char *file, const char *given, const char *const *known);

#endif
