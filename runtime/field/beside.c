#include "runtime/field/beside.h"

#include <setjmp.h>
#include <stdlib.h>

#include "runtime/machine/parallel.h"

/* Of inputs, outputs and what is in between: beyond, the proof may hold more than 2^27 bytes for each of them. */
enum { MOST_ELEMENTS = 1 << 24 };

struct field_beside {
    const target *target;
    const binary_kernel *kernel;
    field_options options;
    parallel_job *job;
    arena *arena; /* of what is found; NULL: there was no memory */
    diag_list diags;
    field_verdict verdict;
    bool ended; /* it was not stopped by a limit */
    bool decided;
};

static void prove(void *of)
{
    field_beside *b = of;
    b->arena = arena_new();
    if (!b->arena || setjmp(*arena_guard(b->arena)))
        return;
    diag_list_init(&b->diags, b->arena);
    b->decided = field_check(b->target, b->kernel, &b->options, b->arena, &b->diags, &b->verdict);
    b->ended = true;
}

field_beside *field_beside_begin(const target *t, const binary_kernel *k, const field_options *options)
{
    if (parallel_workers(options->threads) < 2 || field_stored_elements(k) > MOST_ELEMENTS)
        return NULL;
    field_beside *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (field_beside){.target = t, .kernel = k, .options = *options};
    b->job = parallel_begin(prove, b);
    if (b->job)
        return b;
    free(b);
    return NULL;
}

bool field_beside_end(field_beside *b, arena *a, diag_list *diags, field_verdict *out)
{
    parallel_end(b->job);
    b->job = NULL;
    bool ended = b->ended, decided = b->decided;
    field_beside was = *b;
    if (ended) {
        *out = b->verdict;
        diag_list_append(diags, &b->diags);
        arena_join(a, b->arena);
        b->arena = NULL;
    }
    field_beside_drop(b);
    /* Where a limit stopped it, it is the caller's that counts. */
    return ended ? decided : field_check(was.target, was.kernel, &was.options, a, diags, out);
}

void field_beside_drop(field_beside *b)
{
    if (!b)
        return;
    parallel_end(b->job);
    arena_free(b->arena);
    free(b);
}
