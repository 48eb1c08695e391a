#include "tools/option_row.h"

#include <stdio.h>
#include <string.h>

#include "tools/options.h"

enum {
    MOST_VALUES = 32,
    FIRST_LONG = 256, /* what getopt_long gives for row 0's name */
    HELP_COLUMN = 28, /* where the sentences begin, in characters */
    HELP_WIDTH = 120, /* where their lines end */
};

bool option_is_one(const option_row *row)
{
    return row->name || row->letter;
}

/* The number of `text` among the row's values; -1: it is none of them, which was printed. */
static int choose(const char *tool, const option_row *row, const char *text)
{
    char copy[256];
    const char *known[MOST_VALUES + 1] = {NULL};
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", row->values);
    for (char *rest = copy, *value; count < MOST_VALUES && (value = strsep(&rest, "|"));)
        known[count++] = value;
    for (size_t i = 0; i < count; i++)
        if (strcmp(known[i], text) == 0)
            return (int)i;
    char option[64];
    snprintf(option, sizeof option, "--%s=", row->name);
    tool_unknown_value(tool, option, text, known);
    return -1;
}

/* The row of a letter or, from FIRST_LONG on, of a name; NULL: none. */
static const option_row *row_of(const option_row *rows, size_t count, int code)
{
    for (size_t i = 0; i < count; i++)
        if (option_is_one(&rows[i]) && (code >= FIRST_LONG ? (size_t)(code - FIRST_LONG) == i : rows[i].letter && rows[i].letter == code))
            return &rows[i];
    return NULL;
}

/* OPTION_GO_ON, or the exit status. */
static int take(const char *tool, const option_row *row, void *arguments, const char *text)
{
    void *member = (char *)arguments + row->at;
    int chosen = row->values && text ? choose(tool, row, text) : 0;
    if (chosen < 0)
        return EXIT_USAGE;
    switch (row->kind) {
    case OPTION_IS_FLAG: *(bool *)member = true; return OPTION_GO_ON;
    case OPTION_IS_TEXT: *(const char **)member = text; return OPTION_GO_ON;
    case OPTION_IS_NUMBER:
        return tool_number(text, member) ? OPTION_GO_ON : tool_usage_error(tool, "--%s takes a number, not `%s`", row->name, text);
    case OPTION_IS_LIMIT:
        return tool_limit(text, member) ? OPTION_GO_ON
                                        : tool_usage_error(tool, "--%s takes a number, 0 for no limit; not `%s`", row->name, text);
    case OPTION_IS_CHOICE: *(int *)member = chosen; return OPTION_GO_ON;
    case OPTION_IS_CALL:
    case OPTION_IS_USAGE:
    case OPTION_IS_ABOUT:
    case OPTION_IS_LINE:
    case OPTION_IS_STATUS: break;
    }
    return row->take(arguments, text);
}

int option_rows_parse(const char *tool, const option_row *rows, size_t count, int argc, char **argv, void *arguments, bool *given)
{
    struct option names[OPTION_ROWS_MAX + 1] = {{0}};
    char letters[2 * OPTION_ROWS_MAX + 2] = ":", *end = letters + 1;
    size_t named = 0;
    for (size_t i = 0; i < count && i < OPTION_ROWS_MAX; i++) {
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
        bool inside = optopt != 0 && optopt < FIRST_LONG && optind < argc && argv[optind][0] == '-'; /* among more letters */
        const char letter[] = {'-', (char)optopt, '\0'};
        if (!row)
            return tool_unknown_option(tool, names, optopt > ' ' && optopt < 127 ? letter : argv[inside ? optind : optind - 1]);
        int status = take(tool, row, arguments, optarg);
        if (status != OPTION_GO_ON)
            return status;
        if (given)
            given[row - rows] = true;
    }
    return OPTION_GO_ON;
}

bool option_rows_ask(const option_row *rows, size_t count, const bool *given)
{
    for (size_t i = 0; i < count; i++)
        if (given[i] && rows[i].of != ANY)
            return true;
    return false;
}

/* "kernels, stream programs" */
static const char *subjects(unsigned of, arena *a)
{
    static const char *const names[] = {"kernels", "stream programs", "stream programs with kernels", "plans"};
    const char *text = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (of & 1u << i)
            text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", names[i]);
    return text;
}

bool option_rows_fit(const option_row *rows, size_t count, const bool *given, unsigned holds, const char *why, const char *instead,
                     diag_list *diags)
{
    bool fit = true;
    for (size_t i = 0; i < count; i++) {
        const option_row *r = &rows[i];
        if (!given[i] || r->of == ANY || (r->of & holds))
            continue;
        diag *d = diag_add(diags, E_STEP_OPTION, SRC_NOWHERE, "--%s is for %s, and %s", r->name, subjects(r->of, diags->arena), why);
        if (instead)
            diag_help(diags, d, "%s", instead);
        else
            diag_help(diags, d, "leave --%s out: it says nothing of that", r->name);
        fit = false;
    }
    return fit;
}

/* Words from column `indent` on, in lines of HELP_WIDTH; `column` characters stand in the first one. */
static void print_words(const char *text, size_t indent, size_t column)
{
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > HELP_WIDTH) {
            putchar('\n');
            column = 0;
        }
        int blanks = column < indent ? (int)(indent - column) : column > 0;
        printf("%*s%.*s", blanks, "", (int)word, text);
        column += (size_t)blanks + word;
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

static void print_option(const option_row *r)
{
    int column = !option_is_one(r) ? printf("  %s", r->form)
                 : !r->name        ? printf("  -%c%s", r->letter, r->form)
                                   : printf("  --%s%s", r->name, r->form);
    if (column + 1 >= HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    print_words(r->help, HELP_COLUMN, column < 0 ? 0 : (size_t)column);
}

void option_rows_print(const char *tool, const option_row *rows, size_t count)
{
    static char buffer[1 << 16]; /* whole: a reader who left is noticed at its end, with the reason */
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    option_kind last = OPTION_IS_USAGE;
    for (size_t i = 0; i < count; last = rows[i++].kind) {
        const option_row *r = &rows[i];
        bool begins = i == 0 || r->kind != last;
        switch (r->kind) {
        case OPTION_IS_USAGE:
            printf("%s %s %s%s%s\n", begins ? "Usage:" : "      ", tool, r->form, *r->help ? "      " : "", r->help);
            break;
        case OPTION_IS_ABOUT:
            fputs(begins ? "\n" : "", stdout);
            print_words(r->help, 0, 0);
            break;
        case OPTION_IS_STATUS:
            fputs("\nExit status:", stdout);
            print_words(r->help, 0, sizeof "Exit status:" - 1);
            break;
        default: fputs(last == OPTION_IS_USAGE || last == OPTION_IS_ABOUT ? "\nOptions:\n" : "", stdout); print_option(r);
        }
    }
}
