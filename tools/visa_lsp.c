/* visa-lsp: the language server's command line. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/visa.h"
#include "lsp/server.h"
#include "support/budget.h"
#include "support/output.h"
#include "support/stop.h"
#include "tools/options.h"

static const char usage[] =
    "Usage: visa-lsp [options]\n"
    "\n"
    "A language server for .vm files: the Language Server Protocol on standard input and output.\n"
    "\n"
    "Options:\n"
    "  --stdio                 what it does anyway; some editors say so\n"
    "  --time-limit=N          milliseconds of processor time for one answer, behind which it says that it gave up\n"
    "                          (default 60; 0 is no limit)\n"
    "  --max-steps=N           as of visac: steps of work for one answer (default 200000000; 0 is no limit)\n"
    "  --max-bytes=N           as of visac: bytes of memory for one document (default 1073741824; 0 is no limit)\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 shut down in order, 1 the input ended before that, 2 the command line is at fault.\n";

/* An editor that is gone ends the server by its write. */
static bool write_message(void *user, const char *bytes, size_t size)
{
    (void)user;
    int error = output_write_descriptor(STDOUT_FILENO, bytes, size);
    if (error)
        fprintf(stderr, "visa-lsp: error[E-FILE-WRITE]: cannot write standard output: %s\n", strerror(error));
    return error == 0;
}

int main(int argc, char **argv)
{
    enum { STDIO = 256, TIME_LIMIT, MAX_STEPS, MAX_BYTES, VERSION, HELP };
    static const struct option options[] = {
        {"stdio", no_argument, NULL, STDIO},
        {"time-limit", required_argument, NULL, TIME_LIMIT},
        {"max-steps", required_argument, NULL, MAX_STEPS},
        {"max-bytes", required_argument, NULL, MAX_BYTES},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {0},
    };
    stop_begin("visa-lsp");
    answer_limits limits = {.max_milliseconds = EDITOR_MILLISECONDS};
    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, ":h", options, NULL)) != -1;)
        switch (o) {
        case STDIO: break;
        case TIME_LIMIT:
            if (!tool_number(optarg, &limits.max_milliseconds))
                return tool_usage_error("visa-lsp", "--time-limit takes a number of milliseconds, 0 for no limit; not `%s`", optarg);
            break;
        case MAX_STEPS:
        case MAX_BYTES:
            if (!tool_limit(optarg, o == MAX_STEPS ? &limits.max_steps : &limits.max_bytes))
                return tool_usage_error("visa-lsp", "--max-%s takes a number, 0 for no limit; not `%s`", o == MAX_STEPS ? "steps" : "bytes",
                                        optarg);
            break;
        case VERSION: printf("visa-lsp %s\n", visa_version()); return tool_printed("visa-lsp", EXIT_DONE);
        case 'h':
        case HELP: fputs(usage, stdout); return tool_printed("visa-lsp", EXIT_DONE);
        case ':': return tool_usage_error("visa-lsp", "option %s needs a value", argv[optind - 1]);
        default: return tool_unknown_option("visa-lsp", options, argv[optind - 1]);
        }
    if (optind < argc)
        return tool_usage_error("visa-lsp", "it takes no file: %s", argv[optind]);
    return server_run(STDIN_FILENO, write_message, &limits);
}
