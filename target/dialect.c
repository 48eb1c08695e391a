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
typedef struct spelling {
    const char *word, *spelling;
    unsigned dialects;
} spelling;

enum { /* how many rows are of types */
#define TYPE_WORD(...) +1
#define WORD(...)
       TYPES = 0
#include "target/dialect.def"
};
static const spelling things[] = {
#define WORD(...)
#define TYPE_WORD(word, dialects, spelling) {word, spelling, dialects},
#include "target/dialect.def"
#define TYPE_WORD(...)
#define WORD(word, dialects, spelling) {word, spelling, dialects},
#include "target/dialect.def"
};
static const spelling stages[] = {
#define FORM_ON(stage, receivers, dialects, spelling, ...) {#stage, spelling, dialects},
#include "target/engines.def"
};
enum { THINGS = sizeof things / sizeof *things, STAGES = sizeof stages / sizeof *stages };

static const char *spelling_in(const spelling *list, size_t count, dialect d, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if ((list[i].dialects >> d & 1) && strcmp(list[i].word, word) == 0)
            return list[i].spelling;
    return NULL;
}

const char *dialect_word(dialect d, const char *word)
{
    const char *found = spelling_in(things, THINGS, d, word);
    if (!found)
        found = spelling_in(stages, STAGES, d, word);
    return found ? found : word;
}

unsigned dialect_of_type(const char *text)
{
    unsigned set = 0, other = 0;
    for (size_t i = 0; i < TYPES; i++) { /* asked of every type of a file */
        if (things[i].spelling[0] == text[0] && strcmp(things[i].spelling, text) == 0)
            set |= things[i].dialects;
        if (things[i].word[0] == text[0] && strcmp(things[i].word, text) == 0)
            other |= things[i].dialects;
    }
    return other ? set | (ALL_DIALECTS & ~other) : set;
}

unsigned dialect_spelt(const char *word, const char *text)
{
    unsigned set = 0, other = 0;
    for (size_t i = 0; i < THINGS; i++)
        if (things[i].word[0] == word[0] && strcmp(things[i].word, word) == 0) { /* asked of every type of a file */
            other |= things[i].dialects;
            set |= strcmp(things[i].spelling, text) == 0 ? things[i].dialects : 0;
        }
    return strcmp(word, text) == 0 ? set | (ALL_DIALECTS & ~other) : set;
}

const char *dialect_renamed_type(const char *text)
{
    for (size_t i = 0; i < TYPES; i++) {
        const char *word = things[i].word;
        if ((strcmp(word, text) != 0 && strcmp(things[i].spelling, text) != 0) || dialect_spelt(word, text) >> DIALECT_NEWEST & 1)
            continue;
        return spelling_in(things, THINGS, DIALECT_NEWEST, word);
    }
    return NULL;
}
