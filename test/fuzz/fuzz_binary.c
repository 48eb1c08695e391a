/* libFuzzer: any bytes as a binary; what the loader accepts is dumped and run within limits. */
#include "codegen/container.h"
#include "codegen/dump.h"
#include "runtime/machine/machine.h"
#include "runtime/step/engine.h"
#include "test/fuzz/fuzz.h"

static void run(const binary *b, const binary_kernel *k, arena *a, diag_list *diags)
{
    machine_options options = {.poison = 0xa5, .threads = 1, .memory_limit_bytes = 1 << 24, .step_limit = 1 << 14};
    machine *m = machine_new(b->target, k, a, &options);
    machine_run(m, diags);
    machine_free(m);
}

/* Without values; a source sends nothing. Memory that runs out leaves through the arena's guard. */
static void run_program(const step_program *p, arena *a, diag_list *diags)
{
    enum { TOKENS_MAX = 1 << 14 };
    step_run r = {.program = p, .arena = a, .pool = step_pool_new(a, false), .limit = TOKENS_MAX};
    r.stores = ARENA_ARRAY(a, step_store, p->tensor_count + 1);
    r.feeds = ARENA_ARRAY(a, step_feed, p->node_count + 1);
    step_engine_run(&r, diags);
    step_pool_free(r.pool);
}

int fuzz_binary(const unsigned char *data, size_t size)
{
    arena *a = arena_new();
    if (!a)
        return 0;
    if (setjmp(*arena_guard(a)) == 0) {
        diag_list diags;
        binary b;
        diag_list_init(&diags, a);
        if (binary_read(data, size, a, &diags, &b)) {
            binary_to_text(&b, a);
            binary_to_json(&b, a);
            for (size_t i = 0; i < b.kernel_count; i++)
                run(&b, &b.kernels[i], a, &diags);
            for (size_t i = 0; i < b.program_count; i++)
                run_program(&b.programs[i], a, &diags);
        }
    }
    arena_free(a);
    return 0;
}
