#define _GNU_SOURCE /* dladdr */

#include "support/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__APPLE__)
#define ENDING ".dylib"
#else
#define ENDING ".so"
#endif

/* The directory of the running executable, or NULL. Where /proc is not mounted, by the name under which it was started. */
static const char *executable_directory(arena *a)
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    if (bytes > 0)
        path[bytes] = '\0';
#if defined(__linux__)
    const char *started = (const char *)getauxval(AT_EXECFN);
    if (bytes <= 0 && started && realpath(started, path))
        bytes = (ssize_t)strlen(path);
#endif
    char *slash = bytes > 0 ? strrchr(path, '/') : NULL;
    return slash ? arena_strndup(a, path, (size_t)(slash - path)) : NULL;
}

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
    const char *named = getenv(variable), *here = executable_directory(a);
    int how = RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL);
    if (named && *named)
        return dlopen(named, how);
    const char *own = own_directory(a);
    const char *places[] = {here, here ? arena_printf(a, "%s/" VISA_PLUGINS, here) : NULL, own ? arena_printf(a, "%s/visac", own) : NULL,
                            own};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *path = places[i] ? arena_printf(a, "%s/%s" ENDING, places[i], name) : NULL;
        if (path && access(path, F_OK) == 0)
            return dlopen(path, how);
    }
    return dlopen(arena_printf(a, "%s" ENDING, name), how);
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
