/* visa-lsp: the language server's command line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/visa.h"
#include "lsp/server.h"
#include "support/budget.h"
#include "support/output.h"
#include "support/stop.h"
#include "tools/option_row.h"
#include "tools/options.h"

typedef answer_limits arguments;

#define OPTIONS "tools/visa_lsp.def"
#include "tools/option_table.h"

/* An editor that has exited ends the server by its write. */
static bool write_message(void *user, const char *bytes, size_t size)
{
    (void)user;
    int error = output_write_descriptor(STDOUT_FILENO, bytes, size);
    if (error)
        fprintf(stderr, "visa-lsp: error[E-FILE-WRITE]: cannot write standard output: %s\n", strerror(error));
    return error == 0;
}

static int option_STDIO(void *of, const char *text)
{
    (void)of, (void)text;
    return OPTION_GO_ON;
}

static int option_TIME_LIMIT(void *of, const char *text)
{
    return tool_number(text, &((answer_limits *)of)->max_milliseconds)
               ? OPTION_GO_ON
               : tool_usage_error("visa-lsp", "--time-limit takes a number of milliseconds, 0 for no limit; not `%s`", text);
}

static int option_FIRST_BYTES(void *of, const char *text)
{
    return tool_number(text, &((answer_limits *)of)->first_bytes)
               ? OPTION_GO_ON
               : tool_usage_error("visa-lsp", "--first-bytes takes a number of bytes, 0 for no limit; not `%s`", text);
}

static int option_VERSION(void *of, const char *text)
{
    (void)of, (void)text;
    return tool_version("visa-lsp", visa_version());
}

static int option_HELP(void *of, const char *text)
{
    (void)of, (void)text;
    option_rows_print("visa-lsp", option_rows, OPTION_ROWS);
    fputs("\nExit status: 0 shut down in order, 1 the input ended before that, 2 the command line is at fault.\n", stdout);
    return tool_printed("visa-lsp", EXIT_DONE);
}

int main(int argc, char **argv)
{
    stop_begin("visa-lsp");
    answer_limits limits = {.max_milliseconds = EDITOR_MILLISECONDS, .first_bytes = EDITOR_FIRST_BYTES};
    int status = option_rows_parse("visa-lsp", option_rows, OPTION_ROWS, argc, argv, &limits, NULL);
    if (status != OPTION_GO_ON)
        return status;
    if (optind < argc)
        return tool_usage_error("visa-lsp", "it takes no file: %s", argv[optind]);
    return server_run(STDIN_FILENO, write_message, &limits);
}
