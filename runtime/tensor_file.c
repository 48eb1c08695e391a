#include "runtime/tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/npy.h"
#include "runtime/numeric.h"
#include "runtime/safetensors.h"
#include "runtime/tensor_source.h"

typedef enum file_kind { FILE_RAW, FILE_NPY, FILE_SAFETENSORS } file_kind;

typedef struct file_spec {
    file_kind kind;
    const char *path;   /* "-": standard input or output */
    const char *tensor; /* .safetensors; NULL: not named */
} file_spec;

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static file_spec file_spec_of(const char *spec, arena *a)
{
    static const char mark[] = ".safetensors:";
    const char *named = strstr(spec, mark);
    if (named) {
        size_t path_bytes = (size_t)(named - spec) + sizeof mark - 2;
        return (file_spec){FILE_SAFETENSORS, arena_strndup(a, spec, path_bytes), spec + path_bytes + 1};
    }
    if (ends_with(spec, ".safetensors"))
        return (file_spec){FILE_SAFETENSORS, spec, NULL};
    return (file_spec){ends_with(spec, ".npy") ? FILE_NPY : FILE_RAW, spec, NULL};
}

/* ---- reading ---- */

static bool read_raw(tensor_source *s, tensor *out)
{
    int64_t bytes = tensor_source_bytes(s, true);
    if (bytes < 0)
        return false;
    if (s->size >= 0 && s->size != bytes) {
        diag_add(s->diags, E_TENSOR_SHAPE, SRC_NOWHERE,
                 "%s: the file has %" PRId64 " bytes, the port's tensor %s of %s has %" PRId64, s->name,
                 s->size, tensor_shape_text(s->want, s->arena), dtype_row_of(s->want->dtype)->name, bytes);
        return false;
    }
    if (!tensor_source_read_raw(s, out))
        return false;
    if (tensor_source_check_end(s, bytes))
        return true;
    tensor_free(out);
    return false;
}

static bool read_source(tensor_source *s, const file_spec *f, tensor *out)
{
    switch (f->kind) {
    case FILE_NPY:
        return npy_read(s, out);
    case FILE_SAFETENSORS:
        return safetensors_read(s, f->tensor, out);
    case FILE_RAW:
        break;
    }
    return read_raw(s, out);
}

/* Bytes of a file from its beginning, or -1 when it has no size. */
static int64_t file_size(FILE *file)
{
    struct stat st;
    return fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

bool tensor_file_read(const char *spec, const tensor_type *want, arena *a, diag_list *diags, tensor *out)
{
    *out = (tensor){0};
    file_spec f = file_spec_of(spec, a);
    bool standard = strcmp(f.path, "-") == 0;
    tensor_source s = {.file = stdin,
                       .name = standard ? "standard input" : f.path,
                       .size = -1,
                       .want = want,
                       .arena = a,
                       .diags = diags};
    if (!standard && !(s.file = fopen(f.path, "rb")))
        return tensor_source_system_fault(&s, errno);
    if (!standard)
        s.size = file_size(s.file);
    bool done = read_source(&s, &f, out);
    if (!standard)
        fclose(s.file);
    return done;
}

bool tensor_file_read_image(const char *spec, const unsigned char *image, size_t image_bytes,
                            const tensor_type *want, arena *a, diag_list *diags, tensor *out)
{
    *out = (tensor){0};
    file_spec f = file_spec_of(spec, a);
    tensor_source s = {
        .name = f.path, .size = (int64_t)image_bytes, .want = want, .arena = a, .diags = diags};
    /* fmemopen refuses an empty image; a missing byte more does no harm, since size is what is believed. */
    s.file =
        fmemopen(image_bytes ? (void *)(uintptr_t)image : (void *)"", image_bytes ? image_bytes : 1, "rb");
    if (!s.file)
        return tensor_source_system_fault(&s, errno);
    if (image_bytes == 0)
        (void)fgetc(s.file);
    bool done = read_source(&s, &f, out);
    fclose(s.file);
    return done;
}

/* ---- writing ---- */

/* What stands before the data. */
typedef struct file_head {
    const char *bytes;
    size_t size;
} file_head;

static bool file_head_of(const file_spec *f, const tensor *t, arena *a, diag_list *diags, file_head *out)
{
    *out = (file_head){"", 0};
    if (f->kind == FILE_NPY)
        out->bytes = npy_head(&t->type, a, &out->size);
    if (f->kind != FILE_SAFETENSORS)
        return true;
    if (f->tensor && *f->tensor && strcmp(f->tensor, "__metadata__") != 0)
        out->bytes = safetensors_head(f->tensor, &t->type, a, &out->size);
    if (out->size)
        return true;
    diag *d = diag_add(diags, E_TENSOR_FILE, SRC_NOWHERE, "%s: a tensor in a .safetensors file needs a name",
                       f->path);
    diag_help(diags, d, "write FILE.safetensors:NAME, with a NAME of UTF-8 text");
    return false;
}

static bool put_i4(FILE *file, const tensor *t)
{
    unsigned char piece[8192];
    int64_t elements = tensor_elements(&t->type);
    for (int64_t at = 0, count; at < elements; at += count) {
        count = elements - at < (int64_t)sizeof piece ? elements - at : (int64_t)sizeof piece;
        numeric_i4_unpack(t->bytes + at / 2, count, piece);
        if (fwrite(piece, 1, (size_t)count, file) != (size_t)count)
            return false;
    }
    return true;
}

/* False with errno set. */
static bool put_tensor(FILE *file, const file_spec *f, const file_head *head, const tensor *t)
{
    if (fwrite(head->bytes, 1, head->size, file) != head->size)
        return false;
    if (f->kind != FILE_RAW && t->type.dtype == DTYPE_I4)
        return put_i4(file, t) && fflush(file) == 0;
    return fwrite(t->bytes, 1, t->size, file) == t->size && fflush(file) == 0;
}

/* A new file beside `path`, of a name that nothing has. NULL with errno set. */
static FILE *temporary_beside(const char *path, mode_t mode, arena *a, const char **name)
{
    const char *slash = strrchr(path, '/');
    int directory_bytes = slash ? (int)(slash - path) + 1 : 0;
    for (int attempt = 0; attempt < 1000; attempt++) {
        *name = arena_printf(a, "%.*s.visa-%ld-%d.tmp", directory_bytes, path, (long)getpid(), attempt);
        int fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno == EEXIST)
            continue;
        FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
        if (fd >= 0 && !file) {
            close(fd);
            unlink(*name);
        }
        return file;
    }
    return NULL;
}

static bool write_and_rename(const file_spec *f, const char *path, mode_t mode, const file_head *head,
                             const tensor *t, arena *a)
{
    const char *name;
    FILE *file = temporary_beside(path, mode, a, &name);
    if (!file)
        return false;
    bool done = put_tensor(file, f, head, t);
    int error = errno;
    if (fclose(file) != 0 && done) {
        done = false;
        error = errno;
    }
    if (done && rename(name, path) != 0) {
        done = false;
        error = errno;
    }
    if (!done)
        unlink(name);
    errno = error;
    return done;
}

static bool write_in_place(const file_spec *f, const file_head *head, const tensor *t)
{
    FILE *file = fopen(f->path, "wb");
    if (!file)
        return false;
    bool done = put_tensor(file, f, head, t);
    int error = errno;
    if (fclose(file) != 0 && done)
        return false;
    errno = error;
    return done;
}

/* A device must not be replaced by a file, and a link stays a link. */
static bool write_file(const file_spec *f, const file_head *head, const tensor *t, arena *a)
{
    struct stat st;
    if (strcmp(f->path, "-") == 0)
        return put_tensor(stdout, f, head, t);
    if (stat(f->path, &st) != 0)
        return write_and_rename(f, f->path, 0666, head, t, a);
    if (!S_ISREG(st.st_mode))
        return write_in_place(f, head, t);
    char *resolved = realpath(f->path, NULL);
    if (!resolved)
        return false;
    bool done = write_and_rename(f, resolved, st.st_mode & 0777, head, t, a);
    int error = errno;
    free(resolved);
    errno = error;
    return done;
}

bool tensor_file_write(const char *spec, const tensor *t, arena *a, diag_list *diags)
{
    file_spec f = file_spec_of(spec, a);
    file_head head;
    if (!file_head_of(&f, t, a, diags, &head))
        return false;
    errno = 0;
    if (write_file(&f, &head, t, a))
        return true;
    diag_add(diags, E_FILE_READ, SRC_NOWHERE, "%s: %s", strcmp(f.path, "-") ? f.path : "standard output",
             errno ? strerror(errno) : "write failed");
    return false;
}
