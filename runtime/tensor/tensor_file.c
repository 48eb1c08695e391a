#include "runtime/tensor/tensor_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/tensor/npy.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/safetensors.h"
#include "runtime/tensor/tensor_source.h"
#include "support/shown.h"

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
    if (bytes > 0 && s->size == tensor_elements(s->want) * (int64_t)sizeof(float) && tensor_source_takes_f32(s))
        bytes = s->size;
    if (bytes < 0)
        return false;
    if (s->size >= 0 && s->size != bytes) {
        const char *wanted = tensor_source_is_buffer(s)
                                 ? "the port's buffer"
                                 : arena_printf(s->arena, "the port's tensor %s of %s", tensor_shape_text(s->want, s->arena),
                                                dtype_row_of(s->want->dtype)->name);
        diag_add(s->diags, E_TENSOR_SHAPE, SRC_NOWHERE, "%s: the file has %" PRId64 " bytes, %s has %" PRId64, s->name, s->size, wanted,
                 bytes);
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
    case FILE_NPY: return npy_read(s, out);
    case FILE_SAFETENSORS: return safetensors_read(s, f->tensor, out);
    case FILE_RAW: break;
    }
    return read_raw(s, out);
}

/* Bytes of a file from its beginning, or -1 when it has no size. */
static int64_t file_size(FILE *file)
{
    struct stat st;
    return fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

const char *tensor_file_path(const char *spec, arena *a)
{
    return file_spec_of(spec, a).path;
}

/* Takes the elements of `t` for the wanted ones, each rounded. */
static bool round_to(dtype wanted, tensor *t, arena *a)
{
    tensor narrow;
    tensor_type type = t->type;
    type.dtype = wanted;
    bool done = tensor_new(&type, a, &narrow);
    for (int64_t i = 0, count = tensor_elements(&type); done && i < count; i++)
        numeric_from_double(wanted, narrow.bytes, i, numeric_to_double(DTYPE_F32, t->bytes, i));
    tensor_free(t);
    *t = done ? narrow : (tensor){0};
    return done;
}

bool tensor_file_read(const char *spec, const tensor_type *want, bool rounds, arena *a, diag_list *diags, tensor *out)
{
    *out = (tensor){0};
    file_spec f = file_spec_of(spec, a);
    bool standard = strcmp(f.path, "-") == 0;
    tensor_source s = {
        .file = stdin, .name = shown_input(f.path, a), .size = -1, .want = want, .rounds = rounds, .arena = a, .diags = diags};
    if (!standard && !(s.file = fopen(f.path, "rb")))
        return tensor_source_system_fault(&s, errno);
    if (!standard)
        s.size = file_size(s.file);
    bool done = read_source(&s, &f, out);
    if (!standard)
        fclose(s.file);
    if (done && out->type.dtype != want->dtype)
        return round_to(want->dtype, out, a) || tensor_source_system_fault(&s, ENOMEM);
    return done;
}

bool tensor_file_read_image(const char *spec, const unsigned char *image, size_t image_bytes, const tensor_type *want, arena *a,
                            diag_list *diags, tensor *out)
{
    *out = (tensor){0};
    file_spec f = file_spec_of(spec, a);
    tensor_source s = {.name = shown_text(f.path, a), .size = (int64_t)image_bytes, .want = want, .arena = a, .diags = diags};
    /* fmemopen refuses an empty image; a missing byte more does no harm, since size is what is believed. */
    s.file = fmemopen(image_bytes ? (void *)(uintptr_t)image : (void *)"", image_bytes ? image_bytes : 1, "rb");
    if (!s.file)
        return tensor_source_system_fault(&s, errno);
    if (image_bytes == 0)
        (void)fgetc(s.file);
    bool done = read_source(&s, &f, out);
    fclose(s.file);
    return done;
}

/* ---- writing ---- */

/* What precedes the data. */
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
    diag *d = diag_add(diags, E_TENSOR_FILE, SRC_NOWHERE, "%s: a tensor in a .safetensors file needs a name", shown_text(f->path, a));
    diag_help(diags, d, "write FILE.safetensors:NAME, with a NAME of UTF-8 text");
    return false;
}

static bool put_nibbles(output *to, const tensor *t)
{
    unsigned char piece[8192];
    int64_t elements = tensor_elements(&t->type);
    for (int64_t at = 0, count; at < elements; at += count) {
        count = elements - at < (int64_t)sizeof piece ? elements - at : (int64_t)sizeof piece;
        numeric_i4_unpack(t->type.dtype, t->bytes + at / 2, count, piece);
        if (!output_put(to, piece, (size_t)count))
            return false;
    }
    return true;
}

bool tensor_file_put(const char *spec, const tensor *t, output *to, arena *a, diag_list *diags)
{
    file_spec f = file_spec_of(spec, a);
    file_head head;
    if (!file_head_of(&f, t, a, diags, &head) || !output_put(to, head.bytes, head.size))
        return false;
    return f.kind != FILE_RAW && dtype_row_of(t->type.dtype)->bits < 8 ? put_nibbles(to, t) : output_put(to, t->bytes, t->size);
}
