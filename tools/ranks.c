#include "tools/ranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/file.h"
#include "support/plugin.h"

/* Open MPI, PMIx (and what uses it), MPICH and its kin tell their processes so. */
static bool is_launched(void)
{
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]))
            return true;
    return false;
}

static bool refuse(diag_list *diags, const char *why)
{
    diag_help(diags, diag_add(diags, E_RANKS, SRC_NOWHERE, "a launcher has started this process, and %s", why),
              "install libvisa_mpi.so (built where libopenmpi-dev is) next to the program or in ../lib, or name it in VISA_MPI");
    return false;
}

bool ranks_begin(ranks *r, diag_list *diags)
{
    *r = (ranks){.count = 1};
    if (!is_launched())
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

unsigned char *ranks_read(const ranks *r, const char *path, size_t *size, diag_list *diags)
{
    unsigned char *text = NULL;
    *size = 0;
    if (r->rank == 0)
        text = file_read_all(path, size, diags);
    if (r->api && !r->api->share(&text, size))
        r->api->fail(EXIT_FAILURE);
    return text;
}

void ranks_join(const ranks *r, visa_explore_options *o)
{
    o->part = r->rank;
    o->parts = r->count;
    o->gather = r->api ? r->api->gather : NULL;
}

void ranks_fail(const ranks *r, int status)
{
    if (r->api)
        r->api->fail(status);
}

void ranks_end(ranks *r)
{
    if (r->api)
        r->api->end();
    r->api = NULL;
}
