/* visa-objdump: everything in a binary, decoded from its bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/dump.h"
#include "support/file.h"
#include "support/output.h"
#include "support/shown.h"
#include "support/stop.h"
#include "support/strbuf.h"
#include "tools/option_row.h"
#include "tools/options.h"

typedef struct arguments {
    bool json;
    const char *output;
    char **files;
    int file_count;
} arguments;

#define OPTIONS "tools/visa_objdump.def"
#include "tools/option_table.h"

static int option_VERSION(void *of, const char *text)
{
    (void)of, (void)text;
    printf("visa-objdump %s, format %d\n", VISA_VERSION, BINARY_FORMAT_VERSION);
    return tool_printed("visa-objdump", EXIT_DONE);
}

static int option_HELP(void *of, const char *text)
{
    (void)of, (void)text;
    option_rows_print("visa-objdump", option_rows, OPTION_ROWS);
    return tool_printed("visa-objdump", EXIT_DONE);
}

/* OPTION_GO_ON, else the exit status. */
static int parse(int argc, char **argv, arguments *o)
{
    int status = option_rows_parse("visa-objdump", option_rows, OPTION_ROWS, argc, argv, o, NULL);
    if (status != OPTION_GO_ON)
        return status;
    o->files = argv + optind;
    o->file_count = argc - optind;
    return o->file_count ? OPTION_GO_ON : tool_usage_error("visa-objdump", "no input file");
}

/* The dump of one file, or NULL after printing why not. */
static const char *dump_file(const char *file, bool json, arena *a)
{
    diag_list diags;
    size_t size = 0;
    binary b;
    const char *text = NULL;
    diag_list_init(&diags, a);
    unsigned char *bytes = file_read_all(file, &size, &diags);
    if (bytes && binary_read(bytes, size, a, &diags, &b)) {
        text = json ? binary_to_json(&b, a) : binary_to_text(&b, a);
        if (!text)
            fprintf(stderr, "visa-objdump: %s: out of memory\n", file);
    }
    free(bytes);
    tool_print_diags("visa-objdump", tool_input_name(file), &diags);
    return text;
}

/* False: a file could not be read. */
static bool dump_all(const arguments *o, arena *a, strbuf *out)
{
    bool failed = false, several = o->file_count > 1;
    for (int i = 0; i < o->file_count; i++) {
        const char *text = dump_file(o->files[i], o->json, a);
        failed |= !text;
        if (several && o->json)
            strbuf_puts(out, i ? ",\n" : "[\n");
        else if (several)
            strbuf_printf(out, "%s%s:\n", i ? "\n" : "", shown_text(o->files[i], a));
        strbuf_puts(out, text ? text : "");
    }
    if (several && o->json)
        strbuf_puts(out, "]\n");
    return !failed;
}

static int run(const arguments *o, arena *a)
{
    diag_list diags;
    strbuf out;
    diag_list_init(&diags, a);
    strbuf_init(&out, a);
    output_set *files = output_set_new(a, &diags);
    bool good = true;
    for (int i = 0; i < o->file_count && good; i++)
        good = output_set_reads(files, o->files[i]);
    output *to = good ? output_declare(files, o->output ? o->output : "-") : NULL;
    if (to && dump_all(o, a, &out) && output_put(to, out.text, out.bytes))
        good = output_set_commit(files);
    else
        good = false;
    output_set_free(files);
    tool_print_diags("visa-objdump", NULL, &diags);
    return good ? EXIT_SUCCESS : tool_refused(&diags);
}

int main(int argc, char **argv)
{
    stop_begin("visa-objdump");
    arguments o = {0};
    int status = parse(argc, argv, &o);
    if (status != OPTION_GO_ON)
        return status;
    arena *a = arena_new();
    if (!a || setjmp(*arena_guard(a))) {
        unfinished_remove_all();
        fputs("visa-objdump: out of memory\n", stderr);
        arena_free(a);
        return EXIT_INPUT;
    }
    status = run(&o, a);
    arena_free(a);
    return status;
}
