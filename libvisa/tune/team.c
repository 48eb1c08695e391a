#include "libvisa/tune/team.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of an outcome, as they are handed over. */
enum { LEGAL, CYCLES, DMA_CYCLES, STEPS, NUMBERS };
enum { IS_REFUSED, IS_LEGAL, IS_UNKNOWN };

static bool is_alone(const visa_tune_options *o)
{
    return !o->gather || o->parts <= 1;
}

size_t tune_team_size(const visa_tune_options *o)
{
    return is_alone(o) ? 1 : (size_t)o->parts;
}

static void to_numbers(const tune_outcome *x, int64_t numbers[NUMBERS])
{
    numbers[LEGAL] = !x->known ? IS_UNKNOWN : x->legal ? IS_LEGAL : IS_REFUSED;
    numbers[CYCLES] = x->cycles;
    numbers[DMA_CYCLES] = x->dma_cycles;
    numbers[STEPS] = (int64_t)x->steps;
}

static tune_outcome of_numbers(const int64_t numbers[NUMBERS])
{
    return (tune_outcome){.known = numbers[LEGAL] != IS_UNKNOWN,
                          .legal = numbers[LEGAL] == IS_LEGAL,
                          .cycles = numbers[CYCLES],
                          .dma_cycles = numbers[DMA_CYCLES],
                          .steps = (uint64_t)numbers[STEPS]};
}

bool tune_team_share(const visa_tune_options *o, unsigned char **text, size_t *bytes)
{
    return is_alone(o) || o->share(text, bytes);
}

bool tune_team_run(const visa_tune_options *o, const size_t *plans, size_t count, tune_team_compile *compile, void *user,
                   tune_outcome *outcomes)
{
    size_t mine = is_alone(o) ? 0 : (size_t)o->part;
    tune_outcome own = {.known = false};
    if (mine < count && compile(user, plans[mine], &own))
        own.known = true;
    if (is_alone(o)) {
        outcomes[plans[0]] = own;
        return own.known;
    }
    int64_t numbers[NUMBERS], *all = NULL;
    size_t *counts = NULL, ranks = 0, bytes = 0;
    to_numbers(&own, numbers);
    bool good = o->gather(o->user, numbers, mine < count ? NUMBERS : 0, &all, &counts, &ranks);
    bytes = ranks > 0 ? count * sizeof numbers : 0;
    unsigned char *shared = ranks > 0 ? (unsigned char *)all : NULL;
    good = o->share(&shared, &bytes) && good && bytes == count * sizeof numbers;
    for (size_t i = 0; good && i < count; i++) {
        int64_t of[NUMBERS];
        memcpy(of, shared + i * sizeof of, sizeof of);
        outcomes[plans[i]] = of_numbers(of);
        good = outcomes[plans[i]].known;
    }
    free(shared);
    free(counts);
    return good;
}
