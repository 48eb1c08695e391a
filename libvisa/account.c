/* What a compilation, or an answer about one, may spend; and what is left of it when that was spent. */

#include "libvisa/compilation.h"

/* What was too much, and where. */
static void refuse_budget(visa_compilation *c, const budget *spent)
{
    unsigned long long steps = spent->steps, most_steps = spent->max_steps, bytes = spent->bytes, most_bytes = spent->max_bytes;
    diag *d;
    switch (spent->end) {
    case BUDGET_NESTING:
        d = diag_add(&c->diags, E_NESTING, spent->at, "calls, definitions and expressions nest more than %d levels deep here", NESTING_MAX);
        diag_help(&c->diags, d, "let functions call each other less deeply, or write out what the innermost definitions stand for");
        break;
    case BUDGET_STEPS:
        d = diag_add(&c->diags, E_BUDGET, spent->at, "this takes more than %llu steps of work; %llu bytes of memory are in use", most_steps,
                     bytes);
        diag_help(&c->diags, d,
                  "let an axis of Time count where a loop, a call or a constant is repeated, or raise the limit: --max-steps=%llu",
                  10 * most_steps);
        break;
    case BUDGET_BYTES:
        d = diag_add(&c->diags, E_BUDGET, spent->at, "this takes more than %llu bytes of memory, after %llu steps of work", most_bytes,
                     steps);
        diag_help(&c->diags, d, "let an axis of Time count where a loop or a call is repeated, or raise the limit: --max-bytes=%llu",
                  10 * most_bytes);
        break;
    default:
        d = diag_add(&c->diags, E_BUDGET, spent->at,
                     "given up after %llu milliseconds, %llu steps and %llu bytes: what is wrong after this is not reported",
                     (unsigned long long)(spent->is_asked ? spent->unasked_milliseconds : c->max_milliseconds), steps, bytes);
        diag_help(&c->diags, d, "visac has no limit of time: it says all of it");
    }
}

/* What was being made may be half made: nothing but its diagnostics, its texts and its tree is looked at from here on. */
bool compilation_unwound(visa_compilation *c)
{
    if (c->read)
        c->read->costs_arena = NULL; /* all arenas inside are free */
    const budget *account = c->exhausted ? NULL : arena_budget(c->arena);
    if (!account || account->end == BUDGET_MEMORY) {
        c->exhausted = true;
        return true;
    }
    budget spent = *account;
    budget_lift(c->arena);
    c->max_steps = c->max_bytes = UINT64_MAX;
    if (setjmp(*arena_guard(c->arena))) {
        c->exhausted = true;
        return true;
    }
    c->module = NULL;
    c->index = NULL;
    c->gave_up = spent.end != BUDGET_NESTING;
    c->interrupted = spent.end == BUDGET_ASKED;
    c->diags.repeating = 0;
    refuse_budget(c, &spent);
    return true;
}

void compilation_ask(visa_compilation *c)
{
    budget_limit(c->arena, c->max_steps, c->max_bytes, c->max_milliseconds);
}

void visa_ask(visa_compilation *c, uint64_t max_steps, uint64_t max_milliseconds)
{
    if (c->exhausted)
        return;
    uint64_t spent = arena_budget(c->arena)->steps, most = max_steps ? max_steps : COMPILE_STEPS_MAX;
    c->max_steps = most < UINT64_MAX - spent ? spent + most : UINT64_MAX;
    c->max_milliseconds = max_milliseconds;
    budget_clock(c->arena);
}

uint64_t visa_steps(const visa_compilation *c)
{
    return arena_budget(c->arena)->steps;
}

bool visa_gave_up(const visa_compilation *c)
{
    return c->gave_up;
}
