#include "tools/ranks.h"

#include <stdlib.h>

#include "support/file.h"

/* Open MPI, PMIx (and what uses it), MPICH and its kin tell their processes so. */
bool ranks_launched(void)
{
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]))
            return true;
    return false;
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

void ranks_join_tune(const ranks *r, visa_tune_options *o)
{
    o->part = r->rank;
    o->parts = r->count;
    o->gather = r->api ? r->api->gather : NULL;
    o->share = r->api ? r->api->share : NULL;
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
