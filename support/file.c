#include "support/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/shown.h"

/* What is read whole is held whole. A stream that does not say how long it is may have no end (/dev/zero), and a file may be sparse. */
enum { MOST_BYTES = 1 << 30 };

/* NULL with errno set. What is asked for first is what a file says that it has, and a byte to see its end. */
static unsigned char *read_whole(int in, size_t *size)
{
    struct stat file;
    bool sized = fstat(in, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0;
    if (sized && file.st_size > MOST_BYTES) {
        errno = EFBIG;
        return NULL;
    }
    size_t capacity = sized ? (size_t)file.st_size + 1 : 1 << 16, count = 0;
    unsigned char *bytes = malloc(capacity);
    ssize_t more = 1;
    while (bytes && more > 0) {
        if (count == capacity) {
            unsigned char *grown = capacity < MOST_BYTES ? realloc(bytes, 2 * capacity) : NULL;
            if (!grown) {
                free(bytes);
                errno = capacity < MOST_BYTES ? ENOMEM : EFBIG;
                return NULL;
            }
            bytes = grown;
            capacity *= 2;
        }
        more = read(in, bytes + count, capacity - count);
        count += more > 0 ? (size_t)more : 0;
    }
    if (bytes && more < 0) {
        int error = errno;
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
    int in = standard ? STDIN_FILENO : open(path, O_RDONLY);
    unsigned char *bytes = in >= 0 ? read_whole(in, size) : NULL;
    int error = errno;
    if (in >= 0 && !standard)
        close(in);
    if (!bytes)
        diag_add(diags, E_FILE_READ, SRC_NOWHERE, "cannot read %s: %s", shown_input(path, diags->arena), strerror(error));
    return bytes;
}
