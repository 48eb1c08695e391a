/* runtime/timing/calls.h: several calls as one kernel. What is left out of a call must not be needed: the merged commands run on the
 * machine, and the last call's output is judged; what a copy may not be left out of is told apart. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/machine/session.h"
#include "runtime/timing/calls.h"
#include "runtime/timing/schedule.h"
#include "test/suite.h"

enum { CALLS = 3 };

static const char *const files[] = {"matmul.vm",        "gemv.vm",    "layer.vm",   "bias_relu.vm",
                                    "double_buffer.vm", "split_k.vm", "rmsnorm.vm", "conv2d.vm"};

static void read_kernel(const char *file, arena *a, diag_list *diags, binary *b)
{
    char path[500];
    const char *root = getenv("VISA_SOURCE");
    snprintf(path, sizeof path, "%s/%s", root ? root : ".", file);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = arena_alloc(a, 1 << 16);
    size_t bytes = fread(text, 1, 1 << 16, f), size;
    fclose(f);
    const unsigned char *data;
    visa_compilation *c = visa_compile("k.vm", text, bytes, NULL);
    ck_assert(c && visa_emit(c, VISA_EMIT_BINARY, &data, &size));
    ck_assert(binary_read(data, size, a, diags, b));
    visa_free(c);
}

static bool runs_well(const binary *b, const binary_kernel *k, arena *a, diag_list *diags)
{
    binary one = {.target = b->target, .kernels = k, .kernel_count = 1};
    bool agrees = false;
    const char *report;
    session *s = session_open(&one, NULL, a, diags);
    bool ok = s && session_fill(s, 1, diags) && session_run(s, true, diags) && session_check(s, true, &agrees, &report, diags);
    session_close(s);
    return ok && agrees;
}

static int64_t cycles_of(const binary *b, const binary_kernel *k, arena *a, diag_list *diags)
{
    schedule s;
    ck_assert(schedule_make(b->target, k, TIMING_DOCUMENTED, a, diags, &s));
    return s.cycles;
}

/* Every input that may stay is left out after the first call. */
START_TEST(what_is_left_out_is_not_needed)
{
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    binary b;
    char path[100];
    snprintf(path, sizeof path, "examples/%s", files[_i]);
    read_kernel(path, a, &diags, &b);
    for (size_t n = 0; n < b.kernel_count; n++) {
        const binary_kernel *k = &b.kernels[n];
        call_facts facts;
        binary_kernel calls, next;
        uint32_t kept = 0;
        ck_assert(call_facts_of(b.target, k, a, &diags, &facts));
        for (uint32_t i = 0; i < CALL_INPUTS; i++)
            kept |= (uint32_t)(facts.kept_bytes[i] > 0) << i;
        calls_merge(b.target, k, &(call_choice){.count = CALLS, .kept = kept, .first_loads = true}, a, &calls);
        calls_merge(b.target, k, &(call_choice){.count = 1, .kept = kept}, a, &next);
        if (!calls_may_follow(k))
            continue;
        ck_assert_msg(runs_well(&b, &calls, a, &diags), "%s, %s: %s", files[_i], k->name,
                      diags.count ? diags.items[0]->message : "differs");
        /* One after the other: the cycles add up. */
        ck_assert_int_eq(cycles_of(&b, &calls, a, &diags), cycles_of(&b, k, a, &diags) + (CALLS - 1) * cycles_of(&b, &next, a, &diags));
        /* Ahead of each other: never longer than that, and never shorter than the copies. */
        calls_merge(b.target, k, &(call_choice){.count = CALLS, .kept = kept, .first_loads = true, .ahead = true}, a, &next);
        ck_assert_int_le(cycles_of(&b, &next, a, &diags), cycles_of(&b, &calls, a, &diags));
    }
    arena_free(a);
}
END_TEST

/* A second copy, or a result, where the input lay. */
START_TEST(what_is_overwritten_is_loaded_again)
{
    static const char *const places[] = {"b.to_dm(&mut ctx.tdma, 1 << 12)", "b.to_dm(&mut ctx.tdma, 1 << 13)"};
    static const bool kept[] = {true, false}; /* the second one lies where c is committed */
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    FILE *f;
    char path[500], *text = arena_alloc(a, 1 << 14), *changed = arena_alloc(a, 1 << 14);
    snprintf(path, sizeof path, "%s/examples/step/linear.vm", getenv("VISA_SOURCE") ? getenv("VISA_SOURCE") : ".");
    ck_assert((f = fopen(path, "r")) != NULL);
    text[fread(text, 1, (1 << 14) - 1, f)] = '\0';
    fclose(f);
    const char *at = strstr(text, places[0]);
    ck_assert(at != NULL);
    snprintf(changed, 1 << 14, "%.*s%s%s", (int)(at - text), text, places[_i], at + strlen(places[0]));
    const unsigned char *data;
    size_t size;
    binary b;
    call_facts facts;
    visa_compilation *c = visa_compile("k.vm", changed, strlen(changed), NULL);
    ck_assert(c && visa_emit(c, VISA_EMIT_BINARY, &data, &size) && binary_read(data, size, a, &diags, &b));
    ck_assert(call_facts_of(b.target, &b.kernels[0], a, &diags, &facts));
    ck_assert_int_eq(facts.kept_bytes[1], kept[_i] ? 8 * 32 * 2 : 0);
    ck_assert_int_eq(facts.hbm_bytes, 32 * 32 * 2 + 8 * 32 * 2 + 32 * 8 * 2);
    visa_free(c);
    arena_free(a);
}
END_TEST

/* A call goes on with the units that the last one has selected, so that its first command selects its own, if any does. */
START_TEST(units_are_selected_first)
{
    static const command streams[][3] = {{{.op = OP_WAIT}, {.op = OP_UNITS}, {.op = OP_FETCH}},
                                         {{.op = OP_FETCH}, {.op = OP_WAIT}, {.op = OP_UNITS}},
                                         {{.op = OP_FETCH}, {.op = OP_WAIT}, {.op = OP_FETCH}}};
    static const bool may_follow[] = {true, false, true};
    for (int number = 0; number < 3; number++) {
        binary_kernel k = {0};
        k.streams[number].commands = streams[_i];
        k.streams[number].count = 3;
        ck_assert(calls_may_follow(&k) == may_follow[_i]);
    }
}
END_TEST

int main(void)
{
    TCase *t = suite_case("calls");
    tcase_add_loop_test(t, units_are_selected_first, 0, 3);
    tcase_add_loop_test(t, what_is_left_out_is_not_needed, 0, sizeof files / sizeof *files);
    tcase_add_loop_test(t, what_is_overwritten_is_loaded_again, 0, 2);
    return suite_status("calls", t);
}
