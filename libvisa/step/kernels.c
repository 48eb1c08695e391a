#include "libvisa/step/kernels.h"

#include <inttypes.h>
#include <string.h>

#include "ir/einsum.h"
#include "runtime/timing/calls.h"

/* False when a tile cannot be as large. */
static bool tile_of(const tensor *t, step_kernel_tile *out)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t rank = tensor_axes(t, axes, EINSUM_MAX_AXES);
    *out = (step_kernel_tile){t->dtype, 1, 1};
    for (uint32_t i = 0; i < rank; i++) {
        int64_t *size = i == 0 && rank > 1 ? &out->rows : &out->columns;
        if (axes[i]->size > STEP_TILE_MAX / *size)
            return false;
        *size *= axes[i]->size;
    }
    return true;
}

static int64_t flops_of(const kernel_einsum *k)
{
    int64_t all = 0;
    for (uint32_t i = 0; k && i < k->e.statement_count; i++) {
        const einsum_statement *s = &k->e.statements[i];
        int64_t one = s->op == MATH_CONTRACT ? 2 : 0;
        for (uint32_t d = 0; d < s->digit_count; d++)
            if (__builtin_mul_overflow(one, s->digits[d].size, &one))
                return INT64_MAX;
        if (__builtin_add_overflow(all, one, &all))
            return INT64_MAX;
    }
    return all;
}

static const char *ports_text(arena *a)
{
    return arena_printf(a, "it takes 1 to %d tiles and gives 1 to %d", STEP_KERNEL_INPUTS, STEP_KERNEL_OUTPUTS);
}

static bool take_port(step_kernel *f, const kernel_port *p, arena *a)
{
    bool fits = true;
    if (p->is_output && f->output_count < STEP_KERNEL_OUTPUTS)
        fits = tile_of(&p->tensor, &f->outputs[f->output_count++]);
    else if (!p->is_output && f->input_count < STEP_KERNEL_INPUTS)
        fits = tile_of(&p->tensor, &f->inputs[f->input_count++]);
    else
        f->why = ports_text(a);
    if (!fits)
        f->why = arena_printf(a, "`%s` has more than %d rows or columns", p->name, STEP_TILE_MAX);
    return !f->why;
}

static step_kernel function_of(const kernel *k, arena *a)
{
    step_kernel f = {.name = k->name, .bad = k->bad};
    for (size_t i = 0; !k->bad && i < k->port_count; i++)
        if (!take_port(&f, &k->ports[i], a))
            return f;
    f.flops = k->bad ? 0 : flops_of(k->einsum);
    if (!k->bad && (f.output_count == 0 || f.input_count == 0))
        f.why = ports_text(a);
    return f;
}

/* A kernel that has no schedule says so when it is run. */
static void count_moves(step_kernel *f, const kernel *k, const emit_context *e)
{
    binary_kernel b;
    call_facts facts;
    diag_list silent;
    arena_mark before = arena_mark_here(e->arena);
    diag_list_init(&silent, e->arena);
    emit_kernel(e, k, NULL, &b);
    if (call_facts_of(e->target, &b, e->arena, &silent, &facts)) {
        f->offchip_bytes = facts.hbm_bytes;
        memcpy(f->kept_bytes, facts.kept_bytes, sizeof f->kept_bytes);
        f->dm_bytes = facts.dm_bytes;
        f->dm_bytes_most = e->target->dm_bytes_per_slice;
        f->slices = facts.slices;
        f->trf_bytes = facts.trf_bytes;
    }
    arena_rewind(e->arena, before);
}

void step_kernels_add(step_kernels *all, const kernel *k, const emit_context *e, arena *a)
{
    step_kernel f = function_of(k, a);
    if (e && !f.bad && !f.why)
        count_moves(&f, k, e);
    ARENA_PUSH(a, all->items, all->count, all->capacity, f);
}
