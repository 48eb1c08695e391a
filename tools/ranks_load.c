/* The plugin for MPI, found and loaded. */
#include <stdio.h>

#include "support/plugin.h"
#include "tools/ranks.h"

static bool refuse(diag_list *diags, const char *why)
{
    diag_help(diags, diag_add(diags, E_RANKS, SRC_NOWHERE, "a launcher has started this process, and %s", why),
              "install libvisa_mpi.so (built where libopenmpi-dev is) next to the program or in ../lib, or name it in VISA_MPI");
    return false;
}

bool ranks_begin(ranks *r, diag_list *diags)
{
    if (!ranks_launched())
        return true;
    void *plugin = plugin_open("libvisa_mpi", "VISA_MPI", true, diags->arena);
    if (!plugin)
        return refuse(diags, arena_printf(diags->arena, "MPI cannot be loaded: %s", plugin_error()));
    ranks_api_function *entry;
    *(void **)&entry = plugin_function(plugin, "visa_ranks_api");
    const ranks_api *api = entry ? entry(RANKS_API_VERSION) : NULL;
    if (!api || !api->begin(&r->rank, &r->count))
        return refuse(diags, api ? "MPI does not begin" : "the plugin for MPI is of another release");
    r->api = api;
    return r->rank == 0 || (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr));
}
