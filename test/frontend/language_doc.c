/* Prints the tables of docs/language.md that are rows of the engines (target/engines.def), and keeps the page in step:
 *
 *     language_doc docs/language.md            exit status 1 when the marked block is not what the rows say
 *     language_doc --update docs/language.md   writes the block anew
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/stage.h"
#include "support/strbuf.h"
#include "test/page_block.h"

static const struct {
    const char *engine; /* NULL: a form of a stage of the engine in front */
} rows[] = {
#define ENGINE(symbol, name, summary) {name},
#define FORM_ON(...) {NULL},
#include "target/engines.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static void put_stages(strbuf *s)
{
    strbuf_puts(s, "| method | called on | type arguments | arguments | gives | release | what it does |\n|---|---|---|---|---|---|---|\n");
    size_t form = 0;
    stage_description d;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].engine && i + 1 < ROWS && !rows[i + 1].engine)
            strbuf_printf(s, "| **%s** | | | | | | |\n", rows[i].engine);
        else if (!rows[i].engine && stage_describe_form(form++, s->arena, &d))
            strbuf_printf(s, "| `%s` | %s | %s | %s | %s | %s | %s |\n", d.name, d.receivers, d.parameters, d.arguments, d.gives,
                          d.dialects, d.summary);
}

static void put_other_names(strbuf *s)
{
    strbuf_puts(s, "\nPublished methods that are refused by name, since nothing does them yet:\n\n| method | since |\n|---|---|\n");
    const stage_other_name *o;
    for (size_t i = 0; (o = stage_other_name_at(i)); i++)
        strbuf_printf(s, "| `%s` | %s |\n", o->name, dialect_name(o->since));
}

static void put_conversions(strbuf *s)
{
    static const char *const names[] = {
#define ENGINE(symbol, name, summary) name,
#include "target/engines.def"
    };
    strbuf_puts(s, "\nConversions of element types:\n\n| engine | from | to |\n|---|---|---|\n");
    const dtype_conversion *c;
    for (size_t i = 0; (c = target_conversion_at(i)); i++)
        strbuf_printf(s, "| %s | %s | %s |\n", names[c->engine], dtype_row_of(c->from)->name, dtype_row_of(c->to)->name);
    strbuf_puts(s, "\n");
}

static void put_all(strbuf *s)
{
    put_stages(s);
    put_other_names(s);
    put_conversions(s);
}

PAGE_BLOCK_PROGRAM("language_doc", "<!-- generated from target/engines.def: do not edit -->\n", put_all)
