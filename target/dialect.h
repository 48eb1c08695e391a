/* The releases of the language, and how each of them spells what it has.
 *
 * The one idea: code and messages name things in one way, as the first release did; a reader of a file in another release asks here for
 * its word. The words are the rows of dialect.def and of the stages (FORM, target/engines.def). */
#ifndef VISA_TARGET_DIALECT_H
#define VISA_TARGET_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/* Oldest first. */
typedef enum dialect {
#define DIALECT(symbol, name) DIALECT_##symbol,
#include "target/dialect.def"
    DIALECT_COUNT,
    DIALECT_NEWEST = DIALECT_COUNT - 1
} dialect;

/* Sets of them: APRIL | V0_6 .. */
enum {
#define DIALECT(symbol, name) symbol = 1u << DIALECT_##symbol,
#include "target/dialect.def"
    ALL_DIALECTS = (1u << DIALECT_COUNT) - 1,
};
#define SINCE(symbol) (ALL_DIALECTS & ~((symbol)-1u))
#define UNTIL(symbol) (((symbol) << 1) - 1u)

const char *dialect_name(dialect d); /* "April", "0.6" */
/* "april", "0.6", in any case; false: there is none. */
bool dialect_by_name(const char *name, dialect *out);
/* The newest of a set that is not empty. */
dialect dialect_newest(unsigned set);
/* What a release calls a stage, a tensor type or a thing: "align" is "contract_outer" in 0.6. The word itself where no row says another. */
const char *dialect_word(dialect d, const char *word);
/* The releases that call a type so; 0: a name that is no matter of releases. */
unsigned dialect_of_type(const char *text);
/* The releases that call a thing or a type so; 0: none. */
unsigned dialect_spelt(const char *word, const char *text);
/* What the newest release calls a type, an enumeration or a crate that is called so in older ones only; NULL: it is none. */
const char *dialect_renamed_type(const char *text);

#endif
