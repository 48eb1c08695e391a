/* include/visa.h, compilations: what is written kernel by kernel is what is written of all kernels at the end, bytes and messages. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"
#include "include/visa_editor.h"
#include "support/arena.h"
#include "support/file.h"
#include "test/suite.h"

typedef struct outcome {
    const unsigned char *bytes; /* NULL: refused */
    size_t size, kernels, errors;
    const char *said;
} outcome;

static outcome compile(const char *name, const char *text, size_t bytes, bool binary_only, visa_compilation **c)
{
    visa_options options = {.binary_only = binary_only, .modules = true};
    outcome out = {0};
    *c = visa_compile(name, text, bytes, &options);
    ck_assert(*c);
    if (!visa_emit(*c, VISA_EMIT_BINARY, &out.bytes, &out.size))
        out.bytes = NULL, out.size = 0;
    out.kernels = visa_kernel_count(*c);
    out.errors = visa_error_count(*c);
    out.said = visa_diagnostics(*c, VISA_DIAGNOSTICS_JSON);
    return out;
}

/* Steps of work, with those of writing it. */
static uint64_t steps_as(visa_compilation *c, const outcome *expected)
{
    const unsigned char *data;
    size_t size;
    bool written = visa_emit(c, VISA_EMIT_BINARY, &data, &size);
    ck_assert_uint_eq(expected->kernels, visa_kernel_count(c));
    ck_assert_uint_eq(expected->errors, visa_error_count(c));
    ck_assert_str_eq(expected->said, visa_diagnostics(c, VISA_DIAGNOSTICS_JSON));
    ck_assert(written == !!expected->bytes);
    if (written) {
        ck_assert_uint_eq(expected->size, size);
        ck_assert_mem_eq(expected->bytes, data, size);
    }
    return visa_steps(c);
}

/* The first axis that the text declares, with two positions more. */
static size_t larger_axis(const char *text, size_t bytes, char name[64], int64_t *size, visa_parameter *out)
{
    char *whole = strndup(text, bytes);
    const char *at = whole ? strstr(whole, "axes![") : NULL;
    long long number;
    bool found = at && sscanf(at, "axes![ %63[A-Za-z0-9_] = %lld", name, &number) == 2;
    free(whole);
    if (!found)
        return 0;
    *size = number + 2;
    *out = (visa_parameter){.name = name, .values = size, .count = 1};
    return 1;
}

/* With other numbers and with the first ones again: as from the text alone. */
static void same_again(const char *name, const char *text, size_t bytes, const outcome *expected, bool binary_only)
{
    char axis[64];
    int64_t size;
    visa_parameter larger;
    visa_options plain = {.binary_only = binary_only, .modules = true, .again = true}, changed = plain;
    changed.parameter_count = larger_axis(text, bytes, axis, &size, &larger);
    changed.parameters = &larger;
    visa_compilation *fresh = visa_compile(name, text, bytes, &changed), *c = visa_compile(name, text, bytes, &plain);
    ck_assert(fresh && c);
    outcome other = {0};
    if (!visa_emit(fresh, VISA_EMIT_BINARY, &other.bytes, &other.size))
        other.bytes = NULL;
    other.kernels = visa_kernel_count(fresh);
    other.errors = visa_error_count(fresh);
    other.said = visa_diagnostics(fresh, VISA_DIAGNOSTICS_JSON);
    uint64_t steps_changed = visa_steps(fresh), steps = steps_as(c, expected);
    for (int turn = 0; turn < 2; turn++) {
        if (!visa_compile_again(c, &changed)) { /* it was not read to its end */
            ck_assert(visa_error_count(c) == 1 && strstr(expected->said, "E-NESTING"));
            break;
        }
        ck_assert_uint_eq(steps_as(c, &other), steps_changed);
        ck_assert(visa_compile_again(c, &plain));
        ck_assert_uint_eq(steps_as(c, expected), steps);
    }
    visa_free(fresh);
    visa_free(c);
}

enum { MOST_STEPS = 50000 }; /* of a text that is compiled again and again; some are made to take long */

static outcome same_both_ways(const char *name, const char *text, size_t bytes)
{
    visa_compilation *c, *d;
    outcome all = compile(name, text, bytes, false, &c), each = compile(name, text, bytes, true, &d);
    ck_assert_str_eq(all.said, each.said);
    ck_assert_uint_eq(all.kernels, each.kernels);
    ck_assert_uint_eq(all.errors, each.errors);
    ck_assert(!all.bytes == !each.bytes);
    ck_assert_uint_eq(all.size, each.size);
    if (all.bytes)
        ck_assert_mem_eq(all.bytes, each.bytes, all.size);
    if (visa_steps(c) < MOST_STEPS) {
        same_again(name, text, bytes, &all, false);
        same_again(name, text, bytes, &each, true);
    }
    visa_free(c);
    visa_free(d);
    return (outcome){.size = all.size, .kernels = all.kernels, .errors = all.errors};
}

static const char *const folders[] = {"examples", "test/cases"};

START_TEST(files_are_written_the_same)
{
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    const char *folder = arena_printf(a, "%s/%s", getenv("VISA_SOURCE"), folders[_i]);
    DIR *all = opendir(folder);
    ck_assert(all);
    size_t written = 0, refused = 0;
    for (struct dirent *one; (one = readdir(all));) {
        size_t length = strlen(one->d_name), bytes;
        if (length < 3 || strcmp(one->d_name + length - 3, ".vm") != 0)
            continue;
        const char *path = arena_printf(a, "%s/%s", folder, one->d_name);
        unsigned char *text = file_read_all(path, &bytes, &diags);
        ck_assert(text);
        outcome o = same_both_ways(path, (const char *)text, bytes);
        written += o.size > 0;
        refused += o.errors > 0;
        free(text);
    }
    closedir(all);
    ck_assert_uint_ge(written, 5);
    ck_assert(_i == 0 || refused >= 10);
    arena_free(a);
}
END_TEST

static const char kernels[] = "axes![A = 32];\n"
                              "type Late = m![X];\n"
                              "fn first(a: FetchTensor<i8, m![1], m![1 # 2], m![1 # 256], m![1], m![A]>) -> CollectTensor<i8, m![1], m![1 "
                              "# 2], m![1 # 256], m![1], m![A]> {\n"
                              "    a.collect()\n}\n"
                              "fn second(a: FetchTensor<i8, m![1], m![1 # 2], m![1 # 256], m![1], m![%s]>) -> CollectTensor<i8, m![1], "
                              "m![1 # 2], m![1 # 256], m![1], m![A]> {\n"
                              "    a.collect()\n}\n"
                              "axes![X = %d];\n";

/* A later kernel, and an item after all kernels, are refused when the first kernel is dropped. */
START_TEST(a_later_error_refuses_the_file)
{
    char text[2048];
    snprintf(text, sizeof text, kernels, "A", 4);
    outcome good = same_both_ways("good.vm", text, strlen(text));
    ck_assert(good.size > 0 && good.kernels == 2 && good.errors == 0);
    snprintf(text, sizeof text, kernels, "B", 4);
    outcome second = same_both_ways("second.vm", text, strlen(text));
    ck_assert(second.size == 0 && second.errors == 1);
    snprintf(text, sizeof text, kernels, "A", 0);
    outcome item = same_both_ways("item.vm", text, strlen(text));
    ck_assert(item.size == 0 && item.errors >= 1);
}
END_TEST

START_TEST(nothing_else_is_there)
{
    char text[2048];
    snprintf(text, sizeof text, kernels, "A", 4);
    visa_compilation *c = visa_compile("good.vm", text, strlen(text), &(visa_options){.binary_only = true});
    const unsigned char *data, *again;
    size_t size, same;
    ck_assert(!visa_emit(c, VISA_EMIT_TABLES, &data, &size));
    ck_assert(!visa_draw(c, "collect", &data, &size));
    ck_assert(visa_emit(c, VISA_EMIT_BINARY, &data, &size) && visa_emit(c, VISA_EMIT_BINARY, &again, &same));
    ck_assert(data == again && size == same);
    visa_free(c);
}
END_TEST

static bool nobody(void *user)
{
    return ++*(int *)user == 0;
}

static bool somebody(void *user)
{
    return ++*(int *)user > 0;
}

/* A text that takes more than a millisecond on any machine. */
static char *long_text(void)
{
    enum { ONE = 256, COUNT = 2000 };
    char *text = malloc((size_t)ONE * COUNT), *at = text;
    ck_assert(text);
    at += sprintf(at, "axes![A = 4, B = 8];\n");
    for (int i = 0; i < COUNT; i++)
        at += sprintf(at,
                      "fn copy%d<'l, const T: Tu>(x: FetchTensor<'l, { T }, bf16, m![1], m![1], m![1], m![A], m![B]>)"
                      " -> CollectTensor<'l, { T }, bf16, m![1], m![1], m![1], m![A], m![B # 16]> { x.collect() }\n",
                      i);
    return text;
}

/* What stands in expansions, of the text and of a module, is told in the places of their calls, in each turn. */
START_TEST(macros_and_modules_again)
{
    static const char text[] = "mod inner;\naxes![A = 4];\n"
                               "macro_rules! twice { ($n:ident) => { const $n: usize = 1 1; }; }\ntwice!(X);\ntwice!(Y);\n"
                               "#[device(chip = 1)]\n"
                               "fn k(device: &mut Device, a: &HbmTensor<i8, m![1], m![A, inner::P]>) {}\n";
    /* three calls, whose last one declares an axis again */
    static const char inner[] = "macro_rules! axis { ($n:ident, $size:expr) => { axes![$n = $size]; }; }\n"
                                "axis!(P, 8);\naxis!(Q, 8);\naxis!(P, 8);\n";
    char folder[] = "visa-again-XXXXXX", path[64], file[64];
    ck_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/inner.vm", folder);
    snprintf(file, sizeof file, "%s/k.vm", folder);
    FILE *f = fopen(path, "w");
    ck_assert(f && fwrite(inner, 1, sizeof inner - 1, f) == sizeof inner - 1 && fclose(f) == 0);
    int64_t size = 5;
    visa_parameter other = {"A", &size, 1};
    visa_options plain = {.modules = true, .again = true}, changed = plain;
    changed.parameters = &other;
    changed.parameter_count = 1;
    visa_compilation *c = visa_compile(file, text, sizeof text - 1, &plain);
    char *said = strdup(visa_diagnostics(c, VISA_DIAGNOSTICS_JSON));
    ck_assert(said && strstr(said, "in what this call gives") && strstr(said, "inner.vm"));
    for (int turn = 0; turn < 3; turn++) {
        ck_assert(visa_compile_again(c, turn % 2 ? &plain : &changed));
        ck_assert_str_eq(visa_diagnostics(c, VISA_DIAGNOSTICS_JSON), said);
    }
    visa_free(c);
    free(said);
    ck_assert(remove(path) == 0 && remove(folder) == 0);
}
END_TEST

/* Where nothing was kept, or something else is asked for, nothing happens. */
START_TEST(not_again)
{
    char text[2048];
    snprintf(text, sizeof text, kernels, "A", 4);
    visa_options once = {.binary_only = true}, kept = {.binary_only = true, .again = true}, book = kept, tree = kept, machine = kept,
                 pass = kept;
    visa_compilation *c = visa_compile("good.vm", text, strlen(text), &once);
    ck_assert(!visa_compile_again(c, &kept));
    visa_free(c);
    c = visa_compile("good.vm", text, strlen(text), &kept);
    book.book = tree.parse_only = true;
    machine.target = "none";
    pass.print_after = "none";
    ck_assert(!visa_compile_again(c, &book) && !visa_compile_again(c, &tree) && !visa_compile_again(c, &machine) &&
              !visa_compile_again(c, &pass));
    char chapter_text[2100];
    snprintf(chapter_text, sizeof chapter_text, "```rust\n%s\n```\n", text);
    visa_compilation *chapter = visa_compile("chapter.md", chapter_text, strlen(chapter_text), &book);
    ck_assert(chapter && !visa_compile_again(chapter, &kept));
    visa_free(chapter);
    const unsigned char *data;
    size_t size;
    ck_assert(visa_emit(c, VISA_EMIT_BINARY, &data, &size) && size > 0);
    visa_options few = kept;
    few.max_steps = 10;
    ck_assert(visa_compile_again(c, &few) && visa_gave_up(c));
    ck_assert(visa_compile_again(c, &kept) && !visa_gave_up(c) && visa_emit(c, VISA_EMIT_BINARY, &data, &size));
    visa_free(c);
}
END_TEST

/* An editor's text goes on past its time while nobody asks; who asks ends it, and then it is no verdict. */
START_TEST(past_the_time_until_somebody_asks)
{
    char *text = long_text();
    visa_recall *r = visa_recall_new();
    int looks = 0;
    visa_options options = {.max_milliseconds = 1};
    visa_recall_unasked(r, somebody, &looks, 1000000);
    visa_compilation *c = visa_recompile(r, "long.vm", text, strlen(text), 0, 0, false, &options);
    ck_assert(looks == 1 && visa_gave_up(c) && !visa_holds(c, 0, 0));
    visa_free(c);
    looks = 0;
    visa_recall_unasked(r, nobody, &looks, 1000000);
    c = visa_recompile(r, "long.vm", text, strlen(text), 0, 0, false, &options);
    ck_assert(looks > 0 && !visa_gave_up(c) && visa_holds(c, 0, 0));
    ck_assert_uint_eq(visa_error_count(c), 0);
    visa_free(c);
    visa_recall_free(r);
    r = visa_recall_new();
    visa_recall_unasked(r, nobody, &looks, 2); /* so much, and then it was too much */
    c = visa_recompile(r, "long.vm", text, strlen(text), 0, 0, false, &options);
    ck_assert(visa_gave_up(c));
    visa_free(c);
    visa_recall_free(r);
    free(text);
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("kernel by kernel");
    tcase_add_loop_test(cases, files_are_written_the_same, 0, (int)(sizeof folders / sizeof *folders));
    suite_tests(cases, a_later_error_refuses_the_file, nothing_else_is_there, macros_and_modules_again, not_again,
                past_the_time_until_somebody_asks);
    return suite_status("compile", cases);
}
