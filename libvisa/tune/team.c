#include "libvisa/tune/team.h"

#include "support/peers.h"

/* Numbers of an outcome, as they are handed over. */
enum { LEGAL, CYCLES, DMA_CYCLES, STEPS, NUMBERS };
enum { IS_REFUSED, IS_LEGAL, IS_UNKNOWN };

static peers peers_of(const visa_tune_options *o)
{
    return (peers){o->part, o->parts, o->user, o->gather, o->share};
}

size_t tune_team_size(const visa_tune_options *o)
{
    peers p = peers_of(o);
    return peers_size(&p);
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
    peers p = peers_of(o);
    return peers_share(&p, text, bytes);
}

bool tune_team_run(const visa_tune_options *o, const size_t *plans, size_t count, tune_team_compile *compile, void *user, arena *a,
                   tune_outcome *outcomes)
{
    peers p = peers_of(o);
    tune_outcome own = {.known = false};
    size_t piece;
    bool has_piece = peers_has_piece(&p, count, &piece);
    if (has_piece)
        own.known = compile(user, plans[piece], &own);
    int64_t numbers[NUMBERS];
    const int64_t *all;
    size_t all_count;
    to_numbers(&own, numbers);
    bool good = peers_exchange(&p, numbers, has_piece ? NUMBERS : 0, a, &all, &all_count) && all_count == count * NUMBERS;
    for (size_t i = 0; good && i < count; i++) {
        outcomes[plans[i]] = of_numbers(all + i * NUMBERS);
        good = outcomes[plans[i]].known;
    }
    return good;
}
