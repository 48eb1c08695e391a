/* libFuzzer: token files of stream programs. The first byte chooses the program of step_programs.vm, the
 * second one bounded or unbounded queues and with or without values; each line after them is the file of one
 * source, in the order of the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/step/report.h"
#include "runtime/step/tokens.h"
#include "support/file.h"
#include "test/fuzz/fuzz.h"

static arena *programs_arena;
static binary programs;

static bool compile_programs(void)
{
    static const visa_options options = {.binary_only = true};
    static const char path[] = FUZZ_SOURCE "/step_programs.vm";
    diag_list diags;
    size_t bytes;
    const unsigned char *image;
    programs_arena = arena_new();
    if (!programs_arena || setjmp(*arena_guard(programs_arena)) != 0)
        return false;
    diag_list_init(&diags, programs_arena);
    unsigned char *text = file_read_all(path, &bytes, &diags);
    visa_compilation *c = text ? visa_compile(path, (const char *)text, bytes, &options) : NULL;
    bool good = c && visa_emit(c, VISA_EMIT_BINARY, &image, &bytes) && binary_read(image, bytes, programs_arena, &diags, &programs);
    visa_free(c);
    free(text);
    return good && programs.program_count > 0;
}

/* The files of the sources; false where one is refused. */
static bool feed(const step_program *p, const char *text, size_t bytes, step_run *r, diag_list *diags)
{
    for (uint32_t i = 0; i < p->node_count; i++) {
        if (p->nodes[i].op != STEP_SOURCE)
            continue;
        const char *end = bytes ? memchr(text, '\n', bytes) : NULL;
        size_t line = end ? (size_t)(end - text) : bytes;
        if (!step_tokens_read(p, &p->nodes[i].outputs[0], text, line, p->nodes[i].name, r->pool, r->arena, diags, &r->feeds[i]))
            return false;
        text += end ? line + 1 : line;
        bytes -= end ? line + 1 : line;
    }
    return true;
}

/* What leaves the program, as its files would show it. */
static void show(const step_run *r, arena *a)
{
    const step_program *p = r->program;
    for (int format = REPORT_TEXT; format <= (r->record ? REPORT_TRACE : REPORT_JSON); format++)
        step_report_make(r, (report_format)format);
    for (uint32_t i = 0; i < p->node_count; i++) {
        const step_input *from = p->nodes[i].inputs;
        if (p->nodes[i].op == STEP_SINK)
            step_tokens_text(p, p->nodes[from->node].outputs[from->port].type, r->feeds[i].taken, a);
    }
}

static void run(const unsigned char *data, size_t size, arena *a, step_run *r)
{
    enum { TOKENS_MAX = 1 << 13 };
    const step_program *p = &programs.programs[data[0] % programs.program_count];
    diag_list diags;
    bool values = data[1] % 2 == 0;
    diag_list_init(&diags, a);
    if (data[1] / 2 % 2)
        p = step_program_unbounded(p, a);
    *r = (step_run){.program = p, .arena = a, .pool = step_pool_new(a, values), .keep_sizes = true, .limit = TOKENS_MAX};
    r->keep_record = data[1] / 4 % 2;
    r->stores = ARENA_ARRAY(a, step_store, p->tensor_count + 1);
    r->feeds = ARENA_ARRAY(a, step_feed, p->node_count + 1);
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].op == STEP_SINK)
            r->feeds[i].taken = step_buffer_new(r->pool, 0);
    for (uint32_t i = 0; values && i < p->tensor_count; i++)
        r->stores[i].elements = ARENA_ARRAY(a, float, step_tensor_tiles(&p->tensors[i]) * p->tensors[i].rows * p->tensors[i].columns);
    if (feed(p, (const char *)data + 2, size - 2, r, &diags) && step_engine_run(r, &diags))
        show(r, a);
}

int fuzz_step(const unsigned char *data, size_t size)
{
    if (size < 2 || size > 1 << 14)
        return 0;
    if (!programs_arena && !compile_programs()) {
        fputs("fuzz_step: " FUZZ_SOURCE "/step_programs.vm does not compile\n", stderr);
        abort();
    }
    arena *a = arena_new();
    step_run *r = calloc(1, sizeof *r);
    if (a && r && setjmp(*arena_guard(a)) == 0)
        run(data, size, a, r);
    if (r && r->pool)
        step_pool_free(r->pool);
    free(r);
    if (a)
        arena_free(a);
    return 0;
}
