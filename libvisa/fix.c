/* visa_fix: what helps ask for, done.
 *
 * The one idea: a change shows what the fault that it mends had hidden, so the text is compiled once more until nothing is asked for; and
 * since two helps may ask for the opposite of each other, a text that was there before ends it. */
#include <stdlib.h>
#include <string.h>

#include "frontend/fix.h"
#include "include/visa_editor.h"
#include "libvisa/compilation.h"
#include "support/budget.h"

enum { ROUNDS_MAX = 64 };

/* Malloced, in *text; how many diagnostics were taken. */
static size_t changed(visa_compilation *c, char **text, size_t *bytes)
{
    strbuf out;
    if (COMPILATION_STOPS(c) || (!c->file && !c->is_book))
        return 0;
    strbuf_init(&out, c->arena);
    size_t taken =
        c->is_book ? compilation_fix_book(c, &out) : fix_apply(compilation_shown(c), c->sources, c->file->range.file, c->arena, &out);
    *text = taken ? malloc(out.bytes + 1) : NULL;
    if (!*text)
        return 0;
    memcpy(*text, out.text, out.bytes);
    *bytes = out.bytes;
    return taken;
}

typedef struct past {
    char *texts[ROUNDS_MAX];
    size_t bytes[ROUNDS_MAX];
    unsigned count;
} past;

static bool was_there(const past *p, const char *text, size_t bytes)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->bytes[i] == bytes && memcmp(p->texts[i], text, bytes) == 0)
            return true;
    return false;
}

/* What is left of the limits for the next compilation; false: nothing. */
static bool limits_left(visa_options *options, const arena *clock, uint64_t most, uint64_t spent)
{
    options->max_milliseconds = budget_milliseconds_left(clock);
    options->max_steps = most == UINT64_MAX ? most : most - spent;
    return most == UINT64_MAX || spent < most;
}

visa_compilation *visa_fix(const char *name, const char *text, size_t bytes, const visa_options *options, size_t *changes)
{
    past p = {.count = 0};
    visa_options left = options ? *options : (visa_options){0};
    uint64_t most = left.max_steps ? left.max_steps : COMPILE_STEPS_MAX, spent = 0;
    arena *clock = arena_new(); /* never allocates, so never jumps */
    *changes = 0;
    if (!clock)
        return NULL;
    budget_limit(clock, UINT64_MAX, UINT64_MAX, left.max_milliseconds);
    visa_compilation *c = visa_compile(name, text, bytes, &left);
    while (c && p.count < ROUNDS_MAX) {
        char *next_text = NULL;
        size_t next_bytes = 0, taken = changed(c, &next_text, &next_bytes);
        bool seen = taken && ((next_bytes == bytes && memcmp(next_text, text, bytes) == 0) || was_there(&p, next_text, next_bytes));
        visa_compilation *next = taken && !seen && limits_left(&left, clock, most, spent + visa_steps(c))
                                     ? visa_compile(name, next_text, next_bytes, &left)
                                     : NULL;
        if (!next || visa_gave_up(next)) { /* the last text that was understood stays */
            spent += next ? visa_steps(next) : 0;
            visa_free(next);
            free(next_text);
            break;
        }
        p.bytes[p.count] = next_bytes;
        p.texts[p.count++] = next_text;
        *changes += taken;
        spent += visa_steps(c);
        visa_free(c);
        c = next;
    }
    for (unsigned i = 0; i < p.count; i++)
        free(p.texts[i]);
    arena_free(clock);
    if (c)
        arena_budget(c->arena)->steps += spent;
    return c;
}

const char *visa_fixed_text(const visa_compilation *c, size_t *bytes)
{
    *bytes = c->is_book ? c->chapter_bytes : 0;
    return !c->is_book ? visa_file_text(c, 0, bytes) : c->exhausted ? NULL : c->chapter;
}
