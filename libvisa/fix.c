/* visa_fix: what helps ask for, done.
 *
 * The one idea: a change shows what stood behind the fault that it mends, so the text is compiled once more until nothing is asked for; and
 * since two helps may ask for the opposite of each other, a text that was there before ends it. */
#include <stdlib.h>
#include <string.h>

#include "frontend/fix.h"
#include "include/visa_editor.h"
#include "libvisa/compilation.h"

enum { ROUNDS_MAX = 64 };

/* Malloced, in *text; how many diagnostics were taken. */
static size_t changed(visa_compilation *c, char **text, size_t *bytes)
{
    strbuf out;
    if (COMPILATION_STOPS(c) || !c->file || c->is_book)
        return 0;
    strbuf_init(&out, c->arena);
    size_t taken = fix_apply(compilation_said(c), c->sources, c->file->range.file, c->arena, &out);
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

visa_compilation *visa_fix(const char *name, const char *text, size_t bytes, const visa_options *options, size_t *changes)
{
    past p = {.count = 0};
    *changes = 0;
    visa_compilation *c = visa_compile(name, text, bytes, options);
    while (c && p.count < ROUNDS_MAX) {
        char *next = NULL;
        size_t next_bytes = 0, taken = changed(c, &next, &next_bytes);
        if (taken == 0)
            break;
        if ((next_bytes == bytes && memcmp(next, text, bytes) == 0) || was_there(&p, next, next_bytes)) {
            free(next);
            break;
        }
        p.bytes[p.count] = next_bytes;
        p.texts[p.count++] = next;
        *changes += taken;
        visa_free(c);
        c = visa_compile(name, next, next_bytes, options);
    }
    for (unsigned i = 0; i < p.count; i++)
        free(p.texts[i]);
    return c;
}
