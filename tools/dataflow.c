#include "tools/dataflow.h"

#include "runtime/timing/contraction_cycles.h"

bool tool_dataflow(visa_compilation *c, bool json, arena *memory, diag_list *diags, const unsigned char **data, size_t *size)
{
    binary b = {0};
    visa_contraction *all = NULL;
    size_t count = 0, capacity = 0;
    if (visa_kernel_count(c) > 0 && (!visa_emit(c, VISA_EMIT_BINARY, data, size) || !binary_read(*data, *size, memory, diags, &b)))
        return false;
    for (size_t i = 0; i < b.kernel_count; i++) {
        contraction_cycles *found;
        size_t found_count;
        if (!contraction_cycles_of(b.target, &b.kernels[i], memory, diags, &found, &found_count))
            return false;
        for (size_t n = 0; n < found_count; n++) {
            visa_contraction v = {b.kernels[i].name,    found[n].cycles,     found[n].fill_cycles, found[n].drain_cycles,
                                  found[n].load_cycles, found[n].load_binds, found[n].binds,       found[n].formula};
            ARENA_PUSH(memory, all, count, capacity, v);
        }
    }
    return visa_dataflow(c, json, all, count, data, size);
}
