#include "codegen/container.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/elf_file.h"
#include "codegen/reroll.h"
#include "codegen/unroll.h"
#include "codegen/words.h"
#include "support/choice.h"
#include "support/order.h"

#define SIZE_LIMIT (INT64_C(1) << 62)

enum { MAX_PORTS = 0xffff, MAX_AXES = 0xffff, SYMBOL_WORDS = 3, NOTE_VERSION_TYPE = 1 };

/* The sections of a kernel, in file order. The first three are the contexts. */
typedef enum section_kind { SECTION_PORTS = CONTEXT_DMA + 1, SECTION_EINSUM, SECTION_LINES, SECTION_KINDS } section_kind;

static const char family[] = ".visa."; /* their names begin so: ".visa.main.KERNEL" */
static const char *const prefixes[SECTION_KINDS] = {"main.", "sub.", "dma.", "ports.", "einsum.", "lines."};

static const char step_prefix[] = ".visa.step.";
static const char note_section[] = ".note.visa", note_owner[8] = "visa";

const char *port_component_name(port_component c)
{
    static const char *const names[] = {"chip", "cluster", "slice", "row", "time", "element", "packet"};
    return names[c];
}

bool port_space_has(port_space space, port_component c)
{
    static const bool has[PORT_SPACES][COMPONENT_COUNT] = {
        [PORT_HBM] = {[COMPONENT_CHIP] = true, [COMPONENT_ELEMENT] = true},
        [PORT_DM] = {[COMPONENT_CHIP] = true, [COMPONENT_CLUSTER] = true, [COMPONENT_SLICE] = true, [COMPONENT_ELEMENT] = true},
        [PORT_TRF] = {[COMPONENT_CHIP] = true,
                      [COMPONENT_CLUSTER] = true,
                      [COMPONENT_SLICE] = true,
                      [COMPONENT_ROW] = true,
                      [COMPONENT_ELEMENT] = true},
        [PORT_STREAM] = {[COMPONENT_CHIP] = true,
                         [COMPONENT_CLUSTER] = true,
                         [COMPONENT_SLICE] = true,
                         [COMPONENT_ROW] = true,
                         [COMPONENT_TIME] = true,
                         [COMPONENT_PACKET] = true},
        [PORT_VRF] = {[COMPONENT_CHIP] = true, [COMPONENT_CLUSTER] = true, [COMPONENT_SLICE] = true, [COMPONENT_ELEMENT] = true},
    };
    return has[space][c];
}

const binary_kernel *binary_kernel_by_name(const binary *b, const char *name)
{
    for (size_t i = 0; i < b->kernel_count; i++)
        if (strcmp(b->kernels[i].name, name) == 0)
            return &b->kernels[i];
    return NULL;
}

const char *const *binary_names(const binary *b, arena *a)
{
    const char **names = ARENA_ARRAY(a, const char *, b->kernel_count + b->program_count + 1);
    for (size_t i = 0; i < b->kernel_count; i++)
        names[i] = b->kernels[i].name;
    for (size_t i = 0; i < b->program_count; i++)
        names[b->kernel_count + i] = b->programs[i].name;
    return names;
}

const binary_kernel *binary_choose_kernel(const binary *b, const char *name, diag_list *diags)
{
    const binary_kernel *k = name ? binary_kernel_by_name(b, name) : b->kernel_count == 1 ? &b->kernels[0] : NULL;
    const step_program *program = k ? NULL : binary_program_by_name(b, name);
    if (program) {
        diag *d = diag_add(diags, E_KERNEL, SRC_NOWHERE, "`%s` is a stream program and no kernel", program->name);
        diag_help(diags, d, "visac --emit=step-report has its figures, visa-run its cycles");
    } else if (!k) {
        choice_refuse_kernel(diags, "the binary", name, binary_names(b, diags->arena));
    }
    return k;
}

const step_program *binary_program_by_name(const binary *b, const char *name)
{
    if (!name)
        return b->kernel_count == 0 && b->program_count == 1 ? &b->programs[0] : NULL;
    for (size_t i = 0; i < b->program_count; i++)
        if (strcmp(b->programs[i].name, name) == 0)
            return &b->programs[i];
    return NULL;
}

/* Letters, digits, `_` and `:` ("mod_a::kernel"). */
static bool kernel_name_is_legal(const char *name)
{
    size_t legal = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:");
    return legal > 0 && legal <= 255 && name[legal] == '\0';
}

/* Writer */

typedef binary_writer writer;

typedef struct writer_mark {
    size_t sections, symbol_words;
} writer_mark;

struct binary_writer {
    const target *target;
    arena *arena;   /* of the file */
    arena *scratch; /* of the kernel or program at hand */
    diag_list *diags;
    elf_section *sections; /* sections[i] is section i + 1 of the file */
    size_t count, capacity;
    word_writer symbols;
    size_t loops_left;          /* commands that loops may still expand to */
    size_t made[SECTION_KINDS]; /* of the kernel at hand, their numbers in the file; 0: absent */
    writer_mark begin, *ends;   /* what was there before the first kernel, and after each */
    size_t kernel_count, kernel_capacity;
};

static bool refuse(writer *w, const char *kernel, const char *text)
{
    diag_add(w->diags, E_BIN_FORMAT, SRC_NOWHERE, "kernel %s: %s", kernel, text);
    return false;
}

/* Returns the section's number in the file. */
static uint64_t add_section(writer *w, const char *name, uint32_t type, const uint64_t *words, size_t count)
{
    unsigned char *bytes = arena_alloc(w->arena, count * 8 + 1);
    words_to_bytes(words, count, bytes);
    elf_section s = {.name = name, .type = type, .align = 8, .bytes = bytes, .size = count * 8};
    ARENA_PUSH(w->arena, w->sections, w->count, w->capacity, s);
    return w->count;
}

/* The name of every section and symbol is one: printf takes three times as long. */
static const char *joined(arena *a, const char *front, const char *middle, const char *back)
{
    size_t lengths[] = {strlen(front), strlen(middle), strlen(back)};
    char *text = arena_alloc_unset(a, lengths[0] + lengths[1] + lengths[2] + 1);
    memcpy(text, front, lengths[0]);
    memcpy(text + lengths[0], middle, lengths[1]);
    memcpy(text + lengths[0] + lengths[1], back, lengths[2] + 1);
    return text;
}

static uint64_t add_kernel_section(writer *w, const binary_kernel *k, unsigned kind, const uint64_t *words, size_t count)
{
    return w->made[kind] = add_section(w, joined(w->arena, family, prefixes[kind], k->name), SHT_PROGBITS, words, count);
}

static void add_symbol(writer *w, const char *name, unsigned type, uint64_t section, uint64_t offset, uint64_t size)
{
    uint64_t info = ELF64_ST_INFO(STB_GLOBAL, type);
    uint64_t at = word_writer_string(&w->symbols, name);
    word_writer_put(&w->symbols, at | info << 32 | section << 48);
    word_writer_put(&w->symbols, offset);
    word_writer_put(&w->symbols, size);
}

static void add_note(writer *w)
{
    size_t name_bytes = strlen(w->target->name) / 8 * 8 + 8, bytes = 24 + name_bytes;
    unsigned char *note = arena_alloc(w->arena, bytes);
    const uint64_t head[3] = {sizeof "visa" | (4 + name_bytes) << 32, NOTE_VERSION_TYPE, 0};
    words_to_bytes(head, 3, note);
    memcpy(note + 12, note_owner, sizeof note_owner);
    note[20] = BINARY_FORMAT_VERSION;
    memcpy(note + 24, w->target->name, strlen(w->target->name));
    elf_section s = {.name = note_section, .type = SHT_NOTE, .align = 4, .bytes = note, .size = bytes};
    ARENA_PUSH(w->arena, w->sections, w->count, w->capacity, s);
}

bool binary_stream_words(const binary_kernel *k, context c, arena *a, uint64_t **words, size_t *count)
{
    diag_list diags;
    size_t capacity = 0, commands = k->streams[c].stored ? k->streams[c].stored_count : k->streams[c].count;
    const command *items = k->streams[c].stored ? k->streams[c].stored : k->streams[c].commands;
    diag_list_init(&diags, a);
    *words = NULL;
    *count = 0;
    for (size_t i = 0; i < commands; i++)
        if (!command_encode(&items[i], a, words, count, &capacity, &diags, SRC_NOWHERE))
            return false;
    return true;
}

/* The words of one context, and its rows of the lines section. */
static bool encode_stream(writer *w, const binary_kernel *k, unsigned where, word_writer *lines, uint64_t **words, size_t *count)
{
    size_t capacity = 0, commands;
    const command *stored;
    for (size_t i = 0; i < k->streams[where].count; i++) {
        const command *c = &k->streams[where].commands[i];
        if ((unsigned)c->context != where)
            return refuse(w, k->name, "a command stands in the stream of another context");
        if (c->op == OP_LOOP || c->op == OP_ADVANCE)
            return refuse(w, k->name, "a loop is no command that runs");
    }
    command_reroll(k->streams[where].commands, k->streams[where].count, &w->loops_left, w->scratch, &stored, &commands);
    for (size_t i = 0; i < commands; i++) {
        const command *c = &stored[i];
        size_t offset = *count * 8;
        if (!command_encode(c, w->scratch, words, count, &capacity, w->diags, SRC_NOWHERE))
            return false;
        if (!c->line)
            continue;
        word_writer_put(lines, offset | (uint64_t)where << 32);
        word_writer_put(lines, c->line);
    }
    return true;
}

static bool put_mappings(writer *w, const binary_kernel *k, const port *p, word_writer *out)
{
    for (int c = 0; c < COMPONENT_COUNT; c++) {
        const layout *l = &p->mapping[c];
        if (port_space_has(p->space, (port_component)c) != (l->count > 0))
            return refuse(w, k->name,
                          arena_printf(w->scratch, "port %s has %s %s mapping", p->name, l->count > 0 ? "a" : "no",
                                       port_component_name((port_component)c)));
        if (l->count > 0)
            word_writer_put(out, l->count);
        for (size_t i = 0; i < l->count; i++)
            word_writer_put(out, l->words[i]);
    }
    return true;
}

static bool put_port(writer *w, const binary_kernel *k, const port *p, word_writer *out)
{
    if ((unsigned)p->direction > PORT_OUT || (unsigned)p->space > PORT_VRF || (unsigned)p->dtype >= DTYPE_COUNT ||
        (unsigned)p->trf_address > TRF_SECOND_HALF)
        return refuse(w, k->name, arena_printf(w->scratch, "port %s has an unknown code", p->name));
    uint64_t name = word_writer_string(out, p->name);
    word_writer_put(out, name | (uint64_t)p->direction << 32 | (uint64_t)p->space << 40 | (uint64_t)p->dtype << 48 |
                             (uint64_t)p->trf_address << 56);
    word_writer_put(out, (uint64_t)p->address);
    return put_mappings(w, k, p, out);
}

/* `begins` gets the first word of every port, and the end of the last. */
static bool encode_ports(writer *w, const binary_kernel *k, word_writer *out, size_t *begins)
{
    word_writer_init(out, w->scratch);
    word_writer_put(out, k->axis_count | (uint64_t)k->port_count << 32);
    word_writer_put(out, 0);
    for (uint32_t i = 0; i < k->axis_count; i++) {
        word_writer_put(out, word_writer_string(out, k->axes[i].name));
        word_writer_put(out, (uint64_t)k->axes[i].size);
    }
    for (uint32_t i = 0; i < k->port_count; i++) {
        begins[i] = out->count;
        if (!put_port(w, k, &k->ports[i], out))
            return false;
    }
    begins[k->port_count] = out->count;
    out->words[1] = out->string_bytes;
    word_writer_finish(out);
    return !out->failed || refuse(w, k->name, "a name is empty or not printable ASCII");
}

static bool write_einsum(writer *w, const binary_kernel *k)
{
    uint64_t *words = NULL;
    size_t count = 0;
    if (!k->einsum.statement_count) /* nothing is computed: a kernel without outputs */
        return true;
    if (!einsum_encode(&k->einsum, w->scratch, &words, &count))
        return refuse(w, k->name, "a text, a rank or a port number of the einsum does not fit its field");
    add_kernel_section(w, k, SECTION_EINSUM, words, count);
    return true;
}

static bool write_kernel(writer *w, const binary_kernel *k)
{
    uint64_t *words[3] = {0}, first = 0, ports;
    size_t counts[3] = {0}, *begins = ARENA_ARRAY(w->scratch, size_t, (size_t)k->port_count + 1), kernel_bytes = 0;
    word_writer lines, out;
    word_writer_init(&lines, w->scratch);
    if (!k->name || !kernel_name_is_legal(k->name))
        return refuse(w, k->name ? k->name : "", "a kernel's name has 1 to 255 letters, digits, `_` and `:`");
    for (unsigned where = CONTEXT_MAIN; where <= CONTEXT_DMA; where++) {
        if (!encode_stream(w, k, where, &lines, &words[where], &counts[where]))
            return false;
        if (!counts[where])
            continue;
        uint64_t number = add_kernel_section(w, k, where, words[where], counts[where]);
        if (!first) {
            first = number;
            kernel_bytes = counts[where] * 8;
        }
    }
    if (!encode_ports(w, k, &out, begins))
        return false;
    ports = add_kernel_section(w, k, SECTION_PORTS, out.words, out.count);
    if (!write_einsum(w, k))
        return false;
    if (lines.count)
        add_kernel_section(w, k, SECTION_LINES, lines.words, lines.count);
    add_symbol(w, k->name, STT_FUNC, first ? first : ports, 0, first ? kernel_bytes : out.count * 8);
    for (uint32_t i = 0; i < k->port_count; i++)
        add_symbol(w, joined(w->scratch, k->name, ".", k->ports[i].name), STT_OBJECT, ports, begins[i] * 8,
                   (begins[i + 1] - begins[i]) * 8);
    return true;
}

static bool write_program(writer *w, const step_program *p)
{
    uint64_t *words;
    size_t count;
    if (!kernel_name_is_legal(p->name))
        return refuse(w, p->name, "a program's name has 1 to 255 letters, digits, `_` and `:`");
    if (!step_program_encode(p, w->scratch, &words, &count))
        return refuse(w, p->name, "a name or a number of the stream program does not fit its field");
    uint64_t section = add_section(w, joined(w->arena, step_prefix, p->name, ""), SHT_PROGBITS, words, count);
    add_symbol(w, p->name, STT_FUNC, section, 0, count * 8);
    return true;
}

static void write_symbols(writer *w)
{
    size_t bytes = (w->symbols.string_bytes + 7) / 8 * 8;
    unsigned char *names = arena_alloc(w->arena, bytes);
    memcpy(names, w->symbols.strings, w->symbols.string_bytes);
    uint64_t number = add_section(w, ".symtab", SHT_SYMTAB, w->symbols.words, w->symbols.count);
    elf_section *s = &w->sections[number - 1];
    s->link = (uint32_t)number + 1;
    s->info = 1; /* the null symbol is the only local one */
    s->entry_bytes = SYMBOL_WORDS * 8;
    elf_section table = {.name = ".strtab", .type = SHT_STRTAB, .align = 1, .bytes = names, .size = bytes};
    ARENA_PUSH(w->arena, w->sections, w->count, w->capacity, table);
}

static bool is_readable(const unsigned char *bytes, size_t size, arena *a, diag_list *diags);
static bool is_kernel_readable(const writer *w, const char *name);

static writer_mark mark_here(const writer *w)
{
    return (writer_mark){w->count, w->symbols.count};
}

binary_writer *binary_writer_new(const target *t, arena *a, diag_list *diags)
{
    writer *w = ARENA_NEW(a, writer);
    *w = (writer){.target = t, .arena = a, .diags = diags, .loops_left = COMMAND_LOOP_MAX_COMMANDS};
    word_writer_init(&w->symbols, a);
    ARENA_PUSH(a, w->symbols.strings, w->symbols.string_bytes, w->symbols.string_capacity, '\0');
    for (unsigned i = 0; i < SYMBOL_WORDS; i++)
        word_writer_put(&w->symbols, 0);
    add_note(w);
    w->begin = mark_here(w);
    return w;
}

bool binary_writer_kernel(binary_writer *w, const binary_kernel *k, arena *scratch)
{
    w->scratch = scratch;
    memset(w->made, 0, sizeof w->made);
    bool done = write_kernel(w, k) && is_kernel_readable(w, k->name);
    ARENA_PUSH(w->arena, w->ends, w->kernel_count, w->kernel_capacity, mark_here(w));
    return done;
}

void binary_writer_take(binary_writer *w, const binary_writer *from, size_t number)
{
    enum { INFO_BIT = 32, SECTION_BIT = 48 };
    writer_mark begin = number > 0 ? from->ends[number - 1] : from->begin, end = from->ends[number];
    size_t before = w->count;
    for (size_t i = begin.sections; i < end.sections; i++)
        ARENA_PUSH(w->arena, w->sections, w->count, w->capacity, from->sections[i]);
    for (size_t i = begin.symbol_words; i < end.symbol_words; i += SYMBOL_WORDS) {
        const uint64_t *symbol = &from->symbols.words[i];
        uint64_t section = (symbol[0] >> SECTION_BIT) - begin.sections + before;
        add_symbol(w, (const char *)from->symbols.strings + (uint32_t)symbol[0], ELF64_ST_TYPE(symbol[0] >> INFO_BIT & 0xff), section,
                   symbol[1], symbol[2]);
    }
    ARENA_PUSH(w->arena, w->ends, w->kernel_count, w->kernel_capacity, mark_here(w));
}

size_t binary_writer_loops_used(const binary_writer *w)
{
    return COMMAND_LOOP_MAX_COMMANDS - w->loops_left;
}

bool binary_writer_program(binary_writer *w, const step_program *p, arena *scratch)
{
    w->scratch = scratch;
    return write_program(w, p);
}

bool binary_writer_finish(binary_writer *w, const unsigned char **bytes, size_t *size)
{
    write_symbols(w);
    return elf_file_write(w->sections, w->count, w->arena, w->diags, bytes, size) && is_readable(*bytes, *size, w->arena, w->diags);
}

/* Reader */

typedef struct kernel_place {
    const char *name;
    size_t sections[SECTION_KINDS]; /* 0: absent */
    size_t number;                  /* in file order */
} kernel_place;

typedef struct reader {
    arena *arena;
    diag_list *diags;
    const target *target;
    elf_section *sections;
    size_t section_count;
    kernel_place *kernels; /* by name */
    size_t kernel_count;
    size_t loops_left; /* commands that loops may still expand to */
    bool names_only;   /* of kernels, which were read when they were written */
} reader;

static bool fault(reader *r, const char *section, size_t offset, const char *text)
{
    diag_add(r->diags, E_BIN_FORMAT, SRC_NOWHERE, "section %s offset 0x%zx: %s", section, offset, text);
    return false;
}

static const elf_section *section_by_name(const reader *r, const char *name)
{
    for (size_t i = 1; i < r->section_count; i++)
        if (strcmp(r->sections[i].name, name) == 0)
            return &r->sections[i];
    return NULL;
}

static bool read_words(reader *r, const elf_section *s, uint64_t **words, size_t *count)
{
    if (s->size % 8)
        return fault(r, s->name, s->size, "the size is no multiple of 8 bytes");
    *count = s->size / 8;
    *words = words_from_bytes(s->bytes, *count, r->arena);
    return true;
}

static bool read_target(reader *r, const elf_section *s)
{
    const char *name = (const char *)s->bytes + 24;
    size_t bytes = s->size - 24, length = strnlen(name, bytes);
    for (size_t i = length; i < bytes; i++)
        if (name[i])
            return fault(r, s->name, 24 + i, "a padding byte is not zero");
    if (length == bytes || !word_text_is_plain(name, WORD_NAME_MAX_BYTES))
        return fault(r, s->name, 24, "the target's name is empty, not printable or without an end");
    r->target = target_by_name(name);
    if (!r->target)
        diag_add(r->diags, E_BIN_VERSION, SRC_NOWHERE, "section %s offset 0x18: target \"%s\" is not known", s->name, name);
    return r->target != NULL;
}

static bool read_note(reader *r)
{
    const elf_section *s = section_by_name(r, note_section);
    uint64_t *words;
    size_t count;
    if (!s)
        return fault(r, note_section, 0, "the section is missing");
    if (!read_words(r, s, &words, &count))
        return false;
    if (s->type != SHT_NOTE || count < 4)
        return fault(r, s->name, 0, "the section is no note of at least 32 bytes");
    if (word_bits(words[0], 0, 32) != sizeof "visa" || word_bits(words[1], 0, 32) != NOTE_VERSION_TYPE ||
        memcmp(s->bytes + 12, note_owner, sizeof note_owner) != 0)
        return fault(r, s->name, 0, "the note is not of owner \"visa\" and type 1");
    if (word_bits(words[0], 32, 32) != s->size - 20)
        return fault(r, s->name, 4, "the note's length is not that of the section");
    uint64_t version = word_bits(words[2], 32, 32);
    if (version == BINARY_FORMAT_VERSION)
        return read_target(r, s);
    diag_add(r->diags, version ? E_BIN_VERSION : E_BIN_FORMAT, SRC_NOWHERE,
             "section %s offset 0x14: format version %" PRIu64 ", this release reads %d", s->name, version, BINARY_FORMAT_VERSION);
    return false;
}

/* What follows the prefix in a part of a section's name, or NULL. Letter by letter, since most differ in their first ones. */
static const char *name_behind(const char *name, const char *prefix)
{
    while (*prefix && *name == *prefix)
        name++, prefix++;
    return *prefix ? NULL : name;
}

static int kernel_order(const void *a, const void *b)
{
    return strcmp(((const kernel_place *)a)->name, ((const kernel_place *)b)->name);
}

/* A kernel is where a ports section is. */
static bool find_kernels(reader *r)
{
    size_t capacity = 0;
    for (size_t i = 1; i < r->section_count; i++) {
        const char *own = name_behind(r->sections[i].name, family), *name = own ? name_behind(own, prefixes[SECTION_PORTS]) : NULL;
        if (!name)
            continue;
        if (!kernel_name_is_legal(name))
            return fault(r, r->sections[i].name, 0, "a kernel's name has 1 to 255 letters, digits, `_` and `:`");
        kernel_place k = {.name = name, .number = r->kernel_count};
        ARENA_PUSH(r->arena, r->kernels, r->kernel_count, capacity, k);
    }
    order_sort(r->kernels, r->kernel_count, sizeof *r->kernels, kernel_order);
    return true;
}

static bool place_section(reader *r, size_t number)
{
    const elf_section *s = &r->sections[number];
    const char *own = name_behind(s->name, family);
    for (unsigned kind = 0; own && kind < SECTION_KINDS; kind++) {
        const char *name = name_behind(own, prefixes[kind]);
        if (!name)
            continue;
        kernel_place key = {.name = name}, *k = NULL;
        if (r->kernel_count)
            k = bsearch(&key, r->kernels, r->kernel_count, sizeof key, kernel_order);
        if (!k)
            return fault(r, s->name, 0, "there is no ports section of that kernel");
        if (s->type != SHT_PROGBITS)
            return fault(r, s->name, 0, "the section's type is not PROGBITS");
        if (k->sections[kind])
            return fault(r, s->name, 0, "there are two sections of that name");
        k->sections[kind] = number;
    }
    return true;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A text that is in the list twice, or NULL. The list is sorted. */
static const char *repeated_text(const char **texts, size_t count)
{
    order_sort(texts, count, sizeof *texts, text_order);
    for (size_t i = 1; i < count; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            return texts[i];
    return NULL;
}

static bool read_axes(reader *r, word_reader *in, binary_kernel *k)
{
    layout_axis *axes = ARENA_ARRAY(r->arena, layout_axis, k->axis_count);
    const char **names = ARENA_ARRAY(r->arena, const char *, k->axis_count);
    for (uint32_t i = 0; i < k->axis_count; i++) {
        axes[i].name = names[i] = word_reader_name(in, word_reader_next(in));
        axes[i].size = (int64_t)word_reader_next(in);
        if (!in->failed && (axes[i].size < 1 || axes[i].size >= SIZE_LIMIT))
            word_reader_fault(in, in->at - 1, "axis %s has size %" PRId64 ", allowed are 1 to 2^62 - 1", axes[i].name, axes[i].size);
        if (in->failed)
            return false;
    }
    k->axes = axes;
    const char *twice = repeated_text(names, k->axis_count);
    return !twice || word_reader_fault(in, 2, "there are two axes named %s", twice);
}

static int64_t address_limit(const reader *r, port_space space)
{
    if (space == PORT_HBM)
        return r->target->hbm_bytes_per_chip;
    return space == PORT_DM ? r->target->dm_bytes_per_slice : space == PORT_VRF ? r->target->vrf_bytes : 1;
}

static bool read_port_head(reader *r, word_reader *in, port *p)
{
    uint64_t word = word_reader_next(in), address = word_reader_next(in);
    size_t at = in->at - 2;
    unsigned codes[4];
    static const unsigned limits[4] = {PORT_OUT, PORT_VRF, DTYPE_COUNT - 1, TRF_SECOND_HALF};
    static const char *const what[4] = {"direction", "space", "dtype", "trf_address"};
    p->name = word_reader_name(in, word_bits(word, 0, 32));
    for (unsigned i = 0; i < 4 && !in->failed; i++) {
        codes[i] = (unsigned)word_bits(word, 32 + 8 * i, 8);
        if (codes[i] > limits[i])
            return word_reader_fault(in, at, "port %s has %s code %u, allowed are 0 to %u", p->name, what[i], codes[i], limits[i]);
    }
    if (in->failed)
        return false;
    p->direction = (port_direction)codes[0];
    p->space = (port_space)codes[1];
    p->dtype = (dtype)codes[2];
    p->trf_address = (trf_address)codes[3];
    if (p->trf_address != TRF_FULL && p->space != PORT_TRF)
        return word_reader_fault(in, at, "port %s is not in the TRF but has trf_address %s", p->name, trf_address_name(p->trf_address));
    if (address >= (uint64_t)address_limit(r, p->space))
        return word_reader_fault(in, at + 1, "port %s has address %" PRIu64 " bytes, allowed are 0 to %" PRId64, p->name, address,
                                 address_limit(r, p->space) - 1);
    p->address = (int64_t)address;
    return true;
}

static bool read_port(reader *r, word_reader *in, const binary_kernel *k, port *p)
{
    int64_t positions = 1;
    if (!read_port_head(r, in, p))
        return false;
    for (int c = 0; c < COMPONENT_COUNT; c++) {
        if (!port_space_has(p->space, (port_component)c))
            continue;
        uint64_t count = word_reader_next(in);
        if (!word_reader_has(in, count, 1, "mapping words"))
            return false;
        layout l = {in->words + in->at, (size_t)count};
        if (!layout_check(l, k->axes, k->axis_count, in->section, in->at * 8, r->diags))
            return false;
        in->at += (size_t)count;
        p->mapping[c] = l;
        if (__builtin_mul_overflow(positions, layout_size(l, k->axes), &positions) || positions >= SIZE_LIMIT)
            return word_reader_fault(in, in->at - 1, "port %s has 2^62 positions or more", p->name);
    }
    return true;
}

/* What comes in and is written is a port of each direction under one name. */
static const char *repeated_port(const port *ports, const char **names, uint32_t count)
{
    const char *twice = NULL;
    for (int direction = PORT_IN; direction <= PORT_OUT && !twice; direction++) {
        size_t found = 0;
        for (uint32_t i = 0; i < count; i++)
            if ((int)ports[i].direction == direction)
                names[found++] = ports[i].name;
        twice = repeated_text(names, found);
    }
    return twice;
}

static bool read_ports(reader *r, const elf_section *s, binary_kernel *k)
{
    uint64_t *words;
    size_t count;
    word_reader in;
    if (!read_words(r, s, &words, &count))
        return false;
    word_reader_init(&in, words, count, s->name, r->diags);
    uint64_t counts = word_reader_next(&in);
    word_reader_take_strings(&in, word_reader_next(&in), r->arena);
    k->axis_count = (uint32_t)word_bits(counts, 0, 32);
    k->port_count = (uint32_t)word_bits(counts, 32, 32);
    if (!in.failed && (k->axis_count > MAX_AXES || k->port_count > MAX_PORTS))
        return word_reader_fault(&in, 0, "%u axes and %u ports, allowed are at most %d and %d", k->axis_count, k->port_count, MAX_AXES,
                                 MAX_PORTS);
    if (!word_reader_has(&in, k->axis_count, 2, "axes") || !read_axes(r, &in, k) || !word_reader_has(&in, k->port_count, 2, "ports"))
        return false;
    port *ports = ARENA_ARRAY(r->arena, port, k->port_count);
    const char **names = ARENA_ARRAY(r->arena, const char *, k->port_count);
    size_t first = in.at;
    for (uint32_t i = 0; i < k->port_count; i++) {
        if (!read_port(r, &in, k, &ports[i]))
            return false;
    }
    k->ports = ports;
    const char *twice = repeated_port(ports, names, k->port_count);
    if (twice)
        return word_reader_fault(&in, first, "there are two ports named %s", twice);
    return word_reader_end(&in);
}

/* What the einsum assigns are the kernel's outputs, what it only reads its inputs. */
static bool check_directions(reader *r, const elf_section *s, const binary_kernel *k)
{
    const einsum *e = &k->einsum;
    bool *assigned = ARENA_ARRAY(r->arena, bool, e->tensor_count);
    for (uint32_t i = 0; i < e->statement_count; i++)
        assigned[e->statements[i].dst] = true;
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        int32_t number = e->tensors[i].port;
        if (number >= 0 && assigned[i] != (k->ports[number].direction == PORT_OUT))
            return fault(r, s->name, 0,
                         arena_printf(r->arena, "port %s is an %s but the einsum %s it", k->ports[number].name,
                                      assigned[i] ? "input" : "output", assigned[i] ? "assigns" : "never assigns"));
    }
    return true;
}

static bool read_einsum(reader *r, const elf_section *s, binary_kernel *k)
{
    uint64_t *words;
    size_t count;
    return read_words(r, s, &words, &count) &&
           einsum_decode(words, count, k->axes, k->axis_count, k->port_count, s->name, r->arena, r->diags, &k->einsum) &&
           check_directions(r, s, k);
}

typedef struct lines_reader {
    word_reader in;
    command *commands[3];
    size_t counts[3], next[3]; /* next: the first command that no row has passed */
} lines_reader;

static bool read_line(lines_reader *r)
{
    uint64_t place = word_reader_next(&r->in), line = word_reader_next(&r->in);
    uint64_t where = word_bits(place, 32, 8), offset = word_bits(place, 0, 32);
    if (r->in.failed)
        return false;
    if (where > CONTEXT_DMA || word_bits(place, 40, 24))
        return word_reader_fault(&r->in, r->in.at - 2, "context code %" PRIu64 " or reserved bits", where);
    if (line < 1 || line > UINT32_MAX)
        return word_reader_fault(&r->in, r->in.at - 1, "source line %" PRIu64 ", allowed are 1 to %u", line, UINT32_MAX);
    for (unsigned later = (unsigned)where + 1; later <= CONTEXT_DMA; later++)
        if (r->next[later])
            return word_reader_fault(&r->in, r->in.at - 2, "the rows are not in order of context");
    size_t at = r->next[where];
    while (at < r->counts[where] && r->commands[where][at].offset < offset)
        at++;
    if (at == r->counts[where] || r->commands[where][at].offset != offset)
        return word_reader_fault(&r->in, r->in.at - 2,
                                 "no command begins at offset 0x%" PRIx64 " of the %s context, or the rows are not in order", offset,
                                 context_name((context)where));
    r->commands[where][at].line = (uint32_t)line;
    r->next[where] = at + 1;
    return true;
}

static bool read_lines(reader *r, const elf_section *s, lines_reader *lines)
{
    uint64_t *words;
    size_t count;
    if (!read_words(r, s, &words, &count))
        return false;
    word_reader_init(&lines->in, words, count, s->name, r->diags);
    if (count == 0)
        return fault(r, s->name, 0, "the section is empty");
    while (lines->in.at < count)
        if (!read_line(lines))
            return false;
    return true;
}

static bool read_stream(reader *r, const elf_section *s, context where, command **commands, size_t *count)
{
    uint64_t *words;
    size_t word_count;
    if (!read_words(r, s, &words, &word_count))
        return false;
    if (word_count == 0)
        return fault(r, s->name, 0, "the section is empty");
    return command_decode_all(words, word_count, where, s->name, r->arena, r->diags, commands, count);
}

static bool read_kernel(reader *r, const kernel_place *place, binary_kernel *k)
{
    lines_reader lines = {0};
    if (!read_ports(r, &r->sections[place->sections[SECTION_PORTS]], k))
        return false;
    for (unsigned where = CONTEXT_MAIN; where <= CONTEXT_DMA; where++) {
        size_t section = place->sections[where];
        if (section && !read_stream(r, &r->sections[section], (context)where, &lines.commands[where], &lines.counts[where]))
            return false;
        k->streams[where].stored = lines.commands[where];
        k->streams[where].stored_count = lines.counts[where];
    }
    k->einsum = (einsum){.axes = k->axes, .axis_count = k->axis_count, .text = ""};
    size_t einsum_section = place->sections[SECTION_EINSUM], lines_section = place->sections[SECTION_LINES];
    if (einsum_section && !read_einsum(r, &r->sections[einsum_section], k))
        return false;
    if (lines_section && !read_lines(r, &r->sections[lines_section], &lines))
        return false;
    for (unsigned where = CONTEXT_MAIN; where <= CONTEXT_DMA; where++)
        if (place->sections[where] &&
            !command_unroll(k->streams[where].stored, k->streams[where].stored_count, r->sections[place->sections[where]].name,
                            &r->loops_left, r->arena, r->diags, &k->streams[where].commands, &k->streams[where].count))
            return false;
    return true;
}

static bool read_symbol(const reader *r, word_reader *in, const elf_section *names, binary_symbol *out)
{
    uint64_t word = word_reader_next(in), offset = word_reader_next(in), size = word_reader_next(in);
    uint64_t name = word_bits(word, 0, 32), section = word_bits(word, 48, 16);
    size_t at = in->at - SYMBOL_WORDS;
    if (name >= names->size || !word_text_is_plain((const char *)names->bytes + name, 2 * WORD_NAME_MAX_BYTES))
        return word_reader_fault(in, at, "the symbol's name is outside %s or not printable ASCII", names->name);
    out->name = (const char *)names->bytes + name;
    if (section == 0 || section >= r->section_count)
        return word_reader_fault(in, at, "symbol %s is in section %" PRIu64 " of %zu", out->name, section, r->section_count);
    const elf_section *s = &r->sections[section];
    if (offset > s->size || size > s->size - offset)
        return word_reader_fault(in, at + 1, "symbol %s is 0x%" PRIx64 " bytes at 0x%" PRIx64 " of section %s, which has 0x%zx", out->name,
                                 size, offset, s->name, s->size);
    out->section = s->name;
    out->offset = offset;
    out->size = size;
    return true;
}

static bool read_symbols(reader *r, binary *out)
{
    const elf_section *s = section_by_name(r, ".symtab");
    uint64_t *words;
    size_t count;
    word_reader in;
    if (!s)
        return true;
    if (!read_words(r, s, &words, &count))
        return false;
    const elf_section *names = &r->sections[s->link];
    if (s->type != SHT_SYMTAB || count % SYMBOL_WORDS || count < SYMBOL_WORDS || words[0] || words[1] || words[2])
        return fault(r, s->name, 0, "the section is no symbol table");
    if (names->type != SHT_STRTAB || names->size == 0 || names->bytes[names->size - 1])
        return fault(r, s->name, 0, "the section does not link to a table of names");
    word_reader_init(&in, words, count, s->name, r->diags);
    in.at = SYMBOL_WORDS;
    binary_symbol *symbols = ARENA_ARRAY(r->arena, binary_symbol, count / SYMBOL_WORDS);
    while (in.at < count)
        if (!read_symbol(r, &in, names, &symbols[out->symbol_count++]))
            return false;
    out->symbols = symbols;
    return true;
}

static bool read_kernels(reader *r, binary *out)
{
    if (!find_kernels(r))
        return false;
    for (size_t i = 1; i < r->section_count; i++)
        if (!place_section(r, i))
            return false;
    binary_kernel *kernels = ARENA_ARRAY(r->arena, binary_kernel, r->kernel_count);
    for (size_t i = 0; i < r->kernel_count; i++) {
        binary_kernel *k = &kernels[r->kernels[i].number];
        k->name = r->kernels[i].name;
        if (!r->names_only && !read_kernel(r, &r->kernels[i], k))
            return false;
    }
    out->kernels = kernels;
    out->kernel_count = r->kernel_count;
    return true;
}

static bool read_program(reader *r, const elf_section *s, step_program *p)
{
    uint64_t *words;
    size_t count;
    if (!read_words(r, s, &words, &count) || !step_program_decode(words, count, s->name, r->arena, r->diags, p))
        return false;
    return strcmp(p->name, s->name + strlen(step_prefix)) == 0 || fault(r, s->name, 0, "the program inside has another name");
}

/* The kernels that a program runs are in the file. */
static bool program_has_kernels(reader *r, const binary *out, const elf_section *s, const step_program *p)
{
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].kernel && !binary_kernel_by_name(out, p->nodes[i].kernel))
            return fault(r, s->name, 0,
                         arena_printf(r->arena, "node `%s` runs the kernel `%s`, which the file does not have", p->nodes[i].name,
                                      p->nodes[i].kernel));
    return true;
}

static bool read_programs(reader *r, binary *out)
{
    step_program *programs = ARENA_ARRAY(r->arena, step_program, r->section_count + 1);
    for (size_t i = 1; i < r->section_count; i++)
        if (strncmp(r->sections[i].name, step_prefix, strlen(step_prefix)) == 0 &&
            (!read_program(r, &r->sections[i], &programs[out->program_count++]) ||
             !program_has_kernels(r, out, &r->sections[i], &programs[out->program_count - 1])))
            return false;
    out->programs = programs;
    return true;
}

/* `bytes` are aligned, and names in *out point into them. */
static bool read_file(reader *r, const unsigned char *bytes, size_t size, binary *out)
{
    *out = (binary){0};
    r->loops_left = COMMAND_LOOP_MAX_COMMANDS;
    if (!elf_file_read(bytes, size, r->arena, r->diags, &r->sections, &r->section_count) || !read_note(r))
        return false;
    out->target = r->target;
    return read_kernels(r, out) && read_programs(r, out) && read_symbols(r, out);
}

bool binary_read(const unsigned char *bytes, size_t size, arena *a, diag_list *diags, binary *out)
{
    unsigned char *copy = arena_alloc(a, size);
    if (size)
        memcpy(copy, bytes, size);
    return read_file(&(reader){.arena = a, .diags = diags}, copy, size, out);
}

/* The reader has all the checks; a file that it would refuse is not written. Each kernel is read as soon as it is written, by the thread
 * that wrote it and while it is in that one's cache, and forgotten; the rest when the file is complete. `bytes` are in an arena. */
static bool is_readable(const unsigned char *bytes, size_t size, arena *a, diag_list *diags)
{
    binary again;
    arena *scratch = arena_new_inside(a);
    bool ok = read_file(&(reader){.arena = scratch, .diags = diags, .names_only = true}, bytes, size, &again);
    arena_free(scratch);
    return ok;
}

/* How far its loops expand is the writer's to count (loops_left). */
static bool is_kernel_readable(const writer *w, const char *name)
{
    arena *scratch = arena_new_inside(w->scratch);
    elf_section sections[1 + SECTION_KINDS]; /* behind the null section */
    kernel_place place = {.name = name};
    reader r = {.arena = scratch,
                .diags = w->diags,
                .target = w->target,
                .sections = sections,
                .section_count = 1,
                .loops_left = COMMAND_LOOP_MAX_COMMANDS};
    for (unsigned kind = 0; kind < SECTION_KINDS; kind++)
        if (w->made[kind]) {
            place.sections[kind] = r.section_count;
            sections[r.section_count++] = w->sections[w->made[kind] - 1];
        }
    binary_kernel again = {.name = name};
    bool ok = read_kernel(&r, &place, &again);
    arena_free(scratch);
    return ok;
}
