#include "support/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/shown.h"

/* What is read whole is held whole. A stream that does not say how long it is may have no end (/dev/zero), and a file may be sparse. */
enum { MOST_BYTES = 1 << 30 };

/* NULL with errno set. What is asked for first is what a file says that it has, and a byte to see its end. */
static unsigned char *read_stream(FILE *in, size_t *size)
{
    struct stat file;
    bool sized = fstat(fileno(in), &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0;
    if (sized && file.st_size > MOST_BYTES) {
        errno = EFBIG;
        return NULL;
    }
    size_t capacity = sized ? (size_t)file.st_size + 1 : 1 << 16, count = 0;
    unsigned char *bytes = malloc(capacity);
    errno = 0;
    while (bytes) {
        count += fread(bytes + count, 1, capacity - count, in);
        if (count < capacity)
            break;
        unsigned char *grown = capacity >= MOST_BYTES ? NULL : realloc(bytes, 2 * capacity);
        if (!grown) {
            free(bytes);
            errno = capacity >= MOST_BYTES ? EFBIG : ENOMEM;
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
        diag_add(diags, E_FILE_READ, SRC_NOWHERE, "cannot read %s: %s", shown_input(path, diags->arena), strerror(error));
    return bytes;
}
