#include "runtime/contraction_cycles.h"

#include "runtime/schedule.h"

bool contraction_cycles_of(const target *t, const binary_kernel *k, arena *a, diag_list *diags, contraction_cycles **out, size_t *count)
{
    schedule s;
    if (!schedule_make(t, k, TIMING_DOCUMENTED, a, diags, &s))
        return false;
    *out = ARENA_ARRAY(a, contraction_cycles, s.count + 1);
    *count = 0;
    for (size_t i = 0; i < s.count; i++) {
        const duration *d = &s.items[i].alone;
        if (s.items[i].trf_read)
            (*out)[(*count)++] = (contraction_cycles){d->total, d->fill, d->drains ? d->beats * d->beat_cycles : 0, duration_bound_name(d->bound), duration_formula(d, a)};
    }
    return true;
}
