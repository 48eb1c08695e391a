#include "lsp/answer.h"

#include <time.h>

#include "support/budget.h"

static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void answer_begin(answer_account *a, const answer_limits *limits)
{
    *a = (answer_account){.limits = *limits, .began = limits->max_milliseconds ? nanoseconds_now() : 0};
    if (a->limits.max_steps == 0)
        a->limits.max_steps = COMPILE_STEPS_MAX;
}

bool answer_spend(answer_account *a, uint64_t steps)
{
    enum { STEPS_BETWEEN = 1 << 10 };
    a->steps = steps > UINT64_MAX - a->steps ? UINT64_MAX : a->steps + steps;
    a->gave_up = a->gave_up || a->steps > a->limits.max_steps;
    if (a->limits.max_milliseconds && a->steps >= a->look) {
        a->look = a->steps + STEPS_BETWEEN;
        a->gave_up = a->gave_up || nanoseconds_now() - a->began > a->limits.max_milliseconds * 1000000;
    }
    return !a->gave_up;
}

bool answer_make(answer_account *a, uint64_t values, uint64_t bytes)
{
    enum { BYTES_OF_A_VALUE = 64 };
    a->values += values + bytes / BYTES_OF_A_VALUE;
    a->gave_up = a->gave_up || (a->limits.max_milliseconds && a->values > EDITOR_VALUES_MAX);
    return answer_spend(a, values + bytes / BYTES_OF_A_VALUE);
}

uint64_t answer_steps_left(const answer_account *a)
{
    return a->limits.max_steps == UINT64_MAX ? UINT64_MAX : a->steps < a->limits.max_steps ? a->limits.max_steps - a->steps : 1;
}

uint64_t answer_milliseconds_left(const answer_account *a)
{
    uint64_t most = a->limits.max_milliseconds, spent = most ? (nanoseconds_now() - a->began) / 1000000 : 0;
    return most == 0 ? 0 : spent < most ? most - spent : 1;
}
