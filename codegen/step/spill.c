#include "codegen/step/spill.h"

#include "target/step/spill.h"

step_spill_cost step_spill_cost_of(const step_graph *g, const step_metrics *m, const step_bindings *b, arena *a)
{
    step_spill *all = ARENA_ARRAY(a, step_spill, g->node_count + 1);
    int64_t *by_node = ARENA_ARRAY(a, int64_t, g->node_count + 1);
    step_spill_cost cost = {.by_node = by_node};
    const char *missing;
    for (size_t i = 0; i < g->node_count; i++) {
        const step_graph_node *n = g->nodes[i];
        all[i] = (step_spill){.owner = step_accesses_owner(g, n), .stays = n->spec.kernel != NULL};
        if (!step_bind_evaluate(b, m->nodes[i].onchip_bytes[STEP_PAPER], &all[i].bytes, &missing) ||
            !step_bind_evaluate(b, m->accesses[i], &all[i].accesses, &missing))
            return cost;
    }
    cost.spilled_bytes = step_spill_share_out(all, (uint32_t)g->node_count, g->machine.onchip_bytes, a);
    cost.known = true;
    for (size_t i = 0; i < g->node_count && cost.known; i++) {
        by_node[i] = step_spill_moved(&all[all[i].owner], all[i].accesses);
        cost.known = !__builtin_add_overflow(cost.traffic_bytes, by_node[i], &cost.traffic_bytes);
    }
    return cost;
}
