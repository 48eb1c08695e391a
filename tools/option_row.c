#include "tools/option_row.h"

#include <stdio.h>
#include <string.h>

#include "tools/options.h"

enum {
    MOST_ROWS = 128,
    FIRST_LONG = 256, /* what getopt_long gives for row 0's name */
    HELP_COLUMN = 28, /* where the sentences begin, in characters */
    HELP_WIDTH = 120, /* where their lines end */
};

/* The row of a letter or, from FIRST_LONG on, of a name; NULL: none. */
static const option_row *row_of(const option_row *rows, size_t count, int code)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind != OPTION_IS_LINE &&
            (code >= FIRST_LONG ? (size_t)(code - FIRST_LONG) == i : rows[i].letter && rows[i].letter == code))
            return &rows[i];
    return NULL;
}

/* OPTION_GO_ON, or the exit status. */
static int take(const char *tool, const option_row *row, void *arguments, const char *text)
{
    void *member = (char *)arguments + row->at;
    switch (row->kind) {
    case OPTION_IS_FLAG: *(bool *)member = true; return OPTION_GO_ON;
    case OPTION_IS_TEXT: *(const char **)member = text; return OPTION_GO_ON;
    case OPTION_IS_NUMBER:
        return tool_number(text, member) ? OPTION_GO_ON : tool_usage_error(tool, "--%s takes a number, not `%s`", row->name, text);
    case OPTION_IS_LIMIT:
        return tool_limit(text, member) ? OPTION_GO_ON
                                        : tool_usage_error(tool, "--%s takes a number, 0 for no limit; not `%s`", row->name, text);
    case OPTION_IS_CALL:
    case OPTION_IS_LINE: break;
    }
    return row->take(arguments, text);
}

int option_rows_parse(const char *tool, const option_row *rows, size_t count, int argc, char **argv, void *arguments)
{
    struct option names[MOST_ROWS + 1] = {{0}};
    char letters[2 * MOST_ROWS + 2] = ":", *end = letters + 1;
    size_t named = 0;
    for (size_t i = 0; i < count && i < MOST_ROWS; i++) {
        if (rows[i].name)
            names[named++] = (struct option){rows[i].name, rows[i].argument, NULL, FIRST_LONG + (int)i};
        if (rows[i].letter) {
            *end++ = rows[i].letter;
            if (rows[i].argument == required_argument)
                *end++ = ':';
        }
    }
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        const option_row *row = code == ':' || code == '?' ? NULL : row_of(rows, count, code);
        if (code == ':')
            return tool_usage_error(tool, "option %s needs a value", argv[optind - 1]);
        if (!row)
            return tool_unknown_option(tool, names, argv[optind - 1]);
        int status = take(tool, row, arguments, optarg);
        if (status != OPTION_GO_ON)
            return status;
    }
    return OPTION_GO_ON;
}

/* Words from column HELP_COLUMN on, in lines of HELP_WIDTH. */
static void print_help(const char *text, size_t column)
{
    if (column + 1 >= HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            putchar('\n');
            column = 0;
        }
        int blanks = column < HELP_COLUMN ? (int)(HELP_COLUMN - column) : 1;
        printf("%*s%.*s", blanks, "", (int)word, text);
        column += (size_t)blanks + word;
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

void option_help_begin(const char *usage)
{
    static char buffer[1 << 16]; /* whole: a reader who left is noticed at its end, with the reason */
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    fputs(usage, stdout);
}

void option_rows_print(const option_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const option_row *r = &rows[i];
        int column = r->kind == OPTION_IS_LINE ? printf("  %s", r->form)
                     : !r->name                ? printf("  -%c%s", r->letter, r->form)
                                               : printf("  --%s%s", r->name, r->form);
        print_help(r->help, column < 0 ? 0 : (size_t)column);
    }
}
