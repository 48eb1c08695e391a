/* visa-explorer: the command line of the page in the browser. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/visa.h"
#include "libvisa/explorer/explorer.h"
#include "support/stop.h"
#include "tools/option_row.h"
#include "tools/options.h"

enum { DEFAULT_PORT = 10240, DEFAULT_MILLISECONDS = 3000, DEFAULT_BYTES = 1 << 28, PORT_MAX = 65535 };

typedef struct arguments {
    explorer_settings settings;
    bool opens;
} arguments;

#define OPTIONS "tools/visa_explorer.def"
#include "tools/option_table.h"

static int option_PORT(void *of, const char *text)
{
    uint64_t *number = &((arguments *)of)->settings.port;
    return tool_number(text, number) && *number <= PORT_MAX
               ? OPTION_GO_ON
               : tool_usage_error("visa-explorer", "--port takes a number from 0 to %d; not `%s`", PORT_MAX, text);
}

static int option_VERSION(void *of, const char *text)
{
    (void)of, (void)text;
    return tool_version("visa-explorer", visa_version());
}

static int option_HELP(void *of, const char *text)
{
    (void)of, (void)text;
    option_rows_print("visa-explorer", option_rows, OPTION_ROWS);
    return tool_printed("visa-explorer", EXIT_DONE);
}

static void show_page(char *url)
{
    extern char **environ;
    char *words[] = {"xdg-open", url, NULL};
    posix_spawnattr_t as_ever; /* signals that are held here end it as they should */
    sigset_t none;
    pid_t child;
    sigemptyset(&none);
    posix_spawnattr_init(&as_ever);
    posix_spawnattr_setsigmask(&as_ever, &none);
    posix_spawnattr_setflags(&as_ever, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawnp(&child, words[0], NULL, &as_ever, words, environ);
    posix_spawnattr_destroy(&as_ever);
    if (error != 0)
        fputs("visa-explorer: xdg-open is missing: open the page yourself\n", stderr);
}

/* Until a signal says that it is enough: no thread of the server takes it, since they are made after it is held. */
static int serve(const arguments *a, diag_list *diags)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    explorer *e = explorer_begin(&a->settings, diags);
    if (!e)
        return EXIT_INPUT;
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", explorer_port(e));
    printf("%s\n", url);
    int status = tool_printed("visa-explorer", EXIT_DONE), which;
    if (status == EXIT_DONE) {
        if (a->opens)
            show_page(url);
        sigwait(&ends, &which);
    }
    explorer_end(e);
    return status;
}

int main(int argc, char **argv)
{
    stop_begin("visa-explorer");
    signal(SIGCHLD, SIG_IGN); /* of a browser that ends */
    arguments a = {.settings = {DEFAULT_PORT, {.max_bytes = DEFAULT_BYTES, .max_milliseconds = DEFAULT_MILLISECONDS}}};
    int status = option_rows_parse("visa-explorer", option_rows, OPTION_ROWS, argc, argv, &a, NULL);
    if (status != OPTION_GO_ON)
        return status;
    if (optind < argc)
        return tool_usage_error("visa-explorer", "it takes no file: %s", argv[optind]);
    arena *memory = arena_new();
    if (!memory || setjmp(*arena_guard(memory))) {
        fputs("visa-explorer: error: out of memory\n", stderr);
        arena_free(memory);
        return EXIT_INPUT;
    }
    diag_list diags;
    diag_list_init(&diags, memory);
    status = serve(&a, &diags);
    tool_print_diags("visa-explorer", NULL, &diags);
    arena_free(memory);
    return status;
}
