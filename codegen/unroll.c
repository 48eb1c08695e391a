#include "codegen/unroll.h"

#include <inttypes.h>
#include <stdarg.h>

#include "support/order.h"

/* A number of a stored command that a loop advances. */
typedef struct change {
    struct change *next;
    int entry;      /* -1: a field */
    unsigned index; /* of the field or column */
    unsigned depth; /* of the loop */
    int64_t step, iterations;
} change;

typedef struct unroller {
    const command *stored;
    size_t count;
    change **changes;                         /* by stored command */
    int64_t counters[COMMAND_LOOP_MAX_DEPTH]; /* of the loops around, while commands are made */
    size_t left;
    const char *section;
    arena *scratch;
    diag_list *diags;
    command *out;
    size_t out_count;
} unroller;

__attribute__((format(printf, 3, 4))) static bool fault(const unroller *u, size_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    command_refuse(u->diags, u->section, offset, format, args);
    va_end(args);
    return false;
}

/* ---- places ---- */

static size_t end_of(const command *c)
{
    return c->offset + 8 * (size_t)command_words(c);
}

/* The first command at or after an offset of the section; `count` when there is none. */
static size_t command_at(const command *stored, size_t count, size_t offset)
{
    size_t low;
    ORDER_FIRST(&low, count, i, stored[i].offset < offset);
    return low;
}

size_t command_loop_body(const command *stored, size_t count, size_t loop)
{
    size_t at = loop + 1;
    while (at < count && stored[at].op == OP_ADVANCE)
        at++;
    return at;
}

size_t command_loop_end(const command *stored, size_t count, size_t loop)
{
    size_t begin = end_of(&stored[command_loop_body(stored, count, loop) - 1]);
    return command_at(stored, count, begin + 8 * (size_t)command_get(&stored[loop], LOOP_BODY));
}

/* Of `rows`, the one whose lowest bit is there; NULL: none. */
static const command_field_row *row_at(const command_field_row *rows, unsigned row_count, uint64_t word, int64_t low_bit)
{
    for (unsigned i = 0; i < row_count; i++)
        if (rows[i].word == word && rows[i].low_bit == low_bit)
            return &rows[i];
    return NULL;
}

command_place command_advance_place(const command *stored, size_t count, size_t body, const command *advance, unsigned entry)
{
    size_t offset = stored[body].offset + 8 * (size_t)command_entry(advance, entry, ADVANCE_WORD);
    size_t at = command_at(stored, count, offset + 1) - 1;
    const command *c = &stored[at];
    const command_row *row = command_row_of(c->op);
    uint64_t word = (offset - c->offset) / 8;
    int64_t low_bit = command_entry(advance, entry, ADVANCE_BIT);
    if (word < row->field_words)
        return (command_place){
            c, -1,
            row->field_count ? row_at(command_field_row_of((command_field)row->first_field), row->field_count, word, low_bit) : NULL};
    word -= row->field_words;
    return (command_place){
        c, (int)(word / row->entry_words),
        row_at(command_column_row_of((command_column)row->first_column), row->column_count, word % row->entry_words, low_bit)};
}

/* ---- checks ---- */

static bool read_entry(unroller *u, const command *loop, const command *advance, unsigned entry, unsigned depth)
{
    size_t body = command_loop_body(u->stored, u->count, (size_t)(loop - u->stored));
    size_t where = advance->offset + 8 * (size_t)(command_row_of(OP_ADVANCE)->field_words + entry);
    int64_t word = command_entry(advance, entry, ADVANCE_WORD), low_bit = command_entry(advance, entry, ADVANCE_BIT);
    if (word >= command_get(loop, LOOP_BODY))
        return fault(u, where, "advance entry %u: word %" PRId64 " of a body of %" PRId64 " words", entry, word,
                     command_get(loop, LOOP_BODY));
    command_place p = command_advance_place(u->stored, u->count, body, advance, entry);
    const command_row *row = command_row_of(p.at->op);
    if (!p.row || p.at->op == OP_LOOP || p.at->op == OP_ADVANCE || !command_row_is_number(p.row))
        return fault(u, where,
                     "advance entry %u: at bit %" PRId64 " of word %" PRId64 " of the body, in %s at offset 0x%" PRIx32
                     ", no number begins",
                     entry, low_bit, word, row->name, p.at->offset);
    const command_field_row *first =
        p.entry < 0 ? command_field_row_of((command_field)row->first_field) : command_column_row_of((command_column)row->first_column);
    change **list = &u->changes[p.at - u->stored], *c = ARENA_NEW(u->scratch, change);
    *c = (change){
        *list, p.entry, (unsigned)(p.row - first), depth, command_entry(advance, entry, ADVANCE_STEP), command_get(loop, LOOP_COUNT)};
    *list = c;
    return true;
}

/* All advance commands of a loop; the places ascend, so that none is named twice. */
static bool read_advances(unroller *u, const command *loop, const command *body, unsigned depth)
{
    int64_t last = 0;
    for (const command *advance = loop + 1; advance < body; advance++)
        for (unsigned e = 0; e < advance->entry_count; e++) {
            int64_t place = command_entry(advance, e, ADVANCE_WORD) << 6 | command_entry(advance, e, ADVANCE_BIT);
            if (place <= last)
                return fault(u, advance->offset, "advance entry %u: its place does not lie after that of the entry before it", e);
            if (!read_entry(u, loop, advance, e, depth))
                return false;
            last = place;
        }
    return true;
}

static bool check_range(unroller *u, size_t begin, size_t end, unsigned depth, size_t *commands);

/* The loop at `at`, of which nothing may lie after `end`; *after: the command after its body. */
static bool check_loop(unroller *u, size_t at, size_t end, unsigned depth, size_t *after, size_t *commands)
{
    const command *loop = &u->stored[at];
    size_t body = command_loop_body(u->stored, u->count, at), words = (size_t)command_get(loop, LOOP_BODY), each = 0;
    if (depth == COMMAND_LOOP_MAX_DEPTH)
        return fault(u, loop->offset, "loop: it stands inside %u others, allowed are %d", depth, COMMAND_LOOP_MAX_DEPTH - 1);
    size_t first = end_of(&u->stored[body - 1]), last = first + 8 * words, around = end_of(&u->stored[end - 1]);
    *after = command_at(u->stored, u->count, last);
    if (last > around)
        return fault(u, loop->offset, "loop: a body of %zu words from offset 0x%zx on, but %s ends at 0x%zx", words, first,
                     depth ? "the loop around it" : "the section", around);
    if (end_of(&u->stored[*after - 1]) != last)
        return fault(u, loop->offset, "loop: the body of %zu words ends inside %s at offset 0x%" PRIx32, words,
                     command_row_of(u->stored[*after - 1].op)->name, u->stored[*after - 1].offset);
    if (!read_advances(u, loop, &u->stored[body], depth) || !check_range(u, body, *after, depth + 1, &each))
        return false;
    if (each > u->left / (size_t)command_get(loop, LOOP_COUNT))
        return fault(u, loop->offset, "loop: %" PRId64 " times %zu commands, the loops of a file make at most %d",
                     command_get(loop, LOOP_COUNT), each, COMMAND_LOOP_MAX_COMMANDS);
    *commands = each * (size_t)command_get(loop, LOOP_COUNT);
    return true;
}

static bool check_range(unroller *u, size_t begin, size_t end, unsigned depth, size_t *commands)
{
    *commands = 0;
    for (size_t i = begin, next; i < end; i = next) {
        size_t some = 1;
        next = i + 1;
        if (u->stored[i].op == OP_ADVANCE)
            return fault(u, u->stored[i].offset, "advance: it stands after no loop");
        if (u->stored[i].op == OP_LOOP && !check_loop(u, i, end, depth, &next, &some))
            return false;
        *commands += some;
    }
    return true;
}

/* What all loops together make of a number goes from its least value to its largest: both must be allowed. */
static bool check_number(const unroller *u, const command *c, const change *of)
{
    const command_row *row = command_row_of(c->op);
    const command_field_row *field = of->entry < 0 ? command_field_row_of((command_field)(row->first_field + of->index))
                                                   : command_column_row_of((command_column)(row->first_column + of->index));
    int64_t value = of->entry < 0 ? c->fields[of->index] : c->entries[of->entry][of->index], ends[2] = {value, value};
    bool overflows = false;
    for (const change *k = of; k; k = k->next)
        if (k->entry == of->entry && k->index == of->index)
            overflows |= __builtin_add_overflow(ends[k->step > 0], k->step * (k->iterations - 1), &ends[k->step > 0]);
    if (!overflows && ends[0] >= field->minimum && ends[1] <= field->maximum)
        return true;
    return fault(u, c->offset, "%s: loops advance %s from %" PRId64 " %s to %s%" PRId64 ", allowed are %" PRId64 " to %" PRId64, row->name,
                 field->name, value, field->unit, overflows ? "more than " : "", ends[0] < field->minimum ? ends[0] : ends[1],
                 field->minimum, field->maximum);
}

static bool check_numbers(const unroller *u)
{
    for (size_t i = 0; i < u->count; i++)
        for (const change *c = u->changes[i]; c; c = c->next)
            if (!check_number(u, &u->stored[i], c))
                return false;
    return true;
}

/* ---- expansion ---- */

static void make_command(unroller *u, size_t number)
{
    command *c = &u->out[u->out_count++];
    *c = u->stored[number];
    for (const change *k = u->changes[number]; k; k = k->next)
        *(k->entry < 0 ? &c->fields[k->index] : &c->entries[k->entry][k->index]) += k->step * u->counters[k->depth];
}

static void make_range(unroller *u, size_t begin, size_t end, unsigned depth)
{
    for (size_t i = begin; i < end; i++) {
        if (u->stored[i].op != OP_LOOP) {
            make_command(u, i);
            continue;
        }
        size_t body = command_loop_body(u->stored, u->count, i), after = command_loop_end(u->stored, u->count, i);
        for (int64_t k = 0; k < command_get(&u->stored[i], LOOP_COUNT); k++) {
            u->counters[depth] = k;
            make_range(u, body, after, depth + 1);
        }
        i = after - 1;
    }
}

static bool has_loops(const command *stored, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (stored[i].op == OP_LOOP || stored[i].op == OP_ADVANCE)
            return true;
    return false;
}

bool command_unroll(const command *stored, size_t count, const char *section, size_t *left, arena *a, diag_list *diags, const command **out,
                    size_t *out_count)
{
    *out = stored;
    *out_count = count;
    if (!has_loops(stored, count))
        return true;
    arena *scratch = arena_new_inside(a);
    unroller u = {.stored = stored, .count = count, .section = section, .scratch = scratch, .diags = diags, .left = *left};
    u.changes = ARENA_ARRAY(scratch, change *, count);
    size_t commands;
    bool ok = check_range(&u, 0, count, 0, &commands) && check_numbers(&u);
    if (ok && commands > *left)
        ok = fault(&u, 0, "the loops of the file make more than %d commands", COMMAND_LOOP_MAX_COMMANDS);
    if (ok) {
        u.out = ARENA_ARRAY(a, command, commands);
        make_range(&u, 0, count, 0);
        *left -= commands;
        *out = u.out;
        *out_count = u.out_count;
    }
    arena_free(scratch);
    return ok;
}
