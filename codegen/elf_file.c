#include "codegen/elf_file.h"

#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <string.h>

#include "support/order.h"

enum { HEADER_BYTES = 64, SECTION_HEADER_BYTES = 64, MAX_NAME_BYTES = 1024 };

/* Writer */

typedef struct elf_plan {
    const elf_section *sections; /* without the null section */
    size_t count;
    uint64_t *name_offsets, *offsets; /* bytes, by section */
    uint64_t headers;                 /* file offset of the section headers */
    unsigned char *image;
    size_t size;
} elf_plan;

/* The given sections and .shstrtab after them. */
static void plan_names(elf_plan *p, const elf_section *sections, size_t count, arena *a)
{
    static const char own_name[] = ".shstrtab";
    elf_section *all = ARENA_ARRAY(a, elf_section, count + 1);
    size_t bytes = 1 + sizeof own_name;
    if (count)
        memcpy(all, sections, count * sizeof *all);
    all[count] = (elf_section){.name = own_name, .type = SHT_STRTAB, .align = 1};
    for (size_t i = 0; i < count; i++)
        bytes += strlen(sections[i].name) + 1;
    bytes = (bytes + 7) / 8 * 8;
    unsigned char *names = arena_alloc(a, bytes);
    p->name_offsets = ARENA_ARRAY(a, uint64_t, count + 1);
    for (size_t i = 0, at = 1; i <= count; at += strlen(all[i].name) + 1, i++) {
        p->name_offsets[i] = at;
        memcpy(names + at, all[i].name, strlen(all[i].name));
    }
    all[count].bytes = names;
    all[count].size = bytes;
    p->sections = all;
    p->count = count + 1;
}

static void plan_offsets(elf_plan *p, arena *a)
{
    uint64_t at = HEADER_BYTES;
    p->offsets = ARENA_ARRAY(a, uint64_t, p->count);
    for (size_t i = 0; i < p->count; i++) {
        p->offsets[i] = at;
        at += p->sections[i].size;
    }
    p->headers = at;
    p->size = (size_t)at + (p->count + 1) * SECTION_HEADER_BYTES;
    p->image = arena_alloc(a, p->size);
}

/* Little-endian, at most 8 bytes; where the next number goes. */
static unsigned char *put(unsigned char *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

static void put_header(const elf_plan *p)
{
    static const unsigned char identity[EI_NIDENT] = {ELFMAG0,    ELFMAG1,     ELFMAG2,    ELFMAG3,
                                                      ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_STANDALONE};
    memcpy(p->image, identity, sizeof identity);
    unsigned char *at = put(p->image + sizeof identity, ET_REL, 2);
    at = put(at, EM_NONE, 2);
    at = put(at, EV_CURRENT, 4);
    at = put(at, 0, 8); /* no entry, no program headers */
    at = put(at, 0, 8);
    at = put(at, p->headers, 8);
    at = put(at, 0, 4);
    at = put(at, HEADER_BYTES, 2);
    at = put(at, 0, 4);
    at = put(at, SECTION_HEADER_BYTES, 2);
    at = put(at, p->count + 1, 2);
    put(at, p->count, 2); /* the names are the last section's */
}

static void put_section(const elf_plan *p, size_t number)
{
    const elf_section *s = &p->sections[number];
    if (s->size)
        memcpy(p->image + p->offsets[number], s->bytes, s->size);
    unsigned char *at = put(p->image + p->headers + (number + 1) * SECTION_HEADER_BYTES, p->name_offsets[number], 4);
    at = put(at, s->type, 4);
    at = put(at, 0, 8); /* no flags, no address */
    at = put(at, 0, 8);
    at = put(at, p->offsets[number], 8);
    at = put(at, s->size, 8);
    at = put(at, s->link, 4);
    at = put(at, s->info, 4);
    at = put(at, s->align, 8);
    put(at, s->entry_bytes, 8);
}

bool elf_file_write(const elf_section *sections, size_t count, arena *a, diag_list *diags, const unsigned char **bytes, size_t *size)
{
    elf_plan p = {0};
    if (count + 2 >= SHN_LORESERVE) {
        diag_add(diags, E_BIN_FORMAT, SRC_NOWHERE, "a file of %zu sections, allowed are %d", count + 2, SHN_LORESERVE - 1);
        return false;
    }
    plan_names(&p, sections, count, a);
    plan_offsets(&p, a);
    put_header(&p);
    memset(p.image + p.headers, 0, SECTION_HEADER_BYTES);
    for (size_t i = 0; i < p.count; i++)
        put_section(&p, i);
    *bytes = p.image;
    *size = p.size;
    return true;
}

/* Reader */

typedef struct elf_reader {
    const unsigned char *bytes;
    size_t size;
    arena *arena;
    diag_list *diags;
    uint64_t headers; /* file offset of the section headers */
    uint64_t section_count, names_section;
    elf_section *sections;
    uint64_t *offsets; /* file offset of each section's content */
} elf_reader;

enum { MAGIC_OFFSET = 0 /* what differs there is no binary at all */ };

static uint64_t little(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

__attribute__((format(printf, 3, 4))) static bool fault(elf_reader *r, uint64_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(r->diags->arena, format, args);
    va_end(args);
    diag *d = diag_add(r->diags, E_BIN_FORMAT, SRC_NOWHERE, "file offset 0x%" PRIx64 ": %s", offset, text);
    if (offset == MAGIC_OFFSET && d)
        diag_help(r->diags, d, "visac compiles a source file to a binary: `visac kernel.vm -o kernel.bin`");
    return false;
}

/* The fields of the ELF header that have one legal value, in file order. */
static const struct {
    unsigned offset, bytes;
    uint64_t value;
    const char *what;
} fixed_fields[] = {
    {MAGIC_OFFSET, 4, 0x464c457f, "the ELF magic number"},
    {EI_CLASS, 1, ELFCLASS64, "the class (64 bits)"},
    {EI_DATA, 1, ELFDATA2LSB, "the byte order (little-endian)"},
    {EI_VERSION, 1, EV_CURRENT, "the ELF version"},
    {EI_OSABI, 1, ELFOSABI_STANDALONE, "the OS/ABI (standalone)"},
    {EI_ABIVERSION, 8, 0, "the ABI version and padding"},
    {16, 2, ET_REL, "the file type (relocatable)"},
    {18, 2, EM_NONE, "the machine (none)"},
    {20, 4, EV_CURRENT, "the ELF version"},
    {24, 8, 0, "the entry point"},
    {32, 8, 0, "the program header offset"},
    {48, 4, 0, "the flags"},
    {52, 2, HEADER_BYTES, "the ELF header size"},
    {54, 2, 0, "the program header size"},
    {56, 2, 0, "the number of program headers"},
    {58, 2, SECTION_HEADER_BYTES, "the section header size"},
};

static bool read_header(elf_reader *r)
{
    if (r->size < HEADER_BYTES)
        return fault(r, r->size, "the file has %zu bytes, the ELF header alone has %d", r->size, HEADER_BYTES);
    for (size_t i = 0; i < sizeof fixed_fields / sizeof *fixed_fields; i++) {
        uint64_t value = little(r->bytes + fixed_fields[i].offset, fixed_fields[i].bytes);
        if (value != fixed_fields[i].value)
            return fault(r, fixed_fields[i].offset, "%s is 0x%" PRIx64 ", expected is 0x%" PRIx64, fixed_fields[i].what, value,
                         fixed_fields[i].value);
    }
    r->headers = little(r->bytes + 40, 8);
    r->section_count = little(r->bytes + 60, 2);
    r->names_section = little(r->bytes + 62, 2);
    if (r->headers % 8 || r->headers < HEADER_BYTES || r->headers > r->size)
        return fault(r, 40, "section headers at 0x%" PRIx64 " in a file of %zu bytes", r->headers, r->size);
    if (r->section_count < 2 || r->section_count >= SHN_LORESERVE || r->section_count > (r->size - r->headers) / SECTION_HEADER_BYTES)
        return fault(r, 60, "%" PRIu64 " section headers at 0x%" PRIx64 " in a file of %zu bytes", r->section_count, r->headers, r->size);
    if (r->names_section < 1 || r->names_section >= r->section_count)
        return fault(r, 62, "the section names are in section %" PRIu64 " of %" PRIu64, r->names_section, r->section_count);
    return true;
}

static bool read_section_header(elf_reader *r, uint64_t number)
{
    uint64_t place = r->headers + number * SECTION_HEADER_BYTES;
    const unsigned char *at = r->bytes + place;
    uint64_t offset = little(at + 24, 8), size = little(at + 32, 8), align = little(at + 48, 8);
    elf_section *s = &r->sections[number];
    *s = (elf_section){.type = (uint32_t)little(at + 4, 4),
                       .link = (uint32_t)little(at + 40, 4),
                       .info = (uint32_t)little(at + 44, 4),
                       .entry_bytes = little(at + 56, 8),
                       .align = align};
    r->offsets[number] = offset;
    if (number == 0) {
        for (unsigned i = 0; i < SECTION_HEADER_BYTES; i++)
            if (at[i])
                return fault(r, place + i, "section header 0 is not zero");
        return true;
    }
    if (s->type == SHT_NULL || s->type == SHT_NOBITS)
        return fault(r, place + 4, "section %" PRIu64 " has type %u, which has no content", number, s->type);
    if (little(at + 8, 8) || little(at + 16, 8))
        return fault(r, place + 8, "section %" PRIu64 " has flags or an address", number);
    if (offset > r->size || size > r->size - offset)
        return fault(r, place + 24, "section %" PRIu64 " is 0x%" PRIx64 " bytes at 0x%" PRIx64 " in a file of %zu bytes", number, size,
                     offset, r->size);
    if ((align & (align - 1)) || (align && offset % align))
        return fault(r, place + 48, "section %" PRIu64 " at 0x%" PRIx64 " has alignment %" PRIu64, number, offset, align);
    if (s->link >= r->section_count)
        return fault(r, place + 40, "section %" PRIu64 " links to section %u of %" PRIu64, number, s->link, r->section_count);
    s->bytes = r->bytes + offset;
    s->size = (size_t)size;
    return true;
}

typedef struct file_range {
    uint64_t begin, end;
} file_range;

static int range_order(const void *a, const void *b)
{
    const file_range *x = a, *y = b;
    return order_then(ORDER(x->begin, y->begin), ORDER(x->end, y->end));
}

/* No byte of the file belongs to two of ELF header, section headers and sections. */
static bool check_overlap(elf_reader *r)
{
    file_range *ranges = ARENA_ARRAY(r->arena, file_range, r->section_count + 1);
    size_t count = 0;
    ranges[count++] = (file_range){0, HEADER_BYTES};
    ranges[count++] = (file_range){r->headers, r->headers + r->section_count * SECTION_HEADER_BYTES};
    for (uint64_t i = 1; i < r->section_count; i++)
        if (r->sections[i].size)
            ranges[count++] = (file_range){r->offsets[i], r->offsets[i] + r->sections[i].size};
    order_sort(ranges, count, sizeof *ranges, range_order);
    for (size_t i = 1; i < count; i++)
        if (ranges[i].begin < ranges[i - 1].end)
            return fault(r, ranges[i].begin, "two parts of the file overlap");
    return true;
}

static bool name_is_plain(const char *name)
{
    size_t bytes = strnlen(name, MAX_NAME_BYTES + 1);
    for (size_t i = 0; i < bytes; i++)
        if (name[i] <= 0x20 || name[i] > 0x7e)
            return false;
    return bytes <= MAX_NAME_BYTES;
}

static bool read_names(elf_reader *r)
{
    const elf_section *names = &r->sections[r->names_section];
    if (names->type != SHT_STRTAB || names->size == 0 || names->bytes[names->size - 1])
        return fault(r, r->offsets[r->names_section], "section %" PRIu64 " is no table of section names", r->names_section);
    for (uint64_t i = 0; i < r->section_count; i++) {
        uint64_t place = r->headers + i * SECTION_HEADER_BYTES, at = little(r->bytes + place, 4);
        if (at >= names->size)
            return fault(r, place, "the name of section %" PRIu64 " is outside the table of names", i);
        r->sections[i].name = (const char *)names->bytes + at;
        if (!name_is_plain(r->sections[i].name))
            return fault(r, r->offsets[r->names_section] + at, "the name of section %" PRIu64 " is not printable ASCII of at most %d bytes",
                         i, MAX_NAME_BYTES);
    }
    return true;
}

/* What libelf finds must be what was checked above. */
static bool libelf_agrees(const elf_reader *r, Elf *elf)
{
    size_t count, names;
    if (elf_kind(elf) != ELF_K_ELF || elf_getshdrnum(elf, &count) || elf_getshdrstrndx(elf, &names) || count != r->section_count ||
        names != r->names_section)
        return false;
    for (size_t i = 1; i < count; i++) {
        const elf_section *s = &r->sections[i];
        Elf_Scn *scn = elf_getscn(elf, i);
        GElf_Shdr header;
        if (!scn || !gelf_getshdr(scn, &header) || header.sh_size != s->size || header.sh_type != s->type)
            return false;
        const char *name = elf_strptr(elf, names, header.sh_name);
        const Elf_Data *data = elf_rawdata(scn, NULL);
        if (!name || strcmp(name, s->name) || !data || data->d_size != s->size)
            return false;
        if (s->size && data->d_buf != s->bytes && memcmp(data->d_buf, s->bytes, s->size)) /* mostly it is the file's memory */
            return false;
    }
    return true;
}

static bool check_with_libelf(elf_reader *r)
{
    if (elf_version(EV_CURRENT) == EV_NONE)
        return fault(r, 0, "libelf: %s", elf_errmsg(-1));
    Elf *elf = elf_memory((char *)r->bytes, r->size);
    bool agrees = elf && libelf_agrees(r, elf);
    int error = elf_errno();
    elf_end(elf);
    return agrees || fault(r, 0, "libelf does not accept the file: %s", error ? elf_errmsg(error) : "other sections");
}

bool elf_file_read(const unsigned char *bytes, size_t size, arena *a, diag_list *diags, elf_section **out, size_t *count)
{
    elf_reader r = {.bytes = bytes, .size = size, .arena = a, .diags = diags};
    if (!read_header(&r))
        return false;
    r.sections = ARENA_ARRAY(a, elf_section, r.section_count);
    r.offsets = ARENA_ARRAY(a, uint64_t, r.section_count);
    for (uint64_t i = 0; i < r.section_count; i++)
        if (!read_section_header(&r, i))
            return false;
    if (!check_overlap(&r) || !read_names(&r) || !check_with_libelf(&r))
        return false;
    *out = r.sections;
    *count = (size_t)r.section_count;
    return true;
}
