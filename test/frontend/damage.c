/* Every case file with each single token deleted, and doubled: the compiler neither crashes nor hangs, and where the damaged text is an
 * error, one of its messages or notes stands within two lines of the damage.
 *
 *     damage EVERY FOLDER...     of each file every EVERY-th token; 1: all, five minutes
 *
 * A token that is missing may be an error only where its meaning is missed (a `mut`, a part of a mapping, an argument's place), so the
 * share of messages that stand near is printed, and the test fails below MIN_NEAR_PERCENT. Nothing is reported as a consequence of the
 * damage: on the average there are few messages, and hardly ever MANY. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/source.h"
#include "frontend/token.h"
#include "include/visa.h"
#include "support/file.h"

enum {
    NEAR_LINES = 2,
    MIN_NEAR_PERCENT = 99,
    MANY = 4,
    MAX_MANY_PERMILLE = 1,
    MAX_MESSAGES_PERCENT = 135,
    FILES_MAX = 512,
    HANG_SECONDS = 20
};

typedef struct counts {
    size_t runs, errors, near, said, many; /* said: errors in all; many: texts with more than MANY of them */
    bool shown;                            /* name the texts without a place near */
    double longest;                        /* seconds of processor time for one text */
} counts;

static uint32_t line_at(const char *text, size_t offset)
{
    uint32_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static bool stands_near(const json_t *place, uint32_t line)
{
    json_int_t from = json_integer_value(json_object_get(json_object_get(json_object_get(place, "range"), "begin"), "line"));
    json_int_t to = json_integer_value(json_object_get(json_object_get(json_object_get(place, "range"), "end"), "line"));
    return from > 0 && from <= (json_int_t)line + NEAR_LINES && to + NEAR_LINES >= (json_int_t)line;
}

/* Has one of the diagnostics, or a note of one, a range near the line? */
static bool any_near(const json_t *list, uint32_t line)
{
    size_t i, k;
    json_t *d, *note;
    json_array_foreach(list, i, d)
    {
        if (stands_near(d, line))
            return true;
        json_array_foreach(json_object_get(d, "notes"), k, note) if (stands_near(note, line)) return true;
    }
    return false;
}

static void compile(const char *name, const char *text, size_t bytes, uint32_t line, const char *what, counts *c)
{
    clock_t start = clock();
    visa_compilation *v = visa_compile(name, text, bytes, NULL);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    c->runs++;
    if (seconds > HANG_SECONDS)
        printf("hangs: %s:%u: %s: %.1f s\n", name, line, what, seconds);
    c->longest = seconds > c->longest ? seconds : c->longest;
    if (!v || visa_error_count(v) == 0) {
        visa_free(v);
        return;
    }
    c->errors++;
    json_t *list = json_loads(visa_diagnostics(v, VISA_DIAGNOSTICS_JSON), 0, NULL);
    bool near = any_near(list, line);
    c->near += near;
    size_t said = visa_error_count(v); /* warnings may be the whole text's, as it stands */
    c->said += said;
    c->many += said > MANY;
    if (said > MANY && c->shown)
        printf("many: %s:%u: %s: %zu\n", name, line, what, said);
    if (!near && c->shown) {
        const char *first = json_string_value(json_object_get(json_array_get(list, 0), "message"));
        json_int_t at =
            json_integer_value(json_object_get(json_object_get(json_object_get(json_array_get(list, 0), "range"), "begin"), "line"));
        printf("far: %s:%u: %s: line %lld: %.90s\n", name, line, what, (long long)at, first ? first : "");
    }
    json_decref(list);
    visa_free(v);
}

static bool is_clean(const char *name, const char *text, size_t bytes)
{
    visa_compilation *v = visa_compile(name, text, bytes, NULL);
    bool clean = v && visa_error_count(v) == 0;
    visa_free(v);
    return clean;
}

/* Only a text that was right before can have its errors judged; the others are run all the same. */
static void damage_file(const char *path, const char *name, size_t every, counts *judged, counts *others)
{
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    size_t bytes;
    unsigned char *file = file_read_all(path, &bytes, &diags);
    if (!file) {
        arena_free(a);
        return;
    }
    const char *text = (const char *)file;
    source_map *sources = source_map_new(a);
    token_list tokens = token_scan(sources, source_map_add(sources, name, text, bytes), a, &diags);
    counts *c = is_clean(name, text, bytes) ? judged : others;
    char *changed = malloc(bytes * 2 + 2);
    for (size_t i = 0; i + 1 < tokens.count && changed; i += every) {
        const token *t = &tokens.items[i];
        size_t length = t->end - t->begin, tail = bytes - t->end;
        char what[64];
        uint32_t line = line_at(text, t->begin);
        snprintf(what, sizeof what, "without `%.*s`", (int)(length < 32 ? length : 32), text + t->begin);
        memcpy(changed, text, t->begin);
        memcpy(changed + t->begin, text + t->end, tail);
        compile(name, changed, bytes - length, line, what, c);
        snprintf(what, sizeof what, "twice `%.*s`", (int)(length < 32 ? length : 32), text + t->begin);
        memcpy(changed, text, t->end);
        changed[t->end] = ' ';
        memcpy(changed + t->end + 1, text + t->begin, length);
        memcpy(changed + t->end + 1 + length, text + t->end, tail);
        compile(name, changed, bytes + 1 + length, line, what, c);
    }
    free(changed);
    free(file);
    arena_free(a);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of a folder's .vm files in order; how many there are. */
static size_t list_files(const char *path, char **names)
{
    size_t count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return count;
    for (struct dirent *e; (e = readdir(folder)) != NULL && count < FILES_MAX;) {
        size_t length = strlen(e->d_name);
        if (length > 3 && strcmp(e->d_name + length - 3, ".vm") == 0)
            names[count++] = strdup(e->d_name);
    }
    closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    return count;
}

int main(int argc, char **argv)
{
    size_t every = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, files = 0;
    if (argc < 3 || every == 0) {
        fputs("usage: damage EVERY FOLDER...\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    counts judged = {.shown = true}, others = {0};
    for (int k = 2; k < argc; k++) {
        char *names[FILES_MAX];
        size_t count = list_files(argv[k], names);
        for (size_t i = 0; i < count; i++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[k], names[i]);
            damage_file(path, names[i], every, &judged, &others);
            free(names[i]);
        }
        files += count;
    }
    size_t percent = judged.errors ? judged.near * 100 / judged.errors : 0;
    double longest = judged.longest > others.longest ? judged.longest : others.longest;
    printf("%.2f messages each, %zu texts with more than %d; the longest took %.1f s\n",
           judged.errors ? (double)judged.said / (double)judged.errors : 0.0, judged.many, MANY, longest);
    printf("%zu files, %zu texts compiled; of %zu that were right before the damage %zu are errors now, %zu of them (%zu %%) with a place "
           "within %d lines\n",
           files, judged.runs + others.runs, judged.runs, judged.errors, judged.near, percent, NEAR_LINES);
    return percent < MIN_NEAR_PERCENT || judged.many * 1000 > judged.errors * MAX_MANY_PERMILLE ||
           judged.said * 100 > judged.errors * MAX_MESSAGES_PERCENT || longest > HANG_SECONDS;
}
