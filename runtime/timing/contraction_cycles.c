#include "runtime/timing/contraction_cycles.h"

#include "runtime/timing/schedule.h"

/* Full, and the halves: as the commands say it. */
enum { TRF_ADDRESSES = 3 };

bool contraction_cycles_of(const target *t, const binary_kernel *k, arena *a, diag_list *diags, contraction_cycles **out, size_t *count)
{
    schedule s;
    if (!schedule_make(t, k, TIMING_DOCUMENTED, a, diags, &s))
        return false;
    const duration *loads[TRF_ADDRESSES] = {NULL};
    *out = ARENA_ARRAY(a, contraction_cycles, s.count + 1);
    *count = 0;
    for (size_t i = 0; i < s.count; i++) {
        const duration *d = &s.items[i].alone;
        if (s.items[i].trf_store)
            loads[command_get(s.items[i].trf_store, TRF_STORE_ADDRESS)] = d;
        if (!s.items[i].trf_read)
            continue;
        const duration *load = loads[command_get(s.items[i].trf_read, TRF_READ_ADDRESS)];
        (*out)[(*count)++] = (contraction_cycles){.cycles = d->total,
                                                  .fill_cycles = d->fill,
                                                  .drain_cycles = d->drains ? d->beats * d->beat_cycles : 0,
                                                  .busy = d->busy,
                                                  .binds = duration_bound_name(d->bound),
                                                  .formula = duration_formula(d, a),
                                                  .load_cycles = load ? load->total : 0,
                                                  .load_binds = load ? duration_bound_name(load->bound) : NULL};
    }
    return true;
}
