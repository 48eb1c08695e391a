/* The order of the passes: read this table for the shape of the compiler. */
#include "passes/pass.h"

#include "passes/advice.h"
#include "passes/allocate.h"
#include "passes/coverage.h"
#include "passes/engine/vrf.h"
#include "passes/in_place.h"
#include "passes/infer.h"
#include "passes/mathematics/einsum.h"
#include "passes/reshape.h"
#include "passes/verify.h"

const pass pipeline[] = {
    {"infer", "Row or Element of to_trf, each from the other; what contract and accumulate keep, from what is written", pass_infer},
    {"allocate", "addresses of ports; capacities; overlap of live DM tensors; TRF halves", pass_allocate},
    {"verify", "sizes that must match the machine; operand types; what flows through unchanged", pass_verify},
    {"reshape", "digits that get other names in the same places", pass_reshape},
#define PASS(name, summary) {#name, summary, pass_##name},
#include "target/engines.def"
    {"in_place", "chains that write over what they still read", pass_in_place},
    {"coverage", "memory written in parts: each element once, and before it is read", pass_coverage},
    {"einsum", "what the kernel computes, over axis digits", pass_einsum},
    {"advice", "warnings of -Wperformance", pass_advice},
    {0},
};

void pipeline_run(pass_context *p, kernel *k, void (*after)(void *user, const pass *done, const kernel *k), void *user)
{
    for (const pass *step = pipeline; step->name; step++) {
        if (!k->unfinished) /* what is found in half of a kernel is not what is wrong with it */
            step->run(p, k);
        if (after)
            after(user, step, k);
    }
}

/* Those of them that read addresses besides mappings. */
static void (*const address_passes[])(pass_context *p, kernel *k) = {pass_dma, pass_indirect, pass_fetch, pass_commit, vrf_rebase};

bool pipeline_run_again(pass_context *p, kernel *k)
{
    pass_context silent = *p;
    diag_list none;
    diag_list_init(&none, p->arena);
    silent.diags = &none;
    for (size_t i = 0; i < sizeof address_passes / sizeof *address_passes; i++)
        address_passes[i](&silent, k);
    for (size_t i = 0; i < k->op_count && none.error_count > 0; i++) /* it was good before, and will be where it was */
        k->ops[i]->bad = false;
    k->bad = false;
    return none.error_count == 0;
}
