/* The options of a program as rows.
 *
 * The one idea: an option is a row of the program's table (tools/visac.def, ..). The row says which member of the program's arguments it
 * sets, or there is a function that takes it, option_SYMBOL; the parser of command lines, --help, the manual pages, the completions of
 * shells (option_pages.c) and the nearest name of a misspelt option or value read the rows. A row without its member or function does not
 * compile. */
#ifndef VISA_TOOLS_OPTION_ROW_H
#define VISA_TOOLS_OPTION_ROW_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/diag.h"

/* What option_SYMBOL returns when the command line is to be read on; anything else is the exit status. */
enum { OPTION_GO_ON = -1 };

/* Of a function that returns EXIT_DONE, which is 0, or the status of a usage error. */
static inline int option_status(int status)
{
    return status == 0 ? OPTION_GO_ON : status;
}

enum { OPTION_ROWS_MAX = 128 };

typedef enum option_kind {
    OPTION_IS_USAGE,  /* no option: what follows the program's name on a command line, and what that does or "" */
    OPTION_IS_ABOUT,  /* no option: what the program does, a paragraph */
    OPTION_IS_LINE,   /* no option, a line of --help */
    OPTION_IS_CALL,   /* `take` takes it */
    OPTION_IS_FLAG,   /* sets a bool */
    OPTION_IS_TEXT,   /* keeps its argument: const char * */
    OPTION_IS_NUMBER, /* uint64_t */
    OPTION_IS_LIMIT,  /* uint64_t, where 0 stands for any number: UINT64_MAX */
    OPTION_IS_CHOICE, /* int: the number of the argument among `values` */
    OPTION_IS_STATUS, /* no option: the exit statuses, a sentence */
} option_kind;

/* What a file may hold, of which an option says something. An option of the whole program, or that has words of its own where there is
 * nothing, is of ANY. */
typedef enum option_subject {
    ANY = 0,
    OF_KERNELS = 1,
    OF_PROGRAMS = 2, /* stream programs */
    OF_CALLS = 4,    /* stream programs that run kernels */
    OF_PLANS = 8,
} option_subject;

typedef struct option_row {
    const char *name;   /* without --; NULL: it has a letter only, or is a line of help */
    char letter;        /* 0: none */
    int argument;       /* no_argument, required_argument or optional_argument */
    const char *form;   /* what follows name or letter in --help, "=FILE"; of a line of help all of it */
    const char *values; /* those that the argument may have, "auto|always|never"; NULL: any */
    const char *help;   /* one sentence or more; --help breaks the lines */
    option_kind kind;
    unsigned of;                                    /* option_subject, of any of which it says something */
    size_t at;                                      /* bytes from the arguments to the member that it sets */
    int (*take)(void *arguments, const char *text); /* of a call; `text`: the argument or NULL */
} option_row;

/* Is it an option, not a line about the program? */
bool option_is_one(const option_row *row);
/* Reads the options; `optind` then is the first argument that is none. OPTION_GO_ON, or the exit status; what is wrong was printed.
 * given: is each of them there? May be NULL. */
int option_rows_parse(const char *tool, const option_row *rows, size_t count, int argc, char **argv, void *arguments, bool *given);
/* Was an option given that asks what the file holds? */
bool option_rows_ask(const option_row *rows, size_t count, const bool *given);
/* Refuses what was given and says nothing of what the file holds, subjects of option_subject. `why`: "FILE holds none", or what it is that
 * is run; `instead`: what to do where there is something else that the option is for, or NULL. False: diagnosed. */
bool option_rows_fit(const option_row *rows, size_t count, const bool *given, unsigned holds, const char *why, const char *instead,
                     diag_list *diags);
/* --help; nothing was printed before. */
void option_rows_print(const char *tool, const option_row *rows, size_t count);

#endif
