/* The plugin libvisa_mpi: what tools/ranks.h asks for, by MPI. Nothing else links MPI. */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "tools/ranks.h"

/* Numbers and bytes go in messages of at most this many elements: MPI counts in int. So few that what is usual takes several. */
enum { MESSAGE = 1 << 12 };

static bool begin(int64_t *rank, int64_t *count)
{
    int r, n;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &r) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &n) != MPI_SUCCESS)
        return false;
    *rank = r;
    *count = n;
    return true;
}

static int rank_of_this(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static bool share(unsigned char **bytes, size_t *size)
{
    int64_t length = *bytes ? (int64_t)*size : -1;
    MPI_Bcast(&length, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (length < 0)
        return true;
    if (rank_of_this() > 0) {
        *bytes = malloc((size_t)length + 1);
        *size = (size_t)length;
        if (!*bytes)
            return false;
        (*bytes)[length] = '\0';
    }
    for (int64_t at = 0; at < length; at += MESSAGE)
        MPI_Bcast(*bytes + at, (int)(length - at < MESSAGE ? length - at : MESSAGE), MPI_BYTE, 0, MPI_COMM_WORLD);
    return true;
}

static void send(const int64_t *mine, int64_t count)
{
    MPI_Send(&count, 1, MPI_INT64_T, 0, 0, MPI_COMM_WORLD);
    for (int64_t at = 0; at < count; at += MESSAGE)
        MPI_Send(mine + at, (int)(count - at < MESSAGE ? count - at : MESSAGE), MPI_INT64_T, 0, 0, MPI_COMM_WORLD);
}

/* Appends what process `from` sends. */
static bool receive(int from, int64_t **all, size_t *total, size_t *count)
{
    int64_t length;
    MPI_Recv(&length, 1, MPI_INT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *count = (size_t)length;
    int64_t *grown = realloc(*all, (*total + *count + 1) * sizeof *grown);
    if (!grown)
        return false;
    *all = grown;
    for (int64_t at = 0; at < length; at += MESSAGE)
        MPI_Recv(grown + *total + at, (int)(length - at < MESSAGE ? length - at : MESSAGE), MPI_INT64_T, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    *total += *count;
    return true;
}

static bool gather(void *user, const int64_t *mine, size_t count, int64_t **all, size_t **counts, size_t *processes)
{
    (void)user;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    *processes = 0;
    if (rank_of_this() > 0) {
        send(mine, (int64_t)count);
        return true;
    }
    size_t total = count;
    *all = malloc((count + 1) * sizeof **all);
    *counts = calloc((size_t)size, sizeof **counts);
    if (!*all || !*counts)
        return false;
    for (size_t i = 0; i < count; i++)
        (*all)[i] = mine[i];
    (*counts)[0] = count;
    for (int from = 1; from < size; from++)
        if (!receive(from, all, &total, *counts + from))
            return false;
    *processes = (size_t)size;
    return true;
}

static void fail(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void end(void)
{
    MPI_Finalize();
}

VISA_API ranks_api_function visa_ranks_api;

const ranks_api *visa_ranks_api(int version)
{
    static const ranks_api api = {begin, share, gather, fail, end};
    return version == RANKS_API_VERSION ? &api : NULL;
}
