#include "codegen/command.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/words.h"
#include "support/strbuf.h"

static const command_field_row field_rows[] = {
#define FIELD(op, symbol, name, word, low_bit, width, form, minimum, maximum, unit, summary) \
    {op, name, word, low_bit, width, form, minimum, maximum, unit, summary},
#include "target/engines.def"
};

static const command_field_row column_rows[] = {
#define COLUMN(op, symbol, name, word, low_bit, width, form, minimum, maximum, unit, summary) \
    {op, name, word, low_bit, width, form, minimum, maximum, unit, summary},
#include "target/engines.def"
};

/* The number of the first field and column of each command: the second constant of a COMMAND steps back, so
 * that the markers count fields only. */
enum {
#define COMMAND(symbol, ...) symbol##_FIRST_FIELD, symbol##_FIELD_BACK = symbol##_FIRST_FIELD - 1,
#define FIELD(op, symbol, ...) symbol##_FIELD_MARK,
#include "target/engines.def"
};
enum {
#define COMMAND(symbol, ...) symbol##_FIRST_COLUMN, symbol##_COLUMN_BACK = symbol##_FIRST_COLUMN - 1,
#define COLUMN(op, symbol, ...) symbol##_COLUMN_MARK,
#include "target/engines.def"
};

/* One struct per command with a byte per field, so that sizeof counts; `end` closes it. */
struct fields_of_none {
#define COMMAND(symbol, ...) \
    char end; \
    } \
    ; \
    struct fields_of_##symbol {
#define FIELD(op, symbol, ...) char symbol##_field;
#include "target/engines.def"
    char end;
};

struct columns_of_none {
#define COMMAND(symbol, ...) \
    char end; \
    } \
    ; \
    struct columns_of_##symbol {
#define COLUMN(op, symbol, ...) char symbol##_column;
#include "target/engines.def"
    char end;
};

/* The size of this union in bytes is the number of words of header and fields: the last word that a row
 * names, plus one. */
union words_of_none {
#define COMMAND(symbol, ...) \
    char end; \
    } \
    ; \
    union words_of_##symbol {
#define FIELD(op, symbol, name, word, ...) char symbol##_words[(word) + 1];
#define TABLE(op, entry_words, least, most, word, ...) char table_words[(word) + 1];
#include "target/engines.def"
    char end;
};

static const command_row command_rows[COMMAND_OP_COUNT] = {
#define COMMAND(symbol, code_, name_, contexts_, summary_) \
    [symbol].code = (code_), [symbol].name = (name_), [symbol].contexts = (contexts_), [symbol].summary = (summary_), \
    [symbol].field_count = sizeof(struct fields_of_##symbol) - 1, [symbol].first_field = symbol##_FIRST_FIELD, \
    [symbol].column_count = sizeof(struct columns_of_##symbol) - 1, [symbol].first_column = symbol##_FIRST_COLUMN, \
    [symbol].field_words = sizeof(union words_of_##symbol),
#define TABLE(op, entry_words_, least, most, word, low_bit, width, order) \
    [op].entry_words = (entry_words_), [op].least_entries = (least), [op].most_entries = (most), [op].count_word = (word), \
    [op].count_low_bit = (low_bit), [op].count_width = (width), [op].entry_order = (order),
#include "target/engines.def"
};

enum { MOST_ROW_WORDS = 10 }; /* of header and fields, or of an entry */

/* No command may outgrow the arrays of struct command. */
#define COMMAND(symbol, ...) \
    _Static_assert(sizeof(struct fields_of_##symbol) - 1 <= COMMAND_MAX_FIELDS, #symbol); \
    _Static_assert(sizeof(struct columns_of_##symbol) - 1 <= COMMAND_MAX_COLUMNS, #symbol);
#define FIELD(op, symbol, name, word, ...) _Static_assert((word) < MOST_ROW_WORDS, #symbol);
#define TABLE(op, entry_words, least, most, count_word, ...) \
    _Static_assert((most) <= COMMAND_MAX_ENTRIES && (entry_words) <= MOST_ROW_WORDS && (count_word) < MOST_ROW_WORDS, #op);
#include "target/engines.def"

const command_row *command_row_of(command_op op)
{
    return &command_rows[op];
}

const command_field_row *command_field_row_of(command_field field)
{
    return &field_rows[field];
}

const command_field_row *command_column_row_of(command_column column)
{
    return &column_rows[column];
}

unsigned command_words(const command *c)
{
    return command_rows[c->op].field_words + c->entry_count * command_rows[c->op].entry_words;
}

bool command_row_is_number(const command_field_row *row)
{
    static const char others[][4] = {"code", "mode", "mask", "flag"}; /* without NULs: four bytes are one word to compare */
    size_t bytes = strlen(row->unit);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (bytes >= sizeof *others && memcmp(row->unit + bytes - sizeof *others, others[i], sizeof *others) == 0)
            return false;
    return row->form != LOG2;
}

int64_t command_get(const command *c, command_field field)
{
    return c->fields[field - command_rows[field_rows[field].op].first_field];
}

void command_set(command *c, command_field field, int64_t value)
{
    c->fields[field - command_rows[field_rows[field].op].first_field] = value;
}

int64_t command_entry(const command *c, unsigned entry, command_column column)
{
    return c->entries[entry][column - command_rows[column_rows[column].op].first_column];
}

void command_set_entry(command *c, unsigned entry, command_column column, int64_t value)
{
    c->entries[entry][column - command_rows[column_rows[column].op].first_column] = value;
}

bool command_same_entries(const command *a, const command *b)
{
    return a->entry_count == b->entry_count && memcmp(a->entries, b->entries, a->entry_count * sizeof *a->entries) == 0;
}

/* Values and bits of one row. */

static uint64_t low_mask(unsigned width)
{
    return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static uint64_t row_mask(const command_field_row *row)
{
    return low_mask(row->width) << row->low_bit;
}

static bool value_is_legal(const command_field_row *row, int64_t value)
{
    if (value < row->minimum || value > row->maximum)
        return false;
    return row->form != LOG2 || (value & (value - 1)) == 0;
}

static uint64_t value_to_bits(const command_field_row *row, int64_t value)
{
    uint64_t bits = (uint64_t)value;
    if (row->form == MINUS1)
        bits = (uint64_t)(value - 1);
    if (row->form == LOG2)
        bits = (uint64_t)__builtin_ctzll((uint64_t)value);
    return (bits & low_mask(row->width)) << row->low_bit;
}

/* A stored value that has no int64_t comes out as INT64_MIN, which is below every such row's minimum. */
static int64_t value_from_bits(const command_field_row *row, uint64_t word)
{
    uint64_t bits = word_bits(word, row->low_bit, row->width);
    switch (row->form) {
    case SIGNED:
        if (row->width < 64 && bits >> (row->width - 1))
            bits |= ~low_mask(row->width);
        return (int64_t)bits;
    case MINUS1: return bits < INT64_MAX ? (int64_t)bits + 1 : INT64_MIN;
    case LOG2: return bits < 63 ? INT64_C(1) << bits : INT64_MIN;
    case UNSIGNED: break;
    }
    return (int64_t)bits;
}

/* "fetch", or "fetch entry 3"; entry -1: the command's own words. */
static const char *place_text(command_op op, int entry, arena *a)
{
    const char *name = command_rows[op].name;
    return entry < 0 ? name : arena_printf(a, "%s entry %d", name, entry);
}

static const char *illegal_text(const command_field_row *row, int64_t value, arena *a)
{
    return arena_printf(a, "%s is %" PRId64 " %s, allowed are %s%" PRId64 " to %" PRId64, row->name, value, row->unit,
                        row->form == LOG2 ? "powers of two from " : "", row->minimum, row->maximum);
}

static bool context_allowed(const command_row *row, context where)
{
    return row->contexts >> where & 1;
}

/* Encoder */

static bool encode_rows(uint64_t *at, const command_field_row *rows, unsigned row_count, const int64_t *values, int entry, diag_list *diags,
                        src_range range)
{
    for (unsigned i = 0; i < row_count; i++) {
        if (!value_is_legal(&rows[i], values[i])) {
            diag_add(diags, E_BIN_COMMAND, range, "%s: %s", place_text(rows[i].op, entry, diags->arena),
                     illegal_text(&rows[i], values[i], diags->arena));
            return false;
        }
        at[rows[i].word] |= value_to_bits(&rows[i], values[i]);
    }
    return true;
}

static bool encode_check(const command *c, diag_list *diags, src_range range)
{
    const command_row *row = &command_rows[c->op];
    if (!context_allowed(row, c->context)) {
        diag_add(diags, E_BIN_COMMAND, range, "%s cannot stand in the %s context", row->name, context_name(c->context));
        return false;
    }
    if (c->entry_count < row->least_entries || c->entry_count > row->most_entries) {
        diag_add(diags, E_BIN_COMMAND, range, "%s has %u entries, allowed are %u to %u", row->name, c->entry_count, row->least_entries,
                 row->most_entries);
        return false;
    }
    return true;
}

bool command_encode(const command *c, arena *a, uint64_t **words, size_t *count, size_t *capacity, diag_list *diags, src_range range)
{
    uint64_t made[MOST_ROW_WORDS + COMMAND_MAX_ENTRIES * MOST_ROW_WORDS];
    const command_row *row = &command_rows[c->op];
    if (!encode_check(c, diags, range))
        return false;
    unsigned length = command_words(c);
    memset(made, 0, length * sizeof *made);
    made[0] = row->code | (uint64_t)c->context << 8 | (uint64_t)length << 16;
    if (row->column_count)
        made[row->count_word] |= (uint64_t)c->entry_count << row->count_low_bit;
    if (!encode_rows(made, &field_rows[row->first_field], row->field_count, c->fields, -1, diags, range))
        return false;
    for (unsigned e = 0; e < c->entry_count; e++)
        if (!encode_rows(made + row->field_words + e * row->entry_words, &column_rows[row->first_column], row->column_count, c->entries[e],
                         (int)e, diags, range))
            return false;
    for (unsigned i = 0; i < length; i++)
        ARENA_PUSH(a, *words, *count, *capacity, made[i]);
    return true;
}

/* Decoder */

enum { HEADER_USED = 0xffff03ff };

typedef struct decoder {
    const uint64_t *words;
    size_t count, at; /* words of the section; first word of the command in hand */
    context expected;
    const char *section;
    diag_list *diags;
} decoder;

void command_refuse(diag_list *diags, const char *section, size_t offset, const char *format, va_list args)
{
    diag_add(diags, E_BIN_COMMAND, SRC_NOWHERE, "section %s offset 0x%zx: %s", section, offset, arena_vprintf(diags->arena, format, args));
}

__attribute__((format(printf, 3, 4))) static bool fault(const decoder *d, size_t word, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    command_refuse(d->diags, d->section, (d->at + word) * 8, format, args);
    va_end(args);
    return false;
}

/* By the eight bits of its code, plus 1; 0: no such command. */
static const uint8_t ops_by_code[256] = {
#define COMMAND(symbol, code, ...) [code] = (symbol) + 1,
#include "target/engines.def"
};
_Static_assert(COMMAND_OP_COUNT <= UINT8_MAX, "ops_by_code holds them");

/* COMMAND_OP_COUNT: no such command. */
static unsigned op_of_code(unsigned code)
{
    return ops_by_code[code] ? ops_by_code[code] - 1U : COMMAND_OP_COUNT;
}

static bool decode_header(const decoder *d, command *c, unsigned *length)
{
    uint64_t header = d->words[d->at];
    unsigned code = (unsigned)word_bits(header, 0, 8), where = (unsigned)word_bits(header, 8, 2);
    *length = (unsigned)word_bits(header, 16, 16);
    unsigned op = op_of_code(code);
    if (op == COMMAND_OP_COUNT)
        return fault(d, 0, "opcode 0x%02x is not known", code);
    const command_row *row = &command_rows[op];
    if (header & ~(uint64_t)HEADER_USED)
        return fault(d, 0, "%s: reserved bits of the header are not zero: 0x%016" PRIx64, row->name, header & ~(uint64_t)HEADER_USED);
    if (where != (unsigned)d->expected)
        return fault(d, 0, "%s: context code %u in a section of the %s context (code %u)", row->name, where, context_name(d->expected),
                     (unsigned)d->expected);
    if (!context_allowed(row, d->expected))
        return fault(d, 0, "%s cannot stand in the %s context", row->name, context_name(d->expected));
    if (*length < row->field_words)
        return fault(d, 0, "%s: length is %u words, at least %u are needed", row->name, *length, row->field_words);
    if (*length > d->count - d->at)
        return fault(d, 0, "%s: length is %u words, but the section ends after %zu", row->name, *length, d->count - d->at);
    c->op = (command_op)op;
    c->context = d->expected;
    return true;
}

static bool decode_count(const decoder *d, command *c, unsigned length)
{
    const command_row *row = &command_rows[c->op];
    uint64_t count = 0;
    if (row->column_count)
        count = word_bits(d->words[d->at + row->count_word], row->count_low_bit, row->count_width);
    if (count < row->least_entries || count > row->most_entries)
        return fault(d, row->count_word, "%s: %" PRIu64 " entries, allowed are %u to %u", row->name, count, row->least_entries,
                     row->most_entries);
    c->entry_count = (unsigned)count;
    unsigned wanted = command_words(c);
    if (length != wanted)
        return fault(d, 0, "%s: length is %u words, but with %u entries it is %u", row->name, length, c->entry_count, wanted);
    return true;
}

/* Reads the rows of the words from `first` on: the command's own (entry -1) or those of one table entry. */
static bool decode_rows(const decoder *d, size_t first, const command_field_row *rows, unsigned row_count, int64_t *values, int entry)
{
    for (unsigned i = 0; i < row_count; i++) {
        values[i] = value_from_bits(&rows[i], d->words[d->at + first + rows[i].word]);
        if (!value_is_legal(&rows[i], values[i]))
            return fault(d, first + rows[i].word, "%s: %s", place_text(rows[i].op, entry, d->diags->arena),
                         illegal_text(&rows[i], values[i], d->diags->arena));
    }
    return true;
}

/* The bits of each word that rows name are added to `used`. */
static void mark_used(const command_field_row *rows, unsigned row_count, uint64_t *used)
{
    for (unsigned i = 0; i < row_count; i++)
        used[rows[i].word] |= row_mask(&rows[i]);
}

static bool reserved_is_zero(const decoder *d, const command *c, size_t first, unsigned word, uint64_t used, int entry)
{
    uint64_t rest = d->words[d->at + first + word] & ~used;
    if (rest)
        return fault(d, first + word, "%s: reserved bits of word %u are not zero: 0x%016" PRIx64, place_text(c->op, entry, d->diags->arena),
                     word, rest);
    return true;
}

static bool decode_fields(const decoder *d, command *c)
{
    const command_row *row = &command_rows[c->op];
    uint64_t used[MOST_ROW_WORDS] = {0};
    if (!decode_rows(d, 0, &field_rows[row->first_field], row->field_count, c->fields, -1))
        return false;
    mark_used(&field_rows[row->first_field], row->field_count, used);
    if (row->column_count)
        used[row->count_word] |= low_mask(row->count_width) << row->count_low_bit;
    for (unsigned word = 1; word < row->field_words; word++)
        if (!reserved_is_zero(d, c, 0, word, used[word], -1))
            return false;
    return true;
}

static bool decode_entries(const decoder *d, command *c)
{
    const command_row *row = &command_rows[c->op];
    const command_field_row *rows = &column_rows[row->first_column];
    uint64_t used[MOST_ROW_WORDS] = {0};
    mark_used(rows, c->entry_count ? row->column_count : 0, used);
    for (unsigned e = 0; e < c->entry_count; e++) {
        size_t first = row->field_words + (size_t)e * row->entry_words;
        memset(c->entries[e], 0, sizeof c->entries[e]);
        if (!decode_rows(d, first, rows, row->column_count, c->entries[e], (int)e))
            return false;
        for (unsigned word = 0; word < row->entry_words; word++)
            if (!reserved_is_zero(d, c, first, word, used[word], (int)e))
                return false;
    }
    return true;
}

/* As far as the headers tell; the first that cannot be one ends the count. */
static size_t count_commands(const decoder *d)
{
    size_t count = 0;
    for (size_t at = 0, length; at < d->count; at += length, count++) {
        length = (size_t)word_bits(d->words[at], 16, 16);
        unsigned op = op_of_code((unsigned)word_bits(d->words[at], 0, 8));
        if (op == COMMAND_OP_COUNT || length < command_rows[op].field_words)
            break;
    }
    return count;
}

bool command_decode_all(const uint64_t *words, size_t word_count, context expected, const char *section, arena *a, diag_list *diags,
                        command **out, size_t *count)
{
    decoder d = {words, word_count, 0, expected, section, diags};
    *out = NULL;
    *count = 0;
    if (word_count > UINT32_MAX / 8)
        return fault(&d, 0, "the section has %zu words, allowed are %u", word_count, UINT32_MAX / 8);
    size_t capacity = count_commands(&d);
    *out = arena_alloc_unset(a, (capacity + 1) * sizeof **out); /* the one that ends the count is refused where it would lie */
    for (; d.at < d.count; ++*count) {
        command *c = &(*out)[*count];
        unsigned length = 0;
        memset(c, 0, offsetof(command, entries));
        c->offset = (uint32_t)(d.at * 8);
        if (!decode_header(&d, c, &length) || !decode_count(&d, c, length) || !decode_fields(&d, c) || !decode_entries(&d, c))
            return false;
        d.at += length;
    }
    return true;
}

/* Text */

/* What the codes of a unit stand for; units that are not here are plain numbers. */
static const struct {
    const char *unit;
    const char *names[5];
} code_names[] = {
    {"context code", {"main", "sub", "dma"}},     {"memory code", {"hbm", "dm", "none"}},
    {"list code", {"hbm", "dm", "hbm64"}},        {"address mode", {"Full", "FirstHalf", "SecondHalf"}},
    {"kind code", {"Interleaved", "Sequential"}}, {"counter code", {"step", "lane", "slice", "cluster", "chip"}},
};

const char *command_value_name(const command_field_row *row, int64_t value)
{
    if (strcmp(row->unit, "dtype code") == 0 && value >= 0 && value < DTYPE_COUNT)
        return dtype_row_of((dtype)value)->name;
    if (strcmp(row->unit, "topology code") == 0)
        return topology_name(value);
    for (size_t i = 0; i < sizeof code_names / sizeof *code_names; i++)
        if (strcmp(row->unit, code_names[i].unit) == 0 && value >= 0 && value < 5)
            return code_names[i].names[value];
    return NULL;
}

const char *command_value_text(const command_field_row *row, int64_t value, arena *a)
{
    const char *name = command_value_name(row, value);
    if (name)
        return name;
    if (strcmp(row->unit, "bit mask") == 0)
        return arena_printf(a, "0x%" PRIx64, (uint64_t)value);
    return arena_printf(a, "%" PRId64, value);
}

const char *command_text(const command *c, arena *a)
{
    const command_row *row = &command_rows[c->op];
    strbuf s;
    strbuf_init(&s, a);
    strbuf_puts(&s, row->name);
    for (unsigned i = 0; i < row->field_count; i++) {
        const command_field_row *field = &field_rows[row->first_field + i];
        strbuf_printf(&s, " %s=%s", field->name, command_value_text(field, c->fields[i], a));
    }
    for (unsigned e = 0; e < c->entry_count; e++) {
        strbuf_puts(&s, e ? ", " : " [");
        for (unsigned i = 0; i < row->column_count; i++)
            strbuf_printf(&s, "%s%s", i ? ":" : "", command_value_text(&column_rows[row->first_column + i], c->entries[e][i], a));
    }
    if (c->entry_count)
        strbuf_puts(&s, "]");
    return s.text;
}
