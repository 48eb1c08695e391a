/* The options of a program as rows.
 *
 * The one idea: an option is a row of the program's table (tools/visac.def, ..) and the function that takes it, option_SYMBOL; the parser
 * of command lines, --help and the nearest name of a misspelt option read the rows. A row without its function does not compile. */
#ifndef VISA_TOOLS_OPTION_ROW_H
#define VISA_TOOLS_OPTION_ROW_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* What option_SYMBOL returns when the command line is to be read on; anything else is the exit status. */
enum { OPTION_GO_ON = -1 };

/* Of a function that returns EXIT_DONE, which is 0, or the status of a usage error. */
static inline int option_status(int status)
{
    return status == 0 ? OPTION_GO_ON : status;
}

typedef struct option_row {
    const char *name;                               /* without --; NULL: it has a letter only, or is a line of help */
    char letter;                                    /* 0: none */
    int argument;                                   /* no_argument, required_argument or optional_argument */
    const char *form;                               /* what follows name or letter in --help, "=FILE"; of a line of help all of it */
    const char *help;                               /* one sentence or more; --help breaks the lines */
    int (*take)(void *arguments, const char *text); /* `text`: the argument or NULL; NULL: a line of help */
} option_row;

/* Reads the options; `optind` then is the first argument that is none. OPTION_GO_ON, or the exit status; what is wrong was printed. */
int option_rows_parse(const char *tool, const option_row *rows, size_t count, int argc, char **argv, void *arguments);
/* The lines of --help for the rows. */
void option_rows_print(const option_row *rows, size_t count);

#endif
