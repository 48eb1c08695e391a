/* visa_explain_mapping: what a contraction reads of the TRF, and why. */
#include <string.h>

#include "libvisa/compilation.h"
#include "passes/engine/trf_sequencer.h"

/* The first operation of a place speaks for all times that it was read. */
static bool is_asked(visa_compilation *c, const op *o, uint32_t line)
{
    return o->kind == IR_ALIGN && !o->repeated && (line == 0 || compilation_line_of(c, o->range) == line);
}

static const char *lines_with_one(visa_compilation *c)
{
    const char *text = "";
    for (size_t k = 0; k < c->module->count; k++)
        for (size_t i = 0; i < c->module->kernels[k]->op_count; i++)
            if (is_asked(c, c->module->kernels[k]->ops[i], 0))
                text =
                    arena_printf(c->arena, "%s%s%u", text, *text ? ", " : "", compilation_line_of(c, c->module->kernels[k]->ops[i]->range));
    return text;
}

/* What is known of a contraction, for people or for the page. */
typedef void explain_writer(visa_compilation *c, const kernel *of, const op *o, const char *what, strbuf *out);

static void write_text(visa_compilation *c, const kernel *of, const op *o, const char *what, strbuf *out)
{
    strbuf_printf(out, "%s%s, line %u: %s of %s\n%s", out->bytes ? "\n" : "", of->name, compilation_line_of(c, o->range),
                  dialect_word(of->dialect, op_kind_name(o->kind)), dtype_row_of(o->out.dtype)->name, what);
}

/* A heading, the source's line, and the text's lines: those of a read's size are rows of a table, its verdict a cell. */
static void write_section(visa_compilation *c, const kernel *of, const op *o, const char *what, strbuf *out)
{
    static const char size_word[] = "  reg_read_size ";
    uint32_t number = compilation_line_of(c, o->range);
    source_line line = source_line_of(c->sources, o->range.file, number);
    strbuf_puts(out, "<section><h2>");
    strbuf_append_xml(out, of->name, strlen(of->name));
    strbuf_printf(out, ", line %u: %s of %s</h2>\n<pre>", number, dialect_word(of->dialect, op_kind_name(o->kind)),
                  dtype_row_of(o->out.dtype)->name);
    strbuf_append_xml(out, line.text, line.bytes);
    strbuf_puts(out, "</pre>\n");
    bool in_table = false;
    for (const char *end; (end = strchr(what, '\n')); what = end + 1) {
        bool row = strncmp(what, size_word, sizeof size_word - 1) == 0;
        if (row != in_table)
            strbuf_puts(out, row ? "<table><tr><th>bytes of a read</th><th>verdict</th></tr>\n" : "</table>\n");
        in_table = row;
        const char *verdict = row ? strchr(what, ':') : NULL;
        const char *from = row ? what + sizeof size_word - 1 : what;
        if (row && verdict && verdict < end) {
            bool taken = strncmp(verdict, ": taken", 7) == 0;
            strbuf_printf(out, "<tr class=\"%s\"><td>%.*s</td><td>", taken ? "taken" : "refused", (int)(verdict - from), from);
            strbuf_append_xml(out, verdict + 2, (size_t)(end - verdict - 2));
            strbuf_puts(out, "</td></tr>\n");
        } else {
            strbuf_puts(out, "<p>");
            strbuf_append_xml(out, from, (size_t)(end - from));
            strbuf_puts(out, "</p>\n");
        }
    }
    strbuf_puts(out, in_table ? "</table></section>\n" : "</section>\n");
}

/* False: there is no contraction on that line. */
static bool explain_each(visa_compilation *c, uint32_t line, explain_writer *put, strbuf *out)
{
    if (COMPILATION_STOPS(c) || c->is_book || c->binary_only || !c->module)
        return false;
    pass_context p = {.mappings = c->mappings, .arena = c->arena, .target = c->target, .diags = &c->diags};
    bool found = false;
    for (size_t k = 0; k < c->module->count; k++) {
        const kernel *of = c->module->kernels[k];
        for (size_t i = 0; i < of->op_count; i++) {
            const op *o = of->ops[i];
            strbuf what;
            strbuf_init(&what, c->arena);
            if (!is_asked(c, o, line) || !trf_sequencer_explain(&p, o, &what))
                continue;
            put(c, of, o, what.text, out);
            found = true;
        }
    }
    if (found)
        return true;
    const char *lines = lines_with_one(c);
    diag *d = line ? diag_add(&c->diags, E_EXPLAIN, SRC_NOWHERE, "on line %u flits and weights do not meet", line)
                   : diag_add(&c->diags, E_EXPLAIN, SRC_NOWHERE, "there is no kernel in which flits and weights meet");
    diag_help(&c->diags, d, *lines ? "ask for line %s" : "it is asked of contractions%s", lines);
    return false;
}

bool visa_explain_mapping(visa_compilation *c, uint32_t line, const char **data, size_t *size)
{
    strbuf text;
    strbuf_init(&text, c->arena);
    if (!explain_each(c, line, write_text, &text))
        return false;
    *data = text.text;
    *size = text.bytes;
    return true;
}

bool visa_explain_mapping_page(visa_compilation *c, uint32_t line, const char **data, size_t *size)
{
    strbuf text;
    strbuf_init(&text, c->arena);
    strbuf_puts(&text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>What contractions read</title>\n"
                       "<style>body{font:14px sans-serif;max-width:70em;margin:2em auto}table{border-collapse:collapse}"
                       "td,th{border:1px solid #ccc;padding:2px 8px;text-align:left}.taken{background:#dfd}.refused{color:#666}"
                       "pre{background:#f6f6f6;padding:6px;overflow:auto}</style></head><body>\n"
                       "<h1>What contractions read of the TRF</h1>\n");
    if (!explain_each(c, line, write_section, &text))
        return false;
    strbuf_puts(&text, "</body></html>\n");
    *data = text.text;
    *size = text.bytes;
    return true;
}
