#include "runtime/tensor/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "support/strbuf.h"

enum { HEADER_LIMIT = 1 << 20 }; /* bytes */

/* The dictionary of an .npy header, which is a Python literal. */
typedef struct npy_header {
    const char *text;
    size_t bytes, at;
    int64_t offset;    /* of the text in the file */
    const char *descr; /* NULL until seen */
    bool fortran_order, has_order, has_shape;
    int64_t *shape;
    size_t rank, capacity;
} npy_header;

static bool npy_fault(tensor_source *s, const npy_header *h, const char *text)
{
    return tensor_source_damaged(s, h->offset + (int64_t)h->at, ".npy header: %s", text);
}

static void npy_blanks(npy_header *h)
{
    while (h->at < h->bytes && (h->text[h->at] == ' ' || h->text[h->at] == '\t' || h->text[h->at] == '\n'))
        h->at++;
}

/* Takes one sign, after blanks, if it stands there. */
static bool npy_sign(npy_header *h, char sign)
{
    npy_blanks(h);
    if (h->at >= h->bytes || h->text[h->at] != sign)
        return false;
    h->at++;
    return true;
}

static bool npy_word(npy_header *h, const char *word)
{
    npy_blanks(h);
    size_t bytes = strlen(word);
    if (h->bytes - h->at < bytes || memcmp(h->text + h->at, word, bytes) != 0)
        return false;
    h->at += bytes;
    return true;
}

/* A string without escapes, as NumPy writes them. */
static const char *npy_string(tensor_source *s, npy_header *h)
{
    char quote = npy_sign(h, '\'') ? '\'' : npy_sign(h, '"') ? '"' : 0;
    const char *begin = h->text + h->at;
    const char *end = quote ? memchr(begin, quote, h->bytes - h->at) : NULL;
    if (!end || memchr(begin, '\\', (size_t)(end - begin)) || memchr(begin, 0, (size_t)(end - begin))) {
        npy_fault(s, h, quote ? "a string is not closed, or has an escape" : "a string is expected");
        return NULL;
    }
    h->at += (size_t)(end - begin) + 1;
    return arena_strndup(s->arena, begin, (size_t)(end - begin));
}

static bool npy_extent(tensor_source *s, npy_header *h, int64_t *extent)
{
    npy_blanks(h);
    size_t begin = h->at;
    *extent = 0;
    if (h->at < h->bytes && h->text[h->at] == '-')
        return npy_fault(s, h, "an extent is negative");
    for (; h->at < h->bytes && h->text[h->at] >= '0' && h->text[h->at] <= '9'; h->at++)
        if (__builtin_mul_overflow(*extent, 10, extent) || __builtin_add_overflow(*extent, h->text[h->at] - '0', extent))
            return npy_fault(s, h, "an extent is past 2^63");
    if (h->at == begin)
        return npy_fault(s, h, "an extent is expected");
    if (h->at < h->bytes && h->text[h->at] == 'L') /* Python 2's long integers */
        h->at++;
    return true;
}

static bool npy_shape(tensor_source *s, npy_header *h)
{
    if (!npy_sign(h, '('))
        return npy_fault(s, h, "a shape is expected");
    while (!npy_sign(h, ')')) {
        int64_t extent;
        if (!npy_extent(s, h, &extent))
            return false;
        ARENA_PUSH(s->arena, h->shape, h->rank, h->capacity, extent);
        bool comma = npy_sign(h, ',');
        if (!comma && (h->rank == 1 || !npy_sign(h, ')')))
            return npy_fault(s, h, "a comma is expected in the shape");
        if (!comma)
            break;
    }
    h->has_shape = true;
    return true;
}

static bool npy_item(tensor_source *s, npy_header *h)
{
    size_t begin = h->at;
    const char *key = npy_string(s, h);
    if (!key)
        return false;
    if (!npy_sign(h, ':'))
        return npy_fault(s, h, "a colon is expected");
    if (strcmp(key, "descr") == 0 && !h->descr) {
        if (npy_sign(h, '['))
            return npy_fault(s, h, "structured elements are not supported");
        return (h->descr = npy_string(s, h)) != NULL;
    }
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
        h->has_order = true;
        h->fortran_order = npy_word(h, "True");
        return h->fortran_order || npy_word(h, "False") || npy_fault(s, h, "True or False is expected");
    }
    if (strcmp(key, "shape") == 0 && !h->has_shape)
        return npy_shape(s, h);
    h->at = begin;
    return npy_fault(s, h, "a key is unknown or stands twice");
}

static bool npy_dictionary(tensor_source *s, npy_header *h)
{
    if (!npy_sign(h, '{'))
        return npy_fault(s, h, "a dictionary is expected");
    while (!npy_sign(h, '}')) {
        if (!npy_item(s, h))
            return false;
        if (npy_sign(h, ','))
            continue;
        if (!npy_sign(h, '}'))
            return npy_fault(s, h, "a comma or } is expected");
        break;
    }
    npy_blanks(h);
    if (h->at != h->bytes)
        return npy_fault(s, h, "text follows the dictionary");
    if (!h->descr || !h->has_order || !h->has_shape)
        return npy_fault(s, h, "descr, fortran_order or shape is missing");
    return true;
}

static bool npy_read_header(tensor_source *s, npy_header *h)
{
    unsigned char start[12];
    if (!tensor_source_take(s, start, 8, "the .npy magic"))
        return false;
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return tensor_source_damaged(s, 0, "this is not an .npy file");
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return tensor_source_damaged(s, 6, ".npy version %u.%u is not known", start[6], start[7]);
    size_t length_bytes = start[6] == 1 ? 2 : 4;
    if (!tensor_source_take(s, start + 8, length_bytes, "the header's length"))
        return false;
    uint32_t bytes = 0;
    for (size_t i = 0; i < length_bytes; i++)
        bytes |= (uint32_t)start[8 + i] << 8 * i;
    if (bytes > HEADER_LIMIT || (s->size >= 0 && bytes > s->size - s->at))
        return tensor_source_damaged(s, 8, "an .npy header of %" PRIu32 " bytes (allowed %d, the file has %" PRId64 ")", bytes,
                                     HEADER_LIMIT, s->size);
    char *text = arena_alloc(s->arena, bytes + 1);
    *h = (npy_header){.text = text, .bytes = bytes, .offset = s->at};
    return tensor_source_take(s, text, bytes, "the .npy header") && npy_dictionary(s, h);
}

/* The element types that .npy has for a dtype, without the byte order; the first is what NumPy users write.
 */
static const char *const npy_types[DTYPE_COUNT][4] = {
    [DTYPE_I4] = {"i1", "u1"},
    [DTYPE_I8] = {"i1", "u1"},
    [DTYPE_I16] = {"i2"},
    [DTYPE_I32] = {"i4"},
    [DTYPE_F8E4M3] = {"u1", "V1", "f1"},
    [DTYPE_F8E5M2] = {"u1", "V1", "f1"},
    [DTYPE_BF16] = {"u2", "V2"},
    [DTYPE_F32] = {"f4"},
    [DTYPE_U8] = {"u1", "i1"},
    [DTYPE_I5] = {"i1"},
    [DTYPE_I9] = {"i1"},
    [DTYPE_F4E2M1] = {"u1", "V1"},
};

/* "<u2", "|u1"; one byte has no order. */
static const char *npy_descr(dtype t, arena *a)
{
    return arena_printf(a, "%c%s", tensor_source_element_bytes(t) == 1 ? '|' : '<', npy_types[t][0]);
}

static bool npy_type_matches(tensor_source *s, const npy_header *h)
{
    const char *found = h->descr;
    dtype want = s->want->dtype;
    bool ordered = tensor_source_element_bytes(want) > 1;
    bool order_fits = found[0] == '<' || found[0] == '|' || (!ordered && (found[0] == '=' || found[0] == '>'));
    for (int i = 0; order_fits && i < 4 && npy_types[want][i]; i++)
        if (strcmp(found + 1, npy_types[want][i]) == 0 && (found[0] != '|' || !ordered || found[1] == 'V'))
            return true;
    if (strcmp(found, "<f4") == 0 && tensor_source_takes_f32(s))
        return true;
    return tensor_source_type_mismatch(s, arena_printf(s->arena, "'%s'", tensor_source_shown(s, found, strlen(found))),
                                       arena_printf(s->arena, "'%s'", npy_descr(want, s->arena)));
}

/* Column-major data is the row-major tensor of the reversed shape. */
static bool read_fortran(tensor_source *s, bool is_unsigned, tensor *out)
{
    int rank = s->want->rank;
    int64_t *shape = ARENA_ARRAY(s->arena, int64_t, (size_t)rank);
    const char **names = s->want->names ? ARENA_ARRAY(s->arena, const char *, (size_t)rank) : NULL;
    int *order = ARENA_ARRAY(s->arena, int, (size_t)rank);
    for (int i = 0; i < rank; i++) {
        order[i] = rank - 1 - i;
        shape[i] = s->want->shape[order[i]];
        if (names)
            names[i] = s->want->names[order[i]];
    }
    tensor stored;
    if (!tensor_source_read(s, &(tensor_type){s->want->dtype, rank, shape, names}, is_unsigned, &stored))
        return false;
    bool done = tensor_permute(&stored, order, s->arena, out);
    tensor_free(&stored);
    return done || tensor_source_system_fault(s, ENOMEM);
}

/* One integer of any type, or a bool: its bytes; 0: it is something else. */
static unsigned npy_number_bytes(const npy_header *h)
{
    const char *d = h->descr;
    for (size_t i = 0; i < h->rank; i++)
        if (h->shape[i] != 1)
            return 0;
    bool integer = (d[0] == '<' || d[0] == '|') && (d[1] == 'i' || d[1] == 'u' || d[1] == 'b') && d[2] && !d[3];
    unsigned bytes = integer ? (unsigned)(d[2] - '0') : 0;
    return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && (bytes == 1 || d[0] == '<') && (d[1] != 'b' || bytes == 1) ? bytes : 0;
}

bool npy_read(tensor_source *s, tensor *out)
{
    npy_header h = {0};
    if (!npy_read_header(s, &h))
        return false;
    unsigned number = tensor_source_wants_number(s) ? npy_number_bytes(&h) : 0;
    if (number)
        return tensor_source_read_number(s, number, h.descr[1] == 'i', out);
    tensor_type found = {s->want->dtype, (int)h.rank, h.shape, NULL};
    bool type_fits = npy_type_matches(s, &h), shape_fits = tensor_source_check_shape(s, &found);
    int64_t bytes = type_fits && shape_fits ? tensor_source_bytes(s, false) : -1;
    if (bytes < 0 || !tensor_source_check_rest(s, bytes))
        return false;
    bool is_unsigned = h.descr[1] == 'u';
    bool done = h.fortran_order && h.rank > 1 ? read_fortran(s, is_unsigned, out) : tensor_source_read(s, s->want, is_unsigned, out);
    if (done && tensor_source_check_end(s, bytes))
        return true;
    if (done)
        tensor_free(out);
    return false;
}

const char *npy_head(const tensor_type *type, arena *a, size_t *byte_count)
{
    enum { ALIGNMENT = 64 };
    strbuf text;
    strbuf_init(&text, a);
    strbuf_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_descr(type->dtype, a));
    for (int i = 0; i < type->rank; i++)
        strbuf_printf(&text, "%s%" PRId64, i ? ", " : "", type->shape[i]);
    strbuf_puts(&text, type->rank == 1 ? ",), }" : "), }");
    size_t prefix = text.bytes + 10 + 1 + ALIGNMENT <= UINT16_MAX ? 10 : 12; /* version 1 or 2 */
    size_t size = (prefix + text.bytes + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, length = size - prefix;
    char *bytes = arena_alloc(a, size);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = prefix == 10 ? 1 : 2;
    for (size_t i = 8; i < prefix; i++)
        bytes[i] = (char)(length >> 8 * (i - 8));
    memcpy(bytes + prefix, text.text, text.bytes);
    memset(bytes + prefix + text.bytes, ' ', length - text.bytes - 1);
    bytes[size - 1] = '\n';
    *byte_count = size;
    return bytes;
}
