/* Commands and their words: the rows are sound, encoder and decoder are inverse, every illegal word is
 * refused. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/command.h"
#include "support/file.h"
#include "test/fixture.h"

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

typedef struct word_list {
    uint64_t *words;
    size_t count, capacity;
} word_list;

static bool encodes(const command *c, word_list *out)
{
    diag_list_init(&diags, memory);
    return command_encode(c, memory, &out->words, &out->count, &out->capacity, &diags, SRC_NOWHERE);
}

static bool decodes(const uint64_t *words, size_t count, context where, command **out, size_t *commands)
{
    diag_list_init(&diags, memory);
    return command_decode_all(words, count, where, ".visa.test.k", memory, &diags, out, commands);
}

/* The one diagnostic names the section, the offset and `part`. */
static void expect_fault(size_t offset, const char *part)
{
    ck_assert_uint_eq(diags.count, 1);
    const char *start = arena_printf(memory, "section .visa.test.k offset 0x%zx: ", offset);
    ck_assert_int_eq(diags.items[0]->id, E_BIN_COMMAND);
    ck_assert_msg(strncmp(diags.items[0]->message, start, strlen(start)) == 0 && strstr(diags.items[0]->message, part),
                  "%s (expected %s%s)", diags.items[0]->message, start, part);
}

static void refused(const uint64_t *words, size_t count, context where, size_t offset, const char *part)
{
    command *out;
    size_t commands;
    ck_assert_msg(!decodes(words, count, where, &out, &commands), "accepted, expected: %s", part);
    expect_fault(offset, part);
}

static context a_context_of(command_op op)
{
    return (context)__builtin_ctz(command_row_of(op)->contexts);
}

/* Values */

static int64_t legal_value(const command_field_row *row)
{
    uint64_t pick = next_random() % 4;
    if (pick < 2)
        return pick ? row->maximum : row->minimum;
    if (row->form == LOG2) {
        int64_t value = row->minimum;
        while (value < row->maximum && next_random() % 2)
            value *= 2;
        return value;
    }
    uint64_t span = (uint64_t)row->maximum - (uint64_t)row->minimum;
    uint64_t step = span == UINT64_MAX ? next_random() : next_random() % (span + 1);
    return (int64_t)((uint64_t)row->minimum + step);
}

static command legal_command(command_op op)
{
    const command_row *row = command_row_of(op);
    command c = {.op = op, .context = a_context_of(op)};
    for (unsigned i = 0; i < row->field_count; i++)
        c.fields[i] = legal_value(command_field_row_of((command_field)(row->first_field + i)));
    if (row->column_count)
        c.entry_count = row->least_entries + (unsigned)(next_random() % (row->most_entries - row->least_entries + 1));
    for (unsigned e = 0; e < c.entry_count; e++)
        for (unsigned i = 0; i < row->column_count; i++)
            c.entries[e][i] = legal_value(command_column_row_of((command_column)(row->first_column + i)));
    return c;
}

/* Rows */

static uint64_t mask_of(unsigned low_bit, unsigned width)
{
    ck_assert_uint_ge(width, 1);
    ck_assert_uint_le(low_bit + width, 64);
    return (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1) << low_bit;
}

/* The limits of a row must fit its bits. */
static void check_limits(const command_field_row *row)
{
    uint64_t span = row->width == 64 ? UINT64_MAX : (UINT64_C(1) << row->width) - 1;
    ck_assert_msg(row->minimum <= row->maximum, "%s", row->name);
    switch (row->form) {
    case UNSIGNED: ck_assert_msg(row->width == 64 || (row->minimum >= 0 && (uint64_t)row->maximum <= span), "%s", row->name); break;
    case SIGNED: ck_assert_msg(row->maximum <= (int64_t)(span >> 1) && row->minimum >= -(int64_t)(span >> 1) - 1, "%s", row->name); break;
    case MINUS1: ck_assert_msg(row->minimum >= 1 && (uint64_t)row->maximum - 1 <= span, "%s", row->name); break;
    case LOG2:
        ck_assert_msg(row->minimum >= 1 && __builtin_popcountll((uint64_t)row->minimum) == 1 &&
                          __builtin_popcountll((uint64_t)row->maximum) == 1 && (uint64_t)__builtin_ctzll((uint64_t)row->maximum) <= span,
                      "%s", row->name);
        break;
    }
    ck_assert(*row->name && *row->unit && *row->summary);
}

static void claim(uint64_t *used, unsigned word, unsigned low_bit, unsigned width, const char *name)
{
    uint64_t mask = mask_of(low_bit, width);
    ck_assert_msg(!(used[word] & mask), "bits of %s are taken", name);
    used[word] |= mask;
}

START_TEST(test_rows_are_sound)
{
    for (int op = 0; op < COMMAND_OP_COUNT; op++) {
        const command_row *row = command_row_of((command_op)op);
        uint64_t used[16] = {0xffff03ff}, entry[16] = {0};
        ck_assert_uint_le(row->field_words, 16);
        ck_assert_uint_le(row->entry_words, 8);
        ck_assert_uint_eq(row->contexts & ~(unsigned)IN_ANY, 0);
        ck_assert(row->code > 0 && row->code <= 0xff && row->contexts && *row->summary);
        for (int other = 0; other < op; other++) {
            ck_assert_uint_ne(row->code, command_row_of((command_op)other)->code);
            ck_assert_str_ne(row->name, command_row_of((command_op)other)->name);
        }
        for (unsigned i = 0; i < row->field_count; i++) {
            const command_field_row *f = command_field_row_of((command_field)(row->first_field + i));
            ck_assert_int_eq(f->op, op);
            ck_assert(f->word >= 1 && f->word < row->field_words);
            check_limits(f);
            claim(used, f->word, f->low_bit, f->width, f->name);
        }
        ck_assert_uint_eq(row->column_count > 0, row->most_entries > 0);
        if (!row->column_count)
            continue;
        ck_assert(row->least_entries >= 1 && row->least_entries <= row->most_entries);
        ck_assert_uint_le(row->most_entries, mask_of(0, row->count_width));
        claim(used, row->count_word, row->count_low_bit, row->count_width, "the count");
        for (unsigned i = 0; i < row->column_count; i++) {
            const command_field_row *f = command_column_row_of((command_column)(row->first_column + i));
            ck_assert_int_eq(f->op, op);
            ck_assert_uint_lt(f->word, row->entry_words);
            check_limits(f);
            claim(entry, f->word, f->low_bit, f->width, f->name);
        }
    }
}
END_TEST

START_TEST(test_get_and_set)
{
    command c = {.op = OP_DMA, .entry_count = 2};
    command_set(&c, DMA_DESTINATION_BASE, -7);
    command_set_entry(&c, 1, DMA_ENTRY_DESTINATION_STRIDE, 11);
    ck_assert_int_eq(c.fields[command_row_of(OP_DMA)->field_count - 1], -7); /* it is the last field */
    ck_assert_int_eq(command_get(&c, DMA_DESTINATION_BASE), -7);
    ck_assert_int_eq(c.entries[1][2], 11);
    ck_assert_int_eq(command_entry(&c, 1, DMA_ENTRY_DESTINATION_STRIDE), 11);
    ck_assert_int_eq(command_entry(&c, 0, DMA_ENTRY_DESTINATION_STRIDE), 0);
}
END_TEST

/* Words */

/* The words of the example in docs/isa.md: lines of "    word 0  0000000000050120   meaning". */
static size_t words_of_the_page(uint64_t *words, size_t most)
{
    const char *source = getenv("VISA_SOURCE");
    ck_assert_msg(source != NULL, "VISA_SOURCE is not set");
    size_t bytes;
    unsigned char *page = file_read_all(arena_printf(memory, "%s/docs/isa.md", source), &bytes, &diags);
    ck_assert_ptr_nonnull(page);
    const char *line = strstr(arena_strndup(memory, (const char *)page, bytes), "## An example");
    free(page);
    size_t count = 0;
    for (; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t number;
        uint64_t word;
        if (*line != ' ' || sscanf(line, " word %zu  %16" SCNx64, &number, &word) != 2)
            continue;
        ck_assert_uint_eq(number, count);
        ck_assert_uint_lt(count, most);
        words[count++] = word;
    }
    return count;
}

START_TEST(test_known_words)
{
    command c = {.op = OP_FETCH, .context = CONTEXT_SUB};
    command_set(&c, FETCH_BASE, 131072);
    command_set(&c, FETCH_DTYPE_IN, DTYPE_I8);
    command_set(&c, FETCH_DTYPE_OUT, DTYPE_I32);
    command_set(&c, FETCH_ACCESS_BYTES, 1);
    command_set(&c, FETCH_PACKET_ELEMENTS, 32);
    c.entry_count = 2;
    command_set_entry(&c, 0, FETCH_ENTRY_SIZE, 65536);
    command_set_entry(&c, 0, FETCH_ENTRY_STRIDE, -2);
    command_set_entry(&c, 1, FETCH_ENTRY_SIZE, 1);
    command_set_entry(&c, 1, FETCH_ENTRY_STRIDE, 1);
    uint64_t expected[8];
    word_list w = {0};
    ck_assert(encodes(&c, &w));
    ck_assert_uint_eq(words_of_the_page(expected, 8), 5);
    ck_assert_uint_eq(w.count, 5);
    ck_assert_mem_eq(w.words, expected, 5 * sizeof *expected);
    ck_assert_str_eq(command_text(&c, memory), "fetch base=131072 dtype_in=i8 dtype_out=i32 access_bytes=1 "
                                               "packet_elements=32 table=0 zero_point=0 [65536:-2, 1:1]");
}
END_TEST

START_TEST(test_text_of_codes)
{
    command c = {.op = OP_UNITS};
    command_set(&c, UNITS_CHIPS, 15);
    command_set(&c, UNITS_SLICES_3, INT64_MIN);
    ck_assert_str_eq(command_text(&c, memory), "units chips=0xf clusters=0x0 slices_0=0x0 slices_1=0x0 slices_2=0x0 "
                                               "slices_3=0x8000000000000000");
    command wait = {.op = OP_WAIT};
    command_set(&wait, WAIT_CONTEXT, 2);
    ck_assert_str_eq(command_text(&wait, memory), "wait context=dma count=0");
}
END_TEST

START_TEST(test_round_trip)
{
    for (int context_number = 0; context_number < 3; context_number++) {
        word_list w = {0};
        command made[400], *read;
        size_t count = 0, read_count;
        while (count < 400) {
            command_op op = (command_op)(next_random() % COMMAND_OP_COUNT);
            if (!(command_row_of(op)->contexts >> context_number & 1))
                continue;
            made[count] = legal_command(op);
            made[count].context = (context)context_number;
            made[count].offset = (uint32_t)(w.count * 8);
            ck_assert_msg(encodes(&made[count], &w), "%s", diags.count ? diags.items[0]->message : "");
            count++;
        }
        ck_assert_msg(decodes(w.words, w.count, (context)context_number, &read, &read_count), "%s",
                      diags.count ? diags.items[0]->message : "");
        ck_assert_uint_eq(read_count, count);
        for (size_t i = 0; i < count; i++) {
            ck_assert_int_eq(read[i].op, made[i].op);
            ck_assert_int_eq(read[i].context, made[i].context);
            ck_assert_uint_eq(read[i].offset, made[i].offset);
            ck_assert_uint_eq(read[i].entry_count, made[i].entry_count);
            ck_assert_mem_eq(read[i].fields, made[i].fields, sizeof made[i].fields);
            ck_assert_mem_eq(read[i].entries, made[i].entries, made[i].entry_count * sizeof made[i].entries[0]);
        }
    }
}
END_TEST

START_TEST(test_empty_section)
{
    command *out;
    size_t count;
    ck_assert(decodes(NULL, 0, CONTEXT_MAIN, &out, &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

/* Encoder limits */

static void expect_unencodable(const command *c, const char *part)
{
    word_list w = {0};
    ck_assert_msg(!encodes(c, &w), "encoded, expected: %s", part);
    ck_assert_uint_eq(w.count, 0);
    ck_assert_uint_eq(diags.count, 1);
    ck_assert_int_eq(diags.items[0]->id, E_BIN_COMMAND);
    ck_assert_msg(strstr(diags.items[0]->message, part), "%s (expected %s)", diags.items[0]->message, part);
}

static void just_outside(const command *good, const command_field_row *row, int64_t *value, const command *c)
{
    int64_t kept = *value;
    if (row->minimum > INT64_MIN) {
        *value = row->minimum - 1;
        expect_unencodable(c, arena_printf(memory, "%s is %" PRId64, row->name, *value));
    }
    if (row->maximum < INT64_MAX) {
        *value = row->maximum + 1;
        expect_unencodable(c, arena_printf(memory, "%s is %" PRId64, row->name, *value));
    }
    if (row->form == LOG2 && row->maximum > 4) {
        *value = row->maximum / 2 + 1;
        expect_unencodable(c, "powers of two");
    }
    *value = kept;
    ck_assert_mem_eq(good, c, sizeof *c);
}

START_TEST(test_every_value_outside_its_limits)
{
    for (int op = 0; op < COMMAND_OP_COUNT; op++) {
        const command_row *row = command_row_of((command_op)op);
        command c = legal_command((command_op)op), good = c;
        for (unsigned i = 0; i < row->field_count; i++)
            just_outside(&good, command_field_row_of((command_field)(row->first_field + i)), &c.fields[i], &c);
        for (unsigned e = 0; e < c.entry_count; e++)
            for (unsigned i = 0; i < row->column_count; i++)
                just_outside(&good, command_column_row_of((command_column)(row->first_column + i)), &c.entries[e][i], &c);
        c.entry_count = row->most_entries + 1;
        expect_unencodable(&c, ", allowed are");
        c.entry_count = row->least_entries - 1;
        if (row->least_entries)
            expect_unencodable(&c, ", allowed are");
    }
}
END_TEST

START_TEST(test_encode_wrong_context)
{
    command c = legal_command(OP_DMA);
    c.context = CONTEXT_MAIN;
    expect_unencodable(&c, "dma cannot stand in the main context");
    c = legal_command(OP_CONTRACT);
    c.context = CONTEXT_SUB;
    expect_unencodable(&c, "contract cannot stand in the sub context");
}
END_TEST

/* Decoder */

static uint64_t used_bits(const command *c, unsigned word)
{
    const command_row *row = command_row_of(c->op);
    uint64_t used = word ? 0 : 0xffff03ff;
    if (word >= row->field_words) {
        for (unsigned i = 0; i < row->column_count; i++) {
            const command_field_row *f = command_column_row_of((command_column)(row->first_column + i));
            if (f->word == (word - row->field_words) % row->entry_words)
                used |= mask_of(f->low_bit, f->width);
        }
        return used;
    }
    for (unsigned i = 0; i < row->field_count; i++) {
        const command_field_row *f = command_field_row_of((command_field)(row->first_field + i));
        if (f->word == word)
            used |= mask_of(f->low_bit, f->width);
    }
    if (row->column_count && word == row->count_word)
        used |= mask_of(row->count_low_bit, row->count_width);
    return used;
}

START_TEST(test_every_reserved_bit)
{
    unsigned bits = 0;
    for (int op = 0; op < COMMAND_OP_COUNT; op++) {
        command c = legal_command((command_op)op);
        word_list w = {0};
        ck_assert(encodes(&c, &w));
        for (unsigned word = 0; word < w.count; word++)
            for (unsigned bit = 0; bit < 64; bit++) {
                if (used_bits(&c, word) >> bit & 1)
                    continue;
                w.words[word] ^= UINT64_C(1) << bit;
                refused(w.words, w.count, c.context, word * 8, "reserved bits");
                w.words[word] ^= UINT64_C(1) << bit;
                bits++;
            }
    }
    ck_assert_uint_gt(bits, 500);
}
END_TEST

START_TEST(test_every_truncation)
{
    for (int op = 0; op < COMMAND_OP_COUNT; op++) {
        command c = legal_command((command_op)op), *out;
        word_list w = {0};
        size_t count;
        ck_assert(encodes(&c, &w));
        for (size_t words = 1; words < w.count; words++) {
            uint64_t *cut = malloc(words * 8);
            memcpy(cut, w.words, words * 8);
            refused(cut, words, c.context, 0, "but the section ends after");
            free(cut);
        }
        /* ... and after a whole command, which then is the result. */
        size_t one = w.count;
        ck_assert(encodes(&c, &w));
        ck_assert(!decodes(w.words, w.count - 1, c.context, &out, &count) || one == 1);
        ck_assert_uint_eq(count, 1);
        expect_fault(one * 8, "but the section ends after");
    }
}
END_TEST

START_TEST(test_header_faults)
{
    command c = legal_command(OP_CAST);
    word_list w = {0};
    ck_assert(encodes(&c, &w));
    uint64_t good = w.words[0];
    for (unsigned code = 0; code < 256; code++) {
        bool known = false;
        for (int op = 0; op < COMMAND_OP_COUNT; op++)
            known |= command_row_of((command_op)op)->code == code;
        if (known)
            continue;
        w.words[0] = (good & ~UINT64_C(0xff)) | code;
        refused(w.words, w.count, c.context, 0, arena_printf(memory, "opcode 0x%02x is not known", code));
    }
    w.words[0] = good;
    refused(w.words, w.count, CONTEXT_SUB, 0, "context code 0 in a section of the sub context");
    w.words[0] = good | 1 << 8;
    refused(w.words, w.count, CONTEXT_SUB, 0, "cast cannot stand in the sub context");
    w.words[0] = good | 3 << 8;
    refused(w.words, w.count, CONTEXT_MAIN, 0, "context code 3");
    w.words[0] = good & 0xffff;
    refused(w.words, w.count, CONTEXT_MAIN, 0, "length is 0 words, at least 2");
    w.words[0] = (good & 0xffff) | 0xffff0000;
    refused(w.words, w.count, CONTEXT_MAIN, 0, "length is 65535 words");
    uint64_t longer[3] = {good + 0x10000, w.words[1], 0};
    refused(longer, 3, CONTEXT_MAIN, 0, "length is 3 words, but with 0 entries it is 2");
}
END_TEST

START_TEST(test_table_counts)
{
    command c = legal_command(OP_TRF_READ);
    word_list w = {0};
    c.entry_count = 8;
    for (unsigned e = 0; e < 8; e++)
        command_set_entry(&c, e, TRF_READ_ENTRY_SIZE, 1 + e);
    ck_assert(encodes(&c, &w));
    const uint64_t one = UINT64_C(1) << 32, good = w.words[1];
    w.words[1] = good + one;
    refused(w.words, w.count, CONTEXT_MAIN, 8, "9 entries, allowed are 1 to 8");
    w.words[1] = good - 8 * one;
    refused(w.words, w.count, CONTEXT_MAIN, 8, "0 entries, allowed are 1 to 8");
    w.words[1] = good - one;
    refused(w.words, w.count, CONTEXT_MAIN, 0, "with 7 entries it is");
}
END_TEST

START_TEST(test_values_in_words)
{
    static const struct {
        command_op op;
        context context;
        uint64_t cleared, set; /* bits of word 1 */
        const char *part;
    } rows[] = {
        {OP_ALIGN, CONTEXT_MAIN, 3, 0, "align: collect_flits is 0 flits, allowed are 1 to 3"},
        {OP_DMA, CONTEXT_DMA, 0, UINT64_C(0xffff) << 16, "packet_bytes is 65535 bytes, allowed are 1 to 4096"},
        {OP_TRF_READ, CONTEXT_MAIN, 0, UINT64_C(7) << 8, "reg_read_size is 128 bytes, allowed are powers of two from 1 to 64"},
        {OP_COMMIT, CONTEXT_MAIN, 0, UINT64_C(63) << 36, "commit_bytes is 63 bytes, allowed are 8 to 32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        command c = legal_command(rows[i].op);
        word_list w = {0};
        ck_assert(encodes(&c, &w));
        w.words[1] = (w.words[1] & ~rows[i].cleared) | rows[i].set;
        refused(w.words, w.count, rows[i].context, 8, rows[i].part);
    }
}
END_TEST

/* Whatever is accepted says all of its bits: encoding it again gives the same words. */
START_TEST(test_random_words)
{
    unsigned accepted = 0;
    for (int round = 0; round < suite_rounds(200000); round++) {
        command c = legal_command((command_op)(next_random() % COMMAND_OP_COUNT)), *out;
        word_list w = {0}, again = {0};
        size_t count;
        if (round % 500 == 0) { /* keep the arena small */
            teardown();
            setup();
        }
        ck_assert(encodes(&c, &w));
        for (uint64_t n = next_random() % 3; n > 0; n--)
            w.words[next_random() % w.count] ^= UINT64_C(1) << next_random() % 64;
        if (!decodes(w.words, w.count, c.context, &out, &count)) {
            ck_assert_uint_eq(diags.count, 1);
            continue;
        }
        accepted++;
        for (size_t i = 0; i < count; i++)
            ck_assert(encodes(&out[i], &again));
        ck_assert_uint_eq(w.count, again.count);
        ck_assert_mem_eq(w.words, again.words, w.count * 8);
    }
    ck_assert_uint_gt(accepted, 1000);
}
END_TEST

int main(void)
{
    return suite_of("command", setup, teardown, test_rows_are_sound, test_get_and_set, test_known_words, test_text_of_codes,
                    test_round_trip, test_empty_section, test_every_value_outside_its_limits, test_encode_wrong_context,
                    test_every_reserved_bit, test_every_truncation, test_header_faults, test_table_counts, test_values_in_words,
                    test_random_words);
}
