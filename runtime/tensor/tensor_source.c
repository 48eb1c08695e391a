#include "runtime/tensor/tensor_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "runtime/tensor/numeric.h"
#include "support/strbuf.h"

enum { SHOWN_TEXT = 80 }; /* bytes of a file's text in a message */

const char *tensor_source_shown(const tensor_source *s, const char *text, size_t bytes)
{
    strbuf b;
    strbuf_init(&b, s->arena);
    for (size_t i = 0; i < bytes && i < SHOWN_TEXT; i++)
        strbuf_printf(&b, text[i] < 0x20 || text[i] > 0x7e ? "\\x%02x" : "%c", (unsigned char)text[i]);
    if (bytes > SHOWN_TEXT)
        strbuf_puts(&b, "...");
    return b.text;
}

bool tensor_source_damaged(tensor_source *s, int64_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(s->arena, format, args);
    va_end(args);
    diag_add(s->diags, E_TENSOR_FILE, SRC_NOWHERE, "%s: byte offset %" PRId64 ": %s", s->name, offset, text);
    return false;
}

bool tensor_source_system_fault(tensor_source *s, int error)
{
    diag_add(s->diags, E_FILE_READ, SRC_NOWHERE, "%s: %s", s->name, error ? strerror(error) : "read failed");
    return false;
}

bool tensor_source_take(tensor_source *s, void *to, size_t bytes, const char *what)
{
    errno = 0;
    size_t got = bytes ? fread(to, 1, bytes, s->file) : 0;
    s->at += (int64_t)got;
    if (got == bytes)
        return true;
    if (ferror(s->file))
        return tensor_source_system_fault(s, errno);
    return tensor_source_damaged(s, s->at, "the file ends inside %s (%zu of its %zu bytes are there)", what, got, bytes);
}

bool tensor_source_skip(tensor_source *s, int64_t bytes)
{
    if (s->size >= 0 && fseeko(s->file, bytes, SEEK_CUR) == 0) {
        s->at += bytes;
        return true;
    }
    unsigned char scratch[4096];
    for (size_t part; bytes > 0; bytes -= (int64_t)part) {
        part = bytes < (int64_t)sizeof scratch ? (size_t)bytes : sizeof scratch;
        if (!tensor_source_take(s, scratch, part, "the data before the tensor"))
            return false;
    }
    return true;
}

/* The data that follows must have `bytes` bytes; where the file's size is known this comes before any
 * allocation. */
bool tensor_source_check_rest(tensor_source *s, int64_t bytes)
{
    if (s->size < 0 || s->size - s->at == bytes)
        return true;
    return tensor_source_damaged(s, s->at, "%" PRId64 " bytes of data follow, %" PRId64 " are expected", s->size - s->at, bytes);
}

bool tensor_source_check_end(tensor_source *s, int64_t expected)
{
    if (s->size >= 0)
        return true; /* check_rest has compared the sizes */
    if (fgetc(s->file) == EOF)
        return ferror(s->file) ? tensor_source_system_fault(s, errno) : true;
    return tensor_source_damaged(s, s->at, "more data follows than the expected %" PRId64 " bytes", expected);
}

static bool new_tensor(tensor_source *s, const tensor_type *type, tensor *out)
{
    if (tensor_new(type, s->arena, out))
        return true;
    diag_add(s->diags, E_FILE_READ, SRC_NOWHERE, "%s: no memory for a tensor %s of %s", s->name, tensor_shape_text(type, s->arena),
             dtype_row_of(type->dtype)->name);
    return false;
}

static bool same_shape(const tensor_type *a, const tensor_type *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

bool tensor_source_check_shape(tensor_source *s, const tensor_type *found)
{
    const tensor_type *want = s->want;
    int64_t *shape = ARENA_ARRAY(s->arena, int64_t, (size_t)want->rank + 1);
    tensor_type squeezed = {.rank = 0, .shape = shape};
    for (int i = 0; i < want->rank; i++)
        if (want->shape[i] != 1)
            shape[squeezed.rank++] = want->shape[i];
    bool same = same_shape(found, want) || same_shape(found, &squeezed);
    if (!same)
        diag_add(s->diags, E_TENSOR_SHAPE, SRC_NOWHERE, "%s: the file's shape is %s, the port's is %s", s->name,
                 tensor_shape_text(found, s->arena), tensor_shape_text(want, s->arena));
    return same;
}

/* Is it a float that an f32 can be rounded to? */
static bool is_narrow_float(const tensor_type *t)
{
    return dtype_row_of(t->dtype)->kind == DTYPE_KIND_FLOAT && dtype_row_of(t->dtype)->bits < 32;
}

bool tensor_source_takes_f32(tensor_source *s)
{
    s->is_f32 = true;
    if (!s->rounds || !is_narrow_float(s->want))
        return false;
    tensor_type *f32 = ARENA_NEW(s->arena, tensor_type);
    *f32 = *s->want;
    f32->dtype = DTYPE_F32;
    s->want = f32;
    return true;
}

bool tensor_source_is_buffer(const tensor_source *s)
{
    return s->want->dtype == DTYPE_F8E4M3 && !s->want->names;
}

bool tensor_source_type_mismatch(tensor_source *s, const char *found, const char *accepted)
{
    bool is_buffer = tensor_source_is_buffer(s);
    bool could_round = s->is_f32 && is_narrow_float(s->want) && !is_buffer;
    diag *d = diag_add(s->diags, E_TENSOR_TYPE, SRC_NOWHERE, "%s: the file's element type is %s, %s", s->name, found,
                       is_buffer ? "a buffer's are bytes" : arena_printf(s->arena, "the port's is %s", dtype_row_of(s->want->dtype)->name));
    diag_help(s->diags, d, "store it as %s%s", accepted, could_round ? ", or give --convert, which rounds it" : "");
    return false;
}

/* ---- elements ---- */

int64_t tensor_source_element_bytes(dtype t)
{
    return dtype_row_of(t)->bits < 8 ? 1 : dtype_row_of(t)->bits / 8;
}

/* What elements of a type can be, where they are not all that the bytes of a file can be; of f4e2m1 codes. */
static bool range_of(dtype t, bool is_unsigned, int *low, int *high)
{
    const dtype_row *row = dtype_row_of(t);
    bool is_signed = t == DTYPE_I4 || t == DTYPE_I8;
    *high = (1 << (row->bits - is_signed)) - 1;
    *low = is_signed ? -*high - 1 : 0;
    return row->bits < 8 || (t == DTYPE_I8 && is_unsigned) || (t == DTYPE_U8 && !is_unsigned);
}

/* Checks that `count` bytes, which begin at element `first`, are values of the wanted type. */
static bool values_fit(tensor_source *s, const unsigned char *bytes, int64_t count, bool is_unsigned, int64_t first)
{
    int low, high;
    range_of(s->want->dtype, is_unsigned, &low, &high);
    for (int64_t i = 0; i < count; i++) {
        int value = is_unsigned ? bytes[i] : (int8_t)bytes[i];
        if (value < low || value > high) {
            diag_add(s->diags, E_TENSOR_TYPE, SRC_NOWHERE, "%s: byte offset %" PRId64 ": element %" PRId64 " is %d, %s %s holds %d to %d",
                     s->name, s->at - count + i, first + i, value, s->want->dtype == DTYPE_F4E2M1 ? "a code of" : "an",
                     dtype_row_of(s->want->dtype)->name, low, high);
            return false;
        }
    }
    return true;
}

/* Elements of 4 bits from a file: piece by piece, so that the unpacked elements are never all in memory. */
static bool take_nibbles(tensor_source *s, bool is_unsigned, tensor *t)
{
    unsigned char piece[8192];
    int64_t elements = tensor_elements(&t->type);
    for (int64_t at = 0, count; at < elements; at += count) {
        count = elements - at < (int64_t)sizeof piece ? elements - at : (int64_t)sizeof piece;
        if (!tensor_source_take(s, piece, (size_t)count, "the data") || !values_fit(s, piece, count, is_unsigned, at))
            return false;
        numeric_i4_pack(piece, count, t->bytes + at / 2);
    }
    return true;
}

/* Takes the elements of a tensor that was just made. */
static bool take_elements(tensor_source *s, bool is_unsigned, tensor *t)
{
    int low, high;
    if (dtype_row_of(t->type.dtype)->bits < 8)
        return take_nibbles(s, is_unsigned, t);
    if (!tensor_source_take(s, t->bytes, t->size, "the data"))
        return false;
    return dtype_row_of(t->type.dtype)->bits > 8 || !range_of(t->type.dtype, is_unsigned, &low, &high) ||
           values_fit(s, t->bytes, (int64_t)t->size, is_unsigned, 0);
}

bool tensor_source_read(tensor_source *s, const tensor_type *type, bool is_unsigned, tensor *out)
{
    if (!new_tensor(s, type, out))
        return false;
    if (take_elements(s, is_unsigned, out))
        return true;
    tensor_free(out);
    return false;
}

/* A number of 64 bits has an axis of its words (frontend: `NAME.word`). */
static bool has_words(const tensor_type *t)
{
    static const char word[] = ".word";
    size_t length = t->rank == 1 && t->names ? strlen(t->names[0]) : 0;
    return length >= sizeof word && t->shape[0] == 2 && strcmp(t->names[0] + length - (sizeof word - 1), word) == 0;
}

bool tensor_source_wants_number(const tensor_source *s)
{
    const tensor_type *t = s->want;
    return (t->rank == 0 && (t->dtype == DTYPE_I32 || t->dtype == DTYPE_U8)) || (t->dtype == DTYPE_I32 && has_words(t));
}

bool tensor_source_read_number(tensor_source *s, unsigned bytes, bool is_signed, tensor *out)
{
    unsigned char stored[8] = {0};
    unsigned bits = (unsigned)dtype_row_of(s->want->dtype)->bits << s->want->rank;
    if (!tensor_source_check_rest(s, bytes) || !tensor_source_take(s, stored, bytes, "the data") || !tensor_source_check_end(s, bytes))
        return false;
    bool negative = is_signed && stored[bytes - 1] >> 7;
    uint64_t value = negative ? UINT64_MAX : 0;
    for (unsigned i = bytes; i-- > 0;)
        value = value << 8 | stored[i];
    bool fits = negative ? bits == 64 || value >= UINT64_MAX << (bits - 1) : bits == 64 || value >> bits == 0;
    if (!fits) {
        const char *shown = negative ? arena_printf(s->arena, "%" PRId64, (int64_t)value) : arena_printf(s->arena, "%" PRIu64, value);
        diag_add(s->diags, E_TENSOR_TYPE, SRC_NOWHERE, "%s: the number is %s, the port has %u bits", s->name, shown, bits);
        return false;
    }
    if (!new_tensor(s, s->want, out))
        return false;
    for (unsigned i = 0; i < bits / 8; i++)
        out->bytes[i] = (unsigned char)(value >> 8 * i);
    return true;
}

int64_t tensor_source_bytes(tensor_source *s, bool raw)
{
    int64_t elements = tensor_elements(s->want), size = tensor_bytes(s->want->dtype, elements);
    if (size >= 0 && !raw && dtype_row_of(s->want->dtype)->bits < 8)
        size = elements;
    if (size < 0)
        diag_add(s->diags, E_TENSOR_SHAPE, SRC_NOWHERE, "%s: a tensor %s is larger than any file", s->name,
                 tensor_shape_text(s->want, s->arena));
    return size;
}

bool tensor_source_read_raw(tensor_source *s, tensor *out)
{
    if (!new_tensor(s, s->want, out))
        return false;
    if (tensor_source_take(s, out->bytes, out->size, "the data"))
        return true;
    tensor_free(out);
    return false;
}
