/* tools/progress.h: the part that is done and what is left, from the second second on; and what a run of two says of itself. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/machine/session.h"
#include "test/suite.h"
#include "tools/progress.h"

static char text[256];

/* What standard error gets of a line that began so many seconds ago, less or more than that by half a second. */
static progress show(time_t seconds, int64_t done, int64_t all)
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    ck_assert(file && kept >= 0 && dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
    progress p = progress_begin("k.bin");
    p.begun.tv_sec -= seconds;
    p.begun.tv_nsec = (p.begun.tv_nsec + 500000000) % 1000000000;
    progress_show(&p, done, all);
    progress_show(&p, done, all);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return p;
}

START_TEST(a_line_has_the_part_and_the_seconds_left)
{
    enum { DAY = 24 * 3600 };
    int percent, end = 0;
    long left;
    progress p = show(100, 1, 4);
    ck_assert_msg(sscanf(text, "\r\033[Kk.bin: %d %%, %ld seconds left%n", &percent, &left, &end) == 2 && !text[end], "%s", text);
    ck_assert(percent == 25 && p.percent == 25 && !p.shown);
    ck_assert_msg(left >= 298 && left < DAY, "%ld", left); /* three times as long as so far, on a machine that stood still for hours more */
    show(100, 1, 1000);
    ck_assert_str_eq(text, "\r\033[Kk.bin: 0 %");
    p = show(-DAY, 1, 4); /* the first second is not over */
    ck_assert(!*text && p.percent == -1);
}
END_TEST

/* ---- what is counted ---- */

#define KERNEL(element, between) \
    "axes![A = 8];\n" \
    "#[device(chip = 1)]\n" \
    "fn k(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![A]>) -> HbmTensor<i8, m![1], m![A]> {\n" \
    "    let b: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![" element "]> = a.to_dm(&mut ctx.tdma, 0);\n" between \
    "    b.to_hbm(&mut ctx.tdma, 1 << 20)\n" \
    "}\n"

/* The second one streams bytes past the tensor, which nobody wrote: its run proves nothing, and there is another. */
static const char *const sources[] = {
    KERNEL("A", ""),
    KERNEL("A # 32",
           "    let b: DmTensor<i8, m![1], m![1 # 2], m![1 # 256], m![A # 32]> = ctx.main.begin(b.view()).fetch::<m![1], m![A # 32]>()\n"
           "        .collect::<m![1], m![A # 32]>().commit(4096);\n"),
};

typedef struct told {
    int64_t done[32], all[32];
    size_t count;
} told;

static void note(void *of, int64_t done, int64_t all)
{
    told *t = of;
    ck_assert_uint_lt(t->count, sizeof t->done / sizeof *t->done);
    t->done[t->count] = done;
    t->all[t->count++] = all;
}

START_TEST(commands_of_all_runs_are_counted)
{
    const unsigned char *bytes;
    size_t size;
    binary b;
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    const char *source = sources[_i / 2];
    bool twice = _i % 2, again = twice && _i / 2;
    visa_compilation *c = visa_compile("k.vm", source, strlen(source), NULL);
    ck_assert(c && visa_emit(c, VISA_EMIT_BINARY, &bytes, &size) && binary_read(bytes, size, a, &diags, &b));
    session *s = session_open(&b, NULL, a, &diags);
    told t = {.count = 0};
    session_set_options(s, &(session_options){.threads = 1, .progress = note, .progress_context = &t});
    ck_assert(session_fill(s, 1, &diags) && session_run(s, twice, &diags));
    int64_t commands = 0;
    for (int i = 0; i < 3; i++)
        commands += b.kernels[0].streams[i].count;
    ck_assert_int_gt(commands, 1);
    for (size_t i = 0; i < t.count; i++) {
        ck_assert(t.done[i] > (i > 0 ? t.done[i - 1] : 0));
        ck_assert(t.all[i] == commands || (again && t.all[i] == 2 * commands));
        ck_assert(t.done[i] != commands || t.all[i] == (again ? 2 : 1) * commands); /* the first run has seen what it cannot prove */
    }
    ck_assert_uint_gt(t.count, 1);
    ck_assert_int_eq(t.done[t.count - 1], (again ? 2 : 1) * commands); /* a proven run is the only one */
    ck_assert_int_eq(t.all[t.count - 1], t.done[t.count - 1]);
    session_close(s);
    visa_free(c);
    arena_free(a);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("progress");
    tcase_add_test(t, a_line_has_the_part_and_the_seconds_left);
    tcase_add_loop_test(t, commands_of_all_runs_are_counted, 0, 4);
    return suite_status("progress", t);
}
