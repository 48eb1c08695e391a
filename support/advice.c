#include "support/advice.h"

const char *advice_rows(arena *a, int64_t used, int64_t all)
{
    return arena_printf(a, "%lld of %lld Rows are used", (long long)used, (long long)all);
}

const char *advice_more_rows(arena *a, int64_t all)
{
    return arena_printf(a, "a Row mapping of %lld positions, from an axis that only the weights have", (long long)all);
}

const char *advice_lanes(arena *a, int64_t used, int64_t all)
{
    return arena_printf(a, "%lld of %lld bytes of a packet are used", (long long)used, (long long)all);
}

const char *advice_more_lanes(arena *a, int64_t all)
{
    return arena_printf(a, "an align packet of %lld bytes: take more of the summed axes into it", (long long)all);
}

const char *advice_slices(arena *a, int64_t used, int64_t all)
{
    return arena_printf(a, "%lld of %lld slices work", (long long)used, (long long)all);
}

const char *advice_pieces(arena *a, int64_t count, int64_t bytes)
{
    return arena_printf(a, "%s of %s", arena_count(a, count, "piece"), arena_count(a, bytes, "byte"));
}

const char *advice_larger_pieces(arena *a, int64_t bytes)
{
    return arena_printf(a, "an order in which %lld bytes or a multiple lie together on both sides", (long long)bytes);
}
