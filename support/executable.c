#define _GNU_SOURCE /* realpath */

#include "support/executable.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

/* NULL: not known. Where /proc is not mounted, by the name under which it was started. */
static const char *executable_folder(arena *a)
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

const char *executable_file(const char *file, arena *a)
{
    static const char *const places[] = {"", VISA_PLUGINS "/"};
    const char *folder = executable_folder(a);
    for (size_t i = 0; folder && i < sizeof places / sizeof *places; i++) {
        const char *path = arena_printf(a, "%s/%s%s", folder, places[i], file);
        if (access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}
