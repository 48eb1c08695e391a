/* runtime/machine/session.h: a check in which no element is compared is no agreement. A source cannot say such a kernel (one without an
 * output is E-UNSUPPORTED, an axis has an element, a window a place); a binary may. And what a check compares with has the order that the
 * check asks for, whatever was announced before the run. An input that no memory holds ends the run before it begins. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/machine/session.h"
#include "test/suite.h"

static const char copies[] = "axes![A = 8];\n"
                             "#[device(chip = 1)]\n"
                             "fn k(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![A]>) -> HbmTensor<i8, m![1], m![A]> {\n"
                             "    a.to_hbm(&mut ctx.tdma, 1 << 20)\n"
                             "}\n";

/* Sums whose values depend on their order: in the machine's order they are equal, in free order each has a bound. */
static const char sums[] =
    "axes![M = 2, R = 8, K = 64];\n"
    "fn k(x: CollectTensor<bf16, m![1], m![1], m![1], m![M, K / 16], m![K % 16]>,\n"
    "     w: &TrfTensor<bf16, m![1], m![1], m![1], m![R], m![K]>) -> AccumulationTensor<f32, m![1], m![1], m![1], m![M], m![R]> {\n"
    "    x.align::<m![M, K / 32], m![K % 32], _, _>(w).contract::<m![1]>().accumulate(AccumulationKind::Interleaved)\n"
    "}\n";

/* What is said before the run of the check that follows. */
typedef enum expectation { NOTHING_EXPECTED, EXPECTED, OTHER_EXPECTED, EXPECTATIONS } expectation;

/* With the output as an input, or as it is. */
static bool check_kernel(const char *source, bool has_output, bool machine_order, expectation expects, bool *agrees, const char **report,
                         diag_list *diags, arena *a)
{
    const unsigned char *bytes;
    size_t size;
    binary b;
    visa_compilation *c = visa_compile("k.vm", source, strlen(source), NULL);
    ck_assert(c && visa_emit(c, VISA_EMIT_BINARY, &bytes, &size));
    ck_assert(binary_read(bytes, size, a, diags, &b));
    port *last = (port *)&b.kernels[0].ports[b.kernels[0].port_count - 1];
    ck_assert(last->direction == PORT_OUT);
    last->direction = has_output ? PORT_OUT : PORT_IN;
    session *s = session_open(&b, NULL, a, diags);
    session_set_options(s, &(session_options){.threads = 2});
    if (expects != NOTHING_EXPECTED)
        session_expect(s, machine_order == (expects == EXPECTED));
    bool ok = s && session_fill(s, 1, diags) && session_run(s, false, diags) && session_check(s, machine_order, agrees, report, diags);
    session_close(s);
    visa_free(c);
    return ok;
}

START_TEST(a_kernel_without_an_output_agrees_with_nothing)
{
    for (int has_output = 0; has_output < 2; has_output++) {
        arena *a = arena_new();
        diag_list diags;
        bool agrees = !has_output;
        const char *report;
        diag_list_init(&diags, a);
        bool ok = check_kernel(copies, has_output, _i % 2, _i / 2, &agrees, &report, &diags, a);
        ck_assert_msg(ok, "%s", diags.count ? diags.items[0]->message : "");
        ck_assert(agrees == (has_output == 1));
        ck_assert_uint_eq(diags.count, has_output ? 0 : 1);
        ck_assert(has_output || diags.items[0]->id == E_CHECK_NOTHING);
        ck_assert(has_output || strcmp(diags.items[0]->message, "kernel `k` has no output") == 0);
        ck_assert(has_output || session_found_mismatch(&diags)); /* the exit status is that of a check that fails */
        arena_free(a);
    }
}
END_TEST

/* What a check of the sums says in front of the time that the reference took. */
static char *said(bool machine_order, expectation expects)
{
    arena *a = arena_new();
    diag_list diags;
    bool agrees = false;
    const char *report;
    diag_list_init(&diags, a);
    bool ok = check_kernel(sums, true, machine_order, expects, &agrees, &report, &diags, a);
    ck_assert_msg(ok && agrees, "%s", diags.count ? diags.items[0]->message : report);
    char *words = strndup(report, strcspn(report, "\n"));
    ck_assert_ptr_nonnull(words);
    arena_free(a);
    return words;
}

START_TEST(a_check_has_the_order_that_it_asks_for)
{
    char *words[2][EXPECTATIONS];
    for (int order = 0; order < 2; order++)
        for (int expects = 0; expects < EXPECTATIONS; expects++)
            words[order][expects] = said(order, (expectation)expects);
    ck_assert_str_ne(words[0][NOTHING_EXPECTED], words[1][NOTHING_EXPECTED]);
    for (int order = 0; order < 2; order++)
        for (int expects = 0; expects < EXPECTATIONS; expects++)
            ck_assert_str_eq(words[order][expects], words[order][NOTHING_EXPECTED]);
    for (int i = 0; i < 2 * EXPECTATIONS; i++)
        free(words[i % 2][i / 2]);
}
END_TEST

/* In the place of the C library's: a system that may have no thread for the reference. */
static bool has_threads = true;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return has_threads ? create(thread, attributes, body, argument) : EAGAIN;
}

START_TEST(a_check_does_without_threads)
{
    char *with = said(_i, EXPECTED);
    has_threads = false;
    char *without = said(_i, EXPECTED);
    has_threads = true;
    ck_assert_str_eq(without, with);
    free(with);
    free(without);
}
END_TEST

START_TEST(an_input_outside_of_the_machine_is_not_run)
{
    const unsigned char *bytes;
    size_t size;
    binary b;
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    visa_compilation *c = visa_compile("k.vm", copies, strlen(copies), NULL);
    ck_assert(c && visa_emit(c, VISA_EMIT_BINARY, &bytes, &size) && binary_read(bytes, size, a, &diags, &b));
    port *first = (port *)&b.kernels[0].ports[0];
    ck_assert(first->direction == PORT_IN && first->space == PORT_HBM);
    first->address = b.target->hbm_bytes_per_chip - 7; /* of its 8 bytes one is past the end */
    session *s = session_open(&b, NULL, a, &diags);
    ck_assert(s && session_fill(s, 1, &diags) && !session_run(s, false, &diags));
    ck_assert_uint_eq(diags.count, 1);
    ck_assert_int_eq(diags.items[0]->id, E_RUN_ACCESS);
    session_close(s);
    visa_free(c);
    arena_free(a);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("nothing");
    tcase_add_test(t, a_check_has_the_order_that_it_asks_for);
    tcase_add_loop_test(t, a_check_does_without_threads, 0, 2);
    tcase_add_test(t, an_input_outside_of_the_machine_is_not_run);
    tcase_add_loop_test(t, a_kernel_without_an_output_agrees_with_nothing, 0, 2 * EXPECTATIONS);
    return suite_status("check", t);
}
