/* The committed corpora again, in every build: nothing of what fuzzers have found comes back.
 *
 * Usage: fuzz_replay CORPUS [TARGET]. CORPUS has a folder for each target; a target without inputs is a
 * failure. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "test/fuzz/fuzz.h"

static const struct {
    const char *name;
    int (*run)(const unsigned char *data, size_t size);
} targets[] = {{"source", fuzz_source}, {"binary", fuzz_binary},   {"tensor", fuzz_tensor}, {"editor", fuzz_editor},
               {"lsp", fuzz_lsp},       {"session", fuzz_session}, {"step", fuzz_step}};

static bool replay_file(const char *path, int (*run)(const unsigned char *data, size_t size), arena *a)
{
    diag_list diags;
    size_t bytes;
    diag_list_init(&diags, a);
    unsigned char *data = file_read_all(path, &bytes, &diags);
    if (!data)
        return false;
    run(data, bytes);
    free(data);
    return true;
}

/* How many files; -1: one could not be read. */
static int replay_folder(const char *folder, int (*run)(const unsigned char *data, size_t size))
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort), done = 0;
    arena *a = arena_new();
    bool good = a && setjmp(*arena_guard(a)) == 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && good) {
            good = replay_file(path, run, a);
            done++;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    if (a)
        arena_free(a);
    return good ? done : -1;
}

int main(int argc, char **argv)
{
    bool good = argc >= 2;
    if (!good)
        fputs("usage: fuzz_replay CORPUS [TARGET]\n", stderr);
    for (size_t i = 0; good && i < sizeof targets / sizeof *targets; i++) {
        char folder[4096];
        if (argc > 2 && strcmp(argv[2], targets[i].name) != 0)
            continue;
        snprintf(folder, sizeof folder, "%s/%s", argv[1], targets[i].name);
        int done = replay_folder(folder, targets[i].run);
        printf("%s: %d inputs\n", targets[i].name, done);
        good = done > 0;
    }
    return good ? 0 : 1;
}
