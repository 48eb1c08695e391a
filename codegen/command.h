/* Commands as values, and their words.
 *
 * The one idea: a command is an op, a context, its fields in the order of their rows (target/engines.def), and a table of
 * entries. Encoder and decoder are two loops over these rows; nothing about a single command is
 * written anywhere else. */
#ifndef VISA_CODEGEN_COMMAND_H
#define VISA_CODEGEN_COMMAND_H

#include <stdarg.h>

#include "support/arena.h"
#include "support/diag.h"
#include "target/target.h"

/* Dense numbers of the commands, in the order of the engines. */
typedef enum command_op {
#define COMMAND(symbol, code, name, contexts, summary) symbol,
#include "target/engines.def"
    COMMAND_OP_COUNT
} command_op;

/* Global numbers of the fields; command_field_index gives the place in command.fields. Two enums keep
 * fields and columns apart. */
typedef enum command_field {
#define FIELD(op, symbol, ...) symbol,
#include "target/engines.def"
    COMMAND_FIELD_COUNT
} command_field;

typedef enum command_column {
#define COLUMN(op, symbol, ...) symbol,
#include "target/engines.def"
    COMMAND_COLUMN_COUNT
} command_column;

enum {
    COMMAND_LOOP_MAX_COMMANDS = 1 << 20, /* that the streams of a file with loops may have after expansion */
    COMMAND_LOOP_MAX_BODY = 65536,       /* words, so that a place has 16 bits */
};

enum { COMMAND_MAX_FIELDS = 12, COMMAND_MAX_COLUMNS = 4, COMMAND_MAX_ENTRIES = 15 };

typedef struct command {
    command_op op;
    context context;
    int64_t fields[COMMAND_MAX_FIELDS];
    unsigned entry_count;
    uint32_t offset;                                           /* bytes from the start of its section; set by the decoder */
    uint32_t line;                                             /* source line, 0: none; kept in the lines section, not in the words */
    int64_t entries[COMMAND_MAX_ENTRIES][COMMAND_MAX_COLUMNS]; /* those from entry_count on hold anything */
} command;

/* The value of a field or of a table column; asserts nothing: the op must own it. */
int64_t command_get(const command *c, command_field field);
void command_set(command *c, command_field field, int64_t value);
int64_t command_entry(const command *c, unsigned entry, command_column column);
void command_set_entry(command *c, unsigned entry, command_column column, int64_t value);

/* Have both the same table? */
bool command_same_entries(const command *a, const command *b);

typedef enum command_form { UNSIGNED, SIGNED, MINUS1, LOG2 } command_form;

/* A FIELD or a COLUMN. */
typedef struct command_field_row {
    command_op op;
    const char *name;
    unsigned word, low_bit, width;
    command_form form;
    int64_t minimum, maximum;
    const char *unit, *summary;
} command_field_row;

typedef struct command_row {
    unsigned code;
    const char *name;
    unsigned contexts; /* IN_MAIN | .. */
    const char *summary;
    unsigned field_count, first_field;   /* rows command_field_row_of(first_field ...) */
    unsigned column_count, first_column; /* 0 columns: no table */
    unsigned field_words;                /* header and fields, in words */
    unsigned entry_words, least_entries, most_entries;
    unsigned count_word, count_low_bit, count_width;
    const char *entry_order;
} command_row;

const command_row *command_row_of(command_op op);
/* Words of the command, header and table included. */
unsigned command_words(const command *c);
const command_field_row *command_field_row_of(command_field field);
const command_field_row *command_column_row_of(command_column column);
/* Is the value a number that a loop may add to: not a power of two, and no code, mask or flag? */
bool command_row_is_number(const command_field_row *row);

/* Header word: opcode in bits 0..7, context in bits 8..9, length in words (header included) in bits
 * 16..31, all others zero. */

/* Appends the words of `c`. False, with a diagnostic at `range`, when a value is outside its row. */
bool command_encode(const command *c, arena *a, uint64_t **words, size_t *count, size_t *capacity, diag_list *diags, src_range range);

/* E_BIN_COMMAND at that byte of the section. */
void command_refuse(diag_list *diags, const char *section, size_t offset, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

/* Decodes all commands of one section. `section` names it in diagnostics, which give byte offsets. The
 * command's context must be `expected`. Every field is checked against its row, reserved bits must be zero.
 * Returns false when anything was wrong; *out and *count then hold the commands before the fault. */
bool command_decode_all(const uint64_t *words, size_t word_count, context expected, const char *section, arena *a, diag_list *diags,
                        command **out, size_t *count);

/* What a code stands for ("bf16", "hbm", "Interleaved"); NULL when the row holds a plain number. */
const char *command_value_name(const command_field_row *row, int64_t value);
/* The name, a bit mask in hexadecimal, or the decimal number. */
const char *command_value_text(const command_field_row *row, int64_t value, arena *a);

/* One line of text, without a newline: "fetch base=0 dtype_in=bf16 ... [32:32, 32:1]". */
const char *command_text(const command *c, arena *a);

#endif
