/* The file: what is written is read back, damage anywhere is an error and never a crash. */
#define _GNU_SOURCE /* memmem, strcasestr */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/elf_file.h"
#include "support/file.h"
#include "test/binary/sample_binary.h"
#include "test/fixture.h"

typedef struct file_bytes {
    const unsigned char *bytes;
    size_t size;
} file_bytes;

static file_bytes written(const binary *b)
{
    file_bytes f = {0};
    bool ok = sample_write(b, memory, &diags, &f.bytes, &f.size);
    ck_assert_msg(ok, "%s", diags.count ? diags.items[0]->message : "no diagnostic");
    ck_assert_uint_eq(diags.count, 0);
    return f;
}

static file_bytes sample_file(void)
{
    binary b = sample_binary(memory);
    return written(&b);
}

static void expect_diag(diag_id id, const char *part)
{
    ck_assert_uint_gt(diags.count, 0);
    ck_assert_msg(diags.items[0]->id == id && strstr(diags.items[0]->message, part), "%s: %s", diag_row_of(diags.items[0]->id)->name,
                  diags.items[0]->message);
}

static void expect_write_fault(const binary *b, diag_id id, const char *part)
{
    file_bytes f;
    diag_list_init(&diags, memory);
    ck_assert(!sample_write(b, memory, &diags, &f.bytes, &f.size));
    expect_diag(id, part);
}

/* Deep comparison */

static void same_commands(const binary_kernel *a, const binary_kernel *b)
{
    for (int where = 0; where < 3; where++) {
        ck_assert_uint_eq(a->streams[where].count, b->streams[where].count);
        for (size_t i = 0; i < a->streams[where].count; i++) {
            const command *x = &a->streams[where].commands[i], *y = &b->streams[where].commands[i];
            ck_assert_str_eq(command_text(x, memory), command_text(y, memory));
            ck_assert_int_eq(x->op, y->op);
            ck_assert_int_eq(x->context, y->context);
            ck_assert_mem_eq(x->fields, y->fields, sizeof x->fields);
            ck_assert_uint_eq(x->entry_count, y->entry_count);
            ck_assert_mem_eq(x->entries, y->entries, x->entry_count * sizeof x->entries[0]);
            ck_assert_uint_eq(x->offset, y->offset);
            ck_assert_uint_eq(x->line, y->line);
        }
    }
}

static void same_ports(const binary_kernel *a, const binary_kernel *b)
{
    ck_assert_uint_eq(a->axis_count, b->axis_count);
    for (uint32_t i = 0; i < a->axis_count; i++) {
        ck_assert_str_eq(a->axes[i].name, b->axes[i].name);
        ck_assert_int_eq(a->axes[i].size, b->axes[i].size);
    }
    ck_assert_uint_eq(a->port_count, b->port_count);
    for (uint32_t i = 0; i < a->port_count; i++) {
        const port *x = &a->ports[i], *y = &b->ports[i];
        ck_assert_str_eq(x->name, y->name);
        ck_assert(x->direction == y->direction && x->space == y->space && x->dtype == y->dtype);
        ck_assert(x->trf_address == y->trf_address && x->address == y->address);
        for (int c = 0; c < COMPONENT_COUNT; c++) {
            ck_assert_uint_eq(x->mapping[c].count, y->mapping[c].count);
            for (size_t w = 0; w < x->mapping[c].count; w++)
                ck_assert_uint_eq(x->mapping[c].words[w], y->mapping[c].words[w]);
        }
    }
}

static void same_einsum(const einsum *a, const einsum *b)
{
    ck_assert_str_eq(a->text, b->text);
    ck_assert_uint_eq(a->tensor_count, b->tensor_count);
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        const einsum_tensor *x = &a->tensors[i], *y = &b->tensors[i];
        ck_assert_str_eq(x->name, y->name);
        ck_assert(x->dtype == y->dtype && x->port == y->port && x->rank == y->rank);
        ck_assert_mem_eq(x->axes, y->axes, x->rank * sizeof *x->axes);
    }
    ck_assert_uint_eq(a->statement_count, b->statement_count);
    for (uint32_t i = 0; i < a->statement_count; i++) {
        const einsum_statement *x = &a->statements[i], *y = &b->statements[i];
        ck_assert(x->op == y->op && x->dst == y->dst && x->source_count == y->source_count &&
                  memcmp(x->sources, y->sources, sizeof x->sources) == 0);
        ck_assert(x->accumulator == y->accumulator && x->digit_count == y->digit_count);
        for (uint32_t d = 0; d < x->digit_count; d++) {
            ck_assert(x->digits[d].axis == y->digits[d].axis && x->digits[d].kept == y->digits[d].kept);
            ck_assert(x->digits[d].weight == y->digits[d].weight && x->digits[d].size == y->digits[d].size);
        }
    }
}

static void same_binary(const binary *a, const binary *b)
{
    ck_assert_ptr_eq(a->target, b->target);
    ck_assert_uint_eq(a->kernel_count, b->kernel_count);
    for (size_t i = 0; i < a->kernel_count; i++) {
        ck_assert_str_eq(a->kernels[i].name, b->kernels[i].name);
        same_ports(&a->kernels[i], &b->kernels[i]);
        same_commands(&a->kernels[i], &b->kernels[i]);
        same_einsum(&a->kernels[i].einsum, &b->kernels[i].einsum);
    }
}

START_TEST(test_write_then_read)
{
    binary b = sample_binary(memory), again;
    file_bytes f = written(&b);
    ck_assert(binary_read(f.bytes, f.size, memory, &diags, &again));
    same_binary(&b, &again);
    ck_assert_uint_eq(again.symbol_count, 4);
    ck_assert_str_eq(again.symbols[0].name, "matmul");
    ck_assert_str_eq(again.symbols[0].section, ".visa.main.matmul");
    ck_assert_str_eq(again.symbols[3].name, "matmul.out");
    ck_assert_str_eq(again.symbols[3].section, ".visa.ports.matmul");
    ck_assert_ptr_eq(binary_kernel_by_name(&again, "matmul"), again.kernels);
    ck_assert_ptr_null(binary_kernel_by_name(&again, "matmu"));
}
END_TEST

START_TEST(test_read_then_write_is_identical)
{
    binary b = sample_binary(memory), again;
    file_bytes first = written(&b), second = written(&b), third;
    ck_assert(binary_read(first.bytes, first.size, memory, &diags, &again));
    third = written(&again);
    ck_assert_uint_eq(first.size, second.size);
    ck_assert_mem_eq(first.bytes, second.bytes, first.size);
    ck_assert_uint_eq(first.size, third.size);
    ck_assert_mem_eq(first.bytes, third.bytes, first.size);
}
END_TEST

/* The bytes may go away, and need no alignment. */
START_TEST(test_read_keeps_nothing_of_the_bytes)
{
    binary b = sample_binary(memory), again;
    file_bytes f = written(&b);
    unsigned char *odd = malloc(f.size + 1);
    memcpy(odd + 1, f.bytes, f.size);
    ck_assert(binary_read(odd + 1, f.size, memory, &diags, &again));
    memset(odd, 0xff, f.size + 1);
    free(odd);
    same_binary(&b, &again);
}
END_TEST

START_TEST(test_stream_words_are_the_sections_bytes)
{
    binary b = sample_binary(memory);
    file_bytes f = written(&b);
    for (int where = 0; where < 3; where++) {
        uint64_t *words;
        size_t count;
        ck_assert(binary_stream_words(&b.kernels[0], (context)where, memory, &words, &count));
        ck_assert_uint_gt(count, 0);
        ck_assert_ptr_nonnull(memmem(f.bytes, f.size, words, count * 8)); /* hosts of the suite are little-endian */
    }
}
END_TEST

static binary many_kernels(size_t count)
{
    binary_kernel *kernels = ARENA_ARRAY(memory, binary_kernel, count);
    for (size_t i = 0; i < count; i++) {
        kernels[i] = *sample_kernel(memory, arena_printf(memory, "mod_%zu::k", count - i));
        if (i % 3 == 1) /* no commands at all */
            memset(kernels[i].streams, 0, sizeof kernels[i].streams);
        if (i % 3 == 2)
            kernels[i].einsum = (einsum){sample_axes, COUNT_OF(sample_axes), NULL, 0, NULL, 0, "", NULL, 0, NULL};
    }
    return (binary){.target = target_by_name("rngd"), .kernels = kernels, .kernel_count = count};
}

START_TEST(test_many_kernels)
{
    const size_t counts[] = {0, 1, 2, 3, 40};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        binary b = many_kernels(counts[i]), again;
        file_bytes f = written(&b);
        ck_assert(binary_read(f.bytes, f.size, memory, &diags, &again));
        same_binary(&b, &again);
    }
}
END_TEST

static const uint64_t one_row[] = {LAYOUT_WORD(LAYOUT_BROADCAST, 1), LAYOUT_WORD(LAYOUT_PAD, 2)};

START_TEST(test_ports_of_every_space)
{
    port ports[] = {
        {.name = "hbm", .dtype = DTYPE_I4, .address = (48LL << 30) - 8, .mapping = SAMPLE_HBM(sample_one, sample_mk)},
        {.name = "dm", .space = PORT_DM, .direction = PORT_OUT, .address = 512 * 1024 - 8},
        {.name = "trf", .space = PORT_TRF, .trf_address = TRF_SECOND_HALF, .dtype = DTYPE_I8},
        {.name = "stream", .space = PORT_STREAM, .dtype = DTYPE_F8E5M2},
    };
    for (int p = 1; p < 4; p++)
        for (int c = 0; c < COMPONENT_COUNT; c++)
            if (port_space_has(ports[p].space, (port_component)c))
                ports[p].mapping[c] = c == COMPONENT_CLUSTER ? (layout){one_row, 2} : (layout){sample_mn, 3};
    ports[3].mapping[COMPONENT_SLICE] = (layout){sample_one, 1};
    binary_kernel k = {.name = "k", .axes = sample_axes, .axis_count = 3, .ports = ports, .port_count = 4, .einsum = {.text = ""}};
    binary b = {.target = target_by_name("rngd"), .kernels = &k, .kernel_count = 1}, again;
    file_bytes f = written(&b);
    ck_assert(binary_read(f.bytes, f.size, memory, &diags, &again));
    same_binary(&b, &again);
}
END_TEST

START_TEST(test_writer_refuses_kernels)
{
    static const char *const names[] = {"", "a b", "a.b", "a-b", "k\n"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        binary b = {.target = target_by_name("rngd"), .kernels = sample_kernel(memory, names[i]), .kernel_count = 1};
        expect_write_fault(&b, E_BIN_FORMAT, "letters, digits");
    }
    binary_kernel twins[2] = {*sample_kernel(memory, "k"), *sample_kernel(memory, "k")};
    binary b = {.target = target_by_name("rngd"), .kernels = twins, .kernel_count = 2};
    expect_write_fault(&b, E_BIN_FORMAT, "two sections of that name");
}
END_TEST

typedef struct port_case {
    port port;
    const char *part;
} port_case;

static const uint64_t bad_axis[] = {LAYOUT_WORD(LAYOUT_AXIS, 3)};

START_TEST(test_writer_refuses_ports)
{
    const layout one = {sample_one, 1};
    const port_case cases[] = {
        {{.name = "", .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "printable ASCII"},
        {{.name = "p\x80", .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "printable ASCII"},
        {{.name = "p"}, "no chip mapping"},
        {{.name = "p", .mapping = {[COMPONENT_CHIP] = one, [COMPONENT_ELEMENT] = one, [COMPONENT_TIME] = one}}, "a time mapping"},
        {{.name = "p", .mapping = {[COMPONENT_CHIP] = one, [COMPONENT_ELEMENT] = {bad_axis, 1}}}, "axis number 3 of 3"},
        {{.name = "p", .address = -1, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "address"},
        {{.name = "p", .address = 48LL << 30, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "address"},
        {{.name = "p", .direction = PORT_OUT + 1, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "unknown code"},
        {{.name = "p", .space = PORT_VRF + 1, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "unknown code"},
        {{.name = "p", .dtype = DTYPE_COUNT, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "unknown code"},
        {{.name = "p", .trf_address = TRF_SECOND_HALF + 1, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "unknown code"},
        {{.name = "p", .trf_address = TRF_FIRST_HALF, .mapping = SAMPLE_HBM(sample_one, sample_mk)}, "trf_address"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        binary_kernel *k = sample_kernel(memory, "k");
        k->ports = &cases[i].port;
        k->port_count = 1;
        k->einsum = (einsum){.text = ""};
        binary b = {.target = target_by_name("rngd"), .kernels = k, .kernel_count = 1};
        expect_write_fault(&b, E_BIN_FORMAT, cases[i].part);
    }
}
END_TEST

START_TEST(test_writer_refuses_the_rest)
{
    binary b = sample_binary(memory);
    binary_kernel *k = (binary_kernel *)b.kernels;
    command *c = (command *)k->streams[CONTEXT_MAIN].commands;
    c[4].context = CONTEXT_SUB;
    expect_write_fault(&b, E_BIN_FORMAT, "another context");
    b = sample_binary(memory);
    c = (command *)b.kernels[0].streams[CONTEXT_MAIN].commands;
    command_set(&c[0], WAIT_COUNT, 0);
    expect_write_fault(&b, E_BIN_COMMAND, "wait: count is 0 commands, allowed are 1 to 4294967295");
    b = sample_binary(memory);
    port *ports = ARENA_ARRAY(memory, port, 3);
    memcpy(ports, sample_ports, sizeof sample_ports);
    ports[2].direction = PORT_IN;
    ((binary_kernel *)b.kernels)->ports = ports;
    expect_write_fault(&b, E_BIN_FORMAT, "port out is an input but the einsum assigns it");
    ports[2].direction = PORT_OUT;
    ports[1].direction = PORT_OUT;
    expect_write_fault(&b, E_BIN_FORMAT, "port b is an output but the einsum never assigns it");
    ports[1] = ports[0];
    expect_write_fault(&b, E_BIN_FORMAT, "two ports named a");
}
END_TEST

/* Damage */

/* Reads damaged bytes with memory of its own; true when they were accepted. */
static bool accepts(const unsigned char *bytes, size_t size)
{
    arena *a = arena_new();
    diag_list list;
    binary b;
    diag_list_init(&list, a);
    bool ok = binary_read(bytes, size, a, &list, &b);
    if (!ok) { /* an error that says where */
        ck_assert_uint_eq(list.error_count, 1);
        ck_assert_ptr_nonnull(strstr(list.items[0]->message, "offset 0x"));
    } else {
        ck_assert_uint_eq(list.count, 0);
    }
    arena_free(a);
    return ok;
}

/* Does a file that was accepted mean something else than `good`? */
static bool differs(const unsigned char *bytes, file_bytes good)
{
    arena *a = arena_new();
    diag_list list;
    binary b;
    file_bytes again = {0};
    diag_list_init(&list, a);
    bool ok = binary_read(bytes, good.size, a, &list, &b) && sample_write(&b, a, &list, &again.bytes, &again.size);
    bool same = ok && again.size == good.size && memcmp(again.bytes, good.bytes, good.size) == 0;
    arena_free(a);
    ck_assert(ok);
    return !same;
}

START_TEST(test_every_truncation_is_refused)
{
    file_bytes f = sample_file();
    for (size_t size = 0; size < f.size; size++) {
        unsigned char *cut = malloc(size ? size : 1); /* exact, so that a read past the end shows */
        memcpy(cut, f.bytes, size);
        ck_assert_msg(!accepts(cut, size), "truncated to %zu bytes", size);
        free(cut);
    }
}
END_TEST

/* Where the symbol table begins: after it the file has nothing but ELF's own tables. */
static size_t visa_end(file_bytes f)
{
    size_t sections = (size_t)f.bytes[40] | (size_t)f.bytes[41] << 8;
    for (size_t at = sections; at < f.size; at += 64)
        if (f.bytes[at + 4] == 2) /* SHT_SYMTAB */
            return (size_t)f.bytes[at + 24] | (size_t)f.bytes[at + 25] << 8;
    ck_abort_msg("no symbol table");
    return 0;
}

/* Every changed byte is refused or seen: none of the bytes of a visa section is ignored. */
START_TEST(test_every_byte_changed)
{
    static const unsigned char changes[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f};
    file_bytes f = sample_file();
    unsigned char *damaged = malloc(f.size);
    size_t refused = 0, end = visa_end(f);
    memcpy(damaged, f.bytes, f.size);
    for (size_t i = 0; i < f.size; i++)
        for (size_t c = 0; c < COUNT_OF(changes); c++) {
            damaged[i] = f.bytes[i] ^ changes[c];
            bool accepted = accepts(damaged, f.size);
            refused += !accepted;
            ck_assert_msg(!accepted || i >= end || differs(damaged, f), "byte 0x%zx ^ 0x%02x is ignored", i, changes[c]);
            damaged[i] = f.bytes[i];
        }
    free(damaged);
    ck_assert_uint_gt(refused, f.size * COUNT_OF(changes) / 2);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Many changes at once, some of whole words to extreme values, and pieces moved about. */
START_TEST(test_random_damage)
{
    static const uint64_t extremes[] = {0, 1, 63, 64, 0x7fffffff, 0xffffffff, INT64_MAX, 1ULL << 63, UINT64_MAX};
    file_bytes f = sample_file();
    uint64_t state = 88172645463325252ULL;
    for (int round = 0; round < suite_rounds(4000); round++) {
        unsigned char *damaged = malloc(f.size);
        memcpy(damaged, f.bytes, f.size);
        for (uint64_t n = 1 + next_random(&state) % 4; n > 0; n--) {
            size_t word = next_random(&state) % (f.size / 8);
            uint64_t value = extremes[next_random(&state) % COUNT_OF(extremes)];
            size_t from = next_random(&state) % (f.size - 64), to = next_random(&state) % (f.size - 64);
            if (next_random(&state) % 4)
                memcpy(damaged + word * 8, &value, 8);
            else
                memmove(damaged + to, damaged + from, 64);
        }
        accepts(damaged, f.size);
        free(damaged);
    }
}
END_TEST

START_TEST(test_not_a_binary)
{
    static const char text[] = "fn matmul() {}\n";
    ck_assert(!accepts((const unsigned char *)text, 0));
    ck_assert(!accepts((const unsigned char *)text, sizeof text));
    FILE *self = fopen("/proc/self/exe", "rb");
    ck_assert_ptr_nonnull(self);
    unsigned char *bytes = malloc(1 << 16);
    size_t size = fread(bytes, 1, 1 << 16, self);
    fclose(self);
    ck_assert(!accepts(bytes, size));
    free(bytes);
}
END_TEST

START_TEST(test_version_and_target)
{
    file_bytes f = sample_file();
    unsigned char *bytes = malloc(f.size);
    binary b;
    memcpy(bytes, f.bytes, f.size);
    bytes[64 + 20] = BINARY_FORMAT_VERSION + 1;
    ck_assert(!binary_read(bytes, f.size, memory, &diags, &b));
    expect_diag(E_BIN_VERSION, "format version 13");
    bytes[64 + 20] = BINARY_FORMAT_VERSION;
    memcpy(bytes + 64 + 24, "rngx", 4);
    diag_list_init(&diags, memory);
    ck_assert(!binary_read(bytes, f.size, memory, &diags, &b));
    expect_diag(E_BIN_VERSION, "target \"rngx\"");
    free(bytes);
}
END_TEST

static void put_name(unsigned char *bytes, size_t size, const char *from, const char *to)
{
    unsigned char *at = memmem(bytes, size, from, strlen(from));
    ck_assert_ptr_nonnull(at);
    memcpy(at, to, strlen(to));
}

/* One changed word each, with the rule that it breaks. Sections of the sample: 1 note, 2 main, 3 sub, 4 dma,
 * 5 ports, 6 einsum, 7 lines, 8 symtab, 9 strtab, 10 shstrtab. */
typedef struct patch_case {
    int section; /* -1: from the file's begin; 100 + n: in section header n; else in the section's content */
    size_t offset, bytes;
    uint64_t value;
    const char *part;
} patch_case;

static uint64_t number_at(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static size_t place_of(const unsigned char *file, const patch_case *p)
{
    size_t headers = number_at(file + 40, 8);
    if (p->section < 0)
        return p->offset;
    if (p->section >= 100)
        return headers + (size_t)(p->section - 100) * 64 + p->offset;
    size_t section = headers + (size_t)p->section * 64, size = number_at(file + section + 32, 8);
    return number_at(file + section + 24, 8) + (p->offset == SIZE_MAX ? size - p->bytes : p->offset);
}

static const patch_case patch_cases[] = {
    {-1, 0, 1, 0, "file offset 0x0: the ELF magic number"},
    {-1, 4, 1, 1, "file offset 0x4: the class"},
    {-1, 5, 1, 2, "the byte order"},
    {-1, 7, 1, 0, "the OS/ABI (standalone) is 0x0, expected is 0xff"},
    {-1, 16, 2, 2, "the file type"},
    {-1, 18, 2, 62, "the machine (none) is 0x3e"},
    {-1, 24, 8, 1, "the entry point"},
    {-1, 56, 2, 1, "the number of program headers"},
    {-1, 40, 8, 0, "section headers at 0x0"},
    {-1, 40, 8, UINT64_MAX - 7, "section headers at 0xfffffffffffffff8"},
    {-1, 40, 8, 65, "section headers at 0x41"},
    {-1, 60, 2, 1, "1 section headers"},
    {-1, 60, 2, 12, "12 section headers"},
    {-1, 60, 2, 0xffff, "65535 section headers"},
    {-1, 62, 2, 0, "the section names are in section 0"},
    {-1, 62, 2, 11, "the section names are in section 11 of 11"},
    {-1, 62, 2, 2, "section 2 is no table of section names"},
    {100, 32, 8, 1, "section header 0 is not zero"},
    {101, 0, 4, 0, "section .note.visa offset 0x0: the section is missing"},
    {102, 0, 4, 0xffff, "the name of section 2 is outside"},
    {102, 4, 4, 8, "section 2 has type 8, which has no content"},
    {102, 4, 4, 7, "section .visa.main.matmul offset 0x0: the section's type is not PROGBITS"},
    {102, 8, 8, 2, "section 2 has flags or an address"},
    {102, 16, 8, 4096, "section 2 has flags or an address"},
    {102, 24, 8, UINT64_MAX - 7, "section 2 is 0x"},
    {102, 32, 8, UINT64_MAX - 7, "section 2 is 0xfffffffffffffff8 bytes"},
    {102, 32, 8, 4096, "section 2 is 0x1000 bytes"},
    {102, 32, 8, 2600, "section 2 is 0xa28 bytes at 0x60 in a file of"},
    {102, 32, 8, 352, "two parts of the file overlap"},
    {102, 24, 8, 8, "two parts of the file overlap"},
    {102, 32, 8, 0, "section .visa.main.matmul offset 0x0: the section is empty"},
    {102, 32, 8, 340, "section .visa.main.matmul offset 0x154: the size is no multiple of 8 bytes"},
    {102, 40, 4, 11, "section 2 links to section 11 of 11"},
    {102, 48, 8, 3, "has alignment 3"},
    {102, 48, 8, 64, "has alignment 64"},
    {10, SIZE_MAX, 1, 'x', "section 10 is no table of section names"},
    {10, 1, 1, ' ', "the name of section 1 is not printable ASCII"},
    {10, 1, 1, 0x80, "the name of section 1 is not printable ASCII"},
    {1, 8, 1, 2, "the note is not of owner \"visa\" and type 1"},
    {1, 12, 1, 'V', "the note is not of owner \"visa\" and type 1"},
    {1, 4, 1, 13, "section .note.visa offset 0x4: the note's length"},
    {1, 20, 1, 0, "format version 0"},
    {1, 29, 1, 'x', "section .note.visa offset 0x1d: a padding byte is not zero"},
    {1, 24, 8, 0x7878787878787878, "the target's name is empty, not printable or without an end"},
    {5, 0, 4, 0x10000, "65536 axes"},
    {5, 4, 4, 0x10000, "65536 ports"},
    {5, 0, 4, 1000, "1000 axes do not fit"},
    {5, 8, 8, UINT64_MAX, "the string area of 18446744073709551615 bytes"},
    {5, 16, 8, 1000, "string offset 1000 is outside"},
    {5, 24, 8, 0, "axis M has size 0"},
    {5, 24, 8, UINT64_C(1) << 62, "axis M has size 4611686018427387904"},
    {5, 32, 8, 0, "there are two axes named M"},
    {5, 64, 4, 8, "there are two ports named b"},
    {5, 68, 1, 2, "direction code 2"},
    {5, 69, 1, 5, "space code 5"},
    {5, 70, 1, 12, "dtype code 12"},
    {5, 71, 1, 3, "trf_address code 3"},
    {5, 71, 1, 1, "is not in the TRF but has trf_address FirstHalf"},
    {5, 72, 8, INT64_MIN, "address 9223372036854775808"},
    {5, 80, 8, 0, "mapping, word 0: 0 words"},
    {5, 80, 8, UINT64_MAX, "18446744073709551615 mapping words do not fit"},
    {5, 88, 8, UINT64_C(1) << 63 | LAYOUT_BROADCAST, "port a has 2^62 positions or more"},
    {5, 88, 8, UINT64_C(1) << 60 | LAYOUT_BROADCAST, "port a has 2^62 positions or more"},
    {7, 0, 8, 8, "no command begins at offset 0x8 of the main context"},
    {7, 0, 8, 0x168, "no command begins at offset 0x168 of the main context"},
    {7, 8, 8, 0, "source line 0, allowed are 1 to"},
    {7, 8, 8, UINT64_C(1) << 32, "source line 4294967296"},
    {7, 4, 1, 3, "context code 3"},
    {7, 7, 1, 1, "reserved bits"},
    {7, 4, 1, 2, "no command begins at offset 0x50 of the dma context"},
    {7, 16 + 0, 8, 0x50, "no command begins at offset 0x50 of the main context, or the rows are not in order"},
    {7, 208, 8, 0x138, "the rows are not in order of context"},
    {8, 8, 8, 1, "the section is no symbol table"},
    {8, 24, 4, 0xffff, "the symbol's name is outside .strtab"},
    {8, 30, 2, 0, "symbol matmul is in section 0 of 11"},
    {8, 30, 2, 0xfff1, "symbol matmul is in section 65521 of 11"},
    {8, 32, 8, UINT64_MAX, "symbol matmul is 0x158 bytes at 0xffffffffffffffff"},
    {8, 40, 8, UINT64_MAX, "symbol matmul is 0xffffffffffffffff bytes"},
    {8, 40, 8, 345, "symbol matmul is 0x159 bytes at 0x0 of section .visa.main.matmul, which has 0x158"},
    {9, SIZE_MAX, 1, 'x', "section .symtab offset 0x0: the section does not link to a table of names"},
};

START_TEST(test_every_rule)
{
    file_bytes f = sample_file();
    unsigned char *bytes = malloc(f.size);
    binary b;
    for (size_t i = 0; i < COUNT_OF(patch_cases); i++) {
        const patch_case *p = &patch_cases[i];
        memcpy(bytes, f.bytes, f.size);
        memcpy(bytes + place_of(bytes, p), &p->value, p->bytes);
        diag_list_init(&diags, memory);
        ck_assert_msg(!binary_read(bytes, f.size, memory, &diags, &b), "accepted, expected: %s", p->part);
        ck_assert_uint_eq(diags.count, 1);
        ck_assert_msg(strstr(diags.items[0]->message, p->part) != NULL, "%s (expected %s)", diags.items[0]->message, p->part);
    }
    free(bytes);
}
END_TEST

START_TEST(test_long_names)
{
    file_bytes f;
    binary b;
    char *name = arena_alloc(memory, 1026);
    memset(name, 'n', 1025);
    elf_section s = {.name = name, .type = 1, .align = 1};
    ck_assert(elf_file_write(&s, 1, memory, &diags, &f.bytes, &f.size));
    ck_assert(!binary_read(f.bytes, f.size, memory, &diags, &b));
    expect_diag(E_BIN_FORMAT, "the name of section 1 is not printable ASCII of at most 1024 bytes");
    b = (binary){.target = target_by_name("rngd"), .kernels = sample_kernel(memory, name), .kernel_count = 1};
    expect_write_fault(&b, E_BIN_FORMAT, "1 to 255 letters");
    name[255] = '\0';
    diag_list_init(&diags, memory);
    written(&b);
    name[255] = 'n';
    name[256] = '\0';
    expect_write_fault(&b, E_BIN_FORMAT, "1 to 255 letters");
}
END_TEST

START_TEST(test_sections_round_trip)
{
    const unsigned char bytes[16] = "0123456789abcde";
    const elf_section sections[] = {
        {.name = "one", .type = 1, .align = 8, .bytes = bytes, .size = 16},
        {.name = "none", .type = 1, .align = 1},
        {.name = "three", .type = 0x70000000, .link = 1, .info = 7, .entry_bytes = 8, .align = 4, .bytes = bytes, .size = 8}};
    file_bytes f;
    elf_section *read;
    size_t count;
    ck_assert(elf_file_write(sections, 3, memory, &diags, &f.bytes, &f.size));
    ck_assert(elf_file_read(f.bytes, f.size, memory, &diags, &read, &count));
    ck_assert_uint_eq(count, 5);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(read[i + 1].name, sections[i].name);
        ck_assert(read[i + 1].type == sections[i].type && read[i + 1].link == sections[i].link);
        ck_assert(read[i + 1].info == sections[i].info && read[i + 1].align == sections[i].align);
        ck_assert_uint_eq(read[i + 1].entry_bytes, sections[i].entry_bytes);
        ck_assert_uint_eq(read[i + 1].size, sections[i].size);
        ck_assert(!sections[i].size || memcmp(read[i + 1].bytes, sections[i].bytes, sections[i].size) == 0);
    }
    ck_assert_str_eq(read[4].name, ".shstrtab");
}
END_TEST

/* A section of an unknown kind is skipped; one of a known kind needs its kernel. */
START_TEST(test_unknown_sections)
{
    file_bytes f = sample_file();
    unsigned char *bytes = malloc(f.size);
    binary b;
    memcpy(bytes, f.bytes, f.size);
    put_name(bytes, f.size, ".visa.lines.matmul", ".visa.xines.matmul");
    ck_assert(binary_read(bytes, f.size, memory, &diags, &b));
    ck_assert_uint_eq(b.kernels[0].streams[CONTEXT_DMA].commands[0].line, 0);
    memcpy(bytes, f.bytes, f.size);
    put_name(bytes, f.size, ".visa.lines.matmul", ".visa.lines.matmuk");
    ck_assert(!binary_read(bytes, f.size, memory, &diags, &b));
    expect_diag(E_BIN_FORMAT, "section .visa.lines.matmuk offset 0x0: there is no ports section of that kernel");
    free(bytes);
}
END_TEST

/* The bytes of the example in docs/format.md: lines of "    0040  05 00 00 00   meaning". */
static size_t bytes_of_the_page(const char *page, unsigned char *bytes, size_t most)
{
    size_t count = 0;
    for (const char *line = page; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        unsigned offset, byte;
        int used = 0;
        if (sscanf(line, "    %4x %n", &offset, &used) != 1 || used != 10 || line[8] != ' ')
            continue;
        ck_assert_uint_eq(offset, count);
        for (const char *at = line + used; sscanf(at, "%2x%n", &byte, &used) == 1 && used == 2; at += 3) {
            ck_assert_uint_lt(count, most);
            bytes[count++] = (unsigned char)byte;
            if (at[2] != ' ' || at[3] == ' ')
                break;
        }
    }
    return count;
}

START_TEST(test_example_of_the_page)
{
    const char *source = getenv("VISA_SOURCE");
    ck_assert_msg(source != NULL, "VISA_SOURCE is not set");
    size_t page_bytes;
    unsigned char *page = file_read_all(arena_printf(memory, "%s/docs/format.md", source), &page_bytes, &diags);
    ck_assert_ptr_nonnull(page);
    binary b = sample_copy_binary(memory);
    file_bytes f = written(&b);
    unsigned char bytes[4096];
    size_t count = bytes_of_the_page(arena_strndup(memory, (const char *)page, page_bytes), bytes, sizeof bytes);
    free(page);
    ck_assert_uint_eq(count, f.size);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(bytes[i] == f.bytes[i], "offset 0x%04zx is %02x in the page, %02x in the file", i, bytes[i], f.bytes[i]);
}
END_TEST

/* What a tool of the system says about the file, both of its outputs together. */
static char *said_by(const char *command_line, const char *path)
{
    FILE *out = popen(arena_printf(memory, "%s %s 2>&1", command_line, path), "r");
    ck_assert_ptr_nonnull(out);
    char *text = arena_alloc(memory, 1 << 16);
    size_t bytes = fread(text, 1, (1 << 16) - 1, out);
    ck_assert_int_eq(pclose(out), 0);
    text[bytes] = '\0';
    return text;
}

START_TEST(test_system_tools_read_it)
{
    file_bytes f = sample_file();
    char path[] = "test_container_XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, f.bytes, f.size), (ssize_t)f.size);
    close(file);
    const char *all = said_by("LC_ALL=C readelf -a -W", path), *notes = said_by("LC_ALL=C readelf -n -s -W", path);
    const char *dump = said_by("LC_ALL=C objdump -s", path);
    unlink(path);
    ck_assert_msg(!strcasestr(all, "warning") && !strcasestr(all, "error"), "%s", all);
    ck_assert_ptr_nonnull(strstr(all, ".visa.einsum.matmul"));
    ck_assert_ptr_nonnull(strstr(notes, "visa"));
    ck_assert_ptr_nonnull(strstr(notes, "matmul.out"));
    ck_assert_msg(!strcasestr(notes, "warning") && !strcasestr(notes, "error"), "%s", notes);
    ck_assert_ptr_nonnull(strstr(dump, "Contents of section .visa.main.matmul:"));
}
END_TEST

int main(void)
{
    TCase *good = suite_case_with("files", setup, teardown), *bad = suite_case_with("damage", setup, teardown);
    suite_tests(good, test_write_then_read, test_read_then_write_is_identical, test_read_keeps_nothing_of_the_bytes,
                test_stream_words_are_the_sections_bytes, test_many_kernels, test_ports_of_every_space, test_writer_refuses_kernels,
                test_writer_refuses_ports, test_writer_refuses_the_rest, test_example_of_the_page, test_system_tools_read_it);
    suite_tests(bad, test_every_truncation_is_refused, test_every_byte_changed, test_random_damage, test_not_a_binary,
                test_version_and_target, test_every_rule, test_long_names);
    suite_tests(good, test_sections_round_trip);
    suite_tests(bad, test_unknown_sections);
    return suite_status("container", good, bad);
}
