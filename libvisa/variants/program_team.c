#include "libvisa/variants/program_team.h"

#include <string.h>

/* Numbers of an outcome, as they are handed over; the text follows, eight bytes a number, with its NUL. */
enum { TEXT_BYTES, WORK, FIGURES, FIGURE_NUMBERS = sizeof(step_figures) / sizeof(int64_t), HEAD = FIGURES + FIGURE_NUMBERS };

static size_t numbers_of_text(int64_t bytes)
{
    return ((size_t)bytes + sizeof(int64_t) - 1) / sizeof(int64_t);
}

static size_t write_outcome(const program_outcome *x, arena *a, int64_t **out)
{
    size_t bytes = x->refused ? strlen(x->refused) + 1 : 0, count = HEAD + numbers_of_text((int64_t)bytes);
    int64_t *numbers = ARENA_ARRAY(a, int64_t, count);
    numbers[TEXT_BYTES] = (int64_t)bytes;
    numbers[WORK] = (int64_t)x->work;
    memcpy(numbers + FIGURES, &x->figures, sizeof x->figures);
    if (bytes > 0)
        memcpy(numbers + HEAD, x->refused, bytes);
    *out = numbers;
    return count;
}

/* False: there are too few numbers. */
static bool read_outcome(const int64_t *numbers, size_t count, size_t *at, arena *a, program_outcome *x)
{
    if (count - *at < HEAD || numbers[*at + TEXT_BYTES] < 0 || (uint64_t)numbers[*at + TEXT_BYTES] > (count - *at - HEAD) * sizeof *numbers)
        return false;
    const int64_t *from = numbers + *at;
    x->refused = from[TEXT_BYTES] > 0 ? arena_strdup(a, (const char *)(from + HEAD)) : NULL;
    x->work = (uint64_t)from[WORK];
    memcpy(&x->figures, from + FIGURES, sizeof x->figures);
    *at += HEAD + numbers_of_text(from[TEXT_BYTES]);
    return true;
}

bool program_team_run(const peers *p, size_t count, program_try *try, void *user, arena *a, program_outcome *outcomes)
{
    int64_t *mine = NULL;
    const int64_t *all;
    size_t piece, own = 0, all_count, at = 0;
    if (peers_has_piece(p, count, &piece)) {
        program_outcome one = {0};
        try(user, piece, &one);
        own = write_outcome(&one, a, &mine);
    }
    bool good = peers_exchange(p, mine, own, a, &all, &all_count);
    for (size_t i = 0; i < count && good; i++)
        good = read_outcome(all, all_count, &at, a, &outcomes[i]);
    return good;
}
