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

bool visa_explain_mapping(visa_compilation *c, uint32_t line, const char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || c->is_book || c->binary_only || !c->module)
        return false;
    pass_context p = {.mappings = c->mappings, .arena = c->arena, .target = c->target, .diags = &c->diags};
    strbuf text;
    strbuf_init(&text, c->arena);
    for (size_t k = 0; k < c->module->count; k++) {
        const kernel *of = c->module->kernels[k];
        for (size_t i = 0; i < of->op_count; i++) {
            const op *o = of->ops[i];
            if (!is_asked(c, o, line))
                continue;
            strbuf what;
            strbuf_init(&what, c->arena);
            if (trf_sequencer_explain(&p, o, &what))
                strbuf_printf(&text, "%s%s, line %u: %s of %s\n%s", text.bytes ? "\n" : "", of->name, compilation_line_of(c, o->range),
                              dialect_word(of->dialect, op_kind_name(o->kind)), dtype_row_of(o->out.dtype)->name, what.text);
        }
    }
    if (!text.bytes) {
        const char *lines = lines_with_one(c);
        diag *d = line ? diag_add(&c->diags, E_EXPLAIN, SRC_NOWHERE, "on line %u flits and weights do not meet", line)
                       : diag_add(&c->diags, E_EXPLAIN, SRC_NOWHERE, "there is no kernel in which flits and weights meet");
        diag_help(&c->diags, d, *lines ? "ask for line %s" : "it is asked of contractions%s", lines);
        return false;
    }
    *data = text.text;
    *size = text.bytes;
    return true;
}
