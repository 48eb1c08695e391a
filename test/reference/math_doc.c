/* Prints the tables of docs/math.md from target/math.def and target/scalar.def, and keeps the page in step:
 *
 *     math_doc docs/math.md            exit status 1 when the marked block is not what the rows say
 *     math_doc --update docs/math.md   writes the block anew
 */
#include <inttypes.h>

#include "support/strbuf.h"
#include "target/einsum.h"
#include "test/page_block.h"

static void put_statements(strbuf *s)
{
    static const char *const indexed[] = {"", "source a", "the destination"};
    strbuf_puts(s, "| statement | code | sources | sums | expression | indexed | meaning "
                   "|\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; math_row_at(i); i++) {
        const math_row *row = math_row_at(i);
        strbuf_printf(s, "| `%s` | %u | %u to %u | %s | %s | %s | %s |\n", row->name, (unsigned)row->op, row->fewest_sources,
                      row->most_sources, row->sums ? "yes" : "", row->has_expression ? "yes" : "", indexed[row->indexed], row->meaning);
    }
}

/* `|` ends a cell. */
static void put_form(strbuf *s, const char *text)
{
    for (; *text; text++)
        strbuf_printf(s, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void put_scalars(strbuf *s)
{
    strbuf_puts(s, "\n| operation | code | operands | result | written | folds from | order | meaning "
                   "|\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; scalar_row_at(i); i++) {
        const scalar_row *row = scalar_row_at(i);
        strbuf_printf(s, "| `%s` | 0x%02x | ", row->name, (unsigned)row->op);
        for (unsigned k = 0; k < scalar_arity(row); k++)
            strbuf_printf(s, "%s%s", k ? ", " : "", scalar_type_name(row->operands[k]));
        strbuf_printf(s, " | %s | `", scalar_type_name(row->result));
        put_form(s, row->text);
        strbuf_puts(s, "` | ");
        if (row->flags & SCALAR_FOLDS)
            strbuf_printf(s, "0x%08" PRIx32, row->identity);
        strbuf_printf(s, " | %s%s | %s |\n", row->flags & SCALAR_COMMUTES ? "commutes" : "",
                      row->flags & SCALAR_ASSOCIATES ? ", associates" : "", row->meaning);
    }
    strbuf_puts(s, "\n");
}

static void put_all(strbuf *s)
{
    put_statements(s);
    put_scalars(s);
}

PAGE_BLOCK_PROGRAM("math_doc", "<!-- generated from target/math.def and target/scalar.def: do not edit -->\n", put_all)
