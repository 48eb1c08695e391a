/* runtime/machine/session.h: a check in which no element is compared is no agreement. A source cannot say such a kernel (one without an
 * output is E-UNSUPPORTED, an axis has an element, a window a place); a binary may. */
#include <check.h>
#include <string.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/machine/session.h"
#include "test/suite.h"

static const char source[] = "axes![A = 8];\n"
                             "#[device(chip = 1)]\n"
                             "fn k(ctx: &mut Context, a: &HbmTensor<i8, m![1], m![A]>) -> HbmTensor<i8, m![1], m![A]> {\n"
                             "    a.to_hbm(&mut ctx.tdma, 1 << 20)\n"
                             "}\n";

/* What is said before the run of the check that follows. */
typedef enum expectation { NOTHING_EXPECTED, EXPECTED, OTHER_EXPECTED, EXPECTATIONS } expectation;

/* With the output as an input, or as it is. */
static bool check_kernel(bool has_output, bool machine_order, expectation expects, bool *agrees, diag_list *diags, arena *a)
{
    const unsigned char *bytes;
    const char *report;
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
    bool ok = s && session_fill(s, 1, diags) && session_run(s, false, diags) && session_check(s, machine_order, agrees, &report, diags);
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
        diag_list_init(&diags, a);
        bool ok = check_kernel(has_output, _i % 2, _i / 2, &agrees, &diags, a);
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

int main(void)
{
    TCase *t = suite_case("nothing");
    tcase_add_loop_test(t, a_kernel_without_an_output_agrees_with_nothing, 0, 2 * EXPECTATIONS);
    return suite_status("check", t);
}
