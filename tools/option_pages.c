/* Manual pages and completions of shells, from the rows of the programs' options: what the installation carries besides the programs.
 *
 * Usage: option_pages man|bash|zsh|fish PROGRAM */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/option_row.h"

#define NONE no_argument
#define REQUIRED required_argument
#define OPTIONAL optional_argument
#define ROW(kind, values, name, letter, argument, form, of, help) {name, letter, argument, form, values, help, kind, of, 0, NULL},
#define OPTION(symbol, ...) ROW(OPTION_IS_CALL, NULL, __VA_ARGS__)
#define OPTION_ONE_OF(values, symbol, ...) ROW(OPTION_IS_CALL, values, __VA_ARGS__)
#define OPTION_OF_RUN OPTION
#define OPTION_OF_RUN_ONE_OF OPTION_ONE_OF
#define OPTION_FLAG OPTION
#define OPTION_TEXT OPTION
#define OPTION_NUMBER OPTION
#define OPTION_LIMIT OPTION
#define OPTION_CHOICE OPTION_ONE_OF
#define OPTION_LINE(form, help) ROW(OPTION_IS_LINE, NULL, NULL, 0, 0, form, ANY, help)
#define OPTION_USAGE(form, help) ROW(OPTION_IS_USAGE, NULL, NULL, 0, 0, form, ANY, help)
#define OPTION_ABOUT(text) ROW(OPTION_IS_ABOUT, NULL, NULL, 0, 0, "", ANY, text)
#define OPTION_STATUS(text) ROW(OPTION_IS_STATUS, NULL, NULL, 0, 0, "", ANY, text)

static const option_row visac_rows[] = {
#include "tools/visac.def"
};
static const option_row visa_run_rows[] = {
#include "tools/visa_run.def"
};
static const option_row visa_objdump_rows[] = {
#include "tools/visa_objdump.def"
};
static const option_row visa_lsp_rows[] = {
#include "tools/visa_lsp.def"
};
static const option_row visa_explorer_rows[] = {
#include "tools/visa_explorer.def"
};

typedef struct program {
    const char *name, *summary;
    const option_row *rows;
    size_t count;
} program;

#define PROGRAM(name, summary, rows) \
    { \
        name, summary, rows, sizeof rows / sizeof *rows \
    }
static const program programs[] = {
    PROGRAM("visac", "compile tensor mappings into sequencer configurations", visac_rows),
    PROGRAM("visa-run", "run a binary of visac on the simulated machine, and check it", visa_run_rows),
    PROGRAM("visa-objdump", "print what is in a binary of visac", visa_objdump_rows),
    PROGRAM("visa-lsp", "language server for .vm files", visa_lsp_rows),
    PROGRAM("visa-explorer", "tensor mappings in the browser, compiled as they are typed", visa_explorer_rows),
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* `text` with `before` in front of each character of `special`. */
static void put_escaped(const char *text, size_t bytes, const char *special, const char *before)
{
    for (size_t i = 0; i < bytes && text[i]; i++) {
        if (strchr(special, text[i]))
            fputs(before, stdout);
        putchar(text[i]);
    }
}

/* The bytes of `help` that tell the options apart: up to the end of its first clause. */
static size_t first_clause(const char *help)
{
    size_t bytes = 0;
    for (; help[bytes]; bytes++)
        if ((strchr(";:.", help[bytes]) && help[bytes + 1] == ' ') || strncmp(help + bytes, " (", 2) == 0)
            break;
    return bytes;
}

/* ---- man ---- */

static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++)
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
}

static void put_man(const program *p)
{
    fputs(".TH ", stdout);
    for (const char *c = p->name; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"visac %s\" \"User Commands\"\n.SH NAME\n", VISA_VERSION);
    put_roff(p->name);
    printf(" \\- %s\n", p->summary);
    const char *section = "NAME";
    for (size_t i = 0; i < p->count; i++) {
        const option_row *r = &p->rows[i];
        const char *here = r->kind == OPTION_IS_USAGE    ? "SYNOPSIS"
                           : r->kind == OPTION_IS_ABOUT  ? "DESCRIPTION"
                           : r->kind == OPTION_IS_STATUS ? "EXIT STATUS"
                                                         : "OPTIONS";
        if (strcmp(here, section) != 0)
            printf(".SH %s\n", section = here);
        if (r->kind == OPTION_IS_USAGE) {
            printf("%s.B %s\n", i ? ".br\n" : "", p->name);
            put_roff(r->form);
        } else if (here[0] == 'O') {
            fputs(".TP\n\\fB", stdout);
            if (option_is_one(r))
                put_roff(r->name ? "--" : "-");
            if (r->name)
                put_roff(r->name);
            else if (r->letter)
                putchar(r->letter);
            fputs("\\fR", stdout);
            put_roff(r->form);
            putchar('\n');
            put_roff(r->help);
            if (r->values)
                fputs("\n.br\nOne of ", stdout);
            for (const char *c = r->values ? r->values : ""; *c; c++)
                if (*c == '|')
                    fputs(", ", stdout);
                else
                    fputs(*c == '-' ? "\\-" : (char[]){*c, '\0'}, stdout);
            fputs(r->values ? "." : "", stdout);
        } else {
            put_roff(r->help);
        }
        putchar('\n');
    }
    fputs(".SH SEE ALSO\n", stdout);
    for (size_t i = 0, said = 0; i < PROGRAMS; i++)
        if (&programs[i] != p)
            printf("%s.BR %s (1)", said++ ? ",\n" : "", programs[i].name);
    putchar('\n');
}

/* ---- completions ---- */

/* "a b c" of "a|b|c". */
static void put_values(const char *values)
{
    for (; *values; values++)
        putchar(*values == '|' ? ' ' : *values);
}

static void put_bash(const program *p)
{
    char function[32];
    snprintf(function, sizeof function, "_%s", p->name);
    for (char *c = function; *c; c++)
        *c = *c == '-' ? '_' : *c;
    printf("# bash completion of %s, made from the rows of its options.\n"
           "%s()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} option= words=\n"
           "    COMPREPLY=()\n"
           "    if [[ $cur == = ]]; then\n"
           "        option=${COMP_WORDS[COMP_CWORD - 1]} cur=\n"
           "    elif [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then\n"
           "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    case $option in\n",
           p->name, function);
    for (size_t i = 0; i < p->count; i++)
        if (p->rows[i].values) {
            printf("        --%s) words='", p->rows[i].name);
            put_values(p->rows[i].values);
            puts("' ;;");
        }
    fputs("    esac\n"
          "    if [[ -z $option && $cur == -* ]]; then\n"
          "        words='",
          stdout);
    for (size_t i = 0; i < p->count; i++) {
        const option_row *r = &p->rows[i];
        if (r->name)
            printf("--%s%s ", r->name, r->argument == required_argument ? "=" : "");
        else if (r->letter)
            printf("-%c ", r->letter);
    }
    printf("'\n"
           "        compopt -o nospace\n"
           "    fi\n"
           "    if [[ -n $words ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
           "        [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} == *= ]] || compopt +o nospace\n"
           "    fi\n"
           "}\n"
           "complete -o default -F %s %s\n",
           function, p->name);
}

static void put_zsh(const program *p)
{
    printf("#compdef %s\n# zsh completion of %s, made from the rows of its options.\n_arguments -s \\\n", p->name, p->name);
    for (size_t i = 0; i < p->count; i++) {
        const option_row *r = &p->rows[i];
        if (!option_is_one(r))
            continue;
        fputs("    '*", stdout);
        if (r->name)
            printf("--%s%s", r->name, r->argument == no_argument ? "" : r->argument == required_argument ? "=" : "=-");
        else
            printf("-%c%s", r->letter, r->argument == no_argument ? "" : "+");
        putchar('[');
        for (size_t c = 0, bytes = first_clause(r->help); c < bytes; c++)
            if (r->help[c] == '\'')
                fputs("'\\''", stdout);
            else
                printf("%s%c", strchr("[]:\\", r->help[c]) ? "\\" : "", r->help[c]);
        putchar(']');
        if (r->argument != no_argument && r->values) {
            fputs(r->argument == required_argument ? ":value:(" : "::value:(", stdout);
            put_values(r->values);
            putchar(')');
        } else if (r->argument != no_argument) {
            fputs(r->argument == required_argument ? ":value:_files" : "::value:_files", stdout);
        }
        puts("' \\");
    }
    puts("    '*:file:_files'");
}

static void put_fish(const program *p)
{
    printf("# fish completion of %s, made from the rows of its options.\n", p->name);
    for (size_t i = 0; i < p->count; i++) {
        const option_row *r = &p->rows[i];
        if (!option_is_one(r))
            continue;
        printf("complete -c %s ", p->name);
        if (r->name)
            printf("-l %s", r->name);
        else
            printf("-s %c", r->letter);
        fputs(r->argument == required_argument ? " -r" : "", stdout);
        if (r->values) {
            fputs(" -f -a '", stdout);
            put_values(r->values);
            putchar('\'');
        }
        fputs(" -d '", stdout);
        put_escaped(r->help, first_clause(r->help), "'\\", "\\");
        putchar('\'');
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*put)(const program *p);
    } forms[] = {{"man", put_man}, {"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    for (size_t f = 0; argc == 3 && f < sizeof forms / sizeof *forms; f++)
        for (size_t i = 0; i < PROGRAMS; i++)
            if (strcmp(argv[1], forms[f].name) == 0 && strcmp(argv[2], programs[i].name) == 0) {
                forms[f].put(&programs[i]);
                return EXIT_SUCCESS;
            }
    fputs("Usage: option_pages man|bash|zsh|fish PROGRAM\n", stderr);
    return EXIT_FAILURE;
}
