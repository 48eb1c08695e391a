#include "target/dialect.h"

#include <string.h>
#include <strings.h>

static const char *const names[] = {
#define DIALECT(symbol, name) name,
#include "target/dialect.def"
};

const char *dialect_name(dialect d)
{
    return names[d];
}

bool dialect_by_name(const char *name, dialect *out)
{
    for (dialect d = 0; d < DIALECT_COUNT; d++)
        if (strcasecmp(names[d], name) == 0) {
            *out = d;
            return true;
        }
    return false;
}

dialect dialect_newest(unsigned set)
{
    dialect newest = 0;
    for (dialect d = 0; d < DIALECT_COUNT; d++)
        if (set >> d & 1)
            newest = d;
    return newest;
}

/* The spellings of one word, each of a set of releases. */
static const struct {
    const char *word, *spelling;
    unsigned dialects;
} words[] = {
#define WORD(word, dialects, spelling) {word, spelling, dialects},
#include "target/dialect.def"
#define FORM_ON(stage, receivers, dialects, spelling, ...) {#stage, spelling, dialects},
#include "target/engines.def"
};
enum { WORDS = sizeof words / sizeof *words };

const char *dialect_word(dialect d, const char *word)
{
    for (size_t i = 0; i < WORDS; i++)
        if ((words[i].dialects >> d & 1) && strcmp(words[i].word, word) == 0)
            return words[i].spelling;
    return word;
}

unsigned dialect_spelt(const char *word, const char *spelling)
{
    unsigned set = 0, other = 0;
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp(words[i].word, word) == 0) {
            other |= words[i].dialects;
            set |= strcmp(words[i].spelling, spelling) == 0 ? words[i].dialects : 0;
        }
    return strcmp(word, spelling) == 0 ? set | (ALL_DIALECTS & ~other) : set;
}
