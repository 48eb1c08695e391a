/* Prints the tables of docs/isa.md from target/engines.def and target/dtype.def, and keeps the page in step:
 *
 *     isa_doc docs/isa.md            exit status 1 when the marked block is not what the rows say
 *     isa_doc --update docs/isa.md   writes the block anew
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/command.h"
#include "support/strbuf.h"
#include "test/page_block.h"

static const char *form_name(command_form form)
{
    static const char *const names[] = {[UNSIGNED] = "unsigned", [SIGNED] = "signed", [MINUS1] = "minus 1", [LOG2] = "log2"};
    return names[form];
}

static const char *bits_text(unsigned low_bit, unsigned width, arena *a)
{
    return width == 1 ? arena_printf(a, "%u", low_bit) : arena_printf(a, "%u..%u", low_bit, low_bit + width - 1);
}

static const char *limits_text(const command_field_row *row, arena *a)
{
    if (row->width == 64)
        return "any";
    return arena_printf(a, "%" PRId64 " to %" PRId64, row->minimum, row->maximum);
}

static void put_row(strbuf *s, const command_field_row *row)
{
    strbuf_printf(s, "| %u | %s | `%s` | %s | %s | %s | %s |\n", row->word, bits_text(row->low_bit, row->width, s->arena), row->name,
                  form_name(row->form), limits_text(row, s->arena), row->unit, row->summary);
}

static void put_heading(strbuf *s, const char *what)
{
    strbuf_printf(s, "| word | bits | %s | form | values | unit | meaning |\n|---|---|---|---|---|---|---|\n", what);
}

static void put_contexts(strbuf *s, const command_row *row)
{
    const char *separator = "";
    for (int c = CONTEXT_MAIN; c <= CONTEXT_DMA; c++)
        if (row->contexts >> c & 1) {
            strbuf_printf(s, "%s%s", separator, context_name((context)c));
            separator = ", ";
        }
}

static void put_command(strbuf *s, const command_row *row)
{
    strbuf_printf(s, "### `%s`, opcode 0x%02x\n\n%s\n\nContexts: ", row->name, row->code, row->summary);
    put_contexts(s, row);
    strbuf_printf(s, ". Length: %u words", row->field_words);
    if (row->column_count)
        strbuf_printf(s, " and %u for each entry, of which there are %u to %u", row->entry_words, row->least_entries, row->most_entries);
    strbuf_puts(s, ".\n\n");
    put_heading(s, "field");
    for (unsigned i = 0; i < row->field_count; i++)
        put_row(s, command_field_row_of((command_field)(row->first_field + i)));
    if (!row->column_count) {
        strbuf_puts(s, "\n");
        return;
    }
    strbuf_printf(s, "| %u | %s | (entry count) | unsigned | %u to %u | entries | entries of the table |\n\n", row->count_word,
                  bits_text(row->count_low_bit, row->count_width, s->arena), row->least_entries, row->most_entries);
    strbuf_printf(s, "Each entry (entry 0 first; %s):\n\n", row->entry_order);
    put_heading(s, "column");
    for (unsigned i = 0; i < row->column_count; i++)
        put_row(s, command_column_row_of((command_column)(row->first_column + i)));
    strbuf_puts(s, "\n");
}

static void put_dtypes(strbuf *s)
{
    strbuf_puts(s, "### dtype codes\n\n| code | name | bits | TRF reg_types code | accumulates in "
                   "|\n|---|---|---|---|---|\n");
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const dtype_row *row = dtype_row_of((dtype)t);
        strbuf_printf(s, "| %d | %s | %u | ", t, row->name, row->bits);
        if (row->trf_reg_type < 0)
            strbuf_puts(s, "none | ");
        else
            strbuf_printf(s, "%d | ", row->trf_reg_type);
        strbuf_printf(s, "%s |\n", dtype_is_operand((dtype)t) ? dtype_row_of(row->accumulates_in)->name : "no operand");
    }
    strbuf_puts(s, "\n");
}

static void put_all(strbuf *s)
{
    static const struct {
        const char *engine, *summary;
        command_op op; /* where `engine` is NULL */
    } rows[] = {
#define ENGINE(symbol, name, summary) {name, summary, COMMAND_OP_COUNT},
#define COMMAND(symbol, ...) {NULL, NULL, symbol},
#include "target/engines.def"
    };
    put_dtypes(s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].engine)
            strbuf_printf(s, "*%s: %s.*\n\n", rows[i].engine, rows[i].summary);
        else
            put_command(s, command_row_of(rows[i].op));
}

PAGE_BLOCK_PROGRAM("isa_doc", "<!-- generated from target/engines.def and target/dtype.def: do not edit -->\n", put_all)
