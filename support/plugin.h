/* Libraries that a program loads only when it is asked for what is in them.
 *
 * The one idea: what is heavy (LLVM) or foreign (MPI) is loaded by dlopen, and is found in one way: where an environment variable says,
 * else next to the running executable (a build), else in the folder of the installation that belongs to that executable or to the library
 * that asks (libvisa.so), else where the dynamic linker looks. */
#ifndef VISA_SUPPORT_PLUGIN_H
#define VISA_SUPPORT_PLUGIN_H

#include <stdbool.h>

#include "support/arena.h"

/* `name` without its ending: "libvisa_reference". `global`: its symbols are for libraries that it loads itself. NULL: dlerror() says why.
 */
void *plugin_open(const char *name, const char *variable, bool global, arena *a);
/* A function of it, to be copied into a pointer; NULL: there is none. */
void *plugin_function(void *plugin, const char *name);
const char *plugin_error(void);

#endif
