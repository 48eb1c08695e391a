/* The transformations that --pass asks for. */
#include "passes/step/rewrite.h"

const step_pass step_passes[] = {
    {"dynamic-tiling", "a group of rows becomes one tile of as many rows as it has, instead of tiles of fixed size", "node",
     step_pass_dynamic_tiling},
    {"hierarchical-tiling", "a product of large tiles becomes products of small ones that lie on the chip", "node, rows, inner, columns",
     step_pass_hierarchical_tiling},
    {"time-multiplex", "like subgraphs share one, whose weights are loaded by address", "from, to, regions", step_pass_time_multiplex},
    {"dynamic-parallel", "chunks that were dealt out in turn go to whichever region is free", "done", step_pass_dynamic_parallel},
    {0},
};
