#include "runtime/timing/line_cycles.h"

#include "runtime/timing/schedule.h"
#include "support/order.h"

static int by_line(const void *a, const void *b)
{
    const line_cycles *x = a, *y = b;
    return ORDER(x->line, y->line);
}

void line_cycles_make(const binary *b, timing_preset preset, arena *a, line_cycles_list *out)
{
    diag_list silent;
    diag_list_init(&silent, a);
    *out = (line_cycles_list){0};
    for (size_t k = 0; k < b->kernel_count; k++) {
        schedule s;
        if (!schedule_make(b->target, &b->kernels[k], preset, a, &silent, &s))
            continue;
        for (size_t i = 0; i < s.count; i++) {
            line_cycles one = {s.items[i].commands[0].line, s.items[i].end - s.items[i].start, !s.items[i].bitmaps};
            if (one.line)
                ARENA_PUSH(a, out->items, out->count, out->capacity, one);
        }
    }
    size_t kept = 0;
    order_sort(out->items, out->count, sizeof *out->items, by_line);
    for (size_t i = 0; i < out->count; i++) {
        if (kept > 0 && out->items[kept - 1].line == out->items[i].line) {
            out->items[kept - 1].cycles += out->items[i].cycles;
            out->items[kept - 1].runs += out->items[i].runs;
        } else {
            out->items[kept++] = out->items[i];
        }
    }
    out->count = kept;
}
