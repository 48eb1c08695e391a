#include "support/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void report(diag_list *diags, const char *action, const char *path, int error)
{
    diag_add(diags, E_FILE_READ, SRC_NOWHERE, "cannot %s %s: %s", action,
             strcmp(path, "-")        ? path
             : strcmp(action, "read") ? "standard output"
                                      : "standard input",
             strerror(error));
}

/* A stream that does not say how long it is may have no end: /dev/zero. */
enum { ENDLESS_BYTES = 1 << 30 };

/* NULL with errno set. What is asked for first is what a file says that it has, and a byte to see its end. */
static unsigned char *read_stream(FILE *in, size_t *size)
{
    struct stat file;
    bool sized = fstat(fileno(in), &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0 && (uintmax_t)file.st_size < SIZE_MAX / 2;
    size_t capacity = sized ? (size_t)file.st_size + 1 : 1 << 16, count = 0;
    unsigned char *bytes = malloc(capacity);
    errno = 0;
    while (bytes) {
        count += fread(bytes + count, 1, capacity - count, in);
        if (count < capacity)
            break;
        bool endless = !sized && capacity >= ENDLESS_BYTES;
        unsigned char *grown = endless || capacity > SIZE_MAX / 2 ? NULL : realloc(bytes, 2 * capacity);
        if (!grown) {
            free(bytes);
            errno = endless ? EFBIG : ENOMEM;
            return NULL;
        }
        bytes = grown;
        capacity *= 2;
    }
    if (bytes && ferror(in)) {
        int error = errno ? errno : EIO;
        free(bytes);
        bytes = NULL;
        errno = error;
    }
    *size = count;
    return bytes;
}

unsigned char *file_read_all(const char *path, size_t *size, diag_list *diags)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *in = standard ? stdin : fopen(path, "rb");
    unsigned char *bytes = in ? read_stream(in, size) : NULL;
    int error = errno;
    if (in && !standard)
        fclose(in);
    if (!bytes)
        report(diags, "read", path, error);
    return bytes;
}

/* 0 or the errno. */
static int write_stream(FILE *out, const void *bytes, size_t size)
{
    errno = 0;
    bool ok = fwrite(bytes, 1, size, out) == size && fflush(out) == 0;
    return ok ? 0 : errno ? errno : EIO;
}

static int write_in_place(const char *path, const void *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");
    if (!out)
        return errno;
    int error = write_stream(out, bytes, size);
    return fclose(out) && !error ? errno : error;
}

static int write_beside(const char *path, const void *bytes, size_t size, arena *a)
{
    char *beside = arena_printf(a, "%s.XXXXXX", path);
    int descriptor = mkstemp(beside), error = errno;
    if (descriptor < 0)
        return access(path, W_OK) == 0 || error == ENAMETOOLONG ? write_in_place(path, bytes, size) : error;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    FILE *out = fdopen(descriptor, "wb");
    error = out ? write_stream(out, bytes, size) : errno;
    if (out ? fclose(out) : close(descriptor))
        error = error ? error : errno;
    if (!error && rename(beside, path))
        error = errno;
    if (error)
        unlink(beside);
    return error;
}

bool file_is_same(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool file_write_all(const char *path, const void *bytes, size_t size, diag_list *diags)
{
    struct stat there;
    int error;
    if (strcmp(path, "-") == 0)
        error = write_stream(stdout, bytes, size);
    else if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) /* a device or a pipe is not replaced */
        error = write_in_place(path, bytes, size);
    else
        error = write_beside(path, bytes, size, diags->arena);
    if (error)
        report(diags, "write", path, error);
    return error == 0;
}
