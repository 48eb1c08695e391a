/* What an answer may cost.
 *
 * The one idea: however many compilations, questions to them and pieces of JSON an answer takes, it has one account, and whoever works
 * for it next gets what is left. Steps depend on the texts alone; the clock is that of this thread's processor. An answer whose account
 * is empty is not sent by half: the server says that it gave up. */
#ifndef VISA_LSP_ANSWER_H
#define VISA_LSP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

/* As in visa_options; and how much is judged before diagnostics are first said (EDITOR_FIRST_BYTES), 0: all. */
typedef struct answer_limits {
    uint64_t max_steps, max_bytes, max_milliseconds, first_bytes;
} answer_limits;

typedef struct answer_account {
    answer_limits limits;
    uint64_t began;  /* nanoseconds */
    uint64_t steps;  /* spent */
    uint64_t look;   /* steps at which the clock is looked at again */
    uint64_t values; /* of JSON */
    bool gave_up;    /* it was too much, or a compilation gave up that it needed */
} answer_account;

void answer_begin(answer_account *a, const answer_limits *limits);
/* Counts work; false: it is too much, and the answer is given up. */
bool answer_spend(answer_account *a, uint64_t steps);
/* The same before so many values of JSON are made, with so many bytes of text; where time is limited never more than EDITOR_VALUES_MAX: to
 * make, write and free those takes less than half of the time, wherever that runs out. */
bool answer_make(answer_account *a, uint64_t values, uint64_t bytes);
/* For those who work for it: at least 1 step, at least 1 millisecond; 0 milliseconds: any number. */
uint64_t answer_steps_left(const answer_account *a);
uint64_t answer_milliseconds_left(const answer_account *a);

#endif
