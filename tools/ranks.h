/* Processes that explore or tune together: `mpirun -n 4 visac --explore ..` (docs/dataflow.md), `mpirun -n 4 visac tune ..` (docs/tune.md).
 *
 * The one idea: MPI lives in a plugin, libvisa_mpi, that is loaded when a launcher has started the process and nowhere else. The first
 * process reads the source, merges and writes; the others are silent. Without a launcher there is one process and no plugin. */
#ifndef VISA_TOOLS_RANKS_H
#define VISA_TOOLS_RANKS_H

#include "include/visa.h"
#include "support/diag.h"

enum { RANKS_API_VERSION = 1 };

/* What the plugin does. Everything but `fail` is called by all processes, in the same order. */
typedef struct ranks_api {
    bool (*begin)(int64_t *rank, int64_t *count);
    /* The first process's bytes in all of them; malloc'd in the others. *bytes NULL: there are none. False: no memory. */
    bool (*share)(unsigned char **bytes, size_t *size);
    /* visa_explore_options.gather */
    bool (*gather)(void *user, const int64_t *mine, size_t count, int64_t **all, size_t **counts, size_t *ranks);
    void (*fail)(int status); /* ends all processes */
    void (*end)(void);
} ranks_api;

/* The function of the plugin: NULL for another version. */
typedef const ranks_api *ranks_api_function(int version);

typedef struct ranks {
    const ranks_api *api; /* NULL: there is one process */
    int64_t rank, count;
} ranks;

/* Has a launcher started this process? */
bool ranks_launched(void);
/* False: diagnosed. */
bool ranks_begin(ranks *r, diag_list *diags);
/* As file_read_all, by the first process for all of them. NULL in the others without a diagnostic. */
unsigned char *ranks_read(const ranks *r, const char *path, size_t *size, diag_list *diags);
/* This process's part of the space. */
void ranks_join(const ranks *r, visa_explore_options *o);
/* This process's part of a search. */
void ranks_join_tune(const ranks *r, visa_tune_options *o);
/* One process cannot go on: the others would wait for it. */
void ranks_fail(const ranks *r, int status);
void ranks_end(ranks *r);

#endif
