/* Prints the tables of docs/step.md from target/step/step.def, and keeps the page in step:
 *
 *     step_doc docs/step.md            exit status 1 when the marked block is not what the rows say
 *     step_doc --update docs/step.md   writes the block anew
 */
#include <inttypes.h>

#include "support/strbuf.h"
#include "target/step/formula.h"
#include "target/step/step.h"
#include "test/page_block.h"

static const char *count_text(int least, int most, arena *a)
{
    return least == most ? arena_printf(a, "%d", least)
           : most < 0    ? arena_printf(a, "%d or more", least)
                         : arena_printf(a, "%d to %d", least, most);
}

static void put_operators(strbuf *s)
{
    strbuf_puts(s, "| operator | code | inputs | outputs | what it does |\n|---|---|---|---|---|\n");
    for (size_t i = 0; step_op_row_at(i); i++) {
        const step_op_row *row = step_op_row_at(i);
        strbuf_printf(s, "| `%s` | 0x%02x | %s | %s | %s |\n", row->name, (unsigned)row->op,
                      count_text(row->least_inputs, row->most_inputs, s->arena),
                      row->outputs < 0 ? "as many as it says" : count_text(row->outputs, row->outputs, s->arena), row->summary);
    }
}

static void put_numbers(strbuf *s)
{
    strbuf_puts(s, "\n| operator | function | slot | number | values | unit | meaning |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; step_param_row_at(i); i++) {
        const step_param_row *row = step_param_row_at(i);
        const char *with = row->fn == STEP_FN_NONE ? "any" : arena_printf(s->arena, "`%s`", step_fn_row_of(row->fn)->name);
        strbuf_printf(s, "| `%s` | %s | %u | `%s` | %" PRId64 " to %" PRId64 " | %s | %s |\n", step_op_row_of(row->op)->name, with,
                      row->slot, row->name, row->minimum, row->maximum, row->unit, row->summary);
    }
}

static void put_functions(strbuf *s)
{
    static const char *const uses[] = {"", "map", "accum, scan", "map, accum, scan", "flat_map"};
    strbuf_puts(s, "\n| function | code | values | for | result |\n|---|---|---|---|---|\n");
    for (size_t i = 0; step_fn_row_at(i); i++) {
        const step_fn_row *row = step_fn_row_at(i);
        if (row->fn != STEP_FN_NONE)
            strbuf_printf(s, "| `%s` | %u | %s | %s | %s |\n", row->name, (unsigned)row->fn,
                          count_text(row->least_arity, row->most_arity, s->arena), uses[row->use], row->summary);
    }
    strbuf_puts(s, "\n");
}

static void put_formulas(strbuf *s)
{
    strbuf_puts(s, "| in a function of your own | code | operands | FLOPs | gives |\n|---|---|---|---|---|\n");
    for (uint64_t i = 0; step_formula_row_of(i); i++) {
        const step_formula_row *row = step_formula_row_of(i);
        static const char *const of[] = {"",
                                         " for each element",
                                         " for each element that is taken",
                                         " for each element that is taken",
                                         " for each product",
                                         " for each product"};
        strbuf_printf(s, "| `%s` | %u | %u | %" PRId64 "%s | %s |\n", row->name, (unsigned)row->op, (unsigned)row->operands, row->flops,
                      of[row->rule], row->summary);
    }
    strbuf_puts(s, "\n");
}

static void put_all(strbuf *s)
{
    put_operators(s);
    put_numbers(s);
    put_functions(s);
    put_formulas(s);
}

PAGE_BLOCK_PROGRAM("step_doc", "<!-- generated from target/step/step.def: do not edit -->\n", put_all)
