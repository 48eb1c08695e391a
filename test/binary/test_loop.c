/* Loops of the command stream: what is rolled up comes back as it was, in no more bytes; nests come out as nests; a hostile loop is refused
 * before it is expanded. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/reroll.h"
#include "codegen/unroll.h"
#include "test/binary/sample_binary.h"
#include "test/fixture.h"

static uint64_t random_state = 0x2545f4914f6cdd1d;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static int64_t below(int64_t n)
{
    return (int64_t)(next_random() % (uint64_t)n);
}

typedef sample_builder list;

/* ---- there and back ---- */

/* Through the words: what is in the section, with the reader's offsets. */
static command *stored_as(const command *rolled, size_t count, size_t *words)
{
    uint64_t *made = NULL;
    size_t capacity = 0, again;
    command *out;
    *words = 0;
    for (size_t i = 0; i < count; i++)
        ck_assert(command_encode(&rolled[i], memory, &made, words, &capacity, &diags, SRC_NOWHERE));
    ck_assert(command_decode_all(made, *words, rolled[0].context, "s", memory, &diags, &out, &again));
    ck_assert_uint_eq(count, again);
    for (size_t i = 0; i < count; i++)
        out[i].line = rolled[i].line;
    return out;
}

static void same_command(const command *a, const command *b)
{
    ck_assert_int_eq(a->op, b->op);
    ck_assert_int_eq(a->context, b->context);
    ck_assert_uint_eq(a->line, b->line);
    ck_assert_mem_eq(a->fields, b->fields, sizeof a->fields);
    ck_assert_uint_eq(a->entry_count, b->entry_count);
    ck_assert_mem_eq(a->entries, b->entries, a->entry_count * sizeof a->entries[0]);
}

/* Rolls up and expands again; *stored: what is in the section. Returns its length in words, with the rows of the lines section. */
static size_t there_and_back(const list *l, const command **stored, size_t *stored_count)
{
    const command *rolled, *out;
    size_t words, count, left = COMMAND_LOOP_MAX_COMMANDS, flat = 0, rows = 0;
    command_reroll(l->commands, l->count, &left, memory, &rolled, stored_count);
    ck_assert_uint_eq(left, COMMAND_LOOP_MAX_COMMANDS - (rolled == l->commands ? 0 : l->count));
    *stored = stored_as(rolled, *stored_count, &words);
    left = COMMAND_LOOP_MAX_COMMANDS;
    ck_assert_msg(command_unroll(*stored, *stored_count, "s", &left, memory, &diags, &out, &count), "%s",
                  diags.count ? diags.items[0]->message : "");
    ck_assert_uint_eq(count, l->count);
    for (size_t i = 0; i < count; i++) {
        same_command(&l->commands[i], &out[i]);
        flat += command_words(&l->commands[i]) + (l->commands[i].line ? 2 : 0);
    }
    for (size_t i = 0; i < *stored_count; i++)
        rows += (*stored)[i].line != 0;
    ck_assert_uint_le(words + 2 * rows, flat);
    ck_assert(words + 2 * rows < flat || rolled == l->commands);
    return words + 2 * rows;
}

static size_t loops_in(const command *stored, size_t count)
{
    size_t loops = 0;
    for (size_t i = 0; i < count; i++)
        loops += stored[i].op == OP_LOOP;
    return loops;
}

/* Loops inside each other, at most. */
static size_t depth_of(const command *stored, size_t count, size_t begin, size_t end)
{
    size_t most = 0;
    for (size_t i = begin; i < end; i++)
        if (stored[i].op == OP_LOOP) {
            size_t behind = command_loop_end(stored, count, i),
                   inside = depth_of(stored, count, command_loop_body(stored, count, i), behind);
            most = inside + 1 > most ? inside + 1 : most;
            i = behind - 1;
        }
    return most;
}

/* A copy, with a wait in front when `count` is not 0. */
static void add_copy(list *l, int64_t count, int64_t from, int64_t to, uint32_t line)
{
    if (count)
        sample_wait(l, CONTEXT_DMA, CONTEXT_MAIN, count);
    sample_dma_copy(l, true, from, to, 32, line);
}

/* Bodies of bodies, as `for` loops around copies make them: a tree of `depth` levels whose addresses step at each. */
static void add_nest(list *l, unsigned depth, const int64_t *iterations, int64_t address, uint32_t line, bool peels)
{
    static const int64_t steps[COMMAND_LOOP_MAX_DEPTH + 1] = {
        8, 4096, 1 << 20, 1 << 26, 1 << 28, 1 << 30, INT64_C(1) << 32, INT64_C(1) << 34, INT64_C(1) << 36};
    if (depth == 0)
        return add_copy(l, 0, address, address + 64, line);
    add_copy(l, peels ? address / 8 + 1 : 0, address, 8, line + 20 * depth);
    for (int64_t i = 0; i < iterations[depth - 1]; i++)
        add_nest(l, depth - 1, iterations, address + i * steps[depth - 1], line, peels);
}

START_TEST(test_nests_stay_nests)
{
    for (unsigned depth = 1; depth <= 4; depth++) {
        static const int64_t iterations[] = {5, 3, 4, 2};
        list l = {.arena = memory};
        add_nest(&l, depth, iterations, 0, 7, false);
        const command *stored;
        size_t count;
        there_and_back(&l, &stored, &count);
        ck_assert_uint_eq(depth_of(stored, count, 0, count), depth);
        ck_assert_uint_eq(loops_in(stored, count), depth); /* nothing is left over */
    }
}
END_TEST

/* As deep as a reader takes, and no deeper: the loop that would be one too many is written out. */
START_TEST(test_deepest_nest)
{
    int64_t iterations[COMMAND_LOOP_MAX_DEPTH + 1];
    for (unsigned i = 0; i <= COMMAND_LOOP_MAX_DEPTH; i++)
        iterations[i] = 2;
    for (unsigned depth = COMMAND_LOOP_MAX_DEPTH - 1; depth <= COMMAND_LOOP_MAX_DEPTH + 1; depth++) {
        list l = {.arena = memory};
        add_nest(&l, depth, iterations, 0, 7, false);
        const command *stored;
        size_t count;
        there_and_back(&l, &stored, &count);
        ck_assert_uint_eq(depth_of(stored, count, 0, count), depth < COMMAND_LOOP_MAX_DEPTH ? depth : COMMAND_LOOP_MAX_DEPTH);
    }
}
END_TEST

START_TEST(test_random_nests)
{
    for (int round = 0; round < suite_rounds(300); round++) {
        list l = {.arena = memory};
        for (int64_t parts = 1 + below(3); parts > 0; parts--) {
            int64_t iterations[] = {1 + below(6), 1 + below(6), 1 + below(5), 1 + below(4)};
            add_nest(&l, (unsigned)below(5), iterations, 512 * below(100), 1 + (uint32_t)below(2), below(2));
        }
        const command *stored;
        size_t count;
        there_and_back(&l, &stored, &count);
    }
}
END_TEST

/* Any legal commands: numbers from a small set, so that short repetitions and broken ones are there. */
static int64_t any_value(const command_field_row *row)
{
    if (row->form == LOG2)
        return row->minimum;
    uint64_t span = (uint64_t)row->maximum - (uint64_t)row->minimum;
    return row->minimum + (next_random() % 4 || span < 3 ? 0 : below(4));
}

static void add_any(list *l, context where)
{
    command_op op;
    do
        op = (command_op)below(COMMAND_OP_COUNT);
    while (op == OP_LOOP || op == OP_ADVANCE || !(command_row_of(op)->contexts >> where & 1));
    const command_row *row = command_row_of(op);
    command *c = sample_add(l, where, op, (uint32_t)below(2));
    for (unsigned i = 0; i < row->field_count; i++)
        c->fields[i] = any_value(command_field_row_of((command_field)(row->first_field + i)));
    for (; c->entry_count < row->least_entries; c->entry_count++)
        for (unsigned i = 0; i < row->column_count; i++)
            c->entries[c->entry_count][i] = any_value(command_column_row_of((command_column)(row->first_column + i)));
}

START_TEST(test_random_streams)
{
    size_t rolled = 0;
    for (int round = 0; round < suite_rounds(600); round++) {
        list l = {.arena = memory};
        context where = (context)(round % 3);
        size_t kinds = 1 + (size_t)below(4), length = 1 + (size_t)below(60);
        for (size_t i = 0; i < kinds; i++)
            add_any(&l, where);
        while (l.count < length) { /* one from before, sometimes with another number */
            command again = l.commands[(size_t)below((int64_t)l.count)];
            const command_row *row = command_row_of(again.op);
            for (unsigned i = 0; i < row->field_count; i++)
                if (next_random() % 2)
                    again.fields[i] = any_value(command_field_row_of((command_field)(row->first_field + i)));
            *sample_add(&l, where, again.op, 0) = again;
        }
        const command *stored;
        size_t count;
        there_and_back(&l, &stored, &count);
        rolled += loops_in(stored, count) > 0;
    }
    ck_assert_int_gt((int)rolled, suite_rounds(600) / 30);
}
END_TEST

/* Two waits have the words of a loop around one: nothing is gained. Of larger commands two are enough. */
START_TEST(test_only_what_saves)
{
    list l = {.arena = memory};
    const command *stored;
    size_t count;
    sample_wait(&l, CONTEXT_DMA, CONTEXT_MAIN, 1);
    sample_wait(&l, CONTEXT_DMA, CONTEXT_MAIN, 2);
    ck_assert_uint_eq(there_and_back(&l, &stored, &count), 4);
    l = (list){.arena = memory};
    add_copy(&l, 0, 0, 0, 0);
    add_copy(&l, 0, 64, 0, 0);
    ck_assert_uint_eq(there_and_back(&l, &stored, &count), 2 + 3 + 7);
    ck_assert_int_eq(stored[0].op, OP_LOOP);
    l = (list){.arena = memory}; /* a step that has no 42 bits */
    add_copy(&l, 0, 0, 0, 0);
    add_copy(&l, 0, INT64_C(1) << 41, 0, 0);
    ck_assert_uint_eq(there_and_back(&l, &stored, &count), 14);
    l = (list){.arena = memory}; /* another direction is no number that advances */
    add_copy(&l, 0, 0, 0, 0);
    add_copy(&l, 0, 64, 0, 0);
    command_set(&l.commands[1], DMA_DESTINATION, 0);
    ck_assert_uint_eq(there_and_back(&l, &stored, &count), 14);
    l = (list){.arena = memory}; /* nor is another line */
    add_copy(&l, 0, 0, 0, 1);
    add_copy(&l, 0, 64, 0, 2);
    ck_assert_uint_eq(there_and_back(&l, &stored, &count), 18);
}
END_TEST

/* More numbers than one advance command holds. */
START_TEST(test_many_numbers)
{
    list l = {.arena = memory};
    for (int64_t i = 0; i < 9; i++)
        for (int64_t k = 0; k < 20; k++)
            sample_dma_copy(&l, true, (1 << 20) + k * k * 100 + i * (k + 1), k * k * k + 2 * i, 3, (uint32_t)k + 1);
    const command *stored;
    size_t count;
    there_and_back(&l, &stored, &count);
    ck_assert_uint_eq(loops_in(stored, count), 1);
    ck_assert_int_eq(stored[3].op, OP_ADVANCE);
    ck_assert_uint_eq(count, 1 + 3 + 20);
}
END_TEST

/* A chain is not cut: the loop begins with its wait and ends with its last stage. */
START_TEST(test_whole_chains)
{
    list l = {.arena = memory};
    sample_units(&l, CONTEXT_SUB);
    for (int64_t i = 0; i < 6; i++) {
        if (i > 0)
            sample_wait(&l, CONTEXT_SUB, CONTEXT_DMA, 3 * i);
        sample_fetch(&l, CONTEXT_SUB, 4096 * i, 8, 11);
        command *c = sample_add(&l, CONTEXT_SUB, OP_TRF_STORE, 13);
        command_set(c, TRF_STORE_ROWS, 8);
        command_set(c, TRF_STORE_FLITS_PER_ROW, 2);
    }
    const command *stored;
    size_t count;
    there_and_back(&l, &stored, &count);
    ck_assert_uint_eq(count, 1 + 3 + 2 + 4);
    ck_assert_int_eq(stored[4].op, OP_LOOP);
    ck_assert_int_eq(stored[6].op, OP_WAIT);
    ck_assert_int_eq(stored[9].op, OP_TRF_STORE);
}
END_TEST

/* ---- hostile ---- */

static command loop_command(int64_t iterations, int64_t words)
{
    command c = {.op = OP_LOOP, .context = CONTEXT_DMA};
    command_set(&c, LOOP_COUNT, iterations);
    command_set(&c, LOOP_BODY, words);
    return c;
}

static command advance_command(int64_t word, int64_t low_bit, int64_t step)
{
    command c = {.op = OP_ADVANCE, .context = CONTEXT_DMA, .entry_count = 1};
    command_set_entry(&c, 0, ADVANCE_WORD, word);
    command_set_entry(&c, 0, ADVANCE_BIT, low_bit);
    command_set_entry(&c, 0, ADVANCE_STEP, step);
    return c;
}

static command wait_command(int64_t count)
{
    command c = {.op = OP_WAIT, .context = CONTEXT_DMA};
    command_set(&c, WAIT_COUNT, count);
    return c;
}

static command copy_command(int64_t from)
{
    list l = {.arena = memory};
    sample_dma_copy(&l, true, from, 0, 4, 0);
    return l.commands[0];
}

static bool expands(const command *commands, size_t count, size_t *left, size_t *made)
{
    size_t words;
    const command *out;
    diag_list_init(&diags, memory);
    return command_unroll(stored_as(commands, count, &words), count, ".visa.dma.k", left, memory, &diags, &out, made);
}

static void refused(const command *commands, size_t count, const char *text)
{
    size_t left = COMMAND_LOOP_MAX_COMMANDS, made;
    ck_assert_msg(!expands(commands, count, &left, &made), "accepted, expected: %s", text);
    ck_assert_uint_eq(diags.count, 1);
    ck_assert_int_eq(diags.items[0]->id, E_BIN_COMMAND);
    ck_assert_str_eq(diags.items[0]->message, arena_printf(memory, "section .visa.dma.k offset %s", text));
}

#define REFUSED(text, ...) refused((const command[]){__VA_ARGS__}, COUNT_OF(((const command[]){__VA_ARGS__})), text)

START_TEST(test_hostile_shapes)
{
    command w = wait_command(1);
    REFUSED("0x0: advance: it stands after no loop", advance_command(1, 32, 1), w);
    REFUSED("0x10: advance: it stands after no loop", w, advance_command(1, 32, 1), w);
    REFUSED("0x20: advance: it stands after no loop", loop_command(2, 5), w, advance_command(1, 32, 1));
    REFUSED("0x0: loop: a body of 2 words from offset 0x10 on, but the section ends at 0x10", loop_command(2, 2));
    REFUSED("0x0: loop: a body of 2 words from offset 0x28 on, but the section ends at 0x28", loop_command(2, 2),
            advance_command(1, 32, 1));
    REFUSED("0x0: loop: a body of 65536 words from offset 0x10 on, but the section ends at 0x20", loop_command(2, 65536), w);
    REFUSED("0x0: loop: the body of 3 words ends inside wait at offset 0x20", loop_command(2, 3), w, w);
    REFUSED("0x0: loop: the body of 2 words ends inside dma at offset 0x10", loop_command(2, 2), copy_command(0));
    REFUSED("0x10: loop: a body of 4 words from offset 0x20 on, but the loop around it ends at 0x30", loop_command(2, 4),
            loop_command(2, 4), w, w);
    REFUSED("0x10: loop: a body of 2 words from offset 0x20 on, but the loop around it ends at 0x20", loop_command(2, 2),
            loop_command(2, 2), w);
    command deep[10];
    for (int i = 0; i < 9; i++)
        deep[i] = loop_command(2, 2 * (9 - i));
    deep[9] = w;
    refused(deep, 10, "0x80: loop: it stands inside 8 others, allowed are 7");
    size_t left = COMMAND_LOOP_MAX_COMMANDS, made;
    ck_assert(expands(deep + 1, 9, &left, &made));
    ck_assert_uint_eq(made, 256);
    ck_assert_uint_eq(left, COMMAND_LOOP_MAX_COMMANDS - 256);
}
END_TEST

START_TEST(test_hostile_places)
{
    command l = loop_command(3, 7), c = copy_command(100);
    size_t left = COMMAND_LOOP_MAX_COMMANDS, made;
    command good[] = {l, advance_command(2, 0, 8), c};
    ck_assert(expands(good, 3, &left, &made));
    static const int64_t bad[][2] = {{0, 0}, {1, 0}, {1, 4}, {1, 32}, {2, 1}, {3, 48}, {4, 16}, {5, 1}};
    for (size_t i = 1; i < COUNT_OF(bad); i++)
        REFUSED(arena_printf(memory, "0x20: advance entry 0: at bit %d of word %d of the body, in dma at offset 0x28, no number begins",
                             (int)bad[i][1], (int)bad[i][0]),
                l, advance_command(bad[i][0], bad[i][1], 8), c);
    REFUSED("0x20: advance entry 0: word 7 of a body of 7 words", l, advance_command(7, 0, 8), c);
    REFUSED("0x28: advance entry 0: its place does not lie after that of the entry before it", l, advance_command(3, 0, 8),
            advance_command(2, 0, 8), c);
    REFUSED("0x28: advance entry 0: its place does not lie after that of the entry before it", l, advance_command(2, 0, 8),
            advance_command(2, 0, 8), c);
    REFUSED("0x20: advance entry 0: at bit 0 of word 1 of the body, in loop at offset 0x28, no number begins", loop_command(2, 9),
            advance_command(1, 0, 1), loop_command(2, 7), c);
    REFUSED("0x20: advance entry 0: at bit 0 of word 3 of the body, in advance at offset 0x38, no number begins", loop_command(2, 12),
            advance_command(3, 0, 1), loop_command(2, 7), advance_command(2, 0, 1), c);
}
END_TEST

START_TEST(test_hostile_numbers)
{
    const int64_t top = (INT64_C(1) << 48) - 1, most = (INT64_C(1) << 41) - 1;
    command c = copy_command(100);
    size_t left = COMMAND_LOOP_MAX_COMMANDS, made;
    command edge[] = {loop_command(11, 7), advance_command(2, 0, -10), c};
    ck_assert(expands(edge, 3, &left, &made));
    REFUSED("0x28: dma: loops advance source_base from 100 bytes to -20, allowed are 0 to 281474976710655", loop_command(13, 7),
            advance_command(2, 0, -10), c);
    command high = copy_command(top - 8), last[] = {loop_command(2, 7), advance_command(2, 0, 8), high};
    ck_assert(expands(last, 3, &left, &made));
    REFUSED(arena_printf(memory, "0x28: dma: loops advance source_base from %lld bytes to %lld, allowed are 0 to %lld", (long long)top - 8,
                         (long long)top + 1, (long long)top),
            loop_command(2, 7), advance_command(2, 0, 9), high);
    /* Two loops that undo each other: the value between must be allowed too. */
    REFUSED("0x50: dma: loops advance source_base from 100 bytes to -900, allowed are 0 to 281474976710655", loop_command(2, 12),
            advance_command(7, 0, 1000), loop_command(2, 7), advance_command(2, 0, -1000), c);
    /* 8 times 2^20 iterations of the largest step do not wrap around. */
    command deep[17];
    for (int i = 0; i < 8; i++) {
        deep[2 * i] = loop_command(1 << 17, 7 + 5 * (7 - i));
        deep[2 * i + 1] = advance_command(2 + 5 * (7 - i), 0, most);
    }
    deep[16] = c;
    refused(deep, 17, arena_printf(memory, "0x%x: loop: 131072 times 131072 commands, the loops of a file make at most 1048576", 6 * 40));
    REFUSED(arena_printf(memory, "0x28: dma: loops advance source_base from 100 bytes to %lld, allowed are 0 to %lld",
                         (long long)(100 + most * 1048575), (long long)top),
            loop_command(1048576, 7), advance_command(2, 0, most), c);
}
END_TEST

/* A small file does not become a large stream, neither by a product nor by a sum, nor by several streams. */
START_TEST(test_hostile_lengths)
{
    command w = wait_command(1);
    size_t left = COMMAND_LOOP_MAX_COMMANDS, made;
    command all[] = {loop_command(1048576, 2), w};
    ck_assert(expands(all, 2, &left, &made));
    ck_assert_uint_eq(made, 1048576);
    ck_assert_uint_eq(left, 0);
    command two[] = {loop_command(2, 2), w};
    ck_assert(!expands(two, 2, &left, &made));
    ck_assert_str_eq(diags.items[0]->message,
                     "section .visa.dma.k offset 0x0: loop: 2 times 1 command, the loops of a file make at most 1048576");
    REFUSED("0x0: loop: 1048576 times 2 commands, the loops of a file make at most 1048576", loop_command(1048576, 4), w, w);
    REFUSED("0x0: loop: 1048576 times 2 commands, the loops of a file make at most 1048576", loop_command(1048576, 4), loop_command(2, 2),
            w);
    REFUSED("0x0: the loops of the file make more than 1048576 commands", loop_command(1048575, 2), w, w, w);
    command rest[] = {w, w}; /* without a loop nothing is counted */
    left = 0;
    ck_assert(expands(rest, 2, &left, &made));
}
END_TEST

/* ---- in a file ---- */

START_TEST(test_file)
{
    binary b = sample_binary(memory), again;
    binary_kernel k = b.kernels[0];
    list l = {.arena = memory};
    static const int64_t iterations[] = {5, 3};
    add_nest(&l, 2, iterations, 0, 7, false);
    k.streams[CONTEXT_DMA].commands = l.commands;
    k.streams[CONTEXT_DMA].count = l.count;
    b.kernels = &k;
    const unsigned char *bytes, *same;
    size_t size, same_size;
    ck_assert(sample_write(&b, memory, &diags, &bytes, &size));
    ck_assert(binary_read(bytes, size, memory, &diags, &again));
    const binary_kernel *r = &again.kernels[0];
    ck_assert_uint_eq(r->streams[CONTEXT_DMA].count, l.count);
    for (size_t i = 0; i < l.count; i++)
        same_command(&l.commands[i], &r->streams[CONTEXT_DMA].commands[i]);
    ck_assert_uint_eq(loops_in(r->streams[CONTEXT_DMA].stored, r->streams[CONTEXT_DMA].stored_count), 2);
    ck_assert_ptr_eq(r->streams[CONTEXT_MAIN].stored, r->streams[CONTEXT_MAIN].commands);
    ck_assert(sample_write(&again, memory, &diags, &same, &same_size)); /* what was read is written the same */
    ck_assert(size == same_size && memcmp(bytes, same, size) == 0);
    l.commands[0] = loop_command(2, 2);
    ck_assert(!sample_write(&b, memory, &diags, &bytes, &size));
}
END_TEST

int main(void)
{
    TCase *back = suite_case_with("there and back", setup, teardown), *hostile = suite_case_with("hostile", setup, teardown);
    suite_tests(back, test_nests_stay_nests, test_deepest_nest, test_random_nests, test_random_streams, test_only_what_saves,
                test_many_numbers, test_whole_chains, test_file);
    suite_tests(hostile, test_hostile_shapes, test_hostile_places, test_hostile_numbers, test_hostile_lengths);
    return suite_status("loop", back, hostile);
}
