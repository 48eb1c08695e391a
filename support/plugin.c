#define _GNU_SOURCE /* dladdr */

#include "support/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/executable.h"

#if defined(__APPLE__)
#define ENDING ".dylib"
#else
#define ENDING ".so"
#endif

/* The directory of the library or the executable that this function is in, or NULL. */
static const char *own_directory(arena *a)
{
    Dl_info here;
    char path[PATH_MAX];
    if (!dladdr((const void *)__func__, &here) || !here.dli_fname || !realpath(here.dli_fname, path))
        return NULL;
    return arena_strndup(a, path, (size_t)(strrchr(path, '/') - path));
}

/* A file that is there but cannot be loaded ends the search: its reason is the one to tell. */
void *plugin_open(const char *name, const char *variable, bool global, arena *a)
{
    const char *named = getenv(variable), *file = arena_printf(a, "%s" ENDING, name);
    int how = RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL);
    if (named && *named)
        return dlopen(named, how);
    const char *found = executable_file(file, a), *own = found ? NULL : own_directory(a);
    static const char *const places[] = {"/visac/", "/"};
    for (size_t i = 0; own && !found && i < sizeof places / sizeof *places; i++) {
        const char *path = arena_printf(a, "%s%s%s", own, places[i], file);
        found = access(path, F_OK) == 0 ? path : NULL;
    }
    return dlopen(found ? found : file, how);
}

void *plugin_function(void *plugin, const char *name)
{
    return dlsym(plugin, name);
}

const char *plugin_error(void)
{
    const char *why = dlerror();
    return why ? why : "no reason given";
}
