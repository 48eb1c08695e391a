/* What is made of a compilation: the binary, tables, pictures. */
#include <string.h>

#include "codegen/draw.h"
#include "codegen/memory_map.h"
#include "codegen/step/emit.h"
#include "codegen/step/picture.h"
#include "codegen/step/report.h"
#include "codegen/tables.h"
#include "frontend/format.h"
#include "ir/print.h"
#include "libvisa/compilation.h"
#include "libvisa/finn/finn.h"

/* Who makes no text has reported why, or found no memory. */
static bool emit_text(visa_compilation *c, const char *text, const unsigned char **data, size_t *size)
{
    *data = (const unsigned char *)text;
    *size = text ? strlen(text) : 0;
    c->exhausted = c->exhausted || (!text && c->diags.error_count == 0);
    return text != NULL;
}

void compilation_begin_file(visa_compilation *c)
{
    diag_list_init(&c->write_diags, c->arena);
    c->writer = binary_writer_new(c->target, c->arena, &c->write_diags);
}

void compilation_write_kernel(visa_compilation *c, const kernel *k, const binary_kernel *emitted, arena *scratch)
{
    emit_context e = {.arena = scratch, .target = c->target, .line_of = compilation_line_of, .user = c};
    binary_kernel b;
    if (!emitted)
        emit_kernel(&e, k, NULL, &b);
    c->write_failed = c->write_failed || !binary_writer_kernel(c->writer, emitted ? emitted : &b, scratch);
}

/* Of kernels that are there still, and what follows kernels. */
static bool write_rest(visa_compilation *c)
{
    arena *scratch = arena_new_inside(c->arena);
    emit_context e = {.arena = scratch, .target = c->target, .line_of = compilation_line_of, .user = c};
    arena_mark empty = arena_mark_here(scratch);
    if (!c->binary_only)
        compilation_begin_file(c);
    for (size_t i = 0; i < c->module->count && !c->binary_only && !c->write_failed; i++) {
        compilation_write_kernel(c, c->module->kernels[i], NULL, scratch);
        arena_rewind(scratch, empty);
    }
    for (size_t i = 0; i < c->programs->count && !c->write_failed; i++)
        c->write_failed = !binary_writer_program(c->writer, step_emit(&e, c->programs->graphs[i]), scratch);
    arena_free(scratch);
    return !c->write_failed;
}

/* The same bytes however often they are asked for. */
static bool write_file(visa_compilation *c, const unsigned char **data, size_t *size)
{
    if (!c->image && (!write_rest(c) || !binary_writer_finish(c->writer, &c->image, &c->image_bytes))) {
        diag_list_append(&c->diags, &c->write_diags);
        return false;
    }
    *data = c->image;
    *size = c->image_bytes;
    return true;
}

/* Kernels and stream programs have outputs that the other has not, and dataflow items have neither's: what would be empty is refused. */
static bool has_what(visa_compilation *c, visa_emit_kind kind)
{
    bool of_programs =
        kind == VISA_EMIT_STEP_REPORT || kind == VISA_EMIT_STEP_JSON || (kind >= VISA_EMIT_STEP_DOT && kind <= VISA_EMIT_STEP_PAGE);
    bool of_kernels = kind == VISA_EMIT_JSON || (kind >= VISA_EMIT_MEMORY && kind <= VISA_EMIT_ORDER);
    bool of_both = kind == VISA_EMIT_BINARY || kind == VISA_EMIT_TABLES || kind == VISA_EMIT_IR;
    if (of_programs && c->programs->count == 0) {
        diag *d =
            diag_add(&c->diags, E_STEP_OPTION, SRC_NOWHERE, "there is no stream program in the file, and so no graph and no costs of one");
        diag_help(&c->diags, d, "%s",
                  c->module->dataflow_count > 0 && c->module->count == 0
                      ? "--emit=dataflow shows dataflow items, --explore --emit=svg draws what could be built"
                      : "a stream program is a #[stream] function; --report has the figures of kernels");
    } else if (of_kernels && c->module->count == 0 && c->programs->count > 0) {
        diag *d = diag_add(&c->diags, E_STEP_OPTION, SRC_NOWHERE, "`%s` is a stream program: it has no %s", c->programs->graphs[0]->name,
                           kind == VISA_EMIT_JSON    ? "sequencer tables"
                           : kind == VISA_EMIT_ORDER ? "commands that are put in an order"
                                                     : "addresses on a machine");
        diag_help(&c->diags, d, "--emit=step-report and step-json have its costs, --emit=ir, dot and svg its graph");
    } else if ((of_kernels || of_both) && visa_kernel_count(c) + c->blank_count == 0 && c->module->dataflow_count > 0) {
        diag *d = diag_add(&c->diags, E_DATAFLOW_KERNEL, c->module->dataflows[0]->range,
                           "the file has dataflow items and nothing else: no kernel and no stream program");
        diag_help(&c->diags, d, "--emit=dataflow shows the items, --explore and --sweep try others, and --emit=vm writes one as a kernel");
    } else {
        return true;
    }
    return false;
}

static const char *graphs_text(visa_compilation *c, const emit_context *e, visa_emit_kind kind)
{
    strbuf s;
    strbuf_init(&s, c->arena);
    if (kind == VISA_EMIT_STEP_SVG && c->programs->count > 1) {
        diag *d =
            diag_add(&c->diags, E_KERNEL, SRC_NOWHERE, "the file has %zu stream programs, and a picture is of one", c->programs->count);
        diag_help(&c->diags, d, "--kernel=%s chooses the first; --emit=dot has them all", c->programs->graphs[0]->name);
        return NULL;
    }
    for (size_t i = 0; i < c->programs->count; i++)
        if (kind == VISA_EMIT_STEP_SVG)
            step_svg_put(&s, step_emit(e, c->programs->graphs[i]), NULL, NULL);
        else
            strbuf_puts(&s, step_dot_text(step_emit(e, c->programs->graphs[i]), c->arena));
    return s.text;
}

bool visa_emit(visa_compilation *c, visa_emit_kind kind, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c))
        return false;
    if (c->is_book)
        return false;
    if (kind == VISA_EMIT_AST)
        return c->file && emit_text(c, ast_text(c->file, c->arena), data, size);
    if (c->diags.error_count > 0 || !c->module || (c->binary_only && kind != VISA_EMIT_BINARY))
        return false;
    if (!has_what(c, kind))
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c};
    step_cost_report report = {c->programs->graphs, c->programs->count, c->bindings, c->binding_count};
    strbuf text;
    switch (kind) {
    case VISA_EMIT_TABLES:
        strbuf_init(&text, c->arena);
        strbuf_puts(&text, tables_text(&e, c->module));
        for (size_t i = 0; i < c->programs->count; i++)
            strbuf_printf(&text, "%sstream program %s: --emit=ir has its graph, --emit=step-report its costs\n",
                          i > 0 || c->module->count > 0 ? "\n" : "", c->programs->graphs[i]->name);
        return emit_text(c, text.text, data, size);
    case VISA_EMIT_JSON: return emit_text(c, tables_json(&e, c->module), data, size);
    case VISA_EMIT_IR:
        strbuf_init(&text, c->arena);
        module_print(c->module, &text);
        compilation_print_programs(&e, c, &text);
        return emit_text(c, text.text, data, size);
    case VISA_EMIT_MEMORY: return emit_text(c, memory_text(&e, c->module), data, size);
    case VISA_EMIT_MEMORY_JSON: return emit_text(c, memory_json(&e, c->module), data, size);
    case VISA_EMIT_MEMORY_SVG: return emit_text(c, memory_svg(&e, c->module), data, size);
    case VISA_EMIT_ORDER: return emit_text(c, order_text(&e, c->module, false), data, size);
    case VISA_EMIT_MOVED: return emit_text(c, order_text(&e, c->module, true), data, size);
    case VISA_EMIT_STEP_REPORT: return emit_text(c, step_cost_text(&e, &report), data, size);
    case VISA_EMIT_STEP_JSON: return emit_text(c, step_cost_json(&e, &report), data, size);
    case VISA_EMIT_STEP_CSV: return emit_text(c, step_cost_csv(&e, &report), data, size);
    case VISA_EMIT_STEP_PAGE: return emit_text(c, step_cost_page(&e, &report), data, size);
    case VISA_EMIT_FINN: return emit_text(c, finn_text(c), data, size);
    case VISA_EMIT_STEP_DOT:
    case VISA_EMIT_STEP_SVG: return emit_text(c, graphs_text(c, &e, kind), data, size);
    default: return write_file(c, data, size);
    }
}

bool visa_format(visa_compilation *c, const char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || !c->file || c->syntax_errors > 0)
        return false;
    strbuf text;
    strbuf_init(&text, c->arena);
    format_file(c->sources, c->file, &text);
    *data = text.text;
    *size = text.bytes;
    return true;
}

bool visa_draw(visa_compilation *c, const char *what, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || c->diags.error_count > 0 || c->is_book || c->binary_only || !c->module)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c};
    return emit_text(c, draw_svg(&e, c->module, what, &c->diags), data, size);
}

bool visa_pictures(visa_compilation *c, const char *name, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || c->diags.error_count > 0 || c->is_book || c->binary_only || !c->module)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c};
    for (size_t i = 0; i < c->module->count; i++)
        if (strcmp(c->module->kernels[i]->name, name) == 0)
            return emit_text(c, draw_kernel(&e, c->module->kernels[i]), data, size);
    return false;
}
