/* Tensors and their files.
 *
 * Files are built by hand, byte by byte, as NumPy and the safetensors library write them; what comes back is
 * compared with the elements. Hostile files (cut, with lying sizes, with damaged headers) must be refused
 * with the right rule and leave nothing allocated, which the sanitizer build watches. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/tensor/npy.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/tensor_file.h"
#include "test/suite.h"

static arena *memory;
static diag_list diags;
static char directory[4096];

static void setup(void)
{
    memory = arena_new();
    diag_list_init(&diags, memory);
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/visa-test-XXXXXX", base ? base : P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static int files_in_directory(bool remove)
{
    DIR *d = opendir(directory);
    int count = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        count++;
        if (remove)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
    return count;
}

static void teardown(void)
{
    files_in_directory(true);
    rmdir(directory);
    arena_free(memory);
}

static const char *path_of(const char *name)
{
    return arena_printf(memory, "%s/%s", directory, name);
}

/* ---- files by hand ---- */

typedef struct image {
    unsigned char bytes[8192];
    size_t size;
} image;

static void add(image *m, const void *bytes, size_t size)
{
    ck_assert_uint_le(m->size + size, sizeof m->bytes);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void add_number(image *m, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        add(m, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

static image npy_image(int version, const char *dictionary, const void *data, size_t data_bytes)
{
    image m = {.size = 0};
    add(&m, "\x93NUMPY", 6);
    add_number(&m, (uint64_t)version, 1);
    add_number(&m, 0, 1);
    add_number(&m, strlen(dictionary), version == 1 ? 2 : 4);
    add(&m, dictionary, strlen(dictionary));
    add(&m, data, data_bytes);
    return m;
}

static image st_image(const char *header, const void *data, size_t data_bytes)
{
    image m = {.size = 0};
    add_number(&m, strlen(header), 8);
    add(&m, header, strlen(header));
    add(&m, data, data_bytes);
    return m;
}

/* Reads a copy of exactly the image's size, so that a read past its end is seen. */
static bool read_image(const char *spec, const image *m, const tensor_type *want, tensor *out)
{
    unsigned char *copy = malloc(m->size ? m->size : 1);
    memcpy(copy, m->bytes, m->size);
    bool done = tensor_file_read_image(spec, copy, m->size, want, memory, &diags, out);
    free(copy);
    ck_assert_int_eq(done, diags.count == 0);
    if (!done)
        ck_assert_ptr_null(out->bytes);
    return done;
}

static const char *const names_mk[] = {"M", "K"};
static const int64_t shape_23[] = {2, 3};
static const tensor_type i32_23 = {DTYPE_I32, 2, shape_23, names_mk};
static const int32_t data_23[6] = {1, -2, 3, 4, 5, 0x7fffffff};
static const char header_23[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n";
static const char st_23[] = "{\"w\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";

static void expect_23(tensor *t)
{
    ck_assert_uint_eq(t->size, 24);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(numeric_to_double(DTYPE_I32, t->bytes, i), data_23[i]);
    ck_assert_str_eq(t->type.names[1], "K");
    ck_assert_int_eq(t->type.shape[1], 3);
    tensor_free(t);
}

static void expect_fault(const char *what, diag_id id, const char *part)
{
    bool found = false;
    for (size_t i = 0; i < diags.count; i++)
        found = found || (diags.items[i]->id == id && strstr(diags.items[i]->message, part));
    if (!found)
        ck_abort_msg("%s: expected %s with \"%s\", got %zu: %s", what, diag_row_of(id)->name, part, diags.count,
                     diags.count ? diags.items[0]->message : "");
    diag_list_init(&diags, memory);
}

/* ---- .npy ---- */

START_TEST(npy_versions)
{
    for (int version = 1; version <= 3; version++) {
        image m = npy_image(version, header_23, data_23, 24);
        tensor t;
        ck_assert(read_image("a.npy", &m, &i32_23, &t));
        expect_23(&t);
    }
}
END_TEST

/* Legal spellings of the same header. */
START_TEST(npy_spellings)
{
    static const char *const headers[] = {
        "{'shape': (2L, 3L), 'fortran_order': False, 'descr': '<i4'}",
        "{\"descr\":\"<i4\",\"fortran_order\":False,\"shape\":(2,3,)}   \n",
        "  { 'descr' : '<i4' , 'fortran_order' : False , 'shape' : ( 2 , 3 ) , }",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        image m = npy_image(1, headers[i], data_23, 24);
        tensor t;
        ck_assert_msg(read_image("a.npy", &m, &i32_23, &t), "%s", headers[i]);
        expect_23(&t);
    }
}
END_TEST

START_TEST(npy_fortran_order)
{
    int32_t columns[6];
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++)
            columns[c * 2 + r] = data_23[r * 3 + c];
    image m = npy_image(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", columns, 24);
    tensor t;
    ck_assert(read_image("a.npy", &m, &i32_23, &t));
    expect_23(&t);
}
END_TEST

START_TEST(npy_fortran_order_i4)
{
    const int64_t shape[] = {3, 1, 5};
    tensor_type type = {DTYPE_I4, 3, shape, NULL};
    unsigned char stored[15];
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 5; c++)
            stored[c * 3 + a] = (unsigned char)(a * 5 + c - 8);
    image m = npy_image(1, "{'descr': '|i1', 'fortran_order': True, 'shape': (3, 1, 5), }", stored, 15);
    tensor t;
    ck_assert(read_image("a.npy", &m, &type, &t));
    ck_assert_uint_eq(t.size, 8);
    for (int i = 0; i < 15; i++)
        ck_assert_int_eq(numeric_i4_get(t.bytes, i), i - 8);
    tensor_free(&t);
}
END_TEST

START_TEST(npy_element_types)
{
    static const struct {
        dtype want;
        const char *descr;
        bool accepted;
        int bytes;
    } cases[] = {
        {DTYPE_I8, "|i1", true, 1},    {DTYPE_I8, "|u1", true, 1},     {DTYPE_I4, "|i1", true, 1},     {DTYPE_I4, "|u1", true, 1},
        {DTYPE_I16, "<i2", true, 2},   {DTYPE_F32, "<f4", true, 4},    {DTYPE_BF16, "<u2", true, 2},   {DTYPE_BF16, "<V2", true, 2},
        {DTYPE_BF16, "|V2", true, 2},  {DTYPE_F8E4M3, "|u1", true, 1}, {DTYPE_F8E5M2, "<f1", true, 1}, {DTYPE_F8E5M2, "|V1", true, 1},
        {DTYPE_BF16, "<f2", false, 2}, {DTYPE_BF16, "<f4", false, 4},  {DTYPE_BF16, "|u2", false, 2},  {DTYPE_BF16, ">u2", false, 2},
        {DTYPE_I32, ">i4", false, 4},  {DTYPE_I32, "=i4", false, 4},   {DTYPE_I32, "<i8", false, 8},   {DTYPE_I32, "<u4", false, 4},
        {DTYPE_I16, "<u2", false, 2},  {DTYPE_F32, "<i4", false, 4},   {DTYPE_I8, "?", false, 1},      {DTYPE_I8, "|b1", false, 1},
        {DTYPE_I8, "", false, 1},      {DTYPE_I8, "|", false, 1},      {DTYPE_I8, "|i1x", false, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t shape[] = {4};
        tensor_type type = {cases[i].want, 1, shape, NULL};
        unsigned char data[32] = {1, 2, 3, 4, 5, 6, 7};
        char header[200];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (4,), }", cases[i].descr);
        image m = npy_image(1, header, data, 4 * (size_t)cases[i].bytes);
        tensor t;
        bool done = read_image("a.npy", &m, &type, &t);
        ck_assert_msg(done == cases[i].accepted, "%s as %s", cases[i].descr, dtype_row_of(cases[i].want)->name);
        if (!done) {
            expect_fault(header, E_TENSOR_TYPE, "element type");
            continue;
        }
        if (cases[i].want != DTYPE_I4)
            ck_assert_mem_eq(t.bytes, data, 4 * (size_t)cases[i].bytes);
        tensor_free(&t);
    }
}
END_TEST

START_TEST(integers_must_fit)
{
    static const struct {
        dtype want;
        const char *descr;
        unsigned char value;
        bool accepted;
    } cases[] = {{DTYPE_I8, "|u1", 127, true},  {DTYPE_I8, "|u1", 128, false},  {DTYPE_I8, "|i1", 0x80, true},
                 {DTYPE_I4, "|i1", 0xf8, true}, {DTYPE_I4, "|i1", 0xf7, false}, {DTYPE_I4, "|i1", 8, false},
                 {DTYPE_I4, "|u1", 7, true},    {DTYPE_I4, "|u1", 0xf8, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t shape[] = {3};
        unsigned char data[3] = {0, 1, cases[i].value};
        char header[200];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (3,)}", cases[i].descr);
        image m = npy_image(1, header, data, 3);
        tensor t;
        ck_assert_int_eq(read_image("a.npy", &m, &(tensor_type){cases[i].want, 1, shape, NULL}, &t), cases[i].accepted);
        if (cases[i].accepted)
            tensor_free(&t);
        else
            expect_fault(header, E_TENSOR_TYPE, arena_printf(memory, "byte offset %zu: element 2 is", m.size - 1));
    }
}
END_TEST

typedef struct header_case {
    const char *header;
    diag_id id;
    const char *part;
} header_case;

static void refused_header(const char *name, const image *m, const header_case *c)
{
    tensor t;
    ck_assert_msg(!read_image(name, m, &i32_23, &t), "%s", c->header);
    expect_fault(c->header, c->id, c->part);
}

START_TEST(npy_headers_are_refused)
{
    static const header_case cases[] = {
        {"", E_TENSOR_FILE, "dictionary is expected"},
        {"{", E_TENSOR_FILE, "string is expected"},
        {"{'descr", E_TENSOR_FILE, "not closed"},
        {"{'descr'", E_TENSOR_FILE, "colon"},
        {"{'descr': ", E_TENSOR_FILE, "string is expected"},
        {"{'descr': '<i4'", E_TENSOR_FILE, "comma or }"},
        {"{'descr': '<i4'}", E_TENSOR_FILE, "missing"},
        {"{'descr': '<i\\x34', 'fortran_order': False, 'shape': (2, 3)}", E_TENSOR_FILE, "escape"},
        {"{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)}", E_TENSOR_FILE, "twice"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", E_TENSOR_FILE, "unknown"},
        {"{'descr': '<i4', 'fortran_order': 0, 'shape': (2, 3)}", E_TENSOR_FILE, "True or False"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': 6}", E_TENSOR_FILE, "shape is expected"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (6)}", E_TENSOR_FILE, "comma is expected"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2 3)}", E_TENSOR_FILE, "comma is expected"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (,)}", E_TENSOR_FILE, "extent is expected"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3", E_TENSOR_FILE, "comma is expected"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, -3)}", E_TENSOR_FILE, "negative"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 9223372036854775808)}", E_TENSOR_FILE, "past 2^63"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 99999999999999999999999)}", E_TENSOR_FILE, "2^63"},
        {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2, 3)}", E_TENSOR_FILE, "structured"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)} x", E_TENSOR_FILE, "follows the dictionary"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2)}", E_TENSOR_SHAPE, "[3, 2], the port's is [M=2, K=3]"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (6,)}", E_TENSOR_SHAPE, "is [6]"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': ()}", E_TENSOR_SHAPE, "is []"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3, 1)}", E_TENSOR_SHAPE, "[2, 3, 1]"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807)}", E_TENSOR_SHAPE,
         "9223372036854775807"},
        {"{'descr': '\x1b[31m', 'fortran_order': False, 'shape': (2, 3)}", E_TENSOR_TYPE, "\\x1b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image m = npy_image(1, cases[i].header, data_23, 24);
        refused_header("a.npy", &m, &cases[i]);
    }
}
END_TEST

/* The type and the shape are both wrong: both are reported. */
START_TEST(npy_says_everything)
{
    image m = npy_image(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", data_23, 24);
    tensor t;
    ck_assert(!read_image("a.npy", &m, &i32_23, &t));
    ck_assert_uint_eq(diags.count, 2);
    expect_fault("type", E_TENSOR_TYPE, "'<f4', the port's is i32");
}
END_TEST

/* A header of so many bytes, spaces at its end, in a file of `missing` bytes fewer than header and elements have. */
static bool read_padded(size_t header_bytes, size_t missing, tensor *out)
{
    size_t size = 12 + header_bytes + 24;
    unsigned char *file = malloc(size);
    memcpy(file, "\x93NUMPY\2\0", 8);
    for (unsigned i = 0; i < 4; i++)
        file[8 + i] = (unsigned char)(header_bytes >> 8 * i);
    memset(file + 12, ' ', header_bytes);
    memcpy(file + 12, header_23, strlen(header_23));
    memcpy(file + 12 + header_bytes, data_23, 24);
    bool done = tensor_file_read_image("a.npy", file, size - missing, &i32_23, memory, &diags, out);
    free(file);
    return done;
}

START_TEST(npy_headers_end_where_they_may)
{
    enum { MOST_BYTES = 1 << 20 };
    tensor t;
    ck_assert(read_padded(MOST_BYTES, 0, &t));
    ck_assert_mem_eq(t.bytes, data_23, 24);
    tensor_free(&t);
    ck_assert(!read_padded(MOST_BYTES + 1, 0, &t));
    expect_fault("limit", E_TENSOR_FILE, "an .npy header of 1048577 bytes (allowed 1048576");
    /* The header is the file's last byte: it is read, and what is missing are the elements. */
    ck_assert(!read_padded(100, 24, &t));
    ck_assert_ptr_null(strstr(diags.items[0]->message, "an .npy header of"));
    diag_list_init(&diags, memory);
    ck_assert(!read_padded(100, 25, &t));
    expect_fault("end", E_TENSOR_FILE, "byte offset 8: an .npy header of 100 bytes");
}
END_TEST

/* Shapes whose text is about as long as the 16 bits of version 1 count: after them version 2 begins, and what was written is read. */
START_TEST(npy_heads_of_any_length)
{
    enum { MOST_RANK = 22000 };
    int64_t *shape = calloc(MOST_RANK, sizeof *shape);
    int versions[3] = {0};
    for (int i = 0; i < MOST_RANK; i++)
        shape[i] = 1;
    for (int rank = 21700; rank < MOST_RANK; rank++) {
        tensor_type type = {DTYPE_I8, rank, shape, NULL};
        size_t size;
        const unsigned char *head = (const unsigned char *)npy_head(&type, memory, &size);
        int version = head[6], prefix = version == 1 ? 10 : 12;
        ck_assert(version == 1 || version == 2);
        versions[version]++;
        size_t length = 0;
        for (int i = 8; i < prefix; i++)
            length |= (size_t)head[i] << 8 * (i - 8);
        ck_assert_uint_eq(length, size - (size_t)prefix);
        ck_assert_uint_eq(size % 64, 0);
        ck_assert_int_eq(head[prefix], '{');
        ck_assert_int_eq(head[size - 1], '\n');
        if (rank % 50 == 0) {
            tensor t;
            unsigned char *file = malloc(size + 1);
            memcpy(file, head, size);
            file[size] = 5;
            ck_assert(tensor_file_read_image("a.npy", file, size + 1, &type, memory, &diags, &t));
            ck_assert_int_eq(t.bytes[0], 5);
            tensor_free(&t);
            free(file);
        }
    }
    ck_assert(versions[1] > 50 && versions[2] > 50);
    free(shape);
}
END_TEST

START_TEST(npy_prefix_is_checked)
{
    tensor t;
    image good = npy_image(1, header_23, data_23, 24), m = good;
    m.bytes[0] = 'x';
    ck_assert(!read_image("a.npy", &m, &i32_23, &t));
    expect_fault("magic", E_TENSOR_FILE, "byte offset 0: this is not");
    m = good;
    m.bytes[6] = 4;
    ck_assert(!read_image("a.npy", &m, &i32_23, &t));
    expect_fault("version", E_TENSOR_FILE, "byte offset 6: .npy version 4.0");
    m = npy_image(2, header_23, data_23, 24);
    memset(m.bytes + 8, 0xff, 4);
    ck_assert(!read_image("a.npy", &m, &i32_23, &t));
    expect_fault("length", E_TENSOR_FILE, "byte offset 8: an .npy header of 4294967295 bytes");
    m = good;
    m.size++;
    ck_assert(!read_image("a.npy", &m, &i32_23, &t));
    expect_fault("a byte more", E_TENSOR_FILE, "25 bytes of data follow, 24 are expected");
}
END_TEST

/* ---- .safetensors ---- */

START_TEST(safetensors_tensors)
{
    image m = st_image("{\"__metadata__\":{\"a\":\"b\"},\"bias\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[24,26]},"
                       "\"w.x:y\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                       "\"none\":{\"dtype\":\"F32\",\"shape\":[0,9223372036854775807],\"data_offsets\":[24,24]},"
                       "\"odd\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[26,28]}}   ",
                       data_23, 24);
    add(&m, "abcd", 4);
    tensor t;
    ck_assert(read_image("f.safetensors:w.x:y", &m, &i32_23, &t));
    expect_23(&t);
    const int64_t shape[] = {1};
    ck_assert(!read_image("f.safetensors:bias", &m, &(tensor_type){DTYPE_BF16, 1, shape, NULL}, &t));
    expect_fault("F16", E_TENSOR_TYPE, "F16, the port's is bf16");
    ck_assert(!read_image("f.safetensors", &m, &i32_23, &t));
    ck_assert_uint_eq(diags.items[0]->note_count, 4);
    expect_fault("no name", E_TENSOR_FILE, "which tensor");
    ck_assert(!read_image("f.safetensors:weight", &m, &i32_23, &t));
    expect_fault("another name", E_TENSOR_FILE, "no tensor \"weight\"");
    ck_assert(!read_image("f.safetensors:__metadata__", &m, &i32_23, &t));
    expect_fault("metadata", E_TENSOR_FILE, "no tensor");
}
END_TEST

START_TEST(safetensors_single_needs_no_name)
{
    image m = st_image(st_23, data_23, 24);
    tensor t;
    ck_assert(read_image("f.safetensors", &m, &i32_23, &t));
    expect_23(&t);
}
END_TEST

#define ENTRY(name, type, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

START_TEST(safetensors_headers_are_refused)
{
    static const header_case cases[] = {
        {"", E_TENSOR_FILE, "does not begin with {"},
        {" {}", E_TENSOR_FILE, "does not begin with {"},
        {"{", E_TENSOR_FILE, "not JSON"},
        {"{}{}", E_TENSOR_FILE, "not JSON"},
        {"{\"a\":1}", E_TENSOR_FILE, "\"dtype\" is missing"},
        {"{\"a\":{\"dtype\":7}}", E_TENSOR_FILE, "\"dtype\" is missing"},
        {"{\"a\":{\"dtype\":\"I32\"}}", E_TENSOR_FILE, "data_offsets"},
        {"{\"a\":{\"dtype\":\"I32\",\"data_offsets\":[0,24]}}", E_TENSOR_FILE, "\"shape\" is not a list"},
        {"{\"a\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0]}}", E_TENSOR_FILE, "data_offsets"},
        {"{" ENTRY("w", "I32", "[2,3]", "0", "24") "," ENTRY("w", "I32", "[2,3]", "0", "24") "}", E_TENSOR_FILE, "not JSON"},
        {"{" ENTRY("w", "I32", "[2,3]", "-24", "0") "}", E_TENSOR_FILE, "ascending"},
        {"{" ENTRY("w", "I32", "[2,3]", "24", "0") "}", E_TENSOR_FILE, "ascending"},
        {"{" ENTRY("w", "I32", "[2,3]", "0.0", "24") "}", E_TENSOR_FILE, "ascending"},
        {"{" ENTRY("w", "I32", "[2,3]", "0", "9223372036854775808") "}", E_TENSOR_FILE, "not JSON"},
        {"{" ENTRY("w", "I32", "[2,3]", "9223372036854775800", "9223372036854775807") "}", E_TENSOR_FILE, "7 bytes"},
        {"{" ENTRY("w", "I32", "[2,3]", "8", "32") "}", E_TENSOR_FILE, "begins at 8"},
        {"{" ENTRY("w", "I32", "[2,3]", "0", "25") "}", E_TENSOR_FILE, "25 bytes of data for 6 elements"},
        {"{" ENTRY("w", "I32", "[2,-3]", "0", "24") "}", E_TENSOR_FILE, "an extent is not"},
        {"{" ENTRY("w", "I32", "[2,3.0]", "0", "24") "}", E_TENSOR_FILE, "an extent is not"},
        {"{" ENTRY("w", "I32", "[4294967296,4294967296]", "0", "24") "}", E_TENSOR_FILE, "past 2^60"},
        {"{" ENTRY("w", "I32", "[2305843009213693952,2]", "0", "24") "}", E_TENSOR_FILE, "past 2^60"},
        {"{" ENTRY("w", "I32", "[2]", "0", "8") "," ENTRY("v", "I32", "[5]", "4", "24") "}", E_TENSOR_FILE, "begins at 4"},
        {"{" ENTRY("w", "I32", "[2]", "0", "8") "," ENTRY("v", "I32", "[3]", "12", "24") "}", E_TENSOR_FILE, "begins at 12"},
        {"{" ENTRY("w", "I32", "[3]", "0", "12") "}", E_TENSOR_FILE, "describes 12 bytes of data, the file has 24"},
        {"{" ENTRY("w", "I32", "[7]", "0", "28") "}", E_TENSOR_FILE, "describes 28 bytes of data, the file has 24"},
        {"{" ENTRY("w", "I32", "[3,2]", "0", "24") "}", E_TENSOR_SHAPE, "is [3, 2], the port's is [M=2, K=3]"},
        {"{" ENTRY("w", "F32", "[2,3]", "0", "24") "}", E_TENSOR_TYPE, "F32, the port's is i32"},
        {"{" ENTRY("w", "I\\u001b2", "[2,3]", "0", "24") "}", E_TENSOR_TYPE, "\\x1b"},
        {"{\"w\":{\"dtype\":\"I32\\u0000\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", E_TENSOR_FILE, "not JSON"},
        {"{\"w\xff\":{}}", E_TENSOR_FILE, "not JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image m = st_image(cases[i].header, data_23, 24);
        refused_header("f.safetensors:w", &m, &cases[i]);
    }
}
END_TEST

START_TEST(safetensors_offset_of_the_damage)
{
    image m = st_image("{" ENTRY("ok", "I8", "[4]", "0", "4") "," ENTRY("bad", "I8", "[4]", "4", "9") "}", data_23, 9);
    tensor t;
    ck_assert(!read_image("f.safetensors:ok", &m, &i32_23, &t));
    const unsigned char *place = memmem(m.bytes, m.size, "\"bad\"", 5);
    expect_fault("bad", E_TENSOR_FILE, arena_printf(memory, "byte offset %zu: tensor \"bad\"", (size_t)(place - m.bytes)));
}
END_TEST

START_TEST(safetensors_deep_and_long)
{
    image m = {.size = 0};
    add_number(&m, 8000, 8);
    add(&m, "{\"w\":", 5);
    while (m.size < 8008)
        add(&m, "[", 1);
    tensor t;
    ck_assert(!read_image("f.safetensors:w", &m, &i32_23, &t));
    expect_fault("deep", E_TENSOR_FILE, "nests more than 256 levels deep");
    static const uint64_t lengths[] = {UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7, 100000001, 8001, 1u << 31};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        image bad = m;
        bad.size = 0;
        add_number(&bad, lengths[i], 8);
        bad.size = m.size;
        ck_assert(!read_image("f.safetensors:w", &bad, &i32_23, &t));
        expect_fault("length", E_TENSOR_FILE, "byte offset 0: a header of");
    }
}
END_TEST

/* ---- raw ---- */

START_TEST(raw_is_exact)
{
    image m = {.size = 0};
    add(&m, data_23, 24);
    tensor t;
    ck_assert(read_image("a.bin", &m, &i32_23, &t));
    expect_23(&t);
    m.size = 23;
    ck_assert(!read_image("a.bin", &m, &i32_23, &t));
    expect_fault("short", E_TENSOR_SHAPE, "has 23 bytes, the port's tensor [M=2, K=3] of i32 has 24");
    m.size = 0;
    ck_assert(!read_image("a.bin", &m, &i32_23, &t));
    expect_fault("empty", E_TENSOR_SHAPE, "has 0 bytes");
    const int64_t huge[] = {INT64_MAX, INT64_MAX}, large[] = {INT64_C(1) << 59};
    ck_assert(!read_image("a.bin", &m, &(tensor_type){DTYPE_I8, 2, huge, NULL}, &t));
    expect_fault("huge", E_TENSOR_SHAPE, "larger than any file");
    ck_assert(!read_image("a.bin", &m, &(tensor_type){DTYPE_F32, 1, large, NULL}, &t));
    expect_fault("large", E_TENSOR_SHAPE, "has 0 bytes");
}
END_TEST

/* ---- any damage ---- */

START_TEST(every_cut_is_refused)
{
    image whole[] = {npy_image(1, header_23, data_23, 24), npy_image(2, header_23, data_23, 24), st_image(st_23, data_23, 24)};
    static const char *const specs[] = {"a.npy", "a.npy", "a.safetensors:w"};
    for (size_t f = 0; f < sizeof whole / sizeof *whole; f++)
        for (size_t size = 0; size < whole[f].size; size++) {
            image cut = whole[f];
            cut.size = size;
            tensor t;
            ck_assert(!read_image(specs[f], &cut, &i32_23, &t));
            ck_assert_int_eq(diags.items[0]->id, E_TENSOR_FILE);
            ck_assert_ptr_nonnull(strstr(diags.items[0]->message, "byte offset"));
            diag_list_init(&diags, memory);
        }
}
END_TEST

static uint64_t random_state = 17;

static unsigned random_below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

/* Bytes are changed at random: the file is read as this tensor or refused, never worse. */
START_TEST(random_damage)
{
    image whole[] = {npy_image(1, header_23, data_23, 24), st_image(st_23, data_23, 24)};
    static const char *const specs[] = {"a.npy", "a.safetensors:w"};
    static const char bits[] = "0123456789-(),:'\"{}[]LTF<>|\\ i4u\x00\xff";
    int accepted = 0, rounds = 30000;
    for (int round = 0; round < rounds; round++) {
        size_t f = random_below(2);
        image m = whole[f];
        for (unsigned n = 1 + random_below(3); n > 0; n--)
            m.bytes[random_below((unsigned)m.size - 24)] = (unsigned char)bits[random_below(sizeof bits - 1)];
        tensor t;
        arena *a = arena_new();
        diag_list list;
        diag_list_init(&list, a);
        unsigned char *copy = malloc(m.size);
        memcpy(copy, m.bytes, m.size);
        bool done = tensor_file_read_image(specs[f], copy, m.size, &i32_23, a, &list, &t);
        free(copy);
        ck_assert_int_eq(done, list.count == 0);
        if (done) {
            ck_assert_uint_eq(t.size, 24);
            tensor_free(&t);
            accepted++;
        }
        arena_free(a);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, rounds / 2);
}
END_TEST

/* ---- files on disk ---- */

static bool write_tensor(const char *spec, const tensor *t)
{
    output_set *files = output_set_new(memory, &diags);
    output *to = output_declare(files, tensor_file_path(spec, memory));
    bool done = to && tensor_file_put(spec, t, to, memory, &diags) && output_set_commit(files);
    output_set_free(files);
    return done;
}

/* Every type through every format and back, with odd sizes. */
START_TEST(round_trips)
{
    static const char *const specs[] = {"t.npy", "t.safetensors:layer.0 \"q\"", "t.bin"};
    const int64_t shape[] = {3, 1, 5};
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (int rank = 0; rank <= 3 && !dtype_is_staging((dtype)d); rank++) /* i5 and i9 are in no file */
            for (size_t f = 0; f < 3; f++) {
                tensor_type type = {(dtype)d, rank, shape, NULL};
                tensor in, out;
                ck_assert(tensor_new(&type, memory, &in));
                tensor_fill_random(&in, 99, 1);
                ck_assert(write_tensor(path_of(specs[f]), &in));
                ck_assert_msg(tensor_file_read(path_of(specs[f]), &type, false, memory, &diags, &out), "%s",
                              diags.count ? diags.items[0]->message : "");
                ck_assert_uint_eq(in.size, out.size);
                ck_assert_mem_eq(in.bytes, out.bytes, in.size);
                tensor_free(&in);
                tensor_free(&out);
                ck_assert_int_eq(files_in_directory(true), 1);
            }
}
END_TEST

/* The bytes that NumPy itself writes for this array. */
START_TEST(npy_is_what_numpy_writes)
{
    tensor t;
    ck_assert(tensor_new(&(tensor_type){DTYPE_BF16, 1, (const int64_t[]){2}, NULL}, memory, &t));
    memcpy(t.bytes, "\x80\x3f\x00\x40", 4);
    ck_assert(write_tensor(path_of("t.npy"), &t));
    tensor_free(&t);
    char bytes[200], want[132];
    memset(want, ' ', sizeof want);
    memcpy(want, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(want + 10, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", 57);
    want[127] = '\n';
    memcpy(want + 128, "\x80\x3f\x00\x40", 4);
    FILE *file = fopen(path_of("t.npy"), "rb");
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, file), 132);
    fclose(file);
    ck_assert_mem_eq(bytes, want, 132);
}
END_TEST

static tensor tensor_23(void)
{
    tensor t;
    ck_assert(tensor_new(&i32_23, memory, &t));
    memcpy(t.bytes, data_23, 24);
    return t;
}

START_TEST(missing_files)
{
    tensor t;
    ck_assert(!tensor_file_read(path_of("none.npy"), &i32_23, false, memory, &diags, &t));
    expect_fault("missing", E_FILE_READ, "none.npy: No such file or directory");
    ck_assert(!tensor_file_read(directory, &i32_23, false, memory, &diags, &t));
    expect_fault("directory", E_FILE_READ, "Is a directory");
}
END_TEST

START_TEST(failed_writes_leave_nothing)
{
    tensor t = tensor_23(), out;
    ck_assert(!write_tensor(path_of("no/such.npy"), &t));
    expect_fault("directory", E_FILE_WRITE, "No such file");
    ck_assert(!write_tensor(directory, &t));
    expect_fault("is a directory", E_FILE_WRITE, "Is a directory");
    static const char *const nameless[] = {"t.safetensors", "t.safetensors:", "t.safetensors:__metadata__", "t.safetensors:\xff"};
    for (int i = 0; i < 4; i++) {
        ck_assert(!write_tensor(path_of(nameless[i]), &t));
        expect_fault("name", E_TENSOR_FILE, "needs a name");
    }
    ck_assert_int_eq(files_in_directory(false), 0);

    /* The disk is full in the middle: the old file stays. */
    ck_assert(write_tensor(path_of("t.bin"), &t));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){10, RLIM_INFINITY}), 0);
    bool done = write_tensor(path_of("t.bin"), &t);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    ck_assert(!done);
    expect_fault("full", E_FILE_WRITE, "File too large");
    ck_assert_int_eq(files_in_directory(false), 1);
    ck_assert(tensor_file_read(path_of("t.bin"), &i32_23, false, memory, &diags, &out));
    expect_23(&out);
    tensor_free(&t);
}
END_TEST

START_TEST(links_and_modes_stay)
{
    tensor t = tensor_23(), out;
    struct stat st;
    ck_assert(write_tensor(path_of("real.bin"), &t));
    ck_assert_int_eq(chmod(path_of("real.bin"), 0640), 0);
    ck_assert_int_eq(symlink("real.bin", path_of("link.bin")), 0);
    ck_assert(write_tensor(path_of("link.bin"), &t));
    ck_assert_int_eq(lstat(path_of("link.bin"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(stat(path_of("real.bin"), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_assert(tensor_file_read(path_of("link.bin"), &i32_23, false, memory, &diags, &out));
    expect_23(&out);
    tensor_free(&t);
}
END_TEST

/* f32 for narrower floats, where it is asked for: in every format, the bits of the casts' definition; and for nothing else. */
START_TEST(f32_is_rounded)
{
    static const float values[6] = {1.0f, -0.00390625f, 1.01171875f, 3.1415927f, 1e6f, -0.3f};
    static const int64_t shape_6[] = {2, 3}, column_major[] = {0, 3, 1, 4, 2, 5};
    static const dtype narrow[] = {DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_F4E2M1};
    static const char fortran[] = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
    static const char plain[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    static const char st[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
    float turned[6];
    for (int i = 0; i < 6; i++)
        turned[i] = values[column_major[i]];
    image turned_npy = npy_image(1, fortran, turned, sizeof turned), npy = npy_image(1, plain, values, sizeof values);
    image safe = st_image(st, values, sizeof values), raw = {.size = 0};
    add(&raw, values, sizeof values);
    const image *const images[] = {&npy, &turned_npy, &safe, &raw};
    static const char *const names[] = {"r.npy", "f.npy", "r.safetensors:w", "r.bin"};
    for (int f = 0; f < 4; f++) {
        FILE *file = fopen(tensor_file_path(path_of(names[f]), memory), "wb");
        ck_assert(file && fwrite(images[f]->bytes, 1, images[f]->size, file) == images[f]->size && fclose(file) == 0);
        for (int n = 0; n < 4; n++) {
            tensor_type want = {narrow[n], 2, shape_6, names_mk};
            tensor t;
            ck_assert_msg(tensor_file_read(path_of(names[f]), &want, true, memory, &diags, &t), "%s", diags.items[0]->message);
            ck_assert_int_eq(t.type.dtype, narrow[n]);
            for (int i = 0; i < 6; i++) {
                float back = narrow[n] == DTYPE_BF16     ? numeric_bf16_to_f32(numeric_f32_to_bf16(values[i]))
                             : narrow[n] == DTYPE_F8E4M3 ? numeric_f8e4m3_to_f32(numeric_f32_to_f8e4m3(values[i]))
                             : narrow[n] == DTYPE_F8E5M2 ? numeric_f8e5m2_to_f32(numeric_f32_to_f8e5m2(values[i]))
                                                         : numeric_f4e2m1_to_f32(numeric_f32_to_f4e2m1(values[i]));
                ck_assert_double_eq(numeric_to_double(narrow[n], t.bytes, i), (double)back);
            }
            tensor_free(&t);
            ck_assert(!tensor_file_read(path_of(names[f]), &want, false, memory, &diags, &t));
            expect_fault(names[f], f == 3 ? E_TENSOR_SHAPE : E_TENSOR_TYPE, f == 3 ? "24 bytes" : f == 2 ? "F32" : "<f4");
        }
        tensor t;
        tensor_type integers = {DTYPE_I8, 2, shape_6, names_mk};
        ck_assert(!tensor_file_read(path_of(names[f]), &integers, true, memory, &diags, &t));
        expect_fault(names[f], f == 3 ? E_TENSOR_SHAPE : E_TENSOR_TYPE, "i8");
    }
}
END_TEST

/* Another process writes the image into a pipe; the size is not known in advance. */
static bool read_pipe(const char *name, const image *m, tensor *out)
{
    ck_assert_int_eq(mkfifo(path_of(name), 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGPIPE, SIG_IGN);
        int fd = open(path_of(name), O_WRONLY);
        _exit(write(fd, m->bytes, m->size) == (ssize_t)m->size ? 0 : 1);
    }
    const char *spec = strstr(name, ".safetensors") ? arena_printf(memory, "%s:w", path_of(name)) : path_of(name);
    bool done = tensor_file_read(spec, &i32_23, false, memory, &diags, out);
    waitpid(child, NULL, 0);
    unlink(path_of(name));
    return done;
}

START_TEST(pipes)
{
    image st = st_image("{" ENTRY("v", "U8", "[5000]", "0", "5000") "," ENTRY("w", "I32", "[2,3]", "5000", "5024") "}", "", 0);
    st.size += 5000;
    add(&st, data_23, 24);
    image npy = npy_image(1, header_23, data_23, 24), raw = {.size = 0};
    add(&raw, data_23, 24);
    tensor t;
    ck_assert(read_pipe("p.safetensors", &st, &t));
    expect_23(&t);
    ck_assert(read_pipe("p.npy", &npy, &t));
    expect_23(&t);
    ck_assert(read_pipe("p", &raw, &t));
    expect_23(&t);
    raw.size = 23;
    ck_assert(!read_pipe("p", &raw, &t));
    expect_fault("short", E_TENSOR_FILE, "byte offset 23: the file ends inside the data (23 of its 24");
    raw.size = 25;
    ck_assert(!read_pipe("p", &raw, &t));
    expect_fault("long", E_TENSOR_FILE, "more data follows");
    npy.size += 7;
    ck_assert(!read_pipe("p.npy", &npy, &t));
    expect_fault("long", E_TENSOR_FILE, "more data follows");
    ck_assert_ptr_null(t.bytes);
}
END_TEST

START_TEST(standard_streams)
{
    tensor t = tensor_23(), out;
    int old = dup(1), fd = open(path_of("s"), O_RDWR | O_CREAT, 0600);
    fflush(stdout);
    dup2(fd, 1);
    bool done = write_tensor("-", &t);
    dup2(old, 1);
    ck_assert(done);
    lseek(fd, 0, SEEK_SET);
    dup2(fd, 0);
    ck_assert(tensor_file_read("-", &i32_23, false, memory, &diags, &out));
    expect_23(&out);
    close(fd);
    tensor_free(&t);
}
END_TEST

/* A real file of another library, where the project's material has it. */
START_TEST(mnist)
{
    const char *shared = getenv("VISA_SHARED"), *source = getenv("VISA_SOURCE");
    const char *file = shared   ? arena_printf(memory, "%s/data/mnist.safetensors", shared)
                       : source ? arena_printf(memory, "%s/../shared/data/mnist.safetensors", source)
                                : "";
    if (access(file, R_OK) != 0) {
        printf("skipped: no mnist.safetensors (VISA_SHARED names its folder)\n");
        return;
    }
    const int64_t padded[] = {256, 800}, plain[] = {256, 784}, one[] = {1};
    tensor wide, narrow, label;
    ck_assert(tensor_file_read(arena_printf(memory, "%s:hw.fc1.weight", file), &(tensor_type){DTYPE_BF16, 2, padded, NULL}, false, memory,
                               &diags, &wide));
    ck_assert(tensor_file_read(arena_printf(memory, "%s:fc1.weight", file), &(tensor_type){DTYPE_BF16, 2, plain, NULL}, false, memory,
                               &diags, &narrow));
    for (int r = 0; r < 256; r++)
        for (int c = 0; c < 800; c++)
            ck_assert_double_eq(numeric_to_double(DTYPE_BF16, wide.bytes, r * 800 + c),
                                c < 784 ? numeric_to_double(DTYPE_BF16, narrow.bytes, r * 784 + c) : 0);
    ck_assert(
        tensor_file_read(arena_printf(memory, "%s:label_3", file), &(tensor_type){DTYPE_I32, 1, one, NULL}, false, memory, &diags, &label));
    double digit = numeric_to_double(DTYPE_I32, label.bytes, 0);
    ck_assert(digit >= 0 && digit <= 9);
    tensor_free(&wide);
    tensor_free(&narrow);
    tensor_free(&label);
    ck_assert(!tensor_file_read(arena_printf(memory, "%s:fc1.weight", file), &(tensor_type){DTYPE_BF16, 2, padded, NULL}, false, memory,
                                &diags, &wide));
    expect_fault("shape", E_TENSOR_SHAPE, "[256, 784], the port's is [256, 800]");
}
END_TEST

/* ---- tensors ---- */

START_TEST(sizes_are_checked)
{
    const int64_t huge[] = {INT64_C(1) << 31, INT64_C(1) << 31}, negative[] = {4, -1}, zero[] = {INT64_MAX, 0, INT64_MAX};
    tensor t;
    ck_assert(!tensor_new(&(tensor_type){DTYPE_I8, 2, huge, NULL}, memory, &t));
    ck_assert(!tensor_new(&(tensor_type){DTYPE_I8, 2, negative, NULL}, memory, &t));
    ck_assert(tensor_new(&(tensor_type){DTYPE_I8, 3, zero, NULL}, memory, &t));
    ck_assert_uint_eq(t.size, 0);
    tensor p;
    ck_assert(tensor_permute(&t, (const int[]){2, 0, 1}, memory, &p));
    tensor_free(&t);
    tensor_free(&p);
    ck_assert_int_eq(tensor_bytes(DTYPE_I4, 5), 3);
    ck_assert_int_eq(tensor_bytes(DTYPE_F32, INT64_C(1) << 60), INT64_C(1) << 62);
    ck_assert_int_eq(tensor_bytes(DTYPE_I4, INT64_MAX), -1);
    ck_assert_int_eq(tensor_bytes(DTYPE_I8, -1), -1);
}
END_TEST

START_TEST(permutes)
{
    const int64_t shape[] = {2, 3, 5, 4};
    const char *const names[] = {"A", "B", "C", "D"};
    const int order[] = {2, 0, 3, 1};
    for (int d = 0; d < DTYPE_COUNT; d++) {
        tensor in, out;
        ck_assert(tensor_new(&(tensor_type){(dtype)d, 4, shape, names}, memory, &in));
        tensor_fill_random(&in, (uint64_t)d, 1);
        ck_assert(tensor_permute(&in, order, memory, &out));
        ck_assert_str_eq(tensor_shape_text(&out.type, memory), "[C=5, A=2, D=4, B=3]");
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 3; b++)
                for (int c = 0; c < 5; c++)
                    for (int e = 0; e < 4; e++)
                        ck_assert_double_eq(numeric_to_double((dtype)d, in.bytes, ((a * 3 + b) * 5 + c) * 4 + e),
                                            numeric_to_double((dtype)d, out.bytes, ((c * 2 + a) * 4 + e) * 3 + b));
        tensor_free(&in);
        tensor_free(&out);
    }
}
END_TEST

static tensor random_row(dtype type, int64_t elements, uint64_t seed, unsigned threads)
{
    int64_t *shape = ARENA_ARRAY(memory, int64_t, 1);
    tensor t;
    *shape = elements;
    ck_assert(tensor_new(&(tensor_type){type, 1, shape, NULL}, memory, &t));
    tensor_fill_random(&t, seed, threads);
    return t;
}

START_TEST(threads_fill_the_same)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        tensor one = random_row((dtype)d, 1000003, 5, 1), several = random_row((dtype)d, 1000003, 5, 3);
        ck_assert_mem_eq(one.bytes, several.bytes, one.size);
        tensor_free(&one);
        tensor_free(&several);
    }
}
END_TEST

START_TEST(random_fill)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        tensor a = random_row((dtype)d, 20000, 5, 1), b = random_row((dtype)d, 20000, 5, 1);
        ck_assert_mem_eq(a.bytes, b.bytes, a.size);
        tensor_fill_random(&b, 6, 1);
        ck_assert_int_ne(memcmp(a.bytes, b.bytes, a.size), 0);
        double low = INFINITY, high = -INFINITY, sum = 0;
        for (int i = 0; i < 20000; i++) {
            double v = numeric_to_double((dtype)d, a.bytes, i);
            ck_assert(isfinite(v));
            low = v < low ? v : low;
            high = v > high ? v : high;
            sum += v;
        }
        bool is_float = dtype_row_of((dtype)d)->kind == DTYPE_KIND_FLOAT;
        if (d == DTYPE_U8 || d == DTYPE_F4E2M1 || dtype_is_staging((dtype)d)) { /* any code */
            bool most = d == DTYPE_U8 ? low == 0 && high == 255 : high > 0 && low == -high - !is_float;
            ck_assert(most);
            tensor_free(&a);
            tensor_free(&b);
            continue;
        }
        double limit = is_float ? 1 : ldexp(1, (int)dtype_row_of((dtype)d)->bits - 1);
        ck_assert(low >= -limit && low < -0.98 * limit && high <= limit && high > 0.85 * limit);
        /* A mean of 20,000 such numbers has a standard deviation of limit / sqrt(60,000); six of them. Integers go from -limit to limit
         * - 1. */
        ck_assert(fabs(sum / 20000 - (is_float ? 0 : -0.5)) < 0.0245 * limit);
        if (d == DTYPE_I4 || d == DTYPE_I8)
            ck_assert(low == -limit && high == limit - 1);
        tensor_free(&a);
        tensor_free(&b);
    }
}
END_TEST

int main(void)
{
    return suite_of("tensor_file", setup, teardown, npy_versions, npy_spellings, npy_fortran_order, npy_fortran_order_i4, npy_element_types,
                    integers_must_fit, npy_headers_are_refused, npy_says_everything, npy_headers_end_where_they_may,
                    npy_heads_of_any_length, npy_prefix_is_checked, safetensors_tensors, safetensors_single_needs_no_name,
                    safetensors_headers_are_refused, safetensors_offset_of_the_damage, safetensors_deep_and_long, raw_is_exact,
                    every_cut_is_refused, random_damage, round_trips, npy_is_what_numpy_writes, missing_files, failed_writes_leave_nothing,
                    links_and_modes_stay, pipes, f32_is_rounded, standard_streams, mnist, sizes_are_checked, permutes,
                    threads_fill_the_same, random_fill);
}
