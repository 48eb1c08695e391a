#include "tools/dataflow.h"

#include "runtime/timing/contraction_cycles.h"
#include "runtime/timing/duration.h"

/* The engines of a chain that are busy: before the multiplications, in them, and after. */
static size_t stages_of(const contraction_cycles *c, arena *a, visa_stage **out)
{
    size_t count = 0;
    *out = ARENA_ARRAY(a, visa_stage, ENGINE_COUNT);
    for (int e = 0; e < ENGINE_COUNT; e++)
        if (c->busy[e] > 0)
            (*out)[count++] = (visa_stage){engine_name((engine)e),
                                           e == ENGINE_TRF || e == ENGINE_REDUCER                           ? VISA_STAGE_CONTRACT
                                           : e == ENGINE_FETCH || e == ENGINE_SWITCH || e == ENGINE_COLLECT ? VISA_STAGE_FEED
                                                                                                            : VISA_STAGE_RESULT,
                                           c->busy[e]};
    return count;
}

bool tool_dataflow(visa_compilation *c, bool json, arena *a, diag_list *diags, const unsigned char **data, size_t *size)
{
    binary b = {0};
    visa_contraction *all = NULL;
    size_t count = 0, capacity = 0;
    if (visa_kernel_count(c) > 0 && (!visa_emit(c, VISA_EMIT_BINARY, data, size) || !binary_read(*data, *size, a, diags, &b)))
        return false;
    for (size_t i = 0; i < b.kernel_count; i++) {
        contraction_cycles *found;
        size_t found_count;
        if (!contraction_cycles_of(b.target, &b.kernels[i], a, diags, &found, &found_count))
            return false;
        for (size_t n = 0; n < found_count; n++) {
            visa_contraction v = {.kernel = b.kernels[i].name,
                                  .cycles = found[n].cycles,
                                  .fill_cycles = found[n].fill_cycles,
                                  .drain_cycles = found[n].drain_cycles,
                                  .load_cycles = found[n].load_cycles,
                                  .load_engine = found[n].load_binds,
                                  .engine = found[n].binds,
                                  .formula = found[n].formula};
            visa_stage *stages;
            v.stage_count = stages_of(&found[n], a, &stages);
            v.stages = stages;
            ARENA_PUSH(a, all, count, capacity, v);
        }
    }
    return visa_dataflow(c, json, all, count, data, size);
}
