/* Outputs and what stops them, where the programs cannot show it: a signal at a known place, a file system without exchange, a name that is
 * no text. */
#define _GNU_SOURCE /* renameat2 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/output.h"
#include "support/shown.h"
#include "support/stop.h"
#include "test/suite.h"

static arena *memory;
static char folder[] = "/tmp/visa-output-XXXXXX";

static void setup(void)
{
    memory = arena_new();
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    ck_assert_int_eq(rmdir(folder), 0); /* nothing is left in it */
    arena_free(memory);
}

typedef enum moment { WHILE_WRITING, WHILE_HELD, WHEN_WRITTEN } moment;

/* A program that is stopped at `at` of writing a file. */
static void stopped_program(moment at)
{
    diag_list diags;
    diag_list_init(&diags, memory);
    stop_begin("visa");
    output_set *files = output_set_new(memory, &diags);
    output *o = output_declare(files, arena_printf(memory, "%s/x", folder));
    output_put(o, "1", 1);
    if (at == WHEN_WRITTEN)
        output_set_commit(files);
    if (at == WHILE_HELD)
        stop_hold();
    raise(SIGTERM);
    if (at == WHILE_HELD) {
        fputs("held, ", stderr);
        stop_release();
    }
    _exit(1);
}

static const char *stopped_at(moment at)
{
    int said[2], status;
    ck_assert_int_eq(pipe(said), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(said[1], STDERR_FILENO);
        stopped_program(at);
    }
    close(said[1]);
    char *text = arena_alloc(memory, 400);
    size_t bytes = 0;
    for (ssize_t got; (got = read(said[0], text + bytes, 399 - bytes)) > 0; bytes += (size_t)got)
        ;
    close(said[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    return text;
}

static const char *line_of(const char *before, const char *message)
{
    const char *colon = strchr(message, ':');
    return arena_printf(memory, "%svisa: error[%.*s]%s\n", before, (int)(colon - message), message, colon);
}

START_TEST(a_signal_removes_what_is_unfinished)
{
    ck_assert_str_eq(stopped_at(WHILE_WRITING), line_of("", "E-STOPPED: stopped by SIGTERM: no file was written"));
    ck_assert_str_eq(stopped_at(WHILE_HELD), line_of("held, ", "E-STOPPED: stopped by SIGTERM: no file was written"));
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_str_eq(stopped_at(WHEN_WRITTEN), line_of("", "E-STOPPED: stopped by SIGTERM: the outputs were written before"));
    ck_assert_int_eq(unlink(arena_printf(memory, "%s/x", folder)), 0);
}
END_TEST

/* In the place of the C library's: a file system that cannot exchange files. */
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    (void)from_folder, (void)from, (void)to_folder, (void)to, (void)flags;
    errno = EINVAL;
    return -1;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The second of two files became a folder since it was declared; the first cannot go back. */
START_TEST(what_cannot_go_back_is_said)
{
    char *one = arena_printf(memory, "%s/one", folder), *two = arena_printf(memory, "%s/two", folder), text[8] = "";
    diag_list diags;
    diag_list_init(&diags, memory);
    write_text(one, "old");
    write_text(two, "old");
    output_set *files = output_set_new(memory, &diags);
    output *first = output_declare(files, one), *second = output_declare(files, two);
    ck_assert(first && second && output_put(first, "new", 3) && output_put(second, "new", 3));
    ck_assert(unlink(two) == 0 && mkdir(two, 0700) == 0);
    ck_assert(!output_set_commit(files));
    output_set_free(files);
    ck_assert_uint_eq(diags.count, 2);
    ck_assert_str_eq(diags.items[1]->message, arena_printf(memory, "%s is written, another output is not", one));
    FILE *file = fopen(one, "r");
    ck_assert(file && fread(text, 1, sizeof text - 1, file) == 3 && fclose(file) == 0);
    ck_assert_str_eq(text, "new");
    ck_assert(unlink(one) == 0 && rmdir(two) == 0);
}
END_TEST

START_TEST(names_are_shown_in_a_line)
{
    static const struct {
        const char *name, *shown;
    } rows[] = {
        {"", ""},
        {"plain/a b.vm", "plain/a b.vm"},
        {"a\nb\r\t\x1b[31m\x7f", "a\\nb\\r\\t\\x1b[31m\\x7f"},
        {"m\xc3\xa4rz", "m\xc3\xa4rz"},
        {"20\xc2\xb0\xc2\x9f\xc2\xa0", "20\xc2\xb0\\xc2\\x9f\xc2\xa0"},
        {"\xff\xc3", "\\xff\\xc3"},
        {"\xe2\x80\xae.vm", "\\xe2\\x80\\xae.vm"}, /* right to left from here */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},       /* half of a pair */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_str_eq(shown_text(rows[i].name, memory), rows[i].shown);
}
END_TEST

int main(void)
{
    return suite_of("output", setup, teardown, a_signal_removes_what_is_unfinished, what_cannot_go_back_is_said, names_are_shown_in_a_line);
}
