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
    suite_tests(cases, a_later_error_refuses_the_file, nothing_else_is_there, past_the_time_until_somebody_asks);
    return suite_status("compile", cases);
}
