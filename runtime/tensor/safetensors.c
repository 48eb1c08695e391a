#define _GNU_SOURCE /* memmem */
#include "runtime/tensor/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "support/budget.h"
#include "support/json_nesting.h"
#include "support/order.h"

enum {
    HEADER_LIMIT = 100 * 1000000, /* bytes; the format's own limit */
    SHOWN_NAMES = 12,             /* tensors of a file in a message */
};

typedef struct safetensors_type {
    const char *name;
    int64_t bits; /* of an element */
} safetensors_type;

/* What the format defines; a type not listed is accepted unread. */
static const safetensors_type safetensors_types[] = {
    {"BOOL", 8},  {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},
    {"BF16", 16}, {"I32", 32}, {"U32", 32}, {"F32", 32},    {"I64", 64},    {"U64", 64},    {"F64", 64}, {"C64", 64},
};

static const char *const safetensors_names[DTYPE_COUNT][3] = {
    [DTYPE_I4] = {"I8", "U8"},    [DTYPE_I8] = {"I8", "U8"},    [DTYPE_I16] = {"I16"},   [DTYPE_I32] = {"I32"},
    [DTYPE_F8E4M3] = {"F8_E4M3"}, [DTYPE_F8E5M2] = {"F8_E5M2"}, [DTYPE_BF16] = {"BF16"}, [DTYPE_F32] = {"F32"},
    [DTYPE_U8] = {"U8", "I8"},    [DTYPE_I5] = {"I8"},          [DTYPE_I9] = {"I8"},     [DTYPE_F4E2M1] = {"U8"},
};

/* One tensor of the header. */
typedef struct safetensors_entry {
    const char *name, *type;
    int64_t begin, end; /* bytes from the end of the header */
    int rank;
    int64_t *shape;
} safetensors_entry;

typedef struct safetensors_header {
    const char *text;
    size_t bytes;
    safetensors_entry *entries; /* by begin */
    size_t count;
} safetensors_header;

/* Where the name stands in the header, for messages; the header's first byte when it is written with escapes.
 */
static int64_t name_offset(const safetensors_header *h, const char *name, arena *a)
{
    const char *quoted = arena_printf(a, "\"%s\"", name);
    const char *place = memmem(h->text, h->bytes, quoted, strlen(quoted));
    return 8 + (place ? place - h->text : 0);
}

static bool entry_fault(tensor_source *s, const safetensors_header *h, const char *name, const char *text)
{
    return tensor_source_damaged(s, name_offset(h, name, s->arena), "tensor \"%s\": %s", tensor_source_shown(s, name, strlen(name)), text);
}

/* A whole number from 0 on. */
static bool json_extent(const json_t *value, int64_t *out)
{
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *out >= 0;
}

static bool entry_shape(tensor_source *s, const safetensors_header *h, const json_t *shape, safetensors_entry *e)
{
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > INT_MAX)
        return entry_fault(s, h, e->name, "\"shape\" is not a list");
    e->rank = (int)rank;
    e->shape = ARENA_ARRAY(s->arena, int64_t, rank ? rank : 1);
    for (size_t i = 0; i < rank; i++)
        if (!json_extent(json_array_get(shape, i), &e->shape[i]))
            return entry_fault(s, h, e->name, "an extent is not a number from 0 to 2^63 - 1");
    return true;
}

static bool entry_size_fits(tensor_source *s, const safetensors_header *h, const safetensors_entry *e)
{
    int64_t elements = tensor_elements(&(tensor_type){DTYPE_I8, e->rank, e->shape, NULL}), bits;
    if (elements < 0)
        return entry_fault(s, h, e->name, "the product of its shape is past 2^60");
    for (size_t i = 0; i < sizeof safetensors_types / sizeof *safetensors_types; i++)
        if (strcmp(safetensors_types[i].name, e->type) == 0 &&
            (__builtin_mul_overflow(elements, safetensors_types[i].bits, &bits) || bits / 8 != e->end - e->begin))
            return entry_fault(s, h, e->name,
                               arena_printf(s->arena, "%" PRId64 " bytes of data for %" PRId64 " elements of %s", e->end - e->begin,
                                            elements, safetensors_types[i].name));
    return true;
}

static bool entry_of(tensor_source *s, const safetensors_header *h, const char *name, const json_t *value, safetensors_entry *e)
{
    *e = (safetensors_entry){.name = name};
    e->type = json_string_value(json_object_get(value, "dtype"));
    if (!e->type)
        return entry_fault(s, h, name, "\"dtype\" is missing or not a string");
    const json_t *offsets = json_object_get(value, "data_offsets");
    if (json_array_size(offsets) != 2 || !json_extent(json_array_get(offsets, 0), &e->begin) ||
        !json_extent(json_array_get(offsets, 1), &e->end) || e->begin > e->end)
        return entry_fault(s, h, name, "\"data_offsets\" are not two ascending numbers from 0 on");
    if (!entry_shape(s, h, json_object_get(value, "shape"), e))
        return false;
    return entry_size_fits(s, h, e);
}

static int entry_order(const void *a, const void *b)
{
    const safetensors_entry *x = a, *y = b;
    return order_then(ORDER(x->begin, y->begin), order_then(ORDER(x->end, y->end), strcmp(x->name, y->name)));
}

/* The data must be covered from its first to its last byte, each byte once. */
static bool entries_cover(tensor_source *s, safetensors_header *h)
{
    int64_t data = 8 + (int64_t)h->bytes, at = 0;
    order_sort(h->entries, h->count, sizeof *h->entries, entry_order);
    for (size_t i = 0; i < h->count; at = h->entries[i++].end)
        if (h->entries[i].begin != at)
            return entry_fault(
                s, h, h->entries[i].name,
                arena_printf(s->arena, "its data begins at %" PRId64 ", the data before it ends at %" PRId64, h->entries[i].begin, at));
    if (s->size >= 0 && s->size - data != at)
        return tensor_source_damaged(s, data, "the header describes %" PRId64 " bytes of data, the file has %" PRId64, at, s->size - data);
    return true;
}

static bool read_entries(tensor_source *s, safetensors_header *h, json_t *root)
{
    const char *name;
    json_t *value;
    if (!json_is_object(root))
        return tensor_source_damaged(s, 8, "the header is not an object");
    h->entries = ARENA_ARRAY(s->arena, safetensors_entry, json_object_size(root) + 1);
    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!entry_of(s, h, name, value, &h->entries[h->count]))
            return false;
        h->count++;
    }
    return entries_cover(s, h);
}

static bool safetensors_text(tensor_source *s, safetensors_header *h)
{
    unsigned char length[8];
    if (!tensor_source_take(s, length, 8, "the header's length"))
        return false;
    uint64_t bytes = 0;
    for (int i = 0; i < 8; i++)
        bytes |= (uint64_t)length[i] << 8 * i;
    if (bytes > HEADER_LIMIT || (s->size >= 0 && (int64_t)bytes > s->size - 8))
        return tensor_source_damaged(s, 0, "a header of %" PRIu64 " bytes (allowed %d, the file has %" PRId64 ")", bytes, HEADER_LIMIT,
                                     s->size);
    char *text = arena_alloc(s->arena, (size_t)bytes + 1);
    *h = (safetensors_header){.text = text, .bytes = (size_t)bytes};
    if (!tensor_source_take(s, text, h->bytes, "the header"))
        return false;
    return text[0] == '{' || tensor_source_damaged(s, 8, "the header does not begin with {");
}

static const safetensors_entry *find_entry(tensor_source *s, const safetensors_header *h, const char *name)
{
    if (!name && h->count == 1)
        return &h->entries[0];
    for (size_t i = 0; name && i < h->count; i++)
        if (strcmp(h->entries[i].name, name) == 0)
            return &h->entries[i];
    diag *d = diag_add(s->diags, E_TENSOR_FILE, SRC_NOWHERE, name ? "%s: the file has no tensor \"%s\"" : "%s: which tensor of the file?%s",
                       s->name, name ? tensor_source_shown(s, name, strlen(name)) : "");
    diag_help(s->diags, d, "name one after the file: FILE.safetensors:NAME");
    for (size_t i = 0; i < h->count && i < SHOWN_NAMES; i++) {
        const safetensors_entry *e = &h->entries[i];
        diag_note(s->diags, d, SRC_NOWHERE, "it has \"%s\", %s of %s", tensor_source_shown(s, e->name, strlen(e->name)),
                  tensor_shape_text(&(tensor_type){DTYPE_I8, e->rank, e->shape, NULL}, s->arena),
                  tensor_source_shown(s, e->type, strlen(e->type)));
    }
    if (h->count > SHOWN_NAMES)
        diag_note(s->diags, d, SRC_NOWHERE, "and %zu more", h->count - SHOWN_NAMES);
    return NULL;
}

static bool entry_matches(tensor_source *s, const safetensors_entry *e)
{
    dtype want = s->want->dtype;
    bool fits = false;
    for (int i = 0; i < 3 && safetensors_names[want][i]; i++)
        fits = fits || strcmp(e->type, safetensors_names[want][i]) == 0;
    fits = fits || (strcmp(e->type, safetensors_names[DTYPE_F32][0]) == 0 && tensor_source_takes_f32(s));
    if (!fits)
        tensor_source_type_mismatch(s, tensor_source_shown(s, e->type, strlen(e->type)), safetensors_names[want][0]);
    return tensor_source_check_shape(s, &(tensor_type){want, e->rank, e->shape, NULL}) && fits;
}

/* One integer of any type, or a bool: its bytes; 0: it is something else. */
static unsigned number_bytes(const safetensors_entry *e)
{
    for (int i = 0; i < e->rank; i++)
        if (e->shape[i] != 1)
            return 0;
    bool integer = strcmp(e->type, "BOOL") == 0 || ((e->type[0] == 'I' || e->type[0] == 'U') && e->type[1] >= '1' && e->type[1] <= '8');
    for (size_t i = 0; integer && i < sizeof safetensors_types / sizeof *safetensors_types; i++)
        if (strcmp(safetensors_types[i].name, e->type) == 0)
            return (unsigned)safetensors_types[i].bits / 8;
    return 0;
}

bool safetensors_read(tensor_source *s, const char *name, tensor *out)
{
    safetensors_header h = {0};
    json_error_t error;
    if (!safetensors_text(s, &h))
        return false;
    if (json_nests_too_deeply(h.text, h.bytes))
        return tensor_source_damaged(s, 8, "the header nests more than %d levels deep", NESTING_MAX);
    json_t *root = json_loadb(h.text, h.bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return tensor_source_damaged(s, 8 + (error.position > 0 ? error.position : 0), "the header is not JSON: %s",
                                     tensor_source_shown(s, error.text, strlen(error.text)));
    const safetensors_entry *e = read_entries(s, &h, root) ? find_entry(s, &h, name) : NULL;
    unsigned number = e && tensor_source_wants_number(s) ? number_bytes(e) : 0;
    bool done =
        e && (number || (entry_matches(s, e) && tensor_source_bytes(s, false) >= 0)) && tensor_source_skip(s, e->begin) &&
        (number ? tensor_source_read_number(s, number, e->type[0] == 'I', out) : tensor_source_read(s, s->want, e->type[0] == 'U', out));
    json_decref(root);
    return done;
}

static json_t *safetensors_json(const char *name, const tensor_type *type, int64_t data_bytes)
{
    json_t *shape = json_array();
    for (int i = 0; i < type->rank; i++)
        json_array_append_new(shape, json_integer(type->shape[i]));
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_names[type->dtype][0], "shape", shape, "data_offsets",
                              (json_int_t)0, (json_int_t)data_bytes);
    json_t *root = json_object();
    if (json_object_set_new(root, name, entry) != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

const char *safetensors_head(const char *name, const tensor_type *type, arena *a, size_t *byte_count)
{
    int64_t data_bytes = tensor_elements(type) * tensor_source_element_bytes(type->dtype);
    json_t *root = safetensors_json(name, type, data_bytes);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return NULL;
    size_t text_bytes = strlen(text), length = (text_bytes + 7) / 8 * 8;
    char *bytes = arena_alloc(a, 8 + length);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (char)((uint64_t)length >> 8 * i);
    memset(bytes + 8, ' ', length);
    memcpy(bytes + 8, text, text_bytes);
    free(text);
    *byte_count = 8 + length;
    return bytes;
}
