#include "libvisa/variants/program_team.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of an outcome, as they are handed over; the text follows, eight bytes a number, with its NUL. */
enum { TEXT_BYTES, WORK, FIGURES, FIGURE_NUMBERS = sizeof(step_figures) / sizeof(int64_t), HEAD = FIGURES + FIGURE_NUMBERS };

size_t program_team_size(const program_team *t)
{
    return t->gather && t->parts > 1 ? (size_t)t->parts : 1;
}

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

bool program_team_run(const program_team *t, size_t count, program_try *try, void *user, arena *a, program_outcome *outcomes)
{
    if (program_team_size(t) == 1) {
        try(user, 0, &outcomes[0]);
        return true;
    }
    int64_t *mine = NULL, *all = NULL;
    size_t *counts = NULL, ranks = 0, own = 0, bytes = 0, at = 0;
    if ((size_t)t->part < count) {
        program_outcome one = {0};
        try(user, (size_t)t->part, &one);
        own = write_outcome(&one, a, &mine);
    }
    bool good = t->gather(NULL, mine, own, &all, &counts, &ranks);
    for (size_t i = 0; i < ranks && good; i++)
        bytes += counts[i] * sizeof *all;
    unsigned char *shared = ranks > 0 ? (unsigned char *)all : NULL;
    good = t->share(&shared, &bytes) && good;
    int64_t *numbers = ARENA_ARRAY(a, int64_t, bytes / sizeof(int64_t) + 1); /* those that came need not lie as numbers do */
    if (shared && bytes > 0)
        memcpy(numbers, shared, bytes);
    for (size_t i = 0; i < count && good; i++)
        good = read_outcome(numbers, bytes / sizeof *numbers, &at, a, &outcomes[i]);
    free(shared);
    free(counts);
    return good;
}
