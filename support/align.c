#include "support/align.h"

enum { MOST_CELLS = 1 << 24 };

bool align_lists(size_t count, size_t other_count, align_likeness *like, const void *user, arena *a, size_t *partner)
{
    size_t columns = other_count + 1;
    for (size_t i = 0; i < count; i++)
        partner[i] = SIZE_MAX;
    if (count + 1 > MOST_CELLS / columns)
        return false;
    uint32_t *best = ARENA_ARRAY(a, uint32_t, (count + 1) * columns); /* of what is left of both from there on */
    for (size_t i = count; i-- > 0;)
        for (size_t k = other_count; k-- > 0;) {
            unsigned likeness = like(user, i, k);
            uint32_t together = likeness ? best[(i + 1) * columns + k + 1] + likeness : 0;
            uint32_t skip_one = best[(i + 1) * columns + k], skip_other = best[i * columns + k + 1];
            uint32_t most = skip_one > skip_other ? skip_one : skip_other;
            best[i * columns + k] = together > most ? together : most;
        }
    for (size_t i = 0, k = 0; i < count && k < other_count;) {
        unsigned likeness = like(user, i, k);
        if (likeness && best[i * columns + k] == best[(i + 1) * columns + k + 1] + likeness)
            partner[i++] = k++;
        else if (best[i * columns + k] == best[(i + 1) * columns + k])
            i++;
        else
            k++;
    }
    return true;
}
