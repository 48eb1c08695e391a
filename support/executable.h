/* Files that belong to the running executable.
 *
 * The one idea: a build has them next to it, an installation in a folder of its own, and both are found from where the executable is, so
 * that either can be moved. */
#ifndef VISA_SUPPORT_EXECUTABLE_H
#define VISA_SUPPORT_EXECUTABLE_H

#include "support/arena.h"

/* The path of `file`, or NULL: it is in neither place. */
const char *executable_file(const char *file, arena *a);

#endif
